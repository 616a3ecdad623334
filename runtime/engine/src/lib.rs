//! The micro-batch runtime: operators over Arrow batches, watermarks, checkpoints and the query manager.
//!
//! The engine sees of the compiler only `ssql_ir`, and of generated code only `dyn Kernel`s handed in; it never sees
//! SQL text and never plans.

pub mod connector;
