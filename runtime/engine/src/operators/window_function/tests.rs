//! Spark's answers for ranks, offsets and frames; frames that follow one another against frames computed alone.

use arrow::array::{Int32Array, Int64Array, StringViewArray, TimestampMicrosecondArray};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use ssql_ir::{Field, Symbol};

use super::*;

const UNBOUNDED: FrameBound = FrameBound::Unbounded;
const CURRENT: FrameBound = FrameBound::CurrentRow;

fn preceding(n: i64) -> FrameBound {
    FrameBound::Preceding(Literal::Int(n))
}

fn following(n: i64) -> FrameBound {
    FrameBound::Following(Literal::Int(n))
}

fn rows_frame(start: FrameBound, end: FrameBound) -> Frame {
    Frame { rows: true, start, end }
}

fn range_frame(start: FrameBound, end: FrameBound) -> Frame {
    Frame { rows: false, start, end }
}

fn call(function: &str, args: Vec<AggArg>, data_type: DataType) -> AggCall {
    let arg_types = args.iter().map(|a| match a {
        AggArg::Column(_) => DataType::Int32,
        AggArg::Literal(_, t) => t.clone(),
    });
    AggCall {
        function: Symbol::from(function),
        arg_types: arg_types.collect(),
        args,
        filter: None,
        distinct: false,
        ignore_nulls: false,
        order: vec![],
        data_type,
        nullable: true,
    }
}

fn int(n: i64) -> AggArg {
    AggArg::Literal(Literal::Int(n), DataType::Int32)
}

fn ascending(column: u32) -> SortKey {
    SortKey { column, descending: false, nulls_first: true }
}

fn descending(column: u32) -> SortKey {
    SortKey { column, descending: true, nulls_first: false }
}

/// Runs one call and gives `(columns) result` of each row, sorted.
fn run(input: &RecordBatch, partition: &[u32], order: &[SortKey], call: AggCall, frame: Frame) -> Vec<String> {
    let schema = input.schema();
    let fields = schema
        .fields()
        .iter()
        .map(|f| Field::new(f.name().clone(), ssql_stdlib::ir_type(f.data_type()).unwrap(), true));
    let input_schema = Schema::new(fields.collect());
    let mut output = input_schema.clone();
    output.fields.push(Field::new("result", call.data_type.clone(), true));
    let calls = [WindowCall { call, frame }];
    let functions = WindowFunctions::new(partition, order, &calls, &input_schema, &output).unwrap();
    // In two batches, which must not show.
    let half = input.num_rows() / 2;
    let batches = [input.slice(0, half), input.slice(half, input.num_rows() - half)];
    let out = functions.apply(&batches).unwrap().remove(0);
    let options = FormatOptions::new().with_null("NULL");
    let cells: Vec<_> = [out.num_columns() - 2, out.num_columns() - 1]
        .iter()
        .map(|&c| ArrayFormatter::try_new(out.column(c).as_ref(), &options).unwrap())
        .collect();
    let mut lines: Vec<String> =
        (0..out.num_rows()).map(|row| format!("{} {}", cells[0].value(row), cells[1].value(row))).collect();
    lines.sort_by_key(|l| l.split(' ').next().and_then(|v| v.parse::<i64>().ok()));
    lines
}

/// Columns: event time, n, v (all different).
fn events() -> RecordBatch {
    let minute = 60_000_000;
    let times =
        TimestampMicrosecondArray::from(vec![Some(0), Some(5 * minute), Some(5 * minute), Some(20 * minute), None]);
    let schema = arrow_schema(&Schema::new(vec![
        Field::new("ts", DataType::Timestamp, true),
        Field::new("n", DataType::Int32, true),
        Field::new("v", DataType::Int32, true),
    ]));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(times.with_data_type(schema.field(0).data_type().clone())),
        Arc::new(Int32Array::from(vec![Some(1), Some(2), Some(2), Some(5), None])),
        Arc::new(Int32Array::from(vec![1, 2, 4, 8, 16])),
    ];
    RecordBatch::try_new(schema, columns).unwrap()
}

fn sum_v() -> AggCall {
    call("sum", vec![AggArg::Column(2)], DataType::Int64)
}

fn count() -> AggCall {
    call("count", vec![], DataType::Int64)
}

#[test]
fn default_frames() {
    let peers = range_frame(UNBOUNDED, CURRENT);
    let whole = rows_frame(UNBOUNDED, UNBOUNDED);
    let ev = events();
    assert_eq!(run(&ev, &[], &[ascending(0)], sum_v(), peers.clone()), ["1 17", "2 23", "4 23", "8 31", "16 16"]);
    assert_eq!(run(&ev, &[], &[], sum_v(), whole), ["1 31", "2 31", "4 31", "8 31", "16 31"]);
    assert_eq!(run(&ev, &[], &[descending(0)], count(), peers), ["1 4", "2 3", "4 3", "8 1", "16 5"]);
}

#[test]
fn rows_frames() {
    let ev = events();
    let by_v = [ascending(2)];
    let sums = |start, end| run(&ev, &[], &by_v, sum_v(), rows_frame(start, end));
    assert_eq!(sums(preceding(1), CURRENT), ["1 1", "2 3", "4 6", "8 12", "16 24"]);
    assert_eq!(sums(following(1), following(2)), ["1 6", "2 12", "4 24", "8 16", "16 NULL"]);
    assert_eq!(sums(UNBOUNDED, CURRENT), ["1 1", "2 3", "4 7", "8 15", "16 31"]);
    assert_eq!(sums(CURRENT, UNBOUNDED), ["1 31", "2 30", "4 28", "8 24", "16 16"]);
    let counts = run(&ev, &[], &by_v, count(), rows_frame(preceding(2), preceding(1)));
    assert_eq!(counts, ["1 0", "2 1", "4 2", "8 2", "16 2"]);
}

#[test]
fn range_frames_around_null() {
    let ev = events();
    let sums = |order: SortKey, start, end| run(&ev, &[], &[order], sum_v(), range_frame(start, end));
    assert_eq!(sums(ascending(1), preceding(1), following(1)), ["1 7", "2 7", "4 7", "8 8", "16 16"]);
    assert_eq!(sums(ascending(1), UNBOUNDED, preceding(1)), ["1 16", "2 17", "4 17", "8 23", "16 16"]);
    assert_eq!(sums(descending(1), CURRENT, following(3)), ["1 1", "2 7", "4 7", "8 14", "16 16"]);
    let minute = 60_000_000;
    assert_eq!(sums(ascending(0), preceding(10 * minute), CURRENT), ["1 1", "2 7", "4 7", "8 8", "16 16"]);
    let counts = run(&ev, &[], &[ascending(0)], count(), range_frame(preceding(5 * minute), following(15 * minute)));
    assert_eq!(counts, ["1 3", "2 4", "4 4", "8 1", "16 1"]);
}

/// Columns: g, ts, v, and a number for each row.
fn points() -> RecordBatch {
    let schema = arrow_schema(&Schema::new(vec![
        Field::new("g", DataType::String, true),
        Field::new("ts", DataType::Int32, true),
        Field::new("v", DataType::Int32, true),
        Field::new("id", DataType::Int64, true),
    ]));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringViewArray::from(vec!["a", "a", "a", "a", "b", "b", "b"])),
        Arc::new(Int32Array::from(vec![1, 2, 3, 4, 1, 2, 3])),
        Arc::new(Int32Array::from(vec![Some(10), Some(10), Some(30), None, Some(7), Some(7), Some(7)])),
        Arc::new(Int64Array::from_iter_values(1..=7)),
    ];
    RecordBatch::try_new(schema, columns).unwrap()
}

/// Results of a function in order of row.
fn over(order: u32, call: AggCall, frame: Frame) -> Vec<String> {
    let lines = run(&points(), &[0], &[ascending(order)], call, frame);
    lines.iter().map(|l| l.split(' ').nth(1).unwrap().to_owned()).collect()
}

#[test]
fn ranks() {
    let running = || rows_frame(UNBOUNDED, CURRENT);
    let rank = |name, order| over(order, call(name, vec![], DataType::Int32), running());
    assert_eq!(rank("row_number", 1), ["1", "2", "3", "4", "1", "2", "3"]);
    assert_eq!(rank("rank", 2), ["2", "2", "4", "1", "1", "1", "1"]);
    assert_eq!(rank("dense_rank", 2), ["2", "2", "3", "1", "1", "1", "1"]);
    let share = |name| over(2, call(name, vec![], DataType::Float64), running());
    assert_eq!(share("percent_rank"), ["0.3333333333333333", "0.3333333333333333", "1.0", "0.0", "0.0", "0.0", "0.0"]);
    assert_eq!(share("cume_dist"), ["0.75", "0.75", "1.0", "0.25", "1.0", "1.0", "1.0"]);
    let tiles = |n| over(1, call("ntile", vec![int(n)], DataType::Int32), running());
    assert_eq!(tiles(2), ["1", "1", "2", "2", "1", "1", "2"]);
    assert_eq!(tiles(9), ["1", "2", "3", "4", "1", "2", "3"]);
}

#[test]
fn offsets() {
    let v = || AggArg::Column(2);
    let get = |name, args| over(1, call(name, args, DataType::Int32), rows_frame(UNBOUNDED, CURRENT));
    assert_eq!(get("lag", vec![v()]), ["NULL", "10", "10", "30", "NULL", "7", "7"]);
    assert_eq!(get("lag", vec![v(), int(2), int(-1)]), ["-1", "-1", "10", "10", "-1", "-1", "7"]);
    assert_eq!(get("lead", vec![v()]), ["10", "30", "NULL", "NULL", "7", "7", "NULL"]);
    assert_eq!(get("lead", vec![v(), int(1), int(0)]), ["10", "30", "NULL", "0", "7", "7", "0"]);
    assert_eq!(get("lag", vec![v(), int(0)]), ["10", "10", "30", "NULL", "7", "7", "7"]);
    assert_eq!(get("lag", vec![v(), int(-1)]), get("lead", vec![v()]));
    let mut skipping = call("lead", vec![v()], DataType::Int32);
    skipping.ignore_nulls = true;
    assert_eq!(over(1, skipping, rows_frame(UNBOUNDED, CURRENT)), ["10", "30", "NULL", "NULL", "7", "7", "NULL"]);
}

#[test]
fn rows_of_the_frame() {
    let get = |name, args, frame: Frame, ignore_nulls| {
        let mut call = call(name, args, DataType::Int32);
        call.ignore_nulls = ignore_nulls;
        over(1, call, frame)
    };
    let v = || AggArg::Column(2);
    let whole = || rows_frame(UNBOUNDED, UNBOUNDED);
    assert_eq!(get("first_value", vec![v()], whole(), false), ["10", "10", "10", "10", "7", "7", "7"]);
    assert_eq!(get("last_value", vec![v()], whole(), false), ["NULL", "NULL", "NULL", "NULL", "7", "7", "7"]);
    assert_eq!(get("last_value", vec![v()], whole(), true), ["30", "30", "30", "30", "7", "7", "7"]);
    assert_eq!(get("nth_value", vec![v(), int(2)], whole(), false), ["10", "10", "10", "10", "7", "7", "7"]);
    let running = rows_frame(UNBOUNDED, CURRENT);
    assert_eq!(get("nth_value", vec![v(), int(3)], running, true), ["NULL", "NULL", "30", "30", "NULL", "NULL", "7"]);
    let ahead = rows_frame(following(1), following(1));
    assert_eq!(get("first_value", vec![v()], ahead, true), ["10", "30", "NULL", "NULL", "7", "7", "NULL"]);
}

#[test]
fn constants_out_of_range_are_refused() {
    let refused = |call: AggCall| {
        let calls = [WindowCall { call, frame: rows_frame(UNBOUNDED, CURRENT) }];
        WindowFunctions::new(&[], &[], &calls, &Schema::default(), &Schema::default()).unwrap_err().condition
    };
    assert_eq!(refused(call("ntile", vec![int(0)], DataType::Int32)), "DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE");
    let null = AggArg::Literal(Literal::Null, DataType::Int32);
    assert_eq!(refused(call("lag", vec![int(1), null], DataType::Int32)), "DATATYPE_MISMATCH.NON_FOLDABLE_INPUT");
}

#[test]
fn no_rows() {
    let empty = RecordBatch::new_empty(events().schema());
    assert!(run(&empty, &[], &[ascending(0)], sum_v(), range_frame(UNBOUNDED, CURRENT)).is_empty());
}

/// Every kind of frame over random rows, against the frame's definition.
#[test]
fn frames_against_their_definition() {
    let mut seed = 1u64;
    let mut below = |n: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % n
    };
    let rows: Vec<(Option<i32>, i32, i32)> =
        (0..60).map(|i| ((below(8) > 0).then(|| below(20) as i32), below(3) as i32, 1 << (i % 20) | i)).collect();
    let schema = arrow_schema(&Schema::new(vec![
        Field::new("g", DataType::Int32, true),
        Field::new("n", DataType::Int32, true),
        Field::new("v", DataType::Int32, true),
    ]));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(rows.iter().map(|r| Some(r.1)).collect::<Int32Array>()),
        Arc::new(rows.iter().map(|r| r.0).collect::<Int32Array>()),
        Arc::new(rows.iter().map(|r| Some(r.2)).collect::<Int32Array>()),
    ];
    let batch = RecordBatch::try_new(schema, columns).unwrap();
    let starts = [UNBOUNDED, preceding(3), preceding(1), CURRENT, following(2)];
    let ends = [preceding(1), CURRENT, following(1), following(4), UNBOUNDED];
    for order in [ascending(1), descending(1)] {
        for (start, end) in starts.iter().flat_map(|s| ends.iter().map(move |e| (s, e))) {
            // RANGE: whether a row lies in the frame of another, by their keys alone.
            let key = |r: &(Option<i32>, i32, i32)| r.0.map(|k| i64::from(if order.descending { -k } else { k }));
            let distance = |b: &FrameBound| match b {
                FrameBound::Preceding(Literal::Int(n)) => -n,
                FrameBound::Following(Literal::Int(n)) => *n,
                _ => 0,
            };
            let behind_start = |row, other| match (start, key(row), key(other)) {
                (FrameBound::Unbounded, ..) => true,
                (_, None, None) => true,
                (_, Some(_), None) => order.descending,
                (_, None, Some(_)) => !order.descending,
                (b, Some(r), Some(o)) => o >= r + distance(b),
            };
            let before_end = |row, other| match (end, key(row), key(other)) {
                (FrameBound::Unbounded, ..) => true,
                (_, None, None) => true,
                (_, Some(_), None) => !order.descending,
                (_, None, Some(_)) => order.descending,
                (b, Some(r), Some(o)) => o <= r + distance(b),
            };
            let mut expected: Vec<String> = rows
                .iter()
                .map(|row| {
                    let inside = rows.iter().filter(|o| o.1 == row.1 && behind_start(row, o) && before_end(row, o));
                    let (n, sum) = inside.fold((0, 0i64), |(n, sum), o| (n + 1, sum + i64::from(o.2)));
                    format!("{} {}", row.2, if n == 0 { "NULL".to_owned() } else { sum.to_string() })
                })
                .collect();
            expected.sort();
            let mut found = run(&batch, &[0], &[order], sum_v(), range_frame(start.clone(), end.clone()));
            found.sort();
            assert_eq!(found, expected, "{start:?} {end:?} {order:?}");
        }
    }
}
