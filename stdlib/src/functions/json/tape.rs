//! JSON text as a tape of nodes: one flat list per text, reused from row to row, that the functions of this family walk.

use crate::text::write_double;

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    True,
    False,
    /// A whole number; the node's text is it.
    Integer,
    /// A number with fraction or exponent, or NaN and the infinities.
    Float,
    /// A string; the node's text is what stands between the quotes. With escapes to be resolved or without.
    Plain,
    Escaped,
    Array,
    /// Its children are names and values in turn.
    Object,
}

/// A value (or a member's name) and where it stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    pub kind: Kind,
    pub start: u32,
    pub end: u32,
    /// The node behind this one and all inside it.
    pub next: u32,
}

/// Which departures from the standard are read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leniency {
    pub single_quotes: bool,
    pub unquoted_names: bool,
    pub leading_zeros: bool,
    pub control_characters: bool,
    pub any_escape: bool,
    pub comments: bool,
    /// NaN and the infinities, without quotes.
    pub non_numbers: bool,
}

impl Default for Leniency {
    /// Spark's defaults.
    fn default() -> Leniency {
        Leniency {
            single_quotes: true,
            unquoted_names: false,
            leading_zeros: false,
            control_characters: false,
            any_escape: false,
            comments: false,
            non_numbers: true,
        }
    }
}

/// Values nest no deeper than this: a deeper text is malformed.
const DEPTH: usize = 500;

/// The nodes of one text. Node 0 is the value.
#[derive(Debug, Default)]
pub(super) struct Tape {
    nodes: Vec<Node>,
}

/// The text is no JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

impl Tape {
    /// Reads the first value of a text; what stands behind it is not looked at.
    pub fn read(&mut self, text: &str, leniency: Leniency) -> Result<(), Malformed> {
        self.nodes.clear();
        let mut reader = Reader { bytes: text.as_bytes(), at: 0, nodes: &mut self.nodes, leniency };
        reader.skip_blanks()?;
        reader.value(0)
    }

    /// A node.
    pub fn node(&self, i: u32) -> Node {
        self.nodes[i as usize]
    }

    /// The elements of an array, or the names and values of an object, in turn.
    pub fn children(&self, i: u32) -> impl Iterator<Item = u32> + '_ {
        let end = self.node(i).next;
        let mut at = i + 1;
        std::iter::from_fn(move || {
            (at < end).then(|| {
                let this = at;
                at = self.node(at).next;
                this
            })
        })
    }

    /// The members of an object: names and values.
    pub fn members(&self, i: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let mut children = self.children(i);
        std::iter::from_fn(move || Some((children.next()?, children.next()?)))
    }

    /// The text of a node as it stands.
    pub fn raw<'t>(&self, text: &'t str, i: u32) -> &'t str {
        let node = self.node(i);
        &text[node.start as usize..node.end as usize]
    }

    /// Appends the text of a string node, escapes resolved.
    pub fn write_text(&self, text: &str, i: u32, out: &mut String) {
        let raw = self.raw(text, i);
        if self.node(i).kind == Kind::Escaped { unescape(raw, out) } else { out.push_str(raw) }
    }

    /// Whether a string node's text is that.
    pub fn text_is(&self, text: &str, i: u32, wanted: &str) -> bool {
        let raw = self.raw(text, i);
        if self.node(i).kind != Kind::Escaped {
            return raw == wanted;
        }
        let mut resolved = String::new();
        unescape(raw, &mut resolved);
        resolved == wanted
    }

    /// Appends the value written anew: compact, fractions as DOUBLE.
    pub fn write_json(&self, text: &str, i: u32, out: &mut String) {
        match self.node(i).kind {
            Kind::Null => out.push_str("null"),
            Kind::True => out.push_str("true"),
            Kind::False => out.push_str("false"),
            Kind::Integer => out.push_str(self.raw(text, i)),
            Kind::Float => match self.raw(text, i).parse::<f64>() {
                Ok(v) if v.is_finite() => write_double(v, out),
                // What is no number in JSON stands in quotes.
                Ok(v) => {
                    out.push('"');
                    write_double(v, out);
                    out.push('"');
                }
                Err(_) => out.push_str(self.raw(text, i)),
            },
            Kind::Plain | Kind::Escaped => {
                let mut resolved = String::new();
                self.write_text(text, i, &mut resolved);
                write_quoted(&resolved, out);
            }
            Kind::Array => {
                out.push('[');
                for (n, child) in self.children(i).enumerate() {
                    if n > 0 {
                        out.push(',');
                    }
                    self.write_json(text, child, out);
                }
                out.push(']');
            }
            Kind::Object => {
                out.push('{');
                for (n, (name, value)) in self.members(i).enumerate() {
                    if n > 0 {
                        out.push(',');
                    }
                    self.write_json(text, name, out);
                    out.push(':');
                    self.write_json(text, value, out);
                }
                out.push('}');
            }
        }
    }

    /// Appends a value as a text of its own: a string without quotes, all else as [`Tape::write_json`].
    pub fn write_value(&self, text: &str, i: u32, out: &mut String) {
        match self.node(i).kind {
            Kind::Plain | Kind::Escaped => self.write_text(text, i, out),
            _ => self.write_json(text, i, out),
        }
    }
}

/// Appends a text as a JSON string.
pub(super) fn write_quoted(s: &str, out: &mut String) {
    out.push('"');
    for c in s.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c < ' ' => out.push_str(&format!("\\u{:04X}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
}

fn unescape(raw: &str, out: &mut String) {
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let mut chars = rest[at + 1..].chars();
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some('b') => out.push('\u{8}'),
            Some('f') => out.push('\u{c}'),
            Some('u') => {
                let unit = |s: &str| s.get(..4).and_then(|d| u16::from_str_radix(d, 16).ok());
                let mut tail = chars.as_str();
                let high = unit(tail).unwrap_or(0xfffd);
                tail = tail.get(4..).unwrap_or("");
                let low = tail.strip_prefix("\\u").and_then(unit).filter(|l| (0xdc00..0xe000).contains(l));
                match (char::from_u32(high.into()), low) {
                    (Some(c), _) => out.push(c),
                    (None, Some(low)) if high < 0xdc00 => {
                        let code = 0x10000 + ((u32::from(high) - 0xd800) << 10) + (u32::from(low) - 0xdc00);
                        out.push(char::from_u32(code).unwrap_or('\u{fffd}'));
                        tail = &tail[6..];
                    }
                    // Half of a pair is no character.
                    _ => out.push('?'),
                }
                rest = tail;
                continue;
            }
            Some(c) => out.push(c),
            None => {}
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    nodes: &'a mut Vec<Node>,
    leniency: Leniency,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_blanks(&mut self) -> Result<(), Malformed> {
        loop {
            while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
                self.at += 1;
            }
            if !self.leniency.comments || self.peek() != Some(b'/') {
                return Ok(());
            }
            let rest = &self.bytes[self.at..];
            let length = match rest.get(1) {
                Some(b'/') => memchr::memchr(b'\n', rest).unwrap_or(rest.len()),
                Some(b'*') => memchr::memmem::find(&rest[2..], b"*/").ok_or(Malformed)? + 4,
                _ => return Err(Malformed),
            };
            self.at += length;
        }
    }

    fn push(&mut self, kind: Kind, start: usize, end: usize) {
        let next = self.nodes.len() as u32 + 1;
        self.nodes.push(Node { kind, start: start as u32, end: end as u32, next });
    }

    fn word(&mut self, word: &[u8], kind: Kind) -> Result<(), Malformed> {
        let end = self.at + word.len();
        let goes_on = self.bytes.get(end).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_' || *b >= 0x80);
        if !self.bytes[self.at..].starts_with(word) || goes_on {
            return Err(Malformed);
        }
        self.push(kind, self.at, end);
        self.at = end;
        Ok(())
    }

    fn value(&mut self, depth: usize) -> Result<(), Malformed> {
        if depth > DEPTH {
            return Err(Malformed);
        }
        match self.peek().ok_or(Malformed)? {
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'"' => self.string(b'"'),
            b'\'' if self.leniency.single_quotes => self.string(b'\''),
            b't' => self.word(b"true", Kind::True),
            b'f' => self.word(b"false", Kind::False),
            b'n' => self.word(b"null", Kind::Null),
            b'N' if self.leniency.non_numbers => self.word(b"NaN", Kind::Float),
            b'I' if self.leniency.non_numbers => self.word(b"Infinity", Kind::Float),
            b'-' if self.leniency.non_numbers && self.bytes.get(self.at + 1) == Some(&b'I') => {
                self.word(b"-Infinity", Kind::Float)
            }
            b'-' | b'0'..=b'9' => self.number(),
            _ => Err(Malformed),
        }
    }

    fn array(&mut self, depth: usize) -> Result<(), Malformed> {
        let this = self.nodes.len();
        self.push(Kind::Array, self.at, self.at);
        self.at += 1;
        self.skip_blanks()?;
        if self.peek() != Some(b']') {
            loop {
                self.skip_blanks()?;
                self.value(depth + 1)?;
                self.skip_blanks()?;
                match self.peek() {
                    Some(b',') => self.at += 1,
                    Some(b']') => break,
                    _ => return Err(Malformed),
                }
            }
        }
        self.close(this);
        Ok(())
    }

    fn close(&mut self, this: usize) {
        self.at += 1;
        let next = self.nodes.len() as u32;
        self.nodes[this].next = next;
        self.nodes[this].end = self.at as u32;
    }

    fn object(&mut self, depth: usize) -> Result<(), Malformed> {
        let this = self.nodes.len();
        self.push(Kind::Object, self.at, self.at);
        self.at += 1;
        self.skip_blanks()?;
        if self.peek() != Some(b'}') {
            loop {
                self.skip_blanks()?;
                match self.peek() {
                    Some(b'"') => self.string(b'"')?,
                    Some(b'\'') if self.leniency.single_quotes => self.string(b'\'')?,
                    Some(_) if self.leniency.unquoted_names => self.bare_name()?,
                    _ => return Err(Malformed),
                }
                self.skip_blanks()?;
                if self.peek() != Some(b':') {
                    return Err(Malformed);
                }
                self.at += 1;
                self.skip_blanks()?;
                self.value(depth + 1)?;
                self.skip_blanks()?;
                match self.peek() {
                    Some(b',') => self.at += 1,
                    Some(b'}') => break,
                    _ => return Err(Malformed),
                }
            }
        }
        self.close(this);
        Ok(())
    }

    fn bare_name(&mut self) -> Result<(), Malformed> {
        let start = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$' | b'-') || b >= 0x80) {
            self.at += 1;
        }
        if start == self.at {
            return Err(Malformed);
        }
        self.push(Kind::Plain, start, self.at);
        Ok(())
    }

    fn string(&mut self, quote: u8) -> Result<(), Malformed> {
        self.at += 1;
        let start = self.at;
        let mut kind = Kind::Plain;
        loop {
            match self.peek().ok_or(Malformed)? {
                b if b == quote => break,
                b'\\' => {
                    kind = Kind::Escaped;
                    match self.bytes.get(self.at + 1).ok_or(Malformed)? {
                        b'u' => {
                            let digits = self.bytes.get(self.at + 2..self.at + 6).ok_or(Malformed)?;
                            if !digits.iter().all(u8::is_ascii_hexdigit) {
                                return Err(Malformed);
                            }
                            self.at += 6;
                        }
                        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 2,
                        b'\'' if self.leniency.single_quotes => self.at += 2,
                        _ if self.leniency.any_escape => self.at += 2,
                        _ => return Err(Malformed),
                    }
                }
                b if b < 0x20 && !self.leniency.control_characters => return Err(Malformed),
                _ => self.at += 1,
            }
        }
        self.push(kind, start, self.at);
        self.at += 1;
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Malformed> {
        let start = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at > start { Ok(()) } else { Err(Malformed) }
    }

    fn number(&mut self) -> Result<(), Malformed> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let first = self.peek();
        let whole = self.at;
        self.digits()?;
        if first == Some(b'0') && self.at > whole + 1 && !self.leniency.leading_zeros {
            return Err(Malformed);
        }
        let mut kind = Kind::Integer;
        if self.peek() == Some(b'.') {
            kind = Kind::Float;
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            kind = Kind::Float;
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        if self.peek().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_' || b >= 0x80) {
            return Err(Malformed);
        }
        self.push(kind, start, self.at);
        Ok(())
    }
}
