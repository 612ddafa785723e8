"""How recurrent layers are lowered: one loop a direction, the products of the input before it, sums in float32."""

from __future__ import annotations

import re
from typing import Any

import jax
import numpy as np
import pytest

import bnnsgraph as bg

GATES = {"rnn": 1, "lstm": 4, "gru": 3, "bidirectional_lstm": 4}


def context(kind: str, dtype: type[bg.Float16 | bg.Float32]) -> bg.Context:
    rng = np.random.default_rng(0)
    features, hidden, packed = 3, 5, GATES[kind] * 5
    layer = [rng.uniform(-0.5, 0.5, shape).astype(np.float16) for shape in ((packed, features), (packed, hidden), (packed,))]

    def block(b: bg.Builder) -> Any:
        x = b.argument("x", dtype, ["length", "batch", features])
        directions = 2 if kind == "bidirectional_lstm" else 1
        states = [b.argument(name, dtype, ["batch", directions * hidden]) for name in ("h", "c")[: 2 if "lstm" in kind else 1]]
        weights = [b.constant(values=array, data_type=dtype) for array in layer] * directions
        more: dict[str, Any] = {"input_bias": layer[2], "apply_reset_gate_after_mat_mul": True} if kind == "gru" else {}
        return getattr(x, kind)(*states, *weights, output_sequence=True, **more)

    return bg.make_context(block)


def arguments(kind: str, dtype: Any, length: int) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    hidden = 10 if kind == "bidirectional_lstm" else 5
    states = [rng.uniform(-1, 1, (2, hidden)).astype(dtype) for _ in range(2 if "lstm" in kind else 1)]
    return [rng.normal(size=(length, 2, 3)).astype(dtype), *states]


@pytest.mark.parametrize("kind", GATES)
def test_one_loop_a_direction(kind: str) -> None:
    text = jax.jit(context(kind, bg.Float32).function).lower(*arguments(kind, np.float32, 7)).as_text()
    directions = 2 if kind == "bidirectional_lstm" else 1
    assert len(re.findall(r"stablehlo\.while", text)) == directions
    products = re.findall(r"stablehlo\.dot_general.*precision = \[(.*?)\].*-> tensor<(.*?)xf32>", text)
    assert all(precision == "HIGHEST, HIGHEST" for precision, _ in products)
    whole = [shape for _, shape in products if shape == f"7x2x{GATES[kind] * 5}"]
    assert len(whole) == directions, "the input meets its weights for all steps at once"
    assert len(products) == 2 * directions


@pytest.mark.parametrize("kind", GATES)
def test_16_bit_layers_are_rounded_once(kind: str) -> None:
    """After 200 steps a half-precision layer is the single-precision one, rounded: the state is never rounded between."""
    half = arguments(kind, np.float16, 200)
    got = context(kind, bg.Float16)(*half)
    wanted = context(kind, bg.Float32)(*[array.astype(np.float32) for array in half])
    for a, b in zip(got, wanted, strict=True):
        assert a.dtype == np.float16
        # One float32 sum may be made in another order, which moves a value across a rounding boundary at most
        found, rounded = np.asarray(a, np.float32), np.asarray(b).astype(np.float16)
        np.testing.assert_allclose(found, rounded.astype(np.float32), rtol=2**-10, atol=2**-14)
        assert (found == rounded).mean() > 0.99


@pytest.mark.parametrize("kind", GATES)
def test_sequences_without_steps_and_of_any_length(kind: str) -> None:
    layer = context(kind, bg.Float32)
    empty = arguments(kind, np.float32, 0)
    results = layer(*empty)
    assert results[0].shape == (0, *empty[1].shape)
    for state, given in zip(results[1:], empty[1:], strict=True):
        np.testing.assert_array_equal(state, given)
    assert layer(*arguments(kind, np.float32, 4))[0].shape == (4, *empty[1].shape)
    assert str(layer.graph.results[0].spec).startswith("float32[length, batch, ")


@pytest.mark.parametrize("kind", GATES)
def test_export_with_flexible_sizes(kind: str) -> None:
    layer = context(kind, bg.Float32)
    length, batch = jax.export.symbolic_shape("length, batch")
    given = arguments(kind, np.float32, 6)
    structs = [jax.ShapeDtypeStruct((length, batch, 3), np.float32)]
    structs += [jax.ShapeDtypeStruct((batch, *state.shape[1:]), np.float32) for state in given[1:]]
    exported = jax.export.export(jax.jit(layer.function))(*structs)
    for a, b in zip(exported.call(*given), layer(*given), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)  # the loop is compiled anew: sums in another order
