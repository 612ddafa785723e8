"""Programs that a type checker must refuse: exactly the lines that end with the word error in a comment."""

from __future__ import annotations

from typing import Any

import bnnsgraph as bg
from bnnsgraph import Bool, Float16, Float32, Int32, Tensor


def two_dtypes(x: Tensor[Float32], i: Tensor[Int32], half: Tensor[Float16], mask: Tensor[Bool]) -> None:
    x + i  # error
    x - half  # error
    i * x  # error
    x / i  # error
    x // i  # error
    x % i  # error
    x**i  # error
    x @ i  # error
    x > i  # error
    x == i  # error
    x.max(i)  # error
    x.fma(x, i)  # error
    mask.select(x, i)  # error
    x + i.cast(to=Float32)
    x == 3


def groups_of_dtypes(x: Tensor[Float32], i: Tensor[Int32], mask: Tensor[Bool]) -> None:
    i.mean([0])  # error
    mask.mean(None)  # error
    ~x  # error
    x & x  # error
    mask | i  # error
    x.select(x, x)  # error
    mask & (x > 0)


def indices(x: Tensor[Float32], half: Tensor[Float16], mask: Tensor[Bool], untyped: Tensor[Any]) -> None:
    x.gather(x, axis=0)  # error
    x.gather(mask, axis=0)  # error
    x.gather_nd(half)  # error
    x.gather_along_axis(mask, axis=0)  # error
    x.scatter(x, x, bg.ScatterMode.ADD, axis=0)  # error
    x.scatter(half, [0], bg.ScatterMode.ADD, axis=0)  # error
    x.scatter_nd(x, mask, bg.ScatterMode.ADD)  # error
    x.scatter(x, [0], "add", axis=0)  # error
    x.scatter(x, [0], axis=0)  # error
    x.gather([0], axis=0, out_of_bounds="wrap")  # error
    x.gather([0], axis=0, out_of_bounds=0)  # error
    x.gather([0], axis="0")  # error
    x.gather([0])  # error
    x.gather(untyped, axis=0)


def subscripts(x: Tensor[Float32], i: Tensor[Int32], mask: Tensor[Bool]) -> None:
    x[x]  # error
    x[mask]  # error
    x[0, i]  # error
    x[None]  # error
    x[0] = i  # error
    x.update[0](i)  # error
    x.update[i](x)  # error
    x[i]


def values_of_tensors(x: Tensor[Float32]) -> None:
    if x > 0:  # error
        pass
    for _ in x:  # error
        pass
    while x:  # error
        pass
    not x  # error


def construction(builder: bg.Builder, x: Tensor[Float32], i: Tensor[Int32]) -> None:
    builder.argument("x", Float32, shape=3)  # error
    builder.argument("x", Float32, [3], "input")  # error
    builder.argument(Float32, [3])  # error
    builder.constant([1, 2])  # error
    builder.concatenate([x, i], axis=0)  # error
    builder.concatenate(x, i, axis=0)  # error
    x.cast()  # error
    x.sum()  # error
    x.sum(1.5)  # error
    x.sum([0], True)  # error
    x.reshape(3)  # error
    x.gather_elements([0], axis=0)  # error
    Tensor[int]  # error
    bg.CompileOptions("clip")  # error
    bg.CompileOptions(out_of_bounds="wrap")  # error
    bg.CompileOptions(negative_indices=True)  # error


def contexts() -> None:
    bg.make_context(lambda builder: 3)  # error
    bg.make_context(bg.CompileOptions())  # error

    @bg.make_context  # error
    def nothing(builder: bg.Builder) -> None:
        builder.argument("x", Float32)

    @bg.make_context
    def fine(builder: bg.Builder) -> Tensor[Float32]:
        return builder.argument("x", Float32)

    fine.run()  # error
    nothing
