//! Reading a checkpoint as tools do: nothing is changed, nothing is locked, and the query may be running.
//!
//! A running query removes old segments and snapshots. A reading that meets one of those is begun anew.

use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use ssql_ir::{Node, Pipeline};
use ssql_state::{LogError, SegmentLog, StateVersions, lease};

use super::files::{Metadata, StoredPlan};
use super::{Committed, LEASE, PlannedBatch, decode, entries, files, source_dir};
use crate::connector::Domain;
use crate::error::{EngineError, Result};
use crate::stateful;
use crate::watermark::SavedWatermarks;

/// Attempts at a reading that a running query disturbs.
const ATTEMPTS: usize = 5;

/// What a checkpoint holds, but for the state itself.
#[derive(Debug)]
pub struct Summary {
    /// Its first file.
    pub metadata: Metadata,
    /// The query.
    pub plan: StoredPlan,
    /// Who held the lease last, and whether that process lives.
    pub holder: Option<(String, bool)>,
    /// The batches that are kept, ascending.
    pub batches: Vec<BatchSummary>,
    /// Each source's log.
    pub sources: Vec<SourceSummary>,
    /// Each stateful operator's state.
    pub operators: Vec<OperatorSummary>,
    /// Bytes of each part of the directory, largest path first alphabetically.
    pub sizes: Vec<(String, u64)>,
}

/// A batch.
#[derive(Debug)]
pub struct BatchSummary {
    /// Its number.
    pub batch: u64,
    /// As it was planned; `None` if that is kept no more.
    pub planned: Option<PlannedBatch>,
    /// Watermarks after it, if it is finished.
    pub committed: Option<SavedWatermarks>,
}

/// A source's log.
#[derive(Debug)]
pub struct SourceSummary {
    /// Kind of the source.
    pub kind: String,
    /// Batch up to which its entries were made one.
    pub compacted: Option<u64>,
    /// Entries behind that.
    pub entries: usize,
}

/// A stateful operator's state.
#[derive(Debug)]
pub struct OperatorSummary {
    /// What it is.
    pub operator: String,
    /// Batches with a snapshot, and its bytes.
    pub snapshots: Vec<(u64, u64)>,
    /// First and last batch whose changes are kept, and their bytes.
    pub changes: Option<(u64, u64, u64)>,
}

/// The rows of an operator's state.
#[derive(Debug)]
pub struct StateRows {
    /// Which stateful operator.
    pub operator: usize,
    /// What it is.
    pub kind: String,
    /// After which batch.
    pub batch: u64,
    /// Its rows.
    pub rows: Vec<RecordBatch>,
    /// Their columns, where there are no rows to tell.
    pub columns: Vec<String>,
}

/// Reads what a checkpoint holds.
pub fn summary(dir: &Path) -> Result<Summary> {
    undisturbed(|| {
        let (metadata, plan) = identity(dir)?;
        // Commits before offsets: what is committed in between has its offsets already.
        let commits = SegmentLog::read(&dir.join("commits"))?;
        let offsets = SegmentLog::read(&dir.join("offsets"))?;
        let mut batches: Vec<BatchSummary> = Vec::new();
        for record in offsets {
            let planned = Some(decode("offsets", &record.payload)?);
            match batches.last_mut() {
                Some(last) if last.batch == record.sequence => last.planned = planned,
                _ => batches.push(BatchSummary { batch: record.sequence, planned, committed: None }),
            }
        }
        for record in commits {
            let committed = Some(decode::<Committed>("commits", &record.payload)?.watermarks);
            match batches.binary_search_by_key(&record.sequence, |b| b.batch) {
                Ok(i) => batches[i].committed = committed,
                Err(i) => batches.insert(i, BatchSummary { batch: record.sequence, planned: None, committed }),
            }
        }
        let newest = batches.last().map(|b| b.batch);
        let mut sources = Vec::new();
        for (i, kind) in plan.sources.iter().enumerate() {
            let place = source_dir(dir, i);
            let (compacted, entries) = if place.exists() { entries::read(&place, newest)? } else { (None, Vec::new()) };
            let entries = entries.len() - usize::from(compacted.is_some());
            sources.push(SourceSummary { kind: kind.clone(), compacted, entries });
        }
        let mut operators = Vec::new();
        for (n, shape) in plan.operators.iter().enumerate() {
            let place = state_dir(dir, &plan, n);
            let exists = place.exists();
            let snapshots = if exists { StateVersions::snapshots(&place)? } else { Vec::new() };
            let records = if exists { SegmentLog::read(&place)? } else { Vec::new() };
            let bytes = records.iter().map(|r| r.payload.len() as u64).sum();
            let changes = records.first().zip(records.last()).map(|(a, b)| (a.sequence, b.sequence, bytes));
            operators.push(OperatorSummary { operator: shape.operator.clone(), snapshots, changes });
        }
        let holder = lease::look(&dir.join(LEASE));
        Ok(Summary { metadata, plan, holder, batches, sources, operators, sizes: sizes(dir)? })
    })
}

/// Reads the state of the stateful operator `operator` as it was after `batch` (`None`: the newest committed).
pub fn state(dir: &Path, operator: usize, batch: Option<u64>) -> Result<StateRows> {
    undisturbed(|| {
        let (_, plan) = identity(dir)?;
        let user = |message: String| EngineError::new("STDS_INVALID_OPTION_VALUE", Domain::User, message);
        let pipeline = pipeline_of(&plan)?;
        let nodes: Vec<usize> =
            (0..pipeline.nodes.len()).filter(|&node| stateful::is_stateful(&pipeline, node)).collect();
        let Some(&node) = nodes.get(operator) else {
            let message = match nodes.len() {
                0 => "the query has no stateful operator".to_owned(),
                n => format!("the query has no stateful operator {operator}; they are numbered 0 to {}", n - 1),
            };
            return Err(user(message));
        };
        let commits: Vec<u64> = SegmentLog::read(&dir.join("commits"))?.iter().map(|r| r.sequence).collect();
        let Some(newest) = commits.last().copied() else {
            return Err(user("the query has not finished a batch yet, so it has no state".to_owned()));
        };
        let batch = batch.unwrap_or(newest);
        if batch > newest {
            return Err(user(format!("batch {batch} is not committed; the newest that is is {newest}")));
        }
        let restored = StateVersions::read(&state_dir(dir, &plan, operator), batch).map_err(|e| match e {
            LogError::Corrupt { .. } if batch < newest => {
                let oldest = commits.first().copied().unwrap_or(newest);
                user(format!("the state after batch {batch} is kept no more (or not whole): {e}")).with_help(format!(
                    "Offsets and commits go back to batch {oldest}; `checkpoint.retain` says how far the state does."
                ))
            }
            other => other.into(),
        })?;
        let mut unit = stateful::instantiate(&pipeline, node, 1)?;
        for part in restored.parts() {
            stateful::restore(&mut unit, part)?;
        }
        let rows = stateful::rows(&mut unit, &pipeline, node)?;
        let columns = match rows.first() {
            Some(first) => first.schema().fields().iter().map(|f| f.name().clone()).collect(),
            None => columns(&pipeline.nodes[node]),
        };
        let kind = plan.operators.get(operator).map_or_else(String::new, |o| o.operator.clone());
        Ok(StateRows { operator, kind, batch, rows, columns })
    })
}

fn columns(node: &Node) -> Vec<String> {
    node.schema.fields.iter().map(|f| f.name.clone()).collect()
}

/// The pipeline that a checkpoint's query ran.
pub(super) fn pipeline_of(plan: &StoredPlan) -> Result<Pipeline> {
    ssql_ir::parse::parse(&plan.pipeline)
        .map_err(|e| super::corrupt(format!("the plan in the checkpoint cannot be read: {e}")))
}

/// `metadata` and `plan`.
pub(super) fn identity(dir: &Path) -> Result<(Metadata, StoredPlan)> {
    let missing = |name: &str| {
        let message = format!("`{}` is no checkpoint: it has no `{name}`", dir.display());
        EngineError::new("PATH_NOT_FOUND", Domain::User, message)
    };
    let metadata = files::read::<Metadata>(dir, "metadata")?.ok_or_else(|| missing("metadata"))?;
    let plan = files::read::<StoredPlan>(dir, "plan")?.ok_or_else(|| missing("plan"))?;
    Ok((metadata, plan))
}

/// Directory of the state of the n-th stateful operator.
pub(super) fn state_dir(dir: &Path, plan: &StoredPlan, n: usize) -> PathBuf {
    dir.join(&plan.state).join(n.to_string())
}

/// Repeats a reading that met a file which was removed meanwhile.
pub(super) fn undisturbed<T>(mut read: impl FnMut() -> Result<T>) -> Result<T> {
    let mut attempt = 1;
    loop {
        match read() {
            Err(e) if attempt < ATTEMPTS && is_missing_file(&e) => attempt += 1,
            done => return done,
        }
    }
}

fn is_missing_file(e: &EngineError) -> bool {
    let log = e.source.as_ref().and_then(|s| s.downcast_ref::<LogError>());
    matches!(log, Some(LogError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound)
}

/// Bytes of each part of the directory (`offsets`, `state/0`, ...).
fn sizes(dir: &Path) -> Result<Vec<(String, u64)>> {
    let mut sizes = Vec::new();
    let mut todo = vec![dir.to_path_buf()];
    while let Some(place) = todo.pop() {
        let mut own = 0;
        let Ok(entries) = std::fs::read_dir(&place) else { continue };
        for entry in entries.flatten() {
            match entry.metadata() {
                Ok(meta) if meta.is_dir() => todo.push(entry.path()),
                Ok(meta) => own += meta.len(),
                Err(_) => {}
            }
        }
        let name = place.strip_prefix(dir).unwrap_or(&place).display().to_string();
        if own > 0 {
            sizes.push((if name.is_empty() { ".".to_owned() } else { name }, own));
        }
    }
    sizes.sort();
    Ok(sizes)
}
