//! Every error condition with what it means and a program that is told of it: the data of `ssql explain CONDITION` and
//! of `spec/errors.md`.
//!
//! Conditions are raised in every crate, so the table stands here, where all are seen. It is text (`conditions/*.txt`):
//!
//! ```text
//! # NAME                          Spark's condition, with its subcondition
//! What it means, in one line.
//! : A longer explanation, if there is more to say.
//! --- wrong
//! SELECT 1 / 0;                   a program that raises it
//! --- right
//! SELECT try_divide(1, 0);        and one that does not
//! ```
//!
//! `? when` stands instead of the programs where no program raises it, only the world. A line `file path = content` puts
//! a file beside the program, and `@s` stands for one of [`RELATIONS`]. A test in `tests/spec` runs every program, and
//! looks through the sources for conditions that are missing here.

use std::fmt::Write as _;
use std::sync::LazyLock;

use ssql_plan::catalog::suggest;

/// A condition.
#[derive(Debug)]
pub struct Condition {
    /// Its name: `UNRESOLVED_COLUMN.WITH_SUGGESTION`.
    pub name: &'static str,
    /// What it means, in one line.
    pub meaning: &'static str,
    /// More about it; may be empty.
    pub more: String,
    /// How it comes about.
    pub shown: Shown,
}

/// How a condition is shown.
#[derive(Debug)]
pub enum Shown {
    /// By two programs.
    Programs {
        /// Raises it.
        wrong: Program,
        /// Does the same without raising it.
        right: Program,
    },
    /// No script raises it by itself; this says when it arises.
    When(&'static str),
}

/// A program with the files that it reads.
#[derive(Debug, Default)]
pub struct Program {
    /// Path and content.
    pub files: Vec<(&'static str, &'static str)>,
    /// The script.
    pub text: String,
}

/// Relations that the programs share, so that each need not spell them out.
pub const RELATIONS: &[(&str, &str)] = &[
    ("@s", "CREATE STREAM s (ts TIMESTAMP, k STRING, v INT) USING memory;"),
    (
        "@l",
        "CREATE STREAM l (lt TIMESTAMP, k STRING, lv INT, WATERMARK FOR lt DELAY OF INTERVAL 1 MINUTE) USING memory;",
    ),
    (
        "@r",
        "CREATE STREAM r (rt TIMESTAMP, k STRING, rv INT, WATERMARK FOR rt DELAY OF INTERVAL 1 MINUTE) USING memory;",
    ),
    ("@d", "CREATE TABLE d (k STRING, n INT);"),
];

static TABLE: LazyLock<Vec<Condition>> = LazyLock::new(|| {
    let texts = [
        include_str!("conditions/syntax.txt"),
        include_str!("conditions/names.txt"),
        include_str!("conditions/types.txt"),
        include_str!("conditions/values.txt"),
        include_str!("conditions/streaming.txt"),
        include_str!("conditions/data.txt"),
    ];
    let mut all: Vec<Condition> = texts.into_iter().flat_map(parse).collect();
    all.sort_by_key(|c| c.name);
    all
});

/// All conditions, by name.
pub fn all() -> &'static [Condition] {
    &TABLE
}

/// What `ssql explain NAME` prints; `Err` says what is near.
pub fn explain(name: &str) -> Result<String, String> {
    let wanted = name.trim().to_ascii_uppercase();
    let list = |head: &str, found: &[&Condition]| {
        let mut out = format!("{head}\n\n");
        for c in found {
            let _ = writeln!(out, "{}\n    {}", c.name, c.meaning);
        }
        out
    };
    let below: Vec<&Condition> =
        all().iter().filter(|c| c.name.strip_prefix(&wanted).is_some_and(|rest| rest.starts_with('.'))).collect();
    if let Some(found) = all().iter().find(|c| c.name == wanted) {
        let more = if below.is_empty() { String::new() } else { list("\nMore of this kind:", &below) };
        return Ok(found.text() + &more);
    }
    let begun: Vec<&Condition> = all().iter().filter(|c| c.name.starts_with(&wanted)).collect();
    if !below.is_empty() || begun.len() > 1 {
        return Ok(list(&format!("There are these conditions of {wanted}:"), &begun));
    }
    Err(match suggest(&wanted, all().iter().map(|c| c.name)) {
        Some(near) => format!("there is no condition `{wanted}`\nhelp: Did you mean `{near}`?"),
        None => format!("there is no condition `{wanted}`\nhelp: spec/errors.md lists them all."),
    })
}

impl Condition {
    fn text(&self) -> String {
        let mut out = format!("{}\n\n{}\n", self.name, self.meaning);
        if !self.more.is_empty() {
            let _ = writeln!(out, "\n{}", self.more);
        }
        match &self.shown {
            Shown::When(when) => {
                let _ = writeln!(out, "\nIt arises when: {when}");
            }
            Shown::Programs { wrong, right } => {
                for (head, program) in [("This raises it", wrong), ("This does not", right)] {
                    let _ = writeln!(out, "\n{head}:\n");
                    for (path, content) in &program.files {
                        let _ = writeln!(out, "    -- {path} holds: {content}");
                    }
                    for line in program.text.lines() {
                        let _ = writeln!(out, "    {line}");
                    }
                }
            }
        }
        out
    }
}

/// The table as Markdown, for `spec/errors.md`.
pub fn markdown() -> String {
    let mut out = String::new();
    for c in all() {
        let _ = writeln!(out, "\n## {}\n\n{} {}", c.name, c.meaning, c.more);
        match &c.shown {
            Shown::When(when) => {
                let _ = writeln!(out, "\nNo script raises it by itself. {when}");
            }
            Shown::Programs { wrong, right } => {
                for (mark, program) in [("wrong", wrong), ("right", right)] {
                    let _ = writeln!(out, "\n```sql {mark}");
                    for (path, content) in &program.files {
                        let _ = writeln!(out, "-- {path} holds: {content}");
                    }
                    let _ = writeln!(out, "{}```", program.text);
                }
            }
        }
    }
    out.lines().fold(String::new(), |text, line| text + line.trim_end() + "\n")
}

/// Reads one file of the table. It is part of the program: what does not fit its form is left out, and the tests see that.
fn parse(text: &'static str) -> Vec<Condition> {
    text.split("\n# ").map(|entry| entry.strip_prefix("# ").unwrap_or(entry)).filter_map(entry).collect()
}

fn entry(text: &'static str) -> Option<Condition> {
    let (head, programs) = text.split_once("--- wrong\n").map_or((text, None), |(head, rest)| (head, Some(rest)));
    let mut lines = head.lines();
    let (name, meaning) = (lines.next()?.trim(), lines.next()?.trim());
    let mut more = Vec::new();
    let mut when = None;
    for line in lines {
        if let Some(sentence) = line.strip_prefix(": ") {
            more.push(sentence.trim());
        } else if let Some(situation) = line.strip_prefix("? ") {
            when = Some(situation.trim());
        }
    }
    let shown = match programs.and_then(|p| p.split_once("--- right\n")) {
        Some((wrong, right)) => Shown::Programs { wrong: program(wrong), right: program(right) },
        None => Shown::When(when?),
    };
    Some(Condition { name, meaning, more: more.join(" "), shown })
}

fn program(text: &'static str) -> Program {
    let mut program = Program::default();
    for line in text.trim().lines() {
        let shared = RELATIONS.iter().find(|(mark, _)| *mark == line);
        if let Some((path, content)) = line.strip_prefix("file ").and_then(|l| l.split_once(" = ")) {
            program.files.push((path, content));
        } else {
            program.text.push_str(shared.map_or(line, |(_, statement)| statement));
            program.text.push('\n');
        }
    }
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_explained_in_any_case_and_by_its_family() {
        assert!(explain("divide_by_zero").is_ok_and(|t| t.contains("try_divide")));
        assert!(explain("UNRESOLVED_COLUMN").is_ok_and(|t| t.contains("UNRESOLVED_COLUMN.WITHOUT_SUGGESTION")));
        assert!(explain("DIVIDED_BY_ZERO").is_err_and(|t| t.contains("Did you mean `DIVIDE_BY_ZERO`?")));
    }

    #[test]
    fn names_are_unique_and_entries_whole() {
        for pair in all().windows(2) {
            assert_ne!(pair[0].name, pair[1].name);
        }
        for c in all() {
            assert!(c.meaning.ends_with('.') || c.meaning.contains(':'), "{}", c.name);
            assert!(
                c.name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || "_.".contains(c)),
                "{}",
                c.name
            );
        }
    }
}
