//! Fast paths for plain numbers. Each returns `None` for whatever is not the common shape; the general reader decides
//! then.

use super::scan::byte;

/// Powers of ten that a double holds exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

/// A decimal number without exponent.
struct Plain {
    negative: bool,
    /// All digits, without the point.
    digits: u64,
    /// Digits after the point.
    fraction: usize,
    end: usize,
}

/// Reads up to 19 digits with a point among them, followed by `,` or `}`.
#[inline(always)]
fn plain(data: &[u8], p: usize) -> Option<Plain> {
    let negative = byte(data, p) == b'-';
    let first = p + usize::from(negative);
    let (mut at, mut digits) = (first, 0u64);
    loop {
        let d = byte(data, at).wrapping_sub(b'0');
        if d > 9 {
            break;
        }
        digits = digits.wrapping_mul(10).wrapping_add(d.into());
        at += 1;
    }
    let whole = at - first;
    if whole == 0 || (whole > 1 && data[first] == b'0') {
        return None;
    }
    let mut fraction = 0;
    if byte(data, at) == b'.' {
        at += 1;
        let point = at;
        loop {
            let d = byte(data, at).wrapping_sub(b'0');
            if d > 9 {
                break;
            }
            digits = digits.wrapping_mul(10).wrapping_add(d.into());
            at += 1;
        }
        fraction = at - point;
        if fraction == 0 {
            return None;
        }
    }
    // 19 digits cannot overflow 64 bits, so what wrapped is refused here.
    (whole + fraction <= 19 && matches!(byte(data, at), b',' | b'}')).then_some(Plain {
        negative,
        digits,
        fraction,
        end: at,
    })
}

/// A whole number that fits 64 bits.
#[inline(always)]
pub(super) fn integer(data: &[u8], p: usize) -> Option<(i64, usize)> {
    let Plain { negative, digits, fraction, end } = plain(data, p)?;
    let value = i64::try_from(digits).ok()?;
    (fraction == 0).then_some((if negative { -value } else { value }, end))
}

/// A double that is exact by one division (Clinger's fast path).
#[inline(always)]
pub(super) fn double(data: &[u8], p: usize) -> Option<(f64, usize)> {
    let Plain { negative, digits, fraction, end } = plain(data, p)?;
    if digits > 1 << 53 {
        return None;
    }
    let value = digits as f64 / POWERS[fraction];
    Some((if negative { -value } else { value }, end))
}

/// A decimal that needs no rounding at that scale.
#[inline(always)]
pub(super) fn decimal(data: &[u8], p: usize, precision: u8, scale: u8) -> Option<(i128, usize)> {
    let Plain { negative, digits, fraction, end } = plain(data, p)?;
    let missing = usize::from(scale).checked_sub(fraction)?;
    let value = i128::from(digits).checked_mul(10i128.checked_pow(missing as u32)?)?;
    (value < 10i128.pow(precision.into())).then_some((if negative { -value } else { value }, end))
}
