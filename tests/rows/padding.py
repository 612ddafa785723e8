"""Rows of ``bnnsgraph.ops.padding``."""

from __future__ import annotations

import numpy as np

import bnnsgraph as bg
from bnnsgraph import Padding
from tests.op_table import EVERY, FLOATS, LAYOUT, OpCase, Wrong, shapes

ROWS = [
    OpCase(
        "pad-constant", lambda x: x.pad(Padding.constant(1), [1, 2, 0, 3]), lambda x: np.pad(x, [(1, 2), (0, 3)], constant_values=1),
        shapes([(2, 3)], [(0, 3)], [(2, 0)]), tuple(dtype for dtype in EVERY if dtype is not bg.Bool),
        wrong=[
            Wrong(lambda b: b.argument("x", bg.Float32, [3]).pad(Padding.constant(0), [1, -2]), bg.ParameterError,
                  "padding must not be negative, got -2; write a slice"),
            Wrong(lambda b: b.argument("x", bg.Float32, [3]).pad(Padding.constant(0), [1, 2, 3]), bg.ParameterError,
                  "padding must hold pairs (before, after), got 3 amounts"),
            Wrong(lambda b: b.argument("x", bg.Float32, [3]).pad(Padding.constant(0), [(1, 2, 3)]), bg.ParameterError,
                  "padding must hold pairs (before, after), got (1, 2, 3)"),
            Wrong(lambda b: b.argument("x", bg.Float32, [3]).pad(Padding.constant(0), [1, 1, 1, 1]), bg.ShapeError,
                  "padding must have at most one pair for each of the 1 axes, got 2"),
            Wrong(lambda b: b.argument("x", bg.Float32, [3]).pad(Padding.constant(0), [1.5, 1]), bg.ParameterError,
                  "padding must be an integer, got 1.5"),
            Wrong(lambda b: b.argument("x", bg.Int32, [3]).pad(Padding.constant(0.5), [1, 1]), bg.DTypeError,
                  "Pad(type=Padding.constant(0.5), padding=((1, 1),)): values must be integers to be used with a int32 tensor, got float64"),
            Wrong(lambda b: b.argument("x", bg.UInt8, [3]).pad(Padding.constant(256), [1, 1]), bg.DTypeError,
                  "values must fit uint8, [0, 255], got 256"),
            Wrong(lambda b: Padding.constant(np.array([1, 2]).tolist()), bg.ParameterError, "value must be one number, got [1, 2]"),
            Wrong(lambda b: b.argument("x", bg.Float32, [3]).pad("reflect", [1, 1]), bg.ParameterError,
                  "type must be a Padding, such as Padding.constant(0), got 'reflect'"),
        ],
    ),
    OpCase("pad-constant-infinite", lambda x: x.pad(Padding.constant(-np.inf), [(1, 1)]), lambda x: np.pad(x, [(0, 0), (1, 1)], constant_values=-np.inf),
           shapes([(2, 3)]), FLOATS, gradient=False),
    OpCase("pad-constant-bool", lambda x: x.pad(Padding.constant(True), [1, 0]), lambda x: np.pad(x, [(1, 0)], constant_values=True),
           shapes([(3,)]), (bg.Bool,), gradient=False),
    OpCase("pad-nothing", lambda x: x.pad(Padding.REPLICATION, []), lambda x: x, shapes([()], [(2, 3)], [(0,)]), LAYOUT),
    OpCase(
        "pad-reflection", lambda x: x.pad(Padding.REFLECTION, [(2, 0), (1, 3)]), lambda x: np.pad(x, [(0, 0), (2, 0), (1, 3)], "reflect"),
        shapes([(2, 3, 4)], [(0, 3, 4)]), LAYOUT,
        wrong=[
            Wrong(lambda b: b.argument("x", bg.Float32, [2, 3]).pad(Padding.REFLECTION, [0, 3]), bg.ShapeError,
                  "padding must be at most size - 1, 2, to reflect axis 1, got 3"),
        ],
    ),
    OpCase(
        "pad-replication", lambda x: x.pad(Padding.REPLICATION, [(4, 0), (1, 5)]), lambda x: np.pad(x, [(0, 0), (4, 0), (1, 5)], "edge"),
        shapes([(2, 3, 4)], [(0, 1, 1)]), LAYOUT,
        wrong=[
            Wrong(lambda b: b.argument("x", bg.Float32, [0]).pad(Padding.REPLICATION, [0, 3]), bg.ShapeError,
                  "axis 0 must have an element to replicate, got size 0"),
        ],
    ),
]  # fmt: skip
