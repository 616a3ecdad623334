//! Arrays built, read by place, joined, cut and sorted. (Arrays as sets are in `array_sets`.)

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, AsArray, ListArray, StructArray};
use arrow::datatypes::Int32Type;
use ssql_ir::{DataType as T, Field};

use super::access::map_value;
use super::lists::{Lists, no_order};
use super::maps::no_such_key;
use crate::arrow::arrow_type;
use crate::call::{Call, EvalResult};
use crate::coercion::{is_ordered, tightest_common_type};
use crate::compare::comparator;
use crate::error::{EvalError, ResolveError};
use crate::function::{FunctionDef, NullRule, Param, Ret, TEXT, scalar, scalar_with};
use crate::resolve::{TypeCall, Typed};

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[
    scalar_with("array", array_type, array).nulls(NullRule::Never).doc(
        "An array of the arguments.",
        "array(a, b, ...)",
        "array(1, 2, 3)",
    ),
    scalar("size", &[Param::OneOf(&[Param::Array, Param::Map])], Ret::Int, size).aliases(&["cardinality"]).doc(
        "Number of elements of an array or of entries of a map.",
        "size(x)",
        "size(array(1, 2))",
    ),
    scalar("array_size", &[Param::Array], Ret::Int, size).doc(
        "Number of elements of an array.",
        "array_size(array)",
        "array_size(array(1, 2))",
    ),
    scalar_with("element_at", element_at_type, element_at).nulls(NullRule::StrictNullable).doc(
        "Element by place from 1 (negative: from the end; an error outside), or value of a map by key.",
        "element_at(array, index) | element_at(map, key)",
        "element_at(array(1, 2), -1)",
    ),
    scalar_with("try_element_at", element_at_type, element_at).nulls(NullRule::StrictNullable).doc(
        "As `element_at`; NULL outside of the array.",
        "try_element_at(array, index) | try_element_at(map, key)",
        "try_element_at(array(1, 2), 5)",
    ),
    scalar("get", &[Param::Array, Param::Int], Ret::ElementOf(0), get).nulls(NullRule::StrictNullable).doc(
        "Element by place from 0; NULL outside of the array.",
        "get(array, index)",
        "get(array(1, 2), 0)",
    ),
    scalar("array_join", &[Param::ArrayOf(&Param::String), TEXT, TEXT], Ret::String, join).optional(1).doc(
        "The elements as one text with a separator; NULLs are left out, or written as said.",
        "array_join(array, sep[, null])",
        "array_join(array('a', 'b'), '+')",
    ),
    scalar_with("flatten", flatten_type, flatten).nulls(NullRule::StrictNullable).doc(
        "The elements of an array of arrays; NULL if one of them is NULL.",
        "flatten(arrays)",
        "flatten(array(array(1), array(2)))",
    ),
    scalar("slice", &[Param::Array, Param::Int, Param::Int], Ret::SameAs(0), slice).doc(
        "At most `length` elements from a place from 1 (negative: from the end).",
        "slice(array, start, length)",
        "slice(array(1, 2, 3), 2, 2)",
    ),
    scalar_with("array_repeat", repeat_type, repeat).nulls(NullRule::Any).doc(
        "An array of `n` times the element.",
        "array_repeat(element, n)",
        "array_repeat('x', 3)",
    ),
    scalar_with("array_append", |c| with_element(c, 1), insert).nulls(NullRule::Any).doc(
        "The array with one more element at its end.",
        "array_append(array, element)",
        "array_append(array(1), 2)",
    ),
    scalar_with("array_prepend", |c| with_element(c, 1), insert).nulls(NullRule::Any).doc(
        "The array with one more element at its start.",
        "array_prepend(array, element)",
        "array_prepend(array(1), 2)",
    ),
    scalar_with("array_insert", |c| with_element(c, 2), insert).nulls(NullRule::Any).doc(
        "The array with an element put in at a place from 1 (-1: at the end), NULLs between if it is further out.",
        "array_insert(array, pos, element)",
        "array_insert(array(1, 3), 2, 2)",
    ),
    scalar_with("array_compact", compact_type, compact).doc(
        "The elements that are not NULL.",
        "array_compact(array)",
        "array_compact(array(1, NULL))",
    ),
    scalar_with("array_max", extreme_type, |c| extreme(c, Ordering::Greater)).nulls(NullRule::StrictNullable).doc(
        "Largest element; NULLs are skipped, NaN is largest.",
        "array_max(array)",
        "array_max(array(1, 3, 2))",
    ),
    scalar_with("array_min", extreme_type, |c| extreme(c, Ordering::Less)).nulls(NullRule::StrictNullable).doc(
        "Smallest element; NULLs are skipped.",
        "array_min(array)",
        "array_min(array(1, 3, 2))",
    ),
    scalar_with("sort_array", sort_type, sort_array).doc(
        "The elements in ascending order, NULLs first; or descending, NULLs last.",
        "sort_array(array[, ascending])",
        "sort_array(array(3, 1, 2))",
    ),
    scalar_with("arrays_zip", zip_type, zip).doc(
        "An array of structs of the elements at the same place, NULL where an array is too short.",
        "arrays_zip(a, b, ...)",
        "arrays_zip(array(1, 2), array('a', 'b'))",
    ),
];

/// `ARRAY<t>`.
pub(super) fn array_of(t: T, nullable: bool) -> T {
    T::Array(Box::new(Field::new("element", t, nullable)))
}

/// The array argument: its type and its element. An untyped NULL is an array of VOID.
pub(super) fn array_arg(c: &TypeCall<'_>, i: usize) -> Result<(T, Field), ResolveError> {
    match c.coerce(i, Param::Array)? {
        T::Array(e) => {
            let field = (*e).clone();
            Ok((T::Array(e), field))
        }
        _ => Err(c.mismatch(i, "ARRAY")),
    }
}

/// The error "the array has elements of another type".
pub(super) fn no_such_element(c: &TypeCall<'_>, i: usize) -> ResolveError {
    ResolveError::new(
        "DATATYPE_MISMATCH.ARRAY_FUNCTION_DIFF_TYPES",
        format!("`{}` takes an array and an element of its type, not {} and {}.", c.name, c.ty(0), c.ty(i)),
    )
    .at_arg(i)
}

fn array_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    let t = if c.is_empty() { T::Null } else { c.common(0)? };
    Ok(Typed::new(vec![t.clone(); c.len()], array_of(t, c.any_nullable())).nullable(false))
}

fn array(c: &Call<'_>) -> EvalResult {
    let sources = if c.is_empty() {
        vec![arrow::array::new_empty_array(&arrow::datatypes::DataType::Null)]
    } else {
        (0..c.len()).map(|i| c.raw(i).clone()).collect()
    };
    let mut out = Lists::new(c.rows, sources);
    for row in 0..c.rows {
        for i in 0..c.len() {
            out.push(i, if c.is_constant(i) { 0 } else { row });
        }
        out.end_row();
    }
    out.finish_as(c.data_type)
}

fn size(c: &Call<'_>) -> EvalResult {
    if let T::Map(..) = c.types[0] {
        let map = c.map(0);
        return c.primitive::<Int32Type>(|row| Ok(Some(map.range(row).len() as i32)));
    }
    let list = c.list(0);
    c.primitive::<Int32Type>(|row| Ok(Some(list.range(row).len() as i32)))
}

fn element_at_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, 2)?;
    match c.ty(0) {
        T::Map(k, v) => {
            let wide = tightest_common_type(&k.data_type, c.ty(1)).filter(is_ordered);
            let Some(wide) = wide else { return Err(no_such_key(c)) };
            let map = T::Map(Box::new(Field::new(&k.name, wide.clone(), false)), v.clone());
            Ok(Typed::new(vec![map, wide], v.data_type.clone()))
        }
        T::Array(e) => {
            let index = match c.ty(1) {
                T::Int8 | T::Int16 | T::Int32 => T::Int32,
                _ => return Err(c.mismatch(1, "INT")),
            };
            Ok(Typed::new(vec![c.ty(0).clone(), index], e.data_type.clone()))
        }
        _ => Err(c.mismatch(0, "(ARRAY or MAP)")),
    }
}

fn element_at(c: &Call<'_>) -> EvalResult {
    if let T::Map(..) = c.types[0] {
        return map_value(c);
    }
    let tried = c.name == "try_element_at";
    let (list, index) = (c.list(0), c.i32(1));
    c.pick(list.elements(), |row| {
        let (range, i) = (list.range(row), index.get(row));
        let place = i.unsigned_abs() as usize;
        if i == 0 {
            return Err(EvalError::new(
                "INVALID_INDEX_OF_ZERO",
                "The index 0 is invalid: elements are counted from 1.",
            ));
        }
        if place > range.len() {
            if tried {
                return Ok(None);
            }
            return Err(EvalError::new(
                "INVALID_ARRAY_INDEX_IN_ELEMENT_AT",
                format!("The index {i} is out of bounds. The array has {} elements.", range.len()),
            )
            .with_help("use `try_element_at` to get NULL outside of the array"));
        }
        Ok(Some(if i > 0 { range.start + place - 1 } else { range.end - place }))
    })
}

fn get(c: &Call<'_>) -> EvalResult {
    let (list, index) = (c.list(0), c.i32(1));
    c.pick(list.elements(), |row| {
        let range = list.range(row);
        Ok(usize::try_from(index.get(row)).ok().filter(|i| *i < range.len()).map(|i| range.start + i))
    })
}

fn join(c: &Call<'_>) -> EvalResult {
    let (list, separator) = (c.list(0), c.str(1));
    let for_null = (c.len() == 3).then(|| c.str(2));
    let elements = list.elements().as_string_view();
    c.strings(|row, out| {
        let mut first = true;
        for i in list.range(row) {
            let text = match (elements.is_valid(i), &for_null) {
                (true, _) => elements.value(i),
                (false, Some(text)) => text.get(row),
                (false, None) => continue,
            };
            if !std::mem::take(&mut first) {
                out.push_str(separator.get(row));
            }
            out.push_str(text);
        }
        Ok(true)
    })
}

fn flatten_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(1, 1)?;
    match c.ty(0) {
        T::Array(outer) if matches!(outer.data_type, T::Array(_)) => {
            let nullable = outer.nullable || c.any_nullable();
            Ok(Typed::new(vec![c.ty(0).clone()], outer.data_type.clone()).nullable(nullable))
        }
        _ => Err(c.mismatch(0, "ARRAY of ARRAY")),
    }
}

fn flatten(c: &Call<'_>) -> EvalResult {
    let list = c.list(0);
    let inner = list.elements().as_list::<i32>();
    let mut out = Lists::new(c.rows, vec![inner.values().clone()]);
    for row in 0..c.rows {
        if list.is_null(row) || list.range(row).any(|i| inner.is_null(i)) {
            out.null_row();
            continue;
        }
        for i in list.range(row) {
            let offsets = inner.value_offsets();
            out.extend(0, offsets[i] as usize..offsets[i + 1] as usize);
        }
        out.end_row();
    }
    out.finish_as(c.data_type)
}

fn slice(c: &Call<'_>) -> EvalResult {
    let (list, start, length) = (c.list(0), c.i32(1), c.i32(2));
    let valid = c.valid();
    let mut out = Lists::new(c.rows, vec![list.elements().clone()]);
    for row in 0..c.rows {
        if valid.as_ref().is_some_and(|n| n.is_null(row)) {
            out.null_row();
            continue;
        }
        let (range, start, length) = (list.range(row), start.get(row), length.get(row));
        if start == 0 {
            let error = "`slice` expects a start that is not 0: elements are counted from 1.";
            return Err(EvalError::new("INVALID_PARAMETER_VALUE.START", error).at_row(row));
        }
        let Ok(length) = usize::try_from(length) else {
            let error = format!("`slice` expects a length of at least 0, but got {length}.");
            return Err(EvalError::new("INVALID_PARAMETER_VALUE.LENGTH", error).at_row(row));
        };
        let place = start.unsigned_abs() as usize;
        let from = if start > 0 { Some(place - 1) } else { range.len().checked_sub(place) };
        if let Some(from) = from.filter(|f| *f < range.len()) {
            let to = from.saturating_add(length).min(range.len());
            out.extend(0, range.start + from..range.start + to);
        }
        out.end_row();
    }
    out.finish_as(c.data_type)
}

fn repeat_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, 2)?;
    let n = c.coerce(1, Param::Exactly(&Param::Int))?;
    let t = array_of(c.ty(0).clone(), c.args[0].nullable);
    Ok(Typed::new(vec![c.ty(0).clone(), n], t).nullable(c.args[1].nullable))
}

fn repeat(c: &Call<'_>) -> EvalResult {
    let n = c.i32(1);
    let mut out = Lists::new(c.rows, vec![c.raw(0).clone()]);
    for row in 0..c.rows {
        let Some(n) = n.opt(row) else {
            out.null_row();
            continue;
        };
        let place = if c.is_constant(0) { 0 } else { row };
        out.extend(0, std::iter::repeat_n(place, n.max(0) as usize));
        out.end_row();
    }
    out.finish_as(c.data_type)
}

/// Array, perhaps a place, and an element of one type with the array's.
fn with_element(c: &TypeCall<'_>, at: usize) -> Result<Typed, ResolveError> {
    c.count(at + 1, at + 1)?;
    if let Some(i) = (0..at).find(|i| *c.ty(*i) == T::Null) {
        return Err(c.mismatch(i, if i == 0 { "ARRAY" } else { "INT" }));
    }
    let T::Array(element) = c.ty(0) else {
        return Err(if at == 1 { c.mismatch(0, "ARRAY") } else { no_such_element(c, at) });
    };
    let wide = tightest_common_type(&element.data_type, c.ty(at)).ok_or_else(|| no_such_element(c, at))?;
    // A place further out is reached over NULLs.
    let t = array_of(wide.clone(), at == 2 || element.nullable || c.args[at].nullable);
    let mut types = vec![array_of(wide.clone(), element.nullable)];
    if at == 2 {
        types.push(match c.ty(1) {
            T::Int8 | T::Int16 | T::Int32 => T::Int32,
            _ => return Err(c.mismatch(1, "INT")),
        });
    }
    types.push(wide);
    Ok(Typed::new(types, t).nullable(c.args[..at].iter().any(|a| a.nullable)))
}

/// `array_append`, `array_prepend` and `array_insert`, told apart by name.
fn insert(c: &Call<'_>) -> EvalResult {
    let list = c.list(0);
    let last = c.len() - 1;
    let position = (c.len() == 3).then(|| c.i32(1));
    let mut out = Lists::new(c.rows, vec![list.elements().clone(), c.raw(last).clone()]);
    for row in 0..c.rows {
        let position = match (&position, c.name) {
            (Some(p), _) => p.opt(row),
            (None, "array_prepend") => Some(1),
            (None, _) => Some(-1),
        };
        let Some(position) = position.filter(|_| !list.is_null(row)) else {
            out.null_row();
            continue;
        };
        if position == 0 {
            let error = "The index 0 is invalid: elements are counted from 1.";
            return Err(EvalError::new("INVALID_INDEX_OF_ZERO", error).at_row(row));
        }
        let place = position.unsigned_abs() as usize;
        let range = list.range(row);
        let missing = place.saturating_sub(range.len() + 1);
        if missing > 2_147_483_632 - range.len().min(1 << 30) {
            return Err(super::lists::too_many().at_row(row));
        }
        let element = if c.is_constant(last) { 0 } else { row };
        if missing > 0 && position < 0 {
            out.push(1, element);
            (0..missing).for_each(|_| out.push_null());
            out.extend(0, range);
        } else if missing > 0 {
            out.extend(0, range);
            (0..missing).for_each(|_| out.push_null());
            out.push(1, element);
        } else {
            let at = if position > 0 { range.start + place - 1 } else { range.end + 1 - place };
            out.extend(0, range.start..at);
            out.push(1, element);
            out.extend(0, at..range.end);
        }
        out.end_row();
    }
    out.finish_as(c.data_type)
}

fn compact_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(1, 1)?;
    let (t, element) = array_arg(c, 0)?;
    Ok(Typed::new(vec![t], array_of(element.data_type.clone(), element.data_type == T::Null)))
}

fn compact(c: &Call<'_>) -> EvalResult {
    let list = c.list(0);
    let nulls = list.elements().logical_nulls();
    let mut out = Lists::new(c.rows, vec![list.elements().clone()]);
    for row in 0..c.rows {
        if list.is_null(row) {
            out.null_row();
        } else {
            out.extend(0, list.range(row).filter(|i| nulls.as_ref().is_none_or(|n| n.is_valid(*i))));
            out.end_row();
        }
    }
    out.finish_as(c.data_type)
}

fn extreme_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(1, 1)?;
    let (t, element) = array_arg(c, 0)?;
    if !is_ordered(&t) {
        return Err(no_order(c.name, &t));
    }
    Ok(Typed::new(vec![t], element.data_type))
}

fn extreme(c: &Call<'_>, wins: Ordering) -> EvalResult {
    let list = c.list(0);
    let elements = list.elements();
    let nulls = elements.logical_nulls();
    let order = comparator(elements.as_ref(), elements.as_ref())?;
    c.pick(elements, |row| {
        let valid = list.range(row).filter(|i| nulls.as_ref().is_none_or(|n| n.is_valid(*i)));
        Ok(valid.reduce(|best, i| if order(i, best) == wins { i } else { best }))
    })
}

fn sort_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(1, 2)?;
    let (t, _) = array_arg(c, 0)?;
    if !is_ordered(&t) {
        return Err(no_order(c.name, &t));
    }
    let mut types = vec![t.clone()];
    if c.len() == 2 {
        types.push(c.coerce(1, Param::Exactly(&Param::Boolean))?);
    }
    Ok(Typed::new(types, t))
}

fn sort_array(c: &Call<'_>) -> EvalResult {
    let list = c.list(0);
    let ascending = (c.len() == 2).then(|| c.bool(1));
    let valid = c.valid();
    let order = comparator(list.elements().as_ref(), list.elements().as_ref())?;
    let mut out = Lists::new(c.rows, vec![list.elements().clone()]);
    let mut places = vec![];
    for row in 0..c.rows {
        if valid.as_ref().is_some_and(|n| n.is_null(row)) {
            out.null_row();
            continue;
        }
        places.clear();
        places.extend(list.range(row));
        // NULL is smallest: first ascending, last descending.
        if ascending.as_ref().is_none_or(|a| a.get(row)) {
            places.sort_by(|a, b| order(*a, *b));
        } else {
            places.sort_by(|a, b| order(*b, *a));
        }
        out.extend(0, places.iter().copied());
        out.end_row();
    }
    out.finish_as(c.data_type)
}

fn zip_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    let mut types = vec![];
    let mut fields = vec![];
    for i in 0..c.len() {
        let (t, element) = array_arg(c, i)?;
        types.push(t);
        fields.push(Field::new(i.to_string(), element.data_type, true));
    }
    Ok(Typed::new(types, array_of(T::Struct(fields), false)))
}

fn zip(c: &Call<'_>) -> EvalResult {
    let lists: Vec<_> = (0..c.len()).map(|i| c.list(i)).collect();
    let valid = c.valid();
    let mut columns: Vec<Lists> = lists.iter().map(|l| Lists::new(c.rows, vec![l.elements().clone()])).collect();
    let mut offsets = vec![0i32];
    let mut total = 0;
    for row in 0..c.rows {
        if valid.as_ref().is_none_or(|n| n.is_valid(row)) {
            let longest = lists.iter().map(|l| l.range(row).len()).max().unwrap_or(0);
            total += longest;
            for (list, column) in lists.iter().zip(&mut columns) {
                let range = list.range(row);
                let missing = longest - range.len();
                column.extend(0, range);
                (0..missing).for_each(|_| column.push_null());
            }
        }
        offsets.push(i32::try_from(total).map_err(|_| super::lists::too_many())?);
    }
    let T::Array(element) = c.data_type else { return Err(EvalError::internal("an array of structs")) };
    let (T::Struct(fields), arrow::datatypes::DataType::Struct(arrow_fields)) =
        (&element.data_type, arrow_type(&element.data_type))
    else {
        return Err(EvalError::internal("an array of structs"));
    };
    let structs = if fields.is_empty() {
        StructArray::new_empty_fields(total, None)
    } else {
        let children = columns
            .into_iter()
            .zip(fields)
            .map(|(column, f)| column.finish_values(&f.data_type))
            .collect::<Result<Vec<_>, _>>()?;
        StructArray::try_new(arrow_fields, children, None)?
    };
    let field = Arc::new(crate::arrow::arrow_field(element));
    let offsets = arrow::buffer::OffsetBuffer::new(offsets.into());
    Ok(Arc::new(ListArray::try_new(field, offsets, Arc::new(structs), valid)?))
}

#[cfg(test)]
mod tests {
    use crate::testing::*;

    fn ints() -> Arg {
        expr("array", &[int(10), int(20), int(30)])
    }

    fn with_null() -> Arg {
        expr("array", &[null(), int(5)])
    }

    #[test]
    fn building_and_reading() {
        assert_eq!(eval("array", &[int(1), null(), bigint(2)]), "[1, null, 2]");
        assert_eq!(eval("array", &[]), "[]");
        assert_eq!(type_of("array", &[int(1), double(2.0)]), "ARRAY<DOUBLE>");
        assert_eq!(eval("size", &[ints()]), "3");
        assert_eq!(eval("cardinality", &[null()]), "NULL");
        assert_eq!(eval("element_at", &[ints(), int(-3)]), "10");
        assert_eq!(eval("element_at", &[ints(), int(4)]), "!INVALID_ARRAY_INDEX_IN_ELEMENT_AT");
        assert_eq!(eval("element_at", &[ints(), int(0)]), "!INVALID_INDEX_OF_ZERO");
        assert_eq!(eval("try_element_at", &[ints(), int(4)]), "NULL");
        assert_eq!(eval("get", &[ints(), int(0)]), "10");
        assert_eq!(eval("get", &[ints(), int(-1)]), "NULL");
        assert_eq!(eval("array_max", &[with_null()]), "5");
        assert_eq!(eval("array_min", &[expr("array", &[])]), "NULL");
    }

    #[test]
    fn reshaping() {
        for (at, n, want) in [(2, 2, "[20, 30]"), (-2, 2, "[20, 30]"), (5, 1, "[]"), (1, 0, "[]"), (-9, 2, "[]")] {
            assert_eq!(eval("slice", &[ints(), int(at), int(n)]), want);
        }
        assert_eq!(eval("slice", &[ints(), int(0), int(1)]), "!INVALID_PARAMETER_VALUE.START");
        assert_eq!(eval("slice", &[ints(), int(1), int(-1)]), "!INVALID_PARAMETER_VALUE.LENGTH");
        assert_eq!(eval("reverse", &[with_null()]), "[5, null]");
        assert_eq!(eval("array_append", &[ints(), int(9)]), "[10, 20, 30, 9]");
        assert_eq!(eval("array_prepend", &[ints(), null()]), "[null, 10, 20, 30]");
        for (at, want) in [
            (2, "[10, 0, 20, 30]"),
            (-1, "[10, 20, 30, 0]"),
            (-4, "[0, 10, 20, 30]"),
            (6, "[10, 20, 30, null, null, 0]"),
            (-6, "[0, null, null, 10, 20, 30]"),
            (0, "!INVALID_INDEX_OF_ZERO"),
        ] {
            assert_eq!(eval("array_insert", &[ints(), int(at), int(0)]), want);
        }
        assert_eq!(eval("array_compact", &[with_null()]), "[5]");
        let nested = expr("array", &[ints(), with_null()]);
        assert_eq!(eval("flatten", &[nested]), "[10, 20, 30, null, 5]");
        assert_eq!(eval("flatten", &[expr("array", &[ints(), null()])]), "NULL");
        assert_eq!(eval("flatten", &[ints()]), "!DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE");
        assert_eq!(eval("array_repeat", &[str("x"), int(3)]), "[x, x, x]");
        assert_eq!(eval("array_repeat", &[null(), int(1)]), "[null]");
        assert_eq!(eval("array_join", &[with_null(), str("+"), str("?")]), "?+5");
        assert_eq!(eval("array_join", &[ints(), str(",")]), "10,20,30");
        let letters = expr("array", &[str("a")]);
        assert_eq!(eval("arrays_zip", &[ints(), letters]), "[{10, a}, {20, null}, {30, null}]");
    }

    #[test]
    fn sorting() {
        let a = || expr("array", &[int(3), null(), int(1)]);
        assert_eq!(eval("sort_array", &[a()]), "[null, 1, 3]");
        assert_eq!(eval("sort_array", &[a(), boolean(false)]), "[3, 1, null]");
        assert_eq!(eval("sort_array", &[expr("array", &[double(f64::NAN), double(1.0)])]), "[1.0, NaN]");
        let maps = expr("array", &[expr("map", &[int(1), int(2)])]);
        assert_eq!(eval("sort_array", &[maps]), "!DATATYPE_MISMATCH.INVALID_ORDERING_TYPE");
    }
}
