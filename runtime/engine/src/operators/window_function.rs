//! `Op::WindowFunction`: analytic functions over bounded input.
//!
//! All rows are put in order of partition and order key once. Ranks follow from a row's place, `lag`, `lead` and the
//! functions that pick a row of the frame are gathers, and aggregates follow the frame from row to row: a frame that
//! grows at its end takes in the new rows only, equal frames are computed once, and any other is computed anew.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::{concat, concat_batches, take, take_record_batch};
use arrow::datatypes::SchemaRef;
use ssql_ir::{AggArg, AggCall, DataType, Frame, FrameBound, Literal, Schema, SortKey, WindowCall};
use ssql_stdlib::aggregate::{Aggregate, SKIP};
use ssql_stdlib::{aggregate, arrow_schema, literal_array};

use crate::connector::Domain;
use crate::error::{EngineError, Result};
use crate::operators::aggregate::arguments;
use crate::operators::keys::KeyRows;
use crate::operators::session::slab::StateSlab;
use crate::operators::sort::sort_indices;
use crate::operators::window_function::frame::{Order, RangeKey, frames};
use crate::operators::window_function::ranking::Valued;

mod frame;
mod ranking;

/// Results that are held as aggregate state before they become values.
const STATES: u32 = 1 << 12;

/// What a call computes.
#[derive(Debug)]
enum Function {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    Ntile {
        buckets: usize,
    },
    /// Negative: `lag`.
    Offset {
        by: i64,
        ignore_nulls: bool,
    },
    /// `n` from 0.
    Nth {
        n: usize,
        ignore_nulls: bool,
        frame: Frame,
    },
    Last {
        ignore_nulls: bool,
        frame: Frame,
    },
    Aggregate {
        agg: Arc<dyn Aggregate>,
        frame: Frame,
    },
}

/// Calls that share partitioning and order.
#[derive(Debug)]
pub struct WindowFunctions {
    partition: Vec<usize>,
    order: Vec<SortKey>,
    calls: Vec<(AggCall, Function)>,
    partition_rows: Option<KeyRows>,
    order_rows: Option<KeyRows>,
    input: SchemaRef,
    output: SchemaRef,
}

impl WindowFunctions {
    /// Instantiates the operator. Errors where a constant argument is out of range (`ntile(0)`).
    pub fn new(
        partition: &[u32],
        order: &[SortKey],
        calls: &[WindowCall],
        input: &Schema,
        output: &Schema,
    ) -> Result<WindowFunctions> {
        let key_rows = |columns: &mut dyn Iterator<Item = u32>| {
            let types: Vec<DataType> = columns.map(|c| input.fields[c as usize].data_type.clone()).collect();
            if types.is_empty() { Ok(None) } else { KeyRows::new(&types).map(Some) }
        };
        Ok(WindowFunctions {
            partition: partition.iter().map(|&c| c as usize).collect(),
            order: order.to_vec(),
            calls: calls.iter().map(|c| Ok((c.call.clone(), Function::new(c)?))).collect::<Result<_>>()?,
            partition_rows: key_rows(&mut partition.iter().copied())?,
            order_rows: key_rows(&mut order.iter().map(|k| k.column))?,
            input: arrow_schema(input),
            output: arrow_schema(output),
        })
    }

    /// All rows in order of partition and order key, with the results behind their columns.
    pub fn apply(&self, batches: &[RecordBatch]) -> Result<Vec<RecordBatch>> {
        let mut rows = concat_batches(&self.input, batches)?;
        let ascending = |&column: &usize| SortKey { column: column as u32, descending: false, nulls_first: true };
        let keys: Vec<SortKey> = self.partition.iter().map(ascending).chain(self.order.iter().copied()).collect();
        if !keys.is_empty() && rows.num_rows() > 1 {
            rows = take_record_batch(&rows, &sort_indices(&rows, &keys)?)?;
        }
        let order = self.order(&rows)?;
        let mut columns = rows.columns().to_vec();
        for (call, function) in &self.calls {
            columns.push(self.compute(call, function, &rows, &order)?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        Ok(vec![RecordBatch::try_new_with_options(Arc::clone(&self.output), columns, &options)?])
    }

    fn order(&self, rows: &RecordBatch) -> Result<Order> {
        let encode = |keys: &Option<KeyRows>, columns: Vec<usize>| {
            let columns: Vec<ArrayRef> = columns.into_iter().map(|c| Arc::clone(rows.column(c))).collect();
            keys.as_ref().map(|k| k.rows(&columns)).transpose()
        };
        let partitions = encode(&self.partition_rows, self.partition.clone())?;
        let peers = encode(&self.order_rows, self.order.iter().map(|k| k.column as usize).collect())?;
        let differs =
            |keys: &Option<arrow::row::Rows>, row: usize| keys.as_ref().is_some_and(|k| k.row(row) != k.row(row - 1));
        Ok(Order::new(rows.num_rows(), |row| differs(&partitions, row), |row| differs(&peers, row)))
    }

    fn compute(&self, call: &AggCall, function: &Function, rows: &RecordBatch, order: &Order) -> Result<ArrayRef> {
        match function {
            Function::RowNumber => Ok(ranking::row_number(order)),
            Function::Rank => Ok(ranking::rank(order)),
            Function::DenseRank => Ok(ranking::dense_rank(order)),
            Function::PercentRank => Ok(ranking::percent_rank(order)),
            Function::CumeDist => Ok(ranking::cume_dist(order)),
            Function::Ntile { buckets } => Ok(ranking::ntile(order, *buckets)),
            Function::Offset { by, ignore_nulls } => {
                let value = argument(call, 0, rows)?;
                let default = if call.args.len() > 2 { Some(argument(call, 2, rows)?) } else { None };
                ranking::offset(order, &value, *by, default.as_ref(), *ignore_nulls)
            }
            Function::Nth { n, ignore_nulls, frame } => {
                let value = argument(call, 0, rows)?;
                let valued = ignore_nulls.then(|| Valued::new(&value));
                self.pick(&value, rows, order, frame, |f| match &valued {
                    Some(valued) => valued.nth(f.start, f.end, *n),
                    None => f.start.checked_add(*n).filter(|&row| row < f.end).map(|row| row as u32),
                })
            }
            Function::Last { ignore_nulls, frame } => {
                let value = argument(call, 0, rows)?;
                let valued = ignore_nulls.then(|| Valued::new(&value));
                self.pick(&value, rows, order, frame, |f| match &valued {
                    Some(valued) => valued.last(f.start, f.end),
                    None => (!f.is_empty()).then(|| f.end as u32 - 1),
                })
            }
            Function::Aggregate { agg, frame } => {
                let frames = self.frames(rows, order, frame)?;
                aggregate_frames(call, agg, rows, &frames)
            }
        }
    }

    fn frames(&self, rows: &RecordBatch, order: &Order, frame: &Frame) -> Result<Vec<Range<usize>>> {
        let moved = |b: &FrameBound| matches!(b, FrameBound::Preceding(_) | FrameBound::Following(_));
        let key = match self.order.as_slice() {
            [key] if !frame.rows && (moved(&frame.start) || moved(&frame.end)) => {
                Some(RangeKey::new(rows.column(key.column as usize), key.descending)?)
            }
            _ => None,
        };
        frames(frame, order, key.as_ref())
    }

    /// The value in the row that `pick` finds in each row's frame.
    fn pick(
        &self,
        value: &ArrayRef,
        rows: &RecordBatch,
        order: &Order,
        frame: &Frame,
        pick: impl Fn(&Range<usize>) -> Option<u32>,
    ) -> Result<ArrayRef> {
        let places: UInt32Array = self.frames(rows, order, frame)?.iter().map(pick).collect();
        Ok(take(value, &places, None)?)
    }
}

impl Function {
    fn new(window: &WindowCall) -> Result<Function> {
        let WindowCall { call, frame } = window;
        let frame = frame.clone();
        // `first(x, true)` is an older way to say IGNORE NULLS.
        let flag = matches!(call.args.get(1), Some(AggArg::Literal(Literal::Boolean(true), _)));
        let ignore_nulls = call.ignore_nulls || flag;
        Ok(match &*call.function {
            "row_number" => Function::RowNumber,
            "rank" => Function::Rank,
            "dense_rank" => Function::DenseRank,
            "percent_rank" => Function::PercentRank,
            "cume_dist" => Function::CumeDist,
            "ntile" => Function::Ntile { buckets: positive(call, 0)? },
            "lag" => Function::Offset { by: constant(call, 1)?.saturating_neg(), ignore_nulls },
            "lead" => Function::Offset { by: constant(call, 1)?, ignore_nulls },
            "nth_value" => Function::Nth { n: positive(call, 1)? - 1, ignore_nulls, frame },
            "first" | "first_value" | "any_value" if call.filter.is_none() => {
                Function::Nth { n: 0, ignore_nulls, frame }
            }
            "last" | "last_value" if call.filter.is_none() => Function::Last { ignore_nulls, frame },
            _ => Function::Aggregate { agg: aggregate::aggregate(call)?, frame },
        })
    }
}

/// The integer constant in that place, 1 if it is left out.
fn constant(call: &AggCall, place: usize) -> Result<i64> {
    match call.args.get(place) {
        None => Ok(1),
        Some(AggArg::Literal(Literal::Int(n), _)) => Ok(*n),
        Some(_) => Err(EngineError::new(
            "DATATYPE_MISMATCH.NON_FOLDABLE_INPUT",
            Domain::User,
            format!("argument {} of `{}` must be a constant that is not NULL", place + 1, call.function),
        )),
    }
}

fn positive(call: &AggCall, place: usize) -> Result<usize> {
    let n = constant(call, place)?;
    usize::try_from(n).ok().filter(|&n| n > 0).ok_or_else(|| {
        EngineError::new(
            "DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE",
            Domain::User,
            format!("argument {} of `{}` must be greater than 0, but is {n}", place + 1, call.function),
        )
    })
}

/// An argument of a call over all rows.
fn argument(call: &AggCall, place: usize, rows: &RecordBatch) -> Result<ArrayRef> {
    match call.args.get(place) {
        Some(AggArg::Column(c)) => Ok(Arc::clone(rows.column(*c as usize))),
        Some(AggArg::Literal(value, data_type)) => Ok(literal_array(value, data_type, rows.num_rows())),
        None => Err(EngineError::internal(format!("`{}` lacks argument {}", call.function, place + 1))),
    }
}

/// An aggregate over the frame of each row.
fn aggregate_frames(
    call: &AggCall,
    agg: &Arc<dyn Aggregate>,
    rows: &RecordBatch,
    frames: &[Range<usize>],
) -> Result<ArrayRef> {
    let args = arguments(call, rows);
    let groups: Vec<u32> = match call.filter {
        None => vec![0; rows.num_rows()],
        Some(filter) => {
            let mask = rows.column(filter as usize).as_boolean();
            let group = |row: usize| if mask.is_valid(row) && mask.value(row) { 0 } else { SKIP };
            (0..rows.num_rows()).map(group).collect()
        }
    };
    let aggs = [Arc::clone(agg)];
    // The state of the frame in hand, and copies of it, one for each different frame, until they are finished together.
    let mut running = StateSlab::new(&aggs);
    let row = running.take();
    let mut copies = StateSlab::new(&aggs);
    let mut n_copies = 0;
    let mut parts: Vec<ArrayRef> = Vec::new();
    let mut results: Vec<u32> = Vec::with_capacity(frames.len());
    let mut n_results = 0;
    let mut current: Option<Range<usize>> = None;
    let mut bytes = Vec::new();
    for frame in frames {
        if current.as_ref() != Some(frame) {
            let from = match &current {
                Some(before) if before.start == frame.start && before.end <= frame.end => before.end,
                _ => {
                    running.reset(row);
                    frame.start
                }
            };
            if from < frame.end {
                let args: Vec<ArrayRef> = args.iter().map(|a| a.slice(from, frame.end - from)).collect();
                agg.update(&mut running.state(0), &groups[from..frame.end], &args)?;
            }
            current = Some(frame.clone());
            if n_copies == STATES {
                parts.push(finish(agg, &mut copies, n_copies)?);
                copies = StateSlab::new(&aggs);
                n_copies = 0;
            }
            bytes.clear();
            agg.encode(&running.state(0), row, &mut bytes);
            let copy = copies.take();
            agg.decode(&mut copies.state(0), copy, &mut &bytes[..])
                .map_err(|e| EngineError::internal(format!("a copied state is not the same: {e}")))?;
            n_copies += 1;
            n_results += 1;
        }
        results.push(n_results - 1);
    }
    parts.push(finish(agg, &mut copies, n_copies)?);
    let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
    let values = concat(&parts)?;
    if n_results as usize == results.len() { Ok(values) } else { Ok(take(&values, &UInt32Array::from(results), None)?) }
}

fn finish(agg: &Arc<dyn Aggregate>, states: &mut StateSlab, n: u32) -> Result<ArrayRef> {
    let rows: Vec<u32> = (0..n).collect();
    Ok(agg.finish(&states.state(0), &rows)?)
}

#[cfg(test)]
mod tests;
