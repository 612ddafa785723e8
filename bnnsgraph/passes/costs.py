"""What an operation and a selection cost, as far as it decides whether to change their order.

The unit is one element read in a row. A processor does some sixteen multiplications and additions in that time. Elements that
stand alone take three times as long to select as whole rows, and each row of a tensor that no cache holds has to be waited for.
The figures are such that a change that would make a program slower is left, at the price of some that would not: they were
taken with random indices on two cores, where the cheapest work stands against the dearest selection.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from bnnsgraph.dtypes import DType, Float32
from bnnsgraph.graph import Op
from bnnsgraph.ops.activation import PReLU
from bnnsgraph.ops.arithmetic import Arithmetic, FusedMultiplyAdd, Negate
from bnnsgraph.ops.attention import ScaledDotProductAttention
from bnnsgraph.ops.axiswise import CumulativeSum, Exponential
from bnnsgraph.ops.casting import Cast
from bnnsgraph.ops.comparison import Compare, Logic, Not, Select
from bnnsgraph.ops.convolution import Convolution
from bnnsgraph.ops.einsum import Einsum, read
from bnnsgraph.ops.elementwise import FloatTest
from bnnsgraph.ops.gathering import GatherOp
from bnnsgraph.ops.linear import Linear, MatMul
from bnnsgraph.ops.movement import Concatenate, Reshape, Squeeze, Transpose, Unsqueeze
from bnnsgraph.ops.normalization import BatchNorm, RMSNorm, Standardize
from bnnsgraph.ops.rearrangement import BandPart, BroadcastTo, OneHot, Reverse, Tile
from bnnsgraph.ops.sorting import Ordering
from bnnsgraph.ops.unary import Unary
from bnnsgraph.passes.regions import Part, Pick, Region, kept
from bnnsgraph.spec import Shape, is_static

PRODUCTS_PER_ELEMENT = 16
ROW = 16
"""From this many elements on, a row is copied as one piece."""
FAR = 1 << 20
"""Elements of a tensor from which on rows come from memory."""
WAIT = 400
"""What a row from memory costs before its first element is there."""
NEW = 4
"""What writing an element of such a tensor costs: its memory is taken anew in each run."""
MARGIN = 1.25
"""How much more must be saved than is added."""


def is_gain(
    op: Op, group: Region, places: Sequence[tuple[int, ...]], operands: Sequence[Shape], results: Sequence[Shape]
) -> bool:
    """Whether it costs less to select from the operands than from the results of an operation.

    What the operation does for positions that are thrown away, and the selection from its results, must outweigh the
    selections from its operands. Without known sizes one position of many is a gain, and nothing else is.

    Args:
        op: the operation.
        group: picks of the results' axes that go together.
        places: the axes of each operand on which they would be made instead.
        operands: the operands' shapes, as far as other picks have made them smaller.
        results: the results' shapes, in the same way.
    """
    part = kept(group, results[0])
    if not all(map(is_static, (*operands, *results))) or part >= 1:
        return group[-1][1].count == 1
    axis, pick = group[-1]
    written = sum(_count(shape) * (NEW if _count(shape) > FAR else 1) for shape in results)
    work = WORK.get(_kind(op, WORK), 1) * (written + _read(op, operands)) + _products(op, operands, results[0])
    before = sum(_selecting(part, shape, axis, pick) for shape in results)
    after = sum(_selecting(part, shape, own[-1], pick) for shape, own in zip(operands, places, strict=True) if own)
    return (1 - part) * work + before >= MARGIN * READS.get(_kind(op, READS), 1) * after


def is_row_cheaper(count: int, width: int) -> bool:
    """Whether reading one row costs no more than its product with ``count`` numbers, which are computed for it."""
    return count * (1 + width / PRODUCTS_PER_ELEMENT) >= width * (2 if width >= ROW else 6)


def is_selected(dtype: DType) -> bool:
    """Whether the first half of the numbers, or fewer, are found faster than all are sorted. Wider keys are sorted anyway."""
    return dtype.bits <= 16 or dtype is Float32


def _count(shape: Shape) -> int:
    return math.prod(cast("tuple[int, ...]", shape))


def _read(op: Op, operands: Sequence[Shape]) -> int:
    """The elements that an operation reads: of a gather, the indices, as what it reads of its table counts as written."""
    return sum(map(_count, operands[1:] if isinstance(op, GatherOp) else operands))


def _selecting(part: float, shape: Shape, axis: int, pick: Pick) -> float:
    """What selecting a part of an axis costs: for each element a read and a write."""
    count, row = _count(shape), _count(shape[axis + 1 :])
    if isinstance(pick, Part):
        return part * count * 2
    return part * count * (2 if row >= ROW else 6) + (part * count / max(row, 1) * WAIT if count > FAR else 0)


def _kind(op: Op, table: Mapping[type[Op], Any]) -> type[Op]:
    """The class of the operation, or its base, that the table has."""
    return next((kind for kind in type(op).__mro__ if kind in table), Op)


def _products(op: Op, operands: Sequence[Shape], result: Shape) -> float:
    count = PRODUCTS.get(_kind(op, PRODUCTS))
    return 0 if count is None else count(op, operands, result) / PRODUCTS_PER_ELEMENT


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

WORK: dict[type[Op], float] = {
    Concatenate: 0.3,
    CumulativeSum: 8,
    Exponential: 2,
    Ordering: 16,
    Standardize: 2,
    RMSNorm: 2,
}
"""What an operation does with each element that it reads or writes, where that is not reading or writing it."""

READS: dict[type[Op], int] = {Exponential: 2, Standardize: 2, RMSNorm: 2}
"""How often an operation reads its operand; XLA selects again each time."""

FUSED = (
    Arithmetic, BandPart, BatchNorm, BroadcastTo, Cast, Compare, FloatTest, FusedMultiplyAdd, Logic, Negate, Not, OneHot, PReLU,
    Reshape, Reverse, Select, Squeeze, Tile, Transpose, Unary, Unsqueeze,
)  # fmt: skip
"""Operations that XLA makes part of a selection that follows, so that it computes the selected elements alone."""


def is_fused(op: Op) -> bool:
    """Whether XLA computes no more of the operation's result than a selection reads."""
    return isinstance(op, FUSED)
