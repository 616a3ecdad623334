//! The sink that keeps nothing: for measuring a query without its output.

use arrow::array::RecordBatch;
use ssql_engine::connector::{Connector, ConnectorError, Declaration, Holder, Sink, SinkBatch, Staged};
use ssql_ir::{ConnectorDesc, LocationRule, SchemaRule, SinkDesc};

/// `USING noop`.
pub struct NoopConnector {
    desc: ConnectorDesc,
}

impl Default for NoopConnector {
    fn default() -> NoopConnector {
        let desc = ConnectorDesc {
            name: "noop",
            summary: "Takes rows and forgets them.",
            stream_source: false,
            static_source: false,
            sink: Some(SinkDesc {
                append: true,
                update: true,
                complete: true,
                durable: false,
                partitioned: false,
                continuous: true,
            }),
            schema: SchemaRule::Declared,
            location: LocationRule::Refused,
            options: Vec::new(),
        };
        NoopConnector { desc }
    }
}

impl Connector for NoopConnector {
    fn desc(&self) -> &ConnectorDesc {
        &self.desc
    }

    fn sink(&self, _declaration: &Declaration) -> Result<Box<dyn Sink>, ConnectorError> {
        Ok(Box::new(NoopSink))
    }
}

struct NoopSink;

impl Sink for NoopSink {
    fn description(&self) -> String {
        "NoopTable".to_string()
    }

    fn start(&self, _query: &Holder, _last_committed: Option<u64>) -> Result<(), ConnectorError> {
        Ok(())
    }

    fn write(&self, _batch: &SinkBatch<'_>, _partition: u32, rows: &[RecordBatch]) -> Result<Staged, ConnectorError> {
        Ok(Box::new(rows.iter().map(|b| b.num_rows() as u64).sum::<u64>()))
    }

    fn commit(&self, _batch: &SinkBatch<'_>, staged: Vec<Staged>) -> Result<Option<u64>, ConnectorError> {
        Ok(Some(staged.into_iter().filter_map(|s| s.downcast::<u64>().ok()).map(|rows| *rows).sum()))
    }

    fn abort(&self, _batch: &SinkBatch<'_>, _staged: Vec<Staged>) {}
}
