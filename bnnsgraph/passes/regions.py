"""Parts of a tensor that are all that is needed of it: for some of its axes, which positions.

A part keeps the rank of the tensor: an index that removes an axis leaves it with size 1 here, and the axis is removed after.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from bnnsgraph.graph import Node, Value
from bnnsgraph.ops.gathering import Gather
from bnnsgraph.ops.movement import Reshape
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
    """Positions that the elements of a tensor name: those of its axes after the first ``batch``, in row-major order."""

    indices: tuple[Node, int]
    region: Region
    """Which part of the indices."""
    batch: int
    out_of_bounds: OutOfBounds
    negative_indices: NegativeIndices
    count: Dimension
    by: Node = field(compare=False)


Pick: TypeAlias = Part | Rows
Region: TypeAlias = tuple[tuple[int, Pick], ...]
"""Axes in increasing order, each with what is needed of it. Empty: everything."""


def region(picks: Mapping[int, Pick]) -> Region:
    """A region of the picks by axis."""
    return tuple(sorted(picks.items(), key=lambda pair: pair[0]))


def common(one: Region, other: Region) -> Region:
    """The picks that both have."""
    if one == other:
        return one
    picks = dict(other)
    return tuple((axis, pick) for axis, pick in one if picks.get(axis) == pick)


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
        for axis, pick in picks:
            if isinstance(pick, Rows):
                op = Gather(axis, pick.batch, out_of_bounds=pick.out_of_bounds, negative_indices=pick.negative_indices)
                value = self._editor.emit_one(op, (value, self._flattened(pick)), pick.by)
        return value

    def _flattened(self, pick: Rows) -> Value:
        """Indices with one axis after the batch axes."""
        indices = self._indices_of(pick)
        shape = indices.spec.shape
        if len(shape) == pick.batch + 1:
            return indices
        key = indices, pick.batch
        if key not in self._flat:
            to = (*shape[: pick.batch], element_count(shape[pick.batch :]))
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
