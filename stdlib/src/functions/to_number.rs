//! `to_number`: text as a DECIMAL by a format of digits (`9`, `0`), separators and signs.

use arrow::datatypes::Decimal128Type;
use ssql_ir::{DataType as T, Literal};

use crate::call::{Call, EvalResult};
use crate::error::{EvalError, ResolveError};
use crate::function::{FunctionDef, NullRule, Param, scalar_with};
use crate::resolve::{TypeCall, Typed};
use crate::text::parse_decimal;

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
];

/// How the sign is written.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Sign {
    None,
    /// `S`: plus or minus; `MI`: minus. Both may be left out.
    Front,
    Back,
    /// `PR`: negative numbers in angle brackets.
    Brackets,
}

/// A format: digits between separators, from left to right.
#[derive(Debug, Clone)]
struct Format {
    sign: Sign,
    plus: bool,
    dollar: bool,
    groups: Vec<usize>,
    /// It starts with `0`: all digits before the point have to be there.
    exact: bool,
    fraction: usize,
}

impl Format {
    /// Reads a format; Spark's condition if it is none.
    fn parse(text: &str) -> Result<Format, &'static str> {
        let upper = text.to_ascii_uppercase().replace('D', ".").replace('G', ",");
        let mut rest = upper.as_str();
        let (mut sign, mut plus) = (Sign::None, false);
        if let Some(tail) = rest.strip_prefix("MI") {
            (sign, rest) = (Sign::Front, tail);
        } else if let Some(tail) = rest.strip_prefix('S') {
            (sign, plus, rest) = (Sign::Front, true, tail);
        }
        let dollar = rest.starts_with('$');
        rest = rest.strip_prefix('$').unwrap_or(rest);
        for (suffix, meant) in [("PR", Sign::Brackets), ("MI", Sign::Back), ("S", Sign::Back)] {
            if sign == Sign::None
                && let Some(head) = rest.strip_suffix(suffix)
            {
                (sign, plus, rest) = (meant, suffix == "S", head);
            }
        }
        let (whole, fraction) = rest.split_once('.').unwrap_or((rest, ""));
        let is_digit = |c: char| matches!(c, '9' | '0');
        if !rest.contains(is_digit) {
            return Err("INVALID_FORMAT.WRONG_NUM_DIGIT");
        }
        if !fraction.chars().all(is_digit) || !whole.chars().all(|c| is_digit(c) || c == ',') {
            return Err("INVALID_FORMAT.UNEXPECTED_TOKEN");
        }
        let groups: Vec<usize> = whole.split(',').map(str::len).collect();
        if groups.len() > 1 && groups.contains(&0) {
            return Err("INVALID_FORMAT.CONT_THOUSANDS_SEPS");
        }
        Ok(Format { sign, plus, dollar, groups, exact: whole.starts_with('0'), fraction: fraction.len() })
    }

    /// The DECIMAL that holds all numbers of the format, if there is one.
    fn data_type(&self) -> Option<T> {
        let precision = self.groups.iter().sum::<usize>() + self.fraction;
        (precision <= 38).then_some(T::Decimal(precision as u8, self.fraction as u8))
    }

    /// The plain number (`-1234.5`) that a text stands for; `None` if it does not follow the format.
    fn read(&self, text: &str) -> Option<String> {
        let mut rest = text.trim_matches(' ');
        let mut negative = false;
        let signed = |c: char| c == '-' || (c == '+' && self.plus);
        match self.sign {
            Sign::Front if rest.starts_with(signed) => {
                negative = rest.starts_with('-');
                rest = &rest[1..];
            }
            Sign::Back if rest.ends_with(signed) => {
                negative = rest.ends_with('-');
                rest = &rest[..rest.len() - 1];
            }
            Sign::Brackets if rest.starts_with('<') => {
                negative = true;
                rest = rest[1..].strip_suffix('>')?;
            }
            _ => {}
        }
        if self.dollar {
            rest = rest.strip_prefix('$')?;
        }
        let (whole, fraction) = rest.split_once('.').unwrap_or((rest, ""));
        let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        let given: Vec<&str> = whole.split(',').collect();
        let first = self.groups.len().checked_sub(given.len())?;
        for (i, (group, size)) in given.iter().zip(&self.groups[first..]).enumerate() {
            let fits = if i == 0 && !self.exact { group.len() <= *size } else { group.len() == *size };
            if !fits || !digits(group) || (given.len() > 1 && group.is_empty()) {
                return None;
            }
        }
        let complete = !self.exact || given.len() == self.groups.len();
        if !complete || !digits(fraction) || fraction.len() > self.fraction || whole.len() + fraction.len() == 0 {
            return None;
        }
        Some(format!("{}{}.{fraction}", if negative { "-" } else { "" }, given.concat()))
    }
}

fn number_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, 2)?;
    let Some(Literal::String(text)) = c.literal(1) else {
        return Err(ResolveError::new(
            "DATATYPE_MISMATCH.NON_FOLDABLE_INPUT",
            format!("The format of `{}` has to be a constant STRING.", c.name),
        )
        .at_arg(1));
    };
    let refused = |condition| ResolveError::new(condition, format!("The format '{text}' is invalid.")).at_arg(1);
    let format = Format::parse(text).map_err(refused)?;
    let t = format.data_type().ok_or_else(|| refused("INVALID_FORMAT.WRONG_NUM_DIGIT"))?;
    Ok(Typed::new(vec![c.coerce(0, Param::String)?, T::String], t))
}

fn to_number(c: &Call<'_>) -> EvalResult {
    let text = c.constant_str(1).unwrap_or("");
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
        ] {
            assert_eq!(eval("to_number", &[str(text), str(format)]), want, "{text} {format}");
        }
        assert_eq!(eval("try_to_number", &[str("abc"), str("999")]), "NULL");
        assert_eq!(eval("try_to_number", &[str("1,2"), str("9,9")]), "12");
        assert_eq!(type_of("to_number", &[str("1"), str("999.99")]), "DECIMAL(5,2)");
        assert_eq!(eval("to_number", &[null_of(ssql_ir::DataType::String), str("9")]), "NULL");
    }
}
