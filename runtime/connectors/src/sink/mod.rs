//! File sinks: parquet, json, csv and text in a directory, each batch exactly once for any reader of the directory.
//!
//! # Protocol
//! [`Sink::write`] writes a partition's files into `_ssql_log/staging`, under names that no reader takes, and syncs
//! them. [`Sink::commit`] appends one record to the log in `_ssql_log` that lists them: from then on the batch is
//! committed. Only then are the files renamed to their places. A crash between is mended by [`Sink::start`], which does
//! the renames that the log promises and removes all else that is staged. Names in the directory are fixed by query, batch
//! and partition, so a batch that is delivered again is recognised, and nothing can stand there twice; staged names have the
//! run in them too, so that what a later run has half written is never taken for what an earlier one has promised.

mod files;
mod log;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use jiff::tz::TimeZone;
use ssql_engine::connector::{ConnectorError, Declaration, Domain, Holder, Sink, SinkBatch, Staged};
use ssql_ir::EmitMode;
use ssql_state::failpoint;
use ssql_stdlib::CellFormatter;

use self::files::FileFormat;
use self::log::{CommitLog, StagedFile, sync_dir};
use crate::file::Format;
use crate::file::partitions::{NULL_NAME, escape, one_batch};

/// Batches after which the log is made short, where the option `compactInterval` does not say otherwise.
const COMPACT_AFTER: u64 = 100;

/// A directory that a query writes to.
pub(crate) struct FileSink {
    format: FileFormat,
    location: PathBuf,
    /// Columns whose values become directory names, and the others.
    partition_by: Vec<usize>,
    data: Vec<usize>,
    time_zone: TimeZone,
    sync: bool,
    /// Batches after which the log is made short.
    compact_after: u64,
    /// Open between [`Sink::start`] and the sink's end; gone after a failed commit, whose renames a new start must finish.
    log: Mutex<Option<CommitLog>>,
    /// Marks the staged files of this run.
    run: Mutex<String>,
}

impl FileSink {
    pub(crate) fn new(
        format: Format,
        location: PathBuf,
        declaration: &Declaration,
    ) -> Result<FileSink, ConnectorError> {
        let partition_by: Vec<usize> = declaration.partition_by.iter().map(|i| *i as usize).collect();
        let data: Vec<usize> = (0..declaration.schema.len()).filter(|i| !partition_by.contains(i)).collect();
        if data.is_empty() {
            let message =
                format!("`{}`: all columns are partition columns, none is left for the files", declaration.name);
            return Err(ConnectorError::new("ALL_PARTITION_COLUMNS_NOT_ALLOWED", Domain::User, message));
        }
        let fields: Vec<_> = data.iter().map(|i| declaration.schema.fields[*i].clone()).collect();
        Ok(FileSink {
            format: FileFormat::new(format, &fields, &declaration.options, &declaration.time_zone)?,
            location,
            partition_by,
            data,
            time_zone: declaration.time_zone.clone(),
            sync: declaration.options.boolean("sync", true)?,
            compact_after: declaration.options.integer("compactInterval", COMPACT_AFTER)?.max(1),
            log: Mutex::new(None),
            run: Mutex::default(),
        })
    }

    /// The rows by directory, in order of first appearance.
    fn by_directory(&self, rows: &RecordBatch) -> Result<Vec<(String, RecordBatch)>, ConnectorError> {
        let arrow = |e: arrow::error::ArrowError| internal(e.to_string());
        if self.partition_by.is_empty() {
            return Ok(vec![(String::new(), rows.project(&self.data).map_err(arrow)?)]);
        }
        let schema = rows.schema();
        let columns: Vec<_> = self
            .partition_by
            .iter()
            .map(|i| {
                let column = rows.column(*i).as_ref();
                let field = schema.field(*i);
                (escape(field.name()), column, CellFormatter::for_field(column, field, self.time_zone.clone()))
            })
            .collect();
        let mut groups: Vec<(String, Vec<u32>)> = Vec::new();
        let mut known: HashMap<String, usize> = HashMap::new();
        let (mut dir, mut cell) = (String::new(), String::new());
        for row in 0..rows.num_rows() {
            dir.clear();
            for (name, column, cells) in &columns {
                cell.clear();
                if !column.is_null(row) {
                    cells.write(row, &mut cell);
                }
                dir.push_str(name);
                dir.push('=');
                dir.push_str(&if cell.is_empty() { NULL_NAME.to_string() } else { escape(&cell) });
                dir.push('/');
            }
            let group = known.get(&dir).copied().unwrap_or_else(|| {
                known.insert(dir.clone(), groups.len());
                groups.push((dir.clone(), Vec::new()));
                groups.len() - 1
            });
            groups[group].1.push(row as u32);
        }
        let data = rows.project(&self.data).map_err(arrow)?;
        groups
            .into_iter()
            .map(|(dir, rows)| Ok((dir, take_record_batch(&data, &UInt32Array::from(rows)).map_err(arrow)?)))
            .collect()
    }

    /// Writes one file into the staging directory.
    fn stage(&self, staged: &Path, rows: &[RecordBatch]) -> Result<u64, ConnectorError> {
        failpoint::reach("sink-file-before-write").map_err(log::failed)?;
        let file = fs::File::create(staged).map_err(|e| ConnectorError::io("create", staged, e))?;
        let failed = |e: std::io::Error| ConnectorError::io("write", staged, e);
        self.format.write(&file, rows).map_err(failed)?;
        if self.sync {
            failpoint::reach("sink-file-before-sync").map_err(log::failed)?;
            file.sync_all().map_err(failed)?;
            failpoint::reach("sink-file-after-sync").map_err(log::failed)?;
        }
        Ok(file.metadata().map_err(failed)?.len())
    }
}

fn internal(message: String) -> ConnectorError {
    ConnectorError::new("INTERNAL_ERROR", Domain::Internal, message)
}

/// A text that may be part of a file name: ids that are something else are written in hexadecimal.
fn name_part(id: &str) -> String {
    if !id.is_empty() && id.len() <= 64 && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        return id.to_string();
    }
    id.bytes().map(|b| format!("{b:02x}")).take(64).collect()
}

impl Sink for FileSink {
    fn description(&self) -> String {
        format!("FileSink[file:{}]", self.location.display())
    }

    fn start(&self, query: &Holder, last_committed: Option<u64>) -> Result<(), ConnectorError> {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        // The lease is given back before it is taken again.
        *log = None;
        *log = Some(CommitLog::open(&self.location, query, last_committed, self.compact_after)?);
        *self.run.lock().unwrap_or_else(PoisonError::into_inner) = name_part(&query.run_id);
        Ok(())
    }

    fn write(&self, batch: &SinkBatch<'_>, partition: u32, rows: &[RecordBatch]) -> Result<Staged, ConnectorError> {
        if batch.mode != EmitMode::Append {
            let message = format!("a {} sink takes EMIT APPEND only", self.format.name());
            return Err(ConnectorError::new("STREAMING_OUTPUT_MODE.UNSUPPORTED_DATASOURCE", Domain::User, message));
        }
        let rows: Vec<RecordBatch> = rows.iter().filter(|b| b.num_rows() > 0).cloned().collect();
        let mut files: Vec<StagedFile> = Vec::new();
        if rows.is_empty() {
            return Ok(Box::new(files));
        }
        let groups: Vec<(String, Vec<RecordBatch>)> = if self.partition_by.is_empty() {
            let data: Result<Vec<_>, _> = rows.iter().map(|b| b.project(&self.data)).collect();
            vec![(String::new(), data.map_err(|e| internal(e.to_string()))?)]
        } else {
            let all = one_batch(&rows).map_err(|e| internal(e.to_string()))?;
            self.by_directory(&all)?.into_iter().map(|(dir, rows)| (dir, vec![rows])).collect()
        };
        let stem = format!("part-{partition:05}-{}-{:010}", name_part(batch.query_id), batch.batch);
        let run = self.run.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (i, (dir, rows)) in groups.into_iter().enumerate() {
            let name = format!("{stem}-{i}.{run}.tmp");
            let staged = log::staging_dir(&self.location).join(&name);
            let bytes = match self.stage(&staged, &rows) {
                Ok(bytes) => bytes,
                Err(e) => {
                    // Nobody else knows of these files: the batch has no staged part of this partition to abort.
                    let _ = fs::remove_file(&staged);
                    self.remove(&files);
                    return Err(e);
                }
            };
            let target = format!("{dir}{stem}{}", self.format.suffix());
            files.push(StagedFile { name, target, rows: rows.iter().map(|b| b.num_rows() as u64).sum(), bytes });
        }
        Ok(Box::new(files))
    }

    fn commit(&self, batch: &SinkBatch<'_>, staged: Vec<Staged>) -> Result<Option<u64>, ConnectorError> {
        let files = staged_files(staged);
        let rows = files.iter().map(|f| f.rows).sum();
        let mut guard = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(log) = guard.as_mut() else {
            return Err(internal(format!("the sink `{}` was not started", self.location.display())));
        };
        if log.is_committed(batch.query_id, batch.batch) {
            self.remove(&files);
            return Ok(Some(rows));
        }
        if files.is_empty() {
            return Ok(Some(0));
        }
        if self.sync {
            sync_dir(&log::staging_dir(&self.location))?;
        }
        let done = log.commit(batch.query_id, batch.batch, &files, self.sync);
        if done.is_err() {
            *guard = None;
        }
        done.map(|()| Some(rows))
    }

    fn abort(&self, _batch: &SinkBatch<'_>, staged: Vec<Staged>) {
        self.remove(&staged_files(staged));
    }
}

impl FileSink {
    /// Removes staged files. One that stays is removed at the next start.
    fn remove(&self, files: &[StagedFile]) {
        for file in files {
            let _ = fs::remove_file(log::staging_dir(&self.location).join(&file.name));
        }
    }
}

fn staged_files(staged: Vec<Staged>) -> Vec<StagedFile> {
    staged.into_iter().filter_map(|s| s.downcast::<Vec<StagedFile>>().ok()).flat_map(|files| *files).collect()
}
