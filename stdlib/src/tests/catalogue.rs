//! Laws that every scalar function of the catalogue keeps, whatever it computes: no argument makes it panic, it gives the
//! type and nullability that typing promised, strict functions give NULL for NULL, and a value does not depend on whether
//! arguments are constants or columns, or on which rows stand around it.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use jiff::tz::TimeZone;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use ssql_ir::{CastMode, DataType as T, Expr, ExprKind, Field, Literal, Schema};

use crate::function::{FunctionDef, FunctionKind, NullRule};
use crate::testing::{binary, cast, date, decimal, double, int, months, seconds, str, timestamp};
use crate::{
    ArgType, CellFormatter, EvalContext, EvalError, arrow_schema, arrow_type, cast_array, catalogue, evaluate,
    literal_array, resolve_scalar,
};

/// Two rows of each type; a NULL is the third.
fn samples() -> Vec<(T, Vec<ArrayRef>)> {
    let constants = [
        [int(3), int(-1)],
        [crate::testing::bigint(2), crate::testing::bigint(0)],
        [double(2.5), double(f64::NAN)],
        [decimal("12.50"), decimal("-0.25")],
        [str("a,B c"), str("")],
        [str("2024-02-29 12:30:00"), str("%d")],
        [binary(b"xyz"), binary(b"")],
        [crate::testing::boolean(true), crate::testing::boolean(false)],
        [date("2024-02-29"), date("1969-12-31")],
        [timestamp("2024-02-29 23:59:59.5"), timestamp("1969-12-31 00:00:00")],
        [seconds(90), seconds(-86_400)],
        [months(14), months(-1)],
    ];
    let mut all: Vec<(T, Vec<ArrayRef>)> = constants
        .iter()
        .map(|pair| {
            let t =
                if matches!(pair[0].data_type, T::Decimal(..)) { T::Decimal(10, 2) } else { pair[0].data_type.clone() };
            let one = |e: &Expr| {
                let ExprKind::Literal(l) = &e.kind else { unreachable!("samples are constants") };
                cast_array(
                    &literal_array(l, &e.data_type, 1),
                    &e.data_type,
                    &t,
                    CastMode::Ansi,
                    &EvalContext::default(),
                )
                .expect("samples cast")
            };
            let arrays = pair.iter().map(one).collect();
            (t, arrays)
        })
        .collect();
    let texts = arrow::array::ListArray::from_iter_primitive::<arrow::datatypes::Int32Type, _, _>([
        Some(vec![Some(3), None, Some(1)]),
        Some(vec![]),
    ]);
    let ints = T::array(T::Int32);
    let lists = crate::normalize(&(Arc::new(texts) as ArrayRef), &ints).expect("a list");
    let strings = T::array(T::String);
    let cast_lists = cast_array(&lists, &ints, &strings, CastMode::Ansi, &EvalContext::default()).expect("texts");
    all.push((ints, vec![lists.slice(0, 1), lists.slice(1, 1)]));
    all.push((strings, vec![cast_lists.slice(0, 1), cast_lists.slice(1, 1)]));
    all
}

fn shown(array: &ArrayRef) -> Vec<String> {
    let format = CellFormatter::new(array.as_ref(), TimeZone::UTC);
    (0..array.len())
        .map(|row| {
            let mut text = String::new();
            format.write(row, &mut text);
            text
        })
        .collect()
}

fn one_row() -> RecordBatch {
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    RecordBatch::try_new_with_options(Arc::new(arrow::datatypes::Schema::empty()), vec![], &options).expect("a batch")
}

/// One call over columns, checked; `None` if typing refuses it.
fn check(def: &FunctionDef, columns: &[(T, ArrayRef)]) -> Option<()> {
    let types: Vec<ArgType> = columns.iter().map(|(t, _)| ArgType::new(t.clone(), true)).collect();
    let resolved = resolve_scalar(def.name, &types).ok()?;
    let fields = columns.iter().enumerate().map(|(i, (t, _))| Field::new(format!("c{i}"), t.clone(), true)).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(columns.first().map_or(2, |(_, a)| a.len())));
    let arrays = columns.iter().map(|(_, a)| a.clone()).collect();
    let batch = RecordBatch::try_new_with_options(arrow_schema(&Schema::new(fields)), arrays, &options)
        .expect("columns of one length");
    let args = |of: &dyn Fn(usize, &T) -> Expr| {
        columns
            .iter()
            .enumerate()
            .zip(&resolved.arg_types)
            .map(|((i, (t, _)), to)| cast(of(i, t), to.clone()))
            .collect()
    };
    let call = |args: Vec<Expr>| Expr::call(def.name, args, resolved.data_type.clone(), true);
    let by_column = call(args(&|i, t: &T| Expr::column(i as u32, t.clone(), true)));
    let ctx = EvalContext::default();
    let what =
        || format!("{}({})", def.name, types.iter().map(|t| t.data_type.to_string()).collect::<Vec<_>>().join(", "));
    let whole = evaluate(&by_column, &batch, &ctx);
    let rows: Vec<Result<ArrayRef, EvalError>> =
        (0..batch.num_rows()).map(|row| evaluate(&by_column, &batch.slice(row, 1), &ctx)).collect();
    for result in rows.iter().chain([&whole]).flatten() {
        assert_eq!(result.data_type(), &arrow_type(&resolved.data_type), "type of {}", what());
    }
    match &whole {
        Ok(array) => {
            let alone: Vec<String> =
                rows.iter().map(|r| shown(r.as_ref().expect("the batch did not fail")).remove(0)).collect();
            assert_eq!(shown(array), alone, "{} in a batch and alone", what());
        }
        Err(e) => {
            assert_ne!(e.condition, "INTERNAL_ERROR", "{}: {}", what(), e.message);
            assert!(rows.iter().any(Result::is_err), "{} fails in a batch only: {e}", what());
        }
    }
    for (row, result) in rows.iter().enumerate() {
        let null = columns.iter().any(|(_, a)| a.is_null(row));
        if let Ok(array) = result {
            let is_null = shown(array) == ["NULL"];
            match def.nulls {
                NullRule::Strict => assert!(!null || is_null, "{} of a NULL, row {row}", what()),
                NullRule::StrictNullable => assert!(!null || is_null, "{} of a NULL, row {row}", what()),
                NullRule::Never => assert!(array.null_count() == 0, "{} is never NULL, row {row}", what()),
                NullRule::Any => {}
            }
        }
        // The same row as constants, where its values have constant forms.
        let literals: Option<Vec<Literal>> =
            columns.iter().map(|(_, a)| crate::literal_at(a.slice(row, 1).as_ref(), 0)).collect();
        if let Some(literals) = literals {
            let constant = call(args(&|i, t: &T| Expr::literal(literals[i].clone(), t.clone())));
            match (evaluate(&constant, &one_row(), &ctx), result) {
                (Ok(a), Ok(b)) => assert_eq!(shown(&a), shown(b), "{} of constants and columns, row {row}", what()),
                (Err(a), Err(b)) => assert_eq!(a.condition, b.condition, "{} of constants and columns", what()),
                (a, b) => panic!("{} of constants: {a:?}, of columns: {b:?}", what()),
            }
        }
    }
    Some(())
}

#[test]
fn every_scalar_function_keeps_the_laws() {
    let samples = samples();
    let r = &mut StdRng::seed_from_u64(7);
    let defs = catalogue().filter(|d| d.kind == FunctionKind::Scalar && d.deterministic && !d.internal);
    for def in defs {
        for arity in 0..=4usize {
            // All single arguments, and a good many combinations of more.
            let tries = [1, samples.len(), 150, 150, 150][arity];
            for k in 0..tries {
                let columns: Vec<(T, ArrayRef)> = (0..arity)
                    .map(|_| {
                        let pick = if arity == 1 { k } else { r.random_range(0..samples.len()) };
                        let (t, rows) = &samples[pick];
                        let null = arrow::array::new_null_array(&arrow_type(t), 1);
                        // Four rows, one of them NULL, in an order of their own.
                        let mut order = [&rows[0], &rows[1], &null, &rows[0]];
                        let n = order.len();
                        order.rotate_left(r.random_range(0..n));
                        let parts: Vec<&dyn Array> = order.iter().map(|a| a.as_ref()).collect();
                        (t.clone(), arrow::compute::concat(&parts).expect("one type"))
                    })
                    .collect();
                check(def, &columns);
            }
        }
    }
}
