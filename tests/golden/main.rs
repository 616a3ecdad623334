//! Golden files: each `.ssql` file below `tests/golden` is a script that names a stage in its first line and holds the
//! expected text as `--| ` lines behind it.
//!
//! ```text
//! --! stage = ir
//! SELECT 1;
//! --| what the stage prints
//! ```
//!
//! Stages: `ast`, `fmt`, `logical`, `ir` (of the last statement, after those before it have been run), `diag` (all
//! diagnostics of checking the script), `run` (what `ssql run` prints, or the diagnostic it ends with).
//! `BLESS=1 cargo test -p ssql-tests --test golden` rewrites the expected text; it refuses under CI, and an error is
//! recorded only where the stage is `diag` or `run`.

use std::collections::BTreeSet;
use std::path::Path;

use libtest_mimic::{Arguments, Failed, Trial};
use ssql_tests::{difference, files, root, short_name};

fn main() {
    let dir = root().join("tests/golden");
    let mut trials: Vec<Trial> = files(&dir, "ssql")
        .into_iter()
        .map(|path| Trial::test(short_name(&path, &dir), move || check(&path)))
        .collect();
    trials.push(Trial::test("every_statement_has_a_golden", every_statement_has_a_golden));
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// Each form of a statement stands in a golden of the stages `ast` and `fmt`; what can be run stands in one of `run`.
fn every_statement_has_a_golden() -> Result<(), Failed> {
    const NOT_RUN: &[&str] = &["MERGE INTO", "SHOW WATERMARKS", "SHOW QUERY STATUS", "SHOW QUERY PROGRESS"];
    // Lists of running things and of functions change with time and with every function.
    const CHANGING: &[&str] = &["SHOW QUERIES", "SHOW FUNCTIONS"];
    let forms = |stage: &str| -> BTreeSet<&'static str> {
        let head = format!("--! stage = {stage}\n");
        let texts =
            files(&root().join("tests/golden"), "ssql").into_iter().filter_map(|p| std::fs::read_to_string(p).ok());
        let texts = texts.filter(|t| t.starts_with(&head));
        texts
            .flat_map(|t| ssql_grammar::parse_script(&ssql_grammar::SourceFile::new("golden", t)).0.statements)
            .map(|s| s.kind.name())
            .collect()
    };
    let (ast, fmt, run) = (forms("ast"), forms("fmt"), forms("run"));
    let mut missing: Vec<String> = ast.difference(&fmt).map(|s| format!("{s}: fmt")).collect();
    missing.extend(fmt.difference(&ast).map(|s| format!("{s}: ast")));
    let exempt = |s: &&&str| NOT_RUN.contains(*s) || CHANGING.contains(*s);
    missing.extend(ast.difference(&run).filter(|s| !exempt(s)).map(|s| format!("{s}: run")));
    // The grammar's statements, counted where they are declared.
    let source = std::fs::read_to_string(root().join("grammar/src/ast.rs"))?;
    let named = source.split("pub fn name(&self)").skip(1).flat_map(|b| b.split("\n    }\n").next());
    let all: BTreeSet<&str> = named.flat_map(|b| b.split('"').skip(1).step_by(2)).collect();
    missing.extend(all.iter().filter(|s| !ast.contains(**s)).map(|s| format!("{s}: any")));
    match missing.is_empty() {
        true => Ok(()),
        false => Err(format!("statements without a golden: {missing:#?}").into()),
    }
}

fn check(path: &Path) -> Result<(), Failed> {
    let text = std::fs::read_to_string(path)?;
    let (head, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let stage = head.strip_prefix("--! stage = ").ok_or("the first line must be `--! stage = ...`")?.trim();
    let script: String = rest.lines().filter(|l| !l.starts_with("--|")).map(|l| format!("{l}\n")).collect();
    let expected: String = rest
        .lines()
        .filter_map(|l| l.strip_prefix("--|"))
        .map(|l| format!("{}\n", l.strip_prefix(' ').unwrap_or(l)))
        .collect();
    let outcome = ssql::golden(stage, &script, path.parent().unwrap_or(Path::new(".")));
    let may_fail = matches!(stage, "diag" | "run");
    let actual = match outcome {
        Ok(text) => text,
        Err(text) if may_fail => text,
        Err(text) => return Err(format!("the stage `{stage}` was expected to succeed:\n{text}").into()),
    };
    if stage == "ir" {
        let parsed = ssql_ir::parse::parse(&actual).map_err(|e| format!("the IR does not parse back: {e}"))?;
        if parsed.to_string() != actual {
            return Err(
                format!("the IR prints differently again:\n{}", difference(&actual, &parsed.to_string())).into()
            );
        }
    }
    let actual = actual.trim_end().lines().map(|l| format!("{}\n", l.trim_end())).collect::<String>();
    if actual == expected {
        return Ok(());
    }
    if std::env::var_os("BLESS").is_some() {
        if std::env::var_os("CI").is_some() {
            return Err("BLESS is refused under CI".into());
        }
        let lines: String =
            actual.lines().map(|l| if l.is_empty() { "--|\n".to_owned() } else { format!("--| {l}\n") }).collect();
        std::fs::write(path, format!("{head}\n{}\n{lines}", script.trim_end()))?;
        return Ok(());
    }
    Err(format!("{}\n(BLESS=1 accepts the new text)", difference(&expected, &actual)).into())
}
