//! `spec/abi.md`: the layouts that generated code and Rust share, with their true offsets and the documentation of the
//! sources.

use std::fmt::Write;
use std::mem::{offset_of, size_of};

use ssql_abi::{AggregateCtx, ColumnView, MapCtx, OutputView, StringView};
use ssql_tests::root;

/// A layout: its name, size, and its fields with their offsets.
type Layout = (&'static str, usize, Vec<(&'static str, usize)>);

macro_rules! layout {
    ($name:ident: $($field:ident),*) => {
        (stringify!($name), size_of::<$name>(), vec![$((stringify!($field), offset_of!($name, $field))),*])
    };
}

fn layouts() -> Vec<Layout> {
    vec![
        layout!(ColumnView: values, validity, buffers, values_bit, validity_bit),
        layout!(StringView: head, tail),
        layout!(OutputView: values, validity),
        layout!(MapCtx: selection, n_selected, outputs, error_expr, row),
        layout!(AggregateCtx: hashes, slots, mask, rows, heap, groups, error_expr, row),
    ]
}

/// The `///` lines above line `i`, as one text.
fn doc(lines: &[&str], i: usize) -> String {
    let above = lines[..i].iter().rev().map(|l| l.trim()).skip_while(|l| l.starts_with("#["));
    let mut docs: Vec<&str> = above.map_while(|l| l.strip_prefix("///")).collect();
    docs.reverse();
    docs.iter()
        .map(|d| d.trim())
        .collect::<Vec<_>>()
        .join(" ")
        .replace("[`", "`")
        .replace("`]", "`")
        .replace('|', "\\|")
}

fn page() -> String {
    let source = std::fs::read_to_string(root().join("runtime/abi/src/layout.rs")).unwrap();
    let lines: Vec<&str> = source.lines().collect();
    let mut out = String::new();
    for (name, size, fields) in layouts() {
        let at =
            lines.iter().position(|l| l.trim() == format!("pub struct {name} {{")).expect("the layout is declared");
        let end = at + lines[at..].iter().position(|l| *l == "}").unwrap();
        let declared = lines[at..end].iter().filter(|l| l.trim().starts_with("pub ") && l.contains(':')).count();
        assert_eq!(declared, fields.len(), "{name} has other fields than this test knows");
        writeln!(
            out,
            "\n## {name}\n\n{} {size} bytes.\n\n| offset | field | type | what |\n|---|---|---|---|",
            doc(&lines, at)
        )
        .unwrap();
        for (field, offset) in fields {
            let line = (at..end).find(|i| lines[*i].trim().starts_with(&format!("pub {field}:"))).unwrap();
            let kind = lines[line].split_once(": ").unwrap().1.trim_end_matches(',');
            writeln!(out, "| {offset} | `{field}` | `{kind}` | {} |", doc(&lines, line)).unwrap();
        }
    }
    out
}

#[test]
fn the_page_has_the_true_layouts() {
    crate::check("abi.md", &page());
}
