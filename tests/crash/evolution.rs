//! Changing a query that has a checkpoint: what its state allows goes on, all else is refused in words, and
//! `--allow-reset` begins with empty state. And the tools that look into a checkpoint.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::process::Output;

use support::{Job, Work, text};

const WINDOWS: &str =
    "SELECT window_start, k, sum(v) AS total, count(*) AS n FROM a GROUP BY TUMBLE(ts, INTERVAL 10 SECONDS), k";

/// Runs a query over four files, then the changed script over two more.
fn changed(first: &str, then: &str) -> (Job, Output) {
    changed_script(first, |job| job.script("", "", "", then), &[])
}

fn changed_script(first: &str, then: impl Fn(&Job) -> String, arguments: &[&str]) -> (Job, Output) {
    let job = Job::new(Work::Windows, 4, "");
    job.write_script(&job.script("", "", "", first));
    job.finish();
    job.feed(2);
    job.write_script(&then(&job));
    let output = job.command().args(arguments).output().unwrap();
    (job, output)
}

fn refused(first: &str, then: &str, words: &[&str]) {
    let (_, output) = changed(first, then);
    let said = text(&output);
    assert!(!output.status.success() && said.contains("QUERY_CHANGED"), "{then}: {said}");
    for word in words {
        assert!(said.contains(word), "{then}: `{word}` is not in {said}");
    }
}

#[test]
fn changes_that_the_state_allows_go_on() {
    let filtered = WINDOWS.replace("FROM a", "FROM a WHERE v >= 0");
    let renamed = WINDOWS.replace("k, sum(v) AS total", "k AS device, sum(v) AS sum_of_v");
    let having = format!("{WINDOWS} HAVING count(*) > 0");
    let added = WINDOWS.replace("AS n FROM", "AS n, sum(v) * 2 AS twice FROM");
    let through_a_view = WINDOWS.replace("FROM a", "FROM (SELECT ts, k, v FROM a) AS x");
    for then in [&filtered, &renamed, &having, &added, &through_a_view] {
        let (job, output) = changed(WINDOWS, then);
        assert!(output.status.success(), "{then}: {}", text(&output));
        assert!(!job.rows().is_empty());
        assert!(job.tool(&["verify"]).status.success());
    }
    // The rows are those of a query that was never changed.
    let (job, _) = changed(WINDOWS, &filtered);
    assert_eq!(job.rows(), job.expected());
    // Trigger, rate limits, sink options and the source's path.
    let (job, output) = changed_script(
        WINDOWS,
        |job| {
            std::fs::rename(job.path("a"), job.path("moved")).unwrap();
            job.script("", ", maxFileAge '30d'", " OPTIONS (compression 'none', compactInterval 7)", WINDOWS)
                .replace("LOCATION 'a'", "LOCATION 'moved'")
                .replace("maxFilesPerTrigger 1", "maxFilesPerTrigger 3")
                .replace("TRIGGER AVAILABLE NOW", "TRIGGER ONCE")
        },
        &[],
    );
    assert!(output.status.success(), "{}", text(&output));
    assert!(!job.rows().is_empty());
}

#[test]
fn changes_of_the_state_are_refused_by_naming_them() {
    let keys = WINDOWS.replace(", k\"", "\"").replace("SECONDS), k", "SECONDS), v").replace("k, sum", "v, sum");
    refused(WINDOWS, &keys, &["the keys: was", "k STRING", "v BIGINT", "--allow-reset", "CHECKPOINT LOCATION"]);
    // Of the same type, but another column: nothing but the plan tells.
    let two = "SELECT k, count(*) AS n FROM (SELECT k, upper(k) AS u, ts FROM a) AS x GROUP BY TUMBLE(ts, INTERVAL 10 SECONDS), k";
    let other = two.replace("SELECT k, count", "SELECT u, count").replace("SECONDS), k", "SECONDS), u");
    refused(two, &other, &["the keys: was", "upper(k)"]);
    refused(WINDOWS, &WINDOWS.replace("sum(v)", "max(v)"), &["the aggregates: was sum(v BIGINT)", "is max(v BIGINT)"]);
    refused(WINDOWS, &WINDOWS.replace("INTERVAL 10 SECONDS", "INTERVAL 20 SECONDS"), &["10 seconds", "20 seconds"]);
    let dedup = "SELECT DISTINCT ON (ts, k) ts, k FROM a";
    refused(WINDOWS, dedup, &["was of kind aggregation; it is of kind deduplication"]);
    refused(WINDOWS, "SELECT ts, k FROM a", &["The number of stateful operators was 1 (aggregation); it is none"]);
    refused(dedup, &dedup.replace("(ts, k)", "(ts, v)"), &["Of the deduplication (operator 0) the keys"]);
    let sessions = "SELECT window_start, k, count(*) AS n FROM a GROUP BY SESSION(ts, INTERVAL 4 SECONDS), k";
    refused(
        sessions,
        &sessions.replace("4 SECONDS", "6 SECONDS"),
        &["Of the session aggregation (operator 0) the session"],
    );
    let join = "SELECT l.ts AS lt, r.v AS rv FROM a AS l JOIN b AS r
                ON l.k = r.k AND r.ts BETWEEN l.ts AND l.ts + INTERVAL 3 SECONDS";
    refused(join, &join.replace("a AS l JOIN", "a AS l LEFT JOIN"), &["the join type: was INNER; is LEFT"]);
    refused(join, &join.replace("3 SECONDS", "5 SECONDS"), &["Of the stream-stream join (operator 0) the end of a"]);
    refused(join, WINDOWS, &["It had 2 streaming sources; it has 1."]);
}

#[test]
fn another_kind_of_source_is_refused() {
    let (_, output) = changed_script(
        "SELECT k, v FROM a",
        |_| {
            "CREATE STREAM r USING rate OPTIONS (rowsPerSecond 1); CREATE SINK out USING json LOCATION 'out';
             INSERT INTO out SELECT value FROM r EMIT APPEND TRIGGER AVAILABLE NOW CHECKPOINT LOCATION 'checkpoint';"
                .to_owned()
        },
        &[],
    );
    let said = text(&output);
    assert!(said.contains("QUERY_CHANGED") && said.contains("Source 0 was a FileStreamSource; it is a Rate"), "{said}");
}

#[test]
fn allow_reset_begins_with_empty_state_and_keeps_the_old() {
    let wider = WINDOWS.replace("10 SECONDS", "20 SECONDS");
    let (job, output) = changed_script(WINDOWS, |job| job.script("", "", "", &wider), &["--allow-reset"]);
    let said = text(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("the state begins anew with batch"), "{said}");
    assert!(said.contains("Rows read before are in no later result"), "{said}");
    assert!(job.path("checkpoint/state").exists() && job.path("checkpoint/state-1").exists());
    // From here on it is the changed query's checkpoint, and needs no permission.
    job.feed(2);
    job.finish();
    let verified = text(&job.tool(&["verify"]));
    assert!(verified.contains("state that was put aside"), "{verified}");
    // Without a change the option does nothing.
    let output = job.command().arg("--allow-reset").output().unwrap();
    assert!(output.status.success() && !text(&output).contains("begins anew"), "{}", text(&output));
}

#[test]
fn a_second_query_on_the_same_checkpoint_or_sink_is_told_who_holds_it() {
    let job = Job::new(Work::Windows, 1, "");
    let script = std::fs::read_to_string(job.path("job.ssql")).unwrap();
    let forever = script.replace("TRIGGER AVAILABLE NOW", "TRIGGER PROCESSING TIME INTERVAL 1 HOUR");
    job.write_script(&forever);
    let mut first = job.command().spawn().unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !job.path("checkpoint/commits").exists() && std::time::Instant::now() < deadline {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let holder = format!("process {} on host", first.id());
    let said = text(&job.run());
    assert!(said.contains("CONCURRENT_QUERY") && said.contains(&holder), "{said}");
    for part in ["query `out`", "id ", "run ", "since 20"] {
        assert!(said.contains(part), "{said}");
    }
    job.write_script(&forever.replace("LOCATION 'checkpoint'", "LOCATION 'other'"));
    let said = text(&job.run());
    assert!(said.contains("CONCURRENT_SINK_LOG_UPDATE") && said.contains(&holder), "{said}");
    // The tools need no lease.
    let shown = job.tool(&["show"]);
    assert!(shown.status.success() && text(&shown).contains("in use    by"), "{}", text(&shown));
    assert!(job.tool(&["verify"]).status.success());
    // After a crash the next one is let in at once.
    first.kill().unwrap();
    first.wait().unwrap();
    job.write_script(&script);
    job.finish();
}

#[test]
fn the_tools_show_what_is_there_and_change_nothing() {
    let job = Job::new(Work::Windows, 5, "SET state.snapshot.bytes = 1;");
    assert!(job.dies_at("sink-before-commit:3"));
    let before = snapshot_of(&job);
    let shown = text(&job.tool(&["show"]));
    for part in [
        "query     out",
        "committed batch 1",
        "planned   batch 2",
        "FileStreamSource",
        "{\"logOffset\":2}",
        "aggregation",
    ] {
        assert!(shown.contains(part), "`{part}` is not in {shown}");
    }
    let state = text(&job.tool(&["state"]));
    for part in ["state 0: aggregation, after batch 1", "window_start TIMESTAMP, k STRING", "BIGINT", "key1"] {
        assert!(state.contains(part), "`{part}` is not in {state}");
    }
    let older = text(&job.tool(&["state", "--batch", "0", "--operator", "0"]));
    assert!(older.contains("after batch 0"), "{older}");
    for wrong in [["--batch", "7"], ["--operator", "1"]] {
        let output = job.tool(&["state", wrong[0], wrong[1]]);
        assert!(!output.status.success() && text(&output).contains("STDS_INVALID_OPTION_VALUE"), "{}", text(&output));
    }
    let verified = job.tool(&["verify"]);
    assert!(verified.status.success() && text(&verified).contains("the checkpoint is whole"), "{}", text(&verified));
    assert_eq!(snapshot_of(&job), before, "a tool changed the checkpoint");
    let nothing = support::Job::new(Work::Windows, 1, "");
    assert!(text(&nothing.tool(&["show"])).contains("PATH_NOT_FOUND"));
}

#[test]
fn the_state_of_each_kind_of_operator_is_shown() {
    for (work, columns) in [
        (Work::Sessions, "session"),
        (Work::Dedup, "ts TIMESTAMP, k STRING"),
        (Work::OuterJoin, "side STRING, matched BOOLEAN, expires TIMESTAMP, left."),
    ] {
        let job = Job::new(work, 3, "");
        job.finish();
        let state = job.tool(&["state"]);
        let said = text(&state);
        assert!(state.status.success() && said.contains(columns) && said.contains("key"), "{work:?}: {said}");
    }
}

#[test]
fn verify_names_damage_and_fails() {
    for (file, what) in [("offsets", "offsets"), ("commits", "commits"), ("state/0", "state"), ("sources/0", "sources")]
    {
        let job = Job::new(Work::Windows, 3, "");
        job.finish();
        let dir = job.path("checkpoint").join(file);
        let segment =
            std::fs::read_dir(&dir).unwrap().flatten().find(|e| e.path().extension().is_some()).unwrap().path();
        let mut bytes = std::fs::read(&segment).unwrap();
        bytes[30] ^= 0xff;
        std::fs::write(&segment, bytes).unwrap();
        let output = job.tool(&["verify"]);
        let said = text(&output);
        assert!(!output.status.success() && said.contains("DAMAGED") && said.contains(what), "{file}: {said}");
    }
}

/// All files of the checkpoint with their bytes.
fn snapshot_of(job: &Job) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    let mut todo = vec![job.path("checkpoint")];
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            if entry.path().is_dir() {
                todo.push(entry.path());
            } else {
                all.push((entry.path(), std::fs::read(entry.path()).unwrap()));
            }
        }
    }
    all.sort();
    all
}
