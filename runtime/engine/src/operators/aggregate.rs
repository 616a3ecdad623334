//! `Op::Aggregate`: groups by key, incrementally.
//!
//! Each piece of a micro-batch's input is first grouped by itself, on any thread ([`Aggregation::accumulate`]); the
//! partial groups are then merged, in the pieces' order, into the state ([`AggregateState::merge`]), which is split by
//! key hash so that its parts can be worked on in parallel without a lock.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use rayon::prelude::*;
use ssql_abi::{AggregateKernel, KeyKind, RowLayout};
use ssql_ir::{AggArg, AggCall, CloseRule, EmitMode, Schema};
use ssql_stdlib::aggregate::Aggregate;
use ssql_stdlib::{DecodeError, aggregate, arrow_schema, literal_array, state_size};

use crate::connector::Domain;
use crate::error::{EngineError, Result};
use crate::kernels::{JitMode, Kernels};
use crate::operators::codec::{Reader, put_bytes, read_key};
use crate::operators::groups::{Buckets, Closing, Groups, key_kind, merge_partials, partition_of};
use crate::operators::keys::KeyColumn;
use crate::views::{HashedKeys, key_column, run_aggregate};
use crate::watermark::BatchWatermark;

/// The part of an aggregation that never changes: shared by all threads.
pub struct Aggregation {
    keys: Vec<u32>,
    key_columns: Vec<KeyColumn>,
    calls: Vec<AggCall>,
    pub(super) aggs: Vec<Arc<dyn Aggregate>>,
    layout: RowLayout,
    pub(super) kinds: Vec<KeyKind>,
    kernel: Option<Arc<dyn AggregateKernel>>,
    /// Positions of the key columns in the kernel's input: the physical keys stand behind the batch's own columns.
    kernel_keys: Vec<u32>,
    verify: bool,
    pub(super) output: SchemaRef,
}

impl Aggregation {
    /// Instantiates grouping by `keys` of an input with these columns.
    pub fn new(
        keys: &[u32],
        calls: &[AggCall],
        input: &Schema,
        output: &Schema,
        kernels: &Kernels,
    ) -> Result<Aggregation> {
        let key_columns = key_columns(keys, input)?;
        let kinds = key_columns.iter().map(|k| key_kind(&k.physical_type())).collect::<Result<Vec<_>>>()?;
        let aggs = calls.iter().map(aggregate::aggregate).collect::<Result<Vec<_>, _>>()?;
        let (kernel_input, kernel_keys, layout) = Aggregation::kernel_shape(keys, calls, input)?;
        let kernel = match kernels.active() {
            Some(compiler) => compiler
                .compile_aggregate(&kernel_keys, calls, &kernel_input, &layout)
                .map_err(|e| EngineError::internal(format!("code generation failed: {e}")))?,
            None => None,
        };
        let verify = kernels.mode == JitMode::Verify && kernel.is_some();
        Ok(Aggregation {
            keys: keys.to_vec(),
            key_columns,
            calls: calls.to_vec(),
            aggs,
            layout,
            kinds,
            kernel,
            kernel_keys,
            verify,
            output: arrow_schema(output),
        })
    }

    /// What a kernel for this aggregation is compiled for: its input columns (the batch's, and behind them the keys as
    /// they stand in state rows), where its keys are, and the layout of state rows.
    pub fn kernel_shape(keys: &[u32], calls: &[AggCall], input: &Schema) -> Result<(Schema, Vec<u32>, RowLayout)> {
        let mut kernel_input = input.clone();
        let mut widths = Vec::with_capacity(keys.len());
        for (k, column) in keys.iter().zip(key_columns(keys, input)?) {
            let mut field = input.fields[*k as usize].clone();
            field.data_type = column.physical_type();
            widths.push(key_kind(&field.data_type)?.width());
            kernel_input.fields.push(field);
        }
        let sizes = calls
            .iter()
            .map(|call| Ok(state_size(aggregate::aggregate(call)?.slots())))
            .collect::<Result<Vec<usize>>>()?;
        let kernel_keys = (input.len() as u32..kernel_input.len() as u32).collect();
        Ok((kernel_input, kernel_keys, RowLayout::new(&widths, &sizes)))
    }

    /// Whether generated code runs.
    pub fn is_compiled(&self) -> bool {
        self.kernel.is_some()
    }

    /// No groups yet.
    pub fn groups(&self) -> Groups {
        Groups::new(&self.layout, &self.kinds)
    }

    /// Takes a batch's rows up into groups.
    pub fn accumulate(&self, groups: &mut Groups, batch: &RecordBatch) -> Result<()> {
        let rows = batch.num_rows();
        if rows == 0 {
            return Ok(());
        }
        let keys = self.physical_keys(batch)?;
        let mut ids = vec![0u32; rows];
        let Some(kernel) = &self.kernel else {
            return self.interpret(groups, batch, &keys, &mut ids, None);
        };
        let before = self.verify.then(|| self.copy(groups)).transpose()?;
        let columns: Vec<ArrayRef> = batch.columns().iter().chain(&keys).map(Arc::clone).collect();
        let ran = run_aggregate(kernel.as_ref(), &mut groups.table, &columns, &self.kernel_keys, &self.kinds, &mut ids);
        if !ran {
            // The interpreter finds the same error and says which value it was.
            let mut scratch = self.copy(groups)?;
            self.interpret(&mut scratch, batch, &keys, &mut ids, None)?;
            return Err(EngineError::internal("generated code failed where the interpreter does not"));
        }
        self.update(groups, batch, &ids, Some(kernel.computed()))?;
        if let Some(mut other) = before {
            self.interpret(&mut other, batch, &keys, &mut ids, None)?;
            let all: Vec<u32> = (0..groups.table.len() as u32).collect();
            let (compiled, interpreted) = (self.finish(groups, &all)?, self.finish(&mut other, &all)?);
            if compiled != interpreted {
                return Err(EngineError::internal(format!(
                    "generated code and interpreter differ: {compiled:?} against {interpreted:?}"
                )));
            }
        }
        Ok(())
    }

    /// The same groups in tables of their own.
    fn copy(&self, groups: &mut Groups) -> Result<Groups> {
        let mut copy = self.groups();
        let all: Vec<u32> = (0..groups.table.len() as u32).collect();
        copy.merge(groups, &all, &self.aggs, &mut Vec::new())?;
        Ok(copy)
    }

    fn interpret(
        &self,
        groups: &mut Groups,
        batch: &RecordBatch,
        keys: &[ArrayRef],
        ids: &mut [u32],
        done: Option<&[usize]>,
    ) -> Result<()> {
        HashedKeys::new(keys, &self.kinds, batch.num_rows()).find_or_insert(&mut groups.table, ids);
        self.update(groups, batch, ids, done)
    }

    /// Updates the aggregates that are not `done` with the rows of a batch, whose groups are known.
    fn update(&self, groups: &mut Groups, batch: &RecordBatch, ids: &[u32], done: Option<&[usize]>) -> Result<()> {
        for (i, (call, agg)) in self.calls.iter().zip(&self.aggs).enumerate() {
            if done.is_some_and(|d| d.contains(&i)) {
                continue;
            }
            let args = arguments(call, batch);
            match call.filter {
                None => agg.update(&mut groups.state(i), ids, &args)?,
                Some(filter) => {
                    let mask = batch.column(filter as usize).as_boolean();
                    let passing = |row: usize| mask.is_valid(row) && mask.value(row);
                    let ids: Vec<u32> =
                        ids.iter().enumerate().map(|(row, &id)| if passing(row) { id } else { u32::MAX }).collect();
                    agg.update(&mut groups.state(i), &ids, &args)?;
                }
            }
        }
        Ok(())
    }

    fn physical_keys(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        self.keys.iter().zip(&self.key_columns).map(|(&k, c)| c.encode(batch.column(k as usize))).collect()
    }

    /// Keys and results of these groups.
    fn finish(&self, groups: &mut Groups, rows: &[u32]) -> Result<RecordBatch> {
        let columns = self.result_columns(groups, rows, 0)?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.output), columns, &options)?)
    }

    /// Columns of keys and results of these groups, whose table lacks the first `skip` keys.
    pub(super) fn result_columns(&self, groups: &mut Groups, rows: &[u32], skip: usize) -> Result<Vec<ArrayRef>> {
        let mut columns = Vec::with_capacity(self.output.fields().len());
        for (field, column) in self.key_columns.iter().skip(skip).enumerate() {
            columns.push(column.decode(key_column(&groups.table, rows, field, &column.physical_type())?)?);
        }
        for (i, agg) in self.aggs.iter().enumerate() {
            columns.push(agg.finish(&groups.state(i), rows)?);
        }
        Ok(columns)
    }

    /// Reads the aggregates of a group that [`Aggregation::encode`] wrote, into a row of `groups` that may hold older
    /// ones.
    pub(super) fn decode(
        &self,
        groups: &mut Groups,
        row: u32,
        is_new: bool,
        input: &mut Reader<'_>,
    ) -> Result<(), DecodeError> {
        let mut rest = input.rest();
        for (i, agg) in self.aggs.iter().enumerate() {
            let mut state = groups.state(i);
            if !is_new {
                agg.release(&mut state, row);
                state.state_mut(row).iter_mut().take(state_size(agg.slots())).for_each(|b| *b = 0);
            }
            agg.decode(&mut state, row, &mut rest)?;
        }
        *input = Reader::new(rest);
        Ok(())
    }

    /// Appends a group to a changelog or snapshot: its key fields, then each aggregate.
    pub(super) fn encode(&self, groups: &mut Groups, row: u32, out: &mut Vec<u8>) {
        for field in 0..groups.table.kinds().len() {
            put_bytes(groups.table.key(row, field), out);
        }
        for (i, agg) in self.aggs.iter().enumerate() {
            agg.encode(&groups.state(i), row, out);
        }
    }
}

fn key_columns(keys: &[u32], input: &Schema) -> Result<Vec<KeyColumn>> {
    keys.iter().map(|&k| KeyColumn::new(&input.fields[k as usize].data_type)).collect()
}

/// Arguments of a call over a batch, and behind them the columns of its order.
pub fn arguments(call: &AggCall, batch: &RecordBatch) -> Vec<ArrayRef> {
    let column = |arg: &AggArg| match arg {
        AggArg::Column(c) => Arc::clone(batch.column(*c as usize)),
        AggArg::Literal(value, data_type) => literal_array(value, data_type, batch.num_rows()),
    };
    let order = call.order.iter().map(|key| Arc::clone(batch.column(key.column as usize)));
    call.args.iter().map(column).chain(order).collect()
}

/// The groups of all micro-batches so far.
pub struct AggregateState {
    spec: Arc<Aggregation>,
    emit: EmitMode,
    partitions: Vec<Buckets>,
    updated: u64,
    removed: u64,
}

impl AggregateState {
    /// No groups yet, in that many partitions.
    pub fn new(
        spec: Arc<Aggregation>,
        close: Option<&CloseRule>,
        emit: EmitMode,
        n_partitions: usize,
    ) -> Result<AggregateState> {
        let closing = close.map(|rule| Closing::new(rule, &spec.keys)).transpose()?;
        let partition = || Buckets::new(spec.layout.clone(), spec.kinds.clone(), closing, spec.aggs.clone());
        // A global aggregate is one group.
        let n_partitions = if spec.keys.is_empty() { 1 } else { n_partitions.max(1) };
        let partitions = (0..n_partitions).map(|_| partition()).collect();
        Ok(AggregateState { spec, emit, partitions, updated: 0, removed: 0 })
    }

    /// Takes up partial groups, in order.
    pub fn merge(&mut self, partials: Vec<Groups>) -> Result<()> {
        let n = self.partitions.len();
        let split = |partial: &Groups| {
            let mut rows: Vec<Vec<u32>> = vec![Vec::new(); n];
            for row in 0..partial.table.len() as u32 {
                rows[partition_of(partial.table.hash(row), n)].push(row);
            }
            rows
        };
        let spec = &self.spec;
        merge_partials(&mut self.partitions, partials, split, |buckets, partial, rows: &Vec<u32>| {
            merge_partition(spec, buckets, partial, rows)
        })
    }

    /// Ends the micro-batch: its output, and what the changelog must hold if `changelog` is asked for.
    pub fn finish(
        &mut self,
        watermark: BatchWatermark,
        mut changelog: Option<&mut Vec<u8>>,
    ) -> Result<Vec<RecordBatch>> {
        if self.spec.keys.is_empty() {
            // A global aggregate has its one group even over no rows.
            let (row, _) = {
                let bucket = self.partitions[0].bucket(crate::operators::groups::NEVER);
                bucket.groups.table.insert_key(&[])
            };
            self.partitions[0].bucket(crate::operators::groups::NEVER).changed.set(row);
        }
        let spec = &self.spec;
        let mut out = Vec::new();
        self.updated = 0;
        self.removed = 0;
        if let Some(log) = changelog.as_deref_mut() {
            log.extend_from_slice(&watermark.evict.to_le_bytes());
        }
        for buckets in &mut self.partitions {
            // What is about to be evicted need not be restored; COMPLETE evicts nothing.
            let closing = buckets.closing().filter(|_| self.emit != EmitMode::Complete);
            for (number, bucket) in buckets.iter_mut() {
                self.updated += bucket.changed.rows().len() as u64;
                if self.emit == EmitMode::Update && !bucket.changed.rows().is_empty() {
                    out.push(spec.finish(&mut bucket.groups, bucket.changed.rows())?);
                }
                if let Some(log) = changelog.as_deref_mut()
                    && !Buckets::is_finished(closing, number, watermark.evict)
                {
                    for &row in bucket.changed.rows() {
                        log.push(1);
                        spec.encode(&mut bucket.groups, row, log);
                    }
                }
            }
            buckets.clear_marks();
        }
        if self.emit != EmitMode::Complete {
            let finished: Vec<Vec<Groups>> =
                self.partitions.iter_mut().map(|b| b.take_finished(watermark.evict)).collect::<Result<_>>()?;
            let finished: Vec<Groups> = finished.into_iter().flatten().collect();
            self.removed = finished.iter().map(|g| g.table.len() as u64).sum();
            if self.emit == EmitMode::Append {
                let batches: Vec<RecordBatch> = finished
                    .into_par_iter()
                    .map(|mut groups| {
                        let all: Vec<u32> = (0..groups.table.len() as u32).collect();
                        spec.finish(&mut groups, &all)
                    })
                    .collect::<Result<_>>()?;
                out.extend(batches);
            }
        } else {
            for buckets in &mut self.partitions {
                for (_, bucket) in buckets.iter_mut() {
                    let all: Vec<u32> = (0..bucket.groups.table.len() as u32).collect();
                    out.push(spec.finish(&mut bucket.groups, &all)?);
                }
            }
        }
        Ok(out)
    }

    /// The whole state, for a snapshot.
    pub fn snapshot(&mut self, watermark: i64) -> Vec<u8> {
        let mut out = watermark.to_le_bytes().to_vec();
        let spec = &self.spec;
        for buckets in &mut self.partitions {
            for (_, bucket) in buckets.iter_mut() {
                for row in 0..bucket.groups.table.len() as u32 {
                    out.push(1);
                    spec.encode(&mut bucket.groups, row, &mut out);
                }
            }
        }
        out
    }

    /// The groups with their keys and their results as of now.
    pub fn rows(&mut self) -> Result<Vec<RecordBatch>> {
        let spec = &self.spec;
        let mut out = Vec::new();
        for (_, bucket) in self.partitions.iter_mut().flat_map(|buckets| buckets.iter_mut()) {
            let all: Vec<u32> = (0..bucket.groups.table.len() as u32).collect();
            out.push(spec.finish(&mut bucket.groups, &all)?);
        }
        Ok(out)
    }

    /// Takes up a snapshot or the changes of one batch.
    pub fn restore(&mut self, bytes: &[u8]) -> Result<()> {
        let damaged = |what: &str| {
            EngineError::new("CHECKPOINT_CORRUPT", Domain::External, format!("the aggregate state is damaged: {what}"))
        };
        let mut input = Reader::new(bytes);
        let watermark = input.i64().ok_or_else(|| damaged("it has no watermark"))?;
        let spec = Arc::clone(&self.spec);
        let n = self.partitions.len();
        // One group at a time goes through a table of its own, which knows its hash and bucket.
        let mut one = spec.groups();
        while let Some(1) = input.u8() {
            one.table.clear();
            let fields = read_key(&spec.kinds, &mut input).map_err(damaged)?;
            let (row, _) = one.table.insert_key(&fields);
            let partition = partition_of(one.table.hash(row), n);
            let buckets = &mut self.partitions[partition];
            let number = buckets.bucket_of(&one.table, row);
            let groups = &mut buckets.bucket(number).groups;
            let (place, is_new) = groups.table.insert_key(&fields);
            spec.decode(groups, place, is_new, &mut input).map_err(|e| damaged(&e.to_string()))?;
        }
        if self.emit != EmitMode::Complete {
            for buckets in &mut self.partitions {
                buckets.take_finished(watermark)?;
            }
        }
        Ok(())
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.partitions.iter_mut().for_each(Buckets::clear);
    }

    /// Windows (or other ends of groups) that are open, groups that nothing closes each counted; and the next end.
    pub fn open(&self) -> (u64, Option<i64>) {
        let mut ends = std::collections::BTreeSet::new();
        let mut endless = 0;
        for end in self.partitions.iter().flat_map(Buckets::ends) {
            match end {
                Some(end) => _ = ends.insert(end),
                None => endless += 1,
            }
        }
        (ends.len() as u64 + endless, ends.first().copied())
    }

    /// Whether a moved watermark alone gives it something to do.
    pub fn finishes_by_watermark(&self) -> bool {
        self.emit != EmitMode::Complete
    }

    /// (groups, changed by the last batch, removed by it, memory in bytes).
    pub fn metrics(&self) -> (u64, u64, u64, u64) {
        let groups = self.partitions.iter().map(|b| b.len() as u64).sum();
        let memory = self.partitions.iter().map(|b| b.memory_bytes() as u64).sum();
        (groups, self.updated, self.removed, memory)
    }
}

/// Takes up these partial groups into the buckets where they belong.
fn merge_partition(spec: &Aggregation, buckets: &mut Buckets, partial: &mut Groups, rows: &[u32]) -> Result<()> {
    let mut by_bucket: std::collections::BTreeMap<i64, Vec<u32>> = Default::default();
    for &row in rows {
        by_bucket.entry(buckets.bucket_of(&partial.table, row)).or_default().push(row);
    }
    let mut places = Vec::new();
    for (number, rows) in by_bucket {
        let bucket = buckets.bucket(number);
        bucket.groups.merge(partial, &rows, &spec.aggs, &mut places)?;
        places.iter().for_each(|&place| bucket.changed.set(place));
    }
    Ok(())
}
