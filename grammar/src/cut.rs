//! Cuts the tokens of one statement into words of ours and runs of embedded SQL, for the LALRPOP grammar.
//!
//! sqlparser owns queries, expressions and types; the grammar owns all else. A run of SQL becomes one grammar token
//! ([`Tok::Query`], [`Tok::Expr`], [`Tok::Type`], ...) with the run's span. Where a run begins follows from the words
//! before it; where it ends, from brackets and these rules:
//!
//! - a query ends at `EMIT` (where no expression can begin), `TRIGGER <kind>`, `CHECKPOINT LOCATION` or `LATE DATA`
//!   outside brackets, or with its statement;
//! - a column's type ends at `,`, `)`, NOT, NULL, DEFAULT or COMMENT outside its own brackets;
//! - a watermark's expression ends at `DELAY OF`;
//! - RETURN's expression and SET's value end with the statement.
//!
//! The cut decides nothing about correctness: what does not fit is handed on for the grammar to refuse.

use crate::keyword::Keyword;
use crate::source::Span;
use crate::token::{Token, TokenKind};

/// A token of the statement grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tok {
    /// One of our keywords.
    Kw(Keyword),
    /// Another word.
    Word,
    /// A quoted identifier.
    Quoted,
    /// A string, raw or not.
    Str,
    /// A number.
    Num,
    /// `:name`.
    Param,
    /// `(`
    LParen,
    /// `)`
    RParen,
    /// `,`
    Comma,
    /// `.`
    Dot,
    /// `=`
    Eq,
    /// `-`
    Minus,
    /// `;` between the statements of a FOREACH BATCH body.
    Semicolon,
    /// A query.
    Query,
    /// A MERGE statement.
    Merge,
    /// A scalar expression.
    Expr,
    /// A type.
    Type,
    /// The value of a setting: any tokens.
    Value,
    /// A token that no statement of ours has a place for.
    Other,
}

/// A grammar token between two byte positions.
pub type Spanned = (u32, Tok, u32);

/// Splits a script's tokens at `;`, keeping `BEGIN ... END` of a sink whole. Empty statements are dropped.
pub(crate) fn split_statements<'t>(text: &str, tokens: &'t [Token]) -> Vec<&'t [Token]> {
    let mut out = Vec::new();
    let mut start = 0;
    // Inside a body: how many CASE are open, since their END is not the body's.
    let mut body: Option<u32> = None;
    for (i, token) in tokens.iter().enumerate() {
        let word = word_of(text, token);
        match &mut body {
            None if token.kind == TokenKind::Semicolon => {
                if i > start {
                    out.push(&tokens[start..i]);
                }
                start = i + 1;
            }
            None if is(word, "BEGIN") && begins_body(text, &tokens[start..i]) => body = Some(0),
            Some(cases) if is(word, "CASE") => *cases += 1,
            Some(0) if is(word, "END") => body = None,
            Some(cases) if is(word, "END") => *cases -= 1,
            _ => {}
        }
    }
    if start < tokens.len() {
        out.push(&tokens[start..]);
    }
    out
}

/// Whether the statement so far is `... BATCH AS`.
fn begins_body(text: &str, before: &[Token]) -> bool {
    let n = before.len();
    n >= 2 && is(word_of(text, &before[n - 1]), "AS") && is(word_of(text, &before[n - 2]), "BATCH")
}

fn word_of<'t>(text: &'t str, token: &Token) -> Option<&'t str> {
    (token.kind == TokenKind::Word).then(|| &text[token.span.range()])
}

fn is(word: Option<&str>, expected: &str) -> bool {
    word.is_some_and(|w| w.eq_ignore_ascii_case(expected))
}

/// The grammar tokens of one statement.
pub(crate) fn cut_statement(text: &str, tokens: &[Token]) -> Vec<Spanned> {
    let mut cutter = Cutter { text, tokens, at: 0, out: Vec::with_capacity(tokens.len()) };
    cutter.statement(tokens.len());
    cutter.out
}

/// The grammar tokens of a column list without its brackets (a DDL schema string).
pub(crate) fn cut_columns(text: &str, tokens: &[Token]) -> Vec<Spanned> {
    let mut cutter = Cutter { text, tokens, at: 0, out: Vec::new() };
    cutter.column_list(tokens.len());
    cutter.plain_to(tokens.len());
    cutter.out
}

/// The grammar tokens of a `WATERMARK expr [AS name] DELAY OF ...` clause of a FROM.
pub(crate) fn cut_watermark(text: &str, tokens: &[Token]) -> Vec<Spanned> {
    let mut cutter = Cutter { text, tokens, at: 0, out: Vec::new() };
    cutter.plain(1);
    let end = tokens.len();
    let stop = cutter.find(end, |c| c.two("DELAY", "OF") || (c.word("AS") && c.named_delay()));
    cutter.run(Tok::Expr, stop);
    cutter.plain_to(end);
    cutter.out
}

struct Cutter<'t> {
    text: &'t str,
    tokens: &'t [Token],
    at: usize,
    out: Vec<Spanned>,
}

impl<'t> Cutter<'t> {
    fn kind(&self, ahead: usize) -> Option<TokenKind> {
        self.tokens.get(self.at + ahead).map(|t| t.kind)
    }

    fn word_at(&self, ahead: usize) -> Option<&'t str> {
        word_of(self.text, self.tokens.get(self.at + ahead)?)
    }

    fn word(&self, expected: &str) -> bool {
        is(self.word_at(0), expected)
    }

    fn word_in(&self, ahead: usize, expected: &[&str]) -> bool {
        expected.iter().any(|e| is(self.word_at(ahead), e))
    }

    fn two(&self, first: &str, second: &str) -> bool {
        self.word(first) && is(self.word_at(1), second)
    }

    /// At AS: whether `AS name DELAY` follows, so that this AS names the column and is not a cast's.
    fn named_delay(&self) -> bool {
        matches!(self.kind(1), Some(TokenKind::Word | TokenKind::Quoted)) && is(self.word_at(2), "DELAY")
    }

    /// Hands on `n` tokens as they are.
    fn plain(&mut self, n: usize) {
        self.plain_to((self.at + n).min(self.tokens.len()));
    }

    fn plain_to(&mut self, end: usize) {
        while self.at < end {
            let token = self.tokens[self.at];
            self.at += 1;
            let mut span = token.span;
            let tok = match token.kind {
                TokenKind::Word => Keyword::lookup(&self.text[span.range()]).map_or(Tok::Word, Tok::Kw),
                TokenKind::Quoted => Tok::Quoted,
                TokenKind::String | TokenKind::RawString => Tok::Str,
                TokenKind::Number => Tok::Num,
                TokenKind::Colon => match self.tokens.get(self.at) {
                    Some(next) if next.kind == TokenKind::Word && next.span.start == span.end && self.at < end => {
                        self.at += 1;
                        span = span.to(next.span);
                        Tok::Param
                    }
                    _ => Tok::Other,
                },
                TokenKind::LParen => Tok::LParen,
                TokenKind::RParen => Tok::RParen,
                TokenKind::Comma => Tok::Comma,
                TokenKind::Dot => Tok::Dot,
                TokenKind::Eq => Tok::Eq,
                TokenKind::Minus => Tok::Minus,
                TokenKind::Semicolon => Tok::Semicolon,
                _ => Tok::Other,
            };
            self.out.push((span.start, tok, span.end));
        }
    }

    /// Hands on the tokens up to `end` as one run; nothing when there are none.
    fn run(&mut self, tok: Tok, end: usize) {
        if self.at < end {
            let span: Span = self.tokens[self.at].span.to(self.tokens[end - 1].span);
            self.out.push((span.start, tok, span.end));
            self.at = end;
        }
    }

    /// The first position from here up to `end` that is outside brackets and satisfies `stop`, or where a bracket
    /// closes that was not opened here, or `end`.
    fn find(&mut self, end: usize, stop: impl Fn(&Self) -> bool) -> usize {
        let from = self.at;
        let mut depth = 0u32;
        let mut found = end;
        while self.at < end {
            match self.tokens[self.at].kind {
                TokenKind::LParen | TokenKind::LBracket => depth += 1,
                TokenKind::RParen | TokenKind::RBracket if depth == 0 => {
                    found = self.at;
                    break;
                }
                TokenKind::RParen | TokenKind::RBracket => depth -= 1,
                _ => {}
            }
            if depth == 0 && stop(self) {
                found = self.at;
                break;
            }
            self.at += 1;
        }
        self.at = from;
        found
    }

    /// Hands on a dotted name.
    fn name(&mut self) {
        loop {
            self.plain(1);
            if self.kind(0) != Some(TokenKind::Dot) {
                return;
            }
            self.plain(1);
        }
    }

    /// Hands on `[IF NOT EXISTS] name`.
    fn created_name(&mut self) {
        if self.two("IF", "NOT") {
            self.plain(3);
        }
        self.name();
    }

    fn statement(&mut self, end: usize) {
        let Some(word) = self.word_at(0).map(str::to_ascii_uppercase) else {
            match self.kind(0) {
                Some(TokenKind::LParen) => self.query(end),
                _ => self.plain_to(end),
            }
            return;
        };
        match word.as_str() {
            "SELECT" | "WITH" | "VALUES" | "FROM" | "TABLE" => self.query(end),
            "MERGE" => self.run(Tok::Merge, end),
            "EXPLAIN" => {
                self.plain(1);
                if self.word_in(0, &["AST", "LOGICAL", "IR", "CLIF", "ASM"]) {
                    self.plain(1);
                }
                // EXPLAIN does not nest: the grammar refuses a second one, however deep.
                if self.word("EXPLAIN") { self.plain_to(end) } else { self.statement(end) }
            }
            "INSERT" => self.insert(end),
            "CREATE" => self.create(end),
            "SET" => {
                let stop = self.find(end, |c| c.kind(0) == Some(TokenKind::Eq));
                self.plain_to((stop + 1).min(end));
                self.run(Tok::Value, end);
            }
            _ => self.plain_to(end),
        }
    }

    fn insert(&mut self, end: usize) {
        self.plain(1);
        if self.word("INTO") {
            self.plain(1);
        }
        // `INSERT INTO stream VALUES`: here the word is the name, since no name follows it.
        if self.word_in(0, &["TABLE", "STREAM", "SINK"])
            && !self.starts_query(1)
            && self.kind(1) != Some(TokenKind::LParen)
        {
            self.plain(1);
        }
        if !matches!(self.kind(0), Some(TokenKind::Word | TokenKind::Quoted)) {
            return self.plain_to(end);
        }
        self.name();
        if self.kind(0) == Some(TokenKind::LParen) && !self.starts_query(0) {
            self.plain(1);
            let close = self.find(end, |_| false);
            self.plain_to((close + 1).min(end));
        }
        if self.starts_query(0) { self.query(end) } else { self.plain_to(end) }
    }

    /// Whether a query begins `ahead` tokens from here (a bracket counts when a query stands in it).
    fn starts_query(&self, mut ahead: usize) -> bool {
        while self.kind(ahead) == Some(TokenKind::LParen) {
            ahead += 1;
        }
        self.word_in(ahead, &["SELECT", "WITH", "VALUES", "FROM", "TABLE"])
    }

    fn create(&mut self, end: usize) {
        self.plain(1);
        if self.two("OR", "REPLACE") {
            self.plain(2);
        }
        let kind = self.word_at(0).map(str::to_ascii_uppercase).unwrap_or_default();
        match kind.as_str() {
            "STREAM" | "SOURCE" | "TABLE" => {
                self.plain(1);
                self.created_name();
                if self.kind(0) == Some(TokenKind::LParen) {
                    self.plain(1);
                    self.column_list(end);
                }
            }
            "VIEW" => {
                self.plain(1);
                self.created_name();
                let stop = self.find(end, |c| c.word("AS"));
                self.plain_to((stop + 1).min(end));
                self.query(end);
            }
            "FUNCTION" => {
                self.plain(1);
                self.created_name();
                if self.kind(0) == Some(TokenKind::LParen) {
                    self.plain(1);
                    self.column_list(end);
                    self.plain(1);
                }
                if self.word("RETURNS") {
                    self.plain(1);
                    let stop = self.find(end, |c| c.word("RETURN"));
                    self.run(Tok::Type, stop);
                }
                if self.word("RETURN") {
                    self.plain(1);
                    self.run(Tok::Expr, end);
                }
            }
            "QUERY" => {
                self.plain(2);
                if self.word("AS") {
                    self.plain(1);
                    self.statement(end);
                }
            }
            "SINK" => {
                let begin = (self.at..end).find(|i| {
                    is(word_of(self.text, &self.tokens[*i]), "BEGIN") && begins_body(self.text, &self.tokens[..*i])
                });
                if let Some(begin) = begin {
                    self.plain_to(begin + 1);
                    self.body(end);
                }
            }
            _ => {}
        }
        self.plain_to(end);
    }

    /// The statements between BEGIN and END.
    fn body(&mut self, end: usize) {
        let closes = end > self.at && is(word_of(self.text, &self.tokens[end - 1]), "END");
        let end = if closes { end - 1 } else { end };
        while self.at < end {
            let stop = (self.at..end).find(|i| self.tokens[*i].kind == TokenKind::Semicolon).unwrap_or(end);
            self.statement(stop);
            self.plain_to((stop + 1).min(end));
        }
    }

    fn query(&mut self, end: usize) {
        let stop = self.find(end, Cutter::ends_query);
        self.run(Tok::Query, stop);
        self.plain_to(end);
    }

    fn ends_query(&self) -> bool {
        (self.word("EMIT") && self.after_operand())
            || (self.word("TRIGGER") && self.word_in(1, &["PROCESSING", "AVAILABLE", "ONCE", "CONTINUOUS"]))
            || self.two("CHECKPOINT", "LOCATION")
            || self.two("LATE", "DATA")
    }

    /// Whether the token before can end an expression or a relation, so that a word here is not itself an operand.
    fn after_operand(&self) -> bool {
        let Some(before) = self.at.checked_sub(1).map(|i| &self.tokens[i]) else { return false };
        match before.kind {
            TokenKind::Word => ![
                "SELECT", "DISTINCT", "BY", "WHERE", "HAVING", "ON", "AND", "OR", "NOT", "AS", "FROM", "JOIN", "WHEN",
                "THEN", "ELSE", "CASE", "IN", "LIKE", "BETWEEN",
            ]
            .iter()
            .any(|w| is(word_of(self.text, before), w)),
            TokenKind::Quoted
            | TokenKind::String
            | TokenKind::RawString
            | TokenKind::HexString
            | TokenKind::Number
            | TokenKind::RParen
            | TokenKind::RBracket
            | TokenKind::Star => true,
            _ => false,
        }
    }

    /// Column definitions up to the bracket that closes the list (left standing), or `end`.
    fn column_list(&mut self, end: usize) {
        while self.at < end && self.kind(0) != Some(TokenKind::RParen) {
            if self.two("WATERMARK", "FOR") {
                self.plain(2);
                self.name();
                if self.word("AS") {
                    self.plain(1);
                    let stop = self.find(end, |c| c.two("DELAY", "OF") || c.kind(0) == Some(TokenKind::Comma));
                    self.run(Tok::Expr, stop);
                }
            } else {
                self.plain(1);
                if self.kind(0) == Some(TokenKind::Colon) {
                    self.at += 1;
                }
                let stop = self.type_end(end);
                self.run(Tok::Type, stop);
            }
            self.constraints(end);
            if self.kind(0) == Some(TokenKind::Comma) {
                self.plain(1);
            }
        }
    }

    /// What follows a column's type or a watermark, up to the next `,` or `)`.
    fn constraints(&mut self, end: usize) {
        let stop = self.find(end, |c| c.kind(0) == Some(TokenKind::Comma));
        while self.at < stop {
            let default = self.word("DEFAULT");
            self.plain(1);
            if default {
                let expr_end = self.find(stop, |c| c.word("COMMENT") || c.two("NOT", "NULL"));
                self.run(Tok::Expr, expr_end);
            }
        }
    }

    fn type_end(&mut self, end: usize) -> usize {
        let mut depth = 0i32;
        for i in self.at..end {
            let token = &self.tokens[i];
            match token.kind {
                TokenKind::Lt | TokenKind::LParen => depth += 1,
                TokenKind::RParen if depth == 0 => return i,
                TokenKind::Gt | TokenKind::RParen => depth -= 1,
                TokenKind::Comma if depth <= 0 => return i,
                TokenKind::Word if depth <= 0 => {
                    let word = word_of(self.text, token);
                    if ["NOT", "NULL", "DEFAULT", "COMMENT"].iter().any(|w| is(word, w)) {
                        return i;
                    }
                }
                _ => {}
            }
        }
        end
    }
}
