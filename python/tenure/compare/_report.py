"""The table and the pictures of a comparison."""

from __future__ import annotations

import pathlib
from typing import Any

from rich.console import Console
from rich.table import Table


def show(console: Console, result: dict[str, Any]) -> None:
    for variant, rows in result["variants"].items():
        console.print(table(result, variant, rows))


def table(result: dict[str, Any], variant: str, rows: list[dict[str, Any]]) -> Table:
    table = Table(
        title=f"{result['comparison']}, {variant}: {result['title']}",
        caption=f"{result['manner'][variant]}. Published: {result['published']}.",
    )
    table.add_column("subject")
    ends = "end_us" in rows[0]
    for column in [
        f"ns a {result['unit']}",
        "of cpython",
        "requests/s",
        "wall s",
        *(["end us"] if ends else []),
        "peak MiB",
        f"cores saved at {result['rate']:,}/s",
        "p50 us",
        "p99 us",
        "p99.9 us",
        "max us",
    ]:
        table.add_column(column, justify="right")
    for row in rows:
        peak = row["peak_bytes"]
        table.add_row(
            row["subject"],
            f"{row['ns_per_op']:,.1f}",
            f"{row['of_cpython']:.3f}",
            f"{row['requests_per_second']:,.0f}",
            f"{row['wall_seconds']:.3f}",
            *([f"{row['end_us']:,.1f}"] if ends else []),
            "-" if peak is None else f"{peak / 2**20:.1f}",
            f"{row['cores_saved']:+.3f}",
            *(f"{row[key] / 1000:,.2f}" for key in ("p50_ns", "p99_ns", "p999_ns", "max_ns")),
        )
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
        times.bar_label(bars, fmt="%.4g", padding=3)
        times.margins(x=0.15)
        times.set_title(f"{result['comparison']}, {variant}")
        times.set_xlabel(f"ns a {result['unit']}")
        for row in rows:
            shares = [1 - level / 100 for level, _ in row["profile"] if level < 100]
            values = [value / 1000 for level, value in row["profile"] if level < 100]
            pauses.plot(shares, values, label=row["subject"])
        pauses.set(xscale="log", yscale="log", xlabel="share of requests that took longer")
        pauses.set_ylabel("us a request")
        pauses.invert_xaxis()
        pauses.legend()
        pauses.grid(alpha=0.3)
    for path in paths:
        figure.savefig(path)
