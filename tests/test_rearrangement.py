"""Made and rearranged tensors with named sizes, attention against OpenVINO, and what einsum lowers to."""

from __future__ import annotations

import re
from typing import Any

import jax
import numpy as np
import pytest

import bnnsgraph as bg


def test_named_sizes() -> None:
    @bg.make_context
    def positions(b: bg.Builder) -> list[bg.Tensor[Any]]:
        tokens = b.argument("tokens", bg.Int32, ["batch", "length"])
        counted = b.arange("length").broadcast_to(["batch", "length"])
        down = b.arange("2*length", 0, -1, data_type=bg.Float32)
        return [counted + tokens, b.fill(["batch", 2], 0.5), b.arange(1, "length + 1", 2), down]

    assert [str(value.spec) for value in positions.graph.results] == [
        "int32[batch, length]", "float32[batch, 2]", "int32[(length + 1)//2]", "float32[2*length]",
    ]  # fmt: skip
    for batch, length in ((2, 3), (1, 4), (0, 0)):
        counted, half, odd, down = positions(np.full((batch, length), 10, np.int32))
        np.testing.assert_array_equal(counted, np.full((batch, length), 10) + np.arange(length))
        np.testing.assert_array_equal(half, np.full((batch, 2), 0.5))
        np.testing.assert_array_equal(odd, np.arange(1, length + 1, 2))
        np.testing.assert_array_equal(down, np.arange(2 * length, 0, -1))


def test_parts_of_a_flexible_axis_are_checked_when_it_is_known() -> None:
    halves = bg.make_context(lambda b: b.argument("x", bg.Float32, ["n", 2]).split(2, axis=0))
    assert [part.shape for part in halves(np.zeros((6, 2), np.float32))] == [(3, 2), (3, 2)]
    with pytest.raises(bg.ShapeError, match=r"parts must divide size 5 of axis 0, got 2") as caught:
        halves(np.zeros((5, 2), np.float32))
    assert ".split(2, axis=0)" in str(caught.value)
    rest = bg.make_context(lambda b: b.argument("x", bg.Float32, ["n"]).split([2, -1], axis=0))
    assert [str(value.spec) for value in rest.graph.results] == ["float32[2]", "float32[n - 2]"]
    with pytest.raises(bg.ShapeError, match=r"parts must add up to at most size 1 of axis 0, got \[2, -1\]"):
        rest(np.zeros(1, np.float32))


@pytest.mark.parametrize("equation", ["bij,bjk->bik", "ij,kj->ki", "...i,i->..."])
def test_one_product_is_lowered_to_one(equation: str) -> None:
    """Half-precision operands meet in one product with float32 sums, without copies in float32."""
    shapes = {"bij,bjk->bik": [(2, 3, 4), (2, 4, 5)], "ij,kj->ki": [(3, 4), (5, 4)], "...i,i->...": [(2, 3, 4), (4,)]}[equation]
    context = bg.make_context(
        lambda b: b.einsum(equation, *[b.argument(f"x{i}", bg.Float16, shape) for i, shape in enumerate(shapes)])
    )
    text = jax.jit(context.function).lower(*[np.zeros(shape, np.float16) for shape in shapes]).as_text()
    products = re.findall(r"stablehlo\.dot_general.*-> (tensor<.*>)", text)
    assert len(products) == 1
    assert products[0].endswith("xf32>")
    assert len(re.findall(r"stablehlo\.convert", text)) == 1, "the result alone is rounded"


@pytest.mark.parametrize("masked", ["not", "bool", "float", "causal"])
def test_attention_against_openvino(masked: str) -> None:
    """OpenVINO ignores a mask beside ``causal=True``, so they are not given together."""
    openvino = pytest.importorskip("openvino")
    opset = openvino.opset13
    rng = np.random.default_rng(0)
    shapes = [(2, 3, 4, 8), (2, 3, 6, 8), (2, 3, 6, 5)]
    query, key, value = (rng.normal(size=shape).astype(np.float32) for shape in shapes)
    masks: dict[str, np.ndarray] = {"bool": rng.uniform(size=(4, 6)) < 0.7, "float": rng.normal(size=(4, 6)).astype(np.float32)}
    mask = [masks[masked]] if masked in masks else []
    causal = masked == "causal"
    node = opset.scaled_dot_product_attention(*map(opset.constant, (query, key, value, *mask)), causal=causal)
    graph = openvino.Model(node.outputs(), [], "attention")
    model = openvino.Core().compile_model(graph, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    context = bg.make_context(lambda b: b.constant(values=query).scaled_dot_product_attention(key, value, *mask, causal=causal))
    # Eight products a score, the exponential of scores up to about 3, and six weighted values, in float32
    np.testing.assert_allclose(context(), model([])[0], rtol=1e-5, atol=1e-6)


def test_queries_without_keys_have_zeros_and_no_gradient() -> None:
    rng = np.random.default_rng(0)
    query, key, value = (rng.normal(size=shape).astype(np.float32) for shape in ((3, 4), (5, 4), (5, 2)))
    mask = np.ones((3, 5), bool)
    mask[1] = False
    context = bg.make_context(
        lambda b: b.argument("query", bg.Float32, [3, 4]).scaled_dot_product_attention(
            b.argument("key", bg.Float32, [5, 4]), b.argument("value", bg.Float32, [5, 2]), mask
        )
    )
    result = context(query, key, value)
    np.testing.assert_array_equal(result[1], [0, 0])
    gradients = jax.grad(lambda *a: (context.function(*a) ** 2).sum(), argnums=(0, 1, 2))(query, key, value)
    assert all(np.isfinite(gradient).all() for gradient in gradients)
    np.testing.assert_array_equal(gradients[0][1], np.zeros(4))
    assert np.abs(gradients[0][0]).max() > 0
