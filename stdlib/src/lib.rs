//! Operations and functions of the language: signatures, typing, reference evaluation on Arrow arrays.
//!
//! Two halves. *Typing* ([`resolve`], [`coercion`]) turns a name and argument types into an overload, the casts of its
//! arguments and a result type. *Evaluation* ([`eval`], [`cast`], [`mod@aggregate`]) computes IR expressions over whole
//! Arrow arrays; generated code is held to its results. Both read one catalogue ([`functions`]), where an entry is all
//! that is known of a function. [`text`] prints and reads values.
//!
//! This crate knows nothing of SQL text, plans, streams or files.

#![forbid(unsafe_code)]

pub mod aggregate;
pub mod arrow;
pub mod call;
pub mod cast;
pub mod coercion;
pub mod compare;
pub mod error;
pub mod eval;
pub mod function;
pub mod functions;
pub mod native;
pub mod resolve;
#[cfg(test)]
#[allow(dead_code, reason = "a family's tests may come and go; what they are written with stays")]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
pub mod text;
pub mod time;

pub use crate::aggregate::{Aggregate, ObjectState, Objects, SlotType, StateRows, aggregate, state_size};
pub use crate::arrow::{
    arrow_field, arrow_schema, arrow_type, ir_field_type, ir_type, literal_array, literal_at, normalize,
};
pub use crate::cast::cast_array;
pub use crate::coercion::{can_cast, can_store_assign, cast_makes_null, cast_mismatch, common_type, common_type_of};
pub use crate::compare::{canonical_floats, comparator};
pub use crate::error::{DecodeError, EvalError, ResolveError};
pub use crate::eval::{EvalContext, evaluate, filter_mask, fold_constant, generate};
pub use crate::function::{Doc, FunctionDef, FunctionKind};
pub use crate::functions::{catalogue, lookup};
pub use crate::native::{NativeFunction, NativeFunctions};
pub use crate::resolve::{
    ArgType, Resolved, function_kind, function_names, is_deterministic, lambda_param_types, resolve_aggregate,
    resolve_generator, resolve_scalar, resolve_window,
};
pub use crate::text::{
    CellFormatter, parse_data_type, parse_date, parse_decimal, parse_interval, parse_interval_as, parse_schema,
    parse_timestamp, parse_timestamp_ntz, parse_timestamp_without_zone, read_interval,
};
