//! The file stream. Its offset counts listings that found something new: `{"logOffset": n}`, as in Spark; the log entry
//! of a batch holds its files, so that a replay reads the same ones.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use ahash::RandomState;
use serde::{Deserialize, Serialize};
use ssql_engine::connector::{
    Arrival, Batch, Compactor, ConnectorError, Domain, Offset, ReadLimit, Restored, Source, Split, Wake,
};
use ssql_ir::Schema;

use super::list::{FileEntry, Lister};
use super::options::{CleanSource, FileOptions};
use super::reader::FileReader;
use super::watch::Watch;

/// File lists kept after a restart: the batches that may still be replayed are among the newest.
const KEPT_BATCHES: u64 = 16;

/// A batch's files, as the checkpoint keeps them.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LogEntry {
    log_offset: u64,
    files: Vec<FileEntry>,
    /// It stands for all entries up to its offset, and files older than this (microseconds) were left out of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    compacted_from: Option<i64>,
}

fn entry_of(batch: u64, bytes: &[u8]) -> Result<LogEntry, ConnectorError> {
    serde_json::from_slice(bytes).map_err(|e| {
        let message = format!("the checkpoint's list of files of batch {batch} cannot be read: {e}");
        ConnectorError::new("CHECKPOINT_CORRUPT", Domain::External, message)
    })
}

fn bytes_of(entry: &LogEntry) -> Result<Vec<u8>, ConnectorError> {
    serde_json::to_vec(entry).map_err(|e| {
        ConnectorError::new("STREAM_FAILED", Domain::Internal, format!("the list of files cannot be written: {e}"))
    })
}

/// Makes one entry of old ones. Files older than `max_age` before the newest are left out, and ignored ever after.
fn compact(entries: Vec<(u64, Vec<u8>)>, max_age: i64) -> Result<Vec<u8>, ConnectorError> {
    let mut all = LogEntry { log_offset: 0, files: Vec::new(), compacted_from: Some(i64::MIN) };
    for (batch, bytes) in entries {
        let entry = entry_of(batch, &bytes)?;
        all.log_offset = entry.log_offset;
        all.compacted_from = all.compacted_from.max(entry.compacted_from);
        all.files.extend(entry.files);
    }
    let newest = all.files.iter().map(|f| f.mtime).max().unwrap_or(i64::MIN);
    let horizon = newest.saturating_sub(max_age);
    all.files.retain(|f| f.mtime >= horizon);
    all.compacted_from = all.compacted_from.max(Some(horizon));
    bytes_of(&all)
}

/// Files that were taken before, by a 128-bit hash of what they are known by: a collision would lose a file, and at a
/// billion files its chance is below one in a billion billion.
#[derive(Debug)]
struct Seen {
    hashers: [RandomState; 2],
    /// Modification times, microseconds.
    files: HashMap<u128, i64, RandomState>,
    name_only: bool,
    max_age: i64,
    newest: i64,
    /// Files older than this were forgotten and are ignored.
    horizon: i64,
}

impl Seen {
    fn new(options: &FileOptions) -> Seen {
        Seen {
            hashers: [RandomState::new(), RandomState::new()],
            files: HashMap::default(),
            name_only: options.file_name_only,
            max_age: options.max_age,
            newest: i64::MIN,
            horizon: i64::MIN,
        }
    }

    fn key(&self, path: &Path) -> u128 {
        let known_by = if self.name_only { path.file_name().unwrap_or_default() } else { path.as_os_str() };
        let [high, low] = &self.hashers;
        u128::from(high.hash_one(known_by)) << 64 | u128::from(low.hash_one(known_by))
    }

    fn contains(&self, path: &Path) -> bool {
        self.files.contains_key(&self.key(path))
    }

    fn insert(&mut self, file: &FileEntry) {
        let key = self.key(&file.path);
        self.files.insert(key, file.mtime);
        self.newest = self.newest.max(file.mtime);
    }

    /// Whether a new file is too old to be taken.
    fn is_too_old(&self, file: &FileEntry) -> bool {
        file.mtime < self.horizon
    }

    /// Forgets files that are too old, now and then, so that the cost is spread over many batches.
    fn purge(&mut self) {
        let horizon = self.newest.saturating_sub(self.max_age);
        if self.newest > i64::MIN && horizon > self.horizon.saturating_add(self.max_age / 8) {
            self.files.retain(|_, mtime| *mtime >= horizon);
            self.horizon = horizon;
        }
    }
}

pub(super) struct FileSource {
    location: String,
    reader: Arc<FileReader>,
    options: FileOptions,
    lister: Lister,
    seen: Seen,
    /// New files that no batch has taken yet, in the order they will be.
    pending: VecDeque<FileEntry>,
    /// The number of the newest log entry.
    last: Option<u64>,
    /// Files of the batches that may still be asked for.
    batches: BTreeMap<u64, Vec<FileEntry>>,
    frozen: bool,
    /// What tells that files have come; `Some(None)`: nothing can.
    watch: Option<Option<Watch>>,
}

impl FileSource {
    pub(super) fn new(location: String, reader: Arc<FileReader>, options: FileOptions, lister: Lister) -> FileSource {
        let seen = Seen::new(&options);
        FileSource {
            location,
            reader,
            options,
            lister,
            seen,
            pending: VecDeque::new(),
            last: None,
            batches: BTreeMap::new(),
            frozen: false,
            watch: None,
        }
    }

    /// Takes up what is new in the directory.
    fn refresh(&mut self) -> Result<(), ConnectorError> {
        let seen = &self.seen;
        let mut found = self.lister.list(&mut |path| !seen.contains(path))?;
        found.retain(|file| !self.seen.is_too_old(file));
        if let Some(strange) = found.iter().find(|f| f.path.to_str().is_none()) {
            let message = format!("`{}`: the name is not UTF-8", strange.path.display());
            return Err(ConnectorError::new("FAILED_READ_FILE.NO_HINT", Domain::External, message)
                .with_help("rename the file, or leave it out with `pathGlobFilter`"));
        }
        found.sort_unstable_by(|a, b| (a.mtime, &a.path).cmp(&(b.mtime, &b.path)));
        if self.options.file_name_only {
            // Of several new files with one name the first counts.
            let mut names = std::collections::HashSet::new();
            found.retain(|f| names.insert(self.seen.key(&f.path)));
        }
        if self.options.latest_first {
            found.reverse();
        }
        // Pending files are not in `seen`, so files in directories that were listed again are found twice.
        let listed: std::collections::HashSet<&Path> = found.iter().map(|f| f.path.as_path()).collect();
        let mut all: Vec<FileEntry> = std::mem::take(&mut self.pending).into();
        all.retain(|f| !listed.contains(f.path.as_path()));
        all.extend(found);
        all.sort_by(|a, b| (a.mtime, &a.path).cmp(&(b.mtime, &b.path)));
        if self.options.latest_first {
            all.reverse();
        }
        if all.len() > self.options.max_cached && !self.frozen && self.limited() {
            all.truncate(self.options.max_cached.max(1));
            self.lister.forget();
        }
        self.pending = all.into();
        Ok(())
    }

    fn limited(&self) -> bool {
        self.options.max_files.is_some() || self.options.max_bytes.is_some()
    }

    /// How many of the pending files the next batch takes.
    fn quota(&self, limit: ReadLimit) -> usize {
        match (limit, self.options.max_files, self.options.max_bytes) {
            (ReadLimit::Options, Some(files), _) => self.pending.len().min(files as usize),
            (ReadLimit::Options, None, Some(bytes)) => {
                let mut sum = 0u64;
                let within = |f: &&FileEntry| {
                    sum = sum.saturating_add(f.size);
                    sum <= bytes
                };
                self.pending.iter().take_while(within).count().max(1).min(self.pending.len())
            }
            _ => self.pending.len(),
        }
    }

    fn log_offset(&self, offset: Option<&Offset>) -> Result<Option<u64>, ConnectorError> {
        let Some(offset) = offset else { return Ok(None) };
        offset.get("logOffset").and_then(Offset::as_u64).map(Some).ok_or_else(|| {
            let message = format!("`{offset}` is no offset of a file source");
            ConnectorError::new("STREAM_FAILED", Domain::Internal, message)
        })
    }

    fn clean(&self, file: &FileEntry) -> std::io::Result<()> {
        match &self.options.clean {
            CleanSource::Off => Ok(()),
            CleanSource::Delete => fs::remove_file(&file.path),
            CleanSource::Archive(dir) => {
                let below: std::path::PathBuf =
                    file.path.components().filter(|c| matches!(c, std::path::Component::Normal(_))).collect();
                let target = dir.join(below);
                if let Some(parent) = target.parent() {
                    fs::create_dir_all(parent)?;
                }
                fs::rename(&file.path, target)
            }
        }
    }
}

fn fail(point: &str) -> Result<(), ConnectorError> {
    ssql_state::failpoint::reach(point)
        .map_err(|e| ConnectorError::new("FAILED_FILE_OPERATION", Domain::External, e.to_string()))
}

impl Source for FileSource {
    fn schema(&self) -> &Schema {
        &self.reader.schema
    }

    fn description(&self) -> String {
        format!("FileStreamSource[file:{}]", self.location)
    }

    fn restore(&mut self, restored: Restored) -> Result<(), ConnectorError> {
        let Some(end) = self.log_offset(restored.offset.as_ref())? else { return Ok(()) };
        self.last = Some(end);
        let mut newest = None;
        for (batch, bytes) in restored.entries {
            let entry = entry_of(batch, &bytes)?;
            // An entry past the offset belongs to a batch that was never begun: its files are new again.
            if entry.log_offset > end {
                continue;
            }
            newest = Some(entry.log_offset);
            entry.files.iter().for_each(|file| self.seen.insert(file));
            if let Some(horizon) = entry.compacted_from {
                self.seen.horizon = self.seen.horizon.max(horizon);
            } else if entry.log_offset + KEPT_BATCHES > end {
                self.batches.insert(entry.log_offset, entry.files);
            }
        }
        // Entries are durable before their offsets: without them files that were read would count as new.
        if newest != Some(end) {
            let message = format!("the checkpoint's list of the files that were read ends before offset {end}");
            return Err(ConnectorError::new("CHECKPOINT_CORRUPT", Domain::External, message)
                .with_help("Restore the checkpoint from a copy, or start over with a new one and a new sink."));
        }
        self.seen.purge();
        Ok(())
    }

    fn latest(
        &mut self,
        start: Option<&Offset>,
        limit: ReadLimit,
        _now_micros: i64,
    ) -> Result<Option<Batch>, ConnectorError> {
        // A batch that was planned but never committed is still to be read.
        if let Some(last) = self.last
            && self.log_offset(start)?.is_none_or(|start| start < last)
        {
            return Ok(Some(Batch { end: serde_json::json!({ "logOffset": last }), log_entry: None }));
        }
        let enough = match (limit, self.options.max_files) {
            (ReadLimit::Options, Some(files)) => self.pending.len() as u64 >= files,
            (ReadLimit::Options, None) if self.options.max_bytes.is_some() => !self.pending.is_empty(),
            _ => false,
        };
        if !self.frozen && !enough {
            self.refresh()?;
        }
        if self.pending.is_empty() {
            return Ok(None);
        }
        let files: Vec<FileEntry> = self.pending.drain(..self.quota(limit)).collect();
        files.iter().for_each(|file| self.seen.insert(file));
        self.seen.purge();
        let log_offset = self.last.map_or(0, |n| n + 1);
        self.last = Some(log_offset);
        let entry = LogEntry { log_offset, files, compacted_from: None };
        let bytes = bytes_of(&entry)?;
        self.batches.insert(log_offset, entry.files);
        Ok(Some(Batch { end: serde_json::json!({ "logOffset": log_offset }), log_entry: Some(bytes) }))
    }

    fn arrival(&mut self, _now_micros: i64, wake: &Wake) -> Arrival {
        // The trees that a glob may match are not watched: they may be the whole file system.
        let lister = &self.lister;
        let watch = self.watch.get_or_insert_with(|| lister.single_root().and_then(|root| Watch::start(root, wake)));
        if watch.is_some() { Arrival::Wakes } else { Arrival::Poll }
    }

    fn freeze(&mut self, _now_micros: i64) -> Result<(), ConnectorError> {
        self.frozen = true;
        self.refresh()
    }

    fn splits(
        &mut self,
        start: Option<&Offset>,
        end: &Offset,
        projection: &[u32],
    ) -> Result<Vec<Box<dyn Split>>, ConnectorError> {
        let from = self.log_offset(start)?.map_or(0, |n| n + 1);
        let to = self.log_offset(Some(end))?.unwrap_or(0);
        let mut files = Vec::new();
        for n in from..=to {
            let batch = self.batches.get(&n).ok_or_else(|| {
                let message = format!("the files of log offset {n} of `{}` are no longer known", self.location);
                ConnectorError::new("STREAM_FAILED", Domain::Internal, message)
            })?;
            files.extend_from_slice(batch);
        }
        self.reader.splits(&files, projection)
    }

    fn compactor(&self) -> Option<Compactor> {
        let max_age = self.options.max_age;
        Some(Arc::new(move |entries| compact(entries, max_age)))
    }

    fn committed(&mut self, end: &Offset) -> Result<(), ConnectorError> {
        let end = self.log_offset(Some(end))?.unwrap_or(0);
        let rest = self.batches.split_off(&(end + 1));
        let done = std::mem::replace(&mut self.batches, rest);
        for file in done.values().flatten().filter(|_| self.options.clean != CleanSource::Off) {
            fail("clean-source-before")?;
            // A file that cannot be cleaned away is read no second time for that, so the query goes on, as in Spark.
            if let Err(error) = self.clean(file) {
                eprintln!("warning: cannot clean up `{}`: {error}", file.path.display());
            }
            fail("clean-source-after")?;
        }
        Ok(())
    }
}
