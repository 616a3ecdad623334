//! What a join of two inputs can be run on: key equalities, the rest of its condition, and, for two streams, when a
//! kept row can no longer find a match.
//!
//! The expiry follows Spark's StreamingJoinHelper. An equality on event time (or on a window) ends a row with its own
//! time. Else a range predicate does: of `left > right - c`, with `right` at least the watermark W, a left row is done
//! once `left + c <= W`; an inclusive bound waits one millisecond longer.

use ssql_ir::{Expr, ExprKind, JoinKind, Literal};

use crate::logical::{ColumnId, Columns, EventTime, Plan, conjunction, conjuncts, reads_only};

/// A key of a join: the expression of each side.
#[derive(Debug, Clone)]
pub(crate) struct JoinKey {
    pub left: Expr,
    pub right: Expr,
    /// `<=>`.
    pub null_safe: bool,
}

/// The parts of a join's condition.
#[derive(Debug, Clone)]
pub(crate) struct JoinParts {
    pub keys: Vec<JoinKey>,
    pub residual: Option<Expr>,
}

/// When a kept row is done: `expr + add_micros <= watermark`.
#[derive(Debug, Clone)]
pub(crate) struct Expiry {
    pub expr: Expr,
    pub add_micros: i64,
}

/// Splits a condition over the outputs of both sides.
pub(crate) fn parts(on: Option<&Expr>, left: &Plan, right: &Plan) -> JoinParts {
    let (l, r) = (left.outputs(), right.outputs());
    let mut keys = vec![];
    let mut rest = vec![];
    for p in on.cloned().map(conjuncts).unwrap_or_default() {
        match key_of(&p, &l, &r) {
            Some(key) => keys.push(key),
            None => rest.push(p),
        }
    }
    JoinParts { keys, residual: conjunction(rest) }
}

fn key_of(p: &Expr, l: &[ColumnId], r: &[ColumnId]) -> Option<JoinKey> {
    let ExprKind::Call { function, args } = &p.kind else { return None };
    let null_safe = match &**function {
        "=" => false,
        "<=>" => true,
        _ => return None,
    };
    let has_column = |e: &Expr| {
        let mut ids = vec![];
        crate::logical::columns_of(e, &mut ids);
        !ids.is_empty()
    };
    let [a, b] = args.as_slice() else { return None };
    if !has_column(a) || !has_column(b) {
        return None;
    }
    if reads_only(a, l) && reads_only(b, r) {
        return Some(JoinKey { left: a.clone(), right: b.clone(), null_safe });
    }
    if reads_only(a, r) && reads_only(b, l) {
        return Some(JoinKey { left: b.clone(), right: a.clone(), null_safe });
    }
    None
}

/// The event time that a bare column is.
fn time_of(e: &Expr, columns: &Columns) -> Option<EventTime> {
    match e.kind {
        ExprKind::Column(id) => columns.get(id).event_time,
        _ => None,
    }
}

/// Expiry of the rows of the left and of the right side.
pub(crate) fn expiries(
    parts: &JoinParts,
    left: &Plan,
    right: &Plan,
    columns: &Columns,
) -> (Option<Expiry>, Option<Expiry>) {
    for key in &parts.keys {
        if let Some(t) = time_of(&key.left, columns).or_else(|| time_of(&key.right, columns)) {
            let of = |e: &Expr| Some(Expiry { expr: e.clone(), add_micros: t.add_micros });
            return (of(&key.left), of(&key.right));
        }
    }
    let (l, r) = (event_times(left, columns), event_times(right, columns));
    let residual = parts.residual.clone().map(conjuncts).unwrap_or_default();
    (range_expiry(&residual, &l, &r, columns), range_expiry(&residual, &r, &l, columns))
}

fn event_times(plan: &Plan, columns: &Columns) -> Vec<ColumnId> {
    plan.outputs().into_iter().filter(|id| columns.get(*id).event_time.is_some_and(|t| t.add_micros == 0)).collect()
}

/// Whether a join of two streams that owes unmatched rows is taken: an event time among its keys, or a range that ties
/// a side to an event time of the other. This is Spark's rule, and it asks for less than the rows' expiry does: a FULL
/// join needs one of its sides, and a side needs no watermark of its own, though without one its unmatched rows never
/// come out. The state is then unbounded, which the compiler says.
pub(crate) fn is_taken(kind: JoinKind, parts: &JoinParts, left: &Plan, right: &Plan, columns: &Columns) -> bool {
    if parts.keys.iter().any(|k| time_of(&k.left, columns).or_else(|| time_of(&k.right, columns)).is_some()) {
        return true;
    }
    let residual = parts.residual.clone().map(conjuncts).unwrap_or_default();
    let tied = |own: &Plan, other: &Plan| {
        range_expiry(&residual, &own.outputs(), &event_times(other, columns), columns).is_some()
    };
    match kind {
        JoinKind::Left | JoinKind::LeftSemi => tied(left, right),
        JoinKind::Right => tied(right, left),
        JoinKind::Full => tied(left, right) || tied(right, left),
        _ => true,
    }
}

/// The expiry of rows by a time among `own`, from range predicates against event times of `other`.
fn range_expiry(residual: &[Expr], own: &[ColumnId], other: &[ColumnId], columns: &Columns) -> Option<Expiry> {
    const MILLISECOND: i64 = 1000;
    let mut best: Option<Expiry> = None;
    for p in residual {
        let ExprKind::Call { function, args } = &p.kind else { continue };
        let [a, b] = args.as_slice() else { continue };
        let (greater, less, inclusive) = match &**function {
            "<" => (b, a, false),
            "<=" => (b, a, true),
            ">" => (a, b, false),
            ">=" => (a, b, true),
            _ => continue,
        };
        // greater - less > 0, as a sum of columns and a constant.
        let mut sum = Sum::default();
        if sum.add(greater, 1).is_none() || sum.add(less, -1).is_none() {
            continue;
        }
        sum.terms.retain(|(_, n)| *n != 0);
        let [(x, 1), (y, -1)] = sorted(sum.terms).try_into().unwrap_or([(0, 0), (0, 0)]) else { continue };
        if !own.contains(&x) || !other.contains(&y) {
            continue;
        }
        let add = sum.constant + if inclusive { MILLISECOND } else { 0 };
        if best.as_ref().is_none_or(|b| add > b.add_micros) {
            best = Some(Expiry { expr: columns.expr(x), add_micros: add });
        }
    }
    best
}

/// Positive terms first.
fn sorted(mut terms: Vec<(ColumnId, i64)>) -> Vec<(ColumnId, i64)> {
    terms.sort_by_key(|(_, n)| -n);
    terms
}

/// A sum of timestamp columns and microseconds.
#[derive(Default)]
struct Sum {
    terms: Vec<(ColumnId, i64)>,
    constant: i64,
}

impl Sum {
    fn add(&mut self, e: &Expr, sign: i64) -> Option<()> {
        match &e.kind {
            ExprKind::Column(id) => {
                match self.terms.iter_mut().find(|(c, _)| c == id) {
                    Some((_, n)) => *n += sign,
                    None => self.terms.push((*id, sign)),
                }
                Some(())
            }
            ExprKind::Literal(Literal::Int(n)) if !matches!(e.data_type, ssql_ir::DataType::YearMonthInterval(..)) => {
                self.constant = self.constant.checked_add(sign.checked_mul(*n)?)?;
                Some(())
            }
            ExprKind::Call { function, args } if args.len() == 2 && (&**function == "+" || &**function == "-") => {
                self.add(&args[0], sign)?;
                self.add(&args[1], if &**function == "+" { sign } else { -sign })
            }
            _ => None,
        }
    }
}

/// The event-time columns of a plan's output, one per group.
pub(crate) fn event_columns(plan: &Plan, columns: &Columns) -> Vec<ColumnId> {
    let mut groups = vec![];
    let mut out = vec![];
    if !has_watermark(plan) {
        return out;
    }
    for id in plan.outputs() {
        if let Some(t) = columns.get(id).event_time
            && !groups.contains(&t.group)
        {
            groups.push(t.group);
            out.push(id);
        }
    }
    out
}

/// Whether a watermark lies in the plan.
pub(crate) fn has_watermark(plan: &Plan) -> bool {
    let mut hit = false;
    plan.walk(&mut |p| hit |= matches!(p.node, crate::logical::Node::Watermark { .. }));
    hit
}
