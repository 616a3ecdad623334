//! Reading Parquet files: a split is one or more row groups of one file.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use arrow::array::{ArrayRef, RecordBatch, new_null_array};
use arrow::datatypes::{DataType as ArrowType, SchemaRef};
use ssql_engine::connector::{ConnectorError, Domain, Split, SplitStats};
use ssql_ir::{Field, Schema};
use ssql_stdlib::{ir_field_type, normalize};

use crate::columns::MAX_BATCH_ROWS;
use crate::decode::{batch, batch_schema};
use crate::file::{FileEntry, FileReader, partitions, read_error};

type DynError = Box<dyn std::error::Error + Send + Sync>;

/// Compressed bytes of a split; row groups are never cut.
const SPLIT_BYTES: i64 = 8 << 20;

/// Row groups of a file.
pub(crate) struct ParquetSplit {
    reader: Arc<FileReader>,
    file: FileEntry,
    metadata: ArrowReaderMetadata,
    row_groups: Vec<usize>,
    fields: Vec<Field>,
    schema: SchemaRef,
    bytes: u64,
}

impl ParquetSplit {
    /// Cuts files into splits.
    pub(crate) fn plan(
        reader: &Arc<FileReader>,
        files: &[FileEntry],
        fields: &[Field],
    ) -> Result<Vec<Box<dyn Split>>, ConnectorError> {
        let schema = batch_schema(fields);
        let mut splits: Vec<Box<dyn Split>> = Vec::new();
        for file in files.iter().filter(|f| f.size > 0) {
            let Some(metadata) = open_metadata(reader, file)? else { continue };
            let (mut groups, mut held) = (Vec::new(), 0);
            let all = metadata.metadata().num_row_groups();
            for group in 0..all {
                groups.push(group);
                held += metadata.metadata().row_group(group).compressed_size();
                if held >= SPLIT_BYTES || group + 1 == all {
                    splits.push(Box::new(ParquetSplit {
                        reader: reader.clone(),
                        file: file.clone(),
                        metadata: metadata.clone(),
                        row_groups: std::mem::take(&mut groups),
                        fields: fields.to_vec(),
                        schema: schema.clone(),
                        bytes: held.max(0) as u64,
                    }));
                    held = 0;
                }
            }
        }
        Ok(splits)
    }

    /// The columns of a batch in the order and types asked for.
    fn arrange(&self, read: &RecordBatch) -> Result<RecordBatch, DynError> {
        let directories = self.reader.partition_values(&self.file.path);
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.fields.len());
        for (field, target) in self.fields.iter().zip(self.schema.fields()) {
            if let Some((_, value)) = directories.iter().find(|(name, _)| name.eq_ignore_ascii_case(&field.name)) {
                let zone = self.reader.time_zone();
                columns.push(partitions::array(field, value.as_deref(), read.num_rows(), zone)?);
                continue;
            }
            let found = read.schema().fields().iter().position(|f| f.name().eq_ignore_ascii_case(&field.name));
            columns.push(match found {
                Some(i) => {
                    let column = normalize(read.column(i), &field.data_type).map_err(|e| self.mismatch(field, &e))?;
                    // Nested columns may differ in what may be NULL; that is widened, the values stay.
                    if column.data_type() == target.data_type() {
                        column
                    } else {
                        arrow::compute::cast(&column, target.data_type()).map_err(|e| self.mismatch(field, &e))?
                    }
                }
                None => new_null_array(target.data_type(), read.num_rows()),
            });
        }
        Ok(batch(&self.schema, columns, read.num_rows()))
    }

    fn mismatch(&self, field: &Field, why: &dyn std::fmt::Display) -> ConnectorError {
        let path = self.file.path.display();
        let message = format!("`{path}`: column `{}` cannot be read as {}: {why}", field.name, field.data_type);
        ConnectorError::new("FAILED_READ_FILE.PARQUET_COLUMN_DATA_TYPE_MISMATCH", Domain::User, message)
    }
}

impl Split for ParquetSplit {
    fn read(&mut self, deliver: &mut dyn FnMut(RecordBatch) -> Result<(), DynError>) -> Result<SplitStats, DynError> {
        let mut stats = SplitStats { bytes: self.bytes, ..SplitStats::default() };
        let opened = File::open(&self.file.path).map_err(|e| read_error(&self.file.path, e));
        let file = match opened {
            Ok(file) => file,
            Err(_) if self.reader.ignores_missing() => return Ok(stats),
            Err(error) => return Err(error.into()),
        };
        let roots: Vec<usize> = self
            .metadata
            .schema()
            .fields()
            .iter()
            .enumerate()
            .filter(|(_, f)| self.fields.iter().any(|wanted| wanted.name.eq_ignore_ascii_case(f.name())))
            .map(|(i, _)| i)
            .collect();
        let mask = ProjectionMask::roots(self.metadata.metadata().file_metadata().schema_descr(), roots);
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone())
            .with_projection(mask)
            .with_row_groups(self.row_groups.clone())
            .with_batch_size(MAX_BATCH_ROWS)
            .build()
            .map_err(|e| corrupt(&self.file.path, &e))?;
        for read in reader {
            let read = match read {
                Ok(read) => read,
                Err(_) if self.reader.ignores_corrupt() => break,
                Err(error) => return Err(corrupt(&self.file.path, &error).into()),
            };
            stats.rows += read.num_rows() as u64;
            deliver(self.arrange(&read)?)?;
        }
        Ok(stats)
    }
}

/// The footer, with strings read as views; `None` if the file is to be passed over.
fn open_metadata(reader: &FileReader, file: &FileEntry) -> Result<Option<ArrowReaderMetadata>, ConnectorError> {
    let opened = match File::open(&file.path) {
        Ok(opened) => opened,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && reader.ignores_missing() => return Ok(None),
        Err(e) => return Err(read_error(&file.path, e)),
    };
    match load_metadata(&opened) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(_) if reader.ignores_corrupt() => Ok(None),
        Err(error) => Err(corrupt(&file.path, &error)),
    }
}

fn load_metadata(file: &File) -> ::parquet::errors::Result<ArrowReaderMetadata> {
    let plain = ArrowReaderMetadata::load(file, ArrowReaderOptions::new().with_skip_arrow_metadata(true))?;
    // Strings and bytes at the top become views without a detour.
    let fields: Vec<_> = plain
        .schema()
        .fields()
        .iter()
        .map(|f| match f.data_type() {
            ArrowType::Utf8 => Arc::new(f.as_ref().clone().with_data_type(ArrowType::Utf8View)),
            ArrowType::Binary => Arc::new(f.as_ref().clone().with_data_type(ArrowType::BinaryView)),
            _ => f.clone(),
        })
        .collect();
    let schema = Arc::new(arrow::datatypes::Schema::new(fields));
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true).with_schema(schema);
    ArrowReaderMetadata::try_new(plain.metadata().clone(), options)
}

fn corrupt(path: &Path, error: &dyn std::fmt::Display) -> ConnectorError {
    let message = format!("`{}` is no readable Parquet file: {error}", path.display());
    ConnectorError::new("FAILED_READ_FILE.CANNOT_READ_FILE_FOOTER", Domain::External, message)
        .with_help("set `ignoreCorruptFiles true` to pass over such files")
}

/// The columns that a file carries.
pub(crate) fn file_schema(path: &Path) -> Result<Schema, ConnectorError> {
    let file = File::open(path).map_err(|e| read_error(path, e))?;
    let metadata = load_metadata(&file).map_err(|e| corrupt(path, &e))?;
    let fields = metadata.schema().fields().iter().map(|f| {
        let data_type = ir_field_type(f).ok_or_else(|| {
            let message = format!("`{}`: column `{}` has type {}", path.display(), f.name(), f.data_type());
            ConnectorError::new("UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE", Domain::User, message)
        })?;
        Ok(crate::columns::nullable_field(&Field::new(f.name(), data_type, true)))
    });
    Ok(Schema::new(fields.collect::<Result<_, ConnectorError>>()?))
}
