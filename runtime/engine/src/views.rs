//! Arrow batches as the kernels see them, and back. The only place of the engine where raw pointers are made.
#![allow(unsafe_code)]

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, UInt32Array, make_array};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::compute::take;
use arrow::datatypes::DataType as ArrowType;
use ssql_abi::{AggregateKernel, ColumnView, GroupTable, KeyKind, MapKernel, OutputColumn, hash_columns};
use ssql_ir::{DataType, Expr, ExprKind};
use ssql_stdlib::arrow_type;

use crate::error::{EngineError, Result};

/// One [`ColumnView`] per column of a batch, and what they point into.
pub struct Views<'a> {
    /// The views, in column order.
    pub columns: Vec<ColumnView>,
    /// Lists of data-buffer addresses that string views' `buffers` point at.
    _buffers: Vec<Vec<*const u8>>,
    /// Keeps the arrays borrowed for as long as the views live.
    _arrays: std::marker::PhantomData<&'a [ArrayRef]>,
}

impl<'a> Views<'a> {
    /// Views of these columns. A nested column gets a null `values`: no kernel touches it.
    pub fn new(columns: &'a [ArrayRef]) -> Views<'a> {
        let mut views = Views { columns: Vec::new(), _buffers: Vec::new(), _arrays: std::marker::PhantomData };
        for array in columns {
            views.push(array);
        }
        views
    }

    fn push(&mut self, array: &ArrayRef) {
        let (validity, validity_bit) = match array.nulls().filter(|n| n.null_count() > 0) {
            Some(nulls) => (nulls.inner().values().as_ptr(), nulls.inner().offset() as u64),
            None => (std::ptr::null(), 0),
        };
        let mut view =
            ColumnView { values: std::ptr::null(), validity, buffers: std::ptr::null(), values_bit: 0, validity_bit };
        match array.data_type() {
            ArrowType::Boolean => {
                let values = array.as_boolean().values();
                view.values = values.values().as_ptr();
                view.values_bit = values.offset() as u64;
            }
            ArrowType::Utf8View | ArrowType::BinaryView => {
                let (values, buffers) = match array.data_type() {
                    ArrowType::Utf8View => {
                        let a = array.as_string_view();
                        (a.views().as_ptr(), a.data_buffers())
                    }
                    _ => {
                        let a = array.as_binary_view();
                        (a.views().as_ptr(), a.data_buffers())
                    }
                };
                view.values = values.cast();
                let addresses: Vec<*const u8> = buffers.iter().map(|b| b.as_ptr()).collect();
                view.buffers = addresses.as_ptr();
                self._buffers.push(addresses);
            }
            other => {
                if let Some(width) = other.primitive_width() {
                    let data = array.to_data();
                    let bytes = data.buffers()[0].as_slice();
                    view.values = bytes[data.offset() * width..].as_ptr();
                }
            }
        }
        self.columns.push(view);
    }
}

/// Runs a map kernel and puts the projection together: computed columns from the kernel, the others taken from the
/// input by its selection.
///
/// `Ok(None)` when a row raised an ANSI error: the interpreter is then asked, which words it with the value.
pub fn run_map(kernel: &dyn MapKernel, project: &[Expr], batch: &RecordBatch) -> Result<Option<Vec<ArrayRef>>> {
    let views = Views::new(batch.columns());
    // SAFETY: the views were made from this batch, which outlives the call; operators compile their kernels for the
    // schema of the batches that they get, and `verify` of the IR has checked that they are the same.
    let output = unsafe { kernel.run(&views.columns, batch.num_rows()) };
    let Ok(output) = output else { return Ok(None) };
    let selection = output.selection.map(UInt32Array::from);
    let rows = selection.as_ref().map_or(batch.num_rows(), UInt32Array::len);
    let mut computed = kernel.computed().iter().zip(output.columns);
    let mut next = computed.next();
    let mut columns = Vec::with_capacity(project.len());
    for (i, expr) in project.iter().enumerate() {
        columns.push(match (&next, &expr.kind) {
            (Some((at, _)), _) if **at == i => {
                let (_, column) = next.take().expect("just seen");
                next = computed.next();
                output_array(column, &expr.data_type, rows)?
            }
            (_, ExprKind::Column(c)) => match &selection {
                Some(s) if s.len() != batch.num_rows() => take(batch.column(*c as usize), s, None)?,
                _ => Arc::clone(batch.column(*c as usize)),
            },
            _ => return Err(EngineError::internal(format!("the kernel left out column {i} of its projection"))),
        });
    }
    Ok(Some(columns))
}

/// A computed column as an Arrow array.
fn output_array(column: OutputColumn, data_type: &DataType, rows: usize) -> Result<ArrayRef> {
    let nulls = (!column.validity.is_empty()).then(|| NullBuffer::new(bytes_to_bits(&column.validity, rows)));
    if *data_type == DataType::Boolean {
        return Ok(Arc::new(BooleanArray::new(bytes_to_bits(&column.values, rows), nulls)));
    }
    let data = arrow::array::ArrayDataBuilder::new(arrow_type(data_type))
        .len(rows)
        .nulls(nulls)
        .add_buffer(aligned(column.values))
        .build()
        .map_err(|e| EngineError::internal(format!("a kernel's output is no {data_type} column: {e}")))?;
    Ok(make_array(data))
}

/// One bit per byte that is not 0.
fn bytes_to_bits(bytes: &[u8], rows: usize) -> BooleanBuffer {
    BooleanBuffer::collect_bool(rows, |i| bytes[i] != 0)
}

/// Kernel output as a buffer that Arrow takes for any primitive type: copied only if it happens to be misaligned.
fn aligned(bytes: Vec<u8>) -> Buffer {
    let buffer = Buffer::from_vec(bytes);
    if buffer.as_ptr().align_offset(16) == 0 { buffer } else { Buffer::from_slice_ref(buffer.as_slice()) }
}

/// Key columns of a batch with the hash of each row's key.
pub struct HashedKeys<'a> {
    views: Views<'a>,
    /// Hash of each row's key.
    pub hashes: Vec<u64>,
}

impl<'a> HashedKeys<'a> {
    /// Hashes `rows` keys of these columns, which have the representation that `kinds` say.
    pub fn new(columns: &'a [ArrayRef], kinds: &[KeyKind], rows: usize) -> HashedKeys<'a> {
        let views = Views::new(columns);
        let mut hashes = Vec::new();
        // SAFETY: the views are of these columns, which have at least `rows` rows and the kinds' representation.
        unsafe { hash_columns(&views.columns, kinds, rows, &mut hashes) };
        HashedKeys { views, hashes }
    }

    /// Finds or inserts all keys; `groups[i]` becomes the group of row i.
    pub fn find_or_insert(&self, table: &mut GroupTable, groups: &mut [u32]) {
        // SAFETY: the views outlive the call and have the table's kinds: both were made from the operator's keys.
        unsafe { table.find_or_insert(&self.views.columns, &self.hashes, 0..self.hashes.len(), groups) };
    }

    /// Finds or inserts the key of one row; tells whether it is new.
    pub fn insert(&self, table: &mut GroupTable, row: usize) -> (u32, bool) {
        debug_assert!(row < self.hashes.len());
        // SAFETY: as above, and the row is one of those hashed.
        unsafe { table.insert(&self.views.columns, row, self.hashes[row]) }
    }
}

/// Runs an aggregate kernel over all rows of the columns. False when a row raised an ANSI error: the interpreter is
/// then asked, which words it with the value.
pub fn run_aggregate(
    kernel: &dyn AggregateKernel,
    table: &mut GroupTable,
    columns: &[ArrayRef],
    keys: &[u32],
    kinds: &[KeyKind],
    groups: &mut [u32],
) -> bool {
    let views = Views::new(columns);
    let key_views: Vec<ColumnView> = keys.iter().map(|&k| views.columns[k as usize]).collect();
    let mut hashes = Vec::new();
    // SAFETY: the views are of these columns; `groups` has one place a row; the kernel was compiled for the table's
    // layout and the columns' types by the operator that calls.
    unsafe {
        hash_columns(&key_views, kinds, groups.len(), &mut hashes);
    }
    // SAFETY: as above.
    unsafe { table.run(kernel, &views.columns, keys, &hashes, Some(groups)).is_ok() }
}

/// Key fields of these groups, as a column of that type.
pub fn key_column(table: &GroupTable, rows: &[u32], field: usize, data_type: &DataType) -> Result<ArrayRef> {
    use arrow::array::{BinaryViewBuilder, StringViewBuilder};
    match data_type {
        DataType::String => {
            let mut builder = StringViewBuilder::with_capacity(rows.len());
            for &row in rows {
                let text = table.key(row, field).map(std::str::from_utf8).transpose();
                builder.append_option(text.map_err(|_| EngineError::internal("a STRING key is not UTF-8"))?);
            }
            Ok(Arc::new(builder.finish()))
        }
        DataType::Binary => {
            let mut builder = BinaryViewBuilder::with_capacity(rows.len());
            rows.iter().for_each(|&row| builder.append_option(table.key(row, field)));
            Ok(Arc::new(builder.finish()))
        }
        DataType::Boolean => {
            let bits = rows.iter().map(|&row| table.key(row, field).map(|v| v[0] != 0));
            Ok(Arc::new(bits.collect::<BooleanArray>()))
        }
        fixed => {
            let width = fixed
                .fixed_width()
                .ok_or_else(|| EngineError::internal(format!("{fixed} does not stand in a state row as it is")))?;
            let mut values = vec![0u8; width * rows.len()];
            let mut valid = vec![1u8; rows.len()];
            for ((place, flag), &row) in values.chunks_exact_mut(width).zip(&mut valid).zip(rows) {
                match table.key(row, field) {
                    Some(bytes) => place.copy_from_slice(bytes),
                    None => *flag = 0,
                }
            }
            let validity = if valid.contains(&0) { valid } else { Vec::new() };
            output_array(OutputColumn { values, validity }, fixed, rows.len())
        }
    }
}
