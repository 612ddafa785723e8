"""``bnnsgraph.openvino``: the examples of the published pages, by their own numbers, and what each version promises."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import bnnsgraph as bg
from bnnsgraph import openvino
from bnnsgraph.compile import Program

TWO_BY_TWO = [[1, 2], [3, 4]]
TWO_BY_THREE_BY_FOUR = [
    [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]],
    [[13, 14, 15, 16], [17, 18, 19, 20], [21, 22, 23, 24]],
]


def gather_nd(data: Any, indices: Any, batch_dims: int, version: Any, *, constant: bool, dtype: Any = np.float32) -> np.ndarray:
    """Run ``openvino.gather_nd`` on arrays, with the indices as an argument or as a constant."""
    data, indices = np.asarray(data, dtype), np.asarray(indices, np.int32)

    @bg.make_context
    def context(b: bg.Builder) -> bg.Tensor[Any]:
        tensor = b.argument("data", data.dtype, data.shape)
        given = indices if constant else b.argument("indices", bg.Int32, indices.shape)
        return openvino.gather_nd(tensor, given, batch_dims, version)

    return np.asarray(context(data) if constant else context(data, indices))


# The GatherND-5 page, examples 1 to 6: data, indices, batch_dims, output

EXAMPLES = {
    "1, elements": (TWO_BY_TWO, [[0, 0], [1, 0]], 0, [1, 3]),
    "2, slices": (TWO_BY_TWO, [[1], [0]], 0, [[3, 4], [1, 2]]),
    "3, leading dimensions": (TWO_BY_TWO, [[[1]], [[0]]], 0, [[[3, 4]], [[1, 2]]]),
    "4, elements of batches": (TWO_BY_TWO, [[1], [0]], 1, [2, 3]),
    "5, slices of batches": (TWO_BY_THREE_BY_FOUR, [[1], [0]], 1, [[5, 6, 7, 8], [13, 14, 15, 16]]),
    "6, merged batches": (
        TWO_BY_THREE_BY_FOUR,
        [[[[1]], [[0]], [[2]]], [[[0]], [[2]], [[2]]]],
        2,
        [[2], [5], [11], [13], [19], [23]],
    ),
}


@pytest.mark.parametrize("constant", [False, True], ids=["argument", "constant"])
@pytest.mark.parametrize("example", EXAMPLES)
def test_worked_examples_of_the_gather_nd_5_page(example: str, constant: bool) -> None:
    data, indices, batch_dims, output = EXAMPLES[example]
    result = gather_nd(data, indices, batch_dims, 5, constant=constant)
    assert result.dtype == np.float32
    assert result.shape == np.shape(output)
    assert result.tolist() == output


def test_example_6_keeps_its_batch_axes_in_version_8() -> None:
    data, indices, batch_dims, _ = EXAMPLES["6, merged batches"]
    assert gather_nd(data, indices, batch_dims, 8, constant=False).tolist() == [[[2], [5], [11]], [[13], [19], [23]]]


def test_example_7_of_the_gather_nd_8_page() -> None:
    data = [[[[1, 2, 3, 4], [5, 6, 7, 8]], [[9, 10, 11, 12], [13, 14, 15, 16]]]]
    indices = [[[[1], [0]], [[3], [2]]]]
    assert gather_nd(data, indices, 3, 8, constant=False).tolist() == [[[2, 5], [12, 15]]]
    assert gather_nd(data, indices, 3, 5, constant=False).tolist() == [2, 5, 12, 15]


# The two <layer> examples of the GatherND-5 page, which give shapes only: the values are those of NumPy's definition


@pytest.mark.parametrize("constant", [False, True], ids=["argument", "constant"])
def test_first_layer_of_the_gather_nd_5_page(constant: bool) -> None:
    data = (np.arange(1000 * 256 * 10 * 15) % 251).astype(np.uint8).reshape(1000, 256, 10, 15)
    indices = np.random.default_rng(5).integers(0, [1000, 256, 10], (25, 125, 3))
    result = gather_nd(data, indices, 0, 5, constant=constant, dtype=np.uint8)
    assert result.shape == (25, 125, 15)
    np.testing.assert_array_equal(result, data[indices[..., 0], indices[..., 1], indices[..., 2]])


@pytest.mark.parametrize("constant", [False, True], ids=["argument", "constant"])
def test_second_layer_of_the_gather_nd_5_page(constant: bool) -> None:
    data = np.arange(30 * 2 * 100 * 35, dtype=np.float32).reshape(30, 2, 100, 35)
    indices = np.random.default_rng(5).integers(0, 100, (30, 2, 3, 1))
    result = gather_nd(data, indices, 2, 5, constant=constant)
    assert result.shape == (60, 3, 35)
    for row in range(30):
        for column in range(2):
            for place in range(3):
                wanted = data[row, column, indices[row, column, place, 0]]
                np.testing.assert_array_equal(result[row * 2 + column, place], wanted)


# Version 5 is version 8 and one reshape


def lowered(version: Any, batch_dims: int) -> str:
    def block(b: bg.Builder) -> bg.Tensor[Any]:
        data = b.argument("data", bg.Float32, shape=[2, 3, 4, 5])
        return openvino.gather_nd(data, b.argument("indices", bg.Int32, shape=[2, 3, 7, 1]), batch_dims, version)

    graph = bg.make_context(block).graph
    structs = [jax.ShapeDtypeStruct(value.spec.shape, value.spec.dtype.numpy) for value in graph.arguments]
    return Program.place(graph).compiled([struct.shape for struct in structs]).lower(*structs).as_text()  # pyright: ignore[reportFunctionMemberAccess]


@pytest.mark.parametrize(("batch_dims", "reshapes"), [(0, 0), (1, 0), (2, 1)])
def test_version_5_lowers_to_one_gather_and_at_most_one_reshape_more(batch_dims: int, reshapes: int) -> None:
    five, eight = lowered(5, batch_dims), lowered(8, batch_dims)
    assert five.count('"stablehlo.gather"(') == eight.count('"stablehlo.gather"(') == 1
    assert five.count("stablehlo.reshape") - eight.count("stablehlo.reshape") == reshapes


@pytest.mark.parametrize("sizes", [(2, 3), (1, 1), (0, 3)])
@pytest.mark.parametrize("declared", [("rows", "columns"), (-1, -1), ("rows", -1), (-1, 3), (2, "columns")])
def test_merged_batch_size_may_be_flexible(declared: tuple[Any, Any], sizes: tuple[int, int]) -> None:
    def block(b: bg.Builder) -> bg.Tensor[Any]:
        data = b.argument("data", bg.Float32, shape=[*declared, 4])
        return openvino.gather_nd(data, b.argument("indices", bg.Int32, shape=[*declared, -1, 1]), 2, version=5)

    shape = [fixed if isinstance(fixed, int) and fixed > 0 else size for fixed, size in zip(declared, sizes, strict=True)]
    data = np.arange(shape[0] * shape[1] * 4, dtype=np.float32).reshape(*shape, 4)
    indices = np.arange(shape[0] * shape[1] * 7, dtype=np.int32).reshape(*shape, 7, 1) % 4
    result = bg.make_context(block)(data, indices)
    assert result.shape == (shape[0] * shape[1], 7)
    np.testing.assert_array_equal(result, np.take_along_axis(data, indices[..., 0], 2).reshape(-1, 7))


def test_merged_batch_size_is_the_product_of_the_names() -> None:
    b = bg.Builder()
    data, indices = b.argument("data", bg.Float32, ["rows", 3, 4]), b.argument("indices", bg.Int32, ["rows", 3, "count", 1])
    assert str(openvino.gather_nd(data, indices, 2, 5).spec) == "float32[3*rows, count]"
    anonymous = b.argument("anonymous", bg.Float32, [-1, -1, 4])
    assert openvino.gather_nd(anonymous, b.argument("j", bg.Int32, [-1, -1, -1, 1]), 2, 5).shape == (-1, -1)


# Indices outside their axis, by the rule of each operation

PAYLOADS = ["float32", "float16", "bfloat16", "int8", "int32", "int64", "uint8", "uint64", "bool"]


@pytest.mark.parametrize("constant", [False, True], ids=["argument", "constant"])
def test_gather_answers_zero_outside_the_axis(constant: bool) -> None:
    indices = {dtype: np.array([3, 10, -20, -1, 5, -6], dtype) for dtype in ("int8", "int32", "int64")}

    @bg.make_context
    def context(b: bg.Builder) -> list[bg.Tensor[Any]]:
        results: list[bg.Tensor[Any]] = []
        for name, array in indices.items():
            given = array if constant else b.argument(name, array.dtype, array.shape)
            for payload in PAYLOADS:
                data = b.constant(values=[1, 1, 1, 1, 1]).cast(to=payload)
                results += [openvino.gather(data, given, axis=0, version=version) for version in (1, 7, 8)]
        return results

    results = context(**({} if constant else indices))
    for payload, result in zip([payload for payload in PAYLOADS for _ in range(3)] * 3, results, strict=True):
        assert result.dtype.name == payload
        assert np.asarray(result).astype(np.int32).tolist() == [1, 0, 0, 1, 0, 0]


def test_negative_indices_count_from_the_end_whatever_the_option_says() -> None:
    @bg.make_context(options=bg.CompileOptions(negative_indices="out_of_bounds"))
    def context(b: bg.Builder) -> list[bg.Tensor[Any]]:
        data, i = b.constant(values=[1, 2, 3]), b.argument("i", bg.Int32, shape=[2])
        return [openvino.gather(data, i, 0), openvino.gather_nd(data, i.unsqueeze(-1)), openvino.gather_elements(data, i, 0)]

    assert [result.tolist() for result in context([-1, -3])] == [[3, 1]] * 3


@pytest.mark.parametrize("option", [bg.fill(7), "clip"])
def test_option_of_the_graph_decides_where_the_page_says_nothing(option: Any) -> None:
    @bg.make_context(options=bg.CompileOptions(out_of_bounds=option))
    def context(b: bg.Builder) -> list[bg.Tensor[Any]]:
        data, i = b.constant(values=[1, 2, 3]), b.argument("i", bg.Int32, shape=[2])
        return [openvino.gather(data, i, 0), openvino.gather_nd(data, i.unsqueeze(-1)), openvino.gather_elements(data, i, 0)]

    other = 3 if option == "clip" else 7
    assert [result.tolist() for result in context([1, 3])] == [[2, 0], [2, other], [2, other]]


def test_gather_nd_and_gather_elements_refuse_indices_outside_by_default() -> None:
    square = TWO_BY_TWO
    nd = bg.make_context(lambda b: openvino.gather_nd(b.constant(values=square), b.argument("i", bg.Int32, [2, 2])))
    with pytest.raises(bg.IndexOutOfBoundsError) as caught:
        nd([[0, 0], [0, 3]])
    assert "GatherND(): indices must be in [-2, 2) on axis 1, got 3 at position [1, 1]" in str(caught.value)
    elements = bg.make_context(
        lambda b: openvino.gather_elements(b.constant(values=square), b.argument("i", bg.Int32, [1, 2]), 0)
    )
    with pytest.raises(bg.IndexOutOfBoundsError) as caught:
        elements([[0, -3]])
    assert "indices must be in [-2, 2) on axis 0, got -3 at position [0, 1]" in str(caught.value)


# Misuse: each error says what it must be and what it got, at the user's line

MISUSES: dict[str, tuple[Any, type[bg.GraphError], str]] = {
    "gather_nd version": (
        lambda x, i: openvino.gather_nd(x, i, version=6),  # pyright: ignore[reportArgumentType]
        bg.ParameterError,
        "version of GatherND must be 5 or 8, got 6",
    ),
    "gather version": (
        lambda x, i: openvino.gather(x, i, 0, version=5),  # pyright: ignore[reportArgumentType]
        bg.ParameterError,
        "version of Gather must be 1, 7 or 8, got 5",
    ),
    "gather version True": (
        lambda x, i: openvino.gather(x, i, 0, version=True),  # pyright: ignore[reportArgumentType]
        bg.ParameterError,
        "version of Gather must be 1, 7 or 8, got True",
    ),
    "gather 1 has no batch axes": (
        lambda x, i: openvino.gather(x, i, 1, batch_dims=1, version=1),
        bg.ParameterError,
        "batch_dims must be 0 for Gather-1, which has no batch axes, got 1; write version=7",
    ),
    "data is an array": (
        lambda x, i: openvino.gather(np.ones(3), i, 0),  # pyright: ignore[reportArgumentType]
        bg.ParameterError,
        "data must be a tensor of the graph, got ndarray; write builder.constant(values=data)",
    ),
    "batch_dims is no integer": (
        lambda x, i: openvino.gather_nd(x, i, batch_dims=1.0),  # pyright: ignore[reportArgumentType]
        bg.ParameterError,
        "batch_dims must be an integer, got 1.0",
    ),
    "axis is no integer": (
        lambda x, i: openvino.gather(x, i, axis="rows"),  # pyright: ignore[reportArgumentType]
        bg.ParameterError,
        "axis must be an integer, got 'rows'",
    ),
    "gather_nd negative batch_dims": (
        lambda x, i: openvino.gather_nd(x, i, batch_dims=-1),
        bg.ShapeError,
        "batch_dimension_count must be in [0, 2), below the ranks of x and indices, got -1",
    ),
    "gather_nd batch_dims of the rank": (
        lambda x, i: openvino.gather_nd(x, i, batch_dims=2),
        bg.ShapeError,
        "batch_dimension_count must be in [0, 2), below the ranks of x and indices, got 2",
    ),
    "gather_nd long vectors": (
        lambda x, i: openvino.gather_nd(x[0, 0], i),
        bg.ShapeError,
        "the last size of indices must be in [0, 1], the axes of x it can address, got 2",
    ),
    "gather_nd indices of rank 0": (
        lambda x, i: openvino.gather_nd(x, i[0, 0]),
        bg.ShapeError,
        "indices must have rank 1 or more, its last axis holding the index vectors, got rank 0",
    ),
    "gather_nd batch size 1 against 3": (
        lambda x, i: openvino.gather_nd(x, i[:1], batch_dims=1, version=5),
        bg.ShapeError,
        "batch sizes of x and indices on axis 0 must be equal, got 3 against 1",
    ),
    "gather batch size 1 against 3": (
        lambda x, i: openvino.gather(x, i[:1], axis=1, batch_dims=1),
        bg.ShapeError,
        "batch sizes of x and indices on axis 0 must be equal, got 3 against 1",
    ),
    "gather batch_dims above axis": (
        lambda x, i: openvino.gather(x, i, axis=0, batch_dims=-1),
        bg.ShapeError,
        "batch_dimension_count must be at most axis, 0, got 1",
    ),
    "gather axis": (
        lambda x, i: openvino.gather(x, i, axis=3),
        bg.ShapeError,
        "axis must be in [-3, 3), got 3",
    ),
    "gather float indices": (
        lambda x, i: openvino.gather(x, i.cast(to=bg.Float32), axis=0),
        bg.DTypeError,
        "indices must be of an integer type, got float32; write .cast(to=Int32) first",
    ),
    "gather_nd float constant indices": (
        lambda x, i: openvino.gather_nd(x, [[0.0]]),
        bg.DTypeError,
        "indices must be of an integer type, got float64",
    ),
    "gather_elements rank": (
        lambda x, i: openvino.gather_elements(x, i, axis=0),
        bg.ShapeError,
        "indices must have the rank of x, 3, got 2",
    ),
    "gather_elements other axis": (
        lambda x, i: openvino.gather_elements(x[0], i, axis=0),
        bg.ShapeError,
        "sizes of x and indices on axis 1 must be equal, got 5 against 2",
    ),
    "gather_nd constant index": (
        lambda x, i: openvino.gather_nd(x, [[0, 4]], version=5),
        bg.IndexOutOfBoundsError,
        "indices must be in [-4, 4) on axis 1, got 4 at position [0, 1]",
    ),
    "gather_elements constant index": (
        lambda x, i: openvino.gather_elements(x[0, 0], [-6], axis=0),
        bg.IndexOutOfBoundsError,
        "indices must be in [-5, 5) on axis 0, got -6 at position [0]",
    ),
}


@pytest.mark.parametrize("misuse", MISUSES)
def test_misuse(misuse: str) -> None:
    build, error, words = MISUSES[misuse]
    b = bg.Builder()
    x, i = b.argument("x", bg.Float32, shape=[3, 4, 5]), b.argument("i", bg.Int32, shape=[3, 2])
    with pytest.raises(error) as caught:
        build(x, i)
    assert words in str(caught.value)
    assert f"\n  at test_openvino.py:{build.__code__.co_firstlineno} (<lambda>)" in str(caught.value)


def test_tensor_of_another_builder() -> None:
    indices = bg.Builder().argument("indices", bg.Int32, shape=[2, 1])
    with pytest.raises(bg.ForeignTensorError, match="a tensor must be used with the builder that made it"):
        openvino.gather_nd(bg.Builder().argument("x", bg.Float32, shape=[3]), indices)
