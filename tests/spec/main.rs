//! The generated parts of spec/: they are what the code says, or this fails. `BLESS=1` rewrites them (not under CI).
#![allow(clippy::unwrap_used)]

mod abi;
mod errors;
mod examples;
mod fmt;
mod ir;

use std::fmt::Write;

use ssql::session::{Session, SessionConfig};
use ssql_ir::{LocationRule, OptionKind, OptionScope, SchemaRule};
use ssql_tests::{difference, root};

/// Compares the text between the markers of `file` with `generated`.
pub(crate) fn check(file: &str, generated: &str) {
    const BEGIN: &str = "<!-- generated -->\n";
    const END: &str = "<!-- end -->\n";
    let path = root().join("spec").join(file);
    let text = std::fs::read_to_string(&path).unwrap();
    let (head, rest) = text.split_once(BEGIN).expect("the file has a generated part");
    let (current, tail) = rest.split_once(END).expect("the generated part ends");
    if current == generated {
        return;
    }
    if std::env::var_os("BLESS").is_some() && std::env::var_os("CI").is_none() {
        std::fs::write(&path, format!("{head}{BEGIN}{generated}{END}{tail}")).unwrap();
        return;
    }
    panic!("spec/{file} is not what the code says (BLESS=1 rewrites it):\n{}", difference(current, generated));
}

#[test]
fn connectors_and_their_options() {
    let session = Session::new(SessionConfig::default()).unwrap();
    let mut out = String::new();
    for desc in session.catalog().connectors() {
        let mut uses = Vec::new();
        if desc.stream_source {
            uses.push("stream");
        }
        if desc.static_source {
            uses.push("table");
        }
        if desc.sink.is_some() {
            uses.push("sink");
        }
        writeln!(out, "\n## {}\n\n{}\n", desc.name, desc.summary).unwrap();
        let columns = match &desc.schema {
            SchemaRule::Declared => "declared".to_owned(),
            SchemaRule::Carried => "carried by the data".to_owned(),
            SchemaRule::Fixed(s) => {
                s.fields.iter().map(|f| format!("`{} {}`", f.name, f.data_type)).collect::<Vec<_>>().join(", ")
            }
        };
        let location = match desc.location {
            LocationRule::Required => "needed",
            LocationRule::Refused => "refused",
        };
        writeln!(out, "Use: {}. Columns: {columns}. LOCATION: {location}.", uses.join(", ")).unwrap();
        if let Some(sink) = &desc.sink {
            let modes = [("APPEND", sink.append), ("UPDATE", sink.update), ("COMPLETE", sink.complete)];
            let modes: Vec<&str> = modes.iter().filter(|(_, takes)| *takes).map(|(mode, _)| *mode).collect();
            let durable = if sink.durable { " It keeps data, so a query into it needs a checkpoint." } else { "" };
            writeln!(out, "As a sink it takes {}.{durable}", modes.join(", ")).unwrap();
        }
        if desc.options.is_empty() {
            continue;
        }
        writeln!(out, "\n| option | values | default | for | meaning |\n|---|---|---|---|---|").unwrap();
        for o in &desc.options {
            let values = match &o.kind {
                OptionKind::Boolean => "true, false".to_owned(),
                OptionKind::Integer => "whole number".to_owned(),
                OptionKind::Bytes => "size".to_owned(),
                OptionKind::Duration => "duration".to_owned(),
                OptionKind::OneOf(words) => words.join(", "),
                OptionKind::Text => "text".to_owned(),
            };
            let scope = match o.applies {
                OptionScope::Stream => "stream",
                OptionScope::Read => "reading",
                OptionScope::Write => "writing",
                OptionScope::Both => "both",
            };
            let default = if o.required { "(needed)" } else { o.default.unwrap_or("") };
            writeln!(out, "| `{}` | {values} | {} | {scope} | {} |", o.name, cell(default), cell(o.doc)).unwrap();
        }
    }
    check("connectors.md", &out);
}

#[test]
fn streaming_rules() {
    check("semantics.md", &ssql_plan::check::rules_markdown());
}

#[test]
fn settings() {
    check("language.md", &ssql_plan::settings::settings_markdown());
}

#[test]
fn functions() {
    let mut all: Vec<_> = ssql_stdlib::catalogue().filter(|f| !f.internal).collect();
    all.sort_by_key(|f| f.name);
    let mut out = String::from("| function | what |\n|---|---|\n");
    for f in all {
        let usage = if f.doc.usage.is_empty() { f.name } else { f.doc.usage };
        writeln!(out, "| `{}` | {} |", usage.replace('|', "\\|"), cell(f.doc.summary)).unwrap();
    }
    check("functions.md", &out);
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
