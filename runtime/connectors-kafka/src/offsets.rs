//! Positions in topics: Spark's JSON form of them, and how much of them one micro-batch takes.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// A partition of a topic.
pub(crate) type Partition = (String, i32);

/// For each partition the offset of the next message.
pub(crate) type Positions = BTreeMap<Partition, i64>;

/// `{"topic":{"0":12}}`.
pub(crate) fn to_json(positions: &Positions) -> Value {
    let mut topics = Map::new();
    for ((topic, partition), offset) in positions {
        let partitions = topics.entry(topic.as_str()).or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(partitions) = partitions {
            partitions.insert(partition.to_string(), Value::from(*offset));
        }
    }
    Value::Object(topics)
}

/// Reads what [`to_json`] writes; `None` if it is something else.
pub(crate) fn from_json(value: &Value) -> Option<Positions> {
    let mut positions = Positions::new();
    for (topic, partitions) in value.as_object()? {
        for (partition, offset) in partitions.as_object()? {
            positions.insert((topic.clone(), partition.parse().ok()?), offset.as_i64()?);
        }
    }
    Some(positions)
}

/// Messages from `start` to `end`, by offsets: gaps count.
pub(crate) fn distance(start: &Positions, end: &Positions) -> u64 {
    end.iter().map(|(p, e)| u64::try_from(e - start.get(p).unwrap_or(e)).unwrap_or(0)).sum()
}

/// Where a batch of at most about `limit` messages ends: each partition gives its share by what it has, as in Spark.
pub(crate) fn limited(start: &Positions, end: &Positions, limit: u64) -> Positions {
    let total = distance(start, end);
    if total <= limit {
        return end.clone();
    }
    let share = |(partition, end): (&Partition, &i64)| {
        let begin = *start.get(partition).unwrap_or(end);
        let size = (end - begin).max(0);
        let part = limit as f64 * (size as f64 / total as f64);
        // Less than one message rounds up, or a small partition would never move.
        let part = if part < 1.0 { part.ceil() } else { part.floor() };
        (partition.clone(), begin.saturating_add(part as i64).min(*end))
    };
    end.iter().map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(list: &[(&str, i32, i64)]) -> Positions {
        list.iter().map(|(t, p, o)| (((*t).to_string(), *p), *o)).collect()
    }

    #[test]
    fn positions_have_sparks_json_form() {
        let all = positions(&[("a", 0, 1), ("a", 10, 3), ("a", 2, 2), ("b", 0, 9)]);
        let json = to_json(&all);
        assert_eq!(json.to_string(), r#"{"a":{"0":1,"2":2,"10":3},"b":{"0":9}}"#);
        assert_eq!(from_json(&json), Some(all));
        assert_eq!(from_json(&Value::from(3)), None);
    }

    #[test]
    fn a_limit_is_shared_by_what_partitions_have() {
        let start = positions(&[("a", 0, 0), ("a", 1, 0), ("a", 2, 5)]);
        let end = positions(&[("a", 0, 900), ("a", 1, 1), ("a", 2, 104)]);
        assert_eq!(limited(&start, &end, 100), positions(&[("a", 0, 90), ("a", 1, 1), ("a", 2, 14)]));
        assert_eq!(limited(&start, &end, 1000), end);
        assert_eq!(distance(&start, &end), 1000);
    }
}
