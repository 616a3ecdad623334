//! Statements: each becomes a [`Planned`] that says all its execution needs.

mod continuous;
mod create;
mod insert;
mod query;

pub use query::option_span;
use ssql_grammar::ast::{self, ExplainStage, ObjectKind, Show, StatementKind};
use ssql_grammar::{Diagnostic, Span};
use ssql_ir::{EmitMode, Pipeline, Schema};

use crate::bind::{Binder, IntervalValue};
use crate::catalog::{Catalog, OptionValue, Relation, RelationKind, SqlFunction, suggest};
use crate::explain::StateBound;
use crate::settings::Settings;

/// What a statement asks for, names resolved and legality checked.
#[derive(Debug, Clone)]
pub enum Planned {
    /// Start a streaming query.
    Query(Box<StreamingPlan>),
    /// Run a bounded query and print its rows.
    Batch(Box<BatchPlan>),
    /// Add rows to a table or memory stream.
    Insert(Box<Insert>),
    /// Register a relation; carry out what its connector needs (open, read the schema) first.
    CreateRelation(Box<CreateRelation>),
    /// Register a SQL function. `None`: it exists and IF NOT EXISTS stands.
    CreateFunction(Option<Box<SqlFunction>>),
    /// Remove an object from the catalog. `exists` is false where IF EXISTS covers its absence.
    Drop {
        /// Its kind.
        kind: ObjectKind,
        /// Its name, as the catalog has it.
        name: String,
        /// Whether there is anything to remove.
        exists: bool,
    },
    /// SHOW.
    Show(Show),
    /// DESCRIBE: the relation as the catalog has it.
    Describe {
        /// EXTENDED.
        extended: bool,
        /// The relation; its schema filled in for views.
        relation: Box<Relation>,
    },
    /// STOP QUERY.
    StopQuery {
        /// The query.
        name: String,
        /// WITH DRAIN.
        drain: bool,
    },
    /// DROP QUERY: stop it and forget it. Its checkpoint stays.
    DropQuery {
        /// The query.
        name: String,
        /// IF EXISTS.
        if_exists: bool,
    },
    /// AWAIT QUERY or AWAIT ANY QUERY.
    AwaitQuery {
        /// The query; None means any.
        name: Option<String>,
        /// TIMEOUT, microseconds.
        timeout_micros: Option<i64>,
    },
    /// PROCESS ALL AVAILABLE [FOR name].
    ProcessAllAvailable(Option<String>),
    /// ADVANCE CLOCK, microseconds.
    AdvanceClock(i64),
    /// EXPLAIN.
    Explain(Box<Explained>),
    /// SET key = value; the value has been checked.
    Set {
        /// Canonical key.
        key: &'static str,
        /// Value as stored.
        value: String,
    },
    /// SET or SET key: these settings and their values.
    ShowSettings(Vec<(&'static str, String)>),
    /// `RESET [key]`.
    Reset(Option<&'static str>),
}

/// A streaming query, ready to start.
#[derive(Debug, Clone)]
pub struct StreamingPlan {
    /// Its name: CREATE QUERY's, else the sink's, else `console`.
    pub name: String,
    /// Where its rows go.
    pub sink: SinkTarget,
    /// The operators, a Sink node last.
    pub pipeline: Pipeline,
    /// Output columns; the sink's schema from now on.
    pub schema: Schema,
    /// Output mode.
    pub mode: EmitMode,
    /// When batches run.
    pub trigger: Trigger,
    /// CHECKPOINT LOCATION, or the place below checkpoint.root. `None` only for sinks that keep no data.
    pub checkpoint: Option<String>,
    /// OPTIONS of the query.
    pub options: Vec<OptionValue>,
    /// LATE DATA TO.
    pub late_data_to: Option<String>,
    /// Relations that it reads as streams, lower case, each once.
    pub sources: Vec<String>,
    /// What bounds the state of each stateful operator.
    pub state: Vec<StateBound>,
    /// Things worth knowing, the query runs all the same.
    pub warnings: Vec<Diagnostic>,
    /// The logical plan as text.
    pub logical: String,
}

/// Where a streaming query's rows go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SinkTarget {
    /// A sink of the catalog, by its name there.
    Named(String),
    /// The terminal.
    Console,
}

/// When micro-batches run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// The next as soon as the last ends.
    Default,
    /// Every so many microseconds.
    ProcessingTime {
        /// The distance.
        micros: i64,
    },
    /// All that is there at the start, in batches, then end.
    AvailableNow,
    /// One batch, then end.
    Once,
    /// Rows as they come, offsets committed every so many microseconds.
    Continuous {
        /// The distance.
        micros: i64,
    },
}

/// A bounded query.
#[derive(Debug, Clone)]
pub struct BatchPlan {
    /// The operators; the last gives the rows.
    pub pipeline: Pipeline,
    /// Output columns.
    pub schema: Schema,
    /// Whether the rows have an order that must be kept.
    pub ordered: bool,
    /// The logical plan as text.
    pub logical: String,
}

/// INSERT INTO a table or a memory stream.
#[derive(Debug, Clone)]
pub struct Insert {
    /// The relation's name in the catalog.
    pub relation: String,
    /// Whether it is a stream: the rows are one atomic addition.
    pub stream: bool,
    /// Gives the rows, already of the relation's columns in their order and types.
    pub rows: BatchPlan,
}

/// CREATE STREAM, TABLE, VIEW or SINK.
#[derive(Debug, Clone)]
pub struct CreateRelation {
    /// What to register. Its schema is None where the connector's data carry it.
    pub relation: Relation,
    /// OR REPLACE stands: an existing relation goes.
    pub or_replace: bool,
    /// A relation of that name exists and IF NOT EXISTS stands: nothing is to be done.
    pub exists: bool,
}

/// EXPLAIN.
#[derive(Debug, Clone)]
pub struct Explained {
    /// Which form; LOGICAL when none is written.
    pub stage: ExplainStage,
    /// The syntax tree as text.
    pub ast: String,
    /// The statement's plan: its `logical` text and its pipeline serve the other stages.
    pub planned: Planned,
}

/// Plans one statement. The catalog must hold what earlier statements created.
pub fn plan_statement(statement: &ast::Statement, catalog: &Catalog) -> Result<Planned, Vec<Diagnostic>> {
    let span = statement.span;
    match &statement.kind {
        StatementKind::CreateStream(c) => create::relation(c, RelationKind::Stream, span, catalog),
        StatementKind::CreateTable(c) => create::relation(c, RelationKind::Table, span, catalog),
        StatementKind::CreateView(c) => create::view(c, span, catalog),
        StatementKind::CreateFunction(c) => create::function(c, span, catalog),
        StatementKind::CreateSink(c) => create::sink(c, span, catalog),
        StatementKind::Drop(d) => drop_object(d, catalog),
        StatementKind::Insert(i) => insert::insert(i, span, catalog),
        StatementKind::Query(q) => query::query(q, span, catalog),
        StatementKind::Show(show) => Ok(Planned::Show(show.clone())),
        StatementKind::Describe(d) => describe(d, catalog),
        StatementKind::StopQuery(s) => Ok(Planned::StopQuery { name: s.name.value.clone(), drain: s.drain }),
        StatementKind::AwaitQuery(a) => {
            let timeout_micros = match &a.timeout {
                Some(e) => Some(duration(e, "the timeout", catalog)?),
                None => None,
            };
            Ok(Planned::AwaitQuery { name: a.name.as_ref().map(|n| n.value.clone()), timeout_micros })
        }
        StatementKind::ProcessAllAvailable(name) => {
            Ok(Planned::ProcessAllAvailable(name.as_ref().map(|n| n.value.clone())))
        }
        StatementKind::AdvanceClock(e) => Ok(Planned::AdvanceClock(duration(e, "the clock's step", catalog)?)),
        StatementKind::Explain(e) => {
            let planned = plan_statement(&e.statement, catalog)?;
            Ok(Planned::Explain(Box::new(Explained {
                stage: e.stage.unwrap_or(ExplainStage::Logical),
                ast: ssql_grammar::dump::dump_statement(&e.statement),
                planned,
            })))
        }
        StatementKind::Set(set) => set_setting(set, catalog),
        StatementKind::Reset(key) => match key {
            None => Ok(Planned::Reset(None)),
            Some(key) => match Settings::canonical(&key.text, key.span) {
                Ok(key) => Ok(Planned::Reset(Some(key))),
                Err(d) => Err(vec![*d]),
            },
        },
        StatementKind::Merge(_) => Err(vec![not_executed(statement.kind.name(), span)]),
    }
}

/// The diagnostic for a statement whose execution is not there yet.
fn not_executed(name: &str, span: Span) -> Diagnostic {
    Diagnostic::error("UNSUPPORTED_FEATURE.NOT_EXECUTED", format!("`{name}` is not executed yet"))
        .at(span)
        .with_note("It parses and prints; a later version carries it out.")
}

fn set_setting(set: &ast::Set, catalog: &Catalog) -> Result<Planned, Vec<Diagnostic>> {
    let Some(key) = &set.key else {
        return Ok(Planned::ShowSettings(catalog.settings.all()));
    };
    let one = |d: Box<Diagnostic>| vec![*d];
    match &set.value {
        None => {
            let name = Settings::canonical(&key.text, key.span).map_err(one)?;
            Ok(Planned::ShowSettings(vec![(name, catalog.settings.get(name).to_string())]))
        }
        Some(value) => {
            let text = catalog.literal_text(value).map_err(one)?;
            let (key, value) = Settings::check(&key.text, &text, key.span, value.span).map_err(one)?;
            Ok(Planned::Set { key, value })
        }
    }
}

fn drop_object(d: &ast::Drop, catalog: &Catalog) -> Result<Planned, Vec<Diagnostic>> {
    let name = d.name.dotted();
    let wanted = match d.kind {
        ObjectKind::Function => {
            let known: Vec<&str> = catalog.functions().map(|f| f.name.as_str()).collect();
            return match catalog.function(&name) {
                Some(f) => Ok(Planned::Drop { kind: d.kind, name: f.name.clone(), exists: true }),
                None if d.if_exists => Ok(Planned::Drop { kind: d.kind, name, exists: false }),
                None => {
                    let mut e =
                        Diagnostic::error("ROUTINE_NOT_FOUND", format!("there is no function `{name}` to drop"))
                            .at(d.name.span);
                    if let Some(near) = suggest(&name, known) {
                        e = e.with_help(format!("Did you mean `{near}`?"));
                    }
                    Err(vec![e])
                }
            };
        }
        // Which queries there are, the session knows.
        ObjectKind::Query => return Ok(Planned::DropQuery { name, if_exists: d.if_exists }),
        ObjectKind::Stream => RelationKind::Stream,
        ObjectKind::Table => RelationKind::Table,
        ObjectKind::View => RelationKind::View,
        ObjectKind::Sink => RelationKind::Sink,
    };
    match catalog.relation(&name) {
        Some(r) if r.kind == wanted => Ok(Planned::Drop { kind: d.kind, name: r.name.clone(), exists: true }),
        Some(r) => Err(vec![
            Diagnostic::error(
                "WRONG_COMMAND_FOR_OBJECT_TYPE",
                format!("`{}` is a {}, not a {}", r.name, r.kind.noun(), wanted.noun()),
            )
            .at(d.name.span)
            .with_help(format!("Write DROP {} {}.", r.kind.noun().to_uppercase(), r.name)),
        ]),
        None if d.if_exists => Ok(Planned::Drop { kind: d.kind, name, exists: false }),
        None => match catalog.require(&name, d.name.span) {
            Ok(_) => Ok(Planned::Drop { kind: d.kind, name, exists: true }),
            Err(e) => Err(vec![*e]),
        },
    }
}

fn describe(d: &ast::Describe, catalog: &Catalog) -> Result<Planned, Vec<Diagnostic>> {
    let relation = catalog.require(&d.name.dotted(), d.name.span).map_err(|e| vec![*e])?;
    let mut relation = relation.clone();
    if let (Some(view), RelationKind::View) = (&relation.view, relation.kind) {
        let query = query::bind(&view.query, catalog)?;
        relation.schema = Some(query::schema(&query));
    }
    Ok(Planned::Describe { extended: d.extended, relation: Box::new(relation) })
}

/// A duration in microseconds, a month counted as 31 days.
fn duration(e: &ast::Expr, what: &str, catalog: &Catalog) -> Result<i64, Vec<Diagnostic>> {
    let mut binder = Binder::new(catalog, &e.clauses, e.span);
    let value = binder.bind_interval(&e.sql, what).map_err(|d| vec![*d])?;
    match IntervalValue::delay_micros(value) {
        Some(micros) if micros >= 0 => Ok(micros),
        _ => Err(vec![
            Diagnostic::error("INVALID_PARAMETER_VALUE.INTERVAL", format!("{what} must not be negative")).at(e.span),
        ]),
    }
}
