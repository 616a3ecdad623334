//! From JSON values to column values, by Spark's rules for JSON.
//!
//! Two things can be wrong. A record that is not JSON ([`Lexical`]) is lost as a whole. A value that does not suit its
//! column makes that column NULL and the record bad, and reading goes on ([`Reader::bad`]). Inside a STRUCT only the
//! member becomes NULL; inside an ARRAY or MAP the whole array or map does.

use ssql_stdlib::{parse_date, parse_decimal, parse_interval_as, parse_timestamp, parse_timestamp_without_zone};

use super::number;
use super::scan::{self, Dialect, Lexical, Text, Word, blanks, byte};
use super::time::{Times, read_date};
use crate::columns::{Column, ListColumn, MapColumn, StructColumn};
use crate::formats::TextFormats;

/// A value that does not suit its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BadValue {
    /// Where it stands.
    pub(super) at: usize,
}

/// Reads values of one buffer.
pub(super) struct Reader<'a> {
    pub(super) data: &'a [u8],
    /// Number of the buffer that `data` is.
    pub(super) buffer: u32,
    pub(super) dialect: Dialect,
    pub(super) formats: &'a TextFormats,
    /// Texts that had to be rewritten: buffer number 0.
    pub(super) heap: &'a mut Vec<u8>,
    pub(super) times: &'a mut Times,
    /// The record's first value that did not suit.
    pub(super) bad: Option<BadValue>,
}

impl Reader<'_> {
    /// Reads the value at `p` (no blank stands there) into `column`, which gets exactly one value more; returns the
    /// position after the value.
    #[inline(always)]
    pub(super) fn value(&mut self, column: &mut Column, p: usize) -> Result<usize, Lexical> {
        let data = self.data;
        match column {
            Column::String(c) if byte(data, p) == b'"' => {
                let (text, end) = scan::string(data, p, &self.dialect, self.heap)?;
                match text {
                    Text::Plain { start, end } => c.push(data, start, end - start, self.buffer),
                    Text::Rewritten { start } => c.push(self.heap, start, self.heap.len() - start, 0),
                }
                return Ok(end);
            }
            Column::Float64(c) => {
                if let Some((value, end)) = number::double(data, p) {
                    c.push(value);
                    return Ok(end);
                }
            }
            Column::Timestamp(c) if byte(data, p) == b'"' && self.formats.timestamp.is_none() => {
                if let Some((value, end)) = self.times.instant(data, p + 1) {
                    c.push(value);
                    return Ok(end + 1);
                }
            }
            Column::Int64(c) => {
                if let Some((value, end)) = number::integer(data, p) {
                    c.push(value);
                    return Ok(end);
                }
            }
            Column::Int32(c) => {
                if let Some((value, end)) = number::integer(data, p)
                    && let Ok(value) = i32::try_from(value)
                {
                    c.push(value);
                    return Ok(end);
                }
            }
            _ => {}
        }
        self.general(column, p)
    }

    /// [`Reader::value`] for whatever is not the common shape of the common types.
    fn general(&mut self, column: &mut Column, p: usize) -> Result<usize, Lexical> {
        match byte(self.data, p) {
            b'"' => self.text(column, p),
            b'\'' if self.dialect.single_quotes => self.text(column, p),
            b'0'..=b'9' => self.number(column, p),
            b'-' if byte(self.data, p + 1) != b'I' => self.number(column, p),
            b'{' | b'[' => match column {
                Column::List(c) if self.data[p] == b'[' => self.list(c, p),
                Column::Map(c) if self.data[p] == b'{' => self.map(c, p),
                Column::Struct(c) if self.data[p] == b'{' => self.structure(c, p),
                _ => {
                    let end = scan::skip(self.data, p, &self.dialect, self.heap)?;
                    self.raw_or_bad(column, p, end)
                }
            },
            _ if p >= self.data.len() => Err(Lexical::new(p, "the record ends where a value should stand")),
            _ => self.word(column, p),
        }
    }

    /// A value that is not text: STRING takes it as it is written, any other column not at all.
    fn raw_or_bad(&mut self, column: &mut Column, p: usize, end: usize) -> Result<usize, Lexical> {
        let Column::String(c) = column else { return Ok(self.refuse(column, p, end)) };
        // The value was lexed, but in comments and unchecked parts it may still hold bytes that are no UTF-8.
        if std::str::from_utf8(&self.data[p..end]).is_err() {
            return Err(Lexical::new(p, "text that is not UTF-8"));
        }
        c.push(self.data, p, end - p, self.buffer);
        Ok(end)
    }

    /// The value at `p` does not suit: NULL, and the record is bad.
    fn refuse(&mut self, column: &mut Column, p: usize, end: usize) -> usize {
        self.bad.get_or_insert(BadValue { at: p });
        column.push_null();
        end
    }

    fn word(&mut self, column: &mut Column, p: usize) -> Result<usize, Lexical> {
        let (word, end) = scan::word(self.data, p, &self.dialect)?;
        match (word, column) {
            (Word::Null, column) => column.push_null(),
            (Word::True, Column::Boolean(c)) => c.push(true),
            (Word::False, Column::Boolean(c)) => c.push(false),
            (Word::Float(v), Column::Float32(c)) => c.push(v as f32),
            (Word::Float(v), Column::Float64(c)) => c.push(v),
            (_, column) => return self.raw_or_bad(column, p, end),
        }
        Ok(end)
    }

    fn number(&mut self, column: &mut Column, p: usize) -> Result<usize, Lexical> {
        if let Column::Decimal(c, precision, scale) = column
            && let Some((value, end)) = number::decimal(self.data, p, *precision, *scale)
        {
            c.push(value);
            return Ok(end);
        }
        let shape = scan::number(self.data, p, &self.dialect)?;
        let end = shape.end;
        let text = std::str::from_utf8(&self.data[p..end]).expect("a number is ASCII");
        let whole = || if shape.integer { text.parse::<i64>().ok() } else { None };
        let pushed = match column {
            // Spark takes what fits a byte, signed or not.
            Column::Int8(c) => whole().filter(|v| (-128..256).contains(v)).map(|v| c.push(v as i8)),
            Column::Int16(c) => whole().and_then(|v| v.try_into().ok()).map(|v| c.push(v)),
            Column::Int32(c) => whole().and_then(|v| v.try_into().ok()).map(|v| c.push(v)),
            Column::Int64(c) => whole().map(|v| c.push(v)),
            Column::Float32(c) => fast_float2::parse(text).ok().map(|v| c.push(v)),
            Column::Float64(c) => fast_float2::parse(text).ok().map(|v| c.push(v)),
            Column::Decimal(c, precision, scale) => parse_decimal(text, *precision, *scale).ok().map(|v| c.push(v)),
            Column::Timestamp(c) => whole().map(|seconds| c.push(seconds.wrapping_mul(1_000_000))),
            column => return self.raw_or_bad(column, p, end),
        };
        Ok(if pushed.is_some() { end } else { self.refuse(column, p, end) })
    }

    fn text(&mut self, column: &mut Column, p: usize) -> Result<usize, Lexical> {
        let data = self.data;
        match column {
            Column::Date(c) if self.formats.date.is_none() => {
                if let Some(text) = data[p + 1..].first_chunk::<10>()
                    && byte(data, p + 11) == b'"'
                    && let Some(days) = read_date(text)
                {
                    c.push(days);
                    return Ok(p + 12);
                }
            }
            Column::TimestampNtz(c) if self.formats.timestamp_ntz.is_none() && data[p] == b'"' => {
                if let Some((value, end)) = self.times.wall_clock(data, p + 1) {
                    c.push(value);
                    return Ok(end + 1);
                }
            }
            _ => {}
        }
        let before = self.heap.len();
        let (text, end) = scan::string(data, p, &self.dialect, self.heap)?;
        let (bytes, at, length, buffer) = match text {
            Text::Plain { start, end } => (data, start, end - start, self.buffer),
            Text::Rewritten { start } => (&self.heap[..], start, self.heap.len() - start, 0),
        };
        if let Column::String(c) = column {
            c.push(bytes, at, length, buffer);
            return Ok(end);
        }
        let text = std::str::from_utf8(&bytes[at..at + length]).expect("scan::string gives only UTF-8");
        let pushed = match column {
            Column::Float32(c) => special(text, &self.dialect).map(|v| c.push(v as f32)),
            Column::Float64(c) => special(text, &self.dialect).map(|v| c.push(v)),
            Column::Decimal(c, precision, scale) => decimal(text, *precision, *scale).map(|v| c.push(v)),
            Column::Date(c) => match &self.formats.date {
                Some(pattern) => pattern.date(text),
                None => parse_date(text).filter(|_| !is_epoch(text)),
            }
            .map(|v| c.push(v)),
            Column::Timestamp(c) => match &self.formats.timestamp {
                Some(pattern) => pattern.instant(text, self.times.zone()),
                None => parse_timestamp(text, self.times.zone()).filter(|_| !is_epoch(text)),
            }
            .map(|v| c.push(v)),
            Column::TimestampNtz(c) => match &self.formats.timestamp_ntz {
                Some(pattern) => pattern.wall_clock(text),
                None => parse_timestamp_without_zone(text),
            }
            .map(|v| c.push(v)),
            Column::DayTime(c, t) => parse_interval_as(text, t).map(|v| c.push(v)),
            Column::YearMonth(c, t) => {
                parse_interval_as(text, t).and_then(|v| i32::try_from(v).ok()).map(|v| c.push(v))
            }
            Column::Binary(c) => base64(text).map(|decoded| {
                self.heap.truncate(before);
                self.heap.extend_from_slice(&decoded);
                c.push(self.heap, before, decoded.len(), 0);
            }),
            _ => None,
        };
        if !matches!(column, Column::Binary(_)) {
            self.heap.truncate(before);
        }
        Ok(if pushed.is_some() { end } else { self.refuse(column, p, end) })
    }

    fn list(&mut self, list: &mut ListColumn, p: usize) -> Result<usize, Lexical> {
        let mut p = blanks(self.data, p + 1, &self.dialect);
        let mut whole = true;
        if byte(self.data, p) == b']' {
            p += 1;
        } else {
            loop {
                p = self.item(&mut list.items, p, &mut whole)?;
                p = blanks(self.data, p, &self.dialect);
                match byte(self.data, p) {
                    b',' => p = blanks(self.data, p + 1, &self.dialect),
                    b']' => break p += 1,
                    _ => return Err(Lexical::new(p, "no comma and no closing bracket in an array")),
                }
            }
        }
        list.close(whole);
        Ok(p)
    }

    fn map(&mut self, map: &mut MapColumn, p: usize) -> Result<usize, Lexical> {
        let mut p = blanks(self.data, p + 1, &self.dialect);
        let mut whole = true;
        if byte(self.data, p) == b'}' {
            p += 1;
        } else {
            loop {
                let (name, end) = scan::name(self.data, p, &self.dialect, self.heap)?;
                match (&mut map.keys, name) {
                    (Column::String(c), Text::Plain { start, end }) => {
                        c.push(self.data, start, end - start, self.buffer)
                    }
                    (Column::String(c), Text::Rewritten { start }) => {
                        c.push(self.heap, start, self.heap.len() - start, 0)
                    }
                    // Spark reads JSON names into maps with STRING keys only.
                    (keys, _) => {
                        whole = false;
                        keys.push_null();
                    }
                }
                p = scan::colon(self.data, end, &self.dialect)?;
                p = self.item(&mut map.values, p, &mut whole)?;
                p = blanks(self.data, p, &self.dialect);
                match byte(self.data, p) {
                    b',' => p = blanks(self.data, p + 1, &self.dialect),
                    b'}' => break p += 1,
                    _ => return Err(Lexical::new(p, "no comma and no closing brace in an object")),
                }
            }
        }
        if !whole {
            self.bad.get_or_insert(BadValue { at: p });
        }
        map.close(whole);
        Ok(p)
    }

    /// Reads an item of an array or map. The whole array or map is lost with a value that does not suit, but not with
    /// a STRUCT that only has a bad member.
    fn item(&mut self, items: &mut Column, p: usize, whole: &mut bool) -> Result<usize, Lexical> {
        let before = self.bad.take();
        let end = self.value(items, p)?;
        *whole &= self.bad.is_none() || matches!(items, Column::Struct(c) if c.is_last_valid());
        self.bad = before.or(self.bad);
        Ok(end)
    }

    fn structure(&mut self, structure: &mut StructColumn, p: usize) -> Result<usize, Lexical> {
        let row = structure.len();
        let mut p = blanks(self.data, p + 1, &self.dialect);
        if byte(self.data, p) == b'}' {
            p += 1;
        } else {
            loop {
                let before = self.heap.len();
                let (name, end) = scan::name(self.data, p, &self.dialect, self.heap)?;
                let bytes = match name {
                    Text::Plain { start, end } => &self.data[start..end],
                    Text::Rewritten { start } => &self.heap[start..],
                };
                let member = structure.names.iter().position(|n| **n == *bytes);
                self.heap.truncate(before);
                p = scan::colon(self.data, end, &self.dialect)?;
                p = match member {
                    Some(i) => {
                        structure.members[i].truncate(row);
                        self.value(&mut structure.members[i], p)?
                    }
                    None => scan::skip(self.data, p, &self.dialect, self.heap)?,
                };
                p = blanks(self.data, p, &self.dialect);
                match byte(self.data, p) {
                    b',' => p = blanks(self.data, p + 1, &self.dialect),
                    b'}' => break p += 1,
                    _ => return Err(Lexical::new(p, "no comma and no closing brace in an object")),
                }
            }
        }
        structure.close();
        Ok(p)
    }
}

/// `epoch` is a timestamp to a cast, but not in JSON or CSV.
pub(crate) fn is_epoch(text: &str) -> bool {
    text.trim().eq_ignore_ascii_case("epoch")
}

/// A floating point value written as a string.
fn special(text: &str, dialect: &Dialect) -> Option<f64> {
    match text {
        _ if !dialect.non_numeric => None,
        "NaN" => Some(f64::NAN),
        "+INF" | "+Infinity" | "Infinity" => Some(f64::INFINITY),
        "-INF" | "-Infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// A decimal written as a string: without blanks, with commas between digits left out.
pub(crate) fn decimal(text: &str, precision: u8, scale: u8) -> Option<i128> {
    if text.starts_with(|c: char| c <= ' ') || text.ends_with(|c: char| c <= ' ') {
        return None;
    }
    let plain = if text.contains(',') { &text.replace(',', "") } else { text };
    parse_decimal(plain, precision, scale).ok()
}

/// Decodes standard base64 with padding.
fn base64(text: &str) -> Option<Vec<u8>> {
    let bytes = text.as_bytes();
    if !bytes.len().is_multiple_of(4) {
        return None;
    }
    let padding = bytes.iter().rev().take_while(|b| **b == b'=').count();
    if padding > 2 {
        return None;
    }
    let mut out = Vec::with_capacity(bytes.len() / 4 * 3);
    for chunk in bytes.chunks(4) {
        let mut word = 0u32;
        for &b in chunk {
            let six = match b {
                b'A'..=b'Z' => b - b'A',
                b'a'..=b'z' => b - b'a' + 26,
                b'0'..=b'9' => b - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                b'=' => 0,
                _ => return None,
            };
            word = word << 6 | u32::from(six);
        }
        out.extend_from_slice(&word.to_be_bytes()[1..]);
    }
    // Padding inside would have been decoded as zeros.
    if bytes[..bytes.len() - padding].contains(&b'=') {
        return None;
    }
    out.truncate(out.len() - padding);
    Some(out)
}
