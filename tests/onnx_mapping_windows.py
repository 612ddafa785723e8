"""ONNX operators that slide a window: convolutions and poolings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import bnnsgraph as bg
from tests.onnx_mapping_call import Call, Rule


def ends(call: Call, axes: int) -> bg.ConvolutionPadding:
    """The padding of a node with so many spatial axes. ONNX lists all beginnings, then all ends."""
    match call.attribute("auto_pad", "NOTSET"):
        case "NOTSET":
            pads = call.attribute("pads", [0] * 2 * axes)
            return bg.ConvolutionPadding.custom([amount for axis in range(axes) for amount in (pads[axis], pads[axis + axes])])
        case "SAME_UPPER":
            return bg.ConvolutionPadding.SAME
        case "SAME_LOWER":
            return bg.ConvolutionPadding.LOWER
        case _:
            return bg.ConvolutionPadding.VALID


def require_kernel(call: Call, weight: Any) -> int:
    """The number of spatial axes of a weight, whose sizes the node may repeat."""
    kernel = list(weight.shape[2:])
    assert call.attribute("kernel_shape", kernel) == kernel
    return len(kernel)


# Convolutions


def convolved(call: Call, x: Any, weight: Any, bias: Any) -> Any:
    """A convolution with the node's attributes."""
    axes = require_kernel(call, weight)
    return x.conv(
        weight,
        call.attribute("strides", [1] * axes),
        bias,
        ends(call, axes),
        call.attribute("dilations"),
        call.attribute("group", 1),
    )


def conv(call: Call) -> Any:
    return convolved(call, call.tensor(0), call.tensor(1), call.optional(2))


def conv_transpose(call: Call) -> Any:
    x, weight, bias = call.tensor(0), call.tensor(1), call.optional(2)
    axes = require_kernel(call, weight)
    strides, dilations = call.attribute("strides", [1] * axes), call.attribute("dilations", [1] * axes)
    extra = call.attribute("output_padding", [0] * axes)
    padding = ends(call, axes)
    wanted = call.attribute("output_shape")
    if wanted is not None:  # the padding is what makes the output so long; where that is negative, places are added
        amounts: list[int] = []
        for axis in range(axes):
            full = (x.shape[axis + 2] - 1) * strides[axis] + (weight.shape[axis + 2] - 1) * dilations[axis] + 1 + extra[axis]
            total = full - wanted[axis]
            extra[axis] -= min(total, 0)
            total = max(total, 0)
            amounts += [total - total // 2, total // 2]
        padding = bg.ConvolutionPadding.custom(amounts)
    return x.conv_transpose(weight, strides, bias, padding, extra, dilations, call.attribute("group", 1))


def causal_conv(call: Call) -> Any:
    """A convolution of each channel over the past, which the state before the first step continues."""
    x, weight, bias = call.tensor(0), call.tensor(1), call.optional(2)
    batch, channels, _ = x.shape
    before = weight.shape[2] - 1
    zeros = np.zeros((batch, channels, before), x.dtype)
    whole = call.builder.concatenate([call.tensor(3) if call.has(3) else zeros, x], axis=2)
    result = whole.conv(weight, [1], bias, group_count=channels)
    if call.attribute("activation", "none") in ("silu", "swish"):
        result = result.silu()
    return result, whole[:, :, whole.shape[2] - before :]


def col2im(call: Call) -> Any:
    """Columns added back into an image: a transposed convolution by a kernel that puts each row in its place."""
    x, image, block = call.tensor(0), call.integers(1), call.integers(2)
    batch, rows, _ = x.shape
    count = math.prod(block)
    strides, dilations = call.attribute("strides", [1, 1]), call.attribute("dilations", [1, 1])
    pads = call.attribute("pads", [0] * 2 * len(block))
    places = [
        (size + pads[axis] + pads[axis + 2] - (block[axis] - 1) * dilations[axis] - 1) // strides[axis] + 1
        for axis, size in enumerate(image)
    ]
    weight = np.eye(count, dtype=x.dtype).reshape(count, 1, *block)
    kernel = np.tile(weight, (rows // count, 1, 1, 1))
    padding = bg.ConvolutionPadding.custom([pads[0], pads[2], pads[1], pads[3]])
    spread = x.reshape(to=[batch, rows, *places])
    extra = [
        size - ((place - 1) * stride + (window - 1) * dilation + 1 - pads[axis] - pads[axis + 2])
        for axis, (size, place, stride, window, dilation) in enumerate(
            zip(image, places, strides, block, dilations, strict=True)
        )
    ]
    return spread.conv_transpose(kernel, strides, None, padding, extra, dilations, rows // count)


# Poolings


def pooled(call: Call, x: Any, function: bg.PoolingFunction) -> Any:
    """A pooling with the node's attributes."""
    kernel = call.attribute("kernel_shape")
    if any(step != 1 for step in call.attribute("dilations", [1])):
        raise NotImplementedError("windows of poolings have no dilation")
    mode = bg.CeilingMode.CEILING if call.attribute("ceil_mode", 0) else bg.CeilingMode.FLOOR
    return x.pooling(function, kernel, call.attribute("strides", [1] * len(kernel)), ends(call, len(kernel)), mode)


def average_pool(call: Call) -> Any:
    return pooled(call, call.tensor(0), bg.PoolingFunction.average(bool(call.attribute("count_include_pad", 0))))


def max_pool(call: Call) -> Any:
    return pooled(call, call.tensor(0), bg.PoolingFunction.MAX)


def lp_pool(call: Call) -> Any:
    x, p = call.tensor(0), call.attribute("p", 2)
    if p == 2:
        return pooled(call, x, bg.PoolingFunction.L2_NORM)
    count = math.prod(call.attribute("kernel_shape"))
    mean = pooled(call, x.abs() ** p, bg.PoolingFunction.average(include_padding=True))
    return (mean * count) ** (1 / p)


def spatial(x: Any) -> Sequence[int]:
    """The axes after batch and channel."""
    return range(2, x.rank)


def local_response_normalization(call: Call) -> Any:
    """Each element over a power of the mean square of neighbouring channels, which an average pooling takes."""
    x, size = call.tensor(0), call.attribute("size")
    alpha, beta, bias = call.attribute("alpha", 0.0001), call.attribute("beta", 0.75), call.attribute("bias", 1.0)
    batch, channels, *rest = x.shape
    image = (x * x).reshape(to=[batch, 1, channels, math.prod(rest)])
    padding = bg.PoolingPadding.custom([(size - 1) // 2, size // 2, 0, 0])
    average = bg.PoolingFunction.average(include_padding=True)
    mean = image.pooling(average, [size, 1], [1, 1], padding, bg.CeilingMode.FLOOR).reshape(to=x.shape)
    return x / (mean * alpha + bias) ** beta


RULES: dict[str, Rule] = {
    "AveragePool": average_pool,
    "CausalConvWithState": causal_conv,
    "Col2Im": col2im,
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "GlobalAveragePool": lambda call: (x := call.tensor(0)).mean(spatial(x), keep_dimensions=True),
    "GlobalMaxPool": lambda call: (x := call.tensor(0)).maximum(spatial(x), keep_dimensions=True),
    "LRN": local_response_normalization,
    "LpPool": lp_pool,
    "MaxPool": max_pool,
}
