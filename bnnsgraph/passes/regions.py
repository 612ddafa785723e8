"""Parts of a tensor that are all that is needed of it: for some of its axes, which positions.

A part keeps the rank of the tensor: an index that removes an axis leaves it with size 1 here, and the axis is removed after.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from bnnsgraph.graph import Node, Value
from bnnsgraph.ops.gathering import Gather, GatherND
from bnnsgraph.ops.indexed import IndexRule
from bnnsgraph.ops.movement import Reshape, Unsqueeze
from bnnsgraph.ops.slicing import Slice, Span, sliced
from bnnsgraph.options import NegativeIndices, OutOfBounds
from bnnsgraph.passes.editing import Editor, positions
from bnnsgraph.sizes import UNKNOWN, Dimension
from bnnsgraph.spec import Shape, element_count, is_static

WHOLE = Span(None, None, 1)


@dataclass(frozen=True)
class Part:
    """Positions that a slice names, on an axis of one known or named size."""

    span: Span
    count: Dimension
    by: Node = field(compare=False)
    """The operation that asked first."""


@dataclass(frozen=True)
class Rows:
    """Positions that the elements of a tensor name: those of its axes after the first ``batch``, in row-major order.

    Index vectors of ``depth`` components name positions of as many axes together, from axis ``batch`` on: one pick for each
    component, on its axis. The part has all positions on the first of these axes and size 1 on the others.
    """

    indices: tuple[Node, int]
    region: Region
    """Which part of the indices."""
    batch: int
    out_of_bounds: OutOfBounds
    negative_indices: NegativeIndices
    positions: Dimension
    by: Node = field(compare=False)
    depth: int | None = None
    """None for indices that are not vectors."""
    component: int = 0

    @property
    def count(self) -> Dimension:
        """The size of its axis in the part."""
        return self.positions if self.component == 0 else 1

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes of the components of a vector; none for a single axis, which may be any."""
        return tuple(range(self.batch, self.batch + self.depth)) if self.depth is not None and self.depth > 1 else ()


Pick: TypeAlias = Part | Rows
Region: TypeAlias = tuple[tuple[int, Pick], ...]
"""Axes in increasing order, each with what is needed of it. Empty: everything."""


def region(picks: Mapping[int, Pick]) -> Region:
    """A region of the picks by axis."""
    return tuple(sorted(picks.items(), key=lambda pair: pair[0]))


def joint(pick: Pick) -> tuple[int, ...]:
    """The axes that a pick addresses together with others; none for a pick of one axis."""
    return pick.axes if isinstance(pick, Rows) else ()


def complete(picks: Region) -> Region:
    """The picks without those of index vectors of which a component is missing, or stands on another axis."""
    found = dict(picks)

    def is_complete(axis: int, pick: Pick) -> bool:
        axes = joint(pick)
        return not axes or (axis in axes and all(_component(pick, own) == found.get(own) for own in axes))

    return tuple((axis, pick) for axis, pick in picks if is_complete(axis, pick))


def _component(pick: Pick, axis: int) -> Pick:
    return replace(pick, component=axis - pick.batch) if isinstance(pick, Rows) else pick


def common(one: Region, other: Region) -> Region:
    """The picks that both have."""
    if one == other:
        return one
    picks = dict(other)
    return complete(tuple((axis, pick) for axis, pick in one if picks.get(axis) == pick))


def span_part(places: range, by: Node) -> Part:
    """The part that these positions are."""
    stop = places[-1] + (1 if places.step > 0 else -1)
    step = places.step if len(places) > 1 else 1
    return Part(Span(places[0], places[0] + 1 if len(places) == 1 else stop if stop >= 0 else None, step), len(places), by)


def part_of(item: int | Span, size: Dimension, by: Node) -> Part | None:
    """What a subscript's item asks of an axis; None for all of it, for nothing, and where that is not known."""
    if size is UNKNOWN:
        return None
    if isinstance(size, int):
        places = positions(item, size)
        return span_part(places, by) if places and places != range(size) else None
    if isinstance(item, int):
        return Part(Span(item, item + 1 if item != -1 else None, 1), 1, by)
    count = sliced((size,), (item,))[0]
    return Part(item, count, by) if item != WHOLE and count is not UNKNOWN and count != 0 else None


def composed(outer: Part, inner: Part, size: Dimension) -> Part | None:
    """The part of an axis of ``size`` that is ``outer`` of ``inner``."""
    if not isinstance(size, int) or not isinstance(inner.count, int):
        return None
    places = positions(inner.span, size)[slice(*outer.span)]
    return span_part(places, outer.by) if places else None


def fewer(picks: Region, shape: Shape) -> Region:
    """The picks that are known to leave some of the positions out."""
    return tuple((axis, pick) for axis, pick in picks if is_fewer(*_counted(axis, pick, shape)))


def grouped(picks: Region, shape: Shape) -> list[Region]:
    """The picks that go together, each with those it goes with; first those that leave the smallest part."""
    found: dict[tuple[int, ...], Region] = {}
    for axis, pick in picks:
        axes = joint(pick) or (axis,)
        found[axes] = (*found.get(axes, ()), (axis, pick))
    return sorted(found.values(), key=lambda group: kept(group, shape))


def kept(group: Region, shape: Shape) -> float:
    """Which part of the positions is left; without known sizes, picks of one position go before others."""
    count, size = _counted(*group[0], shape)
    return count / size if isinstance(count, int) and isinstance(size, int) and size else float(count != 1)


def _counted(axis: int, pick: Pick, shape: Shape) -> tuple[Dimension, Dimension]:
    """How many positions are chosen, and of how many."""
    if isinstance(pick, Rows) and pick.axes:
        return pick.positions, element_count([shape[own] for own in pick.axes])
    return pick.count, shape[axis]


def is_fewer(count: Dimension, size: Dimension) -> bool:
    """Whether the count is known to be smaller than the axis."""
    if isinstance(count, int) and isinstance(size, int):
        return 0 < count < size
    return count == 1 and size is not UNKNOWN and not isinstance(size, int)


class Parts:
    """Emits parts of values: each once."""

    def __init__(self, editor: Editor, indices_of: Callable[[Rows], Value]) -> None:
        self._editor = editor
        self._indices_of = indices_of
        self._found: dict[tuple[tuple[Node, int], Region], Value] = {}
        self._flat: dict[tuple[Value, int], Value] = {}

    def take(self, value: Value, picks: Region) -> Value:
        """The part of a new value."""
        if not picks:
            return value
        key = (value.node, value.index), picks
        if key not in self._found:
            self._found[key] = self._taken(value, picks)
        return self._found[key]

    def _taken(self, value: Value, picks: Region) -> Value:
        spans = {axis: pick for axis, pick in picks if isinstance(pick, Part)}
        if spans:
            op = Slice(tuple(spans[axis].span if axis in spans else WHOLE for axis in range(value.spec.rank)))
            value = self._editor.emit_one(op, (value,), next(iter(spans.values())).by)
        rows = tuple((axis, pick) for axis, pick in picks if isinstance(pick, Rows))
        for (axis, pick), *_ in grouped(rows, value.spec.shape):
            assert isinstance(pick, Rows)
            value = self._gathered(value, axis, pick)
        return value

    def _gathered(self, value: Value, axis: int, pick: Rows) -> Value:
        rule = IndexRule(out_of_bounds=pick.out_of_bounds, negative_indices=pick.negative_indices)
        if not pick.axes:
            return self._editor.emit_one(Gather(axis, pick.batch, **rule), (value, self._flattened(pick)), pick.by)
        value = self._editor.emit_one(GatherND(pick.batch, **rule), (value, self._flattened(pick)), pick.by)
        return self._editor.emit_one(Unsqueeze(pick.axes[1:]), (value,), pick.by)

    def _flattened(self, pick: Rows) -> Value:
        """Indices, or index vectors, with one axis after the batch axes."""
        indices = self._indices_of(pick)
        shape = indices.spec.shape
        end = len(shape) if pick.depth is None else len(shape) - 1
        to = (*shape[: pick.batch], element_count(shape[pick.batch : end]), *((len(pick.axes),) if pick.axes else ()))
        if len(shape) == len(to):
            return indices
        key = indices, pick.batch
        if key not in self._flat:
            self._flat[key] = self._editor.emit_one(Reshape(to), (indices,), pick.by)
        return self._flat[key]


def with_counts(shape: Shape, picks: Region) -> Shape:
    """The shape of the part."""
    counts = {axis: pick.count for axis, pick in picks}
    return tuple(counts.get(axis, size) for axis, size in enumerate(shape))


def saved(shapes: list[Shape], picks: Region) -> int | None:
    """How many elements fewer tensors of these shapes have when only the part is computed."""
    total = 0
    for shape in shapes:
        part = with_counts(shape, picks)
        if not is_static(shape) or not is_static(part):
            return None
        count, fewer = element_count(shape), element_count(part)
        assert isinstance(count, int)
        assert isinstance(fewer, int)
        total += count - fewer
    return total
