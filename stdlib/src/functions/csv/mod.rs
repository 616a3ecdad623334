//! CSV: one line into a struct and back, and the schema of a line.

mod read;
mod split;
mod write;

use ssql_ir::{DataType as T, Field, Literal};

use super::json::{check_options, nullable, read_schema};
use crate::error::ResolveError;
use crate::function::{FunctionDef, NullRule, scalar_with};
use crate::resolve::{TypeCall, Typed};

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[
    scalar_with("from_csv", from_csv_type, read::from_csv).nulls(NullRule::Any).doc(
        "The fields of a CSV line by a schema. What does not fit is NULL, or an error in the mode FAILFAST.",
        "from_csv(text, schema[, options])",
        "from_csv('1,x', 'a INT, b STRING')",
    ),
    scalar_with("to_csv", to_csv_type, write::to_csv).nulls(NullRule::Any).doc(
        "A struct as a CSV line.",
        "to_csv(struct[, options])",
        "to_csv(named_struct('a', 1, 'b', 'x'))",
    ),
    scalar_with("schema_of_csv", schema_type, read::schema_of_csv).doc(
        "The type of a constant CSV line.",
        "schema_of_csv(text[, options])",
        "schema_of_csv('1,x')",
    ),
];

fn from_csv_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, 3)?;
    if !matches!(c.ty(0), T::String | T::Null) {
        return Err(c.mismatch(0, "STRING"));
    }
    let schema = nullable(&read_schema(c)?);
    let T::Struct(fields) = &schema else {
        return Err(ResolveError::new(
            "INVALID_SCHEMA.NON_STRUCT_TYPE",
            format!("The schema of `from_csv` must be a STRUCT, not {schema}."),
        )
        .at_arg(1));
    };
    if let Some(Field { data_type, .. }) = fields.iter().find(|f| f.data_type.is_nested()) {
        return Err(ResolveError::new(
            "UNSUPPORTED_DATATYPE",
            format!("A field of CSV cannot be of type {data_type}."),
        )
        .at_arg(1));
    }
    let mut types = vec![T::String, T::String];
    types.extend(check_options(c, 2)?);
    Ok(Typed::new(types, schema).nullable(true))
}

fn to_csv_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(1, 2)?;
    if !matches!(c.ty(0), T::Struct(_) | T::Null) {
        return Err(ResolveError::new(
            "DATATYPE_MISMATCH.UNSUPPORTED_INPUT_TYPE",
            format!("`to_csv` takes a STRUCT, not {}.", c.ty(0)),
        )
        .at_arg(0));
    }
    let mut types = vec![c.ty(0).clone()];
    types.extend(check_options(c, 1)?);
    Ok(Typed::new(types, T::String).nullable(c.args[0].nullable))
}

fn schema_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(1, 2)?;
    if !matches!(c.ty(0), T::String | T::Null) {
        return Err(c.mismatch(0, "STRING"));
    }
    match &c.args[0].literal {
        Some(Literal::Null) | None if *c.ty(0) == T::Null || c.args[0].literal.is_some() => {
            return Err(ResolveError::new(
                "DATATYPE_MISMATCH.UNEXPECTED_NULL",
                "The input of `schema_of_csv` must not be NULL.",
            )
            .at_arg(0));
        }
        None => {
            return Err(ResolveError::new(
                "DATATYPE_MISMATCH.NON_FOLDABLE_INPUT",
                "The input of `schema_of_csv` has to be a constant STRING.",
            )
            .at_arg(0));
        }
        Some(_) => {}
    }
    let mut types = vec![T::String];
    types.extend(check_options(c, 1)?);
    Ok(Typed::new(types, T::String))
}

#[cfg(test)]
mod tests {
    use crate::testing::*;

    fn from(text: &str, schema: &str) -> String {
        eval("from_csv", &[str(text), str(schema)])
    }

    fn from_with(text: &str, schema: &str, name: &str, value: &str) -> String {
        eval("from_csv", &[str(text), str(schema), expr("map", &[str(name), str(value)])])
    }

    #[test]
    fn lines_into_structs() {
        for (text, schema, want) in [
            ("1,abc", "a INT, b STRING", "{1, abc}"),
            ("1", "a INT, b STRING", "{1, null}"),
            ("x,abc,extra", "a INT, b STRING", "{null, abc}"),
            ("", "a INT, b STRING", "{null, null}"),
            ("1,\"a,b\"", "a INT, b STRING", "{1, a,b}"),
            ("1,\"a\"\"b\"", "a INT, b STRING", "{1, \"a\"\"b\"}"),
            ("1,\"a\\\"b\"", "a INT, b STRING", "{1, a\"b}"),
            ("1,\"abc", "a INT, b STRING", "{1, abc}"),
            (" 1 , b ", "a INT, b STRING", "{null,  b }"),
            ("true,yes", "a BOOLEAN, b BOOLEAN", "{true, null}"),
            ("NaN,Inf", "a DOUBLE, b DOUBLE", "{NaN, Infinity}"),
            ("nan,-Inf", "a DOUBLE, b DOUBLE", "{null, -Infinity}"),
            ("x,1", "a INT, b INT, _corrupt_record STRING", "{null, 1, x,1}"),
            ("1,2", "a INT, b INT, _corrupt_record STRING", "{1, 2, null}"),
            ("1", "INT", "!INVALID_SCHEMA.NON_STRUCT_TYPE"),
            ("1", "a ARRAY<INT>", "!UNSUPPORTED_DATATYPE"),
        ] {
            assert_eq!(from(text, schema), want, "{text} as {schema}");
        }
        assert_eq!(from_with("1||b", "a INT, b STRING", "sep", "||"), "{1, b}");
        assert_eq!(from_with("NA", "a INT", "nullValue", "NA"), "{null}");
        assert_eq!(from_with("26/08/2015", "a DATE", "dateFormat", "dd/MM/yyyy"), "{2015-08-26}");
        assert_eq!(from_with("x", "a INT", "mode", "FAILFAST"), "!MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION");
        assert_eq!(from_with("x", "a INT", "mode", "DROPMALFORMED"), "!PARSE_MODE_UNSUPPORTED");
    }

    #[test]
    fn structs_into_lines() {
        let line = |value: Arg| eval("to_csv", &[expr("named_struct", &[str("a"), value, str("b"), int(1)])]);
        assert_eq!(line(str("x")), "x,1");
        assert_eq!(line(null()), ",1");
        assert_eq!(line(str("q\"r")), "\"q\\\"r\",1");
        assert_eq!(line(str("")), "\"\",1");
        assert_eq!(line(str("#x")), "\"#x\",1");
        assert_eq!(line(timestamp("2020-01-01 10:00:00.123456")), "2020-01-01T10:00:00.123Z,1");
    }

    #[test]
    fn schemas() {
        let of = |text: &str| eval("schema_of_csv", &[str(text)]);
        assert_eq!(of("1,abc,,2.5,true"), "STRUCT<_c0: INT, _c1: STRING, _c2: STRING, _c3: DOUBLE, _c4: BOOLEAN>");
        assert_eq!(
            of("2020-01-01,2020-01-01 10:00:00,12345678901,99999999999999999999"),
            "STRUCT<_c0: DATE, _c1: TIMESTAMP, _c2: BIGINT, _c3: DECIMAL(20,0)>"
        );
    }
}
