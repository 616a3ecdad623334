//! The options of the source and the sink, described and read.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use ssql_connectors::desc::{defaulted, duration, option, positive};
use ssql_engine::connector::{ConnectorError, Options};
use ssql_ir::{OptionDesc, OptionKind, OptionScope};

use crate::client::{EARLIEST, LATEST, Subscription};
use crate::offsets::{Positions, from_json};

/// Where reading begins or ends.
#[derive(Debug, Clone)]
pub(crate) enum Bound {
    /// At the first message that there is.
    Earliest,
    /// After the last message that there is.
    Latest,
    /// At these offsets; -1 is the latest, -2 the earliest.
    Offsets(Positions),
    /// At the first message of this time or later, in milliseconds.
    Timestamp(i64),
    /// The same by partition.
    Timestamps(Positions),
}

/// What is read, and how much at a time.
#[derive(Debug, Clone)]
pub(crate) struct ReadOptions {
    pub(crate) subscription: Subscription,
    pub(crate) start: Bound,
    pub(crate) end: Bound,
    /// Without a message that young, a start by time is the end of the partition instead of an error.
    pub(crate) start_latest: bool,
    pub(crate) max_offsets: Option<u64>,
    pub(crate) min_offsets: Option<u64>,
    /// Microseconds after which a batch is made of fewer than `min_offsets`.
    pub(crate) max_delay: i64,
    pub(crate) fail_on_data_loss: bool,
    pub(crate) headers: bool,
    /// Values are parsed as JSON into the declared columns.
    pub(crate) json: bool,
    /// How long brokers may be silent.
    pub(crate) patience: Duration,
    pub(crate) group_prefix: String,
}

impl ReadOptions {
    /// Reads the options of a stream (`batch` false) or a table.
    pub(crate) fn new(options: &Options, batch: bool) -> Result<ReadOptions, ConnectorError> {
        let patience = options.integer("kafkaConsumer.pollTimeoutMs", 120_000)?;
        let start = bound(options, "starting", if batch { Bound::Earliest } else { Bound::Latest })?;
        let end = bound(options, "ending", Bound::Latest)?;
        if batch && matches!(start, Bound::Latest) {
            return Err(ConnectorError::bad_option("startingOffsets", "latest", "earliest or JSON for a table"));
        }
        if matches!(end, Bound::Earliest) {
            return Err(ConnectorError::bad_option("endingOffsets", "earliest", "latest or JSON"));
        }
        let strategy = options.get("startingOffsetsByTimestampStrategy").unwrap_or("error").to_lowercase();
        Ok(ReadOptions {
            subscription: subscription(options)?,
            start,
            end,
            start_latest: strategy == "latest",
            max_offsets: positive(options, "maxOffsetsPerTrigger")?,
            min_offsets: positive(options, "minOffsetsPerTrigger")?,
            max_delay: duration(options, "maxTriggerDelay", 1_000, 900_000_000)?,
            fail_on_data_loss: options.boolean("failOnDataLoss", true)?,
            headers: options.boolean("includeHeaders", false)?,
            json: options.get("format").is_some_and(|f| f.eq_ignore_ascii_case("json")),
            patience: Duration::from_millis(patience.max(1)),
            group_prefix: options.get("groupIdPrefix").unwrap_or("ssql-kafka-source").to_string(),
        })
    }
}

fn subscription(options: &Options) -> Result<Subscription, ConnectorError> {
    let given: Vec<&str> =
        ["subscribe", "subscribePattern", "assign"].into_iter().filter(|name| options.get(name).is_some()).collect();
    let [name] = given[..] else {
        let what = "to be the only one of subscribe, subscribePattern and assign";
        return Err(ConnectorError::bad_option(given.first().unwrap_or(&"subscribe"), &given.join(", "), what));
    };
    let text = options.get(name).unwrap_or_default().trim();
    match name {
        "subscribe" => {
            let topics: Vec<String> =
                text.split(',').map(str::trim).filter(|t| !t.is_empty()).map(str::to_string).collect();
            if topics.is_empty() {
                return Err(ConnectorError::bad_option(name, text, "names of topics, separated by commas"));
            }
            Ok(Subscription::Topics(topics))
        }
        "subscribePattern" => {
            // Java's subscribe takes a pattern for the whole name.
            let pattern = regex::Regex::new(&format!("^(?:{text})$"));
            let bad = |_| ConnectorError::bad_option(name, text, "a regular expression for names of topics");
            Ok(Subscription::Pattern(text.to_string(), pattern.map_err(bad)?))
        }
        _ => {
            let bad = || ConnectorError::bad_option(name, text, r#"JSON such as {"topic":[0,1]}"#);
            let json: Value = serde_json::from_str(text).map_err(|_| bad())?;
            let mut partitions = Vec::new();
            for (topic, list) in json.as_object().ok_or_else(bad)? {
                for partition in list.as_array().ok_or_else(bad)? {
                    let number = partition.as_i64().and_then(|p| i32::try_from(p).ok()).filter(|p| *p >= 0);
                    partitions.push((topic.clone(), number.ok_or_else(bad)?));
                }
            }
            if partitions.is_empty() {
                return Err(bad());
            }
            Ok(Subscription::Partitions(partitions))
        }
    }
}

/// `startingTimestamp` goes before `startingOffsetsByTimestamp`, and that before `startingOffsets`, as in Spark.
fn bound(options: &Options, side: &str, default: Bound) -> Result<Bound, ConnectorError> {
    let name = format!("{side}Timestamp");
    if let Some(text) = options.get(&name) {
        let time = text.trim().parse().ok().filter(|t: &i64| *t >= 0);
        let bad = || ConnectorError::bad_option(&name, text, "milliseconds since 1970");
        return Ok(Bound::Timestamp(time.ok_or_else(bad)?));
    }
    let json = |name: &str, text: &str| {
        let positions = serde_json::from_str(text).ok().and_then(|v: Value| from_json(&v));
        positions.ok_or_else(|| ConnectorError::bad_option(name, text, r#"JSON such as {"topic":{"0":23}}"#))
    };
    let name = format!("{side}OffsetsByTimestamp");
    if let Some(text) = options.get(&name) {
        return Ok(Bound::Timestamps(json(&name, text)?));
    }
    let name = format!("{side}Offsets");
    match options.get(&name).map(str::trim) {
        None => Ok(default),
        Some(text) if text.eq_ignore_ascii_case("earliest") => Ok(Bound::Earliest),
        Some(text) if text.eq_ignore_ascii_case("latest") => Ok(Bound::Latest),
        Some(text) => {
            let positions = json(&name, text)?;
            let lowest = if side == "ending" { LATEST } else { EARLIEST };
            if positions.values().any(|o| *o < lowest) {
                let what = "offsets, -1 for latest, and -2 for earliest where reading begins";
                return Err(ConnectorError::bad_option(&name, text, what));
            }
            Ok(Bound::Offsets(positions))
        }
    }
}

/// Times by partition, of [`Bound`]s that ask for one; a partition without a time is not in it.
pub(crate) fn times(
    bound: &Bound,
    partitions: &[crate::offsets::Partition],
) -> BTreeMap<crate::offsets::Partition, i64> {
    let of = |p: &crate::offsets::Partition| match bound {
        Bound::Earliest => Some(EARLIEST),
        Bound::Latest => Some(LATEST),
        Bound::Offsets(given) => given.get(p).copied().filter(|o| *o < 0),
        Bound::Timestamp(time) => Some(*time),
        Bound::Timestamps(given) => given.get(p).copied(),
    };
    partitions.iter().filter_map(|p| Some((p.clone(), of(p)?))).collect()
}

/// The options as they are described to users.
pub(crate) fn describe() -> Vec<OptionDesc> {
    use OptionKind::{Boolean, Duration, Integer, OneOf, Text};
    use OptionScope::{Both, Read, Stream, Write};
    let servers = OptionDesc {
        name: "kafka.bootstrap.servers",
        kind: Text,
        required: true,
        default: None,
        applies: Both,
        doc: "Addresses of brokers, `host:port` separated by commas.",
    };
    let mut options = vec![
        servers,
        option("kafka.*", Text, Both, "Any option of librdkafka, TLS and SASL among them; values are never shown."),
        option("subscribe", Text, Read, "Topics, separated by commas."),
        option("subscribePattern", Text, Read, "Regular expression for the whole name of a topic."),
        option("assign", Text, Read, "Partitions, as `{\"topic\":[0,1]}`."),
        option(
            "startingOffsets",
            Text,
            Read,
            "earliest, latest, or `{\"topic\":{\"0\":23}}` with -2 for earliest and -1 for latest; latest for a stream, earliest for a table.",
        ),
        option("startingTimestamp", Text, Read, "Begins at the first message of that time, in milliseconds."),
        option("startingOffsetsByTimestamp", Text, Read, "The same by partition, `{\"topic\":{\"0\":1700000000000}}`."),
        defaulted(
            "startingOffsetsByTimestampStrategy",
            OneOf(&["error", "latest"]),
            "error",
            Read,
            "Where no message is as young: an error, or the end.",
        ),
        // Static tables end somewhere; for streams these are read and have no meaning, so they are refused there.
        defaulted("endingOffsets", Text, "latest", Read, "Tables: latest, or JSON as for startingOffsets."),
        option("endingTimestamp", Text, Read, "Tables: ends before the first message of that time, in milliseconds."),
        option("endingOffsetsByTimestamp", Text, Read, "Tables: the same by partition."),
        option("maxOffsetsPerTrigger", Integer, Stream, "Most offsets in one micro-batch, shared among partitions."),
        option(
            "minOffsetsPerTrigger",
            Integer,
            Stream,
            "Fewest offsets that make a micro-batch before maxTriggerDelay.",
        ),
        defaulted("maxTriggerDelay", Duration, "15m", Stream, "Longest wait for minOffsetsPerTrigger."),
        defaulted(
            "failOnDataLoss",
            Boolean,
            "true",
            Read,
            "Offsets that were deleted before they were read are an error.",
        ),
        defaulted("includeHeaders", Boolean, "false", Read, "Adds the column `headers`."),
        defaulted(
            "groupIdPrefix",
            Text,
            "ssql-kafka-source",
            Read,
            "How the group id begins; kafka.group.id sets it whole.",
        ),
        defaulted(
            "kafkaConsumer.pollTimeoutMs",
            Integer,
            "120000",
            Read,
            "How long brokers may be silent before the query fails.",
        ),
        option("format", OneOf(&["json"]), Read, "Values are parsed into the declared columns."),
        option("topic", Text, Write, "Topic of all rows; without it the column `topic` says."),
        defaulted(
            "deliveryGuarantee",
            OneOf(&["at-least-once", "exactly-once"]),
            "at-least-once",
            Write,
            "exactly-once writes each micro-batch in a transaction; it needs `topic`.",
        ),
    ];
    // How values are parsed is said with the options of JSON files.
    let json = ssql_connectors::FileConnector::new(ssql_connectors::Format::Json);
    let file_only = ["encoding", "charset", "multiLine", "maxRecordBytes", "maxDecompressedBytes"];
    let descs = ssql_engine::connector::Connector::desc(&json).options.clone();
    let after_files = descs.into_iter().skip_while(|o| o.name != "mode");
    options.extend(
        after_files
            .filter(|o| o.applies != Write && !file_only.contains(&o.name))
            .map(|o| OptionDesc { applies: Read, ..o }),
    );
    options
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn options(pairs: &[(&str, &str)]) -> Options {
        Options::new(pairs.iter().map(|(k, v)| ((*k).to_string(), (*v).to_string())))
    }

    #[test]
    fn the_documentation_has_every_option() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/connectors.md");
        let text = std::fs::read_to_string(path).unwrap();
        let (_, kafka) = text.split_once("\n## kafka\n").unwrap();
        let of_json = describe().iter().position(|o| o.name == "mode").unwrap();
        for option in &describe()[..of_json] {
            assert!(kafka.contains(&format!("`{}`", option.name)), "{} is not in spec/connectors.md", option.name);
        }
    }

    #[test]
    fn bounds_are_read_as_in_spark() {
        let read = |pairs: &[(&str, &str)], batch| {
            let mut all = vec![("subscribe", "a, b")];
            all.extend(pairs);
            ReadOptions::new(&options(&all), batch)
        };
        assert!(matches!(read(&[], false).unwrap().start, Bound::Latest));
        assert!(matches!(read(&[], true).unwrap().start, Bound::Earliest));
        let both = [("startingTimestamp", "5"), ("startingOffsets", "earliest")];
        assert!(matches!(read(&both, false).unwrap().start, Bound::Timestamp(5)));
        let json = [("startingOffsets", r#"{"a":{"0":-2,"1":7}}"#)];
        let Bound::Offsets(given) = read(&json, false).unwrap().start else { panic!("offsets") };
        assert_eq!(given[&("a".to_string(), 1)], 7);
        for wrong in [
            ("startingOffsets", "newest"),
            ("startingOffsets", r#"{"a":{"0":-3}}"#),
            ("endingOffsets", "earliest"),
            ("startingTimestamp", "x"),
        ] {
            assert!(read(&[wrong], false).is_err(), "{wrong:?}");
        }
        assert!(read(&[("startingOffsets", "latest")], true).is_err());
        assert!(ReadOptions::new(&options(&[("assign", "{}")]), false).is_err());
        assert!(ReadOptions::new(&options(&[]), false).is_err());
        assert!(ReadOptions::new(&options(&[("assign", r#"{"a":[0]}"#), ("subscribe", "a")]), false).is_err());
    }
}
