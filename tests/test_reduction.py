"""What no row of the op table can say of reductions and normalisations: slopes at kinks, large means, mapping, export."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, assert_type

import jax
import numpy as np
import pytest

import bnnsgraph as bg

Block = Callable[[bg.Tensor[Any]], bg.Tensor[Any]]
EPSILON = 2.0**-11.5


def function(block: Block, *shape: Any, dtype: Any = bg.Float32) -> Callable[..., Any]:
    """The graph of one argument as a function of arrays."""
    return bg.make_context(lambda b: block(b.argument("x", dtype, shape))).function


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_equal_extremes_share_the_gradient(name: str) -> None:
    gradient = jax.grad(function(lambda x: getattr(x, name)(None), 4))(np.full(4, 2, np.float32))
    np.testing.assert_array_equal(gradient, [0.25] * 4)


def test_the_gradient_of_the_norm_of_zeros_is_zero() -> None:
    gradient = jax.grad(function(lambda x: x.l2_norm(1).sum(None), 2, 2))(np.array([[0, 0], [3, 4]], np.float32))
    np.testing.assert_allclose(gradient, [[0, 0], [0.6, 0.8]], rtol=2**-22)


def test_no_gradient_flows_into_an_index() -> None:
    chosen = function(lambda x: x.gather_along_axis(x.arg_max(1, keep_dimension=True), 1).sum(None), 2, 3)
    gradient = jax.jit(jax.grad(chosen))(np.array([[1, 5, 2], [7, 0, 7]], np.float32))
    np.testing.assert_array_equal(gradient, [[0, 1, 0], [1, 0, 0]])


def test_l2_norm_is_a_reduction_with_axes_and_a_normalisation_without() -> None:
    x = bg.Builder().argument("x", bg.Float32, [2, 3, 4])
    assert assert_type(x.l2_norm(0), bg.Tensor[bg.Float32]).shape == (3, 4)
    assert assert_type(x.l2_norm(None), bg.Tensor[bg.Float32]).shape == ()
    assert assert_type(x.l2_norm([], keep_dimensions=True), bg.Tensor[bg.Float32]).shape == (2, 3, 4)
    assert assert_type(x.l2_norm(epsilon=0.5), bg.Tensor[bg.Float32]).shape == (2, 3, 4)
    assert str(x.l2_norm().spec) == "float32[2, 3, 4]"


def test_sums_of_16_bits_do_not_overflow_on_the_way() -> None:
    """256 * 300**2 is beyond float16, its root is not."""
    values = np.full(256, 300, np.float16)
    norm = function(lambda x: x.l2_norm(0), 256, dtype=bg.Float16)(values)
    squares = function(lambda x: x.sum_of_squares(0), 256, dtype=bg.Float16)(values)
    scaled = function(lambda x: x.rms_norm(1), 256, dtype=bg.Float16)(values)
    assert float(norm) == 4800
    assert np.isinf(squares)
    np.testing.assert_array_equal(scaled, np.ones(256))


LARGE_MEAN: dict[str, tuple[Block, tuple[int, ...]]] = {
    "instance_norm": (lambda x: x.instance_norm(), (2,)),
    "channel_norm": (lambda x: x.channel_norm(), (1,)),
    "layer_norm": (lambda x: x.layer_norm(axes=[1, 2]), (1, 2)),
    "group_norm": (lambda x: x.group_norm(1), (1, 2)),
}


@pytest.mark.parametrize("mean", [0, 1e4, 1e6])
@pytest.mark.parametrize("name", LARGE_MEAN)
def test_a_large_mean_costs_no_precision(name: str, mean: float) -> None:
    """Results up to 5 are off by at most 8 float32 epsilons, around 0 and around a million, over 20,000 elements.

    Subtracting the mean once, rounded to float32, is off by about 5e-4 around 1e4: 4,000 epsilons.
    """
    block, axes = LARGE_MEAN[name]
    x = (np.random.default_rng(3).normal(0, 1, (2, 4, 20_000)) + mean).astype(np.float32)
    exact = x - x.mean(axes, keepdims=True, dtype=np.float64)
    exact /= np.sqrt(np.square(exact).mean(axes, keepdims=True) + EPSILON)
    assert np.abs(exact).max() < 5
    np.testing.assert_allclose(function(block, *x.shape)(x), exact, rtol=0, atol=8 * 2.0**-23)


EVERY: list[Block] = [
    lambda x: x.sum(2),
    lambda x: x.mean([0, -1]),
    lambda x: x.product(None),
    lambda x: x.maximum([]),
    lambda x: x.minimum(2, keep_dimensions=True),
    lambda x: x.l1_norm([1, 2]),
    lambda x: x.l2_norm(2),
    lambda x: x.sum_of_squares(1),
    lambda x: (x * x).log_sum(2),
    lambda x: x.log_sum_exp(2),
    lambda x: x.arg_max(2).cast(to=bg.Float32),
    lambda x: x.arg_min(0, keep_dimension=True).cast(to=bg.Float32),
    lambda x: x.cumulative_sum(2),
    lambda x: x.softmax(2),
    lambda x: x.log_softmax(0),
    lambda x: x.l2_norm(),
    lambda x: x.batch_norm([1, 2, 3, 4], 1.0, bias=2),
    lambda x: x.instance_norm([1, 2, 3, 4]),
    lambda x: x.channel_norm(1, [1, 2, 3, 4]),
    lambda x: x.layer_norm(2, 3, axes=[2, 0]),
    lambda x: x.group_norm(2, [1, 2, 3, 4]),
    lambda x: x.rms_norm(2),
]


def test_all_are_exported_with_symbolic_sizes() -> None:
    def block(b: bg.Builder) -> list[bg.Tensor[Any]]:
        x = b.argument("x", bg.Float32, ["batch", 4, "length"])
        return [one(x) for one in EVERY]

    context = bg.make_context(block)
    exported = context.export()
    for shape in [(2, 4, 3), (1, 4, 5)]:
        values = np.random.default_rng(5).normal(0, 2, shape).astype(np.float32)
        found: Any = exported.call(values)
        same([found[name] for name in context.graph.result_names], context(values))


def test_all_are_mapped_over_a_new_axis() -> None:
    def block(b: bg.Builder) -> list[bg.Tensor[Any]]:
        x = b.argument("x", bg.Float32, [2, 4, 3])
        return [one(x) for one in EVERY]

    context = bg.make_context(block)
    batch = np.random.default_rng(6).normal(0, 2, (3, 2, 4, 3)).astype(np.float32)
    mapped = jax.jit(jax.vmap(context.function))(batch)
    for index, values in enumerate(batch):
        same([result[index] for result in mapped], context(values))


def same(found: Iterable[Any], wanted: Iterable[Any]) -> None:
    """Two programs of one graph, which XLA may fuse and round in different ways."""
    for index, (a, b) in enumerate(zip(found, wanted, strict=True)):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5, err_msg=f"number {index}")
