//! `kill -9` at random moments under load: what comes out is what an uninterrupted run gives.
//!
//! `SSQL_TEST_KILLS` says how many (20 by default), `SSQL_TEST_SEED` repeats a run.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::time::{Duration, Instant};

use rand::{Rng, SeedableRng};
use support::{ALL, Job, Work, assert_same, text};

/// Snapshots, retention and compaction happen all the time.
const SETTINGS: &str = "SET checkpoint.retain = 2; SET state.snapshot.bytes = 2000;";

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|v| v.parse().expect("a whole number"))
}

fn killed(work: Work) {
    let kills = number("SSQL_TEST_KILLS").unwrap_or(20).div_ceil(ALL.len() as u64);
    let seed = number("SSQL_TEST_SEED").unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        now.as_nanos() as u64 % 1_000_000
    });
    println!("{work:?}: {kills} kills, SSQL_TEST_SEED={seed}");
    let mut rng = rand::rngs::StdRng::seed_from_u64(seed ^ work as u64);
    let job = Job::with(work, 10, SETTINGS, "", " OPTIONS (compactInterval 5)");
    // How long a run over ten files takes here, so that the kills fall within it.
    let probe = Job::new(work, 10, SETTINGS);
    let began = Instant::now();
    probe.finish();
    let whole = began.elapsed();
    let mut done = 0;
    while done < kills {
        let mut child = job.command().spawn().unwrap();
        std::thread::sleep(whole.mul_f64(rng.random_range(0.02..1.0)).max(Duration::from_millis(1)));
        if child.try_wait().unwrap().is_none() {
            child.kill().unwrap();
            done += 1;
            child.wait().unwrap();
        } else {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{work:?}, seed {seed}: {}", text(&output));
            // All is read: there must be something left to do while it is killed.
            job.feed(6);
        }
    }
    job.finish();
    let what = format!("{work:?} after {kills} kills, {} files, seed {seed}", job.files());
    assert_same(&job.rows(), &job.expected(), &what);
    job.assert_clean(&what);
    let verified = job.tool(&["verify"]);
    assert!(verified.status.success(), "{what}: {}", text(&verified));
    println!("{what}: {} rows, as expected", job.rows().len());
}

#[test]
fn windowed_aggregation() {
    killed(Work::Windows);
}

#[test]
fn sessions() {
    killed(Work::Sessions);
}

#[test]
fn deduplication() {
    killed(Work::Dedup);
}

#[test]
fn outer_join() {
    killed(Work::OuterJoin);
}
