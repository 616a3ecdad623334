//! Reading by a pattern.

use jiff::tz::{Offset, TimeZone};

use super::format::FULL_MONTHS;
use super::zone_names::zone_at_start;
use super::{DatePattern, Field, Item, OffsetForm, Sign, Text};
use crate::functions::date_fields::MONTH_NAMES;
use crate::time::{MICROS_PER_DAY, MICROS_PER_SECOND, checked_date, days_from_civil, is_leap_year, to_instant};

/// What a text says about a time. Fields that it does not have are those of 1970-01-01 00:00:00.
#[derive(Debug, Clone)]
pub struct ParsedTime {
    /// Wall-clock microseconds.
    pub local: i64,
    /// The zone, if the text names one.
    pub zone: Option<TimeZone>,
}

impl ParsedTime {
    /// The instant, in microseconds; in `zone` unless the text says otherwise.
    pub fn instant(&self, zone: &TimeZone) -> i64 {
        to_instant(self.zone.as_ref().unwrap_or(zone), self.local)
    }
}

/// The fields read so far.
#[derive(Debug, Clone, Default)]
struct Fields {
    year: Option<i64>,
    year_of_era: Option<i64>,
    before_christ: bool,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    hour: Option<i64>,
    hour_of_half: Option<i64>,
    afternoon: Option<bool>,
    minute: i64,
    second: i64,
    micros: i64,
    zone: Option<TimeZone>,
}

impl DatePattern {
    /// Reads a text; `None` if it does not follow the pattern to its end or names no time.
    pub fn parse(&self, text: &str) -> Option<ParsedTime> {
        let mut fields = Fields::default();
        let end = read(&self.items, text, 0, &mut fields)?;
        if end != text.len() {
            return None;
        }
        fields.resolve()
    }
}

/// Reads the items from `at` on; where they end, or `None` if they do not fit.
fn read(items: &[Item], text: &str, mut at: usize, fields: &mut Fields) -> Option<usize> {
    for item in items {
        let rest = &text[at..];
        let used = match item {
            Item::Literal(literal) => {
                // Letters of any case.
                rest.get(..literal.len()).filter(|start| start.to_lowercase() == literal.to_lowercase())?.len()
            }
            Item::Number { field, min, max, sign, reserved } => {
                let (value, used) = number(rest, *min, *max, *sign, *reserved)?;
                fields.set(*field, value)?;
                used
            }
            Item::TwoDigitYear => {
                let (value, used) = number(rest, 2, 2, Sign::Never, 0)?;
                fields.year = Some(2000 + value);
                used
            }
            Item::Fraction { min, max } => {
                let n = digits(rest).min(*max);
                if n < *min {
                    return None;
                }
                // What is finer than a microsecond is cut off.
                fields.micros = rest[..n]
                    .bytes()
                    .chain(std::iter::repeat(b'0'))
                    .take(6)
                    .fold(0, |v, b| v * 10 + i64::from(b - b'0'));
                n
            }
            Item::Word { text, full } => fields.word(rest, *text, *full)?,
            Item::Offset(form) => {
                let (seconds, used) = offset(rest, *form)?;
                fields.set_offset(seconds)?;
                used
            }
            Item::LocalizedOffset { full } => {
                let (seconds, used) = localized_offset(rest, *full)?;
                fields.set_offset(seconds)?;
                used
            }
            Item::ZoneId | Item::ZoneName { .. } => {
                let (zone, used) = zone_at_start(rest, matches!(item, Item::ZoneName { .. }))?;
                fields.zone = Some(zone);
                used
            }
            Item::Optional(inner) => {
                let mut tried = fields.clone();
                match read(inner, text, at, &mut tried) {
                    Some(end) => {
                        *fields = tried;
                        end - at
                    }
                    None => 0,
                }
            }
        };
        at += used;
    }
    Some(at)
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// A number at the start of the text: its value and length.
fn number(text: &str, min: usize, max: usize, sign: Sign, reserved: usize) -> Option<(i64, usize)> {
    let (negative, positive) = (text.starts_with('-'), text.starts_with('+'));
    if (negative && sign == Sign::Never) || (positive && sign != Sign::ExceedsPad) {
        return None;
    }
    let start = usize::from(negative || positive);
    let run = digits(&text[start..]).min(max + reserved);
    let n = if reserved > 0 { run.saturating_sub(reserved).max(min).min(run) } else { run };
    if n < min {
        return None;
    }
    let value: i64 = text[start..start + n].parse().ok()?;
    if negative {
        return (value != 0).then_some((-value, n + 1));
    }
    // A plus stands exactly where there are more digits than letters.
    if sign == Sign::ExceedsPad && positive != (n > min) {
        return None;
    }
    Some((value, n + start))
}

/// `names` at the start of the text, in any case, the longest first: its position and length.
fn name(text: &str, names: &[&str]) -> Option<(usize, usize)> {
    names
        .iter()
        .enumerate()
        .filter(|(_, n)| text.get(..n.len()).is_some_and(|start| start.eq_ignore_ascii_case(n)))
        .max_by_key(|(_, n)| n.len())
        .map(|(i, n)| (i, n.len()))
}

/// Two digits below 60.
fn two_digits(text: &str) -> Option<i64> {
    let pair = text.get(..2).filter(|p| p.bytes().all(|b| b.is_ascii_digit()))?;
    pair.parse().ok().filter(|v| *v < 60)
}

fn offset(text: &str, form: OffsetForm) -> Option<(i64, usize)> {
    if text.get(..form.zero.len()).is_some_and(|start| start.eq_ignore_ascii_case(form.zero)) {
        return Some((0, form.zero.len()));
    }
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let mut at = 1;
    let mut seconds = two_digits(&text[at..])? * 3600;
    at += 2;
    let colon = usize::from(form.colon);
    let part = |at: usize| {
        let rest = &text[at..];
        if form.colon && !rest.starts_with(':') { None } else { two_digits(&rest[colon..]) }
    };
    match part(at) {
        Some(minutes) => {
            seconds += minutes * 60;
            at += 2 + colon;
            if form.seconds
                && let Some(s) = part(at)
            {
                seconds += s;
                at += 2 + colon;
            }
        }
        None if form.minutes => return None,
        None => {}
    }
    Some((sign * seconds, at))
}

fn localized_offset(text: &str, full: bool) -> Option<(i64, usize)> {
    text.get(..3).filter(|start| start.eq_ignore_ascii_case("GMT"))?;
    let sign = match text.as_bytes().get(3) {
        Some(b'+') => 1,
        Some(b'-') => -1,
        _ => return Some((0, 3)),
    };
    let mut at = 4;
    let n = digits(&text[at..]).min(2);
    if n == 0 || (full && n != 2) {
        return None;
    }
    let mut seconds = text[at..at + n].parse::<i64>().ok()? * 3600;
    at += n;
    for unit in [60, 1] {
        match text[at..].strip_prefix(':').and_then(two_digits) {
            Some(value) => {
                seconds += value * unit;
                at += 3;
            }
            None if full && unit == 60 => return None,
            None => break,
        }
    }
    Some((sign * seconds, at))
}

impl Fields {
    /// Takes a number, if it is in the field's range.
    fn set(&mut self, field: Field, value: i64) -> Option<()> {
        let within = |low: i64, high: i64| (low..=high).contains(&value).then_some(value);
        match field {
            Field::Year => self.year = Some(within(-999_999_999, 999_999_999)?),
            Field::YearOfEra => self.year_of_era = Some(within(1, 999_999_999)?),
            Field::Month => self.month = Some(within(1, 12)?),
            Field::Day => self.day = Some(within(1, 31)?),
            Field::DayOfYear => self.day_of_year = Some(within(1, 366)?),
            Field::Hour => self.hour = Some(within(0, 23)?),
            Field::ClockHour => self.hour = Some(within(1, 24)? % 24),
            Field::HourOfHalf => self.hour_of_half = Some(within(0, 11)?),
            Field::ClockHourOfHalf => self.hour_of_half = Some(within(1, 12)? % 12),
            Field::Minute => self.minute = within(0, 59)?,
            Field::Second => self.second = within(0, 59)?,
            // Refused when a pattern for reading is compiled.
            Field::Quarter | Field::AlignedWeek => return None,
        }
        Some(())
    }

    fn set_offset(&mut self, seconds: i64) -> Option<()> {
        let offset = i32::try_from(seconds).ok().filter(|s| s.abs() <= 18 * 3600)?;
        self.zone = Some(TimeZone::fixed(Offset::from_seconds(offset).ok()?));
        Some(())
    }

    fn word(&mut self, rest: &str, text: Text, full: bool) -> Option<usize> {
        Some(match text {
            Text::Month => {
                let (i, n) = name(rest, if full { &FULL_MONTHS } else { &MONTH_NAMES })?;
                self.month = Some(i as i64 + 1);
                n
            }
            Text::HalfOfDay => {
                let (i, n) = name(rest, &["AM", "PM"])?;
                self.afternoon = Some(i == 1);
                n
            }
            Text::Era => {
                let (i, n) = name(rest, if full { &["Before Christ", "Anno Domini"] } else { &["BC", "AD"] })?;
                self.before_christ = i == 0;
                n
            }
            Text::Quarter | Text::DayOfWeek => return None,
        })
    }

    fn resolve(self) -> Option<ParsedTime> {
        let year = match (self.year, self.year_of_era) {
            (Some(y), _) => Some(y),
            (None, Some(y)) => Some(if self.before_christ { 1 - y } else { y }),
            (None, None) => None,
        };
        let days = match (year, self.day_of_year) {
            (Some(y), Some(d)) if self.month.is_none() && self.day.is_none() => {
                if d == 366 && !is_leap_year(y) {
                    return None;
                }
                i32::try_from(days_from_civil(y, 1, 1) + d - 1).ok()?
            }
            _ => checked_date(year.unwrap_or(1970), self.month.unwrap_or(1), self.day.unwrap_or(1))?,
        };
        let afternoon = i64::from(self.afternoon.unwrap_or(false)) * 12;
        let hour = match (self.hour, self.hour_of_half) {
            // The hour of the day and the half must agree.
            (Some(h), _) if self.afternoon.is_some_and(|pm| pm != (h >= 12)) => return None,
            (Some(h), _) => h,
            (None, Some(h)) => h + afternoon,
            (None, None) => afternoon,
        };
        let of_day = ((hour * 60 + self.minute) * 60 + self.second) * MICROS_PER_SECOND + self.micros;
        let local = i64::from(days).checked_mul(MICROS_PER_DAY)?.checked_add(of_day)?;
        Some(ParsedTime { local, zone: self.zone })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::write_timestamp;

    fn read(text: &str, pattern: &str) -> String {
        match DatePattern::for_reading(pattern).expect("a pattern").parse(text) {
            None => "-".into(),
            Some(parsed) => {
                let mut out = String::new();
                write_timestamp(parsed.instant(&TimeZone::UTC), &mut out);
                out
            }
        }
    }

    #[test]
    fn texts_that_fit() {
        for (text, pattern, shown) in [
            ("2024-03-09 04:05:06", "yyyy-MM-dd HH:mm:ss", "2024-03-09 04:05:06"),
            ("09/03/2024 16:05", "dd/MM/yyyy HH:mm", "2024-03-09 16:05:00"),
            ("Mar 9, 2024 4:05 PM", "MMM d, yyyy h:mm a", "2024-03-09 16:05:00"),
            ("MAR 9 2024", "MMM d yyyy", "2024-03-09 00:00:00"),
            ("9 may 2024", "d MMMM yyyy", "2024-05-09 00:00:00"),
            ("20240309", "yyyyMMdd", "2024-03-09 00:00:00"),
            ("20240309", "yMMdd", "2024-03-09 00:00:00"),
            ("20240309040506", "yyyyMMddHHmmss", "2024-03-09 04:05:06"),
            ("2024-03-09T04:05:06.123", "yyyy-MM-dd'T'HH:mm:ss.SSS", "2024-03-09 04:05:06.123"),
            ("2024-03-09 04:05:06.1", "yyyy-MM-dd HH:mm:ss.SSS", "2024-03-09 04:05:06.1"),
            ("2024-03-09 04:05:06.123456789", "yyyy-MM-dd HH:mm:ss.SSSSSSSSS", "2024-03-09 04:05:06.123456"),
            ("2024-03-09 04:05:06", "yyyy-MM-dd HH:mm:ss[.SSS]", "2024-03-09 04:05:06"),
            ("2024-03-09 04:05:06.123", "yyyy-MM-dd HH:mm:ss[.SSS]", "2024-03-09 04:05:06.123"),
            ("2024-03-09 04", "yyyy-MM-dd[ HH][:mm]", "2024-03-09 04:00:00"),
            ("2024-03-09 04:05:06 +0200", "yyyy-MM-dd HH:mm:ss Z", "2024-03-09 02:05:06"),
            ("2024-03-09 04:05:06 +02:00", "yyyy-MM-dd HH:mm:ss XXX", "2024-03-09 02:05:06"),
            ("2024-03-09 04:05:06Z", "yyyy-MM-dd HH:mm:ssX", "2024-03-09 04:05:06"),
            ("2024-03-09 04:05:06+02", "yyyy-MM-dd HH:mm:ssX", "2024-03-09 02:05:06"),
            ("2024-03-09 04:05:06+0230", "yyyy-MM-dd HH:mm:ssX", "2024-03-09 01:35:06"),
            ("2024-03-09 04:05:06-0330", "yyyy-MM-dd HH:mm:ssXX", "2024-03-09 07:35:06"),
            ("2024-03-09 04:05:06 +02:00", "yyyy-MM-dd HH:mm:ss ZZZZZ", "2024-03-09 02:05:06"),
            ("2024-03-09 04:05:06 GMT+2", "yyyy-MM-dd HH:mm:ss O", "2024-03-09 02:05:06"),
            ("2024-03-09 04:05:06 GMT+02:00", "yyyy-MM-dd HH:mm:ss OOOO", "2024-03-09 02:05:06"),
            ("2024-03-09 04:05:06 PST", "yyyy-MM-dd HH:mm:ss z", "2024-03-09 12:05:06"),
            ("2024-03-09 04:05:06 UTC", "yyyy-MM-dd HH:mm:ss z", "2024-03-09 04:05:06"),
            ("2024-03-09 04:05:06 America/New_York", "yyyy-MM-dd HH:mm:ss z", "2024-03-09 09:05:06"),
            ("2024-03-09 04:05:06 Asia/Tokyo", "yyyy-MM-dd HH:mm:ss VV", "2024-03-08 19:05:06"),
            ("2024-03-09 04:05:06 +02:00", "yyyy-MM-dd HH:mm:ss VV", "2024-03-09 02:05:06"),
            ("2024-069", "yyyy-DDD", "2024-03-09 00:00:00"),
            ("2024-69", "yyyy-D", "2024-03-09 00:00:00"),
            ("24-3-9", "yy-M-d", "2024-03-09 00:00:00"),
            ("2024", "yyyy", "2024-01-01 00:00:00"),
            ("+12024-03-09", "yyyy-MM-dd", "+12024-03-09 00:00:00"),
            ("-0044-03-09", "yyyy-MM-dd", "-0044-03-09 00:00:00"),
            ("2024-03-09 AD", "yyyy-MM-dd G", "2024-03-09 00:00:00"),
            ("2024-03-09 12:05 am", "yyyy-MM-dd hh:mm a", "2024-03-09 00:05:00"),
            ("2024-03-09 12:05", "yyyy-MM-dd hh:mm", "2024-03-09 00:05:00"),
            ("2024-03-09 24:05", "yyyy-MM-dd kk:mm", "2024-03-09 00:05:00"),
            ("09", "dd", "1970-01-09 00:00:00"),
            ("10:30", "HH:mm", "1970-01-01 10:30:00"),
            ("PM", "a", "1970-01-01 12:00:00"),
        ] {
            assert_eq!(read(text, pattern), shown, "{text} by {pattern}");
        }
    }

    #[test]
    fn texts_that_do_not_fit() {
        for (text, pattern) in [
            ("2024-3-9", "yyyy-MM-dd"),
            ("2024-02-30", "yyyy-MM-dd"),
            ("2024-03-09 10:00", "yyyy-MM-dd"),
            ("12024-03-09", "yyyy-MM-dd"),
            (" 2024-03-09", "yyyy-MM-dd"),
            ("2024-03-09 ", "yyyy-MM-dd"),
            ("2024-03-09 25:05", "yyyy-MM-dd HH:mm"),
            ("2024-03-09 04:05:06.1234", "yyyy-MM-dd HH:mm:ss.SSS"),
            ("20240309040506123", "yyyyMMddHHmmssSSS"),
            ("2024-03-09 04:05:06 +0200", "yyyy-MM-dd HH:mm:ss VV"),
            ("2024-03-09 04:05:06 +02:00", "yyyy-MM-dd HH:mm:ss Z"),
            ("2023-366", "yyyy-DDD"),
            ("02/29", "MM/dd"),
            ("é", "yyyy"),
            ("2024é", "yyyy-MM"),
            ("", "yyyy"),
        ] {
            assert_eq!(read(text, pattern), "-", "{text} by {pattern}");
        }
    }
}
