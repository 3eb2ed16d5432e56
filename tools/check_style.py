"""Style as a test: the rules of docs/style.md that a machine can check. `--fix` runs the formatter and
repairs white space.

Every rule is a function from a file's path and text to complaints (line, what). RULES lists the files
that each rule reads.
"""

import functools
import json
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WIDTH = 104
FILE_LINES = 1200
FUNCTION_LINES = 70
HOT_LINES = 25
HOT = ["tn_arena_bump", "tn_arena_alloc", "tn_slab_pop", "tn_slab_alloc", "tn_slab_free",
       "tn_shared_slab_pop", "tn_shared_slab_alloc", "tn_shared_slab_free", "tn_pool_pop",
       "tn_pool_get", "tn_pool_put", "tn_runs_pop", "tn_runs_free", "tn_lease_spend", "tn_scope_alloc",
       "tn_heap_alloc", "heap_free", "take_lowest"]
# In C++ objects come after blocks.
OBJECTS = ["make", "make_unique", "make_array", "destroy"]
LABELS = ["returns", "fails", "threads", "cost", "cites"]
THREADS = ("any", "one at a time", "owner only")
FORMATTER = "clang-format-19"
SOURCES = (".c", ".h", ".cpp", ".hpp")
TEXT = SOURCES + (".py", ".pyi", ".toml", ".sh", ".md", ".txt",
                  ".cmake", ".in", ".go", ".rs", "Makefile", ".ci/run")

# Folders whose comments are checked for English.
ENGLISH = ("bench/", "c/", "cpp/", "examples/", "go/", "python/")
QUOTING = ("docs/style.md",)

# Written in parts, so that this file keeps its own rule.
FORBIDDEN = [
    ("an absolute path of one machine", "/" + r"work/"),
    ("a registry's host", r"(deb\.debian|security\.debian|pypi|pythonhosted|crates|proxy\.golang)"
                          + r"\.(org|io)"),
]


def files_of_the_tree():
    """Files that git has or would add; without git, all files that are not built."""
    try:
        listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard"],
                                capture_output=True, text=True, check=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        listed = [os.path.relpath(os.path.join(where, name), ROOT)
                  for where, _, names in os.walk(ROOT) for name in names]
    outside = ("build/", ".git/")
    return [path for path in listed
            if not path.startswith(outside) and os.path.isfile(os.path.join(ROOT, path))]


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def check_lines(path, text):
    limit = 10**6 if path.endswith(".md") else WIDTH
    for number, line in enumerate(text.splitlines(), 1):
        if len(line.expandtabs(4)) > limit:
            yield number, f"{len(line.expandtabs(4))} columns, more than {WIDTH}"
        if line != line.rstrip():
            yield number, "blanks at the end of the line"
        for what, pattern in FORBIDDEN:
            if re.search(pattern, line):
                yield number, what
    if text and not text.endswith("\n"):
        yield text.count("\n") + 1, "no newline at the end"


def check_length(path, text):
    if text.count("\n") > FILE_LINES:
        yield FILE_LINES, f"{text.count(chr(10))} lines, more than {FILE_LINES}"


def check_indent(path, text):
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"\t* {4}\S", line) and not in_comment(text, number):
            yield number, "indented with blanks, not tabs"


def check_continuations(path, text):
    """A comment behind code that goes on in the next line goes on below its first word."""
    lines = text.expandtabs(4).split("\n")
    for number, line in enumerate(lines[:-1]):
        begun = re.search(r"\S.*?(/\* )(?!.*\*/)", line)
        following = lines[number + 1]
        if begun and len(following) - len(following.lstrip()) != begun.end(1):
            yield number + 2, "does not stand below the comment that it continues"


def in_comment(text, number):
    before = "\n".join(text.split("\n")[:number - 1])
    return before.rfind("/*") > before.rfind("*/")


FUNCTION = re.compile(r"^(\t?)(?:TN_PRINTF\([\d, ]+\)\n)?"
                      r"(?!(?:struct|enum|union|typedef|extern|namespace)\b)"
                      r"(?!(?:public|protected|private):)[A-Za-z][^;{}#]*?\b(?!__attribute__)(\w+)"
                      r"\([^;{}]*\)[^;{}()]*\{\n"
                      r"(.*?)^\1\}", re.M | re.S)


def functions(text):
    """(name, first line, body) of each function definition: from a head that begins in column 0, or in
    a class a tab further, and ends with `{`, to the first `}` in that column."""
    for match in FUNCTION.finditer(text):
        yield match[2], line_of(text, match.start()), match[3]


def check_functions(path, text):
    for name, line, body in functions(text):
        if body.count("\n") > FUNCTION_LINES:
            yield line, f"{name} has {body.count(chr(10))} lines, more than {FUNCTION_LINES}"


def check_hot(path, text):
    for name, line, body in functions(text):
        if name not in HOT:
            continue
        if body.count("\n") + 2 > HOT_LINES:
            yield line, f"hot {name} has {body.count(chr(10)) + 2} lines, more than {HOT_LINES}"
        if re.search(r"^\s*#", body, re.M):
            yield line, f"hot {name} has a preprocessor line"
        if re.search(r"\b(for|while|do|goto)\b", re.sub(r"/\*.*?\*/", "", body, flags=re.S)):
            yield line, f"hot {name} has a loop"


def declarations(text):
    """(line, the comment above or None, declaration) of every TN_API and inline function of a header.
    Declarations that follow each other without an empty line share the comment of the first."""
    comment = r"(?:/\*(?:(?!\*/).)*\*/\n)?"
    attribute = r"(?:TN_(?!API)\w+\([^\n]*\)\n)?"
    declared = r"(?:TN_API|TN_INLINE) [^;{]*[;{]\n"
    group = re.compile(rf"^({comment})((?:{attribute}{declared})+)", re.M | re.S)
    for match in group.finditer(text):
        for declaration in re.findall(declared, match[2]):
            yield line_of(text, match.start(2)), match[1], declaration


def check_contracts(path, text):
    for line, comment, declaration in declarations(text):
        function = re.match(r"(?:TN_API|TN_INLINE)\s+(.*?)\b(\w+)\(", declaration, re.S)
        if not function or comment.startswith("/* Not API"):
            continue
        result, name = function[1].strip(), function[2]
        labels = re.findall(rf"^(?: \*|/\*) ({'|'.join(LABELS)})\b", comment, re.M)
        if labels != sorted(labels, key=LABELS.index) or len(set(labels)) != len(labels):
            yield line, f"{name}: the labels are {labels}, which is not the order {LABELS}"
        if "threads" not in labels:
            yield line, f"{name}: no `threads` in its contract"
        elif not re.search(rf"^ \* threads +({'|'.join(THREADS)})", comment, re.M):
            yield line, f"{name}: `threads` is none of {THREADS}"
        told = "returns" in labels or result == "bool" and comment.startswith("/* Tells whether")
        if result != "void" and not told:
            yield line, f"{name}: returns {result}, and its contract does not say what"


def comments(text):
    """(line, text without the comment's marks) of each comment; // lines in a row are one comment."""
    block, lines = r"/\*.*?\*/", r"(?:^|(?<=\s))//[^\n]*(?:\n[ \t]*//[^\n]*)*"
    for match in re.finditer(rf"{block}|{lines}", text, re.S | re.M):
        plain = re.sub(r"\s*\n\s*(?:\*|//)?|^(?:/\*|//)|\*/$", " ", match[0])
        yield line_of(text, match.start()), plain


def check_english(path, text):
    """The subject comes first: no sentence of a comment begins with a relative pronoun."""
    for line, comment in comments(text):
        for match in re.finditer(r"(?i:\bwhoever|\bnobody)\b|(?:^|[.:;?!]) +(?:What|Who|Where)\b",
                                 comment):
            yield line, f"English, see docs/style.md: {match[0].strip('.:;?! ')}"


def check_prose(path, text):
    without_code = re.sub(r"^```.*?^```", lambda code: "\n" * code[0].count("\n"), text,
                          flags=re.M | re.S)
    for match in re.finditer(r"\b(?:whoever|nobody)\b", without_code, re.I):
        yield line_of(without_code, match.start()), f"English, see docs/style.md: {match[0]}"


CLASS = re.compile(r"^(/\*(?:(?!\*/).)*\*/\n)?(?:template <[^\n]*>\s+)?class "
                   r"([\w:]+)(?: final)?(?: :[^{;]*)? \{", re.M | re.S)


def check_cpp_contracts(path, text):
    """A class of a C++ header has a sentence and its `threads`. A member that hands out memory has a
    comment, which members that follow each other without an empty line share."""
    public = re.sub(r"^namespace detail \{$.*?^\}$", lambda match: "\n" * match[0].count("\n"), text,
                    flags=re.M | re.S)
    for match in CLASS.finditer(public):
        line, comment, name = line_of(public, match.start(2)), match[1] or "", match[2]
        if not re.match(r"/\* \w.*[.:]", comment, re.S):
            yield line, f"{name}: no sentence says what it is"
        elif "/* Not API" not in comment and not re.search(r"^ \* threads  +\w", comment, re.M):
            yield line, f"{name}: no `threads` in its comment"
    for match in re.finditer(r"(?:[^\n]+\n)+", public):
        bound = re.search(r"\b(\w+)\([^()]*\)(?: const)?(?: noexcept)? TN_LIFETIMEBOUND", match[0])
        if bound and "/*" not in match[0][:bound.start()]:
            yield line_of(public, match.start()), f"{bound[1]}: hands out memory without a comment"


def words_in_order():
    """The closed list of verbs, a list for each line of it, in the order that headers keep."""
    listed = re.search(r"in this order:\n\n```\n(.*?)```", read("docs/style.md"), re.S)
    return [line.split() for line in listed[1].splitlines()]


def out_of_order(found, words):
    """Complaints about (line, verb) that stand behind a later verb of `words`."""
    last = None
    for line, verb in found:
        if verb in words and last and words.index(verb) < words.index(last):
            yield line, f"{verb} stands behind {last}, against the order in docs/style.md"
        elif verb in words:
            last = verb


def check_verbs(path, text):
    """A header declares tn_<thing>_<verb>, the thing being its name, in the order of the list."""
    words = sum(words_in_order(), [])
    function = re.compile(rf"\btn_{os.path.basename(path)[:-len('.h')]}_(?:(local)_)?(\w+)\(")
    found = [(line, function.search(declaration)) for line, comment, declaration in declarations(text)
             if not comment.startswith("/* Not API")]
    found = [(line, match[1] or match[2]) for line, match in found if match]
    for line, verb in found:
        if verb not in words:
            yield line, f"{verb} is no word of docs/style.md: it needs a page in docs/decisions"
    yield from out_of_order(found, words)


def check_cpp_verbs(path, text):
    """In each class, without its private part. A const `get` is no verb: it returns the C handle."""
    _, blocks, *then = words_in_order()
    words = blocks + OBJECTS + sum(then, [])
    classes = []  # innermost last: indent, words of the head, is private, verbs
    for number, line in enumerate(text.splitlines(), 1):
        indent = len(line) - len(line.lstrip("\t"))
        if re.match(r"\t*(template <.*> ?)?(class|struct)\b.*\{$", line):
            classes.append([indent, re.findall(r"\w+", line), False, []])
        elif classes and indent == classes[-1][0] and line.strip() == "};":
            yield from out_of_order(classes.pop()[3], words)
        elif classes and re.match(r"\t*(public|protected|private):$", line):
            classes[-1][2] = "public" not in line
        elif classes and indent == classes[-1][0] + 1 and not classes[-1][2]:
            member = re.match(r"\tusing \w+::(\w+);|[^/*#]*?(\w+)\(", line[indent - 1:])
            verb = member and (member[1] or member[2])
            if verb and verb not in classes[-1][1] and not re.search(r"\bget\(\) const|::get;", line):
                classes[-1][3].append((number, verb))


def layers():
    """({folder: its prefixes}, {(file, include)}) of the tables in c/src/README.md, bottom up."""
    rows = re.findall(r"^\| `([\w/.]+)` \| ((?:`[\w/.]+` ?)+)\|", read("c/src/README.md"), re.M)
    cells = [(name, re.findall(r"`([^`]+)`", rest)) for name, rest in rows]
    return ({name: tuple(rest) for name, rest in cells if "/" not in name},
            {(name, rest[0]) for name, rest in cells if "/" in name})


def check_layers(path, text):
    folders, exceptions = layers()
    mine, _, name = path.removeprefix("c/src/").partition("/")
    order = list(folders)
    if mine not in folders:
        yield 1, f"the folder {mine} is no layer of c/src/README.md"
        return
    for match in re.finditer(r'^#include "\.\./((\w+)/[^"]+)"', text, re.M):
        known = match[2] in folders and order.index(match[2]) <= order.index(mine)
        if not known and (f"{mine}/{name}", match[1]) not in exceptions:
            yield line_of(text, match.start()), f"includes {match[1]}, which is no lower layer"


def check_exceptions(path, text):
    for file, include in sorted(layers()[1]):
        if f'#include "../{include}"' not in read(f"c/src/{file}"):
            yield 1, f"{file} does not include {include}: the exception is not needed"


@functools.cache
def api():
    """The names that the public headers declare."""
    folder = os.path.join(ROOT, "c/include/tenure")
    headers = [name for name in os.listdir(folder) if name.endswith(".h")]
    return {name for header in headers for name in
            re.findall(r"^TN_API [^;{]*?\b(tn_\w+)\(", read(f"c/include/tenure/{header}"), re.M)}


def check_prefixes(path, text):
    prefixes = layers()[0].get(path.split("/")[2], ())
    allowed = prefixes + tuple(f"tn_{prefix}" for prefix in prefixes)
    if path.startswith("c/src/base/"):
        allowed += ("tn_",)
    for name, line, _ in functions(text):
        if not name.isupper() and not name.startswith(allowed) and name not in api():
            yield line, f"{name} begins with none of {', '.join(prefixes)}"


def inner_verbs():
    """The verbs of decision 13, and those of the API in docs/style.md."""
    table = re.findall(r"^\| (`.*?) \|", read("docs/decisions/0013-one-grammar-inside.md"), re.M)
    api = set(sum(words_in_order(), [])) | {"fini", "panic"}
    return {verb for cell in table for verb in re.findall(r"`([a-z]+)`", cell)} | api


def check_inner_verbs(path, text):
    prefixes = layers()[0].get(path.split("/")[2], ())
    known = inner_verbs()
    head = re.compile(r"^(?:(?:static|inline|TN_\w+|_Noreturn) )*void (?:tn_)?(\w+)\(", re.M)
    for match in head.finditer(text):
        name = match[1]
        if name.startswith(("list_", "unlist_")):  # prefixes that are verbs
            continue
        whose = max((p for p in (*prefixes, "shared_slab_") if name.startswith(p)), key=len, default="")
        if name[len(whose):].split("_")[0] not in known:
            yield line_of(text, match.start()), f"{name}: no verb of decision 13 follows its prefix"


def check_unity(path, text):
    sources = {os.path.relpath(os.path.join(where, name), os.path.join(ROOT, "c/src"))
               for where, _, names in os.walk(os.path.join(ROOT, "c/src"))
               for name in names if name.endswith(".c")}
    for name in sorted(sources - {"tenure.c"} - set(re.findall(r'#include "([\w/]+\.c)"', text))):
        yield 1, f"does not include {name}"


def anchors(text):
    heads = re.findall(r"^#+ +(.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def check_links(path, text):
    for match in re.finditer(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", text)):
        target, _, anchor = match[1].partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        file = os.path.normpath(os.path.join(ROOT, os.path.dirname(path), target)) if target \
            else os.path.join(ROOT, path)
        if not os.path.exists(file):
            yield line_of(text, match.start()), f"the link {match[1]} leads nowhere"
        elif anchor and file.endswith(".md") and anchor not in anchors(open(file).read()):
            yield line_of(text, match.start()), f"no heading for {match[1]}"


def check_format(files):
    """One complaint for each file that the formatter would change."""
    if not shutil.which(FORMATTER):
        if os.environ.get("CI"):
            yield FORMATTER, 1, "is not installed: tools/setup.sh test"
        else:
            print(f"style: no {FORMATTER} here, so the format is not checked")
        return
    done = subprocess.run([FORMATTER, "--dry-run", *files], capture_output=True, text=True, cwd=ROOT)
    seen = set()
    for path, line in re.findall(r"^([^\s:]+):(\d+):\d+: (?:warning|error)", done.stderr, re.M):
        if path not in seen:
            seen.add(path)
            yield path, int(line), "not as the formatter has it: make fmt"


def measured(source, names):
    """A figure of a committed file: an instruction count, a ratio, or nanoseconds."""
    rows = json.loads(read(source))
    if "instructions" in rows:
        return rows["instructions"][" ".join(names)]
    workload, subject, *peer = names
    workload, _, threads = workload.partition("@")
    row = next(row for row in rows if (row["workload"], row["subject"], row["threads"]) ==
               (workload, subject, int(threads or 1)))
    return row["ratio"][peer[0]]["median"] if peer else row["ns_per_op"]


def check_figures(path, text):
    """Each row's figure stands in its document and is what was measured, rounded."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("#"):
            continue
        document, figure, source, *names = line.split()
        found = f"{measured(source, names):.{len(figure.partition('.')[2])}f}"
        if not re.search(rf"(?<![\d.]){re.escape(figure)}(?![\d.]*\d)", read(document)):
            yield number, f"{document} has no figure {figure}"
        elif found != figure:
            yield number, f"{' '.join(names)} is {found} in {source}, not {figure}"


def check_sources(path, text):
    """A paragraph with a measured time or ratio names its results."""
    for match in re.finditer(r"(?:[^\n]+\n)+", text):
        figure = re.search(r"\d (?:ns|us)\b|\b\d\.\d+ (?:of|times)\b", match[0])
        if figure and "results" not in match[0]:
            yield line_of(text, match.start()), f"no results are named for {figure[0]}"


def check_rules(path, text):
    """Each rule is cited by a test of Go, or the table says that Go does not have it. C's tests compare
    their citations themselves."""
    rules = set(re.findall(r"^- \*\*(B\d+)\*\*", text, re.M))
    absent = set(re.findall(r"B\d+", " ".join(re.findall(r"^\| Go \| ([B\d ]+) \|", text, re.M))))
    tests = [file for file in files_of_the_tree() if re.match(r"go/.*_test\.go$", file)]
    cited = {rule for file in tests for comment in re.findall(r"//.*", read(file))
             for rule in re.findall(r"\bB\d+\b", comment)}
    for rule in sorted(rules - cited - absent):
        yield 1, f"{rule} is cited by no test of Go"
    for rule in sorted((cited | absent) - rules):
        yield 1, f"Go cites or lacks {rule}, which is no rule"
    for rule in sorted(cited & absent):
        yield 1, f"{rule} is cited by a test of Go, and the table says that Go does not have it"


def is_written(path):
    """A text that people write, not the output of a run."""
    return path.endswith(TEXT) and not path.startswith("bench/results/")


RULES = [
    (is_written, [check_lines]),
    (lambda path: path.endswith(SOURCES + (".py", ".go")), [check_length]),
    (lambda path: path.endswith(SOURCES), [check_indent, check_continuations, check_functions]),
    (lambda path: path.startswith(("c/include", "c/src")), [check_hot]),
    (lambda path: path.startswith("c/include") and "detail" not in path,
     [check_contracts, check_verbs]),
    (lambda path: path.startswith("cpp/include") and "detail" not in path, [check_cpp_contracts]),
    (lambda path: path.startswith("cpp/include"), [check_cpp_verbs]),
    (lambda path: path.startswith(ENGLISH) and path.endswith(SOURCES + (".go",)), [check_english]),
    (lambda path: path.endswith(".md") and path not in QUOTING, [check_prose]),
    (lambda path: re.match(r"c/src/\w+/.*\.[ch]$", path), [check_layers]),
    (lambda path: re.match(r"c/src/\w+/.*\.[ch]$", path), [check_prefixes]),
    (lambda path: re.match(r"c/src/(?!base/)\w+/.*\.[ch]$", path), [check_inner_verbs]),
    (lambda path: path == "spec/behaviour.md", [check_rules]),
    (lambda path: path == "c/src/tenure.c", [check_unity]),
    (lambda path: path == "c/src/README.md", [check_exceptions]),
    (lambda path: path.endswith(".md"), [check_links]),
    (lambda path: path.endswith(".md") and not path.startswith("bench/"), [check_sources]),
    (lambda path: path == "bench/results/figures.txt", [check_figures]),
]


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def fix(path):
    old = read(path)
    new = re.sub(r"[ \t]+$", "", old, flags=re.M).rstrip("\n") + "\n" if old else old
    if new != old:
        with open(os.path.join(ROOT, path), "w", encoding="utf-8") as file:
            file.write(new)


def main():
    files = [path for path in files_of_the_tree() if path.endswith(TEXT)]
    sources = [path for path in files if path.endswith(SOURCES)]
    if sys.argv[1:] == ["--fix"]:
        for path in filter(is_written, files):
            fix(path)
        if shutil.which(FORMATTER):
            subprocess.run([FORMATTER, "-i", *sources], check=True, cwd=ROOT)
    complaints = 0
    for path, line, what in check_format(sources):
        complaints += 1
        print(f"{path}:{line}: {what}")
    for path in files:
        text = read(path)
        for concerns, rules in RULES:
            for rule in rules if concerns(path) else []:
                for line, what in rule(path, text):
                    complaints += 1
                    print(f"{path}:{line}: {what}")
    print(f"style: {len(files)} files, {complaints} complaints")
    sys.exit(complaints != 0)


if __name__ == "__main__":
    main()
