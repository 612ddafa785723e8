"""The peers, each optional: what is not installed is left out, and noted."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

NOTES: dict[str, str] = {}
"""Peers that are left out, and why."""

sys.modules.setdefault("openvino_telemetry", None)  # pyright: ignore[reportArgumentType]: not imported; it would fork the process

ELEMENTS = {"float16": "float16", "float32": "float", "int8": "int8", "int32": "int32", "int64": "int64", "bool": "bool"}
"""Names of element types in ONNX's text form."""


def optional(module: str) -> Any:
    """A module, or None and a note where it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        NOTES[module] = f"{module} is left out: {error}"
        return None


def versions() -> dict[str, str]:
    """The version of every library in the tables."""
    found = {name: optional(name) for name in ("numpy", "jax", "jaxlib", "torch", "onnxruntime", "openvino")}
    return {name: str(module.__version__).partition("-")[0] for name, module in found.items() if module is not None}


def onnx_model(
    body: str, arrays: Mapping[str, np.ndarray], weights: Mapping[str, np.ndarray], answers: Sequence[np.ndarray]
) -> bytes | None:
    """A model with ``arrays`` as inputs, ``weights`` as constants and ``y`` (and ``z``) as outputs; None without ``onnx``.

    Args:
        body: its operations, in ONNX's text form.
        arrays: by name; a model has their types and shapes.
        weights: by name.
        answers: what it returns, for the outputs' types and shapes.
    """
    if optional("onnx") is None:
        return None
    import onnx.numpy_helper
    import onnx.parser

    inputs = ", ".join(f"{_type(array)} {name}" for name, array in arrays.items())
    outputs = ", ".join(f"{_type(array)} {name}" for name, array in zip("yz", answers, strict=False))
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 20]> program ({inputs}) => ({outputs}) {{ {body} }}')
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in weights.items())
    onnx.checker.check_model(model)
    return model.SerializeToString()


def _type(array: np.ndarray) -> str:
    shape = ",".join(map(str, array.shape))
    return f"{ELEMENTS[array.dtype.name]}[{shape}]"


def onnx_runtime(model: bytes, arrays: Mapping[str, np.ndarray], answers: Sequence[np.ndarray]) -> Callable[[], Any] | None:
    """A call of ONNX Runtime on the CPU that reads the arrays where they are and writes into the same memory each time."""
    ort = optional("onnxruntime")
    if ort is None:
        return None
    session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for name, array in arrays.items():
        binding.bind_cpu_input(name, array)
    outputs = [np.empty_like(answer) for answer in answers]
    for described, output in zip(session.get_outputs(), outputs, strict=True):
        place = output.ctypes.data
        binding.bind_output(described.name, "cpu", 0, output.dtype.type, output.shape, place)

    def call() -> Any:
        session.run_with_iobinding(binding)
        return outputs

    return call


def openvino_request(model: bytes) -> Any:
    """An inference request of OpenVINO on the CPU, in full float32; None when it is not installed."""
    ov = optional("openvino")
    if ov is None:
        return None
    core = ov.Core()
    return core.compile_model(core.read_model(model), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}).create_infer_request()


def openvino(model: bytes, arrays: Mapping[str, np.ndarray]) -> Callable[[], Any] | None:
    """A call of OpenVINO that reads the arrays where they are."""
    request = openvino_request(model)
    if request is None:
        return None
    tensor = importlib.import_module("openvino").Tensor
    for number, array in enumerate(arrays.values()):
        request.set_input_tensor(number, tensor(array, shared_memory=True))

    def call() -> Any:
        request.infer()
        return [tensor.data for tensor in request.output_tensors]

    return call
