//! `ssql test`: runs `.slt` files, each in a session of its own.
//!
//! The files are in sqllogictest's format. A statement's expected error is a regular expression over the condition and
//! the message; a query's expected lines are compared cell by cell as text. `ssql test` goes on after a failed record,
//! so that one file tells all that is wrong with it.

use std::path::{Path, PathBuf};

use sqllogictest::parser::ExpectedError;
use sqllogictest::{DefaultColumnType, QueryExpect, Record, SortMode, StatementExpect};
use ssql_grammar::SourceFile;

use crate::render::cells;
use crate::session::{Failure, Outcome, Session, SessionConfig};

/// What the records of some files came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Files of which every record passed.
    pub files_passed: usize,
    /// Files with a failure.
    pub files_failed: usize,
    /// Records as expected.
    pub passed: usize,
    /// Records otherwise.
    pub failed: usize,
}

/// A record that did not do what its file says.
#[derive(Debug, Clone)]
pub struct Mismatch {
    /// Line of the record.
    pub line: u32,
    /// The SQL.
    pub sql: String,
    /// What was expected and what came.
    pub what: String,
}

/// What a file came to: the number of records that passed and the others, or why it was not run.
pub type FileResult = Result<(usize, Vec<Mismatch>), String>;

/// All `.slt` files at these paths, folders searched through, sorted.
pub fn files(paths: &[PathBuf]) -> std::io::Result<Vec<PathBuf>> {
    fn below(path: &Path, into: &mut Vec<PathBuf>) -> std::io::Result<()> {
        for entry in std::fs::read_dir(path)? {
            let path = entry?.path();
            if path.is_dir() {
                below(&path, into)?;
            } else if path.extension().is_some_and(|e| e == "slt") {
                into.push(path);
            }
        }
        Ok(())
    }
    let mut all = Vec::new();
    for path in paths {
        if path.is_dir() {
            below(path, &mut all)?;
        } else {
            std::fs::metadata(path)?;
            all.push(path.clone());
        }
    }
    all.sort();
    Ok(all)
}

/// Runs one file. Returns the number of records that passed, and the others.
///
/// # Errors
/// The file cannot be read, or is no sqllogictest file.
pub fn run_file(path: &Path, config: &SessionConfig) -> Result<(usize, Vec<Mismatch>), String> {
    let base_dir = path.parent().unwrap_or(Path::new(".")).to_path_buf();
    let session = Session::new(SessionConfig { base_dir, manual: true, ..config.clone() })
        .map_err(|e| format!("no session: {e}"))?;
    run_records(path, session)
}

/// Runs one file against a user's pipeline: its streams and sinks are in memory (see [`crate::session::rehearse`]).
///
/// # Errors
/// The pipeline fails to start, or the file cannot be read or is no sqllogictest file.
pub fn run_cases(path: &Path, pipeline: &SourceFile, config: &SessionConfig) -> Result<(usize, Vec<Mismatch>), String> {
    let mut session = Session::new(SessionConfig { manual: true, rehearsal: true, ..config.clone() })
        .map_err(|e| format!("no session: {e}"))?;
    session.rehearse(pipeline).map_err(|failure| format!("the pipeline does not start\n{failure}"))?;
    run_records(path, session)
}

/// The outcome of test files as JUnit XML: a suite a file.
pub fn junit(files: &[(PathBuf, FileResult)]) -> String {
    let escape =
        |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for (path, result) in files {
        let name = escape(&path.display().to_string());
        let (passed, failures): (usize, Vec<(String, String)>) = match result {
            Ok((passed, mismatches)) => {
                let named = |m: &Mismatch| (format!("line {}: {}", m.line, m.sql.trim()), m.what.clone());
                (*passed, mismatches.iter().map(named).collect())
            }
            Err(message) => (0, vec![("the file".to_owned(), message.clone())]),
        };
        let tests = passed + failures.len();
        out.push_str(&format!("  <testsuite name=\"{name}\" tests=\"{tests}\" failures=\"{}\">\n", failures.len()));
        for n in 0..passed {
            out.push_str(&format!("    <testcase classname=\"{name}\" name=\"record {}\"/>\n", n + 1));
        }
        for (case, what) in failures {
            let (case, what) = (escape(&case.replace('\n', " ")), escape(&what));
            out.push_str(&format!(
                "    <testcase classname=\"{name}\" name=\"{case}\"><failure>{what}</failure></testcase>\n"
            ));
        }
        out.push_str("  </testsuite>\n");
    }
    out + "</testsuites>\n"
}

fn run_records(path: &Path, mut session: Session) -> Result<(usize, Vec<Mismatch>), String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("cannot read `{}`: {e}", path.display()))?;
    let records = sqllogictest::parse_with_name::<DefaultColumnType>(&text, path.display().to_string())
        .map_err(|e| format!("{e}"))?;
    let mut passed = 0;
    let mut mismatches = Vec::new();
    for record in records {
        let (line, sql, result) = match record {
            Record::Statement { loc, sql, expected, .. } => {
                let result = check_statement(&mut session, &sql, &expected);
                (loc.line(), sql, result)
            }
            Record::Query { loc, sql, expected, .. } => {
                let result = check_query(&mut session, &sql, &expected);
                (loc.line(), sql, result)
            }
            Record::Halt { .. } => break,
            Record::Include { loc, .. } | Record::System { loc, .. } => {
                (loc.line(), String::new(), Err("`include` and `system` records are not run here".to_owned()))
            }
            _ => continue,
        };
        match result {
            Ok(()) => passed += 1,
            Err(what) => mismatches.push(Mismatch { line, sql, what }),
        }
    }
    session.stop_all();
    Ok((passed, mismatches))
}

/// Runs the one statement of a record.
fn execute(session: &mut Session, sql: &str) -> Result<Vec<Outcome>, String> {
    let file = SourceFile::new("record", sql);
    session.run_script(&file).map_err(|failure: Failure| {
        let texts: Vec<String> =
            failure.diagnostics.iter().map(|d| format!("[{}] {}", d.condition, d.message)).collect();
        texts.join("\n")
    })
}

fn check_statement(session: &mut Session, sql: &str, expected: &StatementExpect) -> Result<(), String> {
    match (execute(session, sql), expected) {
        (Ok(_), StatementExpect::Ok | StatementExpect::Count(_)) => Ok(()),
        (Err(e), StatementExpect::Ok | StatementExpect::Count(_)) => Err(format!("expected success, got {e}")),
        (result, StatementExpect::Error(error)) => check_error(result, error),
    }
}

fn check_error(result: Result<Vec<Outcome>, String>, expected: &ExpectedError) -> Result<(), String> {
    let actual = match result {
        Ok(_) => return Err(format!("expected the error {expected}, got success")),
        Err(e) => e,
    };
    let as_expected = match expected {
        ExpectedError::Empty => true,
        ExpectedError::Inline(regex) => regex.is_match(&actual),
        ExpectedError::Multiline(text) => text.trim() == actual.trim(),
        ExpectedError::SqlState(state) => actual.contains(state),
    };
    if as_expected { Ok(()) } else { Err(format!("expected the error {expected}, got {actual}")) }
}

fn check_query(session: &mut Session, sql: &str, expected: &QueryExpect<DefaultColumnType>) -> Result<(), String> {
    let (results, sort_mode) = match expected {
        QueryExpect::Error(error) => return check_error(execute(session, sql), error),
        QueryExpect::Results { results, sort_mode, .. } => (results, sort_mode),
    };
    let time_zone = session.time_zone();
    let outcomes = execute(session, sql).map_err(|e| format!("expected rows, got {e}"))?;
    let Some(Outcome::Rows { batches, .. }) = outcomes.last() else {
        return Err("expected rows, got a statement's success".to_owned());
    };
    let rows = cells(batches, &time_zone);
    let line = |row: Vec<Option<String>>| {
        let cells: Vec<String> = row
            .into_iter()
            .map(|cell| match cell {
                None => "NULL".to_owned(),
                Some(text) if text.is_empty() => "(empty)".to_owned(),
                Some(text) => text,
            })
            .collect();
        cells.join(" ")
    };
    let mut actual: Vec<String> = rows.into_iter().map(line).collect();
    let mut wanted = results.clone();
    if *sort_mode == Some(SortMode::RowSort) {
        actual.sort();
        wanted.sort();
    }
    let squeeze = |lines: &[String]| -> Vec<String> {
        lines.iter().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    };
    if squeeze(&actual) == squeeze(&wanted) {
        return Ok(());
    }
    let mut what = String::from("the rows differ (- expected, + actual):");
    for l in wanted.iter().filter(|l| !actual.contains(l)) {
        what.push_str(&format!("\n  - {l}"));
    }
    for l in actual.iter().filter(|l| !wanted.contains(l)) {
        what.push_str(&format!("\n  + {l}"));
    }
    what.push_str(&format!("\n  {} rows expected, {} rows came", wanted.len(), actual.len()));
    Err(what)
}
