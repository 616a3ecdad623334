//! The prompt: `ssql` alone on a terminal.
//!
//! A statement ends with `;` and may span lines. `SELECT ... EMIT ...` runs in the foreground until Ctrl-C; queries into
//! sinks go on in the background while the user types.

mod assist;
mod screen;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor, ExternalPrinter};
use ssql_grammar::ast::{EmitMode, StatementKind};
use ssql_grammar::{Diagnostic, SourceFile, Style, parse_script};

use crate::output::{self, Format};
use crate::render::out;
use crate::session::{Console, Outcome, Session, SessionConfig};
use assist::Assistant;
use screen::Screen;

const HELP: &str = "\
Statements end with `;` and may span lines. A few to start with:
  SELECT 1 + 1;
  CREATE STREAM ticks USING rate OPTIONS (rowsPerSecond 10);
  SELECT * FROM ticks EMIT APPEND;            shows each micro-batch until Ctrl-C
  CREATE SINK kept USING memory;
  INSERT INTO kept SELECT value FROM ticks EMIT APPEND;    runs in the background
  SELECT count(*) FROM kept;
  SHOW QUERIES;  SHOW STREAMS;  SHOW FUNCTIONS;  DESCRIBE ticks;  STOP QUERY kept;

Commands of the prompt:
  help                   this text
  help CONDITION         what an error means, with examples
  timing on | off        print how long each statement took
  format table | csv | json | ndjson
  exit                   stop all queries and leave (also Ctrl-D)

Tab completes; Ctrl-R searches the history; Ctrl-C stops the running statement, or drops the line.";

/// How the prompt begins.
#[derive(Debug, Clone)]
pub struct PromptConfig {
    /// How rows are printed.
    pub format: Format,
    /// The session.
    pub session: SessionConfig,
}

type Line = Editor<Assistant, FileHistory>;

/// Reads statements from the terminal until the user leaves.
///
/// # Errors
/// The terminal cannot be used, or no session can be set up.
pub fn run(config: PromptConfig) -> Result<bool, String> {
    let settings = Config::builder().auto_add_history(false).max_history_size(10_000).map_err(|e| e.to_string())?;
    let mut editor: Line = Editor::with_config(settings.build()).map_err(|e| e.to_string())?;
    let screen = Arc::new(Mutex::new(Screen::default()));
    if let Ok(mut printer) = editor.create_external_printer() {
        let print = move |text: String| {
            // Where the terminal is gone there is nobody to tell.
            let _ = printer.print(text);
        };
        screen.lock().unwrap_or_else(std::sync::PoisonError::into_inner).print_by(Box::new(print));
    }
    let console = Console(Arc::clone(&screen) as Arc<Mutex<dyn std::io::Write + Send>>);
    let session = Session::new(SessionConfig { console: Some(console), progress: false, ..config.session })
        .map_err(|e| e.to_string())?;
    let history = history_file();
    if let Some(file) = &history {
        // A first start has no history.
        let _ = editor.load_history(file);
    }
    let stopper = session.stopper();
    let running = Arc::new(AtomicBool::new(false));
    watch_interrupts(Arc::clone(&running), move || stopper.interrupt())?;
    let mut prompt = Prompt { session, editor, screen, running, format: config.format, timing: false };
    eprintln!("ssql {}. `help` for help, `exit` to leave.", env!("CARGO_PKG_VERSION"));
    prompt.talk();
    if let Some(file) = &history
        && let Err(e) = prompt.editor.save_history(file)
    {
        eprintln!("the history cannot be kept in {}: {e}", file.display());
    }
    let active = prompt.session.handles().iter().filter(|h| h.is_active()).count();
    if active > 0 {
        eprintln!("stopping {active} {}", if active == 1 { "query" } else { "queries" });
    }
    prompt.session.stop_all();
    Ok(true)
}

/// `$SSQL_HISTORY`, else `~/.local/state/ssql/history` or what XDG_STATE_HOME says. None: history is not kept.
fn history_file() -> Option<std::path::PathBuf> {
    if let Some(file) = std::env::var_os("SSQL_HISTORY") {
        return (!file.is_empty()).then(|| file.into());
    }
    let state = std::env::var_os("XDG_STATE_HOME").filter(|v| !v.is_empty()).map(std::path::PathBuf::from);
    let state = state.or_else(|| std::env::home_dir().map(|home| home.join(".local/state")))?;
    let folder = state.join("ssql");
    std::fs::create_dir_all(&folder).ok()?;
    Some(folder.join("history"))
}

/// SIGINT stops what runs. SIGTERM and SIGHUP end the process by their own.
fn watch_interrupts(running: Arc<AtomicBool>, interrupt: impl Fn() + Send + 'static) -> Result<(), String> {
    let mut signals = signal_hook::iterator::Signals::new([signal_hook::consts::SIGINT]).map_err(|e| e.to_string())?;
    let watch = move || {
        for _ in signals.forever() {
            if running.load(Ordering::SeqCst) {
                interrupt();
            }
        }
    };
    std::thread::Builder::new().name("ssql-signals".to_owned()).spawn(watch).map_err(|e| e.to_string())?;
    Ok(())
}

struct Prompt {
    session: Session,
    editor: Line,
    screen: Arc<Mutex<Screen>>,
    /// A statement runs.
    running: Arc<AtomicBool>,
    format: Format,
    timing: bool,
}

impl Prompt {
    fn talk(&mut self) {
        loop {
            self.editor.set_helper(Some(Assistant::new(&self.session)));
            match self.editor.readline("ssql> ") {
                Ok(text) if text.trim().is_empty() => {}
                Ok(text) => {
                    // A failure to note the line down is no reason not to run it.
                    let _ = self.editor.add_history_entry(text.trim_end());
                    if !self.answer(&text) {
                        return;
                    }
                }
                Err(ReadlineError::Interrupted) => {}
                Err(ReadlineError::Eof) => return,
                Err(e) => {
                    eprintln!("error: {e}");
                    return;
                }
            }
        }
    }

    /// Carries a line out. False: leave.
    fn answer(&mut self, text: &str) -> bool {
        let mut words = text.trim().trim_end_matches(';').split_whitespace();
        let command = words.next().unwrap_or("").to_ascii_lowercase();
        let argument = words.next();
        let single = words.next().is_none();
        match (command.as_str(), argument) {
            ("exit" | "quit", None) => return false,
            ("help", None) => out(&format!("{HELP}\n")),
            ("help", Some(condition)) if single => match crate::conditions::explain(condition) {
                Ok(text) => out(&text),
                Err(message) => eprintln!("{message}"),
            },
            ("timing", Some(switch)) if single => match switch.to_ascii_lowercase().as_str() {
                "on" => self.timing = true,
                "off" => self.timing = false,
                _ => eprintln!("timing on, or timing off"),
            },
            ("format", Some(name)) if single => match Format::named(name).filter(|f| *f != Format::Arrow) {
                Some(format) => self.format = format,
                None => eprintln!("formats: table, csv, json, ndjson"),
            },
            _ => self.execute(text),
        }
        true
    }

    fn execute(&mut self, text: &str) {
        let began = Instant::now();
        let file = SourceFile::new("input", text);
        let zone = self.session.time_zone();
        let lines = self.editor.dimensions().map(|(_, rows)| rows as usize);
        let format = self.format;
        let foreground = foreground(&file);
        if let Some(mode) = foreground {
            self.lock().begin(mode != EmitMode::Append);
        }
        self.running.store(true, Ordering::SeqCst);
        let ran = self.session.run_script_with(&file, &mut |outcome| match &outcome {
            Outcome::Message(_) if foreground.is_some() => {}
            Outcome::Rows { .. } if format == Format::Table => screen::page(&outcome, &zone, lines),
            _ => output::print(&outcome, format, &zone),
        });
        let ran = ran.and_then(|()| match foreground {
            Some(_) => self.watch(),
            None => Ok(()),
        });
        self.running.store(false, Ordering::SeqCst);
        self.lock().end();
        if let Err(failure) = ran {
            self.tell(&failure.file, &failure.diagnostics);
        }
        if self.timing {
            eprintln!("{:.3} s", began.elapsed().as_secs_f64());
        }
    }

    /// Stays with the newest query until it ends or Ctrl-C stops it.
    fn watch(&mut self) -> Result<(), crate::session::Failure> {
        let Some(handle) = self.session.handles().last().cloned() else { return Ok(()) };
        let name = handle.name().to_owned();
        let quoted = format!("`{}`", name.replace('`', "``"));
        let waited = self.session.run_script(&SourceFile::new("input", format!("AWAIT QUERY {quoted};")));
        handle.stop();
        let dropped = self.session.run_script(&SourceFile::new("input", format!("DROP QUERY {quoted};")));
        match waited {
            Err(failure) if failure.diagnostics.iter().all(|d| d.condition == "OPERATION_CANCELED") => {
                dropped.map(drop)
            }
            other => other.map(drop),
        }
    }

    fn tell(&self, file: &SourceFile, diagnostics: &[Diagnostic]) {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        let style = if plain { Style::Plain } else { Style::Colour };
        diagnostics.iter().for_each(|d| eprintln!("{}", d.render(file, style).trim_end()));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Screen> {
        self.screen.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// The mode of the last statement, if it is a streaming query that writes to the terminal.
fn foreground(file: &SourceFile) -> Option<EmitMode> {
    let (script, _) = parse_script(file);
    let StatementKind::Query(query) = &script.statements.last()?.kind else { return None };
    let emit = query.emit.as_ref()?;
    Some(emit.mode.map_or(EmitMode::Append, |(mode, _)| mode))
}
