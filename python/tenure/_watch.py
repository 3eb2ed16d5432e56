"""Reports of silent failures."""

from __future__ import annotations

import atexit
from collections.abc import Callable

from tenure import _core
from tenure._stats import Listed


def watch(
    callback: Callable[[Listed, str], object] | None,
    *,
    interval: float = 1.0,
    growing: float = 60.0,
    idle: float = 60.0,
    least_bytes: int = 256 << 10,
) -> None:
    """Calls callback(listed, message) on a thread of the library, once for each named allocator that
    fails silently: an arena that grows and is never reset, a slab that holds chunks for few Blocks. A
    process has one watch; a second call replaces the first, and None ends it.

    interval     seconds between two looks
    growing      seconds of growth without a reset, or of a slab that is nearly empty
    idle         seconds that a burst's memory is kept
    least_bytes  bytes held by the smallest allocator that is reported

    An exception of the callback goes to sys.unraisablehook. The watch ends before the interpreter
    does; a child of fork has none. Raises TypeError for what cannot be called; OSError without
    threads."""
    _core._watch(callback, _ms(interval), _ms(growing), _ms(idle), least_bytes)


def _ms(seconds: float) -> int:
    return max(1, round(seconds * 1000))


atexit.register(_core._watch, None, 0, 0, 0, 0)
