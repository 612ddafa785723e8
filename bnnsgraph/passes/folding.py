"""Operations that are a simpler operation: indices that count are a slice, a product with a one-hot tensor is a gather."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from bnnsgraph.dtypes import Floating, Int32
from bnnsgraph.graph import Constant, Node, Op, Value
from bnnsgraph.indices import count_from_front
from bnnsgraph.ops.casting import Cast
from bnnsgraph.ops.comparison import Select
from bnnsgraph.ops.gathering import Gather, GatherND
from bnnsgraph.ops.linear import MatMul
from bnnsgraph.ops.movement import TensorShape
from bnnsgraph.ops.rearrangement import OneHot, Split
from bnnsgraph.ops.slicing import Slice, Span
from bnnsgraph.options import Fill
from bnnsgraph.passes.costs import is_row_cheaper
from bnnsgraph.passes.editing import Draft, Editor, Rewrite, Simpler, label, replaced
from bnnsgraph.passes.regions import WHOLE
from bnnsgraph.spec import TensorSpec, element_count, is_static, normalize_axis


def folded(draft: Draft) -> tuple[Draft, list[Rewrite]]:
    """The draft with the simpler operations."""
    fixed = {value.node for value in draft.checks}
    read = {(value.node, value.index) for value in (*draft.roots, *(value for node in draft.nodes for value in node.inputs))}
    found: dict[Node, Simpler] = {}
    for node in draft.nodes:
        rule = RULES.get(type(node.op))
        simpler = rule(node) if rule is not None and node not in fixed else None
        if simpler is not None and not (isinstance(node.op, Split) and _all_read(node, read)):
            found[node] = simpler
    return replaced(draft, found)


def _all_read(node: Node, read: set[tuple[Node, int]]) -> bool:
    return all((node, index) in read for index in range(len(node.outputs)))


def _replaced(node: Node, what: str, op: Op, *operands: Value, saved: int | None = 0) -> Simpler:
    """The node with another operation on old values."""

    def build(editor: Editor) -> Sequence[Value]:
        return editor.emit(op, [editor.new(value) for value in operands], node)

    return Simpler(what, build, saved)


def _counting(node: Node) -> Simpler | None:
    """A gather by constant indices that follow each other at one distance: a slice, turned round where they fall."""
    op: Any = node.op
    x, indices = node.inputs
    constant, rank = indices.node.op, indices.spec.rank
    axes = op.addressed(x.spec.shape, indices.spec.shape)
    vectors = isinstance(op, GatherND)
    batch = op.batch_dimension_count if vectors else op.resolved(x.spec.shape, indices.spec.shape)[1]
    if not isinstance(constant, Constant) or constant.array.size == 0 or batch or len(axes) != 1 or rank - vectors > 1:
        return None
    axis: int = axes[0]
    size = x.spec.shape[axis]
    if not isinstance(size, int):
        return None
    counted, inside = count_from_front(constant.array, (size,), op.negative_indices)
    places = counted.reshape(-1)
    if not np.all(inside):
        return None
    first, last, step = int(places[0]), int(places[-1]), int(places[1] - places[0]) if len(places) > 1 else 1
    if step == 0 or np.any(np.diff(places) != step):
        return None
    if len(places) == size and step == 1 and rank > vectors:
        return Simpler("of all positions dropped", functools.partial(_same, value=x))
    stop = last + (1 if step > 0 else -1)
    item = Span(first, stop if stop >= 0 else None, step) if rank - vectors else first
    chosen = Slice(tuple(item if other == axis else WHOLE for other in range(x.spec.rank)))
    return _replaced(node, f"made {chosen}", chosen, x)


def _same(editor: Editor, value: Value) -> Sequence[Value]:
    return (editor.new(value),)


def _one_hot_product(node: Node) -> Simpler | None:
    """``one_hot(i) @ table``: the rows of the table, and zeros where the index is outside."""
    if node.op != MatMul() or len(node.inputs) != 2 or node.inputs[1].spec.rank != 2:
        return None
    mask, table = _mask(node.inputs[0]), node.inputs[1]
    if mask is None or not isinstance(mask.node.op, OneHot) or mask.node.op.axis not in (-1, mask.spec.rank - 1):
        return None
    if issubclass(table.spec.dtype, Floating) and not _has_plain_zeros(table):
        return None
    depth, width = table.spec.shape
    if not isinstance(depth, int) or not isinstance(width, int) or not is_row_cheaper(depth, width):
        return None
    gather = Gather(0, out_of_bounds=Fill(0), negative_indices="out_of_bounds")
    count = element_count(mask.spec.shape)
    what = f"with a one-hot tensor made {label(gather)}"
    return _replaced(node, what, gather, table, mask.node.inputs[0], saved=count if isinstance(count, int) else None)


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


def _parts(node: Node) -> Simpler | None:
    """Parts of which some are not read, as slices: each may go its own way."""
    op: Any = node.op
    (x,) = node.inputs
    axis = normalize_axis(op.axis, x.spec.rank)
    sizes = [spec.shape[axis] for spec in node.outputs]
    ends: list[int] = [0]
    for size in sizes:
        if not isinstance(size, int) or len(sizes) < 2:
            return None
        ends.append(ends[-1] + size)
    spans = [Span(start, end, 1) for start, end in itertools.pairwise(ends)]
    slices = [Slice(tuple(span if other == axis else WHOLE for other in range(x.spec.rank))) for span in spans]

    def build(editor: Editor) -> Sequence[Value]:
        return [editor.emit_one(each, (editor.new(x),), node) for each in slices]

    return Simpler("made slices", build)


def _sizes(node: Node) -> Simpler | None:
    """The sizes of a tensor, where they are known."""
    shape = node.inputs[0].spec.shape
    if not is_static(shape):
        return None
    sizes = np.asarray(shape, np.int32)

    def build(editor: Editor) -> Sequence[Value]:
        return [editor.constant(sizes, node, TensorSpec(Int32, sizes.shape))]

    return Simpler("", build)


RULES: Mapping[type[Op], Callable[[Node], Simpler | None]] = {
    Gather: _counting,
    GatherND: _counting,
    MatMul: _one_hot_product,
    Split: _parts,
    TensorShape: _sizes,
}
