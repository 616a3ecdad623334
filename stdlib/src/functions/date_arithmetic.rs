//! Days and months: `date_add`, `datediff`, `add_months`, `last_day`, `next_day`, `months_between`, and the calls that make
//! dates from numbers.

use arrow::datatypes::{Date32Type, Float64Type, Int8Type, Int16Type, Int32Type};
use ssql_ir::DataType as T;

use super::clock::Clock;
use super::timestamp_units;
use crate::call::{Call, EvalResult};
use crate::error::{EvalError, ResolveError};
use crate::function::{FunctionDef, Param, Ret, scalar, scalar_with};
use crate::resolve::{TypeCall, Typed};
use crate::time::{MICROS_PER_SECOND, civil_from_days, days_from_civil, days_in_month, split_micros};

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[
    scalar_with("date_add", date_add_type, |c| date_add(c, 1)).aliases(&["dateadd"]).doc(
        "The date `n` days later; with a unit first, as `timestampadd`.",
        "date_add(date, n) | date_add(unit, n, ts)",
        "date_add(DATE '2024-02-28', 2)",
    ),
    scalar_with("date_sub", days_type, |c| date_add(c, -1)).doc(
        "The date `n` days earlier.",
        "date_sub(date, n)",
        "date_sub(DATE '2024-03-01', 1)",
    ),
    scalar_with("datediff", date_diff_type, date_diff).aliases(&["date_diff"]).doc(
        "Days from `start` to `end`; with a unit first, as `timestampdiff`.",
        "datediff(end, start) | datediff(unit, start, end)",
        "datediff(DATE '2024-03-01', DATE '2024-02-01')",
    ),
    scalar("add_months", &[Param::Date, Param::Int], Ret::Date, add_months).doc(
        "The date `n` months later; a day that the month does not have becomes its last.",
        "add_months(date, n)",
        "add_months(DATE '2024-01-31', 1)",
    ),
    scalar("last_day", &[Param::Date], Ret::Date, last_day).doc(
        "The last day of the date's month.",
        "last_day(date)",
        "last_day(DATE '2024-02-10')",
    ),
    scalar("next_day", &[Param::Date, Param::String], Ret::Date, next_day).doc(
        "The first date after `date` that is that day of the week (`Mo`, `Mon`, `Monday`, ...).",
        "next_day(date, day_of_week)",
        "next_day(DATE '2024-03-09', 'Mon')",
    ),
    scalar("months_between", &[Param::Timestamp, Param::Timestamp, Param::Boolean], Ret::Double, months_between)
        .optional(1)
        .doc(
            "Months from `b` to `a`: whole if the days of the month are equal or both the last, else with 31sts; \
             rounded to 8 digits unless `round` is false.",
            "months_between(a, b[, round])",
            "months_between(DATE '2024-03-31', DATE '2024-02-29')",
        ),
    scalar("make_date", &[Param::Int, Param::Int, Param::Int], Ret::Date, make_date).doc(
        "A date from year, month and day.",
        "make_date(year, month, day)",
        "make_date(2024, 2, 29)",
    ),
    scalar_with("unix_date", unix_date_type, |c| {
        let d = c.date(0);
        c.primitive_all::<Int32Type>(|r| d.get(r))
    })
    .doc("Days since 1970-01-01.", "unix_date(date)", "unix_date(DATE '1970-01-02')"),
    scalar("date_from_unix_date", &[Param::Int], Ret::Date, |c| {
        let d = c.i32(0);
        c.primitive_all::<Date32Type>(|r| d.get(r))
    })
    .doc("The date that many days after 1970-01-01.", "date_from_unix_date(days)", "date_from_unix_date(1)"),
];

/// A DATE; a text is not read as one.
fn unix_date_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(1, 1)?;
    if matches!(c.ty(0), T::Date | T::Null) {
        Ok(Typed::new(vec![T::Date], T::Int32))
    } else {
        Err(c.mismatch(0, "DATE"))
    }
}

/// `date, days`: days are an INT or narrower; a text is read as an INT, wider numbers are refused.
fn days_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, 2)?;
    let days = match c.ty(1) {
        t @ (T::Int8 | T::Int16 | T::Int32) => t.clone(),
        T::Null | T::String => T::Int32,
        _ => return Err(c.mismatch(1, "(INT OR SMALLINT OR TINYINT)")),
    };
    Ok(Typed::new(vec![c.coerce(0, Param::Date)?, days], T::Date))
}

fn date_add_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    if c.len() == 3 { timestamp_units::add_type(c) } else { days_type(c) }
}

fn date_diff_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    if c.len() == 3 {
        return timestamp_units::diff_type(c);
    }
    Ok(Typed::new(c.fixed(&[Param::Date, Param::Date], 0, false)?, T::Int32))
}

fn out_of_range(c: &Call<'_>) -> EvalError {
    EvalError::overflow("The date", c.data_type, "")
}

fn date_add(c: &Call<'_>, sign: i64) -> EvalResult {
    if c.len() == 3 {
        return timestamp_units::add(c);
    }
    let d = c.date(0);
    let later = |r: usize, n: i64| i32::try_from(i64::from(d.get(r)) + sign * n).map(Some).map_err(|_| out_of_range(c));
    match c.types[1] {
        T::Int8 => {
            let n = c.fixed::<Int8Type>(1);
            c.primitive::<Date32Type>(|r| later(r, n.get(r).into()))
        }
        T::Int16 => {
            let n = c.fixed::<Int16Type>(1);
            c.primitive::<Date32Type>(|r| later(r, n.get(r).into()))
        }
        _ => {
            let n = c.i32(1);
            c.primitive::<Date32Type>(|r| later(r, n.get(r).into()))
        }
    }
}

fn date_diff(c: &Call<'_>) -> EvalResult {
    if c.len() == 3 {
        return timestamp_units::diff(c);
    }
    let (end, start) = (c.date(0), c.date(1));
    c.primitive::<Int32Type>(|r| match end.get(r).checked_sub(start.get(r)) {
        None => Err(EvalError::overflow("The number of days", c.data_type, "")),
        days => Ok(days),
    })
}

fn add_months(c: &Call<'_>) -> EvalResult {
    let (d, n) = (c.date(0), c.i32(1));
    c.primitive::<Date32Type>(|r| {
        i32::try_from(crate::time::add_months(d.get(r).into(), n.get(r).into())).map(Some).map_err(|_| out_of_range(c))
    })
}

fn last_day(c: &Call<'_>) -> EvalResult {
    let d = c.date(0);
    c.primitive_all::<Date32Type>(|r| {
        let (year, month, _) = civil_from_days(d.get(r).into());
        days_from_civil(year, month, days_in_month(year, month)) as i32
    })
}

/// Days of the week counted from Thursday, the day of 1970-01-01.
fn day_of_week(name: &str) -> Option<i64> {
    const NAMES: [&str; 7] = ["THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY", "MONDAY", "TUESDAY", "WEDNESDAY"];
    let name = name.to_ascii_uppercase();
    let found = NAMES.iter().position(|n| name == *n || name == n[..3] || name == n[..2])?;
    Some(found as i64)
}

fn next_day(c: &Call<'_>) -> EvalResult {
    let (d, name) = (c.date(0), c.str(1));
    let constant = c.constant_str(1).map(day_of_week);
    c.primitive::<Date32Type>(|r| {
        let wanted = constant.unwrap_or_else(|| day_of_week(name.get(r))).ok_or_else(|| {
            EvalError::new("ILLEGAL_DAY_OF_WEEK", format!("'{}' is no day of the week.", name.get(r)))
                .with_help("write two letters, three letters or the whole English name: MO, MON, MONDAY")
        })?;
        let start = i64::from(d.get(r));
        i32::try_from(start + 1 + (wanted - 1 - start).rem_euclid(7)).map(Some).map_err(|_| out_of_range(c))
    })
}

fn months_between(c: &Call<'_>) -> EvalResult {
    let (a, b) = (c.timestamp(0), c.timestamp(1));
    let round = (c.len() == 3).then(|| c.bool(2));
    let clock = Clock::of(c, 0);
    const SECONDS_PER_MONTH: f64 = 31.0 * 86_400.0;
    c.primitive_all::<Float64Type>(|r| {
        let ((day_a, time_a), (day_b, time_b)) =
            (split_micros(clock.local(a.get(r))), split_micros(clock.local(b.get(r))));
        let ((ya, ma, da), (yb, mb, db)) = (civil_from_days(day_a), civil_from_days(day_b));
        let months = ((ya - yb) * 12 + i64::from(ma) - i64::from(mb)) as f64;
        if da == db || (da == days_in_month(ya, ma) && db == days_in_month(yb, mb)) {
            return months;
        }
        let seconds =
            (i64::from(da) - i64::from(db)) * 86_400 + time_a / MICROS_PER_SECOND - time_b / MICROS_PER_SECOND;
        let exact = months + seconds as f64 / SECONDS_PER_MONTH;
        // Java's Math.round: halves go up.
        if round.as_ref().is_none_or(|v| v.get(r)) { (exact * 1e8 + 0.5).floor() / 1e8 } else { exact }
    })
}

/// A field that is out of its bounds: the message names it as Java does.
pub(super) fn out_of_bounds(field: &str, valid: &str, value: impl std::fmt::Display) -> EvalError {
    EvalError::new(
        "DATETIME_FIELD_OUT_OF_BOUNDS.WITHOUT_SUGGESTION",
        format!("Invalid value for {field} (valid values {valid}): {value}."),
    )
    .with_help("use the `try_` form of the function, where there is one, to get NULL instead")
}

/// Days of a date whose parts are checked one by one.
pub(super) fn checked_days(year: i32, month: i32, day: i32) -> Result<i64, EvalError> {
    let m = u32::try_from(month)
        .ok()
        .filter(|m| (1..=12).contains(m))
        .ok_or_else(|| out_of_bounds("MonthOfYear", "1 - 12", month))?;
    let year = i64::from(year);
    let last = days_in_month(year, m);
    let d = u32::try_from(day)
        .ok()
        .filter(|d| (1..=last).contains(d))
        .ok_or_else(|| out_of_bounds("DayOfMonth", &format!("1 - {last} in {year:04}-{month:02}"), day))?;
    Ok(days_from_civil(year, m, d))
}

fn make_date(c: &Call<'_>) -> EvalResult {
    let (y, m, d) = (c.i32(0), c.i32(1), c.i32(2));
    c.primitive::<Date32Type>(|r| {
        let days = checked_days(y.get(r), m.get(r), d.get(r))?;
        i32::try_from(days).map(Some).map_err(|_| out_of_range(c))
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::{bigint, boolean, date, decimal, eval, int, null, smallint, str, timestamp};

    #[test]
    fn days_are_added() {
        assert_eq!(eval("date_add", &[date("2024-02-29"), int(365)]), "2025-02-28");
        assert_eq!(eval("date_sub", &[date("1970-01-01"), int(60)]), "1969-11-02");
        assert_eq!(eval("dateadd", &[timestamp("2024-01-01 10:00:00"), smallint(5)]), "2024-01-06");
        assert_eq!(eval("date_add", &[str("2024-01-01"), str("5")]), "2024-01-06");
        assert_eq!(eval("date_add", &[date("2024-01-01"), null()]), "NULL");
        assert_eq!(eval("date_add", &[date("2024-01-01"), int(i32::MAX)]), "!ARITHMETIC_OVERFLOW");
        assert_eq!(eval("date_add", &[date("2024-01-01"), bigint(5)]), "!DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE");
        assert_eq!(eval("date_add", &[date("2024-01-01"), decimal("1.5")]), "!DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE");
    }

    #[test]
    fn days_between() {
        assert_eq!(eval("datediff", &[date("2024-03-01"), date("2024-02-01")]), "29");
        assert_eq!(eval("datediff", &[str("2024-02-01"), str("2024-03-01")]), "-29");
        assert_eq!(eval("datediff", &[timestamp("2024-03-01 00:00:01"), timestamp("2024-02-29 23:59:59")]), "1");
        assert_eq!(eval("date_diff", &[date("2024-01-01"), null()]), "NULL");
    }

    #[test]
    fn months() {
        assert_eq!(eval("add_months", &[date("2024-01-31"), int(1)]), "2024-02-29");
        assert_eq!(eval("add_months", &[date("2024-02-29"), int(-12)]), "2023-02-28");
        assert_eq!(eval("add_months", &[date("2024-01-01"), int(i32::MAX)]), "!ARITHMETIC_OVERFLOW");
        assert_eq!(eval("last_day", &[str("2023-02-10")]), "2023-02-28");
        let between = |a: &str, b: &str| eval("months_between", &[str(a), str(b)]);
        assert_eq!(between("2024-03-31", "2024-02-29"), "1.0");
        assert_eq!(between("2024-03-15", "2024-02-29"), "0.5483871");
        assert_eq!(between("2024-03-15 12:00:00", "2024-02-15"), "1.0");
        assert_eq!(between("2024-01-01", "2024-03-01"), "-2.0");
        assert_eq!(between("2024-03-31 12:00:00", "2024-02-28 01:00:00"), "1.11155914");
        assert_eq!(
            eval("months_between", &[str("2024-03-10 06:00:00"), str("2024-01-25"), boolean(false)]),
            "1.5241935483870968"
        );
    }

    #[test]
    fn days_of_the_week() {
        let next = |day: &str| eval("next_day", &[date("2024-03-09"), str(day)]);
        assert_eq!(next("SAT"), "2024-03-16");
        assert_eq!(next("sunday"), "2024-03-10");
        assert_eq!(next("Mo"), "2024-03-11");
        assert_eq!(next("TU"), "2024-03-12");
        assert_eq!(next("Thurs"), "!ILLEGAL_DAY_OF_WEEK");
        assert_eq!(eval("next_day", &[date("2024-03-09"), null()]), "NULL");
    }

    #[test]
    fn dates_from_numbers() {
        assert_eq!(eval("make_date", &[int(2024), int(2), int(29)]), "2024-02-29");
        assert_eq!(
            eval("make_date", &[int(2023), int(2), int(29)]),
            "!DATETIME_FIELD_OUT_OF_BOUNDS.WITHOUT_SUGGESTION"
        );
        assert_eq!(eval("make_date", &[int(200_000_000), int(1), int(1)]), "!ARITHMETIC_OVERFLOW");
        assert_eq!(eval("make_date", &[null(), int(1), int(1)]), "NULL");
        assert_eq!(eval("unix_date", &[date("2024-03-09")]), "19791");
        assert_eq!(eval("date_from_unix_date", &[int(-1)]), "1969-12-31");
    }
}
