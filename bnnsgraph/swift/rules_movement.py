"""Operations that move elements in terms of those that Apple's builder has."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, cast

import numpy as np

from bnnsgraph import openvino
from bnnsgraph.dtypes import Bool, Float32, Int32
from bnnsgraph.handle import convert
from bnnsgraph.ops import creation, movement, padding, rearrangement, scattering, slicing
from bnnsgraph.ops.scattering import ScatterMode
from bnnsgraph.ops.slicing import Span
from bnnsgraph.sizes import UNKNOWN
from bnnsgraph.spec import Shape, format_shape, is_static, normalize_axes, normalize_axis
from bnnsgraph.swift.porting import LackingError, Port, Rewrite, Rules
from bnnsgraph.tensor import Tensor

T = Tensor[Any]
WHOLE = Span(None, None, 1)


def fixed(size: Any, what: str) -> int:
    """A size that must be known."""
    if not isinstance(size, int):
        raise LackingError(f"{what} must be known, got {size}")
    return size


# Shapes


def _reshape(op: movement.Reshape, port: Port, x: T) -> T | None:
    """With one flexible size ``-1`` stands for it; with more the graph computes the sizes from those of the arguments."""
    flexible = [size for size in op.to if not isinstance(size, int)]
    if len(flexible) < 2:
        if flexible and 0 in op.to:
            raise LackingError("a flexible size cannot be inferred beside a size of 0")
        return None
    written = format_shape(op.to)
    if written not in port.shapes:
        port.shapes[written] = port.concatenate(_computed(port, op.to), 0)
    return port.promise(x.reshape(to=port.shapes[written]), op.infer(x.spec))


def _computed(port: Port, sizes: Shape) -> list[T]:
    """The parts of a shape: constants, and sizes read while the graph runs; one of those may be left to be inferred."""
    parts: list[T] = []
    known: list[int] = []
    inferred = UNKNOWN in sizes
    for size in sizes:
        if isinstance(size, int):
            known.append(size)
            continue
        if known:
            parts.append(port.constant(known, Int32))
            known = []
        try:
            parts.append(port.constant([-1], Int32) if size is UNKNOWN else port.size(size))
        except LackingError:
            if inferred:
                raise
            inferred = True
            parts.append(port.constant([-1], Int32))
    return [*parts, port.constant(known, Int32)] if known else parts


def _reshape_to(op: movement.ReshapeTo, port: Port, x: T, to: T) -> T | None:
    return None if to.data_type is Int32 else x.reshape(to=to.cast(Int32))


def _merge(op: openvino.MergeLeadingAxes, port: Port, x: T) -> T:
    return port.apply(movement.Reshape(op.infer(x.spec).shape), x)


def _squeeze(op: movement.Squeeze, port: Port, x: T) -> T | None:
    return _one_by_one(op, port, x, sorted(normalize_axes(op.axes, x.rank, "axis"), reverse=True))


def _unsqueeze(op: movement.Unsqueeze, port: Port, x: T) -> T | None:
    return _one_by_one(op, port, x, sorted(normalize_axes(op.axes, x.rank + len(op.axes), "axis")))


def _one_by_one(op: Any, port: Port, x: T, axes: list[int]) -> T | None:
    if op.axes == tuple(axes) and len(axes) == 1:
        return None
    for axis in axes:
        x = port.apply(type(op)((axis,)), x)
    return x


def _concatenate(op: movement.Concatenate, port: Port, *tensors: T) -> T | None:
    axis = normalize_axis(op.axis, tensors[0].rank)
    return None if axis == op.axis else port.apply(movement.Concatenate(axis), *tensors)


def _stack(op: rearrangement.Stack, port: Port, *tensors: T) -> T:
    axis = normalize_axis(op.axis, tensors[0].rank + 1)
    return port.concatenate([tensor.unsqueeze(axis) for tensor in tensors], axis)


def _pad(op: padding.Pad, port: Port, x: T) -> T | None:
    """One pair for every axis; the value is of type ``Float``."""
    if x.data_type is Bool:
        port.remark("pad of a Float tensor, as the value is of type Float")
        value = replace(op.type, value=float(op.type.value))
        return port.apply(replace(op, type=value), x.cast(Float32)).cast(Bool)
    if op.type.kind == "constant":
        value = convert(op.type.value, x.data_type)
        with np.errstate(over="ignore"):
            narrow = np.float32(value)
        if value.dtype.kind in "iu" and int(value) != (int(narrow) if np.isfinite(narrow) else None):
            raise LackingError(f"the value must be one that Float has exactly, got {op.type.value}")
    missing = x.rank - len(op.padding)
    return port.apply(replace(op, padding=((0, 0),) * missing + op.padding), x) if missing else None


# Repetition


def _broadcast_to(op: rearrangement.BroadcastTo, port: Port, x: T) -> T:
    return spread(port, x, op.infer(x.spec).shape)


def spread(port: Port, x: T, shape: tuple[Any, ...]) -> T:
    """The tensor in a larger shape, through a product with ones; a constant is written out."""
    elements = port.elements(x)
    if elements is not None and is_static(shape):
        return x if x.spec.shape == shape else port.constant(np.broadcast_to(elements, shape), x.data_type)
    for _ in range(len(shape) - x.rank):
        x = x.unsqueeze(0)
    ones = [1] * len(shape)
    for axis, (own, size) in enumerate(zip(x.spec.shape, shape, strict=True)):
        if own == 1 and size != 1:
            ones[axis] = fixed(size, f"the size that axis {axis} is broadcast to")
    if math.prod(ones) == 1:
        return x
    repeated = port.constant(np.ones(ones), x.data_type)
    return x & repeated if x.data_type is Bool else x * repeated


def _tile(op: rearrangement.Tile, port: Port, x: T) -> T:
    for _ in range(len(op.repetitions) - x.rank):
        x = x.unsqueeze(0)
    for axis, count in enumerate(op.repetitions, x.rank - len(op.repetitions)):
        if count == 0:
            x = port.apply(slicing.Slice(tuple(Span(0, 0, 1) if other == axis else WHOLE for other in range(x.rank))), x)
        else:
            x = port.concatenate([x] * count, axis)
    return x


def _reverse(op: rearrangement.Reverse, port: Port, x: T) -> T:
    for axis in normalize_axes(op.axes, x.rank):
        size = fixed(x.spec.shape[axis], f"the size of axis {axis}")
        x = x.gather(list(range(size))[::-1], axis, out_of_bounds="unchecked")
    return x


def _split(op: rearrangement.Split, port: Port, x: T) -> list[T]:
    axis = normalize_axis(op.axis, x.rank)
    sizes = op.sizes(x.spec.shape[axis], axis)
    found: list[T] = []
    for index in range(len(sizes)):
        before, after = sizes[:index], sizes[index + 1 :]
        if is_static(before + sizes[index : index + 1]):
            span = Span(sum(before), sum(before) + sizes[index], 1)
        elif is_static(before + after):
            span = Span(sum(before), -sum(after) or None, 1)
        else:
            known = [fixed(size, f"the sizes of the parts of axis {axis}") for size in sizes[index:]]
            span = Span(-sum(known), -sum(known[1:]) or None, 1)
        found.append(port.apply(slicing.Slice(tuple(span if other == axis else WHOLE for other in range(x.rank))), x))
    return found


def _one_hot(op: rearrangement.OneHot, port: Port, x: T) -> T:
    axis = normalize_axis(op.axis, x.rank + 1)
    x = x.cast(Int32) if x.data_type.bits < 32 else x
    places = np.arange(op.depth).reshape([op.depth if other == axis else 1 for other in range(x.rank + 1)])
    return x.unsqueeze(axis) == port.constant(places, x.data_type)


def _band_part(op: rearrangement.BandPart, port: Port, x: T) -> T:
    rows, columns = (fixed(size, "the last two sizes") for size in x.spec.shape[-2:])
    below = np.arange(rows)[:, None] - np.arange(columns)
    keep = ((op.lower_count < 0) | (below <= op.lower_count)) & ((op.upper_count < 0) | (-below <= op.upper_count))
    return port.constant(keep, Bool).select(x, port.constant(0, x.data_type))


def _fill(op: creation.Fill, port: Port) -> T:
    if not is_static(op.shape):
        raise LackingError("a tensor of one value needs fixed sizes")
    return port.constant(np.broadcast_to(convert(op.value, op.dtype), cast("tuple[int, ...]", op.shape)), op.dtype)


def _arange(op: creation.Arange, port: Port) -> T:
    count = fixed(op.count(), "the number of elements")
    start: Any = op.start
    return port.constant([start + index * op.step for index in range(count)], op.dtype)


# Slices


def _slice(op: slicing.Slice, port: Port, x: T) -> T | None:
    """Ranges that Apple's subscript has, and what it lacks: lone integers, steps, ends counted on a flexible axis."""
    items: list[Span] = []
    removed: list[int] = []
    gathered: list[tuple[int, T]] = []
    for axis, (entry, size) in enumerate(zip(op.items, x.spec.shape, strict=True)):
        if isinstance(entry, int):
            removed.append(axis)
            entry = Span(entry, entry + 1 or None, 1)
        simple = _ranged(entry, size)
        if simple is None:
            gathered.append((axis, _places(port, x, axis, entry, size)))
        items.append(simple or WHOLE)
    if tuple(items) == op.items:
        return None
    part = x if all(entry == WHOLE for entry in items) and (gathered or removed) else port.apply(slicing.Slice(tuple(items)), x)
    for axis, places in gathered:
        part = part.gather(places, axis, out_of_bounds="unchecked")
    for axis in reversed(removed):
        part = part.squeeze(axis)
    return part


def _ranged(entry: Span, size: Any) -> Span | None:
    """The same elements in a form that Apple has; None where there is none."""
    start, stop, step = entry
    start = start or 0
    if step != 1:
        return None
    if isinstance(size, int):
        if stop is not None and stop < 0 <= start <= size + stop:
            return Span(start, stop, 1)
        first, last, _ = slice(start, stop).indices(size)
        return WHOLE if (first, last) == (0, size) else Span(first, max(first, last), 1)
    if stop is None:
        return None if start < 0 else Span(start, None, 1) if start else WHOLE
    return None if start < 0 <= stop else Span(start, stop, 1)


def _places(port: Port, x: T, axis: int, entry: Span, size: Any) -> T:
    """The positions of a range, for a gather."""
    start, stop, step = entry
    if isinstance(size, int):
        return port.constant(np.arange(size)[slice(start, stop, step)], Int32)
    if start is not None and start < 0 and stop is None and step == 1:
        shape = port.apply(movement.TensorShape(), x)
        return port.apply(slicing.Slice((Span(axis, axis + 1, 1),)), shape) + port.constant(np.arange(start, 0), Int32)
    raise LackingError(f"the range {entry!r} needs the size of axis {axis}, which is flexible")


def _slice_update(op: slicing.SliceUpdate, port: Port, x: T, value: T) -> T | None:
    """The value has the shape of the part, and every item of the subscript is a range."""
    part = spread(port, value, slicing.sliced(x.spec.shape, op.items))
    for axis, entry in enumerate(op.items):
        if isinstance(entry, int):
            part = part.unsqueeze(axis)
    items = [entry if isinstance(entry, Span) else Span(entry, entry + 1 or None, 1) for entry in op.items]
    for axis, (entry, size) in enumerate(zip(items, x.spec.shape, strict=True)):
        simple = _ranged(entry, size)
        if simple is None:  # the rows at these places, updated, and written back
            places = _places(port, x, axis, entry, size)
            rest = tuple(WHOLE if other == axis else each for other, each in enumerate(items))
            if any(each != WHOLE for each in rest):
                rows = x.gather(places, axis, out_of_bounds="unchecked")
                part = port.apply(slicing.SliceUpdate(rest), rows, part)
            return port.apply(scattering.Scatter(ScatterMode.UPDATE, axis, out_of_bounds="unchecked"), x, part, places)
        items[axis] = simple
    plain = slicing.SliceUpdate(tuple(items))
    return None if plain == op and part is value else port.apply(plain, x, part)


RULES: Rules = {
    movement.Reshape: Rewrite(_reshape, "reshape(to:) with sizes that the graph reads from its arguments"),
    movement.ReshapeTo: Rewrite(_reshape_to),
    openvino.MergeLeadingAxes: Rewrite(_merge, "reshape(to:)"),
    movement.Squeeze: Rewrite(_squeeze),
    movement.Unsqueeze: Rewrite(_unsqueeze),
    movement.Concatenate: Rewrite(_concatenate),
    rearrangement.Stack: Rewrite(_stack, "unsqueeze(axis:) and concatenate(_:axis:)"),
    padding.Pad: Rewrite(_pad),
    rearrangement.BroadcastTo: Rewrite(_broadcast_to, "a product with ones"),
    rearrangement.Tile: Rewrite(_tile, "concatenate(_:axis:)"),
    rearrangement.Reverse: Rewrite(_reverse, "gather with the positions in the opposite order"),
    rearrangement.Split: Rewrite(_split, "subscripts"),
    rearrangement.OneHot: Rewrite(_one_hot, "a comparison with the positions"),
    rearrangement.BandPart: Rewrite(_band_part, "select(_:_:) with a constant mask"),
    creation.Fill: Rewrite(_fill, "a constant"),
    creation.Arange: Rewrite(_arange, "a constant"),
    slicing.Slice: Rewrite(_slice, "ranges, and gather or squeeze for steps and lone integers"),
    slicing.SliceUpdate: Rewrite(_slice_update, "an assignment to ranges, or scatter for steps"),
}
"""One row an operation that may have to be rewritten."""
