"""The rules of spec/behaviour.md on scopes."""

import pytest

import tenure


def test_order_of_ends():  # B57 B58
    log = []
    root = tenure.Scope("root")
    root.defer(log.append, "first")
    for name in ("old", "new"):
        child = root.scope(name)
        child.defer(log.append, name)
        child.scope("below").defer(log.append, f"below {name}")
    root.defer(log.append, "last")
    root.close()
    assert log == ["below new", "new", "below old", "old", "last", "first"]
    root.close()
    assert len(log) == 6 and root.closed and child.closed


def test_undefer():  # B58
    log = []
    with tenure.Scope() as scope:
        scope.defer(log.append, 1)
        scope.defer(log.append, 2)
        scope.defer(log.append, 1)
        assert scope.undefer(log.append, 1) and not scope.undefer(log.append, 3)
    assert log == [2, 1]


def test_deferred_calls_may_use_scopes():  # B59 B61
    kept = []

    def late():
        block = root.copy(b"still there")
        other = tenure.Scope("other")
        kept.append((bytes(block), other.closed))
        other.close()
        root.close()
        with pytest.raises(ValueError, match="is ending"):
            root.scope("too late")
        with pytest.raises(ValueError, match="is ending"):
            root.defer(print)

    root = tenure.Scope("root")
    root.defer(late)
    root.close()
    assert kept == [(b"still there", False)]
    for use in (
        root.scope,
        lambda: root.defer(print),
        lambda: root.alloc(1),
        root.reset,
        root.__enter__,
    ):
        with pytest.raises(ValueError, match="is closed"):
            use()


def test_every_deferred_call_runs():
    log = []

    def fail(name):
        log.append(name)
        raise OSError(name)

    root = tenure.Scope("root")
    child = root.scope("child")
    for scope in (root, child):
        scope.defer(fail, f"{scope.name} 1")
        scope.defer(fail, f"{scope.name} 2")
    with pytest.raises(ExceptionGroup, match="deferred calls of scope 'root'") as raised:
        root.close()
    assert log == ["child 2", "child 1", "root 2", "root 1"] and root.closed and child.closed
    assert [str(error) for error in raised.value.exceptions] == log


def test_reset_keeps_the_scope():  # B60
    log = []
    with tenure.Scope("root") as root, root.scope("middle", limit=1 << 20) as middle:
        for count in range(1, 4):
            child = middle.scope("child")
            middle.defer(log.append, count)
            block = middle.alloc(10_000)
            middle.reset()
            assert child.closed and not block.live and log == list(range(1, count + 1))
            assert middle.parent is root and root.children == (middle,) and middle.name == "middle"
        with pytest.raises(MemoryError):
            middle.alloc(2 << 20)


def test_exports_below_refuse_the_end():
    log = []
    root = tenure.Scope("root")
    root.defer(log.append, 1)
    middle = root.scope("middle")
    view = memoryview(middle.scope("leaf").copy(b"kept"))
    for end in (root.close, root.reset, middle.close):
        with pytest.raises(BufferError, match="while 1 buffers of 'root/middle/leaf' are exported"):
            end()
    assert bytes(view) == b"kept" and log == [] and not middle.closed
    view.release()
    root.close()
    assert log == [1]


def test_an_export_from_a_deferred_call():
    views = []
    root = tenure.Scope("root")
    root.defer(lambda: views.append(memoryview(root.copy(b"late"))))
    with pytest.raises(ExceptionGroup):
        root.close()
    assert bytes(views[0]) == b"late"


def test_adopt():  # B62
    one, two = tenure.Scope("one"), tenure.Scope("two")
    child = one.scope("child")
    below = child.scope("below")
    two.adopt(child)
    assert child.parent is two and one.children == () and below.path == "two/child/below"
    two.adopt(child)
    assert two.children == (child,)
    for parent, wrong in ((below, child), (child, child), (one, two), (below, two)):
        with pytest.raises(ValueError, match="cannot adopt"):
            parent.adopt(wrong)
    one.close()
    assert not below.closed
    two.close()
    assert below.closed
    with pytest.raises(ValueError, match="is closed"):
        two.adopt(below)


def test_figures_of_a_subtree():  # B68
    root = tenure.Scope("root")
    children = [root.scope(f"child {i}") for i in range(3)]
    for i, scope in enumerate([root, *children, children[0].scope("leaf")]):
        scope.alloc(1000 * (i + 1))
    parts = [scope.stats().live_bytes for _, scope in root._subtree()]
    assert len(parts) == 5 and root.subtree_stats().live_bytes == sum(parts)
    lines = root.tree().splitlines()
    assert len(lines) == 5 and lines[0].startswith("root: ") and "    leaf: " in root.tree()
    assert root.verify()


def test_memory_of_a_scope():  # B63
    numpy = pytest.importorskip("numpy")
    with tenure.Scope("request") as scope:
        mark = scope.mark()
        assert len(scope.alloc(8)) == 8 and len(scope.alloc_many(3, 8)) == 3
        assert bytes(scope.copy(b"text")) == b"text"
        array = scope.empty((2, 2), numpy.int32)
        with pytest.raises(BufferError):
            scope.rewind(mark)
        del array
        scope.rewind(mark)


def test_deep_trees():
    leaf = root = tenure.Scope("root")
    for _ in range(3000):
        leaf = leaf.scope("deeper")
    assert leaf.path.count("/") == 3000 and root.subtree_stats().resets == 0
    root.close()
    assert leaf.closed
