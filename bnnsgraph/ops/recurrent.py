"""Recurrent layers with hidden states alone: ``rnn`` and ``gru``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NamedTuple

from bnnsgraph.frozen import frozen
from bnnsgraph.handle import D, F, Handle, Operand
from bnnsgraph.recurrence import Activation, Direction, Recurrent, product, project, recurrent_rule, require_choices, scan
from bnnsgraph.spec import TensorSpec
from bnnsgraph.xla import jnp

if TYPE_CHECKING:
    import jax

    from bnnsgraph.tensor import Tensor


class RecurrentResult(NamedTuple, Generic[D]):
    """What ``rnn`` and ``gru`` give."""

    output: Tensor[D]
    hidden_states: Tensor[D]


@frozen
class RNN(Recurrent):
    direction: Direction

    def infer(
        self,
        x: TensorSpec,
        initial_hidden_states: TensorSpec,
        input_hidden_weight: TensorSpec,
        hidden_hidden_weight: TensorSpec,
        bias: TensorSpec,
    ) -> tuple[TensorSpec, ...]:
        layer = {"hidden_hidden_weight": hidden_hidden_weight, "input_hidden_weight": input_hidden_weight, "bias": bias}
        return self.results(x, recurrent_rule(x, 1, 1, [layer], initial_hidden_states=initial_hidden_states))

    def lower(self, x: jax.Array, h: jax.Array, w: jax.Array, r: jax.Array, b: jax.Array) -> tuple[jax.Array, ...]:
        gates = project(x, w, b)
        wide = r.astype(gates.dtype)

        def step(states: Any, gate: jax.Array) -> Any:
            return (self.activation(gate + product(states[0], wide)),)

        reverse = self.direction is Direction.REVERSE
        output, states = scan(step, (h,), gates, x.dtype, reverse=reverse, sequence=self.output_sequence)
        return output, *states


@frozen
class GRU(Recurrent):
    recurrent_activation: Activation
    direction: Direction
    apply_reset_gate_after_mat_mul: bool

    def infer(
        self,
        x: TensorSpec,
        initial_hidden_states: TensorSpec,
        input_hidden_weight: TensorSpec,
        hidden_hidden_weight: TensorSpec,
        bias: TensorSpec,
        input_bias: TensorSpec,
    ) -> tuple[TensorSpec, ...]:
        layer = {"hidden_hidden_weight": hidden_hidden_weight, "input_hidden_weight": input_hidden_weight, "bias": bias}
        layer["input_bias"] = input_bias
        return self.results(x, recurrent_rule(x, 3, 1, [layer], initial_hidden_states=initial_hidden_states))

    def lower(
        self, x: jax.Array, h: jax.Array, w: jax.Array, r: jax.Array, b: jax.Array, input_bias: jax.Array
    ) -> tuple[jax.Array, ...]:
        gates = project(x, w, input_bias)
        r, b = r.astype(gates.dtype), b.astype(gates.dtype)[None]
        reset_rows, new_rows, update_rows = jnp.split(r, 3)
        both_rows = jnp.concatenate([reset_rows, update_rows])

        def step(states: Any, gate: jax.Array) -> Any:
            (h,) = states
            reset, new, update = jnp.split(gate, 3, -1)
            b_reset, b_new, b_update = jnp.split(b, 3, -1)
            if self.apply_reset_gate_after_mat_mul:
                h_reset, h_new, h_update = jnp.split(product(h, r), 3, -1)
            else:
                h_reset, h_update = jnp.split(product(h, both_rows), 2, -1)
                h_new = None
            reset = self.recurrent_activation(reset + h_reset + b_reset)
            update = self.recurrent_activation(update + h_update + b_update)
            inner = product(reset * h, new_rows) + b_new if h_new is None else reset * (h_new + b_new)
            return ((1 - update) * self.activation(new + inner) + update * h,)

        reverse = self.direction is Direction.REVERSE
        output, states = scan(step, (h,), gates, x.dtype, reverse=reverse, sequence=self.output_sequence)
        return output, *states


class RecurrentMethods(Handle[D]):
    """``rnn`` and ``gru``."""

    __slots__ = ()

    def rnn(
        self: Handle[F],
        initial_hidden_states: Operand[F],
        input_hidden_weight: Operand[F],
        hidden_hidden_weight: Operand[F],
        bias: Operand[F],
        *,
        direction: Direction = Direction.FORWARD,
        activation: Activation = Activation.TANH,
        output_sequence: bool,
    ) -> RecurrentResult[F]:
        """A plain recurrent layer over a sequence of floats (L, N, I).

        Swift: ``rnn(initialHiddenStates:inputHiddenWeight:hiddenHiddenWeight:bias:direction:activation:outputSequence:)``

        ``h' = activation(Wx x + Wh h + b)``. Weights of PyTorch, Keras and ONNX: see :mod:`bnnsgraph.recurrence`.

        Args:
            initial_hidden_states: (N, H).
            input_hidden_weight: Wx, (H, I).
            hidden_hidden_weight: Wh, (H, H).
            bias: b, (H); the sum of both biases where there are two.
            direction: which step comes first. The output is in the order of the input in either case.
            activation: the function.
            output_sequence: whether the output holds every step, (L, N, H), or the last one alone, (1, N, H).

        Returns:
            ``output``, and ``hidden_states`` (N, H) after the last step.

        >>> x.unsqueeze(axis=1).rnn([[0.0]], [[1.0, 2.0, 3.0]], [[0.5]], [0.0], output_sequence=True).output.shape
        (2, 1, 1)

        Raises:
            ShapeError: a weight, bias or state has another shape.
        """
        require_choices(direction, activation)
        op = RNN(activation, output_sequence, direction)
        return RecurrentResult(*self._emit_many(op, initial_hidden_states, input_hidden_weight, hidden_hidden_weight, bias))

    def gru(
        self: Handle[F],
        initial_hidden_states: Operand[F],
        input_hidden_weight: Operand[F],
        hidden_hidden_weight: Operand[F],
        bias: Operand[F],
        input_bias: Operand[F],
        *,
        direction: Direction = Direction.FORWARD,
        activation: Activation = Activation.TANH,
        recurrent_activation: Activation = Activation.SIGMOID,
        apply_reset_gate_after_mat_mul: bool,
        output_sequence: bool,
    ) -> RecurrentResult[F]:
        """A gated recurrent unit over a sequence of floats (L, N, I).

        Swift: ``gru(initialHiddenStates:inputHiddenWeight:hiddenHiddenWeight:bias:inputBias:direction:activation:
        recurrentActivation:applyResetGateAfterMatMul:outputSequence:)``

        With R the recurrent activation and the gates packed in the order r, n, z::

            r = R(Wxr x + ar + Whr h + br)    z = R(Wxz x + az + Whz h + bz)
            n = activation(Wxn x + an + r (Whn h + bn))    where apply_reset_gate_after_mat_mul
            n = activation(Wxn x + an + Whn (r h) + bn)    elsewhere
            h' = (1 - z) n + z h

        Weights of PyTorch, Keras and ONNX: see :mod:`bnnsgraph.recurrence`.

        Args:
            initial_hidden_states: h, (N, H).
            input_hidden_weight: Wx, (3 H, I).
            hidden_hidden_weight: Wh, (3 H, H).
            bias: b, (3 H).
            input_bias: a, (3 H); it makes a difference to ``bias`` only where the reset gate is applied after the product.
            direction: which step comes first. The output is in the order of the input in either case.
            activation: of the new state n.
            recurrent_activation: of the gates r and z.
            apply_reset_gate_after_mat_mul: whether the reset gate meets the product of the state, or the state.
            output_sequence: whether the output holds every step, (L, N, H), or the last one alone, (1, N, H).

        Returns:
            ``output``, and ``hidden_states`` (N, H) after the last step.

        >>> weights = np.ones((3, 3)), np.ones((3, 1)), np.zeros(3), np.zeros(3)
        >>> states = x.unsqueeze(axis=1).gru(
        ...     [[0.0]], *weights, apply_reset_gate_after_mat_mul=True, output_sequence=True
        ... )
        >>> states.output.shape, states.hidden_states.shape
        ((2, 1, 1), (1, 1))

        Raises:
            ShapeError: a weight, bias or state has another shape.
        """
        require_choices(direction, activation, recurrent_activation)
        op = GRU(activation, output_sequence, recurrent_activation, direction, apply_reset_gate_after_mat_mul)
        layer = (input_hidden_weight, hidden_hidden_weight, bias, input_bias)
        return RecurrentResult(*self._emit_many(op, initial_hidden_states, *layer))
