//! The family of queries, each with what its rows may be and, where there is one, its naive model.

use crate::model::{self, World};
use crate::rows::Shape;
use crate::run::Rows;

/// A query in APPEND.
pub struct Query {
    pub name: &'static str,
    pub sql: &'static str,
    pub shape: Shape,
    /// What it means; `None` where the answer depends on which row came first.
    pub model: Option<fn(&World) -> Rows>,
}

/// One stream, any times.
const ANY: Shape = Shape { streams: 1, before_1970: true, null_times: true, late: false };
/// Two streams, times after 1970.
const TWO: Shape = Shape { streams: 2, before_1970: false, null_times: true, late: false };
/// As [`TWO`], each row with a time: a row without one is kept for ever by an outer join.
const TIMED: Shape = Shape { null_times: false, ..TWO };

const fn query(name: &'static str, sql: &'static str, shape: Shape, model: fn(&World) -> Rows) -> Query {
    Query { name, sql, shape, model: Some(model) }
}

pub const APPEND: &[Query] = &[
    query(
        "tumble",
        "SELECT unix_micros(window_start) AS s, k, count(*) AS c, count(n) AS cn, sum(n) AS n, sum(d) AS d
         FROM a GROUP BY TUMBLE(ts, INTERVAL 5 SECONDS), k",
        ANY,
        model::tumble,
    ),
    query(
        "tumble with an offset, decimal key",
        "SELECT unix_micros(window_start) AS s, d AS key, count(*) AS c, count(n) AS cn, sum(n) AS n, sum(d) AS d
         FROM a GROUP BY TUMBLE(ts, INTERVAL 7 SECONDS, INTERVAL 3 SECONDS), d",
        ANY,
        model::tumble_offset,
    ),
    query(
        "hop",
        "SELECT unix_micros(window_start) AS s, k, count(*) AS c, count(n) AS cn, sum(n) AS n, sum(d) AS d
         FROM a GROUP BY HOP(ts, INTERVAL 2 SECONDS, INTERVAL 10 SECONDS), k",
        ANY,
        model::hop,
    ),
    query(
        "hop of no multiple of the slide, offset, double key",
        "SELECT unix_micros(window_start) AS s, x, count(*) AS c, count(n) AS cn, sum(n) AS n, sum(d) AS d
         FROM a GROUP BY HOP(ts, INTERVAL 3 SECONDS, INTERVAL 10 SECONDS, INTERVAL 1 SECOND), x",
        ANY,
        model::hop_uneven,
    ),
    query(
        "union",
        "SELECT unix_micros(window_start) AS s, k, count(*) AS c, count(n) AS cn, sum(n) AS n, sum(d) AS d
         FROM (SELECT ts, k, n, d FROM a UNION ALL SELECT ts, k, n, d FROM b) GROUP BY TUMBLE(ts, INTERVAL 5 SECONDS), k",
        TWO,
        model::union,
    ),
    query(
        "session",
        "SELECT unix_micros(window_start) AS s, unix_micros(window_end) AS e, k, count(*) AS c, count(n) AS cn, sum(n) AS n, sum(d) AS d
         FROM a GROUP BY SESSION(ts, INTERVAL 4 SECONDS), k",
        ANY,
        model::session,
    ),
    query(
        "session with a gap per row",
        "SELECT unix_micros(window_start) AS s, unix_micros(window_end) AS e, k, count(*) AS c, count(n) AS cn, sum(n) AS n, sum(d) AS d
         FROM a GROUP BY SESSION(ts, make_dt_interval(0, 0, 0, g)), k",
        ANY,
        model::session_per_row,
    ),
    query("distinct rows", "SELECT DISTINCT k, n FROM a", ANY, model::distinct_rows),
    query(
        "distinct on the time",
        "SELECT DISTINCT ON (ts, k) unix_micros(ts) AS t, k FROM a",
        ANY,
        model::distinct_on_time,
    ),
    query(
        "distinct within the watermark",
        "SELECT DISTINCT ON (b, x) WITHIN WATERMARK b, x + 0.0 AS x FROM a",
        Shape { null_times: false, before_1970: false, ..ANY },
        model::distinct_within,
    ),
    query(
        "window over window",
        "SELECT unix_micros(window_start) AS s, count(*) AS groups, sum(c) AS c
         FROM (SELECT window, k, count(*) AS c FROM a GROUP BY TUMBLE(ts, INTERVAL 5 SECONDS), k)
         GROUP BY TUMBLE(window_time(window), INTERVAL 20 SECONDS)",
        Shape { before_1970: false, ..ANY },
        model::chained,
    ),
    query(
        "inner join",
        "SELECT unix_micros(l.ts) AS lt, l.k AS lk, l.n AS ln, unix_micros(r.ts) AS rt, r.k AS rk, r.n AS rn FROM a l JOIN b r
         ON l.k = r.k AND r.ts BETWEEN l.ts - INTERVAL 3 SECONDS AND l.ts + INTERVAL 6 SECONDS",
        TWO,
        model::inner_join,
    ),
    query(
        "left join",
        "SELECT unix_micros(l.ts) AS lt, l.k AS lk, l.n AS ln, unix_micros(r.ts) AS rt, r.k AS rk, r.n AS rn FROM a l LEFT JOIN b r
         ON l.k = r.k AND r.ts BETWEEN l.ts - INTERVAL 3 SECONDS AND l.ts + INTERVAL 6 SECONDS",
        TIMED,
        model::left_join,
    ),
    query(
        "right join",
        "SELECT unix_micros(l.ts) AS lt, l.k AS lk, l.n AS ln, unix_micros(r.ts) AS rt, r.k AS rk, r.n AS rn FROM a l RIGHT JOIN b r
         ON l.k = r.k AND r.ts BETWEEN l.ts - INTERVAL 3 SECONDS AND l.ts + INTERVAL 6 SECONDS",
        TIMED,
        model::right_join,
    ),
    query(
        "full join",
        "SELECT unix_micros(l.ts) AS lt, l.k AS lk, l.n AS ln, unix_micros(r.ts) AS rt, r.k AS rk, r.n AS rn FROM a l FULL JOIN b r
         ON l.k = r.k AND r.ts BETWEEN l.ts - INTERVAL 3 SECONDS AND l.ts + INTERVAL 6 SECONDS",
        TIMED,
        model::full_join,
    ),
    query(
        "semi join",
        "SELECT unix_micros(l.ts) AS lt, l.k AS lk, l.n AS ln FROM a l LEFT SEMI JOIN b r
         ON l.k = r.k AND r.ts BETWEEN l.ts - INTERVAL 3 SECONDS AND l.ts + INTERVAL 6 SECONDS",
        TIMED,
        model::semi_join,
    ),
    query(
        "join, then windows",
        "SELECT unix_micros(window_start) AS s, k, count(*) AS c FROM
         (SELECT l.ts AS ts, l.k AS k FROM a l JOIN b r
          ON l.k = r.k AND r.ts BETWEEN l.ts - INTERVAL 3 SECONDS AND l.ts + INTERVAL 6 SECONDS)
         GROUP BY TUMBLE(ts, INTERVAL 10 SECONDS), k",
        TWO,
        model::join_then_windows,
    ),
    query(
        "windows, then join",
        "SELECT unix_micros(l.window.start) AS s, l.k AS k, l.c AS lc, r.c AS rc
         FROM (SELECT window, k, count(*) AS c FROM a GROUP BY window(ts, '10 seconds'), k) l
         JOIN (SELECT window, k, count(*) AS c FROM b GROUP BY window(ts, '10 seconds'), k) r
         ON l.window = r.window AND l.k = r.k",
        TWO,
        model::windows_joined,
    ),
    Query {
        name: "first of each key",
        sql: "SELECT DISTINCT ON (k) k, n, unix_micros(ts) AS t FROM a",
        shape: ANY,
        model: None,
    },
    Query {
        name: "first of each key within the watermark",
        sql: "SELECT DISTINCT ON (k) WITHIN WATERMARK k, n, unix_micros(ts) AS t FROM a",
        shape: Shape { null_times: false, ..ANY },
        model: None,
    },
];

/// An aggregation in UPDATE and COMPLETE; its first columns are the key.
pub struct Changing {
    pub name: &'static str,
    pub sql: &'static str,
    pub keys: usize,
    pub streams: usize,
}

pub const CHANGING: &[Changing] = &[
    Changing {
        name: "groups",
        sql: "SELECT k, d, count(*) AS c, sum(n) AS n, min(n) AS least, max(d) AS most, avg(n) AS mean FROM a GROUP BY k, d",
        keys: 2,
        streams: 1,
    },
    Changing { name: "double key", sql: "SELECT x, count(*) AS c, sum(d) AS d FROM a GROUP BY x", keys: 1, streams: 1 },
    Changing { name: "global", sql: "SELECT count(*) AS c, sum(n) AS n, max(k) AS k FROM a", keys: 0, streams: 1 },
    Changing {
        name: "tumble",
        sql: "SELECT window_start, k, count(*) AS c, sum(d) AS d, max(n) AS n FROM a GROUP BY TUMBLE(ts, INTERVAL 5 SECONDS), k",
        keys: 2,
        streams: 1,
    },
    Changing {
        name: "hop",
        sql: "SELECT window_start, x, count(*) AS c, min(k) AS k FROM a GROUP BY HOP(ts, INTERVAL 3 SECONDS, INTERVAL 10 SECONDS), x",
        keys: 2,
        streams: 1,
    },
    Changing {
        name: "union",
        sql: "SELECT k, count(*) AS c, sum(n) AS n FROM (SELECT k, n FROM a UNION ALL SELECT k, n FROM b) GROUP BY k",
        keys: 1,
        streams: 2,
    },
];
