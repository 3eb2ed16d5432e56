"""Reads the fast paths in the assembly, and expects the compile-time errors of the headers.

    check.py SOURCE

A path is the code from the beginning of a function to its first `ret` with no branch taken: gcc moves
unlikely code out of line. No path may call, lock, or test whether a variable was constructed.
"""

import os
import platform
import re
import subprocess
import sys

PATHS = ["new_orc", "delete_orc", "new_elf", "delete_elf", "new_ent", "delete_ent", "make_point",
         "make_point_in_scope"]
# A part of the compiler's message, and the code that gets it.
MUST_FAIL = [
    ("exceed budget_bytes", "tenure::size_based_arena<char[1024], 1025, 1 << 20>::get();"),
    ("exceed budget_bytes",
     "struct orc : tenure::arena_allocated<orc, 1025, 1 << 20> { char bytes[1024]; }; new orc;"),
    ("N must be at least 1", "tenure::size_based_arena<char, 0>::get();"),
    ("alignof(T) must be at most TN_ALIGN_MAX",
     "struct alignas(1 << 21) wide {}; tenure::size_based_arena<wide, 1>::get();"),
    ("give it a virtual destructor",
     "struct base { virtual void f(); }; tenure::heap().destroy(new base);"),
    ("Resource needs alloc(bytes, align)", "int r; tenure::allocator<int, int>(r).allocate(1);"),
]
MUST_COMPILE = "tenure::size_based_arena<char[1024], 1024, 1 << 20>::get();"
HERE = os.path.dirname(os.path.abspath(__file__))
source = sys.argv[1]
INCLUDE = ["-I", os.path.join(source, "c", "include"), "-I", os.path.join(source, "cpp", "include")]


def assembly(compiler, standard, name):
    return subprocess.run(
        [compiler, standard, "-O2", "-S", *INCLUDE, os.path.join(HERE, name), "-o", "-"],
        check=True, capture_output=True, text=True).stdout


def hot_path(text, function):
    """The instructions up to `ret`."""
    path = []
    for line in text.split(f"\n{function}:\n")[1].splitlines():
        if re.match(r"\t[a-z]", line):
            path.append(line.strip())
            if path[-1].startswith("ret"):
                return path
    raise ValueError(f"{function} does not return")


def complaints_of(name, path):
    slow = [i for i in path if re.match(r"(call|jmp|lock|xchg|mfence)", i) or "__tls_get_addr" in i]
    return [f"{name}: {i}" for i in slow]


def errors_of(statement):
    program = f"#include <tenure/tenure.hpp>\nvoid f() {{ {statement} }}\n"
    return subprocess.run(["g++", "-std=c++17", "-fsyntax-only", "-x", "c++", *INCLUDE, "-"],
                          input=program, capture_output=True, text=True).stderr


def main():
    failures = [f"not said: {what}, of {how}" for what, how in MUST_FAIL if what not in errors_of(how)]
    failures += filter(None, [errors_of(MUST_COMPILE)])
    if platform.machine() == "x86_64":
        text = assembly("g++", "-std=c++17", "paths.cpp")
        for sign in "__cxa_guard_acquire", "_ZTW", "_ZTH":
            failures += [f"{sign} is in the assembly"] * (sign in text)
        counts = {}
        for name in PATHS:
            path = hot_path(text, name)
            counts[name] = len(path)
            failures += complaints_of(name, path)
        in_c = len(hot_path(assembly("gcc", "-std=c11", "paths.c"), "make_point_in_c"))
        print("instructions:", ", ".join(f"{name} {count}" for name, count in counts.items()))
        for name in "make_point", "make_point_in_scope":
            print(f"{name} {counts[name]}, in C {in_c}")
            if counts[name] != in_c:
                failures.append(f"{name} takes another number of instructions than C")
    else:
        print("skipped: the assembly of this machine is not known")
    print("\n".join(failures))
    sys.exit(bool(failures))


main()
