//! Append-only segment logs.
//!
//! A log is a directory of segments, `<first sequence number, 20 digits>.seg`. A segment begins with an 8-byte magic
//! and then holds records:
//!
//! ```text
//! [payload length u32][sequence u64][crc32 of sequence and payload u32][payload]
//! ```
//!
//! all little endian. Sequence numbers ascend. Appending never touches what is already written; a torn tail (a record
//! whose length or checksum does not hold at the end of the last segment) is what a crash leaves and is cut off when
//! the log is opened. The same damage anywhere else is corruption and an error, never silently skipped.
//!
//! Why not a file a record: on a local disk an append and `fdatasync` costs a tenth of creating, syncing and renaming
//! a file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::failpoint;
use crate::file::{io_error, numbered, remove, sync_dir};

/// First bytes of each segment: name and format version.
const MAGIC: &[u8; 8] = b"SSQLLOG1";
/// Suffix of segments.
const SUFFIX: &str = "seg";
/// Bytes of a record before its payload.
const HEADER: usize = 16;
/// A segment is closed once it holds that many bytes, so that old records can be removed a file at a time.
const SEGMENT_BYTES: u64 = 64 << 20;
/// Longest payload a reader believes; a longer length is damage.
const MAX_PAYLOAD: usize = 1 << 31;

/// Why a log could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The operating system refused.
    #[error("cannot {action} `{path}`")]
    Io {
        /// What was tried ("open", "append to", ...).
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Bytes are not what was written.
    #[error("`{path}` is damaged at byte {at}: {what}")]
    Corrupt {
        /// The segment.
        path: PathBuf,
        /// Offset of the damaged record.
        at: u64,
        /// What does not hold.
        what: &'static str,
    },
}

/// A record read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its sequence number (a batch number, as the checkpoint uses logs).
    pub sequence: u64,
    /// What was appended.
    pub payload: Vec<u8>,
}

/// An open log, positioned at its end.
#[derive(Debug)]
pub struct SegmentLog {
    dir: PathBuf,
    /// Names its fail points.
    kind: &'static str,
    /// First sequence numbers of the segments, ascending.
    segments: Vec<u64>,
    file: Option<File>,
    bytes: u64,
    last: Option<u64>,
}

impl SegmentLog {
    /// Opens the log in `dir` (created if missing), cuts off a torn tail, and returns it with all its records. `kind`
    /// names its fail points.
    pub fn open(dir: &Path, kind: &'static str) -> Result<(SegmentLog, Vec<Record>), LogError> {
        SegmentLog::open_from(dir, kind, 0)
    }

    /// As [`SegmentLog::open`], but segments of which every record is below `from` are not read.
    pub fn open_from(dir: &Path, kind: &'static str, from: u64) -> Result<(SegmentLog, Vec<Record>), LogError> {
        fs::create_dir_all(dir).map_err(|e| io_error("create", dir, e))?;
        let segments = numbered(dir, SUFFIX)?;
        let mut log = SegmentLog { dir: dir.to_path_buf(), kind, segments, file: None, bytes: 0, last: None };
        let mut records = Vec::new();
        for (i, &first) in log.segments.clone().iter().enumerate() {
            let next = log.segments.get(i + 1);
            if next.is_some_and(|&next| next < from) {
                continue;
            }
            let path = log.segment_path(first);
            let bytes = read_file(&path)?;
            let (read, good, damage) = read_segment(&bytes);
            match damage {
                Some(what) if next.is_some() => return Err(LogError::Corrupt { path, at: good as u64, what }),
                // A whole record behind the damage was once acknowledged: that is no torn tail.
                Some(what) if whole_record_after(&bytes, good) => {
                    return Err(LogError::Corrupt { path, at: good as u64, what });
                }
                _ => {}
            }
            if next.is_none() {
                let file =
                    OpenOptions::new().read(true).write(true).open(&path).map_err(|e| io_error("open", &path, e))?;
                log.adopt_tail(file, &path, good, damage.is_some())?;
            }
            records.extend(read);
        }
        log.last = records.last().map(|r| r.sequence);
        ascending(dir, &records)?;
        Ok((log, records))
    }

    /// Reads a log without changing it, as tools do beside a live query: a torn tail is passed over. Segments of which
    /// every record is below `from` are not read.
    pub fn read_from(dir: &Path, from: u64) -> Result<Vec<Record>, LogError> {
        let mut records = Vec::new();
        let segments = numbered(dir, SUFFIX)?;
        for (i, &first) in segments.iter().enumerate() {
            let next = segments.get(i + 1);
            if next.is_some_and(|&next| next < from) {
                continue;
            }
            let path = dir.join(segment_name(first));
            let bytes = read_file(&path)?;
            let (read, good, damage) = read_segment(&bytes);
            if let Some(what) = damage
                && (next.is_some() || whole_record_after(&bytes, good))
            {
                return Err(LogError::Corrupt { path, at: good as u64, what });
            }
            records.extend(read);
        }
        ascending(dir, &records)?;
        Ok(records)
    }

    /// As [`SegmentLog::read_from`], all of it.
    pub fn read(dir: &Path) -> Result<Vec<Record>, LogError> {
        SegmentLog::read_from(dir, 0)
    }

    /// Keeps the whole records of the last segment and makes it the one appended to.
    fn adopt_tail(&mut self, mut file: File, path: &Path, good: usize, torn: bool) -> Result<(), LogError> {
        let io = |action| move |e| io_error(action, path, e);
        if torn || good < MAGIC.len() {
            file.set_len(good as u64).map_err(io("truncate"))?;
            if good < MAGIC.len() {
                file.set_len(0).map_err(io("truncate"))?;
                file.seek(SeekFrom::Start(0)).map_err(io("seek in"))?;
                file.write_all(MAGIC).map_err(io("append to"))?;
            }
            file.sync_all().map_err(io("sync"))?;
        }
        self.bytes = file.seek(SeekFrom::End(0)).map_err(io("seek in"))?;
        self.file = Some(file);
        Ok(())
    }

    /// Appends a record; it is durable after the next [`SegmentLog::sync`]. `sequence` must not be below the last.
    pub fn append(&mut self, sequence: u64, payload: &[u8]) -> Result<(), LogError> {
        debug_assert!(self.last.is_none_or(|last| sequence >= last), "sequence numbers ascend");
        if self.file.is_none() || self.bytes >= SEGMENT_BYTES {
            self.begin_segment(sequence)?;
        }
        let path = self.segment_path(*self.segments.last().expect("begin_segment made one"));
        let mut record = Vec::with_capacity(HEADER + payload.len());
        record.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        record.extend_from_slice(&sequence.to_le_bytes());
        record.extend_from_slice(&checksum(sequence, payload).to_le_bytes());
        record.extend_from_slice(payload);
        failpoint::reach_step(self.kind, "before-append")?;
        let file = self.file.as_mut().expect("begin_segment made one");
        let half = if failpoint::is_armed(self.kind, "half-append") { record.len() / 2 } else { 0 };
        let written = file.write_all(&record[..half]).map_err(|e| io_error("append to", &path, e));
        let written = written.and_then(|()| failpoint::reach_step(self.kind, "half-append"));
        let written =
            written.and_then(|()| file.write_all(&record[half..]).map_err(|e| io_error("append to", &path, e)));
        if let Err(e) = written {
            // Half a record in the middle of a log would be read as damage later: take it back.
            let _ = file.set_len(self.bytes);
            let _ = file.seek(SeekFrom::Start(self.bytes));
            return Err(e);
        }
        self.bytes += record.len() as u64;
        self.last = Some(sequence);
        failpoint::reach_step(self.kind, "after-append")
    }

    /// Makes all that was appended durable.
    pub fn sync(&mut self) -> Result<(), LogError> {
        match &self.file {
            Some(file) => {
                file.sync_data().map_err(|e| io_error("sync", &self.dir, e))?;
                failpoint::reach_step(self.kind, "after-sync")
            }
            None => Ok(()),
        }
    }

    /// Sequence number of the newest record.
    pub fn last(&self) -> Option<u64> {
        self.last
    }

    /// Removes whole segments of which every record is below `sequence`. The segment in use always stays.
    pub fn remove_below(&mut self, sequence: u64) -> Result<(), LogError> {
        while self.segments.len() > 1 && self.segments[1] <= sequence {
            remove(&self.segment_path(self.segments[0]), self.kind)?;
            self.segments.remove(0);
        }
        Ok(())
    }

    /// As [`SegmentLog::remove_below`], of a log that another thread appends to: the last segment always stays.
    pub fn remove_segments_below(dir: &Path, kind: &str, sequence: u64) -> Result<(), LogError> {
        let segments = numbered(dir, SUFFIX)?;
        for pair in segments.windows(2).filter(|pair| pair[1] <= sequence) {
            remove(&dir.join(segment_name(pair[0])), kind)?;
        }
        Ok(())
    }

    /// Whether the next append begins a new segment.
    pub fn is_rolled(&self) -> bool {
        self.file.is_none()
    }

    /// Starts a new segment with the next append, so that [`SegmentLog::remove_below`] can take all before it.
    pub fn roll(&mut self) -> Result<(), LogError> {
        self.sync()?;
        self.file = None;
        Ok(())
    }

    fn begin_segment(&mut self, first: u64) -> Result<(), LogError> {
        self.sync()?;
        // Two segments of one first number can occur when a record of the same batch rolls: take the next free name.
        let name = self.segments.last().map_or(first, |&last| first.max(last + 1));
        let path = self.segment_path(name);
        failpoint::reach_step(self.kind, "before-segment")?;
        let begun = (|| {
            let mut file = OpenOptions::new()
                .create_new(true)
                .write(true)
                .open(&path)
                .map_err(|e| io_error("create", &path, e))?;
            if failpoint::is_armed(self.kind, "half-segment") {
                file.write_all(&MAGIC[..3]).map_err(|e| io_error("append to", &path, e))?;
            }
            failpoint::reach_step(self.kind, "half-segment")?;
            file.seek(SeekFrom::Start(0))
                .and_then(|_| file.write_all(MAGIC))
                .map_err(|e| io_error("append to", &path, e))?;
            file.sync_all().map_err(|e| io_error("sync", &path, e))?;
            sync_dir(&self.dir)?;
            failpoint::reach_step(self.kind, "after-segment")?;
            Ok(file)
        })();
        let file = match begun {
            Ok(file) => file,
            Err(e) => {
                // A segment without a record is in the way of the next attempt.
                let _ = fs::remove_file(&path);
                return Err(e);
            }
        };
        self.segments.push(name);
        self.bytes = MAGIC.len() as u64;
        self.file = Some(file);
        Ok(())
    }

    fn segment_path(&self, first: u64) -> PathBuf {
        self.dir.join(segment_name(first))
    }
}

fn segment_name(first: u64) -> String {
    format!("{first:020}.seg")
}

fn read_file(path: &Path) -> Result<Vec<u8>, LogError> {
    let mut bytes = Vec::new();
    File::open(path).and_then(|mut f| f.read_to_end(&mut bytes)).map_err(|e| io_error("read", path, e))?;
    Ok(bytes)
}

fn ascending(dir: &Path, records: &[Record]) -> Result<(), LogError> {
    match records.is_sorted_by_key(|r| r.sequence) {
        true => Ok(()),
        false => Err(LogError::Corrupt { path: dir.to_path_buf(), at: 0, what: "its records are not in order" }),
    }
}

fn checksum(sequence: u64, payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&sequence.to_le_bytes());
    hasher.update(payload);
    hasher.finalize()
}

/// A record at `at`, and where the next begins.
fn record_at(bytes: &[u8], at: usize) -> Result<(Record, usize), &'static str> {
    let header = bytes.get(at..at + HEADER).ok_or("the record's head is cut off")?;
    let length = u32::from_le_bytes(header[0..4].try_into().expect("4 bytes")) as usize;
    let sequence = u64::from_le_bytes(header[4..12].try_into().expect("8 bytes"));
    let crc = u32::from_le_bytes(header[12..16].try_into().expect("4 bytes"));
    if length > MAX_PAYLOAD {
        return Err("the record's length is impossible");
    }
    let payload = bytes.get(at + HEADER..at + HEADER + length).ok_or("the record is cut off")?;
    if checksum(sequence, payload) != crc {
        return Err("the record's checksum does not hold");
    }
    Ok((Record { sequence, payload: payload.to_vec() }, at + HEADER + length))
}

/// Whole records from the start, the offset behind them, and what is wrong there (`None` at a clean end).
fn read_segment(bytes: &[u8]) -> (Vec<Record>, usize, Option<&'static str>) {
    if bytes.len() < MAGIC.len() {
        return (Vec::new(), 0, Some("the segment's head is cut off"));
    }
    if &bytes[..MAGIC.len()] != MAGIC {
        return (Vec::new(), 0, Some("this is not a segment of this version"));
    }
    let mut records = Vec::new();
    let mut at = MAGIC.len();
    while at < bytes.len() {
        match record_at(bytes, at) {
            Ok((record, next)) => {
                records.push(record);
                at = next;
            }
            Err(what) => return (records, at, Some(what)),
        }
    }
    (records, at, None)
}

/// Whether a whole record stands directly behind the damaged one at `at`: a torn write is always the last.
fn whole_record_after(bytes: &[u8], at: usize) -> bool {
    if at == 0 {
        return bytes.len() > MAGIC.len();
    }
    let Some(header) = bytes.get(at..at + 4) else { return false };
    let length = u32::from_le_bytes(header.try_into().expect("4 bytes")) as usize;
    length <= MAX_PAYLOAD && record_at(bytes, at + HEADER + length).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch() -> tempfile::TempDir {
        tempfile::tempdir().expect("a scratch directory")
    }

    fn filled(dir: &Path) {
        let (mut log, records) = SegmentLog::open(dir, "state").expect("opens");
        assert!(records.is_empty());
        for n in 0..5u64 {
            log.append(n, format!("batch {n}").as_bytes()).expect("appends");
        }
        log.sync().expect("syncs");
    }

    #[test]
    fn what_was_appended_is_read_back() {
        let dir = scratch();
        filled(dir.path());
        let (mut log, records) = SegmentLog::open(dir.path(), "state").expect("opens");
        assert_eq!(records.len(), 5);
        assert_eq!(records[3], Record { sequence: 3, payload: b"batch 3".to_vec() });
        log.append(5, b"more").expect("appends");
        assert_eq!(SegmentLog::read(dir.path()).expect("reads").len(), 6);
    }

    /// Any cut of the file gives a prefix of the records, and the log goes on from there.
    #[test]
    fn a_tail_torn_anywhere_is_cut_off() {
        let dir = scratch();
        filled(dir.path());
        let path = dir.path().join(segment_name(0));
        let whole = fs::read(&path).expect("reads");
        for cut in 0..whole.len() {
            fs::write(&path, &whole[..cut]).expect("writes");
            let (mut log, records) = SegmentLog::open(dir.path(), "state").expect("opens");
            let n = records.len() as u64;
            assert!(records.iter().enumerate().all(|(i, r)| r.sequence == i as u64));
            log.append(n, b"next").expect("appends");
            let (_, again) = SegmentLog::open(dir.path(), "state").expect("opens");
            assert_eq!(again.len() as u64, n + 1);
        }
    }

    #[test]
    fn damage_before_the_tail_is_an_error() {
        let dir = scratch();
        filled(dir.path());
        let path = dir.path().join(segment_name(0));
        let mut bytes = fs::read(&path).expect("reads");
        bytes[MAGIC.len() + HEADER + 2] ^= 1;
        fs::write(&path, &bytes).expect("writes");
        assert!(matches!(SegmentLog::open(dir.path(), "state"), Err(LogError::Corrupt { at: 8, .. })));
    }

    #[test]
    fn old_segments_can_be_removed() {
        let dir = scratch();
        let (mut log, _) = SegmentLog::open(dir.path(), "state").expect("opens");
        for n in 0..6u64 {
            log.append(n, b"x").expect("appends");
            log.roll().expect("rolls");
        }
        log.remove_below(4).expect("removes");
        let left: Vec<u64> = SegmentLog::read(dir.path()).expect("reads").iter().map(|r| r.sequence).collect();
        assert_eq!(left, [4, 5]);
    }
}
