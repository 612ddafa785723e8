"""What Core ML Tools folds while it builds a MIL program, written with the public API: how a row of that table runs.

Core ML Tools works an operation on constants out by itself, in NumPy, and gives ``.val``. Its rules are Apple's, written apart
from this package. The rows stand in ``coreml_mapping_elementwise``, ``_movement`` and ``_layers``; what has none, where the two
differ, and what both refuse, in ``_left_out``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import bnnsgraph as bg

STRICT = bg.CompileOptions(negative_indices="out_of_bounds")
"""Core ML's ``validate_indices``."""

TARGETS = (15, 16, 17, 18)
"""The versions of iOS for which operations were defined, and defined anew."""

RNG = np.random.default_rng(15)

# Tolerances: a number of roundings of the dtype, ``finfo.eps``, relative to the result or to a larger number on the way to it.
EXACT = 0.0  # what moves, compares, or is rounded once on both sides; and integers
CALL = 4.0  # one function of a mathematical library on each side, each within 2 units in the last place


@dataclass(frozen=True)
class Row:
    """A call of Core ML Tools and the same with the public API.

    Args:
        op: the operation's name in MIL.
        operands: constants by the names of Core ML's parameters; a sequence becomes its parameter ``values``.
        build: of the builder and the operands, as tensors.
        given: Core ML's other parameters; their floats get the dtype of the operands.
        roundings: the tolerance, in roundings of ``around`` or of the result, whichever is larger.
        since: the version of iOS from which on Core ML has this form.
        halves: whether float operands also run as float16.
    """

    op: str
    operands: Mapping[str, np.ndarray] | Sequence[np.ndarray]
    build: Callable[..., Any]
    given: Mapping[str, Any] = field(default_factory=dict)
    roundings: float = EXACT
    around: float = 0.0
    since: int = 15
    halves: bool = True
    options: bg.CompileOptions = field(default_factory=bg.CompileOptions)

    def arrays(self, half: bool) -> list[np.ndarray]:
        values = self.operands.values() if isinstance(self.operands, Mapping) else self.operands
        return [narrow(value, half) for value in values]

    def has_halves(self) -> bool:
        return self.halves and any(array.dtype == np.float32 for array in self.arrays(False))


class NotFoldedError(Exception):
    """Core ML Tools left an output without a value."""


def narrow(value: np.ndarray, half: bool) -> np.ndarray:
    return value.astype(np.float16) if half and value.dtype == np.float32 else value.copy()


def fold(row: Row, target: int, *, half: bool = False) -> list[Any]:
    """Core ML's outputs: variables with the dtype and the shape that it infers, and the folded ``.val``."""
    import coremltools
    from coremltools.converters.mil.mil import Builder, Function

    def constant(value: Any) -> Any:
        if isinstance(value, float):
            return np.float16(value) if half else np.float32(value)
        return narrow(value, half) if isinstance(value, np.ndarray) else value

    arrays = row.arrays(half)
    with Function({}, opset_version=coremltools.target[f"iOS{target}"]), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy warns of overflow and NaN; the values are compared
        operands = [Builder.const(val=array) for array in arrays]
        named = dict(zip(row.operands, operands, strict=True)) if isinstance(row.operands, Mapping) else {"values": operands}
        result = getattr(Builder, row.op)(**named, **{name: constant(value) for name, value in row.given.items()})
    outputs = list(result) if isinstance(result, (tuple, list)) else [result]
    for output in outputs:
        assert output.op.op_type == row.op
        if output.val is None:
            raise NotFoldedError(row.op)
    return outputs


def run(row: Row, *, half: bool = False, constant: bool = False) -> list[np.ndarray]:
    """The outputs here, with the operands as arguments or recorded as constants."""
    arrays = row.arrays(half)

    def block(b: bg.Builder) -> Any:
        if constant:
            return row.build(b, *[b.constant(values=array) for array in arrays])
        return row.build(b, *[b.argument(f"a{index}", array.dtype, array.shape) for index, array in enumerate(arrays)])

    result: Any = bg.make_context(block, options=row.options)(*([] if constant else arrays))
    return [np.asarray(output) for output in (result if isinstance(result, tuple) else (result,))]


def assert_same(row: Row, got: np.ndarray, output: Any) -> None:
    """The dtype and the shape that Core ML infers, and the value that it folds."""
    from coremltools.converters.mil.mil import types

    want = np.asarray(output.val)
    assert (got.dtype, got.shape) == (types.nptype_from_builtin(output.dtype), tuple(output.shape))
    assert got.shape == want.shape
    if row.roundings == EXACT:
        np.testing.assert_array_equal(got, want)
    else:
        share = row.roundings * float(np.finfo(got.dtype).eps)
        np.testing.assert_allclose(got.astype(float), want.astype(float), share, share * row.around)


# Operands. All from one generator, so the same in every run


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def uniform(low: float, high: float, *shape: int) -> np.ndarray:
    return RNG.uniform(low, high, size=shape).astype(np.float32)


def whole(*shape: int, low: int = -9, high: int = 10, dtype: Any = np.int32) -> np.ndarray:
    return RNG.integers(low, high, shape).astype(dtype)


def distinct(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Small whole numbers of both signs in a random order, each once."""
    count = int(np.prod(shape))
    return (RNG.permutation(count) - count // 2).reshape(shape).astype(dtype)


def mask(*shape: int) -> np.ndarray:
    return RNG.random(shape) < 0.5


def special(*values: float, draw: Callable[..., np.ndarray] = normal) -> np.ndarray:
    """Random numbers, then zeros of both signs, infinities, NaN and ``values``."""
    return np.concatenate([draw(12), np.array([0.0, -0.0, np.inf, -np.inf, np.nan, *values], np.float32)])


WORDS = (-(2**31), 2**31 - 1, -1, 0, 1)  # the ends of int32


def words() -> np.ndarray:
    return np.concatenate([whole(10), np.array(WORDS, np.int32)])
