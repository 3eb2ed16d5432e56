#!/usr/bin/env python3
"""plot.py [build/demo/demo.json]   draws the rows of tenure-demo as a PNG and an SVG beside the file.

Above: the time of a document; the grey part is the floor's, the coloured one the allocator's share. A
bar is glibc's median time multiplied by the subject's ratio to it: the ratios are of the same
round, while the machine's speed changes between rounds. Below: how long the slow documents take.
"""

import json
import os
import sys

COLOURS = {"glibc": "#7a5195", "mimalloc": "#ef5675", "jemalloc": "#ffa600", "tenure-arena": "#00798c",
           "floor": "#9aa0a6"}
PERCENTILES = {"p50_ns": "p50", "p99_ns": "p99", "p999_ns": "p99.9", "max_ns": "max"}


def fail(message):
    print(f"demo/plot.py: {message}", file=sys.stderr)
    sys.exit(2)


try:
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
except ImportError as error:
    fail(f"{error} (Debian's package is python3-matplotlib)")


def read_rows(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except OSError as error:
        fail(f"{path}: {error.strerror}: run tenure-demo first")
    except ValueError as error:
        fail(f"{path}: {error}")


def by_workload(rows):
    workloads = {}
    for row in rows:
        workloads.setdefault(row["workload"], []).append(row)
    return workloads


def unit_of(ns):
    return ("ns", 1) if ns < 1e3 else ("µs", 1e3) if ns < 1e6 else ("ms", 1e6)


def ratio_text(row):
    ratio = row["ratio"].get("glibc")
    if ratio is None:
        return "1"
    return f"{ratio['median']:.2f}\n[{ratio['low']:.2f}, {ratio['high']:.2f}]"


def time_of(row, glibc):
    return glibc["ns_per_op"] * row["ratio"].get("glibc", {"median": 1})["median"]


def draw_times(axes, rows):
    subjects = {row["subject"]: row for row in rows}
    name, ns = unit_of(subjects["glibc"]["ns_per_op"])
    floor = time_of(subjects["floor"], subjects["glibc"])
    for at, row in enumerate(rows):
        time, colour = time_of(row, subjects["glibc"]), COLOURS[row["subject"]]
        axes.bar(at, min(time, floor) / ns, color=COLOURS["floor"], width=0.7)
        axes.bar(at, max(time - floor, 0) / ns, bottom=floor / ns, color=colour, width=0.7)
        axes.annotate(ratio_text(row), (at, time / ns), (0, 2), textcoords="offset points", ha="center",
                      va="bottom", fontsize=7)
    axes.set_xticks(range(len(rows)), [row["subject"].replace("-", "\n") for row in rows], fontsize=8)
    axes.set_ylabel(f"{name} per document")
    axes.margins(y=0.16)


def draw_tail(axes, rows):
    shown = [field for field in PERCENTILES if field in rows[0]]
    name, ns = unit_of(rows[0]["ns_per_op"])
    for row in rows:
        subject = row["subject"]
        axes.plot(range(len(shown)), [row[field] / ns for field in shown], color=COLOURS[subject],
                  marker="o", markersize=4, label=subject, linestyle=":" if subject == "floor" else "-")
    axes.set_xticks(range(len(shown)), [PERCENTILES[field] for field in shown], fontsize=8)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=[1, 2, 5]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_ylabel(f"{name}, log axis")
    axes.grid(True, axis="y", alpha=0.25)


def draw(workloads):
    figure, axes = pyplot.subplots(2, len(workloads), figsize=(1 + 3.9 * len(workloads), 6.8),
                                   squeeze=False, layout="constrained", height_ratios=[3, 2])
    for column, (name, rows) in enumerate(workloads.items()):
        document, _, heap = name.rpartition("-")
        axes[0][column].set_title(f"{document}, {heap} heap", fontsize=9)
        draw_times(axes[0][column], rows)
        draw_tail(axes[1][column], rows)
    for row in axes.flat:
        row.spines[["top", "right"]].set_visible(False)
    figure.suptitle("libcjson parses a document and drops it (less is better): time, and its ratio to "
                    "glibc's with a 95 % interval\n"
                    "grey: what the floor needs; colour: the allocator's share", fontsize=10)
    axes[1][0].legend(fontsize=7, frameon=False)
    return figure


def main():
    if len(sys.argv) > 2:
        fail("usage: plot.py [demo.json]")
    source = sys.argv[1] if len(sys.argv) == 2 else "build/demo/demo.json"
    workloads = by_workload(read_rows(source))
    if not workloads:
        fail(f"{source}: no rows")
    matplotlib.rcParams["svg.hashsalt"] = "tenure"
    figure = draw(workloads)
    picture = os.path.splitext(source)[0]
    figure.savefig(picture + ".svg", metadata={"Date": None})
    figure.savefig(picture + ".png", dpi=150)
    print(f"Picture: {picture}.png (and .svg)")


if __name__ == "__main__":
    main()
