//! Spark's answers, laws on random records, and hostile input.

use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use jiff::tz::TimeZone;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use super::{JsonDecoder, JsonOptions, JsonWriter};
use crate::decode::{BadRecord, Decoder, batch, batch_schema};
use crate::testing::{options, printed, schema};

/// Reads lines, in one buffer, into batches.
fn try_read(ddl: &str, bytes: &[u8], pairs: &[(&str, &str)]) -> Result<Vec<RecordBatch>, BadRecord> {
    let fields = schema(ddl).fields;
    let options = JsonOptions::new(&options(pairs), &TimeZone::UTC).expect("good options");
    let mut decoder = JsonDecoder::new(&fields, options).expect("good columns");
    let buffer = Buffer::from(bytes);
    let (mut at, mut batches) = (0, Vec::new());
    loop {
        at = decoder.decode(&buffer, at..buffer.len())?;
        let decoded = decoder.take();
        let read = batch(&batch_schema(&fields), decoded.columns, decoded.rows);
        for column in read.columns() {
            arrow::array::Array::to_data(column).validate_full().expect("a well-formed array");
        }
        batches.push(read);
        if at >= buffer.len() {
            return Ok(batches);
        }
    }
}

fn read(ddl: &str, lines: &[&str]) -> Vec<String> {
    printed(&try_read(ddl, lines.join("\n").as_bytes(), &[]).expect("PERMISSIVE never fails"))
}

/// Reads each line with a corrupt-record column; `!` at the end marks a bad record.
#[track_caller]
fn check(ddl: &str, cases: &[(&str, &str)]) {
    let ddl = format!("{ddl}, _corrupt_record STRING");
    for (line, expected) in cases {
        let rows: Vec<String> = read(&ddl, &[line])
            .into_iter()
            .map(|row| match row.strip_suffix("|NULL") {
                Some(good) => good.to_string(),
                None => {
                    let bad = row.strip_suffix(line).unwrap_or_else(|| panic!("{row} should end with {line}"));
                    format!("{}!", bad.strip_suffix('|').expect("a separator"))
                }
            })
            .collect();
        assert_eq!(rows.join(" / "), *expected, "reading {line}");
    }
}

#[test]
fn integers_are_read_as_in_spark() {
    check(
        "a TINYINT, b SMALLINT, c INT, d BIGINT",
        &[
            (r#"{"a":200,"b":40000,"c":1,"d":1}"#, "-56|NULL|1|1!"),
            (r#"{"a":127,"b":1,"c":2147483648,"d":9223372036854775808}"#, "127|1|NULL|NULL!"),
            (r#"{"a":1.0,"b":1e2,"c":"5","d":true}"#, "NULL|NULL|NULL|NULL!"),
            (r#"{"a":-0,"c":-0}"#, "0|NULL|0|NULL"),
            (r#"{"d":-9223372036854775808}"#, "NULL|NULL|NULL|-9223372036854775808"),
            (r#"{"c":""}"#, "NULL|NULL|NULL|NULL!"),
            (r#"{"c":null}"#, "NULL|NULL|NULL|NULL"),
        ],
    );
}

#[test]
fn a_record_that_is_not_json_is_lost_as_a_whole() {
    for line in [
        r#"{"b":2,"a": 01}"#,
        r#"{"b":2,"a": x}"#,
        r#"{"b":2,"a": tru}"#,
        r#"{"b":2,"a": 1"#,
        r#"{"b":2,"a": "#,
        r#"{"b":2"#,
        r#"{"b":2,"#,
        r#"{"b":2,}"#,
        r#"{"b":2 "a":3}"#,
        r#"{"b":2,"zz": 01}"#,
        r#"{"b":2,"zz": x, "a":1}"#,
        r#"{"b":2,"a":+1}"#,
        r#"{"b":2,"a":.5}"#,
        r#"{"b":2,"a":1.}"#,
        r#"{"b":2,"a":-}"#,
        r#"{"b":1abc,"a":3}"#,
        r#"{"b":2,"a":[1}"#,
        r#"{"b" 2}"#,
        r#"{"b":,"a":1}"#,
        "null",
        "[1]",
        "[null]",
        "5",
        "\"s\"",
        "true",
        r#"[[{"a":1}]]"#,
        r#"[{"a":1}"#,
        "{a:1}",
        "{\"a\":\"x\ty\"}",
        r#"{"a":"\x"}"#,
        r#"{"a":"\u12"}"#,
        "/*c*/{\"a\":1}",
        r#"{"zz":"unclosed"#,
    ] {
        check("a INT, b INT", &[(line, "NULL|NULL!")]);
    }
}

#[test]
fn what_follows_the_object_does_not_matter() {
    check(
        "a INT, b INT",
        &[
            (r#"{"b":2}}"#, "NULL|2"),
            (r#"{"b":2}{"b":3}"#, "NULL|2"),
            (r#"{"b":2} ,"#, "NULL|2"),
            (r#"  {"a" : 1 , "b":2 }  "#, "1|2"),
            (r#"{"b":2,"a":[1]}"#, "NULL|2!"),
            (r#"{"b":2,"a":{"q":1}}"#, "NULL|2!"),
            ("{}", "NULL|NULL"),
            (r#"{"a":1,"a":2,"b":0}"#, "2|0"),
            (r#"{"A":1}"#, "NULL|NULL"),
            ("", ""),
            ("  \t", ""),
        ],
    );
}

#[test]
fn an_array_of_objects_is_a_row_each() {
    check("a INT", &[("[]", ""), (r#"[{"a":1}, {"a":2}]"#, "1 / 2"), (r#"[{"a":1},{"a":"x"}]"#, "1! / NULL!")]);
}

#[test]
fn lines_end_with_any_line_end() {
    let rows = read("a INT", &["{\"a\":1}\r{\"a\":2}\r\n\r\n{\"a\":3}\r\n", "{\"a\":", "{\"a\":4}"]);
    assert_eq!(rows, ["1", "2", "3", "NULL", "4"]);
}

#[test]
fn strings_take_escapes_and_other_values_as_they_are_written() {
    check(
        "a STRING, b STRING",
        &[
            (r#"{'a':'x',"b":"y"}"#, "x|y"),
            (r#"{"a":"\u00e9\ud83d\ude00"}"#, "é😀|NULL"),
            (r#"{"a":"\ud83d"}"#, "?|NULL"),
            (r#"{"a":"\ude00x"}"#, "?x|NULL"),
            (r#"{"\u0061":"esc-key"}"#, "esc-key|NULL"),
            (
                r#"{"a":"a long text that is not held in its view","b":"with \"escapes\" in a long one"}"#,
                r#"a long text that is not held in its view|with "escapes" in a long one"#,
            ),
            (r#"{"a":1.50,"b":12345678901234567890123}"#, "1.50|12345678901234567890123"),
            (
                r#"{"a":[1, 2.50 ,"x\u00e9\n"],"b":{"k" : [1, {"z":null}], "k":2}}"#,
                r#"[1, 2.50 ,"x\u00e9\n"]|{"k" : [1, {"z":null}], "k":2}"#,
            ),
            (r#"{"a":true,"b":NaN}"#, "true|NaN"),
            (r#"{"a":null,"b":""}"#, "NULL|"),
        ],
    );
    let rows = read("a STRING", &[r#"{"a":"\/\\\b\f\n\r\t"}"#]);
    assert_eq!(rows, ["/\\\u{8}\u{c}\n\r\t"]);
}

#[test]
fn text_that_is_not_utf8_makes_a_record_bad() {
    let bytes = b"{\"a\":\"\xff\xfe\",\"b\":\"k\"}\n{\"zz\":\"\xc3\x28\",\"b\":\"k\"}\n{\"b\":\"k\"}\n";
    let rows = printed(&try_read("a STRING, b STRING", bytes, &[]).expect("PERMISSIVE"));
    assert_eq!(rows, ["NULL|NULL", "NULL|NULL", "NULL|k"]);
}

#[test]
fn floats_take_words_as_in_spark() {
    check(
        "a FLOAT, b DOUBLE",
        &[
            (r#"{"a":"NaN","b":"Infinity"}"#, "NaN|Infinity"),
            (r#"{"a":"INF","b":"+INF"}"#, "NULL|Infinity!"),
            (r#"{"a":"-INF","b":"-Infinity"}"#, "-Infinity|-Infinity"),
            (r#"{"a":NaN,"b":-INF}"#, "NaN|-Infinity"),
            (r#"{"a":INF,"b":1}"#, "NULL|NULL!"),
            (r#"{"a":1e40,"b":1e400}"#, "Infinity|Infinity"),
            (r#"{"a":"1.5","b":true}"#, "NULL|NULL!"),
            (r#"{"a":16777217,"b":9007199254740993}"#, "1.6777216E7|9.007199254740992E15"),
            (r#"{"b":123456789012345678901234567890}"#, "NULL|1.2345678901234568E29"),
            (r#"{"b":21.5}"#, "NULL|21.5"),
            (r#"{"b":-0.1}"#, "NULL|-0.1"),
        ],
    );
}

#[test]
fn decimals_are_rounded_and_bounded() {
    check(
        "a DECIMAL(5,2)",
        &[
            (r#"{"a":1.005}"#, "1.01"),
            (r#"{"a":12.3}"#, "12.30"),
            (r#"{"a":999.995}"#, "NULL!"),
            (r#"{"a":1000}"#, "NULL!"),
            (r#"{"a":"1.5"}"#, "1.50"),
            (r#"{"a":" 1.5 "}"#, "NULL!"),
            (r#"{"a":"1,00.5"}"#, "100.50"),
            (r#"{"a":1e2}"#, "100.00"),
            (r#"{"a":-0.004}"#, "0.00"),
            (r#"{"a":true}"#, "NULL!"),
        ],
    );
}

#[test]
fn times_are_read_as_in_spark() {
    check(
        "t TIMESTAMP, d DATE, n TIMESTAMP_NTZ",
        &[
            (
                r#"{"t":"2024-01-15T10:30:00.123Z","d":"2024-01-15","n":"2024-01-15T10:30:00"}"#,
                "2024-01-15 10:30:00.123|2024-01-15|2024-01-15 10:30:00",
            ),
            (
                r#"{"t":"2024-01-15 10:30:00","d":"2024-1-5","n":"2024-01-15 10:30:00.5"}"#,
                "2024-01-15 10:30:00|2024-01-05|2024-01-15 10:30:00.5",
            ),
            (
                r#"{"t":"2024-01-15T10:30:00.123456789+02:00","d":"2024-01-15T10:00:00","n":"2024-01-15T10:30:00Z"}"#,
                "2024-01-15 08:30:00.123456|2024-01-15|NULL!",
            ),
            (r#"{"t":1700000000,"d":19000,"n":5}"#, "2023-11-14 22:13:20|NULL|NULL!"),
            (r#"{"t":1.5}"#, "NULL|NULL|NULL!"),
            (r#"{"t":"2024-01-15","d":"2024"}"#, "2024-01-15 00:00:00|2024-01-01|NULL"),
            (r#"{"t":"x","d":"x","n":"x"}"#, "NULL|NULL|NULL!"),
            (r#"{"t":" 2024-01-15 10:30:00 "}"#, "2024-01-15 10:30:00|NULL|NULL"),
            (r#"{"t":"2024-02-30"}"#, "NULL|NULL|NULL!"),
            (r#"{"t":"2024-02-30T00:00:00Z"}"#, "NULL|NULL|NULL!"),
            (r#"{"t":"2024-01-15T24:00:00Z"}"#, "NULL|NULL|NULL!"),
            (r#"{"t":"2024-01-15T10:30:60Z"}"#, "NULL|NULL|NULL!"),
            (r#"{"t":"epoch"}"#, "NULL|NULL|NULL!"),
            (r#"{"t":-1,"d":"2024-01-15 junk"}"#, "1969-12-31 23:59:59|2024-01-15|NULL"),
            (r#"{"t":"2024-01-15T10:30:00."}"#, "2024-01-15 10:30:00|NULL|NULL"),
        ],
    );
}

#[test]
fn patterns_replace_the_default_reading() {
    let pairs = [("timestampFormat", "dd/MM/yyyy HH:mm"), ("dateFormat", "dd.MM.yyyy")];
    let lines = b"{\"t\":\"15/01/2024 10:30\",\"d\":\"15.01.2024\"}\n{\"t\":\"2024-01-15 10:30:00\",\"d\":\"2024-01-15\"}\n{\"t\":5}";
    let rows = printed(&try_read("t TIMESTAMP, d DATE", lines, &pairs).expect("PERMISSIVE"));
    assert_eq!(rows, ["2024-01-15 10:30:00|2024-01-15", "NULL|NULL", "1970-01-01 00:00:05|NULL"]);
}

#[test]
fn nested_values_keep_what_spark_keeps() {
    check(
        "a ARRAY<INT>, m MAP<STRING,INT>, s STRUCT<x: INT, y: ARRAY<STRUCT<z: INT>>>",
        &[
            (r#"{"a":[1,2,null]}"#, "[1, 2, null]|NULL|NULL"),
            (r#"{"a":[ ],"m":{ }, "s": { }}"#, "[]|{}|{null, null}"),
            (r#"{"a":[1,"x"],"m":{"k":1}}"#, "NULL|{k -> 1}|NULL!"),
            (r#"{"m":{"k":"v","j":1}}"#, "NULL|NULL|NULL!"),
            (r#"{"m":{"k":1,"k":2}}"#, "NULL|{k -> 1, k -> 2}|NULL"),
            (r#"{"s":{"x":"q","y":[{"z":1}]}}"#, "NULL|NULL|{null, [{1}]}!"),
            (r#"{"s":{"x":1,"y":[{"z":"q"},{"z":2}]}}"#, "NULL|NULL|{1, [{null}, {2}]}!"),
            (r#"{"s":{"x":1,"y":[{"z":"q"},5]}}"#, "NULL|NULL|{1, null}!"),
            (r#"{"s":{"x":1,"y":[5]}}"#, "NULL|NULL|{1, null}!"),
            (r#"{"a":5,"m":5,"s":5}"#, "NULL|NULL|NULL!"),
            (r#"{"s":{"x":1,"x":2}}"#, "NULL|NULL|{2, null}"),
            (r#"{"a":[1,[2]]}"#, "NULL|NULL|NULL!"),
            (r#"{"m":{"k":null}}"#, "NULL|{k -> null}|NULL"),
            (r#"{"s":{"x":1,"y":[{"z":01}]}}"#, "NULL|NULL|NULL!"),
            (r#"{"a":[1 2]}"#, "NULL|NULL|NULL!"),
            (r#"{"s":[{"x":1}]}"#, "NULL|NULL|NULL!"),
            (r#"{"a":[1],"a":[2,3]}"#, "[2, 3]|NULL|NULL"),
        ],
    );
}

#[test]
fn other_types_are_read_from_text() {
    check(
        "b BOOLEAN, x BINARY, i INTERVAL DAY TO SECOND, y INTERVAL YEAR TO MONTH",
        &[
            (r#"{"b":true,"x":"aGk="}"#, "true|hi|NULL|NULL"),
            (r#"{"b":"true","x":"aGk"}"#, "NULL|NULL|NULL|NULL!"),
            (r#"{"x":"!!!!"}"#, "NULL|NULL|NULL|NULL!"),
            (r#"{"x":""}"#, "NULL||NULL|NULL"),
        ],
    );
}

#[test]
fn modes_drop_or_fail() {
    let lines = b"{\"a\":1}\n{\"a\":\"x\"}\n{\"a\":\njunk\nnull\n[]\n{\"a\":2}\n";
    let rows = printed(&try_read("a INT", lines, &[("mode", "DROPMALFORMED")]).expect("nothing fails"));
    assert_eq!(rows, ["1", "2"]);
    let bad = try_read("a INT", lines, &[("mode", "FAILFAST")]).expect_err("the second line is bad");
    assert_eq!(bad.start, 8);
    assert!(bad.reason.contains(r#"{"a":"x"}"#), "{}", bad.reason);
    assert!(JsonOptions::new(&options(&[("mode", "FOO")]), &TimeZone::UTC).is_err());
}

#[test]
fn nesting_and_numbers_are_bounded() {
    let nested = |depth: usize| format!(r#"{{"zz":{}{},"a":"1"}}"#, "[".repeat(depth), "]".repeat(depth));
    assert_eq!(read("a STRING", &[&nested(900)]), ["1"]);
    assert_eq!(read("a STRING", &[&nested(1_000_000)]), ["NULL"]);
    let number = |digits: usize| format!(r#"{{"a":{}}}"#, "1".repeat(digits));
    assert_eq!(read("a DOUBLE", &[&number(999)]), ["Infinity"]);
    assert_eq!(read("a DOUBLE", &[&number(1001)]), ["NULL"]);
}

#[test]
fn more_names_than_are_remembered_are_still_skipped() {
    let members: Vec<String> = (0..3000).map(|i| format!("\"n{i}\":{i}")).collect();
    let line = format!("{{{},\"a\":7}}", members.join(","));
    assert_eq!(read("a INT", &[&line, &line, r#"{"a":8}"#]), ["7", "7", "8"]);
}

#[test]
fn relaxed_dialects_are_taken_on_request() {
    let line = b"{a: 007, /* c */ 'b': 'x\\y'} // end";
    let all = [
        ("allowUnquotedFieldNames", "true"),
        ("allowComments", "true"),
        ("allowNumericLeadingZeros", "true"),
        ("allowBackslashEscapingAnyCharacter", "true"),
    ];
    assert_eq!(printed(&try_read("a INT, b STRING", line, &all).expect("PERMISSIVE")), ["7|xy"]);
    let many = b"[{\"a\":1},\n{\"a\":2}]\n";
    assert_eq!(printed(&try_read("a INT", many, &[("multiLine", "true")]).expect("PERMISSIVE")), ["1", "2"]);
}

/// A random JSON value; `depth` bounds its nesting.
fn random_value(rng: &mut StdRng, depth: u32) -> Value {
    match rng.random_range(0..if depth == 0 { 6 } else { 8 }) {
        0 => Value::Null,
        1 => json!(rng.random::<bool>()),
        2 => json!(rng.random::<i64>() >> rng.random_range(0..64)),
        3 => json!((rng.random::<f64>() - 0.5) * 10f64.powi(rng.random_range(-20..20))),
        4 | 5 => json!(random_text(rng)),
        6 => Value::Array((0..rng.random_range(0..4)).map(|_| random_value(rng, depth - 1)).collect()),
        _ => Value::Object(
            (0..rng.random_range(0..4)).map(|_| (random_text(rng), random_value(rng, depth - 1))).collect(),
        ),
    }
}

fn random_text(rng: &mut StdRng) -> String {
    const CHARS: [char; 12] = ['a', 'Z', '0', ' ', '"', '\\', '\n', '\t', '\u{1}', 'é', '漢', '😀'];
    (0..rng.random_range(0..24)).map(|_| CHARS[rng.random_range(0..CHARS.len())]).collect()
}

/// What a column of that type holds for a JSON value, printed; `None` for a bad value.
fn expected(kind: &str, value: Option<&Value>, written: &str) -> Option<String> {
    let text = match (kind, value) {
        (_, None | Some(Value::Null)) => "NULL".to_string(),
        ("STRING", Some(Value::String(s))) => s.clone(),
        ("STRING", Some(_)) => written.to_string(),
        ("BIGINT", Some(Value::Number(n))) if n.is_i64() => n.to_string(),
        ("DOUBLE", Some(Value::Number(n))) => {
            let mut out = String::new();
            ssql_stdlib::text::write_double(n.as_f64().expect("no arbitrary precision"), &mut out);
            out
        }
        ("BOOLEAN", Some(Value::Bool(b))) => b.to_string(),
        _ => return None,
    };
    Some(text)
}

fn seed() -> u64 {
    let seed = std::env::var("SSQL_TEST_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(20_240_115);
    eprintln!("seed {seed}");
    seed
}

#[test]
fn random_records_agree_with_serde_json() {
    const KINDS: [(&str, &str); 4] = [("s", "STRING"), ("l", "BIGINT"), ("d", "DOUBLE"), ("b", "BOOLEAN")];
    let mut rng = StdRng::seed_from_u64(seed());
    let (mut lines, mut rows) = (String::new(), Vec::new());
    for _ in 0..3000 {
        // Members in any order, some missing, some unknown, some twice; blanks at random.
        let blank = |rng: &mut StdRng| " \t".repeat(usize::from(rng.random_range(0..8) == 0));
        let mut last: std::collections::HashMap<&str, Option<String>> = std::collections::HashMap::new();
        let mut members = Vec::new();
        for _ in 0..rng.random_range(0..7) {
            let (name, kind) = KINDS.get(rng.random_range(0..5)).copied().unwrap_or(("unknown", ""));
            let value = random_value(&mut rng, 2);
            let written = value.to_string();
            last.insert(name, expected(kind, Some(&value), &written));
            let name = if rng.random_range(0..9) == 0 {
                format!("\\u{:04x}{}", name.as_bytes()[0], &name[1..])
            } else {
                name.to_string()
            };
            members.push(format!(
                "{}\"{name}\"{}:{}{written}{}",
                blank(&mut rng),
                blank(&mut rng),
                blank(&mut rng),
                blank(&mut rng)
            ));
        }
        lines.push_str(&format!("{}{{{}}}{}\n", blank(&mut rng), members.join(","), blank(&mut rng)));
        let row: Vec<String> = KINDS
            .iter()
            .map(|(name, _)| last.get(name).cloned().unwrap_or(Some("NULL".to_string())).unwrap_or("NULL".to_string()))
            .collect();
        rows.push(row.join("|"));
    }
    let read =
        printed(&try_read("s STRING, l BIGINT, d DOUBLE, b BOOLEAN", lines.as_bytes(), &[]).expect("PERMISSIVE"));
    assert_eq!(read.len(), rows.len());
    for (read, (row, line)) in read.iter().zip(rows.iter().zip(lines.lines())) {
        assert_eq!(read, row, "reading {line}");
    }
}

#[test]
fn what_is_written_is_read_back() {
    let ddl = "s STRING, l BIGINT, d DOUBLE, b BOOLEAN, t TIMESTAMP, e DATE, c DECIMAL(10,3), x BINARY, \
               a ARRAY<STRUCT<k: STRING, v: DOUBLE>>, m MAP<STRING, ARRAY<INT>>";
    let mut rng = StdRng::seed_from_u64(seed());
    let mut lines = String::new();
    for _ in 0..500 {
        let maybe = |rng: &mut StdRng, v: Value| if rng.random_range(0..5) == 0 { Value::Null } else { v };
        let structs: Vec<Value> = (0..rng.random_range(0..3))
            .map(|_| json!({"k": random_text(&mut rng), "v": rng.random::<f64>()}))
            .collect();
        let ints: Vec<i32> = (0..rng.random_range(0..3)).map(|_| rng.random()).collect();
        let texts = [random_text(&mut rng), random_text(&mut rng)];
        let row = json!({
            "s": maybe(&mut rng, json!(texts[0])), "l": rng.random::<i64>(), "d": rng.random::<f64>() * 1e9, "b": rng.random::<bool>(),
            "t": maybe(&mut rng, json!("2024-02-29T23:59:59.999Z")), "e": "1582-10-15", "c": -1234567.891, "x": "aGk=",
            "a": maybe(&mut rng, json!(structs)), "m": maybe(&mut rng, json!({texts[1].clone(): ints})),
        });
        lines.push_str(&format!("{row}\n"));
    }
    let first = try_read(ddl, lines.as_bytes(), &[("mode", "FAILFAST")]).expect("all is good");
    let mut text = String::new();
    first.iter().for_each(|b| JsonWriter::new(TimeZone::UTC, true).write(b, &mut text));
    text.lines().for_each(|line| drop(serde_json::from_str::<Value>(line).expect("what is written is JSON")));
    let second = try_read(ddl, text.as_bytes(), &[("mode", "FAILFAST")]).expect("all is good");
    assert_eq!(printed(&first), printed(&second));
}

#[test]
fn torn_and_changed_bytes_never_panic() {
    let good =
        br#"{"s":"text \u00e9","l":12,"d":1.5e3,"t":"2024-01-15T10:30:00Z","a":[1,{"k":"v"}],"m":{"x":[true,null]}}
{"a":["q"],"s":"another, rather longer text","l":-1,"d":"NaN","t":5,"m":{}}
"#;
    let ddl = "s STRING, l BIGINT, d DOUBLE, t TIMESTAMP, a ARRAY<STRING>, m MAP<STRING, ARRAY<BOOLEAN>>, _corrupt_record STRING";
    for end in 0..good.len() {
        try_read(ddl, &good[..end], &[]).expect("PERMISSIVE never fails");
    }
    let mut rng = StdRng::seed_from_u64(seed());
    for _ in 0..20_000 {
        let mut bytes = good.to_vec();
        for _ in 0..rng.random_range(1..6) {
            let at = rng.random_range(0..bytes.len());
            match rng.random_range(0..3) {
                0 => bytes[at] = rng.random(),
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, b"\"\\{}[],:0-n\n\r"[rng.random_range(0..13)]),
            }
        }
        let records = try_read(ddl, &bytes, &[]).expect("PERMISSIVE never fails");
        drop(printed(&records));
    }
}

#[test]
fn a_lone_record_may_span_lines() {
    let fields = schema("a INT").fields;
    let mut decoder = JsonDecoder::new(&fields, JsonOptions::new(&options(&[]), &TimeZone::UTC).expect("defaults"))
        .expect("one column");
    let fetched = Buffer::from(&b"xx{\n \"a\": 1\n}yy{\"a\":2}"[..]);
    decoder.decode_record(&fetched, 2..13).expect("good");
    decoder.decode_record(&fetched, 15..22).expect("good");
    let decoded = decoder.take();
    assert_eq!(printed(&[batch(&batch_schema(&fields), decoded.columns, decoded.rows)]), ["1", "2"]);
}
