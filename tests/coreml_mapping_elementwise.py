"""Rows of Core ML's element-wise operations and activations."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.coreml_mapping import CALL, EXACT, Row, mask, normal, special, uniform, whole, words

STEPS = 6.0  # a formula of up to six steps that NumPy rounds one by one, and this package may not


def unary(op: str, build: Callable[[Any], Any], x: np.ndarray, roundings: float = EXACT, **options: Any) -> Row:
    return Row(op, {"x": x}, lambda _, x: build(x), roundings=roundings, **options)


def method(op: str, x: np.ndarray, roundings: float = EXACT, **options: Any) -> Row:
    """The method of the same name, without parameters."""
    return unary(op, operator.methodcaller(op), x, roundings, **options)


def binary(op: str, function: Callable[[Any, Any], Any], *draws: tuple[np.ndarray, np.ndarray], **options: Any) -> list[Row]:
    return [Row(op, {"x": x, "y": y}, lambda _, x, y: function(x, y), **options) for x, y in draws]


def within(low: float, high: float) -> Callable[[int], np.ndarray]:
    return lambda count: uniform(low, high, count)


FUNCTIONS = [
    method("abs", special()),
    method("abs", words()),
    method("acos", special(1.0, -1.0, 1.5, draw=within(-1, 1)), CALL, around=np.pi),  # near 1 a difference of larger angles
    method("asin", special(1.0, -1.0, 1.5, draw=within(-1, 1)), CALL),
    method("atan", special(1e4), CALL),
    method("atanh", special(1.0, -1.0, 1.5, draw=within(-0.9, 0.9)), CALL),
    method("ceil", special(0.5, -0.5, 2.0)),
    method("cos", special(3.0, -100.0), CALL, around=1.0),  # near its zeros no better than near 1
    method("cosh", special(5.0), CALL),
    method("erf", special(4.0), CALL),
    method("exp", special(10.0, -9.0), CALL),
    method("exp2", special(10.0, -9.0), CALL),
    unary("exp2", lambda x: 2**x, whole(12, low=0, high=31)),
    method("floor", special(0.5, -0.5, 2.0)),
    unary("inverse", lambda x: x.reciprocal(0.5), special(), CALL, given={"epsilon": 0.5}),
    unary("inverse", lambda x: x.reciprocal(1e-4), uniform(0.5, 4, 9), CALL),
    unary("log", lambda x: x.log(0.5), special(), CALL, given={"epsilon": 0.5}, around=1.0),  # x + 0.5 may round near 1
    unary("log", lambda x: x.log(0.0), special(draw=within(2, 9)), CALL, given={"epsilon": 0.0}),
    unary("logical_not", lambda x: ~x, mask(3, 4)),
    method("round", special(0.5, 1.5, 2.5, -0.5, -1.5, 3.5)),
    unary("rsqrt", lambda x: x.rsqrt(0.25), special(4.0), CALL, given={"epsilon": 0.25}),
    unary("rsqrt", lambda x: x.rsqrt(1e-12), uniform(0.5, 4, 9), CALL),
    method("sign", special()),
    method("sign", words()),
    method("sin", special(3.0, -100.0), CALL, around=1.0),
    method("sinh", special(5.0), CALL),
    method("sqrt", special(4.0), CALL),
    unary("square", lambda x: x * x, special(300.0)),
    unary("square", lambda x: x * x, words()),
    method("tan", special(1.5), CALL),
    method("tanh", special(9.0, -9.0), CALL),
    unary("threshold", lambda x: x.threshold(0.25), special(), given={"alpha": 0.25}),
    unary("threshold", lambda x: x.threshold(3), words(), given={"alpha": 3}),
    unary("clip", lambda x: x.clip((-0.5, 0.75)), special(), given={"alpha": -0.5, "beta": 0.75}),
    unary("identity", lambda x: x, normal(2, 3)),
    unary("identity", lambda x: x, mask(3)),
]


def cast(name: str, to: str, since: int, x: np.ndarray) -> Row:
    return unary("cast", operator.methodcaller("cast", to), x, given={"dtype": name}, since=since, halves=False)


CASTS = [
    *[
        cast(name, to, 15, x)
        for name, to in (("fp16", "float16"), ("fp32", "float32"), ("int32", "int32"), ("bool", "bool"))
        for x in (uniform(-40, 40, 12), uniform(-40, 40, 12).astype(np.float16), words(), mask(6))
    ],
    *[
        cast(to, to, 17, x)  # values that the narrowest of the four holds, where floats are concerned: else C leaves it open
        for to in ("int8", "uint8", "int16", "uint16")
        for x in (uniform(0, 100, 12), words(), whole(9, low=0, high=250, dtype=np.uint8), mask(6))
    ],
    *[cast("fp32", "float32", 17, whole(9, low=-99, high=99, dtype=dtype)) for dtype in (np.int8, np.int16)],
]

ANY = special(1.5)
FLOATS = (ANY[:, None], ANY[None, 6:])  # every special number against every other
BROADCAST = (normal(3, 1, 4), normal(2, 1))
SCALAR = (normal(2, 3), normal())
INTEGERS = (words()[:, None], words()[None, 8:])
DIVIDED = (whole(4, 6), np.array([-7, -3, -1, 1, 2, 5], np.int32))
COMPARISONS = {
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}
LOGIC = {"logical_and": operator.and_, "logical_or": operator.or_, "logical_xor": operator.xor}

PAIRS = [
    *binary("add", operator.add, FLOATS, BROADCAST, SCALAR, INTEGERS),
    *binary("sub", operator.sub, FLOATS, BROADCAST, SCALAR, INTEGERS),
    *binary("mul", operator.mul, FLOATS, BROADCAST, SCALAR, INTEGERS),
    *binary("real_div", operator.truediv, FLOATS, BROADCAST, SCALAR),
    *binary("floor_div", operator.floordiv, BROADCAST, SCALAR, DIVIDED),
    *binary("mod", operator.mod, BROADCAST, SCALAR, DIVIDED),
    *binary("pow", operator.pow, (uniform(0.1, 3, 3, 1), normal(4)), FLOATS, roundings=CALL),
    *binary("pow", operator.pow, (whole(4, 5), whole(5, low=0, high=9)), (words(), whole(low=2, high=5))),
    *binary("maximum", lambda x, y: x.max(y), FLOATS, BROADCAST, SCALAR, INTEGERS),
    *binary("minimum", lambda x, y: x.min(y), FLOATS, BROADCAST, SCALAR, INTEGERS),
    *[row for op, function in COMPARISONS.items() for row in binary(op, function, FLOATS, BROADCAST, SCALAR, INTEGERS)],
    *[row for op, function in LOGIC.items() for row in binary(op, function, (mask(3, 4), mask(4)))],
]


def select(condition: np.ndarray, a: np.ndarray, b: np.ndarray) -> Row:
    return Row("select", {"cond": condition, "a": a, "b": b}, lambda _, condition, a, b: condition.select(a, b))


SELECTIONS = [
    select(mask(3, 4), normal(3, 4), normal(3, 4)),
    select(mask(3, 4), whole(3, 4), whole(1, 4)),
    select(mask(3, 4), mask(3, 4), mask(3, 4)),
]


SLOPES = np.array([0.25, 0.5, -1.5], np.float32)
ONE = {"around": 1.0}  # the formula has terms near 1 where its result is small, and NumPy rounds them


def softplus_parametric(x: Any, alpha: Any, beta: Any) -> Any:
    """Numbers for each channel, axis 1."""
    shape = [-1, *[1] * (x.rank - 2)]
    return (x * beta.reshape(shape)).softplus(1.0) * alpha.reshape(shape)


ACTIVATIONS = [
    unary("clamped_relu", lambda x: x.clamped_relu(0.3, 1.25), special(), CALL, given={"alpha": 0.3, "beta": 1.25}),
    unary("elu", lambda x: x.elu(1.5), special(), CALL, given={"alpha": 1.5}, around=1.5),
    method("gelu", special(draw=within(-3, 3))[:-3], STEPS, **ONE),
    unary("gelu", lambda x: x.gelu_tanh_approximation(), normal(20), STEPS, given={"mode": "TANH_APPROXIMATION"}, **ONE),
    unary("gelu", lambda x: x.gelu_sigmoid_approximation(), normal(20), STEPS, given={"mode": "SIGMOID_APPROXIMATION"}),
    unary("leaky_relu", lambda x: x.leaky_relu(0.3), special(), given={"alpha": 0.3}),
    unary("linear_activation", lambda x: x * 1.5 + 0.3, special(), CALL, given={"alpha": 1.5, "beta": 0.3}, **ONE),
    Row("prelu", {"x": normal(2, 3, 4, 2), "alpha": SLOPES}, lambda _, x, alpha: x.prelu(alpha)),
    *[
        Row("prelu", {"x": x, "alpha": SLOPES[:1].repeat(3)}, lambda _, x, alpha: x.prelu(alpha))
        for x in (normal(2, 3, 4), normal(2, 3, 1, 2, 2))  # Core ML takes one slope for all channels at these ranks
    ],
    method("relu", special()),
    method("relu6", special(6.0, 7.0)),
    unary("scaled_tanh", lambda x: x.scaled_tanh(1.5, 0.3), special(), STEPS, given={"alpha": 1.5, "beta": 0.3}),
    method("sigmoid", special(-9.0, 9.0), STEPS),
    unary("sigmoid_hard", lambda x: x.hard_sigmoid(0.3, 0.5), special(9.0), CALL, given={"alpha": 0.3, "beta": 0.5}, **ONE),
    unary("softplus", lambda x: x.softplus(1.0), special(90.0, -9.0), STEPS, **ONE),
    Row(
        "softplus_parametric",
        {"x": normal(2, 3, 4), "alpha": SLOPES, "beta": SLOPES[::-1]},
        lambda _, *operands: softplus_parametric(*operands),
        roundings=STEPS,
        around=2.0,
    ),
    method("softsign", special()[:-3], CALL),
    unary("thresholded_relu", lambda x: x.thresholded_relu(0.25), special(0.25), given={"alpha": 0.25}),
]


def quantized(scale: Any, zero_point: Any, to: str, axis: int | None = None) -> Row:
    """Written with what there is here; the limits are those of the type."""
    ends = np.iinfo(to)
    shift = 0 if zero_point is None else zero_point.astype(np.float32)
    extra = {} if axis is None else {"axis": axis}

    def build(_: Any, x: Any, scale: Any) -> Any:
        return ((x / scale.reshape([-1, 1])).round() + np.reshape(shift, (-1, 1))).clip((ends.min, ends.max)).cast(to)

    return Row(
        "quantize",
        {"input": np.concatenate([normal(2, 9), [[900, -900]] * 2], 1, dtype=np.float32), "scale": np.array(scale, np.float32)},
        build,
        {"output_dtype": to, **({} if zero_point is None else {"zero_point": zero_point}), **extra},
        since=17,
        halves=False,
    )


QUANTIZED = [
    quantized(0.25, np.int8(3), "int8"),
    quantized(0.25, np.uint8(128), "uint8"),
    quantized(0.5, None, "int8"),
    quantized([0.25, 0.125], np.array([3, -5], np.int8), "int8", 0),
]

ROWS = [*FUNCTIONS, *CASTS, *PAIRS, *SELECTIONS, *ACTIVATIONS, *QUANTIZED]
