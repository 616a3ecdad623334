//! Runs a query over rows in an order, cut into batches and processes, and gives the rows that it emitted.

use std::fmt::Write as _;
use std::path::Path;

use ssql::render::cells;
use ssql::session::{Outcome, Session, SessionConfig};
use ssql_grammar::SourceFile;

use crate::rows::{Arrival, Then, closing};

/// Rows as text, in the order of emission.
pub type Rows = Vec<Vec<String>>;

/// How a query is run.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    /// Which of the two orders, and whose cuts; `None` is everything in one batch.
    pub order: Option<usize>,
    /// Processes are replaced where the order says so.
    pub restarts: bool,
    pub threads: usize,
    pub jit: &'static str,
    /// The streams are folders of JSON files with up to three files a batch, not memory.
    pub files: bool,
}

/// The rows that `query` emits; a failure's text otherwise.
pub fn run(query: &str, mode: &str, streams: usize, rows: &[Arrival], setup: Setup) -> Result<Rows, String> {
    let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
    let place = setup.order.unwrap_or(0);
    let mut ordered: Vec<Arrival> = rows.to_vec();
    ordered.sort_by_key(|r| r.place[place]);
    let mut batches: Vec<(Vec<Arrival>, bool)> = Vec::new();
    let mut batch = Vec::new();
    for row in ordered {
        let then = if setup.order.is_some() { row.then[place] } else { Then::Nothing };
        batch.push(row);
        if then != Then::Nothing {
            batches.push((std::mem::take(&mut batch), then == Then::Restart && setup.restarts));
        }
    }
    if setup.order.is_some() {
        batches.push((std::mem::take(&mut batch), false));
    }
    batch.extend(closing(streams));
    batches.push((batch, false));

    let mut emitted = Rows::new();
    let mut process = Process::start(dir.path(), query, mode, streams, setup, &[])?;
    let mut fed = Vec::new();
    for (n, (batch, restart)) in batches.into_iter().enumerate() {
        process.feed(&batch, n)?;
        process.execute("PROCESS ALL AVAILABLE;")?;
        fed.push(batch);
        if restart {
            let rows = process.end()?;
            if mode != "COMPLETE" {
                emitted.extend(rows);
            }
            process = Process::start(dir.path(), query, mode, streams, setup, &fed)?;
        }
    }
    emitted.extend(process.end()?);
    Ok(emitted)
}

struct Process<'a> {
    dir: &'a Path,
    files: bool,
    session: Session,
}

impl<'a> Process<'a> {
    /// A new process on the checkpoint in `dir`. `fed` is what memory streams held before.
    fn start(
        dir: &'a Path,
        query: &str,
        mode: &str,
        streams: usize,
        setup: Setup,
        fed: &[Vec<Arrival>],
    ) -> Result<Process<'a>, String> {
        let config = SessionConfig {
            base_dir: dir.to_path_buf(),
            threads: setup.threads,
            jit: Some(setup.jit.to_owned()),
            manual: true,
            ..SessionConfig::default()
        };
        let session = Session::new(config).map_err(|e| e.to_string())?;
        let mut process = Process { dir, files: setup.files, session };
        for stream in &["a", "b"][..streams] {
            let using = if setup.files {
                std::fs::create_dir_all(dir.join(stream)).map_err(|e| e.to_string())?;
                format!("json LOCATION '{stream}'")
            } else {
                "memory".to_owned()
            };
            process.execute(&format!(
                "CREATE STREAM {stream} (ts TIMESTAMP, k STRING, n INT, d DECIMAL(10, 2), x DOUBLE, g INT, b BIGINT,
                   WATERMARK FOR ts DELAY OF INTERVAL 10 SECONDS) USING {using};"
            ))?;
        }
        if !setup.files {
            for (n, batch) in fed.iter().enumerate() {
                process.feed(batch, n)?;
            }
        }
        process.execute("CREATE SINK out USING memory;")?;
        process.execute(&format!("INSERT INTO out {query} EMIT {mode} CHECKPOINT LOCATION 'checkpoint';"))?;
        Ok(process)
    }

    fn execute(&mut self, sql: &str) -> Result<Vec<Outcome>, String> {
        self.session.run_script(&SourceFile::new("property", sql)).map_err(|f| f.to_string())
    }

    /// Adds rows to the streams: one addition to each, or up to three files.
    fn feed(&mut self, rows: &[Arrival], batch: usize) -> Result<(), String> {
        for (stream, name) in ["a", "b"].into_iter().enumerate() {
            let rows: Vec<&Arrival> = rows.iter().filter(|r| r.stream == stream).collect();
            if rows.is_empty() {
                continue;
            }
            if self.files {
                for (n, part) in rows.chunks(rows.len().div_ceil(3)).enumerate() {
                    let text: String = part.iter().map(|r| json(r) + "\n").collect();
                    let path = self.dir.join(name).join(format!("{batch:03}-{n}.json"));
                    std::fs::write(path, text).map_err(|e| e.to_string())?;
                }
            } else {
                let values: Vec<String> = rows.iter().map(|r| values(r)).collect();
                self.execute(&format!("INSERT INTO {name} VALUES {};", values.join(", ")))?;
            }
        }
        Ok(())
    }

    /// Ends the process; the rows in its sink.
    fn end(mut self) -> Result<Rows, String> {
        let outcomes = self.execute("SELECT * FROM out;");
        self.session.stop_all();
        let zone = self.session.time_zone();
        let Some(Outcome::Rows { batches, .. }) = outcomes?.pop() else { return Err("no rows".to_owned()) };
        let text = |cell: Option<String>| cell.unwrap_or_else(|| "NULL".to_owned());
        Ok(cells(&batches, &zone).into_iter().map(|row| row.into_iter().map(text).collect()).collect())
    }
}

/// A row for VALUES.
pub fn values(r: &Arrival) -> String {
    let r = &r.row;
    let or_null = |text: Option<String>| text.unwrap_or_else(|| "NULL".to_owned());
    format!(
        "({}, {}, {}, {}, {}, {}, {})",
        or_null(r.ts.map(|t| format!("timestamp_micros({t})"))),
        or_null(r.k.map(|k| format!("'{k}'"))),
        or_null(r.n.map(|n| n.to_string())),
        or_null(r.d.map(str::to_owned)),
        or_null(r.x.map(|x| format!("CAST('{x}' AS DOUBLE)"))),
        r.g,
        r.b
    )
}

/// A row as a JSON object.
fn json(r: &Arrival) -> String {
    let r = &r.row;
    let mut text = String::from("{");
    if let Some(ts) = r.ts {
        let time = jiff::Timestamp::from_microsecond(ts).expect("times of this century or about 1970");
        let _ = write!(text, "\"ts\":\"{time:.6}\",");
    }
    if let Some(k) = r.k {
        let _ = write!(text, "\"k\":\"{k}\",");
    }
    if let Some(n) = r.n {
        let _ = write!(text, "\"n\":{n},");
    }
    if let Some(d) = r.d {
        let _ = write!(text, "\"d\":{d},");
    }
    if let Some(x) = r.x {
        let _ = write!(text, "\"x\":{x},");
    }
    let _ = write!(text, "\"g\":{},\"b\":{}}}", r.g, r.b);
    text
}
