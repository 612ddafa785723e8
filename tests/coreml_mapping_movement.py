"""Rows of Core ML's operations that move, index and sort: everything here is exact."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import bnnsgraph as bg
from bnnsgraph import Padding, ScatterMode, SortOrder
from tests.coreml_mapping import RNG, STRICT, Row, distinct, mask, normal, special, whole, words

SMALL = (np.int8, np.uint8, np.int16, np.uint16)  # for elements and indices, since iOS 17


def moved(op: str, build: Callable[[Any], Any], x: np.ndarray, since: int = 15, *, halves: bool = True, **given: Any) -> Row:
    return Row(op, {"x": x}, lambda _, x: build(x), given, since=since, halves=halves)


def made(op: str, build: Callable[[bg.Builder], Any], **given: Any) -> Row:
    return Row(op, {}, build, given)


def joined(op: str, build: Callable[[bg.Builder, list[Any]], Any], *values: np.ndarray, **given: Any) -> Row:
    return Row(op, values, lambda b, *tensors: build(b, list(tensors)), given)


X = normal(2, 3, 4)
WHOLE = whole(2, 3, 4)
SHAPES = [
    moved("expand_dims", lambda x: x.unsqueeze(1), X, axes=[1]),
    moved("expand_dims", lambda x: x.unsqueeze(-1), WHOLE, axes=[-1]),
    moved("expand_dims", lambda x: x.unsqueeze(0).unsqueeze(2), mask(2, 3), axes=[0, 2]),
    moved("flatten2d", lambda x: x.reshape([2, 12]), X),
    moved("flatten2d", lambda x: x.reshape([6, 4]), X, axis=-1),
    moved("reshape", lambda x: x.reshape([4, 6]), X, shape=[4, 6]),
    moved("reshape", lambda x: x.reshape([3, -1]), WHOLE, shape=[3, -1]),
    moved("reshape", lambda x: x.reshape([1, 1, 3]), mask(3), shape=[1, 1, 3]),
    moved("shape", lambda x: x.tensor_shape(), X),
    moved("shape", lambda x: x.tensor_shape(), whole(0, 3)),
    moved("squeeze", lambda x: x.squeeze(1), normal(2, 1, 3), axes=[1]),
    moved("squeeze", lambda x: x.squeeze(-1).squeeze(0), whole(1, 3, 1), axes=[0, -1]),
    moved("squeeze", lambda x: x.squeeze(0).squeeze(1), mask(1, 3, 1, 2)),
    moved("tile", lambda x: x.tile([1, 2, 3]), X, reps=[1, 2, 3]),
    moved("tile", lambda x: x.tile([3]), whole(4), reps=[3]),
    moved("transpose", lambda x: x.transpose([2, 0, 1]), X, perm=[2, 0, 1]),
    moved("transpose", lambda x: x.transpose([-1, 0, -2]), WHOLE, perm=[-1, 0, -2]),
    moved("reverse", lambda x: x.reverse([0, -1]), X, axes=[0, -1]),
    moved("reverse", lambda x: x.reverse([0, 1]), mask(2, 3)),
    *[moved("transpose", lambda x: x.transpose([1, 0]), whole(2, 3, low=0, dtype=dtype), 17, perm=[1, 0]) for dtype in SMALL],
]

JOINS = [
    joined("concat", lambda b, values: b.concatenate(values, 1), normal(2, 3), normal(2, 1), normal(2, 4), axis=1),
    joined("concat", lambda b, values: b.concatenate(values, -2), whole(2, 3), whole(1, 3), axis=-2),
    joined("concat", lambda b, values: b.concatenate(values, 0), mask(2), mask(3), axis=0),
    joined("stack", lambda b, values: b.stack(values, 0), normal(2, 3), normal(2, 3), axis=0),
    joined("stack", lambda b, values: b.stack(values, -1), whole(2, 3), whole(2, 3), whole(2, 3), axis=-1),
    moved("split", lambda x: x.split(2, 1), normal(3, 4), num_splits=2, axis=1),
    moved("split", lambda x: x.split([1, 3, 2], -1), whole(2, 6), split_sizes=[1, 3, 2], axis=-1),
    moved("split", lambda x: x.split(1, 0), normal(3, 4), num_splits=1, axis=0),
]

CREATION = [
    made("fill", lambda b: b.fill([2, 3], 1.5, bg.Float32), shape=[2, 3], value=1.5),
    made("fill", lambda b: b.fill([4], -7, bg.Int32), shape=[4], value=-7),
    made("fill", lambda b: b.fill([1, 2], True, bg.Bool), shape=[1, 2], value=True),
    Row("fill_like", {"ref_tensor": whole(2, 3)}, lambda b, x: b.fill(x.shape, 0.3), {"value": 0.3}, since=16),
    Row("fill_like", {"ref_tensor": mask(4)}, lambda b, x: b.fill(x.shape, 5, bg.Int32), {"value": 5}, since=16),
    made("range_1d", lambda b: b.arange(0, 10, 3), start=0, end=10, step=3),
    made("range_1d", lambda b: b.arange(10, -1, -2), start=10, end=-1, step=-2),
    made("range_1d", lambda b: b.arange(-1.0, 1.0, 0.25), start=-1.0, end=1.0, step=0.25),
    made("range_1d", lambda b: b.arange(3, 3), start=3, end=3, step=1),
    # Core ML Tools starts from the float32 nearest to 0.1
    Row("range_1d", {}, lambda b: b.arange(0.0, 1.0, 0.1), {"start": 0.0, "end": 1.0, "step": 0.1}, roundings=1.0, around=1.0),
]

BANDS = [
    *[
        moved("band_part", lambda x, low=low, high=high: x.band_part(low, high), x, lower=low, upper=high)
        for low, high in ((0, 0), (1, -1), (-1, 0), (0, 2), (-1, -1), (2, 1))
        for x in (normal(2, 3, 4), whole(4, 3))
    ],
    moved("band_part", lambda x: x.band_part(1, 0), mask(5, 4), lower=1, upper=0),
]


def padded(
    mode: str, padding: Callable[[], Padding], x: np.ndarray, pad: list[int], sizes: list[list[int]], **given: Any
) -> Row:
    return moved("pad", lambda x: x.pad(padding(), sizes), x, pad=pad, mode=mode, **given)


PADS = [
    padded("constant", lambda: Padding.constant(0.0), normal(2, 3), [0, 1, 2, 3], [[0, 1], [2, 3]]),
    padded("constant", lambda: Padding.constant(0.3), normal(3), [2, 0], [[2, 0]], constant_val=0.3),
    padded("reflect", lambda: Padding.REFLECTION, normal(2, 3, 4), [1, 2], [[0, 0], [0, 0], [1, 2]]),
    padded("reflect", lambda: Padding.REFLECTION, normal(3, 5), [2, 1, 4, 3], [[2, 1], [4, 3]]),
    padded("replicate", lambda: Padding.REPLICATION, normal(1, 3, 4), [2, 1, 0, 3], [[0, 0], [2, 1], [0, 3]]),
]

S = slice
ALL = S(None)


def part(items: tuple[Any, ...], x: np.ndarray, **given: Any) -> Row:
    return moved("slice_by_index", lambda x: x[items], x, **given)


def replaced(items: tuple[Any, ...], x: np.ndarray, update: np.ndarray, **given: Any) -> Row:
    return Row("slice_update", {"x": x, "update": update}, lambda _, x, new: x.update[items](new), given, since=18)


NONE = [False, False]
SLICES = [
    part((S(1, 3), S(0, 2)), normal(4, 5), begin=[1, 0], end=[3, 2]),
    part((S(-3, -1), S(None, 4)), whole(4, 5), begin=[-3, 0], end=[-1, 4]),
    part((S(None, None, 2), S(1, None, 3)), normal(4, 5), begin=[0, 1], end=[4, 5], stride=[2, 3]),
    part(
        (ALL, S(None, None, -1)),
        normal(4, 5),
        begin=[0, 0],
        end=[0, 0],
        stride=[1, -1],
        begin_mask=[True] * 2,
        end_mask=[True] * 2,
    ),
    part((S(3, 0, -2), S(-2, None, -1)), whole(4, 5), begin=[3, -2], end=[0, 0], stride=[-2, -1], end_mask=[False, True]),
    part((2, S(1, 4)), normal(4, 5), begin=[2, 1], end=[3, 4], squeeze_mask=[True, False]),
    part((ALL, -1), whole(4, 5), begin=[0, -1], end=[4, 0], begin_mask=NONE, end_mask=NONE, squeeze_mask=[False, True]),
    part((1, -2), normal(4, 5), begin=[1, -2], end=[2, -1], squeeze_mask=[True, True], halves=False),  # halves are not folded
    part((S(1, 2), ALL), mask(4, 5), begin=[1, 0], end=[2, 0], end_mask=[False, True]),
    part((S(1, 99), S(0, 99)), normal(4, 5), begin=[1, 0], end=[99, 99]),
    moved("slice_by_size", lambda x: x[1:3, 2:5], normal(4, 5), begin=[1, 2], size=[2, 3]),
    moved("slice_by_size", lambda x: x[-2:, 1:], whole(4, 5), begin=[-2, 1], size=[2, -1]),
    moved("slice_by_size", lambda x: x[2:, -3:-1], mask(4, 5), begin=[2, -3], size=[-1, 2]),
    replaced((S(1, 3), S(0, 2)), normal(4, 5), normal(2, 2), begin=[1, 0], end=[3, 2]),
    replaced((S(None, None, 2), S(1, None, 3)), whole(4, 5), whole(2, 2), begin=[0, 1], end=[4, 5], stride=[2, 3]),
    replaced(
        (S(-1, None, -2), ALL), normal(4, 5), normal(2, 5), begin=[-1, 0], end=[0, 5], stride=[-2, 1], end_mask=[True, False]
    ),
    replaced((2, S(1, 4)), whole(4, 5), whole(3), begin=[2, 1], end=[3, 4], squeeze_mask=[True, False]),
]


def gathered(x: np.ndarray, indices: np.ndarray, axis: int, batch: int | None = None, since: int = 15, **given: Any) -> Row:
    """``batch_dims`` came with iOS 16."""
    dims = {} if batch is None else {"batch_dims": batch}
    return Row(
        "gather",
        {"x": x, "indices": indices},
        lambda _, x, indices: x.gather(indices, axis, batch or 0),
        {"axis": axis, **dims, **given},
        since=max(since, 15 if batch is None else 16),
        options=STRICT if given.get("validate_indices") else bg.CompileOptions(),
    )


def along(x: np.ndarray, indices: np.ndarray, axis: int, since: int = 15, **given: Any) -> Row:
    return Row(
        "gather_along_axis",
        {"x": x, "indices": indices},
        lambda _, x, indices: x.gather_along_axis(indices, axis),
        {"axis": axis, **given},
        since=since,
        options=STRICT if given.get("validate_indices") else bg.CompileOptions(),
    )


TABLE = normal(3, 4, 5)
GATHERS = [
    # Indices of both signs: Core ML Tools folds them by NumPy's rule in every version
    *[gathered(TABLE, whole(2, 3, low=-size, high=size), axis) for axis, size in ((0, 3), (1, 4), (2, 5))],
    *[gathered(whole(3, 4, 5), whole(6, low=-size, high=size), axis) for axis, size in ((-1, 5), (-2, 4), (-3, 3))],
    gathered(TABLE, np.array(-2, np.int32), 1),
    gathered(normal(5), np.array(3, np.int32), 0),
    gathered(normal(5), whole(2, 2, 2, low=-5, high=5), 0),
    gathered(TABLE, whole(0, low=0), 1),
    gathered(TABLE, whole(2, 0, low=0), -1),
    gathered(whole(3, 0, low=0), np.array([2, -3], np.int32), 0),
    *[gathered(TABLE, whole(3, *rest, low=-4, high=4), 1, 1) for rest in ((2,), (2, 3), ())],
    gathered(TABLE, whole(3, 2, low=-5, high=5), 2, 1),
    gathered(TABLE, whole(3, 4, 2, low=-5, high=5), 2, 2),
    gathered(whole(2, 3, 4, 5), whole(2, 3, 2, 2, low=-4, high=4), 2, 2),
    gathered(TABLE, whole(2, 3, low=-4, high=4), 1, 0),
    gathered(TABLE, whole(2, 3, low=0, high=4), 1, since=17, validate_indices=True),
    gathered(TABLE, whole(3, 2, low=0, high=4), 1, 1, since=17, validate_indices=True),
    gathered(TABLE, whole(2, 3, low=-4, high=4), 1, since=17, validate_indices=False),
    *[
        gathered(whole(4, 3, low=0, dtype=dtype), whole(5, low=0, high=4, dtype=other), 0, since=17)
        for dtype, other in zip(SMALL, SMALL[1:] + SMALL[:1], strict=True)
    ],
    gathered(normal(250, 2), np.array([249, 0, 130], np.uint8), 0, since=17),  # beyond the positive numbers of int8
    *[
        along(TABLE, whole(*shape, low=-size, high=size), axis)
        for axis, size, shape in ((0, 3, (2, 4, 5)), (1, 4, (3, 6, 5)), (2, 5, (3, 4, 1)))
    ],
    *[
        along(whole(3, 4), whole(*shape, low=-size, high=size), axis)
        for axis, size, shape in ((-1, 4, (3, 2)), (-2, 3, (5, 4)))
    ],
    along(normal(6), whole(9, low=-6, high=6), 0),
    along(normal(3, 4), whole(3, 0, low=0), 1),
    along(TABLE, whole(3, 2, 5, low=0, high=4), 1, since=17, validate_indices=True),
    along(TABLE, whole(3, 2, 5, low=-4, high=4), 1, since=17, validate_indices=False),
    *[along(whole(4, 3, low=0, dtype=dtype), whole(2, 3, low=0, high=4, dtype=dtype), 0, since=17) for dtype in SMALL],
]


def scattered(data: np.ndarray, indices: np.ndarray, axis: int, since: int = 15, **given: Any) -> Row:
    """Core ML Tools folds every mode as ``update``: see the differences."""
    updates = distinct(*indices.shape, dtype=data.dtype)
    return Row(
        "scatter_along_axis",
        {"data": data, "indices": indices, "updates": updates},
        lambda _, data, indices, updates: data.scatter_along_axis(updates, indices, ScatterMode.UPDATE, axis),
        {"axis": axis, "mode": "update", **given},
        since=since,
        options=STRICT if given.get("validate_indices") else bg.CompileOptions(),
    )


def places(rows: int, count: int, size: int) -> np.ndarray:
    """Different places in each row, some counted from the end."""
    chosen = np.array([RNG.permutation(size)[:count] for _ in range(rows)], np.int32)
    return np.where(mask(rows, count), chosen, chosen - size).astype(np.int32)


SCATTERS = [
    scattered(normal(3, 5), places(3, 4, 5), 1),
    scattered(normal(3, 5), places(3, 2, 5), -1),
    scattered(whole(5, 3), places(3, 3, 5).T.copy(), 0),
    scattered(whole(5, 3), places(3, 5, 5).T.copy(), -2),
    scattered(normal(6), places(1, 4, 6)[0], 0),
    scattered(normal(4), np.array([1, 1, 3, 1], np.int32), 0),  # of several updates of a place the last one stays
    scattered(normal(3, 5), places(3, 4, 5) % 5, 1, since=17, validate_indices=True),
    scattered(normal(3, 5), places(3, 4, 5), 1, since=17, validate_indices=False),
]


ORDERS = {True: SortOrder.ASCENDING, False: SortOrder.DESCENDING}


def top(x: np.ndarray, k: int, axis: int, *, smallest: bool = False) -> Row:
    return moved("topk", lambda x: tuple(x.top_k(k, axis, find_largest=not smallest)), x, k=k, axis=axis, ascending=smallest)


# Each number once: NumPy's sort, unlike this package's, promises no order of equal elements
SORTS = [
    *[
        moved("argsort", lambda x, axis=axis, up=up: x.arg_sort(axis, ORDERS[up]), x, axis=axis, ascending=up)
        for up in (True, False)
        for axis, x in ((-1, distinct(3, 7)), (0, distinct(9, 2)), (1, distinct(2, 5, 3, dtype=np.int32)), (0, distinct(40)))
    ],
    moved("argsort", lambda x: x.arg_sort(-1, SortOrder.DESCENDING), distinct(3, 4)),
    moved("argsort", lambda x: x.arg_sort(0), np.array([3, -np.inf, np.nan, np.inf, -2], np.float32), axis=0, ascending=True),
    *[top(distinct(4, 6), k, axis, smallest=small) for small in (True, False) for k, axis in ((1, -1), (3, 0), (6, 1))],
    *[top(distinct(2, 3, 5, dtype=np.int32), 2, -2, smallest=small) for small in (True, False)],
    top(np.array([1, np.inf, -3, -np.inf, 0.5], np.float32), 3, 0),
    moved("topk", lambda x: x.top_k(2, 1).values, distinct(3, 4), 16, k=2, axis=1, return_indices=False),
    moved("topk", lambda x: tuple(x.top_k(2, 1)), distinct(3, 4), 16, k=2, axis=1, sort=True),
    moved("reduce_argmax", lambda x: x.arg_max(-1), distinct(3, 4)),
    moved("reduce_argmax", lambda x: x.arg_max(0, keep_dimension=True), words().reshape(3, 5), axis=0, keep_dims=True),
    moved("reduce_argmin", lambda x: x.arg_min(1), distinct(2, 3, 4), axis=1),
    moved("reduce_argmin", lambda x: x.arg_min(-2, keep_dimension=True), words().reshape(3, 5), axis=-2, keep_dims=True),
    *[
        moved(f"reduce_arg{end}", lambda x, end=end: getattr(x, f"arg_{end}")(0), x, axis=0)
        for end in ("max", "min")
        for x in (special(), np.array([2, 5, 2, 5, 2], np.int32))  # NaN wins; of equal elements the first
    ],
]

ROWS = [*SHAPES, *JOINS, *CREATION, *BANDS, *PADS, *SLICES, *GATHERS, *SCATTERS, *SORTS]
