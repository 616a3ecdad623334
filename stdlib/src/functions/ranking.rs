//! Typing of the ranking and offset functions. The engine's window operator evaluates them.

use ssql_ir::DataType as T;

use crate::error::ResolveError;
use crate::function::{FunctionDef, Param, window};
use crate::resolve::{TypeCall, Typed};

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[
    window("row_number", int).doc("Number of the row in its partition, from 1.", "row_number()", ""),
    window("rank", int).doc("Rank with gaps: one more than the rows before the row's peers.", "rank()", ""),
    window("dense_rank", int).doc("Rank without gaps.", "dense_rank()", ""),
    window("percent_rank", double).doc("(rank - 1) / (rows of the partition - 1).", "percent_rank()", ""),
    window("cume_dist", double).doc("Share of the partition's rows up to the row's peers.", "cume_dist()", ""),
    window("ntile", ntile).doc("Number of the bucket of `n` that the row falls into.", "ntile(n)", ""),
    window("lag", offset).doc("Value `offset` rows before, else `default`.", "lag(expr[, offset[, default]])", ""),
    window("lead", offset).doc("Value `offset` rows after, else `default`.", "lead(expr[, offset[, default]])", ""),
    window("nth_value", nth).doc("Value of the frame's n-th row.", "nth_value(expr, n)", ""),
];

fn int(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(0, 0)?;
    Ok(Typed::new(vec![], T::Int32))
}

fn double(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(0, 0)?;
    Ok(Typed::new(vec![], T::Float64))
}

fn ntile(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(0, 1)?;
    Ok(Typed::new(c.fixed(&[Param::Int], 1, false)?, T::Int32))
}

fn offset(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(1, 3)?;
    let value = c.ty(0).clone();
    let mut args = vec![value.clone()];
    if c.len() > 1 {
        args.push(c.coerce(1, Param::Int)?);
    }
    let mut nullable = true;
    let mut result = value;
    if c.len() > 2 {
        result = c.common_of(0, 2)?;
        args[0] = result.clone();
        args.push(result.clone());
        nullable = c.args[0].nullable || c.args[2].nullable;
    }
    Ok(Typed::new(args, result).nullable(nullable))
}

fn nth(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, 2)?;
    let value = c.ty(0).clone();
    Ok(Typed::new(vec![value.clone(), c.coerce(1, Param::Int)?], value).nullable(true))
}
