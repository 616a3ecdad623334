//! Key columns of groups, joins and deduplication, made comparable as bytes.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BinaryViewArray, PrimitiveArray};
use arrow::datatypes::{Float32Type, Float64Type};
use arrow::row::{RowConverter, Rows, SortField};
use ssql_ir::DataType;
use ssql_stdlib::arrow_type;

use crate::error::{EngineError, Result};

/// Spark's grouping rule for floats: `-0.0` is `0.0` and all NaNs are one. Nested floats are covered by the row
/// format's own rule in [`KeyColumn::Encoded`].
pub fn normalize_floats(array: &ArrayRef) -> ArrayRef {
    fn each<T: ArrowPrimitiveType>(array: &ArrayRef, rule: impl Fn(T::Native) -> T::Native) -> ArrayRef {
        let values: &PrimitiveArray<T> = array.as_primitive();
        Arc::new(values.unary::<_, T>(rule))
    }
    match array.data_type() {
        arrow::datatypes::DataType::Float64 => {
            each::<Float64Type>(array, |v| if v.is_nan() { f64::NAN } else { v + 0.0 })
        }
        arrow::datatypes::DataType::Float32 => {
            each::<Float32Type>(array, |v| if v.is_nan() { f32::NAN } else { v + 0.0 })
        }
        _ => Arc::clone(array),
    }
}

/// How one key column stands in a state row.
#[derive(Debug)]
pub enum KeyColumn {
    /// As it is: fixed width or a string view.
    Plain(DataType),
    /// Nested (or VOID) values, as bytes of Arrow's row format.
    Encoded(DataType, RowConverter),
}

impl KeyColumn {
    /// The representation of key columns of this type.
    pub fn new(data_type: &DataType) -> Result<KeyColumn> {
        if data_type.fixed_width().is_some() {
            return Ok(KeyColumn::Plain(data_type.clone()));
        }
        let converter = RowConverter::new(vec![SortField::new(arrow_type(data_type))])
            .map_err(|e| EngineError::internal(format!("{data_type} cannot be a key: {e}")))?;
        Ok(KeyColumn::Encoded(data_type.clone(), converter))
    }

    /// Type of the representation.
    pub fn physical_type(&self) -> DataType {
        match self {
            KeyColumn::Plain(t) => t.clone(),
            KeyColumn::Encoded(..) => DataType::Binary,
        }
    }

    /// The representation of these values.
    pub fn encode(&self, array: &ArrayRef) -> Result<ArrayRef> {
        match self {
            KeyColumn::Plain(_) => Ok(normalize_floats(array)),
            KeyColumn::Encoded(_, converter) => {
                let rows = converter.convert_columns(std::slice::from_ref(array))?;
                Ok(Arc::new(BinaryViewArray::from_iter_values(rows.iter().map(|r| r.data().to_vec()))))
            }
        }
    }

    /// The values of this representation.
    pub fn decode(&self, array: ArrayRef) -> Result<ArrayRef> {
        match self {
            KeyColumn::Plain(_) => Ok(array),
            KeyColumn::Encoded(_, converter) => {
                let parser = converter.parser();
                let bytes = array.as_binary_view();
                let rows = (0..bytes.len()).map(|i| parser.parse(bytes.value(i)));
                let mut columns = converter.convert_rows(rows)?;
                columns.pop().ok_or_else(|| EngineError::internal("a row of one column decodes to none"))
            }
        }
    }
}

/// Whole keys as byte strings, for hash maps: equal keys have equal bytes, NULL equals NULL.
#[derive(Debug)]
pub struct KeyRows {
    converter: RowConverter,
}

impl KeyRows {
    /// For keys of these types.
    pub fn new(types: &[DataType]) -> Result<KeyRows> {
        let fields = types.iter().map(|t| SortField::new(arrow_type(t))).collect();
        let converter = RowConverter::new(fields)
            .map_err(|e| EngineError::internal(format!("these keys cannot be hashed: {e}")))?;
        Ok(KeyRows { converter })
    }

    /// The keys of these columns.
    pub fn rows(&self, columns: &[ArrayRef]) -> Result<Rows> {
        let columns: Vec<ArrayRef> = columns.iter().map(normalize_floats).collect();
        Ok(self.converter.convert_columns(&columns)?)
    }

    /// The columns of these keys.
    pub fn columns<'a>(&self, keys: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<ArrayRef>> {
        let parser = self.converter.parser();
        let rows: Vec<_> = keys.into_iter().map(|k| parser.parse(k)).collect();
        Ok(self.converter.convert_rows(rows)?)
    }
}
