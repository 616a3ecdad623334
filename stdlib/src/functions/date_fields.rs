//! Fields of dates, timestamps and intervals: `year` to `second`, `extract` and `date_part`, names of days and months.
//!
//! A field of the date takes a DATE: a timestamp is cast to one (in the session's time zone) before it gets here. A field
//! of the time of day takes a TIMESTAMP or a TIMESTAMP_NTZ.

use arrow::datatypes::{ArrowPrimitiveType, Decimal128Type, Int8Type, Int32Type};
use ssql_ir::{DataType as T, DayTimeField, Literal, YearMonthField};

use super::clock::Clock;
use crate::call::{Call, EvalResult};
use crate::error::{EvalError, ResolveError};
use crate::function::{FunctionDef, Param, Ret, scalar, scalar_with};
use crate::resolve::{TypeCall, Typed};
use crate::time::{MICROS_PER_SECOND, civil_from_days, days_from_civil};

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[
    of_date("year", |c| date_field(c, year)).doc("Year.", "year(date)", "year(DATE '2024-02-29')"),
    of_date("quarter", |c| date_field(c, quarter)).doc(
        "Quarter of the year, 1 to 4.",
        "quarter(date)",
        "quarter(DATE '2024-02-29')",
    ),
    of_date("month", |c| date_field(c, month)).doc("Month, 1 to 12.", "month(date)", "month(DATE '2024-02-29')"),
    of_date("day", |c| date_field(c, day)).aliases(&["dayofmonth"]).doc(
        "Day of the month, 1 to 31.",
        "day(date)",
        "day(DATE '2024-02-29')",
    ),
    of_date("dayofyear", |c| date_field(c, day_of_year)).doc(
        "Day of the year, 1 to 366.",
        "dayofyear(date)",
        "dayofyear(DATE '2024-02-29')",
    ),
    of_date("dayofweek", |c| date_field(c, day_of_week)).doc(
        "Day of the week, 1 (Sunday) to 7 (Saturday).",
        "dayofweek(date)",
        "dayofweek(DATE '2024-02-29')",
    ),
    of_date("weekday", |c| date_field(c, weekday)).doc(
        "Day of the week, 0 (Monday) to 6 (Sunday).",
        "weekday(date)",
        "weekday(DATE '2024-02-29')",
    ),
    of_date("weekofyear", |c| date_field(c, |d| iso_week(d).1)).doc(
        "ISO week of the year, 1 to 53.",
        "weekofyear(date)",
        "weekofyear(DATE '2024-02-29')",
    ),
    scalar("dayname", &[Param::Date], Ret::String, |c| name_of(c, |d| DAY_NAMES[weekday(d) as usize])).doc(
        "Name of the day of the week, three letters.",
        "dayname(date)",
        "dayname(DATE '2024-02-29')",
    ),
    scalar("monthname", &[Param::Date], Ret::String, |c| name_of(c, |d| MONTH_NAMES[month(d) as usize - 1])).doc(
        "Name of the month, three letters.",
        "monthname(date)",
        "monthname(DATE '2024-02-29')",
    ),
    of_time("hour", |c| time_field(c, hour)).doc(
        "Hour of the day, 0 to 23.",
        "hour(ts)",
        "hour(TIMESTAMP '2024-02-29 12:30:15')",
    ),
    of_time("minute", |c| time_field(c, minute)).doc(
        "Minute of the hour, 0 to 59.",
        "minute(ts)",
        "minute(TIMESTAMP '2024-02-29 12:30:15')",
    ),
    of_time("second", |c| time_field(c, second)).doc(
        "Second of the minute, 0 to 59.",
        "second(ts)",
        "second(TIMESTAMP '2024-02-29 12:30:15')",
    ),
    scalar_with("date_part", part_type, date_part).aliases(&["datepart", "extract"]).doc(
        "A field of a date, timestamp or interval; the name of the field is a constant.",
        "extract(field FROM source) | date_part(field, source)",
        "date_part('year', DATE '2024-02-29')",
    ),
];

const fn of_date(name: &'static str, eval: crate::function::EvalFn) -> FunctionDef {
    scalar(name, &[Param::Date], Ret::Int, eval)
}

const fn of_time(name: &'static str, eval: crate::function::EvalFn) -> FunctionDef {
    scalar(name, &[Param::AnyTimestamp], Ret::Int, eval)
}

pub(crate) const DAY_NAMES: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
pub(crate) const MONTH_NAMES: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

fn year(days: i64) -> i32 {
    civil_from_days(days).0 as i32
}

fn quarter(days: i64) -> i32 {
    (month(days) - 1) / 3 + 1
}

fn month(days: i64) -> i32 {
    civil_from_days(days).1 as i32
}

fn day(days: i64) -> i32 {
    civil_from_days(days).2 as i32
}

/// Day of the year, from 1.
pub(crate) fn day_of_year(days: i64) -> i32 {
    (days - days_from_civil(civil_from_days(days).0, 1, 1) + 1) as i32
}

/// 1 is Sunday.
fn day_of_week(days: i64) -> i32 {
    (days + 4).rem_euclid(7) as i32 + 1
}

/// 0 is Monday.
pub(crate) fn weekday(days: i64) -> i32 {
    (days + 3).rem_euclid(7) as i32
}

/// ISO year and week: weeks begin on Monday and belong to the year that holds their Thursday.
fn iso_week(days: i64) -> (i32, i32) {
    let thursday = days - i64::from(weekday(days)) + 3;
    (year(thursday), (day_of_year(thursday) - 1) / 7 + 1)
}

fn hour(of_day: i64) -> i32 {
    (of_day / (3600 * MICROS_PER_SECOND)) as i32
}

fn minute(of_day: i64) -> i32 {
    (of_day / (60 * MICROS_PER_SECOND) % 60) as i32
}

fn second(of_day: i64) -> i32 {
    (of_day / MICROS_PER_SECOND % 60) as i32
}

fn date_field(c: &Call<'_>, f: fn(i64) -> i32) -> EvalResult {
    let d = c.date(0);
    c.primitive_all::<Int32Type>(|r| f(d.get(r).into()))
}

fn name_of(c: &Call<'_>, f: fn(i64) -> &'static str) -> EvalResult {
    let d = c.date(0);
    c.strs(|r| Ok(Some(f(d.get(r).into()))))
}

fn time_field(c: &Call<'_>, f: fn(i64) -> i32) -> EvalResult {
    let (ts, clock) = (c.timestamp(0), Clock::of(c, 0));
    c.primitive_all::<Int32Type>(|r| f(clock.of_day(ts.get(r))))
}

/// What `extract` can take out.
#[derive(Debug, Clone, Copy)]
enum Part {
    /// Of a date.
    Date(fn(i64) -> i32),
    /// Of a time of day.
    Time(fn(i64) -> i32),
    /// Seconds with their fraction.
    Seconds,
    /// Of a day-time interval, in microseconds: the size of the unit, and how many make one of the next larger.
    DayTime(i64, i64),
    /// Of a year-month interval: what the months are divided by, and whether the remainder is meant.
    YearMonth(bool),
}

const UNBOUNDED: i64 = i64::MAX;

/// The part of that name of a value of type `t`.
fn part(field: &str, t: &T) -> Option<Part> {
    let field = field.to_ascii_lowercase();
    Some(match t {
        // Only fields between the first and the last of the type can be asked for.
        T::DayTimeInterval(first, last) => {
            let (unit, part) = match field.as_str() {
                "day" | "d" | "days" => (DayTimeField::Day, Part::DayTime(DayTimeField::Day.micros(), UNBOUNDED)),
                "hour" | "h" | "hours" | "hr" | "hrs" => {
                    (DayTimeField::Hour, Part::DayTime(DayTimeField::Hour.micros(), 24))
                }
                "minute" | "m" | "min" | "mins" | "minutes" => {
                    (DayTimeField::Minute, Part::DayTime(DayTimeField::Minute.micros(), 60))
                }
                "second" | "s" | "sec" | "seconds" | "secs" => (DayTimeField::Second, Part::Seconds),
                _ => return None,
            };
            return (*first..=*last).contains(&unit).then_some(part);
        }
        T::YearMonthInterval(first, last) => {
            let (unit, part) = match field.as_str() {
                "year" | "y" | "years" | "yr" | "yrs" => (YearMonthField::Year, Part::YearMonth(false)),
                "month" | "mon" | "mons" | "months" => (YearMonthField::Month, Part::YearMonth(true)),
                _ => return None,
            };
            return (*first..=*last).contains(&unit).then_some(part);
        }
        _ => match field.as_str() {
            "year" | "y" | "years" | "yr" | "yrs" => Part::Date(year),
            "yearofweek" => Part::Date(|d| iso_week(d).0),
            "quarter" | "qtr" => Part::Date(quarter),
            "month" | "mon" | "mons" | "months" => Part::Date(month),
            "week" | "w" | "weeks" => Part::Date(|d| iso_week(d).1),
            "day" | "d" | "days" => Part::Date(day),
            "dayofweek" | "dow" => Part::Date(day_of_week),
            "dayofweek_iso" | "dow_iso" => Part::Date(|d| weekday(d) + 1),
            "doy" => Part::Date(day_of_year),
            "hour" | "h" | "hours" | "hr" | "hrs" => Part::Time(hour),
            "minute" | "m" | "min" | "mins" | "minutes" => Part::Time(minute),
            "second" | "s" | "sec" | "seconds" | "secs" => Part::Seconds,
            _ => return None,
        },
    })
}

fn part_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, 2)?;
    if *c.ty(0) == T::Null || c.args[0].literal == Some(Literal::Null) {
        return Ok(Typed::new(vec![T::String, c.ty(1).clone()], T::Float64).nullable(true));
    }
    let Some(Literal::String(field)) = c.literal(0) else {
        return Err(ResolveError::new(
            "NON_FOLDABLE_ARGUMENT",
            format!("`{}` needs a constant STRING as its field.", c.name),
        )
        .at_arg(0));
    };
    let source = match c.ty(1) {
        t @ (T::DayTimeInterval(..) | T::YearMonthInterval(..) | T::Date | T::Timestamp | T::TimestampNtz) => t.clone(),
        T::String | T::Null => T::Timestamp,
        _ => return Err(c.mismatch(1, "(DATE OR TIMESTAMP OR INTERVAL)")),
    };
    let Some(part) = part(field, &source) else {
        return Err(ResolveError::new(
            "INVALID_EXTRACT_FIELD",
            format!("Cannot extract `{field}` from a value of type {source}."),
        )
        .at_arg(0));
    };
    let (source, result) = match part {
        Part::Date(_) => (T::Date, T::Int32),
        Part::Time(_) => (if source == T::Date { T::Timestamp } else { source }, T::Int32),
        Part::Seconds => (if source == T::Date { T::Timestamp } else { source }, T::Decimal(8, 6)),
        Part::DayTime(_, UNBOUNDED) | Part::YearMonth(false) => (source, T::Int32),
        Part::DayTime(..) | Part::YearMonth(true) => (source, T::Int8),
    };
    Ok(Typed::new(vec![T::String, source], result))
}

fn interval_part<P: ArrowPrimitiveType>(c: &Call<'_>, f: impl Fn(usize) -> P::Native) -> EvalResult {
    c.primitive_all::<P>(f)
}

fn date_part(c: &Call<'_>) -> EvalResult {
    let field = c.constant_str(0).unwrap_or_default();
    // A date's time of day was asked for of a timestamp, see `part_type`.
    match part(field, c.types[1]) {
        Some(Part::Date(f)) => {
            let d = c.date(1);
            c.primitive_all::<Int32Type>(|r| f(d.get(r).into()))
        }
        Some(Part::Time(f)) => {
            let (ts, clock) = (c.timestamp(1), Clock::of(c, 1));
            c.primitive_all::<Int32Type>(|r| f(clock.of_day(ts.get(r))))
        }
        Some(Part::Seconds) if matches!(c.types[1], T::DayTimeInterval(..)) => {
            let v = c.day_time(1);
            interval_part::<Decimal128Type>(c, |r| (v.get(r) % (60 * MICROS_PER_SECOND)).into())
        }
        Some(Part::Seconds) => {
            let (ts, clock) = (c.timestamp(1), Clock::of(c, 1));
            c.primitive_all::<Decimal128Type>(|r| (clock.of_day(ts.get(r)) % (60 * MICROS_PER_SECOND)).into())
        }
        Some(Part::DayTime(size, above)) => {
            let v = c.day_time(1);
            if above == UNBOUNDED {
                interval_part::<Int32Type>(c, |r| (v.get(r) / size) as i32)
            } else {
                interval_part::<Int8Type>(c, |r| (v.get(r) / size % above) as i8)
            }
        }
        Some(Part::YearMonth(false)) => {
            let v = c.year_month(1);
            interval_part::<Int32Type>(c, |r| v.get(r) / 12)
        }
        Some(Part::YearMonth(true)) => {
            let v = c.year_month(1);
            interval_part::<Int8Type>(c, |r| (v.get(r) % 12) as i8)
        }
        None => Err(EvalError::internal(format!("no field `{field}` of {}", c.types[1]))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{date, eval, int, months, null, null_of, seconds, str, timestamp, type_of};

    #[test]
    fn fields_of_dates() {
        let all = |ts: &str| {
            [
                "year",
                "quarter",
                "month",
                "day",
                "hour",
                "minute",
                "second",
                "dayofyear",
                "weekofyear",
                "dayofweek",
                "weekday",
                "dayname",
                "monthname",
            ]
            .map(|f| eval(f, &[timestamp(ts)]))
            .join(" ")
        };
        assert_eq!(all("1969-12-31 23:59:59.25"), "1969 4 12 31 23 59 59 365 1 4 2 Wed Dec");
        assert_eq!(all("2023-01-01 00:00:00"), "2023 1 1 1 0 0 0 1 52 1 6 Sun Jan");
        assert_eq!(all("2024-02-29 12:30:15.5"), "2024 1 2 29 12 30 15 60 9 5 3 Thu Feb");
        assert_eq!(all("2024-12-30 23:59:59.999999"), "2024 4 12 30 23 59 59 365 1 2 0 Mon Dec");
        assert_eq!(eval("weekofyear", &[date("2020-12-31")]), "53");
        assert_eq!(eval("weekday", &[date("0001-01-01")]), "0");
        assert_eq!(eval("year", &[null()]), "NULL");
        assert_eq!(eval("hour", &[str("2024-05-05 10:00:01.5")]), "10");
        assert_eq!(eval("year", &[int(1)]), "!DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE");
    }

    #[test]
    fn extract_by_name() {
        let ts = || timestamp("1969-12-31 23:59:59.25");
        let part = |f: &str| eval("extract", &[str(f), ts()]);
        assert_eq!(part("YEAROFWEEK"), "1970");
        assert_eq!(part("week"), "1");
        assert_eq!(part("SECOND"), "59.250000");
        assert_eq!(part("DOW"), "4");
        assert_eq!(part("dow_iso"), "3");
        assert_eq!(part("doy"), "365");
        assert_eq!(part("FORTNIGHT"), "!INVALID_EXTRACT_FIELD");
        assert_eq!(eval("date_part", &[str("second"), date("2024-05-05")]), "0.000000");
        assert_eq!(eval("date_part", &[str("month"), null_of(T::Date)]), "NULL");
        assert_eq!(eval("date_part", &[null(), date("2024-05-05")]), "NULL");
        assert_eq!(type_of("date_part", &[str("s"), ts()]), "DECIMAL(8,6)");
    }

    #[test]
    fn parts_of_intervals() {
        let span = || seconds(3 * 86_400 + 4 * 3600 + 5 * 60 + 6);
        assert_eq!(eval("extract", &[str("hour"), span()]), "4");
        assert_eq!(eval("extract", &[str("day"), span()]), "3");
        assert_eq!(eval("extract", &[str("second"), span()]), "6.000000");
        assert_eq!(type_of("extract", &[str("minutes"), span()]), "TINYINT");
        assert_eq!(eval("extract", &[str("year"), months(-27)]), "-2");
        assert_eq!(eval("extract", &[str("month"), months(-27)]), "-3");
        assert_eq!(eval("extract", &[str("year"), span()]), "!INVALID_EXTRACT_FIELD");
    }
}
