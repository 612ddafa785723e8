"""Long short-term memories: ``lstm`` and ``bidirectional_lstm``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple

from bnnsgraph.frozen import frozen
from bnnsgraph.handle import D, F, Handle, Operand
from bnnsgraph.recurrence import Activation, Direction, Recurrent, product, project, recurrent_rule, require_choices, scan
from bnnsgraph.spec import TensorSpec
from bnnsgraph.xla import jnp

if TYPE_CHECKING:
    import jax

    from bnnsgraph.tensor import Tensor


class LSTMResult(NamedTuple, Generic[D]):
    """What ``lstm`` and ``bidirectional_lstm`` give."""

    output: Tensor[D]
    hidden_states: Tensor[D]
    memory_states: Tensor[D]


@frozen
class LSTMLayer(Recurrent):
    """The base of both LSTMs: the step."""

    recurrent_activation: Activation
    cell_activation: Activation

    cpu_level: ClassVar[int | None] = 2

    def run(
        self, x: jax.Array, h: jax.Array, c: jax.Array, w: jax.Array, r: jax.Array, b: jax.Array, *, reverse: bool
    ) -> tuple[jax.Array, ...]:
        """Output, hidden and cell states of one direction."""
        gates = project(x, w, b)
        wide = r.astype(gates.dtype)

        def step(states: Any, gate: jax.Array) -> Any:
            h, c = states
            i, f, o, g = jnp.split(gate + product(h, wide), 4, -1)
            i, f, o = (self.recurrent_activation(part) for part in (i, f, o))
            c = f * c + i * self.cell_activation(g)
            return o * self.activation(c), c

        output, states = scan(step, (h, c), gates, x.dtype, reverse=reverse, sequence=self.output_sequence)
        return output, *states


@frozen
class LSTM(LSTMLayer):
    direction: Direction

    def infer(
        self,
        x: TensorSpec,
        initial_hidden_states: TensorSpec,
        initial_cell_states: TensorSpec,
        input_hidden_weight: TensorSpec,
        hidden_hidden_weight: TensorSpec,
        bias: TensorSpec,
    ) -> tuple[TensorSpec, ...]:
        layer = {"hidden_hidden_weight": hidden_hidden_weight, "input_hidden_weight": input_hidden_weight, "bias": bias}
        states = {"initial_hidden_states": initial_hidden_states, "initial_cell_states": initial_cell_states}
        state = recurrent_rule(x, 4, 1, [layer], **states)
        return self.results(x, state, state)

    def lower(self, *operands: jax.Array) -> tuple[jax.Array, ...]:
        return self.run(*operands, reverse=self.direction is Direction.REVERSE)


@frozen
class BidirectionalLSTM(LSTMLayer):
    def infer(
        self,
        x: TensorSpec,
        initial_hidden_states: TensorSpec,
        initial_cell_states: TensorSpec,
        input_hidden_weight: TensorSpec,
        hidden_hidden_weight: TensorSpec,
        bias: TensorSpec,
        input_hidden_weight_back: TensorSpec,
        hidden_hidden_weight_back: TensorSpec,
        bias_back: TensorSpec,
    ) -> tuple[TensorSpec, ...]:
        layers = [
            {"hidden_hidden_weight": hidden_hidden_weight, "input_hidden_weight": input_hidden_weight, "bias": bias},
            {
                "hidden_hidden_weight_back": hidden_hidden_weight_back,
                "input_hidden_weight_back": input_hidden_weight_back,
                "bias_back": bias_back,
            },
        ]
        states = {"initial_hidden_states": initial_hidden_states, "initial_cell_states": initial_cell_states}
        state = recurrent_rule(x, 4, 2, layers, **states)
        return self.results(x, state, state)

    def lower(self, x: jax.Array, h: jax.Array, c: jax.Array, *weights: jax.Array) -> tuple[jax.Array, ...]:
        (h, back_h), (c, back_c) = jnp.split(h, 2, -1), jnp.split(c, 2, -1)
        forward = self.run(x, h, c, *weights[:3], reverse=False)
        backward = self.run(x, back_h, back_c, *weights[3:], reverse=True)
        return tuple(jnp.concatenate(parts, -1) for parts in zip(forward, backward, strict=True))


class LSTMMethods(Handle[D]):
    """``lstm`` and ``bidirectional_lstm``."""

    __slots__ = ()

    def lstm(
        self: Handle[F],
        initial_hidden_states: Operand[F],
        initial_cell_states: Operand[F],
        input_hidden_weight: Operand[F],
        hidden_hidden_weight: Operand[F],
        bias: Operand[F],
        *,
        direction: Direction = Direction.FORWARD,
        activation: Activation = Activation.TANH,
        recurrent_activation: Activation = Activation.SIGMOID,
        cell_activation: Activation = Activation.TANH,
        output_sequence: bool,
    ) -> LSTMResult[F]:
        """A long short-term memory over a sequence of floats (L, N, I).

        Swift: ``lstm(initialHiddenStates:initialCellStates:inputHiddenWeight:hiddenHiddenWeight:bias:direction:activation:
        recurrentActivation:cellActivation:outputSequence:)``

        With R the recurrent activation and the gates packed in the order i, f, o, g::

            i = R(Wxi x + Whi h + bi)    f = R(Wxf x + Whf h + bf)    o = R(Wxo x + Who h + bo)
            g = cell_activation(Wxg x + Whg h + bg)
            c' = f c + i g
            h' = o activation(c')

        Weights of PyTorch, Keras and ONNX: see :mod:`bnnsgraph.recurrence`.

        Args:
            initial_hidden_states: h, (N, H).
            initial_cell_states: c, (N, H).
            input_hidden_weight: Wx, (4 H, I).
            hidden_hidden_weight: Wh, (4 H, H).
            bias: b, (4 H); the sum of both biases where there are two.
            direction: which step comes first. The output is in the order of the input in either case.
            activation: of the cell state, on its way to the output.
            recurrent_activation: of the gates i, f and o.
            cell_activation: of the candidate g.
            output_sequence: whether the output holds every step, (L, N, H), or the last one alone, (1, N, H).

        Returns:
            ``output``, and ``hidden_states`` and ``memory_states`` (N, H) after the last step.

        >>> def block(b):
        ...     x, state = b.argument("x", bg.Float32, ["length", 2, 3]), np.zeros((2, 4), np.float32)
        ...     wx, wh, bias = np.ones((16, 3)), np.ones((16, 4)), np.zeros(16)
        ...     return x.lstm(state, state, wx, wh, bias, output_sequence=False).output
        >>> bg.make_context(block)(np.zeros((5, 2, 3), np.float32)).shape
        (1, 2, 4)

        Raises:
            ShapeError: a weight, bias or state has another shape.
        """
        require_choices(direction, activation, recurrent_activation, cell_activation)
        op = LSTM(activation, output_sequence, recurrent_activation, cell_activation, direction)
        states = (initial_hidden_states, initial_cell_states)
        return LSTMResult(*self._emit_many(op, *states, input_hidden_weight, hidden_hidden_weight, bias))

    def bidirectional_lstm(
        self: Handle[F],
        initial_hidden_states: Operand[F],
        initial_cell_states: Operand[F],
        input_hidden_weight: Operand[F],
        hidden_hidden_weight: Operand[F],
        bias: Operand[F],
        input_hidden_weight_back: Operand[F],
        hidden_hidden_weight_back: Operand[F],
        bias_back: Operand[F],
        *,
        activation: Activation = Activation.TANH,
        recurrent_activation: Activation = Activation.SIGMOID,
        cell_activation: Activation = Activation.TANH,
        output_sequence: bool,
    ) -> LSTMResult[F]:
        """Two LSTMs over a sequence of floats (L, N, I), one of them from the last step to the first.

        Swift: ``bidirectionalLSTM(initialHiddenStates:initialCellStates:inputHiddenWeight:hiddenHiddenWeight:bias:
        inputHiddenWeightBack:hiddenHiddenWeightBack:biasBack:activation:recurrentActivation:cellActivation:outputSequence:)``

        Each is an :meth:`lstm` with weights of its own. States and output have 2 H features, those of the forward LSTM first.

        Args:
            initial_hidden_states: (N, 2 H).
            initial_cell_states: (N, 2 H).
            input_hidden_weight: (4 H, I), gates in the order i, f, o, g.
            hidden_hidden_weight: (4 H, H).
            bias: (4 H).
            input_hidden_weight_back: the same for the other direction.
            hidden_hidden_weight_back: the same for the other direction.
            bias_back: the same for the other direction.
            activation: of the cell state, on its way to the output.
            recurrent_activation: of the gates i, f and o.
            cell_activation: of the candidate g.
            output_sequence: whether the output holds every step, (L, N, 2 H), in the order of the input, or (1, N, 2 H): the
                forward LSTM after the last step beside the backward one after the first.

        Returns:
            ``output``, and ``hidden_states`` and ``memory_states`` (N, 2 H) after the last step of each direction.

        >>> layer = np.ones((4, 3)), np.ones((4, 1)), np.zeros(4)
        >>> x.unsqueeze(axis=1).bidirectional_lstm([[0, 0]], [[0, 0]], *layer, *layer, output_sequence=True).output.shape
        (2, 1, 2)

        Raises:
            ShapeError: a weight, bias or state has another shape.
        """
        require_choices(Direction.FORWARD, activation, recurrent_activation, cell_activation)
        forward = (input_hidden_weight, hidden_hidden_weight, bias)
        backward = (input_hidden_weight_back, hidden_hidden_weight_back, bias_back)
        op = BidirectionalLSTM(activation, output_sequence, recurrent_activation, cell_activation)
        return LSTMResult(*self._emit_many(op, initial_hidden_states, initial_cell_states, *forward, *backward))
