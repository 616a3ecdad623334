//! The log of a sink directory: which batches are committed, and the lease of the query that writes.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use ssql_engine::connector::{ConnectorError, Domain};
use ssql_state::log::{LogError, SegmentLog};

/// Directory of the log inside the sink's directory. Readers pass over names that begin with `_`.
const LOG_DIR: &str = "_ssql_log";
/// Records after which the log is made short at the next start.
const COMPACT_AFTER: usize = 1000;

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
    /// Locked as long as it is open; the system gives it back when the process dies.
    _lease: File,
}

/// Where files are staged.
pub(super) fn staging_dir(location: &Path) -> PathBuf {
    location.join(LOG_DIR).join("staging")
}

/// Makes the names in a directory durable.
pub(super) fn sync_dir(dir: &Path) -> Result<(), ConnectorError> {
    ssql_state::log::sync_dir(dir).map_err(failed)
}

impl CommitLog {
    /// Takes the lease, does the renames that the log promises, and removes what was staged in vain.
    pub(super) fn open(location: &Path, query: &str, last_committed: Option<u64>) -> Result<CommitLog, ConnectorError> {
        let staging = staging_dir(location);
        fs::create_dir_all(&staging).map_err(|e| ConnectorError::io("create", &staging, e))?;
        let lease = take_lease(location, query)?;
        let (mut log, records) = SegmentLog::open(&location.join(LOG_DIR)).map_err(failed)?;

        let mut staged = HashSet::new();
        for item in fs::read_dir(&staging).map_err(|e| ConnectorError::io("list", &staging, e))? {
            let item = item.map_err(|e| ConnectorError::io("list", &staging, e))?;
            staged.insert(item.file_name().to_string_lossy().into_owned());
        }
        let mut committed: HashMap<String, u64> = HashMap::new();
        let mut next = 0;
        let count = records.len();
        for record in records {
            next = record.sequence + 1;
            let record: Record = serde_json::from_slice(&record.payload).map_err(|e| {
                let message = format!("the log in `{}` cannot be read: {e}", location.join(LOG_DIR).display());
                ConnectorError::new("STREAM_FAILED", Domain::External, message)
            })?;
            for (query, batch) in record.committed {
                committed.entry(query).and_modify(|b| *b = batch.max(*b)).or_insert(batch);
            }
            let promised: Vec<StagedFile> = record.files.into_iter().filter(|f| staged.remove(&f.name)).collect();
            publish(location, &promised, true)?;
        }
        for name in staged {
            let path = staging.join(name);
            fs::remove_file(&path).map_err(|e| ConnectorError::io("remove", &path, e))?;
        }
        if let Some(batch) = last_committed {
            committed.entry(query.to_string()).and_modify(|b| *b = batch.max(*b)).or_insert(batch);
        }
        if count > COMPACT_AFTER {
            let head = Record { committed: committed.clone(), files: Vec::new() };
            log.roll().map_err(failed)?;
            append(&mut log, next, &head)?;
            log.sync().map_err(failed)?;
            log.remove_below(next).map_err(failed)?;
            next += 1;
        }
        Ok(CommitLog { location: location.to_path_buf(), log, committed, next, _lease: lease })
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
        publish(&self.location, files, sync)
    }
}

fn append(log: &mut SegmentLog, sequence: u64, record: &Record) -> Result<(), ConnectorError> {
    let payload = serde_json::to_vec(record).map_err(|e| {
        ConnectorError::new("INTERNAL_ERROR", Domain::Internal, format!("a commit record cannot be written: {e}"))
    })?;
    log.append(sequence, &payload).map_err(failed)
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
        fs::rename(&from, &to).map_err(|e| ConnectorError::io("rename", &from, e))?;
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
fn take_lease(location: &Path, query: &str) -> Result<File, ConnectorError> {
    let path = location.join(LOG_DIR).join("lease");
    let io = |action| {
        let path = path.clone();
        move |e| ConnectorError::io(action, &path, e)
    };
    let mut file =
        OpenOptions::new().create(true).truncate(false).read(true).write(true).open(&path).map_err(io("open"))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            file.read_to_string(&mut holder).map_err(io("read"))?;
            let message = format!("`{}` is being written by {}", location.display(), holder.trim());
            return Err(ConnectorError::new("CONCURRENT_SINK_LOG_UPDATE", Domain::User, message)
                .with_help("stop the other query, or give this one a directory of its own"));
        }
        Err(TryLockError::Error(e)) => return Err(io("lock")(e)),
    }
    file.set_len(0).map_err(io("write"))?;
    writeln!(file, "query {query} of process {}", std::process::id()).map_err(io("write"))?;
    Ok(file)
}

fn failed(error: LogError) -> ConnectorError {
    let mut wrapped = ConnectorError::new("FAILED_FILE_OPERATION", Domain::External, error.to_string());
    wrapped.source = Some(Box::new(error));
    wrapped
}
