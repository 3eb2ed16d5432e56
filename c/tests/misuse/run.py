"""Runs one misuse program in one mode and holds its end against what its first comment promises.

    run.py PROGRAM SOURCE MODE [SANITIZER]

The comment holds a line `MODE  END TEXT` for each mode, END being ABRT, SEGV, EXIT (status 0) or the
word `undefined`: DESIGN promises nothing there, and the program is neither built nor run. `MODE:WORD`
is for the runs whose first argument is WORD, `MODE-address` for all runs under ASan. A line
`args  a b x c d` makes one run for each combination. TEXT is all of standard error, in any order of
lines (each begins with `tenure:`), where

    {name}    is what the program said on its standard output as `name value`
    PTR       is any address
    N, M      are two different numbers
    SITE      is module+0xhex; SITE(word) lies on the source line that has the comment /* word */
"""

import itertools
import re
import resource
import signal
import subprocess
import sys

PATTERNS = {
    "PTR": "0x[0-9a-f]+",
    "N": r"(?P<n>\d+)",
    "M": r"(?!(?P=n)\b)\d+",
}
SHOWN = 5
TOKEN = re.compile(r"(\{\w+\}|SITE\(\w+\)|\b(?:SITE|PTR|N|M)\b)")


def read_promises(path):
    """The labelled lines of the first comment; a line without a label continues the one before."""
    comment = open(path).read().split("*/")[0]
    promises = {}
    for line in comment.splitlines()[1:]:
        labelled = re.match(r" \* ([a-z:-]+) {2,}(.*)", line)
        if labelled:
            key = labelled[1]
            promises[key] = labelled[2]
        elif promises:
            promises[key] = f"{promises[key]} {line[2:].strip()}".strip()
    return promises


def combinations(text):
    axes = [axis.split() for axis in text.split(" x ")] if text else []
    return list(itertools.product(*axes))


def pattern_of(line, said, program):
    site = re.escape(program.rsplit("/", 1)[-1]) + r"\+(0x[0-9a-f]+)"
    pattern, words = "", []
    for token in TOKEN.split(line):
        if token.startswith("{"):
            pattern += re.escape(said[token[1:-1]])
        elif token.startswith("SITE"):
            pattern += site
            words.append(token[5:-1])
        else:
            pattern += PATTERNS.get(token) or re.escape(token)
    return pattern, words


def lies_on(program, source, offset, word):
    """Whether the call that returns to `offset` stands on the line marked with `word`."""
    call = hex(int(offset, 16) - 1)
    frames = subprocess.run(["addr2line", "-i", "-e", program, call], capture_output=True, text=True)
    lines = open(source).read().splitlines()
    name = source.rsplit("/", 1)[-1]
    numbers = re.findall(re.escape(name) + r":(\d+)", frames.stdout)
    return any(f"/* {word} */" in lines[int(number) - 1] for number in numbers)


def matches(line, promised, said, program, source):
    pattern, words = pattern_of(promised, said, program)
    match = re.fullmatch(pattern, line)
    if not match:
        return False
    offsets = [group for group in match.groups() if group.startswith("0x")]
    return all(not word or lies_on(program, source, offset, word)
               for word, offset in zip(words, offsets))


def sanitizer_saw(end, stderr, sanitizer):
    """Under ASan the first access that debug would see is reported by ASan itself."""
    return sanitizer == "address" and end != "EXIT" and re.search(
        r"ERROR: AddressSanitizer: (use-after-poison|unknown-crash|SEGV|heap-use-after-free)", stderr)


def complaint(program, source, arguments, promise, sanitizer):
    """What is wrong with one run, or None."""
    end, _, text = promise.partition(" ")
    run = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60)
    if sanitizer_saw(end, run.stderr, sanitizer):
        return None
    expected = 0 if end == "EXIT" else -getattr(signal, "SIG" + end)
    if run.returncode != expected:
        return f"ended with {run.returncode}, not {expected} ({end}): {run.stderr}"
    said = dict(line.split(" ", 1) for line in run.stdout.splitlines())
    lines = run.stderr.splitlines()
    for promised in filter(None, re.split(r" ?(?=tenure: )", text)):
        found = [line for line in lines if matches(line, promised, said, program, source)]
        if not found:
            return f"no line is: {promised}\nsaid {said}, got: {run.stderr}"
        lines.remove(found[0])
    return f"unexpected: {lines}" if lines else None


def main():
    program, source, mode = sys.argv[1:4]
    sanitizer = (sys.argv[4:] or [""])[0].split(",")[0]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    promises = read_promises(source)
    failures = runs = 0
    for arguments in combinations(promises.get("args", "")) or [()]:
        special = (f"{mode}-{sanitizer}", f"{mode}:{arguments[0]}" if arguments else mode, mode)
        promise = next(promises[key] for key in special if key in promises)
        if promise == "undefined":
            continue
        runs += 1
        wrong = complaint(program, source, arguments, promise, sanitizer)
        if wrong:
            failures += 1
            if failures <= SHOWN:
                print(f"{mode} {' '.join(arguments)}: {wrong}")
    print(f"{runs - failures} of {runs} runs ended as promised")
    sys.exit(failures != 0)


if __name__ == "__main__":
    main()
