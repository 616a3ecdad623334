//! Bitmaps of 32,768 bits, for exact distinct counts that can be put together later: `bitmap_construct_agg`,
//! `bitmap_or_agg`, `bitmap_and_agg`. The functions that tell a number's bitmap and bit are in `functions::bitmaps`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryViewBuilder};
use arrow::datatypes::Int64Type;

use super::{Aggregate, SKIP, SlotType, StateRows, codec};
use crate::error::{DecodeError, EvalError};
use crate::function::{FunctionDef, NullRule, Param, Ret, aggregate};
use crate::functions::bitmaps::BITMAP_BYTES;

/// BINARY, and nothing that would have to be made one.
const BYTES: Param = Param::Exactly(&Param::Binary);

/// Entries of this family.
pub const TABLE: &[FunctionDef] =
    &[
        aggregate("bitmap_construct_agg", &[Param::BigInt], Ret::Binary, |_| Ok(Arc::new(Bitmaps(How::Construct))))
            .nulls(NullRule::Never)
            .doc(
                "A bitmap of the positions given; a position outside of 0 to 32767 is an error.",
                "bitmap_construct_agg(position)",
                "",
            ),
        aggregate("bitmap_or_agg", &[BYTES], Ret::Binary, |_| Ok(Arc::new(Bitmaps(How::Or))))
            .nulls(NullRule::Never)
            .doc("The bits that any of the bitmaps has; none of no bitmaps.", "bitmap_or_agg(bitmap)", ""),
        aggregate("bitmap_and_agg", &[BYTES], Ret::Binary, |_| Ok(Arc::new(Bitmaps(How::And))))
            .nulls(NullRule::Never)
            .doc("The bits that all of the bitmaps have; all bits of no bitmaps.", "bitmap_and_agg(bitmap)", ""),
    ];

#[derive(Debug, Clone, Copy, PartialEq)]
enum How {
    Construct,
    Or,
    And,
}

#[derive(Debug)]
struct Bitmap(Box<[u8; BITMAP_BYTES]>);

crate::object_state!(Bitmap, |_b| BITMAP_BYTES);

#[derive(Debug)]
struct Bitmaps(How);

impl Bitmaps {
    fn empty(&self) -> Bitmap {
        Bitmap(Box::new([if self.0 == How::And { 0xff } else { 0 }; BITMAP_BYTES]))
    }

    /// Takes in a bitmap; what it lacks at its end is zero, what it has too many is passed over.
    fn combine(&self, bitmap: &mut Bitmap, with: &[u8]) {
        let with = &with[..with.len().min(BITMAP_BYTES)];
        let (head, tail) = bitmap.0.split_at_mut(with.len());
        for (a, b) in head.iter_mut().zip(with) {
            *a = if self.0 == How::And { *a & b } else { *a | b };
        }
        if self.0 == How::And {
            tail.fill(0);
        }
    }
}

impl Aggregate for Bitmaps {
    fn slots(&self) -> &[SlotType] {
        &[SlotType::Object]
    }

    fn update(&self, rows: &mut StateRows<'_>, groups: &[u32], args: &[ArrayRef]) -> Result<(), EvalError> {
        let column = &args[0];
        for (row, g) in groups.iter().enumerate().filter(|(row, g)| **g != SKIP && column.is_valid(*row)) {
            let bitmap = rows.object_or(*g, 0, || self.empty());
            if self.0 == How::Construct {
                let position = column.as_primitive::<Int64Type>().value(row);
                let at = usize::try_from(position).ok().filter(|p| *p < 8 * BITMAP_BYTES).ok_or_else(|| {
                    let last = 8 * BITMAP_BYTES - 1;
                    let message = format!("A position in a bitmap is 0 to {last}, not {position}.");
                    EvalError::new("INVALID_BITMAP_POSITION", message).at_row(row)
                })?;
                bitmap.0[at / 8] |= 1 << (at % 8);
            } else {
                self.combine(bitmap, column.as_binary_view().value(row));
            }
        }
        Ok(())
    }

    fn merge(
        &self,
        dst: &mut StateRows<'_>,
        dst_groups: &[u32],
        src: &StateRows<'_>,
        src_groups: &[u32],
    ) -> Result<(), EvalError> {
        for (d, s) in dst_groups.iter().zip(src_groups) {
            if let Some(theirs) = src.object::<Bitmap>(*s, 0) {
                self.combine(dst.object_or(*d, 0, || self.empty()), theirs.0.as_slice());
            }
        }
        Ok(())
    }

    fn finish(&self, rows: &StateRows<'_>, groups: &[u32]) -> Result<ArrayRef, EvalError> {
        let mut out = BinaryViewBuilder::with_capacity(groups.len());
        for g in groups {
            match rows.object::<Bitmap>(*g, 0) {
                Some(bitmap) => out.append_value(bitmap.0.as_slice()),
                None => out.append_value(self.empty().0.as_slice()),
            }
        }
        Ok(Arc::new(out.finish()))
    }

    fn encode(&self, rows: &StateRows<'_>, row: u32, out: &mut Vec<u8>) {
        codec::put_bytes(out, rows.object::<Bitmap>(row, 0).map_or(&[], |b| b.0.as_slice()));
    }

    fn decode(&self, rows: &mut StateRows<'_>, row: u32, input: &mut &[u8]) -> Result<(), DecodeError> {
        let bytes = codec::get_bytes(input)?;
        if bytes.is_empty() {
            return Ok(());
        }
        let bits: [u8; BITMAP_BYTES] =
            bytes.try_into().map_err(|_| DecodeError(format!("a bitmap of {} bytes", bytes.len())))?;
        rows.object_or(row, 0, || Bitmap(Box::new(bits)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{BinaryViewArray, Int64Array};
    use ssql_ir::DataType as T;

    use super::*;
    use crate::testing::{agg_call, check_aggregate};

    #[test]
    fn bitmaps_merge_and_store() {
        let positions: ArrayRef = Arc::new(Int64Array::from(vec![Some(0), Some(9), None, Some(9)]));
        let built = check_aggregate(&agg_call("bitmap_construct_agg", &[T::Int64], false), &[positions]);
        assert!(built.starts_with("\u{1}\u{2}\0"), "{built:?}");
        let bitmaps: ArrayRef = Arc::new(BinaryViewArray::from_iter(vec![Some(&[0x41u8, 1][..]), None, Some(&[0x61])]));
        let or = check_aggregate(&agg_call("bitmap_or_agg", &[T::Binary], false), std::slice::from_ref(&bitmaps));
        assert!(or.starts_with("a\u{1}\0"), "{or:?}");
        let and = check_aggregate(&agg_call("bitmap_and_agg", &[T::Binary], false), &[bitmaps]);
        assert!(and.starts_with("A\0"), "{and:?}");
        let outside: ArrayRef = Arc::new(Int64Array::from(vec![32_768]));
        let call = agg_call("bitmap_construct_agg", &[T::Int64], false);
        assert_eq!(check_aggregate(&call, &[outside]), "!INVALID_BITMAP_POSITION");
    }
}
