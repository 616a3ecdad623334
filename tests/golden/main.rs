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

use std::path::Path;

use libtest_mimic::{Arguments, Failed, Trial};
use ssql_tests::{difference, files, root, short_name};

fn main() {
    let dir = root().join("tests/golden");
    let trials = files(&dir, "ssql")
        .into_iter()
        .map(|path| Trial::test(short_name(&path, &dir), move || check(&path)))
        .collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
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
