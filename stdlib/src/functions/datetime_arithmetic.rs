//! `+ - * / div` where an operand is a date, a timestamp or an interval.

use arrow::datatypes::{
    Date32Type, DurationMicrosecondType, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, IntervalYearMonthType,
    TimestampMicrosecondType,
};
use ssql_ir::{DataType as T, DayTimeField};

use super::arithmetic::Op;
use super::clock::Clock;
use super::decimal::{divide_half_up, rescale};
use crate::call::{Call, EvalResult};
use crate::error::{EvalError, ResolveError};
use crate::resolve::{TypeCall, Typed};
use crate::time::{MICROS_PER_DAY, add_months, to_local};

fn is_timestamp(t: &T) -> bool {
    matches!(t, T::Timestamp | T::TimestampNtz)
}

pub(super) fn is_interval(t: &T) -> bool {
    matches!(t, T::DayTimeInterval(..) | T::YearMonthInterval(..))
}

/// What a multiple or a fraction of an interval is: it may have any field.
fn all_fields(interval: &T) -> T {
    if matches!(interval, T::YearMonthInterval(..)) { T::YEAR_TO_MONTH } else { T::DAY_TO_SECOND }
}

/// Integers that DATE + n takes: up to INT.
fn is_days(t: &T) -> bool {
    matches!(t, T::Int8 | T::Int16 | T::Int32)
}

fn typed(a: &T, b: &T, result: T) -> Option<Typed> {
    Some(Typed::new(vec![a.clone(), b.clone()], result))
}

fn wrong(c: &TypeCall<'_>, i: usize, required: &str) -> ResolveError {
    c.mismatch(i, required)
}

/// The type of whole days: a date moved by it stays a date.
const DAYS: T = T::DayTimeInterval(DayTimeField::Day, DayTimeField::Day);

/// A point in time moved by argument `i`, an interval or days.
fn moved(c: &TypeCall<'_>, point: usize, by: usize, swapped: bool) -> Result<Option<Typed>, ResolveError> {
    let (p, d) = (c.ty(point), c.ty(by));
    let order = |p: &T, d: &T, result: T| {
        if swapped { typed(d, p, result) } else { typed(p, d, result) }
    };
    Ok(match (p, d) {
        (T::Date, d) if is_days(d) => order(p, d, T::Date),
        (T::Date | T::Timestamp, T::Null) => order(&T::Timestamp, &T::DAY_TO_SECOND, T::Timestamp),
        (T::TimestampNtz, T::Null) => order(p, &T::DAY_TO_SECOND, T::TimestampNtz),
        (T::Date, T::Int64 | T::Decimal(..) | T::Float32 | T::Float64 | T::String) => {
            return Err(wrong(c, by, "(INT OR SMALLINT OR TINYINT)"));
        }
        (T::Date, T::YearMonthInterval(..)) => order(p, d, T::Date),
        (T::Date, d) if *d == DAYS => order(p, d, T::Date),
        (T::Date, T::DayTimeInterval(..)) => order(&T::Timestamp, d, T::Timestamp),
        (p, d) if is_timestamp(p) && is_interval(d) => order(p, d, p.clone()),
        // Text is read as a TIMESTAMP, and what comes out is text again.
        (T::String, d) if is_interval(d) => order(&T::Timestamp, d, T::String),
        _ => None,
    })
}

/// Refuses an interval beside what it cannot be added to.
fn no_partner(c: &TypeCall<'_>) -> Result<(), ResolveError> {
    let point = |t: &T| is_timestamp(t) || *t == T::Date;
    match (c.ty(0), c.ty(1)) {
        (a, b) if is_interval(b) || point(a) && point(b) => {
            Err(wrong(c, if is_interval(a) { 1 } else { 0 }, "(TIMESTAMP OR DATE OR INTERVAL)"))
        }
        (a, _) if is_interval(a) => Err(wrong(c, 1, "(TIMESTAMP OR DATE OR INTERVAL)")),
        _ => Ok(()),
    }
}

/// Typing of `+`; `None`: the operands are numbers.
pub fn add_type(c: &TypeCall<'_>) -> Result<Option<Typed>, ResolveError> {
    let (a, b) = (c.ty(0), c.ty(1));
    if let Some(t) = moved(c, 0, 1, false)? {
        return Ok(Some(t));
    }
    if let Some(t) = moved(c, 1, 0, true)? {
        return Ok(Some(t));
    }
    if let Some(t) = intervals(c, a, b)? {
        return Ok(Some(t));
    }
    no_partner(c)?;
    Ok(None)
}

/// Sum or difference of two intervals.
fn intervals(c: &TypeCall<'_>, a: &T, b: &T) -> Result<Option<Typed>, ResolveError> {
    Ok(match (a, b) {
        (a, b) if let Some(both) = a.wider_interval(b) => typed(a, b, both),
        (a, T::Null) if is_interval(a) => typed(a, a, a.clone()),
        (T::Null, b) if is_interval(b) => typed(b, b, b.clone()),
        (a, b) if is_interval(a) && is_interval(b) => return Err(wrong(c, 1, &a.to_string())),
        _ => None,
    })
}

/// Typing of `-`; `None`: the operands are numbers.
pub fn subtract_type(c: &TypeCall<'_>) -> Result<Option<Typed>, ResolveError> {
    let (a, b) = (c.ty(0), c.ty(1));
    let point = |t: &T| is_timestamp(t) || *t == T::Date;
    Ok(match (a, b) {
        (T::Date, T::Date | T::String | T::Null) => typed(&T::Date, &T::Date, DAYS),
        (T::String | T::Null, T::Date) => typed(&T::Date, &T::Date, DAYS),
        (a, b)
            if (is_timestamp(a) || is_timestamp(b))
                && (point(a) || *a == T::String)
                && (point(b) || *b == T::String) =>
        {
            // A date or a text takes the timestamp's type; of two timestamp types the instant wins.
            let t = if *a == T::TimestampNtz && *b != T::Timestamp || *b == T::TimestampNtz && *a != T::Timestamp {
                T::TimestampNtz
            } else {
                T::Timestamp
            };
            typed(&t, &t, T::DAY_TO_SECOND)
        }
        (t, T::Null) | (T::Null, t) if is_timestamp(t) => typed(t, t, T::DAY_TO_SECOND),
        _ => match moved(c, 0, 1, false)? {
            Some(t) => Some(t),
            None => match intervals(c, a, b)? {
                Some(t) => Some(t),
                None => {
                    no_partner(c)?;
                    None
                }
            },
        },
    })
}

/// The type that a factor of an interval is evaluated in.
fn factor(t: &T) -> Option<T> {
    match t {
        T::String | T::Null => Some(T::Float64),
        t if t.is_numeric() => Some(t.clone()),
        _ => None,
    }
}

/// Typing of `*`.
pub fn multiply_type(c: &TypeCall<'_>) -> Result<Option<Typed>, ResolveError> {
    let (a, b) = (c.ty(0), c.ty(1));
    if is_interval(a)
        && let Some(f) = factor(b)
    {
        return Ok(typed(a, &f, all_fields(a)));
    }
    if is_interval(b)
        && let Some(f) = factor(a)
    {
        return Ok(typed(&f, b, all_fields(b)));
    }
    Ok(None)
}

/// Typing of `/`.
pub fn divide_type(c: &TypeCall<'_>) -> Result<Option<Typed>, ResolveError> {
    let (a, b) = (c.ty(0), c.ty(1));
    if is_interval(a)
        && let Some(f) = factor(b)
    {
        return Ok(typed(a, &f, all_fields(a)));
    }
    if is_interval(a) { Err(wrong(c, 1, "NUMERIC")) } else { Ok(None) }
}

/// Typing of `div`: how often one interval fits into another.
pub fn integral_divide_type(c: &TypeCall<'_>) -> Option<Typed> {
    let (a, b) = (c.ty(0), c.ty(1));
    a.wider_interval(b).and_then(|_| typed(a, b, T::Int64))
}

fn overflow(c: &Call<'_>, op: Op) -> EvalError {
    EvalError::overflow(op.result_name(), c.data_type, op.tried())
}

/// A DATE argument or an integer one as whole days.
fn days_of<'a>(c: &'a Call<'_>, i: usize) -> Result<Box<dyn Fn(usize) -> i64 + 'a>, EvalError> {
    Ok(match c.types[i] {
        T::Int8 => {
            let a = c.fixed::<Int8Type>(i);
            Box::new(move |r| a.get(r).into())
        }
        T::Int16 => {
            let a = c.fixed::<Int16Type>(i);
            Box::new(move |r| a.get(r).into())
        }
        T::Int32 => {
            let a = c.fixed::<Int32Type>(i);
            Box::new(move |r| a.get(r).into())
        }
        t => return Err(EvalError::internal(format!("{t} is no number of days"))),
    })
}

/// An interval argument's months or microseconds.
fn interval_of<'a>(c: &'a Call<'_>, i: usize) -> Box<dyn Fn(usize) -> i64 + 'a> {
    if matches!(c.types[i], T::YearMonthInterval(..)) {
        let a = c.year_month(i);
        Box::new(move |r| a.get(r).into())
    } else {
        let a = c.day_time(i);
        Box::new(move |r| a.get(r))
    }
}

/// Evaluates an operation with a date, timestamp or interval operand.
pub fn binary(c: &Call<'_>, op: Op, tried: bool) -> EvalResult {
    if *c.data_type == T::String {
        // A text was moved: compute the TIMESTAMP and print it.
        let args = c.args.clone();
        let moved = Call { args, types: c.types.clone(), data_type: &T::Timestamp, ..*c };
        let mode = ssql_ir::CastMode::Ansi;
        return crate::cast::cast_array(&binary(&moved, op, tried)?, &T::Timestamp, &T::String, mode, c.ctx);
    }
    let (a, b) = (c.types[0], c.types[1]);
    // In `interval + point` the point is the second argument.
    let swapped = op == Op::Add && (is_timestamp(b) || *b == T::Date);
    let (p, d) = if swapped { (1, 0) } else { (0, 1) };
    let fail = |v: Option<i64>| match v {
        None if !tried => Err(overflow(c, op)),
        v => Ok(v),
    };
    let sign = if op == Op::Subtract { -1 } else { 1 };
    match (c.types[p], c.types[d], op) {
        (T::Date, T::Date, Op::Subtract) => {
            let (x, y) = (c.date(0), c.date(1));
            c.primitive::<DurationMicrosecondType>(|r| {
                fail((i64::from(x.get(r)) - i64::from(y.get(r))).checked_mul(MICROS_PER_DAY))
            })
        }
        (T::Timestamp, T::Timestamp, Op::Subtract) => {
            // The distance on the clocks of the session's zone, as Spark counts it.
            let (x, y) = (c.timestamp(0), c.timestamp(1));
            let zone = &c.ctx.time_zone;
            c.primitive::<DurationMicrosecondType>(|r| {
                fail(to_local(zone, x.get(r)).checked_sub(to_local(zone, y.get(r))))
            })
        }
        (T::TimestampNtz, T::TimestampNtz, Op::Subtract) => {
            let (x, y) = (c.timestamp(0), c.timestamp(1));
            c.primitive::<DurationMicrosecondType>(|r| fail(x.get(r).checked_sub(y.get(r))))
        }
        (T::Date, by, Op::Add | Op::Subtract) => {
            let x = c.date(p);
            let fail = |v: i64| match i32::try_from(v) {
                Err(_) if !tried => Err(overflow(c, op)),
                v => Ok(v.ok()),
            };
            match by {
                T::YearMonthInterval(..) => {
                    let m = c.year_month(d);
                    c.primitive::<Date32Type>(|r| fail(add_months(x.get(r).into(), sign * i64::from(m.get(r)))))
                }
                T::DayTimeInterval(..) => {
                    // A day-time interval moves points in time: the result lies where a TIMESTAMP can be.
                    let m = c.day_time(d);
                    let reach = i64::MAX / MICROS_PER_DAY;
                    c.primitive::<Date32Type>(|r| {
                        let days = i64::from(x.get(r)) + sign * (m.get(r) / MICROS_PER_DAY);
                        fail(if days.abs() <= reach { days } else { i64::MAX })
                    })
                }
                _ => {
                    let n = days_of(c, d)?;
                    c.primitive::<Date32Type>(|r| fail(i64::from(x.get(r)) + sign * n(r)))
                }
            }
        }
        (T::Timestamp | T::TimestampNtz, T::YearMonthInterval(..), Op::Add | Op::Subtract) => {
            let (x, m, clock) = (c.timestamp(p), c.year_month(d), Clock::of(c, p));
            c.primitive::<TimestampMicrosecondType>(|r| fail(clock.months_later(x.get(r), sign * i64::from(m.get(r)))))
        }
        (T::Timestamp | T::TimestampNtz, T::DayTimeInterval(..), Op::Add | Op::Subtract) => {
            let (x, m, clock) = (c.timestamp(p), c.day_time(d), Clock::of(c, p));
            c.primitive::<TimestampMicrosecondType>(|r| {
                fail(m.get(r).checked_mul(sign).and_then(|by| clock.later(x.get(r), by)))
            })
        }
        (x, y, Op::Add | Op::Subtract) if x.wider_interval(y).is_some() => {
            let (x, y) = (interval_of(c, 0), interval_of(c, 1));
            interval_result(c, |r| fail(y(r).checked_mul(sign).and_then(|y| x(r).checked_add(y))), op, tried)
        }
        (x, y, Op::IntegralDivide) if x.wider_interval(y).is_some() => {
            let (x, y) = (interval_of(c, 0), interval_of(c, 1));
            c.primitive::<Int64Type>(|r| match y(r) {
                0 if tried => Ok(None),
                0 => Err(interval_by_zero()),
                d => fail(x(r).checked_div(d)),
            })
        }
        _ if matches!(op, Op::Multiply | Op::Divide) && (is_interval(a) || is_interval(b)) => scale(c, op, tried),
        _ => Err(EvalError::internal(format!("`{}` of {a} and {b}", c.name))),
    }
}

fn interval_by_zero() -> EvalError {
    EvalError::new("INTERVAL_DIVIDED_BY_ZERO", "Division of an interval by zero.")
        .with_help("use `try_divide` to get NULL where the divisor is 0")
}

/// Builds the interval column of the call's result type.
fn interval_result(
    c: &Call<'_>,
    mut f: impl FnMut(usize) -> Result<Option<i64>, EvalError>,
    op: Op,
    tried: bool,
) -> EvalResult {
    if matches!(c.data_type, T::DayTimeInterval(..)) {
        return c.primitive::<DurationMicrosecondType>(f);
    }
    c.primitive::<IntervalYearMonthType>(|r| match f(r)?.map(i32::try_from) {
        Some(Ok(months)) => Ok(Some(months)),
        Some(Err(_)) if !tried => Err(overflow(c, op)),
        _ => Ok(None),
    })
}

/// Interval times or divided by a number; halves round away from zero.
fn scale(c: &Call<'_>, op: Op, tried: bool) -> EvalResult {
    let (i, n) = if is_interval(c.types[0]) { (0, 1) } else { (1, 0) };
    let interval = interval_of(c, i);
    let done = |v: Option<i64>| match v {
        None if !tried => Err(overflow(c, op)),
        v => Ok(v),
    };
    let zero = || if tried { Ok(None) } else { Err(interval_by_zero()) };
    macro_rules! integer {
        ($t:ty) => {{
            let n = c.fixed::<$t>(n);
            interval_result(
                c,
                |r| {
                    let n = i64::from(n.get(r));
                    if op == Op::Multiply {
                        return done(interval(r).checked_mul(n));
                    }
                    if n == 0 {
                        return zero();
                    }
                    done(i64::try_from(divide_half_up(interval(r).into(), n.into())).ok())
                },
                op,
                tried,
            )
        }};
    }
    let from_float = |v: f64| {
        let rounded = v.round();
        (rounded.is_finite() && rounded >= i64::MIN as f64 && rounded < i64::MAX as f64).then_some(rounded as i64)
    };
    match c.types[n] {
        T::Int8 => integer!(Int8Type),
        T::Int16 => integer!(Int16Type),
        T::Int32 => integer!(Int32Type),
        T::Int64 => integer!(Int64Type),
        T::Decimal(_, s) => {
            let n = c.decimal(n);
            let s = i32::from(*s);
            interval_result(
                c,
                |r| {
                    let (v, n) = (i128::from(interval(r)), n.get(r));
                    let wide = if op == Op::Multiply {
                        v.checked_mul(n).and_then(|p| rescale(p, 1, -s))
                    } else if n == 0 {
                        return zero();
                    } else {
                        rescale(v, n, s)
                    };
                    done(wide.and_then(|w| i64::try_from(w).ok()))
                },
                op,
                tried,
            )
        }
        T::Float32 | T::Float64 => {
            let value: Box<dyn Fn(usize) -> f64 + '_> = if *c.types[n] == T::Float32 {
                let n = c.f32(n);
                Box::new(move |r| n.get(r).into())
            } else {
                let n = c.fixed::<Float64Type>(n);
                Box::new(move |r| n.get(r))
            };
            interval_result(
                c,
                |r| {
                    let (v, n) = (interval(r) as f64, value(r));
                    if op == Op::Multiply {
                        return done(from_float(v * n));
                    }
                    if n == 0.0 {
                        return zero();
                    }
                    done(from_float(v / n))
                },
                op,
                tried,
            )
        }
        t => Err(EvalError::internal(format!("an interval scaled by {t}"))),
    }
}
