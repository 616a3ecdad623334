//! `from_json`: texts into columns of any type. A value that does not fit its type is NULL at its place and makes the
//! record a bad one; a text that is no JSON makes a bad record without values.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewBuilder, BooleanBuilder, ListArray, NullBufferBuilder, PrimitiveBuilder,
    StringViewBuilder, StructArray, new_null_array,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, DurationMicrosecondType, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, IntervalYearMonthType, TimestampMicrosecondType,
};
use jiff::tz::TimeZone;
use ssql_ir::{DataType as T, Field};

use super::options::Options;
use super::tape::{Kind, Tape};
use crate::arrow::{arrow_field, arrow_type};
use crate::call::{Call, EvalResult};
use crate::error::EvalError;
use crate::functions::encode::read_base64;
use crate::functions::lists::map_array;
use crate::text::{parse_date, parse_decimal, parse_interval_as, parse_timestamp, parse_timestamp_without_zone};

/// A column that is being built from values of JSON.
enum Sink {
    Null(usize),
    Boolean(BooleanBuilder),
    Int8(PrimitiveBuilder<Int8Type>),
    Int16(PrimitiveBuilder<Int16Type>),
    Int32(PrimitiveBuilder<Int32Type>),
    Int64(PrimitiveBuilder<Int64Type>),
    Float32(PrimitiveBuilder<Float32Type>),
    Float64(PrimitiveBuilder<Float64Type>),
    Decimal(PrimitiveBuilder<Decimal128Type>, u8, u8),
    String(StringViewBuilder, String),
    Binary(BinaryViewBuilder),
    Date(PrimitiveBuilder<Date32Type>),
    /// With the zone of instants, without for wall-clock times.
    Timestamp(PrimitiveBuilder<TimestampMicrosecondType>, bool),
    /// With its type: the text of a value has the fields of it.
    DayTime(PrimitiveBuilder<DurationMicrosecondType>, T),
    YearMonth(PrimitiveBuilder<IntervalYearMonthType>, T),
    Array {
        element: Field,
        child: Box<Sink>,
        len: i32,
        offsets: Vec<i32>,
        nulls: NullBufferBuilder,
    },
    Map {
        t: T,
        keys: StringViewBuilder,
        child: Box<Sink>,
        len: i32,
        offsets: Vec<i32>,
        nulls: NullBufferBuilder,
    },
    Struct {
        fields: Vec<Field>,
        children: Vec<Sink>,
        nulls: NullBufferBuilder,
    },
}

/// One text on its way into the sinks.
struct Record<'a> {
    text: &'a str,
    tape: &'a Tape,
    options: &'a Options,
    zone: &'a TimeZone,
    /// Some value did not fit.
    bad: bool,
}

impl Sink {
    fn new(t: &T) -> Result<Sink, EvalError> {
        Ok(match t {
            T::Null => Sink::Null(0),
            T::Boolean => Sink::Boolean(BooleanBuilder::new()),
            T::Int8 => Sink::Int8(PrimitiveBuilder::new()),
            T::Int16 => Sink::Int16(PrimitiveBuilder::new()),
            T::Int32 => Sink::Int32(PrimitiveBuilder::new()),
            T::Int64 => Sink::Int64(PrimitiveBuilder::new()),
            T::Float32 => Sink::Float32(PrimitiveBuilder::new()),
            T::Float64 => Sink::Float64(PrimitiveBuilder::new()),
            T::Decimal(p, s) => Sink::Decimal(PrimitiveBuilder::new().with_data_type(arrow_type(t)), *p, *s),
            T::String => Sink::String(StringViewBuilder::new(), String::new()),
            T::Binary => Sink::Binary(BinaryViewBuilder::new()),
            T::Date => Sink::Date(PrimitiveBuilder::new()),
            T::Timestamp => Sink::Timestamp(PrimitiveBuilder::new().with_data_type(arrow_type(t)), true),
            T::TimestampNtz => Sink::Timestamp(PrimitiveBuilder::new(), false),
            T::DayTimeInterval(..) => Sink::DayTime(PrimitiveBuilder::new(), t.clone()),
            T::YearMonthInterval(..) => Sink::YearMonth(PrimitiveBuilder::new(), t.clone()),
            T::Array(e) => Sink::Array {
                element: (**e).clone(),
                child: Box::new(Sink::new(&e.data_type)?),
                len: 0,
                offsets: vec![0],
                nulls: NullBufferBuilder::new(0),
            },
            T::Map(_, v) => Sink::Map {
                t: t.clone(),
                keys: StringViewBuilder::new(),
                child: Box::new(Sink::new(&v.data_type)?),
                len: 0,
                offsets: vec![0],
                nulls: NullBufferBuilder::new(0),
            },
            T::Struct(fields) => Sink::Struct {
                fields: fields.clone(),
                children: fields.iter().map(|f| Sink::new(&f.data_type)).collect::<Result<_, _>>()?,
                nulls: NullBufferBuilder::new(0),
            },
        })
    }

    fn null(&mut self) {
        match self {
            Sink::Null(n) => *n += 1,
            Sink::Boolean(b) => b.append_null(),
            Sink::Int8(b) => b.append_null(),
            Sink::Int16(b) => b.append_null(),
            Sink::Int32(b) => b.append_null(),
            Sink::Int64(b) => b.append_null(),
            Sink::Float32(b) => b.append_null(),
            Sink::Float64(b) => b.append_null(),
            Sink::Decimal(b, ..) => b.append_null(),
            Sink::String(b, _) => b.append_null(),
            Sink::Binary(b) => b.append_null(),
            Sink::Date(b) => b.append_null(),
            Sink::Timestamp(b, _) => b.append_null(),
            Sink::DayTime(b, _) => b.append_null(),
            Sink::YearMonth(b, _) => b.append_null(),
            Sink::Array { len, offsets, nulls, .. } | Sink::Map { len, offsets, nulls, .. } => {
                offsets.push(*len);
                nulls.append_null();
            }
            Sink::Struct { children, nulls, .. } => {
                children.iter_mut().for_each(Sink::null);
                nulls.append_null();
            }
        }
    }

    /// Appends the value of a node; NULL, and the record is bad, if it does not fit. Whether it does: a struct of which
    /// only fields do not is one that fits, an array or a map with a part that does not is none.
    fn write(&mut self, record: &mut Record<'_>, i: u32) -> bool {
        let others = std::mem::replace(&mut record.bad, false);
        let fits = self.write_value(record, i);
        record.bad |= others;
        fits
    }

    /// As [`Sink::write`], where the record is not bad yet.
    fn write_value(&mut self, record: &mut Record<'_>, i: u32) -> bool {
        let kind = record.tape.node(i).kind;
        if kind == Kind::Null {
            self.null();
            return true;
        }
        let (text, tape) = (record.text, record.tape);
        let raw = tape.raw(text, i);
        let is_text = matches!(kind, Kind::Plain | Kind::Escaped);
        let integer = if kind == Kind::Integer { raw.parse::<i64>().ok() } else { None };
        let options = record.options;
        match self {
            Sink::Null(_) => self.null(),
            Sink::Boolean(b) => match kind {
                Kind::True => b.append_value(true),
                Kind::False => b.append_value(false),
                _ => {
                    b.append_null();
                    record.bad = true;
                }
            },
            // A TINYINT is read as a byte, which 128 to 255 are too.
            Sink::Int8(b) => put(b, integer.filter(|v| (-128..=255).contains(v)).map(|v| v as i8), record),
            Sink::Int16(b) => put(b, integer.and_then(|v| v.try_into().ok()), record),
            Sink::Int32(b) => put(b, integer.and_then(|v| v.try_into().ok()), record),
            Sink::Int64(b) => put(b, integer, record),
            Sink::Float32(b) => put(b, float(raw, kind).map(|v| v as f32), record),
            Sink::Float64(b) => put(b, float(raw, kind), record),
            Sink::Decimal(b, p, s) => {
                let number = matches!(kind, Kind::Integer | Kind::Float | Kind::Plain) && !raw.trim().is_empty();
                put(b, if number { parse_decimal(raw, *p, *s).ok() } else { None }, record);
            }
            Sink::String(b, buffer) => {
                buffer.clear();
                tape.write_value(text, i, buffer);
                b.append_value(&*buffer);
            }
            Sink::Binary(b) => {
                let mut bytes = vec![];
                if is_text && read_base64(raw.as_bytes(), &mut bytes).is_ok() {
                    b.append_value(&bytes);
                } else {
                    b.append_null();
                    record.bad = true;
                }
            }
            Sink::Date(b) => {
                let day = if is_text { options.read_date(&resolved(record, i), parse_date) } else { None };
                put(b, day, record);
            }
            Sink::Timestamp(b, true) => {
                let zone = record.zone;
                let value = match kind {
                    Kind::Integer => integer.and_then(|v| v.checked_mul(1_000_000)),
                    _ if is_text => options.read_timestamp(&resolved(record, i), zone, |s| parse_timestamp(s, zone)),
                    _ => None,
                };
                put(b, value, record);
            }
            Sink::Timestamp(b, false) => {
                let value = if is_text {
                    options.read_timestamp_ntz(&resolved(record, i), parse_timestamp_without_zone)
                } else {
                    None
                };
                put(b, value, record);
            }
            Sink::DayTime(b, t) => {
                let value = if is_text { parse_interval_as(&resolved(record, i), t) } else { None };
                put(b, value, record);
            }
            Sink::YearMonth(b, t) => {
                let value = if is_text { parse_interval_as(&resolved(record, i), t) } else { None };
                put(b, value.and_then(|months| i32::try_from(months).ok()), record);
            }
            Sink::Array { child, len, offsets, nulls, .. } if kind == Kind::Array => {
                let mut fits = true;
                for element in tape.children(i) {
                    fits &= child.write(record, element);
                    *len += 1;
                }
                offsets.push(*len);
                nulls.append(fits);
                return fits;
            }
            Sink::Map { keys, child, len, offsets, nulls, .. } if kind == Kind::Object => {
                let (mut name, mut fits) = (String::new(), true);
                // Of members of one name the last counts.
                let members: Vec<(u32, u32)> = tape.members(i).collect();
                for (n, (key, value)) in members.iter().enumerate() {
                    name.clear();
                    tape.write_text(text, *key, &mut name);
                    if members[n + 1..].iter().any(|(later, _)| tape.text_is(text, *later, &name)) {
                        continue;
                    }
                    keys.append_value(&name);
                    fits &= child.write(record, *value);
                    *len += 1;
                }
                offsets.push(*len);
                nulls.append(fits);
                return fits;
            }
            Sink::Struct { fields, children, nulls } if kind == Kind::Object => {
                write_members(record, i, fields, children, None);
                nulls.append_non_null();
                return true;
            }
            Sink::Array { .. } | Sink::Map { .. } | Sink::Struct { .. } => {
                self.null();
                record.bad = true;
            }
        }
        !record.bad
    }

    fn finish(self) -> EvalResult {
        Ok(match self {
            Sink::Null(n) => new_null_array(&arrow::datatypes::DataType::Null, n),
            Sink::Boolean(mut b) => Arc::new(b.finish()),
            Sink::Int8(mut b) => Arc::new(b.finish()),
            Sink::Int16(mut b) => Arc::new(b.finish()),
            Sink::Int32(mut b) => Arc::new(b.finish()),
            Sink::Int64(mut b) => Arc::new(b.finish()),
            Sink::Float32(mut b) => Arc::new(b.finish()),
            Sink::Float64(mut b) => Arc::new(b.finish()),
            Sink::Decimal(mut b, ..) => Arc::new(b.finish()),
            Sink::String(mut b, _) => Arc::new(b.finish()),
            Sink::Binary(mut b) => Arc::new(b.finish()),
            Sink::Date(mut b) => Arc::new(b.finish()),
            Sink::Timestamp(mut b, _) => Arc::new(b.finish()),
            Sink::DayTime(mut b, _) => Arc::new(b.finish()),
            Sink::YearMonth(mut b, _) => Arc::new(b.finish()),
            Sink::Array { element, child, offsets, mut nulls, .. } => {
                let offsets = OffsetBuffer::new(offsets.into());
                Arc::new(ListArray::try_new(Arc::new(arrow_field(&element)), offsets, child.finish()?, nulls.finish())?)
            }
            Sink::Map { t, mut keys, child, offsets, nulls, .. } => {
                map_array(&t, offsets, Arc::new(keys.finish()), child.finish()?, nulls)?
            }
            Sink::Struct { fields, children, mut nulls } => {
                let columns: Vec<ArrayRef> = children.into_iter().map(Sink::finish).collect::<Result<_, _>>()?;
                let fields: Vec<_> = fields.iter().map(arrow_field).collect();
                Arc::new(StructArray::try_new(fields.into(), columns, nulls.finish())?)
            }
        })
    }
}

fn put<P: ArrowPrimitiveType>(b: &mut PrimitiveBuilder<P>, value: Option<P::Native>, record: &mut Record<'_>) {
    record.bad |= value.is_none();
    b.append_option(value);
}

fn resolved(record: &Record<'_>, i: u32) -> String {
    let mut out = String::new();
    record.tape.write_text(record.text, i, &mut out);
    out
}

/// A DOUBLE: a number, or in quotes one of the words for what JSON has no number for.
fn float(raw: &str, kind: Kind) -> Option<f64> {
    match kind {
        Kind::Integer | Kind::Float => raw.parse().ok(),
        Kind::Plain => match raw {
            "NaN" => Some(f64::NAN),
            "+INF" | "INF" | "+Infinity" | "Infinity" => Some(f64::INFINITY),
            "-INF" | "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

/// Appends the fields of an object, of members of one name the last; all but the field `except`.
fn write_members(record: &mut Record<'_>, object: u32, fields: &[Field], children: &mut [Sink], except: Option<usize>) {
    let mut found: [Option<u32>; 32] = [None; 32];
    let mut more = vec![];
    let found: &mut [Option<u32>] = if fields.len() <= found.len() {
        &mut found[..fields.len()]
    } else {
        more.resize(fields.len(), None);
        &mut more
    };
    let (text, tape) = (record.text, record.tape);
    // Members mostly stand in the order of the fields.
    let mut guess = 0;
    for (name, value) in tape.members(object) {
        let at = (guess..fields.len()).chain(0..guess).find(|f| tape.text_is(text, name, &fields[*f].name));
        if let Some(at) = at {
            found[at] = Some(value);
            guess = at + 1;
        }
    }
    for (f, child) in children.iter_mut().enumerate().filter(|(f, _)| Some(*f) != except) {
        match found[f] {
            Some(value) => {
                child.write(record, value);
            }
            None => child.null(),
        }
    }
}

/// `from_json(text, schema[, options])`; the schema is the call's type.
pub(super) fn from_json(c: &Call<'_>) -> EvalResult {
    let options = Options::of(c, 2)?;
    let fail_fast = options.fail_fast(c.name)?;
    let zone = options.zone(c)?;
    let s = c.str(0);
    let mut sink = Sink::new(c.data_type)?;
    let mut tape = Tape::default();
    let corrupt = match c.data_type {
        T::Struct(fields) => fields.iter().position(|f| f.data_type == T::String && f.name == options.corrupt_column()),
        _ => None,
    };
    for row in 0..c.rows {
        let Some(text) = s.opt(row).filter(|t| !t.trim().is_empty()) else {
            sink.null();
            continue;
        };
        let read = tape.read(text, options.leniency);
        let mut record = Record { text, tape: &tape, options: &options, zone: &zone, bad: read.is_err() };
        write_root(&mut sink, &mut record, read.is_ok(), corrupt);
        if record.bad && fail_fast {
            return Err(EvalError::new(
                "MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION",
                format!("Malformed records are detected in record parsing: {text}. Parse Mode: FAILFAST."),
            )
            .with_help("use the mode PERMISSIVE to get NULL for what does not fit")
            .at_row(row));
        }
    }
    sink.finish()
}

fn write_root(sink: &mut Sink, record: &mut Record<'_>, well_formed: bool, corrupt: Option<usize>) {
    let kind = if well_formed { record.tape.node(0).kind } else { Kind::Null };
    match sink {
        Sink::Struct { fields, children, nulls } => {
            if well_formed && kind == Kind::Object {
                write_members(record, 0, fields, children, corrupt);
            } else {
                // A bare null has no values and is not bad.
                record.bad |= kind != Kind::Null || !well_formed;
                children.iter_mut().enumerate().filter(|(f, _)| Some(*f) != corrupt).for_each(|(_, c)| c.null());
            }
            if let Some(Sink::String(b, _)) = corrupt.map(|f| &mut children[f]) {
                b.append_option(record.bad.then_some(record.text));
            }
            nulls.append_non_null();
        }
        // An object where an array of structs is asked for is its one element.
        Sink::Array { child, len, offsets, nulls, .. }
            if kind == Kind::Object && matches!(**child, Sink::Struct { .. }) =>
        {
            child.write(record, 0);
            *len += 1;
            offsets.push(*len);
            nulls.append_non_null();
        }
        sink if well_formed => {
            sink.write(record, 0);
        }
        sink => sink.null(),
    }
}

/// The constant map of options in an argument, as pairs.
pub(super) fn option_pairs(c: &Call<'_>, at: usize) -> Vec<(String, String)> {
    if c.len() <= at || c.raw(at).is_empty() || c.raw(at).is_null(0) {
        return vec![];
    }
    let map = c.map(at);
    let (keys, values) = (map.keys().as_string_view(), map.values().as_string_view());
    map.range(0)
        .filter(|i| values.is_valid(*i))
        .map(|i| (keys.value(i).to_ascii_lowercase(), values.value(i).to_owned()))
        .collect()
}
