//! The lexical level of JSON: finding ends of strings, skipping values, reading escapes.
//!
//! Positions are offsets into the buffer. Past its end stands a virtual line end, so that no caller needs to ask.

/// Deepest nesting of arrays and objects that is taken, as in Spark.
pub(super) const MAX_DEPTH: usize = 1000;
/// Longest number that is taken, in characters, as in Spark.
const MAX_NUMBER: usize = 1000;

/// A record is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lexical {
    /// Where.
    pub(super) at: usize,
    /// What was expected or found.
    pub(super) what: &'static str,
}

impl Lexical {
    #[cold]
    pub(super) fn new(at: usize, what: &'static str) -> Lexical {
        Lexical { at, what }
    }
}

/// What is taken beyond strict JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dialect {
    /// A line end is a record's end; otherwise it is a blank.
    pub(super) lines: bool,
    pub(super) single_quotes: bool,
    pub(super) non_numeric: bool,
    pub(super) unquoted_names: bool,
    pub(super) comments: bool,
    pub(super) leading_zeros: bool,
    pub(super) any_escape: bool,
    pub(super) control_chars: bool,
}

/// The byte at `p`, a line end past the end.
#[inline(always)]
pub(super) fn byte(data: &[u8], p: usize) -> u8 {
    if p < data.len() { data[p] } else { b'\n' }
}

/// Where a string's plain part ends.
pub(super) struct Plain {
    /// The first quote, backslash or control character.
    pub(super) end: usize,
    /// Whether only ASCII stands before it.
    pub(super) ascii: bool,
}

/// Finds the first `"`, `\` or control character from `p` on.
#[inline(always)]
pub(super) fn plain(data: &[u8], mut p: usize) -> Plain {
    let mut high = 0u32;
    while let Some(chunk) = data.get(p..).and_then(|rest| rest.first_chunk::<16>()) {
        let (special, not_ascii) = masks(chunk);
        if special != 0 {
            let at = special.trailing_zeros();
            high |= not_ascii & ((1 << at) - 1);
            return Plain { end: p + at as usize, ascii: high == 0 };
        }
        high |= not_ascii;
        p += 16;
    }
    let mut ascii = high == 0;
    while p < data.len() && !matches!(data[p], b'"' | b'\\' | 0..0x20) {
        ascii &= data[p] < 0x80;
        p += 1;
    }
    Plain { end: p, ascii }
}

/// Bit sets of the bytes that may end a string's plain part, and of those that are not ASCII.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "vector instructions")]
#[inline(always)]
fn masks(chunk: &[u8; 16]) -> (u32, u32) {
    use std::arch::x86_64::{
        _mm_cmpeq_epi8, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x, _mm_set1_epi8,
    };
    let whole = u128::from_le_bytes(*chunk);
    // SAFETY: these need SSE2, which every x86-64 processor has, and touch no memory.
    unsafe {
        let v = _mm_set_epi64x((whole >> 64) as i64, whole as i64);
        let quote = _mm_cmpeq_epi8(v, _mm_set1_epi8(b'"' as i8));
        let backslash = _mm_cmpeq_epi8(v, _mm_set1_epi8(b'\\' as i8));
        let control = _mm_cmpeq_epi8(_mm_min_epu8(v, _mm_set1_epi8(0x1f)), v);
        let special = _mm_or_si128(_mm_or_si128(quote, backslash), control);
        (_mm_movemask_epi8(special) as u32, _mm_movemask_epi8(v) as u32)
    }
}

/// Bit sets of the bytes that may end a string's plain part, and of those that are not ASCII.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn masks(chunk: &[u8; 16]) -> (u32, u32) {
    let (mut special, mut high) = (0u32, 0u32);
    for (i, &b) in chunk.iter().enumerate() {
        special |= u32::from(b == b'"' || b == b'\\' || b < 0x20) << i;
        high |= u32::from(b >= 0x80) << i;
    }
    (special, high)
}

/// A string as it was read.
pub(super) enum Text {
    /// It stands in the data at `start..end` as it is.
    Plain { start: usize, end: usize },
    /// It was written to the heap from `start` on, to the heap's end.
    Rewritten { start: usize },
}

/// Reads the string whose opening quote stands at `p`; returns it and the position after its closing quote.
#[inline(always)]
pub(super) fn string(data: &[u8], p: usize, dialect: &Dialect, heap: &mut Vec<u8>) -> Result<(Text, usize), Lexical> {
    let start = p + 1;
    if data[p] == b'"' {
        let Plain { end, ascii } = plain(data, start);
        if byte(data, end) == b'"' {
            if !ascii && std::str::from_utf8(&data[start..end]).is_err() {
                return Err(Lexical::new(start, "text that is not UTF-8"));
            }
            return Ok((Text::Plain { start, end }, end + 1));
        }
    }
    rewritten(data, p, dialect, heap)
}

/// [`string`] for texts with escapes, with control characters, or in single quotes.
#[cold]
fn rewritten(data: &[u8], p: usize, dialect: &Dialect, heap: &mut Vec<u8>) -> Result<(Text, usize), Lexical> {
    let (quote, from) = (data[p], heap.len());
    let mut at = p + 1;
    let result = loop {
        let b = byte(data, at);
        match b {
            _ if at >= data.len() => break Err(Lexical::new(at, "the record ends inside a string")),
            _ if b == quote => break Ok(at + 1),
            b'\\' => match escape(data, at, dialect, heap) {
                Ok(next) => at = next,
                Err(error) => break Err(error),
            },
            b'\n' | b'\r' if dialect.lines => break Err(Lexical::new(at, "the record ends inside a string")),
            0..0x20 if !dialect.control_chars => break Err(Lexical::new(at, "a control character inside a string")),
            _ => {
                heap.push(b);
                at += 1;
            }
        }
    };
    let end = result.inspect_err(|_| heap.truncate(from))?;
    if std::str::from_utf8(&heap[from..]).is_err() {
        heap.truncate(from);
        return Err(Lexical::new(p + 1, "text that is not UTF-8"));
    }
    Ok((Text::Rewritten { start: from }, end))
}

/// Reads the escape at `at` into the heap; returns the position after it.
fn escape(data: &[u8], at: usize, dialect: &Dialect, heap: &mut Vec<u8>) -> Result<usize, Lexical> {
    let plain = match byte(data, at + 1) {
        b @ (b'"' | b'\\' | b'/') => b,
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'u' => {
            let high = hex4(data, at + 2).ok_or(Lexical::new(at, "an incomplete \\u escape"))?;
            let mut next = at + 6;
            let mut code = u32::from(high);
            if (0xd800..0xdc00).contains(&high)
                && byte(data, next) == b'\\'
                && byte(data, next + 1) == b'u'
                && let Some(low @ 0xdc00..0xe000) = hex4(data, next + 2)
            {
                code = 0x10000 + (u32::from(high - 0xd800) << 10) + u32::from(low - 0xdc00);
                next += 6;
            }
            // Half of a surrogate pair is no character; Java, and so Spark, writes a question mark.
            let c = char::from_u32(code).unwrap_or('?');
            heap.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            return Ok(next);
        }
        b if dialect.any_escape && !(matches!(b, b'\n' | b'\r') && dialect.lines) && at + 1 < data.len() => b,
        b'\'' if dialect.single_quotes => b'\'',
        _ => return Err(Lexical::new(at, "an unknown escape")),
    };
    heap.push(plain);
    Ok(at + 2)
}

fn hex4(data: &[u8], at: usize) -> Option<u16> {
    let digits = data.get(at..at + 4)?;
    digits.iter().try_fold(0u16, |v, &b| Some(v << 4 | (b as char).to_digit(16)? as u16))
}

/// Skips blanks (and comments where they are allowed).
#[inline(always)]
pub(super) fn blanks(data: &[u8], p: usize, dialect: &Dialect) -> usize {
    if byte(data, p) > b' ' && !dialect.comments { p } else { blanks_slow(data, p, dialect) }
}

fn blanks_slow(data: &[u8], mut p: usize, dialect: &Dialect) -> usize {
    while p < data.len() {
        match data[p] {
            b' ' | b'\t' => p += 1,
            b'\n' | b'\r' if !dialect.lines => p += 1,
            b'/' if dialect.comments && byte(data, p + 1) == b'*' => {
                match memchr::memmem::find(&data[p + 2..], b"*/") {
                    Some(length)
                        if !dialect.lines || memchr::memchr2(b'\n', b'\r', &data[p..p + length + 2]).is_none() =>
                    {
                        p += length + 4;
                    }
                    _ => return p,
                }
            }
            b'/' if dialect.comments && byte(data, p + 1) == b'/' => {
                p += memchr::memchr2(b'\n', b'\r', &data[p..]).unwrap_or(data.len() - p);
            }
            _ => break,
        }
    }
    p
}

/// Whether a scalar may end before this byte.
#[inline(always)]
pub(super) fn ends_scalar(b: u8) -> bool {
    matches!(b, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r')
}

/// A number's parts.
pub(super) struct Number {
    pub(super) end: usize,
    /// Without fraction and exponent.
    pub(super) integer: bool,
}

/// Checks the number at `p` against JSON's grammar.
pub(super) fn number(data: &[u8], p: usize, dialect: &Dialect) -> Result<Number, Lexical> {
    let digits = |mut at: usize| {
        while byte(data, at).is_ascii_digit() {
            at += 1;
        }
        at
    };
    let first = p + usize::from(data[p] == b'-');
    let mut end = digits(first);
    let mut integer = true;
    if end == first {
        return Err(Lexical::new(p, "a number without digits"));
    }
    if data[first] == b'0' && end > first + 1 && !dialect.leading_zeros {
        return Err(Lexical::new(p, "a number with a leading zero"));
    }
    if byte(data, end) == b'.' {
        integer = false;
        let fraction = end + 1;
        end = digits(fraction);
        if end == fraction {
            return Err(Lexical::new(p, "a number that ends with its point"));
        }
    }
    if matches!(byte(data, end), b'e' | b'E') {
        integer = false;
        let exponent = end + 1 + usize::from(matches!(byte(data, end + 1), b'+' | b'-'));
        end = digits(exponent);
        if end == exponent {
            return Err(Lexical::new(p, "a number without digits in its exponent"));
        }
    }
    let comment = dialect.comments && byte(data, end) == b'/';
    if !comment && !ends_scalar(byte(data, end)) {
        return Err(Lexical::new(end, "a number that does not end"));
    }
    if end - p > MAX_NUMBER {
        return Err(Lexical::new(p, "a number of more than 1000 characters"));
    }
    Ok(Number { end, integer })
}

/// A word at `p`: `true`, `false`, `null`, or one of the words for floating point values where they are allowed.
pub(super) fn word(data: &[u8], p: usize, dialect: &Dialect) -> Result<(Word, usize), Lexical> {
    const WORDS: [(&[u8], Word, bool); 9] = [
        (b"true", Word::True, true),
        (b"false", Word::False, true),
        (b"null", Word::Null, true),
        (b"NaN", Word::Float(f64::NAN), false),
        (b"Infinity", Word::Float(f64::INFINITY), false),
        (b"-Infinity", Word::Float(f64::NEG_INFINITY), false),
        (b"-INF", Word::Float(f64::NEG_INFINITY), false),
        (b"+Infinity", Word::Float(f64::INFINITY), false),
        (b"+INF", Word::Float(f64::INFINITY), false),
    ];
    for (text, word, strict) in WORDS {
        if data[p..].starts_with(text) && (strict || dialect.non_numeric) {
            let end = p + text.len();
            if ends_scalar(byte(data, end)) {
                return Ok((word, end));
            }
        }
    }
    Err(Lexical::new(p, "something that is no JSON value"))
}

/// What a bare word stands for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Word {
    True,
    False,
    Null,
    Float(f64),
}

/// Skips the value at `p`, checking it; returns the position after it.
#[inline(always)]
pub(super) fn skip(data: &[u8], p: usize, dialect: &Dialect, heap: &mut Vec<u8>) -> Result<usize, Lexical> {
    match byte(data, p) {
        b'"' | b'\'' | b'{' | b'[' => skip_slow(data, p, dialect, heap),
        b'0'..=b'9' | b'-' => {
            // The common short number: its shape is checked without telling its parts.
            let mut end = p + 1;
            while byte(data, end).is_ascii_digit() {
                end += 1;
            }
            if matches!(byte(data, end), b',' | b'}')
                && (data[p] != b'0' || end == p + 1)
                && data[p] != b'-'
                && end - p < 20
            {
                return Ok(end);
            }
            skip_slow(data, p, dialect, heap)
        }
        _ => skip_slow(data, p, dialect, heap),
    }
}

fn skip_slow(data: &[u8], p: usize, dialect: &Dialect, heap: &mut Vec<u8>) -> Result<usize, Lexical> {
    // One bit a level: whether it is an object. Nesting is bounded, so the stack is too.
    let mut objects = Vec::new();
    let mut p = blanks(data, p, dialect);
    loop {
        // A value begins at `p`.
        match byte(data, p) {
            b'{' => {
                p = blanks(data, p + 1, dialect);
                if byte(data, p) == b'}' {
                    p += 1;
                } else {
                    p = member(data, p, dialect, heap)?;
                    objects.push(true);
                    if objects.len() > MAX_DEPTH {
                        return Err(Lexical::new(p, "nesting deeper than 1000"));
                    }
                    continue;
                }
            }
            b'[' => {
                p = blanks(data, p + 1, dialect);
                if byte(data, p) == b']' {
                    p += 1;
                } else {
                    objects.push(false);
                    if objects.len() > MAX_DEPTH {
                        return Err(Lexical::new(p, "nesting deeper than 1000"));
                    }
                    continue;
                }
            }
            _ => p = skip_scalar(data, p, dialect, heap)?,
        }
        // A value ended before `p`.
        loop {
            let Some(&object) = objects.last() else { return Ok(p) };
            p = blanks(data, p, dialect);
            match (byte(data, p), object) {
                (b',', true) => {
                    p = member(data, blanks(data, p + 1, dialect), dialect, heap)?;
                    break;
                }
                (b',', false) => {
                    p = blanks(data, p + 1, dialect);
                    break;
                }
                (b'}', true) | (b']', false) => {
                    objects.pop();
                    p += 1;
                }
                _ => return Err(Lexical::new(p, "no comma and no closing bracket after a value")),
            }
        }
    }
}

/// Skips the string, number or word at `p`.
pub(super) fn skip_scalar(data: &[u8], p: usize, dialect: &Dialect, heap: &mut Vec<u8>) -> Result<usize, Lexical> {
    match byte(data, p) {
        b'"' => skip_string(data, p, dialect, heap),
        b'\'' if dialect.single_quotes => skip_string(data, p, dialect, heap),
        b'0'..=b'9' => Ok(number(data, p, dialect)?.end),
        b'-' if byte(data, p + 1) != b'I' => Ok(number(data, p, dialect)?.end),
        _ if p >= data.len() => Err(Lexical::new(p, "the record ends where a value should stand")),
        _ => Ok(word(data, p, dialect)?.1),
    }
}

fn skip_string(data: &[u8], p: usize, dialect: &Dialect, heap: &mut Vec<u8>) -> Result<usize, Lexical> {
    let before = heap.len();
    let (_, end) = string(data, p, dialect, heap)?;
    heap.truncate(before);
    Ok(end)
}

/// Skips a member's name and colon; returns where its value begins.
fn member(data: &[u8], p: usize, dialect: &Dialect, heap: &mut Vec<u8>) -> Result<usize, Lexical> {
    let before = heap.len();
    let (_, end) = name(data, p, dialect, heap)?;
    heap.truncate(before);
    colon(data, end, dialect)
}

/// Reads a member's name.
pub(super) fn name(data: &[u8], p: usize, dialect: &Dialect, heap: &mut Vec<u8>) -> Result<(Text, usize), Lexical> {
    match byte(data, p) {
        b'"' => string(data, p, dialect, heap),
        b'\'' if dialect.single_quotes => string(data, p, dialect, heap),
        b if dialect.unquoted_names && (b.is_ascii_alphabetic() || matches!(b, b'_' | b'$')) => {
            let mut end = p;
            while end < data.len() && (data[end].is_ascii_alphanumeric() || matches!(data[end], b'_' | b'$')) {
                end += 1;
            }
            Ok((Text::Plain { start: p, end }, end))
        }
        _ => Err(Lexical::new(p, "no name where a member should begin")),
    }
}

/// Passes the colon after a name; returns where the value begins.
pub(super) fn colon(data: &[u8], p: usize, dialect: &Dialect) -> Result<usize, Lexical> {
    let p = blanks(data, p, dialect);
    if byte(data, p) != b':' {
        return Err(Lexical::new(p, "no colon after a name"));
    }
    Ok(blanks(data, p + 1, dialect))
}
