"""Elements of tensors that follow from sizes and constants alone, worked out before a graph is lowered.

XLA needs every shape before it compiles. A shape that the graph itself computes, such as ``reshape(to=y.tensor_shape())``, is
therefore evaluated here, for the sizes of one run, with the operations' own lowerings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from bnnsgraph.errors import ShapeError
from bnnsgraph.graph import Argument, CheckedOp, Node, Op, ShapedOp, Value
from bnnsgraph.spec import format_shape
from bnnsgraph.xla import jax

ShapeOf = Callable[[Value], Sequence[Any]]


def sources(value: Value) -> tuple[Node, ...]:
    """The nodes whose elements ``value`` is computed from, every node after its operands."""
    found: set[Node] = set()
    waiting = [value.node]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            if not node.op.sizes_only:
                waiting += [operand.node for operand in node.inputs]
    return tuple(sorted(found, key=lambda node: node.serial))


def require_known(value: Value, subject: str) -> None:
    """Refuse a tensor that is computed from the elements of an argument."""
    for node in sources(value):
        if isinstance(node.op, Argument):
            raise ShapeError(
                f"{subject} must follow from sizes and constants alone, "
                f"got a tensor computed from the elements of argument {node.op.name!r}"
            )


def settled(node: Node, sizes: Mapping[str, Any], shape_of: ShapeOf) -> Op:
    """The operation of ``node`` for the sizes of one run."""
    op = node.op.bind(sizes)
    return op.resolve(known_elements(node.inputs[-1], sizes, shape_of)) if isinstance(op, ShapedOp) else op


def known_elements(value: Value, sizes: Mapping[str, Any], shape_of: ShapeOf) -> np.ndarray[Any, Any]:
    """The elements of a tensor that passes :func:`require_known`.

    Args:
        value: the tensor.
        sizes: the named sizes of the run.
        shape_of: the shape of any value that comes before.
    """
    known: dict[Node, tuple[np.ndarray[Any, Any], ...]] = {}
    with jax.ensure_compile_time_eval(), jax.enable_x64(True):
        for node in sources(value):
            op = node.op.bind(sizes)
            if op.sizes_only:
                operands = [_described(operand, shape_of(operand)) for operand in node.inputs]
            else:
                operands = [known[operand.node][operand.index] for operand in node.inputs]
            if isinstance(op, ShapedOp):
                op = op.resolve(operands[-1])
            if isinstance(op, CheckedOp) and op.needs_check and op.failed(*operands):
                raise op.error(f"{op}: {op.explain(*operands)}", f"recorded at {node.origin}:  {node.origin.text}")
            lowered = op.lower(*operands)
            known[node] = tuple(np.asarray(part) for part in (lowered if len(node.outputs) > 1 else (lowered,)))
    return known[value.node][value.index]


def _described(value: Value, shape: Sequence[Any]) -> Any:
    """What stands for an operand of which only the sizes matter."""
    if not all(isinstance(size, int) for size in shape):
        op = value.node.op
        label = f"argument {op.name!r}" if isinstance(op, Argument) else op
        raise ShapeError(
            f"the sizes of {label} must be known to compute a shape from them, got {format_shape(shape)}; "
            "a graph that is exported with flexible sizes must write them by name: reshape(to=['batch', -1])"
        )
    return jax.ShapeDtypeStruct(tuple(shape), value.spec.dtype.numpy)
