"""Subscripts: parts of a tensor chosen by position, and the same parts replaced."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeAlias, cast

import numpy as np

from bnnsgraph.errors import IndexOutOfBoundsError, ParameterError, ShapeError
from bnnsgraph.frozen import Frozen, frozen
from bnnsgraph.graph import Argument, Constant, Op
from bnnsgraph.handle import D, Handle, Operand
from bnnsgraph.sizes import UNKNOWN, Dimension
from bnnsgraph.spec import Shape, TensorSpec, as_integer, equal_size, format_shape, require_same_dtype
from bnnsgraph.xla import jnp, lax

if TYPE_CHECKING:
    import types

    import jax

    from bnnsgraph.tensor import Tensor


@frozen
class SliceRange(Frozen):
    """The positions ``start_index ..< end_index`` of an axis (Swift ``Builder.SliceRange``).

    Negative indices count from the end. ``end_index=None`` runs to the end; ``SliceRange.fill_all`` is the whole axis.

    >>> x[SliceRange.fill_all, SliceRange(1, -1)].shape
    (2, 1)
    """

    start_index: int = 0
    end_index: int | None = None

    fill_all: ClassVar[SliceRange]


SliceRange.fill_all = SliceRange()


class Span(NamedTuple):
    """A Python slice as a value that can be compared and hashed."""

    start: int | None
    stop: int | None
    step: int

    def __repr__(self) -> str:
        start, stop = ("" if end is None else str(end) for end in self[:2])
        return f"{start}:{stop}" + (f":{self.step}" if self.step != 1 else "")


Item: TypeAlias = int | Span
SliceIndex: TypeAlias = "int | slice | SliceRange | types.EllipsisType"
"""What may stand between the brackets, once an axis (Swift ``Builder.SliceIndex``)."""


def as_items(key: object) -> tuple[object, ...]:
    """The parts of a subscript."""
    return cast("tuple[object, ...]", key) if isinstance(key, tuple) else (key,)


def is_array(item: object) -> bool:
    """Whether an item of a subscript is a tensor or array of positions; NumPy's scalars are numbers."""
    return isinstance(item, (Handle, list)) or (hasattr(item, "__array__") and not isinstance(item, np.generic))


def normalize_items(key: object, rank: int) -> tuple[Item, ...]:
    """One item an axis: an index, which removes the axis, or a span."""
    items = as_items(key)
    dots = [position for position, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        raise ParameterError(f"a subscript must have at most one '...', got {len(dots)}")
    given = len(items) - len(dots)
    if given > rank:
        raise ShapeError(f"a subscript must have at most one item for each of the {rank} axes, got {given}")
    whole = (slice(None),) * (rank - given)
    items = (*items[: dots[0]], *whole, *items[dots[0] + 1 :]) if dots else (*items, *whole)
    return tuple(_item(item) for item in items)


def _item(item: object) -> Item:
    if isinstance(item, SliceRange):
        return Span(as_integer(item.start_index, "start_index"), _end(item.end_index, "end_index"), 1)
    if isinstance(item, slice):
        parts = cast("slice[object, object, object]", item)
        step = 1 if parts.step is None else as_integer(parts.step, "the step of a slice")
        if step == 0:
            raise ParameterError("the step of a slice must not be 0")
        return Span(_end(parts.start, "the start of a slice"), _end(parts.stop, "the end of a slice"), step)
    if item is None:
        raise ParameterError("a subscript must not hold None; write .unsqueeze(axis=...)")
    if is_array(item):
        raise ParameterError(
            f"a subscript must be integers, slices and '...', got {type(item).__name__}; to choose by a tensor "
            "or array write .gather(indices, axis), to replace .scatter(...), and to choose by a mask mask.select(a, b)"
        )
    return as_integer(item, "a subscript")


def _end(value: object, subject: str) -> int | None:
    return None if value is None else as_integer(value, subject)


def _bounds(span: Span, size: Any) -> tuple[Any, Any, Any]:
    """First position, count and step on an axis of ``size``, by Python's rules; a range that runs backwards is an error."""
    start, stop, step = span
    if isinstance(size, int):
        first, last, step = slice(start, stop, step).indices(size)
        if (last < first if step > 0 else last > first) and start is not None and stop is not None:
            raise ShapeError(f"a slice must not end before it starts, got {span!r} on an axis of size {size}")
        return first, len(range(first, last, step)), step
    # A flexible size: taken to be large enough for what is written; the rule runs again when the size is known.
    begin = _position(start, size) if start is not None else (0 if step > 0 else size - 1)
    end = _position(stop, size) if stop is not None else (size if step > 0 else -1)
    distance = end - begin if step > 0 else begin - end
    if isinstance(distance, int) and distance < 0:
        raise ShapeError(f"a slice must not end before it starts, got {span!r} on an axis of size {size}")
    return begin, distance if abs(step) == 1 else (distance + abs(step) - 1) // abs(step), step


def _position(index: int, size: Any) -> Any:
    return size + index if index < 0 else index


@frozen
class Slice(Op):
    items: tuple[Item, ...]

    def infer(self, x: TensorSpec) -> TensorSpec:
        return x.with_shape(sliced(x.shape, self.items))

    def lower(self, x: jax.Array) -> jax.Array:
        starts: list[Any] = []
        limits: list[Any] = []
        steps: list[int] = []
        reversed_axes: list[int] = []
        for axis, (item, size) in enumerate(zip(self.items, x.shape, strict=True)):
            first, count, step = _extent(item, size)
            if step < 0:  # read the same positions forwards, then turn them round
                reversed_axes.append(axis)
                first, step = first + (count - 1) * step, -step
            empty = isinstance(count, int) and count == 0
            starts.append(0 if empty else first)
            limits.append(0 if empty else first + (count - 1) * step + 1)
            steps.append(step)
        part = lax.slice(x, starts, limits, steps)
        part = lax.rev(part, reversed_axes) if reversed_axes else part
        removed = [axis for axis, item in enumerate(self.items) if not isinstance(item, Span)]
        return lax.squeeze(part, removed) if removed else part

    def __str__(self) -> str:
        return f"{type(self).__name__}[{', '.join(map(repr, self.items))}]"


@frozen
class SliceUpdate(Op):
    items: tuple[Item, ...]

    def infer(self, x: TensorSpec, value: TensorSpec) -> TensorSpec:
        require_same_dtype(x=x, value=value)
        part = sliced(x.shape, self.items)
        pairs = zip(reversed(part), reversed(value.shape), strict=False)
        if value.rank > len(part) or any(size != 1 and equal_size(whole, size) is None for whole, size in pairs):
            raise ShapeError(f"value must broadcast to the slice, {format_shape(part)}, got {format_shape(value.shape)}")
        return x

    def lower(self, x: jax.Array, value: jax.Array) -> jax.Array:
        extents = [_extent(item, size) for item, size in zip(self.items, x.shape, strict=True)]
        kept = [count for item, (_, count, _) in zip(self.items, extents, strict=True) if isinstance(item, Span)]
        value = jnp.broadcast_to(value, kept).reshape([count for _, count, _ in extents])
        if all(step == 1 for _, _, step in extents):
            if 0 in value.shape:
                return x
            return lax.dynamic_update_slice(x, value, [first for first, _, _ in extents])
        places = tuple(first + step * jnp.arange(count, dtype=jnp.int32) for first, count, step in extents)
        return x.at[jnp.ix_(*places)].set(value, indices_are_sorted=False, unique_indices=True)

    def __str__(self) -> str:
        return f"{type(self).__name__}[{', '.join(map(repr, self.items))}]"


def _extent(item: Item, size: Any) -> tuple[Any, Any, Any]:
    return _bounds(item, size) if isinstance(item, Span) else (_position(item, size), 1, 1)


def sliced(shape: Shape, items: tuple[Item, ...]) -> Shape:
    """The shape of a slice; refuses an index outside its axis."""
    result: list[Dimension] = []
    for axis, (item, size) in enumerate(zip(items, shape, strict=True)):
        if isinstance(item, Span):
            if item == (None, None, 1) or (size is UNKNOWN and item == (0, None, 1)):
                result.append(size)
            else:
                result.append(_bounds(item, size)[1])
        elif isinstance(size, int) and not -size <= item < size:
            raise IndexOutOfBoundsError(f"a subscript must be in [{-size}, {size}) on axis {axis}, got {item}")
    return tuple(result)


@frozen
class SliceTarget(Frozen, Generic[D]):
    """A part of a tensor that is about to be replaced; see :attr:`SlicingMethods.update`."""

    tensor: Handle[D]

    def __getitem__(self, key: SliceIndex | tuple[SliceIndex, ...]) -> Callable[[Operand[D]], Tensor[D]]:
        op = SliceUpdate(normalize_items(key, self.tensor.rank))

        def replace(value: Operand[D]) -> Tensor[D]:
            return self.tensor._emit(op, value)  # pyright: ignore[reportPrivateUsage]

        return replace


class SlicingMethods(Handle[D]):
    """``x.update[...](y)`` and ``x[...] = y``; ``x[...]`` itself is defined on the tensor."""

    __slots__ = ()

    @property
    def update(self) -> SliceTarget[D]:
        """A copy with one part replaced: ``x.update[1:3](y)``. Swift: ``subscript(_:) set``, without its assignment

        ``y`` has the dtype of ``x`` and broadcasts to the shape of ``x[1:3]``.

        >>> bg.make_context(lambda b: b.constant(values=[1, 2, 3, 4]).update[1:3](0))()
        Array([1, 0, 0, 4], dtype=int32)
        """
        return SliceTarget(self)

    def __setitem__(self, key: SliceIndex | tuple[SliceIndex, ...], value: Operand[D]) -> None:
        """Replace a part: from here on this handle, and no other, names the result. Swift: ``subscript(_:) set``

        >>> def zero_the_middle(b):
        ...     y = b.constant(values=[1, 2, 3, 4])
        ...     y[1:3] = 0
        ...     return y
        >>> bg.make_context(zero_the_middle)()
        Array([1, 0, 0, 4], dtype=int32)
        """
        if isinstance(self._value.node.op, (Argument, Constant)):
            self._name = None  # the name of what it was; the result is something else
        self._value = self.update[key](value)._value  # pyright: ignore[reportPrivateUsage]

    def _slice(self, key: object) -> Any:
        return self._emit(Slice(normalize_items(key, self.rank)))


__all__ = ["Slice", "SliceRange", "SliceUpdate", "SlicingMethods", "Span"]
