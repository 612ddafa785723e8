"""Elements made comparable by the mean and variance, or by the root mean square, of those around them.

Every operation computes in at least float32 and rounds once. Variances are those of the population, in two passes; epsilon is
added inside the root.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from bnnsgraph.dtypes import Floating
from bnnsgraph.errors import ParameterError, ShapeError
from bnnsgraph.frozen import frozen
from bnnsgraph.graph import Op
from bnnsgraph.handle import Axes, D, F, Handle, Operand
from bnnsgraph.spec import (
    EPSILON,
    Shape,
    TensorSpec,
    as_axes,
    as_epsilon,
    as_integer,
    equal_size,
    format_shape,
    normalize_axes,
    require_dtype,
    require_same_dtype,
)
from bnnsgraph.xla import accumulator, jnp, lax

if TYPE_CHECKING:
    import jax

    from bnnsgraph.tensor import Tensor


@frozen
class Normalize(Op):
    """The base: the shape stays, and parameters lie along some axes of ``x``, or are one number for all of it."""

    epsilon: float = field(default=EPSILON, kw_only=True)

    def along(self, rank: int) -> tuple[int, ...]:
        """The axes of a tensor of ``rank`` that a parameter has, in increasing order; refuses a rank that is too low."""
        return _channel_axis(rank, 3)

    def check(self, x: TensorSpec, **parameters: TensorSpec | None) -> TensorSpec:
        """The rule of all normalisations."""
        given = {name: spec for name, spec in parameters.items() if spec is not None}
        require_same_dtype(x=x, **given)
        require_dtype(x, Floating)
        axes = self.along(x.rank)
        wanted = tuple(x.shape[axis] for axis in axes)
        for name, spec in given.items():
            _require_parameter(spec, wanted, name, axes)
        return x

    def lower(self, x: jax.Array, *parameters: jax.Array) -> jax.Array:
        wide = accumulator(x.dtype)
        axes = self.along(x.ndim)
        placed = [_place(parameter.astype(wide), axes, x.ndim) for parameter in parameters]
        return self.compute(x.astype(wide), *placed).astype(x.dtype)

    def compute(self, x: jax.Array, *parameters: jax.Array) -> jax.Array:
        """The normalisation; parameters have the rank of ``x``."""
        raise NotImplementedError


@frozen
class BatchNorm(Normalize):
    def along(self, rank: int) -> tuple[int, ...]:
        return _channel_axis(rank, 2)

    def infer(
        self,
        x: TensorSpec,
        mean: TensorSpec,
        variance: TensorSpec,
        weight: TensorSpec | None = None,
        bias: TensorSpec | None = None,
    ) -> TensorSpec:
        return self.check(x, mean=mean, variance=variance, weight=weight, bias=bias)

    def compute(self, x: jax.Array, *parameters: jax.Array) -> jax.Array:
        mean, variance, *affine = parameters
        scale = lax.rsqrt(variance + self.epsilon)
        if affine:
            scale = scale * affine[0]
        return _affine(x - mean, scale, *affine[1:])


@frozen
class RMSNorm(Normalize):
    axes: tuple[int, ...]

    def along(self, rank: int) -> tuple[int, ...]:
        return tuple(sorted(normalize_axes(self.axes, rank)))

    def infer(self, x: TensorSpec, scale: TensorSpec) -> TensorSpec:
        return self.check(x, scale=scale)

    def compute(self, x: jax.Array, *parameters: jax.Array) -> jax.Array:
        squares = jnp.mean(lax.square(x), self.along(x.ndim), keepdims=True)
        return _affine(x * lax.rsqrt(squares + self.epsilon), *parameters)


@frozen
class Standardize(Normalize):
    """Elements made of mean 0 and variance 1, then weighted and shifted."""

    def infer(self, x: TensorSpec, weight: TensorSpec | None = None, bias: TensorSpec | None = None) -> TensorSpec:
        return self.check(x, weight=weight, bias=bias)

    def compute(self, x: jax.Array, *parameters: jax.Array) -> jax.Array:
        return _affine(_standardize(x, self.over(x.ndim), self.epsilon), *parameters)

    def over(self, rank: int) -> tuple[int, ...]:
        """The axes of the mean and the variance."""
        return self.along(rank)


@frozen
class InstanceNorm(Standardize):
    def over(self, rank: int) -> tuple[int, ...]:
        return tuple(range(2, rank))


@frozen
class ChannelNorm(Standardize):
    pass


@frozen
class LayerNorm(Standardize):
    axes: tuple[int, ...]

    def along(self, rank: int) -> tuple[int, ...]:
        return tuple(sorted(normalize_axes(self.axes, rank)))


@frozen
class GroupNorm(Standardize):
    group_count: int

    def along(self, rank: int) -> tuple[int, ...]:
        return _channel_axis(rank, 2)

    def infer(self, x: TensorSpec, weight: TensorSpec | None = None, bias: TensorSpec | None = None) -> TensorSpec:
        result = super().infer(x, weight, bias)
        if self.group_count < 1:
            raise ParameterError(f"group_count must be at least 1, got {self.group_count}")
        channels = x.shape[1]
        if isinstance(channels, int) and channels % self.group_count:
            raise ShapeError(f"the size of axis 1 must be a multiple of group_count {self.group_count}, got {channels}")
        return result

    def compute(self, x: jax.Array, *parameters: jax.Array) -> jax.Array:
        batch, channels, *spatial = x.shape
        groups = jnp.reshape(x, (batch, self.group_count, channels // self.group_count, *spatial))
        normal = _standardize(groups, tuple(range(2, groups.ndim)), self.epsilon)
        return _affine(jnp.reshape(normal, x.shape), *parameters)


def _channel_axis(rank: int, least: int) -> tuple[int, ...]:
    if rank < least:
        layout = "[batch, channel, ...]" if least == 2 else "[batch, channel, spatial, ...]"
        raise ShapeError(f"x must have rank {least} or more, {layout}, got rank {rank}")
    return (1,)


def _require_parameter(spec: TensorSpec, wanted: Shape, name: str, axes: tuple[int, ...]) -> None:
    """A parameter has the sizes of ``x`` on ``axes``, or rank 0."""
    fits = spec.rank == len(wanted) and all(equal_size(a, b) is not None for a, b in zip(spec.shape, wanted, strict=True))
    if spec.rank and not fits:
        where = f"axis {axes[0]}" if len(axes) == 1 else f"axes {list(axes)}"
        raise ShapeError(
            f"{name} must have the shape of x on {where}, {format_shape(wanted)}, or rank 0, got {format_shape(spec.shape)}"
        )


def _place(parameter: jax.Array, axes: tuple[int, ...], rank: int) -> jax.Array:
    """The parameter with the rank of ``x``, its axes on ``axes``."""
    missing = [axis for axis in range(rank) if axis not in axes or parameter.ndim == 0]
    return lax.expand_dims(parameter, missing)


def _affine(x: jax.Array, weight: jax.Array | None = None, bias: jax.Array | None = None) -> jax.Array:
    if weight is not None:
        x = x * weight
    return x if bias is None else x + bias


def _standardize(x: jax.Array, axes: tuple[int, ...], epsilon: float) -> jax.Array:
    """``(x - mean) / sqrt(variance + epsilon)``.

    The first mean is only as exact as ``x`` is, which is coarse where the mean is large; the mean of what is left over is not.
    The result does not depend on what is subtracted first, so no gradient flows there.
    """
    near = x - lax.stop_gradient(jnp.mean(x, axes, keepdims=True))
    centred = near - jnp.mean(near, axes, keepdims=True)
    variance = jnp.mean(lax.square(centred), axes, keepdims=True)
    return centred * lax.rsqrt(variance + epsilon)


class NormalizationMethods(Handle[D]):
    """``batch_norm`` to ``group_norm``; ``l2_norm`` is among the reductions.

    Parameters are tensors, arrays or numbers; a parameter of rank 0 holds for all elements. All take
    ``epsilon``, Apple's sqrt(2**-23), about 3.4527e-4, unless given; models from elsewhere mostly use 1e-5.
    """

    __slots__ = ()

    def batch_norm(
        self: Handle[F],
        mean: Operand[F],
        variance: Operand[F],
        weight: Operand[F] | None = None,
        bias: Operand[F] | None = None,
        *,
        epsilon: float = EPSILON,
    ) -> Tensor[F]:
        """``(x - mean) / sqrt(variance + epsilon) * weight + bias`` with given statistics for each channel, axis 1.

        Swift: ``batchNorm(mean:variance:epsilon:)``, ``batchNorm(mean:variance:weight:bias:epsilon:)``

        The tensor is ``[batch, channel, ...]``; parameters are ``[channel]``, or one number.

        >>> x.batch_norm(mean=[0.0, 1.0, 2.0], variance=[1.0, 1.0, 4.0], epsilon=1e-5).shape
        (2, 3)
        >>> bg.make_context(lambda b: b.constant(values=[[1.0, 8.0]]).batch_norm([0, 2], [4, 9], epsilon=0))()
        Array([[0.5, 2. ]], dtype=float32)

        Raises:
            ShapeError: the rank is below 2, or a parameter has not one number a channel.
        """
        return self._emit(BatchNorm(epsilon=as_epsilon(epsilon)), mean, variance, *_given(weight, bias))

    def instance_norm(
        self: Handle[F], weight: Operand[F] | None = None, bias: Operand[F] | None = None, *, epsilon: float = EPSILON
    ) -> Tensor[F]:
        """Each channel of each batch item made of mean 0 and variance 1, then ``* weight + bias``.

        Swift: ``instanceNorm(epsilon:)``, ``instanceNorm(weight:bias:epsilon:)``

        ``(x - mean) / sqrt(variance + epsilon)``, both over the spatial axes of ``[batch, channel, spatial, ...]``; parameters
        are ``[channel]``, or one number.

        >>> bg.make_context(lambda b: b.constant(values=[[[1.0, 3.0], [0.0, 8.0]]]).instance_norm(bias=[0, 5], epsilon=0))()
        Array([[[-1.,  1.],
                [ 4.,  6.]]], dtype=float32)

        Raises:
            ShapeError: the rank is below 3, or a parameter has not one number a channel.
        """
        return self._emit(InstanceNorm(epsilon=as_epsilon(epsilon)), *_given(weight, bias))

    def channel_norm(
        self: Handle[F], weight: Operand[F] | None = None, bias: Operand[F] | None = None, *, epsilon: float = EPSILON
    ) -> Tensor[F]:
        """The channels at each place made of mean 0 and variance 1, then ``* weight + bias``.

        Swift: ``channelNorm(epsilon:)``, ``channelNorm(weight:bias:epsilon:)``

        ``(x - mean) / sqrt(variance + epsilon)``, both over axis 1 of ``[batch, channel, spatial, ...]``; parameters are
        ``[channel]``, or one number.

        >>> bg.make_context(lambda b: b.constant(values=[[[1.0, 0.0], [3.0, 8.0]]]).channel_norm(weight=[1, 2], epsilon=0))()
        Array([[[-1., -1.],
                [ 2.,  2.]]], dtype=float32)

        Raises:
            ShapeError: the rank is below 3, or a parameter has not one number a channel.
        """
        return self._emit(ChannelNorm(epsilon=as_epsilon(epsilon)), *_given(weight, bias))

    def layer_norm(
        self: Handle[F],
        weight: Operand[F] | None = None,
        bias: Operand[F] | None = None,
        *,
        axes: Axes,
        epsilon: float = EPSILON,
    ) -> Tensor[F]:
        """The elements over ``axes`` made of mean 0 and variance 1, then ``* weight + bias``.

        Swift: ``layerNorm(axes:epsilon:)``, ``layerNorm(weight:bias:axes:epsilon:)``

        ``(x - mean) / sqrt(variance + epsilon)``, both over ``axes``. Parameters have the sizes of those axes, in increasing
        order of the axes however ``axes`` orders them: (5, 6) for a tensor of shape (3, 4, 5, 6) and ``axes=[-1, -2]``; or they
        are one number. Over no axes (``[]``) every element is its own mean, and gives 0.

        >>> bg.make_context(lambda b: b.constant(values=[[1.0, 3.0], [0.0, 8.0]]).layer_norm([1, 2], axes=-1, epsilon=0))()
        Array([[-1.,  2.],
               [-1.,  2.]], dtype=float32)

        Raises:
            ShapeError: an axis is outside the tensor or named twice, or a parameter has another shape.
        """
        return self._emit(LayerNorm(as_axes(axes), epsilon=as_epsilon(epsilon)), *_given(weight, bias))

    def rms_norm(self: Handle[F], scale: Operand[F], *, epsilon: float = EPSILON, axes: Axes = -1) -> Tensor[F]:
        """``x / sqrt(mean(x**2) + epsilon) * scale``. Swift: ``rmsNorm(scale:epsilon:)``

        The mean is over ``axes``, the last axis unless given (ours: Apple does not say which). ``scale`` has the sizes of those
        axes in increasing order of the axes, or is one number.

        >>> bg.make_context(lambda b: b.constant(values=[[2.0, -2.0], [0.0, 0.0]]).rms_norm([1, 3], epsilon=12))()
        Array([[ 0.5, -1.5],
               [ 0. ,  0. ]], dtype=float32)

        Raises:
            ShapeError: an axis is outside the tensor or named twice, or ``scale`` has another shape.
        """
        return self._emit(RMSNorm(as_axes(axes), epsilon=as_epsilon(epsilon)), scale)

    def group_norm(
        self: Handle[F],
        group_count: int,
        weight: Operand[F] | None = None,
        bias: Operand[F] | None = None,
        *,
        epsilon: float = EPSILON,
    ) -> Tensor[F]:
        """The channels of each batch item, in groups, made of mean 0 and variance 1. Not in Apple's builder.

        ``(x - mean) / sqrt(variance + epsilon) * weight + bias``, the mean and the variance over each of ``group_count`` groups
        of neighbouring channels of ``[batch, channel, ...]``, with all their places; parameters are ``[channel]``, or one
        number. With one channel a group it is an instance norm.

        >>> bg.make_context(lambda b: b.constant(values=[[1.0, 3.0, 0.0, 8.0]]).group_norm(2, epsilon=0))()
        Array([[-1.,  1., -1.,  1.]], dtype=float32)

        Raises:
            ShapeError: the rank is below 2, the channels cannot be divided so, or a parameter has not one number a channel.
            ParameterError: ``group_count`` is below 1.
        """
        op = GroupNorm(as_integer(group_count, "group_count"), epsilon=as_epsilon(epsilon))
        return self._emit(op, *_given(weight, bias))


def _given(weight: object, bias: object) -> list[object]:
    """The optional operands that are recorded: a bias alone has the weight 1."""
    if bias is not None:
        return [1 if weight is None else weight, bias]
    return [] if weight is None else [weight]
