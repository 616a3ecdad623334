//! The stateless operators: each takes a batch and gives a batch, on any thread.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, RecordBatch, RecordBatchOptions, TimestampMicrosecondArray, UInt32Array,
};
use arrow::compute::{concat_batches, filter_record_batch, not, take};
use arrow::datatypes::{SchemaRef, TimestampMicrosecondType};
use ssql_ir::{CloseRule, Expr, Schema, Symbol};
use ssql_stdlib::{EvalContext, arrow_schema, evaluate, generate};

use crate::error::{EngineError, Result};
use crate::late::LateRows;
use crate::operators::hash_join::{Build, Probe};
use crate::operators::map::Map;
use crate::watermark::{BatchWatermark, EventTimeStats};

/// A stateless operator, instantiated.
pub enum Step {
    /// `Op::Map`.
    Map(Map),
    /// `Op::Watermark`: watches the column.
    Watermark {
        /// Event-time column.
        column: usize,
        /// `MAX SKEW`, microseconds.
        max_skew: Option<i64>,
    },
    /// `Op::DropLate`.
    DropLate(CloseRule),
    /// `Op::AssignWindows`.
    AssignWindows(AssignWindows),
    /// `Op::Expand`: one map per projection.
    Expand(Vec<Map>),
    /// `Op::Generate`.
    Generate(Generate),
    /// `Op::HashJoin`, the probing side.
    Probe(Probe),
}

/// What a step may look at beside the batch.
pub struct StepContext<'a> {
    /// For expressions.
    pub eval: &'a EvalContext,
    /// Watermarks that this operator goes by.
    pub watermark: BatchWatermark,
    /// Table of the static side, for a probe.
    pub build: Option<&'a Build>,
    /// Whether late rows are kept, not only counted.
    pub keep_late: bool,
}

/// What a step notes while it runs; summed over all batches of a micro-batch.
#[derive(Debug, Clone, Default)]
pub struct StepNotes {
    /// Event times seen by a watermark.
    pub event_time: EventTimeStats,
    /// Late rows dropped.
    pub late: u64,
    /// The rows themselves, where they are kept.
    pub late_rows: Vec<LateRows>,
}

impl StepNotes {
    /// Takes up the notes of the batches of one piece of the input.
    pub fn merge(&mut self, other: StepNotes, piece: usize) {
        self.event_time.merge(&other.event_time);
        self.late += other.late;
        self.late_rows.extend(other.late_rows.into_iter().map(|l| LateRows { piece, ..l }));
    }
}

impl Step {
    /// The rows that the batch becomes.
    pub fn apply(&self, batch: RecordBatch, ctx: &StepContext<'_>, notes: &mut StepNotes) -> Result<RecordBatch> {
        match self {
            Step::Map(map) => map.apply(&batch, ctx.eval),
            Step::Watermark { column, max_skew } => {
                observe(timestamps(&batch, *column)?, *max_skew, ctx.eval.now_micros, &mut notes.event_time);
                Ok(batch)
            }
            Step::DropLate(rule) => drop_late(batch, rule, ctx, notes),
            Step::AssignWindows(assign) => assign.apply(&batch),
            Step::Expand(maps) => {
                let parts = maps.iter().map(|m| m.apply(&batch, ctx.eval)).collect::<Result<Vec<_>>>()?;
                let schema = parts.first().map_or_else(|| batch.schema(), RecordBatch::schema);
                Ok(concat_batches(&schema, &parts)?)
            }
            Step::Generate(generate) => generate.apply(&batch, ctx.eval),
            Step::Probe(probe) => {
                let build =
                    ctx.build.ok_or_else(|| EngineError::internal("a join probes before its table is built"))?;
                probe.apply(&batch, build, ctx.eval)
            }
        }
    }
}

/// An event-time column. Both timestamp types count microseconds.
pub fn timestamps(batch: &RecordBatch, column: usize) -> Result<&TimestampMicrosecondArray> {
    batch
        .column(column)
        .as_primitive_opt::<TimestampMicrosecondType>()
        .ok_or_else(|| EngineError::internal(format!("column {column} is no timestamp column")))
}

/// Follows the smallest and largest event time of the rows that have one.
fn observe(times: &TimestampMicrosecondArray, max_skew: Option<i64>, now: i64, stats: &mut EventTimeStats) {
    let mut seen = EventTimeStats { count: 0, min: i64::MAX, max: i64::MIN, sum: 0, skewed: 0 };
    let limit = max_skew.map_or(i64::MAX, |skew| now.saturating_add(skew));
    let mut one = |v: i64| {
        if v > limit {
            seen.skewed += 1;
            return;
        }
        seen.count += 1;
        seen.min = seen.min.min(v);
        seen.max = seen.max.max(v);
        seen.sum += i128::from(v);
    };
    match times.nulls().filter(|n| n.null_count() > 0) {
        None => times.values().iter().for_each(|&v| one(v)),
        Some(nulls) => nulls.valid_indices().for_each(|i| one(times.value(i))),
    }
    stats.merge(&seen);
}

/// Drops rows with `column + add <= watermark`. A NULL is never late.
fn drop_late(
    batch: RecordBatch,
    rule: &CloseRule,
    ctx: &StepContext<'_>,
    notes: &mut StepNotes,
) -> Result<RecordBatch> {
    let watermark = ctx.watermark.late;
    let times = timestamps(&batch, rule.column as usize)?;
    let limit = watermark.saturating_sub(rule.add_micros);
    let late = (0..times.len()).filter(|&i| times.is_valid(i) && times.value(i) <= limit).count();
    if late == 0 {
        return Ok(batch);
    }
    notes.late += late as u64;
    let keep = BooleanArray::from_iter((0..times.len()).map(|i| Some(times.is_null(i) || times.value(i) > limit)));
    if ctx.keep_late {
        let rows = filter_record_batch(&batch, &not(&keep)?)?;
        notes.late_rows.push(LateRows { piece: 0, side: 0, watermark, rows });
    }
    Ok(filter_record_batch(&batch, &keep)?)
}

/// `Op::AssignWindows`: a copy of the row for each hopping window that contains its time.
#[derive(Debug)]
pub struct AssignWindows {
    time: usize,
    size: i64,
    slide: i64,
    offset: i64,
    schema: SchemaRef,
}

impl AssignWindows {
    /// Windows `[start, start + size)` with starts at `offset` and every `slide` from there, both ways.
    pub fn new(time: u32, size: i64, slide: i64, offset: i64, output: &Schema) -> AssignWindows {
        AssignWindows { time: time as usize, size, slide, offset, schema: arrow_schema(output) }
    }

    fn apply(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let times = timestamps(batch, self.time)?;
        let mut rows: Vec<u32> = Vec::with_capacity(times.len() * 2);
        let mut starts: Vec<i64> = Vec::with_capacity(times.len() * 2);
        for i in (0..times.len()).filter(|&i| times.is_valid(i)) {
            let at = times.value(i);
            let last = at - (at - self.offset).rem_euclid(self.slide);
            let first = at - self.size;
            // Earliest window first, as Spark lists them.
            let from = starts.len();
            let mut start = last;
            while start > first {
                rows.push(i as u32);
                starts.push(start);
                start -= self.slide;
            }
            starts[from..].reverse();
        }
        let rows = UInt32Array::from(rows);
        let mut columns = batch.columns().iter().map(|c| take(c, &rows, None)).collect::<Result<Vec<_>, _>>()?;
        let starts = TimestampMicrosecondArray::from(starts);
        columns.push(Arc::new(starts.with_timezone_opt(times.timezone())));
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }
}

/// `Op::Generate`.
#[derive(Debug)]
pub struct Generate {
    generator: Symbol,
    args: Vec<Expr>,
    outer: bool,
    schema: SchemaRef,
}

impl Generate {
    /// The generator over these arguments; the output has the input's columns and then the generated ones.
    pub fn new(generator: Symbol, args: Vec<Expr>, outer: bool, output: &Schema) -> Generate {
        Generate { generator, args, outer, schema: arrow_schema(output) }
    }

    fn apply(&self, batch: &RecordBatch, ctx: &EvalContext) -> Result<RecordBatch> {
        let args = self.args.iter().map(|a| evaluate(a, batch, ctx)).collect::<Result<Vec<ArrayRef>, _>>()?;
        let (rows, generated) = generate(&self.generator, &args, self.outer, ctx)?;
        let rows = UInt32Array::from(rows);
        let mut columns = batch.columns().iter().map(|c| take(c, &rows, None)).collect::<Result<Vec<_>, _>>()?;
        columns.extend(generated);
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }
}
