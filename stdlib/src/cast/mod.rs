//! CAST and TRY_CAST between all types, by Spark's ANSI rules. Whether a pair of types may be cast at all is
//! [`crate::coercion::can_cast`].

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, NullBufferBuilder, PrimitiveArray, new_null_array};
use ssql_ir::{CastMode, DataType as T};

use crate::arrow::{arrow_type, conform};
use crate::call::EvalResult;
use crate::error::EvalError;
use crate::eval::EvalContext;

mod nested;
mod numeric;
mod text;
mod time;

/// Casts every value. In [`CastMode::Ansi`] the first value that does not survive is an error with its row; in
/// [`CastMode::Try`] it becomes NULL.
pub fn cast_array(array: &ArrayRef, from: &T, to: &T, mode: CastMode, ctx: &EvalContext) -> EvalResult {
    if from == to {
        return Ok(array.clone());
    }
    let job = Job { from, to, mode, ctx };
    match (from, to) {
        (T::Null, _) => Ok(new_null_array(&arrow_type(to), array.len())),
        (_, T::String) => text::to_string(&job, array),
        (T::Array(_), T::Array(_)) | (T::Map(..), T::Map(..)) | (T::Struct(_), T::Struct(_)) => {
            conform(nested::cast(&job, array)?, to)
        }
        (T::String, _) => text::from_string(&job, array),
        (f, t) if is_plain(f) && is_plain(t) => numeric::cast(&job, array),
        _ => time::cast(&job, array),
    }
}

fn is_plain(t: &T) -> bool {
    t.is_numeric() || *t == T::Boolean
}

/// One cast.
struct Job<'a> {
    from: &'a T,
    to: &'a T,
    mode: CastMode,
    ctx: &'a EvalContext,
}

impl Job<'_> {
    /// A pair of types that typing refuses.
    fn refused(&self) -> EvalError {
        EvalError::internal(format!("a cast from {} to {}", self.from, self.to))
    }

    /// Converts fixed-width values that always survive.
    fn map<A: ArrowPrimitiveType, B: ArrowPrimitiveType>(
        &self,
        array: &ArrayRef,
        f: impl Fn(A::Native) -> B::Native,
    ) -> EvalResult {
        let array = array.as_primitive::<A>();
        Ok(Arc::new(array.unary::<_, B>(f).with_data_type(arrow_type(self.to))))
    }

    /// Converts row by row: `f` is asked about rows that are not NULL and fails with an error.
    fn rows<B: ArrowPrimitiveType>(
        &self,
        array: &dyn Array,
        mut f: impl FnMut(usize) -> Result<B::Native, EvalError>,
    ) -> EvalResult {
        self.optional_rows::<B>(array, |row| f(row).map(Some))
    }

    /// As [`Job::rows`], where a value may become NULL without being an error.
    fn optional_rows<B: ArrowPrimitiveType>(
        &self,
        array: &dyn Array,
        mut f: impl FnMut(usize) -> Result<Option<B::Native>, EvalError>,
    ) -> EvalResult {
        let mut values = vec![B::Native::default(); array.len()];
        let mut nulls = NullBufferBuilder::new(array.len());
        for (row, slot) in values.iter_mut().enumerate() {
            if array.is_null(row) {
                nulls.append_null();
                continue;
            }
            match f(row) {
                Ok(Some(v)) => {
                    *slot = v;
                    nulls.append_non_null();
                }
                Ok(None) => nulls.append_null(),
                Err(_) if self.mode == CastMode::Try => nulls.append_null(),
                Err(e) => return Err(e.at_row(row)),
            }
        }
        Ok(Arc::new(PrimitiveArray::<B>::new(values.into(), nulls.finish()).with_data_type(arrow_type(self.to))))
    }

    /// Converts fixed-width values; `None` is a value that does not survive, for which `error` speaks.
    fn try_map<A: ArrowPrimitiveType, B: ArrowPrimitiveType>(
        &self,
        array: &ArrayRef,
        f: impl Fn(A::Native) -> Option<B::Native>,
        error: impl Fn(A::Native) -> EvalError,
    ) -> EvalResult {
        let source = array.as_primitive::<A>();
        self.rows::<B>(source, |row| f(source.value(row)).ok_or_else(|| error(source.value(row))))
    }
}
