"""ONNX's attention: masks, caches, windows and shared heads around one product of probabilities and values."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import numpy as np

import bnnsgraph as bg
from tests.onnx_mapping_call import Call, Rule
from tests.onnx_mapping_elementwise import dtype_of

MINUS_INFINITY = float("-inf")


def heads_apart(x: Any, heads: int | None) -> Any:
    """``[batch, length, heads * size]`` as ``[batch, heads, length, size]``, which tensors of rank 4 are already."""
    if x.rank == 4:
        return x
    batch, length, features = x.shape
    return x.reshape(to=[batch, length, heads, features // (heads or 1)]).transpose(axes=[0, 2, 1, 3])


def shared(x: Any, heads: int) -> Any:
    """Each head as often as neighbouring heads of the query share it."""
    times = heads // x.shape[1]
    return x if times == 1 else x.gather(np.arange(heads) // times, axis=1)


def visible(call: Call, queries: int, keys: int, past: int, filled: Any, causal: bool) -> Any:
    """Which keys a query may see by its position, and by how many keys there are; None where it may see all.

    The result is an array, or a tensor where the number of keys is known when the graph runs.
    """
    place = np.arange(keys).reshape(1, keys)
    counts = None if filled is None else filled.reshape(to=[-1, 1, 1, 1])
    position = np.arange(queries).reshape(queries, 1) + (past if counts is None else counts - queries)
    left, right = call.attribute("left_window_size", -1), call.attribute("right_window_size", -1)
    rules = [
        *([position >= place] if causal else []),
        *([position - left <= place] if left >= 0 else []),
        *([position + right >= place] if right >= 0 else []),
        *([] if counts is None else [counts > place]),
    ]
    return functools.reduce(operator.and_, rules) if rules else None


def combined(call: Call, allowed: Any, mask: Any, keys: int) -> Any:
    """One mask of truth values or summands out of the rule of positions and the node's own, which may lack the last keys."""
    if mask is None:
        return allowed if allowed is None or isinstance(allowed, bg.Tensor) else call.builder.constant(values=allowed)
    missing = [(0, 0)] * (mask.rank - 1) + [(0, keys - mask.shape[-1])]
    if mask.data_type is bg.Bool:
        mask = mask.pad(bg.Padding.constant(False), missing)
        return mask if allowed is None else mask & allowed
    mask = mask.pad(bg.Padding.constant(MINUS_INFINITY), missing)
    if allowed is None:
        return mask
    allowed = allowed if isinstance(allowed, bg.Tensor) else call.builder.constant(values=allowed)
    return allowed.select(mask, MINUS_INFINITY)


def attention(call: Call) -> Any:
    rank = len(call.case.inputs[0].shape)
    q_heads, kv_heads = call.attribute("q_num_heads"), call.attribute("kv_num_heads")
    q, k, v = (heads_apart(call.tensor(index), heads) for index, heads in enumerate((q_heads, kv_heads, kv_heads)))
    mask, filled, past = call.optional(3), call.optional(6), 0
    if call.has(4):
        past_key, past_value = call.tensor(4), call.tensor(5)
        past = past_key.shape[2]
        k, v = call.builder.concatenate([past_key, k], axis=2), call.builder.concatenate([past_value, v], axis=2)
    scale, cap = call.attribute("scale", 1 / math.sqrt(q.shape[3])), call.attribute("softcap", 0.0)
    precision, stage = call.attribute("softmax_precision"), call.attribute("qk_matmul_output_mode", 0)
    inside = cap or precision or len(call.case.outputs) > 3  # something of the steps is asked for
    causal = bool(call.attribute("is_causal", 0))
    by_flag = causal and not inside and past == 0 and filled is None
    allowed = visible(call, q.shape[2], k.shape[2], past, filled, causal and not by_flag)
    mask = combined(call, allowed, mask, k.shape[2])
    operands = q, shared(k, q.shape[1]), shared(v, q.shape[1]), mask
    scores = None
    if inside:
        output, *stages = in_steps(*operands, scale, cap, q.dtype if precision is None else dtype_of(precision))
        scores = stages[stage]
    else:
        output = bg.Tensor.scaled_dot_product_attention(*operands, causal=by_flag, scale=scale)
    if rank == 3:
        output = output.transpose(axes=[0, 2, 1, 3])
        output = output.reshape(to=[*output.shape[:2], output.shape[2] * output.shape[3]])
    return output, k, v, scores


def in_steps(q: Any, k: Any, v: Any, mask: Any, scale: float, cap: float, precision: Any) -> list[Any]:
    """The output, and the scores: raw, capped, masked, and as weights. A query that may see no key has weights of zero."""
    raw = (q * math.sqrt(scale)).matmul(k * math.sqrt(scale), transpose_other=True)
    capped = (raw / cap).tanh() * cap if cap else raw
    if mask is None:
        masked = capped
    elif mask.data_type is bg.Bool:
        masked = mask.select(capped, MINUS_INFINITY)
    else:
        masked = capped + mask
    weights = masked.cast(to=precision).softmax(-1).cast(to=q.dtype)
    if mask is not None:
        seen = mask.cast(to=bg.UInt8) if mask.data_type is bg.Bool else mask
        nothing = 0 if mask.data_type is bg.Bool else MINUS_INFINITY
        weights = (seen.maximum(-1, keep_dimensions=True) == nothing).select(0, weights)
    return [weights @ v, raw, capped, masked, weights]


def flex_attention(call: Call) -> Any:
    """Without graphs of its own for scores and probabilities."""
    q, k, v = call.tensors()
    k, v = shared(k, q.shape[1]), shared(v, q.shape[1])
    return q.scaled_dot_product_attention(k, v, scale=call.attribute("scale"))


RULES: dict[str, Rule] = {
    "Attention": attention,
    "FlexAttention": flex_attention,
}
