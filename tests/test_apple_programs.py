"""Programs that Apple published for its builder, carried over line by line, with their known numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bnnsgraph as bg

X = np.arange(1, 9, dtype=np.float32)


def test_two_outputs(capsys: pytest.CaptureFixture[str]) -> None:
    """A product and its mean; the mean is printed inside the block."""

    @bg.make_context
    def context(builder: bg.Builder) -> Any:
        x = builder.argument("x", bg.Float32, shape=[8])
        y = builder.argument("y", bg.Float32, shape=[8])
        product = x * y
        mean = product.mean(axes=[0], keep_dimensions=True)
        print(mean)
        return [product, mean]

    assert capsys.readouterr().out == "shape: [1] | stride: [1]\n"
    product, mean = np.zeros(8, np.float32), np.zeros(1, np.float32)
    context.execute_function([product, mean, X, X[::-1]])
    assert product.tolist() == [8, 14, 18, 20, 20, 18, 14, 8]
    assert mean.tolist() == [15]


def test_flexible_sum() -> None:
    """Sizes are set before the run."""

    @bg.make_context
    def context(builder: bg.Builder) -> Any:
        return builder.argument("x", bg.Float32, shape=[-1]) + builder.argument("y", bg.Float32, shape=[-1])

    context.set_batch_size(8)
    total = context.allocate_tensor("output_0")
    context.execute_function([total, X, X[::-1]])
    assert np.asarray(total).tolist() == [9] * 8


def test_strong_typing() -> None:
    """Float16 bases to integer powers, masked; a missing cast is an error while building."""

    @bg.make_context
    def context(builder: bg.Builder) -> Any:
        low = builder.argument("low", bg.Float16, shape=[4])
        high = builder.argument("high", bg.Float16, shape=[4])
        bases = builder.argument("bases", bg.Float16, shape=[4])
        exponents = builder.argument("exponents", bg.Int32, shape=[4])
        mask = low < high
        return bases.pow(exponents.cast(to=bg.Float16)) * mask.cast(to=bg.Float16)

    half = np.float16
    result = context(
        np.array([0, 1, 0, 1], half),
        np.array([1, 0, 1, 0], half),
        np.array([2, 3, 4, 5], half),
        np.array([3, 3, 2, 2], np.int32),
    )
    assert result.dtype == np.float16
    assert result.tolist() == [8, 0, 16, 0]

    def without_cast(builder: bg.Builder) -> Any:
        bases: Any = builder.argument("bases", bg.Float16, shape=[4])
        return bases.pow(builder.argument("exponents", bg.Int32, shape=[4]))

    with pytest.raises(bg.DTypeError, match=r"write .cast\(to=Float16\) on y"):
        bg.make_context(without_cast)


def centre_crop(margin: int) -> bg.Context:
    def block(builder: bg.Builder) -> Any:
        source = builder.argument("source", bg.Float32, shape=[-1, -1, 3])
        crop = bg.SliceRange(start_index=margin, end_index=-margin)
        return source[crop, crop, bg.SliceRange.fill_all]

    return bg.make_context(block)


def test_centre_crop() -> None:
    """An image of any size, destination first."""
    image = np.arange(6 * 8 * 3, dtype=np.float32).reshape(6, 8, 3)
    destination = np.zeros((2, 4, 3), np.float32)
    centre_crop(2).execute_function([destination, image])
    np.testing.assert_array_equal(destination, image[2:-2, 2:-2])
    assert centre_crop(0)(image).shape == (0, 0, 3)  # the trap: -0 is 0, as in Python
    with pytest.raises(bg.ShapeError, match="a slice must not end before it starts, got 4:-4 on an axis of size 6"):
        centre_crop(4)(image)


def test_threshold_on_the_mean() -> None:
    """A one-channel image, white where it is brighter than its mean."""

    @bg.make_context
    def context(builder: bg.Builder) -> Any:
        source = builder.argument("source", bg.Float16, shape=[-1, -1, 1])
        mean = source.mean(axes=[0, 1], keep_dimensions=False)
        assert mean.shape == (1,)
        return (source > mean).cast(to=bg.Float16)

    image = np.array([[[0.0], [0.25]], [[0.75], [1.0]]], np.float16)
    assert context(image).tolist() == [[[0], [0]], [[1], [1]]]


def scores(axis: int, k: int = 3) -> bg.Context:
    def block(builder: bg.Builder) -> Any:
        values = builder.argument("scores", bg.Float32, shape=[-1])
        best = values.softmax(axis=axis).top_k(k, axis=axis, find_largest=True)
        return best.values, best.indices

    return bg.make_context(block)


def test_post_processing() -> None:
    """Softmax and the best k; the published listing names axis 1 of a vector and swaps its two outputs."""
    raw = np.array([1, 4, 2, 8, 5], np.float32)
    values, indices = scores(axis=0)(raw)
    wanted = np.exp(raw - 8) / np.exp(raw - 8).sum()
    np.testing.assert_allclose(values, np.sort(wanted)[::-1][:3], rtol=1e-6)
    assert indices.tolist() == [3, 4, 1]
    assert indices.dtype == np.int32
    with pytest.raises(bg.ShapeError, match=r"axis must be in \[-1, 1\), got 1"):
        scores(axis=1)
    swapped = [np.zeros(3, np.int32), np.zeros(3, np.float32), raw]
    with pytest.raises(bg.DTypeError, match="output 'output_0' must be of dtype float32, got int32"):
        scores(axis=0).execute_function(swapped)


@pytest.mark.parametrize(("precision", "tolerance"), [(bg.Float32, 1e-6), (bg.Float16, 2e-2)])
def test_bit_crusher(precision: Any, tolerance: float) -> None:
    """Saturate, quantise and mix; the precision is one name."""

    @bg.make_context
    def context(builder: bg.Builder) -> Any:
        source = builder.argument("source", precision, shape=["n", 1, 1])
        resolution = builder.argument("resolution", precision, shape=[1, 1, 1])
        saturation_gain = builder.argument("saturation_gain", precision, shape=[1, 1, 1])
        dry_wet = builder.argument("dry_wet", precision, shape=[1, 1, 1])
        destination = (source * saturation_gain).tanh()
        destination = (destination * resolution).round() / resolution
        return destination * dry_wet + source * (1 - dry_wet)

    dtype = precision.numpy
    time = np.linspace(0, 1, 512)
    source = np.sin(2 * np.pi * 5 * time).astype(dtype).reshape(-1, 1, 1)
    settings = [np.full((1, 1, 1), value, dtype) for value in (8, 1.5, 0.75)]
    wide = source.astype(np.float64)
    crushed = np.round(np.tanh(wide * 1.5) * 8) / 8
    result = np.asarray(context(source, *settings)).astype(np.float64)
    steps = np.abs(np.tanh(wide * 1.5) * 8 % 1 - 0.5) > 0.02  # away from a half, where one rounding decides a whole step
    assert result.shape == source.shape
    np.testing.assert_allclose(result[steps], (crushed * 0.75 + wide * 0.25)[steps], atol=tolerance)


def test_masking() -> None:
    """Where the mask is false, infinity."""

    @bg.make_context
    def context(builder: bg.Builder) -> Any:
        mask = builder.argument("mask", bg.Bool, shape=[4])
        return mask.select(builder.argument("x", bg.Float32, shape=[4]), float("inf"))

    assert context(np.array([True, False, True, False]), X[:4]).tolist() == [1, np.inf, 3, np.inf]
