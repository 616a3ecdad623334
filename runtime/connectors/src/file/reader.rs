//! What is read from files and how: format, columns, options. Shared by the splits of a relation.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::tz::TimeZone;
use ssql_engine::connector::{ConnectorError, Declaration, Domain, Split};
use ssql_ir::{DataType, Field, Schema};

use super::buffers::BufferPool;
use super::list::FileEntry;
use super::options::FileOptions;
use super::split::{Piece, TextSplit};
use super::{Format, partitions};
use crate::columns::nullable_field;
use crate::csv::{CsvDecoder, CsvOptions};
use crate::decode::Decoder;
use crate::json::{JsonDecoder, JsonOptions};
use crate::parquet::ParquetSplit;
use crate::text_lines::TextDecoder;

/// Largest and smallest piece of a file that is read as one split, in bytes.
const SPLIT_BYTES: std::ops::RangeInclusive<u64> = 1 << 20..=8 << 20;
/// Splits aimed at for the files of one batch, enough to keep the workers evenly busy.
const SPLITS: u64 = 16;

/// How the bytes of a text format become rows.
#[derive(Debug, Clone)]
enum Rows {
    Json(JsonOptions),
    Csv(CsvOptions),
    Text,
}

/// Reads files of one relation.
#[derive(Debug)]
pub(crate) struct FileReader {
    pub(super) format: Format,
    pub(super) schema: Schema,
    rows: Option<Rows>,
    /// A file is one record.
    pub(super) whole_files: bool,
    pub(super) options: FileOptions,
    root: PathBuf,
    time_zone: TimeZone,
    pub(super) pool: Arc<BufferPool>,
}

impl FileReader {
    pub(super) fn new(
        format: Format,
        declaration: &Declaration,
        options: FileOptions,
        root: PathBuf,
    ) -> Result<FileReader, ConnectorError> {
        let given = &declaration.options;
        let zone = &declaration.time_zone;
        if let Some(encoding) = given.get("encoding").or(given.get("charset"))
            && !encoding.eq_ignore_ascii_case("utf-8")
            && !encoding.eq_ignore_ascii_case("utf8")
        {
            return Err(ConnectorError::bad_option("encoding", encoding, "UTF-8"));
        }
        let (rows, whole_files) = match format {
            Format::Json => (Some(Rows::Json(JsonOptions::new(given, zone)?)), given.boolean("multiLine", false)?),
            Format::Csv => (Some(Rows::Csv(CsvOptions::new(given, zone)?)), false),
            Format::Text => (Some(Rows::Text), given.boolean("wholetext", false)?),
            Format::Parquet => (None, false),
        };
        let schema = Schema::new(declaration.schema.fields.iter().map(nullable_field).collect());
        for field in &schema.fields {
            let fits = match format {
                Format::Json | Format::Parquet => true,
                Format::Csv => !field.data_type.is_nested(),
                // Besides `value` there can only be partition columns.
                Format::Text => !field.data_type.is_nested(),
            };
            if !fits {
                let message = format!("column `{}`: {format} files cannot hold {}", field.name, field.data_type);
                return Err(ConnectorError::new("UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE", Domain::User, message));
            }
        }
        let time_zone = crate::formats::time_zone(given, zone)?;
        let reader = FileReader { format, schema, rows, whole_files, options, root, time_zone, pool: Arc::default() };
        // Errors in the columns come before the first batch.
        if format != Format::Parquet {
            let all: Vec<Field> = reader.schema.fields.clone();
            drop(reader.decoder(&all, &[])?);
        }
        Ok(reader)
    }

    /// A decoder of these columns, for files whose directories hold these partition columns.
    pub(super) fn decoder(
        &self,
        fields: &[Field],
        partitions: &[(String, Option<String>)],
    ) -> Result<Box<dyn Decoder>, ConnectorError> {
        Ok(match self.rows.as_ref().expect("parquet files are read by ParquetSplit") {
            Rows::Json(options) => Box::new(JsonDecoder::new(fields, options.clone())?),
            Rows::Csv(options) => {
                let in_file = |f: &&Field| !partitions.iter().any(|(name, _)| name.eq_ignore_ascii_case(&f.name));
                let all: Vec<Field> = self.schema.fields.iter().filter(in_file).cloned().collect();
                Box::new(CsvDecoder::new(&all, fields, options.clone())?)
            }
            Rows::Text => Box::new(TextDecoder::new(fields, self.whole_files)),
        })
    }

    /// The values of partition columns of a file.
    pub(crate) fn partition_values(&self, path: &Path) -> Vec<(String, Option<String>)> {
        if self.options.recursive { Vec::new() } else { partitions::values(&self.root, path) }
    }

    /// The zone that values in directory names are read in.
    pub(crate) fn time_zone(&self) -> &TimeZone {
        &self.time_zone
    }

    /// Whether files that vanished are passed over.
    pub(crate) fn ignores_missing(&self) -> bool {
        self.options.ignore_missing
    }

    /// Whether files that cannot be read are passed over.
    pub(crate) fn ignores_corrupt(&self) -> bool {
        self.options.ignore_corrupt
    }

    /// Cuts files into splits, in order.
    pub(super) fn splits(
        self: &Arc<FileReader>,
        files: &[FileEntry],
        projection: &[u32],
    ) -> Result<Vec<Box<dyn Split>>, ConnectorError> {
        let fields: Vec<Field> = projection.iter().map(|i| self.schema.fields[*i as usize].clone()).collect();
        if self.format == Format::Parquet {
            return ParquetSplit::plan(self, files, &fields);
        }
        let total: u64 = files.iter().map(|f| f.size).sum();
        let target = (total / SPLITS).clamp(*SPLIT_BYTES.start(), *SPLIT_BYTES.end());
        let mut splits: Vec<Box<dyn Split>> = Vec::new();
        let mut pieces: Vec<Piece> = Vec::new();
        let mut held = 0;
        for file in files.iter().filter(|f| f.size > 0) {
            let file = Arc::new(file.clone());
            let mut start = 0;
            while start < file.size {
                let whole = self.whole_files || super::open::is_compressed(&file.path);
                // A rest of less than half a split stays with the piece before.
                let rest = file.size - start;
                let take = if whole || rest < target * 3 / 2 { rest } else { target };
                pieces.push(Piece { file: file.clone(), start, end: start + take });
                start += take;
                held += take;
                if held >= target {
                    splits.push(Box::new(TextSplit::new(self.clone(), std::mem::take(&mut pieces), &fields)));
                    held = 0;
                }
            }
        }
        if !pieces.is_empty() {
            splits.push(Box::new(TextSplit::new(self.clone(), pieces, &fields)));
        }
        Ok(splits)
    }

    /// Whether the only column that a text file may fill is there.
    pub(super) fn check_text_columns(schema: &Schema) -> Result<(), ConnectorError> {
        let value = schema.fields.iter().find(|f| f.name.eq_ignore_ascii_case("value"));
        match value {
            Some(field) if field.data_type == DataType::String => Ok(()),
            _ => {
                let message = "a text relation has one column `value STRING`, and partition columns";
                Err(ConnectorError::new("UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE", Domain::User, message))
            }
        }
    }
}
