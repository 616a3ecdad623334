//! The log of one source, made short beside the query: entries of batches that nobody asks for any more become one.
//!
//! `<N>.compact` stands for all entries up to batch N, in the source's own words ([`Source::compactor`]); entries behind it
//! are records of the log.
//!
//! [`Source::compactor`]: crate::connector::Source::compactor

use std::path::{Path, PathBuf};

use ssql_state::file::{numbered, read_checked, remove, remove_temporary, write_checked};
use ssql_state::{LogError, SegmentLog};

use crate::background::Job;
use crate::connector::Compactor;
use crate::error::Result;

/// First bytes of a compacted log.
const MAGIC: &[u8; 8] = b"SSQLCMP1";
const SUFFIX: &str = "compact";
/// Entries of less than that many bytes are not worth making short.
pub(super) const FLOOR: u64 = 64 << 10;

/// (batch, entry) pairs in order; the last of equal batches counts.
pub type Entries = Vec<(u64, Vec<u8>)>;

/// A source's log, open.
pub(super) struct EntryLog {
    dir: PathBuf,
    log: SegmentLog,
    compactor: Option<Compactor>,
    /// Batch of the newest compaction, and its bytes.
    base: Option<u64>,
    base_bytes: u64,
    /// Bytes of entries since.
    bytes: u64,
    floor: u64,
    job: Option<Job<(u64, u64)>>,
}

impl std::fmt::Debug for EntryLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EntryLog").field("dir", &self.dir).field("base", &self.base).finish_non_exhaustive()
    }
}

impl EntryLog {
    /// Opens the log. Entries beyond the newest planned batch were never used: planning starts over and writes them anew.
    pub(super) fn open(
        dir: &Path,
        newest: Option<u64>,
        compactor: Option<Compactor>,
        floor: u64,
    ) -> Result<(EntryLog, Entries)> {
        let base = if dir.exists() {
            remove_temporary(dir)?;
            base_of(dir, newest)?
        } else {
            None
        };
        let (log, records) = SegmentLog::open_from(dir, "sources", base.map_or(0, |b| b + 1))?;
        let (entries, base_bytes) = gather(dir, base, records, newest)?;
        let bytes = entries.iter().filter(|(n, _)| Some(*n) != base).map(|(_, e)| e.len() as u64).sum();
        let log = EntryLog { dir: dir.to_path_buf(), log, compactor, base, base_bytes, bytes, floor, job: None };
        Ok((log, entries))
    }

    /// Makes the entry of a batch durable.
    pub(super) fn append(&mut self, batch: u64, entry: &[u8]) -> Result<()> {
        self.log.append(batch, entry)?;
        self.log.sync()?;
        self.bytes += entry.len() as u64;
        Ok(())
    }

    /// Begins to make the log short up to batch `keep`, where that pays, and notes what was begun before.
    pub(super) fn maintain(&mut self, keep: u64) -> Result<()> {
        if let Some(job) = &mut self.job {
            let Some(ended) = job.ended() else { return Ok(()) };
            self.job = None;
            let (base, bytes) = ended?;
            (self.base, self.base_bytes) = (Some(base), bytes);
        }
        let Some(compactor) = &self.compactor else { return Ok(()) };
        if self.bytes <= self.floor.max(self.base_bytes) || self.base.is_some_and(|b| keep <= b) {
            return Ok(());
        }
        self.log.roll()?;
        self.bytes = 0;
        let (dir, compactor) = (self.dir.clone(), Compactor::clone(compactor));
        self.job = Some(Job::start("compaction", move |_| compact(&dir, keep, &compactor))?);
        Ok(())
    }
}

/// Reads the entries up to batch `newest` without changing anything; another process may be writing.
pub(super) fn read(dir: &Path, newest: Option<u64>) -> Result<(Option<u64>, Entries)> {
    let base = base_of(dir, newest)?;
    let records = SegmentLog::read_from(dir, base.map_or(0, |b| b + 1))?;
    Ok((base, gather(dir, base, records, newest)?.0))
}

fn base_of(dir: &Path, newest: Option<u64>) -> Result<Option<u64>, LogError> {
    let Some(newest) = newest else { return Ok(None) };
    Ok(numbered(dir, SUFFIX)?.into_iter().rfind(|&n| n <= newest))
}

fn gather(
    dir: &Path,
    base: Option<u64>,
    records: Vec<ssql_state::Record>,
    newest: Option<u64>,
) -> Result<(Entries, u64)> {
    let mut entries: Entries = Vec::new();
    let mut bytes = 0;
    if let Some(base) = base {
        let payload = read_checked(&path(dir, base), MAGIC)?;
        bytes = payload.len() as u64;
        entries.push((base, payload));
    }
    let wanted = |n: u64| newest.is_some_and(|newest| n <= newest) && base.is_none_or(|base| n > base);
    for record in records.into_iter().filter(|r| wanted(r.sequence)) {
        match entries.last_mut() {
            Some(last) if last.0 == record.sequence => last.1 = record.payload,
            _ => entries.push((record.sequence, record.payload)),
        }
    }
    Ok((entries, bytes))
}

/// Writes what stands for all entries up to batch `keep`, then removes what it stands for.
fn compact(dir: &Path, keep: u64, compactor: &Compactor) -> Result<(u64, u64)> {
    let (_, entries) = read(dir, Some(keep))?;
    let payload = compactor(entries)?;
    write_checked(&path(dir, keep), MAGIC, &payload, SUFFIX)?;
    SegmentLog::remove_segments_below(dir, "sources", keep + 1)?;
    for older in numbered(dir, SUFFIX)?.into_iter().filter(|&n| n < keep) {
        remove(&path(dir, older), SUFFIX)?;
    }
    Ok((keep, payload.len() as u64))
}

fn path(dir: &Path, batch: u64) -> PathBuf {
    dir.join(format!("{batch:020}.{SUFFIX}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(entries: &Entries) -> String {
        entries.iter().map(|(_, e)| String::from_utf8_lossy(e).into_owned()).collect::<Vec<_>>().join("")
    }

    #[test]
    fn old_entries_become_one_and_nothing_is_lost() {
        let dir = tempfile::tempdir().expect("scratch");
        let compactor: Compactor = std::sync::Arc::new(|entries: Entries| Ok(joined(&entries).into_bytes()));
        let mut expected = String::new();
        for n in 0..40u64 {
            let (mut log, entries) =
                EntryLog::open(dir.path(), n.checked_sub(1), Some(Compactor::clone(&compactor)), 20).expect("opens");
            assert_eq!(joined(&entries), expected, "before batch {n}");
            let entry = format!("<{n}>");
            log.append(n, entry.as_bytes()).expect("appends");
            log.maintain(n.saturating_sub(3)).expect("maintains");
            expected.push_str(&entry);
            if let Some(mut job) = log.job.take() {
                job.wait().expect("ended").expect("compacts");
            }
        }
        let files = std::fs::read_dir(dir.path()).expect("lists").count();
        assert!(files < 10, "{files} files are left");
    }
}
