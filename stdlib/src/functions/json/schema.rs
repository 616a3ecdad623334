//! The type that a JSON text suggests.

use ssql_ir::{DataType as T, Field};

use super::options::Options;
use super::tape::{Kind, Tape};

/// The type of a value. What is nothing but null is STRING; an object's fields are sorted by name.
pub(super) fn schema_of(tape: &Tape, text: &str, options: &Options) -> T {
    let rules =
        Rules { all_text: options.flag("primitivesasstring", false), decimals: options.flag("prefersdecimal", false) };
    finished(infer(tape, text, 0, &rules))
}

/// What the options say.
struct Rules {
    /// Numbers and booleans are STRING.
    all_text: bool,
    /// A fraction is a DECIMAL where one holds it.
    decimals: bool,
}

/// The type of a node; VOID for null.
fn infer(tape: &Tape, text: &str, i: u32, rules: &Rules) -> T {
    match tape.node(i).kind {
        Kind::Null => T::Null,
        Kind::True | Kind::False | Kind::Integer | Kind::Float if rules.all_text => T::String,
        Kind::True | Kind::False => T::Boolean,
        Kind::Integer => {
            let raw = tape.raw(text, i);
            if raw.parse::<i64>().is_ok() {
                return T::Int64;
            }
            match raw.trim_start_matches('-').len() {
                digits @ ..=38 => T::Decimal(digits as u8, 0),
                _ => T::Float64,
            }
        }
        Kind::Float if rules.decimals => decimal_of(tape.raw(text, i)).unwrap_or(T::Float64),
        Kind::Float => T::Float64,
        Kind::Plain | Kind::Escaped => T::String,
        Kind::Array => {
            let element = tape.children(i).map(|e| infer(tape, text, e, rules)).fold(T::Null, merge);
            T::array(element)
        }
        Kind::Object => {
            let mut fields: Vec<Field> = tape
                .members(i)
                .map(|(name, value)| {
                    let mut resolved = String::new();
                    tape.write_text(text, name, &mut resolved);
                    Field::new(resolved, infer(tape, text, value, rules), true)
                })
                .collect();
            fields.sort_by(|a, b| a.name.cmp(&b.name));
            T::Struct(fields)
        }
    }
}

/// The DECIMAL of a number without exponent.
fn decimal_of(raw: &str) -> Option<T> {
    let (whole, fraction) = raw.trim_start_matches('-').split_once('.')?;
    let scale = fraction.bytes().all(|b| b.is_ascii_digit()).then_some(fraction.len())?;
    let digits = whole.trim_start_matches('0').len() + scale;
    (digits <= 38).then(|| T::Decimal(digits.max(1) as u8, scale as u8))
}

/// The type that holds values of both: STRING where nothing else does.
fn merge(a: T, b: T) -> T {
    match (a, b) {
        (a, b) if a == b => a,
        (T::Null, t) | (t, T::Null) => t,
        (T::Int64, T::Float64) | (T::Float64, T::Int64) => T::Float64,
        (T::Decimal(..), T::Float64) | (T::Float64, T::Decimal(..)) => T::Float64,
        (T::Decimal(p, _), T::Int64) | (T::Int64, T::Decimal(p, _)) => T::Decimal(p.max(20), 0),
        (a @ T::Decimal(..), b @ T::Decimal(..)) => crate::coercion::common_type(&a, &b).unwrap_or(T::Float64),
        (T::Array(a), T::Array(b)) => T::array(merge(a.data_type, b.data_type)),
        (T::Struct(a), T::Struct(b)) => {
            let mut fields = a;
            for field in b {
                match fields.iter_mut().find(|f| f.name == field.name) {
                    Some(known) => {
                        let before = std::mem::replace(&mut known.data_type, T::Null);
                        known.data_type = merge(before, field.data_type);
                    }
                    None => fields.push(field),
                }
            }
            fields.sort_by(|a, b| a.name.cmp(&b.name));
            T::Struct(fields)
        }
        _ => T::String,
    }
}

fn finished(t: T) -> T {
    match t {
        T::Null => T::String,
        T::Array(e) => T::array(finished(e.data_type)),
        T::Struct(fields) => {
            T::Struct(fields.into_iter().map(|f| Field::new(f.name, finished(f.data_type), true)).collect())
        }
        t => t,
    }
}

/// Prints a type as SQL reads it: names that are no plain words are quoted.
pub(in crate::functions) fn write_sql(t: &T, out: &mut String) {
    match t {
        T::Array(e) => {
            out.push_str("ARRAY<");
            write_sql(&e.data_type, out);
            out.push('>');
        }
        T::Struct(fields) => {
            out.push_str("STRUCT<");
            for (i, field) in fields.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                let name = &field.name;
                let digits = name.bytes().all(|b| b.is_ascii_digit());
                if !name.is_empty() && !digits && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                    out.push_str(name);
                } else {
                    out.push('`');
                    out.push_str(&name.replace('`', "``"));
                    out.push('`');
                }
                out.push_str(": ");
                write_sql(&field.data_type, out);
            }
            out.push('>');
        }
        t => out.push_str(&t.to_string()),
    }
}
