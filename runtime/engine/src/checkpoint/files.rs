//! The two files of a checkpoint that say whose it is: `metadata`, written once, and `plan`, written anew when the query
//! was changed in a way that its state allows. Each is a line of JSON and a line with its checksum.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use ssql_ir::Pipeline;
use ssql_state::LogError;
use ssql_state::file::write_atomic;

use super::shape::{OperatorShape, shapes};
use super::{corrupt, encode};
use crate::connector::Domain;
use crate::error::{EngineError, Result};

/// Version of the directory's format; an engine refuses a version that it does not know.
pub const FORMAT: u32 = 2;

/// `metadata`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata {
    /// Format of the directory.
    pub version: u32,
    /// The query's id, stable over restarts.
    pub id: String,
    /// When the checkpoint was made, ISO 8601.
    pub created: String,
}

/// `plan`: the query that the checkpoint belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredPlan {
    /// Name of the query.
    pub query: String,
    /// Kind of each streaming source, in order (`FileStreamSource`, ...).
    pub sources: Vec<String>,
    /// What each stateful operator keeps.
    pub operators: Vec<OperatorShape>,
    /// The pipeline, in the IR's text form: with it tools read the state.
    pub pipeline: String,
    /// First batch that ran by this plan.
    pub since: u64,
    /// Directory of the state in force.
    pub state: String,
}

impl StoredPlan {
    /// Of a query that begins.
    pub fn new(query: &str, pipeline: &Pipeline, sources: Vec<String>) -> StoredPlan {
        StoredPlan {
            query: query.to_owned(),
            sources,
            operators: shapes(pipeline),
            pipeline: pipeline.to_string(),
            since: 0,
            state: "state".to_owned(),
        }
    }
}

/// Reads `metadata` or `plan`; `None` if there is none.
pub(super) fn read<T: DeserializeOwned>(dir: &Path, name: &str) -> Result<Option<T>> {
    let path = dir.join(name);
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(LogError::Io { action: "read", path, source }.into()),
    };
    let damaged = |what: &str| Err(corrupt(format!("`{}` is damaged: {what}", path.display())));
    let Ok(text) = std::str::from_utf8(&bytes) else { return damaged("it is no text") };
    let mut lines = text.lines();
    let json = lines.next().unwrap_or_default();
    // The version comes before the checksum, which earlier ones did not have.
    if name == "metadata"
        && let Ok(value) = serde_json::from_str::<serde_json::Value>(json)
        && let Some(version) = value.get("version").and_then(serde_json::Value::as_u64)
        && version != u64::from(FORMAT)
    {
        let message =
            format!("the checkpoint `{}` has format {version}; this version reads format {FORMAT}", dir.display());
        return Err(EngineError::new("CHECKPOINT_VERSION", Domain::User, message)
            .with_help("Use the version of ssql that wrote it, or a new CHECKPOINT LOCATION."));
    }
    if lines.next() != Some(checksum(json).as_str()) {
        return damaged("its checksum does not hold");
    }
    match serde_json::from_str(json) {
        Ok(value) => Ok(Some(value)),
        Err(e) => damaged(&e.to_string()),
    }
}

/// Writes `metadata` or `plan`, at once.
pub(super) fn write(dir: &Path, name: &str, value: &impl Serialize) -> Result<()> {
    let json = encode(value)?;
    let line = checksum(&String::from_utf8_lossy(&json));
    Ok(write_atomic(&dir.join(name), &[&json, b"\n", line.as_bytes(), b"\n"], name)?)
}

fn checksum(json: &str) -> String {
    format!("crc32 {:08x}", crc32fast::hash(json.as_bytes()))
}
