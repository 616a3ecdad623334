//! Options that all file sources share.

use std::path::{Path, PathBuf};

use globset::{Glob, GlobMatcher};
use ssql_engine::connector::{ConnectorError, Options};
use ssql_ir::{OptionDesc, OptionKind, OptionScope};

use crate::desc::{bytes, defaulted, duration, option, positive};

/// What to do with a file once its batch is committed (`cleanSource`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CleanSource {
    Off,
    Delete,
    /// Move it below this directory, keeping its whole path.
    Archive(PathBuf),
}

/// Which files are read, and how many at a time.
#[derive(Debug, Clone)]
pub(super) struct FileOptions {
    pub(super) max_files: Option<u64>,
    pub(super) max_bytes: Option<u64>,
    pub(super) latest_first: bool,
    pub(super) file_name_only: bool,
    /// Files that much older than the newest file seen are ignored, in microseconds.
    pub(super) max_age: i64,
    pub(super) max_cached: usize,
    pub(super) name_filter: Option<GlobMatcher>,
    pub(super) recursive: bool,
    pub(super) clean: CleanSource,
    pub(super) ignore_missing: bool,
    pub(super) ignore_corrupt: bool,
    /// Longest line, and longest file that is one record, in bytes.
    pub(super) max_record: usize,
    /// Most bytes that one compressed file may become.
    pub(super) max_decompressed: u64,
}

/// Bytes of a record, where `maxRecordBytes` does not say otherwise.
const MAX_RECORD: u64 = 256 << 20;
/// Bytes that a compressed file may become, where `maxDecompressedBytes` does not say otherwise.
const MAX_DECOMPRESSED: u64 = 64 << 30;

const WEEK: i64 = 7 * 86_400_000_000;

impl FileOptions {
    pub(super) fn new(options: &Options, location: &Path) -> Result<FileOptions, ConnectorError> {
        let name_filter = options
            .get("pathGlobFilter")
            .map(|glob| {
                let matcher = Glob::new(glob).map(|g| g.compile_matcher());
                matcher.map_err(|_| ConnectorError::bad_option("pathGlobFilter", glob, "a glob such as *.json"))
            })
            .transpose()?;
        let max_files = positive(options, "maxFilesPerTrigger")?;
        let max_bytes = bytes(options, "maxBytesPerTrigger")?;
        if max_files.is_some() && max_bytes.is_some() {
            let why = "to be left out where maxFilesPerTrigger is given";
            return Err(ConnectorError::bad_option("maxBytesPerTrigger", "both", why));
        }
        let latest_first = options.boolean("latestFirst", false)?;
        let max_age = duration(options, "maxFileAge", 1_000, WEEK)?;
        // Going backwards in time, old files are what is still to be read.
        let backwards = latest_first && (max_files.is_some() || max_bytes.is_some());
        Ok(FileOptions {
            max_files,
            max_bytes,
            latest_first,
            file_name_only: options.boolean("fileNameOnly", false)?,
            max_age: if backwards { i64::MAX } else { max_age },
            max_cached: options.integer("maxCachedFiles", 10_000)? as usize,
            name_filter,
            recursive: options.boolean("recursiveFileLookup", false)?,
            clean: clean_source(options, location)?,
            ignore_missing: options.boolean("ignoreMissingFiles", false)?,
            ignore_corrupt: options.boolean("ignoreCorruptFiles", false)?,
            // A buffer's length has to fit 31 bits, as positions in it do.
            max_record: bytes(options, "maxRecordBytes")?.unwrap_or(MAX_RECORD).clamp(1, 1 << 30) as usize,
            max_decompressed: bytes(options, "maxDecompressedBytes")?.unwrap_or(MAX_DECOMPRESSED),
        })
    }

    /// The options as they are described to users.
    pub(super) fn describe() -> Vec<OptionDesc> {
        use OptionKind::{Boolean, Bytes, Duration, Integer, OneOf, Text};
        use OptionScope::{Read, Stream};
        vec![
            option("maxFilesPerTrigger", Integer, Stream, "Most new files in one micro-batch."),
            option(
                "maxBytesPerTrigger",
                Bytes,
                Stream,
                "Most bytes of new files in one micro-batch, at least one file.",
            ),
            defaulted("latestFirst", Boolean, "false", Stream, "Takes the newest files first."),
            defaulted("fileNameOnly", Boolean, "false", Stream, "A file is known by its name alone, not by its path."),
            defaulted(
                "maxFileAge",
                Duration,
                "7d",
                Stream,
                "Files that much older than the newest file seen are ignored.",
            ),
            defaulted("maxCachedFiles", Integer, "10000", Stream, "New files remembered between listings."),
            defaulted(
                "cleanSource",
                OneOf(&["off", "archive", "delete"]),
                "off",
                Stream,
                "What becomes of a file that was read.",
            ),
            option("sourceArchiveDir", Text, Stream, "Where `cleanSource 'archive'` moves files to."),
            option("pathGlobFilter", Text, Read, "Only files whose name matches this glob."),
            defaulted(
                "recursiveFileLookup",
                Boolean,
                "false",
                Read,
                "Files in all directories below, without partition columns.",
            ),
            defaulted("ignoreMissingFiles", Boolean, "false", Read, "Files that vanished are passed over."),
            defaulted(
                "ignoreCorruptFiles",
                Boolean,
                "false",
                Read,
                "Files that cannot be read, or changed, count as far as they can be read.",
            ),
            defaulted(
                "maxRecordBytes",
                Bytes,
                "256m",
                Read,
                "Longest line, or longest file that is one record; 1g at most. Text formats.",
            ),
            defaulted(
                "maxDecompressedBytes",
                Bytes,
                "64g",
                Read,
                "Most bytes that one compressed file may become. Text formats.",
            ),
        ]
    }
}

fn clean_source(options: &Options, location: &Path) -> Result<CleanSource, ConnectorError> {
    match options.get("cleanSource").map(str::to_lowercase).as_deref() {
        None | Some("off") => Ok(CleanSource::Off),
        Some("delete") => Ok(CleanSource::Delete),
        Some("archive") => {
            let dir = options.get("sourceArchiveDir").ok_or_else(|| {
                ConnectorError::bad_option("cleanSource", "archive", "a `sourceArchiveDir` beside `archive`")
            })?;
            let dir = PathBuf::from(dir);
            if !dir.is_absolute() || dir.starts_with(location) || location.starts_with(&dir) {
                let why = "an absolute path outside the source's own directory";
                return Err(ConnectorError::bad_option("sourceArchiveDir", &dir.display().to_string(), why));
            }
            Ok(CleanSource::Archive(dir))
        }
        Some(other) => Err(ConnectorError::bad_option("cleanSource", other, "off, archive or delete")),
    }
}
