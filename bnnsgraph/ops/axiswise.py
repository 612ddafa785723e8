"""Along one axis: where its extremes are, its running sum, and its softmax."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bnnsgraph.dtypes import Floating, Int32, Number
from bnnsgraph.errors import ShapeError
from bnnsgraph.frozen import frozen
from bnnsgraph.graph import Op
from bnnsgraph.handle import D, F, Handle
from bnnsgraph.spec import TensorSpec, as_integer, normalize_axis, reduced, require_dtype
from bnnsgraph.xla import accumulator, jnp, lax, limits

if TYPE_CHECKING:
    import jax

    from bnnsgraph.tensor import Tensor


@frozen
class ArgExtremum(Op):
    """Where an extremum is along one axis; of several equal ones, and of several NaN, the first."""

    axis: int
    keep_dimension: bool = False

    def infer(self, x: TensorSpec) -> TensorSpec:
        require_dtype(x, Number)
        axis = normalize_axis(self.axis, x.rank)
        size = x.shape[axis]
        if size == 0:
            raise ShapeError("axis must have at least one element, got size 0")
        if isinstance(size, int) and size > 2**31:
            raise ShapeError(f"axis must have at most 2**31 elements, which an int32 can count, got size {size}")
        return TensorSpec(Int32, reduced(x.shape, (axis,), self.keep_dimension))

    def lower(self, x: jax.Array) -> jax.Array:
        axis = normalize_axis(self.axis, x.ndim)
        places = lax.broadcasted_iota(jnp.int32, x.shape, axis)
        start = (np.array(self.worst(x.dtype), x.dtype), np.int32(2**31 - 1))
        index = lax.reduce((lax.stop_gradient(x), places), start, self.prefer, (axis,))[1]
        return lax.expand_dims(index, [axis]) if self.keep_dimension else index

    def prefer(self, one: tuple[jax.Array, jax.Array], other: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        """The better of two (value, index) pairs, whichever comes first: XLA reduces in any order."""
        (a, i), (b, j) = one, other
        a_nan, b_nan = a != a, b != b
        better = self.beats(a, b) | (a_nan & ~b_nan)
        same = (a == b) | (a_nan & b_nan)
        chosen = better | (same & (i < j))
        return lax.select(chosen, a, b), lax.select(chosen, i, j)

    def worst(self, dtype: Any) -> Any:
        """The value that no other is worse than."""
        raise NotImplementedError

    def beats(self, a: jax.Array, b: jax.Array) -> jax.Array:
        """Whether ``a`` is the better value."""
        raise NotImplementedError


@frozen
class ArgMax(ArgExtremum):
    def worst(self, dtype: Any) -> Any:
        return limits(dtype)[0]

    def beats(self, a: jax.Array, b: jax.Array) -> jax.Array:
        return a > b


@frozen
class ArgMin(ArgExtremum):
    def worst(self, dtype: Any) -> Any:
        return limits(dtype)[1]

    def beats(self, a: jax.Array, b: jax.Array) -> jax.Array:
        return a < b


@frozen
class CumulativeSum(Op):
    axis: int

    def infer(self, x: TensorSpec) -> TensorSpec:
        require_dtype(x, Number)
        normalize_axis(self.axis, x.rank)
        return x

    def lower(self, x: jax.Array) -> jax.Array:
        return lax.cumsum(x.astype(accumulator(x.dtype)), normalize_axis(self.axis, x.ndim)).astype(x.dtype)


@frozen
class Exponential(Op):
    """Softmax and its logarithm."""

    axis: int

    def infer(self, x: TensorSpec) -> TensorSpec:
        require_dtype(x, Floating)
        normalize_axis(self.axis, x.rank)
        return x

    def lower(self, x: jax.Array) -> jax.Array:
        axis = normalize_axis(self.axis, x.ndim)
        wide = x.astype(accumulator(x.dtype))
        top = lax.expand_dims(lax.reduce_max(wide, (axis,)), (axis,))
        return self.compute(wide - lax.stop_gradient(top), axis).astype(x.dtype)

    def compute(self, x: jax.Array, axis: int) -> jax.Array:
        """The result for elements of which the largest is 0."""
        raise NotImplementedError


@frozen
class Softmax(Exponential):
    def compute(self, x: jax.Array, axis: int) -> jax.Array:
        powers = lax.exp(x)
        return powers / jnp.sum(powers, axis, keepdims=True)


@frozen
class LogSoftmax(Exponential):
    def compute(self, x: jax.Array, axis: int) -> jax.Array:
        return x - lax.log(jnp.sum(lax.exp(x), axis, keepdims=True))


class AxiswiseMethods(Handle[D]):
    """``arg_max``, ``arg_min``, ``cumulative_sum``, ``softmax`` and ``log_softmax``."""

    __slots__ = ()

    def arg_max(self, axis: int, *, keep_dimension: bool = False) -> Tensor[Int32]:
        """The index of the largest element along ``axis``, as Int32. Swift: ``argMax(axis:keepDimension:)``

        The first of equal elements. NaN counts as larger than all numbers, so the first NaN wins, as in NumPy.

        >>> bg.make_context(lambda b: b.constant(values=[[1, 7, 7], [0, -1, -2]]).arg_max(1))()
        Array([1, 0], dtype=int32)

        Raises:
            ShapeError: the axis has size 0, or the tensor rank 0.
        """
        return self._emit(ArgMax(as_integer(axis, "axis"), keep_dimension))

    def arg_min(self, axis: int, *, keep_dimension: bool = False) -> Tensor[Int32]:
        """The index of the smallest element along ``axis``, as Int32. Swift: ``argMin(axis:keepDimension:)``

        The first of equal elements. NaN counts as smaller than all numbers, so the first NaN wins, as in NumPy.

        >>> bg.make_context(lambda b: b.constant(values=[[1, 7, 1], [0, -1, np.nan]]).arg_min(1))()
        Array([0, 2], dtype=int32)

        Raises:
            ShapeError: the axis has size 0, or the tensor rank 0.
        """
        return self._emit(ArgMin(as_integer(axis, "axis"), keep_dimension))

    def cumulative_sum(self, axis: int) -> Tensor[D]:
        """The running sum along ``axis``, each element included. Swift: ``cumulativeSum(axis:)``

        ``result[i] = x[0] + ... + x[i]``; the shape stays. 16-bit floats are added in float32 and rounded once.
        Integers wrap modulo 2**bits. From a NaN on, all sums are NaN.

        >>> bg.make_context(lambda b: b.constant(values=[[1, 2, 3], [4, 5, 6]]).cumulative_sum(1))()
        Array([[ 1,  3,  6],
               [ 4,  9, 15]], dtype=int32)

        Raises:
            ShapeError: the axis is outside the tensor, or the tensor has rank 0.
        """
        return self._emit(CumulativeSum(as_integer(axis, "axis")))

    def softmax(self: Handle[F], axis: int) -> Tensor[F]:
        """``e**x / sum(e**x)`` along ``axis``. Swift: ``softmax(axis:)``

        The largest element is taken out of the exponential, so that it cannot overflow; 16-bit floats are computed in float32
        and rounded once. An axis with NaN or inf, or with nothing but -inf, gives NaN everywhere, as the formula does in NumPy
        and in JAX: a masked row needs one element that is kept.

        >>> bg.make_context(lambda b: b.constant(values=[[1000.0, 1000.0], [0.0, -np.inf]]).softmax(1))()
        Array([[0.5, 0.5],
               [1. , 0. ]], dtype=float32)

        Raises:
            ShapeError: the axis is outside the tensor, or the tensor has rank 0.
        """
        return self._emit(Softmax(as_integer(axis, "axis")))

    def log_softmax(self: Handle[F], axis: int) -> Tensor[F]:
        """``x - log(sum(e**x))`` along ``axis``, the logarithm of :meth:`softmax`. Swift: ``logSoftmax(axis:)``

        Computed as :meth:`softmax` is. An axis with NaN or inf, or with nothing but -inf, gives NaN everywhere.

        >>> bg.make_context(lambda b: b.constant(values=[[1000.0, 1000.0], [0.0, -np.inf]]).log_softmax(1))()
        Array([[-0.6931472, -0.6931472],
               [ 0.       ,       -inf]], dtype=float32)

        Raises:
            ShapeError: the axis is outside the tensor, or the tensor has rank 0.
        """
        return self._emit(LogSoftmax(as_integer(axis, "axis")))
