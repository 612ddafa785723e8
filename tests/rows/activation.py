"""Rows of ``bnnsgraph.ops.activation``. References are the formulas of the docstrings, with the limits at infinity."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import bnnsgraph as bg
from tests.op_table import FLOATS, Draw, Input, OpCase, Wrong, away_from, normal
from tests.rows.elementwise import SPECIAL, floats, inf, matrix, nan

FAR = (-1e3, -45.0, 45.0, 1e3)
erf = np.vectorize(math.erf, otypes=[float])
erfc = np.vectorize(math.erfc, otypes=[float])


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def gated(x: Any, gate: Any) -> Any:
    """``x * gate``, and 0 at -inf, where the gate goes to 0 faster than x grows."""
    return np.where(x == -inf, 0, x * gate)


def activation(
    name: str,
    reference: Callable[..., Any],
    draw: Draw = normal,
    *parameters: float,
    special: tuple[float, ...] = SPECIAL,
    **options: Any,
) -> OpCase:
    """A row whose method takes these parameters by position; the gradient is also compared far out on both sides."""
    return floats(name, reference, draw, special, far=FAR, build=operator.methodcaller(name, *parameters), **options)


def parameter(build: Callable[[Any], object], name: str, got: str = "'a'") -> tuple[Wrong]:
    """A parameter that is no number."""
    return (Wrong(build, bg.ParameterError, f"{name} must be a finite number, got {got}"),)


SLOPES = [0.25, 0.5, -1.5]  # exact in every float type


def prelu(x: Any, alpha: Any) -> Any:
    return np.maximum(x, 0) + np.reshape(alpha, (-1,) + (1,) * (x.ndim - 2)) * np.minimum(x, 0)


def sloped(*shape: int, alpha: tuple[int, ...] = (3,)) -> tuple[Input, Input]:
    return Input(shape, away_from(0)), Input(alpha)


ROWS = [
    activation("relu", lambda x: np.maximum(x, 0), away_from(0), ulps=0, ulps16=0),
    activation("relu6", lambda x: np.clip(x, 0, 6), away_from(0, 6), special=(*SPECIAL, 6.0), ulps=0, ulps16=0),
    activation("leaky_relu", lambda x: np.where(x >= 0, x, 0.01 * x), away_from(0), wrong=(
        *parameter(lambda b: matrix(b).leaky_relu(alpha="a"), "alpha"), *parameter(lambda b: matrix(b).leaky_relu(alpha=nan), "alpha", "nan"),
        Wrong(lambda b: matrix(b, bg.Float16).leaky_relu(alpha=1e39), bg.ParameterError, "LeakyReLU(alpha=1e+39): alpha must fit float32"),
    )),
    floats("leaky_relu-alpha", lambda x: np.where(x >= 0, x, -1.5 * x), away_from(0), build=operator.methodcaller("leaky_relu", alpha=-1.5)),
    activation("clamped_relu", lambda x: np.minimum(np.where(x >= 0, x, 0.1 * x), 1.5), away_from(0, 1.5), 0.1, 1.5, special=(*SPECIAL, 1.5), wrong=(
        *parameter(lambda b: matrix(b).clamped_relu("a", 1), "alpha"),
        Wrong(lambda b: matrix(b).clamped_relu(1, nan), bg.ParameterError, "beta must be a number, got nan"),
    )),
    floats("clamped_relu-open", lambda x: np.where(x >= 0, x, 0.1 * x), away_from(0), build=operator.methodcaller("clamped_relu", alpha=0.1, beta=inf)),
    activation("thresholded_relu", lambda x: np.where(x < 0.5, 0, x), away_from(0.5), 0.5, special=(*SPECIAL, 0.5), ulps=0, ulps16=0,
               wrong=parameter(lambda b: matrix(b).thresholded_relu("a"), "alpha")),
    activation("elu", lambda x: np.where(x > 0, x, 0.7 * np.expm1(np.minimum(x, 0))), away_from(0), 0.7,
               wrong=parameter(lambda b: matrix(b).elu(None), "alpha", "None")),
    activation("gelu", lambda x: gated(x, erfc(-x / math.sqrt(2)) / 2)),
    activation("gelu_tanh_approximation", lambda x: gated(x, (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2)),
    activation("gelu_sigmoid_approximation", lambda x: gated(x, sigmoid(1.702 * x))),
    activation("erf", erf),
    activation("sigmoid", sigmoid),
    activation("hard_sigmoid", lambda x: np.clip(0.3 * x + 0.6, 0, 1), away_from(-2, 4 / 3), 0.3, 0.6, wrong=(
        *parameter(lambda b: matrix(b).hard_sigmoid("a", 1), "alpha"), *parameter(lambda b: matrix(b).hard_sigmoid(1, "a"), "beta"),
    )),
    activation("hard_swish", lambda x: gated(x, np.clip(x + 3, 0, 6) / 6), away_from(-3, 3), special=(*SPECIAL, 3.0, -3.0)),
    activation("silu", lambda x: gated(x, sigmoid(x))),
    activation("scaled_tanh", lambda x: 1.7 * np.tanh(0.6 * x), normal, 1.7, 0.6, wrong=(
        *parameter(lambda b: matrix(b).scaled_tanh("a", 1), "alpha"), *parameter(lambda b: matrix(b).scaled_tanh(1, "a"), "beta"),
    )),
    activation("softplus", lambda x: 1.7 * np.logaddexp(x, 0), normal, 1.7, wrong=parameter(lambda b: matrix(b).softplus("a"), "alpha")),
    activation("softsign", lambda x: np.where(np.isinf(x), np.sign(x), x / (1 + np.abs(x)))),
    OpCase("prelu", lambda x, alpha: x.prelu(alpha), prelu, [
        sloped(2, 3, 4), sloped(2, 3), sloped(2, 3, 1, 2), sloped(2, 3, 4, alpha=(1,)), sloped(2, 3, 4, alpha=()), sloped(0, 3), sloped(2, 0, alpha=(0,)),
    ], wrong=[
        Wrong(lambda b: b.argument("x", bg.Int32, [2, 3]).prelu([1]), bg.DTypeError, "PReLU(): x must be of a float type, got int32"),
        Wrong(lambda b: b.argument("x", bg.Float32, [3]).prelu(SLOPES), bg.ShapeError,
              "PReLU(): x must have rank 2 or more, because its channels are axis 1, got rank 1"),
        Wrong(lambda b: b.argument("x", bg.Float32, [3, 4]).prelu(SLOPES), bg.ShapeError,
              "PReLU(): alpha must hold 1 value or one for each of 4 channels, got 3"),
        Wrong(lambda b: b.argument("x", bg.Float32, [3, 4]).prelu([]), bg.ShapeError, "one for each of 4 channels, got 0"),
        Wrong(lambda b: b.argument("x", bg.Float32, [3, 3]).prelu([SLOPES]), bg.ShapeError, "alpha must have rank 1, got float32[1, 3]"),
        Wrong(lambda b: b.argument("x", bg.Float32, [3, 3]).prelu(["a"]), bg.DTypeError, "the element type must be one of"),
        Wrong(lambda b: b.argument("x", bg.Float32, [2, "channels"]).prelu(b.argument("slopes", bg.Float32, ["slopes"])), bg.ShapeError,
              "alpha must hold 1 value or one for each of channels channels, got slopes"),
        Wrong(lambda b: matrix(b).prelu(b.argument("slopes", bg.Float16, [3])), bg.DTypeError,
              "x and alpha must have one dtype, got float32 and float16"),
    ]),
    OpCase("prelu-numbers", lambda x: x.prelu(alpha=SLOPES), lambda x: prelu(x, SLOPES), [sloped(2, 3, 4)[:1]], FLOATS),
    OpCase("prelu-number", lambda x: x.prelu(alpha=0.25), lambda x: prelu(x, [0.25]), [
        sloped(2, 3)[:1], (Input((7, 1), lambda rng, shape: np.reshape(SPECIAL, shape)),),
    ], FLOATS),
]  # fmt: skip
