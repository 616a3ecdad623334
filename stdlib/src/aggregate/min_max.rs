//! `min` and `max` over every ordered type.
//!
//! Values of fixed width stand in the row itself. All else is kept as an object: the value's bytes in an encoding whose
//! order is the order of the values (arrow's row format, NULL smallest inside nested values, floats made canonical).

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, Decimal128Array, Float64Array, Int64Array,
    PrimitiveArray, new_null_array,
};
use arrow::compute::cast;
use arrow::datatypes::{
    Date32Type, Decimal128Type, DurationMicrosecondType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, IntervalYearMonthType, TimestampMicrosecondType,
};
use arrow::row::{RowConverter, SortField};
use ssql_ir::{AggCall, DataType as T};

use super::basic::first_type;
use super::layout::{SEEN, SEEN_I128, VALUE};
use super::{Aggregate, SKIP, SlotType, StateRows, codec};
use crate::arrow::{arrow_type, conform};
use crate::compare::{canonical_floats, float_less};
use crate::error::{DecodeError, EvalError};

/// How the extreme value is held.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Held {
    I64,
    F64,
    I128,
    Object,
}

/// `min` (`largest` false) and `max`.
#[derive(Debug)]
pub(super) struct MinMax {
    data_type: T,
    largest: bool,
    held: Held,
}

/// The bytes of an extreme value, see the head of this file.
#[derive(Debug)]
struct Extreme(Vec<u8>);

crate::object_state!(Extreme, |e| e.0.capacity());

impl MinMax {
    pub(super) fn make(call: &AggCall) -> Result<Arc<dyn Aggregate>, EvalError> {
        let data_type = first_type(call)?.clone();
        let held = match &data_type {
            T::Float32 | T::Float64 => Held::F64,
            T::Decimal(..) => Held::I128,
            T::String | T::Binary | T::Array(_) | T::Map(..) | T::Struct(_) | T::Null => Held::Object,
            _ => Held::I64,
        };
        Ok(Arc::new(MinMax { data_type, largest: &*call.function == "max", held }))
    }

    #[inline]
    fn take_i64(&self, rows: &mut StateRows<'_>, g: u32, value: i64, n: i64) {
        let (old, seen) = (rows.i64(g, VALUE), rows.i64(g, SEEN));
        if seen == 0 || if self.largest { value > old } else { value < old } {
            rows.set_i64(g, VALUE, value);
        }
        rows.set_i64(g, SEEN, seen + n);
    }

    #[inline]
    fn take_f64(&self, rows: &mut StateRows<'_>, g: u32, value: f64, n: i64) {
        let (old, seen) = (rows.f64(g, VALUE), rows.i64(g, SEEN));
        if seen == 0 || if self.largest { float_less(old, value) } else { float_less(value, old) } {
            rows.set_f64(g, VALUE, value);
        }
        rows.set_i64(g, SEEN, seen + n);
    }

    #[inline]
    fn take_i128(&self, rows: &mut StateRows<'_>, g: u32, value: i128, n: i64) {
        let (old, seen) = (rows.i128(g, VALUE), rows.i64(g, SEEN_I128));
        if seen == 0 || if self.largest { value > old } else { value < old } {
            rows.set_i128(g, VALUE, value);
        }
        rows.set_i64(g, SEEN_I128, seen + n);
    }

    fn take_bytes(&self, rows: &mut StateRows<'_>, g: u32, value: &[u8]) {
        if rows.i64(g, VALUE) == 0 {
            rows.object_or(g, VALUE, || Extreme(value.to_vec()));
            return;
        }
        let old = rows.object_or(g, VALUE, || Extreme(value.to_vec()));
        if if self.largest { value > &old.0[..] } else { value < &old.0[..] } {
            old.0.clear();
            old.0.extend_from_slice(value);
        }
    }

    fn each<P: ArrowPrimitiveType>(groups: &[u32], array: &ArrayRef, mut f: impl FnMut(u32, P::Native)) {
        let array: &PrimitiveArray<P> = array.as_primitive();
        for (row, (g, v)) in groups.iter().zip(array.values()).enumerate() {
            if *g != SKIP && array.is_valid(row) {
                f(*g, *v);
            }
        }
    }

    fn converter(&self) -> Result<RowConverter, EvalError> {
        Ok(RowConverter::new(vec![SortField::new(arrow_type(&self.data_type))])?)
    }
}

impl Aggregate for MinMax {
    fn slots(&self) -> &[SlotType] {
        match self.held {
            Held::I64 => &[SlotType::I64, SlotType::I64],
            Held::F64 => &[SlotType::F64, SlotType::I64],
            Held::I128 => &[SlotType::I128, SlotType::I64],
            Held::Object => &[SlotType::Object],
        }
    }

    fn update(&self, rows: &mut StateRows<'_>, groups: &[u32], args: &[ArrayRef]) -> Result<(), EvalError> {
        let array = &args[0];
        macro_rules! each_i64 {
            ($p:ty) => {
                Self::each::<$p>(groups, array, |g, v| self.take_i64(rows, g, v.into(), 1))
            };
        }
        match &self.data_type {
            T::Boolean => {
                let array = array.as_boolean();
                for (row, g) in groups.iter().enumerate() {
                    if *g != SKIP && array.is_valid(row) {
                        self.take_i64(rows, *g, array.value(row).into(), 1);
                    }
                }
            }
            T::Int8 => each_i64!(Int8Type),
            T::Int16 => each_i64!(Int16Type),
            T::Int32 => each_i64!(Int32Type),
            T::Int64 => each_i64!(Int64Type),
            T::Date => each_i64!(Date32Type),
            T::Timestamp | T::TimestampNtz => each_i64!(TimestampMicrosecondType),
            T::DayTimeInterval(..) => each_i64!(DurationMicrosecondType),
            T::YearMonthInterval(..) => each_i64!(IntervalYearMonthType),
            T::Float32 => Self::each::<Float32Type>(groups, array, |g, v| self.take_f64(rows, g, v.into(), 1)),
            T::Float64 => Self::each::<Float64Type>(groups, array, |g, v| self.take_f64(rows, g, v, 1)),
            T::Decimal(..) => Self::each::<Decimal128Type>(groups, array, |g, v| self.take_i128(rows, g, v, 1)),
            T::String => {
                let array = array.as_string_view();
                for (row, g) in groups.iter().enumerate() {
                    if *g != SKIP && array.is_valid(row) {
                        self.take_bytes(rows, *g, array.value(row).as_bytes());
                    }
                }
            }
            T::Binary => {
                let array = array.as_binary_view();
                for (row, g) in groups.iter().enumerate() {
                    if *g != SKIP && array.is_valid(row) {
                        self.take_bytes(rows, *g, array.value(row));
                    }
                }
            }
            T::Null => {}
            T::Array(_) | T::Map(..) | T::Struct(_) => {
                let canonical = canonical_floats(array)?;
                let encoded = self.converter()?.convert_columns(&[canonical])?;
                for (row, g) in groups.iter().enumerate() {
                    if *g != SKIP && array.is_valid(row) {
                        self.take_bytes(rows, *g, encoded.row(row).as_ref());
                    }
                }
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
            match self.held {
                Held::I64 if src.i64(*s, SEEN) > 0 => self.take_i64(dst, *d, src.i64(*s, VALUE), src.i64(*s, SEEN)),
                Held::F64 if src.i64(*s, SEEN) > 0 => self.take_f64(dst, *d, src.f64(*s, VALUE), src.i64(*s, SEEN)),
                Held::I128 if src.i64(*s, SEEN_I128) > 0 => {
                    self.take_i128(dst, *d, src.i128(*s, VALUE), src.i64(*s, SEEN_I128));
                }
                Held::Object => {
                    if let Some(value) = src.object::<Extreme>(*s, VALUE) {
                        self.take_bytes(dst, *d, &value.0);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn finish(&self, rows: &StateRows<'_>, groups: &[u32]) -> Result<ArrayRef, EvalError> {
        let i64s = || groups.iter().map(|g| (rows.i64(*g, SEEN) > 0).then(|| rows.i64(*g, VALUE)));
        let target = arrow_type(&self.data_type);
        let objects = || groups.iter().map(|g| rows.object::<Extreme>(*g, VALUE).map(|e| &e.0[..]));
        let array: ArrayRef = match (self.held, &self.data_type) {
            (Held::I64, T::Boolean) => Arc::new(BooleanArray::from_iter(i64s().map(|v| v.map(|b| b != 0)))),
            (Held::I64, T::DayTimeInterval(..)) => {
                Arc::new(PrimitiveArray::<DurationMicrosecondType>::from_iter(i64s()))
            }
            (Held::I64, T::YearMonthInterval(..)) => {
                Arc::new(PrimitiveArray::<IntervalYearMonthType>::from_iter(i64s().map(|v| v.map(|m| m as i32))))
            }
            (Held::I64, T::Date) => {
                Arc::new(PrimitiveArray::<Date32Type>::from_iter(i64s().map(|v| v.map(|d| d as i32))))
            }
            (Held::I64, T::Timestamp | T::TimestampNtz) => {
                Arc::new(PrimitiveArray::<TimestampMicrosecondType>::from_iter(i64s()).with_data_type(target))
            }
            (Held::I64, _) => cast(&Int64Array::from_iter(i64s()), &target)?,
            (Held::F64, _) => {
                let values = groups.iter().map(|g| (rows.i64(*g, SEEN) > 0).then(|| rows.f64(*g, VALUE)));
                cast(&Float64Array::from_iter(values), &target)?
            }
            (Held::I128, _) => {
                let values = groups.iter().map(|g| (rows.i64(*g, SEEN_I128) > 0).then(|| rows.i128(*g, VALUE)));
                Arc::new(Decimal128Array::from_iter(values).with_data_type(target))
            }
            (Held::Object, T::String) => {
                let mut out = arrow::array::StringViewBuilder::with_capacity(groups.len());
                for value in objects() {
                    let text = value.map(std::str::from_utf8).transpose();
                    out.append_option(text.map_err(|_| EvalError::internal("an extreme STRING is UTF-8"))?);
                }
                Arc::new(out.finish())
            }
            (Held::Object, T::Binary) => Arc::new(arrow::array::BinaryViewArray::from_iter(objects())),
            (Held::Object, T::Null) => new_null_array(&target, groups.len()),
            (Held::Object, t) => {
                let converter = self.converter()?;
                let parser = converter.parser();
                // Groups without a value take the row of a NULL.
                let null = converter.convert_columns(&[new_null_array(&target, 1)])?;
                let columns = converter.convert_rows(
                    objects().map(|value| value.map_or_else(|| null.row(0), |bytes| parser.parse(bytes))),
                )?;
                let column = columns.into_iter().next().ok_or_else(|| EvalError::internal("one column went in"))?;
                conform(column, t)?
            }
        };
        Ok(array)
    }

    fn encode(&self, rows: &StateRows<'_>, row: u32, out: &mut Vec<u8>) {
        if self.held != Held::Object {
            out.extend_from_slice(&rows.state(row)[..super::state_size(self.slots())]);
            return;
        }
        match rows.object::<Extreme>(row, VALUE) {
            None => out.push(0),
            Some(value) => {
                out.push(1);
                codec::put_bytes(out, &value.0);
            }
        }
    }

    fn decode(&self, rows: &mut StateRows<'_>, row: u32, input: &mut &[u8]) -> Result<(), DecodeError> {
        if self.held != Held::Object {
            let size = super::state_size(self.slots());
            let bytes = codec::take(input, size)?;
            rows.state_mut(row)[..size].copy_from_slice(bytes);
            return Ok(());
        }
        if codec::take(input, 1)? == [1] {
            let bytes = codec::get_bytes(input)?.to_vec();
            rows.object_or(row, VALUE, || Extreme(bytes));
        }
        Ok(())
    }
}
