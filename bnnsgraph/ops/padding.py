"""A border around a tensor: ``pad``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from bnnsgraph.errors import ParameterError, ShapeError
from bnnsgraph.frozen import Frozen, frozen
from bnnsgraph.graph import Op
from bnnsgraph.handle import D, Handle, convert
from bnnsgraph.spec import TensorSpec, as_integer
from bnnsgraph.xla import jnp, lax

if TYPE_CHECKING:
    import jax

    from bnnsgraph.tensor import Tensor


@frozen
class Padding(Frozen):
    """What stands in a border (Swift ``Builder.Padding``).

    ``Padding.constant(value)`` is one value; ``Padding.REFLECTION`` mirrors the elements without repeating the edge;
    ``Padding.REPLICATION`` repeats the edge.

    >>> bg.Padding.constant(0), bg.Padding.REFLECTION
    (Padding.constant(0), Padding.REFLECTION)
    """

    kind: Literal["constant", "REFLECTION", "REPLICATION"]
    value: float | int | bool = 0

    REFLECTION: ClassVar[Padding]
    REPLICATION: ClassVar[Padding]

    @staticmethod
    def constant(value: float | bool) -> Padding:
        """A border of one value, which must fit the tensor's element type. Swift: ``constant(value:)``

        >>> bg.Padding.constant(0.5).value
        0.5
        """
        if np.ndim(value):
            raise ParameterError(f"value must be one number, got {value!r}")
        return Padding("constant", value)

    def __repr__(self) -> str:
        return f"Padding.constant({self.value!r})" if self.kind == "constant" else f"Padding.{self.kind}"


Padding.REFLECTION = Padding("REFLECTION")
Padding.REPLICATION = Padding("REPLICATION")


@frozen
class Pad(Op):
    type: Padding
    padding: tuple[tuple[int, int], ...]

    cpu_level: ClassVar[int | None] = 3

    def infer(self, x: TensorSpec) -> TensorSpec:
        if len(self.padding) > x.rank:
            raise ShapeError(f"padding must have at most one pair for each of the {x.rank} axes, got {len(self.padding)}")
        if self.type.kind == "constant":
            convert(self.type.value, x.dtype)
        shape = list(x.shape)
        for axis, (before, after) in self.by_axis(x.rank):
            size = shape[axis]
            if isinstance(size, int):
                widest = max(before, after)
                if self.type == Padding.REFLECTION and widest > max(size - 1, 0):
                    raise ShapeError(f"padding must be at most size - 1, {size - 1}, to reflect axis {axis}, got {widest}")
                if self.type == Padding.REPLICATION and size == 0 and widest > 0:
                    raise ShapeError(f"axis {axis} must have an element to replicate, got size 0")
            shape[axis] = size + (before + after)
        return x.with_shape(shape)

    def by_axis(self, rank: int) -> Iterable[tuple[int, tuple[int, int]]]:
        """The amounts with the axes that they belong to: the last ones."""
        return enumerate(self.padding, rank - len(self.padding))

    def lower(self, x: jax.Array) -> jax.Array:
        if self.type.kind == "constant":
            config = [(0, 0, 0)] * (x.ndim - len(self.padding)) + [(before, after, 0) for before, after in self.padding]
            return lax.pad(x, jnp.asarray(self.type.value, x.dtype), config)
        for axis, (before, after) in self.by_axis(x.ndim):
            parts = [x]
            if before:
                parts.insert(0, self.border(x, axis, before, first=True))
            if after:
                parts.append(self.border(x, axis, after, first=False))
            x = lax.concatenate(parts, axis) if len(parts) > 1 else x
        return x

    def border(self, x: jax.Array, axis: int, width: int, *, first: bool) -> jax.Array:
        """The elements before the first or after the last one."""
        size: Any = x.shape[axis]
        if self.type == Padding.REFLECTION:
            start = 1 if first else size - 1 - width
            return lax.rev(lax.slice_in_dim(x, start, start + width, axis=axis), (axis,))
        start = 0 if first else size - 1
        edge = lax.slice_in_dim(x, start, start + 1, axis=axis)
        return jnp.broadcast_to(edge, tuple(width if other == axis else size for other, size in enumerate(x.shape)))


def _pairs(padding: Sequence[int] | Sequence[Sequence[int]]) -> tuple[tuple[int, int], ...]:
    """The amounts as (before, after) pairs, from a flat list or from pairs."""
    flat: list[int] = []
    for item in padding:
        if isinstance(item, Iterable):
            pair = [as_integer(amount, "padding") for amount in item]
            if len(pair) != 2:
                raise ParameterError(f"padding must hold pairs (before, after), got {tuple(pair)}")
            flat += pair
        else:
            flat.append(as_integer(item, "padding"))
    if len(flat) % 2:
        raise ParameterError(f"padding must hold pairs (before, after), got {len(flat)} amounts")
    if min(flat, default=0) < 0:
        raise ParameterError(f"padding must not be negative, got {min(flat)}; write a slice to cut elements off")
    return tuple(zip(flat[::2], flat[1::2], strict=True))


class PaddingMethods(Handle[D]):
    """``pad``."""

    __slots__ = ()

    def pad(self, type: Padding, padding: Sequence[int] | Sequence[Sequence[int]]) -> Tensor[D]:  # noqa: A002
        """The tensor with a border. Swift: ``pad(_:padding:)``

        Args:
            type: what stands in the border.
            padding: how many elements to add before and after, one pair an axis: ``[before, after, before, after]`` as in
                Swift, or ``[(before, after), (before, after)]``. Fewer pairs than axes belong to the last axes.

        >>> def bordered(b):
        ...     row = b.constant(values=[1, 2, 3])
        ...     return row.pad(bg.Padding.constant(0), [1, 2]), row.pad(bg.Padding.REFLECTION, [1, 2])
        >>> bg.make_context(bordered)()
        Results(output_0=Array([0, 1, 2, 3, 0, 0], dtype=int32), output_1=Array([2, 1, 2, 3, 2, 1], dtype=int32))

        Raises:
            ParameterError: an amount is negative, or has no partner.
            ShapeError: more pairs than axes; a reflection wider than size - 1; an edge that does not exist.
            DTypeError: the constant does not fit the element type.
        """
        return self._emit(Pad(_padding(type), _pairs(padding)))


def _padding(given: object) -> Padding:
    if not isinstance(given, Padding):
        raise ParameterError(f"type must be a Padding, such as Padding.constant(0), got {given!r}")
    return given
