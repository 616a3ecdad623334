"""DuckDB's answers to the Nexmark queries over exported events, against the Parquet files that ssql wrote.

    compare.py EVENTS QUERY=FOLDER ...

EVENTS holds `persons`, `auctions` and `bids`. Windows count that are closed by the watermark, four seconds behind the
newest event. Ends with 1 and what differs if an answer does.
"""
import glob
import sys
from collections import Counter
from decimal import Decimal

import duckdb

DELAY = 4_000_000
# Times are microseconds, so that no time zone matters.
WINDOW = "dateTime // {0} * {0}"
QUERIES = {
    "q0": "SELECT auction, bidder, price, dateTime, extra FROM bid",
    "q1": "SELECT auction, bidder, 0.908 * price, dateTime, extra FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE auction % 123 = 0",
    "q3": """SELECT p.name, p.city, p.state, a.id FROM auction a JOIN person p ON a.seller = p.id
             WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')""",
    "q5": """WITH hops AS (SELECT auction, unnest(range(dateTime // 2000000 * 2000000 - 8000000, dateTime + 1, 2000000)) AS s FROM bid),
             counts AS (SELECT s, auction, count(*) AS num FROM hops WHERE s + 10000000 <= (SELECT watermark FROM closed) GROUP BY ALL)
             SELECT s, s + 10000000, auction, num FROM counts c
             WHERE num = (SELECT max(num) FROM counts m WHERE m.s = c.s)""",
    "q7": """WITH best AS (SELECT max(price) AS price, dateTime // 10000000 AS w FROM bid GROUP BY w
                           HAVING (w + 1) * 10000000 <= (SELECT watermark FROM closed))
             SELECT auction, b.price, bidder, dateTime, extra FROM bid b JOIN best m ON b.price = m.price AND dateTime // 10000000 = m.w""",
    "q8": """SELECT DISTINCT p.id, p.name, p.dateTime // 10000000 * 10000000 AS s FROM person p JOIN auction a
             ON p.id = a.seller AND p.dateTime // 10000000 = a.dateTime // 10000000
             WHERE (p.dateTime // 10000000 + 1) * 10000000
                <= least((SELECT max(dateTime) FROM person), (SELECT max(dateTime) FROM auction)) - 4000000""",
    "q11": """WITH marked AS (SELECT bidder, dateTime, CASE WHEN dateTime - lag(dateTime) OVER w <= 10000000 THEN 0 ELSE 1 END AS fresh
                              FROM bid WINDOW w AS (PARTITION BY bidder ORDER BY dateTime)),
              numbered AS (SELECT *, sum(fresh) OVER (PARTITION BY bidder ORDER BY dateTime ROWS UNBOUNDED PRECEDING) AS n FROM marked)
              SELECT bidder, count(*), min(dateTime), max(dateTime) + 10000000 AS e FROM numbered
              GROUP BY bidder, n HAVING e <= (SELECT watermark FROM closed)""",
    "q13": "SELECT auction, bidder, price, dateTime, CAST(auction % 10000 AS VARCHAR) FROM bid",
    "q14": """SELECT auction, bidder, 0.908 * price,
                CASE WHEN h BETWEEN 8 AND 18 THEN 'dayTime' WHEN h <= 6 OR h >= 20 THEN 'nightTime' ELSE 'otherTime' END,
                dateTime, extra, length(extra) - length(replace(extra, 'c', ''))
              FROM (SELECT *, dateTime // 3600000000 % 24 AS h FROM bid) WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000""",
    "q17": """SELECT auction, strftime(make_timestamp(d * 86400000000), '%Y-%m-%d'), count(*),
                count(*) FILTER (price < 10000), count(*) FILTER (price >= 10000 AND price < 1000000), count(*) FILTER (price >= 1000000),
                min(price), max(price), avg(price), sum(price)
              FROM (SELECT *, dateTime // 86400000000 AS d FROM bid) GROUP BY auction, d
              HAVING (d + 1) * 86400000000 <= (SELECT watermark FROM closed)""",
    "q20": """SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.dateTime, b.extra, a.itemName, a.description, a.initialBid,
                a.reserve, a.dateTime, a.expires, a.seller, a.category, a.extra
              FROM bid b JOIN auction a ON b.auction = a.id WHERE a.category = 10""",
    "q21": """SELECT * FROM (SELECT auction, bidder, price, channel,
                CASE lower(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3'
                  ELSE regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) END AS channel_id FROM bid) WHERE channel_id <> ''""",
    "q22": """SELECT auction, bidder, price, channel, split_part(url, '/', 4), split_part(url, '/', 5), split_part(url, '/', 6) FROM bid""",
}


def micros(db, source):
    """The columns of a relation, times as microseconds."""
    columns = db.sql(f"DESCRIBE {source}").fetchall()
    return ", ".join(f'epoch_us("{c[0]}") AS "{c[0]}"' if c[1].startswith("TIMESTAMP") else f'"{c[0]}"' for c in columns)


def rows(relation):
    """Rows as a bag; equal numbers are equal whatever their type."""
    def plain(v):
        if isinstance(v, Decimal):
            return v.normalize()
        return round(Decimal(v), 4).normalize() if isinstance(v, float) else v
    return Counter(tuple(plain(v) for v in row) for row in relation.fetchall())


def main():
    events, wrong = sys.argv[1], []
    db = duckdb.connect()
    for name in ["person", "auction", "bid"]:
        source = f"SELECT * FROM read_parquet('{events}/{name}s/*.parquet')"
        db.execute(f"CREATE TABLE {name} AS SELECT {micros(db, source)} FROM ({source})")
    db.execute(f"CREATE TABLE closed AS SELECT max(dateTime) - {DELAY} AS watermark FROM bid")
    for pair in sys.argv[2:]:
        query, folder = pair.split("=", 1)
        expected = rows(db.sql(QUERIES[query]))
        actual = Counter()
        if glob.glob(f"{folder}/*.parquet"):
            source = f"SELECT * FROM read_parquet('{folder}/*.parquet')"
            actual = rows(db.sql(f"SELECT {micros(db, source)} FROM ({source})"))
        missing, extra = expected - actual, actual - expected
        print(f"{query}: {expected.total()} rows")
        if missing or extra or not expected:
            wrong.append(f"{query}: {expected.total()} rows expected, {actual.total()} came; "
                         f"missing {list(missing)[:3]}, extra {list(extra)[:3]}")
    sys.exit("\n".join(wrong) or 0)


main()
