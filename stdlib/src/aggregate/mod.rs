//! Aggregates: the state of a bound call in rows of fixed layout, and how it is updated, merged, finished and stored.
//!
//! # How to add an aggregate
//!
//! 1. Add an entry to the `TABLE` of the family's file in this folder (register a new file in `functions/mod.rs`):
//!    ```text
//!    aggregate("bit_and", &[Param::Integral], Ret::SameAs(0), |call| Ok(Arc::new(BitAnd::new(call)?)))
//!        .doc("Bits that all values have.", "bit_and(expr)", ""),
//!    ```
//!    or `aggregate_with(name, typing, make)` where the result type needs code. An aggregate is nullable unless
//!    `.nulls(NullRule::Never)` says otherwise (`count`, `collect_list`).
//! 2. Write a struct with the facts of the call (types, constant arguments from `call.args`) and implement
//!    [`Aggregate`]. All-zero bytes are the empty state. State of no fixed size goes into an object: declare
//!    [`SlotType::Object`], implement [`ObjectState`] with the `object_state!` macro and reach it by
//!    [`StateRows::object_or`]. With only fixed slots, `encode`, `decode` and `release` need not be written.
//! 3. `DISTINCT` is not your business: [`aggregate`] wraps the call so that `update` sees each tuple once per group.
//!    `FILTER` shows as `u32::MAX` in `groups`. Rows with NULL arguments do come; most aggregates pass over them.
//! 4. Test that merging and storing keep the result: `crate::testing::check_aggregate`.

use std::fmt::Debug;
use std::sync::Arc;

use arrow::array::ArrayRef;
use ssql_ir::AggCall;

use crate::error::{DecodeError, EvalError};
use crate::function::Eval;
use crate::functions::lookup;

pub mod approx_count_distinct;
pub mod approx_top_k;
pub mod basic;
pub mod bitmap;
pub mod boolean;
pub mod codec;
pub mod collect;
pub mod count_min_sketch;
pub mod distinct;
pub mod first_last;
pub mod histogram_numeric;
pub mod hll_sketch;
pub mod layout;
pub mod min_max;
pub mod moments;
pub mod percentile;
pub mod percentile_approx;
pub mod state;
pub mod sum;
mod values;

pub use layout::{SlotType, state_size};
pub use state::{ObjectState, Objects, StateRows};

/// An entry of `groups` that stands for no group: the row is passed over.
pub const SKIP: u32 = u32::MAX;

/// How one bound aggregate call handles its state. It has no state of its own and is shared between threads.
///
/// Contract: all-zero bytes are the state of no rows. `merge(update(0, a), update(0, b))` equals `update(0, a ++ b)`
/// up to the order of floating-point addition. `decode(encode(s))` gives the same results as `s`.
pub trait Aggregate: Send + Sync + Debug {
    /// Layout of the state, in order.
    fn slots(&self) -> &[SlotType];

    /// Takes in rows. `args` holds the call's arguments in order (constants too), then the columns of its `order`,
    /// all of one length; row `i` belongs to state row `groups[i]`, or to none if that is [`SKIP`].
    fn update(&self, rows: &mut StateRows<'_>, groups: &[u32], args: &[ArrayRef]) -> Result<(), EvalError>;

    /// Takes in the states `src_groups[i]` of `src` at `dst_groups[i]` of `dst`. `src` is only read.
    fn merge(
        &self,
        dst: &mut StateRows<'_>,
        dst_groups: &[u32],
        src: &StateRows<'_>,
        src_groups: &[u32],
    ) -> Result<(), EvalError>;

    /// Results of the states `groups`, one value each, of the call's type. The states stay as they are.
    fn finish(&self, rows: &StateRows<'_>, groups: &[u32]) -> Result<ArrayRef, EvalError>;

    /// Appends one state to a changelog: self-delimiting bytes.
    fn encode(&self, rows: &StateRows<'_>, row: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(&rows.state(row)[..state_size(self.slots())]);
    }

    /// Reads what [`Aggregate::encode`] wrote into a row whose state is all zero, and moves `input` past it.
    fn decode(&self, rows: &mut StateRows<'_>, row: u32, input: &mut &[u8]) -> Result<(), DecodeError> {
        let size = state_size(self.slots());
        let bytes = codec::take(input, size)?;
        rows.state_mut(row)[..size].copy_from_slice(bytes);
        Ok(())
    }

    /// Frees the objects of a row that is given up, and clears their words.
    fn release(&self, rows: &mut StateRows<'_>, row: u32) {
        let mut word = 0;
        for slot in self.slots() {
            if *slot == SlotType::Object {
                rows.remove_object(row, word);
            }
            word += slot.size() / 8;
        }
    }
}

/// Whether the aggregate of this canonical name gives the same result (up to the rounding of floating-point sums) in
/// whatever order rows are taken in and states are merged. Where it says no, the first or last row decides, or elements
/// are listed as they came, or a sketch depends on what it met first.
pub fn is_free_of_order(function: &str) -> bool {
    const FREE: &[&str] = &[
        "approx_count_distinct",
        "avg",
        "bit_and",
        "bit_or",
        "bit_xor",
        "bitmap_and_agg",
        "bitmap_construct_agg",
        "bitmap_or_agg",
        "bool_and",
        "bool_or",
        "corr",
        "count",
        "count_if",
        "count_min_sketch",
        "covar_pop",
        "covar_samp",
        "kurtosis",
        "max",
        "median",
        "min",
        "percentile",
        "percentile_cont",
        "percentile_disc",
        "regr_avgx",
        "regr_avgy",
        "regr_count",
        "regr_intercept",
        "regr_r2",
        "regr_slope",
        "regr_sxx",
        "regr_sxy",
        "regr_syy",
        "skewness",
        "stddev",
        "stddev_pop",
        "sum",
        "try_avg",
        "try_sum",
        "var_pop",
        "variance",
    ];
    FREE.contains(&function)
}

/// The state handler of a bound call. Errors if the call breaks the IR's rules, or a constant argument is out of range
/// (a percentage above 1).
pub fn aggregate(call: &AggCall) -> Result<Arc<dyn Aggregate>, EvalError> {
    let def = lookup(&call.function);
    let Some(Eval::Aggregate(make)) = def.map(|d| d.eval) else {
        return Err(EvalError::internal(format!("`{}` is no aggregate", call.function)));
    };
    let plain = make(call)?;
    // Repeated values never change an extreme.
    if call.distinct && !matches!(&*call.function, "min" | "max") {
        return Ok(Arc::new(distinct::Distinct::new(call, plain)?));
    }
    Ok(plain)
}
