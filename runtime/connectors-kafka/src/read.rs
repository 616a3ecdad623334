//! Reading a range of offsets of one partition.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use ssql_engine::connector::{ConnectorError, Domain, Split, SplitStats};

use crate::client::{Client, EARLIEST, Quiet, failed, is_transient};
use crate::columns::Layout;
use crate::offsets::Partition;

/// Consumers between batches. Each stays where its partition's last batch ended, and fetches ahead meanwhile.
pub(crate) struct Pool {
    config: ClientConfig,
    idle: Mutex<HashMap<Partition, Reader>>,
}

/// A consumer of one partition.
struct Reader {
    consumer: BaseConsumer<Quiet>,
    /// Offset that comes next, if it stands anywhere.
    next: Option<i64>,
}

impl Pool {
    pub(crate) fn new(config: ClientConfig) -> Pool {
        Pool { config, idle: Mutex::default() }
    }

    fn take(&self, partition: &Partition) -> Result<Reader, ConnectorError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).remove(partition);
        match idle {
            Some(reader) => Ok(reader),
            None => {
                let consumer = self.config.create_with_context(Quiet).map_err(|e| failed("make a client of", e))?;
                Ok(Reader { consumer, next: None })
            }
        }
    }

    fn give(&self, partition: &Partition, reader: Reader) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).insert(partition.clone(), reader);
    }
}

impl Reader {
    fn seek(&self, partition: &Partition, offset: i64) -> Result<(), ConnectorError> {
        let mut list = TopicPartitionList::with_capacity(1);
        let added = list.add_partition_offset(&partition.0, partition.1, Offset::Offset(offset));
        added.and_then(|()| self.consumer.assign(&list)).map_err(|e| failed("read from", e))
    }
}

/// Offsets that were asked for and do not exist any more.
pub(crate) fn data_loss(ranges: &[String]) -> ConnectorError {
    let message = format!("offsets were deleted before they were read: {}", ranges.join("; "));
    ConnectorError::new("KAFKA_DATA_LOSS", Domain::External, message)
        .with_help("set failOnDataLoss false to go on with what there is")
}

/// One missing range, as [`data_loss`] names it.
pub(crate) fn missing(partition: &Partition, from: i64, to: i64) -> String {
    format!("topic {} partition {} offsets {from} to {}", partition.0, partition.1, to - 1)
}

/// The messages of a partition from `start` up to and without `end`.
pub(crate) struct PartitionSplit {
    pub(crate) pool: Arc<Pool>,
    pub(crate) client: Arc<Client>,
    pub(crate) layout: Arc<Layout>,
    pub(crate) projection: Vec<u32>,
    pub(crate) partition: Partition,
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) patience: Duration,
    pub(crate) fail_on_data_loss: bool,
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

impl PartitionSplit {
    /// Where to go on at `offset`, which is before all that the partition has.
    fn after_loss(&self, offset: i64) -> Result<i64, ConnectorError> {
        let first = self.client.bounds([&self.partition], EARLIEST)?;
        let first = first.get(&self.partition).copied().unwrap_or(self.end);
        if self.fail_on_data_loss {
            return Err(data_loss(&[missing(&self.partition, offset, first.clamp(offset + 1, self.end))]));
        }
        Ok(if first > offset { first } else { self.end })
    }
}

impl Split for PartitionSplit {
    fn read(
        &mut self,
        deliver: &mut dyn FnMut(arrow::array::RecordBatch) -> Result<(), Failure>,
    ) -> Result<SplitStats, Failure> {
        let mut stats = SplitStats::default();
        let mut collector = self.layout.collector(&self.projection)?;
        let mut reader = self.pool.take(&self.partition)?;
        let mut at = self.start;
        // Whether an end of the partition that is told was told to us, and is not left from the last batch.
        let mut fresh = reader.next != Some(at);
        if fresh {
            reader.seek(&self.partition, at)?;
        }
        let mut heard = Instant::now();
        while at < self.end {
            match reader.consumer.poll(Duration::from_millis(100)) {
                None => {}
                Some(Ok(message)) => {
                    heard = Instant::now();
                    let offset = message.offset();
                    if offset < at {
                        continue;
                    }
                    // Offsets in between belong to transactions, or were compacted away.
                    at = offset + 1;
                    if offset >= self.end {
                        break;
                    }
                    stats.rows += 1;
                    stats.bytes += (message.payload_len() + message.key_len()) as u64;
                    collector.push(&message)?;
                    if collector.is_full()
                        && let Some(batch) = collector.take()?
                    {
                        deliver(batch)?;
                    }
                }
                // The rest of the range is markers of transactions, or compacted away.
                Some(Err(KafkaError::PartitionEOF(_))) if fresh => break,
                Some(Err(KafkaError::PartitionEOF(_))) => {
                    reader.seek(&self.partition, at)?;
                    fresh = true;
                }
                Some(Err(error)) => match error.rdkafka_error_code() {
                    Some(RDKafkaErrorCode::AutoOffsetReset | RDKafkaErrorCode::OffsetOutOfRange) => {
                        at = self.after_loss(at)?;
                        reader.seek(&self.partition, at)?;
                        fresh = true;
                    }
                    Some(code) if is_transient(code) => {}
                    _ => return Err(failed("read from", error).into()),
                },
            }
            if heard.elapsed() > self.patience {
                let message = format!(
                    "no message of topic {} partition {} at offset {at} came within {} s, though offsets up to {} were promised",
                    self.partition.0,
                    self.partition.1,
                    self.patience.as_secs(),
                    self.end
                );
                let mut error = ConnectorError::new("STREAM_FAILED", Domain::External, message);
                error.retry = true;
                return Err(error.into());
            }
        }
        // Past a gap, or at an end that may have moved meanwhile, the consumer has to be placed anew.
        reader.next = (at == self.end).then_some(at);
        self.pool.give(&self.partition, reader);
        if let Some(batch) = collector.take()? {
            deliver(batch)?;
        }
        stats.bad_records = collector.bad;
        Ok(stats)
    }
}
