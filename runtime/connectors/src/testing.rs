//! What the tests of several modules share.

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::DataType as ArrowType;
use jiff::tz::TimeZone;
use ssql_engine::connector::Options;
use ssql_ir::Schema;
use ssql_stdlib::CellFormatter;

/// Options from pairs.
pub(crate) fn options(pairs: &[(&str, &str)]) -> Options {
    Options::new(pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())))
}

/// The columns of a DDL text such as `a INT, b STRING`.
pub(crate) fn schema(ddl: &str) -> Schema {
    ssql_stdlib::parse_schema(ddl).expect("a schema in DDL")
}

/// The rows as text, one string a row, cells separated by `|`.
pub(crate) fn printed(batches: &[RecordBatch]) -> Vec<String> {
    let mut rows = Vec::new();
    for batch in batches {
        let cells: Vec<_> = batch.columns().iter().map(|c| CellFormatter::new(c.as_ref(), TimeZone::UTC)).collect();
        for row in 0..batch.num_rows() {
            let cell = |i: usize| {
                let mut text = String::new();
                let column = batch.column(i);
                if column.is_null(row) || column.data_type() == &ArrowType::Null {
                    text.push_str("NULL");
                } else {
                    cells[i].write(row, &mut text);
                }
                text
            };
            rows.push((0..cells.len()).map(cell).collect::<Vec<_>>().join("|"));
        }
    }
    rows
}
