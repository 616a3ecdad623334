//! `spec/errors.md` and the table behind it: complete, and every program of it does what it says.

use std::collections::BTreeSet;
use std::path::Path;

use ssql::conditions::{Program, Shown, all};
use ssql::session::{Session, SessionConfig};
use ssql_grammar::{Diagnostic, SourceFile};
use ssql_tests::{files, root};

#[test]
fn the_page_is_the_table() {
    crate::check("errors.md", &ssql::conditions::markdown());
}

/// Words that look like a condition and are none.
const OTHER_WORDS: &[&str] = &[
    "AUTO_INCREMENT",
    "CARGO_PKG_VERSION",
    "CARGO_MANIFEST_DIR",
    "MATCH_RECOGNIZE",
    "NO_COLOR",
    "SSQL_FAILPOINT",
    "SSQL_FAILPOINT_LOG",
    "SYSTEM_TIME",
    "SSQL_HISTORY",
    "SYSTEM_VERSION",
    "TIMESTAMP_LTZ",
    "TIMESTAMP_NTZ",
    "XDG_STATE_HOME",
];

/// Conditions that the sources name: strings such as `"DIVIDE_BY_ZERO"` outside of tests.
fn named_in_sources() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let crates = ["grammar", "compiler", "stdlib", "runtime", "cli"];
    for path in crates.iter().flat_map(|c| files(&root().join(c), "rs")) {
        let test = path.components().any(|c| c.as_os_str() == "tests") || path.ends_with("tests.rs");
        if test || path.ends_with("build.rs") || path.ends_with("conditions.rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or("");
        for word in code.lines().filter(|l| !l.trim_start().starts_with("//")).flat_map(|l| l.split('"')) {
            let part = |p: &str| p.starts_with(|c: char| c.is_ascii_uppercase()) && p.chars().all(shouted);
            let condition = word.contains('_') && word.split('.').count() <= 2 && word.split('.').all(part);
            if condition && !OTHER_WORDS.contains(&word) {
                found.insert(word.to_owned());
            }
        }
    }
    found
}

fn shouted(c: char) -> bool {
    c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'
}

#[test]
fn every_condition_that_the_sources_name_is_explained() {
    let known: BTreeSet<&str> = all().iter().map(|c| c.name).collect();
    let named = named_in_sources();
    // A family's name stands in the sources to compare with: its members are explained.
    let family = |n: &str| known.iter().any(|k| k.strip_prefix(n).is_some_and(|rest| rest.starts_with('.')));
    let missing: Vec<&String> = named.iter().filter(|n| !known.contains(n.as_str()) && !family(n)).collect();
    assert!(missing.is_empty(), "conditions without an entry in cli/src/conditions/: {missing:#?}");
    let unused: Vec<&&str> = known.iter().filter(|k| !named.contains(**k)).collect();
    assert!(unused.is_empty(), "entries that nothing raises: {unused:#?}");
}

/// What a program is told: by the check, or else by running it.
fn told(program: &Program, dir: &Path) -> Vec<Diagnostic> {
    std::fs::create_dir_all(dir).unwrap();
    for (path, content) in &program.files {
        let path = dir.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content.replace("} {", "}\n{")).unwrap();
    }
    let file = SourceFile::new("program", program.text.clone());
    let config = SessionConfig { base_dir: dir.to_path_buf(), threads: 1, manual: true, ..SessionConfig::default() };
    let mut found = ssql::check(&file, config.clone()).unwrap();
    if !found.iter().any(Diagnostic::is_error) {
        let mut session = Session::new(config).unwrap();
        if let Err(failure) = session.run_script(&file) {
            found.extend(failure.diagnostics);
        }
        session.stop_all();
    }
    found.retain(Diagnostic::is_error);
    found
}

#[test]
fn wrong_programs_raise_their_condition_and_right_ones_raise_none() {
    let mut faults = Vec::new();
    for c in all() {
        let Shown::Programs { wrong, right } = &c.shown else { continue };
        let dir = tempfile::tempdir().unwrap();
        let raised: Vec<String> =
            told(wrong, &dir.path().join("wrong")).iter().map(|d| format!("{}: {}", d.condition, d.message)).collect();
        if !raised.iter().any(|r| r.split(':').next() == Some(c.name)) {
            faults.push(format!("{}: the wrong program is told {raised:?}", c.name));
        }
        for d in told(right, &dir.path().join("right")) {
            faults.push(format!("{}: the right program is told {}: {}", c.name, d.condition, d.message));
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn what_only_a_session_of_another_kind_is_told() {
    let file = SourceFile::new("script", "ADVANCE CLOCK INTERVAL 5 SECONDS;");
    let mut session = Session::new(SessionConfig::default()).unwrap();
    assert_eq!(session.run_script(&file).unwrap_err().diagnostics[0].condition, "UNSUPPORTED_FEATURE.CLOCK");
    let failure = ssql::explain("ir", &file, SessionConfig::default()).unwrap_err();
    assert_eq!(failure.diagnostics[0].condition, "NOTHING_TO_EXPLAIN");
}

#[test]
fn views_and_subqueries_nest_to_a_limit() {
    let mut text = String::from("CREATE VIEW v0 AS SELECT 1 AS a;\n");
    for i in 1..=70 {
        text.push_str(&format!("CREATE VIEW v{i} AS SELECT a FROM v{};\n", i - 1));
    }
    // As much stack as a process begins with: frames of a build without optimisation are large.
    let check = move || told(&Program { files: vec![], text }, tempfile::tempdir().unwrap().path());
    let thread = std::thread::Builder::new().stack_size(8 << 20).spawn(check).unwrap();
    let found = thread.join().unwrap();
    assert!(found.iter().any(|d| d.condition == "RECURSION_LEVEL_LIMIT_EXCEEDED"), "{found:?}");
}
