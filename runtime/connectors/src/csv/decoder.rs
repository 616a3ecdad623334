//! CSV lines into rows.
//!
//! The rules are those of Spark's parser (univocity's): a quote that is neither escaped nor followed by a separator
//! makes the field count as it is written, quotes and all; an unclosed quote ends with the line; too few or too many
//! fields make a record bad, but what is there is read.

use std::ops::Range;

use arrow::buffer::Buffer;
use jiff::tz::TimeZone;
use ssql_engine::connector::{ConnectorError, Domain, Options};
use ssql_ir::Field;

use crate::cells::push_text;
use crate::columns::Column;
use crate::decode::{BadRecord, Decoded, Decoder, Mode, corrupt_column};
use crate::formats::{TextFormats, time_zone};

/// How CSV is read; the names are Spark's.
#[derive(Debug, Clone)]
pub struct CsvOptions {
    /// `mode`
    pub mode: Mode,
    /// `header`: the first line of a file is no row.
    pub header: bool,
    separator: u8,
    quote: Option<u8>,
    escape: Option<u8>,
    comment: Option<u8>,
    null_value: String,
    empty_value: String,
    trim_left: bool,
    trim_right: bool,
    formats: TextFormats,
    time_zone: TimeZone,
    corrupt_record: Options,
}

impl CsvOptions {
    /// Reads the options of a relation.
    pub fn new(options: &Options, session: &TimeZone) -> Result<CsvOptions, ConnectorError> {
        if options.boolean("multiLine", false)? {
            return Err(ConnectorError::bad_option("multiLine", "true", "false: a CSV record is one line here"));
        }
        Ok(CsvOptions {
            mode: Mode::from_options(options)?,
            header: options.boolean("header", false)?,
            separator: separator(options)?,
            quote: character(options, "quote", Some(b'"'))?,
            escape: character(options, "escape", Some(b'\\'))?,
            comment: character(options, "comment", None)?,
            null_value: options.get("nullValue").unwrap_or("").to_string(),
            empty_value: options.get("emptyValue").unwrap_or("").to_string(),
            trim_left: options.boolean("ignoreLeadingWhiteSpace", false)?,
            trim_right: options.boolean("ignoreTrailingWhiteSpace", false)?,
            formats: TextFormats::new(options)?,
            time_zone: time_zone(options, session)?,
            corrupt_record: options.clone(),
        })
    }
}

/// `sep` or `delimiter`: one character; `\t` stands for a tab.
pub(super) fn separator(options: &Options) -> Result<u8, ConnectorError> {
    let name = if options.get("sep").is_some() { "sep" } else { "delimiter" };
    match options.get(name) {
        Some("\\t") => Ok(b'\t'),
        _ => Ok(character(options, name, Some(b','))?.unwrap_or(b',')),
    }
}

/// An option of one ASCII character; empty turns it off.
pub(super) fn character(options: &Options, name: &str, default: Option<u8>) -> Result<Option<u8>, ConnectorError> {
    match options.get(name).map(str::as_bytes) {
        None => Ok(default),
        Some([] | [0]) => Ok(None),
        Some([b]) if b.is_ascii() && *b != b'\n' && *b != b'\r' => Ok(Some(*b)),
        Some(other) => {
            let given = String::from_utf8_lossy(other);
            Err(ConnectorError::bad_option(name, &given, "one ASCII character"))
        }
    }
}

/// Where a field of the current line is found.
#[derive(Debug, Clone, Copy)]
enum Token {
    /// `start..end` of the line's buffer.
    Plain(usize, usize),
    /// `start..end` of the heap: escapes were resolved.
    Rewritten(usize, usize),
    /// A quoted empty text.
    Empty,
}

/// Decodes CSV lines.
#[derive(Debug)]
pub struct CsvDecoder {
    options: CsvOptions,
    columns: Vec<Column>,
    /// For each field of a line: the column that it goes to.
    targets: Vec<Option<usize>>,
    corrupt: Option<usize>,
    header_due: bool,
    heap: Vec<u8>,
    buffers: Vec<Buffer>,
    tokens: Vec<Token>,
    rows: usize,
    bad_records: u64,
}

impl CsvDecoder {
    /// A decoder of `fields`, where a line holds `all` in that order (but for the corrupt-record column).
    pub fn new(all: &[Field], fields: &[Field], options: CsvOptions) -> Result<CsvDecoder, ConnectorError> {
        if let Some(nested) = fields.iter().find(|f| f.data_type.is_nested()) {
            let message = format!("column `{}`: csv files cannot hold {}", nested.name, nested.data_type);
            return Err(ConnectorError::new("UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE", Domain::User, message));
        }
        let in_line = corrupt_column(&options.corrupt_record, all)?;
        let corrupt = corrupt_column(&options.corrupt_record, fields)?;
        let targets = all
            .iter()
            .enumerate()
            .filter(|(i, _)| Some(*i) != in_line)
            .map(|(_, f)| fields.iter().position(|g| g.name == f.name))
            .collect();
        Ok(CsvDecoder {
            columns: fields.iter().map(|f| Column::new(&f.data_type)).collect(),
            targets,
            corrupt,
            header_due: false,
            heap: Vec::new(),
            buffers: Vec::new(),
            tokens: Vec::new(),
            rows: 0,
            bad_records: 0,
            options,
        })
    }

    /// Cuts the line `start..end` into tokens.
    fn tokenize(&mut self, data: &[u8], start: usize, end: usize) {
        self.tokens.clear();
        let o = &self.options;
        let blank = |b: u8| b == b' ' || b == b'\t';
        let mut at = start;
        loop {
            let field = at;
            let mut first = at;
            if o.trim_left
                || o.quote.is_some_and(|q| data[at..end].iter().find(|b| !blank(**b)) == Some(&q) && o.trim_left)
            {
                while first < end && blank(data[first]) && data[first] != o.separator {
                    first += 1;
                }
            }
            let token = match o.quote {
                Some(q) if first < end && data[first] == q => quoted(data, first, end, q, o, &mut self.heap),
                _ => None,
            };
            let (token, next) = token.unwrap_or_else(|| {
                let from = if o.trim_left { first } else { field };
                let stop = memchr::memchr(o.separator, &data[from..end]).map_or(end, |n| from + n);
                let mut last = stop;
                while o.trim_right && last > from && blank(data[last - 1]) {
                    last -= 1;
                }
                (Token::Plain(from, last), stop)
            });
            self.tokens.push(token);
            if next >= end {
                return;
            }
            at = next + 1;
        }
    }

    /// Reads the line's tokens into a row; returns what is wrong with it, if anything.
    fn row(&mut self, data: &[u8], buffer: u32) -> Option<String> {
        let mut bad = (self.tokens.len() != self.targets.len())
            .then(|| format!("{} fields instead of {}", self.tokens.len(), self.targets.len()));
        for (i, target) in self.targets.iter().enumerate() {
            let Some(target) = *target else { continue };
            let column = &mut self.columns[target];
            let Some(token) = self.tokens.get(i) else {
                column.push_null();
                continue;
            };
            let (bytes, at, end, number): (&[u8], usize, usize, u32) = match *token {
                Token::Plain(at, end) => (data, at, end, buffer),
                Token::Rewritten(at, end) => (&self.heap, at, end, 0),
                Token::Empty => {
                    let at = self.heap.len();
                    self.heap.extend_from_slice(self.options.empty_value.as_bytes());
                    (&self.heap, at, self.heap.len(), 0)
                }
            };
            let text = &bytes[at..end];
            if text == self.options.null_value.as_bytes() {
                column.push_null();
                continue;
            }
            match (column, std::str::from_utf8(text)) {
                (Column::String(c), Ok(_)) | (Column::Binary(c), _) => c.push(bytes, at, end - at, number),
                (Column::String(c), Err(_)) => {
                    let text = String::from_utf8_lossy(text).into_owned();
                    let at = self.heap.len();
                    self.heap.extend_from_slice(text.as_bytes());
                    c.push(&self.heap, at, text.len(), 0);
                }
                (column, text) => {
                    let read =
                        text.ok().and_then(|t| push_text(column, t, &self.options.time_zone, &self.options.formats));
                    if read.is_none() {
                        column.push_null();
                        bad.get_or_insert_with(|| format!("field {} does not suit its column", i + 1));
                    }
                }
            }
        }
        bad
    }

    /// Deals with the line `start..end`.
    fn line(&mut self, data: &[u8], start: usize, end: usize, buffer: u32) -> Result<(), BadRecord> {
        let line = &data[start..end];
        if line.iter().all(u8::is_ascii_whitespace) || self.options.comment.is_some_and(|c| line[0] == c) {
            return Ok(());
        }
        if std::mem::take(&mut self.header_due) {
            return Ok(());
        }
        self.tokenize(data, start, end);
        let row = self.rows;
        let bad = self.row(data, buffer);
        self.rows += 1;
        if let Some(reason) = bad {
            match self.options.mode {
                Mode::FailFast => {
                    let text = String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned();
                    return Err(BadRecord { start, reason: format!("{reason}: {text}") });
                }
                Mode::DropMalformed => {
                    self.columns.iter_mut().for_each(|c| c.truncate(row));
                    self.rows = row;
                    self.bad_records += 1;
                    return Ok(());
                }
                Mode::Permissive => {
                    self.bad_records += 1;
                    if let Some(Column::String(c)) = self.corrupt.map(|i| &mut self.columns[i]) {
                        let at = self.heap.len();
                        self.heap.extend_from_slice(String::from_utf8_lossy(line).as_bytes());
                        c.push(&self.heap, at, self.heap.len() - at, 0);
                    }
                }
            }
        }
        if let Some(i) = self.corrupt
            && self.columns[i].len() == row
        {
            self.columns[i].push_null();
        }
        Ok(())
    }
}

/// Reads the quoted field at `first`; returns it and where its separator or the line's end is. `None` if a quote inside
/// is not escaped: then the field counts as it is written.
fn quoted(
    data: &[u8],
    first: usize,
    end: usize,
    quote: u8,
    options: &CsvOptions,
    heap: &mut Vec<u8>,
) -> Option<(Token, usize)> {
    let from = heap.len();
    let mut at = first + 1;
    let mut plain = true;
    while at < end {
        let b = data[at];
        let next = data.get(at + 1).copied().filter(|_| at + 1 < end);
        if options.escape == Some(b) && (next == Some(quote) || (next == Some(b) && b != quote)) {
            if plain {
                heap.extend_from_slice(&data[first + 1..at]);
                plain = false;
            }
            heap.push(next.expect("compared just before"));
            at += 2;
            continue;
        }
        if b == quote {
            let mut after = at + 1;
            while after < end && data[after] == b' ' && data[after] != options.separator {
                after += 1;
            }
            if after < end && data[after] != options.separator {
                heap.truncate(from);
                return None;
            }
            return Some((token(plain, first + 1, at, from, heap), after));
        }
        if !plain {
            heap.push(b);
        }
        at += 1;
    }
    Some((token(plain, first + 1, end, from, heap), end))
}

fn token(plain: bool, start: usize, end: usize, from: usize, heap: &[u8]) -> Token {
    match plain {
        true if start == end => Token::Empty,
        true => Token::Plain(start, end),
        false => Token::Rewritten(from, heap.len()),
    }
}

impl Decoder for CsvDecoder {
    fn decode(&mut self, bytes: &Buffer, range: Range<usize>) -> Result<usize, BadRecord> {
        if !self.buffers.last().is_some_and(|b| b.as_ptr() == bytes.as_ptr() && b.len() == bytes.len()) {
            self.buffers.push(bytes.clone());
        }
        let buffer = self.buffers.len() as u32;
        let data = bytes.as_slice();
        let mut at = range.start;
        while at < range.end && !self.is_full() {
            let end = memchr::memchr2(b'\n', b'\r', &data[at..range.end]).map_or(range.end, |n| at + n);
            if end > at {
                self.line(data, at, end, buffer)?;
            }
            at = end + 1;
        }
        Ok(at.min(range.end))
    }

    fn begin_file(&mut self) {
        self.header_due = self.options.header;
    }

    fn rows(&self) -> usize {
        self.rows
    }

    fn take(&mut self) -> Decoded {
        let heap = Buffer::from_vec(std::mem::take(&mut self.heap));
        let buffers = std::iter::once(heap).chain(self.buffers.drain(..)).collect();
        Decoded {
            columns: self.columns.iter_mut().map(|c| c.finish(&buffers)).collect(),
            rows: std::mem::take(&mut self.rows),
            bad_records: std::mem::take(&mut self.bad_records),
        }
    }
}
