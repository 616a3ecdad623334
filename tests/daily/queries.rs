//! Each management feature of a StreamingQuery: status, progress, rates, waiting, the active list, stop, restart.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::datatypes::Int32Type;
use ssql::render::cells;
use ssql::session::{Outcome, Session, SessionConfig};
use ssql_grammar::SourceFile;

/// Runs statements; panics with their error.
fn run(session: &mut Session, text: &str) -> Vec<Outcome> {
    session.run_script(&SourceFile::new("test", text)).unwrap_or_else(|e| panic!("{e}"))
}

/// The cells of the last statement's rows.
fn rows(session: &mut Session, text: &str) -> Vec<Vec<String>> {
    let zone = session.time_zone();
    match run(session, text).pop() {
        Some(Outcome::Rows { batches, .. }) => {
            cells(&batches, &zone).into_iter().map(|r| r.into_iter().map(Option::unwrap_or_default).collect()).collect()
        }
        other => panic!("{other:?} are no rows"),
    }
}

fn text(session: &mut Session, statement: &str) -> String {
    match run(session, statement).pop() {
        Some(Outcome::Text(text)) => text,
        other => panic!("{other:?} is no text"),
    }
}

fn error(session: &mut Session, statement: &str) -> String {
    let failure = session.run_script(&SourceFile::new("test", statement)).expect_err("it fails");
    failure.diagnostics[0].condition.to_string()
}

fn session() -> Session {
    Session::new(SessionConfig::default()).unwrap()
}

const SETUP: &str = "CREATE STREAM m (ts TIMESTAMP, k STRING, v INT) USING memory; CREATE SINK o USING memory;";

fn keys(value: &serde_json::Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Keys of `durationMs` in Spark 4.3, for rate to memory, files to files and a windowed count alike.
const SPARK_DURATIONS: [&str; 7] =
    ["addBatch", "commitOffsets", "getBatch", "latestOffset", "queryPlanning", "triggerExecution", "walCommit"];

/// What Spark 4.3 prints for rate into memory and for files into files under a checkpoint: key for key, nothing more.
#[test]
fn progress_of_rate_and_of_files_has_sparks_keys() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("in")).unwrap();
    std::fs::write(dir.path().join("in/a.json"), "{\"k\":\"a\"}\n{\"k\":\"b\"}\n").unwrap();
    let mut s = Session::new(SessionConfig { base_dir: dir.path().to_path_buf(), ..SessionConfig::default() }).unwrap();
    run(
        &mut s,
        "CREATE STREAM r USING rate OPTIONS (rowsPerSecond 1000); CREATE SINK m USING memory;
         CREATE QUERY rm AS INSERT INTO m SELECT value FROM r EMIT APPEND;
         CREATE STREAM f (k STRING) USING json LOCATION 'in'; CREATE SINK o USING parquet LOCATION 'out';
         CREATE QUERY ff AS INSERT INTO o SELECT k FROM f EMIT APPEND TRIGGER AVAILABLE NOW CHECKPOINT LOCATION 'cp';
         AWAIT QUERY ff;",
    );
    let rate = s.handle("rm").unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while rate.recent_progress(1).is_empty() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    for (query, rows, offset, sink) in [("rm", None, "number", "MemorySink"), ("ff", Some(2), "logOffset", "FileSink[")]
    {
        let json = s.handle(query).unwrap().recent_progress(1)[0].json();
        let progress: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(
            keys(&progress),
            [
                "id",
                "runId",
                "name",
                "timestamp",
                "batchId",
                "batchDuration",
                "numInputRows",
                "inputRowsPerSecond",
                "processedRowsPerSecond",
                "durationMs",
                "stateOperators",
                "sources",
                "sink"
            ],
            "{query}"
        );
        assert_eq!(keys(&progress["durationMs"]), SPARK_DURATIONS, "{query}");
        let source = &progress["sources"][0];
        assert_eq!(keys(source)[..4], ["description", "startOffset", "endOffset", "latestOffset"], "{query}");
        assert_eq!(keys(source).len(), 7, "{query}: {source}");
        let end = &source["endOffset"];
        assert!(if offset == "number" { end.is_number() } else { keys(end) == [offset] }, "{query}: {end}");
        assert_eq!(keys(&progress["sink"]), ["description", "numOutputRows"]);
        assert!(progress["sink"]["description"].as_str().unwrap().starts_with(sink), "{json}");
        assert!(rows.is_none_or(|n| progress["numInputRows"] == n), "{json}");
    }
    s.stop_all();
}

/// AWAIT sleeps until a query ends or the statement is interrupted: neither is looked for by the clock.
#[test]
fn waiting_ends_with_a_query_or_an_interrupt() {
    let mut s = session();
    run(&mut s, SETUP);
    run(&mut s, "CREATE SINK p USING memory; CREATE QUERY q AS INSERT INTO o SELECT k FROM m EMIT APPEND;");
    run(&mut s, "CREATE QUERY r AS INSERT INTO p SELECT 10 / v AS v FROM m EMIT APPEND;");
    // The second of those waited for ends.
    run(&mut s, "INSERT INTO m VALUES (NULL, 'a', 0);");
    assert_eq!(error(&mut s, "AWAIT ANY QUERY;"), "DIVIDE_BY_ZERO");
    let stopper = s.stopper();
    let (done, rest) = std::sync::mpsc::channel::<()>();
    // Again and again: one that comes before the statement has begun is not meant for it.
    let interrupt = std::thread::spawn(move || {
        while rest
            .recv_timeout(Duration::from_millis(20))
            .is_err_and(|e| e == std::sync::mpsc::RecvTimeoutError::Timeout)
        {
            stopper.interrupt();
        }
    });
    assert_eq!(error(&mut s, "AWAIT QUERY q;"), "OPERATION_CANCELED");
    drop(done);
    interrupt.join().unwrap();
    assert!(s.handle("q").unwrap().is_active());
    // What comes after an interrupted statement runs.
    assert!(rows(&mut s, "SELECT * FROM o;").len() <= 1);
    run(&mut s, "AWAIT QUERY q TIMEOUT INTERVAL 10 MILLISECONDS;");
    s.stop_all();
}

#[test]
fn a_stop_runs_no_further_statement() {
    let mut s = session();
    run(&mut s, SETUP);
    run(&mut s, "CREATE QUERY q AS INSERT INTO o SELECT k FROM m EMIT APPEND;");
    let stopper = s.stopper();
    let stop = std::thread::spawn(move || stopper.stop());
    // However the two interleave, the query ends, and nothing is created behind it.
    run(&mut s, "AWAIT QUERY q; CREATE SINK never USING memory;");
    stop.join().unwrap();
    assert!(s.catalog().relation("never").is_none());
    assert!(s.await_all().is_ok() && !s.handle("q").unwrap().is_active());
}

/// The key sets and formats that Spark 4.3 prints for the same queries.
#[test]
fn progress_is_sparks() {
    let mut s = session();
    run(&mut s, SETUP);
    run(
        &mut s,
        "CREATE QUERY q AS INSERT INTO o SELECT window_start, k, count(*) AS n FROM m WATERMARK ts DELAY OF INTERVAL 5 MINUTES
         GROUP BY TUMBLE(ts, INTERVAL 5 MINUTES), k EMIT APPEND;
         INSERT INTO m VALUES (TIMESTAMP '2024-01-01 00:10:00', 'a', 1);
         PROCESS ALL AVAILABLE;",
    );
    let progress: serde_json::Value =
        serde_json::from_str(text(&mut s, "SHOW QUERY PROGRESS q LAST 2;").split("\n{").next().unwrap()).unwrap();
    assert_eq!(
        keys(&progress),
        [
            "id",
            "runId",
            "name",
            "timestamp",
            "batchId",
            "batchDuration",
            "numInputRows",
            "inputRowsPerSecond",
            "processedRowsPerSecond",
            "durationMs",
            "eventTime",
            "stateOperators",
            "sources",
            "sink"
        ]
    );
    assert_eq!(keys(&progress["durationMs"]), SPARK_DURATIONS);
    assert_eq!(keys(&progress["eventTime"]), ["avg", "max", "min", "watermark"]);
    assert_eq!(progress["eventTime"]["max"], "2024-01-01T00:10:00.000Z");
    assert_eq!(progress["eventTime"]["watermark"], "1970-01-01T00:00:00.000Z");
    assert_eq!(
        keys(&progress["sources"][0]),
        [
            "description",
            "startOffset",
            "endOffset",
            "latestOffset",
            "numInputRows",
            "inputRowsPerSecond",
            "processedRowsPerSecond"
        ]
    );
    assert_eq!(progress["sources"][0]["startOffset"], serde_json::Value::Null);
    assert_eq!(progress["sources"][0]["endOffset"], 0);
    assert_eq!(keys(&progress["sink"]), ["description", "numOutputRows"]);
    let time = progress["timestamp"].as_str().unwrap();
    assert!(time.len() == 24 && time.ends_with('Z') && &time[19..20] == ".", "{time}");
    let rate = progress["processedRowsPerSecond"].as_f64().unwrap();
    assert_eq!(rate, (rate * 10.0).round() / 10.0);
}

#[test]
fn a_query_without_a_watermark_has_no_event_time() {
    let mut s = session();
    run(&mut s, SETUP);
    run(
        &mut s,
        "INSERT INTO o SELECT k FROM m EMIT APPEND; INSERT INTO m VALUES (NULL, 'a', 1); PROCESS ALL AVAILABLE;",
    );
    let progress: serde_json::Value = serde_json::from_str(&text(&mut s, "SHOW QUERY PROGRESS o;")).unwrap();
    assert!(progress.get("eventTime").is_none() && progress.get("observedMetrics").is_none());
    assert_eq!(progress["stateOperators"], serde_json::json!([]));
}

#[test]
fn status_list_wait_stop_and_drop() {
    let mut s = session();
    run(&mut s, SETUP);
    run(&mut s, "CREATE QUERY q AS INSERT INTO o SELECT k FROM m EMIT APPEND; PROCESS ALL AVAILABLE;");
    let status: serde_json::Value = serde_json::from_str(&text(&mut s, "SHOW QUERY STATUS q;")).unwrap();
    assert_eq!(keys(&status), ["message", "isDataAvailable", "isTriggerActive"]);
    let list = rows(&mut s, "SHOW QUERIES;");
    assert_eq!((list.len(), list[0][0].as_str(), list[0][3].as_str()), (1, "q", "true"));

    let began = Instant::now();
    run(&mut s, "AWAIT QUERY q TIMEOUT INTERVAL 50 MILLISECONDS; AWAIT ANY QUERY TIMEOUT INTERVAL 50 MILLISECONDS;");
    assert!(began.elapsed() >= Duration::from_millis(100));
    run(&mut s, "STOP QUERY q; AWAIT QUERY q; AWAIT ANY QUERY;");
    let status: serde_json::Value = serde_json::from_str(&text(&mut s, "SHOW QUERY STATUS q;")).unwrap();
    assert_eq!(status["message"], "Stopped");
    assert_eq!(rows(&mut s, "SHOW QUERIES;")[0][3], "false");
    run(&mut s, "DROP QUERY q; DROP QUERY IF EXISTS q;");
    assert!(rows(&mut s, "SHOW QUERIES;").is_empty());
    assert_eq!(error(&mut s, "DROP QUERY q;"), "QUERY_NOT_FOUND");
}

#[test]
fn a_hundred_progresses_are_kept() {
    let mut s = Session::new(SessionConfig { manual: true, ..SessionConfig::default() }).unwrap();
    run(&mut s, SETUP);
    run(&mut s, "INSERT INTO o SELECT k FROM m EMIT APPEND;");
    for _ in 0..105 {
        run(&mut s, "INSERT INTO m VALUES (NULL, 'a', 1); PROCESS ALL AVAILABLE;");
    }
    let kept = s.handle("o").unwrap().recent_progress(1000);
    assert_eq!((kept.len(), kept[0].batch_id, kept[99].batch_id), (100, 5, 104));
}

/// The restart-on-failure pattern: the id stays, the run is new, and the failure is told once and kept.
#[test]
fn a_failed_query_is_started_again_from_its_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let mut s = Session::new(SessionConfig { base_dir: dir.path().to_path_buf(), ..SessionConfig::default() }).unwrap();
    run(&mut s, SETUP);
    let start = "CREATE QUERY q AS INSERT INTO o SELECT 10 / v AS r FROM m EMIT APPEND CHECKPOINT LOCATION 'cp';";
    run(&mut s, start);
    run(&mut s, "INSERT INTO m VALUES (NULL, 'a', 5); PROCESS ALL AVAILABLE;");
    let (id, run_id) = (s.handle("q").unwrap().id().to_owned(), s.handle("q").unwrap().run_id().to_owned());
    run(&mut s, "INSERT INTO m VALUES (NULL, 'a', 0);");
    assert_eq!(error(&mut s, "AWAIT QUERY q;"), "DIVIDE_BY_ZERO");
    let list = rows(&mut s, "SHOW QUERIES;");
    assert_eq!((list[0][3].as_str(), list[0][5].as_str()), ("false", "DIVIDE_BY_ZERO"));
    let status: serde_json::Value = serde_json::from_str(&text(&mut s, "SHOW QUERY STATUS q;")).unwrap();
    assert!(status["message"].as_str().unwrap().starts_with("Terminated with exception: "), "{status}");
    // Mended: division by zero gives NULL.
    run(&mut s, &start.replace("10 / v", "try_divide(10, v)"));
    run(&mut s, "PROCESS ALL AVAILABLE;");
    let handle = s.handle("q").unwrap();
    assert_eq!(handle.id(), id);
    assert_ne!(handle.run_id(), run_id);
    assert_eq!(rows(&mut s, "SELECT * FROM o;"), [["2.0"], [""]]);
    s.stop_all();
}

#[test]
fn available_now_keeps_the_rate_limit_and_once_does_not() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("in")).unwrap();
    for i in 0..5 {
        std::fs::write(dir.path().join(format!("in/{i}.json")), format!("{{\"v\":{i}}}\n")).unwrap();
    }
    let mut s = Session::new(SessionConfig { base_dir: dir.path().to_path_buf(), ..SessionConfig::default() }).unwrap();
    run(&mut s, "CREATE STREAM f (v INT) USING json LOCATION 'in' OPTIONS (maxFilesPerTrigger 2);");
    for (trigger, batches) in [("AVAILABLE NOW", vec![2, 2, 1]), ("ONCE", vec![5])] {
        run(&mut s, "CREATE SINK c USING memory;");
        run(
            &mut s,
            &format!("CREATE QUERY q AS INSERT INTO c SELECT v FROM f EMIT APPEND TRIGGER {trigger}; AWAIT QUERY q;"),
        );
        let progress = s.handle("q").unwrap().recent_progress(10);
        assert_eq!(progress.iter().map(|p| p.num_input_rows).collect::<Vec<_>>(), batches, "{trigger}");
        assert_eq!(rows(&mut s, "SELECT * FROM c;").len(), 5);
        run(&mut s, "DROP QUERY q; DROP SINK c;");
    }
}

/// Rows pass at once, offsets are committed by epochs, and a restart goes on behind the last.
#[test]
fn a_continuous_query_passes_rows_and_commits_epochs() {
    let dir = tempfile::tempdir().unwrap();
    let mut s = Session::new(SessionConfig { base_dir: dir.path().to_path_buf(), ..SessionConfig::default() }).unwrap();
    run(&mut s, SETUP);
    let start = "CREATE QUERY q AS INSERT INTO o SELECT upper(k) AS k FROM m WHERE v > 0 EMIT APPEND
                 TRIGGER CONTINUOUS '10 seconds' CHECKPOINT LOCATION 'cp';";
    run(&mut s, start);
    run(&mut s, "INSERT INTO m VALUES (NULL, 'a', 1), (NULL, 'b', 0); PROCESS ALL AVAILABLE;");
    assert_eq!(rows(&mut s, "SELECT * FROM o;"), [["A"]]);
    // No epoch has ended: nothing is committed, the row is there all the same.
    run(&mut s, "STOP QUERY q;");
    let progress = s.handle("q").unwrap().recent_progress(10);
    assert_eq!(progress.iter().map(|p| (p.num_input_rows, p.sink.num_output_rows)).collect::<Vec<_>>(), [(2, 1)]);
    run(&mut s, start);
    run(&mut s, "INSERT INTO m VALUES (NULL, 'c', 1); PROCESS ALL AVAILABLE;");
    assert_eq!(rows(&mut s, "SELECT * FROM o;"), [["A"], ["C"]]);
    s.stop_all();
}

#[test]
fn continuous_processing_refuses_what_is_no_map() {
    let mut s = session();
    run(&mut s, SETUP);
    run(
        &mut s,
        "CREATE STREAM f (v INT) USING json LOCATION 'in'; CREATE SINK p USING parquet LOCATION 'out';
         CREATE TABLE d (k STRING);",
    );
    for query in [
        "SELECT k, count(*) FROM m GROUP BY k EMIT UPDATE",
        "SELECT DISTINCT k FROM m EMIT APPEND",
        "SELECT m.k FROM m JOIN d ON m.k = d.k EMIT APPEND",
        "SELECT k FROM m UNION ALL SELECT k FROM m EMIT APPEND",
        "SELECT k FROM m WATERMARK ts DELAY OF '1 second' EMIT APPEND",
        "SELECT current_timestamp(), k FROM m EMIT APPEND",
        "SELECT v FROM f EMIT APPEND",
        "INSERT INTO p SELECT k FROM m EMIT APPEND",
    ] {
        let checkpoint = if query.starts_with("INSERT") { "CHECKPOINT LOCATION 'cp'" } else { "" };
        let text = format!("{query} TRIGGER CONTINUOUS '1 second' {checkpoint};");
        assert_eq!(error(&mut s, &text), "UNSUPPORTED_CONTINUOUS_PROCESSING", "{query}");
    }
}

/// A burst in one query does not keep the others from their rows, and stopping one disturbs none.
#[test]
fn many_queries_share_a_process() {
    let mut s = session();
    run(&mut s, "CREATE STREAM m (v INT) USING memory;");
    for i in 0..20 {
        run(
            &mut s,
            &format!("CREATE SINK o{i} USING memory; INSERT INTO o{i} SELECT v + {i} AS v FROM m EMIT APPEND;"),
        );
    }
    run(&mut s, "INSERT INTO m VALUES (1); PROCESS ALL AVAILABLE; STOP QUERY o7; INSERT INTO m VALUES (2);");
    run(&mut s, "PROCESS ALL AVAILABLE;");
    for i in 0..20 {
        let n = rows(&mut s, &format!("SELECT v FROM o{i};")).len();
        assert_eq!(n, if i == 7 { 1 } else { 2 }, "query o{i}");
    }
    s.stop_all();
}

/// Fifty rate sources by one clock: every query gets every row of its own, and none waits for a stopped one.
#[test]
fn fifty_queries_over_rate_sources_get_the_same_share() {
    let mut s = Session::new(SessionConfig { manual: true, ..SessionConfig::default() }).unwrap();
    for i in 0..50 {
        run(
            &mut s,
            &format!(
                "CREATE STREAM s{i} USING rate OPTIONS (rowsPerSecond 100); CREATE SINK o{i} USING memory;
                 CREATE QUERY q{i} AS INSERT INTO o{i} SELECT value FROM s{i} EMIT APPEND;"
            ),
        );
    }
    let counts = |s: &mut Session| -> Vec<String> {
        (0..50).map(|i| rows(s, &format!("SELECT count(*) AS n FROM o{i};")).remove(0).remove(0)).collect()
    };
    run(&mut s, "PROCESS ALL AVAILABLE; ADVANCE CLOCK INTERVAL 10 SECONDS; PROCESS ALL AVAILABLE;");
    assert_eq!(counts(&mut s), vec!["1000"; 50]);
    run(&mut s, "STOP QUERY q7; ADVANCE CLOCK INTERVAL 10 SECONDS; PROCESS ALL AVAILABLE;");
    let mut expected = vec!["2000"; 50];
    expected[7] = "1000";
    assert_eq!(counts(&mut s), expected);
}

/// `twice(x)`, which fails on 13 and panics on 14.
fn register_twice(s: &mut Session) {
    let twice = |args: &[ArrayRef]| {
        let x = args[0].as_primitive::<Int32Type>();
        assert!(!x.iter().flatten().any(|v| v == 14), "fourteen");
        if x.iter().flatten().any(|v| v == 13) {
            return Err("thirteen".to_owned());
        }
        Ok(Arc::new(x.iter().map(|v| v.map(|v| i64::from(v) * 2)).collect::<Int64Array>()) as ArrayRef)
    };
    s.register_function("twice", "x INT", "BIGINT", twice).unwrap();
}

#[test]
fn a_function_of_the_program_is_called_in_batches_and_streams() {
    let mut s = session();
    register_twice(&mut s);
    let out =
        rows(&mut s, "SELECT TWICE(x) AS y FROM VALUES (1), (NULL), (4) AS t(x) WHERE coalesce(twice(x), 0) <> 2;");
    assert_eq!(out, [["".to_owned()], ["8".to_owned()]]);
    assert_eq!(rows(&mut s, "SELECT sum(twice(x)) AS y FROM VALUES (1), (4) AS t(x) GROUP BY twice(x) % 4;").len(), 2);
    for jit in ["on", "off", "verify"] {
        run(
            &mut s,
            &format!(
                "SET jit = {jit}; CREATE STREAM m{jit} (k STRING, v INT) USING memory; CREATE SINK o{jit} USING memory;"
            ),
        );
        run(
            &mut s,
            &format!(
                "INSERT INTO o{jit} SELECT k, sum(twice(v)) AS n FROM m{jit} WHERE twice(v) > 2 AND v < 100 GROUP BY k EMIT UPDATE;
                 INSERT INTO m{jit} VALUES ('a', 1), ('a', 2), ('b', 3), ('a', 5); PROCESS ALL AVAILABLE;"
            ),
        );
        let mut out = rows(&mut s, &format!("SELECT k, n FROM o{jit};"));
        out.sort();
        assert_eq!(out, [["a".to_owned(), "14".to_owned()], ["b".to_owned(), "6".to_owned()]], "{jit}");
    }
}

#[test]
fn mistakes_of_a_programs_function_are_errors_of_the_query() {
    let mut s = session();
    register_twice(&mut s);
    assert_eq!(error(&mut s, "SELECT twice(13) AS y;"), "FAILED_EXECUTE_UDF");
    assert_eq!(error(&mut s, "SELECT twice(14) AS y;"), "FAILED_EXECUTE_UDF");
    assert_eq!(error(&mut s, "SELECT twice(1, 2) AS y;"), "WRONG_NUM_ARGS.WITHOUT_SUGGESTION");
    assert_eq!(error(&mut s, "SELECT twice(array(1)) AS y;"), "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE");
    assert_eq!(error(&mut s, "SELECT twice(DISTINCT 1) AS y;"), "INVALID_SQL_SYNTAX");
    let failure = s.run_script(&SourceFile::new("test", "SELECT twize(1) AS y;")).expect_err("no such function");
    assert!(failure.to_string().contains("Did you mean `twice`?"), "{failure}");
    s.register_function("short", "x INT", "INT", |args| Ok(args[0].slice(0, 0))).unwrap();
    assert_eq!(error(&mut s, "SELECT short(1) AS y;"), "FAILED_EXECUTE_UDF");
    s.register_function("other", "x INT", "STRING", |args| Ok(Arc::clone(&args[0]))).unwrap();
    assert_eq!(error(&mut s, "SELECT other(1) AS y;"), "FAILED_EXECUTE_UDF");
    assert!(s.register_function("wrong", "x NUMBERS", "INT", |args| Ok(Arc::clone(&args[0]))).is_err());
    run(&mut s, "CREATE STREAM m (v INT) USING memory; CREATE SINK o USING memory;");
    run(&mut s, "INSERT INTO o SELECT twice(v) AS y FROM m EMIT APPEND; INSERT INTO m VALUES (14);");
    let handle = s.handle("o").unwrap();
    assert!(handle.process_all_available().is_err());
    assert_eq!(handle.error().expect("it has failed").condition, "FAILED_EXECUTE_UDF");
}

/// What each stateful operator reports: Spark's names and keys (4.3), and figures of the batch.
#[test]
fn state_operators_report_as_sparks() {
    let mut s = session();
    run(
        &mut s,
        "CREATE STREAM m (ts TIMESTAMP, k STRING, v INT, WATERMARK FOR ts DELAY OF INTERVAL 1 MINUTE) USING memory;",
    );
    run(
        &mut s,
        "CREATE STREAM r (ts TIMESTAMP, k STRING, v INT, WATERMARK FOR ts DELAY OF INTERVAL 1 MINUTE) USING memory;",
    );
    run(&mut s, "SET state.partitions = 1;");
    let join =
        "SELECT m.k AS k, r.v AS v FROM m JOIN r ON m.k = r.k AND r.ts BETWEEN m.ts AND m.ts + INTERVAL 1 MINUTE";
    let queries = [
        ("agg", "SELECT window_start, count(*) AS n FROM m GROUP BY TUMBLE(ts, INTERVAL 5 MINUTES)"),
        ("dedup", "SELECT DISTINCT ON (k, ts) k, ts FROM m"),
        ("within", "SELECT DISTINCT ON (k) WITHIN WATERMARK k FROM m"),
        ("session", "SELECT window_start, k, count(*) AS n FROM m GROUP BY SESSION(ts, INTERVAL 5 MINUTES), k"),
        ("j", join),
    ];
    for (name, query) in queries {
        run(&mut s, &format!("CREATE SINK {name} USING memory; INSERT INTO {name} {query} EMIT APPEND;"));
    }
    for stream in ["m", "r"] {
        run(
            &mut s,
            &format!(
                "INSERT INTO {stream} VALUES ('2024-01-01 10:00:00', 'a', 1), ('2024-01-01 10:00:00', 'a', 1),
                 ('2024-01-01 10:10:00', 'b', 2);"
            ),
        );
    }
    run(&mut s, "PROCESS ALL AVAILABLE;");
    let names =
        ["stateStoreSave", "dedupe", "dedupeWithinWatermark", "sessionWindowStateStoreSaveExec", "symmetricHashJoin"];
    for ((query, _), name) in queries.into_iter().zip(names) {
        let all = s.handle(query).unwrap().recent_progress(10);
        let progress: serde_json::Value = serde_json::from_str(&all[0].json()).unwrap();
        let operator = &progress["stateOperators"][0];
        assert_eq!(operator["operatorName"], name);
        assert_eq!(
            keys(operator),
            [
                "operatorName",
                "numRowsTotal",
                "numRowsUpdated",
                "allUpdatesTimeMs",
                "numRowsRemoved",
                "allRemovalsTimeMs",
                "commitTimeMs",
                "memoryUsedBytes",
                "numRowsDroppedByWatermark",
                "numShufflePartitions",
                "numStateStoreInstances",
                "customMetrics"
            ]
        );
        let custom = &operator["customMetrics"];
        assert!(custom["stateOnCurrentVersionSizeBytes"].as_u64().unwrap() > 0, "{query}: {operator}");
        let dropped = if name.starts_with("dedupe") { serde_json::json!(1) } else { serde_json::Value::Null };
        assert_eq!(custom["numDroppedDuplicateRows"], dropped, "{query}");
        let stores = if query == "j" { 4 } else { 1 };
        assert_eq!(operator["numStateStoreInstances"], stores, "{query}");
        if query != "j" {
            assert_eq!(
                (operator["numRowsTotal"].as_u64(), operator["numRowsUpdated"].as_u64()),
                (Some(2), Some(2)),
                "{query}"
            );
        }
    }
}
