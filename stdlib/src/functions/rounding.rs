//! `round`, `bround`, `floor`, `ceil`, to any number of digits before or behind the point.
//!
//! Floats are rounded by the digits that they print with, as Spark does: `round(1.005D, 2)` is 1.01.

use arrow::datatypes::{
    ArrowPrimitiveType, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
};
use ssql_ir::{DataType as T, Literal};

use super::decimal::{power_of_ten, print};
use crate::aggregate::basic::decimal_limit;
use crate::call::{Call, EvalResult};
use crate::coercion::{bounded_decimal, decimal_for};
use crate::error::{EvalError, ResolveError};
use crate::function::{FunctionDef, Param, scalar_with};
use crate::resolve::{TypeCall, Typed};

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[
    scalar_with("round", round_type, |c| round(c, Mode::HalfUp)).doc(
        "The number rounded to `digits` behind the point (before it if negative), halves away from zero.",
        "round(x[, digits])",
        "round(2.5)",
    ),
    scalar_with("bround", round_type, |c| round(c, Mode::HalfEven)).doc(
        "The number rounded to `digits` behind the point, halves to the even digit.",
        "bround(x[, digits])",
        "bround(2.5)",
    ),
    scalar_with("floor", whole_type, |c| round(c, Mode::Floor)).doc(
        "The largest number of `digits` behind the point that is not larger.",
        "floor(x[, digits])",
        "floor(-5.55)",
    ),
    scalar_with("ceil", whole_type, |c| round(c, Mode::Ceiling)).aliases(&["ceiling"]).doc(
        "The smallest number of `digits` behind the point that is not smaller.",
        "ceil(x[, digits])",
        "ceil(5.55)",
    ),
];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Mode {
    HalfUp,
    HalfEven,
    Floor,
    Ceiling,
}

impl Mode {
    /// `n / d` as a whole number; `d` is positive.
    fn divide(self, n: i128, d: i128) -> i128 {
        let (floor, rest) = (n.div_euclid(d), n.rem_euclid(d));
        let up = match self {
            Mode::Floor => false,
            Mode::Ceiling => rest > 0,
            // The upper neighbour is the one away from zero for positive numbers only.
            Mode::HalfUp => rest > d - rest || (rest == d - rest && n > 0),
            Mode::HalfEven => rest > d - rest || (rest == d - rest && floor % 2 != 0),
        };
        floor + i128::from(up)
    }
}

/// The number of digits, which must be a constant.
fn digits(c: &TypeCall<'_>) -> Result<i32, ResolveError> {
    c.coerce(1, Param::Int)?;
    match (c.literal(1), c.ty(1)) {
        (Some(Literal::Int(v)), t) if t.is_integer() => Ok((*v).clamp(-1000, 1000) as i32),
        (Some(Literal::Float(v)), _) => Ok(v.clamp(-1000.0, 1000.0) as i32),
        (Some(Literal::Decimal(v)), T::Decimal(_, s)) => Ok((v / 10i128.pow((*s).into())).clamp(-1000, 1000) as i32),
        (None, T::Null) => Ok(0),
        _ if c.args[1].literal == Some(Literal::Null) => Ok(0),
        (Some(_), _) => Err(c.mismatch(1, "INT")),
        (None, _) => Err(ResolveError::new(
            "DATATYPE_MISMATCH.NON_FOLDABLE_INPUT",
            format!("The number of digits of `{}` must be a constant.", c.name),
        )
        .at_arg(1)),
    }
}

/// Rounding may need one more digit before the point.
fn rounded_decimal(p: u8, s: u8, digits: i32) -> T {
    let whole = i32::from(p - s) + 1;
    if digits < 0 {
        bounded_decimal(whole.max(1 - digits), 0)
    } else {
        let scale = digits.min(s.into());
        bounded_decimal(whole + scale, scale)
    }
}

fn round_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(1, 2)?;
    let digits = if c.len() == 2 { digits(c)? } else { 0 };
    let value = match c.ty(0) {
        T::String | T::Null => T::Float64,
        t if t.is_numeric() => t.clone(),
        _ => return Err(c.mismatch(0, "NUMERIC")),
    };
    let result = match value {
        T::Decimal(p, s) => rounded_decimal(p, s, digits),
        ref t => t.clone(),
    };
    let mut types = vec![value];
    types.extend((c.len() == 2).then_some(T::Int32));
    Ok(Typed::new(types, result))
}

/// Without digits: BIGINT, or a DECIMAL of whole numbers. With digits all is DECIMAL.
fn whole_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(1, 2)?;
    if c.len() == 2 {
        let digits = digits(c)?;
        let (p, s) = match c.ty(0) {
            T::String | T::Null => (38, 18),
            t => decimal_for(t).ok_or_else(|| c.mismatch(0, "NUMERIC"))?,
        };
        return Ok(Typed::new(vec![T::Decimal(p, s), T::Int32], rounded_decimal(p, s, digits)));
    }
    let (value, result) = match c.ty(0) {
        T::Decimal(p, 0) => (T::Decimal(*p, 0), T::Decimal(*p, 0)),
        T::Decimal(p, s) => (c.ty(0).clone(), bounded_decimal(i32::from(p - s) + 1, 0)),
        t if t.is_integer() => (T::Int64, T::Int64),
        T::String | T::Null => (T::Float64, T::Int64),
        t if t.is_float() => (T::Float64, T::Int64),
        _ => return Err(c.mismatch(0, "NUMERIC")),
    };
    Ok(Typed::new(vec![value], result))
}

fn overflow(c: &Call<'_>) -> EvalError {
    EvalError::new("ARITHMETIC_OVERFLOW", format!("`{}` does not fit {}.", c.name, c.data_type))
}

fn integers<P: ArrowPrimitiveType>(c: &Call<'_>, digits: i32, mode: Mode) -> EvalResult
where
    P::Native: Into<i64> + TryFrom<i128>,
{
    let x = c.fixed::<P>(0);
    if digits >= 0 {
        return c.primitive_all::<P>(|r| x.get(r));
    }
    // No integer has more than 19 digits.
    let unit = power_of_ten(digits.unsigned_abs().min(20));
    c.primitive::<P>(|r| {
        let v: i64 = x.get(r).into();
        let rounded = mode.divide(v.into(), unit) * unit;
        P::Native::try_from(rounded).map(Some).map_err(|_| overflow(c))
    })
}

fn decimals(c: &Call<'_>, from: u8, digits: i32, mode: Mode) -> EvalResult {
    let T::Decimal(precision, scale) = *c.data_type else {
        return Err(EvalError::internal("a rounded DECIMAL is one"));
    };
    let x = c.decimal(0);
    let limit = decimal_limit(precision);
    // What is cut off, and what a negative number of digits puts back as zeros.
    let cut = i32::from(from) - digits.min(from.into());
    let zeros = (i32::from(scale) - digits.min(from.into())).max(0) as u32;
    c.primitive::<Decimal128Type>(|r| {
        let v = x.get(r);
        let rounded = if cut <= 38 {
            mode.divide(v, power_of_ten(cut as u32))
        } else {
            match mode {
                Mode::Floor if v < 0 => -1,
                Mode::Ceiling if v > 0 => 1,
                _ => 0,
            }
        };
        let value = if zeros == 0 || rounded == 0 {
            Some(rounded)
        } else if zeros <= 38 {
            rounded.checked_mul(power_of_ten(zeros))
        } else {
            None
        };
        match value.filter(|v| v.abs() <= limit) {
            Some(v) => Ok(Some(v)),
            None => Err(EvalError::decimal_range(&print(v, from), precision, scale)),
        }
    })
}

/// Rounds by the digits of a printed float; `None`: it has no digits to cut off.
fn printed(text: &str, digits: i32, mode: Mode) -> Option<String> {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let fraction = fraction.trim_end_matches('0');
    let unscaled: i128 = format!("{whole}{fraction}").parse().ok()?;
    let exponent = exponent.parse::<i32>().ok()? - fraction.len() as i32;
    let cut = -exponent - digits;
    if cut <= 0 {
        return None;
    }
    let rounded = if cut > 38 { 0 } else { mode.divide(unscaled, power_of_ten(cut as u32)) };
    Some(format!("{rounded}e{}", -digits))
}

fn round(c: &Call<'_>, mode: Mode) -> EvalResult {
    let digits = if c.len() == 2 { c.i32(1).get(0) } else { 0 };
    match c.types[0] {
        T::Int8 => integers::<Int8Type>(c, digits, mode),
        T::Int16 => integers::<Int16Type>(c, digits, mode),
        T::Int32 => integers::<Int32Type>(c, digits, mode),
        T::Int64 => integers::<Int64Type>(c, digits, mode),
        T::Decimal(_, s) => decimals(c, *s, digits, mode),
        T::Float64 if *c.data_type == T::Int64 => {
            let x = c.f64(0);
            c.primitive::<Int64Type>(|r| {
                let v = if mode == Mode::Floor { x.get(r).floor() } else { x.get(r).ceil() };
                // NaN is 0, as in Java.
                if v.is_nan() {
                    return Ok(Some(0));
                }
                let fits = v >= i64::MIN as f64 && v < i64::MAX as f64;
                if fits { Ok(Some(v as i64)) } else { Err(overflow(c)) }
            })
        }
        // To a whole number the digits that a float prints with round as its value does: a half is exact in both.
        T::Float32 if digits == 0 && mode == Mode::HalfUp => {
            let x = c.f32(0);
            c.primitive_all::<Float32Type>(|r| x.get(r).round() + 0.0)
        }
        T::Float64 if digits == 0 && mode == Mode::HalfUp => {
            let x = c.f64(0);
            c.primitive_all::<Float64Type>(|r| x.get(r).round() + 0.0)
        }
        T::Float64 if digits == 0 && mode == Mode::HalfEven => {
            let x = c.f64(0);
            c.primitive_all::<Float64Type>(|r| x.get(r).round_ties_even() + 0.0)
        }
        T::Float32 => {
            let (x, mut buffer) = (c.f32(0), ryu::Buffer::new());
            c.primitive_all::<Float32Type>(|r| {
                let v = x.get(r);
                if !v.is_finite() {
                    return v;
                }
                // There is no negative zero among decimal digits.
                printed(buffer.format_finite(v), digits, mode).and_then(|t| t.parse().ok()).unwrap_or(v) + 0.0
            })
        }
        T::Float64 => {
            let (x, mut buffer) = (c.f64(0), ryu::Buffer::new());
            c.primitive_all::<Float64Type>(|r| {
                let v = x.get(r);
                if !v.is_finite() {
                    return v;
                }
                printed(buffer.format_finite(v), digits, mode).and_then(|t| t.parse().ok()).unwrap_or(v) + 0.0
            })
        }
        t => Err(EvalError::internal(format!("`{}` of {t}", c.name))),
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{bigint, decimal, decimal_of, double, eval, float, int, null, str, tinyint, type_of};

    /// The quick way to whole numbers agrees with the way by printed digits.
    #[test]
    fn whole_numbers_round_by_value() {
        use super::{Mode, printed};
        let by_digits = |v: f64, mode| {
            let text = ryu::Buffer::new().format_finite(v).to_owned();
            printed(&text, 0, mode).and_then(|t| t.parse::<f64>().ok()).unwrap_or(v) + 0.0
        };
        let mut seed = 7u64;
        for i in 0..20_000 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let v = match i % 4 {
                0 => f64::from_bits(seed),
                1 => (seed >> 44) as f64 / 2.0 - 1e5,
                2 => f64::from_bits(((seed >> 40) as f64 + 0.5).to_bits() - 1 + (seed & 1) * 2),
                _ => -((seed >> 12) as f64) / 2.0,
            };
            if v.is_finite() {
                assert_eq!((v.round() + 0.0).to_bits(), by_digits(v, Mode::HalfUp).to_bits(), "{v:?}");
                assert_eq!((v.round_ties_even() + 0.0).to_bits(), by_digits(v, Mode::HalfEven).to_bits(), "{v:?}");
            }
        }
    }

    #[test]
    fn halves() {
        assert_eq!(eval("round", &[decimal("2.5")]), "3");
        assert_eq!(eval("round", &[decimal("-2.5")]), "-3");
        assert_eq!(eval("bround", &[decimal("2.5")]), "2");
        assert_eq!(eval("bround", &[double(2.5)]), "2.0");
        assert_eq!(eval("bround", &[int(25), int(-1)]), "20");
        assert_eq!(eval("bround", &[int(35), int(-1)]), "40");
        assert_eq!(eval("round", &[double(2.675), int(2)]), "2.68");
        assert_eq!(eval("round", &[double(1.005), int(2)]), "1.01");
        assert_eq!(eval("bround", &[double(1.005), int(2)]), "1.0");
        assert_eq!(eval("round", &[double(-0.4)]), "0.0");
        assert_eq!(eval("round", &[double(1e300), int(2)]), "1.0E300");
        assert_eq!(eval("round", &[double(12345.678), int(-2)]), "12300.0");
        assert_eq!(eval("round", &[float(123.456), int(1)]), "123.5");
        assert_eq!(eval("round", &[double(f64::NAN), int(2)]), "NaN");
        assert_eq!(eval("round", &[double(f64::INFINITY)]), "Infinity");
        assert_eq!(eval("round", &[str("2.567"), int(2)]), "2.57");
        assert_eq!(eval("round", &[null()]), "NULL");
    }

    #[test]
    fn integers_and_decimals() {
        assert_eq!(eval("round", &[int(12345), int(-3)]), "12000");
        assert_eq!(eval("round", &[int(25), int(-5)]), "0");
        assert_eq!(eval("round", &[int(25), int(3)]), "25");
        assert_eq!(eval("round", &[int(i32::MAX), int(-1)]), "!ARITHMETIC_OVERFLOW");
        assert_eq!(eval("round", &[tinyint(127), int(-1)]), "!ARITHMETIC_OVERFLOW");
        assert_eq!(eval("round", &[bigint(i64::MAX), int(-1)]), "!ARITHMETIC_OVERFLOW");
        assert_eq!(eval("round", &[decimal("5.55"), int(1)]), "5.6");
        assert_eq!(eval("round", &[decimal("5.55"), int(5)]), "5.55");
        assert_eq!(eval("round", &[decimal("5.55"), int(-1)]), "10");
        assert_eq!(eval("round", &[decimal("5.55"), int(-3)]), "0");
        assert_eq!(eval("round", &[decimal("99.9"), int(0)]), "100");
        assert_eq!(type_of("round", &[decimal("5.55"), int(1)]), "DECIMAL(3,1)");
        assert_eq!(type_of("round", &[decimal("5.55"), int(-1)]), "DECIMAL(2,0)");
        assert_eq!(type_of("round", &[decimal("5.55"), int(-3)]), "DECIMAL(4,0)");
        assert_eq!(
            eval("round", &[decimal_of("99999999999999999999999999999999999999", 38, 0), int(-1)]),
            "!NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION"
        );
    }

    #[test]
    fn floor_and_ceiling() {
        assert_eq!(eval("floor", &[decimal("-5.55")]), "-6");
        assert_eq!(eval("floor", &[decimal("5.55"), int(1)]), "5.5");
        assert_eq!(eval("floor", &[decimal("-5.55"), int(1)]), "-5.6");
        assert_eq!(eval("ceil", &[decimal("5.55"), int(1)]), "5.6");
        assert_eq!(eval("floor", &[double(5.55), int(1)]), "5.5");
        assert_eq!(eval("floor", &[int(25), int(-1)]), "20");
        assert_eq!(eval("ceiling", &[int(21), int(-1)]), "30");
        assert_eq!(eval("floor", &[double(f64::NAN)]), "0");
        assert_eq!(eval("floor", &[double(1e30)]), "!ARITHMETIC_OVERFLOW");
        assert_eq!(eval("floor", &[str("2.5")]), "2");
        assert_eq!(type_of("floor", &[int(5)]), "BIGINT");
        assert_eq!(type_of("floor", &[decimal("5.55")]), "DECIMAL(2,0)");
        assert_eq!(type_of("floor", &[decimal_of("5", 38, 2)]), "DECIMAL(37,0)");
        assert_eq!(type_of("floor", &[double(5.0), int(1)]), "DECIMAL(17,1)");
        assert_eq!(type_of("floor", &[float(5.0), int(1)]), "DECIMAL(9,1)");
        assert_eq!(type_of("floor", &[str("5"), int(1)]), "DECIMAL(22,1)");
        assert_eq!(type_of("floor", &[int(25), int(-1)]), "DECIMAL(11,0)");
    }
}
