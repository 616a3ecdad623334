//! Messages into columns: Spark's, or the members of JSON values with those beside.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryViewBuilder, Int32Builder, Int64Builder, ListArray, RecordBatch, StringViewBuilder, StructArray,
    TimestampMicrosecondBuilder,
};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType as ArrowType, SchemaRef};
use rdkafka::message::{BorrowedMessage, Headers, Message, Timestamp};
use ssql_connectors::json::{JsonDecoder, JsonOptions};
use ssql_connectors::{Decoder, MAX_BATCH_ROWS, batch, batch_schema};
use ssql_engine::connector::{ConnectorError, Declaration, Domain};
use ssql_ir::{DataType, Field, Schema};

/// Bytes of values gathered before they are parsed.
const CHUNK: usize = 1 << 20;
/// Before the names of Spark's columns where they stand beside those of JSON.
const PREFIX: &str = "_kafka_";

/// One of Spark's columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meta {
    Key,
    Value,
    Topic,
    Partition,
    Offset,
    Timestamp,
    TimestampType,
    Headers,
}

const ALL: [(Meta, &str); 8] = [
    (Meta::Key, "key"),
    (Meta::Value, "value"),
    (Meta::Topic, "topic"),
    (Meta::Partition, "partition"),
    (Meta::Offset, "offset"),
    (Meta::Timestamp, "timestamp"),
    (Meta::TimestampType, "timestampType"),
    (Meta::Headers, "headers"),
];

fn meta_type(meta: Meta) -> DataType {
    match meta {
        Meta::Key | Meta::Value => DataType::Binary,
        Meta::Topic => DataType::String,
        Meta::Partition | Meta::TimestampType => DataType::Int32,
        Meta::Offset => DataType::Int64,
        Meta::Timestamp => DataType::Timestamp,
        Meta::Headers => DataType::array(DataType::Struct(vec![
            Field::new("key", DataType::String, true),
            Field::new("value", DataType::Binary, true),
        ])),
    }
}

/// Spark's columns, `headers` last if they are wanted.
pub(crate) fn fixed_schema(headers: bool) -> Schema {
    let wanted = ALL.iter().filter(|(meta, _)| headers || *meta != Meta::Headers);
    Schema::new(wanted.map(|(meta, name)| Field::new(*name, meta_type(*meta), true)).collect())
}

/// How messages become the columns of a relation.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub(crate) schema: Schema,
    /// By column: which of Spark's it is; `None` for a member of JSON.
    meta: Vec<Option<Meta>>,
    json: Option<JsonOptions>,
}

impl Layout {
    pub(crate) fn new(declaration: &Declaration, json: bool, headers: bool) -> Result<Layout, ConnectorError> {
        let fixed = fixed_schema(headers);
        let declared = &declaration.schema;
        let refused = |message: String, help: &str| {
            let condition = "UNSUPPORTED_FEATURE.DECLARED_SCHEMA";
            Err(ConnectorError::new(condition, Domain::User, message).with_help(help))
        };
        if !json {
            let same = |(a, b): (&Field, &Field)| a.name.eq_ignore_ascii_case(&b.name) && a.data_type == b.data_type;
            let agrees = declared.len() == fixed.len() && declared.fields.iter().zip(&fixed.fields).all(same);
            if !declared.is_empty() && !agrees {
                let message = format!("`{}`: the columns of Kafka are fixed", declaration.name);
                let help =
                    "leave the column list out, or add format 'json' to have the values parsed into these columns";
                return refused(message, help);
            }
            let meta = ALL.iter().map(|(meta, _)| Some(*meta)).take(fixed.len()).collect();
            return Ok(Layout { schema: fixed, meta, json: None });
        }
        if declared.is_empty() {
            let message = format!("`{}`: format 'json' needs the columns declared", declaration.name);
            return refused(
                message,
                "list the members of the values: CREATE STREAM name (id BIGINT, ...) USING kafka ...",
            );
        }
        let mut meta = Vec::with_capacity(declared.len());
        for field in &declared.fields {
            let lower = field.name.to_lowercase();
            let Some(name) = lower.strip_prefix(PREFIX) else {
                meta.push(None);
                continue;
            };
            let Some((found, _)) = ALL.iter().find(|(_, n)| n.eq_ignore_ascii_case(name)) else {
                let message = format!("`{}`: messages have nothing that would be `{}`", declaration.name, field.name);
                return refused(
                    message,
                    "beside the members of the values stand _kafka_key, _kafka_value, _kafka_topic, _kafka_partition, _kafka_offset, _kafka_timestamp, _kafka_timestampType and _kafka_headers",
                );
            };
            let data_type = meta_type(*found);
            if field.data_type != data_type {
                let message = format!("`{}`: `{}` is of type {data_type}", declaration.name, field.name);
                return refused(message, "declare it so");
            }
            meta.push(Some(*found));
        }
        let json = JsonOptions::new(&declaration.options, &declaration.time_zone)?;
        Ok(Layout { schema: declared.clone(), meta, json: Some(json) })
    }

    /// A collector of these columns.
    pub(crate) fn collector(&self, projection: &[u32]) -> Result<Collector, ConnectorError> {
        let fields: Vec<Field> = projection.iter().map(|i| self.schema.fields[*i as usize].clone()).collect();
        let schema = batch_schema(&fields);
        let meta: Vec<Option<Meta>> = projection.iter().map(|i| self.meta[*i as usize]).collect();
        let members: Vec<Field> =
            fields.iter().zip(&meta).filter(|(_, m)| m.is_none()).map(|(f, _)| f.clone()).collect();
        let json = self.json.clone().map(|options| JsonDecoder::new(&members, options)).transpose()?;
        let columns = meta
            .iter()
            .enumerate()
            .filter_map(|(i, m)| m.map(|m| Column::new(m, schema.field(i).data_type())))
            .collect();
        Ok(Collector { schema, meta, columns, json, bytes: Vec::new(), ends: Vec::new(), rows: 0, bad: 0 })
    }
}

/// A column that is being built.
enum Column {
    Binary(Meta, BinaryViewBuilder),
    Topic(StringViewBuilder),
    Int(Meta, Int32Builder),
    Offset(Int64Builder),
    Timestamp(TimestampMicrosecondBuilder),
    Headers(Box<HeadersBuilder>),
}

struct HeadersBuilder {
    data_type: ArrowType,
    lengths: Vec<usize>,
    valid: Vec<bool>,
    keys: StringViewBuilder,
    values: BinaryViewBuilder,
}

impl Column {
    fn new(meta: Meta, data_type: &ArrowType) -> Column {
        match meta {
            Meta::Key | Meta::Value => Column::Binary(meta, BinaryViewBuilder::new()),
            Meta::Topic => Column::Topic(StringViewBuilder::new().with_deduplicate_strings()),
            Meta::Partition | Meta::TimestampType => Column::Int(meta, Int32Builder::new()),
            Meta::Offset => Column::Offset(Int64Builder::new()),
            Meta::Timestamp => Column::Timestamp(TimestampMicrosecondBuilder::new().with_data_type(data_type.clone())),
            Meta::Headers => Column::Headers(Box::new(HeadersBuilder {
                data_type: data_type.clone(),
                lengths: Vec::new(),
                valid: Vec::new(),
                keys: StringViewBuilder::new(),
                values: BinaryViewBuilder::new(),
            })),
        }
    }

    fn push(&mut self, message: &BorrowedMessage<'_>) {
        match self {
            Column::Binary(Meta::Key, b) => b.append_option(message.key()),
            Column::Binary(_, b) => b.append_option(message.payload()),
            Column::Topic(b) => b.append_value(message.topic()),
            Column::Int(Meta::Partition, b) => b.append_value(message.partition()),
            Column::Int(_, b) => b.append_value(match message.timestamp() {
                Timestamp::NotAvailable => -1,
                Timestamp::CreateTime(_) => 0,
                Timestamp::LogAppendTime(_) => 1,
            }),
            Column::Offset(b) => b.append_value(message.offset()),
            Column::Timestamp(b) => b.append_option(message.timestamp().to_millis().map(|t| t.saturating_mul(1000))),
            Column::Headers(b) => {
                let headers = message.headers();
                let count = headers.map_or(0, Headers::count);
                b.valid.push(count > 0);
                b.lengths.push(count);
                for header in headers.into_iter().flat_map(Headers::iter) {
                    b.keys.append_value(header.key);
                    b.values.append_option(header.value);
                }
            }
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Column::Binary(_, b) => Arc::new(b.finish()),
            Column::Topic(b) => Arc::new(b.finish()),
            Column::Int(_, b) => Arc::new(b.finish()),
            Column::Offset(b) => Arc::new(b.finish()),
            Column::Timestamp(b) => Arc::new(b.finish()),
            Column::Headers(b) => b.finish(),
        }
    }
}

impl HeadersBuilder {
    fn finish(&mut self) -> ArrayRef {
        let ArrowType::List(element) = &self.data_type else { unreachable!("headers are an array") };
        let ArrowType::Struct(members) = element.data_type() else { unreachable!("a header is a struct") };
        let columns: Vec<ArrayRef> = vec![Arc::new(self.keys.finish()), Arc::new(self.values.finish())];
        let structs = StructArray::new(members.clone(), columns, None);
        let offsets = OffsetBuffer::from_lengths(std::mem::take(&mut self.lengths));
        let nulls = NullBuffer::from(std::mem::take(&mut self.valid));
        Arc::new(ListArray::new(element.clone(), offsets, Arc::new(structs), Some(nulls)))
    }
}

/// Gathers messages until they make a batch.
pub(crate) struct Collector {
    schema: SchemaRef,
    meta: Vec<Option<Meta>>,
    /// Those of Spark's columns that are asked for, in order.
    columns: Vec<Column>,
    json: Option<JsonDecoder>,
    /// Values to be parsed, one after the other, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    rows: usize,
    pub(crate) bad: u64,
}

impl Collector {
    /// Takes a message. A message without a value (a tombstone) is no row where values are parsed.
    pub(crate) fn push(&mut self, message: &BorrowedMessage<'_>) -> Result<(), ConnectorError> {
        if let Some(decoder) = &mut self.json {
            let Some(value) = message.payload() else { return Ok(()) };
            if self.columns.is_empty() {
                self.bytes.extend_from_slice(value);
                self.ends.push(self.bytes.len());
                return if self.bytes.len() >= CHUNK { self.parse() } else { Ok(()) };
            }
            // A value may be no row, or several: the columns beside follow it.
            let before = decoder.rows();
            let buffer = Buffer::from_vec(value.to_vec());
            decoder.decode_record(&buffer, 0..value.len()).map_err(|bad| {
                let at =
                    format!("topic {} partition {} offset {}", message.topic(), message.partition(), message.offset());
                malformed(&at, &bad.reason)
            })?;
            for _ in before..decoder.rows() {
                self.columns.iter_mut().for_each(|c| c.push(message));
            }
            self.rows = decoder.rows();
            return Ok(());
        }
        self.columns.iter_mut().for_each(|c| c.push(message));
        self.rows += 1;
        Ok(())
    }

    fn parse(&mut self) -> Result<(), ConnectorError> {
        let Some(decoder) = &mut self.json else { return Ok(()) };
        let buffer = Buffer::from_vec(std::mem::take(&mut self.bytes));
        let mut start = 0;
        for end in self.ends.drain(..) {
            decoder.decode_record(&buffer, start..end).map_err(|bad| {
                let text: String = String::from_utf8_lossy(&buffer[start..end]).chars().take(200).collect();
                malformed(&format!("`{text}`"), &bad.reason)
            })?;
            start = end;
        }
        self.rows = decoder.rows();
        Ok(())
    }

    /// Whether the batch should be taken before more comes.
    pub(crate) fn is_full(&self) -> bool {
        self.rows + self.ends.len() >= MAX_BATCH_ROWS
    }

    /// The rows so far, if there are any.
    pub(crate) fn take(&mut self) -> Result<Option<RecordBatch>, ConnectorError> {
        self.parse()?;
        let rows = std::mem::take(&mut self.rows);
        let mut beside = self.columns.iter_mut().map(Column::finish);
        let columns: Vec<ArrayRef> = match &mut self.json {
            None => beside.collect(),
            Some(decoder) => {
                let decoded = decoder.take();
                self.bad += decoded.bad_records;
                let mut members = decoded.columns.into_iter();
                let next = |m: &Option<Meta>| if m.is_some() { beside.next() } else { members.next() };
                self.meta.iter().filter_map(next).collect()
            }
        };
        Ok((rows > 0).then(|| batch(&self.schema, columns, rows)))
    }
}

fn malformed(what: &str, reason: &str) -> ConnectorError {
    let message = format!("{what}: {reason}");
    ConnectorError::new("MALFORMED_RECORD_IN_PARSING", Domain::User, message)
}
