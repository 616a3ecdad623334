//! Text looked for in text, replaced, cut at delimiters and compared. Positions count characters from 1.

use arrow::array::{Array, AsArray, ListArray};
use arrow::datatypes::Int32Type;
use memchr::memmem;
use ssql_ir::{DataType as T, Literal};

use crate::call::{Call, EvalResult};
use crate::error::{EvalError, ResolveError};
use crate::function::{FunctionDef, NullRule, Param, Ret, STRING_OR_BINARY, TEXT, scalar, scalar_with};
use crate::functions::lists::pick;
use crate::functions::strings::{TextLists, char_count, char_offset, substring_of};
use crate::resolve::{TypeCall, Typed};

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[
    scalar("instr", &[Param::String, Param::String], Ret::Int, instr).doc(
        "Position of the first `sub` in `str`; 0 if there is none.",
        "instr(str, sub)",
        "instr('banana', 'an')",
    ),
    scalar_with("locate", locate_type, locate).nulls(NullRule::Any).aliases(&["position"]).doc(
        "Position of the first `sub` in `str` at or behind a position; 0 if there is none.",
        "locate(sub, str[, pos])",
        "locate('an', 'banana', 3)",
    ),
    scalar_with("contains", pair_type, contains).doc(
        "Whether `x` contains `part`.",
        "contains(x, part)",
        "contains('abc', 'b')",
    ),
    scalar_with("startswith", pair_type, contains).doc(
        "Whether `x` starts with `part`.",
        "startswith(x, part)",
        "startswith('abc', 'a')",
    ),
    scalar_with("endswith", pair_type, contains).doc(
        "Whether `x` ends with `part`.",
        "endswith(x, part)",
        "endswith('abc', 'c')",
    ),
    scalar("replace", &[Param::String, Param::String, Param::String], Ret::String, replace).optional(1).doc(
        "The text with every `search` replaced (by nothing unless said).",
        "replace(str, search[, replacement])",
        "replace('abcabc', 'bc', 'x')",
    ),
    scalar("translate", &[Param::String, Param::String, Param::String], Ret::String, translate).doc(
        "The text with each character of `from` replaced by the one at the same place of `to`, or dropped.",
        "translate(str, from, to)",
        "translate('abc', 'ab', 'x')",
    ),
    scalar("substring_index", &[Param::String, Param::String, Param::Int], Ret::String, substring_index).doc(
        "The text before the `count`th delimiter; behind it, counted from the end, if `count` is negative.",
        "substring_index(str, delim, count)",
        "substring_index('a.b.c', '.', 2)",
    ),
    scalar("split_part", &[Param::String, Param::String, Param::Int], Ret::String, split_part).doc(
        "Part `n` (negative: from the end) of the text cut at a delimiter; empty outside.",
        "split_part(str, delim, n)",
        "split_part('a,b,c', ',', 2)",
    ),
    scalar("find_in_set", &[Param::String, Param::String], Ret::Int, find_in_set).doc(
        "Place of a text in a comma-separated list; 0 if it is not there or holds a comma.",
        "find_in_set(str, list)",
        "find_in_set('b', 'a,b')",
    ),
    scalar_with("elt", elt_type, elt).nulls(NullRule::Any).doc(
        "Argument number `n` of those behind it.",
        "elt(n, a, b, ...)",
        "elt(2, 'x', 'y')",
    ),
    scalar_with("overlay", overlay_type, overlay).doc(
        "The text with `len` characters (as many as the replacement has unless said) from a position replaced.",
        "overlay(x, replacement, pos[, len])",
        "overlay('SparkSQL', '_', 6)",
    ),
    scalar("levenshtein", &[Param::String, Param::String, Param::Int], Ret::Int, levenshtein).optional(1).doc(
        "Number of single-character edits between two texts; -1 if more than the threshold.",
        "levenshtein(a, b[, threshold])",
        "levenshtein('kitten', 'sitting')",
    ),
    scalar("soundex", &[TEXT], Ret::String, soundex).doc(
        "Soundex code of an English word.",
        "soundex(str)",
        "soundex('Robert')",
    ),
    scalar("luhn_check", &[Param::String], Ret::Boolean, luhn_check).doc(
        "Whether the digits pass the Luhn check.",
        "luhn_check(digits)",
        "luhn_check('79927398713')",
    ),
    scalar_with("mask", mask_type, mask).nulls(NullRule::Any).doc(
        "The text with capitals, small letters, digits and (if said) other characters replaced; NULL keeps them.",
        "mask(str[, upper[, lower[, digit[, other]]]])",
        "mask('AbCD123-@$#')",
    ),
    scalar(
        "sentences",
        &[Param::String, Param::String, Param::String],
        Ret::ArrayOf(&Ret::ArrayOf(&Ret::String)),
        sentences,
    )
    .optional(2)
    .doc(
        "The sentences of a text, each an array of its words.",
        "sentences(str[, language[, country]])",
        "sentences('Hi there! Good morning.')",
    ),
];

/// A text and up to four replacements, constants of one character.
fn mask_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    let types = c.fixed(&[TEXT; 5], 4, false)?;
    for i in 1..c.len() {
        match c.literal(i) {
            Some(Literal::String(s)) if s.chars().count() != 1 => {
                return Err(ResolveError::new(
                    "DATATYPE_MISMATCH.INPUT_SIZE_NOT_ONE",
                    format!("A replacement of `mask` is one character, not '{s}'."),
                )
                .at_arg(i));
            }
            _ => {}
        }
    }
    Ok(Typed::new(types, T::String).nullable(c.args[0].nullable))
}

/// Two of one kind: STRING, or BINARY if both are.
fn pair_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, 2)?;
    let binary = c.args.iter().all(|a| matches!(a.data_type, T::Binary | T::Null)) && !c.args.is_empty();
    let binary = binary && c.args.iter().any(|a| a.data_type == T::Binary);
    let t = if binary { T::Binary } else { T::String };
    for i in 0..2 {
        c.coerce(i, STRING_OR_BINARY)?;
    }
    Ok(Typed::new(vec![t.clone(), t], T::Boolean))
}

/// Position of the character at that byte, from 1.
fn position_at(s: &str, byte: usize) -> i32 {
    char_count(&s[..byte]) as i32 + 1
}

fn instr(c: &Call<'_>) -> EvalResult {
    let (s, sub) = (c.str(0), c.str(1));
    let finder = c.constant_str(1).map(|needle| memmem::Finder::new(needle.as_bytes()));
    c.primitive::<Int32Type>(|row| {
        let text = s.get(row);
        let found = match &finder {
            Some(f) => f.find(text.as_bytes()),
            None => memmem::find(text.as_bytes(), sub.get(row).as_bytes()),
        };
        Ok(Some(found.map_or(0, |at| position_at(text, at))))
    })
}

fn locate_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    let types = c.fixed(&[Param::String, Param::String, Param::Int], 1, false)?;
    Ok(Typed::new(types, T::Int32).nullable(c.args[..2].iter().any(|a| a.nullable)))
}

fn locate(c: &Call<'_>) -> EvalResult {
    let (sub, s) = (c.str(0), c.str(1));
    let from = (c.len() == 3).then(|| c.i32(2));
    c.primitive::<Int32Type>(|row| {
        // A NULL position finds nothing, even in NULL.
        let Some(from) = from.as_ref().map_or(Some(1), |f| f.opt(row)) else { return Ok(Some(0)) };
        let (Some(sub), Some(text)) = (sub.opt(row), s.opt(row)) else { return Ok(None) };
        if from <= 0 {
            return Ok(Some(0));
        }
        if sub.is_empty() {
            return Ok(Some(1));
        }
        let start = char_offset(text, from as usize - 1);
        let found = memmem::find(&text.as_bytes()[start..], sub.as_bytes());
        Ok(Some(found.map_or(0, |at| position_at(text, start + at))))
    })
}

/// `contains`, `startswith` and `endswith`, told apart by name.
fn contains(c: &Call<'_>) -> EvalResult {
    let holds = |text: &[u8], part: &[u8]| match c.name {
        "startswith" => text.starts_with(part),
        "endswith" => text.ends_with(part),
        _ => memmem::find(text, part).is_some(),
    };
    if *c.types[0] == T::Binary {
        let (a, b) = (c.bytes(0), c.bytes(1));
        return c.booleans(|row| Ok(Some(holds(a.get(row), b.get(row)))));
    }
    let (a, b) = (c.str(0), c.str(1));
    match c.constant_str(1) {
        Some(part) if c.name == "contains" => {
            let finder = memmem::Finder::new(part.as_bytes());
            c.booleans(|row| Ok(Some(finder.find(a.get(row).as_bytes()).is_some())))
        }
        _ => c.booleans(|row| Ok(Some(holds(a.get(row).as_bytes(), b.get(row).as_bytes())))),
    }
}

fn replace(c: &Call<'_>) -> EvalResult {
    let (s, search) = (c.str(0), c.str(1));
    let by = (c.len() == 3).then(|| c.str(2));
    c.strings(|row, out| {
        let (text, search) = (s.get(row), search.get(row));
        if search.is_empty() {
            out.push_str(text);
            return Ok(true);
        }
        let by = by.as_ref().map_or("", |b| b.get(row));
        let mut rest = 0;
        for at in memmem::find_iter(text.as_bytes(), search.as_bytes()) {
            out.push_str(&text[rest..at]);
            out.push_str(by);
            rest = at + search.len();
        }
        out.push_str(&text[rest..]);
        Ok(true)
    })
}

fn translate(c: &Call<'_>) -> EvalResult {
    /// What each character becomes; `None`: nothing.
    type Targets = ahash::AHashMap<char, Option<char>>;
    let (s, from, to) = (c.str(0), c.str(1), c.str(2));
    let mut last: Option<(&str, &str, Targets)> = None;
    c.strings(|row, out| {
        let (from, to) = (from.get(row), to.get(row));
        if !matches!(&last, Some((f, t, _)) if *f == from && *t == to) {
            let mut map = Targets::new();
            let mut targets = to.chars();
            for ch in from.chars() {
                let target = targets.next();
                // The first occurrence of a character counts.
                map.entry(ch).or_insert(target);
            }
            last = Some((from, to, map));
        }
        if let Some((_, _, map)) = &last {
            out.extend(s.get(row).chars().filter_map(|ch| map.get(&ch).copied().unwrap_or(Some(ch))));
        }
        Ok(true)
    })
}

/// Byte position of the `n`th occurrence (from 1), overlapping ones counted.
fn nth_forward(text: &[u8], part: &[u8], n: u32) -> Option<usize> {
    let mut from = 0;
    let mut at = None;
    for _ in 0..n {
        let found = from + memmem::find(text.get(from..)?, part)?;
        at = Some(found);
        from = found + 1;
    }
    at
}

/// As [`nth_forward`], from the end.
fn nth_backward(text: &[u8], part: &[u8], n: u32) -> Option<usize> {
    let mut end = text.len();
    let mut at = None;
    for _ in 0..n {
        let found = memmem::rfind(&text[..end], part)?;
        at = Some(found);
        end = (found + part.len()).checked_sub(1)?;
    }
    at
}

fn substring_index(c: &Call<'_>) -> EvalResult {
    let (s, delimiter, count) = (c.str(0), c.str(1), c.i32(2));
    c.strs(|row| {
        let (text, delimiter, count) = (s.get(row), delimiter.get(row), count.get(row));
        if delimiter.is_empty() || count == 0 {
            return Ok(Some(""));
        }
        let (bytes, part) = (text.as_bytes(), delimiter.as_bytes());
        Ok(Some(if count > 0 {
            nth_forward(bytes, part, count.unsigned_abs()).map_or(text, |at| &text[..at])
        } else {
            nth_backward(bytes, part, count.unsigned_abs()).map_or(text, |at| &text[at + part.len()..])
        }))
    })
}

fn split_part(c: &Call<'_>) -> EvalResult {
    let (s, delimiter, n) = (c.str(0), c.str(1), c.i32(2));
    c.strs(|row| {
        let (text, delimiter, n) = (s.get(row), delimiter.get(row), n.get(row));
        let place = n.unsigned_abs() as usize;
        if n == 0 {
            return Err(EvalError::new("INVALID_INDEX_OF_ZERO", "The index 0 is invalid: parts are counted from 1."));
        }
        Ok(Some(if delimiter.is_empty() {
            if place == 1 { text } else { "" }
        } else if n > 0 {
            text.split(delimiter).nth(place - 1).unwrap_or("")
        } else {
            // Parts are cut from the front, so that they are counted from the front too.
            let parts = text.split(delimiter).count();
            parts.checked_sub(place).and_then(|i| text.split(delimiter).nth(i)).unwrap_or("")
        }))
    })
}

fn find_in_set(c: &Call<'_>) -> EvalResult {
    let (s, set) = (c.str(0), c.str(1));
    c.primitive::<Int32Type>(|row| {
        let wanted = s.get(row);
        if wanted.contains(',') {
            return Ok(Some(0));
        }
        Ok(Some(set.get(row).split(',').position(|p| p == wanted).map_or(0, |i| i as i32 + 1)))
    })
}

fn elt_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, usize::MAX)?;
    let binary = c.args[1..].iter().all(|a| a.data_type == T::Binary);
    let t = if binary { T::Binary } else { T::String };
    let mut types = vec![c.coerce(0, Param::Int)?];
    for i in 1..c.len() {
        c.coerce(i, STRING_OR_BINARY)?;
        types.push(t.clone());
    }
    Ok(Typed::new(types, t).nullable(c.any_nullable()))
}

fn elt(c: &Call<'_>) -> EvalResult {
    let n = c.i32(0);
    let sources = (1..c.len()).map(|i| c.column(i)).collect::<Result<Vec<_>, _>>()?;
    let null = sources.len();
    let mut places = Vec::with_capacity(c.rows);
    for row in 0..c.rows {
        places.push(match n.opt(row) {
            None => (null, 0),
            Some(n) if n < 1 || n as usize > null => {
                return Err(EvalError::new(
                    "INVALID_ARRAY_INDEX",
                    format!("The index {n} is out of bounds. There are {null} values."),
                )
                .at_row(row));
            }
            Some(n) => (n as usize - 1, row),
        });
    }
    let nothing = arrow::array::new_null_array(sources[0].data_type(), 1);
    pick(&[sources, vec![nothing]].concat(), &places)
}

fn overlay_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(3, 4)?;
    let t = match (c.ty(0), c.ty(1)) {
        (T::Binary, T::Binary) => T::Binary,
        (T::Binary, T::String) | (T::String, T::Binary) => return Err(c.different_types()),
        _ => T::String,
    };
    c.coerce(0, STRING_OR_BINARY)?;
    c.coerce(1, STRING_OR_BINARY)?;
    let mut types = vec![t.clone(), t.clone()];
    for i in 2..c.len() {
        types.push(c.coerce(i, Param::Int)?);
    }
    Ok(Typed::new(types, t))
}

fn overlay(c: &Call<'_>) -> EvalResult {
    let pos = c.i32(2);
    let len = (c.len() == 4).then(|| c.i32(3));
    // Characters of the replacement's length unless a length is said; negative means "not said".
    let length = |row: usize, own: usize| match len.as_ref().map(|l| l.get(row)) {
        Some(l) if l >= 0 => l,
        _ => own as i32,
    };
    if *c.data_type == T::Binary {
        let (b, by) = (c.bytes(0), c.bytes(1));
        return c.binaries(|row, out| {
            let (bytes, by, pos) = (b.get(row), by.get(row), i64::from(pos.get(row)));
            let at = |p: i64| {
                let p = if p < 0 { bytes.len() as i64 + p } else { (p - 1).max(0) };
                p.clamp(0, bytes.len() as i64) as usize
            };
            out.extend_from_slice(&bytes[..(pos - 1).clamp(0, bytes.len() as i64) as usize]);
            out.extend_from_slice(by);
            out.extend_from_slice(&bytes[at(pos + i64::from(length(row, by.len())))..]);
            Ok(true)
        });
    }
    let (s, by) = (c.str(0), c.str(1));
    c.strings(|row, out| {
        let (text, by, pos) = (s.get(row), by.get(row), pos.get(row));
        out.push_str(substring_of(text, 1, pos.saturating_sub(1)));
        out.push_str(by);
        out.push_str(substring_of(text, pos.saturating_add(length(row, char_count(by))), i32::MAX));
        Ok(true)
    })
}

fn levenshtein(c: &Call<'_>) -> EvalResult {
    let (a, b) = (c.str(0), c.str(1));
    let threshold = (c.len() == 3).then(|| c.i32(2));
    let (mut short, mut costs): (Vec<char>, Vec<usize>) = (vec![], vec![]);
    c.primitive::<Int32Type>(|row| {
        short.clear();
        short.extend(b.get(row).chars());
        costs.clear();
        costs.extend(0..=short.len());
        for (i, x) in a.get(row).chars().enumerate() {
            let mut diagonal = i;
            costs[0] = i + 1;
            for (j, y) in short.iter().enumerate() {
                let cost = (diagonal + usize::from(x != *y)).min(costs[j] + 1).min(costs[j + 1] + 1);
                diagonal = std::mem::replace(&mut costs[j + 1], cost);
            }
        }
        let distance = costs[short.len()] as i32;
        Ok(Some(if threshold.as_ref().is_some_and(|t| distance > t.get(row)) { -1 } else { distance }))
    })
}

fn soundex(c: &Call<'_>) -> EvalResult {
    /// Codes of A to Z: 0 separates equal codes, 7 (H and W) does not.
    const CODES: &[u8; 26] = b"01230127022455012623017202";
    let s = c.str(0);
    c.strings(|row, out| {
        let text = s.get(row);
        let mut bytes = text.bytes().map(|b| b.to_ascii_uppercase());
        let Some(first) = bytes.next().filter(u8::is_ascii_uppercase) else {
            out.push_str(text);
            return Ok(true);
        };
        out.push(char::from(first));
        let mut last = CODES[usize::from(first - b'A')];
        for b in bytes {
            if !b.is_ascii_uppercase() {
                last = b'0';
                continue;
            }
            let code = CODES[usize::from(b - b'A')];
            if code == b'7' {
                continue;
            }
            if code != b'0' && code != last {
                out.push(char::from(code));
                if out.len() == 4 {
                    break;
                }
            }
            last = code;
        }
        while out.len() < 4 {
            out.push('0');
        }
        Ok(true)
    })
}

fn luhn_check(c: &Call<'_>) -> EvalResult {
    let s = c.str(0);
    c.booleans(|row| {
        let digits = s.get(row).as_bytes();
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return Ok(Some(false));
        }
        let sum: u64 = digits
            .iter()
            .rev()
            .enumerate()
            .map(|(i, d)| {
                let d = u64::from(d - b'0') * if i % 2 == 1 { 2 } else { 1 };
                if d > 9 { d - 9 } else { d }
            })
            .sum();
        Ok(Some(sum.is_multiple_of(10)))
    })
}

fn mask(c: &Call<'_>) -> EvalResult {
    let s = c.str(0);
    let replacements: Vec<_> = (1..c.len()).map(|i| c.str(i)).collect();
    let with = |i: usize, row: usize, default: Option<char>| match replacements.get(i) {
        None => default,
        Some(r) => r.opt(row).and_then(|r| r.chars().next()),
    };
    c.strings(|row, out| {
        let Some(text) = s.opt(row) else { return Ok(false) };
        let by = [with(0, row, Some('X')), with(1, row, Some('x')), with(2, row, Some('n')), with(3, row, None)];
        out.extend(text.chars().map(|ch| {
            let class = match ch {
                ch if ch.is_uppercase() => 0,
                ch if ch.is_lowercase() => 1,
                ch if ch.is_numeric() => 2,
                _ => 3,
            };
            by[class].unwrap_or(ch)
        }));
        Ok(true)
    })
}

/// Sentences end at `.`, `!` and `?` before a blank or the end; words are runs of letters and digits, with an apostrophe,
/// a point or a comma inside.
fn sentences(c: &Call<'_>) -> EvalResult {
    let s = c.str(0);
    let valid = c.valid();
    let mut words = TextLists::new(c.rows);
    let mut offsets = vec![0i32];
    let mut sentences = 0;
    for row in 0..c.rows {
        if valid.as_ref().is_none_or(|n| n.is_valid(row)) {
            for sentence in split_sentences(s.get(row)) {
                let mut any = false;
                // A hyphen inside holds a word together.
                let inside = |ch: char| ch.is_alphanumeric() || matches!(ch, '\'' | '.' | ',' | '-');
                for word in sentence.split(|ch: char| !inside(ch)) {
                    let word = word.trim_matches(|ch: char| !ch.is_alphanumeric());
                    if !word.is_empty() {
                        words.push(word);
                        any = true;
                    }
                }
                if any {
                    words.end_row(true);
                    sentences += 1;
                }
            }
        }
        offsets.push(sentences);
    }
    let inner = words.finish()?;
    let T::Array(element) = c.data_type else { return Err(EvalError::internal("an array of arrays")) };
    let inner = crate::arrow::conform(inner, &element.data_type)?;
    let field = std::sync::Arc::new(crate::arrow::arrow_field(element));
    let offsets = arrow::buffer::OffsetBuffer::new(offsets.into());
    debug_assert_eq!(inner.as_list::<i32>().len(), sentences as usize);
    Ok(std::sync::Arc::new(ListArray::try_new(field, offsets, inner, valid)?))
}

fn split_sentences(text: &str) -> Vec<&str> {
    let mut parts = vec![];
    let mut start = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((i, ch)) = chars.next() {
        let ends = matches!(ch, '.' | '!' | '?') && chars.peek().is_none_or(|(_, next)| next.is_whitespace());
        if ends {
            parts.push(&text[start..i]);
            start = i + ch.len_utf8();
        }
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use ssql_ir::DataType as T;

    #[test]
    fn searching() {
        assert_eq!(eval("instr", &[str("banana"), str("an")]), "2");
        assert_eq!(eval("instr", &[str("banana"), str("")]), "1");
        assert_eq!(eval("instr", &[str("日本語"), str("語")]), "3");
        assert_eq!(eval("instr", &[null(), str("a")]), "NULL");
        for (from, at) in [(3, "4"), (0, "0"), (9, "0")] {
            assert_eq!(eval("locate", &[str("an"), str("banana"), int(from)]), at);
        }
        assert_eq!(eval("locate", &[str(""), str("banana"), int(3)]), "1");
        assert_eq!(eval("locate", &[str("a"), str("abc"), null()]), "0");
        assert_eq!(eval("position", &[str("na"), str("banana")]), "3");
        assert_eq!(eval("contains", &[str("axb"), str("x")]), "true");
        assert_eq!(eval("contains", &[binary(b"axb"), binary(b"y")]), "false");
        assert_eq!(eval("startswith", &[str("axb"), str("a")]), "true");
        assert_eq!(eval("endswith", &[str(""), str("")]), "true");
        assert_eq!(eval("contains", &[str("a"), null()]), "NULL");
        assert_eq!(eval("find_in_set", &[str(""), str("a,,c")]), "2");
        assert_eq!(eval("find_in_set", &[str("a,b"), str("a,b,c")]), "0");
    }

    #[test]
    fn replacing() {
        assert_eq!(eval("replace", &[str("aaa"), str("aa"), str("b")]), "ba");
        assert_eq!(eval("replace", &[str("abcabc"), str("bc")]), "aa");
        assert_eq!(eval("replace", &[str("abc"), str(""), str("x")]), "abc");
        assert_eq!(eval("translate", &[str("abcabc"), str("abc"), str("12")]), "1212");
        assert_eq!(eval("translate", &[str("abc"), str("aa"), str("xy")]), "xbc");
        assert_eq!(eval("overlay", &[str("SparkSQL"), str("ANSI "), int(6), int(0)]), "SparkANSI SQL");
        assert_eq!(eval("overlay", &[str("SparkSQL"), str("CORE"), int(6)]), "SparkCORE");
        assert_eq!(eval("mask", &[str("AbCD123-@$#")]), "XxXXnnn-@$#");
        assert_eq!(eval("mask", &[str("AbCD123-@$#"), null(), str("q")]), "AqCDnnn-@$#");
        assert_eq!(eval("mask", &[str("Ab1-"), str("Q"), str("q"), str("d"), str("o")]), "Qqdo");
    }

    #[test]
    fn cutting_at_delimiters() {
        let d = || str("a.b.c.d");
        for (n, want) in [(2, "a.b"), (-2, "c.d"), (0, ""), (9, "a.b.c.d")] {
            assert_eq!(eval("substring_index", &[d(), str("."), int(n)]), want);
        }
        assert_eq!(eval("substring_index", &[str("a||b||c"), str("||"), int(-1)]), "c");
        for (n, want) in [(1, "a"), (3, ""), (-1, "d"), (9, "")] {
            assert_eq!(eval("split_part", &[str("a,b,,d"), str(","), int(n)]), want);
        }
        assert_eq!(eval("split_part", &[str("a,b"), str(""), int(1)]), "a,b");
        assert_eq!(eval("split_part", &[str("a,b"), str(","), int(0)]), "!INVALID_INDEX_OF_ZERO");
        assert_eq!(eval("elt", &[int(2), str("x"), str("y")]), "y");
        assert_eq!(eval("elt", &[int(1), null(), str("b")]), "NULL");
        assert_eq!(eval("elt", &[int(4), str("x")]), "!INVALID_ARRAY_INDEX");
        assert_eq!(eval("sentences", &[str("Hi there! Good morning.")]), "[[Hi, there], [Good, morning]]");
        assert_eq!(eval("sentences", &[null_of(T::String)]), "NULL");
    }

    #[test]
    fn likeness() {
        assert_eq!(eval("levenshtein", &[str("kitten"), str("sitting")]), "3");
        assert_eq!(eval("levenshtein", &[str("kitten"), str("sitting"), int(2)]), "-1");
        assert_eq!(eval("levenshtein", &[str(""), str("abc")]), "3");
        let words = [
            ("Robert", "R163"),
            ("123", "123"),
            ("Tymczak", "T522"),
            ("Pfister", "P236"),
            ("Honeyman", "H555"),
            ("Ashcraft", "A261"),
            ("é", "é"),
            ("", ""),
        ];
        for (word, code) in words {
            assert_eq!(eval("soundex", &[str(word)]), code);
        }
        assert_eq!(eval("luhn_check", &[str("79927398713")]), "true");
        assert_eq!(eval("luhn_check", &[str("7992x")]), "false");
    }
}
