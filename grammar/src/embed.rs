//! The border to sqlparser: spans of its nodes, and the look-ups that tie streaming clauses to its tree.
//!
//! sqlparser is fed our own tokens, never text, and each token's location is `(line 1, column = byte offset + 1)` of
//! the script. So its locations are script positions already, and this file is the only one that knows so.

use sqlparser::ast::Spanned;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Span as SqlSpan, Token as SqlToken};

use crate::ast::{DataType, Embedded, Expr, Merge, Query, StreamClauses, TableArgument, Watermark};
use crate::check::check;
use crate::diagnostic::Diagnostic;
use crate::dialect::SsqlDialect;
use crate::extent::Extents;
use crate::hint::Place;
use crate::keyword::{QUERY_WORDS, nearest};
use crate::lift::lift;
use crate::parse::quote_found;
use crate::source::Span;
use crate::sql;
use crate::token::{SYNTAX, Token, TokenKind};

/// The script position as a sqlparser location.
pub(crate) fn to_location(at: u32) -> Location {
    Location::new(1, u64::from(at) + 1)
}

/// A script span as a sqlparser span.
pub(crate) fn to_sql_span(span: Span) -> SqlSpan {
    SqlSpan::new(to_location(span.start), to_location(span.end))
}

/// A sqlparser span as a script span; None for sqlparser's "unknown".
pub fn script_span(span: SqlSpan) -> Option<Span> {
    if span.start.line == 0 || span.end.line == 0 {
        return None;
    }
    let at = |l: Location| u32::try_from(l.column.saturating_sub(1)).unwrap_or(u32::MAX);
    Some(Span::new(at(span.start), at(span.end)))
}

/// The script span of any sqlparser node: `span_of(&expr)`. None where sqlparser records none (a lambda, `*` in a call,
/// some statements): fall back to the enclosing node's, at last to [`crate::ast::Embedded::span`].
///
/// sqlparser's spans cover the identifiers and literals of a node, not always its brackets and keywords: a call's span
/// begins at its name and may end before its `)`.
pub fn span_of<T: Spanned>(node: &T) -> Option<Span> {
    script_span(node.span())
}

/// The span of one identifier.
pub fn ident_span(ident: &sql::Ident) -> Option<Span> {
    script_span(ident.span)
}

/// The span of a relation in FROM without its alias: the key of [`StreamClauses::watermark`].
pub fn factor_span(factor: &sql::TableFactor) -> Option<Span> {
    match factor {
        sql::TableFactor::Table { name, .. } => span_of(name),
        sql::TableFactor::Derived { subquery, .. } => span_of(subquery.as_ref()),
        sql::TableFactor::TableFunction { expr, .. } => span_of(expr),
        sql::TableFactor::Function { name, .. } => span_of(name),
        other => span_of(other),
    }
}

impl StreamClauses {
    /// The WATERMARK clause that follows this relation.
    pub fn watermark(&self, factor: &sql::TableFactor) -> Option<&Watermark> {
        if self.watermarks.is_empty() {
            return None;
        }
        let key = factor_span(factor)?;
        self.watermarks.iter().find(|w| w.relation == key).map(|w| &w.watermark)
    }

    /// The words `WITHIN WATERMARK` after this SELECT's DISTINCT ON.
    pub fn within_watermark(&self, select: &sql::Select) -> Option<Span> {
        let start = script_span(select.select_token.0.span)?.start;
        self.within_watermarks.iter().find(|w| w.select_start == start).map(|w| w.span)
    }

    /// The `TABLE` argument that this expression is: `TUMBLE(TABLE s, ...)` has the identifier `s` as its argument's
    /// expression, `TUMBLE(TABLE (SELECT ...), ...)` the subquery.
    pub fn table_argument(&self, argument: &sql::Expr) -> Option<&TableArgument> {
        let start = span_of(argument)?.start;
        self.table_arguments.iter().find(|t| t.start == start)
    }

    /// The word STREAM before this relation.
    pub fn stream_read(&self, factor: &sql::TableFactor) -> Option<Span> {
        let start = factor_span(factor)?.start;
        self.stream_reads.iter().find(|s| s.start == start).map(|s| s.span)
    }
}

/// Brackets deeper than this are refused: every later stage recurses over the tree.
const MAX_NESTING: u32 = 100;

/// Operators without a comma between them, summed over all open brackets: sqlparser makes a tree as deep as that.
const MAX_CHAIN: u32 = 600;

/// UNION and its kin (and PIVOTs), summed likewise; their tree nodes are large, and so is the stack to walk them.
const MAX_SET_OPERATIONS: u32 = 64;

/// sqlparser's own guard, in its units (about two for each bracket).
const MAX_RECURSION: usize = 300;

/// Parses a query.
pub(crate) fn parse_query(text: &str, tokens: &[Token], place: Span) -> Result<Query, Box<Diagnostic>> {
    parse_run(text, tokens, place, "a query", |p| p.parse_query())
}

/// Parses a scalar expression.
pub(crate) fn parse_expr(text: &str, tokens: &[Token], place: Span) -> Result<Expr, Box<Diagnostic>> {
    parse_run(text, tokens, place, "an expression", |p| p.parse_expr())
}

/// Parses a type.
pub(crate) fn parse_data_type(text: &str, tokens: &[Token], place: Span) -> Result<DataType, Box<Diagnostic>> {
    parse_run(text, tokens, place, "a type", |p| p.parse_data_type())
}

/// Parses a MERGE statement.
pub(crate) fn parse_merge(text: &str, tokens: &[Token], place: Span) -> Result<Merge, Box<Diagnostic>> {
    parse_run(text, tokens, place, "`MERGE`", |p| {
        let merge = p.next_token();
        p.parse_merge(merge).map(Box::new)
    })
}

fn parse_run<T: sql::VisitMut>(
    text: &str,
    tokens: &[Token],
    place: Span,
    what: &str,
    parse: impl FnOnce(&mut Parser<'_>) -> Result<T, ParserError>,
) -> Result<Embedded<T>, Box<Diagnostic>> {
    let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else {
        return Err(Box::new(Diagnostic::error(SYNTAX, format!("expected {what}")).at(place)));
    };
    let span = first.span.to(last.span);
    refuse_depth(text, tokens)?;
    let mut lifted = lift(text, tokens)?;
    let handed_on = std::mem::take(&mut lifted.tokens);
    let dialect = SsqlDialect;
    let mut parser = Parser::new(&dialect).with_recursion_limit(MAX_RECURSION).with_tokens_with_locations(handed_on);
    let parsed = parse(&mut parser).and_then(|tree| match parser.peek_token_ref() {
        t if t.token == SqlToken::EOF => Ok(tree),
        t => parser.expected_ref("end of statement", t),
    });
    let mut sql = parsed.map_err(|e| Box::new(explain(text, tokens, span, &e)))?;
    let mut clauses = check(&mut sql, lifted, span)?;
    clauses.extents = Extents::of(text, tokens);
    Ok(Embedded { sql, clauses, span })
}

/// Refuses text whose tree would be too deep for the recursion of later stages.
fn refuse_depth(text: &str, tokens: &[Token]) -> Result<(), Box<Diagnostic>> {
    // Per open bracket: operators since the last comma, set operators since its begin.
    let mut levels = vec![(0u32, 0u32)];
    for token in tokens {
        let word = |words: &[&str]| words.iter().any(|w| text[token.span.range()].eq_ignore_ascii_case(w));
        let n = levels.len() as u32;
        let Some(level) = levels.last_mut() else { break };
        match token.kind {
            TokenKind::LParen | TokenKind::LBracket => levels.push((0, 0)),
            TokenKind::RParen | TokenKind::RBracket if n > 1 => {
                levels.pop();
            }
            TokenKind::Comma => level.0 = 0,
            TokenKind::Word if word(&["UNION", "EXCEPT", "INTERSECT", "MINUS", "PIVOT", "UNPIVOT"]) => level.1 += 1,
            TokenKind::Word
                if word(&[
                    "AND", "OR", "IS", "IN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "BETWEEN", "DIV", "AT", "COLLATE",
                ]) =>
            {
                level.0 += 1;
            }
            TokenKind::DoubleColon
            | TokenKind::Eq
            | TokenKind::Neq
            | TokenKind::Lt
            | TokenKind::LtEq
            | TokenKind::NullSafeEq
            | TokenKind::ShiftLeft
            | TokenKind::Gt
            | TokenKind::GtEq
            | TokenKind::Plus
            | TokenKind::Minus
            | TokenKind::Star
            | TokenKind::Slash
            | TokenKind::Percent
            | TokenKind::Concat
            | TokenKind::Pipe
            | TokenKind::Ampersand
            | TokenKind::Caret
            | TokenKind::Tilde
            | TokenKind::Bang => level.0 += 1,
            _ => {}
        }
        let (chain, sets) = levels.iter().fold((0, 0), |sum, level| (sum.0 + level.0, sum.1 + level.1));
        let limit = if levels.len() as u32 > MAX_NESTING {
            Some(format!("is nested more than {MAX_NESTING} deep"))
        } else if chain > MAX_CHAIN {
            Some(format!("has more than {MAX_CHAIN} operators in a row"))
        } else if sets > MAX_SET_OPERATIONS {
            Some(format!("has more than {MAX_SET_OPERATIONS} set operations in a row"))
        } else {
            None
        };
        if let Some(why) = limit {
            return Err(Box::new(too_complex(&why).at(token.span)));
        }
    }
    Ok(())
}

fn too_complex(why: &str) -> Diagnostic {
    Diagnostic::error("FAILED_TO_PARSE_TOO_COMPLEX", format!("the SQL text {why}"))
        .with_help("Split it up: name parts of it in a WITH clause or a view, or use IN or an array function.")
}

/// sqlparser's refusal as a diagnostic at the script's own token.
fn explain(text: &str, tokens: &[Token], span: Span, error: &ParserError) -> Diagnostic {
    let message = match error {
        ParserError::RecursionLimitExceeded => return too_complex("is nested too deep").at(span),
        ParserError::TokenizerError(m) | ParserError::ParserError(m) => m,
    };
    let (message, at) = split_location(message);
    let mut index = at.and_then(|at| tokens.iter().position(|t| t.span.start <= at && at < t.span.end));
    let expects = message.strip_prefix("Expected: ").or_else(|| message.strip_prefix("Expected "));
    let (expects, named) = match expects.map(|e| e.rsplit_once(", found: ").unwrap_or((e, ""))) {
        Some((expects, named)) => (Some(expects), named),
        None => (None, ""),
    };
    let word = |i: usize| &text[tokens[i].span.range()];
    // Some of its errors name one token and give the place of the next.
    if let Some(before) = index.unwrap_or(tokens.len()).checked_sub(1)
        && !named.is_empty()
        && word(before).eq_ignore_ascii_case(named)
        && !index.is_some_and(|i| word(i).eq_ignore_ascii_case(named))
    {
        index = Some(before);
    }
    let found = index.map_or("the end of the text".to_string(), |i| quote_found(word(i)));
    let place = index.map_or(Span::new(span.end, span.end), |i| tokens[i].span);
    let message = match expects {
        Some("end of statement") => format!("expected the end of the query or a further clause, found {found}"),
        Some(expected) => {
            let expected = expected.trim_end_matches(':');
            let symbol = !expected.is_empty() && expected.chars().all(|c| c.is_ascii_punctuation());
            let expected = if symbol { format!("`{expected}`") } else { expected.to_string() };
            format!("expected {expected}, found {found}")
        }
        None => {
            let mut chars = message.trim_end_matches('.').chars();
            let first = chars.next().map(|c| c.to_lowercase().to_string()).unwrap_or_default();
            format!("{first}{}", chars.as_str())
        }
    };
    let mut diagnostic = Diagnostic::error(SYNTAX, message).at(place);
    if let Some(open) = unclosed_bracket(tokens) {
        diagnostic = diagnostic.with_label(tokens[open].span, "never closed");
    }
    let at = index.unwrap_or(tokens.len());
    let (diagnostic, hinted) = crate::hint::apply(diagnostic, &Place { text, tokens, at });
    if hinted {
        return diagnostic;
    }
    // A misspelt clause word is taken for an alias, and the mistake shows one word later.
    let near = (at.saturating_sub(2)..=at).rev().find_map(|i| {
        let token = tokens.get(i).filter(|t| t.kind == TokenKind::Word)?;
        nearest(&text[token.span.range()], QUERY_WORDS.iter().copied()).map(|n| (token, n))
    });
    match near {
        Some((token, near)) => {
            let by = if matches!(near, "GROUP" | "ORDER" | "PARTITION") { " BY" } else { "" };
            diagnostic.with_help(format!("Did you mean `{near}{by}` for `{}`?", &text[token.span.range()]))
        }
        None => diagnostic,
    }
}

/// The innermost bracket that nothing closes.
pub(crate) fn unclosed_bracket(tokens: &[Token]) -> Option<usize> {
    let mut open = Vec::new();
    for (i, token) in tokens.iter().enumerate() {
        match token.kind {
            TokenKind::LParen | TokenKind::LBracket => open.push(i),
            TokenKind::RParen | TokenKind::RBracket => {
                open.pop();
            }
            _ => {}
        }
    }
    open.pop()
}

/// Splits sqlparser's ` at Line: 1, Column: n` from its message; the script position, when there is one.
fn split_location(message: &str) -> (&str, Option<u32>) {
    let Some((head, tail)) = message.rsplit_once(" at Line: ") else { return (message, None) };
    let column = tail.rsplit_once("Column: ").and_then(|(_, c)| c.trim().parse::<u32>().ok());
    match column {
        Some(column) => (head, Some(column.saturating_sub(1))),
        None => (message, None),
    }
}
