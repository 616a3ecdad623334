#!/usr/bin/env python3
"""Runs .slt cases on Apache Spark Structured Streaming and writes Spark's answers into them.

  pip install pyspark==4.3.0 pandas pyarrow     # needs Java 17
  spark_streams.py FILE.slt...            fill in / replace every expected result with Spark's
  spark_streams.py --check FILE.slt...    change nothing; say where a file and Spark differ

The dialect's own forms are translated for Spark: memory streams become Spark MemoryStreams, INSERT INTO <sink> ... EMIT becomes
writeStream.format("memory"), PROCESS ALL AVAILABLE becomes processAllAvailable(). TUMBLE/HOP/SESSION, window_start/window_end and
the clauses EMIT/TRIGGER/CHECKPOINT are rewritten by simple rules; where these do not do, a comment right above the record gives
Spark's form, either SQL or a Python expression that yields a DataFrame (names in scope: spark, F, t('relation')):
  # spark: SELECT ...
  # spark-py: t('orders').withWatermark('ts', '1 hour').dropDuplicates(['id'])
A comment '# spark: skip' leaves a record alone (Spark cannot do it; its expectation was reasoned out, and the file says why).
"""
import functools, logging, os, re, sys
from pyspark.sql import SparkSession, DataFrame, functions as F

logging.disable(logging.CRITICAL)
WHY = os.environ.get("WHY")      # set: print Spark's words for every refusal
TRACE = os.environ.get("TRACE")  # set: print each micro-batch's watermark and state figures


def session():
    spark = (SparkSession.builder.master("local[1]")
             .config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
             .config("spark.sql.shuffle.partitions", "1").config("spark.sql.session.timeZone", "UTC")
             .config("spark.sql.streaming.stopTimeout", "10s").config("spark.sql.ansi.doubleQuotedIdentifiers", "true")
             .config("spark.driver.extraJavaOptions", "-Duser.timezone=UTC -XX:TieredStopAtLevel=1 -XX:+UseSerialGC").getOrCreate())
    spark.sparkContext.setLogLevel("OFF")
    return spark


# ---------------------------------------------------------------- reading .slt
def parse(text):
    """Yields blocks: ('other', lines) or ('record', dict(notes, head, sql, expected))."""
    blocks, notes, lines, i = [], [], text.split("\n"), 0
    while i < len(lines):
        line = lines[i]
        if line.startswith("statement") or line.startswith("query"):
            head, sql = line, []
            i += 1
            while i < len(lines) and lines[i].strip() and lines[i] != "----":
                sql.append(lines[i]); i += 1
            expected = None
            if i < len(lines) and lines[i] == "----":
                expected, i = [], i + 1
                while i < len(lines) and lines[i].strip():
                    expected.append(lines[i]); i += 1
            blocks.append(("record", dict(notes=notes, head=head, sql="\n".join(sql), expected=expected)))
            notes = []
        elif line.startswith("#"):
            notes.append(line); i += 1
        else:
            if notes:
                blocks.append(("other", notes)); notes = []
            blocks.append(("other", [line])); i += 1
    if notes:
        blocks.append(("other", notes))
    return blocks


def unparse(blocks):
    out = []
    for kind, b in blocks:
        if kind == "other":
            out += b
        else:
            out += b["notes"] + [b["head"]] + b["sql"].split("\n")
            if b["expected"] is not None:
                out += ["----"] + b["expected"]
    return "\n".join(out)


def directive(notes):
    """The last run of '# spark:' / '# spark-py:' comment lines, joined; (kind, text) or None."""
    kind, text = None, []
    for n in notes:
        m = re.match(r"#\s*(spark(?:-py)?):\s?(.*)$", n)
        if m:
            kind = kind or m.group(1); text.append(m.group(2))
        elif kind and re.match(r"#\s{2,}\S", n):
            text.append(n.lstrip("# "))
    return (kind, "\n".join(text)) if kind else None


# ---------------------------------------------------------------- dialect -> Spark SQL
def split_args(s):
    args, depth, cur, quote = [], 0, "", None
    for c in s:
        if quote:
            cur += c
            if c == quote: quote = None
            continue
        if c in "'\"`": quote = c
        if c in "([": depth += 1
        if c in ")]": depth -= 1
        if c == "," and depth == 0:
            args.append(cur.strip()); cur = ""
        else:
            cur += c
    return args + [cur.strip()]


def call_sites(sql, name):
    for m in re.finditer(r"\b%s\s*\(" % name, sql, re.I):
        depth, j = 1, m.end()
        while depth and j < len(sql):
            depth += (sql[j] == "(") - (sql[j] == ")"); j += 1
        yield m.start(), j, split_args(sql[m.end():j - 1])


def interval_text(a):
    m = re.fullmatch(r"INTERVAL\s+'?(-?[\d.]+)'?\s+(\w+)", a.strip(), re.I) or re.fullmatch(r"INTERVAL\s+'([^']+)'", a.strip(), re.I)
    return "'" + " ".join(m.groups()).lower() + "'" if m else a


def to_spark(sql):
    for name in ("TUMBLE", "HOP", "SESSION"):
        while True:
            site = next(call_sites(sql, name), None)
            if not site: break
            a, b, args = site
            args = [args[0]] + [interval_text(x) for x in args[1:]]
            if name == "TUMBLE":
                new = f"window({args[0]}, {args[1]}" + (f", {args[1]}, {args[2]})" if len(args) > 2 else ")")
            elif name == "HOP":
                new = f"window({args[0]}, {args[2]}, {args[1]}" + (f", {args[3]})" if len(args) > 3 else ")")
            else:
                new = f"session_window({args[0]}, {args[1]})"
            sql = sql[:a] + new + sql[b:]
    sql = re.sub(r"\bDELAY\s+OF\s+(?:INTERVAL\s+)?'(\s*-?\d[^']*[a-z][^']*)'", r"DELAY OF INTERVAL \1", sql, flags=re.I)
    col = "session_window" if re.search(r"\bsession_window\s*\(", sql, re.I) else "window"
    sql = re.sub(r"\bwindow_start\b(?!\s*AS)", f"{col}.start", sql, flags=re.I)
    sql = re.sub(r"\bwindow_end\b(?!\s*AS)", f"{col}.end", sql, flags=re.I)
    sql = re.sub(r"\bwindow_start\b\s*AS", f"{col}.start AS", sql, flags=re.I)
    sql = re.sub(r"\bwindow_end\b\s*AS", f"{col}.end AS", sql, flags=re.I)
    sql = re.sub(r"\bwindow_time\b(?!\s*\()", f"window_time({col})", sql, flags=re.I)
    return sql


# ---------------------------------------------------------------- running a case
class Case:
    def __init__(self, spark):
        self.spark, self.streams, self.tables, self.sinks, self.queries, self.views, self.confs = spark, {}, {}, {}, [], [], {}
        self.race, self.expect_error, self.defs, self.rows, self.additions = False, False, [], {}, {}

    def flush(self):
        """Hands every copy of every stream all additions it has not had yet, at once: the queries cannot construct a batch meanwhile."""
        locks = [q._jsq.streamingQuery().awaitProgressLock() for q in self.queries if q.isActive]
        for l in locks: l.lock()
        try:
            for name, (copies, _) in self.streams.items():
                for copy in copies:
                    for rows in self.additions.get(name, [])[copy["had"]:]: copy["stream"].addData(rows)
                    copy["had"] = len(self.additions.get(name, []))
        finally:
            for l in locks: l.unlock()

    def bind_stream(self, name, schema, wm):
        jvm = self.spark._jvm
        jschema = jvm.org.apache.spark.sql.types.DataType.fromJson(schema.json())
        enc = getattr(jvm, "org.apache.spark.sql.catalyst.encoders.ExpressionEncoder$").__getattr__("MODULE$").apply(jschema)
        ms = getattr(jvm, "org.apache.spark.sql.execution.streaming.runtime.MemoryStream$").__getattr__("MODULE$").apply(enc, self.spark._jsparkSession)
        df = DataFrame(ms.toDF(), self.spark)
        if wm: df = df.withWatermark(*wm)
        self.streams.setdefault(name.lower(), ([], schema))[0].append(dict(stream=ms, had=0))
        self.view(df, name)

    def scala_seq(self, java_list):
        return self.spark._jvm.scala.jdk.javaapi.CollectionConverters.asScala(java_list).toSeq()

    def rebind(self):
        """A fresh copy of every memory stream, and the views over them, for the next query: a MemoryStream drops what
        one of its queries has committed, so two queries on one of them lose rows now and then. A query sees the stream from its beginning."""
        for d in self.defs: d()

    def close(self):
        for q in self.queries:
            try: q.stop()
            except Exception: pass
        for v in self.views + list(self.sinks):
            self.spark.catalog.dropTempView(v)
        for k, v in self.confs.items():
            self.spark.conf.unset(k) if v is None else self.spark.conf.set(k, v)

    def schema(self, cols):
        return self.spark.createDataFrame([], cols).schema

    def view(self, df, name):
        df.createOrReplaceTempView(name); self.views.append(name)

    def dataframe(self, sql, notes):
        d = directive(notes)
        if d and d[0] == "spark-py":
            return eval(d[1], dict(spark=self.spark, F=F, t=self.spark.table))
        m = None if d else re.match(r"\s*SELECT\s+DISTINCT\s+(ON\s*\(([^)]*)\)\s*)?(WITHIN\s+WATERMARK\s+)?(.*?)\s+FROM\s+(.*)$", sql, re.I | re.S)
        if m:
            on, keys, within, cols, rest = m.groups()
            base = self.spark.sql(to_spark(f"SELECT {'*' if on else cols} FROM {rest}"))
            if base.isStreaming or on:
                args = [[k.strip() for k in keys.split(",")]] if on else []
                base = base.dropDuplicatesWithinWatermark(*args) if within else base.dropDuplicates(*args)
                return base.selectExpr(*split_args(cols)) if on else base
        return self.spark.sql(d[1] if d else to_spark(sql))

    def values(self, schema, body):
        cols = ", ".join(f"`c{i}`" for i in range(len(schema)))
        casts = ", ".join(f"CAST(`c{i}` AS {f.dataType.simpleString()}) AS `{f.name}`" for i, f in enumerate(schema))
        return self.spark.sql(f"SELECT {casts} FROM VALUES {body} AS t({cols})")

    def execute(self, sql, notes):
        s = sql.strip().rstrip(";").strip()
        if m := re.match(r"CREATE\s+STREAM\s+(\w+)\s*\((.*)\)\s*USING\s+memory", s, re.I | re.S):
            wm = re.search(r",\s*WATERMARK\s+FOR\s+(\w+)\s+DELAY\s+OF\s+(INTERVAL\s+.*)$", m.group(2), re.I | re.S)
            cols = m.group(2)[:wm.start()] if wm else m.group(2)
            schema = self.spark.sql(f"SELECT CAST(NULL AS STRUCT<{', '.join(c for c in split_args(re.sub(r'(?i) NOT NULL', '', cols)))}>) s").schema[0].dataType
            delay = (wm.group(1), interval_text(wm.group(2).strip()).strip("'")) if wm else None
            self.defs.append(lambda name=m.group(1): self.bind_stream(name, schema, delay))
            self.defs[-1]()
        elif m := re.match(r"CREATE\s+TABLE\s+(\w+)\s*\((.*)\)$", s, re.I | re.S):
            self.tables[m.group(1).lower()] = self.spark.sql(f"SELECT CAST(NULL AS STRUCT<{m.group(2)}>) s").schema[0].dataType
            self.view(self.spark.sql("SELECT s.* FROM (SELECT CAST(NULL AS STRUCT<%s>) s WHERE false)" % m.group(2)).localCheckpoint(), m.group(1))
        elif m := re.match(r"CREATE\s+VIEW\s+(\w+)\s+AS\s+(.*)$", s, re.I | re.S):
            self.defs.append(lambda name=m.group(1), body=m.group(2): self.view(self.dataframe(body, notes), name))
            self.defs[-1]()
        elif m := re.match(r"CREATE\s+SINK\s+(\w+)\s+USING\s+memory", s, re.I):
            self.sinks[m.group(1)] = True
        elif m := re.match(r"INSERT\s+INTO\s+(\w+)\s+VALUES\s*(.*)$", s, re.I | re.S):
            name = m.group(1).lower()
            if name in self.tables:
                # one checkpointed frame of all rows: over a union Spark's own planner fails on correlated scalar subqueries
                self.rows.setdefault(name, []).append(self.values(self.tables[name], m.group(2)))
                self.view(functools.reduce(DataFrame.unionAll, self.rows[name]).localCheckpoint(), name)
            else:
                schema = self.streams[name][1]
                rows = self.values(schema, m.group(2))._jdf.collectAsList()
                self.additions.setdefault(name, []).append(self.scala_seq(rows))
        elif m := re.match(r"(?:CREATE\s+QUERY\s+(\w+)\s+AS\s+)?INSERT\s+INTO\s+(\w+)\s+((?:SELECT|WITH|\().*)$", s, re.I | re.S):
            body = m.group(3)
            e = re.search(r"\bEMIT\s+(APPEND|UPDATE|COMPLETE)\b.*$", body, re.I | re.S)
            mode = e.group(1).lower() if e else "append"
            body = body[:e.start()] if e else body
            self.rebind()
            df = self.dataframe(body, notes)
            q = df.writeStream.format("memory").queryName(m.group(2)).outputMode(mode).start()
            if self.expect_error:          # some refusals come only when Spark plans the first batch: give it an empty one
                try:
                    for copies, schema in self.streams.values():
                        copies[-1]["stream"].addData(self.scala_seq(self.spark._jvm.java.util.ArrayList()))
                    q.processAllAvailable()
                finally: q.stop()
            self.queries.append(q)
        elif re.match(r"PROCESS\s+ALL\s+AVAILABLE", s, re.I):
            before = {q.id: q.lastProgress["batchId"] if q.lastProgress else -1 for q in self.queries}
            self.flush()
            for q in self.queries:
                seen = before[q.id]
                q.processAllAvailable()
                fresh = [p for p in q.recentProgress if p["batchId"] > seen and p["numInputRows"] > 0]
                if len(fresh) > 1: self.race = True
                if TRACE:
                    for p in q.recentProgress:
                        if p["batchId"] > seen:
                            print("      ", q.name, "batch", p["batchId"], "in", p["numInputRows"], "watermark", (p["eventTime"] or {}).get("watermark"),
                                  [(o["operatorName"], o["numRowsTotal"], o["numRowsUpdated"], o["numRowsRemoved"], o["numRowsDroppedByWatermark"]) for o in p["stateOperators"]])
        elif m := re.match(r"SET\s+([\w.]+)\s*=\s*'?(.*?)'?$", s, re.I):
            alias = {"watermark.policy": "spark.sql.streaming.multipleWatermarkPolicy", "time_zone": "spark.sql.session.timeZone"}
            k = alias.get(m.group(1).lower(), m.group(1))
            self.confs.setdefault(k, self.spark.conf.get(k, None)); self.spark.conf.set(k, m.group(2))
        elif m := re.match(r"STOP\s+QUERY\s+(\w+)", s, re.I):
            for q in self.queries:
                if q.name == m.group(1): q.stop()
        else:
            self.dataframe(s, notes).collect()

    def select(self, sql, notes):
        df = self.dataframe(sql.strip().rstrip(";"), notes)
        self.letters = "".join("I" if f.dataType.typeName() in ("byte", "short", "integer", "long") else
                               "R" if f.dataType.typeName().split("(")[0] in ("float", "double", "decimal") else "T" for f in df.schema)
        names = [f"c{i}" for i in range(len(df.columns))]
        rows = df.toDF(*names).selectExpr(*[f"CAST({n} AS STRING) AS {n}" for n in names]).collect()
        show = lambda v: "NULL" if v is None else "(empty)" if v == "" else v
        return [" ".join(show(v) for v in r) for r in rows]


def condition(e):
    """Spark's error condition, the innermost known one, else the first words of the message."""
    get = getattr(e, "getCondition", None) or getattr(e, "getErrorClass", None)
    name = get() if get else None
    if name in (None, "STREAM_FAILED"):
        inner = re.findall(r"\[([A-Z_]+(?:\.[A-Z_]+)*)\]", str(e))
        name = next((c for c in inner if c != "STREAM_FAILED"), None)   # a failed stream without a condition: a legacy refusal
    return name or re.sub(r"\s+", " ", str(e))[:100]


def run(spark, path, check):
    text = open(path).read()
    blocks, complaints = parse(text), []
    case = Case(spark)
    try:
        for kind, b in blocks:
            if kind != "record": continue
            d = directive(b["notes"])
            if d and d[1].strip() == "skip": continue
            if b["head"].startswith("query"):
                try: rows = case.select(b["sql"], b["notes"])
                except Exception as e:
                    complaints.append(f"Spark refuses {b['sql']!r}: {condition(e)}: {str(e)[:300]}"); continue
                b["head"] = re.sub(r"^query\s+\w+", "query " + case.letters, b["head"])
                if "rowsort" in b["head"]: rows.sort()
                if rows != (b["expected"] or []): complaints.append(f"{b['sql']!r}: file {b['expected']} Spark {rows}")
                b["expected"] = rows
                continue
            case.expect_error = b["head"].startswith("statement error")
            try:
                case.execute(b["sql"], b["notes"])
                if b["head"].startswith("statement error"): complaints.append(f"Spark accepts: {b['sql']!r}")
            except Exception as e:
                name = condition(e)
                if WHY: print("     why:", b["sql"][:110].replace("\n", " "), "=>", re.sub(r"\s+", " ", str(e).split("\n\nJVM")[0])[-260:] if name.startswith("[STREAM_FAILED") else re.sub(r"\s+", " ", str(e))[:200], flush=True)
                if not b["head"].startswith("statement error"):
                    complaints.append(f"Spark refuses {b['sql']!r}: {name}: {str(e)[:300]}")
                elif not re.search(b["head"][len("statement error"):].strip() or ".", f"{name} {e}"):
                    complaints.append(f"{b['sql']!r}: file wants {b['head']!r}, Spark says {name}")
                    if re.fullmatch(r"[A-Z_.]+", name): b["head"] = f"statement error {name}"
                elif b["head"].strip() == "statement error" and re.fullmatch(r"[A-Z_.]+", name):
                    b["head"] = f"statement error {name}"
    finally:
        case.close()
    if case.race and not getattr(run, "again", False):
        run.again = True
        try: return run(spark, path, check)
        finally: run.again = False
    if case.race: complaints.append("additions were split over micro-batches twice: run again")
    if not check and not case.race: open(path, "w").write(unparse(blocks))
    bad = [c for c in complaints if check or c.startswith(("Spark", "additions"))]
    print(("FAIL " if bad else "ok   ") + path, *bad, sep="\n     ", flush=True)
    return not bad


if __name__ == "__main__":
    args = sys.argv[1:]
    check = "--check" in args
    spark = session()
    results = [run(spark, f, check) for f in args if f != "--check"]
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    sys.exit(0 if all(results) else 1)
