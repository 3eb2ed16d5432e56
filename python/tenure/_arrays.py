"""NumPy arrays in an arena. Imported when the first one is asked for, so NumPy is optional."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy

if TYPE_CHECKING:
    from tenure import Arena

ALIGN = 64  # of a vector register and a cache line


def empty(arena: Arena, shape: Any, dtype: Any) -> numpy.ndarray[Any, Any]:
    """The contract is that of Arena.empty."""
    kind = numpy.dtype(dtype)
    if kind.hasobject:
        raise ValueError(f"{kind} holds Python objects, which an arena cannot")
    lengths = tuple(shape) if hasattr(shape, "__iter__") else (shape,)
    if any(length < 0 for length in lengths):
        raise ValueError(f"a dimension is negative: {shape}")
    count = math.prod(lengths)
    block = arena.alloc_aligned(count * kind.itemsize, ALIGN)
    return (
        numpy.asarray(memoryview(block)).view(kind).reshape(lengths)
        if count * kind.itemsize
        else numpy.empty(lengths, kind)
    )
