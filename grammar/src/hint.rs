//! What a syntax error was probably meant to be: one table of usual slips and of other dialects' forms.
//!
//! A hint looks at the tokens around the place where the parser gave up. It adds a help, and where the parser's own
//! words would mislead it also says what is wrong and where.

use crate::diagnostic::Diagnostic;
use crate::keyword::STATEMENT_STARTS;
use crate::lift::{UNITS, interval_end, is_word};
use crate::source::Span;
use crate::token::{SYNTAX, Token, TokenKind};

/// The tokens of a statement or fragment, and the one that was not expected.
pub(crate) struct Place<'t> {
    pub(crate) text: &'t str,
    pub(crate) tokens: &'t [Token],
    /// Its position; the number of tokens at the end.
    pub(crate) at: usize,
}

/// What a hint found.
struct Found {
    span: Span,
    /// Replaces the parser's message.
    message: Option<String>,
    help: String,
}

/// A slip, or a form that other dialects have.
struct Hint {
    /// The condition when the hint replaces the message: a slip, or a feature that is refused by name.
    condition: &'static str,
    find: fn(&Place<'_>) -> Option<Found>,
}

const REFUSED: &str = "UNSUPPORTED_FEATURE";

/// The first that finds something speaks.
const HINTS: &[Hint] = &[
    Hint { condition: REFUSED, find: match_recognize },
    Hint { condition: REFUSED, find: temporal_join },
    Hint { condition: REFUSED, find: constraint },
    Hint { condition: REFUSED, find: computed_column },
    Hint { condition: SYNTAX, find: watermark_order },
    Hint { condition: SYNTAX, find: emit_in_brackets },
    Hint { condition: SYNTAX, find: operand_before_emit },
    Hint { condition: SYNTAX, find: unfinished_emit },
    Hint { condition: SYNTAX, find: trigger },
    Hint { condition: SYNTAX, find: missing_semicolon },
    Hint { condition: SYNTAX, find: misspelt_unit },
    Hint { condition: SYNTAX, find: bare_interval },
    Hint { condition: SYNTAX, find: comma_before_interval },
    Hint { condition: SYNTAX, find: trailing_comma },
    Hint { condition: SYNTAX, find: unclosed_case },
    Hint { condition: SYNTAX, find: overwrite },
    Hint { condition: SYNTAX, find: bare_option },
    Hint { condition: SYNTAX, find: foreign_clause },
    Hint { condition: SYNTAX, find: comma_between_columns },
];

/// The diagnostic with the hint that fits, and whether one did.
pub(crate) fn apply(diagnostic: Diagnostic, place: &Place<'_>) -> (Diagnostic, bool) {
    for hint in HINTS {
        let Some(found) = (hint.find)(place) else { continue };
        let diagnostic = match found.message {
            Some(message) => {
                Diagnostic { secondary: diagnostic.secondary, ..Diagnostic::error(hint.condition, message) }
                    .at(found.span)
            }
            None => diagnostic,
        };
        return (diagnostic.with_help(found.help), true);
    }
    (diagnostic, false)
}

impl Place<'_> {
    fn is(&self, i: usize, word: &str) -> bool {
        is_word(self.text, self.tokens, i, word)
    }

    fn is_in(&self, i: usize, words: &[&str]) -> bool {
        words.iter().any(|w| self.is(i, w))
    }

    fn kind(&self, i: usize) -> Option<TokenKind> {
        self.tokens.get(i).map(|t| t.kind)
    }

    fn word(&self, i: usize) -> &str {
        self.tokens.get(i).map_or("", |t| &self.text[t.span.range()])
    }

    fn is_name(&self, i: usize) -> bool {
        matches!(self.kind(i), Some(TokenKind::Word | TokenKind::Quoted))
    }

    /// From token `first` to token `last`.
    fn span(&self, first: usize, last: usize) -> Span {
        let end = self.tokens.len().saturating_sub(1);
        match (self.tokens.get(first.min(end)), self.tokens.get(last.min(end))) {
            (Some(a), Some(b)) => a.span.to(b.span),
            _ => Span::default(),
        }
    }

    /// The first position of these words in a row.
    fn find(&self, words: &[&str]) -> Option<usize> {
        (0..self.tokens.len()).find(|i| words.iter().enumerate().all(|(k, w)| self.is(i + k, w)))
    }

    /// Open brackets before token `i`.
    fn depth(&self, i: usize) -> usize {
        self.tokens[..i.min(self.tokens.len())].iter().fold(0usize, |depth, t| match t.kind {
            TokenKind::LParen => depth + 1,
            TokenKind::RParen => depth.saturating_sub(1),
            _ => depth,
        })
    }
}

fn says(span: Span, message: impl Into<String>, help: impl Into<String>) -> Option<Found> {
    Some(Found { span, message: Some(message.into()), help: help.into() })
}

fn helps(help: impl Into<String>) -> Option<Found> {
    Some(Found { span: Span::default(), message: None, help: help.into() })
}

fn match_recognize(p: &Place<'_>) -> Option<Found> {
    let i = p.find(&["MATCH_RECOGNIZE"]).filter(|i| p.kind(i + 1) == Some(TokenKind::LParen))?;
    says(
        p.span(i, i),
        "`MATCH_RECOGNIZE` is not part of this dialect",
        "Join the stream with itself over a range of event time, or group by a window and compare its aggregates.",
    )
}

fn temporal_join(p: &Place<'_>) -> Option<Found> {
    let i = p.find(&["FOR", "SYSTEM_TIME"]).or_else(|| p.find(&["FOR", "SYSTEM_VERSION"]))?;
    says(
        p.span(i, i + 3),
        format!("`FOR {} AS OF` is not part of this dialect", p.word(i + 1).to_uppercase()),
        "Join the table by its name, stream JOIN table ON ...: each micro-batch sees the table's present rows.",
    )
}

/// `id INT PRIMARY KEY` and kin: the place is in or behind a column's type.
fn constraint(p: &Place<'_>) -> Option<Found> {
    let words = ["PRIMARY", "UNIQUE", "REFERENCES", "METADATA", "GENERATED", "CONSTRAINT", "AUTO_INCREMENT"];
    if p.find(&["SELECT"]).is_some() {
        return None;
    }
    let at = match p.find(&["PRIMARY", "KEY"]) {
        Some(at) => at,
        None if p.is_in(p.at, &words) => p.at,
        None => return None,
    };
    let key = usize::from(p.is(at + 1, "KEY"));
    let name = p.span(at, at + key);
    let what = p.text[name.range()].to_uppercase();
    says(
        name,
        format!("`{what}` is not part of this dialect"),
        "A column takes NOT NULL and COMMENT only; duplicates are taken away by SELECT DISTINCT ON (key).",
    )
}

/// `c AS expression` among declared columns: what stands as the type begins with AS.
fn computed_column(p: &Place<'_>) -> Option<Found> {
    if p.at > 1 || !p.is(0, "AS") {
        return None;
    }
    let help = match p.is(1, "PROCTIME") {
        true => "Leave it out and use current_timestamp(), the processing time of the micro-batch, in the query.",
        false => "Declare the columns of the data only, and compute in a view: CREATE VIEW v AS SELECT *, ... FROM s.",
    };
    says(p.span(0, 0), "computed columns are not part of this dialect", help)
}

/// The parts of a relation's watermark in another order, or one of them missing.
fn watermark_order(p: &Place<'_>) -> Option<Found> {
    // `WATERMARK ts DELAY OF ...` among declared columns: what stands as the type is `ts DELAY ...`.
    if p.at == 1 && p.is(1, "DELAY") && p.is_name(0) {
        let help = format!("In a column list write WATERMARK FOR {} DELAY OF INTERVAL 10 MINUTES.", p.word(0));
        return says(p.span(0, 1), "`FOR` is missing from the watermark", help);
    }
    let i = (0..p.tokens.len()).rev().find(|i| p.is(*i, "WATERMARK") && *i <= p.at)?;
    if p.is(i.wrapping_sub(1), "WITHIN") {
        return None;
    }
    let column = if p.is(i + 1, "FOR") { i + 2 } else { i + 1 };
    let head = if p.is(i + 1, "FOR") { "WATERMARK FOR" } else { "WATERMARK" };
    if p.is_in(column, &["DELAY", "INTERVAL"]) {
        let amount = if p.is(column, "DELAY") { column + 1 + usize::from(p.is(column + 1, "OF")) } else { column };
        let end = interval_end(p.text, p.tokens, amount).saturating_sub(1).max(i);
        let name = if p.is_in(end + 1, &["ON", "FOR"]) { end + 2 } else { end + 1 };
        let name = if p.is_name(name) && !p.is_in(name, &["EMIT", "WHERE", "GROUP"]) { p.word(name) } else { "ts" };
        return says(
            p.span(i, end),
            "a watermark names its column first, then its delay",
            format!("Write {head} {name} DELAY OF INTERVAL 10 MINUTES."),
        );
    }
    let delay = column + 1;
    if p.is_name(column) && (p.is(delay, "INTERVAL") || (p.is(delay, "DELAY") && !p.is(delay + 1, "OF"))) {
        let end = if p.is(delay, "DELAY") { delay + 1 } else { delay };
        return says(
            p.span(i, end),
            "`DELAY OF` is missing from the watermark",
            format!("Write {head} {} DELAY OF INTERVAL 10 MINUTES.", p.word(column)),
        );
    }
    let behind = p.at <= i + 3 && p.find(&["DELAY"]).is_none();
    behind.then(|| helps(format!("A watermark is written {head} column DELAY OF INTERVAL 10 MINUTES."))).flatten()
}

const MODES: &[&str] = &["APPEND", "UPDATE", "COMPLETE", "FINAL", "CHANGES"];

fn emit_in_brackets(p: &Place<'_>) -> Option<Found> {
    let i = (0..p.tokens.len()).find(|i| p.is(*i, "EMIT") && p.is_in(i + 1, MODES) && p.depth(*i) > 0)?;
    if p.at > i + 1 || p.depth(p.tokens.len()) > 0 {
        return None;
    }
    says(
        p.span(i, i + 1),
        "`EMIT` stands inside brackets, but belongs to the whole statement",
        format!("Put EMIT {} behind the closing bracket.", p.word(i + 1).to_uppercase()),
    )
}

/// `WHERE a AND EMIT APPEND`: EMIT was taken for the operand that is missing before it.
fn operand_before_emit(p: &Place<'_>) -> Option<Found> {
    let emit = p.at.checked_sub(1).filter(|e| p.is(*e, "EMIT") && p.is_in(p.at, MODES))?;
    let before = emit.checked_sub(1)?;
    says(
        p.span(before, before),
        format!("expected an expression between `{}` and `EMIT`", p.word(before)),
        format!("Complete what `{}` begins, or take it away.", p.word(before)),
    )
}

fn unfinished_emit(p: &Place<'_>) -> Option<Found> {
    let before = p.at.checked_sub(1)?;
    let near = |w: &str| crate::keyword::nearest(w, MODES.iter().copied()).is_some();
    (p.is(before, "EMIT") && !near(p.word(p.at)))
        .then(|| {
            helps(
                "Write EMIT APPEND (rows that are final), EMIT UPDATE (changed groups) or EMIT COMPLETE (all groups).",
            )
        })
        .flatten()
}

fn trigger(p: &Place<'_>) -> Option<Found> {
    let before = p.at.checked_sub(1)?;
    p.is(before, "TRIGGER")
        .then(|| {
            helps(
                "Write TRIGGER PROCESSING TIME INTERVAL 5 SECONDS, TRIGGER AVAILABLE NOW or TRIGGER ONCE, after EMIT.",
            )
        })
        .flatten()
}

fn missing_semicolon(p: &Place<'_>) -> Option<Found> {
    let previous = p.at.checked_sub(1)?;
    if !p.is_in(p.at, STATEMENT_STARTS) || p.depth(p.at) > 0 {
        return None;
    }
    let gap = Span::new(p.tokens[previous].span.end, p.tokens[p.at].span.start);
    if !p.text[gap.range()].contains('\n') {
        return None;
    }
    let last = p.tokens[previous].span;
    let final_character = p.text[last.range()].chars().next_back().map_or(0, char::len_utf8) as u32;
    says(
        Span::new(last.end - final_character, last.end),
        format!("expected `;` after this, before `{}`", p.word(p.at)),
        "Statements end with `;`.",
    )
}

/// `INTERVAL 5 MINUTS`.
fn misspelt_unit(p: &Place<'_>) -> Option<Found> {
    let amount = p.at.checked_sub(1)?;
    let interval = amount.checked_sub(1).is_some_and(|i| p.is(i, "INTERVAL"));
    if !interval || p.kind(p.at) != Some(TokenKind::Word) || p.is_in(p.at, UNITS) {
        return None;
    }
    let near = crate::keyword::nearest(p.word(p.at), UNITS.iter().copied())?;
    says(p.span(p.at, p.at), format!("`{}` is no unit of an interval", p.word(p.at)), format!("Did you mean `{near}`?"))
}

/// `5 MINUTES` without INTERVAL.
fn bare_interval(p: &Place<'_>) -> Option<Found> {
    let number = p.at.checked_sub(1)?;
    let unit = p.is_in(p.at, UNITS);
    let amount = matches!(p.kind(number), Some(TokenKind::Number | TokenKind::String));
    if !unit || !amount || number.checked_sub(1).is_some_and(|i| p.is(i, "INTERVAL")) {
        return None;
    }
    let (number_text, unit_text) = (p.word(number).trim_matches('\''), p.word(p.at));
    says(
        p.span(number, p.at),
        "a length of time is written with INTERVAL",
        format!(
            "Write INTERVAL {number_text} {}, or '{number_text} {}'.",
            unit_text.to_uppercase(),
            unit_text.to_lowercase()
        ),
    )
}

fn comma_before_interval(p: &Place<'_>) -> Option<Found> {
    let before = p.at.checked_sub(1)?;
    let operand = p.is_name(before) || p.kind(before) == Some(TokenKind::RParen);
    (p.is(p.at, "INTERVAL") && operand && p.depth(p.at) > 0)
        .then(|| helps("Is a comma missing before INTERVAL?"))
        .flatten()
}

fn trailing_comma(p: &Place<'_>) -> Option<Found> {
    // The parser may only notice one word later.
    let from = [p.at, p.at.wrapping_sub(1)].into_iter().find(|i| p.is_in(*i, &["FROM", "WHERE", "GROUP", "EMIT"]))?;
    let comma = from.checked_sub(1).filter(|c| p.kind(*c) == Some(TokenKind::Comma))?;
    says(
        p.span(comma, comma),
        format!("expected a further item between `,` and `{}`", p.word(from).to_uppercase()),
        "Take the comma away, or add the item.",
    )
}

fn unclosed_case(p: &Place<'_>) -> Option<Found> {
    let count = |word: &str| (0..p.tokens.len()).filter(|i| p.is(*i, word)).count();
    if count("CASE") <= count("END") {
        return None;
    }
    let case = (0..p.tokens.len()).rev().find(|i| p.is(*i, "CASE"))?;
    says(p.span(case, case), "this `CASE` has no `END`", "Close it: CASE WHEN ... THEN ... ELSE ... END.")
}

fn overwrite(p: &Place<'_>) -> Option<Found> {
    (p.is(p.at, "OVERWRITE") && p.at == 1)
        .then(|| helps("Write INSERT INTO; a streaming query that shall replace its whole result says EMIT COMPLETE."))
        .flatten()
}

/// `OPTIONS (key word)`.
fn bare_option(p: &Place<'_>) -> Option<Found> {
    let open = (0..p.at).rev().find(|i| p.kind(*i) == Some(TokenKind::LParen))?;
    let options = open.checked_sub(1).is_some_and(|i| p.is_in(i, &["OPTIONS", "WITH"])) && p.depth(p.at) == 1;
    let begins = [Some(TokenKind::LParen), Some(TokenKind::Comma)].contains(&p.kind(p.at.checked_sub(1)?));
    (options && !begins && p.kind(p.at) == Some(TokenKind::Word))
        .then(|| helps(format!("A text stands in single quotes: '{}'.", p.word(p.at))))
        .flatten()
}

/// Clauses of other dialects' CREATE statements.
fn foreign_clause(p: &Place<'_>) -> Option<Found> {
    if !p.is(0, "CREATE") {
        return None;
    }
    let help = match p.word(p.at).to_ascii_uppercase().as_str() {
        "FORMAT" | "STORED" | "ROW" | "TYPE" => "The format is the connector: USING json.",
        "PATH" | "LOCATIONS" => "The place of the data is LOCATION 'path'.",
        "TBLPROPERTIES" | "PROPERTIES" | "OPTION" => "Write OPTIONS (key value, ...).",
        "PARTITION" => "Write PARTITIONED BY (column, ...).",
        "CLUSTERED" | "CLUSTER" | "DISTRIBUTED" | "SORTED" => {
            "Leave it out: files are laid out by PARTITIONED BY only."
        }
        _ => return None,
    };
    helps(help)
}

/// `(a INT b STRING)`: behind a type stands a name with a type.
fn comma_between_columns(p: &Place<'_>) -> Option<Found> {
    let types = [
        "BOOLEAN",
        "TINYINT",
        "SMALLINT",
        "INT",
        "INTEGER",
        "BIGINT",
        "LONG",
        "FLOAT",
        "DOUBLE",
        "DECIMAL",
        "STRING",
        "BINARY",
        "DATE",
        "TIMESTAMP",
        "TIMESTAMP_NTZ",
        "ARRAY",
        "MAP",
        "STRUCT",
        "VARCHAR",
    ];
    let type_before = p.at.checked_sub(1).is_some_and(|i| p.is_in(i, &types) || p.kind(i) == Some(TokenKind::RParen));
    (p.is_name(p.at) && type_before && p.is_in(p.at + 1, &types) && p.find(&["SELECT"]).is_none())
        .then(|| helps(format!("Is a comma missing before `{}`?", p.word(p.at))))
        .flatten()
}
