#!/usr/bin/env python3
"""count.py DRIVER FAMILY [DIRECTORY]   adds ir_per_op (instructions) to DIRECTORY/FAMILY.json.

Each subject of each workload runs under callgrind twice, with different numbers of repeats; the
difference of the two counts over the difference of the repeats leaves out everything that happens once.
It leaves out long workloads, those with threads, those measured in part, and subjects that do not run
under callgrind (snmalloc). Instructions, unlike times, may be counted on a busy machine."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

LEFT_OUT = re.compile(r"bulk|-65536$|cjson|orc-(new|delete)|^pmr-|^lua|^sqlite|^jansson|^list-")
FEW, MANY = 200, 600


def instructions(driver, workload, subject, repeats):
    with tempfile.NamedTemporaryFile() as out:
        run = subprocess.run(
            ["valgrind", "--tool=callgrind", "--toggle-collect=tenure_bench_counted",
             f"--callgrind-out-file={out.name}", driver, "--count", workload, subject, str(repeats)],
            stderr=subprocess.PIPE, text=True, check=True,
            env={"GLIBC_TUNABLES": "glibc.rtld.optional_static_tls=16384", "PATH": "/usr/bin:/bin"})
    return int(re.search(r"Collected : (\d+)", run.stderr)[1])


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    driver, family = sys.argv[1:3]
    path = pathlib.Path(sys.argv[3] if len(sys.argv) == 4 else "build/bench") / f"{family}.json"
    rows = json.loads(path.read_text())
    listed = subprocess.run([driver, "--list", family], capture_output=True, text=True, check=True)
    ops = {(w, s): float(n) for w, s, n in map(str.split, listed.stdout.splitlines())}
    for row in rows:
        key = row["workload"], row["subject"]
        if key not in ops or row.get("threads", 1) > 1 or LEFT_OUT.search(row["workload"]):
            continue
        try:
            more = instructions(driver, *key, MANY) - instructions(driver, *key, FEW)
        except subprocess.CalledProcessError:
            print(f"{key[0]:24} {key[1]:22} does not run under callgrind", flush=True)
            continue
        row["ir_per_op"] = round(more / ((MANY - FEW) * ops[key]), 3)
        print(f"{key[0]:24} {key[1]:22} {row['ir_per_op']:10.2f} instructions an operation", flush=True)
    path.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


if __name__ == "__main__":
    main()
