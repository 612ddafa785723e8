"""Where an operation that Apple's builder has behaves differently there, or where Apple's pages leave open what it does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from bnnsgraph.dtypes import Bool, DType, Float16, Float32, Floating, Int8, Int16, Int32, Integer, UInt8, UInt16, is_signed
from bnnsgraph.graph import Argument, Constant, Graph, Intent, Node, Op
from bnnsgraph.indices import IndexOp
from bnnsgraph.ops import (
    activation,
    arithmetic,
    axiswise,
    casting,
    convolution,
    elementwise,
    gathering,
    linear,
    lstm,
    movement,
    normalization,
    padding,
    pooling,
    recurrent,
    reduction,
    scattering,
    sorting,
)
from bnnsgraph.recurrence import Activation, Direction
from bnnsgraph.sizes import Size
from bnnsgraph.swift.text import TYPES

Rule: TypeAlias = Callable[[Any, Node], Iterator[str]]

_LISTED: frozenset[DType] = frozenset({Float16, Float32, Int32})
_MOVED: frozenset[DType] = frozenset({Float16, Float32, Int32, Int16, UInt16, Int8, UInt8})
_ALLOCATED: frozenset[DType] = frozenset({Float16, Float32, Int32, Bool})


def _types(node: Node, listed: frozenset[DType]) -> Iterator[str]:
    dtype = node.inputs[0].spec.dtype
    if dtype not in listed:
        names = ", ".join(sorted(each.name for each in listed))
        yield f"Core ML lists {names} for it; whether the builder takes {dtype.name} is not said"


def _numbers(op: Op, node: Node) -> Iterator[str]:
    yield from _types(node, _LISTED)


def _floats(op: Op, node: Node) -> Iterator[str]:
    yield from _types(node, frozenset({Float16, Float32}))


def _nan(op: Op, node: Node) -> Iterator[str]:
    yield from _types(node, _LISTED)
    if issubclass(node.outputs[0].dtype, Floating):
        yield "NaN of either operand is the result here; Core ML compares, and a NaN on the left gives the right"


def _remainder(op: Op, node: Node) -> Iterator[str]:
    yield from _types(node, _LISTED)
    if is_signed(node.outputs[0].dtype):
        yield "the sign is that of the divisor here; Apple says remainder, which in Swift has the sign of the dividend"


def _cast(op: casting.Cast, node: Node) -> Iterator[str]:
    source = node.inputs[0].spec.dtype
    if issubclass(source, Floating) and issubclass(op.to, Integer):
        yield f"numbers beyond {op.to.name} become its ends here, and NaN 0; there that is not said"
    if op.to.bits == 64 or source.bits == 64:
        yield "whether the builder casts 64-bit integers is not said"


def _clip(op: elementwise.Clip, node: Node) -> Iterator[str]:
    if op.to[0] == op.to[1]:
        yield "equal bounds, which Core ML refuses from iOS 17"


def _softplus(op: Op, node: Node) -> Iterator[str]:
    yield "alpha * log(1 + e^x) here; Apple gives no formula"


def _rms_norm(op: Op, node: Node) -> Iterator[str]:
    yield "the mean is over the last axis here; Apple does not say over which"


def _l2_norm(op: Op, node: Node) -> Iterator[str]:
    yield "the sum is over the last three axes here, as in Core ML; Apple does not name them"


def _channel_norm(op: Op, node: Node) -> Iterator[str]:
    yield "the mean is over axis 1 here; Apple does not name the axis"


def _ties(op: Op, node: Node) -> Iterator[str]:
    yield from _types(node, _LISTED)
    first = "" if isinstance(op, axiswise.ArgMax) else "of equal elements the first comes first here, and "
    yield f"{first}NaN counts as the largest number here; there that is not said"


def _arg(op: Op, node: Node) -> Iterator[str]:
    yield from _types(node, _LISTED)
    ties = "" if isinstance(op, axiswise.ArgMax) else ", and the first of equal elements"
    yield f"the first NaN is the extremum here{ties}; there that is not said"


def _linear(op: Op, node: Node) -> Iterator[str]:
    yield from _types(node, _LISTED)
    if node.inputs[0].spec.rank > 3:
        yield f"rank {node.inputs[0].spec.rank}, where Core ML's linear takes rank 1 to 3"


def _conv_transpose(op: convolution.ConvTranspose, node: Node) -> Iterator[str]:
    if op.output_padding_values is not None:
        yield "outputPaddingValues is PyTorch's output_padding here; Apple does not explain it"


def _pooling(op: pooling.Pooling, node: Node) -> Iterator[str]:
    yield from _types(node, frozenset({Float16, Float32}))
    amounts = op.padding.amounts
    uneven = any(before != after for before, after in zip(amounts[::2], amounts[1::2], strict=True))
    if op.ceiling_mode is pooling.CeilingMode.CEILING and (op.padding.keeps_size or uneven):
        yield "ceiling mode with this padding, which Core ML refuses"


def _recurrent(op: Any, node: Node) -> Iterator[str]:
    if getattr(op, "direction", Direction.FORWARD) is Direction.REVERSE and op.output_sequence:
        yield "a reversed sequence is stored in the order of the input here; Apple does not say"
    names = ("activation", "recurrent_activation", "cell_activation")
    if {Activation.HARD_SIGMOID, Activation.SCALED_TANH} & {getattr(op, name, None) for name in names}:
        yield "the numbers in hardSigmoid (0.2, 0.5) and scaledTanh (1, 1) are ours; Apple does not give them"
    if isinstance(op, recurrent.GRU) and not op.apply_reset_gate_after_mat_mul:
        yield "the reset gate is applied before the product here, as the flag says; Apple's formula has it after"
    if isinstance(op, recurrent.GRU):
        yield "bias is the hidden side's and inputBias the input side's here; Apple's text and formulas differ"
    if isinstance(op, lstm.LSTMLayer):
        yield "the gates of the bias are i, f, o, g here, as in the weights; Apple prints i, f, g, o for the bias"


def _index(op: IndexOp, node: Node) -> Iterator[str]:
    indices = node.inputs[-1]
    dtype = indices.spec.dtype
    if isinstance(indices.node.op, Constant):
        return
    if dtype is not Int32:
        more = " and those that it does not hold wrap" if dtype.bits >= 32 else ""
        yield f"indices are cast from {dtype.name} to Int32{more}"
    if op.out_of_bounds not in ("raise", "unchecked"):
        return
    if op.negative_indices == "from_end" and is_signed(dtype):
        yield "negative indices count from the end here; Core ML has them out of bounds from iOS 17"
    here = "is an error" if op.out_of_bounds == "raise" else "is not checked"
    yield f"an index outside its axis {here} here; in Core ML the result is undefined"


def _gather(op: IndexOp, node: Node) -> Iterator[str]:
    yield from _types(node, _MOVED)
    yield from _index(op, node)


def _scatter(op: scattering.ScatterOp, node: Node) -> Iterator[str]:
    yield from _types(node, _LISTED)
    yield from _index(op, node)
    if op.mode is scattering.ScatterMode.UPDATE and not op.unique_indices:
        yield "of several updates to one place the last stays here; there that is not said"
    if op.mode is scattering.ScatterMode.DIVIDE:
        yield "old / update here; Apple's sentence has the operands the other way round"
    extremum = op.mode in (scattering.ScatterMode.MAXIMUM, scattering.ScatterMode.MINIMUM)
    if extremum and issubclass(node.inputs[0].spec.dtype, Floating):
        yield "NaN stays here; there that is not said"


def _reshape(op: movement.Reshape, node: Node) -> Iterator[str]:
    if sum(not isinstance(size, int) for size in op.to) == 1:
        yield "-1 stands for the flexible size, as in Core ML; Apple's pages show fixed sizes alone"


def _pad(op: padding.Pad, node: Node) -> Iterator[str]:
    if node.inputs[0].spec.dtype is not Bool:  # which is padded as Float
        yield from _floats(op, node)


DIFFERENCES: Mapping[type[Op], Rule] = {
    arithmetic.Add: _numbers,
    arithmetic.Subtract: _numbers,
    arithmetic.Multiply: _numbers,
    arithmetic.Negate: _numbers,
    arithmetic.Power: _numbers,
    arithmetic.Maximum: _nan,
    arithmetic.Minimum: _nan,
    arithmetic.Remainder: _remainder,
    elementwise.Abs: _numbers,
    elementwise.Clip: _clip,
    casting.Cast: _cast,
    reduction.ReduceSum: _numbers,
    reduction.ReduceProduct: _numbers,
    reduction.ReduceMaximum: _numbers,
    reduction.ReduceMinimum: _numbers,
    reduction.ReduceL1Norm: _numbers,
    reduction.ReduceSumOfSquares: _numbers,
    reduction.L2Normalize: _l2_norm,
    axiswise.ArgMax: _arg,
    axiswise.ArgMin: _arg,
    axiswise.CumulativeSum: _numbers,
    sorting.TopK: _ties,
    sorting.ArgSort: _ties,
    sorting.Sort: _ties,
    activation.Softplus: _softplus,
    normalization.RMSNorm: _rms_norm,
    normalization.ChannelNorm: _channel_norm,
    linear.MatMul: _numbers,
    linear.Linear: _linear,
    convolution.ConvTranspose: _conv_transpose,
    pooling.Pooling: _pooling,
    recurrent.RNN: _recurrent,
    recurrent.GRU: _recurrent,
    lstm.LSTM: _recurrent,
    lstm.BidirectionalLSTM: _recurrent,
    gathering.Gather: _gather,
    gathering.GatherAlongAxis: _gather,
    gathering.GatherND: _gather,
    scattering.Scatter: _scatter,
    scattering.ScatterAlongAxis: _scatter,
    scattering.ScatterND: _scatter,
    movement.Reshape: _reshape,
    padding.Pad: _pad,
}
"""One row an operation."""


def of_node(node: Node) -> Iterator[str]:
    """What differs about one node."""
    rule = DIFFERENCES.get(type(node.op))
    if rule is not None:
        yield from rule(node.op, node)


def of_graph(graph: Graph) -> Iterator[tuple[Node, str]]:
    """What differs about the graph's arguments and outputs."""
    named: set[str] = set()
    for value in graph.arguments:
        op = value.node.op
        assert isinstance(op, Argument)
        names = {name for size in op.spec.shape if isinstance(size, Size) for name in size.names()} - named
        named |= names
        if names:
            yield value.node, f"axes of one name ({', '.join(sorted(names))}) have one size here; there -1 ties none together"
        if op.intent is Intent.INPUT_OUTPUT:
            yield value.node, "how a new value reaches an in-out argument is not said; the program assigns to its parts"
    seen: set[tuple[Node, int]] = set()
    for value in graph.results:
        if isinstance(value.node.op, (Argument, Constant)):
            yield value.node, "whether a block may return an argument or a constant is not said"
        if (value.node, value.index) in seen:
            yield value.node, "whether a block may return one tensor twice is not said"
        seen.add((value.node, value.index))
    for value in dict.fromkeys([*graph.arguments, *graph.results]):
        if value.spec.dtype in TYPES and value.spec.dtype not in _ALLOCATED:
            yield value.node, f"allocateTensor gives no memory for {value.spec.dtype.name}; give the tensor memory of its own"
