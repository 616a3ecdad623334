//! Interval literals, and the intervals that windows, delays and triggers are given in.

use ssql_grammar::Span;
use ssql_grammar::sql::{self, DateTimeField, UnaryOperator, Value};
use ssql_ir::{DataType, Expr, ExprKind, Literal};

use super::{Binder, Env};
use crate::diag::{Fallible, fail, fail_help};

/// Microseconds of a second, a minute, an hour and a day.
pub(crate) const SECOND: i64 = 1_000_000;
pub(crate) const MINUTE: i64 = 60 * SECOND;
pub(crate) const HOUR: i64 = 60 * MINUTE;
pub(crate) const DAY: i64 = 24 * HOUR;

/// A month in a watermark's delay counts 31 days, as in Spark.
const DAYS_PER_MONTH: i64 = 31;

/// An interval: months and microseconds, either of which may be zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IntervalValue {
    pub months: i32,
    pub micros: i64,
}

impl IntervalValue {
    /// Microseconds, a month counted as 31 days.
    pub fn delay_micros(self) -> Option<i64> {
        i64::from(self.months).checked_mul(DAYS_PER_MONTH * DAY)?.checked_add(self.micros)
    }
}

/// The value of a bound constant interval, or of a string such as `10 minutes`.
pub(crate) fn interval_of(expr: &Expr) -> Option<IntervalValue> {
    match (&expr.kind, &expr.data_type) {
        (ExprKind::Literal(Literal::Int(micros)), DataType::DayTimeInterval(..)) => {
            Some(IntervalValue { months: 0, micros: *micros })
        }
        (ExprKind::Literal(Literal::Int(months)), DataType::YearMonthInterval(..)) => {
            Some(IntervalValue { months: i32::try_from(*months).ok()?, micros: 0 })
        }
        (ExprKind::Literal(Literal::String(text)), DataType::String) => parse(text),
        _ => None,
    }
}

/// Parses `10 minutes`, `1 hour 30 minutes`, `interval 5 seconds`.
pub(crate) fn parse(text: &str) -> Option<IntervalValue> {
    ssql_stdlib::parse_interval(text).map(|(months, micros)| IntervalValue { months, micros })
}

impl<'a> Binder<'a> {
    /// A constant interval where a size, gap or delay is expected: an interval, or a string or parameter that names one.
    pub(crate) fn bind_interval(&mut self, e: &'a sql::Expr, what: &str) -> Fallible<IntervalValue> {
        let span = self.span(e);
        // INTERVAL '1 month 3 days' is no value of one type, but a fine delay.
        if let sql::Expr::Interval(i) = strip(e)
            && i.leading_field.is_none()
            && let Some(text) = string_of(&i.value)
        {
            return match parse(text) {
                Some(value) => Ok(value),
                None => cannot_parse(text, span),
            };
        }
        let bound = self.bind_constant(e)?;
        let bound = crate::passes::fold::fold(bound, self.catalog);
        match interval_of(&bound) {
            Some(value) => Ok(value),
            None => match &bound.kind {
                ExprKind::Literal(Literal::String(text)) => cannot_parse(text, span),
                ExprKind::Literal(Literal::Int(n)) if bound.data_type.is_integer() => fail_help(
                    "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE",
                    format!("{what} is a number without a unit"),
                    span,
                    format!("Write an interval, for example INTERVAL {n} SECONDS."),
                ),
                _ => fail_help(
                    "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE",
                    format!("{what} must be a constant interval, not {}", bound.data_type),
                    span,
                    "Write for example INTERVAL 10 MINUTES.",
                ),
            },
        }
    }

    /// `INTERVAL ...` as an expression.
    pub(super) fn bind_interval_literal(
        &mut self,
        i: &'a sql::Interval,
        e: &'a sql::Expr,
        env: &Env<'_>,
    ) -> Fallible<Expr> {
        let span = self.span(e);
        let Some(leading) = &i.leading_field else {
            let Some(text) = string_of(&i.value) else {
                return fail_help("PARSE_SYNTAX_ERROR", "an INTERVAL needs a unit", span, "Write INTERVAL 10 MINUTES.");
            };
            let Some(read) = ssql_stdlib::read_interval(text) else {
                return cannot_parse(text, span);
            };
            return match read.data_type {
                Some(t) => {
                    let value = if read.months != 0 { read.months.into() } else { read.micros };
                    Ok(Expr::literal(Literal::Int(value), t).at(super::origin_at(span)))
                }
                None => fail_help(
                    "UNSUPPORTED_DATATYPE",
                    "an interval of months and days together has no type",
                    span,
                    "Write it as a sum of two intervals.",
                ),
            };
        };
        if let Some(last) = &i.last_field {
            let Some(text) = string_of(&i.value) else {
                return fail("PARSE_SYNTAX_ERROR", "an interval `x TO y` takes a string", span);
            };
            let Some(t) = DataType::interval(&leading.to_string(), Some(&last.to_string())) else {
                return fail_help(
                    "PARSE_SYNTAX_ERROR",
                    format!("an interval has no fields from {leading} to {last}"),
                    span,
                    "Write DAY TO SECOND, HOUR TO MINUTE, YEAR TO MONTH and the like: the larger field first.",
                );
            };
            return match ssql_stdlib::parse_interval_as(text, &t) {
                Some(value) => Ok(Expr::literal(Literal::Int(value), t).at(super::origin_at(span))),
                None => cannot_parse(text, span),
            };
        }
        let Some(unit) = unit(leading) else {
            return unknown_unit(leading, span);
        };
        let literal =
            |value: i64| Expr::literal(Literal::Int(value), unit.data_type.clone()).at(super::origin_at(span));
        let text = match number_of(&i.value) {
            Some(text) => text,
            None => {
                // A computed amount: a multiple of the unit.
                let amount = self.bind_expr(&i.value, env)?;
                return self.call("*", vec![literal(unit.size), amount], span);
            }
        };
        let value = match unit.data_type {
            DataType::YearMonthInterval(..) => {
                let months = text.parse::<i64>().ok().and_then(|n| n.checked_mul(unit.size));
                months.filter(|m| i32::try_from(*m).is_ok())
            }
            _ => scaled(&text, unit.size),
        };
        match value {
            Some(value) => Ok(literal(value)),
            None if text.trim().parse::<f64>().is_ok() => {
                fail("INTERVAL_ARITHMETIC_OVERFLOW.WITHOUT_SUGGESTION", "this interval is too long", span)
            }
            None => cannot_parse(&text, span),
        }
    }
}

fn strip(e: &sql::Expr) -> &sql::Expr {
    match e {
        sql::Expr::Nested(inner) => strip(inner),
        e => e,
    }
}

fn string_of(e: &sql::Expr) -> Option<&str> {
    match strip(e) {
        sql::Expr::Value(v) => match &v.value {
            Value::SingleQuotedString(s) | Value::SingleQuotedRawStringLiteral(s) => Some(s),
            _ => None,
        },
        _ => None,
    }
}

fn number_of(e: &sql::Expr) -> Option<String> {
    match strip(e) {
        sql::Expr::Value(v) => match &v.value {
            Value::Number(n, _) => Some(n.to_string()),
            Value::SingleQuotedString(s) => Some(s.trim().to_string()),
            _ => None,
        },
        sql::Expr::UnaryOp { op: UnaryOperator::Minus, expr } => number_of(expr).map(|n| format!("-{n}")),
        sql::Expr::UnaryOp { op: UnaryOperator::Plus, expr } => number_of(expr),
        _ => None,
    }
}

/// A unit of time as an interval: its months or microseconds, and the type that it gives.
struct Unit {
    size: i64,
    data_type: DataType,
}

fn unit(field: &DateTimeField) -> Option<Unit> {
    let word = field.to_string().to_ascii_lowercase();
    let word = word.strip_suffix('s').unwrap_or(&word);
    let (field, size) = match word {
        "week" => ("day", 7 * DAY),
        "millisecond" => ("second", 1000),
        "microsecond" => ("second", 1),
        "year" => (word, 12),
        "month" => (word, 1),
        "day" => (word, DAY),
        "hour" => (word, HOUR),
        "minute" => (word, MINUTE),
        "second" => (word, SECOND),
        _ => return None,
    };
    Some(Unit { size, data_type: DataType::interval(field, None)? })
}

/// `text * unit` exactly; a fraction may name what the microsecond can hold.
fn scaled(text: &str, unit: i64) -> Option<i64> {
    let (negative, digits) = match text.trim().strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.trim().trim_start_matches('+')),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if (whole.is_empty() && fraction.is_empty()) || !whole.chars().chain(fraction.chars()).all(|c| c.is_ascii_digit()) {
        return None;
    }
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut value = i128::from(whole) * i128::from(unit);
    if !fraction.is_empty() {
        let scale = 10i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
        value += i128::from(unit) * fraction.parse::<i128>().ok()? / scale;
    }
    i64::try_from(if negative { -value } else { value }).ok()
}

fn cannot_parse<T>(text: &str, span: Span) -> Fallible<T> {
    fail_help(
        "CANNOT_PARSE_INTERVAL",
        format!("`{text}` is no interval"),
        span,
        "Write a number with a unit: INTERVAL 10 MINUTES, INTERVAL '1 hour 30 minutes', or '10 minutes'.",
    )
}

fn unknown_unit<T>(field: &DateTimeField, span: Span) -> Fallible<T> {
    let name = field.to_string();
    let units = ["YEARS", "MONTHS", "WEEKS", "DAYS", "HOURS", "MINUTES", "SECONDS", "MILLISECONDS", "MICROSECONDS"];
    let help = match crate::catalog::suggest(&name, units) {
        Some(near) => format!("Did you mean {near}?"),
        None => format!("Units are: {}.", units.join(", ")),
    };
    fail_help("PARSE_SYNTAX_ERROR", format!("`{name}` is no unit of an interval"), span, help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_exact_to_the_microsecond() {
        assert_eq!(scaled("1.5", SECOND), Some(1_500_000));
        assert_eq!(scaled("-0.000001", SECOND), Some(-1));
        assert_eq!(scaled("five", DAY), None);
    }
}
