"""Reductions, normalizations and products in terms of those that Apple's builder has."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, cast

import numpy as np

from bnnsgraph.dtypes import Bool
from bnnsgraph.graph import Op
from bnnsgraph.ops import attention, axiswise, einsum, movement, normalization, reduction, sorting
from bnnsgraph.sizes import UNKNOWN
from bnnsgraph.spec import is_static, normalize_axes, normalize_axis
from bnnsgraph.swift.porting import LackingError, Port, Rewrite, Rules
from bnnsgraph.swift.rules_elements import aligned
from bnnsgraph.tensor import Tensor

T = Tensor[Any]


# Axes


def _reduce(op: reduction.Reduce, port: Port, x: T) -> T | None:
    """All axes are written out, from the front; over no axes, a new axis of size 1 is reduced."""
    axes = op.over(x.rank)
    if not axes:
        return port.apply(replace(op, axes=(0,), keep_dimensions=False), x.unsqueeze(0))
    return None if op.axes == axes else port.apply(replace(op, axes=axes), x)


def _along(op: Any, port: Port, x: T) -> Any:
    axis = normalize_axis(op.axis, x.rank)
    return None if op.axis == axis else port.apply(replace(op, axis=axis), x)


def _sort(op: sorting.Sort, port: Port, x: T) -> T:
    return x.gather_along_axis(x.arg_sort(op.axis, op.sort_order), op.axis, out_of_bounds="unchecked")


# Normalizations


def _full(port: Port, parameter: T, shape: tuple[Any, ...]) -> T:
    """A parameter of rank 0 with the shape that Apple wants."""
    if parameter.rank or not shape:
        return parameter
    if not is_static(shape):
        raise LackingError("a single number as a parameter of a normalization needs fixed sizes")
    elements = port.elements(parameter)
    if elements is not None:
        return port.constant(np.broadcast_to(elements, shape), parameter.data_type)
    return port.constant(np.ones(shape), parameter.data_type) * parameter


def _normalize(op: Any, port: Port, x: T, *parameters: T) -> T | None:
    """Axes ascend; a weight has a bias; parameters have the shape of ``x`` on their axes."""
    axes: tuple[int, ...] = op.along(x.rank)
    shape: tuple[Any, ...] = tuple(x.spec.shape[axis] for axis in axes)
    whole = [_full(port, parameter, shape) for parameter in parameters]
    statistics = 2 if isinstance(op, normalization.BatchNorm) else 0
    if len(whole) == statistics + 1 and not isinstance(op, normalization.RMSNorm):
        whole.append(_full(port, port.constant(0, x.data_type), shape))
    plain = replace(op, axes=axes) if isinstance(op, normalization.LayerNorm) else op
    if isinstance(op, normalization.RMSNorm):
        if axes != (x.rank - 1,):
            port.remark("a mean of squares and rsqrt, as rmsNorm has no axes")
            squares = (x * x).mean(axes, keep_dimensions=True)
            return x * squares.rsqrt(op.epsilon) * _placed(parameters[0], axes, x.rank)
        plain = replace(op, axes=(-1,))
    same = plain == op and len(whole) == len(parameters)
    same = same and all(new is old for new, old in zip(whole, parameters, strict=True))
    return None if same else port.apply(plain, x, *whole)


def _placed(parameter: T, axes: tuple[int, ...], rank: int) -> T:
    for axis in range(rank):
        if axis not in axes and parameter.rank:
            parameter = parameter.unsqueeze(axis)
    return parameter


def _group_norm(op: normalization.GroupNorm, port: Port, x: T, *affine: T) -> T:
    batch, channels, *spatial = x.spec.shape
    rest = math.prod([channels // op.group_count, *spatial]) if is_static((channels, *spatial)) else UNKNOWN
    groups = port.apply(movement.Reshape((batch, op.group_count, rest)), x)
    normal = port.apply(movement.Reshape(x.spec.shape), groups.layer_norm(axes=[2], epsilon=op.epsilon))
    if affine:
        normal = normal * aligned(affine[0], 1, x.rank)
    return normal + aligned(affine[1], 1, x.rank) if len(affine) > 1 else normal


# Products


def _attention(op: attention.ScaledDotProductAttention, port: Port, query: T, key: T, value: T, mask: T | None = None) -> T:
    width: Any = query.spec.shape[-1]
    if op.scale is None and not isinstance(width, int):
        raise LackingError("the scale must be written where the last size of query is flexible")
    scale = 1 / math.sqrt(width or 1) if op.scale is None else op.scale
    scores = query.matmul(key, transpose_other=True) * scale
    if mask is not None:
        scores = mask.select(scores, -math.inf) if mask.data_type is Bool else scores + mask
    if op.causal:
        rows, columns = cast("tuple[int, int]", (query.spec.shape[-2], key.spec.shape[-2]))
        if not is_static((rows, columns)):
            raise LackingError("causal attention needs fixed lengths")
        scores = port.constant(np.tri(rows, columns, dtype=bool), Bool).select(scores, -math.inf)
    if mask is None:
        return scores.softmax(scores.rank - 1).matmul(value)
    largest = scores.maximum([-1], keep_dimensions=True)  # a row without a key is zeros, where softmax gives NaN
    weights = (scores - (largest == -math.inf).select(0, largest)).exp()
    total = weights.sum([-1], keep_dimensions=True)
    return (weights / (total == 0).select(1, total)).matmul(value)


def _letters(op: einsum.Einsum, tensors: tuple[T, ...]) -> tuple[list[str], str]:
    """The equation with one letter an axis: ``...`` becomes capital letters that it does not have yet."""
    terms, result = einsum.read(op.equation)
    taken = set("".join(terms))
    free = [chr(code) for code in (*range(65, 91), *range(97, 123)) if chr(code) not in taken]
    spread = [tensor.rank - len(term.replace(einsum.DOTS, "")) for term, tensor in zip(terms, tensors, strict=True)]
    longest = "".join(free[: max(spread, default=0)])
    written = [term.replace(einsum.DOTS, longest[len(longest) - count :]) for term, count in zip(terms, spread, strict=True)]
    return written, result.replace(einsum.DOTS, longest)


def _einsum(op: einsum.Einsum, port: Port, *tensors: T) -> T:
    """Products of the tensors with their axes lined up, summed over the letters that the result does not have."""
    terms, result = _letters(op, tensors)
    if any(len(set(term)) != len(term) for term in terms):
        raise LackingError("a letter that occurs twice in one term (a diagonal) has no counterpart")
    if len(terms) == 2 and (product := _matmul(port, terms, result, tensors)) is not None:
        return product
    order = result + "".join(sorted(set("".join(terms)) - set(result)))
    lined = [_lined_up(tensor, term, order) for term, tensor in zip(terms, tensors, strict=True)]
    total = lined[0]
    for tensor in lined[1:]:
        total = total * tensor
    return total.sum(list(range(len(result), len(order)))) if len(order) > len(result) else total


def _lined_up(tensor: T, term: str, order: str) -> T:
    tensor = _permuted(tensor, term, "".join(letter for letter in order if letter in term))
    for axis, letter in enumerate(order):
        if letter not in term:
            tensor = tensor.unsqueeze(axis)
    return tensor


def _permuted(tensor: T, term: str, wanted: str) -> T:
    return tensor if term == wanted else tensor.transpose([term.index(letter) for letter in wanted])


def _matmul(port: Port, terms: list[str], result: str, tensors: tuple[T, ...]) -> T | None:
    """One matrix product, where there is one row letter, one column letter and one summed letter."""
    left, right = terms
    batch = [letter for letter in result if letter in left and letter in right]
    rows = [letter for letter in left if letter not in right]
    columns = [letter for letter in right if letter not in left]
    summed = [letter for letter in left if letter in right and letter not in result]
    if not len(rows) == len(columns) == len(summed) == 1 or not set(rows + columns) <= set(result):
        return None
    front = "".join(batch)
    one = _permuted(tensors[0], left, front + rows[0] + summed[0])
    turned = right == front + columns[0] + summed[0]
    other = tensors[1] if turned else _permuted(tensors[1], right, front + summed[0] + columns[0])
    return _permuted(one.matmul(other, transpose_other=turned), front + rows[0] + columns[0], result)


def _transpose(op: movement.Transpose, port: Port, x: T) -> T | None:
    axes = normalize_axes(op.axes, x.rank)
    return None if op.axes == axes else port.apply(movement.Transpose(axes), x)


_REDUCTIONS: tuple[type[Op], ...] = (
    reduction.ReduceSum, reduction.ReduceMean, reduction.ReduceMaximum, reduction.ReduceMinimum, reduction.ReduceProduct,
    reduction.ReduceL1Norm, reduction.ReduceL2Norm, reduction.ReduceSumOfSquares, reduction.ReduceLogSum,
    reduction.ReduceLogSumExp,
)  # fmt: skip
_ALONG: tuple[type[Op], ...] = (
    axiswise.ArgMax, axiswise.ArgMin, axiswise.CumulativeSum, axiswise.Softmax, axiswise.LogSoftmax,
    sorting.TopK, sorting.ArgSort,
)  # fmt: skip
_NORMS: tuple[type[Op], ...] = (
    normalization.BatchNorm, normalization.InstanceNorm, normalization.ChannelNorm, normalization.LayerNorm
)  # fmt: skip

RULES: Rules = {
    **{each: Rewrite(_reduce) for each in _REDUCTIONS},
    **{each: Rewrite(_along) for each in _ALONG},
    **{each: Rewrite(_normalize) for each in _NORMS},
    normalization.RMSNorm: Rewrite(_normalize),
    normalization.GroupNorm: Rewrite(_group_norm, "reshape, layerNorm over each group, reshape"),
    sorting.Sort: Rewrite(_sort, "gatherAlongAxis with argSort"),
    attention.ScaledDotProductAttention: Rewrite(_attention, "matmul, softmax, matmul"),
    einsum.Einsum: Rewrite(_einsum, "matmul, or products summed"),
    movement.Transpose: Rewrite(_transpose),
}
"""One row an operation that may have to be rewritten."""
