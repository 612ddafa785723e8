"""The shortest way of a call: it answers as the long one does, and refuses nothing and compiles nothing on its own."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bnnsgraph as bg
from bnnsgraph.running import LOOKS
from tests.compilations import Compilations

TABLE = np.arange(12, dtype=np.float32).reshape(4, 3)
INDEX = np.array([3, 0], np.int32)
NARROW = {"float32", "int32", "int16", "uint32"}


def rows(b: bg.Builder) -> bg.Tensor:
    return b.argument("table", bg.Float32, [4, 3]).gather(b.argument("index", bg.Int32, [2]), axis=0)


def total(b: bg.Builder) -> bg.Tensor:
    return b.argument("x", bg.Float32, [2]) + b.argument("y", bg.Float32, [2])


@pytest.mark.parametrize("make", [jnp.asarray, np.array, lambda x: np.asarray(x)[::1]], ids=["jax", "numpy", "view"])
def test_the_answer(make: Any) -> None:
    context = bg.make_context(rows)
    table, index = make(TABLE), make(INDEX)
    with Compilations() as seen:
        for _ in range(3):
            assert np.array_equal(context(table, index), TABLE[INDEX])
            assert np.array_equal(context(index=index, table=table), TABLE[INDEX])
    assert seen.count == 0
    assert len(context.compilations) == 1


@pytest.mark.parametrize("make", [jnp.asarray, np.array], ids=["jax", "numpy"])
def test_a_check_that_fails(make: Any) -> None:
    context = bg.make_context(rows)
    for _ in range(2):
        with pytest.raises(bg.IndexOutOfBoundsError, match=r"indices must be in \[-4, 4\) on axis 0, got 4 at position \[1\]"):
            context(make(TABLE), make(np.array([0, 4], np.int32)))
        assert np.array_equal(context(make(TABLE), make(INDEX)), TABLE[INDEX])


@pytest.mark.parametrize(
    ("arrays", "error", "words"),
    [
        ([TABLE.astype(np.float64), INDEX], bg.DTypeError, "argument 'table' must be of dtype float32, got float64"),
        ([TABLE, INDEX.astype(np.int64)], bg.DTypeError, "argument 'index' must be of dtype int32, got int64"),
        ([TABLE, INDEX.astype(np.int16)], bg.DTypeError, "argument 'index' must be of dtype int32, got int16"),
        ([TABLE, INDEX.astype(np.uint32)], bg.DTypeError, "argument 'index' must be of dtype int32, got uint32"),
        ([TABLE.astype(">f4"), INDEX], bg.DTypeError, "argument 'table' must be of dtype float32, got >f4"),
        ([TABLE.astype(object), INDEX], bg.DTypeError, "argument 'table' must be of dtype float32, got object"),
        ([TABLE[:3], INDEX], bg.ShapeError, r"argument 'table'.*\[4, 3\].*\[3, 3\]"),
        ([TABLE, INDEX[:, None]], bg.ShapeError, r"argument 'index'.*\[2\].*\[2, 1\]"),
        ([TABLE], bg.ArgumentError, "every argument must be given, got none for index"),
        ([TABLE, INDEX, INDEX], bg.ArgumentError, r"the graph must be given 2 arguments \(table, index\), got 3"),
    ],
    ids=lambda value: None,
)
@pytest.mark.parametrize("on_device", [False, True])
def test_what_does_not_fit(arrays: list[Any], error: type[Exception], words: str, on_device: bool) -> None:
    context = bg.make_context(rows)
    if on_device:
        arrays = [jnp.asarray(array) if str(array.dtype) in NARROW else array for array in arrays]
    for _ in range(2):  # what was refused is refused again
        with pytest.raises(error, match=words):
            context(*arrays)
    assert np.array_equal(context(TABLE, INDEX), TABLE[INDEX])


def test_weak_types_compile_nothing_and_do_not_last() -> None:
    context = bg.make_context(total)
    weak = jnp.full(2, 3.0)
    assert weak.weak_type
    wanted = np.full(2, 4, np.float32)
    assert np.array_equal(context(weak, np.ones(2, np.float32)), wanted)  # JAX compiles the conversion, once
    with Compilations() as seen:
        result = context(weak, np.ones(2, np.float32))
    assert np.array_equal(result, wanted)
    assert not result.weak_type
    assert seen.count == 0


def test_weak_types_with_flexible_sizes() -> None:
    context = bg.make_context(lambda b: b.argument("x", bg.Float32, ["n"]) * 2)
    assert np.array_equal(context(np.ones(2, np.float32)), np.full(2, 2, np.float32))
    result = context(jnp.full(2, 3.0))
    assert np.array_equal(result, np.full(2, 6, np.float32))
    assert not result.weak_type
    assert len(context.compilations) == 1


@pytest.mark.parametrize("block", [rows, total])
def test_arrays_of_its_own_inside_of_jit(block: Any) -> None:
    """No argument is traced; only the place of the call is."""
    context: Any = bg.make_context(block)
    arrays: list[Any] = [TABLE, INDEX] if block is rows else [TABLE[0, :2], TABLE[1, :2]]
    wanted: Any = context(*arrays)
    for make in (np.asarray, jnp.asarray):
        given = [make(array) for array in arrays]
        assert np.array_equal(jax.jit(lambda y, given=given: context(*given) * y)(np.float32(2)), wanted * 2)
        assert np.array_equal(jax.vmap(lambda y, given=given: context(*given) * y)(np.ones(1, np.float32))[0], wanted)


def test_updates_of_its_own_inside_of_jit() -> None:
    """The check of so many, which would be waited for, is traced there."""
    x, updates, indices = np.zeros(1000, np.float32), np.ones(1000, np.float32), np.arange(1000, dtype=np.int32)

    def block(b: bg.Builder) -> bg.Tensor:
        given = [b.argument(name, array.dtype, array.shape) for name, array in zip("xui", (x, updates, indices), strict=True)]
        return given[0].scatter(*given[1:], axis=0, mode=bg.ScatterMode.ADD)

    context = bg.make_context(block)
    assert np.array_equal(jax.jit(lambda y: context(x, updates, indices) * y)(np.float32(2)), updates * 2)


def test_a_check_for_nan_can_be_switched() -> None:
    context = bg.make_context(total)
    bad = np.array([1, np.nan], np.float32)
    for on in (False, True, False):
        context.check_for_nans_and_infinities = on
        if on:
            with pytest.raises(bg.NotFiniteError, match="argument 'x' must be finite"):
                context(bad, bad)
        else:
            assert np.isnan(context(bad, bad)[1])


def test_copies_call_as_the_first_does() -> None:
    context = bg.make_context(rows)
    for other in (pickle.loads(pickle.dumps(context)), copy.deepcopy(context)):
        for _ in range(2):
            assert np.array_equal(other(TABLE, INDEX), TABLE[INDEX])
        with pytest.raises(bg.IndexOutOfBoundsError):
            other(TABLE, INDEX + 1)


def test_several_results() -> None:
    context = bg.make_context(lambda b: {"low": (x := b.argument("x", bg.Float32, [2])) - 1, "high": x + 1})
    for array in (np.ones(2, np.float32), jnp.ones(2, jnp.float32)):
        low, high = context(array)
        assert low.tolist() == [0, 0]
        assert high.tolist() == [2, 2]
        assert context(array)._fields == ("low", "high")


def test_state_that_is_donated() -> None:
    def block(b: bg.Builder) -> bg.Tensor:
        state = b.argument("state", bg.Float32, [2], bg.Intent.INPUT_OUTPUT)
        state[:] = state + b.argument("x", bg.Float32, [2])
        return state * 2

    context = bg.make_context(block, options=bg.CompileOptions(donate=True))
    state = jnp.zeros(2, jnp.float32)
    for step in range(1, 4):
        before = state
        doubled, state = context(state, np.ones(2, np.float32))
        assert before.is_deleted()
        assert doubled.tolist() == [2 * step] * 2
        assert state.tolist() == [step] * 2


@pytest.mark.parametrize(
    ("count", "width", "mode", "wanted"),
    [(8, 4, "raise", range(0)), (1000, 4, "raise", LOOKS), (100_000, 4, "raise", range(0)), (1000, 4, "unchecked", None)],
)
def test_a_short_program_is_waited_for_awake(count: int, width: int, mode: Any, wanted: range | None) -> None:
    """Neither one that runs at once on this thread, nor a long one."""
    table = np.arange(100 * width, dtype=np.float32).reshape(100, width)
    indices = (np.arange(count) % 100).astype(np.int32)

    def block(b: bg.Builder) -> bg.Tensor:
        x, i = b.argument("x", bg.Float32, table.shape), b.argument("i", bg.Int32, indices.shape)
        return x.gather(i + 0, axis=0, out_of_bounds=mode)  # not an argument, which would be looked at before the run

    context = bg.make_context(block)
    assert context._runner.direct is not None
    assert context._runner.direct[2] == wanted
    assert np.array_equal(context(table, indices), table[indices])
    if mode == "raise":
        with pytest.raises(bg.IndexOutOfBoundsError):
            context(table, indices + 100)
