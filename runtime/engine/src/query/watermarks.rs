//! Where a query's watermarks stand, for SHOW WATERMARKS.

use ssql_ir::{NodeId, Op, Pipeline};

use crate::graph::{Graph, Unit};
use crate::watermark::{Policy, WatermarkTracker};

/// One line of SHOW WATERMARKS: the query, an input, or a stateful operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatermarkStatus {
    /// `query`, `input s.ts`, or `aggregate #3` (the operator's number in EXPLAIN IR).
    pub place: String,
    /// Microseconds since the epoch; `None`: the input has had no row with an event time yet.
    pub watermark: Option<i64>,
    /// Of the query: the inputs that keep its watermark where it is. Of an input: `idle` if it is left out.
    pub note: String,
    /// Of an operator: windows, sessions, keys or rows that it keeps open.
    pub open: Option<u64>,
    /// Of an operator: when the next of them closes, microseconds, if it knows.
    pub next_close: Option<i64>,
}

/// All lines, in the order of the pipeline.
pub(crate) fn watermark_status(
    graph: &Graph,
    tracker: &WatermarkTracker,
    last_evict: i64,
    now_micros: i64,
) -> Vec<WatermarkStatus> {
    let line = |place: String, watermark| WatermarkStatus {
        place,
        watermark,
        note: String::new(),
        open: None,
        next_close: None,
    };
    let inputs: Vec<_> = tracker.inputs(now_micros).collect();
    if inputs.is_empty() {
        return Vec::new();
    }
    let mut query = line("query".to_owned(), Some(tracker.global()));
    query.note = held_back_by(&graph.pipeline, tracker, now_micros);
    let mut all = vec![query];
    for (node, value, idle) in &inputs {
        let mut input = line(format!("input {}", name_of(&graph.pipeline, *node)), *value);
        if *idle {
            input.note = "idle".to_owned();
        }
        all.push(input);
    }
    for (node, unit) in graph.units.iter().enumerate() {
        let (kind, (open, next_close)) = match unit {
            Unit::Aggregate(_, state) => ("aggregate", state.open()),
            Unit::Hop(_, state) => ("aggregate", state.open(last_evict)),
            Unit::Session(state) => ("session", state.open()),
            Unit::Dedup(state) => ("dedup", (state.metrics().0, None)),
            Unit::StreamJoin(state) => ("join", (state.metrics().0, None)),
            _ => continue,
        };
        all.push(WatermarkStatus { open: Some(open), next_close, ..line(format!("{kind} #{node}"), Some(last_evict)) });
    }
    all
}

/// The inputs whose progress decides: under `min` the last, under `max` the first, where there are others.
pub(crate) fn held_back_by(pipeline: &Pipeline, tracker: &WatermarkTracker, now_micros: i64) -> String {
    let active: Vec<_> = tracker.inputs(now_micros).filter(|(_, _, idle)| !idle).collect();
    if active.len() < 2 {
        return String::new();
    }
    let values = active.iter().map(|(_, value, _)| value.unwrap_or(0));
    let decisive = match tracker.policy() {
        Policy::Min => values.min(),
        Policy::Max => values.max(),
    };
    let names: Vec<String> = active
        .iter()
        .filter(|(_, value, _)| Some(value.unwrap_or(0)) == decisive)
        .map(|(node, value, _)| {
            let name = name_of(pipeline, *node);
            if value.is_none() { format!("{name} (no row yet)") } else { name }
        })
        .collect();
    if names.len() == active.len() { String::new() } else { format!("held back by {}", names.join(", ")) }
}

/// `stream.column` of a watermark.
fn name_of(pipeline: &Pipeline, node: NodeId) -> String {
    let watermark = &pipeline.nodes[node.0 as usize];
    let column = match watermark.op {
        Op::Watermark { column, .. } => watermark.schema.fields[column as usize].name.as_str(),
        _ => "",
    };
    let mut at = watermark;
    loop {
        match (&at.op, at.inputs.first()) {
            (Op::Source { relation, .. }, _) => return format!("{relation}.{column}"),
            (_, Some(input)) => at = &pipeline.nodes[input.0 as usize],
            (_, None) => return column.to_owned(),
        }
    }
}
