"""ONNX operators that arrange, cut, pad, repeat or make elements."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import bnnsgraph as bg
from tests.onnx_mapping_call import Call, Rule, as_array, axis_key
from tests.onnx_mapping_elementwise import dtype_of

# Shapes


def reshape(call: Call) -> Any:
    x, to = call.tensor(0), call.integers(1)
    if not call.attribute("allowzero", 0):
        to = [x.shape[axis] if size == 0 else size for axis, size in enumerate(to)]
    return x.reshape(to=to)


def flatten(call: Call) -> Any:
    x = call.tensor(0)
    axis = call.attribute("axis", 1)
    return x.reshape(to=[math.prod(x.shape[:axis]), math.prod(x.shape[axis:])])


def squeeze(call: Call) -> Any:
    x = call.tensor(0)
    axes = call.integers(1, [axis for axis, size in enumerate(x.shape) if size == 1])
    for axis in sorted((axis % x.rank for axis in axes), reverse=True):
        x = x.squeeze(axis=axis)
    return x


def unsqueeze(call: Call) -> Any:
    x, axes = call.tensor(0), call.integers(1)
    rank = x.rank + len(axes)
    for axis in sorted(axis % rank for axis in axes):
        x = x.unsqueeze(axis=axis)
    return x


def transpose(call: Call) -> Any:
    x = call.tensor(0)
    return x.transpose(axes=call.attribute("perm", list(reversed(range(x.rank)))))


def shape(call: Call) -> Any:
    x = call.tensor(0)
    start, end = call.attribute("start", 0), call.attribute("end")
    first, last, _ = slice(start, end).indices(x.rank)
    return x.tensor_shape()[first : max(first, last)].cast(to=bg.Int64)


def size(call: Call) -> Any:
    x = call.tensor(0)
    return x.tensor_shape().product(axes=None).cast(to=bg.Int64)


def expand(call: Call) -> Any:
    x = call.tensor(0)
    return x.broadcast_to(np.broadcast_shapes(x.shape, tuple(call.integers(1))))


def depth_to_space(call: Call) -> Any:
    x, block = call.tensor(0), call.attribute("blocksize")
    n, c, h, w = x.shape
    if call.attribute("mode", "DCR") == "DCR":
        parts = x.reshape(to=[n, block, block, c // block**2, h, w]).transpose(axes=[0, 3, 4, 1, 5, 2])
    else:
        parts = x.reshape(to=[n, c // block**2, block, block, h, w]).transpose(axes=[0, 1, 4, 2, 5, 3])
    return parts.reshape(to=[n, c // block**2, h * block, w * block])


def space_to_depth(call: Call) -> Any:
    x, block = call.tensor(0), call.attribute("blocksize")
    n, c, h, w = x.shape
    parts = x.reshape(to=[n, c, h // block, block, w // block, block])
    order = [0, 3, 5, 1, 2, 4] if call.attribute("mode", "DCR") == "DCR" else [0, 1, 3, 5, 2, 4]
    return parts.transpose(axes=order).reshape(to=[n, c * block**2, h // block, w // block])


# Parts


def cut(call: Call) -> Any:
    x, starts, ends = call.tensor(0), call.integers(1), call.integers(2)
    axes, steps = call.integers(3, list(range(len(starts)))), call.integers(4, [1] * len(starts))
    key = [slice(None)] * x.rank
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        length = x.shape[axis]
        first, last, step = slice(start, end, step).indices(length)
        key[axis] = slice(first, last if last >= 0 else None, step)
    return x[tuple(key)]


def split(call: Call) -> Any:
    x, axis = call.tensor(0), call.attribute("axis", 0)
    length, count = x.shape[axis], call.attribute("num_outputs", len(call.case.outputs))
    each = -(-length // count)
    sizes = call.integers(1, [min(each, length - each * index) for index in range(count)])
    return x.split(sizes, axis)


def center_crop_pad(call: Call) -> Any:
    x, sizes = call.tensor(0), call.integers(1)
    for axis, wanted in zip(call.attribute("axes", range(x.rank)), sizes, strict=True):
        spare = wanted - x.shape[axis]
        if spare <= 0:
            first = -spare // 2
            x = x[axis_key(x.rank, axis, slice(first, first + wanted))]
        else:
            amounts = [(0, 0)] * x.rank
            amounts[axis] = (spare // 2, spare - spare // 2)
            x = x.pad(bg.Padding.constant(0), amounts)
    return x


def trilu(call: Call) -> Any:
    """A band always holds the main diagonal; one beside it is what another band leaves out."""
    x, k = call.tensor(0), call.integer(1, 0)
    everywhere = call.builder.fill(x.shape[-2:], True)
    if call.attribute("upper", 1):
        return x.band_part(-k, -1) if k <= 0 else everywhere.band_part(-1, k - 1).select(0, x)
    return x.band_part(-1, k) if k >= 0 else everywhere.band_part(-k - 1, -1).select(0, x)


# Padding


def pad(call: Call) -> Any:
    x, pads = call.tensor(0), call.integers(1)
    axes = call.integers(3, list(range(x.rank)))
    amounts = [(0, 0)] * x.rank
    for place, axis in enumerate(axes):
        amounts[axis] = (pads[place], pads[place + len(axes)])
    mode = call.attribute("mode", "constant")
    if mode == "wrap":
        for axis, (before, after) in enumerate(amounts):
            x = x.gather(np.arange(-before, x.shape[axis] + after) % x.shape[axis], axis)
        return x
    value = call.values(2).item() if call.has(2) else 0
    kinds = {"constant": bg.Padding.constant(value), "reflect": bg.Padding.REFLECTION, "edge": bg.Padding.REPLICATION}
    return x.pad(kinds[mode], amounts)


# Tensors made from numbers


def constant(call: Call) -> Any:
    return call.builder.constant(values=as_array(call.attribute("value")))


def constant_of_shape(call: Call) -> Any:
    value = as_array(call.attribute("value", np.zeros(1, np.float32)))
    return call.builder.fill(call.integers(0), value.item(), data_type=value.dtype)


def eye_like(call: Call) -> Any:
    x, k = call.tensor(0), call.attribute("k", 0)
    number = call.attribute("dtype")
    rows, columns = x.shape
    ones = call.builder.fill([rows, columns], 1, data_type=x.dtype if number is None else dtype_of(number))
    return ones.band_part(0, k) - ones.band_part(0, k - 1) if k > 0 else ones.band_part(-k, 0)


def arange(call: Call) -> Any:
    start, limit, delta = (call.values(position) for position in range(3))
    return call.builder.arange(start.item(), limit.item(), delta.item(), data_type=start.dtype)


def one_hot(call: Call) -> Any:
    indices, depth, (off, on) = call.tensor(0), call.integer(1), call.values(2)
    axis = call.attribute("axis", -1)
    whole = indices.cast(to=bg.Int64)
    hot = ((whole < 0).select(whole + depth, whole)).one_hot(depth, axis=axis)
    return hot.select(call.builder.constant(value=on), off)


RULES: dict[str, Rule] = {
    "CenterCropPad": center_crop_pad,
    "Concat": lambda call: call.builder.concatenate(call.tensors(), axis=call.attribute("axis")),
    "Constant": constant,
    "ConstantOfShape": constant_of_shape,
    "DepthToSpace": depth_to_space,
    "Expand": expand,
    "EyeLike": eye_like,
    "Flatten": flatten,
    "OneHot": one_hot,
    "Pad": pad,
    "Range": arange,
    "Reshape": reshape,
    "Shape": shape,
    "Size": size,
    "Slice": cut,
    "SpaceToDepth": space_to_depth,
    "Split": split,
    "Squeeze": squeeze,
    "Tile": lambda call: call.tensor(0).tile(call.integers(1)),
    "Transpose": transpose,
    "Trilu": trilu,
    "Unsqueeze": unsqueeze,
}
