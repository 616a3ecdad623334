//! The options of the JSON functions: a constant map of texts, names in any case.

use jiff::tz::TimeZone;

use super::read::option_pairs;
use super::tape::Leniency;
use crate::call::Call;
use crate::error::EvalError;
use crate::text::DatePattern;
use crate::time::{MICROS_PER_DAY, parse_zone, split_micros};

/// Options of one call.
#[derive(Debug, Default)]
pub(in crate::functions) struct Options {
    pairs: Vec<(String, String)>,
    pub(super) leniency: Leniency,
    timestamp: Option<DatePattern>,
    timestamp_ntz: Option<DatePattern>,
    date: Option<DatePattern>,
}

impl Options {
    /// The options in argument `at`, if it is there; patterns are compiled for reading.
    pub fn of(c: &Call<'_>, at: usize) -> Result<Options, EvalError> {
        Options::with(c, at, DatePattern::for_reading)
    }

    /// As [`Options::of`], patterns for printing.
    pub fn for_printing(c: &Call<'_>, at: usize) -> Result<Options, EvalError> {
        Options::with(c, at, DatePattern::for_printing)
    }

    fn with(
        c: &Call<'_>,
        at: usize,
        compile: fn(&str) -> Result<DatePattern, EvalError>,
    ) -> Result<Options, EvalError> {
        let mut options = Options { pairs: option_pairs(c, at), ..Options::default() };
        let standard = Leniency::default();
        let flag = |name: &str, default: bool| options.flag(name, default);
        let leniency = Leniency {
            single_quotes: flag("allowsinglequotes", standard.single_quotes),
            unquoted_names: flag("allowunquotedfieldnames", standard.unquoted_names),
            leading_zeros: flag("allownumericleadingzeros", standard.leading_zeros),
            control_characters: flag("allowunquotedcontrolchars", standard.control_characters),
            any_escape: flag("allowbackslashescapinganycharacter", standard.any_escape),
            comments: flag("allowcomments", standard.comments),
            non_numbers: flag("allownonnumericnumbers", standard.non_numbers),
        };
        options.leniency = leniency;
        options.timestamp = options.get("timestampformat").map(compile).transpose()?;
        options.timestamp_ntz = options.get("timestampntzformat").map(compile).transpose()?;
        options.date = options.get("dateformat").map(compile).transpose()?;
        Ok(options)
    }

    /// The value of an option.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// A yes-or-no option.
    pub fn flag(&self, name: &str, default: bool) -> bool {
        self.get(name).map_or(default, |v| v.eq_ignore_ascii_case("true"))
    }

    /// Whether a bad record is an error. A mode that Spark does not know is PERMISSIVE, as it is there.
    pub fn fail_fast(&self, function: &str) -> Result<bool, EvalError> {
        match self.get("mode").map(str::to_ascii_uppercase).as_deref() {
            Some("FAILFAST") => Ok(true),
            Some("DROPMALFORMED") => Err(EvalError::new(
                "PARSE_MODE_UNSUPPORTED",
                format!("`{function}` does not support the DROPMALFORMED mode: it takes PERMISSIVE and FAILFAST."),
            )),
            _ => Ok(false),
        }
    }

    /// The field that takes the text of bad records.
    pub fn corrupt_column(&self) -> &str {
        self.get("columnnameofcorruptrecord").unwrap_or("_corrupt_record")
    }

    /// The zone that times are in: the session's unless said.
    pub fn zone(&self, c: &Call<'_>) -> Result<TimeZone, EvalError> {
        let Some(name) = self.get("timezone") else { return Ok(c.ctx.time_zone.clone()) };
        parse_zone(name).ok_or_else(|| EvalError::new("INVALID_TIMEZONE", format!("The timezone: {name} is invalid.")))
    }

    /// Reads a DATE by the pattern, or by `default` if there is none.
    pub fn read_date(&self, s: &str, default: impl Fn(&str) -> Option<i32>) -> Option<i32> {
        match &self.date {
            Some(p) => i32::try_from(split_micros(p.parse(s)?.local).0).ok(),
            None => default(s),
        }
    }

    /// Reads a TIMESTAMP by the pattern, or by `default` if there is none.
    pub fn read_timestamp(&self, s: &str, zone: &TimeZone, default: impl Fn(&str) -> Option<i64>) -> Option<i64> {
        match &self.timestamp {
            Some(p) => Some(p.parse(s)?.instant(zone)),
            None => default(s),
        }
    }

    /// Reads a TIMESTAMP_NTZ by the pattern, or by `default` if there is none.
    pub fn read_timestamp_ntz(&self, s: &str, default: impl Fn(&str) -> Option<i64>) -> Option<i64> {
        match &self.timestamp_ntz {
            Some(p) => Some(p.parse(s)?.local),
            None => default(s),
        }
    }

    /// Writes a TIMESTAMP by its pattern; `false` if there is none.
    pub fn write_timestamp(&self, micros: i64, zone: &TimeZone, out: &mut String) -> bool {
        self.timestamp.as_ref().map(|p| p.write(micros, zone, out)).is_some()
    }

    /// Writes a TIMESTAMP_NTZ by its pattern; `false` if there is none.
    pub fn write_timestamp_ntz(&self, local: i64, out: &mut String) -> bool {
        self.timestamp_ntz.as_ref().map(|p| p.write(local, &TimeZone::UTC, out)).is_some()
    }

    /// Writes a DATE by its pattern; `false` if there is none.
    pub fn write_date(&self, days: i32, out: &mut String) -> bool {
        let local = i64::from(days) * MICROS_PER_DAY;
        self.date.as_ref().map(|p| p.write(local, &TimeZone::UTC, out)).is_some()
    }
}
