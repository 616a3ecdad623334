//! What the text formats share: records decoded from buffers into columns, and what becomes of bad ones.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::buffer::Buffer;
use arrow::datatypes::{Schema as ArrowSchema, SchemaRef};
use ssql_engine::connector::{ConnectorError, Options};
use ssql_ir::{DataType, Field};

use crate::columns::nullable_field;

/// What becomes of a record that cannot be read (`mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// What can be read is kept, the rest is NULL.
    #[default]
    Permissive,
    /// The record is left out.
    DropMalformed,
    /// The query fails.
    FailFast,
}

impl Mode {
    /// The option `mode`.
    pub fn from_options(options: &Options) -> Result<Mode, ConnectorError> {
        match options.get("mode").map(str::to_uppercase).as_deref() {
            None | Some("PERMISSIVE") => Ok(Mode::Permissive),
            Some("DROPMALFORMED") => Ok(Mode::DropMalformed),
            Some("FAILFAST") => Ok(Mode::FailFast),
            Some(other) => Err(ConnectorError::bad_option("mode", other, "PERMISSIVE, DROPMALFORMED or FAILFAST")),
        }
    }
}

/// A record that ends the query (mode FAILFAST, or a limit).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRecord {
    /// Where the record begins, as an offset into the buffer.
    pub start: usize,
    /// What is wrong.
    pub reason: String,
}

/// Decodes records of one format into batches.
///
/// A decoder gathers rows over any number of calls; [`Decoder::take`] hands them over.
pub trait Decoder: Send {
    /// Decodes the records of `bytes[range]`, which ends with a record's end, until the range is used up or the batch
    /// is full ([`Decoder::is_full`]); returns where it stopped.
    fn decode(&mut self, bytes: &Buffer, range: Range<usize>) -> Result<usize, BadRecord>;

    /// A file begins (a header may follow).
    fn begin_file(&mut self) {}

    /// Rows gathered.
    fn rows(&self) -> usize;

    /// Whether the batch should be taken before more is decoded.
    fn is_full(&self) -> bool {
        self.rows() >= crate::columns::MAX_BATCH_ROWS
    }

    /// The rows gathered, as columns in the order asked for; the decoder is empty afterwards.
    fn take(&mut self) -> Decoded;
}

/// Rows gathered by a [`Decoder`].
#[derive(Debug)]
pub struct Decoded {
    /// The columns.
    pub columns: Vec<ArrayRef>,
    /// Number of rows, since there may be no column.
    pub rows: usize,
    /// Records that were nulled in part or dropped.
    pub bad_records: u64,
}

/// The schema of a batch of these fields; NULL is allowed everywhere.
pub fn batch_schema(fields: &[Field]) -> SchemaRef {
    Arc::new(ArrowSchema::new(fields.iter().map(|f| ssql_stdlib::arrow_field(&nullable_field(f))).collect::<Vec<_>>()))
}

/// A batch of `rows` rows, also where there are no columns.
pub fn batch(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> RecordBatch {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options)
        .expect("decoders build the columns of the schema, each with all rows")
}

/// Where the corrupt-record column stands among `fields`, if it is declared (`columnNameOfCorruptRecord`).
pub fn corrupt_column(options: &Options, fields: &[Field]) -> Result<Option<usize>, ConnectorError> {
    let name = options.get("columnNameOfCorruptRecord").unwrap_or("_corrupt_record");
    let Some(at) = fields.iter().position(|f| f.name.eq_ignore_ascii_case(name)) else { return Ok(None) };
    if fields[at].data_type != DataType::String {
        return Err(ConnectorError::new(
            "INVALID_CORRUPT_RECORD_TYPE",
            ssql_engine::connector::Domain::User,
            format!("column `{name}` for corrupt records must be a STRING, not {}", fields[at].data_type),
        ));
    }
    Ok(Some(at))
}
