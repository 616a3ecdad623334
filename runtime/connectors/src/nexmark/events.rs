//! Columns of the Nexmark events, and the events of a range as Arrow arrays.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, Int64Array, StringViewArray, StructArray, TimestampMicrosecondArray};
use arrow::buffer::NullBuffer;
use nexmark::EventGenerator;
use nexmark::config::NexmarkConfig;
use nexmark::event::{Auction, Bid, Event, EventType, Person};
use ssql_ir::{DataType, Field, Schema};

/// Events repeat their kinds after so many: one person, three auctions, then bids.
const CYCLE: u64 = 50;
/// Persons of a cycle, which come first.
const PERSONS: u64 = 1;
/// Auctions of a cycle, which come next.
const AUCTIONS: u64 = 3;

/// Which events a relation has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// One kind, its members as columns.
    One(EventType),
    /// Every event, each kind as a struct that is NULL for the others.
    All,
}

impl Kind {
    /// How many events of this kind are among the first `events` events.
    pub(super) fn count(self, events: u64) -> u64 {
        let (cycles, rest) = (events / CYCLE, events % CYCLE);
        match self {
            Kind::All => events,
            Kind::One(EventType::Person) => cycles * PERSONS + rest.min(PERSONS),
            Kind::One(EventType::Auction) => cycles * AUCTIONS + rest.saturating_sub(PERSONS).min(AUCTIONS),
            Kind::One(EventType::Bid) => {
                cycles * (CYCLE - PERSONS - AUCTIONS) + rest.saturating_sub(PERSONS + AUCTIONS)
            }
        }
    }

    pub(super) fn schema(self) -> Schema {
        let schema = |columns: &[Column]| columns.iter().map(Column::field).collect::<Vec<_>>();
        Schema::new(match self {
            Kind::One(event_type) => schema(columns(event_type)),
            Kind::All => {
                let nested =
                    |name: &str, event_type| Field::new(name, DataType::Struct(schema(columns(event_type))), true);
                vec![
                    Field::new("event_type", DataType::Int32, true),
                    nested("person", EventType::Person),
                    nested("auction", EventType::Auction),
                    nested("bid", EventType::Bid),
                    Field::new("dateTime", DataType::Timestamp, true),
                ]
            }
        })
    }
}

/// How a member of an event is had; `None` where the event is of another kind.
enum Value {
    Long(fn(&Event) -> Option<usize>),
    Text(fn(&Event) -> Option<&str>),
    /// Milliseconds since 1970.
    Time(fn(&Event) -> Option<u64>),
}

/// A column by its name in the benchmark's SQL.
struct Column {
    name: &'static str,
    value: Value,
}

impl Column {
    fn field(&self) -> Field {
        let data_type = match self.value {
            Value::Long(_) => DataType::Int64,
            Value::Text(_) => DataType::String,
            Value::Time(_) => DataType::Timestamp,
        };
        Field::new(self.name, data_type, true)
    }

    fn array(&self, events: &[Event]) -> ArrayRef {
        match self.value {
            Value::Long(of) => Arc::new(events.iter().map(|e| of(e).map(|v| v as i64)).collect::<Int64Array>()),
            Value::Text(of) => Arc::new(events.iter().map(of).collect::<StringViewArray>()),
            Value::Time(of) => times(events.iter().map(of)),
        }
    }
}

fn times(millis: impl Iterator<Item = Option<u64>>) -> ArrayRef {
    let micros: TimestampMicrosecondArray = millis.map(|v| v.map(|v| v as i64 * 1_000)).collect();
    Arc::new(micros.with_timezone("UTC"))
}

fn person(e: &Event) -> Option<&Person> {
    if let Event::Person(p) = e { Some(p) } else { None }
}

fn auction(e: &Event) -> Option<&Auction> {
    if let Event::Auction(a) = e { Some(a) } else { None }
}

fn bid(e: &Event) -> Option<&Bid> {
    if let Event::Bid(b) = e { Some(b) } else { None }
}

static PERSON: [Column; 8] = [
    Column { name: "id", value: Value::Long(|e| person(e).map(|p| p.id)) },
    Column { name: "name", value: Value::Text(|e| person(e).map(|p| p.name.as_str())) },
    Column { name: "emailAddress", value: Value::Text(|e| person(e).map(|p| p.email_address.as_str())) },
    Column { name: "creditCard", value: Value::Text(|e| person(e).map(|p| p.credit_card.as_str())) },
    Column { name: "city", value: Value::Text(|e| person(e).map(|p| p.city.as_str())) },
    Column { name: "state", value: Value::Text(|e| person(e).map(|p| p.state.as_str())) },
    Column { name: "dateTime", value: Value::Time(|e| person(e).map(|p| p.date_time)) },
    Column { name: "extra", value: Value::Text(|e| person(e).map(|p| p.extra.as_str())) },
];

static AUCTION: [Column; 10] = [
    Column { name: "id", value: Value::Long(|e| auction(e).map(|a| a.id)) },
    Column { name: "itemName", value: Value::Text(|e| auction(e).map(|a| a.item_name.as_str())) },
    Column { name: "description", value: Value::Text(|e| auction(e).map(|a| a.description.as_str())) },
    Column { name: "initialBid", value: Value::Long(|e| auction(e).map(|a| a.initial_bid)) },
    Column { name: "reserve", value: Value::Long(|e| auction(e).map(|a| a.reserve)) },
    Column { name: "dateTime", value: Value::Time(|e| auction(e).map(|a| a.date_time)) },
    Column { name: "expires", value: Value::Time(|e| auction(e).map(|a| a.expires)) },
    Column { name: "seller", value: Value::Long(|e| auction(e).map(|a| a.seller)) },
    Column { name: "category", value: Value::Long(|e| auction(e).map(|a| a.category)) },
    Column { name: "extra", value: Value::Text(|e| auction(e).map(|a| a.extra.as_str())) },
];

static BID: [Column; 7] = [
    Column { name: "auction", value: Value::Long(|e| bid(e).map(|b| b.auction)) },
    Column { name: "bidder", value: Value::Long(|e| bid(e).map(|b| b.bidder)) },
    Column { name: "price", value: Value::Long(|e| bid(e).map(|b| b.price)) },
    Column { name: "channel", value: Value::Text(|e| bid(e).map(|b| b.channel.as_str())) },
    Column { name: "url", value: Value::Text(|e| bid(e).map(|b| b.url.as_str())) },
    Column { name: "dateTime", value: Value::Time(|e| bid(e).map(|b| b.date_time)) },
    Column { name: "extra", value: Value::Text(|e| bid(e).map(|b| b.extra.as_str())) },
];

fn columns(event_type: EventType) -> &'static [Column] {
    match event_type {
        EventType::Person => &PERSON,
        EventType::Auction => &AUCTION,
        EventType::Bid => &BID,
    }
}

fn words(text: &str) -> Vec<String> {
    text.split(',').map(str::to_owned).collect()
}

/// The generator's configuration: its defaults with the names as the benchmark writes them (the crate's are lower case,
/// so that a filter on a state would find nothing), and a fixed beginning.
pub(super) fn config(base_millis: u64, events_per_second: u64) -> NexmarkConfig {
    NexmarkConfig {
        base_time: base_millis,
        first_rate: events_per_second as usize,
        next_rate: events_per_second as usize,
        us_states: words("AZ,CA,ID,OR,WA,WY"),
        us_cities: words("Phoenix,Los Angeles,San Francisco,Boise,Portland,Bend,Redmond,Seattle,Kent,Cheyenne"),
        first_names: words("Peter,Paul,Luke,John,Saul,Vicky,Kate,Julie,Sarah,Deiter,Walter"),
        last_names: words("Shultz,Abrams,Spencer,White,Bartels,Walton,Smith,Jones,Noris"),
        ..NexmarkConfig::default()
    }
}

/// Events of a kind, by their numbers within it, as the columns asked for. The same numbers give the same events always.
pub(super) fn arrays(config: &NexmarkConfig, kind: Kind, numbers: Range<u64>, projection: &[u32]) -> Vec<ArrayRef> {
    let mut generator = EventGenerator::new(config.clone()).with_offset(numbers.start);
    if let Kind::One(event_type) = kind {
        generator = generator.with_type_filter(event_type);
    }
    let events: Vec<Event> = generator.take((numbers.end - numbers.start) as usize).collect();
    projection
        .iter()
        .map(|i| match (kind, *i) {
            (Kind::One(event_type), i) => columns(event_type)[i as usize].array(&events),
            (Kind::All, 0) => Arc::new(events.iter().map(|e| Some(e.event_type() as i32)).collect::<Int32Array>()),
            (Kind::All, 1) => structs(EventType::Person, &events),
            (Kind::All, 2) => structs(EventType::Auction, &events),
            (Kind::All, 3) => structs(EventType::Bid, &events),
            (Kind::All, _) => times(events.iter().map(|e| Some(e.timestamp()))),
        })
        .collect()
}

fn structs(event_type: EventType, events: &[Event]) -> ArrayRef {
    let columns = columns(event_type);
    let fields = columns.iter().map(|c| ssql_stdlib::arrow_field(&c.field())).collect::<Vec<_>>().into();
    let arrays = columns.iter().map(|c| c.array(events)).collect();
    let valid = NullBuffer::from_iter(events.iter().map(|e| e.event_type() == event_type));
    Arc::new(StructArray::new(fields, arrays, Some(valid)))
}
