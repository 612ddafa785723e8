"""Pieces of Swift text: identifiers, numbers, arrays, expressions."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bnnsgraph.dtypes import (
    Bool,
    DType,
    Float16,
    Float32,
    Floating,
    Int8,
    Int16,
    Int32,
    Int64,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
)

TYPES: dict[DType, str] = {
    Float16: "Float16", Float32: "Float", Bool: "Bool", Int8: "Int8", Int16: "Int16", Int32: "Int32", Int64: "Int64",
    UInt8: "UInt8", UInt16: "UInt16", UInt32: "UInt32", UInt64: "UInt64",
}  # fmt: skip
"""The element types that Apple's builder has, as Swift names them."""

_WORDS = """
actor as async await break builder case catch class continue default defer deinit do else enum extension fallthrough false
fileprivate for func guard if import in indirect init inout internal is let nil nonisolated operator precedencegroup private
protocol public repeat rethrows return self Self static stored struct subscript super switch throw throws true try typealias
var weights where while Any Bool Float Float16 Int BNNSGraph SliceRange URL Data
"""
RESERVED = frozenset(_WORDS.split())
"""Words of the language, and names that an emitted function uses itself."""


class Expression(NamedTuple):
    """A Swift expression. ``arguments`` are those of its outermost call, where a long line may be broken."""

    text: str
    atom: bool = True
    head: str = ""
    arguments: tuple[str, ...] = ()

    @property
    def inner(self) -> str:
        """The expression as an operand, in parentheses where it needs them."""
        return self.text if self.atom else f"({self.text})"


def call(head: str, *arguments: str) -> Expression:
    """A call.

    >>> call("x.mean", "axes: [0]", "keepDimensions: true").text
    'x.mean(axes: [0], keepDimensions: true)'
    """
    return Expression(f"{head}({', '.join(arguments)})", head=head, arguments=arguments)


def camel(name: str) -> str:
    """A Python name as Swift would write it; a word of the language gets an underscore.

    >>> camel("dry_wet"), camel("_x"), camel("in")
    ('dryWet', 'x', 'in_')
    """
    first, *rest = [word for word in name.split("_") if word] or ["value"]
    text = first + "".join(word[:1].upper() + word[1:] for word in rest)
    text = text if text.isidentifier() else f"value{re.sub(r'[^0-9A-Za-z]', '', text)}"
    return f"{text}_" if text in RESERVED else text


def number(value: Any, dtype: DType = Float32) -> str:
    """A literal where Swift knows the type from the place.

    >>> number(0.1), number(2.0), number(-math.inf), number(3, Int32), number(True, Bool)
    ('0.1', '2', '-.infinity', '3', 'true')
    """
    if dtype is Bool:
        return "true" if value else "false"
    if not issubclass(dtype, Floating):
        return str(int(value))
    if math.isnan(value):
        return ".nan"
    if math.isinf(value):
        return ".infinity" if value > 0 else "-.infinity"
    if float(value).is_integer() and abs(float(value)) < 2**53 and (value or math.copysign(1, value) > 0):
        return str(int(value))
    return str(value if np.ndim(value) == 0 and hasattr(value, "dtype") else float(value))


def scalar(value: Any, dtype: DType) -> Expression:
    """A number whose text says its type.

    >>> scalar(np.float32(0.5), Float32).text, scalar(-math.inf, Float32).text, scalar(3, Int8).text
    ('Float(0.5)', '-Float.infinity', 'Int8(3)')
    """
    text = number(value, dtype)
    if dtype is Bool:
        return Expression(text)
    name = TYPES[dtype]
    if text.endswith(("infinity", "nan")):
        return Expression(text.replace(".", f"{name}."), atom=not text.startswith("-"))
    return Expression(f"{name}({text})")


def is_uniform(values: np.ndarray[Any, Any]) -> bool:
    """Whether one number, more than four times, is all there is; -0 is not 0, and one NaN not another.

    >>> is_uniform(np.float32([1, 1, 1, 1, 1])), is_uniform(np.float32([0, -0.0, 0, 0, 0]))
    (True, False)
    """
    bits = values.reshape(-1).view(f"u{values.itemsize}")
    return values.size > 4 and bool((bits == bits[0]).all())


def array(values: np.ndarray[Any, Any], dtype: DType) -> Expression:
    """The elements as a flat array whose text says its type.

    >>> array(np.array([1, 2]), Int32).text, array(np.zeros((2, 3)), Float32).text
    ('[1, 2] as [Int32]', '[Float](repeating: 0, count: 6)')
    """
    if is_uniform(values):
        return Expression(f"[{TYPES[dtype]}](repeating: {number(values.flat[0], dtype)}, count: {values.size})")
    return Expression(f"[{', '.join(number(value, dtype) for value in values.flat)}] as [{TYPES[dtype]}]", atom=False)


def integers(values: Sequence[int]) -> str:
    """An array of ``Int``.

    >>> integers((0, 1))
    '[0, 1]'
    """
    return f"[{', '.join(map(str, values))}]"


def comment(text: str) -> str:
    r"""A comment of one line.

    >>> comment("first\nsecond")
    '// first second'
    """
    return f"// {' '.join(text.splitlines())}"


def boolean(value: bool) -> str:
    """``true`` or ``false``."""
    return "true" if value else "false"


def quoted(text: str) -> str:
    """A string literal.

    >>> quoted("x")
    '"x"'
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + re.sub(r"[\x00-\x1f]", lambda found: f"\\u{{{ord(found[0]):x}}}", escaped) + '"'
