"""Names of a graph's values: the user's variables where the source shows them."""

from __future__ import annotations

import ast
import linecache
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from bnnsgraph.graph import Argument, Constant, Graph, Node, Value

_WORDS = r"(?<=[a-z0-9])(?=[A-Z][a-z0-9])|(?<=[A-Z]{2})(?=[A-Z][a-z])|(?<=[a-z])(?=(?:ND|LSTM|K)$)"

_SPELLED: dict[str, str] = {
    "add": "add", "sub": "subtract", "mult": "multiply", "div": "divide", "floordiv": "floordivide", "mod": "remainder",
    "pow": "power", "matmult": "matmul", "usub": "negate", "invert": "not", "bitand": "and", "bitor": "or", "bitxor": "xor",
    "eq": "equal", "noteq": "notequal", "lt": "less", "lte": "lessequal", "gt": "greater", "gte": "greaterequal",
    "fma": "fusedmultiplyadd", "where": "select", "update": "sliceupdate", "max": "maximum", "min": "minimum",
}  # fmt: skip
"""What operators, and methods of another name than their operation's, record."""


_ALSO: dict[str, tuple[str, ...]] = {"subscript": ("slice", "gather"), "reshape": ("reshapeto",), "l2norm": ("l2normalize",)}
"""What methods record besides the operation of their name."""


def value_names(graph: Graph) -> dict[Value, str]:
    """One name for each value, all different, in recorded order.

    Arguments, constants and outputs keep the names that they were given. Otherwise the name is that of the variable or the
    attribute in ``name = ...`` where the value is what the outermost operation on the right gives; a name that is taken gets a
    number. Every other value is called after its operation and its number in the listing of the graph, such as ``add_3``.
    Results that nothing uses have names too.

    >>> def block(b):
    ...     x = b.argument("x", bg.Float32, [2, 3])
    ...     scaled = x * 2
    ...     return scaled.mean([0]) + 1
    >>> graph = bg.make_context(block).graph
    >>> list(value_names(graph).values())
    ['x', 'constant_1', 'scaled', 'reduce_mean_3', 'constant_4', 'output_0']
    """
    values = node_values(graph)
    given: dict[Value, str] = {value: node.op.name for node, (value, *_) in values.items() if isinstance(node.op, Argument)}
    for index, (name, value) in enumerate(zip(graph.result_names, graph.results, strict=True)):
        if not _is_default(name, index):
            given.setdefault(value, name)
    taken = set(given.values())
    variables = _variables(graph)
    outputs: dict[Value, str] = {}
    for name, value in zip(graph.result_names, graph.results, strict=True):
        outputs.setdefault(value, name)
    names: dict[Value, str] = {}
    for number, (node, results) in enumerate(values.items()):
        named = isinstance(node.op, Constant) and node.op.name
        variable = (re.sub(r"\W", "_", named),) if named else variables.get(node, ())
        for index, value in enumerate(results):
            if value in given:
                names[value] = given[value]
                continue
            several = f"_{index}" if len(results) > 1 else ""
            if len(variable) == len(results) and variable[index]:
                name = variable[index]
            elif len(variable) == 1 and variable[0]:
                name = variable[0] + several
            else:
                name = outputs.get(value) or f"{operation_name(node)}_{number}{several}"
            names[value] = _free(name, taken)
            taken.add(names[value])
    return names


def node_values(graph: Graph) -> dict[Node, tuple[Value, ...]]:
    """The values of every node, in recorded order; a result that nothing uses is a new :class:`Value`."""
    used = {(value.node, value.index): value for node in graph.nodes for value in node.inputs}
    used |= {(value.node, value.index): value for value in (*graph.arguments, *graph.results, *graph.updates.values())}
    return {
        node: tuple(used.get((node, index)) or Value(node, index) for index in range(len(node.outputs))) for node in graph.nodes
    }


def operation_name(node: Node) -> str:
    """The operation in snake case: ``reduce_mean``, ``gather_nd``, ``relu``."""
    return re.sub(_WORDS, "_", type(node.op).__name__).lower()


def is_numbered(value: Value, name: str) -> bool:
    """Whether a name of :func:`value_names` says no more than the operation and its place in the graph."""
    return re.fullmatch(rf"{operation_name(value.node)}_\d+(_\d+)?", name) is not None


def _is_default(name: str, index: int) -> bool:
    """Whether the output's name is one that no user chose."""
    return name.rstrip("_") == f"output_{index}"


def _free(name: str, taken: set[str]) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    return free


class _Assignment(NamedTuple):
    """What one statement binds to the results of operations of one kind."""

    lines: range
    kind: str
    occurrences: int
    """How often an operation of the kind stands on the right."""
    names: tuple[tuple[int, tuple[str, ...]], ...]
    """Which of these operations gets which name, or names."""


def _variables(graph: Graph) -> dict[Node, tuple[str, ...]]:
    """The variables that nodes' results were assigned to: one for each result, or one for all."""
    files: dict[str, dict[int, list[_Assignment]]] = {}
    found: defaultdict[tuple[str, str, _Assignment], list[Node]] = defaultdict(list)
    for node in graph.nodes:
        origin = node.origin
        if origin.file not in files:
            files[origin.file] = _read("".join(linecache.getlines(origin.file)), 1)
        written = files[origin.file]
        stale = linecache.getline(origin.file, origin.line).strip() != origin.text
        if not written or stale:  # a notebook's cell with magics, a loaded graph: the line alone
            written = _read(origin.text, origin.line)
        matching = [each for each in written.get(origin.line, ()) if _records(each.kind, node)]
        inner = [each for each in matching if len(each.lines) == min(len(other.lines) for other in matching)]
        if len(inner) == 1:
            found[origin.file, origin.function, inner[0]].append(node)
    named: dict[Node, tuple[str, ...]] = {}
    place = {node: number for number, node in enumerate(graph.nodes)}

    def together(run: list[Node], lines: range) -> bool:
        """Whether only the statement recorded from the first to the last; otherwise the graph needs a part of its results."""
        return all(node.origin.line in lines for node in graph.nodes[place[run[0]] : place[run[-1]]])

    for (_, _, assignment), nodes in found.items():
        count = assignment.occurrences
        runs = [nodes[start : start + count] for start in range(0, len(nodes), count)]  # a loop runs one line several times
        number, names = assignment.names[0]
        alone = number == count - 1  # the outermost operation comes last
        if len(nodes) % count == 0 and (alone or all(together(run, assignment.lines) for run in runs)):
            named |= {run[number]: names for run in runs for number, names in assignment.names}
        elif alone:
            named[nodes[-1]] = names
    return named


def _records(kind: str, node: Node) -> bool:
    """Whether what is written as ``kind`` records the operation of the node."""
    operation = type(node.op).__name__.lower()
    return kind in (operation, operation.removeprefix("reduce")) or operation in _ALSO.get(kind, ())


def _read(source: str, first: int) -> dict[int, list[_Assignment]]:
    """Every assignment of one operation's result in the source, by each of its lines; nothing if the source is not Python."""
    found: defaultdict[int, list[_Assignment]] = defaultdict(list)
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return found
    for statement in (node for node in ast.walk(tree) if isinstance(node, ast.stmt)):
        lines = range(statement.lineno + first - 1, (statement.end_lineno or statement.lineno) + first)
        bindings = [(_targets(target), _kind(value), value) for target, value in _bindings(statement)]
        for kind in dict.fromkeys(outermost for names, outermost, _ in bindings if any(names) and outermost):
            bound: list[tuple[int, tuple[str, ...]]] = []
            count = 0  # of operations of the kind, from left to right; the outermost of an expression is recorded last
            for names, outermost, value in bindings:
                count += sum(_kind(each) == kind and not _is_naming(each) for each in ast.walk(value))
                if outermost == kind and any(names):
                    bound.append((count - 1, names))
            assignment = _Assignment(lines, kind, count, tuple(bound))
            for line in lines:
                found[line].append(assignment)
    return found


def _bindings(statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Each target of a statement, and what it is bound to."""
    pairs: list[tuple[ast.expr, ast.expr]] = []
    match statement:
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(targets) == len(values):
            pairs += zip(targets, values, strict=True)
        case ast.Assign(targets=[target, *_], value=value) | ast.AnnAssign(target=target, value=ast.expr() as value):
            pairs.append((target, value))
        case ast.AugAssign(target=target, op=operator, value=value):
            pairs.append((target, ast.BinOp(target, operator, value)))
        case _:
            return
    for target, value in pairs:
        if isinstance(target, ast.Subscript):  # x[...] = value binds x to a new tensor
            yield target.value, ast.Call(ast.Attribute(target.value, "update"), [value], [])
        else:
            yield target, value


def _is_naming(expression: ast.AST) -> bool:
    return isinstance(expression, ast.Call) and isinstance(expression.func, ast.Attribute) and expression.func.attr == "named"


def _kind(expression: ast.AST) -> str:
    """The outermost operation as it is written; empty for what is none."""
    match expression:
        case ast.Call(func=ast.Attribute(value=inner, attr="named")):
            return _kind(inner)
        case ast.Call(func=ast.Attribute(attr=word) | ast.Name(id=word) | ast.Subscript(value=ast.Attribute(attr=word))):
            word = word.replace("_", "")
        case ast.BinOp(op=operator) | ast.UnaryOp(op=operator) | ast.Compare(ops=[operator]):
            word = type(operator).__name__.lower()
        case ast.Subscript():
            return "subscript"
        case _:
            return ""
    return _SPELLED.get(word, word)


def _targets(target: ast.expr) -> tuple[str, ...]:
    """The names that a target binds; empty where it binds none."""
    match target:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return ("" if name == "_" else name,)
        case ast.Tuple(elts=targets) | ast.List(elts=targets):
            return tuple("".join(_targets(each)) if isinstance(each, (ast.Name, ast.Attribute)) else "" for each in targets)
        case _:
            return ()
