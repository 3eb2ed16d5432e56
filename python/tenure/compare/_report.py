"""The table and the pictures of a comparison."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table


def show(console: Console, result: dict[str, Any]) -> None:
    """Two tables for each variant, which fit 80 columns."""
    for variant, rows in result["variants"].items():
        console.print(f"\n[bold]{result['comparison']}, {variant}[/bold]: {result['title']}")
        console.print(f"{result['manner'][variant]}; cores saved at {result['rate']:,} requests/s")
        console.print(table(work_columns(result), rows))
        console.print(table(PAUSE_COLUMNS, rows))
    console.print(f"published: {result['published']}")


Column = tuple[str, Callable[[dict[str, Any]], str]]


def work_columns(result: dict[str, Any]) -> list[Column]:
    ends: list[Column] = [("end\nus", lambda row: f"{row['end_us']:,.0f}")]
    has_ends = any("end_us" in row for rows in result["variants"].values() for row in rows)
    return [
        (f"ns a\n{result['unit']}", lambda row: in_short(row["ns_per_op"])),
        ("of\ncpython", lambda row: f"{row['of_cpython']:.3f}"),
        ("requests\n/s", lambda row: f"{row['requests_per_second']:,.0f}"),
        ("wall\ns", lambda row: f"{row['wall_seconds']:.2f}"),
        *(ends if has_ends else []),
        ("peak\nMiB", lambda row: mebibytes(row["peak_bytes"])),
        ("cores\nsaved", lambda row: f"{row['cores_saved']:+.3f}"),
    ]


def in_short(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}"


def microseconds(field: str) -> Callable[[dict[str, Any]], str]:
    return lambda row: f"{row[field] / 1000:,.2f}"


PAUSE_COLUMNS: list[Column] = [
    ("p50\nus", microseconds("p50_ns")),
    ("p99\nus", microseconds("p99_ns")),
    ("p99.9\nus", microseconds("p999_ns")),
    ("max\nus", microseconds("max_ns")),
]


def mebibytes(bytes_: int | None) -> str:
    return "-" if bytes_ is None else in_short(bytes_ / 2**20)


def table(columns: list[Column], rows: list[dict[str, Any]]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), collapse_padding=True)
    table.add_column("subject", no_wrap=True)
    for heading, _ in columns:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(row["subject"], *(text(row) for _, text in columns))
    return table


def draw(result: dict[str, Any], paths: list[pathlib.Path]) -> None:
    """Each variant's times of an operation, as bars, and its profile of pauses."""
    from matplotlib.figure import Figure

    variants = result["variants"]
    figure = Figure(figsize=(11, 4 * len(variants)), layout="constrained")
    axes = figure.subplots(len(variants), 2, squeeze=False)
    for (times, pauses), (variant, rows) in zip(axes, variants.items(), strict=True):
        names = [row["subject"] for row in rows][::-1]
        bars = times.barh(names, [row["ns_per_op"] for row in rows][::-1])
        times.bar_label(bars, fmt=in_short, padding=3)
        times.margins(x=0.25)
        times.set_title(f"{result['comparison']}, {variant}")
        times.set_xlabel(f"ns a {result['unit']}")
        for row in rows:
            shares = [1 - level / 100 for level, _ in row["profile"] if level < 100]
            values = [value / 1000 for level, value in row["profile"] if level < 100]
            pauses.plot(shares, values, label=row["subject"])
        pauses.set(xscale="log", yscale="log", xlabel="share of requests that took longer")
        pauses.set_ylabel("us a request")
        pauses.invert_xaxis()
        pauses.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
        pauses.grid(alpha=0.3)
    for path in paths:
        figure.savefig(path)
