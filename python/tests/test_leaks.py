"""Nothing is kept: references, allocated blocks and memory stand still while calls are repeated."""

import functools
import gc
import sys
import time

import numpy
import pytest

import tenure

USES = 100


def refused(call):
    """Without pytest, which keeps things."""
    try:
        call()
    except (ValueError, MemoryError, BufferError, TypeError):
        return
    raise AssertionError("not refused")


def allocated():
    time.sleep(0.02)  # the decay thread forgets the pools that died
    gc.collect()
    return sys.getallocatedblocks()


def use_arena():
    with tenure.Arena(name="leak", limit=1 << 20) as arena:
        block = arena.alloc(10)
        block[:] = bytes(10)
        mark = arena.mark()
        memoryview(arena.alloc(5)).release()
        arena.rewind(mark)
        list(arena.alloc_many(4, 8))
        arena.copy(b"abc")[0:2]
        arena.stats()
        numpy.ndarray(4, numpy.uint8, buffer=arena.alloc(4))
        array = arena.empty((2, 2))
        for wrong in (
            lambda: arena.alloc(-1),
            lambda: arena.alloc(1 << 70),
            arena.reset,
            lambda: arena.alloc(2 << 20),
            lambda: block["a"],
            lambda: arena.empty(1, object),
        ):
            refused(wrong)
        del array
        arena.reset()
        refused(lambda: block[0])


def use_failing_arena():
    for options in ({"capacity": 1, "limit": 1}, {"limit": -1}, {"no": 1}):
        refused(functools.partial(tenure.Arena, **options))


def use_pools():
    with tenure.Slab(50, name="leak") as slab:
        block = slab.alloc()
        memoryview(slab.alloc()).release()
        slab.free(block)
        refused(lambda: slab.free(block))
    with tenure.BufferPool(name="leak") as buffers:
        numpy.ndarray(4, numpy.uint8, buffer=buffers.get(5000))
        buffers.get(100)
        refused(lambda: buffers.get(1 << 70))
    with tenure.Pool(list, reset=list.clear, prefill=3, max=4, decay=1000) as pool:
        with pool.lease() as used:
            used.append(pool)
        held = [pool.get() for _ in range(6)]
        for each in held:
            pool.put(each)
        refused(lambda: pool.put(None))
        pool.lease().__enter__()


def use_scopes():
    with tenure.Scope("root") as root:
        child = root.scope("child")
        child.defer(child.copy, b"late")
        child.alloc(10)
        root.adopt(child.scope("leaf"))


@pytest.mark.parametrize("use", [use_arena, use_failing_arena, use_pools, use_scopes])
def test_nothing_is_kept(use):
    for _ in range(20):
        use()
    grown = []
    for _ in range(8):
        before = allocated()
        for _ in range(USES):
            use()
        grown.append(allocated() - before)
    assert min(grown) < USES / 2, grown  # one block kept in every use would make it USES


def test_references_of_shared_objects():
    with tenure.Arena() as arena:
        before = sys.getrefcount(arena), sys.getrefcount(tenure.Block), sys.getrefcount(None)
        for _ in range(1000):
            block = arena.alloc(8)
            view = memoryview(block)
            view.release()
            mark = arena.mark()
            arena.rewind(mark)
        del block, view, mark
        after = sys.getrefcount(arena), sys.getrefcount(tenure.Block), sys.getrefcount(None)
        assert after[:2] == before[:2] and abs(after[2] - before[2]) < 100
