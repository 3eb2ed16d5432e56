"""Checks one part of the package: package.py PART SOURCE BUILD."""

import glob
import os
import re
import shutil
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
        program = os.path.join(directory, name)
        expect_mode(name.split("-")[1], program)
        if "-static-" in name and "libtenure" in run("ldd", program):
            sys.exit(f"{name} needs a shared libtenure")
    return len(programs)


def check_installed(source, build, scratch):
    prefix = install(build, scratch)
    for name in "LICENSE", "README.md", "CHANGELOG.md", "docs/choosing.md", "examples/c/request.c":
        if not os.path.exists(os.path.join(prefix, "share/doc/tenure", name)):
            sys.exit(f"{name} is not installed")
    count = build_consumer(scratch, f"-DCMAKE_PREFIX_PATH={prefix}")
    return f"find_package: {count} programs built and run"


def check_subproject(source, build, scratch):
    count = build_consumer(scratch, f"-DTENURE_SOURCE={source}", "-DCMAKE_BUILD_TYPE=Debug")
    return f"add_subdirectory: {count} programs built and run"


def check_fetched(source, build, scratch):
    """A project in C without a build type that links one library."""
    build_consumer(scratch, f"-DTENURE_SOURCE={source}", "-DFETCH=ON", "-DLANGUAGES=C",
                   "-DMODES=hardened", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON")
    directory = os.path.join(scratch, "consumer")
    built = [os.path.basename(path) for path in glob.glob(f"{directory}/**/libtenure*", recursive=True)]
    if built != ["libtenure-hardened.a"]:
        sys.exit(f"built besides what is linked: {built}")
    with open(os.path.join(directory, "compile_commands.json"), encoding="utf-8") as file:
        lines = [line for line in file if '"command"' in line and "tenure.dir" not in line]
    if any(" -O2 " not in line for line in lines if "/c/src/" in line):
        sys.exit("the library is not optimised")
    prefix = os.path.join(scratch, "prefix")
    run("cmake", "--install", directory, "--prefix", prefix)
    if os.path.exists(prefix):
        sys.exit(f"the project installs {os.listdir(prefix)}")
    return "FetchContent: only the linked library is built, with -O2, and nothing is installed"


def check_make(source, build, scratch):
    with open(os.path.join(source, "Makefile"), encoding="utf-8") as file:
        targets = re.search(r"^\.PHONY: help (.*)$", file.read(), re.M)[1].split()
    said = run("make", "-s", "-C", source)
    missing = [target for target in targets if not re.search(rf"^make {target} ", said, re.M)]
    if missing:
        sys.exit(f"make does not name {missing}")
    for target in "help", "lib", "install", "fmt":
        if "setup.sh" in run("make", "-n", "-C", source, target, f"PREFIX={scratch}"):
            sys.exit(f"make {target} installs packages")
    return f"make names {len(targets)} targets; the library needs no packages"


def check_make_install(source, build, scratch):
    """With neither Ninja nor a C++ compiler."""
    tools = os.path.join(scratch, "tools")
    os.mkdir(tools)
    for name in "make", "cmake", "cc", "gcc", "ld", "as", "ar", "ranlib", "sh", "sed", "env":
        os.symlink(shutil.which(name), os.path.join(tools, name))
    tree = os.path.join(scratch, "tenure")
    shutil.copytree(source, tree, ignore=shutil.ignore_patterns("build", ".git", "results"))
    prefix = os.path.join(scratch, "prefix")
    run("make", "-C", tree, "install", f"PREFIX={prefix}", env={"PATH": tools, "CC": "cc"})
    for name in "lib/libtenure.a", "lib/libtenure.so", "bin/tenure-top", "share/man/man1/tenure-top.1":
        if not os.path.exists(os.path.join(prefix, name)):
            sys.exit(f"{name} is not installed")
    return "make install: with cmake, make and a C compiler"


def check_man(source, build, scratch):
    manual = os.path.join(install(build, scratch), "share/man")
    pages = [*glob.glob(f"{manual}/man1/*.1"), *glob.glob(f"{manual}/man3/*.3")]
    for page in pages:
        with open(page, encoding="utf-8") as file:
            text = file.read()
        if text.startswith(".so "):
            if not os.path.exists(os.path.join(manual, text[4:].strip())):
                sys.exit(f"{page} refers to nothing")
        else:
            run("mandoc", "-Tlint", "-Wwarning", page)
    names = {os.path.basename(page).rsplit(".", 1)[0] for page in pages}
    for header in glob.glob(f"{source}/c/include/tenure/*.h"):
        with open(header, encoding="utf-8") as file:
            declared = re.findall(r"(/\*(?:(?!\*/).)*\*/\n)((?:TN_\w+ [^;{]*?\btn_\w+\([^;{]*[;{]\n)+)",
                                  file.read(), re.S)
        for comment, functions in declared:
            for name in re.findall(r"^TN_(?:API|INLINE) .*?\b(tn_\w+)\(", functions, re.M):
                if not comment.startswith("/* Not API") and name not in names:
                    sys.exit(f"{name} has no page")
    said = run(f"{build}/c/top/tenure-top", "--help")
    shown = run("mandoc", "-Tascii", "-Owidth=100", f"{manual}/man1/tenure-top.1")
    shown = re.sub(".\b", "", shown)
    for word in re.findall(r"(?<!\w)--?[a-z]+|\b[A-Z]{3,}(?:[-/_][A-Z]+)*\b", said):
        if word not in shown and word not in ("SECONDS", "KEY", "PID", "NAME", "VALUE"):
            sys.exit(f"tenure-top(1) lacks {word}")
    return f"{len(pages)} pages; every function has one, tenure-top's has what --help says"


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
                run(*compiler, *flags, "-o", program, cwd=os.path.join(here, "consumer"))
                expect_mode(mode, program, env={**os.environ, "LD_LIBRARY_PATH": libraries})
                if (link == "shared") != ("libtenure" in run("ldd", program)):
                    sys.exit(f"pkg-config: {link} {mode} is not linked so")
    return "pkg-config: C and C++ in 3 modes, shared and static"


def headers_in(directory):
    return sorted(os.path.relpath(os.path.join(where, name), directory)
                  for where, _, names in os.walk(directory) for name in names)


def compile_alone(source, header, mode, compiler, standard):
    language = standard.rstrip("0123456789")
    includes = [f"-I{source}/{directory}" for directory in INCLUDES]
    run(compiler, "-x", language, f"-std={standard}", "-pedantic-errors", *STRICT, f"-DTN_MODE={mode}",
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
    """The single file as the README has it, and in every mode as the standard has it."""
    plain = ["-I", f"{source}/c/include", f"{source}/c/src/tenure.c"]
    for compiler in "gcc", "clang":
        for number in MODES.values():
            run(compiler, "-std=c11", "-pedantic-errors", *STRICT, f"-DTN_MODE={number}",
                "-fsyntax-only", *plain)
    run("cc", "-O2", "-pthread", *plain, f"{source}/c/tests/package/consumer/consumer.c", "-o",
        f"{scratch}/consumer")
    expect_mode("tenure", f"{scratch}/consumer")
    return "tenure.c with a program in one line, and strictly in 3 modes with gcc and clang"


def run_examples(source, scratch, compiler, leave_out):
    """Compiles the library as one file in each mode, and runs the examples on it."""
    strict = [*compiler, "-std=c11", "-pedantic-errors", *STRICT, "-I", f"{source}/c/include"]
    examples = []
    for path in sorted(glob.glob(f"{source}/examples/c/*.c")):
        with open(path, encoding="utf-8") as file:
            if not re.search(leave_out, file.read()):
                examples.append(path)
    for number in MODES.values():
        compiled = [*strict, f"-DTN_MODE={number}"]
        run(*compiled, "-c", f"{source}/c/src/tenure.c", "-o", f"{scratch}/tenure.o")
        for path in examples:
            run(*compiled, path, f"{scratch}/tenure.o", "-o", f"{scratch}/example")
            with open(path.removesuffix("c") + "expected", encoding="utf-8") as file:
                if run(f"{scratch}/example") != file.read():
                    sys.exit(f"{path} prints something else in mode {number}")
    return f"{len(examples)} examples in {len(MODES)} modes"


def check_none(source, build, scratch):
    """A system with malloc only, which has no threads."""
    done = run_examples(source, scratch, ["cc", "-DTN_OS_NONE"], r"pthread\.h|tn_watch\(")
    return f"os_none.c: {done}"


def check_musl(source, build, scratch):
    done = run_examples(source, scratch, ["musl-gcc", "-O2", "-static", "-pthread"], r"(?!)")
    return f"musl: {done}"


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
