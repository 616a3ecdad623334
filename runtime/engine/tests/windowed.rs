//! A windowed aggregation through the whole batch protocol, with a source and a sink made of vectors: what each
//! micro-batch emits, and that a restart between any two batches, or in the middle of one, changes nothing.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::Path;
use std::sync::{Arc, Mutex};

use arrow::array::{Int64Array, RecordBatch, StringViewArray, TimestampMicrosecondArray};
use ssql_engine::checkpoint::Durability;
use ssql_engine::connector::*;
use ssql_engine::exec::Tables;
use ssql_engine::query::{Advance, Runner, RuntimeConfig};
use ssql_engine::{EngineError, Kernels, QuerySpec, Trigger, VirtualClock};
use ssql_ir::*;

const SECOND: i64 = 1_000_000;

/// (seconds, key, value)
type Row = (i64, &'static str, i64);

fn input_schema() -> Schema {
    Schema::new(vec![
        Field::new("ts", DataType::Timestamp, true),
        Field::new("k", DataType::String, true),
        Field::new("v", DataType::Int64, true),
    ])
}

fn rows(rows: &[Row]) -> RecordBatch {
    let ts = TimestampMicrosecondArray::from_iter_values(rows.iter().map(|r| r.0 * SECOND)).with_timezone("UTC");
    let k = StringViewArray::from_iter_values(rows.iter().map(|r| r.1));
    let v = Int64Array::from_iter_values(rows.iter().map(|r| r.2));
    let schema = ssql_stdlib::arrow_schema(&input_schema());
    RecordBatch::try_new(schema, vec![Arc::new(ts), Arc::new(k), Arc::new(v)]).unwrap()
}

/// One batch a trigger; the offset is the number of batches taken.
struct VecSource {
    schema: Schema,
    batches: Vec<RecordBatch>,
}

struct VecSplit(RecordBatch);

impl Split for VecSplit {
    fn read(
        &mut self,
        deliver: &mut dyn FnMut(RecordBatch) -> Result<(), Box<dyn std::error::Error + Send + Sync>>,
    ) -> Result<SplitStats, Box<dyn std::error::Error + Send + Sync>> {
        deliver(self.0.clone())?;
        Ok(SplitStats { rows: self.0.num_rows() as u64, ..SplitStats::default() })
    }
}

impl Source for VecSource {
    fn schema(&self) -> &Schema {
        &self.schema
    }
    fn description(&self) -> String {
        "VecSource".into()
    }
    fn restore(&mut self, _: Restored) -> Result<(), ConnectorError> {
        Ok(())
    }
    fn latest(&mut self, start: Option<&Offset>, _: ReadLimit, _: i64) -> Result<Option<Batch>, ConnectorError> {
        let at = start.and_then(Offset::as_u64).unwrap_or(0);
        Ok((at < self.batches.len() as u64).then(|| Batch { end: (at + 1).into(), log_entry: None }))
    }
    fn freeze(&mut self, _: i64) -> Result<(), ConnectorError> {
        Ok(())
    }
    fn splits(
        &mut self,
        start: Option<&Offset>,
        end: &Offset,
        _: &[u32],
    ) -> Result<Vec<Box<dyn Split>>, ConnectorError> {
        let from = start.and_then(Offset::as_u64).unwrap_or(0) as usize;
        let to = end.as_u64().unwrap() as usize;
        Ok(self.batches[from..to].iter().map(|b| Box::new(VecSplit(b.clone())) as Box<dyn Split>).collect())
    }
    fn committed(&mut self, _: &Offset) -> Result<(), ConnectorError> {
        Ok(())
    }
}

/// Batches as printed lines, by number; a batch delivered again replaces itself.
type Delivered = Arc<Mutex<std::collections::BTreeMap<u64, Vec<String>>>>;

struct VecSink(Delivered);

impl Sink for VecSink {
    fn description(&self) -> String {
        "VecSink".into()
    }
    fn start(&self, _: &Holder, _: Option<u64>) -> Result<(), ConnectorError> {
        Ok(())
    }
    fn write(&self, _: &SinkBatch<'_>, _: u32, rows: &[RecordBatch]) -> Result<Staged, ConnectorError> {
        let mut lines = Vec::new();
        for batch in rows {
            let cells: Vec<_> = batch
                .columns()
                .iter()
                .map(|c| ssql_stdlib::CellFormatter::new(c.as_ref(), jiff::tz::TimeZone::UTC))
                .collect();
            for row in 0..batch.num_rows() {
                let mut line = String::new();
                for (i, cell) in cells.iter().enumerate() {
                    if i > 0 {
                        line.push(' ');
                    }
                    cell.write(row, &mut line);
                }
                lines.push(line);
            }
        }
        Ok(Box::new(lines))
    }
    fn commit(&self, batch: &SinkBatch<'_>, staged: Vec<Staged>) -> Result<Option<u64>, ConnectorError> {
        let mut lines: Vec<String> = staged.into_iter().flat_map(|s| *s.downcast::<Vec<String>>().unwrap()).collect();
        lines.sort();
        let n = lines.len() as u64;
        self.0.lock().unwrap().insert(batch.batch, lines);
        Ok(Some(n))
    }
    fn abort(&self, _: &SinkBatch<'_>, _: Vec<Staged>) {}
}

struct NoTables;

impl Tables for NoTables {
    fn table(&self, relation: &str) -> Result<Arc<dyn StaticTable>, EngineError> {
        Err(EngineError::internal(format!("no table {relation}")))
    }
}

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
    Runner::start(QuerySpec {
        name: "q".into(),
        pipeline: pipeline(mode),
        sources: vec![Box::new(VecSource {
            schema: input_schema(),
            batches: batches.iter().map(|b| rows(b)).collect(),
        })],
        tables: Arc::new(NoTables),
        sink: Box::new(VecSink(Arc::clone(out))),
        trigger: Trigger::Manual,
        checkpoint: checkpoint.map(Path::to_path_buf),
        durability: Durability::default(),
        time_zone: jiff::tz::TimeZone::UTC,
        clock: Arc::new(VirtualClock::default()),
        runtime: RuntimeConfig::new(2, Kernels::interpreter()).unwrap(),
    })
    .unwrap()
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
