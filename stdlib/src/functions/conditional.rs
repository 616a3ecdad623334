//! Functions that choose among values and evaluate all of them: `greatest`, `least`. (`if`, `coalesce` and their kin are
//! forms of the IR.)

use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef, new_null_array};
use ssql_ir::DataType as T;

use crate::arrow::arrow_type;
use crate::call::{Call, EvalResult};
use crate::coercion::is_ordered;
use crate::compare::comparator;
use crate::error::ResolveError;
use crate::function::{FunctionDef, NullRule, scalar_with};
use crate::resolve::{TypeCall, Typed};

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[
    scalar_with("greatest", extreme_type, |c| extreme(c, Ordering::Greater)).nulls(NullRule::Any).doc(
        "Largest argument; NULLs are skipped, NaN is largest.",
        "greatest(a, b, ...)",
        "greatest(1, 3, 2)",
    ),
    scalar_with("least", extreme_type, |c| extreme(c, Ordering::Less)).nulls(NullRule::Any).doc(
        "Smallest argument; NULLs are skipped, NaN is largest.",
        "least(a, b, ...)",
        "least(1, 3, 2)",
    ),
];

fn extreme_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, usize::MAX)?;
    let t = c.common_no_strings(0)?;
    if !is_ordered(&t) {
        return Err(ResolveError::new(
            "DATATYPE_MISMATCH.INVALID_ORDERING_TYPE",
            format!("`{}` does not support ordering on type {t}.", c.name),
        ));
    }
    // NULL only where all arguments are.
    let nullable = c.args.iter().all(|a| a.nullable);
    Ok(Typed::new(vec![t.clone(); c.len()], t).nullable(nullable))
}

fn extreme(c: &Call<'_>, wins: Ordering) -> EvalResult {
    if *c.data_type == T::Null {
        return Ok(new_null_array(&arrow_type(c.data_type), c.rows));
    }
    let columns = (0..c.len()).map(|i| c.column(i)).collect::<Result<Vec<ArrayRef>, _>>()?;
    let mut best = columns[0].clone();
    for next in &columns[1..] {
        let order = comparator(next.as_ref(), best.as_ref())?;
        let places: Vec<(usize, usize)> = (0..c.rows)
            .map(|r| {
                let take = next.is_valid(r) && (best.is_null(r) || order(r, r) == wins);
                (usize::from(take), r)
            })
            .collect();
        best = arrow::compute::interleave(&[best.as_ref(), next.as_ref()], &places)?;
    }
    Ok(best)
}
