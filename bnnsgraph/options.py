"""What a user may decide for a whole graph, and the out-of-bounds modes of single operations."""

from __future__ import annotations

import enum
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from bnnsgraph.errors import ParameterError
from bnnsgraph.frozen import Frozen, frozen

if TYPE_CHECKING:
    import jax


@frozen
class Fill(Frozen):
    """Out-of-bounds mode: gathered slices become ``value``."""

    value: float | int | bool

    def __repr__(self) -> str:
        return f"fill({self.value!r})"


def fill(value: float | bool) -> Fill:
    """The out-of-bounds mode in which gathered slices that do not exist become ``value``.

    ``value`` must be exactly a value of the gathered tensor's dtype (rounding of floats apart).

    >>> fill(0)
    fill(0)
    """
    return Fill(value)


OutOfBounds: TypeAlias = Literal["raise", "clip", "drop", "unchecked"] | Fill
"""What an index outside its axis does; see the index rule in the documentation."""

NegativeIndices: TypeAlias = Literal["from_end", "out_of_bounds"]
"""Whether -1 names the last element, or nothing (Core ML from iOS 17)."""


Precision: TypeAlias = Literal["highest", "high", "default"]
"""Of products of float32; see :class:`CompileOptions`."""


class OptimizationPreference(enum.Enum):
    """What compilation optimises for (Swift ``CompileOptions.OptimizationPreference``)."""

    PERFORMANCE = "performance"
    INTERNAL_REPRESENTATION_SIZE = "internal_representation_size"


@dataclass(frozen=True, kw_only=True)
class CompileOptions:
    """Options of one graph (Swift ``BNNSGraph.CompileOptions``; the index rules are ours).

    Args:
        use_single_thread: run on one thread of the CPU (Swift ``useSingleThread``); refused on other devices.
        generate_debug_info: name each recorded operation and its line in the compiled program, where profilers show them
            (Swift ``generateDebugInfo``).
        optimization_preference: ``INTERNAL_REPRESENTATION_SIZE`` keeps all constants but single numbers out of the compiled
            program (Swift ``optimizationPreference``).
        out_of_bounds: default of every gather and scatter: ``"raise"``, ``"clip"``, ``fill(value)`` (scatters skip the update)
            or ``"unchecked"``.
        negative_indices: ``"from_end"`` counts them from the end of the axis, ``"out_of_bounds"`` refuses them.
        precision: of products of float32 where the device offers several: ``"highest"`` is float32 throughout, ``"high"`` and
            ``"default"`` are what JAX calls so, faster and coarser on GPUs and TPUs. The CPU knows one.
        device: where to run: a ``jax.Device``, or text such as ``"cpu"``, ``"gpu"``, ``"cpu:1"``. JAX's default device if None.
        mesh: a ``jax.sharding.Mesh`` of devices to run on together. Explicit axes, those of ``jax.make_mesh``, become axes of
            type Auto, also those of the outputs.
        shardings: a ``jax.sharding.PartitionSpec`` for each argument, constant or output that is spread over the mesh, by name.
            Other arguments and constants are whole on every device; XLA chooses for other outputs.
        donate: give the memory of an in-out argument that is a ``jax.Array`` to its new value, so that it is updated in place.
            The array given cannot be used after the run; a run that fails leaves it as it was.
        compilation_cache: a folder that keeps compiled programs from one process to the next: JAX's persistent cache. Each
            :class:`Compilation` says whether it was found there.
        max_executables: how many compiled programs a context keeps, one for each set of sizes; the oldest is dropped first.
        optimize_graph: compute only what is needed: move selections (``gather``, slices) ahead of the operations whose results
            they choose from, where that costs less. ``context.rewrites`` says where. Products may differ by rounding.

    >>> CompileOptions(out_of_bounds=fill(0)).negative_indices
    'from_end'
    """

    use_single_thread: bool = False
    generate_debug_info: bool = False
    optimization_preference: OptimizationPreference = OptimizationPreference.PERFORMANCE
    out_of_bounds: OutOfBounds = "raise"
    negative_indices: NegativeIndices = "from_end"
    precision: Precision = "highest"
    device: Any = None
    mesh: jax.sharding.Mesh | None = None
    shardings: Mapping[str, jax.sharding.PartitionSpec] = field(default_factory=dict[str, Any], hash=False)
    donate: bool = True
    compilation_cache: str | os.PathLike[str] | None = None
    max_executables: int = 256
    optimize_graph: bool = True

    def __post_init__(self) -> None:
        for name in ("use_single_thread", "generate_debug_info", "donate", "optimize_graph"):
            if not isinstance(getattr(self, name), bool):
                raise ParameterError(f"CompileOptions.{name} must be True or False, got {getattr(self, name)!r}")
        if not isinstance(self.optimization_preference, OptimizationPreference):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ParameterError(
                "CompileOptions.optimization_preference must be an OptimizationPreference, "
                f"got {self.optimization_preference!r}"
            )
        if not (isinstance(self.out_of_bounds, Fill) or self.out_of_bounds in ("raise", "clip", "unchecked")):
            raise ParameterError(
                "CompileOptions.out_of_bounds must be 'raise', 'clip', 'unchecked' or bnnsgraph.fill(value), "
                f"got {self.out_of_bounds!r}"
            )
        if self.negative_indices not in ("from_end", "out_of_bounds"):
            raise ParameterError(
                f"CompileOptions.negative_indices must be 'from_end' or 'out_of_bounds', got {self.negative_indices!r}"
            )
        if self.precision not in ("highest", "high", "default"):
            raise ParameterError(f"CompileOptions.precision must be 'highest', 'high' or 'default', got {self.precision!r}")
        if isinstance(self.max_executables, bool) or not isinstance(self.max_executables, int) or self.max_executables < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ParameterError(
                f"CompileOptions.max_executables must be an integer of at least 1, got {self.max_executables!r}"
            )
        if self.compilation_cache is not None and not isinstance(self.compilation_cache, (str, os.PathLike)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ParameterError(f"CompileOptions.compilation_cache must be a path, got {self.compilation_cache!r}")
        if not isinstance(self.shardings, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ParameterError(f"CompileOptions.shardings must be a mapping of names, got {self.shardings!r}")
        if self.device is not None and self.mesh is not None:
            raise ParameterError("CompileOptions.device must be None with a mesh, got both; the mesh says which devices run")
        if self.shardings and self.mesh is None:
            raise ParameterError(f"CompileOptions.mesh must be given with shardings, got none for {', '.join(self.shardings)}")
