//! `ssql checkpoint show | state | verify`: what a checkpoint holds, as text. Nothing is changed, and the query may be
//! running.

use std::fmt::Write;
use std::path::Path;

use jiff::tz::TimeZone;
use ssql_engine::EngineError;
use ssql_engine::checkpoint::inspect::{self, BatchSummary, Summary};
use ssql_engine::checkpoint::verify;
use ssql_engine::progress::iso_millis;

use crate::render::table;

/// Batches, offsets, watermarks and sizes. Of the batches the newest `last` are shown.
pub fn show(dir: &Path, last: usize) -> Result<String, EngineError> {
    let Summary { metadata, plan, holder, batches, sources, operators, sizes } = inspect::summary(dir)?;
    let mut out = String::new();
    let mut line = |text: String| {
        out.push_str(&text);
        out.push('\n');
    };
    line(format!("query     {}", plan.query));
    line(format!("id        {}", metadata.id));
    line(format!("format    {}, made {}", metadata.version, metadata.created));
    line(format!("plan      since batch {}", plan.since));
    match holder {
        Some((who, true)) => line(format!("in use    by {who}")),
        Some((who, false)) => line(format!("last used by {who}")),
        None => {}
    }
    let committed = batches.iter().rev().find(|b| b.committed.is_some());
    line(match committed {
        Some(b) => format!("committed batch {}", b.batch),
        None => "committed nothing yet".to_owned(),
    });
    if let Some(open) = batches.iter().rfind(|b| b.committed.is_none() && b.planned.is_some()) {
        line(format!("planned   batch {}: it is running, or will be run again at the next start", open.batch));
    }
    for (i, source) in sources.iter().enumerate() {
        let compacted = source.compacted.map_or(String::new(), |b| format!(", one for all up to batch {b}"));
        line(format!("source {i}  {}: {} entries{compacted}", source.kind, source.entries));
    }
    for (n, operator) in operators.iter().enumerate() {
        let snapshots: Vec<String> = operator.snapshots.iter().map(|(b, size)| format!("{b} ({size} bytes)")).collect();
        let snapshots = if snapshots.is_empty() { "none".to_owned() } else { snapshots.join(", ") };
        let changes = operator.changes.map_or("none".to_owned(), |(a, b, bytes)| format!("{a} to {b} ({bytes} bytes)"));
        line(format!(
            "state {n}   {}: snapshots of batches {snapshots}; changes of batches {changes}",
            operator.operator
        ));
    }
    line(String::new());
    let skipped = batches.len().saturating_sub(last);
    out.push_str(&batch_table(&batches[skipped..])?);
    if skipped > 0 {
        let _ = writeln!(out, "({skipped} older batches are kept; --last N shows more)");
    }
    out.push('\n');
    for (part, bytes) in sizes {
        let _ = writeln!(out, "{bytes:>12} bytes  {part}");
    }
    Ok(out)
}

fn batch_table(batches: &[BatchSummary]) -> Result<String, EngineError> {
    let names = ["batch", "committed", "time", "offsets", "late", "evict", "watermark after"];
    let mut columns = vec![Vec::new(); names.len()];
    for b in batches {
        let planned = b.planned.as_ref();
        let micros = |f: &dyn Fn(&ssql_engine::checkpoint::PlannedBatch) -> i64| {
            planned.map_or(String::new(), |p| iso_millis(f(p)))
        };
        let offsets = planned.map_or(String::new(), |p| {
            let each = p.offsets.iter().map(|o| o.as_ref().map_or("-".to_owned(), ToString::to_string));
            each.collect::<Vec<_>>().join(" ")
        });
        let cells = [
            b.batch.to_string(),
            if b.committed.is_some() { "yes" } else { "no" }.to_owned(),
            micros(&|p| p.timestamp),
            offsets,
            micros(&|p| p.watermark.late),
            micros(&|p| p.watermark.evict),
            b.committed.as_ref().map_or(String::new(), |w| iso_millis(w.global)),
        ];
        columns.iter_mut().zip(cells).for_each(|(column, cell)| column.push(cell));
    }
    match crate::session::strings(&names, columns) {
        crate::session::Outcome::Rows { names, batches } => Ok(table(&names, &batches, &TimeZone::UTC)),
        _ => Err(EngineError::internal("a table of strings is no table")),
    }
}

/// The rows of a stateful operator's state, keys and values as columns, with their types.
pub fn state(dir: &Path, operator: usize, batch: Option<u64>, zone: &TimeZone) -> Result<String, EngineError> {
    let state = inspect::state(dir, operator, batch)?;
    let mut out = format!("state {}: {}, after batch {}\n", state.operator, state.kind, state.batch);
    if let Some(first) = state.rows.first() {
        let fields = first.schema();
        let types = fields.fields().iter().map(|f| format!("{} {}", f.name(), sql_type(f.data_type())));
        let _ = writeln!(out, "columns: {}", types.collect::<Vec<_>>().join(", "));
    }
    let rows: usize = state.rows.iter().map(|b| b.num_rows()).sum();
    out.push_str(&table(&state.columns, &state.rows, zone));
    let _ = writeln!(out, "{rows} rows");
    Ok(out)
}

/// An Arrow type by its name in SQL, as far as it has one.
fn sql_type(data_type: &arrow::datatypes::DataType) -> String {
    use arrow::datatypes::DataType as A;
    let name = match data_type {
        A::Boolean => "BOOLEAN",
        A::Int8 => "TINYINT",
        A::Int16 => "SMALLINT",
        A::Int32 => "INT",
        A::Int64 => "BIGINT",
        A::Float32 => "FLOAT",
        A::Float64 => "DOUBLE",
        A::Utf8 | A::Utf8View | A::LargeUtf8 => "STRING",
        A::Binary | A::BinaryView | A::LargeBinary => "BINARY",
        A::Date32 => "DATE",
        A::Timestamp(_, Some(_)) => "TIMESTAMP",
        A::Timestamp(_, None) => "TIMESTAMP_NTZ",
        A::Decimal128(p, s) => return format!("DECIMAL({p},{s})"),
        A::List(item) | A::LargeList(item) => return format!("ARRAY<{}>", sql_type(item.data_type())),
        A::Struct(fields) => {
            let fields = fields.iter().map(|f| format!("{}: {}", f.name(), sql_type(f.data_type())));
            return format!("STRUCT<{}>", fields.collect::<Vec<_>>().join(", "));
        }
        other => return other.to_string(),
    };
    name.to_owned()
}

/// Checks all of it: the text, and whether it is whole.
pub fn verify(dir: &Path) -> Result<(String, bool), EngineError> {
    let found = verify::verify(dir)?;
    let mut out = String::new();
    for (mark, lines) in [("ok", &found.whole), ("note", &found.notes), ("DAMAGED", &found.problems)] {
        for line in lines {
            let _ = writeln!(out, "{mark:<8} {line}");
        }
    }
    let whole = found.problems.is_empty();
    out.push_str(if whole { "the checkpoint is whole\n" } else { "the checkpoint is damaged\n" });
    Ok((out, whole))
}
