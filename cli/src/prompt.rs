//! The plain prompt: `ssql` alone. A statement ends with `;` and may span lines.

use std::io::{BufRead, IsTerminal, Write};

use ssql_grammar::{SourceFile, Style};

use crate::render::{out, table};
use crate::session::{Outcome, Session, SessionConfig};

const HELP: &str = "\
Statements end with `;`. A few to start with:
  SELECT 1 + 1;
  CREATE STREAM ticks USING rate OPTIONS (rowsPerSecond 10);
  SELECT * FROM ticks EMIT APPEND;     prints each micro-batch; STOP QUERY console; ends it
  SHOW QUERIES;  SHOW STREAMS;  DESCRIBE ticks;
  exit";

/// Reads statements from standard input until it ends. False: the last statement failed and nobody sits there to see.
///
/// # Errors
/// Standard input cannot be read, or no session can be set up.
pub fn run() -> Result<bool, String> {
    let interactive = std::io::stdin().is_terminal();
    let mut session = Session::new(SessionConfig {
        base_dir: std::env::current_dir().map_err(|e| e.to_string())?,
        ..SessionConfig::default()
    })
    .map_err(|e| e.to_string())?;
    let say = |text: &str| {
        if interactive {
            let _ = write!(std::io::stderr(), "{text}");
            let _ = std::io::stderr().flush();
        }
    };
    say("ssql: `help;` for help, `exit` to leave\n");
    let mut pending = String::new();
    let mut ok = true;
    say("ssql> ");
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|e| format!("cannot read standard input: {e}"))?;
        let word = line.trim().trim_end_matches(';').trim();
        if pending.trim().is_empty() && (word.eq_ignore_ascii_case("exit") || word.eq_ignore_ascii_case("quit")) {
            break;
        }
        if pending.trim().is_empty() && word.eq_ignore_ascii_case("help") {
            out(&format!("{HELP}\n"));
            say("ssql> ");
            continue;
        }
        pending.push_str(&line);
        pending.push('\n');
        if !line.trim_end().ends_with(';') {
            say(if pending.trim().is_empty() { "ssql> " } else { "  ... " });
            continue;
        }
        ok = execute(&mut session, &std::mem::take(&mut pending));
        say("ssql> ");
    }
    if !pending.trim().is_empty() {
        ok = execute(&mut session, &pending);
    }
    session.stop_all();
    Ok(ok || interactive)
}

fn execute(session: &mut Session, text: &str) -> bool {
    let file = SourceFile::new("input", text);
    let zone = session.time_zone();
    let ran = session.run_script_with(&file, &mut |outcome| match outcome {
        Outcome::Done => {}
        Outcome::Message(text) => eprintln!("{text}"),
        Outcome::Text(text) => out(&format!("{}\n", text.trim_end())),
        Outcome::Rows { names, batches } => out(&table(&names, &batches, &zone)),
    });
    let style = if std::io::stderr().is_terminal() { Style::Colour } else { Style::Plain };
    if let Err(failure) = &ran {
        failure.diagnostics.iter().for_each(|d| eprintln!("{}", d.render(&failure.file, style).trim_end()));
    }
    ran.is_ok()
}
