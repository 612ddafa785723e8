"""Graphs in the making: what every pass reads and writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple, cast

import numpy as np

from bnnsgraph.dtypes import Integer, as_dtype
from bnnsgraph.elements import settled
from bnnsgraph.frozen import Frozen, frozen
from bnnsgraph.graph import Argument, Constant, Graph, Node, Op, Value
from bnnsgraph.indices import count_from_front
from bnnsgraph.ops.gathering import Gather, GatherOp
from bnnsgraph.ops.movement import Reshape, ReshapeTo
from bnnsgraph.ops.slicing import Slice, Span
from bnnsgraph.origin import Origin
from bnnsgraph.spec import Shape, TensorSpec, is_static

SMALL = 64 * 1024
"""A constant that a pass makes has fewer bytes, so that it costs nothing to have it in the program."""


class Rewrite(NamedTuple):
    """One change that was made to a graph before it was compiled.

    Attributes:
        what: what was done.
        origin: the line of the operation that was moved or replaced.
        through: the operations that it was moved ahead of, from the last to the first, with their lines.
        saved: how many elements fewer these compute in one run; None where sizes are not known.
    """

    what: str
    origin: Origin
    through: tuple[tuple[str, Origin], ...] = ()
    saved: int | None = 0

    def __str__(self) -> str:
        steps = [(place, [name for name, _ in run]) for place, run in groupby(self.through, lambda step: step[1].place)]
        lines = [f"{', '.join(_few(names))} ({place})" for place, names in steps]
        shown = ", ".join(_few(lines))
        fewer = f"; {self.saved:,} elements fewer to compute" if self.saved else ""
        return f"{self.origin.place}: {self.what}{f' {shown}' if shown else ''}{fewer}"


class Rewrites(tuple[Rewrite, ...]):
    """What was changed, one line each when printed."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "\n".join(map(str, self)) or "nothing was rewritten"


@frozen
class Draft(Frozen):
    """A graph between two passes.

    Attributes:
        nodes: every node after its operands; those whose values a run checks stand in recorded order.
        checks: values that are computed for the sake of a check, whether or not a result needs them.
    """

    nodes: tuple[Node, ...]
    arguments: tuple[Value, ...]
    results: tuple[Value, ...]
    updates: tuple[tuple[Value, Value], ...]
    checks: tuple[Value, ...] = ()

    @property
    def roots(self) -> tuple[Value, ...]:
        """Everything that is needed whole."""
        return (*self.results, *(new for _, new in self.updates), *self.checks)


class Editor:
    """Emits the nodes of a new draft. Arguments and constants stay the nodes they are, so that they keep their places."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.nodes: list[Node] = []
        self.values: dict[tuple[Node, int], Value] = {}
        self._serial = max((node.serial for node in draft.nodes), default=0) + 1

    def emit(self, op: Op, inputs: Sequence[Value], like: Node) -> tuple[Value, ...]:
        """A new node for the line of ``like``; a small movement of constants is done at once."""
        constant = _folded(op, inputs)
        if constant is not None:
            return (self.constant(constant, like),)
        specs = op.infer(*[value.spec for value in inputs])
        return self._append(op, tuple(inputs), specs if isinstance(specs, tuple) else (specs,), like)

    def emit_one(self, op: Op, inputs: Sequence[Value], like: Node) -> Value:
        """The same for an operation with one result."""
        return self.emit(op, inputs, like)[0]

    def constant(self, array: np.ndarray[Any, Any], like: Node, spec: TensorSpec | None = None) -> Value:
        """A new constant of integers, or of the type of ``spec``."""
        array = np.ascontiguousarray(array).reshape(array.shape)
        array.flags.writeable = False
        spec = spec or TensorSpec(as_dtype(array.dtype), array.shape)
        return self._append(Constant(array, spec), (), (spec,), like)[0]

    def _append(self, op: Op, inputs: tuple[Value, ...], specs: tuple[TensorSpec, ...], like: Node) -> tuple[Value, ...]:
        node = Node(op, inputs, specs, like.origin, self._serial, like.group)
        self._serial += 1
        self.nodes.append(node)
        return tuple(Value(node, index) for index in range(len(specs)))

    def keep(self, node: Node) -> tuple[Value, ...]:
        """The node with its operands' new values; an argument or constant as it is."""
        if node.inputs or not isinstance(node.op, (Argument, Constant)):
            values = self.emit(node.op, [self.new(value) for value in node.inputs], node)
        else:
            self.nodes.append(node)
            values = tuple(Value(node, index) for index in range(len(node.outputs)))
        self.put(node, values)
        return values

    def put(self, node: Node, values: Iterable[Value]) -> None:
        """Say which values take the place of a node's."""
        for index, value in enumerate(values):
            self.values[node, index] = value

    def new(self, value: Value) -> Value:
        """What took the place of a value."""
        return self.values[value.node, value.index]

    def finish(self, checks: Sequence[Value] | None = None) -> Draft:
        """The new draft, without dead nodes."""
        draft = self.draft
        found = Draft(
            (),
            tuple(self.new(value) for value in draft.arguments),
            tuple(self.new(value) for value in draft.results),
            tuple((self.new(old), self.new(new)) for old, new in draft.updates),
            tuple(self.new(value) for value in draft.checks) if checks is None else tuple(checks),
        )
        alive = {value.node for value in (*found.arguments, *found.roots)}
        nodes: list[Node] = []
        for node in reversed(self.nodes):
            if node in alive:
                nodes.append(node)
                alive.update(value.node for value in node.inputs)
        return replace(found, nodes=tuple(reversed(nodes)))


class Simpler(NamedTuple):
    """What is done about a node: what it says, how its results are built, how many elements fewer are computed."""

    what: str
    build: Callable[[Editor], Sequence[Value]]
    saved: int | None = 0


def replaced(draft: Draft, found: Mapping[Node, Simpler]) -> tuple[Draft, list[Rewrite]]:
    """The draft with something simpler in the place of some nodes, and what is said of it."""
    if not found:
        return draft, []
    editor = Editor(draft)
    records: list[Rewrite] = []
    for node in draft.nodes:
        if node not in found:
            editor.keep(node)
            continue
        simpler = found[node]
        editor.put(node, simpler.build(editor))
        if simpler.what:
            records.append(Rewrite(f"{label(node.op)} {simpler.what}", node.origin, (), simpler.saved))
    return editor.finish(), records


def drafted(graph: Graph, shapes: Sequence[Shape]) -> Draft:
    """The graph as a draft, for the arguments' actual shapes where these are known."""
    draft = Draft(graph.nodes, graph.arguments, graph.results, tuple(graph.updates.items()))
    if all(is_static(spec.shape) for spec in graph.specs) or not all(map(is_static, shapes)):
        return draft
    sizes = graph.solve(shapes)
    actual = {value.node: value.spec.with_shape(shape) for value, shape in zip(graph.arguments, shapes, strict=True)}
    editor = Editor(draft)
    for node in graph.nodes:
        if node in actual:
            assert isinstance(node.op, Argument)
            editor.put(node, editor.emit(replace(node.op, spec=actual[node]), (), node))
        elif isinstance(node.op, Constant):
            editor.keep(node)
        else:
            op = settled(node, sizes, lambda value: editor.new(value).spec.shape)
            inputs = [editor.new(value) for value in node.inputs]
            if isinstance(op, ReshapeTo) and op.to is not None:
                op, inputs = Reshape(op.to), inputs[:1]
            editor.put(node, editor.emit(op, inputs, node))
    return editor.finish()


def finished(draft: Draft, graph: Graph) -> Graph:
    """The draft as a graph with the names and options of ``graph``; nodes whose checks no result needs are among its nodes."""
    found = Graph(draft.arguments, draft.results, graph.result_names, dict(draft.updates), graph.options)
    found.nodes = draft.nodes
    return found


def positions(item: int | Span, size: int) -> range:
    """The positions of an axis that an item of a subscript names."""
    return range(item % size, item % size + 1) if isinstance(item, int) else range(*slice(*item).indices(size))


def _folded(op: Op, inputs: Sequence[Value]) -> np.ndarray[Any, Any] | None:
    """The elements of a small movement of constant integers, None for everything else."""
    arrays: list[np.ndarray[Any, Any]] = []
    for value in inputs:
        constant = value.node.op
        if not isinstance(constant, Constant) or not issubclass(value.spec.dtype, Integer):
            return None
        arrays.append(constant.array)
    found: np.ndarray[Any, Any] | None = None
    if isinstance(op, Slice):
        found = arrays[0][tuple(item if isinstance(item, int) else slice(*item) for item in op.items)]
    elif isinstance(op, Reshape) and is_static(op.to):
        found = arrays[0].reshape(cast("tuple[int, ...]", op.to))
    elif isinstance(op, Gather) and not op.batch_dimension_count:
        x, indices = arrays
        counted, inside = count_from_front(indices, (x.shape[op.axis],), op.negative_indices)
        if inside.all():
            found = np.take(x, counted, op.axis)
    return None if found is None or found.nbytes >= SMALL else np.asarray(found)


def label(op: Op) -> str:
    """The operation as a record shows it: a gather without its rule for indices, which another pass may have split off."""
    return str(replace(op, out_of_bounds="raise", negative_indices="from_end")) if isinstance(op, GatherOp) else str(op)


def _few(parts: Sequence[str], most: int = 8) -> list[str]:
    """The first of many, and how many more there are."""
    return [*parts[:most], *([f"{len(parts) - most:,} more"] if len(parts) > most else [])]
