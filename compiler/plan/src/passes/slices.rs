//! Hopping windows by slices: an aggregation by the windows of an `AssignWindows` becomes one that takes each row once.
//!
//! It fires where each aggregate gives the same result in whatever order rows and states are merged
//! ([`ssql_stdlib::aggregate::is_free_of_order`]), and where the window reaches the aggregation as a key and as nothing
//! else: projections and filters between the two may not read it, but for values that are computed from its start
//! alone (its end, its struct), which are then computed behind the aggregation. Elsewhere rows are expanded into their
//! windows.

use ssql_ir::{DataType, Expr, ExprKind, Literal};

use crate::catalog::Catalog;
use crate::logical::{AggExpr, ColumnId, Columns, Node, Plan, Query, columns_of};

pub(crate) fn run(query: &mut Query, _: &Catalog) {
    rewrite(&mut query.plan, &mut query.columns);
    for (plan, _) in &mut query.subqueries {
        rewrite(plan, &mut query.columns);
    }
}

fn rewrite(plan: &mut Plan, columns: &mut Columns) {
    if let Some(better) = sliced(plan, columns) {
        *plan = better;
    }
    plan.inputs.iter_mut().for_each(|input| rewrite(input, columns));
}

/// Values that hang on the window: the column, and its definition over the start that `AssignWindows` gives.
type Derived = Vec<(ColumnId, Expr)>;

fn sliced(plan: &Plan, columns: &mut Columns) -> Option<Plan> {
    let Node::Aggregate { keys, aggs } = &plan.node else { return None };
    if !aggs.iter().all(|(_, a)| ssql_stdlib::aggregate::is_free_of_order(&a.function)) {
        return None;
    }
    // From the aggregation down to the windows.
    let mut between = vec![];
    let mut at = &plan.inputs[0];
    let (time, start, size, slide, offset) = loop {
        match at.node {
            Node::Project { .. } | Node::Filter { .. } => between.push(at),
            Node::AssignWindows { time, start, size, slide, offset } => break (time, start, size, slide, offset),
            _ => return None,
        }
        at = &at.inputs[0];
    };
    let windows = at;

    let data_type = columns.get(start).data_type.clone();
    let floor = |offset: i64| {
        let bigint = |n: i64| Expr::literal(Literal::Int(n), DataType::Int64);
        let time = Expr::column(time, data_type.clone(), false);
        Expr::call("window_start", vec![time, bigint(slide), bigint(offset)], data_type.clone(), false)
    };
    let last = columns.add("last_window", data_type.clone(), false);
    columns.get_mut(last).event_time = columns.get(start).event_time;
    let mut added = vec![(last, floor(offset))];
    let mut slice = last;
    if size % slide != 0 {
        // Window ends cut each slide a second time.
        slice = columns.add("slice", data_type.clone(), false);
        let both = vec![floor(offset), floor(offset.checked_add(size % slide)?)];
        added.push((slice, Expr::call("greatest", both, data_type.clone(), false)));
    }
    let own: Vec<ColumnId> = added.iter().map(|(id, _)| *id).collect();

    let mut derived: Derived = vec![(start, columns.expr(start))];
    let mut below = extended(&windows.inputs[0], added, columns);
    for step in between.into_iter().rev() {
        match &step.node {
            Node::Filter { predicate } if !reads(predicate, &derived) => {
                below = below.filter(predicate.clone(), step.span);
            }
            Node::Project { columns: exprs } => {
                let (mut kept, mut next): (Vec<(ColumnId, Expr)>, Derived) = (vec![], vec![]);
                for (id, e) in exprs {
                    match reads(e, &derived) {
                        true => next.push((*id, from_start(e, &derived)?)),
                        false => kept.push((*id, e.clone())),
                    }
                }
                kept.extend(own.iter().map(|id| (*id, columns.expr(*id))));
                derived = next;
                below = Plan::over(Node::Project { columns: kept }, below, step.span);
            }
            _ => return None,
        }
    }

    // Keys that hang on the window are computed behind the aggregation, the others stay.
    let reads_window = |a: &AggExpr| {
        let order = a.order.iter().map(|k| &k.expr);
        a.args.iter().chain(&a.filter).chain(order).any(|e| reads(e, &derived))
    };
    if aggs.iter().any(|(_, a)| reads_window(a)) {
        return None;
    }
    let window = columns.push(columns.get(start).clone());
    let mut plain = vec![];
    let mut output = vec![];
    let mut tells_windows = false;
    for (id, e) in keys {
        if reads(e, &derived) {
            let over_start = from_start(e, &derived)?;
            tells_windows |= is_shifted_start(&over_start);
            output.push((*id, renamed(over_start, start, window)));
        } else if columns.get(*id).event_time.is_some() {
            // The groups close by that key.
            return None;
        } else {
            plain.push((*id, e.clone()));
            output.push((*id, columns.expr(*id)));
        }
    }
    if !tells_windows {
        return None;
    }
    output.extend(aggs.iter().map(|(id, _)| (*id, columns.expr(*id))));
    let node = Node::HopAggregate { start: window, slice, last, size, slide, offset, keys: plain, aggs: aggs.clone() };
    let hop = Plan::over(node, below, plan.span);
    Some(Plan::over(Node::Project { columns: output }, hop, plan.span))
}

/// The plan with further columns.
fn extended(plan: &Plan, more: Vec<(ColumnId, Expr)>, columns: &Columns) -> Plan {
    let own = plan.outputs().into_iter().map(|id| (id, columns.expr(id)));
    let columns = own.chain(more).collect();
    Plan::over(Node::Project { columns }, plan.clone(), plan.span)
}

fn reads(e: &Expr, derived: &Derived) -> bool {
    let mut read = vec![];
    columns_of(e, &mut read);
    read.iter().any(|id| derived.iter().any(|(d, _)| d == id))
}

/// The value over the window's start alone; `None` if it reads anything else, or is not the same each time.
fn from_start(e: &Expr, derived: &Derived) -> Option<Expr> {
    let mut read = vec![];
    columns_of(e, &mut read);
    let all = read.iter().all(|id| derived.iter().any(|(d, _)| d == id));
    if !all || !super::push_filters::deterministic(e) {
        return None;
    }
    let mut out = e.clone();
    out.walk_mut(&mut |x| {
        if let ExprKind::Column(id) = x.kind
            && let Some((_, definition)) = derived.iter().find(|(d, _)| *d == id)
        {
            *x = definition.clone();
        }
    });
    Some(out)
}

/// Whether different starts give different values: the start, or the start and a constant.
fn is_shifted_start(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Column(_) => true,
        ExprKind::Call { function, args } if &**function == "+" || &**function == "-" => {
            matches!(args.as_slice(), [a, b] if is_shifted_start(a) && matches!(b.kind, ExprKind::Literal(_)))
        }
        _ => false,
    }
}

fn renamed(mut e: Expr, from: ColumnId, to: ColumnId) -> Expr {
    e.walk_mut(&mut |x| {
        if x.kind == ExprKind::Column(from) {
            x.kind = ExprKind::Column(to);
        }
    });
    e
}
