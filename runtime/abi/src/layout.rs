//! `repr(C)` layouts shared by Rust and generated code.

/// One input column of a batch, as generated code sees it.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ColumnView {
    /// Values, already advanced to the batch's first row: fixed-width little-endian values, 16-byte [`StringView`]s,
    /// or for BOOLEAN a bitmap (least significant bit first) that starts at `values_bit`.
    pub values: *const u8,
    /// Validity bitmap (bit set: not NULL), or null when the batch has no NULL in this column.
    pub validity: *const u8,
    /// Data buffers that long strings point into; null for other types.
    pub buffers: *const *const u8,
    /// First bit of `values` for BOOLEAN, else 0.
    pub values_bit: u64,
    /// First bit of `validity`.
    pub validity_bit: u64,
}

/// A string or binary value: Arrow's 16-byte view. Up to 12 bytes stand inline after the length; longer ones have a
/// 4-byte prefix, the number of a buffer and an offset in it.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StringView {
    /// Length and the first four bytes (zero-padded).
    pub head: u64,
    /// Inline bytes 4..12 (zero-padded), or buffer number (low half) and offset (high half).
    pub tail: u64,
}

/// One computed output column of a map kernel. Rows are dense: row `i` is the i-th selected row.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct OutputView {
    /// Room for as many values as the batch has rows; BOOLEAN takes one byte (0 or 1) a row.
    pub values: *mut u8,
    /// One byte a row (1: not NULL), or null when the column cannot be NULL.
    pub validity: *mut u8,
}

/// What a map kernel reads and writes beside the columns.
#[repr(C)]
#[derive(Debug)]
pub struct MapCtx {
    /// Out: input rows that passed the predicate; null when there is no predicate.
    pub selection: *mut u32,
    /// In and out: number of rows written so far.
    pub n_selected: u64,
    /// Computed output columns.
    pub outputs: *const OutputView,
    /// Out: number of the expression that failed (index into the kernel's table of fallible expressions).
    pub error_expr: u32,
    /// Out: input row that failed or at which the kernel stopped.
    pub row: u32,
}

/// What an aggregate kernel reads and writes beside the columns. The group table is open addressing with linear
/// probing over `slots`; a slot is 0 when empty, else `(hash & SALT_MASK) | (state row + 1)`.
#[repr(C)]
#[derive(Debug)]
pub struct AggregateCtx {
    /// Hash of each input row's key.
    pub hashes: *const u64,
    /// Slots of the group table, a power of two.
    pub slots: *const u64,
    /// Number of slots less one. A probe starts at `hash & mask`.
    pub mask: u64,
    /// State rows, [`RowLayout::size`] bytes each.
    pub rows: *mut u8,
    /// Bytes that long key strings in state rows point into: their view's `tail` is an offset here.
    pub heap: *const u8,
    /// Out: state row of each input row, or null when nobody asks.
    pub groups: *mut u32,
    /// Out: number of the aggregate that failed.
    pub error_expr: u32,
    /// Out: input row that failed or at which the kernel stopped.
    pub row: u32,
}

/// Upper half of a slot: hash bits that tell most different keys apart without touching the state row.
pub const SALT_MASK: u64 = 0xffff_ffff_0000_0000;

/// How a call of generated code ended.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// All rows are done.
    Done = 0,
    /// The row in the context has a key that is not in the table: insert it and call again from that row.
    Insert = 1,
    /// ARITHMETIC_OVERFLOW (INT and BIGINT).
    ArithmeticOverflow = 2,
    /// DIVIDE_BY_ZERO.
    DivideByZero = 3,
    /// REMAINDER_BY_ZERO.
    RemainderByZero = 4,
    /// CAST_OVERFLOW.
    CastOverflow = 5,
    /// BINARY_ARITHMETIC_OVERFLOW (TINYINT and SMALLINT).
    BinaryArithmeticOverflow = 6,
}

impl Status {
    /// Spark's error condition, for a status that is an error of the data.
    pub fn condition(self) -> Option<&'static str> {
        Some(match self {
            Status::Done | Status::Insert => return None,
            Status::ArithmeticOverflow => "ARITHMETIC_OVERFLOW",
            Status::DivideByZero => "DIVIDE_BY_ZERO",
            Status::RemainderByZero => "REMAINDER_BY_ZERO",
            Status::CastOverflow => "CAST_OVERFLOW",
            Status::BinaryArithmeticOverflow => "BINARY_ARITHMETIC_OVERFLOW",
        })
    }

    /// The status of that number, as generated code returns it.
    pub fn from_raw(raw: i32) -> Option<Status> {
        Some(match raw {
            0 => Status::Done,
            1 => Status::Insert,
            2 => Status::ArithmeticOverflow,
            3 => Status::DivideByZero,
            4 => Status::RemainderByZero,
            5 => Status::CastOverflow,
            6 => Status::BinaryArithmeticOverflow,
            _ => return None,
        })
    }
}

/// Layout of a state row: `[hash u64][key nulls u64][key fields, 8-byte aligned][aggregate words]`. All bytes of a
/// new row are zero before its key is written, so rows compare and copy as bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowLayout {
    /// Byte width of each key field: 1, 2, 4, 8 or 16; each takes a multiple of 8 bytes in the row.
    pub key_widths: Vec<usize>,
    /// Byte offset of each key field.
    pub key_offsets: Vec<usize>,
    /// Byte offset of the state of each aggregate.
    pub agg_offsets: Vec<usize>,
    /// Size of a row, a multiple of 8.
    pub size: usize,
}

impl RowLayout {
    /// Byte offset of the stored hash.
    pub const HASH: usize = 0;
    /// Byte offset of the key null bits (bit k set: key field k is NULL). At most 64 key fields.
    pub const NULLS: usize = 8;

    /// Lays out key fields of these widths, then aggregates of these sizes (multiples of 8).
    pub fn new(key_widths: &[usize], agg_sizes: &[usize]) -> RowLayout {
        let mut at = 16;
        let mut place = |bytes: usize| {
            let offset = at;
            at += bytes.next_multiple_of(8);
            offset
        };
        let key_offsets = key_widths.iter().map(|&w| place(w)).collect();
        let agg_offsets = agg_sizes.iter().map(|&s| place(s)).collect();
        RowLayout { key_widths: key_widths.to_vec(), key_offsets, agg_offsets, size: at }
    }
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    /// Generated code addresses these fields by the same `offset_of`; this pins what a reader of CLIF sees.
    #[test]
    fn offsets_that_generated_code_uses() {
        assert_eq!(size_of::<ColumnView>(), 40);
        assert_eq!(offset_of!(ColumnView, values), 0);
        assert_eq!(offset_of!(ColumnView, validity), 8);
        assert_eq!(offset_of!(ColumnView, buffers), 16);
        assert_eq!(offset_of!(ColumnView, values_bit), 24);
        assert_eq!(offset_of!(ColumnView, validity_bit), 32);
        assert_eq!((size_of::<StringView>(), offset_of!(StringView, tail)), (16, 8));
        assert_eq!((size_of::<OutputView>(), offset_of!(OutputView, validity)), (16, 8));
        assert_eq!(offset_of!(MapCtx, selection), 0);
        assert_eq!(offset_of!(MapCtx, n_selected), 8);
        assert_eq!(offset_of!(MapCtx, outputs), 16);
        assert_eq!(offset_of!(MapCtx, error_expr), 24);
        assert_eq!(offset_of!(MapCtx, row), 28);
        assert_eq!(offset_of!(AggregateCtx, hashes), 0);
        assert_eq!(offset_of!(AggregateCtx, slots), 8);
        assert_eq!(offset_of!(AggregateCtx, mask), 16);
        assert_eq!(offset_of!(AggregateCtx, rows), 24);
        assert_eq!(offset_of!(AggregateCtx, heap), 32);
        assert_eq!(offset_of!(AggregateCtx, groups), 40);
        assert_eq!(offset_of!(AggregateCtx, error_expr), 48);
        assert_eq!(offset_of!(AggregateCtx, row), 52);
    }

    #[test]
    fn rows_are_laid_out_in_words() {
        let layout = RowLayout::new(&[1, 16, 4], &[8, 16]);
        assert_eq!(layout.key_offsets, [16, 24, 40]);
        assert_eq!(layout.agg_offsets, [48, 56]);
        assert_eq!(layout.size, 72);
    }
}
