//! Topics as a stream, and as a table.
//!
//! The offset of the stream is what Spark shows: for each partition the offset of its next message. Where a partition
//! begins goes into the log entry of the batch that first meets it, so that `latest` and a time mean the same after a
//! restart. Nothing is ever kept in the consumer group.

use std::collections::BTreeMap;
use std::sync::Arc;

use ssql_engine::connector::{
    Batch, Compactor, ConnectorError, Declaration, Domain, Offset, ReadLimit, Restored, Source, Split, StaticTable,
};
use ssql_ir::Schema;

use crate::client::{Client, EARLIEST, LATEST, Subscription, config, set_default};
use crate::columns::Layout;
use crate::offsets::{Partition, Positions, distance, from_json, limited, to_json};
use crate::options::{Bound, ReadOptions, times};
use crate::read::{PartitionSplit, Pool, data_loss, missing};

/// What stream and table share.
struct Topics {
    options: ReadOptions,
    layout: Arc<Layout>,
    client: Arc<Client>,
    pool: Arc<Pool>,
}

impl Topics {
    fn new(declaration: &Declaration, batch: bool) -> Result<Topics, ConnectorError> {
        let options = ReadOptions::new(&declaration.options, batch)?;
        let mut client = config(&declaration.options)?;
        let unique = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_nanos());
        let group = format!("{}-{}-{unique}", options.group_prefix, std::process::id());
        set_default(&mut client, "group.id", &group);
        // The defaults of Java's client, thus of Spark.
        set_default(&mut client, "isolation.level", "read_uncommitted");
        set_default(&mut client, "allow.auto.create.topics", "false");
        set_default(&mut client, "queued.max.messages.kbytes", "32768");
        set_default(&mut client, "fetch.wait.max.ms", "50");
        client.set("enable.auto.commit", "false");
        client.set("enable.auto.offset.store", "false");
        client.set("auto.offset.reset", "error");
        client.set("enable.partition.eof", "true");
        Ok(Topics {
            layout: Arc::new(Layout::new(declaration, options.json, options.headers)?),
            client: Arc::new(Client::new(&client, options.patience)?),
            pool: Arc::new(Pool::new(client)),
            options,
        })
    }

    /// The positions that `bound` means for these partitions.
    fn resolve(&self, bound: &Bound, partitions: &[Partition], ending: bool) -> Result<Positions, ConnectorError> {
        if let Bound::Offsets(given) | Bound::Timestamps(given) = bound {
            let there: Vec<&Partition> = partitions.iter().collect();
            let named: Vec<&Partition> = given.keys().collect();
            if there != named {
                let names =
                    |list: &[&Partition]| list.iter().map(|(t, p)| format!("{t}-{p}")).collect::<Vec<_>>().join(", ");
                let message = format!(
                    "offsets have to be given for all partitions and for no others: there are [{}], given are [{}]",
                    names(&there),
                    names(&named)
                );
                return Err(ConnectorError::new("INVALID_OPTION_VALUE", Domain::User, message));
            }
        }
        let asked = times(bound, partitions);
        let found = self.client.offsets(&asked)?;
        let mut positions = Positions::new();
        let mut none = Vec::new();
        for partition in partitions {
            match (found.get(partition), bound) {
                (Some(Some(offset)), _) => drop(positions.insert(partition.clone(), *offset)),
                (Some(None), _) => none.push(partition.clone()),
                (None, Bound::Offsets(given)) => drop(positions.insert(partition.clone(), given[partition])),
                (None, _) => {}
            }
        }
        if let Some((topic, partition)) = none.first()
            && !ending
            && !self.options.start_latest
        {
            let message = format!("topic {topic} partition {partition} has no message of the starting time or later");
            return Err(ConnectorError::new("INVALID_OPTION_VALUE", Domain::User, message)
                .with_help("startingOffsetsByTimestampStrategy 'latest' begins at the end of such a partition"));
        }
        positions.extend(self.client.bounds(&none, LATEST)?);
        Ok(positions)
    }

    fn partitions(&self) -> Result<Vec<Partition>, ConnectorError> {
        let partitions = self.client.partitions(&self.options.subscription)?;
        if let Subscription::Topics(topics) = &self.options.subscription
            && let Some(absent) = topics.iter().find(|t| !partitions.iter().any(|(topic, _)| topic == *t))
        {
            let message = format!("there is no topic `{absent}`");
            return Err(ConnectorError::new("STREAM_FAILED", Domain::External, message)
                .with_help("create it, or use subscribePattern for topics that are to come"));
        }
        Ok(partitions)
    }

    /// Fails, or says in the log, that these ranges are gone.
    fn lost(&self, ranges: &[String]) -> Result<(), ConnectorError> {
        match ranges.is_empty() {
            true => Ok(()),
            false if self.options.fail_on_data_loss => Err(data_loss(ranges)),
            false => {
                tracing::warn!(target: "kafka", "passed over deleted offsets: {}", ranges.join("; "));
                Ok(())
            }
        }
    }

    /// A split for each partition that has something from `start` to `end`.
    fn splits(
        &self,
        start: &Positions,
        end: &Positions,
        projection: &[u32],
    ) -> Result<Vec<Box<dyn Split>>, ConnectorError> {
        let ranges: Vec<(&Partition, i64, i64)> =
            end.iter().filter_map(|(p, e)| start.get(p).filter(|s| *s < e).map(|s| (p, *s, *e))).collect();
        let first = self.client.bounds(ranges.iter().map(|(p, ..)| *p), EARLIEST)?;
        let mut gone = Vec::new();
        let mut splits: Vec<Box<dyn Split>> = Vec::new();
        for (partition, mut start, end) in ranges {
            let first = first.get(partition).copied().unwrap_or(start);
            if start < first {
                gone.push(missing(partition, start, first.min(end)));
                start = first;
            }
            if start < end {
                splits.push(Box::new(PartitionSplit {
                    pool: self.pool.clone(),
                    client: self.client.clone(),
                    layout: self.layout.clone(),
                    projection: projection.to_vec(),
                    partition: partition.clone(),
                    start,
                    end,
                    patience: self.options.patience,
                    fail_on_data_loss: self.options.fail_on_data_loss,
                }));
            }
        }
        self.lost(&gone)?;
        Ok(splits)
    }
}

/// Topics as a stream.
pub(crate) struct KafkaSource {
    topics: Topics,
    /// Where each partition began that this query ever met.
    began: Positions,
    /// The newest ends known.
    newest: Positions,
    frozen: Option<Positions>,
    /// When the last batch was planned, in microseconds.
    planned: Option<i64>,
}

fn positions(offset: &Offset) -> Result<Positions, ConnectorError> {
    from_json(offset).ok_or_else(|| {
        ConnectorError::new("STREAM_FAILED", Domain::User, format!("`{offset}` is no offset of a Kafka source"))
            .with_help("the checkpoint belongs to a query with another source")
    })
}

fn entry(bytes: &[u8]) -> Result<Positions, ConnectorError> {
    let json = serde_json::from_slice(bytes).ok();
    json.as_ref().and_then(from_json).ok_or_else(|| {
        ConnectorError::new("STREAM_FAILED", Domain::User, "a log entry of the checkpoint is none of a Kafka source")
    })
}

impl KafkaSource {
    pub(crate) fn new(declaration: &Declaration) -> Result<KafkaSource, ConnectorError> {
        for name in ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"] {
            if declaration.options.get(name).is_some() {
                let message = format!("option `{name}` does not apply to a stream, which has no end");
                return Err(ConnectorError::new("UNKNOWN_OPTION", Domain::User, message)
                    .with_help("CREATE TABLE ... USING kafka reads up to an end"));
            }
        }
        Ok(KafkaSource {
            topics: Topics::new(declaration, false)?,
            began: Positions::new(),
            newest: Positions::new(),
            frozen: None,
            planned: None,
        })
    }

    fn ends(&self) -> Result<Positions, ConnectorError> {
        self.topics.client.bounds(&self.topics.partitions()?, LATEST)
    }

    /// Where a later batch begins: new partitions at their beginning, partitions that are gone no more.
    fn begin(&mut self, start: &Positions, ends: &mut Positions) -> Result<(Positions, Positions), ConnectorError> {
        let new: Vec<Partition> = ends.keys().filter(|p| !start.contains_key(*p)).cloned().collect();
        let fresh = self.topics.client.bounds(&new, EARLIEST)?;
        let mut gone: Vec<String> =
            fresh.iter().filter(|(_, first)| **first > 0).map(|(p, first)| missing(p, 0, *first)).collect();
        let mut begin = fresh.clone();
        for (partition, offset) in start {
            match ends.get_mut(partition) {
                None => gone.push(format!(
                    "topic {} partition {} from offset {offset} on, for the partition is gone",
                    partition.0, partition.1
                )),
                Some(end) if *end < *offset => gone.push(format!(
                    "topic {} partition {} from offset {offset} on, for it ends at {end} now",
                    partition.0, partition.1
                )),
                Some(_) => drop(begin.insert(partition.clone(), *offset)),
            }
            if let Some(end) = ends.get(partition)
                && *end < *offset
            {
                begin.insert(partition.clone(), *end);
            }
        }
        self.topics.lost(&gone)?;
        Ok((begin, fresh))
    }
}

impl Source for KafkaSource {
    fn schema(&self) -> &Schema {
        &self.topics.layout.schema
    }

    fn description(&self) -> String {
        match &self.topics.options.subscription {
            Subscription::Topics(topics) => format!("KafkaV2[Subscribe[{}]]", topics.join(", ")),
            Subscription::Pattern(text, _) => format!("KafkaV2[SubscribePattern[{text}]]"),
            Subscription::Partitions(list) => {
                let names: Vec<String> = list.iter().map(|(t, p)| format!("{t}-{p}")).collect();
                format!("KafkaV2[Assign[{}]]", names.join(", "))
            }
        }
    }

    fn restore(&mut self, restored: Restored) -> Result<(), ConnectorError> {
        for (_, bytes) in &restored.entries {
            self.began.extend(entry(bytes)?);
        }
        Ok(())
    }

    fn latest(
        &mut self,
        start: Option<&Offset>,
        limit: ReadLimit,
        now_micros: i64,
    ) -> Result<Option<Batch>, ConnectorError> {
        let mut ends = match &self.frozen {
            Some(ends) => ends.clone(),
            None => self.ends()?,
        };
        self.newest = ends.clone();
        let options = &self.topics.options;
        let (begin, fresh) = match start {
            Some(start) => self.begin(&positions(start)?, &mut ends)?,
            None => {
                let partitions: Vec<Partition> = ends.keys().cloned().collect();
                let mut begin = self.topics.resolve(&options.start, &partitions, false)?;
                begin.iter_mut().for_each(|(p, offset)| *offset = (*offset).min(ends[p]));
                (begin.clone(), begin)
            }
        };
        let options = &self.topics.options;
        let waiting = distance(&begin, &ends);
        // The first batch is made even of nothing: it is what makes the beginning durable.
        if start.is_some() {
            let waits = self.planned.is_some_and(|t| now_micros.saturating_sub(t) < options.max_delay);
            let few = options.min_offsets.is_some_and(|min| waiting < min) && self.frozen.is_none();
            if waiting == 0 || (few && waits && limit == ReadLimit::Options) {
                return Ok(None);
            }
        }
        self.planned = Some(now_micros);
        let end = match (limit, options.max_offsets) {
            (ReadLimit::Options, Some(most)) => limited(&begin, &ends, most),
            _ => ends,
        };
        self.began.extend(fresh.clone());
        let log_entry = (!fresh.is_empty()).then(|| to_json(&fresh).to_string().into_bytes());
        Ok(Some(Batch { end: to_json(&end), log_entry }))
    }

    fn freeze(&mut self, _now_micros: i64) -> Result<(), ConnectorError> {
        self.frozen = Some(self.ends()?);
        Ok(())
    }

    fn splits(
        &mut self,
        start: Option<&Offset>,
        end: &Offset,
        projection: &[u32],
    ) -> Result<Vec<Box<dyn Split>>, ConnectorError> {
        // Partitions that the last batch did not know begin where their log entry says.
        let mut from = self.began.clone();
        if let Some(start) = start {
            from.extend(positions(start)?);
        }
        self.topics.splits(&from, &positions(end)?, projection)
    }

    fn committed(&mut self, _end: &Offset) -> Result<(), ConnectorError> {
        Ok(())
    }

    fn compactor(&self) -> Option<Compactor> {
        Some(Arc::new(|entries| {
            let mut all = Positions::new();
            for (_, bytes) in &entries {
                all.extend(entry(bytes)?);
            }
            Ok(to_json(&all).to_string().into_bytes())
        }))
    }

    fn newest(&self) -> Option<Offset> {
        Some(to_json(&self.newest))
    }

    fn metrics(&self, end: &Offset) -> BTreeMap<&'static str, String> {
        let Some(end) = from_json(end).filter(|_| !self.newest.is_empty()) else { return BTreeMap::new() };
        let behind: Vec<i64> =
            self.newest.iter().map(|(p, newest)| (newest - end.get(p).copied().unwrap_or(0)).max(0)).collect();
        let average = behind.iter().sum::<i64>() as f64 / behind.len() as f64;
        BTreeMap::from([
            ("avgOffsetsBehindLatest", format!("{average:?}")),
            ("maxOffsetsBehindLatest", behind.iter().max().unwrap_or(&0).to_string()),
            ("minOffsetsBehindLatest", behind.iter().min().unwrap_or(&0).to_string()),
        ])
    }
}

/// Topics as a table: what is there when the splits are asked for.
pub(crate) struct KafkaTable(Topics);

impl KafkaTable {
    pub(crate) fn new(declaration: &Declaration) -> Result<KafkaTable, ConnectorError> {
        Ok(KafkaTable(Topics::new(declaration, true)?))
    }
}

impl StaticTable for KafkaTable {
    fn schema(&self) -> &Schema {
        &self.0.layout.schema
    }

    fn splits(&self, projection: &[u32]) -> Result<Vec<Box<dyn Split>>, ConnectorError> {
        let partitions = self.0.partitions()?;
        let start = self.0.resolve(&self.0.options.start, &partitions, false)?;
        let end = self.0.resolve(&self.0.options.end, &partitions, true)?;
        self.0.splits(&start, &end, projection)
    }
}
