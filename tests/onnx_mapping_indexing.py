"""ONNX operators that read and write elements by index, put them in order, or reduce them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import bnnsgraph as bg
from tests.onnx_mapping_call import Call, Rule, axis_key

T = bg.Tensor

MODES = {
    "none": bg.ScatterMode.UPDATE, "add": bg.ScatterMode.ADD, "mul": bg.ScatterMode.MULTIPLY,
    "max": bg.ScatterMode.MAXIMUM, "min": bg.ScatterMode.MINIMUM,
}  # fmt: skip


# Gather and scatter


def scatter_elements(call: Call) -> Any:
    data, indices, updates = call.tensors()
    mode = MODES[call.attribute("reduction", "none")]
    return data.scatter_along_axis(updates, indices, mode, axis=call.attribute("axis", 0))


def scatter_nd(call: Call) -> Any:
    data, indices, updates = call.tensors()
    return data.scatter_nd(updates, indices, MODES[call.attribute("reduction", "none")])


def tensor_scatter(call: Call) -> Any:
    """Each sample's update at its own place of the sequence axis."""
    cache, update, first = call.tensor(0), call.tensor(1), call.optional(2)
    axis = call.attribute("axis", -2) % cache.rank
    shape = [size if other in (0, axis) else 1 for other, size in enumerate(update.shape)]
    places = np.arange(shape[axis], dtype=np.int64).reshape([size if other == axis else 1 for other, size in enumerate(shape)])
    indices = call.builder.constant(values=places)
    if first is not None:
        indices = indices + first.reshape(to=[-1 if other == 0 else 1 for other in range(cache.rank)])
    indices = indices.broadcast_to(update.shape)
    if call.attribute("mode", "linear") == "circular":
        indices = indices % cache.shape[axis]
    return cache.scatter_along_axis(update, indices, bg.ScatterMode.UPDATE, axis=axis)


def max_unpool(call: Call) -> Any:
    """Each maximum back where it came from, in an image of the size that the windows span."""
    x, indices = call.tensor(0), call.tensor(1)
    kernel = call.attribute("kernel_shape")
    strides, pads = call.attribute("strides", [1] * len(kernel)), call.attribute("pads", [0] * 2 * len(kernel))
    sizes = [
        (size - 1) * stride + window - pads[axis] - pads[axis + len(kernel)]
        for axis, (size, stride, window) in enumerate(zip(x.shape[2:], strides, kernel, strict=True))
    ]
    shape = [*x.shape[:2], *sizes]
    flat = call.builder.fill([math.prod(shape)], 0, data_type=x.dtype)
    image = flat.scatter(x.reshape(to=[-1]), indices.reshape(to=[-1]), bg.ScatterMode.UPDATE, axis=0).reshape(to=shape)
    wanted = call.integers(2, shape)
    return image.pad(bg.Padding.constant(0), [(0, large - size) for large, size in zip(wanted, shape, strict=True)])


def reverse_sequence(call: Call) -> Any:
    """Position ``length - 1 - i`` for the first ``length`` of a sequence, and ``i`` after them."""
    x, lengths = call.tensors()
    batch, time = call.attribute("batch_axis", 1), call.attribute("time_axis", 0)
    along = [-1 if axis == batch else 1 for axis in range(x.rank)]
    places = np.arange(x.shape[time], dtype=np.int64).reshape([-1 if axis == time else 1 for axis in range(x.rank)])
    lengths = lengths.reshape(to=along)
    indices = (lengths > places).select(lengths - 1 - places, places)
    return x.gather_along_axis(indices.broadcast_to(x.shape), axis=time)


# Order


def top_k(call: Call) -> Any:
    x, k = call.tensor(0), call.integer(1)
    call.without_effect("sorted")  # ours is always sorted, and the cases ask for nothing else
    found = x.top_k(k, call.attribute("axis", -1), find_largest=bool(call.attribute("largest", 1)))
    return found.values, found.indices.cast(to=bg.Int64)


def arg(function: Callable[..., Any]) -> Rule:
    """The rule of an extremum's position."""

    def rule(call: Call) -> Any:
        x, axis = call.tensor(0), call.attribute("axis", 0)
        keep = bool(call.attribute("keepdims", 1))
        if call.attribute("select_last_index", 0):
            found = x.shape[axis] - 1 - function(x.reverse([axis]), axis, keep_dimension=keep)
        else:
            found = function(x, axis, keep_dimension=keep)
        return found.cast(to=bg.Int64)

    return rule


def hardmax(call: Call) -> Any:
    x, axis = call.tensor(0), call.attribute("axis", -1)
    return x.arg_max(axis).one_hot(x.shape[axis], axis=axis).cast(to=x.dtype)


# Reductions


def reduction(function: Callable[..., Any]) -> Rule:
    """The rule of a reduction, whose axes are an input from some version on."""

    def rule(call: Call) -> Any:
        x, axes = call.tensor(0), call.integers(1, call.attribute("axes"))
        keep = bool(call.attribute("keepdims", 1))
        if not axes:
            axes = [] if call.attribute("noop_with_empty_axes", 0) else None
        else:
            call.attribute("noop_with_empty_axes", 0)
        if x.data_type is bg.Bool:
            return function(x.cast(to=bg.UInt8), axes, keep_dimensions=keep).cast(to=bg.Bool)
        return function(x, axes, keep_dimensions=keep)

    return rule


def cumulative_sum(call: Call) -> Any:
    x, axis = call.tensor(0), call.integer(1)
    backwards = call.attribute("reverse", 0)
    total = (x.reverse([axis]) if backwards else x).cumulative_sum(axis)
    if call.attribute("exclusive", 0):
        amounts = [(0, 0)] * x.rank
        amounts[axis] = (1, 0)
        total = total[axis_key(x.rank, axis, slice(0, x.shape[axis] - 1))].pad(bg.Padding.constant(0), amounts)
    return total.reverse([axis]) if backwards else total


RULES: dict[str, Rule] = {
    "ArrayFeatureExtractor": lambda call: call.tensor(0).gather(call.tensor(1), axis=-1),
    "ArgMax": arg(T.arg_max),
    "ArgMin": arg(T.arg_min),
    "CumSum": cumulative_sum,
    "Gather": lambda call: call.tensor(0).gather(call.tensor(1), axis=call.attribute("axis", 0)),
    "GatherElements": lambda call: call.tensor(0).gather_along_axis(call.tensor(1), axis=call.attribute("axis", 0)),
    "GatherND": lambda call: call.tensor(0).gather_nd(call.tensor(1), batch_dimension_count=call.attribute("batch_dims", 0)),
    "Hardmax": hardmax,
    "MaxUnpool": max_unpool,
    "ReduceL1": reduction(T.l1_norm),
    "ReduceL2": reduction(T.l2_norm),
    "ReduceLogSum": reduction(T.log_sum),
    "ReduceLogSumExp": reduction(T.log_sum_exp),
    "ReduceMax": reduction(T.maximum),
    "ReduceMean": reduction(T.mean),
    "ReduceMin": reduction(T.minimum),
    "ReduceProd": reduction(T.product),
    "ReduceSum": reduction(T.sum),
    "ReduceSumSquare": reduction(T.sum_of_squares),
    "ReverseSequence": reverse_sequence,
    "Scatter": scatter_elements,
    "ScatterElements": scatter_elements,
    "ScatterND": scatter_nd,
    "TensorScatter": tensor_scatter,
    "TopK": top_k,
}
