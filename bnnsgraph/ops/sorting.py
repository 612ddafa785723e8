"""Elements in order: ``top_k``, ``arg_sort``, ``sort``.

One order for all three, on every device: NaN is greater than every number, -0 equals 0, and equal elements keep the order in
which they stand.
"""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, cast

import numpy as np

from bnnsgraph.dtypes import Int32, Number
from bnnsgraph.errors import ParameterError, ShapeError
from bnnsgraph.frozen import frozen
from bnnsgraph.graph import Op
from bnnsgraph.handle import D, Handle
from bnnsgraph.spec import TensorSpec, as_integer, is_static, normalize_axis, require_dtype
from bnnsgraph.xla import by_platform, jnp, lax, limits, nan_and_extremum

if TYPE_CHECKING:
    import jax

    from bnnsgraph.tensor import Tensor


SIGN, INFINITY, NAN = np.int32(-(2**31)), np.int32(0x7F800000), np.int32(0x7FC00000)
"""Bits of float32."""

MANY = 1 << 15
"""From so many elements on the first of long rows are found by blocks on the CPU."""


class SortOrder(enum.Enum):
    """Which element comes first (Swift ``Builder.SortOrder``).

    >>> bg.SortOrder.ASCENDING.value
    'smallest first'
    """

    ASCENDING = "smallest first"
    DESCENDING = "largest first"

    def __repr__(self) -> str:
        return f"SortOrder.{self.name}"


class TopKResult(NamedTuple, Generic[D]):
    """What ``top_k`` gives."""

    values: Tensor[D]
    indices: Tensor[Int32]


@frozen
class Ordering(Op):
    """The base: an order of numbers along one axis, with Int32 positions."""

    axis: int

    ends_fusion: ClassVar[bool] = True

    def along(self, x: TensorSpec) -> int:
        """The axis, counted from the front."""
        require_dtype(x, Number)
        axis = normalize_axis(self.axis, x.rank)
        size = x.shape[axis]
        if isinstance(size, int) and size > 2**31:
            raise ShapeError(f"positions must fit int32, got size {size} on axis {axis}")
        return axis


@frozen
class TopK(Ordering):
    k: int
    find_largest: bool = True

    def infer(self, x: TensorSpec) -> tuple[TensorSpec, TensorSpec]:
        axis = self.along(x)
        size = x.shape[axis]
        if self.k < 0:
            raise ParameterError(f"k must be at least 0, got {self.k}")
        if isinstance(size, int) and self.k > size:
            raise ShapeError(f"k must be at most the size of axis {axis}, {size}, got {self.k}")
        values = x.with_shape((*x.shape[:axis], self.k, *x.shape[axis + 1 :]))
        return values, values.with_dtype(Int32)

    def lower(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        axis = normalize_axis(self.axis, x.ndim)
        rows = jnp.moveaxis(x, axis, -1)
        positions = self.positions(lax.stop_gradient(rows))
        values = jnp.take_along_axis(rows, positions, -1, mode="promise_in_bounds")
        return jnp.moveaxis(values, -1, axis), jnp.moveaxis(positions, -1, axis)

    def positions(self, x: jax.Array) -> jax.Array:
        """Where the first ``k`` of each row stand.

        XLA has a fast selection for float32 keys without NaN. Narrower types have such keys; float32 itself has them unless
        a NaN is met while running, and on the CPU NaN has its place in XLA's order; wider types are sorted.
        """
        width = _block(x.shape, self.k)
        if width is not None:
            return by_platform(x, cpu=functools.partial(self.in_blocks, width), default=self.in_whole)
        if x.dtype == jnp.float32 and self.k:
            return by_platform(x, cpu=self.in_total_order, default=self.in_whole)
        return self.in_whole(x)

    def in_total_order(self, x: jax.Array) -> jax.Array:
        """The first positions of rows of float32, NaN among them: the greatest key of all, or the least."""
        bits = lax.bitcast_convert_type(x if self.find_largest else -x, jnp.int32)
        magnitude = bits & ~SIGN
        keys = jnp.where(magnitude > INFINITY, NAN if self.find_largest else NAN | SIGN, jnp.where(magnitude == 0, 0, bits))
        return self.first(lax.bitcast_convert_type(keys, jnp.float32))

    def in_whole(self, x: jax.Array) -> jax.Array:
        """The first positions of rows of any length."""

        def select(x: jax.Array) -> jax.Array:
            return self.first(self.keys(x))

        if x.dtype != jnp.float32 or not self.k:
            return select(x)
        return cast("jax.Array", lax.cond(jnp.any(jnp.isnan(x)), self.sort, select, x))

    def in_blocks(self, width: int, x: jax.Array) -> jax.Array:
        """The first positions of long rows, which stand in the blocks that have the first ``k`` of the blocks' extremes.

        The extreme of a block that is left out comes after ``k`` others, each of which stands before it as an element: it is
        further in front, or equal and in an earlier block.
        """
        blocks = (*x.shape[:-1], x.shape[-1] // width, width)

        def cut(x: jax.Array) -> jax.Array:
            return self.keys(x).reshape(blocks)

        keys = cut(x)
        lowest, highest = limits(keys.dtype)
        largest = self.find_largest or _is_fast(x.dtype)
        last, front = (lowest, lax.max) if largest else (highest, lax.min)
        nan, extremes = nan_and_extremum(keys, last, front, (keys.ndim - 1,))

        def select(x: jax.Array, extremes: jax.Array) -> jax.Array:
            chosen = lax.sort(self.first(extremes))
            rows = jnp.take_along_axis(cut(x), chosen[..., None], -2, mode="promise_in_bounds")
            found = self.first(rows.reshape(*x.shape[:-1], self.k * width))
            block = jnp.take_along_axis(chosen, found // width, -1, mode="promise_in_bounds")
            return block * width + found % width

        def sort(x: jax.Array, extremes: jax.Array) -> jax.Array:
            del extremes
            return self.sort(x)

        return cast("jax.Array", lax.cond(jnp.any(nan), sort, select, x, extremes))

    def keys(self, x: jax.Array) -> jax.Array:
        """What is compared: float32 of which the largest come first, where the type allows; otherwise the numbers."""
        if not _is_fast(x.dtype):
            return x
        keys = _keys(x) if x.dtype.itemsize < 4 else x
        keys = keys if self.find_largest else -keys
        return jnp.where(keys == 0, jnp.zeros_like(keys), keys)  # of -0 and 0 neither comes first

    def first(self, keys: jax.Array) -> jax.Array:
        """The first positions by keys."""
        return lax.top_k(keys, self.k)[1] if keys.dtype == jnp.float32 and self.k else self.sort(keys)

    def sort(self, x: jax.Array) -> jax.Array:
        """The first positions of whole sorted rows."""
        return lax.slice_in_dim(_sorted(x, x.ndim - 1, descending=self.find_largest)[1], 0, self.k, axis=-1)


def _is_fast(dtype: Any) -> bool:
    """Whether numbers of the dtype have float32 keys; see :meth:`TopK.positions`."""
    return dtype.itemsize < 4 or dtype == jnp.float32


def _block(shape: Sequence[Any], k: int) -> int | None:
    """The width of blocks that leave a tenth or less of long rows to order; None where there is none."""
    if not k or not is_static(tuple(shape)) or math.prod(shape) < MANY:
        return None
    widths = [width for width in range(16, shape[-1] // k) if shape[-1] % width == 0]
    best = min(widths, key=lambda width: shape[-1] // width + k * width, default=None)
    return best if best and shape[-1] // best + k * best <= shape[-1] // 10 else None


def _keys(x: jax.Array) -> jax.Array:
    """Numbers of at most 16 bits as float32 in the same order, NaN last."""
    keys = x.astype(jnp.float32)
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return keys
    largest = jnp.float32(jnp.finfo(jnp.float32).max)  # greater than any finite number of 16 bits
    keys = jnp.where(keys == jnp.inf, largest, keys)
    return jnp.where(jnp.isnan(keys), jnp.float32(jnp.inf), keys)


def _sorted(x: jax.Array, axis: int, *, descending: bool) -> tuple[jax.Array, jax.Array]:
    """The elements in order, and where they stood."""
    positions = lax.broadcasted_iota(jnp.int32, x.shape, axis)
    if not descending:
        values, positions = lax.sort((x, positions), dimension=axis, is_stable=True, num_keys=1)
        return values, positions
    # Backwards, so that equal elements end up in the order in which they stand; no number is negated
    backwards = lax.rev(x, (axis,)), lax.rev(positions, (axis,))
    values, positions = lax.sort(backwards, dimension=axis, is_stable=True, num_keys=1)
    return lax.rev(values, (axis,)), lax.rev(positions, (axis,))


@frozen
class ArgSort(Ordering):
    sort_order: SortOrder = SortOrder.ASCENDING

    def infer(self, x: TensorSpec) -> TensorSpec:
        self.along(x)
        return x.with_dtype(Int32)

    def lower(self, x: jax.Array) -> jax.Array:
        axis = normalize_axis(self.axis, x.ndim)
        return _sorted(lax.stop_gradient(x), axis, descending=self.sort_order is SortOrder.DESCENDING)[1]


@frozen
class Sort(Ordering):
    sort_order: SortOrder = SortOrder.ASCENDING

    def infer(self, x: TensorSpec) -> TensorSpec:
        self.along(x)
        return x

    def lower(self, x: jax.Array) -> jax.Array:
        axis = normalize_axis(self.axis, x.ndim)
        if self.sort_order is SortOrder.ASCENDING:
            return lax.sort(x, dimension=axis, is_stable=True)
        return lax.rev(lax.sort(lax.rev(x, (axis,)), dimension=axis, is_stable=True), (axis,))


class SortingMethods(Handle[D]):
    """``top_k``, ``arg_sort``, ``sort``."""

    __slots__ = ()

    def top_k(self, k: int, axis: int, *, find_largest: bool = True) -> TopKResult[D]:
        """The ``k`` largest or smallest numbers along ``axis``, best first. Swift: ``topK(_:axis:findLargest:)``

        Equal elements come in the order in which they stand. NaN is greater than every number: first among the largest, last
        among the smallest. -0 equals 0.

        Returns:
            ``values``, and their Int32 positions ``indices``; both have size ``k`` on the axis.

        >>> def best(b):
        ...     return b.constant(values=[1.0, 4.0, 2.0, 4.0]).top_k(3, axis=0)
        >>> bg.make_context(best)()
        Results(output_0=Array([4., 4., 2.], dtype=float32), output_1=Array([1, 3, 2], dtype=int32))

        Raises:
            ShapeError: ``k`` is larger than the axis.
        """
        return TopKResult(*self._emit_many(TopK(as_integer(axis, "axis"), as_integer(k, "k"), find_largest)))

    def arg_sort(self, axis: int, sort_order: SortOrder = SortOrder.ASCENDING) -> Tensor[Int32]:
        """The Int32 positions that put the numbers along ``axis`` in order. Swift: ``argSort(axis:sortOrder:)``

        Equal elements keep their order, in both directions. NaN is greater than every number. -0 equals 0.

        >>> bg.make_context(lambda b: b.constant(values=[1.0, 4.0, 2.0, 3.0]).arg_sort(axis=0))()
        Array([0, 2, 3, 1], dtype=int32)
        """
        return self._emit(ArgSort(as_integer(axis, "axis"), _order(sort_order)))

    def sort(self, axis: int, sort_order: SortOrder = SortOrder.ASCENDING) -> Tensor[D]:
        """The numbers along ``axis`` in order. Not in Apple's builder.

        NaN is greater than every number. -0 equals 0.

        >>> bg.make_context(lambda b: b.constant(values=[1, 4, 2]).sort(axis=0, sort_order=bg.SortOrder.DESCENDING))()
        Array([4, 2, 1], dtype=int32)
        """
        return self._emit(Sort(as_integer(axis, "axis"), _order(sort_order)))


def _order(order: object) -> SortOrder:
    if not isinstance(order, SortOrder):
        raise ParameterError(f"sort_order must be a SortOrder, such as SortOrder.DESCENDING, got {order!r}")
    return order
