"""family.py [--rounds N] [--only PART] [--out FILE]   what recording costs.

Each round runs every subject of a workload once, in rotated order; a ratio is that of two subjects of
one round, published as the median with a 95 % interval. `none` is the program alone."""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "build/cargo"))
TENURE = TARGET / "release/tenure"
RECORDER = ROOT / "build/release/trace/libtenure-record.so"
STATS = [TENURE, "stats", "--json", "--symbols", "none", "--top", "0"]
DEPTH = "20"
PROGRAM = """x = [{str(i): [i]} for i in range(200000)]
for i in range(3):
    y = [str(e) for e in x]
"""


def run(command, folder, **environment):
    """Wall seconds and standard output."""
    begin = time.perf_counter()
    ran = subprocess.run(command, cwd=folder, env=dict(os.environ, **environment),
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    seconds = time.perf_counter() - begin
    if ran.returncode:
        sys.exit(f"{command}: {ran.stderr.decode()[-500:]}")
    return seconds, ran.stdout


def recorded(command, folder, **environment):
    for old in folder.glob("trace*"):
        old.unlink()
    line = [TENURE, "record", "-o", folder / "trace", "--depth", DEPTH, "--", *command]
    return run(line, folder, TENURE_RECORDER=str(RECORDER), **environment)


def heaptracked(command, folder, **environment):
    for old in folder.glob("ht*"):
        old.unlink()
    return run(["heaptrack", "-o", folder / "ht", *command], folder, **environment)


def plain(command, folder, **environment):
    return run(command, folder, **environment)


SUBJECTS = {"none": plain, "tenure-record": recorded, "heaptrack": heaptracked}


def make_inputs(folder):
    """The same bytes each time."""
    rows = [{"id": i, "name": f"name {i}", "tags": ["a", "b", str(i % 7)], "value": i}
            for i in range(60000)]
    (folder / "data.json").write_text(json.dumps(rows))
    items = "".join(f'<item id="{i}"><name>n{i}</name><v>{i * 3}</v></item>' for i in range(60000))
    (folder / "data.xml").write_text(f"<all>{items}</all>")
    (folder / "script.sql").write_text(
        "create table t(a integer primary key, b text, c real);\nbegin;\n"
        + "".join(f"insert into t values({i}, 'text {i * 7919 % 10007}', {i}.5);\n"
                  for i in range(60000))
        + "commit;\ncreate index i on t(b);\n"
        + "select count(*), b from t group by b order by 1, 2 limit 5;\n"
        + "select group_concat(b || c) from t where a % 3 = 0;\n")
    for command in (["cc", "-std=c11", "-Ic/include", "-E", "c/src/tenure.c", "-o", folder / "unit.i"],
                    ["cc", "-O2", "-pthread", "bench/record/loop.c", "-o", folder / "loop"]):
        subprocess.run(command, cwd=ROOT, check=True)


def workloads(folder):
    cc1 = subprocess.run(["cc", "-print-prog-name=cc1"], capture_output=True, text=True, check=True)
    cc1 = cc1.stdout.strip()
    return {
        "record-jq": (["jq", "-c", "map(select(.id % 3 == 0) | {id, name, n: (.tags | length)})",
                       "data.json"], {}),
        "record-python": (["/usr/bin/python3", "-c", PROGRAM], {"PYTHONMALLOC": "malloc"}),
        "record-sqlite3": (["sqlite3", "-init", "script.sql", ":memory:", ""], {}),
        "record-git": (["git", "-C", str(ROOT), "log", "--stat", "-n", "150"], {"GIT_PAGER": "cat"}),
        "record-cc1": ([cc1, "-quiet", "-O1", "unit.i", "-o", "/dev/null"], {}),
        "record-xmllint": (["xmllint", "--noout", "data.xml"], {}),
    }


def interval(values):
    ordered = sorted(values)
    n = len(ordered)
    low = max(0, int(n / 2 - 0.98 * n ** 0.5))
    return {"median": statistics.median(ordered), "low": ordered[low], "high": ordered[n - 1 - low]}


def measure(name, command, environment, folder, rounds):
    seconds = {s: [] for s in SUBJECTS}
    for i in range(rounds + 1):
        order = list(SUBJECTS)
        order = order[i % len(order):] + order[:i % len(order)]
        for subject in order:
            took, _ = SUBJECTS[subject](command, folder, **environment)
            if i:
                seconds[subject].append(took)
    _, text = run([*STATS, folder / "trace"], folder)
    found = json.loads(text)
    rows = []
    for subject, values in seconds.items():
        row = {"workload": name, "subject": subject, "threads": 1,
               "ns_per_op": statistics.median(values) * 1e9 / max(found["events"], 1),
               "seconds": statistics.median(values), "ratio": {}}
        for peer, others in seconds.items():
            if peer != subject:
                row["ratio"][peer] = interval([a / b for a, b in zip(values, others)])
        rows.append(row)
    mine = next(r for r in rows if r["subject"] == "tenure-record")
    mine["slowdown"] = mine["ratio"]["none"]["median"]
    mine["events"] = found["events"]
    mine["bytes_per_event"] = found["file_bytes"] / max(found["events"], 1)
    mine["extra_of_heaptrack"] = statistics.median(
        (r - n) / (h - n) if h > n else 1.0
        for r, n, h in zip(seconds["tenure-record"], seconds["none"], seconds["heaptrack"]))
    return rows


def measure_loops(folder, rounds):
    rows = []
    for threads in (1, 2, 4):
        seen = {"none": [], "tenure-record": []}
        for _ in range(rounds):
            command = [folder / "loop", str(threads), "1000000"]
            seen["none"].append(float(plain(command, folder)[1]))
            seen["tenure-record"].append(float(recorded(command, folder)[1]))
        for subject, values in seen.items():
            # Of more threads than CPUs, the time of a CPU.
            ns = statistics.median(values) * min(threads, os.cpu_count())
            rows.append({"workload": f"record-loop-{threads}", "subject": subject, "threads": threads,
                         "ns_per_op": ns, "events_per_second_and_thread": 1e9 / ns})
    return rows


def measure_read(folder, rounds):
    recorded([folder / "loop", "1", "10000000"], folder)
    values = []
    for _ in range(rounds):
        took, text = run([*STATS, folder / "trace"], folder)
        values.append(took * 1e9 / json.loads(text)["events"])
    ns = statistics.median(values)
    return [{"workload": "record-read", "subject": "tenure-record", "threads": 1, "ns_per_op": ns,
             "ns_per_event": ns}]


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--rounds", type=int, default=11)
    options.add_argument("--only", default="")
    options.add_argument("--out", default=str(ROOT / "build/bench/record.json"))
    given = options.parse_args()
    rows = []
    folder = pathlib.Path(tempfile.mkdtemp(prefix="record"))
    try:
        make_inputs(folder)
        for name, (command, environment) in workloads(folder).items():
            if given.only in name:
                rows += measure(name, command, environment, folder, given.rounds)
                print(name, {k: round(v, 3) for k, v in rows[-2].items() if isinstance(v, float)})
        slow = [r["slowdown"] for r in rows if "slowdown" in r]
        if slow:
            rows.append({"workload": "record-median", "subject": "tenure-record", "threads": 1,
                         "slowdown": statistics.median(slow), "worst": max(slow)})
            print("median slowdown", round(statistics.median(slow), 3), "worst", round(max(slow), 3))
        if given.only in "record-loop":
            rows += measure_loops(folder, given.rounds)
        if given.only in "record-read":
            rows += measure_read(folder, min(given.rounds, 5))
        for row in rows:
            if row["workload"].startswith(("record-loop", "record-read")):
                print(row["workload"], row["subject"], round(row["ns_per_op"], 1), "ns")
    finally:
        shutil.rmtree(folder)
    out = pathlib.Path(given.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
