//! Generators: functions that make any number of rows of one. Their `_outer` forms, which keep rows that make none, are
//! the same functions run with `outer`.

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, UInt32Array};
use arrow::compute;
use arrow::datatypes::Int32Type;
use ssql_ir::{DataType as T, Field, Literal};

use super::arrays::array_arg;
use super::lists::{adapt, pick};
use crate::call::Call;
use crate::coercion::common_type_of;
use crate::error::{EvalError, ResolveError};
use crate::function::{FunctionDef, Generated, generator};
use crate::resolve::{ArgType, TypeCall, Typed};

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[
    generator("explode", explode_type, explode_fields, |c| explode(c, false)).aliases(&["explode_outer"]).doc(
        "A row for each element of an array, or each entry of a map.",
        "explode(array) | explode(map)",
        "",
    ),
    generator("posexplode", explode_type, posexplode_fields, |c| explode(c, true)).aliases(&["posexplode_outer"]).doc(
        "A row for each element of an array, or each entry of a map, with its place from 0.",
        "posexplode(array) | posexplode(map)",
        "",
    ),
    generator("inline", inline_type, inline_fields, inline).aliases(&["inline_outer"]).doc(
        "A row for each struct of an array, a column for each of its fields.",
        "inline(structs)",
        "",
    ),
    generator("stack", stack_type, stack_fields, stack).doc(
        "The values laid out in `n` rows.",
        "stack(n, value, ...)",
        "",
    ),
];

fn explode_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(1, 1)?;
    match c.ty(0) {
        T::Array(_) | T::Map(..) => Ok(Typed::new(vec![c.ty(0).clone()], T::Null)),
        _ => Err(c.mismatch(0, "(ARRAY or MAP)")),
    }
}

fn explode_fields(types: &[T], _: &[ArgType]) -> Vec<Field> {
    match types.first() {
        Some(T::Array(e)) => vec![Field::new("col", e.data_type.clone(), e.nullable)],
        Some(T::Map(k, v)) => {
            vec![Field::new("key", k.data_type.clone(), false), Field::new("value", v.data_type.clone(), v.nullable)]
        }
        _ => vec![],
    }
}

fn posexplode_fields(types: &[T], args: &[ArgType]) -> Vec<Field> {
    let mut fields = vec![Field::new("pos", T::Int32, false)];
    fields.extend(explode_fields(types, args));
    fields
}

fn explode(c: &Call<'_>, with_place: bool) -> Result<Generated, EvalError> {
    let (mut rows, mut indices, mut places) = (vec![], vec![], vec![]);
    let mut add = |row: usize, range: std::ops::Range<usize>| {
        for (place, i) in range.enumerate() {
            rows.push(row as u32);
            indices.push(i as u32);
            places.push(place as i32);
        }
    };
    let sources: Vec<ArrayRef> = match c.types[0] {
        T::Map(..) => {
            let map = c.map(0);
            (0..c.rows).filter(|r| !map.is_null(*r)).for_each(|r| add(r, map.range(r)));
            vec![map.keys().clone(), map.values().clone()]
        }
        _ => {
            let list = c.list(0);
            (0..c.rows).filter(|r| !list.is_null(*r)).for_each(|r| add(r, list.range(r)));
            vec![list.elements().clone()]
        }
    };
    let indices = UInt32Array::from(indices);
    let mut columns: Vec<ArrayRef> = vec![];
    if with_place {
        columns.push(std::sync::Arc::new(Int32Array::from(places)));
    }
    for source in &sources {
        columns.push(compute::take(source.as_ref(), &indices, None)?);
    }
    Ok((rows, columns))
}

fn inline_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(1, 1)?;
    let (t, element) = array_arg(c, 0)?;
    match element.data_type {
        T::Struct(_) => Ok(Typed::new(vec![t], T::Null)),
        _ => Err(c.mismatch(0, "ARRAY of STRUCT")),
    }
}

fn inline_fields(types: &[T], _: &[ArgType]) -> Vec<Field> {
    let Some(T::Array(e)) = types.first() else { return vec![] };
    let T::Struct(fields) = &e.data_type else { return vec![] };
    fields.iter().map(|f| Field::new(&f.name, f.data_type.clone(), f.nullable || e.nullable)).collect()
}

fn inline(c: &Call<'_>) -> Result<Generated, EvalError> {
    let list = c.list(0);
    let structs = list.elements().as_struct();
    let (mut rows, mut indices) = (vec![], vec![]);
    for row in (0..c.rows).filter(|r| !list.is_null(*r)) {
        for i in list.range(row) {
            rows.push(row as u32);
            // A NULL struct is a row of NULLs.
            indices.push(structs.is_valid(i).then_some(i as u32));
        }
    }
    let indices = UInt32Array::from(indices);
    let columns = structs
        .columns()
        .iter()
        .map(|column| Ok(compute::take(column.as_ref(), &indices, None)?))
        .collect::<Result<Vec<_>, EvalError>>()?;
    Ok((rows, columns))
}

/// Number of columns that `values` in `n` rows make.
fn stack_width(n: usize, values: usize) -> usize {
    values.div_ceil(n)
}

fn stack_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, usize::MAX)?;
    let n = match c.literal(0) {
        Some(Literal::Int(n)) if c.ty(0).is_integer() && (1..=i64::from(i32::MAX)).contains(n) => *n as usize,
        Some(Literal::Int(_)) if c.ty(0).is_integer() => {
            return Err(ResolveError::new(
                "DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE",
                "The number of rows of `stack` must be between (0, 2147483647].",
            )
            .at_arg(0));
        }
        _ => {
            return Err(ResolveError::new(
                "DATATYPE_MISMATCH.NON_FOLDABLE_INPUT",
                "The number of rows of `stack` has to be a constant INT.",
            )
            .at_arg(0));
        }
    };
    let width = stack_width(n, c.len() - 1);
    let mut types = vec![T::Int32];
    for i in 1..c.len() {
        let column = (i - 1) % width;
        let same = (1..c.len()).filter(|j| (j - 1) % width == column).map(|j| c.ty(j));
        types.push(common_type_of(same).ok_or_else(|| {
            ResolveError::new(
                "DATATYPE_MISMATCH.STACK_COLUMN_DIFF_TYPES",
                format!("The values of column {column} of `stack` should all be of one type."),
            )
            .at_arg(i)
        })?);
    }
    Ok(Typed::new(types, T::Null))
}

fn stack_fields(types: &[T], args: &[ArgType]) -> Vec<Field> {
    let Some(Some(Literal::Int(n))) = args.first().map(|a| &a.literal) else { return vec![] };
    let (n, values) = ((*n).max(1) as usize, args.len() - 1);
    let width = stack_width(n, values);
    (0..width)
        .map(|column| {
            let padded = n * width > values;
            let nullable = padded || (column..values).step_by(width).any(|i| args[i + 1].nullable);
            Field::new(format!("col{column}"), types[column + 1].clone(), nullable)
        })
        .collect()
}

fn stack(c: &Call<'_>) -> Result<Generated, EvalError> {
    let count = c.raw(0).as_primitive::<Int32Type>();
    // The number is a constant: every row has it.
    let n = if count.is_empty() { 1 } else { count.value(0).max(1) as usize };
    let values = c.len() - 1;
    let width = stack_width(n, values);
    let rows = (0..c.rows as u32).flat_map(|row| std::iter::repeat_n(row, n)).collect();
    let columns = (0..width)
        .map(|column| {
            let t = c.types[column + 1];
            let mut sources = (column..values)
                .step_by(width)
                .map(|i| adapt(c.raw(i + 1).clone(), t))
                .collect::<Result<Vec<_>, _>>()?;
            let given = sources.len();
            sources.push(arrow::array::new_null_array(&crate::arrow::arrow_type(t), 1));
            let place = |row: usize, r: usize| if r < given { (r, row) } else { (given, 0) };
            let places: Vec<_> = (0..c.rows).flat_map(|row| (0..n).map(move |r| place(row, r))).collect();
            pick(&sources, &places)
        })
        .collect::<Result<Vec<_>, _>>()?;
    Ok((rows, columns))
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use crate::{ArgType, CellFormatter, EvalContext, evaluate, generate, resolve_generator};
    use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
    use ssql_ir::{DataType as T, ExprKind};

    /// The generated rows as texts, columns parted by blanks; or `!` and a condition.
    fn rows(name: &str, args: &[Arg], outer: bool) -> Vec<String> {
        let types: Vec<ArgType> = args
            .iter()
            .map(|a| ArgType {
                data_type: a.data_type.clone(),
                nullable: a.nullable,
                literal: if let ExprKind::Literal(l) = &a.kind { Some(l.clone()) } else { None },
            })
            .collect();
        let (resolved, fields) = match resolve_generator(name, &types) {
            Ok(r) => r,
            Err(e) => return vec![format!("!{}", e.condition)],
        };
        let options = RecordBatchOptions::new().with_row_count(Some(1));
        let schema = std::sync::Arc::new(arrow::datatypes::Schema::empty());
        let batch = RecordBatch::try_new_with_options(schema, vec![], &options).expect("a batch of one row");
        let ctx = EvalContext::default();
        let columns: Vec<ArrayRef> = args
            .iter()
            .zip(&resolved.arg_types)
            .map(|(a, t)| evaluate(&cast(a.clone(), t.clone()), &batch, &ctx).expect("arguments"))
            .collect();
        let (of, columns) = generate(&resolved.function, &columns, outer, &ctx).expect("rows");
        assert_eq!(fields.len(), columns.len());
        for (field, column) in fields.iter().zip(&columns) {
            assert_eq!(column.data_type(), &crate::arrow_type(&field.data_type));
        }
        (0..of.len())
            .map(|row| {
                let cells = columns.iter().map(|column| {
                    let mut out = String::new();
                    CellFormatter::new(column.as_ref(), ctx.time_zone.clone()).write(row, &mut out);
                    out
                });
                cells.collect::<Vec<_>>().join(" ")
            })
            .collect()
    }

    #[test]
    fn exploding() {
        let a = || expr("array", &[str("a"), null()]);
        let m = expr("map", &[str("k"), int(1), str("l"), int(2)]);
        assert_eq!(rows("explode", &[a()], false), ["a", "NULL"]);
        assert_eq!(rows("posexplode", &[a()], false), ["0 a", "1 NULL"]);
        assert_eq!(rows("explode", std::slice::from_ref(&m), false), ["k 1", "l 2"]);
        assert_eq!(rows("posexplode", &[m], false), ["0 k 1", "1 l 2"]);
        assert!(rows("explode", &[expr("array", &[])], false).is_empty());
        assert_eq!(rows("explode_outer", &[null_of(T::array(T::Int32))], true), ["NULL"]);
        assert_eq!(rows("explode", &[int(1)], false), ["!DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE"]);
    }

    #[test]
    fn structs_and_values() {
        let s = |n: i32, l: &str| expr("named_struct", &[str("n"), int(n), str("l"), str(l)]);
        assert_eq!(rows("inline", &[expr("array", &[s(1, "one"), s(2, "two")])], false), ["1 one", "2 two"]);
        assert_eq!(rows("stack", &[int(2), int(1), str("a"), int(2), str("b")], false), ["1 a", "2 b"]);
        assert_eq!(rows("stack", &[int(2), int(1), int(2), int(3)], false), ["1 2", "3 NULL"]);
        assert_eq!(rows("stack", &[int(0), int(1)], false), ["!DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE"]);
    }
}
