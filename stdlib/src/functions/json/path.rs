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

/// How found values are written.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Style {
    /// A text without quotes, the rest as JSON.
    Raw,
    /// As JSON: inside an array.
    Quoted,
    /// As JSON, the elements of an array one by one.
    Flat,
}

/// Follows a path through a text as Spark does, and Hive before it.
struct Walk<'a> {
    tape: &'a Tape,
    text: &'a str,
}

/// A comma before a value that is not the first of its array.
fn separate(out: &mut String) {
    if !out.is_empty() && !out.ends_with('[') {
        out.push(',');
    }
}

impl Walk<'_> {
    /// Writes what the steps lead to from a node; whether there is anything.
    fn follow(&self, i: u32, style: Style, steps: &[Step], out: &mut String) -> bool {
        let (tape, kind) = (self.tape, self.tape.node(i).kind);
        let Some((step, rest)) = steps.split_first() else {
            match (style, kind) {
                (Style::Raw, Kind::Null) => return false,
                (Style::Raw, _) => tape.write_value(self.text, i, out),
                (Style::Flat, Kind::Array) => return self.each(i, Style::Flat, &[], out) > 0,
                _ => {
                    separate(out);
                    tape.write_json(self.text, i, out);
                }
            }
            return true;
        };
        match (step, kind) {
            (Step::Name(name), Kind::Object) => {
                // The first member of that name which is not null and leads on.
                tape.members(i)
                    .filter(|(n, v)| tape.text_is(self.text, *n, name) && tape.node(*v).kind != Kind::Null)
                    .any(|(_, value)| self.follow(value, style, rest, out))
            }
            (Step::Index(n), Kind::Array) => {
                let style = if rest.first() == Some(&Step::Elements) { Style::Quoted } else { style };
                tape.children(i).nth(*n).is_some_and(|element| self.follow(element, style, rest, out))
            }
            (Step::Elements, Kind::Array) if rest.first() == Some(&Step::Elements) => {
                separate(out);
                out.push('[');
                let found = self.each(i, Style::Flat, &rest[1..], out);
                out.push(']');
                found > 0
            }
            (Step::Elements, Kind::Array) if style == Style::Quoted => {
                separate(out);
                out.push('[');
                let found = self.each(i, Style::Quoted, rest, out);
                out.push(']');
                found > 0
            }
            (Step::Elements, Kind::Array) => {
                let inner = if style == Style::Raw { Style::Quoted } else { style };
                let mut values = String::from("[");
                let found = self.each(i, inner, rest, &mut values);
                values.push(']');
                if found > 0 {
                    separate(out);
                    // One element stands for itself.
                    out.push_str(if found == 1 { &values[1..values.len() - 1] } else { &values });
                }
                found > 0
            }
            _ => false,
        }
    }

    /// Follows the steps from every element of an array; how many led to something.
    fn each(&self, i: u32, style: Style, steps: &[Step], out: &mut String) -> usize {
        self.tape.children(i).filter(|element| self.follow(*element, style, steps, out)).count()
    }
}

/// `get_json_object(text, path)`.
pub(super) fn get_json_object(c: &Call<'_>) -> EvalResult {
    let (s, path) = (c.str(0), c.str(1));
    let mut tape = Tape::default();
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
        Ok(Walk { tape: &tape, text }.follow(0, Style::Raw, steps, out))
    })
}
