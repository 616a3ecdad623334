//! A query's status and progress, field for field as Spark's StreamingQueryProgress prints them.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::connector::Offset;

/// `StreamingQueryStatus`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QueryStatus {
    /// What the query is doing, in words.
    pub message: String,
    /// Whether there is data to process.
    pub is_data_available: bool,
    /// Whether a trigger is firing.
    pub is_trigger_active: bool,
}

/// `StreamingQueryProgress`: one micro-batch.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QueryProgress {
    /// The query's id, stable over restarts.
    pub id: String,
    /// Id of this run.
    pub run_id: String,
    /// Name of the query.
    pub name: Option<String>,
    /// When the trigger fired, ISO 8601 UTC.
    pub timestamp: String,
    /// Number of the micro-batch.
    pub batch_id: u64,
    /// Milliseconds from planning to commit.
    pub batch_duration: u64,
    /// Rows read.
    pub num_input_rows: u64,
    /// Rows that arrived per second since the last trigger.
    #[serde(serialize_with = "tenths")]
    pub input_rows_per_second: f64,
    /// Rows processed per second of this trigger.
    #[serde(serialize_with = "tenths")]
    pub processed_rows_per_second: f64,
    /// Milliseconds by step.
    pub duration_ms: BTreeMap<&'static str, u64>,
    /// Event time: `watermark`, and `avg`, `max`, `min` of the batch, ISO 8601 UTC. Empty without a watermark.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub event_time: BTreeMap<&'static str, String>,
    /// Each stateful operator.
    pub state_operators: Vec<StateOperatorProgress>,
    /// Each source.
    pub sources: Vec<SourceProgress>,
    /// The sink.
    pub sink: SinkProgress,
    /// The inputs that keep the watermark where it is while others are ahead, as SHOW WATERMARKS says it; empty where none
    /// does. Not part of Spark's JSON.
    #[serde(skip)]
    pub held_back: String,
}

/// `StateOperatorProgress`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StateOperatorProgress {
    /// What it is (`stateStoreSave`, `sessionWindowStateStoreSaveExec`, `dedupe`, `dedupeWithinWatermark`,
    /// `symmetricHashJoin`).
    pub operator_name: &'static str,
    /// Rows in the state.
    pub num_rows_total: u64,
    /// Rows added or changed by this batch.
    pub num_rows_updated: u64,
    /// Milliseconds spent on it.
    pub all_updates_time_ms: u64,
    /// Rows removed by this batch.
    pub num_rows_removed: u64,
    /// Milliseconds spent on it.
    pub all_removals_time_ms: u64,
    /// Milliseconds spent making the state durable.
    pub commit_time_ms: u64,
    /// Memory of the state.
    pub memory_used_bytes: u64,
    /// Late rows dropped before it.
    pub num_rows_dropped_by_watermark: u64,
    /// Partitions of the state.
    pub num_shuffle_partitions: u64,
    /// Stores of the state.
    pub num_state_store_instances: u64,
    /// `stateOnCurrentVersionSizeBytes`, and of deduplication `numDroppedDuplicateRows`.
    pub custom_metrics: BTreeMap<&'static str, u64>,
}

/// `SourceProgress`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceProgress {
    /// What it is.
    pub description: String,
    /// Where the batch began (behind it).
    pub start_offset: Option<Offset>,
    /// Where it ended.
    pub end_offset: Option<Offset>,
    /// The newest position known.
    pub latest_offset: Option<Offset>,
    /// Rows read.
    pub num_input_rows: u64,
    /// Rows that arrived per second since the last trigger.
    #[serde(serialize_with = "tenths")]
    pub input_rows_per_second: f64,
    /// Rows processed per second of this trigger.
    #[serde(serialize_with = "tenths")]
    pub processed_rows_per_second: f64,
    /// Further figures (`badRecords`).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<&'static str, String>,
}

/// `SinkProgress`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SinkProgress {
    /// What it is.
    pub description: String,
    /// Rows delivered; -1 where the sink cannot tell.
    pub num_output_rows: i64,
}

impl QueryStatus {
    /// Indented JSON, as Spark's `prettyJson`.
    pub fn pretty_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("strings and booleans always have a JSON form")
    }
}

impl QueryProgress {
    /// One line of JSON.
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("strings, numbers and maps of strings always have a JSON form")
    }

    /// Indented JSON, as Spark's `prettyJson`.
    pub fn pretty_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("strings, numbers and maps of strings always have a JSON form")
    }
}

/// Rates have one decimal, as Spark prints them.
fn tenths<S: serde::Serializer>(rate: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((rate * 10.0).round() / 10.0)
}

/// ISO 8601 in UTC with milliseconds, as the progress shows times.
pub fn iso_millis(micros: i64) -> String {
    match jiff::Timestamp::from_millisecond(micros.div_euclid(1000)) {
        Ok(t) => format!("{t:.3}"),
        Err(_) => format!("{micros}us"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn times_print_as_spark_prints_them() {
        assert_eq!(super::iso_millis(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(super::iso_millis(1_704_067_200_123_999), "2024-01-01T00:00:00.123Z");
    }
}
