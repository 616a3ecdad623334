//! Casts among BOOLEAN and the numeric types.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type};
use ssql_ir::DataType as T;

use super::Job;
use crate::arrow::arrow_type;
use crate::call::EvalResult;
use crate::error::EvalError;
use crate::functions::decimal::{power_of_ten, print, to_precision};
use crate::text::{parse_decimal, write_double};

pub(super) fn cast(job: &Job<'_>, array: &ArrayRef) -> EvalResult {
    match job.from {
        T::Boolean => from_boolean(job, array),
        T::Int8 => from_integer::<Int8Type>(job, array),
        T::Int16 => from_integer::<Int16Type>(job, array),
        T::Int32 => from_integer::<Int32Type>(job, array),
        T::Int64 => from_integer::<Int64Type>(job, array),
        T::Float32 => from_float::<Float32Type>(job, array),
        T::Float64 => from_float::<Float64Type>(job, array),
        T::Decimal(_, s) => from_decimal(job, array, *s),
        _ => Err(job.refused()),
    }
}

fn from_boolean(job: &Job<'_>, array: &ArrayRef) -> EvalResult {
    let a = array.as_boolean();
    fn build<P: ArrowPrimitiveType>(job: &Job<'_>, a: &BooleanArray, one: P::Native) -> EvalResult {
        let zero = P::Native::default();
        let values: Vec<P::Native> = a.values().iter().map(|b| if b { one } else { zero }).collect();
        Ok(Arc::new(PrimitiveArray::<P>::new(values.into(), a.nulls().cloned()).with_data_type(arrow_type(job.to))))
    }
    match job.to {
        T::Int8 => build::<Int8Type>(job, a, 1),
        T::Int16 => build::<Int16Type>(job, a, 1),
        T::Int32 => build::<Int32Type>(job, a, 1),
        T::Int64 => build::<Int64Type>(job, a, 1),
        T::Float32 => build::<Float32Type>(job, a, 1.0),
        T::Float64 => build::<Float64Type>(job, a, 1.0),
        T::Decimal(p, s) => match to_precision(1, 0, *p, *s) {
            Some(one) => build::<Decimal128Type>(job, a, one),
            None => job.rows::<Decimal128Type>(a, |row| {
                if a.value(row) { Err(EvalError::decimal_range("1", *p, *s)) } else { Ok(0) }
            }),
        },
        _ => Err(job.refused()),
    }
}

fn to_boolean<P: ArrowPrimitiveType>(array: &ArrayRef) -> EvalResult {
    let a = array.as_primitive::<P>();
    let zero = P::Native::default();
    let values = BooleanBuffer::collect_bool(a.values().len(), |i| a.values()[i] != zero);
    Ok(Arc::new(BooleanArray::new(values, a.nulls().cloned())))
}

fn from_integer<A: ArrowPrimitiveType>(job: &Job<'_>, array: &ArrayRef) -> EvalResult
where
    A::Native: Into<i64>,
{
    fn narrow<A: ArrowPrimitiveType, B: ArrowPrimitiveType>(job: &Job<'_>, array: &ArrayRef) -> EvalResult
    where
        A::Native: Into<i64>,
        B::Native: TryFrom<i64>,
    {
        job.try_map::<A, B>(
            array,
            |v| B::Native::try_from(v.into()).ok(),
            |v| EvalError::cast_overflow(&v.into().to_string(), job.from, job.to),
        )
    }
    match job.to {
        T::Boolean => to_boolean::<A>(array),
        // Widening goes through arrow's kernel; it cannot fail.
        T::Int16 | T::Int32 | T::Int64 if width(job.from) < width(job.to) => {
            Ok(arrow::compute::cast(array, &arrow_type(job.to))?)
        }
        T::Int8 => narrow::<A, Int8Type>(job, array),
        T::Int16 => narrow::<A, Int16Type>(job, array),
        T::Int32 => narrow::<A, Int32Type>(job, array),
        T::Int64 => job.map::<A, Int64Type>(array, |v| v.into()),
        T::Float32 => job.map::<A, Float32Type>(array, |v| v.into() as f32),
        T::Float64 => job.map::<A, Float64Type>(array, |v| v.into() as f64),
        T::Decimal(p, s) => {
            let (p, s) = (*p, *s);
            let factor = power_of_ten(s.into());
            let whole = u32::from(p - s);
            // All values of the type fit: no row needs a look.
            if whole >= 19 || crate::coercion::decimal_for(job.from).is_some_and(|(d, _)| u32::from(d) <= whole) {
                return job.map::<A, Decimal128Type>(array, |v| i128::from(v.into()) * factor);
            }
            job.try_map::<A, Decimal128Type>(
                array,
                |v| to_precision(v.into().into(), 0, p, s),
                |v| EvalError::decimal_range(&v.into().to_string(), p, s),
            )
        }
        _ => Err(job.refused()),
    }
}

fn width(t: &T) -> usize {
    t.fixed_width().unwrap_or(0)
}

/// A float as an integer: cut off towards zero if it lies within `min..=max` (given as floats), as Java's cast behind
/// Spark's check does.
pub(super) fn whole(v: f64, min: f64, max: f64) -> Option<i64> {
    (v.floor() <= max && v.ceil() >= min).then_some(v as i64)
}

fn from_float<A: ArrowPrimitiveType>(job: &Job<'_>, array: &ArrayRef) -> EvalResult
where
    A::Native: Into<f64>,
{
    let overflow = |v: A::Native| {
        let mut text = String::new();
        write_double(v.into(), &mut text);
        EvalError::cast_overflow(&text, job.from, job.to)
    };
    macro_rules! integer {
        ($p:ty, $n:ty) => {
            job.try_map::<A, $p>(
                array,
                |v| whole(v.into(), <$n>::MIN as f64, <$n>::MAX as f64).map(|v| v as $n),
                overflow,
            )
        };
    }
    match job.to {
        T::Boolean => to_boolean::<A>(array),
        T::Int8 => integer!(Int8Type, i8),
        T::Int16 => integer!(Int16Type, i16),
        T::Int32 => integer!(Int32Type, i32),
        T::Int64 => integer!(Int64Type, i64),
        T::Float32 => job.map::<A, Float32Type>(array, |v| v.into() as f32),
        T::Float64 => job.map::<A, Float64Type>(array, |v| v.into()),
        T::Decimal(p, s) => {
            let a = array.as_primitive::<A>();
            // By way of the shortest text, as Spark does; what is no number has no decimal.
            let mut text = String::new();
            job.optional_rows::<Decimal128Type>(a, |row| {
                let v: f64 = a.value(row).into();
                if !v.is_finite() {
                    return Ok(None);
                }
                text.clear();
                write_double(v, &mut text);
                match parse_decimal(&text, *p, *s) {
                    Ok(d) => Ok(Some(d)),
                    Err(_) => Err(EvalError::decimal_range(&text, *p, *s)),
                }
            })
        }
        _ => Err(job.refused()),
    }
}

fn from_decimal(job: &Job<'_>, array: &ArrayRef, scale: u8) -> EvalResult {
    let factor = power_of_ten(scale.into());
    let overflow = |v: i128| EvalError::cast_overflow(&print(v, scale), job.from, job.to);
    macro_rules! integer {
        ($p:ty, $n:ty) => {
            job.try_map::<Decimal128Type, $p>(array, |v| <$n>::try_from(v / factor).ok(), overflow)
        };
    }
    match job.to {
        T::Boolean => to_boolean::<Decimal128Type>(array),
        T::Int8 => integer!(Int8Type, i8),
        T::Int16 => integer!(Int16Type, i16),
        T::Int32 => integer!(Int32Type, i32),
        T::Int64 => integer!(Int64Type, i64),
        T::Float32 => job.map::<Decimal128Type, Float32Type>(array, |v| decimal_to_f32(v, scale)),
        T::Float64 => job.map::<Decimal128Type, Float64Type>(array, |v| decimal_to_f64(v, scale)),
        T::Decimal(p, s) => {
            let (p, s) = (*p, *s);
            let T::Decimal(from_p, _) = job.from else { return Err(job.refused()) };
            if s >= scale && p - s >= from_p - scale {
                // More room on both sides: nothing can fail.
                let up = power_of_ten(u32::from(s - scale));
                return job.map::<Decimal128Type, Decimal128Type>(array, |v| v.wrapping_mul(up));
            }
            job.try_map::<Decimal128Type, Decimal128Type>(
                array,
                |v| to_precision(v, scale, p, s),
                |v| EvalError::decimal_range(&print(v, scale), p, s),
            )
        }
        _ => Err(job.refused()),
    }
}

/// The nearest DOUBLE of a decimal.
pub(crate) fn decimal_to_f64(v: i128, scale: u8) -> f64 {
    // Both operands exact: one correctly rounded division.
    if v.unsigned_abs() < 1 << 53 && scale <= 22 {
        return v as f64 / 10f64.powi(scale.into());
    }
    fast_float2::parse(print(v, scale)).expect("a decimal prints as a number")
}

fn decimal_to_f32(v: i128, scale: u8) -> f32 {
    if v.unsigned_abs() < 1 << 24 && scale <= 10 {
        return v as f32 / 10f32.powi(scale.into());
    }
    fast_float2::parse(print(v, scale)).expect("a decimal prints as a number")
}
