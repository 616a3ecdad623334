//! `Op::StreamJoin`: the symmetric hash join of two streams.
//!
//! Within a micro-batch the left rows are first joined with the right rows kept so far, and kept; then the right rows
//! are joined with the left rows kept, those of this batch among them. So each pair is met once. A row is kept until it
//! expires; a row of an outer side that has found no match by then is shown without one. A row may expire in the batch
//! that brought it, after it was joined.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, StringViewArray, TimestampMicrosecondArray,
    UInt32Array, new_null_array,
};
use arrow::buffer::NullBuffer;
use arrow::compute::{filter_record_batch, not, take};
use arrow::datatypes::SchemaRef;
use arrow::row::{RowConverter, SortField};
use ssql_ir::{CloseRule, DataType, Expr, Field, JoinKind, JoinSide, Schema};
use ssql_stdlib::{EvalContext, arrow_schema, filter_mask};

use crate::connector::Domain;
use crate::error::{EngineError, Result};
use crate::late::LateRows;
use crate::operators::codec::Reader;
use crate::operators::keys::KeyRows;
use crate::operators::step::timestamps;
use crate::operators::stream_join::condition::Condition;
use crate::operators::stream_join::kept::{ADDED, DROPPED, KeptRows, MATCHED, NEVER};
use crate::watermark::BatchWatermark;

mod condition;
mod kept;

/// Candidate pairs looked at together, and output rows of a batch.
const PAIRS: usize = 1 << 14;
const LEFT: usize = 0;

/// One input of the join.
#[derive(Debug)]
struct Side {
    keys: Vec<usize>,
    expire: Option<CloseRule>,
    late: Option<usize>,
    /// Its unmatched rows are shown.
    outer: bool,
    /// It matters whether a kept row has found a match.
    tracked: bool,
    converter: RowConverter,
    schema: SchemaRef,
    kept: KeptRows,
}

/// A row of the batch in hand and a kept row of the other side that might match.
#[derive(Debug, Default)]
struct Pairs {
    rows: Vec<u32>,
    slots: Vec<u32>,
}

/// A join of two streams with the rows it keeps.
#[derive(Debug)]
pub struct StreamJoin {
    kind: JoinKind,
    sides: [Side; 2],
    condition: Condition,
    keys: KeyRows,
    pairs_schema: SchemaRef,
    output: SchemaRef,
    late: u64,
    /// Where late rows are kept, those of the last batch.
    late_rows: Option<Vec<LateRows>>,
    removed: u64,
}

impl StreamJoin {
    /// Instantiates the operator. `residual` is over left columns, then right columns.
    pub fn new(
        kind: JoinKind,
        left: &JoinSide,
        right: &JoinSide,
        residual: Option<Expr>,
        left_schema: &Schema,
        right_schema: &Schema,
        output: &Schema,
    ) -> Result<StreamJoin> {
        let (left_outer, right_outer) = match kind {
            JoinKind::Inner | JoinKind::LeftSemi => (false, false),
            JoinKind::Left => (true, false),
            JoinKind::Right => (false, true),
            JoinKind::Full => (true, true),
            JoinKind::LeftAnti | JoinKind::NullAwareAnti | JoinKind::Existence => {
                return Err(EngineError::internal(format!(
                    "two streams have no {kind:?} join; the planner refuses it"
                )));
            }
        };
        if left.keys.is_empty() {
            return Err(EngineError::internal("a join of two streams has no keys; the planner refuses it"));
        }
        let types: Vec<DataType> =
            left.keys.iter().map(|&k| left_schema.fields[k as usize].data_type.clone()).collect();
        let pairs = left_schema.fields.iter().chain(&right_schema.fields);
        let pairs = pairs.map(|f| Field::new(f.name.clone(), f.data_type.clone(), true)).collect();
        let semi = kind == JoinKind::LeftSemi;
        Ok(StreamJoin {
            kind,
            condition: Condition::split(residual, left_schema.len() as u32),
            sides: [
                Side::new(left, left_schema, left_outer, left_outer || semi)?,
                Side::new(right, right_schema, right_outer, right_outer)?,
            ],
            keys: KeyRows::new(&types)?,
            pairs_schema: arrow_schema(&Schema::new(pairs)),
            output: arrow_schema(output),
            late: 0,
            late_rows: None,
            removed: 0,
        })
    }

    /// Joins the rows of a micro-batch: all pairs that have at least one new row, each once (for a semi join: the left
    /// rows that have found their first match), and the rows of outer sides that their own side's condition rules out.
    pub fn apply(
        &mut self,
        left: &[RecordBatch],
        right: &[RecordBatch],
        wm: BatchWatermark,
        ctx: &EvalContext,
    ) -> Result<Vec<RecordBatch>> {
        self.late = 0;
        self.removed = 0;
        self.sides.iter_mut().for_each(|s| s.kept.begin());
        let mut out = Vec::new();
        for (side, batches) in [left, right].into_iter().enumerate() {
            for batch in batches {
                self.take_in(side, batch, wm, ctx, &mut out)?;
            }
        }
        Ok(out)
    }

    /// Joins a batch of one side with the rows kept of the other, and keeps its rows.
    fn take_in(
        &mut self,
        side: usize,
        batch: &RecordBatch,
        wm: BatchWatermark,
        ctx: &EvalContext,
        out: &mut Vec<RecordBatch>,
    ) -> Result<()> {
        let batch = self.on_time(side, batch.clone(), wm.late)?;
        let batch = self.possible(side, batch, ctx, out)?;
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let own = &self.sides[side];
        let key_columns: Vec<ArrayRef> = own.keys.iter().map(|&k| Arc::clone(batch.column(k))).collect();
        let nulls = nulls_of(&key_columns);
        let no_match = |row: usize| nulls.as_ref().is_some_and(|n| n.is_null(row));
        let keys = self.keys.rows(&key_columns)?;
        let mut matched = vec![false; batch.num_rows()];
        // Kept left rows that a semi join has shown now.
        let mut shown = Vec::new();

        let mut pairs = Pairs::default();
        for row in (0..batch.num_rows()).filter(|&row| !no_match(row)) {
            let mut at = 0;
            loop {
                let slots = &self.sides[1 - side].kept.with_key(keys.row(row).data())[at..];
                let n = slots.len().min(PAIRS - pairs.slots.len());
                pairs.slots.extend_from_slice(&slots[..n]);
                pairs.rows.resize(pairs.slots.len(), row as u32);
                at += n;
                let done = n == slots.len();
                if pairs.slots.len() == PAIRS {
                    self.settle(side, &batch, &mut pairs, &mut matched, &mut shown, ctx, out)?;
                }
                if done {
                    break;
                }
            }
        }
        self.settle(side, &batch, &mut pairs, &mut matched, &mut shown, ctx, out)?;

        if self.kind == JoinKind::LeftSemi && side == LEFT && matched.contains(&true) {
            let columns = filter_record_batch(&batch, &BooleanArray::from(matched.clone()))?.columns().to_vec();
            out.push(RecordBatch::try_new(Arc::clone(&self.output), columns)?);
        }
        for slot in shown {
            self.sides[LEFT].kept.drop_row(slot);
        }

        let semi = self.kind == JoinKind::LeftSemi;
        let own = &mut self.sides[side];
        let rows = own.converter.convert_columns(batch.columns())?;
        let expiries = own.expiries(&batch)?;
        for (row, &matched) in matched.iter().enumerate() {
            let key = (!no_match(row)).then(|| keys.row(row).data());
            let expiry = expiries.as_ref().map_or(NEVER, |e| e[row]);
            let to_show = own.outer && !matched;
            let needless = match side {
                LEFT => semi && matched,
                // The left rows have been here already, so a right row that expires now has nothing to wait for.
                _ => expiry <= wm.evict,
            };
            if to_show || (key.is_some() && !needless) {
                own.kept.insert(key, rows.row(row).data(), expiry, matched && own.tracked);
            }
        }
        Ok(())
    }

    /// The rows that are not late; the others are counted.
    fn on_time(&mut self, side: usize, batch: RecordBatch, watermark: i64) -> Result<RecordBatch> {
        let Some(column) = self.sides[side].late else { return Ok(batch) };
        let times = timestamps(&batch, column)?;
        let keep =
            BooleanArray::from_iter((0..times.len()).map(|i| Some(times.is_null(i) || times.value(i) > watermark)));
        let late = batch.num_rows() - keep.true_count();
        if late == 0 {
            return Ok(batch);
        }
        self.late += late as u64;
        if let Some(kept) = &mut self.late_rows {
            let rows = filter_record_batch(&batch, &not(&keep)?)?;
            kept.push(LateRows { piece: kept.len(), side, watermark, rows });
        }
        Ok(filter_record_batch(&batch, &keep)?)
    }

    /// The rows that pass their own side's condition; the others of an outer side are shown unmatched at once.
    fn possible(
        &mut self,
        side: usize,
        batch: RecordBatch,
        ctx: &EvalContext,
        out: &mut Vec<RecordBatch>,
    ) -> Result<RecordBatch> {
        let Some(condition) = &self.condition.own[side] else { return Ok(batch) };
        if batch.num_rows() == 0 {
            return Ok(batch);
        }
        let mask = filter_mask(condition, &batch, ctx)?;
        if mask.true_count() == batch.num_rows() {
            return Ok(batch);
        }
        if self.sides[side].outer {
            let failed = filter_record_batch(&batch, &not(&mask)?)?;
            out.push(self.unmatched(side, failed.columns().to_vec(), failed.num_rows())?);
        }
        Ok(filter_record_batch(&batch, &mask)?)
    }

    /// Decides the pairs and puts out those that match.
    #[expect(clippy::too_many_arguments, reason = "the state of one pass over a batch")]
    fn settle(
        &mut self,
        side: usize,
        batch: &RecordBatch,
        pairs: &mut Pairs,
        matched: &mut [bool],
        shown: &mut Vec<u32>,
        ctx: &EvalContext,
        out: &mut Vec<RecordBatch>,
    ) -> Result<()> {
        let Pairs { rows, mut slots } = std::mem::take(pairs);
        if rows.is_empty() {
            return Ok(());
        }
        let semi = self.kind == JoinKind::LeftSemi;
        let mut rows = UInt32Array::from(rows);
        let mut columns = Vec::new();
        if !semi || self.condition.both.is_some() {
            columns = self.columns_of(side, batch, &rows, &slots)?;
        }
        if let Some(condition) = &self.condition.both {
            let both = RecordBatch::try_new(Arc::clone(&self.pairs_schema), columns)?;
            let mask = filter_mask(condition, &both, ctx)?;
            rows = mask.values().set_indices().map(|i| rows.value(i)).collect::<Vec<_>>().into();
            slots = mask.values().set_indices().map(|i| slots[i]).collect();
            columns = if semi { Vec::new() } else { filter_record_batch(&both, &mask)?.columns().to_vec() };
        }
        if rows.is_empty() {
            return Ok(());
        }
        rows.values().iter().for_each(|&row| matched[row as usize] = true);
        let other = &mut self.sides[1 - side];
        if semi {
            if side == LEFT {
                return Ok(());
            }
            slots.retain(|&slot| other.kept.set_matched(slot));
            if !slots.is_empty() {
                let columns = other.decode(slots.iter().map(|&s| &*other.kept.get(s).row))?;
                out.push(RecordBatch::try_new(Arc::clone(&self.output), columns)?);
                shown.extend(slots);
            }
            return Ok(());
        }
        if other.tracked {
            slots.iter().for_each(|&slot| {
                other.kept.set_matched(slot);
            });
        }
        out.push(RecordBatch::try_new(Arc::clone(&self.output), columns)?);
        Ok(())
    }

    /// Left columns and then right columns of these pairs.
    fn columns_of(&self, side: usize, batch: &RecordBatch, rows: &UInt32Array, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        let other = &self.sides[1 - side];
        let theirs = other.decode(slots.iter().map(|&s| &*other.kept.get(s).row))?;
        let ours = batch.columns().iter().map(|c| take(c, rows, None)).collect::<Result<Vec<_>, _>>()?;
        let (mut columns, behind) = if side == LEFT { (ours, theirs) } else { (theirs, ours) };
        columns.extend(behind);
        Ok(columns)
    }

    /// Output rows of one side without a match.
    fn unmatched(&self, side: usize, ours: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
        let theirs = self.sides[1 - side].schema.fields().iter().map(|f| new_null_array(f.data_type(), rows)).collect();
        let (mut columns, behind): (Vec<ArrayRef>, Vec<ArrayRef>) =
            if side == LEFT { (ours, theirs) } else { (theirs, ours) };
        columns.extend(behind);
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.output), columns, &options)?)
    }

    /// Ends the micro-batch: drops the rows that expire, gives those of outer sides that never matched, and writes what
    /// the changelog must hold if `changelog` is asked for.
    pub fn finish(&mut self, wm: BatchWatermark, changelog: Option<&mut Vec<u8>>) -> Result<Vec<RecordBatch>> {
        if let Some(log) = changelog {
            log.extend_from_slice(&wm.evict.to_le_bytes());
            for (side, own) in self.sides.iter().enumerate() {
                own.kept.changes(side as u8, wm.evict, log);
            }
        }
        let mut out = Vec::new();
        for side in 0..self.sides.len() {
            let own = &mut self.sides[side];
            let mut expired = own.kept.expire(wm.evict);
            self.removed += expired.len() as u64;
            if !own.outer {
                continue;
            }
            expired.retain(|kept| !kept.matched);
            for part in expired.chunks(PAIRS) {
                let columns = self.sides[side].decode(part.iter().map(|k| &*k.row))?;
                out.push(self.unmatched(side, columns, part.len())?);
            }
        }
        Ok(out)
    }

    /// Late rows dropped by the last batch.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Whether late rows are kept from now on, for [`StreamJoin::take_late_rows`].
    pub fn keep_late(&mut self, keep: bool) {
        self.late_rows = keep.then(Vec::new);
    }

    /// The late rows of the last batch, where they are kept.
    pub fn take_late_rows(&mut self) -> Vec<LateRows> {
        self.late_rows.take().unwrap_or_default()
    }

    /// The watermark that operators behind the join go by when the join goes by `wm`: as kept rows may still come out
    /// after they have waited, it is held back by that time. A side that expires by one of its keys does not hold it
    /// back: its rows only ever meet rows of the same time.
    pub fn output_watermark(&self, wm: i64) -> i64 {
        let held = |side: &Side| match side.expire {
            Some(rule) if !side.keys.contains(&(rule.column as usize)) => wm.saturating_sub(rule.add_micros),
            _ => wm,
        };
        self.sides.iter().map(held).fold(wm, i64::min)
    }

    /// The whole state, for a snapshot.
    pub fn snapshot(&mut self, watermark: i64) -> Vec<u8> {
        let mut out = watermark.to_le_bytes().to_vec();
        for (side, own) in self.sides.iter().enumerate() {
            own.kept.all(side as u8, &mut out);
        }
        out
    }

    /// The rows kept: their side, whether they have found a match, when they go, and their columns as `left.name` or
    /// `right.name`.
    pub fn rows(&mut self, left: &Schema, right: &Schema) -> Result<Vec<RecordBatch>> {
        let mut fields = vec![
            Field::new("side", DataType::String, false),
            Field::new("matched", DataType::Boolean, false),
            Field::new("expires", DataType::Timestamp, true),
        ];
        for (side, schema) in [("left", left), ("right", right)] {
            fields.extend(
                schema.fields.iter().map(|f| Field::new(format!("{side}.{}", f.name), f.data_type.clone(), true)),
            );
        }
        let schema = arrow_schema(&Schema::new(fields));
        let mut out = Vec::new();
        for (side, own) in self.sides.iter().enumerate() {
            let kept = own.kept.in_order();
            for part in kept.chunks(PAIRS) {
                let names = vec![["left", "right"][side]; part.len()];
                let times = part.iter().map(|k| Some(k.expiry()).filter(|&t| t != NEVER));
                let times = TimestampMicrosecondArray::from_iter(times);
                let mut columns: Vec<ArrayRef> = vec![
                    Arc::new(StringViewArray::from_iter_values(names)),
                    Arc::new(BooleanArray::from_iter(part.iter().map(|k| Some(k.matched)))),
                    Arc::new(times.with_data_type(schema.field(2).data_type().clone())),
                ];
                let values = own.decode(part.iter().map(|k| &*k.row))?;
                let first = columns.len() + if side == 0 { 0 } else { left.len() };
                for (i, field) in schema.fields().iter().enumerate().skip(columns.len()) {
                    columns.push(match i.checked_sub(first).and_then(|i| values.get(i)) {
                        Some(values) => Arc::clone(values),
                        None => new_null_array(field.data_type(), part.len()),
                    });
                }
                out.push(RecordBatch::try_new(Arc::clone(&schema), columns)?);
            }
        }
        Ok(out)
    }

    /// Takes up a snapshot or the changes of one batch.
    pub fn restore(&mut self, bytes: &[u8]) -> Result<()> {
        let damaged = |what: &str| {
            EngineError::new("CHECKPOINT_CORRUPT", Domain::External, format!("the join state is damaged: {what}"))
        };
        let mut input = Reader::new(bytes);
        let watermark = input.i64().ok_or_else(|| damaged("it has no watermark"))?;
        let mut added: [Vec<(u64, bool, &[u8])>; 2] = [Vec::new(), Vec::new()];
        while let Some(record) = input.u8() {
            let side = input.u8().map(usize::from).filter(|&s| s < 2);
            let side = side.ok_or_else(|| damaged("a record belongs to no side"))?;
            let number = input.i64().ok_or_else(|| damaged("a record is cut off"))? as u64;
            let kept = &mut self.sides[side].kept;
            match record {
                ADDED => {
                    let matched = input.u8().ok_or_else(|| damaged("a row is cut off"))? != 0;
                    let row = input.bytes().flatten().ok_or_else(|| damaged("a row is cut off"))?;
                    added[side].push((number, matched, row));
                }
                MATCHED => {
                    if let Some(slot) = kept.slot_of(number) {
                        kept.set_matched(slot);
                    }
                }
                DROPPED => {
                    if let Some(slot) = kept.slot_of(number) {
                        kept.drop_row(slot);
                    }
                }
                _ => return Err(damaged("it has a record of an unknown kind")),
            }
        }
        for (own, added) in self.sides.iter_mut().zip(added) {
            // Keys and expiries follow from the rows.
            for part in added.chunks(PAIRS) {
                let columns = own.decode(part.iter().map(|(_, _, row)| *row))?;
                let batch = RecordBatch::try_new(Arc::clone(&own.schema), columns)?;
                let key_columns: Vec<ArrayRef> = own.keys.iter().map(|&k| Arc::clone(batch.column(k))).collect();
                let (keys, nulls) = (self.keys.rows(&key_columns)?, nulls_of(&key_columns));
                let expiries = own.expiries(&batch)?;
                for (i, &(number, matched, row)) in part.iter().enumerate() {
                    let matches_none = nulls.as_ref().is_some_and(|n| n.is_null(i));
                    let key = (!matches_none).then(|| keys.row(i).data());
                    own.kept.restore(number, key, row, expiries.as_ref().map_or(NEVER, |e| e[i]), matched);
                }
            }
            own.kept.expire(watermark);
        }
        Ok(())
    }

    /// (rows kept, added by the last batch, removed by it, memory in bytes).
    pub fn metrics(&self) -> (u64, u64, u64, u64) {
        let [left, right] = &self.sides;
        let rows = left.kept.len() + right.kept.len();
        let memory = left.kept.memory_bytes() + right.kept.memory_bytes();
        (rows as u64, left.kept.n_added() + right.kept.n_added(), self.removed, memory as u64)
    }
}

impl Side {
    fn new(side: &JoinSide, schema: &Schema, outer: bool, tracked: bool) -> Result<Side> {
        let schema = arrow_schema(schema);
        let fields = schema.fields().iter().map(|f| SortField::new(f.data_type().clone())).collect();
        Ok(Side {
            keys: side.keys.iter().map(|&k| k as usize).collect(),
            expire: side.expire,
            late: side.late.map(|c| c as usize),
            outer,
            tracked,
            converter: RowConverter::new(fields)
                .map_err(|e| EngineError::internal(format!("rows of a join cannot be kept: {e}")))?,
            schema,
            kept: KeptRows::default(),
        })
    }

    /// When each row of the batch expires; `None`: none ever does. A row without a time never does.
    fn expiries(&self, batch: &RecordBatch) -> Result<Option<Vec<i64>>> {
        let Some(rule) = self.expire else { return Ok(None) };
        let times = timestamps(batch, rule.column as usize)?;
        Ok(Some(times.iter().map(|t| t.map_or(NEVER, |t| t.saturating_add(rule.add_micros))).collect()))
    }

    /// The columns of these kept rows.
    fn decode<'a>(&self, rows: impl Iterator<Item = &'a [u8]>) -> Result<Vec<ArrayRef>> {
        let parser = self.converter.parser();
        let rows: Vec<_> = rows.map(|r| parser.parse(r)).collect();
        Ok(self.converter.convert_rows(rows)?)
    }
}

/// Rows with a NULL in their key: they match nothing.
fn nulls_of(keys: &[ArrayRef]) -> Option<NullBuffer> {
    keys.iter()
        .fold(None, |all: Option<NullBuffer>, column| NullBuffer::union(all.as_ref(), column.logical_nulls().as_ref()))
}

#[cfg(test)]
mod tests;
