//! Comparison of strings as 16-byte views: lengths and first bytes first, all bytes only where those do not tell.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use ssql_abi::StringView;
use ssql_abi::keys::INLINE_BYTES;

use super::{Emitter, input};
use crate::node::{CompareOp, Text};

/// A string operand of the row in hand.
#[derive(Debug, Clone)]
pub(crate) struct TextVal {
    /// The view's words; zero (the empty string) where it is NULL.
    pub head: Value,
    pub tail: Value,
    pub null: Option<Value>,
    place: Place,
}

#[derive(Debug, Clone)]
enum Place {
    /// Address of the view, and of the column's buffers.
    Column {
        view: Value,
        buffers: Value,
    },
    Literal(String),
}

impl Emitter<'_, '_> {
    pub(super) fn text(&mut self, text: &Text) -> TextVal {
        match text {
            Text::Column(c) => self.text_column(*c),
            Text::Literal(s) => {
                let view = StringView::new(s.as_bytes(), 0);
                TextVal {
                    head: self.int(types::I64, view.head as i64),
                    tail: self.int(types::I64, view.tail as i64),
                    null: None,
                    place: Place::Literal(s.clone()),
                }
            }
        }
    }

    pub(crate) fn text_column(&mut self, c: u32) -> TextVal {
        let column = self.column(c);
        let null = self.null_of(c);
        let row = self.row();
        let view = self.element(column.values, row, 16);
        let (mut head, mut tail) = (self.load(types::I64, input(), view, 0), self.load(types::I64, input(), view, 8));
        if let Some(null) = null {
            // What stands under a NULL may point anywhere.
            let zero = self.int(types::I64, 0);
            head = self.select(null, zero, head);
            tail = self.select(null, zero, tail);
        }
        TextVal { head, tail, null, place: Place::Column { view, buffers: column.buffers } }
    }

    fn length(&mut self, text: &TextVal) -> Value {
        let low = self.int(types::I64, 0xffff_ffff);
        self.and(text.head, low)
    }

    /// Whether the string is not inline.
    pub(crate) fn is_long(&mut self, text: &TextVal) -> Value {
        let (length, inline) = (self.length(text), self.int(types::I64, INLINE_BYTES as i64));
        self.icmp(IntCC::UnsignedGreaterThan, length, inline)
    }

    /// Address of a long string's bytes in its buffer.
    fn long_address(&mut self, tail: Value, buffers: Value) -> Value {
        let (low, half) = (self.int(types::I64, 0xffff_ffff), self.int(types::I64, 32));
        let number = self.and(tail, low);
        let buffer = self.element(buffers, number, 8);
        // Not movable: a short string has no buffer to look at.
        let buffer = self.load(types::I64, super::shared(), buffer, 0);
        let offset = self.b.ins().ushr(tail, half);
        self.add(buffer, offset)
    }

    /// Address of all bytes. `long`: known to be one that is not inline.
    fn address(&mut self, text: &TextVal, long: bool) -> Value {
        match &text.place {
            Place::Literal(s) => {
                let global = self.imports.literals[s];
                self.b.ins().symbol_value(types::I64, global)
            }
            &Place::Column { buffers, .. } if long => self.long_address(text.tail, buffers),
            &Place::Column { view, buffers } => {
                let four = self.int(types::I64, 4);
                let inline = self.add(view, four);
                let (far, done) = (self.block(&[]), self.block(&[types::I64]));
                let is_long = self.is_long(text);
                self.b.ins().brif(is_long, far, &[], done, &[inline.into()]);
                self.enter(far);
                let address = self.long_address(text.tail, buffers);
                self.jump(done, &[address]);
                self.enter(done);
                self.b.block_params(done)[0]
            }
        }
    }

    fn merge_value(&mut self, merge: cranelift_codegen::ir::Block) -> Value {
        self.enter(merge);
        self.b.block_params(merge)[0]
    }

    pub(super) fn compare_text(&mut self, op: CompareOp, a: &TextVal, b: &TextVal) -> Value {
        match op {
            CompareOp::Eq => self.text_equal(a, b),
            CompareOp::Ne => {
                let same = self.text_equal(a, b);
                self.not(same)
            }
            CompareOp::Lt | CompareOp::Le | CompareOp::Gt | CompareOp::Ge => {
                let order = self.text_order(a, b);
                let zero = self.int(types::I32, 0);
                let cc = match op {
                    CompareOp::Lt => IntCC::SignedLessThan,
                    CompareOp::Le => IntCC::SignedLessThanOrEqual,
                    CompareOp::Gt => IntCC::SignedGreaterThan,
                    _ => IntCC::SignedGreaterThanOrEqual,
                };
                self.icmp(cc, order, zero)
            }
        }
    }

    fn text_equal(&mut self, a: &TextVal, b: &TextVal) -> Value {
        let heads = self.icmp(IntCC::Equal, a.head, b.head);
        let tails = self.icmp(IntCC::Equal, a.tail, b.tail);
        let inline = self.and(heads, tails);
        let short = |t: &TextVal| matches!(&t.place, Place::Literal(s) if s.len() <= INLINE_BYTES);
        if short(a) || short(b) {
            return inline;
        }
        let far = self.block(&[]);
        let merge = self.block(&[types::I8]);
        let is_long = self.is_long(a);
        let look = self.and(heads, is_long);
        self.b.ins().brif(look, far, &[], merge, &[inline.into()]);
        self.enter(far);
        let (pa, pb) = (self.address(a, true), self.address(b, true));
        let length = self.length(a);
        let same = self.bytes_equal(pa, pb, length);
        self.jump(merge, &[same]);
        self.merge_value(merge)
    }

    /// 1 if `length` bytes at both places are the same.
    pub(crate) fn bytes_equal(&mut self, a: Value, b: Value, length: Value) -> Value {
        let function = self.imports.bytes_equal.expect("imported in every kernel");
        let call = self.b.ins().call(function, &[a, b, length]);
        let same = self.b.inst_results(call)[0];
        self.b.ins().ireduce(types::I8, same)
    }

    /// 1 if the long string has the bytes at `place`.
    pub(crate) fn long_bytes_equal(&mut self, text: &TextVal, place: Value) -> Value {
        let address = self.address(text, true);
        let length = self.length(text);
        self.bytes_equal(address, place, length)
    }

    /// The prefix as a number that sorts as its bytes do.
    fn prefix(&mut self, text: &TextVal) -> Value {
        let half = self.int(types::I64, 32);
        let prefix = self.b.ins().ushr(text.head, half);
        let prefix = self.b.ins().ireduce(types::I32, prefix);
        self.b.ins().bswap(prefix)
    }

    /// Negative, 0 or positive, as an i32.
    fn text_order(&mut self, a: &TextVal, b: &TextVal) -> Value {
        let (prefix_a, prefix_b) = (self.prefix(a), self.prefix(b));
        let same = self.icmp(IntCC::Equal, prefix_a, prefix_b);
        let below = self.icmp(IntCC::UnsignedLessThan, prefix_a, prefix_b);
        let (less, more) = (self.int(types::I32, -1), self.int(types::I32, 1));
        let decided = self.select(below, less, more);
        let (far, merge) = (self.block(&[]), self.block(&[types::I32]));
        self.b.ins().brif(same, far, &[], merge, &[decided.into()]);
        self.enter(far);
        let (pa, pb) = (self.address(a, false), self.address(b, false));
        let (la, lb) = (self.length(a), self.length(b));
        let function = self.imports.bytes_compare.expect("imported in every kernel");
        let call = self.b.ins().call(function, &[pa, la, pb, lb]);
        let order = self.b.inst_results(call)[0];
        self.jump(merge, &[order]);
        self.merge_value(merge)
    }

    pub(super) fn starts_with(&mut self, a: &TextVal, prefix: &str) -> Value {
        let length = self.length(a);
        let wanted = self.int(types::I64, prefix.len() as i64);
        let enough = self.icmp(IntCC::UnsignedGreaterThanOrEqual, length, wanted);
        // The first four bytes are in the head.
        let near = &prefix.as_bytes()[..prefix.len().min(4)];
        let bits = StringView::new(near, 0).head >> 32 << 32;
        let mask = if near.len() == 4 { u64::MAX << 32 } else { ((1u64 << (8 * near.len())) - 1) << 32 };
        let (bits, mask) = (self.int(types::I64, bits as i64), self.int(types::I64, mask as i64));
        let head = self.and(a.head, mask);
        let same = self.icmp(IntCC::Equal, head, bits);
        let near_holds = self.and(enough, same);
        if prefix.len() <= 4 {
            return near_holds;
        }
        let (far, merge) = (self.block(&[]), self.block(&[types::I8]));
        self.b.ins().brif(near_holds, far, &[], merge, &[near_holds.into()]);
        self.enter(far);
        let address = self.address(a, false);
        let literal = self.imports.literals[prefix];
        let literal = self.b.ins().symbol_value(types::I64, literal);
        let same = self.bytes_equal(address, literal, wanted);
        self.jump(merge, &[same]);
        self.merge_value(merge)
    }
}
