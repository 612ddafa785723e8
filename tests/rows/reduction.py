"""Rows of ``bnnsgraph.ops.reduction``."""

from __future__ import annotations

import numpy as np

import bnnsgraph as bg
from tests.op_table import NUMBERS, OpCase, Wrong, separated, shapes

CUBES = shapes([(2, 3, 4)], [(2, 1, 5)])
EMPTY = shapes([(2, 0, 3)], [(0, 2, 3)])

ROWS = [
    OpCase("sum", lambda x: x.sum([0, -1]), lambda x: x.sum((0, -1)), [*CUBES, *EMPTY], NUMBERS, magnitude=16,
           wrong=[Wrong(lambda b: b.argument("x", bg.Float32, [2, 3]).sum([2]), bg.ShapeError,
                        "ReduceSum(axes=(2,)): axes must be in [-2, 2), got 2"),
                  Wrong(lambda b: b.argument("x", bg.Bool, [2, 3]).sum([0]), bg.DTypeError, "x must be of a number type, got bool")]),
    OpCase("sum-all", lambda x: x.sum(None), lambda x: x.sum(), shapes([(2, 3)], [()], [(0, 3)]), NUMBERS, magnitude=16),
    OpCase("sum-none", lambda x: x.sum([]), lambda x: x, shapes([(2, 3)], [()], [(0, 3)]), NUMBERS),
    OpCase("mean", lambda x: x.mean([1], keep_dimensions=True), lambda x: x.mean(1, keepdims=True), CUBES,
           wrong=[Wrong(lambda b: b.argument("x", bg.Int32, [2, 3]).mean([0]), bg.DTypeError, "x must be of a float type, got int32")]),
    OpCase("maximum", lambda x: x.maximum([1]), lambda x: x.max(1), shapes([(2, 3, 4)], [(0, 2, 3)], draw=separated), NUMBERS,
           wrong=[Wrong(lambda b: b.argument("x", bg.Float32, [2, 0]).maximum([1]), bg.ShapeError,
                        "axes must have at least one element, got size 0 on axis 1")]),
    OpCase("minimum", lambda x: x.minimum(None), lambda x: x.min(), shapes([(2, 3, 4)], [()], draw=separated), NUMBERS),
    OpCase("maximum-nan", lambda x: x.update[0](np.nan).maximum(None), lambda x: np.nan * x.max(), shapes([(3,)]), gradient=False),
]  # fmt: skip
