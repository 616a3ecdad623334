//! What becomes of a query that fails for a reason that may pass: it is started again from its checkpoint, after a while.

use std::sync::Arc;
use std::time::Duration;

use crate::error::EngineError;

/// Told of each restart: the failure, which attempt in a row follows, and after how long.
pub type OnRestart = Arc<dyn Fn(&EngineError, u64, Duration) + Send + Sync>;

/// When a failed query is started again. Only failures that may pass count ([`EngineError::retry`]); all others end it.
#[derive(Clone)]
pub struct RestartPolicy {
    /// Attempts in a row; a finished batch makes the count start over.
    pub max_attempts: u64,
    /// Wait before the first; each further one waits twice as long.
    pub delay: Duration,
    /// Longest wait.
    pub max_delay: Duration,
    /// Who is told.
    pub on_restart: Option<OnRestart>,
}

impl Default for RestartPolicy {
    fn default() -> RestartPolicy {
        RestartPolicy {
            max_attempts: 5,
            delay: Duration::from_secs(1),
            max_delay: Duration::from_secs(60),
            on_restart: None,
        }
    }
}

impl RestartPolicy {
    /// How long to wait before that attempt in a row (from 1); `None`: no more.
    pub fn wait(&self, attempt: u64) -> Option<Duration> {
        if attempt > self.max_attempts {
            return None;
        }
        let doublings = u32::try_from(attempt.saturating_sub(1)).unwrap_or(u32::MAX).min(31);
        Some(self.delay.saturating_mul(1 << doublings).min(self.max_delay))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wait_is_twice_the_last_up_to_the_longest() {
        let policy = RestartPolicy {
            max_attempts: 5,
            delay: Duration::from_millis(100),
            max_delay: Duration::from_millis(500),
            on_restart: None,
        };
        let waits: Vec<_> = (1..=6).map(|n| policy.wait(n).map(|d| d.as_millis())).collect();
        assert_eq!(waits, [Some(100), Some(200), Some(400), Some(500), Some(500), None]);
        let many = RestartPolicy { max_attempts: u64::MAX, ..policy };
        assert_eq!(many.wait(u64::MAX), Some(Duration::from_millis(500)));
    }
}
