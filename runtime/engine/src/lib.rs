//! The micro-batch runtime: operators over Arrow batches, watermarks, checkpoints and the query manager.
//!
//! The engine sees of the compiler only `ssql_ir`, and of generated code only `dyn Kernel`s handed in; it never sees
//! SQL text and never plans.
//!
//! The life of a micro-batch ([`query::Runner::run_next`]): ask the sources where it ends; write that down; read and
//! run ([`exec::Executor::run`]); write the state's changes; commit the sink; write the commit down; take up the
//! watermarks. Each step that must survive a crash is named by a fail point.

#![deny(unsafe_code)]

pub mod background;
pub mod checkpoint;
pub mod clock;
pub mod connector;
pub mod error;
pub mod exec;
pub mod graph;
pub mod kernels;
pub mod late;
pub mod operators;
pub mod progress;
pub mod query;
pub mod stateful;
pub mod views;
pub mod watermark;

pub use clock::{Clock, SystemClock, VirtualClock};
pub use error::{EngineError, Result};
pub use kernels::{JitMode, KernelCompiler, Kernels};
pub use query::{QueryHandle, QuerySpec, Trigger, run_batch};
