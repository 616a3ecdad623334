//! Random numbers: `rand`, `randn`, `uniform`, with the generator and so the values of Spark's.
//!
//! The value of a row follows from the seed and the number of the row alone, however the rows are cut into batches. `rand`
//! and `uniform` give the values that Spark gives to one partition. `randn` throws an unknown number of draws away, so
//! its generator is set anew every `BLOCK` rows; the first of these blocks is Spark's.

use arrow::datatypes::Float64Type;
use ssql_ir::{CastMode, DataType as T, Literal};

use crate::call::{Call, EvalResult};
use crate::cast::cast_array;
use crate::coercion::common_type;
use crate::error::ResolveError;
use crate::function::{FunctionDef, NullRule, scalar_with};
use crate::resolve::{TypeCall, Typed};

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[
    scalar_with("rand", seed_type, rand).aliases(&["random"]).nulls(NullRule::Never).volatile().doc(
        "A random number from 0 (included) to 1 (excluded).",
        "rand([seed])",
        "",
    ),
    scalar_with("randn", seed_type, randn).nulls(NullRule::Never).volatile().doc(
        "A random number of the standard normal distribution.",
        "randn([seed])",
        "",
    ),
    scalar_with("uniform", uniform_type, uniform).volatile().doc(
        "A random number from `min` (included) to `max` (excluded), both constant.",
        "uniform(min, max[, seed])",
        "",
    ),
];

fn check_seed(c: &TypeCall<'_>, i: usize) -> Result<(), ResolveError> {
    match c.ty(i) {
        T::Int32 | T::Int64 | T::Int8 | T::Int16 | T::Null if c.args[i].literal.is_some() || *c.ty(i) == T::Null => {
            Ok(())
        }
        _ => Err(c.mismatch(i, "(INT OR BIGINT) (a constant)")),
    }
}

fn seed_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(0, 1)?;
    if c.is_empty() {
        return Ok(Typed::new(vec![], T::Float64));
    }
    check_seed(c, 0)?;
    Ok(Typed::new(vec![T::Int64], T::Float64))
}

/// The seed in argument `i`; that of the session without one, and 0 for NULL.
fn seed(c: &Call<'_>, i: usize) -> i64 {
    if i >= c.len() { c.ctx.seed as i64 } else { c.i64(i).opt(0).unwrap_or(0) }
}

/// Spark's XORShiftRandom, an xorshift generator of 64 bits behind Java's `Random` interface.
#[derive(Debug, Clone)]
pub(crate) struct XorShift(u64);

impl XorShift {
    /// For a seed, which is hashed first.
    pub(crate) fn new(seed: i64) -> XorShift {
        let bytes = seed.to_be_bytes();
        let low = scala_murmur3(&bytes, 0x3c07_4a61);
        let high = scala_murmur3(&bytes, low);
        XorShift(u64::from(high) << 32 | u64::from(low))
    }

    fn step(mut s: u64) -> u64 {
        s ^= s << 21;
        s ^= s >> 35;
        s ^ s << 4
    }

    fn next(&mut self, bits: u32) -> u64 {
        self.0 = XorShift::step(self.0);
        self.0 & ((1 << bits) - 1)
    }

    /// From 0 to 1; two steps.
    pub(crate) fn next_double(&mut self) -> f64 {
        ((self.next(26) << 27) + self.next(27)) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Goes on by `n` steps at once: a step is linear over the bits, so `n` steps are a power of a matrix.
    pub(crate) fn jump(&mut self, mut n: u64) {
        // Row `i` of the matrix is the image of bit `i`.
        let apply = |m: &[u64; 64], v: u64| (0..64).filter(|i| v >> i & 1 == 1).fold(0, |sum, i| sum ^ m[i]);
        let mut power: [u64; 64] = std::array::from_fn(|i| XorShift::step(1 << i));
        while n > 0 {
            if n & 1 == 1 {
                self.0 = apply(&power, self.0);
            }
            power = std::array::from_fn(|i| apply(&power, power[i]));
            n >>= 1;
        }
    }
}

/// Two normally distributed numbers at a time, as Java's `Random.nextGaussian`.
struct Normal {
    source: XorShift,
    spare: Option<f64>,
}

impl Normal {
    fn next(&mut self) -> f64 {
        if let Some(v) = self.spare.take() {
            return v;
        }
        loop {
            let (a, b) = (2.0 * self.source.next_double() - 1.0, 2.0 * self.source.next_double() - 1.0);
            let s = a * a + b * b;
            if s < 1.0 && s != 0.0 {
                let scale = (-2.0 * s.ln() / s).sqrt();
                self.spare = Some(b * scale);
                return a * scale;
            }
        }
    }
}

/// Murmur3 of bytes as Scala's standard library has it.
fn scala_murmur3(bytes: &[u8], seed: u32) -> u32 {
    let mix_last = |k: u32| k.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
    let mut h = seed;
    for word in bytes.chunks_exact(4) {
        let k = u32::from_le_bytes(word.try_into().expect("four bytes"));
        h = (h ^ mix_last(k)).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    h ^= bytes.len() as u32;
    h = (h ^ (h >> 16)).wrapping_mul(0x85eb_ca6b);
    h = (h ^ (h >> 13)).wrapping_mul(0xc2b2_ae35);
    h ^ (h >> 16)
}

/// A generator at the first row of the batch.
fn generator(c: &Call<'_>, seed: i64) -> XorShift {
    let mut source = XorShift::new(seed);
    source.jump(c.ctx.first_row.wrapping_mul(2));
    source
}

fn rand(c: &Call<'_>) -> EvalResult {
    let mut source = generator(c, seed(c, 0));
    c.primitive_all::<Float64Type>(|_| source.next_double())
}

/// Rows that `randn` takes from one stretch of its generator, and the steps between stretches.
const BLOCK: u64 = 4096;
const STRETCH: u64 = 1 << 20;

fn randn(c: &Call<'_>) -> EvalResult {
    let start = |block: u64| {
        let mut source = XorShift::new(seed(c, 0));
        source.jump(block.wrapping_mul(STRETCH));
        Normal { source, spare: None }
    };
    let first = c.ctx.first_row;
    let mut normal = start(first / BLOCK);
    for _ in 0..first % BLOCK {
        normal.next();
    }
    c.primitive_all::<Float64Type>(|r| {
        let row = first.wrapping_add(r as u64);
        if r > 0 && row.is_multiple_of(BLOCK) {
            normal = start(row / BLOCK);
        }
        normal.next()
    })
}

fn uniform_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, 3)?;
    for i in 0..2 {
        if !c.ty(i).is_numeric() && *c.ty(i) != T::Null {
            return Err(c.mismatch(i, "NUMERIC"));
        }
        if c.args[i].literal.is_none() && *c.ty(i) != T::Null {
            return Err(ResolveError::new(
                "DATATYPE_MISMATCH.NON_FOLDABLE_INPUT",
                format!("The bounds of `{}` must be constants.", c.name),
            )
            .at_arg(i));
        }
    }
    let result = match common_type(c.ty(0), c.ty(1)) {
        // An integer beside a DECIMAL does not make it wider than its own digits need.
        Some(T::Decimal(..)) => match (c.ty(0), c.ty(1)) {
            (t @ T::Decimal(..), u) | (u, t @ T::Decimal(..)) if u.is_integer() => t.clone(),
            (t, u) => common_type(t, u).unwrap_or(T::Float64),
        },
        Some(T::Null) | None => T::Int32,
        Some(t) => t,
    };
    let null = c.args[..2].iter().any(|a| a.literal == Some(Literal::Null) || a.data_type == T::Null);
    let mut types = vec![T::Float64; 2];
    if c.len() == 3 {
        check_seed(c, 2)?;
        types.push(T::Int64);
    }
    Ok(Typed::new(types, result).nullable(null))
}

fn uniform(c: &Call<'_>) -> EvalResult {
    let (min, max) = (c.f64(0).get(0), c.f64(1).get(0));
    let mut source = generator(c, seed(c, 2));
    let doubles: arrow::array::Float64Array =
        (0..c.rows).map(|_| Some(min + (max - min) * source.next_double())).collect();
    let column: arrow::array::ArrayRef = std::sync::Arc::new(doubles);
    cast_array(&column, &T::Float64, c.data_type, CastMode::Ansi, c.ctx)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EvalContext;
    use crate::testing::{bigint, decimal, double, eval, expr, int, null_of, show_in, str, type_of};

    #[test]
    fn values_are_those_of_spark() {
        assert_eq!(eval("rand", &[int(0)]), "0.7604953758285915");
        assert_eq!(eval("random", &[int(42)]), "0.619189370225301");
        assert_eq!(eval("rand", &[bigint(5)]), "0.02390696427502892");
        assert_eq!(eval("rand", &[null_of(T::Int32)]), "0.7604953758285915");
        assert_eq!(eval("randn", &[int(42)]), "2.384479054241165");
        assert_eq!(eval("randn", &[int(0)]), "1.6034991609278433");
        assert_eq!(eval("rand", &[str("x")]), "!DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE");
        assert_eq!(eval("uniform", &[int(0), int(100), int(0)]), "76");
        assert_eq!(eval("uniform", &[double(0.0), int(10), int(3)]), "2.5738143505962285");
        assert_eq!(type_of("uniform", &[int(0), decimal("100.5"), int(7)]), "DECIMAL(4,1)");
    }

    #[test]
    fn rows_do_not_depend_on_batches() {
        let at = |first_row: u64, name: &str| {
            let ctx = EvalContext { first_row, ..EvalContext::default() };
            show_in(&expr(name, &[int(42)]), &ctx)
        };
        assert_eq!([0, 1, 2].map(|r| at(r, "rand")), ["0.619189370225301", "0.5096018842446481", "0.8325259388871524"]);
        assert_eq!(
            [0, 1, 2].map(|r| at(r, "randn")),
            ["2.384479054241165", "0.1920934041293524", "0.7337336533286575"]
        );
        let mut stepped = XorShift::new(7);
        let mut jumped = stepped.clone();
        (0..1000).for_each(|_| {
            stepped.next(32);
        });
        jumped.jump(1000);
        assert_eq!(stepped.0, jumped.0);
    }
}
