//! One case per form: values and errors that are known, beside the random comparison of `map_random`.

mod support;

use std::sync::Arc;

use arrow::array::{
    ArrayRef, Float64Array, Int8Array, Int32Array, Int64Array, RecordBatch, StringViewArray, TimestampMicrosecondArray,
};
use ssql_abi::{KernelError, MapKernel, MapOutput, Status};
use ssql_ir::{CastMode, DataType as T, Expr, ExprKind, Field, Literal, Origin, Schema};
use ssql_jit::compile_map;
use support::{Checked, Views, check_map};

/// `i` INT?, `t` TINYINT?, `l` BIGINT?, `d` DOUBLE?, `s` STRING?, `ts` TIMESTAMP?.
fn schema() -> Schema {
    let types = [T::Int32, T::Int8, T::Int64, T::Float64, T::String, T::Timestamp];
    Schema::new(types.into_iter().enumerate().map(|(i, t)| Field::new(format!("c{i}"), t, true)).collect())
}

fn batch() -> RecordBatch {
    let long = "abcd and more than twelve bytes";
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from(vec![Some(7), None, Some(-7), Some(0)])),
        Arc::new(Int8Array::from(vec![Some(-128), Some(3), None, Some(2)])),
        Arc::new(Int64Array::from(vec![Some(i64::MIN), Some(-1), Some(2), None])),
        Arc::new(Float64Array::from(vec![Some(f64::NAN), Some(-0.0), Some(1.5), None])),
        Arc::new(StringViewArray::from(vec![Some("abc"), Some(long), None, Some("")])),
        Arc::new(TimestampMicrosecondArray::from(vec![Some(-1), Some(1_500_000), None, Some(0)]).with_timezone("UTC")),
    ];
    RecordBatch::try_new(ssql_stdlib::arrow_schema(&schema()), columns).expect("columns of the schema")
}

fn col(c: u32) -> Expr {
    Expr::column(c, schema().fields[c as usize].data_type.clone(), true)
}

fn int(v: i64, t: T) -> Expr {
    Expr::literal(Literal::Int(v), t)
}

fn text(s: &str) -> Expr {
    Expr::literal(Literal::String(s.into()), T::String)
}

fn call(f: &str, args: &[Expr], t: T) -> Expr {
    Expr::call(f, args.to_vec(), t, true)
}

fn of(kind: ExprKind, t: T) -> Expr {
    Expr { kind, data_type: t, nullable: true, origin: Origin::new(3, 9) }
}

fn cast(e: Expr, t: T, mode: CastMode) -> Expr {
    of(ExprKind::Cast { input: e.into(), mode }, t)
}

fn run(predicate: Option<&Expr>, project: &[Expr]) -> Result<MapOutput, KernelError> {
    let kernel = compile_map(predicate, project, &schema()).expect("compiles").expect("supported");
    let batch = batch();
    let views = Views::new(&batch);
    // SAFETY: the views are of the batch, which has the schema's columns.
    unsafe { kernel.run(&views.columns, batch.num_rows()) }
}

/// The rows for which the predicate is true; the reference must agree.
fn rows(predicate: Expr) -> Vec<u32> {
    assert!(matches!(check_map(Some(&predicate), &[], &schema(), &batch()), Checked::Rows(_)));
    run(Some(&predicate), &[]).expect("runs").selection.expect("there is a predicate")
}

/// The values of one BIGINT expression; the reference must agree.
fn longs(e: Expr) -> Vec<Option<i64>> {
    assert_eq!(check_map(None, std::slice::from_ref(&e), &schema(), &batch()), Checked::Rows(4));
    let out = run(None, &[e]).expect("runs");
    let values = out.columns[0].values.chunks(8).map(|b| i64::from_le_bytes(b.try_into().expect("8 bytes")));
    let valid = |i: usize| out.columns[0].validity.get(i).is_none_or(|&v| v == 1);
    values.enumerate().map(|(i, v)| valid(i).then_some(v)).collect()
}

fn error(e: Expr) -> (Status, u32) {
    let error = run(None, &[e]).expect_err("fails");
    (error.status, error.row)
}

#[test]
fn comparisons_follow_sparks_order_of_floats() {
    let double = |x| Expr::literal(Literal::Float(x), T::Float64);
    assert_eq!(rows(call(">", &[col(3), double(f64::INFINITY)], T::Boolean)), [0]);
    assert_eq!(rows(call("=", &[col(3), double(f64::NAN)], T::Boolean)), [0]);
    assert_eq!(rows(call("=", &[col(3), double(0.0)], T::Boolean)), [1]);
    assert_eq!(rows(call("<=>", &[col(3), Expr::literal(Literal::Null, T::Float64)], T::Boolean)), [3]);
    assert_eq!(rows(call("isnan", &[col(3)], T::Boolean)), [0]);
}

#[test]
fn strings_compare_as_bytes() {
    let long = text("abcd and more than twelve bytes");
    assert_eq!(rows(call("=", &[col(4), text("abc")], T::Boolean)), [0]);
    assert_eq!(rows(call("=", &[col(4), long.clone()], T::Boolean)), [1]);
    assert_eq!(rows(call("<>", &[col(4), long.clone()], T::Boolean)), [0, 3]);
    assert_eq!(rows(call("<", &[col(4), long], T::Boolean)), [0, 3]);
    assert_eq!(rows(call(">=", &[col(4), text("abc")], T::Boolean)), [0, 1]);
    assert_eq!(rows(call("=", &[col(4), col(4)], T::Boolean)), [0, 1, 3]);
    assert_eq!(rows(call("like", &[col(4), text("abcd and%")], T::Boolean)), [1]);
    assert_eq!(rows(call("like", &[col(4), text("ab%")], T::Boolean)), [0, 1]);
    assert_eq!(rows(call("in", &[col(4), text(""), text("abc"), text("x")], T::Boolean)), [0, 3]);
}

#[test]
fn null_logic_is_three_valued() {
    let null = Expr::literal(Literal::Null, T::Boolean);
    let positive = call(">", &[col(0), int(0, T::Int32)], T::Boolean);
    let or = of(ExprKind::Or(positive.clone().into(), null.clone().into()), T::Boolean);
    assert_eq!(rows(or.clone()), [0]);
    assert_eq!(rows(call("isnull", &[or], T::Boolean)), [1, 2, 3]);
    let and = of(ExprKind::And(positive.into(), null.into()), T::Boolean);
    assert_eq!(rows(call("isnotnull", &[and], T::Boolean)), [2, 3]);
    assert_eq!(rows(call("in", &[col(0), int(7, T::Int32), Expr::literal(Literal::Null, T::Int32)], T::Boolean)), [0]);
}

#[test]
fn an_error_that_is_not_needed_is_not_raised() {
    let by_zero = call("div", &[int(14, T::Int64), cast(col(0), T::Int64, CastMode::Ansi)], T::Int64);
    assert_eq!(error(by_zero.clone()), (Status::DivideByZero, 3));
    let not_zero = call("<>", &[col(0), int(0, T::Int32)], T::Boolean);
    let guarded = of(ExprKind::Case { branches: vec![(not_zero.clone(), by_zero.clone())], otherwise: None }, T::Int64);
    assert_eq!(longs(guarded), [Some(2), None, Some(-2), None]);
    let small = call("<", &[by_zero.clone(), int(0, T::Int64)], T::Boolean);
    assert_eq!(rows(of(ExprKind::And(not_zero.into(), small.into()), T::Boolean)), [2]);
    let first = of(ExprKind::Coalesce(vec![cast(col(0), T::Int64, CastMode::Ansi), by_zero]), T::Int64);
    assert_eq!(longs(first), [Some(7), None, Some(-7), Some(0)]);
}

#[test]
fn arithmetic_is_checked() {
    assert_eq!(error(call("negative", &[col(2)], T::Int64)), (Status::ArithmeticOverflow, 0));
    // Not BINARY_ARITHMETIC_OVERFLOW: Spark negates a TINYINT as it does an INT.
    assert_eq!(error(call("abs", &[col(1)], T::Int8)), (Status::ArithmeticOverflow, 0));
    assert_eq!(error(call("-", &[col(1), int(1, T::Int8)], T::Int8)), (Status::BinaryArithmeticOverflow, 0));
    assert_eq!(error(call("*", &[col(2), int(2, T::Int64)], T::Int64)), (Status::ArithmeticOverflow, 0));
    assert_eq!(error(call("div", &[col(2), int(-1, T::Int64)], T::Int64)), (Status::ArithmeticOverflow, 0));
    assert_eq!(error(call("%", &[int(5, T::Int32), col(0)], T::Int32)), (Status::RemainderByZero, 3));
    assert_eq!(longs(call("%", &[col(2), int(-1, T::Int64)], T::Int64)), [Some(0), Some(0), Some(0), None]);
}

#[test]
fn casts_check_their_range() {
    let seconds = cast(col(5), T::Int64, CastMode::Ansi);
    assert_eq!(longs(seconds), [Some(-1), Some(1), None, Some(0)]);
    assert_eq!(error(cast(col(2), T::Int32, CastMode::Ansi)), (Status::CastOverflow, 0));
    assert_eq!(error(cast(col(3), T::Int64, CastMode::Ansi)), (Status::CastOverflow, 0));
    assert_eq!(longs(cast(col(3), T::Int64, CastMode::Try)), [None, Some(0), Some(1), None]);
    let limit = Expr::literal(Literal::Float(i64::MAX as f64), T::Float64);
    assert_eq!(longs(cast(limit, T::Int64, CastMode::Ansi)), [Some(i64::MAX); 4]);
}

#[test]
fn windows_start_before_the_epoch_too() {
    let start = call("window_start", &[col(5), int(1_000_000, T::Int64), int(0, T::Int64)], T::Timestamp);
    assert_eq!(longs(start), [Some(-1_000_000), Some(1_000_000), None, Some(0)]);
    let shifted = call("window_start", &[col(5), int(1_000_000, T::Int64), int(600_000, T::Int64)], T::Timestamp);
    assert_eq!(longs(shifted), [Some(-400_000), Some(600_000), None, Some(-400_000)]);
}

#[test]
fn what_is_computed_is_said() {
    let upper = call("upper", &[col(4)], T::String);
    let sum = call("+", &[col(0), int(1, T::Int32)], T::Int32);
    let kernel = compile_map(None, &[col(0), upper.clone(), sum.clone()], &schema()).expect("compiles");
    assert_eq!(kernel.expect("one column").computed(), [2]);
    assert!(compile_map(None, &[col(0), upper.clone()], &schema()).expect("no error").is_none());
    let unsupported = call("=", &[upper, text("X")], T::Boolean);
    assert!(compile_map(Some(&unsupported), &[sum], &schema()).expect("no error").is_none());
}

#[test]
fn an_error_says_where_it_was_written() {
    let e = call("+", &[col(2), int(-1, T::Int64)], T::Int64).at(Origin::new(3, 9));
    let kernel = compile_map(None, std::slice::from_ref(&e), &schema()).expect("compiles").expect("supported");
    let batch = batch();
    let views = Views::new(&batch);
    // SAFETY: the views are of the batch, which has the schema's columns.
    let error = unsafe { kernel.run(&views.columns, 4) }.expect_err("overflows");
    assert_eq!(kernel.origin(error.expr), Some((3, 9)));
    assert!(kernel.clif_text().contains("sadd_overflow"));
    assert!(kernel.asm_text().expect("compiles again").contains("block0"));
}
