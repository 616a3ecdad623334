//! Intervals as text.

use ssql_ir::{DataType, DayTimeField, YearMonthField};

use crate::time::{MICROS_PER_DAY, MICROS_PER_SECOND};

fn two_digits(v: u64, out: &mut String) {
    if v < 10 {
        out.push('0');
    }
    out.push_str(itoa::Buffer::new().format(v));
}

/// Writes `INTERVAL '1 02:03:04.5' DAY TO SECOND`, with the fields from `start` to `end`; the first holds all that lies
/// above it, and what lies below the last is not shown.
pub fn write_day_time(micros: i64, start: DayTimeField, end: DayTimeField, out: &mut String) {
    let mut rest = micros.unsigned_abs();
    out.push_str("INTERVAL '");
    if micros < 0 {
        out.push('-');
    }
    for unit in DayTimeField::ALL.into_iter().filter(|u| (start..=end).contains(u)) {
        let size = unit.micros().unsigned_abs();
        if unit > start {
            out.push(if unit == DayTimeField::Hour { ' ' } else { ':' });
        }
        match unit {
            DayTimeField::Day => out.push_str(itoa::Buffer::new().format(rest / size)),
            _ => two_digits(rest / size, out),
        }
        rest %= size;
        if unit == DayTimeField::Second {
            write_fraction(rest, out);
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

/// Writes `INTERVAL '1-6' YEAR TO MONTH`, or the one field asked for: `INTERVAL '18' MONTH`.
pub fn write_year_month(months: i32, start: YearMonthField, end: YearMonthField, out: &mut String) {
    let all = months.unsigned_abs();
    let mut buffer = itoa::Buffer::new();
    out.push_str("INTERVAL '");
    if months < 0 {
        out.push('-');
    }
    match (start, end) {
        (YearMonthField::Month, _) => out.push_str(buffer.format(all)),
        (_, YearMonthField::Year) => out.push_str(buffer.format(all / 12)),
        _ => {
            out.push_str(buffer.format(all / 12));
            out.push('-');
            out.push_str(buffer.format(all % 12));
        }
    }
    out.push_str("' ");
    out.push_str(start.name());
    if end != start {
        out.push_str(" TO ");
        out.push_str(end.name());
    }
}

/// An interval read from text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntervalText {
    /// The months of its years and months.
    pub months: i32,
    /// The microseconds of all smaller units.
    pub micros: i64,
    /// The type that its units name: `1 hour 30 minutes` is an INTERVAL HOUR TO MINUTE. `None` where years or months
    /// stand beside smaller units: no type holds both.
    pub data_type: Option<DataType>,
}

/// Reads the text of a value of that interval type, as Spark's cast from STRING does: `1 02:03:04.5` for DAY TO SECOND,
/// `26:03` for HOUR TO MINUTE, `-5` for DAY, `1-2` for YEAR TO MONTH; plain or as the literal `INTERVAL '...' <fields>`
/// with those very fields. All fields of the type must be there; all but the first have to keep within their range.
/// The result counts microseconds or months.
pub fn parse_interval_as(text: &str, t: &DataType) -> Option<i64> {
    let text = super::trim(text);
    let (sign, body) = match text.get(..8) {
        Some(word) if word.eq_ignore_ascii_case("interval") => {
            let (sign, rest) = signed(super::trim(&text[8..]));
            let (inner, fields) = rest.strip_prefix('\'')?.split_once('\'')?;
            let words: Vec<&str> = fields.split_whitespace().collect();
            let named = match words[..] {
                [first] => DataType::interval(first, None),
                [first, to, last] if to.eq_ignore_ascii_case("to") => DataType::interval(first, Some(last)),
                _ => None,
            };
            if named.as_ref() != Some(t) {
                return None;
            }
            (sign, inner)
        }
        _ => (1, text),
    };
    let (inner_sign, body) = signed(body);
    let value = match t {
        DataType::DayTimeInterval(first, last) => day_time_fields(body, *first, *last)?,
        DataType::YearMonthInterval(YearMonthField::Year, YearMonthField::Month) => {
            let (years, months) = body.split_once('-')?;
            let months = number(months).filter(|m| *m < 12)?;
            number(years)?.checked_mul(12)?.checked_add(months)?
        }
        DataType::YearMonthInterval(only, _) => number(body)?.checked_mul(only.months().into())?,
        _ => return None,
    };
    let value = value.checked_mul(sign * inner_sign)?;
    match t {
        DataType::YearMonthInterval(..) => i32::try_from(value).ok().map(i64::from),
        _ => Some(value),
    }
}

/// The sign before a text, as 1 or -1, and the text without it.
fn signed(text: &str) -> (i64, &str) {
    match text.as_bytes().first() {
        Some(b'-') => (-1, &text[1..]),
        Some(b'+') => (1, &text[1..]),
        _ => (1, text),
    }
}

fn number(digits: &str) -> Option<i64> {
    (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())).then(|| digits.parse().ok()).flatten()
}

fn day_time_fields(body: &str, first: DayTimeField, last: DayTimeField) -> Option<i64> {
    let mut rest = body;
    let mut micros = 0i64;
    for unit in DayTimeField::ALL.into_iter().filter(|u| (first..=last).contains(u)) {
        let part = if unit == last {
            std::mem::take(&mut rest)
        } else {
            let (part, after) = rest.split_once(if unit == DayTimeField::Day { ' ' } else { ':' })?;
            rest = after;
            part
        };
        let (whole, fraction) = match part.split_once('.') {
            Some((whole, fraction)) if unit == DayTimeField::Second && !fraction.is_empty() => {
                (whole, fraction_micros(fraction)?)
            }
            Some(_) => return None,
            None => (part, 0),
        };
        let limit = match unit {
            _ if unit == first => i64::MAX,
            DayTimeField::Hour => 23,
            _ => 59,
        };
        let value = number(whole).filter(|v| *v <= limit && (unit == first || whole.len() <= 2))?;
        micros = micros.checked_add(value.checked_mul(unit.micros())?)?.checked_add(fraction)?;
    }
    Some(micros)
}

/// Months and microseconds of an interval's text; see [`read_interval`].
pub fn parse_interval(s: &str) -> Option<(i32, i64)> {
    read_interval(s).map(|i| (i.months, i.micros))
}

/// Reads an interval: `10 minutes`, `1 hour 30 minutes`, `-1.5 seconds`, with or without the word INTERVAL; the form
/// `[d ]hh:mm:ss[.f]`; the form `y-m`. Months and microseconds.
pub fn read_interval(s: &str) -> Option<IntervalText> {
    let s = super::trim(s);
    let s = match s.get(..8) {
        Some(word) if word.eq_ignore_ascii_case("interval") => super::trim(&s[8..]),
        _ => s,
    };
    if let Some(literal) = s.strip_prefix('\'') {
        // INTERVAL '...' DAY TO SECOND: the fields follow from the text.
        let (inner, _) = literal.split_once('\'')?;
        return read_interval(inner).or_else(|| quoted(inner, &literal[inner.len() + 1..]));
    }
    if let Some(micros) = parse_clock(s) {
        return Some(IntervalText { months: 0, micros, data_type: Some(DataType::DAY_TO_SECOND) });
    }
    if let Some(months) = parse_year_month(s) {
        return Some(IntervalText { months, micros: 0, data_type: Some(DataType::YEAR_TO_MONTH) });
    }
    let mut read: Option<IntervalText> = None;
    let mut rest = s;
    while !rest.is_empty() {
        let (sign, digits) = signed(rest);
        let digits = digits.trim_start();
        let end = digits.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(digits.len());
        let (number, after) = digits.split_at(end);
        let after = after.trim_start();
        let unit_end = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, next) = after.split_at(unit_end);
        let part = one_unit(number, unit, sign)?;
        read = Some(match read {
            None => part,
            Some(before) => IntervalText {
                months: before.months.checked_add(part.months)?,
                micros: before.micros.checked_add(part.micros)?,
                data_type: before.data_type.zip(part.data_type).and_then(|(a, b)| a.wider_interval(&b)),
            },
        });
        rest = next.trim_start();
    }
    read
}

/// A lone number with its unit behind the quotes: `'3' DAY`.
fn quoted(number: &str, unit: &str) -> Option<IntervalText> {
    let unit = unit.trim();
    if unit.contains(' ') {
        return None;
    }
    read_interval(&format!("{} {unit}", number.trim()))
}

/// `5 minutes`: a number and its unit, in the singular or plural.
fn one_unit(number: &str, unit: &str, sign: i64) -> Option<IntervalText> {
    let unit = unit.to_ascii_lowercase();
    let unit = unit.strip_suffix('s').unwrap_or(&unit);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || !fraction.is_empty() && unit != "second" {
        return None;
    }
    let value: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let (size, field) = match unit {
        "year" | "month" => {
            let field = if unit == "year" { YearMonthField::Year } else { YearMonthField::Month };
            let months = value.checked_mul(field.months().into())? * sign;
            let data_type = Some(DataType::YearMonthInterval(field, field));
            return Some(IntervalText { months: i32::try_from(months).ok()?, micros: 0, data_type });
        }
        "week" => (7 * MICROS_PER_DAY, DayTimeField::Day),
        "day" => (MICROS_PER_DAY, DayTimeField::Day),
        "hour" => (3600 * MICROS_PER_SECOND, DayTimeField::Hour),
        "minute" => (60 * MICROS_PER_SECOND, DayTimeField::Minute),
        "second" => (MICROS_PER_SECOND, DayTimeField::Second),
        "millisecond" => (1000, DayTimeField::Second),
        "microsecond" => (1, DayTimeField::Second),
        _ => return None,
    };
    let part = fraction_micros(fraction)?;
    let micros = value.checked_mul(size)?.checked_add(part)?.checked_mul(sign)?;
    Some(IntervalText { months: 0, micros, data_type: Some(DataType::DayTimeInterval(field, field)) })
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

    /// Each verified on Spark 4.3 as `try_cast(text AS type)`.
    #[test]
    fn a_cast_wants_the_fields_of_its_type() {
        let read = |text: &str, first: &str, last: Option<&str>| {
            parse_interval_as(text, &DataType::interval(first, last).expect("a type"))
        };
        let hour = 3600 * MICROS_PER_SECOND;
        assert_eq!(read("3", "hour", None), Some(3 * hour));
        assert_eq!(read("1 02", "day", Some("hour")), Some(26 * hour));
        assert_eq!(read("26:03:04", "hour", Some("second")), Some(26 * hour + 184 * MICROS_PER_SECOND));
        assert_eq!(read("interval '-3.5' second", "second", None), Some(-3_500_000));
        assert_eq!(read("INTERVAL -'-5' DAY", "day", None), Some(5 * MICROS_PER_DAY));
        assert_eq!(read(" +61 ", "minute", None), Some(61 * 60 * MICROS_PER_SECOND));
        assert_eq!(read("1-2", "year", Some("month")), Some(14));
        assert_eq!(read("5", "year", None), Some(60));
        for (text, first, last) in [
            ("10", "day", Some("second")),
            ("10 minutes", "day", Some("second")),
            ("1 02:03:04", "hour", Some("second")),
            ("1-13", "year", Some("month")),
            ("1", "year", Some("month")),
            ("INTERVAL '5' HOUR", "day", None),
            ("-INTERVAL '5' DAY", "day", None),
            ("INTERVAL 5 DAY", "day", None),
            ("- 5", "day", None),
            ("2:61", "hour", Some("minute")),
            ("1 25:00", "day", Some("minute")),
        ] {
            assert_eq!(read(text, first, last), None, "{text}");
        }
    }

    #[test]
    fn units_name_the_type() {
        let of = |text: &str| read_interval(text).and_then(|i| i.data_type).map(|t| t.to_string());
        assert_eq!(of("1 hour 30 minutes").as_deref(), Some("INTERVAL HOUR TO MINUTE"));
        assert_eq!(of("1 week 2 milliseconds").as_deref(), Some("INTERVAL DAY TO SECOND"));
        assert_eq!(of("3 months").as_deref(), Some("INTERVAL MONTH"));
        assert_eq!(of("1 month 3 days"), None);
    }

    #[test]
    fn prints_fields() {
        let show = |micros, a, b| {
            let mut out = String::new();
            write_day_time(micros, a, b, &mut out);
            out
        };
        use DayTimeField::{Day, Hour, Minute, Second};
        assert_eq!(show(41_399_500_000, Day, Second), "INTERVAL '0 11:29:59.5' DAY TO SECOND");
        assert_eq!(show(-2 * MICROS_PER_DAY, Day, Second), "INTERVAL '-2 00:00:00' DAY TO SECOND");
        assert_eq!(show(90 * 60 * MICROS_PER_SECOND, Minute, Minute), "INTERVAL '90' MINUTE");
        assert_eq!(show(90 * 60 * MICROS_PER_SECOND, Hour, Minute), "INTERVAL '01:30' HOUR TO MINUTE");
        assert_eq!(show(26 * 3600 * MICROS_PER_SECOND, Day, Hour), "INTERVAL '1 02' DAY TO HOUR");
        assert_eq!(show(250_000, Second, Second), "INTERVAL '00.25' SECOND");
    }
}
