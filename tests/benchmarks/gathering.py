"""The gather family: rows, axes, batches, elements, element types, scatters, bags of embeddings and their gradient."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

import bnnsgraph as bg
from tests.benchmarks.cases import Arrays, Case, run_cases
from tests.benchmarks.timing import Row

Pattern = Literal["random", "sorted", "repeated", "unique"]
ADD, MAXIMUM, UPDATE = bg.ScatterMode.ADD, bg.ScatterMode.MAXIMUM, bg.ScatterMode.UPDATE
REPEATED = 64  # how many different indices there are where they are repeated


def draw(rng: np.random.Generator, size: int, shape: Any, pattern: Pattern = "random") -> np.ndarray:
    """Indices of an axis."""
    if pattern == "unique":
        return rng.permutation(size)[: np.prod(shape)].reshape(shape).astype(np.int32)
    indices = rng.integers(0, min(size, REPEATED) if pattern == "repeated" else size, shape)
    return (np.sort(indices) if pattern == "sorted" else indices).astype(np.int32)


def elements(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    """Random elements of a type."""
    if np.dtype(dtype).kind == "f":
        return rng.standard_normal(shape, np.float32).astype(dtype)
    return rng.integers(0, 2 if dtype is np.bool_ else 100, shape).astype(dtype)


def short(count: int) -> str:
    """4096 as 4 K."""
    for unit, name in ((1 << 20, "M"), (1 << 10, "K")):
        if count >= unit and count % unit == 0:
            return f"{count // unit} {name}"
    return str(count)


def from_jax(array: Any) -> Any:
    """JAX's own way of indexed reading and writing."""
    return array.at


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
    import jax.numpy as jnp

    return jnp.take_along_axis(x, i, axis, mode="promise_in_bounds")


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
    )


REDUCTIONS = {UPDATE: "none", ADD: "add", MAXIMUM: "max"}
BARE = {UPDATE: "set", ADD: "add", MAXIMUM: "max"}
NUMPY = {ADD: np.add.at, MAXIMUM: np.maximum.at}


def written(mode: bg.ScatterMode) -> Any:
    """A scatter in NumPy: ``x``, its updates and an index of any kind."""

    def write(x: np.ndarray, u: np.ndarray, index: Any) -> np.ndarray:
        result = x.copy()
        if mode is UPDATE:
            result[index] = u
        else:
            NUMPY[mode](result, index, u)
        return result

    return write


def scatter_rows(
    mode: bg.ScatterMode, pattern: Pattern, size: int = 20_000, count: int = 4096, width: int = 64, *, quick: bool = False
) -> Case:
    """Rows into a table."""

    def arrays() -> Arrays:
        rng = np.random.default_rng(0)
        return {"x": elements(rng, (size, width)), "u": elements(rng, (count, width)), "i": draw(rng, size, count, pattern)}

    def torch(x: Any, u: Any, i: Any) -> Any:
        if mode is UPDATE:
            return x.index_copy(0, i, u)
        return x.index_add(0, i, u) if mode is ADD else x.index_reduce(0, i, u, "amax")

    write = written(mode)
    return Case(
        f"scatter {mode.name.lower()}: {short(count)} {pattern} rows of {width} into {size:,}",
        arrays,
        lambda x, u, i: x.scatter(u, i, axis=0, mode=mode),
        write,
        lambda x, u, i: getattr(from_jax(x)[i], BARE[mode])(u, mode="promise_in_bounds"),
        torch,
        f'last = Constant<value_ints=[1]>() j = Unsqueeze(i, last) y = ScatterND<reduction="{REDUCTIONS[mode]}">(x, j, u)',
        tolerance=1e-4 if mode is ADD else 0.0,  # up to 4096 / 64 numbers of unit size are added, in any order
        long=True,
        quick=quick,
    )


def scatter_elements(
    mode: bg.ScatterMode, pattern: Pattern, size: int = 1_000_000, count: int = 65_536, *, quick: bool = False
) -> Case:
    """Single elements into a long vector."""

    def arrays() -> Arrays:
        rng = np.random.default_rng(0)
        return {"x": elements(rng, (size,)), "u": elements(rng, (count,)), "i": draw(rng, size, count, pattern)}

    def torch(x: Any, u: Any, i: Any) -> Any:
        return x.scatter(0, i, u) if mode is UPDATE else x.scatter_reduce(0, i, u, "sum" if mode is ADD else "amax")

    write = written(mode)
    return Case(
        f"scatter {mode.name.lower()}: {short(count)} {pattern} elements into {size:,}",
        arrays,
        lambda x, u, i: x.scatter_along_axis(u, i, axis=0, mode=mode),
        write,
        lambda x, u, i: getattr(from_jax(x)[i], BARE[mode])(u, mode="promise_in_bounds"),
        torch,
        f'y = ScatterElements<axis=0, reduction="{REDUCTIONS[mode]}">(x, i, u)',
        tolerance=1e-3 if mode is ADD else 0.0,  # up to 65536 / 64 numbers of unit size are added, in any order
        long=True,
        quick=quick,
    )


def bag(reduction: Literal["mean", "sum"], bags: int = 4096, length: int = 16, width: int = 64, *, quick: bool = False) -> Case:
    """The rows of each bag, added."""

    def arrays() -> Arrays:
        rng = np.random.default_rng(0)
        return {"x": elements(rng, (100_000, width)), "i": draw(rng, 100_000, (bags, length))}

    def torch(x: Any, i: Any) -> Any:
        from torch.nn.functional import embedding_bag

        return embedding_bag(i, x, mode=reduction)

    return Case(
        f"{reduction} of {length} rows of {width}, {short(bags)} bags",
        arrays,
        lambda x, i: getattr(x.gather(i, axis=0), reduction)([1]),
        lambda x, i: getattr(x[i], reduction)(axis=1),
        lambda x, i: getattr(from_jax(x)[i].get(mode="promise_in_bounds"), reduction)(axis=1),
        torch,
        f"rows = Gather<axis=0>(x, i) one = Constant<value_ints=[1]>() y = Reduce{reduction.title()}<keepdims=0>(rows, one)",
        tolerance=1e-5,
        quick=quick,
    )


def gradient(pattern: Pattern, size: int = 20_000, count: int = 4096, width: int = 64, *, quick: bool = False) -> Case:
    """The gradient of an embedding by its table: rows added into zeros."""
    import jax

    def arrays() -> Arrays:
        rng = np.random.default_rng(0)
        return {"x": elements(rng, (size, width)), "u": elements(rng, (count, width)), "i": draw(rng, size, count, pattern)}

    def loss(x: Any, u: Any, i: Any) -> Any:
        return (from_jax(x)[i].get(mode="promise_in_bounds") * u).sum()

    def torch(x: Any, u: Any, i: Any) -> Any:
        from torch.nn.functional import embedding

        variable = x.detach().requires_grad_()
        embedding(i, variable).backward(u)
        return variable.grad

    return Case(
        f"gradient: {short(count)} {pattern} rows of {width} of {size:,}",
        arrays,
        lambda x, u, i: (x.gather(i, axis=0) * u).sum([0, 1]),
        lambda x, u, i: written(ADD)(np.zeros_like(x), u, i),
        jax.grad(loss),
        torch,
        tolerance=1e-4,  # as adding rows
        quick=quick,
        ours=lambda context: jax.jit(jax.grad(context.function)),
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
    yield scatter_rows(UPDATE, "unique", quick=True)
    yield scatter_rows(ADD, "unique")
    yield scatter_rows(ADD, "repeated", quick=True)
    yield scatter_rows(MAXIMUM, "repeated")
    yield scatter_elements(UPDATE, "unique")
    yield scatter_elements(ADD, "unique")
    yield scatter_elements(ADD, "repeated", quick=True)
    yield scatter_elements(MAXIMUM, "unique")
    yield scatter_elements(MAXIMUM, "repeated")
    yield bag("mean", quick=True)
    yield bag("sum")
    yield gradient("unique", quick=True)
    yield gradient("repeated")


def run(quick: bool) -> list[Row]:
    """Every row of the family."""
    return run_cases(cases(), quick)
