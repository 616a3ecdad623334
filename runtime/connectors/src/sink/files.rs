//! Writing one file of each format.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use ::parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use ::parquet::file::properties::WriterProperties;
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::Schema as ArrowSchema;
use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::tz::TimeZone;
use ssql_engine::connector::{ConnectorError, Domain, Options};
use ssql_ir::{DataType, Field, Schema};
use ssql_stdlib::arrow_schema;

use crate::csv::{CsvWriter, CsvWriterOptions};
use crate::file::Format;
use crate::json::JsonWriter;
use crate::parquet;

/// Text gathered before it goes to the file, in bytes.
const TEXT_BUFFER: usize = 1 << 20;

/// A format with its settings.
pub(super) struct FileFormat {
    kind: Kind,
    format: Format,
    compression: TextCompression,
    suffix: String,
}

enum Kind {
    Parquet(Box<WriterProperties>),
    Json(JsonWriter),
    Csv(Box<CsvWriter>),
    Text,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextCompression {
    None,
    Gzip,
    Zstd,
}

impl FileFormat {
    pub(super) fn new(
        format: Format,
        fields: &[Field],
        options: &Options,
        session: &TimeZone,
    ) -> Result<FileFormat, ConnectorError> {
        let zone = || crate::formats::time_zone(options, session);
        let kind = match format {
            Format::Parquet => {
                let schema: std::sync::Arc<ArrowSchema> = arrow_schema(&Schema::new(fields.to_vec()));
                Kind::Parquet(Box::new(parquet::writer_properties(&schema, options)?))
            }
            Format::Json => Kind::Json(JsonWriter::new(zone()?, options.boolean("ignoreNullFields", true)?)),
            Format::Csv => Kind::Csv(Box::new(CsvWriter::new(CsvWriterOptions::new(options, session)?))),
            Format::Text => Kind::Text,
        };
        let refused = match format {
            Format::Csv => fields.iter().find(|f| f.data_type.is_nested()),
            Format::Text => fields.iter().find(|f| f.data_type != DataType::String).or(fields.get(1)),
            Format::Parquet => fields.iter().find(|f| f.data_type == DataType::Null),
            Format::Json => None,
        };
        if let Some(field) = refused {
            let message = match format {
                Format::Text => "a text sink takes one STRING column, and partition columns".to_string(),
                _ => format!("column `{}`: {format} files cannot hold {}", field.name, field.data_type),
            };
            return Err(ConnectorError::new("UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE", Domain::User, message));
        }
        let compression = match options.get("compression").map(str::to_lowercase).as_deref() {
            _ if format == Format::Parquet => TextCompression::None,
            None | Some("none" | "uncompressed") => TextCompression::None,
            Some("gzip") => TextCompression::Gzip,
            Some("zstd") => TextCompression::Zstd,
            Some(other) => return Err(ConnectorError::bad_option("compression", other, "none, gzip or zstd")),
        };
        let end = match compression {
            TextCompression::None => "",
            TextCompression::Gzip => ".gz",
            TextCompression::Zstd => ".zst",
        };
        let suffix = match format {
            Format::Parquet => format!("{}.parquet", parquet::suffix(options)),
            Format::Text => format!(".txt{end}"),
            Format::Json | Format::Csv => format!(".{format}{end}"),
        };
        Ok(FileFormat { kind, format, compression, suffix })
    }

    pub(super) fn name(&self) -> &'static str {
        self.format.name()
    }

    /// End of file names.
    pub(super) fn suffix(&self) -> &str {
        &self.suffix
    }

    /// Writes rows (at least one batch) as a whole file.
    pub(super) fn write(&self, file: &File, rows: &[RecordBatch]) -> io::Result<()> {
        if let Kind::Parquet(properties) = &self.kind {
            return write_parquet(file, properties, rows);
        }
        match self.compression {
            TextCompression::None => {
                let mut file = file;
                self.write_text(&mut file, rows)
            }
            TextCompression::Gzip => {
                let mut encoder = GzEncoder::new(BufWriter::new(file), Compression::default());
                self.write_text(&mut encoder, rows)?;
                encoder.finish()?.flush()
            }
            TextCompression::Zstd => {
                let mut encoder = zstd::Encoder::new(BufWriter::new(file), 0)?;
                self.write_text(&mut encoder, rows)?;
                encoder.finish()?.flush()
            }
        }
    }

    fn write_text(&self, out: &mut dyn Write, rows: &[RecordBatch]) -> io::Result<()> {
        let mut text = String::with_capacity(TEXT_BUFFER + TEXT_BUFFER / 4);
        if let (Kind::Csv(writer), Some(first)) = (&self.kind, rows.first()) {
            writer.write_header(first, &mut text);
        }
        // Batches are cut so that the text in memory stays small however long the rows are.
        const ROWS: usize = 1024;
        for batch in rows {
            for from in (0..batch.num_rows()).step_by(ROWS) {
                let part = batch.slice(from, ROWS.min(batch.num_rows() - from));
                match &self.kind {
                    Kind::Json(writer) => writer.write(&part, &mut text),
                    Kind::Csv(writer) => writer.write(&part, &mut text),
                    Kind::Text => {
                        let values = part.column(0).as_string_view();
                        for row in 0..part.num_rows() {
                            text.push_str(if values.is_null(row) { "" } else { values.value(row) });
                            text.push('\n');
                        }
                    }
                    Kind::Parquet(_) => unreachable!("parquet is no text"),
                }
                if text.len() >= TEXT_BUFFER {
                    out.write_all(text.as_bytes())?;
                    text.clear();
                }
            }
        }
        out.write_all(text.as_bytes())
    }
}

fn write_parquet(file: &File, properties: &WriterProperties, rows: &[RecordBatch]) -> io::Result<()> {
    // Without the Arrow schema in the file, other readers see plain Parquet types, not our views.
    let options = ArrowWriterOptions::new().with_properties(properties.clone()).with_skip_arrow_metadata(true);
    let mut writer = ArrowWriter::try_new_with_options(file, rows[0].schema(), options).map_err(io::Error::other)?;
    for batch in rows {
        writer.write(batch).map_err(io::Error::other)?;
    }
    writer.close().map_err(io::Error::other)?;
    Ok(())
}
