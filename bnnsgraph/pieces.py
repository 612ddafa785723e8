"""Long programs in pieces, which XLA compiles one by one.

XLA's CPU compiler makes one kernel of element-wise work, however long it is. The time to compile one grows faster than its
length (4,000 products: 4.5 s, in pieces 0.4 s), and from some sixty operations on LLVM no longer finds registers for what it
computes at once (400 products of 2 million numbers: 45 ms, in pieces 24 ms; jaxlib 0.10.2).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from bnnsgraph.graph import Constant, Graph, Node

DEEPEST = 50
"""How many operations may follow from one another in a piece."""


class Piece(NamedTuple):
    """Consecutive nodes of a graph.

    Attributes:
        nodes: in their order, and the constants that they use, which every piece has for itself, as XLA folds what it knows.
        inputs: those before the piece whose values it uses.
        outputs: those in the piece whose values are used after it.
    """

    nodes: tuple[Node, ...]
    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]


def pieces(graph: Graph, given: Iterable[Node]) -> list[Piece]:
    """The graph's nodes; none of the pieces where nothing is gained by several.

    Args:
        graph: the program.
        given: nodes whose values are known before.
    """
    known = set(given)
    constants = {node for node in graph.nodes if isinstance(node.op, Constant)} - known
    runs: list[list[Node]] = [[]]
    depth: dict[Node, int] = {}
    for node in graph.nodes:
        if node in known or node in constants:
            continue
        deep = 0 if node.op.ends_fusion else 1 + max((depth.get(value.node, 0) for value in node.inputs), default=0)
        if deep > DEEPEST:
            runs.append([])
            depth, deep = {}, 1
        depth[node] = deep
        runs[-1].append(node)
    return [] if len(runs) == 1 else _joined(graph, runs, constants)


def _joined(graph: Graph, runs: Sequence[Sequence[Node]], constants: set[Node]) -> list[Piece]:
    place = {node: number for number, nodes in enumerate(runs) for node in nodes}
    folded: list[dict[Node, None]] = [{} for _ in runs]
    inputs: list[dict[Node, None]] = [{} for _ in runs]
    outputs: list[dict[Node, None]] = [{} for _ in runs]
    for node, number in place.items():
        for used in [value.node for value in node.inputs]:
            if used in constants:
                folded[number][used] = None
            elif (made := place.get(used)) != number:
                inputs[number][used] = None
                if made is not None:
                    outputs[made][used] = None
    for node in [value.node for value in (*graph.results, *graph.updates.values())]:
        if (made := place.get(node)) is not None:
            outputs[made][node] = None
    return [
        Piece((*own, *nodes), tuple(given), tuple(kept))
        for own, nodes, given, kept in zip(folded, runs, inputs, outputs, strict=True)
    ]
