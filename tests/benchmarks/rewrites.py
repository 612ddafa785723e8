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


def positions(batch: int, length: int, width: int, count: int) -> list[Row]:
    """Chosen tokens of several texts, by index vectors, after a perceptron on all of them."""
    w1, w2 = weights(width, 4 * width), weights(4 * width, width)
    x = RNG.normal(size=(batch, length, width)).astype(np.float32)
    i = np.stack([RNG.integers(0, batch, count), RNG.integers(0, length, count)], 1).astype(np.int32)

    def layers(x: Any) -> Any:
        return jax.nn.gelu(x @ w1, approximate=False) @ w2

    def block(b: bg.Builder) -> Any:
        y = (b.argument("x", bg.Float32, x.shape) @ w1).gelu() @ w2
        return y.gather_nd(b.argument("i", bg.Int32, i.shape))

    name = f"gather_nd, {count} of {batch} x {length} rows after gelu(x @ w1) @ w2"
    return case(name, block, lambda x, i: layers(x)[i[:, 0], i[:, 1]], lambda x, i: layers(x[i[:, 0], i[:, 1]]), [x, i])


def last_tokens(batch: int, length: int, width: int, vocabulary: int) -> list[Row]:
    """The logits of the last token of each text, by indices spread over the logits, as PyTorch's ``gather`` wants them."""
    out = weights(width, vocabulary)
    x = RNG.normal(size=(batch, length, width)).astype(np.float32)
    i = RNG.integers(0, length, batch).astype(np.int32)

    def block(b: bg.Builder) -> Any:
        y = b.argument("x", bg.Float32, x.shape) @ out
        last = b.argument("i", bg.Int32, i.shape).reshape(to=[batch, 1, 1]).broadcast_to([batch, 1, vocabulary])
        return y.gather_along_axis(last, axis=1)

    def bare(x: Any, i: Any) -> Any:
        return jnp.take_along_axis(x @ out, jnp.broadcast_to(i[:, None, None], (batch, 1, vocabulary)), 1)

    name = f"gather_along_axis, 1 of {length} tokens of {batch} texts, {vocabulary} logits"
    return case(name, block, bare, lambda x, i: x[jnp.arange(batch), i][:, None] @ out, [x, i])


def best_rows(rows: int, width: int, count: int) -> list[Row]:
    """The rows with the best scores, after a layer on all rows."""
    w, score = weights(width, width), weights(width)
    x = RNG.normal(size=(rows, width)).astype(np.float32)

    def block(b: bg.Builder) -> Any:
        t = b.argument("x", bg.Float32, x.shape)
        return (t @ w).relu().gather((t @ score).top_k(count, axis=0).indices, axis=0)

    def bare(x: Any) -> Any:
        return jax.nn.relu(x @ w)[jax.lax.top_k(x @ score, count)[1]]

    name = f"top_k, {count} of {rows} rows after relu(x @ w)"
    return case(name, block, bare, lambda x: jax.nn.relu(x[jax.lax.top_k(x @ score, count)[1]] @ w), [x])


def joined_rows(rows: int, width: int, count: int) -> list[Row]:
    """Rows of two layers side by side, which stand turned round."""
    w1, w2 = weights(width, width), weights(width, width)
    x = RNG.normal(size=(width, rows)).astype(np.float32)
    i = RNG.integers(0, rows, count).astype(np.int32)

    def block(b: bg.Builder) -> Any:
        t = b.argument("x", bg.Float32, x.shape).transpose(axes=[1, 0])
        return b.concatenate([t @ w1, t @ w2], axis=1).gather(b.argument("i", bg.Int32, i.shape), axis=0)

    def both(t: Any) -> Any:
        return jnp.concatenate([t @ w1, t @ w2], 1)

    name = f"{count} of {rows} rows of two products of x.T, joined"
    return case(name, block, lambda x, i: both(x.T)[i], lambda x, i: both(x[:, i].T), [x, i])


def last_query(length: int, heads: int, width: int) -> list[Row]:
    """The last token of causal attention."""
    q, k, v = (RNG.normal(size=(1, heads, length, width)).astype(np.float32) for _ in range(3))

    def block(b: bg.Builder) -> Any:
        query, key, value = (b.argument(name, bg.Float32, q.shape) for name in "qkv")
        return query.scaled_dot_product_attention(key, value, causal=True)[:, :, -1]

    def attention(q: Any, k: Any, v: Any, *, causal: bool) -> Any:
        scores = (q @ k.mT) / np.sqrt(np.float32(width))
        return jax.nn.softmax(jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -np.inf) if causal else scores) @ v

    name = f"last of {length} queries of causal attention"
    return case(
        name,
        block,
        lambda q, k, v: attention(q, k, v, causal=True)[:, :, -1],
        lambda q, k, v: attention(q[:, :, -1:], k, v, causal=False)[:, :, 0],
        [q, k, v],
    )


def first_in_order(rows: int, width: int, count: int) -> list[Row]:
    """Where the largest numbers of each row stand, from all of them in order."""
    x = RNG.normal(size=(rows, width)).astype(np.float32)

    def block(b: bg.Builder) -> Any:
        return b.argument("x", bg.Float32, x.shape).arg_sort(1, bg.SortOrder.DESCENDING)[:, :count]

    name = f"the first {count} of arg_sort, ({rows}, {width})"
    return case(name, block, lambda x: jnp.argsort(x, 1, descending=True)[:, :count], lambda x: jax.lax.top_k(x, count)[1], [x])


def one_part(rows: int, width: int) -> list[Row]:
    """One of three parts of a product."""
    w = weights(width, 3 * width)
    x = RNG.normal(size=(rows, width)).astype(np.float32)

    def block(b: bg.Builder) -> Any:
        return (b.argument("x", bg.Float32, x.shape) @ w).split(3, axis=1)[1].softmax(1)

    def bare(x: Any) -> Any:
        return jax.nn.softmax(jnp.split(x @ w, 3, 1)[1], 1)

    name = f"one of three parts of ({rows}, {width}) @ w"
    return case(name, block, bare, lambda x: jax.nn.softmax(x @ w[:, width : 2 * width], 1), [x])


def counting_rows(rows: int, width: int) -> list[Row]:
    """Every fourth row from the last, by a constant tensor of positions."""
    x = RNG.normal(size=(rows, width)).astype(np.float32)
    places = np.arange(rows)[::-4].copy()

    def block(b: bg.Builder) -> Any:
        return b.argument("x", bg.Float32, x.shape).gather(places, axis=0)

    return case(f"every fourth of {rows} rows of {width}", block, lambda x: x[places], lambda x: x[::-4], [x])


def rows_of_a_chain(rows: int, width: int, count: int) -> list[Row]:
    """Element-wise operations, which XLA itself computes for the selected rows alone: left as they are."""
    x = RNG.normal(size=(rows, width)).astype(np.float32)
    i = RNG.integers(0, rows, count).astype(np.int32)

    def block(b: bg.Builder) -> Any:
        y = (b.argument("x", bg.Float32, x.shape).exp() + 1).tanh()
        return y.gather(b.argument("i", bg.Int32, i.shape), axis=0)

    def chain(x: Any) -> Any:
        return jnp.tanh(jnp.exp(x) + 1)

    name = f"{count} of {rows} rows of tanh(exp(x) + 1)"
    return case(name, block, lambda x, i: chain(x)[i], lambda x, i: chain(x[i]), [x, i])


def run(quick: bool) -> list[Row]:
    """One case for each kind of change."""
    found = rows_after_layers(1_024 if quick else 4_096, 384, 16)
    found += last_token(512 if quick else 2_048, 384, 8_192)
    found += one_hot_rows(4_096, 64, 1_024)
    found += rows_of_rows(16_384, 128)
    found += positions(8, 128 if quick else 512, 384, 64)
    found += last_tokens(8, 64 if quick else 128, 384, 8_192)
    if quick:
        return found
    found += best_rows(8_192, 256, 16)
    found += joined_rows(8_192, 256, 64)
    found += last_query(1_024, 8, 64)
    found += first_in_order(64, 4_096, 16)
    found += one_part(2_048, 512)
    found += counting_rows(65_536, 64)
    return found + rows_of_a_chain(65_536, 64, 1_024)
