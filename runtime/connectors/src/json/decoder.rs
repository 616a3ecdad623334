//! Records into rows: prediction of member order, and what becomes of bad records.

use std::collections::HashMap;
use std::ops::Range;

use arrow::buffer::Buffer;
use jiff::tz::TimeZone;
use ssql_engine::connector::{ConnectorError, Options};
use ssql_ir::Field;

use super::scan::{self, Dialect, Lexical, Text, blanks, byte};
use super::time::Times;
use super::value::{BadValue, Reader};
use crate::columns::{Column, MAX_BATCH_ROWS};
use crate::decode::{BadRecord, Decoded, Decoder, Mode, corrupt_column};
use crate::formats::TextFormats;

/// Names that a prediction is kept for; records with more different ones are read without.
const MAX_SLOTS: usize = 1024;
/// Longest name, with quotes, colon and blanks, that is compared at once.
const MAX_PREFIX: usize = 32;
/// Longest name that is remembered.
const MAX_NAME: usize = 256;
/// The slot that stands for a record's beginning. It has no prefix, so expecting it means expecting nothing.
const BEGIN: u32 = 0;
/// The slot of all names that are not remembered.
const OTHER: u32 = 1;
/// No column: the member is skipped.
const SKIP: u32 = u32::MAX;
/// Text of a bad record that goes into an error message.
const QUOTED: usize = 200;

/// How JSON is read; the names are Spark's.
#[derive(Debug, Clone)]
pub struct JsonOptions {
    /// `mode`
    pub mode: Mode,
    /// `columnNameOfCorruptRecord`
    pub corrupt_record: String,
    /// `dateFormat` and kin.
    pub formats: TextFormats,
    /// Session time zone, or `timeZone`.
    pub time_zone: TimeZone,
    dialect: Dialect,
}

impl JsonOptions {
    /// Reads the options of a relation.
    pub fn new(options: &Options, session: &TimeZone) -> Result<JsonOptions, ConnectorError> {
        Ok(JsonOptions {
            mode: Mode::from_options(options)?,
            corrupt_record: options.get("columnNameOfCorruptRecord").unwrap_or("_corrupt_record").to_string(),
            formats: TextFormats::new(options)?,
            time_zone: crate::formats::time_zone(options, session)?,
            dialect: Dialect {
                lines: !options.boolean("multiLine", false)?,
                single_quotes: options.boolean("allowSingleQuotes", true)?,
                non_numeric: options.boolean("allowNonNumericNumbers", true)?,
                unquoted_names: options.boolean("allowUnquotedFieldNames", false)?,
                comments: options.boolean("allowComments", false)?,
                leading_zeros: options.boolean("allowNumericLeadingZeros", false)?,
                any_escape: options.boolean("allowBackslashEscapingAnyCharacter", false)?,
                control_chars: options.boolean("allowUnquotedControlChars", false)?,
            },
        })
    }
}

/// A name that occurred, and what to expect after it.
#[derive(Debug)]
struct Slot {
    /// The bytes from the name's quote to the value, as they were written last; unused bytes are zero.
    prefix: [u128; 2],
    mask: [u128; 2],
    /// Length of the prefix; 0 if there is none to compare with.
    len: usize,
    /// Column, or [`SKIP`].
    target: u32,
    /// The slot that followed last.
    next: u32,
}

/// Decodes JSON records.
///
/// Use [`Decoder::decode`] for lines, [`JsonDecoder::decode_record`] for a record that stands alone (a message).
#[derive(Debug)]
pub struct JsonDecoder {
    options: JsonOptions,
    columns: Vec<Column>,
    /// Column for the text of bad records.
    corrupt: Option<usize>,
    /// By slot number; [`BEGIN`] and [`OTHER`] are always there.
    slots: Vec<Slot>,
    names: HashMap<Box<[u8]>, u32, ahash::RandomState>,
    heap: Vec<u8>,
    /// The buffers read since the last batch was taken.
    buffers: Vec<Buffer>,
    times: Times,
    rows: usize,
    bad_records: u64,
}

impl JsonDecoder {
    /// A decoder of these columns. A column named like the corrupt-record column gets the text of bad records.
    pub fn new(fields: &[Field], options: JsonOptions) -> Result<JsonDecoder, ConnectorError> {
        let named = Options::new([("columnNameOfCorruptRecord".to_string(), options.corrupt_record.clone())]);
        let corrupt = corrupt_column(&named, fields)?;
        let mut decoder = JsonDecoder {
            columns: fields.iter().map(|f| Column::new(&f.data_type)).collect(),
            corrupt,
            slots: Vec::new(),
            names: HashMap::default(),
            heap: Vec::new(),
            buffers: Vec::new(),
            times: Times::new(options.time_zone.clone()),
            rows: 0,
            bad_records: 0,
            options,
        };
        decoder.add_slot(SKIP);
        decoder.add_slot(SKIP);
        for (i, field) in fields.iter().enumerate() {
            if Some(i) != corrupt {
                let slot = decoder.add_slot(i as u32);
                decoder.names.insert(field.name.as_bytes().into(), slot);
            }
        }
        Ok(decoder)
    }

    /// Decodes one record that stands alone: blanks and line ends around it do not matter. A blank record is no row.
    pub fn decode_record(&mut self, bytes: &Buffer, range: Range<usize>) -> Result<(), BadRecord> {
        let lines = std::mem::replace(&mut self.options.dialect.lines, false);
        let result = self.record(bytes, range.start, range.end);
        self.options.dialect.lines = lines;
        result.map(drop)
    }

    fn add_slot(&mut self, target: u32) -> u32 {
        self.slots.push(Slot { prefix: [0; 2], mask: [0; 2], len: 0, target, next: BEGIN });
        self.slots.len() as u32 - 1
    }

    /// The number of `bytes` among the buffers of this batch.
    fn buffer_number(&mut self, bytes: &Buffer) -> u32 {
        if !self.buffers.last().is_some_and(|b| b.as_ptr() == bytes.as_ptr() && b.len() == bytes.len()) {
            self.buffers.push(bytes.clone());
        }
        self.buffers.len() as u32
    }

    /// Reads the record at `start` (in lines mode it ends at the line's end); returns where the next one begins.
    fn record(&mut self, bytes: &Buffer, start: usize, limit: usize) -> Result<usize, BadRecord> {
        let buffer = self.buffer_number(bytes);
        let data = &bytes.as_slice()[..limit];
        self.record_in(data, start, buffer)
    }

    fn record_in(&mut self, data: &[u8], start: usize, buffer: u32) -> Result<usize, BadRecord> {
        let first = blanks(data, start, &self.options.dialect);
        let before = self.rows;
        let (outcome, bad) = match byte(data, first) {
            b'{' => self.object(data, first, buffer),
            b'[' => self.array(data, first, buffer),
            _ if first >= data.len() => return Ok(data.len()),
            b'\n' | b'\r' => return Ok(first + 1),
            _ => (Err(Lexical::new(first, "a record that is neither an object nor an array")), None),
        };
        let end = match &outcome {
            Ok(end) => self.line_end(data, *end),
            Err(lexical) => self.line_end(data, lexical.at.min(data.len())),
        };
        if outcome.is_ok() && bad.is_none() {
            return Ok(end);
        }
        self.bad_record(data, start..end, before, outcome.err(), bad, buffer)?;
        Ok(end)
    }

    /// The position after the line end that follows `p`; the end of the data where lines do not matter.
    #[inline(always)]
    fn line_end(&self, data: &[u8], p: usize) -> usize {
        if !self.options.dialect.lines {
            return data.len();
        }
        match byte(data, p) {
            b'\n' => (p + 1).min(data.len()),
            _ => memchr::memchr2(b'\n', b'\r', &data[p..]).map_or(data.len(), |n| p + n + 1),
        }
    }

    /// One object into one row. On a lexical error the row is taken back.
    #[inline(always)]
    fn object(&mut self, data: &[u8], p: usize, buffer: u32) -> (Result<usize, Lexical>, Option<BadValue>) {
        let mut reader = Reader {
            data,
            buffer,
            dialect: self.options.dialect,
            formats: &self.options.formats,
            heap: &mut self.heap,
            times: &mut self.times,
            bad: None,
        };
        let row = self.rows;
        let mut names = Names { slots: &mut self.slots, names: &mut self.names };
        let result = members(&mut reader, &mut names, &mut self.columns, row, p);
        let bad = reader.bad;
        match result {
            Ok((_, filled)) => {
                if filled != self.columns.len() {
                    for column in &mut self.columns {
                        if column.len() == row {
                            column.push_null();
                        }
                    }
                }
                self.rows += 1;
            }
            Err(_) => self.columns.iter_mut().for_each(|c| c.truncate(row)),
        }
        (result.map(|(end, _)| end), bad)
    }

    /// A record that is an array of objects: each is a row.
    #[cold]
    fn array(&mut self, data: &[u8], p: usize, buffer: u32) -> (Result<usize, Lexical>, Option<BadValue>) {
        let dialect = self.options.dialect;
        let first = self.rows;
        let mut bad = None;
        let mut p = blanks(data, p + 1, &dialect);
        if byte(data, p) == b']' {
            return (Ok(p + 1), None);
        }
        let result = loop {
            if byte(data, p) != b'{' {
                break Err(Lexical::new(p, "an element that is no object, in an array of records"));
            }
            let (end, bad_value) = self.object(data, p, buffer);
            bad = bad.or(bad_value);
            match end {
                Ok(end) => p = blanks(data, end, &dialect),
                Err(error) => break Err(error),
            }
            match byte(data, p) {
                b',' => p = blanks(data, p + 1, &dialect),
                b']' => break Ok(p + 1),
                _ => break Err(Lexical::new(p, "no comma and no closing bracket in an array")),
            }
        };
        if result.is_err() {
            self.take_back(first);
        }
        (result, bad)
    }

    fn take_back(&mut self, row: usize) {
        self.columns.iter_mut().for_each(|c| c.truncate(row));
        self.rows = row;
    }

    /// Deals with a bad record by the mode. Rows from `first` on are what could be read of it.
    #[cold]
    fn bad_record(
        &mut self,
        data: &[u8],
        record: Range<usize>,
        first: usize,
        lexical: Option<Lexical>,
        bad: Option<BadValue>,
        buffer: u32,
    ) -> Result<(), BadRecord> {
        let mut end = record.end;
        if self.options.dialect.lines {
            while end > record.start && matches!(data[end - 1], b'\n' | b'\r') {
                end -= 1;
            }
        }
        match self.options.mode {
            Mode::FailFast => {
                let shown = String::from_utf8_lossy(&data[record.start..end.min(record.start + QUOTED)]).into_owned();
                let what = match (lexical, bad) {
                    (Some(l), _) => format!("{} (character {})", l.what, l.at.saturating_sub(record.start) + 1),
                    (None, Some(b)) => {
                        let at = b.at - record.start;
                        format!("a value that does not suit its column (character {})", at + 1)
                    }
                    (None, None) => "a malformed record".to_string(),
                };
                return Err(BadRecord { start: record.start, reason: format!("{what}: {shown}") });
            }
            Mode::DropMalformed => {
                self.take_back(first);
                self.bad_records += 1;
                return Ok(());
            }
            Mode::Permissive => {}
        }
        self.bad_records += 1;
        if lexical.is_some() {
            self.columns.iter_mut().for_each(Column::push_null);
            self.rows += 1;
        }
        if let Some(corrupt) = self.corrupt {
            let Column::String(column) = &mut self.columns[corrupt] else {
                unreachable!("corrupt_column takes STRING only")
            };
            column.truncate(first);
            let text = &data[record.start..end];
            for _ in first..self.rows {
                if std::str::from_utf8(text).is_ok() {
                    column.push(data, record.start, text.len(), buffer);
                } else {
                    let at = self.heap.len();
                    self.heap.extend_from_slice(String::from_utf8_lossy(text).as_bytes());
                    column.push(&self.heap, at, self.heap.len() - at, 0);
                }
            }
        }
        Ok(())
    }
}

impl Decoder for JsonDecoder {
    fn decode(&mut self, bytes: &Buffer, range: Range<usize>) -> Result<usize, BadRecord> {
        if range.is_empty() {
            return Ok(range.end);
        }
        let buffer = self.buffer_number(bytes);
        let data = &bytes.as_slice()[..range.end];
        let mut p = range.start;
        while p < range.end && self.rows < MAX_BATCH_ROWS {
            p = self.record_in(data, p, buffer)?;
        }
        Ok(p)
    }

    fn rows(&self) -> usize {
        self.rows
    }

    fn take(&mut self) -> Decoded {
        let heap = std::mem::take(&mut self.heap);
        let buffers = std::iter::once(Buffer::from_vec(heap)).chain(self.buffers.drain(..)).collect();
        Decoded {
            columns: self.columns.iter_mut().map(|c| c.finish(&buffers)).collect(),
            rows: std::mem::take(&mut self.rows),
            bad_records: std::mem::take(&mut self.bad_records),
        }
    }
}

/// The names that occurred, by slot.
struct Names<'a> {
    slots: &'a mut Vec<Slot>,
    names: &'a mut HashMap<Box<[u8]>, u32, ahash::RandomState>,
}

/// Reads the members of the object at `p` into row `row`; returns its end and how many columns got a value.
#[inline(always)]
fn members(
    reader: &mut Reader<'_>,
    names: &mut Names<'_>,
    columns: &mut [Column],
    row: usize,
    p: usize,
) -> Result<(usize, usize), Lexical> {
    let data = reader.data;
    let dialect = reader.dialect;
    let mut filled = 0;
    let mut p = p + 1;
    let mut last = BEGIN;
    let mut slot = names.slots[BEGIN as usize].next;
    loop {
        let expected = &names.slots[slot as usize];
        if expected.matches(data, p) {
            p += expected.len;
            // There may be more blanks before the value than last time.
            if matches!(byte(data, p), b' ' | b'\t' | b'\n' | b'\r' | b'/') {
                p = blanks(data, p, &dialect);
            }
        } else {
            (slot, p) = match names.learn(reader, last, p)? {
                Some(found) => found,
                None if last == BEGIN => return Ok((blanks(data, p, &dialect) + 1, 0)),
                None => return Err(Lexical::new(p, "a comma before the closing brace")),
            };
        }
        let target = names.slots[slot as usize].target;
        if target == SKIP {
            p = scan::skip(data, p, &dialect, reader.heap)?;
        } else {
            let column = &mut columns[target as usize];
            if column.len() > row {
                // The name occurred before in this record; the last one counts.
                column.truncate(row);
                filled -= 1;
            }
            p = reader.value(column, p)?;
            filled += 1;
        }
        last = slot;
        slot = names.slots[slot as usize].next;
        match byte(data, p) {
            b',' => p += 1,
            b'}' => return Ok((p + 1, filled)),
            _ => {
                p = blanks(data, p, &dialect);
                match byte(data, p) {
                    b',' => p += 1,
                    b'}' => return Ok((p + 1, filled)),
                    _ => return Err(Lexical::new(p, "no comma and no closing brace in an object")),
                }
            }
        }
    }
}

impl Slot {
    /// Whether the data at `p` go on as they did when this slot came last.
    #[inline(always)]
    fn matches(&self, data: &[u8], p: usize) -> bool {
        let Some(bytes) = data.get(p..).and_then(|rest| rest.first_chunk::<MAX_PREFIX>()) else {
            return self.len > 0 && self.matches_near_end(&data[p.min(data.len())..]);
        };
        let (low, high) = bytes.split_at(16);
        let word = |b: &[u8]| u128::from_le_bytes(b.try_into().expect("half of 32 bytes"));
        self.len > 0
            && (((word(low) ^ self.prefix[0]) & self.mask[0]) | ((word(high) ^ self.prefix[1]) & self.mask[1])) == 0
    }

    #[cold]
    fn matches_near_end(&self, rest: &[u8]) -> bool {
        let prefix: Vec<u8> = self.prefix.iter().flat_map(|w| w.to_le_bytes()).take(self.len).collect();
        rest.starts_with(&prefix)
    }

    fn set_prefix(&mut self, text: &[u8]) {
        self.len = 0;
        if text.len() > MAX_PREFIX {
            return;
        }
        let (mut bytes, mut mask) = ([0u8; MAX_PREFIX], [0u8; MAX_PREFIX]);
        bytes[..text.len()].copy_from_slice(text);
        mask[..text.len()].fill(0xff);
        let words = |b: [u8; MAX_PREFIX]| {
            let whole = |at: usize| u128::from_le_bytes(b[at..at + 16].try_into().expect("half of 32 bytes"));
            [whole(0), whole(16)]
        };
        (self.prefix, self.mask, self.len) = (words(bytes), words(mask), text.len());
    }
}

impl Names<'_> {
    /// Reads a name the general way, and remembers it as what follows slot `last`. Returns its slot and where its value
    /// begins; `None` if there is a closing brace instead.
    #[cold]
    fn learn(&mut self, reader: &mut Reader<'_>, last: u32, from: usize) -> Result<Option<(u32, usize)>, Lexical> {
        let (data, dialect) = (reader.data, reader.dialect);
        let p = blanks(data, from, &dialect);
        if byte(data, p) == b'}' {
            return Ok(None);
        }
        let before = reader.heap.len();
        let (text, end) = scan::name(data, p, &dialect, reader.heap)?;
        let name = match text {
            Text::Plain { start, end } => &data[start..end],
            Text::Rewritten { start } => &reader.heap[start..],
        };
        let slot = match self.names.get(name) {
            Some(&slot) => slot,
            None if self.slots.len() < MAX_SLOTS && name.len() <= MAX_NAME => {
                let slot = self.slots.len() as u32;
                self.slots.push(Slot { prefix: [0; 2], mask: [0; 2], len: 0, target: SKIP, next: BEGIN });
                self.names.insert(name.into(), slot);
                slot
            }
            None => OTHER,
        };
        reader.heap.truncate(before);
        let value = scan::colon(data, end, &dialect)?;
        if slot == OTHER {
            return Ok(Some((OTHER, value)));
        }
        self.slots[last as usize].next = slot;
        self.slots[slot as usize].set_prefix(&data[from..value]);
        Ok(Some((slot, value)))
    }
}
