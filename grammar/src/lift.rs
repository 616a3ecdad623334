//! Turns a run of our tokens into sqlparser's, lifting out the streaming clauses that sqlparser does not know.
//!
//! sqlparser gets tokens, not text: each with its script position, so that no location ever needs re-basing, strings
//! are unescaped once by Spark's rules, and a lifted clause is simply not handed on. What is lifted:
//!
//! | text | handed on | kept as |
//! |---|---|---|
//! | `r WATERMARK e [AS n] DELAY OF i ... [AS a]` | `r <marker>` | [`RelationWatermark`] |
//! | `SELECT DISTINCT ON (k) WITHIN WATERMARK` | `SELECT DISTINCT ON (k)` | [`WithinWatermark`] |
//! | `TUMBLE(TABLE s PARTITION BY k, ...)` | `TUMBLE(s, ...)` | [`TableArgument`] |
//! | `FROM STREAM s`, `FROM STREAM(s)` | `FROM s` | [`StreamRead`] |
//! | `FROM TABLE(TUMBLE(...))` | `FROM TUMBLE(...)` | nothing: an alias |
//!
//! The marker is an alias with a name that no script can write. After parsing, `check` finds it on its table factor,
//! puts the real alias back (or none) and so knows for certain which relation the clause belongs to.

use sqlparser::keywords::{Keyword, RESERVED_FOR_TABLE_ALIAS};
use sqlparser::tokenizer::{Token as SqlToken, TokenWithSpan, Word};

use crate::ast::{Expr, StreamClauses, StreamRead, TableArgument, Watermark, WithinWatermark};
use crate::diagnostic::Diagnostic;
use crate::embed::{parse_expr, to_sql_span};
use crate::parse::parse_watermark;
use crate::source::Span;
use crate::sql;
use crate::token::{SYNTAX, Token, TokenKind, unescape_string, unquote_name};

/// A watermark whose relation is not known yet.
pub(crate) struct PendingWatermark {
    pub(crate) watermark: Watermark,
    /// The alias as the script has it.
    pub(crate) alias: Option<sql::Ident>,
    /// Whether AS stood before it.
    pub(crate) explicit: bool,
}

/// A run ready for sqlparser.
#[derive(Default)]
pub(crate) struct Lifted {
    pub(crate) tokens: Vec<TokenWithSpan>,
    /// All but the watermarks.
    pub(crate) clauses: StreamClauses,
    /// Watermark `i` has the alias [`marker`]`(i)`.
    pub(crate) watermarks: Vec<PendingWatermark>,
}

/// The alias that stands for watermark `i`; U+0001 occurs in no identifier.
pub(crate) fn marker(i: usize) -> String {
    format!("\u{1}watermark {i}")
}

/// The number of a marker alias.
pub(crate) fn marker_number(alias: &str) -> Option<usize> {
    alias.strip_prefix("\u{1}watermark ")?.parse().ok()
}

/// Lifts the streaming clauses out of a run.
pub(crate) fn lift(text: &str, tokens: &[Token]) -> Result<Lifted, Box<Diagnostic>> {
    let mut lifter =
        Lifter { text, tokens, at: 0, out: Lifted::default(), frames: vec![Frame::default()], dropped: Vec::new() };
    while lifter.at < tokens.len() {
        lifter.step()?;
    }
    Ok(lifter.out)
}

/// One level of brackets.
#[derive(Default, Clone, Copy)]
struct Frame {
    /// The bracket is a call's.
    call: bool,
    /// The last clause word on this level was FROM or JOIN.
    in_from: bool,
}

struct Lifter<'t> {
    text: &'t str,
    tokens: &'t [Token],
    at: usize,
    out: Lifted,
    frames: Vec<Frame>,
    /// Positions of tokens that are not handed on.
    dropped: Vec<usize>,
}

/// Words after which a bracket is no call's.
const NO_CALL: &[&str] = &[
    "FROM",
    "JOIN",
    "IN",
    "EXISTS",
    "AS",
    "UNION",
    "ALL",
    "EXCEPT",
    "INTERSECT",
    "MINUS",
    "DISTINCT",
    "AND",
    "OR",
    "NOT",
    "SELECT",
    "WHERE",
    "HAVING",
    "ON",
    "USING",
    "LATERAL",
    "ANY",
    "SOME",
    "BY",
    "OVER",
    "VALUES",
    "WHEN",
    "THEN",
    "ELSE",
    "TABLE",
    "STREAM",
    "WITH",
];

const FROM_ENDS: &[&str] = &[
    "SELECT",
    "WHERE",
    "GROUP",
    "HAVING",
    "ORDER",
    "LIMIT",
    "QUALIFY",
    "WINDOW",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "SET",
    "WHEN",
];

/// Interval units, as DELAY OF and its kin take them.
pub(crate) const UNITS: &[&str] = &[
    "YEAR",
    "YEARS",
    "QUARTER",
    "QUARTERS",
    "MONTH",
    "MONTHS",
    "WEEK",
    "WEEKS",
    "DAY",
    "DAYS",
    "HOUR",
    "HOURS",
    "MINUTE",
    "MINUTES",
    "SECOND",
    "SECONDS",
    "MILLISECOND",
    "MILLISECONDS",
    "MICROSECOND",
    "MICROSECONDS",
    "NANOSECOND",
    "NANOSECONDS",
];

/// Whether the token at `i` is a word of this spelling.
pub(crate) fn is_word(text: &str, tokens: &[Token], i: usize, word: &str) -> bool {
    tokens.get(i).is_some_and(|t| t.kind == TokenKind::Word && text[t.span.range()].eq_ignore_ascii_case(word))
}

/// Whether the token at `i`, which stands before `(`, names a call.
pub(crate) fn is_call_name(text: &str, tokens: &[Token], i: usize) -> bool {
    matches!(tokens.get(i).map(|t| t.kind), Some(TokenKind::Word | TokenKind::Quoted))
        && !NO_CALL.iter().any(|w| is_word(text, tokens, i, w))
}

/// The position behind the interval (or the string, number or parameter in its place) at `i`.
pub(crate) fn interval_end(text: &str, tokens: &[Token], i: usize) -> usize {
    let kind = |i: usize| tokens.get(i).map(|t| t.kind);
    let unit = |i: usize| UNITS.iter().any(|u| is_word(text, tokens, i, u));
    let amount = |i: usize| match kind(i) {
        Some(TokenKind::Number | TokenKind::String | TokenKind::RawString) => Some(i + 1),
        Some(TokenKind::Colon) if kind(i + 1) == Some(TokenKind::Word) => Some(i + 2),
        _ => None,
    };
    if !is_word(text, tokens, i, "INTERVAL") {
        return amount(i).unwrap_or(i + 1);
    }
    let mut end = i + 1;
    loop {
        let signed = if kind(end) == Some(TokenKind::Minus) { end + 1 } else { end };
        let Some(next) = amount(signed) else { return end };
        end = next;
        if unit(end) {
            end += 1;
            if is_word(text, tokens, end, "TO") && unit(end + 1) {
                end += 2;
            }
        }
    }
}

impl Lifter<'_> {
    fn kind(&self, i: usize) -> Option<TokenKind> {
        self.tokens.get(i).map(|t| t.kind)
    }

    fn is(&self, i: usize, word: &str) -> bool {
        is_word(self.text, self.tokens, i, word)
    }

    fn is_in(&self, i: usize, words: &[&str]) -> bool {
        words.iter().any(|w| self.is(i, w))
    }

    fn is_before(&self, word: &str) -> bool {
        self.at > 0 && self.is(self.at - 1, word)
    }

    fn is_name(&self, i: usize) -> bool {
        matches!(self.kind(i), Some(TokenKind::Word | TokenKind::Quoted))
    }

    fn frame(&mut self) -> &mut Frame {
        if self.frames.is_empty() {
            // More brackets close than open: sqlparser will refuse the text.
            self.frames.push(Frame::default());
        }
        self.frames.last_mut().expect("a frame was pushed above when there was none")
    }

    /// The bracket that closes the one at `open`.
    fn closing(&self, open: usize) -> Option<usize> {
        let mut depth = 0u32;
        for i in open..self.tokens.len() {
            match self.tokens[i].kind {
                TokenKind::LParen => depth += 1,
                TokenKind::RParen => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        return Some(i);
                    }
                }
                _ => {}
            }
        }
        None
    }

    fn step(&mut self) -> Result<(), Box<Diagnostic>> {
        let i = self.at;
        if self.dropped.contains(&i) {
            self.at += 1;
            return Ok(());
        }
        let kind = self.tokens[i].kind;
        match kind {
            TokenKind::LParen => {
                let call = i > 0 && is_call_name(self.text, self.tokens, i - 1);
                self.frames.push(Frame { call, in_from: false });
            }
            TokenKind::RParen => {
                self.frames.pop();
            }
            TokenKind::Word if self.word(i)? => return Ok(()),
            _ => {}
        }
        self.convert()
    }

    /// Looks at the word at `i`; true when it was lifted.
    fn word(&mut self, i: usize) -> Result<bool, Box<Diagnostic>> {
        let after_dot = i > 0 && self.kind(i - 1) == Some(TokenKind::Dot);
        if after_dot {
            return Ok(false);
        }
        if self.is_in(i, &["FROM", "JOIN", "USING"]) {
            self.frame().in_from = true;
        } else if self.is_in(i, FROM_ENDS) {
            self.frame().in_from = false;
        }
        if self.is(i, "SELECT") && self.is(i + 1, "DISTINCT") && self.is(i + 2, "ON") {
            self.within_watermark(i);
            return Ok(false);
        }
        let opens_relation = self.is_before("FROM")
            || self.is_before("JOIN")
            || (self.frame().in_from && i > 0 && self.kind(i - 1) == Some(TokenKind::Comma));
        if self.is(i, "STREAM") && opens_relation {
            return Ok(self.stream_read(i));
        }
        if self.is(i, "TABLE") && self.kind(i + 1) == Some(TokenKind::LParen) && opens_relation {
            // TABLE(TUMBLE(...)): only around a call, TABLE(name) is sqlparser's.
            let call = self.is_name(i + 2) && self.kind(i + 3) == Some(TokenKind::LParen);
            if let (true, Some(close)) = (call, self.closing(i + 1)) {
                self.dropped.extend([i + 1, close]);
                self.at = i + 1;
                return Ok(true);
            }
            return Ok(false);
        }
        let opens_argument = self.frame().call
            && i > 0
            && matches!(self.kind(i - 1), Some(TokenKind::LParen | TokenKind::Comma | TokenKind::FatArrow));
        if self.is(i, "TABLE") && opens_argument && (self.is_name(i + 1) || self.kind(i + 1) == Some(TokenKind::LParen))
        {
            self.table_argument(i)?;
            return Ok(true);
        }
        let after_relation = i > 0
            && (self.is_name(i - 1) || self.kind(i - 1) == Some(TokenKind::RParen))
            && !self.is_before("FROM")
            && !self.is_before("JOIN");
        if self.is(i, "WATERMARK") && self.frame().in_from && after_relation {
            return self.watermark(i);
        }
        Ok(false)
    }

    /// At a SELECT with DISTINCT ON: drops WITHIN WATERMARK behind the key list.
    fn within_watermark(&mut self, select: usize) {
        let Some(close) = self.closing(select + 3) else { return };
        if self.is(close + 1, "WITHIN") && self.is(close + 2, "WATERMARK") {
            self.out.clauses.within_watermarks.push(WithinWatermark {
                select_start: self.tokens[select].span.start,
                span: self.tokens[close + 1].span.to(self.tokens[close + 2].span),
            });
            self.dropped.extend([close + 1, close + 2]);
        }
    }

    fn stream_read(&mut self, i: usize) -> bool {
        let mut name = i + 1;
        if self.kind(name) == Some(TokenKind::LParen) {
            let Some(close) = self.closing(name) else { return false };
            self.dropped.extend([name, close]);
            name += 1;
        }
        // `FROM stream WHERE`, `FROM stream AS s`: a relation of that name.
        let is_alias_or_clause =
            self.is_in(name, &["AS", "WATERMARK", "TABLESAMPLE", "EMIT"]) || self.is_reserved(name);
        if !self.is_name(name) || is_alias_or_clause {
            self.dropped.retain(|d| *d != i + 1);
            return false;
        }
        self.out
            .clauses
            .stream_reads
            .push(StreamRead { start: self.tokens[name].span.start, span: self.tokens[i].span });
        self.at = i + 1;
        true
    }

    /// Whether the word at `i` cannot be an alias without AS.
    fn is_reserved(&self, i: usize) -> bool {
        let Some(token) = self.tokens.get(i) else { return true };
        token.kind == TokenKind::Word
            && matches!(SqlToken::make_word(&self.text[token.span.range()], None),
                SqlToken::Word(Word { keyword, .. }) if RESERVED_FOR_TABLE_ALIAS.contains(&keyword) || keyword == Keyword::TABLESAMPLE)
    }

    fn table_argument(&mut self, table: usize) -> Result<(), Box<Diagnostic>> {
        let mut first = table + 1;
        let mut end = match self.kind(first) {
            Some(TokenKind::LParen) => self.closing(first).map_or(self.tokens.len(), |c| c + 1),
            _ => {
                let mut i = first + 1;
                while self.kind(i) == Some(TokenKind::Dot) && self.is_name(i + 1) {
                    i += 2;
                }
                i
            }
        };
        while self.kind(first) == Some(TokenKind::LParen) {
            first += 1;
        }
        let start = self.tokens.get(first).map_or(self.tokens[table].span.end, |t| t.span.start);
        let mut partition_by = Vec::new();
        if self.is(end, "PARTITION") && self.is(end + 1, "BY") {
            let by = end;
            end = self.partition_keys(by + 2, &mut partition_by)?;
            self.dropped.extend(by..end);
        }
        let span = self.tokens[table].span.to(self.tokens[end - 1].span);
        self.out.clauses.table_arguments.push(TableArgument { start, partition_by, span });
        self.at = table + 1;
        Ok(())
    }

    /// Parses the keys of PARTITION BY and returns the position behind them. The list ends before the next argument:
    /// DESCRIPTOR(...), an interval or string, `name =>`, or the closing bracket.
    fn partition_keys(&self, from: usize, keys: &mut Vec<Expr>) -> Result<usize, Box<Diagnostic>> {
        let bracketed = self.kind(from) == Some(TokenKind::LParen)
            && self
                .closing(from)
                .is_some_and(|c| matches!(self.kind(c + 1), Some(TokenKind::Comma | TokenKind::RParen)));
        let (mut start, list_end) = match self.closing(from) {
            Some(close) if bracketed => (from + 1, close),
            _ => (from, self.tokens.len()),
        };
        let mut i = start;
        let mut depth = 0u32;
        loop {
            let kind = if i < list_end { self.kind(i) } else { None };
            let ends_key = match kind {
                None => true,
                Some(TokenKind::Comma | TokenKind::RParen) => depth == 0,
                _ => false,
            };
            if ends_key {
                let key = &self.tokens[start..i];
                let place = self.tokens[i.min(self.tokens.len() - 1)].span;
                keys.push(parse_expr(self.text, key, place)?);
                let next_argument = self.is(i + 1, "DESCRIPTOR")
                    || self.is(i + 1, "INTERVAL")
                    || self.kind(i + 1) == Some(TokenKind::String)
                    || self.kind(i + 2) == Some(TokenKind::FatArrow);
                if kind != Some(TokenKind::Comma) || (next_argument && !bracketed) {
                    return Ok(if bracketed { (list_end + 1).min(self.tokens.len()) } else { i });
                }
                start = i + 1;
            }
            match kind {
                Some(TokenKind::LParen | TokenKind::LBracket) => depth += 1,
                Some(TokenKind::RParen | TokenKind::RBracket) => depth = depth.saturating_sub(1),
                _ => {}
            }
            i += 1;
        }
    }

    /// At WATERMARK behind a relation: lifts the clause; false when DELAY does not follow (then it is an alias).
    fn watermark(&mut self, i: usize) -> Result<bool, Box<Diagnostic>> {
        let mut depth = 0u32;
        let mut delay = i + 1;
        loop {
            match self.kind(delay) {
                None => return Ok(false),
                Some(TokenKind::LParen | TokenKind::LBracket) => depth += 1,
                Some(TokenKind::Comma | TokenKind::RParen) if depth == 0 => return Ok(false),
                Some(TokenKind::RParen | TokenKind::RBracket) => depth = depth.saturating_sub(1),
                Some(TokenKind::Word) if depth == 0 && self.is(delay, "DELAY") => break,
                Some(TokenKind::Word)
                    if depth == 0 && (self.is_in(delay, FROM_ENDS) || self.is_in(delay, &["FROM", "JOIN", "ON"])) =>
                {
                    return Ok(false);
                }
                _ => {}
            }
            delay += 1;
        }
        let mut end = self.interval_end(if self.is(delay + 1, "OF") { delay + 2 } else { delay + 1 });
        for _ in 0..2 {
            if (self.is(end, "IDLE") && self.is(end + 1, "AFTER")) || (self.is(end, "MAX") && self.is(end + 1, "SKEW"))
            {
                end = self.interval_end(end + 2);
            }
        }
        let end = end.min(self.tokens.len());
        let watermark = parse_watermark(self.text, &self.tokens[i..end])?;

        let number = self.out.watermarks.len();
        let explicit = self.is(end, "AS");
        let alias_at = if explicit { end + 1 } else { end };
        let has_alias =
            self.is_name(alias_at) && (explicit || !(self.is_reserved(alias_at) || self.is(alias_at, "WATERMARK")));
        let mut pending = PendingWatermark { watermark, alias: None, explicit };
        let place = if has_alias { self.tokens[alias_at].span } else { self.tokens[i].span };
        if has_alias {
            pending.alias = Some(self.ident(alias_at));
            self.at = alias_at + 1;
        } else {
            self.at = end;
        }
        // An alias before the clause (`FROM s a WATERMARK ...`) is taken over in place.
        if !has_alias && let Some((before, explicit)) = self.alias_before(i) {
            pending.alias = Some(self.ident(before));
            pending.explicit = explicit;
            self.out.tokens.pop();
            if explicit {
                self.out.tokens.pop();
            }
        }
        let word = SqlToken::make_word(&marker(number), Some('`'));
        // AS keeps a marker an alias in every place.
        self.push(SqlToken::make_word("AS", None), place);
        self.push(word, place);
        self.out.watermarks.push(pending);
        Ok(true)
    }

    /// The alias directly before position `i`, with whether AS stands before it.
    fn alias_before(&self, i: usize) -> Option<(usize, bool)> {
        let alias = i.checked_sub(1)?;
        let before = alias.checked_sub(1)?;
        if !self.is_name(alias) {
            return None;
        }
        if self.is(before, "AS") {
            return Some((alias, true));
        }
        let relation = (self.is_name(before)
            && !self.is_in(before, &["FROM", "JOIN", "STREAM", "USING", "INTO", "LATERAL"]))
            || self.kind(before) == Some(TokenKind::RParen);
        relation.then_some((alias, false))
    }

    fn ident(&self, i: usize) -> sql::Ident {
        let token = self.tokens[i];
        let text = &self.text[token.span.range()];
        let (value, quote_style) = match token.kind {
            TokenKind::Quoted => (unquote_name(text), text.chars().next()),
            _ => (text.to_string(), None),
        };
        sql::Ident { value, quote_style, span: to_sql_span(token.span) }
    }

    /// The position behind the interval at `i`.
    fn interval_end(&self, i: usize) -> usize {
        interval_end(self.text, self.tokens, i)
    }

    fn push(&mut self, token: SqlToken, span: Span) {
        self.out.tokens.push(TokenWithSpan { token, span: to_sql_span(span) });
    }

    /// Hands the present token on in sqlparser's form.
    fn convert(&mut self) -> Result<(), Box<Diagnostic>> {
        let token = self.tokens[self.at];
        self.at += 1;
        let mut span = token.span;
        let text = &self.text[span.range()];
        let next = self.tokens.get(self.at).copied();
        let adjacent = |kind: TokenKind| next.filter(|n| n.kind == kind && n.span.start == span.end);
        let converted = match token.kind {
            TokenKind::Word => SqlToken::make_word(text, None),
            TokenKind::Quoted => SqlToken::make_word(&unquote_name(text), text.chars().next()),
            TokenKind::String | TokenKind::RawString => SqlToken::SingleQuotedString(unescape_string(text)),
            TokenKind::HexString => {
                let digits = text.get(2..text.len() - 1).unwrap_or("");
                if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
                    let message = format!("the value of the typed literal `X` is invalid: `{digits}`");
                    return Err(Box::new(
                        Diagnostic::error("INVALID_TYPED_LITERAL", message)
                            .at(span)
                            .with_help("Write hexadecimal digits only."),
                    ));
                }
                SqlToken::HexStringLiteral(digits.to_string())
            }
            TokenKind::Number => match text.strip_suffix(['l', 'L']) {
                Some(digits) => SqlToken::Number(digits.to_string(), true),
                None => SqlToken::Number(text.to_string(), false),
            },
            TokenKind::Colon => {
                // `STRUCT<a:INT>`: a name directly before the colon makes it a field's.
                let field =
                    self.at >= 2 && self.is_name(self.at - 2) && self.tokens[self.at - 2].span.end == span.start;
                match adjacent(TokenKind::Word) {
                    Some(name) if !field => {
                        self.at += 1;
                        span = span.to(name.span);
                        SqlToken::Placeholder(self.text[span.range()].to_string())
                    }
                    _ => SqlToken::Colon,
                }
            }
            TokenKind::Gt => match adjacent(TokenKind::Gt) {
                Some(second) => {
                    self.at += 1;
                    span = span.to(second.span);
                    SqlToken::ShiftRight
                }
                None => SqlToken::Gt,
            },
            TokenKind::LParen => SqlToken::LParen,
            TokenKind::RParen => SqlToken::RParen,
            TokenKind::LBracket => SqlToken::LBracket,
            TokenKind::RBracket => SqlToken::RBracket,
            TokenKind::Comma => SqlToken::Comma,
            TokenKind::Semicolon => SqlToken::SemiColon,
            TokenKind::Dot => SqlToken::Period,
            TokenKind::DoubleColon => SqlToken::DoubleColon,
            TokenKind::Eq => SqlToken::Eq,
            TokenKind::Neq => SqlToken::Neq,
            TokenKind::Lt => SqlToken::Lt,
            TokenKind::LtEq => SqlToken::LtEq,
            TokenKind::NullSafeEq => SqlToken::Spaceship,
            TokenKind::ShiftLeft => SqlToken::ShiftLeft,
            TokenKind::GtEq => SqlToken::GtEq,
            TokenKind::FatArrow => SqlToken::RArrow,
            TokenKind::Arrow => SqlToken::Arrow,
            TokenKind::Plus => SqlToken::Plus,
            TokenKind::Minus => SqlToken::Minus,
            TokenKind::Star => SqlToken::Mul,
            TokenKind::Slash => SqlToken::Div,
            TokenKind::Percent => SqlToken::Mod,
            TokenKind::Concat => SqlToken::StringConcat,
            TokenKind::Pipe => SqlToken::Pipe,
            TokenKind::Ampersand => SqlToken::Ampersand,
            TokenKind::Caret => SqlToken::Caret,
            TokenKind::Tilde => SqlToken::Tilde,
            TokenKind::Bang => SqlToken::ExclamationMark,
            TokenKind::LineComment | TokenKind::BlockComment | TokenKind::Unterminated => {
                return Err(Box::new(Diagnostic::error(SYNTAX, "unterminated text").at(span)));
            }
        };
        self.push(converted, span);
        Ok(())
    }
}
