//! Streaming queries: which operators, which rules, which columns.

use ssql_ir::{CloseRule, EmitMode, JoinKind, Op};

use super::{Session, operators};
use crate::{Planned, Trigger};

fn sensors() -> Session {
    Session::of(&[
        "CREATE STREAM s (ts TIMESTAMP, k STRING, v INT, d DOUBLE) USING memory",
        "CREATE SINK out USING memory",
    ])
}

const HOUR: i64 = 3_600_000_000;

#[test]
fn a_tumbling_window_under_a_watermark_closes_at_its_end() {
    let q = sensors().stream(
        "INSERT INTO out SELECT window_start, window_end, k, avg(d) AS a, count(*) AS n FROM s \
         WATERMARK ts DELAY OF INTERVAL 2 HOURS GROUP BY TUMBLE(ts, INTERVAL 6 HOURS), k EMIT APPEND TRIGGER AVAILABLE NOW",
    );
    assert_eq!(operators(&q.pipeline), ["source", "watermark", "map", "drop_late", "aggregate", "map", "sink"]);
    let Op::Source { columns, .. } = &q.pipeline.nodes[0].op else { panic!() };
    assert_eq!(columns, &[0, 1, 3], "no column that is not read is parsed");
    let Op::Aggregate { close, emit, keys, .. } = &q.pipeline.nodes[4].op else { panic!() };
    assert_eq!(*close, Some(CloseRule { column: keys[0], add_micros: 6 * HOUR }));
    assert_eq!(*emit, EmitMode::Append);
    assert_eq!(q.trigger, Trigger::AvailableNow);
    assert_eq!(q.sources, ["s"]);
    let names: Vec<&str> = q.schema.fields.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["window_start", "window_end", "k", "a", "n"]);
    assert_eq!(q.state[0].bound, "delay + window");
}

#[test]
fn complete_keeps_late_rows_and_all_groups() {
    let q = sensors().stream(
        "INSERT INTO out SELECT window_start, sum(v) AS t FROM s WATERMARK ts DELAY OF INTERVAL 1 MINUTE \
         GROUP BY TUMBLE(ts, INTERVAL 1 HOUR) ORDER BY t DESC LIMIT 2 EMIT COMPLETE",
    );
    assert_eq!(operators(&q.pipeline), ["source", "watermark", "map", "aggregate", "map", "sort", "limit", "sink"]);
}

#[test]
fn a_filter_acts_below_the_watermark_unless_it_names_the_event_time() {
    let s = sensors();
    let text = |condition: &str| {
        s.stream(&format!(
            "INSERT INTO out SELECT window_start, k, count(*) AS n FROM s WATERMARK ts DELAY OF INTERVAL 0 SECONDS \
             WHERE {condition} GROUP BY TUMBLE(ts, INTERVAL 1 MINUTE), k EMIT APPEND"
        ))
        .logical
    };
    let below = |t: &str, what: &str| t.find("Watermark").unwrap() < t.find(what).unwrap();
    assert!(below(&text("k <> 'skip'"), "'skip'"));
    assert!(!below(&text("ts < TIMESTAMP '2024-01-01 01:00:00'"), "ts#0 <"));
    assert!(!below(&text("k <> 'skip' OR ts < TIMESTAMP '1990-01-01'"), "'skip'"));
    let having = s.stream(
        "INSERT INTO out SELECT window_start, k, count(*) AS n FROM s WATERMARK ts DELAY OF INTERVAL 0 SECONDS \
         GROUP BY TUMBLE(ts, INTERVAL 1 MINUTE), k HAVING k <> 'skip' EMIT APPEND",
    );
    assert!(below(&having.logical, "'skip'"));
}

#[test]
fn hopping_windows_and_sessions_have_their_own_operator() {
    let s = sensors();
    let hop = s.stream(
        "INSERT INTO out SELECT window_start, window_time, count(*) AS n FROM s WATERMARK ts DELAY OF INTERVAL 1 MINUTE \
         GROUP BY HOP(ts, INTERVAL 1 MINUTE, INTERVAL 2 MINUTES) EMIT APPEND",
    );
    assert_eq!(operators(&hop.pipeline), ["source", "watermark", "map", "drop_late", "hop_aggregate", "map", "sink"]);
    let ordered = s.stream(
        "INSERT INTO out SELECT window_start, window_time, first(v) AS n FROM s WATERMARK ts DELAY OF INTERVAL 1 MINUTE \
         GROUP BY HOP(ts, INTERVAL 1 MINUTE, INTERVAL 2 MINUTES) EMIT APPEND",
    );
    assert!(operators(&ordered.pipeline).contains(&"assign_windows"));
    let session = s.stream(
        "INSERT INTO out SELECT session_window.start, session_window.end, k, count(*) AS n FROM s \
         WATERMARK ts DELAY OF INTERVAL 0 SECONDS GROUP BY session_window(ts, '5 seconds'), k EMIT APPEND",
    );
    assert!(operators(&session.pipeline).contains(&"session"));
    assert!(operators(&session.pipeline).contains(&"drop_late"));
}

#[test]
fn window_of_a_window_takes_its_last_microsecond() {
    let mut s = sensors();
    s.run(
        "CREATE VIEW per_minute AS SELECT window AS w, k, count(*) AS n FROM s WATERMARK ts DELAY OF INTERVAL 0 SECONDS \
         GROUP BY window(ts, '1 minute'), k",
    );
    let q = s.stream(
        "INSERT INTO out SELECT window.start AS a, sum(n) AS n FROM per_minute GROUP BY window(w, '5 minutes') EMIT APPEND",
    );
    assert_eq!(operators(&q.pipeline).iter().filter(|o| **o == "aggregate").count(), 2);
    assert!(q.logical.contains("INTERVAL DAY TO SECOND 59999999"), "{}", q.logical);
    assert_eq!(
        s.conditions("INSERT INTO out SELECT sum(n) FROM per_minute GROUP BY window(w.end, '5 minutes') EMIT APPEND"),
        ["STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION"]
    );
}

fn joined() -> Session {
    Session::of(&[
        "CREATE STREAM l (k INT, lt TIMESTAMP, lv INT, WATERMARK FOR lt DELAY OF INTERVAL 10 SECONDS) USING memory",
        "CREATE STREAM r (k INT, rt TIMESTAMP, rv INT, WATERMARK FOR rt DELAY OF INTERVAL 10 SECONDS) USING memory",
        "CREATE TABLE d (k INT, n INT)",
        "CREATE SINK j USING memory",
    ])
}

#[test]
fn an_inclusive_bound_of_a_join_waits_a_millisecond_longer() {
    let s = joined();
    let expire = |on: &str| {
        let q = s.stream(&format!("INSERT INTO j SELECT lt, rt FROM l LEFT JOIN r ON l.k = r.k AND {on} EMIT APPEND"));
        q.pipeline
            .nodes
            .iter()
            .find_map(|n| match &n.op {
                Op::StreamJoin { kind: JoinKind::Left, left, right, .. } => {
                    Some((left.expire.map(|r| r.add_micros), right.expire.map(|r| r.add_micros)))
                }
                _ => None,
            })
            .expect("a stream join")
    };
    assert_eq!(expire("rt >= lt AND rt <= lt + INTERVAL 5 SECONDS"), (Some(5_001_000), Some(1000)));
    assert_eq!(expire("rt < lt + INTERVAL 5 SECONDS"), (Some(5_000_000), None));
    assert_eq!(expire("lt = rt"), (Some(0), Some(0)));
}

#[test]
fn a_join_with_a_table_keeps_the_stream_streaming() {
    let q = joined().stream("INSERT INTO j SELECT lv, n FROM d RIGHT JOIN l ON l.k = d.k EMIT APPEND");
    assert!(operators(&q.pipeline).contains(&"hash_join"));
}

#[test]
fn deduplication_is_bounded_where_the_event_time_is_a_key() {
    let s = joined();
    let close = |sql: &str| {
        let q = s.stream(sql);
        let op = q.pipeline.nodes.iter().find_map(|n| match &n.op {
            Op::Dedup { close, within_watermark, .. } => Some((close.is_some(), *within_watermark)),
            _ => None,
        });
        assert!(operators(&q.pipeline).contains(&"drop_late"));
        op.expect("a dedup")
    };
    assert_eq!(close("INSERT INTO j SELECT DISTINCT ON (lt, k) lt, k FROM l EMIT APPEND"), (true, false));
    assert_eq!(close("INSERT INTO j SELECT DISTINCT ON (k) k, lv FROM l EMIT APPEND"), (false, false));
    assert_eq!(close("INSERT INTO j SELECT DISTINCT ON (k) WITHIN WATERMARK k FROM l EMIT APPEND"), (true, true));
}

#[test]
fn insert_into_a_memory_stream_coerces_each_cell() {
    let planned = sensors().plan("INSERT INTO s VALUES ('2024-01-01 00:00:10', 'a', 1, 2), (NULL, NULL, NULL, 1.5)");
    let Ok(Planned::Insert(i)) = planned else { panic!("{planned:#?}") };
    assert!(i.stream);
    assert_eq!(i.rows.schema.len(), 4);
    assert_eq!(operators(&i.rows.pipeline), ["values"]);
}

#[test]
fn the_checkpoint_root_gives_each_query_a_place() {
    let mut s = sensors();
    s.run("CREATE SINK files USING json LOCATION '/tmp/x'");
    assert_eq!(s.conditions("INSERT INTO files SELECT k FROM s EMIT APPEND"), ["MISSING_CHECKPOINT_LOCATION"]);
    s.run("SET checkpoint.root = '/cp/'");
    assert_eq!(s.stream("INSERT INTO files SELECT k FROM s EMIT APPEND").checkpoint.as_deref(), Some("/cp/files"));
    assert_eq!(
        s.conditions("INSERT INTO files SELECT k FROM s EMIT UPDATE"),
        ["STREAMING_OUTPUT_MODE.UNSUPPORTED_DATASOURCE"]
    );
}
