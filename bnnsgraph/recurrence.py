"""What recurrent layers share: directions, activations, the rule of their weights, and the walk over the steps.

A sequence ``x`` has shape (L, N, I): steps, batch, features. States have shape (N, H), weights (G*H, I) and (G*H, H), biases
(G*H), where G gates are packed one after the other: 1 for ``rnn``, 4 for ``lstm`` in the order **input, forget, output, cell**,
3 for ``gru`` in the order **reset, new, update**. Sequences are stored in the order of the input, also where the steps run from
the last to the first. Products of float32 are full float32; 16-bit floats are computed in float32 and rounded once, at the
results.

Weights of other frameworks, with ``order(w, *gates) = w.reshape(len(gates), H, -1)[list(gates)].reshape(w.shape)``:

=============  ======================================  ==============================================================
layer          input_hidden_weight                     bias
=============  ======================================  ==============================================================
PyTorch RNN    ``weight_ih_l0``                        ``bias_ih_l0 + bias_hh_l0``
PyTorch LSTM   ``order(weight_ih_l0, 0, 1, 3, 2)``     ``order(bias_ih_l0 + bias_hh_l0, 0, 1, 3, 2)``
PyTorch GRU    ``order(weight_ih_l0, 0, 2, 1)``        ``order(bias_hh_l0, 0, 2, 1)``, input_bias from ``bias_ih_l0``
Keras RNN      ``kernel.T``                            ``bias``
Keras LSTM     ``order(kernel.T, 0, 1, 3, 2)``         ``order(bias, 0, 1, 3, 2)``
Keras GRU      ``order(kernel.T, 1, 2, 0)``            ``order(bias[1], 1, 2, 0)``, input_bias from ``bias[0]``
ONNX RNN       ``W[0]``                                ``B[0].reshape(2, H).sum(0)``
ONNX LSTM      ``order(W[0], 0, 2, 1, 3)``             ``order(B[0].reshape(2, 4 * H).sum(0), 0, 2, 1, 3)``
ONNX GRU       ``order(W[0], 1, 2, 0)``                ``order(B[0, 3 * H:], 1, 2, 0)``, input_bias from ``B[0, :3 * H]``
=============  ======================================  ==============================================================

``hidden_hidden_weight`` is converted as ``input_hidden_weight`` is, from ``weight_hh_l0``, ``recurrent_kernel`` and ``R``.
PyTorch and Keras (``reset_after=True``) apply a GRU's reset gate after the product, ONNX where ``linear_before_reset=1``; a
Keras GRU with ``reset_after=False`` has one bias, to be used as ``bias``.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from bnnsgraph.dtypes import Floating
from bnnsgraph.errors import ParameterError, ShapeError
from bnnsgraph.frozen import frozen
from bnnsgraph.graph import Op
from bnnsgraph.sizes import Dimension
from bnnsgraph.spec import TensorSpec, equal_size, format_shape, require_dtype, require_equal_size, require_same_dtype
from bnnsgraph.xla import accumulator, jnp, lax

if TYPE_CHECKING:
    import jax

    Step = Callable[[Any, jax.Array], Any]


class Direction(enum.Enum):
    """Which step of a sequence comes first (Swift ``Builder.Direction``).

    >>> bg.Direction.REVERSE.value
    'last step first'
    """

    FORWARD = "first step first"
    REVERSE = "last step first"

    def __repr__(self) -> str:
        return f"Direction.{self.name}"


class Activation(enum.Enum):
    """A function inside a recurrent layer (Swift ``Builder.Activation``).

    Apple gives the last two no parameters. ``HARD_SIGMOID`` has the 0.2 and 0.5 of Core ML's stand-alone layer and of ML
    Compute, ``SCALED_TANH`` the 1 and 1 of ML Compute, which make it ``TANH``.

    >>> bg.Activation.HARD_SIGMOID.value
    'min(max(0.2 * x + 0.5, 0), 1)'
    """

    LINEAR = "x"
    RELU = "max(x, 0)"
    SIGMOID = "1 / (1 + exp(-x))"
    TANH = "tanh(x)"
    HARD_SIGMOID = "min(max(0.2 * x + 0.5, 0), 1)"
    SCALED_TANH = "1 * tanh(1 * x)"

    def __repr__(self) -> str:
        return f"Activation.{self.name}"

    def __call__(self, x: jax.Array) -> jax.Array:
        """The function of a float32 or float64 array."""
        match self:
            case Activation.LINEAR:
                return x
            case Activation.RELU:
                return jnp.maximum(x, jnp.zeros_like(x))
            case Activation.SIGMOID:
                return lax.logistic(x)
            case Activation.TANH | Activation.SCALED_TANH:
                return jnp.tanh(x)
            case Activation.HARD_SIGMOID:
                return jnp.clip(0.2 * x + 0.5, 0, 1)


# Rules


def _require_shape(name: str, spec: TensorSpec, wanted: tuple[Dimension, ...], meaning: str) -> None:
    fits = spec.rank == len(wanted) and None not in map(equal_size, spec.shape, wanted)
    if not fits:
        raise ShapeError(f"{name} must have shape {format_shape(wanted)} ({meaning}), got {format_shape(spec.shape)}")


def recurrent_rule(
    x: TensorSpec, gates: int, directions: int, layers: list[dict[str, TensorSpec]], **states: TensorSpec
) -> TensorSpec:
    """The spec of the states after the last step. A layer is its weights and biases by name, the hidden one first."""
    require_same_dtype(x=x, **states, **{name: spec for layer in layers for name, spec in layer.items()})
    require_dtype(x, Floating)
    if x.rank != 3:
        raise ShapeError(f"x must have rank 3 (steps, batch, features), got {format_shape(x.shape)}")
    _, batch, features = x.shape
    factor = f"{gates} * " if gates > 1 else ""
    name, recurrent = next(iter(layers[0].items()))
    if recurrent.rank != 2:
        raise ShapeError(f"{name} must have rank 2 ({factor}hidden, hidden), got {format_shape(recurrent.shape)}")
    hidden = recurrent.shape[1]
    packed = hidden * gates
    for layer in layers:
        for name, spec in layer.items():
            if name.startswith("hidden"):
                _require_shape(name, spec, (packed, hidden), f"{factor}hidden, hidden")
            elif name.startswith("input_hidden"):
                _require_shape(name, spec, (packed, features), f"{factor}hidden, features")
            else:
                _require_shape(name, spec, (packed,), f"{factor}hidden")
    for name, spec in states.items():
        _require_shape(name, spec, (batch, hidden * directions), f"batch, {'2 * ' if directions > 1 else ''}hidden")
        batch = require_equal_size(batch, spec.shape[0], "batch sizes")
    return x.with_shape((batch, hidden * directions))


# The walk over the steps


def project(x: jax.Array, weight: jax.Array, bias: jax.Array) -> jax.Array:
    """``x @ weight.T + bias`` for all steps in one product, in the dtype of sums."""
    wide = accumulator(x.dtype)
    product = jnp.matmul(x, weight.T, preferred_element_type=wide)
    return product + bias.astype(wide)[None, None]


def product(state: jax.Array, weight: jax.Array) -> jax.Array:
    """``state @ weight.T``."""
    return jnp.matmul(state, weight.T)


def scan(step: Step, states: Any, inputs: jax.Array, dtype: Any, *, reverse: bool, sequence: bool) -> tuple[jax.Array, Any]:
    """The outputs, in the order of the inputs, and the states after the last step. The first state is the output."""

    def body(states: Any, gates: jax.Array) -> tuple[Any, jax.Array | None]:
        states = step(states, gates)
        return states, states[0].astype(dtype) if sequence else None

    states = tuple(state.astype(inputs.dtype) for state in states)
    states, outputs = lax.scan(body, states, inputs, reverse=reverse)
    states = tuple(state.astype(dtype) for state in states)
    output: Any = outputs if sequence else states[0][None]
    return output, states


def require_choices(direction: object, *activations: object) -> None:
    """Refuse what is not of the two enumerations."""
    if not isinstance(direction, Direction):
        raise ParameterError(f"direction must be a Direction, such as Direction.REVERSE, got {direction!r}")
    for activation in activations:
        if not isinstance(activation, Activation):
            raise ParameterError(f"activations must be an Activation, such as Activation.TANH, got {activation!r}")


@frozen
class Recurrent(Op):
    """The base: what all layers decide."""

    activation: Activation
    output_sequence: bool

    ends_fusion: ClassVar[bool] = True

    def results(self, x: TensorSpec, *states: TensorSpec) -> tuple[TensorSpec, ...]:
        """The specs of the output and of the states."""
        return x.with_shape((x.shape[0] if self.output_sequence else 1, *states[0].shape)), *states
