//! The log of a sink directory: which batches are committed, and the lease of the query that writes.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use ssql_engine::connector::{ConnectorError, Domain, Holder};
use ssql_state::log::{LogError, SegmentLog};
use ssql_state::{Lease, LeaseError, failpoint, file};

/// Directory of the log inside the sink's directory. Readers pass over names that begin with `_`.
const LOG_DIR: &str = "_ssql_log";

/// A file that waits to be renamed into its place.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct StagedFile {
    /// Name in the staging directory.
    pub(super) name: String,
    /// Path below the sink's directory.
    pub(super) target: String,
    pub(super) rows: u64,
    pub(super) bytes: u64,
}

/// One record.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    /// The newest committed batch of each query, as far as this record tells: of one, or at the log's head of all.
    committed: HashMap<String, u64>,
    files: Vec<StagedFile>,
}

/// The open log, with the lease on the directory.
#[derive(Debug)]
pub(super) struct CommitLog {
    location: PathBuf,
    log: SegmentLog,
    committed: HashMap<String, u64>,
    next: u64,
    /// Records since the log was made short, and how many make it worth doing again.
    records: u64,
    compact_after: u64,
    _lease: Lease,
}

/// Where files are staged.
pub(super) fn staging_dir(location: &Path) -> PathBuf {
    location.join(LOG_DIR).join("staging")
}

/// Makes the names in a directory durable.
pub(super) fn sync_dir(dir: &Path) -> Result<(), ConnectorError> {
    failpoint::reach("sink-before-dir-sync").map_err(failed)?;
    file::sync_dir(dir).map_err(failed)
}

impl CommitLog {
    /// Takes the lease, does the renames that the log promises, and removes what was staged in vain. The log is made
    /// short each `compact_after` batches.
    pub(super) fn open(
        location: &Path,
        query: &Holder,
        last_committed: Option<u64>,
        compact_after: u64,
    ) -> Result<CommitLog, ConnectorError> {
        let staging = staging_dir(location);
        fs::create_dir_all(&staging).map_err(|e| ConnectorError::io("create", &staging, e))?;
        let lease = take_lease(location, query)?;
        let (log, records) = SegmentLog::open(&location.join(LOG_DIR), "sink-log").map_err(failed)?;

        let mut staged = HashSet::new();
        for item in fs::read_dir(&staging).map_err(|e| ConnectorError::io("list", &staging, e))? {
            let item = item.map_err(|e| ConnectorError::io("list", &staging, e))?;
            staged.insert(item.file_name().to_string_lossy().into_owned());
        }
        let mut committed: HashMap<String, u64> = HashMap::new();
        let mut next = 0;
        let count = records.len() as u64;
        for record in records {
            next = record.sequence + 1;
            let record: Record = serde_json::from_slice(&record.payload).map_err(|e| {
                let message = format!("the log in `{}` cannot be read: {e}", location.join(LOG_DIR).display());
                ConnectorError::new("SINK_LOG_CORRUPT", Domain::External, message)
            })?;
            for (query, batch) in record.committed {
                committed.entry(query).and_modify(|b| *b = batch.max(*b)).or_insert(batch);
            }
            let promised: Vec<StagedFile> = record.files.into_iter().filter(|f| staged.remove(&f.name)).collect();
            if !promised.is_empty() {
                failpoint::reach("sink-before-recover").map_err(failed)?;
                promised.iter().try_for_each(|file| check_whole(&staging, file))?;
                publish(location, &promised, true)?;
                failpoint::reach("sink-after-recover").map_err(failed)?;
            }
        }
        for name in staged {
            let path = staging.join(name);
            failpoint::reach("sink-before-clean").map_err(failed)?;
            fs::remove_file(&path).map_err(|e| ConnectorError::io("remove", &path, e))?;
            failpoint::reach("sink-after-clean").map_err(failed)?;
        }
        if let Some(batch) = last_committed {
            committed.entry(query.query_id.clone()).and_modify(|b| *b = batch.max(*b)).or_insert(batch);
        }
        let location = location.to_path_buf();
        Ok(CommitLog { location, log, committed, next, records: count, compact_after, _lease: lease })
    }

    pub(super) fn is_committed(&self, query: &str, batch: u64) -> bool {
        self.committed.get(query).is_some_and(|newest| batch <= *newest)
    }

    /// Commits a batch and makes its files visible.
    pub(super) fn commit(
        &mut self,
        query: &str,
        batch: u64,
        files: &[StagedFile],
        sync: bool,
    ) -> Result<(), ConnectorError> {
        let record = Record { committed: HashMap::from([(query.to_string(), batch)]), files: files.to_vec() };
        append(&mut self.log, self.next, &record)?;
        self.next += 1;
        if sync {
            self.log.sync().map_err(failed)?;
        }
        self.committed.insert(query.to_string(), batch);
        publish(&self.location, files, sync)?;
        self.records += 1;
        if self.records > self.compact_after { self.compact() } else { Ok(()) }
    }

    /// Makes the log one record: the newest batch of each query. All files that it listed are in their places, where
    /// readers find them without it.
    fn compact(&mut self) -> Result<(), ConnectorError> {
        let head = Record { committed: self.committed.clone(), files: Vec::new() };
        self.log.roll().map_err(failed)?;
        let first = self.next;
        append(&mut self.log, first, &head)?;
        self.next += 1;
        self.records = 1;
        self.log.sync().map_err(failed)?;
        self.log.remove_below(first).map_err(failed)
    }
}

fn append(log: &mut SegmentLog, sequence: u64, record: &Record) -> Result<(), ConnectorError> {
    let payload = serde_json::to_vec(record).map_err(|e| {
        ConnectorError::new("INTERNAL_ERROR", Domain::Internal, format!("a commit record cannot be written: {e}"))
    })?;
    log.append(sequence, &payload).map_err(failed)
}

/// A file that was promised was synced before: that it has another size now is no crash but damage.
fn check_whole(staging: &Path, file: &StagedFile) -> Result<(), ConnectorError> {
    let path = staging.join(&file.name);
    let bytes = fs::metadata(&path).map_err(|e| ConnectorError::io("read", &path, e))?.len();
    if bytes == file.bytes {
        return Ok(());
    }
    let message = format!("`{}` belongs to a committed batch and has {bytes} of {} bytes", path.display(), file.bytes);
    Err(ConnectorError::new("SINK_LOG_CORRUPT", Domain::External, message)
        .with_help("restore the folder from a copy, or start over with a new sink and a new checkpoint"))
}

/// Renames files to their places.
fn publish(location: &Path, files: &[StagedFile], sync: bool) -> Result<(), ConnectorError> {
    let staging = staging_dir(location);
    let mut dirs = HashSet::new();
    for file in files {
        let (from, to) = (staging.join(&file.name), location.join(&file.target));
        let dir = to.parent().expect("a target stands below the sink's directory").to_path_buf();
        if dir != location && !dirs.contains(&dir) && !dir.exists() {
            fs::create_dir_all(&dir).map_err(|e| ConnectorError::io("create", &dir, e))?;
            // New directories must be found again after a crash, up to the sink's own.
            let mut above = dir.parent();
            while let Some(parent) = above.filter(|p| p.starts_with(location)) {
                dirs.insert(parent.to_path_buf());
                above = parent.parent();
            }
        }
        failpoint::reach("sink-before-rename").map_err(failed)?;
        fs::rename(&from, &to).map_err(|e| ConnectorError::io("rename", &from, e))?;
        failpoint::reach("sink-after-rename").map_err(failed)?;
        dirs.insert(dir);
    }
    if sync {
        for dir in &dirs {
            sync_dir(dir)?;
        }
    }
    Ok(())
}

/// Locks the directory for one query.
fn take_lease(location: &Path, query: &Holder) -> Result<Lease, ConnectorError> {
    Lease::take(&location.join(LOG_DIR).join("lease"), query).map_err(|e| match e {
        LeaseError::Held { holder } => {
            let message = format!("the sink `{}` is in use by {holder}", location.display());
            ConnectorError::new("CONCURRENT_SINK_LOG_UPDATE", Domain::User, message)
                .with_help("stop the other query, or give this one a directory of its own")
        }
        LeaseError::Log(error) => failed(error),
    })
}

pub(super) fn failed(error: LogError) -> ConnectorError {
    if let LogError::Io { action, path, source } = error {
        return ConnectorError::io(action, &path, source);
    }
    let mut wrapped = ConnectorError::new("SINK_LOG_CORRUPT", Domain::External, error.to_string());
    wrapped.source = Some(Box::new(error));
    wrapped
}
