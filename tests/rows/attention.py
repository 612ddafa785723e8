"""Rows of ``bnnsgraph.ops.attention``."""

from __future__ import annotations

from typing import Any

import numpy as np

import bnnsgraph as bg
from tests.op_table import FLOATS, Input, OpCase, Wrong, shapes, uniform


def attention(query, key, value, mask=None, causal=False, scale=None):
    """The definition; a query that sees no key gets zeros."""
    scores = np.matmul(query, np.swapaxes(key, -1, -2)) * (1 / np.sqrt(max(query.shape[-1], 1)) if scale is None else scale)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - np.max(scores, -1, keepdims=True, initial=-1e30))
    total = weights.sum(-1, keepdims=True)
    return np.matmul(weights / np.where(total == 0, 1, total), value)


def some(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Truth values, with a first row that is false throughout."""
    mask = rng.uniform(size=shape) < 0.6
    mask[..., 0, :] = False
    return mask


def hidden(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Summands, of which some and the whole first row are -infinity."""
    return np.where(some(rng, shape), rng.normal(size=shape), -np.inf)


def operands(b: Any, **changed: Any) -> Any:
    """Attention over arguments of the given shapes."""
    given = {"query": (2, 3, 4), "key": (2, 5, 4), "value": (2, 5, 6)} | changed
    tensors = {
        name: b.argument(name, *spec) if isinstance(spec[0], type) else b.argument(name, bg.Float32, spec)
        for name, spec in given.items()
    }
    return tensors.pop("query").scaled_dot_product_attention(**tensors)


ORDINARY = shapes(
    [(2, 3, 4), (2, 5, 4), (2, 5, 3)],
    [(3, 4), (5, 4), (5, 2)],
    [(2, 1, 3, 4), (5, 4), (3, 5, 2)],
    [(0, 3, 4), (0, 5, 4), (0, 5, 2)],
    [(3, 4), (0, 4), (0, 2)],
    [(3, 0), (5, 0), (5, 2)],
    draw=uniform(-2, 2),
)
SOME = (bg.Float16, bg.Float32, bg.Float64)
TRIPLE = [Input((2, 3, 4), uniform(-2, 2)), Input((2, 5, 4), uniform(-2, 2)), Input((2, 5, 3), uniform(-2, 2))]

# Scores of a few units are rounded before the exponential, which multiplies their error.
EXPONENTIAL: dict[str, Any] = {"ulps": 32, "magnitude": 2}

ROWS = [
    OpCase(
        "attention", lambda q, k, v: q.scaled_dot_product_attention(k, v), attention, ORDINARY, FLOATS, **EXPONENTIAL,
        wrong=[
            Wrong(lambda b: operands(b, key=(2, 5, 3)), bg.ShapeError, "the last sizes of query and key must be equal, got 4 against 3"),
            Wrong(lambda b: operands(b, value=(2, 4, 6)), bg.ShapeError, "the second last sizes of key and value must be equal, got 5 against 4"),
            Wrong(lambda b: operands(b, key=(5,)), bg.ShapeError, "key must have rank 2 or more (..., length, features), got [5]"),
            Wrong(lambda b: operands(b, query=(3, 3, 4)), bg.ShapeError, "shapes must broadcast"),
            Wrong(lambda b: operands(b, mask=(3, 4)), bg.ShapeError, "mask must broadcast to the scores, [2, 3, 5], got [3, 4]"),
            Wrong(lambda b: operands(b, mask=(7, 2, 3, 5)), bg.ShapeError, "mask must broadcast to the scores, [2, 3, 5], got [7, 2, 3, 5]"),
            Wrong(lambda b: operands(b, mask=(bg.Int32, (3, 5))), bg.DTypeError, "mask must be of bool or float32, got int32"),
            Wrong(lambda b: operands(b, value=(bg.Float16, (2, 5, 6))), bg.DTypeError, "query and value must have one dtype, got float32 and float16"),
            Wrong(lambda b: b.argument("x", bg.Float32, [2, 3]).scaled_dot_product_attention([[1.0] * 3], [[1.0] * 3], [[1], [0]]), bg.DTypeError,
                  "mask must be of bool or float32, got int64"),
            Wrong(lambda b: b.argument("x", bg.Int32, [2, 3]).scaled_dot_product_attention([[1] * 3], [[1] * 3]), bg.DTypeError,
                  "query must be of a float type, got int32"),
        ],
    ),
    OpCase("attention-scale", lambda q, k, v: q.scaled_dot_product_attention(k, v, scale=0.25), lambda q, k, v: attention(q, k, v, scale=0.25), [tuple(TRIPLE)], SOME, **EXPONENTIAL),
    OpCase("attention-causal", lambda q, k, v: q.scaled_dot_product_attention(k, v, causal=True), lambda q, k, v: attention(q, k, v, causal=True),
           [tuple(TRIPLE), *shapes([(5, 2), (3, 2), (3, 2)], draw=uniform(-2, 2))], SOME, **EXPONENTIAL),
    OpCase("attention-mask", lambda q, k, v, m: q.scaled_dot_product_attention(k, v, m), attention,
           [(*TRIPLE, Input((2, 3, 5), some, bg.Bool)), (*TRIPLE, Input((3, 5), some, bg.Bool)), (*TRIPLE, Input((1, 5), some, bg.Bool))], SOME, **EXPONENTIAL),
    OpCase("attention-mask-causal", lambda q, k, v, m: q.scaled_dot_product_attention(k, v, m, causal=True), lambda q, k, v, m: attention(q, k, v, m, True),
           [(*TRIPLE, Input((2, 3, 5), some, bg.Bool))], SOME, **EXPONENTIAL),
    OpCase("attention-bias", lambda q, k, v, m: q.scaled_dot_product_attention(k, v, m), attention, [(*TRIPLE, Input((3, 5), differentiable=True))], SOME, **EXPONENTIAL),
    OpCase("attention-bias-infinite", lambda q, k, v, m: q.scaled_dot_product_attention(k, v, m), attention,
           [(*TRIPLE, Input((3, 5), hidden, differentiable=False)), (*TRIPLE, Input((), lambda rng, shape: np.asarray(-np.inf), differentiable=False))], SOME, **EXPONENTIAL),
    OpCase("attention-mask-constant", lambda q, k, v: q.scaled_dot_product_attention(k, v, [[True, False, True, True, False]]),
           lambda q, k, v: attention(q, k, v, np.array([True, False, True, True, False])), [tuple(TRIPLE)], SOME, **EXPONENTIAL, flexible="the mask has a fixed size"),
]  # fmt: skip
