//! JSON: texts into typed values and back, paths into texts, and schemas of texts.

mod options;
mod path;
mod read;
mod schema;
mod tape;
mod write;

use std::sync::Arc;

use arrow::array::{ArrayRef, StringViewBuilder};
use arrow::datatypes::Int32Type;
use ssql_ir::{DataType as T, Field, Literal};

use self::tape::{Kind, Leniency, Tape};
pub(super) use self::{options::Options, write::write_iso};
use super::arrays::array_of;
use super::strings::TextLists;
use crate::call::{Call, EvalResult};
use crate::error::{EvalError, ResolveError};
use crate::function::{FunctionDef, Generated, NullRule, Ret, TEXT, generator, scalar, scalar_with};
use crate::resolve::{ArgType, TypeCall, Typed};
use crate::text::{parse_data_type, parse_schema};

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[
    scalar_with("from_json", from_json_type, read::from_json).nulls(NullRule::Any).doc(
        "The value of a JSON text by a schema: a struct's fields, or one type. What does not fit is NULL, or an error in \
         the mode FAILFAST.",
        "from_json(text, schema[, options])",
        "from_json('{\"a\": 1}', 'a INT')",
    ),
    scalar_with("to_json", to_json_type, write::to_json).nulls(NullRule::Any).doc(
        "A struct, map or array as JSON; NULL fields are left out unless the option `ignoreNullFields` is false.",
        "to_json(value[, options])",
        "to_json(named_struct('a', 1))",
    ),
    scalar("get_json_object", &[TEXT, TEXT], Ret::String, path::get_json_object)
        .nulls(NullRule::StrictNullable)
        .doc(
            "What a path leads to in a JSON text; NULL if nothing.",
            "get_json_object(text, path)",
            "get_json_object('{\"a\": [1, 2]}', '$.a[1]')",
        ),
    scalar("json_array_length", &[TEXT], Ret::Int, array_length).nulls(NullRule::StrictNullable).doc(
        "Number of elements of a JSON array; NULL if the text is none.",
        "json_array_length(text)",
        "json_array_length('[1, 2]')",
    ),
    scalar("json_object_keys", &[TEXT], Ret::With(texts), object_keys).nulls(NullRule::StrictNullable).doc(
        "Names of the members of a JSON object; NULL if the text is none.",
        "json_object_keys(text)",
        "json_object_keys('{\"a\": 1}')",
    ),
    scalar_with("schema_of_json", schema_type, schema_of_json).doc(
        "The type of a constant JSON text.",
        "schema_of_json(text[, options])",
        "schema_of_json('{\"a\": 1}')",
    ),
    generator("json_tuple", tuple_type, tuple_fields, json_tuple).doc(
        "Members of a JSON object as columns of text, one row.",
        "json_tuple(text, name, ...)",
        "",
    ),
];

fn texts(_: &[T]) -> T {
    array_of(T::String, false)
}

/// The type with NULLs allowed everywhere, for what a text holds is not promised.
pub(super) fn nullable(t: &T) -> T {
    let field = |f: &Field| Field::new(&f.name, nullable(&f.data_type), true);
    match t {
        T::Array(e) => T::Array(Box::new(field(e))),
        T::Map(k, v) => T::Map(k.clone(), Box::new(field(v))),
        T::Struct(fields) => T::Struct(fields.iter().map(field).collect()),
        t => t.clone(),
    }
}

fn has_text_keys(t: &T) -> bool {
    match t {
        T::Map(k, v) => k.data_type == T::String && has_text_keys(&v.data_type),
        T::Array(e) => has_text_keys(&e.data_type),
        T::Struct(fields) => fields.iter().all(|f| has_text_keys(&f.data_type)),
        _ => true,
    }
}

/// Refuses a call whose options are no map of texts.
pub(super) fn check_options(c: &TypeCall<'_>, at: usize) -> Result<Option<T>, ResolveError> {
    if c.len() <= at {
        return Ok(None);
    }
    match c.ty(at) {
        T::Null => Ok(Some(T::map(T::String, T::String))),
        T::Map(k, v) if k.data_type == T::String && matches!(v.data_type, T::String | T::Null) => {
            Ok(Some(T::Map(k.clone(), Box::new(Field::new("value", T::String, true)))))
        }
        t if !matches!(t, T::Map(..)) => Err(ResolveError::new(
            "INVALID_OPTIONS.NON_MAP_FUNCTION",
            format!("The options of `{}` must be made by `map()`, but they are {t}.", c.name),
        )
        .at_arg(at)),
        _ => Err(ResolveError::new(
            "INVALID_OPTIONS.NON_STRING_TYPE",
            format!("The options of `{}` must be a map of STRING to STRING, but they are {}.", c.name, c.ty(at)),
        )
        .at_arg(at)),
    }
}

/// The constant schema in argument 1.
pub(super) fn read_schema(c: &TypeCall<'_>) -> Result<T, ResolveError> {
    let Some(Literal::String(ddl)) = c.literal(1) else {
        return Err(ResolveError::new(
            "INVALID_SCHEMA.NON_STRING_LITERAL",
            format!("The schema of `{}` must be a constant text: `a INT, b ARRAY<STRING>`, or one type.", c.name),
        )
        .at_arg(1));
    };
    let schema = parse_data_type(ddl).or_else(|| parse_schema(ddl).map(|s| T::Struct(s.fields)));
    schema.ok_or_else(|| {
        ResolveError::new("PARSE_SYNTAX_ERROR", format!("The schema '{ddl}' of `{}` cannot be read.", c.name))
            .with_help("write `a INT, b ARRAY<STRING>`, or one type")
            .at_arg(1)
    })
}

fn from_json_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, 3)?;
    let schema = nullable(&read_schema(c)?);
    if !schema.is_nested() {
        return Err(ResolveError::new(
            "DATATYPE_MISMATCH.INVALID_JSON_SCHEMA",
            format!("Input schema {schema} must be a struct, an array, a map or a variant."),
        )
        .at_arg(1));
    }
    if !has_text_keys(&schema) {
        return Err(ResolveError::new(
            "DATATYPE_MISMATCH.INVALID_JSON_MAP_KEY_TYPE",
            format!("Input schema {schema} can only contain STRING as a key type for a MAP."),
        )
        .at_arg(1));
    }
    let mut types = vec![c.coerce(0, TEXT)?, T::String];
    types.extend(check_options(c, 2)?);
    Ok(Typed::new(types, schema).nullable(true))
}

fn to_json_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(1, 2)?;
    if !c.ty(0).is_nested() && *c.ty(0) != T::Null {
        return Err(ResolveError::new(
            "DATATYPE_MISMATCH.INVALID_JSON_SCHEMA",
            format!("`to_json` takes a struct, an array, a map or a variant, not {}.", c.ty(0)),
        )
        .at_arg(0));
    }
    let mut types = vec![c.ty(0).clone()];
    types.extend(check_options(c, 1)?);
    Ok(Typed::new(types, T::String).nullable(c.args[0].nullable))
}

fn array_length(c: &Call<'_>) -> EvalResult {
    let s = c.str(0);
    let mut tape = Tape::default();
    c.primitive::<Int32Type>(|row| {
        let read = tape.read(s.get(row), Leniency::default());
        let is_array = read.is_ok() && tape.node(0).kind == Kind::Array;
        Ok(is_array.then(|| tape.children(0).count() as i32))
    })
}

fn object_keys(c: &Call<'_>) -> EvalResult {
    let s = c.str(0);
    let valid = c.valid();
    let mut tape = Tape::default();
    let mut out = TextLists::new(c.rows);
    let mut name = String::new();
    for row in 0..c.rows {
        let asked = valid.as_ref().is_none_or(|n| n.is_valid(row));
        let text = if asked { s.get(row) } else { "" };
        let found = tape.read(text, Leniency::default()).is_ok() && tape.node(0).kind == Kind::Object;
        if found {
            for (key, _) in tape.members(0) {
                name.clear();
                tape.write_text(text, key, &mut name);
                out.push(&name);
            }
        }
        out.end_row(found);
    }
    out.finish()
}

fn schema_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(1, 2)?;
    let mut types = vec![c.coerce(0, TEXT)?];
    if c.args[0].literal.is_none() {
        return Err(ResolveError::new(
            "DATATYPE_MISMATCH.NON_FOLDABLE_INPUT",
            "The input of `schema_of_json` has to be a constant STRING.",
        )
        .at_arg(0));
    }
    if c.literal(0).is_none() {
        return Err(ResolveError::new(
            "DATATYPE_MISMATCH.UNEXPECTED_NULL",
            "The input of `schema_of_json` must not be NULL.",
        )
        .at_arg(0));
    }
    types.extend(check_options(c, 1)?);
    Ok(Typed::new(types, T::String))
}

fn schema_of_json(c: &Call<'_>) -> EvalResult {
    let options = options::Options::of(c, 1)?;
    let s = c.str(0);
    let mut tape = Tape::default();
    c.strings(|row, out| {
        let text = s.get(row);
        if text.trim().is_empty() {
            // Nothing is read as nothing but null is.
            out.push_str("STRING");
            return Ok(true);
        }
        tape.read(text, options.leniency).map_err(|_| {
            EvalError::new("INVALID_JSON_RECORD_TYPE", format!("The text '{text}' of `schema_of_json` is no JSON."))
        })?;
        schema::write_sql(&schema::schema_of(&tape, text, &options), out);
        Ok(true)
    })
}

fn tuple_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, usize::MAX)?;
    for i in 0..c.len() {
        if !matches!(c.ty(i), T::String | T::Null) {
            return Err(ResolveError::new(
                "DATATYPE_MISMATCH.NON_STRING_TYPE",
                "All arguments of `json_tuple` must be strings.",
            )
            .at_arg(i));
        }
    }
    Ok(Typed::new(vec![T::String; c.len()], T::Null))
}

fn tuple_fields(types: &[T], _: &[ArgType]) -> Vec<Field> {
    (1..types.len()).map(|i| Field::new(format!("c{}", i - 1), T::String, true)).collect()
}

fn json_tuple(c: &Call<'_>) -> Result<Generated, EvalError> {
    let s = c.str(0);
    let names: Vec<_> = (1..c.len()).map(|i| c.str(i)).collect();
    let mut columns: Vec<StringViewBuilder> = names.iter().map(|_| StringViewBuilder::new()).collect();
    let mut tape = Tape::default();
    let mut value = String::new();
    for row in 0..c.rows {
        let text = s.opt(row).unwrap_or("");
        let object = tape.read(text, Leniency::default()).is_ok() && tape.node(0).kind == Kind::Object;
        for (name, column) in names.iter().zip(&mut columns) {
            let found = name
                .opt(row)
                .filter(|_| object)
                .and_then(|name| tape.members(0).filter(|(n, _)| tape.text_is(text, *n, name)).last().map(|(_, v)| v));
            match found.filter(|v| tape.node(*v).kind != Kind::Null) {
                Some(v) => {
                    value.clear();
                    tape.write_value(text, v, &mut value);
                    column.append_value(&value);
                }
                None => column.append_null(),
            }
        }
    }
    let columns = columns.into_iter().map(|mut b| Arc::new(b.finish()) as ArrayRef).collect();
    Ok(((0..c.rows as u32).collect(), columns))
}

#[cfg(test)]
mod tests;
