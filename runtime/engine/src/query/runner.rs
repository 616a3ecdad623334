//! The micro-batch loop's body: one call, one batch, every step of the protocol in order.

mod continuous;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use ssql_ir::{EmitMode, NodeId, Op, Pipeline};
use ssql_state::{StateVersions, failpoint};
use ssql_stdlib::EvalContext;

use crate::background::{Job, Stop};
use crate::checkpoint::{Checkpoint, Opening, PlannedBatch};
use crate::connector::{Holder, Offset, ReadLimit, Restored, SinkBatch};
use crate::error::{EngineError, Result};
use crate::exec::{BatchInput, BatchReport, Executor};
use crate::graph::Unit;
use crate::progress::{QueryProgress, SinkProgress, SourceProgress, StateOperatorProgress, iso_millis};
use crate::query::batch::executor;
use crate::query::watermarks::{WatermarkStatus, held_back_by, watermark_status};
use crate::query::{QuerySpec, Trigger};
use crate::stateful;
use crate::watermark::{BatchWatermark, EventTimeStats, SavedWatermarks, WatermarkTracker};

/// What a call of [`Runner::run_next`] did.
#[derive(Debug, Clone, PartialEq)]
pub enum Advance {
    /// Ran a micro-batch.
    Ran(Box<QueryProgress>),
    /// There was nothing to do.
    Idle,
}

/// A query between two micro-batches.
pub struct Runner {
    spec: QuerySpec,
    executor: Executor,
    /// The snapshot that is being made: of which of `versions`, and its size once it is done. It stands before the
    /// checkpoint, since it must have ended when the lease does.
    snapshot: Option<(usize, Job<u64>)>,
    checkpoint: Option<Checkpoint>,
    /// State on disk of each stateful node.
    versions: Vec<(usize, StateVersions)>,
    notes: Vec<String>,
    tracker: WatermarkTracker,
    id: String,
    run_id: String,
    next_batch: u64,
    /// End offsets of the last batch, by source.
    offsets: Vec<Option<Offset>>,
    /// A batch that was planned and not committed: it is run first, as planned.
    replay: Option<PlannedBatch>,
    /// Watermark that the last batch evicted by.
    last_evict: i64,
    last_trigger: Option<Instant>,
    /// Event time has ended: no source is looked at any more.
    closed: bool,
    /// The open epoch of TRIGGER CONTINUOUS.
    epoch: continuous::Epoch,
}

impl Runner {
    /// Instantiates the query and takes up its checkpoint.
    pub fn start(mut spec: QuerySpec) -> Result<Runner> {
        let executor = executor(&spec.pipeline, &spec.runtime)?;
        let tracker = WatermarkTracker::new(&spec.pipeline, spec.runtime.policy);
        let run_id = uuid::Uuid::new_v4().to_string();
        let (checkpoint, recovered) = match &spec.checkpoint {
            Some(dir) => {
                let opening = Opening {
                    query: &spec.name,
                    run_id: &run_id,
                    pipeline: &spec.pipeline,
                    sources: spec.sources.iter().map(|s| kind_of(&s.description())).collect(),
                    compactors: spec.sources.iter().map(|s| s.compactor()).collect(),
                    durability: spec.durability,
                };
                let (checkpoint, recovered) = Checkpoint::open(dir, opening)?;
                (Some(checkpoint), recovered)
            }
            None => (None, Default::default()),
        };
        let id = checkpoint.as_ref().map_or_else(|| uuid::Uuid::new_v4().to_string(), |c| c.id().to_owned());
        let mut runner = Runner {
            executor,
            snapshot: None,
            versions: Vec::new(),
            notes: recovered.notes.clone(),
            tracker,
            id,
            run_id,
            next_batch: recovered.committed.map_or(0, |n| n + 1),
            offsets: vec![None; spec.sources.len()],
            replay: None,
            last_evict: 0,
            last_trigger: None,
            closed: false,
            epoch: continuous::Epoch::default(),
            checkpoint,
            spec: {
                let entries = recovered.source_entries.clone();
                let newest = recovered.planned.last();
                for (i, source) in spec.sources.iter_mut().enumerate() {
                    source.restore(Restored {
                        entries: entries.get(i).cloned().unwrap_or_default(),
                        offset: newest.and_then(|(_, p)| p.offsets.get(i).cloned().flatten()),
                    })?;
                }
                spec
            },
        };
        runner.tracker.restore(&recovered.watermarks);
        for (batch, planned) in recovered.planned {
            if Some(batch) == recovered.committed {
                runner.offsets = planned.offsets;
                runner.last_evict = planned.watermark.evict;
            } else if batch == runner.next_batch {
                runner.replay = Some(planned);
            }
        }
        runner.restore_state(recovered.committed)?;
        let holder =
            Holder { query: runner.spec.name.clone(), query_id: runner.id.clone(), run_id: runner.run_id.clone() };
        runner.spec.sink.start(&holder, recovered.committed)?;
        if let Some(late) = &runner.spec.late {
            late.sink.start(&holder, recovered.committed)?;
        }
        Ok(runner)
    }

    /// The query's id, stable over restarts.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Id of this run.
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// What the user should know of how it was taken up.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Name of the query.
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// A failure as one of this query's, in the batch at hand unless it says another.
    pub fn attribute(&self, e: EngineError) -> EngineError {
        e.in_query(&self.spec.name).in_batch(self.next_batch)
    }

    /// When its micro-batches run.
    pub fn trigger(&self) -> Trigger {
        self.spec.trigger
    }

    /// Processing time.
    pub fn now_micros(&self) -> i64 {
        self.spec.clock.now_micros()
    }

    /// From now on no new data is seen.
    pub fn freeze(&mut self) -> Result<()> {
        let now = self.now_micros();
        Ok(self.spec.sources.iter_mut().try_for_each(|s| s.freeze(now))?)
    }

    /// Whether event time ends with the input.
    pub fn closes_at_end(&self) -> bool {
        self.spec.close_at_end
    }

    /// Ends event time: the batches that follow read nothing, and finish all that is open. A later run finds the
    /// watermark where this leaves it, at [`END_OF_TIME`](crate::watermark::END_OF_TIME): its rows are late.
    pub fn close(&mut self) {
        self.closed = true;
        self.tracker.close();
    }

    /// Where the query's watermarks stand: the query itself, its inputs, and its stateful operators.
    pub fn watermarks(&self) -> Vec<WatermarkStatus> {
        let graph = self.executor.graph();
        watermark_status(graph, &self.tracker, self.last_evict, self.now_micros())
    }

    fn restore_state(&mut self, committed: Option<u64>) -> Result<()> {
        let Some(checkpoint) = &self.checkpoint else { return Ok(()) };
        let floor = checkpoint.durability().snapshot_floor;
        let graph = self.executor.graph_mut();
        for (node, unit) in graph.units.iter_mut().enumerate() {
            if !stateful::is_stateful(&graph.pipeline, node) {
                continue;
            }
            let n = self.versions.len();
            let (versions, restored) = StateVersions::open(&checkpoint.state_dir(n), committed, floor)?;
            for bytes in restored.parts() {
                stateful::restore(unit, bytes).map_err(|e| e.in_operator(|| stateful::name(&graph.pipeline, node)))?;
            }
            self.versions.push((node, versions));
        }
        Ok(())
    }

    /// Runs the next micro-batch, if there is something to do.
    pub fn run_next(&mut self, limit: ReadLimit) -> Result<Advance> {
        let began = Instant::now();
        let batch = self.next_batch;
        let mut timing: BTreeMap<&'static str, u64> = BTreeMap::new();
        let (planned, entries) = match self.replay.take() {
            Some(planned) => (planned, None),
            None => match self.plan(limit, &mut timing)? {
                Some((planned, entries)) => (planned, Some(entries)),
                None => return Ok(Advance::Idle),
            },
        };
        if let (Some(checkpoint), Some(entries)) = (&mut self.checkpoint, &entries) {
            timed(&mut timing, "walCommit", || checkpoint.plan(batch, &planned, entries))?;
        }
        match self.run(batch, planned, began, timing) {
            Ok(progress) => {
                self.next_batch += 1;
                Ok(Advance::Ran(Box::new(progress)))
            }
            Err(e) => Err(e.in_batch(batch)),
        }
    }

    /// Where the next batch ends, or `None` if there is no new data and no state to finish.
    #[allow(clippy::type_complexity)] // a planned batch and its sources' log entries
    fn plan(
        &mut self,
        limit: ReadLimit,
        timing: &mut BTreeMap<&'static str, u64>,
    ) -> Result<Option<(PlannedBatch, Vec<Option<Vec<u8>>>)>> {
        let now = self.now_micros();
        let mut offsets = self.offsets.clone();
        let mut entries = vec![None; offsets.len()];
        let mut has_new = false;
        timed(timing, "latestOffset", || -> Result<()> {
            for ((source, offset), entry) in self.spec.sources.iter_mut().zip(&mut offsets).zip(&mut entries) {
                if self.closed {
                    break;
                }
                if let Some(next) = source.latest(offset.as_ref(), limit, now)? {
                    has_new = true;
                    *offset = Some(next.end);
                    *entry = next.log_entry;
                }
            }
            Ok(())
        })?;
        self.tracker.tick(now);
        let evict = self.tracker.global();
        let finishes_state = evict > self.last_evict && {
            let graph = self.executor.graph();
            graph
                .units
                .iter()
                .zip(&graph.pipeline.nodes)
                .zip(&graph.streaming)
                .any(|((unit, node), &streaming)| streaming && stateful::finishes_by_watermark(unit, &node.op))
        };
        if !has_new && !finishes_state {
            return Ok(None);
        }
        let watermark = BatchWatermark { late: self.last_evict, evict };
        Ok(Some((PlannedBatch { offsets, watermark, timestamp: now }, entries)))
    }

    fn run(
        &mut self,
        batch: u64,
        planned: PlannedBatch,
        began: Instant,
        mut timing: BTreeMap<&'static str, u64>,
    ) -> Result<QueryProgress> {
        let starts = std::mem::replace(&mut self.offsets, planned.offsets.clone());
        let mut streams = Vec::with_capacity(starts.len());
        timed(&mut timing, "getBatch", || -> Result<()> {
            let graph = self.executor.graph();
            for (i, source) in self.spec.sources.iter_mut().enumerate() {
                let Op::Source { columns, .. } = &graph.pipeline.nodes[graph.streams[i]].op else {
                    return Err(EngineError::internal("a streaming source is no source"));
                };
                streams.push(match &planned.offsets[i] {
                    Some(end) if Some(end) != starts[i].as_ref() => source.splits(starts[i].as_ref(), end, columns)?,
                    _ => Vec::new(),
                });
            }
            Ok(())
        })?;

        let target = SinkBatch { query_id: &self.id, batch, mode: self.spec.pipeline.mode };
        let late_target = SinkBatch { mode: EmitMode::Append, ..target };
        let staged = Mutex::new(Vec::new());
        let mut staged_late = Vec::new();
        let mut state_commit = HashMap::new();
        let rows_out = std::sync::atomic::AtomicU64::new(0);
        let input = BatchInput {
            streams,
            tables: self.spec.tables.as_ref(),
            eval: EvalContext {
                time_zone: self.spec.time_zone.clone(),
                now_micros: planned.timestamp,
                batch_id: batch as i64,
                seed: batch,
                natives: self.spec.runtime.natives.clone(),
                ..EvalContext::default()
            },
            watermark: planned.watermark,
            changelog: self.checkpoint.is_some(),
            keep_late: self.spec.late.is_some(),
        };
        let sink = self.spec.sink.as_ref();
        let ran = timed(&mut timing, "addBatch", || {
            let report = self.executor.run(input, &|partition, rows| {
                let n: usize = rows.iter().map(|b| b.num_rows()).sum();
                let part = sink.write(&target, partition, &rows)?;
                rows_out.fetch_add(n as u64, std::sync::atomic::Ordering::Relaxed);
                staged.lock().unwrap_or_else(PoisonError::into_inner).push((partition, part));
                Ok(())
            })?;
            failpoint::reach("sink-staged")?;
            if let Some(late) = &self.spec.late {
                let rows = late.gather(&report.notes, &planned.offsets)?;
                if !rows.is_empty() {
                    staged_late.push(late.sink.write(&late_target, 0, &rows)?);
                }
                failpoint::reach("late-sink-staged")?;
            }
            for (node, versions) in &mut self.versions {
                let delta = report.deltas.iter().find(|(n, _)| n == node).map_or(&[][..], |(_, d)| d);
                let began = Instant::now();
                versions.append(batch, delta)?;
                state_commit.insert(*node, began.elapsed());
            }
            Ok::<BatchReport, EngineError>(report)
        });
        let mut staged = staged.into_inner().unwrap_or_else(PoisonError::into_inner);
        staged.sort_by_key(|(partition, _)| *partition);
        let staged = staged.into_iter().map(|(_, part)| part).collect();
        let report = match ran {
            Ok(report) => report,
            Err(e) => {
                sink.abort(&target, staged);
                if let Some(late) = &self.spec.late {
                    late.sink.abort(&late_target, staged_late);
                }
                return Err(e);
            }
        };
        // Both sinks know a batch by its number: what a crash leaves between the two commits, the replay completes.
        if let Some(late) = &self.spec.late {
            failpoint::reach("late-sink-before-commit")?;
            late.sink.commit(&late_target, staged_late)?;
            failpoint::reach("late-sink-after-commit")?;
        }
        failpoint::reach("sink-before-commit")?;
        let delivered = timed(&mut timing, "addBatch", || sink.commit(&target, staged))?;
        failpoint::reach("sink-after-commit")?;

        let graph = self.executor.graph();
        let seen: Vec<(NodeId, EventTimeStats)> = graph
            .pipeline
            .nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| matches!(node.op, Op::Watermark { .. }))
            .map(|(i, _)| (NodeId(i as u32), report.notes[i].event_time))
            .collect();
        self.tracker.advance(&seen, planned.timestamp);
        // A batch that is run again may go by a watermark that time moved, or that the end of the input did.
        self.tracker.raise(planned.watermark.evict);
        self.last_evict = planned.watermark.evict;
        let saved: SavedWatermarks = self.tracker.save();
        if let Some(checkpoint) = &mut self.checkpoint {
            timed(&mut timing, "commitOffsets", || checkpoint.commit(batch, saved))?;
        }
        for (source, end) in self.spec.sources.iter_mut().zip(&planned.offsets) {
            if let Some(end) = end {
                source.committed(end)?;
            }
        }
        self.snapshot_where_due(batch)?;
        let delivered = delivered.unwrap_or_else(|| rows_out.into_inner());
        Ok(self.progress(batch, &planned, &starts, &report, &state_commit, &seen, delivered, began, timing))
    }

    /// Begins a snapshot of a state whose changelog has grown out of proportion, and takes note of the one begun before.
    /// It is made beside the query, from what is on disk: no batch waits for it.
    fn snapshot_where_due(&mut self, batch: u64) -> Result<()> {
        if let Some((n, job)) = &mut self.snapshot {
            let Some(ended) = job.ended() else { return Ok(()) };
            let n = *n;
            self.snapshot = None;
            self.versions[n].1.end_snapshot(ended?);
        }
        let Some(checkpoint) = &self.checkpoint else { return Ok(()) };
        let Some(n) = self.versions.iter().position(|(_, versions)| versions.wants_snapshot()) else { return Ok(()) };
        let (node, versions) = &mut self.versions[n];
        versions.begin_snapshot()?;
        let work = SnapshotWork {
            dir: versions.dir().to_path_buf(),
            pipeline: self.spec.pipeline.clone(),
            node: *node,
            n_partitions: self.spec.runtime.n_partitions,
            watermark: self.last_evict,
            batch,
            keep: batch.saturating_sub(checkpoint.durability().retain),
        };
        self.snapshot = Some((n, Job::start("snapshot", move |stop| work.run(stop))?));
        Ok(())
    }

    /// Makes all that was committed durable: a graceful stop.
    pub fn sync(&mut self) -> Result<()> {
        // Runs that are too short for a snapshot would else never make one, and the changelog would grow from run to run.
        if let Some((_, mut job)) = self.snapshot.take()
            && let Some(ended) = job.wait()
        {
            ended?;
        }
        self.checkpoint.as_mut().map_or(Ok(()), Checkpoint::sync)
    }

    #[allow(clippy::too_many_arguments)] // everything that a batch came to
    fn progress(
        &mut self,
        batch: u64,
        planned: &PlannedBatch,
        starts: &[Option<Offset>],
        report: &BatchReport,
        state_commit: &HashMap<usize, Duration>,
        seen: &[(NodeId, EventTimeStats)],
        delivered: u64,
        began: Instant,
        mut timing: BTreeMap<&'static str, u64>,
    ) -> QueryProgress {
        let took = began.elapsed();
        let since_last = self.last_trigger.replace(began).map(|last| began - last);
        let per_second = |rows: u64, over: Option<std::time::Duration>| match over {
            Some(d) if !d.is_zero() => rows as f64 / d.as_secs_f64(),
            _ => 0.0,
        };
        let millis = took.as_millis() as u64;
        timing.insert("triggerExecution", millis);
        timing.entry("queryPlanning").or_insert(0);
        if self.checkpoint.is_none() {
            // Spark always has a checkpoint, if only a temporary one.
            timing.entry("walCommit").or_insert(0);
            timing.entry("commitOffsets").or_insert(0);
        }

        let mut event_time = BTreeMap::new();
        if !self.tracker.is_empty() {
            event_time.insert("watermark", iso_millis(planned.watermark.evict));
            let mut all = EventTimeStats::default();
            seen.iter().for_each(|(_, s)| all.merge(s));
            if all.count > 0 {
                let average = (all.sum / i128::from(all.count)) as i64;
                event_time.insert("avg", iso_millis(average));
                event_time.insert("max", iso_millis(all.max));
                event_time.insert("min", iso_millis(all.min));
            }
        }
        let sources: Vec<SourceProgress> = self
            .spec
            .sources
            .iter()
            .enumerate()
            .map(|(i, source)| {
                let stats = report.sources[i];
                let mut metrics = planned.offsets[i].as_ref().map(|end| source.metrics(end)).unwrap_or_default();
                if stats.bad_records > 0 {
                    metrics.insert("badRecords", stats.bad_records.to_string());
                }
                SourceProgress {
                    description: source.description(),
                    start_offset: starts[i].clone(),
                    end_offset: planned.offsets[i].clone(),
                    latest_offset: source.newest(),
                    num_input_rows: stats.rows,
                    input_rows_per_second: per_second(stats.rows, since_last),
                    processed_rows_per_second: per_second(stats.rows, Some(took)),
                    metrics,
                }
            })
            .collect();
        let rows: u64 = report.sources.iter().map(|s| s.rows).sum();
        QueryProgress {
            id: self.id.clone(),
            run_id: self.run_id.clone(),
            name: Some(self.spec.name.clone()),
            timestamp: iso_millis(planned.timestamp),
            batch_id: batch,
            batch_duration: millis,
            num_input_rows: rows,
            input_rows_per_second: per_second(rows, since_last),
            processed_rows_per_second: per_second(rows, Some(took)),
            duration_ms: timing,
            event_time,
            state_operators: self.state_operators(report, state_commit),
            sources,
            sink: SinkProgress { description: self.spec.sink.description(), num_output_rows: delivered as i64 },
            held_back: held_back_by(&self.executor.graph().pipeline, &self.tracker, planned.timestamp),
        }
    }

    fn state_operators(
        &self,
        report: &BatchReport,
        state_commit: &HashMap<usize, Duration>,
    ) -> Vec<StateOperatorProgress> {
        let graph = self.executor.graph();
        let mut all = Vec::new();
        for (node, unit) in graph.units.iter().enumerate() {
            let (name, metrics) = match unit {
                Unit::Aggregate(_, state) => ("stateStoreSave", state.metrics()),
                Unit::Hop(_, state) => ("stateStoreSave", state.metrics()),
                Unit::Session(state) => ("sessionWindowStateStoreSaveExec", state.metrics()),
                Unit::Dedup(state) => match graph.pipeline.nodes[node].op {
                    Op::Dedup { within_watermark: true, .. } => ("dedupeWithinWatermark", state.metrics()),
                    _ => ("dedupe", state.metrics()),
                },
                Unit::StreamJoin(state) => ("symmetricHashJoin", state.metrics()),
                _ => continue,
            };
            let (total, updated, removed, memory) = metrics;
            // The late filter of an operator is the DropLate right before it; a join counts its own.
            let before = graph.pipeline.nodes[node].inputs.iter().map(|i| i.0 as usize);
            let late = before
                .filter(|&i| matches!(graph.pipeline.nodes[i].op, Op::DropLate { .. }))
                .chain([node])
                .map(|i| report.notes[i].late)
                .sum();
            let work = report.state_work.get(&node).copied().unwrap_or_default();
            let mut custom_metrics = BTreeMap::from([("stateOnCurrentVersionSizeBytes", memory)]);
            if let Unit::Dedup(_) = unit {
                custom_metrics.insert("numDroppedDuplicateRows", work.duplicates);
            }
            let partitions = self.spec.runtime.n_partitions as u64;
            // Each side of a join has two stores in Spark: of the keys' numbers of rows, and of the rows.
            let stores = if let Unit::StreamJoin(_) = unit { 4 * partitions } else { partitions };
            all.push(StateOperatorProgress {
                operator_name: name,
                num_rows_total: total,
                num_rows_updated: updated,
                all_updates_time_ms: work.updates.as_millis() as u64,
                num_rows_removed: removed,
                all_removals_time_ms: work.removals.as_millis() as u64,
                commit_time_ms: state_commit.get(&node).map_or(0, |d| d.as_millis() as u64),
                memory_used_bytes: memory,
                num_rows_dropped_by_watermark: late,
                num_shuffle_partitions: partitions,
                num_state_store_instances: stores,
                custom_metrics,
            });
        }
        all
    }
}

/// What a snapshot is made of.
struct SnapshotWork {
    dir: std::path::PathBuf,
    pipeline: Pipeline,
    node: usize,
    n_partitions: usize,
    watermark: i64,
    batch: u64,
    keep: u64,
}

impl SnapshotWork {
    /// Restores the state of the batch as a restart would, writes it whole, and removes what nobody needs any more.
    /// Returns its size.
    fn run(self, stop: &Stop) -> Result<u64> {
        let restored = StateVersions::read(&self.dir, self.batch)?;
        let mut unit = stateful::instantiate(&self.pipeline, self.node, self.n_partitions)?;
        for part in restored.parts() {
            if stop.asked() {
                return Ok(0);
            }
            stateful::restore(&mut unit, part)?;
        }
        drop(restored);
        let state = stateful::snapshot(&mut unit, self.watermark);
        drop(unit);
        if stop.asked() {
            return Ok(0);
        }
        StateVersions::write_snapshot(&self.dir, self.batch, &state)?;
        StateVersions::remove_before(&self.dir, self.keep)?;
        Ok(state.len() as u64)
    }
}

/// The kind of a source: its description without the place.
fn kind_of(description: &str) -> String {
    description.split_once('[').map_or(description, |(kind, _)| kind).to_owned()
}

/// Runs a step and adds to its milliseconds.
fn timed<T, E>(
    timing: &mut BTreeMap<&'static str, u64>,
    step: &'static str,
    run: impl FnOnce() -> Result<T, E>,
) -> Result<T, EngineError>
where
    EngineError: From<E>,
{
    let began = Instant::now();
    let result = run();
    *timing.entry(step).or_insert(0) += began.elapsed().as_millis() as u64;
    Ok(result?)
}
