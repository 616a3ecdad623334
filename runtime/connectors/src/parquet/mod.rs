//! Parquet: reading row groups with projection, and the writer's settings.

mod read;
mod write;

pub(crate) use read::{ParquetSplit, file_schema};
pub(crate) use write::{suffix, writer_properties};
