"""Constants that are too large for the source, in a raw file beside it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bnnsgraph.dtypes import DType
from bnnsgraph.swift.text import TYPES, comment

INLINE = 32
"""The number of elements up to which a constant stands in the source."""

ALIGNMENT = 64


class Entry(NamedTuple):
    """One array in the file."""

    offset: int
    array: np.ndarray[Any, Any]
    dtype: DType
    name: str | None


class Weights:
    """Arrays one after the other: little endian, row-major, each at a multiple of 64 bytes, with zeros between them."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._size = 0

    def __bool__(self) -> bool:
        return bool(self.entries)

    def add(self, array: np.ndarray[Any, Any], dtype: DType, name: str | None) -> str:
        """Take an array in; the Swift expression that reads it."""
        for entry in self.entries:
            if entry.array is array:
                break
        else:
            entry = Entry(-(-self._size // ALIGNMENT) * ALIGNMENT, array, dtype, name)
            self.entries.append(entry)
            self._size = entry.offset + array.nbytes
        return f"stored({TYPES[dtype]}.self, count: {array.size}, at: {entry.offset})"

    def data(self) -> bytes:
        """The bytes of the file."""
        content = bytearray(self._size)
        for entry in self.entries:
            little = np.ascontiguousarray(entry.array, entry.array.dtype.newbyteorder("<"))
            content[entry.offset : entry.offset + little.nbytes] = little.tobytes()
        return bytes(content)

    def layout(self, file: str) -> list[str]:
        """The description of the file, as comments."""
        if not self.entries:
            return []
        lines = [
            "//",
            f"// {file}, {self._size} bytes, little endian, row-major:",
            "//   offset      count  type     shape",
        ]
        for entry in self.entries:
            label = f"  {entry.name}" if entry.name else ""
            shape = str(list(entry.array.shape))
            lines.append(comment(f"  {entry.offset:<10}  {entry.array.size:<5}  {TYPES[entry.dtype]:<7}  {shape}{label}"))
        return lines

    def reader(self) -> list[str]:
        """The Swift function that reads an array."""
        if not self.entries:
            return []
        return [
            "let weights = try Data(contentsOf: url, options: .alwaysMapped)",
            "func stored<Element>(_ type: Element.Type, count: Int, at offset: Int) -> [Element] {",
            "    let bytes = offset..<(offset + count * MemoryLayout<Element>.stride)",
            "    return [Element](unsafeUninitializedCapacity: count) { buffer, initialized in",
            "        initialized = weights.copyBytes(to: buffer, from: bytes) / MemoryLayout<Element>.stride",
            "    }",
            "}",
            "",
        ]
