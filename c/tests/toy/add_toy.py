"""Adds an allocator to a copy of the library, in the places that CONTRIBUTING.md lists and nowhere
else; then it is listed, named, watched, and shown by tenure-top: `add_toy.py COMPILER FOLDER`.

FOLDER is where the copy is made. use_toy.c says what is expected inside the process.
"""

import json
import os
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
COMPILER, COPY = sys.argv[1:3]

# (file, the line behind which the new one goes, the new line)
LINES = [
    ("c/include/tenure/detail/kinds.h", '\tKIND(TN_KIND_HEAP, 5, "heap", TN_FOUND_WASTE)',
     '\tKIND(TN_KIND_TOY, 8, "toy", TN_FOUND_GROWING) \\'),
    ("c/include/tenure/tenure.h", '#include "stats.h"', '#include "toy.h"'),
    ("c/src/tenure.c", '#include "arena/arena.c"', '#include "toy/toy.c"'),
    ("CMakeLists.txt", "set(tenure_sources ", "  toy/toy.c"),
]
FILES = {"toy.h": "c/include/tenure/toy.h", "toy.c": "c/src/toy/toy.c"}


def copy_library():
    shutil.rmtree(COPY, ignore_errors=True)
    for part in ("c/include", "c/src", "c/top"):
        shutil.copytree(os.path.join(ROOT, part), os.path.join(COPY, part))
    shutil.copy(os.path.join(ROOT, "CMakeLists.txt"), COPY)


def add_toy():
    for file, begin, new in LINES:
        path = os.path.join(COPY, file)
        with open(path) as source:
            lines = source.read().split("\n")
        places = [i for i, line in enumerate(lines) if line.startswith(begin)]
        assert len(places) == 1, f"{len(places)} places in {file} for {begin}"
        lines.insert(places[0] + 1, new)
        with open(path, "w") as source:
            source.write("\n".join(lines))
    for name, path in FILES.items():
        os.makedirs(os.path.dirname(os.path.join(COPY, path)), exist_ok=True)
        shutil.copy(os.path.join(HERE, name), os.path.join(COPY, path))


def check_list():
    """CONTRIBUTING.md names each of the places, and no other file of the library."""
    with open(os.path.join(ROOT, "CONTRIBUTING.md")) as source:
        section = source.read().partition("## Adding an allocator\n")[2].partition("\n## ")[0]
    for path in [file for file, _, _ in LINES] + ["c/include/tenure/NAME.h", "c/src/NAME/"]:
        assert f"`{path}`" in section, f"CONTRIBUTING.md does not name {path}"


def compile(output, *words):
    out = os.path.join(COPY, output)
    subprocess.run([COMPILER, "-std=c11", "-O0", "-pthread", "-I" + os.path.join(COPY, "c/include"),
                    *words, "-o", out], check=True)
    return out


def build():
    def source(path):
        return os.path.join(COPY, path)

    user = compile("use_toy", "-Wall", "-Wextra", "-Wconversion", "-Werror",
                   os.path.join(HERE, "use_toy.c"), source("c/src/tenure.c"))
    top = compile("top", '-DTENURE_VERSION="0"', "-I" + source("c/src"), "-I" + source("c/top"),
                  *[source("c/top/" + name + ".c")
                    for name in ("main", "reader", "report", "screen", "table", "text")])
    return user, top


def snapshot(top, pid):
    for _ in range(100):
        done = subprocess.run([top, "--json", str(pid)], capture_output=True, text=True)
        if done.returncode == 0:
            return json.loads(done.stdout)
        time.sleep(0.05)
    raise AssertionError(done.stderr)


def check(user, top):
    process = subprocess.Popen([user], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    figures = [int(word) for word in process.stdout.readline().split()]
    assert len(figures) == 3, "the user of the toy has failed"
    rows = [row for row in snapshot(top, process.pid)["allocators"] if row["kind"] == "toy"]
    assert len(rows) == 1 and rows[0]["name"] == "tin soldiers", rows
    shown = [rows[0][name] for name in ("live_bytes", "cached_bytes", "committed_bytes")]
    assert shown == figures, (shown, figures)
    process.communicate("")
    assert process.returncode == 0


def main():
    copy_library()
    add_toy()
    check_list()
    check(*build())
    print("added in", ", ".join([file for file, _, _ in LINES] + list(FILES.values())))


main()
