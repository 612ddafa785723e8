"""Tensors made from numbers: ``fill``, ``arange``. They take no memory until the graph runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bnnsgraph.dtypes import DType, Number
from bnnsgraph.errors import DTypeError, ParameterError, ShapeError
from bnnsgraph.frozen import frozen
from bnnsgraph.graph import Op
from bnnsgraph.handle import convert
from bnnsgraph.sizes import UNKNOWN, Dimension, Size, as_dimension
from bnnsgraph.spec import Shape, TensorSpec, as_integer, as_number, bind_shape, format_shape
from bnnsgraph.xla import jnp, lax

if TYPE_CHECKING:
    import jax


@frozen
class Fill(Op):
    shape: Shape
    value: float | int | bool
    dtype: DType

    def infer(self) -> TensorSpec:
        convert(self.value, self.dtype)
        if UNKNOWN in self.shape:
            raise ShapeError(f"shape must hold integers and names of sizes, got {format_shape(self.shape)}")
        return TensorSpec(self.dtype, self.shape)

    def bind(self, sizes: Mapping[str, Any]) -> Self:
        return replace(self, shape=bind_shape(self.shape, sizes))

    def lower(self) -> jax.Array:
        return jnp.full(self.shape, jnp.asarray(convert(self.value, self.dtype)))

    def __str__(self) -> str:
        return f"Fill({format_shape(self.shape)}, {self.value!r})"


@frozen
class Arange(Op):
    start: Dimension | float
    stop: Dimension | float
    step: int | float
    dtype: DType

    def infer(self) -> TensorSpec:
        if not issubclass(self.dtype, Number):
            raise DTypeError(f"data_type must be a number type, got {self.dtype.name}")
        count = self.count()
        if isinstance(count, int) and count:
            start: Any = self.start
            ends: list[Any] = [start, start + (count - 1) * self.step]
            if not any(isinstance(end, Size) for end in ends):
                convert(ends, self.dtype)
        return TensorSpec(self.dtype, (count,))

    def count(self) -> Any:
        """How many numbers there are. A flexible stop is taken to lie behind the start; the rule runs again with its value."""
        if self.step == 0:
            raise ParameterError("step must not be 0, got 0")
        if self.stop == -1 and self.start == 0 and self.step > 0:  # no range, but what an unknown size looks like
            raise ParameterError("stop must be a number or the name of a size, got -1; give the flexible size a name")
        bounds: tuple[Any, ...] = (self.start, self.stop, self.step)
        start, stop, step = bounds
        if any(isinstance(bound, float) for bound in bounds):
            if any(isinstance(bound, Size) for bound in bounds):
                raise ParameterError(f"start and step must be integers where a size is flexible, got {start} and {step}")
            return max(0, math.ceil((stop - start) / step))
        steps = (stop - start + step - 1) // step if step > 0 else (start - stop - step - 1) // -step
        return max(0, steps) if isinstance(steps, int) else steps

    def bind(self, sizes: Mapping[str, Any]) -> Self:
        start, stop = (bound.bind(sizes) if isinstance(bound, Size) else bound for bound in (self.start, self.stop))
        return replace(self, start=start, stop=stop)

    def lower(self) -> jax.Array:
        count, dtype = self.count(), self.dtype.numpy
        bounds = self.start, self.stop, self.step
        large = any(isinstance(bound, int) and abs(bound) >= 2**31 for bound in bounds)
        if any(isinstance(bound, float) for bound in bounds) or (large and dtype.kind not in "iu"):
            return jnp.asarray((self.start + self.step * np.arange(count)).astype(dtype))  # in double precision, rounded once
        narrow = dtype.kind not in "iu" or dtype.itemsize < 4
        counter = np.dtype(np.int32) if narrow else dtype
        numbers = lax.iota(counter, count) * _modulo(self.step, counter) + _modulo(self.start, counter)
        return numbers.astype(dtype)

    def __str__(self) -> str:
        return f"Arange({self.start}, {self.stop}, {self.step})"


def _modulo(number: Any, dtype: np.dtype[Any]) -> jax.Array:
    """An integer modulo 2**bits, in which sums and products of integers are exact where their results fit."""
    if isinstance(number, int):
        return jnp.asarray(np.asarray(number % 2 ** (8 * dtype.itemsize), f"u{dtype.itemsize}").view(dtype))
    return jnp.asarray(number, dtype)  # a size of JAX, while exporting


def as_bound(value: object, subject: str) -> Any:
    """A bound of a range: an integer, a float, or a flexible size."""
    if isinstance(value, (str, Size)):
        size = as_dimension(value)
        if size is not UNKNOWN:
            return size
        raise ParameterError(f"{subject} must be a number or the name of a size, got {value!r}")
    fractional = isinstance(value, float) or np.asarray(value).dtype.kind == "f"
    return as_number(value, subject) if fractional else as_integer(value, subject)
