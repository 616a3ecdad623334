//! When a query's batches run: the loop of its thread, by trigger.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::handle::Shared;
use super::runner::{Advance, Runner};
use super::{Trigger, handle};
use crate::connector::{Arrival, ReadLimit, Wake};
use crate::error::Result;

/// How often a source that cannot tell is asked for new data, at first and at most.
const POLL: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(100));
/// The same under TRIGGER CONTINUOUS.
const POLL_CONTINUOUS: Duration = Duration::from_millis(1);
/// Longest sleep of a query that waits to be woken: clocks may be set, and inputs may fall idle.
const LONGEST: Duration = Duration::from_secs(1);

/// Runs micro-batches by the query's trigger until it ends.
pub(super) fn drive(runner: &mut Runner, shared: &Arc<Shared>) -> Result<()> {
    let weak = Arc::downgrade(shared);
    let wake: Wake = Arc::new(move || {
        if let Some(shared) = weak.upgrade() {
            shared.wake();
        }
    });
    match runner.trigger() {
        Trigger::AvailableNow => to_the_end(runner, shared, ReadLimit::Options),
        Trigger::Once => to_the_end(runner, shared, ReadLimit::Everything),
        Trigger::ProcessingTime(interval) if interval > 0 => by_the_clock(runner, shared, interval),
        Trigger::Continuous(interval) => continuous(runner, shared, &wake, interval.max(1)),
        Trigger::Default | Trigger::ProcessingTime(_) | Trigger::Manual => by_arrival(runner, shared, &wake),
    }
}

/// Ends a query gracefully: with `close` it finishes all that is open, and all that was committed is made durable.
pub(super) fn finish(runner: &mut Runner, shared: &Shared, close: bool) -> Result<()> {
    if close {
        runner.close();
        while let Advance::Ran(progress) = runner.run_next(ReadLimit::Options)? {
            shared.note(*progress);
        }
    }
    runner.sync()
}

/// Runs one batch if there is something to do. False: there was not.
fn step(runner: &mut Runner, shared: &Shared, limit: ReadLimit) -> Result<bool> {
    shared.answer(runner);
    shared.status(handle::PROCESSING, true, true);
    let Advance::Ran(progress) = runner.run_next(limit)? else {
        shared.idle();
        return Ok(false);
    };
    shared.note(*progress);
    Ok(true)
}

/// AVAILABLE NOW and ONCE: what is there at the start.
fn to_the_end(runner: &mut Runner, shared: &Shared, limit: ReadLimit) -> Result<()> {
    runner.freeze()?;
    while !shared.stop_requested() {
        let ran = step(runner, shared, limit)?;
        if !ran || limit == ReadLimit::Everything {
            return finish(runner, shared, runner.closes_at_end());
        }
    }
    finish(runner, shared, shared.drains())
}

/// The default trigger: the next batch as soon as there is something to do.
fn by_arrival(runner: &mut Runner, shared: &Shared, wake: &Wake) -> Result<()> {
    // Sources learn whom to wake before they are asked for the first time, so that nothing comes in between.
    runner.arrival(wake);
    let mut pause = POLL.0;
    while !shared.stop_requested() {
        if step(runner, shared, ReadLimit::Options)? {
            pause = POLL.0;
            continue;
        }
        shared.status(handle::WAITING, false, false);
        let until = match runner.arrival(wake) {
            Arrival::Poll => {
                let until = Instant::now() + pause;
                pause = (pause * 2).min(POLL.1);
                until
            }
            Arrival::At(time) => Instant::now() + until_time(runner, time),
            Arrival::Wakes => Instant::now() + LONGEST,
        };
        shared.sleep_until(until, true);
    }
    finish(runner, shared, shared.drains())
}

/// PROCESSING TIME: at multiples of the interval since the epoch. A batch that takes longer than the interval is
/// followed at once by the next, and what was missed between is not made up for (Spark's `ProcessingTimeExecutor`).
fn by_the_clock(runner: &mut Runner, shared: &Shared, interval: i64) -> Result<()> {
    while !shared.stop_requested() {
        let began = runner.now_micros();
        let ran = step(runner, shared, ReadLimit::Options)?;
        let ended = runner.now_micros();
        let (took, next) = (ended - began, next_trigger(began, ended, interval));
        if took > interval {
            tracing::warn!(
                query = runner.name(),
                "the batch is falling behind: the trigger's interval is {} ms, and it took {} ms",
                interval / 1000,
                took / 1000
            );
        }
        shared.status(handle::NEXT_TRIGGER, ran, false);
        loop {
            let left = next - runner.now_micros();
            if left <= 0 || shared.stop_requested() {
                break;
            }
            let left = Duration::from_micros(left.unsigned_abs()).min(LONGEST);
            let cut_short = shared.sleep_until(Instant::now() + left, false);
            // A question is answered without a batch; whoever is in a hurry gets one.
            if !shared.answer(runner) && cut_short {
                break;
            }
        }
    }
    finish(runner, shared, shared.drains())
}

/// CONTINUOUS: rows as they come, an epoch committed at multiples of the interval.
fn continuous(runner: &mut Runner, shared: &Shared, wake: &Wake, interval: i64) -> Result<()> {
    runner.begin_continuous()?;
    runner.arrival(wake);
    let mut due = next_multiple(runner.now_micros(), interval);
    let mut waiting = false;
    loop {
        shared.answer(runner);
        let stop = shared.stop_requested();
        let ran = runner.pass()?;
        let now = runner.now_micros();
        if now >= due || stop {
            shared.status(&format!("Committing epoch {}", runner.epoch()), false, false);
            if let Some(progress) = runner.commit_epoch()? {
                shared.note(progress);
            }
            due = next_multiple(now, interval);
            waiting = false;
        }
        if stop {
            return runner.sync();
        }
        if ran {
            continue;
        }
        if !waiting {
            shared.status(handle::WAITING, false, false);
            waiting = true;
        }
        shared.idle();
        let epoch = Duration::from_micros((due - now).unsigned_abs());
        let rows = match runner.arrival(wake) {
            Arrival::Poll => POLL_CONTINUOUS,
            Arrival::At(time) => until_time(runner, time),
            Arrival::Wakes => LONGEST,
        };
        shared.sleep_until(Instant::now() + rows.min(epoch), true);
    }
}

/// When the batch after one that began and ended at these times begins.
fn next_trigger(began: i64, ended: i64, interval: i64) -> i64 {
    next_multiple(began, interval).max(ended)
}

/// The next multiple of the interval after this time.
fn next_multiple(now: i64, interval: i64) -> i64 {
    (now.div_euclid(interval) + 1) * interval
}

/// From now to a processing time.
fn until_time(runner: &Runner, time: i64) -> Duration {
    Duration::from_micros(u64::try_from(time - runner.now_micros()).unwrap_or(0)).min(LONGEST)
}

#[cfg(test)]
mod tests {
    #[test]
    fn triggers_stand_at_multiples_of_the_interval() {
        assert_eq!(super::next_multiple(0, 10), 10);
        assert_eq!(super::next_multiple(9, 10), 10);
        assert_eq!(super::next_multiple(10, 10), 20);
        assert_eq!(super::next_multiple(-5, 10), 0);
    }

    #[test]
    fn a_batch_that_overruns_is_followed_at_once_and_does_not_pile_up() {
        let mut began = 0;
        let starts: Vec<i64> = [3, 25, 2, 10, 11, 1]
            .into_iter()
            .map(|took| {
                let next = super::next_trigger(began, began + took, 10);
                std::mem::replace(&mut began, next)
            })
            .collect();
        // The batch of 10 that takes 25 is followed at 35 by one batch, not by those of 20 and 30.
        assert_eq!(starts, [0, 10, 35, 40, 50, 61]);
        assert_eq!(began, 70);
    }
}
