"""Convolutions over one or two spatial axes. Each call is one ``lax.conv_general_dilated``.

On the CPU, where XLA is slow with it, short sums are made of slices times weights, and a network's last layers are products.
float32 products are full float32; 16-bit products are summed in float32, the bias with them, and rounded once.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from bnnsgraph.dtypes import Floating
from bnnsgraph.errors import ParameterError, ShapeError
from bnnsgraph.frozen import frozen
from bnnsgraph.graph import Op
from bnnsgraph.handle import D, F, Handle, Operand
from bnnsgraph.sizes import Dimension
from bnnsgraph.spec import (
    Shape,
    TensorSpec,
    as_integer,
    format_shape,
    require_dtype,
    require_equal_size,
    require_same_dtype,
)
from bnnsgraph.windows import (
    ConvolutionPadding,
    as_entries,
    as_padding,
    hold_elements,
    per_axis,
    places,
    require_elements,
    spatial_axes,
    window_count,
)
from bnnsgraph.xla import accumulator, by_platform, jax, lax

if TYPE_CHECKING:
    from bnnsgraph.tensor import Tensor

MOST_TERMS, MOST_CHANNELS = 64, 8
"""Products in a sum, and channels among them, up to which slices are faster than windows on the CPU."""


@frozen
class Convolution(Op):
    """The base of both: their operands, and what these must be to each other."""

    strides: tuple[int, ...]
    padding: ConvolutionPadding = ConvolutionPadding.VALID
    dilations: tuple[int, ...] | None = None
    group_count: int = 1

    ends_fusion: ClassVar[bool] = True

    def infer(self, x: TensorSpec, weight: TensorSpec, bias: TensorSpec | None = None) -> TensorSpec:
        require_same_dtype(x=x, weight=weight, **({} if bias is None else {"bias": bias}))
        require_dtype(x, Floating)
        axes = spatial_axes(x, self.padding)
        if weight.rank != x.rank:
            raise ShapeError(f"weight must have the rank of x, {x.rank}, got rank {weight.rank}, {format_shape(weight.shape)}")
        if 0 in weight.shape[2:]:
            raise ShapeError(f"weight must have a kernel of at least one element, got shape {format_shape(weight.shape)}")
        per_axis(self.strides, axes, "strides")
        per_axis(self.dilations, axes, "dilations")
        channels = self.channels(x.shape, weight.shape)
        if bias is not None:
            if bias.rank != 1:
                raise ShapeError(f"bias must have rank 1, one value for each output channel, got rank {bias.rank}")
            require_equal_size(bias.shape[0], channels, "the size of bias and the number of output channels")
        return x.with_shape((x.shape[0], channels, *self.sizes(x, self.extents(weight.shape))))

    @property
    def spread_axes(self) -> tuple[int, ...]:
        """XLA 0.10 to 0.12 count sums twice where windows, or groups, are spread over one of several axes of a mesh."""
        return (2, 2, 1, 2) if self.group_count == 1 else (0, 0, 0, 0)

    def channels(self, x: Shape, weight: Shape) -> Dimension:
        """The number of output channels; refuses channels that do not fit."""
        raise NotImplementedError

    def sizes(self, x: TensorSpec, extents: list[Any]) -> list[Dimension]:
        """The sizes of the output's spatial axes."""
        raise NotImplementedError

    def extents(self, weight: Sequence[Any]) -> list[Any]:
        """How many places the dilated kernel spans on each spatial axis."""
        kernel = weight[2:]
        dilations = per_axis(self.dilations, len(kernel), "dilations")
        return [(size - 1) * dilation + 1 for size, dilation in zip(kernel, dilations, strict=True)]

    def convolve(self, x: jax.Array, weight: jax.Array, bias: jax.Array | None, padding: Any, **steps: Any) -> jax.Array:
        """The one convolution, plus the bias, rounded to the elements' type."""
        return self.rounded(self.products(x, weight, padding, **steps), x.dtype, bias)

    def products(self, x: jax.Array, weight: jax.Array, padding: Any, **steps: Any) -> jax.Array:
        """The one convolution, in the type in which it is summed."""
        return lax.conv_general_dilated(
            x,
            weight,
            padding=padding,
            rhs_dilation=self.dilations,
            feature_group_count=self.group_count,
            preferred_element_type=accumulator(x.dtype),
            **steps,
        )

    def rounded(self, result: jax.Array, dtype: Any, bias: jax.Array | None) -> jax.Array:
        """Sums plus the bias, rounded to the elements' type."""
        if bias is not None:
            result += lax.expand_dims(bias.astype(result.dtype), [0, *range(2, result.ndim)])
        return result.astype(dtype)


@frozen
class Conv(Convolution):
    def channels(self, x: Shape, weight: Shape) -> Dimension:
        groups = self.group_count
        require_equal_size(x[1], groups * weight[1], "the channels of x and group_count * weight.shape[1]")
        if isinstance(weight[0], int) and weight[0] % groups:
            raise ShapeError(f"weight.shape[0] must be a multiple of group_count, {groups}, got {weight[0]}")
        return weight[0]

    def sizes(self, x: TensorSpec, extents: list[Any]) -> list[Dimension]:
        return self.windows(x.shape, extents)

    def windows(self, x: Sequence[Any], extents: Sequence[Any]) -> list[Any]:
        """How many windows there are on each spatial axis."""
        places = enumerate(zip(x[2:], extents, self.strides, strict=True))
        return [window_count(self.padding, axis, size, extent, stride) for axis, (size, extent, stride) in places]

    def lower(self, x: jax.Array, weight: jax.Array, bias: jax.Array | None = None) -> jax.Array:
        names = {"SAME": "SAME", "LOWER": "SAME_LOWER"}  # by name, because these amounts may depend on a symbolic size
        padding = names.get(self.padding.kind) or [self.padding.fixed(axis) for axis in range(x.ndim - 2)]

        def by_windows(x: jax.Array, weight: jax.Array) -> jax.Array:
            return self.products(x, weight, padding, window_strides=self.strides)

        method = self.on_cpu(x.shape, weight.shape)
        if method is None:
            return self.rounded(by_windows(x, weight), x.dtype, bias)

        def faster(x: jax.Array, weight: jax.Array) -> jax.Array:
            return by_platform(x, weight, cpu=functools.partial(method, padding=padding), default=by_windows)

        def derivative(primals: Any, tangents: Any) -> tuple[jax.Array, jax.Array]:
            (x, weight), (dx, dweight) = primals, tangents
            return found(x, weight), by_windows(dx, weight) + by_windows(x, dweight)

        found = jax.custom_jvp(faster)
        found.defjvp(derivative)
        dear = method == self.by_terms and weight.shape[1] > 1  # to differentiate: a slice of channels for each term
        return self.rounded((found if dear else faster)(x, weight), x.dtype, bias)

    def on_cpu(self, x: tuple[Any, ...], weight: tuple[Any, ...]) -> Callable[..., jax.Array] | None:
        """A way that is faster than XLA's on the CPU; None where there is none, or where a size is not known.

        Few terms a sum: 3 to 30 times as fast (images, filters of audio, each channel by itself). Kernels of one place, and
        fewer windows than numbers in each (the last layers of a network): up to 3 times.
        """
        if not hold_elements(x, weight):
            return None
        if math.prod(weight[1:]) <= MOST_TERMS and weight[1] <= MOST_CHANNELS:
            return self.by_terms
        windows = x[0] * math.prod(self.windows(x, self.extents(weight)))
        few = windows <= math.prod(weight[1:]) or math.prod(weight[2:]) == 1
        return self.by_product if few and self.group_count == 1 else None

    def by_terms(self, x: jax.Array, weight: jax.Array, padding: Any) -> jax.Array:
        """A sum of slices of all windows, a place of the kernel and a channel at a time, each times its weight."""
        rows, columns = weight.shape[:2]
        factors = weight.reshape(self.group_count, rows // self.group_count, columns, -1).astype(accumulator(weight.dtype))
        terms: list[jax.Array] = []
        for place, part in enumerate(self.by_place(x, weight.shape, padding)):
            grouped = part.reshape(part.shape[0], self.group_count, columns, *part.shape[2:])
            for column in range(columns):
                chosen = grouped[:, :, column : column + 1]
                terms.append(chosen * lax.expand_dims(factors[:, :, column, place], (0, *range(3, x.ndim + 1))))
        total = functools.reduce(operator.add, terms)
        return total.reshape(x.shape[0], rows, *total.shape[3:])

    def by_product(self, x: jax.Array, weight: jax.Array, padding: Any) -> jax.Array:
        """One product of the weights and of what stands in all windows."""
        parts = [part.swapaxes(0, 1) for part in self.by_place(x, weight.shape, padding)]
        columns = lax.concatenate([lax.expand_dims(part, (1,)) for part in parts], 1)  # [C, places, N, counts...]
        left = weight.reshape(weight.shape[0], -1).astype(columns.dtype)
        found = lax.dot(left, columns.reshape(left.shape[1], -1))
        return found.reshape(weight.shape[0], *columns.shape[2:]).swapaxes(0, 1)

    def by_place(self, x: jax.Array, weight: Sequence[int], padding: Any) -> Iterator[jax.Array]:
        """What all windows have at each place of the kernel, in the type in which it is summed."""
        extents = self.extents(weight)
        if isinstance(padding, str):
            padding = lax.padtype_to_pads(x.shape[2:], extents, self.strides, padding)
        return places(
            x.astype(accumulator(x.dtype)),
            0,
            kernel=weight[2:],
            strides=self.strides,
            dilations=per_axis(self.dilations, len(extents), "dilations"),
            padding=padding,
            counts=self.windows(x.shape, extents),
        )


@frozen
class ConvTranspose(Convolution):
    output_padding_values: tuple[int, ...] | None = None

    def channels(self, x: Shape, weight: Shape) -> Dimension:
        require_equal_size(x[1], weight[0], "the channels of x and weight.shape[0]")
        if isinstance(x[1], int) and x[1] % self.group_count:
            raise ShapeError(f"the channels of x must be a multiple of group_count, {self.group_count}, got {x[1]}")
        return self.group_count * weight[1]

    def sizes(self, x: TensorSpec, extents: list[Any]) -> list[Dimension]:
        extra = per_axis(self.output_padding_values, len(extents), "output_padding_values", least=0)
        steps = zip(self.strides, per_axis(self.dilations, len(extents), "dilations"), strict=True)
        if any(more >= max(step) for more, step in zip(extra, steps, strict=True)):
            raise ParameterError(
                f"output_padding_values must be smaller than the stride or the dilation of its axis, got {list(extra)}"
            )
        if self.padding.keeps_size and any(extra):
            raise ParameterError(
                f"output_padding_values must be 0 with {self.padding!r}, whose output has size * stride places, "
                f"got {list(extra)}"
            )
        sizes: list[Dimension] = []
        for axis, extent in enumerate(extents):
            require_elements(x, axis)
            size = self.size(axis, x.shape[axis + 2], extent)
            if isinstance(size, int) and size < 1:
                raise ShapeError(f"padding must leave at least one element of the output on axis {axis + 2}, got size {size}")
            sizes.append(size)
        return sizes

    def size(self, axis: int, size: Any, extent: Any) -> Any:
        """The output's size on a spatial axis."""
        if self.padding.keeps_size:
            return size * self.strides[axis]
        extra = self.output_padding_values[axis] if self.output_padding_values else 0
        return (size - 1) * self.strides[axis] + extent - sum(self.padding.fixed(axis)) + extra

    def lower(self, x: jax.Array, weight: jax.Array, bias: jax.Array | None = None) -> jax.Array:
        groups, (rows, columns, *kernel) = self.group_count, weight.shape
        swapped = weight.reshape(groups, rows // groups, columns, *kernel).swapaxes(1, 2)
        turned = lax.rev(swapped.reshape(groups * columns, rows // groups, *kernel), range(2, x.ndim))
        padding: list[tuple[Any, Any]] = []
        for axis, (size, extent, stride) in enumerate(zip(x.shape[2:], self.extents(weight.shape), self.strides, strict=True)):
            if self.padding.keeps_size:
                cropped, _ = self.padding.halves(max(0, extent - stride))
            else:
                cropped, _ = self.padding.fixed(axis)
            before = extent - 1 - cropped
            spread = (size - 1) * stride + 1
            padding.append((before, self.size(axis, size, extent) - spread - before + extent - 1))
        return self.convolve(x, turned, bias, padding, window_strides=(1,) * len(kernel), lhs_dilation=self.strides)


class ConvolutionMethods(Handle[D]):
    """``conv``, ``conv_transpose``."""

    __slots__ = ()

    def conv(
        self: Handle[F],
        weight: Operand[F],
        strides: Sequence[int],
        bias: Operand[F] | None = None,
        padding: ConvolutionPadding = ConvolutionPadding.VALID,
        dilations: Sequence[int] | None = None,
        group_count: int = 1,
    ) -> Tensor[F]:
        """The convolution (without turning the kernel round) over one or two spatial axes of ``[N, C, spatial...]``.

        Swift: ``conv(weight:strides:bias:padding:dilations:groupCount:)``,
        ``conv(weight:strides:padding:dilations:groupCount:)``

        ``result[n, o, i] = bias[o] + sum(c, k) weight[o, c, k] * padded[n, c, i * strides + k * dilations]``, c over the
        channels of the group of o. Each spatial axis becomes ``floor((size + padding - extent) / stride) + 1`` long, where
        ``extent = (kernel - 1) * dilation + 1``; with ``ConvolutionPadding.SAME`` and ``LOWER`` ``ceil(size / stride)``. The
        order of parameters is Swift's; everything may be given by name.

        Weights of PyTorch and ONNX fit as they are. Those of Keras, ``[kernel..., in, out]``, need
        ``np.moveaxis(weight, (-1, -2), (0, 1))``, and their channels-last images ``np.moveaxis(x, -1, 1)``.

        Args:
            weight: ``[C_out, C_in / group_count, kernel...]``, a tensor or an array.
            strides: steps between windows, one for each spatial axis.
            bias: ``[C_out]``.
            padding: zeros at the borders.
            dilations: steps between the elements of a window; None is 1 everywhere.
            group_count: channels of input and output fall into this many groups, each convolved by itself.

        >>> image = builder.argument("image", bg.Float32, shape=["batch", 3, "height", 32])
        >>> image.conv(np.ones((8, 3, 3, 5)), [2, 1], padding=bg.ConvolutionPadding.custom([1, 1, 2, 2])).shape
        (batch, 8, (height + 1)//2, 32)

        Raises:
            ShapeError: ranks or channels do not fit, or the window is longer than the padded axis.
            DTypeError: the operands differ in dtype, or are integers.
            ParameterError: a parameter has not one entry for each spatial axis, or is too small.
        """
        op = Conv(*_parameters(strides, padding, dilations, group_count))
        return self._emit(op, weight) if bias is None else self._emit(op, weight, bias)

    def conv_transpose(
        self: Handle[F],
        weight: Operand[F],
        strides: Sequence[int],
        bias: Operand[F] | None = None,
        padding: ConvolutionPadding = ConvolutionPadding.VALID,
        output_padding_values: Sequence[int] | None = None,
        dilations: Sequence[int] | None = None,
        group_count: int = 1,
    ) -> Tensor[F]:
        """The transpose of :meth:`conv`, as a linear map, with the same parameters: it spreads each input over a window.

        Swift: ``convTranspose(weight:strides:bias:padding:outputPaddingValues:dilations:groupCount:)``,
        ``convTranspose(weight:strides:padding:outputPaddingValues:dilations:groupCount:)``

        ``result[n, o, i * strides + k * dilations - before] += x[n, c, i] * weight[c, o, k]``, and the bias is added. Each
        spatial axis becomes ``(size - 1) * stride + extent - padding + output_padding`` long; with ``ConvolutionPadding.SAME``
        and ``LOWER`` ``size * stride``, where ``max(0, extent - stride)`` places are cut off, half at each end, and what no
        window reaches is the bias. The order of parameters is Swift's; everything may be given by name.

        Weights of PyTorch and ONNX fit as they are; those of Keras, ``[kernel..., out, in]``, need
        ``np.moveaxis(weight, (-1, -2), (0, 1))``.

        Args:
            weight: ``[C_in, C_out / group_count, kernel...]``, a tensor or an array.
            strides: steps between the windows of neighbouring inputs, one for each spatial axis.
            bias: ``[C_out]``.
            padding: what is cut off the borders.
            output_padding_values: PyTorch's ``output_padding``: places kept at the end of each axis beyond the formula; smaller
                than the stride or the dilation, and 0 with ``SAME`` and ``LOWER``.
            dilations: steps between the elements of a window; None is 1 everywhere.
            group_count: channels of input and output fall into this many groups, each convolved by itself.

        >>> signal = builder.argument("signal", bg.Float32, shape=["batch", 4, "length"])
        >>> signal.conv_transpose(np.ones((4, 2, 3)), [2], padding=bg.ConvolutionPadding.SAME).shape
        (batch, 2, 2*length)

        Raises:
            ShapeError: ranks or channels do not fit, a spatial axis has size 0, or the padding cuts off everything.
            DTypeError: the operands differ in dtype, or are integers.
            ParameterError: a parameter has not one entry for each spatial axis, or is out of its range.
        """
        extra = None if output_padding_values is None else as_entries(output_padding_values, "output_padding_values")
        op = ConvTranspose(*_parameters(strides, padding, dilations, group_count), extra)
        return self._emit(op, weight) if bias is None else self._emit(op, weight, bias)


def _parameters(
    strides: Sequence[int], padding: ConvolutionPadding, dilations: Sequence[int] | None, group_count: int
) -> tuple[tuple[int, ...], ConvolutionPadding, tuple[int, ...] | None, int]:
    if as_integer(group_count, "group_count") < 1:
        raise ParameterError(f"group_count must be 1 or more, got {group_count}")
    return (
        as_entries(strides, "strides"),
        as_padding(padding),
        None if dilations is None else as_entries(dilations, "dilations"),
        int(group_count),
    )
