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

    /// As a typed literal; None when it has both parts.
    pub fn expr(self) -> Option<Expr> {
        match (self.months, self.micros) {
            (0, micros) => Some(Expr::literal(Literal::Int(micros), DataType::DayTimeInterval)),
            (months, 0) => Some(Expr::literal(Literal::Int(i64::from(months)), DataType::YearMonthInterval)),
            _ => None,
        }
    }
}

/// The value of a bound constant interval, or of a string such as `10 minutes`.
pub(crate) fn interval_of(expr: &Expr) -> Option<IntervalValue> {
    match (&expr.kind, &expr.data_type) {
        (ExprKind::Literal(Literal::Int(micros)), DataType::DayTimeInterval) => {
            Some(IntervalValue { months: 0, micros: *micros })
        }
        (ExprKind::Literal(Literal::Int(months)), DataType::YearMonthInterval) => {
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
            let Some(value) = parse(text) else {
                return cannot_parse(text, span);
            };
            return match value.expr() {
                Some(e) => Ok(e.at(super::origin_at(span))),
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
            return match compound(text, leading, last) {
                Some(e) => Ok(e.at(super::origin_at(span))),
                None => cannot_parse(text, span),
            };
        }
        let Some((months, micros)) = unit(leading) else {
            return unknown_unit(leading, span);
        };
        let text = match number_of(&i.value) {
            Some(text) => text,
            None => {
                // A computed amount: a multiple of the unit.
                let amount = self.bind_expr(&i.value, env)?;
                let unit = IntervalValue { months, micros }.expr().expect("a unit is months or microseconds");
                return self.call("*", vec![unit, amount], span);
            }
        };
        let value = if months != 0 {
            text.parse::<i32>()
                .ok()
                .and_then(|n| n.checked_mul(months))
                .map(|months| IntervalValue { months, micros: 0 })
        } else {
            scaled(&text, micros).map(|micros| IntervalValue { months: 0, micros })
        };
        match value.and_then(IntervalValue::expr) {
            Some(e) => Ok(e.at(super::origin_at(span))),
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

/// Months or microseconds of a unit.
fn unit(field: &DateTimeField) -> Option<(i32, i64)> {
    use DateTimeField as F;
    Some(match field {
        F::Year | F::Years => (12, 0),
        F::Month | F::Months => (1, 0),
        F::Week(_) | F::Weeks => (0, 7 * DAY),
        F::Day | F::Days => (0, DAY),
        F::Hour | F::Hours => (0, HOUR),
        F::Minute | F::Minutes => (0, MINUTE),
        F::Second | F::Seconds => (0, SECOND),
        F::Millisecond | F::Milliseconds => (0, 1000),
        F::Microsecond | F::Microseconds => (0, 1),
        F::Custom(name) => match name.value.to_ascii_lowercase().as_str() {
            "year" | "years" => (12, 0),
            "month" | "months" => (1, 0),
            "week" | "weeks" => (0, 7 * DAY),
            "day" | "days" => (0, DAY),
            "hour" | "hours" => (0, HOUR),
            "minute" | "minutes" => (0, MINUTE),
            "second" | "seconds" => (0, SECOND),
            "millisecond" | "milliseconds" => (0, 1000),
            "microsecond" | "microseconds" => (0, 1),
            _ => return None,
        },
        _ => return None,
    })
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

/// `'1 02:03:04.5' DAY TO SECOND`, `'2-3' YEAR TO MONTH` and the forms between.
fn compound(text: &str, leading: &DateTimeField, last: &DateTimeField) -> Option<Expr> {
    let (negative, body) = match text.trim().strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.trim().trim_start_matches('+')),
    };
    let sign = if negative { -1 } else { 1 };
    let (from, to) = (unit(leading)?, unit(last)?);
    if from.0 != 0 {
        let (years, months) = body.split_once('-')?;
        let months: i64 = years.trim().parse::<i64>().ok()? * 12 + months.trim().parse::<i64>().ok()?;
        return Some(Expr::literal(Literal::Int(sign * months), DataType::YearMonthInterval));
    }
    let mut parts: Vec<&str> = vec![];
    let clock = match (from.1 == DAY, body.split_once([' ', 'T'])) {
        (true, Some((days, clock))) => {
            parts.push(days);
            clock
        }
        (true, None) => return None,
        (false, _) => body,
    };
    parts.extend(clock.split(':'));
    let units: Vec<i64> = [DAY, HOUR, MINUTE, SECOND].into_iter().filter(|u| *u <= from.1 && *u >= to.1).collect();
    if parts.len() != units.len() {
        return None;
    }
    let mut micros = 0i64;
    for (part, unit) in parts.iter().zip(units) {
        micros = micros.checked_add(scaled(part, unit).filter(|v| *v >= 0)?)?;
    }
    Some(Expr::literal(Literal::Int(sign * micros), DataType::DayTimeInterval))
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

    #[test]
    fn compound_forms_follow_their_units() {
        let of = |text: &str, a, b| compound(text, &a, &b).map(|e| e.kind);
        use DateTimeField as F;
        assert_eq!(of("1 02:03:04.5", F::Day, F::Second), Some(ExprKind::Literal(Literal::Int(93_784_500_000))));
        assert_eq!(of("-2-3", F::Year, F::Month), Some(ExprKind::Literal(Literal::Int(-27))));
        assert_eq!(of("1:2:3", F::Hour, F::Minute), None);
    }
}
