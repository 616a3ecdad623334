//! A windowed aggregation through the whole batch protocol, with a source and a sink made of vectors: what each
//! micro-batch emits, and that a restart between any two batches, or in the middle of one, changes nothing.
#![allow(clippy::unwrap_used, missing_docs)]

mod harness;

use std::path::Path;

use harness::{Delivered, Row, SECOND, input_schema};
use ssql_engine::connector::ReadLimit;
use ssql_engine::query::{Advance, Runner};
use ssql_ir::*;

/// `SELECT window_start, k, sum(v), count(*) ... WATERMARK ts DELAY 5 s GROUP BY TUMBLE(ts, 10 s), k`.
fn pipeline(mode: EmitMode) -> Pipeline {
    let input = input_schema();
    let ts = || Expr::column(0, DataType::Timestamp, true);
    let micros = |n: i64| Expr::literal(Literal::Int(n), DataType::Int64);
    let start = Expr::call("window_start", vec![ts(), micros(10 * SECOND), micros(0)], DataType::Timestamp, true);
    let mapped = Schema::new(vec![
        Field::new("window_start", DataType::Timestamp, true),
        Field::new("k", DataType::String, true),
        Field::new("v", DataType::Int64, true),
    ]);
    let call = |function: &str, args: Vec<AggArg>, arg_types: Vec<DataType>, nullable| AggCall {
        function: Symbol::from(function),
        args,
        arg_types,
        filter: None,
        distinct: false,
        ignore_nulls: false,
        order: vec![],
        data_type: DataType::Int64,
        nullable,
    };
    let close = CloseRule { column: 0, add_micros: 10 * SECOND };
    let output = Schema::new(vec![
        mapped.fields[0].clone(),
        mapped.fields[1].clone(),
        Field::new("total", DataType::Int64, true),
        Field::new("n", DataType::Int64, false),
    ]);
    let node = |op, inputs: &[u32], schema: &Schema, event_time: Vec<u32>| Node {
        op,
        inputs: inputs.iter().map(|&i| NodeId(i)).collect(),
        schema: schema.clone(),
        event_time,
        change: ChangeKind::Append,
    };
    let nodes = vec![
        node(Op::Source { relation: "s".into(), streaming: true, columns: vec![0, 1, 2] }, &[], &input, vec![]),
        node(
            Op::Watermark { column: 0, delay: Delay { micros: 5 * SECOND }, idle_after: None, max_skew: None },
            &[0],
            &input,
            vec![0],
        ),
        node(
            Op::Map {
                predicate: None,
                project: vec![start, Expr::column(1, DataType::String, true), Expr::column(2, DataType::Int64, true)],
            },
            &[1],
            &mapped,
            vec![0],
        ),
        node(Op::DropLate { rule: close }, &[2], &mapped, vec![0]),
        node(
            Op::Aggregate {
                keys: vec![0, 1],
                aggs: vec![
                    call("sum", vec![AggArg::Column(2)], vec![DataType::Int64], true),
                    call("count", vec![], vec![], false),
                ],
                close: Some(close),
                emit: mode,
            },
            &[3],
            &output,
            vec![0],
        ),
        node(Op::Sink { relation: "out".into() }, &[4], &output, vec![0]),
    ];
    Pipeline { name: "q".into(), nodes, mode, subqueries: vec![] }
}

fn start(mode: EmitMode, batches: &[&[Row]], checkpoint: Option<&Path>, out: &Delivered) -> Runner {
    harness::start(pipeline(mode), batches.iter().map(|b| harness::rows(b)).collect(), checkpoint, out)
}

const BATCHES: &[&[Row]] = &[
    &[(1, "a", 1), (9, "a", 2), (11, "b", 4)],
    &[(16, "a", 8), (2, "a", 16)],
    &[(27, "b", 64)],
    &[(3, "late", 32), (60, "c", 128)],
];

/// Windows that are closed at the end, in the order in which they come out.
const CLOSED: &[&str] = &[
    "1970-01-01 00:00:00 a 19 3",
    "1970-01-01 00:00:10 a 8 1",
    "1970-01-01 00:00:10 b 4 1",
    "1970-01-01 00:00:20 b 64 1",
];

fn all(out: &Delivered) -> Vec<String> {
    out.lock().unwrap().values().flatten().cloned().collect()
}

#[test]
fn append_emits_each_window_once_when_it_closes() {
    let out = Delivered::default();
    let mut runner = start(EmitMode::Append, BATCHES, None, &out);
    let mut late = 0;
    while let Advance::Ran(progress) = runner.run_next(ReadLimit::Options).unwrap() {
        late += progress.state_operators[0].num_rows_dropped_by_watermark;
    }
    assert_eq!(all(&out), CLOSED);
    assert_eq!(late, 1);
}

#[test]
fn complete_emits_the_whole_table_and_update_what_changed() {
    let out = Delivered::default();
    let mut runner = start(EmitMode::Complete, BATCHES, None, &out);
    while let Advance::Ran(_) = runner.run_next(ReadLimit::Options).unwrap() {}
    assert_eq!(out.lock().unwrap().values().last().unwrap().len(), 5);

    let out = Delivered::default();
    let mut runner = start(EmitMode::Update, BATCHES, None, &out);
    while let Advance::Ran(_) = runner.run_next(ReadLimit::Options).unwrap() {}
    let batches: Vec<Vec<String>> = out.lock().unwrap().values().filter(|b| !b.is_empty()).cloned().collect();
    assert_eq!(batches[0], ["1970-01-01 00:00:00 a 3 2", "1970-01-01 00:00:10 b 4 1"]);
    assert_eq!(batches[1], ["1970-01-01 00:00:00 a 19 3", "1970-01-01 00:00:10 a 8 1"]);
}

/// Restarting after every batch gives, batch by batch, what an uninterrupted run gives.
#[test]
fn a_restart_between_any_two_batches_changes_nothing() {
    for mode in [EmitMode::Append, EmitMode::Update, EmitMode::Complete] {
        let whole = Delivered::default();
        let mut runner = start(mode, BATCHES, None, &whole);
        while let Advance::Ran(_) = runner.run_next(ReadLimit::Options).unwrap() {}

        let dir = tempfile::tempdir().unwrap();
        let pieces = Delivered::default();
        loop {
            let mut runner = start(mode, BATCHES, Some(dir.path()), &pieces);
            if runner.run_next(ReadLimit::Options).unwrap() == Advance::Idle {
                break;
            }
        }
        assert_eq!(*whole.lock().unwrap(), *pieces.lock().unwrap(), "{mode:?}");
    }
}
