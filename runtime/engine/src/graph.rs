//! A pipeline instantiated: which operators run as steps on each batch, which collect a micro-batch first, and where
//! each of those gets its rows from.

use std::sync::Arc;

use arrow::array::RecordBatch;
use ssql_ir::{EmitMode, JoinKind, NodeId, Op, Pipeline, Schema};

use crate::error::{EngineError, Result};
use crate::kernels::Kernels;
use crate::operators::aggregate::{AggregateState, Aggregation};
use crate::operators::dedup::Dedup;
use crate::operators::hash_join::{JoinSpec, Probe};
use crate::operators::hop::{Hop, HopState};
use crate::operators::map::Map;
use crate::operators::session::SessionState;
use crate::operators::sort::{Limit, Sort};
use crate::operators::step::{AssignWindows, Generate, Step};
use crate::operators::stream_join::StreamJoin;
use crate::operators::window_function::WindowFunctions;

/// Where a chain of steps begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaf {
    /// A streaming source, by its number among the pipeline's streaming sources.
    Stream(usize),
    /// A static relation, by node.
    Table(usize),
    /// Constant rows, by node.
    Values(usize),
    /// The collected output of an operator.
    Node(usize),
}

/// A leaf and the steps that its rows go through, in order (node numbers).
#[derive(Debug, Clone)]
pub struct Feed {
    /// Where the rows come from.
    pub leaf: Leaf,
    /// Steps, by node.
    pub steps: Vec<usize>,
}

/// An operator, instantiated.
pub enum Unit {
    /// A leaf, or `Union`, or `Sink`: nothing runs.
    Pass,
    /// Runs on each batch.
    Step(Step),
    /// `Op::Aggregate`.
    Aggregate(Arc<Aggregation>, Box<AggregateState>),
    /// `Op::HopAggregate`.
    Hop(Arc<Aggregation>, Box<HopState>),
    /// `Op::SessionAggregate`.
    Session(Box<SessionState>),
    /// `Op::Dedup`.
    Dedup(Box<Dedup>),
    /// `Op::StreamJoin`.
    StreamJoin(Box<StreamJoin>),
    /// A right or full outer `Op::HashJoin` of two bounded inputs.
    OuterJoin(Arc<JoinSpec>),
    /// `Op::Sort`.
    Sort(Sort),
    /// `Op::Limit`.
    Limit(Limit),
    /// `Op::WindowFunction`.
    WindowFunction(Box<WindowFunctions>),
}

impl Unit {
    /// Forgets all state, for an operator that starts afresh.
    pub fn clear(&mut self) {
        match self {
            Unit::Aggregate(_, state) => state.clear(),
            Unit::Hop(_, state) => state.clear(),
            Unit::Session(state) => state.clear(),
            Unit::Dedup(state) => state.clear(),
            Unit::Limit(limit) => limit.restore(0),
            Unit::Pass
            | Unit::Step(_)
            | Unit::StreamJoin(_)
            | Unit::OuterJoin(_)
            | Unit::Sort(_)
            | Unit::WindowFunction(_) => {}
        }
    }
}

/// A pipeline ready to run.
pub struct Graph {
    /// The pipeline.
    pub pipeline: Pipeline,
    /// One unit per node.
    pub units: Vec<Unit>,
    /// Where the output rows of each node come from.
    pub feeds: Vec<Vec<Feed>>,
    /// Constant rows of `Op::Values` nodes.
    pub values: Vec<Option<RecordBatch>>,
    /// Whether rows of a stream reach each node. What is not reached is computed afresh in every micro-batch.
    pub streaming: Vec<bool>,
    /// Nodes of the streaming sources, in order.
    pub streams: Vec<usize>,
}

impl Graph {
    /// Instantiates every operator. `n_partitions`: parts of each operator's state.
    pub fn new(pipeline: &Pipeline, kernels: &Kernels, n_partitions: usize) -> Result<Graph> {
        let mut graph = Graph {
            pipeline: pipeline.clone(),
            units: Vec::new(),
            feeds: Vec::new(),
            values: vec![None; pipeline.nodes.len()],
            streaming: Vec::new(),
            streams: Vec::new(),
        };
        for (at, node) in pipeline.nodes.iter().enumerate() {
            let own = matches!(node.op, Op::Source { streaming: true, .. });
            let streaming = own || node.inputs.iter().any(|i| graph.streaming[i.0 as usize]);
            graph.streaming.push(streaming);
            let unit = graph.unit(at, kernels, n_partitions)?;
            let feeds = graph.feeds_of(at, &unit);
            graph.units.push(unit);
            graph.feeds.push(feeds);
        }
        Ok(graph)
    }

    /// Whether rows of a stream reach the node.
    pub fn is_streaming(&self, node: NodeId) -> bool {
        self.streaming[node.0 as usize]
    }

    /// Columns of a node's output.
    pub fn schema(&self, node: usize) -> &Schema {
        &self.pipeline.nodes[node].schema
    }

    fn input(&self, at: usize, i: usize) -> &Schema {
        self.schema(self.pipeline.nodes[at].inputs[i].0 as usize)
    }

    fn unit(&mut self, at: usize, kernels: &Kernels, n_partitions: usize) -> Result<Unit> {
        let node = &self.pipeline.nodes[at];
        let schema = &node.schema;
        Ok(match &node.op {
            Op::Source { streaming, .. } => {
                if *streaming {
                    self.streams.push(at);
                }
                Unit::Pass
            }
            Op::Values { rows } => {
                self.values[at] = Some(constant_rows(rows, schema)?);
                Unit::Pass
            }
            Op::Map { predicate, project } => {
                Unit::Step(Step::Map(Map::new(predicate.clone(), project.clone(), self.input(at, 0), schema, kernels)?))
            }
            Op::Watermark { column, max_skew, .. } => {
                Unit::Step(Step::Watermark { column: *column as usize, max_skew: *max_skew })
            }
            Op::DropLate { rule } => Unit::Step(Step::DropLate(*rule)),
            Op::AssignWindows { time, size, slide, offset } => {
                Unit::Step(Step::AssignWindows(AssignWindows::new(*time, *size, *slide, *offset, schema)))
            }
            Op::Expand { projections } => {
                let input = self.input(at, 0);
                let maps = projections.iter().map(|p| Map::new(None, p.clone(), input, schema, kernels));
                Unit::Step(Step::Expand(maps.collect::<Result<_>>()?))
            }
            Op::Generate { generator, args, outer } => {
                Unit::Step(Step::Generate(Generate::new(generator.clone(), args.clone(), *outer, schema)))
            }
            Op::Aggregate { keys, aggs, close, emit } => {
                let spec = Arc::new(Aggregation::new(keys, aggs, self.input(at, 0), schema, kernels)?);
                let state = AggregateState::new(Arc::clone(&spec), close.as_ref(), *emit, n_partitions)?;
                Unit::Aggregate(spec, Box::new(state))
            }
            Op::HopAggregate { slice, size, slide, offset, keys, aggs, close, emit } => {
                let keys: Vec<u32> = [*slice].iter().chain(keys).copied().collect();
                let spec = Arc::new(Aggregation::new(&keys, aggs, self.input(at, 0), schema, kernels)?);
                let hop = Hop { size: *size, slide: *slide, offset: *offset };
                let state = HopState::new(Arc::clone(&spec), hop, *close, *emit, n_partitions);
                Unit::Hop(spec, Box::new(state))
            }
            Op::SessionAggregate { start, end, keys, aggs, close, emit } => Unit::Session(Box::new(SessionState::new(
                *start,
                *end,
                keys,
                aggs,
                *close,
                *emit,
                self.input(at, 0),
                schema,
            )?)),
            Op::Dedup { keys, close, within_watermark } => {
                Unit::Dedup(Box::new(Dedup::new(keys, close.as_ref(), *within_watermark, self.input(at, 0))?))
            }
            Op::StreamJoin { kind, left, right, residual } => Unit::StreamJoin(Box::new(StreamJoin::new(
                *kind,
                left,
                right,
                residual.clone(),
                self.input(at, 0),
                self.input(at, 1),
                schema,
            )?)),
            Op::HashJoin { kind, left_keys, right_keys, null_safe, residual } => {
                let right_streams = self.is_streaming(node.inputs[1]);
                let spec = Arc::new(JoinSpec::new(
                    *kind,
                    right_streams,
                    left_keys,
                    right_keys,
                    null_safe,
                    residual.clone(),
                    self.input(at, 0),
                    self.input(at, 1),
                    schema,
                )?);
                let keeps_build = match kind {
                    JoinKind::Full => true,
                    JoinKind::Right => !right_streams,
                    JoinKind::Left => right_streams,
                    _ => false,
                };
                if keeps_build { Unit::OuterJoin(spec) } else { Unit::Step(Step::Probe(Probe { spec })) }
            }
            Op::Union | Op::Sink { .. } => Unit::Pass,
            Op::Sort { keys } => Unit::Sort(Sort::new(keys, schema)),
            Op::Limit { limit, offset } => {
                // Rows of a table are all there in each micro-batch, as those of a COMPLETE result are.
                let once = self.pipeline.mode == EmitMode::Complete || !self.is_streaming(node.inputs[0]);
                Unit::Limit(Limit::new(*limit, *offset, once))
            }
            Op::WindowFunction { partition, order, calls } => Unit::WindowFunction(Box::new(WindowFunctions::new(
                partition,
                order,
                calls,
                self.input(at, 0),
                schema,
            )?)),
        })
    }

    fn feeds_of(&self, at: usize, unit: &Unit) -> Vec<Feed> {
        let node = &self.pipeline.nodes[at];
        let leaf = |leaf| vec![Feed { leaf, steps: Vec::new() }];
        match (unit, &node.op) {
            (Unit::Pass, Op::Source { streaming: true, .. }) => leaf(Leaf::Stream(self.streams.len() - 1)),
            (Unit::Pass, Op::Source { .. }) => leaf(Leaf::Table(at)),
            (Unit::Pass, Op::Values { .. }) => leaf(Leaf::Values(at)),
            (Unit::Pass, _) => node.inputs.iter().flat_map(|i| self.feeds[i.0 as usize].clone()).collect(),
            (Unit::Step(step), _) => {
                // A join's rows are those of its probing side; the other side is built before.
                let side = match step {
                    Step::Probe(probe) => usize::from(probe.spec.build_left),
                    _ => 0,
                };
                let mut feeds = self.feeds[node.inputs[side].0 as usize].clone();
                feeds.iter_mut().for_each(|f| f.steps.push(at));
                feeds
            }
            _ => leaf(Leaf::Node(at)),
        }
    }
}

/// Whether rows of a stream reach the node.
pub fn is_streaming(pipeline: &Pipeline, node: NodeId) -> bool {
    let node = &pipeline.nodes[node.0 as usize];
    match &node.op {
        Op::Source { streaming, .. } => *streaming,
        _ => node.inputs.iter().any(|&i| is_streaming(pipeline, i)),
    }
}

/// The rows of `Op::Values`.
fn constant_rows(rows: &[Vec<ssql_ir::Expr>], schema: &Schema) -> Result<RecordBatch> {
    use arrow::array::{ArrayRef, RecordBatchOptions};
    let one = RecordBatch::try_new_with_options(
        Arc::new(arrow::datatypes::Schema::empty()),
        Vec::new(),
        &RecordBatchOptions::new().with_row_count(Some(1)),
    )?;
    let ctx = ssql_stdlib::EvalContext::default();
    let arrow_schema = ssql_stdlib::arrow_schema(schema);
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(schema.len());
    for c in 0..schema.len() {
        let cells = rows
            .iter()
            .map(|row| match row.get(c) {
                Some(cell) => Ok(ssql_stdlib::evaluate(cell, &one, &ctx)?),
                None => Err(EngineError::internal("a VALUES row is shorter than its schema")),
            })
            .collect::<Result<Vec<_>>>()?;
        let parts: Vec<&dyn arrow::array::Array> = cells.iter().map(AsRef::as_ref).collect();
        columns.push(if parts.is_empty() {
            arrow::array::new_empty_array(arrow_schema.field(c).data_type())
        } else {
            arrow::compute::concat(&parts)?
        });
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    Ok(RecordBatch::try_new_with_options(arrow_schema, columns, &options)?)
}
