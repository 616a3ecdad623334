//! Checks a checkpoint: every checksum, and that every part that another one counts on is there.

use std::collections::BTreeSet;
use std::path::Path;

use ssql_state::{LogError, SegmentLog, StateVersions};

use super::inspect::{identity, pipeline_of, state_dir, undisturbed};
use super::{Committed, PlannedBatch, decode, entries, source_dir};
use crate::error::Result;
use crate::stateful;

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// What was checked and is whole, a line each.
    pub whole: Vec<String>,
    /// What is damaged or missing.
    pub problems: Vec<String>,
    /// What is worth knowing and does no harm.
    pub notes: Vec<String>,
}

/// Checks the checkpoint in `dir`. Nothing is changed; the query may be running.
///
/// # Errors
/// `dir` is no checkpoint, or cannot be read.
pub fn verify(dir: &Path) -> Result<Findings> {
    undisturbed(|| {
        let mut found = Findings::default();
        let (metadata, plan) = match identity(dir) {
            Ok(identity) => identity,
            Err(e) if e.condition == "CHECKPOINT_CORRUPT" => {
                found.problems.push(e.message);
                return Ok(found);
            }
            Err(e) => return Err(e),
        };
        found.whole.push(format!("metadata: format {}, query id {}", metadata.version, metadata.id));
        match pipeline_of(&plan) {
            Ok(pipeline) => {
                let n = (0..pipeline.nodes.len()).filter(|&node| stateful::is_stateful(&pipeline, node)).count();
                if n == plan.operators.len() {
                    found.whole.push(format!("plan: query `{}`, {n} stateful operators", plan.query));
                } else {
                    found
                        .problems
                        .push(format!("the plan names {} stateful operators and has {n}", plan.operators.len()));
                }
            }
            Err(e) => found.problems.push(e.message),
        }

        // Commits before offsets, and both before the state: what is added meanwhile is then no contradiction.
        let committed = log(&mut found, dir, "commits", |bytes| decode::<Committed>("commits", bytes).map(drop))?;
        let planned = log(&mut found, dir, "offsets", |bytes| decode::<PlannedBatch>("offsets", bytes).map(drop))?;
        for batch in committed.iter().filter(|n| !planned.contains(n)) {
            // Old offsets go before old commits do, so only a gap is damage.
            if planned.first().is_some_and(|first| batch > first) || planned.is_empty() {
                found.problems.push(format!("batch {batch} is committed but its offsets are missing"));
            }
        }
        for (what, batches) in [("offsets", &planned), ("commits", &committed)] {
            if let Some(gap) = batches.iter().zip(batches.iter().skip(1)).find(|(a, b)| **b != *a + 1) {
                found.problems.push(format!("`{what}` has no batch between {} and {}", gap.0, gap.1));
            }
        }
        let newest = committed.last().copied();
        if let Some((last, newest)) = planned.last().zip(newest)
            && *last > newest + 1
        {
            found
                .problems
                .push(format!("batches up to {last} are planned, but only those up to {newest} are committed"));
        }

        for (i, kind) in plan.sources.iter().enumerate() {
            let place = source_dir(dir, i);
            if !place.exists() {
                continue;
            }
            match entries::read(&place, planned.last().copied()) {
                Ok((base, entries)) => {
                    let compacted = base.map_or(String::new(), |b| format!(", compacted up to batch {b}"));
                    found.whole.push(format!("sources/{i} ({kind}): {} entries{compacted}", entries.len()));
                }
                Err(e) => problem(&mut found, e)?,
            }
        }
        for (n, shape) in plan.operators.iter().enumerate() {
            let place = state_dir(dir, &plan, n);
            let Some(newest) = newest else { continue };
            let name = format!("{}/{n} ({})", plan.state, shape.operator);
            // The newest committed version is what a restart needs; older snapshots are checked by themselves.
            match StateVersions::read(&place, newest) {
                Ok(restored) => {
                    let base =
                        restored.snapshot_batch.map_or("no snapshot".to_owned(), |b| format!("snapshot of batch {b}"));
                    found.whole.push(format!("{name}: {base}, changes of {} batches", restored.deltas.len()));
                }
                Err(e) => problem(&mut found, e.into())?,
            }
            if place.exists() {
                for (batch, _) in StateVersions::snapshots(&place)? {
                    if let Err(e) = StateVersions::read_snapshot(&place, batch) {
                        problem(&mut found, e.into())?;
                    }
                }
                if let Err(e) = SegmentLog::read(&place) {
                    problem(&mut found, e.into())?;
                }
            }
        }
        unused(&mut found, dir, &plan.state, plan.operators.len(), plan.sources.len());
        found.problems.dedup();
        Ok(found)
    })
}

/// Checks one log of batches; the batches in it.
fn log(
    found: &mut Findings,
    dir: &Path,
    name: &'static str,
    check: impl Fn(&[u8]) -> Result<()>,
) -> Result<BTreeSet<u64>> {
    let place = dir.join(name);
    if !place.exists() {
        found.notes.push(format!("there is no `{name}` yet: no batch was planned"));
        return Ok(BTreeSet::new());
    }
    match SegmentLog::read(&place) {
        Ok(records) => {
            for record in &records {
                if let Err(e) = check(&record.payload) {
                    found.problems.push(format!("batch {}: {}", record.sequence, e.message));
                }
            }
            let batches: BTreeSet<u64> = records.iter().map(|r| r.sequence).collect();
            let range = match (batches.first(), batches.last()) {
                (Some(first), Some(last)) => format!("batches {first} to {last}"),
                _ => "no batch".to_owned(),
            };
            found.whole.push(format!("{name}: {} records, {range}", records.len()));
            Ok(batches)
        }
        Err(e) => {
            problem(found, e.into())?;
            Ok(BTreeSet::new())
        }
    }
}

/// Damage is a finding; a file that is gone may only have been removed by the running query, so the reading is repeated.
fn problem(found: &mut Findings, e: crate::error::EngineError) -> Result<()> {
    let log = e.source.as_ref().and_then(|s| s.downcast_ref::<LogError>());
    if let Some(LogError::Io { source, .. }) = log
        && source.kind() == std::io::ErrorKind::NotFound
    {
        return Err(e);
    }
    found.problems.push(e.message);
    Ok(())
}

/// Names what no part of the checkpoint counts on.
fn unused(found: &mut Findings, dir: &Path, state: &str, operators: usize, sources: usize) {
    let known = ["metadata", "plan", "lease", "offsets", "commits", "sources", state];
    for (place, known, n) in
        [(dir.to_path_buf(), &known[..], 0), (dir.join(state), &[], operators), (dir.join("sources"), &[], sources)]
    {
        for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let numbered = name.parse::<usize>().is_ok_and(|i| i < n);
            if known.contains(&name.as_str()) || numbered {
                continue;
            }
            let why = match name.starts_with("state") {
                true => "state that was put aside",
                false => "not part of the checkpoint",
            };
            found.notes.push(format!("`{}`: {why}", entry.path().display()));
        }
    }
}
