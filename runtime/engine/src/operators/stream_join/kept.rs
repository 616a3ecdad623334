//! The rows that a stream join keeps of one side: by key, by the moment they expire, and by number.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use ahash::AHashMap;

use crate::operators::codec::put_bytes;

/// Expiry of a row that no watermark expires.
pub const NEVER: i64 = i64::MAX;

/// Records of a snapshot or changelog, each followed by the side and the row's number.
pub const ADDED: u8 = 1;
/// An older row found its first match.
pub const MATCHED: u8 = 2;
/// An older row went before it expired.
pub const DROPPED: u8 = 3;

/// A kept row.
#[derive(Debug)]
pub struct Kept {
    /// `None`: a key with a NULL, which matches nothing.
    key: Option<Arc<[u8]>>,
    /// Place in its key's list.
    place: u32,
    /// All columns, in Arrow's row format.
    pub row: Box<[u8]>,
    /// It has found a match.
    pub matched: bool,
    expiry: i64,
    number: u64,
}

/// Rows of one side. A slot's number is reused; a row's number is not, and is the same after a restart.
#[derive(Debug, Default)]
pub struct KeptRows {
    slots: Vec<Option<Kept>>,
    free: Vec<u32>,
    by_key: AHashMap<Arc<[u8]>, Vec<u32>>,
    /// (expiry, number, slot) of all rows that expire, and of some that went before.
    by_expiry: BinaryHeap<Reverse<(i64, u64, u32)>>,
    next: u64,
    /// Bytes of rows and keys.
    bytes: usize,
    /// (number, slot) of the rows that this micro-batch added.
    added: Vec<(u64, u32)>,
    /// First number that this micro-batch gave.
    first_new: u64,
    /// Numbers of older rows that this micro-batch matched.
    matched: Vec<u64>,
    /// Numbers of older rows that this micro-batch dropped.
    dropped: Vec<u64>,
    /// Slots by number, while state is being restored.
    by_number: Option<AHashMap<u64, u32>>,
}

impl KeptRows {
    /// Keeps a new row.
    pub fn insert(&mut self, key: Option<&[u8]>, row: &[u8], expiry: i64, matched: bool) {
        let number = self.next;
        let slot = self.put(number, key, row, expiry, matched);
        self.added.push((number, slot));
    }

    fn put(&mut self, number: u64, key: Option<&[u8]>, row: &[u8], expiry: i64, matched: bool) -> u32 {
        self.next = self.next.max(number + 1);
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        });
        let mut place = 0;
        let key = key.map(|key| match self.by_key.get_key_value(key) {
            Some((key, _)) => Arc::clone(key),
            None => {
                self.bytes += key.len();
                Arc::from(key)
            }
        });
        if let Some(key) = &key {
            let list = self.by_key.entry(Arc::clone(key)).or_default();
            place = list.len() as u32;
            list.push(slot);
        }
        if expiry != NEVER {
            self.by_expiry.push(Reverse((expiry, number, slot)));
        }
        self.bytes += row.len();
        self.slots[slot as usize] = Some(Kept { key, place, row: row.into(), matched, expiry, number });
        slot
    }

    /// Slots of the rows with that key.
    pub fn with_key(&self, key: &[u8]) -> &[u32] {
        self.by_key.get(key).map_or(&[], Vec::as_slice)
    }

    /// The row of a slot that [`KeptRows::with_key`] gave and that was not dropped since.
    pub fn get(&self, slot: u32) -> &Kept {
        self.slots[slot as usize].as_ref().expect("a key's list holds kept rows")
    }

    /// Notes that the row has a match; tells whether it is the first.
    pub fn set_matched(&mut self, slot: u32) -> bool {
        let kept = self.slots[slot as usize].as_mut().expect("a key's list holds kept rows");
        let first = !std::mem::replace(&mut kept.matched, true);
        if first && kept.number < self.first_new {
            self.matched.push(kept.number);
        }
        first
    }

    /// Drops a row before it expires.
    pub fn drop_row(&mut self, slot: u32) {
        if let Some(kept) = self.remove(slot)
            && kept.number < self.first_new
        {
            self.dropped.push(kept.number);
        }
    }

    fn remove(&mut self, slot: u32) -> Option<Kept> {
        let kept = self.slots[slot as usize].take()?;
        self.free.push(slot);
        self.bytes -= kept.row.len();
        if let Some(key) = &kept.key
            && let Some(list) = self.by_key.get_mut(key)
        {
            list.swap_remove(kept.place as usize);
            match list.get(kept.place as usize) {
                Some(&moved) => {
                    self.slots[moved as usize].as_mut().expect("a key's list holds kept rows").place = kept.place;
                }
                None if list.is_empty() => {
                    self.by_key.remove(key);
                    self.bytes -= key.len();
                }
                None => {}
            }
        }
        Some(kept)
    }

    /// Takes out the rows that expire at or before the watermark, the earliest first. Costs what is taken.
    pub fn expire(&mut self, watermark: i64) -> Vec<Kept> {
        let mut expired = Vec::new();
        while let Some(&Reverse((expiry, number, slot))) = self.by_expiry.peek()
            && expiry <= watermark
        {
            self.by_expiry.pop();
            if self.slots[slot as usize].as_ref().is_some_and(|k| k.number == number) {
                expired.extend(self.remove(slot));
            }
        }
        expired
    }

    /// Begins a micro-batch: what happens from here on is what [`KeptRows::changes`] writes.
    pub fn begin(&mut self) {
        self.added.clear();
        self.matched.clear();
        self.dropped.clear();
        self.first_new = self.next;
        self.by_number = None;
    }

    /// Appends what this micro-batch changed, but for the rows that expire at or before the watermark.
    pub fn changes(&self, side: u8, watermark: i64, out: &mut Vec<u8>) {
        for (kind, numbers) in [(MATCHED, &self.matched), (DROPPED, &self.dropped)] {
            for number in numbers {
                out.extend_from_slice(&[kind, side]);
                out.extend_from_slice(&number.to_le_bytes());
            }
        }
        for &(number, slot) in &self.added {
            if let Some(kept) = &self.slots[slot as usize]
                && kept.number == number
                && kept.expiry > watermark
            {
                kept.encode(side, out);
            }
        }
    }

    /// Appends all rows, in order of number.
    pub fn all(&self, side: u8, out: &mut Vec<u8>) {
        self.in_order().iter().for_each(|k| k.encode(side, out));
    }

    /// All rows, in order of number.
    pub fn in_order(&self) -> Vec<&Kept> {
        let mut rows: Vec<&Kept> = self.slots.iter().flatten().collect();
        rows.sort_unstable_by_key(|k| k.number);
        rows
    }

    /// Keeps a row of a snapshot or changelog under its number.
    pub fn restore(&mut self, number: u64, key: Option<&[u8]>, row: &[u8], expiry: i64, matched: bool) {
        if let Some(slot) = self.slot_of(number) {
            self.remove(slot);
        }
        let slot = self.put(number, key, row, expiry, matched);
        self.numbers().insert(number, slot);
    }

    /// The slot of a row, while state is being restored.
    pub fn slot_of(&mut self, number: u64) -> Option<u32> {
        let slot = *self.numbers().get(&number)?;
        self.slots[slot as usize].as_ref().filter(|k| k.number == number).map(|_| slot)
    }

    fn numbers(&mut self) -> &mut AHashMap<u64, u32> {
        let slots = &self.slots;
        self.by_number.get_or_insert_with(|| {
            slots.iter().enumerate().filter_map(|(i, k)| Some((k.as_ref()?.number, i as u32))).collect()
        })
    }

    /// Rows that this micro-batch added.
    pub fn n_added(&self) -> u64 {
        self.added.len() as u64
    }

    /// Rows kept.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Bytes of memory in use, roughly.
    pub fn memory_bytes(&self) -> usize {
        self.bytes
            + self.slots.capacity() * size_of::<Option<Kept>>()
            + self.by_expiry.capacity() * size_of::<Reverse<(i64, u64, u32)>>()
            + self.by_key.capacity() * size_of::<(Arc<[u8]>, Vec<u32>)>()
            + self.len() * size_of::<u32>()
    }
}

impl Kept {
    /// When it goes, microseconds; [`NEVER`] if no watermark expires it.
    pub fn expiry(&self) -> i64 {
        self.expiry
    }

    fn encode(&self, side: u8, out: &mut Vec<u8>) {
        out.extend_from_slice(&[ADDED, side]);
        out.extend_from_slice(&self.number.to_le_bytes());
        out.push(u8::from(self.matched));
        put_bytes(Some(&self.row), out);
    }
}
