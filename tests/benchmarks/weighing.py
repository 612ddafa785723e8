"""Whether a changed program is ever slower than the recorded one: random rows, few to nearly all, behind each kind of work.

``python -m tests.benchmarks.weighing``, some two minutes, from which the figures of ``bnnsgraph/passes/costs.py`` were chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np

import bnnsgraph as bg
from tests.benchmarks.timing import OURS, Row, side_by_side, table

RECORDED = "as recorded"
RNG = np.random.default_rng(0)


def ones(*shape: int) -> np.ndarray:
    """Weights."""
    return np.ones(shape, np.float32)


WORK: dict[str, Callable[[bg.Builder, Any], Any]] = {
    "sum": lambda b, x: x.sum([1]),
    "sum of exp": lambda b, x: x.exp().sum([1]),
    "softmax": lambda b, x: x.softmax(1),
    "layer_norm": lambda b, x: x.layer_norm(ones(x.shape[1]), ones(x.shape[1]), axes=[1]),
    "cumulative_sum": lambda b, x: x.cumulative_sum(1),
    "@ 1 column": lambda b, x: x @ ones(x.shape[1], 1),
    "@ 8 columns": lambda b, x: x @ ones(x.shape[1], 8),
    "@ square": lambda b, x: x @ ones(x.shape[1], x.shape[1]),
    "concatenate": lambda b, x: b.concatenate([x, x * 2.0], axis=1),
    "top_k": lambda b, x: x.top_k(2, axis=1).values,
    "transpose": lambda b, x: x.reshape(to=[x.shape[0], 2, -1]).transpose(axes=[0, 2, 1]),
}
"""On the axis of the columns."""


def run() -> Iterator[list[Row]]:
    """The cases that are changed."""
    for rows, width in ((65_536, 8), (65_536, 64), (8_192, 512)):
        x = RNG.normal(size=(rows, width)).astype(np.float32)
        for part in (0.1, 0.3, 0.6, 0.9):
            i = RNG.integers(0, rows, int(rows * part)).astype(np.int32)
            for name, work in WORK.items():

                def block(b: bg.Builder, x: Any = x, i: Any = i, work: Callable[..., Any] = work) -> Any:
                    y = work(b, b.argument("x", bg.Float32, x.shape))
                    return y.gather(b.argument("i", bg.Int32, i.shape), axis=0)

                ours = bg.make_context(block)
                plain = bg.make_context(block, options=bg.CompileOptions(optimize_graph=False))
                if ours.rewrites:
                    given = [jnp.asarray(x), jnp.asarray(i)]
                    programs = {
                        OURS: lambda ours=ours, given=given: ours(*given),
                        RECORDED: lambda plain=plain, given=given: plain(*given),
                    }
                    yield side_by_side(f"{part:.0%} of ({rows}, {width}), {name}", programs, tolerance=1e-3)


if __name__ == "__main__":
    print(table([row for rows in run() for row in rows]))
