//! A query's checkpoint directory: what was planned, what was committed, what the sources need, and the state.
//!
//! ```text
//! metadata        JSON: format version, the query's id; written once
//! plan            JSON: the query and what its state holds; written anew when the query is changed
//! lease           held by the live query; its text says who
//! offsets/        log: batch N as planned (end offsets, watermarks, processing time); durable before anything is read
//! commits/        log: batch N is finished, and the watermarks that batch N+1 goes by
//! sources/<i>/    log: what source i needs to give the same rows for the same offsets
//! state/<n>/      log and snapshots of the n-th stateful operator (see `ssql_state`)
//! ```
//!
//! A batch with an offset but without a commit is run again, with the same offsets, on the state of the batch before.
//! The commit of batch N becomes durable before the offsets of N+1 do, and not sooner: losing it costs a replay that the
//! sink recognises, nothing else.

mod entries;
mod files;
pub mod inspect;
pub mod shape;
pub mod verify;

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use ssql_ir::Pipeline;
use ssql_state::file::remove_temporary;
use ssql_state::{Holder, Lease, LeaseError, SegmentLog, StateVersions};

pub use self::entries::Entries;
use self::entries::EntryLog;
pub use self::files::{FORMAT, Metadata, StoredPlan};
use self::shape::differences;
use crate::connector::{Compactor, Domain, Offset};
use crate::error::{EngineError, Result};
use crate::watermark::{BatchWatermark, SavedWatermarks};

/// Batches kept behind the newest (Spark's minBatchesToRetain).
pub const RETAIN: u64 = 100;
/// Name of the lease's file.
const LEASE: &str = "lease";

/// How a checkpoint is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Durability {
    /// Batches behind the newest whose offsets, commits, source entries and state stay readable.
    pub retain: u64,
    /// Least bytes of state changes that are worth a snapshot.
    pub snapshot_floor: u64,
    /// A query whose state has another shape may begin with empty state.
    pub allow_reset: bool,
}

impl Default for Durability {
    fn default() -> Durability {
        Durability { retain: RETAIN, snapshot_floor: ssql_state::versions::SNAPSHOT_FLOOR, allow_reset: false }
    }
}

/// Batch N as planned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedBatch {
    /// End offset of each source, in the pipeline's order; `None` for a source that has not spoken yet.
    pub offsets: Vec<Option<Offset>>,
    /// Watermarks that the batch goes by.
    pub watermark: BatchWatermark,
    /// Processing time of the batch, microseconds: `current_timestamp()` in it.
    pub timestamp: i64,
}

/// What a commit says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Committed {
    watermarks: SavedWatermarks,
}

/// What an existing checkpoint tells a starting query.
#[derive(Debug, Clone, Default)]
pub struct Recovered {
    /// The newest planned batches that matter: the last committed one and, if it was cut off, the one after.
    pub planned: Vec<(u64, PlannedBatch)>,
    /// The newest committed batch.
    pub committed: Option<u64>,
    /// Watermarks after it.
    pub watermarks: SavedWatermarks,
    /// Log entries of each source.
    pub source_entries: Vec<Entries>,
    /// What the user should know: that the query was changed, that its state begins anew.
    pub notes: Vec<String>,
}

/// Who opens a checkpoint, and with what.
pub struct Opening<'a> {
    /// Name of the query.
    pub query: &'a str,
    /// Id of this run.
    pub run_id: &'a str,
    /// What it computes.
    pub pipeline: &'a Pipeline,
    /// Kind of each streaming source.
    pub sources: Vec<String>,
    /// How each makes its log short.
    pub compactors: Vec<Option<Compactor>>,
    /// How the checkpoint is kept.
    pub durability: Durability,
}

/// An open checkpoint; while it lives no other query can open the directory.
#[derive(Debug)]
pub struct Checkpoint {
    dir: PathBuf,
    id: String,
    state: String,
    offsets: SegmentLog,
    commits: SegmentLog,
    sources: Vec<EntryLog>,
    durability: Durability,
    _lease: Lease,
}

impl Checkpoint {
    /// Opens or creates the checkpoint of a query.
    ///
    /// # Errors
    /// The directory cannot be used, another query holds it, it is damaged, another version wrote it, or it belongs to a
    /// query whose sources or state are of another kind.
    pub fn open(dir: &Path, opening: Opening<'_>) -> Result<(Checkpoint, Recovered)> {
        fs::create_dir_all(dir).map_err(|e| unusable(dir, "create", &e))?;
        let mut holder =
            Holder { query: opening.query.to_owned(), query_id: String::new(), run_id: opening.run_id.to_owned() };
        let mut lease = take_lease(dir, &holder)?;
        remove_temporary(dir)?;
        let metadata = match files::read::<Metadata>(dir, "metadata")? {
            Some(metadata) => metadata,
            None => begin(dir)?,
        };
        holder.query_id.clone_from(&metadata.id);
        lease.name(&dir.join(LEASE), &holder)?;

        let (offsets, planned) = SegmentLog::open(&dir.join("offsets"), "offsets")?;
        let (commits, committed) = SegmentLog::open(&dir.join("commits"), "commits")?;
        let mut recovered = Recovered::default();
        if let Some(last) = committed.last() {
            recovered.committed = Some(last.sequence);
            recovered.watermarks = decode::<Committed>("commits", &last.payload)?.watermarks;
        }
        for record in planned.iter().rev() {
            if recovered.committed.is_some_and(|c| record.sequence < c) {
                break;
            }
            // A batch planned twice (the commit of its first run was lost) was planned the same.
            if recovered.planned.last().is_none_or(|(n, _)| *n != record.sequence) {
                recovered.planned.push((record.sequence, decode("offsets", &record.payload)?));
            }
        }
        recovered.planned.reverse();
        // Offsets are durable before their batch runs: a commit without them means that they were damaged afterwards,
        // and going on from "no offsets" would read everything again.
        if let Some(committed) = recovered.committed
            && recovered.planned.first().map(|(n, _)| *n) != Some(committed)
        {
            return Err(corrupt(format!(
                "the checkpoint `{}` has a commit of batch {committed} but not its offsets",
                dir.display()
            )));
        }
        // The next batch is planned when the last is committed for good.
        if let Some((newest, _)) = recovered.planned.last()
            && recovered.committed.map_or(*newest > 0, |c| *newest > c + 1)
        {
            let upto = recovered.committed.map_or("none is committed".to_owned(), |c| format!("only {c} is committed"));
            return Err(corrupt(format!("the checkpoint `{}` has planned batch {newest} but {upto}", dir.display())));
        }

        let begun = recovered.committed.is_some() || !recovered.planned.is_empty();
        let is = StoredPlan::new(opening.query, opening.pipeline, opening.sources);
        let plan = match files::read::<StoredPlan>(dir, "plan")? {
            Some(was) => resume(dir, was, is, &mut recovered, opening.durability.allow_reset)?,
            // It is written before the first batch is planned.
            None if begun => return Err(corrupt(format!("the checkpoint `{}` has lost its `plan`", dir.display()))),
            None => {
                files::write(dir, "plan", &is)?;
                is
            }
        };

        let newest = recovered.planned.last().map(|(n, _)| *n);
        let floor = opening.durability.snapshot_floor.min(entries::FLOOR);
        let mut sources = Vec::with_capacity(plan.sources.len());
        for (i, compactor) in opening.compactors.into_iter().enumerate() {
            let (log, entries) = EntryLog::open(&source_dir(dir, i), newest, compactor, floor)?;
            recovered.source_entries.push(entries);
            sources.push(log);
        }
        let checkpoint = Checkpoint {
            dir: dir.to_path_buf(),
            id: metadata.id,
            state: plan.state,
            offsets,
            commits,
            sources,
            durability: opening.durability,
            _lease: lease,
        };
        Ok((checkpoint, recovered))
    }

    /// The query's id, stable over restarts.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Directory of the state of the n-th stateful operator.
    pub fn state_dir(&self, n: usize) -> PathBuf {
        self.dir.join(&self.state).join(n.to_string())
    }

    /// How it is kept.
    pub fn durability(&self) -> Durability {
        self.durability
    }

    /// Makes batch `batch` durable as planned, with the entries of its sources; after this it will be run, whatever
    /// happens.
    pub fn plan(&mut self, batch: u64, planned: &PlannedBatch, entries: &[Option<Vec<u8>>]) -> Result<()> {
        for (log, entry) in self.sources.iter_mut().zip(entries) {
            if let Some(entry) = entry {
                log.append(batch, entry)?;
            }
        }
        // A commit that is not durable yet only costs a replay, so it has waited for this moment. It comes before the
        // offsets, so that there is never more than one batch to replay.
        self.commits.sync()?;
        self.offsets.append(batch, &encode(planned)?)?;
        Ok(self.offsets.sync()?)
    }

    /// Notes that batch `batch` is finished.
    pub fn commit(&mut self, batch: u64, watermarks: SavedWatermarks) -> Result<()> {
        self.commits.append(batch, &encode(&Committed { watermarks })?)?;
        let retain = self.durability.retain;
        // Logs are removed a segment at a time: one for as many batches as are kept means that at most twice as many are.
        if (batch + 1).is_multiple_of(retain.clamp(8, 1000)) {
            self.commits.roll()?;
            self.offsets.roll()?;
            let keep = batch.saturating_sub(retain);
            self.commits.remove_below(keep)?;
            self.offsets.remove_below(keep)?;
            self.sources.iter_mut().try_for_each(|log| log.maintain(keep))?;
        }
        Ok(())
    }

    /// Makes everything durable, as at a graceful stop.
    pub fn sync(&mut self) -> Result<()> {
        Ok(self.commits.sync()?)
    }
}

fn source_dir(dir: &Path, i: usize) -> PathBuf {
    dir.join("sources").join(i.to_string())
}

/// Writes the first file of a new checkpoint.
fn begin(dir: &Path) -> Result<Metadata> {
    // A checkpoint that has batches and no metadata has lost it: beginning anew would read everything again.
    if let Some(left) = ["offsets", "commits", "plan"].iter().find(|name| dir.join(name).exists()) {
        return Err(corrupt(format!("the checkpoint `{}` has `{left}` but has lost its `metadata`", dir.display())));
    }
    let id = uuid::Uuid::new_v4().to_string();
    let metadata = Metadata { version: FORMAT, id, created: jiff::Timestamp::now().to_string() };
    files::write(dir, "metadata", &metadata)?;
    Ok(metadata)
}

/// Compares the query with the one that wrote the checkpoint, and takes its place if the state can be read, or if it may
/// begin anew.
fn resume(
    dir: &Path,
    was: StoredPlan,
    mut is: StoredPlan,
    recovered: &mut Recovered,
    allow_reset: bool,
) -> Result<StoredPlan> {
    if was.sources != is.sources {
        return Err(other_sources(dir, &was.sources, &is.sources));
    }
    let next = recovered.committed.map_or(0, |n| n + 1);
    is.since = next;
    is.state.clone_from(&was.state);
    let changes = differences(&was.operators, &is.operators);
    if changes.is_empty() {
        is.since = if was.pipeline == is.pipeline { was.since } else { next };
        if was == is {
            return Ok(was);
        }
        if was.pipeline != is.pipeline && next > 0 {
            let note = format!("the query was changed; it goes on with batch {next} and with the state that it had");
            recovered.notes.push(note);
        }
        files::write(dir, "plan", &is)?;
        return Ok(is);
    }
    if !allow_reset {
        let message = format!("the query keeps other state than the checkpoint `{}` holds", dir.display());
        let mut error = EngineError::new("QUERY_CHANGED", Domain::User, message);
        error.help = changes;
        return Err(error
            .with_help(
                "Filters, projections, triggers, sink options, rate limits and source paths may change; keys, aggregates, \
                 windows, joins and the number and order of stateful operators may not.",
            )
            .with_help(
                "Use a new CHECKPOINT LOCATION (and sink) to compute everything again, or `ssql run --allow-reset` to go \
                 on from the same offsets with empty state.",
            ));
    }
    let aside = was.state;
    is.state = (1..).map(|n| format!("state-{n}")).find(|name| !dir.join(name).exists()).unwrap_or_default();
    if let Some(committed) = recovered.committed {
        for n in 0..is.operators.len() {
            let place = dir.join(&is.state).join(n.to_string());
            fs::create_dir_all(&place).map_err(|e| unusable(&place, "create", &e))?;
            StateVersions::begin_after(&place, committed)?;
        }
        for made in [dir.join(&is.state), dir.to_path_buf()].iter().filter(|d| d.exists()) {
            ssql_state::file::sync_dir(made)?;
        }
    }
    files::write(dir, "plan", &is)?;
    recovered.notes.push(format!(
        "the state begins anew with batch {next}: {} Rows read before are in no later result: groups that were open start \
         from nothing, keys seen count as new, and kept rows find no match. The old state stays in `{}`.",
        changes.join(" "),
        dir.join(aside).display()
    ));
    Ok(is)
}

fn other_sources(dir: &Path, was: &[String], is: &[String]) -> EngineError {
    let message = format!("the query reads other sources than the checkpoint `{}` was written with", dir.display());
    let mut error = EngineError::new("QUERY_CHANGED", Domain::User, message);
    if was.len() != is.len() {
        error = error.with_help(format!("It had {} streaming sources; it has {}.", was.len(), is.len()));
    }
    for (i, (was, is)) in was.iter().zip(is).enumerate() {
        if was != is {
            error = error.with_help(format!("Source {i} was a {was}; it is a {is}."));
        }
    }
    error.with_help(
        "A file source may read another path; the number, order and kind of sources may not change, since their offsets \
         mean nothing to another. Use a new CHECKPOINT LOCATION for the changed query.",
    )
}

fn encode(value: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|e| EngineError::internal(format!("a checkpoint record has no JSON form: {e}")))
}

fn decode<T: serde::de::DeserializeOwned>(log: &str, bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes)
        .map_err(|e| corrupt(format!("a record of the checkpoint's `{log}` log cannot be read: {e}")))
}

/// The error for a directory whose parts do not fit each other.
fn corrupt(message: String) -> EngineError {
    EngineError::new("CHECKPOINT_CORRUPT", Domain::External, message)
        .with_help("`ssql checkpoint verify` says what is damaged.")
        .with_help("Restore the folder from a copy, or start over with a new CHECKPOINT LOCATION and sink.")
}

fn unusable(dir: &Path, action: &str, e: &std::io::Error) -> EngineError {
    let message = format!("cannot {action} the checkpoint `{}`: {e}", dir.display());
    EngineError::new("CHECKPOINT_UNUSABLE", Domain::External, message)
        .with_help("Choose a directory that this user can write with CHECKPOINT LOCATION.")
}

fn take_lease(dir: &Path, holder: &Holder) -> Result<Lease> {
    Lease::take(&dir.join(LEASE), holder).map_err(|e| match e {
        LeaseError::Held { holder } => {
            let message = format!("the checkpoint `{}` is in use by {holder}", dir.display());
            EngineError::new("CONCURRENT_QUERY", Domain::User, message)
                .with_help("Stop the other query, or give this one a checkpoint of its own.")
        }
        LeaseError::Log(ssql_state::LogError::Io { action, source, .. }) => unusable(dir, action, &source),
        LeaseError::Log(other) => other.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(n: i64) -> PlannedBatch {
        PlannedBatch {
            offsets: vec![Some(serde_json::json!({ "logOffset": n }))],
            watermark: BatchWatermark { late: n - 1, evict: n },
            timestamp: n * 1000,
        }
    }

    fn pipeline() -> Pipeline {
        Pipeline { name: "q".into(), nodes: Vec::new(), mode: ssql_ir::EmitMode::Append, subqueries: Vec::new() }
    }

    fn open(dir: &Path, sources: &[&str], durability: Durability) -> Result<(Checkpoint, Recovered)> {
        let opening = Opening {
            query: "q",
            run_id: "r",
            pipeline: &pipeline(),
            sources: sources.iter().map(|s| (*s).to_owned()).collect(),
            compactors: vec![None; sources.len()],
            durability,
        };
        Checkpoint::open(dir, opening)
    }

    #[test]
    fn an_uncommitted_batch_is_found_again_as_planned() {
        let dir = tempfile::tempdir().expect("scratch");
        let id = {
            let (mut cp, recovered) = open(dir.path(), &["S"], Durability::default()).expect("opens");
            assert!(recovered.committed.is_none() && recovered.planned.is_empty());
            for n in 0..3 {
                cp.plan(n, &planned(n as i64), &[Some(format!("files {n}").into_bytes())]).expect("plans");
                if n < 2 {
                    let saved = SavedWatermarks { global: n as i64, inputs: vec![Some(n as i64)] };
                    cp.commit(n, saved).expect("commits");
                }
            }
            cp.id().to_owned()
        };
        let (cp, recovered) = open(dir.path(), &["S"], Durability::default()).expect("opens");
        assert_eq!(cp.id(), id);
        assert_eq!(recovered.committed, Some(1));
        assert_eq!(recovered.watermarks.global, 1);
        assert_eq!(recovered.planned, vec![(1, planned(1)), (2, planned(2))]);
        assert_eq!(recovered.source_entries[0].len(), 3);
    }

    #[test]
    fn a_second_query_is_refused_and_told_who_holds_it() {
        let dir = tempfile::tempdir().expect("scratch");
        let _held = open(dir.path(), &[], Durability::default()).expect("opens");
        let error = open(dir.path(), &[], Durability::default()).expect_err("refuses");
        assert_eq!(error.condition, "CONCURRENT_QUERY");
        assert!(error.message.contains("process"), "{}", error.message);
    }

    #[test]
    fn another_kind_of_source_is_refused_in_words() {
        let dir = tempfile::tempdir().expect("scratch");
        drop(open(dir.path(), &["FileStreamSource"], Durability::default()).expect("opens"));
        let error = open(dir.path(), &["RateStreamSource"], Durability::default()).expect_err("refuses");
        assert_eq!(error.condition, "QUERY_CHANGED");
        assert_eq!(error.help[0], "Source 0 was a FileStreamSource; it is a RateStreamSource.");
    }

    #[test]
    fn old_batches_go_and_the_retained_stay() {
        let dir = tempfile::tempdir().expect("scratch");
        let few = Durability { retain: 10, ..Durability::default() };
        let (mut cp, _) = open(dir.path(), &["S"], few).expect("opens");
        for n in 0..100 {
            cp.plan(n, &planned(n as i64), &[None]).expect("plans");
            cp.commit(n, SavedWatermarks::default()).expect("commits");
        }
        for log in ["offsets", "commits"] {
            let left: Vec<u64> =
                SegmentLog::read(&dir.path().join(log)).expect("reads").iter().map(|r| r.sequence).collect();
            assert!(left[0] <= 89 && left[0] >= 75, "{log} begins at {}", left[0]);
        }
        drop(cp);
        assert_eq!(open(dir.path(), &["S"], few).expect("opens").1.committed, Some(99));
    }

    #[test]
    fn a_lost_or_damaged_file_is_no_fresh_start() {
        for (name, change) in [("metadata", true), ("metadata", false), ("plan", true), ("plan", false)] {
            let dir = tempfile::tempdir().expect("scratch");
            let (mut cp, _) = open(dir.path(), &["S"], Durability::default()).expect("opens");
            cp.plan(0, &planned(0), &[None]).expect("plans");
            drop(cp);
            let path = dir.path().join(name);
            if change {
                let text = fs::read_to_string(&path).expect("reads").replacen('q', "p", 1).replacen("id", "ib", 1);
                fs::write(&path, text).expect("writes");
            } else {
                fs::remove_file(&path).expect("removes");
            }
            let error = open(dir.path(), &["S"], Durability::default()).expect_err("refuses");
            assert_eq!(error.condition, "CHECKPOINT_CORRUPT", "{name}: {}", error.message);
        }
    }

    #[test]
    fn another_format_is_refused() {
        let dir = tempfile::tempdir().expect("scratch");
        fs::write(dir.path().join("metadata"), br#"{"version":1,"id":"x","state":[]}"#).expect("writes");
        let error = open(dir.path(), &[], Durability::default()).expect_err("refuses");
        assert_eq!(error.condition, "CHECKPOINT_VERSION");
    }

    #[test]
    fn a_commit_whose_offsets_are_damaged_is_no_fresh_start() {
        let dir = tempfile::tempdir().expect("scratch");
        let (mut cp, _) = open(dir.path(), &["S"], Durability::default()).expect("opens");
        cp.plan(0, &planned(0), &[None]).expect("plans");
        cp.commit(0, SavedWatermarks::default()).expect("commits");
        drop(cp);
        let segment = fs::read_dir(dir.path().join("offsets")).expect("lists").next().expect("one").expect("is there");
        let mut bytes = fs::read(segment.path()).expect("reads");
        bytes[30] ^= 0xff;
        fs::write(segment.path(), bytes).expect("writes");
        let error = open(dir.path(), &["S"], Durability::default()).expect_err("refuses");
        assert_eq!(error.condition, "CHECKPOINT_CORRUPT");
    }
}
