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

/// First bytes of each segment: name and format version.
const MAGIC: &[u8; 8] = b"SSQLLOG1";
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
    /// First sequence numbers of the segments, ascending.
    segments: Vec<u64>,
    file: Option<File>,
    bytes: u64,
    last: Option<u64>,
}

impl SegmentLog {
    /// Opens the log in `dir` (created if missing), cuts off a torn tail, and returns it with all its records.
    pub fn open(dir: &Path) -> Result<(SegmentLog, Vec<Record>), LogError> {
        fs::create_dir_all(dir).map_err(|e| io_error("create", dir, e))?;
        let segments = segment_numbers(dir)?;
        let mut log = SegmentLog { dir: dir.to_path_buf(), segments, file: None, bytes: 0, last: None };
        let mut records = Vec::new();
        for (i, &first) in log.segments.clone().iter().enumerate() {
            let is_last = i + 1 == log.segments.len();
            let path = log.segment_path(first);
            let mut bytes = Vec::new();
            File::open(&path).and_then(|mut f| f.read_to_end(&mut bytes)).map_err(|e| io_error("read", &path, e))?;
            let (read, good, damage) = read_segment(&bytes);
            match damage {
                Some(what) if !is_last => return Err(LogError::Corrupt { path, at: good as u64, what }),
                // A whole record behind the damage was once acknowledged: that is no torn tail.
                Some(what) if whole_record_after(&bytes, good) => {
                    return Err(LogError::Corrupt { path, at: good as u64, what });
                }
                _ => {}
            }
            if is_last {
                let file =
                    OpenOptions::new().read(true).write(true).open(&path).map_err(|e| io_error("open", &path, e))?;
                log.adopt_tail(file, &path, good, damage.is_some())?;
            }
            records.extend(read);
        }
        log.last = records.last().map(|r| r.sequence);
        Ok((log, records))
    }

    /// Reads a log without changing it, as tools do beside a live query: a torn tail is passed over.
    pub fn read(dir: &Path) -> Result<Vec<Record>, LogError> {
        let mut records = Vec::new();
        let segments = segment_numbers(dir)?;
        for (i, &first) in segments.iter().enumerate() {
            let path = dir.join(segment_name(first));
            let bytes = fs::read(&path).map_err(|e| io_error("read", &path, e))?;
            let (read, good, damage) = read_segment(&bytes);
            if let Some(what) = damage
                && i + 1 != segments.len()
            {
                return Err(LogError::Corrupt { path, at: good as u64, what });
            }
            records.extend(read);
        }
        Ok(records)
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
        let file = self.file.as_mut().expect("begin_segment made one");
        if let Err(e) = file.write_all(&record) {
            // Half a record in the middle of a log would be read as damage later: take it back.
            let _ = file.set_len(self.bytes);
            let _ = file.seek(SeekFrom::Start(self.bytes));
            return Err(io_error("append to", &path, e));
        }
        self.bytes += record.len() as u64;
        self.last = Some(sequence);
        Ok(())
    }

    /// Makes all that was appended durable.
    pub fn sync(&mut self) -> Result<(), LogError> {
        match &self.file {
            Some(file) => file.sync_data().map_err(|e| io_error("sync", &self.dir, e)),
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
            let path = self.segment_path(self.segments[0]);
            fs::remove_file(&path).map_err(|e| io_error("remove", &path, e))?;
            self.segments.remove(0);
        }
        Ok(())
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
        let mut file =
            OpenOptions::new().create_new(true).write(true).open(&path).map_err(|e| io_error("create", &path, e))?;
        file.write_all(MAGIC).map_err(|e| io_error("append to", &path, e))?;
        file.sync_all().map_err(|e| io_error("sync", &path, e))?;
        sync_dir(&self.dir)?;
        self.segments.push(name);
        self.bytes = MAGIC.len() as u64;
        self.file = Some(file);
        Ok(())
    }

    fn segment_path(&self, first: u64) -> PathBuf {
        self.dir.join(segment_name(first))
    }
}

/// Makes the names in a directory durable.
pub fn sync_dir(dir: &Path) -> Result<(), LogError> {
    File::open(dir).and_then(|d| d.sync_all()).map_err(|e| io_error("sync", dir, e))
}

/// Writes a whole file so that after a crash it is either the old or the new one: temporary name, sync, rename.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), LogError> {
    let dir = path.parent().expect("a file stands in a directory");
    let name = path.file_name().expect("a file has a name").to_string_lossy();
    let tmp = dir.join(format!(".{name}.tmp"));
    let mut file = File::create(&tmp).map_err(|e| io_error("create", &tmp, e))?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(|e| io_error("write", &tmp, e))?;
    fs::rename(&tmp, path).map_err(|e| io_error("rename", &tmp, e))?;
    sync_dir(dir)
}

fn io_error(action: &'static str, path: &Path, source: io::Error) -> LogError {
    LogError::Io { action, path: path.to_path_buf(), source }
}

fn segment_name(first: u64) -> String {
    format!("{first:020}.seg")
}

fn segment_numbers(dir: &Path) -> Result<Vec<u64>, LogError> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(dir).map_err(|e| io_error("list", dir, e))? {
        let entry = entry.map_err(|e| io_error("list", dir, e))?;
        if let Some(number) = entry.file_name().to_str().and_then(|n| n.strip_suffix(".seg")?.parse().ok()) {
            numbers.push(number);
        }
    }
    numbers.sort_unstable();
    Ok(numbers)
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
        let (mut log, records) = SegmentLog::open(dir).expect("opens");
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
        let (mut log, records) = SegmentLog::open(dir.path()).expect("opens");
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
            let (mut log, records) = SegmentLog::open(dir.path()).expect("opens");
            let n = records.len() as u64;
            assert!(records.iter().enumerate().all(|(i, r)| r.sequence == i as u64));
            log.append(n, b"next").expect("appends");
            let (_, again) = SegmentLog::open(dir.path()).expect("opens");
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
        assert!(matches!(SegmentLog::open(dir.path()), Err(LogError::Corrupt { at: 8, .. })));
    }

    #[test]
    fn old_segments_can_be_removed() {
        let dir = scratch();
        let (mut log, _) = SegmentLog::open(dir.path()).expect("opens");
        for n in 0..6u64 {
            log.append(n, b"x").expect("appends");
            log.roll().expect("rolls");
        }
        log.remove_below(4).expect("removes");
        let left: Vec<u64> = SegmentLog::read(dir.path()).expect("reads").iter().map(|r| r.sequence).collect();
        assert_eq!(left, [4, 5]);
    }
}
