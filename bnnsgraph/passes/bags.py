"""Sums of gathered rows, as XLA's CPU compiler computes them fastest.

XLA writes every gathered row to memory and reads it again to add it. A sum of as many gathers as there are rows in a bag is
one loop that keeps its sums in registers: two to three times as fast for bags of 16 rows of 64 numbers. It is for programs that
are run and not differentiated: the gradient of one gather is one scatter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import cast

import numpy as np

from bnnsgraph.dtypes import DType, Float32, Floating
from bnnsgraph.graph import Graph, Node, Value
from bnnsgraph.ops.arithmetic import Add, Divide
from bnnsgraph.ops.casting import Cast
from bnnsgraph.ops.gathering import Gather
from bnnsgraph.ops.movement import Unsqueeze
from bnnsgraph.ops.reduction import Reduce, ReduceMean, ReduceSum
from bnnsgraph.ops.slicing import Slice
from bnnsgraph.passes.editing import Draft, Editor, Rewrite, Simpler, replaced
from bnnsgraph.passes.regions import WHOLE
from bnnsgraph.placement import platform
from bnnsgraph.spec import TensorSpec, element_count, is_static

MOST_ROWS = 32
"""Rows of a bag: the program grows with them."""
LEAST_WIDTH = 16
"""Numbers of a row."""
LEAST = 1 << 16
"""Gathered numbers from which on the time to compile is worth it."""


def bagged(draft: Draft, graph: Graph) -> tuple[Draft, list[Rewrite]]:
    """The draft with sums and means over the rows that indices choose written out, where that is faster."""
    if graph.options.mesh is not None or platform(graph) != "cpu":
        return draft, []
    uses = Counter((value.node, value.index) for node in draft.nodes for value in node.inputs)
    uses.update((value.node, value.index) for value in draft.roots)
    found = {node: rows for node in draft.nodes if (rows := _rows(node)) and uses[node.inputs[0].node, 0] == 1}
    return replaced(draft, {node: _simpler(node, rows) for node, rows in found.items()})


def _simpler(node: Node, rows: int) -> Simpler:
    def build(editor: Editor) -> Sequence[Value]:
        return (_written_out(editor, node, rows),)

    return Simpler(f"over gathered rows written as a sum of {rows} gathers", build)


def _rows(node: Node) -> int | None:
    """How many rows each result of a sum or mean adds; None where it is something else, or better as it is."""
    op, gather = node.op, node.inputs[0].node if node.inputs else None
    if not isinstance(op, (ReduceSum, ReduceMean)) or gather is None or not isinstance(gather.op, Gather):
        return None
    x, indices = (value.spec for value in gather.inputs)
    axis, batch = gather.op.resolved(x.shape, indices.shape)
    over = op.over(gather.outputs[0].rank)
    if axis or batch or len(over) != 1 or over[0] >= indices.rank or not is_static((*x.shape, *indices.shape)):
        return None
    rows = cast(int, indices.shape[over[0]])
    width, count = cast(int, element_count(x.shape[1:])), cast(int, element_count(gather.outputs[0].shape))
    return rows if 1 < rows <= MOST_ROWS and width >= LEAST_WIDTH and count >= LEAST else None


def _written_out(editor: Editor, node: Node, rows: int) -> Value:
    gather, op = node.inputs[0].node, node.op
    assert isinstance(op, Reduce)
    table, indices = (editor.new(value) for value in gather.inputs)
    (axis,) = op.over(gather.outputs[0].rank)
    dtype: DType = node.outputs[0].dtype
    wide = Float32 if issubclass(dtype, Floating) and dtype.bits == 16 else dtype
    total: Value | None = None
    for row in range(rows):
        chosen = Slice(tuple(row if other == axis else WHOLE for other in range(indices.spec.rank)))
        part = editor.emit_one(gather.op, (table, editor.emit_one(chosen, (indices,), node)), gather)
        if wide is not dtype:
            part = editor.emit_one(Cast(wide), (part,), node)
        total = part if total is None else editor.emit_one(Add(), (total, part), node)
    assert total is not None
    if isinstance(op, ReduceMean):
        count = editor.constant(np.asarray(rows, wide.numpy), node, TensorSpec(wide, ()))
        total = editor.emit_one(Divide(), (total, count), node)
    if wide is not dtype:
        total = editor.emit_one(Cast(dtype), (total,), node)
    return editor.emit_one(Unsqueeze((axis,)), (total,), node) if op.keep_dimensions else total
