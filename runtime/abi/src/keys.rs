//! Key columns of a group table: their kinds, and one hash for all the places a key can stand in (a batch's columns,
//! a state row, encoded bytes).
//!
//! A key equals another when each field has the same bytes or both are NULL. What SQL calls equal but has different
//! bytes is made the same before it comes here: the caller turns -0.0 into 0.0 and every NaN into one NaN.

use std::sync::OnceLock;

use crate::layout::{ColumnView, StringView};

/// How a key field stands in a batch's column and in a state row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyKind {
    /// BOOLEAN: a bit in the column, a byte in the row.
    Bit,
    /// A value of 1, 2, 4, 8 or 16 bytes, little endian.
    Fixed(u8),
    /// STRING or BINARY: a [`StringView`] in both; in a row a long one's `tail` is an offset into the table's heap.
    Bytes,
}

impl KeyKind {
    /// Bytes that the field takes in a state row, before padding to 8.
    pub fn width(self) -> usize {
        match self {
            KeyKind::Bit => 1,
            KeyKind::Fixed(width) => width as usize,
            KeyKind::Bytes => 16,
        }
    }

    /// Words of 8 bytes that the field takes in a state row.
    pub(crate) fn words(self) -> usize {
        self.width().div_ceil(8)
    }
}

/// Longest string that a [`StringView`] holds inline.
pub const INLINE_BYTES: usize = 12;

impl StringView {
    /// Number of bytes of the string.
    // A getter of data that may be empty, not of a container.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(self) -> usize {
        self.head as u32 as usize
    }

    /// Whether the bytes stand in a buffer.
    pub fn is_long(self) -> bool {
        self.len() > INLINE_BYTES
    }

    /// The view of `bytes`; `place` is the `tail` of a long one.
    pub fn new(bytes: &[u8], place: u64) -> StringView {
        if bytes.len() <= INLINE_BYTES {
            let mut raw = [0u8; 16];
            raw[..4].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
            raw[4..4 + bytes.len()].copy_from_slice(bytes);
            let (head, tail) = (le_word(&raw[..8]), le_word(&raw[8..]));
            return StringView { head, tail };
        }
        let prefix = le_word(&bytes[..4]);
        StringView { head: u64::from(bytes.len() as u32) | prefix << 32, tail: place }
    }
}

/// Up to 8 bytes as a little-endian word, zero-extended.
pub(crate) fn le_word(bytes: &[u8]) -> u64 {
    let mut word = [0u8; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

impl ColumnView {
    /// Whether the row is NULL.
    ///
    /// # Safety
    /// The view is valid and holds that row.
    #[inline]
    pub unsafe fn is_null(&self, row: usize) -> bool {
        // SAFETY: a validity that is not null has a bit for each row of the view (caller).
        !self.validity.is_null() && unsafe { !bit(self.validity, self.validity_bit as usize + row) }
    }

    /// A BOOLEAN row's value.
    ///
    /// # Safety
    /// The view is a valid BOOLEAN column and holds that row.
    #[inline]
    pub unsafe fn bit(&self, row: usize) -> bool {
        // SAFETY: `values` has a bit for each row of the view (caller).
        unsafe { bit(self.values, self.values_bit as usize + row) }
    }

    /// A fixed-width row's value.
    ///
    /// # Safety
    /// The view is a valid column of values as wide as `T`, any bit pattern of which is a `T`, and holds that row.
    #[inline]
    pub unsafe fn value<T: Copy>(&self, row: usize) -> T {
        // SAFETY: `values` has a `T` for each row of the view (caller); alignment is not assumed.
        unsafe { self.values.cast::<T>().add(row).read_unaligned() }
    }

    /// The bytes of a string that is not inline.
    ///
    /// # Safety
    /// `view` is a long string of this valid string column. The bytes live as long as the batch, which `'a` must not
    /// outlive.
    #[inline]
    pub unsafe fn long_bytes<'a>(&self, view: StringView) -> &'a [u8] {
        let (buffer, offset) = (view.tail as u32 as usize, (view.tail >> 32) as usize);
        // SAFETY: a long view of a valid column names one of its buffers and a range inside it (caller).
        unsafe { std::slice::from_raw_parts((*self.buffers.add(buffer)).add(offset), view.len()) }
    }
}

/// # Safety
/// The bitmap at `bits` holds bit `at`.
#[inline]
unsafe fn bit(bits: *const u8, at: usize) -> bool {
    // SAFETY: the byte holds bit `at` (caller).
    unsafe { *bits.add(at / 8) >> (at % 8) & 1 == 1 }
}

/// The process's secret: keys chosen by an outsider cannot be made to collide. Hashes therefore never leave the
/// process; a restored key is hashed again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seeds {
    start: u64,
    factor: u64,
    null: u64,
}

pub(crate) fn seeds() -> Seeds {
    static SEEDS: OnceLock<Seeds> = OnceLock::new();
    *SEEDS.get_or_init(|| {
        let random = ahash::RandomState::new();
        Seeds { start: random.hash_one(1u64), factor: random.hash_one(2u64) | 1, null: random.hash_one(3u64) }
    })
}

impl Seeds {
    /// The hash of no words.
    #[inline]
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// Takes a NULL into a hash.
    #[inline]
    pub(crate) fn mix_null(&self, hash: u64) -> u64 {
        self.mix(hash, self.null)
    }

    /// Takes a word into a hash.
    #[inline]
    pub(crate) fn mix(&self, hash: u64, word: u64) -> u64 {
        let wide = u128::from(hash ^ word) * u128::from(self.factor);
        wide as u64 ^ (wide >> 64) as u64
    }

    #[inline]
    pub(crate) fn mix_view<'a>(&self, hash: u64, view: StringView, long: impl FnOnce() -> &'a [u8]) -> u64 {
        let hash = self.mix(hash, view.head);
        if view.is_long() { self.mix_bytes(hash, long()) } else { self.mix(hash, view.tail) }
    }

    fn mix_bytes(&self, mut hash: u64, bytes: &[u8]) -> u64 {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            hash = self.mix(hash, u64::from_le_bytes(*word));
        }
        if rest.is_empty() { hash } else { self.mix(hash, le_word(rest)) }
    }

    /// The hash of a key given as encoded fields: `None` for NULL, else the value's bytes.
    pub(crate) fn hash_fields(&self, kinds: &[KeyKind], fields: &[Option<&[u8]>]) -> u64 {
        let mut hash = self.start;
        for (kind, field) in kinds.iter().zip(fields) {
            hash = match (kind, field) {
                (_, None) => self.mix(hash, self.null),
                (KeyKind::Bytes, Some(bytes)) => self.mix_view(hash, StringView::new(bytes, 0), || bytes),
                (_, Some(bytes)) => bytes.chunks(8).fold(hash, |hash, word| self.mix(hash, le_word(word))),
            };
        }
        hash
    }
}

/// Hashes the keys of rows `0..rows` into `out`, whose former content is dropped. `columns` are the key columns, of
/// these kinds; no key columns at all give every row the same hash.
///
/// # Safety
/// Each view is valid, of its kind, and holds `rows` rows.
pub unsafe fn hash_columns(columns: &[ColumnView], kinds: &[KeyKind], rows: usize, out: &mut Vec<u64>) {
    assert_eq!(columns.len(), kinds.len(), "one kind per key column");
    let seeds = seeds();
    out.clear();
    out.resize(rows, seeds.start);
    for (column, kind) in columns.iter().zip(kinds) {
        // SAFETY (all of the match): the caller promises valid views of these kinds with `rows` rows, and `each` asks
        // for rows below `out.len()`.
        match kind {
            KeyKind::Bit => each(column, &seeds, out, |hash, row| {
                // SAFETY: see the match.
                seeds.mix(hash, u64::from(unsafe { column.bit(row) }))
            }),
            KeyKind::Fixed(1) => each(column, &seeds, out, |hash, row| {
                // SAFETY: see the match.
                seeds.mix(hash, u64::from(unsafe { column.value::<u8>(row) }))
            }),
            KeyKind::Fixed(2) => each(column, &seeds, out, |hash, row| {
                // SAFETY: see the match.
                seeds.mix(hash, u64::from(unsafe { column.value::<u16>(row) }))
            }),
            KeyKind::Fixed(4) => each(column, &seeds, out, |hash, row| {
                // SAFETY: see the match.
                seeds.mix(hash, u64::from(unsafe { column.value::<u32>(row) }))
            }),
            KeyKind::Fixed(8) => each(column, &seeds, out, |hash, row| {
                // SAFETY: see the match.
                seeds.mix(hash, unsafe { column.value::<u64>(row) })
            }),
            KeyKind::Fixed(_) => each(column, &seeds, out, |hash, row| {
                // SAFETY: see the match.
                let [low, high] = unsafe { column.value::<[u64; 2]>(row) };
                seeds.mix(seeds.mix(hash, low), high)
            }),
            KeyKind::Bytes => each(column, &seeds, out, |hash, row| {
                // SAFETY: see the match.
                let view = unsafe { column.value::<StringView>(row) };
                // SAFETY: `view` is of this column, and asked for only when it is long.
                seeds.mix_view(hash, view, || unsafe { column.long_bytes(view) })
            }),
        }
    }
}

/// Replaces each row's hash by `mix` of it, or by the mix with NULL.
#[inline]
fn each(column: &ColumnView, seeds: &Seeds, out: &mut [u64], mix: impl Fn(u64, usize) -> u64) {
    if column.validity.is_null() {
        for (row, hash) in out.iter_mut().enumerate() {
            *hash = mix(*hash, row);
        }
        return;
    }
    for (row, hash) in out.iter_mut().enumerate() {
        // SAFETY: `hash_columns`, the only caller, has one entry in `out` per row of the view.
        let null = unsafe { column.is_null(row) };
        *hash = if null { seeds.mix(*hash, seeds.null) } else { mix(*hash, row) };
    }
}
