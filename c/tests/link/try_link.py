"""Only equal modes link: three modes of headers x three libraries, static and shared, C and C++.

    try_link.py CC CXX SOURCE LIBRARIES

A pair that must not link has to fail for the right reason: the linker names the mode's marker. Two
modes in one program, through two static libraries, have to fail on the symbol that both define.
"""

import itertools
import os
import subprocess
import sys
import tempfile

MODES = {"release": "tenure", "hardened": "tenure-hardened", "debug": "tenure-debug"}
cc, cxx, root, libraries = sys.argv[1:]
failures = []


def compile_user(compiler, source, mode, directory):
    path = os.path.join(directory, f"{source}.{mode}.o")
    number = list(MODES).index(mode)
    here = os.path.dirname(os.path.abspath(__file__))
    command = [compiler, "-O2", "-Wall", "-Wextra", "-Werror", f"-DTN_MODE={number}",
               f"-I{root}/c/include", f"-I{root}/cpp/include",
               "-c", os.path.join(here, source), "-o", path]
    subprocess.run(command, check=True)
    return path


def compile_users(compiler, source, directory):
    return {mode: compile_user(compiler, source, mode, directory) for mode in MODES}


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


def one_mode(directory, compiler, source):
    users = compile_users(compiler, source, directory)
    for headers in MODES:
        for mode in MODES:
            for kind in ".a", ".so":
                linked, message = link(compiler, [users[headers]], [library(mode, kind)], directory)
                reason = ("undefined reference", f"tn_mode_marker_v0_{headers}")
                check(f"{source}, {headers} headers, {library(mode, kind)}", linked, message,
                      None if headers == mode else reason)


def two_modes(directory, compiler, source):
    users = compile_users(compiler, source, directory)
    others = compile_users(compiler, f"other_{source}", directory)
    for first, second in itertools.permutations(MODES, 2):
        files = [library(first, ".a"), library(second, ".a")]
        linked, message = link(compiler, [users[first], others[second]], files, directory)
        check(f"{source}, {first} and {second} in one program", linked, message,
              ("multiple definition", "tn_one_mode_per_program"))


with tempfile.TemporaryDirectory() as scratch:
    one_mode(scratch, cc, "user.c")
    one_mode(scratch, cxx, "inline_user.cpp")
    one_mode(scratch, cxx, "template_user.cpp")
    two_modes(scratch, cc, "user.c")
    two_modes(scratch, cxx, "template_user.cpp")
print("\n".join(failures) or "54 pairs and 12 mixtures: only equal modes link")
sys.exit(bool(failures))
