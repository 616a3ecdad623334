//! Values of any type as bytes, for aggregates that keep some of their input: arrow's row format, which can be read back
//! and, for one ordered value, compares as the values do.

use arrow::array::{Array, ArrayRef, UInt32Array, new_null_array};
use arrow::row::{RowConverter, Rows, SortField};
use ssql_ir::DataType as T;

use crate::arrow::{arrow_type, conform};
use crate::compare::canonical_floats;
use crate::error::{DecodeError, EvalError};

use super::codec;

fn converter(t: &T) -> Result<RowConverter, EvalError> {
    Ok(RowConverter::new(vec![SortField::new(arrow_type(t))])?)
}

/// Values as they are.
pub(super) fn encode(t: &T, array: &ArrayRef) -> Result<Rows, EvalError> {
    Ok(converter(t)?.convert_columns(std::slice::from_ref(array))?)
}

/// Values made canonical: equal values have equal bytes, and the order of the bytes is that of the values.
pub(super) fn encode_key(t: &T, array: &ArrayRef) -> Result<Rows, EvalError> {
    encode(t, &canonical_floats(array)?)
}

/// The values of some rows.
pub(super) fn encode_rows(t: &T, array: &ArrayRef, rows: Vec<u32>) -> Result<Rows, EvalError> {
    encode(t, &arrow::compute::take(array.as_ref(), &UInt32Array::from(rows), None)?)
}

/// What was encoded, as a column; `None` is NULL.
pub(super) fn decode<'a>(t: &T, values: impl Iterator<Item = Option<&'a [u8]>>) -> Result<ArrayRef, EvalError> {
    let converter = converter(t)?;
    let parser = converter.parser();
    let null = converter.convert_columns(&[new_null_array(&arrow_type(t), 1)])?;
    let columns = converter.convert_rows(values.map(|v| v.map_or_else(|| null.row(0), |bytes| parser.parse(bytes))))?;
    conform(columns.into_iter().next().ok_or_else(|| EvalError::internal("one column went in"))?, t)
}

/// Many values, one behind the other.
#[derive(Debug, Default)]
pub(super) struct Packed {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl Packed {
    /// Appends a value. Errors past 4 GiB.
    pub(super) fn push(&mut self, value: &[u8]) -> Result<(), EvalError> {
        let end = u32::try_from(self.bytes.len() + value.len()).map_err(|_| {
            EvalError::new("COLLECTION_SIZE_LIMIT_EXCEEDED", "One group of an aggregate holds more than 4 GiB.")
        })?;
        self.bytes.extend_from_slice(value);
        self.ends.push(end);
        Ok(())
    }

    /// Number of values.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The values in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start as usize..*end as usize])
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * 4
    }

    /// Appends them to a changelog.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        codec::put_len(out, self.len());
        for value in self.iter() {
            codec::put_bytes(out, value);
        }
    }

    /// Reads what [`Packed::write`] wrote.
    pub(super) fn read(input: &mut &[u8]) -> Result<Packed, DecodeError> {
        let mut packed = Packed::default();
        for _ in 0..codec::get_len(input)? {
            packed.push(codec::get_bytes(input)?).map_err(|e| DecodeError(e.message))?;
        }
        Ok(packed)
    }
}

/// Whether the row of the column holds a value.
pub(super) fn is_valid(array: &ArrayRef, row: usize) -> bool {
    array.is_valid(row) && array.data_type() != &arrow::datatypes::DataType::Null
}
