//! Arithmetic, comparison and conversion of numbers with Spark's ANSI checks.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, Type, Value, types};
use ssql_abi::Status;

use super::{Emitter, Val};
use crate::node::{BinaryOp, CastKind, CompareOp, Site, Ty, UnaryOp};

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;

impl Emitter<'_, '_> {
    pub(super) fn negate(&mut self, op: UnaryOp, a: Val, ty: Ty, site: Site) -> Val {
        if ty.is_float() {
            let v = if op == UnaryOp::Abs { self.b.ins().fabs(a.v) } else { self.b.ins().fneg(a.v) };
            return Val { v, null: a.null };
        }
        // The smallest value has no opposite, whatever the width.
        let least = self.int(ty.clif(), ty.int_range().0);
        let failed = self.icmp(IntCC::Equal, a.v, least);
        self.guard(failed, a.null, site, Status::ArithmeticOverflow);
        let opposite = self.b.ins().ineg(a.v);
        let v = if op == UnaryOp::Abs {
            let zero = self.int(ty.clif(), 0);
            let below = self.icmp(IntCC::SignedLessThan, a.v, zero);
            self.select(below, opposite, a.v)
        } else {
            opposite
        };
        Val { v, null: a.null }
    }

    pub(super) fn binary(&mut self, op: BinaryOp, a: Val, b: Val, ty: Ty, site: Site) -> Val {
        let null = self.either(a.null, b.null);
        let v = match op {
            BinaryOp::BitAnd => self.and(a.v, b.v),
            BinaryOp::BitOr => self.or(a.v, b.v),
            BinaryOp::BitXor => self.b.ins().bxor(a.v, b.v),
            BinaryOp::Add if ty.is_float() => self.b.ins().fadd(a.v, b.v),
            BinaryOp::Sub if ty.is_float() => self.b.ins().fsub(a.v, b.v),
            BinaryOp::Mul if ty.is_float() => self.b.ins().fmul(a.v, b.v),
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul => {
                let (v, failed) = match op {
                    BinaryOp::Add => self.b.ins().sadd_overflow(a.v, b.v),
                    BinaryOp::Sub => self.b.ins().ssub_overflow(a.v, b.v),
                    _ => self.b.ins().smul_overflow(a.v, b.v),
                };
                self.guard(failed, null, site, ty.overflow());
                v
            }
            BinaryOp::Divide => {
                let zero = self.zero(ty);
                let failed = self.fcmp(FloatCC::Equal, b.v, zero);
                self.guard(failed, null, site, Status::DivideByZero);
                self.b.ins().fdiv(a.v, b.v)
            }
            BinaryOp::IntDivide | BinaryOp::Remainder => self.int_divide(op, a.v, b.v, null, ty, site),
        };
        Val { v, null }
    }

    fn int_divide(&mut self, op: BinaryOp, a: Value, b: Value, null: Option<Value>, ty: Ty, site: Site) -> Value {
        let (zero, one) = (self.int(ty.clif(), 0), self.int(ty.clif(), 1));
        let by_zero = self.icmp(IntCC::Equal, b, zero);
        let remainder = op == BinaryOp::Remainder;
        self.guard(by_zero, null, site, if remainder { Status::RemainderByZero } else { Status::DivideByZero });
        // The smallest value divided by -1 overflows; its remainder is 0, as of anything by -1 or 1.
        let (least, minus) = (self.int(ty.clif(), ty.int_range().0), self.int(ty.clif(), -1));
        let by_minus = self.icmp(IntCC::Equal, b, minus);
        let mut replace = by_minus;
        if !remainder {
            let is_least = self.icmp(IntCC::Equal, a, least);
            replace = self.and(by_minus, is_least);
            self.guard(replace, null, site, Status::ArithmeticOverflow);
        }
        if !remainder && null.is_none() && !self.conditional() {
            return self.b.ins().sdiv(a, b);
        }
        // The machine traps on both, also in a row that is NULL or not evaluated: divide by 1 there.
        let trapping = self.or(by_zero, replace);
        let b = self.select(trapping, one, b);
        if remainder { self.remainder(a, b, ty) } else { self.b.ins().sdiv(a, b) }
    }

    fn remainder(&mut self, a: Value, b: Value, ty: Ty) -> Value {
        if ty.clif().bits() >= 32 {
            return self.b.ins().srem(a, b);
        }
        let (a, b) = (self.b.ins().sextend(types::I32, a), self.b.ins().sextend(types::I32, b));
        let v = self.b.ins().srem(a, b);
        self.b.ins().ireduce(ty.clif(), v)
    }

    /// Spark's order of floats: NaN equals NaN and is above all else; -0.0 equals 0.0.
    pub(crate) fn compare(&mut self, op: CompareOp, a: Value, b: Value, ty: Ty) -> Value {
        if !ty.is_float() {
            let cc = match op {
                CompareOp::Eq => IntCC::Equal,
                CompareOp::Ne => IntCC::NotEqual,
                CompareOp::Lt => IntCC::SignedLessThan,
                CompareOp::Le => IntCC::SignedLessThanOrEqual,
                CompareOp::Gt => IntCC::SignedGreaterThan,
                CompareOp::Ge => IntCC::SignedGreaterThanOrEqual,
            };
            return self.icmp(cc, a, b);
        }
        match op {
            CompareOp::Eq => self.float_equal(a, b),
            CompareOp::Ne => {
                let same = self.float_equal(a, b);
                self.not(same)
            }
            CompareOp::Lt => self.float_below(a, b),
            CompareOp::Gt => self.float_below(b, a),
            CompareOp::Le => {
                let above = self.float_below(b, a);
                self.not(above)
            }
            CompareOp::Ge => {
                let below = self.float_below(a, b);
                self.not(below)
            }
        }
    }

    fn float_equal(&mut self, a: Value, b: Value) -> Value {
        let same = self.fcmp(FloatCC::Equal, a, b);
        let (a, b) = (self.fcmp(FloatCC::Unordered, a, a), self.fcmp(FloatCC::Unordered, b, b));
        let both_nan = self.and(a, b);
        self.or(same, both_nan)
    }

    fn float_below(&mut self, a: Value, b: Value) -> Value {
        let below = self.fcmp(FloatCC::LessThan, a, b);
        let (a, b) = (self.fcmp(FloatCC::Ordered, a, a), self.fcmp(FloatCC::Unordered, b, b));
        let number_below_nan = self.and(a, b);
        self.or(below, number_below_nan)
    }

    // ---- casts ----

    pub(super) fn cast(&mut self, kind: CastKind, a: Val, from: Ty, to: Ty, tries: bool, site: Site) -> Val {
        match kind {
            CastKind::Number => self.cast_number(a, from, to, tries, site),
            CastKind::MicrosToSeconds => {
                let seconds = Val { v: self.floor_div(a.v, MICROS_PER_SECOND), null: a.null };
                self.cast_number(seconds, Ty::I64, to, tries, site)
            }
            CastKind::MicrosToFloat => {
                let micros = self.b.ins().fcvt_from_sint(types::F64, a.v);
                let per_second = self.b.ins().f64const(MICROS_PER_SECOND as f64);
                let seconds = self.b.ins().fdiv(micros, per_second);
                let v = if to == Ty::F32 { self.b.ins().fdemote(types::F32, seconds) } else { seconds };
                Val { v, null: a.null }
            }
            CastKind::SecondsToMicros => {
                let seconds = self.widen(a.v, from, types::I64);
                let per_second = self.int(types::I64, MICROS_PER_SECOND);
                let (micros, over) = self.b.ins().smul_overflow(seconds, per_second);
                let (zero, most, least) =
                    (self.int(types::I64, 0), self.int(types::I64, i64::MAX), self.int(types::I64, i64::MIN));
                let below = self.icmp(IntCC::SignedLessThan, seconds, zero);
                let end = self.select(below, least, most);
                Val { v: self.select(over, end, micros), null: a.null }
            }
            CastKind::MicrosToDays => {
                let days = self.floor_div(a.v, MICROS_PER_DAY);
                Val { v: self.b.ins().ireduce(types::I32, days), null: a.null }
            }
        }
    }

    fn cast_number(&mut self, a: Val, from: Ty, to: Ty, tries: bool, site: Site) -> Val {
        if to == Ty::Bool {
            // NaN is not zero.
            let zero = self.zero(from);
            let v = if from.is_float() {
                self.fcmp(FloatCC::NotEqual, a.v, zero)
            } else {
                self.icmp(IntCC::NotEqual, a.v, zero)
            };
            return self.flag(v, a.null);
        }
        let (v, fits) = match (from.is_float(), to.is_float()) {
            (true, true) => {
                let v = match (from, to) {
                    (Ty::F32, Ty::F64) => self.b.ins().fpromote(types::F64, a.v),
                    (Ty::F64, Ty::F32) => self.b.ins().fdemote(types::F32, a.v),
                    _ => a.v,
                };
                (v, None)
            }
            (false, true) => {
                let wide = if from.width() < 4 { self.widen(a.v, from, types::I32) } else { a.v };
                (self.b.ins().fcvt_from_sint(to.clif(), wide), None)
            }
            (true, false) => {
                let (v, fits) = self.float_to_int(a.v, from, to);
                (v, Some(fits))
            }
            (false, false) if from.width() <= to.width() => (self.widen(a.v, from, to.clif()), None),
            (false, false) => {
                let v = self.b.ins().ireduce(to.clif(), a.v);
                let back = self.b.ins().sextend(from.clif(), v);
                (v, Some(self.icmp(IntCC::Equal, back, a.v)))
            }
        };
        let Some(fits) = fits else { return Val { v, null: a.null } };
        let misfit = self.not(fits);
        if tries {
            let null = self.either(a.null, Some(misfit));
            return Val { v, null };
        }
        self.guard(misfit, a.null, site, Status::CastOverflow);
        Val { v, null: a.null }
    }

    /// The value truncated toward zero, and whether that is in the range of `to`. As in Spark, the limits are compared
    /// as DOUBLEs: 2^63 passes for the largest BIGINT, and becomes it.
    fn float_to_int(&mut self, a: Value, from: Ty, to: Ty) -> (Value, Value) {
        let a = if from == Ty::F32 { self.b.ins().fpromote(types::F64, a) } else { a };
        let (least, most) = to.int_range();
        let (low, high, above, below) = if to == Ty::I64 {
            (least as f64, most as f64, FloatCC::GreaterThanOrEqual, FloatCC::LessThanOrEqual)
        } else {
            // floor(a) <= most is a < most + 1, and ceil(a) >= least is a > least - 1.
            (least as f64 - 1.0, most as f64 + 1.0, FloatCC::GreaterThan, FloatCC::LessThan)
        };
        let (low, high) = (self.b.ins().f64const(low), self.b.ins().f64const(high));
        let (above, below) = (self.fcmp(above, a, low), self.fcmp(below, a, high));
        let fits = self.and(above, below);
        let wide = if to == Ty::I64 { types::I64 } else { types::I32 };
        let v = self.b.ins().fcvt_to_sint_sat(wide, a);
        let v = if to.clif() == wide { v } else { self.b.ins().ireduce(to.clif(), v) };
        (v, fits)
    }

    /// An integer or flag in a wider type.
    pub(crate) fn widen(&mut self, v: Value, from: Ty, to: Type) -> Value {
        match from {
            _ if from.clif() == to => v,
            Ty::Bool => self.b.ins().uextend(to, v),
            _ => self.b.ins().sextend(to, v),
        }
    }

    /// Division by a positive constant, rounded toward the past.
    fn floor_div(&mut self, a: Value, by: i64) -> Value {
        let rest = self.floor_rem(a, by);
        // `a - rest` could pass the smallest value; the quotient of the truncating division cannot.
        let by = self.int(types::I64, by);
        let quotient = self.b.ins().sdiv(a, by);
        let truncated = self.b.ins().srem(a, by);
        let moved = self.icmp(IntCC::NotEqual, truncated, rest);
        let moved = self.b.ins().uextend(types::I64, moved);
        self.b.ins().isub(quotient, moved)
    }

    /// The remainder, never negative, of a division by a positive constant.
    fn floor_rem(&mut self, a: Value, by: i64) -> Value {
        let (by, zero) = (self.int(types::I64, by), self.int(types::I64, 0));
        let rest = self.b.ins().srem(a, by);
        let moved = self.add(rest, by);
        let below = self.icmp(IntCC::SignedLessThan, rest, zero);
        self.select(below, moved, rest)
    }

    /// Start of the window around `time`. Only a time within a window's length of the smallest value has none.
    pub(super) fn window_start(&mut self, time: Val, size: i64, offset: i64, site: Site) -> Val {
        // The remainder of `time - offset`, without a difference that could overflow.
        let mut rest = self.floor_rem(time.v, size);
        let offset = offset.rem_euclid(size);
        if offset != 0 {
            let (offset, size, zero) =
                (self.int(types::I64, offset), self.int(types::I64, size), self.int(types::I64, 0));
            rest = self.b.ins().isub(rest, offset);
            let moved = self.add(rest, size);
            let below = self.icmp(IntCC::SignedLessThan, rest, zero);
            rest = self.select(below, moved, rest);
        }
        let (v, failed) = self.b.ins().ssub_overflow(time.v, rest);
        self.guard(failed, time.null, site, Status::ArithmeticOverflow);
        Val { v, null: time.null }
    }
}
