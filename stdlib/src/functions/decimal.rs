//! DECIMAL arithmetic: Spark's result types (precision loss allowed) and exact evaluation, rounded half up.
//!
//! Values are 128-bit integers. Operations try 128 bits first and go to 256 only for values that need it.

use std::sync::Arc;

use arrow::array::Decimal128Array;
use arrow::datatypes::{Decimal128Type, Int64Type, i256};
use ssql_ir::DataType as T;

use super::arithmetic::Op;
use crate::aggregate::basic::decimal_limit;
use crate::arrow::arrow_type;
use crate::call::{Call, EvalResult, Fixed, zip_with};
use crate::coercion::adjusted_decimal;
use crate::error::EvalError;

/// Type of `+` and `-`.
pub fn add_type((p1, s1): (u8, u8), (p2, s2): (u8, u8)) -> T {
    let scale = i32::from(s1.max(s2));
    adjusted_decimal(i32::from((p1 - s1).max(p2 - s2)) + scale + 1, scale)
}

/// Type of `*`.
pub fn multiply_type((p1, s1): (u8, u8), (p2, s2): (u8, u8)) -> T {
    adjusted_decimal(i32::from(p1) + i32::from(p2) + 1, i32::from(s1) + i32::from(s2))
}

/// Type of `/`.
pub fn divide_type((p1, s1): (u8, u8), (p2, s2): (u8, u8)) -> T {
    let (p1, s1, p2, s2) = (i32::from(p1), i32::from(s1), i32::from(p2), i32::from(s2));
    let scale = 6.max(s1 + p2 + 1);
    adjusted_decimal(p1 - s1 + s2 + scale, scale)
}

/// Type of `%` and `pmod`.
pub fn remainder_type((p1, s1): (u8, u8), (p2, s2): (u8, u8)) -> T {
    let scale = i32::from(s1.max(s2));
    adjusted_decimal(i32::from((p1 - s1).min(p2 - s2)) + scale, scale)
}

/// 10^n for `0 <= n <= 38`.
pub fn power_of_ten(n: u32) -> i128 {
    10i128.pow(n)
}

fn wide_power(n: u32) -> Option<i256> {
    i256::from_i128(10).checked_pow(n)
}

/// The quotient rounded half away from zero. `d` is not zero.
pub fn divide_half_up(n: i128, d: i128) -> i128 {
    let (q, r) = (n.wrapping_div(d), n.wrapping_rem(d));
    if r.unsigned_abs() >= d.unsigned_abs() - r.unsigned_abs() {
        if (n < 0) == (d < 0) { q + 1 } else { q - 1 }
    } else {
        q
    }
}

fn wide_divide_half_up(n: i256, d: i256) -> Option<i256> {
    let (q, r) = (n.checked_div(d)?, n.checked_rem(d)?);
    let zero = i256::ZERO;
    let magnitude = |v: i256| if v < zero { v.wrapping_neg() } else { v };
    if magnitude(r) >= magnitude(d).wrapping_sub(magnitude(r)) {
        let one = i256::from_i128(if (n < zero) == (d < zero) { 1 } else { -1 });
        q.checked_add(one)
    } else {
        Some(q)
    }
}

/// `value * 10^by / divisor` rounded half up, `by` of either sign; `None` if it does not fit 128 bits.
/// `divisor` is not zero.
pub fn rescale(value: i128, divisor: i128, by: i32) -> Option<i128> {
    if by <= 0 {
        let down = by.unsigned_abs();
        if divisor == 1 && down <= 38 {
            return Some(divide_half_up(value, power_of_ten(down)));
        }
        let d = i256::from_i128(divisor).checked_mul(wide_power(down)?)?;
        return wide_divide_half_up(i256::from_i128(value), d)?.to_i128();
    }
    let up = by.unsigned_abs();
    if up <= 38
        && let Some(n) = value.checked_mul(power_of_ten(up))
    {
        return Some(divide_half_up(n, divisor));
    }
    let n = i256::from_i128(value).checked_mul(wide_power(up)?)?;
    wide_divide_half_up(n, i256::from_i128(divisor))?.to_i128()
}

/// The value at another scale if it fits that precision.
pub fn to_precision(value: i128, from_scale: u8, precision: u8, scale: u8) -> Option<i128> {
    rescale(value, 1, i32::from(scale) - i32::from(from_scale)).filter(|v| v.abs() <= decimal_limit(precision))
}

/// The value as text, with `scale` digits after the point.
pub fn print(value: i128, scale: u8) -> String {
    let mut out = String::new();
    crate::text::write_decimal(value, scale, &mut out);
    out
}

/// Both operands at the larger of their scales, in 256 bits where needed.
fn aligned(a: i128, s1: u8, b: i128, s2: u8) -> Option<(i256, i256)> {
    let scale = s1.max(s2);
    Some((
        i256::from_i128(a).checked_mul(wide_power(u32::from(scale - s1))?)?,
        i256::from_i128(b).checked_mul(wide_power(u32::from(scale - s2))?)?,
    ))
}

fn wide_rescale(value: i256, by: i32) -> Option<i128> {
    if by >= 0 {
        value.checked_mul(wide_power(by.unsigned_abs())?)?.to_i128()
    } else {
        wide_divide_half_up(value, wide_power(by.unsigned_abs())?)?.to_i128()
    }
}

/// One operation on operands of scales `s1` and `s2`, result at scale `s`. `None`: does not fit. The divisor is not 0.
fn apply(op: Op, a: i128, s1: u8, b: i128, s2: u8, s: u8) -> Option<i128> {
    let scale = s1.max(s2);
    let to = i32::from(s) - i32::from(scale);
    match op {
        Op::Add | Op::Subtract => {
            let fast = || {
                let a = a.checked_mul(power_of_ten(u32::from(scale - s1)))?;
                let b = b.checked_mul(power_of_ten(u32::from(scale - s2)))?;
                let sum = if op == Op::Add { a.checked_add(b) } else { a.checked_sub(b) }?;
                if to == 0 { Some(sum) } else { rescale(sum, 1, to) }
            };
            fast().or_else(|| {
                let (a, b) = aligned(a, s1, b, s2)?;
                wide_rescale(if op == Op::Add { a.checked_add(b)? } else { a.checked_sub(b)? }, to)
            })
        }
        Op::Multiply => {
            let to = i32::from(s) - i32::from(s1) - i32::from(s2);
            match a.checked_mul(b) {
                Some(product) if to == 0 => Some(product),
                // Spark rounds a product to 38 digits before it rounds it to the result's scale.
                Some(product) if product.abs() <= decimal_limit(38) => rescale(product, 1, to),
                _ => {
                    let mut product = i256::from_i128(a).checked_mul(i256::from_i128(b))?;
                    let limit = i256::from_i128(decimal_limit(38));
                    let magnitude = if product < i256::ZERO { product.wrapping_neg() } else { product };
                    let (mut over, mut bound) = (0, limit);
                    while magnitude > bound {
                        over += 1;
                        bound = bound.checked_mul(i256::from_i128(10))?.checked_add(i256::from_i128(9))?;
                    }
                    if over > 0 {
                        product = wide_divide_half_up(product, wide_power(over)?)?;
                    }
                    wide_rescale(product, to + over as i32)
                }
            }
        }
        Op::Divide => rescale(a, b, i32::from(s) - i32::from(s1) + i32::from(s2)),
        Op::IntegralDivide => {
            let (a, b) = aligned(a, s1, b, s2)?;
            a.checked_div(b)?.to_i128()
        }
        Op::Remainder | Op::PositiveModulo => {
            let (a, b) = aligned(a, s1, b, s2)?;
            let mut r = a.checked_rem(b)?;
            if op == Op::PositiveModulo && r < i256::ZERO {
                r = r.checked_add(b)?.checked_rem(b)?;
            }
            wide_rescale(r, to)
        }
    }
}

/// Sums and products whose type has room for every result: a loop without checks. `None`: the type was capped.
fn plain_loop(c: &Call<'_>, op: Op, a: &Fixed<'_, Decimal128Type>, b: &Fixed<'_, Decimal128Type>) -> Option<Vec<i128>> {
    let (T::Decimal(p1, s1), T::Decimal(p2, s2)) = (c.types[0], c.types[1]) else { return None };
    let scale = s1.max(s2);
    let (up1, up2) = (power_of_ten((scale - s1).into()), power_of_ten((scale - s2).into()));
    match op {
        Op::Add | Op::Subtract if (p1 - s1).max(p2 - s2) + scale < 38 => Some(if op == Op::Add {
            zip_with(a, b, c.rows, |x, y| x.wrapping_mul(up1).wrapping_add(y.wrapping_mul(up2)))
        } else {
            zip_with(a, b, c.rows, |x, y| x.wrapping_mul(up1).wrapping_sub(y.wrapping_mul(up2)))
        }),
        Op::Multiply if p1 + p2 < 38 => Some(zip_with(a, b, c.rows, i128::wrapping_mul)),
        _ => None,
    }
}

/// Evaluates an operation over two DECIMAL operands.
pub fn binary(c: &Call<'_>, op: Op, tried: bool) -> EvalResult {
    let (T::Decimal(_, s1), T::Decimal(_, s2)) = (c.types[0], c.types[1]) else {
        return Err(EvalError::internal("decimal operands"));
    };
    let (s1, s2) = (*s1, *s2);
    let (a, b) = (c.decimal(0), c.decimal(1));
    if op == Op::IntegralDivide {
        return c.primitive::<Int64Type>(|row| {
            if b.get(row) == 0 {
                return if tried { Ok(None) } else { Err(op.zero_error()) };
            }
            match apply(op, a.get(row), s1, b.get(row), s2, 0).and_then(|v| i64::try_from(v).ok()) {
                None if !tried => Err(EvalError::overflow(op.result_name(), &T::Int64, op.tried())),
                v => Ok(v),
            }
        });
    }
    let T::Decimal(p, s) = c.data_type else { return Err(EvalError::internal("a decimal result")) };
    let (p, s, limit) = (*p, *s, decimal_limit(*p));
    if let Some(values) = plain_loop(c, op, &a, &b) {
        let array = Decimal128Array::new(values.into(), c.valid()).with_data_type(arrow_type(c.data_type));
        return Ok(Arc::new(array));
    }
    c.primitive::<Decimal128Type>(|row| {
        let (x, y) = (a.get(row), b.get(row));
        if y == 0 && matches!(op, Op::Divide | Op::Remainder | Op::PositiveModulo) {
            return if tried { Ok(None) } else { Err(op.zero_error()) };
        }
        match apply(op, x, s1, y, s2, s).filter(|v| v.abs() <= limit) {
            None if !tried => {
                let text = format!("{} of {} and {}", op.result_name(), print(x, s1), print(y, s2));
                Err(EvalError::decimal_range(&text, p, s))
            }
            v => Ok(v),
        }
    })
}
