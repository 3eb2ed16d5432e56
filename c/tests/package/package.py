"""Checks one part of what a user gets: package.py PART SOURCE BUILD."""

import os
import re
import subprocess
import sys
import tempfile

MODES = {"tenure": 0, "hardened": 1, "debug": 2}
STRICT = ["-Wall", "-Wextra", "-Wconversion", "-Werror"]
INCLUDES = ["c/include", "cpp/include"]
C = [(compiler, language) for compiler in ("gcc", "clang") for language in ("c11", "c++17")]
CPP = [("gcc", "c++17")]
# Together in every mode; cpp/tests/compilers has more compilers.
CPP_TOGETHER = [("clang", "c++20")]


def run(*command, **options):
    """Standard output of a command that has to succeed."""
    done = subprocess.run(command, text=True, capture_output=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}:\n{done.stdout}{done.stderr}")
    return done.stdout


def library_of(mode):
    return "tenure" if mode == "tenure" else f"tenure-{mode}"


def install(build, scratch):
    prefix = os.path.join(scratch, "prefix")
    run("cmake", "--install", build, "--prefix", prefix)
    return prefix


def expect_mode(mode, *command, **options):
    said = run(*command, **options)
    if said != f"mode {MODES[mode]}\n":
        sys.exit(f"{command[0]} says {said!r}")


def build_consumer(scratch, *settings):
    here = os.path.dirname(os.path.abspath(__file__))
    directory = os.path.join(scratch, "consumer")
    run("cmake", "-G", "Ninja", "-S", os.path.join(here, "consumer"), "-B", directory, *settings)
    run("cmake", "--build", directory)
    programs = [name for name in os.listdir(directory) if re.match(r"consumer-.*-c(pp)?$", name)]
    for name in programs:
        expect_mode(name.split("-")[1], os.path.join(directory, name))
    return len(programs)


def check_installed(source, build, scratch):
    count = build_consumer(scratch, f"-DCMAKE_PREFIX_PATH={install(build, scratch)}")
    return f"find_package: {count} programs built and run"


def check_subproject(source, build, scratch):
    return f"subproject: {build_consumer(scratch, f'-DTENURE_SOURCE={source}')} programs built and run"


def check_pkg_config(source, build, scratch):
    prefix = install(build, scratch)
    libraries = next(where for where, below, _ in os.walk(prefix) if "pkgconfig" in below)
    environment = {**os.environ, "PKG_CONFIG_PATH": os.path.join(libraries, "pkgconfig")}
    here = os.path.dirname(os.path.abspath(__file__))
    program = os.path.join(scratch, "program")
    for mode in MODES:
        for link in "shared", "static":
            flags = run("pkg-config", "--cflags", "--libs", *["--static"] * (link == "static"),
                        library_of(mode), env=environment).split()
            for compiler in ["cc", "consumer.c"], ["c++", "-std=c++17", "consumer.cpp"]:
                run(*compiler, *["-static"] * (link == "static"), *flags, "-o", program,
                    cwd=os.path.join(here, "consumer"))
                expect_mode(mode, program, env={**os.environ, "LD_LIBRARY_PATH": libraries})
    return "pkg-config: C and C++ in 3 modes, shared and static"


def headers_in(directory):
    return sorted(os.path.relpath(os.path.join(where, name), directory)
                  for where, _, names in os.walk(directory) for name in names)


def compile_alone(source, header, mode, compiler, standard):
    language = standard.rstrip("0123456789")
    includes = [f"-I{source}/{directory}" for directory in INCLUDES]
    run(compiler, "-x", language, f"-std={standard}", "-pedantic", *STRICT, f"-DTN_MODE={mode}",
        *includes, "-fsyntax-only", "-", input=f"#include <{header}>\n")


def check_headers(source, build, scratch):
    headers = [header for directory in INCLUDES
               for header in headers_in(os.path.join(source, directory))]
    for header in headers:
        for compiler, standard in CPP if header.endswith(".hpp") else C:
            compile_alone(source, header, 0, compiler, standard)
    for mode in MODES.values():
        for compiler, standard in CPP_TOGETHER:
            compile_alone(source, "tenure/tenure.hpp", mode, compiler, standard)
    return f"{len(headers)} headers compile alone, those of C++ together in {len(MODES)} modes"


def check_unity(source, build, scratch):
    plain = ["-I", f"{source}/c/include", f"{source}/c/src/tenure.c"]
    for compiler in "gcc", "clang":
        for number in MODES.values():
            run(compiler, "-std=c11", *STRICT, f"-DTN_MODE={number}", "-fsyntax-only", *plain)
    run("cc", *plain, "-c", "-o", f"{scratch}/tenure.o")
    return "tenure.c compiles as it is, and strictly in 3 modes with gcc and clang"


def check_symbols(source, build, scratch):
    for mode in MODES:
        suffix = "_v0_release" if mode == "tenure" else f"_v0_{mode}"
        listed = run("nm", "-D", "--defined-only", f"{build}/lib{library_of(mode)}.so")
        names = [line.split()[-1] for line in listed.splitlines()]
        wrong = [name for name in names if not (name.startswith("tn_") and name.endswith(suffix))]
        if wrong or not names:
            sys.exit(f"{mode} exports {wrong or 'nothing'}")
    return "each library exports symbols of its own mode only"


def main():
    part, source, build = sys.argv[1:]
    with tempfile.TemporaryDirectory() as scratch:
        print(globals()["check_" + part.replace("-", "_")](source, build, scratch))


main()
