//! `Op::Dedup`: the first row of each key passes.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, TimestampMicrosecondArray, UInt32Array};
use arrow::compute::take_record_batch;
use ssql_abi::{GroupTable, KeyKind, RowLayout};
use ssql_ir::{CloseRule, Schema};

use crate::connector::Domain;
use crate::error::{EngineError, Result};
use crate::operators::codec::{Reader, put_bytes, read_key};
use crate::operators::groups::{Buckets, Closing, Groups, NEVER, key_kind};
use crate::operators::keys::KeyColumn;
use crate::operators::step::timestamps;
use crate::views::{HashedKeys, key_column};

/// Keys seen, and when each may be forgotten.
///
/// With the event time among the keys, a key's bucket follows from it. WITHIN WATERMARK a key expires at the event time
/// of its first row plus the delay: that moment stands in the state row, and a map from key to bucket would be needed
/// to find it again, so all keys share one table there. An index by expiry says which keys are expired; their rows stay
/// until they are half of the table, so that a watermark that moves costs what it expires and not the state.
pub struct Dedup {
    keys: Vec<u32>,
    key_columns: Vec<KeyColumn>,
    kinds: Vec<KeyKind>,
    layout: RowLayout,
    rule: Option<CloseRule>,
    within: bool,
    buckets: Buckets,
    expiries: Expiries,
    updated: u64,
    removed: u64,
}

impl Dedup {
    /// Instantiates the operator over an input of this schema.
    pub fn new(keys: &[u32], close: Option<&CloseRule>, within: bool, input: &Schema) -> Result<Dedup> {
        let key_columns =
            keys.iter().map(|&k| KeyColumn::new(&input.fields[k as usize].data_type)).collect::<Result<Vec<_>>>()?;
        let kinds = key_columns.iter().map(|k| key_kind(&k.physical_type())).collect::<Result<Vec<_>>>()?;
        let widths: Vec<usize> = kinds.iter().map(|k| k.width()).collect();
        let layout = RowLayout::new(&widths, if within { &[8] } else { &[] });
        let closing = match close {
            Some(rule) if !within => Some(Closing::new(rule, keys)?),
            _ => None,
        };
        let buckets = Buckets::new(layout.clone(), kinds.clone(), closing, Vec::new());
        Ok(Dedup {
            keys: keys.to_vec(),
            key_columns,
            kinds,
            layout,
            rule: close.copied(),
            within,
            buckets,
            expiries: Expiries::default(),
            updated: 0,
            removed: 0,
        })
    }

    /// The rows whose key is new, in order.
    pub fn apply(&mut self, batches: &[RecordBatch]) -> Result<Vec<RecordBatch>> {
        let mut out = Vec::new();
        for batch in batches {
            let keys = self
                .keys
                .iter()
                .zip(&self.key_columns)
                .map(|(&k, c)| c.encode(batch.column(k as usize)))
                .collect::<Result<Vec<ArrayRef>>>()?;
            let hashed = HashedKeys::new(&keys, &self.kinds, batch.num_rows());
            let ends = match &self.rule {
                Some(rule) => Some((timestamps(batch, rule.column as usize)?, rule.add_micros)),
                None => None,
            };
            let end = |row: usize| {
                ends.as_ref().filter(|(t, _)| t.is_valid(row)).map(|(t, add)| t.value(row).saturating_add(*add))
            };
            let mut first = Vec::new();
            for row in 0..batch.num_rows() {
                let number = match self.buckets.closing() {
                    Some(closing) => closing.bucket(end(row)),
                    None => NEVER,
                };
                let bucket = self.buckets.bucket(number);
                let (group, mut is_new) = hashed.insert(&mut bucket.groups.table, row);
                if self.within && !is_new {
                    let at = self.layout.agg_offsets[0];
                    is_new = self.expiries.revive(expiry(bucket.groups.table.row(group), at));
                }
                if is_new {
                    first.push(row as u32);
                    bucket.changed.set(group);
                    if self.within {
                        // Spark reads a NULL event time as the epoch here; a key without a time is kept for ever
                        // instead, as an accident of that kind is not copied.
                        let expiry = end(row).unwrap_or(i64::MAX);
                        let at = self.layout.agg_offsets[0];
                        bucket.groups.table.row_mut(group)[at..at + 8].copy_from_slice(&expiry.to_le_bytes());
                        self.expiries.note(expiry, group);
                    }
                }
            }
            if !first.is_empty() {
                out.push(take_record_batch(batch, &UInt32Array::from(first))?);
            }
        }
        Ok(out)
    }

    /// Ends the micro-batch: notes the new keys for the changelog and forgets the expired ones.
    pub fn finish(&mut self, watermark: i64, changelog: Option<&mut Vec<u8>>) -> Result<()> {
        self.updated = 0;
        let n_keys = self.kinds.len();
        let (within, at) = (self.within, self.layout.agg_offsets.first().copied().unwrap_or(0));
        if let Some(log) = changelog {
            log.extend_from_slice(&watermark.to_le_bytes());
            for (_, bucket) in self.buckets.iter_mut() {
                for &row in bucket.changed.rows() {
                    encode(&bucket.groups, row, n_keys, within.then_some(at), log);
                }
            }
        }
        for (_, bucket) in self.buckets.iter_mut() {
            self.updated += bucket.changed.rows().len() as u64;
        }
        self.buckets.clear_marks();
        self.removed = self.expire(watermark)?;
        Ok(())
    }

    fn expire(&mut self, watermark: i64) -> Result<u64> {
        if !self.within {
            return Ok(self.buckets.take_finished(watermark)?.iter().map(|g| g.table.len() as u64).sum());
        }
        let at = self.layout.agg_offsets[0];
        let expiries = &mut self.expiries;
        let table = &mut self.buckets.bucket(NEVER).groups.table;
        let due = expiries.take(watermark);
        let gone = due.iter().filter(|&&(time, row)| expiry(table.row(row), at) == time).count();
        expiries.dead += gone;
        if expiries.dead > 0 && expiries.dead * 2 >= table.len() {
            table.retain(|table, row| !expiries.is_over(expiry(table.row(row), at)));
            (expiries.dead, expiries.due) = (0, BTreeMap::new());
            for row in 0..table.len() as u32 {
                expiries.note(expiry(table.row(row), at), row);
            }
        }
        Ok(gone as u64)
    }

    /// Rows of a table whose keys are not expired.
    fn live(&self, table: &GroupTable) -> Vec<u32> {
        let is_over =
            |row: u32| self.within && self.expiries.is_over(expiry(table.row(row), self.layout.agg_offsets[0]));
        (0..table.len() as u32).filter(|&row| !is_over(row)).collect()
    }

    /// The whole state, for a snapshot.
    pub fn snapshot(&mut self, watermark: i64) -> Vec<u8> {
        let mut out = watermark.to_le_bytes().to_vec();
        let n_keys = self.kinds.len();
        let at = self.within.then(|| self.layout.agg_offsets[0]);
        for (_, bucket) in self.buckets.iter() {
            for row in self.live(&bucket.groups.table) {
                encode(&bucket.groups, row, n_keys, at, &mut out);
            }
        }
        out
    }

    /// The keys seen, and, WITHIN WATERMARK, when each is forgotten (`expires`). `input`: the operator's input.
    pub fn rows(&mut self, input: &Schema) -> Result<Vec<RecordBatch>> {
        let mut fields: Vec<ssql_ir::Field> = self.keys.iter().map(|&k| input.fields[k as usize].clone()).collect();
        if self.within {
            fields.push(ssql_ir::Field::new("expires", ssql_ir::DataType::Timestamp, true));
        }
        let schema = ssql_stdlib::arrow_schema(&Schema::new(fields));
        let expiry_at = self.layout.agg_offsets.first().copied().filter(|_| self.within);
        let mut out = Vec::new();
        for (_, bucket) in self.buckets.iter() {
            let table = &bucket.groups.table;
            let all = self.live(table);
            let mut columns = Vec::with_capacity(schema.fields().len());
            for (field, column) in self.key_columns.iter().enumerate() {
                columns.push(column.decode(key_column(table, &all, field, &column.physical_type())?)?);
            }
            if let Some(at) = expiry_at {
                let times = all.iter().map(|&row| Some(expiry(table.row(row), at)).filter(|&t| t != i64::MAX));
                let times = TimestampMicrosecondArray::from_iter(times);
                let data_type = schema.field(columns.len()).data_type().clone();
                columns.push(Arc::new(times.with_data_type(data_type)));
            }
            out.push(RecordBatch::try_new(Arc::clone(&schema), columns)?);
        }
        Ok(out)
    }

    /// Takes up a snapshot or the changes of one batch.
    pub fn restore(&mut self, bytes: &[u8]) -> Result<()> {
        let damaged = |what: &str| {
            let message = format!("the deduplication state is damaged: {what}");
            EngineError::new("CHECKPOINT_CORRUPT", Domain::External, message)
        };
        let mut input = Reader::new(bytes);
        let watermark = input.i64().ok_or_else(|| damaged("it has no watermark"))?;
        let mut one = Groups::new(&self.layout, &self.kinds);
        while let Some(1) = input.u8() {
            let fields = read_key(&self.kinds, &mut input).map_err(damaged)?;
            one.table.clear();
            one.table.insert_key(&fields);
            let number = self.buckets.bucket_of(&one.table, 0);
            let table = &mut self.buckets.bucket(number).groups.table;
            let (row, is_new) = table.insert_key(&fields);
            if self.within {
                let time = input.i64().ok_or_else(|| damaged("an expiry is cut off"))?;
                let at = self.layout.agg_offsets[0];
                let before = expiry(table.row(row), at);
                if is_new || self.expiries.revive(before) || before != time {
                    table.row_mut(row)[at..at + 8].copy_from_slice(&time.to_le_bytes());
                    self.expiries.note(time, row);
                }
            }
        }
        self.expire(watermark)?;
        Ok(())
    }

    /// Forgets all keys.
    pub fn clear(&mut self) {
        self.buckets.clear();
        self.expiries = Expiries::default();
    }

    /// (keys, new in the last batch, forgotten by it, memory in bytes).
    pub fn metrics(&self) -> (u64, u64, u64, u64) {
        let live = self.buckets.len() - self.expiries.dead;
        (live as u64, self.updated, self.removed, (self.buckets.memory_bytes() + self.expiries.memory_bytes()) as u64)
    }
}

/// Which keys of the one table are expired, WITHIN WATERMARK.
struct Expiries {
    /// (expiry, row) by [`Expiries::SPAN`] of the expiry. An entry whose row has another expiry by now means nothing.
    due: BTreeMap<i64, Vec<(i64, u32)>>,
    /// Keys whose expiry is not after this are gone, though their rows may stand.
    swept: i64,
    /// Rows of keys that are gone.
    dead: usize,
}

impl Default for Expiries {
    fn default() -> Expiries {
        Expiries { due: BTreeMap::new(), swept: i64::MIN, dead: 0 }
    }
}

impl Expiries {
    /// Expiries that are looked at together, microseconds.
    const SPAN: i64 = 1_000_000;

    fn is_over(&self, expiry: i64) -> bool {
        expiry <= self.swept
    }

    fn note(&mut self, expiry: i64, row: u32) {
        if expiry != i64::MAX {
            self.due.entry(expiry.div_euclid(Self::SPAN)).or_default().push((expiry, row));
        }
    }

    /// Whether the key with this expiry was gone; its row is then to be used anew.
    fn revive(&mut self, expiry: i64) -> bool {
        let gone = self.is_over(expiry);
        self.dead -= usize::from(gone);
        gone
    }

    /// Moves on to the watermark; the entries that it expires.
    fn take(&mut self, watermark: i64) -> Vec<(i64, u32)> {
        self.swept = self.swept.max(watermark);
        let mut all = Vec::new();
        while let Some(first) = self.due.first_entry()
            && *first.key() <= self.swept.div_euclid(Self::SPAN)
        {
            let (span, entries) = first.remove_entry();
            let (expired, rest): (Vec<_>, Vec<_>) = entries.into_iter().partition(|&(time, _)| time <= self.swept);
            all.extend(expired);
            if !rest.is_empty() {
                self.due.insert(span, rest);
                break;
            }
        }
        all
    }

    fn memory_bytes(&self) -> usize {
        self.due.values().map(|entries| entries.capacity() * size_of::<(i64, u32)>()).sum()
    }
}

fn expiry(row: &[u8], at: usize) -> i64 {
    i64::from_le_bytes(row[at..at + 8].try_into().expect("8 bytes"))
}

fn encode(groups: &Groups, row: u32, n_keys: usize, expiry_at: Option<usize>, out: &mut Vec<u8>) {
    out.push(1);
    for field in 0..n_keys {
        put_bytes(groups.table.key(row, field), out);
    }
    if let Some(at) = expiry_at {
        out.extend_from_slice(&groups.table.row(row)[at..at + 8]);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use arrow::array::Int64Array;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};
    use ssql_ir::{DataType, Field};

    use super::*;

    const DELAY: i64 = 3_000_000;

    fn schema() -> Schema {
        Schema::new(vec![Field::new("k", DataType::Int64, true), Field::new("ts", DataType::Timestamp, true)])
    }

    fn within() -> Dedup {
        let rule = CloseRule { column: 1, add_micros: DELAY };
        Dedup::new(&[0], Some(&rule), true, &schema()).unwrap()
    }

    fn batch(rows: &[(i64, i64)]) -> RecordBatch {
        let keys = Int64Array::from_iter_values(rows.iter().map(|r| r.0));
        let times = TimestampMicrosecondArray::from_iter_values(rows.iter().map(|r| r.1)).with_timezone("UTC");
        RecordBatch::try_new(ssql_stdlib::arrow_schema(&schema()), vec![Arc::new(keys), Arc::new(times)]).unwrap()
    }

    fn keys(batches: &[RecordBatch]) -> Vec<i64> {
        use arrow::array::AsArray;
        use arrow::datatypes::Int64Type;
        batches.iter().flat_map(|b| b.column(0).as_primitive::<Int64Type>().values().to_vec()).collect()
    }

    /// Against a map from key to expiry, with a restart from snapshot and changelog now and then.
    #[test]
    fn within_a_watermark_expires_as_a_map_would() {
        for seed in 0..40 {
            let rng = &mut StdRng::seed_from_u64(seed);
            let (mut state, mut model) = (within(), HashMap::new());
            let (mut log, mut watermark, mut now) = (vec![state.snapshot(0)], 0, 0);
            for _ in 0..30 {
                now += rng.random_range(0..2_500_000);
                let n = rng.random_range(0..60);
                let rows: Vec<(i64, i64)> = (0..n)
                    .map(|_| (rng.random_range(0..80), watermark + 1 + rng.random_range(0..=now - watermark)))
                    .collect();
                let mut first = Vec::new();
                for (key, time) in &rows {
                    model.entry(*key).or_insert_with(|| {
                        first.push(*key);
                        time + DELAY
                    });
                }
                assert_eq!(keys(&state.apply(&[batch(&rows)]).unwrap()), first, "seed {seed}");
                watermark = watermark.max(now - 1_000_000);
                let before = model.len() as u64;
                model.retain(|_, expiry| *expiry > watermark);
                let mut delta = Vec::new();
                state.finish(watermark, Some(&mut delta)).unwrap();
                log.push(delta);
                let (live, new, gone, _) = state.metrics();
                assert_eq!((live, new, gone), (model.len() as u64, first.len() as u64, before - live), "seed {seed}");
                if rng.random_ratio(1, 5) {
                    if rng.random_bool(0.5) {
                        log = vec![state.snapshot(watermark)];
                    }
                    state = within();
                    log.iter().for_each(|part| state.restore(part).unwrap());
                }
            }
        }
    }
}
