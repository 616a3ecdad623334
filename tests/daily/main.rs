//! Daily use of the library and the binary: the management of queries as the streaming guides show it, triggers, output
//! formats, progress, metrics.
#![allow(clippy::unwrap_used, missing_docs)]

mod cli;
mod queries;
mod tutorial;
