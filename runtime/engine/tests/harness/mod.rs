//! A source and a sink made of vectors, and a query that runs a pipeline between them.
#![allow(dead_code, unreachable_pub)]

use std::path::Path;
use std::sync::{Arc, Mutex};

use arrow::array::{Int64Array, RecordBatch, StringViewArray, TimestampMicrosecondArray};
use ssql_engine::checkpoint::Durability;
use ssql_engine::connector::*;
use ssql_engine::exec::Tables;
use ssql_engine::query::{Runner, RuntimeConfig};
use ssql_engine::{EngineError, Kernels, QuerySpec, Trigger, VirtualClock};
use ssql_ir::*;

pub const SECOND: i64 = 1_000_000;

/// (seconds, key, value)
pub type Row = (i64, &'static str, i64);

pub fn input_schema() -> Schema {
    Schema::new(vec![
        Field::new("ts", DataType::Timestamp, true),
        Field::new("k", DataType::String, true),
        Field::new("v", DataType::Int64, true),
    ])
}

pub fn rows(rows: &[Row]) -> RecordBatch {
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
pub type Delivered = Arc<Mutex<std::collections::BTreeMap<u64, Vec<String>>>>;

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

/// The pipeline as a query over these batches.
pub fn start(pipeline: Pipeline, batches: Vec<RecordBatch>, checkpoint: Option<&Path>, out: &Delivered) -> Runner {
    Runner::start(QuerySpec {
        name: "q".into(),
        pipeline,
        sources: vec![Box::new(VecSource { schema: input_schema(), batches })],
        tables: Arc::new(NoTables),
        sink: Box::new(VecSink(Arc::clone(out))),
        late: None,
        trigger: Trigger::Manual,
        checkpoint: checkpoint.map(Path::to_path_buf),
        close_at_end: false,
        durability: Durability::default(),
        time_zone: jiff::tz::TimeZone::UTC,
        clock: Arc::new(VirtualClock::default()),
        runtime: RuntimeConfig::new(2, Kernels::interpreter()).unwrap(),
    })
    .unwrap()
}
