//! Paths into JSON, `$.a[0]['b c'][*]`, and the functions that follow one.

use super::tape::{Kind, Leniency, Tape};
use crate::call::{Call, EvalResult};

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Name(String),
    /// `.*` or `['*']`: read, as in Spark, and nothing is found by it.
    Members,
    Index(usize),
    /// `[*]`: every element.
    Elements,
}

/// Reads a path; `None` if it is none.
fn parse_path(path: &str) -> Option<Vec<Step>> {
    let mut rest = path.strip_prefix('$')?;
    let mut steps = vec![];
    while !rest.is_empty() {
        if let Some(tail) = rest.strip_prefix('.') {
            let end = tail.find(['.', '[']).unwrap_or(tail.len());
            let (name, tail) = tail.split_at(end);
            if name.is_empty() {
                return None;
            }
            steps.push(if name == "*" { Step::Members } else { Step::Name(name.to_owned()) });
            rest = tail;
        } else if let Some(tail) = rest.strip_prefix("['") {
            let end = tail.find("']")?;
            let name = &tail[..end];
            if name.is_empty() || name.contains(['\'', '?']) {
                return None;
            }
            steps.push(if name == "*" { Step::Members } else { Step::Name(name.to_owned()) });
            rest = &tail[end + 2..];
        } else {
            let tail = rest.strip_prefix('[')?;
            let (inside, tail) = tail.split_once(']')?;
            steps.push(if inside == "*" {
                Step::Elements
            } else if inside.bytes().all(|b| b.is_ascii_digit()) {
                Step::Index(inside.parse().ok()?)
            } else {
                return None;
            });
            rest = tail;
        }
    }
    Some(steps)
}

/// Collects the nodes that a path leads to.
fn follow(tape: &Tape, text: &str, i: u32, steps: &[Step], out: &mut Vec<u32>) {
    let Some((step, rest)) = steps.split_first() else {
        out.push(i);
        return;
    };
    match (step, tape.node(i).kind) {
        (Step::Name(name), Kind::Object) => {
            // The first member of that name which is not null.
            let found = tape.members(i).find(|(n, _)| tape.text_is(text, *n, name)).map(|(_, value)| value);
            if let Some(value) = found.filter(|v| tape.node(*v).kind != Kind::Null) {
                follow(tape, text, value, rest, out);
            }
        }
        (Step::Index(n), Kind::Array) => {
            if let Some(element) = tape.children(i).nth(*n) {
                follow(tape, text, element, rest, out);
            }
        }
        (Step::Elements, Kind::Array) => {
            for element in tape.children(i) {
                follow(tape, text, element, rest, out);
            }
        }
        _ => {}
    }
}

/// `get_json_object(text, path)`.
pub(super) fn get_json_object(c: &Call<'_>) -> EvalResult {
    let (s, path) = (c.str(0), c.str(1));
    let mut tape = Tape::default();
    let mut found = vec![];
    let mut last: Option<(&str, Option<Vec<Step>>)> = None;
    c.strings(|row, out| {
        let (text, path) = (s.get(row), path.get(row));
        if !matches!(&last, Some((p, _)) if *p == path) {
            last = Some((path, parse_path(path)));
        }
        let Some((_, Some(steps))) = &last else { return Ok(false) };
        if tape.read(text, Leniency::default()).is_err() {
            return Ok(false);
        }
        found.clear();
        follow(&tape, text, 0, steps, &mut found);
        let many = steps.contains(&Step::Elements);
        match found.as_slice() {
            [] => return Ok(false),
            [only] if !many => {
                if tape.node(*only).kind == Kind::Null {
                    return Ok(false);
                }
                tape.write_value(text, *only, out);
            }
            [only] => tape.write_json(text, *only, out),
            all => {
                out.push('[');
                for (n, i) in all.iter().enumerate() {
                    if n > 0 {
                        out.push(',');
                    }
                    tape.write_json(text, *i, out);
                }
                out.push(']');
            }
        }
        Ok(true)
    })
}
