//! Numbers as text, as Java prints and Spark reads them.

use crate::aggregate::basic::decimal_limit;

/// Writes a DOUBLE: shortest digits that read back the same, at least one decimal, `1.0E7` form below 1e-3 and from 1e7.
pub fn write_double(v: f64, out: &mut String) {
    if !v.is_finite() {
        write_special(v.is_nan(), v > 0.0, out);
    } else if v != 0.0 && v.abs() < 1e-300 {
        // Java never takes fewer than two digits, and of two-digit texts the nearest: 4.9E-324, not 5E-324.
        let two = format!("{v:.1e}");
        let mut shortest = ryu::Buffer::new();
        let shortest = shortest.format_finite(v);
        write_java(if !shortest.contains('.') && two.parse() == Ok(v) { &two } else { shortest }, out);
    } else {
        write_java(ryu::Buffer::new().format_finite(v), out);
    }
}

/// Writes a FLOAT as [`write_double`] does.
pub fn write_float(v: f32, out: &mut String) {
    if !v.is_finite() {
        write_special(v.is_nan(), v > 0.0, out);
    } else if v != 0.0 && v.abs() < 1e-40 {
        let two = format!("{v:.1e}");
        let mut shortest = ryu::Buffer::new();
        let shortest = shortest.format_finite(v);
        write_java(if !shortest.contains('.') && two.parse() == Ok(v) { &two } else { shortest }, out);
    } else {
        write_java(ryu::Buffer::new().format_finite(v), out);
    }
}

fn write_special(nan: bool, positive: bool, out: &mut String) {
    out.push_str(if nan {
        "NaN"
    } else if positive {
        "Infinity"
    } else {
        "-Infinity"
    });
}

/// Turns ryu's layout (`1e16`, `1234.5`, `1.5e-10`) into Java's.
fn write_java(shortest: &str, out: &mut String) {
    let (sign, rest) = shortest.strip_prefix('-').map_or(("", shortest), |r| ("-", r));
    let (mantissa, exponent) = rest.split_once('e').unwrap_or((rest, "0"));
    let exponent: i32 = exponent.parse().expect("ryu writes a number");
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all: String = [whole, fraction].concat();
    // Digits without zeros on either side, and the power of ten of the first.
    let leading = all.len() - all.trim_start_matches('0').len();
    let digits = all.trim_matches('0');
    out.push_str(sign);
    if digits.is_empty() {
        out.push_str("0.0");
        return;
    }
    let power = whole.len() as i32 - 1 - leading as i32 + exponent;
    let n = digits.len() as i32;
    if (-3..7).contains(&power) {
        if power < 0 {
            out.push_str("0.");
            out.extend(std::iter::repeat_n('0', (-power - 1) as usize));
            out.push_str(digits);
        } else if n <= power + 1 {
            out.push_str(digits);
            out.extend(std::iter::repeat_n('0', (power + 1 - n) as usize));
            out.push_str(".0");
        } else {
            let (a, b) = digits.split_at(power as usize + 1);
            out.push_str(a);
            out.push('.');
            out.push_str(b);
        }
        return;
    }
    let (first, others) = digits.split_at(1);
    out.push_str(first);
    out.push('.');
    out.push_str(if others.is_empty() { "0" } else { others });
    out.push('E');
    out.push_str(itoa::Buffer::new().format(power));
}

/// Writes a DECIMAL with exactly `scale` digits after the point, never in exponent form.
pub fn write_decimal(v: i128, scale: u8, out: &mut String) {
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(v.unsigned_abs());
    if v < 0 {
        out.push('-');
    }
    let scale = usize::from(scale);
    if scale == 0 {
        out.push_str(digits);
    } else if digits.len() > scale {
        let (a, b) = digits.split_at(digits.len() - scale);
        out.push_str(a);
        out.push('.');
        out.push_str(b);
    } else {
        out.push_str("0.");
        out.extend(std::iter::repeat_n('0', scale - digits.len()));
        out.push_str(digits);
    }
}

/// Reads a whole number: blanks around, a sign, digits and nothing else. `None` if malformed or too large.
pub fn parse_integer(s: &str) -> Option<i64> {
    let s = super::trim(s);
    let digits = s.strip_prefix(['+', '-']).unwrap_or(s);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    s.parse().ok()
}

/// Reads a BOOLEAN: true, t, yes, y, 1 and their opposites in any case, blanks around.
pub fn parse_boolean(s: &str) -> Option<bool> {
    let s = super::trim(s);
    let is = |words: &[&str]| words.iter().any(|w| s.eq_ignore_ascii_case(w));
    if is(&["t", "true", "y", "yes", "1"]) {
        Some(true)
    } else if is(&["f", "false", "n", "no", "0"]) {
        Some(false)
    } else {
        None
    }
}

/// The part of a floating-point text that holds the number, or `None` if Java would not read it. Java allows a type
/// letter at the end.
fn plain_number(s: &str) -> Option<&str> {
    let body = match s.as_bytes() {
        [.., before, b'd' | b'D' | b'f' | b'F'] if before.is_ascii_digit() || *before == b'.' => &s[..s.len() - 1],
        _ => s,
    };
    body.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'+' | b'-' | b'e' | b'E')).then_some(body)
}

fn special(s: &str) -> Option<f64> {
    let is = |words: &[&str]| words.iter().any(|w| s.eq_ignore_ascii_case(w));
    if s == "+NaN" || s == "-NaN" {
        // Java reads a sign before the word as it writes it.
        return Some(f64::NAN);
    }
    if is(&["inf", "+inf", "infinity", "+infinity"]) {
        Some(f64::INFINITY)
    } else if is(&["-inf", "-infinity"]) {
        Some(f64::NEG_INFINITY)
    } else if is(&["nan"]) {
        Some(f64::NAN)
    } else {
        None
    }
}

/// Reads a DOUBLE: blanks around, exponent form, NaN and Infinity in any case.
pub fn parse_double(s: &str) -> Option<f64> {
    let s = super::trim(s);
    match plain_number(s) {
        Some(body) => fast_float2::parse(body).ok(),
        None => special(s),
    }
}

/// Reads a FLOAT as [`parse_double`] does.
pub fn parse_float(s: &str) -> Option<f32> {
    let s = super::trim(s);
    match plain_number(s) {
        Some(body) => fast_float2::parse(body).ok(),
        None => special(s).map(|v| v as f32),
    }
}

/// Why text is no DECIMAL(p,s).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadDecimal {
    /// It is no number.
    Malformed,
    /// It is a number with too many digits before the point.
    OutOfRange,
    /// It has more than 38 digits before the point: no DECIMAL holds it.
    Unsupported,
}

/// Reads a DECIMAL: blanks around, exponent form; digits beyond the scale are rounded half up. The unscaled value.
pub fn parse_decimal(s: &str, precision: u8, scale: u8) -> Result<i128, BadDecimal> {
    let s = super::trim(s);
    let (negative, rest) = match s.as_bytes() {
        [b'-', ..] => (true, &s[1..]),
        [b'+', ..] => (false, &s[1..]),
        _ => (false, s),
    };
    let (mantissa, exponent) = match rest.find(['e', 'E']) {
        Some(at) => (&rest[..at], Some(&rest[at + 1..])),
        None => (rest, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !is_digits(whole) || !is_digits(fraction) {
        return Err(BadDecimal::Malformed);
    }
    let exponent: i64 = match exponent {
        None => 0,
        Some(e) => {
            let digits = e.strip_prefix(['+', '-']).unwrap_or(e);
            if digits.is_empty() || !is_digits(digits) {
                return Err(BadDecimal::Malformed);
            }
            e.parse().unwrap_or(if e.starts_with('-') { -1_000_000 } else { 1_000_000 })
        }
    };
    let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).map(|b| b - b'0').collect();
    let significant = digits.len() - digits.iter().take_while(|d| **d == 0).count();
    if significant > 0
        && significant as i64 - fraction.len() as i64 + exponent > i64::from(crate::coercion::MAX_PRECISION)
    {
        return Err(BadDecimal::Unsupported);
    }
    // How many of the digits stand before the result's last place.
    let keep = whole.len() as i64 + exponent + i64::from(scale);
    let mut value: i128 = 0;
    let limit = decimal_limit(precision);
    for place in 0..keep.min(digits.len() as i64).max(0) {
        value = value
            .checked_mul(10)
            .and_then(|v| v.checked_add(digits[place as usize].into()))
            .ok_or(BadDecimal::OutOfRange)?;
    }
    if value != 0 {
        for _ in digits.len() as i64..keep {
            value = value.checked_mul(10).filter(|v| *v <= limit).ok_or(BadDecimal::OutOfRange)?;
        }
    }
    let next = usize::try_from(keep).ok().and_then(|k| digits.get(k));
    if next.is_some_and(|d| *d >= 5) {
        value += 1;
    }
    if value > limit {
        return Err(BadDecimal::OutOfRange);
    }
    Ok(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_print_as_spark_prints_them() {
        let cases: &[(f64, &str)] = &[
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (0.1, "0.1"),
            (100.0, "100.0"),
            (123456.789, "123456.789"),
            (9999999.0, "9999999.0"),
            (1e7, "1.0E7"),
            (12345678.9, "1.23456789E7"),
            (1e-3, "0.001"),
            (9.99e-4, "9.99E-4"),
            (1.5e-10, "1.5E-10"),
            (1e16, "1.0E16"),
            (f64::MAX, "1.7976931348623157E308"),
            (5e-324, "4.9E-324"),
            (2.2250738585072014e-308, "2.2250738585072014E-308"),
            (0.1 + 0.2, "0.30000000000000004"),
            (100.0 / 3.0, "33.333333333333336"),
            (9007199254740993.0, "9.007199254740992E15"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ];
        for (v, text) in cases {
            let mut out = String::new();
            write_double(*v, &mut out);
            assert_eq!(out, *text);
        }
    }

    #[test]
    fn floats_print_as_spark_prints_them() {
        for (v, text) in
            [(0.1f32, "0.1"), (16777217.0, "1.6777216E7"), (3.4028235e38, "3.4028235E38"), (1e-45, "1.4E-45")]
        {
            let mut out = String::new();
            write_float(v, &mut out);
            assert_eq!(out, text);
        }
    }

    #[test]
    fn decimals_round_half_up() {
        assert_eq!(parse_decimal("1.005", 4, 2), Ok(101));
        assert_eq!(parse_decimal("  -7.245 ", 4, 2), Ok(-725));
        assert_eq!(parse_decimal("1e2", 5, 1), Ok(1000));
        assert_eq!(parse_decimal("1E-9", 20, 10), Ok(10));
        assert_eq!(parse_decimal("12.x", 4, 1), Err(BadDecimal::Malformed));
        assert_eq!(parse_decimal("99999999999", 4, 1), Err(BadDecimal::OutOfRange));
        assert_eq!(parse_decimal("1e400", 10, 2), Err(BadDecimal::Unsupported));
        assert_eq!(parse_decimal("1e-400", 10, 2), Ok(0));
        assert_eq!(parse_decimal("", 4, 1), Err(BadDecimal::Malformed));
        assert_eq!(parse_decimal(".", 4, 1), Err(BadDecimal::Malformed));
        assert_eq!(parse_decimal("0e999999999999", 4, 1), Ok(0));
    }
}
