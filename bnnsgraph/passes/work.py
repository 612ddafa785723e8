"""What is to be done about one node: which part of it is computed, from which parts of its operands, and how."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from bnnsgraph.graph import Node, Value
from bnnsgraph.passes.editing import Editor
from bnnsgraph.passes.regions import Region


class Work(Protocol):
    """What a plan needs to build nodes."""

    @property
    def editor(self) -> Editor:
        """Emits nodes."""
        ...

    def want(self, value: Value, picks: Region) -> Value:
        """The part of an old value."""
        ...

    def accepted(self, value: Value) -> Region:
        """The part of an old value that is computed; the same or more than was asked."""
        ...

    def rest(self, value: Value, picks: Region) -> Value:
        """A part of a new value."""
        ...


Want: TypeAlias = tuple[Value, Region]
Build: TypeAlias = Callable[[Work], tuple[Value, ...]]


@dataclass(frozen=True)
class Plan:
    """One node's.

    Attributes:
        picks: the part of the results that is computed.
        wants: what is needed of the operands; an operand may be missing here, or stand twice.
        build: makes the part.
        moved: for each pick that may turn out not to be made earlier, the operand and its axis; see :class:`Work`.
    """

    picks: Region
    wants: tuple[Want, ...]
    build: Build
    moved: Mapping[int, tuple[Value, int]] | None = None


def whole(node: Node) -> Plan:
    """The node as it is."""
    wants = tuple((value, ()) for value in node.inputs)
    return Plan((), wants, lambda work: work.editor.keep(node))
