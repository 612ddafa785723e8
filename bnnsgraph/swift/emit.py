"""The Swift source of a graph."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from bnnsgraph.dtypes import Float32
from bnnsgraph.errors import ParameterError
from bnnsgraph.files import write_atomically
from bnnsgraph.graph import Argument, Constant, Graph, Intent, Node, Op, Value
from bnnsgraph.naming import operation_name, value_names
from bnnsgraph.ops.slicing import SliceUpdate
from bnnsgraph.options import CompileOptions, OptimizationPreference
from bnnsgraph.sizes import UNKNOWN
from bnnsgraph.spec import format_shape
from bnnsgraph.swift import elementwise, layers, movement, rules_elements, rules_indices, rules_layers, rules_movement
from bnnsgraph.swift.calls import Spelling
from bnnsgraph.swift.porting import Ported, Rules, assigned, port
from bnnsgraph.swift.text import TYPES, Expression, array, call, camel, comment, integers, is_uniform, number, quoted, scalar
from bnnsgraph.swift.weights import INLINE, Weights

CALLS: Mapping[type[Op], Spelling] = {**elementwise.CALLS, **layers.CALLS, **movement.CALLS}
RULES: Rules = {**rules_elements.RULES, **rules_layers.RULES, **rules_movement.RULES, **rules_indices.RULES}
_WRITTEN = frozenset[type[Op]]({Argument, Constant, SliceUpdate, *CALLS})

WIDTH = 112
NESTED = 72
"""Longest lines of Swift, and longest expression that stands inside another."""


def to_swift(graph: Graph, path: str | os.PathLike[str] | None = None) -> str:
    """The Swift source of ``graph``; see :meth:`bnnsgraph.Graph.to_swift`."""
    target = None if path is None else Path(path)
    if target is not None and target.suffix != ".swift":
        raise ParameterError(f"path must end with .swift, got {str(path)!r}")
    ported = ported_graph(graph)
    ported.require_supported()
    stem = target.stem if target is not None else "graph"
    writer = Writer(ported, names_of(graph, ported))
    source = writer.source(stem)
    if target is not None:
        if writer.weights:
            write_atomically(target.with_suffix(".weights"), writer.weights.data())
        write_atomically(target, source.encode())
    return source


def ported_graph(graph: Graph) -> Ported:
    """The graph in Apple's operations, with what was rewritten and what is refused."""
    return port(graph, _WRITTEN.__contains__, RULES)


def names_of(graph: Graph, ported: Ported) -> dict[tuple[Node, int], tuple[str, bool]]:
    """A Swift name for each value of the ported graph that was one of the graph, and whether the user gave it."""
    found: dict[tuple[Node, int], tuple[str, bool]] = {}
    for value, name in value_names(graph).items():
        moved = ported.values.get((value.node, value.index))
        generated = name.rstrip("0123456789_") == operation_name(value.node).rstrip("0123456789_")
        if moved is not None and (not generated or (moved.node, moved.index) not in found):
            found[moved.node, moved.index] = camel(name), not generated
    return {**{(node, 0): ("shape", False) for node in ported.shapes}, **found}


class Writer:
    """Writes one graph. Expressions that are used once, on the line that uses them, stand inside that line."""

    def __init__(self, ported: Ported, names: Mapping[tuple[Node, int], tuple[str, bool]]) -> None:
        self.graph = graph = ported.graph
        self.weights = Weights()
        self._given = names
        self._used = Counter((value.node, value.index) for node in graph.nodes for value in node.inputs)
        self._used.update((value.node, value.index) for value in (*graph.results, *graph.updates.values()))
        self._shown = {(value.node, value.index) for value in (*graph.results, *graph.updates.values())}
        self._consumer = {(value.node, value.index): node for node in graph.nodes for value in node.inputs}
        self._text: dict[tuple[Node, int], Expression] = {}
        self._constants: dict[Node, Constant] = {}
        self._taken: set[str] = set()
        self._state = {value.node: camel(_argument(value).name) for value in graph.updates}
        self._in_place = {node for argument, value in graph.updates.items() for node in assigned(argument, value) or ()}
        self._lines: list[str] = []
        self._place = ""
        self._slices = False

    # The file

    def source(self, stem: str) -> str:
        """The whole file."""
        body = self._body()
        name = camel(stem)
        lines = [
            "// Written by bnnsgraph for Apple's BNNSGraph.Builder (OS 26 and later).",
            f"// Arguments of a run: {', '.join([*self.graph.result_names, *self.graph.argument_names])}.",
        ]
        lines += self.weights.layout(f"{stem}.weights")
        lines += ["", "import Accelerate", *(["import Foundation"] if self.weights else []), ""]
        if self._slices:
            lines += ["private typealias SliceRange = BNNSGraph.Builder.SliceRange", ""]
        parameter = "weights url: URL" if self.weights else ""
        lines.append(f"func make{name[:1].upper()}{name[1:]}({parameter}) throws -> BNNSGraph.Context {{")
        lines += [f"    {line}" if line else "" for line in self.weights.reader()]
        options = _options(self.graph.options)
        lines.append(f"    return try BNNSGraph.makeContext{options} {{ builder in")
        lines += [f"        {line}" if line else "" for line in body]
        return "\n".join([*lines, "    }", "}", ""])

    def _body(self) -> list[str]:
        group = ""
        for node in self.graph.nodes:
            if node.group != group and not isinstance(node.op, (Argument, Constant)):
                group = node.group
                self._lines += ["", *([comment(group)] if group else [])]
            self._write(node)
        results = ", ".join(self._text[value.node, value.index].text for value in self.graph.results)
        return [*self._lines, "", f"return [{results}]"]

    # Statements

    def _write(self, node: Node) -> None:
        match node.op:
            case Argument():
                self._write_argument(node, node.op)
            case Constant():
                self._write_constant(node, node.op)
            case SliceUpdate():
                self._write_update(node, node.op)
            case _:
                self._write_call(node)

    def _write_argument(self, node: Node, op: Argument) -> None:
        keyword = "var" if node in self._state else "let"
        name = self._declare(node, 0)
        sizes = [size if isinstance(size, int) else -1 for size in op.spec.shape]
        intent = ["intent: .inputOutput"] if op.intent is Intent.INPUT_OUTPUT else []
        typed = f"dataType: {TYPES[op.spec.dtype]}.self"
        expression = call("builder.argument", f"name: {quoted(op.name)}", typed, f"shape: {integers(sizes)}", *intent)
        named = any(size is not UNKNOWN and not isinstance(size, int) for size in op.spec.shape)
        self._statement(f"{keyword} {name} = ", expression, node, format_shape(op.spec.shape) if named else "")

    def _write_constant(self, node: Node, op: Constant) -> None:
        small = op.array.ndim < 2 and _is_inline(op)
        if small and op.name is None and self._used[node, 0] == 1 and (node, 0) not in self._shown and not self._is_named(node):
            self._constants[node] = op
            return
        expression = self._constant(op)
        name = self._declare(node, 0)
        self._statement(f"let {name} = ", expression, node)

    def _constant(self, op: Constant) -> Expression:
        named = [f"name: {quoted(op.name)}"] if op.name else []
        dtype = op.spec.dtype
        if op.array.ndim == 0:
            return call("builder.constant", *named, f"value: {scalar(op.array[()], dtype).text}")
        shape = [] if op.array.ndim == 1 else [f"shape: {integers(op.array.shape)}"]
        if _is_inline(op):
            return call("builder.constant", *named, f"values: {array(op.array, dtype).text}", *shape)
        return call("builder.constant", *named, f"values: {self.weights.add(op.array, dtype, op.name)}", *shape)

    def _write_update(self, node: Node, op: SliceUpdate) -> None:
        """An assignment to a part of a variable: the in-out argument itself, or a copy."""
        x = node.inputs[0]
        old, value = self._text[x.node, x.index], self.tensor_of(node.inputs[1])
        state = self._state.get(x.node) if node in self._in_place else None
        if state is not None:
            del self._state[x.node]
            self._state[node] = state
            later = any(x in other.inputs for other in self.graph.nodes if other.serial > node.serial)
            if later or (x.node, x.index) in {(result.node, result.index) for result in self.graph.results}:
                before = self._free(f"{state}Before")
                self._statement(f"let {before} = ", old, node)
                self._text[x.node, x.index] = Expression(before)
            name = state
        else:
            name = self._declare(node, 0)
            self._statement(f"var {name} = ", old, node)
        self._text[node, 0] = Expression(name)
        self._slices |= "SliceRange" in movement.items(op)
        target = f"{name}[{movement.items(op)}]" if op.items else name
        self._statement(f"{target} = ", value, node)

    def _write_call(self, node: Node) -> None:
        expression = CALLS[type(node.op)](node.op, _Call(self, node))
        self._slices |= "SliceRange" in expression.text
        if len(node.outputs) > 1:
            names = [self._declare(node, index) if (node, index) in self._used else "_" for index in range(len(node.outputs))]
            self._statement(f"let ({', '.join(names)}) = ", expression, node)
        elif self._is_nested(node, expression):
            self._text[node, 0] = expression
        else:
            name = self._declare(node, 0)
            self._statement(f"let {name} = ", expression, node)

    def _is_nested(self, node: Node, expression: Expression) -> bool:
        key = (node, 0)
        if self._used[key] != 1 or key in self._shown or self._is_named(node) or len(expression.text) > NESTED:
            return False
        consumer = self._consumer[key]
        reads_state = any(value.node in self._state for value in node.inputs)
        return consumer.origin == node.origin and consumer.group == node.group and not reads_state

    def _is_named(self, node: Node) -> bool:
        return self._given.get((node, 0), ("", False))[1]

    def _statement(self, left: str, expression: Expression, node: Node, remark: str = "") -> None:
        place = node.origin.place
        notes = [note for note in (remark, place if place != self._place else "") if note]
        self._place = place
        told = f"  {comment(', '.join(notes))}" if notes else ""
        line = f"{left}{expression.text}"
        if len(line) <= WIDTH or not expression.arguments:
            self._lines.append(line + told)
            return
        *first, last = expression.arguments
        self._lines.append(f"{left}{expression.head}({told}")
        self._lines += [f"    {argument}," for argument in first]
        self._lines.append(f"    {last})")

    # Names and operands

    def _declare(self, node: Node, index: int) -> str:
        name, _ = self._given.get((node, index), (camel(f"{operation_name(node)}_{node.serial}"), False))
        name = self._free(name)
        self._text[node, index] = Expression(name)
        return name

    def _free(self, name: str) -> str:
        free, number_ = name, 1
        while free in self._taken:
            number_ += 1
            free = f"{name}{number_}"
        self._taken.add(free)
        return free

    def tensor_of(self, value: Value) -> Expression:
        """The value as a tensor."""
        constant = self._constants.get(value.node)
        return self._constant(constant) if constant is not None else self._text[value.node, value.index]

    def parameter_of(self, value: Value) -> Expression:
        """The value as a tensor, or as a number or an array that becomes one."""
        constant = self._constants.get(value.node)
        if constant is None:
            return self._text[value.node, value.index]
        if constant.array.ndim == 1:
            return array(constant.array, constant.spec.dtype)
        if TYPES[constant.spec.dtype].startswith("Float"):
            return scalar(constant.array[()], constant.spec.dtype)
        return self._constant(constant)

    def elements_of(self, value: Value) -> Expression:
        """A constant as an array of ``Float``."""
        op = value.node.op
        assert isinstance(op, Constant)
        if not _is_inline(op):
            return Expression(self.weights.add(op.array.astype("float32"), Float32, op.name))
        if is_uniform(op.array):
            return array(op.array, Float32)
        return Expression(f"[{', '.join(number(each) for each in op.array)}]")


class _Call:
    """The operands of one node, for its spelling."""

    def __init__(self, writer: Writer, node: Node) -> None:
        self._writer = writer
        self.node = node

    def tensor(self, index: int) -> Expression:
        """The operand as a tensor."""
        return self._writer.tensor_of(self.node.inputs[index])

    def parameter(self, index: int) -> Expression:
        """The operand as a tensor, a number or an array."""
        return self._writer.parameter_of(self.node.inputs[index])

    def elements(self, index: int) -> Expression:
        """The operand as an array of ``Float``."""
        return self._writer.elements_of(self.node.inputs[index])


def _is_inline(op: Constant) -> bool:
    """Whether the elements stand in the source."""
    return op.array.size <= INLINE or is_uniform(op.array)


def _argument(value: Value) -> Argument:
    assert isinstance(value.node.op, Argument)
    return value.node.op


def _options(options: CompileOptions) -> str:
    """The argument ``options`` where Apple's part of them is not the default."""
    size = options.optimization_preference is OptimizationPreference.INTERNAL_REPRESENTATION_SIZE
    if not (options.use_single_thread or options.generate_debug_info or size):
        return ""
    preference = ".internalRepresentationSize" if size else ".performance"
    flags = [f"useSingleThread: {str(options.use_single_thread).lower()}"]
    flags.append(f"generateDebugInfo: {str(options.generate_debug_info).lower()}")
    return f"(options: BNNSGraph.CompileOptions({', '.join(flags)}, optimizationPreference: {preference}))"
