//! The type that a JSON text suggests.

use ssql_ir::{DataType as T, Field};

use super::tape::{Kind, Tape};

/// The type of a value. What is nothing but null is STRING; an object's fields are sorted by name.
pub(super) fn schema_of(tape: &Tape, text: &str) -> T {
    finished(infer(tape, text, 0))
}

/// The type of a node; VOID for null.
fn infer(tape: &Tape, text: &str, i: u32) -> T {
    match tape.node(i).kind {
        Kind::Null => T::Null,
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
        Kind::Float => T::Float64,
        Kind::Plain | Kind::Escaped => T::String,
        Kind::Array => {
            let element = tape.children(i).map(|e| infer(tape, text, e)).fold(T::Null, merge);
            T::array(element)
        }
        Kind::Object => {
            let mut fields: Vec<Field> = tape
                .members(i)
                .map(|(name, value)| {
                    let mut resolved = String::new();
                    tape.write_text(text, name, &mut resolved);
                    Field::new(resolved, infer(tape, text, value), true)
                })
                .collect();
            fields.sort_by(|a, b| a.name.cmp(&b.name));
            T::Struct(fields)
        }
    }
}

/// The type that holds values of both: STRING where nothing else does.
fn merge(a: T, b: T) -> T {
    match (a, b) {
        (a, b) if a == b => a,
        (T::Null, t) | (t, T::Null) => t,
        (T::Int64, T::Float64) | (T::Float64, T::Int64) => T::Float64,
        (T::Decimal(..), T::Float64) | (T::Float64, T::Decimal(..)) => T::Float64,
        (T::Decimal(p, _), T::Int64) | (T::Int64, T::Decimal(p, _)) => T::Decimal(p.max(20), 0),
        (T::Decimal(p, _), T::Decimal(q, _)) => T::Decimal(p.max(q), 0),
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
