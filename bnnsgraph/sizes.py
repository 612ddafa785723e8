"""Sizes of dimensions that are known only when a graph runs: exact integer expressions over names.

A size is a polynomial with integer coefficients whose atoms are names (``batch``) and floor quotients (``(length + 1)//2``).
Equal expressions have one normal form, so equality is comparison of text. The one anonymous size, written -1 by Apple, is
``UNKNOWN``: it absorbs all arithmetic and equals nothing for certain.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from bnnsgraph.errors import ParameterError, ShapeError


class Quotient(NamedTuple):
    """The atom ``numerator // divisor``, rounded down."""

    numerator: Size
    divisor: int

    def __str__(self) -> str:
        text = str(self.numerator)
        return f"{text if text.isidentifier() else f'({text})'}//{self.divisor}"


Atom: TypeAlias = "str | Quotient"
Monomial: TypeAlias = tuple[Atom, ...]
MOST_TERMS = 1000
"""The most terms that a size has, so that no program, least of all a loaded one, makes the arithmetic take for ever."""


class Size:
    """A flexible size. Arithmetic gives an ``int`` again where the names cancel.

    >>> batch = Size.named("batch")
    >>> 2 * batch + 3, batch * batch - batch, batch - batch
    (2*batch + 3, batch*batch - batch, 0)
    >>> (2 * batch) // 2, (batch + 1) // 2
    (batch, (batch + 1)//2)
    """

    __slots__ = ("_hash", "_terms", "_text")

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        if len(terms) > MOST_TERMS:
            raise ShapeError(f"a flexible size must have at most {MOST_TERMS} terms, got {len(terms)}")
        ordered = sorted(terms.items(), key=lambda term: (-len(term[0]), [str(atom) for atom in term[0]]))
        self._terms: tuple[tuple[Monomial, int], ...] = tuple(ordered)
        self._text = _text(self._terms) if ordered else "-1"
        self._hash = hash(self._text)

    @staticmethod
    def named(name: str) -> Size:
        """The size called ``name``."""
        return Size({(name,): 1})

    def __add__(self, other: Dimension) -> Dimension:
        return _combine(self, other, 1)

    __radd__ = __add__

    def __neg__(self) -> Dimension:
        return self * -1

    def __sub__(self, other: Dimension) -> Dimension:
        return _combine(self, other, -1)

    def __rsub__(self, other: Dimension) -> Dimension:
        return -self + other

    def __mul__(self, other: Dimension) -> Dimension:
        if self is UNKNOWN or other is UNKNOWN:
            return UNKNOWN
        terms: dict[Monomial, int] = {}
        others = _terms_of(other)
        if len(self._terms) * len(others) > 10 * MOST_TERMS:
            raise ShapeError(f"a flexible size must have at most {MOST_TERMS} terms, got {len(self._terms)} * {len(others)}")
        for left, a in self._terms:
            for right, b in others:
                monomial = tuple(sorted(left + right, key=str))
                terms[monomial] = terms.get(monomial, 0) + a * b
        return _normal(terms)

    __rmul__ = __mul__

    def __floordiv__(self, divisor: int) -> Dimension:
        if self is UNKNOWN:
            return UNKNOWN
        whole = _normal({monomial: c // divisor for monomial, c in self._terms})
        rest = _normal({monomial: c % divisor for monomial, c in self._terms})
        return _combine(whole, rest // divisor if isinstance(rest, int) else _quotient(rest, divisor), 1)

    def divided_by(self, divisor: Size) -> Dimension | None:
        """The exact quotient by a product of names, or None.

        >>> (6 * Size.named("a") * Size.named("b")).divided_by(2 * Size.named("b"))
        3*a
        """
        if len(divisor._terms) != 1:
            return 1 if self == divisor else None
        factors, scale = divisor._terms[0]
        terms: dict[Monomial, int] = {}
        for monomial, coefficient in self._terms:
            rest = list(monomial)
            for atom in factors:
                if atom not in rest:
                    return None
                rest.remove(atom)
            if coefficient % scale:
                return None
            terms[tuple(rest)] = coefficient // scale
        return _normal(terms)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Size):
            return self._text == other._text
        return isinstance(other, str) and self._text == other

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return self._text

    @property
    def terms(self) -> tuple[tuple[Monomial, int], ...]:
        """Products of atoms, and how often each is added; none for ``UNKNOWN``."""
        return self._terms

    def names(self) -> set[str]:
        """The names this size depends on."""
        found: set[str] = set()
        for monomial, _ in self._terms:
            for atom in monomial:
                found |= {atom} if isinstance(atom, str) else atom.numerator.names()
        return found

    def bind(self, sizes: Mapping[str, Any]) -> Any:
        """The value for the given sizes (integers, or JAX's symbolic ones while exporting)."""
        total: Any = 0
        for monomial, coefficient in self._terms:
            product: Any = coefficient
            for atom in monomial:
                if isinstance(atom, str):
                    if atom not in sizes:
                        known = ", ".join(sizes) or "none"
                        raise ShapeError(f"a named size must be that of an argument ({known}), got {atom!r}")
                    product = product * sizes[atom]
                else:
                    product = product * (atom.numerator.bind(sizes) // atom.divisor)
            total = total + product
        return total


Dimension: TypeAlias = int | Size
UNKNOWN = Size({})


def _terms_of(value: Dimension) -> tuple[tuple[Monomial, int], ...]:
    return (((), value),) if isinstance(value, int) else value._terms  # pyright: ignore[reportPrivateUsage]


def _normal(terms: Mapping[Monomial, int]) -> Dimension:
    """The size with these terms, or the integer it is when no names are left."""
    terms = {monomial: c for monomial, c in terms.items() if c}
    if not terms:
        return 0
    return terms[()] if terms.keys() == {()} else Size(terms)


def _quotient(numerator: Size, divisor: int) -> Dimension:
    """``numerator // divisor`` in lowest terms, for coefficients from 0 to ``divisor - 1``."""
    terms = dict(numerator.terms)
    offset = terms.pop((), 0)
    common = math.gcd(divisor, *terms.values())
    if common > 1:  # (2*n + 1)//4 is n//2
        return (_normal({monomial: c // common for monomial, c in terms.items()}) + offset // common) // (divisor // common)
    match list(terms.items()):
        case [((Quotient(inner, first),), 1)]:  # (n//2 + 1)//3 is (n + 2)//6
            return (inner + first * offset) // (first * divisor)
        case _:
            return Size({(Quotient(numerator, divisor),): 1})


def _combine(left: Dimension, right: Dimension, sign: int) -> Dimension:
    if left is UNKNOWN or right is UNKNOWN:
        return UNKNOWN
    terms = dict(_terms_of(left))
    for monomial, coefficient in _terms_of(right):
        terms[monomial] = terms.get(monomial, 0) + sign * coefficient
    return _normal(terms)


def _text(terms: tuple[tuple[Monomial, int], ...]) -> str:
    parts: list[str] = []
    for monomial, coefficient in terms:
        alone = len(monomial) == 1 and coefficient == 1
        factors = [f"({atom})" if isinstance(atom, Quotient) and not alone else str(atom) for atom in monomial]
        if abs(coefficient) != 1 or not factors:
            factors.insert(0, str(abs(coefficient)))
        sign = "-" if coefficient < 0 else "+"
        parts.append(f" {sign} {'*'.join(factors)}" if parts else f"{'-' if sign == '-' else ''}{'*'.join(factors)}")
    return "".join(parts)


_OPERATORS: dict[type[ast.operator], Any] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
}  # fmt: skip


def _parse(node: ast.AST) -> Dimension:
    match node:
        case ast.Expression(body=body):
            return _parse(body)
        case ast.Name(id=name):
            return Size.named(name)
        case ast.Constant(value=int(value)):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_parse(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_parse(left), _parse(right))
        case _:
            raise SyntaxError


def as_dimension(value: object) -> Dimension:
    """A dimension from what a user writes: an integer, -1 (flexible), a name, or an expression of names.

    >>> as_dimension(3), as_dimension(-1), as_dimension("batch"), as_dimension("2*length + 1")
    (3, -1, batch, 2*length + 1)
    """
    if isinstance(value, Size):
        return value
    if isinstance(value, str):
        try:
            return _parse(ast.parse(value.strip(), mode="eval"))
        except (SyntaxError, TypeError):
            raise ParameterError(f"a named dimension must be a Python identifier such as 'batch', got {value!r}") from None
    if isinstance(value, (bool, np.bool_)):
        raise ShapeError(f"a dimension must be an integer or a name, got {value!r}")
    try:
        number = operator.index(value)  # pyright: ignore[reportArgumentType]
    except TypeError:
        raise ShapeError(f"a dimension must be an integer or a name, got {value!r}") from None
    if number < -1:
        raise ShapeError(f"a dimension must be at least 0, or -1 for a flexible one, got {number}")
    return UNKNOWN if number == -1 else number
