//! Runs the examples of the pages in `spec/`: code fences whose info begins with `sql`.
//!
//! ```text
//! ```sql setup            statements before every example of the page
//! ```sql                  runs without an error
//! ```sql wrong CONDITION  is told this condition
//! ```

use ssql::session::{Session, SessionConfig};
use ssql_grammar::{Diagnostic, SourceFile, Style};
use ssql_tests::root;

/// An example with the line that it begins in.
struct Example {
    line: usize,
    info: String,
    text: String,
}

fn examples(page: &str) -> Vec<Example> {
    let text = std::fs::read_to_string(root().join("spec").join(page)).unwrap();
    let mut found: Vec<Example> = Vec::new();
    let mut open = false;
    for (i, line) in text.lines().enumerate() {
        match line.strip_prefix("```") {
            Some(_) if open => open = false,
            Some(info) => {
                open = true;
                found.push(Example { line: i + 2, info: info.trim().to_owned(), text: String::new() });
            }
            None if open => found.last_mut().unwrap().text.push_str(&format!("{line}\n")),
            None => {}
        }
    }
    found.retain(|e| e.info.split(' ').next() == Some("sql"));
    found
}

/// What the text is told behind the page's setup; errors only.
fn told(setup: &str, text: &str) -> (SourceFile, Vec<Diagnostic>) {
    let dir = tempfile::tempdir().unwrap();
    let config =
        SessionConfig { base_dir: dir.path().to_path_buf(), threads: 1, manual: true, ..SessionConfig::default() };
    let file = SourceFile::new("example", format!("{setup}{text}"));
    let mut found = ssql::check(&file, config.clone()).unwrap();
    found.retain(Diagnostic::is_error);
    if found.is_empty() {
        let mut session = Session::new(config).unwrap();
        if let Err(failure) = session.run_script(&file) {
            found = failure.diagnostics;
        }
        session.stop_all();
    }
    (file, found)
}

fn run(page: &str) {
    let examples = examples(page);
    let setup: String = examples.iter().filter(|e| e.info == "sql setup").map(|e| e.text.as_str()).collect();
    let mut faults = Vec::new();
    let mut n = 0;
    for e in examples.iter().filter(|e| e.info != "sql setup") {
        n += 1;
        let (file, found) = told(&setup, &e.text);
        let shown: String = found.iter().map(|d| d.render(&file, Style::Plain)).collect();
        match e.info.strip_prefix("sql wrong ") {
            Some(condition) if !found.iter().any(|d| d.condition == condition) => {
                faults.push(format!("spec/{page}:{}: should be told {condition}, is told:\n{shown}", e.line));
            }
            None if !found.is_empty() => faults.push(format!("spec/{page}:{}:\n{shown}", e.line)),
            _ => {}
        }
    }
    assert!(n > 0, "spec/{page} has no example");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn of_the_language() {
    run("language.md");
}

#[test]
fn of_the_semantics() {
    run("semantics.md");
}

/// What stands with each function in the table that `spec/functions.md` is made from.
#[test]
fn of_the_functions() {
    let mut faults = Vec::new();
    let mut n = 0;
    for f in ssql_stdlib::catalogue().filter(|f| !f.internal && !f.doc.example.is_empty()) {
        n += 1;
        let (file, found) = told("", &format!("SELECT {};", f.doc.example));
        faults.extend(found.iter().map(|d| format!("{}: {}", f.name, d.render(&file, Style::Plain))));
    }
    assert!(n > 200, "only {n} functions have an example");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn of_the_connectors() {
    run("connectors.md");
}
