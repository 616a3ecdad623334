//! Numbers as text by patterns: `format_number` with Java's DecimalFormat.

use arrow::array::{Array, AsArray};
use arrow::datatypes as dt;
use arrow::datatypes::DataType as ArrowType;
use ssql_ir::DataType as T;

use super::format_string::group_digits;
use crate::call::{Call, EvalResult};
use crate::error::ResolveError;
use crate::function::{FunctionDef, NullRule, Param, scalar_with};
use crate::resolve::{TypeCall, Typed};
use crate::text::write_decimal;

/// Entries of this family.
pub const TABLE: &[FunctionDef] =
    &[scalar_with("format_number", number_type, format_number).nulls(NullRule::StrictNullable).doc(
        "A number with separators and that many decimals, or by a pattern such as '#,##0.00'; rounded half even. NULL for \
         a negative number of decimals.",
        "format_number(x, decimals) | format_number(x, pattern)",
        "format_number(1234567.891, 2)",
    )];

fn number_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, 2)?;
    if *c.ty(0) == T::String {
        return Err(c.mismatch(0, "NUMERIC"));
    }
    let types =
        vec![c.coerce(0, Param::Numeric)?, c.coerce(1, Param::Exactly(&Param::OneOf(&[Param::Int, Param::String])))?];
    Ok(Typed::new(types, T::String))
}

/// What a pattern says.
#[derive(Debug, Clone, Default, PartialEq)]
struct Pattern {
    prefix: String,
    suffix: String,
    grouped: bool,
    /// Digits before the point at least.
    whole: usize,
    /// Digits behind the point at least and at most.
    least: usize,
    most: usize,
    /// Powers of ten that `%` and `‰` multiply by.
    scale: i32,
}

impl Pattern {
    fn decimals(n: usize) -> Pattern {
        Pattern { grouped: true, whole: 1, least: n, most: n, ..Pattern::default() }
    }

    /// Reads a pattern: text, digits (`#`, `0`, `,`, `.`), text. Of a pattern for negative numbers (behind `;`) Java
    /// takes the texts only; here the minus sign stands.
    fn compile(pattern: &str) -> Pattern {
        let pattern = pattern.split(';').next().unwrap_or("");
        let is_digit = |c: char| matches!(c, '#' | '0' | ',' | '.');
        let start = pattern.find(is_digit).unwrap_or(pattern.len());
        let rest = &pattern[start..];
        let end = rest.find(|c| !is_digit(c)).unwrap_or(rest.len());
        let (digits, suffix) = rest.split_at(end);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let scale = if pattern.contains('%') {
            2
        } else if pattern.contains('‰') {
            3
        } else {
            0
        };
        Pattern {
            prefix: pattern[..start].replace('\'', ""),
            suffix: suffix.replace('\'', ""),
            grouped: whole.contains(','),
            whole: whole.matches('0').count(),
            least: fraction.matches('0').count(),
            most: fraction.len(),
            scale,
        }
    }

    /// Appends a number of which `digits` are the exact decimal digits (`-12.345`).
    fn write(&self, digits: &str, out: &mut String) {
        let (negative, digits) = digits.strip_prefix('-').map_or((false, digits), |d| (true, d));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        // All digits, and how many stand before the point.
        let mut all: Vec<u8> = whole.bytes().chain(fraction.bytes()).map(|b| b - b'0').collect();
        let mut before = whole.len() + self.scale as usize;
        while all.len() < before {
            all.push(0);
        }
        if round_half_even(&mut all, before + self.most) {
            before += 1;
        }
        let mut behind = all.split_off(before.min(all.len()));
        while behind.len() > self.least && behind.last() == Some(&0) {
            behind.pop();
        }
        behind.resize(behind.len().max(self.least), 0);
        let zeros = all.iter().take_while(|d| **d == 0).count();
        let mut whole: String = all[zeros..].iter().map(|d| char::from(b'0' + d)).collect();
        while whole.len() < self.whole {
            whole.insert(0, '0');
        }
        if whole.is_empty() && behind.is_empty() {
            whole.push('0');
        }
        if negative {
            out.push('-');
        }
        out.push_str(&self.prefix);
        out.push_str(&if self.grouped { group_digits(&whole) } else { whole });
        if !behind.is_empty() {
            out.push('.');
            out.extend(behind.iter().map(|d| char::from(b'0' + d)));
        }
        out.push_str(&self.suffix);
    }
}

/// Rounds digits half even to that many; whether a digit was added in front.
fn round_half_even(digits: &mut Vec<u8>, keep: usize) -> bool {
    if digits.len() <= keep {
        return false;
    }
    let rest = digits.split_off(keep);
    let above_half = rest[0] > 5 || rest[0] == 5 && rest[1..].iter().any(|d| *d > 0);
    let odd = digits.last().is_some_and(|d| d % 2 == 1);
    if !(above_half || rest[0] == 5 && odd) {
        return false;
    }
    for d in digits.iter_mut().rev() {
        if *d < 9 {
            *d += 1;
            return false;
        }
        *d = 0;
    }
    digits.insert(0, 1);
    true
}

/// The decimal digits of a finite float that is shown with `most` of them behind the point.
///
/// They are the fewest that name the value, zeros follow; only where some are cut off do all its digits count, as half is
/// decided by them.
fn float_digits(v: f64, most: usize) -> String {
    let shortest = v.to_string();
    if shortest.split_once('.').map_or(0, |(_, fraction)| fraction.len()) <= most {
        return shortest;
    }
    // A DOUBLE has at most 1074 digits behind the point.
    let mut text = format!("{v:.1074}");
    let kept = text.trim_end_matches('0').trim_end_matches('.').len();
    text.truncate(kept);
    text
}

fn format_number(c: &Call<'_>) -> EvalResult {
    let array = c.raw(0);
    let decimals = (*c.types[1] == T::Int32).then(|| c.i32(1));
    let text = (*c.types[1] == T::String).then(|| c.str(1));
    let mut last: Option<(&str, Pattern)> = None;
    let mut digits = String::new();
    c.strings(|row, out| {
        let pattern = match (&decimals, &text) {
            (Some(n), _) => match usize::try_from(n.get(row)) {
                Ok(n) => Pattern::decimals(n.min(1 << 16)),
                Err(_) => return Ok(false),
            },
            (None, Some(text)) => {
                let text = text.get(row);
                if !matches!(&last, Some((t, _)) if *t == text) {
                    let compiled = if text.is_empty() { Pattern::decimals(0) } else { Pattern::compile(text) };
                    last = Some((text, compiled));
                }
                last.as_ref().map(|(_, p)| p.clone()).unwrap_or_default()
            }
            (None, None) => return Ok(false),
        };
        let at = if c.is_constant(0) { 0 } else { row };
        let float = match array.data_type() {
            ArrowType::Float64 => Some(array.as_primitive::<dt::Float64Type>().value(at)),
            ArrowType::Float32 => Some(array.as_primitive::<dt::Float32Type>().value(at).into()),
            _ => None,
        };
        digits.clear();
        match (float, array.data_type()) {
            (Some(v), _) if v.is_nan() => {
                out.push_str("NaN");
                return Ok(true);
            }
            (Some(v), _) if v.is_infinite() => {
                out.push_str(if v < 0.0 { "-∞" } else { "∞" });
                return Ok(true);
            }
            (Some(v), _) => digits.push_str(&float_digits(v, pattern.most + pattern.scale as usize)),
            (None, ArrowType::Decimal128(_, s)) => {
                write_decimal(array.as_primitive::<dt::Decimal128Type>().value(at), *s as u8, &mut digits);
            }
            (None, ArrowType::Int8) => digits.push_str(&array.as_primitive::<dt::Int8Type>().value(at).to_string()),
            (None, ArrowType::Int16) => digits.push_str(&array.as_primitive::<dt::Int16Type>().value(at).to_string()),
            (None, ArrowType::Int32) => digits.push_str(&array.as_primitive::<dt::Int32Type>().value(at).to_string()),
            (None, _) => digits.push_str(&array.as_primitive::<dt::Int64Type>().value(at).to_string()),
        }
        pattern.write(&digits, out);
        Ok(true)
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::*;

    #[test]
    fn decimals() {
        let format = |x: Arg, n: i32| eval("format_number", &[x, int(n)]);
        assert_eq!(format(decimal("1234567.891"), 2), "1,234,567.89");
        assert_eq!(format(decimal("1234.5"), 0), "1,234");
        assert_eq!(format(decimal("1235.5"), 0), "1,236");
        assert_eq!(format(decimal("-0.5"), 1), "-0.5");
        assert_eq!(format(int(12), 3), "12.000");
        assert_eq!(format(int(5), -1), "NULL");
        assert_eq!(format(double(0.125), 2), "0.12");
        assert_eq!(format(decimal("999.99"), 1), "1,000.0");
        assert_eq!(format(double(0.1), 20), "0.10000000000000000000");
        assert_eq!(format(double(1e23), 0), "100,000,000,000,000,000,000,000");
        assert_eq!(format(double(1.005), 2), "1.00");
        assert_eq!(format(double(f64::NAN), 2), "NaN");
        assert_eq!(format(double(f64::INFINITY), 2), "∞");
    }

    #[test]
    fn patterns() {
        let format = |x: Arg, p: &str| eval("format_number", &[x, str(p)]);
        assert_eq!(format(int(1_234_567), "###.##"), "1234567");
        assert_eq!(format(decimal("1234567.891"), "#,###.000"), "1,234,567.891");
        assert_eq!(format(decimal("12332.123456"), "##################.###"), "12332.123");
        assert_eq!(format(decimal("2.5"), "0"), "2");
        assert_eq!(format(decimal("-1234.5"), "$#,##0.00"), "-$1,234.50");
        assert_eq!(format(decimal("0.12"), "0.0%"), "12.0%");
    }
}
