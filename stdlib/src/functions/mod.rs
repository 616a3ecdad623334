//! The catalogue: every operator and function, as tables of [`FunctionDef`], one family per file.
//!
//! # How to add a function
//!
//! 1. Take the family's file (or add one, and one line each to the `mod` list and to `FAMILIES` below).
//! 2. Add an entry to its `TABLE`:
//!    ```text
//!    scalar("instr", &[Param::String, Param::String], Ret::Int, instr)
//!        .doc("Position of the first `sub` in `str`, from 1; 0 if there is none.", "instr(str, sub)", "instr('abc', 'b')"),
//!    ```
//!    `.aliases(&[..])`, `.optional(n)` (the last n parameters may be left out), `.variadic()` (the last repeats),
//!    `.volatile()` (not a function of its arguments), `.nulls(..)`: the default is [`NullRule::Strict`], where a NULL
//!    argument gives NULL and the evaluation never sees it. If values can give NULL too: `StrictNullable`.
//!    Where the result type follows from the arguments in a way that [`Ret`] does not say, use `scalar_with(name, typing,
//!    eval)`; the typing rule gets a [`TypeCall`](crate::resolve::TypeCall), whose methods count, coerce and complain.
//! 3. Write the evaluation over whole arguments; a constant argument reads like a column:
//!    ```text
//!    fn instr(c: &Call<'_>) -> EvalResult {
//!        let (s, sub) = (c.str(0), c.str(1));
//!        c.primitive::<Int32Type>(|row| Ok(Some(position(s.get(row), sub.get(row)))))
//!    }
//!    ```
//!    Use `primitive_all` where nothing can fail, `strings`/`strs`/`binaries`/`booleans`/`pick` for other results, and
//!    `constant_str` for what is to be prepared once (a compiled pattern). An error is an [`EvalError`] with Spark's
//!    condition; the row and the place in the script are filled in for you.
//! 4. Aggregates have their own header, in `aggregate/mod.rs`; generators are [`generator`](crate::function::generator) entries; functions
//!    with lambdas are [`higher_order`](crate::function::higher_order) entries whose evaluation applies [`Call::lambda`].
//! 5. Test it in the family's file with `crate::testing::{eval, ...}`: values from Spark, NULL, empty, errors.
//!
//! [`NullRule::Strict`]: crate::function::NullRule::Strict
//! [`Ret`]: crate::function::Ret
//! [`EvalError`]: crate::EvalError
//! [`Call::lambda`]: crate::call::Call::lambda

use std::sync::LazyLock;

use ahash::AHashMap;

use crate::function::FunctionDef;

pub mod access;
pub mod aes;
pub mod arithmetic;
pub mod array_sets;
pub mod arrays;
pub mod bitmaps;
pub mod bits;
pub mod clock;
pub mod comparison;
pub mod conditional;
pub mod csv;
pub mod date_arithmetic;
pub mod date_fields;
pub mod date_format;
pub mod datetime_arithmetic;
pub mod decimal;
pub mod digests;
pub mod encode;
mod fdlibm;
pub mod format_number;
pub mod format_string;
pub mod generators;
pub mod hashes;
pub mod higher_order;
pub mod java_regex;
pub mod json;
pub mod like;
mod lists;
pub mod logic;
pub mod maps;
pub mod math;
pub mod misc;
pub mod number_format;
pub mod random;
pub mod ranking;
pub mod regexp;
pub mod rounding;
pub mod sequence;
pub mod string_search;
pub mod strings;
pub mod structs;
pub mod time_zones;
pub mod timestamp_units;
pub mod unix_time;
pub mod window;

/// The tables, in the order in which documentation lists them.
static FAMILIES: &[&[FunctionDef]] = &[
    arithmetic::TABLE,
    comparison::TABLE,
    logic::TABLE,
    conditional::TABLE,
    like::TABLE,
    strings::TABLE,
    string_search::TABLE,
    regexp::TABLE,
    encode::TABLE,
    format_string::TABLE,
    format_number::TABLE,
    number_format::TABLE,
    arrays::TABLE,
    array_sets::TABLE,
    sequence::TABLE,
    maps::TABLE,
    structs::TABLE,
    higher_order::TABLE,
    generators::TABLE,
    json::TABLE,
    csv::TABLE,
    access::TABLE,
    clock::TABLE,
    date_fields::TABLE,
    date_arithmetic::TABLE,
    timestamp_units::TABLE,
    date_format::TABLE,
    unix_time::TABLE,
    time_zones::TABLE,
    window::TABLE,
    ranking::TABLE,
    math::TABLE,
    rounding::TABLE,
    random::TABLE,
    bits::TABLE,
    misc::TABLE,
    hashes::TABLE,
    digests::TABLE,
    aes::TABLE,
    crate::aggregate::basic::TABLE,
    crate::aggregate::boolean::TABLE,
    crate::aggregate::first_last::TABLE,
    crate::aggregate::collect::TABLE,
    crate::aggregate::moments::TABLE,
    crate::aggregate::percentile::TABLE,
    crate::aggregate::percentile_approx::TABLE,
    crate::aggregate::approx_count_distinct::TABLE,
    crate::aggregate::histogram_numeric::TABLE,
    crate::aggregate::approx_top_k::TABLE,
    crate::aggregate::count_min_sketch::TABLE,
    crate::aggregate::hll_sketch::TABLE,
    crate::aggregate::bitmap::TABLE,
    bitmaps::TABLE,
];

static BY_NAME: LazyLock<AHashMap<&'static str, &'static FunctionDef>> = LazyLock::new(|| {
    let mut map = AHashMap::new();
    for def in catalogue() {
        for name in std::iter::once(&def.name).chain(def.aliases) {
            map.insert(*name, def);
        }
    }
    map
});

/// All definitions, in catalogue order.
pub fn catalogue() -> impl Iterator<Item = &'static FunctionDef> {
    FAMILIES.iter().flat_map(|table| table.iter())
}

/// The definition of that name or alias, in any case.
pub fn lookup(name: &str) -> Option<&'static FunctionDef> {
    match BY_NAME.get(name) {
        Some(def) => Some(def),
        None if name.bytes().any(|b| b.is_ascii_uppercase()) => {
            BY_NAME.get(name.to_ascii_lowercase().as_str()).copied()
        }
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_lower_case() {
        let mut seen = AHashMap::new();
        for def in catalogue() {
            for name in std::iter::once(&def.name).chain(def.aliases) {
                assert_eq!(*name, name.to_ascii_lowercase());
                assert!(seen.insert(*name, ()).is_none(), "`{name}` stands twice in the catalogue");
            }
        }
    }

    #[test]
    fn every_function_is_documented() {
        for def in catalogue() {
            assert!(!def.doc.summary.is_empty() && !def.doc.usage.is_empty(), "`{}` has no documentation", def.name);
        }
    }
}
