//! UNION, INTERSECT, EXCEPT: columns match by position, NULLs are equal.

use ssql_grammar::Span;
use ssql_grammar::sql::{SetExpr, SetOperator, SetQuantifier};
use ssql_ir::{CastMode, DataType, Expr, Frame, FrameBound, JoinKind, Symbol};

use super::operators::{and, cast};
use super::{Binder, Env, Rel, Scope};
use crate::diag::{Fallible, fail, fail_help};
use crate::logical::{AggExpr, AnalyticExpr, ColumnId, DedupKind, Node, OrderKey, Plan};

impl<'a> Binder<'a> {
    pub(super) fn bind_set_operation(
        &mut self,
        left: &'a SetExpr,
        op: SetOperator,
        quantifier: SetQuantifier,
        right: &'a SetExpr,
        outer: Option<&Env<'_>>,
    ) -> Fallible<Rel> {
        let span = self.span(right);
        let all = match quantifier {
            SetQuantifier::All => true,
            SetQuantifier::Distinct | SetQuantifier::None => false,
            SetQuantifier::ByName | SetQuantifier::AllByName | SetQuantifier::DistinctByName => {
                return self.not_in_dialect("BY NAME", span);
            }
        };
        let left = self.bind_set_expr(left, outer);
        let right = self.bind_set_expr(right, outer);
        let (left, right) = match (left, right) {
            (Ok(left), Ok(right)) => (left, right),
            // Both sides tell their mistakes.
            (left, right) => {
                self.report(left);
                return Err(right.err().or_else(|| self.errors.pop().map(Box::new)).expect("one side has failed"));
            }
        };
        let (left, right) = self.align(left, right, op, span)?;
        let refused = match op {
            SetOperator::Union => false,
            SetOperator::Intersect => left.plan.streaming() || right.plan.streaming(),
            SetOperator::Except | SetOperator::Minus => right.plan.streaming(),
        };
        if refused {
            return Err(Box::new(crate::check::rule("set-operation").diagnostic(span)));
        }
        match op {
            SetOperator::Union => Ok(self.union(left, right, all, span)),
            SetOperator::Intersect => self.match_rows(left, right, JoinKind::LeftSemi, all, span),
            SetOperator::Except | SetOperator::Minus => self.match_rows(left, right, JoinKind::LeftAnti, all, span),
        }
    }

    /// Both sides with the same column types.
    fn align(&mut self, left: Rel, right: Rel, op: SetOperator, span: Span) -> Fallible<(Rel, Rel)> {
        let l: Vec<ColumnId> = left.scope.star().map(|c| c.id).collect();
        let r: Vec<ColumnId> = right.scope.star().map(|c| c.id).collect();
        if l.len() != r.len() {
            return fail_help(
                "NUM_COLUMNS_MISMATCH",
                format!("{op} joins {} columns with {}", l.len(), r.len()),
                span,
                "Select as many columns on both sides.",
            );
        }
        let mut types = vec![];
        for (i, (a, b)) in l.iter().zip(&r).enumerate() {
            let (a, b) = (&self.columns.get(*a).data_type, &self.columns.get(*b).data_type);
            if op != SetOperator::Union && (has_map(a) || has_map(b)) {
                return fail(
                    "UNSUPPORTED_FEATURE.SET_OPERATION_ON_MAP_TYPE",
                    format!("{op} cannot compare MAPs"),
                    span,
                );
            }
            match ssql_stdlib::common_type(a, b) {
                Some(t) => types.push(t),
                None => {
                    return fail(
                        "INCOMPATIBLE_COLUMN_TYPE",
                        format!("column {} is {a} on one side of {op} and {b} on the other", i + 1),
                        span,
                    );
                }
            }
        }
        Ok((self.cast_columns(left, &types, span), self.cast_columns(right, &types, span)))
    }

    fn cast_columns(&mut self, rel: Rel, types: &[DataType], span: Span) -> Rel {
        let mut columns = vec![];
        let mut scope = Scope::default();
        let star: Vec<(String, ColumnId)> = rel.scope.star().map(|c| (c.name.clone(), c.id)).collect();
        for ((name, id), t) in star.into_iter().zip(types) {
            let e = cast(self.columns.expr(id), t, CastMode::Ansi);
            let out = self.project_column(&name, &e, &mut columns);
            scope.add(None, name, out);
        }
        Rel { plan: Plan::over(Node::Project { columns }, rel.plan, span), scope }
    }

    fn union(&mut self, left: Rel, right: Rel, all: bool, span: Span) -> Rel {
        let l: Vec<ColumnId> = left.scope.star().map(|c| c.id).collect();
        let r: Vec<ColumnId> = right.scope.star().map(|c| c.id).collect();
        let mut scope = Scope::default();
        let mut columns = vec![];
        for (a, b) in l.iter().zip(&r) {
            let mut info = self.columns.get(*a).clone();
            let other = self.columns.get(*b);
            info.nullable |= other.nullable;
            // The watermark is the query's: a time stays event time where it is so on every side.
            info.event_time =
                info.event_time.filter(|t| other.event_time.is_some_and(|o| o.add_micros == t.add_micros));
            info.window = None;
            let name = info.name.clone();
            let id = self.columns.push(info);
            columns.push(id);
            scope.add(None, name, id);
        }
        // Nested unions of one kind become one operator.
        let (mut inputs, mut sources) = (vec![], vec![]);
        for (plan, ids) in [(left.plan, l), (right.plan, r)] {
            inputs.push(plan);
            sources.push(ids);
        }
        let mut plan = Plan { node: Node::Union { columns: columns.clone(), sources }, inputs, span };
        if !all {
            plan = Plan::over(Node::Dedup { keys: columns, kind: DedupKind::Distinct }, plan, span);
        }
        Rel { plan, scope }
    }

    /// INTERSECT and EXCEPT: rows of the left with or without their like on the right.
    fn match_rows(&mut self, left: Rel, right: Rel, kind: JoinKind, all: bool, span: Span) -> Fallible<Rel> {
        let l: Vec<ColumnId> = left.scope.star().map(|c| c.id).collect();
        let r: Vec<ColumnId> = right.scope.star().map(|c| c.id).collect();
        let (mut lp, mut rp) = (left.plan, right.plan);
        let mut on: Option<Expr> = None;
        for (a, b) in l.iter().zip(&r) {
            let equal = self.call("<=>", vec![self.columns.expr(*a), self.columns.expr(*b)], span)?;
            on = Some(match on {
                Some(x) => and(x, equal),
                None => equal,
            });
        }
        if all {
            // The n-th copy of a row on the left matches the n-th on the right.
            let (p, a) = self.numbered(lp, &l, vec![], span)?;
            lp = p;
            let (p, b) = self.numbered(rp, &r, vec![], span)?;
            rp = p;
            let equal = self.call("=", vec![self.columns.expr(a), self.columns.expr(b)], span)?;
            on = Some(match on {
                Some(x) => and(x, equal),
                None => equal,
            });
        } else {
            lp = Plan::over(Node::Dedup { keys: l, kind: DedupKind::Distinct }, lp, span);
        }
        let plan = Plan::join(Node::Join { kind, on, flag: None }, lp, rp, span);
        Ok(Rel { plan, scope: left.scope })
    }

    /// The plan with a column that numbers the rows of each key from 1.
    pub(super) fn numbered(
        &mut self,
        plan: Plan,
        keys: &[ColumnId],
        order: Vec<OrderKey>,
        span: Span,
    ) -> Fallible<(Plan, ColumnId)> {
        let partition: Vec<Expr> = keys.iter().map(|id| self.columns.expr(*id)).collect();
        let id = self.columns.add("row_number", DataType::Int32, false);
        let call = AggExpr {
            function: Symbol::from("row_number"),
            args: vec![],
            filter: None,
            distinct: false,
            ignore_nulls: false,
            order: vec![],
            data_type: DataType::Int32,
            nullable: false,
            span,
        };
        let frame = Frame { rows: true, start: FrameBound::Unbounded, end: FrameBound::CurrentRow };
        let calls = vec![(id, AnalyticExpr { call, frame })];
        Ok((Plan::over(Node::WindowFunction { partition, order, calls }, plan, span), id))
    }
}

fn has_map(t: &DataType) -> bool {
    match t {
        DataType::Map(..) => true,
        DataType::Array(e) => has_map(&e.data_type),
        DataType::Struct(fields) => fields.iter().any(|f| has_map(&f.data_type)),
        _ => false,
    }
}
