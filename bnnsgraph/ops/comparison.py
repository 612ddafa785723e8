"""Comparison, logic, and choice by a mask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bnnsgraph.dtypes import Bool
from bnnsgraph.errors import DTypeError
from bnnsgraph.frozen import frozen
from bnnsgraph.graph import Op
from bnnsgraph.handle import D, Handle, Operand, U
from bnnsgraph.spec import TensorSpec, broadcast_shapes, require_dtype, require_same_dtype
from bnnsgraph.xla import aligned, lax

if TYPE_CHECKING:
    import jax

    from bnnsgraph.tensor import Tensor


@frozen
class Compare(Op):
    """Two tensors of one dtype to Bool."""

    def infer(self, x: TensorSpec, y: TensorSpec) -> TensorSpec:
        require_same_dtype(x=x, y=y)
        return TensorSpec(Bool, broadcast_shapes(x.shape, y.shape))


@frozen
class Equal(Compare):
    def lower(self, x: jax.Array, y: jax.Array) -> jax.Array:
        return lax.eq(*aligned(x, y))


@frozen
class NotEqual(Compare):
    def lower(self, x: jax.Array, y: jax.Array) -> jax.Array:
        return lax.ne(*aligned(x, y))


@frozen
class Less(Compare):
    def lower(self, x: jax.Array, y: jax.Array) -> jax.Array:
        return lax.lt(*aligned(x, y))


@frozen
class LessEqual(Compare):
    def lower(self, x: jax.Array, y: jax.Array) -> jax.Array:
        return lax.le(*aligned(x, y))


@frozen
class Greater(Compare):
    def lower(self, x: jax.Array, y: jax.Array) -> jax.Array:
        return lax.gt(*aligned(x, y))


@frozen
class GreaterEqual(Compare):
    def lower(self, x: jax.Array, y: jax.Array) -> jax.Array:
        return lax.ge(*aligned(x, y))


@frozen
class Logic(Op):
    """Two Bool tensors to Bool."""

    def infer(self, x: TensorSpec, y: TensorSpec) -> TensorSpec:
        require_dtype(x, Bool)
        require_dtype(y, Bool, "y")
        return TensorSpec(Bool, broadcast_shapes(x.shape, y.shape))


@frozen
class And(Logic):
    def lower(self, x: jax.Array, y: jax.Array) -> jax.Array:
        return lax.bitwise_and(*aligned(x, y))


@frozen
class Or(Logic):
    def lower(self, x: jax.Array, y: jax.Array) -> jax.Array:
        return lax.bitwise_or(*aligned(x, y))


@frozen
class Xor(Logic):
    def lower(self, x: jax.Array, y: jax.Array) -> jax.Array:
        return lax.bitwise_xor(*aligned(x, y))


@frozen
class Not(Op):
    def infer(self, x: TensorSpec) -> TensorSpec:
        require_dtype(x, Bool)
        return x

    def lower(self, x: jax.Array) -> jax.Array:
        return lax.bitwise_not(x)


@frozen
class Select(Op):
    def infer(self, mask: TensorSpec, value_if_true: TensorSpec, value_if_false: TensorSpec) -> TensorSpec:
        require_dtype(mask, Bool, "mask")
        dtype = require_same_dtype(value_if_true=value_if_true, value_if_false=value_if_false)
        return TensorSpec(dtype, broadcast_shapes(mask.shape, value_if_true.shape, value_if_false.shape))

    def lower(self, mask: jax.Array, value_if_true: jax.Array, value_if_false: jax.Array) -> jax.Array:
        return lax.select(*aligned(mask, value_if_true, value_if_false))


class ComparisonMethods(Handle[D]):
    """``== != < <= > >=``, ``& | ^ ~`` and ``select``."""

    __slots__ = ()
    __hash__ = object.__hash__  # tensors are told apart by identity; == records a comparison

    def __eq__(self, other: Operand[D]) -> Tensor[Bool]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Where ``x`` equals ``y``; NaN equals nothing. Swift: ``.==(_:_:)``

        >>> bg.make_context(lambda b: b.constant(values=[1, 2]) == 2)()
        Array([False,  True], dtype=bool)
        """
        return self._emit(Equal(), other)

    def __ne__(self, other: Operand[D]) -> Tensor[Bool]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Where ``x`` differs from ``y``; NaN differs from everything. Swift: ``.!=(_:_:)``

        >>> (x != 0).data_type.name
        'bool'
        """
        return self._emit(NotEqual(), other)

    def __lt__(self, other: Operand[D]) -> Tensor[Bool]:
        """Where ``x`` is below ``y``; False where either is NaN. Swift: ``.<(_:_:)``

        >>> (x < 0).data_type.name
        'bool'
        """
        return self._emit(Less(), other)

    def __le__(self, other: Operand[D]) -> Tensor[Bool]:
        """Where ``x`` is at most ``y``; False where either is NaN. Swift: ``.<=(_:_:)``

        >>> (x <= 0).data_type.name
        'bool'
        """
        return self._emit(LessEqual(), other)

    def __gt__(self, other: Operand[D]) -> Tensor[Bool]:
        """Where ``x`` is above ``y``; False where either is NaN. Swift: ``.>(_:_:)``

        >>> (x > 0).data_type.name
        'bool'
        """
        return self._emit(Greater(), other)

    def __ge__(self, other: Operand[D]) -> Tensor[Bool]:
        """Where ``x`` is at least ``y``; False where either is NaN. Swift: ``.>=(_:_:)``

        >>> (x >= 0).data_type.name
        'bool'
        """
        return self._emit(GreaterEqual(), other)

    def __and__(self: Handle[Bool], other: Operand[Bool]) -> Tensor[Bool]:
        """Where both masks are true. Swift: ``.&(_:_:)``

        >>> (mask & (x > 0)).shape
        (2, 3)
        """
        return self._emit(And(), other)

    def __or__(self: Handle[Bool], other: Operand[Bool]) -> Tensor[Bool]:
        """Where either mask is true. Swift: ``.|(_:_:)``

        >>> (mask | (x > 0)).shape
        (2, 3)
        """
        return self._emit(Or(), other)

    def __xor__(self: Handle[Bool], other: Operand[Bool]) -> Tensor[Bool]:
        """Where exactly one mask is true. Swift: ``.^(_:_:)``

        >>> (mask ^ (x > 0)).shape
        (2, 3)
        """
        return self._emit(Xor(), other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self: Handle[Bool]) -> Tensor[Bool]:
        """Where the mask is false. Swift: ``.!(_:)``

        >>> bg.make_context(lambda b: ~b.constant(values=[True, False]))()
        Array([False,  True], dtype=bool)
        """
        return self._emit(Not())

    def select(self: Handle[Bool], value_if_true: Operand[U], value_if_false: Operand[U]) -> Tensor[U]:
        """``value_if_true`` where the mask is true, ``value_if_false`` elsewhere. Swift: ``select(_:_:)``

        The three broadcast together. A number or array takes the other value's dtype; at least one of the two is a tensor.

        >>> bg.make_context(lambda b: b.constant(values=[True, False]).select(b.constant(values=[1.0, 2.0]), 0))()
        Array([1., 0.], dtype=float32)
        """
        typed = value_if_true if isinstance(value_if_true, Handle) else value_if_false
        if not isinstance(typed, Handle):
            raise DTypeError(
                "Select(): value_if_true or value_if_false must be a tensor, got two plain values; "
                "write builder.constant(...) for one"
            )
        dtype = typed.data_type
        values: list[Any] = [self._wrap(self._enter(value, dtype)) for value in (value_if_true, value_if_false)]
        return self._emit(Select(), *values)
