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

/// What has been seen of a query, and when advice was last given.
#[derive(Debug, Default)]
pub struct Advice {
    behind: u32,
    tiny: u32,
    given: [Option<Instant>; 3],
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
        said
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
