//! Forms that evaluate their arguments only where needed, and the bookkeeping of rows and origins in errors.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int32Array, RecordBatch};
use arrow::datatypes::Int32Type;
use ssql_ir::{DataType as T, Expr, ExprKind, Field, Literal, Origin, Schema};

use crate::testing::int;
use crate::{EvalContext, arrow_schema, evaluate, filter_mask, fold_constant};

fn batch() -> RecordBatch {
    let schema = Schema::new(vec![Field::new("a", T::Int32, true), Field::new("b", T::Int32, true)]);
    let a: ArrayRef = Arc::new(Int32Array::from(vec![Some(7), Some(-7), Some(0), Some(6), None]));
    let b: ArrayRef = Arc::new(Int32Array::from(vec![Some(2), Some(0), Some(5), None, Some(0)]));
    RecordBatch::try_new(arrow_schema(&schema), vec![a, b]).expect("a batch")
}

fn a() -> Expr {
    Expr::column(0, T::Int32, true)
}

fn b() -> Expr {
    Expr::column(1, T::Int32, true)
}

fn quotient() -> Expr {
    Expr::call("%", vec![a(), b()], T::Int32, true)
}

fn equals(x: Expr, y: Expr) -> Expr {
    Expr::call("=", vec![x, y], T::Boolean, true)
}

fn form(kind: ExprKind, t: T) -> Expr {
    Expr { kind, data_type: t, nullable: true, origin: Origin::default() }
}

fn ints(e: &Expr) -> Vec<Option<i32>> {
    let array = evaluate(e, &batch(), &EvalContext::default()).expect("no error");
    array.as_primitive::<Int32Type>().iter().collect()
}

fn booleans(e: &Expr) -> Vec<Option<bool>> {
    evaluate(e, &batch(), &EvalContext::default()).expect("no error").as_boolean().iter().collect()
}

#[test]
fn case_skips_branches_not_taken() {
    let case = form(
        ExprKind::Case {
            branches: vec![
                (equals(b(), int(0)), int(-1)),
                (Expr::call("isnull", vec![b()], T::Boolean, false), Expr::literal(Literal::Null, T::Int32)),
            ],
            otherwise: Some(Box::new(quotient())),
        },
        T::Int32,
    );
    assert_eq!(ints(&case), [Some(1), Some(-1), Some(0), None, Some(-1)]);
}

#[test]
fn case_without_else_is_null() {
    let case = form(ExprKind::Case { branches: vec![(equals(a(), int(6)), a())], otherwise: None }, T::Int32);
    assert_eq!(ints(&case), [None, None, None, Some(6), None]);
}

#[test]
fn coalesce_skips_what_is_not_needed() {
    let c = form(ExprKind::Coalesce(vec![a(), b(), quotient()]), T::Int32);
    assert_eq!(ints(&c), [Some(7), Some(-7), Some(0), Some(6), Some(0)]);
    let c = form(ExprKind::Coalesce(vec![a(), quotient(), int(9)]), T::Int32);
    // The last row has NULL % 0, which is NULL.
    assert_eq!(ints(&c), [Some(7), Some(-7), Some(0), Some(6), Some(9)]);
}

#[test]
fn connectives_skip_the_right_side() {
    let nonzero = Expr::call("<>", vec![b(), int(0)], T::Boolean, true);
    let odd = equals(quotient(), int(1));
    let and = form(ExprKind::And(Box::new(nonzero.clone()), Box::new(odd.clone())), T::Boolean);
    assert_eq!(booleans(&and), [Some(true), Some(false), Some(false), None, Some(false)]);
    let zero = equals(b(), int(0));
    let or = form(ExprKind::Or(Box::new(zero), Box::new(odd.clone())), T::Boolean);
    assert_eq!(booleans(&or), [Some(true), Some(true), Some(false), None, Some(true)]);
    let mask = filter_mask(&and, &batch(), &EvalContext::default()).expect("no error");
    assert_eq!(mask.iter().flatten().collect::<Vec<_>>(), [true, false, false, false, false]);
}

#[test]
fn three_valued_logic_in_both_routes() {
    let value = |v: Option<bool>| match v {
        Some(v) => Expr::literal(Literal::Boolean(v), T::Boolean),
        None => Expr::literal(Literal::Null, T::Boolean),
    };
    for x in [Some(true), Some(false), None] {
        for y in [Some(true), Some(false), None] {
            let and = match (x, y) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            };
            let e = form(ExprKind::And(Box::new(value(x)), Box::new(value(y))), T::Boolean);
            assert_eq!(booleans(&e)[0], and, "{x:?} AND {y:?}");
            // A right side that is not harmless takes the route over selected rows.
            let cased = form(
                ExprKind::Case {
                    branches: vec![(Expr::call("isnotnull", vec![a()], T::Boolean, false), value(y))],
                    otherwise: Some(Box::new(value(y))),
                },
                T::Boolean,
            );
            let left = form(
                ExprKind::Case { branches: vec![(equals(a(), int(7)), value(x))], otherwise: Some(Box::new(value(x))) },
                T::Boolean,
            );
            let e = form(ExprKind::And(Box::new(left), Box::new(cased)), T::Boolean);
            assert_eq!(booleans(&e)[0], and, "{x:?} AND {y:?} by rows");
        }
    }
}

#[test]
fn errors_name_row_and_origin() {
    let e = quotient().at(Origin::new(3, 8));
    let error = evaluate(&e, &batch(), &EvalContext::default()).expect_err("a zero");
    assert_eq!((error.condition, error.row, error.origin.span), ("REMAINDER_BY_ZERO", Some(1), Some((3, 8))));
    // Inside a branch the row is still the batch's.
    let case = form(ExprKind::Case { branches: vec![(equals(a(), int(-7)), quotient())], otherwise: None }, T::Int32);
    let error = evaluate(&case, &batch(), &EvalContext::default()).expect_err("a zero");
    assert_eq!(error.row, Some(1));
}

#[test]
fn no_rows_no_errors() {
    let e = Expr::call("div", vec![int(1), int(0)], T::Int64, false);
    let empty = batch().slice(0, 0);
    assert_eq!(evaluate(&e, &empty, &EvalContext::default()).expect("no error").len(), 0);
    assert_eq!(fold_constant(&e, &EvalContext::default()), None);
    let sum = Expr::call("+", vec![int(1), int(2)], T::Int32, false);
    assert_eq!(fold_constant(&sum, &EvalContext::default()), Some(Literal::Int(3)));
    assert_eq!(fold_constant(&a(), &EvalContext::default()), None);
}
