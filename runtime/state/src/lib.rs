//! What a query keeps on disk: segment logs, the state versions built on them, files that are written whole, and the
//! lease that keeps a second writer out.
//!
//! This crate knows nothing of SQL, Arrow or operators: it stores bytes, checks them, and says after a crash what was
//! whole. An operator decides what its records mean.

pub mod failpoint;
pub mod file;
pub mod lease;
pub mod log;
pub mod versions;

pub use lease::{Holder, Lease, LeaseError};
pub use log::{LogError, Record, SegmentLog};
pub use versions::StateVersions;
