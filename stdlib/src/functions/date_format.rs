//! Dates and times as text by a pattern, and text as dates and times: `date_format`, `to_timestamp`, `to_date`.
//!
//! Without a pattern the reading functions are casts: typing asks for the cast, and the evaluation passes it through. Only
//! the `try_` forms read the text themselves.

use std::borrow::Cow;

use arrow::datatypes::{Date32Type, TimestampMicrosecondType};
use jiff::tz::TimeZone;
use ssql_ir::DataType as T;

use crate::call::{Call, EvalResult};
use crate::coercion::can_cast;
use crate::error::{EvalError, ResolveError};
use crate::function::{FunctionDef, NullRule, Param, Ret, scalar, scalar_with};
use crate::resolve::{TypeCall, Typed};
use crate::text::{DatePattern, ParsedTime, parse_date, parse_timestamp, parse_timestamp_ntz};
use crate::time::{split_micros, to_local};

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[
    scalar("date_format", &[Param::Timestamp, Param::String], Ret::String, date_format).doc(
        "The timestamp as text, by a pattern of Java's DateTimeFormatter letters.",
        "date_format(ts, pattern)",
        "date_format(TIMESTAMP '2024-03-09 04:05:06', 'yyyy/MM/dd HH')",
    ),
    scalar_with("to_timestamp", |c| read_type(c, T::Timestamp), |c| read(c, false)).aliases(&["to_timestamp_ltz"]).doc(
        "The text as a TIMESTAMP, by a pattern or as `CAST` does.",
        "to_timestamp(text[, pattern])",
        "to_timestamp('09/03/2024', 'dd/MM/yyyy')",
    ),
    scalar_with("to_timestamp_ntz", |c| read_type(c, T::TimestampNtz), |c| read(c, false)).doc(
        "The text as a TIMESTAMP_NTZ, by a pattern or as `CAST` does.",
        "to_timestamp_ntz(text[, pattern])",
        "to_timestamp_ntz('09/03/2024', 'dd/MM/yyyy')",
    ),
    scalar_with("to_date", |c| read_type(c, T::Date), |c| read(c, false)).doc(
        "The text as a DATE, by a pattern or as `CAST` does.",
        "to_date(text[, pattern])",
        "to_date('09.03.2024', 'dd.MM.yyyy')",
    ),
    scalar_with("try_to_timestamp", |c| try_read_type(c, T::Timestamp), |c| read(c, true))
        .nulls(NullRule::StrictNullable)
        .doc(
            "The text as a TIMESTAMP, NULL where it is none.",
            "try_to_timestamp(text[, pattern])",
            "try_to_timestamp('2024-3-9', 'yyyy-MM-dd')",
        ),
    scalar_with("try_to_date", |c| try_read_type(c, T::Date), |c| read(c, true)).nulls(NullRule::StrictNullable).doc(
        "The text as a DATE, NULL where it is none.",
        "try_to_date(text[, pattern])",
        "try_to_date('2024-02-30', 'yyyy-MM-dd')",
    ),
];

/// The compiled pattern of argument `i`: compiled once where it is constant.
pub(super) struct Patterns<'a> {
    constant: Option<DatePattern>,
    column: crate::call::View<'a, arrow::array::StringViewArray>,
    compile: fn(&str) -> Result<DatePattern, EvalError>,
}

impl<'a> Patterns<'a> {
    /// For printing.
    pub(super) fn printing(c: &'a Call<'_>, i: usize) -> Result<Patterns<'a>, EvalError> {
        Patterns::new(c, i, DatePattern::for_printing)
    }

    /// For reading.
    pub(super) fn reading(c: &'a Call<'_>, i: usize) -> Result<Patterns<'a>, EvalError> {
        Patterns::new(c, i, DatePattern::for_reading)
    }

    fn new(
        c: &'a Call<'_>,
        i: usize,
        compile: fn(&str) -> Result<DatePattern, EvalError>,
    ) -> Result<Patterns<'a>, EvalError> {
        Ok(Patterns { constant: c.constant_str(i).map(compile).transpose()?, column: c.str(i), compile })
    }

    /// The pattern of that row.
    pub(super) fn get(&self, row: usize) -> Result<Cow<'_, DatePattern>, EvalError> {
        match &self.constant {
            Some(pattern) => Ok(Cow::Borrowed(pattern)),
            None => (self.compile)(self.column.get(row)).map(Cow::Owned),
        }
    }
}

/// The error of a text that does not follow its pattern.
pub(super) fn cannot_parse(text: &str, pattern: &str) -> EvalError {
    EvalError::new("CANNOT_PARSE_TIMESTAMP", format!("The text '{text}' cannot be read by the pattern '{pattern}'."))
        .with_help("use `try_to_timestamp` or `try_to_date` to get NULL instead")
}

pub(super) fn date_format(c: &Call<'_>) -> EvalResult {
    let (ts, patterns, zone) = (c.timestamp(0), Patterns::printing(c, 1)?, &c.ctx.time_zone);
    c.strings(|r, out| {
        patterns.get(r)?.write(ts.get(r), zone, out);
        Ok(true)
    })
}

/// With a pattern, text stays text; a date or timestamp is cast and the pattern is of no use. Without one, all is cast.
fn read_type(c: &TypeCall<'_>, to: T) -> Result<Typed, ResolveError> {
    c.count(1, 2)?;
    if c.len() == 1 {
        // A number is read by its digits.
        if to == T::Date && c.ty(0).is_numeric() {
            return Ok(Typed::new(vec![T::String], to));
        }
        if !can_cast(c.ty(0), &to) {
            return Err(c.mismatch(0, "(STRING OR DATE OR TIMESTAMP OR TIMESTAMP WITHOUT TIME ZONE)"));
        }
        return Ok(Typed::new(vec![to.clone()], to));
    }
    let source = match c.ty(0) {
        T::String | T::Null => T::String,
        T::Date | T::Timestamp | T::TimestampNtz => to.clone(),
        _ => return Err(c.mismatch(0, "(STRING OR DATE OR TIMESTAMP OR TIMESTAMP WITHOUT TIME ZONE)")),
    };
    Ok(Typed::new(vec![source, c.coerce(1, Param::String)?], to))
}

fn try_read_type(c: &TypeCall<'_>, to: T) -> Result<Typed, ResolveError> {
    let mut typed = read_type(c, to)?;
    if *c.ty(0) == T::String {
        typed.arg_types[0] = T::String;
    }
    Ok(typed)
}

fn date_of(parsed: &ParsedTime, zone: &TimeZone) -> i32 {
    let local = match &parsed.zone {
        None => parsed.local,
        Some(_) => to_local(zone, parsed.instant(zone)),
    };
    split_micros(local).0 as i32
}

fn read(c: &Call<'_>, tried: bool) -> EvalResult {
    if *c.types[0] != T::String {
        // It is cast already; only a NULL pattern still makes it NULL.
        return c.pick(&c.column(0)?, |r| Ok(Some(r)));
    }
    let (text, zone) = (c.str(0), &c.ctx.time_zone);
    if c.len() == 1 {
        return match c.data_type {
            T::Date => c.primitive::<Date32Type>(|r| match parse_date(text.get(r)) {
                None if !tried => Err(EvalError::new(
                    "CAST_INVALID_INPUT",
                    format!("The value '{}' of type STRING cannot be cast to DATE: it is malformed.", text.get(r)),
                )),
                day => Ok(day),
            }),
            T::TimestampNtz => c.primitive::<TimestampMicrosecondType>(|r| Ok(parse_timestamp_ntz(text.get(r)))),
            _ => c.primitive::<TimestampMicrosecondType>(|r| Ok(parse_timestamp(text.get(r), zone))),
        };
    }
    let patterns = Patterns::reading(c, 1)?;
    let parsed = |r: usize| match patterns.get(r)?.parse(text.get(r)) {
        None if !tried => Err(cannot_parse(text.get(r), c.str(1).get(r))),
        parsed => Ok(parsed),
    };
    match c.data_type {
        T::Date => c.primitive::<Date32Type>(|r| Ok(parsed(r)?.map(|p| date_of(&p, zone)))),
        T::TimestampNtz => c.primitive::<TimestampMicrosecondType>(|r| Ok(parsed(r)?.map(|p| p.local))),
        _ => c.primitive::<TimestampMicrosecondType>(|r| Ok(parsed(r)?.map(|p| p.instant(zone)))),
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{date, eval, int, null, str, timestamp};

    #[test]
    fn dates_as_text() {
        let format = |p: &str| eval("date_format", &[timestamp("2024-03-09 04:05:06"), str(p)]);
        assert_eq!(format("yyyy-MM-dd"), "2024-03-09");
        assert_eq!(format("YYYY"), "!INCONSISTENT_BEHAVIOR_CROSS_VERSION.DATETIME_PATTERN_RECOGNITION");
        assert_eq!(eval("date_format", &[date("2024-03-09"), str("dd MMM yyyy HH:mm")]), "09 Mar 2024 00:00");
        assert_eq!(eval("date_format", &[str("2024-03-09"), str("MM")]), "03");
        assert_eq!(eval("date_format", &[null(), str("MM")]), "NULL");
        assert_eq!(eval("date_format", &[date("2024-03-09"), null()]), "NULL");
    }

    #[test]
    fn text_as_dates() {
        assert_eq!(
            eval("to_timestamp", &[str("2024-03-09 04:05:06"), str("yyyy-MM-dd HH:mm:ss")]),
            "2024-03-09 04:05:06"
        );
        assert_eq!(eval("to_timestamp", &[str("2024-03-09")]), "2024-03-09 00:00:00");
        assert_eq!(eval("to_timestamp", &[int(5)]), "1970-01-01 00:00:05");
        assert_eq!(eval("to_timestamp", &[timestamp("2024-03-09 04:05:06"), str("yyyy")]), "2024-03-09 04:05:06");
        assert_eq!(eval("to_timestamp", &[int(5), str("yyyy")]), "!DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE");
        assert_eq!(eval("to_timestamp", &[str("2024-3-9"), str("yyyy-MM-dd")]), "!CANNOT_PARSE_TIMESTAMP");
        assert_eq!(eval("to_timestamp", &[str("x")]), "!CAST_INVALID_INPUT");
        assert_eq!(eval("to_date", &[str("2024-03-09 10:00"), str("yyyy-MM-dd")]), "!CANNOT_PARSE_TIMESTAMP");
        assert_eq!(eval("to_date", &[str("2024-03-09 23:00:00")]), "2024-03-09");
        assert_eq!(eval("to_date", &[str("2024-03-09 01:00 +05:00"), str("yyyy-MM-dd HH:mm XXX")]), "2024-03-08");
        assert_eq!(eval("to_date", &[null(), str("yyyy")]), "NULL");
        let with_zone = [str("2024-03-09 10:00 +02:00"), str("yyyy-MM-dd HH:mm XXX")];
        assert_eq!(eval("to_timestamp_ntz", &with_zone), "2024-03-09 10:00:00");
        assert_eq!(eval("to_timestamp_ltz", &with_zone), "2024-03-09 08:00:00");
    }

    #[test]
    fn text_that_is_no_date() {
        assert_eq!(eval("try_to_timestamp", &[str("2024-3-9"), str("yyyy-MM-dd")]), "NULL");
        assert_eq!(eval("try_to_timestamp", &[str("2024-03-09x")]), "NULL");
        assert_eq!(eval("try_to_date", &[str("2024-02-30"), str("yyyy-MM-dd")]), "NULL");
        assert_eq!(eval("try_to_date", &[str("x")]), "NULL");
        assert_eq!(eval("try_to_timestamp", &[int(1)]), "1970-01-01 00:00:01");
        assert_eq!(
            eval("try_to_timestamp", &[str("2024"), str("YYYY")]),
            "!INCONSISTENT_BEHAVIOR_CROSS_VERSION.DATETIME_PATTERN_RECOGNITION"
        );
    }
}
