"""Every example of the documents runs: docs/python.md by section, the tour docs/numpy.md as a whole."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs/python.md"
SECTIONS = re.split(r"^## ", PAGE.read_text(), flags=re.M)[1:]
FENCED = re.compile(r"^```python\n(.*?)^```", re.M | re.S)
EXAMPLES = {section.splitlines()[0]: FENCED.findall(section) for section in SECTIONS}


@pytest.mark.parametrize("section", [name for name, found in EXAMPLES.items() if found])
def test_examples(section):
    names = {}
    exec("import tenure", names)
    for example in EXAMPLES[section]:
        exec(compile(example, f"{PAGE.name}: {section}", "exec"), names)


def test_the_tour():
    page = PAGE.with_name("numpy.md")
    cells, names = FENCED.findall(page.read_text()), {}
    for number, cell in enumerate(cells):
        exec(compile(cell, f"{page.name}: cell {number}", "exec"), names)
    assert len(cells) >= 8


def test_the_page_has_examples():
    assert sum(map(len, EXAMPLES.values())) >= 12
