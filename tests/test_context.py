"""Running: Apple's argument surface, Python's, flexible sizes, state, and pure functions."""

from __future__ import annotations

import threading
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bnnsgraph as bg
from bnnsgraph.compile import LARGE


def int32(values: Any) -> np.ndarray:
    return np.array(values, np.int32)


def float32(values: Any) -> np.ndarray:
    return np.array(values, np.float32)


def product_and_mean(b: bg.Builder) -> Any:
    """Apple's first listing."""
    x = b.argument("x", bg.Float32, shape=[8])
    y = b.argument("y", bg.Float32, shape=[8])
    product = x * y
    return product, product.mean([0], keep_dimensions=True)


X = np.arange(1, 9, dtype=np.float32)
Y = X[::-1].copy()
PRODUCT = [8, 14, 18, 20, 20, 18, 14, 8]


def test_outputs_first_then_inputs() -> None:
    context = bg.make_context(product_and_mean)
    assert context.argument_names() == ["output_0", "output_1", "x", "y"]
    assert context.argument_count() == 4
    assert context.argument_position("y") == 3
    assert context.function_names == ["main"]
    assert context.function_count == 1
    product, mean = np.zeros(8, np.float32), np.zeros(1, np.float32)
    context.execute_function([product, mean, X, Y])
    assert product.tolist() == PRODUCT
    assert mean.tolist() == [15]
    context.execute_function({"x": Y, "y": Y, "output_0": product, "output_1": mean})
    assert product.tolist() == (Y * Y).tolist()


def test_allocated_tensors() -> None:
    context = bg.make_context(product_and_mean)
    arguments = [context.allocate_tensor(name) for name in context.argument_names()]
    assert arguments[2].data is not None
    arguments[2].data[:] = 2
    assert arguments[3].data is not None
    arguments[3].data[:] = 3
    context.execute_function(arguments)
    assert np.asarray(arguments[0]).tolist() == [6] * 8
    described = context.tensor("output_1")
    assert (described.shape, described.rank, described.data, described.count) == ((1,), 1, None, 1)
    assert described.data_size_in_bytes == 4
    assert repr(described) == "BNNSTensor(output_1: float32, shape: [1] | stride: [1], no memory)"


def test_by_position_and_by_name() -> None:
    context = bg.make_context(product_and_mean)
    for result in (
        context(X, Y),
        context(x=X, y=Y),
        context(X, y=Y),
        context(jnp.asarray(X), jnp.asarray(Y)),
        context(list(X), list(Y)),
    ):
        assert result.output_0.tolist() == PRODUCT
        assert result[1].tolist() == [15]
    assert isinstance(context(X, Y).output_0, jax.Array)


def test_decorator_with_options() -> None:
    @bg.make_context(options=bg.CompileOptions(out_of_bounds=bg.fill(-1)))
    def rows(b: bg.Builder) -> Any:
        return b.constant(values=[1, 2, 3]).gather(b.argument("i", bg.Int32, [-1]), axis=0)

    assert rows(int32([0, 9, -1])).tolist() == [1, -1, 3]


def test_fixed_sizes_compile_at_once_and_flexible_ones_once_each() -> None:
    fixed = bg.make_context(product_and_mean)
    assert [c.reason for c in fixed.compilations] == ["every size is known"]
    context = bg.make_context(lambda b: b.argument("x", bg.Float32, ["batch", "n"]).sum([1]))
    assert context.compilations == []
    for shape in [(2, 3), (2, 3), (4, 1), (2, 3)]:
        assert context(np.ones(shape, np.float32)).tolist() == [shape[1]] * shape[0]
    assert [c.shapes["x"] for c in context.compilations] == [(2, 3), (4, 1)]
    assert context.compilations[0].sizes == {"batch": 2, "n": 3}
    assert context.compilations[0].seconds > 0


def test_set_batch_size() -> None:
    """Apple's second listing: a flexible sum."""
    context = bg.make_context(lambda b: b.argument("x", bg.Float32, [-1]) + b.argument("y", bg.Float32, [-1]))
    assert context.tensor("x").shape == (-1,)
    context.set_batch_size(-3)
    assert context.tensor("x").shape == (-1,)
    context.set_batch_size(8)
    assert context.tensor("x").shape == context.tensor("output_0").shape == (8,)
    assert context.tensor("x", fill_known_dynamic_shapes=False).shape == (-1,)
    arguments = [context.allocate_tensor(name) for name in context.argument_names()]
    context.execute_function(arguments)
    assert [c.reason for c in context.compilations] == ["sizes were set"]


def test_set_dynamic_shapes() -> None:
    def block(b: bg.Builder) -> Any:
        x = b.argument("x", bg.Float32, ["rows", 3])
        return x.matmul(b.argument("w", bg.Float32, [3, "columns"])), x.sum([0])

    context = bg.make_context(block)
    assert context.set_dynamic_shapes([[], [], [5, 3], [3, 2]]) == [(5, 2), (3,), (5, 3), (3, 2)]
    assert context.allocate_tensor("output_0").shape == (5, 2)
    with pytest.raises(bg.UnableToSetDynamicShapesError, match=r"argument 'x' must have shape \[rows, 3\], got \[5, 4\]"):
        context.set_dynamic_shapes([[], [], [5, 4], [3, 2]])
    with pytest.raises(
        bg.UnableToSetDynamicShapesError, match=r"output 'output_1' must have shape \[3\] for these inputs, got \[4\]"
    ):
        context.set_dynamic_shapes([[], [4], [5, 3], [3, 2]])
    with pytest.raises(bg.UnableToSetDynamicShapesError, match="must be given 4 shapes"):
        context.set_dynamic_shapes([[5, 3]])
    with pytest.raises(bg.UnableToSetDynamicShapesError, match="flexible sizes must be first axes"):
        context.set_batch_size(2)


def test_a_shared_name_gives_the_size_of_an_empty_shape() -> None:
    context = bg.make_context(lambda b: b.argument("x", bg.Float32, ["n", 2]) + b.argument("y", bg.Float32, ["n", 2]))
    assert context.set_dynamic_shapes([[], [4, 2], []]) == [(4, 2), (4, 2), (4, 2)]


def test_sizes_that_contradict_the_graph() -> None:
    def block(b: bg.Builder) -> Any:
        return b.argument("x", bg.Float32, [-1]) + b.argument("y", bg.Float32, [-1])

    context = bg.make_context(block)
    with pytest.raises(bg.ShapeError) as caught:
        context(np.zeros(3, np.float32), np.zeros(4, np.float32))
    message = str(caught.value)
    assert "Add(): shapes must broadcast (trailing sizes equal, or 1), got [3] and [4]: 3 against 4" in message
    assert "recorded at test_context.py" in message
    named = bg.make_context(lambda b: b.argument("x", bg.Float32, ["n"]) + b.argument("y", bg.Float32, ["n"]))
    with pytest.raises(bg.ShapeError, match="argument 'y': size n must be 3, as in 'x', got 4 on axis 0"):
        named(np.zeros(3, np.float32), np.zeros(4, np.float32))


def test_a_declared_expression_of_names_is_checked() -> None:
    context = bg.make_context(
        lambda b: b.argument("x", bg.Float32, ["n"]).sum(None) + b.argument("y", bg.Float32, ["2*n + 1"]).sum(None)
    )
    assert context(np.ones(2, np.float32), np.ones(5, np.float32)) == 7
    with pytest.raises(bg.ShapeError, match=r"argument 'y': size 2\*n \+ 1 on axis 0 must be 5, got 4"):
        context(np.ones(2, np.float32), np.ones(4, np.float32))


def smoother(b: bg.Builder) -> Any:
    """A running average: state that lives across runs."""
    x = b.argument("x", bg.Float32, [2])
    state = b.argument("state", bg.Float32, [2], bg.Intent.INPUT_OUTPUT)
    state[...] = state * 0.5 + x
    return state * 10


def test_in_out_arguments() -> None:
    context = bg.make_context(smoother)
    output, state = context(float32([1, 2]), np.zeros(2, np.float32))
    assert (output.tolist(), state.tolist()) == ([10, 20], [1, 2])
    output, state = context(x=float32([1, 2]), state=state)
    assert state.tolist() == [1.5, 3]
    arrays = [np.zeros(2, np.float32), float32([1, 2]), float32([4, 4])]
    context.execute_function(arrays)
    assert arrays[2].tolist() == [3, 4]
    assert arrays[0].tolist() == [30, 40]


def test_a_failed_run_leaves_state_and_outputs_alone() -> None:
    def block(b: bg.Builder) -> Any:
        state = b.argument("state", bg.Float32, [3], bg.Intent.INPUT_OUTPUT)
        state[...] = state + 1
        return state.gather(b.argument("i", bg.Int32, [2]), axis=0)

    context = bg.make_context(block)
    output, state, good, bad = np.full(2, 7, np.float32), np.zeros(3, np.float32), int32([0, 2]), int32([0, 3])
    with pytest.raises(bg.IndexOutOfBoundsError, match=r"indices must be in \[-3, 3\) on axis 0, got 3 at position \[1\]"):
        context.execute_function([output, state, bad])
    assert output.tolist() == [7, 7]
    assert state.tolist() == [0, 0, 0]
    context.execute_function([output, state, good])
    assert state.tolist() == [1, 1, 1]


def test_the_pure_function() -> None:
    context = bg.make_context(lambda b: (b.argument("x", bg.Float32, ["n"]) ** 2).sum(None))
    x = jnp.array([1.0, 2.0, 3.0])
    assert context.function(x) == 14
    assert jax.grad(context.function)(x).tolist() == [2, 4, 6]
    assert jax.jit(context.function)(x) == 14
    assert jax.vmap(context.function)(jnp.stack([x, 2 * x])).tolist() == [14, 56]
    assert jax.jit(jax.value_and_grad(lambda x: context(x)))(x)[0] == 14  # a context called while tracing is its function


def test_what_a_pure_function_gives_for_missing_elements() -> None:
    for dtype, wanted in [(np.float32, np.nan), (np.int8, -128), (np.uint16, 65535), (np.bool_, False)]:
        table = np.ones(2, dtype)
        context = bg.make_context(lambda b, table=table: b.constant(values=table).gather(b.argument("i", bg.Int32, [2]), 0))
        np.testing.assert_array_equal(context.function(jnp.array([0, 5])), np.array([1, wanted], dtype))


def test_large_constants_are_parameters() -> None:
    table = np.arange(LARGE // 4, dtype=np.float32)
    context = bg.make_context(lambda b: b.constant(values=table).gather(b.argument("i", bg.Int32, [-1]), 0))
    assert context(int32([5, -1])).tolist() == [5, LARGE // 4 - 1]
    program = context._runner.placed()
    assert len(program.parameters) == 1
    text = program.compiled([(2,)]).lower(*program.parameters, jax.ShapeDtypeStruct((2,), np.int32)).as_text()  # pyright: ignore[reportFunctionMemberAccess]
    assert len(text) < 10_000


def test_threads_compile_each_size_once() -> None:
    context = bg.make_context(lambda b: b.argument("x", bg.Float32, ["n"]).sum(None))
    wrong: list[Any] = []

    def work(n: int) -> None:
        for _ in range(20):
            if context(np.ones(n, np.float32)) != n:
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(1 + number % 4,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert sorted(c.sizes["n"] for c in context.compilations) == [1, 2, 3, 4]


def test_64_bit_graphs_whatever_the_users_setting() -> None:
    context = bg.make_context(lambda b: b.argument("x", bg.Int64, [2]) * 2)
    assert not jax.config.jax_enable_x64  # pyright: ignore[reportAttributeAccessIssue]
    result = context(np.array([2**40, -1]))
    assert result.dtype == np.int64
    assert np.asarray(result).tolist() == [2**41, -2]
    with jax.enable_x64(True):
        assert np.asarray(context(np.array([2**40, -1]))).tolist() == [2**41, -2]
    assert jnp.arange(2).dtype == np.int32


def test_a_graph_without_arguments() -> None:
    context = bg.make_context(lambda b: b.constant(values=[1.0, 2.0]) + 1)
    assert context().tolist() == [2, 3]
    assert context.argument_names() == ["output_0"]


def test_a_long_chain_is_recorded_frozen_listed_and_lowered() -> None:
    def block(b: bg.Builder) -> Any:
        y = x = b.argument("x", bg.Float32, ["n"])
        for _ in range(10_000):
            y = y + x
        return y

    context = bg.make_context(block)
    assert len(context.graph.nodes) == 10_001
    assert str(context.graph).count("\n") == 10_001
    text = jax.jit(context.function).lower(jax.ShapeDtypeStruct((4,), np.float32)).as_text()
    assert text.count("stablehlo.add") == 10_000


def test_a_listing() -> None:
    def block(b: bg.Builder) -> Any:
        table = b.constant("table", values=np.zeros((5, 2), np.float32))
        return {"rows": table.gather(b.argument("i", bg.Int32, ["n"]), axis=0) * 2}

    lines = str(bg.make_context(block).graph).splitlines()
    assert [line.split() for line in lines] == [
        ["%0", "float32[5,", "2]", "Constant('table')", lines[0].split()[-1]],
        ["%1", "int32[n]", "i:", "Argument", lines[1].split()[-1]],
        ["%2", "float32[n,", "2]", "Gather(%0,", "%1,", "axis=0)", lines[2].split()[-1]],
        ["%3", "float32[]", "Constant(2.0)", lines[3].split()[-1]],
        ["%4", "float32[n,", "2]", "Multiply(%2,", "%3)", lines[4].split()[-1]],
        ["return", "float32[n,", "2]", "rows", "=", "%4"],
    ]
    assert lines[0].split()[-1].startswith("test_context.py:")


def test_representations() -> None:
    tensor = bg.Builder().argument("x", bg.Float32, [1])
    assert str(tensor) == "shape: [1] | stride: [1]"
    assert repr(tensor).startswith("x: float32[1] Argument  test_context.py:")
    flexible = bg.Builder().argument("x", bg.Float32, ["n", -1, 3])
    assert str(flexible) == "shape: [n, -1, 3] | stride: [-1, 3, 1]"
    context = bg.make_context(product_and_mean)
    assert repr(context) == (
        "Context(x: float32[8], y: float32[8] -> output_0: float32[8], output_1: float32[1]; 1 compilations)"
    )
