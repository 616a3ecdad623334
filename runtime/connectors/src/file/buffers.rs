//! Buffers that files are read into. String columns go on pointing into them after reading, so each is given back to the
//! pool only when the last batch that uses it is gone.
//!
//! Files are read, not mapped: a mapped file that another process cuts short kills the process that reads it, and one
//! that is changed would change strings that were already checked.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use arrow::buffer::Buffer;
use bytes::Bytes;

/// Size of a pooled buffer: what is read stays in the second-level cache until it is decoded.
pub(super) const CHUNK: usize = 1 << 20;
/// Buffers kept for the next use.
const KEPT: usize = 64;

/// Buffers that are free.
#[derive(Debug, Default)]
pub(super) struct BufferPool {
    free: Mutex<Vec<Vec<u8>>>,
}

/// A buffer being filled, or owned by the batches made of it.
#[derive(Debug)]
pub(super) struct Chunk {
    /// Always initialised to its whole length.
    bytes: Vec<u8>,
    filled: usize,
    home: Weak<BufferPool>,
}

impl BufferPool {
    /// A buffer of at least `size` bytes; of [`CHUNK`] bytes if that is enough and not far too much.
    pub(super) fn take(self: &Arc<BufferPool>, size: usize) -> Chunk {
        let pooled = (CHUNK / 4..=CHUNK).contains(&size);
        let reused = pooled.then(|| self.free.lock().unwrap_or_else(PoisonError::into_inner).pop()).flatten();
        let bytes = reused.unwrap_or_else(|| vec![0; if pooled { CHUNK } else { size }]);
        Chunk { bytes, filled: 0, home: if pooled { Arc::downgrade(self) } else { Weak::new() } }
    }
}

impl Chunk {
    /// What was read.
    pub(super) fn filled(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }

    /// Where to read to.
    pub(super) fn room(&mut self) -> &mut [u8] {
        &mut self.bytes[self.filled..]
    }

    /// So many bytes were read into the room.
    pub(super) fn advance(&mut self, bytes: usize) {
        self.filled += bytes;
        debug_assert!(self.filled <= self.bytes.len(), "no more is read than there is room");
    }

    /// Appends bytes that fit the room.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.room()[..bytes.len()].copy_from_slice(bytes);
        self.advance(bytes.len());
    }

    /// The bytes read, to be shared.
    pub(super) fn share(self) -> Buffer {
        Buffer::from(Bytes::from_owner(self))
    }
}

impl AsRef<[u8]> for Chunk {
    fn as_ref(&self) -> &[u8] {
        self.filled()
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        if let Some(pool) = self.home.upgrade() {
            let mut free = pool.free.lock().unwrap_or_else(PoisonError::into_inner);
            if free.len() < KEPT {
                free.push(std::mem::take(&mut self.bytes));
            }
        }
    }
}
