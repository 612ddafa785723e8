"""What is changed in a graph before it is compiled: the same results and checks, with less computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import bnnsgraph as bg
from bnnsgraph.compile import x64
from bnnsgraph.context import Context
from bnnsgraph.dtypes import as_dtype
from bnnsgraph.graph import Graph, Node
from bnnsgraph.ops.activation import GELU
from bnnsgraph.ops.attention import ScaledDotProductAttention
from bnnsgraph.ops.axiswise import Exponential
from bnnsgraph.ops.gathering import Gather
from bnnsgraph.ops.linear import MatMul
from bnnsgraph.ops.normalization import Standardize
from bnnsgraph.ops.reduction import Reduce
from bnnsgraph.ops.slicing import Slice, Span
from bnnsgraph.ops.sorting import Ordering
from bnnsgraph.ops.trigonometry import Tanh
from bnnsgraph.passes.editing import Rewrites
from bnnsgraph.passes.plans import resized
from bnnsgraph.passes.regions import Part
from bnnsgraph.passes.rewriting import rewritten
from bnnsgraph.passes.rowwise import RULES, axes_of
from bnnsgraph.spec import as_shape
from bnnsgraph.walking import checks, walk
from tests.op_table import Input, OpCase, rows

FAST: dict[str, str | bool] = {"xla_backend_optimization_level": "0"}
"""Compiled in little time; the answers are the same."""

ROUNDED = (MatMul, Reduce, Standardize, Exponential, ScaledDotProductAttention, Tanh, GELU)
"""What XLA may round in another way elsewhere: sums, whose order follows the shapes, and functions that it approximates."""

# The table: a selection made before an operation gives what it gives after


def recorded(row: OpCase) -> tuple[Graph, list[np.ndarray]]:
    """The first input set of a row, in one dtype."""
    dtype = bg.Float32 if bg.Float32 in row.dtypes else row.dtypes[-1]
    rng = np.random.default_rng(len(row.name))
    arrays = [operand.array(rng, dtype) for operand in row.inputs[0]]
    builder = bg.Builder()
    tensors = [builder.argument(f"x{index}", as_dtype(array.dtype), array.shape) for index, array in enumerate(arrays)]
    return builder.finish(row.build(*tensors)), arrays


def passed(node: Node) -> Iterator[tuple[int, tuple[int | None, ...]]]:
    """The axes through which a selection may pass a node, and where it goes."""
    for axis, size in enumerate(node.outputs[0].shape):
        axes = axes_of(node, axis) if isinstance(size, int) and size > 1 else None
        if axes is not None:
            yield axis, axes


def by_rule() -> dict[type, OpCase]:
    """A row for each line of the table."""
    more = [
        OpCase("reshape, an axis stays", lambda x: x.reshape([3, 2, 2]), np.array, [(Input((3, 4)),)]),
        OpCase("l2_norm, rank 4", lambda x: x.l2_norm(epsilon=0.5), np.array, [(Input((3, 1, 2, 2)),)]),
    ]
    found: dict[type, OpCase] = {}
    for row in [*rows(), *more]:
        for node in recorded(row)[0].nodes:
            if any(passed(node)):
                kind = next(kind for kind in type(node.op).__mro__ if kind in RULES)
                found.setdefault(kind, row)
    return found


Pair = tuple[Any, Any]


def pairs(row: OpCase, most: int) -> tuple[list[str], list[np.ndarray], Callable[..., list[Pair]]]:
    """What is selected, the row's arrays, and a function of them: selected before operations, and after."""
    graph, arrays = recorded(row)
    cases = [(node, axis, axes) for node in graph.nodes for axis, axes in passed(node)][-most:]
    names = [f"{row.name}: {node.op}, axis {axis}" for node, axis, _ in cases for _ in node.outputs]

    def both(*arrays: Any) -> list[Pair]:
        values: dict[Node, tuple[Any, ...]] = dict(zip([value.node for value in graph.arguments], zip(arrays), strict=True))
        walk(graph, arrays, {}, checked=False, visit=lambda node, found: values.setdefault(node, found))
        found: list[Pair] = []
        for node, axis, axes in cases:
            operands = [values[value.node][value.index] for value in node.inputs]
            places = np.array([node.outputs[0].shape[axis] - 1, 0])
            op = resized(node, ((axis, Part(Span(0, 2, 1), 2, node)),))
            some = op.lower(*(x if own is None else jnp.take(x, places, own) for x, own in zip(operands, axes, strict=True)))
            whole = [jnp.take(part, places, axis) for part in values[node]]
            found += zip(some if len(whole) > 1 else [some], whole, strict=True)
        return found

    return names, arrays, both


def check_rows(chosen: Sequence[OpCase], most: int) -> None:
    """All in one program, so that it is compiled once; of each row at most so many cases."""
    found = [pairs(row, most) for row in chosen]
    inputs = [arrays for _, arrays, _ in found]

    def run(inputs: Any) -> list[list[Pair]]:
        return [both(*arrays) for (_, _, both), arrays in zip(found, inputs, strict=True)]

    with jax.enable_x64(True):
        answers = jax.jit(run).lower(inputs).compile(FAST)(inputs)
    for (names, _, _), both in zip(found, answers, strict=True):
        for name, (got, wanted) in zip(names, both, strict=True):
            assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape), name
            np.testing.assert_allclose(np.float64(got), np.float64(wanted), rtol=1e-5, atol=1e-5, err_msg=name)  # sums round


def test_selections_pass_where_the_table_says() -> None:
    found = by_rule()
    assert sorted(kind.__name__ for kind in RULES.keys() - found.keys()) == []
    check_rows(list(found.values()), 1)


@pytest.mark.long
@pytest.mark.parametrize("row", rows(), ids=lambda row: row.name)
def test_selections_pass_in_every_row(row: OpCase) -> None:
    check_rows([row], 999)


# Programs: compared to the bit, and to the rounding of floats where that may differ


def record(block: Callable[[bg.Builder], Any], options: bg.CompileOptions | None = None) -> Graph:
    builder = bg.Builder(options)
    return builder.finish(block(builder))


def compare(block: Callable[[bg.Builder], Any], *arrays: Any, options: bg.CompileOptions | None = None) -> Rewrites:
    """Run a program as it is recorded and as it is rewritten, with checks and without; what was changed."""
    graph = record(block, options)
    shapes = [np.shape(array) for array in arrays]
    found = {checked: rewritten(graph, shapes, checked=checked) for checked in (False, True)}
    for checked, (changed, _) in found.items():
        assert rewritten(changed, shapes, checked=checked) == (changed, ()), "more is to be done"
    assert [(node.op, node.origin) for node in checks(found[True][0])] == [(node.op, node.origin) for node in checks(graph)]

    largest: list[Any] = [1]

    def seen(node: Node, values: tuple[Any, ...]) -> None:
        largest[:] = [*largest, *(jnp.max(jnp.abs(value)) for value in values if value.size and value.dtype == np.float32)]

    def run(*arrays: Any) -> tuple[list[Pair], Any]:
        pairs = [
            (walk(graph, arrays, {}, checked=checked, visit=seen), walk(changed, arrays, {}, checked=checked))
            for checked, (changed, _) in found.items()
        ]
        return pairs, jnp.nanmax(jnp.stack(largest))

    with x64(graph):
        answers, magnitude = jax.jit(run).lower(*arrays).compile(FAST)(*arrays)
    rounded = any(isinstance(node.op, ROUNDED) for node in graph.nodes)
    for wanted, got in answers:
        assert wanted.failure == got.failure
        if wanted.failure:
            continue
        for one, two in zip(wanted.results + wanted.updates, got.results + got.updates, strict=True):
            assert (one.dtype, one.shape) == (two.dtype, two.shape)
            if rounded and jnp.issubdtype(one.dtype, jnp.floating):
                # Terms are summed in another order: each is off by units in the last place of the largest, at most one a term
                np.testing.assert_allclose(two, one, rtol=0, atol=64 * 2.0**-23 * magnitude)
            else:
                np.testing.assert_array_equal(one, two)
    return found[True][1]


def steps(records: Rewrites) -> list[list[str]]:
    """What each selection was moved ahead of."""
    return [[name for name, _ in each.through] for each in records]


RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 6)).astype(np.float32)
N = RNG.integers(-9, 9, (12, 6)).astype(np.int32)
W = RNG.integers(-9, 9, (6, 8)).astype(np.int32)


def ints(*values: Any) -> np.ndarray:
    return np.array(values, np.int32)


def floats(b: bg.Builder) -> Any:
    return b.argument("x", bg.Float32, [12, 6])


def numbers(b: bg.Builder) -> Any:
    return b.argument("x", bg.Int32, [12, 6])


def indices(b: bg.Builder, shape: Sequence[int] = (3,)) -> Any:
    return b.argument("i", bg.Int32, shape)


def chosen(b: bg.Builder, y: Any) -> Any:
    return y.gather(indices(b), axis=0)


def test_rows_after_a_perceptron() -> None:
    def block(b: bg.Builder) -> Any:
        return chosen(b, (floats(b) @ np.float32(W)).gelu() @ np.float32(W.T))

    records = compare(block, X, ints(3, -1, 0))
    assert steps(records) == [["MatMul", "GELU", "MatMul"]]
    assert records[0].saved == 9 * (8 + 8 + 6)
    assert repr(records).startswith("test_passes.py:")
    assert ": Gather(axis=0) moved ahead of MatMul, GELU, MatMul (test_passes.py:" in repr(records)
    assert repr(records).endswith("); 198 elements fewer to compute")


@pytest.mark.parametrize(
    ("places", "mode"),
    [
        (ints([3, -1], [11, 5]), "raise"),
        (ints(12, -13), "clip"),
        (ints([12, -13], [3, -1]), bg.fill(7)),
        (ints(99)[0], "raise"),
    ],
)
def test_indices_of_any_rank_and_mode(places: np.ndarray, mode: Any) -> None:
    def block(b: bg.Builder) -> Any:
        return (numbers(b) @ W).gather(indices(b, places.shape), axis=0, out_of_bounds=mode)

    assert steps(compare(block, N, places)) == [["MatMul"]]


def test_out_of_bounds_is_the_same_error_and_the_same_fill() -> None:
    def block(b: bg.Builder) -> Any:
        first = numbers(b).gather(indices(b, [9]), axis=0)
        return (first @ W).gather(b.argument("j", bg.Int32, [2]), axis=0)

    plain = Context(record(block, bg.CompileOptions(optimize_graph=False)))
    context = Context(record(block))
    assert steps(plain.rewrites) == []
    assert steps(context.rewrites) == [["MatMul", "Gather"]]
    right, wrong = ints(3, -1, 0, 1, 2, 3, 4, 5, 6), ints(3, -1, 0, 99, 2, 3, 4, 5, 6)
    for i, j in ((right, ints(0, 9)), (wrong, ints(0, 9)), (wrong, ints(0, 2)), (right, ints(0, -1))):
        messages: list[str] = []
        answers: list[Any] = []
        for each in (plain, context):
            try:
                answers.append(each(N, i, j))
            except bg.IndexOutOfBoundsError as error:
                messages.append(str(error).partition("  at test_passes.py")[0])
        assert len(messages) + len(answers) == 2
        assert messages[:1] == messages[1:]
        np.testing.assert_array_equal(*(answers or [0, 0]))
        np.testing.assert_array_equal(plain.function(N, i, j), context.function(N, i, j))


def logits(b: bg.Builder) -> Any:
    """What a language model does after its embedding, with one layer."""
    x = b.argument("x", bg.Float32, ["batch", "length", 6])
    h = x.layer_norm(axes=[2], weight=np.ones(6), bias=np.zeros(6))
    q = h.reshape(to=["batch", "length", 2, 3]).transpose(axes=[0, 2, 1, 3])
    a = q.scaled_dot_product_attention(q, q, causal=True)
    h = h + a.transpose(axes=[0, 2, 1, 3]).reshape(to=["batch", "length", 6]).softmax(2)
    return h @ np.float32(W)


def test_the_last_token_with_named_sizes() -> None:
    x = RNG.normal(size=(2, 9, 6)).astype(np.float32)
    moved = ["MatMul", "Add", "Softmax", "Reshape", "Transpose", "ScaledDotProductAttention"]
    assert steps(compare(lambda b: logits(b)[:, -1], x)) == [moved]
    shapes = [as_shape(["batch", "length", 6])]  # as when it is exported
    symbolic, found = rewritten(record(lambda b: logits(b)[:, -1]), shapes, checked=False)
    assert steps(found) == [moved[:-1]]
    assert found[0].saved is None
    assert str(symbolic.results[0].spec) == "float32[batch, 8]"


def test_one_token_of_each_sequence() -> None:
    """Indices with a batch axis."""

    def block(b: bg.Builder) -> Any:
        x = b.argument("x", bg.Int32, [2, 9, 6])
        y = x @ W + b.argument("y", bg.Int32, [2, 9, 1])
        return y.gather(indices(b, [2, 1]), axis=1, batch_dimension_count=1)

    x = RNG.integers(-9, 9, (2, 9, 6)).astype(np.int32)
    assert steps(compare(block, x, x[:, :, :1], ints([3], [-1]))) == [["Add", "MatMul"]]


@pytest.mark.parametrize("mode", ["raise", bg.fill(7)])
def test_index_vectors_choose_on_several_axes(mode: Any) -> None:
    """Also more of them than an axis has positions, the same twice, after a gather, with a batch axis, and outside."""
    x = RNG.integers(-9, 9, (3, 4, 6)).astype(np.int32)
    rows = RNG.integers(0, 3, (3, 4)).astype(np.int32)

    def block(b: bg.Builder) -> Any:
        y = abs(b.argument("x", bg.Int32, x.shape) @ W)
        one = (y * b.argument("z", bg.Int32, [8])).gather_nd(indices(b, [5, 2]), out_of_bounds=mode)[1:]
        own = b.argument("j", bg.Int32, [3, 2, 1])
        two = (b.argument("y", bg.Int32, x.shape) @ W).gather_nd(own, batch_dimension_count=1, out_of_bounds=mode)
        table = b.argument("t", bg.Int32, [3, 6]).gather(rows, axis=0) @ W
        return one, two, table.gather_nd(own.reshape(to=[3, 2]), out_of_bounds=mode)

    arrays = [x, np.arange(8, dtype=np.int32), ints([0, 1], [2, -1], [2, -1], [1, 3], [-3, 0])]
    inside, outside = ints([[0], [1]], [[2], [2]], [[-2], [1]]), ints([[0], [1]], [[2], [4]], [[-5], [1]])
    for own in (inside, outside):
        moved = steps(compare(block, *arrays, own, x, x[0, :3]))
        step = ["Multiply", "Abs", "MatMul"]
        assert moved == [step, ["GatherND"], ["MatMul"], ["MatMul", "Gather"]]


@pytest.mark.parametrize("mode", ["raise", bg.fill(7)])
def test_elements_by_indices_that_repeat_are_rows(mode: Any) -> None:
    """What other libraries write to select rows: indices spread over the axes of the rows."""
    x = RNG.integers(-9, 9, (3, 4, 6)).astype(np.int32)

    def block(b: bg.Builder) -> Any:
        y = b.argument("x", bg.Int32, x.shape) @ W
        last = indices(b, [3]).reshape(to=[3, 1, 1]).broadcast_to([3, 1, 8])
        same = b.argument("j", bg.Int32, [2, 1]).broadcast_to([3, 2, 8])
        z = b.argument("z", bg.Int32, x.shape) @ W
        return y.gather_along_axis(last, axis=1, out_of_bounds=mode), z.gather_along_axis(same, axis=1, out_of_bounds=mode)

    for i, j in ((ints(1, -1, 3), ints([2], [0])), (ints(1, 4, -5), ints([2], [9]))):
        records = compare(block, x, i, j, x)
        assert [(record.what, *record.through[0][:1]) for record in records] == [
            ("GatherAlongAxis(axis=1) moved ahead of", "MatMul")
        ] * 2


def test_what_stays_behind() -> None:
    """Selections that would cost more, or mean something else, when they are made earlier."""

    def another_reader(b: bg.Builder) -> Any:
        y = numbers(b) @ W
        return chosen(b, y), y.sum([0])

    def in_out(b: bg.Builder) -> Any:
        state = b.argument("state", bg.Int32, [12, 8], intent=bg.Intent.INPUT_OUTPUT)
        state[:] = numbers(b) @ W
        return chosen(b, state)

    blocks: list[Callable[[bg.Builder], Any]] = [
        another_reader,
        in_out,
        lambda b: chosen(b, floats(b).softmax(0)),
        lambda b: chosen(b, numbers(b).cumulative_sum(0)),
        lambda b: chosen(b, numbers(b).sort(0)),
        lambda b: chosen(b, numbers(b)[::-1]),
        lambda b: (numbers(b) @ W).gather(indices(b, [12]), axis=0),
        lambda b: (numbers(b) @ W).gather(indices(b, [0]), axis=0),
        lambda b: (b.argument("x", bg.Int32, [0, 6]) @ W).gather(indices(b), axis=0, out_of_bounds=bg.fill(1)),
        lambda b: (numbers(b) @ W)[12:],
        lambda b: chosen(b, numbers(b) + b.argument("y", bg.Int32, [12, 6])),  # which XLA does by fusion
        lambda b: chosen(b, numbers(b).reshape(to=[6, 12])),
        lambda b: indices(b).one_hot(12).cast(to=bg.Float32) @ floats(b),
        lambda b: indices(b).one_hot(2).cast(to=bg.Float32) @ np.array([[1.0], [-0.0]], np.float32),
    ]
    for block in blocks:
        graph = record(block)
        for checked in (False, True):
            found, records = rewritten(graph, [value.spec.shape for value in graph.arguments], checked=checked)
            assert (found is graph, records) == (True, ()), str(graph)
    graph = record(lambda b: chosen(b, numbers(b) @ W), bg.CompileOptions(optimize_graph=False))
    assert rewritten(graph, [(12, 6), (3,)], checked=True) == (graph, ())


def test_a_check_of_what_is_thrown_away_is_still_made() -> None:
    def block(b: bg.Builder) -> Any:
        rows = numbers(b).gather(indices(b), axis=0)
        return b.concatenate([numbers_of(b, "y"), rows], axis=0)[2:5] * 2

    def numbers_of(b: bg.Builder, name: str) -> Any:
        return b.argument(name, bg.Int32, [12, 6])

    for i in (ints(0, 1, 2), ints(0, 99, 2)):
        assert ["Concatenate"] in steps(compare(block, N, i, N))


def test_parts_of_joined_tensors() -> None:
    def block(b: bg.Builder) -> Any:
        x = numbers(b)
        y = b.concatenate([x * 2, x + 1, x - 1], axis=0)
        return y[25:34:3], b.concatenate([x @ W, x @ (W + 1)], axis=1)[::5, 7:9]

    records = compare(block, N)
    assert sorted(steps(records)) == [["Concatenate", "MatMul", "MatMul"], ["Concatenate", "Subtract"]]


def test_constant_indices_that_count_are_slices() -> None:
    for places, text in (
        ([2, 3, 4], "Slice[2:5, :]"),
        ([11, 8, 5], "Slice[11:4:-3, :]"),
        ([2, 1, 0], "Slice[2::-1, :]"),
        ([-1], "Slice[11:12, :]"),
        (-1, "Slice[11, :]"),
    ):
        records = compare(lambda b, places=places: numbers(b).gather(places, axis=0), N)
        assert [record.what for record in records] == [f"Gather(axis=0) made {text}"]
    graph = record(lambda b: numbers(b).gather([0, 2, 3], axis=0))
    assert rewritten(graph, [(12, 6)], checked=True) == (graph, ())


def test_gathers_and_slices_of_each_other_are_one() -> None:
    def block(b: bg.Builder) -> Any:
        x = numbers(b)
        one = x.gather([0, 2, 3, 7, 8, 11], axis=0).gather([5, 4], axis=0)
        two = x[1:][::2][1:3, 2]
        return one, two, x.gather([9, 1, 2], axis=0).gather(indices(b, [1]), axis=0)

    graph = rewritten(record(block), [(12, 6), (1,)], checked=False)[0]
    compare(block, N, ints(-1))
    slices = [str(node.op) for node in graph.nodes if isinstance(node.op, Slice)]
    assert slices == ["Slice[11:7:-3, :]", "Slice[3:6:2, 2:3]", "Slice[:, 0]"]
    gathers = [str(node.outputs[0]) for node in graph.nodes if isinstance(node.op, Gather)]
    assert sorted(gathers) == ["bool[1]", "int32[1, 6]", "int32[1]"]  # whether the index exists; the row; which row


def test_one_hot_products_are_gathers() -> None:
    table = RNG.integers(-9, 9, (48, 8)).astype(np.int32)

    def block(b: bg.Builder) -> Any:
        hot = indices(b).one_hot(48)
        one = b.constant(values=np.float32(1))
        return (
            hot.cast(to=bg.Int32) @ table,
            hot.select(one, 0) @ np.float32(table),
            (hot.cast(to=bg.Float32) @ np.float32(table)).relu(),
        )

    records = compare(block, ints(2, -1, 47))
    assert [record.what for record in records] == ["MatMul() with a one-hot tensor made Gather(axis=0)"] * 3


def test_rows_by_score() -> None:
    def block(b: bg.Builder) -> Any:
        x = numbers(b)
        best = x.sum([1]).top_k(2, axis=0)
        return (x @ W).gather(best.indices, axis=0), best.values

    assert steps(compare(block, N)) == [["MatMul"]]


@pytest.mark.parametrize("missing", [0.0, pytest.param(np.nan, marks=pytest.mark.long)])
def test_the_first_in_order_are_the_best(missing: float) -> None:
    """Among equal numbers, zeros of both signs and NaN, the same come first."""
    x = np.array([[3, -0.0, 0, 1, 3, 0, -1, -0.0], [1, 1, -2, 0, -0.0, 5, missing, missing]], np.float32)
    orders = bg.SortOrder.ASCENDING, bg.SortOrder.DESCENDING

    def block(b: bg.Builder) -> Any:
        y = b.argument("x", bg.Float32, x.shape)
        best = y.top_k(5, axis=1)
        first = [each[:, :3] for order in orders for each in (y.sort(1, order), y.arg_sort(1, order))]
        signs = [1 / each for each in first[::2]]
        return *first, *signs, best.values[:, :2], best.indices[1:, :2], y.sort(1)[:, :5], y.sort(1)[:, 1:3], y[0].sort(0)[:4]

    graph = record(block)
    compare(block, x)
    ordered = [str(node.op) for node in rewritten(graph, [x.shape], checked=True)[0].nodes if isinstance(node.op, Ordering)]
    smallest, largest = "TopK(axis=1, k=3, find_largest=False)", "TopK(axis=1, k=3)"
    more = ["TopK(axis=1, k=2)", "Sort(axis=1)", "Sort(axis=1)", "TopK(axis=0, k=4, find_largest=False)"]
    assert sorted(ordered) == sorted([smallest, smallest, largest, largest, *more])


def test_both_axes_of_a_product() -> None:
    def block(b: bg.Builder) -> Any:
        y = numbers(b).transpose(axes=[1, 0]).unsqueeze(axis=0).transpose(axes=[0, 2, 1]).squeeze(axis=0) @ np.tile(W, 4)
        return y[3:5, -2:]

    assert steps(compare(block, N)) == [["MatMul", "Squeeze", "Transpose", "Unsqueeze", "Transpose"]]


def test_gradients_are_those_of_the_recorded_graph() -> None:
    def block(b: bg.Builder) -> Any:
        return chosen(b, (floats(b) @ np.float32(W)).tanh())

    plain = Context(record(block, bg.CompileOptions(optimize_graph=False)), compile_now=False)
    context = Context(record(block), compile_now=False)
    i = ints(3, 12, 3)  # the second does not exist
    wanted, got = (jax.jit(jax.grad(lambda x, each=each: jnp.nansum(each.function(x, i))))(X / 8) for each in (plain, context))
    assert steps(context.rewrites) == [["Tanh", "MatMul"]]
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-5)


def test_a_long_chain() -> None:
    def block(b: bg.Builder) -> Any:
        y = numbers(b)
        for _ in range(3000):
            y = y + 1
        return y[-1]

    graph, records = rewritten(record(block), [(12, 6)], checked=True)
    assert len(records[0].through) == 3000
    assert str(graph.nodes[-2].outputs[0]) == "int32[1, 6]"
