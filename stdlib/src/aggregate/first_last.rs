//! `first`, `last`, `any_value`, `max_by` and `min_by`: one value of a group, picked by arrival or by another value.

use std::sync::Arc;

use ahash::AHashMap;
use arrow::array::{ArrayRef, AsArray};
use ssql_ir::{AggCall, DataType as T};

use super::basic::first_type;
use super::values::{self, decode, encode_key, encode_rows};
use super::{Aggregate, SKIP, SlotType, StateRows, codec};
use crate::coercion::is_ordered;
use crate::error::{DecodeError, EvalError, ResolveError};
use crate::function::{FunctionDef, Param, Ret, aggregate, aggregate_with};
use crate::resolve::{TypeCall, Typed};

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[
    aggregate("first", FLAGGED, Ret::SameAs(0), |call| pick(call, Which::First))
        .optional(1)
        .aliases(&["first_value"])
        .doc(
            "Value of the first row; of the first that is not NULL with `IGNORE NULLS` or the flag.",
            "first(expr[, ignore_nulls])",
            "",
        ),
    aggregate("last", FLAGGED, Ret::SameAs(0), |call| pick(call, Which::Last))
        .optional(1)
        .aliases(&["last_value"])
        .doc(
            "Value of the last row; of the last that is not NULL with `IGNORE NULLS` or the flag.",
            "last(expr[, ignore_nulls])",
            "",
        ),
    aggregate("any_value", FLAGGED, Ret::SameAs(0), |call| pick(call, Which::First)).optional(1).doc(
        "Value of some row.",
        "any_value(expr[, ignore_nulls])",
        "",
    ),
    aggregate_with("max_by", by_type, |call| by(call, true)).doc(
        "Value of `x` in the row with the largest `y`; rows where `y` is NULL do not count.",
        "max_by(x, y)",
        "",
    ),
    aggregate_with("min_by", by_type, |call| by(call, false)).doc(
        "Value of `x` in the row with the smallest `y`; rows where `y` is NULL do not count.",
        "min_by(x, y)",
        "",
    ),
];

const FLAGGED: &[Param] = &[Param::Any, Param::Boolean];

fn by_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, 2)?;
    if !is_ordered(c.ty(1)) {
        return Err(ResolveError::new(
            "DATATYPE_MISMATCH.INVALID_ORDERING_TYPE",
            format!("`{}` does not support ordering on type {}.", c.name, c.ty(1)),
        )
        .at_arg(1));
    }
    Ok(Typed::new(vec![c.ty(0).clone(), c.ty(1).clone()], c.ty(0).clone()))
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Which {
    First,
    Last,
}

/// A picked value: its bytes, or `None` for NULL. For `max_by` and `min_by` with the ordering value's bytes.
#[derive(Debug)]
struct Picked {
    key: Vec<u8>,
    value: Option<Vec<u8>>,
}

crate::object_state!(Picked, |p| p.key.capacity() + p.value.as_ref().map_or(0, |v| v.capacity()));

fn finish(data_type: &T, rows: &StateRows<'_>, groups: &[u32]) -> Result<ArrayRef, EvalError> {
    decode(data_type, groups.iter().map(|g| rows.object::<Picked>(*g, 0).and_then(|p| p.value.as_deref())))
}

fn write(rows: &StateRows<'_>, row: u32, out: &mut Vec<u8>) {
    match rows.object::<Picked>(row, 0) {
        None => out.push(0),
        Some(p) => {
            out.push(if p.value.is_some() { 2 } else { 1 });
            codec::put_bytes(out, &p.key);
            if let Some(value) = &p.value {
                codec::put_bytes(out, value);
            }
        }
    }
}

fn read(rows: &mut StateRows<'_>, row: u32, input: &mut &[u8]) -> Result<(), DecodeError> {
    let tag = codec::take(input, 1)?[0];
    if tag == 0 {
        return Ok(());
    }
    let key = codec::get_bytes(input)?.to_vec();
    let value = if tag == 2 { Some(codec::get_bytes(input)?.to_vec()) } else { None };
    rows.object_or(row, 0, || Picked { key, value });
    Ok(())
}

/// Puts the picked rows' values into the groups' states.
fn keep(
    data_type: &T,
    rows: &mut StateRows<'_>,
    array: &ArrayRef,
    picked: &AHashMap<u32, u32>,
    key: impl Fn(u32) -> Vec<u8>,
) -> Result<(), EvalError> {
    // In row order, so that handles do not depend on the hasher.
    let mut picked: Vec<(u32, u32)> = picked.iter().map(|(g, row)| (*row, *g)).collect();
    picked.sort_unstable();
    let encoded = encode_rows(data_type, array, picked.iter().map(|(row, _)| *row).collect())?;
    for (i, (row, g)) in picked.into_iter().enumerate() {
        let value = values::is_valid(array, row as usize).then(|| encoded.row(i).as_ref().to_vec());
        let state = rows.object_or(g, 0, || Picked { key: vec![], value: None });
        *state = Picked { key: key(row), value };
    }
    Ok(())
}

/// `first` and `last`.
#[derive(Debug)]
struct Pick {
    data_type: T,
    which: Which,
    ignore_nulls: bool,
}

fn pick(call: &AggCall, which: Which) -> Result<Arc<dyn Aggregate>, EvalError> {
    Ok(Arc::new(Pick { data_type: first_type(call)?.clone(), which, ignore_nulls: call.ignore_nulls }))
}

impl Aggregate for Pick {
    fn slots(&self) -> &[SlotType] {
        &[SlotType::Object]
    }

    fn update(&self, rows: &mut StateRows<'_>, groups: &[u32], args: &[ArrayRef]) -> Result<(), EvalError> {
        let array = &args[0];
        let flag = args.get(1).and_then(|a| a.as_boolean_opt());
        let mut picked = AHashMap::new();
        for (row, g) in groups.iter().enumerate() {
            if *g == SKIP {
                continue;
            }
            let ignoring = self.ignore_nulls || flag.is_some_and(|f| f.value(row));
            if ignoring && !values::is_valid(array, row) {
                continue;
            }
            match self.which {
                Which::Last => {
                    picked.insert(*g, row as u32);
                }
                Which::First if rows.i64(*g, 0) == 0 => {
                    picked.entry(*g).or_insert(row as u32);
                }
                Which::First => {}
            }
        }
        keep(&self.data_type, rows, array, &picked, |_| vec![])
    }

    fn merge(
        &self,
        dst: &mut StateRows<'_>,
        dst_groups: &[u32],
        src: &StateRows<'_>,
        src_groups: &[u32],
    ) -> Result<(), EvalError> {
        // What is merged in came later.
        for (d, s) in dst_groups.iter().zip(src_groups) {
            let Some(theirs) = src.object::<Picked>(*s, 0) else { continue };
            if self.which == Which::Last || dst.i64(*d, 0) == 0 {
                let state = dst.object_or(*d, 0, || Picked { key: vec![], value: None });
                state.value = theirs.value.clone();
            }
        }
        Ok(())
    }

    fn finish(&self, rows: &StateRows<'_>, groups: &[u32]) -> Result<ArrayRef, EvalError> {
        finish(&self.data_type, rows, groups)
    }

    fn encode(&self, rows: &StateRows<'_>, row: u32, out: &mut Vec<u8>) {
        write(rows, row, out);
    }

    fn decode(&self, rows: &mut StateRows<'_>, row: u32, input: &mut &[u8]) -> Result<(), DecodeError> {
        read(rows, row, input)
    }
}

/// `max_by` and `min_by`. Among equal ordering values the last wins, as in Spark.
#[derive(Debug)]
struct By {
    data_type: T,
    key_type: T,
    largest: bool,
}

fn by(call: &AggCall, largest: bool) -> Result<Arc<dyn Aggregate>, EvalError> {
    let [data_type, key_type] = &call.arg_types[..] else {
        return Err(EvalError::internal(format!("`{}` takes two arguments", call.function)));
    };
    Ok(Arc::new(By { data_type: data_type.clone(), key_type: key_type.clone(), largest }))
}

impl By {
    fn wins(&self, new: &[u8], old: &[u8]) -> bool {
        if self.largest { new >= old } else { new <= old }
    }
}

impl Aggregate for By {
    fn slots(&self) -> &[SlotType] {
        &[SlotType::Object]
    }

    fn update(&self, rows: &mut StateRows<'_>, groups: &[u32], args: &[ArrayRef]) -> Result<(), EvalError> {
        let keys = encode_key(&self.key_type, &args[1])?;
        let mut best: AHashMap<u32, u32> = AHashMap::new();
        for (row, g) in groups.iter().enumerate() {
            if *g == SKIP || !values::is_valid(&args[1], row) {
                continue;
            }
            let key = keys.row(row);
            let wins = match best.get(g) {
                Some(old) => self.wins(key.as_ref(), keys.row(*old as usize).as_ref()),
                None => rows.object::<Picked>(*g, 0).is_none_or(|p| self.wins(key.as_ref(), &p.key)),
            };
            if wins {
                best.insert(*g, row as u32);
            }
        }
        keep(&self.data_type, rows, &args[0], &best, |row| keys.row(row as usize).as_ref().to_vec())
    }

    fn merge(
        &self,
        dst: &mut StateRows<'_>,
        dst_groups: &[u32],
        src: &StateRows<'_>,
        src_groups: &[u32],
    ) -> Result<(), EvalError> {
        for (d, s) in dst_groups.iter().zip(src_groups) {
            let Some(theirs) = src.object::<Picked>(*s, 0) else { continue };
            if dst.object::<Picked>(*d, 0).is_none_or(|ours| self.wins(&theirs.key, &ours.key)) {
                let state = dst.object_or(*d, 0, || Picked { key: vec![], value: None });
                *state = Picked { key: theirs.key.clone(), value: theirs.value.clone() };
            }
        }
        Ok(())
    }

    fn finish(&self, rows: &StateRows<'_>, groups: &[u32]) -> Result<ArrayRef, EvalError> {
        finish(&self.data_type, rows, groups)
    }

    fn encode(&self, rows: &StateRows<'_>, row: u32, out: &mut Vec<u8>) {
        write(rows, row, out);
    }

    fn decode(&self, rows: &mut StateRows<'_>, row: u32, input: &mut &[u8]) -> Result<(), DecodeError> {
        read(rows, row, input)
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Float64Array, Int32Array, StringViewArray};

    use super::*;
    use crate::testing::{agg_call, check_aggregate};

    #[test]
    fn the_first_and_the_last() {
        let column: ArrayRef = Arc::new(Int32Array::from(vec![None, Some(1), Some(2), None]));
        let run = |name: &str, ignore: bool| {
            let mut call = agg_call(name, &[T::Int32], false);
            call.ignore_nulls = ignore;
            check_aggregate(&call, std::slice::from_ref(&column))
        };
        assert_eq!(run("first", false), "NULL");
        assert_eq!(run("first", true), "1");
        assert_eq!(run("last", false), "NULL");
        assert_eq!(run("last_value", true), "2");
        assert_eq!(run("any_value", true), "1");
        assert_eq!(check_aggregate(&agg_call("first", &[T::Int32], false), &[column.slice(0, 0)]), "NULL");
    }

    #[test]
    fn by_another_value() {
        let x: ArrayRef =
            Arc::new(StringViewArray::from(vec![Some("one"), Some("five"), Some("none"), None, Some("nan")]));
        let y: ArrayRef = Arc::new(Float64Array::from(vec![Some(1.0), Some(5.0), None, Some(9.0), Some(f64::NAN)]));
        let run = |name: &str, n: usize| {
            check_aggregate(&agg_call(name, &[T::String, T::Float64], false), &[x.slice(0, n), y.slice(0, n)])
        };
        assert_eq!(run("max_by", 3), "five");
        assert_eq!(run("min_by", 3), "one");
        assert_eq!(run("max_by", 4), "NULL");
        assert_eq!(run("max_by", 5), "nan");
        assert_eq!(run("max_by", 0), "NULL");
        let ties: ArrayRef = Arc::new(Int32Array::from(vec![5, 5]));
        let call = agg_call("min_by", &[T::String, T::Int32], false);
        assert_eq!(check_aggregate(&call, &[x.slice(0, 2), ties]), "five");
    }
}
