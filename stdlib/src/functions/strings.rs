//! Text as a whole: joining, case, trimming, padding, cutting and measuring it. Positions and lengths count characters
//! (Unicode code points); of BINARY they count bytes.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryViewArray, ListArray, StringViewArray};
use arrow::datatypes::Int32Type;
use ssql_ir::{DataType as T, Field};

use crate::call::{Call, EvalResult, View};
use crate::error::ResolveError;
use crate::function::{FunctionDef, NullRule, Param, Ret, STRING_OR_BINARY, scalar, scalar_with};
use crate::functions::lists::Lists;
use crate::resolve::{TypeCall, Typed};

/// Entries of this family.
pub const TABLE: &[FunctionDef] =
    &[
        scalar_with("concat", concat_type, concat).aliases(&["||"]).doc(
            "Joins texts, bytes or arrays; NULL if one of them is.",
            "concat(a, b, ...)",
            "concat('a', 'b')",
        ),
        scalar_with("concat_ws", concat_ws_type, concat_ws).nulls(NullRule::Any).doc(
            "Joins texts and arrays of texts with a separator; NULLs among them are left out.",
            "concat_ws(sep, a, ...)",
            "concat_ws('-', 'a', 'b')",
        ),
        scalar("upper", &[Param::String], Ret::String, upper).aliases(&["ucase"]).doc(
            "The text in capitals.",
            "upper(str)",
            "upper('abc')",
        ),
        scalar("lower", &[Param::String], Ret::String, lower).aliases(&["lcase"]).doc(
            "The text in small letters.",
            "lower(str)",
            "lower('ABC')",
        ),
        scalar("initcap", &[Param::String], Ret::String, initcap).doc(
            "The text with the first letter of each blank-separated word a capital, the others small.",
            "initcap(str)",
            "initcap('hello wORLD')",
        ),
        scalar("trim", &[Param::String, Param::String], Ret::String, trim).optional(1).doc(
            "The text without blanks, or without the given characters, at both ends.",
            "trim([chars,] str)",
            "trim(' a ')",
        ),
        scalar("ltrim", &[Param::String, Param::String], Ret::String, trim).optional(1).doc(
            "The text without blanks, or without the given characters, at its start.",
            "ltrim([chars,] str)",
            "ltrim(' a')",
        ),
        scalar("rtrim", &[Param::String, Param::String], Ret::String, trim).optional(1).doc(
            "The text without blanks, or without the given characters, at its end.",
            "rtrim([chars,] str)",
            "rtrim('a ')",
        ),
        scalar("btrim", &[Param::String, Param::String], Ret::String, trim).optional(1).doc(
            "The text without blanks, or without the given characters, at both ends.",
            "btrim(str[, chars])",
            "btrim('xax', 'x')",
        ),
        scalar("length", &[STRING_OR_BINARY], Ret::Int, length)
            .aliases(&["len", "char_length", "character_length"])
            .doc("Number of characters of a text, of bytes of a binary.", "length(x)", "length('abc')"),
        scalar("octet_length", &[STRING_OR_BINARY], Ret::Int, octets).doc(
            "Number of bytes (of a text: in UTF-8).",
            "octet_length(x)",
            "octet_length('abc')",
        ),
        scalar("bit_length", &[STRING_OR_BINARY], Ret::Int, octets).doc(
            "Number of bits (of a text: in UTF-8).",
            "bit_length(x)",
            "bit_length('abc')",
        ),
        scalar("substring", &[STRING_OR_BINARY, Param::Int, Param::Int], Ret::SameAs(0), substring)
            .optional(1)
            .aliases(&["substr"])
            .doc(
                "The part from a position (1 is the first, -1 the last), of at most `len` characters.",
                "substring(x, pos[, len])",
                "substring('streaming', 3, 2)",
            ),
        scalar("left", &[STRING_OR_BINARY, Param::Int], Ret::SameAs(0), substring).doc(
            "The first `len` characters.",
            "left(x, len)",
            "left('spark', 2)",
        ),
        scalar("right", &[Param::String, Param::Int], Ret::String, substring).doc(
            "The last `len` characters.",
            "right(x, len)",
            "right('spark', 2)",
        ),
        scalar_with("lpad", pad_type, pad).doc(
            "The text brought to a length: filled up at its start (with blanks unless said), or cut.",
            "lpad(x, len[, pad])",
            "lpad('7', 3, '0')",
        ),
        scalar_with("rpad", pad_type, pad).doc(
            "The text brought to a length: filled up at its end (with blanks unless said), or cut.",
            "rpad(x, len[, pad])",
            "rpad('7', 3, '0')",
        ),
        scalar("repeat", &[Param::String, Param::Int], Ret::String, repeat).doc(
            "The text `n` times.",
            "repeat(str, n)",
            "repeat('ab', 3)",
        ),
        scalar("space", &[Param::Int], Ret::String, space).doc("`n` blanks.", "space(n)", "space(3)"),
        scalar_with("reverse", reverse_type, reverse).doc(
            "The characters of a text, the bytes of a BINARY or the elements of an array in the opposite order.",
            "reverse(x)",
            "reverse('abc')",
        ),
        scalar("ascii", &[Param::String], Ret::Int, ascii).doc(
            "Code point of the first character; 0 of the empty text.",
            "ascii(str)",
            "ascii('A')",
        ),
        scalar("chr", &[Param::BigInt], Ret::String, chr).aliases(&["char"]).doc(
            "The character of a code, taken modulo 256; empty for negative codes.",
            "chr(n)",
            "chr(65)",
        ),
        scalar("quote", &[Param::String], Ret::String, quote).doc(
            "The text in single quotes, those inside behind a backslash.",
            "quote(str)",
            "quote('a')",
        ),
    ];

fn concat_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    let known = || c.args.iter().map(|a| &a.data_type).filter(|t| **t != T::Null);
    let t = if known().any(|t| matches!(t, T::Array(_))) {
        if c.args.iter().any(|a| a.data_type == T::Null) {
            return Err(c.different_types());
        }
        match c.common(0)? {
            T::Array(e) => T::Array(e),
            _ => return Err(c.different_types()),
        }
    } else if known().next().is_some() && known().all(|t| *t == T::Binary) {
        T::Binary
    } else {
        for i in 0..c.len() {
            c.coerce(i, Param::String)?;
        }
        T::String
    };
    Ok(Typed::new(vec![t.clone(); c.len()], t))
}

fn concat(c: &Call<'_>) -> EvalResult {
    match c.data_type {
        T::String => {
            let parts: Vec<View<'_, StringViewArray>> = (0..c.len()).map(|i| c.str(i)).collect();
            c.strings(|row, out| {
                parts.iter().for_each(|p| out.push_str(p.get(row)));
                Ok(true)
            })
        }
        T::Binary => {
            let parts: Vec<View<'_, BinaryViewArray>> = (0..c.len()).map(|i| c.bytes(i)).collect();
            c.binaries(|row, out| {
                parts.iter().for_each(|p| out.extend_from_slice(p.get(row)));
                Ok(true)
            })
        }
        _ => {
            let parts: Vec<View<'_, ListArray>> = (0..c.len()).map(|i| c.list(i)).collect();
            let valid = c.valid();
            let mut out = Lists::new(c.rows, parts.iter().map(|p| p.elements().clone()).collect());
            for row in 0..c.rows {
                if valid.as_ref().is_some_and(|n| n.is_null(row)) {
                    out.null_row();
                    continue;
                }
                for (source, part) in parts.iter().enumerate() {
                    out.extend(source, part.range(row));
                }
                out.end_row();
            }
            out.finish_as(c.data_type)
        }
    }
}

fn concat_ws_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(1, usize::MAX)?;
    let types = (0..c.len())
        .map(|i| match c.ty(i) {
            T::Array(_) if i > 0 => c.coerce(i, Param::ArrayOf(&Param::String)),
            _ => c.coerce(i, Param::String),
        })
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Typed::new(types, T::String).nullable(c.args[0].nullable))
}

fn concat_ws(c: &Call<'_>) -> EvalResult {
    enum Part<'a> {
        One(View<'a, StringViewArray>),
        Many(View<'a, ListArray>, &'a StringViewArray),
    }
    let separator = c.str(0);
    let parts: Vec<Part<'_>> = (1..c.len())
        .map(|i| match c.types[i] {
            T::Array(_) => Part::Many(c.list(i), c.list(i).elements().as_string_view()),
            _ => Part::One(c.str(i)),
        })
        .collect();
    c.strings(|row, out| {
        let Some(separator) = separator.opt(row) else { return Ok(false) };
        let mut first = true;
        let mut push = |s: &str| {
            if !std::mem::take(&mut first) {
                out.push_str(separator);
            }
            out.push_str(s);
        };
        for part in &parts {
            match part {
                Part::One(s) => s.opt(row).into_iter().for_each(&mut push),
                Part::Many(list, elements) if !list.is_null(row) => {
                    list.range(row).filter(|i| elements.is_valid(*i)).for_each(|i| push(elements.value(i)));
                }
                Part::Many(..) => {}
            }
        }
        Ok(true)
    })
}

fn upper(c: &Call<'_>) -> EvalResult {
    let s = c.str(0);
    c.strings(|row, out| {
        let text = s.get(row);
        if text.is_ascii() {
            out.push_str(text);
            out.make_ascii_uppercase();
        } else {
            out.push_str(&text.to_uppercase());
        }
        Ok(true)
    })
}

fn lower(c: &Call<'_>) -> EvalResult {
    let s = c.str(0);
    c.strings(|row, out| {
        let text = s.get(row);
        if text.is_ascii() {
            out.push_str(text);
            out.make_ascii_lowercase();
        } else {
            out.push_str(&text.to_lowercase());
        }
        Ok(true)
    })
}

/// The capital of one character where it is one character, as Java's single-character mapping has it.
fn title_case(c: char, out: &mut String) {
    let mut upper = c.to_uppercase();
    out.extend(upper.next());
    // What has several capitals (of `ß`: `SS`) has one, and the rest small.
    out.extend(upper.flat_map(char::to_lowercase));
}

fn initcap(c: &Call<'_>) -> EvalResult {
    let s = c.str(0);
    c.strings(|row, out| {
        let mut at_start = true;
        for ch in s.get(row).to_lowercase().chars() {
            if at_start {
                title_case(ch, out);
            } else {
                out.push(ch);
            }
            at_start = ch == ' ';
        }
        Ok(true)
    })
}

/// `trim`, `ltrim`, `rtrim` and `btrim`, told apart by name. With two arguments `btrim` has the text first, the others
/// the characters.
fn trim(c: &Call<'_>) -> EvalResult {
    let (text, set) = match (c.len(), c.name) {
        (1, _) => (c.str(0), None),
        (_, "btrim") => (c.str(0), Some(c.str(1))),
        _ => (c.str(1), Some(c.str(0))),
    };
    let (start, end) = (c.name != "rtrim", c.name != "ltrim");
    c.strs(|row| {
        let mut s = text.get(row);
        let set = set.as_ref().map_or(" ", |set| set.get(row));
        if start {
            s = s.trim_start_matches(|ch| set.contains(ch));
        }
        if end {
            s = s.trim_end_matches(|ch| set.contains(ch));
        }
        Ok(Some(s))
    })
}

/// Number of characters.
pub(super) fn char_count(s: &str) -> usize {
    if s.is_ascii() { s.len() } else { s.chars().count() }
}

/// Byte position of the `n`th character (from 0), the end if there are not so many.
pub(super) fn char_offset(s: &str, n: usize) -> usize {
    if s.is_ascii() { n.min(s.len()) } else { s.char_indices().nth(n).map_or(s.len(), |(i, _)| i) }
}

fn length(c: &Call<'_>) -> EvalResult {
    if *c.types[0] == T::Binary {
        let b = c.bytes(0);
        return c.primitive::<Int32Type>(|row| Ok(Some(b.get(row).len() as i32)));
    }
    let s = c.str(0);
    c.primitive::<Int32Type>(|row| Ok(Some(char_count(s.get(row)) as i32)))
}

/// `octet_length` and `bit_length`, told apart by name.
fn octets(c: &Call<'_>) -> EvalResult {
    let unit = if c.name == "bit_length" { 8 } else { 1 };
    if *c.types[0] == T::Binary {
        let b = c.bytes(0);
        return c.primitive::<Int32Type>(|row| Ok(Some(b.get(row).len() as i32 * unit)));
    }
    let s = c.str(0);
    c.primitive::<Int32Type>(|row| Ok(Some(s.get(row).len() as i32 * unit)))
}

/// The units (characters or bytes) from..to that SQL's position and length mean in a text of `len` units. A start before
/// the text uses up length.
fn window(position: i32, length: i32, len: usize) -> (usize, usize) {
    let start = match position {
        p if p > 0 => i64::from(p) - 1,
        p if p < 0 => len as i64 + i64::from(p),
        _ => 0,
    };
    let end = (start + i64::from(length)).clamp(0, len as i64) as usize;
    let start = start.clamp(0, len as i64) as usize;
    (start, end.max(start))
}

/// The characters that SQL's position and length mean.
pub(super) fn substring_of(s: &str, position: i32, length: i32) -> &str {
    if s.is_ascii() {
        let (from, to) = window(position, length, s.len());
        return &s[from..to];
    }
    // Only a position from the end needs the number of characters.
    let len = if position < 0 { s.chars().count() } else { s.len() };
    let (from, to) = window(position, length, len);
    let rest = &s[char_offset(s, from)..];
    &rest[..char_offset(rest, to - from)]
}

/// `substring`, `left` and `right`, told apart by name.
fn substring(c: &Call<'_>) -> EvalResult {
    let first = c.i32(1);
    let third = (c.len() == 3).then(|| c.i32(2));
    let bounds = |row: usize| match c.name {
        "left" => (1, first.get(row)),
        "right" if first.get(row) <= 0 => (1, 0),
        "right" => (-first.get(row), i32::MAX),
        _ => (first.get(row), third.as_ref().map_or(i32::MAX, |t| t.get(row))),
    };
    if *c.data_type == T::Binary {
        let b = c.bytes(0);
        return c.binaries(|row, out| {
            let (position, length) = bounds(row);
            let bytes = b.get(row);
            let (from, to) = window(position, length, bytes.len());
            out.extend_from_slice(&bytes[from..to]);
            Ok(true)
        });
    }
    let s = c.str(0);
    c.strs(|row| {
        let (position, length) = bounds(row);
        Ok(Some(substring_of(s.get(row), position, length)))
    })
}

/// BINARY if the value and what it is filled with are; STRING else.
fn pad_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, 3)?;
    let binary = [0, 2].into_iter().all(|i| c.args.get(i).is_none_or(|a| a.data_type == T::Binary));
    let p = if binary { Param::Binary } else { Param::String };
    let types = c.fixed(&[p, Param::Int, p], 1, false)?;
    Ok(Typed::new(types, if binary { T::Binary } else { T::String }))
}

/// `lpad` and `rpad`, told apart by name.
fn pad(c: &Call<'_>) -> EvalResult {
    let left = c.name == "lpad";
    let len = c.i32(1);
    if *c.data_type == T::Binary {
        let b = c.bytes(0);
        let fill = (c.len() == 3).then(|| c.bytes(2));
        return c.binaries(|row, out| {
            let (bytes, len) = (b.get(row), len.get(row).max(0) as usize);
            let fill = fill.as_ref().map_or(&[0u8] as &[u8], |f| f.get(row));
            let kept = &bytes[..bytes.len().min(len)];
            let missing = if fill.is_empty() { 0 } else { len.saturating_sub(bytes.len()) };
            if !left {
                out.extend_from_slice(kept);
            }
            out.extend(fill.iter().cycle().take(missing));
            if left {
                out.extend_from_slice(kept);
            }
            Ok(true)
        });
    }
    let s = c.str(0);
    let fill = (c.len() == 3).then(|| c.str(2));
    c.strings(|row, out| {
        let (text, len) = (s.get(row), len.get(row).max(0) as usize);
        let fill = fill.as_ref().map_or(" ", |f| f.get(row));
        let have = char_count(text);
        let kept = if have > len { &text[..char_offset(text, len)] } else { text };
        let missing = if fill.is_empty() { 0 } else { len.saturating_sub(have) };
        if !left {
            out.push_str(kept);
        }
        out.extend(fill.chars().cycle().take(missing));
        if left {
            out.push_str(kept);
        }
        Ok(true)
    })
}

fn repeat(c: &Call<'_>) -> EvalResult {
    let (s, n) = (c.str(0), c.i32(1));
    c.strings(|row, out| {
        (0..n.get(row).max(0)).for_each(|_| out.push_str(s.get(row)));
        Ok(true)
    })
}

fn space(c: &Call<'_>) -> EvalResult {
    let n = c.i32(0);
    c.strings(|row, out| {
        out.extend(std::iter::repeat_n(' ', n.get(row).max(0) as usize));
        Ok(true)
    })
}

fn reverse_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(1, 1)?;
    let t = match c.ty(0) {
        T::Array(_) | T::Binary => c.ty(0).clone(),
        _ => c.coerce(0, Param::String)?,
    };
    Ok(Typed::new(vec![t.clone()], t))
}

fn reverse(c: &Call<'_>) -> EvalResult {
    if *c.data_type == T::String {
        let s = c.str(0);
        return c.strings(|row, out| {
            out.extend(s.get(row).chars().rev());
            Ok(true)
        });
    }
    if *c.data_type == T::Binary {
        let b = c.bytes(0);
        return c.binaries(|row, out| {
            out.extend(b.get(row).iter().rev());
            Ok(true)
        });
    }
    let list = c.list(0);
    let mut out = Lists::new(c.rows, vec![list.elements().clone()]);
    for row in 0..c.rows {
        if list.is_null(row) {
            out.null_row();
        } else {
            out.extend(0, list.range(row).rev());
            out.end_row();
        }
    }
    out.finish_as(c.data_type)
}

fn ascii(c: &Call<'_>) -> EvalResult {
    let s = c.str(0);
    c.primitive::<Int32Type>(|row| Ok(Some(s.get(row).chars().next().map_or(0, |ch| ch as i32))))
}

fn chr(c: &Call<'_>) -> EvalResult {
    let n = c.i64(0);
    c.strings(|row, out| {
        if n.get(row) >= 0 {
            out.push(char::from((n.get(row) & 0xff) as u8));
        }
        Ok(true)
    })
}

fn quote(c: &Call<'_>) -> EvalResult {
    let s = c.str(0);
    c.strings(|row, out| {
        out.push('\'');
        for ch in s.get(row).chars() {
            if ch == '\'' {
                out.push('\\');
            }
            out.push(ch);
        }
        out.push('\'');
        Ok(true)
    })
}

/// A list of texts per row, built element by element: what `split` and its kin give.
pub(super) struct TextLists {
    values: arrow::array::StringViewBuilder,
    offsets: Vec<i32>,
    nulls: arrow::array::NullBufferBuilder,
}

impl TextLists {
    /// For that many rows.
    pub(super) fn new(rows: usize) -> TextLists {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        TextLists {
            values: arrow::array::StringViewBuilder::new(),
            offsets,
            nulls: arrow::array::NullBufferBuilder::new(rows),
        }
    }

    /// One more element of the current row.
    pub(super) fn push(&mut self, s: &str) {
        self.values.append_value(s);
    }

    /// Ends the row.
    pub(super) fn end_row(&mut self, valid: bool) {
        self.offsets.push(arrow::array::ArrayBuilder::len(&self.values) as i32);
        self.nulls.append(valid);
    }

    /// The lists, elements never NULL.
    pub(super) fn finish(mut self) -> EvalResult {
        let field = crate::arrow::arrow_field(&Field::new("element", T::String, false));
        let values: ArrayRef = Arc::new(self.values.finish());
        let offsets = arrow::buffer::OffsetBuffer::new(self.offsets.into());
        Ok(Arc::new(ListArray::try_new(Arc::new(field), offsets, values, self.nulls.finish())?))
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use ssql_ir::DataType as T;

    #[test]
    fn joining() {
        assert_eq!(eval("concat", &[str("a"), int(1), boolean(true), decimal("2.50")]), "a1true2.50");
        assert_eq!(eval("concat", &[str("a"), null()]), "NULL");
        assert_eq!(eval("concat", &[]), "");
        assert_eq!(eval("||", &[str("x"), int(3)]), "x3");
        assert_eq!(type_of("concat", &[binary(b"a"), binary(b"b")]), "BINARY");
        assert_eq!(eval("concat", &[expr("array", &[int(1)]), expr("array", &[int(2), null()])]), "[1, 2, null]");
        let list = expr("array", &[str("c"), null(), str("d")]);
        assert_eq!(eval("concat_ws", &[str("-"), str("a"), null(), str("b"), list, str("")]), "a-b-c-d-");
        assert_eq!(eval("concat_ws", &[str("-")]), "");
        assert_eq!(eval("concat_ws", &[null(), str("a")]), "NULL");
        assert_eq!(eval("concat_ws", &[]), "!WRONG_NUM_ARGS.WITHOUT_SUGGESTION");
    }

    #[test]
    fn case() {
        assert_eq!(eval("upper", &[str("straße")]), "STRASSE");
        assert_eq!(eval("lower", &[str("ÀÉ")]), "àé");
        assert_eq!(eval("initcap", &[str("hello wORLD foo-bar a.b 3rd")]), "Hello World Foo-bar A.b 3rd");
        assert_eq!(eval("initcap", &[str("élan VITAL")]), "Élan Vital");
        assert_eq!(eval("upper", &[null()]), "NULL");
    }

    #[test]
    fn trimming_and_padding() {
        assert_eq!(eval("trim", &[str("  a b  ")]), "a b");
        assert_eq!(eval("trim", &[str("\ta\n")]), "\ta\n");
        assert_eq!(eval("trim", &[str("xy"), str("xyxaybyx")]), "ayb");
        assert_eq!(eval("ltrim", &[str("0"), str("0012")]), "12");
        assert_eq!(eval("rtrim", &[str("yx"), str("aaxy")]), "aa");
        assert_eq!(eval("btrim", &[str("aabbcc"), str("ac")]), "bb");
        assert_eq!(eval("trim", &[str(""), str(" a ")]), " a ");
        assert_eq!(eval("lpad", &[str("7"), int(6), str("ab")]), "ababa7");
        assert_eq!(eval("lpad", &[str("12345"), int(3), str("0")]), "123");
        assert_eq!(eval("rpad", &[str("7"), int(3)]), "7  ");
        assert_eq!(eval("lpad", &[str("7"), int(-2)]), "");
        assert_eq!(eval("lpad", &[str("7"), int(3), str("")]), "7");
        assert_eq!(eval("lpad", &[str("x"), int(3), null()]), "NULL");
        assert_eq!(eval("hex", &[expr("lpad", &[binary(&[1]), int(3)])]), "000001");
        assert_eq!(eval("hex", &[expr("rpad", &[binary(&[1, 2]), int(1), binary(&[255])])]), "01");
        assert_eq!(eval("repeat", &[str("ab"), int(3)]), "ababab");
        assert_eq!(eval("repeat", &[str("ab"), int(-1)]), "");
        assert_eq!(eval("space", &[int(2)]), "  ");
    }

    #[test]
    fn positions() {
        let s = || str("streaming");
        for (p, all, three) in [
            (1, "streaming", "str"),
            (0, "streaming", "str"),
            (-3, "ing", "ing"),
            (-11, "streaming", "s"),
            (10, "", ""),
        ] {
            assert_eq!(eval("substring", &[s(), int(p)]), all);
            assert_eq!(eval("substr", &[s(), int(p), int(3)]), three);
        }
        assert_eq!(eval("substring", &[str("abc"), int(-5), int(3)]), "a");
        assert_eq!(eval("substring", &[str("abc"), int(2), int(-1)]), "");
        assert_eq!(eval("substring", &[str("abc"), int(2), int(i32::MAX)]), "bc");
        assert_eq!(eval("substring", &[str("日本語"), int(-2), int(1)]), "本");
        assert_eq!(eval("substring", &[str("a😀b"), int(2), int(1)]), "😀");
        assert_eq!(eval("left", &[str("spark"), int(2)]), "sp");
        assert_eq!(eval("left", &[str("spark"), int(-1)]), "");
        assert_eq!(eval("right", &[str("spark"), int(2)]), "rk");
        assert_eq!(eval("right", &[str("spark"), int(99)]), "spark");
        assert_eq!(eval("right", &[str("spark"), null_of(T::Int32)]), "NULL");
    }

    #[test]
    fn measures_and_codes() {
        assert_eq!(eval("length", &[str("a😀b")]), "3");
        assert_eq!(eval("len", &[binary(&[1, 2])]), "2");
        assert_eq!(eval("length", &[int(123)]), "3");
        assert_eq!(eval("octet_length", &[str("日本語")]), "9");
        assert_eq!(eval("bit_length", &[str("ß")]), "16");
        assert_eq!(eval("reverse", &[str("a😀b")]), "b😀a");
        assert_eq!(eval("ascii", &[str("日")]), "26085");
        assert_eq!(eval("ascii", &[str("")]), "0");
        assert_eq!(eval("chr", &[int(256 + 65)]), "A");
        assert_eq!(eval("chr", &[int(-1)]), "");
        assert_eq!(eval("chr", &[int(0)]), "\0");
        assert_eq!(eval("quote", &[str("it's")]), "'it\\'s'");
    }
}
