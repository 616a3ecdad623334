//! Dates, timestamps and intervals in arithmetic.

use jiff::tz::TimeZone;
use ssql_ir::DataType as T;

use crate::EvalContext;
use crate::testing::*;

#[test]
fn points_move() {
    let ts = |s: &str| timestamp(s);
    assert_eq!(eval("+", &[ts("2024-01-31 23:30:00"), seconds(45 * 60)]), "2024-02-01 00:15:00");
    assert_eq!(eval("+", &[ts("2024-01-31 23:30:00"), months(1)]), "2024-02-29 23:30:00");
    assert_eq!(eval("-", &[ts("2024-03-31 00:00:00"), months(1)]), "2024-02-29 00:00:00");
    assert_eq!(eval("+", &[date("2024-01-31"), days(1)]), "2024-02-01");
    assert_eq!(eval("+", &[date("2024-01-31"), seconds(3600)]), "2024-01-31 01:00:00");
    assert_eq!(type_of("+", &[date("2024-01-31"), days(1)]), "DATE");
    assert_eq!(type_of("+", &[date("2024-01-31"), seconds(3600)]), "TIMESTAMP");
    assert_eq!(eval("+", &[seconds(2 * 86400), ts("2024-02-28 12:00:00")]), "2024-03-01 12:00:00");
    assert_eq!(eval("+", &[date("2024-02-28"), int(2)]), "2024-03-01");
    assert_eq!(eval("+", &[int(2), date("2024-02-28")]), "2024-03-01");
    assert_eq!(eval("-", &[date("2024-03-01"), int(1)]), "2024-02-29");
    assert_eq!(eval("try_add", &[date("2024-02-28"), int(2)]), "2024-03-01");
    assert_eq!(eval("+", &[date("2024-02-28"), bigint(2)]), "!DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE");
    let unexpected = "!DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE";
    assert_eq!(eval("+", &[int(1), seconds(1)]), unexpected);
    assert_eq!(eval("+", &[date("2024-02-28"), str("1")]), unexpected);
    assert_eq!(eval("+", &[date("2024-02-28"), ts("2024-02-28")]), unexpected);
    assert_eq!(eval("-", &[seconds(1), date("2024-02-28")]), unexpected);
    assert_eq!(eval("/", &[seconds(1), seconds(2)]), unexpected);
    assert_eq!(eval("%", &[seconds(1), int(2)]), "!DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES");
    assert_eq!(type_of("+", &[date("2024-02-28"), null()]), "TIMESTAMP");
    assert_eq!(type_of("-", &[null(), date("2024-02-28")]), "INTERVAL DAY");
    assert_eq!(eval("+", &[str("2024-01-01"), seconds(86_400)]), "2024-01-02 00:00:00");
    assert_eq!(type_of("+", &[str("2024-01-01"), seconds(86_400)]), "STRING");
    assert_eq!(eval("+", &[str("x"), seconds(1)]), "!CAST_INVALID_INPUT");
    assert_eq!(eval("+", &[ts("2024-02-28"), int(1)]), "!DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES");
}

#[test]
fn distances() {
    assert_eq!(
        eval("-", &[timestamp("2024-01-02 00:00:00"), timestamp("2024-01-01 12:30:00.5")]),
        "INTERVAL '0 11:29:59.5' DAY TO SECOND"
    );
    assert_eq!(
        eval("-", &[timestamp("2024-01-01 00:00:00"), timestamp("2024-01-03 00:00:00")]),
        "INTERVAL '-2 00:00:00' DAY TO SECOND"
    );
    assert_eq!(
        eval("-", &[timestamp("2024-01-02 00:00:00"), date("2024-01-01")]),
        "INTERVAL '1 00:00:00' DAY TO SECOND"
    );
    assert_eq!(type_of("-", &[date("2024-01-02"), date("2024-01-01")]), "INTERVAL DAY");
}

#[test]
fn intervals_add_and_scale() {
    let hours = |n: i64| seconds(n * 3600);
    assert_eq!(eval("*", &[hours(3), int(2)]), "INTERVAL '0 06:00:00' DAY TO SECOND");
    assert_eq!(eval("*", &[int(2), hours(3)]), "INTERVAL '0 06:00:00' DAY TO SECOND");
    assert_eq!(eval("/", &[hours(3), int(4)]), "INTERVAL '0 00:45:00' DAY TO SECOND");
    assert_eq!(eval("+", &[hours(24), hours(1)]), "INTERVAL '1 01:00:00' DAY TO SECOND");
    assert_eq!(eval("/", &[months(5), int(2)]), "INTERVAL '0-3' YEAR TO MONTH");
    assert_eq!(eval("*", &[months(12), decimal("1.5")]), "INTERVAL '1-6' YEAR TO MONTH");
    assert_eq!(eval("*", &[months(1), decimal("0.5")]), "INTERVAL '0-1' YEAR TO MONTH");
    assert_eq!(eval("*", &[months(-1), decimal("0.5")]), "INTERVAL '-0-1' YEAR TO MONTH");
    assert_eq!(eval("/", &[seconds(1), int(3)]), "INTERVAL '0 00:00:00.333333' DAY TO SECOND");
    assert_eq!(eval("/", &[months(1), double(0.3)]), "INTERVAL '0-3' YEAR TO MONTH");
    assert_eq!(eval("*", &[seconds(86_400), str("2")]), "INTERVAL '2 00:00:00' DAY TO SECOND");
    assert_eq!(eval("negative", &[seconds(5)]), "INTERVAL '-0 00:00:05' DAY TO SECOND");
    assert_eq!(eval("abs", &[hours(-48)]), "INTERVAL '2 00:00:00' DAY TO SECOND");
    assert_eq!(eval("try_divide", &[hours(3), int(2)]), "INTERVAL '0 01:30:00' DAY TO SECOND");
    assert_eq!(eval("try_divide", &[hours(3), int(0)]), "NULL");
    assert_eq!(eval("/", &[hours(24), int(0)]), "!INTERVAL_DIVIDED_BY_ZERO");
    assert_eq!(eval("+", &[months(1), seconds(1)]), "!DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE");
    assert_eq!(eval("div", &[hours(25), hours(2)]), "12");
    let most = days(106_751_991);
    assert_eq!(eval("+", &[most.clone(), most.clone()]), "!INTERVAL_ARITHMETIC_OVERFLOW.WITH_SUGGESTION");
    assert_eq!(eval("negative", &[months(i32::MIN.into())]), "!INTERVAL_ARITHMETIC_OVERFLOW.WITHOUT_SUGGESTION");
    assert_eq!(eval("+", &[date("9999-12-31"), most]), "!ARITHMETIC_OVERFLOW");
    assert_eq!(eval("=", &[seconds(3600), hours(1)]), "true");
}

#[test]
fn days_move_the_wall_clock() {
    // The night in which New York's clocks go forward.
    let ctx = EvalContext { time_zone: TimeZone::get("America/New_York").expect("known"), ..Default::default() };
    let before = cast(str("2024-03-09 12:00:00"), T::Timestamp);
    let moved = |by| show_in(&call("+", &[before.clone(), seconds(by)]).expect("resolves"), &ctx);
    assert_eq!(moved(86_400), "2024-03-10 12:00:00");
    assert_eq!(moved(86_399), "2024-03-10 12:59:59");
}

#[test]
fn window_starts() {
    let at = |s: &str, offset: i64| eval("window_start", &[timestamp(s), bigint(600_000_000), bigint(offset)]);
    assert_eq!(at("2024-01-01 10:07:30", 0), "2024-01-01 10:00:00");
    assert_eq!(at("2024-01-01 10:10:00", 0), "2024-01-01 10:10:00");
    assert_eq!(at("1969-12-31 23:59:59.999999", 0), "1969-12-31 23:50:00");
    assert_eq!(at("2024-01-01 10:01:30", 120_000_000), "2024-01-01 09:52:00");
}
