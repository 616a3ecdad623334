//! SQL types to the dialect's types.

use ssql_grammar::Span;
use ssql_grammar::sql::{self, ArrayElemTypeDef, ExactNumberInfo, TimezoneInfo};
use ssql_ir::{DataType, Field};

use crate::diag::{Fallible, fail, fail_help};

/// The type that a syntax tree names. `span` is where mistakes are shown.
pub(crate) fn data_type(t: &sql::DataType, span: Span) -> Fallible<DataType> {
    use sql::DataType as T;
    Ok(match t {
        T::Boolean | T::Bool => DataType::Boolean,
        T::TinyInt(_) => DataType::Int8,
        T::SmallInt(_) | T::Int2(_) => DataType::Int16,
        T::Int(_) | T::Integer(_) | T::Int4(_) => DataType::Int32,
        T::BigInt(_) | T::Int8(_) => DataType::Int64,
        T::Float(_) | T::Real | T::Float4 => DataType::Float32,
        T::Double(_) | T::DoublePrecision | T::Float8 => DataType::Float64,
        T::Decimal(info) | T::Numeric(info) | T::Dec(info) => decimal(info, span)?,
        T::String(_)
        | T::Varchar(_)
        | T::CharVarying(_)
        | T::CharacterVarying(_)
        | T::Char(_)
        | T::Character(_)
        | T::Nvarchar(_)
        | T::Text => DataType::String,
        T::Binary(_) | T::Varbinary(_) => DataType::Binary,
        T::Date => DataType::Date,
        T::Timestamp(_, TimezoneInfo::WithoutTimeZone) | T::TimestampNtz(_) => DataType::TimestampNtz,
        T::Timestamp(..) => DataType::Timestamp,
        T::Interval { fields, .. } => match fields {
            Some(fields) => interval(fields, span)?,
            None => DataType::DAY_TO_SECOND,
        },
        T::Array(ArrayElemTypeDef::AngleBracket(e) | ArrayElemTypeDef::Parenthesis(e)) => {
            DataType::array(data_type(e, span)?)
        }
        T::Map(k, v, _) => DataType::map(data_type(k, span)?, data_type(v, span)?),
        T::Struct(fields, _) => {
            let mut out = vec![];
            for field in fields {
                let Some(name) = &field.field_name else {
                    return fail("PARSE_SYNTAX_ERROR", "a STRUCT field needs a name", span);
                };
                let not_null = field.options.iter().flatten().any(|o| o.to_string().eq_ignore_ascii_case("not null"));
                out.push(Field::new(&name.value, data_type(&field.field_type, span)?, !not_null));
            }
            DataType::Struct(out)
        }
        T::Time(..) => return refused("TIME", span),
        T::Custom(name, modifiers) => {
            let text = name.to_string();
            match text.trim_matches('`').to_ascii_uppercase().as_str() {
                "LONG" => DataType::Int64,
                "SHORT" => DataType::Int16,
                "BYTE" => DataType::Int8,
                "STRING" => DataType::String,
                "TIMESTAMP_LTZ" => DataType::Timestamp,
                "TIMESTAMP_NTZ" => DataType::TimestampNtz,
                "VOID" => DataType::Null,
                "TIME" => return refused("TIME", span),
                "VARIANT" => return refused("VARIANT", span),
                _ if modifiers.is_empty() => match ssql_stdlib::parse_data_type(&text) {
                    Some(t) => t,
                    None => return unknown(&text, span),
                },
                _ => return unknown(&text, span),
            }
        }
        other => match ssql_stdlib::parse_data_type(&other.to_string()) {
            Some(t) => t,
            None => return unknown(&other.to_string(), span),
        },
    })
}

fn decimal(info: &ExactNumberInfo, span: Span) -> Fallible<DataType> {
    let (precision, scale) = match info {
        ExactNumberInfo::None => (10, 0),
        ExactNumberInfo::Precision(p) => (*p, 0),
        ExactNumberInfo::PrecisionAndScale(p, s) => (*p, *s),
    };
    if precision > 38 {
        let message = format!("a DECIMAL has at most 38 digits, not {precision}");
        return fail("DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION", message, span);
    }
    match u8::try_from(scale) {
        Ok(scale) if precision >= 1 && u64::from(scale) <= precision => Ok(DataType::Decimal(precision as u8, scale)),
        _ => fail(
            "DECIMAL_SCALE_EXCEEDS_PRECISION",
            format!("DECIMAL({precision},{scale}) has no room for its scale"),
            span,
        ),
    }
}

fn interval(fields: &sql::IntervalFields, span: Span) -> Fallible<DataType> {
    let text = fields.to_string();
    let named = match text.split_once(" TO ") {
        Some((first, last)) => DataType::interval(first, Some(last)),
        None => DataType::interval(&text, None),
    };
    match named {
        Some(t) => Ok(t),
        None => unknown(&format!("INTERVAL {text}"), span),
    }
}

fn refused<T>(name: &str, span: Span) -> Fallible<T> {
    fail_help(
        "UNSUPPORTED_DATATYPE",
        format!("the type {name} is not part of the dialect"),
        span,
        "Use TIMESTAMP or STRING instead.",
    )
}

fn unknown<T>(name: &str, span: Span) -> Fallible<T> {
    const KNOWN: [&str; 20] = [
        "BOOLEAN",
        "TINYINT",
        "SMALLINT",
        "INT",
        "INTEGER",
        "BIGINT",
        "LONG",
        "FLOAT",
        "DOUBLE",
        "DECIMAL",
        "STRING",
        "VARCHAR",
        "BINARY",
        "DATE",
        "TIMESTAMP",
        "TIMESTAMP_NTZ",
        "INTERVAL",
        "ARRAY",
        "MAP",
        "STRUCT",
    ];
    let message = format!("there is no type `{name}`");
    match crate::catalog::suggest(name, KNOWN) {
        Some(near) => fail_help("UNSUPPORTED_DATATYPE", message, span, format!("Did you mean {near}?")),
        None => fail("UNSUPPORTED_DATATYPE", message, span),
    }
}
