//! `Op::SessionAggregate`: rows of a key whose spans touch or overlap are one session.
//!
//! A micro-batch is first merged by itself: its rows are sorted by key and start, swept into local sessions, and the
//! aggregates take in each local session's rows at once. The local sessions are then merged into the kept ones, of which
//! a key holds a sorted list without overlaps. Everything is merged in order of start, so that the result depends neither
//! on the order of rows nor on how they are split into batches (but for aggregates that go by the order of rows with
//! equal starts, and the rounding of floating-point sums).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use ahash::AHashMap;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, TimestampMicrosecondArray, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::SchemaRef;
use ssql_ir::{AggCall, EmitMode, Schema};
use ssql_stdlib::aggregate::{Aggregate, SKIP};
use ssql_stdlib::{aggregate, arrow_schema};

use crate::connector::Domain;
use crate::error::{EngineError, Result};
use crate::operators::aggregate::arguments;
use crate::operators::codec::{Reader, put_bytes};
use crate::operators::keys::KeyRows;
use crate::operators::session::slab::StateSlab;
use crate::operators::step::timestamps;
use crate::watermark::BatchWatermark;

pub mod slab;

/// Records of a snapshot or changelog.
const CHANGED: u8 = 1;
const GONE: u8 = 2;

/// A kept session: all its rows' spans lie in `[start, end]`.
#[derive(Debug, Clone, Copy)]
struct Session {
    start: i64,
    end: i64,
    /// Its row of aggregate state.
    state: u32,
}

/// The sessions of one key, in order; they neither overlap nor touch.
#[derive(Debug)]
struct KeyEntry {
    key: Arc<[u8]>,
    sessions: Vec<Session>,
}

/// A row of the micro-batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Span {
    key: u32,
    start: i64,
    row: u32,
    end: i64,
}

/// A session within the micro-batch; its position is its row of fresh state.
#[derive(Debug)]
struct Local {
    key: u32,
    start: i64,
    end: i64,
}

/// All sessions that are not finished yet.
#[derive(Debug)]
pub struct SessionState {
    start: usize,
    end: usize,
    keys: Vec<usize>,
    calls: Vec<AggCall>,
    aggs: Vec<Arc<dyn Aggregate>>,
    emit: EmitMode,
    /// Whether the watermark finishes sessions: APPEND. COMPLETE keeps them all.
    closes: bool,
    /// `None`: there are no keys, and all rows have the empty one.
    key_rows: Option<KeyRows>,
    input: SchemaRef,
    output: SchemaRef,

    key_ids: AHashMap<Arc<[u8]>, u32>,
    entries: Vec<KeyEntry>,
    free_keys: Vec<u32>,
    states: StateSlab,
    /// (end, key, start) of every session, and of what it was before it changed: an entry that no session fits is
    /// passed over. Each change adds one, and it is gone once the watermark reaches its end.
    by_end: BinaryHeap<Reverse<(i64, u32, i64)>>,
    /// (key, start) of sessions that this micro-batch added or changed.
    changed: Vec<(u32, i64)>,
    /// (key, start) of sessions that this micro-batch merged into one with an earlier start.
    gone: Vec<(u32, i64)>,

    sessions: u64,
    key_bytes: usize,
    updated: u64,
    removed: u64,
}

impl SessionState {
    /// Instantiates the operator: a row spans the columns `[start, end)`. `close`: the watermark finishes sessions.
    #[expect(clippy::too_many_arguments, reason = "the operator's own fields")]
    pub fn new(
        start: u32,
        end: u32,
        keys: &[u32],
        aggs: &[AggCall],
        close: bool,
        emit: EmitMode,
        input: &Schema,
        output: &Schema,
    ) -> Result<SessionState> {
        if emit == EmitMode::Update {
            return Err(EngineError::internal("sessions have no UPDATE mode; the planner refuses it"));
        }
        let types: Vec<_> = keys.iter().map(|&k| input.fields[k as usize].data_type.clone()).collect();
        let handlers = aggs.iter().map(aggregate::aggregate).collect::<Result<Vec<_>, _>>()?;
        Ok(SessionState {
            start: start as usize,
            end: end as usize,
            keys: keys.iter().map(|&k| k as usize).collect(),
            calls: aggs.to_vec(),
            states: StateSlab::new(&handlers),
            aggs: handlers,
            emit,
            closes: close && emit == EmitMode::Append,
            key_rows: if types.is_empty() { None } else { Some(KeyRows::new(&types)?) },
            input: arrow_schema(input),
            output: arrow_schema(output),
            key_ids: AHashMap::new(),
            entries: Vec::new(),
            free_keys: Vec::new(),
            by_end: BinaryHeap::new(),
            changed: Vec::new(),
            gone: Vec::new(),
            sessions: 0,
            key_bytes: 0,
            updated: 0,
            removed: 0,
        })
    }

    /// Merges the rows into sessions. Rows whose span is NULL or empty are in none.
    pub fn apply(&mut self, batches: &[RecordBatch]) -> Result<()> {
        let all = match batches {
            [] => return Ok(()),
            [one] => one.clone(),
            many => concat_batches(&self.input, many)?,
        };
        let spans = self.spans(&all)?;
        let mut locals: Vec<Local> = Vec::new();
        let mut groups = vec![SKIP; all.num_rows()];
        let mut in_order = true;
        let mut last_row = 0;
        for span in &spans {
            match locals.last_mut() {
                Some(last) if last.key == span.key && span.start <= last.end => {
                    last.end = last.end.max(span.end);
                    in_order &= last_row < span.row;
                }
                _ => locals.push(Local { key: span.key, start: span.start, end: span.end }),
            }
            last_row = span.row;
            groups[span.row as usize] = locals.len() as u32 - 1;
        }
        let rows = if in_order {
            all
        } else {
            // Aggregates take a session's rows in order of start.
            let order = UInt32Array::from_iter_values(spans.iter().map(|s| s.row));
            groups = spans.iter().map(|s| groups[s.row as usize]).collect();
            take_record_batch(&all, &order)?
        };
        let mut fresh = self.aggregate(&rows, &groups, locals.len() as u32)?;
        self.merge(&locals, &mut fresh)
    }

    /// The rows that have a span, by key and start.
    fn spans(&mut self, batch: &RecordBatch) -> Result<Vec<Span>> {
        let (starts, ends) = (timestamps(batch, self.start)?, timestamps(batch, self.end)?);
        let columns: Vec<ArrayRef> = self.keys.iter().map(|&k| Arc::clone(batch.column(k))).collect();
        let keys = self.key_rows.as_ref().map(|k| k.rows(&columns)).transpose()?;
        let mut spans = Vec::with_capacity(batch.num_rows());
        for row in 0..batch.num_rows() {
            if starts.is_null(row) || ends.is_null(row) || ends.value(row) <= starts.value(row) {
                continue;
            }
            let key = match &keys {
                Some(keys) => self.key_id(keys.row(row).data()),
                None => self.key_id(&[]),
            };
            spans.push(Span { key, start: starts.value(row), row: row as u32, end: ends.value(row) });
        }
        spans.sort_unstable();
        Ok(spans)
    }

    /// The number of a key, given one if it is new.
    fn key_id(&mut self, key: &[u8]) -> u32 {
        if let Some(&id) = self.key_ids.get(key) {
            return id;
        }
        let entry = KeyEntry { key: Arc::from(key), sessions: Vec::new() };
        self.key_bytes += key.len();
        let shared = Arc::clone(&entry.key);
        let id = match self.free_keys.pop() {
            Some(id) => {
                self.entries[id as usize] = entry;
                id
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        };
        self.key_ids.insert(shared, id);
        id
    }

    /// States of `n` local sessions, from the rows that `groups` gives to each.
    fn aggregate(&self, rows: &RecordBatch, groups: &[u32], n: u32) -> Result<StateSlab> {
        let mut fresh = StateSlab::new(&self.aggs);
        fresh.grow(n);
        for (i, (call, agg)) in self.calls.iter().zip(&self.aggs).enumerate() {
            let args = arguments(call, rows);
            match call.filter {
                None => agg.update(&mut fresh.state(i), groups, &args)?,
                Some(filter) => {
                    let mask = rows.column(filter as usize).as_boolean();
                    let group = |(row, &g): (usize, &u32)| if mask.is_valid(row) && mask.value(row) { g } else { SKIP };
                    let passing: Vec<u32> = groups.iter().enumerate().map(group).collect();
                    agg.update(&mut fresh.state(i), &passing, &args)?;
                }
            }
        }
        Ok(fresh)
    }

    /// Takes up the local sessions, whose states are the rows of `fresh`.
    fn merge(&mut self, locals: &[Local], fresh: &mut StateSlab) -> Result<()> {
        // Merges into a session's own row wait for one another, to be done aggregate by aggregate.
        let (mut to, mut from) = (Vec::new(), Vec::new());
        for (row, local) in locals.iter().enumerate() {
            let row = row as u32;
            let sessions = &mut self.entries[local.key as usize].sessions;
            let first = sessions.partition_point(|s| s.end < local.start);
            let n = sessions[first..].partition_point(|s| s.start <= local.end);
            let merged = if n == 0 {
                let session = Session { start: local.start, end: local.end, state: self.states.take() };
                sessions.insert(first, session);
                self.sessions += 1;
                to.push(session.state);
                from.push(row);
                session
            } else if n == 1 && sessions[first].start <= local.start {
                let session = &mut sessions[first];
                session.end = session.end.max(local.end);
                to.push(session.state);
                from.push(row);
                *session
            } else {
                self.flush(&mut to, fresh, &mut from)?;
                self.join(local, first..first + n, fresh, row)?
            };
            self.changed.push((local.key, merged.start));
            if self.closes {
                self.by_end.push(Reverse((merged.end, local.key, merged.start)));
            }
        }
        self.flush(&mut to, fresh, &mut from)
    }

    fn flush(&mut self, to: &mut Vec<u32>, fresh: &mut StateSlab, from: &mut Vec<u32>) -> Result<()> {
        if !to.is_empty() {
            for (i, agg) in self.aggs.iter().enumerate() {
                agg.merge(&mut self.states.state(i), to, &fresh.state(i), from)?;
            }
        }
        to.clear();
        from.clear();
        Ok(())
    }

    /// Makes one session of a local one and the kept ones that it touches, in order of start.
    fn join(
        &mut self,
        local: &Local,
        range: std::ops::Range<usize>,
        fresh: &mut StateSlab,
        row: u32,
    ) -> Result<Session> {
        let old = self.entries[local.key as usize].sessions[range.clone()].to_vec();
        let before = old.partition_point(|s| s.start <= local.start);
        // One table cannot be merged into itself, so the states meet in another.
        let mut joined = StateSlab::new(&self.aggs);
        let target = joined.take();
        for (i, agg) in self.aggs.iter().enumerate() {
            for s in &old[..before] {
                agg.merge(&mut joined.state(i), &[target], &self.states.state(i), &[s.state])?;
            }
            agg.merge(&mut joined.state(i), &[target], &fresh.state(i), &[row])?;
            for s in &old[before..] {
                agg.merge(&mut joined.state(i), &[target], &self.states.state(i), &[s.state])?;
            }
        }
        old.iter().for_each(|s| self.states.give_back(s.state));
        let state = self.states.take();
        for (i, agg) in self.aggs.iter().enumerate() {
            agg.merge(&mut self.states.state(i), &[state], &joined.state(i), &[target])?;
        }
        let start = old.first().map_or(local.start, |s| s.start.min(local.start));
        let end = old.last().map_or(local.end, |s| s.end.max(local.end));
        let merged = Session { start, end, state };
        self.gone.extend(old.iter().filter(|s| s.start != start).map(|s| (local.key, s.start)));
        self.sessions -= old.len() as u64 - 1;
        self.entries[local.key as usize].sessions.splice(range, [merged]);
        Ok(merged)
    }

    /// Ends the micro-batch: its output, and what the changelog must hold if `changelog` is asked for.
    pub fn finish(&mut self, watermark: BatchWatermark, changelog: Option<&mut Vec<u8>>) -> Result<Vec<RecordBatch>> {
        let mut changed = std::mem::take(&mut self.changed);
        changed.sort_unstable();
        changed.dedup();
        let changed: Vec<(u32, Session)> =
            changed.into_iter().filter_map(|(key, start)| Some((key, self.find(key, start)?))).collect();
        self.updated = changed.len() as u64;
        if let Some(log) = changelog {
            log.extend_from_slice(&watermark.evict.to_le_bytes());
            for &(key, start) in &self.gone {
                log.push(GONE);
                put_bytes(Some(&self.entries[key as usize].key), log);
                log.extend_from_slice(&start.to_le_bytes());
            }
            for &(key, session) in &changed {
                if !(self.closes && session.end <= watermark.evict) {
                    self.encode(key, session, log);
                }
            }
        }
        self.gone.clear();
        self.removed = 0;
        let out = if self.emit == EmitMode::Complete {
            self.all()
        } else {
            let mut finished = self.expire(watermark.evict);
            self.removed = finished.len() as u64;
            // Numbers of keys change with a restart; the order of output must not.
            finished.sort_by(|(a, s), (b, t)| {
                let key = |k: &u32| &self.entries[*k as usize].key;
                (s.end, key(a), s.start).cmp(&(t.end, key(b), t.start))
            });
            finished
        };
        let batches = if out.is_empty() { Vec::new() } else { vec![self.batch(&out)?] };
        if self.emit != EmitMode::Complete {
            self.give_back(&out);
        }
        Ok(batches)
    }

    fn find(&self, key: u32, start: i64) -> Option<Session> {
        let sessions = &self.entries[key as usize].sessions;
        Some(sessions[sessions.binary_search_by_key(&start, |s| s.start).ok()?])
    }

    fn all(&self) -> Vec<(u32, Session)> {
        let entries = self.entries.iter().enumerate();
        entries.flat_map(|(key, entry)| entry.sessions.iter().map(move |&s| (key as u32, s))).collect()
    }

    /// Takes the finished sessions out of their keys' lists. Their states and keys stay until
    /// [`SessionState::give_back`].
    fn expire(&mut self, watermark: i64) -> Vec<(u32, Session)> {
        let mut finished = Vec::new();
        while let Some(&Reverse((end, key, start))) = self.by_end.peek()
            && end <= watermark
        {
            self.by_end.pop();
            let sessions = &mut self.entries[key as usize].sessions;
            if let Ok(at) = sessions.binary_search_by_key(&start, |s| s.start)
                && sessions[at].end == end
            {
                finished.push((key, sessions.remove(at)));
            }
        }
        finished
    }

    fn give_back(&mut self, finished: &[(u32, Session)]) {
        self.sessions -= finished.len() as u64;
        for &(key, session) in finished {
            self.states.give_back(session.state);
            self.forget_if_empty(key);
        }
    }

    fn forget_if_empty(&mut self, key: u32) {
        let entry = &self.entries[key as usize];
        if entry.sessions.is_empty() && self.key_ids.remove(&entry.key).is_some() {
            self.key_bytes -= entry.key.len();
            self.free_keys.push(key);
        }
    }

    /// Output rows of these sessions.
    fn batch(&mut self, sessions: &[(u32, Session)]) -> Result<RecordBatch> {
        let time = |field: usize, at: fn(&Session) -> i64| -> ArrayRef {
            let times = TimestampMicrosecondArray::from_iter_values(sessions.iter().map(|(_, s)| at(s)));
            Arc::new(times.with_data_type(self.output.field(field).data_type().clone()))
        };
        let mut columns = vec![time(0, |s| s.start), time(1, |s| s.end)];
        if let Some(keys) = &self.key_rows {
            columns.extend(keys.columns(sessions.iter().map(|(k, _)| &*self.entries[*k as usize].key))?);
        }
        let rows: Vec<u32> = sessions.iter().map(|(_, s)| s.state).collect();
        for (i, agg) in self.aggs.iter().enumerate() {
            columns.push(agg.finish(&self.states.state(i), &rows)?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.output), columns, &options)?)
    }

    fn encode(&mut self, key: u32, session: Session, out: &mut Vec<u8>) {
        out.push(CHANGED);
        put_bytes(Some(&self.entries[key as usize].key), out);
        out.extend_from_slice(&session.start.to_le_bytes());
        out.extend_from_slice(&session.end.to_le_bytes());
        for (i, agg) in self.aggs.iter().enumerate() {
            agg.encode(&self.states.state(i), session.state, out);
        }
    }

    /// The whole state, for a snapshot.
    pub fn snapshot(&mut self, watermark: i64) -> Vec<u8> {
        let mut out = watermark.to_le_bytes().to_vec();
        for (key, session) in self.all() {
            self.encode(key, session, &mut out);
        }
        out
    }

    /// The open sessions with their keys and their results as of now.
    pub fn rows(&mut self) -> Result<RecordBatch> {
        let all = self.all();
        self.batch(&all)
    }

    /// Takes up a snapshot or the changes of one batch.
    pub fn restore(&mut self, bytes: &[u8]) -> Result<()> {
        let damaged = |what: &str| {
            EngineError::new("CHECKPOINT_CORRUPT", Domain::External, format!("the session state is damaged: {what}"))
        };
        let mut input = Reader::new(bytes);
        let watermark = input.i64().ok_or_else(|| damaged("it has no watermark"))?;
        while let Some(record) = input.u8() {
            let key = input.bytes().flatten().ok_or_else(|| damaged("a key is cut off"))?;
            let start = input.i64().ok_or_else(|| damaged("a session is cut off"))?;
            let id = self.key_id(key);
            let found = self.entries[id as usize].sessions.binary_search_by_key(&start, |s| s.start);
            match record {
                GONE => {
                    if let Ok(at) = found {
                        let session = self.entries[id as usize].sessions.remove(at);
                        self.give_back(&[(id, session)]);
                    }
                    self.forget_if_empty(id);
                }
                CHANGED => {
                    let end = input.i64().ok_or_else(|| damaged("a session is cut off"))?;
                    let state = match found {
                        Ok(at) => {
                            let session = &mut self.entries[id as usize].sessions[at];
                            session.end = end;
                            self.states.reset(session.state);
                            session.state
                        }
                        Err(at) => {
                            let state = self.states.take();
                            self.entries[id as usize].sessions.insert(at, Session { start, end, state });
                            self.sessions += 1;
                            state
                        }
                    };
                    if self.closes {
                        self.by_end.push(Reverse((end, id, start)));
                    }
                    let mut rest = input.rest();
                    for (i, agg) in self.aggs.iter().enumerate() {
                        agg.decode(&mut self.states.state(i), state, &mut rest).map_err(|e| damaged(&e.to_string()))?;
                    }
                    input = Reader::new(rest);
                }
                _ => return Err(damaged("it has a record of an unknown kind")),
            }
        }
        let finished = self.expire(watermark);
        self.give_back(&finished);
        Ok(())
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.key_ids.clear();
        self.entries.clear();
        self.free_keys.clear();
        self.by_end.clear();
        self.states = StateSlab::new(&self.aggs);
        self.changed.clear();
        self.gone.clear();
        (self.sessions, self.key_bytes) = (0, 0);
    }

    /// Open sessions, and the earliest end among them.
    pub fn open(&self) -> (u64, Option<i64>) {
        (self.sessions, self.entries.iter().flat_map(|entry| entry.sessions.iter().map(|s| s.end)).min())
    }

    /// (sessions, changed by the last batch, removed by it, memory in bytes).
    pub fn metrics(&self) -> (u64, u64, u64, u64) {
        let lists = self.sessions as usize * size_of::<Session>()
            + self.entries.capacity() * size_of::<KeyEntry>()
            + self.by_end.capacity() * size_of::<Reverse<(i64, u32, i64)>>();
        let keys = self.key_bytes + self.key_ids.capacity() * size_of::<(Arc<[u8]>, u32)>();
        (self.sessions, self.updated, self.removed, (self.states.memory_bytes() + lists + keys) as u64)
    }
}

#[cfg(test)]
mod tests;
