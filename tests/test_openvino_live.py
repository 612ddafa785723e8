"""The same numbers as the OpenVINO runtime on this machine, bit for bit, on cases drawn anew in every run.

The seed is printed with a failure; set BNNSGRAPH_LIVE_SEED to draw the same cases again. Left out is what the runtime's CPU
plugin is known to get wrong: empty indices and batch axes all of size 1 (crashes), indices outside their axis except for
Gather-8 on floats (uninitialised memory), negative indices of Gather-1 and -7 (0 instead of the element), sums beyond the
range of a type, means of negative integers (rounded toward zero; the page says down), and repeated "sub" on Bool (not the
XOR of the page and of the runtime's own reference).
"""

from __future__ import annotations

import functools
import itertools
import os
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import openvino
import pytest
from openvino import opset1, opset3, opset5, opset6, opset7, opset8, opset12, opset15

import bnnsgraph as bg
from tests.conformance.cases import Case
from tests.conformance.openvino_rules import composed, one_call, options
from tests.conformance.suite import Suite, assert_same

SEED = int(os.environ.get("BNNSGRAPH_LIVE_SEED", time.time_ns() % 2**32))

DTYPES: tuple[Any, ...] = (np.float32, np.float16, np.int32, np.uint8, np.bool_)
RANKS = (1, 2, 3, 4, 5, 6)
GATHERS = ("Gather-1", "Gather-7", "Gather-8", "GatherND-5", "GatherND-8", "GatherElements-6")
SCATTERS = ("ScatterUpdate-3", "ScatterNDUpdate-15", "ScatterElementsUpdate-12")


class Draw:
    """One case after the other from one generator."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def size(self, low: int, high: int) -> int:
        """An integer in [low, high]."""
        return int(self.rng.integers(low, high + 1))

    def shape(self, rank: int) -> list[int]:
        """Sizes from 1, fewer elements an axis for more axes; the first axes, which may become batch axes, have two or more."""
        return [self.size(2 if axis < 2 else 1, 9 if rank < 3 else 4 if rank < 5 else 3) for axis in range(rank)]

    def values(self, dtype: Any, shape: Sequence[int]) -> np.ndarray:
        """Any bits that a gather must copy, among them NaN, infinities and -0."""
        kind = np.dtype(dtype)
        if kind == np.bool_:
            return self.rng.integers(0, 2, shape).astype(bool)
        if kind.kind in "iu":
            bounds = np.iinfo(kind)
            return self.rng.integers(bounds.min, bounds.max, shape, kind.type, endpoint=True)
        drawn = self.rng.normal(0, 100, shape).astype(kind)
        special = np.array([np.nan, np.inf, -np.inf, -0.0], kind)
        return np.where(self.rng.random(shape) < 0.1, self.rng.choice(special, shape), drawn)

    def small(self, dtype: Any, shape: Sequence[int]) -> np.ndarray:
        """Whole numbers whose sums and products are exact in every type."""
        kind = np.dtype(dtype)
        if kind == np.bool_:
            return self.rng.integers(0, 2, shape).astype(bool)
        return self.rng.integers(0 if kind.kind == "u" else -2, 3, shape).astype(kind)

    def indices(self, sizes: Any, shape: Sequence[int], *, negative: bool) -> np.ndarray:
        """Indices inside their axes, int32 or int64."""
        lowest = -np.asarray(sizes) if negative else 0
        return self.rng.integers(lowest, sizes, shape).astype(np.int32 if self.size(0, 1) else np.int64)

    def gather(self, op: str, dtype: Any, rank: int) -> tuple[dict[str, Any], list[np.ndarray]]:
        """Any axis and batch count; Gather-8 also gets negative and, on floats, missing indices."""
        data = self.values(dtype, self.shape(rank))
        axis = self.size(0, rank - 1)
        batch = 0 if op == "Gather-1" else self.size(0, min(axis, 2))
        rest = [self.size(1, 3) for _ in range(self.size(0 if batch < 2 else 1, 2))]
        indices = self.indices(data.shape[axis], [*data.shape[:batch], *rest], negative=op == "Gather-8")
        if op == "Gather-8" and data.dtype.kind == "f":
            missing = self.rng.choice([-100, -data.shape[axis] - 1, data.shape[axis], 100], indices.shape)
            indices = np.where(self.rng.random(indices.shape) < 0.3, missing, indices).astype(indices.dtype)
        attrs = {"axis": axis - rank * self.size(0, 1)}
        if op != "Gather-1":
            attrs["batch_dims"] = batch - (indices.ndim if self.size(0, 1) and batch < indices.ndim else 0)
        return attrs, [data, indices]

    def gather_nd(self, op: str, dtype: Any, rank: int) -> tuple[dict[str, Any], list[np.ndarray]]:
        """Any batch count and depth."""
        data = self.values(dtype, self.shape(rank))
        batch = self.size(0, rank - 1)
        depth = self.size(1, rank - batch)
        rest = [self.size(1, 4) for _ in range(self.size(0, 2))]
        shape = [*data.shape[:batch], *rest, depth]
        return {"batch_dims": batch}, [data, self.indices(data.shape[batch : batch + depth], shape, negative=True)]

    def gather_elements(self, op: str, dtype: Any, rank: int) -> tuple[dict[str, Any], list[np.ndarray]]:
        """Any axis, and any length along it."""
        data = self.values(dtype, self.shape(rank))
        axis = self.size(0, rank - 1)
        shape = [self.size(1, 5) if other == axis else size for other, size in enumerate(data.shape)]
        return {"axis": axis - rank * self.size(0, 1)}, [data, self.indices(data.shape[axis], shape, negative=True)]

    def scatter(self, op: str, dtype: Any, rank: int) -> tuple[dict[str, Any], list[np.ndarray]]:
        """Any axis; repeated indices let the last update win."""
        data = self.values(dtype, self.shape(rank))
        axis = self.size(0, rank - 1)
        indices = self.indices(data.shape[axis], [self.size(1, 4) for _ in range(self.size(1, 2))], negative=False)
        updates = self.values(dtype, [*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :]])
        return {"axis": axis}, [data, indices, updates]

    def scatter_nd(self, op: str, dtype: Any, rank: int) -> tuple[dict[str, Any], list[np.ndarray]]:
        """Any depth and reduction."""
        data = self.small(dtype, self.shape(rank))
        depth = self.size(1, rank)
        shape = [self.size(1, 4) for _ in range(self.size(1, 2))]
        indices = self.indices(data.shape[:depth], [*shape, depth], negative=True)
        reductions = ["none", "sum", "prod", "min", "max"] + ([] if dtype in (np.uint8, np.bool_) else ["sub"])
        return {"reduction": str(self.rng.choice(reductions))}, [
            data, indices, self.small(dtype, [*shape, *data.shape[depth:]]),
        ]  # fmt: skip

    def scatter_elements(self, op: str, dtype: Any, rank: int) -> tuple[dict[str, Any], list[np.ndarray]]:
        """Any axis, reduction and initial value; indices may cover a leading part of the other axes."""
        data = self.small(dtype, self.shape(rank))
        axis = self.size(0, rank - 1)
        shape = [self.size(1, 5) if other == axis else self.size(1, size) for other, size in enumerate(data.shape)]
        reductions = ["none"] if dtype is np.bool_ else ["none", "sum", "prod", "min", "max"]
        reduction = str(self.rng.choice(reductions + (["mean"] if dtype is np.float32 else [])))
        attrs = {"axis": axis - rank * self.size(0, 1), "reduction": reduction, "use_init_val": bool(self.size(0, 1))}
        return attrs, [data, self.indices(data.shape[axis], shape, negative=True), self.small(dtype, shape)]

    def case(self, number: int, op: str, dtype: Any, rank: int) -> Case:
        """One case of an operation; its answer is not known yet."""
        how = {
            "Gather": self.gather,
            "GatherND": self.gather_nd,
            "GatherElements": self.gather_elements,
            "ScatterUpdate": self.scatter,
            "ScatterNDUpdate": self.scatter_nd,
            "ScatterElementsUpdate": self.scatter_elements,
        }[op.partition("-")[0]]
        attrs, inputs = how(op, dtype, rank)
        name = f"{number} {op} {np.dtype(dtype)} rank {rank}"
        return Case(name, op, "", attrs, tuple(inputs), error=False, dtype=None, shape=(), expected=None)


def drawn() -> list[Case]:
    """Every dtype at every rank, twice for gathers and once for scatters; the operations take turns over them in any order."""
    draw = Draw(SEED)
    pairs = list(itertools.product(DTYPES, RANKS))
    turns: list[tuple[str, Any, int]] = []
    for operations in (GATHERS, GATHERS, SCATTERS):
        for place, pair in enumerate(draw.rng.permutation(len(pairs))):
            turns.append((operations[place % len(operations)], *pairs[pair]))
    return [draw.case(number, *turn) for number, turn in enumerate(turns)]


def build(b: bg.Builder, case: Case, operands: Sequence[Any]) -> bg.Tensor[Any]:
    """Ours: one call, or the composition of OpenVINO's richer scatters."""
    bits = case.op == "ScatterNDUpdate-15" and case.inputs[0].dtype == np.bool_ and case.attrs["reduction"] != "none"
    several = bits or case.op == "ScatterElementsUpdate-12"
    return (composed if several else one_call)(b, case, operands)


SUITE = Suite(drawn(), build, options)


@functools.cache
def core() -> openvino.Core:
    return openvino.Core()


def live(case: Case) -> np.ndarray:
    """What the runtime answers. Its default precision on some CPUs is bfloat16."""
    arrays = case.inputs
    parameters = [opset8.parameter(list(array.shape), array.dtype.type) for array in arrays]
    attrs = dict(case.attrs)
    axis = [opset8.constant(attrs["axis"], np.int32)] if "axis" in attrs else []
    match case.op:
        case "Gather-1":
            node = opset1.gather(*parameters, *axis)
        case "Gather-7":
            node = opset7.gather(*parameters, *axis, attrs["batch_dims"])
        case "Gather-8":
            node = opset8.gather(*parameters, *axis, attrs["batch_dims"])
        case "GatherND-5":
            node = opset5.gather_nd(*parameters, attrs["batch_dims"])
        case "GatherND-8":
            node = opset8.gather_nd(*parameters, attrs["batch_dims"])
        case "GatherElements-6":
            node = opset6.gather_elements(*parameters, attrs["axis"])
        case "ScatterUpdate-3":
            node = opset3.scatter_update(*parameters, *axis)
        case "ScatterNDUpdate-15":
            node = opset15.scatter_nd_update(*parameters, attrs["reduction"])
        case _:
            node = opset12.scatter_elements_update(*parameters, *axis, attrs["reduction"], attrs["use_init_val"])
    model = openvino.Model([node], parameters)  # pyright: ignore[reportGeneralTypeIssues]: its stub contradicts itself
    return np.array(core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(list(arrays))[0])


@pytest.mark.parametrize(
    "number", range(len(SUITE.cases)), ids=[f"{number}-{case.op}" for number, case in enumerate(SUITE.cases)]
)
def test_same_numbers(number: int) -> None:
    case = SUITE.cases[number]
    print(f"BNNSGRAPH_LIVE_SEED={SEED}", case.name, dict(case.attrs), *[array.shape for array in case.inputs])
    assert_same(SUITE.answer(case, constant=False), live(case))


def test_draw_covers_what_it_should() -> None:
    seen = {
        (case.op.partition("-")[0].startswith("Gather"), case.inputs[0].dtype.name, case.inputs[0].ndim) for case in SUITE.cases
    }
    assert len(seen) == 2 * len(DTYPES) * len(RANKS)
    assert {case.op for case in SUITE.cases} == {*GATHERS, *SCATTERS}
