//! Groups in memory: a table of state rows with what does not fit in them, ordered by when the groups are finished.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;
use ssql_abi::{GroupTable, KeyKind, RowLayout};
use ssql_ir::{CloseRule, DataType};
use ssql_stdlib::aggregate::{Aggregate, Objects, StateRows};

use crate::error::{EngineError, Result};

/// A table of groups and the side objects of their aggregates.
pub struct Groups {
    /// Keys and fixed-size state.
    pub table: GroupTable,
    /// State of variable size, which rows refer to.
    pub objects: Objects,
}

impl Groups {
    /// No groups yet.
    pub fn new(layout: &RowLayout, kinds: &[KeyKind]) -> Groups {
        Groups { table: GroupTable::new(layout.clone(), kinds.to_vec()), objects: Objects::default() }
    }

    /// The rows as aggregate `agg` sees them.
    pub fn state(&mut self, agg: usize) -> StateRows<'_> {
        let offset = self.table.layout().agg_offsets[agg];
        let (bytes, row_size) = self.table.bytes_mut();
        StateRows { bytes, row_size, offset, objects: &mut self.objects }
    }

    /// As [`Groups::merge`], from groups whose keys have `skip` further fields in front, which are left out; `hashes`
    /// are those of the rest of each key.
    pub fn merge_rest(
        &mut self,
        from: &mut Groups,
        (rows, hashes): (&[u32], &[u64]),
        skip: usize,
        aggs: &[Arc<dyn Aggregate>],
        places: &mut Vec<u32>,
    ) -> Result<()> {
        places.clear();
        self.table.merge_rest_of_keys(&from.table, rows, hashes, skip, places);
        for (i, agg) in aggs.iter().enumerate() {
            agg.merge(&mut self.state(i), places, &from.state(i), rows)?;
        }
        Ok(())
    }

    /// Takes up these groups of another table of the same operator; `places` becomes the group here of each.
    pub fn merge(
        &mut self,
        from: &mut Groups,
        rows: &[u32],
        aggs: &[Arc<dyn Aggregate>],
        places: &mut Vec<u32>,
    ) -> Result<()> {
        places.clear();
        self.table.merge_keys(&from.table, rows, places);
        for (i, agg) in aggs.iter().enumerate() {
            agg.merge(&mut self.state(i), places, &from.state(i), rows)?;
        }
        Ok(())
    }
}

/// Fewer partial groups than this are merged on one thread.
const WORTH_A_THREAD: usize = 4096;

/// Which part of the state a key belongs to. The low half of the hash finds its slot within a table.
pub fn partition_of(hash: u64, n_partitions: usize) -> usize {
    (hash >> 32) as usize % n_partitions
}

/// Takes up partial groups into the partitions of a state, in order. `split` gives what each partition is to take of
/// a partial. Partitions work at the same time, each going through the partials in their order; a partial is lent to
/// one of them at a time, so that they follow each other like the stages of a pipe.
pub fn merge_partials<P: Send, S: Send + Sync>(
    partitions: &mut [P],
    partials: Vec<Groups>,
    split: impl Fn(&Groups) -> Vec<S> + Sync,
    merge: impl Fn(&mut P, &mut Groups, &S) -> Result<()> + Sync,
) -> Result<()> {
    let groups: usize = partials.iter().map(|p| p.table.len()).sum();
    let split = |partial: Groups| {
        let shares = split(&partial);
        (Mutex::new(partial), shares)
    };
    let take = |(i, partition): (usize, &mut P), partials: &[(Mutex<Groups>, Vec<S>)]| {
        partials.iter().try_for_each(|(partial, shares)| {
            let mut partial = partial.lock().unwrap_or_else(PoisonError::into_inner);
            merge(partition, &mut partial, &shares[i])
        })
    };
    if groups < WORTH_A_THREAD {
        let partials: Vec<_> = partials.into_iter().map(split).collect();
        return partitions.iter_mut().enumerate().try_for_each(|p| take(p, &partials));
    }
    let partials: Vec<_> = partials.into_par_iter().map(split).collect();
    partitions.par_iter_mut().enumerate().try_for_each(|p| take(p, &partials))
}

/// How a type stands in a state row.
pub fn key_kind(data_type: &DataType) -> Result<KeyKind> {
    Ok(match data_type {
        DataType::Boolean => KeyKind::Bit,
        DataType::String | DataType::Binary => KeyKind::Bytes,
        other => match other.fixed_width() {
            Some(width) => KeyKind::Fixed(width as u8),
            None => return Err(EngineError::internal(format!("{other} is no key type as it is"))),
        },
    })
}

/// Groups that were added or changed since the marks were last taken.
#[derive(Debug, Default)]
pub struct Marks {
    bits: Vec<u64>,
    rows: Vec<u32>,
}

impl Marks {
    /// Marks a group.
    pub fn set(&mut self, row: u32) {
        let (word, bit) = (row as usize / 64, 1 << (row % 64));
        if word >= self.bits.len() {
            self.bits.resize(word + 1, 0);
        }
        if self.bits[word] & bit == 0 {
            self.bits[word] |= bit;
            self.rows.push(row);
        }
    }

    /// The marked groups, in the order in which they were marked.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// Forgets all marks.
    pub fn clear(&mut self) {
        for &row in &self.rows {
            self.bits[row as usize / 64] = 0;
        }
        self.rows.clear();
    }
}

/// Groups that are finished at about the same time, in one table that is dropped whole.
pub struct Bucket {
    /// The groups.
    pub groups: Groups,
    /// Those that this micro-batch changed.
    pub changed: Marks,
}

impl Bucket {
    /// Memory of the table and its side objects, bytes.
    pub fn memory_bytes(&self) -> usize {
        self.groups.table.memory_bytes() + self.groups.objects.heap_bytes()
    }
}

/// When groups are finished, by a field of their key.
#[derive(Debug, Clone, Copy)]
pub struct Closing {
    /// Key field: a TIMESTAMP.
    pub field: usize,
    /// Added to it, microseconds.
    pub add: i64,
    /// Groups whose end falls into the same span of this length share a table, microseconds.
    pub span: i64,
}

impl Closing {
    /// The rule over key fields, from the rule over input columns. Windows have a table each; groups by a plain event
    /// time share one for ten seconds' worth.
    pub fn new(rule: &CloseRule, keys: &[u32]) -> Result<Closing> {
        let field = keys
            .iter()
            .position(|&k| k == rule.column)
            .ok_or_else(|| EngineError::internal("the column that finishes a group is none of its keys"))?;
        let span = if rule.add_micros > 0 { rule.add_micros } else { 10_000_000 };
        Ok(Closing { field, add: rule.add_micros, span })
    }

    /// When the group is finished; `None` (NULL): never.
    pub fn end(&self, table: &GroupTable, row: u32) -> Option<i64> {
        let bytes = table.key(row, self.field)?;
        Some(i64::from_le_bytes(bytes.try_into().ok()?).saturating_add(self.add))
    }

    /// The bucket of groups that are finished at `end`: the last moment of its span is `bucket * span`.
    pub fn bucket(&self, end: Option<i64>) -> i64 {
        end.map_or(NEVER, |end| end.saturating_sub(1).div_euclid(self.span) + 1)
    }
}

/// The bucket of groups that no watermark finishes.
pub const NEVER: i64 = i64::MAX;

/// All groups of one partition of an operator's state.
pub struct Buckets {
    layout: RowLayout,
    kinds: Vec<KeyKind>,
    closing: Option<Closing>,
    aggs: Vec<Arc<dyn Aggregate>>,
    by_end: BTreeMap<i64, Bucket>,
}

impl Buckets {
    /// No groups yet.
    pub fn new(
        layout: RowLayout,
        kinds: Vec<KeyKind>,
        closing: Option<Closing>,
        aggs: Vec<Arc<dyn Aggregate>>,
    ) -> Buckets {
        Buckets { layout, kinds, closing, aggs, by_end: BTreeMap::new() }
    }

    /// The rule by which groups are finished.
    pub fn closing(&self) -> Option<Closing> {
        self.closing
    }

    /// The bucket of that number, made if missing.
    pub fn bucket(&mut self, number: i64) -> &mut Bucket {
        let (layout, kinds) = (&self.layout, &self.kinds);
        self.by_end
            .entry(number)
            .or_insert_with(|| Bucket { groups: Groups::new(layout, kinds), changed: Marks::default() })
    }

    /// Where the groups of a key go, from the row of a table of the same keys.
    pub fn bucket_of(&self, table: &GroupTable, row: u32) -> i64 {
        self.closing.map_or(NEVER, |c| c.bucket(c.end(table, row)))
    }

    /// All buckets with their numbers, the earliest to finish first.
    pub fn iter(&self) -> impl Iterator<Item = (i64, &Bucket)> {
        self.by_end.iter().map(|(&number, bucket)| (number, bucket))
    }

    /// As [`Buckets::iter`], to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (i64, &mut Bucket)> {
        self.by_end.iter_mut().map(|(&number, bucket)| (number, bucket))
    }

    /// Whether no group of the bucket outlives the watermark.
    pub fn is_finished(closing: Option<Closing>, number: i64, watermark: i64) -> bool {
        closing.is_some_and(|c| number != NEVER && number.saturating_mul(c.span) <= watermark)
    }

    /// When each group is finished; `None`: never.
    pub fn ends(&self) -> impl Iterator<Item = Option<i64>> + '_ {
        let closing = self.closing;
        self.by_end.values().flat_map(move |bucket| {
            let table = &bucket.groups.table;
            (0..table.len() as u32).map(move |row| closing.and_then(|c| c.end(table, row)))
        })
    }

    /// Whether there are no groups.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of groups.
    pub fn len(&self) -> usize {
        self.by_end.values().map(|b| b.groups.table.len()).sum()
    }

    /// Memory of all tables, bytes.
    pub fn memory_bytes(&self) -> usize {
        self.by_end.values().map(Bucket::memory_bytes).sum()
    }

    /// Forgets all groups.
    pub fn clear(&mut self) {
        self.by_end.clear();
    }

    /// Forgets what was changed.
    pub fn clear_marks(&mut self) {
        self.by_end.values_mut().for_each(|b| b.changed.clear());
    }

    /// Takes out the groups that are finished at the watermark. Costs what is taken, plus one look at each group of
    /// the bucket that the watermark falls into. Marks must have been cleared: rows are renumbered.
    pub fn take_finished(&mut self, watermark: i64) -> Result<Vec<Groups>> {
        let Some(closing) = self.closing else { return Ok(Vec::new()) };
        let mut finished = Vec::new();
        while let Some(mut entry) = self.by_end.first_entry() {
            let number = *entry.key();
            if number == NEVER || (number - 1).saturating_mul(closing.span) >= watermark {
                break;
            }
            let is_finished = |table: &GroupTable, row| closing.end(table, row).is_some_and(|end| end <= watermark);
            let bucket = entry.get_mut();
            let table = &bucket.groups.table;
            let rows: Vec<u32> = (0..table.len() as u32).filter(|&row| is_finished(table, row)).collect();
            if rows.len() == table.len() {
                finished.push(entry.remove().groups);
                continue;
            }
            if !rows.is_empty() {
                let mut taken = Groups::new(&self.layout, &self.kinds);
                let mut places = Vec::new();
                taken.merge(&mut bucket.groups, &rows, &self.aggs, &mut places)?;
                for (i, agg) in self.aggs.iter().enumerate() {
                    let mut state = bucket.groups.state(i);
                    rows.iter().for_each(|&row| agg.release(&mut state, row));
                }
                bucket.groups.table.retain(|table, row| !is_finished(table, row));
                finished.push(taken);
            }
            break;
        }
        Ok(finished)
    }
}
