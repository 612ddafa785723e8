"""Operations that are a simpler operation: indices that count are a slice, a product with a one-hot tensor is a gather."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from bnnsgraph.dtypes import Floating, Int32
from bnnsgraph.graph import Constant, Node, Op, Value
from bnnsgraph.indices import count_from_front
from bnnsgraph.ops.casting import Cast
from bnnsgraph.ops.comparison import Select
from bnnsgraph.ops.gathering import Gather
from bnnsgraph.ops.linear import MatMul
from bnnsgraph.ops.movement import TensorShape
from bnnsgraph.ops.rearrangement import OneHot
from bnnsgraph.ops.slicing import Slice, Span
from bnnsgraph.options import Fill
from bnnsgraph.passes.editing import Draft, Editor, Rewrite, label
from bnnsgraph.passes.regions import WHOLE
from bnnsgraph.spec import TensorSpec, is_static

Folded: TypeAlias = tuple[str, Op, tuple[Value, ...]]
"""What was done, and the operation with its operands that does the same."""


def folded(draft: Draft) -> tuple[Draft, list[Rewrite]]:
    """The draft with the simpler operations."""
    fixed = {value.node for value in draft.checks}
    found: dict[Node, Folded | None] = {}
    for node in draft.nodes:
        rule = RULES.get(type(node.op))
        simpler = rule(node.op, node.inputs) if rule is not None and node not in fixed else None
        if simpler is not None or (isinstance(node.op, TensorShape) and is_static(node.inputs[0].spec.shape)):
            found[node] = simpler
    if not found:
        return draft, []
    editor = Editor(draft)
    records: list[Rewrite] = []
    for node in draft.nodes:
        if node not in found:
            editor.keep(node)
        elif simpler := found[node]:
            what, op, operands = simpler
            editor.put(node, editor.emit(op, [editor.new(value) for value in operands], node))
            fewer = 0 if isinstance(op, Slice) else _one_hot_size(node)
            records.append(Rewrite(f"{label(node.op)} {what}", node.origin, (), fewer))
        else:
            sizes = np.asarray(node.inputs[0].spec.shape, np.int32)
            editor.put(node, [editor.constant(sizes, node, TensorSpec(Int32, sizes.shape))])
    return editor.finish(), records


def _one_hot_size(node: Node) -> int | None:
    """The elements of the one-hot tensor, which are not computed any more."""
    shape = node.inputs[0].spec.shape
    return int(np.prod(np.asarray(shape, np.int64))) if is_static(shape) else None


def _counting(op: Gather, inputs: Sequence[Value]) -> Folded | None:
    """A gather by constant indices that follow each other at one distance: a slice, turned round where they fall."""
    x, indices = inputs
    constant, rank = indices.node.op, indices.spec.rank
    axis, batch = op.resolved(x.spec.shape, indices.spec.shape)
    size = x.spec.shape[axis]
    if not isinstance(constant, Constant) or batch or rank > 1 or not isinstance(size, int) or constant.array.size == 0:
        return None
    counted, inside = count_from_front(constant.array, (size,), op.negative_indices)
    places = np.atleast_1d(counted)
    if not np.all(inside):
        return None
    first, last, step = int(places[0]), int(places[-1]), int(places[1] - places[0]) if len(places) > 1 else 1
    if step == 0 or np.any(np.diff(places) != step):
        return None
    stop = last + (1 if step > 0 else -1)
    item = Span(first, stop if stop >= 0 else None, step) if rank else first
    items = tuple(item if other == axis else WHOLE for other in range(x.spec.rank))
    return f"made {Slice(items)}", Slice(items), (x,)


def _one_hot_product(op: Any, inputs: Sequence[Value]) -> Folded | None:
    """``one_hot(i) @ table``: the rows of the table, and zeros where the index is outside."""
    if op != MatMul() or len(inputs) != 2 or inputs[1].spec.rank != 2:
        return None
    mask, table = _mask(inputs[0]), inputs[1]
    if mask is None or not isinstance(mask.node.op, OneHot) or mask.node.op.axis not in (-1, mask.spec.rank - 1):
        return None
    if issubclass(table.spec.dtype, Floating) and not _has_plain_zeros(table):
        return None
    gather = Gather(0, out_of_bounds=Fill(0), negative_indices="out_of_bounds")
    return f"with a one-hot tensor made {label(gather)}", gather, (table, mask.node.inputs[0])


def _mask(value: Value) -> Value | None:
    """The mask of which a value has the zeros and ones."""
    match value.node.op:
        case Cast():
            return value.node.inputs[0]
        case Select():
            mask, one, zero = value.node.inputs
            return mask if mask.spec.shape == value.spec.shape and _is_number(one, 1) and _is_number(zero, 0) else None
        case _:
            return None


def _is_number(value: Value, number: int) -> bool:
    op = value.node.op
    return isinstance(op, Constant) and op.array.size == 1 and op.array.reshape(()) == number


def _has_plain_zeros(table: Value) -> bool:
    """Whether 0 times each element is 0, and 0 added to each is the same: no NaN, no infinity, no -0. Known of constants."""
    op = table.node.op
    return isinstance(op, Constant) and bool(np.isfinite(op.array).all()) and not np.any((op.array == 0) & np.signbit(op.array))


RULES: dict[type[Op], Callable[[Any, Sequence[Value]], Folded | None]] = {Gather: _counting, MatMul: _one_hot_product}
