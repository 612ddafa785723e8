"""A graph in the operations that Apple's builder has: the same nodes, those that it lacks replaced by what makes them up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from bnnsgraph.builder import Builder
from bnnsgraph.dtypes import DType, Int32
from bnnsgraph.errors import GraphError, UnsupportedOpsError
from bnnsgraph.graph import Argument, Constant, Graph, Node, Op, Recorder, Value
from bnnsgraph.handle import own_copy
from bnnsgraph.ops.movement import TensorShape
from bnnsgraph.ops.slicing import Slice, SliceUpdate, Span
from bnnsgraph.options import CompileOptions
from bnnsgraph.origin import Origin
from bnnsgraph.sizes import Size
from bnnsgraph.spec import TensorSpec
from bnnsgraph.swift.text import TYPES
from bnnsgraph.tensor import Tensor


class LackingError(Exception):
    """Apple's builder has nothing for an operation; the text says what is missing."""


class Rewrite(NamedTuple):
    """How an operation becomes one of Apple's, or several.

    ``rule(op, port, *operands)`` gives the tensors, or None where the operation is Apple's as it stands. ``text`` describes the
    result where it is more than another way of writing the same call.
    """

    rule: Callable[..., Any]
    text: str = ""


Rules: TypeAlias = Mapping[type[Op], Rewrite]


class Remark(NamedTuple):
    """What became of one node, or why nothing can."""

    node: Node
    text: str


class Port(Recorder):
    """Records nodes as Apple's builder has them, at the lines where they were recorded first."""

    __slots__ = ("_builder", "_known", "_rules", "depth", "origin", "problems", "rewritten", "shapes")

    def __init__(self, options: CompileOptions, known: Callable[[type[Op]], bool], rules: Rules) -> None:
        super().__init__(options)
        self._known = known
        self._rules = rules
        self._builder = Builder(options)
        self._builder._recorder = self  # pyright: ignore[reportPrivateUsage]
        self.origin: Origin | None = None
        self.depth = 0
        self.problems: list[str] = []
        self.rewritten: list[str] = []
        self.shapes: dict[str, Tensor[Any]] = {}

    def record(self, op: Op, inputs: tuple[Value, ...] = ()) -> tuple[Value, ...]:
        """Append ``op``, or what it is rewritten into."""
        rewrite = self._rules.get(type(op))
        if rewrite is not None:
            self.depth += 1
            try:
                found = rewrite.rule(op, self, *[Tensor[Any](self, value) for value in inputs])
            except LackingError as error:
                self.problems.append(str(error))
                found = None
            except GraphError as error:
                self.problems.append(error.reason)
                found = None
            finally:
                self.depth -= 1
            if found is not None:
                if rewrite.text and not self.depth:
                    self.rewritten.append(rewrite.text)
                tensors = cast("Sequence[Tensor[Any]]", found if isinstance(found, (list, tuple)) else (found,))
                return tuple(map(value_of, tensors))
        elif not self._known(type(op)):
            self.problems.append("Apple's builder has no such operation")
        values = super().record(op, inputs)
        node = values[0].node
        if self.origin is not None:
            node.origin = self.origin
        wide = {spec.dtype.__name__ for spec in node.outputs if spec.dtype not in TYPES}
        if wide and not any(value.spec.dtype not in TYPES for value in inputs):
            self.problems.append(f"Apple's builder has no element type {', '.join(sorted(wide))}")
        return values

    # What rules are written with

    def apply(self, op: Op, *operands: Tensor[Any]) -> Any:
        """Record an operation on tensors of this port."""
        values = self.record(op, tuple(map(value_of, operands)))
        tensors = [Tensor[Any](self, value) for value in values]
        return tuple(tensors) if len(tensors) > 1 else tensors[0]

    def constant(self, values: Any, dtype: DType) -> Tensor[Any]:
        """An unnamed constant."""
        array = own_copy(np.asarray(values).astype(dtype.numpy), needed=False)
        return self.apply(Constant(array, TensorSpec(dtype, array.shape)))

    def concatenate(self, tensors: Sequence[Tensor[Any]], axis: int) -> Tensor[Any]:
        """The tensors one after the other."""
        return tensors[0] if len(tensors) == 1 else self._builder.concatenate(tensors, axis)

    def remark(self, text: str) -> None:
        """Tell what the operation being rewritten becomes."""
        if self.depth == 1:
            self.rewritten.append(text)

    def promise(self, tensor: Tensor[Any], spec: TensorSpec) -> Tensor[Any]:
        """The tensor with a spec that is known although its last operation cannot tell."""
        value = value_of(tensor)
        value.node.outputs = (spec,)
        value.spec = spec
        return tensor

    def elements(self, tensor: Tensor[Any]) -> np.ndarray[Any, Any] | None:
        """The elements of a constant; None of anything else."""
        op = value_of(tensor).node.op
        return op.array if isinstance(op, Constant) else None

    def size(self, size: Any) -> Tensor[Any]:
        """A size as an ``Int32`` tensor of shape [1], read from the shapes of the arguments while the graph runs."""
        if isinstance(size, int):
            return self.constant([size], Int32)
        sizes = {name: _Extent(self._source(name)) for name in size.names()}
        return size.bind(sizes).tensor

    def _source(self, name: str) -> Tensor[Any]:
        for argument in self.arguments:
            for axis, size in enumerate(argument.spec.shape):
                if isinstance(size, Size) and repr(size) == name:
                    shape = self.apply(TensorShape(), Tensor[Any](self, argument))
                    return self.apply(Slice((Span(axis, axis + 1, 1),)), shape)
        raise LackingError(f"no argument has an axis of size {name}, to read it from while the graph runs")


def value_of(tensor: Tensor[Any]) -> Value:
    """The edge of the graph that the tensor is a handle of."""
    return tensor._value  # pyright: ignore[reportPrivateUsage, reportUnknownVariableType]


class _Extent:
    """A size that is computed in the graph, for :meth:`Size.bind`."""

    def __init__(self, tensor: Tensor[Any]) -> None:
        self.tensor = tensor

    def __add__(self, other: Any) -> _Extent:
        if isinstance(other, int) and other == 0:
            return self
        return _Extent(self.tensor + (other.tensor if isinstance(other, _Extent) else other))

    def __radd__(self, other: int) -> _Extent:
        return self + other

    def __mul__(self, other: Any) -> _Extent:
        if isinstance(other, int) and other == 1:
            return self
        return _Extent(self.tensor * (other.tensor if isinstance(other, _Extent) else other))

    def __rmul__(self, other: int) -> _Extent:
        return self * other

    def __floordiv__(self, other: int) -> _Extent:
        raise LackingError("a flexible size is a quotient, which Apple's builder cannot compute from shapes")


class Ported(NamedTuple):
    """A graph in Apple's operations, where its values went, remarks about its nodes, and the nodes that compute shapes."""

    graph: Graph
    values: dict[tuple[Node, int], Value]
    rewritten: list[Remark]
    refused: list[Remark]
    shapes: list[Node]

    def require_supported(self) -> None:
        """Refuse what Apple's builder lacks, everything at once.

        Raises:
            UnsupportedOpsError: an operation or an element type has no counterpart.
        """
        if self.refused:
            details = [
                f"{node.op}: {text}; recorded at {node.origin}" + (f":  {node.origin.text}" if node.origin.text else "")
                for node, text in self.refused
            ]
            count = len({node for node, _ in self.refused})
            raise UnsupportedOpsError(
                f"to_swift: every operation must exist in Apple's builder, got {count} without a counterpart", *details
            )


def port(graph: Graph, known: Callable[[type[Op]], bool], rules: Rules) -> Ported:
    """The graph in Apple's operations; what has no counterpart stays as it is, with a remark."""
    recorder = Port(graph.options, known, rules)
    values: dict[tuple[Node, int], Value] = {}
    rewritten: list[Remark] = []
    refused: list[Remark] = []
    for node in graph.nodes:
        recorder.origin, recorder.group = node.origin, node.group
        recorder.problems, recorder.rewritten = [], []
        results = recorder.record(node.op, tuple(values[value.node, value.index] for value in node.inputs))
        if isinstance(node.op, Argument):
            recorder.arguments.append(results[0])
        for index, result in enumerate(results):
            values[node, index] = result
        rewritten += [Remark(node, text) for text in recorder.rewritten]
        refused += [Remark(node, text) for text in dict.fromkeys(recorder.problems)]
    updates: dict[Value, Value] = {}
    for argument, value in graph.updates.items():
        declared, current = values[argument.node, 0], values[value.node, value.index]
        if assigned(declared, current) is None:  # an assignment was rewritten: assign the whole new value
            recorder.origin, recorder.group = value.node.origin, value.node.group
            last = value
            while assigned(declared, values[last.node, last.index]) is None:
                last = last.node.inputs[0]
            whole = SliceUpdate((Span(None, None, 1),) * declared.spec.rank)
            current = recorder.record(whole, (values[last.node, last.index], current))[0]
        updates[declared] = current
    results = [values[value.node, value.index] for value in graph.results]
    ported = Graph(recorder.arguments, results, graph.result_names, updates, graph.options)
    return Ported(ported, values, rewritten, refused, [value_of(shape).node for shape in recorder.shapes.values()])


def assigned(argument: Value, value: Value) -> list[Node] | None:
    """The assignments to parts of the argument that make the value, the last first; None if it is made otherwise."""
    nodes: list[Node] = []
    while value is not argument:
        if not isinstance(value.node.op, SliceUpdate):
            return None
        nodes.append(value.node)
        value = value.node.inputs[0]
    return nodes
