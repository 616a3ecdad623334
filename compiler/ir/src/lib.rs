//! The incremental operator IR and its scalar expressions, as plain data.
//!
//! A query reaches the runtime as a [`Pipeline`]: a DAG of [`Node`]s in topological order. Nothing here executes,
//! opens or compiles anything; this crate knows nothing of SQL text, Arrow, Cranelift or files. Every form has a text
//! that parses back to the same value and a list of invariants.

pub mod connector;
pub mod expr;
pub mod op;
pub mod parse;
pub mod print;
pub mod types;
pub mod verify;

pub use connector::{ConnectorDesc, LocationRule, OptionDesc, OptionKind, OptionScope, SchemaRule, SinkDesc};
pub use expr::{CastMode, Expr, ExprKind, LambdaParam, Literal, Origin, Symbol};
pub use op::{
    AggArg, AggCall, CloseRule, Delay, EmitMode, Frame, FrameBound, JoinKind, JoinSide, Node, NodeId, Op, Pipeline,
    SortKey, WindowCall,
};
pub use types::{ChangeKind, DataType, DayTimeField, Field, Schema, YearMonthField};
