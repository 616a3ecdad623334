//! Dates and timestamps from text.

use jiff::tz::TimeZone;

use crate::time::{MICROS_PER_DAY, MICROS_PER_SECOND, checked_date, parse_zone, to_instant};

/// A timestamp's parts as they stand in the text.
struct Parts<'a> {
    /// Wall clock, microseconds.
    local: i64,
    zone: Option<&'a str>,
}

/// Digits from the start: (their number, their value), at most `max` of them.
fn number(s: &str, max: usize) -> Option<(usize, i64)> {
    let n = s.bytes().take_while(u8::is_ascii_digit).count();
    if n == 0 || n > max {
        return None;
    }
    Some((n, s[..n].parse().ok()?))
}

/// `[+-]yyyy[-[m]m[-[d]d]]` at the start of the text: days, what follows, and whether a day was written.
fn date_prefix(s: &str) -> Option<(i32, &str, bool)> {
    let (sign, mut rest) = match s.as_bytes().first()? {
        b'-' => (-1, &s[1..]),
        b'+' => (1, &s[1..]),
        _ => (1, s),
    };
    let (n, year) = number(rest, 7)?;
    if n < 4 {
        return None;
    }
    rest = &rest[n..];
    let (mut month, mut day, mut whole) = (1, 1, false);
    if let Some(r) = rest.strip_prefix('-') {
        let (n, m) = number(r, 2)?;
        (month, rest) = (m, &r[n..]);
        if let Some(r) = rest.strip_prefix('-') {
            let (n, d) = number(r, 2)?;
            (day, rest, whole) = (d, &r[n..], true);
        }
    }
    Some((checked_date(sign * year, month, day)?, rest, whole))
}

fn parts(s: &str) -> Option<Parts<'_>> {
    let s = super::trim(s);
    let (days, rest, whole) = date_prefix(s)?;
    let midnight = i64::from(days).checked_mul(MICROS_PER_DAY)?;
    if rest.is_empty() {
        return Some(Parts { local: midnight, zone: None });
    }
    let rest = rest.strip_prefix([' ', 'T']).filter(|_| whole)?;
    let (n, hour) = number(rest, 2)?;
    let mut rest = &rest[n..];
    let (mut minute, mut second, mut micros, mut zone) = (0, 0, 0, None);
    if !rest.is_empty() {
        let r = rest.strip_prefix(':')?;
        let (n, m) = number(r, 2)?;
        (minute, rest) = (m, &r[n..]);
    }
    if !rest.is_empty() {
        let r = rest.strip_prefix(':')?;
        let (n, s) = number(r, 2)?;
        (second, rest) = (s, &r[n..]);
        if let Some(r) = rest.strip_prefix('.') {
            let n = r.bytes().take_while(u8::is_ascii_digit).count();
            // Digits past the sixth are cut off.
            micros = r[..n].bytes().chain(std::iter::repeat(b'0')).take(6).fold(0, |v, b| v * 10 + i64::from(b - b'0'));
            rest = &r[n..];
        }
        // A zone may stand only behind the seconds.
        if !rest.is_empty() {
            zone = Some(rest);
        }
    }
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let of_day = ((hour * 60 + minute) * 60 + second) * MICROS_PER_SECOND + micros;
    Some(Parts { local: midnight.checked_add(of_day)?, zone })
}

/// Reads a TIMESTAMP: `yyyy[-mm[-dd[ hh[:mm[:ss[.f]]]]]]` with `T` or a blank in the middle and a zone behind the
/// seconds; without one it is the wall clock of `zone`. `epoch` is 1970-01-01 00:00:00 UTC. Microseconds since then.
pub fn parse_timestamp(s: &str, zone: &TimeZone) -> Option<i64> {
    if super::trim(s).eq_ignore_ascii_case("epoch") {
        return Some(0);
    }
    let parts = parts(s)?;
    match parts.zone {
        None => Some(to_instant(zone, parts.local)),
        Some(name) => Some(to_instant(&parse_zone(name)?, parts.local)),
    }
}

/// Reads a TIMESTAMP_NTZ: as [`parse_timestamp`], but a zone in the text is dropped. Wall-clock microseconds.
pub fn parse_timestamp_ntz(s: &str) -> Option<i64> {
    if super::trim(s).eq_ignore_ascii_case("epoch") {
        return Some(0);
    }
    let parts = parts(s)?;
    if let Some(name) = parts.zone {
        parse_zone(name)?;
    }
    Some(parts.local)
}

/// Reads a TIMESTAMP_NTZ as Spark's text sources do: as [`parse_timestamp_ntz`], but a text with a zone is none.
pub fn parse_timestamp_without_zone(s: &str) -> Option<i64> {
    if super::trim(s).eq_ignore_ascii_case("epoch") {
        return None;
    }
    parts(s).filter(|p| p.zone.is_none()).map(|p| p.local)
}

/// Reads a DATE: `yyyy[-mm[-dd]]`; what follows a full date behind a blank or `T` does not matter. Days since 1970.
pub fn parse_date(s: &str) -> Option<i32> {
    let s = super::trim(s);
    if s.eq_ignore_ascii_case("epoch") {
        return Some(0);
    }
    let (days, rest, whole) = date_prefix(s)?;
    (rest.is_empty() || (whole && rest.starts_with([' ', 'T']))).then_some(days)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::write_timestamp;

    fn utc(s: &str) -> Option<String> {
        let mut out = String::new();
        write_timestamp(parse_timestamp(s, &TimeZone::UTC)?, &mut out);
        Some(out)
    }

    #[test]
    fn shapes_of_timestamps() {
        for (text, shown) in [
            ("2024", "2024-01-01 00:00:00"),
            ("2024-03", "2024-03-01 00:00:00"),
            ("2024-3-9", "2024-03-09 00:00:00"),
            ("2024-03-09 4", "2024-03-09 04:00:00"),
            ("2024-03-09 4:5", "2024-03-09 04:05:00"),
            ("2024-03-09 4:5:6", "2024-03-09 04:05:06"),
            ("2024-03-09T04:05:06.7", "2024-03-09 04:05:06.7"),
            ("2024-03-09 04:05:06.123456789", "2024-03-09 04:05:06.123456"),
            ("  2024-03-09 01:00:00  ", "2024-03-09 01:00:00"),
            ("1969-07-20 20:17:40", "1969-07-20 20:17:40"),
            ("0001-01-01 00:00:00", "0001-01-01 00:00:00"),
            ("9999-12-31 23:59:59.999999", "9999-12-31 23:59:59.999999"),
            ("epoch", "1970-01-01 00:00:00"),
            ("2024-03-09 04:05:06 -0330", "2024-03-09 07:35:06"),
            ("2024-03-09 04:05:06 Asia/Tokyo", "2024-03-08 19:05:06"),
            ("2024-03-09 04:05:06 GMT-01:30", "2024-03-09 05:35:06"),
            ("2024-03-09 04:05:06+02:00", "2024-03-09 02:05:06"),
            ("2024-03-09 04:05:06+2", "2024-03-09 02:05:06"),
            ("2024-03-09T04:05:06.5 UTC+1", "2024-03-09 03:05:06.5"),
            ("2024-03-09T04:05:06Z", "2024-03-09 04:05:06"),
        ] {
            assert_eq!(utc(text).as_deref(), Some(shown), "{text}");
        }
    }

    #[test]
    fn what_is_no_timestamp() {
        for text in [
            "2024-03-09 04:05 Z",
            "2024-02-30 00:00:00",
            "2024-03-09 24:00:00",
            "2024-03-09 10:61:00",
            "20240309",
            "09/03/2024",
            "2024-03-09 01:02:03 Mars/Base",
            "",
            "2024-13-01",
            "2024-03-09T",
        ] {
            assert_eq!(utc(text), None, "{text}");
        }
        assert_eq!(parse_date("2024/02/29"), None);
        assert_eq!(parse_date("24-02-29"), None);
        assert_eq!(parse_date("2024-02-29 junk"), Some(19_782));
        assert_eq!(parse_date("2024-02-29T01"), Some(19_782));
        assert_eq!(parse_date("2024-2"), parse_date("2024-02-01"));
    }
}
