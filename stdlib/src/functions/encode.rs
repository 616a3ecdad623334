//! Bytes as text and text as bytes: hexadecimal, base 64, character sets and the encoding of URLs.

use ssql_ir::{DataType as T, Literal};

use crate::call::{Call, EvalResult};
use crate::error::{EvalError, ResolveError};
use crate::function::{FunctionDef, NullRule, Param, Ret, TEXT, scalar, scalar_with};
use crate::resolve::{TypeCall, Typed};

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[
    scalar("hex", &[Param::OneOf(&[Param::BigInt, Param::Binary, Param::String])], Ret::String, hex).doc(
        "Hexadecimal digits of a number, of bytes, or of a text's UTF-8.",
        "hex(x)",
        "hex(255)",
    ),
    scalar("unhex", &[Param::String], Ret::Binary, unhex).nulls(NullRule::StrictNullable).doc(
        "The bytes of hexadecimal digits; NULL if there are others.",
        "unhex(str)",
        "unhex('4A4b')",
    ),
    scalar("base64", &[Param::Binary], Ret::String, base64).doc(
        "Bytes in base 64, in lines of 76 characters.",
        "base64(x)",
        "base64('hello')",
    ),
    scalar("unbase64", &[Param::String], Ret::Binary, unbase64).doc(
        "The bytes of a text in base 64.",
        "unbase64(str)",
        "unbase64('aGVsbG8=')",
    ),
    scalar("encode", &[Param::String, Param::String], Ret::Binary, encode).doc(
        "A text in a character set: US-ASCII, ISO-8859-1, UTF-8, UTF-16BE, UTF-16LE, UTF-16 or UTF-32.",
        "encode(str, charset)",
        "encode('abc', 'UTF-8')",
    ),
    scalar("decode", &[Param::Binary, Param::String], Ret::String, decode).doc(
        "Bytes of a character set as text. (With more arguments, `decode(x, value, result, ...[, default])`, it is the \
         CASE that gives the result behind the first value that equals `x`.)",
        "decode(bytes, charset)",
        "decode(X'616263', 'UTF-8')",
    ),
    scalar_with("to_binary", to_binary_type, to_binary).doc(
        "A text as bytes, by a format: hex (if none is said), base64, utf-8 or utf8.",
        "to_binary(str[, format])",
        "to_binary('FF0a', 'hex')",
    ),
    scalar_with("try_to_binary", to_binary_type, to_binary).nulls(NullRule::StrictNullable).doc(
        "As `to_binary`; NULL where the text is malformed.",
        "try_to_binary(str[, format])",
        "try_to_binary('zz', 'hex')",
    ),
    scalar("url_encode", &[Param::String], Ret::String, url_encode).doc(
        "The text as a form field of a URL.",
        "url_encode(str)",
        "url_encode('a b&c')",
    ),
    scalar("url_decode", &[Param::String], Ret::String, url_decode).doc(
        "The text of a form field of a URL.",
        "url_decode(str)",
        "url_decode('a+b%26c')",
    ),
    scalar("try_url_decode", &[Param::String], Ret::String, url_decode).nulls(NullRule::StrictNullable).doc(
        "As `url_decode`; NULL where the text is malformed.",
        "try_url_decode(str)",
        "try_url_decode('%zz')",
    ),
    scalar("parse_url", &[TEXT, TEXT, TEXT], Ret::String, parse_url).optional(1).nulls(NullRule::StrictNullable).doc(
        "A part of a URL: HOST, PATH, QUERY (or one of its values by key), REF, PROTOCOL, FILE, AUTHORITY, USERINFO.",
        "parse_url(url, part[, key])",
        "parse_url('https://ex.org/p?x=1', 'QUERY', 'x')",
    ),
    scalar("try_parse_url", &[TEXT, TEXT, TEXT], Ret::String, parse_url)
        .optional(1)
        .nulls(NullRule::StrictNullable)
        .doc(
            "As `parse_url`; NULL where the text is no URL.",
            "try_parse_url(url, part[, key])",
            "try_parse_url('not a url', 'HOST')",
        ),
];

/// Appends two capital hexadecimal digits per byte.
pub(super) fn write_hex(bytes: &[u8], out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for b in bytes {
        out.push(char::from(DIGITS[usize::from(b >> 4)]));
        out.push(char::from(DIGITS[usize::from(b & 15)]));
    }
}

fn hex(c: &Call<'_>) -> EvalResult {
    match c.types[0] {
        T::Int64 => {
            let n = c.i64(0);
            c.strings(|row, out| {
                out.push_str(&format!("{:X}", n.get(row)));
                Ok(true)
            })
        }
        T::Binary => {
            let b = c.bytes(0);
            c.strings(|row, out| {
                write_hex(b.get(row), out);
                Ok(true)
            })
        }
        _ => {
            let s = c.str(0);
            c.strings(|row, out| {
                write_hex(s.get(row).as_bytes(), out);
                Ok(true)
            })
        }
    }
}

/// Reads hexadecimal digits; an odd number of them starts with half a byte. `None` if there are other characters.
fn read_hex(s: &str, out: &mut Vec<u8>) -> Option<()> {
    let digit = |b: u8| char::from(b).to_digit(16).map(|d| d as u8);
    let mut bytes = s.as_bytes();
    if bytes.len() % 2 == 1 {
        out.push(digit(bytes[0])?);
        bytes = &bytes[1..];
    }
    for pair in bytes.chunks_exact(2) {
        out.push(digit(pair[0])? << 4 | digit(pair[1])?);
    }
    Some(())
}

fn unhex(c: &Call<'_>) -> EvalResult {
    let s = c.str(0);
    c.binaries(|row, out| Ok(read_hex(s.get(row), out).is_some()))
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Appends bytes in base 64; `line`: characters per line, 0 for one line.
pub(super) fn write_base64(bytes: &[u8], line: usize, out: &mut String) {
    let mut written = 0;
    for group in bytes.chunks(3) {
        if line > 0 && written == line {
            out.push_str("\r\n");
            written = 0;
        }
        let word = group.iter().fold(0u32, |w, b| w << 8 | u32::from(*b)) << (8 * (3 - group.len()));
        for i in 0..4 {
            if i <= group.len() {
                out.push(char::from(ALPHABET[(word >> (18 - 6 * i)) as usize & 63]));
            } else {
                out.push('=');
            }
        }
        written += 4;
    }
}

/// Reads base 64 as MIME has it: other characters are skipped. The error says what is wrong with the end.
pub(super) fn read_base64(s: &[u8], out: &mut Vec<u8>) -> Result<(), &'static str> {
    let (mut word, mut count, mut padding) = (0u32, 0, 0);
    for b in s {
        let value = match b {
            b'A'..=b'Z' => b - b'A',
            b'a'..=b'z' => b - b'a' + 26,
            b'0'..=b'9' => b - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'=' => {
                padding += 1;
                continue;
            }
            _ => continue,
        };
        if padding > 0 {
            return Err("it goes on behind its end");
        }
        word = word << 6 | u32::from(value);
        count += 1;
        if count == 4 {
            out.extend_from_slice(&word.to_be_bytes()[1..]);
            (word, count) = (0, 0);
        }
    }
    match (count, padding) {
        (0, 0) | (2, 0 | 2) | (3, 0 | 1) => {}
        (1, _) => return Err("its last unit does not have enough bits"),
        _ => return Err("its end has the wrong number of `=`"),
    }
    if count == 2 {
        out.push((word >> 4) as u8);
    } else if count == 3 {
        out.extend_from_slice(&((word >> 2) as u16).to_be_bytes());
    }
    Ok(())
}

fn base64(c: &Call<'_>) -> EvalResult {
    let b = c.bytes(0);
    c.strings(|row, out| {
        write_base64(b.get(row), 76, out);
        Ok(true)
    })
}

fn conversion_error(c: &Call<'_>, text: &str, format: &str, why: &str) -> EvalError {
    EvalError::new(
        "CONVERSION_INVALID_INPUT",
        format!("The value '{text}' cannot be read by `{}` as {format}: {why}.", c.name),
    )
    .with_help("use `try_to_binary` to get NULL instead")
}

fn unbase64(c: &Call<'_>) -> EvalResult {
    let s = c.str(0);
    c.binaries(|row, out| {
        read_base64(s.get(row).as_bytes(), out).map_err(|why| conversion_error(c, s.get(row), "BASE64", why))?;
        Ok(true)
    })
}

/// Character sets that `encode` and `decode` know.
#[derive(Clone, Copy)]
enum Charset {
    Ascii,
    Latin1,
    Utf8,
    /// Big endian; with a mark in front when written.
    Utf16 {
        big: bool,
        mark: bool,
    },
    Utf32,
}

impl Charset {
    fn find(name: &str, function: &str) -> Result<Charset, EvalError> {
        Ok(match name.to_ascii_uppercase().as_str() {
            "US-ASCII" => Charset::Ascii,
            "ISO-8859-1" => Charset::Latin1,
            "UTF-8" => Charset::Utf8,
            "UTF-16BE" => Charset::Utf16 { big: true, mark: false },
            "UTF-16LE" => Charset::Utf16 { big: false, mark: false },
            "UTF-16" => Charset::Utf16 { big: true, mark: true },
            "UTF-32" => Charset::Utf32,
            _ => {
                return Err(EvalError::new(
                    "INVALID_PARAMETER_VALUE.CHARSET",
                    format!("`{function}` does not know the character set '{name}'."),
                )
                .with_help("it is one of US-ASCII, ISO-8859-1, UTF-8, UTF-16BE, UTF-16LE, UTF-16, UTF-32"));
            }
        })
    }

    /// `false` if a character is not in the set.
    fn encode(self, s: &str, out: &mut Vec<u8>) -> bool {
        match self {
            Charset::Utf8 => out.extend_from_slice(s.as_bytes()),
            Charset::Ascii | Charset::Latin1 => {
                let limit = if matches!(self, Charset::Ascii) { 0x80 } else { 0x100 };
                for ch in s.chars() {
                    if ch as u32 >= limit {
                        return false;
                    }
                    out.push(ch as u32 as u8);
                }
            }
            Charset::Utf16 { big, mark } => {
                if mark {
                    out.extend_from_slice(&[0xfe, 0xff]);
                }
                for unit in s.encode_utf16() {
                    out.extend_from_slice(&if big { unit.to_be_bytes() } else { unit.to_le_bytes() });
                }
            }
            Charset::Utf32 => s.chars().for_each(|ch| out.extend_from_slice(&(ch as u32).to_be_bytes())),
        }
        true
    }

    /// `None` if the bytes are no text of the set.
    fn decode(self, bytes: &[u8], out: &mut String) -> Option<()> {
        match self {
            Charset::Utf8 => out.push_str(std::str::from_utf8(bytes).ok()?),
            Charset::Ascii => out.push_str(std::str::from_utf8(bytes).ok().filter(|s| s.is_ascii())?),
            Charset::Latin1 => out.extend(bytes.iter().map(|b| char::from(*b))),
            Charset::Utf16 { mut big, mark } => {
                let mut bytes = bytes;
                if mark
                    && let [a @ (0xfe | 0xff), b @ (0xfe | 0xff), rest @ ..] = bytes
                    && a != b
                {
                    big = *a == 0xfe;
                    bytes = rest;
                }
                if bytes.len() % 2 == 1 {
                    return None;
                }
                let unit = |p: &[u8]| {
                    if big { u16::from_be_bytes([p[0], p[1]]) } else { u16::from_le_bytes([p[0], p[1]]) }
                };
                for ch in char::decode_utf16(bytes.chunks_exact(2).map(unit)) {
                    out.push(ch.ok()?);
                }
            }
            Charset::Utf32 => {
                if !bytes.len().is_multiple_of(4) {
                    return None;
                }
                for p in bytes.chunks_exact(4) {
                    out.push(char::from_u32(u32::from_be_bytes([p[0], p[1], p[2], p[3]]))?);
                }
            }
        }
        Some(())
    }
}

fn malformed(function: &str, charset: &str) -> EvalError {
    EvalError::new(
        "MALFORMED_CHARACTER_CODING",
        format!("Invalid value found when performing `{function}` with {charset}."),
    )
}

fn encode(c: &Call<'_>) -> EvalResult {
    let (s, charset) = (c.str(0), c.str(1));
    c.binaries(|row, out| {
        if Charset::find(charset.get(row), c.name)?.encode(s.get(row), out) {
            Ok(true)
        } else {
            Err(malformed(c.name, charset.get(row)))
        }
    })
}

fn decode(c: &Call<'_>) -> EvalResult {
    let (bytes, charset) = (c.bytes(0), c.str(1));
    c.strings(|row, out| {
        let decoded = Charset::find(charset.get(row), c.name)?.decode(bytes.get(row), out);
        decoded.ok_or_else(|| malformed(c.name, charset.get(row)))?;
        Ok(true)
    })
}

fn to_binary_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    let types = c.fixed(&[Param::String, Param::String], 1, false)?;
    if c.len() == 2 {
        let known = match &c.args[1].literal {
            Some(Literal::String(f)) => {
                matches!(f.to_ascii_lowercase().as_str(), "hex" | "base64" | "utf-8" | "utf8")
            }
            Some(Literal::Null) => true,
            _ => false,
        };
        // For the `try_` form a format that is none gives NULL.
        let tried = c.name == "try_to_binary" && c.args[1].literal.is_some();
        if !known && !tried {
            return Err(ResolveError::new(
                "DATATYPE_MISMATCH.INVALID_ARG_VALUE",
                format!("The format of `{}` must be one of 'hex', 'base64', 'utf-8', 'utf8', a constant.", c.name),
            )
            .at_arg(1));
        }
    }
    Ok(Typed::new(types, T::Binary))
}

fn to_binary(c: &Call<'_>) -> EvalResult {
    let s = c.str(0);
    let format = c.constant_str(1 % c.len()).filter(|_| c.len() == 2).unwrap_or("hex").to_ascii_lowercase();
    let tried = c.name == "try_to_binary";
    c.binaries(|row, out| {
        let text = s.get(row);
        let read = match format.as_str() {
            "hex" => read_hex(text, out).ok_or("there are other characters than hexadecimal digits"),
            "base64" => read_base64(text.as_bytes(), out),
            "utf-8" | "utf8" => {
                out.extend_from_slice(text.as_bytes());
                Ok(())
            }
            _ => Err("there is no such format"),
        };
        match read {
            Ok(()) => Ok(true),
            Err(_) if tried => Ok(false),
            Err(why) => Err(conversion_error(c, text, &format.to_ascii_uppercase(), why)),
        }
    })
}

fn url_encode(c: &Call<'_>) -> EvalResult {
    let s = c.str(0);
    c.strings(|row, out| {
        for b in s.get(row).bytes() {
            match b {
                b' ' => out.push('+'),
                b if b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'*' | b'_') => out.push(char::from(b)),
                b => {
                    out.push('%');
                    write_hex(&[b], out);
                }
            }
        }
        Ok(true)
    })
}

fn decode_url(s: &str, out: &mut String) -> Option<()> {
    let mut bytes = Vec::with_capacity(s.len());
    let mut rest = s.as_bytes();
    while let [b, tail @ ..] = rest {
        rest = tail;
        match b {
            b'+' => bytes.push(b' '),
            b'%' => {
                let (digits, tail) = rest.split_at_checked(2)?;
                if !digits.iter().all(u8::is_ascii_hexdigit) {
                    return None;
                }
                read_hex(std::str::from_utf8(digits).ok()?, &mut bytes)?;
                rest = tail;
            }
            b => bytes.push(*b),
        }
    }
    out.push_str(&String::from_utf8_lossy(&bytes));
    Some(())
}

fn url_decode(c: &Call<'_>) -> EvalResult {
    let s = c.str(0);
    c.strings(|row, out| match decode_url(s.get(row), out) {
        Some(()) => Ok(true),
        None if c.name == "try_url_decode" => Ok(false),
        None => Err(EvalError::new("CANNOT_DECODE_URL", format!("The URL text '{}' cannot be decoded.", s.get(row)))
            .with_help("use `try_url_decode` to get NULL instead")),
    })
}

/// The parts of a URI (RFC 2396, as Java reads it), escapes left as they are.
struct Uri<'a> {
    scheme: Option<&'a str>,
    authority: Option<&'a str>,
    path: Option<&'a str>,
    query: Option<&'a str>,
    fragment: Option<&'a str>,
}

fn parse_uri(s: &str) -> Option<Uri<'_>> {
    let legal = |ch: char| {
        ch.is_ascii_alphanumeric() || "-_.!~*'();/?:@&=+$,#[]%".contains(ch) || (!ch.is_ascii() && !ch.is_control())
    };
    let escapes = s
        .match_indices('%')
        .all(|(i, _)| s.as_bytes().get(i + 1..i + 3).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)));
    if !s.chars().all(legal) || !escapes || s.matches('#').count() > 1 {
        return None;
    }
    let (rest, fragment) = s.split_once('#').map_or((s, None), |(a, b)| (a, Some(b)));
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (scheme, rest) = match rest[..end].find(':') {
        Some(at) => {
            let scheme = &rest[..at];
            let fine = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
            if !fine || at + 1 == rest.len() {
                return None;
            }
            (Some(scheme), &rest[at + 1..])
        }
        None => (None, rest),
    };
    if scheme.is_some() && !rest.starts_with('/') {
        // An opaque URI has no parts.
        return Some(Uri { scheme, authority: None, path: None, query: None, fragment });
    }
    let (rest, query) = rest.split_once('?').map_or((rest, None), |(a, b)| (a, Some(b)));
    let (authority, path) = match rest.strip_prefix("//") {
        Some(rest) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            if authority.is_empty() && path.is_empty() {
                return None;
            }
            (Some(authority).filter(|a| !a.is_empty()), path)
        }
        None => (None, rest),
    };
    Some(Uri { scheme, authority, path: Some(path), query, fragment })
}

impl<'a> Uri<'a> {
    /// User and host of an authority that names a server.
    fn server(&self) -> Option<(Option<&'a str>, &'a str)> {
        let authority = self.authority?;
        let (user, rest) = authority.rsplit_once('@').map_or((None, authority), |(u, r)| (Some(u), r));
        let host = match rest.find(']') {
            Some(end) if rest.starts_with('[') => &rest[..=end],
            _ => rest.split_once(':').map_or(rest, |(h, _)| h),
        };
        let port = rest[host.len()..].trim_start_matches(':');
        let named = host.starts_with('[')
            || (!host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.')));
        (named && port.bytes().all(|b| b.is_ascii_digit())).then_some((user, host))
    }
}

fn parse_url(c: &Call<'_>) -> EvalResult {
    let (url, part) = (c.str(0), c.str(1));
    let key = (c.len() == 3).then(|| c.str(2));
    c.strings(|row, out| {
        let text = url.get(row);
        let Some(uri) = parse_uri(text) else {
            if c.name == "try_parse_url" {
                return Ok(false);
            }
            return Err(EvalError::new("INVALID_URL", format!("The text '{text}' is no URL."))
                .with_help("use `try_parse_url` to get NULL instead"));
        };
        let part = part.get(row);
        if let Some(key) = &key {
            let wanted = key.get(row);
            let value = uri
                .query
                .filter(|_| part == "QUERY")
                .and_then(|q| q.split('&').find_map(|pair| pair.strip_prefix(wanted)?.strip_prefix('=')));
            out.push_str(value.unwrap_or(""));
            return Ok(value.is_some());
        }
        let value = match part {
            "HOST" => uri.server().map(|(_, host)| host),
            "PATH" => uri.path,
            "QUERY" => uri.query,
            "REF" => uri.fragment,
            "PROTOCOL" => uri.scheme,
            "AUTHORITY" => uri.authority,
            "USERINFO" => uri.server().and_then(|(user, _)| user),
            "FILE" => {
                out.push_str(uri.path.unwrap_or(""));
                if let Some(query) = uri.query {
                    out.push('?');
                    out.push_str(query);
                }
                return Ok(uri.path.is_some());
            }
            _ => None,
        };
        out.push_str(value.unwrap_or(""));
        Ok(value.is_some())
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::*;

    #[test]
    fn hexadecimal() {
        assert_eq!(eval("hex", &[int(255)]), "FF");
        assert_eq!(eval("hex", &[int(-1)]), "FFFFFFFFFFFFFFFF");
        assert_eq!(eval("hex", &[str("AZ")]), "415A");
        assert_eq!(eval("hex", &[expr("unhex", &[str("ABC")])]), "0ABC");
        assert_eq!(eval("unhex", &[str("G")]), "NULL");
        assert_eq!(eval("hex", &[expr("to_binary", &[str("FF0a")])]), "FF0A");
        assert_eq!(eval("to_binary", &[str("zz"), str("hex")]), "!CONVERSION_INVALID_INPUT");
        assert_eq!(eval("try_to_binary", &[str("zz"), str("hex")]), "NULL");
        assert_eq!(eval("to_binary", &[str("ab"), str("xx")]), "!DATATYPE_MISMATCH.INVALID_ARG_VALUE");
    }

    #[test]
    fn base_64() {
        assert_eq!(eval("base64", &[str("hello")]), "aGVsbG8=");
        assert_eq!(eval("base64", &[binary(&[0, 255])]), "AP8=");
        assert_eq!(eval("base64", &[str("")]), "");
        assert_eq!(eval("length", &[expr("base64", &[expr("repeat", &[str("a"), int(100)])])]), "138");
        for (text, value) in [("aGVsbG8=", "hello"), ("aGVs bG8=", "hello"), ("aGk", "hi"), ("a!Gk=", "hi")] {
            assert_eq!(eval("unbase64", &[str(text)]), value);
        }
        assert_eq!(eval("unbase64", &[str("a")]), "!CONVERSION_INVALID_INPUT");
        assert_eq!(eval("to_binary", &[str("aGk"), str("base64")]), "hi");
    }

    #[test]
    fn character_sets() {
        let sets = [
            ("UTF-8", "C3A9"),
            ("utf-16be", "00E9"),
            ("UTF-16", "FEFF00E9"),
            ("ISO-8859-1", "E9"),
            ("UTF-32", "000000E9"),
        ];
        for (set, hex) in sets {
            let bytes = expr("encode", &[str("é"), str(set)]);
            assert_eq!(eval("hex", std::slice::from_ref(&bytes)), hex);
            assert_eq!(eval("decode", &[bytes, str(set)]), "é");
        }
        assert_eq!(eval("encode", &[str("é"), str("US-ASCII")]), "!MALFORMED_CHARACTER_CODING");
        assert_eq!(eval("encode", &[str("a"), str("NO-SUCH")]), "!INVALID_PARAMETER_VALUE.CHARSET");
        assert_eq!(eval("decode", &[binary(&[0xff, 0x41]), str("UTF-8")]), "!MALFORMED_CHARACTER_CODING");
    }

    #[test]
    fn urls() {
        assert_eq!(eval("url_encode", &[str("a b&c=d/é")]), "a+b%26c%3Dd%2F%C3%A9");
        assert_eq!(eval("url_decode", &[str("a+b%26c")]), "a b&c");
        assert_eq!(eval("url_decode", &[str("%zz")]), "!CANNOT_DECODE_URL");
        assert_eq!(eval("try_url_decode", &[str("%")]), "NULL");
        let part = |url: &str, part: &str| eval("parse_url", &[str(url), str(part)]);
        let url = "https://u:pw@ex.org:8080/p/q?x=1&y=2#frag";
        for (name, value) in [
            ("HOST", "ex.org"),
            ("PATH", "/p/q"),
            ("QUERY", "x=1&y=2"),
            ("REF", "frag"),
            ("PROTOCOL", "https"),
            ("FILE", "/p/q?x=1&y=2"),
            ("AUTHORITY", "u:pw@ex.org:8080"),
            ("USERINFO", "u:pw"),
            ("NOPE", "NULL"),
        ] {
            assert_eq!(part(url, name), value);
        }
        assert_eq!(eval("parse_url", &[str(url), str("QUERY"), str("y")]), "2");
        assert_eq!(eval("parse_url", &[str(url), str("QUERY"), str("z")]), "NULL");
        assert_eq!(part("inva lid://host", "HOST"), "!INVALID_URL");
        assert_eq!(eval("try_parse_url", &[str("not a url"), str("HOST")]), "NULL");
    }
}
