"""Sums of gathered rows are written out as sums of gathers: the same values and errors, and only where it is faster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import numpy.typing as npt
import pytest

import bnnsgraph as bg

RNG = np.random.default_rng(0)
ROWS = 50


def bag(
    build: Callable[[bg.Tensor[Any]], Any],
    shape: tuple[int, ...] = (512, 8),
    dtype: npt.DTypeLike = np.float32,
    options: bg.CompileOptions | None = None,
    width: tuple[int, ...] = (4, 8),
    **rule: Any,
) -> tuple[bg.Context, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """A sum of gathered rows, a table, and indices; negative ones and one of them twice among them."""
    table = RNG.integers(-9, 9, (ROWS, *width)).astype(dtype)
    indices = RNG.integers(-ROWS, ROWS, shape).astype(np.int32)

    def block(b: bg.Builder) -> Any:
        x, i = b.argument("x", table.dtype, table.shape), b.argument("i", bg.Int32, shape)
        return build(x.gather(i, axis=0, **rule))

    return bg.make_context(block, options=options), table, indices


def lines(context: bg.Context) -> list[str]:
    return [rewrite.what for rewrite in context.rewrites]


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32])
@pytest.mark.parametrize("keep", [False, True])
def test_sums_are_exact_where_the_numbers_are(dtype: type[np.generic], keep: bool) -> None:
    context, table, indices = bag(lambda rows: rows.sum([1], keep_dimensions=keep), dtype=dtype)
    assert lines(context) == [f"ReduceSum(axes=(1,){', keep_dimensions=True' if keep else ''}) "
                              "over gathered rows written as a sum of 8 gathers"]  # fmt: skip
    result = context(table, indices)
    assert result.dtype == table.dtype
    np.testing.assert_array_equal(result, table[indices].sum(1, keepdims=keep, dtype=table.dtype))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_any_axis_of_the_indices(axis: int) -> None:
    context, table, indices = bag(lambda rows: rows.sum([axis]), (16, 8, 32))
    assert len(lines(context)) == 1
    np.testing.assert_array_equal(context(table, indices), table[indices].sum(axis))


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_means_are_rounded_once(dtype: type[np.generic]) -> None:
    context, table, indices = bag(lambda rows: rows.mean([1]), (512, 7), dtype)
    assert lines(context) == ["ReduceMean(axes=(1,)) over gathered rows written as a sum of 7 gathers"]
    expected = (table[indices].astype(np.float32).sum(1) / np.float32(7)).astype(dtype)
    np.testing.assert_array_equal(context(table, indices), expected)


def test_rules_for_indices_stay() -> None:
    context, table, indices = bag(lambda rows: rows.sum([1]))
    indices[3, 5] = ROWS
    with pytest.raises(bg.IndexOutOfBoundsError, match=r"\[-50, 50\) on axis 0, got 50 at position \[3, 5\]"):
        context(table, indices)
    clipped, _, _ = bag(lambda rows: rows.sum([1]), out_of_bounds="clip")
    filled, _, _ = bag(lambda rows: rows.sum([1]), out_of_bounds=bg.fill(100))
    rows = table[np.minimum(indices, ROWS - 1)]
    np.testing.assert_array_equal(clipped(table, indices), rows.sum(1))
    rows[3, 5] = 100
    np.testing.assert_array_equal(filled(table, indices), rows.sum(1))


@pytest.mark.parametrize(
    ("build", "settings"),
    [
        (lambda rows: rows.sum([2]), {}),  # along the row
        (lambda rows: rows.sum([0, 1]), {}),
        (lambda rows: rows.maximum([1]), {}),
        (lambda rows: (rows, rows.sum([1])), {}),  # the rows are needed, too
        (lambda rows: rows.sum([1]), {"shape": (256, 33)}),  # the program would grow
        (lambda rows: rows.sum([1]), {"width": (2, 4)}),  # rows are short
        (lambda rows: rows.sum([1]), {"shape": (8, 8)}),  # little is gathered
        (lambda rows: rows.sum([1]), {"options": bg.CompileOptions(optimize_graph=False)}),
    ],
)
def test_what_stays_as_it_is(build: Callable[[bg.Tensor[Any]], Any], settings: dict[str, Any]) -> None:
    context, _, _ = bag(build, **settings)
    assert lines(context) == []


def test_a_gradient_is_one_scatter() -> None:
    context, table, indices = bag(lambda rows: rows.sum([1]))

    def loss(table: Any) -> Any:
        return (context.function(table, indices) ** 2).sum()

    assert jax.jit(jax.grad(loss)).lower(table).as_text().count('"stablehlo.scatter"') == 1
