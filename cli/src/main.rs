//! The `ssql` binary: arguments in, exit code out. Everything else is in the library beside it.
//!
//! Exit codes: 0 done, also when a signal ended it after the current batch; 1 a statement, query or test failed; 2 the
//! arguments are wrong; 130 a second signal ended it at once.

use std::io::{IsTerminal, Read};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use clap::{Args, CommandFactory, Parser, Subcommand};
use ssql::metrics::Metrics;
use ssql::output::{self, Format};
use ssql::prompt::{self, PromptConfig};
use ssql::render::out;
use ssql::session::{Failure, Session, SessionConfig};
use ssql::{checkpoint, slt};
use ssql_grammar::{Diagnostic, SourceFile, Style};

/// Streaming SQL with the semantics of Spark Structured Streaming, in one binary.
///
/// Without a command: a prompt on a terminal; else the statements of standard input are run.
#[derive(Parser)]
#[command(version, about, args_conflicts_with_subcommands = true)]
struct Cli {
    /// Run these statements.
    #[arg(short = 'c', long = "command", value_name = "STATEMENTS")]
    statements: Vec<String>,
    /// Run this script; `-` is standard input.
    #[arg(short = 'f', long = "file", value_name = "FILE", conflicts_with = "statements")]
    file: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
    /// How diagnostics are printed.
    #[arg(long, global = true, value_enum, default_value = "text")]
    error_format: ErrorFormat,
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    logging: Logging,
}

/// What goes to the log.
#[derive(Args)]
struct Logging {
    /// What is logged to standard error.
    #[arg(long, global = true, default_value = "warn", value_parser = ["off", "error", "warn", "info", "debug", "trace"])]
    log_level: String,
    /// How it is written.
    #[arg(long, global = true, default_value = "text", value_parser = ["text", "json"])]
    log_format: String,
}

impl Logging {
    fn begin(&self) {
        let level = self.log_level.parse().unwrap_or(tracing::level_filters::LevelFilter::WARN);
        let ansi = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
        let builder = tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr).with_target(false);
        if self.log_format == "json" {
            builder.json().flatten_event(true).init();
        } else {
            builder.with_ansi(ansi).init();
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ErrorFormat {
    /// For people: source line, underline, help.
    Text,
    /// One JSON object a line, for editors.
    Json,
}

#[derive(Subcommand)]
enum Command {
    /// Run a script; ends when all its queries have ended.
    Run {
        #[command(flatten)]
        script: Script,
        /// A query that was changed so that its checkpoint's state cannot be read begins with empty state, from the same
        /// offsets on; the old state is put aside. Without this it is refused.
        #[arg(long)]
        allow_reset: bool,
    },
    /// Check a script without running anything: all its mistakes at once.
    Check(Script),
    /// Explain an error condition (`ssql explain DIVIDE_BY_ZERO`), or print what the compiler makes of a script's last
    /// statement.
    Explain {
        #[command(flatten)]
        script: Script,
        /// Which form: the syntax tree, the logical plan, the operator IR, Cranelift's IR, or machine code.
        #[arg(long, default_value = "logical", value_parser = ["ast", "logical", "ir", "clif", "asm"])]
        stage: String,
    },
    /// Print scripts in canonical form, or rewrite them.
    Fmt {
        /// Scripts; `-` reads standard input.
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Rewrite the files in place.
        #[arg(long, conflicts_with = "check")]
        write: bool,
        /// Print nothing; fail if a file is not in canonical form.
        #[arg(long)]
        check: bool,
    },
    /// Run `.slt` test files, or try a pipeline with rows of your own.
    ///
    /// `ssql test tests/` runs files; `ssql test pipeline.ssql --cases cases.slt` runs the cases against the pipeline, whose
    /// streams and sinks are in memory meanwhile.
    Test {
        /// Files, or folders that are searched for them. With --cases: the pipeline.
        #[arg(required = true)]
        paths: Vec<PathBuf>,
        /// Cases for a pipeline: files, or folders that are searched for them.
        #[arg(long, value_name = "PATH")]
        cases: Vec<PathBuf>,
        /// A value for `:name` in the pipeline.
        #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parameter)]
        params: Vec<(String, String)>,
        /// Write the outcome as JUnit XML.
        #[arg(long, value_name = "FILE")]
        junit: Option<PathBuf>,
        /// Which route runs expressions: `on`, `off`, or `verify` (both, compared).
        #[arg(long, default_value = "verify", value_parser = ["on", "off", "verify"])]
        jit: String,
        /// Name each file as it is run.
        #[arg(long, short)]
        verbose: bool,
    },
    /// Print a shell's completion script.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page (`ssql man | man -l -`).
    Man,
    /// Look into a checkpoint. Nothing in it is changed, and its query may be running.
    Checkpoint {
        #[command(subcommand)]
        command: CheckpointCommand,
    },
}

#[derive(Subcommand)]
enum CheckpointCommand {
    /// Batches, offsets, watermarks and sizes.
    Show {
        /// The checkpoint's folder.
        dir: PathBuf,
        /// How many of the newest batches are shown.
        #[arg(long, default_value_t = 20)]
        last: usize,
    },
    /// The rows of a stateful operator's state.
    State {
        /// The checkpoint's folder.
        dir: PathBuf,
        /// Which stateful operator, counted from 0 in the order of the plan.
        #[arg(long, default_value_t = 0)]
        operator: usize,
        /// After which batch; the newest committed one by default.
        #[arg(long)]
        batch: Option<u64>,
    },
    /// Check every checksum and every reference; fails if something is damaged or missing.
    Verify {
        /// The checkpoint's folder.
        dir: PathBuf,
    },
}

#[derive(Args)]
struct Script {
    /// The script; `-` reads standard input.
    file: PathBuf,
    #[command(flatten)]
    settings: Settings,
}

/// How statements are run.
#[derive(Args, Clone)]
struct Settings {
    /// A value for `:name` in the script.
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parameter)]
    params: Vec<(String, String)>,
    /// Worker threads; 0 is one per core.
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// Which route runs expressions: `on`, `off`, or `verify` (both, compared).
    #[arg(long, value_parser = ["on", "off", "verify"])]
    jit: Option<String>,
    /// Do not print progress.
    #[arg(long, short)]
    quiet: bool,
    /// How rows are printed.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Append the progress of each micro-batch to this file, a line of JSON each.
    #[arg(long, value_name = "FILE")]
    progress_log: Option<PathBuf>,
    /// Answer Prometheus at this address (`127.0.0.1:9090`, or a port alone) under /metrics.
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<String>,
}

impl Settings {
    /// The session, seen from that folder.
    fn config(&self, base_dir: PathBuf) -> Result<SessionConfig, String> {
        let metrics = match &self.metrics {
            None => None,
            Some(address) => {
                let metrics = Arc::new(Metrics::default());
                let at = metrics.serve(address).map_err(|e| format!("cannot listen at `{address}`: {e}"))?;
                tracing::info!("metrics at http://{at}/metrics");
                Some(metrics)
            }
        };
        Ok(SessionConfig {
            base_dir,
            params: self.params.clone(),
            threads: self.threads,
            jit: self.jit.clone(),
            progress: !self.quiet && std::io::stderr().is_terminal(),
            progress_log: self.progress_log.clone(),
            metrics,
            ..SessionConfig::default()
        })
    }
}

fn parameter(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("a parameter is given as NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

impl Script {
    fn source(&self) -> Result<SourceFile, String> {
        read(&self.file)
    }

    /// Relative locations in a script are seen from its folder.
    fn config(&self) -> Result<SessionConfig, String> {
        self.settings.config(folder(&self.file))
    }
}

/// The folder that a script stands in.
fn folder(script: &std::path::Path) -> PathBuf {
    match script.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

fn read(path: &PathBuf) -> Result<SourceFile, String> {
    if path.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map_err(|e| format!("cannot read standard input: {e}"))?;
        return Ok(SourceFile::new("<stdin>", text));
    }
    let text = std::fs::read_to_string(path).map_err(|e| format!("cannot read `{}`: {e}", path.display()))?;
    Ok(SourceFile::new(path.display().to_string(), text))
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    cli.logging.begin();
    let report = Report { format: cli.error_format };
    let ok = match cli.command {
        None => bare(&cli.statements, cli.file.as_ref(), &cli.settings, &report),
        Some(Command::Run { script, allow_reset }) => run(&script, allow_reset, &report),
        Some(Command::Check(script)) => check(&script, &report),
        Some(Command::Explain { script, stage }) => explain(&script, &stage, &report),
        Some(Command::Fmt { files, write, check }) => fmt(&files, write, check, &report),
        Some(Command::Test { paths, cases, params, junit, jit, verbose }) => {
            let config = SessionConfig { jit: Some(jit), params, ..SessionConfig::default() };
            test(&paths, &cases, config, junit.as_deref(), verbose)
        }
        Some(Command::Completions { shell }) => {
            clap_complete::generate(shell, &mut Cli::command(), "ssql", &mut std::io::stdout());
            Ok(true)
        }
        Some(Command::Man) => clap_mangen::Man::new(Cli::command())
            .render(&mut std::io::stdout())
            .map(|()| true)
            .map_err(|e| format!("the manual page cannot be written: {e}")),
        Some(Command::Checkpoint { command }) => look_into(&command),
    };
    match ok {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Prints diagnostics as the user asked for them.
struct Report {
    format: ErrorFormat,
}

impl Report {
    fn diagnostics(&self, file: &SourceFile, diagnostics: &[Diagnostic]) {
        // NO_COLOR: https://no-color.org
        let plain = !std::io::stderr().is_terminal() || std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        let style = if plain { Style::Plain } else { Style::Colour };
        for d in diagnostics {
            match self.format {
                ErrorFormat::Text => eprintln!("{}", d.render(file, style).trim_end()),
                ErrorFormat::Json => eprintln!("{}", d.to_json(file)),
            }
        }
        if self.format == ErrorFormat::Text
            && std::io::stderr().is_terminal()
            && let Some(d) = diagnostics.iter().find(|d| d.is_error())
        {
            eprintln!("More about it: ssql explain {}", d.condition);
        }
    }

    fn failure(&self, failure: &Failure) {
        self.diagnostics(&failure.file, &failure.diagnostics);
    }
}

/// `ssql checkpoint ...`.
fn look_into(command: &CheckpointCommand) -> Result<bool, String> {
    let shown = match command {
        CheckpointCommand::Show { dir, last } => checkpoint::show(dir, *last).map(|text| (text, true)),
        CheckpointCommand::State { dir, operator, batch } => {
            checkpoint::state(dir, *operator, *batch, &jiff::tz::TimeZone::UTC).map(|text| (text, true))
        }
        CheckpointCommand::Verify { dir } => checkpoint::verify(dir),
    };
    let (text, whole) = shown.map_err(|e| {
        let help: String = e.help.iter().map(|h| format!("\n  help: {h}")).collect();
        format!("[{}] {}{help}", e.condition, e.message)
    })?;
    out(&text);
    Ok(whole)
}

/// `ssql` without a command.
fn bare(statements: &[String], file: Option<&PathBuf>, settings: &Settings, report: &Report) -> Result<bool, String> {
    let here = PathBuf::from(".");
    if !statements.is_empty() {
        let source = SourceFile::new("-c", statements.join(";\n"));
        return run_source(&source, settings.config(here)?, settings.format, report);
    }
    if let Some(path) = file {
        return run_source(&read(path)?, settings.config(folder(path))?, settings.format, report);
    }
    if std::io::stdin().is_terminal() {
        return prompt::run(PromptConfig { format: settings.format, session: settings.config(here)? });
    }
    run_source(&read(&PathBuf::from("-"))?, settings.config(here)?, settings.format, report)
}

fn run(script: &Script, allow_reset: bool, report: &Report) -> Result<bool, String> {
    let file = script.source()?;
    let config = SessionConfig { allow_reset, ..script.config()? };
    run_source(&file, config, script.settings.format, report)
}

/// Runs a script and waits until all its queries have ended.
fn run_source(file: &SourceFile, config: SessionConfig, format: Format, report: &Report) -> Result<bool, String> {
    let mut session = Session::new(config).map_err(|e| e.to_string())?;
    let stopper = session.stopper();
    watch_signals(move || stopper.stop())?;
    let zone = session.time_zone();
    let ran = session.run_script_with(file, &mut |outcome| output::print(&outcome, format, &zone));
    let ok = match ran {
        Ok(()) => true,
        Err(failure) => {
            report.failure(&failure);
            session.stop_all();
            false
        }
    };
    match session.await_all() {
        Ok(()) => Ok(ok),
        Err(failures) => {
            failures.iter().for_each(|f| report.failure(f));
            Ok(false)
        }
    }
}

/// The first SIGINT or SIGTERM stops after the running batch; the second ends the process at once, which the checkpoint
/// survives.
fn watch_signals(stop: impl Fn() + Send + 'static) -> Result<(), String> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let seen = Arc::new(AtomicBool::new(false));
    let count = Arc::new(AtomicUsize::new(0));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&seen)).map_err(|e| e.to_string())?;
        signal_hook::flag::register(signal, Arc::clone(&seen)).map_err(|e| e.to_string())?;
    }
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]).map_err(|e| e.to_string())?;
    std::thread::Builder::new()
        .name("ssql-signals".to_owned())
        .spawn(move || {
            for _ in signals.forever() {
                if count.fetch_add(1, Ordering::SeqCst) == 0 {
                    eprintln!("stopping after the current batch; once more to end at once");
                    stop();
                }
            }
        })
        .map_err(|e| e.to_string())?;
    Ok(())
}

fn check(script: &Script, report: &Report) -> Result<bool, String> {
    let file = script.source()?;
    let diagnostics = ssql::check(&file, script.config()?).map_err(|e| e.to_string())?;
    report.diagnostics(&file, &diagnostics);
    Ok(!diagnostics.iter().any(Diagnostic::is_error))
}

fn explain(script: &Script, stage: &str, report: &Report) -> Result<bool, String> {
    if let Some(condition) = condition_name(&script.file) {
        out(&ssql::conditions::explain(condition)?);
        return Ok(true);
    }
    let file = script.source()?;
    match ssql::explain(stage, &file, script.config()?) {
        Ok(text) => {
            out(&format!("{}\n", text.trim_end()));
            Ok(true)
        }
        Err(failure) => {
            report.failure(&failure);
            Ok(false)
        }
    }
}

/// The argument of `explain` as the name of a condition: a word without a path or an extension, and no file.
fn condition_name(argument: &std::path::Path) -> Option<&str> {
    let text = argument.to_str()?;
    let word = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let named = text.contains('_') || text.chars().all(|c| c.is_ascii_uppercase());
    let script = text.ends_with(".ssql") || text.ends_with(".sql");
    (named && !script && text.split('.').all(word) && !argument.exists()).then_some(text)
}

fn fmt(files: &[PathBuf], write: bool, check: bool, report: &Report) -> Result<bool, String> {
    let mut ok = true;
    for path in files {
        let file = read(path)?;
        let text = match ssql_grammar::print::format_script(&file) {
            Ok(text) => text,
            Err(diagnostics) => {
                report.diagnostics(&file, &diagnostics);
                ok = false;
                continue;
            }
        };
        if check {
            if text != file.text() {
                eprintln!("{} is not in canonical form", path.display());
                ok = false;
            }
        } else if write && path.as_os_str() != "-" {
            if text != file.text() {
                std::fs::write(path, text).map_err(|e| format!("cannot write `{}`: {e}", path.display()))?;
            }
        } else {
            out(&text);
        }
    }
    Ok(ok)
}

fn test(
    paths: &[PathBuf],
    cases: &[PathBuf],
    config: SessionConfig,
    junit: Option<&std::path::Path>,
    verbose: bool,
) -> Result<bool, String> {
    let mut tally = slt::Tally::default();
    let pipeline = match (cases.is_empty(), paths) {
        (true, _) => None,
        (false, [pipeline]) => Some(pipeline),
        (false, _) => return Err("--cases tries one pipeline at a time".to_owned()),
    };
    let config = match pipeline {
        Some(pipeline) => SessionConfig { base_dir: folder(pipeline), ..config },
        None => config,
    };
    let source = pipeline.map(read).transpose()?;
    let mut results = Vec::new();
    for path in slt::files(if source.is_some() { cases } else { paths }).map_err(|e| e.to_string())? {
        let result = match &source {
            Some(source) => slt::run_cases(&path, source, &config),
            None => slt::run_file(&path, &config),
        };
        results.push((path, result));
    }
    if let Some(file) = junit {
        std::fs::write(file, slt::junit(&results)).map_err(|e| format!("cannot write `{}`: {e}", file.display()))?;
    }
    for (path, result) in results {
        match result {
            Ok((passed, mismatches)) => {
                tally.passed += passed;
                tally.failed += mismatches.len();
                if mismatches.is_empty() {
                    tally.files_passed += 1;
                } else {
                    tally.files_failed += 1;
                }
                if verbose || !mismatches.is_empty() {
                    let mark = if mismatches.is_empty() { "ok" } else { "FAILED" };
                    out(&(format!("{mark} {} ({passed} passed, {} failed)", path.display(), mismatches.len()) + "\n"));
                }
                for m in mismatches {
                    out(&(format!(
                        "{}:{}: {}\n  {}",
                        path.display(),
                        m.line,
                        m.sql.trim(),
                        m.what.replace('\n', "\n  ")
                    ) + "\n"));
                }
            }
            Err(e) => {
                tally.files_failed += 1;
                tally.failed += 1;
                out(&(format!("FAILED {}: {e}", path.display()) + "\n"));
            }
        }
    }
    out(&(format!("files: {} passed, {} failed", tally.files_passed, tally.files_failed) + "\n"));
    out(&(format!("{} passed, {} failed", tally.passed, tally.failed) + "\n"));
    Ok(tally.failed == 0)
}
