//! The kernels as the engine sees them: safe traits over generated code or the interpreter.

use crate::layout::{AggregateCtx, ColumnView, Status};

/// Why a kernel stopped: an ANSI error at a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("kernel stopped with {status:?} at row {row}")]
pub struct KernelError {
    /// What happened.
    pub status: Status,
    /// Row of the batch.
    pub row: u32,
    /// Index into the kernel's own list of fallible expressions (see [`MapKernel::origin`]).
    pub expr: u32,
}

/// One computed column.
#[derive(Debug, Clone)]
pub struct OutputColumn {
    /// Little-endian values, dense; BOOLEAN one byte a row.
    pub values: Vec<u8>,
    /// One byte a row (1: not NULL); empty when the column cannot be NULL.
    pub validity: Vec<u8>,
}

/// Result of a map kernel over one batch.
#[derive(Debug, Clone, Default)]
pub struct MapOutput {
    /// Rows that passed, ascending; `None` when the kernel has no predicate.
    pub selection: Option<Vec<u32>>,
    /// Columns computed by the kernel, in the order of [`MapKernel::computed`].
    pub columns: Vec<OutputColumn>,
}

/// A fused filter and projection. Columns that the projection only passes on are not touched by it: the caller takes
/// them by the selection.
pub trait MapKernel: Send + Sync {
    /// Which columns of the projection it computes, ascending; the others are plain input columns.
    fn computed(&self) -> &[usize];
    /// Byte offsets in the script of a fallible expression, for a diagnostic.
    fn origin(&self, expr: u32) -> Option<(u32, u32)>;
    /// Runs over rows `0..rows`.
    ///
    /// # Safety
    /// `columns` holds one view per input column of the schema the kernel was compiled for, each valid for `rows`
    /// rows for the length of the call.
    unsafe fn run(&self, columns: &[ColumnView], rows: usize) -> Result<MapOutput, KernelError>;
}

/// What an aggregate kernel did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AggregateRun {
    /// All rows are in the table.
    Done,
    /// The row's key is missing: insert it, refresh the context's pointers, and call again from that row.
    Insert(u32),
}

/// Probe and update of a group table in one loop.
pub trait AggregateKernel: Send + Sync {
    /// Which aggregates of the operator it updates, ascending; the others are updated by the interpreter over the
    /// `groups` that it writes.
    fn computed(&self) -> &[usize];
    /// Byte offsets in the script of an aggregate, for a diagnostic.
    fn origin(&self, agg: u32) -> Option<(u32, u32)>;
    /// Runs over rows `first..rows`.
    ///
    /// # Safety
    /// As for [`MapKernel::run`]; and `ctx` points to a table with the row layout that the kernel was compiled for,
    /// `hashes` (and `groups`, if not null) hold `rows` entries.
    unsafe fn run(
        &self,
        ctx: &mut AggregateCtx,
        columns: &[ColumnView],
        first: usize,
        rows: usize,
    ) -> Result<AggregateRun, KernelError>;
}
