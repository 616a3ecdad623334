//! Rows as JSON lines, as Spark writes them: NULL members left out, timestamps to the millisecond.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{
    DataType as ArrowType, Date32Type, Decimal128Type, Field as ArrowField, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, TimeUnit, TimestampMicrosecondType,
};
use jiff::tz::TimeZone;
use ssql_stdlib::CellFormatter;
use ssql_stdlib::text::{write_date, write_decimal, write_double, write_float};

use crate::text::write_timestamp_millis;

/// Writes rows as JSON lines.
#[derive(Debug, Clone)]
pub struct JsonWriter {
    time_zone: TimeZone,
    /// Leave out NULL members (`ignoreNullFields`, true unless said otherwise).
    ignore_nulls: bool,
}

impl JsonWriter {
    /// A writer of timestamps in that zone.
    pub fn new(time_zone: TimeZone, ignore_nulls: bool) -> JsonWriter {
        JsonWriter { time_zone, ignore_nulls }
    }

    /// Appends a line a row.
    pub fn write(&self, batch: &RecordBatch, out: &mut String) {
        let schema = batch.schema();
        let members = Members::new(schema.fields().iter().map(AsRef::as_ref).zip(batch.columns()), &self.time_zone);
        for row in 0..batch.num_rows() {
            members.write(row, self.ignore_nulls, out);
            out.push('\n');
        }
    }
}

/// The members of an object, column by column.
struct Members<'a> {
    /// Names as they are written, with quotes and colon.
    members: Vec<(String, Value<'a>)>,
}

/// The values of one column.
struct Value<'a> {
    array: &'a ArrayRef,
    kind: Kind<'a>,
    zone: &'a TimeZone,
}

enum Kind<'a> {
    /// Nested columns.
    List(Box<Value<'a>>),
    Map(CellFormatter<'a>, Box<Value<'a>>),
    Struct(Members<'a>),
    /// Printed as a string by the common formatter (intervals).
    Quoted(CellFormatter<'a>),
    Plain,
}

impl<'a> Members<'a> {
    fn new<'f>(columns: impl Iterator<Item = (&'f ArrowField, &'a ArrayRef)>, zone: &'a TimeZone) -> Members<'a> {
        let members = columns
            .map(|(field, array)| {
                let mut key = String::new();
                write_string(field.name(), &mut key);
                key.push(':');
                (key, Value::new(array, field, zone))
            })
            .collect();
        Members { members }
    }

    fn write(&self, row: usize, ignore_nulls: bool, out: &mut String) {
        out.push('{');
        let mut first = true;
        for (key, value) in &self.members {
            let null = value.array.is_null(row) || value.array.data_type() == &ArrowType::Null;
            if null && ignore_nulls {
                continue;
            }
            if !first {
                out.push(',');
            }
            first = false;
            out.push_str(key);
            value.write(row, ignore_nulls, out);
        }
        out.push('}');
    }
}

impl<'a> Value<'a> {
    fn new(array: &'a ArrayRef, field: &ArrowField, zone: &'a TimeZone) -> Value<'a> {
        let kind = match array.data_type() {
            ArrowType::List(f) => Kind::List(Box::new(Value::new(array.as_list::<i32>().values(), f, zone))),
            ArrowType::Map(..) => {
                let map = array.as_map();
                let (key, value) = map.entries_fields();
                let keys = CellFormatter::for_field(map.keys().as_ref(), key, zone.clone());
                Kind::Map(keys, Box::new(Value::new(map.values(), value, zone)))
            }
            ArrowType::Struct(fields) => {
                Kind::Struct(Members::new(fields.iter().map(AsRef::as_ref).zip(array.as_struct().columns()), zone))
            }
            ArrowType::Duration(_) | ArrowType::Interval(_) => {
                Kind::Quoted(CellFormatter::for_field(array.as_ref(), field, zone.clone()))
            }
            _ => Kind::Plain,
        };
        Value { array, kind, zone }
    }

    fn write(&self, row: usize, ignore_nulls: bool, out: &mut String) {
        if self.array.is_null(row) {
            return out.push_str("null");
        }
        match &self.kind {
            Kind::List(items) => {
                out.push('[');
                let offsets = self.array.as_list::<i32>().value_offsets();
                for i in offsets[row]..offsets[row + 1] {
                    if i > offsets[row] {
                        out.push(',');
                    }
                    items.write(i as usize, ignore_nulls, out);
                }
                out.push(']');
            }
            Kind::Map(keys, values) => {
                out.push('{');
                let offsets = self.array.as_map().value_offsets();
                let mut key = String::new();
                for i in offsets[row]..offsets[row + 1] {
                    if i > offsets[row] {
                        out.push(',');
                    }
                    key.clear();
                    keys.write(i as usize, &mut key);
                    write_string(&key, out);
                    out.push(':');
                    values.write(i as usize, ignore_nulls, out);
                }
                out.push('}');
            }
            Kind::Struct(members) => members.write(row, ignore_nulls, out),
            Kind::Quoted(cells) => {
                let mut text = String::new();
                cells.write(row, &mut text);
                write_string(&text, out);
            }
            Kind::Plain => self.write_plain(row, out),
        }
    }

    fn write_plain(&self, row: usize, out: &mut String) {
        let array = self.array;
        match array.data_type() {
            ArrowType::Boolean => out.push_str(if array.as_boolean().value(row) { "true" } else { "false" }),
            ArrowType::Int8 => integer(array.as_primitive::<Int8Type>().value(row).into(), out),
            ArrowType::Int16 => integer(array.as_primitive::<Int16Type>().value(row).into(), out),
            ArrowType::Int32 => integer(array.as_primitive::<Int32Type>().value(row).into(), out),
            ArrowType::Int64 => integer(array.as_primitive::<Int64Type>().value(row), out),
            ArrowType::Float32 => {
                let v = array.as_primitive::<Float32Type>().value(row);
                quoted_unless(v.is_finite(), out, |out| write_float(v, out));
            }
            ArrowType::Float64 => {
                let v = array.as_primitive::<Float64Type>().value(row);
                quoted_unless(v.is_finite(), out, |out| write_double(v, out));
            }
            ArrowType::Decimal128(_, scale) => {
                write_decimal(array.as_primitive::<Decimal128Type>().value(row), *scale as u8, out);
            }
            ArrowType::Utf8View => write_string(array.as_string_view().value(row), out),
            ArrowType::BinaryView => write_base64(array.as_binary_view().value(row), out),
            ArrowType::Date32 => {
                let days = array.as_primitive::<Date32Type>().value(row);
                quoted_unless(false, out, |out| write_date(days, out));
            }
            ArrowType::Timestamp(TimeUnit::Microsecond, zone) => {
                let micros = array.as_primitive::<TimestampMicrosecondType>().value(row);
                let zone = zone.is_some().then_some(self.zone);
                quoted_unless(false, out, |out| write_timestamp_millis(micros, zone, out));
            }
            // What is left is VOID, and NULLs were written before.
            _ => out.push_str("null"),
        }
    }
}

fn integer(value: i64, out: &mut String) {
    out.push_str(itoa::Buffer::new().format(value));
}

fn quoted_unless(bare: bool, out: &mut String, write: impl FnOnce(&mut String)) {
    if !bare {
        out.push('"');
    }
    write(out);
    if !bare {
        out.push('"');
    }
}

/// Writes a string with quotes and escapes.
fn write_string(text: &str, out: &mut String) {
    out.push('"');
    let mut from = 0;
    for (at, b) in text.bytes().enumerate() {
        if b >= 0x20 && b != b'"' && b != b'\\' {
            continue;
        }
        out.push_str(&text[from..at]);
        match b {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            8 => out.push_str("\\b"),
            12 => out.push_str("\\f"),
            _ => out.push_str(&format!("\\u{b:04X}")),
        }
        from = at + 1;
    }
    out.push_str(&text[from..]);
    out.push('"');
}

fn write_base64(bytes: &[u8], out: &mut String) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    out.push('"');
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0u32, |w, b| w << 8 | u32::from(*b)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * i) & 63) as usize] as char;
            out.push(if i <= chunk.len() { digit } else { '=' });
        }
    }
    out.push('"');
}
