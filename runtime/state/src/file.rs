//! Files that are written whole: after a crash there is the old one or the new one, and its bytes are checked.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use crate::failpoint;
use crate::log::LogError;

/// Makes the names in a directory durable.
pub fn sync_dir(dir: &Path) -> Result<(), LogError> {
    File::open(dir).and_then(|d| d.sync_all()).map_err(|e| io_error("sync", dir, e))
}

/// Writes a whole file so that after a crash it is either the old or the new one: temporary name, sync, rename, sync of
/// the directory. `kind` names its fail points.
pub fn write_atomic(path: &Path, bytes: &[&[u8]], kind: &str) -> Result<(), LogError> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io_error("write", path, io::Error::from(io::ErrorKind::InvalidInput)));
    };
    let tmp = dir.join(format!(".{}.tmp", name.to_string_lossy()));
    failpoint::reach_step(kind, "before-write")?;
    let written = File::create(&tmp).and_then(|mut file| {
        bytes.iter().try_for_each(|part| file.write_all(part))?;
        Ok(file)
    });
    let finished = written.map_err(|e| io_error("write", &tmp, e)).and_then(|file| {
        failpoint::reach_step(kind, "before-sync")?;
        file.sync_all().map_err(|e| io_error("sync", &tmp, e))?;
        failpoint::reach_step(kind, "before-rename")?;
        fs::rename(&tmp, path).map_err(|e| io_error("rename", &tmp, e))
    });
    if let Err(e) = finished {
        // What is left of it is of no use, and may be what fills the disk.
        let _ = fs::remove_file(&tmp);
        return Err(e);
    }
    sync_dir(dir)?;
    failpoint::reach_step(kind, "after-rename")
}

/// Writes `magic`, the crc32 of the payload, and the payload, at once.
pub fn write_checked(path: &Path, magic: &[u8; 8], payload: &[u8], kind: &str) -> Result<(), LogError> {
    write_atomic(path, &[magic, &crc32fast::hash(payload).to_le_bytes(), payload], kind)
}

/// The payload of a file that [`write_checked`] wrote.
pub fn read_checked(path: &Path, magic: &[u8; 8]) -> Result<Vec<u8>, LogError> {
    let mut bytes = fs::read(path).map_err(|e| io_error("read", path, e))?;
    let corrupt = |what| LogError::Corrupt { path: path.to_path_buf(), at: 0, what };
    let Some((head, crc)) = bytes.split_first_chunk::<8>().and_then(|(h, rest)| Some((h, rest.first_chunk::<4>()?)))
    else {
        return Err(corrupt("the file is cut off"));
    };
    if head != magic {
        return Err(corrupt("this is not a file of this kind and version"));
    }
    let crc = u32::from_le_bytes(*crc);
    let payload = bytes.split_off(12);
    if crc32fast::hash(&payload) != crc {
        return Err(corrupt("the file's checksum does not hold"));
    }
    Ok(payload)
}

/// Removes a file; that it is gone already is as good.
pub fn remove(path: &Path, kind: &str) -> Result<(), LogError> {
    failpoint::reach_step(kind, "before-remove")?;
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(io_error("remove", path, e)),
        _ => failpoint::reach_step(kind, "after-remove"),
    }
}

/// The numbers of the files `<number>.<suffix>` in a directory, ascending.
pub fn numbered(dir: &Path, suffix: &str) -> Result<Vec<u64>, LogError> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(dir).map_err(|e| io_error("list", dir, e))? {
        let name = entry.map_err(|e| io_error("list", dir, e))?.file_name();
        let stem = name.to_str().and_then(|n| n.strip_suffix(suffix)?.strip_suffix('.'));
        if let Some(number) = stem.filter(|s| s.len() == 20).and_then(|s| s.parse().ok()) {
            numbers.push(number);
        }
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Removes what writes of whole files left behind when they were cut off.
pub fn remove_temporary(dir: &Path) -> Result<(), LogError> {
    for entry in fs::read_dir(dir).map_err(|e| io_error("list", dir, e))? {
        let entry = entry.map_err(|e| io_error("list", dir, e))?;
        let name = entry.file_name();
        if name.to_str().is_some_and(|n| n.starts_with('.') && n.ends_with(".tmp")) {
            fs::remove_file(entry.path()).map_err(|e| io_error("remove", &entry.path(), e))?;
        }
    }
    Ok(())
}

pub(crate) fn io_error(action: &'static str, path: &Path, source: io::Error) -> LogError {
    LogError::Io { action, path: path.to_path_buf(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAGIC: &[u8; 8] = b"SSQLTST1";

    #[test]
    fn a_changed_or_cut_file_is_told_from_a_whole_one() {
        let dir = tempfile::tempdir().expect("scratch");
        let path = dir.path().join("f");
        write_checked(&path, MAGIC, b"payload", "snapshot").expect("writes");
        assert_eq!(read_checked(&path, MAGIC).expect("reads"), b"payload");
        let whole = fs::read(&path).expect("reads");
        for cut in 0..whole.len() {
            fs::write(&path, &whole[..cut]).expect("writes");
            assert!(matches!(read_checked(&path, MAGIC), Err(LogError::Corrupt { .. })), "cut at {cut}");
        }
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            fs::write(&path, bytes).expect("writes");
            assert!(matches!(read_checked(&path, MAGIC), Err(LogError::Corrupt { .. })), "changed at {at}");
        }
    }

    #[test]
    fn what_cannot_be_written_leaves_the_old_file_and_nothing_else() {
        let dir = tempfile::tempdir().expect("scratch");
        let path = dir.path().join("f");
        fs::create_dir(dir.path().join("f")).expect("a directory in the way");
        fs::write(dir.path().join("f/inside"), b"").expect("writes");
        assert!(write_atomic(&path, &[b"x"], "snapshot").is_err());
        assert_eq!(fs::read_dir(dir.path()).expect("lists").count(), 1);
    }
}
