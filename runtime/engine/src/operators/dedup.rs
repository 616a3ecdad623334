//! `Op::Dedup`: the first row of each key passes.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, TimestampMicrosecondArray, UInt32Array};
use arrow::compute::take_record_batch;
use ssql_abi::{KeyKind, RowLayout};
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
/// to find it again, so all keys share one table there and the expired are swept out when the watermark moves.
pub struct Dedup {
    keys: Vec<u32>,
    key_columns: Vec<KeyColumn>,
    kinds: Vec<KeyKind>,
    layout: RowLayout,
    rule: Option<CloseRule>,
    within: bool,
    buckets: Buckets,
    /// Expiry of each key of the one table, WITHIN WATERMARK: 8 bytes after the key.
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
                let (group, is_new) = hashed.insert(&mut bucket.groups.table, row);
                if is_new {
                    first.push(row as u32);
                    bucket.changed.set(group);
                    if self.within {
                        // Spark reads a NULL event time as the epoch here; a key without a time is kept for ever
                        // instead, as an accident of that kind is not copied.
                        let expiry = end(row).unwrap_or(i64::MAX);
                        let at = self.layout.agg_offsets[0];
                        bucket.groups.table.row_mut(group)[at..at + 8].copy_from_slice(&expiry.to_le_bytes());
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
        let table = &mut self.buckets.bucket(NEVER).groups.table;
        Ok(table.retain(|table, row| expiry(table.row(row), at) > watermark) as u64)
    }

    /// The whole state, for a snapshot.
    pub fn snapshot(&mut self, watermark: i64) -> Vec<u8> {
        let mut out = watermark.to_le_bytes().to_vec();
        let n_keys = self.kinds.len();
        let at = self.within.then(|| self.layout.agg_offsets[0]);
        for (_, bucket) in self.buckets.iter_mut() {
            for row in 0..bucket.groups.table.len() as u32 {
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
        for (_, bucket) in self.buckets.iter_mut() {
            let table = &bucket.groups.table;
            let all: Vec<u32> = (0..table.len() as u32).collect();
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
        while let Some(1) = input.u8() {
            let fields = read_key(&self.kinds, &mut input).map_err(damaged)?;
            let mut one = Groups::new(&self.layout, &self.kinds);
            one.table.insert_key(&fields);
            let number = self.buckets.bucket_of(&one.table, 0);
            let table = &mut self.buckets.bucket(number).groups.table;
            let (row, _) = table.insert_key(&fields);
            if self.within {
                let expiry = input.i64().ok_or_else(|| damaged("an expiry is cut off"))?;
                let at = self.layout.agg_offsets[0];
                table.row_mut(row)[at..at + 8].copy_from_slice(&expiry.to_le_bytes());
            }
        }
        self.expire(watermark)?;
        Ok(())
    }

    /// Forgets all keys.
    pub fn clear(&mut self) {
        self.buckets.clear();
    }

    /// (keys, new in the last batch, forgotten by it, memory in bytes).
    pub fn metrics(&self) -> (u64, u64, u64, u64) {
        (self.buckets.len() as u64, self.updated, self.removed, self.buckets.memory_bytes() as u64)
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
