//! Opening files, plain and compressed (by suffix), and errors of reading them.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use ssql_engine::connector::{ConnectorError, Domain};

use super::list::FileEntry;

/// Whether the file must be decompressed, and so cannot be split.
pub(super) fn is_compressed(path: &Path) -> bool {
    matches!(suffix(path), "gz" | "zst" | "deflate")
}

fn suffix(path: &Path) -> &str {
    path.extension().and_then(|s| s.to_str()).unwrap_or("")
}

/// A file's bytes from `start` on, decompressed. A plain file gives no more than the size it had when it was planned.
/// A compressed one gives no more than `most` bytes and fails there: what has become so much is no data but an attack.
pub(super) fn open(file: &FileEntry, start: u64, strict: bool, most: u64) -> Result<Box<dyn Read>, ConnectorError> {
    let path = &file.path;
    let failed = |e: io::Error| read_error(path, e);
    let mut opened = File::open(path).map_err(failed)?;
    let meta = opened.metadata().map_err(failed)?;
    if strict && meta.len() != file.size {
        let how = if meta.len() < file.size { "shrank" } else { "grew" };
        let message =
            format!("`{}` {how} from {} to {} bytes after it was taken up", path.display(), file.size, meta.len());
        return Err(ConnectorError::new("FAILED_READ_FILE.FILE_CHANGED", Domain::External, message)
            .with_help("write a file elsewhere and rename it into the directory when it is complete")
            .with_help("or set `ignoreCorruptFiles true` to take what is there of the planned part"));
    }
    Ok(match suffix(path) {
        "gz" => Box::new(Bounded { from: MultiGzDecoder::new(opened), left: most, most }),
        "zst" => {
            let mut decoder = zstd::Decoder::new(opened).map_err(failed)?;
            // A frame may ask for a window of any size; this is what `zstd` itself takes by default.
            decoder.window_log_max(27).map_err(failed)?;
            Box::new(Bounded { from: decoder, left: most, most })
        }
        "deflate" => Box::new(Bounded { from: flate2::read::ZlibDecoder::new(opened), left: most, most }),
        _ => {
            opened.seek(SeekFrom::Start(start)).map_err(failed)?;
            Box::new(opened.take(file.size.saturating_sub(start)))
        }
    })
}

/// Gives so many bytes and then fails.
struct Bounded<R> {
    from: R,
    left: u64,
    most: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(buffer)?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            let message = format!("it decompresses to more than {} bytes (`maxDecompressedBytes`)", self.most);
            io::Error::new(io::ErrorKind::FileTooLarge, message)
        })?;
        Ok(read)
    }
}

/// The error for a file that cannot be read.
pub(crate) fn read_error(path: &Path, error: io::Error) -> ConnectorError {
    let missing = error.kind() == io::ErrorKind::NotFound;
    let mut wrapped = ConnectorError::io("read", path, error);
    if missing {
        wrapped.condition = "FAILED_READ_FILE.FILE_NOT_EXIST";
        return wrapped.with_help("the file was listed before: set `ignoreMissingFiles true` if files may be removed");
    }
    // A file that is broken, or becomes too much, will be so again.
    wrapped.condition = "FAILED_READ_FILE.NO_HINT";
    wrapped.retry = false;
    wrapped
}

/// The number of the line that begins at byte `at` of the file's (decompressed) text, from 1.
pub(super) fn line_number(file: &FileEntry, at: u64) -> Option<u64> {
    let mut bytes = open(file, 0, false, u64::MAX).ok()?.take(at);
    let mut chunk = vec![0; 1 << 16];
    let mut lines = 1;
    loop {
        match bytes.read(&mut chunk).ok()? {
            0 => return Some(lines),
            n => lines += memchr::memchr_iter(b'\n', &chunk[..n]).count() as u64,
        }
    }
}
