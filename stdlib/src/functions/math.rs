//! Functions of DOUBLE: roots, powers, logarithms, trigonometry; and `factorial`, `width_bucket`, `conv`, `bin`.
//!
//! Results are Java's (`fdlibm`); of the trigonometric functions those of the platform's mathematical library, which
//! differ at most in the last digit. Where a logarithm is not defined it is NULL, as in Spark.

use arrow::datatypes::{Float32Type, Float64Type, Int64Type};
use ssql_ir::DataType as T;

use super::fdlibm;
use crate::call::{Call, EvalResult, zip_with};
use crate::error::{EvalError, ResolveError};
use crate::function::{EvalFn, FunctionDef, NullRule, Param, Ret, scalar, scalar_with};
use crate::resolve::{TypeCall, Typed};

const fn unary(name: &'static str, eval: EvalFn) -> FunctionDef {
    scalar(name, &[Param::Double], Ret::Double, eval)
}

const fn binary(name: &'static str, eval: EvalFn) -> FunctionDef {
    scalar(name, &[Param::Double, Param::Double], Ret::Double, eval)
}

/// A function that is NULL for some values.
const fn partial(name: &'static str, eval: EvalFn) -> FunctionDef {
    unary(name, eval).nulls(NullRule::StrictNullable)
}

const fn constant(name: &'static str, eval: EvalFn) -> FunctionDef {
    scalar(name, &[], Ret::Double, eval)
}

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[
    unary("sqrt", |c| map(c, f64::sqrt)).doc("Square root; NaN for negative numbers.", "sqrt(x)", "sqrt(4)"),
    unary("cbrt", |c| map(c, fdlibm::cbrt)).doc("Cube root.", "cbrt(x)", "cbrt(27)"),
    unary("exp", |c| map(c, fdlibm::exp)).doc("e to the power of x.", "exp(x)", "exp(0)"),
    unary("expm1", |c| map(c, f64::exp_m1)).doc("exp(x) - 1, exact near 0.", "expm1(x)", "expm1(0)"),
    binary("pow", |c| map2(c, power)).aliases(&["power"]).doc("x to the power of y.", "pow(x, y)", "pow(2, 10)"),
    partial("ln", |c| logarithm(c, 0.0, fdlibm::log)).doc("Natural logarithm; NULL up to 0.", "ln(x)", "ln(1)"),
    partial("log10", |c| logarithm(c, 0.0, fdlibm::log10)).doc("Logarithm to base 10; NULL up to 0.", "log10(x)", "log10(1000)"),
    partial("log2", |c| logarithm(c, 0.0, |x| fdlibm::log(x) / fdlibm::log(2.0))).doc(
        "Logarithm to base 2; NULL up to 0.",
        "log2(x)",
        "log2(8)",
    ),
    partial("log1p", |c| logarithm(c, -1.0, f64::ln_1p)).doc(
        "ln(1 + x), exact near 0; NULL up to -1.",
        "log1p(x)",
        "log1p(0)",
    ),
    scalar("log", &[Param::Double, Param::Double], Ret::Double, log).optional(1).nulls(NullRule::StrictNullable).doc(
        "Logarithm of x to a base, natural without one; NULL where it is not defined.",
        "log([base, ]x)",
        "log(2, 8)",
    ),
    unary("sin", |c| map(c, f64::sin)).doc("Sine.", "sin(x)", "sin(0)"),
    unary("cos", |c| map(c, f64::cos)).doc("Cosine.", "cos(x)", "cos(0)"),
    unary("tan", |c| map(c, f64::tan)).doc("Tangent.", "tan(x)", "tan(0)"),
    unary("cot", |c| map(c, |x| 1.0 / x.tan())).doc("Cotangent.", "cot(x)", "cot(1)"),
    unary("sec", |c| map(c, |x| 1.0 / x.cos())).doc("Secant.", "sec(x)", "sec(0)"),
    unary("csc", |c| map(c, |x| 1.0 / x.sin())).doc("Cosecant.", "csc(x)", "csc(1)"),
    unary("asin", |c| map(c, libm::asin)).doc("Arc sine; NaN outside of -1 to 1.", "asin(x)", "asin(0)"),
    unary("acos", |c| map(c, libm::acos)).doc("Arc cosine; NaN outside of -1 to 1.", "acos(x)", "acos(1)"),
    unary("atan", |c| map(c, libm::atan)).doc("Arc tangent.", "atan(x)", "atan(0)"),
    binary("atan2", |c| map2(c, |y, x| libm::atan2(y + 0.0, x + 0.0))).doc(
        "Angle of the point (x, y).",
        "atan2(y, x)",
        "atan2(0, 1)",
    ),
    unary("sinh", |c| map(c, f64::sinh)).doc("Hyperbolic sine.", "sinh(x)", "sinh(0)"),
    unary("cosh", |c| map(c, fdlibm::cosh)).doc("Hyperbolic cosine.", "cosh(x)", "cosh(0)"),
    unary("tanh", |c| map(c, f64::tanh)).doc("Hyperbolic tangent.", "tanh(x)", "tanh(0)"),
    unary("asinh", |c| map(c, f64::asinh)).doc(
        "Inverse hyperbolic sine.",
        "asinh(x)",
        "asinh(0)",
    ),
    unary("acosh", |c| map(c, |x| fdlibm::log(x + (x * x - 1.0).sqrt()))).doc("Inverse hyperbolic cosine.", "acosh(x)", "acosh(1)"),
    unary("atanh", |c| map(c, |x| 0.5 * (x.ln_1p() - (-x).ln_1p()))).doc("Inverse hyperbolic tangent.", "atanh(x)", "atanh(0)"),
    unary("degrees", |c| map(c, |x| x * 57.295_779_513_082_32)).doc("Radians as degrees.", "degrees(x)", "degrees(pi())"),
    unary("radians", |c| map(c, |x| x * 0.017_453_292_519_943_295)).doc("Degrees as radians.", "radians(x)", "radians(180)"),
    unary("rint", |c| map(c, f64::round_ties_even)).doc("Nearest whole number, halves to the even one.", "rint(x)", "rint(2.5)"),
    binary("hypot", |c| map2(c, libm::hypot)).doc("Length of the hypotenuse.", "hypot(a, b)", "hypot(3, 4)"),
    scalar("sign", &[Param::OneOf(&[Param::Double, Param::DayTime, Param::YearMonth])], Ret::Double, sign)
        .aliases(&["signum"])
        .doc("-1.0, 0.0 or 1.0 as the number or interval is negative, zero or positive.", "sign(x)", "sign(-5)"),
    constant("e", |c| c.primitive_all::<Float64Type>(|_| std::f64::consts::E)).doc("Euler's number.", "e()", "e()"),
    constant("pi", |c| c.primitive_all::<Float64Type>(|_| std::f64::consts::PI)).doc("Pi.", "pi()", "pi()"),
    scalar("factorial", &[Param::Int], Ret::BigInt, |c| {
        let n = c.i32(0);
        c.primitive::<Int64Type>(|r| Ok((0..=20).contains(&n.get(r)).then(|| (1..=i64::from(n.get(r))).product())))
    })
    .nulls(NullRule::StrictNullable)
    .doc("Factorial of 0 to 20, NULL for others.", "factorial(n)", "factorial(5)"),
    scalar_with("width_bucket", bucket_type, width_bucket).nulls(NullRule::StrictNullable).doc(
        "Number of the bucket, of `n` equal ones from `min` to `max`, that a value falls into; 0 below and n + 1 above.",
        "width_bucket(value, min, max, n)",
        "width_bucket(5.3, 0.2, 10.6, 5)",
    ),
    scalar("conv", &[Param::String, Param::Int, Param::Int], Ret::String, conv).nulls(NullRule::StrictNullable).doc(
        "A number's digits in another base (2 to 36); signed if the base is negative.",
        "conv(digits, from, to)",
        "conv('ff', 16, 10)",
    ),
    scalar("bin", &[Param::BigInt], Ret::String, |c| {
        let n = c.i64(0);
        c.strings(|r, out| {
            out.push_str(&format!("{:b}", n.get(r)));
            Ok(true)
        })
    })
    .doc("Binary digits of a number, 64 of a negative one.", "bin(n)", "bin(13)"),
    scalar_with("nanvl", nanvl_type, nanvl).nulls(NullRule::Any).doc(
        "The first number, or the second where the first is NaN.",
        "nanvl(a, b)",
        "nanvl(CAST('NaN' AS DOUBLE), 5)",
    ),
];

fn map(c: &Call<'_>, f: fn(f64) -> f64) -> EvalResult {
    let x = c.f64(0);
    c.primitive_all::<Float64Type>(|r| f(x.get(r)))
}

fn map2(c: &Call<'_>, f: fn(f64, f64) -> f64) -> EvalResult {
    let values = zip_with(&c.f64(0), &c.f64(1), c.rows, f);
    c.primitive_all::<Float64Type>(|r| values[r])
}

/// As Java's: NaN wherever an operand is NaN, and for one to the power of infinity.
fn power(x: f64, y: f64) -> f64 {
    if y.is_nan() || (x.abs() == 1.0 && y.is_infinite()) { f64::NAN } else { fdlibm::pow(x, y) }
}

fn logarithm(c: &Call<'_>, above: f64, f: fn(f64) -> f64) -> EvalResult {
    let x = c.f64(0);
    c.primitive::<Float64Type>(|r| {
        let x = x.get(r);
        // NaN has a logarithm, NaN.
        Ok((x > above || x.is_nan()).then(|| f(x)))
    })
}

fn log(c: &Call<'_>) -> EvalResult {
    if c.len() == 1 {
        return logarithm(c, 0.0, fdlibm::log);
    }
    let (base, x) = (c.f64(0), c.f64(1));
    c.primitive::<Float64Type>(|r| {
        let (base, x) = (base.get(r), x.get(r));
        let defined = |v: f64| v > 0.0 || v.is_nan();
        Ok((defined(base) && defined(x)).then(|| fdlibm::log(x) / fdlibm::log(base)))
    })
}

fn sign(c: &Call<'_>) -> EvalResult {
    match c.types[0] {
        T::DayTimeInterval(..) => {
            let x = c.day_time(0);
            c.primitive_all::<Float64Type>(|r| x.get(r).signum() as f64)
        }
        T::YearMonthInterval(..) => {
            let x = c.year_month(0);
            c.primitive_all::<Float64Type>(|r| x.get(r).signum().into())
        }
        // Rust's signum of 0.0 is 1.0.
        _ => map(c, |x| if x == 0.0 { x } else { x.signum() }),
    }
}

fn bucket_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(4, 4)?;
    let value = match c.ty(0) {
        t @ (T::DayTimeInterval(..) | T::YearMonthInterval(..)) => t.clone(),
        _ => c.coerce(0, Param::Double)?,
    };
    for i in 1..3 {
        let fits = match &value {
            T::Float64 => c.coerce(i, Param::Double).is_ok(),
            interval => c.ty(i) == interval || *c.ty(i) == T::Null,
        };
        if !fits {
            return Err(c.mismatch(i, &value.to_string()));
        }
    }
    Ok(Typed::new(vec![value.clone(), value.clone(), value, c.coerce(3, Param::BigInt)?], T::Int64))
}

fn width_bucket(c: &Call<'_>) -> EvalResult {
    let n = c.i64(3);
    let value: Box<dyn Fn(usize, usize) -> f64> = match c.types[0] {
        T::DayTimeInterval(..) => Box::new(|i, r| c.day_time(i).get(r) as f64),
        T::YearMonthInterval(..) => Box::new(|i, r| c.year_month(i).get(r).into()),
        _ => Box::new(|i, r| c.f64(i).get(r)),
    };
    c.primitive::<Int64Type>(|r| {
        let (v, min, max, n) = (value(0, r), value(1, r), value(2, r), n.get(r));
        if n <= 0 || n == i64::MAX || v.is_nan() || min == max || !min.is_finite() || !max.is_finite() {
            return Ok(None);
        }
        let (below, above, from_start) =
            if min < max { (v < min, v >= max, v - min) } else { (v > min, v <= max, min - v) };
        Ok(Some(if below {
            0
        } else if above {
            n + 1
        } else {
            (n as f64 * from_start / (max - min).abs()) as i64 + 1
        }))
    })
}

fn conv(c: &Call<'_>) -> EvalResult {
    let (digits, from, to) = (c.str(0), c.i32(1), c.i32(2));
    c.strings(|r, out| {
        let (from, to) = (from.get(r), to.get(r));
        let text = digits.get(r).trim();
        if !(2..=36).contains(&from) || !(2..=36).contains(&to.unsigned_abs()) || text.is_empty() {
            return Ok(false);
        }
        let (mut negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let mut value = 0u64;
        for digit in text.chars().map_while(|d| d.to_digit(from.unsigned_abs())) {
            value = value
                .checked_mul(u64::from(from.unsigned_abs()))
                .and_then(|v| v.checked_add(digit.into()))
                .ok_or_else(|| {
                    EvalError::new("ARITHMETIC_OVERFLOW", "The number given to `conv` does not fit 64 bits.")
                })?;
        }
        let signed = value as i64;
        if negative && to > 0 {
            // A negative number is shown as its two's complement.
            value = if signed < 0 { u64::MAX } else { signed.wrapping_neg() as u64 };
        } else if to < 0 && signed < 0 {
            value = signed.wrapping_neg() as u64;
            negative = true;
        }
        if negative && to < 0 {
            out.push('-');
        }
        let base = u64::from(to.unsigned_abs());
        let mut reversed = vec![];
        loop {
            reversed.push(char::from_digit((value % base) as u32, 36).unwrap_or('0').to_ascii_uppercase());
            value /= base;
            if value == 0 {
                break;
            }
        }
        out.extend(reversed.into_iter().rev());
        Ok(true)
    })
}

fn nanvl_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, 2)?;
    let t = if *c.ty(0) == T::Float32 && matches!(c.ty(1), T::Float32 | T::Null) { T::Float32 } else { T::Float64 };
    for i in 0..2 {
        c.coerce(i, Param::Double)?;
    }
    Ok(Typed::new(vec![t.clone(), t.clone()], t).nullable(c.any_nullable()))
}

fn nanvl(c: &Call<'_>) -> EvalResult {
    if *c.data_type == T::Float32 {
        let (a, b) = (c.f32(0), c.f32(1));
        return c.primitive::<Float32Type>(|r| Ok(a.opt(r).and_then(|v| if v.is_nan() { b.opt(r) } else { Some(v) })));
    }
    let (a, b) = (c.f64(0), c.f64(1));
    c.primitive::<Float64Type>(|r| Ok(a.opt(r).and_then(|v| if v.is_nan() { b.opt(r) } else { Some(v) })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{bigint, decimal, double, eval, float, int, null, seconds, str, type_of};

    fn one(name: &str, x: f64) -> String {
        eval(name, &[double(x)])
    }

    #[test]
    fn edges() {
        assert_eq!(one("sqrt", -1.0), "NaN");
        for name in ["ln", "log10", "log2", "log"] {
            assert_eq!(one(name, 0.0), "NULL", "{name}");
        }
        assert_eq!(one("ln", f64::NAN), "NaN");
        assert_eq!(one("log1p", -1.0), "NULL");
        assert_eq!(eval("log", &[int(2), int(8)]), "3.0");
        assert_eq!(eval("log", &[int(0), int(2)]), "NULL");
        assert_eq!(eval("log", &[int(1), int(2)]), "Infinity");
        assert_eq!(eval("pow", &[int(0), int(0)]), "1.0");
        assert_eq!(eval("power", &[int(-8), double(1.0 / 3.0)]), "NaN");
        assert_eq!(eval("pow", &[int(1), double(f64::NAN)]), "NaN");
        assert_eq!(one("cbrt", -27.0), "-3.0");
        assert_eq!(one("asin", 2.0), "NaN");
        assert_eq!(one("atanh", 1.0), "Infinity");
        assert_eq!(one("cot", 0.0), "Infinity");
        assert_eq!(one("degrees", std::f64::consts::PI), "180.0");
        assert_eq!(one("rint", 2.5), "2.0");
        assert_eq!(one("rint", 3.5), "4.0");
        assert_eq!(one("rint", -0.4), "-0.0");
        assert_eq!(one("sign", f64::NAN), "NaN");
        assert_eq!(eval("signum", &[int(0)]), "0.0");
        assert_eq!(eval("sign", &[decimal("2.50")]), "1.0");
        assert_eq!(eval("sign", &[seconds(-1)]), "-1.0");
        assert_eq!(eval("sqrt", &[str("4")]), "2.0");
        assert_eq!(eval("sqrt", &[null()]), "NULL");
        assert_eq!(eval("hypot", &[int(3), int(4)]), "5.0");
    }

    #[test]
    fn digits_are_those_of_spark() {
        for (name, x, value) in [
            ("ln", 10.0, "2.302585092994046"),
            ("log2", 1000.0, "9.965784284662087"),
            ("log10", 1000.0, "3.0"),
            ("exp", 1.5, "4.4816890703380645"),
            ("sin", 1.0, "0.8414709848078965"),
            ("cos", 1.0, "0.5403023058681398"),
            ("tan", 1.0, "1.5574077246549023"),
            ("asinh", 1.0, "0.881373587019543"),
            ("acosh", 2.0, "1.3169578969248166"),
            ("atanh", 0.5, "0.5493061443340548"),
            ("degrees", 1.0, "57.29577951308232"),
            ("radians", 90.0, "1.5707963267948966"),
            ("sec", 1.0, "1.8508157176809255"),
            ("csc", 1.0, "1.1883951057781212"),
        ] {
            assert_eq!(one(name, x), value, "{name}");
        }
    }

    #[test]
    fn whole_numbers() {
        assert_eq!(eval("factorial", &[int(20)]), "2432902008176640000");
        assert_eq!(eval("factorial", &[int(21)]), "NULL");
        assert_eq!(eval("factorial", &[int(-1)]), "NULL");
        assert_eq!(eval("factorial", &[str("x")]), "!CAST_INVALID_INPUT");
        assert_eq!(eval("bin", &[bigint(13)]), "1101");
        assert_eq!(eval("bin", &[int(-13)]).len(), 64);
        let conv = |s: &str, from: i32, to: i32| eval("conv", &[str(s), int(from), int(to)]);
        assert_eq!(conv("100", 2, 10), "4");
        assert_eq!(conv("-10", 16, -10), "-16");
        assert_eq!(conv("-ff", 16, 10), "18446744073709551361");
        assert_eq!(conv("zz", 37, 10), "NULL");
        assert_eq!(conv("12x", 10, 16), "C");
        assert_eq!(conv("", 10, 16), "NULL");
        assert_eq!(conv("x", 10, 16), "0");
        assert_eq!(conv("18446744073709551616", 10, 16), "!ARITHMETIC_OVERFLOW");
        assert_eq!(conv("-1", 10, 16), "FFFFFFFFFFFFFFFF");
        assert_eq!(conv("-1", 10, -16), "-1");
        assert_eq!(conv("  11", 10, 2), "1011");
    }

    #[test]
    fn buckets() {
        let bucket = |v: f64, min: f64, max: f64, n: i64| {
            eval("width_bucket", &[double(v), double(min), double(max), bigint(n)])
        };
        assert_eq!(bucket(5.3, 0.2, 10.6, 5), "3");
        assert_eq!(bucket(-1.0, 0.0, 10.0, 5), "0");
        assert_eq!(bucket(10.0, 0.0, 10.0, 5), "6");
        assert_eq!(bucket(5.0, 10.0, 0.0, 5), "3");
        assert_eq!(bucket(5.0, 0.0, 0.0, 5), "NULL");
        assert_eq!(bucket(5.0, 0.0, 10.0, 0), "NULL");
        assert_eq!(bucket(f64::NAN, 0.0, 10.0, 5), "NULL");
        assert_eq!(eval("width_bucket", &[seconds(5), seconds(0), seconds(10), int(5)]), "3");
    }

    #[test]
    fn replacements() {
        assert_eq!(eval("nanvl", &[double(f64::NAN), int(5)]), "5.0");
        assert_eq!(eval("nanvl", &[int(1), null()]), "1.0");
        assert_eq!(eval("nanvl", &[null(), int(1)]), "NULL");
        assert_eq!(type_of("nanvl", &[float(1.0), float(2.0)]), "FLOAT");
    }
}
