"""Known faults of compilers under a graph, each tried on the device at hand: by JAX alone, and by this package.

The operations of this package are written around every one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

import bnnsgraph as bg
from bnnsgraph.xla import jax, jnp, lax

Array: TypeAlias = np.ndarray[Any, Any]
Program: TypeAlias = Callable[[Sequence[Any]], Any]


class Finding(NamedTuple):
    """What was found.

    Attributes:
        fault: what goes wrong where the fault is there.
        jax_is_right: whether JAX alone gives the right answer.
        package_is_right: whether the operation of this package does.
    """

    fault: str
    jax_is_right: bool
    package_is_right: bool


@dataclass(frozen=True)
class Probe:
    """A small program in two forms, and what is right.

    Attributes:
        fault: what goes wrong where the fault is there.
        alone: the program as a function of JAX arrays.
        block: the program as a function of this package's tensors.
        inputs: what both are given.
        is_right: whether a result is right.
    """

    fault: str
    alone: Program
    block: Program
    inputs: Sequence[Array]
    is_right: Callable[[Array], bool]

    def find(self) -> Finding:
        """Run both."""
        with jax.enable_x64(any(array.dtype.itemsize == 8 for array in self.inputs)):
            alone: Array = np.asarray(cast("Any", jax.jit(self.alone)(self.inputs)))
        builder = bg.Builder()
        tensors = [builder.argument(f"x{i}", array.dtype, array.shape) for i, array in enumerate(self.inputs)]
        context = bg.Context(builder.finish(self.block(tensors)))
        return Finding(self.fault, self.is_right(alone), self.is_right(np.asarray(context(*self.inputs))))


def _equals(wanted: Array) -> Callable[[Array], bool]:
    return lambda found: np.array_equal(found, wanted, equal_nan=True)


def _within(wanted: Array, epsilons: float) -> Callable[[Array], bool]:
    return lambda found: bool(np.all(np.abs(found - wanted) <= epsilons * np.spacing(np.abs(wanted))))


def _floats(*values: Any) -> Array:
    return np.array(values, np.float32)


def _probes() -> Iterator[Probe]:
    rows = np.zeros((2, 5000), np.float32)
    rows[1, 2500] = np.nan
    yield Probe(
        "the largest of some thousand floats is a number where one is NaN",
        lambda x: jnp.max(x[0], 1),
        lambda x: x[0].maximum(1),
        [rows],
        _equals(_floats(0, np.nan)),
    )
    yield Probe(
        "the smallest of some thousand floats is a number where one is NaN",
        lambda x: jnp.min(x[0], 1),
        lambda x: x[0].minimum(1),
        [rows],
        _equals(_floats(0, np.nan)),
    )
    images = np.zeros((1, 8, 64, 64), np.float32)
    images[0, 0, 3, 3] = np.nan
    yield Probe(
        "the largest of many windows without overlap is a number where one element is NaN",
        lambda x: lax.reduce_window(x[0], np.float32(-np.inf), lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID"),
        lambda x: x[0].pooling(bg.PoolingFunction.MAX, [2, 2], [2, 2], bg.PoolingPadding.VALID, bg.CeilingMode.FLOOR),
        [images],
        _equals(images.reshape(1, 8, 32, 2, 32, 2).max((3, 5))),
    )
    numbers, divisor = _floats(7, -11, 0.3, 5, 1, 2.7, 13, 6), _floats(49)
    yield Probe(
        "a quotient by one number is a product with its reciprocal, off in the last bit",
        lambda x: x[0] / x[1],
        lambda x: x[0] / x[1],
        [numbers, divisor],
        _equals(numbers / divisor),
    )
    huge = _floats(3e38, 1.5e38)
    yield Probe(
        "a quotient by one large number is 0, as its reciprocal is",
        lambda x: x[0] / x[1],
        lambda x: x[0] / x[1],
        [huge, huge[:1]],
        _equals(huge / huge[:1]),
    )
    whole = np.arange(-126, 128, dtype=np.float32)
    yield Probe(
        "2 to a whole power is off in the last bits",
        lambda x: jnp.exp2(x[0]),
        lambda x: x[0].exp2(),
        [whole],
        _equals(np.exp2(whole)),
    )
    small = np.array([-0.4140625, -0.5, 0.25])
    yield Probe(
        "the inverse hyperbolic tangent of a negative float64 is off by a hundred epsilons",
        lambda x: jnp.arctanh(x[0]),
        lambda x: x[0].atanh(),
        [small],
        _within(np.arctanh(small), 4),  # NumPy's own error included
    )
    updates, nowhere = _floats(4, -2, 8).reshape(3, 1), np.zeros((3, 0), np.int32)
    yield Probe(
        "of several updates of a tensor of one element, only the last is added",
        lambda x: lax.scatter_add(x[0], x[2], x[1], lax.ScatterDimensionNumbers((1,), (), ())),
        lambda x: x[0].scatter_nd(x[1], x[2], bg.ScatterMode.ADD),
        [_floats(2), updates, nowhere],
        _equals(_floats(12)),
    )


def findings() -> Iterator[Finding]:
    """Try every known fault."""
    for probe in _probes():
        yield probe.find()


__all__ = ["Finding", "findings"]
