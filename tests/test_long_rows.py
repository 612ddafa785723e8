"""``top_k`` of long rows: by blocks on the CPU, with the answers of the whole sorted row."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import bnnsgraph as bg
from bnnsgraph.ops import sorting
from bnnsgraph.ops.sorting import TopK

SHAPE, K = (2, 6000), 7


def rows(dtype: np.dtype[Any], kind: str) -> np.ndarray[Any, Any]:
    """Numbers of which many are equal, with what else the kind says."""
    rng = np.random.default_rng(11)
    if kind == "extremes" and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return rng.choice(np.array([limits.min, limits.max, 0, 1], dtype), SHAPE)
    x = rng.integers(0, 4, SHAPE).astype(dtype)
    if kind == "extremes":
        x = rng.choice(np.array([-np.inf, np.inf, -0.0, 0.0, 1], np.float64), SHAPE).astype(dtype)
    if kind == "NaN":
        x[0, [3, 3700, 3701]] = np.nan
    if kind == "few in front":
        x[:] = 2
        x[1, 5990:5995] = 3
        x[0, ::1000] = 1
    return x


@pytest.mark.parametrize("dtype", [bg.Float32, bg.BFloat16, bg.Int32, bg.UInt8, bg.Int64, bg.Float64], ids=lambda d: d.name)
@pytest.mark.parametrize("largest", [True, False])
def test_blocks_choose_as_the_whole_row(dtype: Any, largest: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorting, "MANY", 1)
    op = TopK(1, K, largest)
    assert sorting._block(SHAPE, K) is not None
    kinds = ["equal", "extremes", "few in front"] + ["NaN"] * (dtype.numpy.kind not in "iu")
    with jax.enable_x64(True):
        found = jax.jit(op.positions)
        for kind in kinds:
            x = rows(dtype.numpy, kind)
            np.testing.assert_array_equal(found(x), op.sort(jax.numpy.asarray(x)), err_msg=kind)


@pytest.mark.parametrize(
    ("shape", "k", "wanted"),
    [
        ((100_000,), 10, 100),
        ((8, 128_256), 40, 64),
        ((32_767,), 5, None),
        ((99_991,), 3, None),
        ((100_000,), 0, None),
        ((4, 10_000), 9_999, None),
    ],
)
def test_the_width_of_blocks(shape: tuple[int, ...], k: int, wanted: int | None) -> None:
    """None for short rows, rows whose size is a prime number, and rows of which most are taken."""
    assert sorting._block(shape, k) == wanted


def test_a_long_row_through_a_context() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(-1000, 1000, 40_000).astype(np.int32)
    context = bg.make_context(lambda b: b.argument("x", bg.Int32, x.shape).top_k(12, axis=0))
    order = np.argsort(-x, kind="stable")[:12]
    values, positions = context(x)
    np.testing.assert_array_equal(positions, order)
    np.testing.assert_array_equal(values, x[order])
    text = context.stablehlo()
    assert "40000" not in "".join(line for line in text.splitlines() if "stablehlo.sort" in line)
