//! Random rows, the orders in which they arrive, and their smaller cases.

use rand::Rng;
use rand::rngs::StdRng;

/// Delay of both streams' watermarks, in microseconds.
pub const DELAY: i64 = 10_000_000;
/// 2024-01-01, in microseconds.
pub const BASE: i64 = 1_704_067_200_000_000;

/// A row of stream `a` or `b`.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Event time, in microseconds.
    pub ts: Option<i64>,
    pub k: Option<&'static str>,
    pub n: Option<i64>,
    /// A DECIMAL(10, 2), as its text.
    pub d: Option<&'static str>,
    /// A DOUBLE, as its text.
    pub x: Option<&'static str>,
    /// Gap of the row's session, in seconds.
    pub g: i64,
    /// Number of the delay-long stretch of time that the row is in.
    pub b: i64,
}

/// A row, where it stands in two orders, and what happens behind it there.
#[derive(Debug, Clone)]
pub struct Arrival {
    /// 0 for `a`, 1 for `b`.
    pub stream: usize,
    pub row: Row,
    /// Place in each order.
    pub place: [i64; 2],
    pub then: [Then; 2],
}

/// What happens behind a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Then {
    Nothing,
    /// All rows so far are processed.
    Batch,
    /// And the process is replaced by another on the same checkpoint.
    Restart,
}

/// What the random rows may hold.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub streams: usize,
    pub before_1970: bool,
    pub null_times: bool,
    /// Rows come in any order, not only within the delay.
    pub late: bool,
}

const KEYS: &[Option<&str>] =
    &[None, Some(""), Some("a"), Some("b"), Some("ünï"), Some("a key too long to be kept inline")];
const DECIMALS: &[Option<&str>] = &[None, Some("0.00"), Some("1.50"), Some("-2.25")];
const DOUBLES: &[Option<&str>] = &[None, Some("0.0"), Some("-0.0"), Some("NaN"), Some("1.5")];

fn pick<T: Copy>(rng: &mut StdRng, from: &[T]) -> T {
    from[rng.random_range(0..from.len())]
}

/// Random rows for a shape. In both orders, unless they are to be late, each row comes before its stream's watermark
/// has reached it.
pub fn arrivals(rng: &mut StdRng, shape: Shape) -> Vec<Arrival> {
    let base = if shape.before_1970 && rng.random_bool(0.4) { -20_000_000 } else { BASE };
    let span = pick(rng, &[5_000, 40_000, 120_000]);
    let wide = rng.random_bool(0.5);
    let mut all: Vec<Arrival> = Vec::new();
    for _ in 0..rng.random_range(1..=40) {
        if !all.is_empty() && rng.random_bool(0.15) {
            // The same row again, as a stream that delivers at least once does.
            let mut again = all[rng.random_range(0..all.len())].clone();
            again.then = [then(rng), then(rng)];
            again.place = again.place.map(|p| p + 1);
            all.push(again);
            continue;
        }
        let millis: i64 = rng.random_range(0..span);
        // Many rows stand exactly at a second, where windows begin and end.
        let time = base
            + if rng.random_bool(0.4) { millis / 1_000 * 1_000_000 } else { millis * 1_000 + rng.random_range(0..2) };
        let jitter = if shape.late { 120_000_000 } else { DELAY - 2 };
        let ts = (!shape.null_times || rng.random_bool(0.93)).then_some(time);
        let keys = if wide { KEYS } else { &KEYS[1..3] };
        all.push(Arrival {
            stream: rng.random_range(0..shape.streams),
            row: Row {
                ts,
                k: pick(rng, keys),
                n: rng.random_bool(0.9).then(|| rng.random_range(-3..4)),
                d: pick(rng, DECIMALS),
                x: pick(rng, DOUBLES),
                g: rng.random_range(1..9),
                b: time.div_euclid(DELAY),
            },
            place: [time + rng.random_range(0..jitter), time + rng.random_range(0..jitter)],
            then: [then(rng), then(rng)],
        });
    }
    all
}

fn then(rng: &mut StdRng) -> Then {
    pick(rng, &[Then::Nothing, Then::Nothing, Then::Nothing, Then::Nothing, Then::Batch, Then::Batch, Then::Restart])
}

/// The last row of each stream: so far ahead that all others' windows close.
pub fn closing(streams: usize) -> Vec<Arrival> {
    let ahead = BASE + 100 * 86_400_000_000;
    (0..streams)
        .map(|stream| Arrival {
            stream,
            row: Row {
                ts: Some(ahead),
                k: Some(["close a", "close b"][stream]),
                n: Some(0),
                d: None,
                x: None,
                g: 1,
                b: ahead.div_euclid(DELAY),
            },
            place: [i64::MAX; 2],
            then: [Then::Nothing; 2],
        })
        .collect()
}

/// A smaller case that fails still: rows are left out as long as that can be done, then batches are joined.
pub fn shrink(mut failing: Vec<Arrival>, fails: &dyn Fn(&[Arrival]) -> bool) -> Vec<Arrival> {
    let mut size = failing.len().div_ceil(2);
    while size > 0 {
        let mut from = 0;
        while from < failing.len() {
            let mut fewer = failing.clone();
            fewer.drain(from..(from + size).min(failing.len()));
            if fails(&fewer) {
                failing = fewer;
            } else {
                from += size;
            }
        }
        size /= 2;
    }
    for i in 0..failing.len() {
        for order in 0..2 {
            for then in [Then::Nothing, Then::Batch] {
                let mut simpler = failing.clone();
                simpler[i].then[order] = then;
                if failing[i].then[order] != then && fails(&simpler) {
                    failing = simpler;
                    break;
                }
            }
        }
    }
    failing
}
