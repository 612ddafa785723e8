"""Layers against PyTorch, in the long suite: ``pip install torch && pytest -m long tests/test_torch_oracles.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bnnsgraph as bg

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore")]
torch: Any = pytest.importorskip("torch")

RNG = np.random.default_rng(7)


def draw(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def check(build: Callable[..., Any], peer: Callable[..., Any], *arrays: np.ndarray, tolerance: float = 2e-5) -> None:
    """The same answers, and the same gradient of their weighted sum."""
    import jax

    names = [f"a{index}" for index in range(len(arrays))]
    context = bg.make_context(
        lambda b: build(*[b.argument(name, array.dtype, array.shape) for name, array in zip(names, arrays, strict=True)])
    )
    tensors = [torch.tensor(array, requires_grad=array.dtype == np.float32) for array in arrays]
    wanted = peer(*tensors)
    got = np.asarray(context(*arrays))
    np.testing.assert_allclose(got, wanted.detach().numpy(), rtol=tolerance, atol=tolerance)
    weight = draw(*got.shape)
    (wanted * torch.tensor(weight)).sum().backward()
    moving = [index for index, array in enumerate(arrays) if array.dtype == np.float32]
    gradients = jax.grad(lambda *a: (context.function(*a) * weight).sum(), argnums=tuple(moving))(*arrays)
    for index, gradient in zip(moving, gradients, strict=True):
        slope = tensors[index].grad
        np.testing.assert_allclose(gradient, slope.numpy(), rtol=10 * tolerance, atol=10 * tolerance)


def functional() -> Any:
    return torch.nn.functional


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("dilation", [1, 2])
def test_convolution(stride: int, groups: int, dilation: int) -> None:
    check(
        lambda x, w, b: x.conv(
            w, [stride, 1], b, bg.ConvolutionPadding.custom([1, 1, 2, 2]), dilations=[dilation, 1], group_count=groups
        ),
        lambda x, w, b: functional().conv2d(x, w, b, (stride, 1), (1, 2), (dilation, 1), groups),
        draw(2, 4, 9, 8), draw(6, 4 // groups, 3, 2), draw(6),
    )  # fmt: skip


@pytest.mark.parametrize(("stride", "extra"), [(1, 0), (2, 1), (3, 2)])
@pytest.mark.parametrize("groups", [1, 2])
def test_transposed_convolution(stride: int, extra: int, groups: int) -> None:
    check(
        lambda x, w, b: x.conv_transpose(
            w, [stride], b, bg.ConvolutionPadding.custom([1, 1]), output_padding_values=[extra], group_count=groups
        ),
        lambda x, w, b: functional().conv_transpose1d(x, w, b, stride, 1, extra, groups),
        draw(2, 4, 7), draw(4, 3, 4), draw(3 * groups),
    )  # fmt: skip


@pytest.mark.parametrize("mode", list(bg.CeilingMode))
def test_pooling(mode: bg.CeilingMode) -> None:
    ceiling = mode is bg.CeilingMode.CEILING
    pads = bg.PoolingPadding.custom([1, 1, 0, 0])
    x = draw(2, 3, 8, 7)
    check(
        lambda x: x.pooling(bg.PoolingFunction.MAX, [3, 2], [2, 3], pads, mode),
        lambda x: functional().max_pool2d(x, (3, 2), (2, 3), (1, 0), ceil_mode=ceiling),
        x,
    )
    for counted in (True, False):
        check(
            lambda x, counted=counted: x.pooling(bg.PoolingFunction.average(counted), [3, 2], [2, 3], pads, mode),
            lambda x, counted=counted: functional().avg_pool2d(x, (3, 2), (2, 3), (1, 0), ceiling, counted),
            x,
        )


def test_normalisations() -> None:
    x, scale, shift = draw(3, 4, 5), draw(4), draw(4)
    last_scale, last_shift = draw(5), draw(5)
    check(
        lambda x, w, b: x.layer_norm(w, b, axes=[2], epsilon=1e-5),
        lambda x, w, b: functional().layer_norm(x, (5,), w, b, 1e-5),
        x, last_scale, last_shift,
    )  # fmt: skip
    check(
        lambda x, w, b: x.instance_norm(w, b, epsilon=1e-5),
        lambda x, w, b: functional().instance_norm(x, weight=w, bias=b, eps=1e-5),
        x, scale, shift,
    )  # fmt: skip
    check(
        lambda x, w, b: x.group_norm(2, w, b, epsilon=1e-5),
        lambda x, w, b: functional().group_norm(x, 2, w, b, 1e-5),
        x, scale, shift,
    )  # fmt: skip
    check(
        lambda x, w, b, m, v: x.batch_norm(m, v * v + 1, w, b, epsilon=1e-3),
        lambda x, w, b, m, v: functional().batch_norm(x, m, v * v + 1, w, b, False, 0.0, 1e-3)
        if not m.requires_grad
        else (x - m[:, None]) / torch.sqrt(v[:, None] ** 2 + 1 + 1e-3) * w[:, None] + b[:, None],
        x, scale, shift, draw(4), draw(4),
    )  # fmt: skip
    check(lambda x, w: x.rms_norm(w, epsilon=1e-6), lambda x, w: functional().rms_norm(x, (5,), w, 1e-6), x, last_scale)


ACTIVATIONS: list[tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = [
    ("gelu", lambda x: x.gelu(), lambda x: functional().gelu(x)),
    ("gelu tanh", lambda x: x.gelu_tanh_approximation(), lambda x: functional().gelu(x, approximate="tanh")),
    ("silu", lambda x: x.silu(), lambda x: functional().silu(x)),
    ("elu", lambda x: x.elu(1.5), lambda x: functional().elu(x, 1.5)),
    ("hard swish", lambda x: x.hard_swish(), lambda x: functional().hardswish(x)),
    ("softplus", lambda x: x.softplus(1.0), lambda x: functional().softplus(x)),
    ("softsign", lambda x: x.softsign(), lambda x: functional().softsign(x)),
    ("softmax", lambda x: x.softmax(1), lambda x: functional().softmax(x, 1)),
    ("log softmax", lambda x: x.log_softmax(-1), lambda x: functional().log_softmax(x, -1)),
    ("cumulative sum", lambda x: x.cumulative_sum(1), lambda x: x.cumsum(1)),
    ("log sum exp", lambda x: x.log_sum_exp([0, 1]), lambda x: x.logsumexp((0, 1))),
]


@pytest.mark.parametrize(("name", "build", "peer"), ACTIVATIONS, ids=[name for name, _, _ in ACTIVATIONS])
def test_functions(name: str, build: Callable[[Any], Any], peer: Callable[[Any], Any]) -> None:
    check(build, peer, draw(3, 4, 5))


def test_lstm_with_weights_from_torch() -> None:
    """PyTorch orders the gates i, f, g, o; here they are i, f, o, g."""
    layer = torch.nn.LSTM(3, 4)
    gates = [0, 1, 3, 2]
    w, u, b, c = (parameter.detach().numpy() for parameter in layer.parameters())
    weights = [matrix.reshape(4, 4, -1)[gates].reshape(16, -1) for matrix in (w, u)]
    bias = (b + c).reshape(4, 4)[gates].reshape(16)
    x, h, s = draw(5, 2, 3), draw(2, 4), draw(2, 4)

    def block(builder: bg.Builder) -> Any:
        steps = builder.argument("x", bg.Float32, [5, 2, 3])
        states: Any = [builder.constant(values=state) for state in (h, s)]
        parameters: Any = [builder.constant(values=value) for value in (*weights, bias)]
        return steps.lstm(*states, *parameters, output_sequence=True)

    output, hidden, memory = bg.make_context(block)(x)
    wanted, (last, cell) = layer(torch.tensor(x), (torch.tensor(h)[None], torch.tensor(s)[None]))
    for got, value in ((output, wanted), (hidden, last[0]), (memory, cell[0])):
        np.testing.assert_allclose(got, value.detach().numpy(), rtol=1e-5, atol=1e-5)


def test_embedding_gradient() -> None:
    indices = np.array([[0, 2, 2], [4, 0, 1]], np.int64)
    table = draw(5, 3)
    check(lambda t, i: t.gather(i, 0), lambda t, i: functional().embedding(i, t), table, indices)
