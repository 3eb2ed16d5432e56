"""Slabs, pools of objects and pools of buffers: the rules of spec/behaviour.md that they share."""

import asyncio
import gc
import multiprocessing
import os
import socket
import threading
import time
import weakref

import numpy
import pytest

import tenure

RELEASE = tenure._core.mode == 0


def wait_until(condition):
    for _ in range(500):
        if condition():
            return True
        time.sleep(0.02)
    return False


# ---- slab ----


def test_slab_counts():  # B27 B34
    with tenure.Slab(20, name="counted") as slab:
        blocks = [slab.alloc() for _ in range(1000)]
        assert slab.stats().live_count == 1000 and slab.stats().slot_bytes == 32
        for i, block in enumerate(blocks):
            block[:] = i.to_bytes(20, "little")
        assert all(int.from_bytes(bytes(b), "little") == i for i, b in enumerate(blocks))
        slab.free(blocks.pop())
        del blocks[:500], block
        assert slab.stats().live_count == 499 and slab.verify()


@pytest.mark.skipif(not RELEASE, reason="debug keeps slots in quarantine")
def test_slab_hands_out_the_last_slot():  # B28
    slab = tenure.Slab(64)
    block = slab.alloc()
    block[:3] = b"old"
    slab.free(block)
    assert slab.alloc()[:3] == b"old"


def test_slab_free_is_refused():
    slab, other = tenure.Slab(8, name="one"), tenure.Slab(8)
    block = slab.alloc()
    view = memoryview(block)
    with pytest.raises(BufferError, match="slab 'one': no free while 1 buffers"):
        slab.free(block)
    with pytest.raises(BufferError):
        slab.close()
    view.release()
    with pytest.raises(ValueError, match="another's"):
        other.free(block)
    with pytest.raises(TypeError):
        slab.free(None)
    slab.free(block)
    for use in (lambda: slab.free(block), lambda: block[0], lambda: memoryview(block)):
        with pytest.raises(tenure.StaleBlockError):
            use()
    slab.close()
    with pytest.raises(ValueError, match="slab 'one' is closed"):
        slab.alloc()


def test_lent_slots_stay_until_the_block_dies():
    for end in (tenure.Slab.free, lambda slab, block: slab.close()):
        slab = tenure.Slab(1000)
        block = slab.alloc()
        array = numpy.ndarray(1000, numpy.uint8, buffer=block)
        array[:] = 1
        end(slab, block)
        del block
        if end is tenure.Slab.free:
            slab.alloc()[:] = bytes([2]) * 1000
        assert array.sum() == 1000
        del slab
        assert array.sum() == 1000


@pytest.mark.parametrize(
    "size, error",
    [
        (0, ValueError),
        (-1, ValueError),
        (1 << 60, (ValueError, MemoryError)),
        (1 << 80, MemoryError),
        ("8", TypeError),
    ],
)
def test_slab_sizes(size, error):  # B5 B11
    with pytest.raises(error):
        tenure.Slab(size).alloc()


def test_slab_limit():  # B9 B7
    slab = tenure.Slab(1000, limit=1 << 18)
    blocks = []
    with pytest.raises(MemoryError):
        while True:
            blocks.append(slab.alloc())
    assert len(blocks) > 100 and slab.stats().committed_bytes <= 1 << 18
    blocks.pop()
    blocks.append(slab.alloc())


# ---- buffer pool ----


def test_buffers_come_back():  # B44
    with tenure.BufferPool(name="io") as pool:
        first = pool.get(65536)
        first[0] = 7
        where = numpy.frombuffer(first, numpy.uint8).ctypes.data
        del first
        assert pool.stats().cached_bytes >= 65536 and pool.stats().live_bytes == 0
        again = pool.get(65000)
        assert numpy.frombuffer(again, numpy.uint8).ctypes.data == where and len(again) == 65000
        assert pool.verify()


def test_buffer_sizes():  # B1 B2 B3
    pool = tenure.BufferPool(max_bytes=1 << 20)
    sizes = [0, 1, 1023, 1024, 1025, 4096, 5000, 65535, 65536, 65537, 1 << 20, (256 << 20) + 1]
    for _ in range(3):
        buffers = [pool.get(size) for size in sizes]
        for i, buffer in enumerate(buffers):
            if len(buffer):
                buffer[0] = buffer[-1] = i
        assert all(b[0] == b[-1] == i for i, b in enumerate(buffers) if len(b))
        assert [len(b) for b in buffers] == sizes
        waste = pool.stats().live_bytes - sum(sizes)
        assert waste <= sum(sizes) / 4 + len(sizes) * 4096
        del buffers, buffer
        assert pool.stats().cached_bytes <= 3 << 20 and pool.stats().live_bytes == 0


def test_every_class_of_buffers():
    pool = tenure.BufferPool()
    for shift in range(8, 21):
        for size in [
            (1 << shift) * quarters // 4 + more for quarters in range(4, 8) for more in (0, 1)
        ]:
            pool.get(size)[:] = bytes(size)
            kept = pool.stats().cached_bytes
            pool.get(size)[:] = bytes(size)
            assert size <= kept == pool.stats().cached_bytes, size
            assert pool.trim() <= max(size * 5 // 4 + 1, 256)


def test_bound_of_buffers():  # B48
    pool = tenure.BufferPool(max_bytes=200_000)
    buffers = [pool.get(50_000) for _ in range(100)]
    buffers.clear()
    assert 0 < pool.trim() <= 200_000 and pool.trim() == 0


def test_buffers_decay_without_traffic():  # B49
    pool = tenure.BufferPool(decay=0.05)
    buffers = [pool.get(10_000) for _ in range(100)]
    buffers.clear()
    assert pool.stats().cached_bytes >= 1_000_000
    assert wait_until(lambda: pool.stats().committed_bytes < 100_000)


def test_buffers_that_are_used_stay():  # B49
    pool = tenure.BufferPool(decay=0.05)
    buffers = [pool.get(10_000) for _ in range(100)]
    buffers.clear()
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        pool.get(10_000)
    assert pool.stats().refills <= 110 and 10_000 <= pool.stats().cached_bytes < 200_000


def test_closed_buffer_pool():
    pool = tenure.BufferPool(name="closed")
    held = pool.get(100)
    view = memoryview(held)
    with pytest.raises(BufferError):
        pool.close()
    view.release()
    array = numpy.ndarray(100, numpy.uint8, buffer=held)
    array[:] = 1
    pool.close()
    pool.close()
    assert not held.live and array.sum() == 100
    for use in (lambda: pool.get(1), pool.trim, pool.stats, pool.verify, pool.__enter__):
        with pytest.raises(ValueError, match="buffer pool 'closed' is closed"):
            use()
    del held, array, view


def test_recv_into():
    left, right = socket.socketpair()
    pool = tenure.BufferPool()
    with left, right:
        for _ in range(100):
            left.send(b"payload")
            buffer = pool.get(65536)
            assert right.recv_into(buffer) == 7 and buffer[:7] == b"payload"
    del buffer
    assert pool.stats().refills <= 2


def test_asyncio_buffered_protocol():
    pool = tenure.BufferPool()

    class Echo(asyncio.BufferedProtocol):
        def connection_made(self, transport):
            self.transport = transport

        def get_buffer(self, hint):
            self.buffer = pool.get(65536)
            return self.buffer

        def buffer_updated(self, count):
            self.transport.write(self.buffer[:count])

    async def talk():
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Echo, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        for i in range(50):
            writer.write(b"%04d" % i)
            assert await reader.readexactly(4) == b"%04d" % i
        writer.close()
        server.close()

    asyncio.run(talk())
    assert pool.stats().refills <= 4


# ---- pool ----


class Thing:
    def __init__(self):
        self.uses = 0


def test_objects_come_back():  # B43 B44
    pool = tenure.Pool(Thing, prefill=0, name="things")
    with pool.lease() as first:
        first.uses += 1
        with pool.lease() as second:
            assert second is not first and pool.out == 2
    for _ in range(10):
        with pool.lease() as thing:
            assert thing is first  # the one put last
    assert (pool.idle, pool.out, pool.built, pool.name) == (2, 0, 2, "things")


def test_prefill():
    built = []
    pool = tenure.Pool(lambda: built.append(1) or Thing(), prefill=5, max=3)
    assert len(built) == 3 and pool.idle == 3


def test_reset_runs_in_each_put():  # B45
    resets = []
    pool = tenure.Pool(Thing, reset=resets.append, prefill=0)
    for count in range(1, 5):
        with pool.lease() as thing:
            assert len(resets) == count - 1
        assert resets == [thing] * count


def test_errors_of_callbacks():  # B46
    fails = True

    def build():
        if fails:
            raise OSError("no thing")
        return Thing()

    pool = tenure.Pool(build, prefill=0)
    with pytest.raises(OSError, match="no thing"):
        pool.get()
    assert (pool.idle, pool.out, pool.built) == (0, 0, 0)
    fails = False
    pool.put(pool.get())
    assert pool.idle == 1
    with pytest.raises(OSError):
        tenure.Pool(lambda: (_ for _ in ()).throw(OSError()))

    def refuse(thing):
        raise KeyError

    pool = tenure.Pool(Thing, reset=refuse, prefill=0)
    with pytest.raises(KeyError):
        with pool.lease():
            pass
    assert (pool.idle, pool.out, pool.built) == (0, 0, 0)


def test_every_object_ends():  # B47
    pool = tenure.Pool(Thing, max=10, prefill=0)
    things = [pool.get() for _ in range(20)]
    ends = [weakref.ref(thing) for thing in things]
    for thing in things:
        pool.put(thing)
    del thing
    things.clear()
    assert pool.idle == 10 and sum(end() is not None for end in ends) == 10  # B48
    assert pool.trim() == 10 and not any(end() for end in ends)  # B50
    held = pool.get()
    pool.close()
    pool.put(held)
    assert pool.idle == 0
    with pytest.raises(ValueError, match="is closed"):
        pool.get()


def test_wrong_use_of_a_pool():
    pool = tenure.Pool(Thing, prefill=0, name="p")
    with pytest.raises(ValueError, match="no object is out"):
        pool.put(Thing())
    lease = pool.lease()
    with pytest.raises(ValueError, match="not entered"):
        lease.__exit__(None, None, None)
    with lease:
        with pytest.raises(ValueError, match="entered already"):
            lease.__enter__()
    for wrong in (
        lambda: tenure.Pool(None),
        lambda: tenure.Pool(Thing, reset=1),
        lambda: tenure.Pool(),
        lambda: tenure.Pool(Thing, max="1"),
    ):
        with pytest.raises(TypeError):
            wrong()
    for wrong in ({"max": -1}, {"prefill": -1}, {"decay": 0}, {"decay": -1}, {"decay": float("nan")}):
        with pytest.raises(ValueError):
            tenure.Pool(Thing, **wrong)


def test_a_factory_and_a_reset_that_use_their_pool():
    def build():
        calls.append(1)
        if len(calls) < 5:
            pool.put(pool.get())
        return Thing()

    calls = []
    pool = tenure.Pool(build, reset=lambda thing: pool.trim(), prefill=0)
    for _ in range(10):
        with pool.lease(), pool.lease():
            pass
    assert pool.out == 0 and pool.idle <= 4


@pytest.mark.parametrize("traffic", ["none", "one at a time"])
def test_a_burst_decays(traffic):  # B49
    pool = tenure.Pool(Thing, decay=0.1, max=2000)
    burst = [pool.get() for _ in range(1024)]
    for thing in burst:
        pool.put(thing)
    assert pool.idle == 1024

    def steady():
        if traffic != "none":
            with pool.lease():
                pass
        return pool.idle <= (0 if traffic == "none" else 1)

    assert wait_until(steady)
    assert traffic == "none" or pool.built == 1


def test_what_each_window_uses_stays():  # B49
    pool = tenure.Pool(Thing, decay=0.1, prefill=0)
    built = {id(thing) for thing in [pool.get() for _ in range(50)]}
    used = []
    end = time.monotonic() + 1
    while time.monotonic() < end:
        used = [pool.get() for _ in range(50)]
        for thing in used:
            pool.put(thing)
    assert len(built) == 50 and pool.built <= 100 and pool.idle == 50


def test_threads_have_their_own_and_share():  # B37 B38 B44
    pool = tenure.Pool(Thing, prefill=0)
    barrier = threading.Barrier(4)
    mine, foreign = [], []

    def work():
        thing = pool.get()
        barrier.wait()
        pool.put(thing)
        barrier.wait()
        mine.append(pool.get() is thing)
        barrier.wait()
        pool.put(thing)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert mine == [True] * 4 and pool.idle == 4
    foreign = [pool.get() for _ in range(4)]  # of threads that ended
    assert pool.built == 4 and len({id(thing) for thing in foreign}) == 4


def test_hundreds_of_threads():
    pool = tenure.Pool(Thing, prefill=0)

    def work():
        for _ in range(20):
            with pool.lease() as thing:
                thing.uses += 1

    for _ in range(20):
        threads = [threading.Thread(target=work) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert pool.out == 0 and pool.built == pool.idle <= 20
    assert sum(pool.get().uses for _ in range(pool.built)) == 20 * 20 * 20


def test_pools_are_collected():
    class Node:
        pass

    pool = tenure.Pool(Node, prefill=0)
    node = pool.get()
    node.pool = pool
    end = weakref.ref(node)
    pool.put(node)
    del node, pool
    gc.collect()
    assert end() is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_fork():  # B42
    pool = tenure.Pool(Thing, decay=0.05, prefill=0)
    buffers = tenure.BufferPool(decay=0.05)
    held = [pool.get() for _ in range(10)]
    for thing in held:
        pool.put(thing)
    buffers.get(10_000)
    child = os.fork()
    if child == 0:
        buffers.get(10_000)[0] = 1
        with pool.lease():
            pass
        os._exit(0 if wait_until(lambda: pool.idle == 0 and buffers.stats().cached_bytes == 0) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert wait_until(lambda: pool.idle == 0)


def work_in_a_process(number):
    """Uses what the parent had at the fork, or what an import made."""
    block = FORKED_ARENA.copy(bytes([number]) * 100)
    with FORKED_POOL.lease() as thing:
        thing.append(number)
    buffer = FORKED_BUFFERS.get(10_000)
    buffer[:4] = number.to_bytes(4, "little")
    assert FORKED_ARENA.verify() and FORKED_POOL.verify() and FORKED_BUFFERS.verify()
    return sum(bytes(block)) // 100 + int.from_bytes(buffer[:4], "little")


FORKED_ARENA = tenure.Arena(name="forked")
FORKED_POOL = tenure.Pool(list, reset=list.clear, name="forked", decay=0.01)
FORKED_BUFFERS = tenure.BufferPool(name="forked", decay=0.01)


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_multiprocessing(method):  # B42
    FORKED_ARENA.alloc(1000)
    with multiprocessing.get_context(method).Pool(3) as processes:
        assert processes.map(work_in_a_process, range(40), 1) == [2 * i for i in range(40)]
    assert FORKED_ARENA.verify() and FORKED_POOL.verify() and FORKED_BUFFERS.verify()


# ---- figures and properties ----


def test_pool_stats_and_prefill():
    pool = tenure.Pool(list, prefill=2, max=5, name="counted", object_bytes=10, decay=1000)
    first = pool.get()
    pool.prefill(2)
    stats = pool.stats()
    assert (stats.name, stats.live_count, stats.slot_count) == ("counted", 1, 4)
    assert (stats.live_bytes, stats.cached_bytes, stats.committed_bytes) == (10, 30, 40)
    assert stats.refills == 4 and stats.peak_bytes == 40
    pool.prefill(1000)
    assert pool.idle == 5 and pool.verify()
    pool.put(first)
    assert pool.idle == 5 and pool.stats().slot_count == 5 and pool.stats().peak_bytes == 60
    with pytest.raises(ValueError, match="count is negative"):
        pool.prefill(-1)
    with pytest.raises(ValueError, match="object_bytes is negative"):
        tenure.Pool(list, object_bytes=-1)
    pool.close()
    assert pool.verify()
    with pytest.raises(ValueError, match="pool 'counted' is closed"):
        pool.prefill(1)


def test_prefill_that_fails_keeps_what_it_built():
    left = [1, 2]
    pool = tenure.Pool(left.pop, prefill=0)
    with pytest.raises(IndexError):
        pool.prefill(3)
    assert pool.idle == 2 and pool.verify()


def listed_pools():
    return {each.stats.name: each for each in tenure.stats() if each.kind == "pool"}


def test_named_pools_are_listed():
    pools = [tenure.Pool(list, name=f"listed {i}", prefill=i) for i in range(3)]
    unnamed = tenure.Pool(list)
    listed = listed_pools()
    assert [listed[f"listed {i}"].stats.slot_count for i in range(3)] == [0, 1, 2]
    assert unnamed.name not in listed and len({each.id for each in tenure.stats()}) == len(
        tenure.stats()
    )
    for i in range(3):
        assert 0 <= listed[f"listed {i}"].age_ms < 60_000 and listed[f"listed {i}"].depth == 0
    for i in (1, 0, 2):
        pools[i] = None
        assert f"listed {i}" not in listed_pools()


def test_a_dying_pool_is_not_listed():
    """A weak reference's callback runs while the pool dies."""
    seen = []
    pool = tenure.Pool(list, name="dying")
    whose = weakref.ref(pool, lambda _: seen.append("dying" in listed_pools()))
    del pool
    assert seen == [False] and whose() is None


@pytest.mark.parametrize(
    "make",
    [
        tenure.Arena,
        lambda **options: tenure.Slab(8, **options),
        tenure.BufferPool,
        lambda **options: tenure.Pool(list, **options),
        lambda **options: tenure.Scope(**options),
    ],
)
def test_all_are_alike(make):
    with make(name="alike") as one:
        kind = type(one).__name__
        assert repr(one) == f"<tenure.{kind} 'alike'>" and one.name == "alike" and not one.closed
        assert one.stats().name == "alike" and one.verify() is True
        assert type(one).__doc__ and type(one).stats.__doc__ and type(one).close.__doc__
    assert one.closed and repr(one) == f"<tenure.{kind} 'alike', closed>"
    one.close()


# ---- bursts: a pool gives them back in every traffic ----


@pytest.mark.parametrize("at_a_time", [0, 1, 20, 40])
def test_a_burst_comes_back(at_a_time):  # B49
    pool = tenure.Pool(list, prefill=0, max=4096, decay=1000)
    burst = [pool.get() for _ in range(1024)]
    for each in burst:
        pool.put(each)
    assert pool.idle == 1024
    for _ in range(3):  # windows
        for _ in range(5):
            held = [pool.get() for _ in range(at_a_time)]
            for each in held:
                pool.put(each)
        pool._decay()
    assert pool.idle == at_a_time and pool.verify()


@pytest.mark.parametrize("at_a_time", [1, 20, 40])
def test_a_burst_comes_back_from_threads_that_end(at_a_time):  # B49
    """One thread had the burst, others come and go in each window, and some only put."""
    pool = tenure.Pool(list, prefill=0, max=4096, decay=1000)

    def on_a_thread(call):
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()

    held = []
    on_a_thread(lambda: [pool.put(each) for each in [pool.get() for _ in range(1024)]])
    for _ in range(4):
        on_a_thread(lambda: held.extend(pool.get() for _ in range(at_a_time)))
        on_a_thread(lambda: [pool.put(held.pop()) for _ in range(at_a_time)])
        pool._decay()
    assert pool.idle <= 2 * at_a_time and pool.verify()
