#!/usr/bin/env python3
"""ssql, DuckDB and Spark on the same files in one sitting: wall and CPU seconds, peak memory, ratios, equal answers.

    python3 -m venv v && v/bin/pip install numpy pyarrow duckdb
    v/bin/python tests/bench/gen.py sensors --out data/sensors_10k
    v/bin/python tests/bench/gen.py sensors --dup 0.2 --out data/sensors_dup      # for w4
    cargo build --release -p ssql
    v/bin/python tests/bench/compare.py --data data/sensors_10k --ssql target/release/ssql w1 w2 w3 filter
    v/bin/python tests/bench/compare.py --data data/sensors_dup --ssql target/release/ssql w4

The engines run in turn, so that a drift of the machine's speed meets all; medians of the runs are compared.
`--interpreter` adds ssql with `--jit off`, `--spark PYTHON` Spark Structured Streaming (a Python that has pyspark). w1 and w2 are stopped by their watermark: ssql emits the windows that are
closed, DuckDB all; both answers are checked.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))
JSON = ("read_json('{data}/json/*.json', format='newline_delimited', "
        "columns={{event_time: 'TIMESTAMP', device_id: 'VARCHAR', temperature: 'DOUBLE'}})")
PARQUET = "read_parquet('{data}/parquet/*.parquet')"
WINDOWS = """SELECT s AS window_start, s + INTERVAL 5 MINUTES AS window_end, device_id, avg_temp, avg_temp > 35.0 AS is_alert
    FROM (SELECT time_bucket(INTERVAL 5 MINUTES, event_time) AS s, device_id, avg(temperature) AS avg_temp FROM {src} GROUP BY ALL)"""
WINDOWS_ANSWER = "SELECT count(*), round(sum(round(avg_temp, 3)), 1), count(*) FILTER (is_alert) FROM {files}"


@dataclass
class Workload:
    """DuckDB's query over `src`, what is read and written, and what the answer is for the generator's default data."""
    duck: str
    reads: str
    writes: str
    answer: str
    ssql: tuple
    duckdb: tuple


WORKLOADS = {
    "w1": Workload(WINDOWS, "json", "parquet", WINDOWS_ANSWER, (1169694, 31587306.3, 272549), (1199686, 32397145.2, 279532)),
    "w2": Workload(WINDOWS, "parquet", "parquet", WINDOWS_ANSWER, (1169694, 31587306.3, 272549), (1199686, 32397145.2, 279532)),
    "w3": Workload("SELECT event_time, device_id, temperature * 1.8 + 32.0 AS temp_f FROM {src} WHERE temperature > 30.0", "json", "json",
                   "SELECT count(*), round(sum(temp_f), 1) FROM {files}", (3960262, 386521439.9), (3960262, 386521439.9)),
    "w4": Workload("SELECT DISTINCT ON (device_id, event_time) device_id, event_time, temperature FROM {src}", "json", "parquet",
                   "SELECT count(*), round(sum(temperature), 1) FROM {files}", (8354929, 225553286.0), (8354929, 225553286.0)),
    "filter": Workload("""SELECT event_time, device_id, temperature * 1.8 + 32.0 AS temp_f, CAST(temperature * 4.0 AS INT) AS quarters,
                            CASE WHEN temperature >= 38.0 THEN 2 WHEN temperature >= 25.0 THEN 1 ELSE 0 END AS level FROM {src}
                          WHERE (temperature > 24.0 AND temperature < 25.5 OR temperature >= 38.0) AND temperature <> 24.5
                            AND device_id <> 'device-00017' AND temperature * 4.0 < 170.0""", "parquet", "parquet",
                       "SELECT count(*), round(sum(temp_f), 1), sum(quarters), sum(level) FROM {files}", None, None),
}


def run(command):
    """(wall s, cpu s, peak MB) of a whole process."""
    began = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.monotonic() - began
    if status != 0:
        sys.exit(f"{command[0]} failed: {child.stderr.read().decode()}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def command_of(engine, name, w, a, tmp):
    """What is started, and where its answer will be."""
    if engine == "duckdb":
        src = (JSON if w.reads == "json" else PARQUET).format(data=os.path.abspath(a.data))
        sql = f"COPY ({w.duck.format(src=src)}) TO '{tmp}/out.{w.writes}' (FORMAT {w.writes})"
        program = f"import duckdb; c = duckdb.connect(); c.execute('SET threads=2'); c.execute(\"SET TimeZone='UTC'\"); c.execute('''{sql}''')"
        return [sys.executable, "-c", program], f"{tmp}/out.{w.writes}"
    if engine == "spark":
        command = [a.spark, os.path.join(HERE, "spark.py"), name, f"{os.path.abspath(a.data)}/{w.reads}", f"{tmp}/out", f"{tmp}/checkpoint"]
        return command, f"{tmp}/out/*.{w.writes}"
    jit = "off" if engine == "interpreter" else "on"
    command = [a.ssql, "run", "--quiet", "--jit", jit, os.path.join(HERE, name + ".ssql"),
               "--param", f"data={os.path.abspath(a.data)}/{w.reads}", "--param", f"out={tmp}/out",
               "--param", f"checkpoint={tmp}/checkpoint"]
    return command, f"{tmp}/out/*.{w.writes}"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("workloads", nargs="+", choices=sorted(WORKLOADS))
    p.add_argument("--data", required=True)
    p.add_argument("--ssql", required=True)
    p.add_argument("--runs", type=int, default=3)
    p.add_argument("--interpreter", action="store_true")
    p.add_argument("--spark", metavar="PYTHON")
    a = p.parse_args()
    import duckdb
    for name in a.workloads:
        w = WORKLOADS[name]
        figures = {"ssql": [], "duckdb": []} | ({"interpreter": []} if a.interpreter else {}) | ({"spark": []} if a.spark else {})
        answers = {}
        for _ in range(a.runs):
            for engine in figures:
                with tempfile.TemporaryDirectory() as tmp:
                    command, files = command_of(engine, name, w, a, tmp)
                    figures[engine].append(run(command))
                    reader = f"read_{w.writes}('{files}')"
                    answers[engine] = duckdb.connect().execute(w.answer.format(files=reader)).fetchall()[0]
                    expected = w.duckdb if engine == "duckdb" else w.ssql
                    if expected and answers[engine] != expected:
                        print(f"{name} {engine}: the answer is {answers[engine]}, expected {expected}")
        if not w.ssql and len(set(answers.values())) > 1:
            print(f"{name}: the answers differ: {answers}")
        medians = {e: [statistics.median(f[i] for f in fs) for i in range(3)] for e, fs in figures.items()}
        for engine, (wall, cpu, mb) in medians.items():
            print(f"{name} {engine:11} wall {wall:6.2f} s  cpu {cpu:6.2f} s  peak {mb:6.0f} MB")
        s = medians.pop("ssql")
        for engine, m in medians.items():
            print(f"{name} {engine}/ssql: wall {m[0] / s[0]:.2f}x  cpu {m[1] / s[1]:.2f}x  memory {m[2] / s[2]:.2f}x")


if __name__ == "__main__":
    main()
