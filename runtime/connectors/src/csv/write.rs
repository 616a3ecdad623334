//! Rows as CSV lines, as Spark writes them.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType as ArrowType, TimeUnit, TimestampMicrosecondType};
use jiff::tz::TimeZone;
use ssql_engine::connector::{ConnectorError, Options};
use ssql_stdlib::CellFormatter;

use super::decoder::{character, separator};
use crate::formats::time_zone;
use crate::text::write_timestamp_millis;

/// How CSV is written; the names are Spark's.
#[derive(Debug, Clone)]
pub struct CsvWriterOptions {
    /// `header`: the first line of a file names the columns.
    pub header: bool,
    separator: char,
    quote: char,
    escape: char,
    quote_all: bool,
    null_value: String,
    empty_value: String,
    trim_left: bool,
    trim_right: bool,
    time_zone: TimeZone,
}

impl CsvWriterOptions {
    /// Reads the options of a sink.
    pub fn new(options: &Options, session: &TimeZone) -> Result<CsvWriterOptions, ConnectorError> {
        Ok(CsvWriterOptions {
            header: options.boolean("header", false)?,
            separator: separator(options)?.into(),
            quote: character(options, "quote", Some(b'"'))?.unwrap_or(0).into(),
            escape: character(options, "escape", Some(b'\\'))?.unwrap_or(0).into(),
            quote_all: options.boolean("quoteAll", false)?,
            null_value: options.get("nullValue").unwrap_or("").to_string(),
            empty_value: options.get("emptyValue").unwrap_or("\"\"").to_string(),
            trim_left: options.boolean("ignoreLeadingWhiteSpace", true)?,
            trim_right: options.boolean("ignoreTrailingWhiteSpace", true)?,
            time_zone: time_zone(options, session)?,
        })
    }
}

/// Writes rows as CSV lines.
#[derive(Debug, Clone)]
pub struct CsvWriter {
    options: CsvWriterOptions,
}

impl CsvWriter {
    /// A writer with those options.
    pub fn new(options: CsvWriterOptions) -> CsvWriter {
        CsvWriter { options }
    }

    /// Appends the line of column names, if one is wanted.
    pub fn write_header(&self, batch: &RecordBatch, out: &mut String) {
        if self.options.header {
            for (i, field) in batch.schema().fields().iter().enumerate() {
                if i > 0 {
                    out.push(self.options.separator);
                }
                self.field(field.name(), out);
            }
            out.push('\n');
        }
    }

    /// Appends a line a row.
    pub fn write(&self, batch: &RecordBatch, out: &mut String) {
        let zone = &self.options.time_zone;
        let schema = batch.schema();
        let cells: Vec<_> = (batch.columns().iter().zip(schema.fields()))
            .map(|(c, f)| CellFormatter::for_field(c.as_ref(), f, zone.clone()))
            .collect();
        let mut text = String::new();
        for row in 0..batch.num_rows() {
            for (i, column) in batch.columns().iter().enumerate() {
                if i > 0 {
                    out.push(self.options.separator);
                }
                if column.is_null(row) || column.data_type() == &ArrowType::Null {
                    // Spark quotes even a NULL where all is quoted.
                    match self.options.quote_all {
                        true => self.quoted(&self.options.null_value, out),
                        false => out.push_str(&self.options.null_value),
                    }
                    continue;
                }
                text.clear();
                match column.data_type() {
                    ArrowType::Timestamp(TimeUnit::Microsecond, zoned) => {
                        let micros = column.as_primitive::<TimestampMicrosecondType>().value(row);
                        write_timestamp_millis(micros, zoned.is_some().then_some(zone), &mut text);
                    }
                    _ => cells[i].write(row, &mut text),
                }
                self.field(&text, out);
            }
            out.push('\n');
        }
    }

    fn field(&self, text: &str, out: &mut String) {
        let o = &self.options;
        if text.is_empty() {
            return match o.quote_all {
                true => self.quoted("", out),
                false => out.push_str(&o.empty_value),
            };
        }
        let mut text = text;
        if o.trim_left {
            text = text.trim_start_matches([' ', '\t']);
        }
        if o.trim_right {
            text = text.trim_end_matches([' ', '\t']);
        }
        let needs = |c: char| c == o.separator || c == o.quote || c == '\n' || c == '\r';
        if o.quote_all || text.contains(needs) { self.quoted(text, out) } else { out.push_str(text) }
    }

    fn quoted(&self, text: &str, out: &mut String) {
        let o = &self.options;
        out.push(o.quote);
        for c in text.chars() {
            if c == o.quote || (c == o.escape && o.escape != o.quote) {
                out.push(o.escape);
            }
            out.push(c);
        }
        out.push(o.quote);
    }
}
