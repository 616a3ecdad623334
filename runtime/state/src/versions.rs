//! Versions of an operator's state: a snapshot now and then, and the changes of each micro-batch since.
//!
//! A delta of batch N is one or more records of the log with sequence N. It may be written twice, when the batch is
//! run again after a crash; the last whole one counts. A snapshot of batch N is a file of its own, `<N>.snapshot`,
//! that makes all deltas up to N unnecessary.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failpoint;
use crate::log::{LogError, SegmentLog, write_atomic};

/// First bytes of a snapshot.
const MAGIC: &[u8; 8] = b"SSQLSNP1";
/// Payload bytes of one record of a delta; larger deltas take several.
const CHUNK: usize = 256 << 20;
/// A snapshot is not worth its while before the deltas behind it have this size.
const SNAPSHOT_FLOOR: u64 = 16 << 20;

/// The state of one operator on disk.
#[derive(Debug)]
pub struct StateVersions {
    dir: PathBuf,
    log: SegmentLog,
    /// Bytes of deltas since the newest snapshot, and the size of that snapshot.
    delta_bytes: u64,
    snapshot_bytes: u64,
}

/// A version read back: apply the snapshot, then the deltas in order.
#[derive(Debug, Default)]
pub struct Restored {
    /// The newest usable snapshot.
    pub snapshot: Option<Vec<u8>>,
    /// Deltas since then, of committed batches only.
    pub deltas: Vec<Vec<u8>>,
}

impl StateVersions {
    /// Opens the state as it was after batch `committed` (`None`: empty).
    pub fn open(dir: &Path, committed: Option<u64>) -> Result<(StateVersions, Restored), LogError> {
        let (log, records) = SegmentLog::open(dir)?;
        let mut versions = StateVersions { dir: dir.to_path_buf(), log, delta_bytes: 0, snapshot_bytes: 0 };
        let mut restored = Restored::default();
        let Some(committed) = committed else { return Ok((versions, restored)) };

        let newest = versions.snapshots()?.into_iter().rev().find(|&n| n <= committed);
        if let Some(batch) = newest {
            let payload = versions.read_snapshot(batch)?;
            versions.snapshot_bytes = payload.len() as u64;
            restored.snapshot = Some(payload);
        }
        // Deltas by batch: chunks are numbered from 0, and chunk 0 of a batch starts its delta over.
        let mut current: Option<(u64, Vec<u8>)> = None;
        let mut last = newest;
        for record in records {
            if record.sequence > committed || newest.is_some_and(|n| record.sequence <= n) {
                continue;
            }
            last = Some(record.sequence);
            let Some((head, bytes)) = record.payload.split_first_chunk::<4>() else {
                return Err(versions.corrupt("a delta has no chunk number"));
            };
            match (&mut current, u32::from_le_bytes(*head)) {
                (Some((batch, delta)), chunk) if *batch == record.sequence => {
                    if chunk == 0 {
                        delta.clear();
                    }
                    delta.extend_from_slice(bytes);
                }
                (_, 0) => {
                    if let Some((_, delta)) = current.replace((record.sequence, bytes.to_vec())) {
                        restored.deltas.push(delta);
                    }
                }
                _ => return Err(versions.corrupt("a delta begins in its middle")),
            }
        }
        restored.deltas.extend(current.map(|(_, delta)| delta));
        // Every batch writes a delta before it is committed, so the committed one must be there.
        if last != Some(committed) {
            return Err(versions.corrupt("the state of the last committed batch is missing"));
        }
        versions.delta_bytes = restored.deltas.iter().map(|d| d.len() as u64).sum();
        Ok((versions, restored))
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
        failpoint::reach("state-before-sync");
        self.log.sync()?;
        failpoint::reach("state-after-sync");
        self.delta_bytes += delta.len() as u64;
        Ok(())
    }

    /// Whether a snapshot would pay: the deltas outweigh the last one twice.
    pub fn wants_snapshot(&self) -> bool {
        self.delta_bytes > SNAPSHOT_FLOOR.max(2 * self.snapshot_bytes)
    }

    /// Writes the whole state as of the committed batch `batch` and drops what it makes unnecessary, but for the
    /// snapshot before it.
    pub fn snapshot(&mut self, batch: u64, state: &[u8]) -> Result<(), LogError> {
        let mut bytes = Vec::with_capacity(state.len() + 12);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&crc32fast::hash(state).to_le_bytes());
        bytes.extend_from_slice(state);
        failpoint::reach("snapshot-before-write");
        write_atomic(&self.snapshot_path(batch), &bytes)?;
        failpoint::reach("snapshot-after-write");
        let mut older = self.snapshots()?;
        older.retain(|&n| n < batch);
        let keep_from = older.pop();
        for n in older {
            let path = self.snapshot_path(n);
            fs::remove_file(&path).map_err(|source| LogError::Io { action: "remove", path, source })?;
        }
        self.log.roll()?;
        if let Some(n) = keep_from {
            self.log.remove_below(n + 1)?;
        }
        self.delta_bytes = 0;
        self.snapshot_bytes = state.len() as u64;
        Ok(())
    }

    fn read_snapshot(&self, batch: u64) -> Result<Vec<u8>, LogError> {
        let path = self.snapshot_path(batch);
        let mut bytes =
            fs::read(&path).map_err(|source| LogError::Io { action: "read", path: path.clone(), source })?;
        let corrupt = |what| LogError::Corrupt { path: path.clone(), at: 0, what };
        if bytes.len() < 12 || &bytes[..8] != MAGIC {
            return Err(corrupt("this is not a snapshot of this version"));
        }
        let crc = u32::from_le_bytes(bytes[8..12].try_into().expect("4 bytes"));
        let payload = bytes.split_off(12);
        if crc32fast::hash(&payload) != crc {
            return Err(corrupt("the snapshot's checksum does not hold"));
        }
        Ok(payload)
    }

    fn snapshots(&self) -> Result<Vec<u64>, LogError> {
        let io = |source| LogError::Io { action: "list", path: self.dir.clone(), source };
        let mut numbers = Vec::new();
        for entry in fs::read_dir(&self.dir).map_err(io)? {
            let name = entry.map_err(io)?.file_name();
            if let Some(n) = name.to_str().and_then(|n| n.strip_suffix(".snapshot")?.parse().ok()) {
                numbers.push(n);
            }
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    fn snapshot_path(&self, batch: u64) -> PathBuf {
        self.dir.join(format!("{batch:020}.snapshot"))
    }

    fn corrupt(&self, what: &'static str) -> LogError {
        LogError::Corrupt { path: self.dir.clone(), at: 0, what }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_committed_changes_come_back_and_the_last_attempt_counts() {
        let dir = tempfile::tempdir().expect("scratch");
        let (mut v, _) = StateVersions::open(dir.path(), None).expect("opens");
        v.append(0, b"a").expect("appends");
        v.append(1, b"first try").expect("appends");
        drop(v);
        let (mut v, restored) = StateVersions::open(dir.path(), Some(0)).expect("opens");
        assert_eq!(restored.deltas, [b"a".to_vec()]);
        v.append(1, b"b").expect("appends");
        v.append(2, b"").expect("appends");
        let (_, restored) = StateVersions::open(dir.path(), Some(2)).expect("opens");
        assert_eq!(restored.deltas, [b"a".to_vec(), b"b".to_vec(), b"".to_vec()]);
    }

    #[test]
    fn a_snapshot_stands_for_the_deltas_before_it() {
        let dir = tempfile::tempdir().expect("scratch");
        let (mut v, _) = StateVersions::open(dir.path(), None).expect("opens");
        for n in 0..6u64 {
            v.append(n, format!("d{n}").as_bytes()).expect("appends");
            if n == 1 || n == 4 {
                v.snapshot(n, format!("s{n}").as_bytes()).expect("snapshots");
            }
        }
        let (_, at5) = StateVersions::open(dir.path(), Some(5)).expect("opens");
        assert_eq!((at5.snapshot.as_deref(), at5.deltas.len()), (Some(&b"s4"[..]), 1));
        let (_, at3) = StateVersions::open(dir.path(), Some(3)).expect("opens");
        assert_eq!((at3.snapshot.as_deref(), at3.deltas), (Some(&b"s1"[..]), vec![b"d2".to_vec(), b"d3".to_vec()]));
    }

    #[test]
    fn missing_state_of_a_committed_batch_is_an_error() {
        let dir = tempfile::tempdir().expect("scratch");
        let (mut v, _) = StateVersions::open(dir.path(), None).expect("opens");
        v.append(0, b"a").expect("appends");
        assert!(matches!(StateVersions::open(dir.path(), Some(1)), Err(LogError::Corrupt { .. })));
    }
}
