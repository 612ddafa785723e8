"""Long programs are compiled in pieces, and say what they say in one."""

from __future__ import annotations

import numpy as np
import pytest

import bnnsgraph as bg
from bnnsgraph.pieces import DEEPEST, pieces


def calls(context: bg.Context, **sizes: int) -> int:
    """How many pieces the program has that XLA compiles by themselves."""
    return context.stablehlo(**sizes).count('inlineable = "false"')


def chain(x: bg.Tensor, length: int) -> bg.Tensor:
    for step in range(length):
        x = x * 0.5 + 1 if step % 2 else x.tanh() - 0.25
    return x


@pytest.mark.parametrize(("length", "wanted"), [(1, 0), (DEEPEST, 0), (DEEPEST + 1, 2), (2 * DEEPEST, 2), (2 * DEEPEST + 1, 3)])
def test_a_chain_is_cut_where_it_gets_too_deep(length: int, wanted: int) -> None:
    def block(b: bg.Builder) -> bg.Tensor:
        y = x = b.argument("x", bg.Float32, [3])
        for _ in range(length):
            y = y + x
        return y

    x = np.array([1, 2, 3], np.float32)
    context = bg.make_context(block)
    assert np.array_equal(context(x), x * (length + 1))
    assert calls(context) == wanted


def test_products_begin_anew() -> None:
    """What stands between two products is a program of its own for XLA, so that a model of many layers stays whole."""

    def block(b: bg.Builder) -> bg.Tensor:
        x = b.argument("x", bg.Float32, [2, 3])
        for _ in range(DEEPEST):
            x = (x @ np.eye(3, dtype=np.float32)).tanh()
        return x

    assert calls(bg.make_context(block)) == 0


def test_values_used_pieces_later_and_several_results() -> None:
    def block(b: bg.Builder) -> dict[str, bg.Tensor]:
        x = b.argument("x", bg.Float32, [4, 3])
        scale = b.constant(values=np.array([1, 2, 3], np.float32))
        early = chain(x, 30)
        values, positions = early.top_k(k=2, axis=1)
        late = chain(early * scale, 100)
        return {
            "sum": late + early * scale,
            "early": early,
            "positions": positions,
            "values": chain(values, 120),
            "constant": scale,
            "shape": late.reshape(to=early.tensor_shape()) + x,
            "argument": x,
        }

    context = bg.make_context(block)
    assert calls(context) > 3
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    for got, wanted in zip(context(x), context.function(x), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-6)


def test_a_check_in_a_later_piece_names_its_line() -> None:
    def block(b: bg.Builder) -> bg.Tensor:
        x, i = b.argument("x", bg.Float32, [6]), b.argument("i", bg.Int32, [2])
        first = chain(x, 80).gather(i, axis=0)
        second = chain(first, 80)
        return second.gather(i - 2, axis=0)  # the second

    context = bg.make_context(block, options=bg.CompileOptions(optimize_graph=False))
    assert calls(context) > 2
    x = np.linspace(-1, 1, 6, dtype=np.float32)
    assert np.array_equal(context(x, np.array([2, 3], np.int32)), context.function(x, np.array([2, 3], np.int32)))
    with pytest.raises(bg.IndexOutOfBoundsError, match=r"\[-2, 2\) on axis 0, got 2 at position \[1\](.|\n)*# the second"):
        context(x, np.array([2, 4], np.int32))
    with pytest.raises(bg.IndexOutOfBoundsError, match=r"\[-6, 6\) on axis 0, got 6 at position \[0\]"):
        context(x, np.array([6, 4], np.int32))


def test_state_sizes_and_64_bits() -> None:
    def block(b: bg.Builder) -> bg.Tensor:
        total = b.argument("total", bg.Int64, intent=bg.Intent.INPUT_OUTPUT)
        x = b.argument("x", bg.Int64, ["n"])
        y = x
        for _ in range(130):
            y = y + x
        total[...] = total + y.sum([0])
        return y

    context = bg.make_context(block)
    for n in (2, 5):
        result, total = context(np.int64(2**40), np.arange(n) + 2**33)
        assert np.array_equal(result, (np.arange(n) + 2**33) * 131)
        assert total.item() == 2**40 + int(((np.arange(n) + 2**33) * 131).sum())
        assert calls(context, n=n) == 3


def test_nodes_are_in_one_piece_each_and_constants_where_they_are_used() -> None:
    builder = bg.Builder()
    x = builder.argument("x", bg.Float32, [3])
    graph = builder.finish(chain(x, 100) + chain(x, 10))
    given = [value.node for value in graph.arguments]
    parts = pieces(graph, given)
    placed = [node for part in parts for node in part.nodes if node.inputs]
    assert placed == [node for node in graph.nodes if node.inputs]
    for part in parts:
        seen = {*part.inputs}
        for node in part.nodes:
            assert {value.node for value in node.inputs} <= seen
            seen.add(node)
        assert set(part.outputs) <= set(part.nodes)
    outputs = {node for part in parts for node in part.outputs}
    assert {node for part in parts for node in part.inputs} <= outputs | set(given)
    assert graph.results[0].node in outputs
