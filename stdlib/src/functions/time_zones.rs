//! Shifts between time zones, and timestamps and intervals made from numbers.

use arrow::datatypes::{DurationMicrosecondType, IntervalYearMonthType, TimestampMicrosecondType};
use jiff::tz::TimeZone;
use ssql_ir::{DataType as T, Literal};

use super::date_arithmetic::{checked_days, out_of_bounds};
use crate::call::{Call, EvalResult};
use crate::error::{EvalError, ResolveError};
use crate::function::{FunctionDef, NullRule, Param, Ret, scalar, scalar_with};
use crate::resolve::{TypeCall, Typed};
use crate::time::{MICROS_PER_DAY, MICROS_PER_SECOND, parse_zone, to_instant, to_local};

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[
    scalar("from_utc_timestamp", &[Param::Timestamp, Param::String], Ret::Timestamp, |c| shift(c, to_local)).doc(
        "The timestamp, read as UTC, moved to what the zone's clocks show.",
        "from_utc_timestamp(ts, zone)",
        "from_utc_timestamp(TIMESTAMP '2024-07-01 12:00:00', 'Asia/Tokyo')",
    ),
    scalar("to_utc_timestamp", &[Param::Timestamp, Param::String], Ret::Timestamp, |c| shift(c, to_instant)).doc(
        "The timestamp, read as what the zone's clocks show, moved to UTC.",
        "to_utc_timestamp(ts, zone)",
        "to_utc_timestamp(TIMESTAMP '2024-07-01 12:00:00', 'Asia/Tokyo')",
    ),
    scalar_with("convert_timezone", convert_type, convert_timezone).doc(
        "A wall-clock reading of the source zone (the session's by default) as the target zone's clocks show it.",
        "convert_timezone([source, ]target, ts)",
        "convert_timezone('UTC', 'Asia/Kolkata', TIMESTAMP_NTZ '2024-07-01 12:00:00')",
    ),
    scalar_with("make_timestamp", |c| make_type(c, T::Timestamp), |c| make_timestamp(c, false))
        .aliases(&["make_timestamp_ltz"])
        .doc(
            "A timestamp from its parts, in the session's time zone or the one given.",
            "make_timestamp(year, month, day, hour, minute, second[, zone])",
            "make_timestamp(2024, 2, 29, 23, 59, 59.5)",
        ),
    scalar_with("try_make_timestamp", |c| make_type(c, T::Timestamp), |c| make_timestamp(c, true))
        .aliases(&["try_make_timestamp_ltz"])
        .nulls(NullRule::StrictNullable)
        .doc(
            "A timestamp from its parts, NULL where they make none.",
            "try_make_timestamp(year, month, day, hour, minute, second[, zone])",
            "try_make_timestamp(2024, 13, 1, 0, 0, 0)",
        ),
    scalar_with("make_timestamp_ntz", |c| make_type(c, T::TimestampNtz), |c| make_timestamp(c, false)).doc(
        "A TIMESTAMP_NTZ from its parts.",
        "make_timestamp_ntz(year, month, day, hour, minute, second)",
        "make_timestamp_ntz(2024, 2, 29, 23, 59, 59.5)",
    ),
    scalar_with("try_make_timestamp_ntz", |c| make_type(c, T::TimestampNtz), |c| make_timestamp(c, true))
        .nulls(NullRule::StrictNullable)
        .doc(
            "A TIMESTAMP_NTZ from its parts, NULL where they make none.",
            "try_make_timestamp_ntz(year, month, day, hour, minute, second)",
            "try_make_timestamp_ntz(2024, 13, 1, 0, 0, 0)",
        ),
    scalar_with("make_dt_interval", day_time_type, |c| make_interval(c, false)).doc(
        "An interval of days, hours, minutes and seconds.",
        "make_dt_interval([days[, hours[, minutes[, seconds]]]])",
        "make_dt_interval(1, 2, 3, 4.5)",
    ),
    scalar("make_ym_interval", &[Param::Int, Param::Int], Ret::YearMonth, |c| make_interval(c, false))
        .optional(2)
        .doc("An interval of years and months.", "make_ym_interval([years[, months]])", "make_ym_interval(1, 2)"),
    scalar_with("make_interval", interval_type, |c| make_interval(c, false)).doc(
        "An interval of years and months, or of weeks, days, hours, minutes and seconds: the other parts are constant zeros.",
        "make_interval([years[, months[, weeks[, days[, hours[, minutes[, seconds]]]]]]])",
        "make_interval(0, 0, 0, 1, 12)",
    ),
    scalar_with("try_make_interval", interval_type, |c| make_interval(c, true)).nulls(NullRule::StrictNullable).doc(
        "As `make_interval`, NULL where it does not fit.",
        "try_make_interval([years[, months[, weeks[, days[, hours[, minutes[, seconds]]]]]]])",
        "try_make_interval(0, 0, 0, 1, 12)",
    ),
];

/// The zone of that name, or the error that there is none.
pub(crate) fn zone_named(name: &str) -> Result<TimeZone, EvalError> {
    parse_zone(name).ok_or_else(|| {
        EvalError::new("INVALID_TIMEZONE", format!("The time zone '{name}' is not known."))
            .with_help("write a region such as 'Europe/Berlin' or an offset such as '+02:00'")
    })
}

/// The zone of argument `i` row by row, looked up once where it is constant.
fn zones<'a>(c: &'a Call<'_>, i: usize) -> Result<impl Fn(usize) -> Result<TimeZone, EvalError> + 'a, EvalError> {
    let constant = c.constant_str(i).map(zone_named).transpose()?;
    let name = c.str(i);
    Ok(move |r: usize| match &constant {
        Some(zone) => Ok(zone.clone()),
        None => zone_named(name.get(r)),
    })
}

fn shift(c: &Call<'_>, f: fn(&TimeZone, i64) -> i64) -> EvalResult {
    let (ts, zone) = (c.timestamp(0), zones(c, 1)?);
    c.primitive::<TimestampMicrosecondType>(|r| Ok(Some(f(&zone(r)?, ts.get(r)))))
}

fn convert_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, 3)?;
    let last = c.len() - 1;
    let mut types = (0..last).map(|i| c.coerce(i, Param::String)).collect::<Result<Vec<_>, _>>()?;
    types.push(c.coerce(last, Param::TimestampNtz)?);
    Ok(Typed::new(types, T::TimestampNtz))
}

fn convert_timezone(c: &Call<'_>) -> EvalResult {
    let last = c.len() - 1;
    let (ts, target) = (c.timestamp(last), zones(c, last - 1)?);
    if last == 1 {
        let source = &c.ctx.time_zone;
        return c
            .primitive::<TimestampMicrosecondType>(|r| Ok(Some(to_local(&target(r)?, to_instant(source, ts.get(r))))));
    }
    let source = zones(c, 0)?;
    c.primitive::<TimestampMicrosecondType>(|r| Ok(Some(to_local(&target(r)?, to_instant(&source(r)?, ts.get(r))))))
}

/// Seconds with their fraction.
const SECONDS: T = T::Decimal(16, 6);

fn make_type(c: &TypeCall<'_>, to: T) -> Result<Typed, ResolveError> {
    c.count(6, if to == T::Timestamp { 7 } else { 6 })?;
    let mut types = (0..5).map(|i| c.coerce(i, Param::Int)).collect::<Result<Vec<_>, _>>()?;
    c.coerce(5, Param::Numeric)?;
    types.push(SECONDS);
    if c.len() == 7 {
        types.push(c.coerce(6, Param::String)?);
    }
    Ok(Typed::new(types, to))
}

/// Wall-clock microseconds of checked parts.
fn local_of(year: i32, month: i32, day: i32, hour: i32, minute: i32, micros: i128) -> Result<i64, EvalError> {
    if !(0..24).contains(&hour) {
        return Err(out_of_bounds("HourOfDay", "0 - 23", hour));
    }
    if !(0..60).contains(&minute) {
        return Err(out_of_bounds("MinuteOfHour", "0 - 59", minute));
    }
    let minute_long = i128::from(60 * MICROS_PER_SECOND);
    // A 60th second without a fraction is the next minute.
    if micros > minute_long && micros < minute_long + i128::from(MICROS_PER_SECOND) {
        return Err(EvalError::new(
            "INVALID_FRACTION_OF_SECOND",
            "The second 60 takes no fraction: valid seconds are 0 to 59.999999, and 60.",
        ));
    }
    if !(0..=minute_long).contains(&micros) {
        return Err(out_of_bounds("SecondOfMinute", "0 - 59", micros.div_euclid(i128::from(MICROS_PER_SECOND))));
    }
    let days = checked_days(year, month, day)?;
    let of_day = i64::from(hour * 60 + minute) * 60 * MICROS_PER_SECOND + micros as i64;
    days.checked_mul(MICROS_PER_DAY).and_then(|d| d.checked_add(of_day)).ok_or_else(|| {
        EvalError::new("DATETIME_OVERFLOW", format!("The year {year} is out of the range of timestamps."))
    })
}

fn make_timestamp(c: &Call<'_>, tried: bool) -> EvalResult {
    let parts: Vec<_> = (0..5).map(|i| c.i32(i)).collect();
    let second = c.decimal(5);
    let local = |r: usize| {
        let part = |i: usize| parts[i].get(r);
        match local_of(part(0), part(1), part(2), part(3), part(4), second.get(r)) {
            Err(_) if tried => Ok(None),
            made => made.map(Some),
        }
    };
    if *c.data_type == T::TimestampNtz {
        return c.primitive::<TimestampMicrosecondType>(local);
    }
    if c.len() == 6 {
        let zone = &c.ctx.time_zone;
        return c.primitive::<TimestampMicrosecondType>(|r| Ok(local(r)?.map(|l| to_instant(zone, l))));
    }
    // An unknown zone is an error for the `try_` form too.
    let zone = zones(c, 6)?;
    c.primitive::<TimestampMicrosecondType>(|r| {
        let zone = zone(r)?;
        Ok(local(r)?.map(|l| to_instant(&zone, l)))
    })
}

/// Seconds of an interval.
const INTERVAL_SECONDS: T = T::Decimal(18, 6);

fn day_time_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(0, 4)?;
    let types = (0..c.len())
        .map(|i| {
            if i < 3 {
                c.coerce(i, Param::Int)
            } else {
                c.coerce(i, Param::Numeric)?;
                Ok(INTERVAL_SECONDS)
            }
        })
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Typed::new(types, T::DAY_TO_SECOND))
}

/// Types here hold either months or microseconds, so constants must say which parts are not meant.
fn interval_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(0, 7)?;
    let zero = |i: usize| {
        i >= c.len()
            || matches!(c.literal(i), Some(Literal::Int(0) | Literal::Decimal(0)))
            || matches!(c.literal(i), Some(Literal::Float(0.0)))
    };
    let types = (0..c.len())
        .map(|i| {
            if i < 6 {
                c.coerce(i, Param::Int)
            } else {
                c.coerce(i, Param::Numeric)?;
                Ok(INTERVAL_SECONDS)
            }
        })
        .collect::<Result<Vec<_>, _>>()?;
    if zero(0) && zero(1) {
        return Ok(Typed::new(types, T::DAY_TO_SECOND));
    }
    if (2..7).all(zero) {
        return Ok(Typed::new(types, T::YEAR_TO_MONTH));
    }
    Err(ResolveError::new(
        "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE",
        format!("`{}` cannot mix years or months with shorter units in one interval.", c.name),
    )
    .with_help("use `make_ym_interval` or `make_dt_interval`, or write the parts that are not meant as the constant 0")
    .at_arg(0))
}

fn make_interval(c: &Call<'_>, tried: bool) -> EvalResult {
    let finish = |v: Option<i64>| match v {
        None if !tried => Err(EvalError::overflow("The interval", c.data_type, "")),
        v => Ok(v),
    };
    let part = |i: usize, r: usize| if i < c.len() { i64::from(c.i32(i).get(r)) } else { 0 };
    if matches!(c.data_type, T::YearMonthInterval(..)) {
        return c.primitive::<IntervalYearMonthType>(|r| {
            let months = i32::try_from(part(0, r) * 12 + part(1, r)).ok();
            Ok(finish(months.map(i64::from))?.map(|m| m as i32))
        });
    }
    // `make_dt_interval` begins with the days, `make_interval` has years, months and weeks before them.
    let days = if c.name == "make_dt_interval" { 0 } else { 3 };
    let seconds = (c.len() > days + 3).then(|| c.decimal(days + 3));
    c.primitive::<DurationMicrosecondType>(|r| {
        let weeks = if days == 3 { part(2, r) } else { 0 };
        let minutes = ((weeks * 7 + part(days, r)) * 24 + part(days + 1, r)) * 60 + part(days + 2, r);
        let micros =
            i128::from(minutes) * i128::from(60 * MICROS_PER_SECOND) + seconds.as_ref().map_or(0, |s| s.get(r));
        finish(i64::try_from(micros).ok())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cast, date, decimal, eval, int, null, str, timestamp};

    #[test]
    fn shifts() {
        let from = |zone: &str| eval("from_utc_timestamp", &[timestamp("2024-07-01 12:00:00"), str(zone)]);
        assert_eq!(from("Asia/Tokyo"), "2024-07-01 21:00:00");
        assert_eq!(from("+05:30"), "2024-07-01 17:30:00");
        assert_eq!(from("America/New_York"), "2024-07-01 08:00:00");
        assert_eq!(from("PST"), "2024-07-01 05:00:00");
        assert_eq!(from("EST"), "2024-07-01 07:00:00");
        assert_eq!(from("Nowhere/City"), "!INVALID_TIMEZONE");
        let to = |ts: &str, zone: &str| eval("to_utc_timestamp", &[timestamp(ts), str(zone)]);
        assert_eq!(to("2024-07-01 12:00:00", "Europe/Berlin"), "2024-07-01 10:00:00");
        assert_eq!(to("2024-03-10 02:30:00", "America/New_York"), "2024-03-10 07:30:00");
        assert_eq!(to("2024-11-03 01:30:00", "America/New_York"), "2024-11-03 05:30:00");
        assert_eq!(eval("to_utc_timestamp", &[null(), str("UTC")]), "NULL");
        let ntz = || cast(timestamp("2024-05-05 10:00:00"), T::TimestampNtz);
        assert_eq!(eval("convert_timezone", &[str("Asia/Tokyo"), ntz()]), "2024-05-05 19:00:00");
        assert_eq!(eval("convert_timezone", &[str("UTC"), str("Asia/Kolkata"), ntz()]), "2024-05-05 15:30:00");
        assert_eq!(
            eval("convert_timezone", &[str("America/New_York"), str("Asia/Tokyo"), date("2024-05-05")]),
            "2024-05-05 13:00:00"
        );
    }

    #[test]
    fn timestamps_from_parts() {
        let make = |name: &str, p: [i32; 5], second: &str| {
            let mut args: Vec<_> = p.into_iter().map(int).collect();
            args.push(decimal(second));
            eval(name, &args)
        };
        assert_eq!(make("make_timestamp", [2024, 2, 29, 23, 59], "59.999999"), "2024-02-29 23:59:59.999999");
        assert_eq!(make("make_timestamp", [2024, 1, 1, 0, 0], "60"), "2024-01-01 00:01:00");
        assert_eq!(make("make_timestamp", [2024, 1, 1, 0, 0], "59.9999999"), "2024-01-01 00:01:00");
        assert_eq!(make("make_timestamp_ntz", [2024, 1, 1, 0, 0], "1.5"), "2024-01-01 00:00:01.5");
        let bounds = "!DATETIME_FIELD_OUT_OF_BOUNDS.WITHOUT_SUGGESTION";
        assert_eq!(make("make_timestamp", [2024, 13, 1, 0, 0], "0"), bounds);
        assert_eq!(make("make_timestamp", [2024, 1, 1, 24, 0], "0"), bounds);
        assert_eq!(make("make_timestamp", [2024, 1, 1, 0, 60], "0"), bounds);
        assert_eq!(make("make_timestamp", [2024, 1, 1, 0, 0], "-1"), bounds);
        assert_eq!(make("make_timestamp", [2024, 1, 1, 0, 0], "61"), bounds);
        assert_eq!(make("make_timestamp", [2024, 1, 1, 0, 0], "60.5"), "!INVALID_FRACTION_OF_SECOND");
        assert_eq!(make("try_make_timestamp", [2024, 1, 1, 0, 0], "60.5"), "NULL");
        assert_eq!(make("try_make_timestamp_ntz", [2024, 13, 1, 0, 0], "0"), "NULL");
        let zoned =
            |name: &str, zone: &str| eval(name, &[int(2024), int(1), int(1), int(12), int(0), int(0), str(zone)]);
        assert_eq!(zoned("make_timestamp", "America/New_York"), "2024-01-01 17:00:00");
        assert_eq!(zoned("try_make_timestamp", "Nowhere"), "!INVALID_TIMEZONE");
    }

    #[test]
    fn intervals_from_parts() {
        let overflow = "!INTERVAL_ARITHMETIC_OVERFLOW.WITHOUT_SUGGESTION";
        assert_eq!(
            eval("make_dt_interval", &[int(1), int(2), int(3), decimal("4.5")]),
            "INTERVAL '1 02:03:04.5' DAY TO SECOND"
        );
        assert_eq!(eval("make_dt_interval", &[]), "INTERVAL '0 00:00:00' DAY TO SECOND");
        assert_eq!(eval("make_dt_interval", &[int(106_751_992)]), overflow);
        assert_eq!(eval("make_ym_interval", &[int(1), int(2)]), "INTERVAL '1-2' YEAR TO MONTH");
        assert_eq!(eval("make_ym_interval", &[int(178_956_970), int(8)]), overflow);
        assert_eq!(eval("make_interval", &[int(0), int(0), int(1), int(1)]), "INTERVAL '8 00:00:00' DAY TO SECOND");
        assert_eq!(eval("make_interval", &[int(1), int(2)]), "INTERVAL '1-2' YEAR TO MONTH");
        assert_eq!(eval("try_make_interval", &[int(i32::MAX)]), "NULL");
        assert_eq!(
            eval("make_interval", &[int(1), int(0), int(0), int(1)]),
            "!DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE"
        );
    }
}
