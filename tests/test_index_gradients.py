"""Derivatives of gathers and scatters against their definition, and transformations of a context's function against loops.

Gathers, and scatters that update, add or subtract, are linear in their arrays: the derivative in one element is the difference
that a step of one makes, exactly. Products are linear in each element alone, so the same holds for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import bnnsgraph as bg
from tests import index_definition as definition

Array = np.ndarray[Any, Any]
Block = Callable[[bg.Tensor[Any], bg.Tensor[Any]], bg.Tensor[Any]]

LINEAR = [bg.ScatterMode.UPDATE, bg.ScatterMode.ADD, bg.ScatterMode.SUBTRACT]


def weights(shape: tuple[int, ...]) -> Array:
    """Distinct small integers: a loss weighs each element of a result by its own."""
    return np.arange(1, 1 + int(np.prod(shape)), dtype=np.float64).reshape(shape)


def by_steps(function: Callable[..., Array], x: Array) -> Array:
    """The gradient of the weighted sum of ``function`` at ``x``, for a function that is linear in each element."""
    base = function(x)
    weight = weights(base.shape)
    slope = np.zeros(x.shape)
    for position in np.ndindex(x.shape):
        moved = x.copy()
        moved[position] += 1
        change = function(moved) - base
        slope[position] = (np.where(np.isnan(base), 0, change) * weight).sum()
    return slope


def gradient(context: bg.Context, argument: int, *arrays: Array) -> Array:
    """The same by JAX, in float64; elements that do not exist (NaN) are left out of the sum."""
    with jax.enable_x64(True):

        def loss(*operands: Any) -> Any:
            result = context.function(*operands)
            return jax.numpy.nansum(result * weights(result.shape))

        return np.asarray(jax.grad(loss, argnums=argument)(*[jax.numpy.asarray(array) for array in arrays]))


def flexible(array: Array) -> list[int]:
    """The shape with its first size left open: nothing is compiled that only ``context.function`` needs."""
    return [-1, *array.shape[1:]]


# Gathers


def gather_context(block: Block, x: Array, indices: Array) -> bg.Context:
    return bg.make_context(
        lambda b: block(
            b.argument("x", bg.Float64, shape=flexible(x)), b.argument("indices", indices.dtype, shape=flexible(indices))
        )
    )


GATHER_INDICES = {
    "repeated": [0, 2, 2, -1, 2],
    "outside": [1, 5, -4, 2, 3],
    "empty": [],
}
GATHER_RULES: list[Any] = ["raise", "clip", bg.fill(9.0), "unchecked"]


@pytest.mark.parametrize(
    ("name", "rule"), [(n, r) for n in GATHER_INDICES for r in GATHER_RULES if (n, r) != ("outside", "unchecked")], ids=str
)
@pytest.mark.parametrize("method", ["gather", "gather_batched", "gather_along_axis", "gather_nd", "gather_nd_batched"])
def test_gradients_of_gathers(method: str, name: str, rule: Any) -> None:
    flat = np.array(GATHER_INDICES[name], np.int32)
    x = np.arange(1.0, 7.0).reshape(3, 2)
    judge: Any = "missing" if rule == "raise" else rule
    block: Block
    match method:
        case "gather":
            indices = flat
            block = lambda t, i: t.gather(i, axis=0, out_of_bounds=rule)  # noqa: E731
            meaning = lambda v: definition.gather(v, indices, 0, 0, judge)  # noqa: E731
        case "gather_batched":
            x, indices = x.T, np.stack([flat, flat[::-1]])
            block = lambda t, i: t.gather(i, axis=1, batch_dimension_count=1, out_of_bounds=rule)  # noqa: E731
            meaning = lambda v: definition.gather(v, indices, 1, 1, judge)  # noqa: E731
        case "gather_along_axis":
            indices = np.stack([flat, flat[::-1]], axis=1)
            block = lambda t, i: t.gather_along_axis(i, axis=0, out_of_bounds=rule)  # noqa: E731
            meaning = lambda v: definition.gather_along_axis(v, indices, 0, judge)  # noqa: E731
        case "gather_nd":
            indices = np.stack([flat, flat % 2], axis=1)
            block = lambda t, i: t.gather_nd(i, out_of_bounds=rule)  # noqa: E731
            meaning = lambda v: definition.gather_nd(v, indices, 0, judge)  # noqa: E731
        case _:
            x, indices = x.T, np.stack([flat, flat[::-1]])[..., None]
            block = lambda t, i: t.gather_nd(i, batch_dimension_count=1, out_of_bounds=rule)  # noqa: E731
            meaning = lambda v: definition.gather_nd(v, indices, 1, judge)  # noqa: E731
    x = np.ascontiguousarray(x)
    found = gradient(gather_context(block, x, indices), 0, x, indices)
    np.testing.assert_array_equal(found, by_steps(meaning, x))


def test_the_gradient_of_a_gather_by_constant_indices() -> None:
    indices = np.array([0, 2, 2, 7], np.uint8)
    context = bg.make_context(lambda b: b.argument("x", bg.Float64, shape=[3]).gather(indices, axis=0, out_of_bounds="clip"))
    x = np.array([1.0, 2, 3])
    np.testing.assert_array_equal(gradient(context, 0, x), by_steps(lambda v: definition.gather(v, indices, 0, 0, "clip"), x))


# Scatters


def scatter_context(method: str, mode: bg.ScatterMode, rule: Any, arrays: tuple[Array, ...], unique: bool) -> bg.Context:
    def block(builder: bg.Builder) -> bg.Tensor[Any]:
        x, updates, indices = (
            builder.argument(name, array.dtype, shape=flexible(array))
            for name, array in zip(("x", "updates", "indices"), arrays, strict=True)
        )
        if method == "scatter":
            return x.scatter(updates, indices, mode, axis=0, out_of_bounds=rule, unique_indices=unique)
        if method == "scatter_along_axis":
            return x.scatter_along_axis(updates, indices, mode, axis=0, out_of_bounds=rule, unique_indices=unique)
        return x.scatter_nd(updates, indices, mode, out_of_bounds=rule, unique_indices=unique)

    return bg.make_context(block)


def scatter_case(method: str, flat: list[int]) -> tuple[Array, Array, Array]:
    """Data, updates and indices for a scatter into axis 0 of a 3 x 2 tensor."""
    where = np.array(flat, np.int32)
    x = np.array([[2.0, 3], [5, 7], [11, 13]])
    if method == "scatter":
        indices, shape = where, (len(flat), 2)
    elif method == "scatter_along_axis":
        indices, shape = np.stack([where, where[::-1]], axis=1), (len(flat), 2)
    else:
        indices, shape = np.stack([where, where % 2], axis=1), (len(flat),)
    return x, np.arange(17.0, 17 + np.prod(shape)).reshape(shape), indices


def meaning(method: str, mode: bg.ScatterMode, rule: Any, x: Array, updates: Array, indices: Array) -> Array:
    if method == "scatter":
        return definition.scatter(x, updates, indices, mode.name, 0, rule)
    if method == "scatter_along_axis":
        return definition.scatter_along_axis(x, updates, indices, mode.name, 0, rule)
    return definition.scatter_nd(x, updates, indices, mode.name, rule)


SCATTER_INDICES = {"repeated": [0, 2, 2, -1], "outside": [1, 5, -4, 2], "empty": []}
SCATTER_RULES: list[Any] = ["raise", "clip", "drop", "unchecked"]
METHODS = ["scatter", "scatter_along_axis", "scatter_nd"]


@pytest.mark.parametrize(
    ("name", "rule"), [(n, r) for n in SCATTER_INDICES for r in SCATTER_RULES if (n, r) != ("outside", "unchecked")]
)
@pytest.mark.parametrize("method", METHODS)
def test_gradients_of_scatters(method: str, name: str, rule: Any) -> None:
    judge = "drop" if rule == "raise" else rule
    x, updates, indices = arrays = scatter_case(method, SCATTER_INDICES[name])
    for mode in LINEAR:
        context = scatter_context(method, mode, rule, arrays, unique=False)
        np.testing.assert_array_equal(
            gradient(context, 0, *arrays), by_steps(lambda v, m=mode: meaning(method, m, judge, v, updates, indices), x)
        )
        np.testing.assert_array_equal(
            gradient(context, 1, *arrays), by_steps(lambda v, m=mode: meaning(method, m, judge, x, v, indices), updates)
        )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rule", ["raise", "clip", "drop"])
def test_gradients_of_products_with_unique_indices(method: str, rule: Any) -> None:
    x, updates, indices = arrays = scatter_case(method, [2, -3] if rule != "drop" else [2, -3, 7])
    judge = "drop" if rule == "raise" else rule
    context = scatter_context(method, bg.ScatterMode.MULTIPLY, rule, arrays, unique=True)
    np.testing.assert_array_equal(
        gradient(context, 0, *arrays),
        by_steps(lambda v: meaning(method, bg.ScatterMode.MULTIPLY, judge, v, updates, indices), x),
    )
    np.testing.assert_array_equal(
        gradient(context, 1, *arrays),
        by_steps(lambda v: meaning(method, bg.ScatterMode.MULTIPLY, judge, x, v, indices), updates),
    )


@pytest.mark.parametrize("method", METHODS)
def test_gradients_of_quotients_with_unique_indices(method: str) -> None:
    """d(x/u) is 1/u in x and -x/u**2 in u: by halves of central differences of a step of 2**-17, exact to about 1e-9."""
    arrays = scatter_case(method, [2, -3])
    context = scatter_context(method, bg.ScatterMode.DIVIDE, "raise", arrays, unique=True)
    for argument in (0, 1):
        given = arrays[argument]

        def function(v: Array, argument: int = argument) -> Array:
            moved = [*arrays]
            moved[argument] = v
            return meaning(method, bg.ScatterMode.DIVIDE, "drop", *moved)

        step, slope = 2.0**-17, np.zeros(given.shape)
        for position in np.ndindex(given.shape):
            up, down = given.copy(), given.copy()
            up[position] += step
            down[position] -= step
            difference = function(up) - function(down)
            slope[position] = (difference * weights(difference.shape)).sum() / (2 * step)
        np.testing.assert_allclose(gradient(context, argument, *arrays), slope, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("mode", [bg.ScatterMode.MULTIPLY, bg.ScatterMode.DIVIDE], ids=lambda mode: mode.name)
def test_jax_has_no_gradient_in_the_updates_of_products_of_repeated_indices(mode: bg.ScatterMode) -> None:
    arrays = scatter_case("scatter", [0, 2, 2, -1])
    context = scatter_context("scatter", mode, "raise", arrays, unique=False)
    with pytest.raises(NotImplementedError, match="unique_indices=True") as caught:
        gradient(context, 1, *arrays)
    assert any("while lowering Scatter(" in note for note in caught.value.__notes__)
    x, updates, indices = arrays  # in the data there is one
    np.testing.assert_allclose(
        gradient(context, 0, *arrays), by_steps(lambda v: meaning("scatter", mode, "drop", v, updates, indices), x), rtol=1e-12
    )


@pytest.mark.parametrize("mode", [bg.ScatterMode.MAXIMUM, bg.ScatterMode.MINIMUM], ids=lambda mode: mode.name)
@pytest.mark.parametrize("rule", ["raise", "clip", "drop"])
def test_gradients_of_extremes_go_to_the_winner(mode: bg.ScatterMode, rule: Any) -> None:
    """Away from ties an extreme is linear around each point; the step of ``by_steps`` is made small enough for that."""
    x = np.array([2.0, 64, 32])
    updates = np.array([16.0, 8, 4, 128])
    indices = np.array([0, 1, 0, 2] if rule == "raise" else [0, 1, 0, 7], np.int32)
    judge = "drop" if rule == "raise" else rule
    context = scatter_context("scatter", mode, rule, (x, updates, indices), unique=False)
    np.testing.assert_array_equal(
        gradient(context, 0, x, updates, indices),
        by_steps(lambda v: definition.scatter(v, updates, indices, mode.name, 0, judge), x),
    )
    np.testing.assert_array_equal(
        gradient(context, 1, x, updates, indices),
        by_steps(lambda v: definition.scatter(x, v, indices, mode.name, 0, judge), updates),
    )


# 16-bit floats, forward mode


@pytest.mark.parametrize("dtype", [bg.Float16, bg.BFloat16, bg.Float32], ids=lambda dtype: dtype.name)
def test_gradients_keep_the_dtype(dtype: Any) -> None:
    context = bg.make_context(
        lambda b: b.argument("x", dtype, shape=[3]).scatter(
            b.argument("u", dtype, shape=[2]), [1, 1], bg.ScatterMode.ADD, axis=0
        )
    )
    x, u = np.array([1, 2, 3], dtype.numpy), np.array([4, 5], dtype.numpy)
    for argument, expected in ((0, [1, 1, 1]), (1, [1, 1])):
        found = jax.grad(lambda *a: context.function(*a).sum(), argnums=argument)(x, u)
        assert found.dtype == dtype.numpy
        assert found.tolist() == expected


def test_forward_mode_agrees_with_reverse_mode() -> None:
    arrays = scatter_case("scatter", [0, 2, 2, -1])
    context = scatter_context("scatter", bg.ScatterMode.UPDATE, "raise", arrays, unique=False)
    with jax.enable_x64(True):
        x, updates, indices = (jax.numpy.asarray(array) for array in arrays)
        forward = jax.jacfwd(context.function, argnums=1)(x, updates, indices)
        backward = jax.jacrev(context.function, argnums=1)(x, updates, indices)
    np.testing.assert_array_equal(forward, backward)


# vmap and jit


@pytest.mark.parametrize("which", [(0, 0), (0, None), (None, 0)], ids=str)
@pytest.mark.parametrize("method", ["gather", "gather_along_axis", "gather_nd", "scatter", "scatter_nd"])
def test_vmap_is_a_loop_and_jit_changes_nothing(method: str, which: tuple[int | None, int | None]) -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    indices = np.array([[[0, 5], [-1, 1]], [[2, 2], [-9, 0]]], np.int32)  # some outside: the pure function fills

    @bg.make_context(options=bg.CompileOptions(out_of_bounds="raise"))
    def context(builder: bg.Builder) -> bg.Tensor[Any]:
        data = builder.argument("x", bg.Float32, shape=[3, 4])
        where = builder.argument("indices", bg.Int32, shape=[2, 2])
        match method:
            case "gather":
                return data.gather(where, axis=1)
            case "gather_along_axis":
                return data[:, :2].gather_along_axis(builder.concatenate([where, where[:1]], axis=0), axis=1)
            case "gather_nd":
                return data.gather_nd(where)
            case "scatter":
                ones = builder.constant(values=np.ones((3, 2, 2), np.float32))
                return data.scatter(ones, where, bg.ScatterMode.ADD, axis=1)
            case _:
                return data.scatter_nd([7.0, 8.0], where, bg.ScatterMode.UPDATE)

    given = [x if which[0] == 0 else x[0], indices if which[1] == 0 else indices[0]]
    mapped = jax.vmap(context.function, in_axes=which)(*given)
    jitted = jax.jit(jax.vmap(context.function, in_axes=which))(*given)
    looped = np.stack(
        [context.function(x[n] if which[0] == 0 else x[0], indices[n] if which[1] == 0 else indices[0]) for n in range(2)]
    )
    np.testing.assert_array_equal(mapped, looped)
    np.testing.assert_array_equal(jitted, looped)


def test_vmap_of_a_gradient_is_a_loop_of_gradients() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    indices = np.array([[0, 2, 2], [1, 1, 0]], np.int32)
    context = bg.make_context(
        lambda b: b.argument("x", bg.Float32, shape=[3]).gather(b.argument("i", bg.Int32, shape=[3]), axis=0) ** 2
    )
    slope = jax.grad(lambda *a: context.function(*a).sum())
    found = jax.jit(jax.vmap(slope))(x, indices)
    np.testing.assert_array_equal(found, np.stack([slope(x[n], indices[n]) for n in range(2)]))
    np.testing.assert_array_equal(found[0], [2 * x[0, 0], 0, 4 * x[0, 2]])
