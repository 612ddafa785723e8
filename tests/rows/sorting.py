"""Rows of ``bnnsgraph.ops.sorting``."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import bnnsgraph as bg
from bnnsgraph import SortOrder
from bnnsgraph.dtypes import DType
from tests.op_table import FLOATS, NUMBERS, Draw, Input, OpCase, Wrong, integers, separated, shapes


def order(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    """Stable positions with NaN as the greatest, without negation."""
    if not descending:
        return np.argsort(x, axis, kind="stable")
    backwards = np.argsort(np.flip(x, axis), axis, kind="stable")
    return x.shape[axis] - 1 - np.flip(backwards, axis)


def best(k: int, axis: int, find_largest: bool) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """The first ``k`` by a stable sort of everything."""

    def reference(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        positions = np.take(order(x, axis, find_largest), range(k), axis)
        return np.take_along_axis(x, positions, axis), positions

    return reference


def special(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Few different values with NaN of both signs, infinities and both zeros among them."""
    choices = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -1.5, 65504.0, -65504.0])
    return rng.choice(choices, shape)


def extremes(dtype: DType) -> Draw:
    """The least and greatest integers of the type and their neighbours, with repetitions."""
    bounds = np.iinfo(dtype.numpy)
    choices = np.array([bounds.min, bounds.min + 1, bounds.max, bounds.max - 1, 0, 1], dtype.numpy)
    return lambda rng, shape: rng.choice(choices, shape)


WIDE = [bg.Int64, bg.UInt64, bg.Int32, bg.UInt32, bg.Int16, bg.UInt16, bg.Int8]
SOME = (bg.Float16, bg.Float32, bg.UInt8, bg.Int32, bg.Float64)
"""One of each way in which the rows are ordered."""
TIES = shapes([(3, 40)], draw=integers(-3, 4))
SPECIAL = shapes([(4, 60)], [(33,)], draw=special)
LARGE = shapes([(2, 3, 500)], draw=integers(-40, 40))

ROWS = [
    OpCase(
        "top-k", lambda x: x.top_k(3, axis=1), best(3, 1, True), shapes([(2, 5, 3)], [(0, 5)], draw=separated),
        NUMBERS, ulps=0, ulps16=0,
        wrong=[
            Wrong(lambda b: b.argument("x", bg.Float32, [2, 3]).top_k(4, axis=1), bg.ShapeError,
                  "TopK(axis=1, k=4): k must be at most the size of axis 1, 3, got 4"),
            Wrong(lambda b: b.argument("x", bg.Float32, [2, 3]).top_k(-1, axis=1), bg.ParameterError, "k must be at least 0, got -1"),
            Wrong(lambda b: b.argument("x", bg.Float32, [2, 3]).top_k(1.0, axis=1), bg.ParameterError, "k must be an integer, got 1.0"),
            Wrong(lambda b: b.argument("x", bg.Float32, []).top_k(1, axis=0), bg.ShapeError,
                  "axis must name an axis, but the tensor has rank 0, got 0"),
            Wrong(lambda b: b.argument("x", bg.Bool, [3]).top_k(1, axis=0), bg.DTypeError, "x must be of a number type, got bool"),
            Wrong(lambda b: b.argument("x", bg.Int8, [2**31 + 1]).top_k(1, axis=0), bg.ShapeError,
                  "positions must fit int32, got size 2147483649 on axis 0"),
        ],
    ),
    OpCase("top-k-smallest", lambda x: x.top_k(2, axis=-1, find_largest=False), best(2, -1, False), [*shapes([(2, 5)], draw=separated), *TIES], NUMBERS, ulps=0, ulps16=0),
    OpCase("top-k-special", lambda x: (*x.top_k(20, axis=-1), *x.top_k(20, axis=-1, find_largest=False)),
           lambda x: (*best(20, -1, True)(x), *best(20, -1, False)(x)), SPECIAL, FLOATS, gradient=False, ulps=0, ulps16=0),
    OpCase("top-k-ties", lambda x: (*x.top_k(300, axis=-1), *x.top_k(300, axis=-1, find_largest=False)),
           lambda x: (*best(300, -1, True)(x), *best(300, -1, False)(x)), LARGE, SOME, gradient=False, ulps=0, ulps16=0),
    OpCase("top-k-nothing", lambda x: x.top_k(0, axis=0), best(0, 0, True), shapes([(2, 3)], [(0, 2)]), SOME, gradient=False),
    OpCase("top-k-everything", lambda x: x.top_k(6, axis=0, find_largest=False), best(6, 0, False), shapes([(6,)], [(6, 2)], draw=separated), SOME, ulps=0, ulps16=0),
    *[
        OpCase(f"top-k-extremes-{dtype.name}", lambda x: (*x.top_k(30, axis=-1), *x.top_k(30, axis=-1, find_largest=False)),
               lambda x: (*best(30, -1, True)(x), *best(30, -1, False)(x)), [(Input((2, 40), extremes(dtype)),)], (dtype,), gradient=False)
        for dtype in WIDE
    ],
    OpCase(
        "arg-sort", lambda x: x.arg_sort(axis=1), lambda x: order(x, 1, False), [*shapes([(2, 5, 3)], [(2, 0)], draw=integers(-3, 4))], NUMBERS, gradient=False,
        wrong=[
            Wrong(lambda b: b.argument("x", bg.Float32, [3]).arg_sort(axis=1), bg.ShapeError, "axis must be in [-1, 1), got 1"),
            Wrong(lambda b: b.argument("x", bg.Float32, [3]).arg_sort(0, "descending"), bg.ParameterError,
                  "sort_order must be a SortOrder, such as SortOrder.DESCENDING, got 'descending'"),
        ],
    ),
    OpCase("arg-sort-descending", lambda x: x.arg_sort(axis=-1, sort_order=SortOrder.DESCENDING), lambda x: order(x, -1, True), TIES, NUMBERS, gradient=False),
    OpCase("arg-sort-special", lambda x: (x.arg_sort(axis=-1), x.arg_sort(axis=-1, sort_order=SortOrder.DESCENDING)),
           lambda x: (order(x, -1, False), order(x, -1, True)), SPECIAL, FLOATS, gradient=False),
    *[
        OpCase(f"arg-sort-extremes-{dtype.name}", lambda x: (x.arg_sort(axis=-1), x.arg_sort(axis=-1, sort_order=SortOrder.DESCENDING)),
               lambda x: (order(x, -1, False), order(x, -1, True)), [(Input((2, 40), extremes(dtype)),)], (dtype,), gradient=False)
        for dtype in WIDE
    ],
    OpCase("sort", lambda x: x.sort(axis=0), lambda x: np.sort(x, 0), shapes([(5, 3)], [(0, 2)], draw=separated), NUMBERS, ulps=0, ulps16=0),
    OpCase("sort-descending", lambda x: x.sort(axis=-1, sort_order=SortOrder.DESCENDING), lambda x: np.flip(np.sort(x, -1), -1),
           shapes([(5, 3)], [(3, 0)], draw=separated), NUMBERS, ulps=0, ulps16=0),
    OpCase("sort-special", lambda x: (x.sort(axis=-1), x.sort(axis=-1, sort_order=SortOrder.DESCENDING)),
           lambda x: (np.sort(x, -1), np.flip(np.sort(x, -1), -1)), SPECIAL, FLOATS, gradient=False, ulps=0, ulps16=0),
]  # fmt: skip
