//! Comparison operators, `in`, and the tests for NULL and NaN.
//!
//! Floats compare by Spark's order (NaN = NaN, NaN largest, -0.0 = 0.0). Nested values compare field by field, where
//! NULL equals NULL and is smallest: only a NULL operand itself makes the result NULL.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, BooleanArray, Datum, Scalar};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::kernels::cmp;
use arrow::datatypes::{Float32Type, Float64Type};
use ssql_ir::DataType as T;

use crate::call::{Call, EvalResult, Value};
use crate::coercion::{
    common_type, common_type_no_strings, common_type_of, decimal_for, decimal_for_literal, is_ordered, wider_decimal,
};
use crate::compare::{comparator, float_equal, float_less};
use crate::error::{EvalError, ResolveError};
use crate::function::{FunctionDef, NullRule, Param, Ret, scalar, scalar_with};
use crate::resolve::{TypeCall, Typed};

/// Entries of this family.
pub const TABLE: &[FunctionDef] =
    &[
        scalar_with("=", compare_type, |c| compare(c, Cmp::Eq)).aliases(&["=="]).doc("Equal.", "a = b", "1 = 1"),
        scalar_with("<>", compare_type, |c| compare(c, Cmp::Ne)).aliases(&["!="]).doc("Not equal.", "a <> b", "1 <> 2"),
        scalar_with("<", compare_type, |c| compare(c, Cmp::Lt)).doc("Less.", "a < b", "1 < 2"),
        scalar_with("<=", compare_type, |c| compare(c, Cmp::Le)).doc("Less or equal.", "a <= b", "1 <= 1"),
        scalar_with(">", compare_type, |c| compare(c, Cmp::Gt)).doc("Greater.", "a > b", "2 > 1"),
        scalar_with(">=", compare_type, |c| compare(c, Cmp::Ge)).doc("Greater or equal.", "a >= b", "1 >= 1"),
        scalar_with("<=>", compare_type, null_safe_equal).aliases(&["equal_null"]).nulls(NullRule::Never).doc(
            "Equal, where NULL equals NULL.",
            "a <=> b",
            "NULL <=> NULL",
        ),
        scalar_with("in", in_type, in_list).nulls(NullRule::Any).doc(
            "Whether a value is in a list; NULL on a miss when the list holds a NULL.",
            "a in (b, ...)",
            "1 in (1, 2)",
        ),
        scalar("isnull", &[Param::Any], Ret::Boolean, is_null).nulls(NullRule::Never).doc(
            "Whether the value is NULL.",
            "isnull(a)",
            "isnull(1)",
        ),
        scalar("isnotnull", &[Param::Any], Ret::Boolean, is_null).nulls(NullRule::Never).doc(
            "Whether the value is not NULL.",
            "isnotnull(a)",
            "isnotnull(1)",
        ),
        scalar("isnan", &[Param::OneOf(&[Param::Double, Param::Float])], Ret::Boolean, is_nan)
            .nulls(NullRule::Never)
            .doc("Whether the value is NaN; false for NULL.", "isnan(a)", "isnan(0.5D)"),
    ];

/// The comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cmp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

fn unordered(c: &TypeCall<'_>, t: &T) -> ResolveError {
    ResolveError::new(
        "DATATYPE_MISMATCH.INVALID_ORDERING_TYPE",
        format!("`{}` does not support ordering on type {t}.", c.name),
    )
}

fn compare_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, 2)?;
    let decimal = |i: usize| c.literal(i).and_then(decimal_for_literal).or_else(|| decimal_for(c.ty(i)));
    let common = match (c.ty(0), c.ty(1)) {
        // An integer constant beside a DECIMAL takes the digits that it has.
        (a, b)
            if (matches!(a, T::Decimal(..)) && b.is_integer()) || (matches!(b, T::Decimal(..)) && a.is_integer()) =>
        {
            decimal(0).zip(decimal(1)).map(|(a, b)| wider_decimal(a, b))
        }
        // Text becomes a number or a time at the top only, not inside nested values.
        (a, b) if *a == T::String || *b == T::String => common_type(a, b),
        (a, b) => common_type_no_strings(a, b),
    };
    let common = common.ok_or_else(|| {
        ResolveError::new(
            "DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES",
            format!(
                "The left and right operands of `{}` have incompatible types ({} and {}).",
                c.name,
                c.ty(0),
                c.ty(1)
            ),
        )
    })?;
    if !is_ordered(&common) {
        return Err(unordered(c, &common));
    }
    // Two untyped NULLs compare as BOOLEAN, so that there is an array to look at.
    let common = if common == T::Null { T::Boolean } else { common };
    Ok(Typed::new(vec![common.clone(), common], T::Boolean))
}

fn in_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, usize::MAX)?;
    let common = common_type_of(c.args.iter().map(|a| &a.data_type)).ok_or_else(|| c.different_types())?;
    if !is_ordered(&common) {
        return Err(unordered(c, &common));
    }
    let common = if common == T::Null { T::Boolean } else { common };
    Ok(Typed::new(vec![common; c.len()], T::Boolean).nullable(c.any_nullable()))
}

/// Runs a kernel that takes columns and constants.
fn kernel(
    c: &Call<'_>,
    i: usize,
    j: usize,
    f: impl Fn(&dyn Datum, &dyn Datum) -> Result<BooleanArray, arrow::error::ArrowError>,
) -> Result<BooleanArray, EvalError> {
    let scalar = |i: usize| Scalar::new(c.raw(i).clone());
    Ok(match (c.is_constant(i), c.is_constant(j)) {
        (false, false) => f(c.raw(i), c.raw(j))?,
        (true, false) => f(&scalar(i), c.raw(j))?,
        (false, true) => f(c.raw(i), &scalar(j))?,
        (true, true) => {
            let one = f(c.raw(i), c.raw(j))?;
            if c.rows == 1 {
                one
            } else {
                BooleanArray::from_iter(std::iter::repeat_n(one.iter().next().flatten(), c.rows))
            }
        }
    })
}

fn union_of(c: &Call<'_>, i: usize, j: usize) -> Option<NullBuffer> {
    let one = |i: usize| match &c.args[i] {
        Value::Column(a) => a.nulls().cloned(),
        Value::Constant(a) if a.is_null(0) => Some(NullBuffer::new_null(c.rows)),
        _ => None,
    };
    NullBuffer::union(one(i).as_ref(), one(j).as_ref())
}

fn floats<P: ArrowPrimitiveType>(c: &Call<'_>, i: usize, j: usize, op: Cmp) -> BooleanArray
where
    P::Native: PartialOrd,
{
    let (a, b) = (c.fixed::<P>(i), c.fixed::<P>(j));
    let collect = |f: &dyn Fn(usize) -> bool| BooleanBuffer::collect_bool(c.rows, f);
    let values = match op {
        Cmp::Eq => BooleanBuffer::collect_bool(c.rows, |r| float_equal(a.get(r), b.get(r))),
        Cmp::Ne => BooleanBuffer::collect_bool(c.rows, |r| !float_equal(a.get(r), b.get(r))),
        Cmp::Lt => BooleanBuffer::collect_bool(c.rows, |r| float_less(a.get(r), b.get(r))),
        Cmp::Gt => BooleanBuffer::collect_bool(c.rows, |r| float_less(b.get(r), a.get(r))),
        Cmp::Le => collect(&|r| !float_less(b.get(r), a.get(r))),
        Cmp::Ge => collect(&|r| !float_less(a.get(r), b.get(r))),
    };
    BooleanArray::new(values, union_of(c, i, j))
}

/// Compares arguments `i` and `j`, of one type.
fn compare_args(c: &Call<'_>, i: usize, j: usize, op: Cmp) -> Result<BooleanArray, EvalError> {
    match c.types[i] {
        T::Float32 => Ok(floats::<Float32Type>(c, i, j, op)),
        T::Float64 => Ok(floats::<Float64Type>(c, i, j, op)),
        t if t.is_nested() => {
            let order = comparator(c.raw(i), c.raw(j))?;
            let (ma, mb) =
                (if c.is_constant(i) { 0 } else { usize::MAX }, if c.is_constant(j) { 0 } else { usize::MAX });
            let values = BooleanBuffer::collect_bool(c.rows, |r| {
                let o = order(r & ma, r & mb);
                match op {
                    Cmp::Eq => o.is_eq(),
                    Cmp::Ne => o.is_ne(),
                    Cmp::Lt => o.is_lt(),
                    Cmp::Le => o.is_le(),
                    Cmp::Gt => o.is_gt(),
                    Cmp::Ge => o.is_ge(),
                }
            });
            Ok(BooleanArray::new(values, union_of(c, i, j)))
        }
        _ => kernel(
            c,
            i,
            j,
            match op {
                Cmp::Eq => cmp::eq,
                Cmp::Ne => cmp::neq,
                Cmp::Lt => cmp::lt,
                Cmp::Le => cmp::lt_eq,
                Cmp::Gt => cmp::gt,
                Cmp::Ge => cmp::gt_eq,
            },
        ),
    }
}

fn compare(c: &Call<'_>, op: Cmp) -> EvalResult {
    Ok(Arc::new(compare_args(c, 0, 1, op)?))
}

fn null_safe_equal(c: &Call<'_>) -> EvalResult {
    if !c.types[0].is_float() && !c.types[0].is_nested() {
        return Ok(Arc::new(kernel(c, 0, 1, cmp::not_distinct)?));
    }
    let equal = compare_args(c, 0, 1, Cmp::Eq)?;
    let null = |i: usize, row: usize| c.raw(i).is_null(if c.is_constant(i) { 0 } else { row });
    let values = BooleanBuffer::collect_bool(c.rows, |r| match (null(0, r), null(1, r)) {
        (false, false) => equal.value(r),
        (a, b) => a && b,
    });
    Ok(Arc::new(BooleanArray::new(values, None)))
}

fn in_list(c: &Call<'_>) -> EvalResult {
    // An OR of equalities; long lists of constants are better a set.
    if c.len() > 9
        && matches!(c.types[0], T::Int32 | T::Int64 | T::String)
        && (1..c.len()).all(|i| c.is_constant(i))
        && !c.is_constant(0)
    {
        return in_set(c);
    }
    let mut hit = BooleanArray::from(vec![false; c.rows]);
    for i in 1..c.len() {
        hit = arrow::compute::or_kleene(&hit, &compare_args(c, 0, i, Cmp::Eq)?)?;
    }
    Ok(Arc::new(hit))
}

fn in_set(c: &Call<'_>) -> EvalResult {
    use ahash::AHashSet;
    let has_null = (1..c.len()).any(|i| c.raw(i).is_null(0));
    let listed = |i: &usize| c.raw(*i).is_valid(0);
    let miss = if has_null { None } else { Some(false) };
    match c.types[0] {
        T::String => {
            let set: AHashSet<&str> = (1..c.len()).filter(listed).map(|i| c.str(i).array().value(0)).collect();
            let a = c.str(0);
            c.booleans(|r| Ok(a.opt(r).and_then(|v| if set.contains(v) { Some(true) } else { miss })))
        }
        T::Int32 => {
            let set: AHashSet<i32> = (1..c.len()).filter(listed).map(|i| c.i32(i).get(0)).collect();
            let a = c.i32(0);
            c.booleans(|r| Ok(a.opt(r).and_then(|v| if set.contains(&v) { Some(true) } else { miss })))
        }
        _ => {
            let set: AHashSet<i64> = (1..c.len()).filter(listed).map(|i| c.i64(i).get(0)).collect();
            let a = c.i64(0);
            c.booleans(|r| Ok(a.opt(r).and_then(|v| if set.contains(&v) { Some(true) } else { miss })))
        }
    }
}

/// `isnull` and `isnotnull`, told apart by name.
fn is_null(c: &Call<'_>) -> EvalResult {
    let array: ArrayRef = c.column(0)?;
    let negate = c.name == "isnotnull";
    Ok(Arc::new(match array.logical_nulls() {
        None => BooleanArray::from(vec![negate; c.rows]),
        Some(nulls) if negate => BooleanArray::new(nulls.inner().clone(), None),
        Some(nulls) => BooleanArray::new(!nulls.inner(), None),
    }))
}

fn is_nan(c: &Call<'_>) -> EvalResult {
    let nan: Box<dyn Fn(usize) -> bool + '_> = match c.types[0] {
        T::Float32 => {
            let a = c.f32(0);
            Box::new(move |r| a.opt(r).is_some_and(f32::is_nan))
        }
        _ => {
            let a = c.f64(0);
            Box::new(move |r| a.opt(r).is_some_and(f64::is_nan))
        }
    };
    Ok(Arc::new(BooleanArray::new(BooleanBuffer::collect_bool(c.rows, nan), None)))
}
