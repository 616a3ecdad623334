//! Versions of an operator's state: a snapshot now and then, and the changes of each micro-batch since.
//!
//! A delta of batch N is one or more records of the log with sequence N. It may be written twice, when the batch is
//! run again after a crash; the last whole one counts. A snapshot of batch N is a file of its own, `<N>.snapshot`,
//! that makes all deltas up to N unnecessary. An empty snapshot says that the state begins there, with nothing in it.
//!
//! Snapshots are made beside the query by another thread, from what is on disk; the functions for that take the
//! directory, not the open log.

use std::path::{Path, PathBuf};

use crate::file::{numbered, read_checked, remove, remove_temporary, write_checked};
use crate::log::{LogError, Record, SegmentLog};

/// First bytes of a snapshot.
const MAGIC: &[u8; 8] = b"SSQLSNP1";
/// Suffix of snapshots.
const SUFFIX: &str = "snapshot";
/// Payload bytes of one record of a delta; larger deltas take several.
const CHUNK: usize = 256 << 20;
/// A snapshot is not worth its while before the deltas behind it have this size.
pub const SNAPSHOT_FLOOR: u64 = 16 << 20;

/// The state of one operator on disk.
#[derive(Debug)]
pub struct StateVersions {
    dir: PathBuf,
    log: SegmentLog,
    /// Bytes of deltas since the newest snapshot, and the size of that snapshot.
    delta_bytes: u64,
    snapshot_bytes: u64,
    floor: u64,
}

/// A version read back: apply the snapshot, then the deltas in order.
#[derive(Debug, Default)]
pub struct Restored {
    /// The newest usable snapshot; an empty one stands for no state.
    pub snapshot: Option<Vec<u8>>,
    /// Its batch.
    pub snapshot_batch: Option<u64>,
    /// Deltas since then, of committed batches only.
    pub deltas: Vec<Vec<u8>>,
}

impl Restored {
    /// What is to be applied, in order.
    pub fn parts(&self) -> impl Iterator<Item = &[u8]> {
        self.snapshot.iter().chain(&self.deltas).map(Vec::as_slice).filter(|part| !part.is_empty())
    }
}

impl StateVersions {
    /// Opens the state as it was after batch `committed` (`None`: empty). Deltas of less than `floor` bytes are not worth
    /// a snapshot ([`SNAPSHOT_FLOOR`] is a good one).
    pub fn open(dir: &Path, committed: Option<u64>, floor: u64) -> Result<(StateVersions, Restored), LogError> {
        let newest = match dir.exists() {
            true => {
                remove_temporary(dir)?;
                newest_snapshot(dir, committed)?
            }
            false => None,
        };
        let (log, records) = SegmentLog::open_from(dir, "state", newest.map_or(0, |n| n + 1))?;
        let restored = assemble(dir, records, newest, committed)?;
        let versions = StateVersions {
            dir: dir.to_path_buf(),
            log,
            delta_bytes: restored.deltas.iter().map(|d| d.len() as u64).sum(),
            snapshot_bytes: restored.snapshot.as_ref().map_or(0, |s| s.len() as u64),
            floor,
        };
        Ok((versions, restored))
    }

    /// Reads the state as it was after batch `batch`, without changing anything; another process may be writing.
    pub fn read(dir: &Path, batch: u64) -> Result<Restored, LogError> {
        let newest = newest_snapshot(dir, Some(batch))?;
        let records = SegmentLog::read_from(dir, newest.map_or(0, |n| n + 1))?;
        assemble(dir, records, newest, Some(batch))
    }

    /// Lets a state begin after batch `batch` with nothing in it.
    pub fn begin_after(dir: &Path, batch: u64) -> Result<(), LogError> {
        StateVersions::write_snapshot(dir, batch, &[])
    }

    /// The state's directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Makes the changes of batch `batch` durable.
    pub fn append(&mut self, batch: u64, delta: &[u8]) -> Result<(), LogError> {
        let mut record = Vec::with_capacity(4 + delta.len().min(CHUNK));
        let mut chunks = delta.chunks(CHUNK);
        // An empty delta is a record too: the batch had a state, the same as before.
        let first = chunks.next().unwrap_or_default();
        for (i, chunk) in std::iter::once(first).chain(chunks).enumerate() {
            record.clear();
            record.extend_from_slice(&(i as u32).to_le_bytes());
            record.extend_from_slice(chunk);
            self.log.append(batch, &record)?;
        }
        self.log.sync()?;
        self.delta_bytes += delta.len() as u64;
        Ok(())
    }

    /// Whether a snapshot would pay: the deltas outweigh the last one twice.
    pub fn wants_snapshot(&self) -> bool {
        self.delta_bytes > self.floor.max(2 * self.snapshot_bytes)
    }

    /// A snapshot of the newest batch is begun: what is appended from now on is behind it, in a segment of its own.
    pub fn begin_snapshot(&mut self) -> Result<(), LogError> {
        self.delta_bytes = 0;
        self.log.roll()
    }

    /// A snapshot of that size was written.
    pub fn end_snapshot(&mut self, bytes: u64) {
        self.snapshot_bytes = bytes;
    }

    /// Writes the whole state as of batch `batch`.
    pub fn write_snapshot(dir: &Path, batch: u64, state: &[u8]) -> Result<(), LogError> {
        write_checked(&snapshot_path(dir, batch), MAGIC, state, "snapshot")
    }

    /// Removes what no batch from `keep` on needs: snapshots but for the newest up to `keep`, and the deltas before it.
    pub fn remove_before(dir: &Path, keep: u64) -> Result<(), LogError> {
        let snapshots = numbered(dir, SUFFIX)?;
        let Some(&base) = snapshots.iter().rfind(|&&n| n <= keep) else { return Ok(()) };
        // Deltas first: a snapshot without the deltas behind it is whole, deltas without their snapshot are not.
        SegmentLog::remove_segments_below(dir, "state", base + 1)?;
        snapshots.iter().filter(|&&n| n < base).try_for_each(|&n| remove(&snapshot_path(dir, n), "snapshot"))
    }

    /// The batches that have a snapshot, with its bytes, ascending.
    pub fn snapshots(dir: &Path) -> Result<Vec<(u64, u64)>, LogError> {
        let size = |n| std::fs::metadata(snapshot_path(dir, n)).map_or(0, |m| m.len());
        Ok(numbered(dir, SUFFIX)?.into_iter().map(|n| (n, size(n))).collect())
    }

    /// Reads the snapshot of a batch and checks it.
    pub fn read_snapshot(dir: &Path, batch: u64) -> Result<Vec<u8>, LogError> {
        read_checked(&snapshot_path(dir, batch), MAGIC)
    }
}

fn newest_snapshot(dir: &Path, batch: Option<u64>) -> Result<Option<u64>, LogError> {
    let Some(batch) = batch else { return Ok(None) };
    Ok(numbered(dir, SUFFIX)?.into_iter().rfind(|&n| n <= batch))
}

/// The version of batch `committed` from the snapshot of `newest` and the log's records.
fn assemble(
    dir: &Path,
    records: Vec<Record>,
    newest: Option<u64>,
    committed: Option<u64>,
) -> Result<Restored, LogError> {
    let corrupt = |what| LogError::Corrupt { path: dir.to_path_buf(), at: 0, what };
    let mut restored = Restored::default();
    let Some(committed) = committed else { return Ok(restored) };
    if let Some(batch) = newest {
        restored.snapshot = Some(StateVersions::read_snapshot(dir, batch)?);
        restored.snapshot_batch = newest;
    }
    // Deltas by batch: chunks are numbered from 0, and chunk 0 of a batch starts its delta over.
    let mut current: Option<(u64, u32, Vec<u8>)> = None;
    for record in records {
        if record.sequence > committed || newest.is_some_and(|n| record.sequence <= n) {
            continue;
        }
        let Some((head, bytes)) = record.payload.split_first_chunk::<4>() else {
            return Err(corrupt("a delta has no chunk number"));
        };
        let chunk = u32::from_le_bytes(*head);
        match &mut current {
            Some((batch, next, delta)) if *batch == record.sequence => {
                if chunk == 0 {
                    delta.clear();
                } else if chunk != *next {
                    return Err(corrupt("a part of a delta is missing"));
                }
                *next = chunk + 1;
                delta.extend_from_slice(bytes);
            }
            _ if chunk != 0 => return Err(corrupt("a delta begins in its middle")),
            _ => {
                // Every batch writes a delta before it is committed, so none may be left out.
                let before = current.as_ref().map(|(batch, ..)| *batch).or(newest);
                if record.sequence != before.map_or(0, |n| n + 1) {
                    return Err(corrupt("the changes of a committed batch are missing"));
                }
                if let Some((_, _, delta)) = current.replace((record.sequence, 1, bytes.to_vec())) {
                    restored.deltas.push(delta);
                }
            }
        }
    }
    let last = current.as_ref().map(|(batch, ..)| *batch).or(newest);
    restored.deltas.extend(current.map(|(_, _, delta)| delta));
    if last != Some(committed) {
        return Err(corrupt("the state of the last committed batch is missing"));
    }
    Ok(restored)
}

fn snapshot_path(dir: &Path, batch: u64) -> PathBuf {
    dir.join(format!("{batch:020}.{SUFFIX}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(dir: &Path, committed: Option<u64>) -> (StateVersions, Restored) {
        StateVersions::open(dir, committed, SNAPSHOT_FLOOR).expect("opens")
    }

    #[test]
    fn only_committed_changes_come_back_and_the_last_attempt_counts() {
        let dir = tempfile::tempdir().expect("scratch");
        let (mut v, _) = open(dir.path(), None);
        v.append(0, b"a").expect("appends");
        v.append(1, b"first try").expect("appends");
        drop(v);
        let (mut v, restored) = open(dir.path(), Some(0));
        assert_eq!(restored.deltas, [b"a".to_vec()]);
        v.append(1, b"b").expect("appends");
        v.append(2, b"").expect("appends");
        let (_, restored) = open(dir.path(), Some(2));
        assert_eq!(restored.deltas, [b"a".to_vec(), b"b".to_vec(), b"".to_vec()]);
        assert_eq!(restored.parts().collect::<Vec<_>>(), [b"a", b"b"]);
    }

    /// Any batch that is kept can be read back, from whichever snapshot lies before it.
    #[test]
    fn a_snapshot_stands_for_the_deltas_before_it_and_old_batches_stay_for_a_while() {
        let dir = tempfile::tempdir().expect("scratch");
        let (mut v, _) = open(dir.path(), None);
        for n in 0..9u64 {
            v.append(n, format!("d{n}").as_bytes()).expect("appends");
            if [1, 4, 6].contains(&n) {
                v.begin_snapshot().expect("rolls");
                StateVersions::write_snapshot(dir.path(), n, format!("s{n}").as_bytes()).expect("writes");
            }
        }
        let parts = |n: u64| -> Vec<String> {
            let restored = StateVersions::read(dir.path(), n).expect("reads");
            restored.parts().map(|p| String::from_utf8_lossy(p).into_owned()).collect()
        };
        assert_eq!(parts(8), ["s6", "d7", "d8"]);
        assert_eq!(parts(5), ["s4", "d5"]);
        assert_eq!(parts(3), ["s1", "d2", "d3"]);
        assert_eq!(parts(0), ["d0"]);
        StateVersions::remove_before(dir.path(), 5).expect("removes");
        assert_eq!((parts(8), parts(5)), (vec!["s6".into(), "d7".into(), "d8".into()], vec!["s4".into(), "d5".into()]));
        assert!(StateVersions::read(dir.path(), 3).is_err());
        assert_eq!(
            StateVersions::snapshots(dir.path()).expect("lists").iter().map(|s| s.0).collect::<Vec<_>>(),
            [4, 6]
        );
        let (_, restored) = open(dir.path(), Some(8));
        assert_eq!(restored.parts().count(), 3);
    }

    #[test]
    fn missing_state_of_a_committed_batch_is_an_error() {
        let dir = tempfile::tempdir().expect("scratch");
        let (mut v, _) = open(dir.path(), None);
        v.append(0, b"a").expect("appends");
        let open = |committed| StateVersions::open(dir.path(), Some(committed), SNAPSHOT_FLOOR);
        assert!(matches!(open(1), Err(LogError::Corrupt { .. })));
        v.append(2, b"c").expect("appends");
        assert!(matches!(open(2), Err(LogError::Corrupt { .. })), "batch 1 is left out");
    }

    #[test]
    fn a_state_can_begin_anew_after_a_batch() {
        let dir = tempfile::tempdir().expect("scratch");
        std::fs::create_dir_all(dir.path().join("0")).expect("creates");
        let dir = dir.path().join("0");
        StateVersions::begin_after(&dir, 7).expect("writes");
        let (mut v, restored) = open(&dir, Some(7));
        assert_eq!(restored.parts().count(), 0);
        v.append(8, b"x").expect("appends");
        assert_eq!(open(&dir, Some(8)).1.parts().count(), 1);
    }
}
