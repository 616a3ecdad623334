//! Values as text and text as values, by Spark's rules.

mod date_pattern;
mod format;
mod interval;
mod number;
mod parse_time;
mod types;

pub use date_pattern::{DatePattern, ParsedTime};
pub use format::{CellFormatter, write_date, write_timestamp};
pub use interval::{IntervalText, parse_interval, parse_interval_as, read_interval, write_day_time, write_year_month};
pub use number::{
    BadDecimal, parse_boolean, parse_decimal, parse_double, parse_float, parse_integer, write_decimal, write_double,
    write_float,
};
pub use parse_time::{parse_date, parse_timestamp, parse_timestamp_ntz, parse_timestamp_without_zone};
pub use types::{parse_data_type, parse_schema};

/// Cuts off what Spark's casts cut off: blanks and control characters on both sides.
pub fn trim(s: &str) -> &str {
    s.trim_matches(|c: char| c <= ' ' || c == '\u{7f}')
}
