//! Functions that the planner writes: the edges of event-time windows, and the value of a correlated subquery.

use arrow::datatypes::TimestampMicrosecondType;

use super::clock::Clock;
use crate::call::{Call, EvalResult};
use crate::error::EvalError;
use crate::function::{FunctionDef, NullRule, Param, Ret, scalar};
use crate::text::parse_interval;

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[
    scalar("window_start", &[Param::AnyTimestamp, Param::BigInt, Param::BigInt], Ret::SameAs(0), window_start)
        .internal()
        .doc(
            "Start of the tumbling window of `size` microseconds, aligned to `offset`, that a time falls into.",
            "window_start(ts, size, offset)",
            "",
        ),
    scalar("session_end", &[Param::AnyTimestamp, Param::String], Ret::SameAs(0), session_end)
        .internal()
        .nulls(NullRule::Any)
        .doc(
            "Where the session span of a row ends: its time plus a gap given as text; NULL if the text is no interval.",
            "session_end(ts, gap)",
            "",
        ),
    scalar("scalar_subquery_value", &[Param::Any, Param::BigInt], Ret::SameAs(0), scalar_subquery_value)
        .internal()
        .nulls(NullRule::Any)
        .doc(
            "The value of a correlated subquery, given its first value and the number of its rows.",
            "scalar_subquery_value(value, count)",
            "",
        ),
];

/// Spark adds a gap's months by the calendar, in the session time zone, and then its microseconds.
fn session_end(c: &Call<'_>) -> EvalResult {
    let (ts, gap, clock) = (c.timestamp(0), c.str(1), Clock::in_zone(&c.ctx.time_zone));
    c.primitive::<TimestampMicrosecondType>(|r| {
        let (Some(at), Some((months, micros))) = (ts.opt(r), gap.opt(r).and_then(parse_interval)) else {
            return Ok(None);
        };
        Ok(clock.months_later(at, i64::from(months)).and_then(|at| at.checked_add(micros)))
    })
}

fn scalar_subquery_value(c: &Call<'_>) -> EvalResult {
    let count = c.i64(1);
    if let Some(row) = (0..c.rows).find(|&r| count.opt(r).is_some_and(|n| n > 1)) {
        return Err(EvalError::new(
            "SCALAR_SUBQUERY_TOO_MANY_ROWS",
            "A subquery used as a value returned more than one row.",
        )
        .with_help("add LIMIT 1, or aggregate it to one row")
        .at_row(row));
    }
    c.column(0)
}

/// The largest `offset + k * size` that is not after `ts`; right for times before 1970 too. `size` is positive.
/// `None` where it does not fit.
pub fn start_of_window(ts: i64, size: i64, offset: i64) -> Option<i64> {
    let distance = i128::from(ts) - i128::from(offset);
    i64::try_from(i128::from(ts) - distance.rem_euclid(i128::from(size))).ok()
}

fn window_start(c: &Call<'_>) -> EvalResult {
    let (ts, size, offset) = (c.timestamp(0), c.i64(1), c.i64(2));
    if c.is_constant(1) && c.is_constant(2) && size.get(0) > 0 && offset.get(0).unsigned_abs() < 1 << 61 {
        // The common case: no overflow for times a window's length inside the range, checked at once.
        let (size, offset) = (size.get(0), offset.get(0));
        let room = size.saturating_add(offset.saturating_abs());
        if (0..c.rows).all(|r| ts.get(r).unsigned_abs() < (i64::MAX - room).max(0) as u64) {
            return c.primitive_all::<TimestampMicrosecondType>(|r| {
                let t = ts.get(r);
                t - (t - offset).rem_euclid(size)
            });
        }
    }
    c.primitive::<TimestampMicrosecondType>(|r| {
        if size.get(r) <= 0 {
            return Err(EvalError::internal("a window's size is positive"));
        }
        match start_of_window(ts.get(r), size.get(r), offset.get(r)) {
            Some(start) => Ok(Some(start)),
            None => Err(EvalError::overflow("The window's start", c.data_type, "")),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_aligned_before_the_epoch_too() {
        assert_eq!(start_of_window(7, 5, 0), Some(5));
        assert_eq!(start_of_window(-1, 5, 0), Some(-5));
        assert_eq!(start_of_window(-5, 5, 0), Some(-5));
        assert_eq!(start_of_window(7, 5, 3), Some(3));
        assert_eq!(start_of_window(8, 5, 3), Some(8));
        assert_eq!(start_of_window(i64::MIN, 5, 0), None);
    }
}
