"""Functions of one number, element by element: rounding, powers, logarithms, bounds, and tests of floats."""

from __future__ import annotations

import math
import numbers
from typing import TYPE_CHECKING, Any

import numpy as np

from bnnsgraph.dtypes import Bool, Floating, Integer, Number
from bnnsgraph.errors import ParameterError
from bnnsgraph.frozen import frozen
from bnnsgraph.graph import Op
from bnnsgraph.handle import D, F, Handle
from bnnsgraph.ops.unary import FloatFunction, Unary
from bnnsgraph.spec import EPSILON, TensorSpec, as_number, require_dtype
from bnnsgraph.xla import jnp, lax

if TYPE_CHECKING:
    import jax

    from bnnsgraph.tensor import Tensor


@frozen
class Abs(Unary):
    group = Number

    def lower(self, x: jax.Array) -> jax.Array:
        return jnp.abs(x)


@frozen
class Sign(Unary):
    group = Number

    def lower(self, x: jax.Array) -> jax.Array:
        return lax.sign(x)


@frozen
class Ceil(Unary):
    def lower(self, x: jax.Array) -> jax.Array:
        return lax.ceil(x)


@frozen
class Floor(Unary):
    def lower(self, x: jax.Array) -> jax.Array:
        return lax.floor(x)


@frozen
class Round(Unary):
    def lower(self, x: jax.Array) -> jax.Array:
        return lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)


@frozen
class Exp(FloatFunction):
    def compute(self, x: jax.Array) -> jax.Array:
        return lax.exp(x)


@frozen
class Exp2(FloatFunction):
    def compute(self, x: jax.Array) -> jax.Array:
        return lax.pow(jnp.full_like(x, 2), x)  # exact for whole x, where lax.exp2 is not


@frozen
class Sqrt(FloatFunction):
    def compute(self, x: jax.Array) -> jax.Array:
        return lax.sqrt(x)


@frozen
class Log(FloatFunction):
    epsilon: float

    def compute(self, x: jax.Array) -> jax.Array:
        return lax.log(_raised(x, self.epsilon))


@frozen
class Reciprocal(FloatFunction):
    epsilon: float

    def compute(self, x: jax.Array) -> jax.Array:
        return 1 / _raised(x, self.epsilon)


@frozen
class Rsqrt(FloatFunction):
    epsilon: float

    def compute(self, x: jax.Array) -> jax.Array:
        return lax.rsqrt(_raised(x, self.epsilon))


@frozen
class Bounded(Unary):
    """Numbers kept between two bounds."""

    group = Number

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest result."""
        raise NotImplementedError

    def infer(self, x: TensorSpec) -> TensorSpec:
        spec = super().infer(x)
        if issubclass(x.dtype, Integer):
            low, high = self.bounds
            for bound in (low, high):
                if bound % 1 and math.isfinite(bound):
                    raise ParameterError(f"to must be whole for {x.dtype.name}, got {bound}")
            info = np.iinfo(x.dtype.numpy)
            if low > info.max or high < info.min:
                wrong = low if low > info.max else high
                raise ParameterError(f"to must leave values of {x.dtype.name}, [{info.min}, {info.max}], got {wrong}")
        return spec

    def lower(self, x: jax.Array) -> jax.Array:
        low, high = (_nearest(bound, x.dtype) for bound in self.bounds)
        return jnp.where(x < low, low, jnp.where(x > high, high, x))


@frozen
class Clip(Bounded):
    to: tuple[float, float]

    @property
    def bounds(self) -> tuple[float, float]:
        return self.to

    def infer(self, x: TensorSpec) -> TensorSpec:
        if self.to[0] > self.to[1]:
            raise ParameterError(f"to must be (low, high) with low <= high, got {self.to}")
        return super().infer(x)


@frozen
class Threshold(Bounded):
    to: float

    @property
    def bounds(self) -> tuple[float, float]:
        return self.to, math.inf


@frozen
class FloatTest(Op):
    """Floats to Bool."""

    def infer(self, x: TensorSpec) -> TensorSpec:
        require_dtype(x, Floating)
        return x.with_dtype(Bool)


@frozen
class IsNaN(FloatTest):
    def lower(self, x: jax.Array) -> jax.Array:
        return jnp.isnan(x)


@frozen
class IsInf(FloatTest):
    def lower(self, x: jax.Array) -> jax.Array:
        return jnp.isinf(x)


def _raised(x: jax.Array, epsilon: float) -> jax.Array:
    """``x + epsilon``; without an epsilon, ``x`` itself, with the sign of its zeros."""
    return x + epsilon if epsilon else x


def _bound(value: object) -> float:
    """A bound of ``to``; whole numbers stay exact."""
    number = as_number(value, "to", finite=False)
    return int(value) if isinstance(value, numbers.Integral) else number


def _nearest(bound: float, dtype: Any) -> np.ndarray[Any, Any]:
    """The value of ``dtype`` that bounds its values as ``bound`` does."""
    if jnp.issubdtype(dtype, jnp.integer):
        info = jnp.iinfo(dtype)
        return np.asarray(int(min(max(bound, int(info.min)), int(info.max))), dtype)
    with np.errstate(over="ignore"):  # a bound beyond the type is infinite: it bounds nothing
        return np.asarray(float(bound)).astype(dtype)


class ElementwiseMethods(Handle[D]):
    """``abs`` to ``threshold``, and ``sign``, ``is_nan``, ``is_inf``. Trigonometry is apart."""

    __slots__ = ()

    def abs(self) -> Tensor[D]:
        """Magnitude; also of integers, where the smallest signed one stays as it is. Swift: ``abs()``

        >>> bg.make_context(lambda b: b.constant(values=[-1.5, 2.0]).abs())()
        Array([1.5, 2. ], dtype=float32)
        """
        return self._emit(Abs())

    def __abs__(self) -> Tensor[D]:
        """Magnitude, by Python's ``abs(x)``; see :meth:`abs`. Swift: ``abs()``

        >>> abs(x).shape
        (2, 3)
        """
        return self._emit(Abs())

    def sign(self) -> Tensor[D]:
        """-1, 0 or 1 as the number is below, at or above 0; NaN stays NaN. Not in Apple's builder.

        >>> bg.make_context(lambda b: b.constant(values=[-1.5, 0.0, 2.0]).sign())()
        Array([-1.,  0.,  1.], dtype=float32)
        """
        return self._emit(Sign())

    def ceil(self: Handle[F]) -> Tensor[F]:
        """The smallest whole number not below ``x``, as a float. Swift: ``ceil()``

        >>> bg.make_context(lambda b: b.constant(values=[-1.5, 1.5]).ceil())()
        Array([-1.,  2.], dtype=float32)
        """
        return self._emit(Ceil())

    def floor(self: Handle[F]) -> Tensor[F]:
        """The largest whole number not above ``x``, as a float. Swift: ``floor()``

        >>> bg.make_context(lambda b: b.constant(values=[-1.5, 1.5]).floor())()
        Array([-2.,  1.], dtype=float32)
        """
        return self._emit(Floor())

    def round(self: Handle[F]) -> Tensor[F]:
        """The nearest whole number, as a float; of two equally near, the even one. Swift: ``round()``

        >>> bg.make_context(lambda b: b.constant(values=[0.5, 1.5, 2.5, 2.6]).round())()
        Array([0., 2., 2., 3.], dtype=float32)
        """
        return self._emit(Round())

    def exp(self: Handle[F]) -> Tensor[F]:
        """``e ** x``. Swift: ``exp()``

        >>> bg.make_context(lambda b: b.constant(values=[0.0, 1.0]).exp())()
        Array([1.       , 2.7182817], dtype=float32)
        """
        return self._emit(Exp())

    def exp2(self: Handle[F]) -> Tensor[F]:
        """``2 ** x`` of floats, exact for whole ``x``; for integers write ``2 ** x``. Swift: ``exp2()``

        >>> bg.make_context(lambda b: b.constant(values=[-1.0, 3.0]).exp2())()
        Array([0.5, 8. ], dtype=float32)
        """
        return self._emit(Exp2())

    def sqrt(self: Handle[F]) -> Tensor[F]:
        """Square root; NaN below 0. Swift: ``sqrt()``

        >>> bg.make_context(lambda b: b.constant(values=[4.0, -1.0]).sqrt())()
        Array([ 2., nan], dtype=float32)
        """
        return self._emit(Sqrt())

    def log(self: Handle[F], epsilon: float = EPSILON) -> Tensor[F]:
        """Natural logarithm of ``x + epsilon``. Swift: ``log(epsilon:)``

        Apple's default is not 0 but 2**-11.5, about 3.45e-4: log(1) is 3.45e-4 and log(0) is -7.97. Write ``epsilon=0`` for the
        logarithm itself.

        >>> bg.make_context(lambda b: b.constant(values=[0.0, 1.0]).log(epsilon=0))()
        Array([-inf,   0.], dtype=float32)
        """
        return self._emit(Log(as_number(epsilon, "epsilon")))

    def reciprocal(self: Handle[F], epsilon: float = EPSILON) -> Tensor[F]:
        """``1 / (x + epsilon)``. Swift: ``reciprocal(epsilon:)``

        Apple's default is not 0 but 2**-11.5, about 3.45e-4; it is added with its sign, whatever the sign of ``x``.

        >>> bg.make_context(lambda b: b.constant(values=[0.0, 4.0]).reciprocal(epsilon=0))()
        Array([ inf, 0.25], dtype=float32)
        """
        return self._emit(Reciprocal(as_number(epsilon, "epsilon")))

    def rsqrt(self: Handle[F], epsilon: float = EPSILON) -> Tensor[F]:
        """``1 / sqrt(x + epsilon)``; NaN where ``x + epsilon`` is below 0. Swift: ``rsqrt(epsilon:)``

        Apple's default is not 0 but 2**-11.5, about 3.45e-4: rsqrt(1e-5) is 53, not 316.

        >>> bg.make_context(lambda b: b.constant(values=[0.0, 4.0]).rsqrt(epsilon=0))()
        Array([inf, 0.5], dtype=float32)
        """
        return self._emit(Rsqrt(as_number(epsilon, "epsilon")))

    def clip(self, to: tuple[float, float]) -> Tensor[D]:
        """``min(max(x, low), high)`` for ``to=(low, high)``; NaN stays NaN. Swift: ``clip(to:)``

        Bounds may be equal or infinite. Those of integers are whole, and one beyond the type bounds nothing. The gradient is 1
        from ``low`` to ``high``, both included, and 0 outside.

        >>> bg.make_context(lambda b: b.constant(values=[-1.5, 0.5, 2.0]).clip(to=(0, 1)))()
        Array([0. , 0.5, 1. ], dtype=float32)

        Raises:
            ParameterError: ``low`` is above ``high``, or no integer of the type lies between them.
        """
        try:
            low, high = to
        except (TypeError, ValueError):
            raise ParameterError(f"to must be two numbers, (low, high), got {to!r}") from None
        return self._emit(Clip((_bound(low), _bound(high))))

    def threshold(self, to: float) -> Tensor[D]:
        """``max(x, to)``: what is below the bound becomes the bound; NaN stays NaN. Swift: ``threshold(to:)``

        The bound of integers is whole. The gradient is 1 at and above the bound, and 0 below.

        >>> bg.make_context(lambda b: b.constant(values=[-1.5, 2.0]).threshold(to=0.5))()
        Array([0.5, 2. ], dtype=float32)

        Raises:
            ParameterError: the bound is above every integer of the type.
        """
        return self._emit(Threshold(_bound(to)))

    def is_nan(self: Handle[F]) -> Tensor[Bool]:
        """Where the float is NaN. Not in Apple's builder.

        >>> bg.make_context(lambda b: b.constant(values=[1.0, np.nan, np.inf]).is_nan())()
        Array([False,  True, False], dtype=bool)
        """
        return self._emit(IsNaN())

    def is_inf(self: Handle[F]) -> Tensor[Bool]:
        """Where the float is infinite, of either sign. Not in Apple's builder.

        >>> bg.make_context(lambda b: b.constant(values=[1.0, np.nan, -np.inf]).is_inf())()
        Array([False, False,  True], dtype=bool)
        """
        return self._emit(IsInf())
