//! The main job on real input: hourly weather of three airports through a six-hour tumbling average into Parquet, by
//! the binary, against Spark's answer; whole, killed at random moments, ended at each named point, on each route.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{Float64Type, Int64Type, TimestampMicrosecondType};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use rand::{Rng, SeedableRng};

const SCRIPT: &str = "
CREATE STREAM readings (
  event_time TIMESTAMP, device_id STRING, temperature DOUBLE,
  WATERMARK FOR event_time DELAY OF INTERVAL 2 HOURS
) USING json LOCATION 'incoming' OPTIONS (maxFilesPerTrigger 1);
CREATE SINK out USING parquet LOCATION 'out';
INSERT INTO out
SELECT window_start, window_end, device_id, avg(temperature) AS avg_temp, count(*) AS readings,
       avg(temperature) > 35.0 AS is_alert
FROM readings GROUP BY TUMBLE(event_time, INTERVAL 6 HOURS), device_id
EMIT APPEND TRIGGER AVAILABLE NOW CHECKPOINT LOCATION 'checkpoint';
";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

/// A folder with the script and the input, whose modification times follow the months.
struct Job {
    dir: tempfile::TempDir,
}

impl Job {
    fn new() -> Job {
        let job = Job { dir: tempfile::tempdir().unwrap() };
        std::fs::create_dir(job.path("incoming")).unwrap();
        std::fs::write(job.path("job.ssql"), SCRIPT).unwrap();
        for month in 1..=12 {
            job.arrive(month);
        }
        job
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn arrive(&self, month: u32) {
        let name = format!("2013-{month:02}.json");
        let target = self.path("incoming").join(&name);
        std::fs::copy(root().join("examples/data/nyc-weather").join(&name), &target).unwrap();
        let time = std::time::UNIX_EPOCH + Duration::from_secs(1_400_000_000 + u64::from(month));
        std::fs::File::options().write(true).open(&target).unwrap().set_modified(time).unwrap();
    }

    fn command(&self, jit: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ssql"));
        command.args(["run", "--jit", jit]).arg(self.path("job.ssql")).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    fn run(&self, jit: &str) {
        let output = self.command(jit).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// The rows of all Parquet files that any reader of the folder sees, as lines of the expected file, sorted.
    fn rows(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for entry in std::fs::read_dir(self.path("out")).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if name.starts_with(['.', '_']) || !name.ends_with(".parquet") {
                continue;
            }
            let file = std::fs::File::open(&path).unwrap();
            for batch in ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap() {
                let batch = batch.unwrap();
                let time = |c: usize, row: usize| {
                    let micros = batch.column(c).as_primitive::<TimestampMicrosecondType>().value(row);
                    let t = jiff::Timestamp::from_microsecond(micros).unwrap();
                    t.strftime("%Y-%m-%d %H:%M:%S").to_string()
                };
                let device = arrow::compute::cast(batch.column(2), &arrow::datatypes::DataType::Utf8).unwrap();
                for row in 0..batch.num_rows() {
                    let avg = batch.column(3).as_primitive::<Float64Type>();
                    let alert = batch.column(5).as_boolean();
                    lines.push(format!(
                        "{},{},{},{},{},{}",
                        time(0, row),
                        time(1, row),
                        device.as_string::<i32>().value(row),
                        if avg.is_null(row) {
                            String::new()
                        } else {
                            format!("{:?}", (avg.value(row) * 1e6).round() / 1e6 + 0.0)
                        },
                        batch.column(4).as_primitive::<Int64Type>().value(row),
                        match (alert.is_null(row), alert.is_valid(row) && alert.value(row)) {
                            (true, _) => "",
                            (_, true) => "True",
                            (_, false) => "False",
                        },
                    ));
                }
            }
        }
        lines.sort();
        lines
    }
}

fn expected() -> Vec<String> {
    let text = std::fs::read_to_string(root().join("tests/data/nyc-six-hour.csv")).unwrap();
    let mut lines: Vec<String> = text.lines().skip(1).map(str::to_owned).collect();
    lines.sort();
    lines
}

fn assert_rows(actual: &[String], what: &str) {
    let expected = expected();
    if actual == expected.as_slice() {
        return;
    }
    let (a, e): (BTreeSet<_>, BTreeSet<_>) = (actual.iter().collect(), expected.iter().collect());
    let missing: Vec<_> = e.difference(&a).take(5).collect();
    let extra: Vec<_> = a.difference(&e).take(5).collect();
    panic!("{what}: {} rows, {} expected; missing {missing:?}; extra {extra:?}", actual.len(), expected.len());
}

#[test]
fn sparks_answer_on_every_route() {
    assert_eq!(expected().len(), 4362);
    for jit in ["on", "off", "verify"] {
        let job = Job::new();
        job.run(jit);
        assert_rows(&job.rows(), jit);
    }
}

#[test]
fn a_second_run_adds_nothing_and_new_files_are_picked_up_by_the_next() {
    let job = Job::new();
    for month in 10..=12 {
        std::fs::remove_file(job.path("incoming").join(format!("2013-{month:02}.json"))).unwrap();
    }
    job.run("on");
    let first = job.rows();
    assert!(first.len() < 4362);
    job.run("on");
    assert_eq!(job.rows(), first, "a run with nothing new adds nothing");
    for month in 10..=12 {
        job.arrive(month);
    }
    job.run("on");
    assert_rows(&job.rows(), "after new files");
}

/// Another implementation reads the same rows.
#[test]
fn a_foreign_reader_sees_the_same_rows() {
    let Some(python) = std::env::var_os("SSQL_TEST_PYTHON") else {
        eprintln!("SSQL_TEST_PYTHON is not set (.ci/test sets it): our own reader has to do");
        return;
    };
    let job = Job::new();
    job.run("on");
    let program = "
import csv, glob, sys
import pyarrow.parquet as pq
rows = []
for f in glob.glob(sys.argv[1] + '/*.parquet'):
    for r in pq.read_table(f).to_pylist():
        t = lambda v: v.strftime('%Y-%m-%d %H:%M:%S')
        rows.append([t(r['window_start']), t(r['window_end']), r['device_id'],
                     None if r['avg_temp'] is None else round(r['avg_temp'], 6), r['readings'], r['is_alert']])
expected = []
for r in csv.DictReader(open(sys.argv[2])):
    b = {'True': True, 'False': False}.get(r['is_alert'])
    expected.append([r['window_start'], r['window_end'], r['device_id'],
                     float(r['avg_temp']) if r['avg_temp'] else None, int(r['readings']), b])
key = lambda r: tuple(str(c) for c in r)
assert sorted(rows, key=key) == sorted(expected, key=key), (len(rows), len(expected))
";
    let output = Command::new(python)
        .args(["-c", program])
        .arg(job.path("out"))
        .arg(root().join("tests/data/nyc-six-hour.csv"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn killed_at_ten_random_moments_and_resumed() {
    let seed = std::env::var("SSQL_TEST_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(20_130_101);
    println!("seed {seed}");
    let mut rng = rand::rngs::StdRng::seed_from_u64(seed);
    let job = Job::new();
    // How long a whole run takes here, so that the kills fall within it.
    let probe = Job::new();
    let began = std::time::Instant::now();
    probe.run("on");
    let whole = began.elapsed();
    for _ in 0..10 {
        let mut child = job.command("on").spawn().unwrap();
        std::thread::sleep(whole.mul_f64(rng.random_range(0.05..0.6)));
        let _ = child.kill();
        child.wait().unwrap();
    }
    job.run("on");
    assert_rows(&job.rows(), &format!("after ten kills, seed {seed}"));
}
