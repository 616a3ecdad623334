//! Correlation: predicates of a subquery that name the enclosing row are pulled up into the condition of a join.
//!
//! A predicate can rise through filters, projections and joins as it is; through an aggregation or a LIMIT only as an
//! equality of an inner column with outer ones, by which the inner operator then works per value (grouping by it,
//! numbering the rows of each).

use ssql_grammar::Span;
use ssql_ir::{DataType, Expr, ExprKind, JoinKind, Literal, Symbol};

use super::Binder;
use super::operators::bigint;
use super::subquery::is_correlated;
use crate::diag::{Fallible, fail_help};
use crate::logical::{AggExpr, ColumnId, Node, OrderKey, Plan, columns_of, conjunction, conjuncts};

impl<'a> Binder<'a> {
    /// The plan without references to `outer`, and the predicates that make up for them.
    pub(super) fn decorrelate(&mut self, plan: Plan, outer: &[ColumnId], span: Span) -> Fallible<(Plan, Vec<Expr>)> {
        if !is_correlated(&plan, outer) {
            return Ok((plan, vec![]));
        }
        let Plan { node, mut inputs, span: at } = plan;
        match node {
            Node::Filter { predicate } => {
                let (input, mut pulled) = self.decorrelate(inputs.remove(0), outer, span)?;
                let (tied, own): (Vec<Expr>, Vec<Expr>) =
                    conjuncts(predicate).into_iter().partition(|p| names_any(p, outer));
                pulled.extend(tied);
                let plan = match conjunction(own) {
                    Some(predicate) => input.filter(predicate, at),
                    None => input,
                };
                Ok((plan, pulled))
            }
            Node::Project { mut columns } => {
                let (input, pulled) = self.decorrelate(inputs.remove(0), outer, span)?;
                if columns.iter().any(|(_, e)| names_any(e, outer)) {
                    return self.unsupported(span);
                }
                self.carry(&pulled, outer, &input, &mut columns);
                Ok((Plan::over(Node::Project { columns }, input, at), pulled))
            }
            Node::Sort { keys } => {
                let (input, pulled) = self.decorrelate(inputs.remove(0), outer, span)?;
                Ok((Plan::over(Node::Sort { keys }, input, at), pulled))
            }
            Node::Dedup { mut keys, kind } => {
                let (input, pulled) = self.decorrelate(inputs.remove(0), outer, span)?;
                for id in inner_columns(&pulled, outer) {
                    if !keys.contains(&id) {
                        keys.push(id);
                    }
                }
                Ok((Plan::over(Node::Dedup { keys, kind }, input, at), pulled))
            }
            Node::Aggregate { mut keys, aggs } => {
                let (input, pulled) = self.decorrelate(inputs.remove(0), outer, span)?;
                let pulled = self.per_value(pulled, outer, &mut keys, span)?;
                Ok((Plan::over(Node::Aggregate { keys, aggs }, input, at), pulled))
            }
            Node::Limit { limit, offset } => {
                let mut input = inputs.remove(0);
                let mut order: Vec<OrderKey> = vec![];
                if let Node::Sort { keys } = &input.node {
                    order = keys.clone();
                    input = input.inputs.remove(0);
                }
                let (input, pulled) = self.decorrelate(input, outer, span)?;
                if pulled.iter().any(|p| equality(p, outer).is_none()) {
                    return self.unsupported(span);
                }
                let keys = inner_columns(&pulled, outer);
                let (plan, number) = self.numbered(input, &keys, order, at)?;
                let number = self.columns.expr(number);
                let mut keep = vec![self.call(">", vec![number.clone(), bigint(offset as i64)], span)?];
                if let Some(limit) = limit {
                    let last = i64::try_from(limit.saturating_add(offset)).unwrap_or(i64::MAX);
                    keep.push(self.call("<=", vec![number, bigint(last)], span)?);
                }
                let keep = conjunction(keep).expect("there is one at least");
                Ok((plan.filter(keep, at), pulled))
            }
            Node::Join { kind, on, flag } => {
                let right = inputs.pop().expect("a join has two inputs");
                let left = inputs.pop().expect("a join has two inputs");
                let on_parts = on.map(conjuncts).unwrap_or_default();
                let tied_right = is_correlated(&right, outer);
                if (tied_right || on_parts.iter().any(|p| names_any(p, outer))) && kind != JoinKind::Inner {
                    return self.unsupported(span);
                }
                let (left, mut pulled) = self.decorrelate(left, outer, span)?;
                let (right, more) = self.decorrelate(right, outer, span)?;
                pulled.extend(more);
                let (tied, own): (Vec<Expr>, Vec<Expr>) = on_parts.into_iter().partition(|p| names_any(p, outer));
                pulled.extend(tied);
                Ok((Plan::join(Node::Join { kind, on: conjunction(own), flag }, left, right, at), pulled))
            }
            _ => self.unsupported(span),
        }
    }

    fn unsupported<T>(&self, span: Span) -> Fallible<T> {
        fail_help(
            "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY.CORRELATED_REFERENCE",
            "this use of an outer column inside a subquery cannot be turned into a join",
            span,
            "Compare the outer column with an inner one by `=` in the subquery's WHERE.",
        )
    }

    /// Adds the inner columns of the predicates to a projection.
    fn carry(&self, pulled: &[Expr], outer: &[ColumnId], input: &Plan, columns: &mut Vec<(ColumnId, Expr)>) {
        let available = input.outputs();
        for id in inner_columns(pulled, outer) {
            if available.contains(&id) && !columns.iter().any(|(c, _)| *c == id) {
                columns.push((id, self.columns.expr(id)));
            }
        }
    }

    /// Grouping by the inner side of each equality; the predicates over the grouped columns.
    fn per_value(
        &mut self,
        pulled: Vec<Expr>,
        outer: &[ColumnId],
        keys: &mut Vec<(ColumnId, Expr)>,
        span: Span,
    ) -> Fallible<Vec<Expr>> {
        let mut out = vec![];
        for p in pulled {
            let Some((inner, side)) = equality(&p, outer) else { return self.unsupported(span) };
            let key = match keys.iter().find(|(_, e)| *e == inner) {
                Some((id, _)) => *id,
                None => {
                    let id = self.columns.add("correlated", inner.data_type.clone(), inner.nullable);
                    keys.push((id, inner.clone()));
                    id
                }
            };
            let mut p = p;
            if let ExprKind::Call { args, .. } = &mut p.kind {
                args[side] = self.columns.expr(key);
            }
            out.push(p);
        }
        Ok(out)
    }

    /// A correlated scalar subquery as the right side of a left join: the plan, the condition, and the value above it.
    pub(super) fn scalar_join(
        &mut self,
        plan: Plan,
        value: ColumnId,
        outer: &[ColumnId],
        span: Span,
    ) -> Fallible<(Plan, Option<Expr>, Expr)> {
        let over_no_rows = self.value_over_no_rows(&plan, value);
        let one_row = aggregates_all(&plan);
        let (plan, pulled) = self.decorrelate(plan, outer, span)?;
        if one_row {
            // Groups that do not exist have no row here, where the subquery would have one over no rows.
            let (plan, marker) = {
                let id = self.columns.add("matched", DataType::Boolean, true);
                (self.extend(plan, vec![(id, super::operators::boolean(true))], span), id)
            };
            let read = self.columns.expr(value);
            self.columns.get_mut(marker).nullable = true;
            let e = match over_no_rows {
                Some(default) => {
                    let matched = super::operators::is_null(self.columns.expr(marker), true);
                    let mut read = read;
                    read.nullable = true;
                    self.case(vec![(matched, read)], Some(default), span)?
                }
                None => Expr { nullable: true, ..read },
            };
            return Ok((plan, conjunction(pulled), e));
        }
        // Any number of rows may match: one is the value, two are an error when the row is computed.
        let mut keys = vec![];
        let pulled = self.per_value(pulled, outer, &mut keys, span)?;
        let info = self.columns.get(value).clone();
        let first = self.columns.add(&info.name, info.data_type.clone(), true);
        let count = self.columns.add("count", DataType::Int64, true);
        let call = |function: &str, args: Vec<Expr>, data_type: DataType, nullable: bool| AggExpr {
            function: Symbol::from(function),
            args,
            filter: None,
            distinct: false,
            ignore_nulls: false,
            order: vec![],
            data_type,
            nullable,
            span,
        };
        let aggs = vec![
            (first, call("first", vec![self.columns.expr(value)], info.data_type.clone(), true)),
            (count, call("count", vec![], DataType::Int64, false)),
        ];
        let plan = Plan::over(Node::Aggregate { keys, aggs }, plan, span);
        let args = vec![self.columns.expr(first), self.columns.expr(count)];
        let e = Expr::call("scalar_subquery_value", args, info.data_type, true).at(super::origin_at(span));
        Ok((plan, conjunction(pulled), e))
    }

    /// What a column of an aggregation without keys is when there are no rows: 0 for a count, NULL (None) else.
    fn value_over_no_rows(&self, plan: &Plan, value: ColumnId) -> Option<Expr> {
        match &plan.node {
            Node::Project { columns } => {
                let (_, e) = columns.iter().find(|(id, _)| *id == value)?;
                let mut e = e.clone();
                let mut read = vec![];
                columns_of(&e, &mut read);
                let mut counts = false;
                let mut others = vec![];
                for id in read {
                    match self.value_over_no_rows(&plan.inputs[0], id) {
                        Some(v) => {
                            counts = true;
                            others.push((id, v));
                        }
                        None => others.push((id, Expr::literal(Literal::Null, self.columns.get(id).data_type.clone()))),
                    }
                }
                e.walk_mut(&mut |x| {
                    if let ExprKind::Column(id) = x.kind
                        && let Some((_, v)) = others.iter().find(|(o, _)| *o == id)
                    {
                        *x = v.clone();
                    }
                });
                counts.then_some(e)
            }
            Node::Filter { .. } | Node::Sort { .. } | Node::Limit { .. } => {
                self.value_over_no_rows(&plan.inputs[0], value)
            }
            Node::Aggregate { keys, aggs } if keys.is_empty() => {
                let (_, call) = aggs.iter().find(|(id, _)| *id == value)?;
                (!call.nullable && call.data_type == DataType::Int64).then(|| bigint(0))
            }
            _ => None,
        }
    }
}

/// Whether the plan has exactly one row: an aggregation without keys.
fn aggregates_all(plan: &Plan) -> bool {
    match &plan.node {
        Node::Project { .. } => aggregates_all(&plan.inputs[0]),
        Node::Aggregate { keys, .. } => keys.is_empty(),
        _ => false,
    }
}

fn names_any(e: &Expr, ids: &[ColumnId]) -> bool {
    let mut hit = false;
    e.walk(&mut |x| hit |= matches!(x.kind, ExprKind::Column(id) if ids.contains(&id)));
    hit
}

/// Columns of the predicates that are not the enclosing query's.
fn inner_columns(pulled: &[Expr], outer: &[ColumnId]) -> Vec<ColumnId> {
    let mut ids = vec![];
    pulled.iter().for_each(|p| columns_of(p, &mut ids));
    ids.retain(|id| !outer.contains(id));
    ids
}

/// An equality of inner columns with outer ones: the inner side, and which argument it is.
fn equality(p: &Expr, outer: &[ColumnId]) -> Option<(Expr, usize)> {
    let ExprKind::Call { function, args } = &p.kind else { return None };
    if !matches!(&**function, "=" | "<=>") {
        return None;
    }
    let all_outer = |e: &Expr| {
        let mut ids = vec![];
        columns_of(e, &mut ids);
        ids.iter().all(|id| outer.contains(id))
    };
    match (names_any(&args[0], outer), names_any(&args[1], outer)) {
        (false, true) if all_outer(&args[1]) => Some((args[0].clone(), 0)),
        (true, false) if all_outer(&args[0]) => Some((args[1].clone(), 1)),
        _ => None,
    }
}
