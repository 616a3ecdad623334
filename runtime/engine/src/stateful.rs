//! What all stateful operators have in common: they are restored, written whole, and shown as rows.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};
use ssql_ir::{Op, Pipeline};

use crate::error::{EngineError, Result};
use crate::graph::{Graph, Unit, is_streaming};
use crate::kernels::Kernels;

/// Whether a node keeps something from one micro-batch to the next. The order of these nodes numbers the directories of
/// their states.
pub fn is_stateful(pipeline: &Pipeline, node: usize) -> bool {
    let node = &pipeline.nodes[node];
    matches!(
        node.op,
        Op::Aggregate { .. }
            | Op::HopAggregate { .. }
            | Op::SessionAggregate { .. }
            | Op::Dedup { .. }
            | Op::StreamJoin { .. }
            | Op::Limit { .. }
    ) && node.inputs.iter().any(|&input| is_streaming(pipeline, input))
}

/// Whether a moved watermark alone gives the operator something to do (Spark's `shouldRunAnotherBatch`).
pub fn finishes_by_watermark(unit: &Unit, op: &Op) -> bool {
    match (unit, op) {
        (Unit::Aggregate(_, state), _) => state.finishes_by_watermark(),
        (Unit::Hop(_, state), _) => state.finishes_by_watermark(),
        (Unit::Session(_) | Unit::Dedup(_), _) => true,
        (_, Op::StreamJoin { left, right, .. }) => left.expire.is_some() || right.expire.is_some(),
        _ => false,
    }
}

/// Takes up a snapshot or the changes of one batch.
pub fn restore(unit: &mut Unit, bytes: &[u8]) -> Result<()> {
    match unit {
        Unit::Aggregate(_, state) => state.restore(bytes),
        Unit::Hop(_, state) => state.restore(bytes),
        Unit::Session(state) => state.restore(bytes),
        Unit::Dedup(state) => state.restore(bytes),
        Unit::StreamJoin(state) => state.restore(bytes),
        Unit::Limit(limit) => {
            if let Some(seen) = bytes.first_chunk::<8>() {
                limit.restore(u64::from_le_bytes(*seen));
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The whole state as of a batch that evicted by `watermark`.
pub fn snapshot(unit: &mut Unit, watermark: i64) -> Vec<u8> {
    match unit {
        Unit::Aggregate(_, state) => state.snapshot(watermark),
        Unit::Hop(_, state) => state.snapshot(watermark),
        Unit::Session(state) => state.snapshot(watermark),
        Unit::Dedup(state) => state.snapshot(watermark),
        Unit::StreamJoin(state) => state.snapshot(watermark),
        Unit::Limit(limit) => limit.seen().to_le_bytes().to_vec(),
        _ => Vec::new(),
    }
}

/// The state as rows: keys and values under their names in the plan.
pub fn rows(unit: &mut Unit, pipeline: &Pipeline, node: usize) -> Result<Vec<RecordBatch>> {
    let input = |i: usize| &pipeline.nodes[pipeline.nodes[node].inputs[i].0 as usize].schema;
    match unit {
        Unit::Aggregate(_, state) => state.rows(),
        Unit::Hop(_, state) => state.rows(),
        Unit::Session(state) => Ok(vec![state.rows()?]),
        Unit::Dedup(state) => state.rows(input(0)),
        Unit::StreamJoin(state) => state.rows(input(0), input(1)),
        Unit::Limit(limit) => {
            let schema = Schema::new(vec![Field::new("rows_seen", DataType::Int64, false)]);
            let seen: ArrayRef = Arc::new(Int64Array::from(vec![limit.seen() as i64]));
            Ok(vec![RecordBatch::try_new(Arc::new(schema), vec![seen])?])
        }
        _ => Err(EngineError::internal(format!("node {node} keeps no state"))),
    }
}

/// One operator of a pipeline, without any state; for work beside the query and for tools.
pub fn instantiate(pipeline: &Pipeline, node: usize, n_partitions: usize) -> Result<Unit> {
    let mut graph = Graph::new(pipeline, &Kernels::interpreter(), n_partitions)?;
    Ok(std::mem::replace(&mut graph.units[node], Unit::Pass))
}

/// What an operator is called in messages.
pub fn name(pipeline: &Pipeline, node: usize) -> String {
    let what = match &pipeline.nodes[node].op {
        Op::Source { relation, .. } => return format!("source `{relation}` (node {node})"),
        Op::Sink { relation } => return format!("sink `{relation}` (node {node})"),
        Op::Values { .. } => "VALUES",
        Op::Map { .. } => "filter and projection",
        Op::Watermark { .. } => "watermark",
        Op::DropLate { .. } => "late-row filter",
        Op::AssignWindows { .. } => "window assignment",
        Op::Aggregate { .. } => "aggregation",
        Op::HopAggregate { .. } => "hopping-window aggregation",
        Op::SessionAggregate { .. } => "session aggregation",
        Op::Dedup { .. } => "deduplication",
        Op::StreamJoin { .. } => "stream-stream join",
        Op::HashJoin { .. } => "join",
        Op::Union => "union",
        Op::Sort { .. } => "sort",
        Op::Limit { .. } => "limit",
        Op::Expand { .. } => "grouping sets",
        Op::Generate { .. } => "generator",
        Op::WindowFunction { .. } => "window functions",
    };
    format!("{what} (node {node})")
}
