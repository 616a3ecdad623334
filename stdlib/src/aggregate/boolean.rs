//! `count_if`, `bool_and`, `bool_or` and the aggregates over bits: one word and the number of values seen.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType as ArrowType, Int64Type};
use ssql_ir::{AggCall, DataType as T};

use super::layout::{SEEN, VALUE};
use super::{Aggregate, SKIP, SlotType, StateRows};
use crate::arrow::arrow_type;
use crate::error::{EvalError, ResolveError};
use crate::function::{FunctionDef, NullRule, Param, Ret, aggregate, aggregate_with};
use crate::resolve::{TypeCall, Typed};

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[
    aggregate("count_if", &[Param::Boolean], Ret::BigInt, |c| Ok(Arc::new(Fold { op: Op::Count, ..fold(c) })))
        .nulls(NullRule::Never)
        .doc("Number of rows where the condition is true.", "count_if(condition)", ""),
    aggregate("bool_and", &[Param::Boolean], Ret::Boolean, |c| Ok(Arc::new(Fold { op: Op::And, ..fold(c) })))
        .aliases(&["every"])
        .doc("Whether all values are true.", "bool_and(condition)", ""),
    aggregate("bool_or", &[Param::Boolean], Ret::Boolean, |c| Ok(Arc::new(Fold { op: Op::Or, ..fold(c) })))
        .aliases(&["some", "any"])
        .doc("Whether any value is true.", "bool_or(condition)", ""),
    aggregate_with("bit_and", bits_type, |c| Ok(Arc::new(Fold { op: Op::And, ..fold(c) }))).doc(
        "Bits that all values have.",
        "bit_and(expr)",
        "",
    ),
    aggregate_with("bit_or", bits_type, |c| Ok(Arc::new(Fold { op: Op::Or, ..fold(c) }))).doc(
        "Bits that any value has.",
        "bit_or(expr)",
        "",
    ),
    aggregate_with("bit_xor", bits_type, |c| Ok(Arc::new(Fold { op: Op::Xor, ..fold(c) }))).doc(
        "Bits that an odd number of values has.",
        "bit_xor(expr)",
        "",
    ),
];

/// An integer, kept; a text is none.
fn bits_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(1, 1)?;
    let t = match c.ty(0) {
        T::Null => T::Int32,
        t if t.is_integer() => t.clone(),
        _ => return Err(c.mismatch(0, "INTEGRAL")),
    };
    Ok(Typed::new(vec![t.clone()], t))
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Op {
    Count,
    And,
    Or,
    Xor,
}

/// `[value i64, seen i64]`: the values folded with the operation, booleans as 0 and 1.
#[derive(Debug)]
struct Fold {
    op: Op,
    result: T,
}

fn fold(call: &AggCall) -> Fold {
    Fold { op: Op::Count, result: call.data_type.clone() }
}

impl Fold {
    #[inline]
    fn take(&self, rows: &mut StateRows<'_>, g: u32, value: i64, n: i64) {
        let (old, seen) = (rows.i64(g, VALUE), rows.i64(g, SEEN));
        let new = match self.op {
            Op::Count => old + value,
            _ if seen == 0 => value,
            Op::And => old & value,
            Op::Or => old | value,
            Op::Xor => old ^ value,
        };
        rows.set_i64(g, VALUE, new);
        rows.set_i64(g, SEEN, seen + n);
    }
}

impl Aggregate for Fold {
    fn slots(&self) -> &[SlotType] {
        &[SlotType::I64, SlotType::I64]
    }

    fn update(&self, rows: &mut StateRows<'_>, groups: &[u32], args: &[ArrayRef]) -> Result<(), EvalError> {
        if let Some(array) = args[0].as_boolean_opt() {
            for (row, g) in groups.iter().enumerate() {
                if *g != SKIP && array.is_valid(row) {
                    self.take(rows, *g, array.value(row).into(), 1);
                }
            }
            return Ok(());
        }
        let wide = cast(&args[0], &ArrowType::Int64)?;
        let array = wide.as_primitive::<Int64Type>();
        for (row, g) in groups.iter().enumerate() {
            if *g != SKIP && array.is_valid(row) {
                self.take(rows, *g, array.value(row), 1);
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
            if src.i64(*s, SEEN) > 0 {
                self.take(dst, *d, src.i64(*s, VALUE), src.i64(*s, SEEN));
            }
        }
        Ok(())
    }

    fn finish(&self, rows: &StateRows<'_>, groups: &[u32]) -> Result<ArrayRef, EvalError> {
        let values =
            groups.iter().map(|g| (self.op == Op::Count || rows.i64(*g, SEEN) > 0).then(|| rows.i64(*g, VALUE)));
        Ok(match self.result {
            T::Boolean => Arc::new(BooleanArray::from_iter(values.map(|v| v.map(|b| b != 0)))),
            _ => cast(&Int64Array::from_iter(values), &arrow_type(&self.result))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int8Array, Int32Array};

    use super::*;
    use crate::testing::{agg_call, check_aggregate};

    #[test]
    fn conditions() {
        let column: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), None, Some(false), Some(true)]));
        let run = |name: &str, n: usize| check_aggregate(&agg_call(name, &[T::Boolean], false), &[column.slice(0, n)]);
        assert_eq!(run("count_if", 4), "2");
        assert_eq!(run("count_if", 0), "0");
        assert_eq!(run("bool_and", 4), "false");
        assert_eq!(run("every", 2), "true");
        assert_eq!(run("any", 4), "true");
        assert_eq!(run("bool_or", 0), "NULL");
    }

    #[test]
    fn bits() {
        let column: ArrayRef = Arc::new(Int32Array::from(vec![Some(2), Some(4), None, Some(4), Some(6)]));
        let run = |name: &str, n: usize| check_aggregate(&agg_call(name, &[T::Int32], false), &[column.slice(0, n)]);
        assert_eq!(run("bit_and", 5), "0");
        assert_eq!(run("bit_or", 5), "6");
        assert_eq!(run("bit_xor", 5), "4");
        assert_eq!(run("bit_xor", 0), "NULL");
        let small: ArrayRef = Arc::new(Int8Array::from(vec![5, -3]));
        assert_eq!(check_aggregate(&agg_call("bit_and", &[T::Int8], false), &[small]), "5");
    }
}
