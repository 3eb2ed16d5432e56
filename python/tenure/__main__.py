"""python -m tenure: see `python -m tenure compare --help`."""

from __future__ import annotations

import argparse
import importlib
import json
import pathlib
import platform
import sys
from typing import Any

import tenure
from tenure.compare._subjects import COMPARISONS, Comparison

EXTRA = ["hdrh.histogram", "matplotlib", "rich"]
VARIANTS = {"as published": False, "fair": True}


def number(text: str) -> int:
    value = int(text.replace(",", "").replace("_", ""))
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not positive")
    return value


def arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tenure", description=tenure.__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    compare = commands.add_parser(
        "compare",
        help="the same work through CPython, malloc by ctypes, an arena in Python, and Tenure",
        description="The same work through CPython's own allocator, malloc by ctypes, an arena in "
        "Python over a bytearray, and Tenure. The result goes to stdout, progress to stderr.",
    )
    compare.add_argument("comparison", choices=[*COMPARISONS])
    compare.add_argument(
        "--variant",
        choices=[*VARIANTS, "both"],
        default="both",
        help="as published, or with the same duties for all (default: both)",
    )
    compare.add_argument(
        "--rate",
        type=number,
        default=10_000,
        metavar="N",
        help="your requests a second (default: 10,000)",
    )
    compare.add_argument(
        "--requests", type=number, metavar="N", help="how many to serve (default: as published)"
    )
    compare.add_argument("--json", action="store_true", help="print JSON instead of tables")
    compare.add_argument(
        "--out", type=pathlib.Path, metavar="DIR", help="also write DIR/COMPARISON.json, .png and .svg"
    )
    return parser.parse_args(given)


def compared(comparison: Comparison, options: argparse.Namespace) -> dict[str, Any]:
    from rich.console import Console
    from rich.progress import Progress

    from tenure.compare import _measure

    requests = options.requests or comparison.requests
    variants = {name: fair for name, fair in VARIANTS.items() if options.variant in (name, "both")}
    rows = {}
    with Progress(console=Console(stderr=True), transient=True) as progress:
        for name, fair in variants.items():
            task = progress.add_task(name, total=None)
            total = len(comparison.subjects(fair)) * (2 * (_measure.ROUNDS if fair else 1) + 1)
            progress.update(task, total=total + 1)

            def step(what: str, task: Any = task, name: str = name) -> None:
                progress.update(task, advance=1, description=f"{name}: {what}")

            rows[name] = _measure.measure(comparison, fair, requests, step)
            progress.update(task, completed=total + 1, description=name)
    for mine in rows.values():
        base = next(row for row in mine if row["subject"] == "cpython")
        for row in mine:
            saved = base["cpu_us_per_request"] - row["cpu_us_per_request"]
            row["cores_saved"] = saved * options.rate / 1e6
    return {
        "comparison": comparison.name,
        "title": comparison.title,
        "unit": comparison.unit,
        "published": comparison.published,
        "manner": {"as published": comparison.as_published, "fair": comparison.fair},
        "rate": options.rate,
        "requests": requests,
        "tenure": tenure.__version__,
        "python": platform.python_version(),
        "machine": platform.platform(),
        "variants": rows,
    }


def main(given: list[str] | None = None) -> int:
    options = arguments(given)
    try:
        for module in EXTRA:
            importlib.import_module(module)
    except ImportError as error:
        print(f"{error}; the comparison needs: pip install 'tenure[compare]'", file=sys.stderr)
        return 2
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
    result = compared(COMPARISONS[options.comparison], options)
    if options.json:
        print(json.dumps(result))
    else:
        from rich.console import Console

        from tenure.compare._report import show

        console = Console()
        if not console.is_terminal:  # nothing is cut in a file
            console = Console(width=120)
        show(console, result)
    if options.out is not None:
        from tenure.compare._report import draw

        where = options.out / options.comparison
        where.with_suffix(".json").write_text(json.dumps(result) + "\n")
        draw(result, [where.with_suffix(".png"), where.with_suffix(".svg")])
    others = [name for name in COMPARISONS if name != options.comparison]
    print(f"\nnext: python -m tenure compare {{{','.join(others)}}}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
