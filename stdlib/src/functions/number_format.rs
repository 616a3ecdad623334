//! `to_number` and `to_char`: text as DECIMAL and back, by a constant format of digits (`9`, `0`), separators and signs; and
//! `to_char` of dates and of bytes, which are `date_format`, `hex`, `base64` and `decode` by another name.

use arrow::datatypes::Decimal128Type;
use ssql_ir::{DataType as T, Literal};

use self::format::Format;
use super::date_format::date_format;
use super::encode::{write_base64, write_hex};
use crate::call::{Call, EvalResult};
use crate::error::{EvalError, ResolveError};
use crate::function::{FunctionDef, NullRule, Param, scalar_with};
use crate::resolve::{TypeCall, Typed};
use crate::text::parse_decimal;

mod format;

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[
    scalar_with("to_number", number_type, to_number).doc(
        "A text as a number by a constant format: `9` and `0` for digits, `,` `.` `$`, and `S`, `MI` or `PR` for the sign.",
        "to_number(str, format)",
        "to_number('1,234.5', '9,999.9')",
    ),
    scalar_with("try_to_number", number_type, to_number).nulls(NullRule::StrictNullable).doc(
        "As `to_number`; NULL where the text does not follow the format.",
        "try_to_number(str, format)",
        "try_to_number('abc', '999')",
    ),
    scalar_with("to_char", char_type, to_char).aliases(&["to_varchar"]).doc(
        "A number as text by a format of `to_number`, `#` where it does not fit; a date or time by a pattern of \
         `date_format`; bytes as 'hex', 'base64' or 'utf-8'.",
        "to_char(value, format)",
        "to_char(12454, '99G999')",
    ),
];

/// The constant format in argument 1; `None` if it is NULL.
fn constant_format(c: &TypeCall<'_>) -> Result<Option<String>, ResolveError> {
    match &c.args[1].literal {
        Some(Literal::String(text)) => Ok(Some(text.clone())),
        Some(Literal::Null) => Ok(None),
        _ if *c.ty(1) == T::Null => Ok(None),
        _ => Err(ResolveError::new(
            "DATATYPE_MISMATCH.NON_FOLDABLE_INPUT",
            format!("The format of `{}` has to be a constant STRING.", c.name),
        )
        .at_arg(1)),
    }
}

fn parse(text: &str) -> Result<Format, ResolveError> {
    Format::parse(text).map_err(|e| ResolveError::new(e, format!("The format '{text}' is invalid.")).at_arg(1))
}

fn number_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, 2)?;
    let input = c.coerce(0, Param::String)?;
    let Some(text) = constant_format(c)? else {
        return Ok(Typed::new(vec![input, T::String], T::Decimal(10, 0)).nullable(true));
    };
    let t = parse(&text)?.data_type().ok_or_else(|| {
        ResolveError::new(
            "INVALID_FORMAT.WRONG_NUM_DIGIT",
            format!("The format '{text}' has more digits than a DECIMAL holds."),
        )
        .at_arg(1)
    })?;
    Ok(Typed::new(vec![input, T::String], t))
}

fn to_number(c: &Call<'_>) -> EvalResult {
    let Some(text) = c.constant_str(1) else { return Ok(c.all_null()) };
    let format = Format::parse(text).map_err(|e| EvalError::internal(format!("a format of {e}")))?;
    let T::Decimal(p, s) = c.data_type else { return Err(EvalError::internal("a decimal result")) };
    let input = c.str(0);
    c.primitive::<Decimal128Type>(|row| {
        let value = format.read(input.get(row)).and_then(|n| parse_decimal(&n, *p, *s).ok());
        match value {
            None if c.name == "to_number" => Err(EvalError::new(
                "INVALID_FORMAT.MISMATCH_INPUT",
                format!("The input STRING '{}' does not match the format '{text}'.", input.get(row)),
            )
            .with_help("use `try_to_number` to get NULL instead")),
            value => Ok(value),
        }
    })
}

fn char_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, 2)?;
    let input = match c.ty(0) {
        T::Date | T::Timestamp | T::TimestampNtz => {
            return Ok(Typed::new(vec![T::Timestamp, c.coerce(1, Param::String)?], T::String));
        }
        T::Binary => {
            let format = constant_format(c)?;
            if let Some(f) = &format
                && !matches!(f.to_ascii_lowercase().as_str(), "base64" | "hex" | "utf-8")
            {
                return Err(ResolveError::new(
                    "INVALID_PARAMETER_VALUE.BINARY_FORMAT",
                    format!("The format of `{}` for bytes is 'base64', 'hex' or 'utf-8', not '{f}'.", c.name),
                )
                .at_arg(1));
            }
            T::Binary
        }
        T::Boolean | T::DayTimeInterval(..) | T::YearMonthInterval(..) => return Err(c.mismatch(0, "DECIMAL")),
        _ => {
            let number = c.coerce(0, Param::Decimal)?;
            if let Some(text) = constant_format(c)? {
                parse(&text)?;
            }
            number
        }
    };
    Ok(Typed::new(vec![input, T::String], T::String))
}

fn to_char(c: &Call<'_>) -> EvalResult {
    if *c.types[0] == T::Timestamp {
        return date_format(c);
    }
    let Some(text) = c.constant_str(1) else { return Ok(c.all_null()) };
    let T::Decimal(_, scale) = c.types[0] else {
        let (bytes, kind) = (c.bytes(0), text.to_ascii_lowercase());
        return c.strings(|row, out| {
            let bytes = bytes.get(row);
            match kind.as_str() {
                "hex" => write_hex(bytes, out),
                "base64" => write_base64(bytes, 76, out),
                _ => out.push_str(std::str::from_utf8(bytes).map_err(|_| {
                    EvalError::new("MALFORMED_CHARACTER_CODING", "The bytes given to `to_char` are no UTF-8.")
                })?),
            }
            Ok(true)
        });
    };
    let format = Format::parse(text).map_err(|e| EvalError::internal(format!("a format of {e}")))?;
    let (values, scale) = (c.decimal(0), usize::from(*scale));
    c.strings(|row, out| {
        out.push_str(&format.write(values.get(row), scale));
        Ok(true)
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::*;

    #[test]
    fn reading_by_format() {
        for (text, format, want) in [
            ("1,234.5", "9,999.9", "1234.5"),
            ("-12", "S99", "-12"),
            ("+12", "S99", "12"),
            ("12-", "99MI", "-12"),
            ("<12>", "99PR", "-12"),
            ("12", "99PR", "12"),
            ("$7.89", "$9.99", "7.89"),
            ("12", "999.99", "12.00"),
            (" 12", "999", "12"),
            ("12.5", "00.0", "12.5"),
            ("1234", "999", "!INVALID_FORMAT.MISMATCH_INPUT"),
            ("1234", "9,999", "!INVALID_FORMAT.MISMATCH_INPUT"),
            ("2.5", "00.0", "!INVALID_FORMAT.MISMATCH_INPUT"),
            ("12", "xx", "!INVALID_FORMAT.WRONG_NUM_DIGIT"),
            ("12", "", "!INVALID_FORMAT.EMPTY"),
            ("12", "9.9.9", "!INVALID_FORMAT.WRONG_NUM_TOKEN"),
            ("12", "9$", "!INVALID_FORMAT.CUR_MUST_BEFORE_DIGIT"),
            ("12", "9,", "!INVALID_FORMAT.CONT_THOUSANDS_SEPS"),
            ("12", "9S9", "!INVALID_FORMAT.UNEXPECTED_TOKEN"),
        ] {
            assert_eq!(eval("to_number", &[str(text), str(format)]), want, "{text} {format}");
        }
        assert_eq!(eval("try_to_number", &[str("abc"), str("999")]), "NULL");
        assert_eq!(eval("try_to_number", &[str("1,2"), str("9,9")]), "12");
        assert_eq!(type_of("to_number", &[str("1"), str("999.99")]), "DECIMAL(5,2)");
        assert_eq!(eval("to_number", &[null_of(ssql_ir::DataType::String), str("9")]), "NULL");
    }

    #[test]
    fn writing_by_format() {
        for (number, format, want) in [
            ("454", "999", "454"),
            ("5", "999", "  5"),
            ("5", "000", "005"),
            ("12454.8", "99G999D9S", "12,454.8+"),
            ("-234567.89", "$9,999,999.99S", "$  234,567.89-"),
            ("-5", "S999", "  -5"),
            ("-5", "999PR", "  <5>"),
            ("-0.5", "9.9PR", " <.5>"),
            ("1234", "999", "###"),
            ("12.345", "99.9", "##.#"),
            ("1", "0,999", "0,  1"),
        ] {
            assert_eq!(eval("to_char", &[decimal(number), str(format)]), want, "{number} {format}");
        }
        assert_eq!(eval("to_char", &[binary(b"abc"), str("hex")]), "616263");
        assert_eq!(eval("to_char", &[binary(b"abc"), str("bad")]), "!INVALID_PARAMETER_VALUE.BINARY_FORMAT");
        assert_eq!(eval("to_char", &[date("2016-04-08"), str("y")]), "2016");
        assert_eq!(eval("to_char", &[boolean(true), str("9")]), "!DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE");
    }
}
