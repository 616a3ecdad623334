//! How generated code reaches the engine: a compiler handed in by the binary, and the choice between it and the
//! interpreter.

use std::sync::Arc;

use ssql_abi::{AggregateKernel, MapKernel, RowLayout};
use ssql_ir::{AggCall, Expr, Schema};

/// Makes kernels. The engine knows no more of code generation than this.
pub trait KernelCompiler: Send + Sync {
    /// A fused filter and projection; `None` where the interpreter does as well or must.
    fn compile_map(
        &self,
        predicate: Option<&Expr>,
        project: &[Expr],
        input: &Schema,
    ) -> Result<Option<Arc<dyn MapKernel>>, String>;

    /// A probe and update loop; `None` where the interpreter does as well or must.
    fn compile_aggregate(
        &self,
        keys: &[u32],
        aggs: &[AggCall],
        input: &Schema,
        layout: &RowLayout,
    ) -> Result<Option<Arc<dyn AggregateKernel>>, String>;
}

/// `SET jit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JitMode {
    /// Generated code where there is some.
    #[default]
    On,
    /// The interpreter only.
    Off,
    /// Both on every batch; the first difference stops the query.
    Verify,
}

/// The compiler and the mode, as operators are instantiated with them.
#[derive(Clone)]
pub struct Kernels {
    /// Where kernels come from; `None` leaves the interpreter alone.
    pub compiler: Option<Arc<dyn KernelCompiler>>,
    /// Which route runs.
    pub mode: JitMode,
}

impl Kernels {
    /// The interpreter only.
    pub fn interpreter() -> Kernels {
        Kernels { compiler: None, mode: JitMode::Off }
    }

    /// The compiler, unless the mode is off.
    pub fn active(&self) -> Option<&dyn KernelCompiler> {
        match self.mode {
            JitMode::Off => None,
            JitMode::On | JitMode::Verify => self.compiler.as_deref(),
        }
    }
}
