//! What the queries mean, over all rows at once: no batches, no watermarks, no state. Windows that ended by 1970 are
//! left out, for that is where watermarks begin.

use std::collections::{BTreeMap, BTreeSet};

use crate::rows::Row;
use crate::run::Rows;

const SECOND: i64 = 1_000_000;

/// The rows of both streams but for the closing ones.
pub struct World {
    pub a: Vec<Row>,
    pub b: Vec<Row>,
    /// The closing row of `a`, for queries that emit rows as they come.
    pub closing: Row,
}

fn text(v: Option<impl ToString>) -> String {
    v.map_or_else(|| "NULL".to_owned(), |v| v.to_string())
}

/// A DOUBLE as a key: there is one zero.
fn double(x: Option<&str>) -> String {
    text(x.map(|x| if x == "-0.0" { "0.0" } else { x }))
}

fn cents(d: &str) -> i64 {
    d.replace('.', "").parse().expect("a decimal of two places")
}

fn decimal(cents: i64) -> String {
    format!("{}{}.{:02}", if cents < 0 { "-" } else { "" }, cents.abs() / 100, cents.abs() % 100)
}

/// Starts of the windows that hold a time.
pub fn starts(ts: i64, size: i64, slide: i64, offset: i64) -> Vec<i64> {
    let mut start = (ts - offset).div_euclid(slide) * slide + offset;
    let mut all = Vec::new();
    while start + size > ts {
        all.push(start);
        start -= slide;
    }
    all
}

/// Groups rows by their windows and a key, in seconds; those that ended by 1970 are late from the beginning.
fn windows(
    rows: &[Row],
    (size, slide, offset): (i64, i64, i64),
    key: impl Fn(&Row) -> String,
) -> BTreeMap<(i64, String), Vec<&Row>> {
    let mut groups = BTreeMap::<_, Vec<_>>::new();
    for row in rows {
        for start in row.ts.iter().flat_map(|ts| starts(*ts, size * SECOND, slide * SECOND, offset * SECOND)) {
            if start + size * SECOND > 0 {
                groups.entry((start, key(row))).or_default().push(row);
            }
        }
    }
    groups
}

/// count(*), count(n), sum(n), sum(d)
fn aggregates(rows: &[&Row]) -> Vec<String> {
    let ns: Vec<i64> = rows.iter().filter_map(|r| r.n).collect();
    let ds: Vec<i64> = rows.iter().filter_map(|r| r.d.map(cents)).collect();
    vec![
        rows.len().to_string(),
        ns.len().to_string(),
        text((!ns.is_empty()).then(|| ns.iter().sum::<i64>())),
        text((!ds.is_empty()).then(|| decimal(ds.iter().sum()))),
    ]
}

fn windowed(rows: &[Row], window: (i64, i64, i64), key: impl Fn(&Row) -> String) -> Rows {
    windows(rows, window, key)
        .into_iter()
        .map(|((start, key), rows)| [vec![start.to_string(), key], aggregates(&rows)].concat())
        .collect()
}

pub fn tumble(w: &World) -> Rows {
    windowed(&w.a, (5, 5, 0), |r| text(r.k))
}

pub fn tumble_offset(w: &World) -> Rows {
    windowed(&w.a, (7, 7, 3), |r| text(r.d))
}

pub fn hop(w: &World) -> Rows {
    windowed(&w.a, (10, 2, 0), |r| text(r.k))
}

pub fn hop_uneven(w: &World) -> Rows {
    windowed(&w.a, (10, 3, 1), |r| double(r.x))
}

pub fn union(w: &World) -> Rows {
    windowed(&[w.a.clone(), w.b.clone()].concat(), (5, 5, 0), |r| text(r.k))
}

fn sessions(rows: &[Row], gap: impl Fn(&Row) -> i64) -> Rows {
    let mut by_key = BTreeMap::<String, Vec<(i64, i64, &Row)>>::new();
    for row in rows {
        if let Some(ts) = row.ts.filter(|ts| ts + gap(row) > 0) {
            by_key.entry(text(row.k)).or_default().push((ts, ts + gap(row), row));
        }
    }
    let mut out = Rows::new();
    for (key, mut rows) in by_key {
        rows.sort_by_key(|(start, end, _)| (*start, *end));
        let mut open: Option<(i64, i64, Vec<&Row>)> = None;
        let mut close = |session: Option<(i64, i64, Vec<&Row>)>| {
            if let Some((start, end, rows)) = session {
                out.push([vec![start.to_string(), end.to_string(), key.clone()], aggregates(&rows)].concat());
            }
        };
        for (start, end, row) in rows {
            match &mut open {
                Some((_, until, rows)) if start <= *until => {
                    *until = end.max(*until);
                    rows.push(row);
                }
                _ => close(open.replace((start, end, vec![row]))),
            }
        }
        close(open);
    }
    out
}

pub fn session(w: &World) -> Rows {
    sessions(&w.a, |_| 4 * SECOND)
}

pub fn session_per_row(w: &World) -> Rows {
    sessions(&w.a, |r| r.g * SECOND)
}

/// The distinct rows of `row`, whatever came first. The closing row is one of them.
fn distinct<'a>(w: &'a World, keep: impl Fn(&Row) -> bool + 'a, row: impl Fn(&Row) -> Vec<String>) -> Rows {
    let all = w.a.iter().chain([&w.closing]);
    all.filter(|r| keep(r)).map(row).collect::<BTreeSet<_>>().into_iter().collect()
}

/// The event time is no column below the deduplication, so no row is late.
pub fn distinct_rows(w: &World) -> Rows {
    distinct(w, |_| true, |r| vec![text(r.k), text(r.n)])
}

pub fn distinct_on_time(w: &World) -> Rows {
    distinct(w, |r| r.ts.is_none_or(|ts| ts > 0), |r| vec![text(r.ts), text(r.k)])
}

pub fn distinct_within(w: &World) -> Rows {
    distinct(w, |_| true, |r| vec![r.b.to_string(), double(r.x)])
}

pub fn chained(w: &World) -> Rows {
    let mut outer = BTreeMap::<i64, (i64, i64)>::new();
    for ((start, _), rows) in windows(&w.a, (5, 5, 0), |r| text(r.k)) {
        let time = start + 5 * SECOND - 1;
        for start in starts(time, 20 * SECOND, 20 * SECOND, 0) {
            let (groups, sum) = outer.entry(start).or_default();
            *groups += 1;
            *sum += rows.len() as i64;
        }
    }
    outer.into_iter().map(|(s, (n, sum))| vec![s.to_string(), n.to_string(), sum.to_string()]).collect()
}

/// The join's condition: equal keys, `b` from 3 seconds before `a` to 6 seconds behind it.
fn matches(l: &Row, r: &Row) -> bool {
    let near = l.ts.zip(r.ts).is_some_and(|(l, r)| (l - 3 * SECOND..=l + 6 * SECOND).contains(&r));
    near && l.k.is_some() && l.k == r.k
}

fn joined(w: &World, left_kept: bool, right_kept: bool) -> Rows {
    let side = |r: Option<&Row>| match r {
        Some(r) => vec![text(r.ts), text(r.k), text(r.n)],
        None => vec!["NULL".to_owned(); 3],
    };
    let mut out = Rows::new();
    for l in &w.a {
        let before = out.len();
        out.extend(w.b.iter().filter(|r| matches(l, r)).map(|r| [side(Some(l)), side(Some(r))].concat()));
        if left_kept && out.len() == before {
            out.push([side(Some(l)), side(None)].concat());
        }
    }
    if right_kept {
        let alone = w.b.iter().filter(|r| !w.a.iter().any(|l| matches(l, r)));
        out.extend(alone.map(|r| [side(None), side(Some(r))].concat()));
    }
    out
}

pub fn inner_join(w: &World) -> Rows {
    joined(w, false, false)
}

pub fn left_join(w: &World) -> Rows {
    joined(w, true, false)
}

pub fn right_join(w: &World) -> Rows {
    joined(w, false, true)
}

pub fn full_join(w: &World) -> Rows {
    joined(w, true, true)
}

pub fn semi_join(w: &World) -> Rows {
    let kept = w.a.iter().filter(|l| w.b.iter().any(|r| matches(l, r)));
    kept.map(|l| vec![text(l.ts), text(l.k), text(l.n)]).collect()
}

pub fn join_then_windows(w: &World) -> Rows {
    let mut groups = BTreeMap::<(i64, String), i64>::new();
    for l in &w.a {
        let found = w.b.iter().filter(|r| matches(l, r)).count() as i64;
        if let Some(ts) = l.ts.filter(|_| found > 0) {
            *groups.entry((starts(ts, 10 * SECOND, 10 * SECOND, 0)[0], text(l.k))).or_default() += found;
        }
    }
    groups.into_iter().map(|((s, k), n)| vec![s.to_string(), k, n.to_string()]).collect()
}

/// Windows of `a` joined to equal windows of `b`.
pub fn windows_joined(w: &World) -> Rows {
    let right = windows(&w.b, (10, 10, 0), |r| text(r.k));
    let left = windows(&w.a, (10, 10, 0), |r| text(r.k));
    left.into_iter()
        .filter(|((_, key), _)| key != "NULL")
        .filter_map(|(group, rows)| {
            let other = right.get(&group)?;
            Some(vec![group.0.to_string(), group.1, rows.len().to_string(), other.len().to_string()])
        })
        .collect()
}
