"""64-bit data and indices are exact whatever JAX's x64 flag is, and the width of an index never changes an answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest

import bnnsgraph as bg
from bnnsgraph.dtypes import DType, Scalar

Array = np.ndarray[Any, Any]


@pytest.fixture(params=[False, True], ids=["x64 off", "x64 on"])
def x64(request: pytest.FixtureRequest) -> Iterator[bool]:
    """JAX's flag as a user may have set it."""
    with jax.enable_x64(request.param):
        yield request.param


def array(values: object, dtype: DType) -> Array:
    return np.array(values, dtype.numpy)


def label(value: object) -> str:
    """How a parameter is named in the tests' names."""
    return value.name if isinstance(value, type) and issubclass(value, Scalar) else str(value)


DATA: dict[DType, list[float]] = {
    bg.Int64: [2**31, -(2**31) - 1, 2**40 + 1, -(2**63), 2**63 - 1],
    bg.UInt64: [2**31, 2**32, 2**40 + 1, 2**63 + 1, 2**64 - 1],
    bg.Float64: [1 + 2**-52, -(2**53) + 1.0, 1e300, 2**31 + 0.5, float("nan")],
}


@pytest.mark.parametrize("dtype", DATA, ids=lambda dtype: dtype.name)
@pytest.mark.usefixtures("x64")
def test_64_bit_data_passes_unchanged(dtype: DType) -> None:
    x = array(DATA[dtype], dtype)

    @bg.make_context
    def context(builder: bg.Builder) -> list[bg.Tensor[Any]]:
        data, where = builder.argument("x", dtype, shape=[5]), builder.argument("i", bg.Int32, shape=[5])
        constant = builder.constant(values=x)
        return [
            data.gather(where, axis=0),
            constant.gather(where, axis=0),
            data.gather([4, 3, 2, 1, 0], axis=0),
            data.gather_along_axis(where, axis=0),
            data.gather_nd(where.unsqueeze(axis=1)),
            data.scatter(constant, where, bg.ScatterMode.UPDATE, axis=0),
            data[::-1],
        ]

    for result in context(x, array([4, 3, 2, 1, 0], bg.Int32)):
        assert result.dtype == dtype.numpy
        np.testing.assert_array_equal(np.asarray(result), x[::-1])


@pytest.mark.usefixtures("x64")
def test_64_bit_sums_are_exact() -> None:
    @bg.make_context
    def context(builder: bg.Builder) -> list[bg.Tensor[Any]]:
        where = builder.argument("i", bg.UInt8, shape=[3])
        return [
            builder.constant(values=array([2**40, 5], bg.Int64)).scatter([1, 1, 1], where, bg.ScatterMode.ADD, axis=0),
            builder.constant(values=array([2**63, 5], bg.UInt64)).scatter([1, 1, 1], where, bg.ScatterMode.SUBTRACT, axis=0),
            builder.constant(values=array([2**53, 5], bg.Float64)).scatter([2, 2, 2], where, bg.ScatterMode.ADD, axis=0),
            builder.constant(values=array([3, 5], bg.Int64)).scatter([2**20] * 3, where, bg.ScatterMode.MULTIPLY, axis=0),
        ]

    found = context(array([0, 0, 0], bg.UInt8))
    assert [np.asarray(result).tolist() for result in found] == [
        [2**40 + 3, 5],
        [2**63 - 3, 5],
        [2.0**53 + 6, 5.0],
        [3 * 2**60, 5],
    ]


def test_a_64_bit_graph_gives_64_bit_results_while_the_flag_is_off() -> None:
    context = bg.make_context(lambda b: b.argument("x", bg.Float64, shape=[-1]).gather([0, -1], axis=0) + 2.0**-50)
    result = context(array([1, 0, 2], bg.Float64))
    assert isinstance(result, jax.Array)
    assert result.dtype == np.float64
    assert result.tolist() == [1 + 2**-50, 2 + 2**-50]
    assert not jax.config.jax_enable_x64  # pyright: ignore[reportAttributeAccessIssue]
    target = np.zeros(2)
    context.execute_function([target, array([4, 5], bg.Float64)])
    assert target.tolist() == [4 + 2**-50, 5 + 2**-50]
    assert context.function(array([1, 0, 2], bg.Float64)).dtype == np.float64


def test_a_32_bit_graph_stays_so_while_the_flag_is_on() -> None:
    with jax.enable_x64(True):
        context = bg.make_context(
            lambda b: {
                "picked": b.argument("x", bg.Float32, shape=[3]).gather(b.argument("i", bg.Int32, shape=[2]), axis=0) * 2
            }
        )
        assert context(array([1, 2, 3], bg.Float32), array([2, -1], bg.Int32)).dtype == np.float32
        assert context.function(array([1, 2, 3], bg.Float32), array([2, -1], bg.Int32)).dtype == np.float32


# Index values that a narrower type cannot hold

FAR = [
    (bg.Int64, 2**32 + 1),
    (bg.Int64, -(2**32) + 1),
    (bg.Int64, 2**63 - 1),
    (bg.Int64, -(2**63)),
    (bg.UInt32, 2**32 - 1),
    (bg.UInt32, 2**31),
    (bg.UInt64, 2**32 + 1),
    (bg.UInt64, 2**63),
    (bg.UInt64, 2**64 - 1),
    (bg.Int32, -(2**31)),
    (bg.Int32, 2**31 - 1),
]


@pytest.mark.parametrize(
    ("dtype", "index", "flag"),
    [*[(*far, False) for far in FAR], (bg.Int64, 2**32 + 1, True), (bg.UInt64, 2**63, True)],
    ids=label,
)
def test_an_index_far_outside_is_outside(dtype: DType, index: int, flag: bool) -> None:
    with jax.enable_x64(flag):
        check_far(dtype, index)


def check_far(dtype: DType, index: int) -> None:
    x = np.arange(1, 5, dtype=np.float32)

    def results(data: bg.Tensor[Any], where: bg.Tensor[Any]) -> list[bg.Tensor[Any]]:
        found: list[bg.Tensor[Any]] = []
        for rule in ("clip", bg.fill(-7.0)):
            found.append(data.gather(where, axis=0, out_of_bounds=rule))
            found.append(data.gather_along_axis(where, axis=0, out_of_bounds=rule))
            found.append(data.gather_nd(where.unsqueeze(axis=1), out_of_bounds=rule))
        zeros = data * 0
        for rule in ("clip", "drop"):
            found.append(zeros.scatter([9.0, 8.0], where, bg.ScatterMode.UPDATE, axis=0, out_of_bounds=rule))
            found.append(zeros.scatter_nd([9.0, 8.0], where.unsqueeze(axis=1), bg.ScatterMode.ADD, out_of_bounds=rule))
        return found

    where = array([2, index], dtype)
    as_argument = bg.make_context(lambda b: results(b.argument("x", bg.Float32, shape=[4]), b.argument("i", dtype, shape=[2])))(
        x, where
    )
    # with a flexible size the constant is not rewritten while building
    for size in (4, -1):
        as_constant = bg.make_context(
            lambda b, n=size: results(b.argument("x", bg.Float32, shape=[n]), b.constant(values=where))
        )(x)
        for one, other in zip(as_argument, as_constant, strict=True):
            np.testing.assert_array_equal(one, other)
    nearest = x[-1] if index > 0 else x[0]
    for clipped in as_argument[:3]:
        assert clipped.tolist() == [x[2], nearest]
    for filled in as_argument[3:6]:
        assert filled.tolist() == [x[2], -7]
    for moved in as_argument[6:8]:
        assert moved.tolist() == ([0, 0, 9, 8] if index > 0 else [8, 0, 9, 0])
    for dropped in as_argument[8:]:
        assert dropped.tolist() == [0, 0, 9, 0]


@pytest.mark.parametrize(("dtype", "index"), FAR, ids=label)
def test_an_index_far_outside_raises_and_is_told_as_it_is(dtype: Any, index: int) -> None:
    low = 0 if dtype.name.startswith("u") else -4
    words = rf"indices must be in \[{low}, 4\) on axis 0, got {index} at position \[1\]"
    context = bg.make_context(
        lambda b: b.argument("x", bg.Float32, shape=[4]).gather(b.argument("i", dtype, shape=[2]), axis=0)
    )
    with pytest.raises(bg.IndexOutOfBoundsError, match=words):
        context(np.arange(4, dtype=np.float32), array([2, index], dtype))
    with pytest.raises(bg.IndexOutOfBoundsError, match=words):
        bg.make_context(lambda b: b.argument("x", bg.Float32, shape=[4]).gather(array([2, index], dtype), axis=0))


# Narrow indices on axes longer than they can count

NARROW: list[tuple[DType, int, list[int]]] = [
    (bg.Int8, 300, [127, -1, -128, 0]),
    (bg.UInt8, 300, [255, 128, 127, 0]),
    (bg.UInt8, 200, [199, 128, 127, 0]),
    (bg.Int16, 70_000, [32_767, -1, -32_768, 0]),
    (bg.UInt16, 70_000, [65_535, 32_768, 255, 0]),
    (bg.UInt16, 300, [299, 256, 255, 0]),
    (bg.UInt32, 70_000, [69_999, 65_536, 1, 0]),
    (bg.Int64, 300, [299, -1, -300, 0]),
    (bg.UInt64, 300, [299, 128, 1, 0]),
]


@pytest.mark.parametrize(("dtype", "length", "indices"), NARROW, ids=label)
def test_any_index_dtype_answers_as_int32_does(dtype: DType, length: int, indices: list[int]) -> None:
    x = np.arange(length, dtype=np.int32)

    def results(data: bg.Tensor[Any], where: bg.Tensor[Any]) -> list[bg.Tensor[Any]]:
        table, zeros = data.unsqueeze(axis=0), data * 0
        return [
            data.gather(where, axis=0),
            data.gather_along_axis(where, axis=0),
            data.gather_nd(where.unsqueeze(axis=1)),
            table.gather(where.unsqueeze(axis=0), axis=1, batch_dimension_count=1),
            zeros.scatter([1, 2, 3, 4], where, bg.ScatterMode.ADD, axis=0),
            zeros.scatter_along_axis([1, 2, 3, 4], where, bg.ScatterMode.UPDATE, axis=0),
            zeros.scatter_nd([1, 2, 3, 4], where.unsqueeze(axis=1), bg.ScatterMode.MAXIMUM),
        ]

    def run(index: DType, flexible: bool, constant: bool) -> list[Array]:
        where = array(indices, index)

        @bg.make_context
        def context(builder: bg.Builder) -> list[bg.Tensor[Any]]:
            data = builder.argument("x", bg.Int32, shape=[-1 if flexible else length])
            return results(data, builder.constant(values=where) if constant else builder.argument("i", index, shape=[4]))

        return [np.asarray(result) for result in (context(x) if constant else context(x, where))]

    expected = run(bg.Int32, flexible=False, constant=False)
    np.testing.assert_array_equal(expected[0], x[indices])
    for flexible in (False, True):
        for constant in (False, True):
            for result, wanted in zip(run(dtype, flexible, constant), expected, strict=True):
                np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("x64_flag", [False, True])
def test_a_python_list_of_large_indices_is_not_cut(x64_flag: bool) -> None:
    with jax.enable_x64(x64_flag), pytest.raises(bg.IndexOutOfBoundsError, match=f"got {2**32 + 1} at position"):
        bg.make_context(lambda b: b.argument("x", bg.Float32, shape=[4]).gather([0, 2**32 + 1], axis=0))


@pytest.mark.long
def test_an_axis_longer_than_int32_counts() -> None:
    """Needs about 5 GB of memory."""
    length = 2**31 + 5
    x = np.zeros(length, np.uint8)
    x[-1], x[2**31], x[2**31 - 1], x[1] = 11, 22, 33, 44
    indices = array([-1, 2**31, 2**31 - 1, 1, 2**31 + 4], bg.Int64)
    context = bg.make_context(
        lambda b: b.argument("x", bg.UInt8, shape=[length]).gather(b.argument("i", bg.Int64, shape=[-1]), axis=0)
    )
    assert context(x, indices).tolist() == [11, 22, 33, 44, 11]
    with pytest.raises(bg.IndexOutOfBoundsError, match=f"got {length} at position"):
        context(x, array([length], bg.Int64))
    narrow = bg.make_context(
        lambda b: b.argument("x", bg.UInt8, shape=[length]).gather(b.argument("i", bg.UInt32, shape=[-1]), axis=0)
    )
    assert narrow(x, array([2**31, 1], bg.UInt32)).tolist() == [22, 44]
