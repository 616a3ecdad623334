//! Pattern operators: `like`, `ilike` (`%` and `_`, with an escape character) and `rlike` (regular expressions).

use std::borrow::Cow;

use arrow::array::{Array, AsArray};

use crate::call::{Call, EvalResult, Value};
use crate::error::EvalError;
use crate::function::{FunctionDef, Param, Ret, scalar};
use crate::functions::java_regex::Regex;

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[
    scalar("like", &[Param::String, Param::String, Param::String], Ret::Boolean, like).optional(1).doc(
        "Whether the whole text matches a pattern: `%` is any text, `_` any one character; behind the escape character \
         (`\\` unless given) they mean themselves.",
        "str like pattern [escape 'c']",
        "'abc' like 'a%'",
    ),
    scalar("ilike", &[Param::String, Param::String, Param::String], Ret::Boolean, like).optional(1).doc(
        "As `like`, whatever the case.",
        "str ilike pattern [escape 'c']",
        "'ABC' ilike 'a%'",
    ),
    scalar("rlike", &[Param::String, Param::String], Ret::Boolean, rlike).aliases(&["regexp", "regexp_like"]).doc(
        "Whether a regular expression matches somewhere in the text.",
        "str rlike regexp",
        "'abc' rlike 'b+'",
    ),
];

/// One element of a pattern.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Part {
    Char(char),
    One,
    Any,
}

/// A compiled LIKE pattern; the common shapes are told apart for speed.
#[derive(Debug)]
enum Pattern {
    Equals(String),
    StartsWith(String),
    EndsWith(String),
    Contains(Box<memchr::memmem::Finder<'static>>),
    General(Vec<Part>),
}

impl Pattern {
    fn compile(pattern: &str, escape: char) -> Result<Pattern, EvalError> {
        let mut parts = Vec::new();
        let mut chars = pattern.chars();
        while let Some(c) = chars.next() {
            if c == escape {
                match chars.next() {
                    Some(next) if next == '_' || next == '%' || next == escape => parts.push(Part::Char(next)),
                    Some(next) => {
                        return Err(EvalError::new(
                            "INVALID_FORMAT.ESC_IN_THE_MIDDLE",
                            format!("In the pattern '{pattern}' the escape character is followed by '{next}'."),
                        )
                        .with_help("it may stand before `%`, `_` and itself only"));
                    }
                    None => {
                        return Err(EvalError::new(
                            "INVALID_FORMAT.ESC_AT_THE_END",
                            format!("The pattern '{pattern}' ends with the escape character."),
                        ));
                    }
                }
            } else {
                parts.push(match c {
                    '_' => Part::One,
                    '%' => Part::Any,
                    c => Part::Char(c),
                });
            }
        }
        let text = |parts: &[Part]| -> Option<String> {
            parts.iter().map(|p| if let Part::Char(c) = p { Some(*c) } else { None }).collect()
        };
        let shape = match parts.as_slice() {
            [Part::Any, middle @ .., Part::Any] => text(middle)
                .map(|t| Pattern::Contains(Box::new(memchr::memmem::Finder::new(t.as_bytes()).into_owned()))),
            [Part::Any, rest @ ..] => text(rest).map(Pattern::EndsWith),
            [rest @ .., Part::Any] => text(rest).map(Pattern::StartsWith),
            all => text(all).map(Pattern::Equals),
        };
        Ok(shape.unwrap_or(Pattern::General(parts)))
    }

    fn matches(&self, s: &str) -> bool {
        match self {
            Pattern::Equals(p) => s == p,
            Pattern::StartsWith(p) => s.starts_with(p.as_str()),
            Pattern::EndsWith(p) => s.ends_with(p.as_str()),
            Pattern::Contains(p) => p.find(s.as_bytes()).is_some(),
            Pattern::General(parts) => general(parts, s),
        }
    }
}

/// Greedy matching that goes back to the last `%` on a mismatch: linear memory, no recursion.
fn general(parts: &[Part], s: &str) -> bool {
    let (mut p, mut rest) = (0, s);
    let mut back: Option<(usize, &str)> = None;
    loop {
        match parts.get(p) {
            Some(Part::Any) => {
                back = Some((p + 1, rest));
                p += 1;
                continue;
            }
            Some(part) => {
                let mut chars = rest.chars();
                if let Some(c) = chars.next()
                    && (*part == Part::One || *part == Part::Char(c))
                {
                    rest = chars.as_str();
                    p += 1;
                    continue;
                }
            }
            None if rest.is_empty() => return true,
            None => {}
        }
        // Let the last `%` take one character more.
        let Some((after, from)) = back else { return false };
        let mut chars = from.chars();
        if chars.next().is_none() {
            return false;
        }
        back = Some((after, chars.as_str()));
        (p, rest) = (after, chars.as_str());
    }
}

fn escape_char(text: &str) -> Result<char, EvalError> {
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some(c), None) => Ok(c),
        _ => Err(EvalError::new("INVALID_ESC", format!("The escape '{text}' is not one character."))),
    }
}

/// `like` and `ilike`, told apart by name.
fn like(c: &Call<'_>) -> EvalResult {
    let fold = c.name == "ilike";
    let case = |s: &'_ str| -> String { s.to_lowercase() };
    let compile = |row: usize, pattern: &str| {
        let escape = if c.len() == 3 { escape_char(c.str(2).get(row))? } else { '\\' };
        if fold {
            Pattern::compile(&case(pattern), escape.to_lowercase().next().unwrap_or(escape))
        } else {
            Pattern::compile(pattern, escape)
        }
    };
    let (s, p) = (c.str(0), c.str(1));
    let mut last: Option<(&str, Pattern)> = None;
    c.booleans(|row| {
        let pattern = p.get(row);
        let known = matches!(&last, Some((text, _)) if *text == pattern) && (c.len() < 3 || c.is_constant(2));
        if !known {
            last = Some((pattern, compile(row, pattern)?));
        }
        let text = if fold { Cow::Owned(case(s.get(row))) } else { Cow::Borrowed(s.get(row)) };
        Ok(last.as_ref().map(|(_, compiled)| compiled.matches(&text)))
    })
}

fn rlike(c: &Call<'_>) -> EvalResult {
    let (s, p) = (c.str(0), c.str(1));
    let mut last: Option<(&str, Regex)> = None;
    if let Value::Constant(a) = &c.args[1]
        && a.is_valid(0)
    {
        let pattern = a.as_string_view().value(0);
        last = Some((pattern, Regex::compile(pattern, c.name)?));
    }
    c.booleans(|row| {
        let pattern = p.get(row);
        if !matches!(&last, Some((text, _)) if *text == pattern) {
            last = Some((pattern, Regex::compile(pattern, c.name)?));
        }
        match &last {
            Some((_, regex)) => regex.is_match(s.get(row)).map(Some),
            None => Ok(None),
        }
    })
}
