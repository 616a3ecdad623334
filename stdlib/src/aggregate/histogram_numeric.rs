//! `histogram_numeric`: a histogram of so many bins of any width, as Spark makes it.
//!
//! Source: Ben-Haim and Tom-Tov, "A streaming parallel decision tree algorithm". Of pairs of bins that are equally near one
//! is merged by chance; the generator is Java's, with Spark's fixed seed.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, ListArray, StructArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{Float64Type, Int32Type};
use ssql_ir::{AggCall, DataType as T, Field, Literal};

use super::basic::first_type;
use super::percentile_approx::{of_doubles, to_doubles};
use super::{Aggregate, SKIP, SlotType, StateRows, codec};
use crate::arrow::{arrow_type, conform};
use crate::error::{DecodeError, EvalError, ResolveError};
use crate::function::{FunctionDef, aggregate_with};
use crate::functions::random::JavaRandom;
use crate::resolve::{TypeCall, Typed};

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[aggregate_with("histogram_numeric", typing, make).doc(
    "A histogram of `n` bins: an array of structs of a bin's middle `x` and its number of values `y`.",
    "histogram_numeric(expr, n)",
    "",
)];

fn typing(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, 2)?;
    let value = match c.ty(0) {
        T::String | T::Null => T::Float64,
        t if t.is_numeric() => t.clone(),
        t @ (T::Date | T::Timestamp | T::TimestampNtz | T::DayTimeInterval(..) | T::YearMonthInterval(..)) => t.clone(),
        _ => return Err(c.mismatch(0, "(NUMERIC OR DATE OR TIMESTAMP OR TIMESTAMP WITHOUT TIME ZONE OR INTERVAL)")),
    };
    match &c.args[1].literal {
        _ if *c.ty(1) == T::Null => {
            return Err(ResolveError::new("DATATYPE_MISMATCH.UNEXPECTED_NULL", "The number of bins must not be NULL.")
                .at_arg(1));
        }
        Some(Literal::Int(n)) if (2..=i128::from(i32::MAX)).contains(&i128::from(*n)) => {}
        Some(Literal::Int(n)) => {
            return Err(ResolveError::new(
                "DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE",
                format!("The number of bins is between 2 and 2147483647, not {n}."),
            )
            .at_arg(1));
        }
        Some(_) => return Err(c.mismatch(1, "INT")),
        None => {
            return Err(ResolveError::new(
                "DATATYPE_MISMATCH.NON_FOLDABLE_INPUT",
                "The number of bins has to be a constant INT.",
            )
            .at_arg(1));
        }
    }
    let bin = T::Struct(vec![Field::new("x", value.clone(), true), Field::new("y", T::Float64, true)]);
    Ok(Typed::new(vec![value, T::Int32], T::array(bin)))
}

fn make(call: &AggCall) -> Result<Arc<dyn Aggregate>, EvalError> {
    Ok(Arc::new(HistogramNumeric { value: first_type(call)?.clone(), result: call.data_type.clone() }))
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Bin {
    x: f64,
    y: f64,
}

/// The bins of a group, by `x`.
#[derive(Debug, Clone)]
struct Bins {
    most: usize,
    bins: Vec<Bin>,
    chance: JavaRandom,
}

crate::object_state!(Bins, |b| b.bins.capacity() * 16);

impl Bins {
    fn new(most: usize) -> Bins {
        Bins { most, bins: vec![], chance: JavaRandom::new(31_183) }
    }

    fn insert(&mut self, v: f64) {
        let at = self.bins.partition_point(|b| b.x < v);
        match self.bins.get_mut(at) {
            Some(bin) if bin.x == v => bin.y += 1.0,
            _ => {
                self.bins.insert(at, Bin { x: v, y: 1.0 });
                self.trim();
            }
        }
    }

    fn merge(&mut self, theirs: &Bins) {
        if self.bins.is_empty() {
            self.bins.clone_from(&theirs.bins);
            return;
        }
        self.bins.extend_from_slice(&theirs.bins);
        self.bins.sort_by(|a, b| a.x.total_cmp(&b.x));
        // Spark leaves two bins of one value here; values are counted together, however the rows were cut.
        self.bins.dedup_by(|next, bin| {
            let same = next.x == bin.x;
            if same {
                bin.y += next.y;
            }
            same
        });
        self.trim();
    }

    /// Merges the nearest bins until there are not too many.
    fn trim(&mut self) {
        while self.bins.len() > self.most {
            let gap = |bins: &[Bin], i: usize| bins[i + 1].x - bins[i].x;
            let (mut nearest, mut smallest, mut ties) = (0, gap(&self.bins, 0), 1.0);
            for i in 1..self.bins.len() - 1 {
                let gap = gap(&self.bins, i);
                if gap < smallest {
                    (nearest, smallest, ties) = (i, gap, 1.0);
                } else if gap == smallest {
                    ties += 1.0;
                    if self.chance.next_double() <= 1.0 / ties {
                        nearest = i;
                    }
                }
            }
            let right = self.bins.remove(nearest + 1);
            let left = &mut self.bins[nearest];
            let both = left.y + right.y;
            left.x = left.x * (left.y / both) + right.x / both * right.y;
            left.y = both;
        }
    }
}

#[derive(Debug)]
struct HistogramNumeric {
    value: T,
    result: T,
}

impl Aggregate for HistogramNumeric {
    fn slots(&self) -> &[SlotType] {
        &[SlotType::Object]
    }

    fn update(&self, rows: &mut StateRows<'_>, groups: &[u32], args: &[ArrayRef]) -> Result<(), EvalError> {
        let doubles = to_doubles(&args[0], &self.value)?;
        let values = doubles.as_primitive::<Float64Type>();
        let most = args[1].as_primitive::<Int32Type>();
        for (row, g) in groups.iter().enumerate() {
            if *g != SKIP && values.is_valid(row) {
                let n = most.value(row).max(2) as usize;
                rows.object_or(*g, 0, || Bins::new(n)).insert(values.value(row));
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
            if let Some(theirs) = src.object::<Bins>(*s, 0) {
                dst.object_or(*d, 0, || Bins::new(theirs.most)).merge(theirs);
            }
        }
        Ok(())
    }

    fn finish(&self, rows: &StateRows<'_>, groups: &[u32]) -> Result<ArrayRef, EvalError> {
        let found: Vec<Option<&Bins>> = groups.iter().map(|g| rows.object::<Bins>(*g, 0)).collect();
        let all = || found.iter().flatten().flat_map(|b| b.bins.iter());
        let x = of_doubles(all().map(|b| Some(b.x)).collect(), &self.value)?;
        let y: ArrayRef = Arc::new(Float64Array::from_iter_values(all().map(|b| b.y)));
        let T::Array(element) = &self.result else { return Err(EvalError::internal("an array of bins")) };
        let arrow::datatypes::DataType::Struct(fields) = arrow_type(&element.data_type) else {
            return Err(EvalError::internal("a bin is a struct"));
        };
        let bins = StructArray::try_new(fields, vec![x, y], None)?;
        let offsets = OffsetBuffer::from_lengths(found.iter().map(|b| b.map_or(0, |b| b.bins.len())));
        let nulls: NullBuffer = found.iter().map(Option::is_some).collect();
        let field = Arc::new(crate::arrow::arrow_field(element));
        conform(Arc::new(ListArray::try_new(field, offsets, Arc::new(bins), Some(nulls))?), &self.result)
    }

    fn encode(&self, rows: &StateRows<'_>, row: u32, out: &mut Vec<u8>) {
        let Some(bins) = rows.object::<Bins>(row, 0) else { return codec::put_len(out, 0) };
        codec::put_len(out, bins.most);
        codec::put_i64(out, bins.chance.state() as i64);
        codec::put_len(out, bins.bins.len());
        for b in &bins.bins {
            codec::put_f64(out, b.x);
            codec::put_f64(out, b.y);
        }
    }

    fn decode(&self, rows: &mut StateRows<'_>, row: u32, input: &mut &[u8]) -> Result<(), DecodeError> {
        let most = codec::get_len(input)?;
        if most == 0 {
            return Ok(());
        }
        let mut bins = Bins::new(most);
        bins.chance = JavaRandom::at(codec::get_i64(input)? as u64);
        for _ in 0..codec::get_len(input)? {
            bins.bins.push(Bin { x: codec::get_f64(input)?, y: codec::get_f64(input)? });
        }
        rows.object_or(row, 0, || bins);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int32Array, Int64Array};

    use super::*;
    use crate::ArgType;
    use crate::testing::{Table, agg_call_of, check_aggregate};

    fn call(t: T) -> AggCall {
        let bins = ArgType::constant(T::Int32, Literal::Int(5));
        agg_call_of("histogram_numeric", &[ArgType::new(t, true), bins], false)
    }

    #[test]
    fn few_values_stand_for_themselves() {
        let x: ArrayRef = Arc::new(Int32Array::from(vec![Some(2), Some(0), None, Some(2), Some(10)]));
        let call = call(T::Int32);
        let n: ArrayRef = Arc::new(Int32Array::from_value(5, 5));
        assert_eq!(check_aggregate(&call, &[x.clone(), n.clone()]), "[{0, 1.0}, {2, 2.0}, {10, 1.0}]");
        assert_eq!(check_aggregate(&call, &[x.slice(0, 0), n.slice(0, 0)]), "NULL");
    }

    #[test]
    fn bins_are_those_of_spark() {
        let call = call(T::Int64);
        let agg = crate::aggregate(&call).expect("an aggregate");
        let mut table = Table::new(agg.as_ref(), 1);
        let x: ArrayRef = Arc::new(Int64Array::from_iter_values(0..20));
        let n: ArrayRef = Arc::new(Int32Array::from_value(5, 20));
        agg.update(&mut table.rows(), &[0; 20], &[x, n]).expect("an update");
        assert_eq!(table.result(agg.as_ref()), "[{1, 5.0}, {7, 5.0}, {11, 4.0}, {15, 4.0}, {18, 2.0}]");
    }
}
