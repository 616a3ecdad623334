//! CSV: reading lines into columns by position, and writing.

mod decoder;
mod write;

#[cfg(test)]
mod tests;

pub use decoder::{CsvDecoder, CsvOptions};
pub use write::{CsvWriter, CsvWriterOptions};
