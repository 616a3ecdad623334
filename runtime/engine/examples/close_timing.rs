//! What it costs to close one small window, or to expire few keys of a deduplication, among ten million that stay:
//! `cargo run --release -p ssql-engine --example close_timing [GROUPS]`.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Instant;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, TimestampMicrosecondArray};
use ssql_engine::Kernels;
use ssql_engine::operators::aggregate::{AggregateState, Aggregation};
use ssql_engine::operators::dedup::Dedup;
use ssql_engine::watermark::BatchWatermark;
use ssql_ir::{AggCall, CloseRule, DataType, EmitMode, Field, Schema, Symbol};

const MINUTE: i64 = 60_000_000;
/// Groups of a window that is closed.
const SMALL: usize = 1000;
const BATCH: usize = 1 << 16;

fn schema() -> Schema {
    Schema::new(vec![Field::new("w", DataType::Timestamp, false), Field::new("k", DataType::Int64, false)])
}

/// Rows of one time with keys of their own.
fn rows(time: i64, keys: std::ops::Range<i64>) -> RecordBatch {
    let n = (keys.end - keys.start) as usize;
    let times = TimestampMicrosecondArray::from(vec![time; n]).with_timezone("UTC");
    let columns: Vec<ArrayRef> = vec![Arc::new(times), Arc::new(Int64Array::from_iter_values(keys))];
    RecordBatch::try_new(ssql_stdlib::arrow_schema(&schema()), columns).unwrap()
}

fn batches(time: i64, groups: usize) -> impl Iterator<Item = RecordBatch> {
    (0..groups).step_by(BATCH).map(move |at| rows(time, at as i64..(at + BATCH).min(groups) as i64))
}

/// Milliseconds to close each of ten windows of [`SMALL`] groups while a later one of that many stays.
fn aggregation(open: usize) -> Vec<f64> {
    let count = AggCall {
        function: Symbol::from("count"),
        args: vec![],
        arg_types: vec![],
        filter: None,
        distinct: false,
        ignore_nulls: false,
        order: vec![],
        data_type: DataType::Int64,
        nullable: false,
    };
    let mut output = schema();
    output.fields.push(Field::new("n", DataType::Int64, false));
    let spec = Arc::new(Aggregation::new(&[0, 1], &[count], &schema(), &output, &Kernels::interpreter()).unwrap());
    let close = CloseRule { column: 0, add_micros: MINUTE };
    let mut state = AggregateState::new(Arc::clone(&spec), Some(&close), EmitMode::Append, 2).unwrap();
    let add = |state: &mut AggregateState, batch: RecordBatch| {
        let mut groups = spec.groups();
        spec.accumulate(&mut groups, &batch).unwrap();
        state.merge(vec![groups]).unwrap();
    };
    batches(100 * MINUTE, open).for_each(|batch| add(&mut state, batch));
    (0..10).for_each(|window| add(&mut state, rows(window * MINUTE, 0..SMALL as i64)));
    state.finish(BatchWatermark::default(), None).unwrap();
    let close = |window: i64| {
        let began = Instant::now();
        let closed =
            state.finish(BatchWatermark { late: window * MINUTE, evict: (window + 1) * MINUTE }, None).unwrap();
        let took = began.elapsed().as_secs_f64() * 1000.0;
        assert_eq!(closed.iter().map(RecordBatch::num_rows).sum::<usize>(), SMALL);
        took
    };
    (0..10).map(close).collect()
}

/// Milliseconds to expire [`SMALL`] keys, ten times, while that many stay.
fn dedup(open: usize) -> Vec<f64> {
    let rule = CloseRule { column: 0, add_micros: MINUTE };
    let mut state = Dedup::new(&[1], Some(&rule), true, &schema()).unwrap();
    batches(100 * MINUTE, open).for_each(|batch| {
        state.apply(&[batch]).unwrap();
    });
    for minute in 0..10 {
        let from = open as i64 + minute * SMALL as i64;
        state.apply(&[rows(minute * MINUTE, from..from + SMALL as i64)]).unwrap();
    }
    state.finish(0, None).unwrap();
    let expire = |minute: i64| {
        let began = Instant::now();
        state.finish((minute + 1) * MINUTE, None).unwrap();
        let took = began.elapsed().as_secs_f64() * 1000.0;
        assert_eq!(state.metrics().2, SMALL as u64);
        took
    };
    (0..10).map(expire).collect()
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    let most: usize = std::env::args().nth(1).map_or(10_000_000, |n| n.parse().unwrap());
    for open in [most / 1000, most] {
        println!(
            "{open} open: a window of {SMALL} groups closes in {:.3} ms; {SMALL} keys WITHIN WATERMARK expire in {:.3} ms",
            median(aggregation(open)),
            median(dedup(open))
        );
    }
}
