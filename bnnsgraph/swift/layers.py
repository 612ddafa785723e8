"""Swift spellings of reductions, normalizations, products, windows, recurrent layers and orders."""

from __future__ import annotations

from typing import Any

from bnnsgraph.graph import Op
from bnnsgraph.ops import axiswise, convolution, linear, lstm, normalization, pooling, recurrent, reduction, sorting
from bnnsgraph.recurrence import Activation
from bnnsgraph.swift import calls
from bnnsgraph.swift.calls import Call, Spelling, epsilon, given
from bnnsgraph.swift.text import Expression, boolean, call, integers
from bnnsgraph.windows import ConvolutionPadding


def _affine(c: Call, first: int) -> list[str]:
    """``weight`` and ``bias``, which Apple has both or neither."""
    if len(c.node.inputs) == first:
        return []
    return [f"weight: {c.parameter(first).text}", f"bias: {c.parameter(first + 1).text}"]


def _batch_norm(op: normalization.BatchNorm, c: Call) -> Expression:
    given_statistics = [f"mean: {c.parameter(1).text}", f"variance: {c.parameter(2).text}"]
    return call(f"{c.tensor(0).inner}.batchNorm", *given_statistics, *_affine(c, 3), *epsilon(op.epsilon))


def _norm(name: str) -> Spelling:
    return lambda op, c: call(f"{c.tensor(0).inner}.{name}", *_affine(c, 1), *epsilon(op.epsilon))


def _layer_norm(op: normalization.LayerNorm, c: Call) -> Expression:
    axes = f"axes: {integers(op.axes)}"
    return call(f"{c.tensor(0).inner}.layerNorm", *_affine(c, 1), axes, *epsilon(op.epsilon))


def _rms_norm(op: normalization.RMSNorm, c: Call) -> Expression:
    return call(f"{c.tensor(0).inner}.rmsNorm", f"scale: {c.parameter(1).text}", *epsilon(op.epsilon))


def _bias(c: Call) -> list[str]:
    return [f"bias: {c.parameter(2).text}"] if len(c.node.inputs) > 2 else []


def _matmul(op: linear.MatMul, c: Call) -> Expression:
    return call(
        f"{c.tensor(0).inner}.matmul",
        *given("transpose", boolean(op.transpose), "false"),
        f"other: {c.parameter(1).text}",
        *given("transposeOther", boolean(op.transpose_other), "false"),
        *_bias(c),
    )


def _linear(op: linear.Linear, c: Call) -> Expression:
    return call(f"{c.tensor(0).inner}.linear", f"weight: {c.parameter(1).text}", *_bias(c))


def _padding(padding: ConvolutionPadding) -> str:
    if padding.kind == "custom":
        return f"padding: .custom(padding: {integers(padding.amounts)})"
    return f"padding: .{padding.kind.lower()}"


def _conv(op: convolution.Conv, c: Call) -> Expression:
    return call(f"{c.tensor(0).inner}.conv", *_windows(op, c), *_steps(op))


def _conv_transpose(op: convolution.ConvTranspose, c: Call) -> Expression:
    extra = op.output_padding_values
    more = [] if extra is None else [f"outputPaddingValues: {integers(extra)}"]
    return call(f"{c.tensor(0).inner}.convTranspose", *_windows(op, c), *more, *_steps(op))


def _windows(op: convolution.Convolution, c: Call) -> list[str]:
    return [f"weight: {c.parameter(1).text}", f"strides: {integers(op.strides)}", *_bias(c), _padding(op.padding)]


def _steps(op: convolution.Convolution) -> list[str]:
    dilations = [] if op.dilations is None else [f"dilations: {integers(op.dilations)}"]
    return [*dilations, *given("groupCount", str(op.group_count), "1")]


_FUNCTIONS = {"MAX": ".max", "L2_NORM": ".l2Norm"}


def _pooling(op: pooling.Pooling, c: Call) -> Expression:
    average = f".average(includePadding: {boolean(op.function.include_padding)})"
    return call(
        f"{c.tensor(0).inner}.pooling",
        _FUNCTIONS.get(op.function.kind, average),
        f"kernelSize: {integers(op.kernel_size)}",
        f"strides: {integers(op.strides)}",
        _padding(op.padding),
        f"ceilingMode: .{op.ceiling_mode.name.lower()}",
    )


ACTIVATIONS: dict[Activation, str] = {
    Activation.LINEAR: ".linear",
    Activation.RELU: ".relu",
    Activation.SIGMOID: ".sigmoid",
    Activation.TANH: ".tanh",
    Activation.HARD_SIGMOID: ".hardSigmoid",
    Activation.SCALED_TANH: ".scaledTanh",
}


def _tensors(c: Call, *labels: str) -> list[str]:
    return [f"{label}: {c.tensor(index).text}" for index, label in enumerate(labels, 1)]


def _activation(op: Any, *labels: str) -> list[str]:
    fields = {"activation": "activation", "recurrentActivation": "recurrent_activation", "cellActivation": "cell_activation"}
    return [f"{label}: {ACTIVATIONS[getattr(op, fields[label])]}" for label in labels]


def _rnn(op: recurrent.RNN, c: Call) -> Expression:
    return call(
        f"{c.tensor(0).inner}.rnn",
        *_tensors(c, "initialHiddenStates", "inputHiddenWeight", "hiddenHiddenWeight", "bias"),
        f"direction: .{op.direction.name.lower()}",
        *_activation(op, "activation"),
        f"outputSequence: {boolean(op.output_sequence)}",
    )


def _gru(op: recurrent.GRU, c: Call) -> Expression:
    return call(
        f"{c.tensor(0).inner}.gru",
        *_tensors(c, "initialHiddenStates", "inputHiddenWeight", "hiddenHiddenWeight", "bias", "inputBias"),
        f"direction: .{op.direction.name.lower()}",
        *_activation(op, "activation", "recurrentActivation"),
        f"applyResetGateAfterMatMul: {boolean(op.apply_reset_gate_after_mat_mul)}",
        f"outputSequence: {boolean(op.output_sequence)}",
    )


_LSTM = ("initialHiddenStates", "initialCellStates", "inputHiddenWeight", "hiddenHiddenWeight", "bias")


def _lstm(op: lstm.LSTM, c: Call) -> Expression:
    return call(
        f"{c.tensor(0).inner}.lstm",
        *_tensors(c, *_LSTM),
        f"direction: .{op.direction.name.lower()}",
        *_activation(op, "activation", "recurrentActivation", "cellActivation"),
        f"outputSequence: {boolean(op.output_sequence)}",
    )


def _bidirectional_lstm(op: lstm.BidirectionalLSTM, c: Call) -> Expression:
    return call(
        f"{c.tensor(0).inner}.bidirectionalLSTM",
        *_tensors(c, *_LSTM, "inputHiddenWeightBack", "hiddenHiddenWeightBack", "biasBack"),
        *_activation(op, "activation", "recurrentActivation", "cellActivation"),
        f"outputSequence: {boolean(op.output_sequence)}",
    )


def _top_k(op: sorting.TopK, c: Call) -> Expression:
    return call(f"{c.tensor(0).inner}.topK", str(op.k), f"axis: {op.axis}", f"findLargest: {boolean(op.find_largest)}")


def _arg_sort(op: sorting.ArgSort, c: Call) -> Expression:
    return call(f"{c.tensor(0).inner}.argSort", f"axis: {op.axis}", f"sortOrder: .{op.sort_order.name.lower()}")


CALLS: dict[type[Op], Spelling] = {
    reduction.ReduceSum: calls.reduction("sum"),
    reduction.ReduceMean: calls.reduction("mean"),
    reduction.ReduceMaximum: calls.reduction("maximum"),
    reduction.ReduceMinimum: calls.reduction("minimum"),
    reduction.ReduceProduct: calls.reduction("product"),
    reduction.ReduceL1Norm: calls.reduction("l1Norm"),
    reduction.ReduceL2Norm: calls.reduction("l2Norm"),
    reduction.ReduceSumOfSquares: calls.reduction("sumOfSquares"),
    reduction.ReduceLogSum: calls.reduction("logSum"),
    reduction.ReduceLogSumExp: calls.reduction("logSumExp"),
    reduction.L2Normalize: calls.stabilized("l2Norm"),
    axiswise.ArgMax: calls.extremum("argMax"),
    axiswise.ArgMin: calls.extremum("argMin"),
    axiswise.CumulativeSum: calls.along("cumulativeSum"),
    axiswise.Softmax: calls.along("softmax"),
    axiswise.LogSoftmax: calls.along("logSoftmax"),
    sorting.TopK: _top_k,
    sorting.ArgSort: _arg_sort,
    normalization.BatchNorm: _batch_norm,
    normalization.InstanceNorm: _norm("instanceNorm"),
    normalization.ChannelNorm: _norm("channelNorm"),
    normalization.LayerNorm: _layer_norm,
    normalization.RMSNorm: _rms_norm,
    linear.MatMul: _matmul,
    linear.Linear: _linear,
    convolution.Conv: _conv,
    convolution.ConvTranspose: _conv_transpose,
    pooling.Pooling: _pooling,
    recurrent.RNN: _rnn,
    recurrent.GRU: _gru,
    lstm.LSTM: _lstm,
    lstm.BidirectionalLSTM: _bidirectional_lstm,
}
"""One row an operation."""
