//! The contract between the runtime and generated code, and the group table that both sides work on.
//!
//! Generated code never allocates, unwinds, locks or takes Rust references. It reads [`ColumnView`]s, writes into
//! buffers that the caller owns and has sized, and returns a [`Status`]. What only Rust can do (insert a group, grow
//! a table) is asked for by returning early with the row; the caller does it and calls again from that row.
//! Layouts are `repr(C)`; [`layout`] tests pin every offset that code generation uses. The [`GroupTable`] stands here
//! and not with the state store because its rows and index are that contract.
//!
//! This crate knows nothing of SQL types, expressions, Arrow or files. Hosts are little-endian.

#[cfg(not(target_endian = "little"))]
compile_error!("state rows and column views are little endian");

pub mod group_table;
pub mod kernel;
pub mod keys;
pub mod layout;

pub use group_table::GroupTable;
pub use kernel::{AggregateKernel, AggregateRun, KernelError, MapKernel, MapOutput, OutputColumn};
pub use keys::{KeyKind, hash_columns};
pub use layout::{AggregateCtx, ColumnView, MapCtx, OutputView, RowLayout, Status, StringView};
