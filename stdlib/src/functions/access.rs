//! Access to parts of nested values: `[]`, and the planner's `get_field`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, StructArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{Field as ArrowField, Int8Type, Int16Type, Int32Type, Int64Type};
use ssql_ir::{DataType as T, Field, Literal};

use crate::call::{Call, EvalResult};
use crate::coercion::{common_type, is_ordered};
use crate::compare::comparator;
use crate::error::{EvalError, ResolveError};
use crate::function::{FunctionDef, NullRule, scalar_with};
use crate::resolve::{TypeCall, Typed};

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[
    scalar_with("[]", subscript_type, subscript).nulls(NullRule::StrictNullable).doc(
        "Element of an array by position from 0 (an error outside of it), value of a map by key (NULL if absent).",
        "array[index] | map[key]",
        "",
    ),
    scalar_with("get_field", field_type, get_field).nulls(NullRule::StrictNullable).internal().doc(
        "Field of a struct, or of every struct of an array, by constant name or position.",
        "struct.field",
        "",
    ),
];

fn subscript_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, 2)?;
    match c.ty(0) {
        T::Array(e) => {
            let index = match c.ty(1) {
                t if t.is_integer() => t.clone(),
                T::Null => T::Int32,
                _ => return Err(c.mismatch(1, "INTEGRAL")),
            };
            let nullable = e.nullable || c.any_nullable();
            Ok(Typed::new(vec![c.ty(0).clone(), index], e.data_type.clone()).nullable(nullable))
        }
        T::Map(k, v) => {
            // A map of texts is asked by text, whatever the key is written as.
            let wide = match (&k.data_type, c.ty(1)) {
                (T::String, key) if !key.is_nested() => Some(T::String),
                (of_map, key) => common_type(of_map, key).filter(is_ordered),
            };
            let Some(wide) = wide else { return Err(c.mismatch(1, &k.data_type.to_string())) };
            let map = if wide == k.data_type {
                c.ty(0).clone()
            } else {
                T::Map(Box::new(Field::new(&k.name, wide.clone(), false)), v.clone())
            };
            Ok(Typed::new(vec![map, wide], v.data_type.clone()))
        }
        T::Struct(_) => field_type(c),
        t => Err(ResolveError::new(
            "INVALID_EXTRACT_BASE_FIELD_TYPE",
            format!("Can't extract a value: need a complex type [STRUCT, ARRAY, MAP] but got {t}."),
        )
        .at_arg(0)),
    }
}

fn subscript(c: &Call<'_>) -> EvalResult {
    match c.types[0] {
        T::Array(_) => {
            let list = c.list(0);
            let index = index_of(c, 1)?;
            c.pick(list.elements(), |row| {
                let (range, i) = (list.range(row), index(row));
                match usize::try_from(i).ok().filter(|i| *i < range.len()) {
                    Some(i) => Ok(Some(range.start + i)),
                    None => Err(EvalError::new(
                        "INVALID_ARRAY_INDEX",
                        format!("The index {i} is out of bounds. The array has {} elements.", range.len()),
                    )
                    .with_help("use `get(array, index)` to get NULL outside of the array")),
                }
            })
        }
        T::Map(..) => map_value(c),
        _ => get_field(c),
    }
}

/// Value of the map argument 0 at the key argument 1, NULL if absent.
pub(super) fn map_value(c: &Call<'_>) -> EvalResult {
    let map = c.map(0);
    let order = comparator(map.keys().as_ref(), c.raw(1).as_ref())?;
    let constant = c.is_constant(1);
    c.pick(map.values(), |row| {
        let key = if constant { 0 } else { row };
        Ok(map.range(row).find(|i| order(*i, key).is_eq()))
    })
}

/// An integer argument of any width.
pub(super) fn index_of<'a>(c: &'a Call<'_>, i: usize) -> Result<Box<dyn Fn(usize) -> i64 + 'a>, EvalError> {
    Ok(match c.types[i] {
        T::Int8 => {
            let a = c.fixed::<Int8Type>(i);
            Box::new(move |r| a.get(r).into())
        }
        T::Int16 => {
            let a = c.fixed::<Int16Type>(i);
            Box::new(move |r| a.get(r).into())
        }
        T::Int32 => {
            let a = c.fixed::<Int32Type>(i);
            Box::new(move |r| a.get(r).into())
        }
        T::Int64 => {
            let a = c.fixed::<Int64Type>(i);
            Box::new(move |r| a.get(r))
        }
        t => return Err(EvalError::internal(format!("{t} is no index"))),
    })
}

/// Position of the field that a constant names.
fn position(fields: &[Field], wanted: &Literal) -> Result<usize, ResolveError> {
    let found: Vec<usize> = match wanted {
        Literal::Int(i) => usize::try_from(*i).ok().filter(|i| *i < fields.len()).into_iter().collect(),
        Literal::String(name) => (0..fields.len()).filter(|i| fields[*i].name.eq_ignore_ascii_case(name)).collect(),
        _ => vec![],
    };
    let shown = match wanted {
        Literal::String(name) => name.clone(),
        Literal::Int(i) => i.to_string(),
        _ => "?".into(),
    };
    match found.as_slice() {
        [one] => Ok(*one),
        [] => {
            let names: Vec<&str> = fields.iter().map(|f| f.name.as_str()).collect();
            Err(ResolveError::new(
                "FIELD_NOT_FOUND",
                format!("No such struct field `{shown}` in {}.", names.join(", ")),
            )
            .at_arg(1))
        }
        _ => Err(ResolveError::new(
            "AMBIGUOUS_REFERENCE_TO_FIELDS",
            format!("Ambiguous reference to the field `{shown}`. It appears {} times in the schema.", found.len()),
        )
        .at_arg(1)),
    }
}

fn field_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, 2)?;
    let Some(wanted) = c.literal(1) else { return Err(c.mismatch(1, "constant STRING or INT")) };
    let (fields, element) = match c.ty(0) {
        T::Struct(fields) => (fields, None),
        T::Array(e) => match &e.data_type {
            T::Struct(fields) => (fields, Some(e)),
            _ => return Err(c.mismatch(1, "INTEGRAL")),
        },
        t => {
            return Err(ResolveError::new(
                "INVALID_EXTRACT_BASE_FIELD_TYPE",
                format!("Can't extract a value: need a complex type [STRUCT, ARRAY, MAP] but got {t}."),
            )
            .at_arg(0));
        }
    };
    let field = &fields[position(fields, wanted)?];
    let args = vec![c.ty(0).clone(), c.ty(1).clone()];
    Ok(match element {
        None => Typed::new(args, field.data_type.clone()).nullable(field.nullable || c.args[0].nullable),
        Some(e) => {
            let element = Field::new("element", field.data_type.clone(), field.nullable || e.nullable);
            Typed::new(args, T::Array(Box::new(element))).nullable(c.args[0].nullable)
        }
    })
}

/// The child of a struct array, NULL where the struct is.
fn child(s: &StructArray, at: usize) -> EvalResult {
    let column = s.column(at);
    if s.null_count() == 0 || column.data_type() == &arrow::datatypes::DataType::Null {
        return Ok(column.clone());
    }
    let nulls = NullBuffer::union(s.nulls(), column.nulls());
    Ok(arrow::array::make_array(column.to_data().into_builder().nulls(nulls).build()?))
}

fn get_field(c: &Call<'_>) -> EvalResult {
    let wanted = crate::arrow::literal_at(c.raw(1).as_ref(), 0)
        .ok_or_else(|| EvalError::internal("a field is named by a constant"))?;
    let at = |fields: &[Field]| position(fields, &wanted).map_err(|e| EvalError::internal(e.message));
    let column: ArrayRef = c.column(0)?;
    match c.types[0] {
        T::Struct(fields) => child(column.as_struct(), at(fields)?),
        T::Array(e) => {
            let T::Struct(fields) = &e.data_type else { return Err(EvalError::internal("an array of structs")) };
            let list = column.as_list::<i32>();
            let values = child(list.values().as_struct(), at(fields)?)?;
            let field = ArrowField::new("element", values.data_type().clone(), true);
            let list = ListArray::try_new(Arc::new(field), list.offsets().clone(), values, list.nulls().cloned())?;
            Ok(Arc::new(list))
        }
        t => Err(EvalError::internal(format!("a field of {t}"))),
    }
}
