"""Recurrent layers against ONNX Runtime and OpenVINO, and the weights of four frameworks converted as ``recurrence`` says."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import bnnsgraph as bg
from bnnsgraph import Activation, Direction

onnx, onnxruntime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
openvino = pytest.importorskip("openvino")

STEPS, BATCH, FEATURES, H = 5, 3, 4, 6
GATES = {"rnn": 1, "lstm": 4, "gru": 3}

# Sums of ten terms and a function at each of five steps, in float32, in another order in each program.
CLOSE: dict[str, Any] = {"rtol": 2e-5, "atol": 2e-6}


def order(w: np.ndarray, *gates: int) -> np.ndarray:
    """The gates of packed weights in another order; the line that the documentation gives."""
    return w.reshape(len(gates), H, -1)[list(gates)].reshape(w.shape)


class Layer(NamedTuple):
    """Weights as ONNX packs them, and what they meet."""

    x: np.ndarray
    h: np.ndarray
    c: np.ndarray
    w: np.ndarray
    r: np.ndarray
    b: np.ndarray


def draw(kind: str, directions: int = 1) -> Layer:
    rng = np.random.default_rng([ord(letter) for letter in kind])
    packed = GATES[kind] * H
    shapes = [
        (STEPS, BATCH, FEATURES),
        (directions, BATCH, H),
        (directions, BATCH, H),
        (directions, packed, FEATURES),
        (directions, packed, H),
        (directions, 2 * packed),
    ]
    return Layer(*[rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes])


def ours(method: str, *operands: np.ndarray, **options: Any) -> list[np.ndarray]:
    """Our output and states."""

    def block(b: bg.Builder) -> tuple[bg.Tensor[Any], ...]:
        x = b.constant(values=operands[0])
        return getattr(x, method)(*operands[1:], output_sequence=True, **options)

    return [np.asarray(result) for result in bg.make_context(block)()]


NAMES = {
    Activation.LINEAR: ("Affine", [1.0], [0.0]), Activation.RELU: ("Relu", [], []), Activation.SIGMOID: ("Sigmoid", [], []),
    Activation.TANH: ("Tanh", [], []), Activation.HARD_SIGMOID: ("HardSigmoid", [0.2], [0.5]),
    Activation.SCALED_TANH: ("ScaledTanh", [1.0], [1.0]),
}  # fmt: skip
"""ONNX's names, with the parameters of those that take any: the lists of parameters hold no others."""


def onnx_runtime(kind: str, layer: Layer, direction: str, activations: list[Activation], **attributes: Any) -> list[np.ndarray]:
    """ONNX Runtime's Y, Y_h and Y_c."""
    names = ["X", "W", "R", "B", "H", "C"][: 6 if kind == "lstm" else 5]
    arrays = dict(zip(names, [layer.x, layer.w, layer.r, layer.b, layer.h, layer.c], strict=False))
    outputs = ["Y", "Y_h", "Y_c"][: 3 if kind == "lstm" else 2]
    chosen = [NAMES[activation] for _ in range(len(layer.w)) for activation in activations]
    attributes["activations"] = [name for name, _, _ in chosen]
    attributes["activation_alpha"] = [alpha for _, alphas, _ in chosen for alpha in alphas] or None
    attributes["activation_beta"] = [beta for _, _, betas in chosen for beta in betas] or None
    node = onnx.helper.make_node(
        kind.upper(), ["X", "W", "R", "B", "", *names[4:]], outputs, hidden_size=H, direction=direction, **attributes
    )  # fmt: skip
    inputs = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, array.shape) for name, array in arrays.items()]
    results = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in outputs]
    model = onnx.helper.make_model(
        onnx.helper.make_graph([node], kind, inputs, results), opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9
    )
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return [np.asarray(result) for result in session.run(None, arrays)]


@pytest.mark.parametrize("direction", Direction, ids=str)
@pytest.mark.parametrize("activation", Activation, ids=str)
def test_rnn_against_onnx_runtime(direction: Direction, activation: Activation) -> None:
    layer = draw("rnn")
    sequence, last = onnx_runtime("rnn", layer, direction.name.lower(), [activation])
    output, hidden = ours(
        "rnn",
        layer.x,
        layer.h[0],
        layer.w[0],
        layer.r[0],
        layer.b[0].reshape(2, H).sum(0),
        direction=direction,
        activation=activation,
    )
    np.testing.assert_allclose(output, sequence[:, 0], **CLOSE)
    np.testing.assert_allclose(hidden, last[0], **CLOSE)


LSTM_ACTIVATIONS = [
    (Activation.SIGMOID, Activation.TANH, Activation.TANH),
    (Activation.HARD_SIGMOID, Activation.RELU, Activation.LINEAR),
    (Activation.SIGMOID, Activation.SCALED_TANH, Activation.SIGMOID),
]


def lstm_weights(layer: Layer, direction: int) -> list[np.ndarray]:
    return [
        order(layer.w[direction], 0, 2, 1, 3),
        order(layer.r[direction], 0, 2, 1, 3),
        order(layer.b[direction].reshape(2, 4 * H).sum(0), 0, 2, 1, 3),
    ]


@pytest.mark.parametrize("direction", Direction, ids=str)
@pytest.mark.parametrize("activations", LSTM_ACTIVATIONS, ids=str)
def test_lstm_against_onnx_runtime(direction: Direction, activations: tuple[Activation, Activation, Activation]) -> None:
    layer = draw("lstm")
    gate, cell, hidden = activations
    sequence, last, memory = onnx_runtime("lstm", layer, direction.name.lower(), [gate, cell, hidden])
    found = ours(
        "lstm", layer.x, layer.h[0], layer.c[0], *lstm_weights(layer, 0),
        direction=direction, activation=hidden, recurrent_activation=gate, cell_activation=cell,
    )  # fmt: skip
    for a, b in zip(found, [sequence[:, 0], last[0], memory[0]], strict=True):
        np.testing.assert_allclose(a, b, **CLOSE)


@pytest.mark.parametrize("activations", LSTM_ACTIVATIONS, ids=str)
def test_bidirectional_lstm_against_onnx_runtime(activations: tuple[Activation, Activation, Activation]) -> None:
    layer = draw("lstm", 2)
    gate, cell, hidden = activations
    sequence, last, memory = onnx_runtime("lstm", layer, "bidirectional", [gate, cell, hidden])
    states = [np.concatenate(state, -1) for state in (layer.h, layer.c)]
    found = ours(
        "bidirectional_lstm", layer.x, *states, *lstm_weights(layer, 0), *lstm_weights(layer, 1),
        activation=hidden, recurrent_activation=gate, cell_activation=cell,
    )  # fmt: skip
    both = [np.concatenate(list(state), -1) for state in (last, memory)]
    for a, b in zip(found, [np.concatenate([sequence[:, 0], sequence[:, 1]], -1), *both], strict=True):
        np.testing.assert_allclose(a, b, **CLOSE)


@pytest.mark.parametrize("after", [True, False], ids=["after", "before"])
@pytest.mark.parametrize("direction", Direction, ids=str)
@pytest.mark.parametrize(
    "activations", [(Activation.SIGMOID, Activation.TANH), (Activation.HARD_SIGMOID, Activation.RELU)], ids=str
)
def test_gru_against_onnx_runtime(direction: Direction, after: bool, activations: tuple[Activation, Activation]) -> None:
    layer = draw("gru")
    sequence, last = onnx_runtime("gru", layer, direction.name.lower(), list(activations), linear_before_reset=int(after))
    found = ours(
        "gru", layer.x, layer.h[0], order(layer.w[0], 1, 2, 0), order(layer.r[0], 1, 2, 0),
        order(layer.b[0, 3 * H :], 1, 2, 0), order(layer.b[0, : 3 * H], 1, 2, 0),
        direction=direction, recurrent_activation=activations[0], activation=activations[1],
        apply_reset_gate_after_mat_mul=after,
    )  # fmt: skip
    for a, b in zip(found, [sequence[:, 0], last[0]], strict=True):
        np.testing.assert_allclose(a, b, **CLOSE)


# OpenVINO: batch first; lstm f, i, c, o with one bias; gru z, r, h, with a fourth bias where the reset gate comes last


def openvino_sequence(kind: str, layer: Layer, direction: str, bias: np.ndarray, **options: Any) -> list[np.ndarray]:
    """OpenVINO's sequence, steps first, and its states."""
    states = [layer.h, layer.c][: 2 if kind == "lstm" else 1]
    node = getattr(openvino.opset13, f"{kind}_sequence")(
        openvino.opset13.constant(layer.x.swapaxes(0, 1)), *[state.swapaxes(0, 1) for state in states],
        np.full(BATCH, STEPS, np.int32), layer.w, layer.r, bias, H, direction, **options,
    )  # fmt: skip
    model: Any = openvino.Model(node.outputs(), [], kind)
    results = openvino.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})([])
    values = [np.asarray(results[index]) for index in range(len(node.outputs()))]
    return [values[0][:, 0].swapaxes(0, 1), *[value[:, 0] for value in values[1:]]]


@pytest.mark.parametrize("direction", Direction, ids=str)
@pytest.mark.parametrize("kind", ["rnn", "lstm", "gru-after", "gru-before"])
def test_against_openvino(kind: str, direction: Direction) -> None:
    kind, _, when = kind.partition("-")
    layer = draw(kind)
    bias = layer.b[:, : GATES[kind] * H]
    gates = {"rnn": (0,), "lstm": (1, 0, 3, 2), "gru": (1, 2, 0)}[kind]
    options: dict[str, Any] = {}
    biases = [order(bias[0], *gates)]
    if kind == "gru":
        options["apply_reset_gate_after_mat_mul"] = when == "after"
        hidden = np.zeros_like(biases[0])
        if when == "after":
            bias = layer.b[:, : 4 * H]
            hidden[H : 2 * H] = bias[0, 3 * H :]
        biases.insert(0, hidden)
    wanted = openvino_sequence(
        kind, layer, direction.name.lower(), bias, **({"linear_before_reset": when == "after"} if kind == "gru" else {})
    )
    states = [layer.h[0], layer.c[0]][: 2 if kind == "lstm" else 1]
    found = ours(
        kind, layer.x, *states, order(layer.w[0], *gates), order(layer.r[0], *gates), *biases, direction=direction, **options
    )
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, **CLOSE)


# The equations that the other frameworks document, in their order of gates


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def torch_step(
    kind: str, x: np.ndarray, h: np.ndarray, c: np.ndarray, w: np.ndarray, r: np.ndarray, b: np.ndarray, a: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """One step of torch.nn.RNN, LSTM (i, f, g, o) or GRU (r, z, n); ``a`` belongs to the input."""
    if kind == "rnn":
        return np.tanh(x @ w.T + a + h @ r.T + b), c
    if kind == "lstm":
        i, f, g, o = np.split(x @ w.T + a + h @ r.T + b, 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c
    (x_r, x_z, x_n), (h_r, h_z, h_n) = np.split(x @ w.T + a, 3, -1), np.split(h @ r.T + b, 3, -1)
    z = sigmoid(x_z + h_z)
    return (1 - z) * np.tanh(x_n + sigmoid(x_r + h_r) * h_n) + z * h, c


def keras_step(
    kind: str, x: np.ndarray, h: np.ndarray, c: np.ndarray, kernel: np.ndarray, recurrent: np.ndarray, bias: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """One step of keras.layers.SimpleRNN, LSTM (i, f, c, o) or GRU (z, r, h; ``reset_after=True``)."""
    if kind == "rnn":
        return np.tanh(x @ kernel + h @ recurrent + bias), c
    if kind == "lstm":
        i, f, g, o = np.split(x @ kernel + h @ recurrent + bias, 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c
    (x_z, x_r, x_h), (h_z, h_r, h_h) = np.split(x @ kernel + bias[0], 3, -1), np.split(h @ recurrent + bias[1], 3, -1)
    z = sigmoid(x_z + h_z)
    return z * h + (1 - z) * np.tanh(x_h + sigmoid(x_r + h_r) * h_h), c


@pytest.mark.parametrize("kind", GATES)
def test_weights_of_pytorch(kind: str) -> None:
    layer = draw(kind)
    w, r, (a, b) = layer.w[0], layer.r[0], layer.b[0].reshape(2, -1)
    gates = {"rnn": (0,), "lstm": (0, 1, 3, 2), "gru": (0, 2, 1)}[kind]
    biases = [order(b, *gates), order(a, *gates)] if kind == "gru" else [order(a + b, *gates)]
    h, c = layer.h[0], layer.c[0]
    for x in layer.x:
        h, c = torch_step(kind, x, h, c, w, r, b, a)
    states = [layer.h[0], layer.c[0]][: 2 if kind == "lstm" else 1]
    options = {"apply_reset_gate_after_mat_mul": True} if kind == "gru" else {}
    found = ours(kind, layer.x, *states, order(w, *gates), order(r, *gates), *biases, **options)
    np.testing.assert_allclose(found[1], h, **CLOSE)


@pytest.mark.parametrize("kind", GATES)
def test_weights_of_keras(kind: str) -> None:
    layer = draw(kind)
    kernel, recurrent = layer.w[0].T, layer.r[0].T
    bias = layer.b[0].reshape(2, -1) if kind == "gru" else layer.b[0, : GATES[kind] * H]
    gates = {"rnn": (0,), "lstm": (0, 1, 3, 2), "gru": (1, 2, 0)}[kind]
    biases = [order(bias[1], *gates), order(bias[0], *gates)] if kind == "gru" else [order(bias, *gates)]
    h, c = layer.h[0], layer.c[0]
    for x in layer.x:
        h, c = keras_step(kind, x, h, c, kernel, recurrent, bias)
    states = [layer.h[0], layer.c[0]][: 2 if kind == "lstm" else 1]
    options = {"apply_reset_gate_after_mat_mul": True} if kind == "gru" else {}
    found = ours(kind, layer.x, *states, order(kernel.T, *gates), order(recurrent.T, *gates), *biases, **options)
    np.testing.assert_allclose(found[1], h, **CLOSE)
