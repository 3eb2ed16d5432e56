"""The rules of spec/behaviour.md on watching."""

import subprocess
import sys
import threading

import pytest

import tenure

# Of a free-threaded interpreter that takes the GIL for the module.
WITHOUT_WARNING = ["-W", "ignore:The global interpreter lock:RuntimeWarning"]


def names():
    return [listed.stats.name for listed in tenure.stats()]


def test_named_allocators_are_listed():  # B70
    with tenure.Arena(name="listed arena") as arena, tenure.Slab(64, name="listed slab") as slab:
        unnamed = tenure.Arena()
        arena.alloc(1000)
        block = slab.alloc()
        found = {listed.stats.name: listed for listed in tenure.stats()}
        assert found["listed arena"].kind == "arena" and found["listed slab"].kind == "slab"
        assert found["listed arena"].stats.live_bytes >= 1000 and found["listed slab"].depth == 0
        assert names().count("listed arena") == 1 and "arena" not in names()
        assert len({listed.id for listed in found.values()}) == len(found)
        del block, unnamed
    assert "listed arena" not in names() and "listed slab" not in names()


def test_figures_while_others_work():  # B70
    stop = threading.Event()

    def work():
        while not stop.is_set():
            with tenure.Arena(name="worker") as arena:
                arena.alloc(100_000)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(300):
        assert names().count("worker") <= 3
    stop.set()
    for thread in threads:
        thread.join()


def test_growth_is_reported_once():  # B72
    found, told = [], threading.Event()

    def report(listed, message):
        found.append((listed.stats.name, message))
        told.set()
        raise KeyError("the callback's own")

    with tenure.Arena(name="grows") as grows, tenure.Arena(name="is reset") as steady:
        unraisable = []
        before, sys.unraisablehook = sys.unraisablehook, unraisable.append
        tenure.watch(report, interval=0.02, growing=0.2, least_bytes=1)
        try:
            for _ in range(500):
                grows.alloc(5000)
                steady.alloc(5000)
                steady.reset()
                if told.wait(0.02):
                    break
        finally:
            tenure.watch(None)
            sys.unraisablehook = before
        assert [name for name, _ in found] == ["grows"] and "never reset" in found[0][1]
        assert len(unraisable) == 1


def test_wrong_callbacks():
    with pytest.raises(TypeError):
        tenure.watch(1)
    tenure.watch(None)


def test_the_live_view_and_the_watch_end_with_the_interpreter():
    program = """
import tenure, time
a = tenure.Arena(name='x')
tenure.live()
tenure.watch(print, interval=0.001, growing=0.01, least_bytes=1)
for _ in range(50):
    a.alloc(5000)
    time.sleep(0.001)
"""
    done = subprocess.run(
        [sys.executable, *WITHOUT_WARNING, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0 and done.stderr == "" and done.stdout.count("grew from") == 1
