//! Late rows that are kept: `LATE DATA TO sink`. What a late filter takes out of a query goes to a sink of its own, in the
//! same micro-batch and committed before it.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringViewArray, TimestampMicrosecondArray, new_null_array};
use ssql_ir::{CloseRule, DataType, Field, Op, Pipeline, Schema};
use ssql_stdlib::{arrow_schema, arrow_type};

use crate::connector::{Offset, Sink};
use crate::error::Result;
use crate::operators::step::{StepNotes, timestamps};

/// What a late filter took out of one batch.
#[derive(Debug, Clone)]
pub struct LateRows {
    /// The piece of the input that they came with: their order, however the threads ran.
    pub piece: usize,
    /// The side of a join; 0 of all else.
    pub side: usize,
    /// The watermark that they are behind, microseconds.
    pub watermark: i64,
    /// The rows, as the filter saw them.
    pub rows: RecordBatch,
}

/// One late filter: a `DropLate`, or a side of a join of streams.
#[derive(Debug, Clone)]
struct LateFilter {
    node: usize,
    side: usize,
    rule: CloseRule,
    /// The streams that its rows come from.
    sources: Vec<usize>,
    source_names: String,
    /// Where each column of the sink stands in its rows.
    columns: Vec<Option<usize>>,
}

/// What goes to the sink of late rows, and in which form.
#[derive(Debug, Clone)]
pub struct LateData {
    schema: Schema,
    filters: Vec<LateFilter>,
}

/// Columns that say why a row is late, behind its own.
const REASONS: [&str; 5] = ["_reason", "_watermark", "_window_end", "_source", "_offset"];

impl LateData {
    /// Of a pipeline; `None` if it has no late filter. The columns of several filters stand side by side: one name and
    /// type is one column, NULL where a filter's rows have none such.
    pub fn of(pipeline: &Pipeline) -> Option<LateData> {
        let mut fields: Vec<Field> = Vec::new();
        let mut filters = Vec::new();
        let inputs = |node: usize| pipeline.nodes[node].inputs.iter().map(|i| i.0 as usize).collect::<Vec<_>>();
        for (node, n) in pipeline.nodes.iter().enumerate() {
            let rules: Vec<(usize, CloseRule)> = match &n.op {
                Op::DropLate { rule } => vec![(0, *rule)],
                Op::StreamJoin { left, right, .. } => [left, right]
                    .into_iter()
                    .enumerate()
                    .filter_map(|(side, s)| Some((side, CloseRule { column: s.late?, add_micros: 0 })))
                    .collect(),
                _ => continue,
            };
            for (side, rule) in rules {
                let below = inputs(node)[side];
                let own = &pipeline.nodes[below].schema.fields;
                let mut places: Vec<(usize, usize)> = Vec::new();
                for (at, field) in own.iter().enumerate().filter(|(_, f)| f.name != UNNAMED) {
                    let same = |f: &Field| f.name == field.name && f.data_type == field.data_type;
                    let free = |i: &usize| !places.iter().any(|(taken, _)| taken == i);
                    let place = fields.iter().enumerate().filter(|(_, f)| same(f)).map(|(i, _)| i).find(free);
                    places.push((
                        place.unwrap_or_else(|| {
                            fields.push(Field::new(&field.name, field.data_type.clone(), true));
                            fields.len() - 1
                        }),
                        at,
                    ));
                }
                let columns =
                    (0..fields.len()).map(|i| places.iter().find(|(p, _)| *p == i).map(|(_, at)| *at)).collect();
                let (sources, source_names) = sources_of(pipeline, below);
                filters.push(LateFilter { node, side, rule, sources, source_names, columns });
            }
        }
        for filter in &mut filters {
            filter.columns.resize(fields.len(), None);
        }
        let types = [DataType::String, DataType::Timestamp, DataType::Timestamp, DataType::String, DataType::String];
        fields.extend(REASONS.iter().zip(types).map(|(name, t)| Field::new(*name, t, true)));
        (!filters.is_empty()).then_some(LateData { schema: Schema::new(fields), filters })
    }

    /// Columns of the sink.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The rows of one filter as the sink takes them. `offsets`: where the micro-batch ends in each source.
    fn rows(&self, filter: &LateFilter, late: &LateRows, offsets: &[Option<Offset>]) -> Result<RecordBatch> {
        let n = late.rows.num_rows();
        let own = self.schema.fields.len() - REASONS.len();
        let mut columns: Vec<ArrayRef> = self.schema.fields[..own]
            .iter()
            .zip(&filter.columns)
            .map(|(field, at)| match at {
                Some(at) => Arc::clone(late.rows.column(*at)),
                None => new_null_array(&arrow_type(&field.data_type), n),
            })
            .collect();
        let text = |text: Option<&str>| Arc::new(StringViewArray::from_iter(std::iter::repeat_n(text, n))) as ArrayRef;
        let time = |t: TimestampMicrosecondArray| Arc::new(t.with_timezone("UTC")) as ArrayRef;
        let ends = timestamps(&late.rows, filter.rule.column as usize)?;
        let ends = ends.iter().map(|t| t.and_then(|t| t.checked_add(filter.rule.add_micros))).collect();
        let offset = match filter.sources[..] {
            [one] => offsets.get(one).and_then(|o| o.as_ref().map(ToString::to_string)),
            _ => None,
        };
        columns.push(text(Some("late")));
        columns.push(time(TimestampMicrosecondArray::from_value(late.watermark, n)));
        columns.push(time(ends));
        columns.push(text(Some(&filter.source_names)));
        columns.push(text(offset.as_deref()));
        let columns = columns
            .into_iter()
            .zip(&self.schema.fields)
            .map(|(c, f)| Ok(arrow::compute::cast(&c, &arrow_type(&f.data_type))?))
            .collect::<Result<Vec<_>>>()?;
        Ok(RecordBatch::try_new(arrow_schema(&self.schema), columns)?)
    }
}

/// The streaming sources below a node: their numbers, and their names.
fn sources_of(pipeline: &Pipeline, node: usize) -> (Vec<usize>, String) {
    let streams: Vec<usize> = (0..pipeline.nodes.len())
        .filter(|n| matches!(pipeline.nodes[*n].op, Op::Source { streaming: true, .. }))
        .collect();
    let mut below = vec![node];
    let mut found = Vec::new();
    while let Some(at) = below.pop() {
        match streams.iter().position(|s| *s == at) {
            Some(stream) => found.push(stream),
            None => below.extend(pipeline.nodes[at].inputs.iter().map(|i| i.0 as usize)),
        }
    }
    found.sort_unstable();
    found.dedup();
    let name = |stream: &usize| match &pipeline.nodes[streams[*stream]].op {
        Op::Source { relation, .. } => relation.to_string(),
        _ => String::new(),
    };
    let names: Vec<String> = found.iter().map(name).collect();
    (found, names.join(", "))
}

/// The sink of a query's late rows.
pub struct LateSink {
    /// What goes there.
    pub data: LateData,
    /// Where it goes.
    pub sink: Box<dyn Sink>,
}

impl LateSink {
    /// All late rows of a micro-batch, from what each node noted, in an order that a replay repeats.
    pub(crate) fn gather(&self, notes: &[StepNotes], offsets: &[Option<Offset>]) -> Result<Vec<RecordBatch>> {
        let mut out = Vec::new();
        for filter in &self.data.filters {
            let noted = notes.get(filter.node).map_or(&[][..], |n| &n.late_rows);
            let mut rows: Vec<&LateRows> = noted.iter().filter(|l| l.side == filter.side).collect();
            rows.sort_by_key(|l| l.piece);
            for late in rows {
                out.push(self.data.rows(filter, late, offsets)?);
            }
        }
        Ok(out)
    }
}

/// What the planner calls a computed value that no one names, in a query whose late rows are kept.
const UNNAMED: &str = "$expr";
