"""The names of values: variables where the source shows them, operations and numbers elsewhere."""

from __future__ import annotations

import types
from typing import Any

import numpy as np

import bnnsgraph as bg
from bnnsgraph.graph import Op
from bnnsgraph.naming import _SPELLED, _records, value_names
from bnnsgraph.openvino import MergeLeadingAxes
from bnnsgraph.ops.slicing import Slice
from tests.test_layers import operations


def names(block: Any) -> list[str]:
    """Names of everything but numbers entered as constants."""
    builder = bg.Builder()
    found = value_names(builder.finish(block(builder)))
    assert len(set(found.values())) == len(found)
    return [name for name in found.values() if not name.startswith("constant_")]


def test_variables_attributes_and_given_names() -> None:
    def block(b: bg.Builder) -> Any:
        layer = types.SimpleNamespace()
        x = b.argument("x", bg.Float32, [2, 3])
        weight = b.constant("the weight", values=np.ones((3, 4), np.float32))
        bias = b.constant(values=np.ones(4, np.float32))
        layer.hidden = (x @ weight + bias).relu()
        scaled: Any = 2 * layer.hidden
        squared = scaled.pow(2).named("kept")
        mean = squared.mean([1])
        return {"result": mean, "also": mean.sum(None)}

    assert names(block) == [
        "x", "the_weight", "bias", "mat_mul_3", "add_4", "hidden", "scaled", "squared", "result", "also",
    ]  # fmt: skip


def test_an_unnamed_output_is_its_variable() -> None:
    def block(b: bg.Builder) -> Any:
        x = b.argument("x", bg.Float32, [3])
        total = x.sum(None)
        return total, x.tanh(), total, x

    assert names(block) == ["x", "total", "output_1"]


def test_the_outermost_operation_takes_the_name_every_time_a_line_runs() -> None:
    def block(b: bg.Builder) -> Any:
        x = b.argument("x", bg.Float32, [3, 3])
        for weight in [np.eye(3, dtype=np.float32)] * 3:
            x = (x @ weight).relu()
        y = x + x + x
        y += x * 2
        y -= 1
        return y

    assert names(block) == [
        "x", "mat_mul_2", "x_2", "mat_mul_5", "x_3", "mat_mul_8", "x_4", "add_10", "y", "multiply_13", "y_2", "y_3",
    ]  # fmt: skip


def test_statements_over_several_lines() -> None:
    def block(b: bg.Builder) -> Any:
        x = b.argument("x", bg.Float32, [2, 3])
        y = (
            x.exp()
            .log(
                epsilon=1e-6,
            )
            .mean([1])
        )
        z = bg.Tensor.max(
            y,
            x.sum(
                [1],
            ),
        )
        return z.abs()

    assert names(block) == ["x", "exp_1", "log_2", "y", "reduce_sum_4", "z", "output_0"]


def test_several_results_and_targets() -> None:
    def block(b: bg.Builder) -> Any:
        x = b.argument("x", bg.Float32, [4])
        values, _ = x.top_k(2, 0)
        best = x.top_k(3, 0)
        low, high = x.min(0), x.max(0)
        left, right = high.split(2, axis=0)
        return values, best.values, low, left + right, x.top_k(1, 0).indices

    assert names(block) == [
        "x", "values", "top_k_1_1", "best_0", "best_1", "low", "high", "left", "right", "output_3", "top_k_9_0", "output_4",
    ]  # fmt: skip


def test_parts_and_their_assignment() -> None:
    def block(b: bg.Builder) -> Any:
        x = b.argument("x", bg.Float32, [4])
        last = x[-1]
        rows = x[[0, 1]]
        x[0] = last * 2
        changed = x.update[1:3](rows)
        mask = changed > 0
        inverse = ~mask
        return inverse.select(changed, 0)

    assert names(block) == ["x", "last", "rows", "multiply_5", "x_2", "changed", "mask", "inverse", "output_0"]


def test_what_is_not_the_result_of_the_operation_written_keeps_its_number() -> None:
    def linear(x: Any) -> Any:
        return x.tanh()

    def block(b: bg.Builder) -> Any:
        x = b.argument("x", bg.Float32, [4])
        y = linear(x * 2)
        several = [x.abs(), y.exp()]
        a = x.sin(); c = x.sin()  # noqa: E702  # fmt: skip
        return several[0] + several[1] + a + c

    assert names(block)[1:4] == ["multiply_2", "tanh_3", "abs_4"]
    assert "a" not in names(block)


def test_operations_of_one_kind_on_both_sides_of_a_comma() -> None:
    def block(b: bg.Builder) -> Any:
        x = b.argument("x", bg.Float32, [4])
        scale, shift = b.constant(values=np.ones(4, np.float32)), b.constant(values=np.zeros(4, np.float32))
        for _ in range(2):
            small, (large, _), wave = (x + scale).exp().exp(), x.top_k(4, 0), x.exp().sin()
            x = small + large + wave + shift
            _dead, x = x.abs(), x.abs()
        return x.sum(None), x

    first = ["x", "scale", "shift", "add_3", "exp_4", "small", "large", "top_k_6_1", "exp_7", "wave", "add_9", "add_10", "x_2"]
    found = names(block)
    assert found[: len(first)] == first
    assert [name for name in found if name[-2:] == "_2"] == ["x_2", "small_2", "large_2", "wave_2"]
    assert "_dead" not in found  # its lines recorded twice what the graph needs once


def test_a_graph_without_source() -> None:
    space: dict[str, Any] = {"bg": bg}
    exec("def block(b):\n    x = b.argument('x', bg.Float32, [2])\n    y = x.gelu()\n    return y * y", space)
    assert names(space["block"]) == ["x", "gelu_1", "output_0"]


def test_names_that_are_taken() -> None:
    def block(b: bg.Builder) -> Any:
        x = b.argument("x", bg.Float32, [2])
        add_3 = x.exp()
        y = add_3.abs()
        y = y + y
        return {"y": y, "output_7": x.tan()}

    assert names(block) == ["x", "add_3", "y_2", "y", "output_7"]


def test_every_operation_is_known_by_how_it_is_written() -> None:
    """Each follows from the name of a method of tensors or builders, or from an operator.

    A slice is a subscript, and one operation is only ever a part of another.
    """
    methods = [name.replace("_", "") for owner in (bg.Tensor, bg.Builder) for name in dir(owner) if not name.startswith("_")]
    kinds = {_SPELLED.get(method, method) for method in methods} | set(_SPELLED.values())
    written: dict[type[Op], list[str]] = {}
    for operation in operations():
        if "lower" in vars(operation) and not operation.__subclasses__():
            node: Any = types.SimpleNamespace(op=object.__new__(operation))
            written[operation] = [kind for kind in kinds if _records(kind, node)]
    assert {operation for operation, found in written.items() if len(found) != 1} == {Slice, MergeLeadingAxes}
