//! Values from Spark.

use ssql_ir::{DataType as T, Expr};

use crate::testing::*;

fn from(text: &str, schema: &str) -> String {
    eval("from_json", &[str(text), str(schema)])
}

fn option(pairs: &[&str]) -> Expr {
    expr("map", &pairs.iter().map(|p| str(p)).collect::<Vec<_>>())
}

#[test]
fn typed_values() {
    let all = "a INT, b STRING, c DOUBLE, d BOOLEAN";
    assert_eq!(from(r#"{"a": 1, "b": "x", "c": 2.5, "d": true}"#, all), "{1, x, 2.5, true}");
    assert_eq!(from(r#"{"b": "x", "extra": 9}"#, "a INT, b STRING"), "{null, x}");
    assert_eq!(from(r#"{"A": 1}"#, "a INT"), "{null}");
    let nested = "o STRUCT<p: ARRAY<INT>, q: MAP<STRING, STRING>>";
    assert_eq!(from(r#"{"o": {"p": [1, 2, null], "q": {"k": "v"}}}"#, nested), "{{[1, 2, null], {k -> v}}}");
    assert_eq!(from("[1, 2, 3]", "ARRAY<INT>"), "[1, 2, 3]");
    assert_eq!(from(r#"{"x": 1, "y": 2}"#, "MAP<STRING, INT>"), "{x -> 1, y -> 2}");
    assert_eq!(from(r#"[{"a": 1}, {"a": 2}]"#, "ARRAY<STRUCT<a: INT>>"), "[{1}, {2}]");
    assert_eq!(
        from(r#"{"t": "2024-03-09T04:05:06Z", "d": "2024-03-09", "n": 12.345}"#, "t TIMESTAMP, d DATE, n DECIMAL(6,2)"),
        "{2024-03-09 04:05:06, 2024-03-09, 12.35}"
    );
    assert_eq!(from(r#"{"b": "aGk="}"#, "b BINARY"), "{hi}");
    assert_eq!(from(r#"{"f": "NaN", "g": 1e3, "h": 1}"#, "f DOUBLE, g DOUBLE, h DOUBLE"), "{NaN, 1000.0, 1.0}");
    let pattern = option(&["timestampFormat", "dd/MM/yyyy HH:mm"]);
    let text = str(r#"{"t": "09/03/2024 10:00"}"#);
    assert_eq!(eval("from_json", &[text, str("t TIMESTAMP"), pattern]), "{2024-03-09 10:00:00}");
    assert_eq!(eval("from_json", &[str("{}"), int(1)]), "!INVALID_SCHEMA.NON_STRING_LITERAL");
    assert_eq!(from("{}", "a NOSUCH"), "!PARSE_SYNTAX_ERROR");
}

#[test]
fn texts_are_written_anew() {
    for (text, want) in [
        (r#"{"s": 12}"#, "{12}"),
        (r#"{"s": 1.50}"#, "{1.5}"),
        (r#"{"s": {"k": [1, 2]}}"#, r#"{{"k":[1,2]}}"#),
        (r#"{"s": true}"#, "{true}"),
        ("{\"s\": \"q\\\"t\\u00e9\"}", "{q\"té}"),
        ("{\"s\": \"\\ud83d\\ude00\"}", "{😀}"),
        (r#"{"a": 1, "s": "x", "s": "y"}"#, "{y}"),
        ("  {\"s\" : 1 }  ", "{1}"),
        ("{'s': 'x'}", "{x}"),
    ] {
        assert_eq!(from(text, "s STRING"), want);
    }
}

#[test]
fn records_that_do_not_fit() {
    for (text, plain, corrupt) in [
        (r#"{"a": 1, "b": 2}"#, "{1, 2}", "{1, 2, null}"),
        (r#"{"a": "one", "b": 2}"#, "{null, 2}", r#"{null, 2, {"a": "one", "b": 2}}"#),
        (r#"{"a": 1, "b": "#, "{null, null}", r#"{null, null, {"a": 1, "b": }"#),
        ("junk", "{null, null}", "{null, null, junk}"),
        ("", "NULL", "NULL"),
        ("[1]", "{null, null}", "{null, null, [1]}"),
        (r#"{"a": 1.0, "b": 99999999999}"#, "{null, null}", r#"{null, null, {"a": 1.0, "b": 99999999999}}"#),
        ("null", "{null, null}", "{null, null, null}"),
        (r#"{"a": 1} trailing"#, "{1, null}", "{1, null, null}"),
        (r#"{"a": 01}"#, "{null, null}", r#"{null, null, {"a": 01}}"#),
        ("{a: 1}", "{null, null}", "{null, null, {a: 1}}"),
    ] {
        assert_eq!(from(text, "a INT, b INT"), plain, "{text}");
        assert_eq!(from(text, "a INT, b INT, _corrupt_record STRING"), corrupt, "{text}");
    }
    let fail_fast = || option(&["mode", "FAILFAST"]);
    let strict = |text: &str| eval("from_json", &[str(text), str("a INT"), fail_fast()]);
    assert_eq!(strict("junk"), "!MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION");
    assert_eq!(strict(r#"{"a": "x"}"#), "!MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION");
    assert_eq!(strict(r#"{"a": 1}"#), "{1}");
    let dropping = option(&["mode", "DROPMALFORMED"]);
    assert_eq!(eval("from_json", &[str("junk"), str("a INT"), dropping]), "!PARSE_MODE_UNSUPPORTED");
    let named = option(&["columnNameOfCorruptRecord", "oops"]);
    assert_eq!(eval("from_json", &[str("junk"), str("a INT, oops STRING"), named]), "{null, junk}");
    assert_eq!(from(r#"{"geo": {"lat": "north"}}"#, "geo STRUCT<lat: DOUBLE, lon: DOUBLE>"), "{{null, null}}");
    assert_eq!(from(r#"{"x": [1, "y"], "z": 1}"#, "x ARRAY<INT>, z INT"), "{null, 1}");
    assert_eq!(from(r#"[{"a": 1, "b": "q"}, {"a": 2}]"#, "ARRAY<STRUCT<a: INT, b: INT>>"), "[{1, null}, {2, null}]");
    assert_eq!(from(r#"[1, "x"]"#, "ARRAY<INT>"), "NULL");
    assert_eq!(from(r#"{"x": 1, "y": "z"}"#, "MAP<STRING, INT>"), "NULL");
    assert_eq!(from(&"[".repeat(100_000), "ARRAY<INT>"), "NULL");
}

#[test]
fn writing() {
    let named = |args: &[Expr]| eval("to_json", &[expr("named_struct", args)]);
    assert_eq!(
        named(&[str("a"), int(1), str("b"), str("x\"y"), str("c"), null(), str("d"), boolean(true)]),
        r#"{"a":1,"b":"x\"y","d":true}"#
    );
    assert_eq!(eval("to_json", &[expr("map", &[str("k"), int(1), str("l"), null()])]), r#"{"k":1,"l":null}"#);
    assert_eq!(eval("to_json", &[expr("map", &[int(1), str("a")])]), r#"{"1":"a"}"#);
    assert_eq!(eval("to_json", &[expr("array", &[int(1), null(), int(2)])]), "[1,null,2]");
    assert_eq!(eval("to_json", &[null()]), "NULL");
    assert_eq!(
        named(&[str("t"), timestamp("2024-03-09 04:05:06.5"), str("d"), date("2024-03-09")]),
        r#"{"t":"2024-03-09T04:05:06.500Z","d":"2024-03-09"}"#
    );
    assert_eq!(
        named(&[str("f"), double(1.0), str("g"), decimal("1.50"), str("h"), double(1e20), str("i"), double(f64::NAN)]),
        r#"{"f":1.0,"g":1.50,"h":1.0E20,"i":"NaN"}"#
    );
    assert_eq!(named(&[str("b"), binary(b"hi"), str("s"), str("tab\tnl\n")]), r#"{"b":"aGk=","s":"tab\tnl\n"}"#);
    let null_field = expr("named_struct", &[str("a"), null_of(T::Int32)]);
    assert_eq!(eval("to_json", &[null_field, option(&["ignoreNullFields", "false"])]), r#"{"a":null}"#);
    assert_eq!(eval("to_json", &[int(1)]), "!DATATYPE_MISMATCH.INVALID_JSON_SCHEMA");
}

#[test]
fn paths() {
    let get = |text: &str, path: &str| eval("get_json_object", &[str(text), str(path)]);
    let one = r#"{"a": {"b": [1, {"c": "x"}, null]}, "n": null, "s": "q&t", "d e": 5}"#;
    for (path, want) in [
        ("$.a.b[0]", "1"),
        ("$.a.b[1].c", "x"),
        ("$.a", r#"{"b":[1,{"c":"x"},null]}"#),
        ("$.n", "NULL"),
        ("$.missing", "NULL"),
        ("$.s", "q&t"),
        ("$.a.b[*]", r#"[1,{"c":"x"},null]"#),
        ("$.a.b[9]", "NULL"),
        ("$['d e']", "5"),
        ("a.b", "NULL"),
    ] {
        assert_eq!(get(one, path), want, "{path}");
    }
    let two = r#"[{"k": 1}, {"k": 2}]"#;
    assert_eq!(get(two, "$[1].k"), "2");
    assert_eq!(get(two, "$[*].k"), "[1,2]");
    assert_eq!(get(two, "$"), r#"[{"k":1},{"k":2}]"#);
    assert_eq!(get("broken {", "$"), "NULL");
    assert_eq!(get(r#"{"a": 1.50}"#, "$.a"), "1.5");
    assert_eq!(get(r#"{"e": ""}"#, "$.e"), "");
    assert_eq!(get("7", "$"), "7");
    assert_eq!(get(r#"{"a": 1}"#, "$.*"), "NULL");
    assert_eq!(get("[[1,2],[3]]", "$[*][*]"), "[1,2,3]");
    assert_eq!(get(r#"[{"k": "x"}]"#, "$[*].k"), "\"x\"");
    assert_eq!(eval("json_array_length", &[str("[1, [2, 3], null]")]), "3");
    assert_eq!(eval("json_array_length", &[str("{}")]), "NULL");
    assert_eq!(eval("json_object_keys", &[str(r#"{"b": 1, "a": {"c": 2}}"#)]), "[b, a]");
    assert_eq!(eval("json_object_keys", &[str("[1]")]), "NULL");
    assert_eq!(eval("json_object_keys", &[str("{}")]), "[]");
}

#[test]
fn schemas() {
    let schema = |text: &str| eval("schema_of_json", &[str(text)]);
    assert_eq!(
        schema(r#"{"b": 1, "a": [1.5, 2], "c": {"d": "x", "e": null}}"#),
        "STRUCT<a: ARRAY<DOUBLE>, b: BIGINT, c: STRUCT<d: STRING, e: STRING>>"
    );
    assert_eq!(schema(r#"[{"x": 1}, {"y": "s"}]"#), "ARRAY<STRUCT<x: BIGINT, y: STRING>>");
    assert_eq!(schema("12345678901"), "BIGINT");
    assert_eq!(schema(r#"{"a": [1, "s"]}"#), "STRUCT<a: ARRAY<STRING>>");
    assert_eq!(eval("schema_of_json", &[expr("upper", &[str("{}")])]), "!DATATYPE_MISMATCH.NON_FOLDABLE_INPUT");
}
