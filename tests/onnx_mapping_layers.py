"""ONNX operators of networks: products, normalisations, softmax and losses."""

from __future__ import annotations

from typing import Any

import bnnsgraph as bg
from tests.onnx_mapping_call import Call, Rule, method

T = bg.Tensor


# Products


def gemm(call: Call) -> Any:
    a, b, c = call.tensor(0), call.tensor(1), call.optional(2)
    alpha, beta = call.attribute("alpha", 1.0), call.attribute("beta", 1.0)
    flags = {"transpose": bool(call.attribute("transA", 0)), "transpose_other": bool(call.attribute("transB", 0))}
    if alpha == beta == 1:
        return a.matmul(b, **flags, bias=c)
    product = a.matmul(b, **flags) * alpha
    return product if c is None else product + c * beta


def einsum(call: Call) -> Any:
    return call.builder.einsum(call.attribute("equation"), *call.tensors())


# Normalisations


def epsilon(call: Call, default: float = 1e-5) -> float:
    return call.attribute("epsilon", default)


def batch_normalization(call: Call) -> Any:
    x, scale, bias, mean, variance = call.tensors()
    if call.attribute("training_mode", 0):
        raise NotImplementedError("batch_norm takes its statistics")
    call.without_effect("momentum")  # outside training
    return x.batch_norm(mean, variance, scale, bias, epsilon=epsilon(call))


def layer_normalization(call: Call) -> Any:
    x, scale, bias = call.tensor(0), call.tensor(1), call.optional(2)
    assert call.attribute("stash_type", 1) == 1  # statistics in float32, as ours
    axes = range(call.attribute("axis", -1) % x.rank, x.rank)
    mean = x.mean(axes, keep_dimensions=True)
    variance = ((x - mean) ** 2).mean(axes, keep_dimensions=True)
    return x.layer_norm(scale, bias, axes=axes, epsilon=epsilon(call)), mean, variance.rsqrt(epsilon=epsilon(call))


def rms_normalization(call: Call) -> Any:
    x, scale = call.tensors()
    assert call.attribute("stash_type", 1) == 1
    return x.rms_norm(scale, epsilon=epsilon(call), axes=range(call.attribute("axis", -1) % x.rank, x.rank))


def group_normalization(call: Call) -> Any:
    x, scale, bias = call.tensors()
    assert call.version >= 21  # before, scale and bias were those of groups
    assert call.attribute("stash_type", 1) == 1
    return x.group_norm(call.attribute("num_groups"), scale, bias, epsilon=epsilon(call))


def instance_normalization(call: Call) -> Any:
    x, scale, bias = call.tensors()
    return x.instance_norm(scale, bias, epsilon=epsilon(call))


def mean_variance_normalization(call: Call) -> Any:
    x, axes = call.tensor(0), call.attribute("axes", [0, 2, 3])
    centred = x - x.mean(axes, keep_dimensions=True)
    return centred / ((centred * centred).mean(axes, keep_dimensions=True).sqrt() + 1e-9)


def lp_normalization(call: Call) -> Any:
    x, axis = call.tensor(0), call.attribute("axis", -1)
    norm = (T.l1_norm if call.attribute("p", 2) == 1 else T.l2_norm)(x, axis, keep_dimensions=True)
    return (norm == 0).select(0, x / norm)


# Losses


def loss(call: Call, logarithms: Any) -> Any:
    """The weighted mean, or sum, of the negated logarithms at the targets; ignored targets may be outside the classes."""
    target, weight, ignored = call.tensor(1), call.optional(2), call.attribute("ignore_index")
    losses = -logarithms.gather_along_axis(target.unsqueeze(1), 1, out_of_bounds="clip").squeeze(1)
    factors = None if weight is None else weight.gather(target, 0, out_of_bounds="clip")
    if ignored is not None:
        kept = target != ignored
        factors = kept.cast(to=losses.dtype) if factors is None else kept.select(factors, 0)
    if factors is not None:
        losses = losses * factors
    match call.attribute("reduction", "mean"):
        case "none":
            return losses
        case "sum":
            return losses.sum(None)
        case _:
            return losses.mean(None) if factors is None else losses.sum(None) / factors.sum(None)


def cross_entropy(call: Call) -> Any:
    logarithms = call.tensor(0).log_softmax(1)
    return loss(call, logarithms), logarithms


RULES: dict[str, Rule] = {
    "BatchNormalization": batch_normalization,
    "Einsum": einsum,
    "Gemm": gemm,
    "GroupNormalization": group_normalization,
    "InstanceNormalization": instance_normalization,
    "LayerNormalization": layer_normalization,
    "LogSoftmax": lambda call: call.tensor(0).log_softmax(call.attribute("axis", -1)),
    "LpNormalization": lp_normalization,
    "MatMul": method(T.matmul),
    "MeanVarianceNormalization": mean_variance_normalization,
    "NegativeLogLikelihoodLoss": lambda call: loss(call, call.tensor(0)),
    "RMSNormalization": rms_normalization,
    "Softmax": lambda call: call.tensor(0).softmax(call.attribute("axis", -1)),
    "SoftmaxCrossEntropyLoss": cross_entropy,
}
