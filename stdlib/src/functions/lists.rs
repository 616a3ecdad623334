//! What the families of collections build their results with.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ListArray, MapArray, NullBufferBuilder, StructArray, UInt32Array, new_null_array};
use arrow::buffer::OffsetBuffer;
use arrow::compute;
use arrow::datatypes::DataType as ArrowType;
use ssql_ir::DataType as T;

use crate::arrow::{arrow_type, conform};
use crate::call::EvalResult;
use crate::error::EvalError;

/// Lists whose elements are picked from the values of some source arrays of one type: only places are written down, and
/// the values are copied once, at the end.
pub(super) struct Lists {
    sources: Vec<ArrayRef>,
    places: Vec<(usize, usize)>,
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
    /// Which source holds the NULL that [`Lists::push_null`] picks.
    null_source: Option<usize>,
}

impl Lists {
    /// Lists for that many rows.
    pub(super) fn new(rows: usize, sources: Vec<ArrayRef>) -> Lists {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        Lists { sources, places: vec![], offsets, nulls: NullBufferBuilder::new(rows), null_source: None }
    }

    /// One more element of the row: value `index` of a source.
    pub(super) fn push(&mut self, source: usize, index: usize) {
        self.places.push((source, index));
    }

    /// More elements of the row.
    pub(super) fn extend(&mut self, source: usize, indices: impl IntoIterator<Item = usize>) {
        self.places.extend(indices.into_iter().map(|i| (source, i)));
    }

    /// A NULL element.
    pub(super) fn push_null(&mut self) {
        let source = *self.null_source.get_or_insert_with(|| {
            self.sources.push(new_null_array(self.sources[0].data_type(), 1));
            self.sources.len() - 1
        });
        self.places.push((source, 0));
    }

    /// Ends the row. That all rows together have no more elements than a batch can hold is checked at the end.
    pub(super) fn end_row(&mut self) {
        self.offsets.push(i32::try_from(self.places.len()).unwrap_or(i32::MAX));
        self.nulls.append_non_null();
    }

    /// The row is NULL (and has no elements).
    pub(super) fn null_row(&mut self) {
        self.offsets.push(self.places.len() as i32);
        self.nulls.append_null();
    }

    /// The elements of all rows alone, as values of that type.
    pub(super) fn finish_values(self, t: &T) -> EvalResult {
        adapt(pick(&self.sources, &self.places)?, t)
    }

    /// The lists as an array of that ARRAY type.
    pub(super) fn finish_as(mut self, t: &T) -> EvalResult {
        let ArrowType::List(field) = arrow_type(t) else { return Err(EvalError::internal(format!("{t} is no array"))) };
        if self.places.len() > i32::MAX as usize {
            return Err(too_many());
        }
        let T::Array(element) = t else { return Err(EvalError::internal(format!("{t} is no array"))) };
        let values = adapt(pick(&self.sources, &self.places)?, &element.data_type)?;
        let offsets = OffsetBuffer::new(self.offsets.into());
        Ok(Arc::new(ListArray::try_new(field, offsets, values, self.nulls.finish())?))
    }
}

/// More elements than one batch can hold.
pub(super) fn too_many() -> EvalError {
    EvalError::new(
        "COLLECTION_SIZE_LIMIT_EXCEEDED.PARAMETER",
        "The arrays of one batch hold more elements than fit in it (2147483647).",
    )
}

/// The array in the exact layout of the type; an array of VOID becomes NULLs of it.
pub(super) fn adapt(array: ArrayRef, t: &T) -> EvalResult {
    let target = arrow_type(t);
    if array.data_type() == &target {
        Ok(array)
    } else if array.data_type() == &ArrowType::Null {
        Ok(new_null_array(&target, array.len()))
    } else {
        conform(array, t)
    }
}

/// The values at those places (source, index).
pub(super) fn pick(sources: &[ArrayRef], places: &[(usize, usize)]) -> EvalResult {
    if let [only] = sources {
        let indices = UInt32Array::from_iter_values(places.iter().map(|(_, i)| *i as u32));
        return Ok(compute::take(only.as_ref(), &indices, None)?);
    }
    if sources.iter().all(|s| s.data_type() == &ArrowType::Null) {
        return Ok(new_null_array(&ArrowType::Null, places.len()));
    }
    let arrays: Vec<&dyn Array> = sources.iter().map(|a| a.as_ref()).collect();
    Ok(compute::interleave(&arrays, places)?)
}

/// A MAP array of type `t` from keys and values of all its entries. `nulls` from the rows.
pub(super) fn map_array(
    t: &T,
    offsets: Vec<i32>,
    keys: ArrayRef,
    values: ArrayRef,
    mut nulls: NullBufferBuilder,
) -> EvalResult {
    let (T::Map(k, v), ArrowType::Map(entries, sorted)) = (t, arrow_type(t)) else {
        return Err(EvalError::internal(format!("{t} is no map")));
    };
    let ArrowType::Struct(fields) = entries.data_type() else {
        return Err(EvalError::internal("a map's entries are a struct"));
    };
    let columns = vec![adapt(keys, &k.data_type)?, adapt(values, &v.data_type)?];
    let structs = StructArray::try_new(fields.clone(), columns, None)?;
    let offsets = OffsetBuffer::new(offsets.into());
    Ok(Arc::new(MapArray::try_new(entries.clone(), offsets, structs, nulls.finish(), sorted)?))
}

/// The values as bytes that are equal exactly where the values are (NaN is one value, -0.0 is 0.0, NULL equals NULL):
/// for hashing.
pub(super) fn key_rows(arrays: &[ArrayRef]) -> Result<Vec<arrow::row::Rows>, EvalError> {
    let Some(first) = arrays.first() else { return Ok(vec![]) };
    let converter = arrow::row::RowConverter::new(vec![arrow::row::SortField::new(first.data_type().clone())])?;
    arrays.iter().map(|a| Ok(converter.convert_columns(&[crate::compare::canonical_floats(a)?])?)).collect()
}

/// The error "no order on that type".
pub(super) fn no_order(name: &str, t: &T) -> crate::error::ResolveError {
    crate::error::ResolveError::new(
        "DATATYPE_MISMATCH.INVALID_ORDERING_TYPE",
        format!("`{name}` does not support ordering on type {t}."),
    )
}
