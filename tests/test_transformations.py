"""Contexts as functions of JAX: the same answers in every transformation, in training and over devices; errors by checkify."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import checkify
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import bnnsgraph as bg

RNG = np.random.default_rng(3)
TABLE = RNG.normal(size=(16, 8)).astype(np.float32)
WEIGHT = RNG.normal(size=(8, 4)).astype(np.float32)
TOKENS = RNG.integers(-16, 16, (8, 5)).astype(np.int32)


def model(b: bg.Builder) -> Any:
    """A loss, and integers that must be the same to the bit wherever they are made."""
    table = b.argument("table", bg.Float32, [16, 8])
    weight = b.argument("weight", bg.Float32, [8, 4])
    tokens = b.argument("tokens", bg.Int32, ["batch", "length"])
    scores = (table.gather(tokens, axis=0) @ weight).tanh()
    hashed = tokens * 715827883 - tokens.maximum([1], keep_dimensions=True)
    return {"loss": (scores * scores).mean([1, 2]), "hashed": hashed}


CONTEXT = bg.make_context(model)


def loss(table: Any, weight: Any, tokens: Any) -> Any:
    return CONTEXT.function(table, weight, tokens).loss.sum()


def assert_same(got: Any, wanted: Any) -> None:
    """Integers to the bit; float32 sums of 40 products, in another order, within 1e-5 of numbers about 1."""
    np.testing.assert_array_equal(got.hashed, wanted.hashed)
    assert got.hashed.dtype == np.int32
    np.testing.assert_allclose(got.loss, wanted.loss, rtol=1e-5)


@pytest.fixture(scope="module")
def wanted() -> Any:
    return CONTEXT(TABLE, WEIGHT, TOKENS)


def test_jit_and_vmap_over_examples_and_over_parameters(wanted: Any) -> None:
    weights = np.stack([WEIGHT, -WEIGHT])

    def single(tokens: Any) -> Any:
        return jax.tree.map(lambda array: array[0], CONTEXT.function(TABLE, WEIGHT, tokens[None]))

    over_parameters = jax.vmap(CONTEXT.function, in_axes=(None, 0, None))
    plain, examples, both = jax.jit(
        lambda tokens: (
            CONTEXT.function(TABLE, WEIGHT, tokens),
            jax.vmap(single)(tokens),
            over_parameters(TABLE, weights, tokens),
        )
    )(TOKENS)
    assert_same(plain, wanted)
    assert_same(examples, wanted)
    assert_same(jax.tree.map(lambda array: array[0], both), wanted)
    assert_same(jax.tree.map(lambda array: array[1], both), CONTEXT(TABLE, -WEIGHT, TOKENS))


def test_gradients(wanted: Any) -> None:
    """``grad``, ``value_and_grad``, ``jit`` and ``checkpoint`` agree, and with the directional difference in float64."""

    @jax.jit
    def every(*arrays: Any) -> Any:
        value, gradients = jax.value_and_grad(loss, argnums=(0, 1))(*arrays)
        return value, gradients, jax.grad(jax.checkpoint(loss), (0, 1))(*arrays)

    value, gradients, again = every(TABLE, WEIGHT, TOKENS)
    np.testing.assert_allclose(value, wanted.loss.sum(), rtol=1e-5)
    for got, expected in zip(again, gradients, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-6)
    assert np.flatnonzero(np.abs(gradients[0]).sum(1)).tolist() == sorted({int(token) % 16 for token in TOKENS.ravel()})

    def exact(weight: np.ndarray) -> float:
        scores = TABLE[TOKENS].astype(np.float64) @ weight
        return float((np.tanh(scores) ** 2).mean((1, 2)).sum())

    direction = RNG.normal(size=WEIGHT.shape)
    slope = (exact(WEIGHT + 1e-6 * direction) - exact(WEIGHT - 1e-6 * direction)) / 2e-6
    np.testing.assert_allclose((gradients[1] * direction).sum(), slope, rtol=1e-4)


def test_a_training_step_of_another_library() -> None:
    """Gradient descent with momentum over a tree of parameters, in one jitted and donated scan: as the same steps in NumPy."""

    def line(b: bg.Builder) -> Any:
        x = b.argument("x", bg.Float32, ["n", 3])
        error = x @ b.argument("weight", bg.Float32, [3]) + b.argument("bias", bg.Float32) - b.argument("y", bg.Float32, ["n"])
        return (error * error).mean(None)

    context = bg.make_context(line)
    x = RNG.normal(size=(32, 3)).astype(np.float32)
    y = (x @ np.float32(np.array([1, -2, 0.5])) + np.float32(3)).astype(np.float32)
    start = {"weight": np.zeros(3, np.float32), "bias": np.float32(0)}

    def step(state: Any, _: Any) -> Any:
        parameters, momentum = state
        value, gradient = jax.value_and_grad(lambda p: context.function(x=x, y=y, **p))(parameters)
        momentum = jax.tree.map(lambda m, g: 0.5 * m + g, momentum, gradient)
        return (jax.tree.map(lambda p, m: p - 0.1 * m, parameters, momentum), momentum), value

    @jax.jit
    def train(parameters: Any) -> Any:
        return jax.lax.scan(step, (parameters, jax.tree.map(jnp.zeros_like, parameters)), length=60)

    (trained, _), losses = train(start)
    weight, bias, speed = np.zeros(3), 0.0, [np.zeros(3), 0.0]
    for number in range(60):
        error = x @ weight + bias - y
        np.testing.assert_allclose(losses[number], (error**2).mean(), rtol=1e-3, atol=1e-9)  # float32 against float64
        speed = [0.5 * speed[0] + 2 * (error @ x) / 32, 0.5 * speed[1] + 2 * error.mean()]
        weight, bias = weight - 0.1 * speed[0], bias - 0.1 * speed[1]
    np.testing.assert_allclose(trained["weight"], [1, -2, 0.5], atol=1e-3)
    np.testing.assert_allclose(trained["bias"], 3, atol=1e-3)


def check_functions_split_by_shard_map_and_by_placement() -> None:
    """The same answers, gradients and errors over 8 devices; run by :mod:`tests.test_sharding`."""
    mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
    wanted = CONTEXT(TABLE, WEIGHT, TOKENS)
    specs = (P(), P(), P("data"))
    total = jax.shard_map(lambda *a: jax.lax.psum(loss(*a), "data"), mesh=mesh, in_specs=specs, out_specs=P())
    checked = jax.shard_map(CONTEXT.checked_function, mesh=mesh, in_specs=specs, out_specs=P("data"), check_vma=False)
    split = jax.shard_map(CONTEXT.function, mesh=mesh, in_specs=specs, out_specs=P("data"))

    @jax.jit
    def every(*a: Any) -> Any:
        return split(*a), jax.grad(total, (0, 1))(*a), jax.grad(loss, (0, 1))(*a), checkify.checkify(checked)(*a)[0]

    sharded, slopes, expected, fine = every(TABLE, WEIGHT, TOKENS)
    assert_same(sharded, wanted)
    for got, slope in zip(slopes, expected, strict=True):
        np.testing.assert_allclose(got, slope, rtol=1e-4, atol=1e-6)

    placed = jax.device_put(TOKENS, NamedSharding(mesh, P("data")))
    result = jax.jit(CONTEXT.function)(TABLE, WEIGHT, placed)
    assert_same(result, wanted)
    assert len(result.loss.sharding.device_set) == 8

    outside = TOKENS.copy()
    outside[-1, -1] = 16
    assert fine.get() is None
    wrong = every(TABLE, WEIGHT, outside)[3].get()
    assert wrong.startswith("at mapped index 7: Gather(axis=0): an index is outside its axis, recorded at test_transformations")


# checked_function


def pick(b: bg.Builder) -> Any:
    x = b.argument("x", bg.Float32, [4])
    i = b.argument("i", bg.Int32, ["n"])
    rows = {"of": x.gather(i, axis=0)}["of"]
    return rows.sum(None), x.scatter(rows, i * 2, bg.ScatterMode.ADD, axis=0)


X = np.float32(np.arange(1, 5))


def message(found: Any) -> str:
    error, _ = found
    return (error.get() or "").removesuffix(" (`check` failed)")


def test_a_checked_function_names_the_operation_and_its_line() -> None:
    context = bg.make_context(pick)
    checked = jax.jit(checkify.checkify(context.checked_function))
    error, result = checked(X, np.array([0, -2], np.int32))
    assert error.get() is None
    assert result[0] == 4
    gather = message(checked(X, np.array([0, 4], np.int32)))
    assert gather.startswith("Gather(axis=0): an index is outside its axis, recorded at test_transformations.py:")
    assert gather.endswith('(pick):  rows = {"of": x.gather(i, axis=0)}["of"]')
    scatter = message(checked(X, np.array([0, 2], np.int32)))
    assert scatter.startswith("Scatter(")
    with pytest.raises(checkify.JaxRuntimeError, match=r"^Gather\(axis=0\): an index"):
        checked(X, np.array([-5], np.int32))[0].throw()


def test_a_checked_function_in_vmap_and_grad() -> None:
    context = bg.make_context(pick)

    def first(x: Any, i: Any) -> Any:
        return context.checked_function(x, i)[0]

    @jax.jit
    def every(x: Any, batches: Any) -> Any:
        return (
            checkify.checkify(jax.vmap(first, in_axes=(None, 0)))(x, batches),
            checkify.checkify(jax.grad(first))(x, batches[0]),
            jax.grad(lambda x, i: checkify.checkify(context.checked_function)(x=x, i=i)[1][0])(x, batches[0]),
        )

    batches = np.array([[0, -2, -2], [1, 1, 0]], np.int32)
    (error, sums), (error_of_gradient, gradient), inside = every(X, batches)
    assert (error.get(), error_of_gradient.get()) == (None, None)
    assert (sums.tolist(), gradient.tolist(), inside.tolist()) == ([7, 5], [1, 0, 2, 0], [1, 0, 2, 0])
    of_batch, of_gradient, _ = every(X, batches + np.array([[0], [9]], np.int32))
    assert message(of_batch).startswith("Gather(axis=0): an index is outside its axis, recorded at")
    assert message(of_gradient) == ""
    of_batch, of_gradient, _ = every(X, batches + np.array([[4], [0]], np.int32))
    assert message(of_batch).startswith("Gather(")
    assert message(of_gradient).startswith("Gather(")


def test_a_checked_function_without_checks_and_state() -> None:
    plain = bg.make_context(lambda b: b.argument("x", bg.Float32, ["n"]) * 2)
    assert plain.checked_function(X).tolist() == [2, 4, 6, 8]  # nothing to check, so no checkify is needed

    def counter(b: bg.Builder) -> Any:
        counts = b.argument("counts", bg.Int64, ["n"], intent=bg.Intent.INPUT_OUTPUT)
        i = b.argument("i", bg.UInt8, [2])
        counts[:] = counts.scatter([1, 1], i, bg.ScatterMode.ADD, axis=0)
        return {"highest": counts.maximum(None)}

    with jax.enable_x64(True):
        checked = jax.jit(checkify.checkify(bg.make_context(counter).checked_function))
        error, result = checked(np.array([2**40, 0, 0]), np.array([0, 2], np.uint8))
        assert (error.get(), result.highest.item(), result.counts.tolist()) == (None, 2**40 + 1, [2**40 + 1, 0, 1])
        assert message(checked(np.array([2**40, 0, 0]), np.array([0, 3], np.uint8))).startswith("Scatter(")


@pytest.mark.parametrize("use_single_thread", [False, True])
def test_a_context_that_has_run_may_be_called_in_a_transformation(use_single_thread: bool) -> None:
    """Its checks cannot raise there: it is ``function``, whether its program is compiled already or not."""
    options = bg.CompileOptions(use_single_thread=use_single_thread)
    context = bg.make_context(
        lambda b: b.argument("table", bg.Float32, [5, 2]).gather(b.argument("index", bg.Int32, [2]), axis=0), options=options
    )
    table, index = jax.numpy.arange(10, dtype=np.float32).reshape(5, 2), np.array([1, 4], np.int32)
    expected = np.asarray(context(table, index))
    np.testing.assert_array_equal(jax.jit(lambda table, index: context(table, index))(table, index), expected)
    gradient = jax.grad(lambda table: context(table, index).sum())(table)
    np.testing.assert_array_equal(gradient, [[0, 0], [1, 1], [0, 0], [0, 0], [1, 1]])
    with pytest.raises(bg.IndexOutOfBoundsError):
        context(table, index + 1)
