"""Swift spellings of operations on single elements."""

from __future__ import annotations

from typing import Any

from bnnsgraph.graph import Op
from bnnsgraph.ops import activation, arithmetic, casting, comparison, elementwise, trigonometry
from bnnsgraph.swift.calls import Call, Spelling, given, method, numbers, operands, operator, stabilized
from bnnsgraph.swift.text import TYPES, Expression, call, number


def _clip(op: elementwise.Clip, c: Call) -> Expression:
    low, high = (number(bound).replace(".infinity", "Float.infinity") for bound in op.to)
    dots = " ... " if high.startswith("-") else "..."  # together with a sign they would be one operator
    return call(f"{c.tensor(0).inner}.clip", f"to: {low}{dots}{high}")


def _remainder(op: Any, c: Call) -> Expression:
    return Expression(f"{c.tensor(0).inner} % {c.parameter(1).inner}", atom=False)


def _cast(op: casting.Cast, c: Call) -> Expression:
    return call(f"{c.tensor(0).inner}.cast", f"to: {TYPES[op.to]}.self")


def _not(op: Any, c: Call) -> Expression:
    return Expression(f".!{c.tensor(0).inner}", atom=False)


def _select(op: Any, c: Call) -> Expression:
    one, other = c.parameter(1), c.parameter(2)
    if one.text != c.tensor(1).text and other.text != c.tensor(2).text:  # of two numbers one must be a tensor
        other = c.tensor(2)
    return call(f"{c.tensor(0).inner}.select", one.text, other.text)


def _leaky_relu(op: activation.LeakyReLU, c: Call) -> Expression:
    return call(f"{c.tensor(0).inner}.leakyReLU", *given("alpha", number(op.alpha), "0.01"))


CALLS: dict[type[Op], Spelling] = {
    elementwise.Abs: method("abs"),
    elementwise.Ceil: method("ceil"),
    elementwise.Floor: method("floor"),
    elementwise.Round: method("round"),
    elementwise.Exp: method("exp"),
    elementwise.Exp2: method("exp2"),
    elementwise.Sqrt: method("sqrt"),
    elementwise.Log: stabilized("log"),
    elementwise.Reciprocal: stabilized("reciprocal"),
    elementwise.Rsqrt: stabilized("rsqrt"),
    elementwise.Clip: _clip,
    elementwise.Threshold: numbers("threshold", "to"),
    trigonometry.Sin: method("sin"),
    trigonometry.Cos: method("cos"),
    trigonometry.Tan: method("tan"),
    trigonometry.Asin: method("asin"),
    trigonometry.Acos: method("acos"),
    trigonometry.Atan: method("atan"),
    trigonometry.Sinh: method("sinh"),
    trigonometry.Cosh: method("cosh"),
    trigonometry.Tanh: method("tanh"),
    trigonometry.Asinh: method("asinh"),
    trigonometry.Acosh: method("acosh"),
    trigonometry.Atanh: method("atanh"),
    arithmetic.Add: operator("+", parameters=True),
    arithmetic.Subtract: operator("-", parameters=True),
    arithmetic.Multiply: operator("*", parameters=True),
    arithmetic.Divide: operator("/", parameters=True),
    arithmetic.Remainder: _remainder,
    arithmetic.Power: operands("pow", "y"),
    arithmetic.Maximum: operands("max", "y"),
    arithmetic.Minimum: operands("min", "y"),
    arithmetic.FusedMultiplyAdd: operands("fma", "y", "z"),
    casting.Cast: _cast,
    comparison.Equal: operator(".=="),
    comparison.NotEqual: operator(".!="),
    comparison.Less: operator(".<"),
    comparison.LessEqual: operator(".<="),
    comparison.Greater: operator(".>"),
    comparison.GreaterEqual: operator(".>="),
    comparison.And: operator(".&"),
    comparison.Or: operator(".|"),
    comparison.Xor: operator(".^"),
    comparison.Not: _not,
    comparison.Select: _select,
    activation.ReLU: method("relu"),
    activation.ReLU6: method("relu6"),
    activation.LeakyReLU: _leaky_relu,
    activation.PReLU: lambda op, c: call(f"{c.tensor(0).inner}.prelu", f"alpha: {c.elements(1).text}"),
    activation.ClampedReLU: numbers("clampedReLU", "alpha", "beta"),
    activation.ThresholdedReLU: numbers("thresholdedReLU", "alpha"),
    activation.ELU: numbers("elu", "alpha"),
    activation.GELU: method("gelu"),
    activation.GELUTanhApproximation: method("geluTanhApproximation"),
    activation.GELUSigmoidApproximation: method("geluSigmoidApproximation"),
    activation.Erf: method("erf"),
    activation.Sigmoid: method("sigmoid"),
    activation.HardSigmoid: numbers("hardSigmoid", "alpha", "beta"),
    activation.HardSwish: method("hardSwish"),
    activation.SiLU: method("silu"),
    activation.ScaledTanh: numbers("scaledTanh", "alpha", "beta"),
    activation.Softplus: numbers("softplus", "alpha"),
    activation.Softsign: method("softsign"),
}
"""One row an operation."""
