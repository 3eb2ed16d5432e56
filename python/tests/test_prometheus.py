"""The figures as Prometheus scrapes them."""

import gc
import os
import sys
import tracemalloc
import urllib.request

import numpy
import pytest

import tenure

prometheus_client = pytest.importorskip("prometheus_client")
parser = pytest.importorskip("prometheus_client.parser")
pytest.importorskip("tenure.prometheus")


@pytest.fixture
def scrape():
    """Returns a function that scrapes a server and returns values by name and labels."""
    registry = prometheus_client.CollectorRegistry()
    collector = tenure.prometheus.register(registry)
    server, thread = prometheus_client.start_http_server(0, "127.0.0.1", registry)

    def values():
        address = f"http://127.0.0.1:{server.server_port}/metrics"
        with urllib.request.urlopen(address, timeout=10) as answer:
            text = answer.read().decode()
        return {
            (sample.name, *sample.labels.values()): sample.value
            for family in parser.text_string_to_metric_families(text)
            for sample in family.samples
        }

    yield values
    server.shutdown()
    server.server_close()
    thread.join()
    collector.close()
    collector.close()


def test_allocators(scrape):
    with (
        tenure.Arena(name="scraped") as one,
        tenure.Arena(name="scraped") as other,
        tenure.Pool(bytearray, name="objects", prefill=3, object_bytes=100) as pool,
    ):
        one.alloc(1000)
        other.alloc(5000)
        other.reset()
        other.alloc(200_000)
        held = pool.get()
        values = scrape()
        assert values["tenure_allocators", "arena", "scraped"] == 2
        assert values["tenure_live_bytes", "arena", "scraped"] >= 201_000
        committed = one.stats().committed_bytes + other.stats().committed_bytes
        assert values["tenure_committed_bytes", "arena", "scraped"] == committed
        assert values["tenure_resets_total", "arena", "scraped"] == 1
        assert values["tenure_live_objects", "pool", "objects"] == 1
        assert values["tenure_cached_bytes", "pool", "objects"] == 200
        assert values["tenure_refills_total", "pool", "objects"] == 3
        pool.put(held)
    del one, other, pool
    assert ("tenure_allocators", "arena", "scraped") not in scrape()


def test_pauses_of_the_garbage_collector(scrape):
    gc.collect()
    before = scrape()
    for _ in range(5):
        gc.collect()
    after = scrape()
    name = "tenure_python_gc_pause_seconds"
    assert after[name + "_count",] >= before[name + "_count",] + 5
    assert after[name + "_sum",] > before[name + "_sum",]
    assert after[name + "_bucket", "+Inf"] == after[name + "_count",]


def test_tracemalloc_and_malloc(scrape):
    without = scrape()
    assert ("tenure_python_traced_bytes",) not in without
    if sys.getallocatedblocks():
        assert without["tenure_python_allocated_blocks",] > 1000
    assert without["tenure_process_resident_bytes",] > 1 << 20
    tracemalloc.start()
    try:
        kept = bytearray(3 << 20)
        values = scrape()
        assert values["tenure_python_traced_bytes",] >= len(kept)
        assert values["tenure_python_traced_peak_bytes",] >= values["tenure_python_traced_bytes",]
        assert values["tenure_python_tracemalloc_bytes",] > 0
    finally:
        tracemalloc.stop()


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or "LD_PRELOAD" in os.environ, reason="mallinfo2 is glibc's"
)
def test_the_malloc_of_the_process(scrape):
    before = scrape()
    array = numpy.ones(8 << 20)
    after = scrape()
    for name in ("tenure_process_malloc_allocated_bytes", "tenure_process_malloc_held_bytes"):
        grown = after[name, "glibc"] - before[name, "glibc"]
        assert grown >= 0.99 * array.nbytes  # other blocks are freed meanwhile


def test_names_are_bounded(monkeypatch):
    monkeypatch.setattr(tenure.prometheus, "NAMES_MOST", 3)
    arenas = [tenure.Arena(name=f"bounded {i}") for i in range(20)]
    for i, arena in enumerate(arenas):
        arena.alloc(100_000 * (i + 1))
    gauges = {
        (sample.labels["kind"], sample.labels["name"]): sample.value
        for metric in tenure.prometheus.Collector().collect()
        if metric.name == "tenure_allocators"
        for sample in metric.samples
    }
    assert gauges["arena", "other"] >= 17 and len(gauges) <= 3 + len({kind for kind, _ in gauges})


def test_closing_ends_the_timing():
    before = len(gc.callbacks)
    collector = tenure.prometheus.Collector()
    assert len(gc.callbacks) == before + 1
    collector.close()
    assert len(gc.callbacks) == before
