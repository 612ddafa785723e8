"""The passes in a row, for each set of sizes that a graph runs with."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from bnnsgraph.graph import CheckedOp, Graph, Node, Value
from bnnsgraph.indices import IndexOp
from bnnsgraph.ops.creation import Fill
from bnnsgraph.ops.gathering import GatherOp
from bnnsgraph.ops.rearrangement import OneHot, Split
from bnnsgraph.ops.slicing import Slice
from bnnsgraph.passes.bags import bagged
from bnnsgraph.passes.editing import Draft, Editor, Rewrite, Rewrites, drafted, finished
from bnnsgraph.passes.folding import folded
from bnnsgraph.passes.moving import moved
from bnnsgraph.sizes import UNKNOWN
from bnnsgraph.spec import Shape

SELECTIONS = (GatherOp, Slice, OneHot, Split)
MOST_SWEEPS = 16
"""Each sweep moves every selection as far as it can go; a second is needed only for what the first brought together."""


def rewritten(graph: Graph, shapes: Sequence[Shape], *, checked: bool, run: bool = False) -> tuple[Graph, Rewrites]:
    """A graph with the same results that computes less of what is thrown away, and what was changed.

    It makes the checks of the recorded graph in the recorded order. The very graph where there is nothing to change.

    Args:
        graph: the recorded graph.
        shapes: of the arguments; sizes may be JAX's symbolic ones.
        checked: whether checks will be made; otherwise what does not exist is filled.
        run: whether the program is run as it is, and not differentiated.
    """
    if not graph.options.optimize_graph or not any(isinstance(node.op, SELECTIONS) for node in graph.nodes):
        return graph, Rewrites()
    draft = drafted(graph, shapes)
    if checked:
        draft = unchecked(draft)
    records: list[Rewrite] = []
    for _ in range(MOST_SWEEPS):
        draft, one = folded(draft)
        draft, other = moved(draft)
        if not one and not other:
            break
        records += [*one, *other]
    if run:
        draft, bags = bagged(draft, graph)
        records += bags
    return (finished(draft, graph), Rewrites(records)) if records else (graph, Rewrites())


def unchecked(draft: Draft) -> Draft:
    """Checks apart from the gathers that need them: a gather of nothing in particular, in the place of the recorded one."""
    if not any(isinstance(node.op, CheckedOp) and node.op.needs_check for node in draft.nodes):
        return draft
    editor = Editor(draft)
    checks: list[Value] = []
    readers = {value.node for node in draft.nodes for value in node.inputs}
    for node in draft.nodes:
        op = node.op
        if not isinstance(op, CheckedOp) or not op.needs_check:
            editor.keep(node)
        elif node not in readers and not node.inputs[0].node.inputs:  # nothing before it, and nothing behind it
            checks += editor.keep(node)
        elif isinstance(op, GatherOp) and UNKNOWN not in node.inputs[0].spec.shape:
            spec = node.inputs[0].spec
            x, indices = (editor.new(value) for value in node.inputs)
            nothing = editor.emit_one(Fill(spec.shape, False if spec.dtype.name == "bool" else 0, spec.dtype), (), node)
            checks.append(editor.emit_one(op, (nothing, indices), node))
            editor.put(node, editor.emit(op.assume_checked(), (x, indices), node))
        else:
            checks += editor.keep(node)
    return editor.finish(checks)


def in_range(graph: Graph, nodes: Collection[Node]) -> Graph:
    """The graph with ``nodes`` for indices that are inside their axes and count from the front."""
    editor = Editor(Draft(graph.nodes, graph.arguments, graph.results, tuple(graph.updates.items())))
    for node in graph.nodes:
        if node in nodes:
            assert isinstance(node.op, IndexOp)
            editor.put(node, editor.emit(node.op.assume_in_range(), [editor.new(value) for value in node.inputs], node))
        else:
            editor.keep(node)
    return finished(editor.finish(), graph)


class Rewriter:
    """Rewrites one graph for each set of sizes, and remembers."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._found: dict[Any, tuple[Graph, Rewrites]] = {}
        self.last = Rewrites()
        """What was changed for the sizes that were new most recently."""

    def __call__(
        self, shapes: Sequence[Sequence[Any]], checked: bool, run: bool, guarded: frozenset[Node] = frozenset()
    ) -> Graph:
        """The graph to lower, for indices of ``guarded`` operations that were looked at before."""
        key = tuple(map(tuple, shapes)), checked, run, guarded
        found = self._found.get(key)  # threads may rewrite for the same sizes: to graphs that are as good as each other
        if found is None:
            graph = in_range(self._graph, guarded) if guarded else self._graph
            found = rewritten(graph, key[0], checked=checked, run=run)
            if len(self._found) >= self._graph.options.max_executables:
                self._found = {}
            self._found[key] = found
            self.last = found[1]
        return found[0]
