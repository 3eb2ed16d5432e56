"""Builds every_header.cpp with each installed compiler and standard library, and runs it.

    try_compilers.py SOURCE LIBRARIES

A compiler that is not installed is skipped, and the output says so.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

# The other tests are built with g++ in C++17.
COMPILERS = [["g++", "-std=c++20"], ["clang++", "-std=c++17"], ["clang++", "-std=c++20"],
             ["clang++-19", "-stdlib=libc++", "-std=c++17"],
             ["clang++-19", "-stdlib=libc++", "-std=c++20"]]
STRICT = ["-O1", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"]
source, libraries = sys.argv[1:]
program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "every_header.cpp")


def forgotten_headers():
    with open(program, encoding="utf-8") as file:
        included = set(re.findall(r"#include <tenure/(\w+\.hpp)>", file.read()))
    headers = os.listdir(os.path.join(source, "cpp", "include", "tenure"))
    return {name for name in headers if name.endswith(".hpp")} - included


def complaint(compiler, scratch):
    """The messages of the compiler or the program, or an empty text."""
    built = os.path.join(scratch, "program")
    command = [*compiler, *STRICT, "-I", os.path.join(source, "c", "include"),
               "-I", os.path.join(source, "cpp", "include"), program,
               os.path.join(libraries, "libtenure.a"), "-pthread", "-o", built]
    for step in command, [built]:
        done = subprocess.run(step, capture_output=True, text=True)
        if done.returncode != 0:
            return f"{' '.join(step)}: {done.returncode}\n{done.stdout}{done.stderr}"
    return ""


failures = [f"{name} is not in every_header.cpp" for name in sorted(forgotten_headers())]
with tempfile.TemporaryDirectory() as directory:
    for compiler in COMPILERS:
        if shutil.which(compiler[0]) is None:
            print(f"skipped: {compiler[0]} is not here")
            continue
        said = complaint(compiler, directory)
        print(" ".join(compiler), "fails" if said else "builds it, and it holds")
        failures += [said] * bool(said)
print("\n".join(failures))
sys.exit(bool(failures))
