//! State rows of aggregates that are addressed by number and given back one by one.

use std::sync::Arc;

use ssql_stdlib::aggregate::{Aggregate, Objects, StateRows, state_size};

/// Rows of aggregate state. A row given back is used again.
#[derive(Debug)]
pub struct StateSlab {
    aggs: Vec<Arc<dyn Aggregate>>,
    /// Offset of each aggregate's words in a row.
    offsets: Vec<usize>,
    row_size: usize,
    bytes: Vec<u8>,
    /// Rows that were ever taken.
    len: u32,
    free: Vec<u32>,
    objects: Objects,
}

impl StateSlab {
    /// No rows yet, for states of these aggregates.
    pub fn new(aggs: &[Arc<dyn Aggregate>]) -> StateSlab {
        let mut offsets = Vec::with_capacity(aggs.len());
        let mut row_size = 0;
        for agg in aggs {
            offsets.push(row_size);
            row_size += state_size(agg.slots());
        }
        StateSlab {
            aggs: aggs.to_vec(),
            offsets,
            row_size,
            bytes: Vec::new(),
            len: 0,
            free: Vec::new(),
            objects: Objects::default(),
        }
    }

    /// A row in the empty state.
    pub fn take(&mut self) -> u32 {
        if let Some(row) = self.free.pop() {
            return row;
        }
        let row = self.len;
        self.grow(1);
        row
    }

    /// That many more rows in the empty state, behind all rows so far.
    pub fn grow(&mut self, rows: u32) {
        self.len += rows;
        self.bytes.resize(self.len as usize * self.row_size, 0);
    }

    /// Gives a row back.
    pub fn give_back(&mut self, row: u32) {
        self.reset(row);
        self.free.push(row);
    }

    /// Puts a row into the empty state.
    pub fn reset(&mut self, row: u32) {
        for i in 0..self.aggs.len() {
            let agg = Arc::clone(&self.aggs[i]);
            agg.release(&mut self.state(i), row);
        }
        let start = row as usize * self.row_size;
        self.bytes[start..start + self.row_size].fill(0);
    }

    /// The rows as aggregate `agg` sees them.
    pub fn state(&mut self, agg: usize) -> StateRows<'_> {
        StateRows {
            bytes: &mut self.bytes,
            row_size: self.row_size,
            offset: self.offsets[agg],
            objects: &mut self.objects,
        }
    }

    /// Bytes of memory in use, roughly.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.free.capacity() * size_of::<u32>() + self.objects.heap_bytes()
    }
}
