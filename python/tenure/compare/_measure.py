"""Times, memory and pauses of the subjects of a comparison.

python -m tenure.compare._measure COMPARISON FAIR SUBJECT REQUESTS   prints the peak memory of one
"""

from __future__ import annotations

import contextlib
import functools
import pathlib
import statistics
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tenure.compare._subjects import COMPARISONS, Comparison, Request, Subject, Work

ROUNDS = 10
HIGHEST_NS = 60_000_000_000
PERCENTILES = {"p50_ns": 50.0, "p99_ns": 99.0, "p999_ns": 99.9, "max_ns": 100.0}


@dataclass
class Figures:
    """What was measured of one subject, a round each."""

    walls: list[float] = field(default_factory=list)  # seconds
    cpus: list[float] = field(default_factory=list)  # seconds of the process
    ends: list[float] = field(default_factory=list)  # seconds of the ends of kept blocks


@contextlib.contextmanager
def traced(on: bool) -> Iterator[None]:
    """tracemalloc follows each allocation."""
    if on:
        tracemalloc.start()
    try:
        yield
    finally:
        if on:
            tracemalloc.stop()


def on_threads(calls: list[Request]) -> None:
    """Runs each on a thread; a single one on this thread."""
    if len(calls) == 1:
        calls[0]()
        return
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def turns(fair: bool, names: list[str]) -> Iterator[str]:
    """The subjects in the order in which they are measured: each round begins with the next one."""
    for i in range(ROUNDS if fair else 1):
        first = i % len(names)
        yield from names[first:] + names[:first]


def count_of(comparison: Comparison, fair: bool, requests: int, threads: int) -> int:
    """Requests of one thread in one round."""
    count = max(1, requests // threads // (ROUNDS if fair else 1))
    whole = comparison.ends_after or 1
    return max(1, count // whole) * whole


def run(comparison: Comparison, work: Work, count: int) -> float:
    """Serves `count` requests; returns seconds of the ends."""
    request, after, ends, clock = work.request, comparison.ends_after, 0.0, time.perf_counter
    for part in [after] * (count // after) if after else [count]:
        for _ in range(part):
            request()
        begin = clock()
        work.end()
        ends += clock() - begin
    return ends


def measure_round(
    comparison: Comparison, subject: Subject, works: list[Work], count: int, f: Figures
) -> None:
    ends: list[float] = []

    def serve(work: Work) -> None:
        ends.append(run(comparison, work, count))

    with traced(subject.traced):
        cpu, begin = time.process_time(), time.perf_counter()
        on_threads([functools.partial(serve, work) for work in works])
        f.walls.append(time.perf_counter() - begin)
        f.cpus.append(time.process_time() - cpu)
    f.ends.append(sum(ends))


def record_round(
    comparison: Comparison, subject: Subject, works: list[Work], count: int, record: Any
) -> None:
    """The time of each request, and of each end."""

    def serve(work: Work, times: list[int]) -> None:
        request, clock = work.request, time.perf_counter_ns
        for i in range(count):
            begin = clock()
            request()
            times.append(clock() - begin)
            if comparison.ends_after and (i + 1) % comparison.ends_after == 0:
                begin = clock()
                work.end()
                times.append(clock() - begin)

    times: list[list[int]] = [[] for _ in works]
    with traced(subject.traced):
        on_threads([functools.partial(serve, *each) for each in zip(works, times, strict=True)])
    for mine in times:
        for each in mine:
            record(min(each, HIGHEST_NS))


def peak_bytes(comparison: Comparison, fair: bool, subject: Subject, requests: int) -> int | None:
    """How far resident memory grows, in a process of its own; None where that cannot be read."""
    done = subprocess.run(
        [sys.executable, "-m", __name__, comparison.name, str(int(fair)), subject.name, str(requests)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return int(done.stdout) if done.stdout.strip() else None


def resident(what: str) -> int:
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(what + ":"):
            return int(line.split()[1]) * 1024
    raise OSError(what)


def print_peak(name: str, fair: bool, wanted: str, requests: int) -> None:
    comparison = COMPARISONS[name]
    subject = next(each for each in comparison.subjects(fair) if each.name == wanted)
    try:
        before = resident("VmRSS")
        pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    except OSError:
        return
    works = subject.works()
    measure_round(
        comparison, subject, works, count_of(comparison, fair, requests, len(works)), Figures()
    )
    print(max(0, resident("VmHWM") - before))


def measure(
    comparison: Comparison, fair: bool, requests: int, step: Callable[[str], None]
) -> list[dict[str, Any]]:
    """A row for each subject. `step` is told what comes next, three times for each."""
    from hdrh.histogram import HdrHistogram

    subjects = {each.name: each for each in comparison.subjects(fair)}
    works = {name: subject.works() for name, subject in subjects.items()}
    counts = {name: count_of(comparison, fair, requests, len(mine)) for name, mine in works.items()}
    figures = {name: Figures() for name in subjects}
    pauses = {name: HdrHistogram(1, HIGHEST_NS, 3) for name in subjects}
    for name in subjects:  # warm, outside the figures
        few = max(1, counts[name] // 20, comparison.ends_after)
        measure_round(comparison, subjects[name], works[name], few, Figures())
    for name in turns(fair, list(subjects)):
        step(f"{name}: time")
        measure_round(comparison, subjects[name], works[name], counts[name], figures[name])
    for name in turns(fair, list(subjects)):
        step(f"{name}: pauses")
        record_round(comparison, subjects[name], works[name], counts[name], pauses[name].record_value)
    rows = []
    for name, subject in subjects.items():
        step(f"{name}: memory")
        peak = peak_bytes(comparison, fair, subject, requests)
        served = counts[name] * len(works[name])
        rows.append(row_of(comparison, fair, name, figures, served, pauses[name], peak))
    return rows


def row_of(
    comparison: Comparison,
    fair: bool,
    name: str,
    figures: dict[str, Figures],
    served: int,
    pauses: Any,
    peak: int | None,
) -> dict[str, Any]:
    mine, base = figures[name], figures["cpython"]

    def seconds(f: Figures) -> list[float]:
        """Of each round. As published, the end of kept blocks is not counted."""
        return [wall - (0 if fair else end) for wall, end in zip(f.walls, f.ends, strict=True)]

    each = statistics.median(seconds(mine)) / served
    row: dict[str, Any] = {
        "subject": name,
        "ns_per_op": each / comparison.ops * 1e9,
        "of_cpython": statistics.median(
            x / y for x, y in zip(seconds(mine), seconds(base), strict=True)
        ),
        "requests": served * len(mine.walls),
        "wall_seconds": sum(seconds(mine)),
        "requests_per_second": 1 / each,
        "cpu_us_per_request": statistics.median(mine.cpus) / served * 1e6,
        "peak_bytes": peak,
    }
    if comparison.ends_after:
        row["end_us"] = statistics.median(mine.ends) / (served // comparison.ends_after) * 1e6
    for key, percentile in PERCENTILES.items():
        row[key] = pauses.get_value_at_percentile(percentile)
    row["profile"] = [
        [item.percentile_level_iterated_to, item.value_iterated_to]
        for item in pauses.get_percentile_iterator(5)
    ]
    return row


if __name__ == "__main__":
    print_peak(sys.argv[1], sys.argv[2] == "1", sys.argv[3], int(sys.argv[4]))
