"""Graphs as values: what equality, hashes, copies and pickles of them go by."""

from __future__ import annotations

from typing import Any, cast


class Identified:
    """The base of :class:`bnnsgraph.Graph`: two are equal when everything but the lines that recorded them is.

    A loaded graph equals the one that was saved, unless that is bound to a device, and both are one static argument to
    ``jax.jit``. The comparison needs a digest of the graph and its constants, computed when it is first asked for.

    >>> import jax
    >>> graph = bg.make_context(lambda b: b.argument("x", bg.Float32) + 1).graph
    >>> double = jax.jit(lambda graph, x: bg.Context(graph).function(x) * 2, static_argnums=0)
    >>> double(graph, 3.0)
    Array(8., dtype=float32)
    """

    __slots__ = ("_digest",)

    def __init__(self) -> None:
        self._digest: bytes | None = None

    def __eq__(self, other: object) -> bool:
        from bnnsgraph.describing import places

        if self is other or not isinstance(other, Identified):
            return self is other
        one, two = cast("Any", self), cast("Any", other)
        if len(one.nodes) != len(two.nodes) or places(one.options) != places(two.options):
            return False
        return self._identity() == other._identity()

    def __hash__(self) -> int:
        return int.from_bytes(self._identity()[:8], "little")

    def _identity(self) -> bytes:
        from bnnsgraph.describing import digest

        if self._digest is None:
            self._digest = digest(cast("Any", self))
        return self._digest

    def __reduce__(self) -> tuple[Any, ...]:
        from bnnsgraph.describing import pickled, unpickled

        return unpickled, pickled(cast("Any", self))
