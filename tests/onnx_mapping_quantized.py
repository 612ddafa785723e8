"""ONNX operators on numbers of 8 and 16 bits with a scale and a zero point, in terms of floats."""

from __future__ import annotations

from typing import Any

import numpy as np

import bnnsgraph as bg
from tests.onnx_mapping_call import Call, Rule
from tests.onnx_mapping_elementwise import dtype_of
from tests.onnx_mapping_windows import convolved


def dequantized(x: Any, scale: Any, zero: Any) -> Any:
    """``(x - zero) * scale`` in the dtype of the scale."""
    number = x.cast(to=scale.dtype)
    return (number if zero is None else number - zero.cast(to=scale.dtype)) * scale


def quantized(x: Any, scale: Any, zero: Any, to: Any) -> Any:
    """``x / scale + zero``, rounded; the cast takes what is beyond the type to its bounds."""
    level = (x / scale).round()
    return (level if zero is None else level + zero.cast(to=x.dtype)).cast(to=to)


def by_block(call: Call, x: Any, position: int) -> Any:
    """A scale or zero point that can be combined with ``x``: one number, one along an axis, or one for each block on it."""
    axis, size = call.attribute("axis", 1), call.attribute("block_size", 0)
    given = call.optional(position)
    if given is None or given.rank == 0:
        return given
    if size:
        return given.gather(np.arange(x.shape[axis]) // size, axis)
    return given.reshape(to=[-1 if other == axis % x.rank else 1 for other in range(x.rank)])


def quantize(call: Call) -> Any:
    x = call.tensor(0)
    scale, zero = by_block(call, x, 1), by_block(call, x, 2)
    return quantized(x, scale, zero, dtype_of(call.attribute("output_dtype")) if zero is None else zero.dtype)


def dequantize(call: Call) -> Any:
    x = call.tensor(0)
    return dequantized(x, by_block(call, x, 1), by_block(call, x, 2))


def dynamic_quantize(call: Call) -> Any:
    """The scale is chosen so that 0 and all elements fit."""
    x = call.tensor(0)
    low, high = x.minimum(None).min(0), x.maximum(None).max(0)
    scale = (high - low) / 255
    zero = (-low / scale).clip(to=(0, 255)).round().cast(to=bg.UInt8)
    return quantized(x, scale, zero, bg.UInt8), scale, zero


def shifted(call: Call, position: int, zero_position: int, to: Any, axis: int) -> Any:
    """A tensor less its zero point, which is one number or one along an axis."""
    x = call.tensor(position).cast(to=to)
    if not call.has(zero_position):
        return x
    zero = call.tensor(zero_position).cast(to=to)
    return x - (zero.reshape(to=[-1 if other == axis % x.rank else 1 for other in range(x.rank)]) if zero.rank else zero)


def matmul_integer(call: Call) -> Any:
    return shifted(call, 0, 2, bg.Int32, axis=-2) @ shifted(call, 1, 3, bg.Int32, axis=-1)


def conv_integer(call: Call) -> Any:
    """Whole numbers below 2**24 are exact in float32."""
    x, weight = shifted(call, 0, 2, bg.Float32, axis=0), shifted(call, 1, 3, bg.Float32, axis=0)
    return convolved(call, x, weight, None).cast(to=bg.Int32)


def qlinear_matmul(call: Call) -> Any:
    a, a_scale, a_zero, b, b_scale, b_zero, scale, zero = call.tensors()
    a_scale, b_scale, scale = (one.cast(to=bg.Float32) for one in (a_scale, b_scale, scale))
    return quantized(dequantized(a, a_scale, a_zero) @ dequantized(b, b_scale, b_zero), scale, zero, zero.dtype)


def qlinear_conv(call: Call) -> Any:
    x, x_scale, x_zero, weight, scales, zeros, scale, zero = (call.tensor(position) for position in range(8))
    scales, zeros = (each.reshape(to=[-1] + [1] * (weight.rank - 1)) for each in (scales, zeros))
    product = convolved(call, dequantized(x, x_scale, x_zero), dequantized(weight, scales, zeros), None)
    return quantized(product, scale, zero, zero.dtype)


RULES: dict[str, Rule] = {
    "ConvInteger": conv_integer,
    "DequantizeLinear": dequantize,
    "DynamicQuantizeLinear": dynamic_quantize,
    "MatMulInteger": matmul_integer,
    "QLinearConv": qlinear_conv,
    "QLinearMatMul": qlinear_matmul,
    "QuantizeLinear": quantize,
}
