//! Text: each line, or each whole file, is the value of one column.

use std::ops::Range;

use arrow::buffer::Buffer;
use ssql_ir::Field;

use crate::columns::Column;
use crate::decode::{BadRecord, Decoded, Decoder};

/// Decodes lines into the column `value`.
#[derive(Debug)]
pub struct TextDecoder {
    columns: Vec<Column>,
    whole: bool,
    heap: Vec<u8>,
    buffers: Vec<Buffer>,
    rows: usize,
}

impl TextDecoder {
    /// A decoder of `value`, if that column is asked for; `whole` makes a range one value.
    pub fn new(fields: &[Field], whole: bool) -> TextDecoder {
        let columns = fields.iter().map(|f| Column::new(&f.data_type)).collect();
        TextDecoder { columns, whole, heap: Vec::new(), buffers: Vec::new(), rows: 0 }
    }

    fn push(&mut self, data: &[u8], at: usize, end: usize, valid: bool) {
        let buffer = self.buffers.len() as u32;
        self.rows += 1;
        for column in &mut self.columns {
            match column {
                Column::String(c) if valid || std::str::from_utf8(&data[at..end]).is_ok() => {
                    c.push(data, at, end - at, buffer);
                }
                Column::String(c) => {
                    let from = self.heap.len();
                    self.heap.extend_from_slice(String::from_utf8_lossy(&data[at..end]).as_bytes());
                    c.push(&self.heap, from, self.heap.len() - from, 0);
                }
                other => other.push_null(),
            }
        }
    }
}

impl Decoder for TextDecoder {
    fn decode(&mut self, bytes: &Buffer, range: Range<usize>) -> Result<usize, BadRecord> {
        if !self.buffers.last().is_some_and(|b| b.as_ptr() == bytes.as_ptr() && b.len() == bytes.len()) {
            self.buffers.push(bytes.clone());
        }
        let data = bytes.as_slice();
        if self.whole {
            self.push(data, range.start, range.end, false);
            return Ok(range.end);
        }
        let valid = data[range.clone()].is_ascii();
        let mut at = range.start;
        while at < range.end && !self.is_full() {
            let end = memchr::memchr2(b'\n', b'\r', &data[at..range.end]).map_or(range.end, |n| at + n);
            self.push(data, at, end, valid);
            at = end + 1;
            if end < range.end && data[end] == b'\r' && data.get(end + 1) == Some(&b'\n') {
                at += 1;
            }
        }
        Ok(at.min(range.end))
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
            bad_records: 0,
        }
    }
}
