//! What a function's evaluation is given ([`Call`]) and what it builds its result with.
//!
//! An argument is a column of `rows` values or a constant of one; the typed views ([`Call::i64`], [`Call::str`], ...)
//! read both by row number at the same cost. The builders ([`Call::primitive`], [`Call::strings`], ...) call a closure
//! for each row, and for a strict function only for rows where no argument is NULL, so that it need not look.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BinaryViewArray, BinaryViewBuilder, BooleanArray,
    BooleanBufferBuilder, ListArray, MapArray, NullBufferBuilder, PrimitiveArray, StringViewArray, StringViewBuilder,
    UInt32Array, new_null_array,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    Date32Type, Decimal128Type, DurationMicrosecondType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, IntervalYearMonthType, TimestampMicrosecondType,
};
use ssql_ir::DataType;

use crate::arrow::arrow_type;
use crate::error::EvalError;
use crate::eval::{EvalContext, Lambda};

/// The result of an evaluation.
pub type EvalResult = Result<ArrayRef, EvalError>;

/// An evaluated argument.
#[derive(Debug, Clone)]
pub enum Value<'a> {
    /// One value per row.
    Column(ArrayRef),
    /// One value for all rows (an array of length one).
    Constant(ArrayRef),
    /// A function.
    Lambda(Lambda<'a>),
}

/// One call of a function over a batch of rows.
#[derive(Debug)]
pub struct Call<'a> {
    /// Canonical name, for messages and for functions that share an evaluation.
    pub name: &'a str,
    /// Arguments.
    pub args: Vec<Value<'a>>,
    /// Types of the arguments.
    pub types: Vec<&'a DataType>,
    /// Number of rows to give.
    pub rows: usize,
    /// Type to give.
    pub data_type: &'a DataType,
    /// Whether rows with a NULL argument are NULL without being asked about.
    pub strict: bool,
    /// Time zone, clock, seed.
    pub ctx: &'a EvalContext,
}

/// View of an argument of fixed width.
#[derive(Debug, Clone, Copy)]
pub struct Fixed<'a, T: ArrowPrimitiveType> {
    values: &'a [T::Native],
    nulls: Option<&'a NullBuffer>,
    mask: usize,
}

impl<T: ArrowPrimitiveType> Fixed<'_, T> {
    /// The value in `row`; anything where it is NULL.
    #[inline]
    pub fn get(&self, row: usize) -> T::Native {
        self.values[row & self.mask]
    }

    /// The value in `row`, or `None` where it is NULL.
    #[inline]
    pub fn opt(&self, row: usize) -> Option<T::Native> {
        match self.nulls {
            Some(n) if n.is_null(row & self.mask) => None,
            _ => Some(self.get(row)),
        }
    }
}

/// `f` over two arguments, in loops over slices that vectorise where `f` does.
pub fn zip_with<A: ArrowPrimitiveType, B: ArrowPrimitiveType, O>(
    a: &Fixed<'_, A>,
    b: &Fixed<'_, B>,
    rows: usize,
    mut f: impl FnMut(A::Native, B::Native) -> O,
) -> Vec<O> {
    match (a.mask, b.mask) {
        (0, 0) => (0..rows).map(|_| f(a.values[0], b.values[0])).collect(),
        (0, _) => {
            let x = a.values[0];
            b.values[..rows].iter().map(|y| f(x, *y)).collect()
        }
        (_, 0) => {
            let y = b.values[0];
            a.values[..rows].iter().map(|x| f(*x, y)).collect()
        }
        _ => a.values[..rows].iter().zip(&b.values[..rows]).map(|(x, y)| f(*x, *y)).collect(),
    }
}

/// Calls `f` for each row of two arguments, in loops over slices.
pub fn zip_each<A: ArrowPrimitiveType, B: ArrowPrimitiveType>(
    a: &Fixed<'_, A>,
    b: &Fixed<'_, B>,
    rows: usize,
    mut f: impl FnMut(A::Native, B::Native),
) {
    match (a.mask, b.mask) {
        (0, 0) => (0..rows).for_each(|_| f(a.values[0], b.values[0])),
        (0, _) => b.values[..rows].iter().for_each(|y| f(a.values[0], *y)),
        (_, 0) => a.values[..rows].iter().for_each(|x| f(*x, b.values[0])),
        _ => a.values[..rows].iter().zip(&b.values[..rows]).for_each(|(x, y)| f(*x, *y)),
    }
}

/// View of an argument of which `row` reads the array at `row`, or at 0 if it is a constant.
#[derive(Debug, Clone, Copy)]
pub struct View<'a, A: Array> {
    array: &'a A,
    mask: usize,
}

impl<'a, A: Array> View<'a, A> {
    /// The array: `rows` values, or one for a constant.
    pub fn array(&self) -> &'a A {
        self.array
    }

    /// Where `row` stands in [`View::array`].
    #[inline]
    pub fn index(&self, row: usize) -> usize {
        row & self.mask
    }

    /// Whether `row` is NULL.
    #[inline]
    pub fn is_null(&self, row: usize) -> bool {
        self.array.is_null(row & self.mask)
    }
}

impl<'a> View<'a, StringViewArray> {
    /// The text in `row`; anything where it is NULL.
    #[inline]
    pub fn get(&self, row: usize) -> &'a str {
        self.array.value(row & self.mask)
    }

    /// The text in `row`, or `None` where it is NULL.
    #[inline]
    pub fn opt(&self, row: usize) -> Option<&'a str> {
        if self.is_null(row) { None } else { Some(self.get(row)) }
    }
}

impl<'a> View<'a, BinaryViewArray> {
    /// The bytes in `row`; anything where it is NULL.
    #[inline]
    pub fn get(&self, row: usize) -> &'a [u8] {
        self.array.value(row & self.mask)
    }

    /// The bytes in `row`, or `None` where it is NULL.
    #[inline]
    pub fn opt(&self, row: usize) -> Option<&'a [u8]> {
        if self.is_null(row) { None } else { Some(self.get(row)) }
    }
}

impl View<'_, BooleanArray> {
    /// The value in `row`; anything where it is NULL.
    #[inline]
    pub fn get(&self, row: usize) -> bool {
        self.array.value(row & self.mask)
    }

    /// The value in `row`, or `None` where it is NULL.
    #[inline]
    pub fn opt(&self, row: usize) -> Option<bool> {
        if self.is_null(row) { None } else { Some(self.get(row)) }
    }
}

impl<'a> View<'a, ListArray> {
    /// All elements of all rows.
    pub fn elements(&self) -> &'a ArrayRef {
        self.array.values()
    }

    /// Where the elements of `row` stand in [`View::elements`].
    #[inline]
    pub fn range(&self, row: usize) -> Range<usize> {
        let i = row & self.mask;
        self.array.value_offsets()[i] as usize..self.array.value_offsets()[i + 1] as usize
    }
}

impl<'a> View<'a, MapArray> {
    /// All keys of all rows.
    pub fn keys(&self) -> &'a ArrayRef {
        self.array.keys()
    }

    /// All values of all rows.
    pub fn values(&self) -> &'a ArrayRef {
        self.array.values()
    }

    /// Where the entries of `row` stand in [`View::keys`] and [`View::values`].
    #[inline]
    pub fn range(&self, row: usize) -> Range<usize> {
        let i = row & self.mask;
        self.array.value_offsets()[i] as usize..self.array.value_offsets()[i + 1] as usize
    }
}

macro_rules! fixed_views {
    ($($(#[$doc:meta])* $name:ident: $type:ty;)*) => {
        $($(#[$doc])* pub fn $name(&self, i: usize) -> Fixed<'_, $type> { self.fixed::<$type>(i) })*
    };
}

impl<'a> Call<'a> {
    /// Number of arguments.
    pub fn len(&self) -> usize {
        self.args.len()
    }

    /// Whether there are no arguments.
    pub fn is_empty(&self) -> bool {
        self.args.is_empty()
    }

    /// The argument's array: `rows` values, or one if [`Call::is_constant`]. A lambda has none: that is a fault of the
    /// caller, shown by an empty array of VOID.
    pub fn raw(&self, i: usize) -> &ArrayRef {
        static NOTHING: std::sync::LazyLock<ArrayRef> =
            std::sync::LazyLock::new(|| new_null_array(&arrow::datatypes::DataType::Null, 0));
        match &self.args[i] {
            Value::Column(a) | Value::Constant(a) => a,
            Value::Lambda(_) => &NOTHING,
        }
    }

    /// Whether the argument has one value for all rows.
    pub fn is_constant(&self, i: usize) -> bool {
        matches!(self.args[i], Value::Constant(_))
    }

    /// The argument as a column of `rows` values.
    pub fn column(&self, i: usize) -> EvalResult {
        expand(&self.args[i], self.rows)
    }

    /// The argument as a lambda.
    pub fn lambda(&self, i: usize) -> Result<&Lambda<'a>, EvalError> {
        match &self.args[i] {
            Value::Lambda(l) => Ok(l),
            _ => Err(EvalError::internal(format!("argument {i} of `{}` is no lambda", self.name))),
        }
    }

    fn mask(&self, i: usize) -> usize {
        if self.is_constant(i) { 0 } else { usize::MAX }
    }

    /// View of an argument of that Arrow type, which its type must be stored as.
    pub fn fixed<T: ArrowPrimitiveType>(&self, i: usize) -> Fixed<'_, T> {
        let array = self.raw(i).as_primitive::<T>();
        Fixed { values: array.values(), nulls: array.nulls(), mask: self.mask(i) }
    }

    fixed_views! {
        /// View of a TINYINT argument.
        i8: Int8Type;
        /// View of a SMALLINT argument.
        i16: Int16Type;
        /// View of an INT argument.
        i32: Int32Type;
        /// View of a BIGINT argument.
        i64: Int64Type;
        /// View of a FLOAT argument.
        f32: Float32Type;
        /// View of a DOUBLE argument.
        f64: Float64Type;
        /// View of a DECIMAL argument: unscaled values.
        decimal: Decimal128Type;
        /// View of a DATE argument: days.
        date: Date32Type;
        /// View of a TIMESTAMP or TIMESTAMP_NTZ argument: microseconds.
        timestamp: TimestampMicrosecondType;
        /// View of an INTERVAL DAY TO SECOND argument: microseconds.
        day_time: DurationMicrosecondType;
        /// View of an INTERVAL YEAR TO MONTH argument: months.
        year_month: IntervalYearMonthType;
    }

    /// View of a BOOLEAN argument.
    pub fn bool(&self, i: usize) -> View<'_, BooleanArray> {
        View { array: self.raw(i).as_boolean(), mask: self.mask(i) }
    }

    /// View of a STRING argument.
    pub fn str(&self, i: usize) -> View<'_, StringViewArray> {
        View { array: self.raw(i).as_string_view(), mask: self.mask(i) }
    }

    /// View of a BINARY argument.
    pub fn bytes(&self, i: usize) -> View<'_, BinaryViewArray> {
        View { array: self.raw(i).as_binary_view(), mask: self.mask(i) }
    }

    /// View of an ARRAY argument.
    pub fn list(&self, i: usize) -> View<'_, ListArray> {
        View { array: self.raw(i).as_list::<i32>(), mask: self.mask(i) }
    }

    /// View of a MAP argument.
    pub fn map(&self, i: usize) -> View<'_, MapArray> {
        View { array: self.raw(i).as_map(), mask: self.mask(i) }
    }

    /// The constant STRING argument `i`, if it is one and not NULL: for what is prepared once (a pattern, a path).
    pub fn constant_str(&self, i: usize) -> Option<&str> {
        match self.args.get(i)? {
            Value::Constant(a) if a.is_valid(0) => Some(a.as_string_view().value(0)),
            _ => None,
        }
    }

    /// Where all arguments are not NULL; `None`: everywhere.
    pub fn valid(&self) -> Option<NullBuffer> {
        let mut all: Option<NullBuffer> = None;
        for arg in &self.args {
            match arg {
                Value::Column(a) if a.data_type() == &arrow::datatypes::DataType::Null => {
                    return Some(NullBuffer::new_null(self.rows));
                }
                Value::Column(a) => all = NullBuffer::union(all.as_ref(), a.nulls()),
                Value::Constant(a) if a.is_null(0) || a.data_type() == &arrow::datatypes::DataType::Null => {
                    return Some(NullBuffer::new_null(self.rows));
                }
                Value::Constant(_) | Value::Lambda(_) => {}
            }
        }
        all
    }

    fn asked(&self) -> Option<NullBuffer> {
        if self.strict { self.valid() } else { None }
    }

    /// A column of NULLs of the result type.
    pub fn all_null(&self) -> ArrayRef {
        new_null_array(&arrow_type(self.data_type), self.rows)
    }

    /// An infallible result of fixed width that is never NULL but by strictness: `f` is called for every row, NULL
    /// rows included, in a loop that vectorises.
    pub fn primitive_all<T: ArrowPrimitiveType>(&self, f: impl FnMut(usize) -> T::Native) -> EvalResult {
        let values: Vec<T::Native> = (0..self.rows).map(f).collect();
        Ok(Arc::new(PrimitiveArray::<T>::new(values.into(), self.asked()).with_data_type(arrow_type(self.data_type))))
    }

    /// A result of fixed width, row by row; `None` is NULL.
    pub fn primitive<T: ArrowPrimitiveType>(
        &self,
        mut f: impl FnMut(usize) -> Result<Option<T::Native>, EvalError>,
    ) -> EvalResult {
        let asked = self.asked();
        let mut values: Vec<T::Native> = vec![T::Native::default(); self.rows];
        let mut nulls = NullBufferBuilder::new(self.rows);
        for (row, slot) in values.iter_mut().enumerate() {
            let value = if asked.as_ref().is_some_and(|n| n.is_null(row)) {
                None
            } else {
                f(row).map_err(|e| e.at_row(row))?
            };
            match value {
                Some(v) => {
                    *slot = v;
                    nulls.append_non_null();
                }
                None => nulls.append_null(),
            }
        }
        Ok(Arc::new(PrimitiveArray::<T>::new(values.into(), nulls.finish()).with_data_type(arrow_type(self.data_type))))
    }

    /// A BOOLEAN result, row by row; `None` is NULL.
    pub fn booleans(&self, mut f: impl FnMut(usize) -> Result<Option<bool>, EvalError>) -> EvalResult {
        let asked = self.asked();
        let mut values = BooleanBufferBuilder::new(self.rows);
        let mut nulls = NullBufferBuilder::new(self.rows);
        for row in 0..self.rows {
            let value = if asked.as_ref().is_some_and(|n| n.is_null(row)) {
                None
            } else {
                f(row).map_err(|e| e.at_row(row))?
            };
            values.append(value.unwrap_or(false));
            nulls.append(value.is_some());
        }
        Ok(Arc::new(BooleanArray::new(values.finish(), nulls.finish())))
    }

    /// A STRING result, row by row: `f` writes into the empty buffer it is given; `false` is NULL.
    pub fn strings(&self, mut f: impl FnMut(usize, &mut String) -> Result<bool, EvalError>) -> EvalResult {
        let asked = self.asked();
        let mut out = StringViewBuilder::with_capacity(self.rows);
        let mut buffer = String::new();
        for row in 0..self.rows {
            buffer.clear();
            if asked.as_ref().is_none_or(|n| n.is_valid(row)) && f(row, &mut buffer).map_err(|e| e.at_row(row))? {
                out.append_value(&buffer);
            } else {
                out.append_null();
            }
        }
        Ok(Arc::new(out.finish()))
    }

    /// A STRING result whose values borrow from the arguments (a trimmed or cut text): nothing is copied twice.
    pub fn strs<'s>(&self, mut f: impl FnMut(usize) -> Result<Option<&'s str>, EvalError>) -> EvalResult {
        let asked = self.asked();
        let mut out = StringViewBuilder::with_capacity(self.rows);
        for row in 0..self.rows {
            let value =
                if asked.as_ref().is_none_or(|n| n.is_valid(row)) { f(row).map_err(|e| e.at_row(row))? } else { None };
            out.append_option(value);
        }
        Ok(Arc::new(out.finish()))
    }

    /// A BINARY result, row by row: `f` writes into the empty buffer it is given; `false` is NULL.
    pub fn binaries(&self, mut f: impl FnMut(usize, &mut Vec<u8>) -> Result<bool, EvalError>) -> EvalResult {
        let asked = self.asked();
        let mut out = BinaryViewBuilder::with_capacity(self.rows);
        let mut buffer = Vec::new();
        for row in 0..self.rows {
            buffer.clear();
            if asked.as_ref().is_none_or(|n| n.is_valid(row)) && f(row, &mut buffer).map_err(|e| e.at_row(row))? {
                out.append_value(&buffer);
            } else {
                out.append_null();
            }
        }
        Ok(Arc::new(out.finish()))
    }

    /// A result of any type picked from the rows of `source`: `None` is NULL.
    pub fn pick(&self, source: &ArrayRef, mut f: impl FnMut(usize) -> Result<Option<usize>, EvalError>) -> EvalResult {
        let asked = self.asked();
        let mut indices: Vec<Option<u32>> = Vec::with_capacity(self.rows);
        for row in 0..self.rows {
            let index =
                if asked.as_ref().is_none_or(|n| n.is_valid(row)) { f(row).map_err(|e| e.at_row(row))? } else { None };
            indices.push(index.map(|i| i as u32));
        }
        Ok(arrow::compute::take(source.as_ref(), &UInt32Array::from(indices), None)?)
    }
}

/// The value as a column of that many rows.
pub(crate) fn expand(value: &Value<'_>, rows: usize) -> EvalResult {
    match value {
        Value::Column(a) => Ok(a.clone()),
        Value::Constant(a) if rows == 1 => Ok(a.clone()),
        Value::Constant(a) => match crate::arrow::ir_type(a.data_type())
            .and_then(|t| if t.is_nested() { None } else { Some((crate::arrow::literal_at(a, 0)?, t)) })
        {
            Some((literal, t)) => Ok(crate::arrow::literal_array(&literal, &t, rows)),
            None => Ok(arrow::compute::take(a.as_ref(), &UInt32Array::from_value(0, rows), None)?),
        },
        Value::Lambda(_) => Err(EvalError::internal("a lambda is no column")),
    }
}
