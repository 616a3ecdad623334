//! `sum` and `avg`, with their `try_` forms.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, Decimal128Array, DurationMicrosecondArray, Float64Array, Int64Array,
    IntervalYearMonthArray, PrimitiveArray,
};
use arrow::datatypes::{
    Decimal128Type, DurationMicrosecondType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    IntervalYearMonthType,
};
use ssql_ir::{AggCall, DataType as T};

use super::basic::{decimal_limit, first_type};
use super::layout::{OVERFLOWED, SEEN, SEEN_I128, VALUE};
use super::{Aggregate, SKIP, SlotType, StateRows};
use crate::arrow::arrow_type;
use crate::error::EvalError;
use crate::functions::decimal::{divide_half_up, rescale};

/// What is added up, and in what.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Total {
    /// In a checked BIGINT: integers and intervals.
    I64,
    /// In a DOUBLE.
    F64,
    /// In a 128-bit integer.
    Decimal,
}

const I64_SLOTS: &[SlotType] = &[SlotType::I64, SlotType::I64];
const F64_SLOTS: &[SlotType] = &[SlotType::F64, SlotType::I64];
const DECIMAL_SLOTS: &[SlotType] = &[SlotType::I128, SlotType::I64];

impl Total {
    fn slots(self) -> &'static [SlotType] {
        match self {
            Total::I64 => I64_SLOTS,
            Total::F64 => F64_SLOTS,
            Total::Decimal => DECIMAL_SLOTS,
        }
    }
}

/// The running total that `sum` and `avg` share.
#[derive(Debug)]
struct Adder {
    total: Total,
    input: T,
    /// For messages.
    result: T,
    tried: bool,
    /// Largest magnitude of a 128-bit total.
    limit: i128,
}

impl Adder {
    fn overflow(&self) -> EvalError {
        EvalError::new("ARITHMETIC_OVERFLOW", format!("The sum does not fit {}.", self.result))
            .with_help("use `try_sum` to get NULL instead, or cast the values to a wider type")
    }

    #[inline]
    fn add_i64(&self, rows: &mut StateRows<'_>, g: u32, value: i64, n: i64) -> Result<(), EvalError> {
        let seen = rows.i64(g, SEEN);
        if seen == OVERFLOWED {
            return Ok(());
        }
        let sum = rows
            .i64(g, VALUE)
            .checked_add(value)
            .filter(|s| !matches!(self.input, T::YearMonthInterval(..)) || i32::try_from(*s).is_ok());
        match sum {
            Some(sum) => {
                rows.set_i64(g, VALUE, sum);
                rows.set_i64(g, SEEN, seen + n);
            }
            None if self.tried => rows.set_i64(g, SEEN, OVERFLOWED),
            None => return Err(self.overflow()),
        }
        Ok(())
    }

    #[inline]
    fn add_decimal(&self, rows: &mut StateRows<'_>, g: u32, value: i128, n: i64) -> Result<(), EvalError> {
        let seen = rows.i64(g, SEEN_I128);
        if seen == OVERFLOWED {
            return Ok(());
        }
        match rows.i128(g, VALUE).checked_add(value).filter(|s| (-self.limit..=self.limit).contains(s)) {
            Some(sum) => {
                rows.set_i128(g, VALUE, sum);
                rows.set_i64(g, SEEN_I128, seen + n);
            }
            None if self.tried => rows.set_i64(g, SEEN_I128, OVERFLOWED),
            None => return Err(self.overflow()),
        }
        Ok(())
    }

    fn each<P: ArrowPrimitiveType>(
        groups: &[u32],
        array: &ArrayRef,
        mut f: impl FnMut(u32, P::Native) -> Result<(), EvalError>,
    ) -> Result<(), EvalError> {
        let array: &PrimitiveArray<P> = array.as_primitive();
        let values = array.values();
        match array.nulls().filter(|n| n.null_count() > 0) {
            None => {
                for (row, (g, v)) in groups.iter().zip(values).enumerate() {
                    if *g != SKIP {
                        f(*g, *v).map_err(|e| e.at_row(row))?;
                    }
                }
            }
            Some(nulls) => {
                for (row, (g, v)) in groups.iter().zip(values).enumerate() {
                    if *g != SKIP && nulls.is_valid(row) {
                        f(*g, *v).map_err(|e| e.at_row(row))?;
                    }
                }
            }
        }
        Ok(())
    }

    fn update(&self, rows: &mut StateRows<'_>, groups: &[u32], args: &[ArrayRef]) -> Result<(), EvalError> {
        let array = &args[0];
        macro_rules! integers {
            ($p:ty) => {
                match self.total {
                    Total::F64 => Self::each::<$p>(groups, array, |g, v| {
                        add_f64(rows, g, v as f64, 1);
                        Ok(())
                    }),
                    _ => Self::each::<$p>(groups, array, |g, v| self.add_i64(rows, g, v.into(), 1)),
                }
            };
        }
        match &self.input {
            T::Int8 => integers!(Int8Type),
            T::Int16 => integers!(Int16Type),
            T::Int32 => integers!(Int32Type),
            T::Int64 => integers!(Int64Type),
            T::DayTimeInterval(..) => integers!(DurationMicrosecondType),
            T::YearMonthInterval(..) => integers!(IntervalYearMonthType),
            T::Float32 => Self::each::<Float32Type>(groups, array, |g, v| {
                add_f64(rows, g, v.into(), 1);
                Ok(())
            }),
            T::Float64 => Self::each::<Float64Type>(groups, array, |g, v| {
                add_f64(rows, g, v, 1);
                Ok(())
            }),
            T::Decimal(..) => Self::each::<Decimal128Type>(groups, array, |g, v| self.add_decimal(rows, g, v, 1)),
            t => Err(EvalError::internal(format!("a sum of {t}"))),
        }
    }

    fn merge(
        &self,
        dst: &mut StateRows<'_>,
        dst_groups: &[u32],
        src: &StateRows<'_>,
        src_groups: &[u32],
    ) -> Result<(), EvalError> {
        for (d, s) in dst_groups.iter().zip(src_groups) {
            let word = if self.total == Total::Decimal { SEEN_I128 } else { SEEN };
            let n = src.i64(*s, word);
            if n == OVERFLOWED {
                dst.set_i64(*d, word, OVERFLOWED);
                continue;
            }
            match self.total {
                Total::I64 => self.add_i64(dst, *d, src.i64(*s, VALUE), n)?,
                Total::F64 => add_f64(dst, *d, src.f64(*s, VALUE), n),
                Total::Decimal => self.add_decimal(dst, *d, src.i128(*s, VALUE), n)?,
            }
        }
        Ok(())
    }
}

#[inline]
fn add_f64(rows: &mut StateRows<'_>, g: u32, value: f64, n: i64) {
    let (sum, seen) = (rows.f64(g, VALUE), rows.i64(g, SEEN));
    // The empty sum is 0.0, so that a sum of -0.0 is 0.0, as in Spark.
    rows.set_f64(g, VALUE, sum + value);
    rows.set_i64(g, SEEN, seen + n);
}

/// `sum` and `try_sum`.
#[derive(Debug)]
pub(super) struct Sum(Adder);

impl Sum {
    pub(super) fn new(call: &AggCall, tried: bool) -> Result<Sum, EvalError> {
        let input = first_type(call)?.clone();
        let total = match &input {
            T::Decimal(..) => Total::Decimal,
            t if t.is_float() => Total::F64,
            _ => Total::I64,
        };
        let limit = match call.data_type {
            T::Decimal(p, _) => decimal_limit(p),
            _ => 0,
        };
        Ok(Sum(Adder { total, input, result: call.data_type.clone(), tried, limit }))
    }
}

impl Aggregate for Sum {
    fn slots(&self) -> &[SlotType] {
        self.0.total.slots()
    }

    fn update(&self, rows: &mut StateRows<'_>, groups: &[u32], args: &[ArrayRef]) -> Result<(), EvalError> {
        self.0.update(rows, groups, args)
    }

    fn merge(
        &self,
        dst: &mut StateRows<'_>,
        dst_groups: &[u32],
        src: &StateRows<'_>,
        src_groups: &[u32],
    ) -> Result<(), EvalError> {
        self.0.merge(dst, dst_groups, src, src_groups)
    }

    fn finish(&self, rows: &StateRows<'_>, groups: &[u32]) -> Result<ArrayRef, EvalError> {
        let i64s = || groups.iter().map(|g| (rows.i64(*g, SEEN) > 0).then(|| rows.i64(*g, VALUE)));
        Ok(match (self.0.total, &self.0.result) {
            (Total::I64, T::DayTimeInterval(..)) => Arc::new(DurationMicrosecondArray::from_iter(i64s())),
            (Total::I64, T::YearMonthInterval(..)) => {
                Arc::new(IntervalYearMonthArray::from_iter(i64s().map(|v| v.map(|m| m as i32))))
            }
            (Total::I64, _) => Arc::new(Int64Array::from_iter(i64s())),
            (Total::F64, _) => Arc::new(Float64Array::from_iter(
                groups.iter().map(|g| (rows.i64(*g, SEEN) > 0).then(|| rows.f64(*g, VALUE))),
            )),
            (Total::Decimal, t) => Arc::new(
                Decimal128Array::from_iter(
                    groups.iter().map(|g| (rows.i64(*g, SEEN_I128) > 0).then(|| rows.i128(*g, VALUE))),
                )
                .with_data_type(arrow_type(t)),
            ),
        })
    }
}

/// `avg` and `try_avg`.
#[derive(Debug)]
pub(super) struct Avg(Adder);

impl Avg {
    pub(super) fn new(call: &AggCall, tried: bool) -> Result<Avg, EvalError> {
        let input = first_type(call)?.clone();
        let (total, limit) = match &input {
            T::Decimal(p, _) => (Total::Decimal, decimal_limit((p + 10).min(38))),
            t if t.is_numeric() => (Total::F64, 0),
            _ => (Total::I64, 0),
        };
        Ok(Avg(Adder { total, input, result: call.data_type.clone(), tried, limit }))
    }
}

impl Aggregate for Avg {
    fn slots(&self) -> &[SlotType] {
        self.0.total.slots()
    }

    fn update(&self, rows: &mut StateRows<'_>, groups: &[u32], args: &[ArrayRef]) -> Result<(), EvalError> {
        self.0.update(rows, groups, args)
    }

    fn merge(
        &self,
        dst: &mut StateRows<'_>,
        dst_groups: &[u32],
        src: &StateRows<'_>,
        src_groups: &[u32],
    ) -> Result<(), EvalError> {
        self.0.merge(dst, dst_groups, src, src_groups)
    }

    fn finish(&self, rows: &StateRows<'_>, groups: &[u32]) -> Result<ArrayRef, EvalError> {
        // Interval means round half away from zero.
        let i64s = || {
            groups.iter().map(|g| {
                let n = rows.i64(*g, SEEN);
                (n > 0).then(|| divide_half_up(rows.i64(*g, VALUE).into(), n.into()) as i64)
            })
        };
        Ok(match (self.0.total, &self.0.result) {
            (Total::I64, T::YearMonthInterval(..)) => {
                Arc::new(IntervalYearMonthArray::from_iter(i64s().map(|v| v.map(|m| m as i32))))
            }
            (Total::I64, _) => Arc::new(DurationMicrosecondArray::from_iter(i64s())),
            (Total::F64, _) => Arc::new(Float64Array::from_iter(groups.iter().map(|g| {
                let n = rows.i64(*g, SEEN);
                (n > 0).then(|| rows.f64(*g, VALUE) / n as f64)
            }))),
            (Total::Decimal, t) => {
                let (T::Decimal(_, from), T::Decimal(p, s)) = (&self.0.input, t) else {
                    return Err(EvalError::internal("an average of decimals is a decimal"));
                };
                let mut out = Vec::with_capacity(groups.len());
                for g in groups {
                    let n = rows.i64(*g, SEEN_I128);
                    if n <= 0 {
                        out.push(None);
                        continue;
                    }
                    let mean = rescale(rows.i128(*g, VALUE), n.into(), i32::from(*s) - i32::from(*from))
                        .filter(|m| m.abs() <= decimal_limit(*p));
                    match mean {
                        None if !self.0.tried => return Err(self.0.overflow()),
                        mean => out.push(mean),
                    }
                }
                Arc::new(Decimal128Array::from_iter(out).with_data_type(arrow_type(t)))
            }
        })
    }
}
