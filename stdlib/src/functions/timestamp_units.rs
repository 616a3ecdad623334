//! Timestamps in calendar units: `timestampadd`, `timestampdiff`, `date_trunc`, `trunc`, `time_bucket`.

use arrow::datatypes::{Date32Type, Int64Type, TimestampMicrosecondType};
use ssql_ir::{DataType as T, Literal};

use super::clock::Clock;
use super::window::start_of_window;
use crate::call::{Call, EvalResult};
use crate::error::{EvalError, ResolveError};
use crate::function::{FunctionDef, NullRule, Param, Ret, scalar, scalar_with};
use crate::resolve::{TypeCall, Typed};
use crate::time::{MICROS_PER_DAY, MICROS_PER_SECOND, add_months, civil_from_days, days_from_civil, split_micros};

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[
    scalar_with("timestampadd", add_type, add).doc(
        "The timestamp `n` units later. Days and longer units move the wall clock.",
        "timestampadd(unit, n, ts)",
        "timestampadd(MONTH, 1, TIMESTAMP '2024-01-31 10:00:00')",
    ),
    scalar_with("timestampdiff", diff_type, diff).aliases(&["timediff"]).doc(
        "Whole units from `start` to `end`, cut off towards zero.",
        "timestampdiff(unit, start, end)",
        "timestampdiff(MONTH, TIMESTAMP '2024-01-31 10:00:00', TIMESTAMP '2024-02-29 10:00:00')",
    ),
    scalar("date_trunc", &[Param::String, Param::Timestamp], Ret::Timestamp, date_trunc)
        .nulls(NullRule::StrictNullable)
        .doc(
            "The timestamp cut off to the beginning of the unit (`YEAR` to `MICROSECOND`); NULL for an unknown unit.",
            "date_trunc(unit, ts)",
            "date_trunc('HOUR', TIMESTAMP '2024-02-29 12:30:15')",
        ),
    scalar("trunc", &[Param::Date, Param::String], Ret::Date, trunc).nulls(NullRule::StrictNullable).doc(
        "The date cut off to the beginning of the unit (`YEAR`, `QUARTER`, `MONTH`, `WEEK`); NULL for an unknown unit.",
        "trunc(date, unit)",
        "trunc(DATE '2024-02-29', 'MM')",
    ),
    scalar_with("time_bucket", bucket_type, time_bucket).doc(
        "Start of the bucket of that length which a timestamp falls into, counted from `origin` (1970-01-01 by default).",
        "time_bucket(length, ts[, origin])",
        "time_bucket(INTERVAL 15 MINUTES, TIMESTAMP '2024-07-01 00:20:00')",
    ),
];

/// A unit of `timestampadd` and `timestampdiff`.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Unit {
    /// So many microseconds.
    Micros(i64),
    /// So many months.
    Months(i64),
}

fn unit(name: &str, adding: bool) -> Option<Unit> {
    Some(match name.to_ascii_uppercase().as_str() {
        "MICROSECOND" => Unit::Micros(1),
        "MILLISECOND" => Unit::Micros(1000),
        "SECOND" => Unit::Micros(MICROS_PER_SECOND),
        "MINUTE" => Unit::Micros(60 * MICROS_PER_SECOND),
        "HOUR" => Unit::Micros(3600 * MICROS_PER_SECOND),
        "DAY" => Unit::Micros(MICROS_PER_DAY),
        "DAYOFYEAR" if adding => Unit::Micros(MICROS_PER_DAY),
        "WEEK" => Unit::Micros(7 * MICROS_PER_DAY),
        "MONTH" => Unit::Months(1),
        "QUARTER" => Unit::Months(3),
        "YEAR" => Unit::Months(12),
        _ => return None,
    })
}

fn check_unit(c: &TypeCall<'_>, adding: bool) -> Result<(), ResolveError> {
    let known = matches!(c.literal(0), Some(Literal::String(s)) if unit(s, adding).is_some());
    if known {
        return Ok(());
    }
    Err(ResolveError::new(
        "INVALID_PARAMETER_VALUE.DATETIME_UNIT",
        format!(
            "The unit of `{}` is one of YEAR, QUARTER, MONTH, WEEK, DAY, HOUR, MINUTE, SECOND, MILLISECOND, MICROSECOND.",
            c.name
        ),
    )
    .at_arg(0))
}

/// Typing of `timestampadd(unit, n, ts)`.
pub(super) fn add_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(3, 3)?;
    check_unit(c, true)?;
    let ts = c.coerce(2, Param::AnyTimestamp)?;
    Ok(Typed::new(vec![T::String, c.coerce(1, Param::BigInt)?, ts.clone()], ts))
}

/// Typing of `timestampdiff(unit, start, end)`.
pub(super) fn diff_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(3, 3)?;
    check_unit(c, false)?;
    // Two wall-clock readings are compared as they are; beside an instant a reading becomes one.
    let ntz = (1..3).all(|i| matches!(c.ty(i), T::TimestampNtz | T::Null)) && c.ty(1) != c.ty(2)
        || *c.ty(1) == T::TimestampNtz && c.ty(1) == c.ty(2);
    let p = if ntz { Param::TimestampNtz } else { Param::Timestamp };
    Ok(Typed::new(vec![T::String, c.coerce(1, p)?, c.coerce(2, p)?], T::Int64))
}

/// Evaluates `timestampadd(unit, n, ts)`.
pub(super) fn add(c: &Call<'_>) -> EvalResult {
    let name = c.constant_str(0).unwrap_or_default();
    let unit = unit(name, true).ok_or_else(|| EvalError::internal("typing knows the unit"))?;
    let (n, ts, clock) = (c.i64(1), c.timestamp(2), Clock::of(c, 2));
    let shift = |t: i64, n: i64| match unit {
        Unit::Micros(size) => {
            let by = n.checked_mul(size)?;
            // Whole days move the wall clock, the rest is real time.
            let rest = by % MICROS_PER_DAY;
            clock.moved(t, |local| local.checked_add(by - rest))?.checked_add(rest)
        }
        Unit::Months(size) => {
            let months = n.checked_mul(size).filter(|m| i32::try_from(*m).is_ok())?;
            clock.moved(t, |local| {
                let (days, of_day) = split_micros(local);
                add_months(days, months).checked_mul(MICROS_PER_DAY)?.checked_add(of_day)
            })
        }
    };
    c.primitive::<TimestampMicrosecondType>(|r| match shift(ts.get(r), n.get(r)) {
        None => Err(EvalError::new(
            "DATETIME_OVERFLOW",
            format!("{} {name} added to a timestamp leave the range of {}.", n.get(r), c.data_type),
        )),
        t => Ok(t),
    })
}

/// Whole months between two wall-clock readings.
fn months_between(start: i64, end: i64) -> i64 {
    let ((start_day, start_time), (mut end_day, end_time)) = (split_micros(start), split_micros(end));
    if end_day > start_day && end_time < start_time {
        end_day -= 1;
    } else if end_day < start_day && end_time > start_time {
        end_day += 1;
    }
    let packed = |day: i64| {
        let (y, m, d) = civil_from_days(day);
        (y * 12 + i64::from(m)) * 32 + i64::from(d)
    };
    (packed(end_day) - packed(start_day)) / 32
}

/// Evaluates `timestampdiff(unit, start, end)`.
pub(super) fn diff(c: &Call<'_>) -> EvalResult {
    let unit = unit(c.constant_str(0).unwrap_or_default(), false)
        .ok_or_else(|| EvalError::internal("typing knows the unit"))?;
    let (start, end, clock) = (c.timestamp(1), c.timestamp(2), Clock::of(c, 1));
    c.primitive::<Int64Type>(|r| {
        let (start, end) = (clock.local(start.get(r)), clock.local(end.get(r)));
        Ok(Some(match unit {
            Unit::Micros(size) => ((i128::from(end) - i128::from(start)) / i128::from(size))
                .try_into()
                .map_err(|_| EvalError::overflow("The distance", c.data_type, ""))?,
            Unit::Months(size) => months_between(start, end) / size,
        }))
    })
}

/// A unit of `date_trunc`.
#[derive(Debug, Clone, Copy)]
enum Level {
    /// A unit of the calendar.
    Calendar(fn(i64) -> i64),
    /// A unit of the wall clock, in microseconds.
    Wall(i64),
    /// A unit in which all zones agree, in microseconds.
    Micros(i64),
}

fn first_of_year(days: i64) -> i64 {
    days_from_civil(civil_from_days(days).0, 1, 1)
}

fn first_of_quarter(days: i64) -> i64 {
    let (y, m, _) = civil_from_days(days);
    days_from_civil(y, (m - 1) / 3 * 3 + 1, 1)
}

fn first_of_month(days: i64) -> i64 {
    let (y, m, _) = civil_from_days(days);
    days_from_civil(y, m, 1)
}

fn monday(days: i64) -> i64 {
    days - (days + 3).rem_euclid(7)
}

fn level(name: &str) -> Option<Level> {
    Some(match name.to_ascii_uppercase().as_str() {
        "YEAR" | "YYYY" | "YY" => Level::Calendar(first_of_year),
        "QUARTER" => Level::Calendar(first_of_quarter),
        "MONTH" | "MM" | "MON" => Level::Calendar(first_of_month),
        "WEEK" => Level::Calendar(monday),
        "DAY" | "DD" => Level::Wall(MICROS_PER_DAY),
        "HOUR" => Level::Wall(3600 * MICROS_PER_SECOND),
        "MINUTE" => Level::Wall(60 * MICROS_PER_SECOND),
        "SECOND" => Level::Micros(MICROS_PER_SECOND),
        "MILLISECOND" => Level::Micros(1000),
        "MICROSECOND" => Level::Micros(1),
        _ => return None,
    })
}

fn date_trunc(c: &Call<'_>) -> EvalResult {
    let (name, ts, clock) = (c.str(0), c.timestamp(1), Clock::of(c, 1));
    let cut = |level: Level, t: i64| match level {
        Level::Micros(size) => t - t.rem_euclid(size),
        Level::Wall(size) => clock.moved(t, |l| Some(l - l.rem_euclid(size))).unwrap_or(t),
        Level::Calendar(f) => clock.instant(f(split_micros(clock.local(t)).0).saturating_mul(MICROS_PER_DAY)),
    };
    if let Some(name) = c.constant_str(0) {
        let Some(level) = level(name) else { return Ok(c.all_null()) };
        return c.primitive_all::<TimestampMicrosecondType>(|r| cut(level, ts.get(r)));
    }
    c.primitive::<TimestampMicrosecondType>(|r| Ok(level(name.get(r)).map(|l| cut(l, ts.get(r)))))
}

fn trunc(c: &Call<'_>) -> EvalResult {
    let (d, name) = (c.date(0), c.str(1));
    let constant = c.constant_str(1).map(level);
    c.primitive::<Date32Type>(|r| {
        Ok(match constant.unwrap_or_else(|| level(name.get(r))) {
            Some(Level::Calendar(f)) => Some(f(d.get(r).into()) as i32),
            _ => None,
        })
    })
}

fn bucket_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, 3)?;
    // Neither a text nor a DATE is read as what is asked for.
    let length = match c.ty(0) {
        T::String => return Err(c.mismatch(0, "(INTERVAL DAY TO SECOND OR INTERVAL YEAR TO MONTH)")),
        _ => c.coerce(0, Param::OneOf(&[Param::DayTime, Param::YearMonth]))?,
    };
    let ts = match c.ty(1) {
        T::Date | T::String => return Err(c.mismatch(1, "(TIMESTAMP OR TIMESTAMP WITHOUT TIME ZONE)")),
        _ => c.coerce(1, Param::AnyTimestamp)?,
    };
    let mut types = vec![length, ts.clone()];
    if c.len() == 3 {
        types.push(c.coerce(2, if ts == T::TimestampNtz { Param::TimestampNtz } else { Param::Timestamp })?);
    }
    Ok(Typed::new(types, ts))
}

fn time_bucket(c: &Call<'_>) -> EvalResult {
    let (ts, clock) = (c.timestamp(1), Clock::of(c, 1));
    let given = (c.len() == 3).then(|| c.timestamp(2));
    let origin = |r: usize| given.as_ref().map_or(0, |o| o.get(r));
    let not_positive =
        || EvalError::new("INVALID_PARAMETER_VALUE.TIME_BUCKET_SIZE", "The length of a time bucket is positive.");
    let overflow =
        || EvalError::new("DATETIME_OVERFLOW", format!("The bucket's start leaves the range of {}.", c.data_type));
    if matches!(c.types[0], T::DayTimeInterval(..)) {
        let length = c.day_time(0);
        return c.primitive::<TimestampMicrosecondType>(|r| {
            if length.get(r) <= 0 {
                return Err(not_positive());
            }
            start_of_window(ts.get(r), length.get(r), origin(r)).map(Some).ok_or_else(overflow)
        });
    }
    let length = c.year_month(0);
    c.primitive::<TimestampMicrosecondType>(|r| {
        let length = i64::from(length.get(r));
        if length <= 0 {
            return Err(not_positive());
        }
        let (start, t) = (clock.local(origin(r)), clock.local(ts.get(r)));
        let (day, of_day) = split_micros(start);
        let bucket = |n: i64| add_months(day, n * length).checked_mul(MICROS_PER_DAY)?.checked_add(of_day);
        // Whole months are cut off towards zero: before the origin the bucket may be one further down.
        let mut n = months_between(start, t).div_euclid(length);
        if bucket(n).ok_or_else(overflow)? > t {
            n -= 1;
        }
        Ok(Some(clock.instant(bucket(n).ok_or_else(overflow)?)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EvalContext;
    use crate::testing::{date, eval, expr, int, null, null_of, seconds, show_in, str, timestamp};
    use crate::time::parse_zone;

    #[test]
    fn units_are_added() {
        let add = |unit: &str, n: i32, ts: &str| eval("timestampadd", &[str(unit), int(n), timestamp(ts)]);
        assert_eq!(add("MONTH", 1, "2024-01-31 10:00:00"), "2024-02-29 10:00:00");
        assert_eq!(add("HOUR", -5, "2024-01-01 03:00:00"), "2023-12-31 22:00:00");
        assert_eq!(add("MICROSECOND", 1, "2024-01-01 00:00:00"), "2024-01-01 00:00:00.000001");
        assert_eq!(add("QUARTER", 1, "2024-01-31 10:00:00"), "2024-04-30 10:00:00");
        assert_eq!(add("year", 1, "2024-02-29 00:00:00"), "2025-02-28 00:00:00");
        assert_eq!(add("YEAR", i32::MAX, "2024-02-29 00:00:00"), "!DATETIME_OVERFLOW");
        assert_eq!(add("NOPE", 1, "2024-02-29 00:00:00"), "!INVALID_PARAMETER_VALUE.DATETIME_UNIT");
        assert_eq!(eval("timestampadd", &[str("DAY"), int(1), date("2024-02-28")]), "2024-02-29 00:00:00");
        assert_eq!(eval("dateadd", &[str("WEEK"), int(2), timestamp("2024-01-01 00:00:00")]), "2024-01-15 00:00:00");
        assert_eq!(eval("timestampadd", &[str("DAY"), null(), date("2024-02-28")]), "NULL");
    }

    #[test]
    fn units_between() {
        let all = |a: &str, b: &str| {
            ["SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR"]
                .map(|u| eval("timestampdiff", &[str(u), timestamp(a), timestamp(b)]))
                .join(" ")
        };
        assert_eq!(all("2024-01-31 10:00:00", "2024-02-29 09:59:59"), "2505599 41759 695 28 4 0 0");
        assert_eq!(all("2024-01-31 10:00:00", "2024-02-29 10:00:00"), "2505600 41760 696 29 4 0 0");
        assert_eq!(all("2024-03-01 00:00:00", "2023-02-28 23:00:00"), "-31626000 -527100 -8785 -366 -52 -12 -1");
        assert_eq!(eval("timestampdiff", &[str("QUARTER"), date("2024-01-01"), date("2024-12-31")]), "3");
        assert_eq!(eval("datediff", &[str("MONTH"), date("2024-01-31"), date("2024-02-29")]), "0");
        assert_eq!(eval("timestampdiff", &[str("DAY"), null_of(T::Timestamp), date("2024-02-29")]), "NULL");
    }

    #[test]
    fn truncation() {
        let cut = |unit: &str| eval("date_trunc", &[str(unit), timestamp("1969-12-31 23:59:59.250001")]);
        assert_eq!(cut("YEAR"), "1969-01-01 00:00:00");
        assert_eq!(cut("quarter"), "1969-10-01 00:00:00");
        assert_eq!(cut("mm"), "1969-12-01 00:00:00");
        assert_eq!(cut("WEEK"), "1969-12-29 00:00:00");
        assert_eq!(cut("DAY"), "1969-12-31 00:00:00");
        assert_eq!(cut("HOUR"), "1969-12-31 23:00:00");
        assert_eq!(cut("MINUTE"), "1969-12-31 23:59:00");
        assert_eq!(cut("SECOND"), "1969-12-31 23:59:59");
        assert_eq!(cut("MILLISECOND"), "1969-12-31 23:59:59.25");
        assert_eq!(cut("nope"), "NULL");
        let day = |unit: &str| eval("trunc", &[date("2024-05-05"), str(unit)]);
        assert_eq!(day("yy"), "2024-01-01");
        assert_eq!(day("quarter"), "2024-04-01");
        assert_eq!(day("MON"), "2024-05-01");
        assert_eq!(day("week"), "2024-04-29");
        assert_eq!(day("Q"), "NULL");
        assert_eq!(day("DAY"), "NULL");
    }

    #[test]
    fn days_follow_the_wall_clock() {
        let ctx = EvalContext { time_zone: parse_zone("America/New_York").expect("known"), ..EvalContext::default() };
        let show = |e| show_in(&e, &ctx);
        let noon = || timestamp("2024-03-09 17:00:00");
        assert_eq!(show(expr("timestampadd", &[str("DAY"), int(1), noon()])), "2024-03-10 12:00:00");
        assert_eq!(show(expr("timestampadd", &[str("HOUR"), int(24), noon()])), "2024-03-10 12:00:00");
        assert_eq!(show(expr("timestampadd", &[str("HOUR"), int(23), noon()])), "2024-03-10 12:00:00");
        // The second 01:30 of the night that has two stays the second one: 06:30 UTC.
        let second = || timestamp("2024-11-03 06:30:00");
        let diff = expr("timestampdiff", &[str("SECOND"), timestamp("2024-11-03 00:00:00"), second()]);
        assert_eq!(show(expr("unix_seconds", &[expr("timestampadd", &[str("HOUR"), int(0), second()])])), "1730615400");
        assert_eq!(show(diff), "19800");
        assert_eq!(show(expr("date_trunc", &[str("DAY"), noon()])), "2024-03-09 00:00:00");
    }

    #[test]
    fn buckets() {
        let at = || timestamp("2024-07-01 00:20:00");
        assert_eq!(eval("time_bucket", &[seconds(900), at()]), "2024-07-01 00:15:00");
        assert_eq!(eval("time_bucket", &[seconds(900), at(), timestamp("2024-01-01 00:10:00")]), "2024-07-01 00:10:00");
        assert_eq!(
            eval("time_bucket", &[crate::testing::months(3), timestamp("1969-11-05 01:00:00")]),
            "1969-10-01 00:00:00"
        );
        assert!(eval("time_bucket", &[seconds(0), at()]).starts_with('!'));
    }
}
