"""Globals that allocate in their constructors and delete in their destructors, linked in every order.

    try_orders.py COMPILER SOURCE LIBRARIES

Every file is compiled once for each mode, and linked with the static library in all orders.
"""

import itertools
import os
import subprocess
import sys
import tempfile

FILES = ["population", "first", "second", "main"]
MODES = {"release": ("0", "libtenure.a"), "debug": ("2", "libtenure-debug.a")}
HERE = os.path.dirname(os.path.abspath(__file__))
compiler, source, libraries = sys.argv[1:4]
# The library may have been built with sanitizers.
flags = ["-fsanitize=" + sys.argv[4]] if sys.argv[4:] and sys.argv[4] else []


def compile_files(mode, scratch):
    for name in FILES:
        subprocess.run(
            [compiler, "-std=c++17", "-O2", "-Wall", *flags, f"-DTN_MODE={MODES[mode][0]}",
             "-I", os.path.join(source, "c", "include"), "-I", os.path.join(source, "cpp", "include"),
             "-c", os.path.join(HERE, name + ".cpp"), "-o", os.path.join(scratch, name + ".o")],
            check=True)


def complaint(mode, order, scratch):
    """The fault of one order, or an empty text."""
    program = os.path.join(scratch, "program")
    objects = [os.path.join(scratch, name + ".o") for name in order]
    library = os.path.join(libraries, MODES[mode][1])
    subprocess.run([compiler, *flags, *objects, library, "-pthread", "-o", program], check=True)
    run = subprocess.run([program], capture_output=True, text=True, timeout=60)
    if run.returncode == 0 and run.stdout == "all are gone\n" and not run.stderr:
        return ""
    return f"{mode} {' '.join(order)}: ended with {run.returncode}: {run.stdout}{run.stderr}"


failures = []
orders = list(itertools.permutations(FILES))
for mode in MODES:
    with tempfile.TemporaryDirectory() as directory:
        compile_files(mode, directory)
        failures += filter(None, (complaint(mode, order, directory) for order in orders))
print("\n".join(failures) or f"{len(orders)} orders in {len(MODES)} modes")
sys.exit(bool(failures))
