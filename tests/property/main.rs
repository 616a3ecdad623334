//! Properties of streaming queries over random rows: the answer does not depend on how rows are cut into batches, on
//! their order within the watermark's delay, on restarts, on the number of workers, or on how kernels are run; and it is
//! what a naive model says over all rows at once.
//!
//! `SSQL_PROPERTY_CASES` sets the cases of each query (1), `SSQL_PROPERTY_SEED` the seed of the first. A failing case is
//! made smaller before it is shown.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod model;
mod queries;
mod rows;
mod run;

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::model::World;
use crate::queries::{APPEND, CHANGING, Changing, Query};
use crate::rows::{Arrival, Shape, arrivals, closing, shrink};
use crate::run::{Rows, Setup, run, values};

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().map_or(default, |v| v.parse().expect("a number"))
}

/// Checks `cases` random cases of each query; all failures, each at its smallest.
fn check_all<Q>(
    queries: &[Q],
    name: impl Fn(&Q) -> &'static str,
    shape: impl Fn(&Q) -> Shape,
    check: impl Fn(&Q, &[Arrival], u64) -> Result<(), String>,
) {
    let (cases, seed) = (number("SSQL_PROPERTY_CASES", 1), number("SSQL_PROPERTY_SEED", 20_240_101));
    println!("SSQL_PROPERTY_SEED={seed} SSQL_PROPERTY_CASES={cases}");
    let mut failures = Vec::new();
    for query in queries {
        for seed in seed..seed + cases {
            let mut rng = StdRng::seed_from_u64(seed);
            let rows = arrivals(&mut rng, shape(query));
            if check(query, &rows, seed).is_err() {
                let rows = shrink(rows, &|rows| check(query, rows, seed).is_err());
                let why = check(query, &rows, seed).expect_err("the smallest case fails");
                let mut text = format!("`{}`, SSQL_PROPERTY_SEED={seed}:\n{why}\n", name(query));
                for row in &rows {
                    let stream = ["a", "b"][row.stream];
                    text += &format!("  {stream} {} place {:?} then {:?}\n", values(row), row.place, row.then);
                }
                failures.push(text);
                break;
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn sorted(mut rows: Rows) -> Rows {
    rows.sort();
    rows
}

/// Whether both are the same rows in any order.
fn same(expected: &Rows, actual: Rows, what: &str) -> Result<(), String> {
    let actual = sorted(actual);
    if *expected == actual {
        return Ok(());
    }
    let lines = |rows: &Rows| rows.iter().map(|r| r.join(" | ") + "\n").collect::<String>();
    Err(format!("{what}:\n{}", ssql_tests::difference(&lines(expected), &lines(&actual))))
}

const PLAIN: Setup = Setup { order: None, restarts: false, threads: 1, jit: "off", files: false };

/// Two setups that differ from the plain one in all respects, by the case's number.
fn setups(seed: u64) -> [Setup; 2] {
    let mut rng = StdRng::seed_from_u64(!seed);
    let jits = if rng.random_bool(0.5) { ["on", "verify"] } else { ["verify", "off"] };
    let files = rng.random_bool(0.5);
    [
        Setup { order: Some(0), restarts: true, threads: 2, jit: jits[0], files },
        Setup { order: Some(1), restarts: rng.random_bool(0.5), threads: 4, jit: jits[1], files: !files },
    ]
}

#[test]
fn an_append_querys_rows_depend_on_its_input_alone() {
    let queries: Vec<&Query> = APPEND.iter().filter(|q| q.model.is_some()).collect();
    check_all(
        &queries,
        |q| q.name,
        |q| q.shape,
        |query, rows, seed| {
            let of = |stream| rows.iter().filter(|r| r.stream == stream).map(|r| r.row.clone()).collect();
            let world = World { a: of(0), b: of(1), closing: closing(1).remove(0).row };
            let model = query.model.expect("chosen for it");
            let expected = sorted(model(&world));
            let go = |setup| run(query.sql, "APPEND", query.shape.streams, rows, setup);
            same(&expected, go(PLAIN)?, "the model (-) and one batch (+)")?;
            for setup in setups(seed) {
                same(&expected, go(setup)?, &format!("the model (-) and {setup:?} (+)"))?;
            }
            Ok(())
        },
    );
}

/// With late rows and with queries whose first row wins, the cut into batches is part of the input.
#[test]
fn late_rows_are_dropped_alike_by_every_route() {
    let shape = |q: &Query| Shape { late: true, ..q.shape };
    check_all(
        APPEND,
        |q| q.name,
        shape,
        |query, rows, seed| {
            let files = seed % 2 == 1;
            let go = |setup| run(query.sql, "APPEND", query.shape.streams, rows, setup);
            let expected = sorted(go(Setup { order: Some(0), files, ..PLAIN })?);
            for (threads, jit, restarts) in [(2, "on", true), (4, "verify", false)] {
                let setup = Setup { order: Some(0), files, threads, jit, restarts };
                same(&expected, go(setup)?, &format!("{PLAIN:?} in the same batches (-) and {setup:?} (+)"))?;
            }
            Ok(())
        },
    );
}

#[test]
fn what_update_emits_adds_up_to_what_complete_holds() {
    let shape = |q: &Changing| Shape { streams: q.streams, before_1970: false, null_times: true, late: false };
    check_all(
        CHANGING,
        |q| q.name,
        shape,
        |query, rows, seed| {
            let go = |mode, setup| run(query.sql, mode, query.streams, rows, setup);
            let expected = sorted(go("COMPLETE", PLAIN)?);
            for setup in setups(seed) {
                same(&expected, go("COMPLETE", setup)?, &format!("COMPLETE at once (-) and {setup:?} (+)"))?;
                let last: BTreeMap<_, _> =
                    go("UPDATE", setup)?.into_iter().map(|row| (row[..query.keys].to_vec(), row)).collect();
                same(
                    &expected,
                    last.into_values().collect(),
                    &format!("COMPLETE (-) and the last of UPDATE, {setup:?} (+)"),
                )?;
            }
            Ok(())
        },
    );
}
