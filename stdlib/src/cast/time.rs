//! Casts among dates, timestamps, intervals and numbers.
//!
//! An instant beside a number counts seconds; an interval counts its last field: days, hours, ... or months.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::compute::cast as arrow_cast;
use arrow::datatypes::{
    DataType as ArrowType, Date32Type, Decimal128Type, DurationMicrosecondType, Float64Type, Int32Type, Int64Type,
    IntervalYearMonthType, TimestampMicrosecondType,
};
use ssql_ir::{DataType as T, DayTimeField};

use super::{Job, cast_array};
use crate::call::EvalResult;
use crate::error::EvalError;
use crate::functions::decimal::{print, rescale, to_precision};
use crate::text::write_double;
use crate::time::{MICROS_PER_DAY, MICROS_PER_SECOND, split_micros, to_instant, to_local};

pub(super) fn cast(job: &Job<'_>, array: &ArrayRef) -> EvalResult {
    let zone = &job.ctx.time_zone;
    match (job.from, job.to) {
        (T::Date, T::Timestamp) => job.map::<Date32Type, TimestampMicrosecondType>(array, |d| {
            to_instant(zone, i64::from(d).saturating_mul(MICROS_PER_DAY))
        }),
        (T::Date, T::TimestampNtz) => {
            job.map::<Date32Type, TimestampMicrosecondType>(array, |d| i64::from(d).saturating_mul(MICROS_PER_DAY))
        }
        (T::Timestamp, T::Date) => {
            job.map::<TimestampMicrosecondType, Date32Type>(array, |t| split_micros(to_local(zone, t)).0 as i32)
        }
        (T::TimestampNtz, T::Date) => {
            job.map::<TimestampMicrosecondType, Date32Type>(array, |t| split_micros(t).0 as i32)
        }
        (T::Timestamp, T::TimestampNtz) => {
            job.map::<TimestampMicrosecondType, TimestampMicrosecondType>(array, |t| to_local(zone, t))
        }
        (T::TimestampNtz, T::Timestamp) => {
            job.map::<TimestampMicrosecondType, TimestampMicrosecondType>(array, |t| to_instant(zone, t))
        }
        (T::Timestamp, t) if t.is_numeric() => micros_to_number(job, array),
        (f, T::Timestamp) if f.is_numeric() => number_to_micros(job, array),
        (T::DayTimeInterval(_, last), t) if t.is_numeric() => day_time_to_number(job, array, *last),
        (f, T::DayTimeInterval(_, last)) if f.is_numeric() => number_to_day_time(job, array, *last),
        (T::YearMonthInterval(_, last), t) if t.is_numeric() => {
            let units: PrimitiveArray<Int32Type> =
                array.as_primitive::<IntervalYearMonthType>().unary(|m| m / last.months());
            cast_array(&(Arc::new(units) as ArrayRef), &T::Int32, job.to, job.mode, job.ctx)
        }
        (f, T::YearMonthInterval(_, last)) if f.is_numeric() => {
            let units = cast_array(array, f, &T::Int32, job.mode, job.ctx)?;
            job.try_map::<Int32Type, IntervalYearMonthType>(
                &units,
                |v| v.checked_mul(last.months()),
                |_| EvalError::overflow("The interval", job.to, ""),
            )
        }
        // What lies below the last field is cut off.
        (T::DayTimeInterval(..), T::DayTimeInterval(_, last)) => {
            let unit = if *last == DayTimeField::Second { 1 } else { last.micros() };
            job.map::<DurationMicrosecondType, DurationMicrosecondType>(array, |v| v - v % unit)
        }
        (T::YearMonthInterval(..), T::YearMonthInterval(_, last)) => {
            job.map::<IntervalYearMonthType, IntervalYearMonthType>(array, |m| m - m % last.months())
        }
        _ => Err(job.refused()),
    }
}

/// The whole count of an interval's last field; seconds keep their fraction where the number can.
fn day_time_to_number(job: &Job<'_>, array: &ArrayRef, last: DayTimeField) -> EvalResult {
    if last == DayTimeField::Second {
        return micros_to_number(job, array);
    }
    let micros = arrow_cast(array, &ArrowType::Int64)?;
    let whole = micros.as_primitive::<Int64Type>().unary::<_, Int64Type>(|v| v / last.micros());
    cast_array(&(Arc::new(whole) as ArrayRef), &T::Int64, job.to, job.mode, job.ctx)
}

/// A count of an interval's last field; only seconds may have a fraction, that of all others is cut off.
fn number_to_day_time(job: &Job<'_>, array: &ArrayRef, last: DayTimeField) -> EvalResult {
    if last == DayTimeField::Second {
        return number_to_micros(job, array);
    }
    let units = cast_array(array, job.from, &T::Int64, job.mode, job.ctx)?;
    job.try_map::<Int64Type, DurationMicrosecondType>(
        &units,
        |v| v.checked_mul(last.micros()),
        |_| EvalError::overflow("The interval", job.to, ""),
    )
}

/// Microseconds as seconds: whole ones rounded down for integers, with the fraction for all else.
fn micros_to_number(job: &Job<'_>, array: &ArrayRef) -> EvalResult {
    let micros: ArrayRef = arrow_cast(array, &ArrowType::Int64)?;
    let floor = *job.from == T::Timestamp;
    let seconds = |t: i64| if floor { t.div_euclid(MICROS_PER_SECOND) } else { t / MICROS_PER_SECOND };
    match job.to {
        T::Float64 => job.map::<Int64Type, Float64Type>(&micros, |t| t as f64 / MICROS_PER_SECOND as f64),
        T::Float32 => job
            .map::<Int64Type, arrow::datatypes::Float32Type>(&micros, |t| (t as f64 / MICROS_PER_SECOND as f64) as f32),
        T::Decimal(p, s) => job.try_map::<Int64Type, Decimal128Type>(
            &micros,
            |t| to_precision(t.into(), 6, *p, *s),
            |t| EvalError::decimal_range(&print(t.into(), 6), *p, *s),
        ),
        T::Int64 => job.map::<Int64Type, Int64Type>(&micros, seconds),
        to => {
            let whole: ArrayRef = Arc::new(micros.as_primitive::<Int64Type>().unary::<_, Int64Type>(seconds));
            cast_array(&whole, &T::Int64, to, job.mode, job.ctx)
        }
    }
}

/// Seconds as microseconds, in the target's unit: fractions to the microsecond.
fn number_to_micros(job: &Job<'_>, array: &ArrayRef) -> EvalResult {
    let point = *job.to == T::Timestamp;
    let overflow = |text: &str| {
        if point {
            EvalError::cast_overflow(text, job.from, job.to)
        } else {
            EvalError::overflow("The interval", job.to, "")
        }
    };
    let finish = |micros: ArrayRef| {
        if point {
            job.map::<Int64Type, TimestampMicrosecondType>(&micros, |t| t)
        } else {
            job.map::<Int64Type, DurationMicrosecondType>(&micros, |t| t)
        }
    };
    // The intermediate column is BIGINT; only the job's mode matters to the helpers.
    let inner = Job { from: job.from, to: &T::Int64, mode: job.mode, ctx: job.ctx };
    let micros = match job.from {
        t if t.is_integer() => {
            let seconds = cast_array(array, t, &T::Int64, job.mode, job.ctx)?;
            inner.try_map::<Int64Type, Int64Type>(
                &seconds,
                // Spark saturates instants, which no program reaches on purpose; intervals are checked.
                |s| if point { Some(s.saturating_mul(MICROS_PER_SECOND)) } else { s.checked_mul(MICROS_PER_SECOND) },
                |s| overflow(&s.to_string()),
            )?
        }
        T::Decimal(_, scale) => {
            let a = array.as_primitive::<Decimal128Type>();
            inner.rows::<Int64Type>(a, |row| {
                let v = a.value(row);
                let by = 6 - i32::from(*scale);
                // Cut off, not rounded, past the microsecond.
                let micros = if by >= 0 { rescale(v, 1, by) } else { Some(v / 10i128.pow(by.unsigned_abs())) };
                micros.and_then(|m| i64::try_from(m).ok()).ok_or_else(|| overflow(&print(v, *scale)))
            })?
        }
        t if t.is_float() => {
            let doubles = cast_array(array, t, &T::Float64, job.mode, job.ctx)?;
            let a = doubles.as_primitive::<Float64Type>();
            inner.rows::<Int64Type>(a, |row| {
                let v = a.value(row);
                let mut text = String::new();
                write_double(v, &mut text);
                if !v.is_finite() {
                    return Err(EvalError::cast_invalid(&text, job.from, job.to));
                }
                super::numeric::whole(v * MICROS_PER_SECOND as f64, i64::MIN as f64, i64::MAX as f64)
                    .ok_or_else(|| overflow(&text))
            })?
        }
        _ => return Err(job.refused()),
    };
    debug_assert_eq!(micros.len(), array.len());
    finish(micros)
}
