"""The same elements in another arrangement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from bnnsgraph.dtypes import Int32, Integer
from bnnsgraph.elements import require_known
from bnnsgraph.errors import GraphError, ShapeError
from bnnsgraph.frozen import frozen
from bnnsgraph.graph import Constant, Op, ShapedOp, Value, located
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
    require_dtype,
    require_equal_size,
    require_same_dtype,
)  # fmt: skip
from bnnsgraph.xla import jnp, lax

if TYPE_CHECKING:
    import jax
    import numpy as np

    from bnnsgraph.tensor import Tensor


@frozen
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


@frozen
class ReshapeTo(ShapedOp):
    """A reshape by a tensor: the shape stays open until the sizes of a run are known."""

    to: Shape | None = None

    def infer(self, x: TensorSpec, to: TensorSpec) -> TensorSpec:
        require_dtype(to, Integer, "to")
        if to.rank != 1 or not isinstance(to.shape[0], int):
            raise ShapeError(f"to must be a tensor of rank 1 and known size, got {format_shape(to.shape)}")
        return x.with_shape([UNKNOWN] * to.shape[0]) if self.to is None else Reshape(self.to).infer(x)

    def resolve(self, elements: np.ndarray[Any, Any]) -> Self:
        return replace(self, to=as_shape(elements.tolist(), "to"))

    def lower(self, x: jax.Array, to: jax.Array) -> jax.Array:
        del to
        assert self.to is not None, "the elements of to are put in before"
        return Reshape(self.to).lower(x)


@frozen
class TensorShape(Op):
    sizes_only: ClassVar[bool] = True

    def infer(self, x: TensorSpec) -> TensorSpec:
        if any(isinstance(size, int) and size >= 2**31 for size in x.shape):
            raise ShapeError(f"sizes must fit int32, got {format_shape(x.shape)}")
        return TensorSpec(Int32, (x.rank,))

    def lower(self, x: jax.Array) -> jax.Array:
        if x.ndim == 0:
            return jnp.zeros((0,), jnp.int32)
        return jnp.stack([jnp.asarray(size, jnp.int32) for size in x.shape])


@frozen
class Transpose(Op):
    axes: tuple[int, ...]

    def infer(self, x: TensorSpec) -> TensorSpec:
        axes = normalize_axes(self.axes, x.rank)
        if len(axes) != x.rank:
            raise ShapeError(f"axes must name each of the {x.rank} axes once, got {list(self.axes)}")
        return x.with_shape(x.shape[axis] for axis in axes)

    def lower(self, x: jax.Array) -> jax.Array:
        return lax.transpose(x, normalize_axes(self.axes, x.ndim))


@frozen
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


@frozen
class Unsqueeze(Op):
    axes: tuple[int, ...]

    def infer(self, x: TensorSpec) -> TensorSpec:
        rank = x.rank + len(self.axes)
        axes = normalize_axes(self.axes, rank, "axis")
        sizes = iter(x.shape)
        return x.with_shape(1 if axis in axes else next(sizes) for axis in range(rank))

    def lower(self, x: jax.Array) -> jax.Array:
        return lax.expand_dims(x, normalize_axes(self.axes, x.ndim + len(self.axes), "axis"))


@frozen
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


def _sizes(value: Value) -> Shape | None:
    """The sizes that a tensor holds, where they can be written down while building."""
    op = value.node.op
    if isinstance(op, Constant) and op.array.ndim == 1 and op.array.dtype.kind in "iu":
        return as_shape(op.array.tolist(), "to")
    if isinstance(op, TensorShape):
        shape = value.node.inputs[0].spec.shape
        return None if UNKNOWN in shape else shape
    return None


class MovementMethods(Handle[D]):
    """``reshape``, ``tensor_shape``, ``transpose``, ``squeeze``, ``unsqueeze``."""

    __slots__ = ()

    def reshape(self, to: Iterable[object] | Handle[Any]) -> Tensor[D]:
        """The elements, in row-major order, in another shape. Swift: ``reshape(to:)``

        Sizes are integers, names of flexible sizes, or one -1 that is worked out from the number of elements. A tensor of
        integers, of rank 1, may give them too: it is evaluated when the sizes of a run are known, so it must be computed from
        :meth:`tensor_shape` and constants, and not from the elements of an argument.

        >>> x.reshape(to=[3, -1]).shape, x.reshape(to=mask.tensor_shape()).shape
        ((3, 2), (2, 3))
        >>> rows = bg.Builder().argument("rows", bg.Float32, shape=[-1, 2, 3])
        >>> rows.reshape(to=rows.tensor_shape()[:2] * [1, 3]).shape
        (-1, -1)

        Raises:
            ShapeError: the number of elements would change, or a tensor of sizes depends on the elements of an argument.
        """
        if not isinstance(to, Handle):
            written = as_shape(to, "to")
            shaped: Tensor[D] = self._emit(Reshape(written))
            if UNKNOWN not in written or UNKNOWN in shaped.spec.shape:
                return shaped
            return self._emit(Reshape(shaped.spec.shape))  # with the size that -1 stood for: no run has to work it out
        tensor = cast("Handle[Any]", to)
        sizes = self._enter(tensor)
        known = _sizes(sizes)
        if known is not None:
            return self._emit(Reshape(known))
        op = ReshapeTo()
        reshaped = self._emit(op, tensor)
        try:
            require_known(sizes, "to")
        except GraphError as error:
            raise located(error, op, (self._value, sizes)) from None
        return reshaped

    def tensor_shape(self) -> Tensor[Int32]:
        """The sizes of the axes as a tensor, known when the graph runs. Swift: ``tensorShape()``

        :attr:`shape` says what is known of them while the graph is built.

        >>> bg.make_context(lambda b: b.argument("x", bg.Float32, shape=[-1, 3]).tensor_shape())(np.zeros((2, 3), "float32"))
        Array([2, 3], dtype=int32)
        """
        return self._emit(TensorShape())

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
