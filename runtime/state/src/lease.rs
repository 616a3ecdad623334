//! One writer at a time: a lock of the system on a file that says who holds it.
//!
//! The system gives the lock back when the process ends, however it ends, so a restarted query takes it at once. The
//! text in the file is for people only; it stays when the holder is gone, and means nothing without the lock.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use crate::file::io_error;
use crate::log::LogError;

/// Who holds a lease.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holder {
    /// Name of the query.
    pub query: String,
    /// Its id, stable over restarts; empty if it is not known yet.
    pub query_id: String,
    /// Id of the run.
    pub run_id: String,
}

/// Why a lease was not given.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// Another query holds it.
    #[error("it is in use by {holder}")]
    Held {
        /// Who, in words.
        holder: String,
    },
    /// The file cannot be used.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// A lease; it ends when this is dropped, or with the process.
#[derive(Debug)]
pub struct Lease {
    file: File,
}

impl Lease {
    /// Takes the lease on the file at `path`, which is created if missing.
    pub fn take(path: &Path, holder: &Holder) -> Result<Lease, LeaseError> {
        let io = |action| move |e| io_error(action, path, e);
        let mut file =
            File::options().create(true).truncate(false).read(true).write(true).open(path).map_err(io("open"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                file.read_to_string(&mut text).map_err(io("read"))?;
                return Err(LeaseError::Held { holder: in_words(&text) });
            }
            Err(TryLockError::Error(e)) => return Err(io("lock")(e).into()),
        }
        let mut lease = Lease { file };
        lease.write(holder).map_err(io("write"))?;
        Ok(lease)
    }

    /// Says anew who holds it, once the query's id is known.
    pub fn name(&mut self, path: &Path, holder: &Holder) -> Result<(), LogError> {
        self.write(holder).map_err(|e| io_error("write", path, e))
    }

    fn write(&mut self, holder: &Holder) -> std::io::Result<()> {
        let text = format!(
            "pid {}\nhost {}\nquery {}\nquery_id {}\nrun_id {}\nstarted {:.0}\n",
            std::process::id(),
            host(),
            holder.query.replace(['\n', '\r'], " "),
            holder.query_id,
            holder.run_id,
            jiff::Timestamp::now(),
        );
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(text.as_bytes())
    }
}

/// The text of a lease file as part of a sentence.
pub fn in_words(text: &str) -> String {
    let value = |name: &str| {
        let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        found.filter(|v| !v.is_empty())
    };
    let Some(pid) = value("pid") else { return "another process, which has only just begun".to_owned() };
    let mut words = format!("process {pid} on host `{}`", value("host").unwrap_or("?"));
    if let Some(query) = value("query") {
        words.push_str(&format!(": query `{query}`"));
        if let Some(id) = value("query_id") {
            words.push_str(&format!(", id {id}"));
        }
        if let Some(run) = value("run_id") {
            words.push_str(&format!(", run {run}"));
        }
    }
    if let Some(started) = value("started") {
        words.push_str(&format!(", since {started}"));
    }
    words
}

/// The text of a lease file in words, and whether the process that it names lives on this host. The lock itself is not
/// tried: a query that starts in that very moment would be refused.
pub fn look(path: &Path) -> Option<(String, bool)> {
    let text = fs::read_to_string(path).ok()?;
    let pid = text.lines().find_map(|l| l.strip_prefix("pid ")?.trim().parse::<u32>().ok());
    let here = text.lines().any(|l| l.strip_prefix("host ") == Some(host().as_str()));
    let lives = pid.is_some_and(|pid| Path::new(&format!("/proc/{pid}")).exists());
    Some((in_words(&text), here && lives))
}

fn host() -> String {
    let named = fs::read_to_string("/proc/sys/kernel/hostname").ok().or_else(|| std::env::var("HOSTNAME").ok());
    named.map(|h| h.trim().to_owned()).filter(|h| !h.is_empty()).unwrap_or_else(|| "localhost".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_who_holds_it_and_let_in_afterwards() {
        let dir = tempfile::tempdir().expect("scratch");
        let path = dir.path().join("lease");
        let who = |q: &str| Holder { query: q.into(), query_id: "i".into(), run_id: "r".into() };
        let first = Lease::take(&path, &who("first")).expect("is free");
        let Err(LeaseError::Held { holder }) = Lease::take(&path, &who("second")) else { panic!("it is held") };
        for part in [&format!("process {}", std::process::id()), "query `first`", "id i", "run r", "since 20"] {
            assert!(holder.contains(part), "{holder}");
        }
        drop(first);
        Lease::take(&path, &who("second")).expect("is free again");
        assert!(look(&path).is_some_and(|(words, _)| words.contains("second")));
    }
}
