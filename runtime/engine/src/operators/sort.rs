//! `Op::Sort` and `Op::Limit` over collected rows.

use arrow::array::RecordBatch;
use arrow::compute::{SortColumn, SortOptions, concat_batches, lexsort_to_indices, take_record_batch};
use arrow::datatypes::SchemaRef;
use arrow::row::{RowConverter, SortField};
use ssql_ir::{Schema, SortKey};
use ssql_stdlib::{arrow_schema, canonical_floats};

use crate::error::Result;

/// Positions of a batch's rows in the order of these keys; equal rows keep their order.
pub fn sort_indices(batch: &RecordBatch, keys: &[SortKey]) -> Result<arrow::array::UInt32Array> {
    let options = |k: &SortKey| SortOptions { descending: k.descending, nulls_first: k.nulls_first };
    // Floats in Spark's order: -0.0 equals 0.0 and NaN is the largest, which is what Arrow's total order gives once
    // they are normalised.
    if let [key] = keys {
        let values = canonical_floats(batch.column(key.column as usize))?;
        if !values.data_type().is_nested() {
            // One plain column: a stable sort by Arrow's comparison.
            let column = SortColumn { values, options: Some(options(key)) };
            let order = std::sync::Arc::new(arrow::array::UInt32Array::from_iter_values(0..batch.num_rows() as u32));
            let tie = SortColumn { values: order, options: None };
            return Ok(lexsort_to_indices(&[column, tie], None)?);
        }
    }
    let columns =
        keys.iter().map(|k| canonical_floats(batch.column(k.column as usize))).collect::<Result<Vec<_>, _>>()?;
    let fields = keys
        .iter()
        .zip(&columns)
        .map(|(k, c)| SortField::new_with_options(c.data_type().clone(), options(k)))
        .collect();
    let rows = RowConverter::new(fields)?.convert_columns(&columns)?;
    let mut order: Vec<u32> = (0..batch.num_rows() as u32).collect();
    order.sort_by(|&a, &b| rows.row(a as usize).cmp(&rows.row(b as usize)));
    Ok(order.into())
}

/// `Op::Sort`.
pub struct Sort {
    keys: Vec<SortKey>,
    schema: SchemaRef,
}

impl Sort {
    /// Sorts rows of this schema.
    pub fn new(keys: &[SortKey], schema: &Schema) -> Sort {
        Sort { keys: keys.to_vec(), schema: arrow_schema(schema) }
    }

    /// All rows in order, as one batch.
    pub fn apply(&self, batches: &[RecordBatch]) -> Result<Vec<RecordBatch>> {
        let all = concat_batches(&self.schema, batches)?;
        if self.keys.is_empty() || all.num_rows() < 2 {
            return Ok(vec![all]);
        }
        Ok(vec![take_record_batch(&all, &sort_indices(&all, &self.keys)?)?])
    }
}

/// `Op::Limit`. On a stream in APPEND the count goes on over micro-batches, and is part of the state.
pub struct Limit {
    limit: Option<u64>,
    offset: u64,
    /// The input is the whole table each time: count from the start.
    once: bool,
    seen: u64,
}

impl Limit {
    /// Rows `offset .. offset + limit`.
    pub fn new(limit: Option<u64>, offset: u64, once: bool) -> Limit {
        Limit { limit, offset, once, seen: 0 }
    }

    /// The rows that are within the limit.
    pub fn apply(&mut self, batches: &[RecordBatch]) -> Vec<RecordBatch> {
        if self.once {
            self.seen = 0;
        }
        let end = self.limit.map_or(u64::MAX, |n| self.offset.saturating_add(n));
        let mut out = Vec::new();
        for batch in batches {
            let rows = batch.num_rows() as u64;
            let from = self.offset.saturating_sub(self.seen).min(rows);
            let to = end.saturating_sub(self.seen).min(rows);
            if from < to {
                out.push(batch.slice(from as usize, (to - from) as usize));
            }
            self.seen += rows;
        }
        out
    }

    /// Rows seen so far, for the checkpoint.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Takes up where a checkpoint left off.
    pub fn restore(&mut self, seen: u64) {
        self.seen = seen;
    }
}
