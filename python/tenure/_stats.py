"""The figures of an allocator. The compiled part makes them."""

from typing import NamedTuple


class Stats(NamedTuple):
    """Figures of one allocator, in bytes and counts. The four figures live, cached, reserved and
    committed are never mixed."""

    name: str
    """The allocator's, or its kind."""
    live_bytes: int
    """Handed out, rounding and padding included."""
    live_count: int
    """Blocks handed out; 0 where they are not counted (arena)."""
    cached_bytes: int
    """Committed, free, ready for the next block."""
    reserved_bytes: int
    """Address space held."""
    committed_bytes: int
    """Memory held; includes live, cached and Tenure's own records."""
    peak_bytes: int
    """The most live bytes, sampled."""
    chunk_count: int
    """Chunks held, including an arena's capacity."""
    refills: int
    """Times that a slow path took a chunk or filled a magazine."""
    resets: int
    """Times that it was reset."""
    slot_bytes: int
    """Of one slot; 0 where sizes differ."""
    slot_count: int
    """Slots in all chunks; of a pool, objects built."""


class Listed(NamedTuple):
    """A named allocator, as tenure.stats() found it."""

    stats: Stats
    """Its figures, as its owner last published them; live bytes are current."""
    kind: str
    """"arena", "slab", "heap" (of a buffer pool), "pool", or "pages": memory kept for the next one."""
    depth: int
    """0 for a root."""
    id: int
    """Unique in the process."""
    parent_id: int
    """0 for a root."""
    age_ms: int
    """Milliseconds since it first took memory, or since its last reset."""
