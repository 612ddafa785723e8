"""What a row of the op table cannot say of activations: gradients at infinity, and at sizes whose squares overflow."""

from __future__ import annotations

import operator
from typing import Any

import jax
import numpy as np
import pytest

import bnnsgraph as bg
from bnnsgraph.dtypes import DType

SLOPES = {
    "relu": ((), 0, 1),
    "relu6": ((), 0, 0),
    "leaky_relu": ((0.5,), 0.5, 1),
    "clamped_relu": ((0.5, 6), 0.5, 0),
    "thresholded_relu": ((1,), 0, 1),
    "elu": ((0.5,), 0, 1),
    "gelu": ((), 0, 1),
    "gelu_tanh_approximation": ((), 0, 1),
    "gelu_sigmoid_approximation": ((), 0, 1),
    "erf": ((), 0, 0),
    "sigmoid": ((), 0, 0),
    "hard_sigmoid": ((0.5, 0.5), 0, 0),
    "hard_swish": ((), 0, 1),
    "silu": ((), 0, 1),
    "scaled_tanh": ((0.5, 0.5), 0, 0),
    "softplus": ((0.5,), 0, 0.5),
    "softsign": ((), 0, 0),
    "tanh": ((), 0, 0),
}
"""For each method its parameters, and the limits of its slope at -inf and +inf."""


@pytest.mark.parametrize("dtype", [bg.Float16, bg.Float32, bg.Float64], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("name", SLOPES)
def test_slope_far_out(name: str, dtype: DType) -> None:
    parameters, below, above = SLOPES[name]
    method = operator.methodcaller(name, *parameters)

    def block(b: bg.Builder) -> Any:
        return method(b.argument("x", dtype, [4]))

    far = np.array([-np.inf, np.finfo(dtype.numpy).min, np.finfo(dtype.numpy).max, np.inf], dtype.numpy)
    function = bg.make_context(block).function
    with jax.enable_x64(dtype.bits == 64):
        slope = jax.grad(lambda x: function(x).sum())(jax.numpy.asarray(far))
    assert np.asarray(slope).tolist() == [below, below, above, above]


@pytest.mark.parametrize(("name", "kink", "slope"), [
    ("relu", 0, 0), ("relu6", 0, 0), ("relu6", 6, 0), ("sign", 0, 0), ("round", 0.5, 0),
])  # fmt: skip
def test_slope_at_kinks(name: str, kink: float, slope: float) -> None:
    function = bg.make_context(lambda b: operator.methodcaller(name)(b.argument("x", bg.Float32, []))).function
    assert jax.grad(function)(np.float32(kink)) == slope


def test_slope_at_bounds_is_one() -> None:
    clip = bg.make_context(lambda b: b.argument("x", bg.Float32, [4]).clip(to=(-1, 2))).function
    threshold = bg.make_context(lambda b: b.argument("x", bg.Float32, [4]).threshold(to=-1)).function
    x = np.array([-1.5, -1, 2, 2.5], np.float32)
    assert jax.grad(lambda x: clip(x).sum())(x).tolist() == [0, 1, 1, 0]
    assert jax.grad(lambda x: threshold(x).sum())(x).tolist() == [0, 1, 1, 1]


def test_default_epsilon_is_apples() -> None:
    """The square root of the float32 epsilon, as Apple's ``.ulpOfOne.squareRoot()``."""
    context = bg.make_context(lambda b: [b.constant(values=[0.0, 1.0, 1e-5]).log(), b.constant(values=[1e-5]).rsqrt()])
    log, rsqrt = context()
    np.testing.assert_allclose(
        log, [-7.971193, 3.452074e-4, -7.942641], rtol=1e-6, atol=1e-7
    )  # 1 + epsilon is rounded to float32
    np.testing.assert_allclose(rsqrt, [53.054543], rtol=1e-5)
