//! English names of time zones. Abbreviations come from the zone rules; the long names are those of the common zones. A
//! zone without a name shows its offset, as Java does for zones that its locale data does not name.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::format::write_localized;
use crate::functions::clock::zone_name;
use crate::time::{MICROS_PER_SECOND, offset_at, parse_zone};

/// Names by abbreviation; where one abbreviation has several meanings, the start of the region decides.
const NAMES: &[(&str, &str, &str)] = &[
    ("UTC", "", "Coordinated Universal Time"),
    ("GMT", "", "Greenwich Mean Time"),
    ("EST", "America/", "Eastern Standard Time"),
    ("EDT", "America/", "Eastern Daylight Time"),
    ("CST", "America/", "Central Standard Time"),
    ("CDT", "America/", "Central Daylight Time"),
    ("MST", "America/", "Mountain Standard Time"),
    ("MDT", "America/", "Mountain Daylight Time"),
    ("PST", "America/", "Pacific Standard Time"),
    ("PDT", "America/", "Pacific Daylight Time"),
    ("AKST", "America/", "Alaska Standard Time"),
    ("AKDT", "America/", "Alaska Daylight Time"),
    ("HST", "Pacific/", "Hawaii-Aleutian Standard Time"),
    ("AST", "America/", "Atlantic Standard Time"),
    ("ADT", "America/", "Atlantic Daylight Time"),
    ("NST", "America/", "Newfoundland Standard Time"),
    ("NDT", "America/", "Newfoundland Daylight Time"),
    ("CET", "", "Central European Standard Time"),
    ("CEST", "", "Central European Summer Time"),
    ("EET", "", "Eastern European Standard Time"),
    ("EEST", "", "Eastern European Summer Time"),
    ("WET", "", "Western European Standard Time"),
    ("WEST", "", "Western European Summer Time"),
    ("BST", "Europe/", "British Summer Time"),
    ("IST", "Asia/", "India Standard Time"),
    ("IST", "Europe/", "Irish Standard Time"),
    ("MSK", "", "Moscow Standard Time"),
    ("JST", "", "Japan Standard Time"),
    ("KST", "", "Korean Standard Time"),
    ("CST", "Asia/", "China Standard Time"),
    ("HKT", "", "Hong Kong Standard Time"),
    ("SGT", "", "Singapore Standard Time"),
    ("AEST", "", "Australian Eastern Standard Time"),
    ("AEDT", "", "Australian Eastern Daylight Time"),
    ("ACST", "", "Australian Central Standard Time"),
    ("ACDT", "", "Australian Central Daylight Time"),
    ("AWST", "", "Australian Western Standard Time"),
    ("NZST", "", "New Zealand Standard Time"),
    ("NZDT", "", "New Zealand Daylight Time"),
    ("SAST", "", "South Africa Standard Time"),
    ("EAT", "", "East Africa Time"),
    ("CAT", "", "Central Africa Time"),
    ("WAT", "", "West Africa Standard Time"),
    ("BRT", "America/", "Brasilia Standard Time"),
    ("GST", "Asia/", "Gulf Standard Time"),
];

/// Abbreviations that the zone rules do not have any more but Java's locale data does.
const ABBREVIATIONS: &[(&str, &str)] =
    &[("Asia/Singapore", "SGT"), ("Asia/Dubai", "GST"), ("America/Sao_Paulo", "BRT")];

/// What an abbreviation in a text means.
const REGIONS: &[(&str, &str)] = &[
    ("EST", "America/New_York"),
    ("EDT", "America/New_York"),
    ("CST", "America/Chicago"),
    ("CDT", "America/Chicago"),
    ("MST", "America/Denver"),
    ("MDT", "America/Denver"),
    ("PST", "America/Los_Angeles"),
    ("PDT", "America/Los_Angeles"),
    ("AKST", "America/Anchorage"),
    ("AKDT", "America/Anchorage"),
    ("HST", "Pacific/Honolulu"),
    ("CET", "Europe/Paris"),
    ("CEST", "Europe/Paris"),
    ("EET", "Europe/Bucharest"),
    ("EEST", "Europe/Bucharest"),
    ("BST", "Europe/London"),
    ("IST", "Asia/Kolkata"),
    ("MSK", "Europe/Moscow"),
    ("JST", "Asia/Tokyo"),
    ("KST", "Asia/Seoul"),
    ("HKT", "Asia/Hong_Kong"),
    ("SGT", "Asia/Singapore"),
    ("AEST", "Australia/Sydney"),
    ("AEDT", "Australia/Sydney"),
    ("NZST", "Pacific/Auckland"),
    ("NZDT", "Pacific/Auckland"),
    ("SAST", "Africa/Johannesburg"),
];

/// The abbreviation in force: `EST`, `CEST`; an offset for zones that are one.
pub(super) fn short_name(zone: &TimeZone, instant: i64) -> String {
    let name = zone_name(zone);
    if zone.iana_name().is_none() {
        return name;
    }
    if let Some((_, short)) = ABBREVIATIONS.iter().find(|(region, _)| *region == name) {
        return (*short).to_owned();
    }
    let at = Timestamp::from_second(instant.div_euclid(MICROS_PER_SECOND)).unwrap_or(Timestamp::MIN);
    let info = zone.to_offset_info(at);
    let short = info.abbreviation();
    if short.starts_with(['+', '-']) {
        let mut out = String::new();
        write_localized(offset_at(zone, instant), false, &mut out);
        return out;
    }
    short.to_owned()
}

/// The long name in force.
pub(super) fn full_name(zone: &TimeZone, instant: i64) -> String {
    let (short, region) = (short_name(zone, instant), zone_name(zone));
    if let Some((.., full)) = NAMES.iter().find(|(s, prefix, _)| *s == short && region.starts_with(prefix)) {
        return (*full).to_owned();
    }
    if zone.iana_name().is_none() {
        return region;
    }
    let mut out = String::new();
    write_localized(offset_at(zone, instant), true, &mut out);
    out
}

/// The longest zone at the start of the text, by region, offset or (with `names`) by name: the zone and its length.
pub(super) fn zone_at_start(text: &str, names: bool) -> Option<(TimeZone, usize)> {
    if names {
        let by_name = REGIONS.iter().map(|(short, region)| (*short, *region));
        let full = NAMES.iter().filter_map(|(short, _, full)| {
            REGIONS.iter().find(|(s, _)| s == short).map(|(_, region)| (*full, *region))
        });
        let found = full.chain(by_name).filter(|(name, _)| {
            text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
                && !text[name.len()..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '/')
        });
        if let Some((name, region)) = found.max_by_key(|(name, _)| name.len()) {
            return Some((parse_zone(region)?, name.len()));
        }
    }
    let run = text
        .bytes()
        .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'_' | b'+' | b'-' | b':'))
        .count()
        .min(64);
    let offset_starts = text.starts_with(['+', '-']);
    (1..=run).rev().find_map(|n| {
        let candidate = &text[..n];
        // A bare offset is written `+hh:mm[:ss]`.
        if offset_starts && !(matches!(n, 6 | 9) && candidate.as_bytes()[3] == b':') {
            return None;
        }
        parse_zone(candidate).map(|zone| (zone, n))
    })
}
