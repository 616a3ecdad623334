//! Arithmetic of numbers: types, values, overflow, division by zero.

use ssql_ir::DataType as T;

use crate::testing::*;

#[test]
fn integers_overflow_with_an_error() {
    assert_eq!(eval("+", &[tinyint(127), int(1)]), "128");
    assert_eq!(eval("+", &[tinyint(127), tinyint(1)]), "!BINARY_ARITHMETIC_OVERFLOW");
    assert_eq!(eval("*", &[smallint(32767), smallint(2)]), "!BINARY_ARITHMETIC_OVERFLOW");
    assert_eq!(eval("+", &[int(i32::MAX), int(1)]), "!ARITHMETIC_OVERFLOW");
    assert_eq!(eval("-", &[int(i32::MIN), int(1)]), "!ARITHMETIC_OVERFLOW");
    assert_eq!(eval("*", &[bigint(i64::MAX), int(2)]), "!ARITHMETIC_OVERFLOW");
    assert_eq!(eval("negative", &[bigint(i64::MIN)]), "!ARITHMETIC_OVERFLOW");
    assert_eq!(eval("abs", &[int(i32::MIN)]), "!ARITHMETIC_OVERFLOW");
    assert_eq!(eval("negative", &[tinyint(-128)]), "!ARITHMETIC_OVERFLOW");
    assert_eq!(eval("%", &[bigint(i64::MIN), int(-1)]), "0");
    assert_eq!(eval("div", &[bigint(i64::MIN), int(-1)]), "!ARITHMETIC_OVERFLOW");
    assert_eq!(eval("negative", &[int(i32::MAX)]), "-2147483647");
    assert_eq!(eval("+", &[int(i32::MAX), bigint(1)]), "2147483648");
}

#[test]
fn operand_types_meet() {
    assert_eq!(type_of("+", &[tinyint(1), int(1)]), "INT");
    assert_eq!(type_of("+", &[tinyint(1), smallint(1)]), "SMALLINT");
    assert_eq!(type_of("+", &[int(1), bigint(1)]), "BIGINT");
    assert_eq!(type_of("+", &[bigint(1), float(1.0)]), "DOUBLE");
    assert_eq!(type_of("+", &[float(1.0), float(1.0)]), "FLOAT");
    assert_eq!(type_of("+", &[float(1.0), double(1.0)]), "DOUBLE");
    assert_eq!(type_of("/", &[int(7), int(2)]), "DOUBLE");
    assert_eq!(type_of("div", &[int(7), int(2)]), "BIGINT");
    assert_eq!(type_of("%", &[tinyint(7), smallint(2)]), "SMALLINT");
    assert_eq!(type_of("/", &[float(1.0), float(3.0)]), "DOUBLE");
    assert_eq!(type_of("+", &[bigint(1), decimal_of("1", 1, 0)]), "DECIMAL(2,0)");
}

#[test]
fn strings_beside_numbers() {
    assert_eq!(eval("+", &[str("2"), int(3)]), "5");
    assert_eq!(type_of("+", &[str("2"), int(3)]), "BIGINT");
    assert_eq!(eval("+", &[str("2.5"), decimal("3.5")]), "6.0");
    assert_eq!(type_of("/", &[str("5"), int(2)]), "DOUBLE");
    assert_eq!(eval("/", &[str("5"), str("2")]), "!DATATYPE_MISMATCH.BINARY_OP_WRONG_TYPE");
    assert_eq!(eval("*", &[str("5"), str("2")]), "!DATATYPE_MISMATCH.BINARY_OP_WRONG_TYPE");
    assert_eq!(eval("+", &[str("2.5"), int(3)]), "!CAST_INVALID_INPUT");
    assert_eq!(eval("+", &[int(1), null_of(T::array(T::Int32))]), "!DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES");
}

#[test]
fn division_and_remainders() {
    let row = |a: i32, b: i32| ["/", "div", "%", "mod", "pmod"].map(|f| eval(f, &[int(a), int(b)])).join(" ");
    assert_eq!(row(7, 2), "3.5 3 1 1 1");
    assert_eq!(row(-7, 2), "-3.5 -3 -1 -1 1");
    assert_eq!(row(7, -2), "-3.5 -3 1 1 1");
    assert_eq!(row(-7, -2), "3.5 3 -1 -1 -1");
    assert_eq!(row(0, 5), "0.0 0 0 0 0");
    assert_eq!(row(5, 0), "!DIVIDE_BY_ZERO !DIVIDE_BY_ZERO !REMAINDER_BY_ZERO !REMAINDER_BY_ZERO !REMAINDER_BY_ZERO");
    assert_eq!(eval("/", &[null_of(T::Int32), int(0)]), "NULL");
    assert_eq!(eval("/", &[double(1.0), double(0.0)]), "!DIVIDE_BY_ZERO");
    assert_eq!(eval("%", &[double(-7.5), double(2.0)]), "-1.5");
    assert_eq!(eval("pmod", &[double(-7.5), double(2.0)]), "0.5");
    assert_eq!(eval("div", &[decimal("7.5"), int(2)]), "3");
    assert_eq!(eval("div", &[decimal("-7.5"), int(2)]), "-3");
    assert_eq!(eval("%", &[decimal("-7.5"), int(2)]), "-1.5");
    assert_eq!(eval("pmod", &[decimal("-7.5"), int(2)]), "0.5");
    assert_eq!(type_of("/", &[decimal("7.5"), int(2)]), "DECIMAL(7,6)");
    assert_eq!(type_of("%", &[decimal("7.5"), int(2)]), "DECIMAL(2,1)");
    assert_eq!(eval("/", &[decimal("1.5"), decimal("0.0")]), "!DIVIDE_BY_ZERO");
    assert_eq!(eval("%", &[int(1), decimal("0.0")]), "!REMAINDER_BY_ZERO");
    assert_eq!(eval("div", &[int(7), decimal("0.0")]), "!DIVIDE_BY_ZERO");
    assert_eq!(eval("try_divide", &[decimal("1.5"), int(0)]), "NULL");
}

#[test]
fn special_floats() {
    let x = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, 1.5];
    let of = |f: &str, y: f64| x.map(|x| eval(f, &[double(x), double(y)])).join(" ");
    assert_eq!(of("+", 1.0), "NaN Infinity -Infinity 1.0 1.0 2.5");
    assert_eq!(of("*", 0.0), "NaN NaN NaN -0.0 0.0 0.0");
    assert_eq!(x.map(|x| eval("negative", &[double(x)])).join(" "), "NaN -Infinity Infinity 0.0 -0.0 -1.5");
    assert_eq!(x.map(|x| eval("abs", &[double(x)])).join(" "), "NaN Infinity Infinity 0.0 0.0 1.5");
}

fn abw(second: bool) -> (Arg, Arg, Arg) {
    if second {
        (decimal_of("-0.01", 10, 2), decimal_of("0.0003", 6, 4), decimal_of("0.000000000000000001", 38, 18))
    } else {
        (
            decimal_of("12345678.91", 10, 2),
            decimal_of("12.3456", 6, 4),
            decimal_of("1234567890.123456789012345678", 38, 18),
        )
    }
}

#[test]
fn decimal_result_types() {
    let (a, b, w) = abw(false);
    let types = |pairs: &[(&str, &Arg, &Arg)]| {
        pairs.iter().map(|(f, x, y)| type_of(f, &[(*x).clone(), (*y).clone()])).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        types(&[("+", &a, &b), ("-", &a, &b), ("*", &a, &b), ("/", &a, &b), ("%", &a, &b), ("div", &a, &b)]),
        "DECIMAL(13,4) DECIMAL(13,4) DECIMAL(17,6) DECIMAL(21,9) DECIMAL(6,4) BIGINT"
    );
    assert_eq!(
        types(&[("+", &w, &w), ("*", &w, &w), ("/", &w, &w), ("*", &w, &a), ("/", &w, &int(3))]),
        "DECIMAL(38,17) DECIMAL(38,6) DECIMAL(38,6) DECIMAL(38,9) DECIMAL(38,18)"
    );
    let cast_int = cast(int(1), T::Int32);
    let not_constant = |t: T| expr("negative", &[null_of(t)]);
    assert_eq!(cast_int, int(1));
    assert_eq!(
        types(&[
            ("+", &a, &int(1)),
            ("+", &a, &int(100)),
            ("+", &a, &not_constant(T::Int32)),
            ("+", &a, &not_constant(T::Int64)),
            ("*", &a, &not_constant(T::Int8)),
            ("+", &a, &double(1.0)),
            ("+", &a, &float(1.0)),
        ]),
        "DECIMAL(11,2) DECIMAL(11,2) DECIMAL(13,2) DECIMAL(23,2) DECIMAL(14,2) DOUBLE DOUBLE"
    );
    assert_eq!(type_of("negative", std::slice::from_ref(&a)), "DECIMAL(10,2)");
    assert_eq!(type_of("greatest", &[a, w]), "DECIMAL(38,18)");
}

#[test]
fn decimal_values() {
    let all = |second: bool| {
        let (a, b, _) = abw(second);
        ["+", "-", "*", "/", "%", "div"].map(|f| eval(f, &[a.clone(), b.clone()])).join(" ")
    };
    assert_eq!(all(false), "12345691.2556 12345666.5644 152414813.551296 1000006.391750907 4.8364 1000006");
    assert_eq!(all(true), "-0.0097 -0.0103 -0.000003 -33.333333333 -0.0001 -33");
    let capped = |second: bool| {
        let (a, _, w) = abw(second);
        [("+", int(1)), ("*", int(2)), ("/", int(3)), ("*", a), ("%", int(1))]
            .map(|(f, y)| eval(f, &[w.clone(), y]))
            .join(" ")
    };
    assert_eq!(
        capped(false),
        "1234567891.12345678901234568 2469135780.2469135780246914 411522630.041152263004115226 \
         15241578764060357.776406036 0.123456789012345678"
    );
    assert_eq!(
        capped(true),
        "1.00000000000000000 0.0000000000000000 0.000000000000000000 0.000000000 0.000000000000000001"
    );
}

#[test]
fn decimals_past_38_digits() {
    let nines = decimal_of("99999999999999999999999999999999999999", 38, 0);
    let almost = decimal_of("99999999999999999999999999999999999998", 38, 0);
    assert_eq!(eval("+", &[nines.clone(), int(1)]), "!NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION");
    assert_eq!(eval("+", &[almost, int(1)]), "99999999999999999999999999999999999999");
    assert_eq!(eval("try_add", &[nines, int(1)]), "NULL");
    let big = decimal_of("10000000000000000000", 38, 10);
    assert_eq!(eval("*", &[big.clone(), big]), "!NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION");
}

#[test]
fn tried_operations_give_null() {
    let r = |f: &str, a: i32, b: i32| eval(f, &[int(a), int(b)]);
    assert_eq!(r("try_add", i32::MAX, 1), "NULL");
    assert_eq!(r("try_add", i32::MAX - 1, 1), "2147483647");
    assert_eq!(r("try_subtract", i32::MIN, 1), "NULL");
    assert_eq!(r("try_multiply", 65536, 65536), "NULL");
    assert_eq!(r("try_multiply", 65536, 32767), "2147418112");
    assert_eq!(r("try_divide", 1, 0), "NULL");
    assert_eq!(r("try_divide", 7, 2), "3.5");
    assert_eq!(r("try_mod", 7, 0), "NULL");
    assert_eq!(r("try_mod", -7, 3), "-1");
    assert_eq!(type_of("try_add", &[int(1), int(2)]), "INT");
    assert_eq!(type_of("try_divide", &[int(1), int(2)]), "DOUBLE");
    assert_eq!(type_of("try_multiply", &[bigint(1), int(2)]), "BIGINT");
    assert_eq!(type_of("try_divide", &[decimal("1.5"), int(2)]), "DECIMAL(7,6)");
    assert_eq!(type_of("try_mod", &[smallint(1), tinyint(2)]), "SMALLINT");
    let by_zero = expr("div", &[int(1), int(0)]);
    assert_eq!(eval("try_add", &[by_zero, int(1)]), "!DIVIDE_BY_ZERO");
}

#[test]
fn bits() {
    assert_eq!(eval("&", &[int(6), int(3)]), "2");
    assert_eq!(eval("|", &[int(6), bigint(3)]), "7");
    assert_eq!(type_of("|", &[int(6), bigint(3)]), "BIGINT");
    assert_eq!(eval("^", &[tinyint(6), tinyint(3)]), "5");
    assert_eq!(eval("~", &[int(0)]), "-1");
    assert_eq!(eval("&", &[double(1.0), int(1)]), "!DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES");
    assert_eq!(type_of("^", &[int(5), null()]), "INT");
}

#[test]
fn edges() {
    assert_eq!(eval("div", &[float(5.5), int(2)]), "!DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES");
    assert_eq!(type_of("*", &[null(), decimal("1.5")]), "DECIMAL(5,2)");
    assert_eq!(type_of("try_add", &[decimal("1.5"), null()]), "DECIMAL(3,1)");
    assert_eq!(type_of("+", &[null(), null()]), "DOUBLE");
    assert_eq!(eval("negative", &[str("5")]), "-5.0");
    assert_eq!(eval("+", &[boolean(true), int(1)]), "!DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES");
    assert_eq!(eval("pmod", &[int(7), int(-3)]), "1");
    assert_eq!(eval("pmod", &[int(-7), int(-3)]), "-1");
    assert_eq!(eval("pmod", &[decimal("-7.5"), int(-2)]), "-1.5");
    assert_eq!(
        eval("*", &[decimal_of("12345678901234567890123456789012345678", 38, 0), decimal("0.1")]),
        "1234567890123456789012345678901234567.8"
    );
    let small = decimal_of("0.12345678901234567890123456789012345678", 38, 38);
    assert_eq!(eval("+", &[small, int(1)]), "1.123456789012345678901234567890123457");
    assert_eq!(eval("/", &[decimal_of("1", 38, 0), decimal_of("3", 38, 0)]), "0.333333");
}

#[test]
fn wrong_numbers_of_arguments() {
    assert_eq!(eval("+", &[int(1)]), "!WRONG_NUM_ARGS.WITHOUT_SUGGESTION");
    assert_eq!(eval("isnull", &[]), "!WRONG_NUM_ARGS.WITHOUT_SUGGESTION");
    assert_eq!(eval("no_such_function", &[]), "!UNRESOLVED_ROUTINE");
}
