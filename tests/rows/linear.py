"""Rows of ``bnnsgraph.ops.linear``."""

from __future__ import annotations

import numpy as np

import bnnsgraph as bg
from tests.op_table import FLOATS, NUMBERS, Input, OpCase, Wrong, shapes, uniform

SOME = (*FLOATS, bg.Int32, bg.UInt8)
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
    OpCase("matmul-bias", lambda x, y, bias: x.matmul(y, bias=bias), lambda x, y, bias: x @ y + bias,
           shapes([(2, 3), (3, 4), (4,)], [(3,), (3,), ()], [(3,), (3, 4), (2, 1)], [(5, 1, 2, 3), (4, 3, 2), (5, 1, 1, 2)],
                  [(0, 3), (3, 4), (1, 4)], [(2, 0), (0, 4), (4,)]), SOME, ulps=16, magnitude=8,
           wrong=[Wrong(lambda b: b.argument("x", bg.Float32, [2, 3]).matmul(b.argument("y", bg.Float32, [3, 4]),
                                                                             bias=b.argument("z", bg.Float32, [3])), bg.ShapeError,
                        "shapes must broadcast (trailing sizes equal, or 1), got [2, 4] and [3]: 4 against 3"),
                  Wrong(lambda b: b.argument("x", bg.Float32, [2, 3]).matmul(b.argument("y", bg.Float32, [3, 4]),
                                                                             bias=b.argument("z", bg.Float16, [4])), bg.DTypeError,
                        "x and bias must have one dtype, got float32 and float16"),
                  Wrong(lambda b: b.argument("x", bg.Bool, [2, 3]) @ b.argument("y", bg.Bool, [3, 2]), bg.DTypeError,
                        "x must be of a number type, got bool")]),
    OpCase("linear", lambda x, w, bias: x.linear(w, bias), lambda x, w, bias: x @ w.T + bias,
           shapes([(2, 3), (4, 3), (4,)], [(3,), (4, 3), (4,)], [(2, 5, 3), (1, 3), (1,)], [(0, 3), (4, 3), (4,)], [(2, 0), (4, 0), (4,)],
                  [(2, 3), (0, 3), (0,)]), SOME, ulps=16, magnitude=8,
           wrong=[Wrong(lambda b: b.argument("x", bg.Float32, [2, 3]).linear(b.argument("w", bg.Float32, [3, 4])), bg.ShapeError,
                        "Linear(): the last size of x and of weight, [out, in], must be equal, got 3 against 4"),
                  Wrong(lambda b: b.argument("x", bg.Float32, [2, 3]).linear(b.argument("w", bg.Float32, [3])), bg.ShapeError,
                        "weight must have rank 2, [out, in], got rank 1, [3]"),
                  Wrong(lambda b: b.argument("x", bg.Float32, []).linear(b.argument("w", bg.Float32, [4, 3])), bg.ShapeError,
                        "x must have rank 1 or more, got rank 0"),
                  Wrong(lambda b: b.argument("x", bg.Float32, [2, 3]).linear(b.argument("w", bg.Float32, [4, 3]), [[1.0, 2.0, 3.0, 4.0]]), bg.ShapeError,
                        "bias must have rank 1, [out], got rank 2, [1, 4]"),
                  Wrong(lambda b: b.argument("x", bg.Float32, [2, 3]).linear(b.argument("w", bg.Float32, [4, 3]), [1.0]), bg.ShapeError,
                        "the size of bias and the first of weight, [out, in], must be equal, got 1 against 4"),
                  Wrong(lambda b: b.argument("x", bg.Float32, [2, 3]).linear(b.argument("w", bg.Float16, [4, 3])), bg.DTypeError,
                        "x and weight must have one dtype, got float32 and float16")]),
    OpCase("linear-plain", lambda x, w: x.linear(w), lambda x, w: x @ w.T, shapes([(2, 3), (4, 3)]), ulps=16, magnitude=8),
    # 512 terms of one sign: a sum kept in 16 bits would be wrong by many units
    OpCase("linear-long-sum", lambda x, w: x.linear(w), lambda x, w: x @ w.T, [(Input((2, 512), uniform(0.5, 1)), Input((3, 512), uniform(0.5, 1)))],
           ulps=32, gradient=False),
    # 2049 + 1 in float16: the product alone would round to 2048
    *[OpCase(f"{name}-bias-before-rounding", build, lambda x, w: np.full((1, 1), 2050.0),
             [(Input((1, 2), lambda r, s: np.array([[2048.0, 1.0]])), Input((1, 2), lambda r, s: np.ones(s)))], (bg.Float16,), ulps16=0, gradient=False)
      for name, build in [("matmul", lambda x, w: x.matmul(w, transpose_other=True, bias=[1.0])), ("linear", lambda x, w: x.linear(w, [1.0]))]],
    OpCase("rmatmul", lambda x: [[1.0, 2.0]] @ x, lambda x: np.array([[1.0, 2.0]]) @ x, shapes([(2, 3)]), magnitude=8),
]  # fmt: skip
