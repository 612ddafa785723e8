"""Rows of ``bnnsgraph.ops.reduction`` and ``axiswise``.

Some inputs have thousands of elements, because XLA's CPU compiler gives those to a library with rules of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import bnnsgraph as bg
from tests.op_table import NUMBERS, Draw, Input, OpCase, Wrong, away_from, integers, separated, shapes, uniform

inf, nan = np.inf, np.nan
EPSILON = 2.0**-11.5
CUBES = shapes([(2, 3, 4)], [(2, 1, 5)])
EMPTY = shapes([(2, 0, 3)], [(0, 2, 3)])
UNEVEN = [[(2, 3)], [()], [(0, 3)]]
CANCELLING = 16  # the size of the terms of a sum of both signs
LONG = 320
ROUNDINGS = LONG / 2
"""The most, in epsilons, that LONG roundings of at most half an epsilon each make of a sum of positive terms, or of a product."""


def large(draw: Draw) -> list[tuple[Input, ...]]:
    """Thousands of elements, LONG of them on axis 1."""
    return shapes([(48, LONG)], [(32, LONG, 2)], draw=draw)


def one_of(*values: float) -> Draw:
    """These values, with ties."""
    return lambda rng, shape: rng.choice(values, shape)


def sparsely(*values: float) -> Draw:
    """One of the values at one place in a hundred, so that some results meet one, some several, and some none."""
    return lambda rng, shape: np.where(rng.random(shape) < 0.01, rng.choice(values, shape), rng.normal(0, 2, shape))


def tensor(b: Any, *shape: object, dtype: Any = bg.Float32) -> Any:
    """The argument that misuses are written on."""
    return b.argument("x", dtype, shape)


def softmax(x: Any, axis: int) -> Any:
    powers = np.exp(x - x.max(axis, keepdims=True, initial=-inf))
    return powers / powers.sum(axis, keepdims=True)


def log_softmax(x: Any, axis: int) -> Any:
    below = x - x.max(axis, keepdims=True, initial=-inf)
    return below - np.logaddexp.reduce(below, axis, keepdims=True)


def unit(x: Any, epsilon: float = EPSILON) -> Any:
    return x / np.sqrt(np.square(x).sum((-3, -2, -1), keepdims=True) + epsilon)


LOGICAL = Wrong(lambda b: tensor(b, 2, 3, dtype=bg.Bool).product(0), bg.DTypeError, "x must be of a number type, got bool")
WHOLE = Wrong(lambda b: tensor(b, 2, 3, dtype=bg.Int32).log_sum_exp(0), bg.DTypeError, "x must be of a float type, got int32")
SCALAR = "axis must name an axis, but the tensor has rank 0, got 0"
OUTSIDE = "axis must be in [-2, 2), got 2"

SUMS = [
    OpCase("sum", lambda x: x.sum([0, -1]), lambda x: x.sum((0, -1)), [*CUBES, *EMPTY], NUMBERS, magnitude=CANCELLING,
           wrong=[Wrong(lambda b: tensor(b, 2, 3).sum([2]), bg.ShapeError, "ReduceSum(axes=(2,)): axes must be in [-2, 2), got 2"),
                  Wrong(lambda b: tensor(b, 2, 3).sum([1, -1]), bg.ShapeError, "axes must be different from each other, got [1, -1]"),
                  Wrong(lambda b: tensor(b, 2, 3).sum(0.5), bg.ParameterError, "axes must be an integer, got 0.5"),
                  Wrong(lambda b: tensor(b).sum(0), bg.ShapeError, "axes must name an axis, but the tensor has rank 0, got 0"),
                  Wrong(lambda b: tensor(b, 2, 3, dtype=bg.Bool).sum([0]), bg.DTypeError, "x must be of a number type, got bool")]),
    OpCase("sum-all", lambda x: x.sum(None), lambda x: x.sum(), shapes(*UNEVEN), NUMBERS, magnitude=CANCELLING),
    OpCase("sum-none", lambda x: x.sum([]), lambda x: x, shapes(*UNEVEN), NUMBERS, ulps=0, ulps16=0),
    OpCase("sum-large", lambda x: x.sum(1), lambda x: x.sum(1), large(uniform(0.5, 1.5)), ulps=ROUNDINGS, gradient=False),
    OpCase("mean", lambda x: x.mean([1], keep_dimensions=True), lambda x: x.sum(1, keepdims=True) / x.shape[1], [*CUBES, *EMPTY],
           wrong=[Wrong(lambda b: tensor(b, 2, 3, dtype=bg.Int32).mean([0]), bg.DTypeError, "x must be of a float type, got int32")]),
    OpCase("mean-large", lambda x: x.mean(1), lambda x: x.mean(1), large(uniform(0.5, 1.5)), ulps=ROUNDINGS, gradient=False),
    OpCase("product", lambda x: x.product([0, -1]), lambda x: x.prod((0, -1)), [*CUBES, *EMPTY], NUMBERS, wrong=[LOGICAL]),
    OpCase("product-all", lambda x: x.product(None, keep_dimensions=True), lambda x: x.prod(keepdims=True), shapes(*UNEVEN), NUMBERS),
    OpCase("product-zeros", lambda x: x.product(1), lambda x: x.prod(1), shapes([(6, 3)], draw=one_of(0, 0, 2, -1.5))),
    OpCase("product-large", lambda x: x.product(1), lambda x: x.prod(1), large(uniform(0.9, 1.1)), ulps=ROUNDINGS, gradient=False),
    OpCase("l1-norm", lambda x: x.l1_norm([0, -1]), lambda x: np.abs(x).sum((0, -1)),
           [*shapes([(2, 3, 4)], draw=away_from(0)), *EMPTY], NUMBERS),
    OpCase("l1-norm-none", lambda x: x.l1_norm([]), np.abs, shapes(*UNEVEN, draw=away_from(0)), NUMBERS, ulps=0, ulps16=0),
    OpCase("sum-of-squares", lambda x: x.sum_of_squares([0, -1]), lambda x: np.square(x).sum((0, -1)), [*CUBES, *EMPTY], NUMBERS),
    OpCase("l2-norm", lambda x: x.l2_norm([0, -1]), lambda x: np.sqrt(np.square(x).sum((0, -1))), [*CUBES, *EMPTY],
           wrong=[Wrong(lambda b: tensor(b, 2, 3, dtype=bg.Int32).l2_norm(0), bg.DTypeError, "x must be of a float type, got int32"),
                  Wrong(lambda b: tensor(b, 2, 3).l2_norm(0, epsilon=1), bg.ParameterError,
                        "l2_norm: axes (the norm) or epsilon (x over its norm) must be given, got both"),
                  Wrong(lambda b: tensor(b, 2, 3).l2_norm(keep_dimensions=True), bg.ParameterError,
                        "l2_norm: axes must be given with keep_dimensions, got keep_dimensions alone")]),
    OpCase("l2-norm-all", lambda x: x.l2_norm(None, keep_dimensions=True), lambda x: np.sqrt(np.square(x).sum(keepdims=True)),
           shapes(*UNEVEN)),
    OpCase("l2-norm-none", lambda x: x.l2_norm([]), np.abs, shapes(*UNEVEN, draw=away_from(0))),
    OpCase("l2-norm-large", lambda x: x.l2_norm(1), lambda x: np.sqrt(np.square(x).sum(1)), large(uniform(-2, 2)), ulps=ROUNDINGS,
           gradient=False),
    OpCase("log-sum", lambda x: x.log_sum([0, -1]), lambda x: np.log(x.sum((0, -1))),
           [*shapes([(2, 3, 4)], draw=uniform(0.1, 3)), *EMPTY]),
    OpCase("log-sum-signs", lambda x: x.log_sum(1), lambda x: np.log(x.sum(1)), shapes([(40, 3)], draw=one_of(-2, 1, 2, inf, nan)),
           gradient=False),
    OpCase("log-sum-exp", lambda x: x.log_sum_exp(1, keep_dimensions=True), lambda x: np.logaddexp.reduce(x, 1, keepdims=True),
           [*CUBES, *EMPTY], magnitude=4, wrong=[WHOLE]),
    OpCase("log-sum-exp-all", lambda x: x.log_sum_exp(None), lambda x: np.logaddexp.reduce(x.ravel()), shapes(*UNEVEN), magnitude=4),
    OpCase("log-sum-exp-none", lambda x: x.log_sum_exp([]), lambda x: x, shapes(*UNEVEN), ulps=0, ulps16=0),
    OpCase("log-sum-exp-far", lambda x: x.log_sum_exp(1), lambda x: np.logaddexp.reduce(x, 1), shapes([(8, 3)], draw=one_of(-999, 0, 1000))),
    OpCase("log-sum-exp-special", lambda x: x.log_sum_exp(1), lambda x: np.logaddexp.reduce(x, 1),
           shapes([(60, 3)], draw=one_of(-inf, -inf, inf, nan, 1)), gradient=False),
    OpCase("log-sum-exp-large", lambda x: x.log_sum_exp(1), lambda x: np.logaddexp.reduce(x, 1), large(sparsely(inf, -inf, nan)),
           ulps=ROUNDINGS, gradient=False),
]  # fmt: skip

EXTREMA = [
    OpCase("maximum", lambda x: x.maximum([1]), lambda x: x.max(1), shapes([(2, 3, 4)], [(0, 2, 3)], draw=separated), NUMBERS,
           wrong=[Wrong(lambda b: tensor(b, 2, 0).maximum([1]), bg.ShapeError,
                        "axes must have at least one element, got size 0 on axis 1"),
                  Wrong(lambda b: tensor(b, 0, 3).maximum(None), bg.ShapeError,
                        "axes must have at least one element, got size 0 on axis 0")]),
    OpCase("minimum", lambda x: x.minimum(None), lambda x: x.min(), shapes([(2, 3, 4)], [()], draw=separated), NUMBERS,
           wrong=[Wrong(lambda b: tensor(b, 2, 0).minimum(-1), bg.ShapeError,
                        "axes must have at least one element, got size 0 on axis 1")]),
    OpCase("maximum-none", lambda x: x.maximum([]), lambda x: x, shapes(*UNEVEN), NUMBERS, ulps=0, ulps16=0),
    *[
        OpCase(f"{name}-{kind}", lambda x, name=name: getattr(x, name)(1, keep_dimensions=True),
               lambda x, reference=reference: reference(x, 1, keepdims=True), inputs, ulps=0, ulps16=0, gradient=False)
        for name, reference in [("maximum", np.max), ("minimum", np.min)]
        for kind, inputs in [("special", shapes([(60, 3)], draw=one_of(-inf, inf, inf, nan, 1))), ("large", large(sparsely(nan, inf)))]
    ],
    OpCase("arg-max", lambda x: x.arg_max(1), lambda x: x.argmax(1), shapes([(2, 3, 4)], [(0, 2, 3)], draw=integers(-2, 3)), NUMBERS,
           gradient=False,
           wrong=[Wrong(lambda b: tensor(b, 2, 3).arg_max(2), bg.ShapeError, f"ArgMax(axis=2): {OUTSIDE}"),
                  Wrong(lambda b: tensor(b).arg_max(0), bg.ShapeError, SCALAR),
                  Wrong(lambda b: tensor(b, 2, 3).arg_max([1]), bg.ParameterError, "axis must be an integer, got [1]"),
                  Wrong(lambda b: tensor(b, 2, 0).arg_max(1), bg.ShapeError, "axis must have at least one element, got size 0"),
                  Wrong(lambda b: tensor(b, 2**31 + 1).arg_max(0), bg.ShapeError,
                        "axis must have at most 2**31 elements, which an int32 can count, got size 2147483649"),
                  Wrong(lambda b: tensor(b, 2, 3, dtype=bg.Bool).arg_max(0), bg.DTypeError, "x must be of a number type, got bool")]),
    OpCase("arg-min", lambda x: x.arg_min(-1, keep_dimension=True), lambda x: x.argmin(-1, keepdims=True),
           shapes([(2, 3, 4)], [(5,)], draw=integers(-2, 3)), NUMBERS, gradient=False,
           wrong=[Wrong(lambda b: tensor(b, 2, 0).arg_min(1), bg.ShapeError, "axis must have at least one element, got size 0")]),
    *[
        OpCase(f"{name.replace('_', '-')}-{kind}", lambda x, name=name: getattr(x, name)(1),
               lambda x, reference=reference: reference(x, 1), inputs, gradient=False)
        for name, reference in [("arg_max", np.argmax), ("arg_min", np.argmin)]
        for kind, inputs in [("special", shapes([(60, 3)], draw=one_of(-inf, inf, nan, 0, -0.0))), ("large", large(sparsely(nan, nan, 9, -9)))]
    ],
]  # fmt: skip

ALONG = [
    OpCase("cumulative-sum", lambda x: x.cumulative_sum(1), lambda x: x.cumsum(1), [*CUBES, *EMPTY], NUMBERS, magnitude=CANCELLING,
           wrong=[Wrong(lambda b: tensor(b, 2, 3).cumulative_sum(2), bg.ShapeError, OUTSIDE),
                  Wrong(lambda b: tensor(b).cumulative_sum(0), bg.ShapeError, SCALAR),
                  Wrong(lambda b: tensor(b, 2, dtype=bg.Bool).cumulative_sum(0), bg.DTypeError, "x must be of a number type, got bool")]),
    OpCase("cumulative-sum-last", lambda x: x.cumulative_sum(-1), lambda x: x.cumsum(-1), shapes([(5,)], [(2, 7)]), NUMBERS,
           magnitude=CANCELLING),
    OpCase("cumulative-sum-large", lambda x: x.cumulative_sum(1), lambda x: x.cumsum(1), large(uniform(0.5, 1.5)), ulps=ROUNDINGS,
           gradient=False),
    OpCase("cumulative-sum-nan", lambda x: x.cumulative_sum(1), lambda x: x.cumsum(1), shapes([(20, 9)], draw=one_of(1, 2, 1, nan, inf)),
           gradient=False),
    *[
        row
        for name, reference in [("softmax", softmax), ("log_softmax", log_softmax)]
        for row in [
            OpCase(name, lambda x, name=name: getattr(x, name)(1), lambda x, reference=reference: reference(x, 1), [*CUBES, *EMPTY],
                   magnitude=4),
            OpCase(f"{name}-far", lambda x, name=name: getattr(x, name)(axis=-1), lambda x, reference=reference: reference(x, -1),
                   shapes([(5, 3)], [(4,)], draw=one_of(-999, 0, 1000))),
            OpCase(f"{name}-special", lambda x, name=name: getattr(x, name)(1), lambda x, reference=reference: reference(x, 1),
                   shapes([(80, 3)], draw=one_of(-inf, -inf, -inf, inf, nan, 1)), gradient=False),
            OpCase(f"{name}-large", lambda x, name=name: getattr(x, name)(1), lambda x, reference=reference: reference(x, 1),
                   large(sparsely(nan, -inf)), ulps=ROUNDINGS, gradient=False),
        ]
    ],
    OpCase("softmax-masked", lambda x, mask: mask.select(x, -inf).softmax(-1), lambda x, mask: softmax(np.where(mask, x, -inf), -1),
           [(Input((6, 4)), Input((6, 4), dtype=bg.Bool))], gradient=False,
           wrong=[Wrong(lambda b: tensor(b, 2, 3).softmax(2), bg.ShapeError, f"Softmax(axis=2): {OUTSIDE}"),
                  Wrong(lambda b: tensor(b).softmax(0), bg.ShapeError, SCALAR),
                  Wrong(lambda b: tensor(b, 2, 3).log_softmax(None), bg.ParameterError, "axis must be an integer, got None"),
                  Wrong(lambda b: tensor(b, 2, 3, dtype=bg.Int32).softmax(1), bg.DTypeError, "x must be of a float type, got int32")]),
    OpCase("l2-norm-epsilon", lambda x: x.l2_norm(epsilon=0.5), lambda x: unit(x, 0.5), shapes([(2, 3, 2)], [(2, 2, 1, 3)], [(2, 0, 3)]),
           wrong=[Wrong(lambda b: tensor(b, 2, 3).l2_norm(epsilon=0.5), bg.ShapeError,
                        "x must have rank 3 or more, as the norm runs over its last three axes, got rank 2"),
                  Wrong(lambda b: tensor(b, 2, 3, 4).l2_norm(epsilon=-1), bg.ParameterError, "epsilon must be at least 0, got -1.0"),
                  Wrong(lambda b: tensor(b, 2, 3, 4, dtype=bg.Int32).l2_norm(), bg.DTypeError, "x must be of a float type, got int32")]),
    OpCase("l2-norm-default", lambda x: x.l2_norm(), unit, shapes([(2, 3, 2)], [(0, 2, 1, 3)])),
]  # fmt: skip

ROWS = [*SUMS, *EXTREMA, *ALONG]
