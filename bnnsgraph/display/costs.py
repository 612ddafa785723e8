"""What each operation costs: arithmetic and memory, by formulas of the sizes. Flexible sizes stay names."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from bnnsgraph.graph import Argument, Constant, Node, Op, operand_names
from bnnsgraph.ops.activation import PReLU
from bnnsgraph.ops.arithmetic import Arithmetic, FusedMultiplyAdd, Negate
from bnnsgraph.ops.attention import ScaledDotProductAttention
from bnnsgraph.ops.axiswise import CumulativeSum, Exponential
from bnnsgraph.ops.comparison import Compare, Logic, Not, Select
from bnnsgraph.ops.convolution import Conv, ConvTranspose
from bnnsgraph.ops.einsum import Einsum, read
from bnnsgraph.ops.elementwise import FloatTest
from bnnsgraph.ops.linear import Linear, MatMul
from bnnsgraph.ops.normalization import Normalize
from bnnsgraph.ops.pooling import Pooling
from bnnsgraph.ops.reduction import L2Normalize, Reduce
from bnnsgraph.ops.scattering import ScatterMode, ScatterOp
from bnnsgraph.ops.unary import Unary
from bnnsgraph.recurrence import Recurrent
from bnnsgraph.sizes import Dimension
from bnnsgraph.spec import TensorSpec, element_count


def result_bytes(node: Node) -> Dimension:
    """The memory that the results take."""
    return _total([_elements(spec) * spec.dtype.numpy.itemsize for spec in node.outputs])


def flops(node: Node) -> Dimension:
    """Arithmetic operations of one run.

    A multiplication or an addition counts 1, and so does each function of one element, such as ``exp``. What only moves,
    selects by index, converts or orders elements counts 0.
    """
    if isinstance(node.op, (Argument, Constant)):
        return 0
    inputs = [value.spec for value in node.inputs]
    for kinds, count in _COUNTS:
        if isinstance(node.op, kinds):
            return count(node.op, inputs, node.outputs)
    return 0


def _elements(spec: TensorSpec) -> Dimension:
    return element_count(spec.shape)


def _total(parts: list[Dimension]) -> Dimension:
    total: Dimension = 0
    for part in parts:
        total = total + part
    return total


def _each_result(op: Op, inputs: list[TensorSpec], outputs: tuple[TensorSpec, ...]) -> Dimension:
    del op, inputs
    return _elements(outputs[0])


def _each_operand(op: Op, inputs: list[TensorSpec], outputs: tuple[TensorSpec, ...]) -> Dimension:
    del op, outputs
    return _elements(inputs[0])


def _linear(op: Linear, inputs: list[TensorSpec], outputs: tuple[TensorSpec, ...]) -> Dimension:
    return _elements(outputs[0]) * (2 * inputs[1].shape[1] + len(inputs) - 2)


def _matmul(op: MatMul, inputs: list[TensorSpec], outputs: tuple[TensorSpec, ...]) -> Dimension:
    inner = inputs[0].shape[-2 if op.transpose and inputs[0].rank > 1 else -1]
    return _elements(outputs[0]) * (2 * inner + len(inputs) - 2)


def _conv(op: Conv, inputs: list[TensorSpec], outputs: tuple[TensorSpec, ...]) -> Dimension:
    return _elements(outputs[0]) * (2 * element_count(inputs[1].shape[1:]) + len(inputs) - 2)


def _conv_transpose(op: ConvTranspose, inputs: list[TensorSpec], outputs: tuple[TensorSpec, ...]) -> Dimension:
    return _elements(inputs[0]) * 2 * element_count(inputs[1].shape[1:]) + _elements(outputs[0]) * (len(inputs) - 2)


def _einsum(op: Einsum, inputs: list[TensorSpec], outputs: tuple[TensorSpec, ...]) -> Dimension:
    """As many multiplications and additions as there are ways to choose all letters at once."""
    sizes: dict[str, Dimension] = {}
    dots: tuple[Dimension, ...] = ()
    equation = read(op.equation)
    for term, spec in zip(equation.terms, inputs, strict=True):
        before, _, after = term.partition("...")
        sizes |= zip(before, spec.shape, strict=False)
        sizes |= zip(reversed(after), reversed(spec.shape), strict=False)
        spread = spec.shape[len(before) : spec.rank - len(after)]
        dots = spread if len(spread) > len(dots) else dots
    return element_count([*sizes.values(), *dots]) * len(inputs)


def _attention(op: ScaledDotProductAttention, inputs: list[TensorSpec], outputs: tuple[TensorSpec, ...]) -> Dimension:
    """Two products, and scale, maximum, difference, ``exp``, sum and quotient of every score."""
    query, key, value = inputs[:3]
    scores = element_count(outputs[0].shape[:-1]) * key.shape[-2]
    return scores * (2 * query.shape[-1] + 2 * value.shape[-1] + 6)


def _recurrent(op: Recurrent, inputs: list[TensorSpec], outputs: tuple[TensorSpec, ...]) -> Dimension:
    """The products; the gates' own arithmetic is small beside them."""
    steps = element_count(inputs[0].shape[:-1])
    names = operand_names(op, len(inputs))
    return steps * 2 * _total([_elements(spec) for name, spec in zip(names, inputs, strict=True) if "weight" in name])


def _pooling(op: Pooling, inputs: list[TensorSpec], outputs: tuple[TensorSpec, ...]) -> Dimension:
    return _elements(outputs[0]) * math.prod(op.kernel_size)


def _scatter(op: ScatterOp, inputs: list[TensorSpec], outputs: tuple[TensorSpec, ...]) -> Dimension:
    return 0 if op.mode is ScatterMode.UPDATE else _elements(inputs[1])


def _fused(op: FusedMultiplyAdd, inputs: list[TensorSpec], outputs: tuple[TensorSpec, ...]) -> Dimension:
    return _elements(outputs[0]) * 2


def _times(count: int) -> Callable[[Any, list[TensorSpec], tuple[TensorSpec, ...]], Dimension]:
    def of_operand(op: Any, inputs: list[TensorSpec], outputs: tuple[TensorSpec, ...]) -> Dimension:
        return _each_operand(op, inputs, outputs) * count

    return of_operand


def _normalize(op: Normalize, inputs: list[TensorSpec], outputs: tuple[TensorSpec, ...]) -> Dimension:
    """Sum, difference, square, sum, product with the root; then weight and bias."""
    return _elements(inputs[0]) * (5 + len(inputs) - 1)


_COUNTS: list[tuple[Any, Callable[..., Dimension]]] = [
    (Linear, _linear),
    (MatMul, _matmul),
    (Conv, _conv),
    (ConvTranspose, _conv_transpose),
    (Einsum, _einsum),
    (ScaledDotProductAttention, _attention),
    (Recurrent, _recurrent),
    (Pooling, _pooling),
    (ScatterOp, _scatter),
    (Normalize, _normalize),
    (Exponential, _times(5)),  # maximum, difference, exp, sum, quotient
    (L2Normalize, _times(3)),
    (Reduce, _each_operand),
    (CumulativeSum, _each_operand),
    (FusedMultiplyAdd, _fused),
    ((Arithmetic, Negate, Unary, PReLU, Compare, Logic, Not, Select, FloatTest), _each_result),
]


__all__ = ["flops", "result_bytes"]
