//! The order of values: Spark's. NaN is one value and the largest, -0.0 equals 0.0, and inside nested values NULL is
//! equal to NULL and smaller than all else.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, Float32Array, Float64Array, ListArray, MapArray, PrimitiveArray,
    StructArray,
};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType as ArrowType, Float32Type, Float64Type};

use crate::error::EvalError;

/// Whether `a` comes before `b`.
#[inline]
pub fn float_less<F: PartialOrd + Copy>(a: F, b: F) -> bool {
    // A NaN is not equal to itself.
    #[allow(clippy::eq_op)]
    let (a_nan, b_nan) = (a != a, b != b);
    a < b || (b_nan && !a_nan)
}

/// Whether both are the same value.
#[inline]
pub fn float_equal<F: PartialOrd + Copy>(a: F, b: F) -> bool {
    #[allow(clippy::eq_op)]
    let both_nan = a != a && b != b;
    a == b || both_nan
}

/// The order of two floats.
#[inline]
pub fn float_order<F: PartialOrd + Copy>(a: F, b: F) -> Ordering {
    if float_less(a, b) {
        Ordering::Less
    } else if float_equal(a, b) {
        Ordering::Equal
    } else {
        Ordering::Greater
    }
}

/// Compares row `i` of one array with row `j` of another.
pub type Comparator = Box<dyn Fn(usize, usize) -> Ordering + Send + Sync>;

/// A comparator of the values of two arrays of one type, NULL smallest at every level. Maps have no order of their own;
/// they compare by their entries as stored, which serves equality of maps built alike.
pub fn comparator(left: &dyn Array, right: &dyn Array) -> Result<Comparator, EvalError> {
    let (ln, rn) = (left.logical_nulls(), right.logical_nulls());
    let values: Comparator = match (left.data_type(), right.data_type()) {
        (ArrowType::Float32, ArrowType::Float32) => floats::<Float32Type>(left, right),
        (ArrowType::Float64, ArrowType::Float64) => floats::<Float64Type>(left, right),
        (ArrowType::Null, ArrowType::Null) => return Ok(Box::new(|_, _| Ordering::Equal)),
        (ArrowType::Struct(_), ArrowType::Struct(_)) => {
            let (l, r) = (left.as_struct(), right.as_struct());
            let fields =
                l.columns().iter().zip(r.columns()).map(|(a, b)| comparator(a, b)).collect::<Result<Vec<_>, _>>()?;
            Box::new(move |i, j| fields.iter().map(|f| f(i, j)).find(|o| o.is_ne()).unwrap_or(Ordering::Equal))
        }
        (ArrowType::List(_), ArrowType::List(_)) => {
            let (l, r) = (left.as_list::<i32>(), right.as_list::<i32>());
            lists(l.offsets(), l.values(), r.offsets(), r.values())?
        }
        (ArrowType::Map(..), ArrowType::Map(..)) => {
            let (l, r) = (left.as_map(), right.as_map());
            lists(l.offsets(), l.entries(), r.offsets(), r.entries())?
        }
        // NULL is dealt with below, so the options of the flat comparator do not matter.
        _ => {
            let flat = arrow::array::make_comparator(left, right, SortOptions::default())?;
            Box::new(flat)
        }
    };
    if ln.is_none() && rn.is_none() {
        return Ok(values);
    }
    Ok(Box::new(move |i, j| {
        let l_null = ln.as_ref().is_some_and(|n| n.is_null(i));
        let r_null = rn.as_ref().is_some_and(|n| n.is_null(j));
        match (l_null, r_null) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => values(i, j),
        }
    }))
}

fn floats<P: ArrowPrimitiveType>(left: &dyn Array, right: &dyn Array) -> Comparator
where
    P::Native: PartialOrd,
{
    let l: PrimitiveArray<P> = left.as_primitive().clone();
    let r: PrimitiveArray<P> = right.as_primitive().clone();
    Box::new(move |i, j| float_order(l.value(i), r.value(j)))
}

fn lists(
    l_offsets: &arrow::buffer::OffsetBuffer<i32>,
    l_values: &dyn Array,
    r_offsets: &arrow::buffer::OffsetBuffer<i32>,
    r_values: &dyn Array,
) -> Result<Comparator, EvalError> {
    let elements = comparator(l_values, r_values)?;
    let (lo, ro) = (l_offsets.clone(), r_offsets.clone());
    Ok(Box::new(move |i, j| {
        let (ls, le) = (lo[i] as usize, lo[i + 1] as usize);
        let (rs, re) = (ro[j] as usize, ro[j + 1] as usize);
        let decided = (ls..le).zip(rs..re).map(|(a, b)| elements(a, b)).find(|o| o.is_ne());
        decided.unwrap_or_else(|| (le - ls).cmp(&(re - rs)))
    }))
}

/// The array with one NaN and no -0.0 at any depth, so that equal values have equal bytes: what grouping keys, join keys
/// and DISTINCT go through. Shares all buffers where there are no floats.
pub fn canonical_floats(array: &ArrayRef) -> Result<ArrayRef, EvalError> {
    Ok(match array.data_type() {
        ArrowType::Float64 => {
            let a = array.as_primitive::<Float64Type>();
            Arc::new(a.unary::<_, Float64Type>(|v| if v.is_nan() { f64::NAN } else { v + 0.0 })) as Arc<Float64Array>
        }
        ArrowType::Float32 => {
            let a = array.as_primitive::<Float32Type>();
            Arc::new(a.unary::<_, Float32Type>(|v| if v.is_nan() { f32::NAN } else { v + 0.0 })) as Arc<Float32Array>
        }
        t if !holds_floats(t) => array.clone(),
        ArrowType::List(field) => {
            let l = array.as_list::<i32>();
            let values = canonical_floats(l.values())?;
            Arc::new(ListArray::try_new(field.clone(), l.offsets().clone(), values, l.nulls().cloned())?)
        }
        ArrowType::Map(entries, sorted) => {
            let m = array.as_map();
            let inner: ArrayRef = Arc::new(m.entries().clone());
            let inner = canonical_floats(&inner)?.as_struct().clone();
            Arc::new(MapArray::try_new(entries.clone(), m.offsets().clone(), inner, m.nulls().cloned(), *sorted)?)
        }
        ArrowType::Struct(fields) => {
            let s = array.as_struct();
            let columns = s.columns().iter().map(canonical_floats).collect::<Result<Vec<_>, _>>()?;
            Arc::new(StructArray::try_new(fields.clone(), columns, s.nulls().cloned())?)
        }
        _ => array.clone(),
    })
}

fn holds_floats(t: &ArrowType) -> bool {
    match t {
        ArrowType::Float32 | ArrowType::Float64 => true,
        ArrowType::List(f) | ArrowType::Map(f, _) => holds_floats(f.data_type()),
        ArrowType::Struct(fields) => fields.iter().any(|f| holds_floats(f.data_type())),
        _ => false,
    }
}
