//! The operators: what each does to its input, what it keeps, and the pipeline they form.
//!
//! Conventions that keep operators small: expressions stand only in [`Op::Map`], [`Op::Expand`], [`Op::Generate`],
//! [`Op::Values`], [`Op::WindowFunction`] and a join's residual; everything else names input columns by position, and
//! the planner puts a `Map` in front where something has to be computed. A window `[start, end)` travels as its
//! start (and, for sessions, its end): the `window` struct is put together by a later `Map`.

use crate::expr::{Expr, Literal, Symbol};
use crate::types::{ChangeKind, DataType, Schema};

/// Position of a node in its pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

/// A query: operators in topological order (inputs before users); the last node is its result.
#[derive(Debug, Clone, PartialEq)]
pub struct Pipeline {
    /// Name of the query.
    pub name: String,
    /// Operators.
    pub nodes: Vec<Node>,
    /// How the result is emitted. A bounded query (no streaming source) uses [`EmitMode::Complete`].
    pub mode: EmitMode,
    /// Static subqueries whose single values [`crate::ExprKind::ScalarSubquery`] refers to; computed at the start of
    /// every micro-batch.
    pub subqueries: Vec<Pipeline>,
}

/// An operator with its inputs and the derived facts of its output edge.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// What it does.
    pub op: Op,
    /// Nodes it reads, all earlier in the list.
    pub inputs: Vec<NodeId>,
    /// Columns of its output.
    pub schema: Schema,
    /// Output columns that carry event time under a watermark (ascending). A windowed aggregate's window start counts:
    /// its [`CloseRule`] says how far it lies behind the window's end.
    pub event_time: Vec<u32>,
    /// What its output rows mean.
    pub change: ChangeKind,
}

/// Output mode, as in Structured Streaming.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EmitMode {
    /// Each result row once, when it can no longer change.
    Append,
    /// Rows that this micro-batch changed.
    Update,
    /// The whole result table each time.
    Complete,
}

/// How far a watermark stays behind the largest event time seen. A month counts 31 days here, as in Spark, so the
/// whole delay is one number of microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Delay {
    /// Microseconds, not negative.
    pub micros: i64,
}

/// When a group or a kept row is finished: once `column + add_micros <= watermark`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CloseRule {
    /// Input column of type TIMESTAMP (a window's start, a session's end, or a plain event time).
    pub column: u32,
    /// Added to the column's value, in microseconds (a window's size for a window start, 0 otherwise).
    pub add_micros: i64,
}

/// One argument of an aggregate.
#[derive(Debug, Clone, PartialEq)]
pub enum AggArg {
    /// An input column.
    Column(u32),
    /// A constant of that type (percentages, a separator, an accuracy).
    Literal(Literal, DataType),
}

/// A bound aggregate call.
#[derive(Debug, Clone, PartialEq)]
pub struct AggCall {
    /// Canonical name in the standard library.
    pub function: Symbol,
    /// Arguments; none for `count(*)`.
    pub args: Vec<AggArg>,
    /// Types of the arguments, as the resolved overload takes them.
    pub arg_types: Vec<DataType>,
    /// BOOLEAN input column that a row must have true to count (`FILTER (WHERE ...)`).
    pub filter: Option<u32>,
    /// Only distinct argument tuples count.
    pub distinct: bool,
    /// NULL arguments are passed over (`IGNORE NULLS` of first/last/any_value).
    pub ignore_nulls: bool,
    /// Order in which the rows are taken (`WITHIN GROUP (ORDER BY ...)`); empty: arrival.
    pub order: Vec<SortKey>,
    /// Type of the result.
    pub data_type: DataType,
    /// Whether the result may be NULL.
    pub nullable: bool,
}

/// A column to sort by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SortKey {
    /// Input column.
    pub column: u32,
    /// Largest first.
    pub descending: bool,
    /// NULLs before all values.
    pub nulls_first: bool,
}

/// Kinds of join.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JoinKind {
    /// Matching pairs.
    Inner,
    /// Matching pairs and unmatched left rows.
    Left,
    /// Matching pairs and unmatched right rows.
    Right,
    /// Matching pairs and unmatched rows of both sides.
    Full,
    /// Left rows with a match; the output has the left columns only.
    LeftSemi,
    /// Left rows without a match; the output has the left columns only.
    LeftAnti,
    /// Left rows without a match where a NULL key on either side counts as a possible match (`NOT IN`).
    NullAwareAnti,
    /// Left columns and a BOOLEAN that tells whether there is a match (EXISTS or IN used as a value).
    Existence,
}

/// What a streaming join keeps of one side and when a kept row can no longer match.
#[derive(Debug, Clone, PartialEq)]
pub struct JoinSide {
    /// Key columns of this side's input, pairwise equal to the other side's.
    pub keys: Vec<u32>,
    /// When a kept row is dropped (and, for an outer side, shown as unmatched): once `column + add <= watermark`. An
    /// inclusive bound has one millisecond in `add`, as Spark waits that much longer. `None`: never.
    pub expire: Option<CloseRule>,
    /// Late rows: event-time column of this side; a row with `value <= late watermark` is dropped.
    pub late: Option<u32>,
}

/// The operators.
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    /// Rows of a relation. Streaming: the rows of this micro-batch; static: all rows.
    Source {
        /// Relation in the catalog.
        relation: Symbol,
        /// Whether it is a stream.
        streaming: bool,
        /// Columns read, by position in the relation's schema, ascending; no other column is parsed.
        columns: Vec<u32>,
    },
    /// Constant rows; the expressions have no columns.
    Values {
        /// Rows of equal length.
        rows: Vec<Vec<Expr>>,
    },
    /// Keeps rows for which the predicate is true, then computes the output columns. Fused: one kernel.
    Map {
        /// Filter, over the input columns.
        predicate: Option<Expr>,
        /// Output columns, over the input columns.
        project: Vec<Expr>,
    },
    /// Passes rows on and lets the query's watermark follow the column: largest value seen less the delay, in whole
    /// milliseconds, never moving back.
    Watermark {
        /// TIMESTAMP column.
        column: u32,
        /// Distance to the largest value.
        delay: Delay,
        /// Silent for that long (processing time, microseconds), this input no longer holds the watermark back.
        idle_after: Option<i64>,
        /// A row further ahead of processing time than this (microseconds) does not move the watermark.
        max_skew: Option<i64>,
    },
    /// Drops and counts rows that are late: `column + add_micros <= watermark` of the late-row rule. NULL is never late.
    DropLate {
        /// What is compared.
        rule: CloseRule,
    },
    /// Adds for each hopping window that contains the row's time a copy of the row with the window's start appended as
    /// the last column (non-NULL TIMESTAMP). Rows with a NULL time are dropped. Tumbling windows need none of this: a
    /// `Map` computes `window_start(ts, size, offset)`.
    AssignWindows {
        /// TIMESTAMP column.
        time: u32,
        /// Window length, microseconds, positive.
        size: i64,
        /// Distance of window starts, microseconds, `0 < slide <= size`.
        slide: i64,
        /// Offset of window starts from the epoch, microseconds.
        offset: i64,
    },
    /// Groups by the key columns. Output: key columns in order, then one column per aggregate.
    Aggregate {
        /// Grouping columns; none: one global group.
        keys: Vec<u32>,
        /// Aggregates.
        aggs: Vec<AggCall>,
        /// When a group is finished, over the *input* columns (the column is one of the keys). APPEND emits then;
        /// UPDATE evicts then. `None`: groups are kept for ever.
        close: Option<CloseRule>,
        /// What each micro-batch emits.
        emit: EmitMode,
    },
    /// Groups into hopping windows by slices: each row is aggregated once, into its slice, and the slices of a window are
    /// combined when the window is shown. The starts and ends of all windows cut time into slices. Only for aggregates
    /// whose result does not go by the order of rows. Output: window start, key columns, aggregates.
    HopAggregate {
        /// TIMESTAMP column: start of the row's slice. Rows where it is NULL are in no window.
        slice: u32,
        /// Window length, microseconds, positive.
        size: i64,
        /// Distance of window starts, microseconds, `0 < slide <= size`.
        slide: i64,
        /// Offset of window starts from the epoch, microseconds.
        offset: i64,
        /// Further grouping columns.
        keys: Vec<u32>,
        /// Aggregates.
        aggs: Vec<AggCall>,
        /// Whether windows are finished by the watermark (`start + size <= watermark`).
        close: bool,
        /// What each micro-batch emits.
        emit: EmitMode,
    },
    /// Merges rows into sessions per key: a row spans `[start, end)`, and rows of a key whose spans touch or overlap
    /// are one session. Output: session start, session end, key columns, aggregates.
    SessionAggregate {
        /// TIMESTAMP column, where the row's span begins.
        start: u32,
        /// TIMESTAMP column, where it ends (start + gap).
        end: u32,
        /// Further grouping columns.
        keys: Vec<u32>,
        /// Aggregates.
        aggs: Vec<AggCall>,
        /// Whether sessions are finished by the watermark (`end <= watermark`).
        close: bool,
        /// What each micro-batch emits.
        emit: EmitMode,
    },
    /// Passes on the first row of each key.
    Dedup {
        /// Key columns.
        keys: Vec<u32>,
        /// State is dropped once `column + add_micros <= watermark`; the column is one of the keys, or, `within`
        /// watermark, the event time of the first row, whose expiry is `value + delay`.
        close: Option<CloseRule>,
        /// DISTINCT ON ... WITHIN WATERMARK.
        within_watermark: bool,
    },
    /// Symmetric hash join of two streams (input 0 left, input 1 right).
    StreamJoin {
        /// Kind.
        kind: JoinKind,
        /// Left side.
        left: JoinSide,
        /// Right side.
        right: JoinSide,
        /// Condition beyond key equality, over left columns then right columns.
        residual: Option<Expr>,
    },
    /// Join of which at most one side is a stream. The static side is built into a table once per micro-batch.
    HashJoin {
        /// Kind, seen from input 0 as left.
        kind: JoinKind,
        /// Key columns of the left input; empty: every pair is a candidate.
        left_keys: Vec<u32>,
        /// Key columns of the right input.
        right_keys: Vec<u32>,
        /// For each key: NULL equals NULL (`<=>`).
        null_safe: Vec<bool>,
        /// Condition beyond key equality, over left columns then right columns.
        residual: Option<Expr>,
    },
    /// All rows of all inputs, which have equal column types.
    Union,
    /// All rows in order; bounded input or COMPLETE only.
    Sort {
        /// Keys, most significant first.
        keys: Vec<SortKey>,
    },
    /// Rows `offset .. offset + limit` of the input's order. On a stream in APPEND the count goes on over batches.
    Limit {
        /// Rows passed on; `None`: all after the offset.
        limit: Option<u64>,
        /// Rows skipped first.
        offset: u64,
    },
    /// Each input row once per projection (grouping sets).
    Expand {
        /// Projections of equal length and types, over the input columns.
        projections: Vec<Vec<Expr>>,
    },
    /// Input columns followed by the columns that a generator (`explode`, `posexplode`, `inline`, ...) makes of each
    /// row, once per generated row.
    Generate {
        /// Canonical name in the standard library.
        generator: Symbol,
        /// Arguments over the input columns.
        args: Vec<Expr>,
        /// A row that generates nothing is passed on once with NULLs.
        outer: bool,
    },
    /// Analytic functions over bounded input: input columns followed by one column per call.
    WindowFunction {
        /// PARTITION BY columns.
        partition: Vec<u32>,
        /// ORDER BY columns.
        order: Vec<SortKey>,
        /// Calls that share partitioning and order.
        calls: Vec<WindowCall>,
    },
    /// Delivers the rows; the last node of a query with a sink.
    Sink {
        /// Sink in the catalog.
        relation: Symbol,
    },
}

/// An analytic call with its frame.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowCall {
    /// The function: an aggregate, or a ranking or offset function (`row_number`, `rank`, `lag`, ...).
    pub call: AggCall,
    /// The frame.
    pub frame: Frame,
}

/// A window frame.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// ROWS (true) or RANGE.
    pub rows: bool,
    /// First row.
    pub start: FrameBound,
    /// Last row.
    pub end: FrameBound,
}

/// One end of a frame.
#[derive(Debug, Clone, PartialEq)]
pub enum FrameBound {
    /// UNBOUNDED PRECEDING (as a start) or FOLLOWING (as an end).
    Unbounded,
    /// CURRENT ROW.
    CurrentRow,
    /// That far before the current row (rows, or units of the order key).
    Preceding(Literal),
    /// That far after it.
    Following(Literal),
}
