//! The handle of a running query: status, progress, stop, wait.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::connector::{Domain, ReadLimit};
use crate::error::{EngineError, Result};
use crate::progress::{QueryProgress, QueryStatus};
use crate::query::drive::{drive, finish};
use crate::query::restart::RestartPolicy;
use crate::query::runner::{Advance, Runner};
use crate::query::watermarks::WatermarkStatus;
use crate::query::{QuerySpec, Trigger};

/// Progresses kept (Spark's spark.sql.streaming.numRecentProgressUpdates).
const RECENT: usize = 100;

/// What a query says of itself, in Spark's words.
pub(super) const PROCESSING: &str = "Processing new data";
pub(super) const WAITING: &str = "Waiting for data to arrive";
pub(super) const NEXT_TRIGGER: &str = "Waiting for next trigger";

/// Called after each micro-batch, on the query's thread.
pub type OnProgress = Box<dyn Fn(&QueryProgress) + Send + Sync>;

/// Called once when a query has ended, on the thread that ended it.
pub type OnEnd = Box<dyn FnOnce() + Send>;

/// Makes what a query is started with: its sources and its sink anew each time.
pub type MakeSpec = Box<dyn FnMut() -> Result<QuerySpec> + Send>;

/// A started query. Dropping the handle leaves the query running; [`QueryHandle::stop`] ends it.
pub struct QueryHandle {
    name: String,
    id: String,
    run_id: String,
    notes: Vec<String>,
    shared: Arc<Shared>,
    driver: Mutex<Driver>,
}

/// Who advances the query.
enum Driver {
    /// A thread of its own.
    Thread(Option<JoinHandle<()>>),
    /// The caller of [`QueryHandle::process_all_available`]; `None` once it has failed or was stopped.
    Manual(Option<Box<Runner>>),
}

pub(super) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    on_progress: Option<OnProgress>,
}

struct State {
    status: QueryStatus,
    progress: VecDeque<QueryProgress>,
    error: Option<Arc<EngineError>>,
    stop: bool,
    /// With `stop`: end event time first.
    drain: bool,
    ended: bool,
    /// Whom to tell of the end.
    on_end: Vec<OnEnd>,
    /// Someone asks where the watermarks stand, and the answer.
    asked: bool,
    watermarks: Vec<WatermarkStatus>,
    /// How often the query found nothing to do.
    idle: u64,
    /// Micro-batches finished.
    batches: u64,
    /// Someone waits for that; do not sleep.
    hurry: bool,
    /// A source has something new.
    news: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// The query has ended.
    fn end(&self, change: impl FnOnce(&mut State)) {
        let mut told = Vec::new();
        self.update(|s| {
            change(s);
            s.ended = true;
            told = std::mem::take(&mut s.on_end);
        });
        told.into_iter().for_each(|call| call());
    }

    pub(super) fn status(&self, message: &str, data: bool, active: bool) {
        self.update(|s| {
            s.status = QueryStatus { message: message.to_owned(), is_data_available: data, is_trigger_active: active };
        });
    }

    /// Whether the query was asked to end.
    pub(super) fn stop_requested(&self) -> bool {
        self.lock().stop
    }

    /// Tells whoever asks where the watermarks stand. True: someone did.
    pub(super) fn answer(&self, runner: &Runner) -> bool {
        let mut state = self.lock();
        if !std::mem::take(&mut state.asked) {
            return false;
        }
        state.watermarks = runner.watermarks();
        drop(state);
        self.changed.notify_all();
        true
    }

    /// Whether the stop that was asked for is one WITH DRAIN.
    pub(super) fn drains(&self) -> bool {
        self.lock().drain
    }

    /// The query looked and found nothing to do.
    pub(super) fn idle(&self) {
        self.update(|s| s.idle += 1);
    }

    /// A source has something new.
    pub(super) fn wake(&self) {
        self.update(|s| s.news = true);
    }

    pub(super) fn note(&self, progress: QueryProgress) {
        if let Some(call) = &self.on_progress {
            call(&progress);
        }
        self.update(|s| {
            if s.progress.len() == RECENT {
                s.progress.pop_front();
            }
            s.progress.push_back(progress);
            s.batches += 1;
        });
    }

    /// Sleeps until `deadline` or a stop. True: stop.
    fn sleep_through(&self, deadline: Instant) -> bool {
        while !self.stop_requested() {
            if Instant::now() >= deadline {
                return false;
            }
            // No query runs that could say where its watermarks stand: the last answer has to do.
            self.update(|s| s.asked = false);
            self.sleep_until(deadline, false);
        }
        true
    }

    /// Sleeps until `deadline`, a stop, someone in a hurry or, where `news` is asked for, something new. True: it was
    /// cut short.
    pub(super) fn sleep_until(&self, deadline: Instant, news: bool) -> bool {
        let mut state = self.lock();
        loop {
            let hurry = std::mem::take(&mut state.hurry);
            let came = news && std::mem::take(&mut state.news);
            if state.stop || state.asked || hurry || came {
                return true;
            }
            let Some(left) = deadline.checked_duration_since(Instant::now()).filter(|d| !d.is_zero()) else {
                return false;
            };
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl QueryHandle {
    /// Starts a query: opens its checkpoint, restores its state, and lets it run by its trigger.
    pub fn start(spec: QuerySpec, on_progress: Option<OnProgress>) -> Result<QueryHandle> {
        QueryHandle::begin(spec, None, on_progress)
    }

    /// As [`QueryHandle::start`]; a failure that may pass starts what `make` makes again, by the policy.
    pub fn start_again_on_failure(
        mut make: MakeSpec,
        policy: RestartPolicy,
        on_progress: Option<OnProgress>,
    ) -> Result<QueryHandle> {
        let spec = make()?;
        QueryHandle::begin(spec, Some((make, policy)), on_progress)
    }

    fn begin(
        spec: QuerySpec,
        mut again: Option<(MakeSpec, RestartPolicy)>,
        on_progress: Option<OnProgress>,
    ) -> Result<QueryHandle> {
        let query = spec.name.clone();
        let runner = guarded(|| Runner::start(spec)).map_err(|e| e.in_query(&query))?;
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                status: QueryStatus {
                    message: "Initializing sources".to_owned(),
                    is_data_available: false,
                    is_trigger_active: false,
                },
                progress: VecDeque::new(),
                error: None,
                stop: false,
                drain: false,
                ended: false,
                on_end: Vec::new(),
                asked: false,
                watermarks: Vec::new(),
                idle: 0,
                batches: 0,
                hurry: false,
                news: false,
            }),
            changed: Condvar::new(),
            on_progress,
        });
        let notes = runner.notes().to_vec();
        let (name, id, run_id) = (runner.name().to_owned(), runner.id().to_owned(), runner.run_id().to_owned());
        let driver = if runner.trigger() == Trigger::Manual {
            Driver::Manual(Some(Box::new(runner)))
        } else {
            let of_thread = Arc::clone(&shared);
            let thread = std::thread::Builder::new()
                .name(format!("ssql-{name}"))
                .spawn(move || {
                    let result = drive_on(runner, &of_thread, again.as_mut());
                    of_thread.end(|s| {
                        s.error = result.err().map(Arc::new);
                        let message = match &s.error {
                            Some(e) => format!("Terminated with exception: {}", e.message),
                            None => "Stopped".to_owned(),
                        };
                        s.status = QueryStatus { message, is_data_available: false, is_trigger_active: false };
                    });
                })
                .map_err(|e| EngineError::internal(format!("no thread for the query: {e}")))?;
            Driver::Thread(Some(thread))
        };
        Ok(QueryHandle { name, id, run_id, notes, shared, driver: Mutex::new(driver) })
    }

    /// Name of the query.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its id, stable over restarts from the same checkpoint.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Id of this run.
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// What the user should know of how it was taken up: that it was changed, that its state begins anew.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// What the query is doing.
    pub fn status(&self) -> QueryStatus {
        self.shared.lock().status.clone()
    }

    /// The last `n` progresses, oldest first; at most 100 are kept.
    pub fn recent_progress(&self, n: usize) -> Vec<QueryProgress> {
        let state = self.shared.lock();
        let skip = state.progress.len().saturating_sub(n);
        state.progress.iter().skip(skip).cloned().collect()
    }

    /// Why the query ended, if it failed.
    pub fn error(&self) -> Option<Arc<EngineError>> {
        self.shared.lock().error.clone()
    }

    /// Whether the query is still running.
    pub fn is_active(&self) -> bool {
        !self.shared.lock().ended
    }

    /// Has `call` called when the query ends; at once if it has ended. Whoever waits for several queries waits by this.
    pub fn on_end(&self, call: OnEnd) {
        let mut state = self.shared.lock();
        if !state.ended {
            state.on_end.push(call);
            return;
        }
        drop(state);
        call();
    }

    /// Asks the query to end after its current batch, without waiting.
    pub fn request_stop(&self) {
        self.shared.update(|s| s.stop = true);
    }

    /// Ends the query after its current batch, and event time with it: windows, sessions and rows that wait for a match
    /// come out in a last batch. No more input is read. Rows that a later run from the same checkpoint reads are late.
    ///
    /// # Errors
    /// The error that ended the query, of the last batch or before.
    pub fn stop_with_drain(&self) -> Result<(), Arc<EngineError>> {
        let mut driver = self.driver.lock().unwrap_or_else(PoisonError::into_inner);
        if let Driver::Manual(Some(runner)) = &mut *driver {
            let result = guarded(|| finish(runner, &self.shared, true)).map_err(|e| runner.attribute(e));
            self.shared.update(|s| s.error = result.err().map(Arc::new));
        }
        drop(driver);
        self.shared.update(|s| s.drain = true);
        self.stop();
        self.error().map_or(Ok(()), Err)
    }

    /// Where the query's watermarks stand, after the batch that runs now.
    pub fn watermarks(&self) -> Vec<WatermarkStatus> {
        let driver = self.driver.lock().unwrap_or_else(PoisonError::into_inner);
        if let Driver::Manual(Some(runner)) = &*driver {
            return runner.watermarks();
        }
        drop(driver);
        let mut state = self.shared.lock();
        state.asked = !state.ended;
        self.shared.changed.notify_all();
        while state.asked && !state.ended {
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.watermarks.clone()
    }

    /// Ends the query after its current batch and waits for that.
    pub fn stop(&self) {
        self.request_stop();
        let mut driver = self.driver.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *driver {
            Driver::Thread(thread) => {
                if let Some(thread) = thread.take() {
                    // A panic of the thread was already turned into the query's error.
                    let _ = thread.join();
                }
            }
            Driver::Manual(runner) => {
                let watermarks = runner.as_ref().map(|r| r.watermarks()).unwrap_or_default();
                *runner = None;
                self.shared.end(|s| s.watermarks = watermarks);
            }
        }
    }

    /// Waits until the query has ended, at most for `timeout`. True: it has.
    pub fn await_termination(&self, timeout: Option<Duration>) -> bool {
        let deadline = timeout.map(|t| Instant::now() + t);
        let mut state = self.shared.lock();
        while !state.ended {
            state = match deadline {
                None => self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let Some(left) = deadline.checked_duration_since(Instant::now()) else { return false };
                    self.shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        true
    }

    /// Returns when all data present at the call has been processed and no further no-data batch is due.
    ///
    /// # Errors
    /// The error that ended the query.
    pub fn process_all_available(&self) -> Result<(), Arc<EngineError>> {
        let mut driver = self.driver.lock().unwrap_or_else(PoisonError::into_inner);
        if let Driver::Manual(slot) = &mut *driver {
            if let Some(runner) = slot {
                let result = guarded(|| {
                    while let Advance::Ran(progress) = runner.run_next(ReadLimit::Options)? {
                        self.shared.note(*progress);
                    }
                    if runner.closes_at_end() { finish(runner, &self.shared, true) } else { Ok(()) }
                });
                if let Err(e) = result {
                    let e = runner.attribute(e);
                    *slot = None;
                    self.shared.end(|s| s.error = Some(Arc::new(e)));
                }
            }
        } else {
            drop(driver);
            let mut state = self.shared.lock();
            // The check under way may have begun before the call: wait for one that begins after it.
            let until = state.idle + 2;
            while !state.ended && state.idle < until {
                state.hurry = true;
                self.shared.changed.notify_all();
                state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
        match self.error() {
            Some(e) => Err(e),
            None => Ok(()),
        }
    }
}

/// A panic in the engine becomes the query's error: other queries of the process go on.
fn guarded<T>(run: impl FnOnce() -> Result<T>) -> Result<T> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(run))
        .unwrap_or_else(|panic| Err(EngineError::of_panic(&*panic)))
}

/// Drives a query to its end, through failures that may pass. The checkpoint's lease has ended when this returns.
fn drive_on(runner: Runner, shared: &Arc<Shared>, again: Option<&mut (MakeSpec, RestartPolicy)>) -> Result<()> {
    let mut runner = Some(runner);
    let Some((make, policy)) = again else {
        return runner.as_mut().map_or(Ok(()), |r| drive_guarded(r, shared));
    };
    let mut name = String::new();
    let (mut attempt, mut batches) = (0, 0);
    loop {
        let result = match runner.take() {
            Some(mut runner) => {
                runner.name().clone_into(&mut name);
                drive_guarded(&mut runner, shared)
            }
            None => guarded(|| Runner::start(make()?)).map_err(|e| e.in_query(&name)).map(|next| runner = Some(next)),
        };
        let Err(e) = result else {
            if runner.is_some() {
                continue;
            }
            return Ok(());
        };
        let finished = shared.lock().batches;
        attempt = if finished > batches { 1 } else { attempt + 1 };
        batches = finished;
        let Some(wait) = policy.wait(attempt).filter(|_| e.retry) else { return Err(e) };
        if let Some(tell) = &policy.on_restart {
            tell(&e, attempt, wait);
        }
        shared.status(&format!("Waiting to start again after a failure: {}", e.message), false, false);
        if shared.sleep_through(Instant::now() + wait) {
            return Err(e);
        }
    }
}

/// Drives a query until it ends or fails; a panic is a failure.
fn drive_guarded(runner: &mut Runner, shared: &Arc<Shared>) -> Result<()> {
    let result = guarded(|| drive(runner, shared)).map_err(|e| runner.attribute(e));
    let watermarks = runner.watermarks();
    shared.update(|s| s.watermarks = watermarks);
    result
}

/// The error of an operation on a query that is not there.
pub fn no_such_query(name: &str) -> EngineError {
    EngineError::new("QUERY_NOT_FOUND", Domain::User, format!("there is no query `{name}`"))
        .with_help("SHOW QUERIES lists them.")
}
