//! Streaming queries: what one is started with, the thread that drives it, and the handle that users hold.

pub mod batch;
mod drive;
pub mod handle;
pub mod restart;
pub mod runner;
pub mod watermarks;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ssql_ir::Pipeline;

use crate::checkpoint::Durability;
use crate::clock::Clock;
use crate::connector::{Sink, Source};
use crate::exec::Tables;
use crate::kernels::Kernels;
use crate::late::LateSink;
use crate::watermark::Policy;

pub use batch::run_batch;
pub use handle::QueryHandle;
pub use restart::RestartPolicy;
pub use runner::{Advance, Runner};

/// When micro-batches run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// The next as soon as the last ends and there is something to do.
    Default,
    /// At multiples of this interval (microseconds) since the epoch, as Spark aligns them; a late batch skips what it
    /// has missed.
    ProcessingTime(i64),
    /// All that is there at the start, in as many batches as the rate limits ask for; then the query ends.
    AvailableNow,
    /// All that is there at the start in one batch; then the query ends.
    Once,
    /// Rows pass as they come; offsets are committed at multiples of this interval (microseconds).
    Continuous(i64),
    /// Only when [`QueryHandle::process_all_available`] is called (tests).
    Manual,
}

/// What a query is started with.
pub struct QuerySpec {
    /// Its name.
    pub name: String,
    /// What it computes.
    pub pipeline: Pipeline,
    /// One source per streaming `Op::Source`, in the pipeline's order.
    pub sources: Vec<Box<dyn Source>>,
    /// Static relations.
    pub tables: Arc<dyn Tables>,
    /// Where the result goes.
    pub sink: Box<dyn Sink>,
    /// Where late rows go, if they are not only counted.
    pub late: Option<LateSink>,
    /// When micro-batches run.
    pub trigger: Trigger,
    /// Whether a trigger that ends with its input also ends event time, so that what is open comes out (`atEnd 'close'`).
    pub close_at_end: bool,
    /// Checkpoint directory; without one a restart begins anew.
    pub checkpoint: Option<PathBuf>,
    /// How the checkpoint is kept.
    pub durability: Durability,
    /// Session time zone.
    pub time_zone: jiff::tz::TimeZone,
    /// Processing time.
    pub clock: Arc<dyn Clock>,
    /// Shared settings of the process.
    pub runtime: RuntimeConfig,
}

/// What queries of a process share.
#[derive(Clone)]
pub struct RuntimeConfig {
    /// Worker threads.
    pub pool: Arc<rayon::ThreadPool>,
    /// Parts of each operator's state.
    pub n_partitions: usize,
    /// Generated code.
    pub kernels: Kernels,
    /// How several watermarks become one.
    pub policy: Policy,
    /// Functions of the embedding program.
    pub natives: ssql_stdlib::NativeFunctions,
    /// Set from outside, it ends the batch queries that are running.
    pub cancel: Arc<AtomicBool>,
}

impl RuntimeConfig {
    /// A pool of `threads` workers (0: one per core) and as many state partitions.
    pub fn new(threads: usize, kernels: Kernels) -> crate::error::Result<RuntimeConfig> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|i| format!("ssql-worker-{i}"))
            .build()
            .map_err(|e| crate::error::EngineError::internal(format!("no worker threads: {e}")))?;
        let n_partitions = pool.current_num_threads();
        Ok(RuntimeConfig {
            natives: ssql_stdlib::NativeFunctions::default(),
            pool: Arc::new(pool),
            n_partitions,
            kernels,
            policy: Policy::default(),
            cancel: Arc::default(),
        })
    }
}
