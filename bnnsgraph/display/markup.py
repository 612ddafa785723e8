"""Graphs for other tools to lay out: Graphviz and Mermaid."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from bnnsgraph.display.scene import Box, Edge, Scene
from bnnsgraph.graph import Graph

_DOT_SHAPES = {
    "argument": 'shape=box style="rounded,filled" fillcolor="#ddf4ff"',
    "constant": 'shape=box style="dashed,filled" fillcolor="#fff8c5"',
    "operation": 'shape=box style=filled fillcolor="#f6f8fa"',
    "output": 'shape=box style="rounded,filled" fillcolor="#dafbe1" penwidth=2',
}
_MERMAID_SHAPES = {"argument": ("([", "])"), "constant": ("[/", "/]"), "operation": ("[", "]"), "output": ("([", "])")}
_MERMAID_CODES = {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "&": "#amp;", "`": "#96;", "\\": "#92;", "\n": "<br>"}


class _Item(NamedTuple):
    id: str
    box: Box
    group: str


def to_dot(graph: Graph) -> str:
    """The graph in the language of Graphviz, groups as clusters."""
    scene = Scene(graph)
    lines = ["digraph {", '  node [fontname="Helvetica" fontsize=11]', '  edge [fontname="Helvetica" fontsize=9]']
    items = _items(scene)

    def opened(number: int, name: str, depth: int) -> None:
        pad = "  " * depth
        lines.append(
            f'{pad}subgraph cluster_{number} {{\n{pad}  label="{_dot(name)}"\n{pad}  style=rounded\n{pad}  color="#8250df"'
        )

    def shown(item: _Item, depth: int) -> None:
        tip = _dot(item.box.tooltip)
        lines.append(f'{"  " * depth}{item.id} [label="{_dot(_label(item.box))}" tooltip="{tip}" {_DOT_SHAPES[item.box.kind]}]')

    _nested(items, opened, lambda depth: lines.append(f"{'  ' * depth}}}"), shown)
    for source, key, target in _arrows(scene, items):
        lines.append(f'  {source} -> {target} [label="{_dot(str(key[0].outputs[key[1]]))}"]')
    return "\n".join([*lines, "}", ""])


def to_mermaid(graph: Graph) -> str:
    """The graph in the language of Mermaid, which GitHub and many editors draw; groups as subgraphs."""
    scene = Scene(graph)
    lines = ["flowchart TD"]
    items = _items(scene)

    def shown(item: _Item, depth: int) -> None:
        left, right = _MERMAID_SHAPES[item.box.kind]
        lines.append(f'{"  " * depth}{item.id}{left}"{_mermaid(_label(item.box))}"{right}')

    _nested(
        items,
        lambda number, name, depth: lines.append(f'{"  " * depth}subgraph g{number}["{_mermaid(name)}"]'),
        lambda depth: lines.append(f"{'  ' * depth}end"),
        shown,
    )
    for source, key, target in _arrows(scene, items):
        lines.append(f'  {source} -->|"{_mermaid(str(key[0].outputs[key[1]]))}"| {target}')
    return "\n".join([*lines, ""])


def _items(scene: Scene) -> list[_Item]:
    graph = scene.graph
    nodes = [node for node in graph.nodes if not scene.is_inline(node)]
    items = [_Item(f"n{scene.numbers[node]}", scene.box(node), node.group) for node in nodes]
    return items + [_Item(f"out{index}", box, "") for index, box in enumerate(scene.outputs())]


def _nested(
    items: list[_Item],
    opened: Callable[[int, str, int], None],
    closed: Callable[[int], None],
    shown: Callable[[_Item, int], None],
) -> None:
    """Write the items group by group: a group's own first, then the groups in it."""
    number = 0

    def level(members: list[_Item], path: str, depth: int) -> None:
        nonlocal number
        below: dict[str, list[_Item]] = {}
        for item in members:
            if item.group == path:
                shown(item, depth)
            else:
                rest = item.group[len(path) + 1 :] if path else item.group
                below.setdefault(rest.split("/")[0], []).append(item)
        for name, inner in below.items():
            opened(number, name, depth)
            number += 1
            level(inner, f"{path}/{name}" if path else name, depth + 1)
            closed(depth)

    level(items, "", 1)


def _arrows(scene: Scene, items: list[_Item]) -> Iterator[tuple[str, Edge, str]]:
    for item in items:
        for _, key in item.box.inputs:
            yield f"n{scene.numbers[key[0]]}", key, item.id


def _label(box: Box) -> str:
    return "\n".join([box.title, *box.details, *box.chips])


def _dot(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _mermaid(text: str) -> str:
    return "".join(_MERMAID_CODES.get(letter, letter) for letter in text)


__all__ = ["to_dot", "to_mermaid"]
