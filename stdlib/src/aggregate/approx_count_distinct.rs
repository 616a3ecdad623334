//! `approx_count_distinct`: HyperLogLog++ with Spark's registers (64-bit XXH64, seed 42) and Spark's estimate: linear
//! counting for few values, and the raw estimate less its bias for more.
//!
//! Source: Heule, Nunkesser and Hall, "HyperLogLog in Practice", and the measured biases of its appendix.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, Int64Array};
use ssql_ir::{AggArg, AggCall, DataType as T, Literal};

use super::{Aggregate, SKIP, SlotType, StateRows, codec};
use crate::error::{DecodeError, EvalError, ResolveError};
use crate::function::{FunctionDef, NullRule, Param, aggregate_with};
use crate::functions::hashes::xxhash64_column;
use crate::resolve::{TypeCall, Typed};

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[aggregate_with("approx_count_distinct", typing, make).nulls(NullRule::Never).doc(
    "Number of distinct values, estimated; the relative standard deviation is 0.05 unless given.",
    "approx_count_distinct(expr[, deviation])",
    "",
)];

/// Relative standard deviation by default.
const DEVIATION: f64 = 0.05;

fn typing(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(1, 2)?;
    let mut types = vec![c.ty(0).clone()];
    if c.len() == 2 {
        types.push(c.coerce(1, Param::Double)?);
        if bits(constant(c.literal(1), c.ty(1))).is_none() {
            return Err(ResolveError::new(
                "DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE",
                format!("The deviation of `{}` is a constant between 0.0022 and 0.39.", c.name),
            )
            .at_arg(1));
        }
    }
    Ok(Typed::new(types, T::Int64))
}

/// A numeric constant as a double.
pub(super) fn constant(literal: Option<&Literal>, t: &T) -> Option<f64> {
    match (literal?, t) {
        (Literal::Int(v), _) => Some(*v as f64),
        (Literal::Float(v), _) => Some(*v),
        (Literal::Decimal(v), T::Decimal(_, s)) => Some(*v as f64 / 10f64.powi((*s).into())),
        (Literal::String(s), _) => crate::text::parse_double(s),
        _ => None,
    }
}

/// Address bits for a deviation, 4 to 18.
fn bits(deviation: Option<f64>) -> Option<u32> {
    let bits = (2.0 * (1.106 / deviation?).log2()).ceil();
    (4.0..=18.0).contains(&bits).then_some(bits as u32)
}

fn make(call: &AggCall) -> Result<Arc<dyn Aggregate>, EvalError> {
    let deviation = match call.args.get(1) {
        None => Some(DEVIATION),
        Some(AggArg::Literal(l, t)) => constant(Some(l), t),
        Some(AggArg::Column(_)) => None,
    };
    match bits(deviation) {
        Some(bits) => Ok(Arc::new(HyperLogLog { bits })),
        None => Err(EvalError::internal("typing has checked the deviation")),
    }
}

/// One byte a register.
#[derive(Debug)]
struct Registers(Vec<u8>);

crate::object_state!(Registers, |r| r.0.capacity());

#[derive(Debug)]
struct HyperLogLog {
    /// Address bits; there are two to that power registers.
    bits: u32,
}

impl HyperLogLog {
    fn empty(&self) -> Registers {
        Registers(vec![0; 1 << self.bits])
    }

    fn estimate(&self, registers: &[u8]) -> i64 {
        let m = registers.len() as f64;
        let zeros = registers.iter().filter(|r| **r == 0).count() as f64;
        let inverse: f64 = registers.iter().map(|r| 1.0 / (1u64 << *r) as f64).sum();
        let alpha = match self.bits {
            4 => 0.673,
            5 => 0.697,
            6 => 0.709,
            _ => 0.7213 / (1.0 + 1.079 / m),
        };
        let raw = alpha * m * m / inverse;
        let linear = m * (m / zeros).ln();
        let few = zeros > 0.0 && (raw <= 2.5 * m || linear <= THRESHOLDS[self.bits as usize - 4]);
        let estimate = if few {
            linear
        } else if raw < 5.0 * m {
            raw - bias(self.bits, raw)
        } else {
            raw
        };
        (estimate + 0.5).floor() as i64
    }
}

/// Up to here linear counting is the better estimate, by address bits from 4.
const THRESHOLDS: [f64; 15] = [
    10.0, 20.0, 40.0, 80.0, 220.0, 400.0, 900.0, 1800.0, 3100.0, 6500.0, 15500.0, 20000.0, 50000.0, 120_000.0,
    350_000.0,
];

/// Raw estimates and their biases, by address bits from 4. The text has a line of each in turn.
static BIASES: LazyLock<Vec<(Vec<f64>, Vec<f64>)>> = LazyLock::new(|| {
    let numbers = |line: &str| line.split(' ').filter_map(|n| n.parse().ok()).collect();
    let mut lines = include_str!("hll_bias.txt").lines();
    let mut tables = vec![];
    while let (Some(estimates), Some(biases)) = (lines.next(), lines.next()) {
        tables.push((numbers(estimates), numbers(biases)));
    }
    tables
});

/// Where a value stands among others, by halving; the tables are not sorted everywhere, so it is to be halved as Java does.
fn search(sorted: &[f64], wanted: f64) -> usize {
    let (mut low, mut high) = (0, sorted.len());
    while low < high {
        let middle = (low + high - 1) / 2;
        match sorted[middle] {
            v if v < wanted => low = middle + 1,
            v if v > wanted => high = middle,
            _ => return middle,
        }
    }
    low
}

/// The mean bias of the six known estimates that are nearest.
fn bias(bits: u32, estimate: f64) -> f64 {
    const NEIGHBOURS: usize = 6;
    let (estimates, biases) = &BIASES[bits as usize - 4];
    let nearest = search(estimates, estimate);
    let distance = |i: usize| (estimate - estimates[i]) * (estimate - estimates[i]);
    let mut low = (nearest + 1).saturating_sub(NEIGHBOURS);
    let mut high = (low + NEIGHBOURS).min(estimates.len());
    while high < estimates.len() && distance(high) < distance(low) {
        (low, high) = (low + 1, high + 1);
    }
    biases[low..high].iter().sum::<f64>() / (high - low) as f64
}

impl Aggregate for HyperLogLog {
    fn slots(&self) -> &[SlotType] {
        &[SlotType::Object]
    }

    fn update(&self, rows: &mut StateRows<'_>, groups: &[u32], args: &[ArrayRef]) -> Result<(), EvalError> {
        let hashes = xxhash64_column(args[0].as_ref())?;
        let nulls = args[0].logical_nulls();
        for (row, g) in groups.iter().enumerate() {
            if *g == SKIP || nulls.as_ref().is_some_and(|n| n.is_null(row)) {
                continue;
            }
            let hash = hashes[row];
            let index = (hash >> (64 - self.bits)) as usize;
            // The stop bit bounds the number of zeros.
            let rank = ((hash << self.bits) | (1 << (self.bits - 1))).leading_zeros() as u8 + 1;
            let register = &mut rows.object_or(*g, 0, || self.empty()).0[index];
            *register = (*register).max(rank);
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
            let Some(theirs) = src.object::<Registers>(*s, 0) else { continue };
            let ours = dst.object_or(*d, 0, || self.empty());
            for (a, b) in ours.0.iter_mut().zip(&theirs.0) {
                *a = (*a).max(*b);
            }
        }
        Ok(())
    }

    fn finish(&self, rows: &StateRows<'_>, groups: &[u32]) -> Result<ArrayRef, EvalError> {
        Ok(Arc::new(Int64Array::from_iter_values(
            groups.iter().map(|g| rows.object::<Registers>(*g, 0).map_or(0, |r| self.estimate(&r.0))),
        )))
    }

    fn encode(&self, rows: &StateRows<'_>, row: u32, out: &mut Vec<u8>) {
        codec::put_bytes(out, rows.object::<Registers>(row, 0).map_or(&[], |r| &r.0));
    }

    fn decode(&self, rows: &mut StateRows<'_>, row: u32, input: &mut &[u8]) -> Result<(), DecodeError> {
        let bytes = codec::get_bytes(input)?;
        match bytes.len() {
            0 => {}
            n if n == 1 << self.bits => {
                rows.object_or(row, 0, || Registers(bytes.to_vec()));
            }
            n => return Err(DecodeError(format!("{n} registers"))),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Float64Array, Int32Array, StringViewArray};

    use super::*;
    use crate::testing::{Table, agg_call, check_aggregate};

    fn count(t: T, column: ArrayRef, deviation: Option<f64>) -> i64 {
        let mut call = agg_call("approx_count_distinct", &[t], false);
        if let Some(d) = deviation {
            call.args.push(AggArg::Literal(Literal::Float(d), T::Float64));
        }
        let agg = crate::aggregate(&call).expect("an aggregate");
        let mut table = Table::new(agg.as_ref(), 1);
        agg.update(&mut table.rows(), &vec![0; column.len()], &[column]).expect("an update");
        table.result(agg.as_ref()).parse().expect("a number")
    }

    #[test]
    fn small_counts_are_exact_and_merge() {
        let call = agg_call("approx_count_distinct", &[T::Int32], false);
        let column: ArrayRef = Arc::new(Int32Array::from(vec![Some(2), Some(4), None, Some(4), Some(5), Some(6)]));
        assert_eq!(check_aggregate(&call, std::slice::from_ref(&column)), "4");
        assert_eq!(check_aggregate(&call, &[column.slice(0, 0)]), "0");
    }

    #[test]
    fn estimates_are_those_of_spark() {
        let n = 500;
        assert_eq!(count(T::Int64, Arc::new(Int64Array::from_iter_values(0..n)), None), 484);
        assert_eq!(count(T::Int32, Arc::new(Int32Array::from_iter_values(0..n as i32)), None), 494);
        assert_eq!(count(T::Float64, Arc::new(Float64Array::from_iter_values((0..n).map(|v| v as f64))), None), 510);
        let texts = StringViewArray::from_iter_values((0..n).map(|v| v.to_string()));
        assert_eq!(count(T::String, Arc::new(texts), None), 492);
        let ids = |n: i64| Arc::new(Int64Array::from_iter_values(0..n)) as ArrayRef;
        assert_eq!(count(T::Int64, ids(1000), None), 1026);
        assert_eq!(count(T::Int64, ids(1000), Some(0.01)), 996);
        assert_eq!(count(T::Int64, ids(100_000), None), 95_546);
        assert_eq!(count(T::Int64, ids(100_000), Some(0.2)), 89_779);
        // Where the bias is taken off.
        for (n, plain, tenth, coarse) in
            [(1500, 1400, 1404, 1505), (2000, 1947, 2096, 2442), (2500, 2378, 2446, 2548), (3000, 2770, 3039, 3016)]
        {
            assert_eq!(count(T::Int64, ids(n), None), plain);
            assert_eq!(count(T::Int64, ids(n), Some(0.1)), tenth);
            assert_eq!(count(T::Int64, ids(n), Some(0.39)), coarse);
        }
        assert_eq!(count(T::Int64, ids(100), Some(0.39)), 80);
    }

    #[test]
    fn there_is_a_table_for_every_number_of_bits() {
        assert_eq!(BIASES.len(), THRESHOLDS.len());
        for (estimates, biases) in BIASES.iter() {
            assert_eq!(estimates.len(), biases.len());
        }
    }
}
