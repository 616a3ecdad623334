//! How dates and timestamps are written in text formats: `dateFormat`, `timestampFormat`, `timestampNTZFormat`.

use jiff::tz::TimeZone;
use ssql_engine::connector::{ConnectorError, Domain, Options};
use ssql_stdlib::time::parse_zone;

use crate::pattern::Pattern;

/// The patterns of a text format; without one, Spark's default reading applies.
#[derive(Debug, Clone, Default)]
pub struct TextFormats {
    /// `dateFormat`
    pub date: Option<Pattern>,
    /// `timestampFormat`
    pub timestamp: Option<Pattern>,
    /// `timestampNTZFormat`
    pub timestamp_ntz: Option<Pattern>,
}

impl TextFormats {
    /// Reads the options of a relation.
    pub fn new(options: &Options) -> Result<TextFormats, ConnectorError> {
        let pattern = |name: &str| {
            options.get(name).map(|text| Pattern::new(text).map_err(|why| bad_pattern(name, text, &why))).transpose()
        };
        Ok(TextFormats {
            date: pattern("dateFormat")?,
            timestamp: pattern("timestampFormat")?,
            timestamp_ntz: pattern("timestampNTZFormat")?,
        })
    }
}

fn bad_pattern(name: &str, text: &str, why: &str) -> ConnectorError {
    let message = format!("option `{name}`: pattern `{text}`: {why}");
    ConnectorError::new("INVALID_DATETIME_PATTERN", Domain::User, message)
}

/// The option `timeZone`, or else the session's zone.
pub fn time_zone(options: &Options, session: &TimeZone) -> Result<TimeZone, ConnectorError> {
    match options.get("timeZone") {
        None => Ok(session.clone()),
        Some(name) => parse_zone(name).ok_or_else(|| {
            ConnectorError::new("INVALID_TIMEZONE", Domain::User, format!("option `timeZone`: no time zone `{name}`"))
        }),
    }
}
