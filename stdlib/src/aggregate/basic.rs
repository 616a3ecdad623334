//! `count`, and the table of the aggregates that every program uses: count, sum, avg, min, max and their `try_` forms.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array};
use ssql_ir::{AggCall, DataType as T};

use super::layout::COUNT;
use super::min_max::MinMax;
use super::sum::{Avg, Sum};
use super::{Aggregate, SKIP, SlotType, StateRows};
use crate::coercion::bounded_decimal;
use crate::error::{EvalError, ResolveError};
use crate::function::{FunctionDef, NullRule, Param, Ret, aggregate, aggregate_with};
use crate::resolve::{TypeCall, Typed};

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[
    aggregate("count", &[Param::Any], Ret::BigInt, |_| Ok(Arc::new(Count)))
        .optional(1)
        .variadic()
        .nulls(NullRule::Never)
        .doc("Number of rows, or of rows where no argument is NULL.", "count(*) | count(expr[, ...])", ""),
    aggregate_with("sum", sum_type, |call| Ok(Arc::new(Sum::new(call, false)?))).doc(
        "Sum of the values that are not NULL.",
        "sum(expr)",
        "",
    ),
    aggregate_with("try_sum", sum_type, |call| Ok(Arc::new(Sum::new(call, true)?))).doc(
        "Sum, NULL where it does not fit.",
        "try_sum(expr)",
        "",
    ),
    aggregate_with("avg", avg_type, |call| Ok(Arc::new(Avg::new(call, false)?))).aliases(&["mean"]).doc(
        "Mean of the values that are not NULL.",
        "avg(expr)",
        "",
    ),
    aggregate_with("try_avg", avg_type, |call| Ok(Arc::new(Avg::new(call, true)?))).doc(
        "Mean, NULL where the sum does not fit.",
        "try_avg(expr)",
        "",
    ),
    aggregate_with("min", extreme_type, min_max).doc("Smallest value that is not NULL.", "min(expr)", ""),
    aggregate_with("max", extreme_type, min_max).doc("Largest value that is not NULL.", "max(expr)", ""),
];

const SUMMABLE: Param = Param::OneOf(&[Param::Numeric, Param::DayTime, Param::YearMonth]);

fn summable(c: &TypeCall<'_>) -> Result<T, ResolveError> {
    c.count(1, 1)?;
    if *c.ty(0) == T::String { Ok(T::Float64) } else { c.coerce(0, SUMMABLE) }
}

/// Integers sum as BIGINT, floats as DOUBLE, DECIMAL(p,s) with ten digits more.
fn sum_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    let t = summable(c)?;
    let result = match &t {
        t if t.is_integer() => T::Int64,
        t if t.is_float() => T::Float64,
        T::Decimal(p, s) => bounded_decimal(i32::from(*p) + 10, i32::from(*s)),
        t => t.clone(),
    };
    Ok(Typed::new(vec![t], result))
}

/// Numbers average as DOUBLE, DECIMAL(p,s) with four digits more on both sides of the point.
fn avg_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    let t = summable(c)?;
    let result = match &t {
        T::Decimal(p, s) => bounded_decimal(i32::from(*p) + 4, i32::from(*s) + 4),
        T::DayTimeInterval(..) => T::DAY_TO_SECOND,
        T::YearMonthInterval(..) => T::YEAR_TO_MONTH,
        _ => T::Float64,
    };
    Ok(Typed::new(vec![t], result))
}

fn extreme_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(1, 1)?;
    if !crate::coercion::is_ordered(c.ty(0)) {
        return Err(ResolveError::new(
            "DATATYPE_MISMATCH.INVALID_ORDERING_TYPE",
            format!("`{}` does not support ordering on type {}.", c.name, c.ty(0)),
        )
        .at_arg(0));
    }
    Ok(Typed::new(vec![c.ty(0).clone()], c.ty(0).clone()))
}

fn min_max(call: &AggCall) -> Result<Arc<dyn Aggregate>, EvalError> {
    MinMax::make(call)
}

/// The type of the first argument of a call.
pub(super) fn first_type(call: &AggCall) -> Result<&T, EvalError> {
    call.arg_types.first().ok_or_else(|| EvalError::internal(format!("`{}` without an argument", call.function)))
}

/// `count(*)` and `count(a, ...)`.
#[derive(Debug)]
struct Count;

impl Aggregate for Count {
    fn slots(&self) -> &[SlotType] {
        &[SlotType::I64]
    }

    fn update(&self, rows: &mut StateRows<'_>, groups: &[u32], args: &[ArrayRef]) -> Result<(), EvalError> {
        let mut valid = None;
        for arg in args {
            valid = arrow::buffer::NullBuffer::union(valid.as_ref(), arg.logical_nulls().as_ref());
        }
        for (i, g) in groups.iter().enumerate() {
            if *g != SKIP && valid.as_ref().is_none_or(|v| v.is_valid(i)) {
                let n = rows.i64(*g, COUNT);
                rows.set_i64(*g, COUNT, n + 1);
            }
        }
        Ok(())
    }

    fn merge(
        &self,
        dst: &mut StateRows<'_>,
        dst_groups: &[u32],
        src: &StateRows<'_>,
        src_groups: &[u32],
    ) -> Result<(), EvalError> {
        for (d, s) in dst_groups.iter().zip(src_groups) {
            let n = dst.i64(*d, COUNT) + src.i64(*s, COUNT);
            dst.set_i64(*d, COUNT, n);
        }
        Ok(())
    }

    fn finish(&self, rows: &StateRows<'_>, groups: &[u32]) -> Result<ArrayRef, EvalError> {
        Ok(Arc::new(Int64Array::from_iter_values(groups.iter().map(|g| rows.i64(*g, COUNT)))))
    }
}

/// The largest magnitude of a DECIMAL of that precision: 10^p - 1.
pub(crate) fn decimal_limit(precision: u8) -> i128 {
    10i128.pow(u32::from(precision)) - 1
}
