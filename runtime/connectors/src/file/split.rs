//! A split of text files: pieces of files, cut at line ends, decoded chunk by chunk.
//!
//! A piece `start..end` has the lines that begin in it. Where a piece begins inside a file, the line that reaches into
//! it belongs to the piece before; so the first line end at or after `start - 1` is looked for, and likewise at the end.

use std::io::{self, Read};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::buffer::Buffer;
use arrow::datatypes::SchemaRef;
use ssql_engine::connector::{ConnectorError, Domain, Split, SplitStats};
use ssql_ir::Field;

use super::buffers::{CHUNK, Chunk};
use super::list::FileEntry;
use super::reader::FileReader;
use super::{open, partitions};
use crate::decode::{Decoder, batch, batch_schema};

type DynError = Box<dyn std::error::Error + Send + Sync>;
type Deliver<'a> = &'a mut dyn FnMut(RecordBatch) -> Result<(), DynError>;

/// A range of a file; for a compressed file always the whole.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub(super) file: Arc<FileEntry>,
    pub(super) start: u64,
    pub(super) end: u64,
}

/// Pieces that are read one after the other.
pub(super) struct TextSplit {
    reader: Arc<FileReader>,
    pieces: Vec<Piece>,
    fields: Vec<Field>,
    schema: SchemaRef,
}

/// A decoder, and the values that the directories of the current file add.
struct Rows {
    decoder: Box<dyn Decoder>,
    partitions: Vec<(String, Option<String>)>,
    /// For each column: where its values come from.
    columns: Vec<Origin>,
    stats: SplitStats,
}

enum Origin {
    /// The decoder's next column.
    Data,
    /// The partition with that number.
    Directory(usize),
}

impl TextSplit {
    pub(super) fn new(reader: Arc<FileReader>, pieces: Vec<Piece>, fields: &[Field]) -> TextSplit {
        TextSplit { reader, pieces, fields: fields.to_vec(), schema: batch_schema(fields) }
    }

    fn rows_for(&self, partitions: Vec<(String, Option<String>)>, stats: SplitStats) -> Result<Rows, ConnectorError> {
        let directory = |f: &Field| partitions.iter().position(|(name, _)| name.eq_ignore_ascii_case(&f.name));
        let columns: Vec<Origin> =
            self.fields.iter().map(|f| directory(f).map_or(Origin::Data, Origin::Directory)).collect();
        let data: Vec<Field> = self.fields.iter().filter(|f| directory(f).is_none()).cloned().collect();
        Ok(Rows { decoder: self.reader.decoder(&data, &partitions)?, partitions, columns, stats })
    }

    /// Hands over the rows gathered.
    fn flush(&self, rows: &mut Rows, deliver: Deliver<'_>) -> Result<(), DynError> {
        let decoded = rows.decoder.take();
        rows.stats.bad_records += decoded.bad_records;
        if decoded.rows == 0 {
            return Ok(());
        }
        rows.stats.rows += decoded.rows as u64;
        let mut data = decoded.columns.into_iter();
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.fields.len());
        for (field, origin) in self.fields.iter().zip(&rows.columns) {
            columns.push(match origin {
                Origin::Data => data.next().expect("the decoder was made with the columns that come from data"),
                Origin::Directory(i) => {
                    let value = rows.partitions[*i].1.as_deref();
                    partitions::array(field, value, decoded.rows, self.reader.time_zone())?
                }
            });
        }
        deliver(batch(&self.schema, columns, decoded.rows))
    }

    /// Reads one piece.
    fn read_piece(&self, piece: &Piece, rows: &mut Rows, deliver: Deliver<'_>) -> Result<(), DynError> {
        let options = &self.reader.options;
        let file = &*piece.file;
        // The byte before shows whether a line begins at `start`.
        let mut at = piece.start.saturating_sub(1);
        let mut source = match open::open(file, at, !options.ignore_corrupt, options.max_decompressed) {
            Ok(source) => source,
            Err(e) if e.condition == "FAILED_READ_FILE.FILE_NOT_EXIST" && options.ignore_missing => return Ok(()),
            Err(e) if e.condition != "FAILED_READ_FILE.FILE_NOT_EXIST" && options.ignore_corrupt => return Ok(()),
            Err(e) => return Err(e.into()),
        };
        let limit = if open::is_compressed(&file.path) { u64::MAX } else { piece.end };
        let mut aligned = piece.start == 0;
        let mut rest: Vec<u8> = Vec::new();
        if aligned {
            rows.decoder.begin_file();
        }
        loop {
            let left = usize::try_from(limit.saturating_sub(at)).unwrap_or(usize::MAX);
            // The buffer doubles while a record goes on, up to the longest that is taken.
            let room = (rest.len() * 2).min(options.max_record.max(rest.len() + 1));
            let mut chunk = self.reader.pool.take(left.saturating_add(4096).min(CHUNK).max(room));
            chunk.push(&rest);
            let ended = match self.fill(&mut chunk, &mut source, file) {
                Ok(ended) => ended,
                Err(_) if options.ignore_corrupt => true,
                Err(error) => return Err(error.into()),
            };
            let read = chunk.filled().len();
            rows.stats.bytes += (read - rest.len()) as u64;
            let mut from = 0;
            if !aligned {
                match memchr::memchr(b'\n', chunk.filled()) {
                    Some(n) if at + n as u64 + 1 >= limit => return Ok(()),
                    Some(n) => from = n + 1,
                    None if ended => return Ok(()),
                    // A line longer than the chunk that begins before the piece: nothing of it is kept.
                    None => {
                        at += read as u64;
                        if at >= limit {
                            return Ok(());
                        }
                        continue;
                    }
                }
                aligned = true;
            } else if at == 0 && chunk.filled().starts_with(b"\xef\xbb\xbf") {
                from = 3;
            }
            let (to, last) = self.cut(chunk.filled(), at, limit, ended);
            if to <= from && !last {
                if read >= options.max_record {
                    return Err(self.too_long(file, at).into());
                }
                rest = chunk.filled()[from..].to_vec();
                at += from as u64;
                continue;
            }
            rest.clear();
            rest.extend_from_slice(&chunk.filled()[to..]);
            let bytes = chunk.share();
            self.decode(file, at, &bytes, from..to, rows, deliver)?;
            at += to as u64;
            if last {
                return Ok(());
            }
        }
    }

    /// Fills the chunk; returns whether the file ended.
    fn fill(&self, chunk: &mut Chunk, source: &mut dyn Read, file: &FileEntry) -> Result<bool, ConnectorError> {
        loop {
            let room = chunk.room();
            if room.is_empty() {
                return Ok(false);
            }
            match source.read(room) {
                Ok(0) => return Ok(true),
                Ok(n) => chunk.advance(n),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(open::read_error(&file.path, e)),
            }
        }
    }

    /// Where the whole records of the chunk end, and whether the piece ends there. The chunk stands at `at` in the file.
    fn cut(&self, chunk: &[u8], at: u64, limit: u64, ended: bool) -> (usize, bool) {
        if self.reader.whole_files {
            return if ended { (chunk.len(), true) } else { (0, false) };
        }
        // The line that reaches the last byte of the piece is the last one.
        if let Some(last_byte) = limit.checked_sub(at + 1).and_then(|n| usize::try_from(n).ok())
            && last_byte < chunk.len()
            && let Some(n) = memchr::memchr(b'\n', &chunk[last_byte..])
        {
            return (last_byte + n + 1, true);
        }
        match memchr::memrchr(b'\n', chunk) {
            _ if ended => (chunk.len(), true),
            Some(n) => (n + 1, false),
            None => (0, false),
        }
    }

    fn decode(
        &self,
        file: &FileEntry,
        at: u64,
        bytes: &Buffer,
        range: std::ops::Range<usize>,
        rows: &mut Rows,
        deliver: Deliver<'_>,
    ) -> Result<(), DynError> {
        let mut from = range.start;
        while from < range.end {
            from = rows.decoder.decode(bytes, from..range.end).map_err(|bad| {
                let start = at + bad.start as u64;
                let line = open::line_number(file, start).map_or(String::new(), |n| format!(" line {n}"));
                let record = record_text(&bytes[bad.start.min(range.end)..range.end]);
                let message = format!("`{}`{line}: {}: {record}", file.path.display(), bad.reason);
                ConnectorError::new("MALFORMED_RECORD_IN_PARSING", Domain::User, message)
                    .with_help("mode PERMISSIVE turns what cannot be read into NULL; DROPMALFORMED leaves it out")
            })?;
            if rows.decoder.is_full() {
                self.flush(rows, deliver)?;
            }
        }
        Ok(())
    }

    fn too_long(&self, file: &FileEntry, at: u64) -> ConnectorError {
        let most = self.reader.options.max_record;
        let message = format!("`{}`: the record at byte {at} is longer than {most} bytes", file.path.display());
        ConnectorError::new("FAILED_READ_FILE.RECORD_TOO_LONG", Domain::User, message)
            .with_help("is it a file of lines? If its records are that long, raise `maxRecordBytes`")
    }
}

/// The record that begins here, as far as it can be shown.
fn record_text(bytes: &[u8]) -> String {
    const SHOWN: usize = 200;
    let end = memchr::memchr(b'\n', bytes).unwrap_or(bytes.len());
    let mut shown = String::from_utf8_lossy(&bytes[..end.min(SHOWN)]).trim().to_owned();
    if end > SHOWN {
        shown.push_str(" ...");
    }
    shown
}

impl Split for TextSplit {
    fn read(&mut self, deliver: Deliver<'_>) -> Result<SplitStats, DynError> {
        let mut rows: Option<Rows> = None;
        for piece in &self.pieces {
            let partitions = self.reader.partition_values(&piece.file.path);
            let mut current = match rows.take() {
                Some(current) if current.partitions == partitions => current,
                Some(mut other) => {
                    self.flush(&mut other, deliver)?;
                    self.rows_for(partitions, other.stats)?
                }
                None => self.rows_for(partitions, SplitStats::default())?,
            };
            self.read_piece(piece, &mut current, deliver)?;
            rows = Some(current);
        }
        let Some(mut rows) = rows else { return Ok(SplitStats::default()) };
        self.flush(&mut rows, deliver)?;
        Ok(rows.stats)
    }
}
