//! count, sum, avg, min, max, DISTINCT.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, Decimal128Array, DurationMicrosecondArray, Float32Array, Float64Array, Int8Array, Int32Array, Int64Array,
    StringViewArray, StructArray,
};
use ssql_ir::{DataType as T, Field};

use crate::arrow_type;
use crate::testing::{agg_call, check_aggregate};

fn run(name: &str, t: T, column: ArrayRef) -> String {
    let call = agg_call(name, &[t], false);
    let column = crate::normalize(&column, &call.arg_types[0]).expect("the argument's type");
    check_aggregate(&call, &[column])
}

fn distinct(name: &str, t: T, column: ArrayRef) -> String {
    check_aggregate(&agg_call(name, &[t], true), &[column])
}

fn result_type(name: &str, t: T) -> String {
    agg_call(name, &[t], false).data_type.to_string()
}

#[test]
fn result_types() {
    let types = |name: &str| {
        [T::Int8, T::Int32, T::Int64, T::Float32, T::Decimal(8, 3), T::String, T::Decimal(38, 18)]
            .map(|t| result_type(name, t))
            .join(" ")
    };
    assert_eq!(types("sum"), "BIGINT BIGINT BIGINT DOUBLE DECIMAL(18,3) DOUBLE DECIMAL(38,18)");
    assert_eq!(types("avg"), "DOUBLE DOUBLE DOUBLE DOUBLE DECIMAL(12,7) DOUBLE DECIMAL(38,22)");
    assert_eq!(result_type("max", T::Int8), "TINYINT");
    assert_eq!(result_type("count", T::String), "BIGINT");
}

#[test]
fn numbers() {
    let t: ArrayRef = Arc::new(Int8Array::from(vec![Some(100), None, Some(100)]));
    assert_eq!(run("sum", T::Int8, t.clone()), "200");
    assert_eq!(run("avg", T::Int8, t.clone()), "100.0");
    assert_eq!(run("count", T::Int8, t.clone()), "2");
    assert_eq!(run("max", T::Int8, t), "100");
    let f: ArrayRef = Arc::new(Float32Array::from(vec![1.5, 0.25]));
    assert_eq!(run("sum", T::Float32, f.clone()), "1.75");
    assert_eq!(run("avg", T::Float32, f.clone()), "0.875");
    assert_eq!(run("min", T::Float32, f), "0.25");
    let n: ArrayRef = Arc::new(Decimal128Array::from(vec![12345678, 1]).with_data_type(arrow_type(&T::Decimal(8, 3))));
    assert_eq!(run("sum", T::Decimal(8, 3), n.clone()), "12345.679");
    assert_eq!(run("avg", T::Decimal(8, 3), n.clone()), "6172.8395000");
    assert_eq!(run("min", T::Decimal(8, 3), n), "0.001");
}

#[test]
fn overflow() {
    let l: ArrayRef = Arc::new(Int64Array::from(vec![i64::MAX, 1]));
    let call = |name: &str| agg_call(name, &[T::Int64], false);
    assert_eq!(check_aggregate(&call("sum"), std::slice::from_ref(&l)), "!ARITHMETIC_OVERFLOW");
    assert_eq!(check_aggregate(&call("try_sum"), &[l]), "NULL");
    let wide = T::Decimal(38, 0);
    let nines: ArrayRef =
        Arc::new(Decimal128Array::from(vec![10i128.pow(38) - 1; 2]).with_data_type(arrow_type(&wide)));
    assert_eq!(run("sum", wide.clone(), nines.clone()), "!ARITHMETIC_OVERFLOW");
    assert_eq!(run("try_sum", wide, nines), "NULL");
}

#[test]
fn nothing() {
    let none: ArrayRef = Arc::new(Int32Array::from(vec![None, None]));
    assert_eq!(run("sum", T::Int32, none.clone()), "NULL");
    assert_eq!(run("avg", T::Int32, none.clone()), "NULL");
    assert_eq!(run("min", T::Int32, none.clone()), "NULL");
    assert_eq!(run("count", T::Int32, none.clone()), "0");
    assert_eq!(distinct("count", T::Int32, none), "0");
}

#[test]
fn floats_order() {
    let x: ArrayRef = Arc::new(Float64Array::from(vec![f64::NAN, f64::INFINITY, 0.0, 1.5]));
    assert_eq!(run("min", T::Float64, x.clone()), "0.0");
    assert_eq!(run("max", T::Float64, x.clone()), "NaN");
    assert_eq!(run("sum", T::Float64, x), "NaN");
}

#[test]
fn intervals() {
    let i: ArrayRef = Arc::new(DurationMicrosecondArray::from(vec![Some(10_000_000), Some(25_000_000), None]));
    let all = ["sum", "avg", "min", "max", "count"].map(|f| run(f, T::DAY_TO_SECOND, i.clone()));
    assert_eq!(
        all,
        [
            "INTERVAL '0 00:00:35' DAY TO SECOND",
            "INTERVAL '0 00:00:17.5' DAY TO SECOND",
            "INTERVAL '0 00:00:10' DAY TO SECOND",
            "INTERVAL '0 00:00:25' DAY TO SECOND",
            "2"
        ]
    );
}

#[test]
fn texts_and_structs() {
    let s: ArrayRef =
        Arc::new(StringViewArray::from(vec![Some("b"), None, Some("a much longer text than a view"), Some("")]));
    assert_eq!(run("max", T::String, s.clone()), "b");
    assert_eq!(run("min", T::String, s), "");
    let t = T::Struct(vec![Field::new("x", T::Int32, true), Field::new("y", T::Float64, true)]);
    let arrow::datatypes::DataType::Struct(fields) = arrow_type(&t) else { unreachable!("a struct") };
    let x: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(3), Some(3)]));
    let y: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 2.0, 3.0, f64::NAN]));
    let s: ArrayRef = Arc::new(StructArray::new(fields, vec![x, y], None));
    assert_eq!(run("max", t.clone(), s.clone()), "{3, NaN}");
    assert_eq!(run("min", t, s), "{null, 2.0}");
}

#[test]
fn distinct_values_count_once() {
    let x: ArrayRef = Arc::new(Float64Array::from(vec![
        Some(f64::NAN),
        Some(-f64::NAN),
        Some(-0.0),
        Some(0.0),
        None,
        None,
        Some(f64::INFINITY),
        Some(f64::NEG_INFINITY),
    ]));
    assert_eq!(distinct("count", T::Float64, x), "4");
    let n: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), Some(2), Some(1), None, Some(5)]));
    assert_eq!(distinct("sum", T::Int32, n.clone()), "8");
    assert_eq!(distinct("max", T::Int32, n.clone()), "5");
    let call = agg_call("count", &[T::Int32, T::Int32], true);
    let m: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), Some(2), Some(1), Some(1), None]));
    assert_eq!(check_aggregate(&call, &[n, m]), "2");
}
