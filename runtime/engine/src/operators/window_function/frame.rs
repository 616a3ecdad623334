//! Which rows the frame of each row holds.

use std::cmp::Ordering;
use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType as ArrowType, Decimal128Type, Float64Type, Int64Type};
use ssql_ir::{Frame, FrameBound, Literal};
use ssql_stdlib::compare::float_order;

use crate::error::{EngineError, Result};

const MICROS_PER_DAY: i128 = 86_400_000_000;

/// Rows in order of partition and order key, and where their partitions and peers lie.
#[derive(Debug)]
pub struct Order {
    /// Each partition's rows.
    pub partitions: Vec<Range<usize>>,
    /// Runs of rows with equal order keys, within partitions.
    pub peers: Vec<Range<usize>>,
    /// The run of each row.
    pub peer_of: Vec<u32>,
}

impl Order {
    /// From where a partition, and where a run of peers, begins. Every partition begins a run; row 0 begins both.
    pub fn new(rows: usize, new_partition: impl Fn(usize) -> bool, new_peers: impl Fn(usize) -> bool) -> Order {
        let mut order = Order { partitions: Vec::new(), peers: Vec::new(), peer_of: Vec::with_capacity(rows) };
        for row in 0..rows {
            let begins = row == 0 || new_partition(row);
            for (runs, new) in [(&mut order.partitions, begins), (&mut order.peers, begins || new_peers(row))] {
                match runs.last_mut() {
                    Some(run) if !new => run.end = row + 1,
                    _ => runs.push(row..row + 1),
                }
            }
            order.peer_of.push(order.peers.len() as u32 - 1);
        }
        order
    }

    /// The peers of a row, itself among them.
    pub fn peers(&self, row: usize) -> &Range<usize> {
        &self.peers[self.peer_of[row] as usize]
    }
}

/// Values of an order key, ascending once `descending` is undone.
#[derive(Debug)]
enum Keys {
    /// Integers, dates, timestamps, intervals, decimals.
    Int(Vec<i128>),
    Float(Vec<f64>),
}

/// The one order key of a RANGE frame with a distance.
#[derive(Debug)]
pub struct RangeKey {
    keys: Keys,
    nulls: Option<arrow::buffer::NullBuffer>,
    descending: bool,
    is_date: bool,
}

impl RangeKey {
    /// The key's values, of all rows in order.
    pub fn new(array: &ArrayRef, descending: bool) -> Result<RangeKey> {
        let unfit = || EngineError::internal(format!("a RANGE frame has a distance in {}", array.data_type()));
        let keys = match array.data_type() {
            ArrowType::Float32 | ArrowType::Float64 => {
                let values = cast(array, &ArrowType::Float64)?;
                Keys::Float(values.as_primitive::<Float64Type>().values().to_vec())
            }
            ArrowType::Decimal128(..) => Keys::Int(array.as_primitive::<Decimal128Type>().values().to_vec()),
            ArrowType::Interval(_) => {
                let months = array.as_primitive_opt::<arrow::datatypes::IntervalYearMonthType>().ok_or_else(unfit)?;
                Keys::Int(months.values().iter().map(|&v| v.into()).collect())
            }
            ArrowType::Date32 => {
                let days = cast(array, &ArrowType::Int32)?;
                Keys::Int(
                    days.as_primitive::<arrow::datatypes::Int32Type>().values().iter().map(|&v| v.into()).collect(),
                )
            }
            _ => {
                let values = cast(array, &ArrowType::Int64).map_err(|_| unfit())?;
                Keys::Int(values.as_primitive::<Int64Type>().values().iter().map(|&v| v.into()).collect())
            }
        };
        let is_date = array.data_type() == &ArrowType::Date32;
        Ok(RangeKey { keys, nulls: array.logical_nulls(), descending, is_date })
    }

    fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|n| n.is_null(row))
    }

    /// Order of row `i`'s key against row `row`'s moved by `distance` along the order.
    fn compare(&self, i: usize, row: usize, distance: &Distance) -> Ordering {
        let ascending = match (&self.keys, distance) {
            (Keys::Int(k), Distance::Int(d)) => {
                k[i].cmp(&if self.descending { k[row].saturating_sub(*d) } else { k[row].saturating_add(*d) })
            }
            (Keys::Int(k), Distance::Float(d)) => {
                float_order(k[i] as f64, if self.descending { k[row] as f64 - d } else { k[row] as f64 + d })
            }
            (Keys::Float(k), d) => {
                let d = d.as_f64();
                float_order(k[i], if self.descending { k[row] - d } else { k[row] + d })
            }
        };
        if self.descending { ascending.reverse() } else { ascending }
    }

    fn distance(&self, literal: &Literal) -> Result<Distance> {
        Ok(match literal {
            // A date moves by days, or by an interval of whole days, which is far beyond any number of days.
            Literal::Int(v) if self.is_date && i128::from(*v).abs() >= MICROS_PER_DAY => {
                Distance::Int(i128::from(*v) / MICROS_PER_DAY)
            }
            Literal::Int(v) => Distance::Int((*v).into()),
            Literal::Decimal(v) => Distance::Int(*v),
            Literal::Float(v) => Distance::Float(*v),
            other => return Err(EngineError::internal(format!("{other:?} is no distance of a RANGE frame"))),
        })
    }
}

/// How far a bound lies along the order, positive behind the row.
#[derive(Debug, Clone, Copy)]
enum Distance {
    Int(i128),
    Float(f64),
}

impl Distance {
    fn negated(self) -> Distance {
        match self {
            Distance::Int(d) => Distance::Int(-d),
            Distance::Float(d) => Distance::Float(-d),
        }
    }

    fn as_f64(self) -> f64 {
        match self {
            Distance::Int(d) => d as f64,
            Distance::Float(d) => d,
        }
    }
}

/// The frame of every row. A frame without rows is an empty range that begins where it would.
pub fn frames(frame: &Frame, order: &Order, key: Option<&RangeKey>) -> Result<Vec<Range<usize>>> {
    let bounds = [Bound::new(&frame.start, frame.rows, key)?, Bound::new(&frame.end, frame.rows, key)?];
    let mut all = Vec::with_capacity(order.peer_of.len());
    for partition in &order.partitions {
        // Rows of the partition with a key, where that matters; NULLs stand together at one end.
        let mut valued = partition.clone();
        if let Some(key) = key {
            while valued.start < valued.end && key.is_null(valued.start) {
                valued.start += 1;
            }
            while valued.start < valued.end && key.is_null(valued.end - 1) {
                valued.end -= 1;
            }
        }
        for row in partition.clone() {
            let at = |bound: &Bound<'_>, is_end: bool| bound.of(row, is_end, partition, &valued, order);
            let start = at(&bounds[0], false);
            all.push(start..at(&bounds[1], true).max(start));
        }
    }
    Ok(all)
}

/// One end of a frame, ready to be found for any row.
enum Bound<'a> {
    Unbounded,
    /// So many rows behind the current one.
    Rows(i64),
    Peers,
    /// At the current row's key moved by the distance.
    Moved(&'a RangeKey, Distance),
}

impl<'a> Bound<'a> {
    fn new(bound: &FrameBound, rows: bool, key: Option<&'a RangeKey>) -> Result<Bound<'a>> {
        let (literal, preceding) = match bound {
            FrameBound::Unbounded => return Ok(Bound::Unbounded),
            FrameBound::CurrentRow => return Ok(if rows { Bound::Rows(0) } else { Bound::Peers }),
            FrameBound::Preceding(l) => (l, true),
            FrameBound::Following(l) => (l, false),
        };
        if rows {
            let Literal::Int(n) = literal else {
                return Err(EngineError::internal("a ROWS frame counts rows by an integer"));
            };
            return Ok(Bound::Rows(if preceding { n.saturating_neg() } else { *n }));
        }
        let key = key.ok_or_else(|| EngineError::internal("a RANGE frame with a distance has one order key"))?;
        let distance = key.distance(literal)?;
        Ok(Bound::Moved(key, if preceding { distance.negated() } else { distance }))
    }

    /// First row of the frame, or the row behind its last (`is_end`), within the partition.
    fn of(&self, row: usize, is_end: bool, partition: &Range<usize>, valued: &Range<usize>, order: &Order) -> usize {
        let pick = |range: &Range<usize>| if is_end { range.end } else { range.start };
        match self {
            Bound::Unbounded => pick(partition),
            Bound::Rows(n) => {
                let at = (row as i64).saturating_add(*n).saturating_add(i64::from(is_end));
                at.clamp(partition.start as i64, partition.end as i64) as usize
            }
            Bound::Peers => pick(order.peers(row)),
            // NULL moved by anything is NULL.
            Bound::Moved(key, _) if key.is_null(row) => pick(order.peers(row)),
            Bound::Moved(key, distance) => {
                let before = |i: usize| match key.compare(i, row, distance) {
                    Ordering::Less => true,
                    Ordering::Equal => is_end,
                    Ordering::Greater => false,
                };
                let (mut from, mut to) = (valued.start, valued.end);
                while from < to {
                    let middle = from + (to - from) / 2;
                    if before(middle) {
                        from = middle + 1;
                    } else {
                        to = middle;
                    }
                }
                from
            }
        }
    }
}
