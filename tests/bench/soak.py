"""Many queries side by side in one process: fairness, memory, and that stopping one disturbs none.

    python3 tests/bench/soak.py --ssql target/release/ssql --queries 50 --seconds 180

Half-way through, one query is stopped. Rows a query are counted from the progress log; memory is the process's RSS, sampled every second. With
`--idle` the streams never get a row, and the figure of interest is the CPU time.
"""

import argparse
import collections
import json
import pathlib
import signal
import subprocess
import tempfile
import time


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def rss_mb(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--ssql", required=True)
    p.add_argument("--queries", type=int, default=50)
    p.add_argument("--seconds", type=int, default=180)
    p.add_argument("--rows", type=int, default=1000, help="rows a second and query")
    p.add_argument("--idle", action="store_true")
    args = p.parse_args()
    work = pathlib.Path(tempfile.mkdtemp(prefix="ssql-soak-"))
    script = []
    for i in range(args.queries):
        if args.idle:
            (work / f"in{i}").mkdir()
            script.append(f"CREATE STREAM s{i} (v BIGINT) USING {'json' if i % 2 else 'memory'}"
                          + (f" LOCATION 'in{i}';" if i % 2 else ";"))
            query = f"SELECT v FROM s{i} EMIT APPEND"
        else:
            script.append(f"CREATE STREAM s{i} USING rate OPTIONS (rowsPerSecond {args.rows});")
            query = (f"SELECT window_start, value % 10 AS k, count(*) AS n FROM s{i} WATERMARK timestamp DELAY OF INTERVAL 2 "
                     f"SECONDS GROUP BY TUMBLE(timestamp, INTERVAL 5 SECONDS), value % 10 EMIT APPEND")
        script.append(f"CREATE SINK o{i} USING noop; CREATE QUERY q{i} AS INSERT INTO o{i} {query};")
    half = args.seconds // 2
    script.append(f"AWAIT ANY QUERY TIMEOUT INTERVAL {half} SECONDS; STOP QUERY q7;")
    (work / "soak.ssql").write_text("\n".join(script))
    log = work / "progress.ndjson"
    began = time.time()
    run = subprocess.Popen([args.ssql, "run", "--quiet", str(work / "soak.ssql"), "--progress-log", str(log)],
                           stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    time.sleep(10)
    start_cpu, samples = cpu_seconds(run.pid), []
    while time.time() - began < args.seconds and run.poll() is None:
        samples.append(rss_mb(run.pid))
        time.sleep(1)
    cpu = cpu_seconds(run.pid) - start_cpu
    run.send_signal(signal.SIGTERM)
    code = run.wait()
    print(f"exit code {code}; CPU {cpu:.2f} s in {len(samples)} s ({100 * cpu / max(len(samples), 1):.2f} % of a core)")
    third = max(len(samples) // 3, 1)
    print(f"RSS MB: first third {sum(samples[:third]) / third:.1f}, last third {sum(samples[-third:]) / third:.1f}, peak {max(samples):.1f}")
    rows, after = collections.Counter(), collections.Counter()
    times = collections.defaultdict(list)
    for line in log.read_text().splitlines() if log.exists() else []:
        progress = json.loads(line)
        at = time.mktime(time.strptime(progress["timestamp"][:19], "%Y-%m-%dT%H:%M:%S")) - time.timezone
        rows[progress["name"]] += progress["numInputRows"]
        times[progress["name"]].append(progress["batchDuration"])
        if at > began + half + 5:
            after[progress["name"]] += progress["numInputRows"]
    going = [n for q, n in rows.items() if q != "q7"]
    if going:
        print(f"rows a query: least {min(going)}, most {max(going)}, spread {100 * (max(going) - min(going)) / max(going):.1f} %")
        rest = [n for q, n in after.items() if q != "q7"]
        print(f"after one was stopped: least {min(rest)}, most {max(rest)}, spread {100 * (max(rest) - min(rest)) / max(rest):.1f} %; the stopped one {after['q7']}")
        durations = sorted(d for q in times.values() for d in q)
        print(f"batch ms: p50 {durations[len(durations) // 2]}, p99 {durations[len(durations) * 99 // 100]}, max {durations[-1]}")


main()
