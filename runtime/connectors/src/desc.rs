//! Short forms for describing options, and readers for their values.

use ssql_engine::connector::{ConnectorError, Options};
use ssql_ir::{OptionDesc, OptionKind, OptionScope};

/// An option that need not be given and has no default.
pub fn option(name: &'static str, kind: OptionKind, applies: OptionScope, doc: &'static str) -> OptionDesc {
    OptionDesc { name, kind, required: false, default: None, applies, doc }
}

/// An option with a default.
pub fn defaulted(
    name: &'static str,
    kind: OptionKind,
    default: &'static str,
    applies: OptionScope,
    doc: &'static str,
) -> OptionDesc {
    OptionDesc { name, kind, required: false, default: Some(default), applies, doc }
}

/// A size such as `64m` or `1g`; a bare number counts bytes.
pub fn bytes(options: &Options, name: &str) -> Result<Option<u64>, ConnectorError> {
    let Some(text) = options.get(name) else { return Ok(None) };
    let lower = text.trim().to_lowercase();
    let digits = lower.trim_end_matches(|c: char| c.is_ascii_alphabetic()).trim_end();
    let unit = match lower[digits.len()..].trim() {
        "" | "b" => Some(1u64),
        "k" | "kb" => Some(1 << 10),
        "m" | "mb" => Some(1 << 20),
        "g" | "gb" => Some(1 << 30),
        "t" | "tb" => Some(1 << 40),
        _ => None,
    };
    let size = digits.parse::<u64>().ok().zip(unit).and_then(|(n, unit)| n.checked_mul(unit));
    size.map(Some).ok_or_else(|| ConnectorError::bad_option(name, text, "a size such as 64m"))
}

/// A span of time such as `7d`, `90s` or `10 minutes`, in microseconds; a bare number counts `unit` microseconds.
pub fn duration(options: &Options, name: &str, unit: i64, default: i64) -> Result<i64, ConnectorError> {
    let Some(text) = options.get(name) else { return Ok(default) };
    let lower = text.trim().to_lowercase();
    let digits = lower.bytes().take_while(u8::is_ascii_digit).count();
    let (number, word) = lower.split_at(digits);
    let micros = match word.trim() {
        "" => Some(unit),
        "us" => Some(1),
        "ms" => Some(1_000),
        "s" | "sec" => Some(1_000_000),
        "m" | "min" => Some(60_000_000),
        "h" => Some(3_600_000_000),
        "d" => Some(86_400_000_000),
        _ => None,
    };
    let short = number.parse::<i64>().ok().zip(micros).and_then(|(n, m)| n.checked_mul(m));
    let long = || ssql_stdlib::parse_interval(text).filter(|(months, _)| *months == 0).map(|(_, micros)| micros);
    short
        .or_else(long)
        .filter(|v| *v >= 0)
        .ok_or_else(|| ConnectorError::bad_option(name, text, "a span of time such as 7d or 10 minutes"))
}

/// A whole number that must be positive, if it is given.
pub fn positive(options: &Options, name: &str) -> Result<Option<u64>, ConnectorError> {
    let Some(text) = options.get(name) else { return Ok(None) };
    match text.trim().parse() {
        Ok(n) if n > 0 => Ok(Some(n)),
        _ => Err(ConnectorError::bad_option(name, text, "a positive whole number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_spans_are_read_with_their_units() {
        let options = Options::new(
            [("a", "64m"), ("b", "10"), ("c", "7d"), ("d", "10 minutes"), ("e", "x")]
                .map(|(k, v)| (k.to_string(), v.to_string())),
        );
        assert_eq!(bytes(&options, "a").expect("a size"), Some(64 << 20));
        assert_eq!(bytes(&options, "b").expect("a size"), Some(10));
        assert_eq!(duration(&options, "c", 1, 0).expect("a span"), 7 * 86_400_000_000);
        assert_eq!(duration(&options, "d", 1, 0).expect("a span"), 600_000_000);
        assert_eq!(duration(&options, "b", 1_000_000, 0).expect("a span"), 10_000_000);
        assert!(
            bytes(&options, "e").is_err() && duration(&options, "e", 1, 0).is_err() && positive(&options, "e").is_err()
        );
    }
}
