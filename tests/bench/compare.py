#!/usr/bin/env python3
"""ssql and DuckDB on the same files in one sitting: wall and CPU seconds, peak memory, ratios, equal answers.

    python3 -m venv v && v/bin/pip install numpy pyarrow duckdb
    v/bin/python tests/bench/gen.py sensors --out data/sensors_10k
    cargo build --release -p ssql
    v/bin/python tests/bench/compare.py --data data/sensors_10k --ssql target/release/ssql w1 w3

The two run in turn, so that a drift of the machine's speed meets both; medians of the runs are compared.
w1 is stopped by its watermark: ssql emits the windows that are closed, DuckDB all; both counts are checked.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
DUCK = {
    "w1": """COPY (SELECT s AS window_start, s + INTERVAL 5 MINUTES AS window_end, device_id, avg_temp, avg_temp > 35.0 AS is_alert
             FROM (SELECT time_bucket(INTERVAL 5 MINUTES, event_time) AS s, device_id, avg(temperature) AS avg_temp
             FROM {src} GROUP BY ALL)) TO '{out}' (FORMAT parquet)""",
    "w3": """COPY (SELECT event_time, device_id, temperature * 1.8 + 32.0 AS temp_f FROM {src} WHERE temperature > 30.0)
             TO '{out}' (FORMAT json)""",
}
SRC = ("read_json('{data}/json/*.json', format='newline_delimited', "
       "columns={{event_time: 'TIMESTAMP', device_id: 'VARCHAR', temperature: 'DOUBLE'}})")
CHECK = {
    "w1": "SELECT count(*), round(sum(round(avg_temp, 3)), 1), count(*) FILTER (is_alert) FROM read_parquet('{files}')",
    "w3": "SELECT count(*), round(sum(temp_f), 1) FROM read_json('{files}')",
}
# Answers of the generator's default data (10 million readings): ssql closes by the watermark, DuckDB takes all windows.
EXPECTED = {
    ("w1", "ssql"): (1169694, 31587306.3, 272549),
    ("w1", "duckdb"): (1199686, 32397145.2, 279532),
    ("w3", "ssql"): (3960262, 386521439.9),
    ("w3", "duckdb"): (3960262, 386521439.9),
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


def main():
    p = argparse.ArgumentParser()
    p.add_argument("workloads", nargs="+", choices=sorted(DUCK))
    p.add_argument("--data", required=True)
    p.add_argument("--ssql", required=True)
    p.add_argument("--runs", type=int, default=3)
    p.add_argument("--jit", default="on")
    a = p.parse_args()
    import duckdb
    for w in a.workloads:
        figures = {"ssql": [], "duckdb": []}
        for _ in range(a.runs):
            for engine in figures:
                with tempfile.TemporaryDirectory() as tmp:
                    if engine == "ssql":
                        command = [a.ssql, "run", "--quiet", "--jit", a.jit, os.path.join(HERE, w + ".ssql"),
                                   "--param", f"data={os.path.abspath(a.data)}/json", "--param", f"out={tmp}/out",
                                   "--param", f"checkpoint={tmp}/checkpoint"]
                        files = f"{tmp}/out/*.{'parquet' if w == 'w1' else 'json'}"
                    else:
                        files = f"{tmp}/out.{'parquet' if w == 'w1' else 'json'}"
                        sql = DUCK[w].format(src=SRC.format(data=os.path.abspath(a.data)), out=files)
                        program = f"import duckdb; c = duckdb.connect(); c.execute('SET threads=2'); c.execute('''{sql}''')"
                        command = [sys.executable, "-c", program]
                    figures[engine].append(run(command))
                    answer = duckdb.connect().execute(CHECK[w].format(files=files)).fetchall()[0]
                    if answer != EXPECTED[w, engine]:
                        print(f"{w} {engine}: the answer is {answer}, expected {EXPECTED[w, engine]}")
        medians = {e: [statistics.median(f[i] for f in fs) for i in range(3)] for e, fs in figures.items()}
        for engine, (wall, cpu, mb) in medians.items():
            print(f"{w} {engine:7} wall {wall:6.2f} s  cpu {cpu:6.2f} s  peak {mb:6.0f} MB")
        s, d = medians["ssql"], medians["duckdb"]
        print(f"{w} duckdb/ssql: wall {d[0] / s[0]:.2f}x  cpu {d[1] / s[1]:.2f}x  memory {d[2] / s[2]:.2f}x")


if __name__ == "__main__":
    main()
