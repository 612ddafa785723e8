"""The benchmarks' own parts: answers compared before they are timed, pages rendered, figures compared. Nothing is timed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bnnsgraph as bg
from tests.benchmarks import __main__ as command
from tests.benchmarks import (
    calls,
    comparing,
    gathering,
    growth,
    listings,
    peers,
    reasons,
    recording,
    rendering,
    scattering,
    slow_peers,
    timing,
)
from tests.benchmarks.cases import Case
from tests.benchmarks.timing import BARE, LIMIT, OURS, Row

TINY = [
    gathering.rows(4, 6, 10, dtype=np.int64),
    gathering.points((4, 5, 3), 2, 6),
    scattering.scatter_rows(bg.ScatterMode.MAXIMUM, "repeated", 10, 6, 4),
    scattering.bag("mean", 3, 2, 4),
    scattering.gradient("repeated", 10, 6, 4),
    listings.best(20, 3),
    next(calls.cases()),
]


@pytest.mark.parametrize("case", TINY, ids=lambda case: case.name.replace(" ", "_"))
def test_every_program_of_a_case_gives_the_same(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch and OpenVINO, whose imports take long, are checked when the benchmark runs."""
    installed = peers.optional
    monkeypatch.setattr(peers, "optional", lambda name: None if name in ("torch", "openvino") else installed(name))
    functions = case.functions(only_bare=False)
    assert {OURS, BARE, "NumPy", LIMIT} <= functions.keys()
    timing.require_equal(case.name, functions, case.tolerance)


SLOW = [
    gathering.rows(4, 6, 10),
    gathering.points((4, 5, 3), 2, 6),
    gathering.elements_along(1, (4, 5), 3),
    scattering.scatter_rows(bg.ScatterMode.UPDATE, "unique", 10, 6, 4),
    scattering.scatter_elements(bg.ScatterMode.MAXIMUM, "repeated", 10, 6),
]


@pytest.mark.parametrize("case", SLOW, ids=lambda case: case.name.replace(" ", "_"))
@pytest.mark.filterwarnings("ignore")  # PyTorch's own
def test_slow_peers_give_the_same(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where they are installed, which they are not in CI."""
    for module in ("torch", "coreai.authoring"):
        pytest.importorskip(module)
    monkeypatch.setattr(slow_peers, "asked", True)
    functions = case.functions(only_bare=False)
    assert "Core AI" in functions
    assert "torch.compile" in functions or "torch.compile" in peers.NOTES
    assert not timing.require_equal(case.name, functions, case.tolerance)


@pytest.mark.filterwarnings("ignore")  # PyTorch's own
def test_a_program_that_torch_cannot_compile_is_left_out_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr(slow_peers, "asked", True)
    monkeypatch.setattr(peers, "NOTES", {})

    def fails(x: Any) -> Any:
        raise RuntimeError("no such thing")

    assert slow_peers.compiled(fails, [3]) is None
    (note,) = peers.NOTES.values()
    assert note.startswith("torch.compile is left out")


def test_slow_peers_run_where_they_are_asked_for() -> None:
    assert not slow_peers.asked
    assert {"torch.compile", "Core AI"}.isdisjoint(SLOW[0].functions(only_bare=True))
    assert slow_peers.compiled(abs, [3]) is None
    assert slow_peers.core_ai(abs, {}, []) is None


def test_names_are_unique_and_the_family_is_whole() -> None:
    names = [case.name for case in gathering.cases()]
    assert len(set(names)) == len(names) >= 40
    assert sum(case.quick for case in gathering.cases()) >= 10
    assert set(command.SUITES) <= set(rendering.TITLES)


def test_different_answers_are_not_timed() -> None:
    zeros, ones = np.zeros(3, np.float32), np.ones(3, np.float32)
    for other in (ones, zeros[:2], [zeros, zeros]):
        with pytest.raises(AssertionError, match="case: other and one answer differently"):
            timing.side_by_side("case", {"one": lambda: zeros, "other": lambda other=other: other})
    with pytest.raises(AssertionError, match="answer differently"):
        timing.require_equal("case", {"one": lambda: zeros, "other": lambda: zeros + np.float32(1e-7)}, 0)


def test_a_library_with_a_wrong_answer_is_left_out_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing.CLOCK, "left_out", [])
    zeros = np.zeros(3, np.float32)
    functions = {OURS: lambda: zeros, "NumPy": lambda: zeros, "Library": lambda: zeros + 1}
    assert {row.who for row in timing.side_by_side("case", functions, seconds=1e-3)} == {OURS, "NumPy"}
    assert timing.CLOCK.left_out == ["case: Library is left out: its answer differs from NumPy's"]
    with pytest.raises(AssertionError, match="case: Library and NumPy and bnnsgraph answer differently"):
        timing.require_equal("case", functions | {"NumPy": lambda: zeros + 1}, 0)


def test_rounds_and_ratios() -> None:
    ran: list[str] = []
    functions = {OURS: lambda: ran.append("ours"), "other": lambda: ran.append("other")}
    ours, other = timing.side_by_side("case", functions, seconds=0.0, rounds=3, tolerance=None)
    assert ours.who == OURS
    assert ours.ratio == (1, 1, 1)
    assert other.ratio is not None
    assert [row.calls for row in (ours, other)] == [3, 3]
    turns = [who for who in ["other", "ours", "ours", "other", "other", "ours"] for _ in range(2)]  # one of two is not timed
    assert ran[4:] == turns  # after two calls of each
    assert timing.side_by_side("case", {"other": lambda: None}, seconds=0.0, rounds=1, tolerance=None)[0].ratio is None


def test_what_does_not_fit_is_named() -> None:
    timing.CLOCK.start(0)
    try:
        assert timing.side_by_side("late", {"one": lambda: None}) == []
        assert timing.CLOCK.left_out == ["late: left out, the time was over"]
        assert timing.CLOCK.late
    finally:
        timing.CLOCK.start(None)
    assert not timing.CLOCK.late


def made_up(ratio: float, spread: float = 0.05, who: str = BARE, case: str = "rows") -> Row:
    return Row(case, who, 1e-3, 0.9e-3, 1.1e-3, 10, (ratio - spread, ratio, ratio + spread))


@pytest.mark.parametrize(
    ("before", "now", "wanted"),
    [
        (made_up(1.0), made_up(1.0), []),
        (made_up(1.0), made_up(1.4), [True]),
        (made_up(1.4), made_up(1.0), [False]),
        (made_up(1.0, 0.3), made_up(1.4, 0.3), []),  # the spreads meet
        (made_up(1.0), made_up(1.12), []),  # less than the slack
        (made_up(1.0, who=LIMIT), made_up(2.0, who=LIMIT), []),
        (made_up(1.0, who=timing.UNCHECKED), made_up(2.0, who=timing.UNCHECKED), []),
        (made_up(1.0, case="other"), made_up(2.0), []),
    ],
)
def test_changes(before: Row, now: Row, wanted: list[bool]) -> None:
    assert [change.worse for change in comparing.changes([before], [now])] == wanted


def test_report() -> None:
    worse, better = made_up(1.5, case="b"), made_up(0.5, case="a")
    base = [made_up(1.0, case="a"), made_up(1.0, case="b"), made_up(1.0, case="c")]
    assert [str(change) for change in comparing.changes(base, [better, worse])] == [
        "slower: b: ours / jax.jit was 1.00 (0.95 - 1.05), is 1.50 (1.45 - 1.55)",
        "faster: a: ours / jax.jit was 1.00 (0.95 - 1.05), is 0.50 (0.45 - 0.55)",
    ]
    assert comparing.not_taken(base, [better, worse]) == ["c"]


def document(*rows: Row, suite: str = "gathering") -> dict[str, Any]:
    machine = {"processor": "P", "cores": 2, "system": "S", "python": "3", "versions": {"jax": "1"}}
    kept = [{"suite": suite, **row.as_dict()} for row in rows]
    notes = ["torch is left out"]
    return {"date": "2000-01-01", "command": "c", "machine": machine, "settings": [], "notes": notes, "rows": kept}


def test_exit_code_says_whether_something_is_slower(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, slower = tmp_path / "base.json", tmp_path / "slower.json"
    base.write_text(json.dumps(document(made_up(1.0))))
    slower.write_text(json.dumps(document(made_up(2.0))))
    assert command.main(["--compare", str(base), "--taken", str(slower)]) == 1
    assert "slower: rows: ours / jax.jit" in capsys.readouterr().out
    assert command.main(["--compare", str(slower), "--taken", str(base)]) == 0
    assert command.main(["--compare", str(base), "--taken", str(base)]) == 0
    with pytest.raises(SystemExit):
        command.main(["nothing"])


def test_gate_by_ratio(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [Row("one", BARE, 1e-3, 1e-3, 1e-3, 5, (1.9, 2.5, 9.0)), Row("two", BARE, 1e-3, 1e-3, 1e-3, 5, (2.1, 2.2, 2.3))]
    kept = tmp_path / "kept.json"
    kept.write_text(json.dumps(document(*rows)))
    assert command.main(["--taken", str(kept), "--most", "2.5"]) == 0
    assert command.main(["--taken", str(kept), "--most", "2"]) == 1
    assert capsys.readouterr().out.strip() == "two: 2.10 times jax.jit, of 2.0 allowed"


def test_page_of_two_runs() -> None:
    plain = document(Row("rows", OURS, 1e-3, 1e-3, 1e-3, 5, (1, 1, 1)))
    configured = document(Row("rows", OURS, 5e-4, 5e-4, 5e-4, 5, (1, 1, 1))) | {"settings": ["memory: kept"], "command": "d"}
    text = rendering.page(plain, configured)["performance.md"]
    assert "with `c` and `d`, on P" in text
    assert text.count("- torch is left out") == 1
    assert [line for line in text.splitlines() if line.startswith(("- memory", "## ", "| rows"))] == [
        "- memory: kept",
        "## The gather family",
        "| rows | 1.00 ms (1.00–1.00) |  |",
        "## The gather family, configured",
        "| rows | 500 µs (500–500) |  |",
    ]


def test_every_curve_has_its_reason() -> None:
    page = (Path(__file__).parents[1] / "docs" / "performance.md").read_text(encoding="utf-8")
    curves = set(re.findall(r"!\[(.+?)\]\(performance/(?!calls_configured)", page))
    assert curves == reasons.REASONS.keys()


def test_page() -> None:
    rows = [
        Row("indices: 1,000", OURS, 1e-3, 0.9e-3, 1.234e-3, 5, (1, 1, 1), 2**20),
        Row("indices: 1,000", BARE, 2e-3, 1.9e-3, 2.1e-3, 5, (0.4, 0.5, 0.6)),
        Row("indices: 1,000", "NumPy", 1.5e-3, 1.4e-3, 1.6e-3, 5, (0.6, 0.67, 0.7)),
        Row("indices: 1,000", LIMIT, 1e-6, 1e-6, 1e-6, 5, (900, 1000, 1100)),
        Row("indices: 10,000", OURS, 2.0, 1.9, 2.1, 5, (1, 1, 1)),
        Row("indices: 10,000", BARE, 1.0, 0.9, 1.1, 5, (1.8, 2.0, 2.2)),
    ]
    assert Row.from_dict(json.loads(json.dumps(rows[0].as_dict()))) == rows[0]
    files = rendering.page(json.loads(json.dumps(document(*rows))))
    assert files.keys() == {"performance.md", "performance/gathering_indices.svg"}
    text = files["performance.md"]
    assert "Taken on 2000-01-01 with `c`, on P (2 cores), S, Python 3; jax 1." in text
    assert text[text.index("## ") :].splitlines() == [
        "## The gather family",
        "",
        "Beside the best peer of each row: as fast or faster, or within 5 %, in 1 of 2 rows; geometric mean 1.16; "
        "slowest 2.00 (indices: 10,000).",
        "",
        "Beside `jax.jit`: as fast or faster, or within 5 %, in 1 of 2 rows; geometric mean 1.00; "
        "slowest 2.00 (indices: 10,000).",
        "",
        "| case | bnnsgraph | jax.jit | NumPy | memcpy | ours / jax.jit | ours / best peer | ours / memcpy | peak memory |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
        "| indices: 1,000 | 1.00 ms (0.900–1.23) | 2.00 ms (1.90–2.10) | 1.50 ms (1.40–1.60) | 1.00 µs (1.00–1.00) "
        "| 0.50 | 0.67 | 1000.00 | 1.0 |",
        "| indices: 10,000 | 2.00 s (1.90–2.10) | 1.00 s (0.900–1.10) |  |  | 2.00 | 2.00 |  |  |",
        "",
        "Peak memory in MiB: bnnsgraph.",
        "",
        "![indices](performance/gathering_indices.svg)",
        "",
        reasons.REASONS["indices"],
        "",
        "- torch is left out",
    ]
    picture = files["performance/gathering_indices.svg"]
    assert picture.count("<polyline") == 4
    assert ">1,000</text>" in picture
    assert ">10 ms</text>" in picture


def test_memory_of_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("only Linux counts the most memory that a process held")
    monkeypatch.setattr(growth, "calls", lambda curve, number: {curve: lambda: np.ones(number, np.float32)})
    found = growth.peaks("ones", 16 * 2**20)
    assert 48 * 2**20 < found["ones"] < 80 * 2**20  # of 64 MiB; the test's process has other threads


def test_recorded_chains_have_their_length() -> None:
    assert len(recording.freeze(10).nodes) == 11
    assert recording.bare(3)(np.full((8, 8), 2, np.float32))[0, 0] == 16
