"""What a user may decide for a whole graph, and the out-of-bounds modes of single operations."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Literal, TypeAlias

from bnnsgraph.errors import ParameterError


@dataclass(frozen=True)
class Fill:
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

    >>> CompileOptions(out_of_bounds=fill(0)).negative_indices
    'from_end'
    """

    use_single_thread: bool = False
    generate_debug_info: bool = False
    optimization_preference: OptimizationPreference = OptimizationPreference.PERFORMANCE
    out_of_bounds: OutOfBounds = "raise"
    negative_indices: NegativeIndices = "from_end"

    def __post_init__(self) -> None:
        for name in ("use_single_thread", "generate_debug_info"):
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
