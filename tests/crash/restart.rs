//! Queries that fail: what may pass is tried again by the policy, what cannot ends the query, and other queries of the
//! process go on.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::process::Command;

use support::{Job, Work, assert_same, text};

/// A job whose query has these options.
fn job(options: &str) -> Job {
    let job = Job::new(Work::Windows, 8, "");
    let script = std::fs::read_to_string(job.path("job.ssql")).unwrap();
    job.write_script(
        &script.replace(
            "CHECKPOINT LOCATION 'checkpoint'",
            &format!("CHECKPOINT LOCATION 'checkpoint' OPTIONS ({options})"),
        ),
    );
    job
}

#[test]
fn what_may_pass_is_tried_again() {
    for point in [
        "offsets-before-append",
        "state-after-sync",
        "sink-before-rename",
        "commits-half-append",
        "sink-file-before-sync",
    ] {
        let job = job("restart 'on-failure', restart.delay '10ms'");
        let output = job.command().env("SSQL_FAILPOINT", format!("{point}:3:error")).output().unwrap();
        let said = text(&output);
        assert!(output.status.success(), "{point}: {said}");
        assert!(said.contains("attempt 1 follows in 10ms") && !said.contains("attempt 2"), "{point}: {said}");
        assert_same(&job.rows(), &job.expected(), point);
        job.assert_clean(point);
    }
}

#[test]
fn without_the_option_it_ends_and_says_that_a_retry_may_help() {
    let job = job("restart 'never'");
    let output = job.command().env("SSQL_FAILPOINT", "state-before-append:2:error").output().unwrap();
    let said = text(&output);
    assert!(!output.status.success() && !said.contains("attempt"), "{said}");
    for part in ["FAILED_FILE_OPERATION", "micro-batch 1 of query `out`", "The cause may pass"] {
        assert!(said.contains(part), "`{part}` is not in {said}");
    }
    job.finish();
    assert_same(&job.rows(), &job.expected(), "started again by hand");
}

#[test]
fn attempts_end_at_last() {
    let job = job("restart 'on-failure', restart.delay '10ms', restart.maxAttempts 2");
    job.feed(60);
    // No file may grow beyond 8 KiB: a log reaches that in some batch, and then every attempt fails.
    let limited = format!(
        "trap '' XFSZ; ulimit -f 16; exec {} run {}",
        env!("CARGO_BIN_EXE_ssql"),
        job.path("job.ssql").display()
    );
    let output = Command::new("sh").args(["-c", &limited]).output().unwrap();
    let said = text(&output);
    assert!(!output.status.success() && said.contains("FAILED_FILE_OPERATION"), "{said}");
    assert!(
        said.contains("attempt 1") && said.contains("attempt 2 follows in 20ms") && !said.contains("attempt 3"),
        "{said}"
    );
}

#[test]
fn what_cannot_pass_is_not_tried_again_and_names_the_record() {
    let job = Job::new(Work::Windows, 2, "");
    std::fs::write(job.path("a/zz-bad.json"), "{\"ts\":\"2024-05-01 00:05:00\",\"k\":\"a\",\"v\":\"no number\"}\n")
        .unwrap();
    let script = std::fs::read_to_string(job.path("job.ssql")).unwrap();
    let script = script.replace("maxFilesPerTrigger 1)", "maxFilesPerTrigger 1, mode 'FAILFAST')");
    job.write_script(&script.replace(
        "CHECKPOINT LOCATION 'checkpoint'",
        "CHECKPOINT LOCATION 'checkpoint' OPTIONS (restart 'on-failure', restart.delay '10ms')",
    ));
    let output = job.run();
    let said = text(&output);
    assert!(!output.status.success() && !said.contains("attempt") && !said.contains("may pass"), "{said}");
    for part in ["MALFORMED_RECORD_IN_PARSING", "zz-bad.json", "line 1", "no number", "of query `out`", "source `a`"] {
        assert!(said.contains(part), "`{part}` is not in {said}");
    }
}

#[test]
fn a_failing_query_takes_no_other_down() {
    for (fault, word) in [("", "MALFORMED_RECORD_IN_PARSING"), ("sink-file-before-write:1:panic", "a worker panicked")]
    {
        let job = Job::new(Work::Windows, 6, "");
        let script = std::fs::read_to_string(job.path("job.ssql")).unwrap();
        // The other query reads the same files and comes first; it fails by a bad record, or by the panic.
        let other = if fault.is_empty() {
            std::fs::create_dir(job.path("bad")).unwrap();
            std::fs::write(job.path("bad/x.json"), "{oops\n").unwrap();
            "CREATE STREAM bad (k STRING) USING json LOCATION 'bad' OPTIONS (mode 'FAILFAST');
             CREATE SINK other USING noop;
             INSERT INTO other SELECT k FROM bad EMIT APPEND TRIGGER AVAILABLE NOW;"
        } else {
            "CREATE SINK other USING json LOCATION 'other';
             INSERT INTO other SELECT k FROM a EMIT APPEND TRIGGER AVAILABLE NOW CHECKPOINT LOCATION 'other.cp';"
        };
        let at = script.find("CREATE SINK out").unwrap();
        let script = format!("{}{other}\n{}", &script[..at], &script[at..]);
        job.write_script(&script);
        let mut command = job.command();
        if !fault.is_empty() {
            // The first file that is written is the other's: all its rows come out at once, windows close later.
            command.env("SSQL_FAILPOINT", fault);
        }
        let output = command.output().unwrap();
        let said = text(&output);
        assert!(!output.status.success() && said.contains(word), "{said}");
        assert_same(&job.rows(), &job.expected(), word);
    }
}

#[test]
fn a_panic_in_a_worker_fails_the_query_and_a_restart_goes_on() {
    for point in ["sink-file-before-write", "state-before-append", "snapshot-before-write"] {
        let job = Job::new(Work::Windows, 8, "SET state.snapshot.bytes = 1;");
        let output = job.command().env("SSQL_FAILPOINT", format!("{point}:2:panic")).output().unwrap();
        let said = text(&output);
        // A snapshot that is made beside the last batch is waited for by nobody.
        assert!(
            said.contains("INTERNAL_ERROR") || (output.status.success() && point.starts_with("snapshot")),
            "{point}: {said}"
        );
        job.finish();
        assert_same(&job.rows(), &job.expected(), point);
    }
}
