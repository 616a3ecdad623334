//! `Op::HopAggregate`: hopping windows by slices.
//!
//! Window starts and ends cut time into slices; all rows of a slice are in the same windows. A row is therefore
//! aggregated once, into its slice, and the slices of a window are combined when the window is shown: when it closes
//! (APPEND), when a micro-batch has changed one of its slices (UPDATE), or each time (COMPLETE).
//!
//! A row that comes after some of its windows were closed needs no care: those windows were shown and are not shown
//! again, and the windows that are still open do contain it. A slice is dropped when the last window that contains it
//! closes. State tables hold the keys without the slice, one table a slice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use rayon::prelude::*;
use ssql_abi::{KeyKind, RowLayout};
use ssql_ir::EmitMode;
use ssql_stdlib::state_size;

use crate::connector::Domain;
use crate::error::{EngineError, Result};
use crate::operators::aggregate::Aggregation;
use crate::operators::codec::{Reader, read_key};
use crate::operators::groups::{Bucket, Groups, Marks, merge_partials, partition_of};
use crate::watermark::BatchWatermark;

/// Windows `[start, start + size)` with starts at `offset` and every `slide` from there, both ways.
#[derive(Debug, Clone, Copy)]
pub struct Hop {
    /// Microseconds.
    pub size: i64,
    /// Microseconds, `0 < slide <= size`.
    pub slide: i64,
    /// Microseconds.
    pub offset: i64,
}

impl Hop {
    /// Starts of the windows that contain the slice, the last first.
    fn windows(self, slice: i64) -> impl Iterator<Item = i64> {
        let first = slice.saturating_sub(self.size);
        let next = move |start: &i64| start.checked_sub(self.slide);
        std::iter::successors(Some(self.last_window(slice)), next).take_while(move |&start| start > first)
    }

    fn last_window(self, slice: i64) -> i64 {
        slice.saturating_sub(slice.wrapping_sub(self.offset).rem_euclid(self.slide))
    }

    fn end(self, window: i64) -> i64 {
        window.saturating_add(self.size)
    }
}

/// The slices of one partition of the keys, by start.
type Slices = BTreeMap<i64, Bucket>;

/// The rows of a partial table that go to a partition, by slice, with the hashes of their keys without the slice.
type Share = BTreeMap<i64, (Vec<u32>, Vec<u64>)>;

/// The slices of all windows that are not closed.
pub struct HopState {
    spec: Arc<Aggregation>,
    hop: Hop,
    /// Whether the watermark closes windows.
    closes: bool,
    emit: EmitMode,
    layout: RowLayout,
    kinds: Vec<KeyKind>,
    partitions: Vec<Slices>,
    output: SchemaRef,
    updated: u64,
    removed: u64,
}

impl HopState {
    /// No slices yet. The first key of `spec` is the slice.
    pub fn new(spec: Arc<Aggregation>, hop: Hop, closes: bool, emit: EmitMode, n_partitions: usize) -> HopState {
        let kinds = spec.kinds[1..].to_vec();
        let widths: Vec<usize> = kinds.iter().map(|k| k.width()).collect();
        let sizes: Vec<usize> = spec.aggs.iter().map(|a| state_size(a.slots())).collect();
        let n_partitions = if kinds.is_empty() { 1 } else { n_partitions.max(1) };
        HopState {
            layout: RowLayout::new(&widths, &sizes),
            output: Arc::clone(&spec.output),
            closes: closes && emit != EmitMode::Complete,
            partitions: (0..n_partitions).map(|_| Slices::new()).collect(),
            spec,
            hop,
            emit,
            kinds,
            updated: 0,
            removed: 0,
        }
    }

    fn groups(&self) -> Groups {
        Groups::new(&self.layout, &self.kinds)
    }

    fn slice<'a>(slices: &'a mut Slices, start: i64, layout: &RowLayout, kinds: &[KeyKind]) -> &'a mut Bucket {
        let new = || Bucket { groups: Groups::new(layout, kinds), changed: Marks::default() };
        slices.entry(start).or_insert_with(new)
    }

    /// Takes up partial groups, in order. Rows without a slice are in no window.
    pub fn merge(&mut self, partials: Vec<Groups>) -> Result<()> {
        let n = self.partitions.len();
        let split = |partial: &Groups| {
            let mut shares: Vec<Share> = (0..n).map(|_| Share::new()).collect();
            for row in 0..partial.table.len() as u32 {
                let Some(slice) = partial.table.key(row, 0).and_then(|b| b.try_into().ok()) else { continue };
                let hash = partial.table.hash_of_rest(row, 1);
                let (rows, hashes) = shares[partition_of(hash, n)].entry(i64::from_le_bytes(slice)).or_default();
                rows.push(row);
                hashes.push(hash);
            }
            shares
        };
        let (spec, layout, kinds) = (&self.spec, &self.layout, &self.kinds);
        merge_partials(&mut self.partitions, partials, split, |slices, partial, share: &Share| {
            let mut places = Vec::new();
            for (&start, (rows, hashes)) in share {
                let bucket = HopState::slice(slices, start, layout, kinds);
                bucket.groups.merge_rest(partial, (rows, hashes), 1, &spec.aggs, &mut places)?;
                places.iter().for_each(|&place| bucket.changed.set(place));
            }
            Ok(())
        })
    }

    /// Ends the micro-batch: its output, and what the changelog must hold if `changelog` is asked for.
    pub fn finish(&mut self, watermark: BatchWatermark, changelog: Option<&mut Vec<u8>>) -> Result<Vec<RecordBatch>> {
        let mut partitions = std::mem::take(&mut self.partitions);
        let this = &*self;
        let out: Vec<Vec<RecordBatch>> =
            partitions.par_iter_mut().map(|slices| this.show(slices, watermark)).collect::<Result<_>>()?;
        if let Some(log) = changelog {
            log.extend_from_slice(&watermark.evict.to_le_bytes());
            for slices in &mut partitions {
                for (&start, bucket) in slices.iter_mut().filter(|(start, _)| !this.is_done(**start, watermark.evict)) {
                    let changed = bucket.changed.rows().to_vec();
                    this.encode(start, &mut bucket.groups, changed, log);
                }
            }
        }
        self.partitions = partitions;
        let buckets = self.partitions.iter_mut().flat_map(|slices| slices.values_mut());
        self.updated = buckets.map(|b| b.changed.rows().len() as u64).sum();
        self.partitions.iter_mut().flat_map(|s| s.values_mut()).for_each(|b| b.changed.clear());
        self.removed = self.evict(watermark.evict);
        Ok(out.into_iter().flatten().collect())
    }

    /// The windows of one partition that this micro-batch shows, the earliest first.
    fn show(&self, slices: &mut Slices, watermark: BatchWatermark) -> Result<Vec<RecordBatch>> {
        let hop = self.hop;
        let is_open = |&window: &i64| !self.closes || hop.end(window) > watermark.late;
        let windows: BTreeSet<i64> = match self.emit {
            EmitMode::Complete => slices.keys().flat_map(|&s| hop.windows(s)).collect(),
            EmitMode::Update => {
                let changed = slices.iter().filter(|(_, b)| !b.changed.rows().is_empty());
                changed.flat_map(|(&s, _)| hop.windows(s)).filter(is_open).collect()
            }
            EmitMode::Append => {
                let begun = slices.range(..watermark.evict).flat_map(|(&s, _)| hop.windows(s));
                begun.filter(is_open).filter(|&w| hop.end(w) <= watermark.evict).collect()
            }
        };
        windows.into_iter().map(|window| self.window(slices, window)).collect()
    }

    /// The groups of a window: all, or in UPDATE those that have changed in one of its slices.
    fn window(&self, slices: &mut Slices, window: i64) -> Result<RecordBatch> {
        let mut combined = self.groups();
        let mut places = Vec::new();
        let aggs = &self.spec.aggs;
        let within = window..self.hop.end(window);
        if self.emit == EmitMode::Update {
            for (_, bucket) in slices.range(within.clone()) {
                combined.table.merge_keys(&bucket.groups.table, bucket.changed.rows(), &mut places);
            }
            for (_, bucket) in slices.range_mut(within) {
                let mut pairs = Vec::new();
                bucket.groups.table.find_keys(&combined.table, &mut pairs);
                let (to, from): (Vec<u32>, Vec<u32>) = pairs.into_iter().unzip();
                for (i, agg) in aggs.iter().enumerate() {
                    agg.merge(&mut combined.state(i), &to, &bucket.groups.state(i), &from)?;
                }
            }
        } else {
            for (_, bucket) in slices.range_mut(within) {
                let all: Vec<u32> = (0..bucket.groups.table.len() as u32).collect();
                combined.merge(&mut bucket.groups, &all, aggs, &mut places)?;
            }
        }
        let rows: Vec<u32> = (0..combined.table.len() as u32).collect();
        self.batch(Arc::clone(&self.output), window, &mut combined, &rows)
    }

    /// Groups as rows, behind a window's or slice's start.
    fn batch(&self, schema: SchemaRef, start: i64, groups: &mut Groups, rows: &[u32]) -> Result<RecordBatch> {
        let DataType::Timestamp(_, zone) = schema.field(0).data_type() else {
            return Err(EngineError::internal("a window's start is no timestamp"));
        };
        let start = TimestampMicrosecondArray::from(vec![start; rows.len()]).with_timezone_opt(zone.clone());
        let mut columns: Vec<ArrayRef> = vec![Arc::new(start)];
        columns.extend(self.spec.result_columns(groups, rows, 1)?);
        Ok(RecordBatch::try_new(schema, columns)?)
    }

    /// Whether the last window of the slice is closed.
    fn is_done(&self, slice: i64, watermark: i64) -> bool {
        self.closes && self.hop.end(self.hop.last_window(slice)) <= watermark
    }

    /// Drops the slices whose windows are all closed; how many groups they had.
    fn evict(&mut self, watermark: i64) -> u64 {
        let mut removed = 0;
        let mut partitions = std::mem::take(&mut self.partitions);
        for slices in &mut partitions {
            while let Some(first) = slices.first_entry()
                && self.is_done(*first.key(), watermark)
            {
                removed += first.remove().groups.table.len() as u64;
            }
        }
        self.partitions = partitions;
        removed
    }

    fn encode(&self, slice: i64, groups: &mut Groups, rows: impl IntoIterator<Item = u32>, out: &mut Vec<u8>) {
        for row in rows {
            out.push(1);
            out.extend_from_slice(&slice.to_le_bytes());
            self.spec.encode(groups, row, out);
        }
    }

    /// The whole state, for a snapshot.
    pub fn snapshot(&mut self, watermark: i64) -> Vec<u8> {
        let mut out = watermark.to_le_bytes().to_vec();
        let mut partitions = std::mem::take(&mut self.partitions);
        for (&start, bucket) in partitions.iter_mut().flatten() {
            let all = 0..bucket.groups.table.len() as u32;
            self.encode(start, &mut bucket.groups, all, &mut out);
        }
        self.partitions = partitions;
        out
    }

    /// Takes up a snapshot or the changes of one batch.
    pub fn restore(&mut self, bytes: &[u8]) -> Result<()> {
        let damaged = |what: &str| {
            let message = format!("the state of hopping windows is damaged: {what}");
            EngineError::new("CHECKPOINT_CORRUPT", Domain::External, message)
        };
        let mut input = Reader::new(bytes);
        let watermark = input.i64().ok_or_else(|| damaged("it has no watermark"))?;
        let spec = Arc::clone(&self.spec);
        let n = self.partitions.len();
        let mut one = self.groups();
        while let Some(1) = input.u8() {
            let start = input.i64().ok_or_else(|| damaged("a slice is cut off"))?;
            let fields = read_key(&self.kinds, &mut input).map_err(damaged)?;
            one.table.clear();
            let (row, _) = one.table.insert_key(&fields);
            let partition = &mut self.partitions[partition_of(one.table.hash(row), n)];
            let groups = &mut HopState::slice(partition, start, &self.layout, &self.kinds).groups;
            let (place, is_new) = groups.table.insert_key(&fields);
            spec.decode(groups, place, is_new, &mut input).map_err(|e| damaged(&e.to_string()))?;
        }
        self.evict(watermark);
        Ok(())
    }

    /// The state as rows: each group of a slice, behind the slice's start.
    pub fn rows(&mut self) -> Result<Vec<RecordBatch>> {
        let mut fields: Vec<Arc<Field>> = self.output.fields().iter().cloned().collect();
        fields[0] = Arc::new(fields[0].as_ref().clone().with_name("slice_start"));
        let schema = Arc::new(Schema::new(fields));
        let mut partitions = std::mem::take(&mut self.partitions);
        let batch = |(&start, bucket): (&i64, &mut Bucket)| {
            let all: Vec<u32> = (0..bucket.groups.table.len() as u32).collect();
            self.batch(Arc::clone(&schema), start, &mut bucket.groups, &all)
        };
        let rows = partitions.iter_mut().flatten().map(batch).collect();
        self.partitions = partitions;
        rows
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.partitions.iter_mut().for_each(Slices::clear);
    }

    /// Whether a moved watermark alone gives it something to do.
    pub fn finishes_by_watermark(&self) -> bool {
        self.emit != EmitMode::Complete
    }

    /// Windows with rows that are not closed at the watermark, and the next end among them.
    pub fn open(&self, watermark: i64) -> (u64, Option<i64>) {
        let slices = self.partitions.iter().flat_map(|s| s.keys());
        let ends: std::collections::BTreeSet<i64> = slices
            .flat_map(|&slice| self.hop.windows(slice).map(|w| self.hop.end(w)))
            .filter(|&end| !self.closes || end > watermark)
            .collect();
        (ends.len() as u64, ends.first().copied())
    }

    /// (groups, changed by the last batch, removed by it, memory in bytes). A group is a key in a slice.
    pub fn metrics(&self) -> (u64, u64, u64, u64) {
        let buckets = || self.partitions.iter().flat_map(|s| s.values());
        let groups = buckets().map(|b| b.groups.table.len() as u64).sum();
        (groups, self.updated, self.removed, buckets().map(|b| b.memory_bytes() as u64).sum())
    }
}
