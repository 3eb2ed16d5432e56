"""The time that <tenure/tenure.hpp> takes a compiler beyond the standard headers that it includes.

    measure.py SOURCE

For each compiler, parsing alone and with code at -O2: the median of three runs, in seconds of user
time. Each run compiles the standard headers alone and then all of Tenure, and counts the difference.
A median that cannot exceed the limit any more is not waited for.
"""

import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile

LIMIT = 0.4
RUNS = 3
COMPILERS = ["g++", "clang++"]
FORMS = {"parsed": ["-fsyntax-only"], "compiled": ["-O2", "-c", "-o", os.devnull]}
root = sys.argv[1]
includes = [f"-I{os.path.join(root, language, 'include')}" for language in ("c", "cpp")]


def standard_headers():
    """All <...> in the headers that g++ reads for tenure.hpp, but its own."""
    made = subprocess.run(["g++", "-std=c++17", *includes, "-x", "c++", "-MM", "-"], check=True,
                          input="#include <tenure/tenure.hpp>\n", capture_output=True, text=True)
    files = [word for word in made.stdout.split() if word.startswith(root)]
    found = {name for file in files
             for name in re.findall(r"^#include <(.*)>", open(file).read(), re.M)}
    return sorted(name for name in found if not name.startswith("tenure/"))


def user_seconds(compiler, form, file):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run([compiler, "-std=c++17", *includes, *form, file], check=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def excess(compiler, form, standard, tenure):
    found = []
    while len(found) < RUNS and sum(seconds <= LIMIT for seconds in found) <= RUNS // 2:
        alone = user_seconds(compiler, form, standard)
        found.append(user_seconds(compiler, form, tenure) - alone)
    return statistics.median(found)


def write(path, headers):
    with open(path, "w") as file:
        file.writelines(f"#include <{header}>\n" for header in headers)
    return path


def main():
    headers = standard_headers()
    over = 0
    with tempfile.TemporaryDirectory() as scratch:
        standard = write(os.path.join(scratch, "standard.cpp"), headers)
        tenure = write(os.path.join(scratch, "tenure.cpp"), [*headers, "tenure/tenure.hpp"])
        for compiler in COMPILERS:
            for name, form in FORMS.items():
                seconds = excess(compiler, form, standard, tenure)
                over += seconds > LIMIT
                print(f"{compiler}, {name}: {seconds:.2f} s over {len(headers)} standard headers")
    sys.exit(f"more than {LIMIT} s" if over else 0)


main()
