//! House rules as tests: which crate may use which, how files begin, what `unsafe` must say, licences.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ssql_tests::{files, root};

/// Crate, its folder, and which of ours it may use (spec/ARCHITECTURE.md).
const ARROWS: &[(&str, &str, &[&str])] = &[
    ("ssql-grammar", "grammar", &[]),
    ("ssql-ir", "compiler/ir", &[]),
    ("ssql-abi", "runtime/abi", &[]),
    ("ssql-state", "runtime/state", &[]),
    ("ssql-stdlib", "stdlib", &["ssql-ir"]),
    ("ssql-plan", "compiler/plan", &["ssql-grammar", "ssql-ir", "ssql-stdlib"]),
    ("ssql-jit", "compiler/jit", &["ssql-ir", "ssql-stdlib", "ssql-abi"]),
    ("ssql-engine", "runtime/engine", &["ssql-ir", "ssql-stdlib", "ssql-abi", "ssql-state"]),
    ("ssql-connectors", "runtime/connectors", &["ssql-ir", "ssql-stdlib", "ssql-state", "ssql-engine"]),
    ("ssql-connectors-kafka", "runtime/connectors-kafka", &["ssql-ir", "ssql-engine", "ssql-connectors"]),
];

/// Third-party crates that stay behind one fence.
const FENCES: &[(&str, &[&str])] = &[
    ("cranelift", &["compiler/jit"]),
    ("sqlparser", &["grammar"]),
    ("logos", &["grammar"]),
    ("lalrpop", &["grammar"]),
    ("rdkafka", &["runtime/connectors-kafka"]),
    ("memmap2", &["runtime/state", "runtime/connectors"]),
];

/// Names under `[dependencies]` of a manifest; those for tests and builds are another matter.
fn dependencies(manifest: &Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(manifest).unwrap();
    let mut section = "";
    let mut names = BTreeSet::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']');
        } else if section == "dependencies"
            && let Some((name, _)) = line.split_once(['.', '=', ' '])
            && !name.starts_with('#')
        {
            names.insert(name.to_owned());
        }
    }
    names
}

#[test]
fn arrows_between_crates_point_one_way() {
    let mut wrong = Vec::new();
    for (name, folder, allowed) in ARROWS {
        for dependency in dependencies(&root().join(folder).join("Cargo.toml")) {
            if (dependency.starts_with("ssql")) && !allowed.contains(&dependency.as_str()) {
                wrong.push(format!("{name} must not use {dependency}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn third_party_fences_hold() {
    let mut wrong = Vec::new();
    for manifest in files(&root(), "toml").into_iter().filter(|p| p.ends_with("Cargo.toml")) {
        let folder = manifest.parent().unwrap().strip_prefix(root()).unwrap().to_string_lossy().into_owned();
        for dependency in dependencies(&manifest) {
            for (fenced, homes) in FENCES {
                if dependency.starts_with(fenced) && !homes.contains(&folder.as_str()) {
                    wrong.push(format!("{folder} must not use {dependency}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_file_says_what_it_is() {
    let silent: Vec<_> = files(&root(), "rs")
        .into_iter()
        .filter(|p| {
            let text = std::fs::read_to_string(p).unwrap();
            !text.lines().find(|l| !l.trim().is_empty()).is_some_and(|l| l.starts_with("//!"))
        })
        .collect();
    assert!(silent.is_empty(), "files that do not begin with `//!`: {silent:#?}");
}

/// Each `unsafe` block or impl has a SAFETY note close above it (clippy checks blocks; this also covers impls).
#[test]
fn every_unsafe_says_why() {
    let mut silent = Vec::new();
    for path in files(&root(), "rs") {
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for (i, line) in lines.iter().enumerate() {
            let code = line.split("//").next().unwrap_or("");
            if !(code.contains("unsafe {") || code.contains("unsafe impl")) || path.ends_with("tidy/main.rs") {
                continue;
            }
            let above = lines[i.saturating_sub(8)..=i].iter().any(|l| l.contains("SAFETY"));
            if !above {
                silent.push(format!("{}:{}", path.display(), i + 1));
            }
        }
    }
    assert!(silent.is_empty(), "unsafe without a SAFETY note: {silent:#?}");
}

#[test]
fn no_leftovers() {
    let words = ["todo!(", "unimplemented!(", "dbg!(", "#[ignore"];
    let mut found = Vec::new();
    for path in files(&root(), "rs").into_iter().filter(|p| !p.ends_with("tidy/main.rs")) {
        let text = std::fs::read_to_string(&path).unwrap();
        for (i, line) in text.lines().enumerate() {
            if words.iter().any(|w| line.contains(w)) {
                found.push(format!("{}:{}: {}", path.display(), i + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// Licences of everything that is linked on this platform, by `cargo metadata`, against the list in deny.toml.
#[test]
fn licences_are_on_the_list() {
    let deny = std::fs::read_to_string(root().join("deny.toml")).unwrap();
    let list = deny.split("allow = [").nth(1).unwrap().split(']').next().unwrap();
    let allowed: BTreeSet<&str> = list.split('"').skip(1).step_by(2).collect();
    let output = std::process::Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", env!("SSQL_HOST")])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut refused = BTreeMap::new();
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let licence = package["license"].as_str().unwrap_or("none");
        // `A OR B` needs one of both, `A AND B` both; `/` is an old form of OR.
        let ok = licence
            .replace('/', " OR ")
            .split(" OR ")
            .any(|choice| choice.split(" AND ").all(|l| allowed.contains(l.trim().trim_matches(['(', ')']))));
        if !ok {
            refused.insert(name.to_owned(), licence.to_owned());
        }
    }
    assert!(refused.is_empty(), "licences that deny.toml does not allow: {refused:#?}");
}
