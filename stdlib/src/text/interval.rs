//! Intervals as text.

use crate::time::{MICROS_PER_DAY, MICROS_PER_SECOND};

/// The fields of a day-time interval, largest first. `INTERVAL DAY TO SECOND` runs from the first to the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum IntervalUnit {
    /// Days.
    Day,
    /// Hours.
    Hour,
    /// Minutes.
    Minute,
    /// Seconds with their fraction.
    Second,
}

impl IntervalUnit {
    fn name(self) -> &'static str {
        match self {
            IntervalUnit::Day => "DAY",
            IntervalUnit::Hour => "HOUR",
            IntervalUnit::Minute => "MINUTE",
            IntervalUnit::Second => "SECOND",
        }
    }
}

fn two_digits(v: u64, out: &mut String) {
    if v < 10 {
        out.push('0');
    }
    out.push_str(itoa::Buffer::new().format(v));
}

/// Writes `INTERVAL '1 02:03:04.5' DAY TO SECOND`, with the fields from `start` to `end`; the first holds all that lies
/// above it, and what lies below the last is not shown.
pub fn write_day_time(micros: i64, start: IntervalUnit, end: IntervalUnit, out: &mut String) {
    let all = micros.unsigned_abs();
    let (day, hour, minute, second) = (
        MICROS_PER_DAY as u64,
        3600 * MICROS_PER_SECOND as u64,
        60 * MICROS_PER_SECOND as u64,
        MICROS_PER_SECOND as u64,
    );
    out.push_str("INTERVAL '");
    if micros < 0 {
        out.push('-');
    }
    for unit in [IntervalUnit::Day, IntervalUnit::Hour, IntervalUnit::Minute, IntervalUnit::Second] {
        if unit < start || unit > end {
            continue;
        }
        let (size, above) = match unit {
            IntervalUnit::Day => (day, u64::MAX),
            IntervalUnit::Hour => (hour, day),
            IntervalUnit::Minute => (minute, hour),
            IntervalUnit::Second => (second, minute),
        };
        let rest = if unit == start { all } else { all % above };
        match unit {
            IntervalUnit::Day => out.push_str(itoa::Buffer::new().format(rest / size)),
            _ => {
                if unit > start {
                    out.push(if unit == IntervalUnit::Hour { ' ' } else { ':' });
                }
                two_digits(rest / size, out);
            }
        }
        if unit == IntervalUnit::Second {
            write_fraction(rest % size, out);
        }
    }
    out.push_str("' ");
    out.push_str(start.name());
    if end != start {
        out.push_str(" TO ");
        out.push_str(end.name());
    }
}

/// Writes `.` and the microseconds without zeros at the end; nothing for 0.
pub(super) fn write_fraction(micros: u64, out: &mut String) {
    if micros == 0 {
        return;
    }
    let digits = format!("{micros:06}");
    out.push('.');
    out.push_str(digits.trim_end_matches('0'));
}

/// Writes `INTERVAL '1-6' YEAR TO MONTH`.
pub fn write_year_month(months: i32, out: &mut String) {
    let all = months.unsigned_abs();
    out.push_str("INTERVAL '");
    if months < 0 {
        out.push('-');
    }
    out.push_str(itoa::Buffer::new().format(all / 12));
    out.push('-');
    out.push_str(itoa::Buffer::new().format(all % 12));
    out.push_str("' YEAR TO MONTH");
}

/// Reads an interval: `10 minutes`, `1 hour 30 minutes`, `-1.5 seconds`, with or without the word INTERVAL; the form
/// `[d ]hh:mm:ss[.f]`; the form `y-m`. Months and microseconds.
pub fn parse_interval(s: &str) -> Option<(i32, i64)> {
    let s = super::trim(s);
    let s = match s.get(..8) {
        Some(word) if word.eq_ignore_ascii_case("interval") => super::trim(&s[8..]),
        _ => s,
    };
    if let Some(literal) = s.strip_prefix('\'') {
        // INTERVAL '...' DAY TO SECOND: the fields follow from the text.
        let (inner, _) = literal.split_once('\'')?;
        return parse_interval(inner).or_else(|| quoted(inner, &literal[inner.len() + 1..]));
    }
    if let Some(micros) = parse_clock(s) {
        return Some((0, micros));
    }
    if let Some(months) = parse_year_month(s) {
        return Some((months, 0));
    }
    let (mut months, mut micros, mut any) = (0i32, 0i64, false);
    let mut rest = s;
    while !rest.is_empty() {
        let (negative, digits) = match rest.as_bytes()[0] {
            b'-' => (true, rest[1..].trim_start()),
            b'+' => (false, rest[1..].trim_start()),
            _ => (false, rest),
        };
        let end = digits.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(digits.len());
        let (number, after) = digits.split_at(end);
        let after = after.trim_start();
        let unit_end = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, next) = after.split_at(unit_end);
        add(number, unit, negative, &mut months, &mut micros)?;
        any = true;
        rest = next.trim_start();
    }
    any.then_some((months, micros))
}

/// A lone number with its unit behind the quotes: `'3' DAY`.
fn quoted(number: &str, unit: &str) -> Option<(i32, i64)> {
    let unit = unit.trim();
    if unit.contains(' ') {
        return None;
    }
    parse_interval(&format!("{} {unit}", number.trim()))
}

fn add(number: &str, unit: &str, negative: bool, months: &mut i32, micros: &mut i64) -> Option<()> {
    let unit = unit.to_ascii_lowercase();
    let unit = unit.strip_suffix('s').unwrap_or(&unit);
    let sign = if negative { -1 } else { 1 };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || !fraction.is_empty() && unit != "second" {
        return None;
    }
    let value: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let size = match unit {
        "year" | "month" => {
            let m = value.checked_mul(if unit == "year" { 12 } else { 1 })? * sign;
            *months = months.checked_add(i32::try_from(m).ok()?)?;
            return Some(());
        }
        "week" => 7 * MICROS_PER_DAY,
        "day" => MICROS_PER_DAY,
        "hour" => 3600 * MICROS_PER_SECOND,
        "minute" => 60 * MICROS_PER_SECOND,
        "second" => MICROS_PER_SECOND,
        "millisecond" => 1000,
        "microsecond" => 1,
        _ => return None,
    };
    let part = fraction_micros(fraction)?;
    *micros = micros.checked_add(value.checked_mul(size)?.checked_add(part)?.checked_mul(sign)?)?;
    Some(())
}

/// Up to nine digits behind a point, cut off after the sixth.
fn fraction_micros(digits: &str) -> Option<i64> {
    if digits.len() > 9 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some(digits.bytes().chain(std::iter::repeat(b'0')).take(6).fold(0, |v, b| v * 10 + i64::from(b - b'0')))
}

/// `[+-][d ]hh:mm:ss[.f]`.
fn parse_clock(s: &str) -> Option<i64> {
    let (sign, rest) = match s.as_bytes().first()? {
        b'-' => (-1, &s[1..]),
        b'+' => (1, &s[1..]),
        _ => (1, s),
    };
    let (days, clock) = match rest.split_once(' ') {
        Some((d, clock)) => (d.parse::<u32>().ok()?, clock.trim_start()),
        None => (0, rest),
    };
    let mut fields = clock.split(':');
    let (h, m, sec) = (fields.next()?, fields.next()?, fields.next()?);
    if fields.next().is_some() {
        return None;
    }
    let (sec, fraction) = sec.split_once('.').unwrap_or((sec, ""));
    let two =
        |s: &str, max: i64| (s.len() <= 2).then(|| s.parse::<u8>().ok()).flatten().map(i64::from).filter(|v| *v <= max);
    let of_day =
        (two(h, 23)? * 3600 + two(m, 59)? * 60 + two(sec, 59)?) * MICROS_PER_SECOND + fraction_micros(fraction)?;
    i64::from(days).checked_mul(MICROS_PER_DAY)?.checked_add(of_day)?.checked_mul(sign)
}

/// `[+-]y-m`.
fn parse_year_month(s: &str) -> Option<i32> {
    let (sign, rest) = match s.as_bytes().first()? {
        b'-' => (-1, &s[1..]),
        b'+' => (1, &s[1..]),
        _ => (1, s),
    };
    let (y, m) = rest.split_once('-')?;
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    if !digits(y) || !digits(m) {
        return None;
    }
    let (y, m): (i32, i32) = (y.parse().ok()?, m.parse().ok().filter(|m| *m < 12)?);
    y.checked_mul(12)?.checked_add(m)?.checked_mul(sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_spark_forms() {
        let minute = 60 * MICROS_PER_SECOND;
        assert_eq!(parse_interval("10 minutes"), Some((0, 10 * minute)));
        assert_eq!(parse_interval("INTERVAL 1 hour 30 minutes"), Some((0, 90 * minute)));
        assert_eq!(parse_interval("1.5 seconds"), Some((0, 1_500_000)));
        assert_eq!(parse_interval("-1 week"), Some((0, -7 * MICROS_PER_DAY)));
        assert_eq!(parse_interval("1 02:03:04"), Some((0, MICROS_PER_DAY + 123 * minute + 4_000_000)));
        assert_eq!(parse_interval("2-3"), Some((27, 0)));
        assert_eq!(parse_interval("1 year 2 months"), Some((14, 0)));
        assert_eq!(parse_interval("INTERVAL '1 02:03:04' DAY TO SECOND"), parse_interval("1 02:03:04"));
        assert_eq!(parse_interval("x"), None);
        assert_eq!(parse_interval(""), None);
        assert_eq!(parse_interval("10"), None);
    }

    #[test]
    fn prints_fields() {
        let show = |micros, a, b| {
            let mut out = String::new();
            write_day_time(micros, a, b, &mut out);
            out
        };
        use IntervalUnit::{Day, Hour, Minute, Second};
        assert_eq!(show(41_399_500_000, Day, Second), "INTERVAL '0 11:29:59.5' DAY TO SECOND");
        assert_eq!(show(-2 * MICROS_PER_DAY, Day, Second), "INTERVAL '-2 00:00:00' DAY TO SECOND");
        assert_eq!(show(90 * 60 * MICROS_PER_SECOND, Minute, Minute), "INTERVAL '90' MINUTE");
        assert_eq!(show(90 * 60 * MICROS_PER_SECOND, Hour, Minute), "INTERVAL '01:30' HOUR TO MINUTE");
        assert_eq!(show(26 * 3600 * MICROS_PER_SECOND, Day, Hour), "INTERVAL '1 02' DAY TO HOUR");
        assert_eq!(show(250_000, Second, Second), "INTERVAL '00.25' SECOND");
    }
}
