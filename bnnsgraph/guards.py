"""Checks of indices before a program runs, in NumPy, where they are arguments in the memory of the CPU.

The program is then compiled for indices that are inside their axes and count from the front, see
:meth:`IndexOp.assume_in_range`. It has less to do, its call returns while it still runs, as JAX's calls do, and a run that is
refused has begun nothing. XLA takes two to five times as long for such a check as NumPy, and with that much arithmetic it hands
the program to another thread, where a gather alone stays on the thread that calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from bnnsgraph.graph import Argument, Graph, Node, Value
from bnnsgraph.indices import IndexOp, count_from_front
from bnnsgraph.placement import platform
from bnnsgraph.spec import TensorSpec, element_count
from bnnsgraph.walking import checks
from bnnsgraph.xla import jax

MANY = 128
"""Of fewer indices the program makes the check itself: XLA counts eight operations an index, and from a thousand on it hands a
program to another thread."""
MANY_HERE = 1 << 16
"""The same where programs run on the thread that calls in any case, as :func:`configure_cpu` has it."""
FEW = 1 << 14
"""Up to so many numbers, ``argmax`` finds the largest sooner than ``maximum.reduce``, which takes longer to begin."""

Look: TypeAlias = Callable[[Sequence[Any]], bool]
"""Whether a guard is true of the arguments' arrays."""


class Guard(NamedTuple):
    """What must be true of an argument's elements: as unsigned numbers, in which negative ones are large, below a limit.

    Attributes:
        position: of the argument.
        unsigned: the type of the numbers.
        first: which of them address an axis: this one,
        step: and each so many behind it.
        limit: the size of the axis.
    """

    position: int
    unsigned: np.dtype[Any]
    first: int
    step: int
    limit: int

    @property
    def look(self) -> Look:
        """A function that looks whether it is true, the shortest way there is."""
        position, unsigned, first, step, limit = self
        view = np.frombuffer

        def numbers(array: Any) -> np.ndarray[Any, Any]:
            try:
                return view(array, unsigned)
            except (BufferError, ValueError):  # its memory is in several places
                return np.ascontiguousarray(array).reshape(-1).view(unsigned)

        def largest(array: Any) -> int:
            found = numbers(array)[first::step]
            return found.item(found.argmax()) if found.size <= FEW else int(np.maximum.reduce(found))

        return lambda arrays: largest(arrays[position]) < limit


def guards(graph: Graph, specs: Mapping[Value, TensorSpec]) -> dict[Node, list[Guard]]:
    """For each check that can be made before a run with values of these specs, what must be true instead.

    Indices that count from the end are inside of their axes, too, and yet it is not true of them.
    """
    if graph.options.mesh is not None or platform(graph) != "cpu":
        return {}
    many = MANY if jax.config.read("jax_cpu_enable_async_dispatch") else MANY_HERE
    positions = {value.node: position for position, value in enumerate(graph.arguments)}
    found: dict[Node, list[Guard]] = {}
    for node in checks(graph):
        op, given = node.op, node.inputs[-1]
        if not isinstance(op, IndexOp) or not isinstance(given.node.op, Argument):
            continue
        spec = specs[given]
        sizes = op.sizes(specs[node.inputs[0]], spec)
        if sizes and all(isinstance(size, int) for size in sizes) and cast(int, element_count(spec.shape)) >= many:
            place, unsigned = positions[given.node], np.dtype(f"u{spec.dtype.numpy.itemsize}")
            found[node] = [Guard(place, unsigned, axis, len(sizes), size) for axis, size in enumerate(sizes)]
    return found


def first_failed(nodes: Iterable[Node], graph: Graph, specs: Mapping[Value, TensorSpec], arrays: Sequence[Any]) -> Node | None:
    """The first of ``nodes``, which have guards, with an index that is outside its axis; None where all are inside."""
    given = {value.node: array for value, array in zip(graph.arguments, arrays, strict=True)}
    for node in nodes:
        op, indices = cast(IndexOp, node.op), np.asarray(given[node.inputs[-1].node])
        sizes = op.sizes(specs[node.inputs[0]], specs[node.inputs[-1]])
        if not count_from_front(indices, sizes, op.negative_indices)[1].all():
            return node
    return None
