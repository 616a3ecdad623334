//! Sessions against a naive merge, over random rows, orders, splits and restarts.

use arrow::array::{Int64Array, StringViewArray};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use ssql_ir::{AggArg, DataType, Field, Symbol};

use super::*;

type Row = (Option<i64>, Option<i64>, Option<&'static str>, i64);

fn schema() -> Schema {
    Schema::new(vec![
        Field::new("ts", DataType::Timestamp, true),
        Field::new("until", DataType::Timestamp, true),
        Field::new("k", DataType::String, true),
        Field::new("v", DataType::Int64, true),
    ])
}

fn batch(rows: &[Row]) -> RecordBatch {
    let times = |f: fn(&Row) -> Option<i64>| -> ArrayRef {
        Arc::new(rows.iter().map(f).collect::<TimestampMicrosecondArray>().with_timezone("UTC"))
    };
    let columns: Vec<ArrayRef> = vec![
        times(|r| r.0),
        times(|r| r.1),
        Arc::new(rows.iter().map(|r| r.2).collect::<StringViewArray>()),
        Arc::new(rows.iter().map(|r| Some(r.3)).collect::<Int64Array>()),
    ];
    let schema = arrow_schema(&schema());
    // The session's zone is part of the type; take whatever the standard library gives to TIMESTAMP.
    let columns = columns.into_iter().zip(schema.fields()).map(|(c, f)| arrow::compute::cast(&c, f.data_type()));
    RecordBatch::try_new(Arc::clone(&schema), columns.collect::<Result<_, _>>().unwrap()).unwrap()
}

fn call(function: &str, args: &[(u32, DataType)], data_type: DataType) -> AggCall {
    AggCall {
        function: Symbol::from(function),
        args: args.iter().map(|(c, _)| AggArg::Column(*c)).collect(),
        arg_types: args.iter().map(|(_, t)| t.clone()).collect(),
        filter: None,
        distinct: false,
        ignore_nulls: false,
        order: vec![],
        data_type,
        nullable: true,
    }
}

/// Count, sum, and a maximum that is kept as an object.
fn operator(emit: EmitMode) -> SessionState {
    let calls = [
        call("count", &[], DataType::Int64),
        call("sum", &[(3, DataType::Int64)], DataType::Int64),
        call("max", &[(2, DataType::String)], DataType::String),
    ];
    let output = Schema::new(vec![
        Field::new("start", DataType::Timestamp, false),
        Field::new("end", DataType::Timestamp, false),
        Field::new("k", DataType::String, true),
        Field::new("n", DataType::Int64, true),
        Field::new("total", DataType::Int64, true),
        Field::new("top", DataType::String, true),
    ]);
    SessionState::new(0, 1, &[2], &calls, emit == EmitMode::Append, emit, &schema(), &output).unwrap()
}

/// Rows as text; times as numbers.
fn lines(batches: &[RecordBatch]) -> Vec<String> {
    let mut lines = Vec::new();
    for batch in batches {
        let columns: Vec<ArrayRef> = batch
            .columns()
            .iter()
            .enumerate()
            .map(|(i, c)| {
                if i < 2 { arrow::compute::cast(c, &arrow::datatypes::DataType::Int64).unwrap() } else { Arc::clone(c) }
            })
            .collect();
        let options = FormatOptions::new().with_null("NULL");
        let cells: Vec<_> = columns.iter().map(|c| ArrayFormatter::try_new(c.as_ref(), &options).unwrap()).collect();
        for row in 0..batch.num_rows() {
            lines.push(cells.iter().map(|c| c.value(row).to_string()).collect::<Vec<_>>().join(" "));
        }
    }
    lines
}

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort();
    lines
}

fn at(watermark: i64) -> BatchWatermark {
    BatchWatermark { late: watermark, evict: watermark }
}

/// A small generator of numbers, so that a failure can be had again.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn rows(&mut self, n: usize, from: i64, to: i64) -> Vec<Row> {
        let keys = [Some("a"), Some("b"), Some("a key that is longer than a view holds"), None];
        (0..n)
            .map(|_| {
                let start = from + self.below((to - from) as u64) as i64;
                let gap = self.below(6) as i64;
                let start = (self.below(20) > 0).then_some(start);
                (start, start.map(|s| s + gap), keys[self.below(4) as usize], self.below(100) as i64)
            })
            .collect()
    }
}

/// Sessions by the definition: merge until nothing touches.
fn naive(rows: &[Row]) -> Vec<String> {
    type Naive = (i64, i64, Option<&'static str>, i64, i64);
    let mut sessions: Vec<Naive> =
        rows.iter().filter_map(|r| Some((r.0?, r.1?, r.2, 1, r.3)).filter(|s: &Naive| s.1 > s.0)).collect();
    while let Some((i, j)) =
        (0..sessions.len()).flat_map(|i| (i + 1..sessions.len()).map(move |j| (i, j))).find(|&(i, j)| {
            let (a, b) = (&sessions[i], &sessions[j]);
            a.2 == b.2 && a.0 <= b.1 && b.0 <= a.1
        })
    {
        let b = sessions.swap_remove(j);
        let a = &mut sessions[i];
        *a = (a.0.min(b.0), a.1.max(b.1), a.2, a.3 + b.3, a.4 + b.4);
    }
    sorted(
        sessions
            .iter()
            .map(|s| {
                let key = s.2.unwrap_or("NULL");
                format!("{} {} {key} {} {} {key}", s.0, s.1, s.3, s.4)
            })
            .collect(),
    )
}

#[test]
fn a_row_at_the_end_joins_and_a_microsecond_later_does_not() {
    let mut state = operator(EmitMode::Complete);
    let rows = [
        (Some(10), Some(15), Some("u1"), 1),
        (Some(15), Some(20), Some("u1"), 2),
        (Some(10), Some(15), Some("u2"), 4),
        (Some(16), Some(21), Some("u2"), 8),
        (None, None, Some("u3"), 16),
        (Some(5), None, Some("u3"), 16),
        (Some(5), Some(5), Some("u3"), 16),
        (Some(5), Some(4), Some("u3"), 16),
    ];
    state.apply(&[batch(&rows)]).unwrap();
    let out = state.finish(at(0), None).unwrap();
    assert_eq!(sorted(lines(&out)), ["10 15 u2 1 4 u2", "10 20 u1 2 3 u1", "16 21 u2 1 8 u2"]);
    assert_eq!(state.metrics().0, 3);
}

#[test]
fn a_row_that_fills_the_hole_joins_kept_sessions() {
    let mut state = operator(EmitMode::Complete);
    state.apply(&[batch(&[(Some(0), Some(10), Some("a"), 1), (Some(18), Some(28), Some("a"), 2)])]).unwrap();
    assert_eq!(lines(&state.finish(at(0), None).unwrap()).len(), 2);
    state.apply(&[batch(&[(Some(9), Some(19), Some("a"), 4)])]).unwrap();
    assert_eq!(lines(&state.finish(at(0), None).unwrap()), ["0 28 a 3 7 a"]);
    // Backwards, beyond the start.
    state.apply(&[batch(&[(Some(-5), Some(0), Some("a"), 8)])]).unwrap();
    assert_eq!(lines(&state.finish(at(0), None).unwrap()), ["-5 28 a 4 15 a"]);
    assert_eq!(state.metrics().0, 1);
}

#[test]
fn a_session_is_emitted_once_the_watermark_reaches_its_end() {
    let mut state = operator(EmitMode::Append);
    state.apply(&[batch(&[(Some(10), Some(15), Some("a"), 1), (Some(15), Some(20), Some("a"), 2)])]).unwrap();
    assert!(state.finish(at(19), None).unwrap().is_empty());
    assert_eq!(lines(&state.finish(at(20), None).unwrap()), ["10 20 a 2 3 a"]);
    let (rows, updated, removed, _) = state.metrics();
    assert_eq!((rows, updated, removed), (0, 0, 1));
    assert!(state.key_ids.is_empty());
    // The key begins anew.
    state.apply(&[batch(&[(Some(20), Some(25), Some("a"), 4)])]).unwrap();
    assert_eq!(lines(&state.finish(at(25), None).unwrap()), ["20 25 a 1 4 a"]);
}

#[test]
fn order_and_splits_do_not_matter() {
    for seed in 0..40 {
        let mut random = Random(seed);
        let mut rows = random.rows(120, -100, 100);
        let expected = naive(&rows);
        for _ in 0..4 {
            for i in (1..rows.len()).rev() {
                rows.swap(i, random.below(i as u64 + 1) as usize);
            }
            let mut state = operator(EmitMode::Complete);
            let mut out = Vec::new();
            let mut rest = rows.as_slice();
            while !rest.is_empty() {
                let (now, later) = rest.split_at(random.below(rest.len() as u64 + 1) as usize);
                rest = later;
                let (one, other) = now.split_at(random.below(now.len() as u64 + 1) as usize);
                state.apply(&[batch(one), batch(other)]).unwrap();
                out = state.finish(at(0), None).unwrap();
            }
            assert_eq!(sorted(lines(&out)), expected, "seed {seed}");
            assert_eq!(state.metrics().0 as usize, expected.len());
        }
    }
}

#[test]
fn a_restart_changes_nothing() {
    for seed in 0..30 {
        for emit in [EmitMode::Append, EmitMode::Complete] {
            let mut random = Random(seed);
            let mut state = operator(emit);
            let mut log: Vec<Vec<u8>> = vec![operator(emit).snapshot(0)];
            let mut watermark = -20;
            for round in 0..12 {
                // Before each batch: a fresh operator that takes up the log does what the old one does.
                let mut other = operator(emit);
                log.iter().for_each(|bytes| other.restore(bytes).unwrap());
                assert_eq!(other.metrics().0, state.metrics().0, "seed {seed} round {round}");
                if random.below(4) == 0 {
                    log = vec![state.snapshot(watermark)];
                }
                let n = random.below(25) as usize;
                let rows = random.rows(n, watermark.max(-10) - 4, watermark + 40);
                let rows: Vec<Row> = rows.into_iter().filter(|r| r.1.is_none_or(|end| end > watermark)).collect();
                watermark += random.below(15) as i64;
                let mut delta = Vec::new();
                state.apply(&[batch(&rows)]).unwrap();
                let out = lines(&state.finish(at(watermark), Some(&mut delta)).unwrap());
                other.apply(&[batch(&rows)]).unwrap();
                let again = lines(&other.finish(at(watermark), None).unwrap());
                if emit == EmitMode::Append {
                    assert_eq!(out, again, "seed {seed} round {round}");
                }
                assert_eq!(sorted(out), sorted(again), "seed {seed} round {round}");
                log.push(delta);
            }
        }
    }
}

#[test]
fn cut_off_state_is_refused() {
    let mut state = operator(EmitMode::Append);
    state.apply(&[batch(&[(Some(10), Some(15), Some("a"), 1)])]).unwrap();
    state.finish(at(0), None).unwrap();
    let bytes = state.snapshot(0);
    for cut in (0..8).chain(9..bytes.len()) {
        let error = operator(EmitMode::Append).restore(&bytes[..cut]).unwrap_err();
        assert_eq!(error.condition, "CHECKPOINT_CORRUPT", "{cut}");
    }
}
