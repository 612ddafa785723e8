"""NumPy arrays in memory that JAX's CPU device uses as it is, so that a large constant is there once."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

ALIGNMENT = 64
"""Bytes; XLA's CPU device copies what does not begin at a multiple of this."""
LARGE = 64 * 1024
"""Constants of this many bytes or more are parameters of the program, placed on the device once, and not part of its code."""


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """An array of undefined elements; a large one begins at a multiple of :data:`ALIGNMENT`.

    >>> empty((200, 100), np.dtype(np.float32)).ctypes.data % ALIGNMENT
    0
    """
    count = math.prod(shape) * dtype.itemsize
    if count < LARGE:
        return np.empty(shape, dtype)
    memory = np.empty(count + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + count].view(dtype).reshape(shape)


def is_frozen(array: np.ndarray[Any, Any]) -> bool:
    """Whether neither the array nor what it is a view of can be written to."""
    owner: Any = array
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            return False
        owner = cast("Any", owner.base)
    return True
