//! Sources and sinks of the engine: files (json, csv, text, parquet), memory, rate, nexmark, socket, console, noop.
//!
//! [`builtin`] makes the registry. Each connector describes itself ([`ssql_ir::ConnectorDesc`]): what it can be, where
//! its columns come from, and every option it knows. Row decoders ([`json::JsonDecoder`], [`csv::CsvDecoder`]) work on
//! any buffer, so that messages of other systems are read by the same code as files.
//!
//! This crate knows nothing of SQL text, plans, operators or checkpoints.

#![deny(unsafe_code)]

mod cells;
mod columns;
mod console;
pub mod csv;
mod decode;
pub mod desc;
mod file;
mod formats;
pub mod json;
mod memory;
mod nexmark;
mod noop;
mod parquet;
mod pattern;
mod rate;
mod sink;
mod socket;
#[cfg(test)]
mod testing;
mod text;
mod text_lines;
mod views;

use ssql_engine::connector::Registry;

pub use columns::{MAX_BATCH_ROWS, nullable_field, nullable_type};
pub use console::ConsoleConnector;
pub use decode::{BadRecord, Decoded, Decoder, Mode, batch, batch_schema};
pub use file::{FileConnector, Format};
pub use formats::TextFormats;
pub use memory::{MemoryConnector, MemoryHub};
pub use nexmark::NexmarkConnector;
pub use noop::NoopConnector;
pub use pattern::Pattern;
pub use rate::RateConnector;
pub use socket::SocketConnector;
pub use text_lines::TextDecoder;

/// The connectors that need no other system, over that hub for what is kept in memory.
pub fn builtin(memory: &MemoryHub) -> Registry {
    let mut registry = Registry::default();
    for format in [Format::Json, Format::Csv, Format::Text, Format::Parquet] {
        registry.register(Box::new(FileConnector::new(format)));
    }
    registry.register(Box::new(MemoryConnector::new(memory.clone())));
    registry.register(Box::new(RateConnector::default()));
    registry.register(Box::new(NexmarkConnector::default()));
    registry.register(Box::new(SocketConnector::default()));
    registry.register(Box::new(ConsoleConnector::default()));
    registry.register(Box::new(NoopConnector::default()));
    registry
}
