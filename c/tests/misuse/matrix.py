"""Writes docs/misuse.md: the end of each misuse of each allocator in each mode, as the first comments
of the misuse programs promise it and run.py tests it.

    matrix.py SOURCES DOCUMENT [--write]

Without --write it compares: the document must say what the programs promise, no cell may be blank, and
every program must stand somewhere.
"""

import glob
import os
import sys

from run import read_promises

MODES = ("release", "hardened", "debug")
ALLOCATORS = ("arena", "slab", "shared_slab", "pool", "heap", "scope")

# Kinds of misuse, and the endings of the programs' names behind the allocator. An ending with a colon
# is for runs whose first argument is that word.
KINDS = [
    ("A block is freed twice", ["double_free", "double_put"]),
    ("A foreign pointer is freed or resized", ["foreign", "no_block"]),
    ("A pointer into a block is freed or resized", ["interior", "no_block"]),
    ("A byte past the end is written", ["past_the_end"]),
    ("The byte before the start is written", ["before_the_start"]),
    ("A block is used after free or put", ["stale:free", "use_of_idle"]),
    ("A block is used after reset or destroy", ["stale:destroy", "stale:read", "stale"]),
    ("A block is freed or resized with a wrong size", ["wrong_size"]),
    ("Two calls overlap", ["overlap"]),
    ("A callback calls the allocator that called it", ["reentry"]),
    ("A call after destroy", ["call_after_destroy"]),
    ("Two destroys", ["double_destroy"]),
    ("Destroy with live blocks", ["leaks"]),
]

NO_FREE = "its blocks end together"
ANY_THREAD = "legal: any thread may call it"
# Cells without a program, each with its reason.
NONE = {
    ("arena", 0): NO_FREE, ("scope", 0): NO_FREE,
    ("arena", 5): NO_FREE, ("scope", 5): NO_FREE,
    ("arena", 12): "legal: " + NO_FREE, ("scope", 12): "legal: " + NO_FREE,
    ("scope", 1): "no call takes a block", ("scope", 2): "no call takes a block",
    ("scope", 7): "no call takes a block",
    ("slab", 7): "no call takes a size", ("shared_slab", 7): "no call takes a size",
    ("pool", 7): "no call takes a size",
    ("shared_slab", 8): ANY_THREAD, ("pool", 8): ANY_THREAD,
    ("scope", 9): "legal: deferred calls use their scope",
}
# Another program stands for the cell.
STANDS_FOR = {"pool_before_the_start": "pool_past_the_end"}

ENDS = {"ABRT": "abort", "SEGV": "fault", "EXIT": "goes on", "undefined": "undefined"}

HEAD = """# Misuse

The end of each misuse in each mode. `c/tests/misuse/matrix.py` writes this page from the programs in
`c/tests/misuse`, which the tests run in every mode that promises something; a test fails when the page
and the programs differ.

| cell | meaning |
|---|---|
| **abort** | one line with allocator, name, operation and pointer, then abort |
| **fault** | the access itself ends the process (SIGSEGV) |
| abort or fault in part | some ways are seen, others not; the program's comment says which |
| goes on | legal, or not seen; debug lists live blocks at destroy by site |
| undefined | nothing is promised, and the program is not run |

Under AddressSanitizer and Valgrind every access to a block that is not live is seen, too.
"""


def promised(promises, mode, word):
    """How the runs of a program end in a mode, those with the first argument `word` if there is one."""
    special = promises.get(f"{mode}:{word}") if word else None
    every = [text for key, text in promises.items()
             if key == mode or (not word and key.startswith(mode + ":"))]
    texts = [special] if special else every
    ends = sorted({ENDS[text.split(" ")[0]] for text in texts})
    seen = [end for end in ends if end in ("abort", "fault")]
    if len(ends) == 1:
        return f"**{ends[0]}**" if seen else ends[0]
    return f"{' or '.join(seen)} in part"


def find_cell(programs, allocator, endings):
    for ending in endings:
        name, _, word = f"{allocator}_{ending}".partition(":")
        name = STANDS_FOR.get(name, name)
        words = programs.get(name, {}).get("args", "").split(" x ")[0].split()
        if name in programs and (not word or word in words or (word == "destroy" and not words)):
            return name, word
    return None


def cell_of(programs, allocator, number, used):
    found = find_cell(programs, allocator, KINDS[number][1])
    if found is None:
        reason = NONE.get((allocator, number))
        if reason is None:
            sys.exit(f"misuse: no program and no reason: {allocator}: {KINDS[number][0]}")
        return reason
    name, word = found
    used.add(name)
    return " / ".join(promised(programs[name], mode, word) for mode in MODES)


def document_of(sources):
    programs = {os.path.basename(path)[:-2]: read_promises(path)
                for path in sorted(glob.glob(os.path.join(sources, "*.c")))}
    used = set()
    lines = [HEAD, "## Thirteen kinds", "", "Each cell: release / hardened / debug.", "",
             "| | " + " | ".join(name.replace("_", " ") for name in ALLOCATORS) + " |",
             "|---" * (len(ALLOCATORS) + 1) + "|"]
    for number, (kind, _) in enumerate(KINDS):
        cells = [cell_of(programs, allocator, number, used) for allocator in ALLOCATORS]
        lines.append(f"| {kind} | " + " | ".join(cells) + " |")
    lines += ["", "## Every other program", "", "| program | release | hardened | debug |",
              "|---|---|---|---|"]
    for name, promises in programs.items():
        if name not in used:
            cells = [promised(promises, mode, "") for mode in MODES]
            lines.append(f"| [{name}](../c/tests/misuse/{name}.c) | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main():
    sources, document = sys.argv[1:3]
    text = document_of(sources)
    if "--write" in sys.argv:
        open(document, "w").write(text)
    elif open(document).read() != text:
        sys.exit(f"{document} is not what the programs promise: run matrix.py with --write")


main()
