"""Random tables and indices."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

Pattern = Literal["random", "sorted", "repeated", "unique"]
REPEATED = 64  # how many different indices there are where they are repeated


def draw(rng: np.random.Generator, size: int, shape: Any, pattern: Pattern = "random") -> np.ndarray:
    """Indices of an axis."""
    if pattern == "unique":
        return rng.permutation(size)[: np.prod(shape)].reshape(shape).astype(np.int32)
    indices = rng.integers(0, min(size, REPEATED) if pattern == "repeated" else size, shape)
    return (np.sort(indices) if pattern == "sorted" else indices).astype(np.int32)


def elements(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    """Random elements of a type."""
    if np.dtype(dtype).kind == "f":
        return rng.standard_normal(shape, np.float32).astype(dtype)
    return rng.integers(0, 2 if dtype is np.bool_ else 100, shape).astype(dtype)


def short(count: int) -> str:
    """4096 as 4 K."""
    for unit, name in ((1 << 20, "M"), (1 << 10, "K")):
        if count >= unit and count % unit == 0:
            return f"{count // unit} {name}"
    return str(count)


def from_jax(array: Any) -> Any:
    """JAX's own way of indexed reading and writing."""
    return array.at
