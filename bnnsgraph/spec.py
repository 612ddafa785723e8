"""What is known of a tensor before it exists, and the rules that operations share."""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from bnnsgraph.dtypes import Bool, DType, Floating, Integer, Number, Scalar
from bnnsgraph.errors import DTypeError, ParameterError, ShapeError
from bnnsgraph.sizes import UNKNOWN, Dimension, as_dimension

Shape: TypeAlias = tuple[Dimension, ...]

EPSILON = 2.0**-11.5
"""What Apple's builder adds where it avoids dividing by zero: the square root of the float32 epsilon, 3.4526698e-4."""


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Element type and shape of a tensor; sizes may be flexible."""

    dtype: DType
    shape: Shape

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def with_shape(self, shape: Iterable[Dimension]) -> TensorSpec:
        """The same elements in another shape."""
        return TensorSpec(self.dtype, tuple(shape))

    def with_dtype(self, dtype: DType) -> TensorSpec:
        """The same shape with another element type."""
        return TensorSpec(dtype, self.shape)

    def bind(self, sizes: Mapping[str, Any]) -> TensorSpec:
        """The spec with every named size replaced by its value."""
        return self.with_shape(bind_shape(self.shape, sizes))

    def __str__(self) -> str:
        return f"{self.dtype.name}{format_shape(self.shape)}"


# Shapes


def format_shape(shape: Sequence[Dimension]) -> str:
    """The shape as users write it.

    >>> format_shape((as_dimension("batch"), 3))
    '[batch, 3]'
    """
    return "[" + ", ".join(map(str, shape)) + "]"


def as_shape(shape: Iterable[object], subject: str = "shape") -> Shape:
    """A shape from integers, -1 and names; a lone integer is refused because ``shape=3`` and ``shape=[3]`` differ.

    >>> as_shape(["batch", 3])
    (batch, 3)
    """
    if isinstance(shape, (str, bytes)) or not hasattr(shape, "__iter__"):
        raise ShapeError(f"{subject} must be a sequence of sizes such as [2, 3], got {shape!r}")
    return tuple(as_dimension(size) for size in shape)


def bind_shape(shape: Shape, sizes: Mapping[str, Any]) -> tuple[Any, ...]:
    """The shape with every named size replaced by its value."""
    return tuple(size if isinstance(size, int) or size is UNKNOWN else size.bind(sizes) for size in shape)


def is_static(shape: Sequence[Dimension]) -> bool:
    """Whether every size is known.

    >>> is_static((2, 3)), is_static((2, UNKNOWN))
    (True, False)
    """
    return all(isinstance(size, int) for size in shape)


def element_count(shape: Sequence[Dimension]) -> Dimension:
    """The product of the sizes; 1 for a scalar."""
    return math.prod(shape)  # pyright: ignore[reportArgumentType, reportUnknownVariableType, reportCallIssue]


def row_major_stride(shape: Sequence[Dimension]) -> Shape:
    """Distance, in elements, between neighbours along each axis of a dense row-major tensor.

    >>> row_major_stride((2, 3, 4))
    (12, 4, 1)
    """
    return tuple(element_count(shape[axis + 1 :]) for axis in range(len(shape)))


def equal_size(a: Dimension, b: Dimension) -> Dimension | None:
    """The size that both must be, or None when they cannot be shown equal. A fixed size wins over a flexible one."""
    if a == b or b is UNKNOWN:
        return a
    if a is UNKNOWN:
        return b
    if isinstance(a, int) != isinstance(b, int):
        return a if isinstance(a, int) else b
    return None


def broadcast_shapes(*shapes: Shape) -> Shape:
    """NumPy's broadcasting: trailing axes are aligned, and sizes agree or one of them is 1.

    >>> broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    if len(shapes) == 2 and (shapes[0] == shapes[1] or not shapes[1]):
        return shapes[0]
    rank = max(map(len, shapes), default=0)
    result: list[Dimension] = []
    for axis in range(-rank, 0):
        size: Dimension = 1
        for shape in shapes:
            if len(shape) >= -axis:
                merged = _broadcast_size(size, shape[axis])
                if merged is None:
                    texts = " and ".join(map(format_shape, shapes))
                    raise ShapeError(
                        f"shapes must broadcast (trailing sizes equal, or 1), got {texts}: {_clash(size, shape[axis])}"
                    )
                size = merged
        result.append(size)
    return tuple(result)


def _broadcast_size(a: Dimension, b: Dimension) -> Dimension | None:
    if a == b or a == 1:
        return b
    if b == 1:
        return a
    if isinstance(a, int) or isinstance(b, int):
        return equal_size(a, b)
    return UNKNOWN if a is UNKNOWN or b is UNKNOWN else None


def _clash(a: Dimension, b: Dimension) -> str:
    if isinstance(a, int) and isinstance(b, int):
        return f"{a} against {b}"
    return f"{a} and {b} are not known to be equal; give equal dimensions one name"


def require_equal_size(a: Dimension, b: Dimension, subject: str) -> Dimension:
    """The common size of two dimensions that must be equal, never broadcast."""
    size = equal_size(a, b)
    if size is None:
        raise ShapeError(f"{subject} must be equal, got {_clash(a, b)}")
    return size


# Axes


def as_integer(value: object, subject: str) -> int:
    """``value`` as a Python integer; floats and booleans are refused."""
    if isinstance(value, (bool, np.bool_)):
        raise ParameterError(f"{subject} must be an integer, got {value!r}")
    try:
        return operator.index(value)  # pyright: ignore[reportArgumentType]
    except TypeError:
        raise ParameterError(f"{subject} must be an integer, got {value!r}") from None


def as_number(value: object, subject: str, *, finite: bool = True) -> float:
    """``value`` as a Python float; NaN, truth values and text are refused, and infinities unless ``finite`` is False.

    >>> as_number(1, "epsilon")
    1.0
    """
    number = math.nan
    if not isinstance(value, (bool, np.bool_, complex, np.complexfloating, str, bytes)) and getattr(value, "ndim", 0) == 0:
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            number = float(value)  # pyright: ignore[reportArgumentType]
    if math.isnan(number) or (finite and math.isinf(number)):
        raise ParameterError(f"{subject} must be {'a finite number' if finite else 'a number'}, got {value!r}")
    return number


def as_epsilon(value: object) -> float:
    """``value`` as what is added to a variance or to a sum of squares: a number of at least 0.

    >>> as_epsilon(0)
    0.0
    """
    number = as_number(value, "epsilon")
    if number < 0:
        raise ParameterError(f"epsilon must be at least 0, got {number}")
    return number


def normalize_axis(axis: int, rank: int, subject: str = "axis") -> int:
    """The axis counted from the front.

    >>> normalize_axis(-1, 3)
    2
    """
    index = as_integer(axis, subject)
    if not -rank <= index < rank:
        if rank == 0:
            raise ShapeError(f"{subject} must name an axis, but the tensor has rank 0, got {index}")
        raise ShapeError(f"{subject} must be in [{-rank}, {rank}), got {index}")
    return index + rank if index < 0 else index


def normalize_axes(axes: Sequence[int], rank: int, subject: str = "axes") -> tuple[int, ...]:
    """The axes counted from the front, in the order given; each at most once.

    >>> normalize_axes([-1, 0], 3)
    (2, 0)
    """
    found = tuple(normalize_axis(axis, rank, subject) for axis in axes)
    if len(set(found)) != len(found):
        raise ShapeError(f"{subject} must be different from each other, got {list(axes)}")
    return found


def as_axes(axes: Iterable[int] | int, subject: str = "axes") -> tuple[int, ...]:
    """Axes as a tuple of integers; a lone integer is one axis."""
    if isinstance(axes, Iterable):
        return tuple(as_integer(axis, subject) for axis in axes)
    return (as_integer(axes, subject),)


def reduced(shape: Shape, axes: tuple[int, ...], keep_dimensions: bool) -> Shape:
    """The shape after a reduction over ``axes``.

    >>> reduced((2, 3, 4), (1,), True), reduced((2, 3, 4), (1,), False)
    ((2, 1, 4), (2, 4))
    """
    if keep_dimensions:
        return tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    return tuple(size for axis, size in enumerate(shape) if axis not in axes)


# Element types

_GROUPS: dict[type[Scalar], str] = {Floating: "a float type", Integer: "an integer type", Number: "a number type", Bool: "bool"}


def require_dtype(spec: TensorSpec, group: type[Scalar], operand: str = "x") -> None:
    """Refuse an operand whose elements are not of the group (``Floating``, ``Integer``, ``Number``, ``Bool``)."""
    if not issubclass(spec.dtype, group):
        example = "; write .cast(to=Float32) first" if group in (Floating, Number) else ""
        raise DTypeError(f"{operand} must be of {_GROUPS.get(group, group.__name__)}, got {spec.dtype.name}{example}")


def require_same_dtype(**operands: TensorSpec) -> DType:
    """The one element type of all operands; there is no implicit promotion."""
    specs = iter(operands.items())
    first_name, first = next(specs)
    for name, spec in specs:
        if spec.dtype is not first.dtype:
            raise DTypeError(
                f"{first_name} and {name} must have one dtype, got {first.dtype.name} and {spec.dtype.name}; "
                f"write .cast(to={first.dtype.__name__}) on {name}, or .cast(to={spec.dtype.__name__}) on {first_name}"
            )
    return first.dtype
