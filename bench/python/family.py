"""family.py [--rounds N] [--only PART] [--out FILE]   measures the Python package.

As in bench/harness: every workload in a process of its own, all subjects once a round, the order
rotated; a ratio is that of two subjects in the same round, published as the median with a 95 %
interval. A subject is a function that does its work `repeats` times and returns seconds."""

from __future__ import annotations

import argparse
import collections
import contextvars
import io
import itertools
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import threading
import time

import tenure

clock = time.perf_counter
BLOCKS = 200_000
REQUESTS = 50_000
PERCENTILES = [("p50_ns", 0.5), ("p99_ns", 0.99), ("p999_ns", 0.999), ("max_ns", 1.0)]


class Workload:
    """Subjects are made by functions, so that nothing is imported or allocated for another workload."""

    def __init__(self, name, ops, subjects, threads=1, least_seconds=0.03, fields=None):
        self.name, self.ops, self.subjects, self.threads = name, ops, subjects, threads
        self.least_seconds, self.fields = least_seconds, fields


def comparisons():
    """The subjects of `python -m tenure compare`."""
    from tenure.compare import _subjects

    return _subjects


# ---- blocks ----


def timed(work):
    def run(repeats):
        begin = clock()
        for _ in range(repeats):
            work()
        return clock() - begin

    return run


def kept(alloc, end=lambda: None, count=BLOCKS):
    """Blocks of 96 bytes that live until the last is made, then die, then `end`."""

    def work():
        list(map(alloc, itertools.repeat(96, count)))
        end()

    return timed(work)


def kept_in_arena():
    arena = tenure.Arena()
    return kept(arena.alloc, arena.reset)


def kept_in_bytearray_arena():
    arena = comparisons().BytearrayArena(BLOCKS * 96)
    return kept(arena.alloc, arena.reset)


def kept_by_ctypes():
    libc = comparisons().libc

    def work():
        for block in list(map(libc.malloc, itertools.repeat(96, BLOCKS))):
            libc.free(block)

    return timed(work)


def reset_time():
    """Microseconds of a reset behind 200,000 Blocks that are gone."""
    arena, times = tenure.Arena(), []
    for _ in range(21):
        list(map(arena.alloc, itertools.repeat(96, BLOCKS)))
        begin = clock()
        arena.reset()
        times.append(clock() - begin)
    return {"tenure": {"reset_us": statistics.median(times) * 1e6}}


def many():
    arena = tenure.Arena()

    def work():
        arena.alloc_many(1000, 96)
        arena.reset()

    return timed(work)


def many_written():
    arena = tenure.Arena()

    def work():
        for block in arena.alloc_many(1000, 96):
            block[0] = 1
        arena.reset()

    return timed(work)


def many_bytearrays_written():
    def work():
        for block in [bytearray(96) for _ in range(1000)]:
            block[0] = 1

    return timed(work)


def dropped(alloc):
    return timed(lambda: collections.deque(map(alloc, itertools.repeat(96, 1000)), maxlen=0))


def dropped_in_arena():
    arena = tenure.Arena()

    def work():
        collections.deque(map(arena.alloc, itertools.repeat(96, 1000)), maxlen=0)
        arena.reset()

    return timed(work)


# ---- pools ----


def on_threads(work, count=4):
    def run(repeats):
        threads = [threading.Thread(target=work, args=(repeats,)) for _ in range(count)]
        begin = clock()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return clock() - begin

    return run


def pooled():
    State, use = comparisons().State, comparisons().use
    pool = tenure.Pool(State)
    get, put = pool.get, pool.put

    def work(repeats):
        for _ in range(repeats * 1000):
            request = get()
            use(request)
            put(request)

    return on_threads(work)


def leased():
    State, use = comparisons().State, comparisons().use
    pool = tenure.Pool(State)

    def work(repeats):
        for _ in range(repeats * 1000):
            with pool.lease() as request:
                use(request)

    return on_threads(work)


def in_a_deque():
    State, use = comparisons().State, comparisons().use
    idle = collections.deque()
    get, put = idle.pop, idle.append

    def work(repeats):
        for _ in range(repeats * 1000):
            try:
                request = get()
            except IndexError:
                request = State()
            use(request)
            put(request)

    return on_threads(work)


def fresh():
    State, use = comparisons().State, comparisons().use

    def work(repeats):
        for _ in range(repeats * 1000):
            use(State())

    return on_threads(work)


def received(get):
    source = io.BytesIO(bytes(64))
    seek, readinto = source.seek, source.readinto

    def work():
        for _ in itertools.repeat(None, 1000):
            buffer = get(65536)
            seek(0)
            readinto(buffer)

    return timed(work)


# ---- requests: a tree of 80 nodes, each with a link to its parent and every byte written ----

REQUEST_SUBJECTS = {
    "tenure": "tree_in_tenure",
    "tenure-many": "tree_in_one_call",
    "cpython": "tree_of_objects",
    "bytearray": "tree_of_bytearrays",
    "ctypes": "tree_by_malloc",
}


def measure_requests(rounds):
    """Each request is timed by itself, a part of them in each round."""
    import numpy

    requests = {
        name: getattr(comparisons(), make)(True).request for name, make in REQUEST_SUBJECTS.items()
    }
    part = REQUESTS // rounds
    times = {name: [] for name in requests}
    means = {name: [] for name in requests}
    for order in orders(list(requests), rounds):
        for name in order:
            request = requests[name]
            for _ in range(50):
                request()
            mine = []
            for _ in range(part):
                begin = time.perf_counter_ns()
                request()
                mine.append(time.perf_counter_ns() - begin)
            times[name] += mine
            means[name].append(statistics.fmean(mine))
    rows = rows_of("py-request", 1, means)
    for row in rows:
        for field, share in PERCENTILES:
            row[field] = float(numpy.quantile(times[row["subject"]], share))
    mine = next(row for row in rows if row["subject"] == "tenure")
    for peer in ("cpython", "ctypes"):
        other = next(row for row in rows if row["subject"] == peer)
        mine[f"p999_of_{peer}"] = mine["p999_ns"] / other["p999_ns"]
    return rows


# ---- NumPy ----


def arrays(size, pool):
    import numpy

    context = contextvars.copy_context()
    a = numpy.ones(size // 8)
    b = numpy.ones(size // 8)
    if pool:
        # The subject lives as long as the process, and so does its pool.
        context.run(tenure.numpy_pool().__enter__)

    def work(repeats):
        c = None
        begin = clock()
        for _ in range(repeats):
            c = a * 2 + b
        del c
        return clock() - begin

    return lambda repeats: context.run(work, repeats)


def numpy_workload(size):
    unit = f"{size >> 20}m" if size >= 1 << 20 else f"{size >> 10}k" if size >= 1 << 10 else f"{size}"
    return Workload(
        f"py-numpy-{unit}",
        1,
        {"tenure": lambda: arrays(size, True), "cpython": lambda: arrays(size, False)},
    )


def add_worst(rows):
    """The size at which the pool does worst against NumPy's default."""
    mine = [
        row for row in rows if row["workload"].startswith("py-numpy-") and row["subject"] == "tenure"
    ]
    if mine:
        worst = max(mine, key=lambda row: row["ratio"]["cpython"]["median"])
        rows.append({**worst, "workload": "py-numpy-worst"})


WORKLOADS = [
    Workload(
        "py-alloc-96",
        BLOCKS,
        {
            "tenure": kept_in_arena,
            "bytearray": lambda: kept(bytearray),
            "bytearray-arena": kept_in_bytearray_arena,
            "ctypes": kept_by_ctypes,
        },
        fields=reset_time,
    ),
    Workload(
        "py-alloc-many-96", 1000, {"tenure": many, "bytearray": lambda: kept(bytearray, count=1000)}
    ),
    Workload(
        "py-alloc-many-96-written", 1000, {"tenure": many_written, "bytearray": many_bytearrays_written}
    ),
    Workload("py-block", 1000, {"tenure": dropped_in_arena, "bytearray": lambda: dropped(bytearray)}),
    Workload(
        "py-pool-4k",
        4000,
        {"tenure": pooled, "tenure-lease": leased, "deque": in_a_deque, "fresh": fresh},
        threads=4,
    ),
    Workload(
        "py-buffer-64k",
        1000,
        {"tenure": lambda: received(tenure.BufferPool().get), "bytearray": lambda: received(bytearray)},
    ),
    *[numpy_workload(1 << shift) for shift in range(7, 28)],
]


# ---- rounds ----


def orders(names, rounds):
    for i in range(rounds):
        turned = names[i % len(names) :] + names[: i % len(names)]
        yield turned if i % 2 else turned[::-1]


def interval(values):
    """Median with the 95 % interval of a sign test."""
    values = sorted(values)
    n = len(values)
    low, chance = 0, 0.5**n
    while low < (n - 1) // 2 and chance + math.comb(n, low + 1) * 0.5**n <= 0.025:
        low += 1
        chance += math.comb(n, low) * 0.5**n
    return {"median": statistics.median(values), "low": values[low], "high": values[n - 1 - low]}


def rows_of(workload, threads, times):
    """times: nanoseconds of an operation, by subject, one for each round."""
    return [
        {
            "workload": workload,
            "subject": subject,
            "threads": threads,
            "ns_per_op": statistics.median(mine),
            "ratio": {
                peer: interval([x / y for x, y in zip(mine, other, strict=True)])
                for peer, other in times.items()
                if peer != subject
            },
        }
        for subject, mine in times.items()
    ]


def measure(workload, rounds):
    runs = {name: make() for name, make in workload.subjects.items()}
    repeats = {}
    for name, run in runs.items():
        repeats[name] = 1
        while (took := run(repeats[name])) < workload.least_seconds:
            repeats[name] *= 2 if took < workload.least_seconds / 2 else 1
            if took >= workload.least_seconds / 2:
                break
    times = {name: [] for name in runs}
    for order in orders(list(runs), rounds):
        for name in order:
            count = repeats[name]
            times[name].append(runs[name](count) / count / workload.ops * 1e9)
    rows = rows_of(workload.name, workload.threads, times)
    fields = workload.fields() if workload.fields else {}
    return [{**row, **fields.get(row["subject"], {})} for row in rows]


def in_this_process(name, rounds):
    if name == "py-request":
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
        return measure_requests(rounds)
    workload = next(w for w in WORKLOADS if w.name == name)
    if workload.threads == 1:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    return measure(workload, rounds)


def show(rows):
    for row in rows:
        ratios = "  ".join(
            f"{q['median']:.3f} [{q['low']:.3f}, {q['high']:.3f}] of {peer}"
            for peer, q in row["ratio"].items()
        )
        more = "  ".join(
            f"{key} {value:.4g}"
            for key, value in row.items()
            if isinstance(value, float) and key != "ns_per_op"
        )
        print(
            f"{row['workload']:26} {row['subject']:16} {row['ns_per_op']:12.1f} ns  {ratios}  {more}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", default="build/bench/python.json", type=pathlib.Path)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(in_this_process(options.one, options.rounds)))
        return
    rows = []
    for name in [workload.name for workload in WORKLOADS] + ["py-request"]:
        if options.only in name:
            done = subprocess.run(
                [sys.executable, __file__, "--one", name, "--rounds", str(options.rounds)],
                check=True,
                stdout=subprocess.PIPE,
                text=True,
            )
            rows += json.loads(done.stdout)
            show(row for row in rows if row["workload"] == name)
    add_worst(rows)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


if __name__ == "__main__":
    main()
