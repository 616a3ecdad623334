//! Batch queries: one micro-batch over bounded inputs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use ssql_ir::Pipeline;
use ssql_stdlib::EvalContext;

use crate::connector::{ConnectorError, Domain, Split, SplitStats, StaticTable};
use crate::error::{EngineError, Result};
use crate::exec::{BatchInput, Executor, Tables};
use crate::graph::Graph;
use crate::query::RuntimeConfig;
use crate::watermark::BatchWatermark;

/// Instantiates a pipeline and its subqueries. It is verified first: kernels rely on what the IR says of its types.
pub fn executor(pipeline: &Pipeline, runtime: &RuntimeConfig) -> Result<Executor> {
    ssql_ir::verify::verify(pipeline).map_err(|errors| {
        let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
        EngineError::internal(format!("the plan breaks the IR's rules: {}", all.join("; ")))
    })?;
    let subqueries = pipeline.subqueries.iter().map(|p| executor(p, runtime)).collect::<Result<Vec<_>>>()?;
    let graph = Graph::new(pipeline, &runtime.kernels, runtime.n_partitions)?;
    Ok(Executor::new(graph, subqueries, Arc::clone(&runtime.pool)))
}

/// Runs a query over static relations and returns its rows, in order.
pub fn run_batch(
    pipeline: &Pipeline,
    tables: &dyn Tables,
    eval: EvalContext,
    runtime: &RuntimeConfig,
) -> Result<Vec<RecordBatch>> {
    let parts: Mutex<Vec<(u32, Vec<RecordBatch>)>> = Mutex::new(Vec::new());
    let tables = &Cancellable { tables, cancel: &runtime.cancel };
    let input = BatchInput {
        streams: Vec::new(),
        tables,
        eval,
        watermark: BatchWatermark::default(),
        changelog: false,
        keep_late: false,
    };
    executor(pipeline, runtime)?.run(input, &|partition, rows| {
        parts.lock().unwrap_or_else(PoisonError::into_inner).push((partition, rows));
        Ok(())
    })?;
    let mut parts = parts.into_inner().unwrap_or_else(PoisonError::into_inner);
    parts.sort_by_key(|(partition, _)| *partition);
    Ok(parts.into_iter().flat_map(|(_, rows)| rows).collect())
}

/// Tables whose readers stop when the query is cancelled.
struct Cancellable<'a> {
    tables: &'a dyn Tables,
    cancel: &'a Arc<AtomicBool>,
}

impl Tables for Cancellable<'_> {
    fn table(&self, relation: &str) -> Result<Arc<dyn StaticTable>> {
        let table = self.tables.table(relation)?;
        Ok(Arc::new(CancellableTable { table, cancel: Arc::clone(self.cancel) }))
    }
}

struct CancellableTable {
    table: Arc<dyn StaticTable>,
    cancel: Arc<AtomicBool>,
}

impl StaticTable for CancellableTable {
    fn schema(&self) -> &ssql_ir::Schema {
        self.table.schema()
    }

    fn splits(&self, projection: &[u32]) -> Result<Vec<Box<dyn Split>>, ConnectorError> {
        let splits = self.table.splits(projection)?;
        let wrap = |split| Box::new(CancellableSplit { split, cancel: Arc::clone(&self.cancel) }) as Box<dyn Split>;
        Ok(splits.into_iter().map(wrap).collect())
    }
}

struct CancellableSplit {
    split: Box<dyn Split>,
    cancel: Arc<AtomicBool>,
}

impl Split for CancellableSplit {
    fn read(
        &mut self,
        deliver: &mut dyn FnMut(RecordBatch) -> Result<(), Box<dyn std::error::Error + Send + Sync>>,
    ) -> Result<SplitStats, Box<dyn std::error::Error + Send + Sync>> {
        let cancel = &self.cancel;
        self.split.read(&mut |batch| {
            if cancel.load(Ordering::Relaxed) {
                return Err(Box::new(canceled()));
            }
            deliver(batch)
        })
    }
}

/// What a statement that was stopped from outside fails with.
pub fn canceled() -> EngineError {
    EngineError::new("OPERATION_CANCELED", Domain::User, "the statement was stopped")
}
