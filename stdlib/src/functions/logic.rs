//! NOT, the tests for truth, and the bitwise operators. AND and OR are forms of the IR.

use std::sync::Arc;

use arrow::array::{AsArray, BooleanArray};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type};
use ssql_ir::DataType as T;

use crate::call::{Call, EvalResult, zip_with};
use crate::coercion::is_atomic;
use crate::error::{EvalError, ResolveError};
use crate::function::{FunctionDef, NullRule, Param, Ret, scalar, scalar_with};
use crate::functions::arithmetic::finish;
use crate::functions::datetime_arithmetic::is_interval;
use crate::resolve::{TypeCall, Typed};

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[
    scalar("not", &[Param::Boolean], Ret::Boolean, not).aliases(&["!"]).doc("Negation.", "not a", "not true"),
    scalar("istrue", &[Param::Boolean], Ret::Boolean, |c| is(c, true)).nulls(NullRule::Never).internal().doc(
        "`a IS TRUE`.",
        "a is true",
        "",
    ),
    scalar("isfalse", &[Param::Boolean], Ret::Boolean, |c| is(c, false)).nulls(NullRule::Never).internal().doc(
        "`a IS FALSE`.",
        "a is false",
        "",
    ),
    scalar_with("&", bits_type, |c| bits(c, Bits::And)).doc("Bitwise AND.", "a & b", "3 & 5"),
    scalar_with("|", bits_type, |c| bits(c, Bits::Or)).doc("Bitwise OR.", "a | b", "3 | 5"),
    scalar_with("^", bits_type, |c| bits(c, Bits::Xor)).doc("Bitwise exclusive OR.", "a ^ b", "3 ^ 5"),
    scalar("~", &[Param::Exactly(&Param::Integral)], Ret::SameAs(0), flip).doc("Bitwise NOT.", "~ a", "~ 0"),
];

fn not(c: &Call<'_>) -> EvalResult {
    Ok(Arc::new(arrow::compute::not(c.column(0)?.as_boolean())?))
}

fn is(c: &Call<'_>, wanted: bool) -> EvalResult {
    let a = c.bool(0);
    Ok(Arc::new(BooleanArray::new(BooleanBuffer::collect_bool(c.rows, |r| a.opt(r) == Some(wanted)), None)))
}

fn bits_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, 2)?;
    // A text takes the type beside it, which has to be an integer.
    if let (T::String, t) | (t, T::String) = (c.ty(0), c.ty(1))
        && (is_atomic(t) || *t == T::Null)
        && !t.is_integer()
        && !is_interval(t)
    {
        let message = format!("`{}` requires integers, not {t}.", c.name);
        return Err(ResolveError::new("DATATYPE_MISMATCH.BINARY_OP_WRONG_TYPE", message));
    }
    let number = |i: usize| {
        c.coerce(i, Param::Integral).map_err(|e| {
            let condition = if c.ty(0) == c.ty(1) {
                "DATATYPE_MISMATCH.BINARY_OP_WRONG_TYPE"
            } else {
                "DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES"
            };
            ResolveError { condition, ..e }
        })
    };
    let wide = match (number(0)?, number(1)?) {
        // An untyped NULL takes the other side's type.
        (_, b) if *c.ty(0) == T::Null => b,
        (a, _) if *c.ty(1) == T::Null => a,
        (a, b) => crate::coercion::common_type(&a, &b).ok_or_else(|| c.different_types())?,
    };
    Ok(Typed::new(vec![wide.clone(), wide.clone()], wide))
}

#[derive(Clone, Copy)]
enum Bits {
    And,
    Or,
    Xor,
}

fn bits(c: &Call<'_>, op: Bits) -> EvalResult {
    fn run<P: ArrowPrimitiveType>(c: &Call<'_>, op: Bits) -> EvalResult
    where
        P::Native: std::ops::BitAnd<Output = P::Native>
            + std::ops::BitOr<Output = P::Native>
            + std::ops::BitXor<Output = P::Native>,
    {
        let (a, b) = (c.fixed::<P>(0), c.fixed::<P>(1));
        let values = match op {
            Bits::And => zip_with(&a, &b, c.rows, |x, y| x & y),
            Bits::Or => zip_with(&a, &b, c.rows, |x, y| x | y),
            Bits::Xor => zip_with(&a, &b, c.rows, |x, y| x ^ y),
        };
        finish::<P>(c, values, false, false, |_| None)
    }
    match c.types[0] {
        T::Int8 => run::<Int8Type>(c, op),
        T::Int16 => run::<Int16Type>(c, op),
        T::Int32 => run::<Int32Type>(c, op),
        T::Int64 => run::<Int64Type>(c, op),
        t => Err(EvalError::internal(format!("`{}` of {t}", c.name))),
    }
}

fn flip(c: &Call<'_>) -> EvalResult {
    match c.types[0] {
        T::Int8 => c.primitive_all::<Int8Type>(|r| !c.i8(0).get(r)),
        T::Int16 => c.primitive_all::<Int16Type>(|r| !c.i16(0).get(r)),
        T::Int32 => c.primitive_all::<Int32Type>(|r| !c.i32(0).get(r)),
        T::Int64 => c.primitive_all::<Int64Type>(|r| !c.i64(0).get(r)),
        t => Err(EvalError::internal(format!("`~` of {t}"))),
    }
}
