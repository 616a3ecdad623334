//! `sequence`: the values from a start to a stop by a step.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, NullBufferBuilder};
use ssql_ir::{CastMode, DataType as T};

use super::access::index_of;
use super::arrays::array_of;
use super::clock::Clock;
use super::lists::too_many;
use crate::call::{Call, EvalResult};
use crate::cast::cast_array;
use crate::error::{EvalError, ResolveError};
use crate::function::{FunctionDef, scalar_with};
use crate::resolve::{TypeCall, Typed};
use crate::time::MICROS_PER_DAY;

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[scalar_with("sequence", sequence_type, sequence).doc(
    "The numbers, dates or timestamps from `start` to `stop` by `step`: 1, one day, or the same downwards unless said.",
    "sequence(start, stop[, step])",
    "sequence(1, 5)",
)];

/// Most elements of one array.
const LIMIT: i128 = 2_147_483_632;

fn sequence_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, 3)?;
    let wrong = || {
        let types: Vec<String> = c.args.iter().map(|a| a.data_type.to_string()).collect();
        ResolveError::new(
            "DATATYPE_MISMATCH.SEQUENCE_WRONG_INPUT_TYPES",
            format!(
                "`sequence` takes integers, or dates or timestamps with an interval as step, not ({}).",
                types.join(", ")
            ),
        )
    };
    let ends = c.common_of(0, 1).map_err(|_| wrong())?;
    let step = (c.len() == 3).then(|| c.ty(2));
    let types = match &ends {
        T::Null => vec![T::Int32; c.len()],
        t if t.is_integer() => {
            let wide = match step {
                None => t.clone(),
                Some(s) if s.is_integer() || *s == T::Null => c.common(0)?,
                Some(_) => return Err(wrong()),
            };
            vec![wide; c.len()]
        }
        T::Date | T::Timestamp | T::TimestampNtz => {
            let mut types = vec![ends.clone(); 2];
            match step {
                None => {}
                Some(T::Null) => types.push(T::DAY_TO_SECOND),
                Some(t @ T::DayTimeInterval(..)) => types.push(t.clone()),
                Some(t @ T::YearMonthInterval(..)) => types.push(t.clone()),
                Some(_) => return Err(wrong()),
            }
            types
        }
        _ => return Err(wrong()),
    };
    let t = array_of(types[0].clone(), false);
    Ok(Typed::new(types, t))
}

/// Appends the values of one row; `at(k)` is the `k`th.
fn fill(
    out: &mut Vec<i64>,
    start: i64,
    stop: i64,
    step: i64,
    at: impl Fn(i64) -> Option<i64>,
) -> Result<(), EvalError> {
    if start != stop && (step == 0 || (start < stop) != (step > 0)) {
        return Err(EvalError::new(
            "ILLEGAL_SEQUENCE_BOUNDARIES",
            format!("A sequence from {start} to {stop} cannot be made by steps of {step}."),
        ));
    }
    for k in 0.. {
        let Some(value) = at(k) else { break };
        if (step >= 0 && value > stop) || (step < 0 && value < stop) {
            break;
        }
        if out.len() as i128 >= LIMIT {
            return Err(too_many());
        }
        out.push(value);
        if value == stop {
            break;
        }
    }
    Ok(())
}

/// Microseconds or days of a whole batch, whatever their type.
fn as_integers<'a>(c: &'a Call<'_>, i: usize) -> Result<Box<dyn Fn(usize) -> i64 + 'a>, EvalError> {
    Ok(match c.types[i] {
        T::Date => {
            let d = c.date(i);
            Box::new(move |r| i64::from(d.get(r)) * MICROS_PER_DAY)
        }
        T::Timestamp | T::TimestampNtz => {
            let t = c.timestamp(i);
            Box::new(move |r| t.get(r))
        }
        T::DayTimeInterval(..) => {
            let d = c.day_time(i);
            Box::new(move |r| d.get(r))
        }
        T::YearMonthInterval(..) => {
            let m = c.year_month(i);
            Box::new(move |r| m.get(r).into())
        }
        _ => index_of(c, i)?,
    })
}

fn sequence(c: &Call<'_>) -> EvalResult {
    let (start, stop) = (as_integers(c, 0)?, as_integers(c, 1)?);
    let step = if c.len() == 3 { Some(as_integers(c, 2)?) } else { None };
    let valid = c.valid();
    let mut values: Vec<i64> = vec![];
    let mut offsets = vec![0i32];
    let mut nulls = NullBufferBuilder::new(c.rows);
    let is_time = !c.types[0].is_integer();
    let by_months = c.types.get(2).is_some_and(|t| matches!(t, T::YearMonthInterval(..)));
    // The days of dates are counted in UTC.
    let clock = if *c.types[0] == T::Timestamp { Clock::in_zone(&c.ctx.time_zone) } else { Clock::Fixed(0) };
    let unit = if is_time { MICROS_PER_DAY } else { 1 };
    for row in 0..c.rows {
        let asked = valid.as_ref().is_none_or(|n| n.is_valid(row));
        nulls.append(asked);
        if asked {
            let (start, stop) = (start(row), stop(row));
            let step = step.as_ref().map_or(if start <= stop { unit } else { -unit }, |s| s(row));
            if *c.types[0] == T::Date && !by_months && step % MICROS_PER_DAY != 0 {
                return Err(EvalError::new(
                    "ILLEGAL_SEQUENCE_BOUNDARIES",
                    "A sequence of dates is made by steps of whole days or months.",
                )
                .at_row(row));
            }
            if is_time && by_months {
                fill(&mut values, start, stop, step, |k| clock.months_later(start, step.checked_mul(k)?))
            } else if is_time {
                fill(&mut values, start, stop, step, |k| clock.later(start, step.checked_mul(k)?))
            } else {
                fill(&mut values, start, stop, step, |k| start.checked_add(step.checked_mul(k)?))
            }
            .map_err(|e| e.at_row(row))?;
        }
        offsets.push(values.len() as i32);
    }
    let T::Array(element) = c.data_type else { return Err(EvalError::internal("an array")) };
    let t = &element.data_type;
    if *t == T::Date {
        values.iter_mut().for_each(|v| *v = v.div_euclid(MICROS_PER_DAY));
    }
    // The integers are in the range of the type: they lie between two of its values.
    let values: ArrayRef = Arc::new(Int64Array::from(values));
    let values = match t {
        T::Int64 => values,
        t if t.is_integer() => cast_array(&values, &T::Int64, t, CastMode::Ansi, c.ctx)?,
        T::Date => arrow::compute::cast(
            &cast_array(&values, &T::Int64, &T::Int32, CastMode::Ansi, c.ctx)?,
            &crate::arrow_type(t),
        )?,
        t => arrow::compute::cast(&values, &crate::arrow_type(t))?,
    };
    let field = Arc::new(crate::arrow::arrow_field(element));
    let offsets = arrow::buffer::OffsetBuffer::new(offsets.into());
    Ok(Arc::new(arrow::array::ListArray::try_new(field, offsets, values, nulls.finish())?))
}

#[cfg(test)]
mod tests {
    use crate::testing::*;

    #[test]
    fn numbers() {
        assert_eq!(eval("sequence", &[int(1), int(5)]), "[1, 2, 3, 4, 5]");
        assert_eq!(eval("sequence", &[int(5), int(1), int(-2)]), "[5, 3, 1]");
        assert_eq!(eval("sequence", &[int(3), int(1)]), "[3, 2, 1]");
        assert_eq!(eval("sequence", &[int(1), int(1)]), "[1]");
        assert_eq!(eval("sequence", &[int(1), int(1), int(0)]), "[1]");
        assert_eq!(eval("sequence", &[int(1), int(5), int(-1)]), "!ILLEGAL_SEQUENCE_BOUNDARIES");
        assert_eq!(
            eval("sequence", &[bigint(i64::MAX - 1), bigint(i64::MAX)]),
            "[9223372036854775806, 9223372036854775807]"
        );
        assert_eq!(eval("sequence", &[null(), int(1)]), "NULL");
        assert_eq!(eval("sequence", &[str("a"), boolean(true)]), "!DATATYPE_MISMATCH.SEQUENCE_WRONG_INPUT_TYPES");
    }

    #[test]
    fn times() {
        let (a, b) = (|| date("2024-01-30"), || date("2024-04-01"));
        assert_eq!(eval("sequence", &[a(), b(), months(1)]), "[2024-01-30, 2024-02-29, 2024-03-30]");
        assert_eq!(eval("sequence", &[a(), date("2024-02-01")]), "[2024-01-30, 2024-01-31, 2024-02-01]");
        let (a, b) = (timestamp("2024-01-01 00:00:00"), timestamp("2024-01-01 01:00:00"));
        assert_eq!(eval("sequence", &[a, b, seconds(3600)]), "[2024-01-01 00:00:00, 2024-01-01 01:00:00]");
    }
}
