"""Tensors and graphs as text."""

from __future__ import annotations

from bnnsgraph.graph import Argument, Constant, Graph, Intent, Node, Value


def operation(node: Node) -> str:
    """The operation of a node without what is said elsewhere on the line."""
    op = node.op
    if isinstance(op, Argument):
        return "Argument" if op.intent is Intent.INPUT else "Argument (in-out)"
    return str(op)


def call(text: str, operands: str) -> str:
    """An operation applied to its operands: ``Add()`` to ``Add(%0, %1)``, ``Slice[1:]`` to ``Slice[1:](%0)``.

    >>> call("Sum(axes=(0,))", "%0")
    'Sum(%0, axes=(0,))'
    """
    if not operands:
        return text
    name, bracket, rest = text.partition("(")
    if not bracket or "[" in name:
        return f"{text}({operands})"
    return f"{name}({operands}{'' if rest == ')' else ', '}{rest}"


def describe(value: Value, name: str | None) -> str:
    """One line: name, type, operation, place."""
    label = f"{name}: " if name else ""
    where = value.node.origin.place
    where = "" if where.startswith("<") else f"  {where}"  # nobody can look up a line of a prompt
    return f"{label}{value.spec} {operation(value.node)}{where}"


def listing(graph: Graph) -> str:
    """One numbered line for each node, operands by number, and the results last."""
    names: dict[tuple[Node, int], str] = {}
    rows: list[tuple[str, str, str, str]] = []
    for number, node in enumerate(graph.nodes):
        for index in range(len(node.outputs)):
            names[node, index] = f"%{number}" + (f".{index}" if len(node.outputs) > 1 else "")
        operands = ", ".join(names[value.node, value.index] for value in node.inputs)
        label = node.op.name if isinstance(node.op, (Argument, Constant)) and node.op.name else ""
        text = call(operation(node), operands)
        if label and isinstance(node.op, Argument):
            text = f"{label}: {text}"
        rows.append((f"%{number}", ", ".join(map(str, node.outputs)), text, node.origin.place))
    for update_of, value in graph.updates.items():
        op = update_of.node.op
        rows.append(("update", str(value.spec), f"{getattr(op, 'name', '')} = {names[value.node, value.index]}", ""))
    for name, value in zip(graph.result_names, graph.results, strict=True):
        rows.append(("return", str(value.spec), f"{name} = {names[value.node, value.index]}", ""))
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row[:3], widths, strict=True)) + f"  {row[3]}" for row in rows]
    return "\n".join(line.rstrip() for line in lines)


__all__ = ["describe", "listing", "operation"]
