"""The pictures of docs/: `python -m tests.pictures` draws them anew, and a test fails when they are out of date.

Graphs are drawn by the package, curves are values that it computes, and grids are marked where its answers say so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import bnnsgraph as bg

FOLDER = Path(__file__).parent.parent / "docs" / "pictures"
STYLE = """
.paper{fill:#fff}.ink{fill:#1f2328}.rule{stroke:#d1d9e0;fill:none}.cell{fill:#f6f8fa;stroke:#8c959f}
.a{fill:#54aeff}.b{fill:#f2a45c}.c{fill:#6fc276}.d{fill:#b38cf0}.a,.b,.c,.d{stroke:#57606a}.mark{fill:#111}
.line{stroke:#0969da;fill:none;stroke-width:2}
text{font-family:Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:12px;text-anchor:middle}.left{text-anchor:start}
@media (prefers-color-scheme:dark){.paper{fill:#111418}.ink{fill:#e6edf3}.rule{stroke:#30363d}
.cell{fill:#1f252c;stroke:#6e7681}.line{stroke:#58a6ff}}
""".strip()
SIZE = 26  # of an element of a grid

Block = Callable[[bg.Tensor], bg.Tensor]


def pictures() -> dict[str, str]:
    """Every picture by the name of its file."""
    return {
        "activations.svg": activations(),
        "attention.svg": attention().graph.to_svg(),
        "first.svg": first().graph.to_svg(),
        "gates.svg": gates(),
        "gather.svg": gather(),
        "icon.svg": icon(),
        "masks.svg": masks(),
        "normalisations.svg": normalisations(),
        "padding.svg": padding(),
        "windows.svg": windows(),
    }


# Graphs


def first() -> bg.Context:
    @bg.make_context
    def embed(builder: bg.Builder) -> Any:
        table = builder.constant("table", values=np.zeros((5, 3), np.float32))
        tokens = builder.argument("tokens", bg.Int32, shape=["batch", "length"])
        return table.gather(tokens, axis=0).mean(axes=[1]).named("vectors")

    return embed


def attention() -> bg.Context:
    @bg.make_context
    def attend(builder: bg.Builder) -> Any:
        query, key, value = (builder.argument(name, bg.Float32, ["length", 64]) for name in ("query", "key", "value"))
        scores = query.matmul(key, transpose_other=True) * 0.125
        return (scores.softmax(axis=-1) @ value).named("output")

    return attend


# Curves and grids


def activations() -> str:
    """Curves of the activations, from -4 to 4."""
    functions: dict[str, Block] = {
        "relu()": lambda x: x.relu(),
        "leaky_relu(0.1)": lambda x: x.leaky_relu(0.1),
        "clamped_relu(0.1, 2)": lambda x: x.clamped_relu(0.1, 2),
        "elu(1)": lambda x: x.elu(1),
        "gelu()": lambda x: x.gelu(),
        "silu()": lambda x: x.silu(),
        "hard_swish()": lambda x: x.hard_swish(),
        "softplus(1)": lambda x: x.softplus(1),
        "sigmoid()": lambda x: x.sigmoid(),
        "tanh()": lambda x: x.tanh(),
        "softsign()": lambda x: x.softsign(),
        "hard_sigmoid(0.2, 0.5)": lambda x: x.hard_sigmoid(0.2, 0.5),
    }
    places = np.linspace(-4, 4, 65)
    parts: list[str] = []
    for number, (name, values) in enumerate(computed(places, functions).items()):
        left, top = 10 + number % 4 * 180, 10 + number // 4 * 175
        middle, ground = left + 80, top + 100  # 20 points a unit
        points = [f"{middle + 20 * x:.1f},{ground - 20 * y:.1f}" for x, y in zip(places, values, strict=True)]
        parts += [
            f'<rect class="rule" x="{left}" y="{top}" width="160" height="140"/>',
            f'<path class="rule" d="M{left} {ground}H{left + 160}M{middle} {top}V{top + 140}M{middle} {ground - 20}h4"/>',
            f'<polyline class="line" points="{" ".join(points)}"/>',
            text(left + 80, top + 157, name),
        ]
    return document(720, 535, parts, "Activations from -4 to 4, with a tick at 1")


def gather() -> str:
    """Three gathers: each element of a result, and the place that it was read from, have one colour."""
    table = np.arange(12).reshape(3, 4)
    functions: dict[str, Block] = {
        "gather([2, 0], axis=0)": lambda x: x.gather([2, 0], axis=0),
        "gather_along_axis([[3], [1], [0]], axis=1)": lambda x: x.gather_along_axis([[3], [1], [0]], axis=1),
        "gather_nd([[0, 3], [2, 1]])": lambda x: x.gather_nd([[0, 3], [2, 1]]),
    }
    parts: list[str] = []
    for number, (name, found) in enumerate(computed(table, functions).items()):
        left, top = 20 + number % 2 * 380, 24 + number // 2 * 130
        rows = found if found.ndim == 2 else found[:, None]
        colours = {int(value): "abcd"[row] for row, values in enumerate(rows) for value in values}
        parts += [text(left, top, name, "ink left"), text(left + 4 * SIZE + 18, top + 59, "→")]
        parts += grid(left, top + 16, np.vectorize(lambda value, colours=colours: colours.get(value, ""))(table), table)
        shown = rows if found.ndim == 2 else found[None]
        parts += grid(left + 4 * SIZE + 36, top + 16, np.vectorize(colours.get)(shown), shown)
    return document(720, 260, parts, "gather, gather_along_axis and gather_nd of one matrix")


def normalisations() -> str:
    """Which elements share a mean with the first one: those whose result changes with it."""
    x = np.random.default_rng(0).normal(size=(2, 2, 4, 3))
    changed = x.copy()
    changed[0, 0, 0, 0] += 1
    functions: dict[str, Block] = {
        "batch_norm": lambda x: x.batch_norm(np.zeros(4), np.ones(4)),
        "instance_norm": lambda x: x.instance_norm(),
        "channel_norm": lambda x: x.channel_norm(),
        "layer_norm, axes=[1, 2]": lambda x: x.layer_norm(axes=[1, 2]),
        "group_norm, 2 groups": lambda x: x.group_norm(2),
        "rms_norm": lambda x: x.rms_norm(1.0),
        "l2_norm(epsilon=…)": lambda x: x.l2_norm(epsilon=1e-5),
    }
    one, other = computed(x[0], functions), computed(changed[0], functions)
    parts: list[str] = []
    for number, name in enumerate(functions):
        left, top = 20 + number % 4 * 210, 10 + number // 4 * 150
        parts.append(text(left + 3.25 * SIZE, top + 125, name))
        for item, marks in enumerate(one[name] != other[name]):
            parts += grid(left + item * 3.5 * SIZE, top, np.where(marks, "a", ""))
    return document(840, 290, parts, "Two batch items of four channels (rows) and three places (columns)")


def windows() -> str:
    """Which elements of a signal each element of a result is made from: those that its value depends on."""
    functions: dict[str, Block] = {
        "strides=[1]": lambda x: x.conv(np.ones((1, 1, 3)), [1]),
        "strides=[2]": lambda x: x.conv(np.ones((1, 1, 3)), [2]),
        "dilations=[2]": lambda x: x.conv(np.ones((1, 1, 3)), [1], dilations=[2]),
        "strides=[2], SAME": lambda x: x.conv(np.ones((1, 1, 3)), [2], padding=bg.ConvolutionPadding.SAME),
        "conv_transpose, [2]": lambda x: x[:4, :, :4].conv_transpose(np.ones((1, 1, 3)), [2]),
    }
    parts: list[str] = []
    left, top = 20, 24
    for name, found in computed(np.eye(7)[:, None, :], functions).items():
        marks = found[:, 0, :].T != 0
        parts.append(text(left, top, name, "ink left"))
        parts += grid(left, top + 16, np.where(marks, "b", ""))
        left, top = (left + 220, top) if left < 400 else (20, top + 180)
    return document(680, 470, parts, "Windows of three elements: one row a result, one column an element of the signal")


def masks() -> str:
    """Which keys (columns) each query (row) may see."""
    functions: dict[str, Block] = {
        "causal": lambda x: x.band_part(-1, 0),
        "3 of 5 keys present": lambda x: x * [1.0, 1.0, 1.0, 0.0, 0.0],
        "both": lambda x: x.band_part(-1, 0) * [1.0, 1.0, 1.0, 0.0, 0.0],
    }
    parts: list[str] = []
    for number, (name, found) in enumerate(computed(np.ones((5, 5)), functions).items()):
        left = 20 + number * 180
        parts += [text(left, 24, name, "ink left"), *grid(left, 40, np.where(found != 0, "a", ""))]
    return document(530, 190, parts, "Masks of attention")


def padding() -> str:
    """A row of four elements with a border of two."""
    functions: dict[str, Block] = {
        "Padding.constant(0)": lambda x: x.pad(bg.Padding.constant(0), [2, 2]),
        "Padding.REFLECTION": lambda x: x.pad(bg.Padding.REFLECTION, [2, 2]),
        "Padding.REPLICATION": lambda x: x.pad(bg.Padding.REPLICATION, [2, 2]),
    }
    colours = np.array([["", "", "c", "c", "c", "c", "", ""]])
    parts: list[str] = []
    for number, (name, found) in enumerate(computed(np.arange(1, 5), functions).items()):
        parts += [text(20, 32 + number * 36, name, "ink left"), *grid(190, 15 + number * 36, colours, found[None])]
    return document(420, 125, parts, "Three borders")


def gates() -> str:
    """The order of the gates in weights and biases."""
    orders = {
        "lstm here": "ifog", "PyTorch, Keras": "ifgo", "ONNX": "iofg",
        "gru here": "rnz", "PyTorch": "rzn", "Keras, ONNX ": "zrn",
    }  # fmt: skip
    colours = dict(zip("ifogrnz", "abcdbdc", strict=True))
    parts: list[str] = []
    for number, (name, order) in enumerate(orders.items()):
        left, top = 20 + number // 3 * 290, 15 + number % 3 * 36
        parts.append(text(left, top + 17, name.strip(), "ink left"))
        parts += grid(left + 130, top, np.array([[colours[gate] for gate in order]]), np.array([list(order)]))
    return document(560, 125, parts, "The order of the gates")


def icon() -> str:
    """The mark of the site: two rows chosen from a table."""
    marks = grid(7, 7, np.array([["", ""], ["a", "a"]]))
    return document(66, 66, list(marks), "bnnsgraph")


# Drawing


def computed(x: Any, functions: dict[str, Block]) -> dict[str, np.ndarray[Any, Any]]:
    """What each function gives for one array; floats are float64, so that every machine draws the same."""

    def block(builder: bg.Builder) -> Any:
        tensor = builder.constant(values=x)
        return [function(tensor) for function in functions.values()]

    return {name: np.asarray(result) for name, result in zip(functions, bg.make_context(block)(), strict=True)}


def document(width: float, height: float, parts: Sequence[str], label: str) -> str:
    """A drawing as a file."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}"'
    paper = f'<rect class="paper" width="{width:g}" height="{height:g}"/>'
    return "\n".join([f'{head} role="img">', f"<title>{label}</title>", f"<style>{STYLE}</style>", paper, *parts, "</svg>\n"])


def text(x: float, y: float, words: str, kind: str = "ink") -> str:
    """Words, their middle at ``x`` unless they are to start there."""
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{words}</text>'


def grid(x: float, y: float, colours: np.ndarray[Any, Any], words: np.ndarray[Any, Any] | None = None) -> Iterator[str]:
    """A matrix, one cell an element; where there is no colour the cell is plain."""
    for (row, column), colour in np.ndenumerate(colours):
        left, top = x + column * SIZE, y + row * SIZE
        yield f'<rect class="{colour or "cell"}" x="{left:g}" y="{top:g}" width="{SIZE}" height="{SIZE}"/>'
        if words is not None:
            yield text(left + SIZE / 2, top + SIZE / 2 + 4, str(words[row, column]), "mark" if colour else "ink")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, drawing in pictures().items():
        (FOLDER / name).write_text(drawing, encoding="utf-8")
