//! Printing of cells.

use arrow::array::{Array, AsArray};
use arrow::datatypes as dt;
use arrow::datatypes::{DataType as ArrowType, Field as ArrowField, IntervalUnit as ArrowInterval, TimeUnit};
use jiff::tz::TimeZone;
use ssql_ir::{self as ir, DayTimeField, YearMonthField};

use super::interval::{write_day_time, write_fraction, write_year_month};
use super::number::{write_decimal, write_double, write_float};
use crate::arrow::interval_of_field;
use crate::time::{MICROS_PER_SECOND, civil_from_days, split_micros, to_local};

/// Prints the cells of a column as Spark's `CAST(x AS STRING)` does.
pub struct CellFormatter<'a> {
    array: &'a dyn Array,
    zone: TimeZone,
    /// The fields that an interval shows; Arrow's types do not say them.
    day_time: (DayTimeField, DayTimeField),
    year_month: (YearMonthField, YearMonthField),
    /// Formatters of the columns inside a nested array.
    children: Vec<CellFormatter<'a>>,
}

impl<'a> CellFormatter<'a> {
    /// A formatter of `array`; instants are shown in `zone`, intervals with all their fields.
    pub fn new(array: &'a dyn Array, zone: TimeZone) -> CellFormatter<'a> {
        let child = |a: &'a dyn Array, f: &ArrowField| CellFormatter::for_field(a, f, zone.clone());
        let children = match array.data_type() {
            ArrowType::List(f) => vec![child(array.as_list::<i32>().values(), f)],
            ArrowType::Map(..) => {
                let map = array.as_map();
                let (key, value) = map.entries_fields();
                vec![child(map.keys(), key), child(map.values(), value)]
            }
            ArrowType::Struct(fields) => {
                array.as_struct().columns().iter().zip(fields).map(|(c, f)| child(c, f)).collect()
            }
            _ => vec![],
        };
        CellFormatter {
            array,
            zone,
            day_time: (DayTimeField::Day, DayTimeField::Second),
            year_month: (YearMonthField::Year, YearMonthField::Month),
            children,
        }
    }

    /// A formatter of a column of that field: an interval shows the fields that [`crate::arrow_field`] noted in it.
    pub fn for_field(array: &'a dyn Array, field: &ArrowField, zone: TimeZone) -> CellFormatter<'a> {
        match interval_of_field(field) {
            Some(t) => CellFormatter::for_type(array, &t, zone),
            None => CellFormatter::new(array, zone),
        }
    }

    /// A formatter of values of that dialect type.
    pub fn for_type(array: &'a dyn Array, t: &ir::DataType, zone: TimeZone) -> CellFormatter<'a> {
        let mut cells = CellFormatter::new(array, zone);
        match t {
            ir::DataType::DayTimeInterval(first, last) => cells.day_time = (*first, *last),
            ir::DataType::YearMonthInterval(first, last) => cells.year_month = (*first, *last),
            _ => {}
        }
        cells
    }

    /// The column.
    pub(crate) fn array(&self) -> &'a dyn Array {
        self.array
    }

    /// Appends the text of the cell in `row`. A NULL cell writes `NULL`; callers that show NULL in another way look first.
    /// Inside nested values NULL is `null`.
    pub fn write(&self, row: usize, out: &mut String) {
        if self.array.is_null(row) || self.array.data_type() == &ArrowType::Null {
            out.push_str("NULL");
        } else {
            self.write_value(row, out);
        }
    }

    fn write_nested(&self, row: usize, out: &mut String) {
        if self.array.is_null(row) || self.array.data_type() == &ArrowType::Null {
            out.push_str("null");
        } else {
            self.write_value(row, out);
        }
    }

    fn write_value(&self, row: usize, out: &mut String) {
        let a = self.array;
        macro_rules! int {
            ($t:ty) => {
                out.push_str(itoa::Buffer::new().format(a.as_primitive::<$t>().value(row)))
            };
        }
        match a.data_type() {
            ArrowType::Boolean => out.push_str(if a.as_boolean().value(row) { "true" } else { "false" }),
            ArrowType::Int8 => int!(dt::Int8Type),
            ArrowType::Int16 => int!(dt::Int16Type),
            ArrowType::Int32 => int!(dt::Int32Type),
            ArrowType::Int64 => int!(dt::Int64Type),
            ArrowType::Float32 => write_float(a.as_primitive::<dt::Float32Type>().value(row), out),
            ArrowType::Float64 => write_double(a.as_primitive::<dt::Float64Type>().value(row), out),
            ArrowType::Decimal128(_, s) => {
                write_decimal(a.as_primitive::<dt::Decimal128Type>().value(row), (*s).max(0) as u8, out);
            }
            ArrowType::Utf8View => out.push_str(a.as_string_view().value(row)),
            ArrowType::BinaryView => out.push_str(&String::from_utf8_lossy(a.as_binary_view().value(row))),
            ArrowType::Date32 => write_date(a.as_primitive::<dt::Date32Type>().value(row), out),
            ArrowType::Timestamp(TimeUnit::Microsecond, zone) => {
                let micros = a.as_primitive::<dt::TimestampMicrosecondType>().value(row);
                write_timestamp(if zone.is_some() { to_local(&self.zone, micros) } else { micros }, out);
            }
            ArrowType::Duration(TimeUnit::Microsecond) => {
                let micros = a.as_primitive::<dt::DurationMicrosecondType>().value(row);
                write_day_time(micros, self.day_time.0, self.day_time.1, out);
            }
            ArrowType::Interval(ArrowInterval::YearMonth) => {
                let months = a.as_primitive::<dt::IntervalYearMonthType>().value(row);
                write_year_month(months, self.year_month.0, self.year_month.1, out);
            }
            ArrowType::List(_) => {
                let offsets = a.as_list::<i32>().value_offsets();
                let range = offsets[row] as usize..offsets[row + 1] as usize;
                out.push('[');
                for (n, i) in range.enumerate() {
                    if n > 0 {
                        out.push_str(", ");
                    }
                    self.children[0].write_nested(i, out);
                }
                out.push(']');
            }
            ArrowType::Map(..) => {
                let offsets = a.as_map().value_offsets();
                let range = offsets[row] as usize..offsets[row + 1] as usize;
                out.push('{');
                for (n, i) in range.enumerate() {
                    if n > 0 {
                        out.push_str(", ");
                    }
                    self.children[0].write_nested(i, out);
                    out.push_str(" -> ");
                    self.children[1].write_nested(i, out);
                }
                out.push('}');
            }
            ArrowType::Struct(_) => {
                out.push('{');
                for (n, child) in self.children.iter().enumerate() {
                    if n > 0 {
                        out.push_str(", ");
                    }
                    child.write_nested(row, out);
                }
                out.push('}');
            }
            // Columns are normalised before they get here; another layout is shown by what it is.
            other => out.push_str(&format!("<{other}>")),
        }
    }
}

fn digits(v: i64, width: usize, out: &mut String) {
    let mut buffer = itoa::Buffer::new();
    let text = buffer.format(v);
    out.extend(std::iter::repeat_n('0', width.saturating_sub(text.len())));
    out.push_str(text);
}

/// Writes a DATE: `2024-02-29`; years above 9999 with a plus sign, before 0 with a minus.
pub fn write_date(days: i32, out: &mut String) {
    write_civil(days.into(), out);
}

fn write_civil(days: i64, out: &mut String) {
    let (year, month, day) = civil_from_days(days);
    if year < 0 {
        out.push('-');
    } else if year > 9999 {
        out.push('+');
    }
    digits(year.abs(), 4, out);
    out.push('-');
    digits(month.into(), 2, out);
    out.push('-');
    digits(day.into(), 2, out);
}

/// Writes wall-clock microseconds: `2024-02-29 12:00:00[.ffffff]` without zeros at the end of the fraction.
pub fn write_timestamp(local: i64, out: &mut String) {
    let (days, of_day) = split_micros(local);
    let second = of_day / MICROS_PER_SECOND;
    write_civil(days, out);
    out.push(' ');
    digits(second / 3600, 2, out);
    out.push(':');
    digits(second / 60 % 60, 2, out);
    out.push(':');
    digits(second % 60, 2, out);
    write_fraction((of_day % MICROS_PER_SECOND) as u64, out);
}
