"""One value for each window over one or two spatial axes.

Each call is one ``lax.reduce_window``, and a maximum of floats two, as it looks for NaN apart; on the CPU, small windows are
slices that are combined.
"""

from __future__ import annotations

import enum
import functools
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from bnnsgraph.dtypes import Floating, Number, as_dtype
from bnnsgraph.errors import ParameterError, ShapeError
from bnnsgraph.frozen import Frozen, frozen
from bnnsgraph.graph import Op
from bnnsgraph.handle import D, Handle
from bnnsgraph.sizes import Dimension
from bnnsgraph.spec import TensorSpec, require_dtype
from bnnsgraph.windows import (
    PoolingPadding,
    as_entries,
    as_kind,
    as_padding,
    has_few_places,
    larger,
    per_axis,
    places,
    require_elements,
    spatial_axes,
    window_count,
)
from bnnsgraph.xla import accumulator, by_platform, jnp, lax, limits

if TYPE_CHECKING:
    import jax

    from bnnsgraph.tensor import Tensor


class CeilingMode(enum.Enum):
    """Whether elements that fill no whole window at the end of an axis get one (Swift ``Builder.CeilingMode``).

    >>> bg.CeilingMode.CEILING
    CeilingMode.CEILING
    """

    FLOOR = "floor"
    CEILING = "ceiling"

    def __repr__(self) -> str:
        return f"CeilingMode.{self.name}"


@frozen
class PoolingFunction(Frozen):
    """What a window becomes (Swift ``Builder.PoolingFunction``): ``MAX``, ``average(...)`` or ``L2_NORM``.

    >>> bg.PoolingFunction.MAX, bg.PoolingFunction.average(include_padding=False)
    (PoolingFunction.MAX, PoolingFunction.average(include_padding=False))
    """

    kind: Literal["MAX", "average", "L2_NORM"]
    include_padding: bool = False

    MAX: ClassVar[PoolingFunction]
    L2_NORM: ClassVar[PoolingFunction]

    @staticmethod
    def average(include_padding: bool) -> PoolingFunction:
        """The mean of the window, with or without the padding's zeros. Swift: ``average(includePadding:)``

        >>> bg.PoolingFunction.average(True) == bg.PoolingFunction.average(include_padding=True)
        True
        """
        return PoolingFunction("average", bool(include_padding))

    def __repr__(self) -> str:
        suffix = f"(include_padding={self.include_padding})" if self.kind == "average" else ""
        return f"PoolingFunction.{self.kind}{suffix}"


PoolingFunction.MAX = PoolingFunction("MAX")
PoolingFunction.L2_NORM = PoolingFunction("L2_NORM")


@frozen
class Pooling(Op):
    function: PoolingFunction
    kernel_size: tuple[int, ...]
    strides: tuple[int, ...]
    padding: PoolingPadding
    ceiling_mode: CeilingMode

    def infer(self, x: TensorSpec) -> TensorSpec:
        require_dtype(x, Number if self.function == PoolingFunction.MAX else Floating)
        axes = spatial_axes(x, self.padding)
        per_axis(self.kernel_size, axes, "kernel_size")
        per_axis(self.strides, axes, "strides")
        sizes: list[Dimension] = []
        for axis, kernel in enumerate(self.kernel_size):
            if max(self.padding.fixed(axis)) >= kernel:
                raise ParameterError(
                    f"padding must be smaller than the kernel, so that every window holds an element of x, "
                    f"got {max(self.padding.fixed(axis))} for a kernel of {kernel} on axis {axis + 2}"
                )
            sizes.append(self.count(axis, x.shape[axis + 2]))
            if sizes[-1] != 0:
                require_elements(x, axis)
        return x.with_shape((*x.shape[:2], *sizes))

    def count(self, axis: int, size: Any) -> Any:
        """The number of windows on a spatial axis."""
        kernel, stride = self.kernel_size[axis], self.strides[axis]
        if self.ceiling_mode is CeilingMode.FLOOR or self.padding.keeps_size:
            return window_count(self.padding, axis, size, kernel, stride)
        before, after = self.padding.fixed(axis)
        # the smaller of ceil((size + before + after - kernel) / stride) + 1 and ceil((size + before) / stride)
        count = (size + before - max(0, kernel - after - stride) + stride - 1) // stride
        if isinstance(count, int) and count < 1:
            raise ShapeError(
                f"axis {axis + 2} of x must reach into the last stride of a window of {kernel}, padding included, "
                f"got {size + before + after}"
            )
        return count

    def around(self, axis: int, size: Any) -> tuple[Any, Any]:
        """What is added before and after a spatial axis, with what the last window needs."""
        kernel, stride = self.kernel_size[axis], self.strides[axis]
        before, after = self.padding.around(axis, size, kernel, stride)
        if self.ceiling_mode is CeilingMode.CEILING and not self.padding.keeps_size:
            after = larger(after, (self.count(axis, size) - 1) * stride + kernel - size - before)
        return before, after

    def lower(self, x: jax.Array) -> jax.Array:
        by_windows = functools.partial(self.pooled, over=self.over_windows)
        if not has_few_places(self.kernel_size, x.shape, self.infer(TensorSpec(as_dtype(x.dtype), x.shape)).shape):
            return by_windows(x)
        return by_platform(x, cpu=functools.partial(self.pooled, over=self.over_places), default=by_windows)

    def over_windows(self, values: jax.Array, start: Any, combine: Callable[..., jax.Array]) -> jax.Array:
        """Each window combined, as ``lax.reduce_window`` does it."""
        padding = [self.around(axis, size) for axis, size in enumerate(values.shape[2:])]

        def over(values: jax.Array, start: Any) -> jax.Array:
            start = np.asarray(start, values.dtype)  # not a JAX array: the constant tells JAX which reduction this is
            windows, strides = (1, 1, *self.kernel_size), (1, 1, *self.strides)
            return lax.reduce_window(values, start, combine, windows, strides, ((0, 0), (0, 0), *padding))

        if combine is not lax.max or not jnp.issubdtype(values.dtype, jnp.floating):
            return over(values, start)
        # NaN apart: XLA's CPU compiler gives windows without overlap to a library that loses it
        nan = over((values != values).astype(jnp.int8), 0)
        return jnp.where(nan > 0, jnp.nan, over(values, start))

    def over_places(self, values: jax.Array, start: Any, combine: Callable[..., jax.Array]) -> jax.Array:
        """Each window combined, place by place; a maximum is the first of equal elements, or the first NaN."""
        sizes = values.shape[2:]
        found = places(
            values,
            start,
            kernel=self.kernel_size,
            strides=self.strides,
            dilations=(1,) * len(sizes),
            padding=[self.around(axis, size) for axis, size in enumerate(sizes)],
            counts=[self.count(axis, size) for axis, size in enumerate(sizes)],
        )
        if combine is lax.max:
            return functools.reduce(lambda a, b: jnp.where((a >= b) | (a != a), a, b), found)
        return functools.reduce(combine, found)

    def pooled(self, x: jax.Array, over: Callable[..., jax.Array]) -> jax.Array:
        """The function of each window, where ``over(values, start, combine)`` combines the windows of values."""
        wide = x.astype(accumulator(x.dtype))
        match self.function.kind:
            case "MAX":
                return over(x, limits(x.dtype)[0], lax.max)
            case "average":
                total = over(wide, 0, lax.add)
                return (total / self.divisor(x.shape, total.shape).astype(total.dtype)).astype(x.dtype)
            case "L2_NORM":
                squares = over(lax.square(wide), 0, lax.add)
                nothing = squares == 0  # where the root has no derivative, and ours is 0
                root = jnp.where(nothing, 0, jnp.sqrt(jnp.where(nothing, 1, squares)))
                return root.astype(x.dtype)

    def divisor(self, shape: Sequence[Any], windows: Sequence[Any]) -> jax.Array:
        """How many elements each window averages, for the shapes of x and of the result."""
        counts: list[jax.Array] = []
        for axis, size in enumerate(shape[2:]):
            kernel, stride = self.kernel_size[axis], self.strides[axis]
            before, after = self.padding.around(axis, size, kernel, stride)
            first = lax.iota(jnp.int32, windows[axis + 2]) * stride - before
            low, high = (-before, size + after) if self.function.include_padding else (0, size)
            count = jnp.minimum(first + kernel, high) - jnp.maximum(first, low)
            counts.append(lax.expand_dims(count, [other for other in range(len(shape)) if other != axis + 2]))
        return functools.reduce(operator.mul, counts)


class PoolingMethods(Handle[D]):
    """``pooling``."""

    __slots__ = ()

    def pooling(
        self,
        function: PoolingFunction,
        kernel_size: Sequence[int],
        strides: Sequence[int],
        padding: PoolingPadding,
        ceiling_mode: CeilingMode,
    ) -> Tensor[D]:
        """One value for each window over one or two spatial axes of ``[N, C, spatial...]``.

        Swift: ``pooling(_:kernelSize:strides:padding:ceilingMode:)``

        ``PoolingFunction.MAX`` takes numbers of any type, ignores the padding, and gives NaN where the window holds one; its
        gradient goes to the first of equal elements. ``average(include_padding)`` divides the sum by the number of elements of
        x in the window, or counts the padding too, but never what ``CeilingMode.CEILING`` adds beyond it. ``L2_NORM`` is the
        root of the sum of squares; its gradient at a window of zeros is 0. Sums of 16-bit floats are made in float32.

        An axis has ``floor((size + padding - kernel) / stride) + 1`` windows. ``CeilingMode.CEILING`` rounds up instead, so
        that a last window may reach beyond the padding, but leaves out one that would start beyond x and hold nothing of it.
        With ``PoolingPadding.SAME`` and ``LOWER`` there are ``ceil(size / stride)`` in both modes.

        Args:
            function: what a window becomes.
            kernel_size: the window, one size for each spatial axis.
            strides: steps between windows, one for each spatial axis.
            padding: what is added at the borders; custom amounts are smaller than the kernel.
            ceiling_mode: how the number of windows is rounded.

        >>> image = builder.argument("image", bg.Float32, shape=["batch", 3, 32, "width"])
        >>> image.pooling(bg.PoolingFunction.MAX, [2, 3], [2, 2], bg.PoolingPadding.VALID, bg.CeilingMode.FLOOR).shape
        (batch, 3, 16, (width + 1)//2 - 1)

        Raises:
            ShapeError: the rank is not 3 or 4, or a padded axis is shorter than the window.
            DTypeError: an average or norm of integers.
            ParameterError: a parameter has not one entry for each spatial axis, or is out of its range.
        """
        op = Pooling(
            as_kind(function, PoolingFunction.MAX, "function"),
            as_entries(kernel_size, "kernel_size"),
            as_entries(strides, "strides"),
            as_padding(padding),
            as_kind(ceiling_mode, CeilingMode.FLOOR, "ceiling_mode"),
        )
        return self._emit(op)
