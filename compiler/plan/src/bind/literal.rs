//! Literals: numbers with Spark's types, strings, typed strings, parameters.

use ssql_grammar::Span;
use ssql_grammar::sql::{self, Value};
use ssql_ir::{DataType, Expr, Literal};

use super::{Binder, origin_at};
use crate::diag::{Fallible, fail, fail_help};

impl<'a> Binder<'a> {
    pub(super) fn bind_value(&self, v: &sql::ValueWithSpan, span: Span) -> Fallible<Expr> {
        let string = |s: &str| Expr::literal(Literal::String(s.to_string()), DataType::String);
        let expr = match &v.value {
            Value::Number(text, long) => {
                let text = text.to_string();
                number(&if *long { format!("{text}L") } else { text }, false, span)?
            }
            Value::SingleQuotedString(s)
            | Value::SingleQuotedRawStringLiteral(s)
            | Value::EscapedStringLiteral(s)
            | Value::TripleSingleQuotedString(s)
            | Value::NationalStringLiteral(s)
            | Value::UnicodeStringLiteral(s) => string(s),
            Value::HexStringLiteral(s) => match hex(s) {
                Some(bytes) => Expr::literal(Literal::Binary(bytes), DataType::Binary),
                None => {
                    return fail_help(
                        "INVALID_TYPED_LITERAL",
                        format!("`{s}` is no hexadecimal text"),
                        span,
                        "Write pairs of the digits 0-9 and A-F, as in X'1F0A'.",
                    );
                }
            },
            Value::Boolean(b) => Expr::literal(Literal::Boolean(*b), DataType::Boolean),
            Value::Null => Expr::literal(Literal::Null, DataType::Null),
            Value::Placeholder(text) => self.parameter(text.trim_start_matches(':'), span)?,
            other => {
                return fail("PARSE_SYNTAX_ERROR", format!("`{other}` is no literal of this dialect"), span);
            }
        };
        Ok(expr.at(origin_at(span)))
    }

    /// The value of `:name`.
    pub(super) fn parameter(&self, name: &str, span: Span) -> Fallible<Expr> {
        let Some(text) = self.catalog.parameter(name) else {
            return Err(Box::new(self.catalog.unbound_parameter(name, span)));
        };
        let trimmed = text.trim();
        let (negative, digits) = match trimmed.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, trimmed),
        };
        let is_number = digits.starts_with(|c: char| c.is_ascii_digit())
            && digits.chars().all(|c| c.is_ascii_digit() || c == '.')
            && digits.matches('.').count() <= 1;
        Ok(if is_number {
            number(digits, negative, span)?
        } else if trimmed.eq_ignore_ascii_case("true") || trimmed.eq_ignore_ascii_case("false") {
            Expr::literal(Literal::Boolean(trimmed.eq_ignore_ascii_case("true")), DataType::Boolean)
        } else if trimmed.eq_ignore_ascii_case("null") {
            Expr::literal(Literal::Null, DataType::Null)
        } else {
            Expr::literal(Literal::String(text.to_string()), DataType::String)
        })
    }

    /// `DATE '...'`, `TIMESTAMP '...'`, `X'...'` and casts written as a typed literal.
    pub(super) fn bind_typed_string(&self, t: &sql::TypedString, span: Span) -> Fallible<Expr> {
        let text = match &t.value.value {
            Value::SingleQuotedString(s) | Value::SingleQuotedRawStringLiteral(s) => s.as_str(),
            other => return fail("PARSE_SYNTAX_ERROR", format!("`{other}` is no typed literal"), span),
        };
        let data_type = super::data_type(&t.data_type, span)?;
        let zone = self.catalog.settings.time_zone();
        let value = match data_type {
            DataType::Date => ssql_stdlib::parse_date(text).map(i64::from),
            DataType::Timestamp => ssql_stdlib::parse_timestamp(text, &zone),
            DataType::TimestampNtz => ssql_stdlib::parse_timestamp_ntz(text),
            _ => {
                return fail_help(
                    "INVALID_TYPED_LITERAL",
                    format!("{data_type} has no literal form"),
                    span,
                    format!("Write CAST('{text}' AS {data_type})."),
                );
            }
        };
        match value {
            Some(value) => Ok(Expr::literal(Literal::Int(value), data_type).at(origin_at(span))),
            None => fail_help(
                "INVALID_TYPED_LITERAL",
                format!("`{text}` is no {data_type}"),
                span,
                "Write for example DATE '2024-01-31' or TIMESTAMP '2024-01-31 12:00:00'.",
            ),
        }
    }
}

/// A number as written, with its suffix; `negative` tells whether a minus stands before it.
pub(super) fn number(text: &str, negative: bool, span: Span) -> Fallible<Expr> {
    let upper = text.to_ascii_uppercase();
    let signed = |digits: &str| if negative { format!("-{digits}") } else { digits.to_string() };
    let out_of_range = |name: &str| {
        fail(
            "INVALID_NUMERIC_LITERAL_RANGE",
            format!("{} does not fit {name}", signed(text.trim_end_matches(|c: char| c.is_ascii_alphabetic()))),
            span,
        )
    };
    let integer = |digits: &str, min: i64, max: i64| -> Option<i64> {
        signed(digits).parse::<i64>().ok().filter(|n| (min..=max).contains(n))
    };
    let has_exponent = !upper.starts_with("0X") && upper.trim_end_matches(['D', 'F']).contains('E');
    if let Some(digits) = upper.strip_suffix("BD") {
        return decimal(digits, negative, span);
    }
    if let Some(digits) = upper.strip_suffix('L') {
        return match integer(digits, i64::MIN, i64::MAX) {
            Some(n) => Ok(Expr::literal(Literal::Int(n), DataType::Int64)),
            None => out_of_range("BIGINT"),
        };
    }
    if let Some(digits) = upper.strip_suffix('S') {
        return match integer(digits, i64::from(i16::MIN), i64::from(i16::MAX)) {
            Some(n) => Ok(Expr::literal(Literal::Int(n), DataType::Int16)),
            None => out_of_range("SMALLINT"),
        };
    }
    if let Some(digits) = upper.strip_suffix('Y') {
        return match integer(digits, i64::from(i8::MIN), i64::from(i8::MAX)) {
            Some(n) => Ok(Expr::literal(Literal::Int(n), DataType::Int8)),
            None => out_of_range("TINYINT"),
        };
    }
    if let Some(digits) = upper.strip_suffix('F') {
        return match signed(digits).parse::<f32>() {
            Ok(v) if v.is_finite() => Ok(Expr::literal(Literal::Float(f64::from(v)), DataType::Float32)),
            _ => out_of_range("FLOAT"),
        };
    }
    let double = upper.strip_suffix('D');
    if double.is_some() || has_exponent {
        return match signed(double.unwrap_or(&upper)).parse::<f64>() {
            Ok(v) if v.is_finite() => Ok(Expr::literal(Literal::Float(v), DataType::Float64)),
            _ => out_of_range("DOUBLE"),
        };
    }
    if !upper.contains('.')
        && let Ok(n) = signed(&upper).parse::<i64>()
    {
        let data_type = if i32::try_from(n).is_ok() { DataType::Int32 } else { DataType::Int64 };
        return Ok(Expr::literal(Literal::Int(n), data_type));
    }
    decimal(&upper, negative, span)
}

/// A decimal with the narrowest type that holds its digits.
fn decimal(text: &str, negative: bool, span: Span) -> Fallible<Expr> {
    let (mantissa, exponent) = match text.split_once('E') {
        Some((m, e)) => (m, e.parse::<i32>().unwrap_or(i32::MAX)),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: String = format!("{whole}{fraction}").trim_start_matches('0').to_string();
    let scale = i64::try_from(fraction.len()).unwrap_or(i64::MAX) - i64::from(exponent);
    let too_long = || {
        fail(
            "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION",
            format!("`{text}` has more digits than the 38 of a DECIMAL"),
            span,
        )
    };
    let (mut digits, scale) = if scale < 0 {
        if scale < -38 {
            return too_long();
        }
        (format!("{digits}{}", "0".repeat((-scale) as usize)), 0usize)
    } else {
        (digits, usize::try_from(scale).unwrap_or(usize::MAX))
    };
    let precision = digits.len().max(scale).max(1);
    if precision > 38 {
        return too_long();
    }
    if digits.is_empty() {
        digits.push('0');
    }
    match digits.parse::<i128>() {
        Ok(value) => {
            let value = if negative { -value } else { value };
            Ok(Expr::literal(Literal::Decimal(value), DataType::Decimal(precision as u8, scale as u8)))
        }
        Err(_) => fail("PARSE_SYNTAX_ERROR", format!("`{text}` is no number"), span),
    }
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let padded = if text.len() % 2 == 1 { format!("0{text}") } else { text.to_string() };
    let nibble = |b: u8| (b as char).to_digit(16);
    padded.as_bytes().chunks(2).map(|p| Some((nibble(p[0])? * 16 + nibble(p[1])?) as u8)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str) -> DataType {
        number(text, false, Span::default()).unwrap().data_type
    }

    #[test]
    fn a_number_has_the_narrowest_type() {
        assert_eq!(typed("2147483647"), DataType::Int32);
        assert_eq!(typed("2147483648"), DataType::Int64);
        assert_eq!(typed("9223372036854775808"), DataType::Decimal(19, 0));
        assert_eq!(typed("1.50"), DataType::Decimal(3, 2));
        assert_eq!(typed("0.001"), DataType::Decimal(3, 3));
        assert_eq!(typed("5."), DataType::Decimal(1, 0));
        assert_eq!(typed("1e0"), DataType::Float64);
        assert_eq!(typed("1D"), DataType::Float64);
        assert_eq!(typed("1.5BD"), DataType::Decimal(2, 1));
    }

    #[test]
    fn a_minus_belongs_to_the_number() {
        let e = number("2147483648", true, Span::default()).unwrap();
        assert_eq!((e.kind, e.data_type), (ssql_ir::ExprKind::Literal(Literal::Int(-2147483648)), DataType::Int32));
    }

    #[test]
    fn what_does_not_fit_is_refused_by_condition() {
        let condition = |text: &str| number(text, false, Span::default()).unwrap_err().condition.into_owned();
        assert_eq!(condition("128Y"), "INVALID_NUMERIC_LITERAL_RANGE");
        assert_eq!(condition("123456789012345678901234567890123456789"), "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION");
    }

    #[test]
    fn hex_text_may_lack_its_first_digit() {
        assert_eq!(hex("1F0a"), Some(vec![0x1f, 0x0a]));
        assert_eq!(hex("F"), Some(vec![15]));
        assert_eq!(hex("1G"), None);
    }
}
