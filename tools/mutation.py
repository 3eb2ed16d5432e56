"""Changes one place of the core at a time and looks whether a test sees it.

    mutation.py BUILD [--count 200] [--seed 15] [--part K/N] [--line FILE:LINE]

BUILD is a build with tests in all modes (TENURE_LONG). A mutant has another operator or constant, a
flipped result, or a statement less, somewhere in c/src. The sample is fixed by the seed: the mutants
whose hash is least. So a change of the code replaces only the mutants that it touches.

The library is compiled as one file, in release, hardened and debug, and linked as a shared one, which
the programs of the tests then load in place of their static one. A mutant is

    same       its code is that of the unchanged library in every mode
    invalid    it does not compile
    equal      it is in tools/mutation_equal.txt, with the reason that no test can see it
    killed     a test of a mode fails, or does not end
    SURVIVED   none does

It fails when fewer than 95 of 100 of the killed and survived ones are killed.
"""

import argparse
import concurrent.futures
import glob
import hashlib
import os
import re
import resource
import shutil
import subprocess
import sys
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
EQUAL = os.path.join(ROOT, "tools", "mutation_equal.txt")
LEAST_PERCENT = 95
MEMORY_MOST = 8 << 30
MODES = ("release", "hardened", "debug")
# Where every thread or system call waits, and where other systems are served, mutants teach nothing.
LEFT_OUT = ("os_windows.c", "os_none.c", "probes.h", "checkers.h")
# The programs of a mode, and the suites in which a mutant of a folder most likely dies.
PROGRAMS = ("tests", "pages", "models", "oom")
SUITES = {"base": "*", "pages": "*pages*", "listing": "listing*:scope.*", "arena": "*arena*",
          "slab": "*slab*", "shared": "*slab*:*pool*:*runs*", "heap": "*heap*", "scope": "*scope*",
          "watch": "watch*:live*"}
# The time of a test, or the memory that others take, decides in these.
UNSTEADY = "-*resident*:*fast*:*_time*"

SWAPS = [(" < ", " <= "), (" <= ", " < "), (" > ", " >= "), (" >= ", " > "), (" == ", " != "),
         (" != ", " == "), (" && ", " || "), (" || ", " && "), (" + ", " - "), (" - ", " + "),
         (" += ", " -= "), (" -= ", " += "), ("++", "--"), ("--", "++"), ("true", "false"),
         ("false", "true")]


class Mutant:
    def __init__(self, path, number, line, at, old, new, occurrence, seed):
        self.path, self.number, self.line, self.at = path, number, line, at
        self.old, self.new = old, new
        self.key = f"{path} | {line.strip()} | {old.strip()} -> {new.strip() or 'removed'}"
        if line.count(old) > 1:
            self.key += f" @{at - len(line) + len(line.lstrip())}"
        self.hash = hashlib.sha256(f"{seed}|{self.key}|{occurrence}".encode()).hexdigest()

    def apply(self, tree):
        path = os.path.join(tree, self.path)
        lines = open(path).read().split("\n")
        line = lines[self.number]
        lines[self.number] = line[:self.at] + self.new + line[self.at + len(self.old):]
        os.unlink(path)
        open(path, "w").write("\n".join(lines))

    def __str__(self):
        return f"{self.path}:{self.number + 1}: {self.key.split(' | ', 1)[1]}"


def blank(match):
    return re.sub(r"[^\n]", "\0", match[0])


def code_of(text):
    """The text without comments, strings, preprocessor lines and static assertions: these are blank."""
    return re.sub(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])'"
                  r"|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*|^_Static_assert[^;]*;", blank, text,
                  flags=re.S | re.M)


def is_statement(code, before):
    """Whether the line is a whole statement, and neither a declaration nor a jump."""
    line = code.strip()
    return (line.endswith(";") and line.count("(") == line.count(")") and "\0" not in line[:1]
            and re.search(r"[;{})]$|\belse$|:$|^$", before.strip(" \t\0")) is not None
            and not re.match(r"(return|break|continue|goto|typedef|extern|static|do|\})\b", line)
            and not re.match(r"(\w+ )+\**\w+( =|;|\[|,)|\w+ \*+\w+( =|;|,)", line)
            and re.match(r"[*+\-\w(]", line) is not None)


def places(code, before):
    """(position, old text, new text) of every mutant of a line."""
    for old, new in SWAPS:
        word = old.isalpha()
        for match in re.finditer(rf"\b{old}\b" if word else re.escape(old), code):
            yield match.start(), old, new
    for match in re.finditer(r"(?<![\w.])(\d+)(?![\w.])", code):
        yield match.start(), match[0], str(int(match[0]) + 1)
    if code.startswith("\t") and is_statement(code, before):
        yield len(code) - len(code.lstrip()), code.strip(), ";"


def mutants_of(seed):
    found = []
    for path in sorted(glob.glob("c/src/*/*.[ch]", root_dir=ROOT)):
        if path.endswith(LEFT_OUT):
            continue
        text = open(os.path.join(ROOT, path)).read()
        lines, seen, before = text.split("\n"), {}, ""
        for number, code in enumerate(code_of(text).split("\n")):
            # What stands in column 0 are types, constants and heads of functions.
            for at, old, new in places(code, before) if code.startswith("\t") else ():
                mutant = (lines[number], at, old, new)
                seen[mutant] = seen.get(mutant, -1) + 1
                found.append(Mutant(path, number, *mutant, seen[mutant], seed))
            before = code if code.strip(" \t\0") else before
    return sorted(found, key=lambda mutant: mutant.hash)


def equal_ones():
    """The mutants that no test can see, each with its reason in the line below."""
    lines = [line.rstrip("\n") for line in open(EQUAL) if line.strip() and not line.startswith("#")]
    for key, reason in zip(lines[::2], lines[1::2]):
        if not reason.startswith("\t"):
            sys.exit(f"{EQUAL}: no reason for: {key}")
    return set(lines[::2])


def limit_memory():
    """A mutant may ask for memory without end."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_MOST, MEMORY_MOST))


class Bench:
    """Compiles libraries, and runs the tests on them."""

    def __init__(self, build):
        self.build = os.path.abspath(build)
        self.work = os.path.join(self.build, "mutation")
        self.slots = threading.local()
        self.count, self.lock = 0, threading.Lock()
        self.base = {}
        self.programs = {mode: [] for mode in MODES}

    def tree(self):
        """The sources of this thread, unchanged. All threads compile at one path as they see it."""
        if not hasattr(self.slots, "tree"):
            with self.lock:
                self.count += 1
                self.slots.tree = os.path.join(self.work, f"tree-{self.count}")
        shutil.rmtree(self.slots.tree, ignore_errors=True)
        shutil.copytree(os.path.join(ROOT, "c", "src"), os.path.join(self.slots.tree, "c", "src"))
        os.symlink(os.path.join(ROOT, "c", "include"), os.path.join(self.slots.tree, "c", "include"))
        return self.slots.tree

    def compile(self, tree, mode):
        """The object of a mode as bytes; None when it does not compile."""
        done = subprocess.run(["cc", "-std=c11", "-O1", "-w", "-fPIC", "-fno-semantic-interposition",
                               f"-DTN_MODE={MODES.index(mode)}", "-Ic/include", "-c",
                               "c/src/tenure.c", "-o", f"{mode}.o"], cwd=tree, capture_output=True)
        return open(os.path.join(tree, f"{mode}.o"), "rb").read() if done.returncode == 0 else None

    def link(self, tree, mode):
        where = os.path.join(tree, mode)
        os.makedirs(where, exist_ok=True)
        subprocess.run(["cc", "-shared", "-Wl,-z,nodelete", "-Wl,-soname,libtenure-mutant.so",
                        f"{mode}.o", "-pthread", "-o", os.path.join(where, "libtenure-mutant.so")],
                       cwd=tree, check=True)
        return where

    def prepare(self):
        """Compiles the unchanged library, and links every program of the tests with it."""
        tree = self.tree()
        links = os.path.join(self.work, "programs")
        os.makedirs(links, exist_ok=True)
        for mode in MODES:
            self.base[mode] = self.compile(tree, mode)
            library = os.path.join(self.link(tree, mode), "libtenure-mutant.so")
            names = [f"c/tests/{mode}.{name}" for name in PROGRAMS]
            names += ["c/tests/test_watch", "c/tests/test_live"] if mode == "release" else []
            names += sorted(os.path.relpath(path, self.build) for path in
                            glob.glob(f"{self.build}/c/tests/misuse/misuse-*-{mode}"))
            for name in names:
                self.programs[mode].append(self.relink(name, library, links))

    def relink(self, name, library, links):
        commands = subprocess.run(["ninja", "-t", "commands", "-s", name], cwd=self.build, check=True,
                                  capture_output=True, text=True).stdout
        output = os.path.join(links, os.path.basename(name))
        command = re.sub(r"\S*libtenure(-hardened|-debug)?\.a", library, commands)
        command = re.sub(r"-o \S+", f"-o {output}", command, count=1)
        subprocess.run(command, cwd=self.build, shell=True, check=True, stdout=subprocess.DEVNULL)
        return output

    def steps(self, mode, folder):
        """(command, seconds) of each run, the likely ones first."""
        first, rest = [], []
        for program in self.programs[mode]:
            name = os.path.basename(program)
            if name.startswith("misuse-"):
                source = re.sub(r"misuse-(.*)-\w+$", r"\1", name)
                found = glob.glob(f"{ROOT}/c*/tests/misuse/{source}.c*")[0]
                run = [sys.executable, "-IS", f"{ROOT}/c/tests/misuse/run.py", program, found, mode]
                (first if source.startswith(folder) else rest).append((run, 60))
                continue
            run = [program, "--gtest_brief=1"]
            first.append(([*run, f"--gtest_filter={SUITES[folder]}{UNSTEADY}"], 200))
            # The models of other allocators take long and see little.
            if not name.endswith("models"):
                rest.insert(0, ([*run, f"--gtest_filter=*{UNSTEADY}"], 400))
        return first + rest

    def killer(self, mode, folder, where):
        """The first run that fails with the library in `where`, or None."""
        environment = dict(os.environ, LD_LIBRARY_PATH=where, GTEST_FAIL_FAST="1")
        for command, seconds in self.steps(mode, folder):
            try:
                done = subprocess.run(command, env=environment, cwd=where, capture_output=True,
                                      timeout=seconds, text=True, errors="replace",
                                      preexec_fn=limit_memory)
            except subprocess.TimeoutExpired:
                return " ".join(command[-2:]) + ": no end"
            if done.returncode != 0:
                failed = re.search(r"\[  FAILED  \] (\S+)", done.stdout)
                last = os.path.basename(command[3] if "run.py" in command[2] else command[0])
                return f"{last} {failed[1] if failed else ''}".strip()
        return None

    def judge(self, mutant):
        tree = self.tree()
        if mutant is not None:
            mutant.apply(tree)
        folder = mutant.path.split("/")[2] if mutant is not None else "base"
        objects = {mode: self.compile(tree, mode) for mode in MODES}
        if None in objects.values():
            return "invalid", ""
        changed = [mode for mode in MODES if mutant is None or objects[mode] != self.base[mode]]
        for mode in changed:
            killer = self.killer(mode, folder, self.link(tree, mode))
            if killer is not None:
                return "killed", f"{mode}: {killer}"
        return ("SURVIVED", "") if changed else ("same", "")


def chosen(arguments):
    mutants = mutants_of(arguments.seed)
    if arguments.line:
        path, number = arguments.line.rsplit(":", 1)
        return [m for m in mutants if m.path == path and m.number + 1 == int(number)]
    part, parts = map(int, arguments.part.split("/"))
    return mutants[:arguments.count][part - 1::parts]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=15)
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--line", help="all mutants of one line, in place of the sample")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    equal, mutants = equal_ones(), chosen(arguments)
    bench = Bench(arguments.build)
    bench.prepare()
    verdict, killer = bench.judge(None)
    if verdict != "SURVIVED":
        sys.exit(f"mutation: the unchanged library fails: {verdict} {killer}")
    counts = {}
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        wanted = [m for m in mutants if m.key not in equal]
        counts["equal"] = len(mutants) - len(wanted)
        for mutant, (verdict, killer) in zip(wanted, pool.map(bench.judge, wanted)):
            counts[verdict] = counts.get(verdict, 0) + 1
            print(f"{verdict:9}{mutant}{'  by ' + killer if killer else ''}", flush=True)
    killed, survived = counts.get("killed", 0), counts.get("SURVIVED", 0)
    percent = 100 * killed / max(1, killed + survived)
    print(f"mutation: {counts}: {percent:.1f} % of {killed + survived} mutants die")
    sys.exit(percent < LEAST_PERCENT)


main()
