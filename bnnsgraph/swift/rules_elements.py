"""Operations on single elements in terms of those that Apple's builder has."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from bnnsgraph.dtypes import Bool, Floating, Int32, Integer, is_signed
from bnnsgraph.graph import Op
from bnnsgraph.ops import activation, arithmetic, comparison, elementwise
from bnnsgraph.swift.porting import LackingError, Port, Rewrite, Rules
from bnnsgraph.tensor import Tensor

T = Tensor[Any]


def _negate(op: Op, port: Port, x: T) -> T:
    if is_signed(x.data_type):
        return x * -1
    return 0 - x


def _floor_divide(op: Op, port: Port, x: T, y: T) -> T:
    if issubclass(x.data_type, Integer):
        raise LackingError(f"what Apple's / does with {x.data_type.name} is not said; cast both to Float32 first")
    return (x / y).floor()


def _sign(op: Op, port: Port, x: T) -> T:
    if issubclass(x.data_type, Integer):
        low = x.max(-1) if is_signed(x.data_type) else x
        return low.min(1)
    above, below = x > 0, x < 0
    return (above | below).select(above.cast(x.data_type) - below.cast(x.data_type), x)


def _bounded(op: elementwise.Clip | elementwise.Threshold, port: Port, x: T) -> T | None:
    """``clip`` and ``threshold`` have bounds of type ``Float``, which not every integer has its place in."""
    low, high = op.bounds
    if not issubclass(x.data_type, Integer):
        largest = float(np.finfo(np.float32).max)
        if any(abs(bound) > largest and not math.isinf(bound) for bound in op.bounds):
            raise LackingError(f"a bound must fit Float, got {op.bounds}")
        return None
    info = np.iinfo(x.data_type.numpy)
    if low > info.min:
        x = x.max(int(low))
    return x.min(int(high)) if high < info.max else x


def _is_nan(op: Op, port: Port, x: T) -> T:
    return x != x


def _is_inf(op: Op, port: Port, x: T) -> T:
    return x.abs() == math.inf


def _compare(op: comparison.Compare, port: Port, x: T, y: T) -> T | None:
    """Comparisons are there for ``Float`` and ``Float16`` alone."""
    if issubclass(x.data_type, Floating):
        return None
    if x.data_type is Bool:
        return _TRUTH[type(op)](x, y)
    if x.data_type.bits < 32:
        return port.apply(op, x.cast(Int32), y.cast(Int32))
    return _COUNTS[type(op)](x, y)


_TRUTH: dict[type[Op], Callable[[T, T], T]] = {
    comparison.Equal: lambda x, y: ~(x ^ y),
    comparison.NotEqual: lambda x, y: x ^ y,
    comparison.Less: lambda x, y: ~x & y,
    comparison.LessEqual: lambda x, y: ~x | y,
    comparison.Greater: lambda x, y: x & ~y,
    comparison.GreaterEqual: lambda x, y: x | ~y,
}

_COUNTS: dict[type[Op], Callable[[T, T], T]] = {  # differences that wrap are zero only for equal numbers
    comparison.Equal: lambda x, y: ~(x - y).cast(Bool),
    comparison.NotEqual: lambda x, y: (x - y).cast(Bool),
    comparison.Less: lambda x, y: (x.max(y) - x).cast(Bool),
    comparison.LessEqual: lambda x, y: ~(x.max(y) - y).cast(Bool),
    comparison.Greater: lambda x, y: (x.max(y) - y).cast(Bool),
    comparison.GreaterEqual: lambda x, y: ~(x.max(y) - x).cast(Bool),
}


def _prelu(op: Op, port: Port, x: T, alpha: T) -> T | None:
    """``alpha`` is an array: a constant of rank 1."""
    slopes = port.elements(alpha)
    if slopes is None:
        return (x >= 0).select(x, aligned(alpha, 1, x.rank) * x)
    return None if alpha.rank else port.apply(op, x, port.constant(slopes.reshape(1), alpha.data_type))


def aligned(parameter: T, axis: int, rank: int) -> T:
    """A parameter of rank 1 with its axis in the place of ``axis`` of a tensor of ``rank``."""
    if parameter.rank:
        for _ in range(rank - axis - 1):
            parameter = parameter.unsqueeze(parameter.rank)
    return parameter


RULES: Rules = {
    arithmetic.Negate: Rewrite(_negate, "x * -1, or 0 - x of unsigned integers"),
    arithmetic.FloorDivide: Rewrite(_floor_divide, "(x / y).floor(), one more where the quotient rounds up to a whole number"),
    elementwise.Sign: Rewrite(_sign, "comparisons with 0"),
    elementwise.Clip: Rewrite(_bounded, "max(y:) and min(y:), as the bounds of clip are of type Float"),
    elementwise.Threshold: Rewrite(_bounded, "max(y:), as the bound of threshold is of type Float"),
    elementwise.IsNaN: Rewrite(_is_nan, "x .!= x"),
    elementwise.IsInf: Rewrite(_is_inf, "x.abs() .== infinity"),
    **{compare: Rewrite(_compare, "logic or differences, as comparisons are for Float and Float16") for compare in _TRUTH},
    activation.PReLU: Rewrite(_prelu, "a selection, or an array of one number, as the alpha of prelu is an array"),
}
"""One row an operation that may have to be rewritten."""
