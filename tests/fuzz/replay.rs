//! The fuzz targets over the corpus that is kept: what was once found stays mended. `tests/fuzz/README.md` has the rest.

use libtest_mimic::{Arguments, Trial};
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
        for file in files {
            let short = file.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
            trials.push(Trial::test(format!("{name}/{short}"), move || {
                target(&std::fs::read(&file)?);
                Ok(())
            }));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
