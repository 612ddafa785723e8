"""What a call costs: a context beside the bare jitted function and the peers, on arrays so small that nothing else counts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from tests.benchmarks.cases import Case, run_cases
from tests.benchmarks.timing import BARE, OURS, UNCHECKED, Row, side_by_side


def chain(count: int) -> Callable[..., Any]:
    """Products, one after another."""

    def products(x: Any) -> Any:
        y = x
        for _ in range(count):
            y = y * x
        return y

    return products


def cases() -> Iterator[Case]:
    """Calls from arrays of each library itself."""
    yield Case(
        "call: add 8 numbers",
        lambda: {"x": np.arange(8, dtype=np.float32), "w": np.ones(8, np.float32)},
        lambda x, w: x + w,
        lambda x, w: x + w,
        lambda x, w: x + w,
        lambda x, w: x + w,
        "y = Add(x, w)",
        indexed=False,
        quick=True,
    )
    yield Case(
        "call: gather 8 rows of 4",
        lambda: {"x": np.arange(256, dtype=np.float32).reshape(64, 4), "i": np.arange(8, dtype=np.int32)},
        lambda x, i: x.gather(i, axis=0),
        lambda x, i: x[i],
        lambda x, i: x.at[i].get(mode="promise_in_bounds"),
        lambda x, i: x.index_select(0, i),
        "y = Gather(x, i)",
        quick=True,
    )
    for count in (1, 10, 100, 1_000, 10_000):
        yield Case(
            f"call of a chain of products: {count:,}",
            lambda: {"x": np.ones(8, np.float32)},
            chain(count),
            chain(count),
            chain(count) if count < 10_000 else None,  # which takes half a minute to compile, and in PyTorch longer
            chain(count) if count < 10_000 else None,
            onnx_chain(count),
            indexed=False,
            quick=count < 1_000,
            openvino=count < 1_000,  # a session of as many takes minutes
        )


def onnx_chain(count: int) -> str:
    """The products as operations of ONNX, in its text form."""
    names = ["x", *[f"x{n}" for n in range(1, count)], "y"]
    return " ".join(f"{after} = Mul({before}, x)" for before, after in itertools.pairwise(names))


def from_numpy() -> list[Row]:
    """The first two from NumPy's arrays, which XLA has to take over at each call."""
    rows: list[Row] = []
    for case in list(cases())[:2]:
        arrays = case.arrays()
        checked, bare = case.context(arrays, {}), jax.jit(case.bare)  # pyright: ignore[reportArgumentType]
        calls = {OURS: lambda call=checked, given=arrays: call(*given.values())}
        if case.indexed:
            unchecked = case.context(arrays, {}, unchecked=True)
            calls[UNCHECKED] = lambda call=unchecked, given=arrays: call(*given.values())
        calls[BARE] = lambda call=bare, given=arrays: call(*given.values())
        rows += side_by_side(f"{case.name}, from NumPy", calls)
    return rows


def run(quick: bool) -> list[Row]:
    """Every call."""
    return run_cases(cases(), quick) + from_numpy()
