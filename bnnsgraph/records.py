"""What a saved graph may hold: the closed lists of operations and of the kinds of their parameters, and their form in JSON.

Loading makes objects of these classes alone, and each field is checked against its annotation, so that a file cannot name
anything else. A new operation is added to ``OPERATIONS`` here, which a test asks for.

A field that has its default is left out. A parameter that JSON has no form for is an object with one key, its kind:
``{"Size": ...}``, ``{"DType": "float32"}``, ``{"Direction": "FORWARD"}``, ``{"Padding": {"kind": "REFLECTION"}}``.
"""

from __future__ import annotations

import enum
import functools
import math
import typing
from dataclasses import MISSING, Field, fields
from types import UnionType
from typing import Any, cast

import numpy as np

from bnnsgraph.dtypes import ALL, DType
from bnnsgraph.errors import FileFormatError
from bnnsgraph.graph import Argument, Constant, Intent, Op
from bnnsgraph.openvino import MergeLeadingAxes
from bnnsgraph.ops import (
    activation,
    arithmetic,
    attention,
    axiswise,
    casting,
    comparison,
    convolution,
    creation,
    einsum,
    elementwise,
    gathering,
    linear,
    lstm,
    movement,
    normalization,
    padding,
    pooling,
    rearrangement,
    recurrent,
    reduction,
    scattering,
    slicing,
    sorting,
    trigonometry,
)
from bnnsgraph.options import Fill, OptimizationPreference
from bnnsgraph.recurrence import Activation, Direction
from bnnsgraph.safetensors_file import members
from bnnsgraph.sizes import MOST_TERMS, UNKNOWN, Dimension, Quotient, Size
from bnnsgraph.windows import ConvolutionPadding

_OPERATIONS: tuple[type[Op], ...] = (
    Argument, Constant, MergeLeadingAxes,
    activation.ClampedReLU, activation.ELU, activation.Erf, activation.GELU, activation.GELUSigmoidApproximation,
    activation.GELUTanhApproximation, activation.HardSigmoid, activation.HardSwish, activation.LeakyReLU, activation.PReLU,
    activation.ReLU, activation.ReLU6, activation.ScaledTanh, activation.SiLU, activation.Sigmoid, activation.Softplus,
    activation.Softsign, activation.ThresholdedReLU,
    arithmetic.Add, arithmetic.Divide, arithmetic.FloorDivide, arithmetic.FusedMultiplyAdd, arithmetic.Maximum,
    arithmetic.Minimum, arithmetic.Multiply, arithmetic.Negate, arithmetic.Power, arithmetic.Remainder, arithmetic.Subtract,
    attention.ScaledDotProductAttention,
    axiswise.ArgMax, axiswise.ArgMin, axiswise.CumulativeSum, axiswise.LogSoftmax, axiswise.Softmax,
    casting.Cast,
    comparison.And, comparison.Equal, comparison.Greater, comparison.GreaterEqual, comparison.Less, comparison.LessEqual,
    comparison.Not, comparison.NotEqual, comparison.Or, comparison.Select, comparison.Xor,
    convolution.Conv, convolution.ConvTranspose,
    creation.Arange, creation.Fill,
    einsum.Einsum,
    elementwise.Abs, elementwise.Ceil, elementwise.Clip, elementwise.Exp, elementwise.Exp2, elementwise.Floor,
    elementwise.IsInf, elementwise.IsNaN, elementwise.Log, elementwise.Reciprocal, elementwise.Round, elementwise.Rsqrt,
    elementwise.Sign, elementwise.Sqrt, elementwise.Threshold,
    gathering.Gather, gathering.GatherAlongAxis, gathering.GatherND,
    linear.Linear, linear.MatMul,
    lstm.BidirectionalLSTM, lstm.LSTM,
    movement.Concatenate, movement.Reshape, movement.ReshapeTo, movement.Squeeze, movement.TensorShape, movement.Transpose,
    movement.Unsqueeze,
    normalization.BatchNorm, normalization.ChannelNorm, normalization.GroupNorm, normalization.InstanceNorm,
    normalization.LayerNorm, normalization.RMSNorm,
    padding.Pad,
    pooling.Pooling,
    rearrangement.BandPart, rearrangement.BroadcastTo, rearrangement.OneHot, rearrangement.Reverse, rearrangement.Split,
    rearrangement.Stack, rearrangement.Tile,
    recurrent.GRU, recurrent.RNN,
    reduction.L2Normalize, reduction.ReduceL1Norm, reduction.ReduceL2Norm, reduction.ReduceLogSum, reduction.ReduceLogSumExp,
    reduction.ReduceMaximum, reduction.ReduceMean, reduction.ReduceMinimum, reduction.ReduceProduct, reduction.ReduceSum,
    reduction.ReduceSumOfSquares,
    scattering.Scatter, scattering.ScatterAlongAxis, scattering.ScatterND,
    slicing.Slice, slicing.SliceUpdate,
    sorting.ArgSort, sorting.Sort, sorting.TopK,
    trigonometry.Acos, trigonometry.Acosh, trigonometry.Asin, trigonometry.Asinh, trigonometry.Atan, trigonometry.Atanh,
    trigonometry.Cos, trigonometry.Cosh, trigonometry.Sin, trigonometry.Sinh, trigonometry.Tan, trigonometry.Tanh,
)  # fmt: skip

OPERATIONS: dict[str, type[Op]] = {operation.__name__: operation for operation in _OPERATIONS}
"""Every operation that a graph can hold, by the name it has in files."""

ENUMERATIONS: dict[str, type[enum.Enum]] = {
    choice.__name__: choice
    for choice in (
        Activation, Direction, Intent, OptimizationPreference, pooling.CeilingMode, scattering.ScatterMode, sorting.SortOrder,
    )
}  # fmt: skip

RECORDS: dict[str, type[Any]] = {
    record.__name__: record for record in (ConvolutionPadding, Fill, padding.Padding, pooling.PoolingFunction, slicing.Span)
}
"""Parameters that are made of several; ``Fill`` is the out-of-bounds mode, not the operation."""


MOST_FACTORS = 64
"""The most factors of a term of a flexible size."""


LARGEST = 2**1024
"""The integers of parameters are smaller; a float could not be larger."""


# Values


def encode(value: Any) -> Any:
    """A parameter as JSON.

    >>> encode((1, float("inf"), Size.named("batch") * 2))
    [1, {'float': 'inf'}, {'Size': [[2, ['batch']]]}]
    """
    if isinstance(value, np.generic):  # a NumPy number where a Python one serves as well
        number = cast("Any", value)
        value = number.item() if number.dtype.kind in "biuf" else float(number)
    kind = cast("type[Any]", type(value))
    if value is None or kind in (bool, str):
        return value
    if issubclass(kind, enum.Enum) and ENUMERATIONS.get(kind.__name__) is kind:
        return {kind.__name__: value.name}
    if kind is int and abs(value) < LARGEST:
        return value
    if kind is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if kind is tuple or kind is list:
        return [encode(item) for item in value]
    if isinstance(value, Size):
        return {"Size": [[times, [_encode_atom(atom) for atom in atoms]] for atoms, times in value.terms]}
    if isinstance(value, type) and value in ALL:
        return {"DType": cast(DType, value).name}
    if RECORDS.get(kind.__name__) is kind:
        return {kind.__name__: encode_fields(value)}
    raise FileFormatError(f"a parameter must be of a kind that files can hold, got {value!r}")


def _encode_atom(atom: str | Quotient) -> Any:
    return atom if isinstance(atom, str) else {"Quotient": [encode(atom.numerator)["Size"], atom.divisor]}


def decode(value: Any) -> Any:
    """The parameter that ``encode`` wrote.

    >>> decode({"Size": [[2, ["batch"]]]}), decode({"DType": "int8"}), decode([1, 0.5, None])
    (2*batch, <class 'bnnsgraph.dtypes.Int8'>, (1, 0.5, None))
    """
    kind = cast("type[Any]", type(value))
    if value is None or kind in (bool, str):
        return value
    if kind is int and abs(value) < LARGEST:
        return value
    if kind is float and math.isfinite(value):
        return value
    if kind is list:
        return tuple([decode(item) for item in value])
    if kind is dict and len(value) == 1:
        [(tag, inner)] = value.items()
        return _decode_tagged(tag, inner)
    raise FileFormatError(f"a parameter must be of a kind that this version knows, got {_short(value)}")


def _decode_tagged(tag: str, inner: Any) -> Any:
    if tag == "Size":
        return _decode_size(inner)
    if tag == "DType":
        found: Any = {dtype.name: dtype for dtype in ALL}.get(inner) if isinstance(inner, str) else None
    elif tag == "float":
        found = float(inner) if inner in ("inf", "-inf", "nan") else None
    elif tag in ENUMERATIONS:
        found = ENUMERATIONS[tag].__members__.get(inner) if isinstance(inner, str) else None
    elif tag in RECORDS:
        return decode_fields(RECORDS[tag], inner)
    else:
        raise FileFormatError(f"a parameter must be of a kind that this version knows, got {tag!r}")
    if found is None:
        raise FileFormatError(f"a {tag} must be one that this version knows, got {_short(inner)}")
    return found


def _decode_size(given: Any) -> Dimension:
    """The size, made by arithmetic, so that it has the normal form of this version."""
    if not isinstance(given, list) or len(cast("list[Any]", given)) > MOST_TERMS:
        raise FileFormatError(f"a Size must be a list of at most {MOST_TERMS} terms, got {given!r:.60}")
    total: dict[Any, int] = {}
    for term in cast("list[Any]", given):
        match term:
            case [int(times), [*atoms]] if type(times) is int and abs(times) < 2**63 and len(atoms) <= MOST_FACTORS:
                product: Any = times
                for atom in atoms:
                    product = product * _decode_atom(atom)
            case _:
                raise FileFormatError(f"a term of a Size must be a number, {MOST_FACTORS} factors at most, got {_short(term)}")
        for monomial, count in product.terms if isinstance(product, Size) else [((), product)]:
            total[monomial] = total.get(monomial, 0) + count
    if not given:
        return UNKNOWN
    terms = {monomial: count for monomial, count in total.items() if count}
    size = Size(terms) if terms.keys() - {()} else terms.get((), 0)
    if not is_bounded(size):
        raise FileFormatError(f"the numbers of a Size must fit 64 bits, got {size!r:.60}")
    return size


def is_bounded(size: Dimension) -> bool:
    """Whether the numbers in a size fit 64 bits, and its terms have no more factors than files can hold."""
    if isinstance(size, int):
        return abs(size) < 2**63
    return all(
        abs(times) < 2**63
        and len(atoms) <= MOST_FACTORS
        and all(isinstance(atom, str) or (is_bounded(atom.divisor) and is_bounded(atom.numerator)) for atom in atoms)
        for atoms, times in size.terms
    )


def _decode_atom(atom: Any) -> Dimension:
    match atom:
        case str(name) if name.isidentifier():
            return Size.named(name)
        case {"Quotient": [[_, *_] as numerator, int(divisor)]} if type(divisor) is int and divisor and len(atom) == 1:
            return _decode_size(numerator) // divisor
        case _:
            raise FileFormatError(f"a factor of a Size must be a name or a quotient, got {_short(atom)}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


# Fields


def encode_fields(owner: Any) -> dict[str, Any]:
    """The fields of an operation or record that have not their default."""
    kind = cast("type[Any]", type(owner))
    found: dict[str, Any] = {}
    for name, (_, default) in declared(kind).items():
        value = encode(getattr(owner, name))
        if default is MISSING or repr(value) != repr(encode(default)):  # repr: 0, 0.0, -0.0 and False are not the same
            found[name] = value
    return found


def decode_fields(kind: type[Any], given: Any) -> Any:
    """The operation or record of ``kind`` with the fields ``given``, each of the type that the class declares."""
    known = declared(kind)
    required = {name for name, (_, default) in known.items() if default is MISSING}
    found = members(given, kind.__name__, required=required, optional=known.keys() - required)
    values: dict[str, Any] = {}
    for name, value in found.items():
        values[name] = decode(value)
        hint = known[name][0]
        if not conforms(values[name], hint):
            wanted = getattr(hint, "__name__", None) if isinstance(hint, type) else str(hint)
            raise FileFormatError(f"{kind.__name__}.{name} must be of type {wanted}, got {_short(values[name])}")
    return kind(**values)


@functools.cache
def declared(kind: type[Any]) -> dict[str, tuple[Any, Any]]:
    """The annotation and the default of each field."""
    hints = typing.get_type_hints(kind)
    defaults: dict[str, Any] | None = getattr(kind, "_field_defaults", None)
    if defaults is not None:  # a NamedTuple
        return {name: (hint, defaults.get(name, MISSING)) for name, hint in hints.items()}
    listed: tuple[Field[Any], ...] = fields(kind)
    return {field.name: (hints[field.name], field.default) for field in listed}


def conforms(value: object, hint: Any) -> bool:
    """Whether ``value`` is of the annotated type.

    >>> conforms((1, 2), tuple[int, ...]), conforms(True, int), conforms(None, int | None), conforms(1, float)
    (True, False, True, True)
    """
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, UnionType):
        return any(conforms(value, choice) for choice in arguments)
    if origin is typing.Literal:
        return any(type(value) is type(choice) and value == choice for choice in arguments)
    if origin is tuple:
        if type(value) is not tuple:
            return False
        items = cast("tuple[object, ...]", value)
        if arguments[-1] is Ellipsis:
            return all(conforms(item, arguments[0]) for item in items)
        return len(items) == len(arguments) and all(conforms(*pair) for pair in zip(items, arguments, strict=True))
    if origin is type:
        return isinstance(value, type) and value in ALL
    if hint is None or hint is type(None):
        return value is None
    return type(value) is hint or (hint is float and type(value) is int)
