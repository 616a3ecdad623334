//! The group table: keys and aggregate states in fixed-layout rows behind an open-addressing index.
//!
//! Rust inserts, grows and merges; generated code probes and updates in place through an [`AggregateCtx`]. Both follow
//! the layouts of [`crate::layout`]. A table never forgets a single row: a closed window drops its whole table, and
//! [`GroupTable::retain`] rebuilds what is left after an eviction, in time proportional to the table.
//!
//! Row numbers are dense, in order of insertion, and stable until `retain` or `clear`. The aggregate words of a new
//! row are zero. Side data that rows refer to (objects) belongs to the caller.

use std::ops::Range;

use crate::kernel::{AggregateKernel, AggregateRun, KernelError};
use crate::keys::{KeyKind, le_word, seeds};
use crate::layout::{AggregateCtx, ColumnView, RowLayout, SALT_MASK, StringView};

const WORD: usize = 8;
const MIN_SLOTS: usize = 16;
/// Rows ahead of the one in hand whose slots are fetched.
const PREFETCH_ROWS: usize = 16;
/// Below this, a table is taken to be in a near cache and nothing is prefetched.
const PREFETCH_FROM_BYTES: usize = 512 << 10;

/// Groups by key. See the module's comment.
#[derive(Debug, Clone)]
pub struct GroupTable {
    layout: RowLayout,
    kinds: Vec<KeyKind>,
    /// Words of a row, and of its null bits and key fields.
    row_words: usize,
    key_words: usize,
    /// A power of two of slots: 0 when empty, else salt and row + 1.
    slots: Vec<u64>,
    rows: Vec<u64>,
    heap: Vec<u8>,
    scratch: KeyBuffer,
}

/// A key about to be looked up, in the words it has (or would have) in a row, from the null bits on.
#[derive(Debug, Clone, Default)]
struct KeyBuffer {
    words: Vec<u64>,
    /// Long strings: word of the view's tail in `words`, and the bytes.
    long: Vec<(usize, *const [u8])>,
}

// SAFETY: the pointers in `long` are used only inside the call that has put them there, and forgotten by
// `KeyBuffer::begin`.
unsafe impl Send for KeyBuffer {}
// SAFETY: as above; no method reads them through `&GroupTable`.
unsafe impl Sync for KeyBuffer {}

impl KeyBuffer {
    /// Begins a key of `words` words; pointers of the former key are forgotten.
    fn begin(&mut self, words: usize) {
        self.words.clear();
        self.words.resize(words, 0);
        self.long.clear();
    }

    fn put_view<'a>(&mut self, at: usize, view: StringView, long: impl FnOnce() -> &'a [u8]) {
        self.words[at] = view.head;
        if view.is_long() {
            self.long.push((at + 1, long()));
        } else {
            self.words[at + 1] = view.tail;
        }
    }
}

impl GroupTable {
    /// Word of the null bits in a row.
    const NULLS: usize = RowLayout::NULLS / WORD;

    /// An empty table. `kinds` are the key fields that `layout` was made for.
    ///
    /// # Panics
    /// If the widths of `kinds` are not those of `layout`, or there are more than 64 key fields.
    pub fn new(layout: RowLayout, kinds: Vec<KeyKind>) -> GroupTable {
        assert!(kinds.iter().map(|k| k.width()).eq(layout.key_widths.iter().copied()), "kinds fit the layout");
        assert!(kinds.len() <= 64, "one null bit per key field");
        GroupTable {
            row_words: layout.size / WORD,
            key_words: 1 + kinds.iter().map(|k| k.words()).sum::<usize>(),
            layout,
            kinds,
            slots: vec![0; MIN_SLOTS],
            rows: Vec::new(),
            heap: Vec::new(),
            scratch: KeyBuffer::default(),
        }
    }

    /// The layout of its rows.
    pub fn layout(&self) -> &RowLayout {
        &self.layout
    }

    /// The kinds of its key fields.
    pub fn kinds(&self) -> &[KeyKind] {
        &self.kinds
    }

    /// Number of groups.
    pub fn len(&self) -> usize {
        self.rows.len() / self.row_words
    }

    /// Whether there are no groups.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Bytes of memory in use, by capacity.
    pub fn memory_bytes(&self) -> usize {
        (self.slots.capacity() + self.rows.capacity()) * WORD + self.heap.capacity()
    }

    /// Drops all groups and keeps the memory.
    pub fn clear(&mut self) {
        self.slots.fill(0);
        self.rows.clear();
        self.heap.clear();
    }

    /// Makes room for that many further groups.
    pub fn reserve(&mut self, groups: usize) {
        self.rows.reserve(groups * self.row_words);
        let slots = slots_for(self.len() + groups);
        if slots > self.slots.len() {
            self.index(slots);
        }
    }

    // ---- lookup and insertion ----

    /// Finds or inserts the keys of rows `range` and writes each one's group to `groups[row]`. `columns` are the key
    /// columns, `hashes` the result of [`crate::hash_columns`] over them. Returns how many groups are new.
    ///
    /// # Safety
    /// Each view is valid, of its key's kind, and holds the rows of `range`.
    ///
    /// # Panics
    /// If `hashes` or `groups` do not hold the rows of `range`, or the table would pass 2^31 groups.
    pub unsafe fn find_or_insert(
        &mut self,
        columns: &[ColumnView],
        hashes: &[u64],
        range: Range<usize>,
        groups: &mut [u32],
    ) -> usize {
        let before = self.len();
        let ahead = self.memory_bytes() >= PREFETCH_FROM_BYTES;
        for row in range {
            if ahead && let Some(&hash) = hashes.get(row + PREFETCH_ROWS) {
                self.prefetch_slot(hash);
            }
            // SAFETY: the caller's promise holds for each row of the range.
            groups[row] = unsafe { self.insert(columns, row, hashes[row]) }.0;
        }
        self.len() - before
    }

    /// Finds or inserts the key of one row; tells whether the group is new.
    ///
    /// # Safety
    /// Each view is valid, of its key's kind, and holds the row.
    pub unsafe fn insert(&mut self, columns: &[ColumnView], row: usize, hash: u64) -> (u32, bool) {
        assert_eq!(columns.len(), self.kinds.len(), "one column per key field");
        self.scratch.begin(self.key_words);
        let mut at = 1;
        for (k, (column, kind)) in columns.iter().zip(&self.kinds).enumerate() {
            // SAFETY: views are valid, of these kinds, and hold the row (caller).
            unsafe {
                if column.is_null(row) {
                    self.scratch.words[0] |= 1 << k;
                } else {
                    match kind {
                        KeyKind::Bit => self.scratch.words[at] = u64::from(column.bit(row)),
                        KeyKind::Fixed(1) => self.scratch.words[at] = u64::from(column.value::<u8>(row)),
                        KeyKind::Fixed(2) => self.scratch.words[at] = u64::from(column.value::<u16>(row)),
                        KeyKind::Fixed(4) => self.scratch.words[at] = u64::from(column.value::<u32>(row)),
                        KeyKind::Fixed(8) => self.scratch.words[at] = column.value::<u64>(row),
                        KeyKind::Fixed(_) => {
                            self.scratch.words[at..at + 2].copy_from_slice(&column.value::<[u64; 2]>(row));
                        }
                        KeyKind::Bytes => {
                            let view = column.value::<StringView>(row);
                            self.scratch.put_view(at, view, || column.long_bytes(view));
                        }
                    }
                }
            }
            at += kind.words();
        }
        self.find_or_insert_scratch(hash)
    }

    /// Finds or inserts a key given as encoded fields (`None`: NULL; else the value's little-endian bytes, or the
    /// string's bytes), as [`GroupTable::key`] reads them back. This is how persisted state comes in again.
    ///
    /// # Panics
    /// If the number of fields, or the width of one, is not the table's.
    pub fn insert_key(&mut self, fields: &[Option<&[u8]>]) -> (u32, bool) {
        let hash = self.load_fields(fields);
        self.find_or_insert_scratch(hash)
    }

    /// The group of a key given as for [`GroupTable::insert_key`].
    pub fn find_key(&mut self, fields: &[Option<&[u8]>]) -> Option<u32> {
        let hash = self.load_fields(fields);
        self.probe(hash).ok()
    }

    /// Finds or inserts the keys of these rows of `other`, a table of the same key kinds, and appends each one's group
    /// here to `groups`. Aggregate states are not touched: merging them is the aggregates' part.
    pub fn merge_keys(&mut self, other: &GroupTable, rows: &[u32], groups: &mut Vec<u32>) {
        assert_eq!(self.kinds, other.kinds, "tables of the same keys");
        groups.reserve(rows.len());
        let ahead = self.memory_bytes() >= PREFETCH_FROM_BYTES;
        for (i, &row) in rows.iter().enumerate() {
            if ahead && let Some(&next) = rows.get(i + PREFETCH_ROWS) {
                self.prefetch_slot(other.hash(next));
            }
            self.load_row(other, row, 0, 0);
            groups.push(self.find_or_insert_scratch(other.hash(row)).0);
        }
    }

    /// The hash that a row's key has without its first `skip` fields, as a table of the other fields knows it.
    pub fn hash_of_rest(&self, row: u32, skip: usize) -> u64 {
        let words = &self.rows[row as usize * self.row_words + Self::NULLS..];
        let mut at = 1 + self.kinds[..skip].iter().map(|k| k.words()).sum::<usize>();
        let seeds = seeds();
        let mut hash = seeds.start();
        for (k, kind) in self.kinds.iter().enumerate().skip(skip) {
            let value = &words[at..at + kind.words()];
            hash = match kind {
                _ if words[0] >> k & 1 == 1 => seeds.mix_null(hash),
                KeyKind::Bytes => {
                    let view = StringView { head: value[0], tail: value[1] };
                    seeds.mix_view(hash, view, || self.heap_bytes(view))
                }
                _ => value.iter().fold(hash, |hash, &word| seeds.mix(hash, word)),
            };
            at += kind.words();
        }
        hash
    }

    /// As [`GroupTable::merge_keys`], from a table whose keys have `skip` further fields in front, which are left out.
    /// `hashes` holds for each of the rows what [`GroupTable::hash_of_rest`] says.
    pub fn merge_rest_of_keys(
        &mut self,
        other: &GroupTable,
        rows: &[u32],
        hashes: &[u64],
        skip: usize,
        groups: &mut Vec<u32>,
    ) {
        assert_eq!(self.kinds[..], other.kinds[skip..], "tables of the same keys behind the first");
        let skip_words: usize = other.kinds[..skip].iter().map(|k| k.words()).sum();
        groups.reserve(rows.len());
        let ahead = self.memory_bytes() >= PREFETCH_FROM_BYTES;
        for (i, (&row, &hash)) in rows.iter().zip(hashes).enumerate() {
            if ahead && let Some(&next) = hashes.get(i + PREFETCH_ROWS) {
                self.prefetch_slot(next);
            }
            self.load_row(other, row, skip, skip_words);
            groups.push(self.find_or_insert_scratch(hash).0);
        }
    }

    /// The groups here of all keys of `other`, a table of the same key kinds: appends (group there, group here) of
    /// those that are found.
    pub fn find_keys(&mut self, other: &GroupTable, found: &mut Vec<(u32, u32)>) {
        assert_eq!(self.kinds, other.kinds, "tables of the same keys");
        for row in 0..other.len() as u32 {
            self.load_row(other, row, 0, 0);
            if let Ok(here) = self.probe(other.hash(row)) {
                found.push((row, here));
            }
        }
    }

    /// Makes a row's key the one in `scratch`, without its first `skip` fields, which take `skip_words`.
    fn load_row(&mut self, other: &GroupTable, row: u32, skip: usize, skip_words: usize) {
        self.scratch.begin(self.key_words);
        let words = &other.rows[row as usize * other.row_words + Self::NULLS..];
        self.scratch.words[0] = words[0].checked_shr(skip as u32).unwrap_or(0);
        self.scratch.words[1..].copy_from_slice(&words[1 + skip_words..skip_words + self.key_words]);
        let mut at = 1;
        for kind in &self.kinds {
            if *kind == KeyKind::Bytes {
                let view = StringView { head: self.scratch.words[at], tail: self.scratch.words[at + 1] };
                self.scratch.words[at + 1] = 0;
                self.scratch.put_view(at, view, || other.heap_bytes(view));
            }
            at += kind.words();
        }
    }

    fn load_fields(&mut self, fields: &[Option<&[u8]>]) -> u64 {
        assert_eq!(fields.len(), self.kinds.len(), "one value per key field");
        self.scratch.begin(self.key_words);
        let mut at = 1;
        for (k, (field, kind)) in fields.iter().zip(&self.kinds).enumerate() {
            match (field, kind) {
                (None, _) => self.scratch.words[0] |= 1 << k,
                (Some(bytes), KeyKind::Bytes) => self.scratch.put_view(at, StringView::new(bytes, 0), || bytes),
                (Some(bytes), _) => {
                    assert_eq!(bytes.len(), kind.width(), "a value as wide as its field");
                    for (word, chunk) in self.scratch.words[at..].iter_mut().zip(bytes.chunks(WORD)) {
                        *word = le_word(chunk);
                    }
                }
            }
            at += kind.words();
        }
        seeds().hash_fields(&self.kinds, fields)
    }

    fn find_or_insert_scratch(&mut self, hash: u64) -> (u32, bool) {
        let slot = match self.probe(hash) {
            Ok(row) => return (row, false),
            Err(slot) => slot,
        };
        let row = self.len();
        assert!(row < 1 << 31, "a table holds at most 2^31 groups");
        let words = &mut self.scratch.words;
        for &(at, bytes) in &self.scratch.long {
            words[at] = self.heap.len() as u64;
            // SAFETY: the bytes belong to the batch, fields or table of the public call that we are in.
            self.heap.extend_from_slice(unsafe { &*bytes });
        }
        self.rows.push(hash);
        self.rows.extend_from_slice(words);
        self.rows.resize((row + 1) * self.row_words, 0);
        self.slots[slot] = hash & SALT_MASK | (row as u64 + 1);
        if slots_for(row + 1) > self.slots.len() {
            self.index(self.slots.len() * 2);
        }
        (row as u32, true)
    }

    /// The row of the key in `scratch`, or the empty slot where it would go.
    fn probe(&self, hash: u64) -> Result<u32, usize> {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return Err(at);
            }
            let row = (slot as u32).wrapping_sub(1);
            if (slot ^ hash) & SALT_MASK == 0 && self.holds_scratch(row) {
                return Ok(row);
            }
            at = (at + 1) & mask;
        }
    }

    fn holds_scratch(&self, row: u32) -> bool {
        let start = row as usize * self.row_words + Self::NULLS;
        let words = &self.rows[start..start + self.key_words];
        let key = &self.scratch;
        if key.long.is_empty() {
            return words == key.words;
        }
        // The tail of a long string is a place, not a value: compare around it, then the bytes.
        let mut done = 0;
        key.long.iter().all(|&(at, bytes)| {
            let same = words[done..at] == key.words[done..at];
            done = at + 1;
            let view = StringView { head: words[at - 1], tail: words[at] };
            // SAFETY: the bytes belong to the batch, fields or table of the public call that we are in.
            same && self.heap_bytes(view) == unsafe { &*bytes }
        }) && words[done..] == key.words[done..]
    }

    /// Rebuilds the index with that many slots.
    fn index(&mut self, slots: usize) {
        self.slots.clear();
        self.slots.resize(slots, 0);
        let mask = slots - 1;
        for (row, words) in self.rows.chunks_exact(self.row_words).enumerate() {
            let hash = words[0];
            let mut at = hash as usize & mask;
            while self.slots[at] != 0 {
                at = (at + 1) & mask;
            }
            self.slots[at] = hash & SALT_MASK | (row as u64 + 1);
        }
    }

    fn prefetch_slot(&self, hash: u64) {
        prefetch(&self.slots[hash as usize & (self.slots.len() - 1)]);
    }

    // ---- rows ----

    /// The hash of a group's key.
    pub fn hash(&self, row: u32) -> u64 {
        self.rows[row as usize * self.row_words]
    }

    /// The bytes of a row.
    pub fn row(&self, row: u32) -> &[u8] {
        let start = row as usize * self.row_words;
        as_bytes(&self.rows[start..start + self.row_words])
    }

    /// The bytes of a row, to change its aggregate words. The hash and key must stay as they are, or later lookups
    /// miss the row.
    pub fn row_mut(&mut self, row: u32) -> &mut [u8] {
        let start = row as usize * self.row_words;
        as_bytes_mut(&mut self.rows[start..start + self.row_words])
    }

    /// All rows in order.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.rows.chunks_exact(self.row_words).map(as_bytes)
    }

    /// The bytes of all rows, and the size of one.
    pub fn bytes(&self) -> (&[u8], usize) {
        (as_bytes(&self.rows), self.layout.size)
    }

    /// The bytes of all rows, to change aggregate words as [`GroupTable::row_mut`] does, and the size of one.
    pub fn bytes_mut(&mut self) -> (&mut [u8], usize) {
        (as_bytes_mut(&mut self.rows), self.layout.size)
    }

    /// Value of a key field: `None` for NULL; else its little-endian bytes, or the string's bytes.
    pub fn key(&self, row: u32, field: usize) -> Option<&[u8]> {
        let bytes = self.row(row);
        let nulls = le_word(&bytes[RowLayout::NULLS..RowLayout::NULLS + WORD]);
        if nulls >> field & 1 == 1 {
            return None;
        }
        let at = self.layout.key_offsets[field];
        if self.kinds[field] != KeyKind::Bytes {
            return Some(&bytes[at..at + self.layout.key_widths[field]]);
        }
        let view = StringView { head: le_word(&bytes[at..at + 8]), tail: le_word(&bytes[at + 8..at + 16]) };
        Some(if view.is_long() { self.heap_bytes(view) } else { &bytes[at + 4..at + 4 + view.len()] })
    }

    /// Bytes of a long string of a row of ours.
    fn heap_bytes(&self, view: StringView) -> &[u8] {
        let at = view.tail as usize;
        &self.heap[at..at + view.len()]
    }

    /// Keeps the rows that `keep` says and renumbers them in their order; returns how many are gone. `keep` sees every
    /// row once, in order, before anything is changed.
    pub fn retain(&mut self, mut keep: impl FnMut(&GroupTable, u32) -> bool) -> usize {
        let before = self.len();
        let kept: Vec<u32> = (0..before as u32).filter(|&row| keep(self, row)).collect();
        if kept.len() == before {
            return 0;
        }
        let mut heap = Vec::new();
        for (to, &from) in kept.iter().enumerate() {
            let from = from as usize * self.row_words;
            let to = to * self.row_words;
            self.rows.copy_within(from..from + self.row_words, to);
            let mut at = to + Self::NULLS + 1;
            for kind in &self.kinds {
                if *kind == KeyKind::Bytes {
                    let view = StringView { head: self.rows[at], tail: self.rows[at + 1] };
                    if view.is_long() {
                        self.rows[at + 1] = heap.len() as u64;
                        heap.extend_from_slice(&self.heap[view.tail as usize..view.tail as usize + view.len()]);
                    }
                }
                at += kind.words();
            }
        }
        self.heap = heap;
        self.rows.truncate(kept.len() * self.row_words);
        self.rows.shrink_to(2 * self.rows.len());
        let slots = slots_for(kept.len());
        if slots < self.slots.len() / 2 {
            self.slots = Vec::new();
        }
        self.index(slots.max(self.slots.len() / 2));
        before - kept.len()
    }

    // ---- generated code ----

    /// What an aggregate kernel works on: the table's pointers with these hashes and, if wanted, the place for the
    /// group of each row. It is good until the table is next changed.
    ///
    /// # Panics
    /// If `groups` is shorter than `hashes`.
    pub fn context(&mut self, hashes: &[u64], groups: Option<&mut [u32]>) -> AggregateCtx {
        assert!(groups.as_ref().is_none_or(|g| g.len() >= hashes.len()), "a group per row");
        AggregateCtx {
            hashes: hashes.as_ptr(),
            slots: self.slots.as_ptr(),
            mask: self.slots.len() as u64 - 1,
            rows: self.rows.as_mut_ptr().cast(),
            heap: self.heap.as_ptr(),
            groups: groups.map_or(std::ptr::null_mut(), <[u32]>::as_mut_ptr),
            error_expr: 0,
            row: 0,
        }
    }

    /// Runs an aggregate kernel over all rows of a batch, inserting the keys that it misses. `columns` are all input
    /// columns, `keys` those of them that are the key. Where keys are missed one after another the next rows' keys are
    /// inserted with them, so that a batch of new keys is not one call per row.
    ///
    /// # Safety
    /// As for [`AggregateKernel::run`], with `hashes.len()` rows; the kernel was compiled for this layout, and `keys`
    /// are of the table's kinds.
    pub unsafe fn run(
        &mut self,
        kernel: &dyn AggregateKernel,
        columns: &[ColumnView],
        keys: &[u32],
        hashes: &[u64],
        mut groups: Option<&mut [u32]>,
    ) -> Result<(), KernelError> {
        const FEWEST: usize = 8;
        const MOST: usize = 1024;
        let rows = hashes.len();
        let keys: Vec<ColumnView> = keys.iter().map(|&k| columns[k as usize]).collect();
        let (mut first, mut block) = (0, FEWEST);
        loop {
            let mut ctx = self.context(hashes, groups.as_deref_mut());
            // SAFETY: the context is fresh and the rest is the caller's promise.
            match unsafe { kernel.run(&mut ctx, columns, first, rows) }? {
                AggregateRun::Done => return Ok(()),
                AggregateRun::Insert(missing) => first = missing as usize,
            }
            let end = rows.min(first + block);
            let before = self.len();
            for (row, &hash) in hashes.iter().enumerate().take(end).skip(first) {
                // SAFETY: the key columns are views of the caller's columns, of the table's kinds.
                unsafe { self.insert(&keys, row, hash) };
            }
            let mostly_new = (self.len() - before) * 4 >= end - first;
            block = if mostly_new { MOST.min(block * 2) } else { FEWEST };
        }
    }
}

/// The smallest index for that many rows: at most half of the slots are taken, as each further probe is a branch that is
/// hard to guess.
fn slots_for(rows: usize) -> usize {
    (rows * 2).next_power_of_two().max(MIN_SLOTS)
}

fn as_bytes(words: &[u64]) -> &[u8] {
    // SAFETY: a u64 is 8 initialised bytes, and bytes have no alignment.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), words.len() * WORD) }
}

fn as_bytes_mut(words: &mut [u64]) -> &mut [u8] {
    // SAFETY: as for `as_bytes`; every pattern of 8 bytes is a u64.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), words.len() * WORD) }
}

/// Asks the processor to bring the value's cache line near. No effect where it has no such request.
#[inline]
pub fn prefetch<T>(place: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing and may be given any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = place;
}
