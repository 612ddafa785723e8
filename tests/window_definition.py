"""What convolutions and poolings mean, as loops over single windows in NumPy. Slow and plain on purpose: the tests' judge.

Padding is given as Apple gives it: ``"VALID"``, ``"SAME"``, ``"LOWER"``, or a list of two amounts for each spatial axis.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import bnnsgraph as bg

Array = np.ndarray[Any, Any]
Padding = str | Sequence[int]


def padding_of(padding: Padding) -> bg.ConvolutionPadding:
    """The same as the library's value."""
    return getattr(bg.ConvolutionPadding, padding) if isinstance(padding, str) else bg.ConvolutionPadding.custom(padding)


def amounts(padding: Padding, sizes: Sequence[int], extents: Sequence[int], strides: Sequence[int]) -> list[tuple[int, int]]:
    """Before and after each spatial axis."""
    if not isinstance(padding, str):
        return [(padding[2 * axis], padding[2 * axis + 1]) for axis in range(len(sizes))]
    found: list[tuple[int, int]] = []
    for size, extent, stride in zip(sizes, extents, strides, strict=True):
        total = 0 if padding == "VALID" else max(0, (math.ceil(size / stride) - 1) * stride + extent - size)
        found.append((total - total // 2, total // 2) if padding == "LOWER" else (total // 2, total - total // 2))
    return found


def conv(
    x: Array,
    weight: Array,
    strides: Sequence[int],
    bias: Array | None = None,
    padding: Padding = "VALID",
    dilations: Sequence[int] | None = None,
    groups: int = 1,
) -> Array:
    """``result[n, o, i] = bias[o] + sum(c, k) weight[o, c, k] * padded[n, c, i * strides + k * dilations]``."""
    kernel = weight.shape[2:]
    dilations = dilations or [1] * len(kernel)
    extents = [(size - 1) * dilation + 1 for size, dilation in zip(kernel, dilations, strict=True)]
    pads = amounts(padding, x.shape[2:], extents, strides)
    padded = np.pad(x, [(0, 0), (0, 0), *pads])
    sizes = [(p - e) // s + 1 for p, e, s in zip(padded.shape[2:], extents, strides, strict=True)]
    result = np.zeros((x.shape[0], weight.shape[0], *sizes))
    for i in np.ndindex(*sizes):
        window = tuple(slice(p * s, p * s + e, d) for p, s, e, d in zip(i, strides, extents, dilations, strict=True))
        for o in range(weight.shape[0]):
            first = o // (weight.shape[0] // groups) * weight.shape[1]
            values = padded[(slice(None), slice(first, first + weight.shape[1]), *window)]
            result[(slice(None), o, *i)] = np.sum(values * weight[o], axis=tuple(range(1, x.ndim)))
    return result if bias is None else result + bias.reshape(-1, *[1] * len(kernel))


def conv_transpose(
    x: Array,
    weight: Array,
    strides: Sequence[int],
    bias: Array | None = None,
    padding: Padding = "VALID",
    output_padding: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    groups: int = 1,
) -> Array:
    """``result[n, o, i * strides + k * dilations - before] += x[n, c, i] * weight[c, o, k]``."""
    kernel = weight.shape[2:]
    dilations = dilations or [1] * len(kernel)
    output_padding = output_padding or [0] * len(kernel)
    extents = [(size - 1) * dilation + 1 for size, dilation in zip(kernel, dilations, strict=True)]
    if isinstance(padding, str) and padding != "VALID":  # the transpose of the convolution that has x's shape as its result
        sizes = [size * stride for size, stride in zip(x.shape[2:], strides, strict=True)]
        starts = [before for before, _ in amounts(padding, sizes, extents, strides)]
    else:
        pads = amounts(padding, x.shape[2:], extents, strides)
        starts = [before for before, _ in pads]
        sizes = [
            (size - 1) * stride + extent - before - after + extra
            for size, stride, extent, (before, after), extra in zip(
                x.shape[2:], strides, extents, pads, output_padding, strict=True
            )
        ]
    result = np.zeros((x.shape[0], weight.shape[1] * groups, *sizes))
    for i in np.ndindex(*x.shape[2:]):
        for k in np.ndindex(*kernel):
            place = tuple(p * s + q * d - before for p, s, q, d, before in zip(i, strides, k, dilations, starts, strict=True))
            if not all(0 <= p < size for p, size in zip(place, sizes, strict=True)):
                continue
            for c in range(x.shape[1]):
                first = c // (x.shape[1] // groups) * weight.shape[1]
                for o in range(weight.shape[1]):
                    result[(slice(None), first + o, *place)] += x[(slice(None), c, *i)] * weight[(c, o, *k)]
    return result if bias is None else result + bias.reshape(-1, *[1] * len(kernel))


def pooling(x: Array, function: str, kernel: Sequence[int], strides: Sequence[int], padding: Padding, ceiling: bool) -> Array:
    """``function`` is ``max``, ``average``, ``average_all`` (the padding counts too) or ``l2``."""
    sizes = x.shape[2:]
    pads = amounts(padding, sizes, kernel, strides)
    counts: list[int] = []
    for size, (before, after), k, s in zip(sizes, pads, kernel, strides, strict=True):
        steps = (size + before + after - k) / s
        count = 1 + (math.ceil(steps) if ceiling and padding not in ("SAME", "LOWER") else math.floor(steps))
        if (count - 1) * s >= size + before:
            count -= 1
        counts.append(count)
    result = np.zeros((*x.shape[:2], *counts), x.dtype)
    for i in np.ndindex(*counts):
        starts = [p * s - before for p, s, (before, _) in zip(i, strides, pads, strict=True)]
        inside = tuple(slice(max(0, a), min(a + k, size)) for a, k, size in zip(starts, kernel, sizes, strict=True))
        values = x[(slice(None), slice(None), *inside)]
        axes = tuple(range(2, x.ndim))
        if function == "max":
            answer = values.max(axes)
        elif function == "l2":
            answer = np.sqrt((values * values).sum(axes))
        else:
            padded = [
                min(a + k, size + after) - max(a, -before)
                for a, k, size, (before, after) in zip(starts, kernel, sizes, pads, strict=True)
            ]
            count = math.prod(padded) if function == "average_all" else math.prod(values.shape[2:])
            answer = values.sum(axes) / count
        result[(slice(None), slice(None), *i)] = answer
    return result


FUNCTIONS = {
    "max": bg.PoolingFunction.MAX,
    "average": bg.PoolingFunction.average(include_padding=False),
    "average_all": bg.PoolingFunction.average(include_padding=True),
    "l2": bg.PoolingFunction.L2_NORM,
}
"""The library's values of the names above."""


def product(**choices: Sequence[Any]) -> list[dict[str, Any]]:
    """Every combination of the choices, as keyword arguments."""
    return [dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())]


@dataclass(frozen=True)
class Case:
    """One call: a convolution or a pooling of an array of one shape."""

    kind: str
    shape: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    padding: Padding
    dilations: tuple[int, ...] = ()
    groups: int = 1
    extra: tuple[int, ...] = ()
    ceiling: bool = False

    @property
    def weight(self) -> tuple[int, ...]:
        """Three channels out for each group."""
        if self.kind == "conv":
            return (3 * self.groups, self.shape[1] // self.groups, *self.kernel)
        return (self.shape[1], 3, *self.kernel)

    @property
    def extents(self) -> list[int]:
        """How many places the window spans on each axis."""
        steps = self.dilations or (1,) * len(self.kernel)
        return [(size - 1) * step + 1 for size, step in zip(self.kernel, steps, strict=True)]

    @property
    def amounts(self) -> list[tuple[int, int]]:
        """The padding of each axis."""
        return amounts(self.padding, self.shape[2:], self.extents, self.strides)

    @property
    def same(self) -> bool:
        """Whether the output's size follows from the stride alone."""
        return self.padding in ("SAME", "LOWER")

    @property
    def gaps(self) -> bool:
        """Whether neighbouring windows leave places out."""
        return any(extent < stride for extent, stride in zip(self.extents, self.strides, strict=True))

    @property
    def possible(self) -> bool:
        """Whether the library takes it."""
        rooms = [
            size + before + after - extent
            for size, extent, (before, after) in zip(self.shape[2:], self.extents, self.amounts, strict=True)
        ]
        if self.kind == "conv":
            return self.same or min(rooms) >= 0
        if self.kind == "conv_transpose":
            limits = zip(self.extra, self.strides, self.dilations, strict=True)
            return all(extra < max(step) for extra, *step in limits) and not (self.same and any(self.extra))
        low = [1 - stride if self.ceiling else 0 for stride in self.strides]
        fits = self.same or all(room >= least for room, least in zip(rooms, low, strict=True))
        return fits and all(max(ends) < kernel for ends, kernel in zip(self.amounts, self.kernel, strict=True))

    def ours(self, x: Any, weight: Any) -> Any:
        """The call as a user writes it."""
        padding = padding_of(self.padding)
        match self.kind:
            case "conv":
                return x.conv(weight, self.strides, padding=padding, dilations=self.dilations, group_count=self.groups)
            case "conv_transpose":
                return x.conv_transpose(
                    weight, self.strides, padding=padding, output_padding_values=self.extra, dilations=self.dilations,
                    group_count=self.groups,
                )  # fmt: skip
            case _:
                mode = bg.CeilingMode.CEILING if self.ceiling else bg.CeilingMode.FLOOR
                return x.pooling(FUNCTIONS[self.kind], self.kernel, self.strides, padding, mode)

    def defined(self, x: Array, weight: Array) -> Array:
        """The answer of the loops."""
        match self.kind:
            case "conv":
                return conv(x, weight, self.strides, None, self.padding, self.dilations, self.groups)
            case "conv_transpose":
                return conv_transpose(x, weight, self.strides, None, self.padding, self.extra, self.dilations, self.groups)
            case _:
                return pooling(x, self.kind, self.kernel, self.strides, self.padding, self.ceiling)


def cases(kind: str) -> list[Case]:
    """Every combination of the parameters that the library takes."""
    paddings = ["VALID", "SAME", "LOWER", (1, 1), (0, 2), (2, 1)]
    if kind in ("conv", "conv_transpose"):
        one = product(
            shape=[(2, 4, 7)], kernel=[(1,), (2,), (4,)], strides=[(1,), (2,), (3,)], padding=paddings, dilations=[(1,), (2,)],
            groups=[1, 2, 4], extra=[(0,), (1,)] if kind == "conv_transpose" else [()],
        )  # fmt: skip
        two = product(
            shape=[(1, 2, 6, 5)], kernel=[(2, 3), (3, 1)], strides=[(1, 2), (3, 2)],
            padding=["VALID", "SAME", "LOWER", (0, 1, 2, 1)], dilations=[(1, 1), (2, 1)], groups=[1, 2],
            extra=[(0, 0), (1, 0)] if kind == "conv_transpose" else [()],
        )  # fmt: skip
    else:
        one = product(
            shape=[(2, 2, 7), (1, 2, 6)], kernel=[(1,), (2,), (3,), (4,)], strides=[(1,), (2,), (3,)], padding=paddings,
            ceiling=[False, True],
        )  # fmt: skip
        two = product(
            shape=[(1, 2, 6, 5)], kernel=[(2, 3), (3, 2)], strides=[(1, 2), (3, 2)],
            padding=["VALID", "SAME", "LOWER", (0, 1, 1, 1), (1, 0, 0, 1)], ceiling=[False, True],
        )  # fmt: skip
    return [case for case in (Case(kind, **choice) for choice in [*one, *two]) if case.possible]
