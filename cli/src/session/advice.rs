//! Warnings that help: what a query's progress says of its future.

use std::time::{Duration, Instant};

use ssql_engine::progress::QueryProgress;

/// Batches in a row that make a trend.
const TREND: u32 = 5;
/// The same advice is given at most so often.
const REPEAT: Duration = Duration::from_secs(60);
/// Rows of a batch below which a share of late rows says nothing.
const ENOUGH_ROWS: u64 = 100;
/// Rows a batch of a file sink below which its files are tiny, and the batches after which that is said.
const TINY: (i64, u32) = (1000, 50);

/// Batches with rows in which the watermark stands still before that is said.
const STANDSTILL: u32 = 20;
/// Batches in a row in which the state grows and nothing leaves it, and the rows it then has, before that is said.
const GROWTH: (u32, u64) = (50, 100_000);

/// What has been seen of a query, and when advice was last given.
#[derive(Debug, Default)]
pub struct Advice {
    behind: u32,
    tiny: u32,
    /// The watermark, and the batches that it has stood there, held back by an input.
    standing: (Option<String>, u32),
    /// Rows of all states, and the batches in which they have only grown.
    growing: (u64, u32),
    given: [Option<Instant>; 5],
}

impl Advice {
    /// Takes a progress up. Returns what to tell the user now.
    pub fn note(&mut self, p: &QueryProgress) -> Vec<String> {
        let mut said = Vec::new();
        let overrun = p.num_input_rows > 0 && p.input_rows_per_second > p.processed_rows_per_second;
        self.behind = if overrun { self.behind + 1 } else { 0 };
        if self.behind >= TREND && self.due(0) {
            said.push(format!(
                "input comes faster than it is processed ({:.1} rows a second against {:.1}) for {} batches: the backlog \
                 grows; bound a batch by the source's rate option, or give the query more cores",
                p.input_rows_per_second, p.processed_rows_per_second, self.behind
            ));
        }
        let late: u64 = p.state_operators.iter().map(|s| s.num_rows_dropped_by_watermark).sum();
        if p.num_input_rows >= ENOUGH_ROWS && late * 20 > p.num_input_rows && self.due(1) {
            said.push(format!(
                "{late} of {} rows came behind the watermark and were dropped; a longer WATERMARK delay keeps them",
                p.num_input_rows
            ));
        }
        let files = p.sink.description.starts_with("FileSink");
        if files && p.sink.num_output_rows > 0 {
            self.tiny = if p.sink.num_output_rows < TINY.0 { self.tiny + 1 } else { 0 };
        }
        if self.tiny >= TINY.1 && self.due(2) {
            said.push(format!(
                "the last {} batches wrote fewer than {} rows each, a file or more a batch; TRIGGER PROCESSING TIME with a \
                 longer interval gives fewer and larger files",
                self.tiny, TINY.0
            ));
        }
        if p.num_input_rows > 0 {
            said.extend(self.note_standstill(p));
            said.extend(self.note_growth(p));
        }
        said
    }

    fn note_standstill(&mut self, p: &QueryProgress) -> Option<String> {
        let watermark = p.event_time.get("watermark");
        let still = !p.held_back.is_empty() && watermark == self.standing.0.as_ref();
        self.standing = (watermark.cloned(), if still { self.standing.1 + 1 } else { 0 });
        let watermark = watermark.filter(|_| self.standing.1 >= STANDSTILL && self.due(3))?;
        Some(format!(
            "the watermark has stood at {watermark} for {} batches, {}, and nothing closes meanwhile; WATERMARK ... IDLE AFTER \
             lets an input go that has no rows",
            self.standing.1, p.held_back
        ))
    }

    fn note_growth(&mut self, p: &QueryProgress) -> Option<String> {
        let rows: u64 = p.state_operators.iter().map(|s| s.num_rows_total).sum();
        let removed: u64 = p.state_operators.iter().map(|s| s.num_rows_removed).sum();
        let grows = removed == 0 && rows > self.growing.0;
        self.growing = (rows, if grows { self.growing.1 + 1 } else { 0 });
        (self.growing.1 >= GROWTH.0 && rows >= GROWTH.1 && self.due(4)).then(|| {
            format!(
                "the state has grown in each of the last {} batches, to {rows} rows, and none have left it; a watermark on a \
                 column that is among the keys bounds it (EXPLAIN says what bounds each operator)",
                self.growing.1
            )
        })
    }

    fn due(&mut self, advice: usize) -> bool {
        let now = Instant::now();
        let due = self.given[advice].is_none_or(|last| now - last >= REPEAT);
        if due {
            self.given[advice] = Some(now);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use ssql_engine::progress::{SinkProgress, StateOperatorProgress};

    use super::*;

    fn progress(rows: u64, arriving: f64, processed: f64) -> QueryProgress {
        QueryProgress {
            id: String::new(),
            run_id: String::new(),
            name: None,
            timestamp: String::new(),
            batch_id: 0,
            batch_duration: 1,
            num_input_rows: rows,
            input_rows_per_second: arriving,
            processed_rows_per_second: processed,
            duration_ms: Default::default(),
            event_time: Default::default(),
            state_operators: Vec::new(),
            sources: Vec::new(),
            sink: SinkProgress { description: "MemorySink".to_owned(), num_output_rows: 1 },
            held_back: String::new(),
        }
    }

    #[test]
    fn a_trend_is_told_once() {
        let mut advice = Advice::default();
        let said: usize = (0..20).map(|_| advice.note(&progress(10, 20.0, 10.0)).len()).sum();
        assert_eq!(said, 1);
        let mut advice = Advice::default();
        let said: usize = (0..20).map(|i| advice.note(&progress(10, f64::from(i % 4) * 10.0, 15.0)).len()).sum();
        assert_eq!(said, 0);
    }

    #[test]
    fn a_watermark_that_stands_still_is_told_with_who_holds_it() {
        let mut p = progress(10, 1.0, 2.0);
        p.event_time.insert("watermark", "2024-01-01T00:00:00.000Z".to_owned());
        let mut advice = Advice::default();
        assert!((0..50).all(|_| advice.note(&p).is_empty()), "nobody holds it");
        p.held_back = "held back by clicks.ts".to_owned();
        let said: Vec<String> = (0..50).flat_map(|_| advice.note(&p)).collect();
        assert!(said.len() == 1 && said[0].contains("held back by clicks.ts"), "{said:?}");
        let mut advice = Advice::default();
        for second in 10..60 {
            p.event_time.insert("watermark", format!("2024-01-01T00:00:{second}.000Z"));
            assert!(advice.note(&p).is_empty(), "it moves");
        }
    }

    #[test]
    fn state_that_only_grows_is_told() {
        let mut p = progress(10, 1.0, 2.0);
        p.state_operators.push(StateOperatorProgress::default());
        let mut grow = |removed: u64| {
            let mut advice = Advice::default();
            let mut said = vec![];
            for batch in 1..100 {
                p.state_operators[0].num_rows_total = batch * 10_000;
                p.state_operators[0].num_rows_removed = removed;
                said.extend(advice.note(&p));
            }
            said
        };
        let said = grow(0);
        assert!(said.len() == 1 && said[0].contains("to 500000 rows"), "{said:?}");
        assert!(grow(1).is_empty());
    }

    #[test]
    fn many_late_rows_and_tiny_files_are_told() {
        let mut p = progress(1000, 1.0, 2.0);
        p.state_operators
            .push(StateOperatorProgress { num_rows_dropped_by_watermark: 51, ..StateOperatorProgress::default() });
        assert!(Advice::default().note(&p)[0].starts_with("51 of 1000 rows came behind the watermark"));
        p.state_operators.clear();
        p.sink.description = "FileSink[file:/out]".to_owned();
        let mut advice = Advice::default();
        let said: Vec<String> = (0..60).flat_map(|_| advice.note(&p)).collect();
        assert!(said.len() == 1 && said[0].contains("fewer and larger files"), "{said:?}");
    }
}
