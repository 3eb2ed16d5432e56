"""Only equal modes link: three modes of headers x three libraries, static and shared, C and C++.

    try_link.py CC CXX INCLUDE LIBRARIES

What must not link has to fail for the right reason: the linker names the mode's marker. Two modes in
one program, through two static libraries, have to fail on the symbol that both define.
"""

import os
import subprocess
import sys
import tempfile

MODES = {"release": "tenure", "hardened": "tenure-hardened", "debug": "tenure-debug"}
cc, cxx, include, libraries = sys.argv[1:]
failures = []


def compile_user(compiler, source, mode, directory):
    path = os.path.join(directory, f"{source}.{mode}.o")
    number = list(MODES).index(mode)
    here = os.path.dirname(os.path.abspath(__file__))
    command = [compiler, "-O2", "-Wall", "-Wextra", "-Werror", "-I", include, f"-DTN_MODE={number}",
               "-c", os.path.join(here, source), "-o", path]
    subprocess.run(command, check=True)
    return path


def link(compiler, objects, files, directory):
    program = os.path.join(directory, "program")
    command = [compiler, *objects, *files, f"-Wl,-rpath,{libraries}", "-pthread", "-o", program]
    run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    if run.returncode == 0:
        subprocess.run([program], check=True)
    return run.returncode == 0, run.stderr


def library(mode, kind):
    return os.path.join(libraries, f"lib{MODES[mode]}{kind}")


def check(what, linked, message, expected):
    """`expected` is None when it has to link, else the words that the linker has to say."""
    if linked != (expected is None) or not all(word in message for word in expected or ()):
        failures.append(f"{what}: {'linked' if linked else message}")


def one_mode(directory):
    for compiler, source in (cc, "user.c"), (cxx, "inline_user.cpp"):
        users = {mode: compile_user(compiler, source, mode, directory) for mode in MODES}
        for headers in MODES:
            for mode in MODES:
                for kind in ".a", ".so":
                    linked, message = link(compiler, [users[headers]], [library(mode, kind)], directory)
                    reason = ("undefined reference", f"tn_mode_marker_v0_{headers}")
                    check(f"{source}, {headers} headers, {library(mode, kind)}", linked, message,
                          None if headers == mode else reason)


def two_modes(directory):
    for first in MODES:
        for second in MODES:
            if first == second:
                continue
            objects = [compile_user(cc, "user.c", first, directory),
                       compile_user(cc, "other_user.c", second, directory)]
            files = [library(first, ".a"), library(second, ".a")]
            linked, message = link(cc, objects, files, directory)
            check(f"{first} and {second} in one program", linked, message,
                  ("multiple definition", "tn_one_mode_per_program"))


with tempfile.TemporaryDirectory() as scratch:
    one_mode(scratch)
    two_modes(scratch)
print("\n".join(failures) or "36 pairs and 6 mixtures: only equal modes link")
sys.exit(bool(failures))
