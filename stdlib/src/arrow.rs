//! The dialect's types as Arrow types, and constants as arrays.
//!
//! One dialect type has exactly one Arrow type here: STRING is `Utf8View`, BINARY is `BinaryView`, TIMESTAMP is
//! `Timestamp(Microsecond, "UTC")`, TIMESTAMP_NTZ is `Timestamp(Microsecond)`, DATE is `Date32`, DECIMAL is `Decimal128`,
//! intervals are `Duration(Microsecond)` and `Interval(YearMonth)`. What comes from outside in another layout is brought
//! to it by [`normalize`].

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryViewArray, BooleanArray, Date32Array, Decimal128Array, DurationMicrosecondArray,
    Float32Array, Float64Array, Int8Array, Int16Array, Int32Array, Int64Array, IntervalYearMonthArray, ListArray,
    MapArray, NullArray, StringViewArray, StructArray, TimestampMicrosecondArray, UInt32Array, new_null_array,
};
use arrow::datatypes::{DataType as ArrowType, Field as ArrowField, Fields, IntervalUnit, Schema, SchemaRef, TimeUnit};
use ssql_ir as ir;

use crate::error::EvalError;

/// The Arrow type of a dialect type.
///
/// Elements, map values and struct members may always be NULL in the Arrow type, whatever the dialect type says: values
/// of `ARRAY<INT NOT NULL>` are values of `ARRAY<INT>` as they stand, and batches of both can be put together.
pub fn arrow_type(t: &ir::DataType) -> ArrowType {
    match t {
        ir::DataType::Null => ArrowType::Null,
        ir::DataType::Boolean => ArrowType::Boolean,
        ir::DataType::Int8 => ArrowType::Int8,
        ir::DataType::Int16 => ArrowType::Int16,
        ir::DataType::Int32 => ArrowType::Int32,
        ir::DataType::Int64 => ArrowType::Int64,
        ir::DataType::Float32 => ArrowType::Float32,
        ir::DataType::Float64 => ArrowType::Float64,
        ir::DataType::Decimal(p, s) => ArrowType::Decimal128(*p, *s as i8),
        ir::DataType::String => ArrowType::Utf8View,
        ir::DataType::Binary => ArrowType::BinaryView,
        ir::DataType::Date => ArrowType::Date32,
        ir::DataType::Timestamp => ArrowType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        ir::DataType::TimestampNtz => ArrowType::Timestamp(TimeUnit::Microsecond, None),
        ir::DataType::DayTimeInterval(..) => ArrowType::Duration(TimeUnit::Microsecond),
        ir::DataType::YearMonthInterval(..) => ArrowType::Interval(IntervalUnit::YearMonth),
        ir::DataType::Array(element) => ArrowType::List(Arc::new(member("element", &element.data_type, true))),
        ir::DataType::Map(key, value) => {
            let entries =
                Fields::from(vec![member("key", &key.data_type, false), member("value", &value.data_type, true)]);
            ArrowType::Map(Arc::new(ArrowField::new("entries", ArrowType::Struct(entries), false)), false)
        }
        ir::DataType::Struct(fields) => {
            ArrowType::Struct(fields.iter().map(|f| member(&f.name, &f.data_type, true)).collect())
        }
    }
}

/// The Arrow field of a column or struct member.
pub fn arrow_field(f: &ir::Field) -> ArrowField {
    member(&f.name, &f.data_type, f.nullable)
}

/// Where an Arrow field notes the fields of an interval, such as `HOUR TO MINUTE`. It is absent where it would say what
/// Arrow's type says: all fields.
const INTERVAL_FIELDS: &str = "ssql.interval";

fn member(name: &str, t: &ir::DataType, nullable: bool) -> ArrowField {
    let field = ArrowField::new(name, arrow_type(t), nullable);
    match t {
        ir::DataType::DayTimeInterval(..) | ir::DataType::YearMonthInterval(..)
            if *t != ir::DataType::DAY_TO_SECOND && *t != ir::DataType::YEAR_TO_MONTH =>
        {
            let words = t.to_string();
            let words = words.strip_prefix("INTERVAL ").unwrap_or(&words);
            field.with_metadata([(INTERVAL_FIELDS.to_owned(), words.to_owned())].into())
        }
        _ => field,
    }
}

/// The interval type that an Arrow field notes; `None` where it notes none.
pub(crate) fn interval_of_field(f: &ArrowField) -> Option<ir::DataType> {
    let words = f.metadata().get(INTERVAL_FIELDS)?;
    match words.split_once(" TO ") {
        Some((first, last)) => ir::DataType::interval(first, Some(last)),
        None => ir::DataType::interval(words, None),
    }
}

/// The dialect type of a column or struct member; see [`ir_type`].
pub fn ir_field_type(f: &ArrowField) -> Option<ir::DataType> {
    interval_of_field(f).or_else(|| ir_type(f.data_type()))
}

/// The Arrow schema of a relation.
pub fn arrow_schema(s: &ir::Schema) -> SchemaRef {
    Arc::new(Schema::new(s.fields.iter().map(arrow_field).collect::<Vec<_>>()))
}

/// The dialect type that holds the values of an Arrow type, whatever its layout; `None` where there is none.
/// An array of another layout than [`arrow_type`] gives has to go through [`normalize`].
pub fn ir_type(t: &ArrowType) -> Option<ir::DataType> {
    Some(match t {
        ArrowType::Null => ir::DataType::Null,
        ArrowType::Boolean => ir::DataType::Boolean,
        ArrowType::Int8 => ir::DataType::Int8,
        ArrowType::Int16 | ArrowType::UInt8 => ir::DataType::Int16,
        ArrowType::Int32 | ArrowType::UInt16 => ir::DataType::Int32,
        ArrowType::Int64 | ArrowType::UInt32 => ir::DataType::Int64,
        ArrowType::UInt64 => ir::DataType::Decimal(20, 0),
        ArrowType::Float16 | ArrowType::Float32 => ir::DataType::Float32,
        ArrowType::Float64 => ir::DataType::Float64,
        ArrowType::Decimal32(p, s) | ArrowType::Decimal64(p, s) | ArrowType::Decimal128(p, s)
            if *s >= 0 && (*s as u8) <= *p =>
        {
            ir::DataType::Decimal(*p, *s as u8)
        }
        ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View => ir::DataType::String,
        ArrowType::Binary | ArrowType::LargeBinary | ArrowType::BinaryView | ArrowType::FixedSizeBinary(_) => {
            ir::DataType::Binary
        }
        ArrowType::Date32 | ArrowType::Date64 => ir::DataType::Date,
        ArrowType::Timestamp(_, Some(_)) => ir::DataType::Timestamp,
        ArrowType::Timestamp(_, None) => ir::DataType::TimestampNtz,
        ArrowType::Duration(_) => ir::DataType::DAY_TO_SECOND,
        ArrowType::Interval(IntervalUnit::YearMonth) => ir::DataType::YEAR_TO_MONTH,
        ArrowType::Dictionary(_, value) => return ir_type(value),
        ArrowType::List(f) | ArrowType::LargeList(f) | ArrowType::FixedSizeList(f, _) => {
            ir::DataType::Array(Box::new(ir::Field::new("element", ir_field_type(f)?, f.is_nullable())))
        }
        ArrowType::Map(entries, _) => {
            let ArrowType::Struct(kv) = entries.data_type() else { return None };
            let [key, value] = kv.as_ref() else { return None };
            ir::DataType::Map(
                Box::new(ir::Field::new("key", ir_field_type(key)?, false)),
                Box::new(ir::Field::new("value", ir_field_type(value)?, value.is_nullable())),
            )
        }
        ArrowType::Struct(fields) => ir::DataType::Struct(
            fields
                .iter()
                .map(|f| Some(ir::Field::new(f.name(), ir_field_type(f)?, f.is_nullable())))
                .collect::<Option<_>>()?,
        ),
        _ => return None,
    })
}

/// Brings an array of any layout that [`ir_type`] knows to the one layout of the dialect type `to`.
///
/// Field names and nullability of nested types are taken from `to`; values are not checked against them.
/// Errors where arrow has no conversion, or a value does not survive it (a time unit that overflows).
pub fn normalize(array: &ArrayRef, to: &ir::DataType) -> Result<ArrayRef, EvalError> {
    let target = arrow_type(to);
    if array.data_type() == &target {
        return Ok(array.clone());
    }
    conform_or_cast(array, &target)
}

/// Gives an array that holds the right values the exact Arrow type of `to`: nested field names and nullability.
/// Cheap: buffers are shared.
pub(crate) fn conform(array: ArrayRef, to: &ir::DataType) -> Result<ArrayRef, EvalError> {
    match to {
        ir::DataType::Array(_) | ir::DataType::Map(..) | ir::DataType::Struct(_) => {
            let target = arrow_type(to);
            if array.data_type() == &target { Ok(array) } else { conform_or_cast(&array, &target) }
        }
        // Flat types carry nothing that may differ.
        _ => {
            debug_assert_eq!(array.data_type(), &arrow_type(to), "an evaluation gives the type that typing says");
            Ok(array)
        }
    }
}

fn conform_or_cast(array: &ArrayRef, target: &ArrowType) -> Result<ArrayRef, EvalError> {
    if array.data_type() == target {
        return Ok(array.clone());
    }
    match (array.data_type(), target) {
        (ArrowType::Null, _) => Ok(new_null_array(target, array.len())),
        (ArrowType::List(_), ArrowType::List(field)) => {
            let list = array.as_any().downcast_ref::<ListArray>().expect("the type says so");
            let values = conform_or_cast(list.values(), field.data_type())?;
            Ok(Arc::new(ListArray::try_new(field.clone(), list.offsets().clone(), values, list.nulls().cloned())?))
        }
        (ArrowType::Map(..), ArrowType::Map(entries, sorted)) => {
            let map = array.as_any().downcast_ref::<MapArray>().expect("the type says so");
            let ArrowType::Struct(fields) = entries.data_type() else {
                return Err(EvalError::internal("a map's entries are a struct"));
            };
            let columns = map
                .entries()
                .columns()
                .iter()
                .zip(fields)
                .map(|(c, f)| conform_or_cast(c, f.data_type()))
                .collect::<Result<Vec<_>, _>>()?;
            let structs = StructArray::try_new(fields.clone(), columns, None)?;
            Ok(Arc::new(MapArray::try_new(
                entries.clone(),
                map.offsets().clone(),
                structs,
                map.nulls().cloned(),
                *sorted,
            )?))
        }
        (ArrowType::Struct(from), ArrowType::Struct(fields)) if from.len() == fields.len() => {
            let s = array.as_any().downcast_ref::<StructArray>().expect("the type says so");
            if fields.is_empty() {
                return Ok(Arc::new(StructArray::new_empty_fields(s.len(), s.nulls().cloned())));
            }
            let columns = s
                .columns()
                .iter()
                .zip(fields)
                .map(|(c, f)| conform_or_cast(c, f.data_type()))
                .collect::<Result<Vec<_>, _>>()?;
            Ok(Arc::new(StructArray::try_new(fields.clone(), columns, s.nulls().cloned())?))
        }
        _ => {
            let options = arrow::compute::CastOptions { safe: false, ..Default::default() };
            Ok(arrow::compute::cast_with_options(array, target, &options)?)
        }
    }
}

/// `rows` copies of the constant `l` of type `t`. A constant that is not of that type's form (which the IR's verifier
/// rules out) gives NULLs.
pub fn literal_array(l: &ir::Literal, t: &ir::DataType, rows: usize) -> ArrayRef {
    use ir::{DataType as T, Literal as L};
    match (l, t) {
        (L::Boolean(v), T::Boolean) => Arc::new(BooleanArray::from(vec![*v; rows])),
        (L::Int(v), T::Int8) => Arc::new(Int8Array::from_value(*v as i8, rows)),
        (L::Int(v), T::Int16) => Arc::new(Int16Array::from_value(*v as i16, rows)),
        (L::Int(v), T::Int32) => Arc::new(Int32Array::from_value(*v as i32, rows)),
        (L::Int(v), T::Int64) => Arc::new(Int64Array::from_value(*v, rows)),
        (L::Int(v), T::Date) => Arc::new(Date32Array::from_value(*v as i32, rows)),
        (L::Int(v), T::Timestamp) => {
            Arc::new(TimestampMicrosecondArray::from_value(*v, rows).with_data_type(arrow_type(t)))
        }
        (L::Int(v), T::TimestampNtz) => Arc::new(TimestampMicrosecondArray::from_value(*v, rows)),
        (L::Int(v), T::DayTimeInterval(..)) => Arc::new(DurationMicrosecondArray::from_value(*v, rows)),
        (L::Int(v), T::YearMonthInterval(..)) => Arc::new(IntervalYearMonthArray::from_value(*v as i32, rows)),
        (L::Float(v), T::Float32) => Arc::new(Float32Array::from_value(*v as f32, rows)),
        (L::Float(v), T::Float64) => Arc::new(Float64Array::from_value(*v, rows)),
        (L::Decimal(v), T::Decimal(..)) => {
            Arc::new(Decimal128Array::from_value(*v, rows).with_data_type(arrow_type(t)))
        }
        (L::String(v), T::String) => repeat(Arc::new(StringViewArray::from_iter_values([v])), rows),
        (L::Binary(v), T::Binary) => repeat(Arc::new(BinaryViewArray::from_iter_values([v])), rows),
        (L::Null, T::Null) => Arc::new(NullArray::new(rows)),
        _ => new_null_array(&arrow_type(t), rows),
    }
}

/// `rows` copies of the one value of `array`; of a text only its view is copied.
fn repeat(array: ArrayRef, rows: usize) -> ArrayRef {
    if rows == 1 {
        return array;
    }
    arrow::compute::take(array.as_ref(), &UInt32Array::from_value(0, rows), None).expect("row 0 is there")
}

/// The value in `row` as a constant; `None` for nested types, which have no constant form.
pub fn literal_at(array: &dyn Array, row: usize) -> Option<ir::Literal> {
    use arrow::array::AsArray;
    use arrow::datatypes as dt;
    use ir::Literal as L;
    if array.is_null(row) || array.data_type() == &ArrowType::Null {
        return Some(L::Null);
    }
    Some(match array.data_type() {
        ArrowType::Boolean => L::Boolean(array.as_boolean().value(row)),
        ArrowType::Int8 => L::Int(array.as_primitive::<dt::Int8Type>().value(row).into()),
        ArrowType::Int16 => L::Int(array.as_primitive::<dt::Int16Type>().value(row).into()),
        ArrowType::Int32 => L::Int(array.as_primitive::<dt::Int32Type>().value(row).into()),
        ArrowType::Int64 => L::Int(array.as_primitive::<dt::Int64Type>().value(row)),
        ArrowType::Float32 => L::Float(array.as_primitive::<dt::Float32Type>().value(row).into()),
        ArrowType::Float64 => L::Float(array.as_primitive::<dt::Float64Type>().value(row)),
        ArrowType::Date32 => L::Int(array.as_primitive::<dt::Date32Type>().value(row).into()),
        ArrowType::Timestamp(TimeUnit::Microsecond, _) => {
            L::Int(array.as_primitive::<dt::TimestampMicrosecondType>().value(row))
        }
        ArrowType::Duration(TimeUnit::Microsecond) => {
            L::Int(array.as_primitive::<dt::DurationMicrosecondType>().value(row))
        }
        ArrowType::Interval(IntervalUnit::YearMonth) => {
            L::Int(array.as_primitive::<dt::IntervalYearMonthType>().value(row).into())
        }
        ArrowType::Decimal128(..) => L::Decimal(array.as_primitive::<dt::Decimal128Type>().value(row)),
        ArrowType::Utf8View => L::String(array.as_string_view().value(row).to_owned()),
        ArrowType::BinaryView => L::Binary(array.as_binary_view().value(row).to_vec()),
        _ => return None,
    })
}
