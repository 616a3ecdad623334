//! IR kernels to machine code by Cranelift.
//!
//! Two kinds of kernel are compiled: a fused filter and projection ([`compile_map`]) and the probe and update of a group
//! table ([`compile_aggregate`]). The way of each is: IR expressions are lowered to a small tree of machine types
//! (`node`, `lower`), which says exactly what is supported; the tree is emitted as CLIF (`emit`) inside the kernel's loop
//! (`map`, `aggregate`); the module is compiled and made callable (`module`). What cannot be lowered is the
//! interpreter's, which computes everything that is computed here and is the oracle for it in the tests.
//!
//! Each kernel is compiled for batches that have no NULL in the columns it reads and, if those may have some, once more
//! for such batches. Generated
//! code calls nothing but the functions in `intrinsics`. This crate opens no files and knows no operators, batches or
//! Arrow arrays: columns come in as [`ssql_abi::ColumnView`]s.

mod aggregate;
mod emit;
mod intrinsics;
mod lower;
mod map;
mod module;
mod node;

use cranelift_module::ModuleError;

pub use aggregate::{CompiledAggregate, compile_aggregate};
pub use map::{CompiledMap, compile_map};

/// Why no machine code could be made. None of these is the user's fault; the interpreter can run instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JitError {
    /// The host's processor is not supported.
    #[error("cannot generate code for this processor: {0}")]
    Host(&'static str),
    /// Cranelift refused the code or could not place it: an error of ours or no memory.
    #[error("code generation failed: {0}")]
    Backend(String),
}

impl From<ModuleError> for JitError {
    fn from(error: ModuleError) -> JitError {
        JitError::Backend(match error {
            ModuleError::Compilation(e) => format!("{e:?}"),
            other => other.to_string(),
        })
    }
}
