"""Whole programs: Apple's listings, a search by embeddings, MiniLM, an LSTM, a CNN, an MLP of which few rows are read."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import bnnsgraph as bg
from tests.benchmarks import listings, minilm, peers
from tests.benchmarks.cases import Arrays, Case, run_cases
from tests.benchmarks.listings import jnp, normal
from tests.benchmarks.timing import CLOCK, OURS, Row, side_by_side


def search() -> Case:
    """The demo's model on 32 texts of 64 tokens: rows of a float16 table, their mean where tokens are present."""

    def arrays() -> Arrays:
        rng = np.random.default_rng(0)
        present = np.arange(64) < rng.integers(8, 65, (32, 1))
        return {"tokens": rng.integers(0, 32_000, (32, 64)).astype(np.int32), "mask": present}

    def block(tokens: Any, mask: Any, table: Any) -> Any:
        rows = table.gather(tokens, axis=0).cast(to=bg.Float32)
        present = mask.cast(to=bg.Float32).unsqueeze(2)
        return (rows * present).sum([1]) / present.sum([1]).max(1.0)

    def mean(rows: Any, present: Any, at_least: Callable[[Any], Any]) -> Any:
        return (rows * present[:, :, None]).sum(1) / at_least(present.sum(1)[:, None])

    def bare(tokens: Any, mask: Any, table: Any) -> Any:
        rows = table.at[tokens].get(mode="promise_in_bounds").astype(np.float32)
        return mean(rows, mask.astype(np.float32), lambda count: jnp().maximum(count, 1.0))

    return Case(
        "embedding search, 32 texts of 64 tokens",
        arrays,
        block,
        lambda tokens, mask, table: mean(
            table[tokens].astype(np.float32), mask.astype(np.float32), lambda count: np.maximum(count, 1.0)
        ),
        bare,
        lambda tokens, mask, table: mean(table[tokens].float(), mask.float(), lambda count: count.clamp(min=1.0)),
        "r = Gather(table, tokens) f = Cast<to=1>(r) m = Cast<to=1>(mask) two = Constant<value_ints=[2]>() "
        "p = Unsqueeze(m, two) a = Mul(f, p) one = Constant<value_ints=[1]>() s = ReduceSum<keepdims=0>(a, one) "
        "c = ReduceSum<keepdims=0>(p, one) least = Constant<value_float=1.0>() d = Max(c, least) y = Div(s, d)",
        weights=lambda: {"table": np.random.default_rng(1).standard_normal((32_000, 256), np.float32).astype(np.float16)},
        tolerance=1e-5,
        quick=True,
    )


def lstm(length: int = 1000, batch: int = 1, width: int = 64, hidden: int = 128) -> Case:
    """Every step of an LSTM over a long sequence; weights in our order of gates, i f o g, and PyTorch's i f g o."""
    gates = 4 * hidden

    def weights() -> Arrays:
        found = normal((gates, width), (gates, hidden), (gates,), names="wrb", scale=0.1)()
        return {**found, "h": np.zeros((batch, hidden), np.float32)}

    def reordered(name: str) -> str:
        """ONNX's order of gates is i o f c."""
        return f"{name}i, {name}f, {name}o, {name}g = Split<axis=0, num_outputs=4>({name}) " + (
            f"{name}n = Concat<axis=0>({name}i, {name}o, {name}f, {name}g) "
        )

    def block(x: Any, w: Any, r: Any, b: Any, h: Any) -> Any:
        return x.lstm(h, h, w, r, b, output_sequence=True).output

    def numpy(x: Any, w: Any, r: Any, b: Any, h: Any) -> Any:
        given, c, steps = x @ w.T + b, h, np.empty((length, batch, hidden), np.float32)
        for number in range(length):
            gate = given[number] + h @ r.T
            i, f, o = (1 / (1 + np.exp(-part)) for part in np.split(gate[:, : 3 * hidden], 3, 1))
            c = f * c + i * np.tanh(gate[:, 3 * hidden :])
            h = steps[number] = o * np.tanh(c)
        return steps

    def bare(x: Any, w: Any, r: Any, b: Any, h: Any) -> Any:
        import jax

        def step(states: Any, given: Any) -> Any:
            h, c = states
            i, f, o, g = jnp().split(given + h @ r.T, 4, 1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp().tanh(g)
            h = jax.nn.sigmoid(o) * jnp().tanh(c)
            return (h, c), h

        return jax.lax.scan(step, (h, h), x @ w.T + b)[1]

    def torch(x: Any, w: Any, r: Any, b: Any, h: Any) -> Any:
        from torch import cat, lstm, no_grad

        def order(part: Any) -> Any:
            i, f, o, g = part.chunk(4)
            return cat([i, f, g, o])

        with no_grad():
            weights = [order(w), order(r), order(b), b.new_zeros(gates)]
            return lstm(x, (h[None], h[None]), weights, True, 1, 0.0, False, False, False)[0]

    onnx = (
        f"{reordered('w')}{reordered('r')}{reordered('b')}zero = Constant<value_ints=[0]>() one = Constant<value_ints=[1]>() "
        "wu = Unsqueeze(wn, zero) ru = Unsqueeze(rn, zero) nothing = Sub(bn, bn) bb = Concat<axis=0>(bn, nothing) "
        f"bu = Unsqueeze(bb, zero) all = LSTM<hidden_size={hidden}>(x, wu, ru, bu) y = Squeeze(all, one)"
    )
    return Case(
        f"LSTM of {hidden} over {length:,} steps",
        normal((length, batch, width)),
        block,
        numpy,
        bare,
        torch,
        onnx,
        weights=weights,
        tolerance=1e-4,  # rounding goes through 1,000 steps
        indexed=False,
        quick=True,
    )


def cnn(batch: int = 8, size: int = 64) -> Case:
    """Two convolutions, a pooling, the mean of each channel, and ten classes."""
    same, window = bg.ConvolutionPadding.SAME, ([2, 2], [2, 2], bg.PoolingPadding.VALID, bg.CeilingMode.FLOOR)

    def block(x: Any, v: Any, b: Any, w: Any, c: Any, d: Any) -> Any:
        x = x.conv(v, [1, 1], b, same).relu().pooling(bg.PoolingFunction.MAX, *window)
        return x.conv(w, [1, 1], c, same).relu().mean([2, 3]).linear(d)

    def bare(x: Any, v: Any, b: Any, w: Any, c: Any, d: Any) -> Any:
        import jax

        def conv(x: Any, weight: Any, bias: Any) -> Any:
            found = jax.lax.conv_general_dilated(x, weight, (1, 1), "SAME")
            return jax.nn.relu(found + bias[None, :, None, None])

        x = jax.lax.reduce_window(conv(x, v, b), -np.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
        return conv(x, w, c).mean((2, 3)) @ d.T

    def torch(x: Any, v: Any, b: Any, w: Any, c: Any, d: Any) -> Any:
        from torch.nn import functional

        x = functional.max_pool2d(functional.conv2d(x, v, b, padding=1).relu(), 2)
        return functional.conv2d(x, w, c, padding=1).relu().mean((2, 3)) @ d.T

    return Case(
        f"small CNN, {batch} images of {size} x {size}",
        normal((batch, 3, size, size)),
        block,
        None,
        bare,
        torch,
        "e = Conv<pads=[1, 1, 1, 1]>(x, v, b) f = Relu(e) g = MaxPool<kernel_shape=[2, 2], strides=[2, 2]>(f) "
        "h = Conv<pads=[1, 1, 1, 1]>(g, w, c) i = Relu(h) axes = Constant<value_ints=[2, 3]>() "
        "m = ReduceMean<keepdims=0>(i, axes) y = Gemm<transB=1>(m, d)",
        weights=normal((16, 3, 3, 3), (16,), (32, 16, 3, 3), (32,), (10, 32), names="vbwcd", scale=0.2),
        tolerance=1e-4,
        indexed=False,
        quick=True,
    )


def filters() -> Iterator[Case]:
    """A filter of an image, and of audio."""
    for name, shape, kernel in (
        ("3 x 3 filter of 1080 x 1920", (1, 1, 1080, 1920), (1, 1, 3, 3)),
        ("filter of 15 taps, 480,000 samples", (1, 1, 480_000), (1, 1, 15)),
    ):
        ends = [size // 2 for size in kernel[2:]] * 2

        def bare(x: Any, w: Any, rank: int = len(shape)) -> Any:
            import jax

            return jax.lax.conv_general_dilated(x, w, (1,) * (rank - 2), "SAME")

        def torch(x: Any, w: Any, rank: int = len(shape)) -> Any:
            from torch.nn import functional

            return (functional.conv1d if rank == 3 else functional.conv2d)(x, w, padding="same")

        def numpy(x: Any, w: Any) -> Any:
            return np.convolve(x[0, 0], w[0, 0, ::-1], "same")[None, None]

        yield Case(
            name,
            normal(shape),
            lambda x, w: x.conv(w, [1] * (x.rank - 2), None, bg.ConvolutionPadding.SAME),
            numpy if len(shape) == 3 else None,
            bare,
            torch,
            f"y = Conv<pads={ends}>(x, w)",
            weights=normal(kernel, names="w"),
            tolerance=1e-4,
            indexed=False,
            quick=True,
        )


def few_rows(count: int = 4096, width: int = 384, wide: int = 1536) -> Case:
    """An MLP on every row, then 16 of the rows."""

    def arrays() -> Arrays:
        rng = np.random.default_rng(0)
        return {"x": rng.standard_normal((count, width), np.float32), "i": rng.integers(0, count, 16).astype(np.int32)}

    def bare(x: Any, i: Any, v: Any, w: Any) -> Any:
        import jax

        return (jax.nn.relu(x @ v) @ w)[i]

    return Case(
        f"MLP on {count:,} rows, then 16 of them",
        arrays,
        lambda x, i, v, w: ((x @ v).relu() @ w).gather(i, axis=0),
        lambda x, i, v, w: (np.maximum(x @ v, 0) @ w)[i],
        bare,
        lambda x, i, v, w: ((x @ v).relu() @ w)[i],
        "a = MatMul(x, v) b = Relu(a) c = MatMul(b, w) y = Gather(c, i)",
        weights=normal((width, wide), (wide, width), names="vw", scale=0.05),
        tolerance=1e-4,
    )


def cases() -> Iterator[Case]:
    """Every program but those that need a package of their own."""
    yield from listings.cases()
    yield search()
    yield lstm()
    yield cnn()
    yield from filters()
    yield few_rows()


TEXT = "the index of a row is out of range when it reaches beyond its table and every gather says so by name"


def against_wordllama() -> list[Row]:
    """Texts to vectors, tokens and all, beside the package whose vectors they are."""
    name = "256 texts to vectors"
    if importlib.util.find_spec("wordllama") is None or importlib.util.find_spec("tokenizers") is None:
        peers.NOTES["wordllama"] = 'wordllama is left out: pip install ".[demo]"'
        return []
    if CLOCK.out(name):
        return []
    import wordllama

    from bnnsgraph import demo

    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(TEXT.split(), rng.integers(5, 60))) for _ in range(256)]
    model = demo.load_model()
    embed = demo.make_embedder(model.table)
    theirs = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
    functions: dict[str, Callable[[], Any]] = {
        OURS: lambda: demo.embed_texts(embed, model, texts),
        "wordllama": lambda: theirs.embed(texts),
    }
    return side_by_side(name, functions, tolerance=1e-5)


def run(quick: bool) -> list[Row]:
    """Every program."""
    rows = run_cases(cases(), quick)
    return rows if quick else rows + against_wordllama() + minilm.run()
