//! Drives the stages: lex, split at `;`, cut, LALRPOP; and words the grammar's refusals for people.

use lalrpop_util::{ParseError, lalrpop_mod};

use crate::ast::*;
use crate::clauses::ActionError;
use crate::cut::{self, Spanned};
use crate::diagnostic::Diagnostic;
use crate::embed;
use crate::hint::Place;
use crate::keyword::{KEYWORDS, STATEMENT_STARTS, nearest};
use crate::source::{SourceFile, Span};
use crate::token::{SYNTAX, Token, TokenKind, lex, unescape_string, unquote_name};

lalrpop_mod!(
    #[allow(clippy::all, clippy::unwrap_used, missing_docs, unused, rust_2018_idioms, unreachable_pub)]
    ssql
);

/// Parses a whole script. Statements with a syntax error are left out of the script; each has at least one diagnostic,
/// and parsing goes on behind its `;`.
pub fn parse_script(file: &SourceFile) -> (Script, Vec<Diagnostic>) {
    let text = file.text();
    let mut diagnostics = Vec::new();
    let lexed = lex(text, &mut diagnostics);
    let mut statements = Vec::new();
    let mut broken = Vec::new();
    for tokens in cut::split_statements(text, &lexed.tokens) {
        // An unterminated string or comment has its diagnostic; what it swallowed is not worth a second one.
        if tokens.iter().any(|t| t.kind == TokenKind::Unterminated) {
            broken.extend(created_name(text, tokens));
            continue;
        }
        let cut = cut::cut_statement(text, tokens);
        let context = Context { text, tokens };
        match ssql::StatementParser::new().parse(&context, cut) {
            Ok(statement) => statements.push(statement),
            Err(error) => {
                diagnostics.push(context.explain(error));
                broken.extend(created_name(text, tokens));
            }
        }
    }
    diagnostics.sort_by_key(|d| d.span().start);
    (Script { statements, comments: lexed.comments, broken }, diagnostics)
}

/// The name that a CREATE statement gives, read from its first tokens.
fn created_name(text: &str, tokens: &[Token]) -> Option<String> {
    let head =
        ["CREATE", "OR", "REPLACE", "STREAM", "SOURCE", "TABLE", "VIEW", "SINK", "FUNCTION", "IF", "NOT", "EXISTS"];
    let first = tokens.first()?;
    if !text[first.span.range()].eq_ignore_ascii_case("CREATE") {
        return None;
    }
    // The word behind CREATE may be the misspelt one.
    let name = tokens.iter().skip(2).find(|t| !head.iter().any(|w| text[t.span.range()].eq_ignore_ascii_case(w)))?;
    match name.kind {
        TokenKind::Word => Some(text[name.span.range()].to_string()),
        TokenKind::Quoted => Some(unquote_name(&text[name.span.range()])),
        _ => None,
    }
}

/// Parses exactly one statement; a closing `;` may stand.
pub fn parse_statement(file: &SourceFile) -> Result<Statement, Vec<Diagnostic>> {
    let (mut script, mut diagnostics) = parse_script(file);
    if diagnostics.is_empty() {
        match script.statements.len() {
            1 => {}
            0 => diagnostics.push(Diagnostic::error(SYNTAX, "expected a statement, found nothing")),
            _ => diagnostics
                .push(Diagnostic::error(SYNTAX, "expected one statement, found several").at(script.statements[1].span)),
        }
    }
    match script.statements.pop() {
        Some(statement) if diagnostics.is_empty() => Ok(statement),
        _ => Err(diagnostics),
    }
}

/// Parses a DDL schema string: `a INT, b STRING NOT NULL` (or `a: INT`).
pub fn parse_schema(file: &SourceFile) -> Result<Vec<ColumnDef>, Vec<Diagnostic>> {
    parse_fragment(file, |text, tokens| {
        let context = Context { text, tokens };
        let cut = cut::cut_columns(text, tokens);
        ssql::ColumnsParser::new().parse(&context, cut).map_err(|e| Box::new(context.explain(e)))
    })
}

/// Parses one type: `STRUCT<a: INT, b: ARRAY<STRING>>`.
pub fn parse_data_type(file: &SourceFile) -> Result<DataType, Vec<Diagnostic>> {
    parse_fragment(file, |text, tokens| embed::parse_data_type(text, tokens, end_of(tokens)))
}

/// Parses one scalar expression.
pub fn parse_expression(file: &SourceFile) -> Result<Expr, Vec<Diagnostic>> {
    parse_fragment(file, |text, tokens| embed::parse_expr(text, tokens, end_of(tokens)))
}

fn parse_fragment<T>(
    file: &SourceFile,
    parse: impl FnOnce(&str, &[Token]) -> Result<T, Box<Diagnostic>>,
) -> Result<T, Vec<Diagnostic>> {
    let mut diagnostics = Vec::new();
    let lexed = lex(file.text(), &mut diagnostics);
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    parse(file.text(), &lexed.tokens).map_err(|d| vec![*d])
}

fn end_of(tokens: &[Token]) -> Span {
    tokens.last().map_or(Span::default(), |t| Span::new(t.span.end, t.span.end))
}

/// Parses a watermark behind a relation, from WATERMARK on.
pub(crate) fn parse_watermark(text: &str, tokens: &[Token]) -> Result<Watermark, Box<Diagnostic>> {
    let context = Context { text, tokens };
    let cut: Vec<Spanned> = cut::cut_watermark(text, tokens);
    ssql::RelationWatermarkParser::new().parse(&context, cut).map_err(|error| {
        let diagnostic = context.explain(error);
        Box::new(match diagnostic.help.is_empty() {
            true => diagnostic.with_help("Write relation WATERMARK column DELAY OF INTERVAL 10 MINUTES [AS alias]."),
            false => diagnostic,
        })
    })
}

/// What the grammar's actions see: the script and the statement's tokens.
pub(crate) struct Context<'a> {
    pub(crate) text: &'a str,
    pub(crate) tokens: &'a [Token],
}

impl<'a> Context<'a> {
    fn slice(&self, span: Span) -> &'a str {
        &self.text[span.range()]
    }

    /// The tokens of a span that begins and ends at token borders.
    fn tokens_of(&self, span: Span) -> &'a [Token] {
        let first = self.tokens.partition_point(|t| t.span.start < span.start);
        let last = self.tokens.partition_point(|t| t.span.end <= span.end);
        &self.tokens[first..last.max(first)]
    }

    pub(crate) fn word_name(&self, span: Span) -> Name {
        Name { value: self.slice(span).to_string(), quoted: false, span }
    }

    pub(crate) fn quoted_name(&self, span: Span) -> Name {
        Name { value: unquote_name(self.slice(span)), quoted: true, span }
    }

    pub(crate) fn string(&self, span: Span) -> String {
        unescape_string(self.slice(span))
    }

    pub(crate) fn number(&self, span: Span) -> Literal {
        let text: String = self.slice(span).split_whitespace().collect();
        Literal { value: LiteralValue::Number(text), span }
    }

    pub(crate) fn parameter(&self, span: Span) -> Literal {
        Literal { value: LiteralValue::Parameter(self.slice(span)[1..].to_string()), span }
    }

    /// A dotted name as one text, without quotes and blanks.
    pub(crate) fn dotted_text(&self, span: Span) -> String {
        self.tokens_of(span)
            .iter()
            .map(|t| match t.kind {
                TokenKind::Quoted => unquote_name(self.slice(t.span)),
                _ => self.slice(t.span).to_string(),
            })
            .collect()
    }

    /// A setting's value: a single literal as itself, else the text.
    pub(crate) fn set_value(&self, span: Span) -> Literal {
        let text = self.slice(span);
        let value = match self.tokens_of(span) {
            [t] => match t.kind {
                TokenKind::String | TokenKind::RawString => LiteralValue::String(unescape_string(text)),
                TokenKind::Number => LiteralValue::Number(text.to_string()),
                TokenKind::Word if text.eq_ignore_ascii_case("true") => LiteralValue::Boolean(true),
                TokenKind::Word if text.eq_ignore_ascii_case("false") => LiteralValue::Boolean(false),
                _ => LiteralValue::String(text.to_string()),
            },
            [minus, number] if minus.kind == TokenKind::Minus && number.kind == TokenKind::Number => {
                return self.number(span);
            }
            [colon, name] if colon.kind == TokenKind::Colon && name.kind == TokenKind::Word => {
                return self.parameter(span);
            }
            _ => LiteralValue::String(text.to_string()),
        };
        Literal { value, span }
    }

    pub(crate) fn query(&self, span: Span) -> Result<Query, Box<Diagnostic>> {
        embed::parse_query(self.text, self.tokens_of(span), span)
    }

    pub(crate) fn merge(&self, span: Span) -> Result<Merge, Box<Diagnostic>> {
        embed::parse_merge(self.text, self.tokens_of(span), span)
    }

    pub(crate) fn expr(&self, span: Span) -> Result<Expr, Box<Diagnostic>> {
        embed::parse_expr(self.text, self.tokens_of(span), span)
    }

    pub(crate) fn interval(&self, span: Span) -> Result<Expr, Box<Diagnostic>> {
        self.expr(span)
    }

    pub(crate) fn data_type(&self, span: Span) -> Result<DataType, Box<Diagnostic>> {
        embed::parse_data_type(self.text, self.tokens_of(span), span)
    }

    /// The grammar's refusal as a diagnostic.
    fn explain(&self, error: ActionError) -> Diagnostic {
        match error {
            ParseError::User { error } => *error,
            ParseError::InvalidToken { location } => self.expected(Some(location), &[]),
            ParseError::UnrecognizedEof { expected, .. } => self.expected(None, &expected),
            ParseError::UnrecognizedToken { token, expected } => self.expected(Some(token.0), &expected),
            ParseError::ExtraToken { token } => self.expected(Some(token.0), &[]),
        }
    }

    /// "expected ..., found ..." for the script token at `at`, or for the statement's end.
    fn expected(&self, at: Option<u32>, expected: &[String]) -> Diagnostic {
        let found = at.and_then(|at| self.tokens.iter().find(|t| t.span.start == at));
        let first = self.tokens.first().map(|t| t.span.start);
        let at_start = found.is_some_and(|t| Some(t.span.start) == first);
        let wanted = if at_start { "a statement".to_string() } else { describe(expected) };
        let Some(found) = found else {
            let end = end_of(self.tokens);
            let message = format!("expected {wanted}, found the end of the statement");
            let diagnostic = self.bracketed(Diagnostic::error(SYNTAX, message).at(end));
            return crate::hint::apply(diagnostic, &self.place(self.tokens.len())).0;
        };
        let text = self.slice(found.span);
        let diagnostic = self.bracketed(
            Diagnostic::error(SYNTAX, format!("expected {wanted}, found {}", quote_found(text))).at(found.span),
        );
        if found.kind == TokenKind::Word {
            let near = if at_start {
                nearest(text, STATEMENT_STARTS.iter().copied())
            } else {
                nearest(text, expected.iter().map(|e| e.trim_matches('"')).filter(|e| KEYWORDS.contains(e)))
            };
            if let Some(near) = near {
                return diagnostic.with_help(format!("Did you mean `{near}`?"));
            } else if at_start && let Some(help) = foreign_statement(text) {
                return diagnostic.with_help(help);
            }
        }
        let at = self.tokens.partition_point(|t| t.span.start < found.span.start);
        crate::hint::apply(diagnostic, &self.place(at)).0
    }

    fn place(&self, at: usize) -> Place<'_> {
        Place { text: self.text, tokens: self.tokens, at }
    }

    /// Points at a bracket that is never closed.
    fn bracketed(&self, diagnostic: Diagnostic) -> Diagnostic {
        match embed::unclosed_bracket(self.tokens) {
            Some(open) => diagnostic.with_label(self.tokens[open].span, "never closed"),
            None => diagnostic,
        }
    }
}

/// A token's text in a message, shortened.
pub(crate) fn quote_found(text: &str) -> String {
    const LONGEST: usize = 40;
    let line = text.lines().next().unwrap_or("");
    match line.char_indices().nth(LONGEST) {
        Some((cut, _)) => format!("`{}...`", &line[..cut]),
        None => format!("`{line}`"),
    }
}

/// Terminals as people call them: "`EMIT`, `TRIGGER` or a name".
fn describe(expected: &[String]) -> String {
    // Where any word is welcome, the list of keywords says nothing.
    let any_word = expected.iter().any(|e| e == "Word");
    let mut words: Vec<String> = Vec::new();
    for terminal in expected {
        let quoted = terminal.starts_with('"');
        let text = terminal.trim_matches('"');
        let word = match text {
            "Word" => "a name".to_string(),
            "Quoted" => continue,
            "Str" => "a string".to_string(),
            "Num" => "a number".to_string(),
            "Param" => "a parameter".to_string(),
            "QueryRun" => "a query".to_string(),
            "MergeRun" => "`MERGE`".to_string(),
            "ExprRun" => "an expression".to_string(),
            "TypeRun" => "a type".to_string(),
            "Value" => "a value".to_string(),
            keyword if quoted && any_word && KEYWORDS.contains(&keyword) => continue,
            other => format!("`{other}`"),
        };
        if !words.contains(&word) {
            words.push(word);
        }
    }
    match words.len() {
        0 => "the end of the statement".to_string(),
        1 => words.remove(0),
        n => format!("{} or {}", words[..n - 1].join(", "), words[n - 1]),
    }
}

/// What to do instead of a statement that SQL has and ssql has not.
fn foreign_statement(word: &str) -> Option<&'static str> {
    match word.to_ascii_uppercase().as_str() {
        "UPDATE" | "DELETE" | "TRUNCATE" => Some("Rows of a table are changed by MERGE INTO only."),
        "ALTER" => Some("Objects are not altered: use CREATE OR REPLACE."),
        "USE" => Some("There are no databases to choose from: name the object."),
        "BEGIN" => Some("BEGIN ... END belongs to CREATE SINK name FOREACH BATCH AS."),
        _ => None,
    }
}
