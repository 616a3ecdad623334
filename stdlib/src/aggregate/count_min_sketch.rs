//! `count_min_sketch`: how often values come, estimated; the bytes are those of Spark's `CountMinSketch`.
//!
//! Source: Cormode and Muthukrishnan, "An improved data stream summary: the count-min sketch and its applications".

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryViewBuilder};
use arrow::datatypes::{Int8Type, Int16Type, Int32Type, Int64Type};
use ssql_ir::{AggArg, AggCall, DataType as T, Literal};

use super::{Aggregate, SKIP, SlotType, StateRows, codec};
use crate::error::{DecodeError, EvalError, ResolveError};
use crate::function::{FunctionDef, NullRule, aggregate_with};
use crate::functions::hashes::murmur3_bytes;
use crate::functions::random::JavaRandom;
use crate::resolve::{TypeCall, Typed};

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[aggregate_with("count_min_sketch", typing, |call| {
    Ok(Arc::new(CountMinSketch::new(call)?))
})
.nulls(NullRule::Never)
.doc(
    "A count-min sketch of the values, as Spark's bytes: counts are at most `eps` times the number of rows too large, \
             with that confidence.",
    "count_min_sketch(expr, eps, confidence, seed)",
    "",
)];

fn typing(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(4, 4)?;
    if !c.ty(0).is_integer() && !matches!(c.ty(0), T::String | T::Binary) {
        return Err(c.mismatch(0, "(INTEGRAL OR STRING OR BINARY)"));
    }
    for (i, t) in [(1, T::Float64), (2, T::Float64), (3, T::Int32)] {
        if *c.ty(i) != t && *c.ty(i) != T::Null {
            return Err(c.mismatch(i, &t.to_string()));
        }
        let what = ["eps", "confidence", "seed"][i - 1];
        let error = |condition, message: String| Err(ResolveError::new(condition, message).at_arg(i));
        match &c.args[i].literal {
            None => {
                let message = format!("The {what} of `count_min_sketch` has to be a constant.");
                return error("DATATYPE_MISMATCH.NON_FOLDABLE_INPUT", message);
            }
            Some(Literal::Null) => {
                return error("DATATYPE_MISMATCH.UNEXPECTED_NULL", format!("The {what} must not be NULL."));
            }
            Some(Literal::Float(v)) if i == 1 && *v <= 0.0 => {
                return error("DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE", format!("eps is above 0, not {v}."));
            }
            Some(Literal::Float(v)) if i == 2 && !(*v > 0.0 && *v < 1.0) => {
                return error("DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE", format!("The confidence is in (0, 1), not {v}."));
            }
            Some(_) => {}
        }
    }
    Ok(Typed::new(vec![c.ty(0).clone(), T::Float64, T::Float64, T::Int32], T::Binary))
}

/// Counters, a row of them after the other.
#[derive(Debug, Default)]
struct Counters {
    total: i64,
    table: Vec<i64>,
}

crate::object_state!(Counters, |c| c.table.capacity() * 8);

#[derive(Debug)]
struct CountMinSketch {
    width: usize,
    /// A multiplier for each row of counters.
    hashes: Vec<i64>,
}

impl CountMinSketch {
    fn new(call: &AggCall) -> Result<CountMinSketch, EvalError> {
        let constant = |i: usize| match call.args.get(i) {
            Some(AggArg::Literal(l, _)) => Ok(l),
            _ => Err(EvalError::internal("typing has checked that the argument is a constant")),
        };
        let (Literal::Float(eps), Literal::Float(confidence), Literal::Int(seed)) =
            (constant(1)?, constant(2)?, constant(3)?)
        else {
            return Err(EvalError::internal("typing has checked the constants"));
        };
        let width = (2.0 / eps).ceil();
        let depth = (-(1.0 - confidence).ln() / 2f64.ln()).ceil();
        if !(1.0..=f64::from(i32::MAX)).contains(&(width * depth)) {
            return Err(EvalError::new(
                "INVALID_PARAMETER_VALUE.SKETCH_SIZE",
                format!("A count-min sketch of {depth} times {width} counters is too large."),
            ));
        }
        let mut random = JavaRandom::new(*seed);
        let hashes = (0..depth as usize).map(|_| i64::from(random.next_below(i32::MAX))).collect();
        Ok(CountMinSketch { width: width as usize, hashes })
    }

    fn empty(&self) -> Counters {
        Counters { total: 0, table: vec![0; self.width * self.hashes.len()] }
    }

    fn add_long(&self, counters: &mut Counters, item: i64) {
        for (row, a) in self.hashes.iter().enumerate() {
            // A cheap way of taking the modulus of the Mersenne prime 2^31 - 1.
            let mut hash = a.wrapping_mul(item);
            hash = hash.wrapping_add(hash >> 32) & ((1 << 31) - 1);
            counters.table[row * self.width + hash as usize % self.width] += 1;
        }
        counters.total += 1;
    }

    fn add_bytes(&self, counters: &mut Counters, item: &[u8]) {
        let first = murmur3_bytes(item, 0);
        let second = murmur3_bytes(item, first);
        for row in 0..self.hashes.len() {
            let hash = first.wrapping_add((row as i32).wrapping_mul(second)) % self.width as i32;
            counters.table[row * self.width + hash.unsigned_abs() as usize] += 1;
        }
        counters.total += 1;
    }

    /// The bytes that Spark writes: version, total, depth, width, multipliers and counters, big endian.
    fn write(&self, counters: &Counters) -> Vec<u8> {
        let mut out = Vec::with_capacity(20 + 8 * (self.hashes.len() + counters.table.len()));
        out.extend_from_slice(&1i32.to_be_bytes());
        out.extend_from_slice(&counters.total.to_be_bytes());
        out.extend_from_slice(&(self.hashes.len() as i32).to_be_bytes());
        out.extend_from_slice(&(self.width as i32).to_be_bytes());
        for v in self.hashes.iter().chain(&counters.table) {
            out.extend_from_slice(&v.to_be_bytes());
        }
        out
    }
}

impl Aggregate for CountMinSketch {
    fn slots(&self) -> &[SlotType] {
        &[SlotType::Object]
    }

    fn update(&self, rows: &mut StateRows<'_>, groups: &[u32], args: &[ArrayRef]) -> Result<(), EvalError> {
        use arrow::datatypes::DataType as A;
        let column = &args[0];
        for (row, g) in groups.iter().enumerate().filter(|(row, g)| **g != SKIP && column.is_valid(*row)) {
            let counters = rows.object_or(*g, 0, || self.empty());
            match column.data_type() {
                A::Int8 => self.add_long(counters, column.as_primitive::<Int8Type>().value(row).into()),
                A::Int16 => self.add_long(counters, column.as_primitive::<Int16Type>().value(row).into()),
                A::Int32 => self.add_long(counters, column.as_primitive::<Int32Type>().value(row).into()),
                A::Int64 => self.add_long(counters, column.as_primitive::<Int64Type>().value(row)),
                A::Utf8View => self.add_bytes(counters, column.as_string_view().value(row).as_bytes()),
                A::BinaryView => self.add_bytes(counters, column.as_binary_view().value(row)),
                t => return Err(EvalError::internal(format!("a sketch of {t}"))),
            }
        }
        Ok(())
    }

    fn merge(
        &self,
        dst: &mut StateRows<'_>,
        dst_groups: &[u32],
        src: &StateRows<'_>,
        src_groups: &[u32],
    ) -> Result<(), EvalError> {
        for (d, s) in dst_groups.iter().zip(src_groups) {
            let Some(theirs) = src.object::<Counters>(*s, 0) else { continue };
            let ours = dst.object_or(*d, 0, || self.empty());
            ours.total += theirs.total;
            for (a, b) in ours.table.iter_mut().zip(&theirs.table) {
                *a += b;
            }
        }
        Ok(())
    }

    fn finish(&self, rows: &StateRows<'_>, groups: &[u32]) -> Result<ArrayRef, EvalError> {
        let mut out = BinaryViewBuilder::with_capacity(groups.len());
        for g in groups {
            match rows.object::<Counters>(*g, 0) {
                Some(counters) => out.append_value(self.write(counters)),
                None => out.append_value(self.write(&self.empty())),
            }
        }
        Ok(Arc::new(out.finish()))
    }

    fn encode(&self, rows: &StateRows<'_>, row: u32, out: &mut Vec<u8>) {
        let none = Counters::default();
        let counters = rows.object::<Counters>(row, 0).unwrap_or(&none);
        codec::put_i64(out, counters.total);
        codec::put_len(out, counters.table.len());
        counters.table.iter().for_each(|v| codec::put_i64(out, *v));
    }

    fn decode(&self, rows: &mut StateRows<'_>, row: u32, input: &mut &[u8]) -> Result<(), DecodeError> {
        let total = codec::get_i64(input)?;
        match codec::get_len(input)? {
            0 => Ok(()),
            n if n == self.width * self.hashes.len() => {
                let table = (0..n).map(|_| codec::get_i64(input)).collect::<Result<_, _>>()?;
                rows.object_or(row, 0, || Counters { total, table });
                Ok(())
            }
            n => Err(DecodeError(format!("{n} counters"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, StringViewArray};

    use super::*;
    use crate::resolve::ArgType;
    use crate::testing::{agg_call_of, check_aggregate};

    fn call(t: T) -> AggCall {
        let constants = [Literal::Float(0.5), Literal::Float(0.5), Literal::Int(1)];
        let types = [T::Float64, T::Float64, T::Int32];
        let mut args = vec![ArgType::new(t, true)];
        args.extend(types.iter().cloned().zip(constants.clone()).map(|(t, l)| ArgType::constant(t, l)));
        let mut call = agg_call_of("count_min_sketch", &args, false);
        for (i, (t, l)) in types.into_iter().zip(constants).enumerate() {
            call.args[i + 1] = AggArg::Literal(l, t);
        }
        call
    }

    #[test]
    fn sketches_merge_and_store() {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), Some(2), None, Some(1)]));
        assert!(check_aggregate(&call(T::Int64), &[numbers]).len() > 50);
        let texts: ArrayRef = Arc::new(StringViewArray::from(vec![Some("a"), None, Some("")]));
        assert!(check_aggregate(&call(T::String), &[texts]).len() > 50);
    }
}
