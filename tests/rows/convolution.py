"""Rows of ``bnnsgraph.ops.convolution``."""

from __future__ import annotations

from typing import Any

import numpy as np

import bnnsgraph as bg
from tests import window_definition as definition
from tests.op_table import Input, OpCase, Wrong, shapes, uniform
from tests.window_definition import Padding, padding_of

SPLIT = "that a group has a part of the channels is known of fixed sizes only"


def conv(
    name: str, *inputs: tuple[tuple[int, ...], ...], strides: list[int], padding: Padding = "VALID", dilations: list[int] | None = None,
    groups: int = 1, transposed: bool = False, extra: list[int] | None = None, wrong: tuple[Wrong, ...] = (),
) -> OpCase:  # fmt: skip
    """A row of one convolution; the third of the inputs' shapes is the bias's."""

    def build(x: Any, weight: Any, bias: Any = None) -> Any:
        parameters: dict[str, Any] = {"padding": padding_of(padding), "dilations": dilations, "group_count": groups}
        if transposed:
            return x.conv_transpose(weight, strides, bias, output_padding_values=extra, **parameters)
        return x.conv(weight, strides, bias, **parameters)

    def reference(x: Any, weight: Any, bias: Any = None) -> Any:
        if transposed:
            return definition.conv_transpose(x, weight, strides, bias, padding, extra, dilations, groups)
        return definition.conv(x, weight, strides, bias, padding, dilations, groups)

    flexible = True if groups == 1 else SPLIT
    return OpCase(name, build, reference, shapes(*inputs), ulps=16, magnitude=8, flexible=flexible, wrong=wrong)


def refused(error: type[bg.GraphError], words: str, method: str = "conv", /, weight: Any = (3, 2, 3), x: Any = (2, 2, 8), dtype: Any = bg.Float32,
            bias: Any = None, strides: Any = (1,), **parameters: Any) -> Wrong:  # fmt: skip
    """A call that is refused: what differs from one that is not."""
    return Wrong(
        lambda b: getattr(b.argument("x", dtype, x), method)(
            b.argument("w", bg.Float32, weight),
            strides,
            None if bias is None else b.argument("b", bg.Float32, bias),
            **parameters,
        ),
        error,
        words,
    )


CUSTOM = bg.ConvolutionPadding.custom
SHAPE, KIND, PARAMETER = bg.ShapeError, bg.DTypeError, bg.ParameterError
MISUSE = (
    refused(KIND, "Conv(strides=(1,)): x and weight must have one dtype, got int32 and float32", dtype=bg.Int32),
    Wrong(lambda b: b.argument("x", bg.Int32, [1, 1, 4]).conv(b.argument("w", bg.Int32, [1, 1, 2]), [1]), KIND,
          "x must be of a float type, got int32"),
    refused(SHAPE, "x must have rank 3 or 4, [N, C, spatial...] with one or two spatial axes, got rank 2", x=(2, 8)),
    refused(SHAPE, "weight must have the rank of x, 3, got rank 4, [3, 2, 1, 3]", weight=(3, 2, 1, 3)),
    refused(SHAPE, "weight must have a kernel of at least one element, got shape [3, 2, 0]", weight=(3, 2, 0)),
    refused(SHAPE, "the channels of x and group_count * weight.shape[1] must be equal, got 2 against 4", group_count=2),
    refused(SHAPE, "weight.shape[0] must be a multiple of group_count, 2, got 3", x=(2, 4, 8), group_count=2),
    refused(SHAPE, "the size of bias and the number of output channels must be equal, got 2 against 3", bias=(2,)),
    refused(SHAPE, "bias must have rank 1, one value for each output channel, got rank 2", bias=(3, 1)),
    refused(SHAPE, "axis 2 of x must be as long as the window, 9, padding included, got 8", dilations=[4]),
    refused(PARAMETER, "strides must be a sequence of integers, one for each spatial axis, got 1", strides=1),
    refused(PARAMETER, "strides must have one entry for each of the 1 spatial axes, got [1, 1]", strides=[1, 1]),
    refused(PARAMETER, "strides must be 1 or more, got [0]", strides=[0]),
    refused(PARAMETER, "strides must be an integer, got 1.5", strides=[1.5]),
    refused(PARAMETER, "dilations must be 1 or more, got [-1]", dilations=[-1]),
    refused(PARAMETER, "group_count must be 1 or more, got 0", group_count=0),
    refused(PARAMETER, "padding must be a ConvolutionPadding, such as ConvolutionPadding.SAME, got 'same'", padding="same"),
    refused(PARAMETER, "padding must have two entries, before and after, for each of the 1 spatial axes, got [1]", padding=CUSTOM([1])),
    Wrong(lambda b: CUSTOM([1, -1]), PARAMETER, "padding must be 0 or more, got [1, -1]"),
)  # fmt: skip
MISUSE_TRANSPOSED = (
    refused(SHAPE, "the channels of x and weight.shape[0] must be equal, got 2 against 3", "conv_transpose"),
    refused(SHAPE, "the channels of x must be a multiple of group_count, 2, got 3", "conv_transpose", x=(2, 3, 8), group_count=2),
    refused(SHAPE, "x must have at least one element on axis 2, got size 0", "conv_transpose", weight=(2, 3, 3), x=(2, 2, 0)),
    refused(SHAPE, "padding must leave at least one element of the output on axis 2, got size 0", "conv_transpose",
            weight=(2, 3, 3), x=(2, 2, 1), padding=CUSTOM([1, 2])),
    refused(PARAMETER, "output_padding_values must be smaller than the stride or the dilation of its axis, got [1]", "conv_transpose",
            weight=(2, 3, 3), output_padding_values=[1]),
    refused(PARAMETER, "output_padding_values must be 0 with ConvolutionPadding.SAME, whose output has size * stride places, got [1]",
            "conv_transpose", weight=(2, 3, 3), strides=[2], padding=bg.ConvolutionPadding.SAME, output_padding_values=[1]),
    refused(PARAMETER, "output_padding_values must be 0 or more, got [-1]", "conv_transpose", weight=(2, 3, 3), output_padding_values=[-1]),
)  # fmt: skip

ROWS = [
    conv("conv", ((2, 3, 7), (4, 3, 3), (4,)), ((0, 3, 7), (4, 3, 3), (4,)), ((2, 0, 7), (4, 0, 3), (4,)), ((2, 3, 7), (0, 3, 3), (0,)),
         strides=[1], wrong=MISUSE),
    conv("conv-2d", ((2, 2, 5, 6), (3, 2, 2, 3)), ((1, 1, 1, 1), (1, 1, 1, 1)), strides=[2, 1]),
    conv("conv-same", ((1, 2, 6, 7), (2, 2, 3, 2), (2,)), ((2, 2, 5, 1), (3, 2, 3, 2), (3,)), strides=[2, 3], padding="SAME"),
    conv("conv-same-empty", ((1, 2, 0), (2, 2, 3)), ((1, 2, 0), (2, 2, 1)), strides=[2], padding="SAME"),
    conv("conv-lower", ((1, 2, 6, 7), (2, 2, 3, 2), (2,)), ((2, 2, 5, 1), (3, 2, 3, 2), (3,)), strides=[2, 1], padding="LOWER", dilations=[1, 3]),
    conv("conv-custom", ((1, 2, 4, 5), (2, 2, 3, 3)), ((1, 2, 0, 5), (2, 2, 3, 3)), strides=[1, 2], padding=[3, 0, 1, 2]),
    conv("conv-dilated", ((2, 2, 9), (3, 2, 3), (3,)), strides=[2], padding=[1, 2], dilations=[3]),
    conv("conv-groups", ((2, 4, 5, 4), (6, 2, 2, 3), (6,)), strides=[1, 1], padding="SAME", groups=2),
    conv("conv-depthwise", ((2, 3, 8), (6, 1, 3)), strides=[2], padding=[1, 1], dilations=[2], groups=3),
    conv("conv-transpose", ((2, 3, 4), (3, 2, 3), (2,)), ((0, 3, 4), (3, 2, 3), (2,)), ((2, 0, 4), (0, 2, 3), (2,)), ((2, 3, 4), (3, 0, 3), (0,)),
         strides=[2], transposed=True, wrong=MISUSE_TRANSPOSED),
    conv("conv-transpose-2d", ((2, 2, 3, 4), (2, 3, 2, 3)), ((1, 1, 1, 1), (1, 1, 1, 1)), strides=[1, 3], transposed=True),
    conv("conv-transpose-same", ((1, 2, 3, 4), (2, 2, 4, 3), (2,)), ((1, 2, 3, 1), (2, 2, 4, 2), (2,)), strides=[1, 2], padding="SAME", transposed=True),
    conv("conv-transpose-same-gaps", ((1, 2, 3, 4), (2, 2, 1, 2), (2,)), strides=[2, 3], padding="SAME", transposed=True),
    conv("conv-transpose-lower", ((1, 2, 3, 4), (2, 2, 4, 3), (2,)), ((1, 2, 3, 1), (2, 2, 4, 2), (2,)), strides=[1, 2], padding="LOWER", transposed=True),
    conv("conv-transpose-custom", ((1, 2, 4, 5), (2, 3, 3, 4)), strides=[1, 2], padding=[4, 0, 1, 2], transposed=True),
    conv("conv-transpose-extra", ((1, 2, 4, 3), (2, 3, 3, 2), (3,)), strides=[2, 1], padding=[1, 1, 0, 0], extra=[1, 2], dilations=[1, 3],
         transposed=True),
    conv("conv-transpose-groups", ((2, 4, 3, 4), (4, 3, 2, 3), (6,)), strides=[2, 1], padding=[0, 1, 1, 0], groups=2, transposed=True),
    conv("conv-transpose-depthwise", ((2, 3, 5), (3, 1, 3)), strides=[2], extra=[1], dilations=[2], groups=3, transposed=True),
    # 448 terms of one sign: a sum kept in 16 bits would be wrong by many units
    OpCase("conv-long-sum", lambda x, w: x.conv(w, [1]), lambda x, w: definition.conv(x, w, [1]),
           [(Input((1, 64, 9), uniform(0.5, 1)), Input((2, 64, 7), uniform(0.5, 1)))], ulps=32, gradient=False),
    OpCase("conv-transpose-long-sum", lambda x, w: x.conv_transpose(w, [1]), lambda x, w: definition.conv_transpose(x, w, [1]),
           [(Input((1, 64, 9), uniform(0.5, 1)), Input((64, 2, 7), uniform(0.5, 1)))], ulps=32, gradient=False),
    # 2049 + 1 in 16 bits: the product alone would round to 2048
    OpCase("conv-bias-before-rounding", lambda x, w: x.conv(w, [1], [1.0]), lambda x, w: np.full((1, 1, 1), 2050.0),
           [(Input((1, 1, 2), lambda r, s: np.array([[[2048.0, 1.0]]])), Input((1, 1, 2), lambda r, s: np.ones(s)))], (bg.Float16,),
           ulps16=0, gradient=False),
    OpCase("conv-transpose-bias-before-rounding", lambda x, w: x.conv_transpose(w, [1], [1.0]), lambda x, w: np.full((1, 1, 1), 2050.0),
           [(Input((1, 2, 1), lambda r, s: np.array([[[2048.0], [1.0]]])), Input((2, 1, 1), lambda r, s: np.ones(s)))], (bg.Float16,),
           ulps16=0, gradient=False),
]  # fmt: skip
