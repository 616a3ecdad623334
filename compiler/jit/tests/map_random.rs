//! Differential test: random typed expressions over random batches, map kernels against the reference evaluation.

mod support;

use rand::Rng;
use ssql_ir::DataType as T;
use support::{Checked, Dice, Exprs, Taste, check_map, columns_of_all_types, random_batch};

const RESULTS: [T; 10] =
    [T::Boolean, T::Int8, T::Int16, T::Int32, T::Int64, T::Float32, T::Float64, T::Date, T::Timestamp, T::TimestampNtz];

fn run(seeds: std::ops::Range<u64>) -> (usize, usize, usize) {
    let schema = columns_of_all_types();
    let (mut compiled, mut errors, mut discarded) = (0, 0, 0);
    for seed in seeds {
        let mut rng = Dice::seeded(seed);
        let depth = rng.random_range(1..4);
        let mut exprs = Exprs { rng: &mut rng, schema: &schema };
        let predicate = exprs.rng.random_ratio(2, 3).then(|| exprs.expr(&T::Boolean, depth));
        let project: Vec<_> = (0..exprs.rng.random_range(0..3))
            .map(|_| {
                let t = &RESULTS[exprs.rng.random_range(0..RESULTS.len())];
                exprs.expr(t, depth)
            })
            .collect();
        for taste in [Taste::Tame, Taste::Wild] {
            let rows = rng.random_range(0..60);
            let batch = random_batch(&mut rng, &schema, rows, taste);
            match check_map(predicate.as_ref(), &project, &schema, &batch) {
                Checked::Rows(_) => compiled += 1,
                Checked::Error(_) => errors += 1,
                Checked::NotCompiled => discarded += 1,
            }
        }
    }
    (compiled, errors, discarded)
}

#[test]
fn kernels_agree_with_the_reference() {
    let seeds = std::env::var("JIT_SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(400);
    let (compiled, errors, discarded) = run(0..seeds);
    // A generator whose inputs are all refused or all fail tests nothing.
    assert!(compiled * 2 > discarded && errors * 10 > compiled, "{compiled} ran, {errors} failed, {discarded} refused");
}
