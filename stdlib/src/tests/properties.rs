//! Laws over many values: casts that go out and back, order and equality that agree, aggregates that merge.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Float64Array, Int64Array, StringViewArray, TimestampMicrosecondArray};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use ssql_ir::{CastMode, DataType as T};

use crate::testing::{agg_call, check_aggregate};
use crate::{EvalContext, arrow_type, cast_array, comparator};

const ROWS: usize = 400;

fn rng() -> StdRng {
    StdRng::seed_from_u64(20_240_229)
}

fn integers(r: &mut StdRng) -> Vec<Option<i64>> {
    (0..ROWS)
        .map(|i| match i % 7 {
            0 => None,
            1 => Some(r.random_range(-3..3)),
            2 => Some([i64::MIN, i64::MAX, i32::MAX.into(), i32::MIN.into(), 0][i % 5]),
            _ => Some(r.random::<i64>() >> r.random_range(0..63)),
        })
        .collect()
}

/// Casts through `via` and back; what the first cast can hold must come back the same.
fn round_trip(array: &ArrayRef, t: &T, via: &T) {
    let ctx = EvalContext::default();
    let there = cast_array(array, t, via, CastMode::Try, &ctx).expect("TRY_CAST does not fail");
    let back = cast_array(&there, via, t, CastMode::Ansi, &ctx).expect("it came from there");
    let same = comparator(array.as_ref(), back.as_ref()).expect("one type");
    for row in 0..array.len() {
        assert!(there.is_null(row) || same(row, row).is_eq(), "{t} to {via}, row {row}: {:?}", array.slice(row, 1));
        if *via == T::String {
            assert_eq!(there.is_null(row), array.is_null(row), "every value has a text");
        }
    }
}

#[test]
fn casts_round_trip() {
    let r = &mut rng();
    let longs: ArrayRef = Arc::new(Int64Array::from(integers(r)));
    for via in [T::String, T::Decimal(20, 0), T::Decimal(38, 5), T::Int32, T::Int8] {
        round_trip(&longs, &T::Int64, &via);
    }
    let doubles: ArrayRef = Arc::new(Float64Array::from(
        (0..ROWS).map(|_| (r.random_range(0..9) > 0).then(|| f64::from_bits(r.random()))).collect::<Vec<_>>(),
    ));
    round_trip(&doubles, &T::Float64, &T::String);
    let span = 250_000_000_000_000_000i64;
    let times: Vec<Option<i64>> =
        (0..ROWS).map(|i| (i % 9 > 0).then(|| r.random_range(-62_135_596_800_000_000..span))).collect();
    let times: ArrayRef = Arc::new(TimestampMicrosecondArray::from(times).with_data_type(arrow_type(&T::Timestamp)));
    for via in [T::String, T::TimestampNtz, T::Decimal(20, 6)] {
        round_trip(&times, &T::Timestamp, &via);
    }
    let dates = cast_array(&times, &T::Timestamp, &T::Date, CastMode::Ansi, &EvalContext::default()).expect("a date");
    round_trip(&dates, &T::Date, &T::String);
    round_trip(&dates, &T::Date, &T::Timestamp);
    let scaled =
        cast_array(&longs, &T::Int64, &T::Decimal(30, 8), CastMode::Ansi, &EvalContext::default()).expect("fits");
    for via in [T::String, T::Decimal(38, 10)] {
        round_trip(&scaled, &T::Decimal(30, 8), &via);
    }
}

#[test]
fn aggregates_merge_and_store() {
    let r = &mut rng();
    let n = 40;
    let small: Vec<Option<i64>> = (0..n).map(|i| (i % 6 > 0).then(|| r.random_range(-50..50))).collect();
    let longs: ArrayRef = Arc::new(Int64Array::from(small.clone()));
    // Whole numbers, so that the order of addition does not show.
    let doubles: ArrayRef = Arc::new(Float64Array::from(small.iter().map(|v| v.map(|v| v as f64)).collect::<Vec<_>>()));
    let texts: ArrayRef =
        Arc::new(StringViewArray::from(small.iter().map(|v| v.map(|v| format!("text {v}"))).collect::<Vec<_>>()));
    let decimals =
        cast_array(&longs, &T::Int64, &T::Decimal(12, 2), CastMode::Ansi, &EvalContext::default()).expect("fits");
    for (t, column) in [(T::Int64, longs), (T::Float64, doubles), (T::String, texts), (T::Decimal(12, 2), decimals)] {
        for name in ["count", "sum", "avg", "min", "max", "try_sum", "try_avg"] {
            if t == T::String && !matches!(name, "count" | "min" | "max") {
                continue;
            }
            for distinct in [false, true] {
                let result =
                    check_aggregate(&agg_call(name, std::slice::from_ref(&t), distinct), std::slice::from_ref(&column));
                assert!(!result.starts_with('!'), "{name}({t}): {result}");
            }
        }
    }
}

#[test]
fn the_order_is_total() {
    let r = &mut rng();
    let specials = [f64::NAN, -f64::NAN, 0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY];
    let values: Vec<Option<f64>> = (0..60)
        .map(|i| match i % 4 {
            0 => None,
            1 => Some(specials[i % specials.len()]),
            _ => Some(r.random_range(-2.0..2.0)),
        })
        .collect();
    let a: ArrayRef = Arc::new(Float64Array::from(values));
    let order = comparator(a.as_ref(), a.as_ref()).expect("one type");
    let mut sorted: Vec<usize> = (0..a.len()).collect();
    sorted.sort_by(|i, j| order(*i, *j));
    for (i, x) in sorted.iter().enumerate() {
        for y in &sorted[i..] {
            assert!(order(*x, *y).is_le());
            assert_eq!(order(*x, *y), order(*y, *x).reverse());
        }
    }
}
