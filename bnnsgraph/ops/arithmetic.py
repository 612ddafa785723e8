"""Arithmetic of numbers, element by element, with NumPy's broadcasting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bnnsgraph.dtypes import Floating, Integer, Number
from bnnsgraph.errors import DTypeError
from bnnsgraph.frozen import frozen
from bnnsgraph.graph import Op
from bnnsgraph.handle import D, Handle, Operand
from bnnsgraph.spec import TensorSpec, broadcast_shapes, require_dtype, require_same_dtype
from bnnsgraph.xla import aligned, jnp, kept_divisor, lax, level, quotient

if TYPE_CHECKING:
    import jax

    from bnnsgraph.tensor import Tensor


@frozen
class Arithmetic(Op):
    """Two numbers of one dtype to one of the same dtype."""

    def infer(self, x: TensorSpec, y: TensorSpec) -> TensorSpec:
        dtype = require_same_dtype(x=x, y=y)
        require_dtype(x, Number)
        shape = broadcast_shapes(x.shape, y.shape)
        return x if shape is x.shape else TensorSpec(dtype, shape)


@frozen
class Add(Arithmetic):
    def lower(self, x: jax.Array, y: jax.Array) -> jax.Array:
        return lax.add(*aligned(x, y))


@frozen
class Subtract(Arithmetic):
    def lower(self, x: jax.Array, y: jax.Array) -> jax.Array:
        return lax.sub(*aligned(x, y))


@frozen
class Multiply(Arithmetic):
    def lower(self, x: jax.Array, y: jax.Array) -> jax.Array:
        return lax.mul(*aligned(x, y))


@frozen
class Divide(Arithmetic):
    def infer(self, x: TensorSpec, y: TensorSpec) -> TensorSpec:
        if issubclass(x.dtype, Integer):
            raise DTypeError(f"x must be of a float type, got {x.dtype.name}; write x // y, or .cast(to=Float32) on both first")
        return super().infer(x, y)

    def lower(self, x: jax.Array, y: jax.Array) -> jax.Array:
        return quotient(x, y)


@frozen
class FloorDivide(Arithmetic):
    def lower(self, x: jax.Array, y: jax.Array) -> jax.Array:
        x, y = aligned(x, y)
        return jnp.floor_divide(x, kept_divisor(x, y) if jnp.issubdtype(y.dtype, jnp.floating) else y)


@frozen
class Remainder(Arithmetic):
    def lower(self, x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.remainder(*level(x, y))


@frozen
class Power(Arithmetic):
    def lower(self, x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.power(*level(x, y))


@frozen
class Maximum(Arithmetic):
    def lower(self, x: jax.Array, y: jax.Array) -> jax.Array:
        return lax.max(*aligned(x, y))


@frozen
class Minimum(Arithmetic):
    def lower(self, x: jax.Array, y: jax.Array) -> jax.Array:
        return lax.min(*aligned(x, y))


@frozen
class Negate(Op):
    def infer(self, x: TensorSpec) -> TensorSpec:
        require_dtype(x, Number)
        return x

    def lower(self, x: jax.Array) -> jax.Array:
        return lax.neg(x)


@frozen
class FusedMultiplyAdd(Op):
    def infer(self, x: TensorSpec, y: TensorSpec, z: TensorSpec) -> TensorSpec:
        dtype = require_same_dtype(x=x, y=y, z=z)
        require_dtype(x, Floating)
        return TensorSpec(dtype, broadcast_shapes(x.shape, y.shape, z.shape))

    def lower(self, x: jax.Array, y: jax.Array, z: jax.Array) -> jax.Array:
        x, y, z = aligned(x, y, z)
        return lax.add(lax.mul(x, y), z)


# Without parameters, one object serves every graph
ADD, SUBTRACT, MULTIPLY, DIVIDE = Add(), Subtract(), Multiply(), Divide()
FLOOR_DIVIDE, REMAINDER, POWER = FloorDivide(), Remainder(), Power()
MAXIMUM, MINIMUM, NEGATE, FUSED_MULTIPLY_ADD = Maximum(), Minimum(), Negate(), FusedMultiplyAdd()


class ArithmeticMethods(Handle[D]):
    """``+ - * / // % **``, unary minus, and their named relatives."""

    __slots__ = ()

    def __add__(self, other: Operand[D]) -> Tensor[D]:
        """Sum ``x + y``. Swift: ``+(_:_:)``

        >>> bg.make_context(lambda b: b.constant(values=[1.0, 2.0]) + 1)()
        Array([2., 3.], dtype=float32)
        """
        return self._emit(ADD, other)

    def __radd__(self, other: Operand[D]) -> Tensor[D]:
        """Sum ``y + x``. Swift: ``+(_:_:)``

        >>> (1 + x).shape
        (2, 3)
        """
        return self._reflect(ADD, other)

    def __sub__(self, other: Operand[D]) -> Tensor[D]:
        """Difference ``x - y``. Swift: ``-(_:_:)``

        >>> bg.make_context(lambda b: b.constant(values=[1.0, 2.0]) - 1)()
        Array([0., 1.], dtype=float32)
        """
        return self._emit(SUBTRACT, other)

    def __rsub__(self, other: Operand[D]) -> Tensor[D]:
        """Difference ``y - x``. Swift: ``-(_:_:)``

        >>> bg.make_context(lambda b: 1 - b.constant(values=[1.0, 2.0]))()
        Array([ 0., -1.], dtype=float32)
        """
        return self._reflect(SUBTRACT, other)

    def __mul__(self, other: Operand[D]) -> Tensor[D]:
        """Product ``x * y``. Swift: ``*(_:_:)``

        >>> bg.make_context(lambda b: b.constant(values=[1.0, 2.0]) * [3.0, 4.0])()
        Array([3., 8.], dtype=float32)
        """
        return self._emit(MULTIPLY, other)

    def __rmul__(self, other: Operand[D]) -> Tensor[D]:
        """Product ``y * x``. Swift: ``*(_:_:)``

        >>> (2 * x).shape
        (2, 3)
        """
        return self._reflect(MULTIPLY, other)

    def __truediv__(self, other: Operand[D]) -> Tensor[D]:
        """Quotient ``x / y`` of floats; integers are refused in favour of ``//``. Swift: ``/(_:_:)``

        >>> bg.make_context(lambda b: b.constant(values=[1.0, 2.0]) / 4)()
        Array([0.25, 0.5 ], dtype=float32)
        """
        return self._emit(DIVIDE, other)

    def __rtruediv__(self, other: Operand[D]) -> Tensor[D]:
        """Quotient ``y / x`` of floats. Swift: ``/(_:_:)``

        >>> (1 / x).shape
        (2, 3)
        """
        return self._reflect(DIVIDE, other)

    def __floordiv__(self, other: Operand[D]) -> Tensor[D]:
        """Quotient rounded down, as Python's ``//``. Not in Apple's builder.

        An integer divided by zero has no defined value.

        >>> bg.make_context(lambda b: b.constant(values=[-7, 7]) // 2)()
        Array([-4,  3], dtype=int32)
        """
        return self._emit(FLOOR_DIVIDE, other)

    def __rfloordiv__(self, other: Operand[D]) -> Tensor[D]:
        """Quotient ``y // x`` rounded down. Not in Apple's builder.

        >>> (7 // count).shape
        (3,)
        """
        return self._reflect(FLOOR_DIVIDE, other)

    def __mod__(self, other: Operand[D]) -> Tensor[D]:
        """Remainder ``x - y * floor(x / y)``: it has the sign of ``y``, as in Python. Swift: ``%(_:_:)``

        An integer remainder by zero has no defined value.

        >>> bg.make_context(lambda b: b.constant(values=[-7, 7]) % 3)()
        Array([2, 1], dtype=int32)
        """
        return self._emit(REMAINDER, other)

    def __rmod__(self, other: Operand[D]) -> Tensor[D]:
        """Remainder of ``y`` by ``x``. Swift: ``%(_:_:)``, with a constant on the left

        >>> (7 % count).shape
        (3,)
        """
        return self._reflect(REMAINDER, other)

    def __pow__(self, other: Operand[D]) -> Tensor[D]:
        """Power ``x ** y``; see :meth:`pow`. Swift: ``pow(y:)``

        >>> bg.make_context(lambda b: b.constant(values=[2, 3]) ** 2)()
        Array([4, 9], dtype=int32)
        """
        return self._emit(POWER, other)

    def __rpow__(self, other: Operand[D]) -> Tensor[D]:
        """Power ``y ** x``. Swift: ``pow(y:)``, with a constant as base

        >>> bg.make_context(lambda b: 2 ** b.constant(values=[2, 3]))()
        Array([4, 8], dtype=int32)
        """
        return self._reflect(POWER, other)

    def __neg__(self) -> Tensor[D]:
        """The opposite, ``-x``; modulo 2**bits for unsigned integers. Not in Apple's builder.

        >>> bg.make_context(lambda b: -b.constant(values=[1.0, -2.0]))()
        Array([-1.,  2.], dtype=float32)
        """
        return self._emit(NEGATE)

    def pow(self, y: Operand[D]) -> Tensor[D]:
        """``self`` raised to ``y``, element by element, with broadcasting. Swift: ``pow(y:)``

        A negative base with a fractional exponent is NaN. Integers stay integers; a negative integer exponent has no defined
        value.

        >>> bg.make_context(lambda b: b.constant(values=[1.0, 4.0]).pow(0.5))()
        Array([1., 2.], dtype=float32)
        """
        return self._emit(POWER, y)

    def max(self, y: Operand[D]) -> Tensor[D]:
        """The larger of ``self`` and ``y``, element by element; NaN where either is. Swift: ``max(y:)``

        >>> bg.make_context(lambda b: b.constant(values=[1.0, 4.0]).max(2))()
        Array([2., 4.], dtype=float32)
        """
        return self._emit(MAXIMUM, y)

    def min(self, y: Operand[D]) -> Tensor[D]:
        """The smaller of ``self`` and ``y``, element by element; NaN where either is. Swift: ``min(y:)``

        >>> bg.make_context(lambda b: b.constant(values=[1.0, 4.0]).min(2))()
        Array([1., 2.], dtype=float32)
        """
        return self._emit(MINIMUM, y)

    def fma(self, y: Operand[D], z: Operand[D]) -> Tensor[D]:
        """``self * y + z`` of floats, with broadcasting. Swift: ``fma(y:z:)``

        >>> bg.make_context(lambda b: b.constant(values=[1.0, 4.0]).fma(2, 1))()
        Array([3., 9.], dtype=float32)
        """
        return self._emit(FUSED_MULTIPLY_ADD, y, z)

    def _reflect(self, op: Op, other: object) -> Tensor[D]:
        """Record ``op`` with ``other`` on the left."""
        left: Tensor[D] = self._wrap(self._enter(other))
        return left._emit(op, self)
