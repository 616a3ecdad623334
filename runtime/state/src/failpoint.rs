//! Named points at which a test can end the process, as a power cut would, or make the step there fail.
//!
//! `SSQL_FAILPOINT=name` aborts at the first time the point is reached, `name:3` at the third; `name:3:error` lets that
//! step fail instead, as a full or broken disk would, and `name:3:panic` lets it panic, as a fault of ours would. With `SSQL_FAILPOINT_LOG=file` each point that is reached is noted
//! there. Without the variables a point costs one load.
//!
//! [`POINTS`] names them all: a test ends the process at each and fails if one was not reached.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::log::LogError;

/// Steps of a log of each kind (`offsets`, `commits`, `sources`, `state`, `sink-log`), of a file that is written whole
/// (`metadata`, `plan`, `snapshot`, `compact`), and of the engine and the file sink.
pub const POINTS: &[&str] = &[
    "offsets-before-append",
    "offsets-half-append",
    "offsets-after-append",
    "offsets-after-sync",
    "offsets-before-segment",
    "offsets-half-segment",
    "offsets-after-segment",
    "offsets-before-remove",
    "offsets-after-remove",
    "commits-before-append",
    "commits-half-append",
    "commits-after-append",
    "commits-after-sync",
    "commits-before-segment",
    "commits-half-segment",
    "commits-after-segment",
    "commits-before-remove",
    "commits-after-remove",
    "sources-before-append",
    "sources-half-append",
    "sources-after-append",
    "sources-after-sync",
    "sources-before-segment",
    "sources-half-segment",
    "sources-after-segment",
    "sources-before-remove",
    "sources-after-remove",
    "state-before-append",
    "state-half-append",
    "state-after-append",
    "state-after-sync",
    "state-before-segment",
    "state-half-segment",
    "state-after-segment",
    "state-before-remove",
    "state-after-remove",
    "sink-log-before-append",
    "sink-log-half-append",
    "sink-log-after-append",
    "sink-log-after-sync",
    "sink-log-before-segment",
    "sink-log-half-segment",
    "sink-log-after-segment",
    "sink-log-before-remove",
    "sink-log-after-remove",
    "metadata-before-write",
    "metadata-before-sync",
    "metadata-before-rename",
    "metadata-after-rename",
    "plan-before-write",
    "plan-before-sync",
    "plan-before-rename",
    "plan-after-rename",
    "snapshot-before-write",
    "snapshot-before-sync",
    "snapshot-before-rename",
    "snapshot-after-rename",
    "snapshot-before-remove",
    "snapshot-after-remove",
    "compact-before-write",
    "compact-before-sync",
    "compact-before-rename",
    "compact-after-rename",
    "compact-before-remove",
    "compact-after-remove",
    "sink-staged",
    "late-sink-staged",
    "late-sink-before-commit",
    "late-sink-after-commit",
    "sink-before-commit",
    "sink-after-commit",
    "sink-file-before-write",
    "sink-file-before-sync",
    "sink-file-after-sync",
    "sink-before-rename",
    "sink-after-rename",
    "sink-before-dir-sync",
    "sink-before-clean",
    "sink-after-clean",
    "sink-before-recover",
    "sink-after-recover",
    "clean-source-before",
    "clean-source-after",
];

struct Armed {
    name: String,
    left: AtomicU64,
    mode: Mode,
}

/// What happens there.
enum Mode {
    Abort,
    Error,
    Panic,
}

struct Config {
    armed: Option<Armed>,
    log: Option<PathBuf>,
}

fn config() -> Option<&'static Config> {
    static CONFIG: OnceLock<Option<Config>> = OnceLock::new();
    CONFIG
        .get_or_init(|| {
            let armed = std::env::var("SSQL_FAILPOINT").ok().map(|text| {
                let mut parts = text.split(':');
                let name = parts.next().unwrap_or_default().to_owned();
                let nth = parts.next().and_then(|n| n.parse().ok()).unwrap_or(1);
                let mode = match parts.next() {
                    Some("error") => Mode::Error,
                    Some("panic") => Mode::Panic,
                    _ => Mode::Abort,
                };
                Armed { name, left: AtomicU64::new(nth), mode }
            });
            let log = std::env::var_os("SSQL_FAILPOINT_LOG").map(Into::into);
            (armed.is_some() || log.is_some()).then_some(Config { armed, log })
        })
        .as_ref()
}

/// The process may end here, or the step that follows may fail. `what` and `step` make the point's name.
pub fn reach_step(what: &str, step: &str) -> Result<(), LogError> {
    match config() {
        None => Ok(()),
        Some(config) => hit(config, &format!("{what}-{step}")),
    }
}

/// The process may end here, or the step that follows may fail.
pub fn reach(name: &str) -> Result<(), LogError> {
    match config() {
        None => Ok(()),
        Some(config) => hit(config, name),
    }
}

/// Whether this point is the one that a test has chosen: then half of a step may be done before it.
pub fn is_armed(what: &str, step: &str) -> bool {
    config()
        .and_then(|c| c.armed.as_ref())
        .is_some_and(|a| a.name.strip_prefix(what).and_then(|rest| rest.strip_prefix('-')) == Some(step))
}

fn hit(config: &Config, name: &str) -> Result<(), LogError> {
    debug_assert!(POINTS.contains(&name), "the fail point `{name}` is not in the list");
    if let Some(path) = &config.log
        && let Ok(mut file) = std::fs::OpenOptions::new().create(true).append(true).open(path)
    {
        let _ = writeln!(file, "{name}");
    }
    if let Some(armed) = &config.armed
        && armed.name == name
        && armed.left.fetch_sub(1, Ordering::SeqCst) == 1
    {
        match armed.mode {
            Mode::Abort => std::process::abort(),
            Mode::Panic => panic!("a test lets `{name}` panic"),
            Mode::Error => {
                let source = io::Error::new(io::ErrorKind::StorageFull, "a test lets this step fail");
                return Err(LogError::Io { action: "go past", path: PathBuf::from(name), source });
            }
        }
    }
    Ok(())
}
