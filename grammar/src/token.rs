//! A script's tokens with byte spans, from one logos pass over the whole text.
//!
//! Lexing never fails: what is no token becomes a diagnostic and is skipped. Words carry no meaning here; whether a word
//! is a keyword depends on its place and is decided by `cut` and the grammar. Two choices keep later stages simple: `>`
//! is always one token (so that `ARRAY<ARRAY<INT>>` closes twice), and `:` is always one token (`:name` is put together
//! where a parameter can stand, since `STRUCT<a:INT>` holds the same characters).

use logos::{FilterResult, Lexer, Logos};

use crate::ast::Comment;
use crate::diagnostic::Diagnostic;
use crate::source::Span;

/// What a token is.
#[derive(Logos, Debug, Clone, Copy, PartialEq, Eq)]
#[logos(skip(r"[\s\u{feff}]+"))]
pub enum TokenKind {
    /// A word: keyword or identifier. May begin with digits, as in Spark.
    #[regex(r"[0-9]*[\p{Alphabetic}_][\p{Alphabetic}\p{M}0-9_]*", priority = 3)]
    Word,
    /// An identifier in backticks or double quotes.
    #[token("`", |lexer| quoted(lexer, '`'))]
    #[token("\"", |lexer| quoted(lexer, '"'))]
    Quoted,
    /// A single-quoted string.
    #[token("'", string)]
    String,
    /// `r'...'`.
    #[regex("[rR]'", raw_string)]
    RawString,
    /// `X'...'`.
    #[regex("[xX]'", raw_string)]
    HexString,
    /// A number with exponent and suffix.
    #[regex(r"([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?([bB][dD]|[lLsSyYfFdD])?", priority = 20)]
    Number,
    /// `--` to the end of the line.
    #[regex(r"--[^\n]*", allow_greedy = true)]
    LineComment,
    /// `/* */`, nested.
    #[token("/*", block_comment)]
    BlockComment,
    /// A string, quoted identifier or comment that the text ends in.
    Unterminated,
    /// `;`
    #[token(";")]
    Semicolon,
    /// `,`
    #[token(",")]
    Comma,
    /// `(`
    #[token("(")]
    LParen,
    /// `)`
    #[token(")")]
    RParen,
    /// `[`
    #[token("[")]
    LBracket,
    /// `]`
    #[token("]")]
    RBracket,
    /// `.`
    #[token(".")]
    Dot,
    /// `:`
    #[token(":")]
    Colon,
    /// `::`
    #[token("::")]
    DoubleColon,
    /// `=` and `==`
    #[token("=")]
    #[token("==")]
    Eq,
    /// `<>` and `!=`
    #[token("<>")]
    #[token("!=")]
    Neq,
    /// `<`
    #[token("<")]
    Lt,
    /// `<=`
    #[token("<=")]
    LtEq,
    /// `<=>`
    #[token("<=>")]
    NullSafeEq,
    /// `<<`
    #[token("<<")]
    ShiftLeft,
    /// `>`
    #[token(">")]
    Gt,
    /// `>=`
    #[token(">=")]
    GtEq,
    /// `=>`
    #[token("=>")]
    FatArrow,
    /// `->`
    #[token("->")]
    Arrow,
    /// `+`
    #[token("+")]
    Plus,
    /// `-`
    #[token("-")]
    Minus,
    /// `*`
    #[token("*")]
    Star,
    /// `/`
    #[token("/")]
    Slash,
    /// `%`
    #[token("%")]
    Percent,
    /// `||`
    #[token("||")]
    Concat,
    /// `|`
    #[token("|")]
    Pipe,
    /// `&`
    #[token("&")]
    Ampersand,
    /// `^`
    #[token("^")]
    Caret,
    /// `~`
    #[token("~")]
    Tilde,
    /// `!`
    #[token("!")]
    Bang,
}

/// One token. Its text is the span's slice of the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Where it stands.
    pub span: Span,
}

/// A lexed script.
#[derive(Debug, Clone, Default)]
pub struct Tokens {
    /// Every token, comments left out, in order.
    pub tokens: Vec<Token>,
    /// Every comment, in order.
    pub comments: Vec<Comment>,
}

/// Consumes to the closing quote; a doubled quote stands for one.
fn quoted(lexer: &mut Lexer<'_, TokenKind>, quote: char) -> FilterResult<(), ()> {
    let rest = lexer.remainder();
    let mut at = 0;
    while let Some(found) = rest[at..].find(quote) {
        at += found + 1;
        if !rest[at..].starts_with(quote) {
            lexer.bump(at);
            return FilterResult::Emit(());
        }
        at += 1;
    }
    unterminated(lexer)
}

/// Consumes a string with backslash escapes and doubled quotes.
fn string(lexer: &mut Lexer<'_, TokenKind>) -> FilterResult<(), ()> {
    let bytes = lexer.remainder().as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'\'' if bytes.get(at + 1) == Some(&b'\'') => at += 2,
            b'\'' => {
                lexer.bump(at + 1);
                return FilterResult::Emit(());
            }
            _ => at += 1,
        }
    }
    unterminated(lexer)
}

fn raw_string(lexer: &mut Lexer<'_, TokenKind>) -> FilterResult<(), ()> {
    match lexer.remainder().find('\'') {
        Some(at) => {
            lexer.bump(at + 1);
            FilterResult::Emit(())
        }
        None => unterminated(lexer),
    }
}

fn block_comment(lexer: &mut Lexer<'_, TokenKind>) -> FilterResult<(), ()> {
    let bytes = lexer.remainder().as_bytes();
    let (mut at, mut depth) = (0, 1u32);
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" => (at, depth) = (at + 2, depth + 1),
            b"*/" => {
                (at, depth) = (at + 2, depth - 1);
                if depth == 0 {
                    lexer.bump(at);
                    return FilterResult::Emit(());
                }
            }
            _ => at += 1,
        }
    }
    unterminated(lexer)
}

/// Takes the rest of the text as one erroneous token.
fn unterminated(lexer: &mut Lexer<'_, TokenKind>) -> FilterResult<(), ()> {
    let rest = lexer.remainder().len();
    lexer.bump(rest);
    FilterResult::Error(())
}

/// Tokens of a text. Texts of 4 GB and more are refused with a diagnostic.
pub fn lex(text: &str, diagnostics: &mut Vec<Diagnostic>) -> Tokens {
    let mut out = Tokens::default();
    if u32::try_from(text.len()).is_err() {
        diagnostics.push(Diagnostic::error(SYNTAX, "the script is larger than 4 GB"));
        return out;
    }
    let mut lexer = TokenKind::lexer(text);
    while let Some(result) = lexer.next() {
        let range = lexer.span();
        let span = Span::new(range.start as u32, range.end as u32);
        let slice = &text[range];
        match result {
            Ok(TokenKind::LineComment | TokenKind::BlockComment) => {
                out.comments.push(Comment { text: slice.trim_end().to_string(), span });
            }
            Ok(kind) => out.tokens.push(Token { kind, span }),
            Err(()) => match opening(slice) {
                Some((what, close)) => {
                    let opened =
                        Span::new(span.start, span.start + slice.chars().next().map_or(0, char::len_utf8) as u32);
                    diagnostics.push(
                        Diagnostic::error(SYNTAX, format!("unterminated {what}"))
                            .at_with(opened, "opened here")
                            .with_help(match slice.starts_with('\'') {
                                true => {
                                    format!("Close it with {close}; a quote inside a string is written twice: 'it''s'.")
                                }
                                false => format!("Close it with {close}."),
                            }),
                    );
                    out.tokens.push(Token { kind: TokenKind::Unterminated, span });
                }
                None => diagnostics.push(
                    Diagnostic::error(SYNTAX, format!("`{}` is no character of the language", slice.escape_debug()))
                        .at(span),
                ),
            },
        }
    }
    out
}

/// Spark's condition for text that does not parse.
pub(crate) const SYNTAX: &str = "PARSE_SYNTAX_ERROR";

fn opening(slice: &str) -> Option<(&'static str, &'static str)> {
    if slice.starts_with("/*") {
        return Some(("comment", "`*/`"));
    }
    match slice.chars().next()? {
        '`' => Some(("quoted identifier", "a backtick")),
        '"' => Some(("quoted identifier", "a double quote")),
        '\'' | 'r' | 'R' | 'x' | 'X' => Some(("string", "a single quote")),
        _ => None,
    }
}

/// The name in a [`TokenKind::Quoted`] token.
pub(crate) fn unquote_name(text: &str) -> String {
    let quote = &text[..1];
    let inner = text.get(1..text.len().saturating_sub(1)).unwrap_or("");
    inner.replace(&quote.repeat(2), quote)
}

/// The value of a [`TokenKind::String`] or [`TokenKind::RawString`] token, by Spark's rules: `\0 \b \n \r \t \Z \\ \' \"`,
/// three octal digits, `\uXXXX`, `\UXXXXXXXX`, `\%` and `\_` kept for LIKE, any other escaped character itself.
pub(crate) fn unescape_string(text: &str) -> String {
    if let Some(raw) = text.strip_prefix(['r', 'R']) {
        return raw.get(1..raw.len().saturating_sub(1)).unwrap_or("").to_string();
    }
    let inner = text.get(1..text.len().saturating_sub(1)).unwrap_or("");
    if !inner.contains(['\\', '\'']) {
        return inner.to_string();
    }
    let mut out = String::with_capacity(inner.len());
    let mut units: Vec<u16> = Vec::new();
    let mut rest = inner;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        // `\uD83D\uDE00` is one character in two halves, as in Java.
        if c == '\\'
            && let Some(unit) = hex_escape(rest, 'u', 4).and_then(|v| u16::try_from(v).ok())
        {
            units.push(unit);
            rest = &rest[5..];
            continue;
        }
        flush_units(&mut units, &mut out);
        match c {
            '\'' => {
                out.push('\'');
                rest = rest.strip_prefix('\'').unwrap_or(rest);
            }
            '\\' => {
                if let Some(v) = hex_escape(rest, 'U', 8) {
                    out.push(char::from_u32(v).unwrap_or('\u{fffd}'));
                    rest = &rest[9..];
                    continue;
                }
                if let Some(v) = octal_escape(rest) {
                    out.push(char::from(v));
                    rest = &rest[3..];
                    continue;
                }
                let Some(escaped) = rest.chars().next() else {
                    out.push('\\');
                    break;
                };
                rest = &rest[escaped.len_utf8()..];
                match escaped {
                    '0' => out.push('\0'),
                    'b' => out.push('\u{8}'),
                    'n' => out.push('\n'),
                    'r' => out.push('\r'),
                    't' => out.push('\t'),
                    'Z' => out.push('\u{1a}'),
                    '%' => out.push_str("\\%"),
                    '_' => out.push_str("\\_"),
                    other => out.push(other),
                }
            }
            other => out.push(other),
        }
    }
    flush_units(&mut units, &mut out);
    out
}

fn flush_units(units: &mut Vec<u16>, out: &mut String) {
    out.push_str(&String::from_utf16_lossy(units));
    units.clear();
}

fn hex_escape(rest: &str, letter: char, digits: usize) -> Option<u32> {
    let hex = rest.strip_prefix(letter)?.get(..digits)?;
    hex.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u32::from_str_radix(hex, 16).ok())?
}

fn octal_escape(rest: &str) -> Option<u8> {
    let digits = rest.get(..3)?;
    let octal = digits.bytes().all(|b| (b'0'..=b'7').contains(&b)) && digits.as_bytes()[0] <= b'1';
    octal.then(|| u8::from_str_radix(digits, 8).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<TokenKind> {
        lex(text, &mut Vec::new()).tokens.iter().map(|t| t.kind).collect()
    }

    fn errors(text: &str) -> Vec<String> {
        let mut diagnostics = Vec::new();
        lex(text, &mut diagnostics);
        diagnostics.into_iter().map(|d| d.message).collect()
    }

    #[test]
    fn numbers_take_their_suffixes_and_words_may_begin_with_digits() {
        use TokenKind::*;
        assert_eq!(kinds("1 1L 2.5D 3.0BD 1e5 .5 1. 1S 1Y 1.5F"), vec![Number; 10]);
        assert_eq!(kinds("2024_data 1Lx"), vec![Word, Word]);
        assert_eq!(kinds("a.b[0].c"), vec![Word, Dot, Word, LBracket, Number, RBracket, Dot, Word]);
        assert_eq!(kinds("1.2.3"), vec![Number, Number]);
    }

    #[test]
    fn strings_follow_sparks_escapes() {
        assert_eq!(unescape_string(r"'a\n\'b''c\\'"), "a\n'b'c\\");
        assert_eq!(unescape_string(r"'\u00e9\101\%\_\q'"), "éA\\%\\_q");
        assert_eq!(unescape_string(r"'\uD83D\uDE00\U0001F600'"), "😀😀");
        assert_eq!(unescape_string(r"r'a\n'"), r"a\n");
        assert_eq!(unescape_string("''"), "");
    }

    #[test]
    fn quoted_names_double_their_quote() {
        assert_eq!(unquote_name("`a``b`"), "a`b");
        assert_eq!(unquote_name("\"a\"\"b\""), "a\"b");
        assert_eq!(kinds("`a``b` \"c\""), vec![TokenKind::Quoted; 2]);
    }

    #[test]
    fn comments_nest_and_are_kept_apart() {
        let lexed = lex("a -- x\n/* b /* c */ d */ e", &mut Vec::new());
        assert_eq!(lexed.tokens.len(), 2);
        assert_eq!(lexed.comments.iter().map(|c| c.text.as_str()).collect::<Vec<_>>(), ["-- x", "/* b /* c */ d */"]);
    }

    #[test]
    fn what_does_not_end_is_a_diagnostic() {
        assert_eq!(errors("SELECT 'abc"), ["unterminated string"]);
        assert_eq!(errors("SELECT 'abc\\"), ["unterminated string"]);
        assert_eq!(errors("SELECT `abc"), ["unterminated quoted identifier"]);
        assert_eq!(errors("SELECT /* abc /* */"), ["unterminated comment"]);
        assert_eq!(errors("SELECT r'ab"), ["unterminated string"]);
        assert_eq!(errors("SELECT § 1"), ["`§` is no character of the language"]);
    }
}
