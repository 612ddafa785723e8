"""What a call costs: a context beside the bare jitted function."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import bnnsgraph as bg
from tests.benchmarks.timing import Row, side_by_side


def run(quick: bool) -> list[Row]:
    """A small sum and a small gather, from JAX's arrays and from NumPy's."""
    del quick
    rows: list[Row] = []
    add = bg.make_context(lambda b: b.argument("x", bg.Float32, [8]) + b.argument("y", bg.Float32, [8]))
    bare_add = jax.jit(lambda x, y: x + y)

    def gather(mode: Any) -> bg.Context:
        def block(b: bg.Builder) -> Any:
            table = b.argument("table", bg.Float32, [64, 4])
            return table.gather(b.argument("indices", bg.Int32, [8]), axis=0, out_of_bounds=mode)

        return bg.make_context(block)

    checked, unchecked = gather("raise"), gather("unchecked")
    bare_gather = jax.jit(lambda t, i: t.at[i].get(mode="promise_in_bounds"))
    for kind, convert in (("jax.Array", jnp.asarray), ("NumPy", np.asarray)):
        x, y = convert(np.arange(8, dtype=np.float32)), convert(np.ones(8, np.float32))
        rows += side_by_side(
            f"add, from {kind}", {"jax.jit": lambda x=x, y=y: bare_add(x, y), "bnnsgraph": lambda x=x, y=y: add(x, y)}
        )
        t, i = convert(np.arange(256, dtype=np.float32).reshape(64, 4)), convert(np.arange(8, dtype=np.int32))
        rows += side_by_side(
            f"gather, from {kind}",
            {
                "jax.jit": lambda t=t, i=i: bare_gather(t, i),
                "unchecked": lambda t=t, i=i: unchecked(t, i),
                "raise": lambda t=t, i=i: checked(t, i),
            },
        )
    return rows
