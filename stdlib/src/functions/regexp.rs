//! Functions of regular expressions: `split` and the `regexp_` family.

use arrow::datatypes::Int32Type;
use ssql_ir::{DataType as T, Field, Literal};

use crate::call::{Call, EvalResult};
use crate::error::{EvalError, ResolveError};
use crate::function::{FunctionDef, NullRule, Param, Ret, scalar, scalar_with};
use crate::functions::java_regex::Regex;
use crate::functions::strings::{TextLists, char_count, char_offset};
use crate::resolve::{TypeCall, Typed};

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[
    scalar("split", &[Param::String, Param::String, Param::Int], Ret::With(texts), split).optional(1).doc(
        "The parts of a text between matches of a regular expression, at most `limit` if that is positive.",
        "split(str, regexp[, limit])",
        "split('a1b22c', '[0-9]+')",
    ),
    scalar_with("regexp_replace", replace_type, replace).doc(
        "The text with each match (behind a position) replaced; `$1` and `${name}` stand for groups.",
        "regexp_replace(str, regexp, replacement[, pos])",
        "regexp_replace('100-200', '(\\\\d+)', 'num')",
    ),
    scalar("regexp_extract", &[Param::String, Param::String, Param::Int], Ret::String, extract).optional(1).doc(
        "A group (1 unless said, 0 is all) of the first match; empty if there is none.",
        "regexp_extract(str, regexp[, group])",
        "regexp_extract('100-200', '([0-9]+)-([0-9]+)', 2)",
    ),
    scalar("regexp_extract_all", &[Param::String, Param::String, Param::Int], Ret::With(texts), extract_all)
        .optional(1)
        .doc(
            "A group (1 unless said, 0 is all) of every match.",
            "regexp_extract_all(str, regexp[, group])",
            "regexp_extract_all('a1b2', '[a-z]([0-9])')",
        ),
    scalar("regexp_count", &[Param::String, Param::String], Ret::Int, count).doc(
        "Number of matches.",
        "regexp_count(str, regexp)",
        "regexp_count('a1b2', '[0-9]')",
    ),
    scalar("regexp_instr", &[Param::String, Param::String, Param::Int], Ret::Int, instr).optional(1).doc(
        "Position (from 1) of the first match; 0 if there is none.",
        "regexp_instr(str, regexp)",
        "regexp_instr('ab1', '[0-9]')",
    ),
    scalar("regexp_substr", &[Param::String, Param::String], Ret::String, substr).nulls(NullRule::StrictNullable).doc(
        "The first match; NULL if there is none.",
        "regexp_substr(str, regexp)",
        "regexp_substr('ab12', '[0-9]+')",
    ),
];

fn texts(_: &[T]) -> T {
    T::Array(Box::new(Field::new("element", T::String, false)))
}

/// The compiled pattern argument: a constant is compiled once, a column's pattern as often as it changes.
struct Patterns<'a> {
    name: &'a str,
    last: Option<(&'a str, Regex)>,
}

impl<'a> Patterns<'a> {
    fn get(&mut self, pattern: &'a str) -> Result<&Regex, EvalError> {
        if !matches!(&self.last, Some((text, _)) if *text == pattern) {
            self.last = Some((pattern, Regex::compile(pattern, self.name)?));
        }
        match &self.last {
            Some((_, regex)) => Ok(regex),
            None => Err(EvalError::internal("a pattern was just compiled")),
        }
    }
}

fn check_group(c: &Call<'_>, regex: &Regex, group: i32) -> Result<usize, EvalError> {
    let groups = regex.group_count();
    usize::try_from(group).ok().filter(|g| *g <= groups).ok_or_else(|| {
        EvalError::new(
            "INVALID_PARAMETER_VALUE.REGEX_GROUP_INDEX",
            format!("`{}` expects a group from 0 to {groups}, but got {group}.", c.name),
        )
    })
}

fn split(c: &Call<'_>) -> EvalResult {
    let (s, p) = (c.str(0), c.str(1));
    let limit = (c.len() == 3).then(|| c.i32(2));
    let mut patterns = Patterns { name: c.name, last: None };
    let valid = c.valid();
    let mut out = TextLists::new(c.rows);
    for row in 0..c.rows {
        if valid.as_ref().is_some_and(|n| n.is_null(row)) {
            out.end_row(false);
            continue;
        }
        let text = s.get(row);
        let limit = limit.as_ref().map_or(0, |l| l.get(row));
        let limit = if limit > 0 { limit as usize } else { usize::MAX };
        if p.get(row).is_empty() {
            split_characters(text, limit, &mut out);
        } else {
            let regex = patterns.get(p.get(row)).map_err(|e| e.at_row(row))?;
            split_at_matches(text, regex, limit, &mut out).map_err(|e| e.at_row(row))?;
        }
        out.end_row(true);
    }
    out.finish()
}

fn split_characters(text: &str, limit: usize, out: &mut TextLists) {
    if text.is_empty() {
        out.push("");
    }
    for (n, (i, c)) in text.char_indices().enumerate() {
        if n + 1 == limit {
            out.push(&text[i..]);
            break;
        }
        out.push(&text[i..i + c.len_utf8()]);
    }
}

fn split_at_matches(text: &str, regex: &Regex, limit: usize, out: &mut TextLists) -> Result<(), EvalError> {
    let (mut from, mut pieces) = (0, 1);
    regex.for_each_range(text, |start, end| {
        // A match of nothing at the start makes no empty part.
        if pieces < limit && !(end == 0 && start == 0) {
            out.push(&text[from..start]);
            from = end;
            pieces += 1;
        }
        Ok(())
    })?;
    out.push(&text[from..]);
    Ok(())
}

fn replace_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    let types = c.fixed(&[Param::String, Param::String, Param::String, Param::Int], 1, false)?;
    if let Some(Literal::Int(at)) = c.literal(3)
        && *at < 1
    {
        return Err(ResolveError::new(
            "DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE",
            format!("The position must be between (0, 2147483647] (current value = {at})."),
        )
        .at_arg(3));
    }
    Ok(Typed::new(types, T::String))
}

/// One piece of a replacement.
enum Piece {
    Text(String),
    Group(usize),
}

/// Reads a replacement as Java does: `$1` (as many digits as make a group), `${name}`, and `\` before what means itself.
fn parse_replacement(text: &str, regex: &Regex) -> Option<Vec<Piece>> {
    let mut pieces = vec![];
    let mut literal = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => literal.push(chars.next()?),
            '$' => {
                let group = if chars.next_if_eq(&'{').is_some() {
                    let name: String = chars.by_ref().take_while(|c| *c != '}').collect();
                    regex.group_named(&name)?
                } else {
                    let mut group = chars.next()?.to_digit(10)? as usize;
                    if group > regex.group_count() {
                        return None;
                    }
                    while let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) {
                        let longer = group * 10 + digit as usize;
                        if longer > regex.group_count() {
                            break;
                        }
                        chars.next();
                        group = longer;
                    }
                    group
                };
                if !literal.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(&mut literal)));
                }
                pieces.push(Piece::Group(group));
            }
            c => literal.push(c),
        }
    }
    if !literal.is_empty() {
        pieces.push(Piece::Text(literal));
    }
    Some(pieces)
}

fn replace(c: &Call<'_>) -> EvalResult {
    let (s, p, by) = (c.str(0), c.str(1), c.str(2));
    let position = (c.len() == 4).then(|| c.i32(3));
    let mut patterns = Patterns { name: c.name, last: None };
    let mut last: Option<(&str, &str, Vec<Piece>)> = None;
    c.strings(|row, out| {
        let (text, pattern, by) = (s.get(row), p.get(row), by.get(row));
        let position = position.as_ref().map_or(1, |p| p.get(row)).max(1) as usize;
        let start = char_offset(text, position - 1);
        let (kept, searched) = text.split_at(start);
        out.push_str(kept);
        // Behind the text there is nothing to replace, not even an empty match.
        if position > 1 && searched.is_empty() {
            return Ok(true);
        }
        let regex = patterns.get(pattern)?;
        if regex.find_at(searched, 0)?.is_none() {
            out.push_str(searched);
            return Ok(true);
        }
        if !matches!(&last, Some((p, b, _)) if *p == pattern && *b == by) {
            let pieces = parse_replacement(by, regex).ok_or_else(|| {
                EvalError::new(
                    "INVALID_REGEXP_REPLACE",
                    format!("The replacement '{by}' names a group that the pattern '{pattern}' does not have."),
                )
            })?;
            last = Some((pattern, by, pieces));
        }
        let Some((_, _, pieces)) = &last else { return Err(EvalError::internal("a replacement was just read")) };
        let mut rest = 0;
        let copy_groups = pieces.iter().any(|p| matches!(p, Piece::Group(_)));
        if copy_groups {
            regex.for_each(searched, |groups| {
                let (from, to) = groups[0].unwrap_or((rest, rest));
                out.push_str(&searched[rest..from]);
                for piece in pieces {
                    match piece {
                        Piece::Text(t) => out.push_str(t),
                        Piece::Group(g) => {
                            if let Some((a, b)) = groups.get(*g).copied().flatten() {
                                out.push_str(&searched[a..b]);
                            }
                        }
                    }
                }
                rest = to;
                Ok(())
            })?;
        } else {
            regex.for_each_range(searched, |from, to| {
                out.push_str(&searched[rest..from]);
                for piece in pieces {
                    if let Piece::Text(t) = piece {
                        out.push_str(t);
                    }
                }
                rest = to;
                Ok(())
            })?;
        }
        out.push_str(&searched[rest..]);
        Ok(true)
    })
}

fn extract(c: &Call<'_>) -> EvalResult {
    let (s, p) = (c.str(0), c.str(1));
    let group = (c.len() == 3).then(|| c.i32(2));
    let mut patterns = Patterns { name: c.name, last: None };
    c.strs(|row| {
        let regex = patterns.get(p.get(row))?;
        let text = s.get(row);
        let Some(groups) = regex.groups_at(text, 0)? else { return Ok(Some("")) };
        let group = check_group(c, regex, group.as_ref().map_or(1, |g| g.get(row)))?;
        Ok(Some(groups[group].map_or("", |(a, b)| &text[a..b])))
    })
}

fn extract_all(c: &Call<'_>) -> EvalResult {
    let (s, p) = (c.str(0), c.str(1));
    let group = (c.len() == 3).then(|| c.i32(2));
    let mut patterns = Patterns { name: c.name, last: None };
    let valid = c.valid();
    let mut out = TextLists::new(c.rows);
    for row in 0..c.rows {
        if valid.as_ref().is_some_and(|n| n.is_null(row)) {
            out.end_row(false);
            continue;
        }
        let text = s.get(row);
        let wanted = group.as_ref().map_or(1, |g| g.get(row));
        let regex = patterns.get(p.get(row)).map_err(|e| e.at_row(row))?;
        regex
            .for_each(text, |groups| {
                let group = check_group(c, regex, wanted)?;
                out.push(groups[group].map_or("", |(a, b)| &text[a..b]));
                Ok(())
            })
            .map_err(|e| e.at_row(row))?;
        out.end_row(true);
    }
    out.finish()
}

fn count(c: &Call<'_>) -> EvalResult {
    let (s, p) = (c.str(0), c.str(1));
    let mut patterns = Patterns { name: c.name, last: None };
    c.primitive::<Int32Type>(|row| {
        let mut n = 0;
        patterns.get(p.get(row))?.for_each_range(s.get(row), |_, _| {
            n += 1;
            Ok(())
        })?;
        Ok(Some(n))
    })
}

fn instr(c: &Call<'_>) -> EvalResult {
    let (s, p) = (c.str(0), c.str(1));
    let mut patterns = Patterns { name: c.name, last: None };
    c.primitive::<Int32Type>(|row| {
        let text = s.get(row);
        let found = patterns.get(p.get(row))?.find_at(text, 0)?;
        Ok(Some(found.map_or(0, |(at, _)| char_count(&text[..at]) as i32 + 1)))
    })
}

fn substr(c: &Call<'_>) -> EvalResult {
    let (s, p) = (c.str(0), c.str(1));
    let mut patterns = Patterns { name: c.name, last: None };
    c.strs(|row| {
        let text = s.get(row);
        let found = patterns.get(p.get(row))?.find_at(text, 0)?;
        // An empty match counts as none.
        Ok(found.filter(|(a, b)| b > a).map(|(a, b)| &text[a..b]))
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::*;

    #[test]
    fn splitting() {
        let split = |s: &str, p: &str| eval("split", &[str(s), str(p)]);
        assert_eq!(split("a1b22c", "[0-9]+"), "[a, b, c]");
        assert_eq!(split("a,b,,", ","), "[a, b, , ]");
        assert_eq!(split("", ","), "[]");
        assert_eq!(split("abc", ""), "[a, b, c]");
        assert_eq!(split("a.b", "."), "[, , , ]");
        assert_eq!(split("aXbXc", "x*"), "[a, X, b, X, c, ]");
        assert_eq!(split("a1b", "(?=1)"), "[a, 1b]");
        for (limit, want) in [(2, "[a, b,c]"), (0, "[a, b, c]"), (-1, "[a, b, c]"), (1, "[a,b,c]")] {
            assert_eq!(eval("split", &[str("a,b,c"), str(","), int(limit)]), want);
        }
        assert_eq!(eval("split", &[str("abc"), str(""), int(2)]), "[a, bc]");
        assert_eq!(eval("split", &[null(), str(",")]), "NULL");
    }

    #[test]
    fn replacing() {
        let replace = |s: &str, p: &str, by: &str| eval("regexp_replace", &[str(s), str(p), str(by)]);
        assert_eq!(replace("aaa", "a*", "-"), "--");
        assert_eq!(replace("abc", "", "-"), "-a-b-c-");
        assert_eq!(replace("POST /b", "([A-Z]+) (/[a-z])", "$2 by $1"), "/b by POST");
        assert_eq!(replace("abc", "b", "\\$1"), "a$1c");
        assert_eq!(replace("abc", "(?<n>b)", "[${n}]"), "a[b]c");
        assert_eq!(replace("abc", "(b)", "$3"), "!INVALID_REGEXP_REPLACE");
        assert_eq!(replace("foo", "o{2}", "$0$0"), "foooo");
        assert_eq!(replace("ab\n", "b$", "x"), "ax\n");
        assert_eq!(replace("xyz", "(b)", "$3"), "xyz");
        assert_eq!(eval("regexp_replace", &[str("aaa"), str("a"), str("b"), int(2)]), "abb");
        assert_eq!(eval("regexp_replace", &[str("abc"), str("b"), str("x"), int(9)]), "abc");
        assert_eq!(
            eval("regexp_replace", &[str("a"), str("b"), str("x"), int(0)]),
            "!DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE"
        );
    }

    #[test]
    fn extracting() {
        let extract = |s: &str, p: &str, g: i32| eval("regexp_extract", &[str(s), str(p), int(g)]);
        assert_eq!(extract("key=val", "(?<k>[a-z]+)=", 1), "key");
        assert_eq!(extract("12ms", "(x)?ms", 1), "");
        assert_eq!(extract("none", "[0-9]+", 0), "");
        assert_eq!(extract("abc", "(b)", 2), "!INVALID_PARAMETER_VALUE.REGEX_GROUP_INDEX");
        assert_eq!(extract("abc", "(b)", -1), "!INVALID_PARAMETER_VALUE.REGEX_GROUP_INDEX");
        assert_eq!(extract("xyz", "(b)", 5), "");
        assert_eq!(extract("abc", "(b", 0), "!INVALID_PARAMETER_VALUE.PATTERN");
        assert_eq!(eval("regexp_extract_all", &[str("a1b2"), str("[a-z]([0-9])")]), "[1, 2]");
        assert_eq!(eval("regexp_extract_all", &[str("zz"), str("([0-9])")]), "[]");
        assert_eq!(
            eval("regexp_extract_all", &[str("a1b2"), str("[0-9]")]),
            "!INVALID_PARAMETER_VALUE.REGEX_GROUP_INDEX"
        );
        assert_eq!(eval("regexp_count", &[str("GET /a 200 12ms"), str("[0-9]")]), "5");
        assert_eq!(eval("regexp_instr", &[str("a😀b"), str("b")]), "3");
        assert_eq!(eval("regexp_instr", &[str("ab"), str("x")]), "0");
        assert_eq!(eval("regexp_substr", &[str("ab12"), str("[0-9]+")]), "12");
        assert_eq!(eval("regexp_substr", &[str("ab"), str("[0-9]*")]), "NULL");
    }
}
