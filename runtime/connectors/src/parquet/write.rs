//! How Parquet files are written: for speed, and small enough.

use ::parquet::basic::{Compression, GzipLevel, ZstdLevel};
use ::parquet::file::properties::{EnabledStatistics, WriterProperties};
use ::parquet::schema::types::ColumnPath;
use arrow::datatypes::{DataType as ArrowType, Schema};
use ssql_engine::connector::{ConnectorError, Options};

/// Settings for files of these columns.
///
/// Statistics are kept for whole column chunks, which is what readers prune by. Dictionaries are left out for floating
/// point and decimal columns, whose values hardly repeat: filling one and falling back costs more than it saves.
pub(crate) fn writer_properties(schema: &Schema, options: &Options) -> Result<WriterProperties, ConnectorError> {
    let compression = match options.get("compression").map(str::to_lowercase).as_deref() {
        None | Some("snappy") => Compression::SNAPPY,
        Some("zstd") => Compression::ZSTD(ZstdLevel::default()),
        Some("gzip") => Compression::GZIP(GzipLevel::default()),
        Some("lz4") => Compression::LZ4_RAW,
        Some("none" | "uncompressed") => Compression::UNCOMPRESSED,
        Some(other) => {
            return Err(ConnectorError::bad_option("compression", other, "snappy, zstd, gzip, lz4 or none"));
        }
    };
    let mut properties = WriterProperties::builder()
        .set_compression(compression)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true);
    for field in schema.fields() {
        if matches!(field.data_type(), ArrowType::Float32 | ArrowType::Float64 | ArrowType::Decimal128(..)) {
            properties = properties.set_column_dictionary_enabled(ColumnPath::from(field.name().as_str()), false);
        }
    }
    Ok(properties.build())
}

/// The name of the compression in file names, as Spark has it.
pub(crate) fn suffix(options: &Options) -> &'static str {
    match options.get("compression").map(str::to_lowercase).as_deref() {
        Some("zstd") => ".zstd",
        Some("gzip") => ".gz",
        Some("lz4") => ".lz4",
        Some("none" | "uncompressed") => "",
        _ => ".snappy",
    }
}
