//! Single values from text, as CSV fields and directory names hold them.

use arrow::array::ArrayRef;
use arrow::buffer::Buffer;
use jiff::tz::TimeZone;
use ssql_ir::DataType;
use ssql_stdlib::{parse_date, parse_interval_as, parse_timestamp, parse_timestamp_without_zone};

use crate::columns::Column;
use crate::formats::TextFormats;
use crate::json::{decimal, is_epoch};

/// Reads a value from text into a column other than STRING and BINARY; `None` (and nothing added) if it does not suit.
pub(crate) fn push_text(column: &mut Column, text: &str, zone: &TimeZone, formats: &TextFormats) -> Option<()> {
    match column {
        Column::Boolean(c) => c.push(match text {
            t if t.eq_ignore_ascii_case("true") => true,
            t if t.eq_ignore_ascii_case("false") => false,
            _ => return None,
        }),
        Column::Int8(c) => c.push(text.parse().ok()?),
        Column::Int16(c) => c.push(text.parse().ok()?),
        Column::Int32(c) => c.push(text.parse().ok()?),
        Column::Int64(c) => c.push(text.parse().ok()?),
        Column::Float32(c) => c.push(float(text)? as f32),
        Column::Float64(c) => c.push(float(text)?),
        Column::Decimal(c, precision, scale) => c.push(decimal(text, *precision, *scale)?),
        Column::Date(c) => c.push(match &formats.date {
            Some(pattern) => pattern.date(text)?,
            None => parse_date(text).filter(|_| !is_epoch(text))?,
        }),
        Column::Timestamp(c) => c.push(match &formats.timestamp {
            Some(pattern) => pattern.instant(text, zone)?,
            None => parse_timestamp(text, zone).filter(|_| !is_epoch(text))?,
        }),
        Column::TimestampNtz(c) => c.push(match &formats.timestamp_ntz {
            Some(pattern) => pattern.wall_clock(text)?,
            None => parse_timestamp_without_zone(text)?,
        }),
        Column::DayTime(c, t) => c.push(parse_interval_as(text, t)?),
        Column::YearMonth(c, t) => c.push(i32::try_from(parse_interval_as(text, t)?).ok()?),
        _ => return None,
    }
    Some(())
}

/// A floating point value: blanks around are allowed, `NaN`, `Inf` and `-Inf` are values.
fn float(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Inf" | "+Inf" | "Infinity" | "+Infinity" => Some(f64::INFINITY),
        "-Inf" | "-Infinity" => Some(f64::NEG_INFINITY),
        _ => ssql_stdlib::text::parse_double(text),
    }
}

/// An array of one value read from text; `None` if the text does not suit the type.
pub(crate) fn cell_from_text(data_type: &DataType, text: Option<&str>, zone: &TimeZone) -> Option<ArrayRef> {
    let mut column = Column::new(data_type);
    let heap = Buffer::from(text.unwrap_or_default().as_bytes());
    match (text, &mut column) {
        (None, column) => column.push_null(),
        (Some(text), Column::String(c) | Column::Binary(c)) => c.push(&heap, 0, text.len(), 0),
        (Some(text), column) => push_text(column, text, zone, &TextFormats::default())?,
    }
    Some(column.finish(&std::iter::once(heap).collect()))
}
