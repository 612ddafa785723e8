"""Programs that throw away most of what they compute: beside ``jax.jit`` of the same, and of what one would write by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import bnnsgraph as bg
from tests.benchmarks.timing import Row, side_by_side

RNG = np.random.default_rng(0)


def weights(*shape: int) -> np.ndarray:
    """Random weights that keep magnitudes."""
    return (RNG.normal(size=shape) / np.sqrt(shape[0])).astype(np.float32)


def case(
    name: str,
    block: Callable[[bg.Builder], Any],
    bare: Callable[..., Any],
    hand: Callable[..., Any],
    arrays: Sequence[np.ndarray],
) -> list[Row]:
    """One program three ways; ``hand`` selects first."""
    context = bg.make_context(block)
    given = [jnp.asarray(array) for array in arrays]
    same, first = jax.jit(bare), jax.jit(hand)
    functions: dict[str, Callable[[], Any]] = {
        "jax.jit": lambda: same(*given),
        "bnnsgraph": lambda: context(*given),
        "by hand": lambda: first(*given),
    }
    return side_by_side(name, functions, tolerance=1e-4)


def rows_after_layers(rows: int, width: int, count: int) -> list[Row]:
    """A perceptron on all rows, of which some are read."""
    w1, w2 = weights(width, 4 * width), weights(4 * width, width)
    x = RNG.normal(size=(rows, width)).astype(np.float32)
    i = RNG.integers(0, rows, count).astype(np.int32)

    def layers(x: Any) -> Any:
        return jax.nn.gelu(x @ w1, approximate=False) @ w2

    def block(b: bg.Builder) -> Any:
        y = (b.argument("x", bg.Float32, x.shape) @ w1).gelu() @ w2
        return y.gather(b.argument("i", bg.Int32, i.shape), axis=0)

    name = f"{count} of {rows} rows after gelu(x @ w1) @ w2"
    return case(name, block, lambda x, i: layers(x)[i], lambda x, i: layers(x[i]), [x, i])


def last_token(length: int, width: int, vocabulary: int) -> list[Row]:
    """The last block and the logits of a language model, of which the last token's are read."""
    w1, w2, out = weights(width, 4 * width), weights(4 * width, width), weights(width, vocabulary)
    x = RNG.normal(size=(1, length, width)).astype(np.float32)
    ones, zeros = np.ones(width, np.float32), np.zeros(width, np.float32)

    def norm(x: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        return centred * jax.lax.rsqrt(jnp.mean(centred**2, -1, keepdims=True) + 1e-5)

    def model(x: Any) -> Any:
        h = x + jax.nn.gelu(norm(x) @ w1, approximate=False) @ w2
        return norm(h) @ out

    def block(b: bg.Builder) -> Any:
        h = b.argument("x", bg.Float32, x.shape)
        h = h + (h.layer_norm(ones, zeros, axes=[2], epsilon=1e-5) @ w1).gelu() @ w2
        return (h.layer_norm(ones, zeros, axes=[2], epsilon=1e-5) @ out)[:, -1]

    name = f"last of {length} tokens, {vocabulary} logits"
    return case(name, block, lambda x: model(x)[:, -1], lambda x: model(x[:, -1]), [x])


def one_hot_rows(size: int, width: int, count: int) -> list[Row]:
    """An embedding written as a product."""
    table = weights(size, width)
    i = RNG.integers(0, size, count).astype(np.int32)

    def block(b: bg.Builder) -> Any:
        return b.argument("i", bg.Int32, i.shape).one_hot(size).cast(to=bg.Float32) @ b.constant("table", values=table)

    name = f"one_hot of {count} in {size}, @ table"
    return case(name, block, lambda i: jax.nn.one_hot(i, size) @ table, lambda i: jnp.asarray(table)[i], [i])


def rows_of_rows(rows: int, width: int) -> list[Row]:
    """A gather of a gather, behind operations on the other axis."""
    x = RNG.normal(size=(rows, width)).astype(np.float32)
    i, j = RNG.integers(0, rows, rows // 2).astype(np.int32), RNG.integers(0, rows // 2, 16).astype(np.int32)

    def block(b: bg.Builder) -> Any:
        some = b.argument("x", bg.Float32, x.shape).gather(b.argument("i", bg.Int32, i.shape), axis=0)
        return some.softmax(1).sort(1).gather(b.argument("j", bg.Int32, j.shape), axis=0)

    def after(x: Any) -> Any:
        return jnp.sort(jax.nn.softmax(x, 1), 1)

    name = f"16 of {rows // 2} of {rows} rows, softmax and sort"
    return case(name, block, lambda x, i, j: after(x[i])[j], lambda x, i, j: after(x[i[j]]), [x, i, j])


def run(quick: bool) -> list[Row]:
    """One case for each kind of change."""
    found = rows_after_layers(1_024 if quick else 4_096, 384, 16)
    found += last_token(512 if quick else 2_048, 384, 8_192)
    found += one_hot_rows(4_096, 64, 1_024)
    return found + rows_of_rows(16_384, 128)
