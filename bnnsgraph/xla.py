"""JAX, imported when a graph is first lowered: recording needs neither JAX nor a device."""

from __future__ import annotations

import importlib
import math
import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

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


UNROLLING = "-unroll-full-max-count=4"
"""What :func:`bnnsgraph.configure_cpu` asks of LLVM, in the environment variable ``XLA_FLAGS``."""


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


def by_platform(*arrays: jax.Array, cpu: Callable[..., jax.Array], default: Callable[..., jax.Array]) -> jax.Array:
    """One program on the CPU, where XLA is slow with the other, and the other elsewhere. Both give the same."""
    return cast("jax.Array", lax.platform_dependent(*arrays, cpu=cpu, default=default))


def limits(dtype: Any) -> tuple[Any, Any]:
    """What no number of the dtype is below, and what none is above."""
    if jnp.issubdtype(dtype, jnp.floating):
        return -math.inf, math.inf
    info = jnp.iinfo(dtype)
    return info.min, info.max


def nan_and_extremum(
    x: jax.Array, start: Any, choose: Callable[[Any, Any], Any], axes: Sequence[int]
) -> tuple[jax.Array, jax.Array]:
    """Whether NaN is among the elements, and their extremum if none is, in one reduction. It has no derivative in JAX."""
    nan, found = lax.reduce(
        (x != x, x), (np.False_, x.dtype.type(start)), lambda a, b: (a[0] | b[0], choose(a[1], b[1])), tuple(axes)
    )
    return nan, found


def accumulator(dtype: Any) -> Any:
    """The dtype in which values of ``dtype`` are summed: float32 for the 16-bit floats, else the same."""
    return jnp.float32 if dtype in (jnp.float16, jnp.bfloat16) else dtype


def quotient(x: jax.Array, y: jax.Array) -> jax.Array:
    """``x / y`` of floats, divided also where XLA would multiply by ``1 / y``. See :func:`kept_divisor`."""
    x, y = aligned(x, y)
    return lax.div(x, kept_divisor(x, y))


def kept_divisor(x: jax.Array, y: jax.Array) -> jax.Array:
    """``y``, in a form that keeps XLA from compiling ``x / y`` as ``x * (1 / y)``; both have one shape.

    XLA does that where ``y`` is a constant or a broadcast. The product is off by an epsilon at times, and wrong where ``1 / y``
    underflows or overflows. A choice between ``x`` and ``y``, on a condition that XLA sees late, is neither a constant nor a
    broadcast; the compiled code holds nothing of it.
    """
    never = lax.optimization_barrier(jnp.zeros((), jnp.bool))
    return lax.select(jnp.broadcast_to(never, x.shape), x, y)
