//! Named points at which a test can end the process, as a power cut would.
//!
//! `SSQL_FAILPOINT=name` aborts at the first time the point is reached, `name:3` at the third. With
//! `SSQL_FAILPOINT_LOG=file` each point that is reached is noted there, so that a test can prove it was hit. Without
//! the variables a point costs one load.

use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

struct Armed {
    name: String,
    left: AtomicU64,
}

struct Config {
    armed: Option<Armed>,
    log: Option<std::path::PathBuf>,
}

fn config() -> Option<&'static Config> {
    static CONFIG: OnceLock<Option<Config>> = OnceLock::new();
    CONFIG
        .get_or_init(|| {
            let armed = std::env::var("SSQL_FAILPOINT").ok().map(|text| {
                let (name, nth) = text.rsplit_once(':').unwrap_or((&text, "1"));
                Armed { name: name.to_owned(), left: AtomicU64::new(nth.parse().unwrap_or(1)) }
            });
            let log = std::env::var_os("SSQL_FAILPOINT_LOG").map(Into::into);
            (armed.is_some() || log.is_some()).then_some(Config { armed, log })
        })
        .as_ref()
}

/// The process may end here.
pub fn reach(name: &str) {
    let Some(config) = config() else { return };
    if let Some(path) = &config.log
        && let Ok(mut file) = std::fs::OpenOptions::new().create(true).append(true).open(path)
    {
        let _ = writeln!(file, "{name}");
    }
    if let Some(armed) = &config.armed
        && armed.name == name
        && armed.left.fetch_sub(1, Ordering::SeqCst) == 1
    {
        std::process::abort();
    }
}
