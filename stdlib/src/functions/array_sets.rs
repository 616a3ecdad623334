//! Arrays as sets: membership, and what two of them share. NULL is a member like others, except where a comparison with
//! it leaves the answer open.

use ahash::AHashSet;
use arrow::array::Array;
use arrow::datatypes::Int64Type;
use ssql_ir::DataType as T;

use super::arrays::{array_arg, array_of, no_such_element};
use super::lists::{Lists, key_rows, no_order};
use crate::call::{Call, EvalResult};
use crate::coercion::{common_type_no_strings, is_ordered, tightest_common_type};
use crate::compare::comparator;
use crate::error::ResolveError;
use crate::function::{FunctionDef, NullRule, scalar_with};
use crate::resolve::{TypeCall, Typed};

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[
    scalar_with("array_contains", |c| member_type(c, |_| T::Boolean), contains).nulls(NullRule::StrictNullable).doc(
        "Whether the array has the element; NULL if not, but it has a NULL.",
        "array_contains(array, element)",
        "array_contains(array(1, 2), 2)",
    ),
    scalar_with("array_position", |c| member_type(c, |_| T::Int64), position).doc(
        "Place of the first such element, from 1; 0 if there is none.",
        "array_position(array, element)",
        "array_position(array(1, 2), 2)",
    ),
    scalar_with("array_remove", |c| member_type(c, T::clone), remove).doc(
        "The array without the elements equal to one.",
        "array_remove(array, element)",
        "array_remove(array(1, 2, 1), 1)",
    ),
    scalar_with("array_distinct", distinct_type, distinct).doc(
        "Each element once, in the order in which they first stand.",
        "array_distinct(array)",
        "array_distinct(array(1, 2, 1))",
    ),
    scalar_with("array_union", set_type, set).doc(
        "The elements of both arrays, each once.",
        "array_union(a, b)",
        "array_union(array(1, 2), array(2, 3))",
    ),
    scalar_with("array_intersect", set_type, set).doc(
        "The elements that both arrays have, each once.",
        "array_intersect(a, b)",
        "array_intersect(array(1, 2), array(2, 3))",
    ),
    scalar_with("array_except", set_type, set).doc(
        "The elements of `a` that `b` does not have, each once.",
        "array_except(a, b)",
        "array_except(array(1, 2), array(2, 3))",
    ),
    scalar_with("arrays_overlap", set_type, overlap).nulls(NullRule::StrictNullable).doc(
        "Whether the arrays share an element that is not NULL; NULL if not, but one has a NULL and neither is empty.",
        "arrays_overlap(a, b)",
        "arrays_overlap(array(1, 2), array(2, 3))",
    ),
];

fn member_type(c: &TypeCall<'_>, result: fn(&T) -> T) -> Result<Typed, ResolveError> {
    c.count(2, 2)?;
    // A NULL is found nowhere and removed from nowhere; asked for as such, it is a mistake.
    let untyped = match c.name {
        "array_contains" => *c.ty(0) == T::Null || *c.ty(1) == T::Null,
        _ => *c.ty(0) == T::Null,
    };
    if untyped {
        return Err(ResolveError::new(
            "DATATYPE_MISMATCH.NULL_TYPE",
            format!("Null typed values cannot be used as arguments of `{}`.", c.name),
        )
        .at_arg(1));
    }
    let element = match c.ty(0) {
        T::Array(element) => element,
        _ if matches!(c.name, "array_contains" | "array_position") => return Err(c.mismatch(0, "ARRAY")),
        _ => return Err(no_such_element(c, 1)),
    };
    let widen = if c.name == "array_contains" { common_type_no_strings } else { tightest_common_type };
    let wide = widen(&element.data_type, c.ty(1)).ok_or_else(|| no_such_element(c, 1))?;
    if !is_ordered(&wide) {
        return Err(no_order(c.name, &wide));
    }
    let array = array_of(wide.clone(), element.nullable);
    let t = result(&array);
    Ok(Typed::new(vec![array, wide], t))
}

fn contains(c: &Call<'_>) -> EvalResult {
    let list = c.list(0);
    let nulls = list.elements().logical_nulls();
    let order = comparator(list.elements().as_ref(), c.raw(1).as_ref())?;
    let constant = c.is_constant(1);
    c.booleans(|row| {
        let at = if constant { 0 } else { row };
        let mut open = false;
        for i in list.range(row) {
            if nulls.as_ref().is_some_and(|n| n.is_null(i)) {
                open = true;
            } else if order(i, at).is_eq() {
                return Ok(Some(true));
            }
        }
        Ok(if open { None } else { Some(false) })
    })
}

fn position(c: &Call<'_>) -> EvalResult {
    let list = c.list(0);
    let order = comparator(list.elements().as_ref(), c.raw(1).as_ref())?;
    let constant = c.is_constant(1);
    c.primitive::<Int64Type>(|row| {
        let at = if constant { 0 } else { row };
        // The element is not NULL, so no NULL equals it.
        Ok(Some(list.range(row).position(|i| order(i, at).is_eq()).map_or(0, |p| p as i64 + 1)))
    })
}

fn remove(c: &Call<'_>) -> EvalResult {
    let list = c.list(0);
    let order = comparator(list.elements().as_ref(), c.raw(1).as_ref())?;
    let valid = c.valid();
    let mut out = Lists::new(c.rows, vec![list.elements().clone()]);
    for row in 0..c.rows {
        if valid.as_ref().is_some_and(|n| n.is_null(row)) {
            out.null_row();
            continue;
        }
        let at = if c.is_constant(1) { 0 } else { row };
        out.extend(0, list.range(row).filter(|i| order(*i, at).is_ne()));
        out.end_row();
    }
    out.finish_as(c.data_type)
}

fn distinct_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(1, 1)?;
    let (t, element) = array_arg(c, 0)?;
    if !is_ordered(&element.data_type) {
        return Err(no_order(c.name, &element.data_type));
    }
    Ok(Typed::new(vec![t.clone()], t))
}

fn distinct(c: &Call<'_>) -> EvalResult {
    let list = c.list(0);
    let keys = key_rows(std::slice::from_ref(list.elements()))?;
    let mut out = Lists::new(c.rows, vec![list.elements().clone()]);
    let mut seen = AHashSet::new();
    for row in 0..c.rows {
        if list.is_null(row) {
            out.null_row();
            continue;
        }
        seen.clear();
        out.extend(0, list.range(row).filter(|i| seen.insert(keys[0].row(*i))));
        out.end_row();
    }
    out.finish_as(c.data_type)
}

fn set_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, 2)?;
    let different = || {
        ResolveError::new(
            "DATATYPE_MISMATCH.BINARY_ARRAY_DIFF_TYPES",
            format!("`{}` takes two arrays of one type, not {} and {}.", c.name, c.ty(0), c.ty(1)),
        )
    };
    let (T::Array(a), T::Array(b)) = (c.ty(0), c.ty(1)) else { return Err(different()) };
    let wide = tightest_common_type(&a.data_type, &b.data_type).ok_or_else(different)?;
    if !is_ordered(&wide) {
        return Err(no_order(c.name, &wide));
    }
    let result = match c.name {
        "arrays_overlap" => T::Boolean,
        "array_union" => array_of(wide.clone(), a.nullable || b.nullable),
        "array_intersect" => array_of(wide.clone(), a.nullable && b.nullable),
        _ => array_of(wide.clone(), a.nullable),
    };
    Ok(Typed::new(vec![array_of(wide.clone(), a.nullable), array_of(wide, b.nullable)], result))
}

/// `array_union`, `array_intersect` and `array_except`, told apart by name.
fn set(c: &Call<'_>) -> EvalResult {
    let (a, b) = (c.list(0), c.list(1));
    let keys = key_rows(&[a.elements().clone(), b.elements().clone()])?;
    let valid = c.valid();
    let mut out = Lists::new(c.rows, vec![a.elements().clone(), b.elements().clone()]);
    let (mut seen, mut other) = (AHashSet::new(), AHashSet::new());
    for row in 0..c.rows {
        if valid.as_ref().is_some_and(|n| n.is_null(row)) {
            out.null_row();
            continue;
        }
        seen.clear();
        other.clear();
        if c.name == "array_union" {
            out.extend(0, a.range(row).filter(|i| seen.insert(keys[0].row(*i))));
            out.extend(1, b.range(row).filter(|i| seen.insert(keys[1].row(*i))));
        } else {
            other.extend(b.range(row).map(|i| keys[1].row(i)));
            let wanted = c.name == "array_intersect";
            let keep = |i: &usize| {
                let key = keys[0].row(*i);
                other.contains(&key) == wanted && seen.insert(key)
            };
            out.extend(0, a.range(row).filter(keep));
        }
        out.end_row();
    }
    out.finish_as(c.data_type)
}

fn overlap(c: &Call<'_>) -> EvalResult {
    let (a, b) = (c.list(0), c.list(1));
    let keys = key_rows(&[a.elements().clone(), b.elements().clone()])?;
    let (a_nulls, b_nulls) = (a.elements().logical_nulls(), b.elements().logical_nulls());
    let mut seen = AHashSet::new();
    c.booleans(|row| {
        seen.clear();
        let mut open = false;
        for i in a.range(row) {
            if a_nulls.as_ref().is_some_and(|n| n.is_null(i)) {
                open = true;
            } else {
                seen.insert(keys[0].row(i));
            }
        }
        for i in b.range(row) {
            if b_nulls.as_ref().is_some_and(|n| n.is_null(i)) {
                open = true;
            } else if seen.contains(&keys[1].row(i)) {
                return Ok(Some(true));
            }
        }
        let empty = a.range(row).is_empty() || b.range(row).is_empty();
        Ok(if open && !empty { None } else { Some(false) })
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::*;

    fn list(values: &[Option<i32>]) -> Arg {
        let args: Vec<Arg> = values.iter().map(|v| v.map_or_else(null, int)).collect();
        expr("array", &args)
    }

    #[test]
    fn membership_is_three_valued() {
        let a = || list(&[None, Some(5)]);
        assert_eq!(eval("array_contains", &[a(), int(5)]), "true");
        assert_eq!(eval("array_contains", &[a(), int(6)]), "NULL");
        assert_eq!(eval("array_contains", &[list(&[Some(1)]), int(6)]), "false");
        assert_eq!(eval("array_contains", &[a(), null()]), "!DATATYPE_MISMATCH.NULL_TYPE");
        assert_eq!(eval("array_contains", &[a(), str("x")]), "!DATATYPE_MISMATCH.ARRAY_FUNCTION_DIFF_TYPES");
        assert_eq!(eval("array_position", &[a(), int(5)]), "2");
        assert_eq!(eval("array_position", &[a(), int(6)]), "0");
        assert_eq!(eval("array_remove", &[a(), int(5)]), "[null]");
    }

    #[test]
    fn sets() {
        let a = || list(&[Some(1), None, Some(2), Some(1)]);
        assert_eq!(eval("array_distinct", &[list(&[Some(1), None, Some(1), None, Some(2)])]), "[1, null, 2]");
        assert_eq!(eval("array_union", &[list(&[Some(1), None]), list(&[None, Some(2), Some(1)])]), "[1, null, 2]");
        assert_eq!(eval("array_intersect", &[a(), list(&[Some(1), None])]), "[1, null]");
        assert_eq!(eval("array_except", &[a(), list(&[Some(1)])]), "[null, 2]");
        assert_eq!(eval("arrays_overlap", &[a(), list(&[Some(2)])]), "true");
        assert_eq!(eval("arrays_overlap", &[list(&[Some(1), None]), list(&[Some(3)])]), "NULL");
        assert_eq!(eval("arrays_overlap", &[list(&[Some(1)]), list(&[Some(2)])]), "false");
        assert_eq!(eval("arrays_overlap", &[list(&[None]), list(&[])]), "false");
        let zeros = expr("array", &[double(0.0), double(-0.0), double(f64::NAN), double(f64::NAN)]);
        assert_eq!(eval("array_distinct", &[zeros]), "[0.0, NaN]");
    }
}
