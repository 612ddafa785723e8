"""Rows of ``bnnsgraph.ops.elementwise`` and ``trigonometry``."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import bnnsgraph as bg
from bnnsgraph.dtypes import DType
from tests.op_table import FLOATS, INTEGERS, NUMBERS, Draw, Input, OpCase, Wrong, away_from, normal, uniform

inf, nan = np.inf, np.nan
EPSILON = math.sqrt(2**-23)
SPECIAL = (inf, -inf, nan, 0.0, -0.0, 1000.25, -1000.25)


def at(*values: float) -> tuple[Input]:
    """One operand that holds these values."""
    return (Input((len(values),), lambda rng, shape: np.array(values)),)


def reaching(draw: Draw, *far: float) -> Draw:
    """Drawn values, of which the last are these."""
    return lambda rng, shape: np.concatenate([draw(rng, shape).ravel()[: int(np.prod(shape)) - len(far)], far]).reshape(shape)


def floats(
    name: str,
    reference: Callable[..., Any],
    draw: Draw = normal,
    special: tuple[float, ...] = SPECIAL,
    *,
    far: tuple[float, ...] = (),
    wrong: tuple[Wrong, ...] = (),
    build: operator.methodcaller | None = None,
    **options: Any,
) -> OpCase:
    """A row of a function of one float: drawn values with some ``far`` out, rank 0, size 0, special values, and no integers."""
    build = build or operator.methodcaller(name)
    inputs = [(Input((2, 5), reaching(draw, *far)),), (Input((), draw),), (Input((0, 3), draw),), at(*special)]
    integer = Wrong(
        lambda b: build(matrix(b, bg.Int32)), bg.DTypeError,
        "x must be of a float type, got int32; write .cast(to=Float32) first",
    )  # fmt: skip
    return OpCase(name, build, reference, inputs, wrong=[integer, *wrong], **options)


def numbers(
    name: str, build: Callable[..., Any], reference: Callable[..., Any], draw: Draw, *sets: tuple[Input], **options: Any
) -> OpCase:
    """A row of a function of one number, integer or float."""
    return OpCase(
        name, build, reference, [(Input((2, 5), draw),), (Input((), draw),), (Input((0, 3), draw),), *sets], **options
    )


def matrix(b: Any, dtype: DType = bg.Float32) -> Any:
    """The argument that misuses are written on."""
    return b.argument("x", dtype, [2, 3])


def inside(low: float, high: float) -> Draw:
    """Whole numbers plus a fraction in [low, high)."""
    return lambda rng, shape: rng.integers(-3, 3, shape) + rng.uniform(low, high, shape)


EPSILONS = (
    *[
        Wrong(lambda b, value=value: matrix(b).log(epsilon=value), bg.ParameterError, words)
        for value, words in [
            ("1", "epsilon must be a finite number, got '1'"),
            (True, "epsilon must be a finite number, got True"),
            (nan, "epsilon must be a finite number, got nan"),
            (inf, "epsilon must be a finite number, got inf"),
            (1j, "epsilon must be a finite number, got 1j"),
            ([1.0], "epsilon must be a finite number, got [1.0]"),
            (10**400, "epsilon must be a finite number, got 1000"),
            (1e300, "Log(epsilon=1e+300): epsilon must fit float32, [-3.402823e+38, 3.402823e+38], got 1e+300"),
        ]
    ],
    Wrong(
        lambda b: (lambda x: x.log(epsilon=x))(matrix(b)),
        bg.ParameterError,
        "epsilon must be a finite number, got x: float32[2, 3]",
    ),
)

POINT = (0.1, 4.0)

ROWS = [
    floats("sin", np.sin), floats("cos", np.cos), floats("tan", np.tan, uniform(-1.2, 1.2)),
    floats("asin", np.arcsin, uniform(-0.9, 0.9), (*SPECIAL, 1.0, -1.0)), floats("acos", np.arccos, uniform(-0.9, 0.9), (*SPECIAL, 1.0, -1.0)),
    floats("atan", np.arctan, far=(1e3, -1e3)),
    # XLA reads cosh from exp(x + log(1/2)): the rounding of that sum costs up to half the exponent's epsilon
    floats("sinh", np.sinh, special=(*SPECIAL, 80.0), ulps=16), floats("cosh", np.cosh, special=(*SPECIAL, 80.0), ulps=16),
    floats("tanh", np.tanh, far=(1e3, -1e3)), floats("asinh", np.arcsinh, far=(1e3, -1e3)),
    floats("acosh", np.arccosh, uniform(1.2, 4), (*SPECIAL, 1.0), far=(1e3,)),
    floats("atanh", np.arctanh, uniform(-0.9, 0.9), (*SPECIAL, 1.0, -1.0, 0.984375, -0.4140625)),
    floats("exp", np.exp), floats("exp2", np.exp2),
    OpCase("exp2-whole", lambda x: x.exp2(), np.exp2, [at(*range(-14, 16))], FLOATS, ulps=0, ulps16=0, gradient=False),
    OpCase("exp2-wide", lambda x: x.exp2(), np.exp2, [at(*range(-126, 128))], (bg.BFloat16, bg.Float32, bg.Float64), ulps=0, ulps16=0, gradient=False),
    floats("sqrt", np.sqrt, uniform(*POINT)),
    floats("log", lambda x: np.log(x + EPSILON), uniform(*POINT), (*SPECIAL, 1.0), far=(1e3,), wrong=EPSILONS),
    floats("log-epsilon", np.log, uniform(*POINT), build=operator.methodcaller("log", epsilon=0)),
    floats("reciprocal", lambda x: 1 / (x + EPSILON), uniform(*POINT), far=(-2.0,), wrong=(
        Wrong(lambda b: matrix(b).reciprocal(epsilon=None), bg.ParameterError, "epsilon must be a finite number, got None"),
    )),
    floats("reciprocal-epsilon", lambda x: 1 / (x + 0.25), uniform(*POINT), (*SPECIAL, -0.25), build=operator.methodcaller("reciprocal", epsilon=0.25)),
    floats("reciprocal-plain", lambda x: 1 / x, uniform(*POINT), build=operator.methodcaller("reciprocal", epsilon=0.0)),
    floats("rsqrt", lambda x: 1 / np.sqrt(x + EPSILON), uniform(*POINT), (*SPECIAL, -0.001), far=(1e3,), wrong=(
        Wrong(lambda b: matrix(b).rsqrt(epsilon="tiny"), bg.ParameterError, "epsilon must be a finite number, got 'tiny'"),
    )),
    floats("rsqrt-epsilon", lambda x: 1 / np.sqrt(x + 0.25), uniform(*POINT), (*SPECIAL, -0.25, -0.5), build=operator.methodcaller("rsqrt", epsilon=np.float32(0.25))),
    floats("ceil", np.ceil, inside(0.1, 0.9), ulps=0, ulps16=0), floats("floor", np.floor, inside(0.1, 0.9), ulps=0, ulps16=0),
    floats("round", np.rint, inside(-0.4, 0.4), (*SPECIAL, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5), ulps=0, ulps16=0),
    numbers("abs", lambda x: x.abs(), np.abs, away_from(0), at(-0.0, 3.0), dtypes=NUMBERS, ulps=0, ulps16=0, wrong=[
        Wrong(lambda b: matrix(b, bg.Bool).abs(), bg.DTypeError, "Abs(): x must be of a number type, got bool"),
    ]),
    OpCase("abs-operator", lambda x: abs(x), np.abs, [at(-128, -1, 0, 127)], (bg.Int8, bg.Int32), gradient=False),
    OpCase("abs-special", lambda x: x.abs(), np.abs, [at(*SPECIAL)], FLOATS, ulps=0, ulps16=0, gradient=False),
    numbers("sign", lambda x: x.sign(), np.sign, away_from(0), at(0.0, -3.0, 3.0), dtypes=NUMBERS, ulps=0, ulps16=0),
    OpCase("sign-special", lambda x: x.sign(), np.sign, [at(*SPECIAL)], FLOATS, ulps=0, ulps16=0, gradient=False),
    numbers("clip", lambda x: x.clip(to=(-1, 2)), lambda x: np.clip(x.astype(float), -1, 2), away_from(-1, 2), at(-1.0, 2.0), dtypes=NUMBERS, wrong=[
        Wrong(lambda b: matrix(b).clip(to=(2, 1.5)), bg.ParameterError, "Clip(to=(2, 1.5)): to must be (low, high) with low <= high, got (2, 1.5)"),
        Wrong(lambda b: matrix(b).clip(to=3), bg.ParameterError, "to must be two numbers, (low, high), got 3"),
        Wrong(lambda b: matrix(b).clip(to=(1, 2, 3)), bg.ParameterError, "to must be two numbers, (low, high), got (1, 2, 3)"),
        Wrong(lambda b: (lambda x: x.clip(to=x))(matrix(b)), bg.ParameterError, "to must be two numbers, (low, high), got x: float32[2, 3]"),
        Wrong(lambda b: matrix(b).clip(to=(0, nan)), bg.ParameterError, "to must be a number, got nan"),
        Wrong(lambda b: matrix(b).clip(to=("0", 1)), bg.ParameterError, "to must be a number, got '0'"),
        Wrong(lambda b: matrix(b, bg.Int32).clip(to=(0, 1.5)), bg.ParameterError, "Clip(to=(0, 1.5)): to must be whole for int32, got 1.5"),
        Wrong(lambda b: matrix(b, bg.UInt8).clip(to=(-9, -1)), bg.ParameterError, "Clip(to=(-9, -1)): to must leave values of uint8, [0, 255], got -1"),
        Wrong(lambda b: matrix(b, bg.UInt8).clip(to=(256, inf)), bg.ParameterError, "to must leave values of uint8, [0, 255], got 256"),
        Wrong(lambda b: matrix(b, bg.Bool).clip(to=(0, 1)), bg.DTypeError, "Clip(to=(0, 1)): x must be of a number type, got bool"),
    ]),
    OpCase("clip-special", lambda x: x.clip(to=(-2.5, 0.5)), lambda x: np.clip(x, -2.5, 0.5), [at(*SPECIAL)], FLOATS, ulps=0, ulps16=0, gradient=False),
    OpCase("clip-one-sided", lambda x: x.clip(to=(-inf, 1.0)), lambda x: np.minimum(x, 1), [at(3, 1, 0)], NUMBERS, gradient=False),
    OpCase("clip-equal", lambda x: x.clip(to=(np.int8(1), 1)), np.ones_like, [at(3, 1, 0)], NUMBERS, gradient=False),
    OpCase("clip-beyond-float", lambda x: x.clip(to=(-1e300, 1e300)), lambda x: np.clip(x, -1e300, 1e300), [at(*SPECIAL)], FLOATS, gradient=False),
    OpCase("clip-beyond-integer", lambda x: x.clip(to=(-(2**70), 2**70)), lambda x: x, [at(3, 1, 0)], INTEGERS, gradient=False),
    OpCase("clip-exact", lambda x: x.clip(to=(2**53 + 1, 2**62 + 1)), lambda x: np.clip(x, 2**53 + 1, 2**62 + 1),
           [(Input((3,), lambda rng, shape: np.array([0, 2**60 + 1, 2**63 - 1])),)], (bg.Int64, bg.UInt64), gradient=False),
    numbers("threshold", lambda x: x.threshold(to=1), lambda x: np.maximum(x, 1), away_from(1), at(1.0), dtypes=NUMBERS, wrong=[
        Wrong(lambda b: matrix(b).threshold(to="low"), bg.ParameterError, "to must be a number, got 'low'"),
        Wrong(lambda b: matrix(b, bg.Int32).threshold(to=0.5), bg.ParameterError, "Threshold(to=0.5): to must be whole for int32, got 0.5"),
        Wrong(lambda b: matrix(b, bg.Int8).threshold(to=128), bg.ParameterError, "Threshold(to=128): to must leave values of int8, [-128, 127], got 128"),
        Wrong(lambda b: matrix(b, bg.Bool).threshold(to=0), bg.DTypeError, "Threshold(to=0): x must be of a number type, got bool"),
    ]),
    OpCase("threshold-special", lambda x: x.threshold(to=0.5), lambda x: np.maximum(x, 0.5), [at(*SPECIAL)], FLOATS, ulps=0, ulps16=0, gradient=False),
    OpCase("threshold-below", lambda x: x.threshold(to=-9), lambda x: x, [at(3, 1, 0)], NUMBERS, gradient=False),
    floats("is-nan", np.isnan, build=operator.methodcaller("is_nan"), gradient=False),
    floats("is-inf", np.isinf, build=operator.methodcaller("is_inf"), gradient=False),
]  # fmt: skip
