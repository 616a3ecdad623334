//! Hopping windows by slices against the same rows expanded into their windows: equal batch by batch, in every mode, for
//! random rows (late ones, partly late ones, times before 1970, NULLs), and across restarts.
#![allow(clippy::unwrap_used, missing_docs)]

mod harness;

use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch, StringViewArray, TimestampMicrosecondArray};
use harness::{Delivered, SECOND, input_schema};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use ssql_engine::connector::ReadLimit;
use ssql_engine::query::Advance;
use ssql_ir::parse::parse;
use ssql_ir::{EmitMode, Pipeline};

/// A hopping window and how it is emitted.
#[derive(Debug, Clone, Copy)]
struct Case {
    size: i64,
    slide: i64,
    offset: i64,
    mode: EmitMode,
    watermark: bool,
}

const AGGS: &str = "count():BIGINT, sum(#V:BIGINT):BIGINT?, min(#V:BIGINT):BIGINT?, count[distinct](#V:BIGINT):BIGINT";
const RESULT: &str = "(window_start TIMESTAMP, k STRING?, n BIGINT, total BIGINT?, least BIGINT?, different BIGINT)";

/// Source, watermark, rows with a time; then `window` over `%2`; then the sink.
fn pipeline(case: Case, window: &str) -> Pipeline {
    let Case { mode, watermark, .. } = case;
    let schema = "(ts TIMESTAMP?, k STRING?, v BIGINT?) append";
    let first = match watermark {
        true => format!("watermark %0 [on=#0, delay=20s] : {schema} wm=(#0)"),
        false => format!("map %0 [project=(#0, #1, #2)] : {schema}"),
    };
    let change = match mode {
        EmitMode::Append => "append",
        EmitMode::Update => "upsert",
        EmitMode::Complete => "replace",
    };
    let text = format!(
        "pipeline @q [mode={mode}] {{
  %0 = source @s [streaming, columns=(#0, #1, #2)] : {schema}
  %1 = {first}
  %2 = map %1 [where=isnotnull(#0):BOOLEAN, project=(#0, #1, #2)] : {schema}
{window} : {RESULT} {change}
  %6 = sink %5 @out : {RESULT} {change}
}}
"
    );
    parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn late_filter(case: Case, column: u32, schema: &str) -> String {
    match case.watermark && case.mode != EmitMode::Complete {
        true => format!("  %4 = drop_late %3 [on=#{column}+{}us] : {schema} append", case.size),
        false => format!("  %4 = map %3 [project=(#0, #1, #2, #3)] : {schema} append"),
    }
}

fn expanded(case: Case) -> Pipeline {
    let Case { size, slide, offset, mode, .. } = case;
    let schema = "(ts TIMESTAMP?, k STRING?, v BIGINT?, w TIMESTAMP)";
    let late = late_filter(case, 3, schema);
    let close = if late.contains("drop_late") { format!(" close=#3+{size}us,") } else { String::new() };
    let aggs = AGGS.replace("#V", "#2");
    pipeline(
        case,
        &format!(
            "  %3 = assign_windows %2 [on=#0, size={size}us, slide={slide}us, offset={offset}us] : {schema} append
{late}
  %5 = aggregate %4 [keys=(#3, #1), aggs=({aggs}),{close} emit={mode}]"
        ),
    )
}

fn sliced(case: Case) -> Pipeline {
    let Case { size, slide, offset, mode, .. } = case;
    let schema = "(k STRING?, v BIGINT?, last TIMESTAMP?, slice TIMESTAMP?)";
    let late = late_filter(case, 2, schema);
    let close = if late.contains("drop_late") { " close," } else { "" };
    let aggs = AGGS.replace("#V", "#1");
    let start = |offset: i64| format!("window_start(#0, {slide}:BIGINT, {offset}:BIGINT):TIMESTAMP?");
    let slice = format!("greatest({}, {}):TIMESTAMP?", start(offset), start(offset + size % slide));
    pipeline(
        case,
        &format!(
            "  %3 = map %2 [project=(#1, #2, {}, {slice})] : {schema} append
{late}
  %5 = hop_aggregate %4 [slice=#3, size={size}us, slide={slide}us, offset={offset}us, keys=(#0), aggs=({aggs}),{close} emit={mode}]",
            start(offset)
        ),
    )
}

/// Batches whose times move on, with stragglers.
fn random_batches(rng: &mut StdRng) -> Vec<RecordBatch> {
    let mut now = rng.random_range(-150..50);
    let batch = |rng: &mut StdRng, now: i64| {
        let n = rng.random_range(0..30);
        let ts: Vec<Option<i64>> = (0..n)
            .map(|_| rng.random_bool(0.95).then(|| now * SECOND + rng.random_range(-60 * SECOND..10 * SECOND)))
            .collect();
        let keys: Vec<Option<String>> = (0..n)
            .map(|_| match rng.random_range(0..6) {
                0 => None,
                1 => Some("a key that is longer than twelve bytes".to_owned()),
                k => Some(format!("k{k}")),
            })
            .collect();
        let values: Vec<Option<i64>> = (0..n).map(|_| rng.random_bool(0.9).then(|| rng.random_range(-5..5))).collect();
        let ts = TimestampMicrosecondArray::from(ts).with_timezone("UTC");
        let columns: Vec<arrow::array::ArrayRef> =
            vec![Arc::new(ts), Arc::new(StringViewArray::from_iter(keys)), Arc::new(Int64Array::from(values))];
        RecordBatch::try_new(ssql_stdlib::arrow_schema(&input_schema()), columns).unwrap()
    };
    (0..rng.random_range(1..7))
        .map(|_| {
            now += rng.random_range(0..50);
            batch(rng, now)
        })
        .collect()
}

fn run(pipeline: Pipeline, batches: &[RecordBatch]) -> Delivered {
    let out = Delivered::default();
    let mut runner = harness::start(pipeline, batches.to_vec(), None, &out);
    while let Advance::Ran(_) = runner.run_next(ReadLimit::Options).unwrap() {}
    out
}

#[test]
fn slices_give_what_expansion_gives() {
    let mut rows = 0;
    for seed in 0..90 {
        let rng = &mut StdRng::seed_from_u64(seed);
        let slide = rng.random_range(1..20) * SECOND;
        let case = Case {
            size: slide + rng.random_range(0..60) * SECOND / 2,
            slide,
            offset: rng.random_range(-20..20) * SECOND / 2,
            mode: [EmitMode::Append, EmitMode::Update, EmitMode::Complete][seed as usize % 3],
            watermark: seed % 3 == 0 || rng.random_bool(0.7),
        };
        let batches = random_batches(rng);
        let (expected, actual) = (run(expanded(case), &batches), run(sliced(case), &batches));
        assert_eq!(*expected.lock().unwrap(), *actual.lock().unwrap(), "seed {seed}: {case:?}");
        rows += expected.lock().unwrap().values().map(Vec::len).sum::<usize>();
        if seed % 4 != 0 {
            continue;
        }
        let dir = tempfile::tempdir().unwrap();
        let pieces = Delivered::default();
        loop {
            let mut runner = harness::start(sliced(case), batches.clone(), Some(dir.path()), &pieces);
            if runner.run_next(ReadLimit::Options).unwrap() == Advance::Idle {
                break;
            }
        }
        assert_eq!(*expected.lock().unwrap(), *pieces.lock().unwrap(), "seed {seed}, restarted: {case:?}");
    }
    assert!(rows > 1000, "the cases must show something: {rows} rows");
}
