//! The fuzz targets over the corpus that is kept: what was once found stays mended. `tests/fuzz/README.md` has the rest.
//!
//! With MUTANTS=n in the environment each file is also tried in n altered forms, which SEED=n chooses.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use ssql_tests::root;

#[path = "src/lib.rs"]
mod targets;

type Target = (&'static str, fn(&[u8]));

const TARGETS: [Target; 8] = [
    ("script", targets::script),
    ("statement", targets::statement),
    ("expressions", targets::expressions),
    ("ir", targets::ir),
    ("json", targets::json),
    ("csv", targets::csv),
    ("casts", targets::casts),
    ("checkpoint", targets::checkpoint),
];

fn number(variable: &str) -> u64 {
    std::env::var(variable).map_or(0, |n| n.parse().unwrap_or_else(|_| panic!("{variable} is no number: {n}")))
}

/// Bytes that mean something to one reader or other.
const BYTES: &[u8] = b"'\"()[]{}<>,.;:-+*/%\\`$#0123456789eENUL \t\n\0\xff";

/// Alters some places: bytes change, come, go, are repeated, or are taken from another file of the corpus.
fn mutate(data: &mut Vec<u8>, others: &[Vec<u8>], random: &mut StdRng) {
    for _ in 0..random.random_range(1..6) {
        let at = random.random_range(0..=data.len());
        let end = (at + random.random_range(1..12)).min(data.len());
        match random.random_range(0..6) {
            0 if at < data.len() => data[at] = random.random(),
            1 => data.insert(at, BYTES[random.random_range(0..BYTES.len())]),
            2 => drop(data.drain(at..end)),
            3 => {
                let piece = data[at..end].repeat(random.random_range(1..4));
                data.splice(at..at, piece).for_each(drop);
            }
            4 => data.truncate(at.max(1)),
            _ => {
                let other = &others[random.random_range(0..others.len())];
                let from = random.random_range(0..=other.len());
                let piece = other[from..].iter().take(random.random_range(1..40)).copied();
                data.splice(at..end, piece).for_each(drop);
            }
        }
    }
}

fn try_mutants(name: &str, target: fn(&[u8]), original: &[u8], others: &[Vec<u8>]) {
    let mut random = StdRng::seed_from_u64(number("SEED"));
    for _ in 0..number("MUTANTS") {
        let mut data = original.to_vec();
        mutate(&mut data, others, &mut random);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| target(&data))) {
            let folder = root().join("tests/fuzz/artifacts").join(name);
            std::fs::create_dir_all(&folder).expect("a folder for what fails");
            let file = folder.join(format!("mutant-{:08x}", random.random::<u32>()));
            std::fs::write(&file, &data).expect("what fails is kept");
            eprintln!("the input that fails: {}", file.display());
            resume_unwind(panic);
        }
    }
}

fn main() {
    let corpus = root().join("tests/fuzz/corpus");
    let mut trials = vec![];
    for (name, target) in TARGETS {
        let mut files: Vec<_> = std::fs::read_dir(corpus.join(name))
            .unwrap_or_else(|e| panic!("the corpus of {name}: {e}"))
            .map(|entry| entry.expect("an entry").path())
            .collect();
        files.sort();
        assert!(!files.is_empty(), "{name} has no corpus");
        let contents: Arc<Vec<Vec<u8>>> = Arc::new(
            files.iter().map(|f| std::fs::read(f).unwrap_or_else(|e| panic!("{}: {e}", f.display()))).collect(),
        );
        for (i, file) in files.into_iter().enumerate() {
            let contents = Arc::clone(&contents);
            let short = file.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
            trials.push(Trial::test(format!("{name}/{short}"), move || {
                target(&contents[i]);
                try_mutants(name, target, &contents[i], &contents);
                Ok(())
            }));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
