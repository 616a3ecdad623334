//! Casts from and to STRING.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewArray, BooleanArray, BooleanBufferBuilder, NullBufferBuilder, StringViewArray,
    StringViewBuilder,
};
use arrow::datatypes::{
    Date32Type, Decimal128Type, DurationMicrosecondType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, IntervalYearMonthType, TimestampMicrosecondType,
};
use ssql_ir::{CastMode, DataType as T};

use super::Job;
use crate::call::EvalResult;
use crate::error::EvalError;
use crate::text::{
    BadDecimal, CellFormatter, parse_boolean, parse_date, parse_decimal, parse_double, parse_float, parse_integer,
    parse_interval_as, parse_timestamp, parse_timestamp_ntz, trim, write_date,
};
use crate::time::{MICROS_PER_DAY, split_micros, to_instant, to_local};

/// The text of every value.
pub(super) fn to_string(job: &Job<'_>, array: &ArrayRef) -> EvalResult {
    let format = CellFormatter::for_type(array.as_ref(), job.from, job.ctx.time_zone.clone());
    let mut out = StringViewBuilder::with_capacity(array.len());
    let mut text = String::new();
    for row in 0..array.len() {
        if array.is_null(row) {
            out.append_null();
            continue;
        }
        text.clear();
        format.write(row, &mut text);
        out.append_value(&text);
    }
    Ok(Arc::new(out.finish()))
}

/// Reads every text.
pub(super) fn from_string(job: &Job<'_>, array: &ArrayRef) -> EvalResult {
    let a = array.as_string_view();
    let bad = |row: usize| EvalError::cast_invalid(a.value(row), job.from, job.to);
    macro_rules! integer {
        ($p:ty) => {
            job.rows::<$p>(a, |r| parse_integer(a.value(r)).and_then(|v| v.try_into().ok()).ok_or_else(|| bad(r)))
        };
    }
    let zone = &job.ctx.time_zone;
    match job.to {
        T::Boolean => booleans(job, a),
        T::Int8 => integer!(Int8Type),
        T::Int16 => integer!(Int16Type),
        T::Int32 => integer!(Int32Type),
        T::Int64 => integer!(Int64Type),
        T::Float32 => job.rows::<Float32Type>(a, |r| parse_float(a.value(r)).ok_or_else(|| bad(r))),
        T::Float64 => job.rows::<Float64Type>(a, |r| parse_double(a.value(r)).ok_or_else(|| bad(r))),
        T::Decimal(p, s) => job.rows::<Decimal128Type>(a, |r| {
            parse_decimal(a.value(r), *p, *s).map_err(|e| match e {
                BadDecimal::Malformed => bad(r),
                BadDecimal::Unsupported => EvalError::new(
                    "NUMERIC_OUT_OF_SUPPORTED_RANGE",
                    format!("The value {} has more than 38 digits before the point.", trim(a.value(r))),
                ),
                BadDecimal::OutOfRange => EvalError::decimal_range(trim(a.value(r)), *p, *s),
            })
        }),
        T::Binary => Ok(Arc::new(BinaryViewArray::from_iter(a.iter().map(|v| v.map(str::as_bytes))))),
        T::Date => job.rows::<Date32Type>(a, |r| match special_day(job, a.value(r)) {
            Some(local) => Ok(split_micros(local).0 as i32),
            None => parse_date(a.value(r)).ok_or_else(|| bad(r)),
        }),
        T::Timestamp => job.rows::<TimestampMicrosecondType>(a, |r| match special_day(job, a.value(r)) {
            Some(local) => Ok(to_instant(zone, local)),
            None => time_today(job, a.value(r))
                .map_or_else(|| parse_timestamp(a.value(r), zone), |text| parse_timestamp(&text, zone))
                .ok_or_else(|| bad(r)),
        }),
        T::TimestampNtz => job.rows::<TimestampMicrosecondType>(a, |r| match special_day(job, a.value(r)) {
            Some(local) => Ok(local),
            None => parse_timestamp_ntz(a.value(r)).ok_or_else(|| bad(r)),
        }),
        T::DayTimeInterval(..) => job.rows::<DurationMicrosecondType>(a, |r| {
            parse_interval_as(a.value(r), job.to).ok_or_else(|| bad_interval(a.value(r), job))
        }),
        T::YearMonthInterval(..) => job.rows::<IntervalYearMonthType>(a, |r| {
            let months = parse_interval_as(a.value(r), job.to).and_then(|m| i32::try_from(m).ok());
            months.ok_or_else(|| bad_interval(a.value(r), job))
        }),
        _ => Err(job.refused()),
    }
}

fn bad_interval(text: &str, job: &Job<'_>) -> EvalError {
    EvalError::new("INVALID_INTERVAL_FORMAT.UNMATCHED_FORMAT_STRING_WITH_NOTICE", format!("'{text}' is no {}.", job.to))
        .with_help("write the fields of the type: '1 02:03:04' for DAY TO SECOND, '26:03' for HOUR TO MINUTE, '1-2' for YEAR TO MONTH, '5' for one field")
}

/// Wall-clock time of the words that stand for a moment: now, today, tomorrow, yesterday.
fn special_day(job: &Job<'_>, text: &str) -> Option<i64> {
    let text = trim(text);
    let offset = match text.len() {
        3 if text.eq_ignore_ascii_case("now") => return Some(to_local(&job.ctx.time_zone, job.ctx.now_micros)),
        5 if text.eq_ignore_ascii_case("today") => 0,
        8 if text.eq_ignore_ascii_case("tomorrow") => 1,
        9 if text.eq_ignore_ascii_case("yesterday") => -1,
        _ => return None,
    };
    let (today, _) = split_micros(to_local(&job.ctx.time_zone, job.ctx.now_micros));
    Some((today + offset) * MICROS_PER_DAY)
}

/// A time without a date (`T12:00`, `12:00:30`) as that time of the current date.
fn time_today(job: &Job<'_>, text: &str) -> Option<String> {
    let text = trim(text);
    let time = text.strip_prefix('T').or_else(|| text.find(':').filter(|at| *at <= 2).map(|_| text))?;
    let (today, _) = split_micros(to_local(&job.ctx.time_zone, job.ctx.now_micros));
    let mut out = String::new();
    write_date(i32::try_from(today).ok()?, &mut out);
    out.push('T');
    out.push_str(time);
    Some(out)
}

fn booleans(job: &Job<'_>, a: &StringViewArray) -> EvalResult {
    let mut values = BooleanBufferBuilder::new(a.len());
    let mut nulls = NullBufferBuilder::new(a.len());
    for row in 0..a.len() {
        let value = if a.is_null(row) { None } else { parse_boolean(a.value(row)) };
        if value.is_none() && a.is_valid(row) && job.mode == CastMode::Ansi {
            return Err(EvalError::cast_invalid(a.value(row), job.from, job.to).at_row(row));
        }
        values.append(value.unwrap_or(false));
        nulls.append(value.is_some());
    }
    Ok(Arc::new(BooleanArray::new(values.finish(), nulls.finish())))
}
