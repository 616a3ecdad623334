//! A fast path for the common timestamps `2024-01-15T10:30:00[.ffffff][Z]`.

use jiff::tz::TimeZone;
use ssql_stdlib::time::checked_date;

const MICROS_PER_DAY: i64 = 86_400_000_000;

/// Reads timestamps; remembers the last date, since neighbours in a stream mostly share it.
#[derive(Debug)]
pub(super) struct Times {
    zone: TimeZone,
    /// Whether a wall-clock reading in the zone is the instant itself.
    utc: bool,
    /// The last date's ten characters, and its midnight in microseconds.
    date: [u8; 10],
    midnight: i64,
}

impl Times {
    pub(super) fn new(zone: TimeZone) -> Times {
        let utc = zone.to_fixed_offset().is_ok_and(|offset| offset.seconds() == 0);
        Times { zone, utc, date: *b"1970-01-01", midnight: 0 }
    }

    pub(super) fn zone(&self) -> &TimeZone {
        &self.zone
    }

    /// The instant in a text that begins at `p` and ends before a quote, and the position of that quote.
    #[inline(always)]
    pub(super) fn instant(&mut self, data: &[u8], p: usize) -> Option<(i64, usize)> {
        let (local, end, zoned) = self.read(data, p)?;
        (zoned || self.utc).then_some((local, end))
    }

    /// The wall-clock reading in a text that begins at `p` and ends before a quote.
    #[inline(always)]
    pub(super) fn wall_clock(&mut self, data: &[u8], p: usize) -> Option<(i64, usize)> {
        let (local, end, zoned) = self.read(data, p)?;
        (!zoned).then_some((local, end))
    }

    #[inline(always)]
    fn read(&mut self, data: &[u8], p: usize) -> Option<(i64, usize, bool)> {
        let text = data.get(p..)?.first_chunk::<20>()?;
        let date = text.first_chunk::<10>().expect("20 bytes are more than 10");
        if *date != self.date {
            self.midnight = i64::from(read_date(date)?) * MICROS_PER_DAY;
            self.date = *date;
        }
        if !matches!(text[10], b'T' | b' ') {
            return None;
        }
        let mut clock = [0u8; 8];
        clock.copy_from_slice(&text[11..19]);
        let mut micros = self.midnight + read_clock(clock)?;
        let mut at = p + 19;
        if text[19] == b'.' {
            at += 1;
            let (mut fraction, mut digits) = (0i64, 0);
            while let Some(d) = data.get(at).map(|b| b.wrapping_sub(b'0')).filter(|d| *d <= 9) {
                fraction = fraction * 10 + i64::from(d);
                digits += 1;
                at += 1;
                if digits == 6 {
                    break;
                }
            }
            micros += fraction * *[0, 100_000, 10_000, 1_000, 100, 10, 1].get(digits)?;
            if digits == 0 {
                return None;
            }
        }
        let zoned = data.get(at) == Some(&b'Z');
        at += usize::from(zoned);
        (data.get(at) == Some(&b'"')).then_some((micros, at, zoned))
    }
}

/// Days since the epoch of `2024-01-15`.
pub(super) fn read_date(text: &[u8; 10]) -> Option<i32> {
    let digit = |i: usize| Some(i64::from(text[i].wrapping_sub(b'0'))).filter(|d| *d <= 9);
    if text[4] != b'-' || text[7] != b'-' {
        return None;
    }
    let year = digit(0)? * 1000 + digit(1)? * 100 + digit(2)? * 10 + digit(3)?;
    checked_date(year, digit(5)? * 10 + digit(6)?, digit(8)? * 10 + digit(9)?)
}

/// Microseconds since midnight of `10:30:00`, eight bytes at once.
#[inline(always)]
fn read_clock(text: [u8; 8]) -> Option<i64> {
    // Digits become their values and colons 0; then each byte must be at most 9, or 0 where a colon stood.
    let x = u64::from_le_bytes(text) ^ u64::from_le_bytes(*b"00:00:00");
    let room = u64::from_le_bytes([0x76, 0x76, 0x7f, 0x76, 0x76, 0x7f, 0x76, 0x76]);
    if (x | x.wrapping_add(room)) & 0x8080_8080_8080_8080 != 0 {
        return None;
    }
    let two = |shift: u32| (x >> shift & 0xf) as i64 * 10 + (x >> (shift + 8) & 0xf) as i64;
    let (hour, minute, second) = (two(0), two(24), two(48));
    (hour < 24 && minute < 60 && second < 60).then_some(((hour * 60 + minute) * 60 + second) * 1_000_000)
}
