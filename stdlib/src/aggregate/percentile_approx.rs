//! `percentile_approx`: the summary of Greenwald and Khanna, "Space-efficient online computation of quantile summaries",
//! with the thresholds that Spark uses. Up to `accuracy / 2` values the answer is exact.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType as ArrowType, Float64Type, Int64Type, IntervalYearMonthType};
use ssql_ir::{AggCall, DataType as T};

use super::approx_count_distinct::constant;
use super::basic::first_type;
use super::percentile::{check_percentage, per_percentage, percentages, results};
use super::{Aggregate, SKIP, SlotType, StateRows, codec};
use crate::compare::float_order;
use crate::error::{DecodeError, EvalError, ResolveError};
use crate::eval::EvalContext;
use crate::function::{FunctionDef, Param, aggregate_with};
use crate::resolve::{TypeCall, Typed};

/// Entries of this family.
pub const TABLE: &[FunctionDef] =
    &[aggregate_with("percentile_approx", typing, make).aliases(&["approx_percentile"]).doc(
        "A value of the group near the percentile, with an error of rank of at most one in `accuracy` (10000); an array \
         of percentages gives an array.",
        "percentile_approx(expr, percentage[, accuracy])",
        "",
    )];

const MEASURABLE: Param =
    Param::OneOf(&[Param::Numeric, Param::Date, Param::AnyTimestamp, Param::DayTime, Param::YearMonth]);
const DEFAULT_ACCURACY: i64 = 10_000;

fn typing(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, 3)?;
    let value = if *c.ty(0) == T::String { T::Float64 } else { c.coerce(0, MEASURABLE)? };
    let percentage = check_percentage(c)?;
    let result = per_percentage(&percentage, &value);
    let mut types = vec![value, percentage];
    if c.len() == 3 {
        types.push(c.coerce(2, Param::BigInt)?);
        if let Some(v) = constant(c.literal(2), c.ty(2))
            && !(1.0..=f64::from(i32::MAX)).contains(&v)
        {
            return Err(ResolveError::new("DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE", bad_accuracy(v)).at_arg(2));
        }
    }
    Ok(Typed::new(types, result))
}

fn bad_accuracy(v: impl std::fmt::Display) -> String {
    format!("The accuracy is between 1 and 2147483647, not {v}.")
}

fn make(call: &AggCall) -> Result<Arc<dyn Aggregate>, EvalError> {
    Ok(Arc::new(Approximate {
        value: first_type(call)?.clone(),
        result: call.data_type.clone(),
        has_accuracy: call.arg_types.len() > 2,
    }))
}

/// Values that are buffered before they are put in their places.
const HEAD: usize = 50_000;
/// Samples from which on a summary is compressed.
const COMPRESS_FROM: usize = 10_000;

/// A value, how many ranks it stands for above the sample before it, and how uncertain its rank is.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Sample {
    value: f64,
    g: i64,
    delta: i64,
}

/// The summary of a group.
#[derive(Debug, Clone)]
struct Summary {
    percentages: Vec<f64>,
    error: f64,
    samples: Vec<Sample>,
    count: i64,
    head: Vec<f64>,
}

crate::object_state!(Summary, |s| (s.percentages.capacity() + s.head.capacity()) * 8 + s.samples.capacity() * 24);

impl Summary {
    fn new(percentages: Vec<f64>, error: f64) -> Summary {
        Summary { percentages, error, samples: vec![], count: 0, head: vec![] }
    }

    fn insert(&mut self, value: f64) {
        self.head.push(value);
        if self.head.len() >= HEAD {
            self.take_head();
            if self.samples.len() >= COMPRESS_FROM {
                self.compress();
            }
        }
    }

    fn take_head(&mut self) {
        let mut head = std::mem::take(&mut self.head);
        head.sort_by(|a, b| float_order(*a, *b));
        let mut old = std::mem::take(&mut self.samples).into_iter().peekable();
        let mut samples = Vec::with_capacity(old.len() + head.len());
        let last = head.len().wrapping_sub(1);
        for (i, value) in head.into_iter().enumerate() {
            while let Some(s) = old.next_if(|s| float_order(s.value, value).is_le()) {
                samples.push(s);
            }
            self.count += 1;
            // The smallest and the largest value are known for certain.
            let certain = samples.is_empty() || (i == last && old.peek().is_none());
            let delta = if certain { 0 } else { (2.0 * self.error * self.count as f64).floor() as i64 };
            samples.push(Sample { value, g: 1, delta });
        }
        samples.extend(old);
        self.samples = samples;
    }

    fn compress(&mut self) {
        self.take_head();
        let threshold = 2.0 * self.error * self.count as f64;
        let Some((last, rest)) = self.samples.split_last() else { return };
        let Some((first, middle)) = rest.split_first() else { return };
        let mut kept = vec![];
        let mut current = *last;
        for sample in middle.iter().rev() {
            if ((sample.g + current.g + current.delta) as f64) < threshold {
                current.g += sample.g;
            } else {
                kept.push(current);
                current = *sample;
            }
        }
        kept.push(current);
        if float_order(first.value, current.value).is_le() {
            kept.push(*first);
        }
        kept.reverse();
        self.samples = kept;
    }

    fn merge(&mut self, theirs: &Summary) {
        let mut other = theirs.clone();
        self.take_head();
        other.take_head();
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = other;
            return;
        }
        // What a sample of one side leaves open about ranks of the other.
        let of_theirs = (2.0 * other.error * other.count as f64).floor() as i64;
        let of_ours = (2.0 * self.error * self.count as f64).floor() as i64;
        let (ours, theirs) = (std::mem::take(&mut self.samples), other.samples);
        let (mut i, mut j) = (0, 0);
        let mut merged = Vec::with_capacity(ours.len() + theirs.len());
        while let (Some(a), Some(b)) = (ours.get(i), theirs.get(j)) {
            if float_order(a.value, b.value).is_lt() {
                i += 1;
                merged.push(Sample { delta: a.delta + if j > 0 { of_theirs } else { 0 }, ..*a });
            } else {
                j += 1;
                merged.push(Sample { delta: b.delta + if i > 0 { of_ours } else { 0 }, ..*b });
            }
        }
        merged.extend_from_slice(&ours[i..]);
        merged.extend_from_slice(&theirs[j..]);
        self.samples = merged;
        self.count += other.count;
        self.error = self.error.max(other.error);
        self.compress();
    }

    fn value_at(&self, percentage: f64) -> Option<f64> {
        let (first, last) = (self.samples.first()?, self.samples.last()?);
        if percentage <= self.error {
            return Some(first.value);
        }
        if percentage >= 1.0 - self.error {
            return Some(last.value);
        }
        let target = self.samples.iter().map(|s| s.delta + s.g).max()? / 2;
        let rank = (percentage * self.count as f64).ceil() as i64;
        let mut lowest = 0;
        for sample in &self.samples[..self.samples.len() - 1] {
            lowest += sample.g;
            if lowest + sample.delta - target <= rank && rank <= lowest + target {
                return Some(sample.value);
            }
        }
        Some(last.value)
    }

    /// The values of the percentages.
    fn values(&self) -> Vec<f64> {
        let mut done = self.clone();
        // Spark answers from a compressed summary.
        done.compress();
        done.percentages.iter().filter_map(|p| done.value_at(*p)).collect()
    }
}

#[derive(Debug)]
struct Approximate {
    value: T,
    result: T,
    has_accuracy: bool,
}

/// Values of a type that has a place on the number line, as doubles.
pub(super) fn to_doubles(array: &ArrayRef, t: &T) -> Result<ArrayRef, EvalError> {
    Ok(match t {
        T::Float64 => array.clone(),
        t if t.is_numeric() => {
            crate::cast_array(array, t, &T::Float64, ssql_ir::CastMode::Ansi, &EvalContext::default())?
        }
        T::YearMonthInterval(..) => {
            let months = array.as_primitive::<IntervalYearMonthType>();
            Arc::new(months.unary::<_, Float64Type>(f64::from))
        }
        T::Date => cast(&cast(array, &ArrowType::Int32)?, &ArrowType::Float64)?,
        _ => cast(&cast(array, &ArrowType::Int64)?, &ArrowType::Float64)?,
    })
}

/// Doubles as values of that type again.
pub(super) fn of_doubles(values: Vec<Option<f64>>, t: &T) -> Result<ArrayRef, EvalError> {
    let doubles: ArrayRef = Arc::new(Float64Array::from(values.clone()));
    let target = crate::arrow_type(t);
    Ok(match t {
        t if t.is_float() => cast(&doubles, &target)?,
        T::Decimal(..) => {
            crate::cast_array(&doubles, &T::Float64, t, ssql_ir::CastMode::Ansi, &EvalContext::default())?
        }
        T::Int8 | T::Int16 | T::Int32 | T::Int64 => cast(&doubles, &target)?,
        T::YearMonthInterval(..) => super::percentile::of_doubles(values, t),
        T::Date => cast(&cast(&doubles, &ArrowType::Int32)?, &target)?,
        _ => cast(&cast(&doubles, &ArrowType::Int64)?, &target)?,
    })
}

impl Aggregate for Approximate {
    fn slots(&self) -> &[SlotType] {
        &[SlotType::Object]
    }

    fn update(&self, rows: &mut StateRows<'_>, groups: &[u32], args: &[ArrayRef]) -> Result<(), EvalError> {
        let doubles = to_doubles(&args[0], &self.value)?;
        let values = doubles.as_primitive::<Float64Type>();
        let accuracy = self.has_accuracy.then(|| args[2].as_primitive::<Int64Type>());
        for (row, g) in groups.iter().enumerate() {
            if *g == SKIP || values.is_null(row) {
                continue;
            }
            if rows.object::<Summary>(*g, 0).is_none() {
                let accuracy = accuracy.map_or(DEFAULT_ACCURACY, |a| a.value(row));
                if !(1..=i64::from(i32::MAX)).contains(&accuracy) {
                    return Err(
                        EvalError::new("DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE", bad_accuracy(accuracy)).at_row(row)
                    );
                }
                let percentages = percentages(&args[1], row).map_err(|e| e.at_row(row))?;
                rows.object_or(*g, 0, || Summary::new(percentages, 1.0 / accuracy as f64));
            }
            rows.object_or(*g, 0, || Summary::new(vec![], 0.0)).insert(values.value(row));
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
            let Some(theirs) = src.object::<Summary>(*s, 0) else { continue };
            match dst.objects.get_mut::<Summary>(dst.i64(*d, 0) as u64) {
                Some(ours) => ours.merge(theirs),
                None => {
                    dst.object_or(*d, 0, || theirs.clone());
                }
            }
        }
        Ok(())
    }

    fn finish(&self, rows: &StateRows<'_>, groups: &[u32]) -> Result<ArrayRef, EvalError> {
        let values = groups.iter().map(|g| rows.object::<Summary>(*g, 0).map(Summary::values)).collect();
        results(values, &self.result, of_doubles)
    }

    fn encode(&self, rows: &StateRows<'_>, row: u32, out: &mut Vec<u8>) {
        let Some(summary) = rows.object::<Summary>(row, 0) else { return out.push(0) };
        out.push(1);
        codec::put_f64(out, summary.error);
        codec::put_i64(out, summary.count);
        for list in [&summary.percentages, &summary.head] {
            codec::put_len(out, list.len());
            list.iter().for_each(|v| codec::put_f64(out, *v));
        }
        codec::put_len(out, summary.samples.len());
        for s in &summary.samples {
            codec::put_f64(out, s.value);
            codec::put_i64(out, s.g);
            codec::put_i64(out, s.delta);
        }
    }

    fn decode(&self, rows: &mut StateRows<'_>, row: u32, input: &mut &[u8]) -> Result<(), DecodeError> {
        if codec::take(input, 1)? != [1] {
            return Ok(());
        }
        let mut summary = Summary::new(vec![], codec::get_f64(input)?);
        summary.count = codec::get_i64(input)?;
        for list in [&mut summary.percentages, &mut summary.head] {
            for _ in 0..codec::get_len(input)? {
                list.push(codec::get_f64(input)?);
            }
        }
        for _ in 0..codec::get_len(input)? {
            let (value, g) = (codec::get_f64(input)?, codec::get_i64(input)?);
            summary.samples.push(Sample { value, g, delta: codec::get_i64(input)? });
        }
        rows.object_or(row, 0, || summary);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::Int32Array;

    use super::*;
    use crate::testing::{agg_call, check_aggregate};

    #[test]
    fn few_values_are_exact() {
        let x: ArrayRef = Arc::new(Int32Array::from(vec![Some(2), Some(4), None, Some(4), Some(6), Some(5)]));
        let call = agg_call("approx_percentile", &[T::Int32, T::Float64], false);
        let at = |p: f64| check_aggregate(&call, &[x.clone(), Arc::new(Float64Array::from_value(p, 6))]);
        assert_eq!(at(0.0), "2");
        assert_eq!(at(0.5), "4");
        assert_eq!(at(1.0), "6");
        assert_eq!(at(1.5), "!DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE");
        let none: ArrayRef = Arc::new(Float64Array::from_value(0.5, 0));
        assert_eq!(check_aggregate(&call, &[x.slice(0, 0), none]), "NULL");
    }

    #[test]
    fn other_types() {
        let half: ArrayRef = Arc::new(Float64Array::from_value(0.5, 1));
        for (t, text) in [
            (T::Date, "1970-01-02"),
            (T::Timestamp, "1970-01-01 00:00:00.000001"),
            (T::Decimal(5, 2), "0.01"),
            (T::YEAR_TO_MONTH, "INTERVAL '0-1' YEAR TO MONTH"),
        ] {
            let literal =
                if matches!(t, T::Decimal(..)) { ssql_ir::Literal::Decimal(1) } else { ssql_ir::Literal::Int(1) };
            let column = crate::literal_array(&literal, &t, 1);
            let call = agg_call("percentile_approx", &[t, T::Float64], false);
            assert_eq!(check_aggregate(&call, &[column, half.clone()]), text);
        }
    }

    #[test]
    fn many_values_are_near() {
        let mut summary = Summary::new(vec![0.1, 0.5, 0.9], 1.0 / 10_000.0);
        (0..100_000).for_each(|v| summary.insert(f64::from(v)));
        // Spark's answers.
        assert_eq!(summary.values(), [10_002.0, 49_999.0, 89_990.0]);
        let mut coarse = Summary::new(vec![0.1, 0.5, 0.9], 0.01);
        (0..100_000).for_each(|v| coarse.insert(f64::from(v)));
        assert_eq!(coarse.values(), [10_504.0, 49_999.0, 89_150.0]);
    }
}
