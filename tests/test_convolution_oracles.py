"""Convolutions and poolings over combinations of their parameters, against loops in NumPy, OpenVINO and ONNX Runtime.

The values are small whole numbers, so that sums are exact and every answer but a division or a root is met exactly.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import pytest

import bnnsgraph as bg
from bnnsgraph.ops.convolution import Conv
from tests.window_definition import FUNCTIONS, Array, Case, cases, padding_of

FEW_UNITS = 4 * 2.0**-24
"""Two roundings here (a division; a root of a rounded sum) and two there, each of half a unit in the last place."""


class Sweep:
    """Cases of one kind, with the operands that they share, answered by one program of each library."""

    def __init__(self, kind: str, chosen: Sequence[Case]) -> None:
        self.cases = chosen
        rng = np.random.default_rng(len(kind))
        shapes = {case.shape for case in self.cases} | {case.weight for case in self.cases}
        self.arrays = {shape: rng.integers(-9, 10, shape).astype(np.float32) for shape in sorted(shapes)}

    def operands(self, case: Case) -> tuple[Array, Array]:
        """The array and the weight of a case."""
        return self.arrays[case.shape], self.arrays[case.weight]

    @functools.cached_property
    def ours(self) -> list[Array]:
        """This library's answers."""

        def block(builder: bg.Builder) -> list[Any]:
            tensors = {shape: builder.argument(f"a{index}", bg.Float32, shape) for index, shape in enumerate(self.arrays)}
            return [case.ours(tensors[case.shape], tensors[case.weight]) for case in self.cases]

        return [np.asarray(result) for result in bg.make_context(block)(*self.arrays.values())]

    def check(self, wanted: Sequence[Array], answered: Sequence[Case]) -> None:
        """Compare with an oracle's answers to some of the cases."""
        ours = dict(zip(self.cases, self.ours, strict=True))
        for case, answer in zip(answered, wanted, strict=True):
            assert ours[case].shape == answer.shape, case
            exact = case.kind in ("conv", "conv_transpose", "max")
            np.testing.assert_allclose(ours[case], answer, rtol=0 if exact else FEW_UNITS, err_msg=str(case))

    def check_loops(self) -> None:
        """Compare with the loops."""
        self.check([case.defined(*self.operands(case)).astype(np.float32) for case in self.cases], self.cases)


@functools.cache
def sweep(kind: str) -> Sweep:
    """Some of the combinations, drawn once; the long test has them all."""
    every = cases(kind)
    drawn = np.random.default_rng(0).permutation(len(every))[:40]
    return Sweep(kind, [every[index] for index in sorted(drawn)])


KINDS = ["conv", "conv_transpose", *FUNCTIONS]


@pytest.mark.parametrize("kind", KINDS)
def test_loops(kind: str) -> None:
    sweep(kind).check_loops()


AUTO_PAD = {"VALID": "valid", "SAME": "same_upper", "LOWER": "same_lower"}


def openvino_node(case: Case, x: Any, weight: Any) -> Any:
    """The case as an operation of OpenVINO, or None where it has none."""
    import openvino.opset14 as ov

    strides = list(case.strides)
    begins, ends = ([pair[side] for pair in case.amounts] for side in (0, 1))
    auto = AUTO_PAD[case.padding] if isinstance(case.padding, str) else "explicit"
    match case.kind:
        case "conv":
            if case.groups == 1:
                return ov.convolution(x, weight, strides, begins, ends, list(case.dilations), auto_pad=auto)
            parts = [case.groups, case.weight[0] // case.groups, *case.weight[1:]]
            return ov.group_convolution(
                x, ov.reshape(weight, parts, False), strides, begins, ends, list(case.dilations), auto_pad=auto
            )
        case "conv_transpose":
            output = None
            if case.same:  # the odd place is cut off the other end there
                auto = "same_lower" if auto == "same_upper" else "same_upper"
                output = ov.constant([size * stride for size, stride in zip(case.shape[2:], strides, strict=True)])
            rest = {"auto_pad": auto, "output_padding": list(case.extra)}
            if case.groups == 1:
                return ov.convolution_backprop_data(x, weight, strides, output, begins, ends, list(case.dilations), **rest)
            parts = [case.groups, case.weight[0] // case.groups, *case.weight[1:]]
            return ov.group_convolution_backprop_data(
                x, ov.reshape(weight, parts, False), strides, output, begins, ends, list(case.dilations), **rest
            )
        case "max":
            rounding = "ceil_torch" if case.ceiling else "floor"
            ones = [1] * len(strides)
            return ov.max_pool(x, strides, ones, begins, ends, list(case.kernel), rounding, auto).output(0)
        case "average" | "average_all":
            rounding = "ceil_torch" if case.ceiling else "floor"
            return ov.avg_pool(x, strides, begins, ends, list(case.kernel), case.kind == "average", rounding, auto)
        case _:
            return None


def openvino_answers(found: Sweep, answered: Sequence[Case]) -> list[Array]:
    """One model with a result for each case, run in float32."""
    openvino = pytest.importorskip("openvino")
    import openvino.opset14 as ov

    parameters = {shape: ov.parameter(shape, np.float32) for shape in found.arrays}
    results = [openvino_node(case, parameters[case.shape], parameters[case.weight]) for case in answered]
    model = openvino.Model(results, list(parameters.values()))
    compiled = openvino.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    outputs = compiled(list(found.arrays.values()))
    return [np.array(outputs[index]) for index in range(len(results))]


def openvino_answers_alike(case: Case) -> bool:
    """Whether OpenVINO has the operation, and the same rule.

    Where ceiling mode makes a window reach beyond the padding, its averages with padding have another divisor; ONNX Runtime's
    have ours.
    """
    beyond = any(
        (-(size + sum(ends) - kernel) % stride) > 0
        for size, ends, kernel, stride in zip(case.shape[2:], case.amounts, case.kernel, case.strides, strict=True)
    )
    return case.kind != "l2" and not (case.kind == "average_all" and case.ceiling and beyond and not case.same)


def onnx_node(case: Case, output: str) -> Any:
    """The case as a node of ONNX."""
    from onnx import helper

    parameters: dict[str, Any] = {"strides": case.strides}
    if isinstance(case.padding, str):
        parameters["auto_pad"] = AUTO_PAD[case.padding].upper()
    else:
        parameters["pads"] = [pair[side] for side in (0, 1) for pair in case.amounts]
    x, weight = map(str, (case.shape, case.weight))
    if case.kind in ("conv", "conv_transpose"):
        parameters |= {"dilations": case.dilations, "group": case.groups}
        if case.kind == "conv":
            return helper.make_node("Conv", [x, weight], [output], **parameters)
        return helper.make_node("ConvTranspose", [x, weight], [output], output_padding=case.extra, **parameters)
    parameters |= {"kernel_shape": case.kernel, "ceil_mode": int(case.ceiling)}
    match case.kind:
        case "max":
            return helper.make_node("MaxPool", [x], [output], **parameters)
        case "l2":
            return helper.make_node("LpPool", [x], [output], p=2, **parameters)
        case _:
            included = int(case.kind == "average_all")
            return helper.make_node("AveragePool", [x], [output], count_include_pad=included, **parameters)


def onnx_answers(found: Sweep, answered: Sequence[Case]) -> list[Array]:
    """One ONNX model with a result for each case, run by ONNX Runtime."""
    runtime = pytest.importorskip("onnxruntime")
    from onnx import TensorProto, helper

    results = [f"result_{index}" for index in range(len(answered))]
    graph = helper.make_graph(
        [onnx_node(case, name) for case, name in zip(answered, results, strict=True)],
        "cases",
        [helper.make_tensor_value_info(str(shape), TensorProto.FLOAT, shape) for shape in found.arrays],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in results],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(results, {str(shape): array for shape, array in found.arrays.items()})


def onnx_answers_alike(case: Case) -> bool:
    """Whether ONNX Runtime has the parameters, and the same rule.

    It refuses ``auto_pad`` with dilations, and an ``output_padding`` that only the dilation allows; ``auto_pad`` of poolings
    with gaps between the windows it refuses (``MaxPool``) or starts off the array (the others). A transposed convolution with
    gaps and ``auto_pad`` ends early there, at ``(size - 1) * stride + extent``, where the pages of ONNX, OpenVINO and this
    library say ``size * stride``.
    """
    match case.kind:
        case "conv":
            return not (case.same and max(case.dilations) > 1)
        case "conv_transpose":
            early = case.same and case.gaps
            return not early and all(extra < stride for extra, stride in zip(case.extra, case.strides, strict=True))
        case _:
            return not (case.same and case.gaps)


ORACLES: dict[str, tuple[Callable[[Sweep, Sequence[Case]], list[Array]], Callable[[Case], bool]]] = {
    "openvino": (openvino_answers, openvino_answers_alike),
    "onnxruntime": (onnx_answers, onnx_answers_alike),
}


def check_oracle(found: Sweep, name: str) -> None:
    """Compare with the oracle where it has the same rule, which is nearly everywhere."""
    answers, alike = ORACLES[name]
    answered = [case for case in found.cases if alike(case)]
    assert len(answered) > 0.7 * len(found.cases)
    found.check(answers(found, answered), answered)


each_oracle = pytest.mark.parametrize(
    ("oracle", "kind"), [(name, kind) for name in ORACLES for kind in KINDS if (name, kind) != ("openvino", "l2")]
)


@each_oracle
def test_oracle(oracle: str, kind: str) -> None:
    check_oracle(sweep(kind), oracle)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_every_combination(kind: str) -> None:
    every = Sweep(kind, cases(kind))
    every.check_loops()
    for oracle in ORACLES:
        if (oracle, kind) != ("openvino", "l2"):
            check_oracle(every, oracle)


LENGTHS: list[tuple[Callable[[Any], Any], str]] = [
    (lambda x: x.conv(np.ones((2, 2, 3)), [2]), "(length + 1)//2 - 1"),
    (lambda x: x.conv(np.ones((2, 2, 3)), [2], padding=padding_of("SAME")), "(length + 1)//2"),
    (lambda x: x.conv(np.ones((2, 2, 3)), [2], padding=padding_of([1, 1])), "(length + 1)//2"),
    (lambda x: x.conv(np.ones((4, 1, 2)), [1], dilations=[3], group_count=2), "length - 3"),
    (lambda x: x.conv_transpose(np.ones((2, 2, 3)), [2]), "2*length + 1"),
    (lambda x: x.conv_transpose(np.ones((2, 2, 3)), [2], padding=padding_of("LOWER")), "2*length"),
    (lambda x: x.conv_transpose(np.ones((2, 1, 4)), [3], None, padding_of([1, 2]), [2], group_count=2), "3*length"),
    *[
        (lambda x, f=function, m=mode, p=padding: x.pooling(f, [3], [2], padding_of(p), m), text)
        for function in (FUNCTIONS["max"], FUNCTIONS["average"])
        for mode, padding, text in [
            (bg.CeilingMode.FLOOR, "VALID", "(length + 1)//2 - 1"),
            (bg.CeilingMode.CEILING, "VALID", "length//2"),
            (bg.CeilingMode.CEILING, [1, 1], "length//2 + 1"),
            (bg.CeilingMode.FLOOR, "LOWER", "(length + 1)//2"),
        ]
    ],
]


def test_flexible_length() -> None:
    """The sizes promised, and one artifact for all sizes that gives what a run of each size gives."""

    @bg.make_context
    def flexible(b: bg.Builder) -> list[Any]:
        x = b.argument("x", bg.Float32, ["batch", 2, "length"])
        return [call(x) for call, _ in LENGTHS]

    assert [str(value.spec.shape[2]) for value in flexible.graph.results] == [text for _, text in LENGTHS]
    artifact: Any = flexible.export(platforms=["cpu"], constraints=["length >= 4"])
    for length in (4, 7):
        values = np.random.default_rng(length).integers(-9, 10, (3, 2, length)).astype(np.float32)
        exported = artifact.call(values)
        for name, wanted in zip(flexible.graph.result_names, flexible(values), strict=True):
            np.testing.assert_allclose(exported[name], wanted, rtol=FEW_UNITS)


def test_gradients_in_16_bits() -> None:
    """Those of float32, exactly, where all values are small whole numbers; mapped over a leading axis too."""
    rng = np.random.default_rng(5)
    x, weight = (rng.integers(-1, 2, shape).astype(np.float32) for shape in [(5, 2, 4, 6), (4, 2, 3)])

    def gradients(kind: Any) -> list[np.ndarray[Any, Any]]:
        def block(b: bg.Builder) -> Any:
            first, second = b.argument("x", kind, x.shape[1:]), b.argument("w", kind, weight.shape)
            narrow = first.conv(second, [2], padding=padding_of("SAME"), group_count=2)
            wide = narrow.conv_transpose(second, [2], padding=padding_of([1, 0]), group_count=2)
            pooled = wide.pooling(bg.PoolingFunction.MAX, [2], [1], padding_of("VALID"), bg.CeilingMode.FLOOR)
            return (pooled.matmul(pooled, transpose_other=True) + pooled.linear(np.ones((4, pooled.shape[2])))).sum(None)

        total = bg.make_context(block).function
        mapped = jax.jit(jax.vmap(jax.grad(lambda a, b: total(a, b).astype(np.float32), (0, 1)), (0, None)))
        return [np.asarray(g).astype(np.float32) for g in mapped(x.astype(kind.numpy), weight.astype(kind.numpy))]

    wanted = gradients(bg.Float32)
    assert all(np.abs(gradient).max() > 8 for gradient in wanted)
    for got, exact in zip(gradients(bg.BFloat16), wanted, strict=True):
        np.testing.assert_array_equal(got, exact)


@pytest.mark.parametrize("dtype", [bg.Float32, bg.Float16])
def test_one_call_each(dtype: Any) -> None:
    """One operation of XLA a call, with full products, and sums of 16-bit floats in float32."""

    def lines(operation: str, call: Callable[[Any], Any]) -> list[str]:
        program = bg.make_context(lambda b: call(b.argument("x", dtype, [2, 4, 6, 5]))).stablehlo()
        return [line for line in program.splitlines() if f"stablehlo.{operation}" in line]

    same, ones = padding_of("SAME"), np.ones
    for found in (
        lines("convolution", lambda x: x.conv(ones((6, 2, 7, 6)), [2, 1], ones(6), same, [1, 2], 2)),
        lines("convolution", lambda x: x.conv_transpose(ones((4, 3, 3, 2)), [2, 1], ones(6), same, None, [1, 2], 2)),
        lines("dot_general", lambda x: x.matmul(x, transpose_other=True, bias=1)),
        lines("dot_general", lambda x: x.linear(ones((3, 5)), ones(3))),
    ):
        assert len(found) == 1
        assert found[0].count("HIGHEST") == 2
        assert found[0].endswith("xf32>")
    for function in FUNCTIONS.values():
        windows = lambda x, f=function: x.pooling(f, [8, 7], [2, 1], same, bg.CeilingMode.FLOOR)  # noqa: E731
        looks_for_nan = function is bg.PoolingFunction.MAX  # one window more, in integers
        assert len(lines("reduce_window", windows)) == 1 + looks_for_nan


def test_small_kernels_are_slices_on_the_cpu_alone() -> None:
    """Where XLA's CPU compiler is slow: small windows, short sums, kernels of one place, and few windows of many channels."""

    def block(b: bg.Builder) -> Any:
        x = b.argument("x", bg.Float32, [2, 4, 9, 8])
        mean = bg.PoolingFunction.average(include_padding=False)
        pooled = x.pooling(mean, [7, 7], [1, 1], bg.PoolingPadding.SAME, bg.CeilingMode.FLOOR)
        few = pooled.conv(np.ones((4, 1, 3, 3)), [2, 1], group_count=4).conv(np.ones((16, 4, 2, 3)), [1, 2])
        return few.conv(np.ones((12, 16, 1, 1)), [1, 1]).conv(np.ones((5, 12, 3, 2)), [1, 1])

    context = bg.make_context(block)
    for platform, pools, convolutions, products in (("cpu", 0, 0, 2), ("cuda", 1, 4, 0), ("tpu", 1, 4, 0)):
        text = context.export(platforms=[platform]).mlir_module()
        found = [text.count(f"stablehlo.{name}") for name in ("reduce_window", "convolution", "dot_general")]
        assert found == [pools, convolutions, products]


WAYS: list[tuple[tuple[int, ...], tuple[int, ...], list[int], Any, list[int] | None, int]] = [
    ((2, 1, 40), (1, 1, 16), [1], "SAME", None, 1),
    ((1, 2, 40), (3, 2, 5), [2], [3, 1], [2], 1),
    ((2, 6, 11), (4, 3, 4), [3], "LOWER", None, 2),
    ((2, 4, 7), (12, 1, 3), [1], "SAME", [2], 4),
    ((2, 3, 9, 8), (5, 3, 3, 2), [2, 3], [1, 0, 2, 2], [1, 2], 1),
    ((1, 9, 5, 4), (3, 9, 1, 1), [2, 1], "VALID", None, 1),
    ((1, 12, 4, 3), (6, 12, 3, 2), [1, 1], "SAME", None, 1),
    ((3, 20, 5), (7, 20, 4), [2], "LOWER", None, 1),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "kernel", "strides", "padding", "dilations", "groups"), WAYS, ids=str)
def test_every_way_gives_the_same(
    shape: tuple[int, ...], kernel: tuple[int, ...], strides: list[int], padding: Any, dilations: Any, groups: int
) -> None:
    """Values and both kinds of derivatives, exactly, as all values are small whole numbers."""
    dtype = bg.Float32 if len(shape) == 4 else bg.BFloat16
    rng = np.random.default_rng(3)
    x, weight, dx, dweight = (rng.integers(-2, 3, size).astype(dtype.numpy) for size in (shape, kernel, shape, kernel))
    graph = bg.make_context(
        lambda b: b.argument("x", dtype, shape).conv(
            b.argument("w", dtype, kernel), strides, None, padding_of(padding), dilations, groups
        )
    ).graph
    (op,) = [node.op for node in graph.nodes if isinstance(node.op, Conv)]
    assert op.on_cpu(shape, kernel) is not None

    def derived() -> list[Any]:
        def all_of_them(x: Any, weight: Any, dx: Any, dweight: Any) -> Any:
            value, tangent = jax.jvp(op.lower, (x, weight), (dx, dweight))
            return op.lower(x, weight), value, tangent, *jax.vjp(op.lower, x, weight)[1](jax.numpy.ones_like(value))

        return [np.asarray(array).astype(np.float32) for array in jax.jit(all_of_them)(x, weight, dx, dweight)]

    found = derived()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Conv, "on_cpu", lambda *_: None)
        for got, exact in zip(found, derived(), strict=True):
            np.testing.assert_array_equal(got, exact)


def test_derivatives_of_short_sums_are_convolutions() -> None:
    """The derivative of a slice is a sum over the whole tensor, and there is one for each term."""
    context = bg.make_context(lambda b: b.argument("x", bg.Float32, [1, 3, 9, 9]).conv(np.ones((4, 3, 3, 3)), [1, 1]))
    text = jax.jit(jax.grad(lambda x: context.function(x).sum())).lower(np.ones((1, 3, 9, 9), np.float32)).as_text()
    assert text.count("stablehlo.convolution") == 1
