//! Printing by a pattern.

use jiff::tz::TimeZone;

use super::zone_names::{full_name, short_name};
use super::{DatePattern, Field, Item, OffsetForm, Sign, Text};
use crate::functions::clock::{write_offset, zone_name};
use crate::functions::date_fields::{DAY_NAMES, MONTH_NAMES, day_of_year, weekday};
use crate::time::{MICROS_PER_SECOND, civil_from_days, offset_at, split_micros};

pub(super) const FULL_DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
pub(super) const FULL_MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// A moment as it is printed.
struct Moment<'a> {
    days: i64,
    year: i64,
    month: u32,
    day: u32,
    /// Microseconds.
    of_day: i64,
    /// Microseconds since 1970 in UTC.
    instant: i64,
    zone: &'a TimeZone,
}

impl DatePattern {
    /// Appends the instant (microseconds) as the zone's clocks show it.
    pub fn write(&self, instant: i64, zone: &TimeZone, out: &mut String) {
        let local = instant.saturating_add(offset_at(zone, instant) * MICROS_PER_SECOND);
        let (days, of_day) = split_micros(local);
        let (year, month, day) = civil_from_days(days);
        write_items(&self.items, &Moment { days, year, month, day, of_day, instant, zone }, out);
    }
}

fn write_items(items: &[Item], m: &Moment<'_>, out: &mut String) {
    for item in items {
        match item {
            Item::Literal(text) => out.push_str(text),
            Item::Number { field, min, sign, .. } => write_number(m.number(*field), *min, *sign, out),
            Item::TwoDigitYear => write_number(m.year.abs() % 100, 2, Sign::Never, out),
            Item::Fraction { max, .. } => {
                let digits = format!("{:06}000", m.of_day % MICROS_PER_SECOND);
                out.push_str(&digits[..*max]);
            }
            Item::Word { text, full } => out.push_str(m.word(*text, *full)),
            Item::Offset(form) => write_form(m.offset(), *form, out),
            Item::LocalizedOffset { full } => write_localized(m.offset(), *full, out),
            Item::ZoneId => out.push_str(&zone_name(m.zone)),
            Item::ZoneName { full: false } => out.push_str(&short_name(m.zone, m.instant)),
            Item::ZoneName { full: true } => out.push_str(&full_name(m.zone, m.instant)),
            Item::Optional(items) => write_items(items, m, out),
        }
    }
}

fn write_number(value: i64, min: usize, sign: Sign, out: &mut String) {
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(value.unsigned_abs());
    if value < 0 {
        out.push('-');
    } else if sign == Sign::ExceedsPad && digits.len() > min {
        out.push('+');
    }
    out.extend(std::iter::repeat_n('0', min.saturating_sub(digits.len())));
    out.push_str(digits);
}

impl Moment<'_> {
    fn offset(&self) -> i64 {
        offset_at(self.zone, self.instant)
    }

    fn number(&self, field: Field) -> i64 {
        let hour = self.of_day / (3600 * MICROS_PER_SECOND);
        match field {
            Field::Year => self.year,
            Field::YearOfEra if self.year < 1 => 1 - self.year,
            Field::YearOfEra => self.year,
            Field::Quarter => i64::from((self.month - 1) / 3 + 1),
            Field::Month => self.month.into(),
            Field::Day => self.day.into(),
            Field::DayOfYear => day_of_year(self.days).into(),
            Field::AlignedWeek => i64::from((self.day - 1) % 7 + 1),
            Field::Hour => hour,
            Field::ClockHour => (hour + 23) % 24 + 1,
            Field::HourOfHalf => hour % 12,
            Field::ClockHourOfHalf => (hour + 11) % 12 + 1,
            Field::Minute => self.of_day / (60 * MICROS_PER_SECOND) % 60,
            Field::Second => self.of_day / MICROS_PER_SECOND % 60,
        }
    }

    fn word(&self, text: Text, full: bool) -> &'static str {
        let quarter = (self.month as usize - 1) / 3;
        match (text, full) {
            (Text::Era, false) => ["BC", "AD"][usize::from(self.year > 0)],
            (Text::Era, true) => ["Before Christ", "Anno Domini"][usize::from(self.year > 0)],
            (Text::Quarter, false) => ["Q1", "Q2", "Q3", "Q4"][quarter],
            (Text::Quarter, true) => ["1st quarter", "2nd quarter", "3rd quarter", "4th quarter"][quarter],
            (Text::Month, false) => MONTH_NAMES[self.month as usize - 1],
            (Text::Month, true) => FULL_MONTHS[self.month as usize - 1],
            (Text::DayOfWeek, false) => DAY_NAMES[weekday(self.days) as usize],
            (Text::DayOfWeek, true) => FULL_DAYS[weekday(self.days) as usize],
            (Text::HalfOfDay, _) => ["AM", "PM"][usize::from(self.number(Field::Hour) >= 12)],
        }
    }
}

fn write_form(offset: i64, form: OffsetForm, out: &mut String) {
    if offset == 0 {
        out.push_str(form.zero);
        return;
    }
    let all = offset.unsigned_abs();
    let (hours, minutes, seconds) = (all / 3600, all / 60 % 60, all % 60);
    let colon = if form.colon { ":" } else { "" };
    out.push(if offset < 0 { '-' } else { '+' });
    out.push_str(&format!("{hours:02}"));
    if form.minutes || minutes > 0 {
        out.push_str(&format!("{colon}{minutes:02}"));
    }
    if form.seconds && seconds > 0 {
        out.push_str(&format!("{colon}{seconds:02}"));
    }
}

/// `GMT`, `GMT+5:30` or in full `GMT+05:30`.
pub(super) fn write_localized(offset: i64, full: bool, out: &mut String) {
    out.push_str("GMT");
    if offset == 0 {
        return;
    }
    if full {
        write_offset(offset, out);
        return;
    }
    let all = offset.unsigned_abs();
    out.push(if offset < 0 { '-' } else { '+' });
    out.push_str(&(all / 3600).to_string());
    if !all.is_multiple_of(3600) {
        out.push_str(&format!(":{:02}", all / 60 % 60));
    }
    if !all.is_multiple_of(60) {
        out.push_str(&format!(":{:02}", all % 60));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_timestamp;
    use crate::time::parse_zone;

    fn show(ts: &str, zone: &str, pattern: &str) -> String {
        let zone = parse_zone(zone).expect("a zone");
        let mut out = String::new();
        let instant = parse_timestamp(ts, &zone).expect("a timestamp");
        DatePattern::for_printing(pattern).expect("a pattern").write(instant, &zone, &mut out);
        out
    }

    #[test]
    fn letters() {
        let ts = "2024-03-09 04:05:06.123456";
        for (pattern, shown) in [
            ("yyyy-MM-dd HH:mm:ss.SSSSSS", "2024-03-09 04:05:06.123456"),
            ("y/M/d H:m:s.S", "2024/3/9 4:5:6.1"),
            ("yy yyy yyyyy yyyyyy", "24 2024 02024 002024"),
            ("L LL LLL LLLL MMM MMMM", "3 03 Mar March Mar March"),
            ("q qq qqq qqqq QQQ QQQQ", "1 01 Q1 1st quarter Q1 1st quarter"),
            ("E EE EEE EEEE", "Sat Sat Sat Saturday"),
            ("S SS SSS SSSS SSSSSSSSS", "1 12 123 1234 123456000"),
            ("G GGGG", "AD Anno Domini"),
            ("a h hh k K D DDD", "AM 4 04 4 4 69 069"),
            ("X XX XXX XXXX XXXXX", "Z Z Z Z Z"),
            ("x xx xxx xxxx xxxxx", "+00 +0000 +00:00 +0000 +00:00"),
            ("Z ZZ ZZZ ZZZZ ZZZZZ", "+0000 +0000 +0000 GMT Z"),
            ("O OOOO z zz zzz zzzz VV", "GMT GMT UTC UTC UTC Coordinated Universal Time UTC"),
            ("yyyy.MM [HH]", "2024.03 04"),
            ("yyyy[", "2024"),
            ("HH'h'mm", "04h05"),
            ("yyyy'T''x'MM", "2024T'x03"),
            ("''yyyy", "'2024"),
            ("", ""),
        ] {
            assert_eq!(show(ts, "UTC", pattern), shown, "{pattern}");
        }
        assert_eq!(show("2023-12-31 23:59:59", "UTC", "a h k K"), "PM 11 23 11");
        assert_eq!(show("0987-01-02 12:00:00", "UTC", "yy yyyy y a h K"), "87 0987 987 PM 12 0");
        assert_eq!(show("2024-01-01 00:00:00", "UTC", "k h"), "24 12");
        assert_eq!(show("-0044-03-09 04:05:06", "UTC", "yyyy-MM-dd G"), "0045-03-09 BC");
        assert_eq!(show("12024-03-09", "UTC", "yyyy-MM-dd y"), "+12024-03-09 12024");
    }

    #[test]
    fn zones() {
        let all = "X XX XXX x xx Z ZZZZ ZZZZZ O OOOO z zzzz VV";
        assert_eq!(
            show("2024-03-09 04:05:06", "America/New_York", all),
            "-05 -0500 -05:00 -05 -0500 -0500 GMT-05:00 -05:00 GMT-5 GMT-05:00 EST Eastern Standard Time America/New_York"
        );
        assert_eq!(show("2024-07-09 04:05:06", "America/New_York", "z zzzz"), "EDT Eastern Daylight Time");
        assert_eq!(
            show("2024-07-09 04:05:06", "Asia/Kolkata", all),
            "+0530 +0530 +05:30 +0530 +0530 +0530 GMT+05:30 +05:30 GMT+5:30 GMT+05:30 IST India Standard Time Asia/Kolkata"
        );
        assert_eq!(show("2024-07-09 04:05:06", "Europe/Berlin", "z zzzz"), "CEST Central European Summer Time");
        assert_eq!(
            show("2024-07-09 04:05:06", "+05:30", "z zzzz VV O X Z"),
            "+05:30 +05:30 +05:30 GMT+5:30 +0530 +0530"
        );
        assert_eq!(show("2024-07-09 04:05:06", "Asia/Singapore", "z zzzz"), "SGT Singapore Standard Time");
    }
}
