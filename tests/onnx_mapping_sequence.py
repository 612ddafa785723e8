"""ONNX operators on sequences: recurrent layers and positions."""

from __future__ import annotations

from typing import Any

import numpy as np

import bnnsgraph as bg
from tests.onnx_mapping_call import Call, Rule

GATES = {"RNN": (0,), "LSTM": (0, 2, 1, 3), "GRU": (1, 2, 0)}
"""Where the gates of our order stand in ONNX's."""


def recurrent(call: Call) -> Any:
    """A layer in one direction or both; weights, states and outputs of ONNX have an axis for them."""
    x, weight, recurrence = (call.tensor(position) for position in range(3))
    direction, hidden = call.attribute("direction", "forward"), call.attribute("hidden_size")
    batch_first = call.attribute("layout", 0)
    x = x.transpose(axes=[1, 0, 2]) if batch_first else x
    gates = GATES[call.case.op]
    bias = call.optional(3)
    biases = np.zeros((weight.shape[0], 2 * len(gates) * hidden), x.dtype) if bias is None else bias
    layers = [
        (ordered(weight[index], gates), ordered(recurrence[index], gates), *both_biases(call, biases[index], gates))
        for index in range(weight.shape[0])
    ]
    state = np.zeros((x.shape[1], hidden), x.dtype)
    whole = bool(call.case.outputs[0])  # whether every step is wanted
    directions = {"forward": [bg.Direction.FORWARD], "reverse": [bg.Direction.REVERSE]}.get(direction, list(bg.Direction))
    if call.case.op == "LSTM":
        if len(layers) == 2:
            found = x.bidirectional_lstm(*[np.tile(state, 2)] * 2, *layers[0], *layers[1], output_sequence=whole)
        else:
            found = x.lstm(state, state, *layers[0], direction=directions[0], output_sequence=whole)
        parts = [part.reshape(to=[*part.shape[:-1], len(layers), hidden]) for part in found]
    else:
        function = bg.Tensor.rnn if call.case.op == "RNN" else bg.Tensor.gru
        options = {"output_sequence": whole}
        if call.case.op == "GRU":
            options["apply_reset_gate_after_mat_mul"] = bool(call.attribute("linear_before_reset", 0))
        results = [function(x, state, *layer, direction=way, **options) for layer, way in zip(layers, directions, strict=True)]
        parts = [call.builder.stack(part_of_each, axis=-2) for part_of_each in zip(*results, strict=True)]
    # now [step, batch, direction, hidden] and [batch, direction, hidden]
    output, *states = parts
    if batch_first:
        return [output.transpose(axes=[1, 0, 2, 3]), *states]
    return [output.transpose(axes=[0, 2, 1, 3]), *(part.transpose(axes=[1, 0, 2]) for part in states)]


def ordered(weight: Any, gates: tuple[int, ...]) -> Any:
    """The rows of a weight, or the elements of a bias, with its gates in our order."""
    parts = [len(gates), weight.shape[0] // len(gates), *weight.shape[1:]]
    return weight.reshape(to=parts).gather(gates, axis=0).reshape(to=weight.shape)


def both_biases(call: Call, bias: Any, gates: tuple[int, ...]) -> tuple[Any, ...]:
    """ONNX adds one bias to the product of the input and one to that of the state; only a GRU tells them apart."""
    bias = bias if isinstance(bias, bg.Tensor) else call.builder.constant(values=bias)
    half = bias.shape[0] // 2
    of_input, of_state = ordered(bias[:half], gates), ordered(bias[half:], gates)
    return (of_state, of_input) if len(gates) == 3 else (of_input + of_state,)


def rotary_embedding(call: Call) -> Any:
    """Pairs of features, halves apart or neighbours, turned by the angle of their position."""
    x, cosine, sine, positions = call.tensor(0), call.tensor(1), call.tensor(2), call.optional(3)
    shape, heads = x.shape, call.attribute("num_heads")
    if x.rank == 3:
        x = x.reshape(to=[shape[0], shape[1], heads, shape[2] // heads])
    else:
        x = x.transpose(axes=[0, 2, 1, 3])
    turned = call.attribute("rotary_embedding_dim", 0) or x.shape[3]
    if positions is not None:
        cosine, sine = cosine.gather(positions, axis=0), sine.gather(positions, axis=0)
    cosine, sine = cosine.unsqueeze(2), sine.unsqueeze(2)
    rest, half = x[..., turned:], turned // 2
    pairs = x[..., :turned].reshape(to=[*x.shape[:3], half, 2]) if call.attribute("interleaved", 0) else None
    a, b = (x[..., :half], x[..., half:turned]) if pairs is None else (pairs[..., 0], pairs[..., 1])
    parts = [cosine * a - sine * b, sine * a + cosine * b]
    if pairs is not None:
        both = call.builder.stack(parts, axis=-1)
        parts = [both.reshape(to=[*x.shape[:3], turned])]
    result = call.builder.concatenate([*parts, rest], axis=-1)
    return result.reshape(to=shape) if len(shape) == 3 else result.transpose(axes=[0, 2, 1, 3])


RULES: dict[str, Rule] = {
    "GRU": recurrent,
    "LSTM": recurrent,
    "RNN": recurrent,
    "RotaryEmbedding": rotary_embedding,
}
