"""The thread that ends the windows of pools. It lives while a pool has idle objects.

A pool begins to decay in the middle of anything, even in a garbage collection that interrupts this
module or `threading`. So `begin` takes no lock: the queue and the start of the thread are C, and
re-entrant.

The thread ends before the interpreter does: CPython 3.11 may crash when a thread begins at the end."""

from __future__ import annotations

import _thread
import atexit
import os
import queue
import time
import weakref
from typing import Protocol


class Decays(Protocol):
    def _decay(self) -> bool: ...


Window = tuple[float, float, "weakref.ref[Decays]"]  # its end, its length, whose

_begun: queue.SimpleQueue[tuple[weakref.ref[Decays], float] | None] = queue.SimpleQueue()
_runs = False  # two threads for a moment do no harm: each has its own windows
_running: list[list[Window]] = []
_alive: list[None] = []  # one for each thread, from before it begins
_ending = False  # the interpreter
END_SECONDS = 5.0  # of waiting for an object that ends in the thread


def begin(pool: Decays, seconds: float) -> bool:
    """Has pool._decay() called every so many seconds until it returns False. Returns whether it will
    be."""
    global _runs
    if _ending:
        return False
    _begun.put((weakref.ref(pool), seconds))
    if not _runs:
        _runs = True
        _alive.append(None)
        try:
            _thread.start_new_thread(_run, ())
        except RuntimeError:  # the interpreter ends
            _alive.pop()
            _runs = False
    return _runs


def _run() -> None:
    try:
        _serve()
    finally:
        _alive.pop()


def _serve() -> None:
    global _runs
    windows: list[Window] = []
    _running.append(windows)
    while True:
        wait = max(0.0, min(end for end, _, _ in windows) - time.monotonic()) if windows else 0.0
        try:
            begun = _begun.get(timeout=wait)
            if begun is None:
                return
            pool, length = begun
            windows[:] = [window for window in windows if window[2]()]
            windows.append((time.monotonic() + length, length, pool))
        except queue.Empty:
            windows[:] = [window for window in map(_end, windows) if window]
            if not windows:
                _runs = False
                if _begun.empty():
                    _running.remove(windows)
                    return
                _runs = True


def _end(window: Window) -> Window | None:
    """The window, or if its time has come the next one of the pool, or None."""
    end, length, whose = window
    now = time.monotonic()
    if end > now:
        return window
    pool = whose()
    return (now + length, length, whose) if pool is not None and pool._decay() else None


def _after_fork() -> None:
    """The child has no thread, so its pools begin again."""
    global _begun, _runs
    pools = [(whose, length) for windows in _running for _, length, whose in windows]
    while not _begun.empty():
        if (begun := _begun.get_nowait()) is not None:
            pools.append(begun)
    _running.clear()
    _alive.clear()
    _begun, _runs = queue.SimpleQueue(), False
    for whose, length in pools:
        pool = whose()
        if pool is not None:
            begin(pool, length)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _end_with_the_interpreter() -> None:
    global _ending
    _ending = True
    for _ in list(_alive):
        _begun.put(None)
    until = time.monotonic() + END_SECONDS
    while _alive and time.monotonic() < until:
        time.sleep(0.0005)


atexit.register(_end_with_the_interpreter)
