"""The warnings of clang on code that uses the C++ front end: all that are marked, and no others.

    run.py CLANG SOURCE

A line that ends in `/* -Wname */` has to get that warning.
"""

import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
STANDARDS = ["c++17", "c++20"]
clang, root = sys.argv[1:]


def marked(path):
    lines = open(path).read().splitlines()
    marks = ((number, re.search(r"/\* (-W[\w-]+) \*/$", line)) for number, line in enumerate(lines, 1))
    return {(number, mark[1]) for number, mark in marks if mark}


def warned(path, standard):
    """The (line, warning) that stop a build with -Wall -Werror; an error is no warning."""
    said = subprocess.run(
        [clang, f"-std={standard}", "-Wall", "-Werror", "-ferror-limit=0", "-fsyntax-only",
         f"-I{root}/c/include", f"-I{root}/cpp/include", path], capture_output=True, text=True).stderr
    found = re.findall(r"^(.*):(\d+):\d+: (?:fatal )?error: (.*)$", said, re.M)
    warnings = {(int(line), re.sub(r".*\[-Werror,(.*)\]$", r"\1", what))
                for file, line, what in found if file == path}
    return warnings | {(file, what) for file, line, what in found if file != path}


failures = total = 0
for name in "warns.cpp", "quiet.cpp":
    source = os.path.join(HERE, name)
    expected = marked(source)
    total += len(expected)
    for standard in STANDARDS:
        for line, what in sorted(expected ^ warned(source, standard), key=str):
            failures += 1
            verb = "no" if (line, what) in expected else "unexpected"
            print(f"{name}:{line}: {standard}: {verb} {what}")
if total == 0:
    sys.exit("nothing is marked")
print(f"{total} marked lines, {failures} differences")
sys.exit(failures != 0)
