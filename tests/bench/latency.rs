//! From a row's birth to its delivery: `cargo bench -p ssql-tests --bench latency`.
//!
//! Rate, memory and socket sources under the default trigger and TRIGGER CONTINUOUS, into a sink of this program that looks
//! at the clock when rows are delivered. A row carries the microsecond of its birth.
#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use ssql::session::{Session, SessionConfig};
use ssql_engine::connector::{Connector, ConnectorError, Declaration, Holder, Sink, SinkBatch, Staged};
use ssql_ir::{ConnectorDesc, LocationRule, SchemaRule, SinkDesc};

const RUN: Duration = Duration::from_secs(15);
const PACE: Duration = Duration::from_millis(5);

type Births = Arc<Mutex<Vec<i64>>>;

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as i64
}

/// `USING clock`: notes how old each row is when it is delivered.
struct Clock {
    desc: ConnectorDesc,
    ages: Births,
}

impl Connector for Clock {
    fn desc(&self) -> &ConnectorDesc {
        &self.desc
    }

    fn sink(&self, _: &Declaration) -> Result<Box<dyn Sink>, ConnectorError> {
        Ok(Box::new(ClockSink(Arc::clone(&self.ages))))
    }
}

struct ClockSink(Births);

impl Sink for ClockSink {
    fn description(&self) -> String {
        "Clock".to_owned()
    }

    fn start(&self, _: &Holder, _: Option<u64>) -> Result<(), ConnectorError> {
        Ok(())
    }

    fn write(&self, _: &SinkBatch<'_>, _: u32, rows: &[RecordBatch]) -> Result<Staged, ConnectorError> {
        let births: Vec<i64> =
            rows.iter().flat_map(|b| b.column(0).as_primitive::<Int64Type>().values().to_vec()).collect();
        Ok(Box::new(births))
    }

    fn commit(&self, _: &SinkBatch<'_>, staged: Vec<Staged>) -> Result<Option<u64>, ConnectorError> {
        let at = now();
        let births = staged.into_iter().filter_map(|s| s.downcast::<Vec<i64>>().ok()).flat_map(|b| *b);
        self.0.lock().unwrap().extend(births.map(|b| at - b));
        Ok(None)
    }

    fn abort(&self, _: &SinkBatch<'_>, _: Vec<Staged>) {}
}

fn main() {
    for source in ["rate", "memory", "socket"] {
        for trigger in ["", "TRIGGER CONTINUOUS '1 second'"] {
            let ages = Births::default();
            let mut session = Session::new(SessionConfig::default()).unwrap();
            let desc = ConnectorDesc {
                name: "clock",
                summary: "Notes ages.",
                stream_source: false,
                static_source: false,
                sink: Some(SinkDesc {
                    append: true,
                    update: true,
                    complete: true,
                    durable: false,
                    partitioned: false,
                    continuous: true,
                }),
                schema: SchemaRule::Declared,
                location: LocationRule::Refused,
                options: Vec::new(),
            };
            session.register_connector(Box::new(Clock { desc, ages: Arc::clone(&ages) })).unwrap();
            run(&mut session, source, trigger);
            let mut ages = ages.lock().unwrap().clone();
            ages.sort_unstable();
            let at = |share: f64| ages[((ages.len() - 1) as f64 * share) as usize] as f64 / 1000.0;
            println!(
                "{source:8} {:12} {:6} rows  p50 {:9.3} ms  p99 {:9.3} ms  p99.9 {:9.3} ms",
                if trigger.is_empty() { "default" } else { "continuous" },
                ages.len(),
                at(0.5),
                at(0.99),
                at(0.999)
            );
        }
    }
}

/// Starts the query, feeds it for a while, and stops it.
fn run(session: &mut Session, source: &str, trigger: &str) {
    let mut sql = |text: &str| {
        session.sql(text).map_err(|f| f.to_string()).unwrap();
    };
    sql("SET time_zone = 'UTC'; CREATE SINK c USING clock;");
    match source {
        "rate" => {
            sql("CREATE STREAM s USING rate OPTIONS (rowsPerSecond 200);");
            sql(&format!("INSERT INTO c SELECT unix_micros(timestamp) AS born FROM s EMIT APPEND {trigger};"));
            std::thread::sleep(RUN);
        }
        "memory" => {
            sql("CREATE STREAM s (born BIGINT) USING memory;");
            sql(&format!("INSERT INTO c SELECT born FROM s EMIT APPEND {trigger};"));
            for _ in 0..RUN.as_micros() / PACE.as_micros() {
                sql(&format!("INSERT INTO s VALUES ({});", now()));
                std::thread::sleep(PACE);
            }
        }
        _ => {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let port = listener.local_addr().unwrap().port();
            let feed = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                stream.set_nodelay(true).unwrap();
                for _ in 0..RUN.as_micros() / PACE.as_micros() {
                    writeln!(stream, "{}", now()).unwrap();
                    std::thread::sleep(PACE);
                }
            });
            sql(&format!("CREATE STREAM s USING socket OPTIONS (host '127.0.0.1', port {port});"));
            sql(&format!("INSERT INTO c SELECT CAST(value AS BIGINT) AS born FROM s EMIT APPEND {trigger};"));
            feed.join().unwrap();
        }
    }
    std::thread::sleep(Duration::from_millis(300));
    sql("STOP QUERY c;");
}
