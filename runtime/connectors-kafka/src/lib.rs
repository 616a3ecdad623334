//! Apache Kafka as a source, a table and a sink, over librdkafka.
//!
//! It is a crate of its own since it builds a native library; the feature `kafka` of the package `ssql` adds it.
//! The options, columns and offsets are Spark's; `spec/connectors.md` has the table.
//!
//! This crate knows nothing of SQL text, plans, operators or checkpoints.

#![forbid(unsafe_code)]

mod client;
mod columns;
mod offsets;
mod options;
mod read;
mod sink;
mod source;

use ssql_engine::connector::{Connector, ConnectorError, Declaration, Sink, Source, StaticTable};
use ssql_ir::{ConnectorDesc, LocationRule, Schema, SchemaRule, SinkDesc};

/// `USING kafka`.
pub struct KafkaConnector {
    desc: ConnectorDesc,
}

impl Default for KafkaConnector {
    fn default() -> KafkaConnector {
        let desc = ConnectorDesc {
            name: "kafka",
            summary: "Topics of Apache Kafka.",
            stream_source: true,
            static_source: true,
            sink: Some(SinkDesc {
                append: true,
                update: true,
                complete: true,
                durable: true,
                partitioned: false,
                continuous: true,
            }),
            // Spark's columns unless `format` has the values parsed.
            schema: SchemaRule::Carried,
            location: LocationRule::Refused,
            options: options::describe(),
        };
        KafkaConnector { desc }
    }
}

impl Connector for KafkaConnector {
    fn desc(&self) -> &ConnectorDesc {
        &self.desc
    }

    fn carried_schema(&self, declaration: &Declaration) -> Result<Schema, ConnectorError> {
        let json = declaration.options.get("format").is_some();
        let headers = declaration.options.boolean("includeHeaders", false)?;
        columns::Layout::new(declaration, json, headers).map(|layout| layout.schema)
    }

    fn source(&self, declaration: &Declaration) -> Result<Box<dyn Source>, ConnectorError> {
        Ok(Box::new(source::KafkaSource::new(declaration)?))
    }

    fn table(&self, declaration: &Declaration) -> Result<Box<dyn StaticTable>, ConnectorError> {
        Ok(Box::new(source::KafkaTable::new(declaration)?))
    }

    fn sink(&self, declaration: &Declaration) -> Result<Box<dyn Sink>, ConnectorError> {
        Ok(Box::new(sink::KafkaSink::new(declaration)?))
    }
}
