//! The layout of aggregates' state in state rows, shared with generated code.
//!
//! A state row is a row of 8-byte words, little endian. Each aggregate owns consecutive words from its `offset` on; the
//! words of the common aggregates are these, and generated code may update them in place:
//!
//! | aggregate | words |
//! |---|---|
//! | `count` | `[n i64]` |
//! | `sum` of integers and intervals | `[sum i64, seen i64]`, `seen` counts the values that are not NULL |
//! | `sum` of FLOAT, DOUBLE | `[sum f64, seen i64]` |
//! | `sum` of DECIMAL | `[low, high, seen i64]`, the sum as a 128-bit integer |
//! | `avg` of integers, FLOAT, DOUBLE | `[sum f64, n i64]` |
//! | `avg` of DECIMAL | as `sum` of DECIMAL |
//! | `avg` of intervals | as `sum` of intervals |
//! | `min`, `max` of BOOLEAN, integers, DATE, timestamps, intervals | `[value i64, seen i64]` |
//! | `min`, `max` of FLOAT, DOUBLE | `[value f64, seen i64]`, NaN largest, -0.0 = 0.0 |
//! | `min`, `max` of DECIMAL | `[low, high, seen i64]` |
//! | `min`, `max` of all else | `[object]` |
//!
//! `try_sum` and `try_avg` set `seen` to [`OVERFLOWED`] once a sum does not fit, and stay there.

/// A part of an aggregate's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotType {
    /// One word, an integer.
    I64,
    /// One word, a double.
    F64,
    /// Two words, a 128-bit integer, low word first.
    I128,
    /// Two words, a 16-byte string view into the table's heap.
    View,
    /// One word, a handle into [`super::Objects`]; 0 is none.
    Object,
}

impl SlotType {
    /// Size in bytes.
    pub const fn size(self) -> usize {
        match self {
            SlotType::I64 | SlotType::F64 | SlotType::Object => 8,
            SlotType::I128 | SlotType::View => 16,
        }
    }
}

/// Size in bytes of a state of these slots.
pub fn state_size(slots: &[SlotType]) -> usize {
    slots.iter().map(|s| s.size()).sum()
}

/// Word of `count`'s number.
pub const COUNT: usize = 0;
/// Word of a one-word sum or extreme value.
pub const VALUE: usize = 0;
/// Word of the number of values seen, beside a one-word value.
pub const SEEN: usize = 1;
/// Word of the number of values seen, beside a 128-bit value.
pub const SEEN_I128: usize = 2;
/// Value of `seen` in `try_sum` and `try_avg` after an overflow.
pub const OVERFLOWED: i64 = -1;
