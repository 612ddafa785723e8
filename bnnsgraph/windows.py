"""Windows that slide over spatial axes: padding at the borders, and how many windows an axis holds.

Convolutions and poolings read ``[N, C, spatial...]`` with one or two spatial axes. The *extent* of a window is the number of
places that it spans on an axis: ``(kernel - 1) * dilation + 1``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar, cast

from bnnsgraph.errors import ParameterError, ShapeError
from bnnsgraph.frozen import Frozen, frozen
from bnnsgraph.sizes import Dimension
from bnnsgraph.spec import Shape, TensorSpec, as_integer, is_static
from bnnsgraph.xla import jax, lax

MOST_PLACES = 49
"""Up to so many places of a kernel, XLA's CPU compiler is far faster with one slice of all windows for each place, which it
fuses, than with windows: 2 to 18 times for maxima and sums, 20 to 80 times for a convolution of each channel by itself (16
channels of 64 x 64, kernels of 2 x 2 to 7 x 7, jaxlib 0.10.2)."""

K = TypeVar("K")


@frozen
class ConvolutionPadding(Frozen):
    """What is added at both ends of each spatial axis (Swift ``Builder.ConvolutionPadding``, also ``Builder.PoolingPadding``).

    ``VALID`` adds nothing. ``SAME`` adds what makes the output ``ceil(size / stride)`` long, half of it before and half after,
    and the odd element after; ``LOWER`` puts the odd element before. ``custom`` adds what it is told.

    >>> bg.ConvolutionPadding.SAME, bg.ConvolutionPadding.custom([0, 1]) == bg.ConvolutionPadding.custom((0, 1))
    (ConvolutionPadding.SAME, True)
    """

    kind: Literal["VALID", "SAME", "LOWER", "custom"]
    amounts: tuple[int, ...] = ()

    VALID: ClassVar[ConvolutionPadding]
    SAME: ClassVar[ConvolutionPadding]
    LOWER: ClassVar[ConvolutionPadding]

    @staticmethod
    def custom(padding: Iterable[int]) -> ConvolutionPadding:
        """Amounts of one's own, two an axis: ``[before_0, after_0, before_1, after_1]``. Swift: ``custom(padding:)``

        PyTorch's ``padding=(p, q)`` is ``[p, p, q, q]`` here; ONNX lists ``pads`` as ``[p0, p1, q0, q1]``, all ends last.

        >>> bg.ConvolutionPadding.custom([1, 1, 2, 2])
        ConvolutionPadding.custom([1, 1, 2, 2])

        Raises:
            ParameterError: an amount is negative or no integer.
        """
        return ConvolutionPadding("custom", at_least(as_entries(padding, "padding"), 0, "padding"))

    @property
    def keeps_size(self) -> bool:
        """Whether the output's size follows from the stride alone, as with ``SAME`` and ``LOWER``."""
        return self.kind in ("SAME", "LOWER")

    def fixed(self, axis: int) -> tuple[int, int]:
        """What ``VALID`` and ``custom`` add before and after a spatial axis, counted from 0."""
        return (self.amounts[2 * axis], self.amounts[2 * axis + 1]) if self.kind == "custom" else (0, 0)

    def halves(self, total: Any) -> tuple[Any, Any]:
        """What ``SAME`` and ``LOWER`` add before and after, of ``total``."""
        half = total // 2
        return (half, total - half) if self.kind == "SAME" else (total - half, half)

    def around(self, axis: int, size: Any, extent: Any, stride: int) -> tuple[Any, Any]:
        """What is added before and after a spatial axis of ``size`` (an integer, or JAX's symbolic one)."""
        if not self.keeps_size:
            return self.fixed(axis)
        return self.halves(larger(0, extent - 1 - (size - 1) % stride))

    def __repr__(self) -> str:
        return f"ConvolutionPadding.{self.kind}" + (f"({list(self.amounts)})" if self.kind == "custom" else "")


ConvolutionPadding.VALID = ConvolutionPadding("VALID")
ConvolutionPadding.SAME = ConvolutionPadding("SAME")
ConvolutionPadding.LOWER = ConvolutionPadding("LOWER")

PoolingPadding: TypeAlias = ConvolutionPadding
"""Padding of poolings: the same type (Swift ``Builder.PoolingPadding``)."""


def larger(a: Any, b: Any) -> Any:
    """The larger of two sizes, which may be JAX's symbolic ones."""
    return jax.core.max_dim(a, b)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]


def as_kind(value: object, example: K, subject: str) -> K:
    """``value``, which must be of the type of ``example``."""
    kind = type(example)
    if not isinstance(value, kind):
        raise ParameterError(f"{subject} must be a {kind.__name__}, such as {example!r}, got {value!r}")
    return value


def as_padding(value: object) -> ConvolutionPadding:
    """``value``, which must be a padding."""
    return as_kind(value, ConvolutionPadding.SAME, "padding")


def as_entries(values: object, subject: str) -> tuple[int, ...]:
    """A sequence of integers as a tuple; a lone integer is refused, as Swift refuses it."""
    if not isinstance(values, Iterable) or isinstance(values, (str, bytes)):
        raise ParameterError(f"{subject} must be a sequence of integers, one for each spatial axis, got {values!r}")
    return tuple(as_integer(value, subject) for value in cast("Iterable[object]", values))


def at_least(values: tuple[int, ...], least: int, subject: str) -> tuple[int, ...]:
    """The values, none of which may be below ``least``."""
    if any(value < least for value in values):
        raise ParameterError(f"{subject} must be {least} or more, got {list(values)}")
    return values


def per_axis(values: tuple[int, ...] | None, axes: int, subject: str, least: int = 1) -> tuple[int, ...]:
    """One value for each spatial axis; None is ``least`` on all of them.

    >>> per_axis(None, 2, "dilations")
    (1, 1)
    """
    if values is None:
        return (least,) * axes
    if len(values) != axes:
        raise ParameterError(f"{subject} must have one entry for each of the {axes} spatial axes, got {list(values)}")
    return at_least(values, least, subject)


def spatial_axes(x: TensorSpec, padding: ConvolutionPadding) -> int:
    """The number of spatial axes of ``x``, for which the padding must have its amounts."""
    if x.rank not in (3, 4):
        raise ShapeError(f"x must have rank 3 or 4, [N, C, spatial...] with one or two spatial axes, got rank {x.rank}")
    axes = x.rank - 2
    if padding.kind == "custom" and len(padding.amounts) != 2 * axes:
        raise ParameterError(
            f"padding must have two entries, before and after, for each of the {axes} spatial axes, got {list(padding.amounts)}"
        )
    return axes


def window_count(padding: ConvolutionPadding, axis: int, size: Dimension, extent: Dimension, stride: int) -> Dimension:
    """How many windows start on a spatial axis: ``ceil(size / stride)``, or ``floor((size + padding - extent) / stride) + 1``.

    >>> window_count(ConvolutionPadding.custom([1, 1]), 0, 6, 3, 2), window_count(ConvolutionPadding.SAME, 0, 7, 3, 2)
    (3, 4)
    """
    if padding.keeps_size:
        return (size + stride - 1) // stride
    before, after = padding.fixed(axis)
    padded = size + before + after
    room = padded - extent
    if isinstance(room, int) and room < 0:
        raise ShapeError(f"axis {axis + 2} of x must be as long as the window, {extent}, padding included, got {padded}")
    return (room + stride) // stride  # one form with that of SAME, so that a size reached in two ways is known to be equal


def require_elements(x: TensorSpec, axis: int) -> None:
    """Refuse a spatial axis of size 0."""
    if x.shape[axis + 2] == 0:
        raise ShapeError(f"x must have at least one element on axis {axis + 2}, got size 0")


def has_few_places(kernel: Sequence[int], *shapes: Shape) -> bool:
    """Whether the windows are better read place by place on the CPU; the shapes must be known, and hold elements."""
    return math.prod(kernel) <= MOST_PLACES and hold_elements(*shapes)


def hold_elements(*shapes: Shape) -> bool:
    """Whether all sizes are known, and none is 0."""
    return all(is_static(shape) and 0 not in shape for shape in shapes)


def places(
    x: jax.Array,
    filler: Any,
    *,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: Sequence[tuple[Any, Any]],
    counts: Sequence[Any],
) -> Iterator[jax.Array]:
    """For each place of the kernel, in row-major order, what all windows have there: ``[N, C, counts...]``."""
    padded = lax.pad(x, lax.full((), filler, x.dtype), [(0, 0, 0), (0, 0, 0), *((*around, 0) for around in padding)])
    for place in itertools.product(*map(range, kernel)):
        first = [step * dilation for step, dilation in zip(place, dilations, strict=True)]
        last = [start + (count - 1) * stride + 1 for start, count, stride in zip(first, counts, strides, strict=True)]
        yield lax.slice(padded, (0, 0, *first), (*x.shape[:2], *last), (1, 1, *strides))
