"""Compiled programs that leave Python: ``jax.export`` artifacts with symbolic sizes, and StableHLO text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bnnsgraph.compile import Program, x64
from bnnsgraph.errors import ParameterError
from bnnsgraph.graph import Graph
from bnnsgraph.sizes import UNKNOWN, Size
from bnnsgraph.xla import jax

if TYPE_CHECKING:
    from jax.export import Exported

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")


def symbolic_arguments(graph: Graph, constraints: Sequence[str]) -> list[Any]:
    """One ``jax.ShapeDtypeStruct`` an argument; flexible sizes are JAX's symbolic ones, under the same names."""
    from jax import export

    names = sorted({name for value in graph.arguments for size in value.spec.shape for name in _names(size)})
    scope = export.SymbolicScope(constraints)
    symbols: dict[str, Any] = {name: export.symbolic_shape(name, scope=scope)[0] for name in names}
    structs: list[Any] = []
    for position, value in enumerate(graph.arguments):
        shape: list[Any] = []
        for axis, size in enumerate(value.spec.shape):
            if size is UNKNOWN:
                size = export.symbolic_shape(f"size_{position}_{axis}", scope=scope)[0]
            elif isinstance(size, Size):
                size = size.bind(symbols)
            shape.append(size)
        structs.append(jax.ShapeDtypeStruct(tuple(shape), value.spec.dtype.numpy))
    return structs


def _names(size: object) -> set[str]:
    return size.names() if isinstance(size, Size) else set()


def export_program(program: Program, platforms: Sequence[str], constraints: Sequence[str]) -> Exported:
    """The graph as one artifact for all the platforms: a function of the arguments by position to a dictionary of results."""
    from jax import export

    unknown = [platform for platform in platforms if platform not in PLATFORMS]
    if unknown or not platforms:
        raise ParameterError(f"platforms must be some of {', '.join(PLATFORMS)}, got {list(platforms)}")
    graph = program.graph
    names = [*graph.result_names, *(getattr(value.node.op, "name", "") for value in graph.updates)]

    def bnnsgraph(*arrays: Any) -> dict[str, Any]:
        outcome = program.pure(*arrays)
        return dict(zip(names, outcome.results + outcome.updates, strict=True))

    with x64(graph):
        try:
            return export.export(jax.jit(bnnsgraph), platforms=tuple(platforms))(*symbolic_arguments(graph, constraints))
        except Exception as error:
            if "InconclusiveDimensionOperation" not in type(error).__name__:
                raise
            reason, notes = str(error).partition("\n")[0], getattr(error, "__notes__", [])
            recorded = [note for note in notes if note.startswith("while lowering")]
            raise ParameterError(
                "constraints must say enough of the flexible sizes to export, such as constraints=['length >= 2'], "
                f"got {reason}",
                *recorded,
            ) from None
