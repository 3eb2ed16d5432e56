"""NumPy arrays whose memory comes from a pool and goes back to it."""

from __future__ import annotations

import importlib
from types import TracebackType
from typing import Any, Self

from tenure import _core
from tenure._stats import Stats


def _table() -> Any:
    """NumPy's C functions."""
    try:
        core = importlib.import_module("numpy._core._multiarray_umath")
    except ImportError:  # NumPy 1
        core = importlib.import_module("numpy.core._multiarray_umath")
    return core._ARRAY_API


class numpy_pool:
    """A context manager: NumPy arrays made inside it get their memory from a pool of their own, which
    keeps the memory of temporaries for the next ones.

    limit      bytes that it never exceeds; then NumPy raises MemoryError
    name       shown in tenure.stats()
    max_bytes  the most bytes of idle memory
    decay      seconds of a window; idle memory that two windows in a row did not need goes back

    Memory is aligned to 64. At the end of the context idle memory goes back to the system at once; that
    of each array when it dies, in this or any other thread.

    It helps where the system's allocator gives memory back and takes it again for each temporary: from
    32 MiB up, mostly from 1 to 8 MiB, and below that in programs whose heap shrinks and grows. Where
    it does not shrink, the gain is a few per cent; at 16 MiB there is none, because the time goes into
    the arrays themselves. `out=` is the remedy. numpy.zeros touches all of its memory at once.

    A new thread or another context does not inherit the pool; each enters its own `with`. Raises
    ImportError without NumPy."""

    def __init__(
        self,
        *,
        limit: int | None = None,
        name: str | None = None,
        max_bytes: int = 512 << 20,
        decay: float = 1.0,
    ) -> None:
        self._table = _table()
        self._max_bytes = max_bytes
        self._pool = _core.BufferPool(max_bytes, name=name, limit=limit, decay=decay)
        self._handler = _core.numpy_handler(self._pool)
        self._before: list[Any] = []

    def __enter__(self) -> Self:
        self._pool.max_bytes = self._max_bytes
        self._before.append(_core.numpy_use(self._table, self._handler))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _core.numpy_use(self._table, self._before.pop())
        if not self._before:
            self._pool.max_bytes = 0

    def stats(self) -> Stats:
        """The figures of the pool: live bytes are those of arrays, cached ones wait for the next."""
        return self._pool.stats()

    def trim(self) -> int:
        """Gives back all idle memory; returns bytes."""
        return self._pool.trim()

    def verify(self) -> bool:
        """Walks the memory; returns True."""
        return self._pool.verify()
