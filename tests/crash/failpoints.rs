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
    let script = script.replace("/nowhere", &job.path("archive").display().to_string());
    // Late rows go to a second sink, in the same transaction.
    let script = script.replace("EMIT APPEND", "EMIT APPEND LATE DATA TO late");
    job.write_script(
        &script.replace("INSERT INTO out", "CREATE SINK late USING json LOCATION 'late';\nINSERT INTO out"),
    );
    for n in (3..FILES).step_by(3) {
        let file = job.path("a").join(format!("{n:06}.json"));
        let modified = file.metadata().unwrap().modified().unwrap();
        let mut text = std::fs::read_to_string(&file).unwrap();
        text.push_str(&format!("{{\"ts\":\"2024-05-01 00:00:{n:02}\",\"k\":\"late\",\"v\":{n}}}\n"));
        std::fs::write(&file, text).unwrap();
        std::fs::File::options().write(true).open(&file).unwrap().set_modified(modified).unwrap();
    }
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

/// The rows of an uninterrupted run, and its late ones.
fn expected() -> [Vec<String>; 2] {
    let whole = job();
    whole.finish();
    let [rows, late] = rows(&whole);
    assert!(rows.len() > 50, "{} rows", rows.len());
    assert_eq!(late.len(), 5, "{late:?}");
    [rows, late]
}

fn rows(job: &Job) -> [Vec<String>; 2] {
    [job.rows(), job.rows_in("late")]
}

fn assert_all_same(job: &Job, expected: &[Vec<String>; 2], what: &str) {
    let [rows, late] = rows(job);
    assert_same(&rows, &expected[0], what);
    assert_same(&late, &expected[1], &format!("{what}: late rows"));
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
        assert_all_same(&job, &expected, point);
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
        assert_all_same(&job, &expected, point);
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
