"""Normalisations and reductions on drawn inputs: the same numbers as OpenVINO and ONNX Runtime give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import bnnsgraph as bg

EPSILON = 2.0**-11.5
TINY = 1e-5
CLOSE = 8 * 2.0**-24
"""Both sides compute in float32: four roundings of half a unit in the last place of the largest element on each."""

Array = np.ndarray[Any, Any]
Block = Callable[..., bg.Tensor[Any]]

rng = np.random.default_rng(8)


def drawn(*shape: int) -> Array:
    return rng.normal(0.5, 2, shape).astype(np.float32)


X = drawn(2, 6, 4, 5)
WEIGHT, BIAS, MEAN = drawn(6), drawn(6), drawn(6)
VARIANCE = rng.uniform(0.1, 3, 6).astype(np.float32)
LAST, TRAILING = drawn(5), drawn(4, 5)
TRAILING_BIAS = drawn(4, 5)

OURS: dict[str, Block] = {
    "batch_norm": lambda x: x.batch_norm(MEAN, VARIANCE, WEIGHT, BIAS),
    "instance_norm": lambda x: x.instance_norm(WEIGHT, BIAS, epsilon=TINY),
    "instance_norm_plain": lambda x: x.instance_norm(),
    "channel_norm": lambda x: x.channel_norm(),
    "layer_norm": lambda x: x.layer_norm(TRAILING, TRAILING_BIAS, axes=[3, 2], epsilon=TINY),
    "layer_norm_plain": lambda x: x.layer_norm(axes=[0, 2]),
    "rms_norm": lambda x: x.rms_norm(LAST, epsilon=TINY),
    "rms_norm_axes": lambda x: x.rms_norm(TRAILING, axes=[2, 3]),
    "group_norm": lambda x: x.group_norm(3, WEIGHT, BIAS, epsilon=TINY),
    "group_norm_plain": lambda x: x.group_norm(2),
    "l2_norm": lambda x: x.l2_norm(epsilon=0.25),
    "softmax": lambda x: x.softmax(1),
    "log_softmax": lambda x: x.log_softmax(-1),
    "norm_1": lambda x: x / x.l1_norm([1], keep_dimensions=True),
    "norm_2": lambda x: x / x.l2_norm([1], keep_dimensions=True),
    "l1": lambda x: x.l1_norm([1, 3]),
    "l2": lambda x: x.l2_norm([1, -1], keep_dimensions=True),
    "squares": lambda x: x.sum_of_squares([2]),
    "log_sum": lambda x: (x * x).log_sum([2]),
    "log_sum_exp": lambda x: x.log_sum_exp([0, 3]),
    "product": lambda x: x.product([2]),
    "running": lambda x: x.cumulative_sum(1),
    "largest": lambda x: x.arg_max(1, keep_dimension=True),
    "smallest": lambda x: x.arg_min(-1),
}


def ours(names: Sequence[str], x: Array = X) -> dict[str, Array]:
    context = bg.make_context(lambda b: {name: OURS[name](b.argument(f"x_{name}", bg.Float32, x.shape)) for name in names})
    results = context(*[x] * len(names))
    return dict(zip(names, map(np.asarray, results), strict=True))


def agree(found: dict[str, Array], wanted: dict[str, Array]) -> None:
    assert found.keys() == wanted.keys()
    for name, value in found.items():
        assert value.shape == wanted[name].shape, name
        if value.dtype.kind == "i":
            np.testing.assert_array_equal(value, wanted[name], err_msg=name)
        else:
            scale = max(1.0, float(np.abs(wanted[name]).max()))
            np.testing.assert_allclose(value, wanted[name], rtol=0, atol=CLOSE * scale, err_msg=name)


def test_openvino() -> None:
    openvino = pytest.importorskip("openvino")
    ops: Any = pytest.importorskip("openvino.opset13")
    x = ops.parameter(X.shape, np.float32)

    def scaled(value: Any) -> Any:
        return value * ops.constant(WEIGHT.reshape(6, 1, 1)) + ops.constant(BIAS.reshape(6, 1, 1))

    def mvn(axes: list[int], epsilon: float = EPSILON) -> Any:
        return ops.mvn(x, ops.constant(np.array(axes)), True, epsilon, "inside_sqrt")

    theirs: dict[str, Any] = {
        "batch_norm": ops.batch_norm_inference(x, WEIGHT, BIAS, MEAN, VARIANCE, EPSILON),
        "instance_norm": scaled(mvn([2, 3], TINY)),
        "instance_norm_plain": mvn([2, 3]),
        "channel_norm": mvn([1]),
        "layer_norm": mvn([2, 3], TINY) * ops.constant(TRAILING) + ops.constant(TRAILING_BIAS),
        "layer_norm_plain": mvn([0, 2]),
        "group_norm": ops.group_normalization(x, WEIGHT, BIAS, 3, TINY),
        "l2_norm": ops.normalize_l2(x, np.array([1, 2, 3]), 0.25, "add"),
        "softmax": ops.softmax(x, 1),
        "log_softmax": ops.log_softmax(x, -1),
        "l1": ops.reduce_l1(x, np.array([1, 3])),
        "l2": ops.reduce_l2(x, np.array([1, 3]), True),
        "product": ops.reduce_prod(x, np.array([2])),
        "running": ops.cum_sum(x, np.array(1)),
    }
    model = openvino.Model(list(theirs.values()), [x])
    compiled = openvino.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    outputs = compiled([X])
    agree(ours(list(theirs)), {name: outputs[index] for index, name in enumerate(theirs)})


def test_onnx_runtime() -> None:
    helper: Any = pytest.importorskip("onnx.helper")
    runtime = pytest.importorskip("onnxruntime")
    given = {
        "weight": WEIGHT, "bias": BIAS, "mean": MEAN, "variance": VARIANCE, "last": LAST, "trailing": TRAILING,
        "trailing_bias": TRAILING_BIAS, "ones": np.ones(6, np.float32), "zeros": np.zeros(6, np.float32),
        "at_2": np.array([2]), "at_13": np.array([1, 3]), "at_03": np.array([0, 3]), "axis_1": np.array(1),
    }  # fmt: skip
    nodes: dict[str, tuple[str, list[str], dict[str, Any]]] = {
        "batch_norm": ("BatchNormalization", ["x", "weight", "bias", "mean", "variance"], {"epsilon": EPSILON}),
        "instance_norm": ("InstanceNormalization", ["x", "weight", "bias"], {"epsilon": TINY}),
        "instance_norm_plain": ("InstanceNormalization", ["x", "ones", "zeros"], {"epsilon": EPSILON}),
        "layer_norm": ("LayerNormalization", ["x", "trailing", "trailing_bias"], {"axis": 2, "epsilon": TINY}),
        "rms_norm": ("RMSNormalization", ["x", "last"], {"axis": -1, "epsilon": TINY}),
        "rms_norm_axes": ("RMSNormalization", ["x", "trailing"], {"axis": 2, "epsilon": EPSILON}),
        "group_norm": ("GroupNormalization", ["x", "weight", "bias"], {"num_groups": 3, "epsilon": TINY}),
        "group_norm_plain": ("GroupNormalization", ["x", "ones", "zeros"], {"num_groups": 2, "epsilon": EPSILON}),
        "softmax": ("Softmax", ["x"], {"axis": 1}),
        "log_softmax": ("LogSoftmax", ["x"], {"axis": -1}),
        "norm_1": ("LpNormalization", ["x"], {"axis": 1, "p": 1}),
        "norm_2": ("LpNormalization", ["x"], {"axis": 1, "p": 2}),
        "l1": ("ReduceL1", ["x", "at_13"], {"keepdims": 0}),
        "l2": ("ReduceL2", ["x", "at_13"], {"keepdims": 1}),
        "squares": ("ReduceSumSquare", ["x", "at_2"], {"keepdims": 0}),
        "log_sum": ("ReduceLogSum", ["xx", "at_2"], {"keepdims": 0}),
        "log_sum_exp": ("ReduceLogSumExp", ["x", "at_03"], {"keepdims": 0}),
        "product": ("ReduceProd", ["x", "at_2"], {"keepdims": 0}),
        "running": ("CumSum", ["x", "axis_1"], {}),
        "largest": ("ArgMax", ["x"], {"axis": 1, "keepdims": 1}),
        "smallest": ("ArgMin", ["x"], {"axis": -1, "keepdims": 0}),
    }
    float_type, index_type = 1, 7
    integers = ("largest", "smallest")
    graph = helper.make_graph(
        [
            helper.make_node("Mul", ["x", "x"], ["xx"]),
            *[helper.make_node(op, inputs, [name], **attributes) for name, (op, inputs, attributes) in nodes.items()],
        ],
        "normalizations",
        [helper.make_tensor_value_info("x", float_type, X.shape)],
        [helper.make_tensor_value_info(name, index_type if name in integers else float_type, None) for name in nodes],
        [
            helper.make_tensor(name, float_type if array.dtype == np.float32 else index_type, array.shape, array.ravel())
            for name, array in given.items()
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    outputs = session.run(list(nodes), {"x": X})
    agree(ours(list(nodes)), dict(zip(nodes, outputs, strict=True)))
