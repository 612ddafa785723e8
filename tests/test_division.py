"""Quotients are divided, to the last bit, also where XLA would multiply by the reciprocal of a constant or a broadcast."""

from __future__ import annotations

import numpy as np
import pytest

import bnnsgraph as bg
from bnnsgraph.dtypes import DType
from tests.op_table import FLOATS

X = np.array([[7, -11, 0.3, 5], [1, 2.7, 13, np.inf]])
ROW = np.array([3, 0.1, -7, 49])
COLUMN = ROW[:2, None]


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: dtype.name)
def test_every_quotient_is_the_nearest_number(dtype: DType) -> None:
    largest = np.finfo(dtype.numpy).max if dtype is not bg.BFloat16 else np.float32(3e38)
    huge = np.full((2, 4), largest, dtype.numpy)
    x, row, column = X.astype(dtype.numpy), ROW.astype(dtype.numpy), COLUMN.astype(dtype.numpy)

    @bg.make_context
    def context(b: bg.Builder) -> dict[str, bg.Tensor]:
        given = b.argument("x", dtype, x.shape)
        largest = b.argument("huge", dtype, huge.shape)
        rows, columns = b.argument("row", dtype, row.shape), b.argument("column", dtype, column.shape)
        return {
            "by_a_number": given / row[0],
            "by_a_scalar": given / rows[0],
            "by_rows": given / rows,
            "by_constant_rows": given / row,
            "by_columns": given / columns,
            "by_a_constant": given / np.broadcast_to(row, x.shape),
            "of_a_constant_by_rows": b.constant(values=x) / rows,
            "of_a_constant_by_one": b.constant(values=x) / rows[1],
            "huge_by_a_scalar": largest / largest[0, 0],
            "huge_by_a_number": largest / huge[0, 0],
            "huge_floor_divided": largest // largest[0, 0],
        }

    found = context(x, huge, row, column)._asdict()
    expected = {
        "by_a_number": x / row[0],
        "by_a_scalar": x / row[0],
        "by_rows": x / row,
        "by_constant_rows": x / row,
        "by_columns": x / column,
        "by_a_constant": x / row,
        "of_a_constant_by_rows": x / row,
        "of_a_constant_by_one": x / row[1],
        "huge_by_a_scalar": np.ones_like(huge),
        "huge_by_a_number": np.ones_like(huge),
        "huge_floor_divided": np.ones_like(huge),
    }
    for name, quotient in expected.items():
        np.testing.assert_array_equal(np.asarray(found[name]), quotient, err_msg=name)
