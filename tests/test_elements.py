"""Shapes that the graph itself computes: evaluated for the sizes of each run, and refused where they depend on data."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import bnnsgraph as bg


@bg.make_context
def rows_kept(b: bg.Builder) -> bg.Tensor:
    """The rest of the axes in one, as models exported from other frameworks write it."""
    x = b.argument("x", bg.Float32, [-1, -1, -1])
    rows = x.tensor_shape().gather([0], axis=0)
    return x.reshape(to=b.concatenate([rows, [-1]], axis=0)) * 2


def test_sizes_of_each_run() -> None:
    for shape in ((2, 3, 4), (5, 1, 2)):
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        np.testing.assert_array_equal(rows_kept(x), 2 * x.reshape(shape[0], -1))
    assert [tuple(c.shapes["x"]) for c in rows_kept.compilations] == [(2, 3, 4), (5, 1, 2)]
    with pytest.raises(bg.ShapeError, match=r"to must leave a size to infer, got \[0, -1\] for 0 elements") as caught:
        rows_kept(np.zeros((0, 3, 4), np.float32))
    assert "recorded at " in str(caught.value)
    assert "return x.reshape(to=b.concatenate([rows, [-1]], axis=0)) * 2" in str(caught.value)


def test_a_size_worked_out_while_building_serves_an_empty_batch() -> None:
    context = bg.make_context(lambda b: b.argument("x", bg.Float32, ["batch", 2, 3]).reshape(to=["batch", -1]))
    assert context(np.zeros((0, 2, 3), np.float32)).shape == (0, 6)
    with pytest.raises(bg.ShapeError, match=r"to must leave a size to infer, got \[0, -1\]"):
        bg.Builder().argument("x", bg.Float32, [0, 3]).reshape(to=[0, -1])


def test_transformations() -> None:
    x = np.random.default_rng(0).normal(size=(6, 2, 3, 4)).astype(np.float32)
    np.testing.assert_array_equal(jax.jit(jax.vmap(rows_kept.function))(x), 2 * x.reshape(6, 2, 12))
    gradient = jax.jit(jax.grad(lambda x: (rows_kept.function(x) ** 2).sum()))(x[0])
    np.testing.assert_allclose(gradient, 8 * x[0], rtol=1e-6)
    assert rows_kept.tensor("output_0").shape == (-1, -1)


def test_sizes_that_are_set() -> None:
    context = bg.make_context(lambda b: (lambda x: x.reshape(to=x.tensor_shape()[::-1]))(b.argument("x", bg.Float32, [-1, -1])))
    assert context.set_dynamic_shapes([(), (2, 5)]) == [(5, 2), (2, 5)]
    assert context.allocate_tensor("output_0").shape == (5, 2)


def test_names_flow_into_the_shape_of_another_tensor() -> None:
    b = bg.Builder()
    x, y = b.argument("x", bg.Float32, ["batch", 6]), b.argument("y", bg.Float32, ["batch", 2, 3])
    assert str(x.reshape(to=y.tensor_shape()).spec) == "float32[batch, 2, 3]"
    z = b.argument("z", bg.Float32, [-1, 6])
    assert str(x.reshape(to=z.tensor_shape()).spec) == "float32[-1, -1]"


def test_64_bit_shapes() -> None:
    def block(b: bg.Builder) -> bg.Tensor:
        x = b.argument("x", bg.Float32, [2, -1])
        return x.reshape(to=x.tensor_shape().cast(to=bg.Int64)[::-1])

    assert bg.make_context(block)(np.zeros((2, 3), np.float32)).shape == (3, 2)


def test_a_check_inside_the_computation_of_a_shape() -> None:
    def block(b: bg.Builder) -> bg.Tensor:
        x = b.argument("x", bg.Float32, [-1, 6])
        return x.reshape(to=x.tensor_shape().gather(x.tensor_shape()[1:], axis=0))

    context = bg.make_context(block)
    with pytest.raises(bg.IndexOutOfBoundsError, match=r"indices must be in \[-2, 2\) on axis 0, got 6") as caught:
        context(np.zeros((2, 6), np.float32))
    assert "x.reshape(to=x.tensor_shape().gather" in str(caught.value)


def test_sizes_must_agree() -> None:
    def block(b: bg.Builder) -> bg.Tensor:
        x, y = b.argument("x", bg.Float32, [-1]), b.argument("y", bg.Float32, [-1, 2])
        return x.reshape(to=y.tensor_shape())

    context = bg.make_context(block)
    assert context(np.zeros(6, np.float32), np.zeros((3, 2), np.float32)).shape == (3, 2)
    with pytest.raises(bg.ShapeError, match=r"to must have as many elements as x, 6, got \[4, 2\] with 8"):
        context(np.zeros(6, np.float32), np.zeros((4, 2), np.float32))


def test_flexible_export_says_what_to_write() -> None:
    shape = jax.export.symbolic_shape("a, b, 3")
    words = r"the sizes of argument 'x' must be known to compute a shape from them, got \[a, b, 3\].*by name"
    with pytest.raises(bg.ShapeError, match=words):
        jax.export.export(jax.jit(rows_kept.function))(jax.ShapeDtypeStruct(shape, np.float32))
