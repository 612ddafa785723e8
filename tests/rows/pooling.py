"""Rows of ``bnnsgraph.ops.pooling``."""

from __future__ import annotations

from typing import Any

import numpy as np

import bnnsgraph as bg
from tests import window_definition as definition
from tests.op_table import FLOATS, NUMBERS, Input, OpCase, Wrong, separated, shapes
from tests.window_definition import FUNCTIONS, Padding, padding_of

MAX, AVERAGE = bg.PoolingFunction.MAX, FUNCTIONS["average"]
VALID, FLOOR, CEILING = bg.PoolingPadding.VALID, bg.CeilingMode.FLOOR, bg.CeilingMode.CEILING


def pool(
    name: str, function: str, *inputs: tuple[int, ...], kernel: list[int], strides: list[int], padding: Padding = "VALID", ceiling: bool = False,
    wrong: tuple[Wrong, ...] = (),
) -> OpCase:  # fmt: skip
    """A row of one pooling."""
    mode = CEILING if ceiling else FLOOR
    return OpCase(
        name,
        lambda x: x.pooling(FUNCTIONS[function], kernel, strides, padding_of(padding), mode),
        lambda x: definition.pooling(x, function, kernel, strides, padding, ceiling),
        shapes(*[(shape,) for shape in inputs], draw=separated),
        NUMBERS if function == "max" else FLOATS,
        magnitude=16,
        wrong=wrong,
    )


def refused(error: type[bg.GraphError], words: str, x: Any = (1, 1, 4), dtype: Any = bg.Float32, function: Any = MAX, kernel: Any = (2,),
            strides: Any = (1,), padding: Any = VALID, ceiling: Any = FLOOR) -> Wrong:  # fmt: skip
    """A call that is refused: what differs from one that is not."""
    return Wrong(lambda b: b.argument("x", dtype, x).pooling(function, kernel, strides, padding, ceiling), error, words)


CUSTOM = bg.PoolingPadding.custom
SHAPE, KIND, PARAMETER = bg.ShapeError, bg.DTypeError, bg.ParameterError
MISUSE = (
    refused(KIND, "x must be of a float type, got int32", dtype=bg.Int32, function=AVERAGE),
    refused(KIND, "x must be of a number type, got bool", dtype=bg.Bool),
    refused(SHAPE, "x must have rank 3 or 4, [N, C, spatial...] with one or two spatial axes, got rank 5", x=(1, 1, 4, 4, 4)),
    refused(SHAPE, "axis 2 of x must be as long as the window, 5, padding included, got 4", kernel=[5]),
    refused(SHAPE, "axis 2 of x must reach into the last stride of a window of 5, padding included, got 4", kernel=[5], ceiling=CEILING),
    refused(SHAPE, "x must have at least one element on axis 2, got size 0", x=(1, 1, 0), padding=CUSTOM([1, 1])),
    refused(PARAMETER, "padding must be smaller than the kernel, so that every window holds an element of x, got 2 for a kernel of 2 on axis 2",
            padding=CUSTOM([0, 2])),
    refused(PARAMETER, "padding must have two entries, before and after, for each of the 1 spatial axes, got [1, 1, 0, 0]",
            padding=CUSTOM([1, 1, 0, 0])),
    refused(PARAMETER, "kernel_size must have one entry for each of the 1 spatial axes, got [2, 2]", kernel=[2, 2]),
    refused(PARAMETER, "kernel_size must be 1 or more, got [0]", kernel=[0]),
    refused(PARAMETER, "strides must be a sequence of integers, one for each spatial axis, got 2", strides=2),
    refused(PARAMETER, "function must be a PoolingFunction, such as PoolingFunction.MAX, got 'max'", function="max"),
    refused(PARAMETER, "ceiling_mode must be a CeilingMode, such as CeilingMode.FLOOR, got True", ceiling=True),
    refused(PARAMETER, "padding must be a ConvolutionPadding, such as ConvolutionPadding.SAME, got 1", padding=1),
)  # fmt: skip

ROWS = [
    pool("pooling-max", "max", (2, 3, 7), (0, 3, 7), (2, 0, 7), (1, 1, 2), kernel=[2], strides=[2], wrong=MISUSE),
    pool("pooling-max-2d", "max", (2, 2, 5, 6), kernel=[2, 3], strides=[1, 2], padding=[1, 0, 2, 1]),
    pool("pooling-max-same", "max", (1, 2, 6, 7), (2, 1, 1, 0), kernel=[2, 3], strides=[3, 2], padding="SAME"),
    pool("pooling-max-lower", "max", (1, 2, 6, 7), (2, 1, 1, 0), kernel=[2, 3], strides=[1, 2], padding="LOWER"),
    pool("pooling-max-ceiling", "max", (1, 2, 6, 7), (1, 1, 5, 2), kernel=[3, 3], strides=[2, 2], padding=[0, 0, 1, 1], ceiling=True),
    pool("pooling-average", "average", (2, 3, 7), (0, 3, 7), (2, 0, 7), kernel=[3], strides=[2], padding=[1, 2]),
    pool("pooling-average-2d", "average", (2, 2, 5, 6), kernel=[2, 3], strides=[1, 2], padding="SAME"),
    pool("pooling-average-ceiling", "average", (1, 2, 6, 7), kernel=[3, 2], strides=[2, 3], padding=[1, 1, 0, 0], ceiling=True),
    pool("pooling-average-all", "average_all", (2, 3, 7), kernel=[3], strides=[2], padding=[1, 2]),
    pool("pooling-average-all-2d", "average_all", (2, 2, 5, 6), (2, 1, 1, 0), kernel=[2, 3], strides=[1, 2], padding="LOWER"),
    pool("pooling-average-all-ceiling", "average_all", (1, 2, 6, 8), kernel=[3, 2], strides=[2, 3], padding=[1, 1, 0, 1], ceiling=True),
    pool("pooling-norm", "l2", (2, 3, 7), (0, 3, 7), kernel=[3], strides=[2], padding=[1, 1]),
    pool("pooling-norm-2d", "l2", (2, 2, 5, 6), (1, 1, 4, 2), kernel=[2, 3], strides=[2, 2], padding="SAME", ceiling=True),
    OpCase("pooling-max-nan", lambda x: x.update[..., 2](np.nan).pooling(MAX, [2], [1], CUSTOM([1, 0]), FLOOR),
           lambda x: np.stack([x[..., 0], x[..., :2].max(-1), x[..., 2] * np.nan, x[..., 2] * np.nan, x[..., 3:].max(-1)], -1), shapes([(2, 3, 5)]),
           gradient=False),
    # so many windows without overlap that XLA's CPU compiler gives them to another library
    OpCase("pooling-max-nan-large", lambda x: x.pooling(MAX, [2, 2], [2, 2], VALID, FLOOR),
           lambda x: x.reshape(2, 4, 32, 2, 32, 2).max((3, 5)),
           shapes([(2, 4, 64, 64)], draw=lambda r, s: np.where(r.random(s) < 0.02, np.nan, r.normal(size=s))), ulps=0, ulps16=0, gradient=False),
    OpCase("pooling-max-infinities", lambda x: x.update[..., 0:2](-np.inf).pooling(MAX, [2], [2], VALID, FLOOR),
           lambda x: np.stack([-np.inf * np.ones(x.shape[:2]), x[..., 2:4].max(-1)], -1), shapes([(2, 3, 4)]), gradient=False),
    # 2,000 ones: a sum kept in float16 would be right, one in bfloat16 would stop at 256
    OpCase("pooling-average-long", lambda x: x.pooling(AVERAGE, [2000], [1], VALID, FLOOR), lambda x: np.ones((1, 1, 1)),
           [(Input((1, 1, 2000), lambda r, s: np.ones(s)),)], ulps16=0, gradient=False),
]  # fmt: skip
