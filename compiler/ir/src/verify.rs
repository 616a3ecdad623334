//! The invariants of a pipeline. A violation is an error of the compiler, never of the user.
//!
//! **Graph.** A pipeline has a node. Inputs stand before their users. Each operator has its number of inputs: none for
//! `source` and `values`, two for joins, at least one for `union`, one for all else. A `sink` is the last node. Subqueries
//! hold for themselves, have one column and no sink.
//!
//! **Columns.** Every column number is one of the (concatenated) inputs. Key columns of a join come in pairs of one type.
//! Event-time columns are columns of the output, ascending, of type TIMESTAMP or TIMESTAMP_NTZ. Time columns of
//! `watermark`, `drop_late`, `assign_windows`, sessions and close rules are of such a type too. Lists of `source` columns
//! ascend.
//!
//! **Types.** A column expression has its input column's type, and may be NULL if that may. Predicates, residuals,
//! conditions, filters and both sides of AND and OR are BOOLEAN. The values of a CASE and the arguments of a COALESCE have
//! the result's type. A constant fits its type, and a NULL may be NULL. Rows of `values` and projections of `expand` have
//! the output's types. Elements, keys and values of nested types are called `element`, `key` and `value`.
//!
//! **Shape.** The output of an operator has the columns that its kind says, with the types that follow from its inputs;
//! for calls the type is the one in the text. `values` has no columns to refer to. Argument types of an aggregate are as
//! many as its arguments. Lambda variables stand inside a lambda that binds them, and subquery numbers exist.
//!
//! **Times.** A delay is not negative; a window's size is positive and its slide in `1..=size`.
//!
//! Not checked: that a function exists and gives that type (the standard library's part), and that a close rule's column
//! is a key.

use std::fmt;

use crate::expr::{Expr, ExprKind, Literal};
use crate::op::{AggArg, AggCall, CloseRule, JoinKind, Node, Op, Pipeline, SortKey, WindowCall};
use crate::print::{FieldType, input_fields, node_line};
use crate::types::{DataType, Field};

/// A broken invariant: which operator, and what does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyError {
    /// The operator's line; empty for the pipeline as a whole.
    pub line: String,
    /// What does not hold.
    pub message: String,
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}\n  in {}", self.message, self.line)
        }
    }
}

impl std::error::Error for VerifyError {}

/// Checks the invariants and returns all that are broken.
pub fn verify(pipeline: &Pipeline) -> Result<(), Vec<VerifyError>> {
    let mut errors = Vec::new();
    check_pipeline(pipeline, &mut errors);
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

fn check_pipeline(p: &Pipeline, errors: &mut Vec<VerifyError>) {
    let whole = |message: &str| VerifyError { line: String::new(), message: format!("pipeline {}: {message}", p.name) };
    if p.nodes.is_empty() {
        errors.push(whole("it has no operators"));
    }
    for (i, node) in p.nodes.iter().enumerate() {
        if node.inputs.iter().any(|id| id.0 as usize >= i) {
            // The rest of the checks looks at the inputs.
            errors
                .push(VerifyError { line: node_line(p, i), message: "an input does not stand before its user".into() });
            continue;
        }
        let mut check = Check { pipeline: p, columns: input_fields(p, node), variables: vec![], messages: vec![] };
        check.node(node, i + 1 == p.nodes.len());
        errors.extend(check.messages.into_iter().map(|message| VerifyError { line: node_line(p, i), message }));
    }
    for subquery in &p.subqueries {
        check_pipeline(subquery, errors);
        if subquery.nodes.last().is_none_or(|n| n.schema.len() != 1 || matches!(n.op, Op::Sink { .. })) {
            errors.push(whole("a subquery has one column and no sink"));
        }
    }
}

struct Check<'a> {
    pipeline: &'a Pipeline,
    /// Columns of all inputs.
    columns: Vec<Field>,
    /// Lambda variables in scope.
    variables: Vec<u32>,
    messages: Vec<String>,
}

fn is_time(t: &DataType) -> bool {
    matches!(t, DataType::Timestamp | DataType::TimestampNtz)
}

impl Check<'_> {
    fn require(&mut self, holds: bool, message: impl FnOnce() -> String) {
        if !holds {
            self.messages.push(message());
        }
    }

    fn type_of(&mut self, column: u32) -> Option<DataType> {
        let found = self.columns.get(column as usize).map(|f| f.data_type.clone());
        self.require(found.is_some(), || format!("there is no column #{column}"));
        found
    }

    fn all_exist(&mut self, columns: &[u32]) {
        for &c in columns {
            self.type_of(c);
        }
    }

    fn time(&mut self, column: u32) {
        if let Some(t) = self.type_of(column) {
            self.require(is_time(&t), || format!("column #{column} is {t}, not a timestamp"));
        }
    }

    fn rule(&mut self, rule: Option<CloseRule>) {
        if let Some(rule) = rule {
            self.time(rule.column);
        }
    }

    fn sort_keys(&mut self, keys: &[SortKey]) {
        keys.iter().for_each(|k| {
            self.type_of(k.column);
        });
    }

    fn boolean(&mut self, e: &Expr, what: &str) {
        self.require(e.data_type == DataType::Boolean, || format!("{what} is {}, not BOOLEAN", e.data_type));
    }

    // ---- operators ----

    fn node(&mut self, node: &Node, last: bool) {
        let (least, most) = match node.op {
            Op::Source { .. } | Op::Values { .. } => (0, 0),
            Op::StreamJoin { .. } | Op::HashJoin { .. } => (2, 2),
            Op::Union => (1, usize::MAX),
            _ => (1, 1),
        };
        let n = node.inputs.len();
        self.require((least..=most).contains(&n), || format!("it has {n} inputs"));
        if !(least..=most).contains(&n) {
            return;
        }
        self.require(last || !matches!(node.op, Op::Sink { .. }), || "a sink is the last operator".into());
        self.op(node);
        for field in &node.schema.fields {
            self.nested_names(&field.data_type);
        }
        self.require(node.event_time.is_sorted_by(|a, b| a < b), || "event-time columns ascend".into());
        for &c in &node.event_time {
            let found = node.schema.fields.get(c as usize).is_some_and(|f| is_time(&f.data_type));
            self.require(found, || format!("event-time column #{c} is no timestamp of the output"));
        }
        if let Some(expected) = self.output(node) {
            self.output_is(node, &expected);
        }
    }

    fn op(&mut self, node: &Node) {
        match &node.op {
            Op::Source { columns, .. } => {
                self.require(columns.is_sorted_by(|a, b| a < b), || "the columns of a source ascend".into());
                let (n, m) = (columns.len(), node.schema.len());
                self.require(n == m, || format!("it reads {n} columns and has {m}"));
            }
            Op::Values { rows } => rows.iter().for_each(|row| self.exprs(row)),
            Op::Map { predicate, project } => {
                self.predicate(predicate.as_ref(), "the predicate");
                self.exprs(project);
            }
            Op::Watermark { column, delay, .. } => {
                self.time(*column);
                self.require(delay.micros >= 0, || "a delay is not negative".into());
            }
            Op::DropLate { rule } => self.rule(Some(*rule)),
            Op::AssignWindows { time, size, slide, .. } => {
                self.time(*time);
                self.require(*size > 0 && (1..=*size).contains(slide), || "a slide is in 1..=size".into());
            }
            Op::Aggregate { keys, aggs, close, .. } => {
                self.all_exist(keys);
                aggs.iter().for_each(|call| self.agg(call));
                self.rule(*close);
            }
            Op::HopAggregate { slice, size, slide, keys, aggs, .. } => {
                self.time(*slice);
                self.require(*size > 0 && (1..=*size).contains(slide), || "a slide is in 1..=size".into());
                self.all_exist(keys);
                aggs.iter().for_each(|call| self.agg(call));
            }
            Op::SessionAggregate { start, end, keys, aggs, .. } => {
                self.time(*start);
                self.time(*end);
                self.all_exist(keys);
                aggs.iter().for_each(|call| self.agg(call));
            }
            Op::Dedup { keys, close, .. } => {
                self.all_exist(keys);
                self.rule(*close);
            }
            Op::StreamJoin { left, right, residual, .. } => {
                self.pairs(node, &left.keys, &right.keys);
                self.predicate(residual.as_ref(), "the residual");
                for (side, input) in [(left, 0), (right, 1)] {
                    let outer = std::mem::replace(
                        &mut self.columns,
                        self.pipeline.nodes[node.inputs[input].0 as usize].schema.fields.clone(),
                    );
                    self.rule(side.expire);
                    side.late.into_iter().for_each(|c| self.time(c));
                    self.columns = outer;
                }
            }
            Op::HashJoin { left_keys, right_keys, null_safe, residual, .. } => {
                self.pairs(node, left_keys, right_keys);
                let (n, m) = (null_safe.len(), left_keys.len());
                self.require(n == m, || format!("{m} keys and {n} facts about NULL"));
                self.predicate(residual.as_ref(), "the residual");
            }
            Op::Union | Op::Limit { .. } | Op::Sink { .. } => {}
            Op::Sort { keys } => self.sort_keys(keys),
            Op::Expand { projections } => projections.iter().for_each(|p| self.exprs(p)),
            Op::Generate { args, .. } => self.exprs(args),
            Op::WindowFunction { partition, order, calls } => {
                self.all_exist(partition);
                self.sort_keys(order);
                calls.iter().for_each(|c| self.agg(&c.call));
            }
        }
    }

    fn predicate(&mut self, e: Option<&Expr>, what: &str) {
        if let Some(e) = e {
            self.expr(e);
            self.boolean(e, what);
        }
    }

    /// Key columns of two inputs, pairwise of one type.
    fn pairs(&mut self, node: &Node, left: &[u32], right: &[u32]) {
        let side = |i: usize| &self.pipeline.nodes[node.inputs[i].0 as usize].schema.fields;
        let (l, r) = (side(0), side(1));
        let equal = left.len() == right.len()
            && left.iter().zip(right).all(|(&a, &b)| match (l.get(a as usize), r.get(b as usize)) {
                (Some(a), Some(b)) => a.data_type == b.data_type,
                _ => false,
            });
        self.require(equal, || "the keys of the sides are not pairs of one type".into());
    }

    fn agg(&mut self, call: &AggCall) {
        let (n, m) = (call.args.len(), call.arg_types.len());
        self.require(n == m, || format!("{} has {n} arguments and {m} types", call.function));
        for (arg, t) in call.args.iter().zip(&call.arg_types) {
            match arg {
                AggArg::Column(c) => {
                    let found = self.type_of(*c);
                    let fits = found.as_ref().is_none_or(|found| found == t);
                    self.require(fits, || format!("{} takes {t} from column #{c}", call.function));
                }
                AggArg::Literal(value, t) => self.literal(value, t),
            }
        }
        if let Some(filter) = call.filter.and_then(|c| self.type_of(c)) {
            self.require(filter == DataType::Boolean, || format!("a filter is {filter}, not BOOLEAN"));
        }
        self.sort_keys(&call.order);
    }

    // ---- output types ----

    /// The types (and whether they may be NULL, where that follows) that the operator's output has.
    fn output(&self, node: &Node) -> Option<Vec<(DataType, Option<bool>)>> {
        let field = |f: &Field| (f.data_type.clone(), Some(f.nullable));
        let typed = |e: &Expr| (e.data_type.clone(), Some(e.nullable));
        let result = |c: &AggCall| (c.data_type.clone(), Some(c.nullable));
        let column = |c: &u32| self.columns.get(*c as usize).map(field);
        let side = |i: usize| self.pipeline.nodes[node.inputs[i].0 as usize].schema.fields.iter();
        let all = || self.columns.iter().map(field);
        let maybe = |f: &Field| (f.data_type.clone(), Some(true));
        Some(match &node.op {
            Op::Source { .. } | Op::Generate { .. } => return None,
            // Rows and inputs may differ in what can be NULL; the output says yes where one does.
            Op::Values { rows } => rows.first()?.iter().map(|e| (e.data_type.clone(), None)).collect(),
            Op::Expand { projections } => projections.first()?.iter().map(|e| (e.data_type.clone(), None)).collect(),
            Op::Union => side(0).map(|f| (f.data_type.clone(), None)).collect(),
            Op::Map { project, .. } => project.iter().map(typed).collect(),
            Op::Watermark { .. }
            | Op::DropLate { .. }
            | Op::Dedup { .. }
            | Op::Sort { .. }
            | Op::Limit { .. }
            | Op::Sink { .. } => all().collect(),
            Op::AssignWindows { time, .. } => {
                let start = self.columns.get(*time as usize)?.data_type.clone();
                all().chain([(start, Some(false))]).collect()
            }
            Op::Aggregate { keys, aggs, .. } => keys
                .iter()
                .map(column)
                .collect::<Option<Vec<_>>>()?
                .into_iter()
                .chain(aggs.iter().map(result))
                .collect(),
            Op::HopAggregate { slice, keys, aggs, .. } => {
                let start = (self.columns.get(*slice as usize)?.data_type.clone(), Some(false));
                let keys = keys.iter().map(column).collect::<Option<Vec<_>>>()?;
                [start].into_iter().chain(keys).chain(aggs.iter().map(result)).collect()
            }
            Op::SessionAggregate { start, end, keys, aggs, .. } => {
                let time = |c: &u32| Some((self.columns.get(*c as usize)?.data_type.clone(), None));
                let keys = keys.iter().map(column).collect::<Option<Vec<_>>>()?;
                [time(start)?, time(end)?].into_iter().chain(keys).chain(aggs.iter().map(result)).collect()
            }
            Op::WindowFunction { calls, .. } => {
                all().chain(calls.iter().map(|c: &WindowCall| result(&c.call))).collect()
            }
            Op::StreamJoin { kind, .. } | Op::HashJoin { kind, .. } => match kind {
                JoinKind::Inner => all().collect(),
                JoinKind::Left => side(0).map(field).chain(side(1).map(maybe)).collect(),
                JoinKind::Right => side(0).map(maybe).chain(side(1).map(field)).collect(),
                JoinKind::Full => self.columns.iter().map(maybe).collect(),
                JoinKind::LeftSemi | JoinKind::LeftAnti | JoinKind::NullAwareAnti => side(0).map(field).collect(),
                JoinKind::Existence => side(0).map(field).chain([(DataType::Boolean, None)]).collect(),
            },
        })
    }

    fn output_is(&mut self, node: &Node, expected: &[(DataType, Option<bool>)]) {
        let fields = &node.schema.fields;
        let (n, m) = (expected.len(), fields.len());
        self.require(n == m, || format!("its output has {n} columns, not {m}"));
        for (i, ((t, nullable), field)) in expected.iter().zip(fields).enumerate() {
            // Less may be known of NULL than follows, never more.
            let holds = field.data_type.holds(t) && (field.nullable || *nullable != Some(true));
            let shown = || {
                let expected = FieldType(t, nullable.unwrap_or(field.nullable));
                format!("output column #{i} is {expected}, not {}", FieldType(&field.data_type, field.nullable))
            };
            self.require(holds, shown);
        }
        let rows: Vec<Vec<DataType>> = match &node.op {
            Op::Values { rows } => rows.iter().map(|r| r.iter().map(|e| e.data_type.clone()).collect()).collect(),
            Op::Expand { projections } => {
                projections.iter().map(|r| r.iter().map(|e| e.data_type.clone()).collect()).collect()
            }
            Op::Union => node
                .inputs
                .iter()
                .map(|id| {
                    self.pipeline.nodes[id.0 as usize].schema.fields.iter().map(|f| f.data_type.clone()).collect()
                })
                .collect(),
            _ => return,
        };
        let fits = |r: &Vec<DataType>| r.len() == m && r.iter().zip(fields).all(|(t, f)| f.data_type.holds(t));
        self.require(rows.iter().all(fits), || "rows, projections or inputs differ in their types".into());
    }

    fn nested_names(&mut self, t: &DataType) {
        match t {
            DataType::Array(e) => {
                self.require(e.name == "element", || "an array's field is called `element`".into());
                self.nested_names(&e.data_type);
            }
            DataType::Map(k, v) => {
                self.require(k.name == "key" && v.name == "value", || "a map's fields are `key` and `value`".into());
                self.nested_names(&k.data_type);
                self.nested_names(&v.data_type);
            }
            DataType::Struct(fields) => fields.iter().for_each(|f| self.nested_names(&f.data_type)),
            _ => {}
        }
    }

    // ---- expressions ----

    fn exprs(&mut self, exprs: &[Expr]) {
        exprs.iter().for_each(|e| self.expr(e));
    }

    fn expr(&mut self, e: &Expr) {
        self.nested_names(&e.data_type);
        let same = |check: &mut Self, value: &Expr, what: &str| {
            let (a, b) = (&value.data_type, &e.data_type);
            check.require(a == b, || format!("{what} is {a}, not {b}"));
        };
        match &e.kind {
            ExprKind::Column(c) => {
                let field = self.columns.get(*c as usize).cloned();
                let fits = field.as_ref().is_some_and(|f| f.data_type == e.data_type && (e.nullable || !f.nullable));
                self.require(fits, || match &field {
                    Some(f) => format!(
                        "#{c} is {}, not {}",
                        FieldType(&f.data_type, f.nullable),
                        FieldType(&e.data_type, e.nullable)
                    ),
                    None => format!("there is no column #{c}"),
                });
            }
            ExprKind::Literal(value) => {
                self.literal(value, &e.data_type);
                self.require(*value != Literal::Null || e.nullable, || "a NULL may be NULL".into());
            }
            ExprKind::And(a, b) | ExprKind::Or(a, b) => {
                self.boolean(a, "a side of AND or OR");
                self.boolean(b, "a side of AND or OR");
                self.boolean(e, "AND or OR");
            }
            ExprKind::Case { branches, otherwise } => {
                for (condition, value) in branches {
                    self.boolean(condition, "a condition");
                    same(self, value, "a value of CASE");
                }
                if let Some(value) = otherwise {
                    same(self, value, "a value of CASE");
                }
                self.require(!branches.is_empty(), || "CASE has a branch".into());
            }
            ExprKind::Coalesce(args) => {
                args.iter().for_each(|a| same(self, a, "an argument of COALESCE"));
                self.require(!args.is_empty(), || "COALESCE has an argument".into());
            }
            ExprKind::LambdaVariable(id) => {
                let bound = self.variables.contains(id);
                self.require(bound, || format!("no lambda around binds ${id}"));
            }
            ExprKind::ScalarSubquery(n) => {
                let exists = (*n as usize) < self.pipeline.subqueries.len();
                self.require(exists, || format!("there is no subquery {n}"));
            }
            ExprKind::Call { .. } | ExprKind::Cast { .. } | ExprKind::Lambda { .. } => {}
        }
        let depth = self.variables.len();
        if let ExprKind::Lambda { params, .. } = &e.kind {
            self.variables.extend(params.iter().map(|p| p.id));
        }
        e.children().into_iter().for_each(|child| self.expr(child));
        self.variables.truncate(depth);
    }

    fn literal(&mut self, value: &Literal, t: &DataType) {
        let fits = match (value, t) {
            (Literal::Null, _) => true,
            (Literal::Boolean(_), DataType::Boolean)
            | (Literal::Float(_), DataType::Float32 | DataType::Float64)
            | (Literal::Decimal(_), DataType::Decimal(..))
            | (Literal::String(_), DataType::String)
            | (Literal::Binary(_), DataType::Binary) => true,
            (Literal::Int(i), DataType::Int8) => i8::try_from(*i).is_ok(),
            (Literal::Int(i), DataType::Int16) => i16::try_from(*i).is_ok(),
            (Literal::Int(i), DataType::Int32 | DataType::Date | DataType::YearMonthInterval(..)) => {
                i32::try_from(*i).is_ok()
            }
            (Literal::Int(_), DataType::Int64 | DataType::DayTimeInterval(..)) => true,
            (Literal::Int(_), t) => is_time(t),
            _ => false,
        };
        self.require(fits, || format!("the constant {value} is no {t}"));
    }
}
