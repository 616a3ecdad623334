//! The socket source: lines of a TCP connection, for trying things out. It cannot be replayed after a restart, as in
//! Spark.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::{ArrayRef, RecordBatch, StringViewArray, TimestampMicrosecondArray};
use ssql_engine::connector::{
    Arrival, Batch, Connector, ConnectorError, Declaration, Domain, Offset, Options, ReadLimit, Restored, Source,
    Split, SplitStats, Wake,
};
use ssql_ir::{ConnectorDesc, DataType, Field, LocationRule, OptionDesc, OptionKind, OptionScope, Schema, SchemaRule};

use crate::columns::MAX_BATCH_ROWS;
use crate::decode::{batch, batch_schema};
use crate::desc::defaulted;

/// Lines held for the next batches; the connection is not read further meanwhile.
const MAX_HELD: usize = 1 << 20;

/// `USING socket`.
pub struct SocketConnector {
    desc: ConnectorDesc,
}

impl Default for SocketConnector {
    fn default() -> SocketConnector {
        let needed = |name, kind, doc| OptionDesc {
            name,
            kind,
            required: true,
            default: None,
            applies: OptionScope::Stream,
            doc,
        };
        let desc = ConnectorDesc {
            name: "socket",
            summary: "Lines of a TCP connection; cannot be replayed, for trying things out.",
            stream_source: true,
            static_source: false,
            sink: None,
            // With includeTimestamp the declaration names `timestamp` too.
            schema: SchemaRule::Fixed(Schema::new(vec![Field::new("value", DataType::String, true)])),
            location: LocationRule::Refused,
            options: vec![
                needed("host", OptionKind::Text, "Host to connect to."),
                needed("port", OptionKind::Integer, "Its port."),
                defaulted(
                    "includeTimestamp",
                    OptionKind::Boolean,
                    "false",
                    OptionScope::Stream,
                    "Adds the column `timestamp`: when the line was taken up.",
                ),
            ],
        };
        SocketConnector { desc }
    }
}

/// The source's columns.
fn schema(options: &Options) -> Result<Schema, ConnectorError> {
    let mut fields = vec![Field::new("value", DataType::String, true)];
    if options.boolean("includeTimestamp", false)? {
        fields.push(Field::new("timestamp", DataType::Timestamp, true));
    }
    Ok(Schema::new(fields))
}

impl Connector for SocketConnector {
    fn desc(&self) -> &ConnectorDesc {
        &self.desc
    }

    fn carried_schema(&self, declaration: &Declaration) -> Result<Schema, ConnectorError> {
        schema(&declaration.options)
    }

    fn source(&self, declaration: &Declaration) -> Result<Box<dyn Source>, ConnectorError> {
        let options = &declaration.options;
        let host = options.get("host").ok_or_else(|| ConnectorError::bad_option("host", "", "a host name"))?;
        let port = options.get("port").unwrap_or("");
        let port: u16 = port.parse().map_err(|_| ConnectorError::bad_option("port", port, "a port number"))?;
        let stream = TcpStream::connect((host, port)).map_err(|e| {
            let message = format!("cannot connect to {host}:{port}: {e}");
            let mut error = ConnectorError::new("STREAM_FAILED", Domain::External, message);
            error.retry = true;
            error.source = Some(Box::new(e));
            error
        })?;
        let lines: Arc<Mutex<Lines>> = Arc::default();
        let reader = stream.try_clone().map_err(|e| failed(format!("cannot read from {host}:{port}: {e}")))?;
        let shared = lines.clone();
        std::thread::Builder::new()
            .name("socket source".to_string())
            .spawn(move || read_lines(reader, &shared))
            .map_err(|e| failed(format!("cannot start a thread: {e}")))?;
        Ok(Box::new(SocketSource {
            schema: schema(options)?,
            host: host.to_string(),
            port,
            stream,
            lines,
            frozen: None,
        }))
    }
}

fn failed(message: String) -> ConnectorError {
    ConnectorError::new("STREAM_FAILED", Domain::External, message)
}

/// Lines that were read and are not yet committed.
#[derive(Default)]
struct Lines {
    /// Line and when a batch first saw it, in microseconds.
    held: VecDeque<(String, Option<i64>)>,
    /// Lines dropped from the front, since they are committed.
    dropped: u64,
    closed: bool,
    /// Called when a line has come.
    wake: Option<Wake>,
}

fn lock(lines: &Mutex<Lines>) -> MutexGuard<'_, Lines> {
    lines.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read_lines(stream: TcpStream, lines: &Mutex<Lines>) {
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        line.clear();
        match reader.read_until(b'\n', &mut line) {
            Ok(n) if n > 0 => {}
            _ => break,
        }
        while matches!(line.last(), Some(b'\n' | b'\r')) {
            line.pop();
        }
        let text = String::from_utf8_lossy(&line).into_owned();
        loop {
            let mut lines = lock(lines);
            if lines.closed {
                return;
            }
            if lines.held.len() < MAX_HELD {
                lines.held.push_back((text, None));
                let wake = lines.wake.clone();
                drop(lines);
                if let Some(wake) = wake {
                    wake();
                }
                break;
            }
            drop(lines);
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

struct SocketSource {
    schema: Schema,
    host: String,
    port: u16,
    stream: TcpStream,
    lines: Arc<Mutex<Lines>>,
    frozen: Option<u64>,
}

impl Drop for SocketSource {
    fn drop(&mut self) {
        lock(&self.lines).closed = true;
        // The reading thread wakes up and ends; a connection that is already gone needs no end.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// Lines up to an offset: `n` means that the first `n + 1` are taken.
fn taken(offset: Option<&Offset>) -> Result<u64, ConnectorError> {
    let Some(offset) = offset else { return Ok(0) };
    let taken = offset.as_i64().and_then(|n| u64::try_from(n + 1).ok());
    taken.ok_or_else(|| failed(format!("`{offset}` is no offset of a socket source")))
}

impl Source for SocketSource {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn description(&self) -> String {
        format!("TextSocketV2[host: {}, port: {}]", self.host, self.port)
    }

    fn restore(&mut self, restored: Restored) -> Result<(), ConnectorError> {
        if restored.offset.is_some() {
            return Err(ConnectorError::new(
                "STREAM_FAILED",
                Domain::User,
                "a socket cannot be read again after a restart",
            )
            .with_help("use a new checkpoint"));
        }
        Ok(())
    }

    fn latest(
        &mut self,
        start: Option<&Offset>,
        _limit: ReadLimit,
        now_micros: i64,
    ) -> Result<Option<Batch>, ConnectorError> {
        let mut lines = lock(&self.lines);
        lines
            .held
            .iter_mut()
            .rev()
            .take_while(|(_, seen)| seen.is_none())
            .for_each(|(_, seen)| *seen = Some(now_micros));
        let count = self.frozen.unwrap_or(lines.dropped + lines.held.len() as u64);
        Ok((count > taken(start)?).then(|| Batch { end: Offset::from(count - 1), log_entry: None }))
    }

    fn freeze(&mut self, _now_micros: i64) -> Result<(), ConnectorError> {
        let lines = lock(&self.lines);
        self.frozen = Some(lines.dropped + lines.held.len() as u64);
        Ok(())
    }

    fn splits(
        &mut self,
        start: Option<&Offset>,
        end: &Offset,
        projection: &[u32],
    ) -> Result<Vec<Box<dyn Split>>, ConnectorError> {
        let lines = lock(&self.lines);
        let index = |n: u64| usize::try_from(n - n.min(lines.dropped)).unwrap_or(usize::MAX);
        let range = index(taken(start)?)..index(taken(Some(end))?);
        if range.end > lines.held.len() || range.start > range.end {
            return Err(failed(format!("lines up to {end} of the socket are no longer held")));
        }
        let lines = lines.held.range(range).map(|(line, seen)| (line.clone(), seen.unwrap_or(0))).collect();
        let fields = projection.iter().map(|i| self.schema.fields[*i as usize].clone()).collect();
        Ok(vec![Box::new(SocketSplit { fields, lines })])
    }

    fn committed(&mut self, end: &Offset) -> Result<(), ConnectorError> {
        let end = taken(Some(end))?;
        let mut lines = lock(&self.lines);
        while lines.dropped < end && lines.held.pop_front().is_some() {
            lines.dropped += 1;
        }
        Ok(())
    }

    fn arrival(&mut self, _now_micros: i64, wake: &Wake) -> Arrival {
        lock(&self.lines).wake.get_or_insert_with(|| wake.clone());
        Arrival::Wakes
    }
}

struct SocketSplit {
    fields: Vec<Field>,
    lines: Vec<(String, i64)>,
}

impl Split for SocketSplit {
    fn read(
        &mut self,
        deliver: &mut dyn FnMut(RecordBatch) -> Result<(), Box<dyn std::error::Error + Send + Sync>>,
    ) -> Result<SplitStats, Box<dyn std::error::Error + Send + Sync>> {
        let schema = batch_schema(&self.fields);
        for lines in self.lines.chunks(MAX_BATCH_ROWS) {
            let columns = self
                .fields
                .iter()
                .map(|f| -> ArrayRef {
                    match f.data_type {
                        DataType::Timestamp => {
                            let times = lines.iter().map(|(_, seen)| *seen);
                            Arc::new(TimestampMicrosecondArray::from_iter_values(times).with_timezone("UTC"))
                        }
                        _ => Arc::new(StringViewArray::from_iter_values(lines.iter().map(|(line, _)| line))),
                    }
                })
                .collect();
            deliver(batch(&schema, columns, lines.len()))?;
        }
        let bytes = self.lines.iter().map(|(line, _)| line.len() as u64).sum();
        Ok(SplitStats { rows: self.lines.len() as u64, bytes, bad_records: 0 })
    }
}
