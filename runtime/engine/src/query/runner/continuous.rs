//! TRIGGER CONTINUOUS: rows pass to the sink as they come, and offsets are committed by epochs.
//!
//! An epoch is written to the checkpoint as a micro-batch is, but after its rows have gone out: a crash delivers the
//! rows of the open epoch again (at least once, as in Spark). Only map-like queries run so; they have no state and no
//! watermark.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use ssql_ir::Op;
use ssql_stdlib::EvalContext;

use super::{Runner, timed};
use crate::checkpoint::PlannedBatch;
use crate::connector::{Arrival, Offset, ReadLimit, SinkBatch, Wake};
use crate::error::{EngineError, Result};
use crate::exec::{BatchInput, BatchReport};
use crate::progress::QueryProgress;
use crate::watermark::BatchWatermark;

/// What has passed since the last commit.
#[derive(Default)]
pub(super) struct Epoch {
    /// When its first rows were seen.
    began: Option<Instant>,
    /// Where it began, by source.
    starts: Vec<Option<Offset>>,
    /// What its sources want to see again after a restart.
    entries: Vec<Option<Vec<u8>>>,
    /// Rows read and delivered.
    report: BatchReport,
    delivered: u64,
    /// Processing time spent on its rows.
    busy: std::time::Duration,
    /// Number that the sink knows the last passage by.
    passage: u64,
}

impl Runner {
    /// Turns to passing rows on as they come. A micro-batch that was planned and not committed is finished first.
    pub fn begin_continuous(&mut self) -> Result<()> {
        if self.replay.is_some() {
            self.run_next(ReadLimit::Options)?;
        }
        self.spec.sources.iter_mut().for_each(|s| s.set_continuous());
        Ok(())
    }

    /// When to look for new rows again, after a look that found none.
    pub fn arrival(&mut self, wake: &Wake) -> Arrival {
        let now = self.now_micros();
        let sources = self.spec.sources.iter_mut().map(|s| s.arrival(now, wake));
        sources.fold(Arrival::Wakes, |all, one| match (all, one) {
            (Arrival::Poll, _) | (_, Arrival::Poll) => Arrival::Poll,
            (Arrival::At(a), Arrival::At(b)) => Arrival::At(a.min(b)),
            (Arrival::At(a), _) | (_, Arrival::At(a)) => Arrival::At(a),
            (Arrival::Wakes, Arrival::Wakes) => Arrival::Wakes,
        })
    }

    /// Passes the rows that are there to the sink. False: there were none.
    pub fn pass(&mut self) -> Result<bool> {
        let now = self.now_micros();
        let began = Instant::now();
        let mut ends = self.offsets.clone();
        let mut any = false;
        for (i, (source, end)) in self.spec.sources.iter_mut().zip(&mut ends).enumerate() {
            let Some(next) = source.latest(end.as_ref(), ReadLimit::Options, now)? else { continue };
            any = true;
            *end = Some(next.end);
            if let Some(entry) = next.log_entry {
                self.epoch.entries.resize(self.offsets.len(), None);
                if self.epoch.entries[i].replace(entry).is_some() {
                    return Err(EngineError::internal("a source logs more than one entry an epoch"));
                }
            }
        }
        if !any {
            return Ok(false);
        }
        self.deliver(&ends, now).map_err(|e| e.in_batch(self.next_batch))?;
        let starts = std::mem::replace(&mut self.offsets, ends);
        if self.epoch.began.is_none() {
            self.epoch.began = Some(began);
            self.epoch.starts = starts;
        }
        self.epoch.busy += began.elapsed();
        Ok(true)
    }

    /// Runs the rows up to `ends` through the operators into the sink.
    fn deliver(&mut self, ends: &[Option<Offset>], now: i64) -> Result<()> {
        let mut streams = Vec::with_capacity(ends.len());
        let graph = self.executor.graph();
        for (i, source) in self.spec.sources.iter_mut().enumerate() {
            let Op::Source { columns, .. } = &graph.pipeline.nodes[graph.streams[i]].op else {
                return Err(EngineError::internal("a streaming source is no source"));
            };
            let start = self.offsets[i].as_ref();
            streams.push(match &ends[i] {
                Some(end) if Some(end) != start => source.splits(start, end, columns)?,
                _ => Vec::new(),
            });
        }
        // A sink that remembers what it has must see numbers that grow over restarts, too.
        let passage = match self.checkpoint {
            Some(_) => (self.epoch.passage + 1).max(now.unsigned_abs()),
            None => self.epoch.passage,
        };
        let target = SinkBatch { query_id: &self.id, batch: passage, mode: self.spec.pipeline.mode };
        let input = BatchInput {
            streams,
            tables: self.spec.tables.as_ref(),
            eval: EvalContext {
                time_zone: self.spec.time_zone.clone(),
                now_micros: now,
                batch_id: self.next_batch as i64,
                seed: passage,
                natives: self.spec.runtime.natives.clone(),
                ..EvalContext::default()
            },
            watermark: BatchWatermark::default(),
            changelog: false,
            keep_late: false,
        };
        let staged = Mutex::new(Vec::new());
        let rows_out = AtomicU64::new(0);
        let sink = self.spec.sink.as_ref();
        let ran = self.executor.run(input, &|partition, rows| {
            let n: usize = rows.iter().map(|b| b.num_rows()).sum();
            let part = sink.write(&target, partition, &rows)?;
            rows_out.fetch_add(n as u64, Ordering::Relaxed);
            staged.lock().unwrap_or_else(PoisonError::into_inner).push((partition, part));
            Ok(())
        });
        let mut staged = staged.into_inner().unwrap_or_else(PoisonError::into_inner);
        staged.sort_by_key(|(partition, _)| *partition);
        let staged: Vec<_> = staged.into_iter().map(|(_, part)| part).collect();
        let report = match ran {
            Ok(report) => report,
            Err(e) => {
                sink.abort(&target, staged);
                return Err(e);
            }
        };
        if !staged.is_empty() {
            sink.commit(&target, staged)?;
        }
        self.epoch.passage = if self.checkpoint.is_some() { passage } else { passage + 1 };
        self.epoch.delivered += rows_out.into_inner();
        let total = &mut self.epoch.report;
        total.sources.resize(report.sources.len(), Default::default());
        total.notes.resize(report.notes.len(), Default::default());
        for (sum, one) in total.sources.iter_mut().zip(&report.sources) {
            sum.rows += one.rows;
            sum.bytes += one.bytes;
            sum.bad_records += one.bad_records;
        }
        Ok(())
    }

    /// Commits what has passed. `None`: nothing has.
    pub fn commit_epoch(&mut self) -> Result<Option<QueryProgress>> {
        let passage = self.epoch.passage;
        let epoch = std::mem::replace(&mut self.epoch, Epoch { passage, ..Epoch::default() });
        let Some(began) = epoch.began else {
            self.epoch.entries = epoch.entries;
            return Ok(None);
        };
        let batch = self.next_batch;
        let mut timing = BTreeMap::new();
        timing.insert("addBatch", epoch.busy.as_millis() as u64);
        let planned = PlannedBatch {
            offsets: self.offsets.clone(),
            watermark: BatchWatermark::default(),
            timestamp: self.now_micros(),
        };
        let mut entries = epoch.entries;
        entries.resize(self.offsets.len(), None);
        let saved = self.tracker.save();
        if let Some(checkpoint) = &mut self.checkpoint {
            timed(&mut timing, "walCommit", || checkpoint.plan(batch, &planned, &entries))?;
            timed(&mut timing, "commitOffsets", || checkpoint.commit(batch, saved))?;
        }
        for (source, end) in self.spec.sources.iter_mut().zip(&planned.offsets) {
            if let Some(end) = end {
                source.committed(end)?;
            }
        }
        self.next_batch += 1;
        Ok(Some(self.progress(
            batch,
            &planned,
            &epoch.starts,
            &epoch.report,
            &HashMap::new(),
            &[],
            epoch.delivered,
            began,
            timing,
        )))
    }

    /// Number of the open epoch.
    pub fn epoch(&self) -> u64 {
        self.next_batch
    }
}
