//! Rows as messages.
//!
//! At least once, as in Spark: messages are sent while a batch runs, and the batch is committed when brokers have taken
//! all of them; a batch that fails or is cut off is sent again. Exactly once: a batch is one transaction. Within it the
//! number of the batch is kept as an offset of a consumer group named for the query, so that a batch delivered again is
//! known, and readers with `isolation.level` `read_committed` see each batch once.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType as ArrowType, Int32Type};
use rdkafka::client::ClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseRecord, DeliveryResult, Producer, ProducerContext, ThreadedProducer};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use ssql_engine::connector::{ConnectorError, Declaration, Domain, Holder, Sink, SinkBatch, Staged};
use ssql_ir::DataType;

use crate::client::{Quiet, config, failed, set_default};

/// How long a transaction's steps may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Counts what brokers have not taken.
#[derive(Default)]
struct Deliveries {
    failed: AtomicU64,
    /// The first failure since it was last asked for.
    first: Mutex<Option<KafkaError>>,
}

impl Deliveries {
    /// The first failure since the last call.
    fn failure(&self) -> Option<KafkaError> {
        self.failed.store(0, Ordering::Relaxed);
        self.first.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[derive(Clone, Default)]
struct Reports(Arc<Deliveries>);

impl ClientContext for Reports {
    fn log(&self, level: rdkafka::config::RDKafkaLogLevel, facility: &str, message: &str) {
        Quiet.log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        Quiet.error(error, reason);
    }
}

impl ProducerContext for Reports {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, _: ()) {
        if let Err((error, _)) = result {
            self.0.failed.fetch_add(1, Ordering::Relaxed);
            self.0.first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| error.clone());
        }
    }
}

/// Which columns of the rows make what of a message.
struct Parts {
    topic: Option<usize>,
    key: Option<usize>,
    value: usize,
    headers: Option<usize>,
    partition: Option<usize>,
}

/// `USING kafka` as a sink.
pub(crate) struct KafkaSink {
    config: ClientConfig,
    topic: Option<String>,
    parts: Parts,
    exactly_once: bool,
    /// Made when the query starts, since transactions are named for it.
    running: Mutex<Option<Arc<Running>>>,
}

struct Running {
    producer: ThreadedProducer<Reports>,
    deliveries: Arc<Deliveries>,
    /// Exactly once: whose committed offset is the batch that comes next.
    group: Option<BaseConsumer<Quiet>>,
    /// Whether a transaction is open.
    open: Mutex<bool>,
    /// Whether the batch being written was committed before.
    known: AtomicBool,
}

impl KafkaSink {
    pub(crate) fn new(declaration: &Declaration) -> Result<KafkaSink, ConnectorError> {
        let options = &declaration.options;
        let topic = options.get("topic").map(str::to_string);
        let wrong = |message: String| {
            ConnectorError::new("INVALID_SINK_COLUMNS", Domain::User, message).with_help(
                "a message is made of value (STRING or BINARY), and key, topic, partition (INT) and headers where they are there",
            )
        };
        let find = |name: &str, types: &[DataType]| -> Result<Option<usize>, ConnectorError> {
            let found = declaration.schema.fields.iter().position(|f| f.name.eq_ignore_ascii_case(name));
            let Some(at) = found else { return Ok(None) };
            let is = &declaration.schema.fields[at].data_type;
            if types.contains(is) {
                return Ok(Some(at));
            }
            let names: Vec<String> = types.iter().map(ToString::to_string).collect();
            Err(wrong(format!("column `{name}` of a Kafka sink is {}, not {is}", names.join(" or "))))
        };
        let text = [DataType::String, DataType::Binary];
        let Some(value) = find("value", &text)? else {
            return Err(wrong("a Kafka sink needs a column `value`".to_string()));
        };
        let headers = declaration.schema.fields.iter().position(|f| f.name.eq_ignore_ascii_case("headers"));
        if let Some(at) = headers {
            let is = &declaration.schema.fields[at].data_type;
            if is.to_string().replace(" NOT NULL", "") != "ARRAY<STRUCT<key: STRING, value: BINARY>>" {
                return Err(wrong(format!("column `headers` is ARRAY<STRUCT<key: STRING, value: BINARY>>, not {is}")));
            }
        }
        let parts = Parts {
            topic: find("topic", &[DataType::String])?,
            key: find("key", &text)?,
            value,
            headers,
            partition: find("partition", &[DataType::Int32])?,
        };
        if topic.is_none() && parts.topic.is_none() {
            return Err(wrong("a Kafka sink needs the option `topic` or a column `topic`".to_string()));
        }
        let guarantee = options.get("deliveryGuarantee").unwrap_or("at-least-once");
        let exactly_once = guarantee.eq_ignore_ascii_case("exactly-once");
        if exactly_once && topic.is_none() {
            return Err(ConnectorError::bad_option(
                "deliveryGuarantee",
                guarantee,
                "at-least-once without the option topic",
            ));
        }
        let mut config = config(options)?;
        set_default(&mut config, "enable.idempotence", "true");
        set_default(&mut config, "linger.ms", "5");
        // As Java's client does: the same key goes to the same partition whoever sends it.
        set_default(&mut config, "partitioner", "murmur2_random");
        set_default(&mut config, "queue.buffering.max.messages", "200000");
        Ok(KafkaSink { config, topic, parts, exactly_once, running: Mutex::default() })
    }

    fn running(&self) -> Result<Arc<Running>, ConnectorError> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).clone();
        running.ok_or_else(|| {
            ConnectorError::new("INTERNAL_ERROR", Domain::Internal, "a Kafka sink was written to before it was started")
        })
    }

    fn topic(&self) -> &str {
        self.topic.as_deref().unwrap_or_default()
    }

    /// Opens the batch's transaction, unless it is open, or the batch was committed before.
    fn open(&self, running: &Running, batch: u64) -> Result<(), ConnectorError> {
        let Some(group) = &running.group else { return Ok(()) };
        let mut open = running.open.lock().unwrap_or_else(PoisonError::into_inner);
        if *open {
            return Ok(());
        }
        let mut list = TopicPartitionList::new();
        list.add_partition(self.topic(), 0);
        let committed = group.committed_offsets(list, PATIENCE).map_err(|e| failed("ask for the last batch of", e))?;
        let next = committed.elements().first().map(|e| e.offset());
        let known = matches!(next, Some(Offset::Offset(next)) if u64::try_from(next).is_ok_and(|next| next > batch));
        running.known.store(known, Ordering::SeqCst);
        if !known {
            running.producer.begin_transaction().map_err(|e| failed("begin a transaction of", e))?;
        }
        *open = true;
        Ok(())
    }

    fn send(&self, running: &Running, rows: &RecordBatch) -> Result<(), ConnectorError> {
        let column = |at: Option<usize>| at.map(|at| rows.column(at).clone());
        let bytes = |at: Option<usize>| -> Result<Option<ArrayRef>, ConnectorError> {
            let Some(array) = column(at) else { return Ok(None) };
            let cast = cast(&array, &ArrowType::BinaryView);
            cast.map(Some).map_err(|e| ConnectorError::new("INTERNAL_ERROR", Domain::Internal, e.to_string()))
        };
        let (key, value) = (bytes(self.parts.key)?, bytes(Some(self.parts.value))?);
        let (topics, partitions, headers) =
            (column(self.parts.topic), column(self.parts.partition), column(self.parts.headers));
        for row in 0..rows.num_rows() {
            let topic = match (&self.topic, &topics) {
                (Some(topic), _) => topic.as_str(),
                (None, Some(topics)) if topics.is_valid(row) => topics.as_string_view().value(row),
                _ => {
                    let message = "a row for Kafka has NULL as its topic";
                    return Err(ConnectorError::new("INVALID_SINK_COLUMNS", Domain::User, message)
                        .with_help("give the option topic, or leave such rows out"));
                }
            };
            let mut record: BaseRecord<'_, [u8], [u8]> = BaseRecord::to(topic);
            if let Some(key) = key.as_ref().filter(|a| a.is_valid(row)) {
                record = record.key(key.as_binary_view().value(row));
            }
            if let Some(value) = value.as_ref().filter(|a| a.is_valid(row)) {
                record = record.payload(value.as_binary_view().value(row));
            }
            if let Some(partition) = partitions.as_ref().filter(|a| a.is_valid(row)) {
                record = record.partition(partition.as_primitive::<Int32Type>().value(row));
            }
            if let Some(list) = headers.as_ref().filter(|a| a.is_valid(row)) {
                record = record.headers(headers_of(&list.as_list::<i32>().value(row)));
            }
            self.enqueue(running, record)?;
        }
        Ok(())
    }

    /// Waits where the queue is full.
    fn enqueue(&self, running: &Running, mut record: BaseRecord<'_, [u8], [u8]>) -> Result<(), ConnectorError> {
        let began = Instant::now();
        loop {
            match running.producer.send(record) {
                Ok(()) => return Ok(()),
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back)) => {
                    if let Some(error) = running.deliveries.failure() {
                        return Err(failed("write to", error));
                    }
                    // Brokers that are away are waited for as long as the library waits for a message of its queue.
                    if began.elapsed() > Duration::from_secs(600) {
                        return Err(failed("write to", KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull)));
                    }
                    record = back;
                    std::thread::sleep(Duration::from_millis(2));
                }
                Err((error, _)) => return Err(failed("write to", error)),
            }
        }
    }
}

fn headers_of(list: &ArrayRef) -> OwnedHeaders {
    let members = list.as_struct();
    let (keys, values) = (members.column(0).as_string_view(), members.column(1).as_binary_view());
    (0..list.len()).filter(|i| list.is_valid(*i) && keys.is_valid(*i)).fold(OwnedHeaders::new(), |headers, i| {
        let value = values.is_valid(i).then(|| values.value(i));
        headers.insert(Header { key: keys.value(i), value })
    })
}

impl Sink for KafkaSink {
    fn description(&self) -> String {
        format!("KafkaSink[{}]", self.topic.as_deref().unwrap_or("by column"))
    }

    fn start(&self, query: &Holder, _last_committed: Option<u64>) -> Result<(), ConnectorError> {
        let reports = Reports::default();
        let mut config = self.config.clone();
        let mut group = None;
        if self.exactly_once {
            let name = format!("ssql-{}", query.query_id);
            config.set("transactional.id", &name);
            let mut reader = self.config.clone();
            for producer_only in
                ["enable.idempotence", "linger.ms", "queue.buffering.max.messages", "acks", "compression.type"]
            {
                reader.remove(producer_only);
            }
            reader.set("group.id", &name).set("enable.auto.commit", "false").set("isolation.level", "read_committed");
            group = Some(reader.create_with_context(Quiet).map_err(|e| failed("make a client of", e))?);
        }
        let producer: ThreadedProducer<Reports> =
            config.create_with_context(reports.clone()).map_err(|e| failed("make a client of", e))?;
        if self.exactly_once {
            // Ends what an earlier run of the query left open, and shuts it out if it still lives.
            producer.init_transactions(PATIENCE).map_err(|e| failed("take up the transactions of", e))?;
        }
        let running =
            Running { producer, deliveries: reports.0, group, open: Mutex::new(false), known: AtomicBool::new(false) };
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(running));
        Ok(())
    }

    fn write(&self, batch: &SinkBatch<'_>, _partition: u32, rows: &[RecordBatch]) -> Result<Staged, ConnectorError> {
        let running = self.running()?;
        self.open(&running, batch.batch)?;
        if !running.known.load(Ordering::SeqCst) {
            rows.iter().try_for_each(|rows| self.send(&running, rows))?;
        }
        Ok(Box::new(rows.iter().map(|r| r.num_rows() as u64).sum::<u64>()))
    }

    fn commit(&self, batch: &SinkBatch<'_>, staged: Vec<Staged>) -> Result<Option<u64>, ConnectorError> {
        let running = self.running()?;
        let rows = staged.iter().filter_map(|s| s.downcast_ref::<u64>()).sum();
        // Each message ends delivered or failed when its own time is over, so waiting ends too.
        loop {
            match running.producer.flush(Duration::from_secs(1)) {
                Ok(()) => break,
                Err(KafkaError::Flush(RDKafkaErrorCode::OperationTimedOut)) => {}
                Err(error) => return Err(failed("write to", error)),
            }
        }
        if let Some(error) = running.deliveries.failure() {
            return Err(failed("write to", error));
        }
        let mut open = running.open.lock().unwrap_or_else(PoisonError::into_inner);
        if *open
            && !running.known.load(Ordering::SeqCst)
            && let Some(group) = &running.group
        {
            let failed = |e| failed("commit a transaction of", e);
            let mut list = TopicPartitionList::new();
            let next = i64::try_from(batch.batch).unwrap_or(i64::MAX).saturating_add(1);
            list.add_partition_offset(self.topic(), 0, Offset::Offset(next)).map_err(failed)?;
            let member = group.group_metadata().ok_or_else(|| {
                ConnectorError::new("INTERNAL_ERROR", Domain::Internal, "a consumer with a group has no group")
            })?;
            running.producer.send_offsets_to_transaction(&list, &member, PATIENCE).map_err(failed)?;
            running.producer.commit_transaction(PATIENCE).map_err(failed)?;
        }
        *open = false;
        Ok(Some(rows))
    }

    fn abort(&self, _batch: &SinkBatch<'_>, _staged: Vec<Staged>) {
        let Ok(running) = self.running() else { return };
        let mut open = running.open.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::take(&mut *open)
            && !running.known.load(Ordering::SeqCst)
            && let Err(error) = running.producer.abort_transaction(PATIENCE)
        {
            // The next start of the query ends the transaction.
            tracing::warn!(target: "kafka", "cannot abort a transaction: {error}");
        }
    }
}
