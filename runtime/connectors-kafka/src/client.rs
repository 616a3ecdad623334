//! What is common to all clients of a broker: configuration, errors, and questions about topics.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rdkafka::client::ClientContext;
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use ssql_engine::connector::{ConnectorError, Domain, Options};

use crate::offsets::{Partition, Positions};

/// "Time" of the end of a partition, where a time is asked for.
pub(crate) const LATEST: i64 = -1;
/// "Time" of the beginning of a partition.
pub(crate) const EARLIEST: i64 = -2;
/// One attempt at a request.
const ATTEMPT: Duration = Duration::from_secs(10);

/// What the native library logs goes to the log; it names brokers and reasons, never values of options.
pub(crate) struct Quiet;

impl ClientContext for Quiet {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        match level {
            RDKafkaLogLevel::Debug => tracing::debug!(target: "kafka", facility, "{message}"),
            _ => tracing::info!(target: "kafka", facility, "{message}"),
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::info!(target: "kafka", "{error}: {reason}");
    }
}

impl ConsumerContext for Quiet {}

/// Names that mean something to the Java client only, or that we have to set, with what to do about them.
const REFUSED: &[(&str, &str)] = &[
    ("key.deserializer", "keys are always BINARY; convert them in the query"),
    ("value.deserializer", "values are always BINARY; convert them in the query, or use format 'json'"),
    ("key.serializer", "keys are STRING or BINARY; convert them in the query"),
    ("value.serializer", "values are STRING or BINARY; convert them in the query"),
    ("auto.offset.reset", "use startingOffsets"),
    ("enable.auto.commit", "offsets are kept in the checkpoint, never in the group"),
    ("interceptor.classes", "there are no Java classes here"),
    ("transactional.id", "use deliveryGuarantee 'exactly-once', which names the transactions"),
    ("sasl.jaas.config", "use kafka.sasl.username and kafka.sasl.password"),
    ("ssl.truststore.location", "use kafka.ssl.ca.location, a PEM file"),
    ("ssl.truststore.password", "use kafka.ssl.ca.location, a PEM file"),
    ("ssl.truststore.type", "use kafka.ssl.ca.location, a PEM file"),
];

/// Names that change nothing here: how many rows one call of the Java client returns is never seen.
const WITHOUT_EFFECT: &[&str] = &["max.poll.records"];

/// The client configuration that the `kafka.*` options ask for.
pub(crate) fn config(options: &Options) -> Result<ClientConfig, ConnectorError> {
    let mut config = ClientConfig::new();
    for (name, value) in options.iter() {
        let Some(name) = name.strip_prefix("kafka.") else { continue };
        if let Some((_, instead)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
            let message = format!("option `kafka.{name}` is not supported");
            return Err(ConnectorError::new("UNKNOWN_OPTION", Domain::User, message).with_help(*instead));
        }
        if !WITHOUT_EFFECT.contains(&name) {
            config.set(name, value);
        }
    }
    if config.get("bootstrap.servers").is_none() {
        return Err(ConnectorError::bad_option("kafka.bootstrap.servers", "", "the addresses of brokers"));
    }
    Ok(config)
}

/// Sets what the user has not set.
pub(crate) fn set_default(config: &mut ClientConfig, name: &str, value: &str) {
    if config.get(name).is_none() {
        config.set(name, value);
    }
}

/// An error of the native library while we try to `action`.
pub(crate) fn failed(action: &str, error: KafkaError) -> ConnectorError {
    if let KafkaError::ClientConfig(_, why, name, _) = &error {
        // The value may be a secret, and so may be what the library says about it.
        let secret = ["password", "secret", "key", "jaas", "token"].iter().any(|word| name.contains(word));
        let why = if secret { "its value is refused" } else { why.as_str() };
        let message = format!("option `kafka.{name}`: {why}");
        return ConnectorError::new("INVALID_OPTION_VALUE", Domain::User, message);
    }
    let mut failure = ConnectorError::new("STREAM_FAILED", Domain::External, format!("cannot {action} Kafka: {error}"));
    failure.retry = error.rdkafka_error_code().is_none_or(is_transient);
    failure.source = Some(Box::new(error));
    failure
}

/// Whether trying again may help.
pub(crate) fn is_transient(code: RDKafkaErrorCode) -> bool {
    use RDKafkaErrorCode::{
        AllBrokersDown, BrokerNotAvailable, BrokerTransportFailure, CoordinatorLoadInProgress, CoordinatorNotAvailable,
        LeaderNotAvailable, NetworkException, NotCoordinator, NotEnoughReplicas, NotLeaderForPartition,
        OperationTimedOut, ReplicaNotAvailable, RequestTimedOut, Resolve, UnknownPartition, WaitingForCoordinator,
    };
    matches!(
        code,
        AllBrokersDown
            | BrokerNotAvailable
            | BrokerTransportFailure
            | CoordinatorLoadInProgress
            | CoordinatorNotAvailable
            | LeaderNotAvailable
            | NetworkException
            | NotCoordinator
            | NotEnoughReplicas
            | NotLeaderForPartition
            | OperationTimedOut
            | ReplicaNotAvailable
            | RequestTimedOut
            | Resolve
            // Only partitions that metadata named are asked for: their leader is not known at the moment.
            | UnknownPartition
            | WaitingForCoordinator
    )
}

/// Which partitions are read.
#[derive(Debug, Clone)]
pub(crate) enum Subscription {
    /// All partitions of these topics.
    Topics(Vec<String>),
    /// All partitions of the topics with a name that matches as a whole.
    Pattern(String, regex::Regex),
    /// These.
    Partitions(Vec<Partition>),
}

/// Asks a cluster about topics and offsets.
pub(crate) struct Client {
    consumer: BaseConsumer<Quiet>,
    /// How long a question is asked again while brokers do not answer.
    patience: Duration,
}

impl Client {
    pub(crate) fn new(config: &ClientConfig, patience: Duration) -> Result<Client, ConnectorError> {
        let consumer = config.create_with_context(Quiet).map_err(|e| failed("make a client of", e))?;
        Ok(Client { consumer, patience })
    }

    fn ask<T>(&self, action: &str, mut request: impl FnMut() -> KafkaResult<T>) -> Result<T, ConnectorError> {
        let deadline = Instant::now() + self.patience;
        loop {
            match request() {
                Ok(answer) => return Ok(answer),
                Err(error) => {
                    let again = error.rdkafka_error_code().is_some_and(is_transient);
                    if !again || Instant::now() >= deadline {
                        return Err(failed(action, error));
                    }
                    std::thread::sleep(Duration::from_millis(100));
                }
            }
        }
    }

    /// The partitions that there are now. A topic that does not exist has none.
    pub(crate) fn partitions(&self, subscription: &Subscription) -> Result<Vec<Partition>, ConnectorError> {
        let mut found = Vec::new();
        let mut add = |topic: Option<&str>, wanted: &dyn Fn(&str) -> bool| -> Result<(), ConnectorError> {
            // Brokers that have just started may not know yet who leads a topic.
            let metadata = self.ask("list the topics of", || {
                let metadata = self.consumer.fetch_metadata(topic, ATTEMPT)?;
                let errors = metadata.topics().iter().filter(|t| wanted(t.name())).filter_map(|t| t.error());
                match errors.map(RDKafkaErrorCode::from).find(|code| is_transient(*code)) {
                    Some(code) => Err(KafkaError::MetadataFetch(code)),
                    None => Ok(metadata),
                }
            })?;
            for topic in metadata.topics().iter().filter(|t| t.error().is_none() && wanted(t.name())) {
                found.extend(topic.partitions().iter().map(|p| (topic.name().to_string(), p.id())));
            }
            Ok(())
        };
        match subscription {
            Subscription::Topics(topics) => topics.iter().try_for_each(|topic| add(Some(topic), &|_| true))?,
            Subscription::Pattern(_, pattern) => {
                // Topics of the brokers themselves are never meant.
                add(None, &|name| !name.starts_with("__") && pattern.is_match(name))?;
            }
            Subscription::Partitions(partitions) => found.extend(partitions.iter().cloned()),
        }
        found.sort();
        found.dedup();
        Ok(found)
    }

    /// For each partition the first offset at or after its time (milliseconds, [`LATEST`] or [`EARLIEST`]); `None`
    /// where there is no message as young.
    pub(crate) fn offsets(
        &self,
        times: &BTreeMap<Partition, i64>,
    ) -> Result<BTreeMap<Partition, Option<i64>>, ConnectorError> {
        let mut list = TopicPartitionList::with_capacity(times.len());
        for ((topic, partition), time) in times {
            let set = list.add_partition_offset(topic, *partition, Offset::from_raw(*time));
            set.map_err(|e| failed("ask for offsets of", e))?;
        }
        if times.is_empty() {
            return Ok(BTreeMap::new());
        }
        let list = self.ask("ask for offsets of", || {
            let answer = self.consumer.offsets_for_times(list.clone(), ATTEMPT)?;
            answer.elements().iter().try_for_each(|e| e.error())?;
            Ok(answer)
        })?;
        let answer = list.elements();
        Ok(answer
            .iter()
            .map(|e| {
                let offset = if let Offset::Offset(offset) = e.offset() { Some(offset) } else { None };
                ((e.topic().to_string(), e.partition()), offset)
            })
            .collect())
    }

    /// The first offset, or the one after the last message, of each partition.
    pub(crate) fn bounds<'a>(
        &self,
        partitions: impl IntoIterator<Item = &'a Partition>,
        time: i64,
    ) -> Result<Positions, ConnectorError> {
        let times = partitions.into_iter().map(|p| (p.clone(), time)).collect();
        let offsets = self.offsets(&times)?;
        Ok(offsets.into_iter().filter_map(|(p, o)| Some((p, o?))).collect())
    }
}
