//! Printing that the text formats share.

use jiff::tz::TimeZone;
use ssql_stdlib::text::write_date;
use ssql_stdlib::time::{offset_at, split_micros};

/// Writes `2024-01-15T10:30:00.123Z`, as Spark's JSON and CSV writers do: to the millisecond, with the zone's offset;
/// without a zone the wall clock alone.
pub(crate) fn write_timestamp_millis(micros: i64, zone: Option<&TimeZone>, out: &mut String) {
    let offset = zone.map(|zone| offset_at(zone, micros));
    let (days, of_day) = split_micros(micros.saturating_add(offset.unwrap_or(0) * 1_000_000));
    write_date(days as i32, out);
    let millis = of_day / 1000;
    let clock = [millis / 3_600_000, millis / 60_000 % 60, millis / 1000 % 60];
    for (i, part) in clock.into_iter().enumerate() {
        out.push(if i == 0 { 'T' } else { ':' });
        two(part, out);
    }
    out.push('.');
    out.push((b'0' + (millis % 1000 / 100) as u8) as char);
    two(millis % 100, out);
    match offset {
        None => {}
        Some(0) => out.push('Z'),
        Some(seconds) => {
            let minutes = seconds.abs() / 60;
            out.push(if seconds < 0 { '-' } else { '+' });
            two(minutes / 60, out);
            out.push(':');
            two(minutes % 60, out);
        }
    }
}

fn two(value: i64, out: &mut String) {
    out.push((b'0' + (value / 10 % 10) as u8) as char);
    out.push((b'0' + (value % 10) as u8) as char);
}
