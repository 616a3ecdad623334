//! Functions that go by a row's place in its partition: ranks, and values at a distance.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Float64Array, Int32Array, UInt32Array};
use arrow::compute::{interleave, take};

use crate::error::Result;
use crate::operators::window_function::frame::Order;

/// `row_number`: the row's place in its partition, from 1.
pub fn row_number(order: &Order) -> ArrayRef {
    Arc::new(Int32Array::from_iter_values(order.partitions.iter().flat_map(|p| 1..=p.len() as i32)))
}

/// `rank`: one more than the rows before the row's peers.
pub fn rank(order: &Order) -> ArrayRef {
    let ranks = each(order, |row, start, _| (order.peers(row).start - start) as i32 + 1);
    Arc::new(Int32Array::from_iter_values(ranks))
}

/// `dense_rank`: one more than the runs of peers before the row's.
pub fn dense_rank(order: &Order) -> ArrayRef {
    let ranks = each(order, |row, start, _| (order.peer_of[row] - order.peer_of[start]) as i32 + 1);
    Arc::new(Int32Array::from_iter_values(ranks))
}

/// `percent_rank`: `(rank - 1) / (rows - 1)`, 0 for a single row.
pub fn percent_rank(order: &Order) -> ArrayRef {
    let ranks = each(order, |row, start, len| match len {
        1 => 0.0,
        _ => (order.peers(row).start - start) as f64 / (len - 1) as f64,
    });
    Arc::new(Float64Array::from_iter_values(ranks))
}

/// `cume_dist`: share of the partition's rows up to the row's last peer.
pub fn cume_dist(order: &Order) -> ArrayRef {
    let shares = each(order, |row, start, len| (order.peers(row).end - start) as f64 / len as f64);
    Arc::new(Float64Array::from_iter_values(shares))
}

/// `ntile`: number of the bucket; the first buckets are one row longer where the rows do not divide.
pub fn ntile(order: &Order, buckets: usize) -> ArrayRef {
    let tiles = each(order, |row, start, len| {
        let (base, longer) = (len / buckets, len % buckets);
        let place = row - start;
        let in_longer = longer * (base + 1);
        let bucket = if place < in_longer { place / (base + 1) } else { longer + (place - in_longer) / base };
        bucket as i32 + 1
    });
    Arc::new(Int32Array::from_iter_values(tiles))
}

/// For each row: what `f` makes of it, the first row of its partition, and the partition's length.
fn each<T>(order: &Order, f: impl Fn(usize, usize, usize) -> T + Copy) -> impl Iterator<Item = T> {
    order.partitions.iter().flat_map(move |p| p.clone().map(move |row| f(row, p.start, p.len())))
}

/// `lag` (negative `offset`) and `lead`: the value that many rows away, else the default of the row itself. With
/// `ignore_nulls` only rows with a value count.
pub fn offset(
    order: &Order,
    value: &ArrayRef,
    offset: i64,
    default: Option<&ArrayRef>,
    ignore_nulls: bool,
) -> Result<ArrayRef> {
    let valued = Valued::new(value);
    let mut places: Vec<Option<u32>> = Vec::with_capacity(value.len());
    for partition in &order.partitions {
        let (start, end) = (partition.start as i64, partition.end as i64);
        for row in partition.clone() {
            let place = if ignore_nulls && offset != 0 {
                valued.away(row, offset).map(i64::from)
            } else {
                (row as i64).checked_add(offset)
            };
            places.push(place.filter(|p| (start..end).contains(p)).map(|p| p as u32));
        }
    }
    match default {
        None => Ok(take(value, &UInt32Array::from(places), None)?),
        Some(default) => {
            let pick = |(row, place): (usize, &Option<u32>)| match place {
                Some(place) => (0, *place as usize),
                None => (1, row),
            };
            let picks: Vec<(usize, usize)> = places.iter().enumerate().map(pick).collect();
            Ok(interleave(&[value.as_ref(), default.as_ref()], &picks)?)
        }
    }
}

/// Rows with a value, to be found by their rank among such.
#[derive(Debug)]
pub struct Valued {
    /// Rows with a value.
    rows: Vec<u32>,
    /// How many of them lie before each row, and before the end.
    before: Vec<u32>,
}

impl Valued {
    /// The rows of an array that are not NULL.
    pub fn new(array: &ArrayRef) -> Valued {
        let nulls = array.logical_nulls();
        let mut valued = Valued { rows: Vec::new(), before: Vec::with_capacity(array.len() + 1) };
        for row in 0..array.len() {
            valued.before.push(valued.rows.len() as u32);
            if nulls.as_ref().is_none_or(|n| n.is_valid(row)) {
                valued.rows.push(row as u32);
            }
        }
        valued.before.push(valued.rows.len() as u32);
        valued
    }

    /// The valued row that lies `offset` (not 0) valued rows away, in any partition.
    fn away(&self, row: usize, offset: i64) -> Option<u32> {
        let at = if offset < 0 {
            i64::from(self.before[row]).checked_add(offset)?
        } else {
            i64::from(self.before[row + 1]).checked_add(offset - 1)?
        };
        self.rows.get(usize::try_from(at).ok()?).copied()
    }

    /// The `n`-th valued row (from 0) at or behind `start` that lies before `end`.
    pub fn nth(&self, start: usize, end: usize, n: usize) -> Option<u32> {
        let at = (self.before[start] as usize).checked_add(n)?;
        self.rows.get(at).copied().filter(|&row| (row as usize) < end)
    }

    /// The last valued row before `end` that is not before `start`.
    pub fn last(&self, start: usize, end: usize) -> Option<u32> {
        let at = (self.before[end] as usize).checked_sub(1)?;
        Some(self.rows[at]).filter(|&row| row as usize >= start)
    }
}
