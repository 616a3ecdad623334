//! `to_json`: columns of structs, maps and arrays as texts.

use arrow::array::{Array, AsArray};
use arrow::datatypes as dt;
use arrow::datatypes::{DataType as ArrowType, Field as ArrowField, TimeUnit};
use jiff::tz::TimeZone;

use super::options::Options;
use super::tape::write_quoted;
use crate::call::{Call, EvalResult};
use crate::functions::encode::write_base64;
use crate::text::{CellFormatter, write_date, write_double, write_float};
use crate::time::{MICROS_PER_SECOND, offset_at, split_micros};

/// Writes the values of one array.
struct Writer<'a> {
    array: &'a dyn Array,
    children: Vec<Writer<'a>>,
    /// Names of a struct's fields, quoted, with their colon.
    names: Vec<String>,
    options: &'a Options,
    zone: &'a TimeZone,
    keep_nulls: bool,
    /// Prints what has no form of its own, and the keys of maps.
    cells: CellFormatter<'a>,
}

impl<'a> Writer<'a> {
    fn new(cells: CellFormatter<'a>, options: &'a Options, zone: &'a TimeZone) -> Writer<'a> {
        let array = cells.array();
        let child =
            |a: &'a dyn Array, f: &ArrowField| Writer::new(CellFormatter::for_field(a, f, zone.clone()), options, zone);
        let (mut children, mut names) = (vec![], vec![]);
        match array.data_type() {
            ArrowType::List(f) => children.push(child(array.as_list::<i32>().values(), f)),
            ArrowType::Map(..) => {
                let (key, value) = array.as_map().entries_fields();
                children.push(child(array.as_map().keys(), key));
                children.push(child(array.as_map().values(), value));
            }
            ArrowType::Struct(fields) => {
                children.extend(array.as_struct().columns().iter().zip(fields).map(|(c, f)| child(c, f)));
                names.extend(fields.iter().map(|f| {
                    let mut name = String::new();
                    write_quoted(f.name(), &mut name);
                    name.push(':');
                    name
                }));
            }
            _ => {}
        }
        let keep_nulls = !options.flag("ignorenullfields", true);
        Writer { array, children, names, options, zone, keep_nulls, cells }
    }

    fn is_null(&self, row: usize) -> bool {
        self.array.is_null(row) || self.array.data_type() == &ArrowType::Null
    }

    fn write(&self, row: usize, out: &mut String) {
        if self.is_null(row) {
            out.push_str("null");
            return;
        }
        let a = self.array;
        match a.data_type() {
            ArrowType::Boolean
            | ArrowType::Int8
            | ArrowType::Int16
            | ArrowType::Int32
            | ArrowType::Int64
            | ArrowType::Decimal128(..) => self.cells.write(row, out),
            ArrowType::Float32 => {
                let v = a.as_primitive::<dt::Float32Type>().value(row);
                quoted_unless(v.is_finite(), |out| write_float(v, out), out);
            }
            ArrowType::Float64 => {
                let v = a.as_primitive::<dt::Float64Type>().value(row);
                quoted_unless(v.is_finite(), |out| write_double(v, out), out);
            }
            ArrowType::Utf8View => write_quoted(a.as_string_view().value(row), out),
            ArrowType::BinaryView => {
                out.push('"');
                write_base64(a.as_binary_view().value(row), 0, out);
                out.push('"');
            }
            ArrowType::List(_) => {
                let offsets = a.as_list::<i32>().value_offsets();
                out.push('[');
                for i in offsets[row]..offsets[row + 1] {
                    if i > offsets[row] {
                        out.push(',');
                    }
                    self.children[0].write(i as usize, out);
                }
                out.push(']');
            }
            ArrowType::Map(..) => {
                let offsets = a.as_map().value_offsets();
                out.push('{');
                for i in offsets[row]..offsets[row + 1] {
                    if i > offsets[row] {
                        out.push(',');
                    }
                    let mut key = String::new();
                    self.children[0].cells.write(i as usize, &mut key);
                    write_quoted(&key, out);
                    out.push(':');
                    self.children[1].write(i as usize, out);
                }
                out.push('}');
            }
            ArrowType::Struct(_) => {
                out.push('{');
                let mut first = true;
                for (name, child) in self.names.iter().zip(&self.children) {
                    if child.is_null(row) && !self.keep_nulls {
                        continue;
                    }
                    if !std::mem::take(&mut first) {
                        out.push(',');
                    }
                    out.push_str(name);
                    child.write(row, out);
                }
                out.push('}');
            }
            _ => {
                let mut text = String::new();
                self.write_time(row, &mut text);
                write_quoted(&text, out);
            }
        }
    }

    fn write_time(&self, row: usize, out: &mut String) {
        let a = self.array;
        match a.data_type() {
            ArrowType::Date32 => {
                let days = a.as_primitive::<dt::Date32Type>().value(row);
                if !self.options.write_date(days, out) {
                    write_date(days, out);
                }
            }
            ArrowType::Timestamp(TimeUnit::Microsecond, zone) => {
                let micros = a.as_primitive::<dt::TimestampMicrosecondType>().value(row);
                let with_zone = zone.is_some();
                let done = if with_zone {
                    self.options.write_timestamp(micros, self.zone, out)
                } else {
                    self.options.write_timestamp_ntz(micros, out)
                };
                if !done {
                    write_iso(micros, with_zone.then_some(self.zone), out);
                }
            }
            _ => self.cells.write(row, out),
        }
    }
}

fn quoted_unless(plain: bool, write: impl Fn(&mut String), out: &mut String) {
    if !plain {
        out.push('"');
    }
    write(out);
    if !plain {
        out.push('"');
    }
}

/// `2024-03-09T04:05:06.500Z`: milliseconds always, the offset from UTC if there is a zone.
pub(in crate::functions) fn write_iso(micros: i64, zone: Option<&TimeZone>, out: &mut String) {
    let offset = zone.map(|z| offset_at(z, micros));
    let (days, of_day) = split_micros(micros.saturating_add(offset.unwrap_or(0) * MICROS_PER_SECOND));
    // Every timestamp is within the days of a DATE.
    write_date(days as i32, out);
    let second = of_day / MICROS_PER_SECOND;
    let millis = of_day % MICROS_PER_SECOND / 1000;
    out.push_str(&format!("T{:02}:{:02}:{:02}.{millis:03}", second / 3600, second / 60 % 60, second % 60));
    match offset {
        None => {}
        Some(0) => out.push('Z'),
        Some(o) => {
            let sign = if o < 0 { '-' } else { '+' };
            out.push_str(&format!("{sign}{:02}:{:02}", o.abs() / 3600, o.abs() / 60 % 60));
        }
    }
}

/// `to_json(value[, options])`.
pub(super) fn to_json(c: &Call<'_>) -> EvalResult {
    let options = Options::for_printing(c, 1)?;
    let zone = options.zone(c)?;
    let array = c.raw(0);
    let writer = Writer::new(CellFormatter::for_type(array.as_ref(), c.types[0], zone.clone()), &options, &zone);
    c.strings(|row, out| {
        let row = if c.is_constant(0) { 0 } else { row };
        if writer.is_null(row) {
            return Ok(false);
        }
        writer.write(row, out);
        Ok(true)
    })
}
