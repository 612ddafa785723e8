"""Arrays that the results of a run are written into."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from bnnsgraph.errors import ArgumentError, DTypeError, ShapeError
from bnnsgraph.graph import Graph
from bnnsgraph.placement import platform
from bnnsgraph.spec import TensorSpec, format_shape
from bnnsgraph.xla import jax

CLEARED = 32 << 20
"""Bytes of a block that the C library gets from the system, which clears it, however often one is freed and asked for again.
JAX hands a program that uses up an array to another thread, which costs short ones more than their memory."""


def require_fit(name: str, array: Any, spec: TensorSpec) -> None:
    """Raise unless an output can be written into the array."""
    if array.dtype != spec.dtype.numpy:
        raise DTypeError(f"output {name!r} must be of dtype {spec.dtype.name}, got {array.dtype}")
    if array.shape != spec.shape:
        raise ShapeError(f"output {name!r} must have shape {format_shape(spec.shape)}, got {format_shape(array.shape)}")


def several(results: Any) -> Sequence[Any]:
    """The arrays of one result, or of several."""
    return cast("Sequence[Any]", results if isinstance(results, (tuple, list)) else (results,))


def large_enough(graph: Graph) -> int:
    """The bytes of a result from which on its memory is worth keeping."""
    return CLEARED if platform(graph) == "cpu" else 0


def memory(graph: Graph, results: Any, arrays: Sequence[Any]) -> list[Any]:
    """One array an output, whose memory a run may use up, in return order.

    Args:
        graph: the program.
        results: what the caller gives: one array, or several, with those of the in-out arguments or without.
        arrays: the arguments of the run, which it reads.
    """
    given = several(results)
    names = graph.result_names
    if len(given) not in (len(names), len(names) + len(graph.updates)):
        raise ArgumentError(f"results must be {len(names)} arrays ({', '.join(names)}), got {len(given)}")
    found: list[Any] = []
    for name, array in zip(names, given, strict=False):
        if not isinstance(array, jax.Array):
            raise ArgumentError(
                f"output {name!r} must be a jax.Array, such as an earlier result, got {type(array).__name__}; "
                "execute_function writes into NumPy arrays"
            )
        if array.is_deleted():
            raise ArgumentError(f"output {name!r} must be an array with memory, got one that an earlier run used up")
        if any(array is other for other in (*found, *arrays)):
            raise ArgumentError(f"output {name!r} must be an array of its own, got one that is an argument or output, too")
        found.append(array)
    return found


def require_fits(graph: Graph, specs: Sequence[TensorSpec], arrays: Sequence[Any]) -> None:
    """The same for every output."""
    for name, array, spec in zip(graph.result_names, arrays, specs, strict=True):
        require_fit(name, array, spec)
