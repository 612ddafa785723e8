"""Many elements to one: over some axes, over all (``axes=None``), or over none (``axes=[]``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bnnsgraph.dtypes import Floating, Number
from bnnsgraph.errors import ShapeError
from bnnsgraph.graph import Op
from bnnsgraph.handle import Axes, D, F, Handle
from bnnsgraph.spec import TensorSpec, as_axes, normalize_axes, reduced, require_dtype
from bnnsgraph.xla import accumulator, jnp

if TYPE_CHECKING:
    import jax

    from bnnsgraph.tensor import Tensor


@dataclass(frozen=True)
class Reduce(Op):
    """The base of the reductions: the dtype stays, the axes go or become 1."""

    axes: tuple[int, ...] | None
    keep_dimensions: bool = False

    def infer(self, x: TensorSpec) -> TensorSpec:
        require_dtype(x, Number)
        return x.with_shape(reduced(x.shape, self.over(x.rank), self.keep_dimensions))

    def over(self, rank: int) -> tuple[int, ...]:
        """The reduced axes, counted from the front."""
        return tuple(range(rank)) if self.axes is None else normalize_axes(self.axes, rank)


@dataclass(frozen=True)
class ReduceSum(Reduce):
    def lower(self, x: jax.Array) -> jax.Array:
        total = jnp.sum(x, self.over(x.ndim), dtype=accumulator(x.dtype), keepdims=self.keep_dimensions)
        return total.astype(x.dtype)


@dataclass(frozen=True)
class ReduceMean(Reduce):
    def infer(self, x: TensorSpec) -> TensorSpec:
        require_dtype(x, Floating)
        return super().infer(x)

    def lower(self, x: jax.Array) -> jax.Array:
        mean = jnp.mean(x, self.over(x.ndim), dtype=accumulator(x.dtype), keepdims=self.keep_dimensions)
        return mean.astype(x.dtype)


@dataclass(frozen=True)
class ReduceExtremum(Reduce):
    """A reduction that an empty axis leaves without a value."""

    def infer(self, x: TensorSpec) -> TensorSpec:
        result = super().infer(x)
        empty = [axis for axis in self.over(x.rank) if x.shape[axis] == 0]
        if empty and 0 not in result.shape:
            raise ShapeError(f"axes must have at least one element, got size 0 on axis {empty[0]}")
        return result


@dataclass(frozen=True)
class ReduceMaximum(ReduceExtremum):
    def lower(self, x: jax.Array) -> jax.Array:
        return jnp.max(x, self.over(x.ndim), keepdims=self.keep_dimensions)


@dataclass(frozen=True)
class ReduceMinimum(ReduceExtremum):
    def lower(self, x: jax.Array) -> jax.Array:
        return jnp.min(x, self.over(x.ndim), keepdims=self.keep_dimensions)


class ReductionMethods(Handle[D]):
    """``sum``, ``mean``, ``maximum``, ``minimum``."""

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

        >>> bg.make_context(lambda b: b.constant(values=[[1.0, 2.0], [3.0, 4.0]]).maximum([1]))()
        Array([2., 4.], dtype=float32)

        Raises:
            ShapeError: an axis has size 0.
        """
        return self._emit(ReduceMaximum(_axes(axes), keep_dimensions))

    def minimum(self, axes: Axes | None, *, keep_dimensions: bool = False) -> Tensor[D]:
        """The smallest element over ``axes`` (None: all of them); NaN if one is NaN. Swift: ``minimum(axes:keepDimensions:)``

        >>> bg.make_context(lambda b: b.constant(values=[[1.0, 2.0], [3.0, 4.0]]).minimum(None))()
        Array(1., dtype=float32)

        Raises:
            ShapeError: an axis has size 0.
        """
        return self._emit(ReduceMinimum(_axes(axes), keep_dimensions))


def _axes(axes: Axes | None) -> tuple[int, ...] | None:
    return None if axes is None else as_axes(axes)
