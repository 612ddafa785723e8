"""The gather family beside NumPy, hand-written ``jax.jit``, and OpenVINO where it is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import bnnsgraph as bg
from tests.benchmarks.timing import Row, side_by_side


def openvino_gather(table: np.ndarray, indices: np.ndarray) -> Callable[[], Any] | None:
    """OpenVINO's Gather-8 along axis 0 on the CPU, in full float32; None when it is not installed."""
    try:
        import openvino
        from openvino import opset8 as ops
    except ImportError:
        return None
    data, index = ops.parameter(table.shape, np.float32), ops.parameter(indices.shape, np.int32)
    ov: Any = openvino  # its stubs disagree with each other
    model = ov.Model([ops.gather(data, index, ops.constant(np.int32(0)))], [data, index])
    request = ov.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"}).create_infer_request()
    request.set_input_tensor(0, ov.Tensor(table, shared_memory=True))
    request.set_input_tensor(1, ov.Tensor(indices, shared_memory=True))

    def call() -> Any:
        request.infer()
        return request.get_output_tensor(0).data

    return call


def row_case(rows: int, width: int, count: int) -> list[Row]:
    """Random rows of a table."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(rows, width)).astype(np.float32)
    indices = rng.integers(0, rows, count).astype(np.int32)

    def block(mode: Any) -> Callable[[bg.Builder], Any]:
        return lambda b: b.argument("table", bg.Float32, table.shape).gather(
            b.argument("indices", bg.Int32, indices.shape), axis=0, out_of_bounds=mode
        )

    checked, unchecked = bg.make_context(block("raise")), bg.make_context(block("unchecked"))
    bare = jax.jit(lambda t, i: t.at[i].get(mode="promise_in_bounds"))
    t, i = jnp.asarray(table), jnp.asarray(indices)
    output = np.empty((count, width), np.float32)
    functions: dict[str, Callable[[], Any]] = {
        "raise": lambda: checked(t, i),
        "unchecked": lambda: unchecked(t, i),
        "jax.jit": lambda: bare(t, i),
        "NumPy": lambda: np.take(table, indices, axis=0, out=output, mode="clip"),
    }
    peer = openvino_gather(table, indices)
    if peer is not None:
        functions["OpenVINO"] = peer
    return side_by_side(f"gather {count} rows of {width}, table of {rows}", functions)


def run(quick: bool) -> list[Row]:
    """Row gathers over widths and sizes."""
    widths = (32, 128) if quick else (1, 4, 16, 32, 64, 96, 128, 512)
    found: list[Row] = []
    for width in widths:
        found += row_case(100_000 if width < 512 else 20_000, width, 4_096)
        if not quick:
            found += row_case(100_000 if width < 512 else 20_000, width, 65_536)
    return found
