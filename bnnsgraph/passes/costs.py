"""What an operation and a selection cost, as far as it decides whether to change their order.

The unit is one element read or written. A processor does some eight multiplications and additions in that time. Elements that
stand alone in memory take three times as long to select as whole rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

from bnnsgraph.graph import Node, Op
from bnnsgraph.ops.activation import PReLU
from bnnsgraph.ops.arithmetic import Arithmetic, FusedMultiplyAdd, Negate
from bnnsgraph.ops.attention import ScaledDotProductAttention
from bnnsgraph.ops.casting import Cast
from bnnsgraph.ops.comparison import Compare, Logic, Not, Select
from bnnsgraph.ops.convolution import Convolution
from bnnsgraph.ops.einsum import Einsum, read
from bnnsgraph.ops.elementwise import FloatTest
from bnnsgraph.ops.linear import Linear, MatMul
from bnnsgraph.ops.movement import Reshape, Squeeze, Transpose, Unsqueeze
from bnnsgraph.ops.normalization import BatchNorm
from bnnsgraph.ops.rearrangement import BandPart, BroadcastTo, OneHot, Reverse, Tile
from bnnsgraph.ops.unary import Unary
from bnnsgraph.passes.regions import Pick, Rows
from bnnsgraph.spec import Shape, is_static

PRODUCTS_PER_ELEMENT = 8
ROW = 8
"""From this many elements on, a row is copied as one piece."""


def is_gain(node: Node, axis: int, pick: Pick, places: Sequence[int | None]) -> bool:
    """Whether it costs less to select from the operands, at ``places``, than from the results of the node.

    Without known sizes one position of many is a gain, and nothing else is.
    """
    shapes = [value.spec.shape for value in node.inputs] + [spec.shape for spec in node.outputs]
    if not all(map(is_static, shapes)) or not isinstance(pick.count, int):
        return pick.count == 1
    kept = pick.count / cast(int, node.outputs[0].shape[axis])
    work = sum(map(_count, shapes)) + _products(node) / PRODUCTS_PER_ELEMENT
    before = sum(kept * _count(spec.shape) * _each(spec.shape, axis, pick) for spec in node.outputs)
    operands = zip(node.inputs, places, strict=True)
    after = sum(
        kept * _count(value.spec.shape) * _each(value.spec.shape, place, pick) for value, place in operands if place is not None
    )
    return (1 - kept) * work + before >= after


def _count(shape: Shape) -> int:
    return math.prod(cast("tuple[int, ...]", shape))


def _each(shape: Shape, axis: int, pick: Pick) -> int:
    """What selecting one element costs: a read and a write."""
    return 6 if isinstance(pick, Rows) and _count(shape[axis + 1 :]) < ROW else 2


def _products(node: Node) -> int:
    for kind, count in PRODUCTS.items():
        if isinstance(node.op, kind):
            return count(node.op, [value.spec.shape for value in node.inputs], node.outputs[0].shape)
    return 0


def _inner(op: Any, left: Shape) -> int:
    return cast(int, left[-2 if op.transpose and len(left) > 1 else -1])


def _einsum(op: Any, operands: Sequence[Shape], result: Shape) -> int:
    del result
    sizes = {
        letter: size
        for term, shape in zip(read(op.equation).terms, operands, strict=True)
        for letter, size in zip(term, shape, strict=False)
    }
    return math.prod(cast("list[int]", list(sizes.values())))


PRODUCTS: dict[type[Op], Callable[[Any, Sequence[Shape], Shape], int]] = {
    MatMul: lambda op, operands, result: _count(result) * _inner(op, operands[0]),
    Linear: lambda op, operands, result: _count(result) * cast(int, operands[0][-1]),
    Einsum: _einsum,
    ScaledDotProductAttention: lambda op, operands, result: 2 * _count(result) * cast(int, operands[1][-2]),
    Convolution: lambda op, operands, result: _count(result) * _count(operands[1][1:]),
}
"""Multiplications of an operation for the shapes of its operands and of its result."""

FUSED = (
    Arithmetic, BandPart, BatchNorm, BroadcastTo, Cast, Compare, FloatTest, FusedMultiplyAdd, Logic, Negate, Not, OneHot, PReLU,
    Reshape, Reverse, Select, Squeeze, Tile, Transpose, Unary, Unsqueeze,
)  # fmt: skip
"""Operations that XLA makes part of a selection that follows, so that it computes the selected elements alone."""


def is_fused(op: Op) -> bool:
    """Whether XLA computes no more of the operation's result than a selection reads."""
    return isinstance(op, FUSED)
