//! Where a number stands in a series of bitmaps of 32,768 bits, and how many bits one has. The aggregates that build
//! bitmaps are in `aggregate::bitmap`.

use arrow::datatypes::Int64Type;

use crate::function::{FunctionDef, Param, Ret, scalar};

/// Bytes of a bitmap.
pub(crate) const BITMAP_BYTES: usize = 4096;
const BITS: i64 = 8 * BITMAP_BYTES as i64;

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[
    scalar("bitmap_bit_position", &[Param::BigInt], Ret::BigInt, |c| {
        let v = c.i64(0);
        c.primitive_all::<Int64Type>(|r| match v.get(r) {
            v if v > 0 => (v - 1) % BITS,
            v => v.wrapping_neg() % BITS,
        })
    })
    .doc(
        "Which bit of its bitmap a number is, from 0; positive numbers begin their bitmaps at 1.",
        "bitmap_bit_position(n)",
        "bitmap_bit_position(32769)",
    ),
    scalar("bitmap_bucket_number", &[Param::BigInt], Ret::BigInt, |c| {
        let v = c.i64(0);
        c.primitive_all::<Int64Type>(|r| match v.get(r) {
            v if v > 0 => 1 + (v - 1) / BITS,
            v => v / BITS,
        })
    })
    .doc(
        "Which bitmap a number is in; positive numbers begin at 1.",
        "bitmap_bucket_number(n)",
        "bitmap_bucket_number(32769)",
    ),
    scalar("bitmap_count", &[Param::Exactly(&Param::Binary)], Ret::BigInt, |c| {
        let b = c.bytes(0);
        c.primitive::<Int64Type>(|r| Ok(Some(b.get(r).iter().map(|b| i64::from(b.count_ones())).sum())))
    })
    .doc("Number of bits set in a bitmap.", "bitmap_count(bitmap)", "bitmap_count(X'1010')"),
];

#[cfg(test)]
mod tests {
    use crate::testing::{bigint, binary, eval};

    #[test]
    fn numbers_have_a_bitmap_and_a_bit() {
        for (n, bucket, bit) in
            [(1, "1", "0"), (32_768, "1", "32767"), (32_769, "2", "0"), (0, "0", "0"), (-32_769, "-1", "1")]
        {
            assert_eq!(eval("bitmap_bucket_number", &[bigint(n)]), bucket, "{n}");
            assert_eq!(eval("bitmap_bit_position", &[bigint(n)]), bit, "{n}");
        }
        assert_eq!(eval("bitmap_bit_position", &[bigint(i64::MIN)]), "0");
        assert_eq!(eval("bitmap_count", &[binary(&[0xff, 0x10])]), "9");
    }
}
