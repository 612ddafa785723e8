"""The gather family: rows, axes, batches, elements, element types; ``scattering.py`` has what writes and what adds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.benchmarks import scattering
from tests.benchmarks.arrays import Pattern, draw, elements, from_jax, short
from tests.benchmarks.cases import Arrays, Case, run_cases
from tests.benchmarks.timing import Row


def rows(
    width: int, count: int, size: int = 100_000, pattern: Pattern = "random", dtype: Any = np.float32, *, quick: bool = False
) -> Case:
    """Whole rows of a table."""

    def arrays() -> Arrays:
        rng = np.random.default_rng(0)
        return {"x": elements(rng, (size, width), dtype), "i": draw(rng, size, count, pattern)}

    output = np.empty((count, width), dtype)
    kind = "" if dtype is np.float32 else f"{np.dtype(dtype).name} "
    return Case(
        f"{short(count)} {pattern} rows of {width} {kind}of {size:,}",
        arrays,
        lambda x, i: x.gather(i, axis=0),
        lambda x, i: np.take(x, i, axis=0, out=output, mode="clip"),
        lambda x, i: from_jax(x)[i].get(mode="promise_in_bounds"),
        lambda x, i: x.index_select(0, i),
        "y = Gather<axis=0>(x, i)",
        quick=quick,
        core_ai=(lambda ca, x, i: ca.gather_nd(x, ca.expand_dims(i, [1]))) if dtype is np.float32 else None,
    )


def along(axis: int, shape: tuple[int, ...], count: int, *, quick: bool = False) -> Case:
    """Slices along an axis that is not the first."""

    def arrays() -> Arrays:
        rng = np.random.default_rng(0)
        return {"x": elements(rng, shape), "i": draw(rng, shape[axis], count)}

    name = "last axis" if axis == len(shape) - 1 else f"axis {axis}"
    output = np.empty((*shape[:axis], count, *shape[axis + 1 :]), np.float32)
    return Case(
        f"{short(count)} along the {name} of {shape}" if name == "last axis" else f"{short(count)} along {name} of {shape}",
        arrays,
        lambda x, i: x.gather(i, axis=axis),
        lambda x, i: np.take(x, i, axis=axis, out=output, mode="clip"),
        lambda x, i: from_jax(x)[(slice(None),) * axis + (i,)].get(mode="promise_in_bounds"),
        lambda x, i: x.index_select(axis, i),
        f"y = Gather<axis={axis}>(x, i)",
        quick=quick,
    )


def batched(shape: tuple[int, int, int], count: int, *, quick: bool = False) -> Case:
    """Rows of each table of a batch."""

    def arrays() -> Arrays:
        rng = np.random.default_rng(0)
        return {"x": elements(rng, shape), "i": draw(rng, shape[1], (shape[0], count))}

    return Case(
        f"{count} rows of each of {shape}",
        arrays,
        lambda x, i: x.gather(i, axis=1, batch_dimension_count=1),
        lambda x, i: x[np.arange(shape[0])[:, None], i],
        lambda x, i: _take_along(x, i[:, :, None], 1),
        lambda x, i: x.gather(1, i.unsqueeze(2).expand(-1, -1, shape[2])),
        "last = Constant<value_ints=[2]>() j = Unsqueeze(i, last) y = GatherND<batch_dims=1>(x, j)",
        long=True,
        quick=quick,
    )


def _take_along(x: Any, i: Any, axis: int) -> Any:
    """By hand, with negative indices counted from the end, which this function of JAX leaves out where it trusts indices."""
    import jax.numpy as jnp

    return jnp.take_along_axis(x, jnp.where(i < 0, i + x.shape[axis], i), axis, mode="promise_in_bounds")


def points(shape: tuple[int, ...], depth: int, count: int, *, quick: bool = False) -> Case:
    """``gather_nd``: elements, or rows where an axis is left over."""

    def arrays() -> Arrays:
        rng = np.random.default_rng(0)
        return {"x": elements(rng, shape), "i": np.stack([draw(rng, size, count) for size in shape[:depth]], 1)}

    return Case(
        f"nd: {short(count)} {'elements' if depth == len(shape) else f'rows of {shape[-1]}'} of {shape}",
        arrays,
        lambda x, i: x.gather_nd(i),
        lambda x, i: x[tuple(i.T)],
        lambda x, i: from_jax(x)[tuple(i.T)].get(mode="promise_in_bounds"),
        lambda x, i: x[tuple(i.T)],
        "y = GatherND(x, i)",
        long=True,
        quick=quick,
        core_ai=lambda ca, x, i: ca.gather_nd(x, i),
    )


def batched_points(shape: tuple[int, int, int], count: int) -> Case:
    """``gather_nd`` of elements in each table of a batch."""

    def arrays() -> Arrays:
        rng = np.random.default_rng(0)
        return {"x": elements(rng, shape), "i": np.stack([draw(rng, n, (shape[0], count)) for n in shape[1:]], 2)}

    def bare(x: Any, i: Any) -> Any:
        import jax

        return jax.vmap(lambda x, i: from_jax(x)[i[:, 0], i[:, 1]].get(mode="promise_in_bounds"))(x, i)

    def torch(x: Any, i: Any) -> Any:
        return x.flatten(1).gather(1, i[:, :, 0] * shape[2] + i[:, :, 1])

    return Case(
        f"nd: {short(count)} elements of each of {shape}",
        arrays,
        lambda x, i: x.gather_nd(i, batch_dimension_count=1),
        lambda x, i: x[np.arange(shape[0])[:, None], i[:, :, 0], i[:, :, 1]],
        bare,
        torch,
        "y = GatherND<batch_dims=1>(x, i)",
        long=True,
    )


def elements_along(axis: int, shape: tuple[int, int], count: int, *, quick: bool = False) -> Case:
    """``gather_along_axis``: one index for each element of the result."""

    def arrays() -> Arrays:
        rng = np.random.default_rng(0)
        found = tuple(count if number == axis else size for number, size in enumerate(shape))
        return {"x": elements(rng, shape), "i": draw(rng, shape[axis], found)}

    return Case(
        f"{short(count)} elements along axis {axis} of {shape}",
        arrays,
        lambda x, i: x.gather_along_axis(i, axis=axis),
        lambda x, i: np.take_along_axis(x, i, axis),
        lambda x, i: _take_along(x, i, axis),
        lambda x, i: x.gather(axis, i),
        f"y = GatherElements<axis={axis}>(x, i)",
        long=True,
        quick=quick,
        core_ai=lambda ca, x, i: ca.gather_along_axis(x, i, axis),
    )


def cases() -> Iterator[Case]:
    """Every case; tables of 100,000 rows are far larger than the caches from 64 floats on, those of 1,000 are in them."""
    for width in (1, 4, 16, 32, 64, 96, 128, 512):
        size = 100_000 if width < 512 else 20_000
        yield rows(width, 4096, size, quick=width in (16, 64))
        yield rows(width, 65_536, size, quick=width in (4, 32, 128))
    for width in (16, 64, 128):
        yield rows(width, 65_536, 1_000)
    for width in (1, 4, 32):
        yield rows(width, 1 << 20)
    yield rows(64, 65_536, pattern="sorted")
    yield rows(64, 65_536, pattern="repeated")
    yield rows(16, 65_536, pattern="sorted")
    yield along(1, (64, 1000, 32), 256, quick=True)
    yield along(1, (1000, 1000), 256, quick=True)
    yield along(1, (64, 100_000), 4096)
    yield batched((32, 1000, 64), 128, quick=True)
    yield batched((1024, 64, 16), 16)
    yield points((1000, 1000), 2, 65_536, quick=True)
    yield points((100, 1000, 16), 2, 65_536)
    yield points((100, 1000, 64), 2, 4096)
    yield batched_points((32, 100, 100), 2048)
    yield elements_along(1, (1000, 1000), 100, quick=True)
    yield elements_along(0, (1000, 1000), 100)
    for dtype in (np.float16, np.int8, np.int64, np.bool_):
        yield rows(64, 65_536, dtype=dtype)
    yield from scattering.cases()


def run(quick: bool) -> list[Row]:
    """Every row of the family."""
    return run_cases(cases(), quick)
