//! Jobs for the crash tests: scripts over files that are made up on the spot, run by the binary, and what any plain
//! reader finds in the sink's folder afterwards.
#![allow(dead_code, missing_docs)] // each test uses a part of it

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// What a job computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    Windows,
    Sessions,
    Dedup,
    OuterJoin,
}

pub const ALL: [Work; 4] = [Work::Windows, Work::Sessions, Work::Dedup, Work::OuterJoin];

impl Work {
    fn query(self) -> &'static str {
        match self {
            Work::Windows => {
                "SELECT window_start, k, sum(v) AS total, count(*) AS n FROM a
                 GROUP BY TUMBLE(ts, INTERVAL 10 SECONDS), k"
            }
            Work::Sessions => {
                "SELECT window_start, window_end, k, count(*) AS n FROM a GROUP BY SESSION(ts, INTERVAL 4 SECONDS), k"
            }
            Work::Dedup => "SELECT DISTINCT ON (ts, k) ts, k FROM a",
            Work::OuterJoin => {
                "SELECT l.ts AS lt, l.k AS k, r.v AS rv FROM a AS l LEFT JOIN b AS r
                 ON l.k = r.k AND r.ts BETWEEN l.ts AND l.ts + INTERVAL 3 SECONDS"
            }
        }
    }
}

/// A folder with a script and its input.
pub struct Job {
    dir: tempfile::TempDir,
    work: Work,
    /// Files so far.
    files: std::cell::Cell<u64>,
}

impl Job {
    /// With that many files of input. Each is a micro-batch. `settings` are statements in front of the query.
    pub fn new(work: Work, files: u64, settings: &str) -> Job {
        Job::with(work, files, settings, "", "")
    }

    /// As [`Job::new`], with further options of the source and the sink.
    pub fn with(work: Work, files: u64, settings: &str, source: &str, sink: &str) -> Job {
        let job = Job { dir: tempfile::tempdir().unwrap(), work, files: 0.into() };
        let query = work.query();
        job.write_script(&job.script(settings, source, sink, query));
        for name in ["a", "b"] {
            std::fs::create_dir(job.path(name)).unwrap();
        }
        job.feed(files);
        job
    }

    pub fn script(&self, settings: &str, source: &str, sink: &str, query: &str) -> String {
        let stream = |name: &str| {
            format!(
                "CREATE STREAM {name} (ts TIMESTAMP, k STRING, v BIGINT, WATERMARK FOR ts DELAY OF INTERVAL 5 SECONDS)
                 USING json LOCATION '{name}' OPTIONS (maxFilesPerTrigger 1{source});\n"
            )
        };
        format!(
            "{settings}\n{}{}CREATE SINK out USING json LOCATION 'out'{sink};
             INSERT INTO out {query} EMIT APPEND TRIGGER AVAILABLE NOW CHECKPOINT LOCATION 'checkpoint';\n",
            stream("a"),
            stream("b"),
        )
    }

    pub fn write_script(&self, text: &str) {
        std::fs::write(self.path("job.ssql"), text).unwrap();
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Adds files. Rows come at most 4 seconds out of order, so none is ever late, and what comes out does not hang on
    /// where batches end.
    pub fn feed(&self, files: u64) {
        for _ in 0..files {
            let n = self.files.get();
            self.files.set(n + 1);
            for (stream, odd) in [("a", 0), ("b", 1)] {
                let mut text = String::new();
                for i in 0..12u64 {
                    let at = n * 12 + i;
                    let jitter = (at * 7919 + odd * 13) % 5;
                    let second = 100 + at - jitter;
                    let key = (at * 31 + odd) % 5;
                    let time = format!("2024-05-01 {:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60);
                    text.push_str(&format!("{{\"ts\":\"{time}\",\"k\":\"key{key}\",\"v\":{at}}}\n"));
                    if at.is_multiple_of(3) {
                        text.push_str(&format!("{{\"ts\":\"{time}\",\"k\":\"key{key}\",\"v\":1}}\n"));
                    }
                }
                // It appears whole, and its time says its turn.
                let target = self.path(stream).join(format!("{n:06}.json"));
                let hidden = self.path(stream).join(format!(".{n:06}"));
                std::fs::write(&hidden, text).unwrap();
                let time = std::time::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + n);
                std::fs::File::options().write(true).open(&hidden).unwrap().set_modified(time).unwrap();
                std::fs::rename(&hidden, &target).unwrap();
            }
        }
    }

    pub fn files(&self) -> u64 {
        self.files.get()
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ssql"));
        command.args(["run", "--jit", "off", "--threads", "2"]).arg(self.path("job.ssql"));
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    pub fn run(&self) -> Output {
        self.command().output().unwrap()
    }

    /// Runs to the end.
    pub fn finish(&self) {
        let output = self.run();
        assert!(output.status.success(), "{}", text(&output));
    }

    /// Runs with a fail point armed: whether the process ended there.
    pub fn dies_at(&self, point: &str) -> bool {
        let output = self.command().env("SSQL_FAILPOINT", point).output().unwrap();
        match output.status.signal() {
            Some(6) => true,
            None if output.status.success() => false,
            _ => panic!("`{point}`: {:?} {}", output.status, text(&output)),
        }
    }

    pub fn tool(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ssql"));
        command.arg("checkpoint").arg(arguments[0]).arg(self.path("checkpoint")).args(&arguments[1..]);
        command.output().unwrap()
    }

    /// The rows that a reader of the sink's folder sees who knows nothing of us, sorted.
    pub fn rows(&self) -> Vec<String> {
        self.rows_in("out")
    }

    /// As [`Job::rows`], of another sink's folder.
    pub fn rows_in(&self, folder: &str) -> Vec<String> {
        let mut lines = Vec::new();
        read_folder(&self.path(folder), &mut lines);
        lines.sort();
        lines
    }

    /// The rows of an uninterrupted run over the same files.
    pub fn expected(&self) -> Vec<String> {
        let whole = Job::new(self.work, self.files(), "");
        whole.finish();
        let rows = whole.rows();
        assert!(rows.len() > 5, "{:?} gives {} rows", self.work, rows.len());
        rows
    }

    /// Nothing is left in the staging folder, and nothing visible is empty or half.
    pub fn assert_clean(&self, what: &str) {
        let staging = self.path("out/_ssql_log/staging");
        let left: Vec<_> = std::fs::read_dir(staging).into_iter().flatten().flatten().map(|e| e.file_name()).collect();
        assert!(left.is_empty(), "{what}: {left:?} is left");
    }
}

fn read_folder(dir: &Path, lines: &mut Vec<String>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(['.', '_']) {
            continue;
        }
        if entry.path().is_dir() {
            read_folder(&entry.path(), lines);
            continue;
        }
        let text = std::fs::read_to_string(entry.path()).unwrap();
        assert!(text.ends_with("}\n"), "{name} is cut off");
        lines.extend(text.lines().map(str::to_owned));
    }
}

pub fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Fails with the first rows that differ.
pub fn assert_same(actual: &[String], expected: &[String], what: &str) {
    if actual == expected {
        return;
    }
    let missing: Vec<_> = expected.iter().filter(|r| !actual.contains(r)).take(5).collect();
    let extra: Vec<_> = actual.iter().filter(|r| !expected.contains(r)).take(5).collect();
    panic!("{what}: {} rows, {} expected; missing {missing:?}; extra {extra:?}", actual.len(), expected.len());
}

/// Copies a folder with all that is in it.
pub fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), &target).unwrap();
            let time = entry.metadata().unwrap().modified().unwrap();
            std::fs::File::options().write(true).open(&target).unwrap().set_modified(time).unwrap();
        }
    }
}
