//! Nanoseconds per row of two kernels beside the interpreter: a filter with a projection, and an aggregation by a string
//! key. Run with `cargo run --release -p ssql-jit --example kernel_timing`.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch, StringViewArray};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{Float64Type, Int64Type};
use ssql_abi::{ColumnView, GroupTable, KeyKind, MapKernel, RowLayout, hash_columns};
use ssql_ir::{AggArg, AggCall, DataType as T, Expr, Field, Literal, Schema};
use ssql_jit::{compile_aggregate, compile_map};
use ssql_stdlib::{EvalContext, Objects, StateRows, aggregate, evaluate, filter_mask};

const ROWS: usize = 1 << 16;
const GROUPS: usize = 10_000;
const RUNS: u32 = 30;

fn batch() -> RecordBatch {
    // A small multiplicative generator: the same rows in every run.
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        state >> 33
    };
    let a: Int64Array = (0..ROWS).map(|_| Some(next() as i64 % 1000)).collect();
    let b: Int64Array = (0..ROWS).map(|_| Some(next() as i64 % 1000)).collect();
    let x: Float64Array = (0..ROWS).map(|_| Some(next() as f64 / 1e6)).collect();
    let s = StringViewArray::from_iter_values((0..ROWS).map(|_| format!("dev-{}", next() as usize % GROUPS)));
    let columns: [(_, ArrayRef); 4] = [("a", Arc::new(a)), ("b", Arc::new(b)), ("x", Arc::new(x)), ("s", Arc::new(s))];
    RecordBatch::try_from_iter(columns).expect("columns of one length")
}

fn schema() -> Schema {
    let field = |name: &str, t| Field::new(name, t, false);
    Schema::new(vec![field("a", T::Int64), field("b", T::Int64), field("x", T::Float64), field("s", T::String)])
}

fn views(batch: &RecordBatch) -> Vec<ColumnView> {
    let values = [
        batch.column(0).as_primitive::<Int64Type>().values().as_ptr().cast(),
        batch.column(1).as_primitive::<Int64Type>().values().as_ptr().cast(),
        batch.column(2).as_primitive::<Float64Type>().values().as_ptr().cast(),
        batch.column(3).as_string_view().views().as_ptr().cast(),
    ];
    let view = |values| ColumnView {
        values,
        validity: std::ptr::null(),
        // All strings are short.
        buffers: std::ptr::null(),
        values_bit: 0,
        validity_bit: 0,
    };
    values.map(view).to_vec()
}

/// The best of several runs: others share the machine.
fn time(what: &str, mut run: impl FnMut()) {
    let best = (0..RUNS).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed()
    });
    let best = best.min().unwrap_or(Duration::ZERO);
    println!("{what:<58} {:7.2} ns/row", best.as_nanos() as f64 / ROWS as f64);
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (batch, schema, ctx) = (batch(), schema(), EvalContext::default());
    let views = views(&batch);
    let long = |v| Expr::literal(Literal::Int(v), T::Int64);
    let col = |c| Expr::column(c, T::Int64, false);
    let call = |f: &str, a, b, t| Expr::call(f, vec![a, b], t, false);
    let both = |a: Expr, b: Expr| Expr {
        kind: ssql_ir::ExprKind::And(a.into(), b.into()),
        data_type: T::Boolean,
        nullable: false,
        origin: Default::default(),
    };
    // a > 100 AND b < 700 AND a + b < 1200 AND a <> 500 AND x < 1500  ->  a * 3 + b, x * 2.0
    let terms = [
        call(">", col(0), long(100), T::Boolean),
        call("<", col(1), long(700), T::Boolean),
        call("<", call("+", col(0), col(1), T::Int64), long(1200), T::Boolean),
        call("<>", col(0), long(500), T::Boolean),
        call("<", Expr::column(2, T::Float64, false), Expr::literal(Literal::Float(1500.0), T::Float64), T::Boolean),
    ];
    let predicate = terms.into_iter().reduce(both).expect("five terms");
    let two = Expr::literal(Literal::Float(2.0), T::Float64);
    let project = [
        call("+", call("*", col(0), long(3), T::Int64), col(1), T::Int64),
        call("*", Expr::column(2, T::Float64, false), two, T::Float64),
    ];
    let start = Instant::now();
    let kernel = compile_map(Some(&predicate), &project, &schema)?.expect("supported");
    println!("compiled in {:?}", start.elapsed());
    time("filter of 5 terms + 2 columns, kernel", || {
        // SAFETY: the views are of the batch and in the order of the schema.
        black_box(unsafe { kernel.run(&views, ROWS) }.expect("runs"));
    });
    time("filter of 5 terms + 2 columns, interpreter", || {
        let mask = filter_mask(&predicate, &batch, &ctx).expect("runs");
        let kept = filter_record_batch(&batch, &mask).expect("filters");
        for e in &project {
            black_box(evaluate(e, &kept, &ctx).expect("runs"));
        }
    });

    let calls: Vec<AggCall> =
        [("count", 0, T::Int64), ("sum", 0, T::Int64), ("avg", 2, T::Float64), ("max", 1, T::Int64)]
            .into_iter()
            .map(|(f, c, t)| AggCall {
                function: f.into(),
                args: if f == "count" { vec![] } else { vec![AggArg::Column(c)] },
                arg_types: if f == "count" { vec![] } else { vec![t.clone()] },
                filter: None,
                distinct: false,
                ignore_nulls: false,
                order: vec![],
                data_type: t,
                nullable: true,
            })
            .collect();
    let layout = RowLayout::new(&[16], &[8, 16, 16, 16]);
    let start = Instant::now();
    let kernel = compile_aggregate(&[3], &calls, &schema, &layout)?.expect("supported");
    println!("compiled in {:?}", start.elapsed());
    let (keys, kinds) = ([views[3]], vec![KeyKind::Bytes]);
    let mut hashes = Vec::new();
    time("hash of the string key", || {
        // SAFETY: the view is of the batch and of this kind.
        unsafe { hash_columns(&keys, &kinds, ROWS, &mut hashes) };
    });
    let mut table = GroupTable::new(layout.clone(), kinds.clone());
    time("count, sum, avg, max over 10k string keys, kernel", || {
        // SAFETY: as above; the kernel was compiled for this layout.
        unsafe { table.run(&*kernel, &views, &[3], &hashes, None) }.expect("runs");
    });
    let mut table = GroupTable::new(layout.clone(), kinds);
    let mut objects = Objects::new();
    let bound: Vec<_> = calls.iter().map(|c| aggregate(c).expect("binds")).collect();
    let mut groups = vec![0; ROWS];
    time("count, sum, avg, max over 10k string keys, interpreter", || {
        // SAFETY: as above.
        unsafe { table.find_or_insert(&keys, &hashes, 0..ROWS, &mut groups) };
        for (i, (agg, call)) in bound.iter().zip(&calls).enumerate() {
            let offset = table.layout().agg_offsets[i];
            let (bytes, row_size) = table.bytes_mut();
            let mut rows = StateRows { bytes, row_size, offset, objects: &mut objects };
            let args: Vec<ArrayRef> = call
                .args
                .iter()
                .filter_map(|a| match a {
                    AggArg::Column(c) => Some(batch.column(*c as usize).clone()),
                    AggArg::Literal(..) => None,
                })
                .collect();
            agg.update(&mut rows, &groups, &args).expect("runs");
        }
    });
    Ok(())
}
