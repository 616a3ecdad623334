//! The memory sink: APPEND and UPDATE add rows, COMPLETE replaces them.

use arrow::array::RecordBatch;
use ssql_engine::connector::{ConnectorError, Holder, Sink, SinkBatch, Staged};
use ssql_ir::EmitMode;

use super::hub::{Shared, SinkRows, lock};

pub(super) struct MemorySink {
    rows: Shared<SinkRows>,
}

/// Rows of one partition, not yet visible.
struct Rows {
    partition: u32,
    batches: Vec<RecordBatch>,
}

impl MemorySink {
    pub(super) fn new(rows: Shared<SinkRows>) -> MemorySink {
        MemorySink { rows }
    }
}

impl Sink for MemorySink {
    fn description(&self) -> String {
        "MemorySink".to_string()
    }

    fn start(&self, _query: &Holder, _last_committed: Option<u64>) -> Result<(), ConnectorError> {
        Ok(())
    }

    fn write(&self, _batch: &SinkBatch<'_>, partition: u32, rows: &[RecordBatch]) -> Result<Staged, ConnectorError> {
        Ok(Box::new(Rows { partition, batches: rows.to_vec() }))
    }

    fn commit(&self, batch: &SinkBatch<'_>, staged: Vec<Staged>) -> Result<Option<u64>, ConnectorError> {
        let mut staged: Vec<Rows> = staged.into_iter().filter_map(|s| s.downcast().ok().map(|rows| *rows)).collect();
        staged.sort_by_key(|rows| rows.partition);
        let batches: Vec<RecordBatch> =
            staged.into_iter().flat_map(|rows| rows.batches).filter(|b| b.num_rows() > 0).collect();
        let count = batches.iter().map(|b| b.num_rows() as u64).sum();
        let mut rows = lock(&self.rows);
        if rows.committed.get(batch.query_id).is_some_and(|newest| batch.batch <= *newest) {
            return Ok(Some(count));
        }
        match batch.mode {
            EmitMode::Append | EmitMode::Update => rows.batches.extend(batches),
            EmitMode::Complete => rows.batches = batches,
        }
        rows.committed.insert(batch.query_id.to_string(), batch.batch);
        Ok(Some(count))
    }

    fn abort(&self, _batch: &SinkBatch<'_>, _staged: Vec<Staged>) {}
}
