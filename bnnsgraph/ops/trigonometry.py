"""Trigonometric and hyperbolic functions and their inverses, element by element. Angles are in radians."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bnnsgraph.frozen import frozen
from bnnsgraph.handle import D, F, Handle
from bnnsgraph.ops.unary import FloatFunction
from bnnsgraph.xla import jnp, lax

if TYPE_CHECKING:
    import jax

    from bnnsgraph.tensor import Tensor


@frozen
class Sin(FloatFunction):
    def compute(self, x: jax.Array) -> jax.Array:
        return lax.sin(x)


@frozen
class Cos(FloatFunction):
    def compute(self, x: jax.Array) -> jax.Array:
        return lax.cos(x)


@frozen
class Tan(FloatFunction):
    def compute(self, x: jax.Array) -> jax.Array:
        return lax.tan(x)


@frozen
class Asin(FloatFunction):
    def compute(self, x: jax.Array) -> jax.Array:
        return lax.asin(x)


@frozen
class Acos(FloatFunction):
    def compute(self, x: jax.Array) -> jax.Array:
        return lax.acos(x)


@frozen
class Atan(FloatFunction):
    def compute(self, x: jax.Array) -> jax.Array:
        return lax.atan(x)


@frozen
class Sinh(FloatFunction):
    def compute(self, x: jax.Array) -> jax.Array:
        return lax.sinh(x)


@frozen
class Cosh(FloatFunction):
    def compute(self, x: jax.Array) -> jax.Array:
        return lax.cosh(x)


@frozen
class Tanh(FloatFunction):
    def compute(self, x: jax.Array) -> jax.Array:
        return lax.tanh(x)


@frozen
class Asinh(FloatFunction):
    def compute(self, x: jax.Array) -> jax.Array:
        return lax.asinh(x)


@frozen
class Acosh(FloatFunction):
    def compute(self, x: jax.Array) -> jax.Array:
        return lax.acosh(x)


@frozen
class Atanh(FloatFunction):
    def compute(self, x: jax.Array) -> jax.Array:
        # lax.atanh takes the logarithm of values below 1, where XLA's float64 log1p is off by more than a hundred epsilons
        size = jnp.where(x < 0, -x, x)
        result = 0.5 * lax.log1p(2 * size / (1 - size))
        return jnp.where(x < 0, -result, result)


class TrigonometryMethods(Handle[D]):
    """``sin``, ``cos``, ``tan``, their hyperbolic relatives, and the inverses of all six."""

    __slots__ = ()

    def sin(self: Handle[F]) -> Tensor[F]:
        """Sine. Swift: ``sin()``

        >>> bg.make_context(lambda b: b.constant(values=[0.0, np.pi / 2]).sin())()
        Array([0., 1.], dtype=float32)
        """
        return self._emit(Sin())

    def cos(self: Handle[F]) -> Tensor[F]:
        """Cosine. Swift: ``cos()``

        >>> bg.make_context(lambda b: b.constant(values=[0.0, np.pi]).cos())()
        Array([ 1., -1.], dtype=float32)
        """
        return self._emit(Cos())

    def tan(self: Handle[F]) -> Tensor[F]:
        """Tangent. Swift: ``tan()``

        >>> bg.make_context(lambda b: b.constant(values=[0.0, np.pi / 4]).tan())()
        Array([0., 1.], dtype=float32)
        """
        return self._emit(Tan())

    def asin(self: Handle[F]) -> Tensor[F]:
        """The angle in [-π/2, π/2] with this sine; NaN outside [-1, 1]. Swift: ``asin()``

        >>> bg.make_context(lambda b: b.constant(values=[0.0, 1.0]).asin())()
        Array([0.       , 1.5707964], dtype=float32)
        """
        return self._emit(Asin())

    def acos(self: Handle[F]) -> Tensor[F]:
        """The angle in [0, π] with this cosine; NaN outside [-1, 1]. Swift: ``acos()``

        >>> bg.make_context(lambda b: b.constant(values=[1.0, -1.0]).acos())()
        Array([0.       , 3.1415927], dtype=float32)
        """
        return self._emit(Acos())

    def atan(self: Handle[F]) -> Tensor[F]:
        """The angle in [-π/2, π/2] with this tangent. Swift: ``atan()``

        >>> bg.make_context(lambda b: b.constant(values=[0.0, np.inf]).atan())()
        Array([0.       , 1.5707964], dtype=float32)
        """
        return self._emit(Atan())

    def sinh(self: Handle[F]) -> Tensor[F]:
        """Hyperbolic sine ``(e**x - e**-x) / 2``. Swift: ``sinh()``

        >>> bg.make_context(lambda b: b.constant(values=[0.0, 1.0]).sinh())()
        Array([0.       , 1.1752012], dtype=float32)
        """
        return self._emit(Sinh())

    def cosh(self: Handle[F]) -> Tensor[F]:
        """Hyperbolic cosine ``(e**x + e**-x) / 2``. Swift: ``cosh()``

        >>> bg.make_context(lambda b: b.constant(values=[0.0, 1.0]).cosh())()
        Array([1.       , 1.5430806], dtype=float32)
        """
        return self._emit(Cosh())

    def tanh(self: Handle[F]) -> Tensor[F]:
        """Hyperbolic tangent ``sinh(x) / cosh(x)``. Swift: ``tanh()``

        >>> bg.make_context(lambda b: b.constant(values=[0.0, np.inf]).tanh())()
        Array([0., 1.], dtype=float32)
        """
        return self._emit(Tanh())

    def asinh(self: Handle[F]) -> Tensor[F]:
        """Inverse of the hyperbolic sine. Swift: ``asinh()``

        >>> bg.make_context(lambda b: b.constant(values=[0.0, np.inf]).asinh())()
        Array([ 0., inf], dtype=float32)
        """
        return self._emit(Asinh())

    def acosh(self: Handle[F]) -> Tensor[F]:
        """The value of at least 0 with this hyperbolic cosine; NaN below 1. Swift: ``acosh()``

        >>> bg.make_context(lambda b: b.constant(values=[0.5, 1.0]).acosh())()
        Array([nan,  0.], dtype=float32)
        """
        return self._emit(Acosh())

    def atanh(self: Handle[F]) -> Tensor[F]:
        """Inverse of the hyperbolic tangent; infinite at -1 and 1, NaN beyond them. Swift: ``atanh()``

        >>> bg.make_context(lambda b: b.constant(values=[0.0, 1.0, 2.0]).atanh())()
        Array([ 0., inf, nan], dtype=float32)
        """
        return self._emit(Atanh())
