//! What a connector can do, as data: one descriptor serves validation, `EXPLAIN` and the documentation.

use crate::types::Schema;

/// Facts about one connector (`USING name`).
#[derive(Debug, Clone, PartialEq)]
pub struct ConnectorDesc {
    /// Name after `USING`, lower case.
    pub name: &'static str,
    /// One sentence for `spec/connectors.md`.
    pub summary: &'static str,
    /// Usable in CREATE STREAM.
    pub stream_source: bool,
    /// Usable in CREATE TABLE as a static relation.
    pub static_source: bool,
    /// Usable in CREATE SINK, and how.
    pub sink: Option<SinkDesc>,
    /// Where the columns come from.
    pub schema: SchemaRule,
    /// Whether LOCATION is needed or refused.
    pub location: LocationRule,
    /// Options that it knows; any other is an error with a suggestion.
    pub options: Vec<OptionDesc>,
}

/// Facts about a connector as a sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SinkDesc {
    /// Takes APPEND.
    pub append: bool,
    /// Takes UPDATE.
    pub update: bool,
    /// Takes COMPLETE.
    pub complete: bool,
    /// Keeps data, so a query into it needs a checkpoint.
    pub durable: bool,
    /// Takes PARTITIONED BY.
    pub partitioned: bool,
    /// Takes rows as they come, between the ends of two batches (TRIGGER CONTINUOUS).
    pub continuous: bool,
}

/// Where a relation's columns come from.
#[derive(Debug, Clone, PartialEq)]
pub enum SchemaRule {
    /// The user declares them.
    Declared,
    /// The connector has fixed columns.
    Fixed(Schema),
    /// The data carries them; a declaration must agree.
    Carried,
}

/// Whether LOCATION is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocationRule {
    /// Must be given.
    Required,
    /// Makes no sense here.
    Refused,
}

/// One option of a connector.
#[derive(Debug, Clone, PartialEq)]
pub struct OptionDesc {
    /// Spark's spelling. A trailing `*` takes any name with that prefix (`kafka.*`).
    pub name: &'static str,
    /// What values it takes.
    pub kind: OptionKind,
    /// Whether it must be given.
    pub required: bool,
    /// Default, as written; `None` where there is none.
    pub default: Option<&'static str>,
    /// Which direction it applies to.
    pub applies: OptionScope,
    /// One sentence for the documentation.
    pub doc: &'static str,
}

/// Values an option takes.
#[derive(Debug, Clone, PartialEq)]
pub enum OptionKind {
    /// `true` or `false`.
    Boolean,
    /// A whole number, not negative.
    Integer,
    /// A size such as `64m` or `1g`, in bytes.
    Bytes,
    /// An interval such as `7d` or `10 minutes`.
    Duration,
    /// One of these words, case-insensitive.
    OneOf(&'static [&'static str]),
    /// Any text.
    Text,
}

/// Direction of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionScope {
    /// Reading as a stream only.
    Stream,
    /// Reading, static or stream.
    Read,
    /// Writing.
    Write,
    /// All.
    Both,
}
