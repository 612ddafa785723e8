"""Rows of ``bnnsgraph.ops.linear``."""

from __future__ import annotations

import numpy as np

import bnnsgraph as bg
from tests.op_table import NUMBERS, OpCase, Wrong, shapes

MATRICES = shapes(
    [(2, 3), (3, 4)],
    [(3,), (3,)],
    [(3,), (3, 4)],
    [(2, 3), (3,)],
    [(5, 1, 2, 3), (4, 3, 2)],
    [(0, 3), (3, 4)],
    [(2, 0), (0, 4)],
)

ROWS = [
    OpCase("matmul", lambda x, y: x @ y, np.matmul, MATRICES, NUMBERS, ulps=16, magnitude=8,
           wrong=[Wrong(lambda b: b.argument("x", bg.Float32, [2, 3]) @ b.argument("y", bg.Float32, [2, 3]), bg.ShapeError,
                        "the last size of x and the second last of other (after transposes) must be equal, got 3 against 2"),
                  Wrong(lambda b: b.argument("x", bg.Float32, []) @ b.argument("y", bg.Float32, [2, 3]), bg.ShapeError,
                        "x must have rank 1 or more, got rank 0; write x * other for a scalar")]),
    OpCase("matmul-transposed", lambda x, y: x.matmul(y, transpose=True, transpose_other=True),
           lambda x, y: np.swapaxes(x, -1, -2) @ y.T, shapes([(3, 2), (4, 3)], [(5, 3, 2), (4, 3)]), ulps=16, magnitude=8),
    OpCase("rmatmul", lambda x: [[1.0, 2.0]] @ x, lambda x: np.array([[1.0, 2.0]]) @ x, shapes([(2, 3)]), magnitude=8),
]  # fmt: skip
