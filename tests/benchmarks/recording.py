"""What building costs: recording, freezing and lowering a chain, beside ``jax.jit`` of the same chain."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

import bnnsgraph as bg
from tests.benchmarks.timing import Row, side_by_side

SHAPE = (8, 8)
SPEC = jax.ShapeDtypeStruct(SHAPE, np.float32)


def record(count: int) -> tuple[bg.Builder, Any]:
    """A chain of products."""
    builder = bg.Builder()
    y = x = builder.argument("x", bg.Float32, SHAPE)
    for _ in range(count):
        y = y * x
    return builder, y


def freeze(count: int) -> Any:
    """A chain recorded and frozen."""
    builder, y = record(count)
    return builder.finish(y)


def run(quick: bool) -> list[Row]:
    """Rows a chain: divide by the number of operations for the cost of one."""
    rows: list[Row] = []
    for count in (10, 100, 1_000) if quick else (10, 100, 1_000, 10_000):

        def bare(x: Any, count: int = count) -> Any:
            y = x
            for _ in range(count):
                y = y * x
            return y

        def lower(count: int = count) -> None:
            context = bg.Context(flexible(count))
            jax.jit(context.function).lower(SPEC)

        rows += side_by_side(
            f"record {count} products",
            {"record": lambda count=count: record(count), "record, freeze": lambda count=count: freeze(count)},
            tolerance=None,
        )
        rows += side_by_side(
            f"record and lower {count} products",
            {"jax.jit": lambda bare=bare: jax.jit(lambda x: bare(x)).lower(SPEC), "bnnsgraph": lower},
            tolerance=None,
            rounds=5,
        )
    return rows


def flexible(count: int) -> Any:
    """The chain with a flexible size, so that making its context compiles nothing."""
    builder = bg.Builder()
    y = x = builder.argument("x", bg.Float32, ["rows", 8])
    for _ in range(count):
        y = y * x
    return builder.finish(y)
