//! The console sink: each batch as a table, as Spark's `show` prints it.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{Array, RecordBatch};
use jiff::tz::TimeZone;
use ssql_engine::connector::{Connector, ConnectorError, Declaration, Domain, Holder, Sink, SinkBatch, Staged};
use ssql_ir::{ConnectorDesc, LocationRule, OptionKind, OptionScope, Schema, SchemaRule, SinkDesc};
use ssql_stdlib::CellFormatter;

use crate::desc::defaulted;

/// Where the tables go.
pub type Output = Arc<Mutex<dyn Write + Send>>;

/// Longest cell that is printed whole, in characters.
const CELL: usize = 20;

/// `USING console`.
pub struct ConsoleConnector {
    desc: ConnectorDesc,
    output: Output,
}

impl Default for ConsoleConnector {
    fn default() -> ConsoleConnector {
        ConsoleConnector::new(Arc::new(Mutex::new(std::io::stdout())))
    }
}

impl ConsoleConnector {
    /// A connector that prints to `output`.
    pub fn new(output: Output) -> ConsoleConnector {
        let desc = ConnectorDesc {
            name: "console",
            summary: "Prints each batch as a table.",
            stream_source: false,
            static_source: false,
            sink: Some(SinkDesc {
                append: true,
                update: true,
                complete: true,
                durable: false,
                partitioned: false,
                continuous: true,
            }),
            schema: SchemaRule::Declared,
            location: LocationRule::Refused,
            options: vec![
                defaulted("numRows", OptionKind::Integer, "20", OptionScope::Write, "Rows printed of a batch."),
                defaulted(
                    "truncate",
                    OptionKind::Boolean,
                    "true",
                    OptionScope::Write,
                    "Cuts cells of more than 20 characters.",
                ),
            ],
        };
        ConsoleConnector { desc, output }
    }
}

impl Connector for ConsoleConnector {
    fn desc(&self) -> &ConnectorDesc {
        &self.desc
    }

    fn sink(&self, declaration: &Declaration) -> Result<Box<dyn Sink>, ConnectorError> {
        Ok(Box::new(ConsoleSink {
            schema: declaration.schema.clone(),
            rows: declaration.options.integer("numRows", 20)? as usize,
            truncate: declaration.options.boolean("truncate", true)?,
            time_zone: declaration.time_zone.clone(),
            output: self.output.clone(),
        }))
    }
}

struct ConsoleSink {
    schema: Schema,
    rows: usize,
    truncate: bool,
    time_zone: TimeZone,
    output: Output,
}

/// Rows of one partition.
struct Rows(u32, Vec<RecordBatch>);

impl Sink for ConsoleSink {
    fn description(&self) -> String {
        format!("ConsoleTable[numRows={}, truncate={}]", self.rows, self.truncate)
    }

    fn start(&self, _query: &Holder, _last_committed: Option<u64>) -> Result<(), ConnectorError> {
        Ok(())
    }

    fn write(&self, _batch: &SinkBatch<'_>, partition: u32, rows: &[RecordBatch]) -> Result<Staged, ConnectorError> {
        Ok(Box::new(Rows(partition, rows.to_vec())))
    }

    fn commit(&self, batch: &SinkBatch<'_>, staged: Vec<Staged>) -> Result<Option<u64>, ConnectorError> {
        let mut parts: Vec<Rows> = staged.into_iter().filter_map(|s| s.downcast().ok().map(|rows| *rows)).collect();
        parts.sort_by_key(|Rows(partition, _)| *partition);
        let batches: Vec<RecordBatch> = parts.into_iter().flat_map(|Rows(_, batches)| batches).collect();
        let line = "-".repeat(43);
        let mut text = format!("{line}\nBatch: {}\n{line}\n", batch.batch);
        let names: Vec<&str> = self.schema.fields.iter().map(|f| f.name.as_str()).collect();
        render(&names, &batches, self.rows, self.truncate, &self.time_zone, &mut text);
        text.push('\n');
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        output.write_all(text.as_bytes()).and_then(|()| output.flush()).map_err(|e| {
            let mut error =
                ConnectorError::new("FAILED_FILE_OPERATION", Domain::External, "cannot write to the console");
            error.source = Some(Box::new(e));
            error
        })?;
        Ok(Some(batches.iter().map(|b| b.num_rows() as u64).sum()))
    }

    fn abort(&self, _batch: &SinkBatch<'_>, _staged: Vec<Staged>) {}
}

/// Prints at most `limit` rows as a table; cells of more than 20 characters are cut if `truncate` is set.
pub fn render(
    names: &[&str],
    batches: &[RecordBatch],
    limit: usize,
    truncate: bool,
    zone: &TimeZone,
    out: &mut String,
) {
    let total: usize = batches.iter().map(RecordBatch::num_rows).sum();
    let mut table: Vec<Vec<String>> = vec![names.iter().map(|n| cut(n.to_string(), truncate)).collect()];
    for batch in batches {
        let schema = batch.schema();
        let columns: Vec<_> = (batch.columns().iter().zip(schema.fields()))
            .map(|(c, f)| (c, CellFormatter::for_field(c.as_ref(), f, zone.clone())))
            .collect();
        for row in 0..batch.num_rows().min(limit + 1 - table.len().min(limit + 1)) {
            let cell = |(array, cells): &(&arrow::array::ArrayRef, CellFormatter<'_>)| {
                let mut text = String::new();
                if array.is_null(row) || array.data_type() == &arrow::datatypes::DataType::Null {
                    text.push_str("NULL");
                } else {
                    cells.write(row, &mut text);
                }
                cut(text, truncate)
            };
            table.push(columns.iter().map(cell).collect());
        }
    }
    let width = |i: usize| table.iter().map(|row| row[i].chars().count()).max().unwrap_or(0).max(3);
    let widths: Vec<usize> = (0..names.len()).map(width).collect();
    let rule = |out: &mut String| {
        out.push('+');
        widths.iter().for_each(|w| {
            out.push_str(&"-".repeat(*w));
            out.push('+');
        });
        out.push('\n');
    };
    rule(out);
    for (i, row) in table.iter().enumerate() {
        out.push('|');
        for (cell, width) in row.iter().zip(&widths) {
            out.push_str(&match truncate {
                true => format!("{cell:>width$}|"),
                false => format!("{cell:<width$}|"),
            });
        }
        out.push('\n');
        if i == 0 {
            rule(out);
        }
    }
    rule(out);
    if total > limit {
        out.push_str(&format!("only showing top {limit} {}\n", if limit == 1 { "row" } else { "rows" }));
    }
}

/// A cell on one line, cut to 20 characters if asked for.
fn cut(text: String, truncate: bool) -> String {
    let text = match text.contains(['\n', '\r', '\t']) {
        true => text.replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t"),
        false => text,
    };
    if truncate && text.chars().count() > CELL {
        return text.chars().take(CELL - 3).chain("...".chars()).collect();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int64Array, StringViewArray};
    use ssql_engine::connector::Options;
    use ssql_ir::{DataType, EmitMode, Field};

    #[test]
    fn a_batch_prints_as_in_spark() {
        let output: Arc<Mutex<Vec<u8>>> = Arc::default();
        let schema = Schema::new(vec![Field::new("a", DataType::Int64, true), Field::new("b", DataType::String, true)]);
        let rows = RecordBatch::try_from_iter([
            ("a", Arc::new(Int64Array::from(vec![1, 2])) as _),
            ("b", Arc::new(StringViewArray::from(vec![Some("x"), None])) as _),
        ])
        .expect("two columns");
        let declaration = Declaration {
            name: "c".to_string(),
            schema,
            location: None,
            options: Options::default(),
            partition_by: Vec::new(),
            time_zone: TimeZone::UTC,
        };
        let sink = ConsoleConnector::new(output.clone()).sink(&declaration).expect("a console");
        let batch = SinkBatch { query_id: "q", batch: 0, mode: EmitMode::Append };
        let staged = sink.write(&batch, 0, &[rows]).expect("staged");
        assert_eq!(sink.commit(&batch, vec![staged]).expect("printed"), Some(2));
        let expected = "-------------------------------------------\nBatch: 0\n\
                        -------------------------------------------\n\
                        +---+----+\n|  a|   b|\n+---+----+\n|  1|   x|\n|  2|NULL|\n+---+----+\n\n";
        assert_eq!(String::from_utf8_lossy(&output.lock().expect("no one panicked")), expected);
    }

    #[test]
    fn long_cells_and_tables_are_cut() {
        let text = "abcdefghijklmnopqrstuvwxyz";
        let rows = RecordBatch::try_from_iter([("s", Arc::new(StringViewArray::from(vec![text; 3])) as _)])
            .expect("one column");
        let mut out = String::new();
        render(&["s"], &[rows.clone(), rows], 2, true, &TimeZone::UTC, &mut out);
        assert!(out.contains("|abcdefghijklmnopq...|\n"), "{out}");
        assert_eq!(out.matches("abc").count(), 2);
        assert!(out.ends_with("only showing top 2 rows\n"));
    }
}
