//! Batch queries: names, grouping, subqueries, set operations.

use super::{Session, operators};
use crate::Planned;

fn tables() -> Session {
    Session::of(&[
        "CREATE TABLE t1 (id INT, v INT)",
        "CREATE TABLE t2 (id INT, v INT)",
        "CREATE TABLE sales (region STRING, item STRING, qty INT, price DECIMAL(6,2))",
        "CREATE TABLE p (k INT, s STRUCT<x: INT, y: STRUCT<z: STRING>>)",
        "CREATE FUNCTION to_celsius(f DOUBLE) RETURNS DOUBLE RETURN (f - 32) * 5 / 9",
    ])
}

#[test]
fn names_are_resolved_with_qualifiers_fields_and_aliases() {
    let s = tables();
    s.batch("SELECT P.K, s.x, p.s.y.z, s.* FROM p");
    s.batch("SELECT id * 2 AS d, d + 1 AS e FROM t1 WHERE T1.ID > 1");
    s.batch("SELECT * EXCEPT (v) FROM t1");
    s.batch("SELECT id, v FROM t1 JOIN t2 USING (id, v)");
    s.batch("SELECT to_celsius(id) FROM t1");
    assert_eq!(s.conditions("SELECT id FROM t1 JOIN t2 ON t1.id = t2.id"), ["AMBIGUOUS_REFERENCE"]);
    assert_eq!(s.conditions("SELECT s.nope FROM p"), ["FIELD_NOT_FOUND"]);
    assert_eq!(s.conditions("SELECT k.x FROM p"), ["INVALID_EXTRACT_BASE_FIELD_TYPE"]);
    assert_eq!(s.conditions("SELECT zz.* FROM p"), ["CANNOT_RESOLVE_STAR_EXPAND"]);
    assert_eq!(s.conditions("SELECT id AS a, v AS a, a + 1 FROM t1"), ["AMBIGUOUS_LATERAL_COLUMN_ALIAS"]);
}

#[test]
fn grouping_takes_ordinals_aliases_all_and_sets() {
    let s = tables();
    s.batch("SELECT item, region, sum(qty) FROM sales GROUP BY 1, 2");
    s.batch("SELECT qty % 2 = 0 AS even, count(*) FROM sales GROUP BY even");
    s.batch("SELECT region, item, count(*) AS n FROM sales GROUP BY ALL HAVING n > 1 OR region IS NULL");
    let rollup = s.batch("SELECT region, sum(qty) FROM sales GROUP BY ROLLUP (region, item)");
    assert!(operators(&rollup.pipeline).contains(&"expand"));
    assert_eq!(s.conditions("SELECT region, count(*) FROM sales GROUP BY 3"), ["GROUP_BY_POS_OUT_OF_RANGE"]);
    assert_eq!(s.conditions("SELECT region, count(*) FROM sales GROUP BY 2"), ["GROUP_BY_POS_AGGREGATE"]);
    assert_eq!(s.conditions("SELECT count(*) FROM sales GROUP BY count(*)"), ["GROUP_BY_AGGREGATE"]);
}

#[test]
fn subqueries_become_joins_or_values() {
    let s = tables();
    let join = |sql: &str| s.batch(sql).logical;
    assert!(join("SELECT id FROM t1 WHERE v IN (SELECT v FROM t2)").contains("Join left_semi"));
    assert!(join("SELECT id FROM t1 WHERE v NOT IN (SELECT v FROM t2)").contains("Join null_aware_anti"));
    let exists = "SELECT id FROM t1 WHERE EXISTS (SELECT 1 FROM t2 WHERE t2.id = t1.id AND t2.v > t1.v)";
    assert!(join(exists).contains("Join left_semi"));
    assert!(join("SELECT id, id IN (SELECT id FROM t2) FROM t1").contains("Join existence"));
    assert!(join("SELECT id, (SELECT max(v) FROM t2) FROM t1").contains("Subquery 0"));
    let counted = join("SELECT id, (SELECT count(*) FROM t2 WHERE t2.id = t1.id) FROM t1");
    assert!(counted.contains("Join left") && counted.contains("ELSE 0"), "{counted}");
    let lateral = "SELECT t1.id, x.v FROM t1, LATERAL (SELECT v FROM t2 WHERE t2.id = t1.id ORDER BY v DESC LIMIT 1) x";
    assert!(join(lateral).contains("row_number"));
    assert_eq!(
        s.conditions("SELECT (SELECT id, v FROM t2) FROM t1"),
        ["INVALID_SUBQUERY_EXPRESSION.SCALAR_SUBQUERY_RETURN_MORE_THAN_ONE_OUTPUT_COLUMN"]
    );
}

#[test]
fn set_operations_match_by_position() {
    let s = tables();
    let rows = s.batch("SELECT id FROM t1 UNION ALL SELECT v FROM t2");
    assert!(operators(&rows.pipeline).contains(&"union"));
    assert!(s.batch("SELECT * FROM t1 EXCEPT SELECT * FROM t2").logical.contains("Join left_anti"));
    assert_eq!(s.conditions("SELECT id, v FROM t1 UNION SELECT id FROM t2"), ["NUM_COLUMNS_MISMATCH"]);
}

#[test]
fn order_by_may_name_what_is_not_selected() {
    let s = tables();
    let q = s.batch("SELECT id FROM t1 ORDER BY v DESC NULLS LAST, 1 LIMIT 3 OFFSET 1");
    assert!(q.ordered);
    assert_eq!(q.schema.len(), 1);
    assert_eq!(q.pipeline.nodes.last().unwrap().schema.len(), 1);
    assert_eq!(s.conditions("SELECT DISTINCT v FROM t1 ORDER BY id"), ["UNRESOLVED_COLUMN.WITH_SUGGESTION"]);
    assert_eq!(s.conditions("SELECT id FROM t1 ORDER BY 2"), ["ORDER_BY_POS_OUT_OF_RANGE"]);
    assert_eq!(s.conditions("SELECT id FROM t1 LIMIT -1"), ["INVALID_LIMIT_LIKE_EXPRESSION.IS_NEGATIVE"]);
}

#[test]
fn ctes_shadow_and_nest() {
    let s = tables();
    s.batch("WITH t1 AS (SELECT 42 AS n) SELECT n FROM t1");
    s.batch("WITH a AS (SELECT 1 AS v), b AS (WITH a AS (SELECT 2 AS v) SELECT v FROM a) SELECT a.v, b.v FROM a, b");
    assert_eq!(s.conditions("WITH a AS (SELECT 1), a AS (SELECT 2) SELECT * FROM a"), ["DUPLICATED_CTE_NAMES"]);
    assert_eq!(s.conditions("WITH c (x) AS (SELECT id, v FROM t1) SELECT x FROM c"), ["ASSIGNMENT_ARITY_MISMATCH"]);
}

#[test]
fn parameters_stand_where_literals_do() {
    let mut s = tables();
    assert_eq!(s.conditions("SELECT id FROM t1 WHERE v > :least"), ["UNBOUND_SQL_PARAMETER"]);
    s.catalog.set_parameter("least", "10");
    assert!(s.batch("SELECT id FROM t1 WHERE v > :least").logical.contains("> 10"));
}

#[test]
fn explain_prints_the_logical_plan() {
    let Ok(Planned::Explain(e)) = tables().plan("EXPLAIN LOGICAL SELECT id + 1 AS n FROM t1 WHERE v = 2") else {
        panic!()
    };
    let Planned::Batch(b) = e.planned else { panic!() };
    assert_eq!(
        b.logical,
        "Output n=n#2\n  Project [n#2 := (id#0 + 1)]\n    Filter (v#1 = 2)\n      Table t1 [id#0, v#1]\n"
    );
}
