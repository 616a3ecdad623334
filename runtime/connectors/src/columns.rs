//! Columns under construction: one builder per dialect type, fed a value at a time by the row decoders.
//!
//! A row may be taken back ([`Column::truncate`]), since a record can turn out to be malformed after half of its values
//! were read, and a field that occurs twice counts with its last value.

use std::sync::Arc;

use arrow::array::builder::NullBufferBuilder;
use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, DurationMicrosecondArray, Float32Array, Float64Array,
    Int8Array, Int16Array, Int32Array, Int64Array, IntervalYearMonthArray, ListArray, MapArray, NullArray, StructArray,
    TimestampMicrosecondArray,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{DataType as ArrowType, Field as ArrowField, Fields};
use ssql_ir::{DataType, Field};
use ssql_stdlib::arrow_type;

use crate::views::Views;

/// Rows that a decoder gathers before it hands over a batch: few enough to stay in the second-level cache.
pub const MAX_BATCH_ROWS: usize = 8192;

/// The same type with NULL allowed everywhere: what comes from outside keeps no promise (as Spark's `asNullable`).
pub fn nullable_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Array(e) => DataType::Array(Box::new(nullable_field(e))),
        DataType::Map(k, v) => DataType::Map(
            Box::new(Field::new(k.name.clone(), nullable_type(&k.data_type), false)),
            Box::new(nullable_field(v)),
        ),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(nullable_field).collect()),
        other => other.clone(),
    }
}

/// The same field with NULL allowed everywhere.
pub fn nullable_field(field: &Field) -> Field {
    Field::new(field.name.clone(), nullable_type(&field.data_type), true)
}

/// Values of one fixed-width type.
#[derive(Debug)]
pub(crate) struct Fixed<T> {
    values: Vec<T>,
    nulls: NullBufferBuilder,
}

impl<T: Copy + Default> Fixed<T> {
    fn new() -> Fixed<T> {
        Fixed { values: Vec::with_capacity(MAX_BATCH_ROWS), nulls: NullBufferBuilder::new(MAX_BATCH_ROWS) }
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, value: T) {
        self.values.push(value);
        self.nulls.append_non_null();
    }

    fn push_null(&mut self) {
        self.values.push(T::default());
        self.nulls.append_null();
    }

    fn truncate(&mut self, len: usize) {
        self.values.truncate(len);
        self.nulls.truncate(len);
    }

    fn take(&mut self) -> (Vec<T>, Option<NullBuffer>) {
        let fresh = Vec::with_capacity(self.values.capacity().min(MAX_BATCH_ROWS));
        (std::mem::replace(&mut self.values, fresh), self.nulls.finish())
    }
}

/// ARRAY values.
#[derive(Debug)]
pub(crate) struct ListColumn {
    field: Arc<ArrowField>,
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
    pub(crate) items: Column,
}

/// MAP values.
#[derive(Debug)]
pub(crate) struct MapColumn {
    field: Arc<ArrowField>,
    entries: Fields,
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
    pub(crate) keys: Column,
    pub(crate) values: Column,
}

/// STRUCT values.
#[derive(Debug)]
pub(crate) struct StructColumn {
    fields: Fields,
    len: usize,
    nulls: NullBufferBuilder,
    pub(crate) names: Vec<Box<[u8]>>,
    pub(crate) members: Vec<Column>,
}

/// A column of any type.
#[derive(Debug)]
pub(crate) enum Column {
    Null(usize),
    Boolean(Fixed<bool>),
    Int8(Fixed<i8>),
    Int16(Fixed<i16>),
    Int32(Fixed<i32>),
    Int64(Fixed<i64>),
    Float32(Fixed<f32>),
    Float64(Fixed<f64>),
    Decimal(Fixed<i128>, u8, u8),
    String(Views),
    Binary(Views),
    Date(Fixed<i32>),
    Timestamp(Fixed<i64>),
    TimestampNtz(Fixed<i64>),
    /// With its type: the text of a value has the fields of it.
    DayTime(Fixed<i64>, DataType),
    YearMonth(Fixed<i32>, DataType),
    List(Box<ListColumn>),
    Map(Box<MapColumn>),
    Struct(Box<StructColumn>),
}

impl Column {
    /// An empty column of that type, with NULL allowed everywhere.
    pub(crate) fn new(data_type: &DataType) -> Column {
        match data_type {
            DataType::Null => Column::Null(0),
            DataType::Boolean => Column::Boolean(Fixed::new()),
            DataType::Int8 => Column::Int8(Fixed::new()),
            DataType::Int16 => Column::Int16(Fixed::new()),
            DataType::Int32 => Column::Int32(Fixed::new()),
            DataType::Int64 => Column::Int64(Fixed::new()),
            DataType::Float32 => Column::Float32(Fixed::new()),
            DataType::Float64 => Column::Float64(Fixed::new()),
            DataType::Decimal(p, s) => Column::Decimal(Fixed::new(), *p, *s),
            DataType::String => Column::String(Views::new()),
            DataType::Binary => Column::Binary(Views::new()),
            DataType::Date => Column::Date(Fixed::new()),
            DataType::Timestamp => Column::Timestamp(Fixed::new()),
            DataType::TimestampNtz => Column::TimestampNtz(Fixed::new()),
            DataType::DayTimeInterval(..) => Column::DayTime(Fixed::new(), data_type.clone()),
            DataType::YearMonthInterval(..) => Column::YearMonth(Fixed::new(), data_type.clone()),
            DataType::Array(element) => {
                let element = nullable_field(element);
                let field = Arc::new(ssql_stdlib::arrow_field(&ssql_ir::Field::new(
                    "element",
                    element.data_type.clone(),
                    true,
                )));
                Column::List(Box::new(ListColumn {
                    field,
                    offsets: vec![0],
                    nulls: NullBufferBuilder::new(0),
                    items: Column::new(&element.data_type),
                }))
            }
            DataType::Map(key, value) => {
                let map = arrow_type(&nullable_type(data_type));
                let ArrowType::Map(field, _) = map else { unreachable!("a MAP is an Arrow map") };
                let ArrowType::Struct(entries) = field.data_type().clone() else {
                    unreachable!("the entries of an Arrow map are structs")
                };
                Column::Map(Box::new(MapColumn {
                    field,
                    entries,
                    offsets: vec![0],
                    nulls: NullBufferBuilder::new(0),
                    keys: Column::new(&key.data_type),
                    values: Column::new(&value.data_type),
                }))
            }
            DataType::Struct(fields) => Column::Struct(Box::new(StructColumn {
                fields: fields.iter().map(|f| ssql_stdlib::arrow_field(&nullable_field(f))).collect(),
                len: 0,
                nulls: NullBufferBuilder::new(0),
                names: fields.iter().map(|f| f.name.as_bytes().into()).collect(),
                members: fields.iter().map(|f| Column::new(&f.data_type)).collect(),
            })),
        }
    }

    /// Values held.
    pub(crate) fn len(&self) -> usize {
        match self {
            Column::Null(n) => *n,
            Column::Boolean(c) => c.values.len(),
            Column::Int8(c) => c.values.len(),
            Column::Int16(c) => c.values.len(),
            Column::Int32(c) | Column::Date(c) | Column::YearMonth(c, _) => c.values.len(),
            Column::Int64(c) | Column::Timestamp(c) | Column::TimestampNtz(c) | Column::DayTime(c, _) => c.values.len(),
            Column::Float32(c) => c.values.len(),
            Column::Float64(c) => c.values.len(),
            Column::Decimal(c, ..) => c.values.len(),
            Column::String(c) | Column::Binary(c) => c.len(),
            Column::List(c) => c.offsets.len() - 1,
            Column::Map(c) => c.offsets.len() - 1,
            Column::Struct(c) => c.len,
        }
    }

    /// Adds a NULL.
    pub(crate) fn push_null(&mut self) {
        match self {
            Column::Null(n) => *n += 1,
            Column::Boolean(c) => c.push_null(),
            Column::Int8(c) => c.push_null(),
            Column::Int16(c) => c.push_null(),
            Column::Int32(c) | Column::Date(c) | Column::YearMonth(c, _) => c.push_null(),
            Column::Int64(c) | Column::Timestamp(c) | Column::TimestampNtz(c) | Column::DayTime(c, _) => c.push_null(),
            Column::Float32(c) => c.push_null(),
            Column::Float64(c) => c.push_null(),
            Column::Decimal(c, ..) => c.push_null(),
            Column::String(c) | Column::Binary(c) => c.push_null(),
            Column::List(c) => c.close(false),
            Column::Map(c) => c.close(false),
            Column::Struct(c) => {
                c.members.iter_mut().for_each(Column::push_null);
                c.len += 1;
                c.nulls.append_null();
            }
        }
    }

    /// Takes back all values from the `len`th on.
    pub(crate) fn truncate(&mut self, len: usize) {
        match self {
            Column::Null(n) => *n = (*n).min(len),
            Column::Boolean(c) => c.truncate(len),
            Column::Int8(c) => c.truncate(len),
            Column::Int16(c) => c.truncate(len),
            Column::Int32(c) | Column::Date(c) | Column::YearMonth(c, _) => c.truncate(len),
            Column::Int64(c) | Column::Timestamp(c) | Column::TimestampNtz(c) | Column::DayTime(c, _) => {
                c.truncate(len)
            }
            Column::Float32(c) => c.truncate(len),
            Column::Float64(c) => c.truncate(len),
            Column::Decimal(c, ..) => c.truncate(len),
            Column::String(c) | Column::Binary(c) => c.truncate(len),
            Column::List(c) => {
                c.offsets.truncate(len + 1);
                c.nulls.truncate(len);
                c.reopen();
            }
            Column::Map(c) => {
                c.offsets.truncate(len + 1);
                c.nulls.truncate(len);
                c.reopen();
            }
            Column::Struct(c) => {
                c.len = c.len.min(len);
                c.nulls.truncate(len);
                c.members.iter_mut().for_each(|m| m.truncate(len));
            }
        }
    }

    /// The values as an array; the column is empty afterwards. `buffers` are those that string views point into.
    pub(crate) fn finish(&mut self, buffers: &Arc<[Buffer]>) -> ArrayRef {
        match self {
            Column::Null(n) => Arc::new(NullArray::new(std::mem::take(n))),
            Column::Boolean(c) => {
                let (values, nulls) = c.take();
                Arc::new(BooleanArray::new(BooleanBuffer::from(values), nulls))
            }
            Column::Int8(c) => fixed(c, Int8Array::new),
            Column::Int16(c) => fixed(c, Int16Array::new),
            Column::Int32(c) => fixed(c, Int32Array::new),
            Column::Int64(c) => fixed(c, Int64Array::new),
            Column::Float32(c) => fixed(c, Float32Array::new),
            Column::Float64(c) => fixed(c, Float64Array::new),
            Column::Decimal(c, precision, scale) => {
                let (values, nulls) = c.take();
                let array = Decimal128Array::new(values.into(), nulls);
                Arc::new(array.with_data_type(ArrowType::Decimal128(*precision, *scale as i8)))
            }
            Column::Date(c) => fixed(c, Date32Array::new),
            Column::Timestamp(c) => {
                let (values, nulls) = c.take();
                Arc::new(TimestampMicrosecondArray::new(values.into(), nulls).with_timezone("UTC"))
            }
            Column::TimestampNtz(c) => fixed(c, TimestampMicrosecondArray::new),
            Column::DayTime(c, _) => fixed(c, DurationMicrosecondArray::new),
            Column::YearMonth(c, _) => fixed(c, IntervalYearMonthArray::new),
            Column::String(c) => Arc::new(c.finish_string(buffers)),
            Column::Binary(c) => Arc::new(c.finish_binary(buffers)),
            Column::List(c) => {
                let offsets = std::mem::replace(&mut c.offsets, vec![0]);
                let items = c.items.finish(buffers);
                Arc::new(ListArray::new(c.field.clone(), OffsetBuffer::new(offsets.into()), items, c.nulls.finish()))
            }
            Column::Map(c) => {
                let offsets = std::mem::replace(&mut c.offsets, vec![0]);
                let columns = vec![c.keys.finish(buffers), c.values.finish(buffers)];
                let entries = StructArray::new(c.entries.clone(), columns, None);
                let offsets = OffsetBuffer::new(offsets.into());
                Arc::new(MapArray::new(c.field.clone(), offsets, entries, c.nulls.finish(), false))
            }
            Column::Struct(c) => {
                let len = std::mem::take(&mut c.len);
                let nulls = c.nulls.finish();
                let members: Vec<_> = c.members.iter_mut().map(|m| m.finish(buffers)).collect();
                let array = StructArray::try_new_with_length(c.fields.clone(), members, nulls, len);
                Arc::new(array.expect("members have the struct's fields and as many values as the struct"))
            }
        }
    }
}

/// One array of a primitive type from its values and nulls.
fn fixed<T, A>(column: &mut Fixed<T>, make: impl FnOnce(ScalarBuffer<T>, Option<NullBuffer>) -> A) -> ArrayRef
where
    T: Copy + Default + arrow::datatypes::ArrowNativeType,
    A: arrow::array::Array + 'static,
{
    let (values, nulls) = column.take();
    Arc::new(make(values.into(), nulls))
}

impl StructColumn {
    /// Whether the newest value is not NULL.
    pub(crate) fn is_last_valid(&self) -> bool {
        self.len > 0 && self.nulls.is_valid(self.len - 1)
    }
}

impl ListColumn {
    /// Ends the value whose items were added since the last end; without `valid` it is NULL and has none.
    pub(crate) fn close(&mut self, valid: bool) {
        if !valid {
            self.reopen();
        }
        self.offsets.push(self.items.len() as i32);
        self.nulls.append(valid);
    }

    /// Takes back items that were added since the last end.
    pub(crate) fn reopen(&mut self) {
        self.items.truncate(*self.offsets.last().expect("offsets begin with 0") as usize);
    }
}

impl MapColumn {
    /// Ends the value whose entries were added since the last end; without `valid` it is NULL and has none.
    pub(crate) fn close(&mut self, valid: bool) {
        if !valid {
            self.reopen();
        }
        self.offsets.push(self.keys.len() as i32);
        self.nulls.append(valid);
    }

    /// Takes back entries that were added since the last end.
    pub(crate) fn reopen(&mut self) {
        let len = *self.offsets.last().expect("offsets begin with 0") as usize;
        self.keys.truncate(len);
        self.values.truncate(len);
    }
}

impl StructColumn {
    /// Values held: the row that is being read has this number.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Ends a value: members that did not occur are NULL.
    pub(crate) fn close(&mut self) {
        self.len += 1;
        for member in &mut self.members {
            if member.len() < self.len {
                member.push_null();
            }
        }
        self.nulls.append_non_null();
    }
}
