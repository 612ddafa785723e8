"""Selections moved ahead of the operations that compute what they throw away.

One walk from the results to the arguments finds the part of each value that all its readers agree on; one walk back builds the
graph of those parts. A value that any reader needs whole is computed whole.

A changed graph does no more work than the recorded one. Every operation is built once, whoever reads it, for all positions or
for fewer: a selection that has as many positions as its axis, or more, stays where it is, and so does one of a value that is a
result or that another reader needs whole. What may grow is the number of selections, where an operation has several operands:
each step ahead of an operation is weighed by :func:`bnnsgraph.passes.costs.is_gain`. Operations that XLA computes for selected
elements alone are passed only on the way to one that it does not.
"""

from __future__ import annotations

from bnnsgraph.graph import Node, Value
from bnnsgraph.passes.costs import is_fused
from bnnsgraph.passes.editing import Draft, Editor, Rewrite, label
from bnnsgraph.passes.plans import plan
from bnnsgraph.passes.regions import Part, Parts, Pick, Region, Rows, common, region, saved
from bnnsgraph.passes.work import Plan, whole


def moved(draft: Draft) -> tuple[Draft, list[Rewrite]]:
    """The draft with its selections made as early as they gain by it."""
    return Mover(draft).run()


class Mover:
    """One use of the pass."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.editor = Editor(draft)
        self._parts = Parts(self.editor, lambda pick: self.want(Value(*pick.indices), pick.region))
        self._plans: dict[Node, Plan] = {}
        self._built: set[Node] = set()

    def run(self) -> tuple[Draft, list[Rewrite]]:
        """Both walks; the same draft when there is nothing to move."""
        self._plan()
        records = self._records()
        if not records:
            return self.draft, []
        for node in self.draft.nodes:
            if (
                node in self._plans and not self._plans[node].picks
            ):  # the others are built when they are needed: indices may come after them
                self._build(node)
        return self.editor.finish(), records

    def _plan(self) -> None:
        asked: dict[Node, Region] = {}
        fixed = {value.node for value in self.draft.checks}
        for value in (*self.draft.arguments, *self.draft.roots):
            asked[value.node] = ()
        for node in reversed(self.draft.nodes):
            if node not in asked:  # its readers do not read it any more
                continue
            found = whole(node) if node in fixed else plan(node, asked[node])
            self._plans[node] = found
            for value, picks in found.wants:
                asked[value.node] = common(asked[value.node], picks) if value.node in asked else picks
        for node in self.draft.nodes:
            found = self._plans.get(node)
            if found is not None and is_fused(node.op) and not self._is_worth(found):
                self._plans[node] = whole(node)

    def _is_worth(self, found: Plan) -> bool:
        """Whether selections are worth making before an operation that XLA computes for what is selected alone.

        They are when they are made earlier still. A slice of the only operand costs nothing.
        """
        selected = {want for want in found.wants if want[1]}
        sliced = all(isinstance(pick, Part) for _, pick in found.picks)
        return (sliced and len(selected) < 2) or any(self.accepted(value) for value, _ in selected)

    def _records(self) -> list[Rewrite]:
        """What is going to be done, in the order of the selections."""
        through: dict[Node, list[Node]] = {}
        counts: dict[Node, int | None] = {}
        for node in reversed(self.draft.nodes):
            if node not in self._plans:
                continue
            found = self._plans[node]
            done = [pick for axis, pick in found.picks if self._is_moved(found, axis, pick)]
            for by in dict.fromkeys(pick.by for pick in done):
                through.setdefault(by, []).append(node)
            if done:
                by, before = done[0].by, counts.get(done[0].by, 0)
                fewer = saved([spec.shape for spec in node.outputs], found.picks)
                counts[by] = None if fewer is None or before is None else before + fewer
        return [
            Rewrite(
                f"{label(node.op)} moved ahead of",
                node.origin,
                tuple((type(other.op).__name__, other.origin) for other in through[node]),
                counts.get(node, 0),
            )
            for node in sorted(through, key=lambda node: node.serial)
        ]

    def _is_moved(self, found: Plan, axis: int, pick: Pick) -> bool:
        """Whether a pick is made before the node, which a selection leaves to its operand, and that to its own, and so on."""
        while found.moved is not None and axis in found.moved:
            value, axis = found.moved[axis]
            found = self._plans[value.node]
            if dict(found.picks).get(axis) != pick:
                return False
        return True

    def _build(self, last: Node) -> None:
        """Build a node, and before it what it needs; a loop, so that a chain of any length is safe."""
        waiting = [last]
        while waiting:
            node = waiting[-1]
            if node in self._built:
                waiting.pop()
                continue
            missing = [other for other in self._needs(node) if other not in self._built]
            if missing:
                waiting += missing
                continue
            self.editor.put(node, self._plans[node].build(self))
            self._built.add(node)
            waiting.pop()

    def _needs(self, node: Node) -> list[Node]:
        found: list[Node] = []
        regions: list[Region] = []
        for value, picks in self._plans[node].wants:
            found.append(value.node)
            regions.append(picks)
        while regions:
            for _, pick in regions.pop():
                if isinstance(pick, Rows):
                    found.append(pick.indices[0])
                    regions.append(pick.region)
        return found

    # What plans use

    def want(self, value: Value, picks: Region) -> Value:
        """The part of an old value."""
        done = dict(self.accepted(value))
        return self.rest(self.editor.new(value), region({axis: pick for axis, pick in picks if axis not in done}))

    def accepted(self, value: Value) -> Region:
        """The part of an old value that is computed."""
        return self._plans[value.node].picks

    def rest(self, value: Value, picks: Region) -> Value:
        """A part of a new value."""
        return self._parts.take(value, picks)
