//! Counting of kinds, and equal rows for any cut of the same events.

use arrow::array::AsArray;
use arrow::compute::concat_batches;
use arrow::datatypes::Int64Type;

use super::*;

fn stream(kind: Kind) -> Stream {
    Stream { kind, schema: kind.schema(), config: events::config(0, 10_000), events: 1_000 }
}

fn rows(source: &mut NexmarkSource, cuts: &[i64]) -> RecordBatch {
    let projection: Vec<u32> = (0..source.stream.schema.fields.len() as u32).collect();
    let mut batches = Vec::new();
    for pair in cuts.windows(2) {
        let (start, end) = (Offset::from(pair[0]), Offset::from(pair[1]));
        for mut split in source.splits(Some(&start), &end, &projection).expect("splits") {
            split
                .read(&mut |batch| {
                    batches.push(batch);
                    Ok(())
                })
                .expect("read");
        }
    }
    concat_batches(&batches[0].schema(), &batches).expect("one schema")
}

#[test]
fn any_cut_gives_the_same_events_in_order() {
    for kind in [Kind::All, Kind::One(EventType::Person), Kind::One(EventType::Auction), Kind::One(EventType::Bid)] {
        let mut source = NexmarkSource { stream: stream(kind), per_trigger: None };
        let whole = rows(&mut source, &[0, 1_000]);
        assert_eq!(whole.num_rows() as u64, kind.count(1_000));
        assert_eq!(rows(&mut source, &[0, 1, 2, 7, 51, 54, 333, 999, 1_000]), whole, "{kind:?}");
    }
}

#[test]
fn the_nested_form_holds_what_the_plain_ones_hold() {
    let all = rows(&mut NexmarkSource { stream: stream(Kind::All), per_trigger: None }, &[0, 1_000]);
    for (column, event_type) in [(1, EventType::Person), (2, EventType::Auction), (3, EventType::Bid)] {
        let plain = stream(Kind::One(event_type));
        let plain = rows(&mut NexmarkSource { stream: plain, per_trigger: None }, &[0, 1_000]);
        let nested = all.column(column).as_struct();
        let ids = nested.column(0).as_primitive::<Int64Type>();
        let nested: Vec<i64> = (0..1_000).filter(|i| all.column(column).is_valid(*i)).map(|i| ids.value(i)).collect();
        assert_eq!(nested, plain.column(0).as_primitive::<Int64Type>().values().to_vec());
    }
}

#[test]
fn a_stream_ends_and_keeps_to_its_limit() {
    let mut source = NexmarkSource { stream: stream(Kind::All), per_trigger: Some(600) };
    let first = source.latest(None, ReadLimit::Options, 0).expect("polled").expect("events");
    assert_eq!(first.end, Offset::from(600));
    let second = source.latest(Some(&first.end), ReadLimit::Options, 0).expect("polled").expect("events");
    assert_eq!(second.end, Offset::from(1_000));
    assert_eq!(source.latest(Some(&second.end), ReadLimit::Options, 0).expect("polled"), None);
}
