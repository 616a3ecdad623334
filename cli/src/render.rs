//! Rows as text: aligned tables for people, and the cells of test files.

use std::io::Write;

use arrow::array::{Array, RecordBatch};
use jiff::tz::TimeZone;
use ssql_stdlib::CellFormatter;

/// Writes to standard output. A reader that has gone away (`| head`) is no failure of ours.
pub fn out(text: &str) {
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

/// The cells of these batches as Spark's `CAST(x AS STRING)` prints them; `None` is NULL.
pub fn cells(batches: &[RecordBatch], time_zone: &TimeZone) -> Vec<Vec<Option<String>>> {
    let mut rows = Vec::new();
    for batch in batches {
        let schema = batch.schema();
        let formatters: Vec<CellFormatter<'_>> = (batch.columns().iter().zip(schema.fields()))
            .map(|(c, f)| CellFormatter::for_field(c.as_ref(), f, time_zone.clone()))
            .collect();
        for row in 0..batch.num_rows() {
            let cell = |(column, formatter): (&arrow::array::ArrayRef, &CellFormatter<'_>)| {
                if column.is_null(row) || column.data_type().is_null() {
                    return None;
                }
                let mut text = String::new();
                formatter.write(row, &mut text);
                Some(text)
            };
            rows.push(batch.columns().iter().zip(&formatters).map(cell).collect());
        }
    }
    rows
}

/// An aligned table with a header, and the number of rows below it.
pub fn table(names: &[String], batches: &[RecordBatch], time_zone: &TimeZone) -> String {
    let rows = cells(batches, time_zone);
    let shown = |cell: &Option<String>| match cell {
        Some(text) => text.replace('\n', "\\n"),
        None => "NULL".to_owned(),
    };
    let mut widths: Vec<usize> = names.iter().map(|n| n.chars().count()).collect();
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(shown(cell).chars().count());
        }
    }
    let is_number: Vec<bool> = match batches.first() {
        Some(batch) => batch.columns().iter().map(|c| c.data_type().is_numeric()).collect(),
        None => vec![false; names.len()],
    };
    let rule: String = widths.iter().map(|w| format!("+{}", "-".repeat(w + 2))).collect::<String>() + "+\n";
    let line = |texts: Vec<String>| {
        let mut out = String::new();
        for ((text, &width), &right) in texts.iter().zip(&widths).zip(&is_number) {
            let pad = " ".repeat(width - text.chars().count());
            match right {
                true => out.push_str(&format!("| {pad}{text} ")),
                false => out.push_str(&format!("| {text}{pad} ")),
            }
        }
        out + "|\n"
    };
    let mut out = rule.clone() + &line(names.to_vec()) + &rule;
    for row in &rows {
        out.push_str(&line(row.iter().map(shown).collect()));
    }
    out.push_str(&rule);
    out.push_str(&match rows.len() {
        1 => "1 row\n".to_owned(),
        n => format!("{n} rows\n"),
    });
    out
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int64Array, StringViewArray};

    use super::*;

    #[test]
    fn numbers_stand_right_and_null_is_named() {
        let k = StringViewArray::from(vec![Some("a"), None]);
        let n = Int64Array::from(vec![1, 100]);
        let batch = RecordBatch::try_from_iter([("k", Arc::new(k) as _), ("n", Arc::new(n) as _)]).expect("a batch");
        let names = vec!["k".to_owned(), "n".to_owned()];
        let expected = "\
+------+-----+
| k    |   n |
+------+-----+
| a    |   1 |
| NULL | 100 |
+------+-----+
2 rows
";
        assert_eq!(table(&names, &[batch], &TimeZone::UTC), expected);
    }
}
