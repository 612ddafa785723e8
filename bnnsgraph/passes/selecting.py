"""Selections: what they ask of their operands, and what is left of them when they were made before."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from bnnsgraph.dtypes import Bool
from bnnsgraph.graph import Node, Value
from bnnsgraph.indices import missing_value
from bnnsgraph.ops.comparison import Select
from bnnsgraph.ops.creation import Fill
from bnnsgraph.ops.gathering import Gather, GatherAlongAxis, GatherND, GatherOp
from bnnsgraph.ops.indexed import IndexRule
from bnnsgraph.ops.movement import Reshape, Unsqueeze
from bnnsgraph.ops.rearrangement import BroadcastTo
from bnnsgraph.ops.slicing import Slice, Span
from bnnsgraph.options import Fill as FillMode
from bnnsgraph.passes.regions import (
    WHOLE,
    Part,
    Pick,
    Region,
    Rows,
    complete,
    composed,
    is_fewer,
    joint,
    part_of,
    region,
    with_counts,
)  # fmt: skip
from bnnsgraph.passes.work import Plan, Work
from bnnsgraph.sizes import UNKNOWN
from bnnsgraph.spec import TensorSpec, element_count


def sliced_plan(node: Node, op: Slice, asked: Region) -> Plan:
    """A slice: one with those that follow it on the same axes; picks of other axes pass."""
    (x,) = node.inputs
    shape = x.spec.shape
    parts = {axis: part_of(item, size, node) for axis, (item, size) in enumerate(zip(op.items, shape, strict=True))}
    own: dict[int, Pick] = {axis: part for axis, part in parts.items() if part is not None}
    kept = [axis for axis, item in enumerate(op.items) if isinstance(item, Span)]
    picks: dict[int, Pick] = {}
    passed: dict[int, int] = {}
    for axis, pick in asked:
        place = kept[axis]
        if joint(pick) and place != axis:
            continue
        mine = parts[place]
        if op.items[place] == WHOLE or (mine is None and x.spec.shape[place] == node.outputs[0].shape[axis]):
            batch = range(pick.batch if isinstance(pick, Rows) else 0)
            if all(kept[other] == other and other not in own for other in batch):
                picks[axis], passed[axis] = pick, place
        elif isinstance(pick, Part) and mine is not None and (both := composed(pick, mine, shape[place])):
            picks[axis], own[place] = pick, both
    picks = dict(complete(region(picks)))
    passed = {axis: place for axis, place in passed.items() if axis in picks}
    wanted = region({**own, **{place: picks[axis] for axis, place in passed.items()}})

    def build(work: Work) -> tuple[Value, ...]:
        accepted = dict(work.accepted(x))
        items = [_item(op.items[axis], own.get(axis), done=axis in accepted) for axis in range(len(shape))]
        found = work.want(x, region(accepted))
        left: dict[int, Pick] = {}
        for axis, place in passed.items():
            pick = picks[axis]
            if place not in accepted and isinstance(pick, Part):
                items[place] = pick.span
            elif place not in accepted:
                left[axis] = pick
        if any(item != WHOLE for item in items):
            found = work.editor.emit_one(Slice(tuple(items)), (found,), node)
        return (work.rest(found, region(left)),)

    return Plan(region(picks), ((x, wanted),), build, {axis: (x, place) for axis, place in passed.items()})


def _item(item: int | Span, own: Pick | None, *, done: bool) -> int | Span:
    """What is left to do of an item of a subscript."""
    if done:
        return WHOLE if isinstance(item, Span) else 0
    return own.span if isinstance(own, Part) and isinstance(item, Span) else item


def gathered_plan(node: Node, op: Gather | GatherND, asked: Region) -> Plan:
    """A gather: of its result as of its operand's other axes, and itself of what makes its operand."""
    x, indices = node.inputs
    axes = op.addressed(x.spec.shape, indices.spec.shape)
    if isinstance(op, Gather):
        batch, depth = op.resolved(x.spec.shape, indices.spec.shape)[1], None
    else:
        batch, depth = op.batch_dimension_count, len(axes)
    first, behind, end = axes[0], axes[0] + len(axes), indices.spec.rank - (depth is not None)
    after = first + end - batch  # where the axes behind the gathered ones begin in the result
    picks: dict[int, Pick] = {}
    passed: dict[int, int] = {}
    for place, pick in asked:
        shared = pick.batch if isinstance(pick, Rows) else 0
        if first <= place < after and shared <= batch and (not joint(pick) or first == batch):
            picks[place] = pick
        elif place >= batch and not first <= place < after and shared <= first:
            own = place if place < first else place - after + behind
            if not joint(pick) or own == place < first:
                picks[place], passed[place] = pick, own
    picks = {place: pick for place, pick in complete(region(picks)) if _is_one_side(pick, first, after)}
    passed = {place: own for place, own in passed.items() if place in picks}
    part = region({place - first + batch: pick for place, pick in picks.items() if place not in passed})
    index_shape = with_counts(indices.spec.shape, part)
    places = index_shape[batch:end]
    count = element_count(places)
    result = with_counts(node.outputs[0].shape, region(picks))
    mode = "clip" if op.out_of_bounds == "clip" else "unchecked"
    rows = Rows((indices.node, indices.index), part, batch, mode, op.negative_indices, count, node, depth)
    ahead: dict[int, Pick] = {own: picks[place] for place, own in passed.items()}
    sizes = [x.spec.shape[axis] for axis in axes]
    if is_fewer(count, element_count(sizes)) and (UNKNOWN not in result or (len(axes) == 1 and len(places) < 2)):
        ahead.update((axis, replace(rows, component=component)) for component, axis in enumerate(axes))

    def build(work: Work) -> tuple[Value, ...]:
        accepted = dict(work.accepted(x))
        left = region({place: picks[place] for place, own in passed.items() if own not in accepted})
        found, wanted = work.want(x, region(accepted)), work.want(indices, part)
        if first not in accepted:
            return (work.rest(work.editor.emit_one(op, (found, wanted), node), left),)
        own = found.spec.shape
        if len(axes) == 1 and not places:
            found = work.editor.emit_one(Slice(_items(found.spec.rank, first)), (found,), node)
        elif len(axes) > 1 or len(places) > 1:
            found = work.editor.emit_one(Reshape((*own[:first], *places, *own[behind:])), (found,), node)
        return (work.rest(_filled(work, op, found, x, wanted, node), left),)

    moved = {place: (x, own) for place, own in passed.items()}
    return Plan(region(picks), ((x, region(ahead)), (indices, part)), build, moved)


def repeated_plan(node: Node, op: GatherAlongAxis) -> Plan | None:
    """A gather of elements by indices that are the same along other axes: whole slices, as ``gather`` reads them."""
    x, indices = node.inputs
    spread = indices.node.op
    if not isinstance(spread, BroadcastTo):
        return None
    (axis,) = op.addressed(x.spec.shape, indices.spec.shape)
    shape, source = indices.spec.shape, indices.node.inputs[0]
    own = (1,) * (len(shape) - source.spec.rank) + source.spec.shape
    batch = next((other for other in range(axis) if own[other] == 1), axis)
    behind = [other for other in range(batch, len(shape)) if other != axis]
    if own[axis] != shape[axis] or any(own[other] != 1 for other in behind) or not is_fewer(shape[axis], x.spec.shape[axis]):
        return None
    mode = "clip" if op.out_of_bounds == "clip" else "unchecked"
    rows = Rows((source.node, source.index), (), batch, mode, op.negative_indices, shape[axis], node)

    def build(work: Work) -> tuple[Value, ...]:
        accepted = work.accepted(x)
        found, wanted = work.want(x, accepted), work.editor.new(indices)
        if axis not in dict(accepted):
            return work.editor.emit(op, (found, wanted), node)
        return (_filled(work, op, found, x, wanted, node),)

    return Plan((), ((x, region({axis: rows})), (indices, ())), build)


def _is_one_side(pick: Pick, first: int, after: int) -> bool:
    """Whether axes that a pick addresses together are all of the indices, or none."""
    return len({first <= axis < after for axis in joint(pick)}) < 2


def _items(rank: int, axis: int) -> tuple[int | Span, ...]:
    return tuple(0 if other == axis else WHOLE for other in range(rank))


def _filled(work: Work, op: GatherOp, found: Value, x: Value, indices: Value, node: Node) -> Value:
    """Gathered slices that do not exist, replaced by what the mode says."""
    if not (isinstance(op.out_of_bounds, FillMode) or op.needs_check):
        return found
    editor = work.editor
    axes = op.addressed(x.spec.shape, indices.spec.shape)
    table = editor.emit_one(Fill(tuple(x.spec.shape[axis] for axis in axes), True, Bool), (), node)
    rule = IndexRule(out_of_bounds=FillMode(False), negative_indices=op.negative_indices)
    inside = editor.emit_one(GatherND(**rule) if isinstance(op, GatherND) else Gather(0, **rule), (table, indices), node)
    batch = op.resolved(x.spec.shape, indices.spec.shape)[1] if isinstance(op, Gather) else axes[0]
    after = axes[0] + inside.spec.rank - batch
    others = () if isinstance(op, GatherAlongAxis) else (*range(batch, axes[0]), *range(after, found.spec.rank))
    if others:
        inside = editor.emit_one(Unsqueeze(others), (inside,), node)
    dtype = x.spec.dtype
    missing: Any = np.asarray(missing_value(op.out_of_bounds, dtype.numpy)).astype(dtype.numpy)
    return editor.emit_one(Select(), (inside, found, editor.constant(missing, node, TensorSpec(dtype, ()))), node)
