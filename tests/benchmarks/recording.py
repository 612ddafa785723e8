"""What building costs: a chain of products recorded, lowered, compiled, beside ``jax.jit`` and sessions of peers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import bnnsgraph as bg
from tests.benchmarks import peers
from tests.benchmarks.calls import chain, onnx_chain
from tests.benchmarks.timing import BARE, OURS, Row, side_by_side

SHAPE = (8, 8)
SPEC = jax.ShapeDtypeStruct(SHAPE, np.float32)
VALUES = np.ones(SHAPE, np.float32)


def record(count: int, rows: Any = 8) -> tuple[bg.Builder, Any]:
    """A chain of products."""
    builder = bg.Builder()
    return builder, chain(count)(builder.argument("x", bg.Float32, [rows, 8]))


def freeze(count: int, rows: Any = 8) -> Any:
    """A chain recorded and frozen."""
    builder, y = record(count, rows)
    return builder.finish(y)


def bare(count: int) -> Any:
    """The chain as a function that JAX has not seen before."""
    return jax.jit(chain(count))


def lower(count: int) -> None:
    """The chain recorded and lowered; with a flexible size, so that making its context compiles nothing."""
    jax.jit(bg.Context(freeze(count, "rows")).function).lower(SPEC)


def sessions(count: int) -> dict[str, Callable[[], Any]]:
    """Peers that make a session of a finished model and run it once."""
    model = peers.onnx_model(onnx_chain(count), {"x": VALUES}, {}, [VALUES])
    if model is None:
        return {}
    calls: dict[str, Callable[[], Any]] = {}
    ort = peers.optional("onnxruntime")
    if ort is not None:
        calls["ONNX Runtime"] = lambda: ort.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, {"x": VALUES})
    if count > 100:
        peers.NOTES["sessions"] = "OpenVINO's sessions of 1,000 operations are left out: each takes minutes"
    elif peers.optional("openvino") is not None:
        calls["OpenVINO"] = lambda: peers.openvino_request(model).infer([VALUES])[0]
    return calls


def run(quick: bool) -> list[Row]:
    """Rows a chain: divide by the number of operations for the cost of one."""
    rows: list[Row] = []
    counts = (10, 100) if quick else (10, 100, 1_000)
    for count in (*counts, 1_000) if quick else (*counts, 10_000):
        rows += side_by_side(
            f"record products: {count:,}",
            {OURS: lambda count=count: freeze(count), BARE: lambda count=count: bare(count).trace(SPEC)},
            tolerance=None,
            rounds=5,
        )
    for count in counts if quick else (*counts, 10_000):
        rows += side_by_side(
            f"record and lower products: {count:,}",
            {OURS: lambda count=count: lower(count), BARE: lambda count=count: bare(count).lower(SPEC)},
            tolerance=None,
            rounds=5 if count < 10_000 else 3,
        )
    for count in counts if quick else (*counts, 4_000, 10_000):
        calls: dict[str, Callable[[], Any]] = {OURS: lambda count=count: bg.Context(freeze(count))(VALUES)}
        if count < 10_000:
            calls[BARE] = lambda count=count: bare(count)(VALUES)
        else:
            peers.NOTES["products"] = "jax.jit is left out where 10,000 products are compiled: it takes half a minute each time"
        rows += side_by_side(
            f"record, compile and run products once: {count:,}",
            calls if quick else calls | sessions(count),
            rounds=5 if count < 1_000 else 3,
        )
    return rows
