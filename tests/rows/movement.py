"""Rows of ``bnnsgraph.ops.movement`` and ``slicing``."""

from __future__ import annotations

from typing import Any

import numpy as np

import bnnsgraph as bg
from tests.op_table import LAYOUT, Input, OpCase, Wrong, shapes


def joined(x: Any, y: Any) -> Any:
    """The builder's concatenate, called as a row is."""
    builder = bg.Builder()
    builder._recorder = x._recorder
    return builder.concatenate([x, y], axis=1)


def replaced(x: np.ndarray, y: np.ndarray, key: Any) -> np.ndarray:
    """NumPy's assignment, not in place."""
    result = x.copy()
    result[key] = y
    return result


ROWS = [
    OpCase(
        "reshape", lambda x: x.reshape(to=[3, -1]), lambda x: x.reshape(3, -1), shapes([(2, 3)], [(3,)], [(3, 0)]), LAYOUT,
        flexible="the rule cannot divide a product of names by 3",
        wrong=[
            Wrong(lambda b: b.argument("x", bg.Float32, [2, 3]).reshape(to=[4]), bg.ShapeError,
                  "to must have as many elements as x, 6, got [4] with 4"),
            Wrong(lambda b: b.argument("x", bg.Float32, [2, 3]).reshape(to=[-1, -1]), bg.ShapeError,
                  "to must have at most one size of -1, got [-1, -1]"),
            Wrong(lambda b: b.argument("x", bg.Float32, [2, 3]).reshape(to=[4, -1]), bg.ShapeError,
                  "to must divide the 6 elements of x, got [4, -1]"),
        ],
    ),
    OpCase("flatten", lambda x: x.reshape(to=[-1]), np.ravel, shapes([(2, 3)], [()], [(0, 3)]), LAYOUT),
    OpCase("tensor-shape", lambda x: x.tensor_shape(), lambda x: np.int32(x.shape), shapes([(2, 3)], [()], [(0, 3)]), LAYOUT, gradient=False),
    OpCase(
        "reshape-to", lambda x: x.reshape(to=x.tensor_shape()[::-1]), lambda x: x.reshape(x.shape[::-1]),
        shapes([(2, 3)], [()], [(0, 3)]), LAYOUT,
        wrong=[
            Wrong(lambda b: b.argument("x", bg.Float32, [2, 3]).reshape(to=b.argument("n", bg.Int32, [2]) * 2), bg.ShapeError,
                  "ReshapeTo(): to must follow from sizes and constants alone, got a tensor computed from the elements of argument 'n'"),
            Wrong(lambda b: b.argument("x", bg.Float32, [2, 3]).reshape(to=b.constant(values=[6.0])), bg.DTypeError,
                  "to must be of an integer type, got float32"),
            Wrong(lambda b: b.argument("x", bg.Float32, [2, 3]).reshape(to=b.constant(value=6)), bg.ShapeError,
                  "to must be a tensor of rank 1 and known size, got []"),
            Wrong(lambda b: bg.make_context(lambda b: b.argument("x", bg.Float32, [2, 3]).reshape(to=b.constant(values=[2, 2]) + 1)),
                  bg.ShapeError, "ReshapeTo(to=(3, 3)): to must have as many elements as x, 6, got [3, 3] with 9"),
            Wrong(lambda b: bg.make_context(lambda b: b.argument("x", bg.Float32, [2, 3]).reshape(to=b.constant(values=[2, 2]) - 4)),
                  bg.ShapeError, "a dimension must be at least 0, or -1 for a flexible one, got -2"),
        ],
    ),
    OpCase("reshape-to-shape-of", lambda x, y: x.reshape(to=y.tensor_shape()), lambda x, y: x.reshape(y.shape),
           [(Input((2, 3)), Input((3, 2), differentiable=False)), (Input((0, 3)), Input((0,)))], LAYOUT,
           flexible="six elements are not shown to be six"),
    OpCase("reshape-to-inferred", lambda x: x.reshape(to=x.tensor_shape() * [0, 1] + [-1, 0]), lambda x: x.reshape(-1, x.shape[1]),
           shapes([(2, 3)]), LAYOUT),
    OpCase(
        "transpose", lambda x: x.transpose(axes=[2, 0, -2]), lambda x: x.transpose(2, 0, 1), shapes([(2, 3, 4)], [(2, 0, 4)]), LAYOUT,
        wrong=[
            Wrong(lambda b: b.argument("x", bg.Float32, [2, 3]).transpose(axes=[0]), bg.ShapeError,
                  "axes must name each of the 2 axes once, got [0]"),
            Wrong(lambda b: b.argument("x", bg.Float32, [2, 3]).transpose(axes=[0, 0]), bg.ShapeError,
                  "axes must be different from each other, got [0, 0]"),
        ],
    ),
    OpCase(
        "squeeze", lambda x: x.squeeze(axis=1), lambda x: np.squeeze(x, 1), shapes([(2, 1, 3)], [(0, 1)]), LAYOUT,
        wrong=[Wrong(lambda b: b.argument("x", bg.Float32, [2, 3]).squeeze(axis=0), bg.ShapeError,
                     "axis must have size 1, got size 2 on axis 0")],
    ),
    OpCase("unsqueeze", lambda x: x.unsqueeze(axis=-1), lambda x: x[..., None], shapes([(2, 3)], [()], [(0, 3)]), LAYOUT),
    OpCase(
        "concatenate", joined, lambda x, y: np.concatenate([x, y], 1), shapes([(2, 3), (2, 2)], [(2, 0), (2, 3)]), LAYOUT,
        wrong=[
            Wrong(lambda b: b.concatenate([b.argument("x", bg.Float32, [2, 3]), b.argument("y", bg.Float32, [3, 3])], axis=1),
                  bg.ShapeError, "sizes on axis 0 must be equal, got 2 against 3"),
            Wrong(lambda b: b.concatenate([], axis=0), bg.ParameterError, "tensors must hold at least one tensor, got 0"),
        ],
    ),
    OpCase("slice", lambda x: x[1:, ::-1, -1], lambda x: x[1:, ::-1, -1], shapes([(3, 4, 2)], [(3, 0, 2)]), LAYOUT),
    OpCase("slice-steps", lambda x: x[::2, -1:0:-2], lambda x: x[::2, -1:0:-2], shapes([(5, 4)]), LAYOUT),
    OpCase(
        "slice-update", lambda x, y: x.update[1:, 0](y), lambda x, y: replaced(x, y, (slice(1, None), 0)),
        shapes([(3, 4), (2,)], [(3, 4), ()], [(1, 4), (0,)]), LAYOUT, flexible="the size of y is not written as that of the slice",
        wrong=[
            Wrong(lambda b: b.argument("x", bg.Float32, [3]).update[1:](b.argument("y", bg.Float32, [3])), bg.ShapeError,
                  "value must broadcast to the slice, [2], got [3]"),
        ],
    ),
    OpCase("slice-update-steps", lambda x, y: x.update[::-2, 1:3](y), lambda x, y: replaced(x, y, (slice(None, None, -2), slice(1, 3))),
           shapes([(4, 4), (2, 2)]), LAYOUT, flexible="the size of y is not written as that of the slice"),
]  # fmt: skip
