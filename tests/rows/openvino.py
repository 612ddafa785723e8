"""Rows for ``bnnsgraph.openvino``; its gathers are those of the tensors, so only the merging of batch axes is new."""

from __future__ import annotations

import numpy as np

import bnnsgraph as bg
from bnnsgraph import openvino
from tests.op_table import EVERY, Input, OpCase, Wrong, integers, normal


def merged(data: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """GatherND-5 with two batch axes and vectors of one component."""
    rows, columns, count, _ = indices.shape
    result = np.zeros((rows * columns, count, *data.shape[3:]), data.dtype)
    for row, column, place in np.ndindex(rows, columns, count):
        result[row * columns + column, place] = data[row, column, indices[row, column, place, 0]]
    return result


def operands(batch: tuple[int, int], size: int, count: int, *rest: int) -> tuple[Input, ...]:
    """Data and indices that share the batch axes."""
    return (
        Input((*batch, size, *rest), normal),
        Input((*batch, count, 1), integers(-size, size), bg.Int32, differentiable=False),
    )


ROWS = [
    OpCase(
        "openvino gather_nd 5, merged batch axes",
        lambda data, indices: openvino.gather_nd(data, indices, batch_dims=2, version=5),
        merged,
        [operands((2, 3), 4, 5, 2), operands((1, 2), 3, 1), operands((0, 3), 4, 5), operands((3, 2), 4, 0, 2)],
        dtypes=EVERY,
        ulps=0,
        ulps16=0,
        wrong=[
            Wrong(
                lambda b: openvino.gather_nd(
                    b.argument("x", bg.Float32, [2, 3, 4]), b.constant(values=[[[[0]]]]), 2, version=5
                ),
                bg.ShapeError,
                "batch sizes of x and indices on axis 0 must be equal, got 2 against 1",
            ),
        ],
    ),
]
