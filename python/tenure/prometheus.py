"""Tenure's figures for Prometheus, beside those of CPython and of the process's malloc.

    import prometheus_client, tenure.prometheus

    tenure.prometheus.register()
    prometheus_client.start_http_server(9000)

The names and labels are those of `tenure-top --prometheus`. Needs the extra: pip install
'tenure[prometheus]'."""

from __future__ import annotations

import bisect
import gc
import itertools
import sys
import time
import tracemalloc
from collections.abc import Iterator
from typing import Any

from prometheus_client.core import (
    REGISTRY,
    CollectorRegistry,
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

import tenure
from tenure import _core

NAMES_MOST = 200  # of kinds and names together; the smallest beyond are added up as "other"
PAUSE_BOUNDS = [10.0**-5 * step * 10**power for power in range(5) for step in (1, 2, 5)]  # seconds

# Field of Stats, metric, help.
GAUGES = [
    ("live_bytes", "live_bytes", "Bytes handed out."),
    ("live_count", "live_objects", "Blocks or objects handed out, where they are counted."),
    ("cached_bytes", "cached_bytes", "Bytes that are free and ready for the next block."),
    ("reserved_bytes", "reserved_bytes", "Address space held."),
    ("committed_bytes", "committed_bytes", "Bytes taken from the source of memory."),
    ("peak_bytes", "peak_bytes", "The most live bytes, sampled."),
    ("chunk_count", "chunks", "Chunks held."),
    ("slot_count", "slots", "Slots in all chunks; of a pool, objects built."),
]
COUNTERS = [
    ("refills", "refills", "Times that a chunk was brought in, a magazine filled or an object built."),
    ("resets", "resets", "Times that allocators were reset."),
]


class Collector:
    """Collects at each scrape; between two it only times garbage collections.

    close  ends that; a collector that is registered is unregistered first"""

    def __init__(self) -> None:
        self._begun: int | None = None
        self._pauses = [0] * (len(PAUSE_BOUNDS) + 1)
        self._pause_ns = 0
        gc.callbacks.append(self._on_gc)

    def close(self) -> None:
        """Ends the timing of garbage collections. Closing again does nothing."""
        if self._on_gc in gc.callbacks:
            gc.callbacks.remove(self._on_gc)

    def _on_gc(self, phase: str, info: dict[str, Any]) -> None:
        if phase == "start":
            self._begun = time.perf_counter_ns()
        elif self._begun is not None:
            took = time.perf_counter_ns() - self._begun
            self._begun = None
            self._pause_ns += took
            self._pauses[bisect.bisect_left(PAUSE_BOUNDS, took / 1e9)] += 1

    def collect(self) -> Iterator[Metric]:
        yield from _allocators()
        yield from _process()
        yield from self._collector()
        yield from _python()

    def _collector(self) -> Iterator[Metric]:
        bounds = [*map(repr, PAUSE_BOUNDS), "+Inf"]
        counts = list(zip(bounds, itertools.accumulate(self._pauses), strict=True))
        yield HistogramMetricFamily(
            "tenure_python_gc_pause_seconds",
            "Garbage collections of CPython since the collector of these figures was made.",
            counts,
            self._pause_ns / 1e9,
        )


def _sums() -> dict[tuple[str, str], list[tenure.Listed]]:
    """The listed allocators by kind and name."""
    groups: dict[tuple[str, str], list[tenure.Listed]] = {}
    for listed in tenure.stats():
        groups.setdefault((listed.kind, listed.stats.name), []).append(listed)
    if len(groups) > NAMES_MOST:
        largest = sorted(
            groups.items(), key=lambda item: -sum(each.stats.committed_bytes for each in item[1])
        )
        groups = dict(largest[:NAMES_MOST])
        for (kind, _), members in largest[NAMES_MOST:]:
            groups.setdefault((kind, "other"), []).extend(members)
    return groups


def _allocators() -> Iterator[Metric]:
    groups = _sums()
    labels = ["kind", "name"]
    allocators = GaugeMetricFamily("tenure_allocators", "Listed allocators.", labels=labels)
    for key, members in groups.items():
        allocators.add_metric(key, len(members))
    yield allocators
    for family, table in ((GaugeMetricFamily, GAUGES), (CounterMetricFamily, COUNTERS)):
        for field, name, text in table:
            metric = family(f"tenure_{name}", text, labels=labels)
            for key, members in groups.items():
                metric.add_metric(key, sum(getattr(each.stats, field) for each in members))
            yield metric


def _process() -> Iterator[Metric]:
    resident, malloc, allocated, held = _core._process()
    if resident:
        yield GaugeMetricFamily(
            "tenure_process_resident_bytes", "Resident memory of the process.", resident
        )
    for name, text, value in (
        ("allocated", "Bytes that malloc has handed out.", allocated),
        ("held", "Bytes that malloc holds from the system.", held),
    ):
        if malloc and value is not None:
            metric = GaugeMetricFamily(
                f"tenure_process_malloc_{name}_bytes", text, labels=["allocator"]
            )
            metric.add_metric([malloc], value)
            yield metric


def _python() -> Iterator[Metric]:
    if blocks := sys.getallocatedblocks():  # 0 where CPython does not count them
        yield GaugeMetricFamily(
            "tenure_python_allocated_blocks", "Blocks that CPython's allocator has handed out.", blocks
        )
    if not tracemalloc.is_tracing():
        return
    now, peak = tracemalloc.get_traced_memory()
    yield GaugeMetricFamily(
        "tenure_python_traced_bytes", "Bytes of the blocks that tracemalloc follows.", now
    )
    yield GaugeMetricFamily("tenure_python_traced_peak_bytes", "Their peak.", peak)
    yield GaugeMetricFamily(
        "tenure_python_tracemalloc_bytes",
        "Bytes that tracemalloc itself takes.",
        tracemalloc.get_tracemalloc_memory(),
    )


def register(registry: CollectorRegistry = REGISTRY) -> Collector:
    """Adds a Collector to the registry and returns it."""
    collector = Collector()
    registry.register(collector)
    return collector
