"""What the tables of Swift spellings are made of: one function for each operation that Apple's builder has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np

from bnnsgraph.graph import Node
from bnnsgraph.spec import EPSILON
from bnnsgraph.swift.text import Expression, boolean, call, integers, number


class Call(Protocol):
    """One node about to be spelled: its operands as Swift expressions."""

    node: Node

    def tensor(self, index: int) -> Expression:
        """The operand as a ``Tensor``."""
        ...

    def parameter(self, index: int) -> Expression:
        """The operand as an ``OperationParameter``: a tensor, or a small constant as a number or an array."""
        ...

    def elements(self, index: int) -> Expression:
        """The operand, a constant of rank 0 or 1, as an array of ``Float``."""
        ...


Spelling: TypeAlias = Callable[[Any, Call], Expression]
"""How an operation is written: a function of the operation and of its operands."""


def given(label: str, value: str, default: str | None = None) -> list[str]:
    """One argument, left out where Swift has it as the default."""
    return [] if value == default else [f"{label}: {value}"]


def epsilon(value: float) -> list[str]:
    """The argument ``epsilon``, left out where it is Apple's."""
    return [] if np.float32(value) == np.float32(EPSILON) else [f"epsilon: {number(value)}"]


def method(name: str) -> Spelling:
    """A method without arguments."""
    return lambda op, c: call(f"{c.tensor(0).inner}.{name}")


def numbers(name: str, *fields: str) -> Spelling:
    """A method whose arguments are numbers, called as the operation's fields are."""
    return lambda op, c: call(f"{c.tensor(0).inner}.{name}", *[f"{field}: {number(getattr(op, field))}" for field in fields])


def stabilized(name: str) -> Spelling:
    """A method whose only argument is ``epsilon``."""
    return lambda op, c: call(f"{c.tensor(0).inner}.{name}", *epsilon(op.epsilon))


def along(name: str) -> Spelling:
    """A method whose only argument is ``axis``."""
    return lambda op, c: call(f"{c.tensor(0).inner}.{name}", f"axis: {op.axis}")


def reduction(name: str) -> Spelling:
    """A method with ``axes`` and ``keepDimensions``."""
    return lambda op, c: call(
        f"{c.tensor(0).inner}.{name}", f"axes: {integers(op.axes)}", f"keepDimensions: {boolean(op.keep_dimensions)}"
    )


def extremum(name: str) -> Spelling:
    """A method with ``axis`` and ``keepDimension``."""
    return lambda op, c: call(f"{c.tensor(0).inner}.{name}", f"axis: {op.axis}", f"keepDimension: {boolean(op.keep_dimension)}")


def operands(name: str, *labels: str) -> Spelling:
    """A method whose arguments are operands of any kind."""
    return lambda op, c: call(
        f"{c.tensor(0).inner}.{name}", *[f"{label}: {c.parameter(index).text}" for index, label in enumerate(labels, 1)]
    )


def operator(sign: str, *, parameters: bool = False) -> Spelling:
    """An operator between two tensors, or between a tensor and something that becomes one."""

    def spell(op: Any, c: Call) -> Expression:
        left, right = c.tensor(0), c.tensor(1)
        if parameters and c.parameter(1) != right:
            right = c.parameter(1)
        elif parameters:  # of two numbers the left stays a tensor
            left = c.parameter(0)
        return Expression(f"{left.inner} {sign} {right.inner}", atom=False)

    return spell
