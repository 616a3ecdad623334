//! Waiting for one of several things to happen, without looking at them time and again.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

/// Rung when something has happened that someone may wait for.
#[derive(Debug, Default)]
pub struct Bell {
    rung: Mutex<u64>,
    changed: Condvar,
}

impl Bell {
    /// How often it was rung. Read before looking at what one waits for: a ring in between then ends the wait.
    pub fn rung(&self) -> u64 {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something has happened.
    pub fn ring(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.changed.notify_all();
    }

    /// Waits for a ring after the first `seen`, at most until `deadline`. False: the time is up.
    pub fn wait_after(&self, seen: u64, deadline: Option<Instant>) -> bool {
        let mut rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        while *rung == seen {
            rung = match deadline {
                None => self.changed.wait(rung).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.checked_duration_since(Instant::now()).filter(|d| !d.is_zero());
                    let Some(left) = left else { return false };
                    self.changed.wait_timeout(rung, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        true
    }
}
