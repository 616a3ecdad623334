//! ssql as a library: a [`session::Session`] runs statements; the binary is a thin shell around it.
//!
//! A streaming query is started by a statement and held by its [`session::Session::handle`]:
//!
//! ```
//! use std::time::Duration;
//! use ssql::session::{Outcome, Session, SessionConfig};
//!
//! let mut session = Session::new(SessionConfig::default())?;
//! session.sql("
//!     CREATE STREAM readings (device STRING, temperature DOUBLE) USING memory;
//!     CREATE SINK hot USING memory;
//!     CREATE QUERY alerts AS INSERT INTO hot SELECT device FROM readings WHERE temperature > 35 EMIT APPEND;
//!     INSERT INTO readings VALUES ('d1', 36.0), ('d2', 20.0);
//! ")?;
//!
//! let query = session.handle("alerts")?;
//! query.process_all_available().map_err(|e| e.to_string())?;
//! assert_eq!(query.recent_progress(1)[0].num_input_rows, 2);
//! assert!(!query.await_termination(Some(Duration::from_millis(10))));
//!
//! for outcome in session.sql("SELECT * FROM hot")? {
//!     if let Outcome::Rows { names, batches } = outcome {
//!         print!("{}", ssql::render::table(&names, &batches, &session.time_zone()));
//!     }
//! }
//! query.stop();
//! assert!(!query.is_active() && query.error().is_none());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Sources and sinks of a program's own implement [`ssql_engine::connector::Connector`] and are registered with
//! [`session::Session::register_connector`], scalar functions with [`session::Session::register_function`] (or written in SQL,
//! `CREATE FUNCTION`).

pub mod checkpoint;
pub mod compile;
pub mod conditions;
pub mod metrics;
pub mod output;
pub mod prompt;
pub mod render;
pub mod session;
pub mod slt;

use std::path::Path;

use ssql_grammar::ast::{ExplainStage, StatementKind};
use ssql_grammar::{Diagnostic, SourceFile, Style, parse_script};
use ssql_plan::Planned;

use session::{Failure, Outcome, Session, SessionConfig, StartError};

/// All mistakes of a script, found without running anything: relations are registered, nothing is read or started.
pub fn check(file: &SourceFile, config: SessionConfig) -> Result<Vec<Diagnostic>, StartError> {
    let mut session = Session::new(SessionConfig { dry: true, ..config })?;
    let (script, mut diagnostics) = parse_script(file);
    let mut broken = script.broken.clone();
    for statement in &script.statements {
        let found = match session.plan(statement) {
            Ok(planned) => {
                if let Planned::Query(query) = &planned {
                    diagnostics.extend(query.warnings.iter().cloned());
                }
                session.execute(file, statement, planned).err().map_or(vec![], |failure| failure.diagnostics)
            }
            Err(found) => found,
        };
        if found.iter().any(Diagnostic::is_error) {
            broken.extend(session::created(&statement.kind).map(|name| name.dotted()));
        }
        let told = found.into_iter().filter(|d| !follows_from(d, &broken, file));
        diagnostics.extend(told.map(|d| session.with_first_definition(file, d)));
    }
    diagnostics.sort_by_key(|d| d.span().start);
    Ok(diagnostics)
}

/// Whether a name is only missing because the statement that creates it has a mistake.
fn follows_from(d: &Diagnostic, broken: &[String], file: &SourceFile) -> bool {
    matches!(&*d.condition, "TABLE_OR_VIEW_NOT_FOUND" | "UNRESOLVED_ROUTINE")
        && broken.iter().any(|name| {
            let place = file.slice(d.span()).trim_matches(['`', '"']);
            place.eq_ignore_ascii_case(name) || place.split('(').next().is_some_and(|f| f.eq_ignore_ascii_case(name))
        })
}

/// The script's last statement in one of its forms, after those before it have been registered (not run).
pub fn explain(stage: &str, file: &SourceFile, config: SessionConfig) -> Result<String, Failure> {
    let fail = |diagnostics| Failure { file: file.clone(), diagnostics };
    let mut session = Session::new(SessionConfig { dry: true, ..config })
        .map_err(|e| fail(vec![Diagnostic::error("INTERNAL_ERROR", e.to_string())]))?;
    let (script, diagnostics) = parse_script(file);
    if !diagnostics.is_empty() {
        return Err(fail(diagnostics));
    }
    if stage == "ast" {
        return Ok(ssql_grammar::dump::dump_script(&script));
    }
    // The last statement that computes something: managing statements behind it have no plan.
    let computes = |kind: &StatementKind| {
        matches!(kind, StatementKind::Insert(_) | StatementKind::Query(_) | StatementKind::Explain(_))
    };
    let last = script.statements.iter().rposition(|s| computes(&s.kind));
    let Some(last) = last else {
        let help = "Add the query whose plan you want to see.";
        let d = Diagnostic::error("NOTHING_TO_EXPLAIN", "the script has no query").with_help(help);
        return Err(fail(vec![d]));
    };
    for statement in &script.statements[..last] {
        let planned = session.plan(statement).map_err(&fail)?;
        session.execute(file, statement, planned)?;
    }
    let planned = session.plan(&script.statements[last]).map_err(&fail)?;
    let stage = match stage {
        "logical" => ExplainStage::Logical,
        "ir" => ExplainStage::Ir,
        "clif" => ExplainStage::Clif,
        _ => ExplainStage::Asm,
    };
    compile::explain(stage, &script.statements[last], &planned)
        .map_err(|message| fail(vec![Diagnostic::error("INTERNAL_ERROR", message)]))
}

/// What a golden file's stage prints for a script; `Err` holds rendered diagnostics. The folder that relative locations
/// are seen from prints as `$DIR`; the parameter `:tmp` is a folder that is gone afterwards, and prints as `$TMP`.
pub fn golden(stage: &str, script: &str, base_dir: &Path) -> Result<String, String> {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let n = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let tmp = std::env::temp_dir().join(format!("ssql-golden-{}-{n}", std::process::id()));
    let portable = |text: String| {
        text.replace(&base_dir.display().to_string(), "$DIR").replace(&tmp.display().to_string(), "$TMP")
    };
    let result = golden_text(stage, script, base_dir, &tmp).map(portable).map_err(portable);
    let _ = std::fs::remove_dir_all(&tmp);
    result
}

fn golden_text(stage: &str, script: &str, base_dir: &Path, tmp: &Path) -> Result<String, String> {
    let file = SourceFile::new("script.ssql", script);
    let config = SessionConfig {
        base_dir: base_dir.to_path_buf(),
        params: vec![("tmp".to_owned(), tmp.display().to_string())],
        ..SessionConfig::default()
    };
    let rendered = |diagnostics: &[Diagnostic]| -> String {
        diagnostics.iter().map(|d| d.render(&file, Style::Plain).trim_end().to_owned() + "\n\n").collect()
    };
    match stage {
        "fmt" => ssql_grammar::print::format_script(&file).map_err(|d| rendered(&d)),
        "diag" => match check(&file, config) {
            Ok(diagnostics) if diagnostics.iter().any(Diagnostic::is_error) => Err(rendered(&diagnostics)),
            Ok(diagnostics) => Ok(rendered(&diagnostics)),
            Err(e) => Err(e.to_string()),
        },
        "run" => {
            let mut session = Session::new(SessionConfig { manual: true, ..config }).map_err(|e| e.to_string())?;
            let zone = session.time_zone();
            let mut text = String::new();
            let ran = session.run_script_with(&file, &mut |outcome| match outcome {
                Outcome::Done => {}
                Outcome::Message(m) | Outcome::Text(m) => text.push_str(&(m.trim_end().to_owned() + "\n")),
                Outcome::Rows { names, batches } => text.push_str(&render::table(&names, &batches, &zone)),
            });
            session.stop_all();
            match ran {
                Ok(()) => Ok(text),
                Err(failure) => Err(text + &rendered(&failure.diagnostics)),
            }
        }
        "ast" | "logical" | "ir" | "clif" => explain(stage, &file, config).map_err(|f| rendered(&f.diagnostics)),
        other => Err(format!("there is no stage `{other}`")),
    }
}
