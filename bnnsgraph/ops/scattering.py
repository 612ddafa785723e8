"""Writing elements by index: ``scatter``, ``scatter_along_axis``, ``scatter_nd``. Each call is one ``lax.scatter``.

The tensor itself is unchanged; the result is a new tensor of its shape, where ``result = old (mode) update`` at the addressed
places.
"""

from __future__ import annotations

import enum
from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar, cast

from bnnsgraph.dtypes import Floating, Number
from bnnsgraph.errors import DTypeError, ParameterError, ShapeError
from bnnsgraph.frozen import frozen
from bnnsgraph.handle import D, Handle, Operand
from bnnsgraph.indices import IndexOp, facts, resolve
from bnnsgraph.ops.indexed import Indices, along_axis_shape, emit_indexed, index_rule, nd_depth
from bnnsgraph.options import OutOfBounds
from bnnsgraph.spec import Shape, TensorSpec, as_integer, equal_size, format_shape, normalize_axis, require_same_dtype
from bnnsgraph.xla import accumulator, jnp, lax

if TYPE_CHECKING:
    import jax

    from bnnsgraph.tensor import Tensor


class ScatterMode(enum.Enum):
    """How an update meets the old value (Swift ``Builder.ScatterMode``).

    >>> ScatterMode.ADD.value
    'old + update'
    """

    UPDATE = "update"
    ADD = "old + update"
    SUBTRACT = "old - update"
    MULTIPLY = "old * update"
    DIVIDE = "old / update"
    MAXIMUM = "max(old, update)"
    MINIMUM = "min(old, update)"

    def __repr__(self) -> str:
        return f"ScatterMode.{self.name}"


@frozen
class ScatterOp(IndexOp):
    """The base of the three: what they share is the call of ``lax.scatter``."""

    mode: ScatterMode
    unique_indices: bool = field(default=False, kw_only=True)

    cpu_level: ClassVar[int | None] = 3
    ends_fusion: ClassVar[bool] = True

    def require_payload(self, x: TensorSpec, updates: TensorSpec, indices: TensorSpec) -> None:
        """The rule about element types and indices."""
        require_same_dtype(x=x, updates=updates)
        if self.mode is ScatterMode.DIVIDE and not issubclass(x.dtype, Floating):
            raise DTypeError(f"x must be of a float type to divide, got {x.dtype.name}; write .cast(to=Float32) first")
        if self.mode is not ScatterMode.UPDATE and not issubclass(x.dtype, Number):
            raise DTypeError(f"x must be of a number type unless mode is ScatterMode.UPDATE, got {x.dtype.name}")
        self.require_indices(x, indices)

    def write(
        self, x: jax.Array, updates: jax.Array, indices: jax.Array, window_dims: tuple[int, ...], batch: tuple[int, ...]
    ) -> jax.Array:
        """Combine whole slices of ``updates`` into ``x``."""
        axes = self.addressed(x.shape, indices.shape)
        sizes = self.sizes(x, indices)
        if any(isinstance(size, int) and size == 0 for size in sizes):  # there is no place to write to
            return x
        starts, bounds = resolve(
            indices, sizes, "drop" if self.out_of_bounds == "raise" else self.out_of_bounds, self.negative_indices
        )
        numbers = lax.ScatterDimensionNumbers(
            update_window_dims=window_dims,
            inserted_window_dims=axes,
            scatter_dims_to_operand_dims=axes,
            operand_batching_dims=batch,
            scatter_indices_batching_dims=batch,
        )

        known = facts(starts, sizes, batch)
        known["unique_indices"] |= self.unique_indices

        def apply(function: Any, old: jax.Array, new: jax.Array) -> jax.Array:
            return function(old, starts, new, numbers, mode=bounds, **known)

        wide = accumulator(x.dtype)
        match self.mode:
            case ScatterMode.UPDATE:
                return apply(lax.scatter, x, updates)
            case ScatterMode.ADD:
                return apply(lax.scatter_add, x.astype(wide), updates.astype(wide)).astype(x.dtype)
            case ScatterMode.SUBTRACT:
                return apply(lax.scatter_add, x.astype(wide), -updates.astype(wide)).astype(x.dtype)
            case ScatterMode.MULTIPLY:
                return apply(lax.scatter_mul, x.astype(wide), updates.astype(wide)).astype(x.dtype)
            case ScatterMode.DIVIDE:
                divisors = apply(lax.scatter_mul, jnp.ones(x.shape, wide), updates.astype(wide))
                return (x.astype(wide) / divisors).astype(x.dtype)
            case ScatterMode.MAXIMUM:
                return apply(lax.scatter_max, x, updates)
            case ScatterMode.MINIMUM:
                return apply(lax.scatter_min, x, updates)


@frozen
class Scatter(ScatterOp):
    axis: int

    def infer(self, x: TensorSpec, updates: TensorSpec, indices: TensorSpec) -> TensorSpec:
        axis = normalize_axis(self.axis, x.rank)
        _require_updates(updates.shape, (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), "D[:axis] + I + D[axis+1:]")
        self.require_payload(x, updates, indices)
        return x

    def addressed(self, x: Shape, indices: Shape) -> tuple[int, ...]:
        return (normalize_axis(self.axis, len(x)),)

    def lower(self, x: jax.Array, updates: jax.Array, indices: jax.Array) -> jax.Array:
        axis = normalize_axis(self.axis, x.ndim)
        window_dims = (*range(axis), *range(axis + indices.ndim, updates.ndim))
        return self.write(x, updates, indices[..., None], window_dims, ())


@frozen
class ScatterAlongAxis(ScatterOp):
    axis: int

    def infer(self, x: TensorSpec, updates: TensorSpec, indices: TensorSpec) -> TensorSpec:
        axis = normalize_axis(self.axis, x.rank)
        shape = along_axis_shape(x.shape, indices.shape, axis, "indices")
        _require_updates(updates.shape, shape, "the shape of indices")
        self.require_payload(x, updates, indices)
        return x

    def addressed(self, x: Shape, indices: Shape) -> tuple[int, ...]:
        return (normalize_axis(self.axis, len(x)),)

    def lower(self, x: jax.Array, updates: jax.Array, indices: jax.Array) -> jax.Array:
        axis = normalize_axis(self.axis, x.ndim)
        others = tuple(other for other in range(x.ndim) if other != axis)
        return self.write(x, updates, indices[..., None], (), others)


@frozen
class ScatterND(ScatterOp):
    def infer(self, x: TensorSpec, updates: TensorSpec, indices: TensorSpec) -> TensorSpec:
        depth = nd_depth(x.shape, indices.shape, 0)
        _require_updates(updates.shape, (*indices.shape[:-1], *x.shape[depth:]), "I[:-1] + D[k:]")
        self.require_payload(x, updates, indices)
        return x

    def addressed(self, x: Shape, indices: Shape) -> tuple[int, ...]:
        return tuple(range(cast(int, indices[-1])))

    def lower(self, x: jax.Array, updates: jax.Array, indices: jax.Array) -> jax.Array:
        if indices.shape[-1] == 0:  # every vector names the whole tensor: the one position of a further axis
            whole = jnp.zeros((*indices.shape[:-1], 1), indices.dtype)
            return self.lower(x[None], updates, whole)[0]
        return self.write(x, updates, indices, tuple(range(indices.ndim - 1, updates.ndim)), ())


def _require_updates(updates: Shape, wanted: Shape, formula: str) -> None:
    if len(updates) != len(wanted) or any(equal_size(a, b) is None for a, b in zip(updates, wanted, strict=True)):
        raise ShapeError(f"updates must have shape {formula} = {format_shape(wanted)}, got {format_shape(updates)}")


class ScatterMethods(Handle[D]):
    """``scatter``, ``scatter_along_axis``, ``scatter_nd``."""

    __slots__ = ()

    def scatter(
        self,
        updates: Operand[D],
        indices: Indices,
        mode: ScatterMode,
        axis: int,
        *,
        out_of_bounds: OutOfBounds | None = None,
        unique_indices: bool = False,
    ) -> Tensor[D]:
        """Combine slices of ``updates`` into slices along ``axis``. Swift: ``scatter(updates:indices:mode:axis:)``

        ``result[p, indices[i], q] = self[p, indices[i], q] (mode) updates[p, i, q]``. With ``ScatterMode.UPDATE`` and repeated
        indices the last update in row-major order of ``indices`` wins on CPU, and any one of them on other devices; the other
        modes accumulate. Sums and products of 16-bit floats are made in float32 and rounded once. ``DIVIDE`` divides once, by
        the product of a place's updates. NaN wins in ``MAXIMUM`` and ``MINIMUM``. JAX has a gradient with respect to the
        updates of ``MULTIPLY`` and ``DIVIDE`` only with ``unique_indices``.

        Args:
            updates: shape ``D[:axis] + I + D[axis+1:]``, the dtype of ``self``.
            indices: integers of any type in [-n, n), n the size of ``axis``.
            mode: how an update meets the old value.
            axis: an axis of ``self``.
            out_of_bounds: ``"raise"``, ``"clip"``, ``"drop"`` (skip the update) or ``"unchecked"``; None takes the graph's
                option.
            unique_indices: a promise that no place is written twice, which lets accelerators write in any order.

        >>> def counts(b):
        ...     return b.constant(values=[0, 0, 0]).scatter([1, 1, 1], [2, 0, 2], bg.ScatterMode.ADD, axis=0)
        >>> bg.make_context(counts)()
        Array([1, 0, 2], dtype=int32)

        Raises:
            ShapeError: the shape of ``updates`` or the axis does not fit.
            DTypeError: ``updates`` has another dtype, the indices are not integers, or the mode does not suit the dtype.
            IndexOutOfBoundsError: a constant index is outside the axis; other indices are checked when the graph runs.
        """
        rule = index_rule(self, out_of_bounds, scatter=True)
        op = Scatter(_mode(mode), as_integer(axis, "axis"), unique_indices=unique_indices, **rule)
        return emit_indexed(self, op, indices, updates)

    def scatter_along_axis(
        self,
        updates: Operand[D],
        indices: Indices,
        mode: ScatterMode,
        axis: int,
        *,
        out_of_bounds: OutOfBounds | None = None,
        unique_indices: bool = False,
    ) -> Tensor[D]:
        """Combine each update into one place along ``axis``. Swift: ``scatterAlongAxis(updates:indices:mode:axis:)``

        ``result[p, indices[p, j, q], q] = self[p, indices[p, j, q], q] (mode) updates[p, j, q]``. ``updates`` and ``indices``
        have one shape, equal to that of ``self`` off the axis. Repeated indices, NaN and 16-bit floats: see :meth:`scatter`.

        >>> def mark(b):
        ...     zeros = b.constant(values=[[0, 0], [0, 0]])
        ...     return zeros.scatter_along_axis([[7], [8]], [[1], [0]], bg.ScatterMode.UPDATE, axis=1)
        >>> bg.make_context(mark)()
        Array([[0, 7],
               [8, 0]], dtype=int32)
        """
        rule = index_rule(self, out_of_bounds, scatter=True)
        op = ScatterAlongAxis(_mode(mode), as_integer(axis, "axis"), unique_indices=unique_indices, **rule)
        return emit_indexed(self, op, indices, updates)

    def scatter_nd(
        self,
        updates: Operand[D],
        indices: Indices,
        mode: ScatterMode,
        *,
        out_of_bounds: OutOfBounds | None = None,
        unique_indices: bool = False,
    ) -> Tensor[D]:
        """Combine slices into the places that index vectors name. Swift: ``scatterND(updates:indices:mode:)``

        The last axis of ``indices``, of size k, holds vectors that address the first k axes:
        ``result[*indices[i]] = self[*indices[i]] (mode) updates[i]``. ``updates`` has shape ``I[:-1] + D[k:]``. Repeated
        indices, NaN and 16-bit floats: see :meth:`scatter`.

        >>> def mark(b):
        ...     return b.constant(values=[[0, 0], [0, 0]]).scatter_nd([7, 8], [[0, 1], [-1, 0]], bg.ScatterMode.UPDATE)
        >>> bg.make_context(mark)()
        Array([[0, 7],
               [8, 0]], dtype=int32)
        """
        op = ScatterND(_mode(mode), unique_indices=unique_indices, **index_rule(self, out_of_bounds, scatter=True))
        return emit_indexed(self, op, indices, updates)


def _mode(mode: object) -> ScatterMode:
    if not isinstance(mode, ScatterMode):
        raise ParameterError(f"mode must be a ScatterMode, such as ScatterMode.ADD, got {mode!r}")
    return mode
