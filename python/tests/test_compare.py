"""python -m tenure compare: what is counted, and what comes out."""

import io
import json
import subprocess
import sys

import pytest

for extra in ("hdrh.histogram", "matplotlib", "rich"):
    pytest.importorskip(extra)

import rich.console  # noqa: E402

from tenure import __main__ as cli  # noqa: E402
from tenure.compare import _measure, _report, _subjects  # noqa: E402
from tenure.compare._subjects import (  # noqa: E402
    COMPARISONS,
    NODES,
    Comparison,
    Subject,
    Work,
    libc,
    tree_of_objects,
)


class Clock:
    """In place of the module time: nanoseconds that only the subjects spend."""

    def __init__(self):
        self.now, self.cpu = 0, 0

    def spend(self, ns):
        self.now += ns
        self.cpu += ns // 2

    def perf_counter_ns(self):
        return self.now

    def perf_counter(self):
        return self.now / 1e9

    def process_time(self):
        return self.cpu / 1e9


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(_measure, "time", clock)
    monkeypatch.setattr(_measure, "peak_bytes", lambda *_: 3 << 20)
    return clock


def measured(clock, fair, requests=1000, ends_after=0):
    """Requests of 10 us from cpython, 4 us from tenure; every hundredth takes ten times as long."""
    calls = {"cpython": 0, "tenure": 0}
    ends = {"cpython": 0, "tenure": 0}

    def works(name, ns):
        def request():
            calls[name] += 1
            clock.spend(ns * (10 if calls[name] % 100 == 0 else 1))

        def end():
            ends[name] += 1
            clock.spend(7000)

        return lambda: [Work(request, end if ends_after else lambda: None)]

    subjects = [Subject("cpython", works("cpython", 10_000)), Subject("tenure", works("tenure", 4000))]
    comparison = Comparison(
        "made-up", "", "block", 2, requests, ends_after, "", lambda fair: subjects, "", ""
    )
    steps = []
    rows = _measure.measure(comparison, fair, requests, steps.append)
    assert len(steps) == 2 * (2 * (_measure.ROUNDS if fair else 1) + 1)
    return {row["subject"]: row for row in rows}, ends


@pytest.mark.parametrize("fair", [False, True])
def test_figures(clock, fair):
    rows, _ = measured(clock, fair)
    mine, base = rows["tenure"], rows["cpython"]
    assert mine["ns_per_op"] == pytest.approx(4000 * 1.09 / 2)
    assert mine["of_cpython"] == pytest.approx(0.4) and base["of_cpython"] == 1
    assert mine["requests"] == 1000 and mine["wall_seconds"] == pytest.approx(4e-6 * 1090)
    assert mine["requests_per_second"] == pytest.approx(1e6 / 4 / 1.09)
    assert mine["cpu_us_per_request"] == pytest.approx(2 * 1.09)
    assert mine["p50_ns"] == pytest.approx(4000, rel=0.002)
    assert mine["p999_ns"] == mine["max_ns"] == pytest.approx(40_000, rel=0.002)
    assert mine["peak_bytes"] == 3 << 20 and "end_us" not in mine


def test_the_end_of_blocks_counts_where_it_is_fair(clock):
    published, _ = measured(clock, fair=False, requests=200, ends_after=100)
    assert published["tenure"]["ns_per_op"] == pytest.approx(4000 * 1.09 / 2)
    fair, ends = measured(clock, fair=True, requests=200, ends_after=100)
    assert fair["tenure"]["ns_per_op"] == pytest.approx((4000 * 1.09 + 70) / 2)
    for row in (published["tenure"], fair["tenure"]):
        assert row["end_us"] == pytest.approx(7)
    assert ends["tenure"] == 2 * _measure.ROUNDS + 1  # and one to warm


@pytest.mark.parametrize("name", COMPARISONS)
def test_compare(name, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(_measure, "peak_bytes", lambda *_: 3 << 20)  # a process for each
    monkeypatch.setattr(_measure, "ROUNDS", 2)
    monkeypatch.setattr(_subjects, "BATCH", 10)
    options = [name, "--requests", "40", "--rate", "20,000", "--json", "--out", str(tmp_path / "new")]
    assert cli.main(["compare", *options]) == 0
    printed = capsys.readouterr()
    assert "next: python -m tenure compare" in printed.err
    result = json.loads(printed.out)
    assert result == json.loads((tmp_path / f"new/{name}.json").read_text())
    for kind, start in (("png", b"\x89PNG"), ("svg", b"<?xml")):
        assert (tmp_path / f"new/{name}.{kind}").read_bytes().startswith(start)
    assert list(result["variants"]) == ["as published", "fair"]
    for rows in result["variants"].values():
        subjects = {row["subject"]: row for row in rows}
        assert {"cpython", "ctypes", "bytearray-arena", "tenure"} <= subjects.keys()
        for row in rows:
            saved = subjects["cpython"]["cpu_us_per_request"] - row["cpu_us_per_request"]
            assert row["cores_saved"] == pytest.approx(saved * 20_000 / 1e6)
            assert 0 < row["p50_ns"] <= row["p99_ns"] <= row["p999_ns"] <= row["max_ns"]
            assert row["ns_per_op"] > 0 and row["profile"][-1][0] == 100


@pytest.mark.parametrize("name", COMPARISONS)
def test_the_tables_fit_80_columns(name):
    row = {
        "subject": "bytearray-arena",
        "ns_per_op": 511_602.3,
        "of_cpython": 12.345,
        "requests_per_second": 12_000_000,
        "wall_seconds": 123.456,
        "peak_bytes": 3 << 30,
        "cores_saved": -12.345,
        "p50_ns": 1e6,
        "p99_ns": 1e8,
        "p999_ns": 1e9,
        "max_ns": 1e10,
    }
    if name == "arena":
        row.update(end_us=1_234_567.0, requests_per_second=120_000)  # of 1,000 blocks each
    result = {
        "comparison": name,
        "title": "title",
        "unit": COMPARISONS[name].unit,
        "published": "published",
        "manner": {"fair": "manner"},
        "rate": 1_000_000,
        "variants": {"fair": [row]},
    }
    console = rich.console.Console(file=io.StringIO(), width=80)
    _report.show(console, result)
    printed = console.file.getvalue()
    assert "\u2026" not in printed and max(map(len, printed.splitlines())) <= 80
    for text in (
        "511,602",
        f"{row['requests_per_second']:,}",
        "123.46",
        "3,072",
        "-12.345",
        "10,000,000.00",
        "p99.9",
    ):
        assert text in printed, text


def test_the_table(capsys, monkeypatch):
    monkeypatch.setattr(_measure, "peak_bytes", lambda *_: 3 << 20)
    assert cli.main(["compare", "regimes", "--requests", "20", "--variant", "fair"]) == 0
    out = capsys.readouterr().out
    assert "regimes, fair" in out and "as published" not in out
    for word in ("bytearray-arena", "tenure-many", "cores saved at 10,000 requests/s", "p99.9", "MiB"):
        assert word in out, word


def test_progress_is_on_stderr():
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tenure",
            "compare",
            "pauses",
            "--requests",
            "10",
            "--json",
            "--variant",
            "fair",
        ],
        capture_output=True,
        text=True,
        env={"PATH": "", "FORCE_COLOR": "1", "TERM": "xterm"},
        check=True,
    )
    assert json.loads(done.stdout)["comparison"] == "pauses" and "fair" in done.stderr


@pytest.mark.parametrize("wrong", [["all"], [], ["pool", "--rate", "0"], ["pool", "--requests", "-1"]])
def test_wrong_arguments(wrong, capsys):
    with pytest.raises(SystemExit) as error:
        cli.main(["compare", *wrong])
    assert error.value.code == 2 and "usage:" in capsys.readouterr().err


def test_without_the_extra(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "hdrh.histogram", None)
    assert cli.main(["compare", "pool"]) == 2
    assert "pip install 'tenure[compare]'" in capsys.readouterr().err


def test_memory_is_that_of_the_subject():
    arena = COMPARISONS["arena"]
    subjects = {each.name: each for each in arena.subjects(True)}
    peaks = {name: _measure.peak_bytes(arena, True, each, 200) for name, each in subjects.items()}
    if None in peaks.values():
        pytest.skip("the peak of resident memory cannot be read here")
    assert peaks["tenure"] >= 200_000 * 64  # a Block object each
    assert peaks["cpython"] > 200_000 * 96
    trees = COMPARISONS["regimes"]
    assert _measure.peak_bytes(trees, True, trees.subjects(True)[-1], 10) < 8 << 20


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("fair", [False, True])
def test_subjects_serve_and_end(name, fair, monkeypatch):
    """What malloc gave is freed, and what is kept ends."""
    out = set()
    real_malloc, real_free = libc.malloc, libc.free

    class Counting:
        @staticmethod
        def malloc(size):
            out.add(address := real_malloc(size))
            return address

        @staticmethod
        def free(address):
            out.remove(address)
            real_free(address)

    monkeypatch.setattr("tenure.compare._subjects.libc", Counting)
    for subject in COMPARISONS[name].subjects(fair):
        assert subject.traced == (
            not fair and subject.name == "cpython" and name in ("regimes", "pauses")
        )
        for work in subject.works():
            for _ in range(3):
                work.request()
            assert bool(out) == (name == "arena" and subject.name == "ctypes")
            work.end()
            assert not out


def test_the_traced_tree_has_cycles():
    import gc

    gc.collect()
    gc.disable()
    try:
        tree_of_objects(True).request()
        assert gc.collect() >= NODES
    finally:
        gc.enable()
