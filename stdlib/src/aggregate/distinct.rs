//! DISTINCT for every aggregate: a set of argument tuples per group in front of the plain aggregate.
//!
//! A tuple is kept as bytes of arrow's row format, floats made canonical, so equal tuples are equal bytes and the values
//! can be had back when states merge.

use std::sync::Arc;

use ahash::AHashSet;
use arrow::array::{Array, ArrayRef};
use arrow::row::{RowConverter, SortField};
use ssql_ir::AggCall;

use super::{Aggregate, SKIP, SlotType, StateRows, codec, state_size};
use crate::arrow::{arrow_type, conform};
use crate::compare::canonical_floats;
use crate::error::{DecodeError, EvalError};

/// The wrapper.
#[derive(Debug)]
pub(super) struct Distinct {
    plain: Arc<dyn Aggregate>,
    slots: Vec<SlotType>,
    /// Word of the set's handle: behind the plain state, which so stands where it would stand alone.
    set: usize,
    types: Vec<ssql_ir::DataType>,
}

/// Tuples seen by one group.
#[derive(Debug, Default)]
struct Seen(AHashSet<Box<[u8]>>);

crate::object_state!(Seen, |s| s.0.iter().map(|t| t.len() + 32).sum());

impl Distinct {
    pub(super) fn new(call: &AggCall, plain: Arc<dyn Aggregate>) -> Result<Distinct, EvalError> {
        let slots = plain.slots().iter().copied().chain([SlotType::Object]).collect();
        let set = state_size(plain.slots()) / 8;
        Ok(Distinct { plain, slots, set, types: call.arg_types.clone() })
    }

    fn converter(&self) -> Result<RowConverter, EvalError> {
        Ok(RowConverter::new(self.types.iter().map(|t| SortField::new(arrow_type(t))).collect())?)
    }
}

impl Aggregate for Distinct {
    fn slots(&self) -> &[SlotType] {
        &self.slots
    }

    fn update(&self, rows: &mut StateRows<'_>, groups: &[u32], args: &[ArrayRef]) -> Result<(), EvalError> {
        let tuple = &args[..self.types.len()];
        let canonical = tuple.iter().map(canonical_floats).collect::<Result<Vec<_>, _>>()?;
        let encoded = self.converter()?.convert_columns(&canonical)?;
        let mut fresh = groups.to_vec();
        for (row, g) in fresh.iter_mut().enumerate() {
            if *g == SKIP {
                continue;
            }
            // Tuples with a NULL never count, as in Spark's count(DISTINCT a, b); the plain aggregate passes over them.
            if tuple.iter().any(|a| a.is_null(row)) {
                continue;
            }
            let seen: &mut Seen = rows.object_or(*g, self.set, Seen::default);
            let bytes = encoded.row(row);
            if seen.0.contains(bytes.as_ref()) {
                *g = SKIP;
            } else {
                seen.0.insert(bytes.as_ref().into());
            }
        }
        self.plain.update(rows, &fresh, args)
    }

    fn merge(
        &self,
        dst: &mut StateRows<'_>,
        dst_groups: &[u32],
        src: &StateRows<'_>,
        src_groups: &[u32],
    ) -> Result<(), EvalError> {
        let converter = self.converter()?;
        let parser = converter.parser();
        let mut fresh: Vec<&[u8]> = Vec::new();
        let mut groups = Vec::new();
        for (d, s) in dst_groups.iter().zip(src_groups) {
            let Some(theirs) = src.object::<Seen>(*s, self.set) else { continue };
            let ours: &mut Seen = dst.object_or(*d, self.set, Seen::default);
            // In byte order, so that the result does not depend on the hasher.
            let mut new: Vec<&[u8]> = theirs.0.iter().filter(|t| !ours.0.contains(*t)).map(|t| &**t).collect();
            new.sort_unstable();
            for tuple in new {
                ours.0.insert(tuple.into());
                fresh.push(tuple);
                groups.push(*d);
            }
        }
        if fresh.is_empty() {
            return Ok(());
        }
        let columns = converter
            .convert_rows(fresh.iter().map(|t| parser.parse(t)))?
            .into_iter()
            .zip(&self.types)
            .map(|(c, t)| conform(c, t))
            .collect::<Result<Vec<_>, _>>()?;
        self.plain.update(dst, &groups, &columns)
    }

    fn finish(&self, rows: &StateRows<'_>, groups: &[u32]) -> Result<ArrayRef, EvalError> {
        self.plain.finish(rows, groups)
    }

    fn encode(&self, rows: &StateRows<'_>, row: u32, out: &mut Vec<u8>) {
        let mut tuples: Vec<&[u8]> =
            rows.object::<Seen>(row, self.set).iter().flat_map(|s| s.0.iter()).map(|t| &**t).collect();
        tuples.sort_unstable();
        codec::put_len(out, tuples.len());
        for tuple in tuples {
            codec::put_bytes(out, tuple);
        }
        self.plain.encode(rows, row, out);
    }

    fn decode(&self, rows: &mut StateRows<'_>, row: u32, input: &mut &[u8]) -> Result<(), DecodeError> {
        let n = codec::get_len(input)?;
        if n > 0 {
            let mut seen = Seen::default();
            for _ in 0..n {
                seen.0.insert(codec::get_bytes(input)?.into());
            }
            rows.object_or(row, self.set, || seen);
        }
        self.plain.decode(rows, row, input)
    }

    fn release(&self, rows: &mut StateRows<'_>, row: u32) {
        rows.remove_object(row, self.set);
        self.plain.release(rows, row);
    }
}
