//! Arrays, maps and structs: printing, casts, comparison, access.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::concat;
use ssql_ir::{CastMode, DataType as T, Expr, Field, Literal};

use crate::testing::*;
use crate::{CellFormatter, EvalContext, arrow_type, cast_array, evaluate, literal_array, parse_data_type};

fn ty(s: &str) -> T {
    parse_data_type(s).expect("a type")
}

/// A list column from texts of its elements.
fn list(rows: &[Option<&[Option<&str>]>], element: &T) -> ArrayRef {
    let texts: Vec<Option<&str>> = rows.iter().flatten().flat_map(|r| r.iter().copied()).collect();
    let texts: ArrayRef = Arc::new(arrow::array::StringViewArray::from(texts));
    let values = cast_array(&texts, &T::String, element, CastMode::Ansi, &EvalContext::default()).expect("elements");
    let offsets = arrow::buffer::OffsetBuffer::from_lengths(rows.iter().map(|r| r.map_or(0, <[_]>::len)));
    let nulls = arrow::buffer::NullBuffer::from(rows.iter().map(Option::is_some).collect::<Vec<_>>());
    let field = arrow::datatypes::Field::new("element", arrow_type(element), true);
    Arc::new(arrow::array::ListArray::new(Arc::new(field), offsets, values, Some(nulls)))
}

fn structs(fields: &[(&str, T, Literal)]) -> (ArrayRef, T) {
    let t = T::Struct(fields.iter().map(|(n, t, _)| Field::new(*n, t.clone(), true)).collect());
    let columns = fields.iter().map(|(_, t, l)| literal_array(l, t, 1)).collect();
    let arrow::datatypes::DataType::Struct(f) = arrow_type(&t) else { unreachable!("a struct type") };
    (Arc::new(arrow::array::StructArray::new(f, columns, None)), t)
}

fn shown(a: &ArrayRef) -> Vec<String> {
    let f = CellFormatter::new(a.as_ref(), jiff::tz::TimeZone::UTC);
    (0..a.len())
        .map(|i| {
            let mut s = String::new();
            f.write(i, &mut s);
            s
        })
        .collect()
}

fn call_columns(name: &str, columns: &[(ArrayRef, T)], literals: &[Arg]) -> Result<Vec<String>, &'static str> {
    let fields = columns.iter().enumerate().map(|(i, (_, t))| Field::new(format!("c{i}"), t.clone(), true)).collect();
    let schema = crate::arrow_schema(&ssql_ir::Schema::new(fields));
    let batch = RecordBatch::try_new(schema, columns.iter().map(|(a, _)| a.clone()).collect()).expect("a batch");
    let mut args: Vec<Expr> =
        columns.iter().enumerate().map(|(i, (_, t))| Expr::column(i as u32, t.clone(), true)).collect();
    args.extend(literals.iter().cloned());
    let e = call(name, &args)?;
    evaluate(&e, &batch, &EvalContext::default()).map(|a| shown(&a)).map_err(|e| e.condition)
}

#[test]
fn casts_go_into_the_parts() {
    let texts = list(&[Some(&[Some("1"), Some(" 2"), None]), None, Some(&[])], &T::String);
    let from = T::array(T::String);
    let to = T::array(T::Int32);
    let ctx = EvalContext::default();
    let cast = cast_array(&texts, &from, &to, CastMode::Ansi, &ctx).expect("all numbers");
    assert_eq!(cast.data_type(), &arrow_type(&to));
    assert_eq!(shown(&cast), ["[1, 2, null]", "NULL", "[]"]);
    let bad = list(&[Some(&[Some("1")]), Some(&[Some("1"), Some("two")])], &T::String);
    let error = cast_array(&bad, &from, &to, CastMode::Ansi, &ctx).expect_err("two is no number");
    assert_eq!((error.condition, error.row), ("CAST_INVALID_INPUT", Some(1)));
    assert_eq!(shown(&cast_array(&bad, &from, &to, CastMode::Try, &ctx).expect("tried")), ["[1]", "[1, null]"]);
    // A slice does not look at the elements outside of it.
    assert_eq!(shown(&cast_array(&bad.slice(0, 1), &from, &to, CastMode::Ansi, &ctx).expect("fine")), ["[1]"]);
    assert_eq!(shown(&cast_array(&cast, &to, &T::String, CastMode::Ansi, &ctx).expect("text"))[0], "[1, 2, null]");
}

#[test]
fn a_map_that_loses_a_key_is_null() {
    let from = T::map(T::String, T::Int32);
    let mut builder =
        arrow::array::MapBuilder::new(None, arrow::array::StringViewBuilder::new(), arrow::array::Int32Builder::new());
    for key in ["1", "x"] {
        builder.keys().append_value(key);
        builder.values().append_value(5);
        builder.append(true).expect("keys and values");
    }
    let maps = crate::normalize(&(Arc::new(builder.finish()) as ArrayRef), &from).expect("a map");
    let to = T::map(T::Int32, T::String);
    let ctx = EvalContext::default();
    assert_eq!(shown(&cast_array(&maps, &from, &to, CastMode::Try, &ctx).expect("tried")), ["{1 -> 5}", "NULL"]);
    let error = cast_array(&maps, &from, &to, CastMode::Ansi, &ctx).expect_err("x is no number");
    assert_eq!((error.condition, error.row), ("CAST_INVALID_INPUT", Some(1)));
}

#[test]
fn structs_cast_by_position() {
    let (s, from) = structs(&[
        ("x", T::String, Literal::String("7".into())),
        ("y", T::String, Literal::String("2024-01-05".into())),
    ]);
    let to = ty("struct<n: int, d: date>");
    let cast = cast_array(&s, &from, &to, CastMode::Ansi, &EvalContext::default()).expect("fits");
    assert_eq!(cast.data_type(), &arrow_type(&to));
    assert_eq!(shown(&cast), ["{7, 2024-01-05}"]);
}

#[test]
fn equality_inside_takes_null_for_a_value() {
    let pair = |a: Option<i64>, b: Option<i64>| {
        let lit = |v: Option<i64>| v.map_or(Literal::Null, Literal::Int);
        structs(&[("a", T::Int32, lit(a)), ("b", T::Int32, lit(b))])
    };
    let compare = |f: &str, x: (ArrayRef, T), y: (ArrayRef, T)| call_columns(f, &[x, y], &[]).expect("fine")[0].clone();
    assert_eq!(compare("=", pair(Some(5), None), pair(Some(5), None)), "true");
    assert_eq!(compare("=", pair(Some(5), None), pair(Some(5), Some(5))), "false");
    assert_eq!(compare("<", pair(Some(5), None), pair(Some(5), Some(6))), "true");
    assert_eq!(compare("<", pair(None, Some(5)), pair(Some(5), Some(6))), "true");
    assert_eq!(compare("greatest", pair(Some(1), Some(2)), pair(Some(1), Some(3))), "{1, 3}");
    let l = |r: &[Option<&str>]| (list(&[Some(r)], &T::Int32), T::array(T::Int32));
    assert_eq!(compare("greatest", l(&[Some("1"), Some("2")]), l(&[Some("1"), Some("3"), Some("0")])), "[1, 3, 0]");
    assert_eq!(compare("<", l(&[Some("1")]), l(&[Some("1"), Some("0")])), "true");
}

#[test]
fn subscripts() {
    let xs = (list(&[Some(&[Some("10"), None]), None], &T::Int32), T::array(T::Int32));
    assert_eq!(call_columns("[]", std::slice::from_ref(&xs), &[int(0)]), Ok(vec!["10".into(), "NULL".into()]));
    assert_eq!(call_columns("[]", std::slice::from_ref(&xs), &[int(1)]), Ok(vec!["NULL".into(), "NULL".into()]));
    assert_eq!(call_columns("[]", std::slice::from_ref(&xs), &[int(2)]), Err("INVALID_ARRAY_INDEX"));
    assert_eq!(call_columns("[]", std::slice::from_ref(&xs), &[int(-1)]), Err("INVALID_ARRAY_INDEX"));
    assert_eq!(call_columns("[]", &[xs], &[str("a")]), Err("DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE"));
    assert_eq!(eval("[]", &[int(1), int(1)]), "!INVALID_EXTRACT_BASE_FIELD_TYPE");
}

#[test]
fn fields() {
    let s = structs(&[("a", T::Int32, Literal::Int(1)), ("B", T::String, Literal::Null)]);
    assert_eq!(call_columns("get_field", std::slice::from_ref(&s), &[str("A")]), Ok(vec!["1".into()]));
    assert_eq!(call_columns("get_field", std::slice::from_ref(&s), &[int(1)]), Ok(vec!["NULL".into()]));
    assert_eq!(call_columns("get_field", std::slice::from_ref(&s), &[str("nope")]), Err("FIELD_NOT_FOUND"));
    let none = arrow::array::new_null_array(s.0.data_type(), 1);
    let both: ArrayRef = concat(&[s.0.as_ref(), none.as_ref()]).expect("one type");
    assert_eq!(both.as_struct().len(), 2);
    assert_eq!(call_columns("get_field", &[(both, s.1)], &[str("a")]), Ok(vec!["1".into(), "NULL".into()]));
    assert_eq!(eval("get_field", &[int(1), str("x")]), "!INVALID_EXTRACT_BASE_FIELD_TYPE");
}
