//! Processing time, handed in so that tests can hold it still.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Where processing time comes from.
pub trait Clock: Send + Sync {
    /// Microseconds since 1970-01-01 00:00:00 UTC.
    fn now_micros(&self) -> i64;
}

/// The machine's clock.
#[derive(Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_micros(&self) -> i64 {
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_micros()).map_or(i64::MIN, |m| -m),
        }
    }
}

/// A clock that stands still until it is advanced; it begins at the epoch.
#[derive(Debug, Default)]
pub struct VirtualClock(AtomicI64);

impl VirtualClock {
    /// Moves the clock forward.
    pub fn advance(&self, micros: i64) {
        self.0.fetch_add(micros, Ordering::SeqCst);
    }
}

impl Clock for VirtualClock {
    fn now_micros(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}
