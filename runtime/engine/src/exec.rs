//! One micro-batch through a graph: operators in topological order, pieces of input in parallel.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use arrow::array::{ArrayRef, RecordBatch, new_null_array};
use rayon::prelude::*;
use ssql_ir::{Op, Symbol};
use ssql_stdlib::EvalContext;

use crate::connector::{Split, SplitStats, StaticTable};
use crate::error::{EngineError, Result};
use crate::graph::{Feed, Graph, Leaf, Unit};
use crate::operators::groups::Groups;
use crate::operators::hash_join::{Build, outer_join};
use crate::operators::step::{Step, StepContext, StepNotes};
use crate::stateful;
use crate::watermark::BatchWatermark;

/// Pieces of a stream that go to one output partition.
const PIECES_PER_PARTITION: usize = 16;
/// Collected rows below this are not worth a second thread.
const ROWS_PER_PIECE: usize = 1 << 16;

/// Static relations, by name.
pub trait Tables: Send + Sync {
    /// Opens the relation for one reading.
    fn table(&self, relation: &str) -> Result<Arc<dyn StaticTable>>;
}

/// What a micro-batch runs with.
pub struct BatchInput<'a> {
    /// Pieces of each streaming source, in the pipeline's order.
    pub streams: Vec<Vec<Box<dyn Split>>>,
    /// Static relations.
    pub tables: &'a dyn Tables,
    /// For expressions. Its subqueries are filled in by [`Executor::run`].
    pub eval: EvalContext,
    /// The query's watermarks.
    pub watermark: BatchWatermark,
    /// Whether stateful operators note their changes.
    pub changelog: bool,
    /// Whether late rows are kept in the report.
    pub keep_late: bool,
}

/// What a micro-batch came to, beside its rows.
#[derive(Default)]
pub struct BatchReport {
    /// What each step noted, by node.
    pub notes: Vec<StepNotes>,
    /// What was read of each streaming source.
    pub sources: Vec<SplitStats>,
    /// (node, changes) of each stateful operator.
    pub deltas: Vec<(usize, Vec<u8>)>,
    /// What each stateful operator spent its time on, by node.
    pub state_work: HashMap<usize, StateWork>,
}

/// What a stateful operator did in a micro-batch.
#[derive(Debug, Clone, Copy, Default)]
pub struct StateWork {
    /// Taking rows in.
    pub updates: Duration,
    /// Giving out what is finished, and noting changes.
    pub removals: Duration,
    /// Rows that a deduplication did not pass on.
    pub duplicates: u64,
}

/// Where the result's rows go: (partition, rows), from any thread.
pub type Deliver<'a> = &'a (dyn Fn(u32, Vec<RecordBatch>) -> Result<()> + Sync);

/// A graph with the threads that it runs on.
pub struct Executor {
    graph: Graph,
    subqueries: Vec<Executor>,
    pool: Arc<rayon::ThreadPool>,
}

/// A piece of a feed's rows.
struct Piece {
    rows: Rows,
    /// Which feed it belongs to.
    feed: usize,
    /// Which streaming source it is of.
    stream: Option<usize>,
}

enum Rows {
    Split(Box<dyn Split>),
    Batches(Vec<RecordBatch>),
}

/// What all threads of a micro-batch share.
struct Run<'a> {
    graph: &'a Graph,
    /// The operator that takes the rows.
    at: usize,
    eval: &'a EvalContext,
    watermarks: &'a [BatchWatermark],
    builds: &'a HashMap<usize, Build>,
    report: &'a Mutex<BatchReport>,
    keep_late: bool,
}

impl Executor {
    /// Wraps an instantiated graph; its subqueries are instantiated by the caller.
    pub fn new(graph: Graph, subqueries: Vec<Executor>, pool: Arc<rayon::ThreadPool>) -> Executor {
        Executor { graph, subqueries, pool }
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The graph, for restoring state.
    pub fn graph_mut(&mut self) -> &mut Graph {
        &mut self.graph
    }

    /// Runs one micro-batch and delivers its result.
    pub fn run(&mut self, input: BatchInput<'_>, deliver: Deliver<'_>) -> Result<BatchReport> {
        let BatchInput { streams, tables, mut eval, watermark, changelog, keep_late } = input;
        eval.subqueries =
            self.subqueries.iter_mut().map(|sub| sub.scalar(tables, &eval)).collect::<Result<Vec<ArrayRef>>>()?;

        let n = self.graph.units.len();
        let report = Mutex::new(BatchReport {
            notes: vec![StepNotes::default(); n],
            sources: vec![SplitStats::default(); streams.len()],
            deltas: Vec::new(),
            state_work: HashMap::new(),
        });
        let watermarks = self.watermarks(watermark);
        let mut sources = Sources { streams: streams.into_iter().map(Some).collect(), tables, outputs: HashMap::new() };
        let mut builds: HashMap<usize, Build> = HashMap::new();

        for at in 0..n {
            // The operator is taken out while it runs, so that its input's steps can be borrowed beside it.
            let mut unit = std::mem::replace(&mut self.graph.units[at], Unit::Pass);
            let run = Run {
                graph: &self.graph,
                at,
                eval: &eval,
                watermarks: &watermarks,
                builds: &builds,
                report: &report,
                keep_late,
            };
            // Over static inputs a micro-batch knows nothing of those before.
            let streaming = self.graph.streaming[at];
            if !streaming {
                unit.clear();
            }
            let mut delta = Vec::new();
            let log = (changelog && streaming).then_some(&mut delta);
            let inputs: Vec<&[Feed]> = self.graph.pipeline.nodes[at]
                .inputs
                .iter()
                .map(|i| self.graph.feeds[i.0 as usize].as_slice())
                .collect();
            let mut keeps_state = streaming;
            let mut new_build = None;
            let (began, mut work) = (Instant::now(), StateWork::default());
            let operate = || -> Result<Option<Vec<RecordBatch>>> {
                Ok(match &mut unit {
                    Unit::Pass => None,
                    Unit::Step(Step::Probe(probe)) => {
                        let side = usize::from(!probe.spec.build_left);
                        let rows = self.collect(&run, inputs[side], &mut sources)?;
                        new_build = Some(probe.spec.build(&rows)?);
                        None
                    }
                    Unit::Step(_) => None,
                    Unit::Aggregate(spec, state) => {
                        let pieces = sources.pieces(&run, inputs[0])?;
                        let accumulate = |groups: &mut Groups, batch: RecordBatch| spec.accumulate(groups, &batch);
                        self.each(
                            &run,
                            inputs[0],
                            pieces,
                            || spec.groups(),
                            accumulate,
                            |partials| self.pool.install(|| state.merge(partials)),
                        )?;
                        work.updates = began.elapsed();
                        Some(self.pool.install(|| state.finish(watermarks[at], log))?)
                    }
                    Unit::Hop(spec, state) => {
                        let pieces = sources.pieces(&run, inputs[0])?;
                        let accumulate = |groups: &mut Groups, batch: RecordBatch| spec.accumulate(groups, &batch);
                        self.each(
                            &run,
                            inputs[0],
                            pieces,
                            || spec.groups(),
                            accumulate,
                            |partials| self.pool.install(|| state.merge(partials)),
                        )?;
                        work.updates = began.elapsed();
                        Some(self.pool.install(|| state.finish(watermarks[at], log))?)
                    }
                    Unit::Session(state) => {
                        let rows = self.collect(&run, inputs[0], &mut sources)?;
                        state.apply(&rows)?;
                        work.updates = began.elapsed();
                        Some(state.finish(watermarks[at], log)?)
                    }
                    Unit::Dedup(state) => {
                        let rows = self.collect(&run, inputs[0], &mut sources)?;
                        let out = state.apply(&rows)?;
                        work.updates = began.elapsed();
                        let count = |batches: &[RecordBatch]| batches.iter().map(|b| b.num_rows() as u64).sum::<u64>();
                        work.duplicates = count(&rows).saturating_sub(count(&out));
                        state.finish(watermarks[at].evict, log)?;
                        Some(out)
                    }
                    Unit::StreamJoin(join) => {
                        let left = self.collect(&run, inputs[0], &mut sources)?;
                        let right = self.collect(&run, inputs[1], &mut sources)?;
                        join.keep_late(keep_late);
                        let mut out = join.apply(&left, &right, watermarks[at], &eval)?;
                        work.updates = began.elapsed();
                        out.extend(join.finish(watermarks[at], log)?);
                        let notes = &mut run.lock().notes[at];
                        notes.late += join.late();
                        notes.late_rows.append(&mut join.take_late_rows());
                        Some(out)
                    }
                    Unit::Limit(limit) => {
                        let rows = self.collect(&run, inputs[0], &mut sources)?;
                        let out = limit.apply(&rows);
                        if let Some(log) = log {
                            log.extend_from_slice(&limit.seen().to_le_bytes());
                        }
                        Some(out)
                    }
                    Unit::OuterJoin(spec) => {
                        keeps_state = false;
                        let (probe, build) = if spec.build_left { (1, 0) } else { (0, 1) };
                        let build = spec.build(&self.collect(&run, inputs[build], &mut sources)?)?;
                        let probe = self.collect(&run, inputs[probe], &mut sources)?;
                        Some(outer_join(spec, &probe, &build, &eval)?)
                    }
                    Unit::Sort(sort) => {
                        keeps_state = false;
                        Some(sort.apply(&self.collect(&run, inputs[0], &mut sources)?)?)
                    }
                    Unit::WindowFunction(functions) => {
                        keeps_state = false;
                        Some(functions.apply(&self.collect(&run, inputs[0], &mut sources)?)?)
                    }
                })
            };
            let output = operate().map_err(|e| e.in_operator(|| run.name(at)))?;
            if let Some(rows) = output {
                if keeps_state {
                    work.removals = began.elapsed().saturating_sub(work.updates);
                    run.lock().state_work.insert(at, work);
                }
                sources.outputs.insert(at, rows);
                if keeps_state && changelog {
                    run.lock().deltas.push((at, delta));
                }
            }
            if !streaming {
                unit.clear();
            }
            self.graph.units[at] = unit;
            if let Some(build) = new_build {
                builds.insert(at, build);
            }
        }

        let run = Run {
            graph: &self.graph,
            at: n - 1,
            eval: &eval,
            watermarks: &watermarks,
            builds: &builds,
            report: &report,
            keep_late,
        };
        let root = &self.graph.feeds[n - 1];
        let pieces = sources.pieces(&run, root)?;
        self.deliver(&run, root, pieces, deliver)?;
        Ok(report.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// Delivers the result in partitions of consecutive pieces.
    fn deliver(&self, run: &Run<'_>, feeds: &[Feed], pieces: Vec<Piece>, deliver: Deliver<'_>) -> Result<()> {
        let threads = self.pool.current_num_threads().max(1);
        let per_partition = pieces.len().div_ceil(threads).clamp(1, PIECES_PER_PARTITION);
        let mut partitions: Vec<Vec<(usize, Piece)>> = Vec::new();
        for (i, piece) in pieces.into_iter().enumerate() {
            if i % per_partition == 0 {
                partitions.push(Vec::new());
            }
            partitions.last_mut().expect("just pushed").push((i, piece));
        }
        let one = |(number, pieces): (usize, Vec<(usize, Piece)>)| -> Result<()> {
            let mut rows = Vec::new();
            for (i, piece) in pieces {
                run.piece(feeds, i, piece, &mut |batch| {
                    rows.push(batch);
                    Ok(())
                })?;
            }
            rows.retain(|b: &RecordBatch| b.num_rows() > 0);
            if rows.is_empty() { Ok(()) } else { deliver(number as u32, rows) }
        };
        if partitions.len() < 2 {
            return partitions.into_iter().enumerate().try_for_each(one);
        }
        self.pool.install(|| partitions.into_par_iter().enumerate().try_for_each(one))
    }

    /// All rows of these feeds, in order.
    fn collect(&self, run: &Run<'_>, feeds: &[Feed], sources: &mut Sources<'_>) -> Result<Vec<RecordBatch>> {
        let pieces = sources.pieces(run, feeds)?;
        let mut all = Vec::new();
        let push = |rows: &mut Vec<RecordBatch>, batch: RecordBatch| {
            if batch.num_rows() > 0 {
                rows.push(batch);
            }
            Ok(())
        };
        self.each(run, feeds, pieces, Vec::new, push, |parts| {
            all.extend(parts.into_iter().flatten());
            Ok(())
        })?;
        Ok(all)
    }

    /// Consumes each piece's batches into a value of its own, in parallel, and hands the values on in order.
    fn each<T: Send>(
        &self,
        run: &Run<'_>,
        feeds: &[Feed],
        pieces: Vec<Piece>,
        make: impl Fn() -> T + Sync,
        consume: impl Fn(&mut T, RecordBatch) -> Result<()> + Sync,
        mut merge: impl FnMut(Vec<T>) -> Result<()>,
    ) -> Result<()> {
        let one = |(i, piece): (usize, Piece)| -> Result<T> {
            let mut value = make();
            run.piece(feeds, i, piece, &mut |batch| consume(&mut value, batch))?;
            Ok(value)
        };
        if pieces.len() < 2 {
            for piece in pieces.into_iter().enumerate() {
                merge(vec![one(piece)?])?;
            }
            return Ok(());
        }
        // Waves bound how many unmerged values there are at a time.
        let wave = self.pool.current_num_threads().max(1) * 4;
        let mut pieces = pieces.into_iter().enumerate();
        loop {
            let next: Vec<(usize, Piece)> = pieces.by_ref().take(wave).collect();
            if next.is_empty() {
                return Ok(());
            }
            let values: Vec<T> = self.pool.install(|| next.into_par_iter().map(one).collect::<Result<_>>())?;
            merge(values)?;
        }
    }

    /// The one value of a subquery: NULL if it has no row, an error if it has several.
    fn scalar(&mut self, tables: &dyn Tables, eval: &EvalContext) -> Result<ArrayRef> {
        let rows = Mutex::new(Vec::new());
        let input = BatchInput {
            streams: Vec::new(),
            tables,
            eval: eval.clone(),
            watermark: BatchWatermark::default(),
            changelog: false,
            keep_late: false,
        };
        self.run(input, &|_, batches| {
            rows.lock().unwrap_or_else(std::sync::PoisonError::into_inner).extend(batches);
            Ok(())
        })?;
        let rows: Vec<RecordBatch> = rows.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let schema = self.graph.schema(self.graph.units.len() - 1);
        match rows.iter().map(RecordBatch::num_rows).sum::<usize>() {
            0 => Ok(new_null_array(&ssql_stdlib::arrow_type(&schema.fields[0].data_type), 1)),
            1 => Ok(Arc::clone(rows.iter().find(|b| b.num_rows() == 1).expect("one row in all").column(0))),
            _ => Err(EngineError::new(
                "SCALAR_SUBQUERY_TOO_MANY_ROWS",
                crate::connector::Domain::User,
                "a subquery used as a value returned more than one row",
            )
            .with_help("Add LIMIT 1, or aggregate it to one row.")),
        }
    }

    /// The watermarks that each node goes by: the query's, held back behind joins that keep rows beyond it.
    fn watermarks(&self, global: BatchWatermark) -> Vec<BatchWatermark> {
        let mut input: Vec<BatchWatermark> = Vec::new();
        let mut output: Vec<Option<BatchWatermark>> = Vec::new();
        for (node, unit) in self.graph.pipeline.nodes.iter().zip(&self.graph.units) {
            let least = |a: BatchWatermark, b: BatchWatermark| BatchWatermark {
                late: a.late.min(b.late),
                evict: a.evict.min(b.evict),
            };
            let below = node.inputs.iter().filter_map(|i| output[i.0 as usize]).reduce(least);
            input.push(below.unwrap_or(global));
            output.push(match (&node.op, unit) {
                (Op::Watermark { .. }, _) => Some(global),
                (_, Unit::StreamJoin(join)) => below.map(|wm| BatchWatermark {
                    late: join.output_watermark(wm.late),
                    evict: join.output_watermark(wm.evict),
                }),
                _ => below,
            });
        }
        input
    }
}

/// Rows that leaves stand for, handed out as they are asked for.
struct Sources<'a> {
    streams: Vec<Option<Vec<Box<dyn Split>>>>,
    tables: &'a dyn Tables,
    outputs: HashMap<usize, Vec<RecordBatch>>,
}

impl Sources<'_> {
    fn pieces(&mut self, run: &Run<'_>, feeds: &[Feed]) -> Result<Vec<Piece>> {
        let mut pieces = Vec::new();
        for (feed, Feed { leaf, .. }) in feeds.iter().enumerate() {
            match leaf {
                Leaf::Stream(i) => {
                    let splits = self.streams[*i].take().ok_or_else(|| {
                        EngineError::internal("a source of the pipeline has two readers; it must have one")
                    })?;
                    pieces.extend(splits.into_iter().map(|s| Piece { rows: Rows::Split(s), feed, stream: Some(*i) }));
                }
                Leaf::Table(node) => {
                    let (relation, columns) = source_of(run.graph, *node)?;
                    let splits = self.tables.table(&relation)?.splits(&columns)?;
                    pieces.extend(splits.into_iter().map(|s| Piece { rows: Rows::Split(s), feed, stream: None }));
                }
                Leaf::Values(node) => {
                    let rows = run.graph.values[*node].clone().into_iter().collect();
                    pieces.push(Piece { rows: Rows::Batches(rows), feed, stream: None });
                }
                Leaf::Node(node) => {
                    let batches = self.outputs.get(node).cloned().unwrap_or_default();
                    let mut part: Vec<RecordBatch> = Vec::new();
                    let mut rows = 0;
                    for batch in batches {
                        rows += batch.num_rows();
                        part.push(batch);
                        if rows >= ROWS_PER_PIECE {
                            let full = std::mem::take(&mut part);
                            pieces.push(Piece { rows: Rows::Batches(full), feed, stream: None });
                            rows = 0;
                        }
                    }
                    if !part.is_empty() {
                        pieces.push(Piece { rows: Rows::Batches(part), feed, stream: None });
                    }
                }
            }
        }
        Ok(pieces)
    }
}

fn source_of(graph: &Graph, node: usize) -> Result<(Symbol, Vec<u32>)> {
    match &graph.pipeline.nodes[node].op {
        Op::Source { relation, columns, .. } => Ok((relation.clone(), columns.clone())),
        other => Err(EngineError::internal(format!("{other:?} is no relation"))),
    }
}

impl Run<'_> {
    fn lock(&self) -> std::sync::MutexGuard<'_, BatchReport> {
        self.report.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn name(&self, node: usize) -> String {
        stateful::name(&self.graph.pipeline, node)
    }

    /// Sends a piece's batches through its feed's steps to `consume`.
    fn piece(
        &self,
        feeds: &[Feed],
        number: usize,
        piece: Piece,
        consume: &mut dyn FnMut(RecordBatch) -> Result<()>,
    ) -> Result<()> {
        let steps = &feeds[piece.feed].steps;
        let mut notes = vec![StepNotes::default(); steps.len()];
        // Row numbers are unique within a micro-batch and the same on a replay, as Spark's partition-wise ones are.
        let mut eval = self.eval.clone();
        eval.first_row = (number as u64) << 33;
        let mut one = |batch: RecordBatch| -> Result<()> {
            let rows = batch.num_rows() as u64;
            let mut batch = batch;
            for (&node, notes) in steps.iter().zip(&mut notes) {
                let Unit::Step(step) = &self.graph.units[node] else {
                    return Err(EngineError::internal(format!("node {node} is no step")));
                };
                let ctx = StepContext {
                    eval: &eval,
                    watermark: self.watermarks[node],
                    build: self.builds.get(&node),
                    keep_late: self.keep_late,
                };
                batch = step.apply(batch, &ctx, notes).map_err(|e| e.in_operator(|| self.name(node)))?;
            }
            eval.first_row += rows;
            consume(batch).map_err(|e| e.in_operator(|| self.name(self.at)))
        };
        let stats = match piece.rows {
            Rows::Batches(batches) => {
                batches.into_iter().try_for_each(&mut one)?;
                SplitStats::default()
            }
            Rows::Split(mut split) => split.read(&mut |batch| one(batch).map_err(Into::into)).map_err(|e| {
                // What is not an operator's failure is the source's.
                EngineError::from(e).in_operator(|| match feeds[piece.feed].leaf {
                    Leaf::Stream(i) => self.name(self.graph.streams[i]),
                    Leaf::Table(node) | Leaf::Values(node) | Leaf::Node(node) => self.name(node),
                })
            })?,
        };
        let mut report = self.lock();
        for (&node, notes) in steps.iter().zip(notes) {
            report.notes[node].merge(notes, number);
        }
        if let Some(i) = piece.stream {
            let total = &mut report.sources[i];
            total.rows += stats.rows;
            total.bytes += stats.bytes;
            total.bad_records += stats.bad_records;
        }
        Ok(())
    }
}
