//! Binder, streaming check, passes and lowering: from a statement's syntax tree to what the engine carries out.
//!
//! [`plan_statement`] is a pure function of a statement and a [`Catalog`]; its [`Planned`] says all that the caller
//! needs to execute it. The life of a query here:
//!
//! 1. `bind` settles names, types, casts and overloads: a [`logical::Query`].
//! 2. `passes` folds constants and prunes columns.
//! 3. [`check`] refuses what cannot run on a stream in its output mode.
//! 4. `passes` pushes filters.
//! 5. `lower` turns column ids into positions: an [`ssql_ir::Pipeline`].
//!
//! This crate opens nothing and executes nothing; what a connector can do reaches it as data.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod bind;
pub mod catalog;
pub mod check;
mod diag;
pub mod explain;
pub mod logical;
mod lower;
mod options;
pub mod passes;
pub mod settings;
pub mod statement;
mod stream_join;
#[cfg(test)]
mod tests;

pub use catalog::{Catalog, ConnectorUse, OptionValue, Relation, RelationKind, SqlFunction, WatermarkSpec};
pub use diag::Fallible;
pub use explain::StateBound;
pub use settings::Settings;
pub use statement::{
    BatchPlan, CreateRelation, Explained, Insert, Planned, SinkTarget, StreamingPlan, Trigger, option_span,
    plan_statement,
};
