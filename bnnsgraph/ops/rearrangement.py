"""Elements repeated, turned round, cut apart and put together, beyond what Apple's builder has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from bnnsgraph.dtypes import Bool, Integer
from bnnsgraph.errors import ParameterError, ShapeError
from bnnsgraph.frozen import frozen
from bnnsgraph.graph import Op
from bnnsgraph.handle import Axes, D, Handle, I
from bnnsgraph.sizes import UNKNOWN, Dimension
from bnnsgraph.spec import (
    Shape,
    TensorSpec,
    as_axes,
    as_integer,
    as_shape,
    bind_shape,
    equal_size,
    format_shape,
    normalize_axes,
    normalize_axis,
    require_dtype,
    require_equal_size,
    require_same_dtype,
)  # fmt: skip
from bnnsgraph.xla import jnp, lax

if TYPE_CHECKING:
    import jax

    from bnnsgraph.tensor import Tensor


@frozen
class Tile(Op):
    repetitions: tuple[int, ...]

    def infer(self, x: TensorSpec) -> TensorSpec:
        rank = max(x.rank, len(self.repetitions))
        shape = (1,) * (rank - x.rank) + x.shape
        counts = (1,) * (rank - len(self.repetitions)) + self.repetitions
        return x.with_shape(size * count for size, count in zip(shape, counts, strict=True))

    def lower(self, x: jax.Array) -> jax.Array:
        return jnp.tile(x, self.repetitions)


@frozen
class BroadcastTo(Op):
    shape: Shape

    def infer(self, x: TensorSpec) -> TensorSpec:
        added = len(self.shape) - x.rank
        shape = self.resolved((1,) * added + x.shape) if added >= 0 else ()
        for own, size in zip(x.shape, shape[added:] if shape else (), strict=False):
            if own != 1 and equal_size(own, size) is None:
                added = -1
        if added < 0:
            raise ShapeError(f"shape must be one that {format_shape(x.shape)} broadcasts to, got {format_shape(self.shape)}")
        return x.with_shape(shape)

    def resolved(self, own: Shape) -> Shape:
        """The shape with the tensor's own size in place of -1."""
        return tuple(size if wanted is UNKNOWN else wanted for size, wanted in zip(own, self.shape, strict=True))

    def bind(self, sizes: Mapping[str, Any]) -> Self:
        return replace(self, shape=bind_shape(self.shape, sizes))

    def lower(self, x: jax.Array) -> jax.Array:
        return jnp.broadcast_to(x, self.resolved((1,) * (len(self.shape) - x.ndim) + x.shape))


@frozen
class Reverse(Op):
    axes: tuple[int, ...]

    def infer(self, x: TensorSpec) -> TensorSpec:
        normalize_axes(self.axes, x.rank)
        return x

    def lower(self, x: jax.Array) -> jax.Array:
        return lax.rev(x, normalize_axes(self.axes, x.ndim))


@frozen
class Split(Op):
    parts: int | tuple[int, ...]
    axis: int

    def infer(self, x: TensorSpec) -> tuple[TensorSpec, ...]:
        axis = normalize_axis(self.axis, x.rank)
        sizes = self.sizes(x.shape[axis], axis)
        return tuple(x.with_shape((*x.shape[:axis], size, *x.shape[axis + 1 :])) for size in sizes)

    def sizes(self, size: Any, axis: int) -> list[Any]:
        """The sizes of the parts of an axis."""
        if isinstance(self.parts, int):
            if isinstance(size, int) and size % self.parts:
                raise ShapeError(f"parts must divide size {size} of axis {axis}, got {self.parts}")
            return [size // self.parts] * self.parts
        known = sum(part for part in self.parts if part != -1)
        if -1 in self.parts:
            if isinstance(size, int) and known > size:
                raise ShapeError(f"parts must add up to at most size {size} of axis {axis}, got {list(self.parts)}")
            return [size - known if part == -1 else part for part in self.parts]
        if isinstance(size, int) and known != size:
            raise ShapeError(f"parts must add up to size {size} of axis {axis}, got {list(self.parts)}")
        return list(self.parts)

    def lower(self, x: jax.Array) -> Any:
        axis = normalize_axis(self.axis, x.ndim)
        found: list[jax.Array] = []
        start: Any = 0
        for size in self.sizes(x.shape[axis], axis):
            found.append(lax.slice_in_dim(x, start, start + size, axis=axis))
            start = start + size
        return found if len(found) > 1 else found[0]


@frozen
class OneHot(Op):
    depth: int
    axis: int = -1

    def infer(self, x: TensorSpec) -> TensorSpec:
        require_dtype(x, Integer)
        axis = normalize_axis(self.axis, x.rank + 1)
        return TensorSpec(Bool, (*x.shape[:axis], self.depth, *x.shape[axis:]))

    def lower(self, x: jax.Array) -> jax.Array:
        axis = normalize_axis(self.axis, x.ndim + 1)
        x = x.astype(jnp.int32) if x.dtype.itemsize < 4 else x  # a narrow type may not hold the depth
        shape = tuple(self.depth if other == axis else 1 for other in range(x.ndim + 1))
        return lax.expand_dims(x, (axis,)) == lax.broadcasted_iota(x.dtype, shape, axis)


@frozen
class BandPart(Op):
    lower_count: int
    upper_count: int

    def infer(self, x: TensorSpec) -> TensorSpec:
        if x.rank < 2:
            raise ShapeError(f"x must have rank 2 or more, got rank {x.rank}")
        return x

    def lower(self, x: jax.Array) -> jax.Array:
        shape = (1,) * (x.ndim - 2) + x.shape[-2:]
        below = lax.broadcasted_iota(jnp.int32, shape, x.ndim - 2) - lax.broadcasted_iota(jnp.int32, shape, x.ndim - 1)
        keep = jnp.ones(shape, bool)
        if self.lower_count >= 0:
            keep &= below <= self.lower_count
        if self.upper_count >= 0:
            keep &= -below <= self.upper_count
        return jnp.where(keep, x, jnp.zeros((1,) * x.ndim, x.dtype))


@frozen
class Stack(Op):
    axis: int

    def infer(self, *tensors: TensorSpec) -> TensorSpec:
        dtype = require_same_dtype(**{f"tensors[{index}]": spec for index, spec in enumerate(tensors)})
        first = tensors[0]
        axis = normalize_axis(self.axis, first.rank + 1)
        shape: list[Dimension] = list(first.shape)
        for index, spec in enumerate(tensors[1:], 1):
            if spec.rank != first.rank:
                raise ShapeError(
                    f"tensors must have one rank, got {first.rank} for tensors[0] and {spec.rank} for tensors[{index}]"
                )
            for other, size in enumerate(spec.shape):
                shape[other] = require_equal_size(shape[other], size, f"sizes on axis {other}")
        return TensorSpec(dtype, (*shape[:axis], len(tensors), *shape[axis:]))

    def lower(self, *tensors: jax.Array) -> jax.Array:
        return jnp.stack(tensors, normalize_axis(self.axis, tensors[0].ndim + 1))


class RearrangementMethods(Handle[D]):
    """``tile``, ``broadcast_to``, ``reverse``, ``split``, ``one_hot``, ``band_part``."""

    __slots__ = ()

    def tile(self, repetitions: Sequence[int] | int) -> Tensor[D]:
        """The tensor repeated along each axis, as ``numpy.tile``. Not in Apple's builder.

        Fewer repetitions than axes belong to the last axes; more of them add axes in front.

        >>> bg.make_context(lambda b: b.constant(values=[1, 2]).tile(2))()
        Array([1, 2, 1, 2], dtype=int32)
        """
        counts = as_axes(repetitions, "repetitions")
        if min(counts, default=0) < 0:
            raise ParameterError(f"repetitions must not be negative, got {min(counts)}")
        return self._emit(Tile(counts))

    def broadcast_to(self, shape: Iterable[object]) -> Tensor[D]:
        """The tensor in a larger shape, axes of size 1 repeated, as ``numpy.broadcast_to``. Not in Apple's builder.

        Sizes are integers, names of flexible sizes, or -1 to keep the tensor's own.

        >>> x.unsqueeze(axis=1).broadcast_to([2, 4, -1]).shape
        (2, 4, 3)

        Raises:
            ShapeError: a size that is not 1 would change.
        """
        return self._emit(BroadcastTo(as_shape(shape)))

    def reverse(self, axes: Axes) -> Tensor[D]:
        """The elements in the opposite order along ``axes``, as ``numpy.flip``. Not in Apple's builder.

        >>> bg.make_context(lambda b: b.constant(values=[1, 2, 3]).reverse(axes=[0]))()
        Array([3, 2, 1], dtype=int32)
        """
        return self._emit(Reverse(as_axes(axes)))

    def split(self, parts: int | Sequence[int], axis: int) -> tuple[Tensor[D], ...]:
        """The tensor cut into parts along ``axis``. Not in Apple's builder.

        Args:
            parts: how many equal parts, or the size of each; one size may be -1, for what is left.
            axis: an axis of ``self``.

        >>> [part.shape for part in x.split([1, -1], axis=1)]
        [(2, 1), (2, 2)]

        Raises:
            ShapeError: the parts do not add up to the axis.
        """
        return self._emit_many(Split(_parts(parts), as_integer(axis, "axis")))

    def one_hot(self: Handle[I], depth: int, axis: int = -1) -> Tensor[Bool]:
        """A mask with a new axis that is true at the position that each integer names. Not in Apple's builder.

        ``result[p, j, q] = self[p, q] == j``: an integer outside [0, ``depth``) gives no true element. For numbers write
        ``.cast(to=...)`` or ``.select(on, off)`` after it.

        >>> bg.make_context(lambda b: b.constant(values=[1, 3]).one_hot(3).cast(to=bg.Int32))()
        Array([[0, 1, 0],
               [0, 0, 0]], dtype=int32)
        """
        size = as_integer(depth, "depth")
        if size < 0:
            raise ParameterError(f"depth must be at least 0, got {size}")
        return self._emit(OneHot(size, as_integer(axis, "axis")))

    def band_part(self, lower: int, upper: int) -> Tensor[D]:
        """The matrices of the last two axes with zeros off a band around the diagonal. Not in Apple's builder.

        Args:
            lower: how many diagonals to keep below the main one; a negative number keeps all.
            upper: how many to keep above it; a negative number keeps all.

        >>> bg.make_context(lambda b: b.constant(values=[[1, 2], [3, 4]]).band_part(-1, 0))()
        Array([[1, 0],
               [3, 4]], dtype=int32)
        """
        return self._emit(BandPart(as_integer(lower, "lower"), as_integer(upper, "upper")))


def _parts(parts: int | Sequence[int]) -> int | tuple[int, ...]:
    if not isinstance(parts, Iterable):
        count = as_integer(parts, "parts")
        if count < 1:
            raise ParameterError(f"parts must be at least 1, got {count}")
        return count
    sizes = as_axes(parts, "parts")
    if not sizes or min(sizes) < -1 or sizes.count(-1) > 1:
        raise ParameterError(f"parts must be sizes of which one may be -1, got {list(sizes)}")
    return sizes
