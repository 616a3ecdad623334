//! The Nexmark source: the persons, auctions and bids of the benchmark, from the `nexmark` crate. An event depends on
//! its number alone, so an offset is a number of events and the same options give the same rows always.

mod events;

use arrow::array::RecordBatch;
use nexmark::config::NexmarkConfig;
use nexmark::event::EventType;
use ssql_engine::connector::{
    Batch, Connector, ConnectorError, Declaration, Domain, Offset, ReadLimit, Restored, Source, Split, SplitStats,
    StaticTable,
};
use ssql_ir::{ConnectorDesc, LocationRule, OptionKind, OptionScope, Schema, SchemaRule};

use self::events::Kind;
use crate::columns::MAX_BATCH_ROWS;
use crate::decode::{batch, batch_schema};
use crate::desc::{defaulted, option, positive};

/// Times are kept in microseconds, and beyond this pace several events a microsecond would have to differ.
const MAX_RATE: u64 = 1_000_000;
/// Event numbers stay far below what times and ids can count.
const MAX_EVENTS: u64 = 1 << 40;

/// `USING nexmark`.
pub struct NexmarkConnector {
    desc: ConnectorDesc,
}

impl Default for NexmarkConnector {
    fn default() -> NexmarkConnector {
        use OptionKind::{Integer, OneOf, Text};
        use OptionScope::{Read, Stream};
        let desc = ConnectorDesc {
            name: "nexmark",
            summary: "Generates the events of the Nexmark benchmark: the same rows for the same options.",
            stream_source: true,
            static_source: true,
            sink: None,
            schema: SchemaRule::Carried,
            location: LocationRule::Refused,
            options: vec![
                defaulted(
                    "type",
                    OneOf(&["all", "person", "auction", "bid"]),
                    "all",
                    Read,
                    "Events to have: of one kind as its own columns, or all with a struct for each kind.",
                ),
                defaulted("events", Integer, "1000000", Read, "Events of all kinds, after which the stream ends."),
                defaulted("eventsPerSecond", Integer, "10000", Read, "Pace of event time."),
                defaulted("baseTime", Text, "2015-07-15T00:00:00Z", Read, "Time of the first event."),
                option("maxEventsPerTrigger", Integer, Stream, "Most events, of all kinds, in one micro-batch."),
            ],
        };
        NexmarkConnector { desc }
    }
}

/// What the options say.
#[derive(Debug, Clone)]
struct Stream {
    kind: Kind,
    schema: Schema,
    config: NexmarkConfig,
    /// Events of all kinds.
    events: u64,
}

impl Stream {
    fn new(declaration: &Declaration) -> Result<Stream, ConnectorError> {
        let options = &declaration.options;
        let kind = kind(declaration)?;
        let schema = kind.schema();
        let declared = &declaration.schema.fields;
        let same = declared.len() == schema.fields.len()
            && declared
                .iter()
                .zip(&schema.fields)
                .all(|(a, b)| a.name.eq_ignore_ascii_case(&b.name) && a.data_type == b.data_type);
        if !declared.is_empty() && !same {
            let columns: Vec<String> = schema.fields.iter().map(|f| format!("{} {}", f.name, f.data_type)).collect();
            let message = format!("the columns of `{}` are not those of its events", declaration.name);
            return Err(ConnectorError::new("UNSUPPORTED_FEATURE.DECLARED_SCHEMA", Domain::User, message)
                .with_help(format!("Leave the column list out; they are: {}.", columns.join(", "))));
        }
        let limited = |name: &str, default: u64, limit: u64| match positive(options, name)? {
            Some(n) if n > limit => {
                let given = options.get(name).unwrap_or_default();
                Err(ConnectorError::bad_option(name, given, &format!("a whole number up to {limit}")))
            }
            n => Ok(n.unwrap_or(default)),
        };
        let base = options.get("baseTime").unwrap_or("2015-07-15T00:00:00Z");
        let base_millis =
            base.trim().parse::<jiff::Timestamp>().ok().and_then(|t| u64::try_from(t.as_millisecond()).ok());
        let base_millis = base_millis.ok_or_else(|| {
            ConnectorError::bad_option("baseTime", base, "an instant since 1970 such as 2015-07-15T00:00:00Z")
        })?;
        let rate = limited("eventsPerSecond", 10_000, MAX_RATE)?;
        Ok(Stream {
            kind,
            schema,
            config: events::config(base_millis, rate),
            events: limited("events", 1_000_000, MAX_EVENTS)?,
        })
    }

    /// Pieces of a range of events, as many as cores.
    fn splits(&self, from: u64, to: u64, projection: &[u32]) -> Vec<Box<dyn Split>> {
        let (first, last) = (self.kind.count(from), self.kind.count(to));
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
        let pieces = cores.min(last - first);
        let bound = |i: u64| first + (u128::from(last - first) * u128::from(i) / u128::from(pieces)) as u64;
        (0..pieces)
            .map(|i| -> Box<dyn Split> {
                Box::new(NexmarkSplit {
                    stream: self.clone(),
                    numbers: bound(i)..bound(i + 1),
                    projection: projection.to_vec(),
                })
            })
            .collect()
    }
}

fn kind(declaration: &Declaration) -> Result<Kind, ConnectorError> {
    let given = declaration.options.get("type").unwrap_or("all");
    match given.to_lowercase().as_str() {
        "all" => Ok(Kind::All),
        "person" => Ok(Kind::One(EventType::Person)),
        "auction" => Ok(Kind::One(EventType::Auction)),
        "bid" => Ok(Kind::One(EventType::Bid)),
        _ => Err(ConnectorError::bad_option("type", given, "all, person, auction or bid")),
    }
}

impl Connector for NexmarkConnector {
    fn desc(&self) -> &ConnectorDesc {
        &self.desc
    }

    fn carried_schema(&self, declaration: &Declaration) -> Result<Schema, ConnectorError> {
        Ok(kind(declaration)?.schema())
    }

    fn source(&self, declaration: &Declaration) -> Result<Box<dyn Source>, ConnectorError> {
        let per_trigger = positive(&declaration.options, "maxEventsPerTrigger")?;
        Ok(Box::new(NexmarkSource { stream: Stream::new(declaration)?, per_trigger }))
    }

    fn table(&self, declaration: &Declaration) -> Result<Box<dyn StaticTable>, ConnectorError> {
        Ok(Box::new(NexmarkTable(Stream::new(declaration)?)))
    }
}

struct NexmarkTable(Stream);

impl StaticTable for NexmarkTable {
    fn schema(&self) -> &Schema {
        &self.0.schema
    }

    fn splits(&self, projection: &[u32]) -> Result<Vec<Box<dyn Split>>, ConnectorError> {
        Ok(self.0.splits(0, self.0.events, projection))
    }
}

struct NexmarkSource {
    stream: Stream,
    per_trigger: Option<u64>,
}

/// Events taken up to that offset.
fn taken(offset: Option<&Offset>) -> Result<u64, ConnectorError> {
    let Some(offset) = offset else { return Ok(0) };
    let taken = offset.as_i64().and_then(|n| u64::try_from(n).ok()).filter(|n| *n <= MAX_EVENTS);
    taken.ok_or_else(|| {
        let message = format!("`{offset}` is no offset of a nexmark source");
        ConnectorError::new("STREAM_FAILED", Domain::Internal, message)
    })
}

impl Source for NexmarkSource {
    fn schema(&self) -> &Schema {
        &self.stream.schema
    }

    fn description(&self) -> String {
        format!("Nexmark[{:?}, {} events]", self.stream.kind, self.stream.events)
    }

    fn restore(&mut self, _restored: Restored) -> Result<(), ConnectorError> {
        Ok(())
    }

    fn latest(
        &mut self,
        start: Option<&Offset>,
        limit: ReadLimit,
        _now_micros: i64,
    ) -> Result<Option<Batch>, ConnectorError> {
        let from = taken(start)?;
        let most = match limit {
            ReadLimit::Options => self.per_trigger.unwrap_or(u64::MAX),
            ReadLimit::Everything => u64::MAX,
        };
        let end = self.stream.events.min(from.saturating_add(most));
        Ok((end > from).then(|| Batch { end: Offset::from(end as i64), log_entry: None }))
    }

    fn freeze(&mut self, _now_micros: i64) -> Result<(), ConnectorError> {
        // The events are all there from the beginning.
        Ok(())
    }

    fn splits(
        &mut self,
        start: Option<&Offset>,
        end: &Offset,
        projection: &[u32],
    ) -> Result<Vec<Box<dyn Split>>, ConnectorError> {
        let (from, to) = (taken(start)?, taken(Some(end))?);
        Ok(self.stream.splits(from, to.max(from), projection))
    }

    fn committed(&mut self, _end: &Offset) -> Result<(), ConnectorError> {
        Ok(())
    }

    fn newest(&self) -> Option<Offset> {
        Some(Offset::from(self.stream.events as i64))
    }
}

struct NexmarkSplit {
    stream: Stream,
    /// Numbers among the events of the stream's kind.
    numbers: std::ops::Range<u64>,
    projection: Vec<u32>,
}

impl Split for NexmarkSplit {
    fn read(
        &mut self,
        deliver: &mut dyn FnMut(RecordBatch) -> Result<(), Box<dyn std::error::Error + Send + Sync>>,
    ) -> Result<SplitStats, Box<dyn std::error::Error + Send + Sync>> {
        let Stream { kind, schema, config, .. } = &self.stream;
        let fields: Vec<_> = self.projection.iter().map(|i| schema.fields[*i as usize].clone()).collect();
        let schema = batch_schema(&fields);
        let mut stats = SplitStats::default();
        while self.numbers.start < self.numbers.end {
            let to = self.numbers.end.min(self.numbers.start + MAX_BATCH_ROWS as u64);
            let rows = to - self.numbers.start;
            let columns = events::arrays(config, *kind, self.numbers.start..to, &self.projection);
            deliver(batch(&schema, columns, rows as usize))?;
            stats.rows += rows;
            self.numbers.start = to;
        }
        Ok(stats)
    }
}

#[cfg(test)]
mod tests;
