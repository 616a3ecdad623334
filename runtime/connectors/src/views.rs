//! Strings under construction as Arrow views: 16 bytes each, which hold a short text whole and otherwise point into the
//! bytes that were read, without a copy.
//!
//! The buffers that views point into are known only when a batch ends: number 0 is the decoder's heap (texts that had
//! to be rewritten), numbers from 1 on are the buffers read, in order.

#![allow(unsafe_code, reason = "the arrays are made of views that are known to be right, without checking each again")]

use std::sync::Arc;

use arrow::array::builder::NullBufferBuilder;
use arrow::array::{BinaryViewArray, StringViewArray};
use arrow::buffer::{Buffer, ScalarBuffer};

use crate::columns::MAX_BATCH_ROWS;

/// Longest text that a view holds itself.
const INLINE: usize = 12;

/// Views of one column.
///
/// # Invariant
/// Each view is inline, or its buffer number, offset and length were given to [`Views::push`] together with the text
/// that stands there; for a string column that text was `&str`.
#[derive(Debug)]
pub(crate) struct Views {
    views: Vec<u128>,
    nulls: NullBufferBuilder,
}

impl Views {
    pub(crate) fn new() -> Views {
        Views { views: Vec::with_capacity(MAX_BATCH_ROWS), nulls: NullBufferBuilder::new(MAX_BATCH_ROWS) }
    }

    pub(crate) fn len(&self) -> usize {
        self.views.len()
    }

    pub(crate) fn push_null(&mut self) {
        self.views.push(0);
        self.nulls.append_null();
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.views.truncate(len);
        self.nulls.truncate(len);
    }

    /// Adds `data[at..at + len]`, where `data` are the bytes of buffer number `buffer`.
    #[inline(always)]
    pub(crate) fn push(&mut self, data: &[u8], at: usize, len: usize, buffer: u32) {
        self.views.push(make_view(data, at, len, buffer));
        self.nulls.append_non_null();
    }

    pub(crate) fn finish_string(&mut self, buffers: &Arc<[Buffer]>) -> StringViewArray {
        let views = self.take();
        // SAFETY: by the invariant each view is inline or within its buffer, its prefix was taken from there, and the
        // decoders hand only validated UTF-8 to string columns; buffers are immutable while anyone holds them.
        unsafe { StringViewArray::new_unchecked(views, buffers.clone(), self.nulls.finish()) }
    }

    pub(crate) fn finish_binary(&mut self, buffers: &Arc<[Buffer]>) -> BinaryViewArray {
        let views = self.take();
        // SAFETY: by the invariant each view is inline or within its buffer, and its prefix was taken from there.
        unsafe { BinaryViewArray::new_unchecked(views, buffers.clone(), self.nulls.finish()) }
    }

    fn take(&mut self) -> ScalarBuffer<u128> {
        std::mem::replace(&mut self.views, Vec::with_capacity(MAX_BATCH_ROWS)).into()
    }
}

/// The view of `data[at..at + len]`.
#[inline(always)]
fn make_view(data: &[u8], at: usize, len: usize, buffer: u32) -> u128 {
    if len <= INLINE {
        if let Some(bytes) = data[at..].first_chunk::<16>() {
            debug_assert!(at + len <= data.len(), "the text ends within the buffer");
            let keep = (1u128 << (len * 8)) - 1;
            return ((u128::from_le_bytes(*bytes) & keep) << 32) | len as u128;
        }
        let mut view = [0u8; 16];
        view[0] = len as u8;
        view[4..4 + len].copy_from_slice(&data[at..at + len]);
        return u128::from_le_bytes(view);
    }
    let text = &data[at..at + len];
    let prefix = u32::from_le_bytes([text[0], text[1], text[2], text[3]]);
    len as u128 | u128::from(prefix) << 32 | u128::from(buffer) << 64 | (at as u128) << 96
}
