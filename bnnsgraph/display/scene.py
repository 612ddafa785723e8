"""What a drawing of a graph shows: boxes with their words, and groups, folded or open. No geometry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from bnnsgraph.display.text import call, operation
from bnnsgraph.errors import ParameterError
from bnnsgraph.graph import Argument, Constant, Graph, Intent, Node, Value, argument_of, operand_names
from bnnsgraph.naming import value_names

Edge: TypeAlias = tuple[Node, int]
"""A value: the node that makes it, and which of its results it is."""

SYMBOLS = {
    "Add": "+", "Subtract": "−", "Multiply": "×", "Divide": "÷", "FloorDivide": "//", "Remainder": "%", "Power": "^",
    "Maximum": "max", "Minimum": "min", "Equal": "=", "NotEqual": "≠", "Less": "<", "LessEqual": "≤", "Greater": ">",
    "GreaterEqual": "≥", "And": "and", "Or": "or", "Xor": "xor",
}  # fmt: skip
"""Operations that are written between their operands."""

COMMUTATIVE = {"Add", "Multiply", "Maximum", "Minimum", "Equal", "NotEqual", "And", "Or", "Xor"}
"""Those of them whose operands may change places."""

FOLDED_ABOVE = 28
"""How many boxes a drawing may have before its groups are folded."""


@dataclass
class Box:
    """One thing in a drawing.

    Attributes:
        kind: ``argument``, ``constant``, ``operation``, ``group``, ``output``; ``enter`` and ``leave`` are the ends of edges
            that come from outside a group or go there.
        title: the first line.
        details: further lines.
        chips: constants written into the box.
        tooltip: what a pointer shows.
        inputs: what it reads, with a name for each place.
        outputs: what it makes, with a label for each.
        nodes: the operation, or those that a group holds.
        path: the full name of a group.
        frame: the inside of a group that is drawn open.
    """

    kind: str
    title: str
    tooltip: str = ""
    details: list[str] = field(default_factory=list)
    chips: list[str] = field(default_factory=list)
    inputs: list[tuple[str, Edge]] = field(default_factory=list)
    outputs: list[tuple[str, Edge]] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    path: str = ""
    frame: Frame | None = None


@dataclass
class Frame:
    """Boxes on one level, each after what it reads."""

    boxes: list[Box]


def edge(value: Value) -> Edge:
    """The value as a key: several objects may stand for one result."""
    return value.node, value.index


class Scene:
    """Reads a graph once, and makes frames of it."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.numbers = {node: number for number, node in enumerate(graph.nodes)}
        self.names = {edge(value): name for value, name in value_names(graph).items()}
        self.readers: dict[Edge, list[Node]] = {}
        for node in graph.nodes:
            for value in node.inputs:
                self.readers.setdefault(edge(value), []).append(node)
        self.wanted = {edge(value) for value in (*graph.results, *graph.updates.values())}
        self.operations = [node for node in graph.nodes if not isinstance(node.op, (Argument, Constant))]
        self.constants = [node for node in graph.nodes if isinstance(node.op, Constant) and not self.is_inline(node)]

    def is_inline(self, node: Node) -> bool:
        """Whether a constant is written into what reads it: a number, or a parameter of one operation."""
        if not isinstance(node.op, Constant) or (node, 0) in self.wanted:
            return False
        readers = self.readers.get((node, 0), [])
        if is_number(node):
            return True
        return len(readers) == 1 and edge(readers[0].inputs[0]) != (node, 0)

    def opened(
        self, unfold: Iterable[str] | None, nodes: Sequence[Node] | None = None, path: str = ""
    ) -> Callable[[str], bool]:
        """Which groups are drawn open: those named and those around them; by itself all levels that fit.

        ``nodes`` are what is drawn, all of it in the group ``path``.
        """
        if unfold is not None:
            names = [unfold] if isinstance(unfold, str) else list(unfold)
            known = sorted({node.group for node in self.operations if node.group})
            for name in names:
                if not any(name == group or group.startswith(f"{name}/") for group in known):
                    raise ParameterError(
                        f"unfold must name groups of the graph ({', '.join(known) or 'it has none'}), got {name!r}"
                    )
            return lambda group: any(name == group or name.startswith(f"{group}/") for name in names)
        parts = [node.group.split("/") if node.group else [] for node in (self.operations if nodes is None else nodes)]
        depth = path.count("/") + 1 if path else 0
        while depth < max(map(len, parts), default=0):
            shown = {(index,) if len(part) <= depth + 1 else tuple(part[: depth + 2]) for index, part in enumerate(parts)}
            if len(shown) > FOLDED_ABOVE:
                break
            depth += 1
        return lambda group: group.count("/") < depth

    # Frames

    def whole(self, opened: Callable[[str], bool]) -> Frame:
        """The graph."""
        boxes = [self.box(value.node) for value in self.graph.arguments]
        boxes += self._level(self.operations, self.constants, "", opened)
        return Frame([*boxes, *self.outputs()])

    def outputs(self) -> list[Box]:
        """What a run returns: new values of in-out arguments, and results."""
        boxes: list[Box] = []
        for value_of, value in self.graph.updates.items():
            name = argument_of(value_of).name
            tip = f"the value of {name} after the run: {value.spec}"
            boxes.append(Box("output", name, tip, ["after the run"], inputs=[("", edge(value))]))
        for name, value in zip(self.graph.result_names, self.graph.results, strict=True):
            boxes.append(Box("output", name, f"output {name}: {value.spec}", inputs=[("", edge(value))]))
        return boxes

    def inside(self, group: Box, opened: Callable[[str], bool], *, named: bool = True) -> Frame:
        """A group's own drawing; the ends of edges from and to the outside are boxes with or without words."""
        within = {*group.nodes}
        constants = [node for node in self.constants if self._all_readers_in(node, within)]
        boxes: list[Box] = []
        for _, key in group.inputs:
            label = str(key[0].outputs[key[1]]) if named else ""
            boxes.append(Box("enter", self.names[key] if named else "", self.tooltip(key[0]), outputs=[(label, key)]))
        boxes += self._level(group.nodes, constants, group.path, opened)
        for _, key in group.outputs:
            boxes.append(Box("leave", self._readers_outside(key, within) if named else "", inputs=[("", key)]))
        return Frame(boxes)

    def tooltip(self, node: Node) -> str:
        """What the pointer shows: the operation in full, its results, and the line that recorded it."""
        names = ", ".join(self.names[node, index] for index in range(len(node.outputs)))
        specs = ", ".join(map(str, node.outputs))
        text = f"{names} = {self.written(node)}\n{specs}\n{node.origin}"
        return f"{text}:  {node.origin.text}" if node.origin.text else text

    def written(self, node: Node) -> str:
        """The operation with its operands, as a call."""
        operands = [number(v.node) if is_number(v.node) else self.names[edge(v)] for v in node.inputs]
        return call(operation(node), ", ".join(operands))

    def _readers_outside(self, key: Edge, within: set[Node]) -> str:
        names = [self.names[node, 0] for node in self.readers.get(key, []) if node not in within]
        names += [
            name for name, value in zip(self.graph.result_names, self.graph.results, strict=True) if edge(value) == key
        ]  # fmt: skip
        return f"to {names[0]}" + (f" and {len(names) - 1} more" if len(names) > 1 else "") if names else ""

    def _all_readers_in(self, node: Node, within: set[Node]) -> bool:
        return (node, 0) not in self.wanted and all(reader in within for reader in self.readers.get((node, 0), [node]))

    def _level(self, nodes: Sequence[Node], constants: Sequence[Node], path: str, opened: Callable[[str], bool]) -> list[Box]:
        """Boxes for ``nodes``, which are in the group ``path``; neighbours in one group below it are one box."""
        depth = path.count("/") + 1 if path else 0
        runs: list[tuple[str, list[Node]]] = []
        for node in nodes:
            parts = node.group.split("/") if node.group else []
            child = "/".join(parts[: depth + 1]) if len(parts) > depth else ""
            if child and runs and runs[-1][0] == child:
                runs[-1][1].append(node)
            else:
                runs.append((child, [node]))
        home = {node: place for place, (child, run) in enumerate(runs) for node in run if child}
        boxes: list[Box] = []
        for node in constants:
            places = {home.get(reader, -1) for reader in self.readers.get((node, 0), [])}
            if (node, 0) in self.wanted or len(places) != 1 or -1 in places:
                boxes.append(self.box(node))
        for child, run in runs:
            boxes.append(self._group(child, run, opened) if child else self.box(run[0]))
        return boxes

    # Boxes

    def box(self, node: Node) -> Box:
        """One node, with the constants that are written into it."""
        op = node.op
        if isinstance(op, Argument):
            details = ["in-out"] if op.intent is Intent.INPUT_OUTPUT else []
            return Box("argument", op.name, self.tooltip(node), details, outputs=[(str(node.outputs[0]), (node, 0))])
        if isinstance(op, Constant):
            title = op.name or (number(node) if op.array.size <= 4 else "constant")
            return Box("constant", title, self.tooltip(node), outputs=[(str(node.outputs[0]), (node, 0))])
        kind, text = type(op).__name__, operation(node)
        if text.startswith(kind):
            text = text[len(kind) :]
            text = text[1:-1] if text.startswith("(") and text.endswith(")") else text
        else:
            kind, text = text, ""
        box = Box("operation", kind, self.tooltip(node), [text] if text else [], nodes=[node])
        names = operand_names(op, len(node.inputs))
        infix = SYMBOLS.get(kind, "") if len(node.inputs) == 2 else ""
        for place, (name, value) in enumerate(zip(names, node.inputs, strict=True)):
            if not self.is_inline(value.node):
                box.inputs.append(("" if infix or "[" in name else name, edge(value)))
                continue
            constant = value.node.op
            assert isinstance(constant, Constant)
            if constant.array.size <= 4:
                shown = number(value.node)
                box.details.insert(0, (f"{infix} {shown}" if place else f"{shown} {infix}") if infix else f"{name} = {shown}")
            else:
                box.chips.append(f"{infix or name} {value.spec}")
                box.tooltip += f"\n{name}: {constant.name or 'constant'} {value.spec}"
        if len(box.inputs) < 2:
            box.inputs = [("", key) for _, key in box.inputs]
        several = len(node.outputs) > 1
        for index, spec in enumerate(node.outputs):
            if (node, index) in self.readers or (node, index) in self.wanted:
                box.outputs.append((f".{index} {spec}" if several else str(spec), (node, index)))
        return box

    def _group(self, path: str, run: list[Node], opened: Callable[[str], bool]) -> Box:
        within = {*run}
        title = path.rpartition("/")[2]
        kinds: dict[str, int] = {}
        for node in run:
            kinds[type(node.op).__name__] = kinds.get(type(node.op).__name__, 0) + 1
        held = ", ".join(f"{count} {kind}" if count > 1 else kind for kind, count in kinds.items())
        count = f"{len(run)} operation{'s' if len(run) > 1 else ''}"
        box = Box("group", title, f"{path}: {count}\n{held}", [count], nodes=run, path=path)
        box.inputs = [("", key) for key in self._entering(run, within)]
        for node in run:
            for index, spec in enumerate(node.outputs):
                outside = any(reader not in within for reader in self.readers.get((node, index), []))
                if outside or (node, index) in self.wanted:
                    box.outputs.append((str(spec), (node, index)))
        if opened(path):
            box.frame = self.inside(box, opened, named=False)
            box.outputs = [("", key) for _, key in box.outputs]
        return box

    def _entering(self, run: Sequence[Node], within: set[Node]) -> list[Edge]:
        found: dict[Edge, None] = {}
        for node in run:
            for value in node.inputs:
                source = value.node
                if source in within or self.is_inline(source):
                    continue
                if not isinstance(source.op, Constant) or not self._all_readers_in(source, within):
                    found[edge(value)] = None
        return list(found)


def is_number(node: Node) -> bool:
    """Whether the node is a constant of rank 0."""
    return isinstance(node.op, Constant) and node.op.array.ndim == 0


def number(node: Node) -> str:
    """The elements of a small constant."""
    assert isinstance(node.op, Constant)
    array = node.op.array
    if array.ndim == 0 and array.dtype.kind not in "biu":
        return f"{float(array):.6g}"
    return str(array.tolist())


__all__ = ["Box", "Edge", "Frame", "Scene", "edge"]
