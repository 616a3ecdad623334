//! `spec/ir.md`: the text form of every operator, as the compiler prints it for a query, read back.

use std::fmt::Write;

use ssql_tests::root;

/// What the queries read.
const RELATIONS: &str = "\
CREATE STREAM s (ts TIMESTAMP, k STRING, v INT) USING memory;
CREATE STREAM l (lt TIMESTAMP, k STRING, WATERMARK FOR lt DELAY OF INTERVAL 1 MINUTE) USING memory;
CREATE STREAM r (rt TIMESTAMP, k STRING, WATERMARK FOR rt DELAY OF INTERVAL 1 MINUTE) USING memory;
CREATE TABLE d (k STRING, n INT);
CREATE SINK out USING memory;
";

/// Operator, what it does, and a query that uses it.
const OPERATORS: &[(&str, &str, &str)] = &[
    (
        "source",
        "Reads columns of a relation. `streaming` marks a stream; `columns` are positions in the relation.",
        "SELECT k FROM s EMIT APPEND",
    ),
    ("sink", "Hands rows to a sink.", "INSERT INTO out SELECT k FROM s EMIT APPEND"),
    ("values", "Constant rows.", "SELECT * FROM VALUES (1, 'a'), (2, 'b') AS t(n, k)"),
    (
        "map",
        "Filters by `where`, then computes `project`; either may be all it does.",
        "SELECT v + 1 AS w FROM s WHERE k = 'a' EMIT APPEND",
    ),
    (
        "watermark",
        "The largest time seen, less `delay`, is the input's watermark.",
        "SELECT ts FROM s WATERMARK ts DELAY OF INTERVAL 10 MINUTES EMIT APPEND",
    ),
    (
        "drop_late",
        "Drops and counts rows whose time (plus what stands behind it) is not past the watermark.",
        "SELECT window_start, count(*) AS n FROM s WATERMARK ts DELAY OF INTERVAL 10 MINUTES GROUP BY TUMBLE(ts, INTERVAL 5 MINUTES) EMIT APPEND",
    ),
    (
        "assign_windows",
        "Repeats each row for each hopping window that it is in. Stands where slices (`hop_aggregate`) would not do.",
        "SELECT window_start, first(v) AS f FROM s GROUP BY HOP(ts, INTERVAL 5 MINUTES, INTERVAL 15 MINUTES) EMIT UPDATE",
    ),
    (
        "aggregate",
        "Groups by `keys`. `close` says when a group is final: its time (plus what stands behind it) reaches the watermark.",
        "SELECT k, sum(v) AS v, max(v) FILTER (WHERE v > 0) AS m FROM s GROUP BY k EMIT UPDATE",
    ),
    (
        "hop_aggregate",
        "Groups into hopping windows: each row is aggregated once, into the slice of time that it is in; a window's slices are combined when it is shown.",
        "SELECT window_start, k, count(*) AS n FROM s GROUP BY HOP(ts, INTERVAL 5 MINUTES, INTERVAL 15 MINUTES), k EMIT UPDATE",
    ),
    (
        "session_aggregate",
        "Merges rows of a key whose spans `[start, end]` meet, and aggregates each session.",
        "SELECT window_start, k, count(*) AS n FROM s GROUP BY SESSION(ts, INTERVAL 5 MINUTES), k EMIT COMPLETE",
    ),
    (
        "dedup",
        "Passes the first row of each key.",
        "SELECT DISTINCT ON (k) WITHIN WATERMARK k, v FROM s WATERMARK ts DELAY OF INTERVAL 1 MINUTE EMIT APPEND",
    ),
    (
        "stream_join",
        "Joins two streams, keeping rows of both until no partner can come (`expire`).",
        "SELECT l.k, lt, rt FROM l LEFT JOIN r ON l.k = r.k AND rt BETWEEN lt AND lt + INTERVAL 5 MINUTES EMIT APPEND",
    ),
    (
        "hash_join",
        "Joins with a table, which is read anew for each micro-batch.",
        "SELECT s.k, n FROM s LEFT JOIN d ON s.k = d.k EMIT APPEND",
    ),
    ("union", "Rows of all inputs.", "SELECT k FROM l UNION ALL SELECT k FROM r EMIT APPEND"),
    ("sort", "Sorts the whole input: batch queries, and COMPLETE.", "SELECT k, n FROM d ORDER BY n DESC"),
    ("limit", "The first rows.", "SELECT k FROM d LIMIT 3 OFFSET 1"),
    ("expand", "Repeats each row once per grouping set.", "SELECT k, count(*) AS n FROM d GROUP BY ROLLUP (k)"),
    (
        "generate",
        "Repeats each row for what a generator makes of it.",
        "SELECT k, x FROM d LATERAL VIEW OUTER explode(array(n, 2)) e AS x",
    ),
    (
        "window",
        "Analytic functions: adds a column per call.",
        "SELECT k, sum(n) OVER (PARTITION BY k ORDER BY n) AS t FROM d",
    ),
];

fn lines() -> String {
    let mut out = String::new();
    for (operator, what, query) in OPERATORS {
        let text = ssql::golden("ir", &format!("{RELATIONS}{query};"), &root()).unwrap();
        let parsed = ssql_ir::parse::parse(&text).unwrap();
        assert_eq!(parsed.to_string(), text, "{query}");
        let shown = |line: &&str| line.split(" = ").nth(1).is_some_and(|op| op.split(' ').next() == Some(operator));
        let line = text.lines().find(shown).unwrap_or_else(|| panic!("`{query}` has no {operator}:\n{text}"));
        writeln!(out, "### {operator}\n\n{what}\n\n```sql\n{query};\n```\n\n```ir\n{}\n```\n", line.trim()).unwrap();
    }
    let whole = ssql::golden("ir", &format!("{RELATIONS}INSERT INTO out {};", OPERATORS[5].2), &root()).unwrap();
    write!(out, "## A whole pipeline\n\n```ir\n{whole}```\n").unwrap();
    out
}

#[test]
fn the_page_shows_every_operator() {
    crate::check("ir.md", &lines());
    let printer = std::fs::read_to_string(root().join("compiler/ir/src/print.rs")).unwrap();
    let names = printer.split("fn op_name").nth(1).unwrap().split("\n}\n").next().unwrap();
    for name in names.split('"').skip(1).step_by(2) {
        assert!(OPERATORS.iter().any(|(o, ..)| *o == name), "the operator `{name}` is not in spec/ir.md");
    }
}
