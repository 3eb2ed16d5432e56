"""Random sequences of legal and refused calls, against a model of what each Block must hold."""

import numpy
import pytest
from hypothesis import HealthCheck, settings, strategies
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

import tenure

SIZES = strategies.one_of(
    strategies.integers(0, 300), strategies.sampled_from([4096, 65536, 70_000, 3 << 20])
)


class ArenaModel(RuleBasedStateMachine):
    """A Block is modelled by its contents (first and last bytes) and its level: the marks below it."""

    blocks = Bundle("blocks")
    views = Bundle("views")
    marks = Bundle("marks")

    @initialize(limit=strategies.sampled_from([None, 1 << 18, 8 << 20]))
    def make(self, limit):
        self.arena = tenure.Arena(name="model", limit=limit, chunk=16384)
        self.held = {}  # block: (byte, level); live ones
        self.exported = {}  # id of a view: it and its block
        self.levels = [object()]
        self.count = 0

    def add(self, block):
        self.count = self.count % 255 + 1
        block[:] = bytes([self.count]) * len(block)
        self.held[block] = self.count, len(self.levels)
        return block

    @rule(target=blocks, size=SIZES)
    def alloc(self, size):
        try:
            return self.add(self.arena.alloc(size))
        except MemoryError:
            return None

    @rule(target=blocks, count=strategies.integers(0, 20), size=strategies.integers(0, 100), pick=SIZES)
    def alloc_many(self, count, size, pick):
        try:
            many = self.arena.alloc_many(count, size)
        except MemoryError:
            return None
        return self.add(many[pick % count]) if count else None

    @rule(target=blocks, data=strategies.binary(max_size=100))
    def copy(self, data):
        try:
            block = self.arena.copy(data)
        except MemoryError:
            return None
        assert bytes(block) == data
        return self.add(block)

    @rule(target=views, block=blocks)
    def export(self, block):
        if block is None:
            return None
        if block not in self.held:
            with pytest.raises(tenure.StaleBlockError):
                memoryview(block)
            return None
        view = memoryview(block)
        self.exported[id(view)] = view, block
        return view

    @rule(view=consumes(views))
    def release(self, view):
        if view is not None:
            del self.exported[id(view)]
            view.release()

    @rule(target=blocks, block=blocks)
    def unsafe_array(self, block):
        """It keeps using the memory without an export."""
        if block in self.held and len(block):
            byte, _ = self.held[block]
            array = numpy.ndarray(len(block), numpy.uint8, buffer=block)
            self.arrays = [*getattr(self, "arrays", [])[-5:], (array, byte)]
        return block

    def forget(self, from_level, end):
        """Calls `end`, which must be refused when a Block from that level up is exported."""
        newer = {b for b, (_, level) in self.held.items() if level > from_level}
        if newer & {block for _, block in self.exported.values()}:
            before = self.arena.stats()
            with pytest.raises(BufferError):
                end()
            assert self.arena.stats() == before
            return False
        try:
            end()
        except BufferError as refusal:
            assert "no memory for a reset" in str(refusal)
            return False
        for block in newer:
            del self.held[block]
        return True

    @rule()
    def reset(self):
        if self.forget(0, self.arena.reset):
            self.levels = [object()]

    @rule(target=marks)
    def mark(self):
        self.levels.append(self.arena.mark())
        return self.levels[-1]

    @rule(mark=marks)
    def rewind(self, mark):
        if mark not in self.levels:
            with pytest.raises(ValueError):
                self.arena.rewind(mark)
            return
        at = self.levels.index(mark)
        if self.forget(at, lambda: self.arena.rewind(mark)):
            del self.levels[at + 1 :]

    @rule()
    def trim(self):
        self.arena.trim()

    @invariant()
    def contents_are_kept(self):
        for block, (byte, _) in getattr(self, "held", {}).items():
            assert block.live and len(block) == 0 or block[0] == block[-1] == byte
        for array, byte in getattr(self, "arrays", []):
            assert array[0] == array[-1] == byte

    @invariant()
    def verify(self):
        if hasattr(self, "arena"):
            self.arena.verify()

    def teardown(self):
        if hasattr(self, "arena"):
            for view, _ in self.exported.values():
                view.release()
            self.arena.close()
            assert not any(block.live for block in self.held)


TestArenaModel = ArenaModel.TestCase
TestArenaModel.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
