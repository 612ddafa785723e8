"""Rows of ``bnnsgraph.ops.recurrent`` and ``bnnsgraph.ops.lstm``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import bnnsgraph as bg
from bnnsgraph import Activation, Direction
from tests.op_table import Input, OpCase, Wrong, uniform

FUNCTIONS: dict[Activation, Callable[[np.ndarray], np.ndarray]] = {
    Activation.LINEAR: lambda x: x,
    Activation.RELU: lambda x: np.maximum(x, 0),
    Activation.SIGMOID: lambda x: 1 / (1 + np.exp(-x)),
    Activation.TANH: np.tanh,
    Activation.HARD_SIGMOID: lambda x: np.clip(0.2 * x + 0.5, 0, 1),
    Activation.SCALED_TANH: np.tanh,
}


def steps(
    x: np.ndarray, states: tuple[np.ndarray, ...], cell: Callable[..., tuple[np.ndarray, ...]], reverse: bool, sequence: bool
) -> tuple[np.ndarray, ...]:
    """The cell along the first axis of ``x``; outputs stand where their inputs stand."""
    output = np.zeros((len(x), *states[0].shape))
    for position in reversed(range(len(x))) if reverse else range(len(x)):
        states = cell(x[position], *states)
        output[position] = states[0]
    return (output if sequence else states[0][None]), *states


def rnn(x, h, w, r, b, activation=Activation.TANH, reverse=False, sequence=True):
    return steps(x, (h,), lambda x, h: (FUNCTIONS[activation](x @ w.T + h @ r.T + b),), reverse, sequence)


def lstm(
    x,
    h,
    c,
    w,
    r,
    b,
    activation=Activation.TANH,
    recurrent=Activation.SIGMOID,
    candidate=Activation.TANH,
    reverse=False,
    sequence=True,
):
    def cell(x, h, c):
        i, f, o, g = np.split(x @ w.T + h @ r.T + b, 4, -1)
        c = FUNCTIONS[recurrent](f) * c + FUNCTIONS[recurrent](i) * FUNCTIONS[candidate](g)
        return FUNCTIONS[recurrent](o) * FUNCTIONS[activation](c), c

    return steps(x, (h, c), cell, reverse, sequence)


def bidirectional(x, h, c, w, r, b, w_back, r_back, b_back, sequence=True, **activations):
    forward_h, back_h = np.split(h, 2, -1)
    forward_c, back_c = np.split(c, 2, -1)
    forward = lstm(x, forward_h, forward_c, w, r, b, sequence=sequence, **activations)
    backward = lstm(x, back_h, back_c, w_back, r_back, b_back, reverse=True, sequence=sequence, **activations)
    return tuple(np.concatenate(parts, -1) for parts in zip(forward, backward, strict=True))


def gru(x, h, w, r, b, a, activation=Activation.TANH, recurrent=Activation.SIGMOID, after=True, reverse=False, sequence=True):
    w_r, w_n, w_z = np.split(w, 3)
    r_r, r_n, r_z = np.split(r, 3)
    b_r, b_n, b_z = np.split(b, 3)
    a_r, a_n, a_z = np.split(a, 3)

    def cell(x, h):
        reset = FUNCTIONS[recurrent](x @ w_r.T + a_r + h @ r_r.T + b_r)
        update = FUNCTIONS[recurrent](x @ w_z.T + a_z + h @ r_z.T + b_z)
        inner = reset * (h @ r_n.T + b_n) if after else (reset * h) @ r_n.T + b_n
        return ((1 - update) * FUNCTIONS[activation](x @ w_n.T + a_n + inner) + update * h,)

    return steps(x, (h,), cell, reverse, sequence)


def operands(
    gates: int,
    states: int,
    *,
    length: int = 3,
    batch: int = 2,
    features: int = 2,
    hidden: int = 2,
    biases: int = 1,
    directions: int = 1,
) -> tuple[Input, ...]:
    """A sequence, states, and the weights and biases of each direction."""
    layer = [(gates * hidden, features), (gates * hidden, hidden), *[(gates * hidden,)] * biases]
    shapes = [(length, batch, features), *[(batch, directions * hidden)] * states, *layer * directions]
    return tuple(Input(shape, uniform(-1, 1)) for shape in shapes)


def sizes(gates: int, states: int, **more: int) -> list[tuple[Input, ...]]:
    """An ordinary layer, one without steps, and one without batch."""
    return [
        operands(gates, states, **more),
        operands(gates, states, length=0, **more),
        operands(gates, states, batch=0, features=1, hidden=1, **more),
    ]


def weights(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    """Constants that every float type holds exactly."""
    rng = np.random.default_rng(0)
    return [rng.integers(-8, 9, shape) / 8 for shape in shapes]


FIXED = "a size is a product with the number of gates"
W1, R1, B1 = weights((3, 2), (3, 3), (3,))
W4, R4, B4 = weights((12, 2), (12, 3), (12,))
W3, R3, B3, A3 = weights((9, 2), (9, 3), (9,), (9,))
RUNNING = [(Input((4, 5, 2)), Input((5, 3), uniform(-1, 1)))]
RUNNING_LSTM = [(*RUNNING[0], Input((5, 3), uniform(-1, 1)))]

# Each step adds the rounding of its products and functions to the state: a few units after a few steps.
LAYER: dict[str, Any] = {"flexible": FIXED, "ulps": 16, "magnitude": 2}


def layer(b: Any, gates: int, **changed: tuple[int, ...]) -> dict[str, Any]:
    """Arguments of a layer with some shapes changed."""
    shapes = {
        "x": (3, 2, 5),
        "initial_hidden_states": (2, 4),
        "input_hidden_weight": (4 * gates, 5),
        "hidden_hidden_weight": (4 * gates, 4),
        "bias": (4 * gates,),
    } | changed
    return {name: b.argument(name, bg.Float32, shape) for name, shape in shapes.items()}


def call(b: Any, method: str, gates: int, options: dict[str, Any], **changed: tuple[int, ...]) -> Any:
    """A layer on those arguments."""
    tensors = layer(b, gates, **changed)
    return getattr(tensors.pop("x"), method)(**tensors, output_sequence=True, **options)


ROWS = [
    OpCase(
        "rnn", lambda *t: t[0].rnn(*t[1:], output_sequence=True), rnn, sizes(1, 1), **LAYER,
        wrong=[
            Wrong(lambda b: call(b, "rnn", 1, {}, x=(2, 5)), bg.ShapeError, "x must have rank 3 (steps, batch, features), got [2, 5]"),
            Wrong(lambda b: call(b, "rnn", 1, {}, bias=(3,)), bg.ShapeError, "bias must have shape [4] (hidden), got [3]"),
            Wrong(lambda b: call(b, "rnn", 1, {}, hidden_hidden_weight=(4,)), bg.ShapeError,
                  "hidden_hidden_weight must have rank 2 (hidden, hidden), got [4]"),
            Wrong(lambda b: call(b, "rnn", 1, {}, initial_hidden_states=(1, 4)), bg.ShapeError,
                  "initial_hidden_states must have shape [2, 4] (batch, hidden), got [1, 4]"),
            Wrong(lambda b: call(b, "rnn", 1, {"direction": "reverse"}), bg.ParameterError,
                  "direction must be a Direction, such as Direction.REVERSE, got 'reverse'"),
            Wrong(lambda b: call(b, "rnn", 1, {"activation": "tanh"}), bg.ParameterError,
                  "activations must be an Activation, such as Activation.TANH, got 'tanh'"),
            Wrong(lambda b: b.argument("x", bg.Int32, [1, 1, 1]).rnn([[0]], [[1]], [[1]], [0], output_sequence=True), bg.DTypeError,
                  "x must be of a float type, got int32"),
        ],
    ),
    *[
        OpCase(f"rnn-{activation.name.lower()}", lambda *t, a=activation: t[0].rnn(*t[1:], activation=a, output_sequence=False),
               lambda *t, a=activation: rnn(*t, activation=a, sequence=False), [operands(1, 1)], **LAYER)
        for activation in Activation
    ],
    OpCase("rnn-reverse", lambda *t: t[0].rnn(*t[1:], direction=Direction.REVERSE, output_sequence=True), lambda *t: rnn(*t, reverse=True), sizes(1, 1), **LAYER),
    OpCase("rnn-running", lambda x, h: x.rnn(h, W1, R1, B1, output_sequence=True), lambda x, h: rnn(x, h, W1, R1, B1), RUNNING, ulps=16, magnitude=2),
    OpCase(
        "lstm", lambda *t: t[0].lstm(*t[1:], output_sequence=True), lstm, sizes(4, 2), **LAYER,
        wrong=[
            Wrong(lambda b: call(b, "lstm", 4, {}, initial_cell_states=(2, 4), input_hidden_weight=(12, 5)), bg.ShapeError,
                  "input_hidden_weight must have shape [16, 5] (4 * hidden, features), got [12, 5]"),
            Wrong(lambda b: call(b, "lstm", 4, {}, initial_cell_states=(2, 5)), bg.ShapeError,
                  "initial_cell_states must have shape [2, 4] (batch, hidden), got [2, 5]"),
        ],
    ),
    OpCase("lstm-last", lambda *t: t[0].lstm(*t[1:], direction=Direction.REVERSE, output_sequence=False), lambda *t: lstm(*t, reverse=True, sequence=False), sizes(4, 2), **LAYER),
    OpCase(
        "lstm-activations",
        lambda *t: t[0].lstm(*t[1:], direction=Direction.REVERSE, activation=Activation.LINEAR, recurrent_activation=Activation.HARD_SIGMOID, cell_activation=Activation.RELU, output_sequence=True),
        lambda *t: lstm(*t, activation=Activation.LINEAR, recurrent=Activation.HARD_SIGMOID, candidate=Activation.RELU, reverse=True), [operands(4, 2)], **LAYER,
    ),
    OpCase("lstm-running", lambda x, h, c: x.lstm(h, c, W4, R4, B4, output_sequence=True), lambda x, h, c: lstm(x, h, c, W4, R4, B4), RUNNING_LSTM, ulps=16, magnitude=2),
    OpCase(
        "bidirectional-lstm", lambda *t: t[0].bidirectional_lstm(*t[1:], output_sequence=True), bidirectional, sizes(4, 2, directions=2), **LAYER,
        wrong=[
            Wrong(lambda b: call(b, "bidirectional_lstm", 4, {}, initial_hidden_states=(2, 8), initial_cell_states=(2, 8), input_hidden_weight_back=(16, 5),
                                 hidden_hidden_weight_back=(16, 5), bias_back=(16,)), bg.ShapeError,
                  "hidden_hidden_weight_back must have shape [16, 4] (4 * hidden, hidden), got [16, 5]"),
            Wrong(lambda b: call(b, "bidirectional_lstm", 4, {}, initial_cell_states=(2, 4), input_hidden_weight_back=(16, 5),
                                 hidden_hidden_weight_back=(16, 4), bias_back=(16,)), bg.ShapeError,
                  "initial_hidden_states must have shape [2, 8] (batch, 2 * hidden), got [2, 4]"),
        ],
    ),
    OpCase("bidirectional-lstm-last",
           lambda *t: t[0].bidirectional_lstm(*t[1:], activation=Activation.RELU, recurrent_activation=Activation.SIGMOID, cell_activation=Activation.LINEAR, output_sequence=False),
           lambda *t: bidirectional(*t, activation=Activation.RELU, candidate=Activation.LINEAR, sequence=False), sizes(4, 2, directions=2), **LAYER),
    *[
        OpCase(
            f"gru-{'after' if after else 'before'}", lambda *t, after=after: t[0].gru(*t[1:], apply_reset_gate_after_mat_mul=after, output_sequence=True),
            lambda *t, after=after: gru(*t, after=after), sizes(3, 1, biases=2), **LAYER,
            wrong=[
                Wrong(lambda b: call(b, "gru", 3, {"apply_reset_gate_after_mat_mul": True}, input_bias=(4,)), bg.ShapeError,
                      "input_bias must have shape [12] (3 * hidden), got [4]"),
            ],
        )
        for after in (True, False)
    ],
    OpCase("gru-last",
           lambda *t: t[0].gru(*t[1:], direction=Direction.REVERSE, activation=Activation.RELU, recurrent_activation=Activation.HARD_SIGMOID,
                               apply_reset_gate_after_mat_mul=False, output_sequence=False),
           lambda *t: gru(*t, activation=Activation.RELU, recurrent=Activation.HARD_SIGMOID, after=False, reverse=True, sequence=False), sizes(3, 1, biases=2), **LAYER),
    OpCase("gru-running", lambda x, h: x.gru(h, W3, R3, B3, A3, apply_reset_gate_after_mat_mul=True, output_sequence=True),
           lambda x, h: gru(x, h, W3, R3, B3, A3), RUNNING, ulps=16, magnitude=2),
]  # fmt: skip
