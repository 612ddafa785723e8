"""The builder: arguments, constants, and what takes several tensors."""

from __future__ import annotations

import keyword
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any, overload

import numpy as np

from bnnsgraph.dtypes import Bool, DTypeLike, Float32, Int32, Scalar, as_dtype
from bnnsgraph.errors import ArgumentError, DTypeError, ParameterError, ShapeError, UnableToMakeGraphError
from bnnsgraph.graph import Argument, Constant, Graph, Intent, Op, Recorder, Value
from bnnsgraph.handle import ArrayLike, Handle, Operand, U, as_array, convert, own
from bnnsgraph.ops.creation import Arange, Fill, as_bound
from bnnsgraph.ops.einsum import Einsum
from bnnsgraph.ops.movement import Concatenate
from bnnsgraph.ops.rearrangement import Stack
from bnnsgraph.options import CompileOptions
from bnnsgraph.origin import here
from bnnsgraph.spec import TensorSpec, as_integer, as_shape, element_count, format_shape, is_static
from bnnsgraph.tensor import Tensor


class Builder:
    """Records a graph (Swift ``BNNSGraph.Builder``). :func:`make_context` makes one and hands it to the block.

    >>> b = Builder()
    >>> b.argument("x", bg.Float32, shape=["batch", 3]) + 1
    float32[batch, 3] Add()
    """

    def __init__(self, options: CompileOptions | None = None) -> None:
        self._recorder = Recorder(options or CompileOptions())
        self._arguments: dict[str, Tensor[Any]] = {}

    @overload
    def argument(
        self, name: str | None = ..., *, data_type: type[U], shape: Iterable[object] = ..., intent: Intent = ...
    ) -> Tensor[U]: ...
    @overload
    def argument(
        self, name: str | None, data_type: type[U], shape: Iterable[object] = ..., intent: Intent = ...
    ) -> Tensor[U]: ...
    @overload
    def argument(
        self, name: str | None = ..., data_type: DTypeLike = ..., shape: Iterable[object] = ..., intent: Intent = ...
    ) -> Tensor[Any]: ...
    def argument(
        self,
        name: str | None = None,
        data_type: DTypeLike = Float32,
        shape: Iterable[object] = (),
        intent: Intent = Intent.INPUT,
    ) -> Tensor[Any]:
        """An input of the graph. Swift: ``argument(name:dataType:shape:intent:)``

        Args:
            name: an identifier, by which runs pass the value; None numbers it, ``argument_0``.
            data_type: the element type.
            shape: sizes; -1 is flexible, and so is a name such as ``"batch"``, which must have one size throughout the graph.
            intent: ``Intent.INPUT_OUTPUT`` makes state: the block updates it by slice assignment (``state[...] = new``) and a
                run returns its new value after the outputs.

        >>> builder.argument("tokens", bg.Int32, shape=["batch", 128])
        tokens: int32[batch, 128] Argument

        Raises:
            ArgumentError: the name is taken, or is no identifier.
        """
        name = f"argument_{len(self._arguments)}" if name is None else name
        if not is_identifier(name):
            raise ArgumentError(f"the name of an argument must be a Python identifier, got {name!r}")
        if name in self._arguments:
            raise ArgumentError(
                f"names of arguments must differ, got {name!r} twice",
                f"first declared at {self._arguments[name]._value.node.origin}",  # pyright: ignore[reportPrivateUsage]
            )
        if not isinstance(intent, Intent):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ParameterError(f"intent must be Intent.INPUT or Intent.INPUT_OUTPUT, got {intent!r}")
        spec = TensorSpec(as_dtype(data_type), as_shape(shape))
        value = self._recorder.record(Argument(name, spec, intent))[0]
        self._recorder.arguments.append(value)
        self._arguments[name] = tensor = Tensor[Any](self._recorder, value, name)
        return tensor

    @overload
    def constant(
        self, name: str | None = ..., *, data_type: type[U], value: object = ..., values: ArrayLike | None = ...,
        shape: Iterable[object] | None = ..., row_major: bool = ...,
    ) -> Tensor[U]: ...  # fmt: skip
    @overload
    def constant(
        self, name: str | None = ..., *, value: ArrayLike | None = ..., values: ArrayLike | None = ...,
        data_type: DTypeLike | None = ..., shape: Iterable[object] | None = ..., row_major: bool = ...,
    ) -> Tensor[Any]: ...  # fmt: skip
    def constant(
        self,
        name: str | None = None,
        *,
        value: object = None,
        values: ArrayLike | None = None,
        data_type: DTypeLike | None = None,
        shape: Iterable[object] | None = None,
        row_major: bool = False,
    ) -> Tensor[Any]:
        """An array recorded with the graph.

        Swift: ``constant(name:value:)``, ``constant(name:values:shape:)``, ``constant(values:rowMajor:)``

        NumPy and JAX arrays keep their dtype; NumPy arrays are copied. Python integers become Int32, floats Float32 and
        booleans Bool, unless ``data_type`` says otherwise.

        Args:
            name: a label for listings.
            value: one number; the result has rank 0.
            values: numbers, nested rows or an array.
            data_type: the element type.
            shape: with ``values``, the shape to give the flat values, in row-major order.
            row_major: Swift's flag; rows are always rows here, so it changes nothing.

        >>> builder.constant(values=[[1.0, 2.0], [3.0, 4.0]]).shape, builder.constant(value=3).data_type.name
        ((2, 2), 'int32')

        Raises:
            DTypeError: the values do not fit the element type.
            ShapeError: rows differ in length, or the number of values is not that of ``shape``.
        """
        del row_major
        if (value is None) == (values is None):
            raise ParameterError("constant must be given value= (one number) or values= (an array), and not both")
        given = values if value is None else value
        if isinstance(given, Handle):
            raise DTypeError("values must be numbers or an array, got a tensor, which can be used as it is")
        array = _read(given, None if data_type is None else as_dtype(data_type))
        if value is not None and array.ndim:
            raise ShapeError(f"value must be one number, got an array of shape {format_shape(array.shape)}; write values=")
        if shape is not None:
            array = _shaped(array, as_shape(shape))
        spec = TensorSpec(as_dtype(array.dtype), array.shape)
        return Tensor[Any](self._recorder, self._recorder.record(Constant(array, spec, name))[0], name)

    def concatenate(self, tensors: Sequence[Operand[U]], axis: int) -> Tensor[U]:
        """The tensors one after the other along ``axis``. Swift: ``concatenate(_:axis:)``

        All have one dtype, one rank, and equal sizes off the axis. Arrays among them become constants of the first tensor's
        dtype.

        >>> builder.concatenate([x, x], axis=1).shape
        (2, 6)

        Raises:
            ShapeError: ranks or sizes off the axis differ.
            DTypeError: dtypes differ.
        """
        return self._combine(Concatenate(as_integer(axis, "axis")), tensors)

    def _combine(self, op: Op, tensors: Sequence[Operand[U]]) -> Tensor[U]:
        """Record ``op`` on several tensors; arrays among them become constants of the first tensor's dtype."""
        first = next((tensor for tensor in tensors if isinstance(tensor, Handle)), None)
        if first is None:
            raise ParameterError(f"tensors must hold at least one tensor, got {len(tensors)} without any")
        own(self._recorder, first)
        values = [first._enter(tensor) for tensor in tensors]  # pyright: ignore[reportPrivateUsage]
        return Tensor[U](self._recorder, self._recorder.record(op, tuple(values))[0])

    # Not in Apple's builder

    def stack(self, tensors: Sequence[Operand[U]], axis: int = 0) -> Tensor[U]:
        """Tensors of one shape beside each other along a new axis, as ``numpy.stack``. Not in Apple's builder.

        >>> builder.stack([x, x], axis=-1).shape
        (2, 3, 2)

        Raises:
            ShapeError: shapes differ.
            DTypeError: dtypes differ.
        """
        return self._combine(Stack(as_integer(axis, "axis")), tensors)

    def einsum(self, equation: str, *tensors: Operand[U]) -> Tensor[U]:
        """Products summed over the letters that the result does not have, as ``numpy.einsum``. Not in Apple's builder.

        One letter an axis: axes of one letter have one size, never broadcast; ``...`` stands for axes that broadcast. Without
        ``->`` the result has the letters that occur once, in alphabetical order. float32 products are full float32, and 16-bit
        floats are summed in float32.

        >>> builder.einsum("ij,kj->ik", x, x).shape, builder.einsum("...j->...", x).shape
        ((2, 2), (2,))

        Raises:
            ParameterError: the equation cannot be read, or does not fit the number of tensors.
            ShapeError: a rank or a size does not fit the equation.
        """
        return self._combine(Einsum(equation), tensors)

    def where(self, condition: Operand[Bool], x: Operand[U], y: Operand[U]) -> Tensor[U]:
        """``x`` where the condition holds, ``y`` elsewhere, as ``numpy.where``: ``condition.select(x, y)``.

        Not in Apple's builder under this name.

        >>> builder.where(x > 0, x, 0).shape
        (2, 3)
        """
        mask: Any = condition if isinstance(condition, Handle) else self.constant(values=condition, data_type=Bool)
        return mask.select(x, y)

    @overload
    def fill(self, shape: Iterable[object], value: float | bool, data_type: type[U]) -> Tensor[U]: ...
    @overload
    def fill(self, shape: Iterable[object], value: float | bool, data_type: DTypeLike | None = ...) -> Tensor[Any]: ...
    def fill(self, shape: Iterable[object], value: float | bool, data_type: DTypeLike | None = None) -> Tensor[Any]:
        """A tensor of one value, as ``numpy.full``. Not in Apple's builder.

        Args:
            shape: integers and names of flexible sizes.
            value: a number; it must fit the element type.
            data_type: the element type; by itself Int32 for integers, Float32 for floats and Bool for booleans.

        >>> bg.make_context(lambda b: b.fill([2], 0.5))()
        Array([0.5, 0.5], dtype=float32)
        """
        number = _read(value, None if data_type is None else as_dtype(data_type))
        if number.ndim:
            raise ShapeError(f"value must be one number, got an array of shape {format_shape(number.shape)}")
        op = Fill(as_shape(shape), value, as_dtype(number.dtype))
        return Tensor[Any](self._recorder, self._recorder.record(op)[0])

    @overload
    def arange(self, start: object, stop: object | None = ..., step: float = ..., *, data_type: type[U]) -> Tensor[U]: ...
    @overload
    def arange(
        self, start: object, stop: object | None = ..., step: float = ..., *, data_type: DTypeLike | None = ...
    ) -> Tensor[Any]: ...
    def arange(
        self, start: object, stop: object | None = None, step: float = 1, *, data_type: DTypeLike | None = None
    ) -> Tensor[Any]:
        """The numbers from ``start`` to before ``stop``, as ``numpy.arange``. Not in Apple's builder.

        Args:
            start: a number, or the stop where it stands alone.
            stop: a number, or the name of a flexible size.
            step: a number other than 0.
            data_type: the element type; by itself Int32, or Float32 where a float is among the numbers.

        >>> bg.make_context(lambda b: b.arange(1, 8, 3))()
        Array([1, 4, 7], dtype=int32)
        >>> tokens = builder.argument("tokens", bg.Int32, shape=["length"])
        >>> builder.arange("length").shape
        (length,)
        """
        bounds = [0 if stop is None else as_bound(start, "start"), as_bound(start if stop is None else stop, "stop")]
        pace = as_bound(step, "step")
        fractional = any(isinstance(bound, float) for bound in (*bounds, pace))
        dtype = (Float32 if fractional else Int32) if data_type is None else as_dtype(data_type)
        return Tensor[Any](self._recorder, self._recorder.record(Arange(bounds[0], bounds[1], pace, dtype))[0])

    @contextmanager
    def group(self, name: str) -> Generator[None]:
        """Draw what is recorded inside as one part of the graph, which unfolds. Not in Apple's builder.

        Groups nest, and a slash in a name nests too. Also a decorator. Nothing that is computed depends on groups.

        >>> with builder.group("encoder.0"):
        ...     with builder.group("attention"):
        ...         y = x.softmax(-1)

        Raises:
            ParameterError: the name is empty, or has nothing on one side of a slash.
        """
        if not isinstance(name, str) or not all(name.split("/")):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ParameterError(f"the name of a group must be a text with nothing empty around a slash, got {name!r}")
        recorder, outer = self._recorder, self._recorder.group
        recorder.group = f"{outer}/{name}" if outer else name
        try:
            yield
        finally:
            recorder.group = outer

    def finish(self, results: object) -> Graph:
        """Freeze what was recorded into the graph that computes ``results``, and record no more.

        ``results`` is a tensor, a sequence of tensors, or a dictionary of tensors by name.

        Raises:
            UnableToMakeGraphError: ``results`` holds no tensors, or anything else.
            ForeignTensorError: a tensor belongs to another builder.
        """
        names, tensors = _named_results(results)
        values = [own(self._recorder, tensor) for tensor in tensors]
        updates: dict[Value, Value] = {}
        for declared, tensor in zip(self._recorder.arguments, self._arguments.values(), strict=True):
            current: Value = tensor._value  # pyright: ignore[reportPrivateUsage, reportUnknownVariableType]
            operation = declared.node.op
            assert isinstance(operation, Argument)
            if operation.intent is Intent.INPUT_OUTPUT:
                if current.spec != declared.spec:
                    raise ShapeError(
                        f"in-out argument {operation.name!r} must keep its type, {declared.spec}, got {current.spec}"
                    )
                updates[declared] = current
        taken = {*self._arguments, *(name for name in names if name)}
        for index, name in enumerate(names):
            if name is None:
                names[index] = _free(f"output_{index}", taken)
        final = [name for name in names if name is not None]
        clash = [name for name in final if name in self._arguments or final.count(name) > 1]
        if clash:
            raise UnableToMakeGraphError(
                f"names of outputs must differ from each other and from the arguments', got {clash[0]!r}"
            )
        self._recorder.finished = here()
        return Graph(self._recorder.arguments, values, final, updates, self._recorder.options)


def is_identifier(name: object) -> bool:
    """Whether ``name`` can name an argument or an output.

    >>> is_identifier("x"), is_identifier("my x"), is_identifier("class"), is_identifier(3)
    (True, False, False, False)
    """
    return isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name)


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _named_results(results: object) -> tuple[list[str | None], list[Tensor[Any]]]:
    if isinstance(results, dict):
        names: list[Any] = list(results)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        tensors: list[Any] = list(results.values())  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    else:
        tensors = list(results) if isinstance(results, (tuple, list)) else [results]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        names = [_output_name(tensor) for tensor in tensors]
    if not tensors or results is None:
        raise UnableToMakeGraphError(
            "the block must return a tensor, several, or a dictionary of them, got nothing; is a return missing?"
        )
    for name, tensor in zip(names, tensors, strict=True):
        if not isinstance(tensor, Tensor):
            raise UnableToMakeGraphError(f"the block must return tensors, got {type(tensor).__name__} ({_short(tensor)})")
        if name is not None and (not is_identifier(name) or name.startswith("_")):
            raise UnableToMakeGraphError(
                f"the name of an output must be a Python identifier without a leading underscore, got {name!r}"
            )
    return names, tensors


def _output_name(tensor: object) -> str | None:
    """The name a user gave a result with ``named``; that of an argument or constant stays its own."""
    if not isinstance(tensor, Tensor) or isinstance(tensor._value.node.op, (Argument, Constant)):  # pyright: ignore[reportPrivateUsage]
        return None
    return tensor.name


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _read(values: object, dtype: type[Scalar] | None) -> np.ndarray[Any, Any]:
    """The array of a constant; Python numbers have the builder's default types."""
    if dtype is None:
        array = as_array(values)
        if hasattr(values, "dtype"):
            dtype = as_dtype(array.dtype)
        else:
            kind = array.dtype.kind
            dtype = Bool if kind == "b" else Int32 if kind in "iu" else Float32
    return convert(values, dtype)


def _shaped(array: np.ndarray[Any, Any], shape: tuple[Any, ...]) -> np.ndarray[Any, Any]:
    if not is_static(shape):
        raise ShapeError(f"the shape of a constant must be fixed, got {format_shape(shape)}")
    if array.size == 1 and array.ndim == 0:
        result = np.broadcast_to(array, shape).copy()
    elif array.size != element_count(shape):
        raise ShapeError(f"shape must hold the {array.size} values, got {format_shape(shape)} with {element_count(shape)}")
    else:
        result = array.reshape(shape)
    result.flags.writeable = False
    return result
