//! Spark's hash values: `hash` (Murmur3, seed 42) and `xxhash64` (XXH64, seed 42), to the bit.
//!
//! The hash of a row is a chain: each value is hashed with what came before as its seed, and a NULL leaves it as it is.
//! Arrays and structs chain their parts. Spark's Murmur3 takes the last bytes of a text one by one, unlike the original.

use arrow::array::{Array, AsArray};
use arrow::datatypes as dt;
use arrow::datatypes::{DataType as ArrowType, Int32Type, Int64Type, IntervalUnit};
use ssql_ir::DataType as T;

use crate::call::Call;
use crate::error::{EvalError, ResolveError};
use crate::function::{FunctionDef, NullRule, scalar_with};
use crate::resolve::{TypeCall, Typed};

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[
    scalar_with(
        "hash",
        |c| hash_type(c, T::Int32),
        |c| {
            let hashes = chain::<Murmur3>(c)?;
            c.primitive_all::<Int32Type>(|r| hashes[r] as i32)
        },
    )
    .nulls(NullRule::Never)
    .doc("Murmur3 hash of the values, as Spark's.", "hash(expr, ...)", "hash('abc', 1)"),
    scalar_with(
        "xxhash64",
        |c| hash_type(c, T::Int64),
        |c| {
            let hashes = chain::<XxHash64>(c)?;
            c.primitive_all::<Int64Type>(|r| hashes[r] as i64)
        },
    )
    .nulls(NullRule::Never)
    .doc("XXH64 hash of the values, as Spark's.", "xxhash64(expr, ...)", "xxhash64('abc', 1)"),
];

const SEED: u64 = 42;

fn holds_map(t: &T) -> bool {
    match t {
        T::Map(..) => true,
        T::Array(e) => holds_map(&e.data_type),
        T::Struct(fields) => fields.iter().any(|f| holds_map(&f.data_type)),
        _ => false,
    }
}

fn hash_type(c: &TypeCall<'_>, result: T) -> Result<Typed, ResolveError> {
    c.count(1, usize::MAX)?;
    for i in 0..c.len() {
        if holds_map(c.ty(i)) {
            return Err(ResolveError::new(
                "DATATYPE_MISMATCH.HASH_MAP_TYPE",
                format!("`{}` does not take maps: equal maps could have different hashes.", c.name),
            )
            .with_help("hash `map_entries(m)` instead, sorted if the order of entries may differ")
            .at_arg(i));
        }
    }
    Ok(Typed::new(c.args.iter().map(|a| a.data_type.clone()).collect(), result))
}

fn chain<H: Hasher>(c: &Call<'_>) -> Result<Vec<u64>, EvalError> {
    let mut hashes = vec![SEED; c.rows];
    for i in 0..c.len() {
        let hash = value_hasher::<H>(c.raw(i).as_ref())?;
        let constant = c.is_constant(i);
        for (row, h) in hashes.iter_mut().enumerate() {
            *h = hash(if constant { 0 } else { row }, *h);
        }
    }
    Ok(hashes)
}

/// XXH64 with Spark's seed of each value of a column, and what a NULL gets: the seed itself.
pub(crate) fn xxhash64_column(array: &dyn Array) -> Result<Vec<u64>, EvalError> {
    let hash = value_hasher::<XxHash64>(array)?;
    Ok((0..array.len()).map(|row| hash(row, SEED)).collect())
}

/// Spark's Murmur3 of bytes.
pub(crate) fn murmur3_bytes(bytes: &[u8], seed: i32) -> i32 {
    Murmur3::bytes(bytes, seed as u32 as u64) as i32
}

/// A hash function over the primitive shapes. Seeds and results are 32 bits in Murmur3.
trait Hasher: 'static {
    fn int(v: i32, seed: u64) -> u64;
    fn long(v: i64, seed: u64) -> u64;
    fn bytes(v: &[u8], seed: u64) -> u64;
}

type ValueHasher<'a> = Box<dyn Fn(usize, u64) -> u64 + 'a>;

/// Hashes the value in a row with a seed.
fn value_hasher<'a, H: Hasher>(array: &'a dyn Array) -> Result<ValueHasher<'a>, EvalError> {
    macro_rules! int {
        ($t:ty) => {{
            let a = array.as_primitive::<$t>();
            Box::new(move |i, seed| H::int(a.value(i).into(), seed))
        }};
    }
    macro_rules! long {
        ($t:ty) => {{
            let a = array.as_primitive::<$t>();
            Box::new(move |i, seed| H::long(a.value(i), seed))
        }};
    }
    let values: ValueHasher<'a> = match array.data_type() {
        ArrowType::Null => return Ok(Box::new(|_, seed| seed)),
        ArrowType::Boolean => {
            let a = array.as_boolean();
            Box::new(move |i, seed| H::int(a.value(i).into(), seed))
        }
        ArrowType::Int8 => int!(dt::Int8Type),
        ArrowType::Int16 => int!(dt::Int16Type),
        ArrowType::Int32 => int!(dt::Int32Type),
        ArrowType::Date32 => int!(dt::Date32Type),
        ArrowType::Interval(IntervalUnit::YearMonth) => int!(dt::IntervalYearMonthType),
        ArrowType::Int64 => long!(dt::Int64Type),
        ArrowType::Timestamp(..) => long!(dt::TimestampMicrosecondType),
        ArrowType::Duration(_) => long!(dt::DurationMicrosecondType),
        ArrowType::Float32 => {
            let a = array.as_primitive::<dt::Float32Type>();
            Box::new(move |i, seed| {
                let v = a.value(i);
                H::int(if v.is_nan() { 0x7fc0_0000 } else { (v + 0.0).to_bits() as i32 }, seed)
            })
        }
        ArrowType::Float64 => {
            let a = array.as_primitive::<dt::Float64Type>();
            Box::new(move |i, seed| {
                let v = a.value(i);
                H::long(if v.is_nan() { 0x7ff8_0000_0000_0000 } else { (v + 0.0).to_bits() as i64 }, seed)
            })
        }
        ArrowType::Decimal128(precision, _) => {
            let a = array.as_primitive::<dt::Decimal128Type>();
            if *precision <= 18 {
                Box::new(move |i, seed| H::long(a.value(i) as i64, seed))
            } else {
                Box::new(move |i, seed| H::bytes(shortest_bytes(&a.value(i).to_be_bytes()), seed))
            }
        }
        ArrowType::Utf8View => {
            let a = array.as_string_view();
            Box::new(move |i, seed| H::bytes(a.value(i).as_bytes(), seed))
        }
        ArrowType::BinaryView => {
            let a = array.as_binary_view();
            Box::new(move |i, seed| H::bytes(a.value(i), seed))
        }
        ArrowType::List(_) => {
            let a = array.as_list::<i32>();
            let element = value_hasher::<H>(a.values().as_ref())?;
            let offsets = a.value_offsets();
            Box::new(move |i, seed| (offsets[i] as usize..offsets[i + 1] as usize).fold(seed, |h, e| element(e, h)))
        }
        ArrowType::Struct(_) => {
            let fields = array
                .as_struct()
                .columns()
                .iter()
                .map(|c| value_hasher::<H>(c.as_ref()))
                .collect::<Result<Vec<_>, _>>()?;
            Box::new(move |i, seed| fields.iter().fold(seed, |h, field| field(i, h)))
        }
        t => return Err(EvalError::internal(format!("a hash of {t}"))),
    };
    Ok(match array.nulls().filter(|n| n.null_count() > 0) {
        None => values,
        Some(nulls) => Box::new(move |i, seed| if nulls.is_null(i) { seed } else { values(i, seed) }),
    })
}

/// A big-endian number without the leading bytes that only repeat its sign, as Java's `BigInteger.toByteArray`.
fn shortest_bytes(bytes: &[u8; 16]) -> &[u8] {
    let redundant =
        bytes.windows(2).take_while(|w| (w[0] == 0 && w[1] < 0x80) || (w[0] == 0xff && w[1] >= 0x80)).count();
    &bytes[redundant..]
}

/// Murmur3_x86_32.
struct Murmur3;

impl Murmur3 {
    fn mix(h: u32, k: u32) -> u32 {
        let k = k.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
        (h ^ k).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64)
    }

    fn finish(h: u32, len: u32) -> u64 {
        let mut h = h ^ len;
        h = (h ^ (h >> 16)).wrapping_mul(0x85eb_ca6b);
        h = (h ^ (h >> 13)).wrapping_mul(0xc2b2_ae35);
        u64::from(h ^ (h >> 16))
    }
}

impl Hasher for Murmur3 {
    fn int(v: i32, seed: u64) -> u64 {
        Murmur3::finish(Murmur3::mix(seed as u32, v as u32), 4)
    }

    fn long(v: i64, seed: u64) -> u64 {
        let low = Murmur3::mix(seed as u32, v as u32);
        Murmur3::finish(Murmur3::mix(low, (v >> 32) as u32), 8)
    }

    fn bytes(v: &[u8], seed: u64) -> u64 {
        let mut h = seed as u32;
        let words = v.chunks_exact(4);
        let rest = words.remainder();
        for word in words {
            h = Murmur3::mix(h, u32::from_le_bytes(word.try_into().expect("four bytes")));
        }
        for byte in rest {
            h = Murmur3::mix(h, *byte as i8 as u32);
        }
        Murmur3::finish(h, v.len() as u32)
    }
}

const P1: u64 = 0x9e37_79b1_85eb_ca87;
const P2: u64 = 0xc2b2_ae3d_27d4_eb4f;
const P3: u64 = 0x1656_67b1_9e37_79f9;
const P4: u64 = 0x85eb_ca77_c2b2_ae63;
const P5: u64 = 0x27d4_eb2f_1656_67c5;

/// XXH64.
struct XxHash64;

impl XxHash64 {
    fn finish(mut h: u64) -> u64 {
        h = (h ^ (h >> 33)).wrapping_mul(P2);
        h = (h ^ (h >> 29)).wrapping_mul(P3);
        h ^ (h >> 32)
    }

    fn round(acc: u64, word: u64) -> u64 {
        acc.wrapping_add(word.wrapping_mul(P2)).rotate_left(31).wrapping_mul(P1)
    }

    fn take_int(h: u64, v: u32) -> u64 {
        (h ^ u64::from(v).wrapping_mul(P1)).rotate_left(23).wrapping_mul(P2).wrapping_add(P3)
    }

    fn take_long(h: u64, v: u64) -> u64 {
        (h ^ XxHash64::round(0, v)).rotate_left(27).wrapping_mul(P1).wrapping_add(P4)
    }
}

impl Hasher for XxHash64 {
    fn int(v: i32, seed: u64) -> u64 {
        XxHash64::finish(XxHash64::take_int(seed.wrapping_add(P5).wrapping_add(4), v as u32))
    }

    fn long(v: i64, seed: u64) -> u64 {
        XxHash64::finish(XxHash64::take_long(seed.wrapping_add(P5).wrapping_add(8), v as u64))
    }

    fn bytes(v: &[u8], seed: u64) -> u64 {
        let word = |b: &[u8]| u64::from_le_bytes(b.try_into().expect("eight bytes"));
        let stripes = v.chunks_exact(32);
        let mut rest = stripes.remainder();
        let mut h = if v.len() >= 32 {
            let mut acc = [seed.wrapping_add(P1).wrapping_add(P2), seed.wrapping_add(P2), seed, seed.wrapping_sub(P1)];
            for stripe in stripes {
                for (a, lane) in acc.iter_mut().zip(stripe.chunks_exact(8)) {
                    *a = XxHash64::round(*a, word(lane));
                }
            }
            let mut h = acc[0]
                .rotate_left(1)
                .wrapping_add(acc[1].rotate_left(7))
                .wrapping_add(acc[2].rotate_left(12))
                .wrapping_add(acc[3].rotate_left(18));
            for a in acc {
                h = (h ^ XxHash64::round(0, a)).wrapping_mul(P1).wrapping_add(P4);
            }
            h
        } else {
            seed.wrapping_add(P5)
        };
        h = h.wrapping_add(v.len() as u64);
        while let Some((head, tail)) = rest.split_at_checked(8) {
            h = XxHash64::take_long(h, word(head));
            rest = tail;
        }
        if let Some((head, tail)) = rest.split_at_checked(4) {
            h = XxHash64::take_int(h, u32::from_le_bytes(head.try_into().expect("four bytes")));
            rest = tail;
        }
        for byte in rest {
            h = (h ^ u64::from(*byte).wrapping_mul(P5)).rotate_left(11).wrapping_mul(P1);
        }
        XxHash64::finish(h)
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{
        bigint, binary, boolean, date, decimal, decimal_of, double, eval, float, int, null, seconds, smallint, str,
        timestamp, tinyint,
    };

    #[test]
    fn murmur3() {
        let hash = |args: &[crate::testing::Arg]| eval("hash", args);
        for (arg, value) in [
            (int(1), "-559580957"),
            (smallint(1), "-559580957"),
            (boolean(true), "-559580957"),
            (bigint(1), "-1712319331"),
            (str("abc"), "1322437556"),
            (str(""), "142593372"),
            (str("abcde"), "814637928"),
            (str("abcdefgh"), "-804741815"),
            (str("é"), "2119106806"),
            (str("日本語"), "-1143049834"),
            (binary(&[1, 2, 3, 4, 5]), "-2064006189"),
            (null(), "42"),
            (double(1.5), "1290763749"),
            (double(f64::NAN), "-1281358385"),
            (float(1.5), "-221251528"),
            (float(-0.0), "933211791"),
            (decimal("1.5"), "-18083236"),
            (decimal_of("1", 20, 0), "-386724586"),
            (decimal_of("1", 19, 2), "-295670906"),
            (decimal_of("1", 5, 0), "-1712319331"),
            (date("2024-01-01"), "-456589419"),
            (timestamp("2024-01-01 00:00:00"), "1545358984"),
            (seconds(86_400), "892267096"),
        ] {
            assert_eq!(hash(&[arg]), value);
        }
        assert_eq!(hash(&[int(1), str("a")]), "-936062819");
        assert_eq!(hash(&[str("a"), int(1)]), "532252686");
        assert_eq!(hash(&[int(1), null()]), hash(&[int(1)]));
        assert_eq!(hash(&[]), "!WRONG_NUM_ARGS.WITHOUT_SUGGESTION");
    }

    #[test]
    fn xxhash64() {
        let hash = |args: &[crate::testing::Arg]| eval("xxhash64", args);
        for (arg, value) in [
            (int(1), "-6698625589789238999"),
            (boolean(true), "-6698625589789238999"),
            (bigint(1), "-7001672635703045582"),
            (str("abc"), "1423657621850124518"),
            (str(""), "-7444071767201028348"),
            (str("abcde"), "-990457398947679591"),
            (str("abcdefghi"), "-7093207067522615973"),
            (str("a string that is longer than thirty-two bytes"), "183656323002158976"),
            (binary(&[1, 2, 3, 4, 5]), "8668608334415110682"),
            (null(), "42"),
            (double(1.5), "7738255526519901366"),
            (decimal("1.5"), "3132713209420183794"),
            (decimal_of("1", 38, 2), "4409375254388155230"),
        ] {
            assert_eq!(hash(&[arg]), value);
        }
        assert_eq!(hash(&[tinyint(1), smallint(1)]), "9083826852238114423");
        assert_eq!(hash(&[int(1), str("a")]), "8205864924878002737");
    }
}
