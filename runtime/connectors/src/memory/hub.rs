//! Where the memory relations of a session keep their rows.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use arrow::array::RecordBatch;
use ssql_engine::connector::{ConnectorError, Domain, Wake};

/// The memory relations of a session, by name in any case. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct MemoryHub {
    inner: Arc<Mutex<Relations>>,
}

#[derive(Debug, Default)]
struct Relations {
    /// Streams and tables: they differ only in how they are read.
    fed: HashMap<String, Shared<Additions>>,
    sinks: HashMap<String, Shared<SinkRows>>,
    /// Whom an addition to a stream wakes; queries that have ended are gone from here at the next addition.
    wakers: HashMap<String, Vec<Waker>>,
}

/// A query that reads a stream.
struct Waker(Weak<dyn Fn() + Send + Sync>);

impl std::fmt::Debug for Waker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Waker")
    }
}

/// Rows that a relation and its readers share.
pub(super) type Shared<T> = Arc<Mutex<T>>;

/// What INSERT put into a relation, one list of batches for each statement.
pub(super) type Additions = Vec<Vec<RecordBatch>>;

/// A sink: what each query put in it.
#[derive(Debug, Default)]
pub(super) struct SinkRows {
    pub(super) batches: Vec<RecordBatch>,
    /// The newest batch of each query.
    pub(super) committed: HashMap<String, u64>,
}

/// Locks; a panic elsewhere leaves the rows as they were, since each change is one assignment or push.
pub(super) fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MemoryHub {
    /// An empty hub.
    pub fn new() -> MemoryHub {
        MemoryHub::default()
    }

    /// Makes the stream or table of that name empty.
    pub fn create(&self, name: &str) {
        lock(&self.inner).fed.insert(name.to_lowercase(), Shared::default());
    }

    /// Forgets the relation of that name and its rows. Queries that still read it keep what was there.
    pub fn drop_relation(&self, name: &str) {
        let mut inner = lock(&self.inner);
        let name = name.to_lowercase();
        inner.fed.remove(&name);
        inner.sinks.remove(&name);
    }

    /// Adds rows to a stream or table at once: for a stream they are one addition.
    ///
    /// # Errors
    /// The batches have other columns than those before.
    pub fn insert(&self, name: &str, batches: Vec<RecordBatch>) -> Result<(), ConnectorError> {
        let relation = self.fed(name);
        let mut additions = lock(&relation);
        let known = additions.iter().flatten().next().map(RecordBatch::num_columns);
        let strange = batches.iter().map(RecordBatch::num_columns).find(|n| known.is_some_and(|known| known != *n));
        if let (Some(known), Some(given)) = (known, strange) {
            let message = format!("`{name}` has {known} columns, the rows have {given}");
            return Err(ConnectorError::new("INSERT_COLUMN_ARITY_MISMATCH", Domain::User, message));
        }
        additions.push(batches);
        drop(additions);
        let mut inner = lock(&self.inner);
        if let Some(wakers) = inner.wakers.get_mut(&name.to_lowercase()) {
            let live: Vec<Wake> = wakers.iter().filter_map(|w| w.0.upgrade()).collect();
            wakers.retain(|w| w.0.strong_count() > 0);
            drop(inner);
            live.iter().for_each(|wake| wake());
        }
        Ok(())
    }

    /// From now on an addition to the stream of that name wakes that reader.
    pub(super) fn wake_on_addition(&self, name: &str, wake: &Wake) {
        let waker = Waker(Arc::downgrade(wake));
        lock(&self.inner).wakers.entry(name.to_lowercase()).or_default().push(waker);
    }

    /// The rows of the table or sink of that name, if there is one.
    pub fn rows(&self, name: &str) -> Option<Vec<RecordBatch>> {
        let inner = lock(&self.inner);
        let name = name.to_lowercase();
        if let Some(sink) = inner.sinks.get(&name) {
            return Some(lock(sink).batches.clone());
        }
        inner.fed.get(&name).map(|relation| lock(relation).concat())
    }

    /// How many additions the stream of that name has had.
    pub fn additions(&self, name: &str) -> usize {
        lock(&self.fed(name)).len()
    }

    /// The stream or table of that name, made if missing.
    pub(super) fn fed(&self, name: &str) -> Shared<Additions> {
        lock(&self.inner).fed.entry(name.to_lowercase()).or_default().clone()
    }

    /// The sink of that name, made if missing.
    pub(super) fn sink(&self, name: &str) -> Shared<SinkRows> {
        lock(&self.inner).sinks.entry(name.to_lowercase()).or_default().clone()
    }
}
