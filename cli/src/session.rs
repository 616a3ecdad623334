//! A session: the catalog, the connectors, the running queries, and the execution of statements.

mod advice;
mod bell;
mod describe;
mod query;
pub mod rehearse;
mod relations;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{ArrayRef, RecordBatch};
use jiff::tz::TimeZone;
use ssql_connectors::MemoryHub;
use ssql_engine::connector::{Domain, Registry};
use ssql_engine::query::RuntimeConfig;
use ssql_engine::watermark::Policy;
use ssql_engine::{Clock, EngineError, JitMode, Kernels, QueryHandle, SystemClock, VirtualClock};
use ssql_grammar::ast::{ExplainStage, ObjectKind, ObjectName, Statement, StatementKind};
use ssql_grammar::{Diagnostic, SourceFile, Span, Style, parse_script};
use ssql_plan::statement::SinkTarget;
use ssql_plan::{Catalog, Planned, plan_statement};
use ssql_stdlib::{EvalContext, NativeFunction};

use crate::compile::{self, Cranelift};
use crate::metrics::Metrics;

pub use self::describe::strings;

use self::bell::Bell;

/// How a session is set up.
#[derive(Debug, Clone, Default)]
pub struct SessionConfig {
    /// Relative locations are seen from here.
    pub base_dir: PathBuf,
    /// Values of `:name` parameters.
    pub params: Vec<(String, String)>,
    /// Worker threads; 0 is one per core.
    pub threads: usize,
    /// `on`, `off` or `verify`; a SET in the script overrides it.
    pub jit: Option<String>,
    /// Test sessions: no trigger fires by itself, and processing time stands still at the epoch.
    pub manual: bool,
    /// Register relations, but read and start nothing.
    pub dry: bool,
    /// Print a line per micro-batch to standard error.
    pub progress: bool,
    /// A user's pipeline under test: its streams and sinks are replaced by memory, and its checkpoints by none.
    pub rehearsal: bool,
    /// Append each micro-batch's progress to this file, a line of JSON each.
    pub progress_log: Option<PathBuf>,
    /// Count what the queries do.
    pub metrics: Option<Arc<Metrics>>,
    /// Where the tables of console queries go; standard output if nothing is said.
    pub console: Option<Console>,
    /// A query whose state has another shape than its checkpoint's begins with empty state instead of being refused.
    pub allow_reset: bool,
}

/// Where the tables of console queries go.
#[derive(Clone)]
pub struct Console(pub Arc<Mutex<dyn std::io::Write + Send>>);

impl std::fmt::Debug for Console {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Console")
    }
}

/// Why a session could not be set up.
#[derive(Debug)]
pub struct StartError(EngineError);

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "[{}] {}", self.0.condition, self.0.message)
    }
}

impl std::error::Error for StartError {}

/// Why a statement failed: diagnostics, and the text that their spans point into.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The text.
    pub file: SourceFile,
    /// At least one.
    pub diagnostics: Vec<Diagnostic>,
}

impl std::error::Error for Failure {}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.diagnostics.iter().try_for_each(|d| writeln!(f, "{}", d.render(&self.file, Style::Plain).trim_end()))
    }
}

/// What a statement gave.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// Nothing to show.
    Done,
    /// A remark for people.
    Message(String),
    /// Text that was asked for.
    Text(String),
    /// Rows.
    Rows {
        /// Column names.
        names: Vec<String>,
        /// The rows, in order.
        batches: Vec<RecordBatch>,
    },
}

/// A started query and the script that its spans point into.
struct Started {
    handle: Arc<QueryHandle>,
    file: SourceFile,
    span: Span,
    /// Its failure has been told.
    reported: bool,
}

/// Running queries, shared with whoever may stop them.
type Queries = Arc<Mutex<Vec<Started>>>;

/// Stops a session, or the statement that it runs, from another thread.
#[derive(Clone)]
pub struct Stopper {
    queries: Queries,
    interrupt: Arc<AtomicBool>,
    stopping: Arc<AtomicBool>,
    bell: Arc<Bell>,
}

impl Stopper {
    /// Asks all queries to end after their current batch. The script's further statements are not run.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.queries.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(|q| q.handle.request_stop());
    }

    /// Stops the running statement; queries go on.
    pub fn interrupt(&self) {
        self.interrupt.store(true, Ordering::SeqCst);
        self.bell.ring();
    }
}

/// See the module's comment.
pub struct Session {
    config: SessionConfig,
    catalog: Catalog,
    hub: MemoryHub,
    registry: Arc<Registry>,
    queries: Queries,
    /// Where each thing was created, by lower-case name.
    created: HashMap<String, (SourceFile, Span)>,
    clock: Arc<dyn Clock>,
    virtual_clock: Option<Arc<VirtualClock>>,
    pool: Arc<rayon::ThreadPool>,
    progress_log: Option<Arc<Mutex<std::fs::File>>>,
    /// Set from outside: the running statement is to end.
    interrupt: Arc<AtomicBool>,
    /// Set from outside: no further statement is to begin.
    stopping: Arc<AtomicBool>,
    /// Rung when a query ends and at an interrupt.
    bell: Arc<Bell>,
}

impl Session {
    /// A session with an empty catalog.
    pub fn new(config: SessionConfig) -> Result<Session, StartError> {
        let hub = MemoryHub::default();
        let mut registry = ssql_connectors::builtin(&hub);
        #[cfg(feature = "kafka")]
        registry.register(Box::new(ssql_connectors_kafka::KafkaConnector::default()));
        if let Some(console) = &config.console {
            registry.register(Box::new(ssql_connectors::ConsoleConnector::new(Arc::clone(&console.0))));
        }
        let mut catalog = Catalog::new();
        registry.iter().for_each(|c| catalog.register_connector(c.desc().clone()));
        for (name, value) in &config.params {
            catalog.set_parameter(name.clone(), value.clone());
        }
        if let Some(jit) = &config.jit {
            catalog.settings.set("jit", jit.clone());
        }
        let open = |path: &PathBuf| {
            std::fs::OpenOptions::new().create(true).append(true).open(path).map_err(|e| {
                let message = format!("cannot write the progress log `{}`: {e}", path.display());
                StartError(EngineError::new("FAILED_FILE_OPERATION", Domain::External, message))
            })
        };
        let progress_log = config.progress_log.as_ref().map(open).transpose()?.map(|f| Arc::new(Mutex::new(f)));
        let virtual_clock = config.manual.then(|| Arc::new(VirtualClock::default()));
        let clock: Arc<dyn Clock> = match &virtual_clock {
            Some(clock) => Arc::clone(clock) as Arc<dyn Clock>,
            None => Arc::new(SystemClock),
        };
        let pool = RuntimeConfig::new(config.threads, Kernels::interpreter()).map_err(StartError)?.pool;
        Ok(Session {
            config,
            catalog,
            hub,
            registry: Arc::new(registry),
            queries: Queries::default(),
            created: HashMap::new(),
            clock,
            virtual_clock,
            pool,
            progress_log,
            interrupt: Arc::default(),
            stopping: Arc::default(),
            bell: Arc::default(),
        })
    }

    /// The session time zone.
    pub fn time_zone(&self) -> TimeZone {
        self.catalog.settings.time_zone()
    }

    /// The catalog, to look names up.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// A handle that stops the session's queries from another thread.
    pub fn stopper(&self) -> Stopper {
        Stopper {
            queries: Arc::clone(&self.queries),
            interrupt: Arc::clone(&self.interrupt),
            stopping: Arc::clone(&self.stopping),
            bell: Arc::clone(&self.bell),
        }
    }

    /// Makes a connector known under its name, for USING: a source or sink of the embedding program.
    ///
    /// # Errors
    /// A query runs already, which shares the connectors.
    pub fn register_connector(
        &mut self,
        connector: Box<dyn ssql_engine::connector::Connector>,
    ) -> Result<(), StartError> {
        let registry = Arc::get_mut(&mut self.registry).ok_or_else(|| {
            StartError(user("CONNECTORS_IN_USE", "connectors are registered before the first query is started"))
        })?;
        self.catalog.register_connector(connector.desc().clone());
        registry.register(connector);
        Ok(())
    }

    /// Makes a scalar function known that is written in Rust: whole Arrow columns in, NULLs included, a column out. Calls
    /// convert their arguments as INSERT would; queries started from now on know the function, also those
    /// that a checkpoint restarts. It shadows a function of the library that has its name.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow::array::{ArrayRef, AsArray, Float64Array};
    /// # use ssql::session::{Outcome, Session, SessionConfig};
    /// let mut session = Session::new(SessionConfig::default())?;
    /// session.register_function("fahrenheit", "celsius DOUBLE", "DOUBLE", |args| {
    ///     let celsius = args[0].as_primitive::<arrow::datatypes::Float64Type>();
    ///     let out: Float64Array = celsius.iter().map(|c| c.map(|c| c * 9.0 / 5.0 + 32.0)).collect();
    ///     Ok(Arc::new(out) as ArrayRef)
    /// })?;
    /// let outcomes = session.sql("SELECT fahrenheit(x) AS f FROM VALUES (100), (NULL) AS t(x)")?;
    /// let Some(Outcome::Rows { batches, .. }) = outcomes.last() else { panic!("a SELECT gives rows") };
    /// assert_eq!(batches[0].column(0).as_primitive::<arrow::datatypes::Float64Type>().value(0), 212.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `params`, a list of names and types as in a schema, or the type `returns` cannot be read.
    pub fn register_function(
        &mut self,
        name: &str,
        params: &str,
        returns: &str,
        eval: impl Fn(&[ArrayRef]) -> Result<ArrayRef, String> + Send + Sync + 'static,
    ) -> Result<(), StartError> {
        let unread = |what: &str, text: &str| {
            StartError(user(
                "PARSE_SYNTAX_ERROR",
                format!("the {what} of the function `{name}` cannot be read: `{text}`"),
            ))
        };
        let params = match params.trim() {
            "" => vec![],
            text => {
                let schema = ssql_stdlib::parse_schema(text).ok_or_else(|| unread("parameters", text))?;
                schema.fields.into_iter().map(|f| f.data_type).collect()
            }
        };
        let returns = ssql_stdlib::parse_data_type(returns).ok_or_else(|| unread("type", returns))?;
        let function = NativeFunction { name: name.to_owned(), params, returns, eval: Box::new(eval) };
        self.catalog.natives.insert(function);
        Ok(())
    }

    /// Runs statements in order and returns what each gave: [`Session::run_script`] for a text that is no file.
    ///
    /// ```
    /// # use ssql::session::{Outcome, Session, SessionConfig};
    /// let mut session = Session::new(SessionConfig::default())?;
    /// let outcomes = session.sql("CREATE TABLE t (a INT); INSERT INTO t VALUES (1), (2); SELECT sum(a) AS s FROM t")?;
    /// let Some(Outcome::Rows { names, batches }) = outcomes.last() else { panic!("a SELECT gives rows") };
    /// assert_eq!((names[0].as_str(), batches[0].num_rows()), ("s", 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The diagnostics of the first statement that fails.
    pub fn sql(&mut self, text: &str) -> Result<Vec<Outcome>, Failure> {
        self.run_script(&SourceFile::new("sql", text))
    }

    /// Runs a script's statements in order and returns what each gave. Stops at the first that fails; a script that
    /// does not parse runs nothing.
    pub fn run_script(&mut self, file: &SourceFile) -> Result<Vec<Outcome>, Failure> {
        let mut outcomes = Vec::new();
        self.run_script_with(file, &mut |outcome| outcomes.push(outcome))?;
        Ok(outcomes)
    }

    /// As [`Session::run_script`], handing each outcome on as it comes.
    pub fn run_script_with(&mut self, file: &SourceFile, show: &mut dyn FnMut(Outcome)) -> Result<(), Failure> {
        let (script, diagnostics) = parse_script(file);
        if diagnostics.iter().any(Diagnostic::is_error) {
            return Err(Failure { file: file.clone(), diagnostics });
        }
        // An interrupt is meant for what ran then.
        self.interrupt.store(false, Ordering::SeqCst);
        for statement in &script.statements {
            if self.stopping.load(Ordering::SeqCst) {
                return Ok(());
            }
            let planned = self.plan(statement).map_err(|found| {
                let diagnostics = found.into_iter().map(|d| self.with_first_definition(file, d)).collect();
                Failure { file: file.clone(), diagnostics }
            })?;
            show(self.execute(file, statement, planned)?);
        }
        Ok(())
    }

    /// Plans a statement over the catalog as it is now.
    pub fn plan(&self, statement: &Statement) -> Result<Planned, Vec<Diagnostic>> {
        plan_statement(statement, &self.catalog)
    }

    /// Carries a planned statement out. `file` is the text that it came from.
    pub fn execute(&mut self, file: &SourceFile, statement: &Statement, planned: Planned) -> Result<Outcome, Failure> {
        let span = statement.span;
        let outcome = self
            .carry_out(file, statement, planned)
            .map_err(|e| Failure { file: file.clone(), diagnostics: vec![diagnostic(&e, span)] })
            .and_then(|result| result)?;
        if let Some(name) = created(&statement.kind) {
            self.created.insert(name.dotted().to_lowercase(), (file.clone(), name.span));
        }
        Ok(outcome)
    }

    /// A complaint that a name is taken, with the place where it was taken if that is in this script.
    pub fn with_first_definition(&self, file: &SourceFile, d: Diagnostic) -> Diagnostic {
        if !matches!(&*d.condition, "TABLE_OR_VIEW_ALREADY_EXISTS" | "ROUTINE_ALREADY_EXISTS") {
            return d;
        }
        let name = file.slice(d.span()).replace(['`', '"'], "").to_lowercase();
        match self.created.get(&name) {
            Some((first, span)) if first.name() == file.name() && first.text() == file.text() => {
                d.with_label(*span, "first defined here")
            }
            _ => d,
        }
    }

    fn carry_out(
        &mut self,
        file: &SourceFile,
        statement: &Statement,
        planned: Planned,
    ) -> Result<Result<Outcome, Failure>, EngineError> {
        if self.config.dry
            && !matches!(planned, Planned::CreateRelation(_) | Planned::CreateFunction(_) | Planned::Set { .. })
        {
            // What is not started is known all the same: later statements may read the sink.
            if let Planned::Query(query) = &planned
                && let SinkTarget::Named(sink) = &query.sink
            {
                self.catalog.set_schema(sink, query.schema.clone());
            }
            return Ok(Ok(Outcome::Done));
        }
        Ok(Ok(match planned {
            Planned::CreateRelation(mut create) => {
                if self.config.rehearsal {
                    rehearse::replace(&mut create.relation)?;
                }
                self.create_relation(*create)?;
                Outcome::Done
            }
            Planned::CreateFunction(function) => {
                if let Some(function) = function {
                    self.catalog.register_function(*function);
                }
                Outcome::Done
            }
            Planned::Drop { kind, name, exists } => {
                if exists {
                    if kind == ObjectKind::Function {
                        self.catalog.remove_function(&name);
                    } else {
                        self.drop_relation(&name)?;
                    }
                }
                Outcome::Done
            }
            Planned::Insert(insert) => {
                let batches = self.run_rows(&insert.rows)?;
                self.hub.insert(&insert.relation, batches)?;
                Outcome::Done
            }
            Planned::Batch(batch) => {
                let batches = self.run_rows(&batch)?;
                let names = batch.schema.fields.iter().map(|f| f.name.clone()).collect();
                Outcome::Rows { names, batches }
            }
            Planned::Query(query) => {
                // A test session shows what its file asks for and nothing else.
                let shown = !self.config.manual;
                let warnings: Vec<String> = (query.warnings.iter().filter(|_| shown))
                    .map(|w| w.render(file, Style::Plain).trim_end().to_owned())
                    .collect();
                let (name, notes) = self.start_query(file, statement.span, *query)?;
                let started = shown.then(|| format!("started query `{name}`"));
                let notes = notes.iter().map(|note| format!("query `{name}`: {note}"));
                let lines = warnings.into_iter().chain(notes).chain(started);
                let text = lines.collect::<Vec<_>>().join("\n");
                if text.is_empty() { Outcome::Done } else { Outcome::Message(text) }
            }
            Planned::Show(show) => self.show(&show)?,
            Planned::Describe { extended, relation } => self.describe(&relation, extended),
            Planned::StopQuery { name, drain } => {
                let handle = self.handle(&name)?;
                if !drain {
                    handle.stop();
                } else if handle.stop_with_drain().is_err()
                    && let Some(failure) = self.take_failure(handle.name())
                {
                    return Ok(Err(failure));
                }
                Outcome::Done
            }
            Planned::DropQuery { name, if_exists } => {
                self.drop_query(&name, if_exists)?;
                Outcome::Done
            }
            Planned::AwaitQuery { name, timeout_micros } => return self.await_query(name.as_deref(), timeout_micros),
            Planned::ProcessAllAvailable(name) => {
                if let Err(failure) = self.process_all_available(name.as_deref())? {
                    return Ok(Err(failure));
                }
                Outcome::Done
            }
            Planned::AdvanceClock(micros) => match &self.virtual_clock {
                Some(clock) => {
                    clock.advance(micros);
                    Outcome::Done
                }
                None => {
                    return Err(user("UNSUPPORTED_FEATURE.CLOCK", "ADVANCE CLOCK works in test sessions only")
                        .with_help("Run the statements with `ssql test`."));
                }
            },
            Planned::Explain(explained) => Outcome::Text(
                match explained.stage {
                    ExplainStage::Ast => Ok(explained.ast.clone()),
                    stage => compile::explain(stage, statement, &explained.planned),
                }
                .map_err(EngineError::internal)?,
            ),
            Planned::Set { key, value } => {
                self.catalog.settings.set(key, value);
                Outcome::Done
            }
            Planned::ShowSettings(settings) => {
                let (keys, values): (Vec<_>, Vec<_>) = settings.into_iter().map(|(k, v)| (k.to_owned(), v)).unzip();
                describe::strings(&["key", "value"], vec![keys, values])
            }
            Planned::Reset(key) => {
                self.catalog.settings.reset(key);
                Outcome::Done
            }
        }))
    }

    /// Runs a bounded query.
    fn run_rows(&self, plan: &ssql_plan::BatchPlan) -> Result<Vec<RecordBatch>, EngineError> {
        let eval = EvalContext {
            time_zone: self.time_zone(),
            now_micros: self.clock.now_micros(),
            natives: self.catalog.natives.clone(),
            ..EvalContext::default()
        };
        let tables = self.tables();
        ssql_engine::run_batch(&plan.pipeline, &tables, eval, &self.runtime())
    }

    /// What queries started now run with.
    fn runtime(&self) -> RuntimeConfig {
        let settings = &self.catalog.settings;
        let mode = match settings.get("jit") {
            "off" => JitMode::Off,
            "verify" => JitMode::Verify,
            _ => JitMode::On,
        };
        let policy = if settings.get("watermark.policy") == "max" { Policy::Max } else { Policy::Min };
        let n_partitions = settings.get("state.partitions").parse().unwrap_or(self.pool.current_num_threads());
        RuntimeConfig {
            natives: self.catalog.natives.clone(),
            pool: Arc::clone(&self.pool),
            n_partitions,
            kernels: Kernels { compiler: Some(Arc::new(Cranelift)), mode },
            policy,
            cancel: Arc::clone(&self.interrupt),
        }
    }
}

/// The name that a statement creates.
pub(crate) fn created(kind: &StatementKind) -> Option<&ObjectName> {
    Some(match kind {
        StatementKind::CreateStream(c) | StatementKind::CreateTable(c) => &c.name,
        StatementKind::CreateView(c) => &c.name,
        StatementKind::CreateSink(c) => &c.name,
        StatementKind::CreateFunction(c) => &c.name,
        _ => return None,
    })
}

/// An engine's failure as a diagnostic; without a span of its own it points at the statement.
fn diagnostic(e: &EngineError, statement: Span) -> Diagnostic {
    let span = e.span.map_or(statement, |(start, end)| Span::new(start, end));
    let mut d = Diagnostic::error(e.condition.clone(), e.message.clone()).at(span);
    for help in &e.help {
        d = d.with_help(ssql_grammar::diagnostic::sentence(help));
    }
    if let Some(place) = &e.place
        && let Some(batch) = place.batch
    {
        let query = place.query.as_ref().map_or(String::new(), |q| format!(" of query `{q}`"));
        let operator = place.operator.as_ref().map_or(String::new(), |o| format!(", in its {o}"));
        d = d.with_note(format!(
            "It happened in micro-batch {batch}{query}{operator}; nothing of that batch was delivered."
        ));
        if e.retry {
            d = d.with_note("The cause may pass: starting the query again goes on with that batch.".to_owned());
        }
    }
    d
}

fn user(condition: &str, message: impl Into<String>) -> EngineError {
    EngineError::new(condition, ssql_engine::connector::Domain::User, message)
}

/// The error for what parses and is not executed yet.
fn not_yet(what: &str) -> EngineError {
    user("UNSUPPORTED_FEATURE.NOT_EXECUTED", format!("`{what}` is not executed yet"))
}
