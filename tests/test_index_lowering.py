"""What XLA is given: one gather or one scatter a call and nothing that builds coordinates; and known faults of its compiler."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bnnsgraph as bg
from bnnsgraph.compile import Program
from bnnsgraph.graph import Constant
from bnnsgraph.indices import IndexOp
from bnnsgraph.ops.gathering import Gather, GatherAlongAxis, GatherND
from bnnsgraph.ops.scattering import Scatter, ScatterAlongAxis, ScatterND
from bnnsgraph.walking import checks
from tests import index_definition as definition

Array = np.ndarray[Any, Any]

FORBIDDEN = ("while", "iota", "dot", "dynamic_slice", "dynamic_update_slice", "sort", "case", "if", "custom_call")
"""What a loop, a one-hot product, or coordinates of batch axes would lower to."""

X = (2, 3, 4, 5)
CALLS: list[tuple[IndexOp, tuple[int, ...], tuple[int, ...] | None, list[int]]] = [
    # operation, shape of the indices, shape of the updates, batch axes
    (Gather(0), (6,), None, []),
    (Gather(2), (), None, []),
    (Gather(-1), (6, 7), None, []),
    (Gather(1, 1), (2, 6), None, [0]),
    (Gather(3, 2), (2, 3, 6), None, [0, 1]),
    (Gather(3, -1), (2, 3, 6), None, [0, 1]),
    (Gather(2, 2), (2, 3), None, [0, 1]),
    (GatherAlongAxis(0), (7, 3, 4, 5), None, [1, 2, 3]),
    (GatherAlongAxis(-2), (2, 3, 7, 5), None, [0, 1, 3]),
    (GatherND(), (6, 2), None, []),
    (GatherND(), (4,), None, []),
    (GatherND(), (6, 0), None, []),
    (GatherND(1), (2, 6, 1), None, [0]),
    (GatherND(2), (2, 3, 6, 2), None, [0, 1]),
    *[(Scatter(mode, 1), (6,), (2, 6, 4, 5), []) for mode in bg.ScatterMode],
    *[(ScatterAlongAxis(mode, 1), (2, 7, 4, 5), (2, 7, 4, 5), [0, 2, 3]) for mode in bg.ScatterMode],
    *[(ScatterND(mode), (6, 2), (6, 4, 5), []) for mode in bg.ScatterMode],
    (ScatterND(bg.ScatterMode.ADD), (6, 0), (6, *X), []),
]
GATHER_RULES: list[Any] = ["raise", "clip", "unchecked", bg.fill(0)]
SCATTER_RULES: list[Any] = ["raise", "clip", "unchecked", "drop"]


def assert_one(text: str, call: IndexOp, batch: list[int]) -> None:
    """The text holds one gather or scatter with these batching dimensions, and nothing forbidden."""
    gather = isinstance(call, (Gather, GatherAlongAxis, GatherND))
    assert text.count('"stablehlo.gather"') == (1 if gather else 0)
    assert text.count('"stablehlo.scatter"') == (0 if gather else 1)
    assert [name for name in FORBIDDEN if f"stablehlo.{name}" in text] == []
    name = "operand_batching_dims" if gather else "input_batching_dims"
    if batch:
        assert f"{name} = {batch}" in text
        assert f"indices_batching_dims = {batch}" in text
    else:
        assert "batching_dims" not in text


@pytest.mark.parametrize(("op", "indices", "updates", "batch"), CALLS, ids=str)
@pytest.mark.parametrize("index_dtype", [np.int32, np.uint8])
def test_a_call_is_one_gather_or_scatter(
    op: IndexOp, indices: tuple[int, ...], updates: tuple[int, ...] | None, batch: list[int], index_dtype: Any
) -> None:
    shapes = [X] if updates is None else [X, updates]
    arrays = [jax.ShapeDtypeStruct(shape, np.float32) for shape in shapes]
    for rule in GATHER_RULES if updates is None else SCATTER_RULES:
        ruled = replace(op, out_of_bounds=rule)
        as_argument = jax.jit(ruled.lower).lower(*arrays, jax.ShapeDtypeStruct(indices, index_dtype)).as_text()
        assert_one(as_argument, op, batch)
        constant = np.zeros(indices, index_dtype)
        as_constant = jax.jit(lambda *a, op=ruled, c=constant: op.lower(*a, jnp.asarray(c))).lower(*arrays).as_text()
        assert_one(as_constant, op, batch)


@pytest.mark.parametrize(("op", "indices", "updates", "batch"), CALLS, ids=str)
def test_the_run_time_check_adds_no_second_gather(
    op: IndexOp, indices: tuple[int, ...], updates: tuple[int, ...] | None, batch: list[int]
) -> None:
    builder = bg.Builder()
    x = builder.argument("x", bg.Float32, shape=X)
    operands = [] if updates is None else [builder.argument("updates", bg.Float32, shape=updates)]
    result = x._emit(op, *operands, builder.argument("indices", bg.Int32, shape=indices))
    program = Program.place(builder.finish(result))
    structs = [jax.ShapeDtypeStruct(value.spec.shape, value.spec.dtype.numpy) for value in program.graph.arguments]
    lowered: Any = program.compiled([struct.shape for struct in structs])
    if isinstance(op, Gather):  # beside the check, all axes before the gathered one are batch axes
        batch = list(range(op.resolved(X, indices)[0]))
    assert_one(lowered.lower(*structs).as_text(), op, batch)


@pytest.mark.parametrize(("width", "spread"), [(8, True), (1 << 20, False)])
def test_single_elements_far_beyond_the_caches_are_not_spread(width: int, spread: bool) -> None:
    """Beside the check; see ``Gather.lower_beside_check``. The gradient is that of ``lower`` at any width."""
    arrays = [jax.ShapeDtypeStruct((2, width), np.float32), jax.ShapeDtypeStruct((3,), np.int32)]
    text = jax.jit(Gather(1).lower_beside_check).lower(*arrays).as_text()
    assert ("operand_batching_dims = [0]" in text) is spread


def test_constant_indices_are_not_checked_again_when_the_graph_runs() -> None:
    def block(builder: bg.Builder) -> bg.Tensor[Any]:
        return builder.argument("x", bg.Float32, shape=[4, 2]).gather(np.array([3, 0, 1], np.uint8), axis=0)

    graph = bg.make_context(block).graph
    assert checks(graph) == ()
    assert [node.op.array.dtype for node in graph.nodes if isinstance(node.op, Constant)] == [np.int32]


FACTS: list[tuple[Any, bool, bool]] = [
    # constant indices, whether they are sorted, whether they are unique
    ([0, 2, 5], True, True),
    ([0, 0, 3], True, False),
    ([3, 1, 2], False, True),
    ([3, 1, 3], False, False),
    ([3, -9, 3], False, False),  # as 3, 1, 3
    ([-1, -9], False, True),
    ([[0, 4], [2, 4]], False, False),
    (7, True, True),
]


@pytest.mark.parametrize(("indices", "ordered", "unique"), FACTS, ids=str)
def test_xla_is_told_what_constant_indices_show(indices: Any, ordered: bool, unique: bool) -> None:
    array = np.array(indices, np.int32)

    def rows(builder: bg.Builder) -> bg.Tensor[Any]:
        return builder.argument("x", bg.Float32, shape=[10, 4]).gather(array, axis=0)

    def added(builder: bg.Builder) -> bg.Tensor[Any]:
        updates = np.ones((*array.shape, 4), np.float32)
        return builder.argument("x", bg.Float32, shape=[10, 4]).scatter(updates, array, bg.ScatterMode.ADD, axis=0)

    unchanged = bg.CompileOptions(optimize_graph=False)
    text = bg.make_context(rows, options=unchanged).stablehlo()
    assert re.findall(r"indices_are_sorted = (\w+)", text) == [str(ordered).lower()]
    gradient = jax.jit(jax.grad(lambda x: bg.make_context(rows, options=unchanged).function(x).sum()))
    for text in (
        bg.make_context(added, options=unchanged).stablehlo(),
        gradient.lower(jax.ShapeDtypeStruct((10, 4), np.float32)).as_text(),
    ):
        assert re.findall(r"indices_are_sorted = (\w+)", text)[-1] == str(ordered).lower()
        assert re.findall(r"unique_indices = (\w+)", text) == [str(unique).lower()]


@pytest.mark.parametrize(
    ("indices", "ordered", "unique"),
    [([[0, 1], [0, 3], [2, 0]], True, True), ([[0, 1], [0, 1]], True, False), ([[0, 3], [0, 1], [2, 0]], False, True)],
    ids=str,
)
def test_xla_is_told_what_constant_index_vectors_show(indices: Any, ordered: bool, unique: bool) -> None:
    def block(builder: bg.Builder) -> bg.Tensor[Any]:
        x = builder.argument("x", bg.Float32, shape=[10, 4])
        return x.scatter_nd(np.ones(len(indices), np.float32), np.array(indices, np.int32), bg.ScatterMode.ADD)

    text = bg.make_context(block).stablehlo()
    assert re.findall(r"(indices_are_sorted|unique_indices) = (\w+)", text) == [
        ("indices_are_sorted", str(ordered).lower()),
        ("unique_indices", str(unique).lower()),
    ]


@pytest.mark.parametrize("rule", ["clip", "drop"])
def test_xla_is_told_nothing_of_indices_whose_axis_is_not_known(rule: Any) -> None:
    """Clipped, two of them may be one; dropped, those left out are not sorted."""

    def block(builder: bg.Builder) -> bg.Tensor[Any]:
        x = builder.argument("x", bg.Float32, shape=["n", 4])
        return x.scatter(
            np.ones((2, 4), np.float32), np.array([5, 7], np.int32), bg.ScatterMode.ADD, axis=0, out_of_bounds=rule
        )

    context = bg.make_context(block)
    text = context.stablehlo(n=10)
    assert re.findall(r"(?:indices_are_sorted|unique_indices) = (\w+)", text) == ["false", "false"]
    assert np.asarray(context(np.zeros((6, 4), np.float32)))[:, 0].tolist() == [0, 0, 0, 0, 0, 1 + (rule == "clip")]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64])
@pytest.mark.parametrize("shape", [(8192,), (256, 96), (8193,), (4, 8, 257)], ids=str)
def test_one_bad_index_of_many(dtype: Any, shape: tuple[int, ...]) -> None:
    """Many indices are checked by columns; the first, the last, and some between."""
    size = 100
    limit = size if dtype in (np.uint8, np.uint64, np.uint32) else -size - 1
    failed = jax.jit(lambda x, indices: Gather(0).failed(x, indices))
    with jax.enable_x64(True):
        x = np.zeros(size, np.float32)
        indices = (np.arange(math.prod(shape)) % (2 * size) - size * (limit < 0)).astype(dtype).reshape(shape) % size
        assert not failed(x, indices)
        for place in (0, 31, 32, math.prod(shape) // 2, math.prod(shape) - 1):
            for bad in (size, limit, np.iinfo(dtype).max):
                indices.reshape(-1)[place] = bad
                assert failed(x, indices)
            indices.reshape(-1)[place] = 0


# Faults of XLA that the package must not let through


@pytest.mark.parametrize("dtype", [bg.UInt8, bg.UInt16, bg.UInt32, bg.UInt64], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("rule", ["raise", "clip", bg.fill(-1.0)], ids=str)
@pytest.mark.parametrize("flexible", [False, True])
def test_constant_unsigned_indices_with_the_top_bit_set(dtype: Any, rule: Any, flexible: bool) -> None:
    """XLA once read such constants as negative numbers. With a flexible size the constant reaches XLA as it is."""
    top = 2 ** (dtype.bits - 1)
    length = top + 7 if dtype.bits < 32 else 300
    reachable = [top, top + 1, length - 1] if dtype.bits < 32 else [0, 299]
    beyond = [] if rule == "raise" else [top, 2 * top - 1] if dtype.bits >= 32 else [length, 2 * top - 1]
    indices = np.array(reachable + beyond, dtype.numpy)
    x = np.arange(length, dtype=np.float32)

    @bg.make_context
    def context(builder: bg.Builder) -> list[bg.Tensor[Any]]:
        data = builder.argument("x", bg.Float32, shape=[-1 if flexible else length])
        where = builder.constant(values=indices)
        return [
            data.gather(where, axis=0, out_of_bounds=rule),
            data.gather_along_axis(where, axis=0, out_of_bounds=rule),
            data.gather_nd(where.unsqueeze(axis=1), out_of_bounds=rule),
        ]

    expected = definition.gather(x, indices, 0, 0, rule)
    for result in context(x):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("rule", ["clip", bg.fill(-1.0)], ids=str)
def test_slices_with_run_time_starts_in_a_row(rule: Any) -> None:
    """XLA once merged two such slices by adding their starts, which is wrong where the first one was clamped."""

    @bg.make_context
    def context(builder: bg.Builder) -> list[bg.Tensor[Any]]:
        x = builder.argument("x", bg.Float32, shape=[3, 4, 2])
        i, j = builder.argument("i", bg.Int32), builder.argument("j", bg.Int32)
        row = x.gather(i, axis=0, out_of_bounds=rule)
        kept = x.gather(i.unsqueeze(axis=0), axis=0, out_of_bounds=rule)  # [1, 4, 2]
        return [
            row.gather(j, axis=0, out_of_bounds=rule),
            kept.gather(j, axis=1, out_of_bounds=rule),
            kept.gather(j, axis=0, out_of_bounds=rule),  # the same axis twice
            x.gather_nd(i.unsqueeze(axis=0), out_of_bounds=rule).gather_nd(j.unsqueeze(axis=0), out_of_bounds=rule),
        ]

    x = np.arange(24, dtype=np.float32).reshape(3, 4, 2)
    for i in range(-5, 6):
        for j in range(-6, 7):
            a, b = np.int32(i), np.int32(j)
            row = definition.gather(x, np.asarray(a), 0, 0, rule)
            kept = row[None]
            found = [np.asarray(result) for result in context(x, a, b)]
            np.testing.assert_array_equal(found[0], definition.gather(row, np.asarray(b), 0, 0, rule))
            np.testing.assert_array_equal(found[1], definition.gather(kept, np.asarray(b), 1, 0, rule))
            np.testing.assert_array_equal(found[2], definition.gather(kept, np.asarray(b), 0, 0, rule))
            np.testing.assert_array_equal(found[3], definition.gather(row, np.asarray(b), 0, 0, rule))


@pytest.mark.parametrize("mode", list(bg.ScatterMode), ids=lambda mode: mode.name)
@pytest.mark.parametrize("shape", [(), (1,), (2, 3)], ids=str)
def test_several_updates_of_a_whole_tensor(mode: bg.ScatterMode, shape: tuple[int, ...]) -> None:
    """XLA rejects a scatter into a scalar by several updates, and jaxlib 0.10.2 adds only the last to a one-element tensor."""
    x = np.full(shape, 2, np.float32)
    updates = np.array([4, -2, 8, 1, 2, -4], np.float32).reshape(3, 2, *[1] * len(shape)) * np.ones(shape, np.float32)
    indices = np.zeros((3, 2, 0), np.int32)
    context = bg.make_context(
        lambda b: b.argument("x", bg.Float32, shape=shape).scatter_nd(
            b.argument("updates", bg.Float32, shape=updates.shape), b.argument("i", bg.Int32, shape=indices.shape), mode
        )
    )
    expected = definition.scatter_nd(x, updates, indices, mode.name, "raise")
    np.testing.assert_array_equal(context(x, updates, indices), expected)
