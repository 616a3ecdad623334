//! Casts of arrays, maps and structs, part by part.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, MapArray, StructArray, UInt32Array};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType as ArrowType, Field as ArrowField};
use ssql_ir::{DataType as T, Field};

use super::{Job, cast_array};
use crate::arrow::arrow_type;
use crate::call::EvalResult;
use crate::error::EvalError;

pub(super) fn cast(job: &Job<'_>, array: &ArrayRef) -> EvalResult {
    match (job.from, job.to) {
        (T::Array(from), T::Array(to)) => {
            let list = array.as_list::<i32>();
            let (offsets, rows) = compact(list.offsets(), list.nulls());
            let values = part(job, list.values(), from, to, &rows)?;
            let field = ArrowField::new("element", values.data_type().clone(), true);
            Ok(Arc::new(ListArray::try_new(Arc::new(field), offsets, values, list.nulls().cloned())?))
        }
        (T::Map(from_key, from_value), T::Map(to_key, to_value)) => {
            let map = array.as_map();
            let (offsets, rows) = compact(map.offsets(), map.nulls());
            let keys = part(job, map.keys(), from_key, to_key, &rows)?;
            let values = part(job, map.values(), from_value, to_value, &rows)?;
            let ArrowType::Map(entries, sorted) = arrow_type(&T::Map(
                Box::new(Field::new("key", to_key.data_type.clone(), false)),
                Box::new(Field::new("value", to_value.data_type.clone(), true)),
            )) else {
                return Err(job.refused());
            };
            let ArrowType::Struct(fields) = entries.data_type() else { return Err(job.refused()) };
            // A key that did not survive (TRY_CAST) leaves no map: the whole row is NULL.
            let mut lost = vec![false; map.len()];
            for (i, (_, row)) in rows.iter().enumerate() {
                lost[*row] |= keys.is_null(i);
            }
            if lost.iter().any(|l| *l) {
                let kept = NullBuffer::from(lost.iter().map(|l| !l).collect::<Vec<_>>());
                let nulls = NullBuffer::union(Some(&kept), map.nulls());
                let kept =
                    MapArray::try_new(map_field(map), map.offsets().clone(), map.entries().clone(), nulls, sorted)?;
                let kept: ArrayRef = Arc::new(kept);
                return cast(job, &kept);
            }
            let structs = StructArray::try_new(fields.clone(), vec![keys, values], None)?;
            Ok(Arc::new(MapArray::try_new(entries, offsets, structs, map.nulls().cloned(), sorted)?))
        }
        (T::Struct(from), T::Struct(to)) if from.len() == to.len() => {
            let s = array.as_struct();
            if to.is_empty() {
                return Ok(array.clone());
            }
            let mut columns = Vec::with_capacity(to.len());
            let mut fields = Vec::with_capacity(to.len());
            for ((column, f), t) in s.columns().iter().zip(from).zip(to) {
                // What stands under a NULL struct does not count.
                let column = match s.nulls().filter(|n| n.null_count() > 0 && f.data_type != T::Null) {
                    Some(nulls) => {
                        let nulls = NullBuffer::union(Some(nulls), column.nulls());
                        arrow::array::make_array(column.to_data().into_builder().nulls(nulls).build()?)
                    }
                    None => column.clone(),
                };
                columns.push(cast_array(&column, &f.data_type, &t.data_type, job.mode, job.ctx)?);
                fields.push(ArrowField::new(&t.name, arrow_type(&t.data_type), true));
            }
            Ok(Arc::new(StructArray::try_new(fields.into(), columns, s.nulls().cloned())?))
        }
        _ => Err(job.refused()),
    }
}

fn map_field(map: &MapArray) -> Arc<ArrowField> {
    Arc::new(ArrowField::new("entries", map.entries().data_type().clone(), false))
}

/// The parts of rows that are not NULL, moved together: offsets into them, and for each part (its old place, its row).
fn compact(offsets: &OffsetBuffer<i32>, nulls: Option<&NullBuffer>) -> (OffsetBuffer<i32>, Vec<(u32, usize)>) {
    let mut lengths = Vec::with_capacity(offsets.len());
    let mut parts = Vec::new();
    for (row, range) in offsets.windows(2).enumerate() {
        if nulls.is_some_and(|n| n.is_null(row)) {
            lengths.push(0);
            continue;
        }
        lengths.push((range[1] - range[0]) as usize);
        parts.extend((range[0]..range[1]).map(|i| (i as u32, row)));
    }
    (OffsetBuffer::from_lengths(lengths), parts)
}

/// Casts the elements, keys or values; an error is at the row that holds the part.
fn part(job: &Job<'_>, values: &ArrayRef, from: &Field, to: &Field, rows: &[(u32, usize)]) -> EvalResult {
    let whole = rows.len() == values.len() && rows.iter().enumerate().all(|(i, (at, _))| *at as usize == i);
    let values = if whole {
        values.clone()
    } else {
        arrow::compute::take(values.as_ref(), &UInt32Array::from_iter_values(rows.iter().map(|(at, _)| *at)), None)?
    };
    cast_array(&values, &from.data_type, &to.data_type, job.mode, job.ctx).map_err(|mut e: EvalError| {
        e.row = e.row.and_then(|i| rows.get(i)).map(|(_, row)| *row);
        e
    })
}
