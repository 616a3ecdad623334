//! Random numbers: `rand`, `randn`, `uniform`, `randstr`, `shuffle`, with the generators and so the values of Spark's.
//!
//! The value of a row follows from the seed and the number of the row alone, however the rows are cut into batches. `rand`
//! and `uniform` give the values that Spark gives to one partition. `randn` throws an unknown number of draws away, so
//! its generator is set anew every `BLOCK` rows; the first of these blocks is Spark's. `shuffle` draws as often as an array is
//! long, so its generator is set anew for every row; the first row is Spark's.
//!
//! A call without a seed is given one by the planner, `random_seed(n)`, that no other call of the statement has.

use arrow::array::Array;
use arrow::datatypes::{Float64Type, Int64Type};
use ssql_ir::{CastMode, DataType as T, Literal};

use super::arrays::array_arg;
use super::fdlibm;
use super::lists::Lists;
use crate::call::{Call, EvalResult};
use crate::cast::cast_array;
use crate::coercion::common_type;
use crate::error::ResolveError;
use crate::function::{FunctionDef, NullRule, Param, Ret, scalar, scalar_with};
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
    scalar_with("randstr", randstr_type, randstr).nulls(NullRule::Never).volatile().doc(
        "A random text of that many (a constant) letters and digits.",
        "randstr(length[, seed])",
        "",
    ),
    scalar_with("shuffle", shuffle_type, shuffle).nulls(NullRule::Any).volatile().doc(
        "The array in a random order.",
        "shuffle(array[, seed])",
        "",
    ),
    scalar("random_seed", &[Param::BigInt], Ret::BigInt, random_seed).internal().volatile().doc(
        "The seed of the random function of that number in the statement, different in every micro-batch.",
        "random_seed(number)",
        "",
    ),
];

fn random_seed(c: &Call<'_>) -> EvalResult {
    let number = c.i64(0);
    c.primitive_all::<Int64Type>(|r| {
        let mixed = (c.ctx.seed ^ (number.get(r) as u64).rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ (mixed >> 29)) as i64
    })
}

fn check_seed(c: &TypeCall<'_>, i: usize) -> Result<(), ResolveError> {
    match c.ty(i) {
        T::Int32 | T::Int64 | T::Null if c.args[i].literal.is_some() || *c.ty(i) == T::Null => Ok(()),
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

/// The seed in argument `i`, one for all rows; that of the session without one, and 0 for NULL.
pub(super) fn seed(c: &Call<'_>, i: usize) -> i64 {
    match i < c.len() {
        true if c.raw(i).is_empty() => 0,
        true => c.i64(i).opt(0).unwrap_or(0),
        false => c.ctx.seed as i64,
    }
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
                let scale = (-2.0 * fdlibm::log(s) / s).sqrt();
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
    let null = c.args.iter().any(|a| a.literal == Some(Literal::Null) || a.data_type == T::Null);
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

fn randstr_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(1, 2)?;
    if !c.ty(0).is_numeric() {
        return Err(c.mismatch(0, "(INT OR SMALLINT)"));
    }
    if c.args[0].literal.is_none() {
        return Err(ResolveError::new(
            "DATATYPE_MISMATCH.NON_FOLDABLE_INPUT",
            format!("The length of `{}` must be a constant.", c.name),
        )
        .at_arg(0));
    }
    if matches!(c.literal(0), Some(Literal::Int(n)) if *n < 0) {
        return Err(ResolveError::new(
            "DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE",
            format!("The length of `{}` must not be negative.", c.name),
        )
        .at_arg(0));
    }
    let mut types = vec![T::Int32];
    if c.len() == 2 {
        check_seed(c, 1)?;
        types.push(T::Int64);
    }
    Ok(Typed::new(types, T::String).nullable(false))
}

fn randstr(c: &Call<'_>) -> EvalResult {
    const LETTERS: &[u8; 62] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let length = c.i32(0);
    let length = if c.rows == 0 { 0 } else { length.get(0).max(0) as u64 };
    let mut source = XorShift::new(seed(c, 1));
    source.jump(c.ctx.first_row.wrapping_mul(length));
    c.strings(|_, out| {
        for _ in 0..length {
            let draw = source.next(32) as u32 as i32;
            out.push(char::from(LETTERS[(draw % 62).unsigned_abs() as usize]));
        }
        Ok(true)
    })
}

fn shuffle_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(1, 2)?;
    let (t, _) = array_arg(c, 0)?;
    let mut types = vec![t.clone()];
    if c.len() == 2 {
        check_seed(c, 1)?;
        types.push(T::Int64);
    }
    Ok(Typed::new(types, t).nullable(c.args[0].nullable))
}

fn shuffle(c: &Call<'_>) -> EvalResult {
    let (list, seed) = (c.list(0), seed(c, 1));
    let mut out = Lists::new(c.rows, vec![list.elements().clone()]);
    for row in 0..c.rows {
        if list.is_null(row) {
            out.null_row();
            continue;
        }
        let number = c.ctx.first_row.wrapping_add(row as u64);
        let mut random = MersenneTwister::new(seed as u64 ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        // Each element changes places with one of those before it, or stays.
        let mut places: Vec<usize> = vec![];
        for (i, place) in list.range(row).enumerate() {
            let at = random.below(i as u32 + 1) as usize;
            places.push(place);
            places.swap(i, at);
        }
        out.extend(0, places);
        out.end_row();
    }
    out.finish_as(c.data_type)
}

/// MT19937, seeded by the two halves of a number, with Java's way to a number below a bound.
struct MersenneTwister {
    state: [u32; 624],
    at: usize,
}

impl MersenneTwister {
    fn new(seed: u64) -> MersenneTwister {
        let key = [(seed >> 32) as u32, seed as u32];
        let mut state = [0u32; 624];
        state[0] = 19_650_218;
        for i in 1..624 {
            let before = state[i - 1] ^ state[i - 1] >> 30;
            state[i] = before.wrapping_mul(1_812_433_253).wrapping_add(i as u32);
        }
        let mut i = 1;
        let wrap = |state: &mut [u32; 624], i: &mut usize| {
            *i += 1;
            if *i == 624 {
                state[0] = state[623];
                *i = 1;
            }
        };
        for k in 0..624 {
            let before = (state[i - 1] ^ state[i - 1] >> 30).wrapping_mul(1_664_525);
            state[i] = (state[i] ^ before).wrapping_add(key[k % 2]).wrapping_add((k % 2) as u32);
            wrap(&mut state, &mut i);
        }
        for _ in 0..623 {
            let before = (state[i - 1] ^ state[i - 1] >> 30).wrapping_mul(1_566_083_941);
            state[i] = (state[i] ^ before).wrapping_sub(i as u32);
            wrap(&mut state, &mut i);
        }
        state[0] = 0x8000_0000;
        MersenneTwister { state, at: 624 }
    }

    fn next(&mut self, bits: u32) -> u32 {
        if self.at == 624 {
            for i in 0..624 {
                let y = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % 624] & 0x7fff_ffff);
                let magic = if y & 1 == 1 { 0x9908_b0df } else { 0 };
                self.state[i] = self.state[(i + 397) % 624] ^ y >> 1 ^ magic;
            }
            self.at = 0;
        }
        let mut y = self.state[self.at];
        self.at += 1;
        y ^= y >> 11;
        y ^= y << 7 & 0x9d2c_5680;
        y ^= y << 15 & 0xefc6_0000;
        y ^= y >> 18;
        y >> (32 - bits)
    }

    /// A number below `n`, which is positive and fits 31 bits.
    fn below(&mut self, n: u32) -> u32 {
        if n.is_power_of_two() {
            return ((u64::from(n) * u64::from(self.next(31))) >> 31) as u32;
        }
        loop {
            let bits = self.next(31);
            let value = bits % n;
            // Draws from the incomplete last round of `n` would favour small numbers.
            if u64::from(bits - value) + u64::from(n) <= 1 << 31 {
                return value;
            }
        }
    }
}

/// `java.util.Random`, where Spark's answers hang on its numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct JavaRandom(u64);

impl JavaRandom {
    const MULTIPLIER: u64 = 0x5_DEEC_E66D;
    const MASK: u64 = (1 << 48) - 1;

    /// The generator that starts from a seed.
    pub(crate) fn new(seed: i64) -> JavaRandom {
        JavaRandom((seed as u64 ^ Self::MULTIPLIER) & Self::MASK)
    }

    /// The generator in a state that [`JavaRandom::state`] told.
    pub(crate) fn at(state: u64) -> JavaRandom {
        JavaRandom(state & Self::MASK)
    }

    /// Where it stands, 48 bits.
    pub(crate) fn state(self) -> u64 {
        self.0
    }

    fn draw(&mut self, bits: u32) -> u64 {
        self.0 = self.0.wrapping_mul(Self::MULTIPLIER).wrapping_add(0xb) & Self::MASK;
        self.0 >> (48 - bits)
    }

    /// `nextDouble()`: at least 0, below 1.
    pub(crate) fn next_double(&mut self) -> f64 {
        ((self.draw(26) << 27) + self.draw(27)) as f64 / (1u64 << 53) as f64
    }

    /// `nextInt(bound)` of a bound that is positive and no power of two: at least 0, below the bound.
    pub(crate) fn next_below(&mut self, bound: i32) -> i32 {
        loop {
            let drawn = self.draw(31) as i32;
            let number = drawn % bound;
            // The last, incomplete run of numbers would make small ones likelier.
            if drawn.wrapping_sub(number).wrapping_add(bound - 1) >= 0 {
                return number;
            }
        }
    }
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
        assert_eq!(eval("randstr", &[int(5), int(0)]), "ceV0P");
        assert_eq!(eval("randstr", &[int(10), int(42)]), "pll6YOIJNn");
        let five = || expr("array", &[int(1), int(2), int(3), int(4), int(5)]);
        assert_eq!(eval("shuffle", &[five(), int(42)]), "[5, 3, 2, 1, 4]");
        assert_eq!(eval("shuffle", &[five(), int(7)]), "[1, 2, 5, 3, 4]");
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
