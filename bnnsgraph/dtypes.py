"""Scalar types: one class each, both the static parameter of ``Tensor`` and the run-time dtype.

>>> from bnnsgraph import Float32
>>> Float32.numpy
dtype('float32')
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from bnnsgraph.errors import DTypeError

if TYPE_CHECKING:
    import numpy.typing as npt


class Scalar:
    """The base of all element types. Subclasses are used as values and never instantiated."""

    name: ClassVar[str]
    """NumPy's name of the type, such as ``"float32"``."""

    bits: ClassVar[int]
    """Storage width of one element."""

    numpy: ClassVar[np.dtype[Any]]
    """The NumPy dtype with the same values and layout."""

    def __init__(self) -> None:
        raise TypeError(f"{type(self).__name__} is a type of elements, not a value; write builder.constant(...)")


class Number(Scalar):
    """Element types with arithmetic."""


class Floating(Number):
    """Binary floating-point element types."""


class Integer(Number):
    """Signed and unsigned integer element types."""


class Float16(Floating):
    """IEEE 754 binary16 (Swift ``Float16``)."""

    name, bits, numpy = "float16", 16, np.dtype(np.float16)


class _BFloat16Name:
    """Reads NumPy's bfloat16 dtype from ``ml_dtypes`` when it is first needed."""

    def __get__(self, instance: object, owner: type) -> np.dtype[Any]:
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)


class BFloat16(Floating):
    """The upper half of binary32: 8 exponent bits, 8 bits of precision. Not in Apple's builder."""

    name, bits = "bfloat16", 16
    numpy = _BFloat16Name()  # pyright: ignore[reportAssignmentType]


class Float32(Floating):
    """IEEE 754 binary32 (Swift ``Float``)."""

    name, bits, numpy = "float32", 32, np.dtype(np.float32)


class Float64(Floating):
    """IEEE 754 binary64. Not in Apple's builder."""

    name, bits, numpy = "float64", 64, np.dtype(np.float64)


class Int8(Integer):
    """Signed 8-bit integers (Swift ``Int8``)."""

    name, bits, numpy = "int8", 8, np.dtype(np.int8)


class Int16(Integer):
    """Signed 16-bit integers (Swift ``Int16``)."""

    name, bits, numpy = "int16", 16, np.dtype(np.int16)


class Int32(Integer):
    """Signed 32-bit integers (Swift ``Int32``)."""

    name, bits, numpy = "int32", 32, np.dtype(np.int32)


class Int64(Integer):
    """Signed 64-bit integers (Swift ``Int64``)."""

    name, bits, numpy = "int64", 64, np.dtype(np.int64)


class UInt8(Integer):
    """Unsigned 8-bit integers (Swift ``UInt8``)."""

    name, bits, numpy = "uint8", 8, np.dtype(np.uint8)


class UInt16(Integer):
    """Unsigned 16-bit integers (Swift ``UInt16``)."""

    name, bits, numpy = "uint16", 16, np.dtype(np.uint16)


class UInt32(Integer):
    """Unsigned 32-bit integers (Swift ``UInt32``)."""

    name, bits, numpy = "uint32", 32, np.dtype(np.uint32)


class UInt64(Integer):
    """Unsigned 64-bit integers (Swift ``UInt64``)."""

    name, bits, numpy = "uint64", 64, np.dtype(np.uint64)


class Bool(Scalar):
    """Truth values, one byte each (Swift ``Bool``)."""

    name, bits, numpy = "bool", 8, np.dtype(np.bool_)


DType: TypeAlias = type[Scalar]
"""An element type as a value: one of the classes above."""

DTypeLike: TypeAlias = "npt.DTypeLike | DType"
"""Whatever names an element type: a class above, ``np.float32``, ``"float32"``, ``np.dtype(...)``."""

ALL: tuple[DType, ...] = (
    Float16, BFloat16, Float32, Float64, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64, Bool,
)  # fmt: skip

_BY_NAME: dict[str, DType] = {dtype.name: dtype for dtype in ALL}


def as_dtype(value: DTypeLike) -> DType:
    """The element type that ``value`` names.

    >>> as_dtype("int8").__name__, as_dtype(np.float64).__name__
    ('Int8', 'Float64')

    Raises:
        DTypeError: nothing here has that name (complex numbers, strings, objects).
    """
    if isinstance(value, type) and issubclass(value, Scalar):
        if value in _CLASSES:
            return value
        raise DTypeError(f"{value.__name__} is a group of element types; name one, such as Float32 or Int32")
    name = value if isinstance(value, str) else None
    if name not in _BY_NAME and value is not None:  # pyright: ignore[reportUnnecessaryComparison]
        try:
            name = np.dtype(value).name
        except TypeError:
            name = None
    found = _BY_NAME.get(name) if name is not None else None
    if found is None:
        known = ", ".join(_BY_NAME)
        raise DTypeError(f"the element type must be one of {known}; got {value!r}")
    return found


_CLASSES = frozenset(ALL)


def is_signed(dtype: DType) -> bool:
    """Whether the type has negative values.

    >>> is_signed(Int8), is_signed(UInt8)
    (True, False)
    """
    return issubclass(dtype, Floating) or (issubclass(dtype, Integer) and not dtype.name.startswith("u"))
