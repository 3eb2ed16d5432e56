"""Scopes: named lifetimes in a tree, each with an arena of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from tenure._core import Arena, Block, Blocks, Mark
from tenure._stats import Stats

if TYPE_CHECKING:
    import numpy
    from _typeshed import ReadableBuffer


class Scope:
    """A lifetime: process > connection > request.

    name    shown in messages, trees and tenure.stats()
    parent  the scope that it ends with; None for a root
    limit   bytes of its own arena, which it never exceeds
    chunk   bytes of its first chunk

    Closing a scope closes everything below it, the newest child first; then its deferred calls run,
    last in, first out; then its memory goes. A context manager: its end closes it."""

    def __init__(
        self,
        name: str = "scope",
        parent: Scope | None = None,
        *,
        limit: int | None = None,
        chunk: int | None = None,
    ) -> None:
        if parent is not None:
            parent._check()
        self._arena = Arena(name=name, limit=limit, chunk=chunk)
        self._parent = parent
        self._children: list[Scope] = []
        self._deferred: list[tuple[Callable[..., object], tuple[Any, ...], dict[str, Any]]] = []
        self._ending = False
        if parent is not None:
            parent._children.append(self)

    def __repr__(self) -> str:
        return f"<tenure.Scope '{self.path}'{', closed' if self.closed else ''}>"

    @property
    def name(self) -> str:
        """Its name, cut to 31 bytes."""
        return self._arena.name

    @property
    def parent(self) -> Scope | None:
        """The scope above; None for a root."""
        return self._parent

    @property
    def children(self) -> tuple[Scope, ...]:
        """The scopes below, newest first."""
        return tuple(reversed(self._children))

    @property
    def path(self) -> str:
        """The names from the root to this scope, with slashes between them."""
        names = []
        scope: Scope | None = self
        while scope is not None:
            names.append(scope.name)
            scope = scope._parent
        return "/".join(reversed(names))

    @property
    def closed(self) -> bool:
        """Whether it has been closed."""
        return self._arena.closed

    def _check(self) -> None:
        if self._ending or self.closed:
            raise ValueError(f"scope '{self.path}' is {'closed' if self.closed else 'ending'}")

    # ---- memory ----

    def alloc(self, size: int, /) -> Block:
        """As Arena.alloc; the Block is stale when the scope is reset or closed."""
        return self._arena.alloc(size)

    def alloc_many(self, count: int, size: int, /) -> Blocks:
        """As Arena.alloc_many."""
        return self._arena.alloc_many(count, size)

    def copy(self, data: ReadableBuffer, /) -> Block:
        """As Arena.copy."""
        return self._arena.copy(data)

    def empty(self, shape: Any, dtype: Any = float, /) -> numpy.ndarray[Any, Any]:
        """As Arena.empty."""
        return self._arena.empty(shape, dtype)

    def mark(self) -> Mark:
        """As Arena.mark; children and deferred calls are not part of it."""
        return self._arena.mark()

    def rewind(self, mark: Mark, /) -> None:
        """As Arena.rewind."""
        self._arena.rewind(mark)

    # ---- the tree ----

    def scope(
        self, name: str = "scope", *, limit: int | None = None, chunk: int | None = None
    ) -> Scope:
        """Returns a new child. Raises ValueError when this scope is closed or ending."""
        return Scope(name, self, limit=limit, chunk=chunk)

    def adopt(self, child: Scope, /) -> None:
        """Makes a scope that has a parent a child of this one. Raises ValueError, and changes nothing,
        for a root, for itself, for a scope above it, and when either is closed or ending."""
        self._check()
        child._check()
        above: Scope | None = self
        while above is not None and above is not child:
            above = above._parent
        if above is child or child._parent is None:
            raise ValueError(f"scope '{self.path}' cannot adopt '{child.path}', a root or above it")
        if child._parent is not self:
            child._parent._children.remove(child)
            self._children.append(child)
            child._parent = self

    def defer(self, call: Callable[..., object], /, *args: Any, **keywords: Any) -> None:
        """Calls call(*args, **keywords) once, when the scope is closed or reset. It may use the scope's
        memory. Raises ValueError when the scope is closed or ending."""
        self._check()
        if not callable(call):
            raise TypeError(f"{call!r} cannot be called")
        self._deferred.append((call, args, keywords))

    def undefer(self, call: Callable[..., object], /, *args: Any, **keywords: Any) -> bool:
        """Cancels the newest equal deferred call; returns whether there was one."""
        for i in reversed(range(len(self._deferred))):
            if self._deferred[i] == (call, args, keywords):
                del self._deferred[i]
                return True
        return False

    # ---- ends ----

    def reset(self) -> None:
        """Ends what closing would end, and keeps the scope, its place and its warm memory. Raises as
        close."""
        self._check()
        self._refuse_exports("reset")
        self._ending = True
        errors = self._end_below()
        self._ending = False
        self._arena.reset()
        _raise(self, errors)

    def close(self) -> None:
        """Ends the scope and everything below it. Closing again, or from a deferred call, does nothing.

        Raises BufferError, and changes nothing, while a Block of it or below it is exported. Everything
        ends even if deferred calls raise; their exceptions come as one ExceptionGroup."""
        if self._ending or self.closed:
            return
        self._refuse_exports("close")
        self._ending = True
        errors = self._end_below() + self._end_memory()
        if self._parent is not None:
            self._parent._children.remove(self)
        _raise(self, errors)

    def _end_below(self) -> list[Exception]:
        """Ends the children, newest first, each after its own, then runs the deferred calls."""
        errors: list[Exception] = []
        scope = self
        while True:
            while scope._children:
                scope = scope._children[-1]
                scope._ending = True
            errors += scope._run_deferred()
            if scope._children:  # from a deferred call
                continue
            if scope is self:
                return errors
            errors += scope._end_memory()
            assert scope._parent is not None
            scope._parent._children.remove(scope)
            scope = scope._parent

    def _run_deferred(self) -> list[Exception]:
        errors = []
        while self._deferred:
            call, args, keywords = self._deferred.pop()
            try:
                call(*args, **keywords)
            except Exception as error:
                errors.append(error)
        return errors

    def _end_memory(self) -> list[Exception]:
        try:
            self._arena.close()
        except BufferError as error:  # a deferred call exported a Block: it goes with its last user
            return [error]
        return []

    def _subtree(self) -> Iterator[tuple[int, Scope]]:
        """Each scope with its depth below this one, parents first, newest children first."""
        waiting = [(0, self)]
        while waiting:
            depth, scope = waiting.pop()
            yield depth, scope
            waiting += [(depth + 1, child) for child in scope._children]

    def _refuse_exports(self, action: str) -> None:
        for _, scope in self._subtree():
            if count := scope._arena.exports:
                raise BufferError(
                    f"scope '{self.path}': no {action} while {count} buffers of "
                    f"'{scope.path}' are exported"
                )

    def __enter__(self) -> Self:
        self._check()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- looking ----

    def stats(self) -> Stats:
        """The figures of its own memory."""
        return self._arena.stats()

    def subtree_stats(self) -> Stats:
        """The sums of the figures of the scope and everything below it."""
        figures = [scope.stats() for _, scope in self._subtree() if not scope.closed]
        return Stats(self.name, *(sum(column) for column in list(zip(*figures, strict=True))[1:]))

    def tree(self) -> str:
        """The scope and everything below it as indented lines: name, live and committed bytes."""
        lines = []
        for depth, scope in self._subtree():
            stats = scope.stats()
            lines.append(
                f"{'  ' * depth}{scope.name}: {stats.live_bytes:,} bytes live, "
                f"{stats.committed_bytes:,} committed"
            )
        return "\n".join(lines)

    def verify(self) -> bool:
        """Walks the memory of the scope and everything below it; returns True."""
        return all(scope._arena.verify() for _, scope in self._subtree())


def _raise(scope: Scope, errors: list[Exception]) -> None:
    if errors:
        raise ExceptionGroup(f"deferred calls of scope '{scope.path}'", errors)
