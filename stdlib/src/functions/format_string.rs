//! `format_string`: values laid out by a format of Java's `Formatter`.

use arrow::array::{Array, AsArray};
use arrow::datatypes as dt;
use arrow::datatypes::DataType as ArrowType;
use ssql_ir::DataType as T;

use crate::call::{Call, EvalResult};
use crate::error::{EvalError, ResolveError};
use crate::function::{FunctionDef, NullRule, Param, scalar_with};
use crate::resolve::{TypeCall, Typed};
use crate::text::CellFormatter;

/// Entries of this family.
pub const TABLE: &[FunctionDef] =
    &[scalar_with("format_string", format_type, format_string).nulls(NullRule::Any).aliases(&["printf"]).doc(
        "The arguments laid out by a format with `%s`, `%d`, `%.2f` and their like.",
        "format_string(format, a, ...)",
        "format_string('%d items, %s', 3, 'ok')",
    )];

fn format_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(1, usize::MAX)?;
    let mut types = vec![c.coerce(0, Param::String)?];
    types.extend(c.args[1..].iter().map(|a| a.data_type.clone()));
    Ok(Typed::new(types, T::String).nullable(c.args[0].nullable))
}

/// One `%` of a format.
#[derive(Debug, Clone, Default)]
struct Spec {
    /// Which argument, from 0; `None`: none is needed.
    arg: usize,
    left: bool,
    plus: bool,
    blank: bool,
    zero: bool,
    grouped: bool,
    brackets: bool,
    alternate: bool,
    width: Option<usize>,
    precision: Option<usize>,
    conversion: char,
    upper: bool,
}

#[derive(Debug, Clone)]
enum Part {
    Text(String),
    Value(Spec),
}

/// A format that Java refuses, or a value that a conversion does not take.
fn refused(format: &str, why: impl std::fmt::Display) -> EvalError {
    EvalError::new("INVALID_PARAMETER_VALUE.STRING_FORMAT", format!("The format '{format}' cannot be used: {why}."))
}

/// Widths and precisions beyond this are refused: no text is that long on purpose.
const WIDEST: usize = 1 << 20;

fn number(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<usize> {
    let mut value: Option<usize> = None;
    while let Some(d) = chars.peek().and_then(|c| c.to_digit(10)) {
        chars.next();
        value = Some(value.unwrap_or(0).saturating_mul(10).saturating_add(d as usize));
    }
    value
}

fn compile(format: &str) -> Result<Vec<Part>, EvalError> {
    let mut parts = vec![];
    let mut text = String::new();
    let (mut next, mut last) = (0, None);
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            text.push(c);
            continue;
        }
        let mut spec = Spec::default();
        // An argument's number is digits and `$`; digits without it are a width.
        let mut ahead = chars.clone();
        let mut explicit = number(&mut ahead).filter(|_| ahead.next_if_eq(&'$').is_some());
        if explicit.is_some() {
            chars = ahead;
        } else if chars.next_if_eq(&'<').is_some() {
            explicit = Some(last.map(|l: usize| l + 1).ok_or_else(|| refused(format, "`%<` has nothing before it"))?);
        }
        while let Some(flag) = chars.next_if(|c| "-+ 0,(#".contains(*c)) {
            match flag {
                '-' => spec.left = true,
                '+' => spec.plus = true,
                ' ' => spec.blank = true,
                '0' => spec.zero = true,
                ',' => spec.grouped = true,
                '(' => spec.brackets = true,
                _ => spec.alternate = true,
            }
        }
        spec.width = number(&mut chars);
        if chars.next_if_eq(&'.').is_some() {
            spec.precision = Some(number(&mut chars).ok_or_else(|| refused(format, "a precision has no digits"))?);
        }
        if spec.width.unwrap_or(0).max(spec.precision.unwrap_or(0)) > WIDEST {
            return Err(refused(format, "a width or precision is too large"));
        }
        let conversion = chars.next().ok_or_else(|| refused(format, "it ends inside of a conversion"))?;
        spec.upper = conversion.is_ascii_uppercase();
        spec.conversion = conversion.to_ascii_lowercase();
        if (spec.left || spec.zero) && spec.width.is_none() {
            return Err(refused(format, format!("a flag of `%{conversion}` needs a width")));
        }
        match conversion {
            '%' => {
                let width = spec.width.unwrap_or(1);
                let blanks = " ".repeat(width.saturating_sub(1));
                text.push_str(&if spec.left { format!("%{blanks}") } else { format!("{blanks}%") });
            }
            'n' => text.push('\n'),
            's' | 'S' | 'd' | 'f' | 'e' | 'E' | 'g' | 'G' | 'x' | 'X' | 'o' | 'c' | 'C' | 'b' | 'B' => {
                spec.arg = match explicit {
                    Some(0) => return Err(refused(format, "arguments are counted from 1")),
                    Some(n) => n - 1,
                    None => {
                        next += 1;
                        next - 1
                    }
                };
                last = Some(spec.arg);
                if !text.is_empty() {
                    parts.push(Part::Text(std::mem::take(&mut text)));
                }
                parts.push(Part::Value(spec));
            }
            other => return Err(refused(format, format!("there is no conversion `%{other}`"))),
        }
    }
    if !text.is_empty() {
        parts.push(Part::Text(text));
    }
    Ok(parts)
}

/// The argument's value as what conversions tell apart.
enum Value {
    Null,
    Boolean(bool),
    /// With the width of its type, for `%x` of negative numbers.
    Integer(i64, u32),
    Float(f64),
    Other,
}

fn value_of(array: &dyn Array, row: usize) -> Value {
    if array.is_null(row) || array.data_type() == &ArrowType::Null {
        return Value::Null;
    }
    match array.data_type() {
        ArrowType::Boolean => Value::Boolean(array.as_boolean().value(row)),
        ArrowType::Int8 => Value::Integer(array.as_primitive::<dt::Int8Type>().value(row).into(), 8),
        ArrowType::Int16 => Value::Integer(array.as_primitive::<dt::Int16Type>().value(row).into(), 16),
        ArrowType::Int32 => Value::Integer(array.as_primitive::<dt::Int32Type>().value(row).into(), 32),
        ArrowType::Int64 => Value::Integer(array.as_primitive::<dt::Int64Type>().value(row), 64),
        ArrowType::Float32 => Value::Float(array.as_primitive::<dt::Float32Type>().value(row).into()),
        ArrowType::Float64 => Value::Float(array.as_primitive::<dt::Float64Type>().value(row)),
        _ => Value::Other,
    }
}

fn format_string(c: &Call<'_>) -> EvalResult {
    let format = c.str(0);
    let cells: Vec<CellFormatter<'_>> =
        (1..c.len()).map(|i| CellFormatter::for_type(c.raw(i).as_ref(), c.types[i], c.ctx.time_zone.clone())).collect();
    let mut last: Option<(&str, Vec<Part>)> = None;
    let mut piece = String::new();
    c.strings(|row, out| {
        let Some(format) = format.opt(row) else { return Ok(false) };
        if !matches!(&last, Some((f, _)) if *f == format) {
            last = Some((format, compile(format)?));
        }
        let Some((_, parts)) = &last else { return Err(EvalError::internal("a format was just compiled")) };
        for part in parts {
            let spec = match part {
                Part::Text(text) => {
                    out.push_str(text);
                    continue;
                }
                Part::Value(spec) => spec,
            };
            if spec.arg >= cells.len() {
                return Err(refused(format, format!("it has no argument {}", spec.arg + 1)));
            }
            let at = if c.is_constant(spec.arg + 1) { 0 } else { row };
            let value = value_of(c.raw(spec.arg + 1).as_ref(), at);
            piece.clear();
            // Spark shows a date or a time as the number that it is inside.
            let plain = |out: &mut String| match cells[spec.arg].array().data_type() {
                ArrowType::Date32 => {
                    out.push_str(&cells[spec.arg].array().as_primitive::<dt::Date32Type>().value(at).to_string());
                }
                ArrowType::Timestamp(..) => {
                    let array = cells[spec.arg].array().as_primitive::<dt::TimestampMicrosecondType>();
                    out.push_str(&array.value(at).to_string());
                }
                _ => cells[spec.arg].write(at, out),
            };
            write_value(spec, &value, plain, &mut piece).ok_or_else(|| {
                refused(format, format!("`%{}` does not take {}", spec.conversion, c.types[spec.arg + 1]))
            })?;
            if spec.upper {
                piece = piece.to_uppercase();
            }
            let missing = spec.width.unwrap_or(0).saturating_sub(piece.chars().count());
            if !spec.left {
                out.extend(std::iter::repeat_n(' ', missing));
            }
            out.push_str(&piece);
            if spec.left {
                out.extend(std::iter::repeat_n(' ', missing));
            }
        }
        Ok(true)
    })
}

/// Appends the value, without the blanks that bring it to its width; `None` if the conversion does not take it.
fn write_value(spec: &Spec, value: &Value, text: impl Fn(&mut String), out: &mut String) -> Option<()> {
    match (spec.conversion, value) {
        ('b', Value::Null) => out.push_str("false"),
        ('b', Value::Boolean(v)) => out.push_str(if *v { "true" } else { "false" }),
        ('b', _) => out.push_str("true"),
        (_, Value::Null) => out.push_str("null"),
        ('s', _) => text(out),
        ('d', Value::Integer(v, _)) => {
            write_signed(spec, *v < 0, v.unsigned_abs().to_string(), out);
            return Some(());
        }
        ('x' | 'o', Value::Integer(v, bits)) => {
            let bits = *v as u64 & (u64::MAX >> (64 - bits));
            let hex = spec.conversion == 'x';
            let digits = if hex { format!("{bits:x}") } else { format!("{bits:o}") };
            let prefix = if !spec.alternate {
                ""
            } else if hex {
                "0x"
            } else {
                "0"
            };
            let missing = spec.width.filter(|_| spec.zero).unwrap_or(0).saturating_sub(prefix.len() + digits.len());
            out.push_str(prefix);
            out.extend(std::iter::repeat_n('0', missing));
            out.push_str(&digits);
            return Some(());
        }
        ('c', Value::Integer(v, _)) => out.push(u32::try_from(*v).ok().and_then(char::from_u32)?),
        ('f' | 'e' | 'g', Value::Float(v)) if v.is_nan() => {
            out.push_str("NaN");
            return Some(());
        }
        ('f' | 'e' | 'g', Value::Float(v)) => {
            let precision = spec.precision.unwrap_or(6);
            let digits = if v.is_infinite() {
                "Infinity".to_owned()
            } else {
                match spec.conversion {
                    'f' => fixed_point(v.abs(), precision),
                    'e' => exponent_form(v.abs(), precision),
                    _ => general_form(v.abs(), precision.max(1)),
                }
            };
            write_signed(spec, v.is_sign_negative(), digits, out);
            return Some(());
        }
        _ => return None,
    }
    // For texts the precision is the most characters to write.
    if let Some(most) = spec.precision {
        let end = out.char_indices().nth(most).map_or(out.len(), |(i, _)| i);
        out.truncate(end);
    }
    Some(())
}

/// Appends digits with their sign, separators and zeros as the flags say.
fn write_signed(spec: &Spec, negative: bool, digits: String, out: &mut String) {
    let digits = if spec.grouped { group_digits(&digits) } else { digits };
    let (before, behind) = match negative {
        true if spec.brackets => ("(", ")"),
        true => ("-", ""),
        false if spec.plus => ("+", ""),
        false if spec.blank => (" ", ""),
        false => ("", ""),
    };
    let is_number = digits.starts_with(|c: char| c.is_ascii_digit());
    let width = spec.width.filter(|_| spec.zero && is_number).unwrap_or(0);
    out.push_str(before);
    out.extend(std::iter::repeat_n('0', width.saturating_sub(before.len() + digits.len() + behind.len())));
    out.push_str(&digits);
    out.push_str(behind);
}

/// The digits with a comma after every third before the point.
pub(super) fn group_digits(digits: &str) -> String {
    let (whole, fraction) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out.push_str(fraction);
    out
}

/// The shortest digits that read back as `v`, and the power of ten of the first.
fn shortest(v: f64) -> (Vec<u8>, i32) {
    let text = format!("{v:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).map(|b| b - b'0').collect();
    (digits, exponent.parse().unwrap_or(0))
}

/// Rounds digits half up to that many; whether a digit was added in front.
fn round_half_up(digits: &mut Vec<u8>, keep: usize) -> bool {
    if digits.len() <= keep {
        return false;
    }
    let up = digits[keep] >= 5;
    digits.truncate(keep);
    if !up {
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

/// Java rounds the shortest decimal form, half up.
fn fixed_point(v: f64, precision: usize) -> String {
    let (mut digits, mut power) = shortest(v);
    // Zeros in front so that the first digit stands before the point.
    while power < 0 {
        digits.insert(0, 0);
        power += 1;
    }
    let whole = power as usize + 1;
    let longer = round_half_up(&mut digits, whole + precision);
    let whole = whole + usize::from(longer);
    digits.resize(whole + precision, 0);
    let mut out: String = digits[..whole].iter().map(|d| char::from(b'0' + d)).collect();
    if precision > 0 {
        out.push('.');
        out.extend(digits[whole..].iter().map(|d| char::from(b'0' + d)));
    }
    out
}

fn exponent_form(v: f64, precision: usize) -> String {
    let (mut digits, mut power) = shortest(v);
    if round_half_up(&mut digits, precision + 1) {
        power += 1;
    }
    digits.resize(precision + 1, 0);
    let mut out = String::new();
    out.push(char::from(b'0' + digits[0]));
    if precision > 0 {
        out.push('.');
        out.extend(digits[1..].iter().map(|d| char::from(b'0' + d)));
    }
    out.push_str(&format!("e{}{:02}", if power < 0 { '-' } else { '+' }, power.abs()));
    out
}

/// `%g`: fixed point from 10^-4 up to 10^precision, else with an exponent; `precision` digits in all.
fn general_form(v: f64, precision: usize) -> String {
    let (mut digits, mut power) = shortest(v);
    if round_half_up(&mut digits, precision) {
        power += 1;
    }
    if v == 0.0 || (-4..precision as i32).contains(&power) {
        fixed_point(v, (precision as i32 - 1 - if v == 0.0 { 0 } else { power }).max(0) as usize)
    } else {
        exponent_form(v, precision - 1)
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::*;

    fn format(f: &str, args: &[Arg]) -> String {
        eval("format_string", &[&[str(f)], args].concat())
    }

    #[test]
    fn conversions() {
        let args = [int(3), str("ok"), double(2.345), str("ab"), int(42), int(255)];
        assert_eq!(format("%d items, %s, %5.2f|%-5s|%05d|%x", &args), "3 items, ok,  2.35|ab   |00042|ff");
        assert_eq!(format("%s and %s", &[str("a"), null()]), "a and null");
        assert_eq!(format("100%%", &[]), "100%");
        assert_eq!(format("%2$s %1$s", &[str("w"), str("h")]), "h w");
        assert_eq!(format("%s %<s", &[str("w")]), "w w");
        assert_eq!(format("%.3s|%10s|%-10s|", &[str("abcdef"), str("x"), str("y")]), "abc|         x|y         |");
        assert_eq!(format("%S %b %B", &[str("abc"), null(), boolean(true)]), "ABC false TRUE");
        assert_eq!(format("%s", &[decimal("1.50")]), "1.50");
        assert_eq!(format("%d", &[null()]), "null");
        assert_eq!(eval("format_string", &[null_of(ssql_ir::DataType::String), int(1)]), "NULL");
    }

    #[test]
    fn numbers() {
        assert_eq!(format("%,d", &[int(1_234_567)]), "1,234,567");
        assert_eq!(
            format("%+d|% d|%(d|%,.2f", &[int(5), int(5), int(-5), double(1234567.891)]),
            "+5| 5|(5)|1,234,567.89"
        );
        assert_eq!(format("%x %X %o %c", &[int(-1), int(255), int(8), int(65)]), "ffffffff FF 10 A");
        assert_eq!(format("%e %E", &[double(12345.678), double(12345.678)]), "1.234568e+04 1.234568E+04");
        assert_eq!(format("%g %g", &[double(123456.789), double(0.00012345)]), "123457 0.000123450");
        assert_eq!(format("%.2f %.1f %08.2f", &[double(0.125), double(0.25), double(2.71)]), "0.13 0.3 00002.71");
        assert_eq!(format("%.0f %.1f %f", &[double(0.5), double(99.96), double(-0.0)]), "1 100.0 -0.000000");
        assert_eq!(format("%f %5.1f", &[double(f64::INFINITY), double(f64::NAN)]), "Infinity   NaN");
    }

    #[test]
    fn refusals() {
        for (f, arg) in
            [("%d", str("x")), ("%f", int(1)), ("%q", int(1)), ("%s %s", int(1)), ("%", int(1)), ("%-d", int(1))]
        {
            assert_eq!(format(f, &[arg]), "!INVALID_PARAMETER_VALUE.STRING_FORMAT", "{f}");
        }
    }
}
