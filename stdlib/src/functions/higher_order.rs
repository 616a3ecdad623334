//! Functions that apply lambdas to elements and entries. The elements of all rows are laid side by side and a lambda is
//! evaluated once over all of them.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int32Array, ListArray, NullBufferBuilder, UInt32Array, new_null_array,
};
use arrow::buffer::OffsetBuffer;
use arrow::compute;
use ssql_ir::{DataType as T, Field};

use super::arrays::{array_arg, array_of};
use super::lists::{Lists, adapt, key_rows, map_array, no_order, pick};
use super::maps::{check_key, check_keys, map_of};
use crate::arrow::{arrow_field, arrow_type};
use crate::call::{Call, EvalResult};
use crate::coercion::{common_type, is_ordered};
use crate::compare::comparator;
use crate::error::{EvalError, ResolveError};
use crate::function::{FunctionDef, Param, higher_order};
use crate::resolve::{TypeCall, Typed};

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[
    higher_order("transform", element_and_place, transform_type, transform).doc(
        "The array with each element (and its place from 0) mapped.",
        "transform(array, x -> ...) | transform(array, (x, i) -> ...)",
        "transform(array(1, 2), x -> x + 1)",
    ),
    higher_order("filter", element_and_place, filter_type, filter).doc(
        "The elements for which a predicate is true.",
        "filter(array, x -> ...) | filter(array, (x, i) -> ...)",
        "filter(array(1, 2, 3), x -> x > 1)",
    ),
    higher_order("exists", element_only, exists_type, exists).doc(
        "Whether a predicate is true of an element; NULL if of none, but it is NULL of one.",
        "exists(array, x -> ...)",
        "exists(array(1, 2), x -> x > 1)",
    ),
    higher_order("forall", element_only, exists_type, exists).doc(
        "Whether a predicate is true of all elements; NULL if it is false of none, but NULL of one.",
        "forall(array, x -> ...)",
        "forall(array(1, 2), x -> x > 0)",
    ),
    higher_order("aggregate", accumulator, aggregate_type, aggregate).aliases(&["reduce"]).doc(
        "The elements folded into one value from a start, which a last function may finish.",
        "aggregate(array, start, (acc, x) -> ...[, acc -> ...])",
        "aggregate(array(1, 2, 3), 0, (acc, x) -> acc + x)",
    ),
    higher_order("zip_with", two_elements, zip_type, zip_with).doc(
        "An array of a function of the elements at the same place, NULL where an array is too short.",
        "zip_with(a, b, (x, y) -> ...)",
        "zip_with(array(1, 2), array(3, 4), (x, y) -> x + y)",
    ),
    higher_order("array_sort", two_of_one, sort_type, array_sort).doc(
        "The elements in ascending order, NULLs last; or as a function says, by a negative, zero or positive INT.",
        "array_sort(array[, (l, r) -> ...])",
        "array_sort(array(5, 2, 9), (l, r) -> r - l)",
    ),
    higher_order("map_filter", entry, map_filter_type, map_filter).doc(
        "The entries for which a predicate is true.",
        "map_filter(map, (k, v) -> ...)",
        "map_filter(map('a', 1, 'b', 2), (k, v) -> v > 1)",
    ),
    higher_order("transform_keys", entry, transform_map_type, transform_map).doc(
        "The map with each key mapped.",
        "transform_keys(map, (k, v) -> ...)",
        "transform_keys(map('a', 1), (k, v) -> upper(k))",
    ),
    higher_order("transform_values", entry, transform_map_type, transform_map).doc(
        "The map with each value mapped.",
        "transform_values(map, (k, v) -> ...)",
        "transform_values(map('a', 1), (k, v) -> v + 1)",
    ),
    higher_order("map_zip_with", two_values, map_zip_type, map_zip_with).doc(
        "A map of all keys of two maps and a function of key and both values, NULL where a map lacks the key.",
        "map_zip_with(a, b, (k, x, y) -> ...)",
        "map_zip_with(map('a', 1), map('a', 2), (k, x, y) -> x + y)",
    ),
];

type Params = Result<Vec<(T, bool)>, ResolveError>;

fn arity(actual: usize, expected: &[usize]) -> Result<(), ResolveError> {
    if expected.contains(&actual) {
        return Ok(());
    }
    let expected: Vec<String> = expected.iter().map(usize::to_string).collect();
    Err(ResolveError::new(
        "INVALID_LAMBDA_FUNCTION_CALL.NUM_ARGS_MISMATCH",
        format!("A function of {} arguments was expected, but it has {actual}.", expected.join(" or ")),
    ))
}

/// Type and nullability of the elements of an argument. What is no array is refused when the call is typed.
fn element(args: &[Option<T>], i: usize) -> (T, bool) {
    match args.get(i) {
        Some(Some(T::Array(e))) => (e.data_type.clone(), e.nullable),
        _ => (T::Null, true),
    }
}

fn key_value(args: &[Option<T>], i: usize) -> ((T, bool), (T, bool)) {
    match args.get(i) {
        Some(Some(T::Map(k, v))) => ((k.data_type.clone(), false), (v.data_type.clone(), v.nullable)),
        _ => ((T::Null, true), (T::Null, true)),
    }
}

fn element_and_place(args: &[Option<T>], _: usize, n: usize) -> Params {
    arity(n, &[1, 2])?;
    Ok(vec![element(args, 0), (T::Int32, false)].into_iter().take(n).collect())
}

fn element_only(args: &[Option<T>], _: usize, n: usize) -> Params {
    arity(n, &[1])?;
    Ok(vec![element(args, 0)])
}

fn accumulator(args: &[Option<T>], position: usize, n: usize) -> Params {
    let start = args.get(1).cloned().flatten().unwrap_or(T::Null);
    if position == 2 {
        arity(n, &[2])?;
        return Ok(vec![(start, true), element(args, 0)]);
    }
    arity(n, &[1])?;
    Ok(vec![(start, true)])
}

fn two_elements(args: &[Option<T>], _: usize, n: usize) -> Params {
    arity(n, &[2])?;
    Ok(vec![(element(args, 0).0, true), (element(args, 1).0, true)])
}

fn two_of_one(args: &[Option<T>], _: usize, n: usize) -> Params {
    arity(n, &[2])?;
    Ok(vec![element(args, 0), element(args, 0)])
}

fn entry(args: &[Option<T>], _: usize, n: usize) -> Params {
    arity(n, &[2])?;
    let (k, v) = key_value(args, 0);
    Ok(vec![k, v])
}

fn two_values(args: &[Option<T>], _: usize, n: usize) -> Params {
    arity(n, &[3])?;
    let ((k1, _), (v1, _)) = key_value(args, 0);
    let ((k2, _), (v2, _)) = key_value(args, 1);
    Ok(vec![(common_type(&k1, &k2).unwrap_or(k1), false), (v1, true), (v2, true)])
}

fn predicate(c: &TypeCall<'_>, i: usize) -> Result<(), ResolveError> {
    if matches!(c.ty(i), T::Boolean | T::Null) { Ok(()) } else { Err(c.mismatch(i, "BOOLEAN")) }
}

/// An array argument. A function with lambdas does not take an untyped NULL for one.
fn given_array(c: &TypeCall<'_>, i: usize) -> Result<(T, Field), ResolveError> {
    if *c.ty(i) == T::Null { Err(c.mismatch(i, "ARRAY")) } else { array_arg(c, i) }
}

fn map_arg(c: &TypeCall<'_>, i: usize) -> Result<(T, T, T, bool), ResolveError> {
    if *c.ty(i) == T::Null {
        return Err(c.mismatch(i, "MAP"));
    }
    match c.coerce(i, Param::Map)? {
        T::Map(k, v) => {
            let (key, value, nullable) = (k.data_type.clone(), v.data_type.clone(), v.nullable);
            Ok((T::Map(k, v), key, value, nullable))
        }
        _ => Err(c.mismatch(i, "MAP")),
    }
}

fn transform_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, 2)?;
    let (t, _) = given_array(c, 0)?;
    let body = c.ty(1).clone();
    Ok(Typed::new(vec![t, body.clone()], array_of(body, c.args[1].nullable)).nullable(c.args[0].nullable))
}

fn filter_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, 2)?;
    let (t, _) = given_array(c, 0)?;
    predicate(c, 1)?;
    Ok(Typed::new(vec![t.clone(), c.ty(1).clone()], t).nullable(c.args[0].nullable))
}

fn exists_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, 2)?;
    let (t, _) = given_array(c, 0)?;
    predicate(c, 1)?;
    Ok(Typed::new(vec![t, c.ty(1).clone()], T::Boolean).nullable(c.any_nullable()))
}

fn aggregate_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(3, 4)?;
    let (t, _) = given_array(c, 0)?;
    let start = c.ty(1).clone();
    // The accumulator keeps the type of its start; its nested parts may be NULL or not.
    if common_type(&start, c.ty(2)).is_none_or(|t| arrow_type_name(&t) != arrow_type_name(&start)) {
        return Err(c.mismatch(2, &start.to_string()));
    }
    let result = if c.len() == 4 { c.ty(3).clone() } else { start.clone() };
    let mut types = vec![t, start];
    types.extend(c.args[2..].iter().map(|a| a.data_type.clone()));
    Ok(Typed::new(types, result).nullable(true))
}

/// The type without what it says of NULL.
fn arrow_type_name(t: &T) -> String {
    t.to_string().replace(" NOT NULL", "")
}

fn zip_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(3, 3)?;
    let ((a, _), (b, _)) = (given_array(c, 0)?, given_array(c, 1)?);
    let body = c.ty(2).clone();
    let nullable = c.args[0].nullable || c.args[1].nullable;
    Ok(Typed::new(vec![a, b, body.clone()], array_of(body, c.args[2].nullable)).nullable(nullable))
}

fn sort_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(1, 2)?;
    let (t, element) = given_array(c, 0)?;
    let mut types = vec![t.clone()];
    if c.len() == 2 {
        if *c.ty(1) != T::Int32 {
            return Err(ResolveError::new(
                "DATATYPE_MISMATCH.UNEXPECTED_RETURN_TYPE",
                format!("`array_sort` requires a function that returns INT, but it returns {}.", c.ty(1)),
            )
            .at_arg(1));
        }
        types.push(T::Int32);
    } else if !is_ordered(&element.data_type) {
        return Err(no_order(c.name, &element.data_type));
    }
    Ok(Typed::new(types, t).nullable(c.args[0].nullable))
}

fn map_filter_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, 2)?;
    let (t, ..) = map_arg(c, 0)?;
    predicate(c, 1)?;
    Ok(Typed::new(vec![t.clone(), c.ty(1).clone()], t).nullable(c.args[0].nullable))
}

fn transform_map_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, 2)?;
    let (t, key, value, nullable) = map_arg(c, 0)?;
    let body = c.ty(1).clone();
    let result = if c.name == "transform_keys" {
        check_key(c, &body)?;
        map_of(body.clone(), value, nullable)
    } else {
        map_of(key, body.clone(), c.args[1].nullable)
    };
    Ok(Typed::new(vec![t, body], result).nullable(c.args[0].nullable))
}

fn map_zip_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(3, 3)?;
    let ((_, k1, v1, n1), (_, k2, v2, n2)) = (map_arg(c, 0)?, map_arg(c, 1)?);
    let key = common_type(&k1, &k2).ok_or_else(|| {
        ResolveError::new(
            "DATATYPE_MISMATCH.MAP_ZIP_WITH_DIFF_TYPES",
            format!("Input to `map_zip_with` should be two maps with one key type, not {k1} and {k2}."),
        )
    })?;
    check_key(c, &key)?;
    let body = c.ty(2).clone();
    let types = vec![map_of(key.clone(), v1, n1), map_of(key.clone(), v2, n2), body.clone()];
    let nullable = c.args[0].nullable || c.args[1].nullable;
    Ok(Typed::new(types, map_of(key, body, c.args[2].nullable)).nullable(nullable))
}

/// Elements of rows laid side by side: where each stands in its source, which row and place it has, where rows begin.
struct Flat {
    rows: Vec<u32>,
    indices: Vec<u32>,
    places: Vec<i32>,
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
}

impl Flat {
    fn new(rows: usize, mut range: impl FnMut(usize) -> Option<std::ops::Range<usize>>) -> Flat {
        let mut flat = Flat {
            rows: vec![],
            indices: vec![],
            places: vec![],
            offsets: vec![0],
            nulls: NullBufferBuilder::new(rows),
        };
        for row in 0..rows {
            let range = range(row);
            flat.nulls.append(range.is_some());
            for (place, i) in range.into_iter().flatten().enumerate() {
                flat.rows.push(row as u32);
                flat.indices.push(i as u32);
                flat.places.push(place as i32);
            }
            flat.offsets.push(flat.indices.len() as i32);
        }
        flat
    }

    fn of_list(c: &Call<'_>, i: usize) -> Flat {
        let list = c.list(i);
        Flat::new(c.rows, |row| (!list.is_null(row)).then(|| list.range(row)))
    }

    fn of_map(c: &Call<'_>, i: usize) -> Flat {
        let map = c.map(i);
        Flat::new(c.rows, |row| (!map.is_null(row)).then(|| map.range(row)))
    }

    fn take(&self, source: &ArrayRef) -> EvalResult {
        Ok(compute::take(source.as_ref(), &UInt32Array::from(self.indices.clone()), None)?)
    }

    fn places(&self) -> ArrayRef {
        Arc::new(Int32Array::from(self.places.clone()))
    }
}

/// Lists over values that stand side by side already.
fn list_of(t: &T, offsets: Vec<i32>, values: ArrayRef, mut nulls: NullBufferBuilder) -> EvalResult {
    let T::Array(element) = t else { return Err(EvalError::internal("an array")) };
    let values = adapt(values, &element.data_type)?;
    let offsets = OffsetBuffer::new(offsets.into());
    Ok(Arc::new(ListArray::try_new(Arc::new(arrow_field(element)), offsets, values, nulls.finish())?))
}

fn transform(c: &Call<'_>) -> EvalResult {
    let flat = Flat::of_list(c, 0);
    let values = flat.take(c.list(0).elements())?;
    let mapped = c.lambda(1)?.apply(&flat.rows, &[values, flat.places()])?;
    list_of(c.data_type, flat.offsets, mapped, flat.nulls)
}

fn is_true(mask: &BooleanArray, i: usize) -> bool {
    mask.is_valid(i) && mask.value(i)
}

fn filter(c: &Call<'_>) -> EvalResult {
    let flat = Flat::of_list(c, 0);
    let elements = c.list(0).elements().clone();
    let mask = adapt(c.lambda(1)?.apply(&flat.rows, &[flat.take(&elements)?, flat.places()])?, &T::Boolean)?;
    let mask = mask.as_boolean();
    let list = c.list(0);
    let mut out = Lists::new(c.rows, vec![elements]);
    for row in 0..c.rows {
        if list.is_null(row) {
            out.null_row();
            continue;
        }
        let flat_range = flat.offsets[row] as usize..flat.offsets[row + 1] as usize;
        out.extend(0, flat_range.filter(|i| is_true(mask, *i)).map(|i| flat.indices[i] as usize));
        out.end_row();
    }
    out.finish_as(c.data_type)
}

/// `exists` and `forall`, told apart by name: the first true (false) decides, else a NULL leaves the answer open.
fn exists(c: &Call<'_>) -> EvalResult {
    let flat = Flat::of_list(c, 0);
    let list = c.list(0);
    let mask = adapt(c.lambda(1)?.apply(&flat.rows, &[flat.take(list.elements())?])?, &T::Boolean)?;
    let mask = mask.as_boolean();
    let decides = c.name == "exists";
    c.booleans(|row| {
        if list.is_null(row) {
            return Ok(None);
        }
        let mut open = false;
        for i in flat.offsets[row] as usize..flat.offsets[row + 1] as usize {
            if mask.is_null(i) {
                open = true;
            } else if mask.value(i) == decides {
                return Ok(Some(decides));
            }
        }
        Ok(if open { None } else { Some(!decides) })
    })
}

/// Steps through the elements of all rows at once: step `k` merges the `k`th element of every row that has one.
fn aggregate(c: &Call<'_>) -> EvalResult {
    let list = c.list(0);
    let merge = c.lambda(2)?;
    let start = c.column(1)?;
    let mut active: Vec<u32> = (0..c.rows as u32).filter(|r| !list.is_null(*r as usize)).collect();
    let mut current = compute::take(start.as_ref(), &UInt32Array::from(active.clone()), None)?;
    // Accumulators of rows that are through, and where each row's stands; piece 0 is NULL.
    let mut pieces = vec![new_null_array(start.data_type(), 1)];
    let mut places = vec![(0, 0); c.rows];
    let mut step = 0;
    while !active.is_empty() {
        let (mut going, mut rows, mut elements) = (vec![], vec![], vec![]);
        let mut done = false;
        for (i, row) in active.iter().enumerate() {
            let range = list.range(*row as usize);
            if range.len() > step {
                going.push(i as u32);
                rows.push(*row);
                elements.push((range.start + step) as u32);
            } else {
                places[*row as usize] = (pieces.len(), i);
                done = true;
            }
        }
        if done {
            pieces.push(current.clone());
        }
        if rows.is_empty() {
            break;
        }
        let accumulators = compute::take(current.as_ref(), &UInt32Array::from(going), None)?;
        let elements = compute::take(list.elements().as_ref(), &UInt32Array::from(elements), None)?;
        current = adapt(merge.apply(&rows, &[accumulators, elements])?, c.types[1])?;
        active = rows;
        step += 1;
    }
    let folded = pick(&pieces, &places)?;
    if c.len() == 3 {
        return Ok(folded);
    }
    let valid: Vec<u32> = (0..c.rows as u32).filter(|r| !list.is_null(*r as usize)).collect();
    let folded = compute::take(folded.as_ref(), &UInt32Array::from(valid.clone()), None)?;
    let finished = c.lambda(3)?.apply(&valid, &[folded])?;
    let mut back: Vec<Option<u32>> = vec![None; c.rows];
    for (i, row) in valid.iter().enumerate() {
        back[*row as usize] = Some(i as u32);
    }
    Ok(compute::take(finished.as_ref(), &UInt32Array::from(back), None)?)
}

fn zip_with(c: &Call<'_>) -> EvalResult {
    let (a, b) = (c.list(0), c.list(1));
    let (mut rows, mut left, mut right) = (vec![], vec![], vec![]);
    let mut offsets = vec![0i32];
    let mut nulls = NullBufferBuilder::new(c.rows);
    for row in 0..c.rows {
        let valid = !a.is_null(row) && !b.is_null(row);
        nulls.append(valid);
        if valid {
            let (x, y) = (a.range(row), b.range(row));
            for i in 0..x.len().max(y.len()) {
                rows.push(row as u32);
                left.push((i < x.len()).then(|| (x.start + i) as u32));
                right.push((i < y.len()).then(|| (y.start + i) as u32));
            }
        }
        offsets.push(rows.len() as i32);
    }
    let left = compute::take(a.elements().as_ref(), &UInt32Array::from(left), None)?;
    let right = compute::take(b.elements().as_ref(), &UInt32Array::from(right), None)?;
    let mapped = c.lambda(2)?.apply(&rows, &[left, right])?;
    list_of(c.data_type, offsets, mapped, nulls)
}

/// Two sorted runs of one row's elements that are being merged.
struct Merge {
    row: usize,
    left: std::iter::Peekable<std::vec::IntoIter<usize>>,
    right: std::iter::Peekable<std::vec::IntoIter<usize>>,
    out: Vec<usize>,
}

fn array_sort(c: &Call<'_>) -> EvalResult {
    let list = c.list(0);
    let elements = list.elements();
    let mut sorted: Vec<Vec<usize>> = Vec::with_capacity(c.rows);
    if c.len() == 2 {
        sorted = sort_by_lambda(c)?;
    } else {
        let order = comparator(elements.as_ref(), elements.as_ref())?;
        let nulls = elements.logical_nulls();
        let is_null = |i: usize| nulls.as_ref().is_some_and(|n| n.is_null(i));
        for row in 0..c.rows {
            let mut places: Vec<usize> = if list.is_null(row) { vec![] } else { list.range(row).collect() };
            places.sort_by(|a, b| is_null(*a).cmp(&is_null(*b)).then_with(|| order(*a, *b)));
            sorted.push(places);
        }
    }
    let mut out = Lists::new(c.rows, vec![elements.clone()]);
    for (row, places) in sorted.into_iter().enumerate() {
        if list.is_null(row) {
            out.null_row();
        } else {
            out.extend(0, places);
            out.end_row();
        }
    }
    out.finish_as(c.data_type)
}

/// A merge sort of all rows in step, so that one evaluation of the lambda makes one comparison of every merge.
fn sort_by_lambda(c: &Call<'_>) -> Result<Vec<Vec<usize>>, EvalError> {
    let list = c.list(0);
    let mut runs: Vec<Vec<Vec<usize>>> = (0..c.rows)
        .map(|row| if list.is_null(row) { vec![] } else { list.range(row).map(|i| vec![i]).collect() })
        .collect();
    while runs.iter().any(|r| r.len() > 1) {
        let mut merges = vec![];
        for (row, runs) in runs.iter_mut().enumerate() {
            let mut pairs = std::mem::take(runs).into_iter();
            while let Some(left) = pairs.next() {
                let right = pairs.next().unwrap_or_default();
                let out = Vec::with_capacity(left.len() + right.len());
                merges.push(Merge { row, left: left.into_iter().peekable(), right: right.into_iter().peekable(), out });
            }
        }
        merge_in_step(c, &mut merges)?;
        for merge in merges {
            runs[merge.row].push(merge.out);
        }
    }
    Ok(runs.into_iter().map(|r| r.into_iter().next().unwrap_or_default()).collect())
}

fn merge_in_step(c: &Call<'_>, merges: &mut [Merge]) -> Result<(), EvalError> {
    let elements = c.list(0).elements().clone();
    loop {
        let (mut rows, mut left, mut right, mut compared) = (vec![], vec![], vec![], vec![]);
        for (i, merge) in merges.iter_mut().enumerate() {
            if let (Some(l), Some(r)) = (merge.left.peek(), merge.right.peek()) {
                rows.push(merge.row as u32);
                left.push(*l as u32);
                right.push(*r as u32);
                compared.push(i);
            }
        }
        if rows.is_empty() {
            break;
        }
        let left = compute::take(elements.as_ref(), &UInt32Array::from(left), None)?;
        let right = compute::take(elements.as_ref(), &UInt32Array::from(right), None)?;
        let order = c.lambda(1)?.apply(&rows, &[left, right])?;
        let order = order.as_primitive::<arrow::datatypes::Int32Type>();
        for (n, i) in compared.into_iter().enumerate() {
            if order.is_null(n) {
                return Err(EvalError::new(
                    "COMPARATOR_RETURNS_NULL",
                    "The comparator of `array_sort` has returned NULL for a comparison.",
                )
                .at_row(rows[n] as usize));
            }
            let merge = &mut merges[i];
            let side = if order.value(n) <= 0 { &mut merge.left } else { &mut merge.right };
            merge.out.extend(side.next());
        }
    }
    for merge in merges {
        merge.out.extend(merge.left.by_ref());
        merge.out.extend(merge.right.by_ref());
    }
    Ok(())
}

fn map_filter(c: &Call<'_>) -> EvalResult {
    let flat = Flat::of_map(c, 0);
    let (keys, values) = (flat.take(c.map(0).keys())?, flat.take(c.map(0).values())?);
    let mask = adapt(c.lambda(1)?.apply(&flat.rows, &[keys.clone(), values.clone()])?, &T::Boolean)?;
    let mask = mask.as_boolean();
    let mut kept: Vec<u32> = vec![];
    let mut offsets = vec![0i32];
    for bounds in flat.offsets.windows(2) {
        kept.extend((bounds[0]..bounds[1]).filter(|i| is_true(mask, *i as usize)).map(|i| i as u32));
        offsets.push(kept.len() as i32);
    }
    let kept = UInt32Array::from(kept);
    let keys = compute::take(keys.as_ref(), &kept, None)?;
    let values = compute::take(values.as_ref(), &kept, None)?;
    map_array(c.data_type, offsets, keys, values, flat.nulls)
}

/// `transform_keys` and `transform_values`, told apart by name.
fn transform_map(c: &Call<'_>) -> EvalResult {
    let flat = Flat::of_map(c, 0);
    let (keys, values) = (flat.take(c.map(0).keys())?, flat.take(c.map(0).values())?);
    let mapped = c.lambda(1)?.apply(&flat.rows, &[keys.clone(), values.clone()])?;
    if c.name == "transform_keys" {
        check_keys(&mapped, &flat.offsets)?;
        map_array(c.data_type, flat.offsets, mapped, values, flat.nulls)
    } else {
        map_array(c.data_type, flat.offsets, keys, mapped, flat.nulls)
    }
}

fn map_zip_with(c: &Call<'_>) -> EvalResult {
    let (a, b) = (c.map(0), c.map(1));
    let hashed = key_rows(&[a.keys().clone(), b.keys().clone()])?;
    let (mut rows, mut keys, mut left, mut right) = (vec![], vec![], vec![], vec![]);
    let mut offsets = vec![0i32];
    let mut nulls = NullBufferBuilder::new(c.rows);
    let mut in_b = ahash::AHashMap::new();
    for row in 0..c.rows {
        let valid = !a.is_null(row) && !b.is_null(row);
        nulls.append(valid);
        if valid {
            in_b.clear();
            in_b.extend(b.range(row).map(|i| (hashed[1].row(i), i)));
            for i in a.range(row) {
                keys.push((0, i));
                left.push(Some(i as u32));
                right.push(in_b.remove(&hashed[0].row(i)).map(|j| j as u32));
            }
            for j in b.range(row).filter(|j| in_b.contains_key(&hashed[1].row(*j))) {
                keys.push((1, j));
                left.push(None);
                right.push(Some(j as u32));
            }
            rows.resize(keys.len(), row as u32);
        }
        offsets.push(keys.len() as i32);
    }
    let keys = pick(&[a.keys().clone(), b.keys().clone()], &keys)?;
    let left = compute::take(a.values().as_ref(), &UInt32Array::from(left), None)?;
    let right = compute::take(b.values().as_ref(), &UInt32Array::from(right), None)?;
    let mapped = c.lambda(2)?.apply(&rows, &[keys.clone(), left, right])?;
    debug_assert_eq!(mapped.data_type(), &arrow_type(c.types[2]));
    map_array(c.data_type, offsets, keys, mapped, nulls)
}

#[cfg(test)]
mod tests {
    use crate::lambda_param_types;
    use crate::testing::*;
    use ssql_ir::{DataType as T, Expr, ExprKind, LambdaParam};

    /// A call with one lambda at `at`; `body` is given the parameters.
    fn with(name: &str, mut args: Vec<Arg>, at: usize, n: usize, body: impl Fn(&[Expr]) -> Expr) -> String {
        let mut types: Vec<Option<T>> = args.iter().map(|a| Some(a.data_type.clone())).collect();
        types.insert(at, None);
        let params = match lambda_param_types(name, &types, at, n) {
            Ok(p) => p,
            Err(e) => return format!("!{}", e.condition),
        };
        let params: Vec<LambdaParam> = params
            .into_iter()
            .enumerate()
            .map(|(i, (data_type, nullable))| LambdaParam {
                id: (at * 10 + i) as u32,
                name: format!("p{i}"),
                data_type,
                nullable,
            })
            .collect();
        let variables: Vec<Expr> = params
            .iter()
            .map(|p| Expr {
                kind: ExprKind::LambdaVariable(p.id),
                data_type: p.data_type.clone(),
                nullable: p.nullable,
                origin: Default::default(),
            })
            .collect();
        let body = body(&variables);
        let (data_type, nullable) = (body.data_type.clone(), body.nullable);
        let kind = ExprKind::Lambda { params, body: Box::new(body) };
        args.insert(at, Expr { kind, data_type, nullable, origin: Default::default() });
        eval(name, &args)
    }

    fn list(values: &[Option<i32>]) -> Arg {
        let args: Vec<Arg> = values.iter().map(|v| v.map_or_else(|| null_of(T::Int32), int)).collect();
        expr("array", &args)
    }

    #[test]
    fn elements() {
        let a = || list(&[Some(1), Some(2), None]);
        assert_eq!(with("transform", vec![a()], 1, 1, |p| expr("+", &[p[0].clone(), int(1)])), "[2, 3, null]");
        assert_eq!(with("transform", vec![a()], 1, 2, |p| p[1].clone()), "[0, 1, 2]");
        assert_eq!(
            with("transform", vec![a()], 1, 3, |p| p[0].clone()),
            "!INVALID_LAMBDA_FUNCTION_CALL.NUM_ARGS_MISMATCH"
        );
        assert_eq!(with("filter", vec![a()], 1, 1, |p| expr(">", &[p[0].clone(), int(1)])), "[2]");
        assert_eq!(with("filter", vec![a()], 1, 1, |p| p[0].clone()), "!DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE");
        assert_eq!(with("filter", vec![a()], 1, 1, |_| null()), "[]");
        assert_eq!(with("exists", vec![a()], 1, 1, |p| expr(">", &[p[0].clone(), int(1)])), "true");
        assert_eq!(with("exists", vec![a()], 1, 1, |p| expr(">", &[p[0].clone(), int(4)])), "NULL");
        assert_eq!(with("forall", vec![a()], 1, 1, |p| expr(">", &[p[0].clone(), int(1)])), "false");
        assert_eq!(with("forall", vec![a()], 1, 1, |p| expr(">", &[p[0].clone(), int(0)])), "NULL");
        assert_eq!(
            with("transform", vec![list(&[Some(2)])], 1, 1, |p| expr(
                "div",
                &[int(1), expr("-", &[p[0].clone(), int(2)])]
            )),
            "!DIVIDE_BY_ZERO"
        );
        let sum = |p: &[Expr]| expr("+", &[p[0].clone(), p[1].clone()]);
        assert_eq!(with("aggregate", vec![list(&[Some(1), Some(2)]), int(0)], 2, 2, sum), "3");
        assert_eq!(with("reduce", vec![a(), int(0)], 2, 2, sum), "NULL");
        assert_eq!(with("aggregate", vec![list(&[]), int(7)], 2, 2, |p| p[0].clone()), "7");
        assert_eq!(with("zip_with", vec![list(&[Some(1), Some(2)]), list(&[Some(3)])], 2, 2, sum), "[4, null]");
    }

    #[test]
    fn sorting() {
        let a = || list(&[Some(5), Some(2), Some(9), Some(1), Some(7)]);
        assert_eq!(eval("array_sort", &[list(&[Some(3), None, Some(1)])]), "[1, 3, null]");
        assert_eq!(
            with("array_sort", vec![a()], 1, 2, |p| expr("-", &[p[1].clone(), p[0].clone()])),
            "[9, 7, 5, 2, 1]"
        );
        assert_eq!(with("array_sort", vec![a()], 1, 2, |_| null_of(T::Int32)), "!COMPARATOR_RETURNS_NULL");
        let maps = expr("array", &[expr("map", &[int(1), int(2)])]);
        assert_eq!(eval("array_sort", &[maps]), "!DATATYPE_MISMATCH.INVALID_ORDERING_TYPE");
    }

    #[test]
    fn entries() {
        let m = || expr("map", &[str("a"), int(1), str("b"), int(2)]);
        assert_eq!(with("map_filter", vec![m()], 1, 2, |p| expr(">", &[p[1].clone(), int(1)])), "{b -> 2}");
        assert_eq!(
            with("transform_keys", vec![m()], 1, 2, |p| expr("concat", &[p[0].clone(), cast(p[1].clone(), T::String)])),
            "{a1 -> 1, b2 -> 2}"
        );
        assert_eq!(with("transform_keys", vec![m()], 1, 2, |_| str("k")), "!DUPLICATED_MAP_KEY");
        assert_eq!(
            with("transform_values", vec![m()], 1, 2, |p| expr("+", &[p[1].clone(), int(1)])),
            "{a -> 2, b -> 3}"
        );
        let b = expr("map", &[str("b"), int(20), str("c"), int(30)]);
        assert_eq!(
            with("map_zip_with", vec![m(), b], 2, 3, |p| expr("+", &[p[1].clone(), p[2].clone()])),
            "{a -> null, b -> 22, c -> null}"
        );
    }
}
