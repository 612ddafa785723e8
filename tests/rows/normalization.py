"""Rows of ``bnnsgraph.ops.normalization``."""

from __future__ import annotations

from typing import Any

import numpy as np

import bnnsgraph as bg
from tests.op_table import Input, OpCase, Wrong, uniform

EPSILON = 2.0**-11.5
CHANNELS = Input((3,))
POSITIVE = Input((3,), uniform(0.1, 3))


def average(x: Any, axes: Any) -> Any:
    """The mean with its axes kept; NaN over nothing."""
    return x.sum(axes, keepdims=True) / np.prod([x.shape[axis] for axis in axes], dtype=int)


def standard(x: Any, axes: Any, epsilon: float = EPSILON) -> Any:
    centred = x - average(x, axes)
    return centred / np.sqrt(average(centred**2, axes) + epsilon)


def over(x: Any, parameter: Any, *axes: int) -> Any:
    """A parameter laid along these axes of x."""
    return parameter if np.ndim(parameter) == 0 else np.expand_dims(parameter, [a for a in range(x.ndim) if a not in axes])


def affine(x: Any, normal: Any, weight: Any, bias: Any, *axes: int) -> Any:
    return normal * over(x, weight, *axes) + over(x, bias, *axes)


def batch(x: Any, mean: Any, variance: Any, weight: Any = 1.0, bias: Any = 0.0, epsilon: float = EPSILON) -> Any:
    return affine(x, (x - over(x, mean, 1)) / np.sqrt(over(x, variance, 1) + epsilon), weight, bias, 1)


def grouped(x: Any, count: int, epsilon: float = EPSILON) -> Any:
    """Each group by itself, cut out of x."""
    return np.concatenate([standard(part, tuple(range(1, x.ndim)), epsilon) for part in np.split(x, count, 1)], 1)


def spatial(x: Any) -> tuple[int, ...]:
    return tuple(range(2, x.ndim))


def tensor(b: Any, *shape: object, dtype: Any = bg.Float32) -> Any:
    """The argument that misuses are written on."""
    return b.argument("x", dtype, shape)


def high(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Values around 10000."""
    return rng.normal(1e4, 2, shape)


IMAGE = Input((2, 3, 4))
LOW = "x must have rank 3 or more, [batch, channel, spatial, ...], got rank 2"
TWO = "x must have rank 2 or more, [batch, channel, ...], got rank 1"

ROWS = [
    OpCase("batch-norm", lambda x, m, v: x.batch_norm(m, v, epsilon=0.01), lambda x, m, v: batch(x, m, v, epsilon=0.01),
           [(Input((2, 3, 2)), CHANNELS, POSITIVE), (Input((2, 3)), CHANNELS, POSITIVE), (Input((2, 3, 0, 1)), CHANNELS, POSITIVE),
            (Input((0, 3)), Input(()), Input((), uniform(1, 2)))],
           magnitude=8,
           wrong=[Wrong(lambda b: tensor(b, 3).batch_norm(0, 1), bg.ShapeError, TWO),
                  Wrong(lambda b: tensor(b, 2, 3).batch_norm([0.0, 1.0], 1), bg.ShapeError,
                        "BatchNorm(): mean must have the shape of x on axis 1, [3], or rank 0, got [2]"),
                  Wrong(lambda b: tensor(b, 2, 3).batch_norm(0, 1, [[1.0, 2.0, 3.0]]), bg.ShapeError,
                        "weight must have the shape of x on axis 1, [3], or rank 0, got [1, 3]"),
                  Wrong(lambda b: tensor(b, 2, "channels").batch_norm(b.argument("m", bg.Float32, ["c"]), 1), bg.ShapeError,
                        "mean must have the shape of x on axis 1, [channels], or rank 0, got [c]"),
                  Wrong(lambda b: tensor(b, 2, 3).batch_norm(0, b.argument("v", bg.Float16, [3])), bg.DTypeError,
                        "x and variance must have one dtype, got float32 and float16"),
                  Wrong(lambda b: tensor(b, 2, 3, dtype=bg.Int32).batch_norm(0, 1), bg.DTypeError,
                        "x must be of a float type, got int32"),
                  Wrong(lambda b: tensor(b, 2, 3).batch_norm(0, 1, epsilon=-1e-5), bg.ParameterError,
                        "epsilon must be at least 0, got -1e-05"),
                  Wrong(lambda b: tensor(b, 2, 3).batch_norm(0, 1, epsilon="1"), bg.ParameterError,
                        "epsilon must be a finite number, got '1'")]),
    OpCase("batch-norm-affine", lambda x, m, v, w, c: x.batch_norm(m, v, w, c), batch,
           [(Input((2, 3, 2)), CHANNELS, POSITIVE, CHANNELS, CHANNELS), (Input((2, 3)), CHANNELS, POSITIVE, Input(()), Input(()))],
           magnitude=32),
    OpCase("batch-norm-bias", lambda x, c: x.batch_norm([1, 2, 3], 0.5, bias=c),
           lambda x, c: batch(x, np.array([1, 2, 3]), 0.5, bias=c), [(Input((2, 3)), CHANNELS)], magnitude=16),
    OpCase("batch-norm-mean", lambda x, m, v: x.batch_norm(m, v), batch,
           [(Input((2, 3, 4), high), Input((3,), high), POSITIVE)], magnitude=32, gradient=False),
    OpCase("instance-norm", lambda x: x.instance_norm(), lambda x: standard(x, spatial(x)),
           [(IMAGE,), (Input((2, 3, 2, 2)),), (Input((2, 3, 0)),), (Input((0, 3, 4)),)], magnitude=4,
           wrong=[Wrong(lambda b: tensor(b, 2, 3).instance_norm(), bg.ShapeError, f"InstanceNorm(): {LOW}"),
                  Wrong(lambda b: tensor(b, 2, 3, 4).instance_norm(bias=[1.0, 2.0]), bg.ShapeError,
                        "bias must have the shape of x on axis 1, [3], or rank 0, got [2]"),
                  Wrong(lambda b: tensor(b, 2, 3, 4, dtype=bg.Int32).instance_norm(), bg.DTypeError,
                        "x must be of a float type, got int32")]),
    OpCase("instance-norm-affine", lambda x, w, c: x.instance_norm(w, c, epsilon=0.01),
           lambda x, w, c: affine(x, standard(x, spatial(x), 0.01), w, c, 1),
           [(IMAGE, CHANNELS, CHANNELS), (IMAGE, Input(()), Input(()))], magnitude=16),
    OpCase("channel-norm", lambda x: x.channel_norm(epsilon=0.01), lambda x: standard(x, (1,), 0.01),
           [(IMAGE,), (Input((2, 3, 2, 2)),), (Input((2, 3, 0)),), (Input((2, 0, 3)),)], magnitude=4,
           wrong=[Wrong(lambda b: tensor(b, 2, 3).channel_norm(), bg.ShapeError, f"ChannelNorm(): {LOW}"),
                  Wrong(lambda b: tensor(b, 2, 3, 4).channel_norm([1.0]), bg.ShapeError,
                        "weight must have the shape of x on axis 1, [3], or rank 0, got [1]")]),
    OpCase("channel-norm-affine", lambda x, w, c: x.channel_norm(w, c), lambda x, w, c: affine(x, standard(x, (1,)), w, c, 1),
           [(IMAGE, CHANNELS, CHANNELS)], magnitude=16),
    OpCase("layer-norm", lambda x: x.layer_norm(axes=[-1, 0]), lambda x: standard(x, (0, x.ndim - 1)),
           [(IMAGE,), (Input((3, 4)),), (Input((2, 0, 3)),), (Input((2, 0)),)], magnitude=4,
           wrong=[Wrong(lambda b: tensor(b, 2, 3).layer_norm(axes=[2]), bg.ShapeError, "LayerNorm(axes=(2,)): axes must be in [-2, 2), got 2"),
                  Wrong(lambda b: tensor(b, 2, 3).layer_norm(axes=[1, -1]), bg.ShapeError, "axes must be different from each other"),
                  Wrong(lambda b: tensor(b).layer_norm(axes=0), bg.ShapeError, "axes must name an axis, but the tensor has rank 0, got 0"),
                  Wrong(lambda b: tensor(b, 2, 3).layer_norm(axes=None), bg.ParameterError, "axes must be an integer, got None"),
                  Wrong(lambda b: tensor(b, 2, 3, 4).layer_norm(np.ones((4, 3)), axes=[2, 1]), bg.ShapeError,
                        "weight must have the shape of x on axes [1, 2], [3, 4], or rank 0, got [4, 3]"),
                  Wrong(lambda b: tensor(b, 2, 3, dtype=bg.Int32).layer_norm(axes=0), bg.DTypeError, "x must be of a float type, got int32")]),
    OpCase("layer-norm-affine", lambda x, w, c: x.layer_norm(w, c, axes=[2, 0], epsilon=0.01),
           lambda x, w, c: affine(x, standard(x, (0, 2), 0.01), w, c, 0, 2),
           [(IMAGE, Input((2, 4)), Input((2, 4))), (IMAGE, Input(()), Input((2, 4)))], magnitude=16),
    OpCase("layer-norm-none", lambda x, w, c: x.layer_norm(w, c, axes=[]), lambda x, w, c: 0 * x + c,
           [(Input((2, 3)), Input(()), Input(())), (Input(()), Input(()), Input(()))]),
    OpCase("layer-norm-mean", lambda x: x.layer_norm(axes=1), lambda x: standard(x, (1,)), [(Input((40, 320), high),)], (bg.Float16, bg.BFloat16, bg.Float32), magnitude=4,
           gradient=False),
    OpCase("group-norm", lambda x: x.group_norm(2), lambda x: grouped(x, 2),
           [(Input((2, 4, 3)),), (Input((2, 6)),), (Input((0, 4, 3)),), (Input((1, 2, 2, 2)),)], magnitude=4,
           wrong=[Wrong(lambda b: tensor(b, 2, 3).group_norm(2), bg.ShapeError,
                        "GroupNorm(group_count=2): the size of axis 1 must be a multiple of group_count 2, got 3"),
                  Wrong(lambda b: tensor(b, 2, 3).group_norm(0), bg.ParameterError, "group_count must be at least 1, got 0"),
                  Wrong(lambda b: tensor(b, 2, 3).group_norm(1.5), bg.ParameterError, "group_count must be an integer, got 1.5"),
                  Wrong(lambda b: tensor(b, 3).group_norm(1), bg.ShapeError, TWO)]),
    OpCase("group-norm-affine", lambda x, w, c: x.group_norm(3, w, c, epsilon=0.01),
           lambda x, w, c: affine(x, grouped(x, 3, 0.01), w, c, 1), [(Input((2, 6, 2)), Input((6,)), Input((6,)))], magnitude=16),
    OpCase("rms-norm", lambda x, scale: x.rms_norm(scale),
           lambda x, s: x / np.sqrt(average(x**2, (x.ndim - 1,)) + EPSILON) * over(x, s, x.ndim - 1),
           [(IMAGE, Input((4,))), (Input((3,)), Input(())), (Input((2, 0)), Input((0,))), (Input((0, 3)), CHANNELS)], magnitude=8,
           wrong=[Wrong(lambda b: tensor(b).rms_norm(1), bg.ShapeError, "axes must name an axis, but the tensor has rank 0, got -1"),
                  Wrong(lambda b: tensor(b, 2, 3).rms_norm([1.0, 2.0]), bg.ShapeError,
                        "RMSNorm(axes=(-1,)): scale must have the shape of x on axis 1, [3], or rank 0, got [2]"),
                  Wrong(lambda b: tensor(b, 2, 3, dtype=bg.Int32).rms_norm(1), bg.DTypeError, "x must be of a float type, got int32")]),
    OpCase("rms-norm-axes", lambda x, scale: x.rms_norm(scale, epsilon=0.01, axes=[2, 0]),
           lambda x, s: x / np.sqrt(average(x**2, (0, 2)) + 0.01) * over(x, s, 0, 2), [(IMAGE, Input((2, 4)))], magnitude=8),
]  # fmt: skip
