//! Filter pushdown, with Spark's rule for watermarks: a deterministic filter that does not name the event-time column
//! acts below the watermark wherever it was written, one that names it acts above.

use ssql_ir::{Expr, ExprKind, JoinKind};

use crate::catalog::Catalog;
use crate::logical::{ColumnId, Node, Plan, Query, columns_of, conjunction, conjuncts, reads_only};

pub(crate) fn run(query: &mut Query, _: &Catalog) {
    for plan in std::iter::once(&mut query.plan).chain(query.subqueries.iter_mut().map(|(p, _)| p)) {
        let taken = std::mem::replace(plan, Plan::leaf(Node::Limit { limit: None, offset: 0 }, plan.span));
        *plan = push(taken, vec![]);
    }
}

/// The plan with these predicates applied as far down as they may stand.
fn push(mut plan: Plan, mut preds: Vec<Expr>) -> Plan {
    let span = plan.span;
    match plan.node {
        Node::Filter { predicate } => {
            let input = plan.inputs.remove(0);
            // Inner filters come first, as they were evaluated.
            let mut all = conjuncts(predicate);
            all.append(&mut preds);
            push(input, all)
        }
        Node::Project { ref columns } => {
            let columns = columns.clone();
            let (mut below, mut above) = (vec![], vec![]);
            for p in preds {
                match deterministic(&p).then(|| substitute(&p, &columns)).flatten() {
                    Some(inner) => below.push(inner),
                    None => above.push(p),
                }
            }
            keep(over_input(plan, below), above)
        }
        Node::Watermark { column, .. } => {
            let (below, above) = preds.into_iter().partition(|p| deterministic(p) && !names(p, &[column]));
            keep(over_input(plan, below), above)
        }
        Node::AssignWindows { start, .. } => {
            let (below, above) = preds.into_iter().partition(|p| deterministic(p) && !names(p, &[start]));
            keep(over_input(plan, below), above)
        }
        Node::Generate { ref outputs, .. } => {
            let outputs = outputs.clone();
            let (below, above) = preds.into_iter().partition(|p| deterministic(p) && !names(p, &outputs));
            keep(over_input(plan, below), above)
        }
        Node::Sort { .. } => over_input(plan, preds),
        Node::Aggregate { ref keys, .. } | Node::Session { ref keys, .. } if !keys.is_empty() => {
            let keys = keys.clone();
            let ids: Vec<ColumnId> = keys.iter().map(|(id, _)| *id).collect();
            let (mut below, mut above) = (vec![], vec![]);
            for p in preds {
                let mut read = vec![];
                columns_of(&p, &mut read);
                let on_keys = !read.is_empty() && read.iter().all(|id| ids.contains(id)) && deterministic(&p);
                match on_keys.then(|| substitute(&p, &keys)).flatten() {
                    Some(inner) => below.push(inner),
                    None => above.push(p),
                }
            }
            keep(over_input(plan, below), above)
        }
        Node::Union { ref columns, ref sources } => {
            let (columns, sources) = (columns.clone(), sources.clone());
            let (common, above): (Vec<Expr>, Vec<Expr>) = preds.into_iter().partition(deterministic);
            plan.inputs = plan
                .inputs
                .into_iter()
                .zip(&sources)
                .map(|(input, source)| {
                    let mine = common.iter().map(|p| renamed(p, &columns, source)).collect();
                    push(input, mine)
                })
                .collect();
            keep(plan, above)
        }
        Node::Join { kind, on, flag } => {
            let right = plan.inputs.pop().expect("a join has two inputs");
            let left = plan.inputs.pop().expect("a join has two inputs");
            push_join(kind, on, flag, left, right, preds, span)
        }
        _ => keep(over_input(plan, vec![]), preds),
    }
}

fn push_join(
    kind: JoinKind,
    on: Option<Expr>,
    flag: Option<ColumnId>,
    left: Plan,
    right: Plan,
    preds: Vec<Expr>,
    span: ssql_grammar::Span,
) -> Plan {
    let (l, r) = (left.outputs(), right.outputs());
    let (mut to_left, mut to_right, mut above, mut rest) = (vec![], vec![], vec![], vec![]);
    let left_kept = !matches!(kind, JoinKind::Right | JoinKind::Full);
    let right_kept = matches!(kind, JoinKind::Inner | JoinKind::Right);
    for p in preds {
        let movable = deterministic(&p) && reads_something(&p);
        if movable && left_kept && reads_only(&p, &l) {
            to_left.push(p);
        } else if movable && right_kept && reads_only(&p, &r) {
            to_right.push(p);
        } else if kind == JoinKind::Inner && deterministic(&p) && !names_subquery(&p) {
            rest.push(p);
        } else {
            above.push(p);
        }
    }
    // A condition on one side only may filter that side where its rows need not be shown as unmatched.
    let on_left = matches!(kind, JoinKind::Inner | JoinKind::Right | JoinKind::LeftSemi);
    let on_right = !matches!(kind, JoinKind::Right | JoinKind::Full | JoinKind::NullAwareAnti);
    for p in on.map(conjuncts).unwrap_or_default() {
        let movable = deterministic(&p) && reads_something(&p);
        if movable && on_left && reads_only(&p, &l) {
            to_left.push(p);
        } else if movable && on_right && reads_only(&p, &r) {
            to_right.push(p);
        } else {
            rest.push(p);
        }
    }
    let node = Node::Join { kind, on: conjunction(rest), flag };
    keep(Plan::join(node, push(left, to_left), push(right, to_right), span), above)
}

fn over_input(mut plan: Plan, preds: Vec<Expr>) -> Plan {
    let mut preds = Some(preds);
    plan.inputs = plan.inputs.into_iter().map(|input| push(input, preds.take().unwrap_or_default())).collect();
    plan
}

fn keep(plan: Plan, preds: Vec<Expr>) -> Plan {
    let span = plan.span;
    match conjunction(preds) {
        Some(predicate) => plan.filter(predicate, span),
        None => plan,
    }
}

/// The predicate over the input of a projection; None if it reads what is not deterministic there.
fn substitute(p: &Expr, columns: &[(ColumnId, Expr)]) -> Option<Expr> {
    let mut out = p.clone();
    let mut ok = true;
    out.walk_mut(&mut |e| {
        if let ExprKind::Column(id) = e.kind
            && let Some((_, inner)) = columns.iter().find(|(c, _)| *c == id)
        {
            ok &= deterministic(inner);
            let origin = e.origin;
            *e = inner.clone();
            if e.origin.span.is_none() {
                e.origin = origin;
            }
        }
    });
    ok.then_some(out)
}

fn renamed(p: &Expr, from: &[ColumnId], to: &[ColumnId]) -> Expr {
    let mut out = p.clone();
    out.walk_mut(&mut |e| {
        if let ExprKind::Column(id) = &mut e.kind
            && let Some(i) = from.iter().position(|f| f == id)
        {
            *id = to[i];
        }
    });
    out
}

pub(crate) fn deterministic(e: &Expr) -> bool {
    let mut all = true;
    e.walk(&mut |x| {
        if let ExprKind::Call { function, .. } = &x.kind {
            all &= ssql_stdlib::is_deterministic(function);
        }
    });
    all
}

fn names(e: &Expr, ids: &[ColumnId]) -> bool {
    let mut hit = false;
    e.walk(&mut |x| hit |= matches!(x.kind, ExprKind::Column(id) if ids.contains(&id)));
    hit
}

fn names_subquery(e: &Expr) -> bool {
    let mut hit = false;
    e.walk(&mut |x| hit |= matches!(x.kind, ExprKind::ScalarSubquery(_)));
    hit
}

fn reads_something(e: &Expr) -> bool {
    let mut read = vec![];
    columns_of(e, &mut read);
    !read.is_empty()
}
