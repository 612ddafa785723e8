"""Reading elements by index: ``gather``, ``gather_along_axis``, ``gather_nd``.

Each call is one ``lax.gather``. Shapes are written with D for the tensor's, I for the indices', and b for the leading axes
that both share (``batch_dimension_count``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from bnnsgraph.errors import ShapeError
from bnnsgraph.frozen import frozen
from bnnsgraph.handle import D, Handle
from bnnsgraph.indices import IndexOp, facts, missing_value, resolve
from bnnsgraph.ops.indexed import Indices, along_axis_shape, batch_sizes, emit_indexed, index_rule, nd_depth
from bnnsgraph.options import OutOfBounds
from bnnsgraph.spec import Shape, TensorSpec, as_integer, normalize_axis
from bnnsgraph.xla import jnp, lax

if TYPE_CHECKING:
    import jax

    from bnnsgraph.tensor import Tensor


FAR = 4 << 20
"""Bytes of a table beyond the caches of one processor."""


@frozen
class GatherOp(IndexOp):
    """The base of the three: what they share is the call of ``lax.gather``."""

    cpu_level: ClassVar[int | None] = 2

    def read(self, x: jax.Array, indices: jax.Array, offset_dims: tuple[int, ...], batch: tuple[int, ...]) -> jax.Array:
        """Gather whole slices: size 1 on addressed and batch axes, the full size on all others."""
        axes = self.addressed(x.shape, indices.shape)
        sizes = self.sizes(x, indices)
        missing = missing_value(self.out_of_bounds, x.dtype)
        if any(isinstance(size, int) and size == 0 for size in sizes):  # nothing to read: lax.gather refuses such slices
            shape = list(indices.shape[:-1])
            whole = [size for axis, size in enumerate(x.shape) if axis not in axes and axis not in batch]
            for place, size in zip(offset_dims, whole, strict=True):
                shape.insert(place, size)
            return jnp.full(shape, missing, x.dtype)
        starts, mode = resolve(indices, sizes, self.out_of_bounds, self.negative_indices)
        numbers = lax.GatherDimensionNumbers(
            offset_dims=offset_dims,
            collapsed_slice_dims=axes,
            start_index_map=axes,
            operand_batching_dims=batch,
            start_indices_batching_dims=batch,
        )
        slice_sizes = tuple(1 if axis in axes or axis in batch else size for axis, size in enumerate(x.shape))
        known = facts(starts, sizes, batch)
        return lax.gather(x, starts, numbers, slice_sizes, mode=mode, fill_value=missing, **known)


@frozen
class Gather(GatherOp):
    axis: int
    batch_dimension_count: int = 0

    def infer(self, x: TensorSpec, indices: TensorSpec) -> TensorSpec:
        axis, batch = self.resolved(x.shape, indices.shape)
        shared = batch_sizes(x.shape, indices.shape, batch)
        self.require_indices(x, indices)
        return x.with_shape((*shared, *x.shape[batch:axis], *indices.shape[batch:], *x.shape[axis + 1 :]))

    def resolved(self, x: Shape, indices: Shape) -> tuple[int, int]:
        """Axis and batch count, both counted from the front."""
        axis = normalize_axis(self.axis, len(x))
        rank = len(indices)
        batch = self.batch_dimension_count
        if not -rank <= batch <= rank:
            raise ShapeError(f"batch_dimension_count must be in [{-rank}, {rank}] for indices of rank {rank}, got {batch}")
        batch = batch + rank if batch < 0 else batch
        if batch > axis:
            raise ShapeError(f"batch_dimension_count must be at most axis, {axis}, got {batch}")
        return axis, batch

    def addressed(self, x: Shape, indices: Shape) -> tuple[int, ...]:
        return (normalize_axis(self.axis, len(x)),)

    def lower(self, x: jax.Array, indices: jax.Array) -> jax.Array:
        axis, batch = self.resolved(x.shape, indices.shape)
        after = axis + indices.ndim - batch  # where the axes behind the gathered one begin in the result
        offset_dims = (*range(batch, axis), *range(after, after + x.ndim - axis - 1))
        return self.read(x, indices[..., None], offset_dims, tuple(range(batch)))

    def lower_beside_check(self, *operands: jax.Array) -> jax.Array:
        """All axes before the gathered one as batch axes.

        XLA's CPU compiler reads slices that extend over them in another order of axes, and copies the result once more where
        the program has several. Gradients would be slower than that of ``lower``, and so are single elements of a table that
        no cache holds.
        """
        x, indices = operands
        axis, batch = self.resolved(x.shape, indices.shape)
        if axis == x.ndim - 1 and x.nbytes > FAR:
            return super().lower_beside_check(x, indices)
        shape = (*x.shape[:axis], *indices.shape[batch:])
        spread = lax.broadcast_in_dim(indices, shape, (*range(batch), *range(axis, len(shape))))
        return Gather(axis, axis, out_of_bounds="unchecked", negative_indices=self.negative_indices).lower(x, spread)


@frozen
class GatherAlongAxis(GatherOp):
    axis: int

    def infer(self, x: TensorSpec, indices: TensorSpec) -> TensorSpec:
        axis = normalize_axis(self.axis, x.rank)
        shape = along_axis_shape(x.shape, indices.shape, axis, "indices")
        self.require_indices(x, indices)
        return x.with_shape(shape)

    def addressed(self, x: Shape, indices: Shape) -> tuple[int, ...]:
        return (normalize_axis(self.axis, len(x)),)

    def lower(self, x: jax.Array, indices: jax.Array) -> jax.Array:
        axis = normalize_axis(self.axis, x.ndim)
        others = tuple(other for other in range(x.ndim) if other != axis)
        return self.read(x, indices[..., None], (), others)


@frozen
class GatherND(GatherOp):
    batch_dimension_count: int = 0

    def infer(self, x: TensorSpec, indices: TensorSpec) -> TensorSpec:
        depth = nd_depth(x.shape, indices.shape, self.batch_dimension_count)
        shared = batch_sizes(x.shape, indices.shape, self.batch_dimension_count)
        self.require_indices(x, indices)
        batch = self.batch_dimension_count
        return x.with_shape((*shared, *indices.shape[batch:-1], *x.shape[batch + depth :]))

    def addressed(self, x: Shape, indices: Shape) -> tuple[int, ...]:
        return tuple(range(self.batch_dimension_count, self.batch_dimension_count + cast(int, indices[-1])))

    def lower(self, x: jax.Array, indices: jax.Array) -> jax.Array:
        batch = self.batch_dimension_count
        rank = indices.ndim - 1 + x.ndim - batch - indices.shape[-1]
        return self.read(x, indices, tuple(range(indices.ndim - 1, rank)), tuple(range(batch)))


class GatherMethods(Handle[D]):
    """``gather``, ``gather_along_axis``, ``gather_nd``."""

    __slots__ = ()

    def gather(
        self,
        indices: Indices,
        axis: int,
        batch_dimension_count: int = 0,
        *,
        out_of_bounds: OutOfBounds | None = None,
    ) -> Tensor[D]:
        """Slices along ``axis``, chosen by index. Swift: ``gather(indices:axis:batchDimensionCount:)``

        ``result[p, i, q] = self[p, indices[i], q]``, with the first ``batch_dimension_count`` (b) axes shared by both. The
        result has shape ``D[:axis] + I[b:] + D[axis+1:]``; indices of rank 0 remove the axis.

        Args:
            indices: integers of any type in [-n, n), n the size of ``axis``; negative ones count from the end.
            axis: an axis of ``self``, counted from its first; negative ones count from the end.
            batch_dimension_count: how many leading axes ``self`` and ``indices`` share; at most ``axis``; a negative one means
                + rank(indices). Their sizes must be equal.
            out_of_bounds: ``"raise"``, ``"clip"``, ``fill(value)`` or ``"unchecked"``; None takes the graph's option.

        >>> def rows(b):
        ...     return b.constant(values=[[1.0, 2.0], [3.0, 4.0]]).gather([1, -1, 0], axis=0)
        >>> bg.make_context(rows)()
        Array([[3., 4.],
               [3., 4.],
               [1., 2.]], dtype=float32)

        Raises:
            ShapeError: axis, batch count or batch sizes do not fit.
            DTypeError: the indices are not integers.
            IndexOutOfBoundsError: a constant index is outside the axis; other indices are checked when the graph runs.
        """
        batch = as_integer(batch_dimension_count, "batch_dimension_count")
        op = Gather(as_integer(axis, "axis"), batch, **index_rule(self, out_of_bounds, scatter=False))
        return emit_indexed(self, op, indices)

    def gather_along_axis(self, indices: Indices, axis: int, *, out_of_bounds: OutOfBounds | None = None) -> Tensor[D]:
        """Elements along ``axis``, one for each index. Swift: ``gatherAlongAxis(indices:axis:)``

        ``result[p, j, q] = self[p, indices[p, j, q], q]``, as ``numpy.take_along_axis`` without its broadcasting: the sizes
        off the axis must be equal. The result has the shape of ``indices``.

        Args:
            indices: integers of any type in [-n, n), of the rank of ``self``.
            axis: an axis of ``self``.
            out_of_bounds: ``"raise"``, ``"clip"``, ``fill(value)`` or ``"unchecked"``; None takes the graph's option.

        >>> def largest(b):
        ...     return b.constant(values=[[1.0, 2.0], [4.0, 3.0]]).gather_along_axis([[1], [0]], axis=1)
        >>> bg.make_context(largest)()
        Array([[2.],
               [4.]], dtype=float32)
        """
        op = GatherAlongAxis(as_integer(axis, "axis"), **index_rule(self, out_of_bounds, scatter=False))
        return emit_indexed(self, op, indices)

    def gather_nd(
        self,
        indices: Indices,
        batch_dimension_count: int = 0,
        *,
        out_of_bounds: OutOfBounds | None = None,
    ) -> Tensor[D]:
        """Slices chosen by index vectors. Swift: ``gatherND(indices:batchDimensionCount:)``

        The last axis of ``indices``, of size k, holds vectors that address the k axes after the b batch axes:
        ``result[p, i] = self[p, *indices[p, i]]``. The result has shape ``I[:-1] + D[b+k:]``; k = 0 copies the whole tensor
        for each vector. This is the rule of OpenVINO's GatherND-8, ONNX, TensorFlow and Core ML.

        Args:
            indices: integers of any type, each in [-n, n) for the axis that its component addresses; 0 <= k <= rank - b.
            batch_dimension_count: how many leading axes ``self`` and ``indices`` share; their sizes must be equal.
            out_of_bounds: ``"raise"``, ``"clip"``, ``fill(value)`` or ``"unchecked"``; None takes the graph's option.

        >>> def corners(b):
        ...     return b.constant(values=[[1.0, 2.0], [3.0, 4.0]]).gather_nd([[0, 0], [-1, -1]])
        >>> bg.make_context(corners)()
        Array([1., 4.], dtype=float32)
        """
        batch = as_integer(batch_dimension_count, "batch_dimension_count")
        return emit_indexed(self, GatherND(batch, **index_rule(self, out_of_bounds, scatter=False)), indices)
