"""Activations: functions that neural networks put between their layers. Floats only; the shape stays."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from bnnsgraph.dtypes import Floating
from bnnsgraph.errors import ShapeError
from bnnsgraph.frozen import frozen
from bnnsgraph.graph import Op
from bnnsgraph.handle import D, F, Handle, Operand
from bnnsgraph.ops.unary import FloatFunction
from bnnsgraph.spec import TensorSpec, as_number, equal_size, require_dtype, require_same_dtype
from bnnsgraph.xla import accumulator, jnp, lax

if TYPE_CHECKING:
    import jax

    from bnnsgraph.tensor import Tensor


def between(x: jax.Array, low: float, high: float) -> jax.Array:
    """``min(max(x, low), high)``, with NaN kept and the gradient 0 at both bounds."""
    return jnp.where(x <= low, low, jnp.where(x >= high, high, x))


def gated(x: jax.Array, gate: Callable[[jax.Array], jax.Array], limit: float) -> jax.Array:
    """``x * gate(x)`` for a gate that is 0 below ``-limit`` and 1 above ``limit``.

    There the result is 0 and ``x`` themselves, so that infinities, and gradients far out, never meet ``inf * 0``.
    """
    inside = jnp.clip(x, -limit, limit)
    return jnp.where(x <= -limit, 0, jnp.where(x >= limit, x, inside * gate(inside)))


@frozen
class ReLU(FloatFunction):
    def compute(self, x: jax.Array) -> jax.Array:
        return jnp.where(x <= 0, 0, x)


@frozen
class ReLU6(FloatFunction):
    def compute(self, x: jax.Array) -> jax.Array:
        return between(x, 0, 6)


@frozen
class LeakyReLU(FloatFunction):
    alpha: float

    def compute(self, x: jax.Array) -> jax.Array:
        return jnp.where(x >= 0, x, self.alpha * x)


@frozen
class PReLU(Op):
    """A leaky ReLU with a slope for each channel, or one for all."""

    def infer(self, x: TensorSpec, alpha: TensorSpec) -> TensorSpec:
        require_dtype(x, Floating)
        require_same_dtype(x=x, alpha=alpha)
        if x.rank < 2:
            raise ShapeError(f"x must have rank 2 or more, because its channels are axis 1, got rank {x.rank}")
        if alpha.rank > 1:
            raise ShapeError(f"alpha must have rank 1, got {alpha}")
        if alpha.rank == 1 and alpha.shape[0] != 1 and equal_size(x.shape[1], alpha.shape[0]) is None:
            raise ShapeError(f"alpha must hold 1 value or one for each of {x.shape[1]} channels, got {alpha.shape[0]}")
        return x

    def lower(self, x: jax.Array, alpha: jax.Array) -> jax.Array:
        slope = alpha.reshape((-1,) + (1,) * (x.ndim - 2)).astype(accumulator(x.dtype))
        wide = x.astype(slope.dtype)
        return jnp.where(wide >= 0, wide, lax.expand_dims(slope, [0]) * wide).astype(x.dtype)


@frozen
class ClampedReLU(FloatFunction):
    alpha: float
    beta: float

    def compute(self, x: jax.Array) -> jax.Array:
        sloped = jnp.where(x >= 0, x, self.alpha * x)
        return jnp.where(sloped >= self.beta, self.beta, sloped)


@frozen
class ThresholdedReLU(FloatFunction):
    alpha: float

    def compute(self, x: jax.Array) -> jax.Array:
        return jnp.where(x < self.alpha, 0, x)


@frozen
class ELU(FloatFunction):
    alpha: float

    def compute(self, x: jax.Array) -> jax.Array:
        below = jnp.where(x > 0, 0, x)  # so that the branch not taken cannot overflow, nor its gradient
        return jnp.where(x > 0, x, self.alpha * lax.expm1(below))


@frozen
class GELU(FloatFunction):
    def compute(self, x: jax.Array) -> jax.Array:
        return gated(x, lambda x: 0.5 * lax.erfc(-math.sqrt(0.5) * x), 40)


@frozen
class GELUTanhApproximation(FloatFunction):
    def compute(self, x: jax.Array) -> jax.Array:
        scale = 2 * math.sqrt(2 / math.pi)  # (1 + tanh(u)) / 2 is sigmoid(2 u), without its cancellation
        return gated(x, lambda x: lax.logistic(scale * (x + 0.044715 * x * x * x)), 40)


@frozen
class GELUSigmoidApproximation(FloatFunction):
    def compute(self, x: jax.Array) -> jax.Array:
        return gated(x, lambda x: lax.logistic(1.702 * x), 750)


@frozen
class Erf(FloatFunction):
    def compute(self, x: jax.Array) -> jax.Array:
        return lax.erf(x)


@frozen
class Sigmoid(FloatFunction):
    def compute(self, x: jax.Array) -> jax.Array:
        return lax.logistic(x)


@frozen
class HardSigmoid(FloatFunction):
    alpha: float
    beta: float

    def compute(self, x: jax.Array) -> jax.Array:
        return between(self.alpha * x + self.beta, 0, 1)


@frozen
class HardSwish(FloatFunction):
    def compute(self, x: jax.Array) -> jax.Array:
        return gated(x, lambda x: (x + 3) / 6, 3)


@frozen
class SiLU(FloatFunction):
    def compute(self, x: jax.Array) -> jax.Array:
        return gated(x, lax.logistic, 750)


@frozen
class ScaledTanh(FloatFunction):
    alpha: float
    beta: float

    def compute(self, x: jax.Array) -> jax.Array:
        return self.alpha * lax.tanh(self.beta * x)


@frozen
class Softplus(FloatFunction):
    alpha: float

    def compute(self, x: jax.Array) -> jax.Array:
        return self.alpha * jnp.logaddexp(x, 0)


@frozen
class Softsign(FloatFunction):
    def compute(self, x: jax.Array) -> jax.Array:
        size = 2.0**60  # from here on the result is 1 to the last bit, also for inf / inf
        finite = jnp.clip(x, -size, size)
        return finite / (1 + jnp.abs(finite))


class ActivationMethods(Handle[D]):
    """``relu`` to ``softsign``."""

    __slots__ = ()

    def relu(self: Handle[F]) -> Tensor[F]:
        """``max(x, 0)``; the gradient at 0 is 0. Swift: ``relu()``

        >>> bg.make_context(lambda b: b.constant(values=[-1.5, 2.0]).relu())()
        Array([0., 2.], dtype=float32)
        """
        return self._emit(ReLU())

    def relu6(self: Handle[F]) -> Tensor[F]:
        """``min(max(x, 0), 6)``; the gradient at 0 and at 6 is 0. Swift: ``relu6()``

        >>> bg.make_context(lambda b: b.constant(values=[-1.5, 2.0, 9.0]).relu6())()
        Array([0., 2., 6.], dtype=float32)
        """
        return self._emit(ReLU6())

    def leaky_relu(self: Handle[F], alpha: float = 0.01) -> Tensor[F]:
        """``x`` where ``x >= 0``, else ``alpha * x``. Swift: ``leakyReLU(alpha:)``

        >>> bg.make_context(lambda b: b.constant(values=[-1.5, 2.0]).leaky_relu(alpha=0.5))()
        Array([-0.75,  2.  ], dtype=float32)
        """
        return self._emit(LeakyReLU(as_number(alpha, "alpha")))

    def prelu(self: Handle[F], alpha: Operand[F]) -> Tensor[F]:
        """``max(x, 0) + alpha * min(x, 0)`` with a slope for each channel, axis 1. Swift: ``prelu(alpha:)``

        Args:
            alpha: one value, or as many as ``x`` has channels. Apple takes numbers; here it may be a tensor, so that slopes can
                be arguments of the graph and have gradients.

        >>> bg.make_context(lambda b: b.constant(values=[[-1.0, -1.0], [2.0, -4.0]]).prelu(alpha=[0.5, 0.25]))()
        Array([[-0.5 , -0.25],
               [ 2.  , -1.  ]], dtype=float32)

        Raises:
            ShapeError: ``x`` has rank 0 or 1, or ``alpha`` another number of values.
        """
        return self._emit(PReLU(), alpha)

    def clamped_relu(self: Handle[F], alpha: float, beta: float) -> Tensor[F]:
        """``min(x, beta)`` where ``x >= 0``, else ``min(alpha * x, beta)``. Swift: ``clampedReLU(alpha:beta:)``

        >>> bg.make_context(lambda b: b.constant(values=[-1.5, 2.0, 9.0]).clamped_relu(alpha=0.5, beta=6))()
        Array([-0.75,  2.  ,  6.  ], dtype=float32)
        """
        return self._emit(ClampedReLU(as_number(alpha, "alpha"), as_number(beta, "beta", finite=False)))

    def thresholded_relu(self: Handle[F], alpha: float) -> Tensor[F]:
        """``x`` where ``x >= alpha``, else 0; NaN stays NaN. Swift: ``thresholdedReLU(alpha:)``

        >>> bg.make_context(lambda b: b.constant(values=[0.5, 1.0, 2.0]).thresholded_relu(alpha=1))()
        Array([0., 1., 2.], dtype=float32)
        """
        return self._emit(ThresholdedReLU(as_number(alpha, "alpha")))

    def elu(self: Handle[F], alpha: float) -> Tensor[F]:
        """``x`` where ``x > 0``, else ``alpha * (e**x - 1)``. Swift: ``elu(alpha:)``

        >>> bg.make_context(lambda b: b.constant(values=[-np.inf, 2.0]).elu(alpha=0.5))()
        Array([-0.5,  2. ], dtype=float32)
        """
        return self._emit(ELU(as_number(alpha, "alpha")))

    def gelu(self: Handle[F]) -> Tensor[F]:
        """``x * (1 + erf(x / sqrt(2))) / 2``, exact. Swift: ``gelu()``

        >>> bg.make_context(lambda b: b.constant(values=np.float16([-np.inf, 1])).gelu())()
        Array([0.    , 0.8413], dtype=float16)
        """
        return self._emit(GELU())

    def gelu_tanh_approximation(self: Handle[F]) -> Tensor[F]:
        """``x * (1 + tanh(sqrt(2/π) * (x + 0.044715 * x**3))) / 2``. Swift: ``geluTanhApproximation()``

        >>> bg.make_context(lambda b: b.constant(values=np.float16([-np.inf, 1])).gelu_tanh_approximation())()
        Array([0.    , 0.8413], dtype=float16)
        """
        return self._emit(GELUTanhApproximation())

    def gelu_sigmoid_approximation(self: Handle[F]) -> Tensor[F]:
        """``x * sigmoid(1.702 * x)``. Swift: ``geluSigmoidApproximation()``

        >>> bg.make_context(lambda b: b.constant(values=np.float16([-np.inf, 1])).gelu_sigmoid_approximation())()
        Array([0.    , 0.8457], dtype=float16)
        """
        return self._emit(GELUSigmoidApproximation())

    def erf(self: Handle[F]) -> Tensor[F]:
        """Gauss's error function, ``2/sqrt(π)`` times the integral of ``e**-t**2`` from 0 to ``x``. Swift: ``erf()``

        >>> bg.make_context(lambda b: b.constant(values=[0.0, np.inf]).erf())()
        Array([0., 1.], dtype=float32)
        """
        return self._emit(Erf())

    def sigmoid(self: Handle[F]) -> Tensor[F]:
        """``1 / (1 + e**-x)``. Swift: ``sigmoid()``

        >>> bg.make_context(lambda b: b.constant(values=[-np.inf, 0.0, np.inf]).sigmoid())()
        Array([0. , 0.5, 1. ], dtype=float32)
        """
        return self._emit(Sigmoid())

    def hard_sigmoid(self: Handle[F], alpha: float, beta: float) -> Tensor[F]:
        """``min(max(alpha * x + beta, 0), 1)``. Swift: ``hardSigmoid(alpha:beta:)``

        >>> bg.make_context(lambda b: b.constant(values=[-9.0, 1.0, 9.0]).hard_sigmoid(alpha=0.25, beta=0.5))()
        Array([0.  , 0.75, 1.  ], dtype=float32)
        """
        return self._emit(HardSigmoid(as_number(alpha, "alpha"), as_number(beta, "beta")))

    def hard_swish(self: Handle[F]) -> Tensor[F]:
        """``x * min(max(x + 3, 0), 6) / 6``. Swift: ``hardSwish()``

        >>> bg.make_context(lambda b: b.constant(values=[-3.0, 1.5, 9.0]).hard_swish())()
        Array([0.   , 1.125, 9.   ], dtype=float32)
        """
        return self._emit(HardSwish())

    def silu(self: Handle[F]) -> Tensor[F]:
        """``x * sigmoid(x)``, also called swish. Swift: ``silu()``

        >>> bg.make_context(lambda b: b.constant(values=[-np.inf, 0.0, np.inf]).silu())()
        Array([ 0.,  0., inf], dtype=float32)
        """
        return self._emit(SiLU())

    def scaled_tanh(self: Handle[F], alpha: float, beta: float) -> Tensor[F]:
        """``alpha * tanh(beta * x)``. Swift: ``scaledTanh(alpha:beta:)``

        >>> bg.make_context(lambda b: b.constant(values=[0.0, np.inf]).scaled_tanh(alpha=1.5, beta=0.5))()
        Array([0. , 1.5], dtype=float32)
        """
        return self._emit(ScaledTanh(as_number(alpha, "alpha"), as_number(beta, "beta")))

    def softplus(self: Handle[F], alpha: float) -> Tensor[F]:
        """``alpha * log(1 + e**x)``, without overflow at large ``x``. Swift: ``softplus(alpha:)``

        Apple prints no formula; this is the one of the classic BNNS activation.

        >>> bg.make_context(lambda b: b.constant(values=[-np.inf, 1000.0]).softplus(alpha=1))()
        Array([   0., 1000.], dtype=float32)
        """
        return self._emit(Softplus(as_number(alpha, "alpha")))

    def softsign(self: Handle[F]) -> Tensor[F]:
        """``x / (1 + |x|)``. Swift: ``softsign()``

        >>> bg.make_context(lambda b: b.constant(values=[-1.0, 3.0, np.inf]).softsign())()
        Array([-0.5 ,  0.75,  1.  ], dtype=float32)
        """
        return self._emit(Softsign())
