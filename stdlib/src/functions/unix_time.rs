//! Timestamps and counts since the epoch: `timestamp_seconds`, `unix_timestamp`, `from_unixtime` and kin.
//!
//! Before 1970 `unix_timestamp` cuts the fraction off towards zero, and `unix_seconds` goes down: as Spark's do.

use arrow::datatypes::{
    ArrowPrimitiveType, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType,
};
use ssql_ir::DataType as T;

use super::date_format::{Patterns, cannot_parse};
use super::decimal::{power_of_ten, print};
use crate::call::{Call, EvalResult};
use crate::error::{EvalError, ResolveError};
use crate::function::{FunctionDef, NullRule, Param, Ret, TEXT, scalar, scalar_with};
use crate::resolve::{TypeCall, Typed};
use crate::text::DatePattern;
use crate::time::MICROS_PER_SECOND;

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[
    scalar_with("timestamp_seconds", seconds_type, |c| from_count(c, MICROS_PER_SECOND))
        .nulls(NullRule::StrictNullable)
        .doc(
            "The timestamp that many seconds (with a fraction) after 1970-01-01 00:00:00 UTC.",
            "timestamp_seconds(n)",
            "timestamp_seconds(1.5)",
        ),
    scalar_with("timestamp_millis", count_type, |c| from_count(c, 1000)).doc(
        "The timestamp that many milliseconds after 1970-01-01 00:00:00 UTC.",
        "timestamp_millis(n)",
        "timestamp_millis(1709985906123)",
    ),
    scalar_with("timestamp_micros", count_type, |c| from_count(c, 1)).doc(
        "The timestamp that many microseconds after 1970-01-01 00:00:00 UTC.",
        "timestamp_micros(n)",
        "timestamp_micros(-1500001)",
    ),
    scalar_with("unix_seconds", instant_type, |c| to_count(c, MICROS_PER_SECOND)).doc(
        "Whole seconds since 1970-01-01 00:00:00 UTC, rounded down.",
        "unix_seconds(ts)",
        "unix_seconds(TIMESTAMP '1970-01-01 00:00:01')",
    ),
    scalar_with("unix_millis", instant_type, |c| to_count(c, 1000)).doc(
        "Whole milliseconds since 1970-01-01 00:00:00 UTC, rounded down.",
        "unix_millis(ts)",
        "unix_millis(TIMESTAMP '1970-01-01 00:00:01')",
    ),
    scalar_with("unix_micros", instant_type, |c| to_count(c, 1)).doc(
        "Microseconds since 1970-01-01 00:00:00 UTC.",
        "unix_micros(ts)",
        "unix_micros(TIMESTAMP '1970-01-01 00:00:01')",
    ),
    // Without arguments it is the present, so it is never folded.
    scalar_with("unix_timestamp", |c| unix_type(c, 0), unix_timestamp).volatile().doc(
        "Seconds since 1970-01-01 00:00:00 UTC of a timestamp, or of text by a pattern; the present without arguments.",
        "unix_timestamp([ts_or_text[, pattern]])",
        "",
    ),
    scalar_with("to_unix_timestamp", |c| unix_type(c, 1), unix_timestamp).doc(
        "Seconds since 1970-01-01 00:00:00 UTC of a timestamp, or of text by a pattern.",
        "to_unix_timestamp(ts_or_text[, pattern])",
        "to_unix_timestamp('2024-03-09', 'yyyy-MM-dd')",
    ),
    scalar("from_unixtime", &[Param::BigInt, Param::String], Ret::String, from_unixtime).optional(1).doc(
        "The text, by a pattern, of the timestamp that many seconds after 1970-01-01 00:00:00 UTC.",
        "from_unixtime(n[, pattern])",
        "from_unixtime(0, 'yyyy-MM-dd')",
    ),
];

const DEFAULT_PATTERN: &str = "yyyy-MM-dd HH:mm:ss";

fn seconds_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(1, 1)?;
    match c.ty(0) {
        // Only a fraction that is not a number gives NULL.
        t if t.is_float() => Ok(Typed::new(vec![t.clone()], T::Timestamp)),
        t if t.is_numeric() => Ok(Typed::new(vec![t.clone()], T::Timestamp).nullable(c.any_nullable())),
        T::Null => Ok(Typed::new(vec![T::Int64], T::Timestamp)),
        _ => Err(c.mismatch(0, "NUMERIC")),
    }
}

fn count_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(1, 1)?;
    match c.ty(0) {
        t if t.is_integer() || *t == T::Null => Ok(Typed::new(vec![T::Int64], T::Timestamp)),
        _ => Err(c.mismatch(0, "INTEGRAL")),
    }
}

fn instant_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(1, 1)?;
    match c.ty(0) {
        T::Timestamp | T::Null => Ok(Typed::new(vec![T::Timestamp], T::Int64)),
        _ => Err(c.mismatch(0, "TIMESTAMP")),
    }
}

fn overflow(c: &Call<'_>, n: impl std::fmt::Display) -> EvalError {
    EvalError::new("DATETIME_OVERFLOW", format!("`{}` of {n} leaves the range of TIMESTAMP.", c.name))
}

fn integers<P: ArrowPrimitiveType>(c: &Call<'_>, unit: i64) -> EvalResult
where
    P::Native: Into<i64>,
{
    let n = c.fixed::<P>(0);
    c.primitive::<TimestampMicrosecondType>(|r| {
        let n: i64 = n.get(r).into();
        n.checked_mul(unit).map(Some).ok_or_else(|| overflow(c, n))
    })
}

fn from_count(c: &Call<'_>, unit: i64) -> EvalResult {
    // Beyond the range a float saturates, as a conversion in Java does.
    let from_float = |v: f64| Ok((!v.is_nan()).then_some((v * unit as f64) as i64));
    match c.types[0] {
        T::Int8 => integers::<Int8Type>(c, unit),
        T::Int16 => integers::<Int16Type>(c, unit),
        T::Int32 => integers::<Int32Type>(c, unit),
        T::Int64 => integers::<Int64Type>(c, unit),
        T::Float32 => {
            let n = c.fixed::<Float32Type>(0);
            c.primitive::<TimestampMicrosecondType>(|r| from_float(n.get(r).into()))
        }
        T::Float64 => {
            let n = c.fixed::<Float64Type>(0);
            c.primitive::<TimestampMicrosecondType>(|r| from_float(n.get(r)))
        }
        T::Decimal(_, scale) => {
            let n = c.fixed::<Decimal128Type>(0);
            let divisor = power_of_ten((*scale).into());
            c.primitive::<TimestampMicrosecondType>(|r| {
                let v = n.get(r);
                let (whole, rest) = (v / divisor, v % divisor);
                // The fraction in microseconds, where it must end.
                let fraction = if *scale <= 6 {
                    rest * power_of_ten(6 - u32::from(*scale))
                } else {
                    let below = power_of_ten(u32::from(*scale) - 6);
                    if rest % below != 0 {
                        return Err(EvalError::new(
                            "INVALID_FRACTION_OF_SECOND",
                            format!("{} has digits below the microsecond.", print(v, *scale)),
                        ));
                    }
                    rest / below
                };
                whole
                    .checked_mul(i128::from(MICROS_PER_SECOND))
                    .and_then(|m| i64::try_from(m + fraction).ok())
                    .map(Some)
                    .ok_or_else(|| overflow(c, print(v, *scale)))
            })
        }
        t => Err(EvalError::internal(format!("`{}` of {t}", c.name))),
    }
}

fn to_count(c: &Call<'_>, unit: i64) -> EvalResult {
    let ts = c.timestamp(0);
    c.primitive_all::<Int64Type>(|r| ts.get(r).div_euclid(unit))
}

fn unix_type(c: &TypeCall<'_>, min: usize) -> Result<Typed, ResolveError> {
    c.count(min, 2)?;
    let mut types = vec![];
    if !c.is_empty() {
        types.push(match c.ty(0) {
            T::String => T::String,
            T::Date | T::Timestamp | T::TimestampNtz | T::Null => T::Timestamp,
            _ => return Err(c.mismatch(0, "(STRING OR DATE OR TIMESTAMP OR TIMESTAMP WITHOUT TIME ZONE)")),
        });
    }
    if c.len() == 2 {
        types.push(c.coerce(1, TEXT)?);
    }
    Ok(Typed::new(types, T::Int64))
}

fn unix_timestamp(c: &Call<'_>) -> EvalResult {
    if c.is_empty() {
        return c.primitive_all::<Int64Type>(|_| c.ctx.now_micros / MICROS_PER_SECOND);
    }
    if *c.types[0] != T::String {
        let ts = c.timestamp(0);
        return c.primitive_all::<Int64Type>(|r| ts.get(r) / MICROS_PER_SECOND);
    }
    let (text, zone) = (c.str(0), &c.ctx.time_zone);
    let seconds = |p: &DatePattern, r: usize, pattern: &str| match p.parse(text.get(r)) {
        Some(parsed) => Ok(Some(parsed.instant(zone) / MICROS_PER_SECOND)),
        None => Err(cannot_parse(text.get(r), pattern)),
    };
    if c.len() == 1 {
        let pattern = DatePattern::for_reading(DEFAULT_PATTERN)?;
        return c.primitive::<Int64Type>(|r| seconds(&pattern, r, DEFAULT_PATTERN));
    }
    let patterns = Patterns::reading(c, 1)?;
    c.primitive::<Int64Type>(|r| seconds(&*patterns.get(r)?, r, c.str(1).get(r)))
}

fn from_unixtime(c: &Call<'_>) -> EvalResult {
    let (n, zone) = (c.i64(0), &c.ctx.time_zone);
    let instant = |r: usize| n.get(r).saturating_mul(MICROS_PER_SECOND);
    if c.len() == 1 {
        let pattern = DatePattern::for_printing(DEFAULT_PATTERN)?;
        return c.strings(|r, out| {
            pattern.write(instant(r), zone, out);
            Ok(true)
        });
    }
    let patterns = Patterns::printing(c, 1)?;
    c.strings(|r, out| {
        patterns.get(r)?.write(instant(r), zone, out);
        Ok(true)
    })
}

#[cfg(test)]
mod tests {
    use crate::EvalContext;
    use crate::testing::{bigint, date, decimal, double, eval, expr, float, int, null, show_in, str, timestamp};

    #[test]
    fn counts_as_timestamps() {
        assert_eq!(eval("timestamp_seconds", &[bigint(-62_135_596_800)]), "0001-01-01 00:00:00");
        assert_eq!(eval("timestamp_seconds", &[decimal("1.5")]), "1970-01-01 00:00:01.5");
        assert_eq!(eval("timestamp_seconds", &[decimal("-0.123456")]), "1969-12-31 23:59:59.876544");
        assert_eq!(eval("timestamp_seconds", &[double(-0.5)]), "1969-12-31 23:59:59.5");
        assert_eq!(eval("timestamp_seconds", &[float(1.5)]), "1970-01-01 00:00:01.5");
        assert_eq!(eval("timestamp_seconds", &[double(f64::NAN)]), "NULL");
        assert_eq!(eval("timestamp_seconds", &[null()]), "NULL");
        assert_eq!(eval("timestamp_seconds", &[bigint(i64::MAX)]), "!DATETIME_OVERFLOW");
        assert_eq!(eval("timestamp_seconds", &[decimal("0.1234567")]), "!INVALID_FRACTION_OF_SECOND");
        assert_eq!(eval("timestamp_seconds", &[str("5")]), "!DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE");
        assert_eq!(eval("timestamp_millis", &[bigint(1_709_985_906_123)]), "2024-03-09 12:05:06.123");
        assert_eq!(eval("timestamp_millis", &[bigint(i64::MAX)]), "!DATETIME_OVERFLOW");
        assert_eq!(eval("timestamp_micros", &[int(-1_500_001)]), "1969-12-31 23:59:58.499999");
        assert_eq!(eval("timestamp_micros", &[decimal("1.5")]), "!DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE");
    }

    #[test]
    fn timestamps_as_counts() {
        let before = || timestamp("1969-12-31 23:59:58.5");
        assert_eq!(eval("unix_timestamp", &[before()]), "-1");
        assert_eq!(eval("unix_seconds", &[before()]), "-2");
        assert_eq!(eval("unix_millis", &[before()]), "-1500");
        assert_eq!(eval("unix_micros", &[before()]), "-1500000");
        assert_eq!(eval("unix_millis", &[str("2024-01-01")]), "!DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE");
        assert_eq!(eval("unix_timestamp", &[str("2024-03-09 12:05:06")]), "1709985906");
        assert_eq!(eval("unix_timestamp", &[str("09-03-2024"), str("dd-MM-yyyy")]), "1709942400");
        assert_eq!(eval("to_unix_timestamp", &[str("2024-03-09"), str("yyyy-MM-dd")]), "1709942400");
        assert_eq!(eval("unix_timestamp", &[date("2024-03-09")]), "1709942400");
        assert_eq!(eval("unix_timestamp", &[str("2024-03-09")]), "!CANNOT_PARSE_TIMESTAMP");
        assert_eq!(eval("unix_timestamp", &[null()]), "NULL");
        assert_eq!(eval("unix_timestamp", &[int(5)]), "!DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE");
        let ctx = EvalContext { now_micros: 7_500_000, ..EvalContext::default() };
        assert_eq!(show_in(&expr("unix_timestamp", &[]), &ctx), "7");
    }

    #[test]
    fn counts_as_text() {
        assert_eq!(eval("from_unixtime", &[int(1_709_985_906)]), "2024-03-09 12:05:06");
        assert_eq!(eval("from_unixtime", &[int(-1), str("yyyy/MM/dd HH")]), "1969/12/31 23");
        assert_eq!(eval("from_unixtime", &[null()]), "NULL");
        assert_eq!(
            eval("from_unixtime", &[int(5), str("YYYY")]),
            "!INCONSISTENT_BEHAVIOR_CROSS_VERSION.DATETIME_PATTERN_RECOGNITION"
        );
    }
}
