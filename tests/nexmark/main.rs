//! The Nexmark queries run by the binary: the same rows in one run and in many, and those that DuckDB finds in the same
//! events.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// Each query, with the events and the pace at which some of its windows close.
const QUERIES: &[(&str, u32, u32)] = &[
    ("q0", 40_000, 1_000),
    ("q1", 40_000, 1_000),
    ("q2", 40_000, 1_000),
    ("q3", 40_000, 1_000),
    ("q5", 40_000, 1_000),
    ("q7", 40_000, 1_000),
    ("q8", 40_000, 1_000),
    ("q11", 40_000, 1_000),
    ("q13", 40_000, 1_000),
    ("q14", 40_000, 1_000),
    ("q17", 200_000, 1),
    ("q20", 40_000, 1_000),
    ("q21", 40_000, 1_000),
    ("q22", 40_000, 1_000),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

/// Runs a script of the examples to its end.
fn run(script: &str, events: u32, rate: u32, folders: &[(&str, &Path)]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ssql"));
    command.args(["run", "--quiet"]).arg(root().join(format!("examples/nexmark/{script}.ssql")));
    command.args(["--param", &format!("events={events}"), "--param", &format!("rate={rate}")]);
    for (name, folder) in folders {
        command.args(["--param", &format!("{name}={}", folder.display())]);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Rows in the Parquet files of a folder.
fn rows(folder: &Path) -> usize {
    let files = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    files
        .filter(|p| p.extension().is_some_and(|e| e == "parquet"))
        .map(|p| {
            let file = std::fs::File::open(p).unwrap();
            let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
            reader.metadata().file_metadata().num_rows() as usize
        })
        .sum()
}

/// Each query over a stream that has a third of its events at first and all when it is resumed.
#[test]
fn resumed_queries_give_what_duckdb_gives_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut answers = Vec::new();
    for (query, events, rate) in QUERIES {
        let (out, checkpoint) = (dir.path().join(query), dir.path().join(format!("{query}-checkpoint")));
        let folders = [("out", out.as_path()), ("checkpoint", checkpoint.as_path())];
        run(query, events / 3, *rate, &folders);
        run(query, *events, *rate, &folders);
        assert!(rows(&out) > 0, "{query} found nothing");
        answers.push((events, rate, format!("{query}={}", out.display())));
    }
    let Some(python) = std::env::var_os("SSQL_TEST_PYTHON") else {
        eprintln!("SSQL_TEST_PYTHON is not set (.ci/test sets it): nobody else answers the queries");
        return;
    };
    for group in answers.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        let (events, rate, _) = group[0];
        let exported = dir.path().join(format!("events-{events}-{rate}"));
        if !exported.exists() {
            let place = |name: &str| exported.join(name);
            let (persons, auctions, bids) = (place("persons"), place("auctions"), place("bids"));
            let checkpoint = place("checkpoints");
            let folders =
                [("persons", &*persons), ("auctions", &*auctions), ("bids", &*bids), ("checkpoint", &*checkpoint)];
            run("export", *events, *rate, &folders);
        }
        let output = Command::new(&python)
            .arg(root().join("tests/nexmark/compare.py"))
            .arg(&exported)
            .args(group.iter().map(|(_, _, pair)| pair))
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        println!("{told}");
        assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// Windows in processing time differ from run to run, but each bid is in one of them.
#[test]
fn processing_time_windows_hold_every_bid_once() {
    let dir = tempfile::tempdir().unwrap();
    let (out, checkpoint) = (dir.path().join("q12"), dir.path().join("q12-checkpoint"));
    run("q12", 20_000, 1_000, &[("out", &*out), ("checkpoint", &*checkpoint)]);
    let mut bids = 0;
    for path in std::fs::read_dir(&out).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_file()) {
        let file = std::fs::File::open(path).unwrap();
        let batches =
            parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
        for batch in batches {
            let counts = batch.unwrap().column_by_name("bid_count").unwrap().clone();
            let counts = counts.as_any().downcast_ref::<arrow::array::Int64Array>().unwrap();
            bids += counts.values().iter().sum::<i64>();
        }
    }
    // Of 50 events 46 are bids.
    assert_eq!(bids, 20_000 / 50 * 46);
}
