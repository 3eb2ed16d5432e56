"""The work that is compared. A subject is an allocator that serves requests.

The benchmarks of the repository (bench/python) measure some of the same functions."""

from __future__ import annotations

import collections
import ctypes
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import tenure

SIZE = 96  # bytes of a block
BATCH = 1000  # blocks of a request of the comparison `arena`
NODES = 80  # blocks of a request of the comparisons `regimes` and `pauses`
BUFFER = 4096  # bytes of the buffer of a pooled object
THREADS = 4  # of the comparison `pool`
PAYLOAD = bytes(range(SIZE - 4))

Request = Callable[[], object]


class Work(NamedTuple):
    """One thread's requests, and the end of what they kept."""

    request: Request
    end: Request = lambda: None


# ---- allocators ----

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]


class BytearrayArena:
    """The arena in Python that was published: a cursor in a bytearray."""

    def __init__(self, size: int) -> None:
        self.view, self.cursor = memoryview(bytearray(size)), 0

    def alloc(self, size: int) -> memoryview:
        at = self.cursor
        self.cursor = at + ((size + 15) & -16)
        return self.view[at : at + size]

    def reset(self) -> None:
        self.cursor = 0


# ---- arena: 200,000 blocks of 96 bytes, which live until the last is made ----


def kept(alloc: Callable[[int], Any], end: Callable[[list[Any]], object]) -> Work:
    blocks: list[Any] = []

    def request() -> None:
        keep = blocks.append
        for _ in range(BATCH):
            keep(alloc(SIZE))

    return Work(request, lambda: end(blocks))


def forget_and(reset: Request) -> Callable[[list[Any]], None]:
    def end(blocks: list[Any]) -> None:
        blocks.clear()
        reset()

    return end


def free_all(blocks: list[Any]) -> None:
    free = libc.free
    for block in blocks:
        free(block)
    blocks.clear()


def arena_of_bytearray(total: int) -> Work:
    arena = BytearrayArena(total * SIZE)
    return kept(arena.alloc, forget_and(arena.reset))


def arena_of_tenure() -> Work:
    arena = tenure.Arena()
    return kept(arena.alloc, forget_and(arena.reset))


# ---- pool: what a server keeps for a request, with a buffer of 4 KiB ----


class State:
    """A buffer, a view to slice it without copies, headers."""

    __slots__ = ("buffer", "headers", "view")

    def __init__(self, buffer: Any = None) -> None:
        self.buffer = bytearray(BUFFER) if buffer is None else buffer
        self.view = memoryview(self.buffer)
        self.headers: dict[str, str] = {}


def use(state: State) -> None:
    state.buffer[0] = 1


def clean(state: State, zeros: bytes = bytes(BUFFER)) -> None:
    """Makes a used object as good as a new one."""
    state.view[:] = zeros
    state.headers.clear()


def fresh_state() -> Work:
    return Work(lambda: use(State()))


def state_by_malloc() -> Work:
    def request() -> None:
        address = libc.malloc(BUFFER)
        buffer = (ctypes.c_ubyte * BUFFER).from_address(address)
        ctypes.memset(address, 0, BUFFER)
        use(State(buffer))
        libc.free(address)

    return Work(request)


def state_in_bytearray_arena() -> Work:
    arena = BytearrayArena(BUFFER)

    def request() -> None:
        use(State(arena.alloc(BUFFER)))
        arena.reset()

    return Work(request)


def state_in_tenure_arena() -> Work:
    arena = tenure.Arena()

    def request() -> None:
        use(State(arena.alloc(BUFFER)))
        arena.reset()

    return Work(request)


def state_in_deque(idle: collections.deque[State], reset: Callable[[State], None] | None) -> Work:
    def request() -> None:
        try:
            state = idle.pop()
        except IndexError:
            state = State()
        use(state)
        if reset is not None:
            reset(state)
        idle.append(state)

    return Work(request)


def state_in_pool(pool: tenure.Pool[State]) -> Work:
    get, put = pool.get, pool.put

    def request() -> None:
        state = get()
        use(state)
        put(state)

    return Work(request)


# ---- regimes and pauses: a request makes a tree of 80 nodes of 96 bytes ----


class Node:
    """An object that the garbage collector traces: its parent and its children form cycles."""

    __slots__ = ("children", "data", "parent")

    def __init__(self, parent: Node | None) -> None:
        self.parent = parent
        self.data = bytearray(SIZE)
        self.children: list[Node] = []


def tree_of_objects(written: bool) -> Work:
    def request() -> None:
        nodes: list[Node] = []
        for i in range(NODES):
            parent = nodes[(i - 1) // 2] if i else None
            node = Node(parent)
            if written:
                node.data[4:] = PAYLOAD
            if parent is not None:
                parent.children.append(node)
            nodes.append(node)

    return Work(request)


def tree_by_malloc(written: bool) -> Work:
    malloc, free, move, pack = libc.malloc, libc.free, ctypes.memmove, struct.Struct("<i92s").pack

    def request() -> None:
        nodes = []
        for i in range(NODES):
            node = malloc(SIZE)
            if written:
                move(node, pack((i - 1) // 2, PAYLOAD), SIZE)
            nodes.append(node)
        for node in nodes:
            free(node)

    return Work(request)


def tree_in(alloc: Callable[[int], Any], reset: Request, written: bool) -> Work:
    link = struct.Struct("<i92s").pack_into

    def request() -> None:
        nodes = []
        for i in range(NODES):
            node = alloc(SIZE)
            if written:
                link(node, 0, (i - 1) // 2, PAYLOAD)
            nodes.append(node)
        del nodes, node
        reset()

    return Work(request)


def tree_of_bytearrays(written: bool) -> Work:
    return tree_in(bytearray, lambda: None, written)


def tree_in_bytearray_arena(written: bool) -> Work:
    arena = BytearrayArena(NODES * SIZE)
    return tree_in(arena.alloc, arena.reset, written)


def tree_in_tenure(written: bool) -> Work:
    arena = tenure.Arena()
    return tree_in(arena.alloc, arena.reset, written)


def tree_in_one_call(written: bool) -> Work:
    """All nodes of a tree from one call; a node is its place in their memory."""
    arena = tenure.Arena()
    alloc_many, reset, link = arena.alloc_many, arena.reset, struct.Struct("<i92s").pack_into

    def request() -> None:
        nodes = alloc_many(NODES, SIZE)
        if written:
            whole, stride = nodes.whole, nodes.stride
            for i in range(NODES):
                link(whole, i * stride, (i - 1) // 2, PAYLOAD)
            del whole
        del nodes
        reset()

    return Work(request)


# ---- comparisons ----


class Subject(NamedTuple):
    """An allocator of one comparison in one variant. `works` makes the work of each thread."""

    name: str
    works: Callable[[], list[Work]]
    traced: bool = False  # runs under tracemalloc, as the published garbage collected loops did


class Comparison(NamedTuple):
    name: str
    title: str
    unit: str  # of the time of one operation
    ops: int  # operations of a request
    requests: int  # of all threads, as published
    ends_after: int  # requests of one thread, then its `end`
    published: str
    subjects: Callable[[bool], list[Subject]]  # as published, or fair
    as_published: str
    fair: str


def one(make: Callable[..., Work], *args: Any) -> Callable[[], list[Work]]:
    return lambda: [make(*args)]


def arena_subjects(fair: bool) -> list[Subject]:
    total = 200 * BATCH
    return [
        Subject("cpython", one(kept, bytearray, list.clear)),
        Subject("ctypes", one(kept, libc.malloc, free_all)),
        Subject("bytearray-arena", one(arena_of_bytearray, total)),
        Subject("tenure", one(arena_of_tenure)),
    ]


def pool_subjects(fair: bool) -> list[Subject]:
    def shared() -> list[Work]:
        idle: collections.deque[State] = collections.deque()
        return [state_in_deque(idle, clean if fair else None) for _ in range(THREADS)]

    def pooled() -> list[Work]:
        pool = tenure.Pool(State, reset=clean if fair else None)
        return [state_in_pool(pool) for _ in range(THREADS)]

    def each(make: Callable[[], Work]) -> Callable[[], list[Work]]:
        return lambda: [make() for _ in range(THREADS)]

    return [
        Subject("cpython", each(fresh_state)),
        Subject("ctypes", each(state_by_malloc)),
        Subject("bytearray-arena", each(state_in_bytearray_arena)),
        Subject("tenure-arena", each(state_in_tenure_arena)),
        Subject("deque", shared),
        Subject("tenure", pooled),
    ]


def tree_subjects(fair: bool) -> list[Subject]:
    return [
        Subject("cpython", one(tree_of_objects, fair), traced=not fair),
        Subject("bytearray", one(tree_of_bytearrays, fair)),
        Subject("ctypes", one(tree_by_malloc, fair)),
        Subject("bytearray-arena", one(tree_in_bytearray_arena, fair)),
        Subject("tenure", one(tree_in_tenure, fair)),
        Subject("tenure-many", one(tree_in_one_call, fair)),
    ]


COMPARISONS = {
    each.name: each
    for each in (
        Comparison(
            "arena",
            f"200,000 blocks of {SIZE} bytes, which all live until the last one is made",
            "block",
            BATCH,
            200,
            200,
            "612 ns a block from CPython, 142 ns from an arena in Python; a reset in 12.4 us",
            arena_subjects,
            "one subject after the other; the end of the blocks is not counted",
            "subjects take turns; the end of the blocks is counted",
        ),
        Comparison(
            "pool",
            f"{THREADS} threads, each request uses an object with a buffer of {BUFFER} bytes",
            "request",
            1,
            200_000,
            0,
            "1,842 ns a request with new objects, 631 ns with a pool",
            pool_subjects,
            "one subject after the other; pooled objects come back as they were left",
            "subjects take turns; a pool clears an object for its next user, as a new one is clear",
        ),
        Comparison(
            "regimes",
            f"garbage collected, freed one by one, or reset: trees of {NODES} nodes of {SIZE} bytes",
            "node",
            NODES,
            2000,
            0,
            "160 ns a node with garbage collection, 94 ns with malloc, 17 ns with an arena",
            tree_subjects,
            "one subject after the other; CPython's objects under tracemalloc; nothing is written",
            "subjects take turns; every byte of each node is written; no tracemalloc",
        ),
        Comparison(
            "pauses",
            f"the time of each of 50,000 requests that make a tree of {NODES} nodes",
            "request",
            1,
            50_000,
            0,
            "p99.9 of 482,300 ns with garbage collection, 1,180 ns with an arena",
            tree_subjects,
            "one subject after the other; CPython's objects under tracemalloc; nothing is written",
            "subjects take turns; every byte of each node is written; no tracemalloc",
        ),
    )
}
