//! Column pruning: each operator gives only what is read above it, down to the columns that a source parses.

use ssql_ir::ExprKind;

use crate::catalog::Catalog;
use crate::logical::{ColumnId, Columns, Node, Plan, Query, columns_of};

pub(crate) fn run(query: &mut Query, _: &Catalog) {
    let Query { plan, output, subqueries, columns, keep_late } = query;
    let required: Vec<ColumnId> = output.iter().map(|(id, _)| *id).collect();
    prune(plan, &required, columns, *keep_late);
    for (plan, id) in subqueries {
        prune(plan, &[*id], columns, false);
    }
}

fn prune(plan: &mut Plan, required: &[ColumnId], columns: &Columns, keep_late: bool) {
    match &mut plan.node {
        Node::Source { columns: read, .. } => read.retain(|(id, _)| required.contains(id)),
        Node::Project { columns: exprs } => {
            exprs.retain(|(id, _)| required.contains(id));
        }
        Node::Aggregate { aggs, .. } | Node::HopAggregate { aggs, .. } | Node::Session { aggs, .. } => {
            aggs.retain(|(id, _)| required.contains(id))
        }
        Node::WindowFunction { calls, .. } => calls.retain(|(id, _)| required.contains(id)),
        Node::Union { columns: out, sources } => {
            let keep: Vec<bool> = out.iter().map(|id| required.contains(id)).collect();
            retain(out, &keep);
            sources.iter_mut().for_each(|s| retain(s, &keep));
        }
        Node::Expand { columns: out, projections } => {
            let keep: Vec<bool> = out.iter().map(|id| required.contains(id)).collect();
            retain(out, &keep);
            projections.iter_mut().for_each(|p| retain(p, &keep));
        }
        Node::Values { columns: out, rows } => {
            let keep: Vec<bool> = out.iter().map(|id| required.contains(id)).collect();
            retain(out, &keep);
            rows.iter_mut().for_each(|r| retain(r, &keep));
        }
        Node::Filter { .. }
        | Node::Watermark { .. }
        | Node::AssignWindows { .. }
        | Node::Dedup { .. }
        | Node::Join { .. }
        | Node::Sort { .. }
        | Node::Limit { .. }
        | Node::Generate { .. } => {}
    }
    if let Node::WindowFunction { calls, .. } = &plan.node
        && calls.is_empty()
    {
        *plan = plan.inputs.remove(0);
        return prune(plan, required, columns, keep_late);
    }
    if let Node::Union { sources, .. } = &plan.node {
        let sources = sources.clone();
        for (input, read) in plan.inputs.iter_mut().zip(sources) {
            prune(input, &read, columns, keep_late);
        }
        return;
    }
    let mut read = vec![];
    plan.expressions(&mut |e| columns_of(e, &mut read));
    let passes_on = !matches!(
        plan.node,
        Node::Project { .. }
            | Node::Aggregate { .. }
            | Node::HopAggregate { .. }
            | Node::Session { .. }
            | Node::Expand { .. }
    );
    if passes_on {
        read.extend(required);
    }
    match &plan.node {
        Node::Watermark { column, .. } => read.push(*column),
        Node::AssignWindows { time, .. } => read.push(*time),
        Node::HopAggregate { slice, last, .. } => read.extend([slice, last]),
        Node::Session { start, end, .. } => read.extend([start.1, end.1]),
        Node::Dedup { keys, .. } => {
            read.extend(keys);
            let timed = |id: &ColumnId| columns.get(*id).event_time.is_some();
            // Late rows are dropped by the event time even where nothing else reads it.
            if !read.iter().any(timed) {
                let times: Vec<ColumnId> = plan.inputs[0].outputs().into_iter().filter(|id| timed(id)).collect();
                let mut groups: Vec<u32> =
                    times.iter().filter_map(|id| columns.get(*id).event_time.map(|t| t.group)).collect();
                groups.dedup();
                if groups.len() == 1 {
                    read.push(times[0]);
                }
            }
        }
        _ => {}
    }
    let has_late_filter = matches!(
        plan.node,
        Node::Aggregate { .. }
            | Node::HopAggregate { .. }
            | Node::Session { .. }
            | Node::Dedup { .. }
            | Node::Join { .. }
    );
    if keep_late && has_late_filter {
        read.extend(plan.inputs.iter().flat_map(Plan::outputs));
    }
    for input in &mut plan.inputs {
        prune(input, &read, columns, keep_late);
    }
    // A projection over one that passes columns through does its work as well.
    if matches!(plan.node, Node::Project { .. })
        && let Node::Project { columns: inner } = &plan.inputs[0].node
        && inner.iter().all(|(id, e)| e.kind == ExprKind::Column(*id))
    {
        let below = plan.inputs[0].inputs.remove(0);
        plan.inputs[0] = below;
    }
    // What only the condition of a join reads goes no further.
    if matches!(plan.node, Node::Join { .. }) {
        let outputs = plan.outputs();
        if outputs.iter().any(|id| !required.contains(id)) {
            let kept =
                outputs.into_iter().filter(|id| required.contains(id)).map(|id| (id, columns.expr(id))).collect();
            let span = plan.span;
            let join = std::mem::replace(plan, Plan::leaf(Node::Limit { limit: None, offset: 0 }, span));
            *plan = Plan::over(Node::Project { columns: kept }, join, span);
        }
    }
}

fn retain<T>(items: &mut Vec<T>, keep: &[bool]) {
    let mut flags = keep.iter();
    items.retain(|_| *flags.next().unwrap_or(&true));
}
