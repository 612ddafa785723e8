"""One walk over a graph serves every way of running it: compiled, op by op, differentiated, exported."""

from __future__ import annotations

import contextlib
import os
from collections import ChainMap
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

from bnnsgraph.elements import settled
from bnnsgraph.graph import CheckedOp, Constant, Graph, Node
from bnnsgraph.indices import IndexOp
from bnnsgraph.pieces import Piece, pieces
from bnnsgraph.placement import platform, whole_beyond
from bnnsgraph.xla import jax, jnp

_Made = TypeVar("_Made")
Values: TypeAlias = MutableMapping[Node, tuple[Any, ...]]
Visit: TypeAlias = Callable[[Node, tuple[Any, ...]], tuple[Any, ...] | None]


class Outcome(NamedTuple):
    """What one run gives."""

    results: tuple[Any, ...]
    updates: tuple[Any, ...]
    failure: Any
    """Scalar int32: 0, or the place of the first failed check in :func:`checks`, counted from 1. None without checks."""

    @property
    def values(self) -> tuple[Any, ...]:
        """Results, updates, and the failure if there is one, in one row, which JAX returns faster."""
        return (*self.results, *self.updates) if self.failure is None else (*self.results, *self.updates, self.failure)


def checks(graph: Graph) -> tuple[Node, ...]:
    """The operations whose values a run has to check."""
    return tuple(node for node in graph.nodes if isinstance(node.op, CheckedOp) and node.op.needs_check)


def walk(
    graph: Graph,
    arrays: Sequence[Any],
    parameters: Mapping[Node, Any],
    *,
    checked: bool,
    visit: Visit | None = None,
    cut: bool = False,
) -> Outcome:
    """Lower every node once, in order.

    Args:
        graph: the program.
        arrays: one array, or tracer, an argument.
        parameters: values of the constants that are not part of the program.
        checked: report failed checks in the outcome; otherwise results that do not exist are filled so that they cannot pass
            for data.
        visit: called with each node and its values; what it returns takes their place.
        cut: lower a long program in :mod:`pieces <bnnsgraph.pieces>`; not with ``visit``.
    """
    with jax.default_matmul_precision(graph.options.precision):
        walker = _Walker(graph, arrays, checked, parameters.keys())
        values: Values = {value.node: (array,) for value, array in zip(graph.arguments, arrays, strict=True)}
        given = values | {node: (array,) for node, array in parameters.items()}
        parts = pieces(graph, given) if cut else []
        if parts:
            return walker.outcome(given, walker.by_piece(parts, given))
        flags: list[Any] = []
        for node in graph.nodes:
            if node in values:
                continue
            values[node] = given[node] if node in given else walker.lowered(node, values, flags)
            if visit is not None:
                values[node] = visit(node, values[node]) or values[node]
        return walker.outcome(values, flags)


class _Walker:
    """What all nodes of one walk share."""

    def __init__(self, graph: Graph, arrays: Sequence[Any], checked: bool, parameters: AbstractSet[Node]) -> None:
        self.graph = graph
        self.parameters = parameters
        self.checked = checked
        self.sizes = graph.solve([array.shape for array in arrays])
        self.keep_whole = whole_beyond(graph)
        self.beside = _ends(graph) if checked and platform(graph) == "cpu" else set[Node]()

    def lowered(self, node: Node, values: Values, flags: list[Any]) -> tuple[Any, ...]:
        """The values of one node; adds the flag of its check."""
        operands = [values[operand.node][operand.index] for operand in node.inputs]
        op = node.op
        try:
            if isinstance(op, IndexOp):
                operands[-1] = self.number(node.inputs[-1].node, operands[-1])
            op = settled(node, self.sizes, lambda value: values[value.node][value.index].shape)
            limits = op.spread_axes if self.keep_whole else None
            if self.keep_whole and limits:
                operands = [self.keep_whole(array, limit) for array, limit in zip(operands, limits, strict=False)]
            with _scope(self.graph, node):
                if self.checked and isinstance(op, CheckedOp) and op.needs_check:
                    flags.append(op.failed(*operands))
                    lowered = (op.lower_beside_check if node in self.beside else op.assume_checked().lower)(*operands)
                else:
                    lowered = op.lower(*operands)
            if self.keep_whole and limits:
                lowered = self.keep_whole(lowered, limits[-1])
        except Exception as error:
            error.add_note(f"while lowering {op}, recorded at {node.origin}: {node.origin.text}")
            if any(map(_is_explicit, operands)):
                error.add_note(
                    "an array lies on a mesh with explicit axes; call the context itself, with CompileOptions(mesh=), "
                    "make the mesh with axes of type Auto, or call the function inside of jax.sharding.auto_axes"
                )
            raise
        return tuple(lowered) if len(node.outputs) > 1 else (lowered,)

    def number(self, node: Node, array: Any) -> Any:
        """The numbers of a constant that is part of the program, which an operation may look at; else the array."""
        return node.op.array if isinstance(node.op, Constant) and node not in self.parameters else array

    def by_piece(self, parts: Sequence[Piece], values: dict[Node, tuple[Any, ...]]) -> list[Any]:
        """The flags of all checks; adds the values that are used outside of their piece."""
        flags: list[Any] = []
        shapes = dict(values)  # also of what stays in its piece, from which a later shape may follow

        def lower(piece: Piece, arrays: Sequence[tuple[Any, ...]]) -> tuple[list[tuple[Any, ...]], list[Any]]:
            own = dict(zip(piece.inputs, arrays, strict=True))
            known: Values = ChainMap(own, shapes)
            flags: list[Any] = []
            for node in piece.nodes:
                own[node] = self.lowered(node, known, flags)
            shapes.update((node, tuple(jax.typeof(array) for array in own[node])) for node in piece.nodes)
            return [own[node] for node in piece.outputs], flags

        for piece in parts:
            made, found = _apart(partial(lower, piece), [values[node] for node in piece.inputs])
            values |= zip(piece.outputs, made, strict=True)
            flags += found
        for value in (*self.graph.results, *self.graph.updates.values()):
            if value.node not in values:  # a constant
                values[value.node] = self.lowered(value.node, values, flags)
        return flags

    def outcome(self, values: Values, flags: Sequence[Any]) -> Outcome:
        """What leaves the program."""
        results = tuple(values[value.node][value.index] for value in self.graph.results)
        updates = tuple(values[value.node][value.index] for value in self.graph.updates.values())
        return Outcome(results, updates, _first(flags) if flags else None)


def _apart(function: Callable[[Any], _Made], arrays: Any) -> _Made:
    """``function(arrays)``, which XLA compiles by itself instead of as a part of what stands around it."""
    from jax.experimental import xla_metadata

    tag = cast("Callable[..., Any]", xla_metadata.set_xla_metadata)

    def marked(value: Any) -> Any:  # marks the call that makes it
        return tag(value, inlineable="false")

    return jax.tree.map(marked, jax.jit(function)(arrays))


def _ends(graph: Graph) -> set[Node]:
    """The nodes whose values are results and nothing else."""
    return {value.node for value in graph.results} - {value.node for node in graph.nodes for value in node.inputs}


def _is_explicit(array: Any) -> bool:
    """Whether an array's type says how it is spread, so that JAX refuses operations whose results could lie in several ways."""
    mesh = getattr(getattr(getattr(array, "aval", None), "sharding", None), "mesh", None)
    return bool(getattr(mesh, "explicit_axes", ()))


def _first(flags: Sequence[Any]) -> Any:
    """The place of the first True, counted from 1; 0 where there is none."""
    place = jnp.int32(0)
    for number, flag in reversed(list(enumerate(flags, 1))):
        place = jnp.where(flag, jnp.int32(number), place)
    return place


def _scope(graph: Graph, node: Node) -> contextlib.AbstractContextManager[object]:
    """The name under which the compiled program and profiles show a node, when the options ask for names."""
    if not graph.options.generate_debug_info:
        return contextlib.nullcontext()
    return jax.named_scope(f"{type(node.op).__name__}@{os.path.basename(node.origin.file)}:{node.origin.line}")
