//! A query's checkpoint directory: what was planned, what was committed, what the sources need, and the state.
//!
//! ```text
//! metadata        JSON: format version, the query's id, what its state holds; written once
//! lock            held by the live query; its text says who
//! offsets/        log: batch N as planned (end offsets, watermarks, processing time); durable before anything is read
//! commits/        log: batch N is finished, and the watermarks that batch N+1 goes by
//! sources/<i>/    log: what source i needs to give the same rows for the same offsets
//! state/<n>/      log and snapshots of the n-th stateful operator (see `state`)
//! ```
//!
//! A batch with an offset but without a commit is run again, with the same offsets, on the state of the batch before.
//! The commit of batch N becomes durable with the sync of offsets N+1 at the latest: losing it costs a replay that the
//! sink recognises, nothing else.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use ssql_state::log::write_atomic;
use ssql_state::{SegmentLog, failpoint};

use crate::connector::{Domain, Offset};
use crate::error::{EngineError, Result};
use crate::watermark::{BatchWatermark, SavedWatermarks};

/// Version of the directory's format; an engine refuses a version that it does not know.
const FORMAT: u32 = 1;
/// Logs roll after that many batches, so that old ones can be removed.
const ROLL_EVERY: u64 = 1000;
/// Batches kept in `offsets` and `commits` behind the newest (Spark's minBatchesToRetain).
pub const RETAIN: u64 = 100;

#[derive(Debug, Serialize, Deserialize)]
struct Metadata {
    version: u32,
    id: String,
    /// What each stateful operator keeps, in words: state of another shape must not be read.
    state: Vec<String>,
}

/// Batch N as planned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedBatch {
    /// End offset of each source, in the pipeline's order; `None` for a source that has not spoken yet.
    pub offsets: Vec<Option<Offset>>,
    /// Watermarks that the batch goes by.
    pub watermark: BatchWatermark,
    /// Processing time of the batch, microseconds: `current_timestamp()` in it.
    pub timestamp: i64,
}

/// What a commit says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Committed {
    watermarks: SavedWatermarks,
}

/// What an existing checkpoint tells a starting query.
#[derive(Debug, Clone, Default)]
pub struct Recovered {
    /// The newest planned batches that matter: the last committed one and, if it was cut off, the one after.
    pub planned: Vec<(u64, PlannedBatch)>,
    /// The newest committed batch.
    pub committed: Option<u64>,
    /// Watermarks after it.
    pub watermarks: SavedWatermarks,
    /// Log entries of each source.
    pub source_entries: Vec<Vec<(u64, Vec<u8>)>>,
}

/// An open checkpoint; while it lives no other query can open the directory.
#[derive(Debug)]
pub struct Checkpoint {
    dir: PathBuf,
    id: String,
    offsets: SegmentLog,
    commits: SegmentLog,
    sources: Vec<SegmentLog>,
    _lock: File,
}

impl Checkpoint {
    /// Opens or creates the checkpoint of a query with that many sources. `state` says in words what each of its stateful
    /// operators keeps.
    ///
    /// # Errors
    /// The directory cannot be used, another query holds it, it is damaged, a newer version wrote it, or it belongs to a
    /// query that keeps other state.
    pub fn open(dir: &Path, n_sources: usize, state: &[String]) -> Result<(Checkpoint, Recovered)> {
        fs::create_dir_all(dir).map_err(|e| unusable(dir, "create", &e))?;
        let lock = lock(dir)?;
        let id = metadata(dir, state)?;
        let (offsets, planned) = SegmentLog::open(&dir.join("offsets"))?;
        let (commits, committed) = SegmentLog::open(&dir.join("commits"))?;

        let mut recovered = Recovered::default();
        if let Some(last) = committed.last() {
            recovered.committed = Some(last.sequence);
            recovered.watermarks = decode::<Committed>("commits", &last.payload)?.watermarks;
        }
        for record in planned.iter().rev() {
            if recovered.committed.is_some_and(|c| record.sequence < c) {
                break;
            }
            // A batch planned twice (the commit of its first run was lost) was planned the same.
            if recovered.planned.last().is_none_or(|(n, _)| *n != record.sequence) {
                recovered.planned.push((record.sequence, decode("offsets", &record.payload)?));
            }
        }
        recovered.planned.reverse();
        // Offsets are durable before their batch runs: a commit without them means that they were damaged afterwards,
        // and going on from "no offsets" would read everything again.
        if let Some(committed) = recovered.committed
            && recovered.planned.first().map(|(n, _)| *n) != Some(committed)
        {
            let message =
                format!("the checkpoint `{}` has a commit of batch {committed} but not its offsets", dir.display());
            return Err(EngineError::new("CHECKPOINT_CORRUPT", Domain::External, message)
                .with_help("Restore the folder from a copy, or start over with a new CHECKPOINT LOCATION and sink."));
        }

        let newest = recovered.planned.last().map(|(n, _)| *n);
        let mut sources = Vec::with_capacity(n_sources);
        for i in 0..n_sources {
            let (log, records) = SegmentLog::open(&dir.join("sources").join(i.to_string()))?;
            // An entry beyond the newest planned batch was never used: planning starts over and writes it anew.
            let mut entries: Vec<(u64, Vec<u8>)> = Vec::new();
            for record in records.into_iter().filter(|r| newest.is_some_and(|n| r.sequence <= n)) {
                match entries.last_mut() {
                    Some(last) if last.0 == record.sequence => last.1 = record.payload,
                    _ => entries.push((record.sequence, record.payload)),
                }
            }
            recovered.source_entries.push(entries);
            sources.push(log);
        }
        Ok((Checkpoint { dir: dir.to_path_buf(), id, offsets, commits, sources, _lock: lock }, recovered))
    }

    /// The query's id, stable over restarts.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Directory of the state of the n-th stateful operator.
    pub fn state_dir(&self, n: usize) -> PathBuf {
        self.dir.join("state").join(n.to_string())
    }

    /// Makes batch `batch` durable as planned, with the entries of its sources; after this it will be run, whatever
    /// happens.
    pub fn plan(&mut self, batch: u64, planned: &PlannedBatch, entries: &[Option<Vec<u8>>]) -> Result<()> {
        for (log, entry) in self.sources.iter_mut().zip(entries) {
            if let Some(entry) = entry {
                log.append(batch, entry)?;
                failpoint::reach("source-entry-before-sync");
                log.sync()?;
            }
        }
        failpoint::reach("offsets-before-append");
        self.offsets.append(batch, &encode(planned)?)?;
        failpoint::reach("offsets-before-sync");
        self.offsets.sync()?;
        // Rides on the sync above in spirit: a commit that is not durable yet only costs a replay.
        self.commits.sync()?;
        failpoint::reach("offsets-after-sync");
        Ok(())
    }

    /// Notes that batch `batch` is finished.
    pub fn commit(&mut self, batch: u64, watermarks: SavedWatermarks) -> Result<()> {
        failpoint::reach("commit-before-append");
        self.commits.append(batch, &encode(&Committed { watermarks })?)?;
        failpoint::reach("commit-after-append");
        if batch % ROLL_EVERY == ROLL_EVERY - 1 {
            self.commits.roll()?;
            self.offsets.roll()?;
            let keep = batch.saturating_sub(RETAIN);
            self.commits.remove_below(keep)?;
            self.offsets.remove_below(keep)?;
        }
        Ok(())
    }

    /// Makes everything durable, as at a graceful stop.
    pub fn sync(&mut self) -> Result<()> {
        Ok(self.commits.sync()?)
    }
}

fn encode(value: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|e| EngineError::internal(format!("a checkpoint record has no JSON form: {e}")))
}

fn decode<T: serde::de::DeserializeOwned>(log: &str, bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|e| {
        let message = format!("a record of the checkpoint's `{log}` log cannot be read: {e}");
        EngineError::new("CHECKPOINT_CORRUPT", Domain::External, message)
    })
}

fn unusable(dir: &Path, action: &str, e: &std::io::Error) -> EngineError {
    let message = format!("cannot {action} the checkpoint `{}`: {e}", dir.display());
    EngineError::new("CHECKPOINT_UNUSABLE", Domain::External, message)
        .with_help("Choose a directory that this user can write with CHECKPOINT LOCATION.")
}

/// The lease: a lock that the system drops with the process, so a crash never leaves it behind.
fn lock(dir: &Path) -> Result<File> {
    let path = dir.join("lock");
    let mut file = File::options()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(&path)
        .map_err(|e| unusable(dir, "lock", &e))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            let _ = file.read_to_string(&mut holder);
            let message = format!("the checkpoint `{}` is in use by {}", dir.display(), holder.trim());
            return Err(EngineError::new("CONCURRENT_QUERY", Domain::User, message)
                .with_help("Stop the other query, or give this one a checkpoint of its own."));
        }
        Err(TryLockError::Error(e)) => return Err(unusable(dir, "lock", &e)),
    }
    let text = format!("process {}\n", std::process::id());
    file.set_len(0)
        .and_then(|()| file.seek(SeekFrom::Start(0)))
        .and_then(|_| file.write_all(text.as_bytes()))
        .map_err(|e| unusable(dir, "lock", &e))?;
    Ok(file)
}

/// The query's id, read or made.
fn metadata(dir: &Path, state: &[String]) -> Result<String> {
    let path = dir.join("metadata");
    match fs::read(&path) {
        Ok(bytes) => {
            let metadata: Metadata = decode("metadata", &bytes)?;
            if metadata.version != FORMAT {
                let message = format!(
                    "the checkpoint `{}` has format {}; this version reads format {FORMAT}",
                    dir.display(),
                    metadata.version
                );
                return Err(EngineError::new("CHECKPOINT_VERSION", Domain::User, message)
                    .with_help("Use the version of ssql that wrote it."));
            }
            if metadata.state != state {
                return Err(changed(dir, &metadata.state, state));
            }
            Ok(metadata.id)
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let id = uuid::Uuid::new_v4().to_string();
            let bytes = encode(&Metadata { version: FORMAT, id: id.clone(), state: state.to_vec() })?;
            write_atomic(&path, &bytes)?;
            Ok(id)
        }
        Err(e) => Err(unusable(dir, "read", &e)),
    }
}

/// The query keeps other state than the one that wrote the checkpoint: what has changed, in words.
fn changed(dir: &Path, was: &[String], is: &[String]) -> EngineError {
    let message = format!("the query keeps other state than the checkpoint `{}` holds", dir.display());
    let mut error = EngineError::new("QUERY_CHANGED", Domain::User, message);
    for i in 0..was.len().max(is.len()) {
        let (was, is) = (was.get(i).map_or("nothing", String::as_str), is.get(i).map_or("nothing", String::as_str));
        if was != is {
            error = error.with_help(format!("Stateful operator {i} was: {was}. It is: {is}."));
        }
    }
    error.with_help(
        "Filters, projections, triggers and options may change; keys, aggregates and windows may not. Use a new CHECKPOINT \
         LOCATION for the changed query.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(n: i64) -> PlannedBatch {
        PlannedBatch {
            offsets: vec![Some(serde_json::json!({ "logOffset": n }))],
            watermark: BatchWatermark { late: n - 1, evict: n },
            timestamp: n * 1000,
        }
    }

    #[test]
    fn an_uncommitted_batch_is_found_again_as_planned() {
        let dir = tempfile::tempdir().expect("scratch");
        let id = {
            let (mut cp, recovered) = Checkpoint::open(dir.path(), 1, &[]).expect("opens");
            assert!(recovered.committed.is_none() && recovered.planned.is_empty());
            for n in 0..3 {
                cp.plan(n, &planned(n as i64), &[Some(format!("files {n}").into_bytes())]).expect("plans");
                if n < 2 {
                    let saved = SavedWatermarks { global: n as i64, inputs: vec![Some(n as i64)] };
                    cp.commit(n, saved).expect("commits");
                }
            }
            cp.id().to_owned()
        };
        let (cp, recovered) = Checkpoint::open(dir.path(), 1, &[]).expect("opens");
        assert_eq!(cp.id(), id);
        assert_eq!(recovered.committed, Some(1));
        assert_eq!(recovered.watermarks.global, 1);
        assert_eq!(recovered.planned, vec![(1, planned(1)), (2, planned(2))]);
        assert_eq!(recovered.source_entries[0].len(), 3);
    }

    #[test]
    fn a_second_query_is_refused_and_told_who_holds_it() {
        let dir = tempfile::tempdir().expect("scratch");
        let _held = Checkpoint::open(dir.path(), 0, &[]).expect("opens");
        let error = Checkpoint::open(dir.path(), 0, &[]).expect_err("refuses");
        assert_eq!(error.condition, "CONCURRENT_QUERY");
        assert!(error.message.contains("process"), "{}", error.message);
    }

    #[test]
    fn state_of_another_shape_is_refused_in_words() {
        let dir = tempfile::tempdir().expect("scratch");
        let (was, is) = (["count by STRING".to_owned()], ["sum by STRING".to_owned()]);
        drop(Checkpoint::open(dir.path(), 0, &was).expect("opens"));
        let error = Checkpoint::open(dir.path(), 0, &is).expect_err("refuses");
        assert_eq!(error.condition, "QUERY_CHANGED");
        assert_eq!(error.help[0], "Stateful operator 0 was: count by STRING. It is: sum by STRING.");
    }

    #[test]
    fn a_commit_whose_offsets_are_damaged_is_no_fresh_start() {
        let dir = tempfile::tempdir().expect("scratch");
        let (mut cp, _) = Checkpoint::open(dir.path(), 1, &[]).expect("opens");
        cp.plan(0, &planned(0), &[None]).expect("plans");
        cp.commit(0, SavedWatermarks::default()).expect("commits");
        drop(cp);
        let segment = fs::read_dir(dir.path().join("offsets")).expect("lists").next().expect("one").expect("is there");
        let mut bytes = fs::read(segment.path()).expect("reads");
        bytes[30] ^= 0xff;
        fs::write(segment.path(), bytes).expect("writes");
        let error = Checkpoint::open(dir.path(), 1, &[]).expect_err("refuses");
        assert_eq!(error.condition, "CHECKPOINT_CORRUPT");
    }
}
