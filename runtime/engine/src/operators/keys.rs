//! Key columns of groups, joins and deduplication, made comparable as bytes.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryViewArray};
use arrow::row::{RowConverter, Rows, SortField};
use ssql_ir::DataType;
use ssql_stdlib::{arrow_type, canonical_floats};

use crate::error::{EngineError, Result};

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
            KeyColumn::Plain(_) => Ok(canonical_floats(array)?),
            KeyColumn::Encoded(_, converter) => {
                let rows = converter.convert_columns(&[canonical_floats(array)?])?;
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
        let columns = columns.iter().map(canonical_floats).collect::<Result<Vec<ArrayRef>, _>>()?;
        Ok(self.converter.convert_columns(&columns)?)
    }

    /// The columns of these keys.
    pub fn columns<'a>(&self, keys: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<ArrayRef>> {
        let parser = self.converter.parser();
        let rows: Vec<_> = keys.into_iter().map(|k| parser.parse(k)).collect();
        Ok(self.converter.convert_rows(rows)?)
    }
}
