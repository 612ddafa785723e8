"""Rows of ``bnnsgraph.ops.gathering`` and ``scattering``; ``test_index_properties.py`` holds the long proof."""

from __future__ import annotations

import numpy as np

import bnnsgraph as bg
from bnnsgraph import ScatterMode
from tests.op_table import EVERY, FLOATS, Input, OpCase, Wrong, integers


def index(shape: tuple[int, ...], size: int) -> Input:
    """Valid indices of an axis, both signs."""
    return Input(shape, integers(-size, size), dtype=bg.Int32)


def distinct(shape: tuple[int, ...], size: int) -> Input:
    """Valid indices along the last axis of ``shape``, each at most once."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return np.stack([rng.permutation(size)[: shape[-1]] for _ in range(int(np.prod(shape[:-1])))]).reshape(shape)

    return Input(shape, draw, dtype=bg.Int32)


def batched(x: np.ndarray, i: np.ndarray) -> np.ndarray:
    """Gather along axis 2 with one batch axis."""
    return np.stack([np.take(a, b, axis=1) for a, b in zip(x, i, strict=True)])


def nd(x: np.ndarray, i: np.ndarray) -> np.ndarray:
    """Element by element."""
    return x[tuple(np.moveaxis(i, -1, 0))]


def scatter_with(ufunc: np.ufunc):
    """Updates one after the other along axis 0."""

    def reference(x: np.ndarray, u: np.ndarray, i: np.ndarray) -> np.ndarray:
        result = x.copy()
        ufunc.at(result, i, u)
        return result

    return reference


def placed(x: np.ndarray, u: np.ndarray, i: np.ndarray) -> np.ndarray:
    """``numpy.put_along_axis`` along axis 1, not in place."""
    result = x.copy()
    np.put_along_axis(result, i % x.shape[1], u, 1)
    return result


def placed_nd(x: np.ndarray, u: np.ndarray, i: np.ndarray) -> np.ndarray:
    """Updates added one after the other at index vectors."""
    result = x.copy()
    np.add.at(result, tuple(np.moveaxis(i, -1, 0)), u)
    return result


ROWS = [
    OpCase(
        "gather", lambda x, i: x.gather(i, 1), lambda x, i: np.take(x, i, 1),
        [(Input((2, 3, 2)), index((2, 2), 3)), (Input((2, 3)), index((), 3)), (Input((0, 3)), index((2,), 3)),
         (Input((2, 3)), index((0,), 3))],
        EVERY,
        wrong=[
            Wrong(
                lambda b: b.argument("x", bg.Float32, [2, 3]).gather(b.argument("i", bg.Float32, [2]), 0), bg.DTypeError,
                "Gather(axis=0): indices must be of an integer type, got float32",
            ),
            Wrong(
                lambda b: b.argument("x", bg.Float32, [2, 3]).gather([0], 2), bg.ShapeError, "axis must be in [-2, 2), got 2",
            ),
            Wrong(
                lambda b: b.argument("x", bg.Float32, [2, 3]).gather([[0], [5]], 1), bg.IndexOutOfBoundsError,
                "indices must be in [-3, 3) on axis 1, got 5 at position [1, 0]",
            ),
            Wrong(
                lambda b: b.argument("x", bg.Float32, [2, 3]).gather(b.argument("i", bg.Int32, [1, 3]), 1, 1), bg.ShapeError,
                "batch sizes of x and indices on axis 0 must be equal, got 2 against 1",
            ),
        ],
    ),
    OpCase(
        "gather-batched", lambda x, i: x.gather(i, 2, 1), batched,
        [(Input((2, 3, 4)), index((2, 2), 4)), (Input((2, 0, 4)), index((2, 3), 4))], EVERY,
    ),
    OpCase(
        "gather-along-axis", lambda x, i: x.gather_along_axis(i, 1), lambda x, i: np.take_along_axis(x, i.astype(int), 1),
        [(Input((2, 3)), index((2, 4), 3)), (Input((0, 3)), index((0, 4), 3)), (Input((2, 3)), index((2, 0), 3))], EVERY,
    ),
    OpCase(
        "gather-nd", lambda x, i: x.gather_nd(i), nd,
        [(Input((2, 3, 2)), index((4, 2), 2)), (Input((2, 3)), index((2,), 2)), (Input((2, 0)), index((3, 1), 2))], EVERY,
        flexible="the last size of indices is the number of addressed axes",
    ),
    OpCase(
        "scatter-update", lambda x, u, i: x.scatter(u, i, ScatterMode.UPDATE, 0), lambda x, u, i: _put(x, u, i),
        [(Input((4, 3)), Input((2, 3)), distinct((2,), 4)), (Input((4, 0)), Input((2, 0)), distinct((2,), 4))], EVERY,
        flexible="a flexible size may not be repeated in another place",
    ),
    *[
        OpCase(
            f"scatter-{mode.name.lower()}", lambda x, u, i, mode=mode: x.scatter(u, i, mode, 0), scatter_with(ufunc),
            [(Input((3, 2)), Input((4, 2), lambda r, s: r.uniform(1, 2, s)), index((4,), 3)), (Input((3,)), Input(()), index((), 3))],
            FLOATS if mode is ScatterMode.DIVIDE else (*FLOATS, bg.Int8, bg.Int32, bg.UInt16, bg.Int64),
            ulps=8, ulps16=2, magnitude=8, gradient=mode in (ScatterMode.ADD, ScatterMode.SUBTRACT),
            flexible="a flexible size may not be repeated in another place",
        )
        for mode, ufunc in [
            (ScatterMode.ADD, np.add),
            (ScatterMode.SUBTRACT, np.subtract),
            (ScatterMode.MULTIPLY, np.multiply),
            (ScatterMode.DIVIDE, np.divide),
            (ScatterMode.MAXIMUM, np.maximum),
            (ScatterMode.MINIMUM, np.minimum),
        ]
    ],
    OpCase(
        "scatter-along-axis", lambda x, u, i: x.scatter_along_axis(u, i, ScatterMode.UPDATE, 1), placed,
        [(Input((2, 4)), Input((2, 3)), distinct((2, 3), 4)), (Input((2, 4)), Input((2, 0)), index((2, 0), 4))], EVERY,
    ),
    OpCase(
        "scatter-nd", lambda x, u, i: x.scatter_nd(u, i, ScatterMode.ADD), placed_nd,
        [(Input((2, 3, 2)), Input((4, 2)), index((4, 2), 2)), (Input((3,)), Input((0,)), index((0, 1), 3))],
        ulps=8, ulps16=2, magnitude=8, flexible="the last size of indices is the number of addressed axes",
        wrong=[
            Wrong(
                lambda b: b.argument("x", bg.Float32, [2, 3]).scatter_nd([1.0], [[0, 1], [1, 1]], ScatterMode.ADD), bg.ShapeError,
                "updates must have shape I[:-1] + D[k:] = [2], got [1]",
            ),
            Wrong(
                lambda b: b.argument("x", bg.Float32, [2, 3]).scatter_nd([1.0], [[0, 1]], "add"), bg.ParameterError,
                "mode must be a ScatterMode, such as ScatterMode.ADD, got 'add'",
            ),
        ],
    ),
]  # fmt: skip


def _put(x: np.ndarray, u: np.ndarray, i: np.ndarray) -> np.ndarray:
    result = x.copy()
    result[i] = u
    return result
