"""The only bridge between element types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from bnnsgraph.dtypes import Bool, DType, DTypeLike, Integer, as_dtype
from bnnsgraph.frozen import frozen
from bnnsgraph.graph import Op
from bnnsgraph.handle import D, Handle, U
from bnnsgraph.spec import TensorSpec
from bnnsgraph.xla import jnp, lax

if TYPE_CHECKING:
    import jax

    from bnnsgraph.tensor import Tensor


@frozen
class Cast(Op):
    to: DType

    def infer(self, x: TensorSpec) -> TensorSpec:
        return x.with_dtype(self.to)

    def lower(self, x: jax.Array) -> jax.Array:
        target = self.to.numpy
        if issubclass(self.to, Bool):
            return lax.ne(x, lax.full_like(x, 0)) if x.dtype != target else x
        if issubclass(self.to, Integer) and jnp.issubdtype(x.dtype, jnp.floating):
            return _saturate(x, self.to)
        return lax.convert_element_type(x, target)

    def __str__(self) -> str:
        return f"Cast(to={self.to.__name__})"


def _saturate(x: jax.Array, to: DType) -> jax.Array:
    """Truncation toward zero; values beyond the type become its bounds and NaN becomes 0, on every backend."""
    bounds = jnp.iinfo(to.numpy)
    wide = x if x.dtype in (jnp.float32, jnp.float64) else lax.convert_element_type(x, jnp.float32)
    low, high = float(bounds.min), float(bounds.max)  # high rounds up to a power of two for 32 and 64 bits
    inside = lax.convert_element_type(jnp.where((wide >= low) & (wide < high), wide, 0), to.numpy)
    return jnp.where(
        wide >= high, jnp.array(bounds.max, to.numpy), jnp.where(wide < low, jnp.array(bounds.min, to.numpy), inside)
    )


class CastingMethods(Handle[D]):
    """``cast``."""

    __slots__ = ()

    @overload
    def cast(self, to: type[U]) -> Tensor[U]: ...
    @overload
    def cast(self, to: DTypeLike) -> Tensor[Any]: ...
    def cast(self, to: DTypeLike) -> Tensor[Any]:
        """The elements in another type. Swift: ``cast(to:)``

        Floats round to nearest even. A float becomes an integer by dropping its fraction; beyond the integer type it becomes
        the nearest bound, and NaN becomes 0. Integers that do not fit wrap modulo 2**bits. Everything but zero is True.

        >>> bg.make_context(lambda b: b.constant(values=[1.9, -1.9, 3e9]).cast(to=bg.Int32))()
        Array([         1,         -1, 2147483647], dtype=int32)
        """
        dtype = as_dtype(to)
        if dtype is self.data_type:
            return self._wrap(self._value)
        return self._emit(Cast(dtype))
