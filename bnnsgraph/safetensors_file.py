"""The safetensors layout: named arrays and short texts in one file, without anything that runs.

Eight bytes hold the length of a header, a JSON object that gives the element type, the shape and the place of every array; the
arrays follow without gaps. The package ``safetensors`` reads the files that are written here, and the other way round.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any, BinaryIO, cast

import numpy as np

from bnnsgraph.dtypes import (
    BFloat16,
    Bool,
    DType,
    Float16,
    Float32,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    as_dtype,
)
from bnnsgraph.errors import FileFormatError
from bnnsgraph.memory import empty

Array = np.ndarray[Any, Any]

MOST_HEADER_BYTES = 100_000_000
"""The longest header that the package ``safetensors`` reads."""
MOST_AXES = 64
"""The highest rank of a NumPy array."""

_NAMES: dict[DType, str] = {
    Float16: "F16", BFloat16: "BF16", Float32: "F32", Float64: "F64", Bool: "BOOL",
    Int8: "I8", Int16: "I16", Int32: "I32", Int64: "I64", UInt8: "U8", UInt16: "U16", UInt32: "U32", UInt64: "U64",
}  # fmt: skip
_DTYPES = {name: dtype for dtype, name in _NAMES.items()}
_METADATA = "__metadata__"


def raw(array: Array) -> memoryview:
    """The bytes of an array, in row-major order."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def layout(arrays: Mapping[str, Array], metadata: Mapping[str, str]) -> list[bytes | memoryview]:
    """The parts of a file, one after the other; the same arrays and texts always give the same bytes.

    Arrays of wide elements come first, so that each starts at a multiple of its element's width.
    """
    header: dict[str, Any] = {_METADATA: dict(metadata)}
    parts: list[bytes | memoryview] = []
    start = 0
    for name, array in sorted(arrays.items(), key=lambda item: -item[1].itemsize):
        assert name != _METADATA
        end = start + array.nbytes
        header[name] = {"dtype": _NAMES[as_dtype(array.dtype)], "shape": list(array.shape), "data_offsets": [start, end]}
        parts.append(raw(array))
        start = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > MOST_HEADER_BYTES:
        raise FileFormatError(f"the description must be at most {MOST_HEADER_BYTES} bytes long, got {len(text)}")
    return [len(text).to_bytes(8, "little"), text, *parts]


def read(file: BinaryIO) -> tuple[dict[str, Array], dict[str, str]]:
    """The arrays, which cannot be written to, and the texts of a file; nothing in the file is taken on trust.

    Raises:
        FileFormatError: the file is cut off, too long, or not laid out as described above.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    if size < 8:
        raise FileFormatError(f"a safetensors file must be at least 8 bytes long, got {size}")
    length = int.from_bytes(file.read(8), "little")
    if length > min(size - 8, MOST_HEADER_BYTES):
        raise FileFormatError(f"the header must fit the file, {size} bytes, got a length of {length} bytes")
    header = members(parse(file.read(length)), "the header")
    metadata = members(header.pop(_METADATA, {}), "the metadata")
    for key, value in metadata.items():
        if not isinstance(value, str):
            raise FileFormatError(f"metadata must be texts, got {type(value).__name__} for {key!r}")
    places = sorted((_place(name, entry) for name, entry in header.items()), key=lambda place: place[0])
    end = 0
    for first, last, name, _, _ in places:
        if first != end:
            raise FileFormatError(f"arrays must follow each other without gap or overlap, got {name!r} at {first}, not {end}")
        end = last
    if end != size - 8 - length:
        raise FileFormatError(f"the arrays must take the {end} bytes behind the header, got {size - 8 - length} bytes")
    arrays = {name: _array(file, name, dtype, shape) for _, _, name, dtype, shape in places}
    return {name: arrays[name] for name in header}, metadata


def _place(name: str, entry: object) -> tuple[int, int, str, DType, tuple[int, ...]]:
    """First byte, last byte, name, element type and shape of an array, which agree with each other."""
    fields = members(entry, f"array {name!r}", required={"dtype", "shape", "data_offsets"})
    kind, shape, offsets = fields["dtype"], fields["shape"], fields["data_offsets"]
    dtype = _DTYPES.get(kind) if isinstance(kind, str) else None
    if dtype is None:
        raise FileFormatError(f"array {name!r}: the element type must be one of {', '.join(_DTYPES)}, got {kind!r}")
    if not is_integers(shape) or len(shape) > MOST_AXES:
        raise FileFormatError(f"array {name!r}: the shape must be at most {MOST_AXES} sizes, got {shape!r}")
    if not is_integers(offsets) or len(offsets) != 2:
        raise FileFormatError(f"array {name!r}: the offsets must be two integers of at least 0, got {offsets!r}")
    first, last = offsets
    wanted = math.prod(shape) * dtype.numpy.itemsize
    if last - first != wanted:
        raise FileFormatError(f"array {name!r}: {dtype.name}{shape} must take {wanted} bytes, got {last - first}")
    return first, last, name, dtype, tuple(shape)


def _array(file: BinaryIO, name: str, dtype: DType, shape: tuple[int, ...]) -> Array:
    array: Array = empty(shape, dtype.numpy)
    everything = waiting = raw(array)
    while len(waiting):
        count = file.readinto(waiting)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
        if not count:
            raise FileFormatError(f"array {name!r} must be whole, got a file that ends within it")
        waiting = waiting[count:]
    if dtype is Bool and (largest := int(np.max(everything, initial=0))) > 1:
        raise FileFormatError(f"array {name!r}: the bytes of truth values must be 0 or 1, got {largest}")
    array.flags.writeable = False
    return array


# JSON that nobody vouches for


def parse(text: str | bytes) -> Any:
    """The JSON value, without doubled keys, NaN and infinity."""
    try:
        decoded = text if isinstance(text, str) else text.decode()
        return json.loads(decoded, object_pairs_hook=_pairs, parse_constant=_refuse)
    except FileFormatError:
        raise
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"the description must be JSON in UTF-8, got an error: {error}") from None


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise FileFormatError(f"keys must differ, got {[key for key, _ in pairs]}")
    return found


def _refuse(name: str) -> Any:
    raise FileFormatError(f"numbers must be finite, got {name}")


def members(
    value: object, subject: str, *, required: set[str] | frozenset[str] = frozenset(), optional: set[str] | None = None
) -> dict[str, Any]:
    """``value``, which must be a JSON object: with the required keys alone, but for the optional ones, where keys are named."""
    if not isinstance(value, dict):
        raise FileFormatError(f"{subject} must be a JSON object, got {type(value).__name__}")
    found = cast("dict[str, Any]", value)
    if required or optional is not None:
        missing, unknown = required - found.keys(), found.keys() - required - (optional or set())
        if missing or unknown:
            what = f"nothing for {', '.join(sorted(missing))}" if missing else f"the unknown {', '.join(sorted(unknown))}"
            raise FileFormatError(f"{subject} must have the fields that this version knows, got {what}")
    return found


def is_integers(value: object) -> bool:
    """Whether ``value`` is a list of integers of at least 0 that fit 63 bits."""
    return isinstance(value, list) and all(type(item) is int and 0 <= item < 2**63 for item in cast("list[object]", value))
