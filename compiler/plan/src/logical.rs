//! The logical plan: a tree of relational operators over columns with unique ids.
//!
//! Expressions are the IR's; while a plan is logical, [`ssql_ir::ExprKind::Column`] holds a [`ColumnId`] and not a
//! position. Ids are unique within one planned statement, so moving an operator never needs renumbering, and each use
//! of a view or CTE is bound to ids of its own. What is known of a column (name, type, its role as event time or as a
//! window) stands in [`Columns`] and not in the tree.

use ssql_grammar::Span;
use ssql_ir::{DataType, Expr, ExprKind, Frame, JoinKind, Symbol};

use crate::catalog::WatermarkSpec;

/// A column of a logical plan.
pub type ColumnId = u32;

/// What is known of a column.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnInfo {
    /// Name for printing and for output.
    pub name: String,
    /// Type.
    pub data_type: DataType,
    /// Whether it may be NULL.
    pub nullable: bool,
    /// Its role under a watermark.
    pub event_time: Option<EventTime>,
    /// For a struct column that is a time window: the columns it was put together from.
    pub window: Option<WindowRef>,
    /// Whether it is the start or the end of a time window that the planner has assigned.
    pub window_edge: bool,
}

/// A column's role as event time: what hangs on it is finished once `value + add_micros <= watermark`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventTime {
    /// Columns of one group tell the same time: copies of a column, the parts of one window.
    pub group: u32,
    /// A window's size for its start, 0 for a plain event time or a window's end.
    pub add_micros: i64,
}

/// The columns that a window struct was put together from; they travel beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowRef {
    /// Start of the window.
    pub start: ColumnId,
    /// Its end.
    pub end: WindowEnd,
}

/// How a window's end is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowEnd {
    /// Start plus that many microseconds.
    Size(i64),
    /// A column (sessions).
    Column(ColumnId),
}

/// All columns of a plan, by id.
#[derive(Debug, Clone, Default)]
pub struct Columns(Vec<ColumnInfo>);

impl Columns {
    /// A new column of that name and type.
    pub fn add(&mut self, name: impl Into<String>, data_type: DataType, nullable: bool) -> ColumnId {
        self.push(ColumnInfo {
            name: name.into(),
            data_type,
            nullable,
            event_time: None,
            window: None,
            window_edge: false,
        })
    }

    /// A new column.
    pub fn push(&mut self, info: ColumnInfo) -> ColumnId {
        self.0.push(info);
        (self.0.len() - 1) as ColumnId
    }

    /// What is known of a column of this plan.
    pub fn get(&self, id: ColumnId) -> &ColumnInfo {
        &self.0[id as usize]
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, id: ColumnId) -> &mut ColumnInfo {
        &mut self.0[id as usize]
    }

    /// An expression that reads a column.
    pub fn expr(&self, id: ColumnId) -> Expr {
        let info = self.get(id);
        Expr::column(id, info.data_type.clone(), info.nullable)
    }

    /// Number of columns.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A key of an order.
#[derive(Debug, Clone, PartialEq)]
pub struct OrderKey {
    /// What is compared.
    pub expr: Expr,
    /// Largest first.
    pub descending: bool,
    /// NULLs before all values.
    pub nulls_first: bool,
}

/// A bound aggregate call.
#[derive(Debug, Clone, PartialEq)]
pub struct AggExpr {
    /// Canonical name.
    pub function: Symbol,
    /// Arguments, cast to what the overload takes; none for `count(*)`.
    pub args: Vec<Expr>,
    /// FILTER (WHERE ...).
    pub filter: Option<Expr>,
    /// DISTINCT.
    pub distinct: bool,
    /// IGNORE NULLS.
    pub ignore_nulls: bool,
    /// WITHIN GROUP (ORDER BY ...).
    pub order: Vec<OrderKey>,
    /// Type of the result.
    pub data_type: DataType,
    /// Whether the result may be NULL.
    pub nullable: bool,
    /// Where it stands.
    pub span: Span,
}

/// A bound analytic call.
#[derive(Debug, Clone, PartialEq)]
pub struct AnalyticExpr {
    /// The function.
    pub call: AggExpr,
    /// The frame.
    pub frame: Frame,
}

/// Which deduplication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DedupKind {
    /// SELECT DISTINCT: the keys are all columns.
    Distinct,
    /// DISTINCT ON.
    On,
    /// DISTINCT ON ... WITHIN WATERMARK.
    WithinWatermark,
}

/// An operator of the tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// What it does.
    pub node: Node,
    /// What it reads.
    pub inputs: Vec<Plan>,
    /// Where it was written.
    pub span: Span,
}

/// The logical operators.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// Rows of a relation.
    Source {
        /// Its catalog symbol.
        relation: Symbol,
        /// Whether it is a stream.
        streaming: bool,
        /// Columns read, with their position in the relation's schema, ascending.
        columns: Vec<(ColumnId, u32)>,
    },
    /// Constant rows.
    Values {
        /// Columns.
        columns: Vec<ColumnId>,
        /// Rows over no columns.
        rows: Vec<Vec<Expr>>,
    },
    /// Rows for which the predicate is true.
    Filter {
        /// BOOLEAN.
        predicate: Expr,
    },
    /// Computes columns.
    Project {
        /// Output.
        columns: Vec<(ColumnId, Expr)>,
    },
    /// The watermark follows the column from here on.
    Watermark {
        /// TIMESTAMP column of the input.
        column: ColumnId,
        /// Delay and kin.
        spec: WatermarkSpec,
    },
    /// A copy of each row per hopping window that it falls into, with the window's start.
    AssignWindows {
        /// TIMESTAMP column of the input.
        time: ColumnId,
        /// The new column.
        start: ColumnId,
        /// Microseconds.
        size: i64,
        /// Microseconds.
        slide: i64,
        /// Microseconds.
        offset: i64,
    },
    /// Groups.
    Aggregate {
        /// Keys: output column, expression over the input.
        keys: Vec<(ColumnId, Expr)>,
        /// Aggregates.
        aggs: Vec<(ColumnId, AggExpr)>,
    },
    /// Groups into hopping windows by slices (see `passes/slices.rs`).
    HopAggregate {
        /// Output: start of the window.
        start: ColumnId,
        /// Input: start of the row's slice.
        slice: ColumnId,
        /// Input: start of the last window that contains the row.
        last: ColumnId,
        /// Microseconds.
        size: i64,
        /// Microseconds.
        slide: i64,
        /// Microseconds.
        offset: i64,
        /// Further keys.
        keys: Vec<(ColumnId, Expr)>,
        /// Aggregates.
        aggs: Vec<(ColumnId, AggExpr)>,
    },
    /// Groups into sessions.
    Session {
        /// Output start, input start.
        start: (ColumnId, ColumnId),
        /// Output end, input end.
        end: (ColumnId, ColumnId),
        /// Further keys.
        keys: Vec<(ColumnId, Expr)>,
        /// Aggregates.
        aggs: Vec<(ColumnId, AggExpr)>,
    },
    /// First row of each key.
    Dedup {
        /// Key columns of the input.
        keys: Vec<ColumnId>,
        /// Which one.
        kind: DedupKind,
    },
    /// Join of two inputs.
    Join {
        /// Kind.
        kind: JoinKind,
        /// Condition over the columns of both.
        on: Option<Expr>,
        /// The BOOLEAN column of [`JoinKind::Existence`].
        flag: Option<ColumnId>,
    },
    /// All rows of all inputs.
    Union {
        /// Output columns.
        columns: Vec<ColumnId>,
        /// For each input the columns that become them.
        sources: Vec<Vec<ColumnId>>,
    },
    /// Rows in order.
    Sort {
        /// Most significant first.
        keys: Vec<OrderKey>,
    },
    /// A stretch of the rows.
    Limit {
        /// Rows passed on.
        limit: Option<u64>,
        /// Rows skipped first.
        offset: u64,
    },
    /// Each row once per projection.
    Expand {
        /// Output columns.
        columns: Vec<ColumnId>,
        /// Expressions over the input, one list per copy.
        projections: Vec<Vec<Expr>>,
    },
    /// Input columns and what a generator makes of each row.
    Generate {
        /// Canonical name.
        generator: Symbol,
        /// Arguments over the input.
        args: Vec<Expr>,
        /// New columns.
        outputs: Vec<ColumnId>,
        /// Keeps rows that generate nothing.
        outer: bool,
    },
    /// Input columns and analytic calls of one partitioning and order.
    WindowFunction {
        /// PARTITION BY.
        partition: Vec<Expr>,
        /// ORDER BY.
        order: Vec<OrderKey>,
        /// Calls.
        calls: Vec<(ColumnId, AnalyticExpr)>,
    },
}

impl Plan {
    /// An operator without input.
    pub fn leaf(node: Node, span: Span) -> Plan {
        Plan { node, inputs: vec![], span }
    }

    /// An operator over one input.
    pub fn over(node: Node, input: Plan, span: Span) -> Plan {
        Plan { node, inputs: vec![input], span }
    }

    /// An operator over two inputs.
    pub fn join(node: Node, left: Plan, right: Plan, span: Span) -> Plan {
        Plan { node, inputs: vec![left, right], span }
    }

    /// Keeps the rows for which the predicate is true.
    pub fn filter(self, predicate: Expr, span: Span) -> Plan {
        Plan::over(Node::Filter { predicate }, self, span)
    }

    /// Output columns in order.
    pub fn outputs(&self) -> Vec<ColumnId> {
        match &self.node {
            Node::Source { columns, .. } => columns.iter().map(|(id, _)| *id).collect(),
            Node::Values { columns, .. } | Node::Union { columns, .. } | Node::Expand { columns, .. } => {
                columns.clone()
            }
            Node::Filter { .. }
            | Node::Watermark { .. }
            | Node::Dedup { .. }
            | Node::Sort { .. }
            | Node::Limit { .. } => self.inputs[0].outputs(),
            Node::Project { columns } => columns.iter().map(|(id, _)| *id).collect(),
            Node::AssignWindows { start, .. } => with(self.inputs[0].outputs(), [*start]),
            Node::Aggregate { keys, aggs } => {
                keys.iter().map(|(id, _)| *id).chain(aggs.iter().map(|(id, _)| *id)).collect()
            }
            Node::HopAggregate { start, keys, aggs, .. } => [*start]
                .into_iter()
                .chain(keys.iter().map(|(id, _)| *id))
                .chain(aggs.iter().map(|(id, _)| *id))
                .collect(),
            Node::Session { start, end, keys, aggs } => [start.0, end.0]
                .into_iter()
                .chain(keys.iter().map(|(id, _)| *id))
                .chain(aggs.iter().map(|(id, _)| *id))
                .collect(),
            Node::Join { kind, flag, .. } => match kind {
                JoinKind::Inner | JoinKind::Left | JoinKind::Right | JoinKind::Full => {
                    with(self.inputs[0].outputs(), self.inputs[1].outputs())
                }
                JoinKind::LeftSemi | JoinKind::LeftAnti | JoinKind::NullAwareAnti => self.inputs[0].outputs(),
                JoinKind::Existence => with(self.inputs[0].outputs(), *flag),
            },
            Node::Generate { outputs, .. } => with(self.inputs[0].outputs(), outputs.iter().copied()),
            Node::WindowFunction { calls, .. } => with(self.inputs[0].outputs(), calls.iter().map(|(id, _)| *id)),
        }
    }

    /// Whether a stream flows into it.
    pub fn streaming(&self) -> bool {
        match &self.node {
            Node::Source { streaming, .. } => *streaming,
            _ => self.inputs.iter().any(Plan::streaming),
        }
    }

    /// Calls `visit` on this operator and all below it, parents first.
    pub fn walk<'a>(&'a self, visit: &mut impl FnMut(&'a Plan)) {
        visit(self);
        for input in &self.inputs {
            input.walk(visit);
        }
    }

    /// Calls `visit` on every expression of this operator alone.
    pub fn expressions<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        fn agg<'a>(call: &'a AggExpr, visit: &mut dyn FnMut(&'a Expr)) {
            call.args.iter().chain(&call.filter).chain(call.order.iter().map(|k| &k.expr)).for_each(visit);
        }
        match &self.node {
            Node::Values { rows, .. } => rows.iter().flatten().for_each(visit),
            Node::Filter { predicate } => visit(predicate),
            Node::Project { columns } => columns.iter().for_each(|(_, e)| visit(e)),
            Node::Aggregate { keys, aggs }
            | Node::HopAggregate { keys, aggs, .. }
            | Node::Session { keys, aggs, .. } => {
                keys.iter().for_each(|(_, e)| visit(e));
                aggs.iter().for_each(|(_, a)| agg(a, visit));
            }
            Node::Join { on, .. } => on.iter().for_each(visit),
            Node::Sort { keys } => keys.iter().for_each(|k| visit(&k.expr)),
            Node::Expand { projections, .. } => projections.iter().flatten().for_each(visit),
            Node::Generate { args, .. } => args.iter().for_each(visit),
            Node::WindowFunction { partition, order, calls } => {
                partition.iter().for_each(&mut *visit);
                order.iter().for_each(|k| visit(&k.expr));
                calls.iter().for_each(|(_, c)| agg(&c.call, visit));
            }
            Node::Source { .. }
            | Node::Watermark { .. }
            | Node::AssignWindows { .. }
            | Node::Dedup { .. }
            | Node::Union { .. }
            | Node::Limit { .. } => {}
        }
    }

    /// Calls `change` on every expression of this operator alone.
    pub fn expressions_mut(&mut self, change: &mut dyn FnMut(&mut Expr)) {
        fn agg(call: &mut AggExpr, change: &mut dyn FnMut(&mut Expr)) {
            let order = call.order.iter_mut().map(|k| &mut k.expr);
            call.args.iter_mut().chain(&mut call.filter).chain(order).for_each(change);
        }
        match &mut self.node {
            Node::Values { rows, .. } => rows.iter_mut().flatten().for_each(change),
            Node::Filter { predicate } => change(predicate),
            Node::Project { columns } => columns.iter_mut().for_each(|(_, e)| change(e)),
            Node::Aggregate { keys, aggs }
            | Node::HopAggregate { keys, aggs, .. }
            | Node::Session { keys, aggs, .. } => {
                keys.iter_mut().for_each(|(_, e)| change(e));
                aggs.iter_mut().for_each(|(_, a)| agg(a, change));
            }
            Node::Join { on, .. } => on.iter_mut().for_each(change),
            Node::Sort { keys } => keys.iter_mut().for_each(|k| change(&mut k.expr)),
            Node::Expand { projections, .. } => projections.iter_mut().flatten().for_each(change),
            Node::Generate { args, .. } => args.iter_mut().for_each(change),
            Node::WindowFunction { partition, order, calls } => {
                partition.iter_mut().for_each(&mut *change);
                order.iter_mut().for_each(|k| change(&mut k.expr));
                calls.iter_mut().for_each(|(_, c)| agg(&mut c.call, change));
            }
            Node::Source { .. }
            | Node::Watermark { .. }
            | Node::AssignWindows { .. }
            | Node::Dedup { .. }
            | Node::Union { .. }
            | Node::Limit { .. } => {}
        }
    }
}

fn with(mut ids: Vec<ColumnId>, more: impl IntoIterator<Item = ColumnId>) -> Vec<ColumnId> {
    ids.extend(more);
    ids
}

/// Adds the columns that an expression reads to `into`.
pub fn columns_of(expr: &Expr, into: &mut Vec<ColumnId>) {
    expr.walk(&mut |e| {
        if let ExprKind::Column(id) = e.kind
            && !into.contains(&id)
        {
            into.push(id);
        }
    });
}

/// Whether an expression reads only columns of `ids`.
pub fn reads_only(expr: &Expr, ids: &[ColumnId]) -> bool {
    let mut read = vec![];
    columns_of(expr, &mut read);
    read.iter().all(|id| ids.contains(id))
}

/// The parts of a conjunction.
pub fn conjuncts(expr: Expr) -> Vec<Expr> {
    match expr.kind {
        ExprKind::And(a, b) => {
            let mut parts = conjuncts(*a);
            parts.extend(conjuncts(*b));
            parts
        }
        _ => vec![expr],
    }
}

/// The conjunction of these predicates; None of none.
pub fn conjunction(parts: impl IntoIterator<Item = Expr>) -> Option<Expr> {
    parts.into_iter().reduce(|a, b| {
        let nullable = a.nullable || b.nullable;
        let origin = a.origin;
        Expr { kind: ExprKind::And(Box::new(a), Box::new(b)), data_type: DataType::Boolean, nullable, origin }
    })
}

/// A bound query.
#[derive(Debug, Clone)]
pub struct Query {
    /// The tree.
    pub plan: Plan,
    /// Output columns in order, with their names.
    pub output: Vec<(ColumnId, String)>,
    /// Subqueries that [`ExprKind::ScalarSubquery`] refers to: their plan and the one column.
    pub subqueries: Vec<(Plan, ColumnId)>,
    /// What is known of all columns, the subqueries' included.
    pub columns: Columns,
    /// Late rows are kept (LATE DATA TO): operators with a late filter read whole rows.
    pub keep_late: bool,
}
