"""Rows of ``bnnsgraph.ops.rearrangement``, ``creation`` and ``einsum``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import bnnsgraph as bg
from tests.op_table import FLOATS, INTEGERS, LAYOUT, NUMBERS, Input, OpCase, Wrong, integers, shapes

REPEATED = (bg.Float16, bg.Float32, bg.Float64, bg.Int64, bg.UInt8, bg.Bool)


def builder_of(x: Any) -> bg.Builder:
    """A builder that records where ``x`` is, so that its methods can be called as a row is."""
    builder = bg.Builder()
    builder._recorder = x._recorder
    return builder


def band(x: np.ndarray, lower: int, upper: int) -> np.ndarray:
    """Zeros off a band of diagonals."""
    below = np.arange(x.shape[-2])[:, None] - np.arange(x.shape[-1])
    keep = ((lower < 0) | (below <= lower)) & ((upper < 0) | (-below <= upper))
    return np.where(keep, x, np.zeros((), x.dtype))


def one_hot(x: np.ndarray, depth: int, axis: int) -> np.ndarray:
    """Equality with a count along a new axis."""
    shape = [1] * (x.ndim + 1)
    shape[axis] = depth
    return np.expand_dims(x, axis) == np.arange(depth).reshape(shape)


def x3(b: Any, dtype: Any = bg.Float32) -> Any:
    """An argument to misuse."""
    return b.argument("x", dtype, [2, 3])


def einsum(
    equation: str,
    *sets: list[tuple[int, ...]],
    dtypes: tuple[Any, ...] = FLOATS,
    magnitude: float = 16,
    wrong: Sequence[Wrong] = (),
) -> OpCase:
    """A row for one equation; a few products are summed, in another order."""
    return OpCase(f"einsum-{equation}", lambda *t: builder_of(t[0]).einsum(equation, *t), lambda *a: np.einsum(equation, *a),
                  shapes(*sets), dtypes, ulps=16, magnitude=magnitude, wrong=wrong)  # fmt: skip


EINSUM_ERRORS = [
    Wrong(
        lambda b: b.einsum("ij,jk", x3(b)), bg.ParameterError, "equation must have one term for each of the 1 tensors, got 2"
    ),
    Wrong(lambda b: b.einsum("ijk->i", x3(b)), bg.ShapeError, "tensors[0] must have rank 3 for 'ijk', got [2, 3]"),
    Wrong(
        lambda b: b.einsum("...ijk->...i", x3(b)), bg.ShapeError, "tensors[0] must have rank 3 or more for '...ijk', got [2, 3]"
    ),
    Wrong(lambda b: b.einsum("ii->i", x3(b)), bg.ShapeError, "sizes of 'i' must be equal, got 2 against 3"),
    Wrong(
        lambda b: b.einsum("ij->ik", x3(b)),
        bg.ParameterError,
        "letters of the result must occur on the left of '->', got 'k' in 'ij->ik'",
    ),
    Wrong(
        lambda b: b.einsum("ij->ii", x3(b)), bg.ParameterError, "letters of the result must differ, got 'i' twice in 'ij->ii'"
    ),
    Wrong(
        lambda b: b.einsum("i1->i", x3(b)),
        bg.ParameterError,
        "equation must be letters, commas, '...' and one '->', got 'i1->i'",
    ),
    Wrong(
        lambda b: b.einsum("...j->j", x3(b)), bg.ParameterError, "the result must have the '...' of the operands, got '...j->j'"
    ),
    Wrong(
        lambda b: b.einsum("ij->->i", x3(b)),
        bg.ParameterError,
        "equation must be letters, commas, '...' and one '->', got 'ij->->i'",
    ),
    Wrong(lambda b: b.einsum("ij->i", [[1.0]]), bg.ParameterError, "tensors must hold at least one tensor, got 1 without any"),
    Wrong(lambda b: b.einsum("ij->i", x3(b, bg.Bool)), bg.DTypeError, "tensors[0] must be of a number type, got bool"),
]

ROWS = [
    OpCase(
        "tile", lambda x: x.tile([2, 1, 3]), lambda x: np.tile(x, (2, 1, 3)), shapes([(2, 3)], [(2, 1, 3)], [()], [(0, 2)]), REPEATED,
        wrong=[Wrong(lambda b: x3(b).tile([1, -1]), bg.ParameterError, "repetitions must not be negative, got -1")],
    ),
    OpCase("tile-last", lambda x: x.tile(2), lambda x: np.tile(x, 2), shapes([(2, 3)], [()]), LAYOUT),
    OpCase("tile-nothing", lambda x: x.tile([0, 2]), lambda x: np.tile(x, (0, 2)), shapes([(2, 3)]), LAYOUT, gradient=False),
    OpCase(
        "broadcast-to", lambda x: x.broadcast_to([2, 4, -1]), lambda x: np.broadcast_to(x, (2, 4, x.shape[-1] if x.ndim else 1)),
        shapes([(4, 3)], [(1, 3)], [(2, 1, 3)], [(1, 0)]), REPEATED, flexible="4 is not shown to be the size of the tensor",
        wrong=[
            Wrong(lambda b: x3(b).broadcast_to([2, 4]), bg.ShapeError, "shape must be one that [2, 3] broadcasts to, got [2, 4]"),
            Wrong(lambda b: x3(b).broadcast_to([3]), bg.ShapeError, "shape must be one that [2, 3] broadcasts to, got [3]"),
            Wrong(lambda b: x3(b).unsqueeze(0).broadcast_to([0, 2, 1]), bg.ShapeError, "shape must be one that [1, 2, 3] broadcasts to, got [0, 2, 1]"),
        ],
    ),
    OpCase("broadcast-to-new-axes", lambda x: x.broadcast_to([4, 1, -1, -1]), lambda x: np.broadcast_to(x, (4, 1, *x.shape)), shapes([(2, 3)], [(0, 3)]), LAYOUT),
    OpCase(
        "reverse", lambda x: x.reverse(axes=[0, -1]), lambda x: np.flip(x, (0, -1)), shapes([(2, 3, 4)], [(0, 2)]), LAYOUT,
        wrong=[Wrong(lambda b: x3(b).reverse(axes=[0, 0]), bg.ShapeError, "axes must be different from each other, got [0, 0]"),
               Wrong(lambda b: x3(b).reverse(axes=2), bg.ShapeError, "axes must be in [-2, 2), got 2")],
    ),
    OpCase(
        "split", lambda x: x.split(3, axis=1), lambda x: np.split(x, 3, 1), shapes([(2, 6)], [(0, 3)], [(2, 0)]), LAYOUT, flexible=True,
        wrong=[
            Wrong(lambda b: x3(b).split(2, axis=1), bg.ShapeError, "parts must divide size 3 of axis 1, got 2"),
            Wrong(lambda b: x3(b).split(0, axis=1), bg.ParameterError, "parts must be at least 1, got 0"),
            Wrong(lambda b: x3(b).split([1, 1], axis=1), bg.ShapeError, "parts must add up to size 3 of axis 1, got [1, 1]"),
            Wrong(lambda b: x3(b).split([4, -1], axis=1), bg.ShapeError, "parts must add up to at most size 3 of axis 1, got [4, -1]"),
            Wrong(lambda b: x3(b).split([-1, -1], axis=1), bg.ParameterError, "parts must be sizes of which one may be -1, got [-1, -1]"),
            Wrong(lambda b: x3(b).split([], axis=1), bg.ParameterError, "parts must be sizes of which one may be -1, got []"),
        ],
    ),
    OpCase("split-sizes", lambda x: x.split([1, -1, 2], axis=0), lambda x: np.split(x, [1, len(x) - 2]), shapes([(5, 2)], [(3,)]), LAYOUT),
    OpCase("split-one", lambda x: x.split(1, axis=0), lambda x: (x,), shapes([(5, 2)]), LAYOUT),
    OpCase(
        "one-hot", lambda x: x.one_hot(5, axis=1), lambda x: one_hot(x, 5, 1), [(Input((4, 3), integers(-2, 8)),), (Input((0, 3), integers(0, 2)),)],
        INTEGERS, gradient=False,
        wrong=[
            Wrong(lambda b: x3(b).one_hot(3), bg.DTypeError, "x must be of an integer type, got float32"),
            Wrong(lambda b: x3(b, bg.Int32).one_hot(-1), bg.ParameterError, "depth must be at least 0, got -1"),
            Wrong(lambda b: x3(b, bg.Int32).one_hot(2, axis=3), bg.ShapeError, "axis must be in [-3, 3), got 3"),
        ],
    ),
    OpCase("one-hot-deep", lambda x: x.one_hot(300), lambda x: one_hot(x, 300, -1), [(Input((40,), integers(-100, 100)),), (Input(()),)], INTEGERS, gradient=False),
    OpCase("one-hot-nothing", lambda x: x.one_hot(0), lambda x: one_hot(x, 0, -1), [(Input((4,), integers(0, 3)),)], (bg.Int32,), gradient=False),
    OpCase(
        "one-hot-wide", lambda x: (x + 2**32).one_hot(3, axis=0), lambda x: one_hot(x + 2**32, 3, 0), [(Input((4,), integers(0, 3)),)], (bg.Int64, bg.UInt64),
        gradient=False,
    ),
    OpCase(
        "band-part", lambda x: x.band_part(1, 0), lambda x: band(x, 1, 0), shapes([(2, 3, 4)], [(4, 2)], [(0, 3)]), REPEATED,
        wrong=[Wrong(lambda b: b.argument("x", bg.Float32, [3]).band_part(0, 0), bg.ShapeError, "x must have rank 2 or more, got rank 1")],
    ),
    OpCase("band-part-upper", lambda x: x.band_part(-1, 1), lambda x: band(x, -1, 1), shapes([(4, 4)], [(1, 3)]), LAYOUT),
    OpCase("band-part-all", lambda x: x.band_part(-1, -1), lambda x: x, shapes([(3, 4)]), LAYOUT),
    OpCase(
        "stack", lambda x, y: builder_of(x).stack([x, y, x], axis=1), lambda x, y: np.stack([x, y, x], 1), shapes([(2, 3), (2, 3)], [(0, 3), (0, 3)]), LAYOUT,
        wrong=[
            Wrong(lambda b: b.stack([x3(b), b.argument("y", bg.Float32, [2, 4])]), bg.ShapeError, "sizes on axis 1 must be equal, got 3 against 4"),
            Wrong(lambda b: b.stack([x3(b), b.argument("y", bg.Float32, [2])]), bg.ShapeError,
                  "tensors must have one rank, got 2 for tensors[0] and 1 for tensors[1]"),
            Wrong(lambda b: b.stack([]), bg.ParameterError, "tensors must hold at least one tensor, got 0"),
        ],
    ),
    OpCase("stack-scalars", lambda x: builder_of(x).stack([x, 1, x], axis=-1), lambda x: np.stack([x, np.ones_like(x), x], -1), shapes([()]), NUMBERS),
    OpCase(
        "where", lambda x, y: builder_of(x).where(x > y, x, 0), lambda x, y: np.where(x > y, x, 0), shapes([(2, 3), (3,)], [(), ()]), NUMBERS,
    ),
    OpCase("where-constant", lambda x: builder_of(x).where([True, False, True], x, 7), lambda x: np.where([True, False, True], x, 7), shapes([(2, 3)]), NUMBERS),
    OpCase(
        "fill", lambda x: x + builder_of(x).fill([2, 3], 7, data_type=x.dtype), lambda x: x + np.full((2, 3), 7), shapes([(3,)]), NUMBERS,
        flexible="3 is not shown to be the size of the tensor",
        wrong=[
            Wrong(lambda b: b.fill([2], 0.5, bg.Int32), bg.DTypeError, "values must be integers to be used with a int32 tensor, got float64"),
            Wrong(lambda b: b.fill([2, -1], 0.5), bg.ShapeError, "shape must hold integers and names of sizes, got [2, -1]"),
            Wrong(lambda b: b.fill([2], [1.0]), bg.ShapeError, "value must be one number, got an array of shape [1]"),
            Wrong(lambda b: bg.make_context(lambda b: b.fill(["rows"], 0)), bg.ShapeError, "a named size must be that of an argument (none), got 'rows'"),
        ],
    ),
    OpCase("fill-defaults", lambda x: [builder_of(x).fill([2, 0], 1), builder_of(x).fill([], 0.5), builder_of(x).fill([2], True), builder_of(x).fill(x.shape, -np.inf)],
           lambda x: [np.ones((2, 0), np.int32), np.float32(0.5), np.full(2, True), np.full(x.shape, -np.inf, np.float32)], shapes([(2, 3)]), (bg.Float32,), gradient=False),
    OpCase(
        "arange", lambda x: [builder_of(x).arange(5, data_type=x.dtype), builder_of(x).arange(7, 1, -2, data_type=x.dtype), builder_of(x).arange(3, 3, data_type=x.dtype)],
        lambda x: [np.arange(5), np.arange(7, 1, -2), np.arange(0)], shapes([()]), NUMBERS, gradient=False, ulps=0, ulps16=0,
        wrong=[
            Wrong(lambda b: b.arange(0, 5, 0), bg.ParameterError, "step must not be 0, got 0"),
            Wrong(lambda b: b.arange(0, 300, data_type=bg.Int8), bg.DTypeError, "values must fit int8, [-128, 127], got 299"),
            Wrong(lambda b: b.arange(0, 1, 0.5, data_type=bg.Int8), bg.DTypeError, "values must be integers to be used with a int8 tensor, got float64"),
            Wrong(lambda b: b.arange(0, 1, data_type=bg.Bool), bg.DTypeError, "data_type must be a number type, got bool"),
            Wrong(lambda b: b.arange(0, float("nan")), bg.ParameterError, "stop must be a finite number, got nan"),
            Wrong(lambda b: b.arange(0, -1 * b.argument("n", bg.Float32, [])), bg.UndefinedValueError, "tensor must have a value for this, got float32[]"),
            Wrong(lambda b: b.arange(b.argument("x", bg.Float32, [-1]).shape[0]), bg.ParameterError, "stop must be a number or the name of a size, got -1"),
            Wrong(lambda b: b.arange(0, "length", 0.5), bg.ParameterError, "start and step must be integers where a size is flexible, got 0 and 0.5"),
        ],
    ),
    OpCase("arange-fractions", lambda x: builder_of(x).arange(-1.5, 2, 0.1, data_type=x.dtype), lambda x: -1.5 + 0.1 * np.arange(35), shapes([()]), FLOATS, gradient=False, ulps=0, ulps16=0),
    OpCase("arange-extremes", lambda x: [builder_of(x).arange(2**32 - 3, 2**32, data_type=bg.UInt32), builder_of(x).arange(-(2**31) + 3, -(2**31) - 1, -3), builder_of(x).arange(2**32, 2**32 + 3, data_type=bg.Float32)],
           lambda x: [np.arange(2**32 - 3, 2**32), np.array([-(2**31) + 3, -(2**31)]), np.arange(2**32, 2**32 + 3)], shapes([()]), (bg.Int32,), gradient=False),
    OpCase("arange-wide", lambda x: [builder_of(x).arange(2**63, 2**63 + 3, data_type=bg.UInt64), builder_of(x).arange(-(2**63), -(2**63) + 5, 2, data_type=bg.Int64)],
           lambda x: [np.arange(3, dtype=np.uint64) + np.uint64(2**63), np.arange(-(2**63), -(2**63) + 5, 2)], shapes([()]), (bg.Int64,), gradient=False),
    OpCase("arange-flexible", lambda x: x * builder_of(x).arange(x.shape[0], data_type=x.dtype), lambda x: x * np.arange(len(x)), shapes([(5,)], [(1,)]), NUMBERS),
    OpCase("arange-flexible-backwards", lambda x: builder_of(x).arange(x.shape[0], 0, -2), lambda x: np.arange(len(x), 0, -2), shapes([(5,)], [(4,)]), (bg.Float32,), gradient=False),
    einsum("ij,jk->ik", [(2, 3), (3, 4)], [(2, 0), (0, 3)], dtypes=NUMBERS, wrong=EINSUM_ERRORS),
    einsum("i j, j k", [(2, 3), (3, 4)]),
    einsum("ij->ji", [(2, 3)]),
    einsum("ij->", [(2, 3)], [(0, 3)], dtypes=NUMBERS),
    einsum("ii->i", [(3, 3)]),
    einsum("iij,j->", [(2, 2, 3), (3,)]),
    einsum("i,j->ji", [(2,), (3,)]),
    einsum(",ij->ij", [(), (2, 3)]),
    einsum("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 3)], [(3, 4), (2, 4, 3)]),
    einsum("i...,i...", [(3, 2), (3,)]),
    einsum("bhqd,bhkd->bhqk", [(2, 2, 3, 4), (2, 2, 5, 4)]),
    einsum("ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)], magnitude=64),
]  # fmt: skip
