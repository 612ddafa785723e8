"""Apple's published programs at audio and image sizes; ``tests/test_apple_programs.py`` has them line by line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import bnnsgraph as bg
from tests.benchmarks.cases import Arrays, Case

AUDIO = 480_000  # samples: ten seconds
IMAGE = (1080, 1920)


def jnp() -> Any:
    """JAX's NumPy, imported when it is needed."""
    import jax.numpy

    return jax.numpy


def normal(*shapes: tuple[int, ...], names: str = "xw", scale: float = 1.0, dtype: Any = np.float32) -> Callable[[], Arrays]:
    """Arrays of normal numbers, by name."""

    def arrays() -> Arrays:
        rng = np.random.default_rng(0)
        draw = rng.standard_normal
        return {name: (draw(shape, np.float32) * scale).astype(dtype) for name, shape in zip(names, shapes, strict=False)}

    return arrays


def product_and_mean() -> Case:
    """Two outputs."""

    def both(x: Any, w: Any) -> Any:
        product = x * w
        return product, product.mean(0, keepdims=True)

    return Case(
        f"product and its mean, {AUDIO:,} samples",
        normal((AUDIO,), (AUDIO,)),
        lambda x, w: ((product := x * w), product.mean(axes=[0], keep_dimensions=True)),
        both,
        both,
        lambda x, w: ((product := x * w), product.mean(0, keepdim=True)),
        "y = Mul(x, w) first = Constant<value_ints=[0]>() z = ReduceMean(y, first)",
        tolerance=1e-5,
        indexed=False,
        quick=True,
    )


def total() -> Case:
    """A sum."""
    return Case(
        f"sum of two, {AUDIO:,} samples",
        normal((AUDIO,), (AUDIO,)),
        lambda x, w: x + w,
        lambda x, w: x + w,
        lambda x, w: x + w,
        lambda x, w: x + w,
        "y = Add(x, w)",
        indexed=False,
    )


def powers() -> Case:
    """Float16 bases to integer powers, masked; every result is a float16 number."""

    def arrays() -> Arrays:
        rng = np.random.default_rng(0)
        low, high, bases = (rng.integers(0, 4, AUDIO).astype(np.float16) for _ in range(3))
        return {"low": low, "high": high, "bases": bases, "exponents": rng.integers(0, 6, AUDIO).astype(np.int32)}

    def torch(low: Any, high: Any, bases: Any, exponents: Any) -> Any:
        return bases.pow(exponents.half()) * (low < high).half()

    def bare(low: Any, high: Any, bases: Any, exponents: Any) -> Any:
        return bases ** exponents.astype(np.float16) * (low < high).astype(np.float16)

    return Case(
        f"masked float16 powers, {AUDIO:,} samples",
        arrays,
        lambda low, high, bases, n: bases.pow(n.cast(to=bg.Float16)) * (low < high).cast(to=bg.Float16),
        bare,
        bare,
        torch,
        "mask = Less(low, high) n = Cast<to=10>(exponents) m = Cast<to=10>(mask) p = Pow(bases, n) y = Mul(p, m)",
        tolerance=1e-3,  # one unit of float16, where a power is worked out through logarithms
        indexed=False,
    )


def crop(margin: int = 100) -> Case:
    """The middle of an image."""
    inner = slice(margin, -margin)
    swift = bg.SliceRange(start_index=margin, end_index=-margin)
    output = np.empty((IMAGE[0] - 2 * margin, IMAGE[1] - 2 * margin, 3), np.float32)

    def copied(x: np.ndarray) -> np.ndarray:
        np.copyto(output, x[inner, inner])
        return output

    return Case(
        f"centre crop of {IMAGE[0]} x {IMAGE[1]} x 3",
        normal((*IMAGE, 3)),
        lambda x: x[swift, swift, bg.SliceRange.fill_all],
        copied,
        lambda x: x[inner, inner],
        lambda x: x[inner, inner].contiguous(),
        f"s = Constant<value_ints=[{margin}, {margin}]>() e = Constant<value_ints=[-{margin}, -{margin}]>() y = Slice(x, s, e)",
        indexed=False,
        quick=True,
    )


def threshold() -> Case:
    """A float16 image, white where it is brighter than its mean; no pixel is near it."""

    def arrays() -> Arrays:
        levels = np.array([0.0, 0.125, 0.25, 0.75, 0.875, 1.0], np.float16)
        return {"x": np.random.default_rng(0).choice(levels, (*IMAGE, 1))}

    def plain(x: Any) -> Any:
        return (x > x.mean((0, 1), dtype=np.float32).astype(np.float16)).astype(np.float16)

    return Case(
        f"threshold of {IMAGE[0]} x {IMAGE[1]} on the mean",
        arrays,
        lambda x: (x > x.mean(axes=[0, 1], keep_dimensions=False)).cast(to=bg.Float16),
        plain,
        plain,
        lambda x: (x > x.mean((0, 1), dtype=x.float().dtype).half()).half(),
        "axes = Constant<value_ints=[0, 1]>() wide = Cast<to=1>(x) sum = ReduceMean<keepdims=0>(wide, axes) "
        "m = Cast<to=10>(sum) b = Greater(x, m) y = Cast<to=10>(b)",
        indexed=False,
    )


def best(count: int, k: int = 10) -> Case:
    """Softmax and the best."""

    def exact(x: np.ndarray) -> Any:
        e = np.exp(x - x.max())
        e /= e.sum()
        top = np.argpartition(e, -k)[-k:]
        top = top[np.argsort(-e[top])]
        return e[top], top.astype(np.int32)

    def bare(x: Any) -> Any:
        import jax

        return jax.lax.top_k(jax.nn.softmax(x), k)

    def torch(x: Any) -> Any:
        return tuple(x.softmax(0).topk(k))

    def block(x: Any) -> Any:
        found = x.softmax(axis=0).top_k(k, axis=0)
        return found.values, found.indices

    return Case(
        f"softmax and best {k} of {count:,}",
        normal((count,)),
        block,
        exact,
        bare,
        torch,
        f"s = Softmax<axis=0>(x) k = Constant<value_ints=[{k}]>() y, i = TopK<axis=0>(s, k) z = Cast<to=6>(i)",
        tolerance=1e-5,
        indexed=False,
    )


def crusher(count: int, *, quick: bool = False) -> Case:
    """Saturate, quantise and mix; no sample is where the last bit decides a step."""

    def arrays() -> Arrays:
        wave = np.sin(np.arange(2 * count) * 0.01)
        settled = np.abs(np.tanh(wave * 1.5) * 8 % 1 - 0.5) > 0.01
        return {"x": wave[settled][:count].astype(np.float32)}

    def settings() -> Arrays:
        return {name: np.full(1, number, np.float32) for name, number in zip("rgd", (8, 1.5, 0.75), strict=True)}

    def plain(round_: Callable[[Any], Any], tanh: Callable[[Any], Any]) -> Callable[..., Any]:
        return lambda x, r, g, d: round_(tanh(x * g) * r) / r * d + x * (1 - d)

    return Case(
        f"bit crusher, {count:,} samples",
        arrays,
        lambda x, r, g, d: ((x * g).tanh() * r).round() / r * d + x * (1 - d),
        plain(np.round, np.tanh),
        lambda *given: plain(jnp().round, jnp().tanh)(*given),
        lambda x, r, g, d: ((x * g).tanh() * r).round() / r * d + x * (1 - d),
        "a = Mul(x, g) b = Tanh(a) c = Mul(b, r) e = Round(c) f = Div(e, r) h = Mul(f, d) "
        "one = Constant<value_float=1.0>() j = Sub(one, d) k = Mul(x, j) y = Add(h, k)",
        weights=settings,
        tolerance=1e-5,
        indexed=False,
        quick=quick,
    )


def masking() -> Case:
    """Infinity where a mask is false."""

    def arrays() -> Arrays:
        rng = np.random.default_rng(0)
        return {"m": rng.random(AUDIO) < 0.5, "x": rng.standard_normal(AUDIO, np.float32)}

    return Case(
        f"mask, {AUDIO:,} samples",
        arrays,
        lambda m, x, infinity: m.select(x, infinity),
        np.where,
        lambda *given: jnp().where(*given),
        lambda m, x, infinity: x.where(m, infinity),
        "y = Where(m, x, infinity)",
        weights=lambda: {"infinity": np.array([np.inf], np.float32)},
        indexed=False,
    )


def cases() -> Iterator[Case]:
    """Every listing."""
    yield product_and_mean()
    yield total()
    yield powers()
    yield crop()
    yield threshold()
    yield best(1_000)
    yield best(100_000)
    yield crusher(512, quick=True)
    yield crusher(AUDIO)
    yield masking()
