"""Swift spellings of operations that move elements: shapes, slices, paddings, gathers, scatters."""

from __future__ import annotations

from typing import Any

from bnnsgraph.graph import Op
from bnnsgraph.ops import gathering, movement, padding, scattering, slicing
from bnnsgraph.swift import calls
from bnnsgraph.swift.calls import Call, Spelling
from bnnsgraph.swift.text import Expression, call, integers, number


def _reshape(op: movement.Reshape, c: Call) -> Expression:
    sizes = [size if isinstance(size, int) else -1 for size in op.to]
    return call(f"{c.tensor(0).inner}.reshape", f"to: {integers(sizes)}")


def _transpose(op: movement.Transpose, c: Call) -> Expression:
    return call(f"{c.tensor(0).inner}.transpose", f"axes: {integers(op.axes)}")


def _one_axis(name: str) -> Spelling:
    return lambda op, c: call(f"{c.tensor(0).inner}.{name}", f"axis: {op.axes[0]}")


def _concatenate(op: movement.Concatenate, c: Call) -> Expression:
    tensors = ", ".join(c.tensor(index).text for index in range(len(c.node.inputs)))
    return call("builder.concatenate", f"[{tensors}]", f"axis: {op.axis}")


def _pad(op: padding.Pad, c: Call) -> Expression:
    constant = f".constant(value: {number(op.type.value)})"
    kind = constant if op.type.kind == "constant" else f".{op.type.kind.lower()}"
    amounts = [amount for pair in op.padding for amount in pair]
    return call(f"{c.tensor(0).inner}.pad", kind, f"padding: {integers(amounts)}")


def item(entry: Any) -> str:
    """One item of a subscript, in the forms that Apple's pages show: ``a..<b``, ``a...``, ``SliceRange``."""
    start, stop, _ = entry
    if stop is None:
        return "SliceRange.fillAll" if start is None else f"{start}..."
    if stop < 0:
        begin = f"startIndex: {start}, " if start else ""
        return f"SliceRange({begin}endIndex: {stop})"
    return f"{start or 0}..<{stop}"


def items(op: slicing.Slice | slicing.SliceUpdate) -> str:
    """What stands between the brackets of a subscript."""
    return ", ".join(map(item, op.items))


def _slice(op: slicing.Slice, c: Call) -> Expression:
    return Expression(f"{c.tensor(0).inner}[{items(op)}]")


def _gather(op: gathering.Gather, c: Call) -> Expression:
    places = [f"indices: {c.parameter(1).text}", f"axis: {op.axis}", f"batchDimensionCount: {op.batch_dimension_count}"]
    return call(f"{c.tensor(0).inner}.gather", *places)


def _gather_along_axis(op: gathering.GatherAlongAxis, c: Call) -> Expression:
    return call(f"{c.tensor(0).inner}.gatherAlongAxis", f"indices: {c.parameter(1).text}", f"axis: {op.axis}")


def _gather_nd(op: gathering.GatherND, c: Call) -> Expression:
    places = [f"indices: {c.parameter(1).text}", f"batchDimensionCount: {op.batch_dimension_count}"]
    return call(f"{c.tensor(0).inner}.gatherND", *places)


def _scatter(name: str) -> Spelling:
    def spell(op: Any, c: Call) -> Expression:
        axis = [] if isinstance(op, scattering.ScatterND) else [f"axis: {op.axis}"]
        places = [f"updates: {c.tensor(1).text}", f"indices: {c.parameter(2).text}", f"mode: .{op.mode.name.lower()}"]
        return call(f"{c.tensor(0).inner}.{name}", *places, *axis)

    return spell


CALLS: dict[type[Op], Spelling] = {
    movement.Reshape: _reshape,
    movement.ReshapeTo: calls.operands("reshape", "to"),
    movement.TensorShape: calls.method("tensorShape"),
    movement.Transpose: _transpose,
    movement.Squeeze: _one_axis("squeeze"),
    movement.Unsqueeze: _one_axis("unsqueeze"),
    movement.Concatenate: _concatenate,
    padding.Pad: _pad,
    slicing.Slice: _slice,
    gathering.Gather: _gather,
    gathering.GatherAlongAxis: _gather_along_axis,
    gathering.GatherND: _gather_nd,
    scattering.Scatter: _scatter("scatter"),
    scattering.ScatterAlongAxis: _scatter("scatterAlongAxis"),
    scattering.ScatterND: _scatter("scatterND"),
}
"""One row an operation. ``SliceUpdate`` is an assignment, which ``emit.py`` writes."""
