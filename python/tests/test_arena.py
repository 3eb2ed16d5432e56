"""The rules of spec/behaviour.md on arenas, and what Python adds: exports and stale Blocks. A comment
`# B14` cites the rule that a test shows."""

import gc
import io
import os
import re
import socket
import struct
import subprocess
import sys
import sysconfig
import threading
from pathlib import Path

import numpy
import pytest

import tenure

RELEASE = tenure._core.mode == 0


@pytest.fixture
def arena():
    with tenure.Arena(name="test") as made:
        yield made


# Of a free-threaded interpreter that takes the GIL for the module.
WITHOUT_WARNING = ["-W", "ignore:The global interpreter lock:RuntimeWarning"]


def address(block):
    return numpy.frombuffer(block, numpy.uint8).ctypes.data


def figures(arena):
    return tuple(arena.stats())


# ---- blocks ----


def test_alignment(arena):  # B1
    for size in (1, 7, 9, 96, 4097, 3 << 20):
        assert address(arena.alloc(size)) % 16 == 0
        for align in (1, 2, 8, 32, 4096, 1 << 20):
            assert address(arena.alloc_aligned(size, align)) % align == 0


def test_size_zero(arena):  # B2
    first, second = arena.alloc(0), arena.alloc(0)
    assert len(first) == 0 and bytes(first) == b"" and first != second
    with pytest.raises(IndexError):
        first[0]


def test_blocks_are_apart(arena):  # B3
    blocks = [arena.alloc(size) for size in range(200)]
    for i, block in enumerate(blocks):
        block[:] = bytes([i]) * len(block)
    assert all(bytes(block) == bytes([i]) * i for i, block in enumerate(blocks))


@pytest.mark.parametrize("align", [0, 3, 24, 2 << 20])
def test_bad_alignment(arena, align):  # B4
    with pytest.raises(ValueError, match="power of two"):
        arena.alloc_aligned(16, align)


@pytest.mark.parametrize(
    "call",
    [
        lambda a: a.alloc(sys.maxsize),
        lambda a: a.alloc(1 << 64),
        lambda a: a.alloc(1 << 200),
        lambda a: a.alloc_many(1 << 40, 1 << 40),
        lambda a: a.alloc_many(1 << 70, 0),
        lambda a: a.alloc_aligned(sys.maxsize - 8, 4096),
        lambda a: a.empty((1 << 40, 1 << 40), "u1"),
    ],
)
def test_huge_sizes(arena, call):  # B5 B7
    kept = arena.copy(b"kept")
    before = figures(arena)
    with pytest.raises(MemoryError):
        call(arena)
    assert figures(arena) == before and bytes(kept) == b"kept" and len(arena.alloc(8)) == 8


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda a: a.alloc(-1), ValueError),
        (lambda a: a.alloc(-1 << 200), ValueError),
        (lambda a: a.alloc(1.5), TypeError),
        (lambda a: a.alloc("1"), TypeError),
        (lambda a: a.alloc(None), TypeError),
        (lambda a: a.alloc(), TypeError),
        (lambda a: a.alloc_many(-1, 8), ValueError),
        (lambda a: a.alloc_many(8), TypeError),
        (lambda a: a.copy("text"), TypeError),
        (lambda a: a.copy(None), TypeError),
        (lambda a: a.rewind(None), TypeError),
        (lambda a: a.empty(-1), ValueError),
        (lambda a: a.empty((2, -3)), ValueError),
        (lambda a: a.empty(1, object), ValueError),
        (lambda a: a.empty(1, [("a", "i4"), ("b", "O")]), ValueError),
        (lambda a: a.empty(1, "no type"), TypeError),
        (lambda a: a.empty("12"), TypeError),
    ],
)
def test_bad_arguments(arena, call, error):  # B7
    before = figures(arena)
    with pytest.raises(error):
        call(arena)
    assert figures(arena) == before and len(arena.alloc(8)) == 8


def test_what_has_an_index_is_a_size(arena):
    assert len(arena.alloc(numpy.int64(96))) == 96
    assert len(arena.alloc(True)) == 1


def test_indexing(arena):
    block = arena.copy(bytes(range(10)))
    assert block[0] == 0 and block[-1] == 9 and block[2:5] == b"\2\3\4" and block[-3:] == b"\7\x08\x09"
    block[3] = 255
    block[4:6] = bytearray(b"xy")
    block[1:3] = block[2:4]
    assert bytes(block) == b"\0\2\xffx"[:3] + b"\xffxy\6\7\x08\x09"
    for wrong, error in [(10, IndexError), (-11, IndexError), ("a", TypeError)]:
        with pytest.raises(error):
            block[wrong]
        with pytest.raises(error):
            block[wrong] = 0
    for value, error in [(256, ValueError), (-1, ValueError), ("a", TypeError)]:
        with pytest.raises(error):
            block[0] = value
    with pytest.raises(ValueError):
        block[0:3] = b"four"
    with pytest.raises(ValueError):
        block[::2]
    with pytest.raises(TypeError):
        del block[0]


def test_an_index_that_resets_the_arena():
    class Index:
        def __index__(self):
            arena.reset()
            return 0

    for use in (
        lambda b: b[Index()],
        lambda b: b[Index() :],
        lambda b: b.__setitem__(Index(), 1),
        lambda b: b.__setitem__(0, Index()),
        lambda b: b.__setitem__(slice(Index(), None), b"x" * 8),
    ):
        arena = tenure.Arena()
        with pytest.raises(tenure.StaleBlockError):
            use(arena.alloc(8))


def test_uses_of_a_block(arena):
    block = arena.alloc(8)
    struct.pack_into("<II", block, 0, 1, 2)
    assert struct.unpack_from("<II", block) == (1, 2)
    assert numpy.frombuffer(block, "<u4").tolist() == [1, 2]
    assert io.BytesIO(b"from file").readinto(block) == 8 and bytes(block) == b"from fil"
    left, right = socket.socketpair()
    with left, right:
        left.send(b"received")
        assert right.recv_into(block) == 8
    assert bytes(block) == b"received" and memoryview(block).readonly is False


def test_contents_of_copy(arena):  # B26
    for data in (b"", b"x", bytes(100_000), numpy.arange(7), memoryview(b"abc")):
        assert bytes(arena.copy(data)) == bytes(data)


def test_many(arena):
    many = arena.alloc_many(100, 10)
    assert len(many) == 100 and many.size == 10 and len(many.whole) == 100 * many.stride
    for i, block in enumerate(many):
        block[:] = bytes([i]) * 10
    assert [bytes(b)[9] for b in many] == list(range(100)) and many[-1][0] == 99
    assert all(address(block) % 16 == 0 for block in many)
    with pytest.raises(IndexError):
        many[100]
    arena.reset()
    with pytest.raises(tenure.StaleBlockError):
        many[0]


def test_empty(arena):
    for shape, dtype in [
        ((3, 4), "f4"),
        (7, "i8"),
        ((), float),
        ((0, 3), "u1"),
        (2, [("x", "i4"), ("y", "f8")]),
    ]:
        made = arena.empty(shape, dtype)
        assert made.shape == numpy.empty(shape, dtype).shape and made.dtype == numpy.dtype(dtype)
        assert made.flags.c_contiguous and made.flags.writeable
        assert made.ctypes.data % 64 == 0 or made.size == 0
    made = arena.empty(1000, "i4")
    made[:] = 1
    assert arena.stats().live_bytes >= made.nbytes
    with pytest.raises(BufferError):
        arena.reset()
    assert made.sum() == 1000


# ---- failure ----


def test_capacity(arena):  # B25 B7
    with tenure.Arena(1000, name="small") as small:
        room = 1000 if RELEASE else 100
        kept = small.alloc(room)
        with pytest.raises(MemoryError, match="'small': no room for 2000 bytes, its capacity is 1000"):
            small.alloc(2000)
        if RELEASE:
            with pytest.raises(MemoryError):
                small.alloc(1)
        kept[:] = b"k" * room
        small.reset()
        assert len(small.alloc(room)) == room


def test_limit():  # B9 B7
    with tenure.Arena(limit=1 << 20, name="limited") as limited:
        blocks = []
        with pytest.raises(MemoryError, match="its limit is 1048576"):
            while True:
                blocks.append(limited.alloc(10_000))
        assert limited.stats().committed_bytes <= 1 << 20 and len(blocks) > 40
        limited.reset()
        assert len(limited.alloc(10_000)) == 10_000 and limited.verify()


@pytest.mark.parametrize(
    "options",
    [
        {"capacity": 100, "limit": 100},
        {"capacity": 100, "chunk": 100},
        {"capacity": -1},
        {"limit": 0},
        {"capacity": 0},
    ],
)
def test_contradictions(options):  # B11
    with pytest.raises(ValueError):
        tenure.Arena(**options)


# ---- ends ----


def test_reset_is_refused_while_exported(arena):
    block = arena.copy(b"keep me")
    other = memoryview(arena.alloc(4))
    first, second = memoryview(block), numpy.frombuffer(block, numpy.uint8)
    before = figures(arena)
    for end in (arena.reset, arena.close):
        with pytest.raises(
            BufferError,
            match="arena 'test': no .* while 3 buffers are exported "
            r"\(first: <tenure.Block of 4 bytes",
        ):
            end()
    assert figures(arena) == before and bytes(second) == b"keep me"
    other.release()
    first.release()
    with pytest.raises(BufferError, match="1 buffer is exported"):
        arena.reset()
    del second
    arena.reset()


def test_stale_block(arena):  # B14
    block = arena.copy(b"old")
    assert block.live
    arena.reset()
    assert not block.live and "stale" in repr(block) and len(block) == 3
    said = "arena 'test' has forgotten this Block of 3 bytes"
    for use in (
        lambda: block[0],
        lambda: block[:],
        lambda: bytes(block),
        lambda: memoryview(block),
        lambda: block.__setitem__(0, 1),
        lambda: block.__setitem__(slice(0, 3), b"new"),
    ):
        with pytest.raises(tenure.StaleBlockError, match=said):
            use()
    assert arena.stats().resets == 1


def test_same_address_after_reset(arena):  # B15
    first = arena.alloc(8)
    repeated = []
    for _ in range(3):
        repeated.append(address(first))
        first = None  # it was lent
        arena.reset()
        first = arena.alloc(8)
    assert not RELEASE or len(set(repeated)) == 1


def test_lent_memory_outlives_a_reset(arena):
    """numpy.ndarray(buffer=...) keeps the Block but not the export."""
    for _ in range(20):
        array = numpy.ndarray(1000, numpy.uint8, buffer=arena.alloc(1000))
        array[:] = 1
        arena.reset()
        arena.alloc(1000)[:] = bytes([2]) * 1000
        assert array.sum() == 1000
    assert arena.stats().committed_bytes <= 8 << 16
    del array
    arena.reset()
    assert arena.stats().committed_bytes <= 2 << 16 and arena.stats().resets == 21


def test_lent_memory_counts_against_the_limit():  # B9
    limited = tenure.Arena(limit=100_000, chunk=65536)
    array = numpy.ndarray(1000, numpy.uint8, buffer=limited.alloc(1000))
    array[:] = 1
    with pytest.raises((BufferError, MemoryError)):
        limited.reset()
        limited.alloc(65_000)
    assert array.sum() == 1000 and limited.stats().committed_bytes <= 100_000
    del array
    limited.reset()
    limited.alloc(60_000)


def test_lent_memory_outlives_a_rewind_and_a_close():
    arena = tenure.Arena()
    mark = arena.mark()
    array = numpy.ndarray(1000, numpy.uint8, buffer=arena.alloc(1000))
    array[:] = 1
    for _ in range(3):
        arena.rewind(mark)
        arena.alloc(1000)[:] = bytes([2]) * 1000
        assert array.sum() == 1000
    arena.close()
    tenure.Arena().alloc(1000)[:] = bytes([2]) * 1000
    del arena
    assert array.sum() == 1000


def test_steady_use_takes_nothing(arena):  # B16
    for _ in range(50):
        for _ in range(300):
            arena.alloc(1000)
        arena.reset()
    if RELEASE:
        before = arena.stats().refills
        for _ in range(50):
            for _ in range(300):
                arena.alloc(1000)
            arena.reset()
        assert arena.stats().refills == before


def test_trim(arena):  # B17
    kept = arena.copy(b"kept")
    mark = arena.mark()
    for _ in range(1000):
        arena.alloc(10_000)
    arena.rewind(mark)
    assert arena.trim() > 1 << 20 or not RELEASE  # debug gives memory back in the rewind
    assert arena.trim() == 0 and bytes(kept) == b"kept"


def test_marks_nest(arena):  # B22
    outer = arena.mark()
    old = arena.copy(b"old")
    inner = arena.mark()
    for _ in range(3):
        new = arena.copy(b"new")
        arena.rewind(inner)
        assert not new.live and bytes(old) == b"old"
    arena.rewind(outer)
    assert not old.live
    with pytest.raises(ValueError, match="the Mark ended"):
        arena.rewind(inner)
    arena.rewind(outer)
    arena.reset()
    with pytest.raises(ValueError, match="the Mark ended"):
        arena.rewind(outer)
    with tenure.Arena() as other, pytest.raises(ValueError, match="of another arena"):
        other.rewind(arena.mark())


def test_rewind_is_refused_while_newer_blocks_are_exported(arena):
    old = memoryview(arena.copy(b"old"))
    mark = arena.mark()
    new = memoryview(arena.copy(b"new"))
    with pytest.raises(BufferError, match="no rewind while 1 buffer is exported"):
        arena.rewind(mark)
    assert bytes(new) == b"new"
    new.release()
    arena.rewind(mark)
    assert bytes(old) == b"old"
    old.release()


def test_thousands_of_marks(arena):
    marks = [arena.mark() for _ in range(5000)]
    block = arena.alloc(8)
    for mark in reversed(marks):
        arena.rewind(mark)
    assert not block.live and arena.verify()


def test_large_blocks(arena):  # B24
    large = arena.alloc(8 << 20)
    large[-1] = 1
    held = arena.stats().committed_bytes
    arena.reset()
    assert held >= 8 << 20 and arena.stats().committed_bytes < 4 << 20


def test_closed_arena(arena):
    block = arena.alloc(8)
    mark = arena.mark()
    arena.close()
    arena.close()
    assert arena.closed and "closed" in repr(arena) and not block.live
    for use in (
        lambda: arena.alloc(1),
        arena.reset,
        arena.mark,
        arena.stats,
        arena.verify,
        arena.trim,
        lambda: arena.alloc_many(1, 1),
        lambda: arena.copy(b"x"),
        lambda: arena.empty(1),
        lambda: arena.rewind(mark),
        lambda: arena.alloc_aligned(1, 1),
        arena.__enter__,
    ):
        with pytest.raises(ValueError, match="arena 'test' is closed"):
            use()


def test_the_error_of_a_body_is_kept():
    with pytest.raises(KeyError):
        with tenure.Arena() as arena:
            arena.alloc(1)
            raise KeyError
    assert arena.closed


# ---- looking ----


def test_figures(arena):  # B34
    assert arena.stats().live_bytes == 0
    arena.alloc(96)
    arena.alloc(1)
    stats = arena.stats()
    assert stats.name == "test" and stats.chunk_count == 1
    assert stats.live_bytes == 112 if RELEASE else stats.live_bytes >= 112
    assert stats.live_bytes + stats.cached_bytes <= stats.committed_bytes <= stats.reserved_bytes
    for count in range(1, 4):
        arena.reset()
        assert arena.stats().resets == count


def test_names():  # B35
    assert tenure.Arena(name="x" * 40).name == "x" * 31
    assert tenure.Arena().name == "arena"


# ---- threads, processes, lifetimes ----


def test_threads_take_turns(arena):
    def work(byte):
        for _ in range(200):
            block = arena.alloc(50)
            block[:] = bytes([byte]) * 50
            mine.append((block, byte))

    mine = []
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(mine) == 800 and all(bytes(block) == bytes([byte]) * 50 for block, byte in mine)
    assert arena.verify()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_fork(arena):  # B42
    block = arena.copy(b"before")
    child = os.fork()
    if child == 0:
        block[:] = b"child!"
        arena.alloc(100_000)
        arena.reset()
        os._exit(0 if not block.live and arena.verify() else 1)
    assert os.waitpid(child, 0)[1] == 0 and bytes(block) == b"before"


def test_blocks_keep_their_arena_alive():
    block = tenure.Arena().copy(b"kept")
    gc.collect()
    assert bytes(block) == b"kept"


@pytest.mark.parametrize(
    "end",
    [
        "",
        "import sys; sys.arena = arena",
        "import sys; sys.block = block",
        "arena.loop = 1",
        "view = memoryview(block); import sys; sys.view = view",
        "del arena",
        "arena.close()",
        "import atexit; atexit.register(arena.reset)",
        "import atexit; atexit.register(lambda: block[0])",
        "import threading as t; t.Thread(target=lambda: [arena.alloc(9) for _ in range(9999)]).start()",
        "import threading, time; threading.Thread(target=lambda: time.sleep(9), daemon=True).start()",
    ],
)
def test_shutdown(end):
    program = (
        f"import tenure\narena = tenure.Arena(name='x')\nblock = arena.alloc(8)\n"
        f"try:\n    {end or 'pass'}\nexcept AttributeError:\n    pass\n"
    )
    done = subprocess.run(
        [sys.executable, *WITHOUT_WARNING, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("first", ["module", "holder"])
@pytest.mark.parametrize("kind", ["Slab", "BufferPool", "Pool", "Scope", "numpy_pool"])
def test_shutdown_of_the_others(kind, first):
    """With Blocks, views, leases and arrays that are alive, in this module or in another one."""
    program = f"""
import sys, types, tenure
holder = types.ModuleType("holder")
if {first!r} == "holder":
    sys.modules["holder"] = holder
kind = {kind!r}
if kind == "Slab":
    holder.one = tenure.Slab(64, name="end")
    holder.kept = holder.one.alloc(), memoryview(holder.one.alloc())
elif kind == "BufferPool":
    holder.one = tenure.BufferPool(name="end", decay=0.001)
    holder.kept = holder.one.get(5000), memoryview(holder.one.get(5000))
    holder.one.get(70_000)
elif kind == "Pool":
    holder.one = tenure.Pool(dict, name="end", decay=0.001)
    holder.kept = holder.one.get(), holder.one.lease(), holder.one.lease().__enter__()
elif kind == "Scope":
    holder.one = tenure.Scope("end")
    holder.one.defer(print, "late")
    holder.kept = holder.one.scope("child").alloc(10)
else:
    import numpy
    holder.one = tenure.numpy_pool(name="end", decay=0.001)
    holder.one.__enter__()
    holder.kept = numpy.ones(100_000), numpy.zeros(10)
holder.cycle = holder
"""
    done = subprocess.run(
        [sys.executable, *WITHOUT_WARNING, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONMALLOC": "debug"},  # a use after free is seen
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "")


def test_second_interpreter_is_refused():
    """Where the module asks, in interpreters that share the GIL, and where CPython itself refuses."""
    try:
        import _interpreters as interpreters  # 3.13
    except ImportError:
        interpreters = pytest.importorskip("_xxsubinterpreters")
    program = (
        "try:\n    import tenure\nexcept ImportError as e:\n    assert 'refused' in str(e) or "
        "'subinterpreter' in str(e), e\nelse:\n    raise AssertionError('imported')\n"
    )
    for options in [(), ("legacy",)] if sys.version_info >= (3, 13) else [()]:
        one = interpreters.create(*options)
        assert interpreters.run_string(one, program) is None
        interpreters.destroy(one)
    assert bytes(tenure.Arena().copy(b"as before")) == b"as before"


def test_a_free_threaded_interpreter_takes_the_gil():
    """It warns, as for every module that does not declare that it can do without."""
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("this interpreter always has the GIL")
    program = (
        "import sys; assert not sys._is_gil_enabled(); import tenure; print(sys._is_gil_enabled())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n" and "GIL" in done.stderr


def test_types_are_made_by_their_owners():
    for kind in (tenure.Block, tenure.Blocks, tenure.Mark):
        with pytest.raises(TypeError):
            kind()
    with pytest.raises(TypeError):
        tenure.Block.new = 1


def test_help_is_complete():
    for kind in (tenure.Arena, tenure.Block, tenure.Blocks, tenure.Mark):
        assert kind.__doc__
        for name, member in vars(kind).items():
            assert name.startswith("_") or member.__doc__, f"{kind.__name__}.{name}"


def test_stubs():
    shown = Path(__file__).with_name("stubtest.txt")
    subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy.stubtest",
            "tenure",
            "--ignore-unused-allowlist",
            "--allowlist",
            shown,
            "--mypy-config-file",
            shown.parents[1] / "pyproject.toml",
        ],
        check=True,
    )


def test_cited_rules_exist():
    rules = Path(__file__).parents[2] / "spec/behaviour.md"
    known = set(re.findall(r"^- \*\*(B\d+)\*\*", rules.read_text(), re.M))
    for test in Path(__file__).parent.glob("test_*.py"):
        cited = set(re.findall(r"\bB\d+\b", " ".join(re.findall(r"# (B\d.*)", test.read_text()))))
        assert cited <= known, test.name
