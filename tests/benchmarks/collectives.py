"""What a compiled program sends between devices, read from its text."""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

from bnnsgraph.spec import bind_shape

KINDS = ("all-gather", "all-reduce", "all-to-all", "collective-broadcast", "collective-permute", "reduce-scatter")
CALL = re.compile(rf"= (?P<types>.+?) (?P<kind>{'|'.join(KINDS)}|ragged-all-to-all)\((?P<rest>.*)")
TYPE = re.compile(r"([a-z]+[0-9a-z]*)\[([0-9,]*)\]")
NAMED = re.compile(r"replica_groups=mesh\[(?P<mesh>[^\]]*)\](?:, device_ids=\(.*?\))? \{(?P<axes>[^}]*)\}")
COUNTED = re.compile(r"replica_groups=\[\d+,(\d+)\]")
LISTED = re.compile(r"replica_groups=\{\{([0-9,]+)\}")


class Collective(NamedTuple):
    """One collective operation.

    Attributes:
        kind: XLA's name.
        bytes: of its result on one device.
        group: how many devices take part together.
    """

    kind: str
    bytes: int
    group: int

    @property
    def moved(self) -> float:
        """Bytes that each device sends when the devices of a group pass parts around a ring, as NCCL and TPUs do."""
        n = self.group
        return {
            "all-reduce": 2 * (n - 1) / n,
            "all-gather": (n - 1) / n,
            "all-to-all": (n - 1) / n,
            "reduce-scatter": n - 1,  # of the result, which is one n-th of what is reduced
        }.get(self.kind, 1) * self.bytes


def collectives(text: str) -> list[Collective]:
    """Those of a compiled program's text."""
    return [
        Collective(call["kind"], sum(_size(*found) for found in TYPE.findall(call["types"])), _group(call["rest"]))
        for call in map(CALL.search, text.splitlines())
        if call
    ]


def compiled_text(context: Any, **sizes: int) -> str:
    """The text of a context's program, as XLA optimised it; the program that runs, which is compiled once."""
    runner = context._runner
    shapes = [bind_shape(value.spec.shape, sizes) for value in context.graph.arguments]
    entry = runner.prepare(shapes, "its text")
    with runner.placed().modes():
        return runner._lower(entry.run, shapes).compile().as_text()


def _size(dtype: str, shape: str) -> int:
    bits = int(re.sub(r"\D", "", dtype.split("e")[0]) or 8)  # pred has a byte
    return max(bits // 8, 1) * math.prod(int(size) for size in shape.split(",") if size)


def _group(rest: str) -> int:
    if named := NAMED.search(rest):
        sizes = dict(re.findall(r"'([^']+)'=(\d+)", named["mesh"]))
        parts = re.findall(r"'([^']+)'(?::\(\d+\)(\d+))?", named["axes"])  # an axis, or a part of one
        return math.prod(int(part or sizes[axis]) for axis, part in parts)
    if counted := COUNTED.search(rest):
        return int(counted[1])
    if listed := LISTED.search(rest):
        return listed[1].count(",") + 1
    return 1
