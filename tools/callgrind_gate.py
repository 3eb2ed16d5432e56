"""Counts the instructions of each fast path; more than 0.5 % above c/tests/gate/expected.json fails.

    callgrind_gate.py [--update]

Instruction counts do not depend on the load of the machine, but on the compiler. This file pins the
compiler and its flags. `--update` replaces the expected counts by the new ones.
"""

import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
EXPECTED = os.path.join(ROOT, "c/tests/gate/expected.json")
COMPILER = ["gcc-12", "-std=c11", "-O2", "-g", "-fno-plt", "-DNDEBUG", "-pthread"]
MODES = {"release": 0, "hardened": 1}
TOLERANCE = 0.005


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)


def build(mode, scratch):
    """Compiles program and library apart, so that only the headers are inlined, as for a user."""
    program = os.path.join(scratch, mode)
    objects = []
    for source in "c/src/tenure.c", "c/tests/gate/fast_paths.c":
        objects.append(f"{program}-{os.path.basename(source)}.o")
        run(*COMPILER, f"-DTN_MODE={MODES[mode]}", "-Ic/include", "-c", source, "-o", objects[-1])
    run(*COMPILER, *objects, "-o", program)
    return program


def count(program, path, scratch):
    done = run("valgrind", "--tool=callgrind", "--toggle-collect=measured",
               f"--callgrind-out-file={scratch}/callgrind.out", program, path)
    return int(re.search(r"Collected : (\d+)", done.stderr)[1]) / int(done.stdout)


def measure():
    counts = {}
    with tempfile.TemporaryDirectory() as scratch:
        for mode in MODES:
            program = build(mode, scratch)
            for path in run(program).stdout.split():
                counts[f"{mode} {path}"] = round(count(program, path, scratch), 3)
    return counts


def compare(counts, expected):
    """Prints every path; returns the number of paths that got worse."""
    worse = 0
    for path, now in counts.items():
        before = expected.get(path)
        failed = before is None or now > before * (1 + TOLERANCE)
        worse += failed
        print(f"{'FAIL' if failed else 'ok':4} {path:36} {now:10.3f} instructions, expected {before}")
    return worse


def main():
    version = run("gcc-12", "-dumpfullversion").stdout.strip()
    counts = measure()
    if sys.argv[1:] == ["--update"]:
        with open(EXPECTED, "w", encoding="utf-8") as file:
            json.dump({"compiler": f"gcc {version}", "instructions": counts}, file, indent="\t")
            file.write("\n")
    with open(EXPECTED, encoding="utf-8") as file:
        expected = json.load(file)
    if expected["compiler"] != f"gcc {version}":
        print(f"note: expected.json was counted with {expected['compiler']}, this is gcc {version}")
    sys.exit(compare(counts, expected["instructions"]) != 0)


main()
