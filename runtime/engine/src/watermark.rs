//! Event-time watermarks: what each input has seen, what the query has agreed on, and what each operator goes by.
//!
//! Rules (Spark's, measured): an input's watermark is the largest event time it has seen, in whole milliseconds
//! rounded down, less its delay; it never moves back. The query's watermark is the smallest of its inputs' (policy
//! `min`) or the largest (`max`), begins at 1970-01-01 00:00:00, and is taken up by the batch after the one that moved
//! it. Batch N evicts by the watermark that stood after batch N-1 and drops late rows by the one that batch N-1
//! evicted by.

use serde::{Deserialize, Serialize};
use ssql_ir::{NodeId, Op, Pipeline};

/// The watermark of a query that was closed: 9999-12-31 23:59:59.999. Every window, session and kept row ends before
/// it, and a row that comes later is late.
pub const END_OF_TIME: i64 = 253_402_300_799_999_000;

/// How several inputs' watermarks become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Policy {
    /// The slowest input rules.
    #[default]
    Min,
    /// The fastest input rules.
    Max,
}

/// Both watermarks of a micro-batch, microseconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BatchWatermark {
    /// Rows at or below it are late.
    pub late: i64,
    /// Groups and kept rows at or below it are finished.
    pub evict: i64,
}

/// What an input has seen of its event-time column in one batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventTimeStats {
    /// Rows with an event time.
    pub count: u64,
    /// Smallest, microseconds.
    pub min: i64,
    /// Largest, microseconds.
    pub max: i64,
    /// Sum, for the average in the progress.
    pub sum: i128,
    /// Rows too far ahead of processing time to move the watermark (`MAX SKEW`).
    pub skewed: u64,
}

impl EventTimeStats {
    /// Takes up the stats of other rows of the same input.
    pub fn merge(&mut self, other: &EventTimeStats) {
        self.skewed += other.skewed;
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = EventTimeStats { skewed: self.skewed, ..*other };
            return;
        }
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
    }
}

/// One declared watermark of a query.
#[derive(Debug, Clone)]
struct Input {
    node: NodeId,
    delay_micros: i64,
    idle_after: Option<i64>,
    /// Its own watermark; `None` until it has seen an event time.
    value: Option<i64>,
    /// Processing time at which it last had a row.
    last_active: Option<i64>,
}

impl Input {
    fn is_idle(&self, now_micros: i64) -> bool {
        matches!((self.idle_after, self.last_active), (Some(after), Some(last)) if now_micros - last >= after)
    }
}

/// Follows a query's watermarks.
#[derive(Debug, Clone)]
pub struct WatermarkTracker {
    inputs: Vec<Input>,
    policy: Policy,
    global: i64,
}

/// The part of a tracker that a checkpoint keeps.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SavedWatermarks {
    /// The query's watermark.
    pub global: i64,
    /// Each input's own, in the pipeline's order.
    pub inputs: Vec<Option<i64>>,
}

impl WatermarkTracker {
    /// A tracker for the watermarks that the pipeline declares.
    pub fn new(pipeline: &Pipeline, policy: Policy) -> WatermarkTracker {
        let inputs = pipeline.nodes.iter().enumerate().filter_map(|(i, node)| match &node.op {
            Op::Watermark { delay, idle_after, .. } => Some(Input {
                node: NodeId(i as u32),
                delay_micros: delay.micros,
                idle_after: *idle_after,
                value: None,
                last_active: None,
            }),
            _ => None,
        });
        WatermarkTracker { inputs: inputs.collect(), policy, global: 0 }
    }

    /// Whether any watermark is declared.
    pub fn is_empty(&self) -> bool {
        self.inputs.is_empty()
    }

    /// The query's watermark, microseconds.
    pub fn global(&self) -> i64 {
        self.global
    }

    /// Takes up what a finished batch has seen: (node, stats) of each watermark node. Returns the query's watermark.
    pub fn advance(&mut self, seen: &[(NodeId, EventTimeStats)], now_micros: i64) -> i64 {
        for input in &mut self.inputs {
            let stats = seen.iter().find(|(node, _)| *node == input.node).map(|(_, s)| *s).unwrap_or_default();
            if stats.count > 0 {
                let value = (stats.max.div_euclid(1000) * 1000).saturating_sub(input.delay_micros);
                input.value = Some(input.value.map_or(value, |old| old.max(value)));
                input.last_active = Some(now_micros);
            } else {
                input.last_active.get_or_insert(now_micros);
            }
        }
        self.agree(now_micros)
    }

    /// Time alone: an input that has been silent for its `IDLE AFTER` stops holding the others back.
    pub fn tick(&mut self, now_micros: i64) {
        if self.inputs.iter().any(|input| input.idle_after.is_some()) {
            self.inputs.iter_mut().for_each(|input| _ = input.last_active.get_or_insert(now_micros));
            self.agree(now_micros);
        }
    }

    /// Ends event time: what is open may be finished.
    pub fn close(&mut self) {
        self.raise(END_OF_TIME);
    }

    /// The query's watermark is at least this.
    pub fn raise(&mut self, to: i64) {
        self.global = self.global.max(to);
    }

    /// The watermarks of the inputs: node, value, and whether it is left out as idle.
    pub fn inputs(&self, now_micros: i64) -> impl Iterator<Item = (NodeId, Option<i64>, bool)> + '_ {
        self.inputs.iter().map(move |input| (input.node, input.value, input.is_idle(now_micros)))
    }

    /// How the inputs' watermarks become one.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    fn agree(&mut self, now_micros: i64) -> i64 {
        let idle = |input: &&Input| input.is_idle(now_micros);
        // An idle input is left out; where all are idle, each counts again, as none is behind another.
        let active: Vec<i64> = match self.inputs.iter().filter(|i| !idle(i)).map(|i| i.value.unwrap_or(0)).collect() {
            none if Vec::<i64>::is_empty(&none) => self.inputs.iter().map(|i| i.value.unwrap_or(0)).collect(),
            some => some,
        };
        let agreed = match self.policy {
            Policy::Min => active.iter().min(),
            Policy::Max => active.iter().max(),
        };
        self.global = self.global.max(agreed.copied().unwrap_or(0));
        self.global
    }

    /// What the checkpoint keeps.
    pub fn save(&self) -> SavedWatermarks {
        SavedWatermarks { global: self.global, inputs: self.inputs.iter().map(|i| i.value).collect() }
    }

    /// Takes up what a checkpoint kept. An input added since then has seen nothing.
    pub fn restore(&mut self, saved: &SavedWatermarks) {
        self.global = saved.global;
        for (input, value) in self.inputs.iter_mut().zip(&saved.inputs) {
            input.value = *value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tracker(delays: &[i64], policy: Policy) -> WatermarkTracker {
        let inputs = delays.iter().enumerate().map(|(i, &delay_micros)| Input {
            node: NodeId(i as u32),
            delay_micros,
            idle_after: None,
            value: None,
            last_active: None,
        });
        WatermarkTracker { inputs: inputs.collect(), policy, global: 0 }
    }

    fn at(max: i64) -> EventTimeStats {
        EventTimeStats { count: 1, min: max, max, sum: i128::from(max), skewed: 0 }
    }

    #[test]
    fn rounds_down_to_milliseconds_and_never_moves_back() {
        let mut t = tracker(&[500], Policy::Min);
        assert_eq!(t.advance(&[(NodeId(0), at(10_999))], 0), 9_500);
        assert_eq!(t.advance(&[(NodeId(0), at(2_000))], 0), 9_500);
    }

    #[test]
    fn a_silent_input_holds_min_back_but_not_max() {
        let mut min = tracker(&[0, 0], Policy::Min);
        assert_eq!(min.advance(&[(NodeId(0), at(5_000_000))], 0), 0);
        assert_eq!(min.advance(&[(NodeId(1), at(3_000_000))], 0), 3_000_000);
        let mut max = tracker(&[0, 0], Policy::Max);
        assert_eq!(max.advance(&[(NodeId(0), at(5_000_000))], 0), 5_000_000);
    }

    #[test]
    fn an_idle_input_is_left_out() {
        let mut t = tracker(&[0, 0], Policy::Min);
        t.inputs[1].idle_after = Some(1_000);
        assert_eq!(t.advance(&[(NodeId(0), at(5_000_000))], 0), 0);
        assert_eq!(t.advance(&[(NodeId(0), at(6_000_000))], 1_000), 6_000_000);
    }

    #[test]
    fn an_input_becomes_idle_by_time_alone() {
        let mut t = tracker(&[0, 0], Policy::Min);
        t.inputs[1].idle_after = Some(1_000);
        assert_eq!(t.advance(&[(NodeId(0), at(5_000_000))], 0), 0);
        t.tick(999);
        assert_eq!(t.global(), 0);
        t.tick(1_000);
        assert_eq!(t.global(), 5_000_000);
    }

    #[test]
    fn a_closed_query_stays_closed() {
        let mut t = tracker(&[0], Policy::Min);
        t.close();
        assert_eq!(t.advance(&[(NodeId(0), at(5_000_000))], 0), END_OF_TIME);
    }

    #[test]
    fn the_epoch_is_the_floor() {
        let mut t = tracker(&[0], Policy::Min);
        assert_eq!(t.advance(&[(NodeId(0), at(-5_000_000))], 0), 0);
    }
}
