"""NumPy's arrays in a pool. The rules of spec/behaviour.md hold for its memory too."""

import gc
import threading

import numpy
import pytest

import tenure


def test_arrays_are_in_the_pool():  # B1 B34
    with tenure.numpy_pool(name="numpy") as pool:
        arrays = [numpy.empty(n, numpy.uint8) for n in (1, 100, 4096, 100_000, 5 << 20)]
        assert pool.stats().live_count == 5 and pool.stats().name == "numpy"
        assert all(a.ctypes.data % 64 == 0 for a in arrays)
        for a in arrays:
            a[:] = 1
        assert sum(int(a.sum()) for a in arrays) == sum(a.size for a in arrays) and pool.verify()
    outside = numpy.empty(100_000)
    assert pool.stats().live_count == 5
    del arrays, a, outside
    assert pool.stats().live_count == 0 and pool.stats().committed_bytes < 100_000


def test_arrays_outlive_the_pool():
    with tenure.numpy_pool() as pool:
        kept = numpy.arange(100_000)
        temporary = kept * 2
        del temporary
        assert pool.stats().cached_bytes > 800_000
    assert pool.stats().cached_bytes < 200_000 and pool.stats().live_bytes > 800_000
    figures = pool._pool
    del pool
    gc.collect()
    assert kept.sum() == 99_999 * 50_000
    del kept
    assert figures.stats().live_count == 0


def test_zeros_and_resizes():  # B20 B54
    with tenure.numpy_pool():
        for size in (10, 1000, 100_000, 1 << 20):
            numpy.empty(size, numpy.uint8)[:] = 255
            assert not numpy.zeros(size, numpy.uint8).any()
            grown = numpy.ones(size, numpy.uint8)
            grown.resize(size * 3, refcheck=False)
            assert grown[:size].all() and not grown[size:].any()
            grown.resize(size // 2, refcheck=False)
            assert grown.all()


def test_odd_shapes():
    """numpy.empty allocates these as if no dimension were 0, and frees them with size 0."""
    with tenure.numpy_pool() as pool:
        for shape in ([2, 0, 2], [0], [0, 1 << 20]):
            numpy.empty(shape)
        assert pool.stats().live_count == 0


def test_limit():  # B7 B9
    with tenure.numpy_pool(limit=1 << 20) as pool:
        kept = numpy.ones(1000)
        with pytest.raises(MemoryError):
            numpy.empty(1 << 20)
        with pytest.raises(MemoryError):
            numpy.zeros(1 << 20)
        assert kept.sum() == 1000 and pool.stats().committed_bytes <= 1 << 20
        numpy.empty(10_000)


def test_nested_pools():
    with tenure.numpy_pool() as outer:
        one = numpy.empty(1000)
        with tenure.numpy_pool() as inner, outer:
            two = numpy.empty(1000)
            with inner:
                three = numpy.empty(1000)
        four = numpy.empty(1000)
        assert outer.stats().live_count == 3 and inner.stats().live_count == 1
    assert [a.size for a in (one, two, three, four)] == [1000] * 4


def test_other_threads_have_their_own():
    with tenure.numpy_pool() as pool:
        made = []
        thread = threading.Thread(target=lambda: made.append(numpy.empty(1000)))
        thread.start()
        thread.join()
        assert pool.stats().live_count == 0
        made = [numpy.empty(1000)]
        thread = threading.Thread(target=made.clear)
        thread.start()
        thread.join()
        assert pool.stats().live_count == 0 and pool.verify()


def test_results_are_those_of_numpy():
    def work(size):
        random = numpy.random.default_rng(1)
        a, b = random.random(size), random.random(size)
        c = (a * 2 + b) * a - b
        d = numpy.sort(numpy.concatenate([c, a[::3]])).reshape(-1, 1)
        return numpy.unique(numpy.round(d @ d[:4].T, 3)), numpy.fft.rfft(c), numpy.cumsum(b)

    for size in (12, 1002, 30_000):
        with tenure.numpy_pool() as pool:
            mine = work(size)
            assert pool.verify()
        for one, other in zip(mine, work(size), strict=True):
            assert numpy.array_equal(one, other)


def test_steady_temporaries_take_nothing():  # B16
    with tenure.numpy_pool() as pool:
        a = numpy.ones(100_000)
        for _ in range(5):
            a * 2 + a
        before = pool.stats().refills
        for _ in range(100):
            a * 2 + a
        assert pool.stats().refills == before


def test_wrong_handlers():
    for wrong in (None, 1, tenure.Arena()):
        with pytest.raises(TypeError):
            tenure._core.numpy_handler(wrong)
        with pytest.raises(TypeError):
            tenure._core.numpy_use(wrong, wrong)
