//! Prometheus metrics of a session's queries, and the small HTTP server that shows them (`--metrics ADDR`).
//!
//! The names are documented in spec/observability.md.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ssql_engine::progress::QueryProgress;

/// Upper bounds of the batch durations' buckets, seconds.
const BUCKETS: &[f64] = &[0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0];
/// A client that says nothing for so long is left.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the queries of a process have done.
#[derive(Debug, Default)]
pub struct Metrics {
    queries: Mutex<BTreeMap<String, Counts>>,
}

/// Of one query.
#[derive(Debug, Default, Clone)]
struct Counts {
    batches: u64,
    input_rows: u64,
    output_rows: u64,
    late_rows: u64,
    bad_records: u64,
    seconds: f64,
    buckets: Vec<u64>,
    last: Option<QueryProgress>,
}

impl Metrics {
    /// Takes a progress up.
    pub fn note(&self, p: &QueryProgress) {
        let mut queries = self.queries.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = queries.entry(p.name.clone().unwrap_or_default()).or_default();
        counts.batches += 1;
        counts.input_rows += p.num_input_rows;
        counts.output_rows += u64::try_from(p.sink.num_output_rows).unwrap_or(0);
        counts.late_rows += p.state_operators.iter().map(|s| s.num_rows_dropped_by_watermark).sum::<u64>();
        let bad = p.sources.iter().filter_map(|s| s.metrics.get("badRecords")?.parse::<u64>().ok());
        counts.bad_records += bad.sum::<u64>();
        let seconds = p.batch_duration as f64 / 1000.0;
        counts.seconds += seconds;
        counts.buckets.resize(BUCKETS.len(), 0);
        for (bucket, bound) in counts.buckets.iter_mut().zip(BUCKETS) {
            *bucket += u64::from(seconds <= *bound);
        }
        counts.last = Some(p.clone());
    }

    /// All metrics in Prometheus' text format.
    pub fn text(&self) -> String {
        let queries = self.queries.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut out = String::new();
        let counter = |out: &mut String, name: &str, help: &str, value: &dyn Fn(&Counts) -> u64| {
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} counter");
            for (query, counts) in &queries {
                let _ = writeln!(out, "{name}{{query=\"{}\"}} {}", label(query), value(counts));
            }
        };
        counter(&mut out, "ssql_batches_total", "Micro-batches or epochs committed.", &|c| c.batches);
        counter(&mut out, "ssql_input_rows_total", "Rows read.", &|c| c.input_rows);
        counter(&mut out, "ssql_output_rows_total", "Rows delivered to the sink.", &|c| c.output_rows);
        counter(&mut out, "ssql_late_rows_total", "Rows dropped behind the watermark.", &|c| c.late_rows);
        counter(&mut out, "ssql_bad_records_total", "Records that could not be decoded.", &|c| c.bad_records);

        let name = "ssql_batch_duration_seconds";
        let _ = writeln!(out, "# HELP {name} Time of a micro-batch.\n# TYPE {name} histogram");
        for (query, counts) in &queries {
            let query = label(query);
            for (bound, n) in BUCKETS.iter().zip(&counts.buckets) {
                let _ = writeln!(out, "{name}_bucket{{query=\"{query}\",le=\"{bound}\"}} {n}");
            }
            let _ = writeln!(out, "{name}_bucket{{query=\"{query}\",le=\"+Inf\"}} {}", counts.batches);
            let _ = writeln!(out, "{name}_sum{{query=\"{query}\"}} {}", counts.seconds);
            let _ = writeln!(out, "{name}_count{{query=\"{query}\"}} {}", counts.batches);
        }

        let last = || queries.iter().filter_map(|(q, c)| Some((label(q), c.last.as_ref()?)));
        let mut gauge = |name: &str, help: &str, lines: Vec<(String, f64)>| {
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} gauge");
            for (labels, value) in lines {
                let _ = writeln!(out, "{name}{{{labels}}} {value}");
            }
        };
        let of_query = |value: &dyn Fn(&QueryProgress) -> Option<f64>| -> Vec<(String, f64)> {
            last().filter_map(|(q, p)| Some((format!("query=\"{q}\""), value(p)?))).collect()
        };
        let rate = of_query(&|p| Some(p.input_rows_per_second));
        gauge("ssql_input_rows_per_second", "Rows that arrived a second, last batch.", rate);
        let rate = of_query(&|p| Some(p.processed_rows_per_second));
        gauge("ssql_processed_rows_per_second", "Rows processed a second, last batch.", rate);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64());
        let seconds = |p: &QueryProgress| {
            let watermark: jiff::Timestamp = p.event_time.get("watermark")?.parse().ok()?;
            Some(watermark.as_millisecond() as f64 / 1000.0)
        };
        gauge("ssql_watermark_timestamp_seconds", "The query's watermark, Unix time.", of_query(&seconds));
        let lag = of_query(&|p| seconds(p).map(|w| now - w));
        gauge("ssql_watermark_lag_seconds", "How far the watermark is behind the clock.", lag);

        let of_state = |value: &dyn Fn(&ssql_engine::progress::StateOperatorProgress) -> u64| -> Vec<(String, f64)> {
            let mut lines = Vec::new();
            for (q, p) in last() {
                for (i, s) in p.state_operators.iter().enumerate() {
                    let labels = format!("query=\"{q}\",operator=\"{i}\",kind=\"{}\"", s.operator_name);
                    lines.push((labels, value(s) as f64));
                }
            }
            lines
        };
        gauge("ssql_state_rows", "Rows in the state of an operator.", of_state(&|s| s.num_rows_total));
        gauge("ssql_state_bytes", "Memory of the state of an operator.", of_state(&|s| s.memory_used_bytes));

        let mut lags = Vec::new();
        for (q, p) in last() {
            for (i, s) in p.sources.iter().enumerate() {
                let number = |o: &Option<serde_json::Value>| o.as_ref().and_then(serde_json::Value::as_i64);
                if let (Some(newest), Some(end)) = (number(&s.latest_offset), number(&s.end_offset)) {
                    lags.push((format!("query=\"{q}\",source=\"{i}\""), (newest - end).max(0) as f64));
                }
            }
        }
        gauge("ssql_source_lag", "Offsets that the source has and the query has not read.", lags);
        out
    }

    /// Answers `GET /metrics` at the address, on a thread of its own. Returns where it listens.
    ///
    /// # Errors
    /// The address cannot be listened at.
    pub fn serve(self: &Arc<Metrics>, address: &str) -> std::io::Result<SocketAddr> {
        let bare = address.parse::<u16>().map(|port| format!("127.0.0.1:{port}"));
        let address = bare.unwrap_or_else(|_| address.to_owned());
        let addresses: Vec<SocketAddr> = address.to_socket_addrs()?.collect();
        let listener = TcpListener::bind(addresses.as_slice())?;
        let local = listener.local_addr()?;
        let metrics = Arc::clone(self);
        std::thread::Builder::new().name("ssql-metrics".to_owned()).spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that breaks off is its own concern.
                let _ = metrics.answer(stream);
            }
        })?;
        Ok(local)
    }

    fn answer(&self, stream: TcpStream) -> std::io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut reader = BufReader::new(std::io::Read::take(&stream, 1 << 14));
        let mut request = String::new();
        reader.read_line(&mut request)?;
        let mut line = String::new();
        while reader.read_line(&mut line)? > 2 {
            line.clear();
        }
        let path = request.split_whitespace().nth(1).unwrap_or("");
        let (status, body) = match path.split('?').next() {
            _ if !request.starts_with("GET ") => ("405 Method Not Allowed", "only GET is answered\n".to_owned()),
            Some("/metrics") => ("200 OK", self.text()),
            _ => ("404 Not Found", "the metrics are at /metrics\n".to_owned()),
        };
        let mut stream = &stream;
        write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{body}",
            body.len()
        )
    }
}

/// A label's value, escaped.
fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
