"""What gathers and scatters mean, as loops over single elements in NumPy. Slow and plain on purpose: the tests' judge.

Shapes are written D for the data's and I for the indices'. A place that does not exist is ``None``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class OutsideError(Exception):
    """An index addresses nothing and the mode is ``"raise"``. Carries the index, its position, the axis and its size."""

    def __init__(self, index: int, position: tuple[int, ...], axis: int, size: int) -> None:
        super().__init__(index, position, axis, size)
        self.index, self.position, self.axis, self.size = index, position, axis, size


def place(index: int, size: int, mode: object, negative: str) -> int | None:
    """Where on an axis of ``size`` the index points, counted from the front."""
    if index < 0 and negative == "from_end":
        index += size
    if 0 <= index < size:
        return index
    if mode == "clip" and size:
        return max(0, min(index, size - 1))
    return None


def places(
    indices: Array, sizes: tuple[int, ...], axes: tuple[int, ...], mode: object, negative: str, vectors: bool
) -> dict[tuple[int, ...], tuple[int, ...] | None]:
    """For each position of the indices (without the last axis, where it holds vectors), the place that it addresses."""
    found: dict[tuple[int, ...], tuple[int, ...] | None] = {}
    for position in np.ndindex(indices.shape[:-1] if vectors else indices.shape):
        parts: list[int | None] = []
        for component, (size, axis) in enumerate(zip(sizes, axes, strict=True)):
            where = (*position, component) if vectors else position
            part = place(int(indices[where]), size, mode, negative)
            if part is None and mode == "raise":
                raise OutsideError(int(indices[where]), where, axis, size)
            parts.append(part)
        found[position] = None if None in parts else tuple(part for part in parts if part is not None)
    return found


def missing_value(mode: object, dtype: np.dtype[Any]) -> object:
    """What a gathered element that does not exist is: the value of ``fill``, or one that cannot pass for data."""
    if hasattr(mode, "value"):
        return mode.value  # pyright: ignore[reportAttributeAccessIssue]
    if dtype.kind in "fV":  # V: bfloat16
        return np.nan
    if dtype.kind == "i":
        return np.iinfo(dtype).min
    if dtype.kind == "u":
        return np.iinfo(dtype).max
    return False


def gather(x: Array, indices: Array, axis: int, batch: int, mode: object, negative: str = "from_end") -> Array:
    """``result[p, q, i, r] = x[p, q, indices[p, i], r]``: p over the b batch axes, q over D[b:axis], r over D[axis+1:]."""
    axis = axis % x.ndim
    batch = batch + indices.ndim if batch < 0 else batch
    found = places(indices, (x.shape[axis],), (axis,), mode, negative, vectors=False)
    result = np.full(
        (*x.shape[:axis], *indices.shape[batch:], *x.shape[axis + 1 :]), missing_value(mode, x.dtype), dtype=x.dtype
    )
    for p in np.ndindex(x.shape[:batch]):
        for q in np.ndindex(x.shape[batch:axis]):
            for i in np.ndindex(indices.shape[batch:]):
                for r in np.ndindex(x.shape[axis + 1 :]):
                    target = found[p + i]
                    if target is not None:
                        result[p + q + i + r] = x[p + q + target + r]
    return result


def gather_along_axis(x: Array, indices: Array, axis: int, mode: object, negative: str = "from_end") -> Array:
    """``result[p, j, q] = x[p, indices[p, j, q], q]``."""
    axis = axis % x.ndim
    result = np.full(indices.shape, missing_value(mode, x.dtype), dtype=x.dtype)
    for position, target in places(indices, (x.shape[axis],), (axis,), mode, negative, vectors=False).items():
        if target is not None:
            result[position] = x[position[:axis] + target + position[axis + 1 :]]
    return result


def gather_nd(x: Array, indices: Array, batch: int, mode: object, negative: str = "from_end") -> Array:
    """``result[p, i, r] = x[p, *indices[p, i], r]``: p over the b batch axes, r over D[b+k:]."""
    depth = indices.shape[-1]
    axes = tuple(range(batch, batch + depth))
    result = np.full((*indices.shape[:-1], *x.shape[batch + depth :]), missing_value(mode, x.dtype), dtype=x.dtype)
    sizes = x.shape[batch : batch + depth]
    for position, target in places(indices, sizes, axes, mode, negative, vectors=True).items():
        for r in np.ndindex(x.shape[batch + depth :]):
            if target is not None:
                result[position + r] = x[position[:batch] + target + r]
    return result


def _combined(x: Array, updates: Array, writes: Iterator[tuple[tuple[int, ...], tuple[int, ...]]], name: str) -> Array:
    """Each update in turn, row by row; 16-bit floats are kept in float32 until the end."""
    wide = np.dtype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind in "fV" else x.dtype
    result = x.astype(wide)
    combine: Callable[[Any, Any], Any] = {
        "UPDATE": lambda old, new: new,
        "ADD": np.add,
        "SUBTRACT": np.subtract,
        "MULTIPLY": np.multiply,
        "DIVIDE": np.divide,
        "MAXIMUM": np.maximum,
        "MINIMUM": np.minimum,
    }[name]
    with np.errstate(all="ignore"):
        for target, source in writes:
            result[target] = combine(result[target], updates[source].astype(wide))
        return result.astype(x.dtype)


def scatter(x: Array, updates: Array, indices: Array, name: str, axis: int, mode: object, negative: str = "from_end") -> Array:
    """``result[p, indices[i], r] = x[p, indices[i], r] (name) updates[p, i, r]``."""
    axis = axis % x.ndim
    found = places(indices, (x.shape[axis],), (axis,), mode, negative, vectors=False)

    def writes() -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        for i, target in found.items():
            for p in np.ndindex(x.shape[:axis]):
                for r in np.ndindex(x.shape[axis + 1 :]):
                    if target is not None:
                        yield p + target + r, p + i + r

    return _combined(x, updates, writes(), name)


def scatter_along_axis(
    x: Array, updates: Array, indices: Array, name: str, axis: int, mode: object, negative: str = "from_end"
) -> Array:
    """``result[p, indices[p, j, q], q] = x[p, indices[p, j, q], q] (name) updates[p, j, q]``."""
    axis = axis % x.ndim
    found = places(indices, (x.shape[axis],), (axis,), mode, negative, vectors=False)
    writes = (
        (position[:axis] + target + position[axis + 1 :], position) for position, target in found.items() if target is not None
    )
    return _combined(x, updates, writes, name)


def scatter_nd(x: Array, updates: Array, indices: Array, name: str, mode: object, negative: str = "from_end") -> Array:
    """``result[*indices[i], r] = x[*indices[i], r] (name) updates[i, r]``: r over D[k:]."""
    depth = indices.shape[-1]
    found = places(indices, x.shape[:depth], tuple(range(depth)), mode, negative, vectors=True)
    writes = ((target + r, i + r) for i, target in found.items() for r in np.ndindex(x.shape[depth:]) if target is not None)
    return _combined(x, updates, writes, name)
