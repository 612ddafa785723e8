"""The node cases of the onnx package, and one node as the rules of the mapping read it."""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import bnnsgraph as bg


@dataclass(frozen=True, eq=False)
class Case:
    """One node with its data."""

    name: str
    op: str
    attributes: Mapping[str, Any]
    version: int
    """The version of the operator set of the node's domain."""
    inputs: tuple[Any, ...]
    """By the node's positions; None where an optional input is left out. Tensors are arrays or ``TensorProto``."""
    outputs: tuple[str, ...]
    """By the node's positions; empty where an optional output is not wanted."""
    expected: tuple[Any, ...]
    """The values of the outputs that are wanted."""
    rtol: float
    atol: float


@functools.cache
def suite() -> dict[str, Case]:
    """The plain node cases by name: those that are not the same data run through the body of a function operator."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # making the cases divides by zero and overflows, on purpose
        found = load_model_tests(kind="node")
    return {case.name: read(case) for case in found if "_expanded" not in case.name}


def read(case: Any) -> Case:
    """A case of the package as one of ours."""
    from onnx.helper import get_attribute_value

    (node,) = case.model.graph.node
    ((given, expected),) = case.data_sets
    values = dict(zip([value.name for value in case.model.graph.input], given, strict=True))
    versions = {entry.domain: entry.version for entry in case.model.opset_import}
    return Case(
        name=case.name,
        op=node.op_type,
        attributes={item.name: _plain(get_attribute_value(item)) for item in node.attribute},
        version=versions[node.domain],
        inputs=tuple(values.get(name) for name in node.input),
        outputs=tuple(node.output),
        expected=tuple(expected),
        rtol=case.rtol,
        atol=case.atol,
    )


def _plain(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value


def as_array(value: Any) -> np.ndarray[Any, Any]:
    """A tensor of the suite, which has numbers and messages among its arrays."""
    from onnx import TensorProto
    from onnx.numpy_helper import to_array

    if isinstance(value, (list, type(None))):
        raise TypeError(f"a tensor is needed, got {type(value).__name__}")
    return to_array(value) if isinstance(value, TensorProto) else np.asarray(value)


class Call:
    """One node, read by a rule. Everything the node has must be read: what a rule does not honour is an error."""

    def __init__(self, builder: bg.Builder, case: Case) -> None:
        self.builder = builder
        self.case = case
        self.version = case.version
        self.arguments: dict[str, np.ndarray[Any, Any]] = {}
        self._unread: set[str | int] = {*case.attributes, *(i for i, value in enumerate(case.inputs) if value is not None)}

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute of the node."""
        self._unread.discard(name)
        return self.case.attributes.get(name, default)

    def has(self, position: int) -> bool:
        """Whether the node has an input at this position."""
        return position < len(self.case.inputs) and self.case.inputs[position] is not None

    def values(self, position: int) -> np.ndarray[Any, Any]:
        """An input whose values the builder takes as Python values: axes, sizes, amounts."""
        self._unread.discard(position)
        return as_array(self.case.inputs[position])

    def integers(self, position: int, default: Any = None) -> Any:
        """Such an input as a list of integers."""
        return [int(value) for value in self.values(position).flat] if self.has(position) else default

    def integer(self, position: int, default: Any = None) -> Any:
        """Such an input as one integer."""
        return self.integers(position)[0] if self.has(position) else default

    def tensor(self, position: int) -> Any:
        """An input as an argument of the graph."""
        self._unread.discard(position)
        name = re.sub(r"\W", "_", f"{self.case.name}_{position}")
        array = self.arguments[name] = as_array(self.case.inputs[position])
        return self.builder.argument(name, array.dtype, shape=array.shape)

    def optional(self, position: int) -> Any:
        """An input as an argument of the graph, or None."""
        return self.tensor(position) if self.has(position) else None

    def tensors(self) -> list[Any]:
        """All inputs, of a node that takes any number."""
        return [self.tensor(position) for position in range(len(self.case.inputs))]

    def without_effect(self, *names: str | int) -> None:
        """Attributes and inputs that change nothing by the operator's own definition."""
        self._unread.difference_update(names)

    def record(self, rule: Rule) -> list[Any]:
        """The tensors that are wanted of the node."""
        made = rule(self)
        results = list(made) if isinstance(made, (tuple, list)) else [made]
        if self._unread:
            raise NotImplementedError(f"{self.case.op}: the rule does not read {sorted(map(str, self._unread))}")
        wanted = [result for name, result in zip(self.case.outputs, results, strict=False) if name]
        if len(wanted) != len(self.case.expected):
            raise NotImplementedError(f"{self.case.op}: the rule does not make {self.case.outputs}")
        return wanted


Rule = Callable[[Call], "Any | Sequence[Any]"]
"""What a node becomes: its outputs by position, as tensors of the builder."""


def method(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Rule:
    """The rule of a node whose inputs are the operands of one method."""
    return lambda call: function(*call.tensors(), *args, **kwargs)


def axis_key(rank: int, axis: int, item: slice) -> tuple[slice, ...]:
    """A subscript that takes part of one axis."""
    key = [slice(None)] * rank
    key[axis] = item
    return tuple(key)
