//! The session's clock and calendar: the present moment, and timestamps as the wall clock shows them.

use arrow::datatypes::{Date32Type, TimestampMicrosecondType};
use jiff::tz::TimeZone;
use ssql_ir::DataType as T;

use crate::call::{Call, EvalResult};
use crate::function::{FunctionDef, Ret, scalar};
use crate::time::{MICROS_PER_DAY, MICROS_PER_SECOND, add_months, split_micros, to_instant, to_local};

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[
    scalar("current_timestamp", &[], Ret::Timestamp, |c| {
        c.primitive_all::<TimestampMicrosecondType>(|_| c.ctx.now_micros)
    })
    .aliases(&["now"])
    .volatile()
    .doc("The moment at which the micro-batch (or the statement) began.", "current_timestamp()", ""),
    scalar("current_date", &[], Ret::Date, |c| {
        let today = split_micros(to_local(&c.ctx.time_zone, c.ctx.now_micros)).0 as i32;
        c.primitive_all::<Date32Type>(|_| today)
    })
    .aliases(&["curdate"])
    .volatile()
    .doc("The date of `current_timestamp()` in the session's time zone.", "current_date()", ""),
    scalar("localtimestamp", &[], Ret::TimestampNtz, |c| {
        let now = to_local(&c.ctx.time_zone, c.ctx.now_micros);
        c.primitive_all::<TimestampMicrosecondType>(|_| now)
    })
    .volatile()
    .doc("`current_timestamp()` as the session's wall clock shows it.", "localtimestamp()", ""),
    scalar("current_timezone", &[], Ret::String, current_timezone).volatile().doc(
        "Name of the session's time zone.",
        "current_timezone()",
        "",
    ),
];

/// The name of a zone as Spark shows it: a region, `UTC`, or an offset such as `+02:00`.
pub(crate) fn zone_name(zone: &TimeZone) -> String {
    if let Some(name) = zone.iana_name() {
        return name.to_owned();
    }
    match zone.to_fixed_offset() {
        Ok(offset) if offset.seconds() != 0 => {
            let mut out = String::new();
            write_offset(offset.seconds().into(), &mut out);
            out
        }
        _ => "UTC".to_owned(),
    }
}

/// `+hh:mm`, with seconds if there are any.
pub(crate) fn write_offset(seconds: i64, out: &mut String) {
    let all = seconds.unsigned_abs();
    out.push(if seconds < 0 { '-' } else { '+' });
    out.push_str(&format!("{:02}:{:02}", all / 3600, all / 60 % 60));
    if !all.is_multiple_of(60) {
        out.push_str(&format!(":{:02}", all % 60));
    }
}

fn current_timezone(c: &Call<'_>) -> EvalResult {
    let name = zone_name(&c.ctx.time_zone);
    c.strs(|_| Ok(Some(name.as_str())))
}

/// How a timestamp argument is read on a wall clock: an instant through the session's zone, a TIMESTAMP_NTZ as it is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Clock<'a> {
    /// A constant distance from UTC, in microseconds.
    Fixed(i64),
    /// A zone with rules.
    Zone(&'a TimeZone),
}

impl<'a> Clock<'a> {
    /// For argument `i`.
    pub(crate) fn of(c: &Call<'a>, i: usize) -> Clock<'a> {
        if *c.types[i] == T::TimestampNtz { Clock::Fixed(0) } else { Clock::in_zone(&c.ctx.time_zone) }
    }

    /// For instants in that zone.
    pub(crate) fn in_zone(zone: &'a TimeZone) -> Clock<'a> {
        match zone.to_fixed_offset() {
            Ok(offset) => Clock::Fixed(i64::from(offset.seconds()) * MICROS_PER_SECOND),
            Err(_) => Clock::Zone(zone),
        }
    }

    /// Wall-clock microseconds.
    #[inline]
    pub(crate) fn local(self, micros: i64) -> i64 {
        match self {
            Clock::Fixed(offset) => micros.saturating_add(offset),
            Clock::Zone(zone) => to_local(zone, micros),
        }
    }

    /// The timestamp at which the clock shows that.
    #[inline]
    pub(crate) fn instant(self, local: i64) -> i64 {
        match self {
            Clock::Fixed(offset) => local.saturating_sub(offset),
            Clock::Zone(zone) => to_instant(zone, local),
        }
    }

    /// The timestamp whose wall-clock reading is `f` of that of `micros`. A reading that the clock shows twice keeps the
    /// side that `micros` is on, as Java's `ZonedDateTime` does.
    #[inline]
    pub(crate) fn moved(self, micros: i64, f: impl FnOnce(i64) -> Option<i64>) -> Option<i64> {
        let before = self.local(micros);
        let after = f(before)?;
        match self {
            Clock::Fixed(offset) => after.checked_sub(offset),
            Clock::Zone(zone) => {
                let same_offset = after.checked_sub(before - micros)?;
                Some(if to_local(zone, same_offset) == after { same_offset } else { to_instant(zone, after) })
            }
        }
    }

    /// The timestamp that many microseconds later: whole days move the wall clock, the rest is real time.
    pub(crate) fn later(self, micros: i64, by: i64) -> Option<i64> {
        match self {
            Clock::Fixed(_) => micros.checked_add(by),
            Clock::Zone(_) => {
                let rest = by % MICROS_PER_DAY;
                self.moved(micros, |local| local.checked_add(by - rest))?.checked_add(rest)
            }
        }
    }

    /// The timestamp that many months later, by the wall clock; a day that the month does not have becomes its last.
    pub(crate) fn months_later(self, micros: i64, months: i64) -> Option<i64> {
        self.moved(micros, |local| {
            let (days, of_day) = split_micros(local);
            add_months(days, months).checked_mul(MICROS_PER_DAY)?.checked_add(of_day)
        })
    }

    /// Microseconds since the clock's midnight.
    #[inline]
    pub(crate) fn of_day(self, micros: i64) -> i64 {
        self.local(micros).rem_euclid(MICROS_PER_DAY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EvalContext;
    use crate::testing::{expr, show_in};
    use crate::time::parse_zone;

    #[test]
    fn the_present_is_one_moment_per_batch() {
        let ctx = EvalContext {
            now_micros: 1_704_076_200_000_000,
            time_zone: parse_zone("America/New_York").expect("known"),
            ..EvalContext::default()
        };
        let show = |name: &str| show_in(&expr(name, &[]), &ctx);
        assert_eq!(show("now"), "2023-12-31 21:30:00");
        assert_eq!(show("current_date"), "2023-12-31");
        assert_eq!(show("localtimestamp"), "2023-12-31 21:30:00");
        assert_eq!(show("current_timezone"), "America/New_York");
        let in_zone = |name: &str| zone_name(&parse_zone(name).expect("known"));
        assert_eq!(in_zone("+2"), "+02:00");
        assert_eq!(in_zone("-03:30"), "-03:30");
        assert_eq!(in_zone("UTC"), "UTC");
    }
}
