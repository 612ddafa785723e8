"""What changes when a graph goes to Apple's side."""

from __future__ import annotations

from typing import Literal, NamedTuple

from bnnsgraph.graph import Argument, Graph, Node
from bnnsgraph.origin import Origin


class Difference(NamedTuple):
    """One thing that is not the same on Apple's side.

    Attributes:
        kind: ``"refused"`` where nothing can stand in for the operation, ``"rewritten"`` where others of Apple's do, and
            ``"differs"`` where the operation is there but may answer differently, or Apple's pages leave its answer open.
        operation: the operation as listings show it.
        origin: the line that recorded it.
        what: what differs, or what it is rewritten into.
    """

    kind: Literal["refused", "rewritten", "differs"]
    operation: str
    origin: Origin
    what: str


class Portability(tuple[Difference, ...]):
    """Every :class:`Difference` of a graph, in recorded order. ``str`` is a table."""

    __slots__ = ()

    @property
    def is_portable(self) -> bool:
        """Whether :meth:`Graph.to_swift` can write the graph: nothing is refused."""
        return all(each.kind != "refused" for each in self)

    def __str__(self) -> str:
        if not self:
            return "nothing differs on Apple's side"
        rows = [(each.kind, each.operation, each.origin.place, each.what) for each in self]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        return "\n".join("  ".join([*[row[i].ljust(widths[i]) for i in range(3)], row[3]]) for row in rows)


def portability(graph: Graph) -> Portability:
    """What would behave differently if the graph ran on Apple's ``BNNSGraph.Builder``.

    It lists the operations and element types that have no counterpart, those that :meth:`Graph.to_swift` rewrites, and those
    whose answer may differ: negative indices and indices outside their axis, NaN, ties, signs, and what Apple's pages leave
    open. It judges from the documents; nothing runs on Apple's side.

    >>> def block(b):
    ...     x = b.argument("x", bg.Float32, [2, 3])
    ...     return -x.max(0)
    >>> for difference in bg.portability(bg.make_context(block).graph):
    ...     print(difference.kind, difference.operation, difference.what, sep=": ")
    differs: Maximum(): NaN of either operand is the result here; Core ML compares, and a NaN on the left gives the right
    rewritten: Negate(): x * -1, or 0 - x of unsigned integers
    """
    from bnnsgraph.display.text import operation
    from bnnsgraph.swift.differences import of_graph, of_node
    from bnnsgraph.swift.emit import ported_graph

    ported = ported_graph(graph)
    found: dict[Node, list[Difference]] = {node: [] for node in graph.nodes}

    def add(node: Node, kind: Literal["refused", "rewritten", "differs"], what: str) -> None:
        label = f" {node.op.name}" if isinstance(node.op, Argument) else ""
        found[node].append(Difference(kind, operation(node) + label, node.origin, what))

    for node, text in ported.refused:
        add(node, "refused", text)
    for node, text in ported.rewritten:
        add(node, "rewritten", text)
    refused = {node for node, _ in ported.refused}
    for node in graph.nodes:
        if node not in refused:
            for text in of_node(node):
                add(node, "differs", text)
    for node, text in of_graph(graph):
        add(node, "differs", text)
    return Portability(each for node in graph.nodes for each in found[node])
