//! Relations in memory: streams fed by INSERT, static tables, and sinks that can be read.

mod hub;
mod sink;
mod source;

use arrow::array::RecordBatch;
use ssql_engine::connector::{Connector, ConnectorError, Declaration, Sink, Source, Split, SplitStats, StaticTable};
use ssql_ir::{ConnectorDesc, LocationRule, Schema, SchemaRule, SinkDesc};

pub use hub::MemoryHub;

/// `USING memory`.
pub struct MemoryConnector {
    desc: ConnectorDesc,
    hub: MemoryHub,
}

impl MemoryConnector {
    /// The connector over that hub.
    pub fn new(hub: MemoryHub) -> MemoryConnector {
        let desc = ConnectorDesc {
            name: "memory",
            summary: "Streams and tables that INSERT feeds, and a sink whose rows SELECT reads; all in memory.",
            stream_source: true,
            static_source: true,
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
        MemoryConnector { desc, hub }
    }
}

impl Connector for MemoryConnector {
    fn desc(&self) -> &ConnectorDesc {
        &self.desc
    }

    fn source(&self, declaration: &Declaration) -> Result<Box<dyn Source>, ConnectorError> {
        Ok(Box::new(source::MemorySource::new(&declaration.name, declaration.schema.clone(), &self.hub)))
    }

    fn table(&self, declaration: &Declaration) -> Result<Box<dyn StaticTable>, ConnectorError> {
        let rows = self.hub.rows(&declaration.name).unwrap_or_default();
        Ok(Box::new(MemoryTable { schema: declaration.schema.clone(), rows }))
    }

    fn sink(&self, declaration: &Declaration) -> Result<Box<dyn Sink>, ConnectorError> {
        Ok(Box::new(sink::MemorySink::new(self.hub.sink(&declaration.name))))
    }
}

/// A table, or a sink read as one, as it was when it was opened.
struct MemoryTable {
    schema: Schema,
    rows: Vec<RecordBatch>,
}

impl StaticTable for MemoryTable {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn splits(&self, projection: &[u32]) -> Result<Vec<Box<dyn Split>>, ConnectorError> {
        Ok(splits(self.rows.clone(), projection))
    }
}

/// One split for all the batches, or none.
fn splits(batches: Vec<RecordBatch>, projection: &[u32]) -> Vec<Box<dyn Split>> {
    if batches.iter().all(|b| b.num_rows() == 0) {
        return Vec::new();
    }
    let projection = projection.iter().map(|i| *i as usize).collect();
    vec![Box::new(MemorySplit { batches, projection })]
}

struct MemorySplit {
    batches: Vec<RecordBatch>,
    projection: Vec<usize>,
}

impl Split for MemorySplit {
    fn read(
        &mut self,
        deliver: &mut dyn FnMut(RecordBatch) -> Result<(), Box<dyn std::error::Error + Send + Sync>>,
    ) -> Result<SplitStats, Box<dyn std::error::Error + Send + Sync>> {
        let mut stats = SplitStats::default();
        for batch in &self.batches {
            let mut from = 0;
            while from < batch.num_rows() {
                let rows = (batch.num_rows() - from).min(crate::columns::MAX_BATCH_ROWS);
                stats.rows += rows as u64;
                deliver(batch.slice(from, rows).project(&self.projection)?)?;
                from += rows;
            }
            stats.bytes += batch.get_array_memory_size() as u64;
        }
        Ok(stats)
    }
}

#[cfg(test)]
mod tests;
