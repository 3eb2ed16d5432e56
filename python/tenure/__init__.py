"""Tenure: memory with a lifetime that you choose.

Arena       blocks that end together: a request, a document, a frame
Slab        blocks of one size, given back one by one
Pool        objects that are costly to build, used again
BufferPool  buffers for input and output, used again
Scope       lifetimes that nest, with a name each
numpy_pool  memory for NumPy's temporaries, used again
stats       the figures of all named allocators; watch reports silent failures, live shows them
            to the program tenure-top
"""

from tenure._core import (
    Arena,
    Block,
    Blocks,
    BufferPool,
    Lease,
    Mark,
    Pool,
    Slab,
    StaleBlockError,
    live,
    stats,
)
from tenure._numpy_pool import numpy_pool
from tenure._scope import Scope
from tenure._stats import Listed, Stats
from tenure._watch import watch

__all__ = [
    "Arena",
    "Block",
    "Blocks",
    "BufferPool",
    "Lease",
    "Listed",
    "Mark",
    "Pool",
    "Scope",
    "Slab",
    "StaleBlockError",
    "Stats",
    "live",
    "numpy_pool",
    "stats",
    "watch",
]
__version__ = "0.1.0"
