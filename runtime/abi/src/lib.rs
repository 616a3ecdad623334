//! The contract between the runtime and generated code.
//!
//! Generated code never allocates, unwinds, locks or takes Rust references. It reads [`ColumnView`]s, writes into
//! buffers that the caller owns and has sized, and returns a [`Status`]. What only Rust can do (insert a group, grow
//! a table) is asked for by returning early with the row; the caller does it and calls again from that row.
//! Layouts are `repr(C)`; [`layout`] tests pin every offset that code generation uses.

pub mod kernel;
pub mod layout;

pub use kernel::{AggregateKernel, AggregateRun, KernelError, MapKernel, MapOutput, OutputColumn};
pub use layout::{AggregateCtx, ColumnView, MapCtx, OutputView, RowLayout, Status, StringView};
