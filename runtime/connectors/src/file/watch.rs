//! Learning from the operating system that files have come, so that a query without input sleeps.

use std::path::Path;

use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};
use ssql_engine::connector::Wake;

/// Wakes a query whenever something changes in a directory tree, for as long as it lives.
pub(super) struct Watch(#[expect(dead_code, reason = "watching ends when it is dropped")] RecommendedWatcher);

impl Watch {
    /// Watches what is below `root`. `None` where the system cannot: no such service, no watch left. File systems of other
    /// machines tell nothing, and nobody says so; a query looks again from time to time in any case.
    pub(super) fn start(root: &Path, wake: &Wake) -> Option<Watch> {
        let wake = Wake::clone(wake);
        let told = move |event: notify::Result<Event>| {
            if event.is_ok_and(|e| brings_files(e.kind)) {
                wake();
            }
        };
        let mut watcher = notify::recommended_watcher(told).ok()?;
        watcher.watch(root, RecursiveMode::Recursive).ok()?;
        Some(Watch(watcher))
    }
}

/// Whether an event may mean that there is a new file; a file that is being written to is none.
fn brings_files(kind: EventKind) -> bool {
    match kind {
        EventKind::Create(_) | EventKind::Any => true,
        EventKind::Modify(kind) => matches!(kind, ModifyKind::Name(_) | ModifyKind::Any),
        EventKind::Access(kind) => kind == AccessKind::Close(AccessMode::Write),
        _ => false,
    }
}
