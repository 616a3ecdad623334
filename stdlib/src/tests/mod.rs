//! Tests of the core families against Spark's answers.

mod aggregates;
mod arithmetic;
mod casts;
mod catalogue;
mod comparisons;
mod intervals;
mod lazy;
mod nested;
mod properties;
