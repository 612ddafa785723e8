"""Scatters, bags of embeddings, and the gradient of an embedding, which is a scatter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

import bnnsgraph as bg
from tests.benchmarks.arrays import Pattern, draw, elements, from_jax, short
from tests.benchmarks.cases import Arrays, Case

ADD, MAXIMUM, UPDATE = bg.ScatterMode.ADD, bg.ScatterMode.MAXIMUM, bg.ScatterMode.UPDATE
REDUCTIONS = {UPDATE: "none", ADD: "add", MAXIMUM: "max"}
CORE_AI = {UPDATE: "update", ADD: "add", MAXIMUM: "max"}
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
        core_ai=(lambda ca, x, u, i: ca.scatter_nd(x, ca.expand_dims(i, [1]), u)) if mode is UPDATE else None,
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
        core_ai=lambda ca, x, u, i: ca.scatter_along_axis(x.type, x, i, u, 0, scatter_mode=CORE_AI[mode]),
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
    """Every case."""
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
