//! A join's condition in parts: what one side's row decides alone, and what takes both.

use ssql_ir::{DataType, Expr, ExprKind, Origin};
use ssql_stdlib::is_deterministic;

/// A condition beyond key equality, split as Spark does it: a row that fails its own side's part can match nothing, so
/// it is not kept, and is shown as unmatched at once where its side is outer.
#[derive(Debug, Default)]
pub struct Condition {
    /// Over the columns of each side.
    pub own: [Option<Expr>; 2],
    /// Over left columns then right columns.
    pub both: Option<Expr>,
}

impl Condition {
    /// Splits a condition over left columns (`n_left` of them) and then right columns. What names no column at all
    /// counts for both sides.
    pub fn split(condition: Option<Expr>, n_left: u32) -> Condition {
        let mut parts = Vec::new();
        if let Some(condition) = condition {
            conjuncts(condition, &mut parts);
        }
        let mut split = Condition::default();
        for part in parts {
            let (mut left, mut right, mut deterministic) = (false, false, true);
            part.walk(&mut |e| match &e.kind {
                ExprKind::Column(c) if *c < n_left => left = true,
                ExprKind::Column(_) => right = true,
                ExprKind::Call { function, .. } => deterministic &= is_deterministic(function),
                _ => {}
            });
            if !deterministic || (left && right) {
                and(&mut split.both, part);
                continue;
            }
            if !right {
                and(&mut split.own[0], part.clone());
            }
            if !left {
                let mut part = part;
                part.walk_mut(&mut |e| {
                    if let ExprKind::Column(c) = &mut e.kind {
                        *c -= n_left;
                    }
                });
                and(&mut split.own[1], part);
            }
        }
        split
    }
}

fn conjuncts(condition: Expr, out: &mut Vec<Expr>) {
    match condition.kind {
        ExprKind::And(a, b) => {
            conjuncts(*a, out);
            conjuncts(*b, out);
        }
        _ => out.push(condition),
    }
}

fn and(condition: &mut Option<Expr>, part: Expr) {
    *condition = Some(match condition.take() {
        None => part,
        Some(before) => Expr {
            nullable: before.nullable || part.nullable,
            kind: ExprKind::And(Box::new(before), Box::new(part)),
            data_type: DataType::Boolean,
            origin: Origin::default(),
        },
    });
}
