//! Comparisons, IN, NULL, greatest and least, LIKE.

use ssql_ir::DataType as T;

use crate::testing::*;

#[test]
fn floats_compare_by_sparks_order() {
    let nan = || double(f64::NAN);
    assert_eq!(eval("=", &[nan(), nan()]), "true");
    assert_eq!(eval(">", &[nan(), double(f64::INFINITY)]), "true");
    assert_eq!(eval("<", &[double(f64::INFINITY), nan()]), "true");
    assert_eq!(eval("<", &[nan(), nan()]), "false");
    assert_eq!(eval("<=", &[nan(), nan()]), "true");
    assert_eq!(eval("=", &[double(-0.0), int(0)]), "true");
    assert_eq!(eval("<", &[double(-0.0), double(0.0)]), "false");
    assert_eq!(eval("<=>", &[double(0.0), double(-0.0)]), "true");
    assert_eq!(eval("isnan", &[nan()]), "true");
    assert_eq!(eval("isnan", &[null_of(T::Float64)]), "false");
    assert_eq!(eval("in", &[nan(), nan(), double(0.0)]), "true");
}

#[test]
fn text_beside_other_types() {
    assert_eq!(eval("=", &[str("7"), int(7)]), "true");
    assert_eq!(eval("=", &[str("007"), int(7)]), "true");
    assert_eq!(eval(">", &[str("10"), int(9)]), "true");
    assert_eq!(eval("=", &[str("seven"), int(7)]), "!CAST_INVALID_INPUT");
    assert_eq!(eval("=", &[date("2024-03-01"), str("2024-03-01")]), "true");
    assert_eq!(eval("=", &[timestamp("2024-03-01 00:00:00"), str("2024-03-01")]), "true");
    assert_eq!(eval("<", &[date("2024-03-01"), timestamp("2024-03-01 00:00:01")]), "true");
    assert_eq!(eval("=", &[boolean(true), str("true")]), "true");
    assert_eq!(eval("=", &[boolean(true), int(1)]), "!DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES");
    assert_eq!(eval("=", &[date("2024-03-01"), int(20240301)]), "!DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES");
    assert_eq!(eval(">", &[months(1), seconds(1)]), "!DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES");
    assert_eq!(eval("in", &[int(1), decimal("1.0"), int(2)]), "true");
    assert_eq!(eval("in", &[int(1), str("1"), str("2")]), "true");
}

#[test]
fn nulls() {
    assert_eq!(eval("=", &[null(), null()]), "NULL");
    assert_eq!(eval("<=>", &[null(), null()]), "true");
    assert_eq!(eval("<>", &[null(), int(1)]), "NULL");
    assert_eq!(eval("<=>", &[int(1), null()]), "false");
    assert_eq!(eval("isnull", &[null()]), "true");
    assert_eq!(eval("isnotnull", &[int(1)]), "true");
    assert_eq!(eval("in", &[null(), int(1), int(2)]), "NULL");
    assert_eq!(eval("in", &[null(), null()]), "NULL");
    assert_eq!(eval("in", &[int(5), int(5), null()]), "true");
    assert_eq!(eval("in", &[int(5), int(6), null()]), "NULL");
    assert_eq!(eval("in", &[int(5), int(6), int(7)]), "false");
}

#[test]
fn truth() {
    assert_eq!(eval("not", &[boolean(true)]), "false");
    assert_eq!(eval("not", &[null_of(T::Boolean)]), "NULL");
    assert_eq!(eval("not", &[int(1)]), "!DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE");
    assert_eq!(eval("istrue", &[null_of(T::Boolean)]), "false");
    assert_eq!(eval("isfalse", &[boolean(false)]), "true");
    assert_eq!(eval("<", &[boolean(false), boolean(true)]), "true");
}

#[test]
fn extremes_skip_null() {
    assert_eq!(eval("greatest", &[int(1), int(3), int(2)]), "3");
    assert_eq!(eval("least", &[int(1), int(3), int(2)]), "1");
    assert_eq!(eval("greatest", &[int(1), null(), int(2)]), "2");
    assert_eq!(eval("least", &[null(), int(5)]), "5");
    assert_eq!(eval("greatest", &[null(), null()]), "NULL");
    assert_eq!(eval("greatest", &[str("a"), str("B"), str("c")]), "c");
    assert_eq!(eval("greatest", &[int(1), decimal("2.5")]), "2.5");
    assert_eq!(type_of("greatest", &[int(1), decimal("2.5")]), "DECIMAL(11,1)");
    assert_eq!(eval("greatest", &[double(f64::NAN), double(f64::INFINITY)]), "NaN");
    assert_eq!(eval("least", &[double(f64::NAN), int(1)]), "1.0");
    assert_eq!(eval("least", &[timestamp("2024-01-01 00:00:00"), date("2023-12-31")]), "2023-12-31 00:00:00");
    assert_eq!(eval("greatest", &[int(1)]), "!WRONG_NUM_ARGS.WITHOUT_SUGGESTION");
    assert_eq!(eval("greatest", &[int(1), null_of(T::array(T::Int32))]), "!DATATYPE_MISMATCH.DATA_DIFF_TYPES");
    assert_eq!(eval("greatest", &[str("10"), int(9)]), "!DATATYPE_MISMATCH.DATA_DIFF_TYPES");
    let map = null_of(T::map(T::Int32, T::Int32));
    assert_eq!(eval("least", &[map.clone(), map]), "!DATATYPE_MISMATCH.INVALID_ORDERING_TYPE");
}

#[test]
fn like() {
    let like = |s: &str, p: &str| eval("like", &[str(s), str(p)]);
    let row = |s: &str| {
        let mut all: Vec<String> = ["10%", "10_", "a_b"].iter().map(|p| like(s, p)).collect();
        all.push(eval("ilike", &[str(s), str("a_b")]));
        all.extend(["%", "", "%x%"].iter().map(|p| like(s, p)));
        all.join(" ")
    };
    assert_eq!(row(""), "false false false false true true false");
    assert_eq!(row("10%"), "true true false false true false false");
    assert_eq!(row("AxB"), "false false false true true false true");
    assert_eq!(row("a_b"), "false false true true true false false");
    assert_eq!(row("axb"), "false false true true true false true");
    assert_eq!(like("a\nb", "a%b"), "true");
    assert_eq!(like("a\nb", "a_b"), "true");
    assert_eq!(like("naïve", "na_ve"), "true");
    assert_eq!(like("日本", "__"), "true");
    assert_eq!(like("ab", "a"), "false");
    assert_eq!(eval("ilike", &[str("É"), str("é")]), "true");
    assert_eq!(like(".x", ".%"), "true");
    assert_eq!(like("ax", ".%"), "false");
    assert_eq!(like("abcabd", "%ab_"), "true");
    assert_eq!(like("aXbXc", "a%b%c"), "true");
    assert_eq!(eval("like", &[str("a"), null()]), "NULL");
}

#[test]
fn like_with_escape() {
    let like = |s: &str, p: &str, e: &str| eval("like", &[str(s), str(p), str(e)]);
    assert_eq!(like("10%", "10!%", "!"), "true");
    assert_eq!(like("100", "10!%", "!"), "false");
    assert_eq!(like("a_b", "a/_b", "/"), "true");
    assert_eq!(like("axb", "a/_b", "/"), "false");
    assert_eq!(eval("ilike", &[str("a_b"), str("A/_B"), str("/")]), "true");
    assert_eq!(like("abc", "a!bc", "!"), "!INVALID_FORMAT.ESC_IN_THE_MIDDLE");
    assert_eq!(like("abc", "abc!", "!"), "!INVALID_FORMAT.ESC_AT_THE_END");
    assert_eq!(like("abc", "abc", "xy"), "!INVALID_ESC");
}

#[test]
fn rlike() {
    assert_eq!(eval("rlike", &[str("abc"), str("b+")]), "true");
    assert_eq!(eval("regexp_like", &[str("abc"), str("^b")]), "false");
    assert_eq!(eval("rlike", &[str("aXbX"), str("(X).*\\1")]), "true");
    assert_eq!(eval("rlike", &[str("abc"), str("(")]), "!INVALID_PARAMETER_VALUE.PATTERN");
}
