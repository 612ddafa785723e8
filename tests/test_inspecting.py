"""Traces and comparisons: every value of a run, and the first that differs from a reference."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bnnsgraph as bg
from bnnsgraph.compile import LARGE

RNG = np.random.default_rng(4)
TABLE = RNG.normal(size=(LARGE // 32, 8)).astype(np.float32)
WEIGHT = RNG.normal(size=(8, 4)).astype(np.float32)
TOKENS = np.array([[1, -1], [7, 0], [2, 2]], np.int32)


def float32(values: Any) -> np.ndarray:
    return np.array(values, np.float32)


def model(b: bg.Builder, weight: np.ndarray = WEIGHT) -> Any:
    tokens = b.argument("tokens", bg.Int32, ["batch", 2])
    table = b.constant("table", values=TABLE)
    rows = table.gather(tokens, axis=0)
    hidden = (rows @ weight).relu()
    left, _ = hidden.split(2, axis=2)
    scores = left.mean([1])
    return {"result": scores}


def reference(tokens: np.ndarray) -> dict[str, np.ndarray]:
    rows = TABLE[tokens]
    hidden = np.maximum(rows @ WEIGHT, 0)
    left = hidden[..., :2]
    return {"rows": rows, "hidden": hidden, "left": left, "result": left.mean(1)}


@pytest.fixture(scope="module")
def context() -> bg.Context:
    return bg.make_context(model)


def test_every_value_in_recorded_order(context: bg.Context) -> None:
    trace = context.trace(tokens=TOKENS)
    assert [traced.name for traced in trace] == [
        "tokens", "table", "rows", "constant_3", "mat_mul_4", "hidden", "left", "split_6_1", "result",
    ]  # fmt: skip
    assert len(trace) == 9
    for name, wanted in reference(TOKENS).items():
        np.testing.assert_allclose(trace[name].value, wanted, rtol=1e-5, atol=1e-6)
    assert (trace["tokens"].value.tolist(), trace["constant_3"].value.tolist()) == (TOKENS.tolist(), WEIGHT.tolist())
    assert trace["table"].value is context._runner.placed().parameters[0]  # not copied
    assert all(isinstance(traced.value, jax.Array) and traced.spec.shape == traced.value.shape for traced in trace)
    assert str(trace["hidden"].spec) == "float32[3, 2, 4]"
    assert trace["hidden"].origin.text == "hidden = (rows @ weight).relu()"
    assert trace["split_6_1"].op is trace["left"].op
    assert "left" in trace
    assert "nothing" not in trace
    with pytest.raises(bg.ArgumentError, match=r"^the name of a value must be one of tokens, table, .*, got 'nothing'"):
        trace["nothing"]


def test_one_program_for_each_set_of_sizes(context: bg.Context) -> None:
    context.trace(TOKENS)
    assert context._tracing is not None
    run: Any = context._tracing.run
    before = run._cache_size()
    context.trace(TOKENS + 1)
    assert run._cache_size() == before
    context.trace(TOKENS[:1])
    assert run._cache_size() == before + 1


def test_the_table_of_a_trace() -> None:
    def block(b: bg.Builder) -> Any:
        x = b.argument("x", bg.BFloat16, ["n"])
        root = x**0.5
        return root, root > 1, b.argument("wide", bg.UInt64, []) // 2

    context = bg.make_context(block)
    lines = repr(context.trace(np.array([4, -1, 9], jnp.bfloat16), np.uint64(2**63))).splitlines()
    assert [line.split()[:-1] for line in lines] == [
        ["value", "type", "min", "max", "mean", "NaN", "operation"],
        ["x", "bfloat16[3]", "-1", "9", "4", "0", "Argument"],
        ["constant_1", "bfloat16[]", "0.5", "0.5", "0.5", "0", "Constant"],
        ["root", "bfloat16[3]", "2", "3", "2.5", "1", "Power"],
        ["constant_3", "bfloat16[]", "1", "1", "1", "0", "Constant"],
        ["output_1", "bool[3]", "0", "1", "0.6667", "0", "Greater"],
        ["wide", "uint64[]", "9.223e+18", "9.223e+18", "9.223e+18", "0", "Argument"],
        ["constant_6", "uint64[]", "2", "2", "2", "0", "Constant"],
        ["output_2", "uint64[]", "4.612e+18", "4.612e+18", "4.612e+18", "0", "FloorDivide"],
    ]
    assert all("test_inspecting.py:" in line for line in lines[1:])
    empty = context.trace(np.zeros(0, jnp.bfloat16), np.uint64(1))
    assert str(empty).splitlines()[1].split()[2:6] == ["-", "-", "-", "0"]


def test_traces_check_as_runs_do(context: bg.Context) -> None:
    for call in (context.trace, lambda tokens: context.compare("op by op", tokens)):
        with pytest.raises(bg.IndexOutOfBoundsError, match=rf"^Gather\(axis=0\): indices must be in .*, got {len(TABLE)}"):
            call(np.full((1, 2), len(TABLE), np.int32))
    with pytest.raises(bg.ShapeError, match=r"^argument 'tokens' must have rank 2"):
        context.trace(np.zeros(2, np.int32))
    with pytest.raises(bg.DTypeError, match="must be of dtype int32"):
        context.trace(np.zeros((1, 2)))
    with pytest.raises(bg.ArgumentError, match=r"^trace and compare must be given arrays, got one that JAX traces; call them"):
        jax.jit(context.trace)(TOKENS)
    checked = bg.make_context(lambda b: b.argument("x", bg.Float32, [2]).log(0))
    checked.check_for_nans_and_infinities = True
    with pytest.raises(bg.NotFiniteError, match="must be finite"):
        checked.trace(float32([0, 1]))


def test_op_by_op(context: bg.Context, monkeypatch: pytest.MonkeyPatch) -> None:
    comparison = context.compare("op by op", TOKENS)
    assert comparison.ok
    assert comparison.first is None
    assert [each.name for each in comparison.differences] == [
        "rows", "mat_mul_4", "hidden", "left", "split_6_1", "result",
    ]  # fmt: skip
    assert repr(comparison).startswith("all 6 values agree\n\nvalue ")

    from bnnsgraph.ops.activation import ReLU

    monkeypatch.setattr(ReLU, "compute", lambda self, x: x)  # the program is compiled already
    broken = context.compare("op by op", TOKENS)
    assert broken.first is not None
    assert [each.name for each in broken.differences if not each.ok] == ["hidden"]  # what is made of it is right
    assert str(broken.first).startswith("hidden (ReLU()), recorded at test_inspecting.py:")


def test_named_arrays_from_elsewhere(context: bg.Context) -> None:
    wanted = reference(TOKENS)
    assert context.compare(wanted, TOKENS).ok
    assert context.compare(wanted.get, TOKENS).ok
    assert context.compare(context.trace(TOKENS), TOKENS, tolerance=0).ok
    wrong = {**wanted, "hidden": wanted["hidden"] * np.float32(1.001), "left": wanted["left"][..., 0]}
    largest = tuple(int(part) for part in np.unravel_index(wanted["hidden"].argmax(), wanted["hidden"].shape))
    comparison = context.compare(wrong, TOKENS)
    first = comparison.first
    assert first is not None
    assert (first.name, first.index, comparison.ok) == ("hidden", largest, False)
    assert first.count > 1
    assert first.absolute == pytest.approx(0.001 * wanted["hidden"].max(), rel=1e-2)
    assert first.relative == pytest.approx(0.001, rel=0.02)
    assert first.got == pytest.approx(wanted["hidden"][largest], rel=1e-5)
    assert first.wanted == wrong["hidden"][largest]
    assert [each.ok for each in comparison.differences] == [True, False, False, True]
    assert comparison.differences[2].mismatch == "[3, 2, 2] against [3, 2]"
    assert "shapes differ: [3, 2, 2] against [3, 2]" in str(comparison.differences[2])
    assert repr(comparison).startswith("first of 4 values to differ: hidden (ReLU()), recorded at test_inspecting.py:")
    assert f" at {list(largest)} where the reference has " in str(first)
    assert context.compare({"hidden": wrong["hidden"]}, TOKENS, tolerance=0.002).ok
    weights = context.compare({"table": TABLE[::-1], "tokens": TOKENS}, TOKENS)
    assert [each.ok for each in weights.differences] == [True, False]


def test_another_context(context: bg.Context) -> None:
    def other(b: bg.Builder) -> Any:
        return model(b, WEIGHT + float32([0, 0, 1e-3, 0]))

    comparison = context.compare(bg.make_context(other), TOKENS)
    assert comparison.first is not None
    assert (comparison.first.name, comparison.first.index is not None) == ("constant_3", True)

    def by_hand(b: bg.Builder) -> Any:
        tokens = b.argument("tokens", bg.Int32, ["n", 2])
        rows = b.constant(values=TABLE).gather(tokens, axis=0)
        hidden = (rows @ WEIGHT).max(0)
        return {"result": hidden.maximum([2]).mean([1])}

    comparison = context.compare(bg.make_context(by_hand), TOKENS)
    assert [(each.name, each.ok) for each in comparison.differences] == [("rows", True), ("hidden", True), ("result", False)]
    assert comparison.differences[2].mismatch == "[3, 2] against [3]"

    def half(b: bg.Builder, dtype: Any) -> Any:
        x = b.argument("x", dtype, ["n"])
        y = x.exp()
        return y.sum(None)

    wide, narrow = bg.make_context(lambda b: half(b, bg.Float32)), bg.make_context(lambda b: half(b, bg.BFloat16))
    x = float32([1 / 3, 2, -1, 0])
    assert wide.compare(narrow, x).ok
    assert not wide.compare(narrow, x, tolerance=1e-6).ok


@pytest.mark.parametrize(
    ("got", "wanted", "count", "absolute", "relative"),
    [
        (float32([np.nan, np.inf, -np.inf]), float32([np.nan, np.inf, -np.inf]), 0, 0, 0),
        (float32([np.nan, np.inf, 1]), float32([1, -np.inf, 1]), 2, np.inf, np.inf),
        (float32([0, 1]), float32([1e-7, 1]), 0, 1e-7, 1),
        (float32([1e-7, 1]), float32([0, 1]), 0, 1e-7, np.inf),
        (np.array([2**62 + 1, 5]), np.array([2**62, 5]), 1, 0, 0),
        (np.array([True, False]), np.array([True, True]), 1, 1, 1),
        (np.zeros(0, np.float32), np.zeros(0, np.float32), 0, 0, 0),
        (np.float32(2), np.float32(1), 1, 1, 1),
        (np.array([1, 258], jnp.bfloat16), float32([1, 256]), 0, 2, 2 / 256),
    ],
)  # fmt: skip
def test_what_counts_as_different(got: Any, wanted: Any, count: int, absolute: float, relative: float) -> None:
    builder = bg.Builder()
    value: Any = builder.argument("x", got.dtype, got.shape)
    from bnnsgraph.inspecting import _difference

    found = _difference("x", value._value, got, wanted, None)
    assert (found.count, found.ok) == (count, not count)
    assert (found.absolute, found.relative) == (pytest.approx(absolute), pytest.approx(relative))
    assert ("no elements" in str(found)) == (not got.size)
    if found.index and count == 1:
        assert got[found.index] != wanted[found.index]


def test_references_that_cannot_be_used(context: bg.Context) -> None:
    empty: dict[str, Any] = {}
    for wrong, words in [
        ({"row": TABLE}, r"^the names of a reference must be among tokens, table, rows, .*, got 'row'"),
        (empty, r"^the reference must have some of tokens, .*, got none of them"),
        ("numpy", r"^reference must be 'op by op', a mapping of names to arrays, a function of a name or a context, got str"),
        (3, r"got int"),
    ]:
        unusable: Any = wrong
        with pytest.raises(bg.ArgumentError, match=words):
            context.compare(unusable, TOKENS)
    with pytest.raises(bg.ParameterError, match=r"^tolerance must be at least 0, got -1"):
        context.compare("op by op", TOKENS, tolerance=-1)
