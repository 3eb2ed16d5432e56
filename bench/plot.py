#!/usr/bin/env python3
"""plot.py [DIRECTORY]   draws every FAMILY.json in DIRECTORY (build/bench) as PNG and SVG beside it.

FAMILY-ratios: time of every subject over that of glibc (without glibc: of the first of BASES), with
95 % intervals, on several pages where there are many workloads. FAMILY-NAME: time against batch size
(workloads NAME-1, NAME-16, ...) or threads. FAMILY-latency: percentiles, FAMILY-memory: memory held,
where recorded. FAMILY-scaling: operations and CPU time against simulated cores (model)."""

import json
import pathlib
import re
import sys

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

# Okabe and Ito's colours, which colour-blind readers tell apart.
BLUE, ORANGE, GREEN, RED, PURPLE = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7"
GREY, BLACK = "#9A9A9A", "#202020"
LINES = {"tenure": (BLUE, "-", 2.6), "floor": (BLACK, ":", 1.6), "glibc": (RED, "-", 1.6),
         "mimalloc": (GREEN, "-", 1.6), "mimalloc3": (GREEN, "--", 1.6), "boost": (ORANGE, "-", 1.6),
         "snmalloc": (ORANGE, "-", 1.6), "tcmalloc": (PURPLE, "-", 1.6)}
PERCENTILES = [("p50_ns", "50 %", "o"), ("p99_ns", "99 %", "s"), ("p999_ns", "99.9 %", "D"),
               ("max_ns", "max", "|")]
MEMORY = [("overhead_ratio", "memory held, bytes of live objects = 1"),
          ("committed_share", "memory held after everything was freed, its most = 1")]
BASES = ["glibc", "apr", "tenure-unwatched", "new", "syncpool", "cpython", "bytearray", "fresh"]
PANELS = 10  # on one page
SMALLEST_RATIO = 1e-5  # a smaller ratio to the base is a time below the clock's resolution

pyplot.rcParams.update({"font.size": 9, "axes.titlesize": 10, "axes.titleweight": "bold",
                        "axes.titlelocation": "left", "axes.spines.top": False,
                        "axes.spines.right": False, "svg.hashsalt": "tenure"})


def is_ours(subject):
    return subject.startswith("tenure")


def colour(subject):
    return BLUE if is_ours(subject) else BLACK if subject == "floor" else GREY


def save(figure, path):
    for suffix in ("png", "svg"):
        metadata = {"Date": None} if suffix == "svg" else None
        figure.savefig(f"{path}.{suffix}", dpi=130, bbox_inches="tight", metadata=metadata)
        print(f"{path}.{suffix}")
    pyplot.close(figure)


def workloads_of(rows):
    """Rows by workload, in the order of the file."""
    found = {}
    for row in rows:
        found.setdefault((row["workload"], row.get("threads", 1)), []).append(row)
    return found


def panels(count, width, heights):
    """A grid of two columns; the height of a row follows its contents."""
    columns = min(count, 2)
    lines = [heights[i:i + columns] for i in range(0, count, columns)]
    high = [0.21 * max(line) + 0.85 for line in lines]
    figure, axes = pyplot.subplots(len(lines), columns, squeeze=False, layout="constrained",
                                   figsize=(width * columns, sum(high) + 0.7), height_ratios=high)
    for spare in axes.flat[count:]:
        spare.set_visible(False)
    return figure, list(axes.flat[:count])


def number(value):
    return f"{value:.2g}" if value < 0.1 else f"{value:.2f}" if value < 10 else f"{value:.0f}"


def name_subjects(axis, rows):
    axis.set_yticks(range(len(rows)), [r["subject"] for r in rows])
    for label, row in zip(axis.get_yticklabels(), rows):
        label.set_color(colour(row["subject"]) if is_ours(row["subject"]) else BLACK)
        label.set_fontweight("bold" if is_ours(row["subject"]) else "normal")


def base_of(rows):
    """The subject that the ratios are to; None where there is nothing to compare."""
    subjects = {r["subject"] for r in rows}
    return next((b for b in BASES if b in subjects), None) if len(subjects) > 1 else None


def draw_ratios(axis, title, rows, base):
    rows = [r for r in rows if r["ratio"].get(base, {}).get("median", 0) > SMALLEST_RATIO]
    rows.sort(key=lambda r: -r["ratio"][base]["median"])
    for i, row in enumerate(rows):
        q = row["ratio"][base]
        axis.barh(i, q["median"] - 1, left=1, height=0.62, color=colour(row["subject"]),
                  alpha=1 if is_ours(row["subject"]) else 0.55)
        axis.plot([q["low"], q["high"]], [i, i], color="black", linewidth=1.2)
        slower = q["median"] > 1
        axis.annotate(number(q["median"]), (q["high"] if slower else q["low"], i),
                      (4 if slower else -4, 0), textcoords="offset points",
                      ha="left" if slower else "right", va="center", fontsize=8,
                      fontweight="bold" if is_ours(row["subject"]) else "normal")
    axis.axvline(1, color=RED, linewidth=1)
    room = 0.6 if len(rows) > 1 else 1.1
    axis.set_ylim(-room, len(rows) - 1 + room)
    axis.set_xscale("log")
    low, high = axis.get_xlim()
    low, high = min(low, 0.8), max(high, 1.25)
    room = (high / low) ** 0.18  # for the numbers at both ends
    axis.set_xlim(low / room, high * room)
    narrow = high / low < 100
    axis.xaxis.set_major_locator(matplotlib.ticker.LogLocator(subs=(1, 2, 5) if narrow else (1,)))
    name_subjects(axis, rows)
    axis.xaxis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda x, _: f"{x:g}"))
    axis.xaxis.set_minor_formatter(matplotlib.ticker.NullFormatter())
    axis.set_title(title)
    axis.set_xlabel(f"time, {base} = 1 (logarithmic; left of the red line is faster)")


def plot_ratios(family, rows, to):
    groups = {k: v for k, v in workloads_of(rows).items() if base_of(v)}
    if not groups:
        return
    groups = list(groups.items())
    pages = -(-len(groups) // PANELS)
    size = -(-len(groups) // pages)
    for page in range(pages):
        name = f"{family}-ratios" + (f"-{page + 1}" if pages > 1 else "")
        plot_ratio_page(family, groups[page * size:(page + 1) * size], to / name)


def plot_ratio_page(family, groups, path):
    figure, axes = panels(len(groups), 5.6, [len(v) - 1 for _, v in groups])
    for axis, ((workload, threads), group) in zip(axes, groups):
        base = base_of(group)
        ns = next(r["ns_per_op"] for r in group if r["subject"] == base)
        at = f", {threads} threads" if threads > 1 else ""
        draw_ratios(axis, f"{workload}{at}   ({base}: {duration(ns)} an operation)", group, base)
    bases = {base_of(group) for _, group in groups}
    over = bases.pop() if len(bases) == 1 else "the one in brackets"
    figure.suptitle(f"{family}: time of each subject over that of {over}; medians of rounds, "
                    "95 % intervals", fontsize=12)
    save(figure, path)


def duration(ns):
    for unit, size in (("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.3g} ns"


def spread(values, least):
    """Moves sorted positions apart until neighbours are `least` away."""
    at = sorted(range(len(values)), key=lambda i: values[i])
    moved = list(values)
    for _ in range(400):
        for a, b in zip(at, at[1:]):
            short = least - (moved[b] - moved[a])
            if short > 1e-9:
                moved[a] -= short / 2
                moved[b] += short / 2
    return moved


def style(subject):
    if subject in LINES:
        return LINES[subject]
    if is_ours(subject):
        return (BLUE, "-", 2.6) if subject.count("-") < 2 else (BLUE, "--", 1.6)
    return GREY, "-", 1.1


def draw_lines(axis, series, span):
    """series: {subject: [(x, ns)]}; labels stand at the right end, moved apart.
    span: the last x over the first."""
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    for subject, points in series.items():
        line, dashes, width = style(subject)
        axis.plot(*zip(*sorted(points)), color=line, linestyle=dashes, linewidth=width, marker="o",
                  markersize=3, zorder=3 if is_ours(subject) else 2)
    axis.figure.canvas.draw()
    names = list(series)
    last = [sorted(series[n])[-1] for n in names]
    right = max(x for x, _ in last)
    label_at = right * span**0.06
    at = [axis.transData.transform((right, y))[1] for _, y in last]
    height = axis.figure.dpi * 10.5 / 72
    for name, (_, y), pixel in zip(names, last, spread(at, height)):
        y_label = axis.transData.inverted().transform((0, pixel))[1]
        axis.annotate(name, (right, y), (label_at, y_label), color=style(name)[0], va="center",
                      fontsize=8.5, fontweight="bold" if is_ours(name) else "normal",
                      arrowprops={"arrowstyle": "-", "relpos": (0, 0.5), "color": style(name)[0],
                                  "linewidth": 0.5})


def plot_lines(family, name, series, label, to):
    figure, axis = pyplot.subplots(figsize=(8.6, 5.4), layout="constrained")
    xs = sorted({x for points in series.values() for x, _ in points})
    ys = [y for points in series.values() for _, y in points]
    span = max(xs[-1] / xs[0], 4)
    axis.set_xlim(xs[0] / span**0.05, xs[-1] * span**0.42)  # room for the labels
    axis.set_ylim(min(ys) / 1.3, max(ys) * 1.3)
    draw_lines(axis, series, span)
    axis.set_xticks(xs, [f"{x:,}" for x in xs])
    axis.set_xticks([], minor=True)
    axis.yaxis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda y, _: f"{y:g}"))
    marks = [m * 10**e for e in range(-2, 7) for m in (1, 2, 5)]
    axis.set_yticks([m for m in marks if min(ys) / 1.3 < m < max(ys) * 1.3])
    axis.set_yticks([], minor=True)
    axis.grid(axis="y", color="#E4E4E4", zorder=0)
    axis.set_xlabel(label)
    axis.set_ylabel("ns per operation (median; logarithmic)")
    axis.set_title(f"{name}: time against {label.partition(' (')[0]}")
    save(figure, to / f"{family}-{name.removeprefix(family + '-')}")


def plot_series(family, rows, to):
    """Batches, and workloads that ran with several numbers of threads."""
    batches, by_threads = {}, {}
    for row in rows:
        match = re.fullmatch(r"(.*-batch|handoff)-(\d+)", row["workload"])
        threads = row.get("threads", 1)
        subject, ns = row["subject"], row["ns_per_op"]
        if match:
            name = match[1] + (f"-{threads}-threads" if threads > 1 and "batch" in match[1] else "")
            batches.setdefault(name, {}).setdefault(subject, []).append((int(match[2]), ns))
        by_threads.setdefault(row["workload"], {}).setdefault(subject, []).append((threads, ns))
    for name, series in batches.items():
        plot_lines(family, name, series, "objects in a batch", to)
    for name, series in by_threads.items():
        series = {subject: points for subject, points in series.items() if len(points) > 2}
        if series:
            plot_lines(family, name, series, "threads (CPU time of all; more than CPUs take turns)", to)


def draw_latency(axis, title, rows):
    rows = sorted(rows, key=lambda r: -r["p50_ns"])
    for i, row in enumerate(rows):
        values = [row[field] for field, _, _ in PERCENTILES]
        axis.plot([values[0], values[-1]], [i, i], color=colour(row["subject"]), linewidth=1, zorder=1)
        for value, (_, name, marker) in zip(values, PERCENTILES):
            axis.scatter(value, i, marker=marker, s=30, color=colour(row["subject"]), zorder=2,
                         label=name if i == 0 else None)
    axis.set_xscale("log")
    name_subjects(axis, rows)
    axis.xaxis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda x, _: duration(x)))
    axis.grid(axis="x", color="#E4E4E4", zorder=0)
    axis.set_title(title)
    axis.set_xlabel("duration (logarithmic)")


def plot_latency(family, rows, to):
    groups = workloads_of([r for r in rows if "p999_ns" in r])
    if not groups:
        return
    figure, axes = panels(len(groups), 5.6, [len(v) for v in groups.values()])
    for axis, ((workload, _), group) in zip(axes, groups.items()):
        draw_latency(axis, workload, group)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", bbox_to_anchor=(0.5, 0), ncol=4, frameon=False)
    figure.suptitle(f"{family}: how long the slow ones take; percentiles", fontsize=12)
    save(figure, to / f"{family}-latency")


def draw_memory(axis, field, label, rows):
    rows = sorted(rows, key=lambda r: -r[field])
    for i, row in enumerate(rows):
        ours = is_ours(row["subject"])
        axis.barh(i, row[field], height=0.62, color=colour(row["subject"]), alpha=1 if ours else 0.55)
        beyond = max(row[field], 1) if row[field] > 0.9 else row[field]  # not on the line at 1
        axis.annotate(number(row[field]), (beyond, i), (4, 0), textcoords="offset points", va="center",
                      fontsize=8, fontweight="bold" if ours else "normal")
    axis.axvline(1, color=RED, linewidth=1)
    axis.set_xlim(0, max(1, *(r[field] for r in rows)) * 1.12)
    name_subjects(axis, rows)
    axis.set_title(rows[0]["workload"])
    axis.set_xlabel(label)


def plot_memory(family, rows, to):
    shown = [(field, label, group) for field, label in MEMORY
             for group in workloads_of([r for r in rows if field in r]).values()]
    if not shown:
        return
    figure, axes = panels(len(shown), 5.6, [len(group) for _, _, group in shown])
    for axis, (field, label, group) in zip(axes, shown):
        draw_memory(axis, field, label, group)
    figure.suptitle(f"{family}: memory that is held", fontsize=12)
    save(figure, to / f"{family}-memory")


def plot_scaling(family, rows, to):
    """Rows of the model: all subjects of a workload against cores, by the simulated clock."""
    groups = {}
    for row in rows:
        groups.setdefault(row["workload"], {}).setdefault(row["subject"], []).append(row)
    figure, axes = pyplot.subplots(len(groups), 2, squeeze=False, layout="constrained",
                                   figsize=(11.2, 3.4 * len(groups)))
    fields = [("ops_per_us", "operations per µs, all cores"), ("ns_per_op", "CPU ns per operation")]
    for line, (workload, series) in zip(axes, groups.items()):
        for axis, (field, label) in zip(line, fields):
            for i, (subject, points) in enumerate(series.items()):
                points.sort(key=lambda r: r["threads"])
                cores = [r["threads"] for r in points]
                axis.plot(cores, [r[field] for r in points], marker="o", markersize=3, label=subject,
                          color=RED if subject == "spinlock" else f"C{i}", linewidth=1.6)
            axis.set_xscale("log", base=2)
            axis.set_yscale("log")
            ticks = sorted({r["threads"] for points in series.values() for r in points})
            axis.set_xticks(ticks, [str(t) for t in ticks])
            axis.set_title(workload)
            axis.set_xlabel("cores, a thread on each (simulated)")
            axis.set_ylabel(label)
            axis.grid(axis="y", color="#E4E4E4", zorder=0)
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", bbox_to_anchor=(0.5, 0), ncol=4, frameon=False)
    save(figure, to / f"{family}-scaling")


def main():
    to = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/bench")
    files = sorted(to.glob("*.json"))
    if not files:
        sys.exit(f"plot.py: no results in {to}: run `make bench` first")
    for file in files:
        rows = json.loads(file.read_text())
        computed = [r for r in rows if "ops_per_us" in r]
        if computed:
            plot_scaling(file.stem, computed, to)
            continue
        plot_ratios(file.stem, rows, to)
        plot_series(file.stem, rows, to)
        plot_latency(file.stem, rows, to)
        plot_memory(file.stem, rows, to)


if __name__ == "__main__":
    main()
