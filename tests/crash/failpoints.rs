//! Ends the process at each named point, and lets each named step fail, then resumes: nothing is lost and nothing is
//! there twice. Each point must have been reached.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use ssql_state::failpoint::POINTS;
use support::{Job, Work, assert_same, text};

/// Everything happens early: old batches go at once, each batch is worth a snapshot, logs are made short.
const SETTINGS: &str = "SET checkpoint.retain = 1; SET state.snapshot.bytes = 1;";
const FILES: u64 = 18;

fn job() -> Job {
    let job = Job::with(
        Work::Windows,
        FILES,
        SETTINGS,
        ", cleanSource 'archive', sourceArchiveDir '/nowhere'",
        " PARTITIONED BY (k) OPTIONS (compactInterval 2)",
    );
    let script = std::fs::read_to_string(job.path("job.ssql")).unwrap();
    job.write_script(&script.replace("/nowhere", &job.path("archive").display().to_string()));
    job
}

/// What must have happened before, for the points that only a restart reaches.
fn before(point: &str) -> Option<&'static str> {
    match point {
        "sink-before-clean" | "sink-after-clean" => Some("sink-file-after-sync"),
        "sink-before-recover" | "sink-after-recover" => Some("sink-before-rename"),
        _ => None,
    }
}

/// The rows of an uninterrupted run.
fn expected() -> Vec<String> {
    let whole = job();
    whole.finish();
    let rows = whole.rows();
    assert!(rows.len() > 50, "{} rows", rows.len());
    rows
}

/// A part of the points, so that the parts run at the same time.
fn part(n: usize) -> impl Iterator<Item = &'static str> {
    POINTS.iter().copied().skip(n).step_by(2)
}

fn ended_at(points: impl Iterator<Item = &'static str>) {
    let expected = expected();
    for point in points {
        let job = job();
        if let Some(before) = before(point) {
            assert!(job.dies_at(before), "`{before}` was not reached");
        }
        assert!(job.dies_at(point), "`{point}` was not reached");
        // And once more, somewhere later, if it is reached again.
        job.dies_at(&format!("{point}:2"));
        job.finish();
        assert_same(&job.rows(), &expected, point);
        job.assert_clean(point);
        let verified = job.tool(&["verify"]);
        assert!(verified.status.success(), "{point}: {}", text(&verified));
    }
}

fn failed_at(points: impl Iterator<Item = &'static str>) {
    let expected = expected();
    for point in points {
        let job = job();
        if let Some(before) = before(point) {
            assert!(job.dies_at(before), "`{before}` was not reached");
        }
        let output = job.command().env("SSQL_FAILPOINT", format!("{point}:1:error")).output().unwrap();
        let said = text(&output);
        // Work beside the query may fail after its last batch: nobody waits for it then.
        let beside = point.starts_with("snapshot") || point.starts_with("compact") || point.contains("remove");
        assert!(!output.status.success() || beside, "`{point}` did not fail: {said}");
        assert!(!said.contains("panicked") && !said.contains("INTERNAL_ERROR"), "{point}: {said}");
        job.finish();
        assert_same(&job.rows(), &expected, point);
        job.assert_clean(point);
    }
}

#[test]
fn ended_at_every_other_named_point() {
    ended_at(part(0));
}

#[test]
fn ended_at_the_remaining_named_points() {
    ended_at(part(1));
}

#[test]
fn each_named_step_may_fail() {
    failed_at(part(0));
}

#[test]
fn each_remaining_named_step_may_fail() {
    failed_at(part(1));
}
