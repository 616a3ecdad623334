//! Adjacent Maps become one, so that a kernel runs over the rows once. A value that the upper Map reads more than once
//! and that costs something to compute keeps its Map: it is a common subexpression there.

use ssql_ir::{Expr, ExprKind, Node, NodeId, Op, Pipeline};

/// Fuses the Maps of a pipeline and of its subqueries.
pub fn fuse_maps(pipeline: &mut Pipeline) {
    let mut users = vec![0u32; pipeline.nodes.len()];
    for node in &pipeline.nodes {
        node.inputs.iter().for_each(|i| users[i.0 as usize] += 1);
    }
    for i in 0..pipeline.nodes.len() {
        let Some(input) = pipeline.nodes[i].inputs.first().copied() else { continue };
        if users[input.0 as usize] != 1 {
            continue;
        }
        let (before, rest) = pipeline.nodes.split_at_mut(i);
        let below = &before[input.0 as usize];
        if let Some(op) = fused(&rest[0].op, &below.op) {
            rest[0].op = op;
            rest[0].inputs = below.inputs.clone();
            users[input.0 as usize] = 0;
        }
    }
    drop_unused(pipeline, &users);
    pipeline.subqueries.iter_mut().for_each(fuse_maps);
}

fn fused(upper: &Op, lower: &Op) -> Option<Op> {
    let (Op::Map { predicate, project }, Op::Map { predicate: p, project: inner }) = (upper, lower) else {
        return None;
    };
    let mut uses = vec![0u32; inner.len()];
    for e in predicate.iter().chain(project) {
        e.walk(&mut |x| {
            if let ExprKind::Column(c) = x.kind {
                uses[c as usize] += 1;
            }
        });
    }
    let costly = |e: &Expr| !matches!(e.kind, ExprKind::Column(_) | ExprKind::Literal(_));
    if inner.iter().zip(&uses).any(|(e, n)| *n > 1 && costly(e)) {
        return None;
    }
    // What is not deterministic must not move to where fewer rows see it.
    if predicate.is_some() && !inner.iter().all(super::push_filters::deterministic) {
        return None;
    }
    let over = |e: &Expr| {
        let mut e = e.clone();
        e.walk_mut(&mut |x| {
            if let ExprKind::Column(c) = x.kind {
                let origin = x.origin;
                *x = inner[c as usize].clone();
                if x.origin.span.is_none() {
                    x.origin = origin;
                }
            }
        });
        e
    };
    let predicate = crate::logical::conjunction(p.iter().cloned().chain(predicate.iter().map(over)));
    Some(Op::Map { predicate, project: project.iter().map(over).collect() })
}

fn drop_unused(pipeline: &mut Pipeline, users: &[u32]) {
    let last = pipeline.nodes.len().saturating_sub(1);
    let mut new_ids = vec![NodeId(0); pipeline.nodes.len()];
    let mut kept: Vec<Node> = vec![];
    for (i, mut node) in std::mem::take(&mut pipeline.nodes).into_iter().enumerate() {
        if i != last && users[i] == 0 {
            continue;
        }
        node.inputs.iter_mut().for_each(|id| *id = new_ids[id.0 as usize]);
        new_ids[i] = NodeId(kept.len() as u32);
        kept.push(node);
    }
    pipeline.nodes = kept;
}
