"""The table that drives every operation's tests: one row for each behaviour, with its definition in NumPy.

A row says how a user writes the operation, what NumPy answers, and on which inputs; ``test_every_op.py`` runs each row through
all checks, some of them in the long suite where another row has the same operations.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import bnnsgraph as bg
from bnnsgraph.dtypes import DType

FLOATS: tuple[DType, ...] = (bg.Float16, bg.BFloat16, bg.Float32, bg.Float64)
INTEGERS: tuple[DType, ...] = (bg.Int8, bg.Int16, bg.Int32, bg.Int64, bg.UInt8, bg.UInt16, bg.UInt32, bg.UInt64)
NUMBERS: tuple[DType, ...] = (*FLOATS, *INTEGERS)
EVERY: tuple[DType, ...] = (*NUMBERS, bg.Bool)
LAYOUT: tuple[DType, ...] = (bg.Float16, bg.Float32, bg.Int64, bg.UInt8, bg.Bool)
"""One of each width and kind, for operations that move elements without looking at them."""

Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Values of magnitude about 2, of both signs; integers keep their integer part."""
    return rng.normal(0, 2, shape)


def uniform(low: float, high: float) -> Draw:
    """Values in [low, high)."""
    return lambda rng, shape: rng.uniform(low, high, shape)


def integers(low: int, high: int) -> Draw:
    """Whole numbers in [low, high)."""
    return lambda rng, shape: rng.integers(low, high, shape)


def separated(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Distinct values at least 0.25 apart and never 0, so that finite differences see no kink or tie."""
    count = int(np.prod(shape))
    return ((rng.permutation(count) - count // 2) * 0.25 + 0.125).reshape(shape)


def away_from(*kinks: float) -> Draw:
    """Values of both signs at least 0.1 from each kink, where finite differences would straddle it."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        values = rng.normal(0, 2, shape)
        for kink in kinks:
            values = np.where(np.abs(values - kink) < 0.1, kink + 0.25, values)
        return values

    return draw


@dataclass(frozen=True)
class Input:
    """One operand: its shape, how its values are drawn, and its dtype where that is not the row's."""

    shape: tuple[int, ...]
    draw: Draw = normal
    dtype: DType | None = None
    differentiable: bool = True

    def array(self, rng: np.random.Generator, dtype: DType) -> np.ndarray:
        """Values of the operand."""
        values = np.asarray(self.draw(rng, self.shape))
        target = (self.dtype or dtype).numpy
        if target.kind == "u":
            values = np.abs(values)
        if target == np.bool_:
            return values > 0 if values.dtype != np.bool_ else values
        if target.kind in "iu" and values.dtype.kind == "f":
            values = np.trunc(values)
        return values.astype(target)


@dataclass(frozen=True)
class Wrong:
    """A misuse: what is written, which error it gives, and the words it must hold."""

    build: Callable[[Any], object]  # not a Builder: the type checker refuses most misuses
    error: type[bg.GraphError]
    words: str


@dataclass(frozen=True)
class OpCase:
    """One behaviour of one operation.

    Attributes:
        name: the test's name.
        build: the operation as a user writes it, on tensors.
        reference: the same in NumPy; floats come as float64 and the answer is rounded to the result's dtype.
        inputs: the sets of operands, each run in every dtype. Give rank 0 and size 0 where the operation has them.
        dtypes: element types of the operands that name none.
        ulps: bound on the error in units of the dtype's epsilon, relative to ``max(|answer|, magnitude)``.
        ulps16: the same for 16-bit floats: one rounding of a float32 answer, unless several operations round in turn.
        magnitude: the size of the terms that the answer is made of (1 unless sums cancel).
        gradient: whether the gradient is compared with finite differences in float64.
        flexible: which sizes may be flexible: all, or none with the reason.
        wrong: misuses.
    """

    name: str
    build: Callable[..., Any]
    reference: Callable[..., Any]
    inputs: Sequence[tuple[Input, ...]]
    dtypes: tuple[DType, ...] = FLOATS
    ulps: float = 4
    ulps16: float = 1
    magnitude: float = 1
    gradient: bool = True
    flexible: bool | str = True
    wrong: Sequence[Wrong] = field(default=())


def shapes(*sets: Sequence[tuple[int, ...]], draw: Draw = normal) -> list[tuple[Input, ...]]:
    """Sets of operands from their shapes alone."""
    return [tuple(Input(shape, draw) for shape in operands) for operands in sets]


UNARY: list[Sequence[tuple[int, ...]]] = [[(2, 3)], [()], [(0, 3)]]
BINARY: list[Sequence[tuple[int, ...]]] = [[(2, 3), (2, 3)], [(2, 1, 3), (4, 1)], [(), (3,)], [(), ()], [(0, 3), (3,)]]


def rows() -> list[OpCase]:
    """Every row of every family."""
    import tests.rows

    found: list[OpCase] = []
    for module in pkgutil.iter_modules(tests.rows.__path__, "tests.rows."):
        found += importlib.import_module(module.name).ROWS
    return found
