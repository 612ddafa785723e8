"""Rows of ``bnnsgraph.ops.arithmetic``, ``comparison`` and ``casting``."""

from __future__ import annotations

from typing import Any

import numpy as np

import bnnsgraph as bg
from bnnsgraph.dtypes import DType
from tests.op_table import (
    BINARY,
    EVERY,
    FLOATS,
    INTEGERS,
    NUMBERS,
    UNARY,
    Input,
    OpCase,
    Wrong,
    away_from,
    integers,
    separated,
    shapes,
    uniform,
)  # fmt: skip


def two(b: Any, first: DType, second: DType, *, other: tuple[int, ...] = (2, 3)) -> tuple[Any, Any]:
    """Two arguments of the given dtypes."""
    return b.argument("x", first, (2, 3)), b.argument("y", second, other)


MIXED = Wrong(
    lambda b: (lambda x, y: x + y)(*two(b, bg.Float32, bg.Int32)),
    bg.DTypeError,
    "Add(): x and y must have one dtype, got float32 and int32; write .cast(to=Float32) on y",
)
UNEQUAL = Wrong(
    lambda b: (lambda x, y: x + y)(*two(b, bg.Float32, bg.Float32, other=(4, 3))),
    bg.ShapeError,
    "shapes must broadcast (trailing sizes equal, or 1), got [2, 3] and [4, 3]: 2 against 4",
)
NAMED = Wrong(
    lambda b: b.argument("x", bg.Float32, ["rows"]) + b.argument("y", bg.Float32, ["columns"]),
    bg.ShapeError,
    "rows and columns are not known to be equal; give equal dimensions one name",
)
LOGICAL = Wrong(
    lambda b: b.argument("x", bg.Bool, [2]) + b.argument("y", bg.Bool, [2]),
    bg.DTypeError,
    "x must be of a number type, got bool",
)

nonzero = [tuple(Input(shape, draw) for shape, draw in zip(s, (uniform(-9, 9), uniform(1, 4)), strict=True)) for s in BINARY]
positive = [tuple(Input(shape, uniform(0.5, 3)) for shape in s) for s in BINARY]
counting = [tuple(Input(shape, integers(0, 4)) for shape in s) for s in BINARY]
apart = [(Input((2, 3), separated), Input((2, 3), lambda r, s: separated(r, s) + 0.1)), *shapes(*BINARY[1:])]

ROWS = [
    OpCase("add", lambda x, y: x + y, np.add, shapes(*BINARY), NUMBERS, wrong=[MIXED, UNEQUAL, NAMED, LOGICAL]),
    OpCase("add-number", lambda x: x + 2, lambda x: x + 2, shapes(*UNARY), NUMBERS),
    OpCase("radd-number", lambda x: 2 + x, lambda x: 2 + x, shapes(*UNARY), NUMBERS),
    OpCase("subtract", lambda x, y: x - y, np.subtract, shapes(*BINARY), NUMBERS),
    OpCase("rsubtract-number", lambda x: 2 - x, lambda x: 2 - x, shapes(*UNARY), NUMBERS),
    OpCase("multiply", lambda x, y: x * y, np.multiply, shapes(*BINARY), NUMBERS),
    OpCase(
        "divide", lambda x, y: x / y, np.divide, nonzero,
        wrong=[
            Wrong(
                lambda b: b.argument("x", bg.Int32, [2]) / 2, bg.DTypeError,
                "Divide(): x must be of a float type, got int32; write x // y, or .cast(to=Float32) on both first",
            )
        ],
    ),
    OpCase("rdivide-number", lambda x: 1 / x, lambda x: 1 / x, shapes(*UNARY, draw=uniform(1, 4))),
    OpCase("floor-divide", lambda x, y: x // y, np.floor_divide, nonzero, NUMBERS, gradient=False),
    OpCase("remainder", lambda x, y: x % y, np.remainder, nonzero, (bg.Float32, bg.Float64, *INTEGERS), ulps=8, gradient=False),
    OpCase("rremainder-number", lambda x: 7 % x, lambda x: 7 % x, shapes(*UNARY, draw=integers(1, 5)), INTEGERS, gradient=False),
    OpCase("power", lambda x, y: x**y, np.power, positive, ulps=16, ulps16=2),
    OpCase("power-integers", lambda x, y: x**y, np.power, counting, INTEGERS, gradient=False),
    OpCase("pow", lambda x: x.pow(2.5), lambda x: x**2.5, shapes(*UNARY, draw=uniform(0.5, 3)), ulps=16, ulps16=2),
    OpCase("max", lambda x, y: x.max(y), np.maximum, apart, NUMBERS),
    OpCase("min", lambda x, y: x.min(y), np.minimum, apart, NUMBERS),
    OpCase(
        "max-nan", lambda x: x.max([np.nan, 1, np.nan]), lambda x: np.maximum(x, [np.nan, 1, np.nan]), shapes([(2, 3)]), gradient=False
    ),
    OpCase("negate", lambda x: -x, np.negative, shapes(*UNARY), NUMBERS),
    OpCase(
        "fma", lambda x, y, z: x.fma(y, z), lambda x, y, z: x * y + z, shapes([(2, 3), (3,), ()], [(), (), ()], [(0, 3), (3,), (1,)]),
        ulps16=2, magnitude=8,
    ),
    *[
        OpCase(name, compare, reference, shapes(*BINARY, draw=integers(-2, 3)), EVERY, gradient=False)
        for name, compare, reference in [
            ("equal", lambda x, y: x == y, np.equal),
            ("not-equal", lambda x, y: x != y, np.not_equal),
            ("less", lambda x, y: x < y, np.less),
            ("less-equal", lambda x, y: x <= y, np.less_equal),
            ("greater", lambda x, y: x > y, np.greater),
            ("greater-equal", lambda x, y: x >= y, np.greater_equal),
        ]
    ],
    OpCase(
        "equal-nan", lambda x: (x == np.nan) | (x < np.nan), lambda x: np.zeros(x.shape, bool), shapes(*UNARY), gradient=False,
        wrong=[
            Wrong(
                lambda b: b.argument("x", bg.Float32, [2]) == b.argument("y", bg.Float16, [2]), bg.DTypeError,
                "Equal(): x and y must have one dtype, got float32 and float16",
            )
        ],
    ),
    OpCase(
        "and", lambda x, y: x & y, np.logical_and, shapes(*BINARY), (bg.Bool,), gradient=False,
        wrong=[
            Wrong(
                lambda b: b.argument("x", bg.Int32, [2]) & b.argument("y", bg.Int32, [2]), bg.DTypeError,
                "And(): x must be of bool, got int32",
            )
        ],
    ),
    OpCase("or", lambda x, y: x | y, np.logical_or, shapes(*BINARY), (bg.Bool,), gradient=False),
    OpCase("xor", lambda x, y: x ^ y, np.logical_xor, shapes(*BINARY), (bg.Bool,), gradient=False),
    OpCase("not", lambda x: ~x, np.logical_not, shapes(*UNARY), (bg.Bool,), gradient=False),
    OpCase(
        "select", lambda mask, a, b: mask.select(a, b), np.where,
        [
            (Input((2, 1), dtype=bg.Bool), Input((2, 3)), Input((3,))),
            (Input((), dtype=bg.Bool), Input(()), Input(())),
            (Input((0, 3), dtype=bg.Bool), Input((3,)), Input(())),
        ],
        EVERY,
        wrong=[
            Wrong(
                lambda b: b.argument("m", bg.Bool, [2]).select(1.0, 2.0), bg.DTypeError,
                "Select(): value_if_true or value_if_false must be a tensor, got two plain values",
            ),
            Wrong(
                lambda b: b.argument("m", bg.Float32, [2]).select(b.argument("x", bg.Float32, [2]), 2.0), bg.DTypeError,
                "mask must be of bool, got float32",
            ),
        ],
    ),
    OpCase(
        "select-number", lambda mask, a: mask.select(a, float("inf")), lambda m, a: np.where(m, a, np.inf),
        [(Input((2, 3), dtype=bg.Bool), Input((2, 3)))], FLOATS, gradient=False,
    ),
    *[
        OpCase(
            f"cast-to-{to.name}", lambda x, to=to: x.cast(to=to), lambda x, to=to: _cast(x, to), shapes(*UNARY, draw=away_from(0)),
            EVERY, gradient=False, ulps16=0, ulps=0,
        )
        for to in EVERY
    ],
]  # fmt: skip


def _cast(x: np.ndarray, to: DType) -> np.ndarray:
    """The rule of casts: truncation with saturation for floats, modulo for integers, non-zero for Bool."""
    if to is bg.Bool:
        return x != 0
    if x.dtype.kind == "f" and to in INTEGERS:
        bounds = np.iinfo(to.numpy)
        return np.clip(np.trunc(x), bounds.min, bounds.max).astype(to.numpy)
    return x.astype(to.numpy)
