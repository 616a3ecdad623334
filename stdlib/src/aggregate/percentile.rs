//! Exact percentiles: `percentile`, `median`, `percentile_cont`, `percentile_disc`. The state counts each value.
//!
//! Percentages are read with the rows, since an array of them has no constant form; the first row of a group decides.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, DurationMicrosecondArray, Float64Array, IntervalYearMonthArray, ListArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::cast;
use arrow::datatypes::{DataType as ArrowType, Float64Type, Int64Type, IntervalYearMonthType};
use ssql_ir::{AggCall, DataType as T, Field, Literal};

use super::approx_count_distinct::constant;
use super::basic::first_type;
use super::{Aggregate, SKIP, SlotType, StateRows, codec};
use crate::arrow::conform;
use crate::error::{DecodeError, EvalError, ResolveError};
use crate::function::{FunctionDef, Param, aggregate_with};
use crate::resolve::{TypeCall, Typed};

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[
    aggregate_with("percentile", |c| typing(c, 3), |call| Percentile::make(call, false)).doc(
        "Exact percentile, interpolated; an array of percentages gives an array. Values may have a frequency each.",
        "percentile(expr, percentage[, frequency])",
        "",
    ),
    aggregate_with("median", median_type, |call| Percentile::make(call, false)).doc(
        "Exact median, interpolated.",
        "median(expr)",
        "",
    ),
    aggregate_with("percentile_cont", |c| typing(c, 2), |call| Percentile::make(call, false)).doc(
        "Exact percentile in the order given, interpolated.",
        "percentile_cont(percentage) WITHIN GROUP (ORDER BY expr)",
        "",
    ),
    aggregate_with("percentile_disc", |c| typing(c, 2), |call| Percentile::make(call, true)).doc(
        "The first value in the order given whose share of values up to it reaches the percentage.",
        "percentile_disc(percentage) WITHIN GROUP (ORDER BY expr)",
        "",
    ),
];

const MEASURABLE: Param = Param::OneOf(&[Param::Double, Param::DayTime, Param::YearMonth]);
pub(super) const PERCENTAGES: Param = Param::OneOf(&[Param::Double, Param::ArrayOf(&Param::Double)]);

/// The type of the measured values: numbers and texts count as DOUBLE.
fn measured(c: &TypeCall<'_>) -> Result<T, ResolveError> {
    match c.ty(0) {
        t if t.is_numeric() => Ok(T::Float64),
        // What lies between two intervals may have any field.
        T::DayTimeInterval(..) => Ok(T::DAY_TO_SECOND),
        T::YearMonthInterval(..) => Ok(T::YEAR_TO_MONTH),
        _ => c.coerce(0, MEASURABLE),
    }
}

/// Checks the percentage, as far as it is a constant.
pub(super) fn check_percentage(c: &TypeCall<'_>) -> Result<T, ResolveError> {
    if c.args[1].literal == Some(Literal::Null) || *c.ty(1) == T::Null {
        return Err(ResolveError::new(
            "DATATYPE_MISMATCH.UNEXPECTED_NULL",
            format!("The percentage of `{}` must not be NULL.", c.name),
        )
        .at_arg(1));
    }
    if let Some(p) = constant(c.literal(1), c.ty(1))
        && !(0.0..=1.0).contains(&p)
    {
        return Err(ResolveError::new("DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE", out_of_range(p)).at_arg(1));
    }
    c.coerce(1, PERCENTAGES)
}

fn out_of_range(p: f64) -> String {
    format!("A percentage is between 0.0 and 1.0, not {p}.")
}

fn typing(c: &TypeCall<'_>, max: usize) -> Result<Typed, ResolveError> {
    c.count(2, max)?;
    let value = measured(c)?;
    let percentage = check_percentage(c)?;
    let result = per_percentage(&percentage, &value);
    let mut types = vec![value, percentage];
    if c.len() == 3 {
        types.push(c.coerce(2, Param::BigInt)?);
    }
    Ok(Typed::new(types, result))
}

/// One value, or one for each percentage of an array.
pub(super) fn per_percentage(percentage: &T, value: &T) -> T {
    match percentage {
        T::Array(_) => T::Array(Box::new(Field::new("element", value.clone(), false))),
        _ => value.clone(),
    }
}

fn median_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(1, 1)?;
    let t = measured(c)?;
    Ok(Typed::new(vec![t.clone()], t))
}

/// The percentages in a row of the second argument.
pub(super) fn percentages(array: &ArrayRef, row: usize) -> Result<Vec<f64>, EvalError> {
    let list = match array.as_list_opt::<i32>() {
        Some(list) => list.value(row),
        None => array.slice(row, 1),
    };
    let values = list.as_primitive::<Float64Type>();
    let mut out = Vec::with_capacity(values.len());
    for p in values.iter() {
        let p = p.ok_or_else(|| EvalError::new("DATATYPE_MISMATCH.UNEXPECTED_NULL", "A percentage is NULL."))?;
        if !(0.0..=1.0).contains(&p) {
            return Err(EvalError::new("DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE", out_of_range(p)));
        }
        out.push(p);
    }
    Ok(out)
}

/// A column of doubles as values of the measured type: whole parts of intervals.
pub(super) fn of_doubles(values: Vec<Option<f64>>, t: &T) -> ArrayRef {
    match t {
        T::DayTimeInterval(..) => {
            Arc::new(DurationMicrosecondArray::from_iter(values.into_iter().map(|v| v.map(|v| v as i64))))
        }
        T::YearMonthInterval(..) => {
            Arc::new(IntervalYearMonthArray::from_iter(values.into_iter().map(|v| v.map(|v| v as i32))))
        }
        _ => Arc::new(Float64Array::from(values)),
    }
}

/// The result column of groups that each have their values, or none.
pub(super) fn results(
    groups: Vec<Option<Vec<f64>>>,
    result: &T,
    column: impl Fn(Vec<Option<f64>>, &T) -> Result<ArrayRef, EvalError>,
) -> Result<ArrayRef, EvalError> {
    let T::Array(element) = result else {
        return column(groups.into_iter().map(|v| v.and_then(|v| v.first().copied())).collect(), result);
    };
    let nulls = NullBuffer::from_iter(groups.iter().map(Option::is_some));
    let offsets = OffsetBuffer::from_lengths(groups.iter().map(|v| v.as_ref().map_or(0, Vec::len)));
    let values = column(groups.into_iter().flatten().flatten().map(Some).collect(), &element.data_type)?;
    let field = Arc::new(arrow::datatypes::Field::new("element", values.data_type().clone(), false));
    conform(Arc::new(ListArray::try_new(field, offsets, values, Some(nulls))?), result)
}

/// Doubles as integers of the same order, NaN largest.
fn to_key(v: f64) -> i64 {
    let bits = if v.is_nan() { f64::NAN } else { v + 0.0 }.to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

fn from_key(key: i64) -> f64 {
    f64::from_bits((key ^ (((key >> 63) as u64) >> 1) as i64) as u64)
}

/// How often each value was seen, in order.
#[derive(Debug, Default)]
struct Counts {
    percentages: Vec<f64>,
    counts: BTreeMap<i64, i64>,
}

crate::object_state!(Counts, |c| c.percentages.capacity() * 8 + c.counts.len() * 24);

#[derive(Debug)]
struct Percentile {
    value: T,
    result: T,
    discrete: bool,
    descending: bool,
}

impl Percentile {
    fn make(call: &AggCall, discrete: bool) -> Result<Arc<dyn Aggregate>, EvalError> {
        Ok(Arc::new(Percentile {
            value: first_type(call)?.clone(),
            result: call.data_type.clone(),
            discrete,
            descending: call.order.first().is_some_and(|k| k.descending),
        }))
    }

    fn values(&self, state: &Counts) -> Vec<f64> {
        let total: i64 = state.counts.values().sum();
        // The value of that rank, from 0.
        let at = |rank: i64| {
            let mut below = 0;
            let mut reached = |(key, n): (&i64, &i64)| {
                below += n;
                (below > rank).then(|| from_key(*key))
            };
            let found = if self.descending {
                state.counts.iter().rev().find_map(&mut reached)
            } else {
                state.counts.iter().find_map(&mut reached)
            };
            found.unwrap_or(f64::NAN)
        };
        let one = |p: &f64| {
            if self.discrete {
                return at((((total as f64) * p).ceil() as i64 - 1).max(0));
            }
            let position = (total - 1) as f64 * p;
            let (low, high) = (position.floor(), position.ceil());
            let (a, b) = (at(low as i64), at(high as i64));
            if low == high || a == b { a } else { (high - position) * a + (position - low) * b }
        };
        state.percentages.iter().map(one).collect()
    }
}

impl Aggregate for Percentile {
    fn slots(&self) -> &[SlotType] {
        &[SlotType::Object]
    }

    fn update(&self, rows: &mut StateRows<'_>, groups: &[u32], args: &[ArrayRef]) -> Result<(), EvalError> {
        // Arrow casts intervals to integers only.
        let wide = match self.value {
            T::DayTimeInterval(..) => cast(&cast(&args[0], &ArrowType::Int64)?, &ArrowType::Float64)?,
            T::YearMonthInterval(..) => {
                let months = args[0].as_primitive::<IntervalYearMonthType>();
                Arc::new(months.unary::<_, Float64Type>(f64::from))
            }
            _ => args[0].clone(),
        };
        let values = wide.as_primitive::<Float64Type>();
        // Without a percentage it is the median. The columns of an order do not count as arguments.
        let frequency = args.get(2).and_then(|a| a.as_primitive_opt::<Int64Type>()).filter(|_| !self.discrete);
        for (row, g) in groups.iter().enumerate() {
            if *g == SKIP || values.is_null(row) {
                continue;
            }
            let n = match frequency {
                None => 1,
                Some(f) if f.is_null(row) => continue,
                Some(f) => f.value(row),
            };
            if n < 0 {
                return Err(EvalError::new(
                    "NEGATIVE_VALUES_IN_FREQUENCY_EXPRESSION",
                    format!("The frequency {n} is negative."),
                )
                .at_row(row));
            }
            if n == 0 {
                continue;
            }
            let state: &mut Counts = rows.object_or(*g, 0, Counts::default);
            if state.counts.is_empty() {
                state.percentages = match args.get(1) {
                    Some(p) => percentages(p, row).map_err(|e| e.at_row(row))?,
                    None => vec![0.5],
                };
            }
            *state.counts.entry(to_key(values.value(row))).or_insert(0) += n;
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
            let Some(theirs) = src.object::<Counts>(*s, 0) else { continue };
            let ours: &mut Counts = dst.object_or(*d, 0, Counts::default);
            if ours.counts.is_empty() {
                ours.percentages.clone_from(&theirs.percentages);
            }
            for (key, n) in &theirs.counts {
                *ours.counts.entry(*key).or_insert(0) += n;
            }
        }
        Ok(())
    }

    fn finish(&self, rows: &StateRows<'_>, groups: &[u32]) -> Result<ArrayRef, EvalError> {
        let values = groups
            .iter()
            .map(|g| rows.object::<Counts>(*g, 0).filter(|c| !c.counts.is_empty()).map(|c| self.values(c)))
            .collect();
        results(values, &self.result, |v, t| Ok(of_doubles(v, t)))
    }

    fn encode(&self, rows: &StateRows<'_>, row: u32, out: &mut Vec<u8>) {
        let empty = Counts::default();
        let state = rows.object::<Counts>(row, 0).unwrap_or(&empty);
        codec::put_len(out, state.percentages.len());
        state.percentages.iter().for_each(|p| codec::put_f64(out, *p));
        codec::put_len(out, state.counts.len());
        for (key, n) in &state.counts {
            codec::put_i64(out, *key);
            codec::put_i64(out, *n);
        }
    }

    fn decode(&self, rows: &mut StateRows<'_>, row: u32, input: &mut &[u8]) -> Result<(), DecodeError> {
        let mut state = Counts::default();
        for _ in 0..codec::get_len(input)? {
            state.percentages.push(codec::get_f64(input)?);
        }
        for _ in 0..codec::get_len(input)? {
            let key = codec::get_i64(input)?;
            state.counts.insert(key, codec::get_i64(input)?);
        }
        if !state.counts.is_empty() {
            rows.object_or(row, 0, || state);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::Int64Array;
    use ssql_ir::SortKey;

    use super::*;
    use crate::testing::{agg_call, check_aggregate};
    use crate::{ArgType, resolve_aggregate};

    fn column(values: &[Option<f64>]) -> ArrayRef {
        Arc::new(Float64Array::from(values.to_vec()))
    }

    fn constants(p: f64, n: usize) -> ArrayRef {
        Arc::new(Float64Array::from_value(p, n))
    }

    #[test]
    fn interpolated() {
        let x = column(&[Some(2.0), Some(4.0), None, Some(4.0), Some(6.0), Some(5.0)]);
        let call = agg_call("percentile", &[T::Float64, T::Float64], false);
        let at = |p: f64| check_aggregate(&call, &[x.clone(), constants(p, 6)]);
        assert_eq!(at(0.5), "4.0");
        assert_eq!(at(0.25), "4.0");
        assert_eq!(at(0.9), "5.6");
        assert_eq!(at(1.5), "!DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE");
        assert_eq!(check_aggregate(&call, &[x.slice(0, 0), constants(0.5, 0)]), "NULL");
        assert_eq!(check_aggregate(&agg_call("median", &[T::Int32], false), std::slice::from_ref(&x)), "4.0");
        for t in [T::DAY_TO_SECOND, T::YEAR_TO_MONTH] {
            let spans = crate::literal_array(&Literal::Int(3), &t, 2);
            let text = check_aggregate(&agg_call("median", std::slice::from_ref(&t), false), &[spans]);
            assert!(text.starts_with("INTERVAL '0"), "{text}");
        }
        let nan = column(&[Some(1.0), Some(f64::NAN), Some(3.0)]);
        assert_eq!(check_aggregate(&agg_call("median", &[T::Float64], false), &[nan]), "3.0");
        let with_frequency = agg_call("percentile", &[T::Float64, T::Float64, T::Int64], false);
        let f: ArrayRef = Arc::new(Int64Array::from(vec![1, 1, 1, 1, 1, 2]));
        assert_eq!(check_aggregate(&with_frequency, &[x.clone(), constants(0.5, 6), f]), "4.5");
        let f: ArrayRef = Arc::new(Int64Array::from(vec![-1; 6]));
        assert_eq!(
            check_aggregate(&with_frequency, &[x, constants(0.5, 6), f]),
            "!NEGATIVE_VALUES_IN_FREQUENCY_EXPRESSION"
        );
    }

    #[test]
    fn many_at_once() {
        let x = column(&[Some(2.0), Some(4.0), Some(6.0)]);
        let list = ListArray::try_new(
            Arc::new(arrow::datatypes::Field::new("element", ArrowType::Float64, true)),
            OffsetBuffer::from_lengths([3, 3, 3]),
            Arc::new(Float64Array::from_iter_values([0.0, 0.5, 1.0].repeat(3))),
            None,
        );
        let list: ArrayRef = Arc::new(list.expect("a list"));
        let call = agg_call("percentile", &[T::Float64, T::array(T::Float64)], false);
        assert_eq!(check_aggregate(&call, &[x.clone(), list.clone()]), "[2.0, 4.0, 6.0]");
        assert_eq!(check_aggregate(&call, &[x.slice(0, 0), list.slice(0, 0)]), "NULL");
    }

    #[test]
    fn in_an_order() {
        let x = column(&[Some(1.0), Some(2.0), Some(3.0), Some(4.0)]);
        let run = |name: &str, p: f64, descending: bool| {
            let mut call = agg_call(name, &[T::Float64, T::Float64], false);
            call.order = vec![SortKey { column: 0, descending, nulls_first: true }];
            check_aggregate(&call, &[x.clone(), constants(p, 4), x.clone()])
        };
        assert_eq!(run("percentile_disc", 0.25, true), "4.0");
        assert_eq!(run("percentile_cont", 0.25, true), "3.25");
        assert_eq!(run("percentile_disc", 0.0, false), "1.0");
        assert_eq!(run("percentile_disc", 1.0, false), "4.0");
        assert_eq!(run("percentile_disc", 0.5, false), "2.0");
    }

    #[test]
    fn what_is_refused() {
        let refuse = |p: Literal, t: T| {
            let args = [ArgType::new(T::Int32, true), ArgType::constant(t, p)];
            resolve_aggregate("percentile", &args, false).expect_err("it is refused").condition
        };
        assert_eq!(refuse(Literal::Decimal(15), T::Decimal(2, 1)), "DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE");
        assert_eq!(refuse(Literal::Null, T::Null), "DATATYPE_MISMATCH.UNEXPECTED_NULL");
    }
}
