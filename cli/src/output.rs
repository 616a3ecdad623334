//! Rows in the format that the user asked for.

use std::io::Write as _;

use arrow::array::RecordBatch;
use arrow_ipc::writer::StreamWriter;
use jiff::tz::TimeZone;
use ssql_connectors::csv::{CsvWriter, CsvWriterOptions};
use ssql_connectors::json::JsonWriter;
use ssql_engine::connector::Options;

use crate::render::{out, table};
use crate::session::Outcome;

/// How rows are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// An aligned table.
    #[default]
    Table,
    /// CSV with a header.
    Csv,
    /// One JSON array of objects a result.
    Json,
    /// One JSON object a line.
    Ndjson,
    /// An Arrow IPC stream a result.
    Arrow,
}

impl Format {
    /// The format of that name.
    pub fn named(name: &str) -> Option<Format> {
        <Format as clap::ValueEnum>::from_str(name, true).ok()
    }

    /// A result in this format.
    ///
    /// # Errors
    /// A type that the format cannot hold.
    pub fn bytes(self, names: &[String], batches: &[RecordBatch], zone: &TimeZone) -> Result<Vec<u8>, String> {
        match self {
            Format::Table => Ok(table(names, batches, zone).into_bytes()),
            Format::Csv => csv(batches, zone),
            Format::Ndjson => Ok(json_lines(batches, zone).into_bytes()),
            Format::Json => {
                let lines = json_lines(batches, zone);
                let rows: Vec<&str> = lines.lines().collect();
                let inner = if rows.is_empty() { String::new() } else { format!("\n{}\n", rows.join(",\n")) };
                Ok(format!("[{inner}]\n").into_bytes())
            }
            Format::Arrow => arrow_stream(batches),
        }
    }
}

fn json_lines(batches: &[RecordBatch], zone: &TimeZone) -> String {
    let writer = JsonWriter::new(zone.clone(), false);
    let mut text = String::new();
    batches.iter().for_each(|b| writer.write(b, &mut text));
    text
}

fn csv(batches: &[RecordBatch], zone: &TimeZone) -> Result<Vec<u8>, String> {
    let options = Options::new([("header".to_owned(), "true".to_owned())]);
    let writer = CsvWriter::new(CsvWriterOptions::new(&options, zone).map_err(|e| e.message)?);
    let mut text = String::new();
    if let Some(first) = batches.first() {
        writer.write_header(first, &mut text);
    }
    batches.iter().for_each(|b| writer.write(b, &mut text));
    Ok(text.into_bytes())
}

fn arrow_stream(batches: &[RecordBatch]) -> Result<Vec<u8>, String> {
    let Some(first) = batches.first() else { return Ok(Vec::new()) };
    let mut bytes = Vec::new();
    let written = (|| {
        let mut writer = StreamWriter::try_new(&mut bytes, &first.schema())?;
        batches.iter().try_for_each(|b| writer.write(b))?;
        writer.finish()
    })();
    written.map_err(|e| format!("the rows have no Arrow IPC form: {e}"))?;
    Ok(bytes)
}

/// Prints what a statement gave: rows and asked-for text to standard output, remarks to standard error.
pub fn print(outcome: &Outcome, format: Format, zone: &TimeZone) {
    match outcome {
        Outcome::Done => {}
        Outcome::Message(text) => eprintln!("{text}"),
        Outcome::Text(text) => out(&format!("{}\n", text.trim_end())),
        Outcome::Rows { names, batches } => match format.bytes(names, batches, zone) {
            // A reader that has gone away is no failure of ours.
            Ok(bytes) => drop(std::io::stdout().lock().write_all(&bytes)),
            Err(message) => eprintln!("error: {message}"),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int64Array, StringViewArray};

    use super::*;

    #[test]
    fn each_format_holds_the_same_rows() {
        let k = StringViewArray::from(vec![Some("a,b"), None]);
        let batch = RecordBatch::try_from_iter_with_nullable([
            ("k", Arc::new(k) as _, true),
            ("n", Arc::new(Int64Array::from(vec![1, 2])) as _, false),
        ])
        .expect("a batch");
        let names = ["k".to_owned(), "n".to_owned()];
        let text = |format: Format| {
            let bytes = format.bytes(&names, std::slice::from_ref(&batch), &TimeZone::UTC).expect("it has a form");
            String::from_utf8(bytes).expect("text")
        };
        assert_eq!(text(Format::Csv), "k,n\n\"a,b\",1\n,2\n");
        assert_eq!(text(Format::Ndjson), "{\"k\":\"a,b\",\"n\":1}\n{\"k\":null,\"n\":2}\n");
        assert_eq!(text(Format::Json), "[\n{\"k\":\"a,b\",\"n\":1},\n{\"k\":null,\"n\":2}\n]\n");
        let bytes = Format::Arrow.bytes(&names, std::slice::from_ref(&batch), &TimeZone::UTC).expect("a stream");
        let back: Vec<RecordBatch> = arrow_ipc::reader::StreamReader::try_new(bytes.as_slice(), None)
            .expect("a stream")
            .map(|b| b.expect("a batch"))
            .collect();
        assert_eq!(back, [batch]);
    }
}
