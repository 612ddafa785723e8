"""JAX, imported when a graph is first lowered: recording needs neither JAX nor a device."""

from __future__ import annotations

import importlib
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import jax as jax
    import jax.numpy as jnp
    from jax import lax as lax
else:

    class _Lazy(types.ModuleType):
        """A module that imports the one it stands for at the first look at it."""

        def __getattr__(self, name: str) -> Any:
            value = getattr(importlib.import_module(self.__name__), name)
            setattr(self, name, value)
            return value

    jax, jnp, lax = _Lazy("jax"), _Lazy("jax.numpy"), _Lazy("jax.lax")


def level(*arrays: jax.Array) -> list[jax.Array]:
    """The arrays with leading axes of size 1, so that all have the highest rank among them."""
    rank = max(array.ndim for array in arrays)
    return [array if array.ndim == rank else lax.expand_dims(array, range(rank - array.ndim)) for array in arrays]


def aligned(*arrays: jax.Array) -> list[jax.Array]:
    """The arrays broadcast to one shape, as the operations of ``lax`` want them."""
    first = arrays[0].shape
    if all(array.shape == first for array in arrays):
        return list(arrays)
    leveled = level(*arrays)
    shape = jnp.broadcast_shapes(*[array.shape for array in leveled])
    return [jnp.broadcast_to(array, shape) for array in leveled]


def accumulator(dtype: Any) -> Any:
    """The dtype in which values of ``dtype`` are summed: float32 for the 16-bit floats, else the same."""
    return jnp.float32 if dtype in (jnp.float16, jnp.bfloat16) else dtype
