//! Finding files: a directory, a file or a glob.
//!
//! Listing is incremental. A directory whose modification time did not change since it was listed has no new entries,
//! so it is not read again; the time must lie some seconds back for that, since file systems count it coarsely.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use globset::GlobBuilder;
use ssql_engine::connector::ConnectorError;

use super::options::FileOptions;

/// A directory's modification time says nothing about changes this close to it.
const SETTLED: Duration = Duration::from_secs(3);

/// A file as it was listed.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct FileEntry {
    pub(crate) path: PathBuf,
    /// Modification time, microseconds since 1970.
    pub(crate) mtime: i64,
    pub(crate) size: u64,
}

/// Lists the files of one relation.
#[derive(Debug)]
pub(super) struct Lister {
    location: PathBuf,
    options: FileOptions,
    /// Directories that were listed, and may be passed over while their time stays the same.
    settled: HashMap<PathBuf, Settled>,
}

#[derive(Debug)]
struct Settled {
    mtime: SystemTime,
    /// Directories below, which have times of their own.
    below: Vec<PathBuf>,
}

impl Lister {
    pub(super) fn new(location: PathBuf, options: FileOptions) -> Lister {
        Lister { location, options, settled: HashMap::new() }
    }

    /// The location without its glob part: where partition directories begin.
    pub(super) fn root(&self) -> PathBuf {
        self.location.components().take_while(|c| !is_glob(c)).collect()
    }

    /// The directory or file that the location names; `None` of a glob.
    pub(super) fn single_root(&self) -> Option<&Path> {
        (!self.location.components().any(|c| is_glob(&c))).then_some(&self.location)
    }

    /// Fails unless the location exists (a glob may match nothing yet).
    pub(super) fn check(&self) -> Result<(), ConnectorError> {
        let root = self.root();
        fs::metadata(&root).map(drop).map_err(|e| ConnectorError::io("read", &root, e))
    }

    /// All directories are read anew at the next listing.
    pub(super) fn forget(&mut self) {
        self.settled.clear();
    }

    /// The files that are there and that `wanted` takes; those in unchanged directories are left out.
    pub(super) fn list(&mut self, wanted: &mut dyn FnMut(&Path) -> bool) -> Result<Vec<FileEntry>, ConnectorError> {
        let mut found = Vec::new();
        for root in expand(&self.location)? {
            let meta = match fs::metadata(&root) {
                Ok(meta) => meta,
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(e) => return Err(ConnectorError::io("read", &root, e)),
            };
            if meta.is_dir() {
                self.list_dir(root, wanted, &mut found)?;
            } else if meta.is_file() && self.takes(&root) && wanted(&root) {
                found.push(entry(root, &meta));
            }
        }
        Ok(found)
    }

    fn list_dir(
        &mut self,
        root: PathBuf,
        wanted: &mut dyn FnMut(&Path) -> bool,
        found: &mut Vec<FileEntry>,
    ) -> Result<(), ConnectorError> {
        let mut todo = vec![root];
        while let Some(dir) = todo.pop() {
            let started = SystemTime::now();
            let mtime = match fs::metadata(&dir).and_then(|m| m.modified()) {
                Ok(mtime) => mtime,
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(e) => return Err(ConnectorError::io("read", &dir, e)),
            };
            if let Some(settled) = self.settled.get(&dir)
                && settled.mtime == mtime
            {
                todo.extend(settled.below.iter().cloned());
                continue;
            }
            let below = self.read_dir(&dir, wanted, found)?;
            todo.extend(below.iter().cloned());
            if mtime + SETTLED < started {
                self.settled.insert(dir, Settled { mtime, below });
            } else {
                self.settled.remove(&dir);
            }
        }
        Ok(())
    }

    /// Reads one directory; returns the directories below that belong to the relation.
    fn read_dir(
        &self,
        dir: &Path,
        wanted: &mut dyn FnMut(&Path) -> bool,
        found: &mut Vec<FileEntry>,
    ) -> Result<Vec<PathBuf>, ConnectorError> {
        let mut below = Vec::new();
        let entries = fs::read_dir(dir).map_err(|e| ConnectorError::io("list", dir, e))?;
        for item in entries {
            let item = item.map_err(|e| ConnectorError::io("list", dir, e))?;
            let path = item.path();
            let kind = item.file_type().map_err(|e| ConnectorError::io("read", &path, e))?;
            if kind.is_dir() {
                let name = item.file_name();
                let name = name.to_string_lossy();
                if !is_hidden(&name) && (self.options.recursive || name.contains('=')) {
                    below.push(path);
                }
                continue;
            }
            if !self.takes(&path) || !wanted(&path) {
                continue;
            }
            // A link counts as the file it leads to; links to directories could lead round in circles.
            match fs::metadata(&path) {
                Ok(meta) if meta.is_file() => found.push(entry(path, &meta)),
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(ConnectorError::io("read", &path, e)),
            }
        }
        Ok(below)
    }

    fn takes(&self, path: &Path) -> bool {
        let Some(name) = path.file_name() else { return false };
        let name = name.to_string_lossy();
        !is_hidden(&name) && self.options.name_filter.as_ref().is_none_or(|glob| glob.is_match(&*name))
    }
}

/// Spark's rule for files that are not data.
fn is_hidden(name: &str) -> bool {
    (name.starts_with('_') && !name.contains('=')) || name.starts_with('.') || name.ends_with("._COPYING_")
}

fn entry(path: PathBuf, meta: &fs::Metadata) -> FileEntry {
    let mtime = meta.modified().map_or(0, |time| match time.duration_since(UNIX_EPOCH) {
        Ok(after) => after.as_micros() as i64,
        Err(before) => -(before.duration().as_micros() as i64),
    });
    FileEntry { path, mtime, size: meta.len() }
}

fn is_glob(component: &Component<'_>) -> bool {
    component.as_os_str().to_string_lossy().contains(['*', '?', '[', '{'])
}

/// The paths that a location stands for, sorted: itself, or what its globs match component by component.
fn expand(location: &Path) -> Result<Vec<PathBuf>, ConnectorError> {
    let mut paths = vec![PathBuf::new()];
    for component in location.components() {
        if !is_glob(&component) {
            paths.iter_mut().for_each(|p| p.push(component));
            continue;
        }
        let text = component.as_os_str().to_string_lossy();
        let glob = GlobBuilder::new(&text).literal_separator(true).build();
        let matcher =
            glob.map_err(|_| ConnectorError::bad_option("LOCATION", &text, "a path or a glob"))?.compile_matcher();
        let mut matched = Vec::new();
        for dir in paths {
            let entries = match fs::read_dir(&dir) {
                Ok(entries) => entries,
                Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => continue,
                Err(e) => return Err(ConnectorError::io("list", &dir, e)),
            };
            for item in entries {
                let item = item.map_err(|e| ConnectorError::io("list", &dir, e))?;
                let name = item.file_name();
                if !is_hidden(&name.to_string_lossy()) && matcher.is_match(&name) {
                    matched.push(dir.join(name));
                }
            }
        }
        matched.sort();
        paths = matched;
    }
    Ok(paths)
}
