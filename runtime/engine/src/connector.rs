//! The protocol between the engine and its sources and sinks.
//!
//! # Source
//! A source is asked, in this order and by one thread:
//! 1. [`Source::restore`] once, with the log entries of its checkpoint and the last committed offset;
//! 2. for each micro-batch [`Source::latest`], which fixes where the batch ends and may return a log entry that
//!    makes the offset mean the same for ever (the file source: which files). The engine makes entry and offset
//!    durable before it reads;
//! 3. [`Source::splits`] for the range `(start, end]`; splits are then read on any threads, in any order, but their
//!    rows count as standing in the order of the list. After a restart the same range must give the same rows;
//! 4. [`Source::committed`] when the batch is finished for good.
//!
//! Offsets are JSON, since they show in the progress as Spark's do.
//!
//! # Sink
//! For each batch: any number of [`Sink::write`]s on any threads, each staging one partition where no reader sees it,
//! then exactly one of [`Sink::commit`] or [`Sink::abort`]. `commit` makes all partitions visible at once or, after a
//! crash, not at all; a batch that was already committed and is delivered again must leave the data unchanged.

use std::any::Any;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::RecordBatch;
use ssql_ir::{ConnectorDesc, EmitMode, Schema};
pub use ssql_state::Holder;

/// A position in a source, as JSON.
pub type Offset = serde_json::Value;

/// Options of a relation: names are case-insensitive and kept in lower case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options(BTreeMap<String, String>);

impl Options {
    /// Options from (name, value) pairs; the last of equal names counts.
    pub fn new(pairs: impl IntoIterator<Item = (String, String)>) -> Options {
        Options(pairs.into_iter().map(|(k, v)| (k.to_lowercase(), v)).collect())
    }

    /// The value as written.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(&name.to_lowercase()).map(String::as_str)
    }

    /// A whole number, or `default` where the option is not given.
    pub fn integer(&self, name: &str, default: u64) -> Result<u64, ConnectorError> {
        self.parsed(name, default, "a whole number")
    }

    /// `true` or `false`, or `default` where the option is not given.
    pub fn boolean(&self, name: &str, default: bool) -> Result<bool, ConnectorError> {
        match self.get(name).map(str::to_lowercase).as_deref() {
            None => Ok(default),
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            Some(other) => Err(ConnectorError::bad_option(name, other, "true or false")),
        }
    }

    /// All options, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(k, v)| (k.as_str(), v.as_str()))
    }

    fn parsed<T: std::str::FromStr>(&self, name: &str, default: T, what: &str) -> Result<T, ConnectorError> {
        match self.get(name) {
            None => Ok(default),
            Some(text) => text.trim().parse().map_err(|_| ConnectorError::bad_option(name, text, what)),
        }
    }
}

/// What a relation or sink was declared with.
#[derive(Debug, Clone)]
pub struct Declaration {
    /// Name in the catalog.
    pub name: String,
    /// Columns: declared ones, or those the connector fixed or carried. For a sink: the columns of the query.
    pub schema: Schema,
    /// LOCATION, made absolute against the script's directory where it is a relative path.
    pub location: Option<String>,
    /// Options.
    pub options: Options,
    /// PARTITIONED BY columns of a sink, positions in `schema`.
    pub partition_by: Vec<u32>,
    /// `spark.sql.session.timeZone`: text without a zone is read, and text is written, in this zone.
    pub time_zone: jiff::tz::TimeZone,
}

/// Whose fault a failure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Domain {
    /// The user's program or data.
    User,
    /// The world outside: files, network, disk.
    External,
    /// A bug of ours.
    Internal,
}

/// A connector's failure.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ConnectorError {
    /// Public condition (`PATH_NOT_FOUND`, `MALFORMED_RECORD_IN_PARSING`, ...).
    pub condition: &'static str,
    /// What happened, with file, line, option or address.
    pub message: String,
    /// What to do about it.
    pub help: Vec<String>,
    /// Whose fault it is.
    pub domain: Domain,
    /// Whether trying again may help.
    pub retry: bool,
    /// The cause.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl ConnectorError {
    /// A failure without help, cause or hope of a retry.
    pub fn new(condition: &'static str, domain: Domain, message: impl Into<String>) -> ConnectorError {
        ConnectorError { condition, message: message.into(), help: Vec::new(), domain, retry: false, source: None }
    }

    /// An option with a value that it does not take.
    pub fn bad_option(name: &str, value: &str, expected: &str) -> ConnectorError {
        let message = format!("option `{name}` takes {expected}, not `{value}`");
        ConnectorError::new("INVALID_OPTION_VALUE", Domain::User, message)
    }

    /// The operating system refused `action` on `path`.
    pub fn io(action: &str, path: &std::path::Path, source: std::io::Error) -> ConnectorError {
        let condition = match source.kind() {
            std::io::ErrorKind::NotFound => "PATH_NOT_FOUND",
            _ => "FAILED_FILE_OPERATION",
        };
        let mut error =
            ConnectorError::new(condition, Domain::External, format!("cannot {action} `{}`: {source}", path.display()));
        error.retry = crate::error::EngineError::is_transient(&source);
        error.source = Some(Box::new(source));
        error
    }

    /// The same with one more line of help.
    pub fn with_help(mut self, help: impl Into<String>) -> ConnectorError {
        self.help.push(help.into());
        self
    }
}

/// How much a micro-batch may take from a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadLimit {
    /// What the source's own rate options allow (`maxFilesPerTrigger`, ...).
    Options,
    /// All that is there (TRIGGER ONCE ignores rate options, as in Spark).
    Everything,
}

/// Where a micro-batch ends.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// Last position of the batch.
    pub end: Offset,
    /// What the source needs to see again after a restart to give the same rows for the same range. Entries are kept,
    /// in order, and handed to [`Source::restore`]; those of old batches first go through [`Source::compactor`].
    pub log_entry: Option<Vec<u8>>,
}

/// What the engine restores a source with.
#[derive(Debug, Clone, Default)]
pub struct Restored {
    /// (batch number, entry), in order.
    pub entries: Vec<(u64, Vec<u8>)>,
    /// End of the last planned batch, if any.
    pub offset: Option<Offset>,
}

/// Makes one log entry of the entries (batch, entry) of old batches, in order; the first may be one that it made before.
/// It runs on a thread of its own.
pub type Compactor = Arc<dyn Fn(Vec<(u64, Vec<u8>)>) -> Result<Vec<u8>, ConnectorError> + Send + Sync>;

/// Tells the engine that a source has something new; may be called from any thread, at any time.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// How the engine learns that a source has something new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// By asking again and again.
    Poll,
    /// The source calls the [`Wake`].
    Wakes,
    /// Nothing comes before this processing time, in microseconds.
    At(i64),
}

/// A replayable stream of rows.
pub trait Source: Send {
    /// Columns that it delivers when all are asked for.
    fn schema(&self) -> &Schema;

    /// As Spark shows it in `sources[].description`, e.g. `FileStreamSource[file:/data/in]`.
    fn description(&self) -> String;

    /// Takes up where a checkpoint left off. Called once, before all else.
    fn restore(&mut self, restored: Restored) -> Result<(), ConnectorError>;

    /// Where a batch that begins after `start` (`None`: at the beginning) ends; `None` if there is nothing new.
    /// `now_micros` is the processing time; sources that live by the clock take it from here only.
    fn latest(
        &mut self,
        start: Option<&Offset>,
        limit: ReadLimit,
        now_micros: i64,
    ) -> Result<Option<Batch>, ConnectorError>;

    /// From now on [`Source::latest`] sees nothing that came after this call (TRIGGER AVAILABLE NOW and ONCE).
    fn freeze(&mut self, now_micros: i64) -> Result<(), ConnectorError>;

    /// The rows after `start` up to `end`, cut into pieces that can be read in parallel.
    fn splits(
        &mut self,
        start: Option<&Offset>,
        end: &Offset,
        projection: &[u32],
    ) -> Result<Vec<Box<dyn Split>>, ConnectorError>;

    /// Nothing up to `end` will be asked for again.
    fn committed(&mut self, end: &Offset) -> Result<(), ConnectorError>;

    /// How the log entries of batches that nobody asks for any more become one; `None` where they all have to stay.
    fn compactor(&self) -> Option<Compactor> {
        None
    }

    /// Asked when there was nothing new: when to ask again. A source that can tell spares its query the polling.
    /// `wake` is the same at each call.
    fn arrival(&mut self, _now_micros: i64, _wake: &Wake) -> Arrival {
        Arrival::Poll
    }

    /// Rows are wanted as they come (TRIGGER CONTINUOUS): a source that gathers them by time makes its steps finer.
    fn set_continuous(&mut self) {}

    /// Figures for `sources[].metrics` after a batch that ended at `end`, such as how far it is behind.
    fn metrics(&self, _end: &Offset) -> BTreeMap<&'static str, String> {
        BTreeMap::new()
    }

    /// The newest position known, for `sources[].latestOffset`; `None` where the source has none.
    fn newest(&self) -> Option<Offset> {
        None
    }
}

/// A piece of a source's rows.
pub trait Split: Send {
    /// Delivers the rows, in order, as batches of the projected columns (types as `ssql_stdlib::arrow_type` gives).
    /// Batches hold at most some ten thousand rows, so that they stay in cache. Stops early when `deliver` fails.
    fn read(
        &mut self,
        deliver: &mut dyn FnMut(RecordBatch) -> Result<(), Box<dyn std::error::Error + Send + Sync>>,
    ) -> Result<SplitStats, Box<dyn std::error::Error + Send + Sync>>;
}

/// What reading a split met.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SplitStats {
    /// Rows delivered.
    pub rows: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Records that could not be decoded and were nulled or dropped by the mode.
    pub bad_records: u64,
}

/// A relation read whole, as it is now.
pub trait StaticTable: Send + Sync {
    /// Columns that it delivers when all are asked for.
    fn schema(&self) -> &Schema;
    /// All rows, cut into pieces that can be read in parallel.
    fn splits(&self, projection: &[u32]) -> Result<Vec<Box<dyn Split>>, ConnectorError>;
}

/// A micro-batch as a sink sees it.
#[derive(Debug, Clone)]
pub struct SinkBatch<'a> {
    /// Stable over restarts.
    pub query_id: &'a str,
    /// Number of the micro-batch.
    pub batch: u64,
    /// Whether rows are new, changed, or the whole table.
    pub mode: EmitMode,
}

/// What one [`Sink::write`] staged; handed back to the same sink's `commit` or `abort`.
pub type Staged = Box<dyn Any + Send>;

/// Where rows go.
pub trait Sink: Send + Sync {
    /// As Spark shows it in `sink.description`.
    fn description(&self) -> String;

    /// Before a query's first batch: takes the lease in the name of `query`, cleans what a crash left
    /// (`last_committed`: the newest batch known to be committed by the query's own log).
    fn start(&self, query: &Holder, last_committed: Option<u64>) -> Result<(), ConnectorError>;

    /// Stages one partition of the batch. Partition numbers are dense and name the same rows on a replay.
    fn write(&self, batch: &SinkBatch<'_>, partition: u32, rows: &[RecordBatch]) -> Result<Staged, ConnectorError>;

    /// Makes the staged partitions visible, at once. Returns the number of rows delivered, if it knows.
    fn commit(&self, batch: &SinkBatch<'_>, staged: Vec<Staged>) -> Result<Option<u64>, ConnectorError>;

    /// Takes back what was staged.
    fn abort(&self, batch: &SinkBatch<'_>, staged: Vec<Staged>);
}

/// A connector: makes sources, tables and sinks of declarations.
pub trait Connector: Send + Sync {
    /// Its facts.
    fn desc(&self) -> &ConnectorDesc;

    /// Columns that the data itself carries ([`ssql_ir::SchemaRule::Carried`]).
    fn carried_schema(&self, declaration: &Declaration) -> Result<Schema, ConnectorError> {
        Err(self.unsupported("carry a schema", declaration))
    }

    /// Opens it as a stream.
    fn source(&self, declaration: &Declaration) -> Result<Box<dyn Source>, ConnectorError> {
        Err(self.unsupported("be read as a stream", declaration))
    }

    /// Opens it as a static table.
    fn table(&self, declaration: &Declaration) -> Result<Box<dyn StaticTable>, ConnectorError> {
        Err(self.unsupported("be read as a table", declaration))
    }

    /// Opens it as a sink.
    fn sink(&self, declaration: &Declaration) -> Result<Box<dyn Sink>, ConnectorError> {
        Err(self.unsupported("be written to", declaration))
    }

    /// The error for a direction that the connector does not have.
    fn unsupported(&self, what: &str, declaration: &Declaration) -> ConnectorError {
        let message = format!("`{}`: a relation USING {} cannot {what}", declaration.name, self.desc().name);
        ConnectorError::new("UNSUPPORTED_DATA_SOURCE_DIRECTION", Domain::User, message)
    }
}

/// The connectors of a process, by name.
#[derive(Default)]
pub struct Registry {
    connectors: BTreeMap<&'static str, Box<dyn Connector>>,
}

impl Registry {
    /// Adds a connector under its name.
    pub fn register(&mut self, connector: Box<dyn Connector>) {
        self.connectors.insert(connector.desc().name, connector);
    }

    /// The connector of that name, any case.
    pub fn get(&self, name: &str) -> Option<&dyn Connector> {
        self.connectors.get(name.to_lowercase().as_str()).map(Box::as_ref)
    }

    /// All, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &dyn Connector> {
        self.connectors.values().map(Box::as_ref)
    }
}

/// A relative LOCATION seen from the directory of the script.
pub fn resolve_location(location: &str, base: &std::path::Path) -> PathBuf {
    let path = location.strip_prefix("file://").or_else(|| location.strip_prefix("file:")).unwrap_or(location);
    base.join(path)
}
