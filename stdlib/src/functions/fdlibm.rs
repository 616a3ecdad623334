//! Elementary functions with the results of Java's `StrictMath`, which are those of Sun's fdlibm: a last digit may differ
//! from that of the platform's library. What the crate `libm` has bit for bit is taken from there.

const LN2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
const LN2_LOW: f64 = f64::from_bits(0x3dea_39ef_3579_3c76);
/// Coefficients of the polynomial for `ln((1 + s) / (1 - s)) - 2s`.
const LG: [f64; 7] = [
    f64::from_bits(0x3fe5_5555_5555_5593),
    f64::from_bits(0x3fd9_9999_9997_fa04),
    f64::from_bits(0x3fd2_4924_9422_9359),
    f64::from_bits(0x3fcc_71c5_1d8e_78af),
    f64::from_bits(0x3fc7_4664_96cb_03de),
    f64::from_bits(0x3fc3_9a09_d078_c69f),
    f64::from_bits(0x3fc2_f112_df3e_5244),
];

/// The bits of the upper and the lower half.
fn halves(x: f64) -> (i32, u32) {
    let bits = x.to_bits();
    ((bits >> 32) as i32, bits as u32)
}

fn with_high(x: f64, high: i32) -> f64 {
    f64::from_bits(u64::from(high as u32) << 32 | x.to_bits() & 0xffff_ffff)
}

/// e to the power of x.
pub(super) fn exp(x: f64) -> f64 {
    libm::exp(x)
}

/// x to the power of y.
pub(super) fn pow(x: f64, y: f64) -> f64 {
    libm::pow(x, y)
}

/// Natural logarithm.
pub(super) fn log(mut x: f64) -> f64 {
    let (mut high, low) = halves(x);
    if x == 0.0 {
        return f64::NEG_INFINITY;
    }
    if high < 0 {
        return f64::NAN;
    }
    if high >= 0x7ff0_0000 {
        return x;
    }
    let mut k = 0;
    if high < 0x0010_0000 {
        // A subnormal number, scaled up.
        debug_assert!(low != 0 || high != 0);
        k -= 54;
        x *= f64::from_bits(0x4350_0000_0000_0000);
        high = halves(x).0;
    }
    // x = 2^k * (1 + f), with 1 + f between the roots of a half and of two.
    k += (high >> 20) - 1023;
    high &= 0x000f_ffff;
    let i = (high + 0x9_5f64) & 0x10_0000;
    x = with_high(x, high | (i ^ 0x3ff0_0000));
    k += i >> 20;
    let (f, dk) = (x - 1.0, f64::from(k));
    if (0x000f_ffff & (2 + high)) < 3 {
        // f is below 2^-20 in size.
        if f == 0.0 {
            return if k == 0 { 0.0 } else { dk * LN2_HIGH + dk * LN2_LOW };
        }
        let r = f * f * (0.5 - 0.333_333_333_333_333_3 * f);
        return if k == 0 { f - r } else { dk * LN2_HIGH - ((r - dk * LN2_LOW) - f) };
    }
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let t1 = w * (LG[1] + w * (LG[3] + w * LG[5]));
    let t2 = z * (LG[0] + w * (LG[2] + w * (LG[4] + w * LG[6])));
    let r = t2 + t1;
    if ((high - 0x6_147a) | (0x6_b851 - high)) > 0 {
        let half = 0.5 * f * f;
        if k == 0 {
            f - (half - s * (half + r))
        } else {
            dk * LN2_HIGH - ((half - (s * (half + r) + dk * LN2_LOW)) - f)
        }
    } else if k == 0 {
        f - s * (f - r)
    } else {
        dk * LN2_HIGH - ((s * (f - r) - dk * LN2_LOW) - f)
    }
}

/// Logarithm to base 10.
pub(super) fn log10(mut x: f64) -> f64 {
    const IN_LN10: f64 = f64::from_bits(0x3fdb_cb7b_1526_e50e);
    const LOG10_2_HIGH: f64 = f64::from_bits(0x3fd3_4413_509f_6000);
    const LOG10_2_LOW: f64 = f64::from_bits(0x3d59_fef3_11f1_2b36);
    let mut high = halves(x).0;
    let mut k = 0;
    if x == 0.0 || !(0..0x7ff0_0000).contains(&high) {
        return log(x);
    }
    if high < 0x0010_0000 {
        k -= 54;
        x *= f64::from_bits(0x4350_0000_0000_0000);
        high = halves(x).0;
    }
    k += (high >> 20) - 1023;
    let i = i32::from(k < 0);
    x = with_high(x, (high & 0x000f_ffff) | ((0x3ff - i) << 20));
    let y = f64::from(k + i);
    let z = y * LOG10_2_LOW + IN_LN10 * log(x);
    z + y * LOG10_2_HIGH
}

/// Hyperbolic cosine.
pub(super) fn cosh(x: f64) -> f64 {
    let x = x.abs();
    if x < 0.5 * std::f64::consts::LN_2 {
        let t = libm::expm1(x);
        let w = 1.0 + t;
        return if t == 0.0 { w } else { 1.0 + (t * t) / (w + w) };
    }
    if x < 22.0 {
        let t = exp(x);
        return 0.5 * t + 0.5 / t;
    }
    if x < 709.0 { 0.5 * exp(x) } else { x.cosh() }
}

/// Cube root.
pub(super) fn cbrt(x: f64) -> f64 {
    const C: f64 = 19.0 / 35.0;
    const D: f64 = -864.0 / 1225.0;
    const E: f64 = 99.0 / 70.0;
    const F: f64 = 45.0 / 28.0;
    const G: f64 = 5.0 / 14.0;
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    let (sign, x) = (x.signum(), x.abs());
    // A rough root by dividing the exponent by three.
    let mut t = if halves(x).0 < 0x0010_0000 {
        let scaled = f64::from_bits(0x4350_0000_0000_0000) * x;
        with_high(0.0, halves(scaled).0 / 3 + 696_219_795)
    } else {
        with_high(0.0, halves(x).0 / 3 + 715_094_163)
    };
    // To 23 bits, cut to 20 and made larger than the root, then one step of Newton.
    let r = t * t / x;
    let s = C + r * t;
    t *= G + F / (s + E + D / s);
    t = with_high(0.0, halves(t).0 + 1);
    let s = t * t;
    let r = x / s;
    let w = t + t;
    let r = (r - t) / (w + r);
    sign * (t + t * r)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_those_of_java() {
        assert_eq!(exp(1.0), 2.718_281_828_459_045_5);
        assert_eq!(cosh(1.0), 1.543_080_634_815_244);
        assert_eq!(log(10.0), std::f64::consts::LN_10);
        assert_eq!(log(2.0) / log(2.0), 1.0);
        assert_eq!(log10(1000.0), 3.0);
        assert_eq!(cbrt(27.0), 3.0);
        assert_eq!(cbrt(-8.0), -2.0);
    }

    #[test]
    fn near_the_platforms() {
        for i in 1..2000 {
            let x = f64::from(i) * 0.37 - 300.0;
            let near = |a: f64, b: f64| assert!((a - b).abs() <= 4e-16 * b.abs().max(1e-300) * 2.0, "{x}: {a} {b}");
            near(cbrt(x), x.cbrt());
            if x > 0.0 {
                near(log(x), x.ln());
                near(log10(x), x.log10());
            }
            if x.abs() < 700.0 {
                near(cosh(x), x.cosh());
            }
        }
        for tiny in [f64::MIN_POSITIVE / 1024.0, 5e-324, 1e-310] {
            assert!((log(tiny) - tiny.ln()).abs() < 1e-12);
            assert!((log10(tiny) - tiny.log10()).abs() < 1e-12);
            assert!((cbrt(tiny) / tiny.cbrt() - 1.0).abs() < 1e-12);
        }
        assert_eq!(log(0.0), f64::NEG_INFINITY);
        assert!(log(-1.0).is_nan() && log(f64::NAN).is_nan());
        assert_eq!(log(1.0), 0.0);
        assert_eq!(cosh(f64::INFINITY), f64::INFINITY);
    }
}
