"""Many elements to one: over some axes, over all (``axes=None``), or over none (``axes=[]``)."""

from __future__ import annotations

import math
from types import EllipsisType
from typing import TYPE_CHECKING, ClassVar, overload

from bnnsgraph.dtypes import Floating, Number, Scalar
from bnnsgraph.errors import ParameterError, ShapeError
from bnnsgraph.frozen import frozen
from bnnsgraph.graph import Op
from bnnsgraph.handle import Axes, D, F, Handle
from bnnsgraph.spec import EPSILON, TensorSpec, as_axes, as_epsilon, normalize_axes, reduced, require_dtype
from bnnsgraph.xla import accumulator, by_platform, jax, jnp, lax, nan_and_extremum

if TYPE_CHECKING:
    from bnnsgraph.tensor import Tensor


@frozen
class Reduce(Op):
    """The base of the reductions: the dtype stays, the axes go or become 1. 16-bit floats are widened, and rounded once."""

    axes: tuple[int, ...] | None
    keep_dimensions: bool = False

    group: ClassVar[type[Scalar]] = Number
    """The element types that the operation takes."""

    def infer(self, x: TensorSpec) -> TensorSpec:
        require_dtype(x, self.group)
        return x.with_shape(reduced(x.shape, self.over(x.rank), self.keep_dimensions))

    def over(self, rank: int) -> tuple[int, ...]:
        """The reduced axes, counted from the front."""
        return tuple(range(rank)) if self.axes is None else normalize_axes(self.axes, rank)

    def lower(self, x: jax.Array) -> jax.Array:
        axes = self.over(x.ndim)
        kept = self.compute(x.astype(accumulator(x.dtype)), axes).astype(x.dtype)
        return kept if self.keep_dimensions else lax.squeeze(kept, axes)

    def compute(self, x: jax.Array, axes: tuple[int, ...]) -> jax.Array:
        """The reduction, with axes of size 1 in the place of ``axes``."""
        raise NotImplementedError


@frozen
class ReduceSum(Reduce):
    def compute(self, x: jax.Array, axes: tuple[int, ...]) -> jax.Array:
        return _sum(x, axes)


@frozen
class ReduceL1Norm(Reduce):
    def compute(self, x: jax.Array, axes: tuple[int, ...]) -> jax.Array:
        return _sum(jnp.abs(x), axes)


@frozen
class ReduceSumOfSquares(Reduce):
    def compute(self, x: jax.Array, axes: tuple[int, ...]) -> jax.Array:
        return _sum(lax.square(x), axes)


@frozen
class ReduceProduct(Reduce):
    def compute(self, x: jax.Array, axes: tuple[int, ...]) -> jax.Array:
        return jnp.prod(x, axes, dtype=x.dtype, keepdims=True)


@frozen
class FloatReduce(Reduce):
    """A reduction that has no answer among the integers."""

    group = Floating


@frozen
class ReduceMean(FloatReduce):
    def compute(self, x: jax.Array, axes: tuple[int, ...]) -> jax.Array:
        return jnp.mean(x, axes, keepdims=True)


@frozen
class ReduceL2Norm(FloatReduce):
    def compute(self, x: jax.Array, axes: tuple[int, ...]) -> jax.Array:
        squares = _sum(lax.square(x), axes)
        zero = squares == 0  # sqrt has no slope there; the norm's least steep one is 0
        return jnp.where(zero, 0, lax.sqrt(jnp.where(zero, 1, squares)))


@frozen
class ReduceLogSum(FloatReduce):
    def compute(self, x: jax.Array, axes: tuple[int, ...]) -> jax.Array:
        return lax.log(_sum(x, axes))


@frozen
class ReduceLogSumExp(FloatReduce):
    def compute(self, x: jax.Array, axes: tuple[int, ...]) -> jax.Array:
        top = lax.stop_gradient(lax.expand_dims(lax.reduce_max(x, axes), axes))
        top = jnp.where(jnp.isfinite(top), top, 0)
        return lax.log(_sum(lax.exp(x - top), axes)) + top


@frozen
class ReduceExtremum(Reduce):
    """A reduction that an empty axis leaves without a value.

    NaN is looked for apart: XLA's CPU compiler gives reductions of some thousand elements to a library that loses it. Over the
    last axes both are one reduction of pairs there, which takes a third to two thirds of the time.
    """

    start: ClassVar[float]
    """What no element exceeds."""

    def infer(self, x: TensorSpec) -> TensorSpec:
        result = super().infer(x)
        for axis in self.over(x.rank):
            if x.shape[axis] == 0:
                raise ShapeError(f"axes must have at least one element, got size 0 on axis {axis}")
        return result

    def compute(self, x: jax.Array, axes: tuple[int, ...]) -> jax.Array:
        if not jnp.issubdtype(x.dtype, jnp.floating):
            return self.extremum(x, axes)

        def apart(x: jax.Array) -> jax.Array:
            return jnp.where(jnp.any(x != x, axes, keepdims=True), jnp.nan, self.extremum(x, axes))

        def in_pairs(x: jax.Array) -> jax.Array:
            nan, found = nan_and_extremum(x, self.start, self.combine, axes)
            return lax.expand_dims(jnp.where(nan, jnp.nan, found), axes)

        if not axes or sorted(axes) != list(range(x.ndim - len(axes), x.ndim)):
            return apart(x)

        def fast(x: jax.Array) -> jax.Array:
            return by_platform(x, cpu=in_pairs, default=apart)

        def derivative(primals: tuple[jax.Array], tangents: tuple[jax.Array]) -> tuple[jax.Array, jax.Array]:
            return jax.jvp(apart, primals, tangents)  # JAX has none of a reduction of pairs

        found = jax.custom_jvp(fast)
        found.defjvp(derivative)
        return found(x)

    def extremum(self, x: jax.Array, axes: tuple[int, ...]) -> jax.Array:
        """The reduction of anything but NaN."""
        raise NotImplementedError

    def combine(self, a: jax.Array, b: jax.Array) -> jax.Array:
        """Of two elements, neither NaN, one."""
        raise NotImplementedError


@frozen
class ReduceMaximum(ReduceExtremum):
    start = -math.inf

    def combine(self, a: jax.Array, b: jax.Array) -> jax.Array:
        return lax.max(a, b)

    def extremum(self, x: jax.Array, axes: tuple[int, ...]) -> jax.Array:
        return jnp.max(x, axes, keepdims=True)


@frozen
class ReduceMinimum(ReduceExtremum):
    start = math.inf

    def combine(self, a: jax.Array, b: jax.Array) -> jax.Array:
        return lax.min(a, b)

    def extremum(self, x: jax.Array, axes: tuple[int, ...]) -> jax.Array:
        return jnp.min(x, axes, keepdims=True)


@frozen
class L2Normalize(Op):
    epsilon: float = EPSILON

    def infer(self, x: TensorSpec) -> TensorSpec:
        require_dtype(x, Floating)
        if x.rank < 3:
            raise ShapeError(f"x must have rank 3 or more, as the norm runs over its last three axes, got rank {x.rank}")
        return x

    def lower(self, x: jax.Array) -> jax.Array:
        wide = x.astype(accumulator(x.dtype))
        squares = jnp.sum(lax.square(wide), (-3, -2, -1), keepdims=True)
        return (wide * lax.rsqrt(squares + self.epsilon)).astype(x.dtype)


def _sum(x: jax.Array, axes: tuple[int, ...]) -> jax.Array:
    return jnp.sum(x, axes, dtype=x.dtype, keepdims=True)


class ReductionMethods(Handle[D]):
    """``sum`` to ``log_sum_exp``.

    ``axes`` is one axis, several, None for all of them, or ``[]`` for none: then every element is reduced alone.
    """

    __slots__ = ()

    def sum(self, axes: Axes | None, *, keep_dimensions: bool = False) -> Tensor[D]:
        """The sum over ``axes`` (None: all of them). Swift: ``sum(axes:keepDimensions:)``

        16-bit floats are added in float32 and rounded once. Integers wrap modulo 2**bits. An empty sum is 0.

        >>> bg.make_context(lambda b: b.constant(values=[[1.0, 2.0], [3.0, 4.0]]).sum([0]))()
        Array([4., 6.], dtype=float32)
        """
        return self._emit(ReduceSum(_axes(axes), keep_dimensions))

    def mean(self: Handle[F], axes: Axes | None, *, keep_dimensions: bool = False) -> Tensor[F]:
        """The average of floats over ``axes`` (None: all of them). Swift: ``mean(axes:keepDimensions:)``

        16-bit floats are added in float32 and rounded once. An empty mean is NaN.

        >>> bg.make_context(lambda b: b.constant(values=[[1.0, 2.0], [3.0, 4.0]]).mean([1], keep_dimensions=True))()
        Array([[1.5],
               [3.5]], dtype=float32)
        """
        return self._emit(ReduceMean(_axes(axes), keep_dimensions))

    def maximum(self, axes: Axes | None, *, keep_dimensions: bool = False) -> Tensor[D]:
        """The largest element over ``axes`` (None: all of them); NaN if one is NaN. Swift: ``maximum(axes:keepDimensions:)``

        Equal largest elements share the gradient.

        >>> bg.make_context(lambda b: b.constant(values=[[1.0, 2.0], [3.0, 4.0]]).maximum([1]))()
        Array([2., 4.], dtype=float32)

        Raises:
            ShapeError: an axis has size 0.
        """
        return self._emit(ReduceMaximum(_axes(axes), keep_dimensions))

    def minimum(self, axes: Axes | None, *, keep_dimensions: bool = False) -> Tensor[D]:
        """The smallest element over ``axes`` (None: all of them); NaN if one is NaN. Swift: ``minimum(axes:keepDimensions:)``

        Equal smallest elements share the gradient.

        >>> bg.make_context(lambda b: b.constant(values=[[1.0, 2.0], [3.0, 4.0]]).minimum(None))()
        Array(1., dtype=float32)

        Raises:
            ShapeError: an axis has size 0.
        """
        return self._emit(ReduceMinimum(_axes(axes), keep_dimensions))

    def product(self, axes: Axes | None, *, keep_dimensions: bool = False) -> Tensor[D]:
        """The product over ``axes`` (None: all of them). Swift: ``product(axes:keepDimensions:)``

        16-bit floats are multiplied in float32 and rounded once. Integers wrap modulo 2**bits. An empty product is 1.

        >>> bg.make_context(lambda b: b.constant(values=[[1.0, 2.0], [3.0, 4.0]]).product([0]))()
        Array([3., 8.], dtype=float32)
        """
        return self._emit(ReduceProduct(_axes(axes), keep_dimensions))

    def l1_norm(self, axes: Axes | None, *, keep_dimensions: bool = False) -> Tensor[D]:
        """The sum of ``abs(x)`` over ``axes`` (None: all of them). Swift: ``l1Norm(axes:keepDimensions:)``

        Added as by :meth:`sum`; an empty norm is 0.

        >>> bg.make_context(lambda b: b.constant(values=[[1.0, -2.0], [3.0, -4.0]]).l1_norm([0]))()
        Array([4., 6.], dtype=float32)
        """
        return self._emit(ReduceL1Norm(_axes(axes), keep_dimensions))

    @overload
    def l2_norm(self: Handle[F], axes: Axes | None, *, keep_dimensions: bool = ...) -> Tensor[F]: ...
    @overload
    def l2_norm(self: Handle[F], *, epsilon: float = ...) -> Tensor[F]: ...
    def l2_norm(
        self: Handle[F],
        axes: Axes | EllipsisType | None = ...,
        *,
        keep_dimensions: bool | None = None,
        epsilon: float | None = None,
    ) -> Tensor[F]:
        """The Euclidean norm, or ``x`` divided by it. Swift: ``l2Norm(axes:keepDimensions:)``, ``l2Norm(epsilon:)``

        With ``axes``, a reduction of floats: ``sqrt(sum(x**2))`` over ``axes`` (None: all of them). An empty norm is 0. Where
        the norm is 0, so is its gradient.

        Without, a normalisation that keeps the shape: ``x / sqrt(sum(x**2) + epsilon)``, the sum over the last three axes;
        ``epsilon`` is sqrt(2**-23), about 3.4527e-4, unless given. 16-bit floats are computed in float32 and rounded once.

        >>> bg.make_context(lambda b: b.constant(values=[[3.0, 4.0], [0.0, 0.0]]).l2_norm([1]))()
        Array([5., 0.], dtype=float32)
        >>> bg.make_context(lambda b: b.constant(values=[[[3.0, 4.0]]]).l2_norm(epsilon=0))()
        Array([[[0.6, 0.8]]], dtype=float32)

        Raises:
            ShapeError: the normalisation of a tensor of rank below 3.
        """
        if axes is ...:
            if keep_dimensions is not None:
                raise ParameterError("l2_norm: axes must be given with keep_dimensions, got keep_dimensions alone")
            return self._emit(L2Normalize(EPSILON if epsilon is None else as_epsilon(epsilon)))
        if epsilon is not None:
            raise ParameterError("l2_norm: axes (the norm) or epsilon (x over its norm) must be given, got both")
        return self._emit(ReduceL2Norm(_axes(axes), bool(keep_dimensions)))

    def sum_of_squares(self, axes: Axes | None, *, keep_dimensions: bool = False) -> Tensor[D]:
        """The sum of ``x**2`` over ``axes`` (None: all of them). Swift: ``sumOfSquares(axes:keepDimensions:)``

        Squared and added as by :meth:`sum`; an empty sum is 0.

        >>> bg.make_context(lambda b: b.constant(values=[[1.0, 2.0], [3.0, 4.0]]).sum_of_squares([0]))()
        Array([10., 20.], dtype=float32)
        """
        return self._emit(ReduceSumOfSquares(_axes(axes), keep_dimensions))

    def log_sum(self: Handle[F], axes: Axes | None, *, keep_dimensions: bool = False) -> Tensor[F]:
        """``log(sum(x))`` over ``axes`` (None: all of them), with no epsilon. Swift: ``logSum(axes:keepDimensions:)``

        16-bit floats are computed in float32 and rounded once. A sum of 0 gives -inf, and so does an empty one; a negative sum
        gives NaN.

        >>> bg.make_context(lambda b: b.constant(values=[[1.0, 0.0], [3.0, 1.0]]).log_sum([0]))()
        Array([1.3862944, 0.       ], dtype=float32)
        """
        return self._emit(ReduceLogSum(_axes(axes), keep_dimensions))

    def log_sum_exp(self: Handle[F], axes: Axes | None, *, keep_dimensions: bool = False) -> Tensor[F]:
        """``log(sum(e**x))`` over ``axes`` (None: all of them). Swift: ``logSumExp(axes:keepDimensions:)``

        The largest element is taken out of the exponential, so that it cannot overflow. 16-bit floats are computed in float32
        and rounded once. -inf everywhere gives -inf, and so does an empty axis.

        >>> bg.make_context(lambda b: b.constant(values=[[1000.0, 0.0], [10.0, -np.inf]]).log_sum_exp([0]))()
        Array([1000.,    0.], dtype=float32)
        """
        return self._emit(ReduceLogSumExp(_axes(axes), keep_dimensions))


def _axes(axes: Axes | None) -> tuple[int, ...] | None:
    return None if axes is None else as_axes(axes)
