#!/usr/bin/env python3
"""Writes random streaming cases, a file a seed: four queries over two memory streams, fed in batches with late rows.

    random_streams.py SEED N DIR          writes DIR/random-SEED.slt and N-1 more, without answers
    spark_streams.py DIR/random-*.slt     fills in Spark's

Joins of streams are fed no NULL: Spark lets an IS NOT NULL that a join implies decide whether a row moves the watermark.
A NULL event time under WITHIN WATERMARK is read as the epoch by Spark and never expires here.
"""

import os
import random
import sys

seed0, n, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]


def iv(m):
    return f"INTERVAL {m} MINUTES" if isinstance(m, int) else f"INTERVAL {m}"


AGGS = [
    "count(*) AS n",
    "sum(v) AS sv",
    "avg(v) AS av",
    "min(v) AS mi",
    "max(v) AS ma",
    "count(v) AS cv",
    "min(k2s) AS mk",
    "max(ts) AS mt",
    "sum(g) AS sg",
    "avg(g) AS ag",
    "count_if(v > 3) AS ci",
    "max_by(v, ts) AS mb",
    "bool_and(v > 1) AS ba",
    "sort_array(collect_list(v)) AS cl",
    "sort_array(collect_set(v)) AS cs",
    "first(v) AS fv",
    "last(v) AS lv",
    "stddev_pop(v) AS sd",
    "sum(v) FILTER (WHERE v > 2) AS fs",
    "round(avg(d), 4) AS ad",
    "min(d) AS md",
    "approx_count_distinct(v) AS acd",
]


def aggs(r, k=3):
    out = [a.replace("k2s", "k") for a in r.sample(AGGS, k)]
    return out


def window(r):
    c = r.random()
    if c < 0.35:
        return "TUMBLE(ts, %s)" % iv(r.choice([3, 5, 10, 7]))
    if c < 0.45:
        return "TUMBLE(ts, %s, %s)" % (iv(10), iv(r.choice([2, 3, -3])))
    if c < 0.75:
        sl, sz = r.choice([(5, 10), (2, 10), (4, 10), (3, 7), (10, 10), (1, 3), (6, 15)])
        return "HOP(ts, %s, %s)" % (iv(sl), iv(sz))
    if c < 0.8:
        return "HOP(ts, %s, %s, %s)" % (iv(5), iv(10), iv(2))
    return "SESSION(ts, %s)" % iv(r.choice([2, 4, 6]))


def wm(r, s="s", ts="ts"):
    return f"{s} WATERMARK {ts} DELAY OF {iv(r.choice([0,2,5,10])) if r.random()<.9 else 'INTERVAL 90 SECONDS'}"


def where(r):
    return r.choice(
        [""] * 4
        + [
            " WHERE v > 1",
            " WHERE k IS NOT NULL",
            " WHERE v % 2 = 0",
            " WHERE ts >= TIMESTAMP '2024-03-03 12:05:00'",
            " WHERE k <> 'a' OR v > 3",
        ]
    )


def q_window(r):
    w = window(r)
    sess = w.startswith("SESSION")
    keys = r.choice(["", "k", "k", "v % 2", "k, v % 2", "d", "g"])
    if sess and not keys:
        keys = "k"
    mode = r.choice(["APPEND", "APPEND", "UPDATE", "COMPLETE"])
    if sess and mode == "UPDATE":
        mode = "APPEND"
    a = aggs(r, r.randint(1, 4))
    ks = [f"{x.strip()} AS k{i}" for i, x in enumerate(keys.split(","))] if keys else []
    hv = r.choice(["", "", "", " HAVING count(*) > 1", " HAVING sum(v) > 3"])
    return (
        f"SELECT window_start, window_end, {', '.join(ks+a)} FROM {wm(r)}{where(r)} GROUP BY {w}{', '+keys if keys else ''}{hv} EMIT {mode}"
    )


def q_plain(r):
    mode = r.choice(["UPDATE", "COMPLETE"])
    keys = r.choice(["k", "k, v", "v % 3", "d", "g", ""])
    ks = [f"{x.strip()} AS k{i}" for i, x in enumerate(keys.split(","))] if keys else []
    tail = ""
    src = r.choice(["s", wm(r)])
    if mode == "COMPLETE" and r.random() < 0.4 and keys:
        tail = " ORDER BY k0 NULLS LAST, n LIMIT 3"
    return f"SELECT {', '.join(ks+['count(*) AS n']+[a for a in aggs(r,2) if not a.startswith('count(*)')])} FROM {src}{where(r)}{' GROUP BY '+keys if keys else ''}{tail} EMIT {mode}"


def q_dedup(r):
    kind = r.choice(
        [
            "DISTINCT k, v",
            "DISTINCT ts, k",
            "DISTINCT ON (k) ts, k, v",
            "DISTINCT ON (k, ts) k, ts, v",
            "DISTINCT ON (k) WITHIN WATERMARK ts, k, v",
            "DISTINCT ON (k, v) WITHIN WATERMARK k, v, ts",
        ]
    )
    return f"SELECT {kind} FROM {wm(r)}{where(r)} EMIT {r.choice(['APPEND','APPEND','UPDATE']) if 'WITHIN' not in kind else 'APPEND'}"


def q_join(r):
    kind = r.choice(["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN"])
    on = ["k = k2"]
    a, b = r.choice([0, 1, 3, 5]), r.choice([0, 2, 4, 8])
    on.append(
        r.choice(
            [
                f"tr >= ts - INTERVAL {a} MINUTES AND tr <= ts + INTERVAL {b} MINUTES",
                f"tr BETWEEN ts AND ts + INTERVAL {b} MINUTES",
                f"ts BETWEEN tr - INTERVAL {a} MINUTES AND tr + INTERVAL {b} MINUTES",
                f"tr > ts - INTERVAL {a} MINUTES AND tr < ts + INTERVAL {b+1} MINUTES",
                "tr = ts",
            ]
        )
    )
    if r.random() < 0.3:
        on.append("v < w + 2")
    cols = "ts, k, v" if "SEMI" in kind else "ts, k, v, tr, k2, w"
    return f"SELECT {cols} FROM {wm(r)} {kind} {wm(r,'r','tr')} ON {' AND '.join(on)} EMIT APPEND"


def q_joinagg(r):
    kind = r.choice(["JOIN", "LEFT JOIN"])
    b = r.choice([2, 4])
    w = r.choice(["TUMBLE(ts, INTERVAL 5 MINUTES)", "HOP(ts, INTERVAL 5 MINUTES, INTERVAL 10 MINUTES)"])
    return f"SELECT window_start, k, count(*) AS n, sum(w) AS sw FROM {wm(r)} {kind} {wm(r,'r','tr')} ON k = k2 AND tr BETWEEN ts AND ts + INTERVAL {b} MINUTES GROUP BY {w}, k EMIT APPEND"


def q_static(r):
    kind = r.choice(["JOIN", "LEFT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"])
    on = r.choice(["s.k = dim.k", "s.k = dim.k AND s.v < dim.lim", "s.v < dim.lim"])
    if kind in ("LEFT SEMI JOIN", "LEFT ANTI JOIN"):
        cols = "s.ts, s.k, s.v"
    else:
        cols = "s.ts, s.k, s.v, dim.site"
    return f"SELECT {cols} FROM s {kind} dim ON {on} EMIT APPEND"


def q_staticagg(r):
    return f"SELECT window_start, site, count(*) AS n, max(v) AS m FROM {wm(r)} AS s {r.choice(['JOIN','LEFT JOIN'])} dim ON s.k = dim.k GROUP BY TUMBLE(ts, INTERVAL 5 MINUTES), site EMIT {r.choice(['APPEND','UPDATE','COMPLETE'])}"


def q_union(r):
    return f"SELECT window_start, k, count(*) AS n, sum(v) AS sv FROM (SELECT ts, k, v FROM {wm(r)} UNION ALL SELECT tr AS ts, k2 AS k, w AS v FROM {wm(r,'r','tr')}) GROUP BY TUMBLE(ts, INTERVAL 5 MINUTES), k EMIT {r.choice(['APPEND','UPDATE','COMPLETE'])}"


def q_chain(r):
    return f"SELECT window_start, window_end, count(*) AS c, sum(n) AS sn FROM (SELECT window AS wi, k, count(*) AS n FROM {wm(r)} GROUP BY window(ts, '5 minutes'), k) GROUP BY {r.choice(['TUMBLE(window_time(wi), INTERVAL 10 MINUTES)','HOP(window_time(wi), INTERVAL 5 MINUTES, INTERVAL 15 MINUTES)'])} EMIT APPEND"


def q_deduagg(r):
    return f"SELECT window_start, count(*) AS n, sum(v) AS sv FROM (SELECT DISTINCT ts, k, v FROM {wm(r)}) GROUP BY TUMBLE(ts, INTERVAL 5 MINUTES) EMIT APPEND"


def q_map(r):
    return f"SELECT ts, k, v * 2 AS v2, coalesce(k, 'none') AS kk, CASE WHEN v > 3 THEN 'hi' ELSE 'lo' END AS h FROM s{where(r)} EMIT {r.choice(['APPEND','UPDATE'])}"


FAM = [
    (q_window, 8),
    (q_plain, 3),
    (q_dedup, 4),
    (q_join, 6),
    (q_joinagg, 2),
    (q_static, 2),
    (q_staticagg, 1),
    (q_union, 2),
    (q_chain, 2),
    (q_deduagg, 1),
    (q_map, 1),
]
pool = [f for f, w in FAM for _ in range(w)]


def tm(m, s=0):
    t = 12 * 60 * 60 + m * 60 + s
    return f"2024-03-03 {t//3600:02d}:{t//60%60:02d}:{t%60:02d}"


for i in range(n):
    r = random.Random(seed0 + i)
    out = [f"# generated by random_streams.py, seed {seed0+i}; Spark's answers", ""]
    out += ["statement ok", "CREATE STREAM s (ts TIMESTAMP, k STRING, v INT, d DOUBLE, g DECIMAL(10,2)) USING memory", ""]
    out += ["statement ok", "CREATE STREAM r (tr TIMESTAMP, k2 STRING, w INT) USING memory", ""]
    out += [
        "statement ok",
        "CREATE TABLE dim (k STRING, site STRING, lim INT)",
        "",
        "statement ok",
        "INSERT INTO dim VALUES ('a','north',3), ('b','south',5), ('b','east',2), (NULL,'void',9)",
        "",
    ]
    if r.random() < 0.15:
        out += ["statement ok", "SET watermark.policy = max", ""]
    qs = []
    for j in range(4):
        q = r.choice(pool)(r)
        qs.append(q)
        out += ["statement ok", f"CREATE SINK q{j} USING memory", "", "statement ok", f"INSERT INTO q{j} {q}", ""]
    front = 0
    for b in range(r.randint(3, 5)):
        front += r.randint(0, 9)

        def row():
            t = f"'{tm(max(0,front+r.randint(-9,6)), r.choice([0,0,30,59]))}'" if r.random() < 0.94 else "NULL"
            return t

        nonull = any(" r WATERMARK" in q and "JOIN" in q for q in qs)
        k = lambda: r.choice(["'a'", "'a'", "'b'", "'b'", "'c'", "NULL" if not nonull else "'d'"])
        vals = [0, 1, 2, 3, 4, 5] + ([] if nonull else ["NULL"])

        if r.random() < 0.9:
            rows = ", ".join(
                f"({row()}, {k()}, {r.choice(vals)}, {r.choice(['0.0','-0.0','1.5','2.25','NULL'])}, {r.choice(['1.10','2.05','-3.33','NULL'])})"
                for _ in range(r.randint(1, 6))
            )
            out += ["statement ok", f"INSERT INTO s VALUES {rows}", ""]
        if r.random() < 0.7:
            rows = ", ".join(f"({row()}, {k()}, {r.choice(vals)})" for _ in range(r.randint(1, 5)))
            out += ["statement ok", f"INSERT INTO r VALUES {rows}", ""]
        out += ["statement ok", "PROCESS ALL AVAILABLE", ""]
        for j, q in enumerate(qs):
            out += ["query T rowsort", f"SELECT * FROM q{j}", "----", ""]
    open(os.path.join(folder, f"random-{seed0+i}.slt"), "w").write("\n".join(out) + "\n")
