//! What a query keeps on disk: segment logs, and the state versions built on them.
//!
//! This crate knows nothing of SQL, Arrow or operators: it stores bytes, checks them, and says after a crash what was
//! whole. An operator decides what its records mean.

pub mod failpoint;
pub mod log;
pub mod versions;

pub use log::{LogError, Record, SegmentLog};
pub use versions::StateVersions;
