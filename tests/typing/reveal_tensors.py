"""What type checkers know about a program: basedpyright checks each ``assert_type`` line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_type

import numpy as np

import bnnsgraph as bg
from bnnsgraph import Bool, Context, Float16, Float32, Int8, Int32, Tensor, UInt8


def arguments(builder: bg.Builder) -> Tensor[Float32]:
    x = builder.argument("x", Float32, shape=["batch", 3])
    assert_type(x, Tensor[Float32])
    assert_type(builder.argument("i", data_type=Int32, shape=[3]), Tensor[Int32])
    assert_type(builder.argument(None, UInt8, [2, 3], bg.Intent.INPUT_OUTPUT), Tensor[UInt8])
    assert_type(builder.argument("n", np.float32, shape=[3]), Tensor[Any])
    assert_type(builder.argument("s", "float32", shape=[3]), Tensor[Any])
    return x


def constants(builder: bg.Builder) -> None:
    assert_type(builder.constant(value=1.5, data_type=Float16), Tensor[Float16])
    assert_type(builder.constant("table", values=[[1, 2], [3, 4]], data_type=Int8), Tensor[Int8])
    assert_type(builder.constant(values=np.zeros(3, np.float32)), Tensor[Any])
    assert_type(builder.constant(value=3), Tensor[Any])
    assert_type(builder.constant(values=[1, 2], data_type="int64"), Tensor[Any])


def attributes(x: Tensor[Float32]) -> None:
    assert_type(x.shape, tuple[Any, ...])
    assert_type(x.rank, int)
    assert_type(x.ndim, int)
    assert_type(x.name, str | None)
    assert_type(x.data_type.name, str)
    assert_type(x.dtype, np.dtype[Any])
    assert_type(x.named("y"), Tensor[Float32])


def arithmetic(x: Tensor[Float32], i: Tensor[Int32], untyped: Tensor[Any]) -> None:
    assert_type(x + x, Tensor[Float32])
    assert_type(x - 1, Tensor[Float32])
    assert_type(2 * x, Tensor[Float32])
    assert_type(1 / x, Tensor[Float32])
    assert_type(x / np.ones(3, np.float32), Tensor[Float32])
    assert_type(i // 2 % 3, Tensor[Int32])
    assert_type(i**2, Tensor[Int32])
    assert_type(-x, Tensor[Float32])
    assert_type(x @ x, Tensor[Float32])
    assert_type(x.matmul(x, transpose_other=True), Tensor[Float32])
    assert_type(x.fma(2.0, x), Tensor[Float32])
    assert_type(x.max(0).min([1.0, 2.0, 3.0]), Tensor[Float32])
    assert_type(x + untyped, Tensor[Float32])
    assert_type(untyped + x, Tensor[Any])


def comparisons(x: Tensor[Float32], i: Tensor[Int32], mask: Tensor[Bool]) -> None:
    assert_type(x > 0, Tensor[Bool])
    assert_type(x <= x, Tensor[Bool])
    assert_type(x == x, Tensor[Bool])
    assert_type(i != 3, Tensor[Bool])
    assert_type(~(x < 1) & mask | mask ^ (i >= 0), Tensor[Bool])
    assert_type(mask.select(x, x), Tensor[Float32])
    assert_type(mask.select(x, 0), Tensor[Float32])
    assert_type(mask.select(0, i), Tensor[Int32])


def casts(x: Tensor[Float32], name: str) -> None:
    assert_type(x.cast(to=Int8), Tensor[Int8])
    assert_type(x.cast(Bool), Tensor[Bool])
    assert_type(x.cast(to="int8"), Tensor[Any])
    assert_type(x.cast(to=np.int8), Tensor[Any])
    assert_type(x.cast(to=name), Tensor[Any])


def movement(builder: bg.Builder, x: Tensor[Float32]) -> None:
    assert_type(x.reshape(to=[3, -1]).transpose(axes=[1, 0]), Tensor[Float32])
    assert_type(x.unsqueeze(axis=0).squeeze(axis=0), Tensor[Float32])
    assert_type(builder.concatenate([x, x], axis=0), Tensor[Float32])


def reductions(x: Tensor[Float32], i: Tensor[Int32]) -> None:
    assert_type(x.mean([0]), Tensor[Float32])
    assert_type(x.mean(None, keep_dimensions=True), Tensor[Float32])
    assert_type(x.cast(to=Float16).mean(-1), Tensor[Float16])
    assert_type(i.sum([0, 1]), Tensor[Int32])
    assert_type(i.maximum(0), Tensor[Int32])
    assert_type(x.minimum(None), Tensor[Float32])


def indices(x: Tensor[Float32], i: Tensor[Int32], narrow: Tensor[UInt8], untyped: Tensor[Any]) -> None:
    assert_type(x.gather(i, axis=0), Tensor[Float32])
    assert_type(x.gather(narrow, 0, 0, out_of_bounds="clip"), Tensor[Float32])
    assert_type(x.gather(untyped, axis=0, out_of_bounds=bg.fill(0)), Tensor[Float32])
    assert_type(x.gather([0, -1], axis=0), Tensor[Float32])
    assert_type(x.gather(3, axis=-1), Tensor[Float32])
    assert_type(x.gather_along_axis(np.zeros((2, 3), np.int64), axis=1), Tensor[Float32])
    assert_type(i.gather_nd([[0, 1]], batch_dimension_count=0), Tensor[Int32])
    assert_type(x.scatter(x, i, bg.ScatterMode.ADD, axis=0, unique_indices=True), Tensor[Float32])
    assert_type(x.scatter_along_axis([[1.0]], narrow, bg.ScatterMode.MAXIMUM, 0, out_of_bounds="drop"), Tensor[Float32])
    assert_type(i.scatter_nd([1], [[0, 0]], bg.ScatterMode.UPDATE), Tensor[Int32])


def subscripts(x: Tensor[Float32], i: Tensor[Int32]) -> None:
    assert_type(x[0], Tensor[Float32])
    assert_type(x[..., 1:, ::-2], Tensor[Float32])
    assert_type(x[bg.SliceRange.fill_all, bg.SliceRange(1, -1)], Tensor[Float32])
    assert_type(x[i], Tensor[Float32])
    assert_type(x[[0, 1]], Tensor[Float32])
    assert_type(x[np.array([0, 1])], Tensor[Float32])
    assert_type(x.update[1:3, 0](7), Tensor[Float32])
    assert_type(x.update[0](x[1]), Tensor[Float32])
    x[0] = 1.5
    x[..., ::2] = x[0]


def contexts(block: Callable[[bg.Builder], Tensor[Any]]) -> None:
    @bg.make_context
    def plain(builder: bg.Builder) -> Tensor[Float32]:
        return arguments(builder)

    @bg.make_context(options=bg.CompileOptions(out_of_bounds="clip"))
    def optioned(builder: bg.Builder) -> list[Tensor[Any]]:
        return [arguments(builder)]

    assert_type(plain, Context)
    assert_type(optioned, Context)
    assert_type(bg.make_context(lambda b: {"x": b.argument("x", Float32)}), Context)
    assert_type(bg.make_context(block, options=bg.CompileOptions()), Context)
    assert_type(plain.argument_names(), list[str])
    assert_type(plain.graph, bg.Graph)
    assert_type(plain.compilations, list[bg.Compilation])
