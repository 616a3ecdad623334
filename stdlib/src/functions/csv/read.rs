//! `from_csv` and `schema_of_csv`.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, Date32Array, NullBufferBuilder, StringViewArray, StructArray, TimestampMicrosecondArray,
};
use ssql_ir::{CastMode, DataType as T, Field};

use super::split::Dialect;
use crate::arrow::{arrow_field, arrow_type};
use crate::call::{Call, EvalResult};
use crate::cast::cast_array;
use crate::error::EvalError;
use crate::eval::EvalContext;
use crate::functions::json::Options;
use crate::text::{parse_date, parse_timestamp, parse_timestamp_without_zone};

/// The words for what has no digits.
struct Words {
    nan: String,
    positive: String,
    negative: String,
}

impl Words {
    fn of(options: &Options) -> Words {
        let word = |name: &str, default: &str| options.get(name).unwrap_or(default).to_owned();
        Words {
            nan: word("nanvalue", "NaN"),
            positive: word("positiveinf", "Inf"),
            negative: word("negativeinf", "-Inf"),
        }
    }

    /// A number's text as `CAST` reads it; `None` if it is no number here.
    fn number<'s>(&self, text: &'s str) -> Option<&'s str> {
        match text {
            t if t == self.nan => Some("NaN"),
            t if t == self.positive => Some("Infinity"),
            t if t == self.negative => Some("-Infinity"),
            "NaN" | "Infinity" | "+Infinity" | "-Infinity" => Some(text),
            // CAST knows more words than these.
            t if t.contains(['n', 'N']) => None,
            t => Some(t),
        }
    }
}

/// `from_csv(text, schema[, options])`.
pub(super) fn from_csv(c: &Call<'_>) -> EvalResult {
    let T::Struct(fields) = c.data_type else { return Err(EvalError::internal("a struct")) };
    let options = Options::of(c, 2)?;
    let dialect = Dialect::of(&options, "", false)?;
    let fail_fast = options.fail_fast(c.name)?;
    let corrupt = fields.iter().position(|f| f.data_type == T::String && f.name == options.corrupt_column());
    let s = c.str(0);
    let n_values = fields.len() - usize::from(corrupt.is_some());
    // The texts of each field, the field of bad lines aside.
    let mut texts: Vec<Vec<Option<String>>> = vec![Vec::with_capacity(c.rows); n_values];
    let mut bad = vec![false; c.rows];
    let mut nulls = NullBufferBuilder::new(c.rows);
    for (row, is_bad) in bad.iter_mut().enumerate() {
        let line = s.opt(row);
        nulls.append(line.is_some());
        let mut given = dialect.fields(line.unwrap_or("")).into_iter();
        *is_bad = line.is_some() && given.len() != n_values;
        for column in &mut texts {
            column.push(given.next().filter(|v| *v != dialect.null));
        }
    }
    let mut nulls = nulls.finish();
    let mut columns: Vec<ArrayRef> = vec![];
    let mut values = texts.into_iter();
    for (i, field) in fields.iter().enumerate() {
        if Some(i) == corrupt {
            // Filled in below, when all bad lines are known.
            columns.push(Arc::new(StringViewArray::new_null(c.rows)));
            continue;
        }
        let texts = values.next().ok_or_else(|| EvalError::internal("a column of texts"))?;
        let column = column(c, &options, field, &texts)?;
        for (row, is_bad) in bad.iter_mut().enumerate() {
            *is_bad |= texts[row].is_some() && column.is_null(row);
        }
        columns.push(column);
    }
    if fail_fast && let Some(row) = bad.iter().position(|b| *b) {
        let text = s.opt(row).unwrap_or("");
        return Err(EvalError::new(
            "MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION",
            format!("Malformed records are detected in record parsing: {text}. Parse Mode: FAILFAST."),
        )
        .with_help("use the mode PERMISSIVE to get NULL for what does not fit")
        .at_row(row));
    }
    if let Some(i) = corrupt {
        columns[i] = Arc::new((0..c.rows).map(|row| s.opt(row).filter(|_| bad[row])).collect::<StringViewArray>());
    }
    let types: Vec<_> = fields.iter().map(arrow_field).collect();
    Ok(Arc::new(StructArray::try_new_with_length(types.into(), columns, nulls.take(), c.rows)?))
}

/// The texts of a field as its type; NULL where they are none of it.
fn column(c: &Call<'_>, options: &Options, field: &Field, texts: &[Option<String>]) -> EvalResult {
    let zone = options.zone(c)?;
    let texts = || texts.iter().map(Option::as_deref);
    let t = &field.data_type;
    match t {
        T::Date => {
            let days: Date32Array = texts().map(|s| s.and_then(|s| options.read_date(s, parse_date))).collect();
            return Ok(Arc::new(days));
        }
        T::Timestamp => {
            let micros: TimestampMicrosecondArray = texts()
                .map(|s| s.and_then(|s| options.read_timestamp(s, &zone, |s| parse_timestamp(s, &zone))))
                .collect();
            return Ok(Arc::new(micros.with_data_type(arrow_type(t))));
        }
        T::TimestampNtz => {
            let micros: TimestampMicrosecondArray =
                texts().map(|s| s.and_then(|s| options.read_timestamp_ntz(s, parse_timestamp_without_zone))).collect();
            return Ok(Arc::new(micros));
        }
        _ => {}
    }
    let words = Words::of(options);
    // What CAST takes and a CSV field does not is left out.
    let fits = |s: &str| match t {
        T::Boolean => s.eq_ignore_ascii_case("true") || s.eq_ignore_ascii_case("false"),
        t if t.is_integer() || matches!(t, T::Decimal(..)) => !s.contains(char::is_whitespace),
        _ => true,
    };
    let ready: StringViewArray = texts()
        .map(|s| {
            let s = s.filter(|s| fits(s))?;
            if t.is_float() { words.number(s) } else { Some(s) }
        })
        .collect();
    let ready: ArrayRef = Arc::new(ready);
    let ctx = EvalContext { time_zone: zone.clone(), ..c.ctx.clone() };
    cast_array(&ready, &T::String, t, CastMode::Try, &ctx)
}

/// `schema_of_csv(text[, options])`.
pub(super) fn schema_of_csv(c: &Call<'_>) -> EvalResult {
    let options = Options::of(c, 1)?;
    let dialect = Dialect::of(&options, "", false)?;
    let words = Words::of(&options);
    let zone = options.zone(c)?;
    let dates = crate::text::DatePattern::for_reading("yyyy-MM-dd")?;
    let s = c.str(0);
    let infer = |text: &str| {
        if text.is_empty() || text == dialect.null {
            return T::String;
        }
        if !text.contains(char::is_whitespace) {
            if text.parse::<i32>().is_ok() {
                return T::Int32;
            }
            if text.parse::<i64>().is_ok() {
                return T::Int64;
            }
            let digits = text.trim_start_matches(['+', '-']);
            if (1..=38).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit()) {
                return T::Decimal(digits.trim_start_matches('0').len().max(1) as u8, 0);
            }
        }
        if words.number(text).and_then(crate::text::parse_double).is_some() {
            return T::Float64;
        }
        let day = |s: &str| dates.parse(s).map(|_| 0);
        if options.read_date(text, day).is_some() {
            return T::Date;
        }
        if options.read_timestamp(text, &zone, |s| parse_timestamp(s, &zone)).is_some() {
            return T::Timestamp;
        }
        if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") { T::Boolean } else { T::String }
    };
    c.strings(|row, out| {
        let line = s.get(row);
        let fields = dialect.fields(line);
        if fields.is_empty() {
            return Err(EvalError::new("INVALID_CSV_RECORD", "The line given to `schema_of_csv` is empty."));
        }
        let fields =
            fields.iter().enumerate().map(|(i, text)| Field::new(format!("_c{i}"), infer(text), true)).collect();
        out.push_str(&T::Struct(fields).to_string());
        Ok(true)
    })
}
