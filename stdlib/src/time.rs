//! The calendar: days, months and microseconds in the proleptic Gregorian calendar, and time zones with Java's rules for
//! gaps and overlaps.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// Microseconds in a second.
pub const MICROS_PER_SECOND: i64 = 1_000_000;
/// Microseconds in a day.
pub const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;

/// Days since 1970-01-01 of a date, which must exist.
pub fn days_from_civil(year: i64, month: u32, day: u32) -> i64 {
    // Years begin in March here, so that the leap day is the last of a year (Howard Hinnant's algorithm).
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let year_of_era = y.rem_euclid(400);
    let month_index = i64::from((month + 9) % 12);
    let day_of_year = (153 * month_index + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Year, month and day of a number of days since 1970-01-01.
pub fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * month_index + 2) / 5 + 1) as u32;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 } as u32;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// Whether the year has a 29th of February.
pub fn is_leap_year(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Number of days of a month.
pub fn days_in_month(year: i64, month: u32) -> u32 {
    match month {
        2 => 28 + u32::from(is_leap_year(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 of a date, or `None` if there is no such date or it does not fit a DATE.
pub fn checked_date(year: i64, month: i64, day: i64) -> Option<i32> {
    let (m, d) = (u32::try_from(month).ok()?, u32::try_from(day).ok()?);
    if !(1..=12).contains(&m) || d < 1 || d > days_in_month(year, m) {
        return None;
    }
    i32::try_from(days_from_civil(year, m, d)).ok()
}

/// The date that many months later; a day that the month does not have becomes its last.
pub fn add_months(days: i64, months: i64) -> i64 {
    let (year, month, day) = civil_from_days(days);
    let index = year * 12 + i64::from(month) - 1 + months;
    let (year, month) = (index.div_euclid(12), index.rem_euclid(12) as u32 + 1);
    days_from_civil(year, month, day.min(days_in_month(year, month)))
}

/// Days and microseconds of the day.
pub fn split_micros(local: i64) -> (i64, i64) {
    (local.div_euclid(MICROS_PER_DAY), local.rem_euclid(MICROS_PER_DAY))
}

/// Seconds that the zone is ahead of UTC at that instant (microseconds). Beyond the years that zone rules cover (±9999)
/// the nearest covered instant's rule is used.
pub fn offset_at(zone: &TimeZone, micros: i64) -> i64 {
    if let Ok(fixed) = zone.to_fixed_offset() {
        return i64::from(fixed.seconds());
    }
    let second = micros.div_euclid(MICROS_PER_SECOND);
    let instant = Timestamp::from_second(second).unwrap_or(if micros < 0 { Timestamp::MIN } else { Timestamp::MAX });
    i64::from(zone.to_offset(instant).seconds())
}

/// Wall-clock microseconds in the zone of an instant.
pub fn to_local(zone: &TimeZone, micros: i64) -> i64 {
    micros.saturating_add(offset_at(zone, micros) * MICROS_PER_SECOND)
}

/// The instant at which the zone's clocks show that time. A time in a gap is moved forward by the gap's length; of two
/// instants in an overlap it is the earlier: as Java does.
pub fn to_instant(zone: &TimeZone, local: i64) -> i64 {
    if let Ok(fixed) = zone.to_fixed_offset() {
        return local.saturating_sub(i64::from(fixed.seconds()) * MICROS_PER_SECOND);
    }
    let (days, of_day) = split_micros(local);
    let (year, month, day) = civil_from_days(days);
    let civil = i16::try_from(year).ok().and_then(|year| {
        let second = of_day / MICROS_PER_SECOND;
        DateTime::new(
            year,
            month as i8,
            day as i8,
            (second / 3600) as i8,
            (second / 60 % 60) as i8,
            (second % 60) as i8,
            (of_day % MICROS_PER_SECOND * 1000) as i32,
        )
        .ok()
    });
    match civil.and_then(|c| zone.to_ambiguous_timestamp(c).compatible().ok()) {
        Some(instant) => instant.as_microsecond(),
        None => local.saturating_sub(offset_at(zone, local) * MICROS_PER_SECOND),
    }
}

/// A time zone by Spark's names: `Z`, `+2`, `+02:00`, `-0330`, `UTC+1`, `GMT-01:30`, `Asia/Tokyo`. `None` if unknown.
pub fn parse_zone(name: &str) -> Option<TimeZone> {
    let name = name.trim();
    if name == "Z" || name == "UTC" || name == "GMT" || name == "UT" {
        return Some(TimeZone::UTC);
    }
    if name.starts_with(['+', '-']) {
        return parse_offset(name).and_then(fixed);
    }
    for prefix in ["UTC", "GMT", "UT"] {
        if let Some(rest) = name.strip_prefix(prefix)
            && rest.starts_with(['+', '-'])
        {
            return parse_offset(rest).and_then(fixed);
        }
    }
    let name = SHORT_NAMES.iter().find(|(short, _)| *short == name).map_or(name, |(_, zone)| zone);
    if name.starts_with('-') {
        return parse_offset(name).and_then(fixed);
    }
    // Regions are written with their case, as Java wants them; jiff would take any.
    TimeZone::get(name).ok().filter(|zone| zone.iana_name() == Some(name))
}

/// Java's three-letter names.
const SHORT_NAMES: &[(&str, &str)] = &[
    ("ACT", "Australia/Darwin"),
    ("AET", "Australia/Sydney"),
    ("AGT", "America/Argentina/Buenos_Aires"),
    ("ART", "Africa/Cairo"),
    ("AST", "America/Anchorage"),
    ("BET", "America/Sao_Paulo"),
    ("BST", "Asia/Dhaka"),
    ("CAT", "Africa/Harare"),
    ("CNT", "America/St_Johns"),
    ("CST", "America/Chicago"),
    ("CTT", "Asia/Shanghai"),
    ("EAT", "Africa/Addis_Ababa"),
    ("ECT", "Europe/Paris"),
    ("EST", "-05:00"),
    ("HST", "-10:00"),
    ("IET", "America/Indiana/Indianapolis"),
    ("IST", "Asia/Kolkata"),
    ("JST", "Asia/Tokyo"),
    ("MIT", "Pacific/Apia"),
    ("MST", "-07:00"),
    ("NET", "Asia/Yerevan"),
    ("NST", "Pacific/Auckland"),
    ("PLT", "Asia/Karachi"),
    ("PNT", "America/Phoenix"),
    ("PRT", "America/Puerto_Rico"),
    ("PST", "America/Los_Angeles"),
    ("SST", "Pacific/Guadalcanal"),
    ("VST", "Asia/Ho_Chi_Minh"),
];

fn fixed(seconds: i32) -> Option<TimeZone> {
    Some(TimeZone::fixed(jiff::tz::Offset::from_seconds(seconds).ok()?))
}

/// `+h`, `+hh`, `+h:mm`, `+hh:mm`, `+hhmm`, `+hh:mm:ss`, `+hhmmss` as seconds; at most 18 hours.
fn parse_offset(text: &str) -> Option<i32> {
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let rest = &text[1..];
    let parts: Vec<&str> = if rest.contains(':') {
        rest.split(':').collect()
    } else {
        match rest.len() {
            1 | 2 => vec![rest],
            4 if rest.is_ascii() => vec![&rest[..2], &rest[2..]],
            6 if rest.is_ascii() => vec![&rest[..2], &rest[2..4], &rest[4..]],
            _ => return None,
        }
    };
    let mut numbers = [0i32; 3];
    if parts.len() > 3 {
        return None;
    }
    for (slot, part) in numbers.iter_mut().zip(&parts) {
        if part.is_empty() || part.len() > 2 || !part.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        *slot = part.parse().ok()?;
    }
    let [h, m, s] = numbers;
    let total = h * 3600 + m * 60 + s;
    (m < 60 && s < 60 && total <= 18 * 3600).then_some(sign * total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_are_inverse() {
        for days in (-800_000..3_000_000).step_by(97) {
            let (y, m, d) = civil_from_days(days);
            assert_eq!(days_from_civil(y, m, d), days);
        }
        assert_eq!(civil_from_days(0), (1970, 1, 1));
        assert_eq!(civil_from_days(-719_162), (1, 1, 1));
        assert_eq!(days_from_civil(2024, 2, 29), 19_782);
    }

    #[test]
    fn months_keep_the_day_or_take_the_last() {
        let day = |y, m, d| days_from_civil(y, m, d);
        assert_eq!(add_months(day(2024, 1, 31), 1), day(2024, 2, 29));
        assert_eq!(add_months(day(2024, 3, 31), -1), day(2024, 2, 29));
        assert_eq!(add_months(day(2024, 1, 15), -13), day(2022, 12, 15));
    }

    #[test]
    fn gaps_go_forward_and_overlaps_take_the_earlier() {
        let berlin = parse_zone("Europe/Berlin").expect("known");
        let at = |d: i64, h: i64, m: i64| d * MICROS_PER_DAY + (h * 60 + m) * 60 * MICROS_PER_SECOND;
        let march = days_from_civil(2024, 3, 31);
        assert_eq!(to_instant(&berlin, at(march, 2, 30)), at(march, 1, 30));
        let october = days_from_civil(2024, 10, 27);
        assert_eq!(to_instant(&berlin, at(october, 2, 30)), at(october, 0, 30));
    }
}
