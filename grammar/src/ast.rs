//! The syntax tree of a script: our statements, with sqlparser's tree for the SQL inside them.
//!
//! Two kinds of text meet here. Statements of ours (CREATE STREAM, EMIT, TRIGGER, ...) are plain structs of this file,
//! each with the [`Span`] of the whole and of every named part. SQL text inside them (queries, expressions, types,
//! MERGE) is an [`Embedded`] fragment: sqlparser's own tree (`ssql_grammar::sql`) plus the streaming clauses that
//! sqlparser does not know, kept beside it in [`StreamClauses`].
//!
//! How a planner walks a query: for each `sql::TableFactor` ask [`StreamClauses::watermark`] and
//! [`StreamClauses::stream_read`]; for each `sql::Select` with `DISTINCT ON` ask [`StreamClauses::within_watermark`];
//! for each argument of TUMBLE / HOP / SESSION ask [`StreamClauses::table_argument`]. Spans of sqlparser nodes come
//! from [`crate::embed::span_of`]; they are script spans already, nothing needs re-basing.

use crate::source::Span;
use crate::sql;

/// A whole parsed script.
#[derive(Debug, Clone, Default)]
pub struct Script {
    /// The statements that parsed, in script order. A statement with a syntax error is left out (its diagnostic says so).
    pub statements: Vec<Statement>,
    /// Every comment of the script, in order; only the printer reads them.
    pub comments: Vec<Comment>,
    /// Names that statements with a syntax error would have created: that they are missing is no second mistake.
    pub broken: Vec<String>,
}

/// A `--` or `/* */` comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    /// The comment with its markers, without the line end.
    pub text: String,
    /// Where it stands.
    pub span: Span,
}

/// One statement with its span, the closing `;` not included.
#[derive(Debug, Clone)]
pub struct Statement {
    /// What it says.
    pub kind: StatementKind,
    /// First to last token.
    pub span: Span,
}

/// Every statement of the language.
#[derive(Debug, Clone)]
pub enum StatementKind {
    /// `CREATE STREAM` (alias `CREATE SOURCE`).
    CreateStream(CreateRelation),
    /// `CREATE TABLE`: a static relation.
    CreateTable(CreateRelation),
    /// `CREATE VIEW`.
    CreateView(CreateView),
    /// `CREATE FUNCTION`: an inlined SQL scalar function.
    CreateFunction(CreateFunction),
    /// `CREATE SINK`, with a connector or FOREACH BATCH.
    CreateSink(CreateSink),
    /// `DROP kind [IF EXISTS] name`.
    Drop(Drop),
    /// `[CREATE QUERY name AS] INSERT INTO target query [EMIT ...]`: data into a table or memory stream, or a streaming query into a sink.
    Insert(Insert),
    /// A bare query: batch without `EMIT`, a streaming query to the console with it.
    Query(QueryStatement),
    /// `MERGE INTO`.
    Merge(Merge),
    /// `SHOW ...`.
    Show(Show),
    /// `DESCRIBE [EXTENDED] name`.
    Describe(Describe),
    /// `STOP QUERY name [WITH DRAIN]`.
    StopQuery(StopQuery),
    /// `AWAIT QUERY name [TIMEOUT i]` or `AWAIT ANY QUERY [TIMEOUT i]`.
    AwaitQuery(AwaitQuery),
    /// `PROCESS ALL AVAILABLE [FOR name]`; the name is None when it means every query.
    ProcessAllAvailable(Option<Name>),
    /// `ADVANCE CLOCK interval` (test files).
    AdvanceClock(Expr),
    /// `EXPLAIN [stage] statement`.
    Explain(Explain),
    /// `SET key = value`, or `SET key` to show it, or `SET` to show all.
    Set(Set),
    /// `RESET [key]`; None resets all.
    Reset(Option<SettingKey>),
}

impl StatementKind {
    /// The statement's name as a user writes it, for messages: ``"`SHOW QUERY PROGRESS` is not executed yet"``.
    pub fn name(&self) -> &'static str {
        match self {
            StatementKind::CreateStream(_) => "CREATE STREAM",
            StatementKind::CreateTable(_) => "CREATE TABLE",
            StatementKind::CreateView(_) => "CREATE VIEW",
            StatementKind::CreateFunction(_) => "CREATE FUNCTION",
            StatementKind::CreateSink(_) => "CREATE SINK",
            StatementKind::Drop(_) => "DROP",
            StatementKind::Insert(i) if i.query_name.is_some() => "CREATE QUERY",
            StatementKind::Insert(_) => "INSERT INTO",
            StatementKind::Query(_) => "SELECT",
            StatementKind::Merge(_) => "MERGE INTO",
            StatementKind::Show(s) => s.name(),
            StatementKind::Describe(_) => "DESCRIBE",
            StatementKind::StopQuery(_) => "STOP QUERY",
            StatementKind::AwaitQuery(_) => "AWAIT QUERY",
            StatementKind::ProcessAllAvailable(_) => "PROCESS ALL AVAILABLE",
            StatementKind::AdvanceClock(_) => "ADVANCE CLOCK",
            StatementKind::Explain(_) => "EXPLAIN",
            StatementKind::Set(_) => "SET",
            StatementKind::Reset(_) => "RESET",
        }
    }
}

/// One identifier. Compare names without regard to case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// The name without its quotes, quote escapes resolved.
    pub value: String,
    /// Whether it stood in backticks or double quotes.
    pub quoted: bool,
    /// Where it stands, quotes included.
    pub span: Span,
}

/// A name with dots: `orders`, `db.orders`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectName {
    /// One or more parts.
    pub parts: Vec<Name>,
    /// First to last part.
    pub span: Span,
}

impl ObjectName {
    /// The parts joined with dots, unquoted: for messages and catalog keys (lower-case it for the latter).
    pub fn dotted(&self) -> String {
        let parts: Vec<&str> = self.parts.iter().map(|p| p.value.as_str()).collect();
        parts.join(".")
    }
}

/// A literal in LOCATION, OPTIONS, COMMENT, CHECKPOINT LOCATION, LAST n, SET.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Literal {
    /// The value.
    pub value: LiteralValue,
    /// Where it stands.
    pub span: Span,
}

/// The value of a [`Literal`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LiteralValue {
    /// A string, escapes resolved.
    String(String),
    /// A number as written, sign included.
    Number(String),
    /// TRUE or FALSE.
    Boolean(bool),
    /// `:name`, without the colon; the parameter's value takes its place before planning.
    Parameter(String),
}

/// One `key value` of OPTIONS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionEntry {
    /// The key: dotted keys as one text; option keys are compared without regard to case.
    pub key: String,
    /// Where the key stands.
    pub key_span: Span,
    /// The value.
    pub value: Literal,
}

/// SQL text inside a statement, parsed by sqlparser. Every location in `sql` is a script position (see [`crate::embed::span_of`]).
#[derive(Debug, Clone)]
pub struct Embedded<T> {
    /// sqlparser's tree.
    pub sql: T,
    /// Streaming clauses that stood in the text, keyed by the node they belong to.
    pub clauses: StreamClauses,
    /// The text's place in the script.
    pub span: Span,
}

/// A query (SELECT, WITH, VALUES, set operations, ...).
pub type Query = Embedded<Box<sql::Query>>;
/// A scalar expression; also an interval (`INTERVAL 10 MINUTES`), a string or a parameter where an interval is expected.
pub type Expr = Embedded<sql::Expr>;
/// A column or return type.
pub type DataType = Embedded<sql::DataType>;
/// A `MERGE INTO` statement.
pub type Merge = Embedded<Box<sql::Merge>>;

/// The streaming clauses of one embedded fragment.
///
/// Entries are keyed by the script position of the sqlparser node they belong to; use the look-up methods, which take
/// the node itself.
#[derive(Debug, Clone, Default)]
pub struct StreamClauses {
    /// `relation WATERMARK ...`, in script order.
    pub watermarks: Vec<RelationWatermark>,
    /// `DISTINCT ON (...) WITHIN WATERMARK`, in script order.
    pub within_watermarks: Vec<WithinWatermark>,
    /// `TABLE s [PARTITION BY ...]` as a function argument, in script order.
    pub table_arguments: Vec<TableArgument>,
    /// `STREAM s` / `STREAM(s)` in FROM, in script order.
    pub stream_reads: Vec<StreamRead>,
    /// Completes the spans of sqlparser's nodes.
    pub extents: crate::extent::Extents,
}

/// A watermark on one relation of a FROM clause.
#[derive(Debug, Clone)]
pub struct RelationWatermark {
    /// The span of the relation that it follows, as [`crate::embed::factor_span`] gives it for the table factor.
    pub relation: Span,
    /// The clause.
    pub watermark: Watermark,
}

/// `WITHIN WATERMARK` after a `DISTINCT ON (...)`.
#[derive(Debug, Clone, Copy)]
pub struct WithinWatermark {
    /// Script position of the SELECT keyword it belongs to.
    pub select_start: u32,
    /// The two words.
    pub span: Span,
}

/// `TABLE relation [PARTITION BY exprs]` as an argument of a table function.
#[derive(Debug, Clone)]
pub struct TableArgument {
    /// Script position of the relation after TABLE: its name, or the first word inside its parentheses.
    pub start: u32,
    /// PARTITION BY expressions; empty when the clause is absent.
    pub partition_by: Vec<Expr>,
    /// From TABLE to the end of PARTITION BY.
    pub span: Span,
}

/// The word STREAM before a relation's name.
#[derive(Debug, Clone, Copy)]
pub struct StreamRead {
    /// Script position of the relation's name.
    pub start: u32,
    /// The word STREAM.
    pub span: Span,
}

/// A watermark, in DDL (`WATERMARK FOR col ...`) or after a relation (`WATERMARK expr ...`).
///
/// | written | `expr` | `name` |
/// |---|---|---|
/// | `WATERMARK FOR ts DELAY OF d` (DDL) | None | ts |
/// | `WATERMARK FOR ts AS e DELAY OF d` (DDL) | e | ts |
/// | `WATERMARK FOR ts AS ts - d` (DDL, alias) | None | ts, and `delay` = d |
/// | `WATERMARK ts DELAY OF d` (FROM) | ts | None |
/// | `WATERMARK e AS n DELAY OF d` (FROM) | e | n: a new column beside the relation's own |
#[derive(Debug, Clone)]
pub struct Watermark {
    /// The event-time expression.
    pub expr: Option<Expr>,
    /// The event-time column.
    pub name: Option<Name>,
    /// `DELAY OF`: an interval expression, a plain string or a parameter.
    pub delay: Expr,
    /// `IDLE AFTER`, likewise.
    pub idle_after: Option<Expr>,
    /// `MAX SKEW`, likewise.
    pub max_skew: Option<Expr>,
    /// The whole clause.
    pub span: Span,
}

/// `CREATE STREAM` and `CREATE TABLE`.
#[derive(Debug, Clone)]
pub struct CreateRelation {
    /// `OR REPLACE`.
    pub or_replace: bool,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// The new name.
    pub name: ObjectName,
    /// Declared columns; None when there is no column list (the connector brings its own).
    pub columns: Option<Vec<ColumnDef>>,
    /// `WATERMARK FOR ...` of the column list; only on streams.
    pub watermark: Option<Watermark>,
    /// Where it lives: USING, LOCATION, OPTIONS, PARTITIONED BY.
    pub connector: Connector,
    /// `IDENTIFIED BY name`.
    pub identified_by: Option<Name>,
    /// `REJECTS TO sink`; only on streams.
    pub rejects_to: Option<ObjectName>,
    /// `COMMENT 'text'`.
    pub comment: Option<Literal>,
}

/// The connector part of CREATE STREAM / TABLE / SINK. `WITH ('connector' = 'x', ...)` is stored in the same form.
#[derive(Debug, Clone, Default)]
pub struct Connector {
    /// `USING name`.
    pub using: Option<Name>,
    /// `LOCATION 'path'`: a string or a parameter.
    pub location: Option<Literal>,
    /// `OPTIONS (...)`, in order.
    pub options: Vec<OptionEntry>,
    /// `PARTITIONED BY (cols)`.
    pub partitioned_by: Vec<Name>,
}

/// One column of a column list.
#[derive(Debug, Clone)]
pub struct ColumnDef {
    /// Its name.
    pub name: Name,
    /// Its type.
    pub data_type: DataType,
    /// The words `NOT NULL`, when they stand there.
    pub not_null: Option<Span>,
    /// `DEFAULT expr`.
    pub default: Option<Expr>,
    /// `COMMENT 'text'`.
    pub comment: Option<Literal>,
    /// The whole definition.
    pub span: Span,
}

/// `CREATE VIEW name [(cols)] AS query`.
#[derive(Debug, Clone)]
pub struct CreateView {
    /// `OR REPLACE`.
    pub or_replace: bool,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// The new name.
    pub name: ObjectName,
    /// New column names; empty when absent.
    pub columns: Vec<Name>,
    /// `COMMENT 'text'`.
    pub comment: Option<Literal>,
    /// The query.
    pub query: Query,
}

/// `CREATE FUNCTION name(params) [RETURNS type] RETURN expr`.
#[derive(Debug, Clone)]
pub struct CreateFunction {
    /// `OR REPLACE`.
    pub or_replace: bool,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// The new name.
    pub name: ObjectName,
    /// Parameters in order.
    pub params: Vec<FunctionParam>,
    /// The declared result type; None takes the expression's.
    pub returns: Option<DataType>,
    /// The body.
    pub body: Expr,
}

/// One parameter of a SQL function.
#[derive(Debug, Clone)]
pub struct FunctionParam {
    /// Its name.
    pub name: Name,
    /// Its type.
    pub data_type: DataType,
    /// `DEFAULT expr`.
    pub default: Option<Expr>,
    /// The whole parameter.
    pub span: Span,
}

/// `CREATE SINK`.
#[derive(Debug, Clone)]
pub struct CreateSink {
    /// `OR REPLACE`.
    pub or_replace: bool,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// The new name.
    pub name: ObjectName,
    /// Where its rows go.
    pub body: SinkBody,
}

/// What a sink does with a batch.
#[derive(Debug, Clone)]
pub enum SinkBody {
    /// Hands it to a connector.
    Connector(Connector),
    /// `FOREACH BATCH AS BEGIN ...; END`: the statements in order, only INSERT and MERGE.
    ForeachBatch(Vec<Statement>),
}

/// What kind of object DROP names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectKind {
    /// STREAM (or SOURCE).
    Stream,
    /// TABLE.
    Table,
    /// VIEW.
    View,
    /// SINK.
    Sink,
    /// FUNCTION.
    Function,
    /// QUERY.
    Query,
}

impl ObjectKind {
    /// The keyword, upper case.
    pub fn keyword(self) -> &'static str {
        match self {
            ObjectKind::Stream => "STREAM",
            ObjectKind::Table => "TABLE",
            ObjectKind::View => "VIEW",
            ObjectKind::Sink => "SINK",
            ObjectKind::Function => "FUNCTION",
            ObjectKind::Query => "QUERY",
        }
    }
}

/// `DROP kind [IF EXISTS] name`.
#[derive(Debug, Clone)]
pub struct Drop {
    /// The kind of object.
    pub kind: ObjectKind,
    /// `IF EXISTS`.
    pub if_exists: bool,
    /// Its name.
    pub name: ObjectName,
}

/// `[CREATE QUERY name AS] INSERT INTO target [(cols)] query [EMIT ...]`.
///
/// Whether it adds data (a table, a memory stream) or starts a streaming query (a sink) is the catalog's to say.
#[derive(Debug, Clone)]
pub struct Insert {
    /// The name given by CREATE QUERY.
    pub query_name: Option<Name>,
    /// The table, stream or sink.
    pub target: ObjectName,
    /// Column list; empty when absent.
    pub columns: Vec<Name>,
    /// What is inserted (VALUES included).
    pub query: Query,
    /// EMIT and its trailing clauses; None when none of them is written.
    pub emit: Option<Emit>,
}

/// A query that stands alone.
#[derive(Debug, Clone)]
pub struct QueryStatement {
    /// The query.
    pub query: Query,
    /// EMIT and its trailing clauses; None when none of them is written.
    pub emit: Option<Emit>,
}

/// The clauses after a streaming query. They may come in any order, each once.
#[derive(Debug, Clone)]
pub struct Emit {
    /// The output mode and its span; None when other clauses stand without EMIT (then it is APPEND).
    pub mode: Option<(EmitMode, Span)>,
    /// `LATE DATA TO sink`.
    pub late_data_to: Option<ObjectName>,
    /// `TRIGGER ...`.
    pub trigger: Option<Trigger>,
    /// `CHECKPOINT LOCATION 'path'`: a string or a parameter.
    pub checkpoint_location: Option<Literal>,
    /// `OPTIONS (...)`.
    pub options: Vec<OptionEntry>,
    /// First to last of these clauses.
    pub span: Span,
}

/// Structured Streaming's output modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmitMode {
    /// Each result row once, when it is final (aliases: FINAL, ON WINDOW CLOSE).
    Append,
    /// What this batch changed (alias: CHANGES).
    Update,
    /// The whole result, each batch.
    Complete,
}

impl EmitMode {
    /// The keyword, upper case.
    pub fn keyword(self) -> &'static str {
        match self {
            EmitMode::Append => "APPEND",
            EmitMode::Update => "UPDATE",
            EmitMode::Complete => "COMPLETE",
        }
    }
}

/// `TRIGGER ...`.
#[derive(Debug, Clone)]
pub struct Trigger {
    /// Which one.
    pub kind: TriggerKind,
    /// The whole clause.
    pub span: Span,
}

/// The triggers of Structured Streaming.
#[derive(Debug, Clone)]
pub enum TriggerKind {
    /// `PROCESSING TIME interval`.
    ProcessingTime(Expr),
    /// `AVAILABLE NOW`.
    AvailableNow,
    /// `ONCE`.
    Once,
    /// `CONTINUOUS interval`.
    Continuous(Expr),
}

/// `SHOW ...`.
#[derive(Debug, Clone)]
pub enum Show {
    /// `SHOW STREAMS`.
    Streams,
    /// `SHOW TABLES`.
    Tables,
    /// `SHOW VIEWS`.
    Views,
    /// `SHOW SINKS`.
    Sinks,
    /// `SHOW QUERIES`.
    Queries,
    /// `SHOW FUNCTIONS`.
    Functions,
    /// `SHOW QUERY STATUS name`.
    QueryStatus(Name),
    /// `SHOW QUERY PROGRESS name [LAST n]`; `last` is a number or a parameter.
    QueryProgress {
        /// The query.
        query: Name,
        /// How many of its last progress records.
        last: Option<Literal>,
    },
    /// `SHOW WATERMARKS [FOR name]`.
    Watermarks(Option<Name>),
}

impl Show {
    /// The statement's name, upper case.
    pub fn name(&self) -> &'static str {
        match self {
            Show::Streams => "SHOW STREAMS",
            Show::Tables => "SHOW TABLES",
            Show::Views => "SHOW VIEWS",
            Show::Sinks => "SHOW SINKS",
            Show::Queries => "SHOW QUERIES",
            Show::Functions => "SHOW FUNCTIONS",
            Show::QueryStatus(_) => "SHOW QUERY STATUS",
            Show::QueryProgress { .. } => "SHOW QUERY PROGRESS",
            Show::Watermarks(_) => "SHOW WATERMARKS",
        }
    }
}

/// `DESCRIBE [EXTENDED] name`.
#[derive(Debug, Clone)]
pub struct Describe {
    /// `EXTENDED`.
    pub extended: bool,
    /// The object.
    pub name: ObjectName,
}

/// `STOP QUERY name [WITH DRAIN]`.
#[derive(Debug, Clone)]
pub struct StopQuery {
    /// The query.
    pub name: Name,
    /// `WITH DRAIN`: raise the watermark to the end and emit what is open first.
    pub drain: bool,
}

/// `AWAIT QUERY name` or `AWAIT ANY QUERY`.
#[derive(Debug, Clone)]
pub struct AwaitQuery {
    /// The query; None means any.
    pub name: Option<Name>,
    /// `TIMEOUT interval`.
    pub timeout: Option<Expr>,
}

/// Which form of a statement EXPLAIN prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExplainStage {
    /// The syntax tree.
    Ast,
    /// The logical plan, for people.
    Logical,
    /// The IR.
    Ir,
    /// Cranelift's text of the kernels.
    Clif,
    /// Machine code of the kernels.
    Asm,
}

impl ExplainStage {
    /// The keyword, upper case.
    pub fn keyword(self) -> &'static str {
        match self {
            ExplainStage::Ast => "AST",
            ExplainStage::Logical => "LOGICAL",
            ExplainStage::Ir => "IR",
            ExplainStage::Clif => "CLIF",
            ExplainStage::Asm => "ASM",
        }
    }
}

/// `EXPLAIN [stage] statement`.
#[derive(Debug, Clone)]
pub struct Explain {
    /// The stage; None when not written.
    pub stage: Option<ExplainStage>,
    /// What is explained; never itself an EXPLAIN.
    pub statement: Box<Statement>,
}

/// A setting's name: `time_zone`, `spark.sql.session.timeZone`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingKey {
    /// As written, dots included.
    pub text: String,
    /// Where it stands.
    pub span: Span,
}

/// `SET [key [= value]]`.
#[derive(Debug, Clone)]
pub struct Set {
    /// The setting; None shows all.
    pub key: Option<SettingKey>,
    /// The new value; None shows the present one. A single literal keeps its kind; any other text up to `;` is a
    /// string of that text, trimmed.
    pub value: Option<Literal>,
}
