"""Rows of Core ML's reductions, products and normalisations.

Both sides sum in an order of their own, and Core ML Tools sums 16-bit floats in their own type. The tolerance is relative to
the sum of the terms' magnitudes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import bnnsgraph as bg
from tests.coreml_mapping import CALL, EXACT, Row, mask, normal, special, uniform, whole, words


def reduced(
    op: str,
    build: Callable[..., Any],
    x: np.ndarray,
    axes: Sequence[int] | None,
    *,
    roundings: float = EXACT,
    around: float = 0.0,
) -> list[Row]:
    """With and without the reduced axes, given both ways: None means all of them."""
    return [
        Row(
            op,
            {"x": x},
            lambda _, x, keep=keep: build(x, axes, keep_dimensions=keep),
            {"keep_dims": keep, **({} if axes is None else {"axes": list(axes)})},
            roundings,
            around,
        )
        for keep in (False, True)
    ]


def terms(x: np.ndarray, axes: Sequence[int] | None) -> int:
    return int(np.prod([x.shape[axis] for axis in (range(x.ndim) if axes is None else axes)]))


def magnitude(x: np.ndarray, axes: Sequence[int] | None) -> float:
    return float(np.abs(x).sum(None if axes is None else tuple(axes)).max())


def summed(count: int) -> float:
    """The roundings of a sum: they are of either sign, so that n of them add up to about sqrt(n)."""
    return 2.0 + math.sqrt(count)


AXES = ([1], [-1], [0, 2], [-2, 0], None)


def sums(op: str, build: Callable[..., Any], term: Callable[[np.ndarray], np.ndarray] = lambda x: x) -> list[Row]:
    rows: list[Row] = []
    for axes in AXES:
        x = normal(3, 4, 5)
        rows += reduced(op, build, x, axes, roundings=summed(terms(x, axes)), around=magnitude(term(x), axes))
    return rows


def reductions(
    op: str, build: Callable[..., Any], draw: Callable[..., np.ndarray], roundings: float, around: float = 0
) -> list[Row]:
    """Rows of float reductions, whose roundings are those of a sum and some more, or none."""
    rows: list[Row] = []
    for axes in AXES:
        x = draw(3, 4, 5)
        rows += reduced(op, build, x, axes, roundings=roundings and roundings + summed(terms(x, axes)), around=around)
    return rows


def integers(op: str, build: Callable[..., Any]) -> list[Row]:
    return [row for axes in ([1], [-2, 0], None) for row in reduced(op, build, whole(3, 4, 2, low=-3, high=4), axes)]


T = bg.Tensor
SUMS = [
    *sums("reduce_sum", T.sum),
    *sums("reduce_mean", T.mean),
    *sums("reduce_l1_norm", T.l1_norm),
    *sums("reduce_sum_square", T.sum_of_squares, np.square),
    *reductions("reduce_l2_norm", T.l2_norm, normal, CALL),
    *reductions("reduce_prod", T.product, lambda *shape: uniform(0.7, 1.4, *shape), CALL),
    # the error of a logarithm is the relative error of its operand
    *reductions("reduce_log_sum", T.log_sum, lambda *shape: uniform(0.1, 2, *shape), CALL, 1.0),
    *reductions("reduce_log_sum_exp", T.log_sum_exp, normal, CALL, 1.0),
    *reduced("reduce_log_sum_exp", T.log_sum_exp, np.array([[80, 90], [-90, -80]], np.float32), [1], roundings=CALL),
    *reductions("reduce_max", T.maximum, normal, EXACT),
    *reductions("reduce_min", T.minimum, normal, EXACT),
    *[
        row
        for op, build in (("reduce_max", T.maximum), ("reduce_min", T.minimum))
        for row in reduced(op, build, special(), [0])
    ],
    *[
        row
        for op, build in (
            ("reduce_sum", T.sum),
            ("reduce_prod", T.product),
            ("reduce_max", T.maximum),
            ("reduce_min", T.minimum),
            ("reduce_l1_norm", T.l1_norm),
            ("reduce_sum_square", T.sum_of_squares),
        )
        for row in (*integers(op, build), *reduced(op, build, words(), None))  # int32 wraps around on both sides
    ],
    *reduced("reduce_sum", T.sum, normal(0, 3), [0]),
    *reduced("reduce_prod", T.product, normal(2, 0), [-1]),
]


def running(x: np.ndarray, axis: int, roundings: float = EXACT, around: float = 0.0, **given: Any) -> Row:
    def build(_: bg.Builder, x: Any) -> Any:
        return x.reverse([axis]).cumulative_sum(axis).reverse([axis]) if given else x.cumulative_sum(axis)

    return Row("cumsum", {"x": x}, build, {"axis": axis, **given}, roundings, around)


LINE = normal(4, 6)
RUNNING = [
    *[running(LINE, axis, summed(LINE.shape[axis]), magnitude(LINE, [axis])) for axis in (0, 1, -1)],
    running(LINE, 1, summed(6), magnitude(LINE, [1]), reverse=True),
    *[running(whole(3, 4, 2), axis) for axis in (0, 1, -1)],
    running(words(), 0),
]


def product(
    op: str, build: Callable[..., Any], *operands: tuple[str, np.ndarray], size: float, terms: int, **given: Any
) -> Row:
    exact = operands[0][1].dtype.kind == "i"
    return Row(op, dict(operands), build, given, EXACT if exact else summed(terms), size)


def matmul(x: np.ndarray, y: np.ndarray, transpose: bool = False, other: bool = False, **given: Any) -> Row:
    left, right = (a.swapaxes(-1, -2) if turn else a for a, turn in ((x, transpose), (y, other)))
    return product(
        "matmul",
        lambda _, x, y: x.matmul(y, transpose=transpose, transpose_other=other),
        ("x", x),
        ("y", y),
        size=float((np.abs(left) @ np.abs(right)).max()),
        terms=left.shape[-1],
        **({"transpose_x": transpose, "transpose_y": other} if transpose or other else {}),
    )


def linear(x: np.ndarray, weight: np.ndarray, *bias: np.ndarray) -> Row:
    return product(
        "linear",
        lambda _, x, weight, *bias: x.linear(weight, *bias),
        ("x", x),
        ("weight", weight),
        *[("bias", vector) for vector in bias],
        size=float((np.abs(x) @ np.abs(weight.T) + sum(np.abs(vector) for vector in bias)).max()),
        terms=x.shape[-1] + 1,
    )


def einsum(equation: str, x: np.ndarray, y: np.ndarray, terms: int) -> Row:
    size = float(np.einsum(equation, np.abs(x), np.abs(y)).max())
    return Row("einsum", [x, y], lambda b, *tensors: b.einsum(equation, *tensors), {"equation": equation}, summed(terms), size)


PRODUCTS = [
    matmul(normal(3, 4), normal(4, 5)),
    matmul(normal(2, 3, 4), normal(2, 4, 5)),
    matmul(normal(2, 1, 3, 4), normal(5, 4, 2)),
    matmul(normal(4, 3), normal(4, 5), transpose=True),
    matmul(normal(2, 3, 4), normal(2, 5, 4), other=True),
    matmul(normal(2, 4, 3), normal(2, 5, 4), transpose=True, other=True),
    matmul(whole(3, 4), whole(4, 5)),
    linear(normal(3, 4), normal(5, 4), normal(5)),
    linear(normal(2, 3, 4), normal(5, 4)),
    linear(normal(4), normal(5, 4), normal(5)),
    linear(whole(3, 4), whole(5, 4), whole(5)),
    einsum("nchw,nwhu->nchu", normal(2, 3, 4, 5), normal(2, 5, 4, 3), 5),
    einsum("chw,whr->chr", normal(3, 4, 5), normal(5, 4, 2), 5),
]


def softmax(x: np.ndarray, axis: int) -> Row:
    return Row("softmax", {"x": x}, lambda _, x: x.softmax(axis), {"axis": axis}, summed(x.shape[axis]) + CALL)


def layer_norm(x: np.ndarray, axes: list[int], weights: bool = False, epsilon: float = 1e-3) -> Row:
    shape = [x.shape[axis] for axis in sorted(axis % x.ndim for axis in axes)]
    parameters = {"gamma": normal(*shape), "beta": normal(*shape)} if weights else {}
    return Row(
        "layer_norm",
        {"x": x, **parameters},
        lambda _, x, *weights: x.layer_norm(*weights, axes=axes, epsilon=epsilon),
        {"axes": axes, "epsilon": epsilon},
        summed(terms(x, axes)) + CALL,
        3.0 * float(np.abs(parameters.get("gamma", np.ones(1))).max()),  # about the largest of what has variance 1
    )


def l2_norm(x: np.ndarray, epsilon: float) -> Row:
    roundings = summed(terms(x, [-1, -2, -3])) + CALL
    return Row("l2_norm", {"x": x}, lambda _, x: x.l2_norm(epsilon=epsilon), {"epsilon": epsilon}, roundings)


def attention(masks: Sequence[np.ndarray], *operands: np.ndarray) -> Row:
    names = ("query", "key", "value", "attn_mask")
    return Row(
        "scaled_dot_product_attention",
        dict(zip(names, (*operands, *masks), strict=False)),
        lambda _, query, *others: query.scaled_dot_product_attention(*others),
        roundings=summed(operands[0].shape[-1]) + summed(operands[1].shape[-2]) + CALL,
        around=float(np.abs(operands[2]).max()),
        since=18,
    )


QUERIES, KEYS, VALUES = normal(2, 3, 4), normal(2, 5, 4), normal(2, 5, 4)
SEEN = mask(2, 3, 5) | (np.arange(5) == 1)  # each query sees a key
NORMS = [
    *[softmax(normal(3, 4, 5), axis) for axis in (0, 1, -1)],
    softmax(np.array([[-60, 0, 60], [0, 1, 2]], np.float32), 1),
    *[layer_norm(normal(3, 4, 5), axes) for axes in ([2], [-1], [1, 2], [-1, -2])],
    layer_norm(normal(3, 4, 5), [2], weights=True),
    layer_norm(normal(3, 4, 5), [-2, -1], weights=True),
    l2_norm(normal(2, 3, 4), 1e-3),
    l2_norm(normal(2, 2, 3, 4), 0.5),
    l2_norm(normal(2, 1, 2, 3, 2), 1e-3),
    attention([], QUERIES, KEYS, VALUES),
    attention([SEEN], QUERIES, KEYS, VALUES),
    attention([normal(2, 3, 5)], QUERIES, KEYS, VALUES),
    attention([mask(3, 3) | np.eye(3, dtype=bool)], normal(2, 2, 3, 4), normal(2, 2, 3, 4), normal(2, 2, 3, 4)),
]

ROWS = [*SUMS, *RUNNING, *PRODUCTS, *NORMS]
