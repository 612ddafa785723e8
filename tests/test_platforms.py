"""Every operation lowers for CPU, GPU and TPU: the whole op table as one program, exported for all three."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import pytest

import bnnsgraph as bg
from bnnsgraph.dtypes import DType, Floating, as_dtype
from tests.op_table import EVERY, OpCase, rows
from tests.test_every_op import as_tuple, seed
from tests.test_layers import operations

PLATFORMS = ("cpu", "cuda", "tpu")


class Table:
    """The first input set of each row in some of its element types, side by side in one graph."""

    def __init__(self, dtypes_of: Callable[[OpCase], Sequence[DType]]) -> None:
        self.arrays: list[np.ndarray] = []
        self.rows: list[OpCase] = []
        builder = bg.Builder()
        results: list[Any] = []
        for row in rows():
            for dtype in dtypes_of(row):
                arrays = [operand.array(seed(row), dtype) for operand in row.inputs[0]]
                start = len(self.arrays)
                tensors = [
                    builder.argument(f"a{place}", as_dtype(array.dtype), array.shape)
                    for place, array in enumerate(arrays, start)
                ]
                found = as_tuple(row.build(*tensors))
                self.arrays += arrays
                self.rows += [row] * len(found)
                results += found
        self.context = bg.Context(builder.finish(results), compile_now=False)

    @property
    def operations(self) -> set[type]:
        return {type(node.op) for node in self.context.graph.nodes}


def one_of_at_most_32_bits(row: OpCase) -> list[DType]:
    """Float32 where the row has it."""
    narrow = [dtype for dtype in row.dtypes if dtype.bits <= 32]
    return [bg.Float32] if bg.Float32 in narrow else narrow[:1]


def test_every_row_lowers_for_every_platform() -> None:
    table = Table(one_of_at_most_32_bits)
    exported = table.context.export(platforms=PLATFORMS)
    assert exported.platforms == PLATFORMS
    assert "custom_call" not in exported.mlir_module()  # no function that only one platform's library has
    leaves = {operation for operation in operations() if "lower" in vars(operation) and not operation.__subclasses__()}
    assert leaves - table.operations == set()
    without = {row.name for row in rows()} - {row.name for row in table.rows}
    assert all(dtype.bits == 64 for row in rows() if row.name in without for dtype in row.dtypes)


@pytest.mark.long
@pytest.mark.parametrize("dtype", EVERY, ids=lambda dtype: dtype.name)
def test_every_element_type_lowers_for_every_platform(dtype: DType) -> None:
    table = Table(lambda row: [dtype] if dtype in row.dtypes else [])
    assert "custom_call" not in table.context.export(platforms=PLATFORMS).mlir_module()


@pytest.mark.long
def test_the_reloaded_table_gives_the_same_answers() -> None:
    table = Table(one_of_at_most_32_bits)
    reloaded = jax.export.deserialize(table.context.export(platforms=PLATFORMS).serialize()).call(*table.arrays)
    wanted = table.context(*table.arrays)
    for row, name in zip(table.rows, wanted._fields, strict=True):
        got, expected = np.asarray(reloaded[name]), np.asarray(getattr(wanted, name))
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
        if issubclass(as_dtype(got.dtype), Floating):
            bound = 2 * row.ulps * float(jax.numpy.finfo(got.dtype).eps)  # each of two compilations is within the row's
            np.testing.assert_allclose(got, expected, rtol=bound, atol=bound * row.magnitude, err_msg=row.name)
        else:
            np.testing.assert_array_equal(got, expected, err_msg=row.name)
