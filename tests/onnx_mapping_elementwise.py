"""ONNX operators on single elements: arithmetic, comparison, functions of one number, activations, casts."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

import bnnsgraph as bg
from tests.onnx_mapping_call import Call, Rule, method

T = bg.Tensor


def folded(function: Any) -> Rule:
    """The rule of an operator on one or more tensors."""
    return lambda call: functools.reduce(function, call.tensors())


def is_integer(x: Any) -> bool:
    return x.dtype.kind in "iu"


# Arithmetic


def div(call: Call) -> Any:
    x, y = call.tensors()
    if not is_integer(x):
        return x / y
    if x.dtype.kind == "u":
        return x // y
    return x.abs() // y.abs() * x.sign() * y.sign()  # towards zero, where // goes down


def mod(call: Call) -> Any:
    x, y = call.tensors()
    return x.sign() * (x.abs() % y.abs()) if call.attribute("fmod", 0) else x % y


def power(call: Call) -> Any:
    x, y = call.tensors()
    if not is_integer(x):
        return x ** y.cast(to=x.dtype)
    return x**y if is_integer(y) else (x.cast(to=y.dtype) ** y).cast(to=x.dtype)


def mean(call: Call) -> Any:
    terms = call.tensors()
    return functools.reduce(operator.add, terms) / len(terms)


def bit_shift(call: Call) -> Any:
    """A shift by more than half the bits in two steps, so that no power of two is beyond the type."""
    x, y = call.tensors()
    bits = x.data_type.bits
    outside = (y < 0) | (y >= bits)
    y = outside.select(bits, y)
    first, second = 2 ** (y // 2), 2 ** (y - y // 2)
    return x * first * second if call.attribute("direction") == "LEFT" else x // first // second


# Functions and activations


def is_inf(call: Call) -> Any:
    x = call.tensor(0)
    found = x.is_inf()
    if not call.attribute("detect_negative", 1):
        found = found & (x > 0)
    if not call.attribute("detect_positive", 1):
        found = found & (x < 0)
    return found


def clip(call: Call) -> Any:
    x = call.tensor(0)
    low, high = (call.values(position).item() if call.has(position) else None for position in (1, 2))
    if low is None:
        return x if high is None else x.min(high)
    if high is None:
        return x.threshold(to=low)
    return x.clip(to=(low, high)) if low <= high else x.max(low).min(high)


def celu(call: Call) -> Any:
    x, alpha = call.tensor(0), call.attribute("alpha", 1.0)
    return (x / alpha).elu(alpha=1) * alpha


def gelu(call: Call) -> Any:
    x = call.tensor(0)
    return x.gelu_tanh_approximation() if call.attribute("approximate", "none") == "tanh" else x.gelu()


def prelu(call: Call) -> Any:
    x, slope = call.tensors()
    return (x < 0).select(x * slope, x)  # ONNX broadcasts the slope, where prelu has one for each channel


def selu(call: Call) -> Any:
    alpha, gamma = call.attribute("alpha", 1.67326319217681884765625), call.attribute("gamma", 1.05070102214813232421875)
    return call.tensor(0).elu(alpha=alpha) * gamma


def shrink(call: Call) -> Any:
    x, bias, bound = call.tensor(0), call.attribute("bias", 0.0), call.attribute("lambd", 0.5)
    return (x < -bound).select(x + bias, (x > bound).select(x - bias, 0))


def swish(call: Call) -> Any:
    x, alpha = call.tensor(0), call.attribute("alpha", 1.0)
    return x.silu() if alpha == 1 else x * (x * alpha).sigmoid()


def thresholded_relu(call: Call) -> Any:
    x, alpha = call.tensor(0), call.attribute("alpha", 1.0)
    return (x == alpha).select(0, x.thresholded_relu(alpha=alpha))  # Apple's keeps the threshold itself, ONNX's does not


def dropout(call: Call) -> Any:
    x = call.tensor(0)
    call.without_effect("seed", "ratio", 1)  # outside training nothing is dropped
    return x, call.builder.fill(x.shape, True)


# Casts


def dtype_of(number: int) -> np.dtype[Any]:
    """The NumPy dtype of an ONNX element type."""
    from onnx.helper import tensor_dtype_to_np_dtype

    return tensor_dtype_to_np_dtype(number)


def cast_like(call: Call) -> Any:
    call.attribute("saturate", 1)  # concerns 8-bit floats
    return call.tensor(0).cast(to=call.values(1).dtype)


def cast(call: Call) -> Any:
    call.attribute("saturate", 1)
    return call.tensor(0).cast(to=dtype_of(call.attribute("to")))


RULES: dict[str, Rule] = {
    "Abs": method(T.abs),
    "Acos": method(T.acos),
    "Acosh": method(T.acosh),
    "Add": method(operator.add),
    "And": method(operator.and_),
    "Asin": method(T.asin),
    "Asinh": method(T.asinh),
    "Atan": method(T.atan),
    "Atanh": method(T.atanh),
    "Binarizer": lambda call: ((x := call.tensor(0)) > call.attribute("threshold", 0.0)).cast(to=x.dtype),
    "BitShift": bit_shift,
    "Cast": cast,
    "CastLike": cast_like,
    "Ceil": method(T.ceil),
    "Celu": celu,
    "Clip": clip,
    "Cos": method(T.cos),
    "Cosh": method(T.cosh),
    "Div": div,
    "Dropout": dropout,
    "Elu": lambda call: call.tensor(0).elu(alpha=call.attribute("alpha", 1.0)),
    "Equal": method(operator.eq),
    "Erf": method(T.erf),
    "Exp": method(T.exp),
    "Floor": method(T.floor),
    "Gelu": gelu,
    "Greater": method(operator.gt),
    "GreaterOrEqual": method(operator.ge),
    "HardSigmoid": lambda call: call.tensor(0).hard_sigmoid(call.attribute("alpha", 0.2), call.attribute("beta", 0.5)),
    "HardSwish": method(T.hard_swish),
    "Identity": lambda call: call.tensor(0),
    "IsInf": is_inf,
    "IsNaN": method(T.is_nan),
    "LeakyRelu": lambda call: call.tensor(0).leaky_relu(alpha=call.attribute("alpha", 0.01)),
    "Less": method(operator.lt),
    "LessOrEqual": method(operator.le),
    "Log": method(T.log, epsilon=0),
    "Max": folded(T.max),
    "Mean": mean,
    "Min": folded(T.min),
    "Mish": lambda call: (x := call.tensor(0)) * x.softplus(alpha=1).tanh(),
    "Mod": mod,
    "Mul": method(operator.mul),
    "Neg": method(operator.neg),
    "Not": method(operator.invert),
    "Or": method(operator.or_),
    "PRelu": prelu,
    "Pow": power,
    "Reciprocal": method(T.reciprocal, epsilon=0),
    "Relu": method(T.relu),
    "Round": method(T.round),
    "Selu": selu,
    "Shrink": shrink,
    "Sigmoid": method(T.sigmoid),
    "Sign": method(T.sign),
    "Sin": method(T.sin),
    "Sinh": method(T.sinh),
    "Softplus": method(T.softplus, alpha=1),
    "Softsign": method(T.softsign),
    "Sqrt": method(T.sqrt),
    "Sub": method(operator.sub),
    "Sum": folded(operator.add),
    "SwiGLU": lambda call: swish(call) * call.tensor(1),
    "Swish": swish,
    "Tan": method(T.tan),
    "Tanh": method(T.tanh),
    "ThresholdedRelu": thresholded_relu,
    "Where": method(T.select),
    "Xor": method(operator.xor),
}
