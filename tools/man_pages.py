"""The manual's section 3, one page for each header of the C API.

    man_pages.py VERSION DIRECTORY HEADER...

The contracts in the headers are the only source. A page shows the head comment, then every public
declaration with its comment; labels that stand before a column of text become a list. For each function
a further file refers to the page, so that `man tn_arena_alloc` finds it.
"""

import datetime
import os
import re
import sys
import textwrap
import time

# What a header consists of, at the beginning of a line.
COMMENT = r"/\*(?P<comment>.*?)\*/\n"
DEFINE = r"#define (?P<macro>TN_\w+(?:\([^)]*\))?)(?:\\\n|[^\n])*\n"
DIRECTIVE = r"#(?:\\\n|[^\n])*\n"
STRUCT = r"typedef (?P<sort>struct|enum) \w+ \{\n(?P<body>.*?)\n\} (?P<type>\w+);\n"
TYPEDEF = r"typedef (?P<typedef>[^;]*);\n"
FUNCTION = r"(?:TN_API|TN_INLINE) (?P<function>[^;{]*?)\s*(?:;\n|\{\n.*?\n\}\n)"
ATTRIBUTE = r"TN_\w+\([^\n]*\)\n"
BLANK = r"(?P<blank>\s*)\n"
OTHER = r"[^\n]*\n"
TOKEN = re.compile("|".join([COMMENT, DEFINE, DIRECTIVE, STRUCT, TYPEDEF, FUNCTION, ATTRIBUTE, BLANK,
                             OTHER]), re.S)
# In the body of a struct or enum: a comment by itself, or a member with the comment behind it.
MEMBER = re.compile(r"\s*(?:/\*(?P<before>.*?)\*/|(?P<member>[^;,/(]+(?:\(.*?\)\(.*?\))?)\s*[;,]?"
                    r"(?:[ \t]*/\*(?P<behind>.*?)\*/)?)", re.S)


def lines_of(comment):
    return [re.sub(r"^\s*\* ?", "", line).rstrip() for line in comment.strip("\n ").split("\n")]


def escaped(text):
    text = re.sub(r"`([^`]*)`", r"\\fI\1\\fP", text.replace("\\", "\\e"))
    return re.sub(r"^([.'])", r"\\&\1", text)


def quoted(text):
    return '"' + text.replace("\\", "\\e").replace('"', '""') + '"'


def paragraph(lines):
    """Prose; each sentence begins a line, as mdoc wants it."""
    sentences = re.split(r"(?<=[.!?]) +(?=[A-Z(`\"])", " ".join(line.strip() for line in lines))
    return [escaped(line) for sentence in sentences
            for line in textwrap.wrap(sentence, 78, break_long_words=False, break_on_hyphens=False)]


LABEL = re.compile(r"(\S(?:[^.:\s]| (?! ))*)  +(\S.*)")


def labelled(lines):
    """A list of what stands behind labels; lines that are indented continue an item."""
    items = []
    for line in lines:
        match = LABEL.match(line)
        if match:
            items.append((match[1], [match[2]]))
        else:
            items[-1][1].append(line)
    width = max(len(label) for label, _ in items)
    yield f".Bl -tag -width {'x' * width} -compact"
    for label, text in items:
        yield f".It Sy {quoted(label)}"
        yield from paragraph(text)
    yield ".El"


def text_of(lines):
    """mdoc of a comment: paragraphs, lists, and (all lines indented) what stays as it is."""
    for part in "\n".join(lines).strip("\n").split("\n\n"):
        part = part.split("\n")
        yield ".Pp"
        if all(line.startswith("  ") for line in part):
            yield from [".Bd -literal", *[escaped(line) for line in part], ".Ed"]
            continue
        first = next((i for i, line in enumerate(part) if LABEL.match(line)), len(part))
        if first > 0:
            yield from paragraph(part[:first])
        if first < len(part):
            yield from labelled(part[first:])


def members(body):
    """(declarations, comment): callbacks that follow each other share the comment before them, other
    members the comment behind them."""
    group, comment = [], []
    for match in MEMBER.finditer(body):
        if match["before"] is not None or match["behind"] is not None or not match["member"].strip():
            if group and (comment or match["before"] is not None):
                yield group, comment
                group, comment = [], []
        if match["before"] is not None:
            comment = lines_of(match["before"])
        elif match["member"].strip():
            if comment and group and "(" not in match["member"]:
                yield group, comment
                group, comment = [], []
            group.append(re.sub(r"\s+", " ", match["member"]).strip().replace("* ", "*"))
            if match["behind"] is not None:
                yield group, lines_of(match["behind"])
                group, comment = [], []
    if group:
        yield group, comment


def struct_of(body):
    yield ".Pp"
    yield ".Bl -tag -width 4n -compact"
    for declarations, comment in members(body):
        for declaration in declarations:
            yield f".It Vt {quoted(declaration)}"
        yield from paragraph(comment)
    yield ".El"


def split_parameters(text):
    depth, parts = 0, [""]
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


class Function:
    def __init__(self, declaration):
        plain = re.sub(r"\s+", " ", re.sub(r"\s*TN_SYMBOL\(\w+\)", "", declaration))
        result, self.name, parameters = re.match(r"(.*?)\b(tn_\w+)\((.*)\)$", plain).groups()
        self.result = result.strip()
        self.parameters = split_parameters(parameters)

    def synopsis(self):
        return [f".Ft {quoted(self.result)}",
                f".Fn {self.name} " + " ".join(map(quoted, self.parameters))]

    def heading(self):
        names = [re.search(r"\(\*(\w+)\)|(\.\.\.)|(\w+)$", each) for each in self.parameters]
        names = [match[1] or match[2] or match[3] for match in names]
        return f"{self.name}({', '.join(name for name in names if name != 'void')})"


class Page:
    def __init__(self, path):
        self.header = os.path.basename(path)
        stem = self.header.removesuffix(".h")
        self.name = stem if stem == "tenure" else f"tn_{stem}"
        self.names, self.synopsis, self.body = [], [], []
        with open(path, encoding="utf-8") as file:
            self.read(file.read())

    def read(self, text):
        head = TOKEN.match(text)
        lines = lines_of(head["comment"])
        about, rest = re.match(r"tenure/\w+\.h: (.*?)(?:\.(?: (.*))?)?$", lines[0]).groups()
        self.about = about
        self.head = list(text_of(([rest] if rest else []) + lines[1:]))
        comment, headings, details = None, [], []

        def flush():
            public = comment is None or not re.match(r"Not API|Private|----", comment[0])
            if public and headings:
                self.body.append(f".Ss {', '.join(headings)}")
            if public and (comment or headings):
                self.body.extend(list(text_of(comment))[0 if not headings else 1:] if comment else [])
                self.body.extend(details if comment else details[1:])

        for match in TOKEN.finditer(text, head.end()):
            if match["comment"] is not None or match["blank"] is not None:
                flush()
                headings, details = [], []
                comment = lines_of(match["comment"]) if match["comment"] is not None else None
                continue
            hidden = comment is not None and re.match(r"Not API|Private", comment[0])
            if match["function"] and not hidden:
                function = Function(match["function"])
                self.names.append(function.name)
                self.synopsis += function.synopsis()
                headings.append(function.heading())
            elif match["type"]:
                headings.append(f"{match['sort']} {match['type']}")
                if comment is None or not any("Private" in line for line in comment):
                    details += struct_of(match["body"])
            elif match["typedef"] and comment is not None:
                headings.append(re.sub(r"\s+", " ", match["typedef"]).replace("( ", "("))
            elif match["macro"] and comment is not None:
                headings.append(match["macro"])
                if "(" in match["macro"] and not hidden:
                    self.names.append(match["macro"].split("(")[0])
        flush()

    def mdoc(self, version, date, pages):
        names = [self.name, *self.names]
        others = sorted(page.name for page in pages if page is not self)
        lines = [f".Dd {date}", f".Dt {self.name.upper()} 3", f".Os Tenure {version}", ".Sh NAME"]
        lines += [f".Nm {name}{' ,' * (name != names[-1])}" for name in names]
        lines += [f".Nd {self.about}", ".Sh LIBRARY",
                  "Tenure; flags for the compiler:", ".Ql pkg-config --cflags --libs tenure",
                  ".Sh SYNOPSIS", f".In tenure/{self.header}", *self.synopsis,
                  ".Sh DESCRIPTION", *self.head[1:], *self.body,
                  ".Sh SEE ALSO", ".Xr tenure-top 1 ,"]
        lines += [f".Xr {name} 3{' ,' * (name != others[-1])}" for name in others]
        return "\n".join(lines) + "\n"


def write(directory, name, text):
    with open(os.path.join(directory, name + ".3"), "w", encoding="utf-8") as file:
        file.write(text)


def main():
    version, directory, *headers = sys.argv[1:]
    seconds = float(os.environ.get("SOURCE_DATE_EPOCH") or time.time())
    made = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    pages = [Page(header) for header in headers]
    os.makedirs(directory, exist_ok=True)
    for old in os.listdir(directory):
        if old.endswith(".3"):
            os.remove(os.path.join(directory, old))
    for page in pages:
        write(directory, page.name, page.mdoc(version, f"{made:%B} {made.day}, {made.year}", pages))
        for name in page.names:
            write(directory, name, f".so man3/{page.name}.3\n")


main()
