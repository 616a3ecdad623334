//! What a micro-batch costs beyond its rows: `cargo bench -p ssql-tests --bench overhead`.
//!
//! A stateful query (five-minute averages per device) over a folder of JSON files into memory, with a checkpoint on the
//! local disk: the time of a batch of one 100-row file, of a look that finds nothing new, and of both without a checkpoint.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::time::{Duration, Instant};

use ssql::session::{Session, SessionConfig};
use ssql_grammar::SourceFile;

const BATCHES: usize = 300;
const POLLS: usize = 2000;

fn main() {
    for checkpoint in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("in")).unwrap();
        let mut session =
            Session::new(SessionConfig { base_dir: dir.path().to_path_buf(), manual: true, ..Default::default() })
                .unwrap();
        let mut run = |text: &str| {
            session.run_script(&SourceFile::new("bench", text)).map_err(|f| f.to_string()).unwrap();
        };
        let location = if checkpoint { "CHECKPOINT LOCATION 'checkpoint'" } else { "" };
        run(&format!(
            "CREATE STREAM s (event_time TIMESTAMP, device_id STRING, temperature DOUBLE,
               WATERMARK FOR event_time DELAY OF INTERVAL 10 MINUTES)
               USING json LOCATION 'in' OPTIONS (maxFilesPerTrigger 1);
             CREATE SINK o USING memory;
             INSERT INTO o SELECT window_start, device_id, avg(temperature) AS t, count(*) AS n
             FROM s GROUP BY TUMBLE(event_time, INTERVAL 5 MINUTES), device_id EMIT UPDATE {location};"
        ));
        let mut batches = Vec::new();
        for n in 0..BATCHES {
            write(dir.path(), n);
            batches.push(time(|| run("PROCESS ALL AVAILABLE;")));
        }
        let polls = (0..POLLS).map(|_| time(|| run("PROCESS ALL AVAILABLE;"))).collect();
        let what = if checkpoint { "with a checkpoint" } else { "without a checkpoint" };
        report(&format!("100 rows {what}"), batches);
        report(&format!("nothing new {what}"), polls);
    }
}

/// A file of 100 readings of the n-th minute, put in place by rename.
fn write(dir: &Path, n: usize) {
    let line = |i: usize| {
        format!(
            "{{\"event_time\":\"2024-01-15T{:02}:{:02}:{:02}Z\",\"device_id\":\"device-{i:03}\",\"temperature\":{}.25}}\n",
            n / 60,
            n % 60,
            i % 60,
            20 + i % 10
        )
    };
    let text: String = (0..100).map(line).collect();
    std::fs::write(dir.join(".new"), text).unwrap();
    std::fs::rename(dir.join(".new"), dir.join(format!("in/{n:05}.json"))).unwrap();
}

fn time(run: impl FnOnce()) -> Duration {
    let began = Instant::now();
    run();
    began.elapsed()
}

fn report(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!("{what:32} p50 {:>10.3?}  p99 {:>10.3?}  max {:>10.3?}", at(0.5), at(0.99), at(1.0));
}
