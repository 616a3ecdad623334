//! The streaming check: each rule's example is refused with the rule's condition.

use super::Session;
use crate::check::RULES;

#[test]
fn every_example_of_the_table_is_refused_by_its_rule() {
    let s = Session::of(&[
        "CREATE STREAM s (ts TIMESTAMP, k STRING, d INT, v INT) USING memory",
        "CREATE STREAM l (k INT, lt TIMESTAMP, lv INT, WATERMARK FOR lt DELAY OF INTERVAL 0 SECONDS) USING memory",
        "CREATE STREAM r (k INT, rt TIMESTAMP, rv INT, WATERMARK FOR rt DELAY OF INTERVAL 0 SECONDS) USING memory",
        "CREATE STREAM a (k INT, ta TIMESTAMP, WATERMARK FOR ta DELAY OF INTERVAL 0 SECONDS) USING memory",
        "CREATE STREAM b (k INT, tb TIMESTAMP, WATERMARK FOR tb DELAY OF INTERVAL 0 SECONDS) USING memory",
        "CREATE VIEW ab AS SELECT a.k AS k, ta, tb FROM a JOIN b ON a.k = b.k",
        "CREATE TABLE d (k STRING, v INT, n INT)",
    ]);
    for rule in RULES {
        assert!(
            s.conditions(rule.example).iter().any(|c| c == rule.condition),
            "{}: {:?}",
            rule.name,
            s.conditions(rule.example)
        );
    }
}

#[test]
fn subqueries_in_expressions_may_not_read_a_stream() {
    let s = Session::of(&[
        "CREATE STREAM s (k STRING, v INT) USING memory",
        "CREATE STREAM s2 (k STRING, v INT) USING memory",
        "CREATE TABLE d (k STRING, v INT)",
    ]);
    for where_ in
        ["k IN (SELECT k FROM s2)", "EXISTS (SELECT 1 FROM s2 WHERE s2.k = s.k)", "v = (SELECT max(v) FROM s2)"]
    {
        assert_eq!(
            s.conditions(&format!("SELECT k FROM s WHERE {where_} EMIT APPEND")),
            ["INVALID_SUBQUERY_EXPRESSION.STREAMING_QUERY"]
        );
    }
    s.stream("SELECT k FROM s WHERE k IN (SELECT k FROM d) AND v >= (SELECT max(v) FROM d) EMIT APPEND");
}

#[test]
fn arguments_of_windows_are_checked() {
    let s = Session::of(&["CREATE STREAM s (ts TIMESTAMP, n BIGINT) USING memory"]);
    let condition = |window: &str| s.conditions(&format!("SELECT count(*) FROM s GROUP BY {window} EMIT COMPLETE"));
    assert_eq!(
        condition("HOP(ts, INTERVAL 10 MINUTES, INTERVAL 5 MINUTES)"),
        ["DATATYPE_MISMATCH.PARAMETER_CONSTRAINT_VIOLATION"]
    );
    assert_eq!(condition("TUMBLE(ts, '-5 minutes')"), ["DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE"]);
    assert_eq!(condition("TUMBLE(n, INTERVAL 1 MINUTE)"), ["DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE"]);
    assert_eq!(condition("TUMBLE(ts, 'soon')"), ["CANNOT_PARSE_INTERVAL"]);
    assert_eq!(
        condition("TUMBLE(ts, INTERVAL 5 MINUTES, INTERVAL 5 MINUTES)"),
        ["DATATYPE_MISMATCH.PARAMETER_CONSTRAINT_VIOLATION"]
    );
}

#[test]
fn unbounded_state_is_a_warning_or_by_setting_an_error() {
    let mut s = Session::of(&["CREATE STREAM s (k STRING) USING memory"]);
    let q = s.stream("SELECT DISTINCT k FROM s EMIT APPEND");
    assert_eq!(q.warnings.len(), 1);
    s.run("SET deny.unbounded.state = true");
    assert_eq!(s.conditions("SELECT DISTINCT k FROM s EMIT APPEND"), ["UNBOUNDED_STATE"]);
}
