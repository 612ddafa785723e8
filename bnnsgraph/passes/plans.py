"""What to ask of a node's operands when only a part of its results is needed, and how to build that part."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bnnsgraph.dtypes import Bool
from bnnsgraph.graph import Node, Op, Value
from bnnsgraph.ops.attention import ScaledDotProductAttention
from bnnsgraph.ops.comparison import And
from bnnsgraph.ops.gathering import Gather, GatherAlongAxis, GatherND, GatherOp
from bnnsgraph.ops.movement import Concatenate, Reshape
from bnnsgraph.ops.rearrangement import BroadcastTo
from bnnsgraph.ops.slicing import Slice
from bnnsgraph.ops.sorting import ArgSort, Ordering, Sort, SortOrder, TopK
from bnnsgraph.passes.costs import is_gain, is_selected
from bnnsgraph.passes.editing import SMALL, positions
from bnnsgraph.passes.regions import Part, Pick, Region, Rows, fewer, grouped, joint, region, span_part, with_counts
from bnnsgraph.passes.rowwise import Axes, axes_of
from bnnsgraph.passes.selecting import gathered_plan, repeated_plan, sliced_plan
from bnnsgraph.passes.work import Plan, Want, Work, whole
from bnnsgraph.spec import TensorSpec, normalize_axis


def plan(node: Node, asked: Region) -> Plan:
    """What to do about a node of whose results only the part is needed."""
    if not asked and not isinstance(node.op, (Slice, GatherOp)):
        return whole(node)
    asked = fewer(asked, node.outputs[0].shape)
    match node.op:
        case Slice():
            return sliced_plan(node, node.op, asked)
        case Gather() | GatherND() if node.op.addressed(*[value.spec.shape for value in node.inputs]):
            return gathered_plan(node, node.op, asked)
        case GatherAlongAxis() if not asked:
            found = repeated_plan(node, node.op)
        case Concatenate():
            found = _concatenate(node, node.op, asked)
        case Ordering():
            found = _ordering(node, node.op, asked)
        case ScaledDotProductAttention(causal=True):
            found = _attention(node, node.op, asked)
        case _:
            found = None
    return found or _rowwise(node, asked)


# Operations that keep positions apart


def _rowwise(node: Node, asked: Region) -> Plan:
    picks, wants = _passed(node, asked)
    if not picks:
        return whole(node)
    op = resized(node, region(picks))

    def build(work: Work) -> tuple[Value, ...]:
        return work.editor.emit(op, [work.want(*want) for want in wants], node)

    return Plan(region(picks), wants, build)


def _passed(node: Node, asked: Region) -> tuple[dict[int, Pick], tuple[Want, ...]]:
    """The picks that gain by being made on the operands, and these: one after the other, each of what those before it left."""
    picks: dict[int, Pick] = {}
    own: list[dict[int, Pick]] = [{} for _ in node.inputs]
    for group in grouped(asked, node.outputs[0].shape):
        places = _places(node, group)
        if places is None:
            continue
        operands = [with_counts(value.spec.shape, region(found)) for value, found in zip(node.inputs, own, strict=True)]
        results = [with_counts(spec.shape, region(picks)) for spec in node.outputs]
        if not is_gain(node.op, group, places, operands, results):
            continue
        picks.update(group)
        for found, axes in zip(own, places, strict=True):
            found.update((place, pick) for place, (_, pick) in zip(axes, group, strict=False))
    return picks, tuple((value, region(found)) for value, found in zip(node.inputs, own, strict=True))


def _places(node: Node, group: Region) -> list[tuple[int, ...]] | None:
    """The axes of each operand that hold the positions of picks that go together, none or all; None where they mix."""
    found: list[tuple[int, ...]] = [() for _ in node.inputs]
    for axis, pick in group:
        places = axes_of(node, axis)
        if places is None or not _batch_stays(node, pick, places):
            return None
        found = [before if place is None else (*before, place) for before, place in zip(found, places, strict=True)]
    axes = joint(group[0][1])
    return None if axes and any(places not in ((), axes) for places in found) else found


def _batch_stays(node: Node, pick: Pick, places: Axes) -> bool:
    """Whether the axes that indices share with the results lead the operands too."""
    for axis in range(pick.batch if isinstance(pick, Rows) else 0):
        shared = axes_of(node, axis)
        if shared is None or any(place is not None and own != axis for place, own in zip(places, shared, strict=True)):
            return False
    return True


def resized(node: Node, picks: Region) -> Op:
    """The operation for a part of its results."""
    shape = with_counts(node.outputs[0].shape, picks)
    match node.op:
        case Reshape():
            return Reshape(shape)
        case BroadcastTo():
            return BroadcastTo(shape)
        case _:
            return node.op


def _concatenate(node: Node, op: Concatenate, asked: Region) -> Plan | None:
    """A slice of the joined axis: only the tensors that it meets."""
    axis = normalize_axis(op.axis, node.outputs[0].rank)
    part = dict(asked).get(axis)
    sizes = [value.spec.shape[axis] for value in node.inputs]
    size = node.outputs[0].shape[axis]
    if not isinstance(part, Part) or not isinstance(size, int):
        return None
    places = positions(part.span, size)
    first, last = min(places), max(places)
    wants: list[Want] = []
    picks, others = _passed(node, tuple(pair for pair in asked if pair[0] != axis))
    start = 0
    for (value, found), count in zip(others, sizes, strict=True):
        assert isinstance(count, int)
        inside = range(max(first, start) - start, min(last + 1, start + count) - start)
        if inside:
            if len(inside) < len(range(first, last + 1)) and part.span.step not in (None, 1):
                return None  # steps across a border
            if len(inside) == len(range(first, last + 1)):
                inside = range(places.start - start, places.stop - start, places.step)
            own = {} if inside == range(count) else {axis: span_part(inside, part.by)}
            wants.append((value, region({**dict(found), **own})))
        start += count

    def build(work: Work) -> tuple[Value, ...]:
        parts = [work.want(*want) for want in wants]
        return tuple(parts) if len(parts) == 1 else work.editor.emit(op, parts, node)

    return Plan(region({**picks, axis: part}), tuple(wants), build)


def _ordering(node: Node, op: Ordering, asked: Region) -> Plan | None:
    """The first of ordered numbers: no more than these are put in order."""
    axis = normalize_axis(op.axis, node.outputs[0].rank)
    part, size, dtype = dict(asked).get(axis), node.outputs[0].shape[axis], node.inputs[0].spec.dtype
    if not isinstance(part, Part) or not isinstance(size, int) or not isinstance(part.count, int):
        return None
    if positions(part.span, size) != range(part.count):
        return None
    match op:
        case TopK():
            first = replace(op, k=part.count)
        case Sort() | ArgSort() if is_selected(dtype) and part.count <= size // 2:
            first = TopK(axis, part.count, op.sort_order is SortOrder.DESCENDING)
        case _:
            return None
    picks, wants = _passed(node, tuple(pair for pair in asked if pair[0] != axis))

    def build(work: Work) -> tuple[Value, ...]:
        values, places = work.editor.emit(first, [work.want(*want) for want in wants], node)
        return (values,) if isinstance(op, Sort) else (places,) if isinstance(op, ArgSort) else (values, places)

    return Plan(region({**picks, axis: part}), wants, build)


def _attention(node: Node, op: ScaledDotProductAttention, asked: Region) -> Plan | None:
    """Some of the queries of a causal attention: what each may see becomes a mask."""
    query, key, _, *masks = node.inputs
    axis = node.outputs[0].rank - 2
    part = dict(asked).get(axis)
    count, length = query.spec.shape[-2], key.spec.shape[-2]
    if not isinstance(part, Part) or not isinstance(count, int) or not isinstance(length, int):
        return None
    rows = np.asarray(positions(part.span, count))
    if len(rows) * length >= SMALL or any(mask.spec.dtype is not Bool for mask in masks):
        return None
    picks, wants = _passed(replaced(node, replace(op, causal=False)), asked)
    if axis not in picks:
        return None

    def build(work: Work) -> tuple[Value, ...]:
        operands = [work.want(*want) for want in wants]
        seen = work.editor.constant(np.arange(length)[None] <= rows[:, None], node, TensorSpec(Bool, (len(rows), length)))
        mask = work.editor.emit_one(And(), (operands[3], seen), node) if masks else seen
        return work.editor.emit(replace(op, causal=False), (*operands[:3], mask), node)

    return Plan(region(picks), wants, build)


def replaced(node: Node, op: Op) -> Node:
    """The node with another operation."""
    return Node(op, node.inputs, node.outputs, node.origin, node.serial, node.group)
