//! Work beside a query: a thread that is told to stop, and is waited for, when the query ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::error::{EngineError, Result};

/// A piece of work on a thread of its own. Dropping it asks it to stop and waits: what it writes belongs to the query,
/// whose lease ends after that.
#[derive(Debug)]
pub struct Job<T> {
    thread: Option<JoinHandle<Result<T>>>,
    stop: Arc<AtomicBool>,
}

/// Whether a job should end early.
#[derive(Debug, Clone)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// It should.
    pub fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl<T: Send + 'static> Job<T> {
    /// Begins the work.
    pub fn start(name: &str, work: impl FnOnce(&Stop) -> Result<T> + Send + 'static) -> Result<Job<T>> {
        let stop = Arc::new(AtomicBool::new(false));
        let of_thread = Stop(Arc::clone(&stop));
        let thread = std::thread::Builder::new().name(format!("ssql-{name}")).spawn(move || {
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&of_thread)))
                .unwrap_or_else(|panic| Err(EngineError::of_panic(&*panic)))
        });
        let thread = thread.map_err(|e| EngineError::internal(format!("no thread for the {name}: {e}")))?;
        Ok(Job { thread: Some(thread), stop })
    }

    /// What it came to, if it has ended.
    pub fn ended(&mut self) -> Option<Result<T>> {
        self.thread.as_ref().filter(|t| t.is_finished())?;
        self.wait()
    }

    /// What it came to, once it has ended. `None` if that was told before.
    pub fn wait(&mut self) -> Option<Result<T>> {
        let thread = self.thread.take()?;
        Some(thread.join().unwrap_or_else(|panic| Err(EngineError::of_panic(&*panic))))
    }
}

impl<T> Drop for Job<T> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // Nobody is left to tell.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_beside_the_query_is_an_error_and_a_dropped_job_has_ended() {
        let mut job: Job<()> = Job::start("test", |_| panic!("so it goes")).expect("starts");
        let error = job.wait().expect("ended").expect_err("failed");
        assert!(error.message.contains("so it goes"), "{}", error.message);
        let ended = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&ended);
        let job = Job::start("test", move |stop| {
            while !stop.asked() {
                std::thread::yield_now();
            }
            seen.store(true, Ordering::SeqCst);
            Ok(())
        });
        drop(job.expect("starts"));
        assert!(ended.load(Ordering::SeqCst));
    }
}
