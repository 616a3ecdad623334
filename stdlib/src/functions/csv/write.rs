//! `to_csv`.

use std::fmt::Write as _;

use arrow::array::{Array, AsArray};
use arrow::datatypes as dt;
use arrow::datatypes::{DataType as ArrowType, TimeUnit};
use jiff::tz::TimeZone;

use super::split::Dialect;
use crate::call::{Call, EvalResult};
use crate::functions::json::{Options, write_iso};
use crate::text::{CellFormatter, write_date};

/// How values become fields.
struct Writer<'a> {
    options: &'a Options,
    dialect: Dialect,
    zone: &'a TimeZone,
    quote_all: bool,
    escape_quotes: bool,
}

impl Writer<'_> {
    /// The plain text of a value that is not NULL.
    fn text(&self, cells: &CellFormatter<'_>, row: usize, out: &mut String) {
        let a = cells.array();
        match a.data_type() {
            ArrowType::Date32 => {
                let days = a.as_primitive::<dt::Date32Type>().value(row);
                if !self.options.write_date(days, out) {
                    write_date(days, out);
                }
            }
            ArrowType::Timestamp(TimeUnit::Microsecond, zone) => {
                let micros = a.as_primitive::<dt::TimestampMicrosecondType>().value(row);
                let zone = zone.is_some().then_some(self.zone);
                let done = match zone {
                    Some(zone) => self.options.write_timestamp(micros, zone, out),
                    None => self.options.write_timestamp_ntz(micros, out),
                };
                if !done {
                    write_iso(micros, zone, out);
                }
            }
            ArrowType::BinaryView => {
                // Bytes are shown as two digits each.
                out.push('[');
                for (i, b) in a.as_binary_view().value(row).iter().enumerate() {
                    let gap = if i > 0 { " " } else { "" };
                    // Writing to a string does not fail.
                    let _ = write!(out, "{gap}{b:02X}");
                }
                out.push(']');
            }
            _ => cells.write(row, out),
        }
    }

    fn field(&self, text: &str, is_text: bool, out: &mut String) {
        let d = &self.dialect;
        if is_text && text.is_empty() {
            out.push_str(d.empty());
            return;
        }
        let text = d.trimmed(text);
        let Some(quote) = d.quote else { return out.push_str(text) };
        let first = text.chars().next();
        let needed = self.quote_all
            || text.contains(&d.separator)
            || text.contains(['\n', '\r'])
            || first == Some(d.comment.unwrap_or('#'))
            || (self.escape_quotes && text.contains(quote));
        if !needed {
            out.push_str(text);
            return;
        }
        out.push(quote);
        for c in text.chars() {
            if c == quote {
                out.extend(d.escape);
            }
            out.push(c);
        }
        out.push(quote);
    }
}

/// `to_csv(struct[, options])`.
pub(super) fn to_csv(c: &Call<'_>) -> EvalResult {
    let array = c.raw(0);
    let (Some(structs), ssql_ir::DataType::Struct(fields)) = (array.as_struct_opt(), c.types[0]) else {
        return Ok(c.all_null());
    };
    let options = Options::for_printing(c, 1)?;
    let zone = options.zone(c)?;
    let writer = Writer {
        options: &options,
        dialect: Dialect::of(&options, "\"\"", true)?,
        zone: &zone,
        quote_all: options.flag("quoteall", false),
        escape_quotes: options.flag("escapequotes", true),
    };
    let cells: Vec<(CellFormatter<'_>, bool)> = structs
        .columns()
        .iter()
        .zip(fields)
        .map(|(column, field)| {
            let cells = CellFormatter::for_type(column.as_ref(), &field.data_type, zone.clone());
            (cells, field.data_type == ssql_ir::DataType::String)
        })
        .collect();
    let mut text = String::new();
    c.strings(|row, out| {
        let row = if c.is_constant(0) { 0 } else { row };
        if structs.is_null(row) {
            return Ok(false);
        }
        for (i, (cells, is_text)) in cells.iter().enumerate() {
            if i > 0 {
                out.push_str(&writer.dialect.separator);
            }
            let a = cells.array();
            if a.is_null(row) || a.data_type() == &ArrowType::Null {
                out.push_str(&writer.dialect.null);
                continue;
            }
            text.clear();
            writer.text(cells, row, &mut text);
            writer.field(&text, *is_text, out);
        }
        Ok(true)
    })
}
