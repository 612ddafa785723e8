"""Gathers and scatters with the index rule that was asked for, where Apple's builder has none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from bnnsgraph.dtypes import Bool, Int32
from bnnsgraph.ops import gathering, movement, scattering
from bnnsgraph.options import Fill
from bnnsgraph.spec import element_count, normalize_axis
from bnnsgraph.swift.porting import LackingError, Port, Rewrite, Rules
from bnnsgraph.swift.rules_movement import fixed
from bnnsgraph.tensor import Tensor

T = Tensor[Any]


def _as_int32(port: Port, indices: T) -> T:
    elements = port.elements(indices)
    if indices.data_type is Int32:
        return indices
    if elements is not None and (elements.size == 0 or (abs(int(elements.min())) < 2**31 and int(elements.max()) < 2**31)):
        return port.constant(elements, Int32)
    return indices.cast(Int32)


def _sizes(op: Any, x: T, indices: T) -> tuple[int, ...]:
    """Sizes of the addressed axes."""
    axes = op.addressed(x.spec.shape, indices.spec.shape)
    sizes = tuple(fixed(x.spec.shape[axis], f"the size of axis {axis}, for {op.out_of_bounds!r},") for axis in axes)
    if 0 in sizes:
        raise LackingError(f"an axis of size 0 has no index that {op.out_of_bounds!r} could use instead")
    return sizes


def _counted(port: Port, op: Any, sizes: tuple[int, ...], indices: T) -> tuple[T, T]:
    """The indices counted from the front, and the nearest valid ones."""
    port.remark("indices moved into their axis with Int32 arithmetic, as Apple's builder has no rule for others")
    lengths = np.asarray(sizes[0] if len(sizes) == 1 else sizes)
    if op.negative_indices == "from_end":
        indices = indices - indices.min(0).max(-1) * port.constant(lengths, Int32)
    return indices, indices.max(0).min(port.constant(lengths - 1, Int32))


def _gather(op: Any, port: Port, x: T, indices: T) -> T | None:
    plain: Any = op
    batch = 0
    if isinstance(op, gathering.Gather):
        axis, batch = op.resolved(x.spec.shape, indices.spec.shape)
        plain = replace(op, axis=axis, batch_dimension_count=batch)
    elif isinstance(op, gathering.GatherAlongAxis):
        plain = replace(op, axis=normalize_axis(op.axis, x.rank))
    places = _as_int32(port, indices)
    has_rule = op.out_of_bounds not in ("raise", "unchecked") and op.sizes(x.spec, indices.spec)
    if not has_rule:
        return None if plain == op and places is indices else port.apply(plain, x, places)
    counted, nearest = _counted(port, op, _sizes(op, x, indices), places)
    found = port.apply(replace(plain, out_of_bounds="unchecked"), x, nearest)
    if not isinstance(op.out_of_bounds, Fill):
        return found
    missing = counted - nearest
    if isinstance(op, gathering.GatherND):
        missing = missing.abs().maximum([-1])
        trailing = found.rank - missing.rank
    elif isinstance(op, gathering.Gather):
        trailing = x.rank - plain.axis - 1
        for _ in range(plain.axis - batch):
            missing = missing.unsqueeze(batch)
    else:
        trailing = 0
    for _ in range(trailing):
        missing = missing.unsqueeze(missing.rank)
    return missing.cast(Bool).select(port.constant(op.out_of_bounds.value, x.data_type), found)


def _scatter(op: Any, port: Port, x: T, updates: T, indices: T) -> T | None:
    plain = op
    if not isinstance(op, scattering.ScatterND):
        plain = replace(op, axis=normalize_axis(op.axis, x.rank))
    if op.out_of_bounds == "drop":
        raise LackingError("updates cannot be skipped by their index")
    places = _as_int32(port, indices)
    if op.out_of_bounds == "clip":
        places = _counted(port, op, _sizes(op, x, indices), places)[1]
        plain = replace(plain, out_of_bounds="unchecked")
    if isinstance(plain, scattering.Scatter) and places.rank != 1:  # one row of updates for each of a list of indices
        before, after = x.spec.shape[: plain.axis], x.spec.shape[plain.axis + 1 :]
        count = element_count(places.spec.shape)
        places = port.apply(movement.Reshape((count,)), places)
        updates = port.apply(movement.Reshape((*before, count, *after)), updates)
        return port.apply(plain, x, updates, places)
    return None if plain == op and places is indices else port.apply(plain, x, updates, places)


RULES: Rules = {
    gathering.Gather: Rewrite(_gather),
    gathering.GatherAlongAxis: Rewrite(_gather),
    gathering.GatherND: Rewrite(_gather),
    scattering.Scatter: Rewrite(_scatter),
    scattering.ScatterAlongAxis: Rewrite(_scatter),
    scattering.ScatterND: Rewrite(_scatter),
}
"""One row an operation that may have to be rewritten."""
