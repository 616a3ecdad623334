//! Help while typing: completion from the catalog, colours, the end of a statement, hints from the history.

use std::borrow::Cow;
use std::collections::BTreeSet;

use rustyline::completion::Completer;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::{Hinter, HistoryHinter};
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper};
use ssql_grammar::keyword::{KEYWORDS, Keyword};
use ssql_grammar::token::{TokenKind, lex};

use crate::session::Session;

/// Words of SQL that are no keywords of ours.
const SQL_WORDS: &[&str] = &[
    "AND",
    "ARRAY",
    "ASC",
    "BETWEEN",
    "BOOLEAN",
    "CASE",
    "CAST",
    "CROSS",
    "DATE",
    "DECIMAL",
    "DISTINCT",
    "DOUBLE",
    "ELSE",
    "EXCEPT",
    "FROM",
    "FULL",
    "GROUP",
    "HAVING",
    "HOP",
    "IN",
    "INNER",
    "INT",
    "IS",
    "JOIN",
    "LEFT",
    "LIKE",
    "LIMIT",
    "MAP",
    "MERGE",
    "MINUTES",
    "ORDER",
    "OUTER",
    "OVER",
    "PARTITION",
    "RIGHT",
    "SECONDS",
    "SELECT",
    "SESSION",
    "STRING",
    "STRUCT",
    "THEN",
    "TIMESTAMP",
    "TUMBLE",
    "UNION",
    "VALUES",
    "WHEN",
    "WHERE",
    "WITHIN",
];
/// Lines that are whole without a semicolon.
const COMMANDS: &[&str] = &["exit", "quit", "help", "timing", "format"];

/// The names that may be typed, as they are now.
#[derive(Default)]
pub struct Assistant {
    relations: BTreeSet<String>,
    columns: BTreeSet<String>,
    functions: BTreeSet<String>,
    connectors: BTreeSet<String>,
    options: BTreeSet<String>,
    queries: BTreeSet<String>,
    settings: BTreeSet<String>,
    hinter: HistoryHinter,
}

impl Assistant {
    /// Takes the names from the session's catalog.
    pub fn new(session: &Session) -> Assistant {
        let catalog = session.catalog();
        let fields = catalog.relations().flat_map(|r| r.schema.iter().flat_map(|s| &s.fields));
        let mut functions: BTreeSet<String> = ssql_stdlib::function_names()
            .filter(|n| n.starts_with(|c: char| c.is_ascii_alphabetic()))
            .map(str::to_owned)
            .collect();
        functions.extend(catalog.functions().map(|f| f.name.clone()));
        functions.extend(catalog.natives.names().map(str::to_owned));
        Assistant {
            relations: catalog.relations().map(|r| r.name.clone()).collect(),
            columns: fields.map(|f| f.name.clone()).collect(),
            functions,
            connectors: catalog.connectors().map(|c| c.name.to_owned()).collect(),
            options: catalog.connectors().flat_map(|c| c.options.iter().map(|o| o.name.to_owned())).collect(),
            queries: session.handles().iter().map(|h| h.name().to_owned()).collect(),
            settings: catalog.settings.all().into_iter().map(|(name, _)| name.to_owned()).collect(),
            hinter: HistoryHinter::new(),
        }
    }

    /// The words that may stand at the end of `before`, whose last word begins with `stem`.
    fn candidates(&self, before: &str, stem: &str) -> Vec<String> {
        let tokens = lex(before, &mut Vec::new()).tokens;
        let text = |i: usize| {
            let token = tokens.iter().rev().nth(i)?;
            Some(before.get(token.span.start as usize..token.span.end as usize)?.to_ascii_uppercase())
        };
        let last = text(0).unwrap_or_default();
        let sets: Vec<&BTreeSet<String>> = match last.as_str() {
            "USING" => vec![&self.connectors],
            "FROM" | "JOIN" | "INTO" | "DESCRIBE" | "DESC" | "STREAM" | "TABLE" | "VIEW" | "SINK" => {
                vec![&self.relations]
            }
            "QUERY" | "STATUS" | "PROGRESS" | "FOR" => vec![&self.queries, &self.columns],
            "SET" | "RESET" => vec![&self.settings],
            _ if in_options(before) => vec![&self.options],
            _ => vec![&self.columns, &self.relations, &self.functions],
        };
        let starts = |name: &str| name.len() > stem.len() && name.to_lowercase().starts_with(&stem.to_lowercase());
        let mut found: Vec<String> = sets.into_iter().flatten().filter(|n| starts(n)).cloned().collect();
        let lower = stem.starts_with(|c: char| c.is_ascii_lowercase());
        let words = KEYWORDS.iter().chain(SQL_WORDS).filter(|w| !stem.is_empty() && starts(w));
        let mut words: Vec<String> =
            words.map(|w| if lower { w.to_ascii_lowercase() } else { (*w).to_owned() }).collect();
        words.sort();
        words.dedup();
        words.retain(|w| !found.contains(w));
        found.extend(words);
        found
    }
}

/// Whether the text ends inside `OPTIONS (`.
fn in_options(before: &str) -> bool {
    let upper = before.to_ascii_uppercase();
    upper.rfind("OPTIONS").is_some_and(|at| {
        let rest = &before[at + "OPTIONS".len()..];
        rest.matches('(').count() > rest.matches(')').count()
    })
}

/// Whether the text is a whole statement, or one of the prompt's own commands.
fn is_whole(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or("").trim_end_matches(';').to_ascii_lowercase();
    if first.is_empty() || COMMANDS.contains(&first.as_str()) {
        return true;
    }
    let tokens = lex(text, &mut Vec::new()).tokens;
    let code = tokens.iter().rev().find(|t| !matches!(t.kind, TokenKind::LineComment | TokenKind::BlockComment));
    // BEGIN ... END holds statements of its own.
    let open = tokens.iter().fold(0_i32, |open, t| {
        match text.get(t.span.start as usize..t.span.end as usize).map(str::to_ascii_uppercase).as_deref() {
            Some("BEGIN") => open + 1,
            Some("END") if open > 0 => open - 1,
            _ => open,
        }
    });
    open == 0 && code.is_some_and(|t| t.kind == TokenKind::Semicolon)
}

impl Completer for Assistant {
    type Candidate = String;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        let before = &line[..pos];
        let start = before
            .rfind(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.'))
            .map_or(0, |at| at + before[at..].chars().next().map_or(0, char::len_utf8));
        Ok((start, self.candidates(&before[..start], &before[start..])))
    }
}

impl Validator for Assistant {
    fn validate(&self, ctx: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let whole = is_whole(ctx.input());
        Ok(if whole { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

impl Hinter for Assistant {
    type Hint = String;

    fn hint(&self, line: &str, pos: usize, ctx: &Context<'_>) -> Option<String> {
        if line.trim().is_empty() { None } else { self.hinter.hint(line, pos, ctx) }
    }
}

impl Highlighter for Assistant {
    fn highlight<'l>(&self, line: &'l str, _pos: usize) -> Cow<'l, str> {
        if std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty()) {
            return Cow::Borrowed(line);
        }
        let lexed = lex(line, &mut Vec::new());
        let colour = |kind: TokenKind, text: &str| match kind {
            TokenKind::String | TokenKind::RawString | TokenKind::HexString => Some("32"),
            TokenKind::Number => Some("36"),
            TokenKind::Word if Keyword::lookup(text).is_some() || is_word(text) => Some("1;34"),
            TokenKind::Word if self.functions.contains(&text.to_lowercase()) => Some("35"),
            TokenKind::Unterminated => Some("31"),
            _ => None,
        };
        let mut out = String::new();
        let mut at = 0;
        for token in &lexed.tokens {
            let (start, end) = (token.span.start as usize, token.span.end as usize);
            let (Some(gap), Some(text)) = (line.get(at..start), line.get(start..end)) else {
                return Cow::Borrowed(line);
            };
            out.push_str(gap);
            match colour(token.kind, text) {
                Some(code) => out.push_str(&format!("\x1b[{code}m{text}\x1b[0m")),
                None => out.push_str(text),
            }
            at = end;
        }
        out.push_str(line.get(at..).unwrap_or(""));
        Cow::Owned(out)
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        Cow::Owned(format!("\x1b[90m{hint}\x1b[0m"))
    }

    fn highlight_char(&self, _line: &str, _pos: usize, kind: CmdKind) -> bool {
        kind != CmdKind::MoveCursor
    }
}

fn is_word(text: &str) -> bool {
    SQL_WORDS.iter().any(|w| w.eq_ignore_ascii_case(text))
}

impl Helper for Assistant {}

#[cfg(test)]
mod tests {
    use ssql_grammar::SourceFile;

    use super::*;
    use crate::session::SessionConfig;

    fn assistant() -> Assistant {
        let mut session = Session::new(SessionConfig::default()).expect("a session");
        let text = "CREATE STREAM readings (event_time TIMESTAMP, temperature DOUBLE) USING memory;";
        session.run_script(&SourceFile::new("test", text)).expect("it runs");
        Assistant::new(&session)
    }

    #[test]
    fn names_come_from_the_catalog() {
        let a = assistant();
        assert_eq!(a.candidates("SELECT * FROM ", "rea"), ["readings"]);
        assert_eq!(a.candidates("SELECT ", "temper"), ["temperature"]);
        assert_eq!(a.candidates("SELECT ", "try_div"), ["try_divide"]);
        assert_eq!(a.candidates("CREATE STREAM r USING ", "ra"), ["rate"]);
        assert_eq!(a.candidates("CREATE STREAM r USING rate OPTIONS (", "rowsP"), ["rowsPerSecond"]);
        assert_eq!(a.candidates("", "SEL"), ["SELECT"]);
        assert_eq!(a.candidates("", "sel"), ["select"]);
        assert_eq!(a.candidates("SET ", "watermark.p"), ["watermark.policy"]);
    }

    #[test]
    fn a_statement_ends_at_its_semicolon() {
        for whole in ["SELECT 1;", "exit", "help me", "SELECT ';' ; -- done", "", "timing on"] {
            assert!(is_whole(whole), "{whole}");
        }
        for open in
            ["SELECT 1", "SELECT ';'", "SELECT '", "SELECT 1 -- ;", "CREATE SINK s FOREACH BATCH AS BEGIN SELECT 1;"]
        {
            assert!(!is_whole(open), "{open}");
        }
    }

    #[test]
    fn colours_keep_the_text() {
        let a = assistant();
        let line = "SELECT upper('ä') FROM readings -- é\nWHERE 1 < 2;";
        let coloured = a.highlight(line, 0).into_owned();
        let mut plain = String::new();
        let mut rest = coloured.as_str();
        while let Some((text, tail)) = rest.split_once("\x1b[") {
            plain.push_str(text);
            rest = tail.split_once('m').expect("an escape ends").1;
        }
        assert_eq!(plain + rest, line);
        assert!(coloured.contains("\x1b[1;34mSELECT\x1b[0m"));
    }
}
