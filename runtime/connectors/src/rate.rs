//! The rate source: counted rows at a steady pace. Its offset is the number of seconds since it began or, under TRIGGER
//! CONTINUOUS, where rows come one by one, `{"rows": n}`.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, TimestampMicrosecondArray};
use serde::{Deserialize, Serialize};
use ssql_engine::connector::{
    Arrival, Batch, Connector, ConnectorError, Declaration, Domain, Offset, ReadLimit, Restored, Source, Split,
    SplitStats, Wake,
};
use ssql_ir::{ConnectorDesc, DataType, Field, LocationRule, OptionKind, OptionScope, Schema, SchemaRule};

use crate::columns::MAX_BATCH_ROWS;
use crate::decode::{batch, batch_schema};
use crate::desc::{defaulted, duration, option, positive};

const MICROS: i64 = 1_000_000;

fn schema() -> Schema {
    Schema::new(vec![Field::new("timestamp", DataType::Timestamp, true), Field::new("value", DataType::Int64, true)])
}

/// `USING rate`.
pub struct RateConnector {
    desc: ConnectorDesc,
}

impl Default for RateConnector {
    fn default() -> RateConnector {
        use OptionKind::{Duration, Integer};
        let desc = ConnectorDesc {
            name: "rate",
            summary: "Generates numbered rows at a steady pace.",
            stream_source: true,
            static_source: false,
            sink: None,
            schema: SchemaRule::Fixed(schema()),
            location: LocationRule::Refused,
            options: vec![
                defaulted("rowsPerSecond", Integer, "1", OptionScope::Stream, "Rows a second."),
                defaulted("rampUpTime", Duration, "0s", OptionScope::Stream, "Time until the full pace is reached."),
                option("numPartitions", Integer, OptionScope::Stream, "Pieces a batch is cut into; as many as cores."),
            ],
        };
        RateConnector { desc }
    }
}

impl Connector for RateConnector {
    fn desc(&self) -> &ConnectorDesc {
        &self.desc
    }

    fn source(&self, declaration: &Declaration) -> Result<Box<dyn Source>, ConnectorError> {
        let options = &declaration.options;
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
        let pace = Pace {
            rows_per_second: positive(options, "rowsPerSecond")?.unwrap_or(1).min(i64::MAX as u64) as i64,
            ramp_up: duration(options, "rampUpTime", MICROS, 0)? / MICROS,
        };
        Ok(Box::new(RateSource {
            schema: schema(),
            pace,
            partitions: positive(options, "numPartitions")?.unwrap_or(cores),
            began: None,
            frozen: None,
            continuous: false,
        }))
    }
}

/// How many rows there are by when.
#[derive(Debug, Clone, Copy)]
struct Pace {
    rows_per_second: i64,
    /// Seconds.
    ramp_up: i64,
}

impl Pace {
    /// Rows of the first `seconds` seconds: while the source warms up, each second has a fixed number more than the
    /// one before (Spark's formula).
    fn rows(self, seconds: i64) -> Option<i64> {
        let step = self.rows_per_second / (self.ramp_up + 1);
        if seconds > self.ramp_up {
            let rest = (seconds - self.ramp_up).checked_mul(self.rows_per_second)?;
            return self.rows(self.ramp_up)?.checked_add(rest);
        }
        // One of two neighbours is even.
        let (half, other) = if seconds % 2 == 1 { ((seconds + 1) / 2, seconds) } else { (seconds / 2, seconds + 1) };
        half.checked_mul(step)?.checked_mul(other)
    }

    /// Rows due after so many microseconds: those of a second come at equal distances.
    fn rows_by(self, micros: i64) -> Option<i64> {
        let (second, rest) = (micros.max(0) / MICROS, micros.max(0) % MICROS);
        let (before, after) = (self.rows(second)?, self.rows(second + 1)?);
        Some(before + (i128::from(after - before) * i128::from(rest) / i128::from(MICROS)) as i64)
    }

    /// When the row of that number is due, in microseconds since the beginning.
    fn time_of(self, row: i64) -> Option<i64> {
        // The rows up to a second grow with it: the second is found by halving.
        let (mut low, mut high) = (0_i64, self.ramp_up.max(1) + row / self.rows_per_second.max(1) + 2);
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            if self.rows(middle)? <= row { low = middle } else { high = middle }
        }
        let (before, after) = (self.rows(low)?, self.rows(low + 1)?);
        let within = i128::from(row + 1 - before) * i128::from(MICROS);
        let wide = i128::from((after - before).max(1));
        Some(low * MICROS + ((within + wide - 1) / wide) as i64)
    }
}

/// What a checkpoint keeps of the source.
#[derive(Debug, Serialize, Deserialize)]
struct LogEntry {
    /// Processing time at which the source began, in microseconds.
    began: i64,
}

struct RateSource {
    schema: Schema,
    pace: Pace,
    partitions: u64,
    began: Option<i64>,
    /// Last second seen after [`Source::freeze`].
    frozen: Option<i64>,
    /// Rows come one by one.
    continuous: bool,
}

impl RateSource {
    /// Rows taken up to that offset.
    fn rows(&self, offset: Option<&Offset>) -> Result<i64, ConnectorError> {
        match offset.and_then(|o| o.get("rows")) {
            Some(rows) => rows.as_i64().filter(|n| *n >= 0).ok_or_else(|| failed(format!("`{rows}` is no count"))),
            None => self.pace.rows(self.second(offset)?).ok_or_else(|| self.overflow()),
        }
    }

    fn overflow(&self) -> ConnectorError {
        let message = format!("a rate source reached 2^63 rows at {} rows a second", self.pace.rows_per_second);
        ConnectorError::new("STREAM_FAILED", Domain::User, message)
    }

    /// One by one: the rows that are due.
    fn due(&mut self, start: Option<&Offset>, now_micros: i64) -> Result<Option<Batch>, ConnectorError> {
        let first = start.is_none();
        let began = *self.began.get_or_insert(now_micros);
        let rows = self.pace.rows_by(now_micros - began).ok_or_else(|| self.overflow())?;
        if rows <= self.rows(start)? {
            return Ok(None);
        }
        let log_entry = first.then(|| entry(began)).transpose()?;
        Ok(Some(Batch { end: serde_json::json!({ "rows": rows }), log_entry }))
    }

    /// When the row after that offset is due, in microseconds.
    fn next_row(&self, start: i64) -> Option<i64> {
        self.began?.checked_add(self.pace.time_of(start)?)
    }
    fn second(&self, offset: Option<&Offset>) -> Result<i64, ConnectorError> {
        let Some(offset) = offset else { return Ok(0) };
        if offset.get("rows").is_some() {
            return Err(ConnectorError::new(
                "STREAM_FAILED",
                Domain::User,
                "the checkpoint was left by TRIGGER CONTINUOUS, whose rate source stands between two seconds",
            )
            .with_help("Go on with TRIGGER CONTINUOUS, or use a new checkpoint."));
        }
        offset.as_i64().filter(|n| *n >= 0).ok_or_else(|| failed(format!("`{offset}` is no offset of a rate source")))
    }
}

fn entry(began: i64) -> Result<Vec<u8>, ConnectorError> {
    serde_json::to_vec(&LogEntry { began })
        .map_err(|e| failed(format!("the entry of a rate source cannot be written: {e}")))
}

fn failed(message: String) -> ConnectorError {
    ConnectorError::new("STREAM_FAILED", Domain::Internal, message)
}

impl Source for RateSource {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn description(&self) -> String {
        let Pace { rows_per_second, ramp_up } = self.pace;
        format!(
            "RateStreamV2[rowsPerSecond={rows_per_second}, rampUpTimeSeconds={ramp_up}, numPartitions={}]",
            self.partitions
        )
    }

    fn restore(&mut self, restored: Restored) -> Result<(), ConnectorError> {
        if let Some((_, entry)) = restored.entries.first() {
            let entry: LogEntry = serde_json::from_slice(entry)
                .map_err(|e| failed(format!("the checkpoint's entry of a rate source cannot be read: {e}")))?;
            self.began = Some(entry.began);
        }
        Ok(())
    }

    fn latest(
        &mut self,
        start: Option<&Offset>,
        _limit: ReadLimit,
        now_micros: i64,
    ) -> Result<Option<Batch>, ConnectorError> {
        if self.continuous {
            return self.due(start, now_micros);
        }
        let first = start.is_none();
        let began = *self.began.get_or_insert(now_micros);
        // A clock that went back gives no rows until it has caught up.
        let end = self.frozen.unwrap_or((now_micros - began) / MICROS);
        if end <= self.second(start)? {
            return Ok(None);
        }
        let log_entry = first.then(|| entry(began)).transpose()?;
        Ok(Some(Batch { end: Offset::from(end), log_entry }))
    }

    fn freeze(&mut self, now_micros: i64) -> Result<(), ConnectorError> {
        let began = *self.began.get_or_insert(now_micros);
        self.frozen = Some((now_micros - began) / MICROS);
        Ok(())
    }

    fn splits(
        &mut self,
        start: Option<&Offset>,
        end: &Offset,
        projection: &[u32],
    ) -> Result<Vec<Box<dyn Split>>, ConnectorError> {
        let began = self.began.ok_or_else(|| failed("a rate source was not restored".to_string()))?;
        let (first, last) = (self.rows(start)?, self.rows(Some(end))?);
        let rows = last - first;
        if rows <= 0 {
            return Ok(Vec::new());
        }
        let fields: Vec<Field> = projection.iter().map(|i| self.schema.fields[*i as usize].clone()).collect();
        let (origin, micros_per_row) = if end.get("rows").is_some() {
            let time = |row| self.pace.time_of(row).ok_or_else(|| self.overflow());
            (began + time(first)?, (time(last)? - time(first)?) as f64 / rows as f64)
        } else {
            let (from, to) = (self.second(start)?, self.second(Some(end))?);
            (began + from * MICROS, ((to - from) * MICROS) as f64 / rows as f64)
        };
        let pieces = (self.partitions as i64).min(rows);
        let bound = |i: i64| first + (i128::from(rows) * i128::from(i) / i128::from(pieces)) as i64;
        Ok((0..pieces)
            .map(|i| -> Box<dyn Split> {
                let values = bound(i)..bound(i + 1);
                Box::new(RateSplit { fields: fields.clone(), values, first, origin, micros_per_row })
            })
            .collect())
    }

    fn committed(&mut self, _end: &Offset) -> Result<(), ConnectorError> {
        Ok(())
    }

    fn set_continuous(&mut self) {
        self.continuous = true;
    }

    fn arrival(&mut self, now_micros: i64, _wake: &Wake) -> Arrival {
        let Some(began) = self.began else { return Arrival::Poll };
        let passed = now_micros - began;
        let next = match self.continuous {
            true => self.pace.rows_by(passed).and_then(|rows| self.next_row(rows)),
            false => Some(began + (passed / MICROS + 1) * MICROS),
        };
        next.map_or(Arrival::Poll, Arrival::At)
    }
}

struct RateSplit {
    fields: Vec<Field>,
    values: std::ops::Range<i64>,
    /// First value of the batch, and its time.
    first: i64,
    origin: i64,
    micros_per_row: f64,
}

impl Split for RateSplit {
    fn read(
        &mut self,
        deliver: &mut dyn FnMut(RecordBatch) -> Result<(), Box<dyn std::error::Error + Send + Sync>>,
    ) -> Result<SplitStats, Box<dyn std::error::Error + Send + Sync>> {
        let schema = batch_schema(&self.fields);
        let mut stats = SplitStats::default();
        let mut from = self.values.start;
        while from < self.values.end {
            let to = self.values.end.min(from + MAX_BATCH_ROWS as i64);
            // Whole milliseconds, as in Spark.
            let time = |v: i64| self.origin + ((v - self.first) as f64 * self.micros_per_row) as i64 / 1000 * 1000;
            let columns: Vec<ArrayRef> = self
                .fields
                .iter()
                .map(|f| -> ArrayRef {
                    match f.data_type {
                        DataType::Timestamp => Arc::new(
                            TimestampMicrosecondArray::from_iter_values((from..to).map(time)).with_timezone("UTC"),
                        ),
                        _ => Arc::new(Int64Array::from_iter_values(from..to)),
                    }
                })
                .collect();
            let rows = (to - from) as usize;
            stats.rows += rows as u64;
            deliver(batch(&schema, columns, rows))?;
            from = to;
        }
        Ok(stats)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::AsArray;
    use arrow::datatypes::Int64Type;

    fn source(pace: Pace) -> RateSource {
        RateSource { schema: schema(), pace, partitions: 3, began: None, frozen: None, continuous: false }
    }

    fn values(source: &mut RateSource, start: Option<&Offset>, end: &Offset) -> Vec<i64> {
        let mut values = Vec::new();
        for mut split in source.splits(start, end, &[1]).expect("splits") {
            split
                .read(&mut |batch| {
                    values.extend_from_slice(batch.column(0).as_primitive::<Int64Type>().values());
                    Ok(())
                })
                .expect("read");
        }
        values
    }

    #[test]
    fn rows_go_on_from_second_to_second_and_after_a_restart() {
        let pace = Pace { rows_per_second: 5, ramp_up: 0 };
        let mut one = source(pace);
        assert_eq!(one.latest(None, ReadLimit::Options, 500_000).expect("polled"), None);
        let first = one.latest(None, ReadLimit::Options, 2_600_000).expect("polled").expect("two seconds passed");
        assert_eq!(first.end, Offset::from(2));
        assert_eq!(values(&mut one, None, &first.end), (0..10).collect::<Vec<_>>());
        let mut two = source(pace);
        let entries = vec![(0, first.log_entry.expect("the first batch has one"))];
        two.restore(Restored { entries, offset: Some(first.end.clone()) }).expect("restored");
        let next = two.latest(Some(&first.end), ReadLimit::Options, 3_700_000).expect("polled").expect("new rows");
        assert_eq!(next.end, Offset::from(3));
        assert_eq!(values(&mut two, Some(&first.end), &next.end), (10..15).collect::<Vec<_>>());
    }

    #[test]
    fn a_ramp_grows_by_the_same_number_each_second() {
        let pace = Pace { rows_per_second: 40, ramp_up: 3 };
        let rows: Vec<_> = (0..6).map(|s| pace.rows(s).expect("small")).collect();
        assert_eq!(rows, [0, 10, 30, 60, 100, 140]);
    }

    #[test]
    fn rows_come_one_by_one_under_a_continuous_trigger() {
        let pace = Pace { rows_per_second: 4, ramp_up: 0 };
        let mut one = source(pace);
        one.set_continuous();
        assert_eq!(one.latest(None, ReadLimit::Options, 1_000_000).expect("asked"), None);
        let wake: Wake = Arc::new(|| {});
        assert_eq!(one.arrival(1_000_000, &wake), Arrival::At(1_250_000));
        let first = one.latest(None, ReadLimit::Options, 1_250_000).expect("asked").expect("a row is due");
        assert_eq!(values(&mut one, None, &first.end), [0]);
        assert_eq!(one.arrival(1_250_001, &wake), Arrival::At(1_500_000));
        let next = one.latest(Some(&first.end), ReadLimit::Options, 3_000_000).expect("asked").expect("rows are due");
        assert_eq!(values(&mut one, Some(&first.end), &next.end), [1, 2, 3, 4, 5, 6, 7]);
        // Two seconds of a ramp: 10 rows, then 20.
        let ramp = Pace { rows_per_second: 40, ramp_up: 3 };
        assert_eq!(
            (ramp.time_of(9), ramp.time_of(10), ramp.time_of(29)),
            (Some(MICROS), Some(1_050_000), Some(2 * MICROS))
        );
    }
}
