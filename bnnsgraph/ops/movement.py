"""The same elements in another arrangement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from bnnsgraph.errors import ShapeError
from bnnsgraph.graph import Op
from bnnsgraph.handle import Axes, D, Handle
from bnnsgraph.sizes import UNKNOWN, Dimension
from bnnsgraph.spec import (
    Shape,
    TensorSpec,
    as_axes,
    as_integer,
    as_shape,
    bind_shape,
    element_count,
    format_shape,
    normalize_axes,
    normalize_axis,
    require_equal_size,
    require_same_dtype,
)  # fmt: skip
from bnnsgraph.xla import jnp, lax

if TYPE_CHECKING:
    import jax

    from bnnsgraph.tensor import Tensor


@dataclass(frozen=True)
class Reshape(Op):
    to: Shape

    def infer(self, x: TensorSpec) -> TensorSpec:
        count = element_count(x.shape)
        open_axes = [axis for axis, size in enumerate(self.to) if size is UNKNOWN]
        if len(open_axes) > 1:
            raise ShapeError(f"to must have at most one size of -1, got {format_shape(self.to)}")
        known = element_count([size for size in self.to if size is not UNKNOWN])
        if not open_axes:
            if count is not UNKNOWN and count != known and (isinstance(count, int) == isinstance(known, int)):
                raise ShapeError(f"to must have as many elements as x, {count}, got {format_shape(self.to)} with {known}")
            return x.with_shape(self.to)
        return x.with_shape(_rest(count, known, self.to) if size is UNKNOWN else size for size in self.to)

    def bind(self, sizes: Mapping[str, Any]) -> Self:
        return replace(self, to=bind_shape(self.to, sizes))

    def lower(self, x: jax.Array) -> jax.Array:
        return jnp.reshape(x, tuple(-1 if size is UNKNOWN else size for size in self.to))


def _rest(count: Dimension, known: Dimension, to: Shape) -> Dimension:
    """The size that a -1 in ``to`` stands for."""
    if isinstance(known, int):
        if known == 0:
            if count == 0:
                return 0
            raise ShapeError(f"to must leave a size to infer, got {format_shape(to)} for {count} elements")
        if isinstance(count, int):
            if count % known:
                raise ShapeError(f"to must divide the {count} elements of x, got {format_shape(to)}")
            return count // known
        return count // known
    if isinstance(count, int) or count is UNKNOWN or known is UNKNOWN:
        return UNKNOWN
    quotient = count.divided_by(known)
    return UNKNOWN if quotient is None else quotient


@dataclass(frozen=True)
class Transpose(Op):
    axes: tuple[int, ...]

    def infer(self, x: TensorSpec) -> TensorSpec:
        axes = normalize_axes(self.axes, x.rank)
        if len(axes) != x.rank:
            raise ShapeError(f"axes must name each of the {x.rank} axes once, got {list(self.axes)}")
        return x.with_shape(x.shape[axis] for axis in axes)

    def lower(self, x: jax.Array) -> jax.Array:
        return lax.transpose(x, normalize_axes(self.axes, x.ndim))


@dataclass(frozen=True)
class Squeeze(Op):
    axes: tuple[int, ...]

    def infer(self, x: TensorSpec) -> TensorSpec:
        axes = normalize_axes(self.axes, x.rank, "axis")
        for axis in axes:
            if isinstance(x.shape[axis], int) and x.shape[axis] != 1:
                raise ShapeError(f"axis must have size 1, got size {x.shape[axis]} on axis {axis}")
        return x.with_shape(size for axis, size in enumerate(x.shape) if axis not in axes)

    def lower(self, x: jax.Array) -> jax.Array:
        return lax.squeeze(x, normalize_axes(self.axes, x.ndim, "axis"))


@dataclass(frozen=True)
class Unsqueeze(Op):
    axes: tuple[int, ...]

    def infer(self, x: TensorSpec) -> TensorSpec:
        rank = x.rank + len(self.axes)
        axes = normalize_axes(self.axes, rank, "axis")
        sizes = iter(x.shape)
        return x.with_shape(1 if axis in axes else next(sizes) for axis in range(rank))

    def lower(self, x: jax.Array) -> jax.Array:
        return lax.expand_dims(x, normalize_axes(self.axes, x.ndim + len(self.axes), "axis"))


@dataclass(frozen=True)
class Concatenate(Op):
    axis: int

    def infer(self, *tensors: TensorSpec) -> TensorSpec:
        dtype = require_same_dtype(**{f"tensors[{index}]": spec for index, spec in enumerate(tensors)})
        first = tensors[0]
        axis = normalize_axis(self.axis, first.rank)
        shape = list(first.shape)
        for index, spec in enumerate(tensors[1:], 1):
            if spec.rank != first.rank:
                raise ShapeError(
                    f"tensors must have one rank, got {first.rank} for tensors[0] and {spec.rank} for tensors[{index}]"
                )
            for other in range(first.rank):
                if other == axis:
                    shape[axis] = shape[axis] + spec.shape[axis]
                else:
                    shape[other] = require_equal_size(shape[other], spec.shape[other], f"sizes on axis {other}")
        return TensorSpec(dtype, tuple(shape))

    def lower(self, *tensors: jax.Array) -> jax.Array:
        return lax.concatenate(tensors, normalize_axis(self.axis, tensors[0].ndim))


class MovementMethods(Handle[D]):
    """``reshape``, ``transpose``, ``squeeze``, ``unsqueeze``."""

    __slots__ = ()

    def reshape(self, to: Iterable[object]) -> Tensor[D]:
        """The elements, in row-major order, in another shape. Swift: ``reshape(to:)``

        Sizes are integers, names of flexible sizes, or one -1 that is worked out from the number of elements.

        >>> x.reshape(to=[3, -1]).shape
        (3, 2)

        Raises:
            ShapeError: the number of elements would change.
        """
        return self._emit(Reshape(as_shape(to, "to")))

    def transpose(self, axes: Axes) -> Tensor[D]:
        """The axes in another order: axis ``i`` of the result is axis ``axes[i]``. Swift: ``transpose(axes:)``

        >>> x.transpose(axes=[1, 0]).shape
        (3, 2)

        Raises:
            ShapeError: ``axes`` is not a permutation of the axes.
        """
        return self._emit(Transpose(as_axes(axes)))

    def squeeze(self, axis: int) -> Tensor[D]:
        """Without the axis, which must have size 1. Swift: ``squeeze(axis:)``

        >>> x.unsqueeze(axis=0).squeeze(axis=0).shape
        (2, 3)
        """
        return self._emit(Squeeze((as_integer(axis, "axis"),)))

    def unsqueeze(self, axis: int) -> Tensor[D]:
        """With a new axis of size 1 at position ``axis`` of the result; -1 appends it. Swift: ``unsqueeze(axis:)``

        >>> x.unsqueeze(axis=-1).shape
        (2, 3, 1)
        """
        return self._emit(Unsqueeze((as_integer(axis, "axis"),)))
