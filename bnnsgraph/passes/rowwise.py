"""Through which axes a selection passes each operation: the one table.

A selection of positions on one axis of a result may be made on the operands before when each element of the result depends, on
that axis, on the same position of the operands alone. A rule is a function of a node and an axis of its results: the axis of
each operand that holds the same positions, None for an operand that has none; and None instead of all when the positions mix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

from bnnsgraph.graph import Node, Op
from bnnsgraph.ops.activation import PReLU
from bnnsgraph.ops.arithmetic import Arithmetic, FusedMultiplyAdd, Negate
from bnnsgraph.ops.attention import ScaledDotProductAttention
from bnnsgraph.ops.axiswise import ArgExtremum, CumulativeSum, Exponential
from bnnsgraph.ops.casting import Cast
from bnnsgraph.ops.comparison import Compare, Logic, Not, Select
from bnnsgraph.ops.convolution import Convolution
from bnnsgraph.ops.einsum import DOTS, Einsum, read
from bnnsgraph.ops.elementwise import FloatTest
from bnnsgraph.ops.gathering import GatherAlongAxis, GatherND
from bnnsgraph.ops.linear import Linear, MatMul
from bnnsgraph.ops.movement import Concatenate, Reshape, Squeeze, Transpose, Unsqueeze
from bnnsgraph.ops.normalization import BatchNorm, GroupNorm, Normalize, RMSNorm, Standardize
from bnnsgraph.ops.padding import Pad
from bnnsgraph.ops.pooling import Pooling
from bnnsgraph.ops.rearrangement import BandPart, BroadcastTo, OneHot, Reverse, Split, Stack, Tile
from bnnsgraph.ops.reduction import L2Normalize, Reduce
from bnnsgraph.ops.sorting import Ordering
from bnnsgraph.ops.unary import Unary
from bnnsgraph.sizes import UNKNOWN, Dimension
from bnnsgraph.spec import Shape, element_count, normalize_axes, normalize_axis

Axes: TypeAlias = tuple[int | None, ...]
Rule: TypeAlias = Callable[[Node, int], Axes | None]


class MixedError(Exception):
    """The positions of the axis mix."""


def axes_of(node: Node, axis: int) -> Axes | None:
    """The axis of each operand that holds the positions of an axis of the results; None when these mix."""
    for kind in type(node.op).__mro__:
        rule = RULES.get(kind)
        if rule is not None:
            if node.outputs[0].shape[axis] is UNKNOWN:
                return None
            try:
                return rule(node, axis)
            except MixedError:
                return None
    return None


def held(shape: Shape, axis: int, size: Dimension) -> int | None:
    """``axis`` of an operand that broadcasts to ``size`` there; None where the operand has no such axis, or size 1."""
    if axis < 0 or axis >= len(shape):
        return None
    if shape[axis] == size:
        return axis
    if shape[axis] == 1:
        return None
    raise MixedError


def exact(shape: Shape, axis: int, size: Dimension) -> int:
    """``axis`` of an operand that must have this very size there."""
    if shape[axis] != size:
        raise MixedError
    return axis


def broadcasting(node: Node, axis: int) -> Axes:
    """Element by element; shapes are aligned at their last axes."""
    shape = node.outputs[0].shape
    return tuple(held(value.spec.shape, axis - len(shape) + value.spec.rank, shape[axis]) for value in node.inputs)


def same(node: Node, axis: int) -> Axes:
    """Every axis of the one operand."""
    del node
    return (axis,)


def except_on(blocked: Callable[[Any, int], Sequence[int]]) -> Rule:
    """All axes of the one operand but those that the function of operation and rank gives."""

    def rule(node: Node, axis: int) -> Axes | None:
        return None if axis in blocked(node.op, node.inputs[0].spec.rank) else (axis,)

    return rule


def _own_axis(op: Any, rank: int) -> Sequence[int]:
    return (normalize_axis(op.axis, rank),)


def _own_axes(op: Any, rank: int) -> Sequence[int]:
    return normalize_axes(op.axes, rank)


def _padded(op: Pad, rank: int) -> Sequence[int]:
    return [axis for axis, amounts in op.by_axis(rank) if amounts != (0, 0)]


def _spatial(op: Pooling, rank: int) -> Sequence[int]:
    del op
    return range(2, rank)


def _last(count: int) -> Callable[[Any, int], Sequence[int]]:
    return lambda op, rank: range(rank - count, rank)


def _off(reduced: Sequence[int], rank: int, axis: int, *, kept: bool) -> Axes | None:
    """The axis before a reduction."""
    if kept:
        return None if axis in reduced else (axis,)
    return ([other for other in range(rank) if other not in reduced][axis],)


def _reduce(node: Node, axis: int) -> Axes | None:
    op, rank = cast(Reduce, node.op), node.inputs[0].spec.rank
    return _off(op.over(rank), rank, axis, kept=op.keep_dimensions)


def _extremum(node: Node, axis: int) -> Axes | None:
    op, rank = cast(ArgExtremum, node.op), node.inputs[0].spec.rank
    return _off(_own_axis(op, rank), rank, axis, kept=op.keep_dimension)


def normalized(over: Callable[[Any, int], Sequence[int]]) -> Rule:
    """All axes but those of the statistics; parameters lie along some axes."""

    def rule(node: Node, axis: int) -> Axes | None:
        op = cast(Normalize, node.op)
        rank = node.inputs[0].spec.rank
        if axis in over(op, rank):
            return None
        along = list(op.along(rank))
        place = along.index(axis) if axis in along else None
        size = node.outputs[0].shape[axis]
        own = [None if place is None else held(value.spec.shape, place, size) for value in node.inputs[1:]]
        return (axis, *own)

    return rule


def _statistics(op: Any, rank: int) -> Sequence[int]:
    return op.over(rank)


def _prelu(node: Node, axis: int) -> Axes:
    alpha = node.inputs[1].spec.shape
    return axis, held(alpha, 0, node.outputs[0].shape[axis]) if axis == 1 else None


def _product_axes(node: Node, axis: int, swapped: Sequence[bool]) -> Axes:
    """Of ``[..., m, k] @ [..., k, n]``, with the last two axes of an operand swapped where it says so."""
    shape, size = node.outputs[0].shape, node.outputs[0].shape[axis]
    left, right, *bias = (value.spec.shape for value in node.inputs)
    rows, columns = len(left) > 1, len(right) > 1
    if len(shape) != max(len(left) - 2, len(right) - 2, 0) + rows + columns:
        raise MixedError  # the bias adds axes
    end = axis - len(shape)
    added = tuple(held(each, end + len(each), size) for each in bias)
    if columns and end == -1:
        return (None, exact(right, len(right) - (2 if swapped[1] else 1), size), *added)
    if rows and end == (-2 if columns else -1):
        return (exact(left, len(left) - (1 if swapped[0] else 2), size), None, *added)
    ahead = end + rows + columns  # counted from the last batch axis
    return (*(held(each[:-2], len(each[:-2]) + ahead, size) for each in (left, right)), *added)


def _matmul(node: Node, axis: int) -> Axes:
    op = cast(MatMul, node.op)
    return _product_axes(node, axis, (op.transpose, op.transpose_other))


def _linear(node: Node, axis: int) -> Axes:
    x, weight, *bias = (value.spec.shape for value in node.inputs)
    size = node.outputs[0].shape[axis]
    if axis < len(x) - 1:
        return (exact(x, axis, size), None, *(None for _ in bias))
    return (None, exact(weight, 0, size), *(exact(each, 0, size) for each in bias))


def _einsum(node: Node, axis: int) -> Axes | None:
    terms, result = read(cast(Einsum, node.op).equation)
    if any(DOTS in term for term in (*terms, result)):
        return None
    letter = result[axis]
    if any(term.count(letter) > 1 for term in terms):
        return None
    return tuple(
        held(value.spec.shape, term.find(letter), node.outputs[0].shape[axis])
        for term, value in zip(terms, node.inputs, strict=True)
    )


def _attention(node: Node, axis: int) -> Axes | None:
    op = cast(ScaledDotProductAttention, node.op)
    shape = node.outputs[0].shape
    query, key, value, *mask = (each.spec.shape for each in node.inputs)
    end, size = axis - len(shape), shape[axis]
    if end == -1:
        return (None, None, len(value) - 1, *(None for _ in mask))
    if end == -2:
        if op.causal:
            return None
        return (len(query) - 2, None, None, *(held(each, len(each) - 2, size) for each in mask))
    return tuple(held(each, end + len(each), size) for each in (query, key, value, *mask))


def _transpose(node: Node, axis: int) -> Axes:
    return (normalize_axes(cast(Transpose, node.op).axes, node.inputs[0].spec.rank)[axis],)


def _squeeze(node: Node, axis: int) -> Axes | None:
    rank = node.inputs[0].spec.rank
    removed = normalize_axes(cast(Squeeze, node.op).axes, rank, "axis")
    return _off(removed, rank, axis, kept=False)


def _unsqueeze(node: Node, axis: int) -> Axes | None:
    rank = node.outputs[0].rank
    added = normalize_axes(cast(Unsqueeze, node.op).axes, rank, "axis")
    return None if axis in added else (axis - sum(other < axis for other in added),)


def _reshape(node: Node, axis: int) -> Axes | None:
    """An axis that stays, with as many elements before it as there were."""
    own, shape = node.inputs[0].spec.shape, node.outputs[0].shape
    if UNKNOWN in own or UNKNOWN in shape or 0 in own:
        return None
    ahead = element_count(shape[:axis])
    for place, size in enumerate(own):
        if size == shape[axis] and element_count(own[:place]) == ahead:
            return (place,)
    return None


def _tile(node: Node, axis: int) -> Axes | None:
    op = cast(Tile, node.op)
    rank, own = node.outputs[0].rank, node.inputs[0].spec.rank
    place = axis - rank + len(op.repetitions)
    return (axis - rank + own,) if axis >= rank - own and (place < 0 or op.repetitions[place] == 1) else None


def _one_hot(node: Node, axis: int) -> Axes | None:
    added = normalize_axis(cast(OneHot, node.op).axis, node.outputs[0].rank)
    return None if axis == added else (axis - (axis > added),)


def _joined(node: Node, axis: int) -> Axes | None:
    own = normalize_axis(cast(Concatenate, node.op).axis, node.outputs[0].rank)
    size = node.outputs[0].shape[axis]
    return None if axis == own else tuple(exact(value.spec.shape, axis, size) for value in node.inputs)


def _stacked(node: Node, axis: int) -> Axes | None:
    own = normalize_axis(cast(Stack, node.op).axis, node.outputs[0].rank)
    size = node.outputs[0].shape[axis]
    return None if axis == own else tuple(exact(value.spec.shape, axis - (axis > own), size) for value in node.inputs)


def _convolution(node: Node, axis: int) -> Axes | None:
    return (0, *(None for _ in node.inputs[1:])) if axis == 0 else None


def _along_axis(node: Node, axis: int) -> Axes:
    op, size = cast(GatherAlongAxis, node.op), node.outputs[0].shape[axis]
    x, indices = (value.spec.shape for value in node.inputs)
    return None if axis in op.addressed(x, indices) else exact(x, axis, size), exact(indices, axis, size)


def _gather_nd(node: Node, axis: int) -> Axes:
    batch, size = cast(GatherND, node.op).batch_dimension_count, node.outputs[0].shape[axis]
    x, indices = (value.spec.shape for value in node.inputs)
    if axis < len(indices) - 1:
        return exact(x, axis, size) if axis < batch else None, exact(indices, axis, size)
    return axis - (len(indices) - 1) + batch + cast(int, indices[-1]), None


RULES: dict[type[Op], Rule] = {
    Unary: same,
    FloatTest: same,
    Arithmetic: broadcasting,
    Negate: same,
    FusedMultiplyAdd: broadcasting,
    Compare: broadcasting,
    Logic: broadcasting,
    Not: same,
    Select: broadcasting,
    Cast: same,
    PReLU: _prelu,
    Exponential: except_on(_own_axis),
    CumulativeSum: except_on(_own_axis),
    ArgExtremum: _extremum,
    Ordering: except_on(_own_axis),
    Reduce: _reduce,
    L2Normalize: except_on(_last(3)),
    BatchNorm: normalized(lambda op, rank: ()),
    RMSNorm: normalized(lambda op, rank: op.along(rank)),
    Standardize: normalized(_statistics),
    GroupNorm: normalized(lambda op, rank: range(1, rank)),
    MatMul: _matmul,
    Linear: _linear,
    Einsum: _einsum,
    ScaledDotProductAttention: _attention,
    Convolution: _convolution,
    Pooling: except_on(_spatial),
    Pad: except_on(_padded),
    Transpose: _transpose,
    Squeeze: _squeeze,
    Unsqueeze: _unsqueeze,
    Reshape: _reshape,
    Concatenate: _joined,
    Stack: _stacked,
    Tile: _tile,
    BroadcastTo: broadcasting,
    Reverse: except_on(_own_axes),
    Split: except_on(_own_axis),
    OneHot: _one_hot,
    BandPart: except_on(_last(2)),
    GatherAlongAxis: _along_axis,
    GatherND: _gather_nd,
}
"""By class; a class without a line follows its base. An operation without any keeps all selections behind it."""
