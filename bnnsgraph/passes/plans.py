"""What to ask of a node's operands when only a part of its results is needed, and how to build that part."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

import numpy as np

from bnnsgraph.dtypes import Bool
from bnnsgraph.graph import Node, Op, Value
from bnnsgraph.indices import missing_value
from bnnsgraph.ops.attention import ScaledDotProductAttention
from bnnsgraph.ops.comparison import And, Select
from bnnsgraph.ops.creation import Fill
from bnnsgraph.ops.gathering import Gather
from bnnsgraph.ops.movement import Concatenate, Reshape, Unsqueeze
from bnnsgraph.ops.rearrangement import BroadcastTo
from bnnsgraph.ops.slicing import Slice, Span
from bnnsgraph.options import Fill as FillMode
from bnnsgraph.passes.costs import is_gain
from bnnsgraph.passes.editing import SMALL, Editor, positions
from bnnsgraph.passes.regions import (
    WHOLE,
    Part,
    Pick,
    Region,
    Rows,
    composed,
    is_fewer,
    part_of,
    region,
    span_part,
    with_counts,
)  # fmt: skip
from bnnsgraph.passes.rowwise import Axes, axes_of
from bnnsgraph.sizes import UNKNOWN
from bnnsgraph.spec import TensorSpec, element_count, normalize_axis


class Work(Protocol):
    """What a plan needs to build nodes."""

    @property
    def editor(self) -> Editor:
        """Emits nodes."""
        ...

    def want(self, value: Value, picks: Region) -> Value:
        """The part of an old value."""
        ...

    def accepted(self, value: Value) -> Region:
        """The part of an old value that is computed; the same or more than was asked."""
        ...

    def rest(self, value: Value, picks: Region) -> Value:
        """A part of a new value."""
        ...


Want: TypeAlias = tuple[Value, Region]
Build: TypeAlias = Callable[[Work], tuple[Value, ...]]


@dataclass(frozen=True)
class Plan:
    """One node's.

    Attributes:
        picks: the part of the results that is computed.
        wants: what is needed of the operands; an operand may be missing here, or stand twice.
        build: makes the part.
        moved: for each pick that may turn out not to be made earlier, the operand and its axis; see :class:`Work`.
    """

    picks: Region
    wants: tuple[Want, ...]
    build: Build
    moved: Mapping[int, tuple[Value, int]] | None = None


def whole(node: Node) -> Plan:
    """The node as it is."""
    wants = tuple((value, ()) for value in node.inputs)
    return Plan((), wants, lambda work: work.editor.keep(node))


def plan(node: Node, asked: Region) -> Plan:
    """What to do about a node of whose results only the part is needed."""
    if not asked and not isinstance(node.op, (Slice, Gather)):
        return whole(node)
    shape = node.outputs[0].shape
    asked = tuple((axis, pick) for axis, pick in asked if is_fewer(pick.count, shape[axis]))
    match node.op:
        case Slice():
            return _slice(node, node.op, asked)
        case Gather():
            return _gather(node, node.op, asked)
        case Concatenate():
            found = _concatenate(node, node.op, asked)
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
    """The picks that gain by being made on the operands, and these."""
    picks: dict[int, Pick] = {}
    own: list[dict[int, Pick]] = [{} for _ in node.inputs]
    for axis, pick in asked:
        places = axes_of(node, axis)
        if places is None or not _batch_stays(node, pick, places) or not is_gain(node, axis, pick, places):
            continue
        picks[axis] = pick
        for found, place in zip(own, places, strict=True):
            if place is not None:
                found[place] = pick
    return picks, tuple((value, region(found)) for value, found in zip(node.inputs, own, strict=True))


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


# Selections


def _slice(node: Node, op: Slice, asked: Region) -> Plan:
    (x,) = node.inputs
    shape = x.spec.shape
    parts = {axis: part_of(item, size, node) for axis, (item, size) in enumerate(zip(op.items, shape, strict=True))}
    own: dict[int, Pick] = {axis: part for axis, part in parts.items() if part is not None}
    kept = [axis for axis, item in enumerate(op.items) if isinstance(item, Span)]
    picks: dict[int, Pick] = {}
    passed: dict[int, int] = {}
    for axis, pick in asked:
        place = kept[axis]
        mine = parts[place]
        if op.items[place] == WHOLE or (mine is None and x.spec.shape[place] == node.outputs[0].shape[axis]):
            batch = range(pick.batch if isinstance(pick, Rows) else 0)
            if all(kept[other] == other and other not in own for other in batch):
                picks[axis], passed[axis] = pick, place
        elif isinstance(pick, Part) and mine is not None and (both := composed(pick, mine, shape[place])):
            picks[axis], own[place] = pick, both
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


def _gather(node: Node, op: Gather, asked: Region) -> Plan:
    x, indices = node.inputs
    axis, batch = op.resolved(x.spec.shape, indices.spec.shape)
    after = axis + indices.spec.rank - batch  # where the axes behind the gathered one begin in the result
    picks: dict[int, Pick] = {}
    passed: dict[int, int] = {}
    chosen: dict[int, Pick] = {}
    for place, pick in asked:
        shared = pick.batch if isinstance(pick, Rows) else 0
        if axis <= place < after and shared <= batch:
            picks[place] = chosen[place - axis + batch] = pick
        elif place >= batch and not axis <= place < after and shared <= axis:
            picks[place], passed[place] = pick, place if place < axis else place - after + axis + 1
    part = region(chosen)
    index_shape = with_counts(indices.spec.shape, part)
    count = element_count(index_shape[batch:])
    result = with_counts(node.outputs[0].shape, region(picks))
    mode = "clip" if op.out_of_bounds == "clip" else "unchecked"
    rows = Rows((indices.node, indices.index), part, batch, mode, op.negative_indices, count, node)
    ahead: dict[int, Pick] = {place: picks[own] for own, place in passed.items()}
    movable = is_fewer(count, x.spec.shape[axis]) and (UNKNOWN not in result or len(index_shape) - batch < 2)
    if movable:
        ahead[axis] = rows

    def build(work: Work) -> tuple[Value, ...]:
        accepted = dict(work.accepted(x))
        left = region({own: picks[own] for own, place in passed.items() if place not in accepted})
        found, wanted = work.want(x, region(accepted)), work.want(indices, part)
        if axis not in accepted:
            return (work.rest(work.editor.emit_one(op, (found, wanted), node), left),)
        if len(index_shape) == batch:
            found = work.editor.emit_one(Slice(_items(found.spec.rank, axis)), (found,), node)
        elif len(index_shape) > batch + 1:
            own = found.spec.shape
            found = work.editor.emit_one(Reshape((*own[:axis], *index_shape[batch:], *own[axis + 1 :])), (found,), node)
        return (work.rest(_filled(work, op, found, x, wanted, node), left),)

    moved = {own: (x, place) for own, place in passed.items()}
    return Plan(region(picks), ((x, region(ahead)), (indices, part)), build, moved)


def _items(rank: int, axis: int) -> tuple[int | Span, ...]:
    return tuple(0 if other == axis else WHOLE for other in range(rank))


def _filled(work: Work, op: Gather, found: Value, x: Value, indices: Value, node: Node) -> Value:
    """Gathered slices that do not exist, replaced by what the mode says."""
    if not (isinstance(op.out_of_bounds, FillMode) or op.needs_check):
        return found
    editor = work.editor
    axis, batch = op.resolved(x.spec.shape, indices.spec.shape)
    table = editor.emit_one(Fill((x.spec.shape[axis],), True, Bool), (), node)
    test = Gather(0, out_of_bounds=FillMode(False), negative_indices=op.negative_indices)
    inside = editor.emit_one(test, (table, indices), node)
    after = axis + indices.spec.rank - batch
    others = (*range(batch, axis), *range(after, found.spec.rank))
    if others:
        inside = editor.emit_one(Unsqueeze(others), (inside,), node)
    dtype = x.spec.dtype
    missing: Any = np.asarray(missing_value(op.out_of_bounds, dtype.numpy)).astype(dtype.numpy)
    return editor.emit_one(Select(), (inside, found, editor.constant(missing, node, TensorSpec(dtype, ()))), node)
