"""The bases of the operations on one tensor that keep its shape and element type."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from bnnsgraph.dtypes import Floating, Scalar
from bnnsgraph.errors import ParameterError
from bnnsgraph.frozen import frozen
from bnnsgraph.graph import Op
from bnnsgraph.spec import TensorSpec, require_dtype
from bnnsgraph.xla import accumulator

if TYPE_CHECKING:
    import jax

_LARGEST = (2 - 2.0**-23) * 2.0**127
"""The largest float32."""


@frozen
class Unary(Op):
    """One tensor to another of the same shape and element type."""

    group: ClassVar[type[Scalar]] = Floating
    """The element types that the operation takes."""

    def infer(self, x: TensorSpec) -> TensorSpec:
        require_dtype(x, self.group)
        return x


@frozen
class FloatFunction(Unary):
    """A function of floats: a subclass says what it computes, in at least float32. 16-bit results are rounded once."""

    def infer(self, x: TensorSpec) -> TensorSpec:
        for name, value in vars(self).items():
            if _LARGEST < abs(value) < math.inf and x.dtype.bits < 64:
                raise ParameterError(f"{name} must fit float32, [{-_LARGEST:.7g}, {_LARGEST:.7g}], got {value}")
        return super().infer(x)

    def lower(self, x: jax.Array) -> jax.Array:
        return self.compute(x.astype(accumulator(x.dtype))).astype(x.dtype)

    def compute(self, x: jax.Array) -> jax.Array:
        """The function of a float32 or float64 array."""
        raise NotImplementedError
