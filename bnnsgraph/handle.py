"""What every tensor can do before any operation is defined: say what it is, take operands, and emit operations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeAlias, TypeVar, cast

import numpy as np

from bnnsgraph.dtypes import Bool, DType, Floating, Integer, Scalar, as_dtype
from bnnsgraph.errors import DTypeError, ForeignTensorError, ShapeError, UndefinedValueError
from bnnsgraph.graph import Constant, Op, Recorder, Value
from bnnsgraph.memory import empty, is_frozen
from bnnsgraph.sizes import UNKNOWN, Dimension
from bnnsgraph.spec import TensorSpec, element_count, row_major_stride

if TYPE_CHECKING:
    import numpy.typing as npt

    from bnnsgraph.tensor import Tensor

D = TypeVar("D", bound=Scalar)
F = TypeVar("F", bound=Floating)
I = TypeVar("I", bound=Integer)  # noqa: E741
U = TypeVar("U", bound=Scalar)


class Handle(Generic[D]):
    """A value of a graph under construction.

    The families of operations derive from this class, and :class:`bnnsgraph.Tensor` from all families.
    """

    __slots__ = ("_name", "_recorder", "_value")
    __array_ufunc__ = None  # NumPy arrays on the left of an operator leave the work to the tensor

    def __init__(self, recorder: Recorder, value: Value, name: str | None = None) -> None:
        self._recorder = recorder
        self._value = value
        self._name = name

    # What it is

    @property
    def data_type(self) -> DType:
        """The element type (Swift ``dataType``)."""
        return self._value.spec.dtype

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype of the elements."""
        return self._value.spec.dtype.numpy

    @property
    def shape(self) -> tuple[Any, ...]:
        """Sizes of the axes (Swift ``shape``): integers, names of flexible sizes, and -1 where nothing is known."""
        return _visible(self._value.spec.shape)

    @property
    def stride(self) -> tuple[Any, ...]:
        """Row-major distances between neighbours, in elements (Swift ``stride``)."""
        return _visible(row_major_stride(self._value.spec.shape))

    @property
    def rank(self) -> int:
        """The number of axes (Swift ``rank``)."""
        return self._value.spec.rank

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._value.spec.rank

    @property
    def size(self) -> Any:
        """The number of elements; -1 when a size is unknown."""
        return _visible((element_count(self._value.spec.shape),))[0]

    @property
    def name(self) -> str | None:
        """The name given to this tensor, if any."""
        return self._name

    @property
    def spec(self) -> TensorSpec:
        """Element type and shape in one value."""
        return self._value.spec

    def named(self, name: str) -> Tensor[D]:
        """The same tensor under a name: an output returned from the block is then called so.

        >>> (x + 1).named("successor").name
        'successor'
        """
        return self._wrap(self._value, name)

    # Recording

    def _wrap(self, value: Value, name: str | None = None) -> Any:
        return type(self)(self._recorder, value, name)

    def _emit(self, op: Op, *operands: object) -> Any:
        """Record ``op`` on this tensor and ``operands``; arrays and numbers become constants of this tensor's dtype."""
        values = [self._value]
        for operand in operands:
            values.append(
                operand._value if type(operand) is type(self) and operand._recorder is self._recorder else self._enter(operand)
            )
        recorder = self._recorder
        return type(self)(recorder, recorder.record(op, tuple(values))[0])

    def _emit_many(self, op: Op, *operands: object) -> tuple[Any, ...]:
        """Record an operation with several results."""
        values = (self._value, *[self._enter(operand) for operand in operands])
        return tuple(self._wrap(value) for value in self._recorder.record(op, values))

    def _enter(self, operand: object, dtype: DType | None = None) -> Value:
        """The value of an operand: a tensor of this builder, or an array or number as a constant."""
        if isinstance(operand, Handle):
            return own(self._recorder, cast("Handle[Any]", operand))
        return enter_constant(self._recorder, operand, dtype or self.data_type)

    # What Python must not ask

    def __bool__(self) -> NoReturn:
        raise self._undefined("bool(tensor)", "compare with tensor operations and choose with mask.select(a, b)")

    def __len__(self) -> NoReturn:
        raise self._undefined("len(tensor)", "read tensor.shape[0]")

    def __iter__(self) -> NoReturn:
        raise self._undefined("iterating over a tensor", "index it: tensor[0], tensor[1], ...")

    def __float__(self) -> NoReturn:
        raise self._undefined("float(tensor)", "return the tensor from the block and read the context's result")

    def __int__(self) -> NoReturn:
        raise self._undefined("int(tensor)", "return the tensor from the block and read the context's result")

    def __index__(self) -> NoReturn:
        raise self._undefined("using a tensor as a Python index", "use tensor.gather(indices, axis)")

    if not TYPE_CHECKING:  # a declared __array__ would make every tensor an operand of every dtype to type checkers

        def __array__(self, *args: object, **kwargs: object) -> NoReturn:
            raise self._undefined("numpy.asarray(tensor)", "return the tensor from the block and read the context's result")

    def _undefined(self, what: str, remedy: str) -> UndefinedValueError:
        return UndefinedValueError(
            f"{what}: a tensor must have a value for this, got {self._value.spec} that is only recorded; {remedy}",
            f"made at {self._value.node.origin}",
        )


def _visible(shape: Sequence[Dimension]) -> tuple[Any, ...]:
    return tuple(-1 if size is UNKNOWN else size for size in shape)


def own(recorder: Recorder, operand: Handle[Any]) -> Value:
    """The value of a tensor that must belong to ``recorder``."""
    if operand._recorder is not recorder:  # pyright: ignore[reportPrivateUsage]
        value = operand._value  # pyright: ignore[reportPrivateUsage]
        raise ForeignTensorError(
            f"a tensor must be used with the builder that made it, got {value.spec} of another builder",
            f"made at {value.node.origin}",
        )
    return operand._value  # pyright: ignore[reportPrivateUsage]


def enter_constant(recorder: Recorder, values: object, dtype: DType) -> Value:
    """Record an array or number as an unnamed constant of ``dtype``."""
    array = convert(values, dtype)
    return recorder.record(Constant(array, TensorSpec(dtype, array.shape)))[0]


# Arrays and numbers

ArrayLike: TypeAlias = "npt.ArrayLike"
"""Numbers, nested lists, NumPy arrays and JAX arrays."""

Operand: TypeAlias = "Handle[D] | ArrayLike"
"""A tensor of one dtype, or something that becomes a constant of it (Swift ``OperationParameter``)."""

Axes: TypeAlias = Sequence[int] | int
"""One axis or several; negative ones count from the end."""


def own_copy(array: np.ndarray[Any, Any], *, needed: bool) -> np.ndarray[Any, Any]:
    """A read-only row-major array, copied when somebody could still write to the one given."""
    if needed and not is_frozen(array):
        result = empty(array.shape, array.dtype)
        result[...] = array
    else:
        result = np.ascontiguousarray(array).reshape(array.shape)
    result.flags.writeable = False
    return result


def as_array(values: object, dtype: DType | None = None) -> np.ndarray[Any, Any]:
    """The NumPy array of ``values``, without conversion; ragged and non-numeric input is refused."""
    try:
        array: np.ndarray[Any, Any] = np.asarray(values)
    except ValueError:
        raise ShapeError(f"values must be a number or rows of equal length, got {_short(values)}") from None
    except OverflowError:
        array = np.asarray(values, dtype=object)
    if array.dtype.kind in "OSUMm":
        limit = f" that fit {dtype.name}" if dtype is not None else ""
        raise DTypeError(f"values must be numbers{limit}, got {_short(values)}")
    as_dtype(array.dtype)
    return array


def convert(values: object, dtype: DType) -> np.ndarray[Any, Any]:
    """``values`` as an array of ``dtype``, refused where the conversion would lose more than the rounding of a float.

    >>> from bnnsgraph import Int32
    >>> convert([1, 2], Int32)
    array([1, 2], dtype=int32)
    """
    kind = type(values)
    if kind in (int, float, bool) and (scalar := _scalar(cast("float", values), dtype)) is not None:
        return scalar
    array = as_array(values, dtype)
    source = as_dtype(array.dtype)
    if source is dtype:
        return own_copy(array, needed=isinstance(values, np.ndarray))
    if array.size:
        _check_conversion(array, source, dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        result = empty(array.shape, dtype.numpy)
        np.copyto(result, array, casting="unsafe")
    if array.size and issubclass(source, Floating) and issubclass(dtype, Floating):
        lost = np.isfinite(array) & ~np.isfinite(result.astype(np.float64))
        if lost.any():
            raise DTypeError(f"values must fit {dtype.name}, got {array[lost].flat[0]}, which would become infinite")
    return own_copy(result, needed=False)


def _scalar(value: float, dtype: DType) -> np.ndarray[Any, Any] | None:
    """A Python number as a constant, where no rule about its conversion can be broken; None elsewhere."""
    if issubclass(dtype, Floating):
        fits = type(value) is not bool and (abs(value) < 6e4 or value != value)
    else:
        fits = type(value) is int and issubclass(dtype, Integer) and 0 <= value <= 127
    if not fits:
        return None
    array: np.ndarray[Any, Any] = np.array(value, dtype.numpy)
    array.flags.writeable = False
    return array


def _check_conversion(array: np.ndarray[Any, Any], source: DType, dtype: DType) -> None:
    if (source is Bool) != (dtype is Bool):
        raise DTypeError(f"values must be {dtype.name} to be used with a {dtype.name} tensor, got {source.name}")
    if issubclass(dtype, Integer):
        if issubclass(source, Floating):
            raise DTypeError(
                f"values must be integers to be used with a {dtype.name} tensor, got {source.name}; "
                f"cast the tensor: .cast(to=Float32)"
            )
        bounds = np.iinfo(dtype.numpy)
        low, high = int(array.min()), int(array.max())
        if low < bounds.min or high > bounds.max:
            wrong = low if low < bounds.min else high
            raise DTypeError(f"values must fit {dtype.name}, [{bounds.min}, {bounds.max}], got {wrong}")
    elif issubclass(source, Integer) and float(np.abs(array.astype(np.float64)).max()) > _largest(dtype):
        raise DTypeError(f"values must fit {dtype.name}, got {array.max()}")


def _largest(dtype: DType) -> float:
    return math.inf if dtype.bits > 16 or dtype.name == "bfloat16" else float(np.finfo(np.float16).max)


def _short(values: object) -> str:
    text = repr(values)
    return text if len(text) <= 60 else text[:57] + "..."
