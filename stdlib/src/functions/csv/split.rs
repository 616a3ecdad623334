//! Where the fields of a CSV line begin and end.

use crate::error::EvalError;
use crate::functions::json::Options;

/// How a line is written.
#[derive(Debug)]
pub(super) struct Dialect {
    pub separator: String,
    pub quote: Option<char>,
    pub escape: Option<char>,
    pub comment: Option<char>,
    /// The text that stands for NULL.
    pub null: String,
    /// What a quoted field of nothing is read as.
    empty: String,
    trim_start: bool,
    trim_end: bool,
}

impl Dialect {
    /// From the options of a call; `trims`: blanks around values go unless said.
    pub(super) fn of(options: &Options, empty: &str, trims: bool) -> Result<Dialect, EvalError> {
        let one = |name: &str, default: Option<char>| match options.get(name) {
            None => Ok(default),
            Some(text) => {
                let mut chars = text.chars();
                match (chars.next(), chars.next()) {
                    (first, None) => Ok(first),
                    _ => Err(EvalError::new(
                        "INVALID_PARAMETER_VALUE.CSV_OPTION",
                        format!("The option `{name}` is one character, not '{text}'."),
                    )),
                }
            }
        };
        let separator = options.get("sep").or(options.get("delimiter")).unwrap_or(",").replace("\\t", "\t");
        if separator.is_empty() {
            return Err(EvalError::new("INVALID_DELIMITER_VALUE.EMPTY_STRING", "The option `sep` must not be empty."));
        }
        Ok(Dialect {
            separator,
            quote: one("quote", Some('"'))?,
            escape: one("escape", Some('\\'))?,
            comment: one("comment", None)?,
            null: options.get("nullvalue").unwrap_or("").to_owned(),
            empty: options.get("emptyvalue").unwrap_or(empty).to_owned(),
            trim_start: options.flag("ignoreleadingwhitespace", trims),
            trim_end: options.flag("ignoretrailingwhitespace", trims),
        })
    }

    /// What an empty text is written as.
    pub(super) fn empty(&self) -> &str {
        &self.empty
    }

    /// A value without the blanks that do not count.
    pub(super) fn trimmed<'s>(&self, mut value: &'s str) -> &'s str {
        if self.trim_start {
            value = value.trim_start();
        }
        if self.trim_end { value.trim_end() } else { value }
    }

    /// The fields of a line; none of an empty one or a comment.
    pub(super) fn fields(&self, line: &str) -> Vec<String> {
        let mut fields = vec![];
        if line.is_empty() || (self.comment.is_some() && line.chars().next() == self.comment) {
            return fields;
        }
        let mut rest = line;
        loop {
            let start = if self.trim_start { rest.trim_start() } else { rest };
            let (field, tail) = match self.quoted(start) {
                Some(found) => found,
                None => {
                    let (raw, tail) = self.until_separator(rest);
                    (self.trimmed(raw).to_owned(), tail)
                }
            };
            fields.push(field);
            match tail {
                Some(tail) => rest = tail,
                None => return fields,
            }
        }
    }

    fn until_separator<'s>(&self, text: &'s str) -> (&'s str, Option<&'s str>) {
        match text.split_once(&self.separator) {
            Some((field, rest)) => (field, Some(rest)),
            None => (text, None),
        }
    }

    /// A field in quotes and what follows it; `None` if it does not begin with a quote, or goes on behind its end: then it
    /// is taken as it stands.
    fn quoted<'s>(&self, text: &'s str) -> Option<(String, Option<&'s str>)> {
        let quote = self.quote?;
        let inside = text.strip_prefix(quote)?;
        let mut value = String::new();
        let mut chars = inside.char_indices().peekable();
        while let Some((i, c)) = chars.next() {
            if Some(c) == self.escape
                && let Some((_, next)) = chars.peek().copied()
                && (next == quote || (Some(next) == self.escape && c != quote))
            {
                value.push(next);
                chars.next();
            } else if c == quote {
                let rest = &inside[i + c.len_utf8()..];
                let value = if value.is_empty() { self.empty.clone() } else { value };
                return match rest.strip_prefix(&self.separator) {
                    Some(tail) => Some((value, Some(tail))),
                    None if rest.is_empty() => Some((value, None)),
                    None => None,
                };
            } else {
                value.push(c);
            }
        }
        // The closing quote is missing: all the rest is the field.
        Some((value, None))
    }
}
