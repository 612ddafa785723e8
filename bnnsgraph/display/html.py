"""Graphs, contexts and tensors as a notebook shows them: a drawing that unfolds, and a table. No scripts, nothing loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from bnnsgraph.display.costs import flops, result_bytes
from bnnsgraph.display.scene import Box, Frame, Scene
from bnnsgraph.display.style import STYLE, escaped, shortened
from bnnsgraph.display.svg import document
from bnnsgraph.display.thumbnails import thumbnail
from bnnsgraph.errors import ShapeError
from bnnsgraph.graph import Argument, Constant, Graph, Node, Recorder, Value, argument_of
from bnnsgraph.sizes import UNKNOWN, Dimension

MOST_BOXES = 1000
"""Boxes that a page draws; what is more is left to files."""
MOST_ROWS = 1000
MOST_LINES = 40
"""Lines of the text that stands in for the page where a notebook is not trusted."""
LONGEST_NAME = 32
"""Characters of a name in the table, which stays in sight while the other columns scroll."""
OPEN_UP_TO = 20
"""Boxes of a tensor's history that are shown without a click."""

PAGE = """
.bnnsgraph-page{background:var(--paper);color:var(--ink);font:13px/1.5 system-ui,sans-serif;padding:8px;display:block!important}
.bnnsgraph-text{display:none!important}
.bnnsgraph-page .canvas{overflow:auto;max-height:960px}
.bnnsgraph-page svg{max-width:none;display:block}
.bnnsgraph-page summary{cursor:pointer;padding:2px 0}
.bnnsgraph-page details details{margin-left:16px}
.bnnsgraph-page .dim{color:var(--dim)}
.bnnsgraph-page code{font:12px Menlo,Consolas,"DejaVu Sans Mono",monospace;background:none!important;color:inherit!important;
padding:0!important;white-space:inherit!important}
.bnnsgraph-page table{table-layout:auto!important;border-collapse:separate!important;border-spacing:0;border:none!important;
margin:4px 0!important;font-size:12px;color:var(--ink)!important}
.bnnsgraph-page tr{background:none!important}
.bnnsgraph-page th,.bnnsgraph-page td{border:none;border-bottom:1px solid var(--rule);padding:2px 12px 2px 0!important;
text-align:left!important;vertical-align:top!important;white-space:nowrap;max-width:none!important}
.bnnsgraph-page th{position:sticky;top:0;background:var(--paper)!important;z-index:1}
.bnnsgraph-page td:first-child,.bnnsgraph-page th:first-child{position:sticky;left:0;background:var(--paper)!important}
.bnnsgraph-page th:first-child{z-index:2}
.bnnsgraph-page td.call{white-space:normal;overflow-wrap:break-word;max-width:420px!important;min-width:200px}
.bnnsgraph-page .number{text-align:right!important}
.bnnsgraph-page td.number{white-space:normal;max-width:220px!important}
.bnnsgraph-page .thumbnail{display:block}
.bnnsgraph-page .bars{fill:var(--line)}
""".strip()

COLUMNS = {
    "name": "the variable, or the operation and its number", "operation": "", "shape": "", "dtype": "",
    "parameters": "numbers in arrays that are part of the graph",
    "FLOPs": "additions, multiplications and functions of one element, by formula; what only moves elements counts 0",
    "bytes": "memory of the results", "line": "where it was recorded",
}  # fmt: skip
_NUMBERS = ("parameters", "FLOPs", "bytes")


def graph_page(graph: Graph, title: str = "Graph", note: str = "") -> str:
    """The page of a graph."""
    scene = Scene(graph)
    inputs = ", ".join(f"{argument_of(value).name}: {value.spec}" for value in graph.arguments)
    outputs = [f"{name}: {value.spec}" for name, value in zip(graph.result_names, graph.results, strict=True)]
    head = f"<div><b>{escaped(title)}</b> <code>({escaped(inputs)}) → {escaped(', '.join(outputs))}</code>"
    facts = [f"{len(scene.operations):,} operation{'' if len(scene.operations) == 1 else 's'}"]
    facts += [f"{total:,} parameters" for total in [sum(_parameters(scene, node) for node in graph.nodes)] if total]
    facts += [note] if note else []
    head += f' <span class="dim">{escaped(" · ".join(facts))}</span></div>'
    return page(f"{graph!r}\n{_beginning(str(graph))}", head, *_drawings(scene), _table(scene))


def trace_page(rows: Sequence[Sequence[str]], arrays: Sequence[Any], text: str) -> str:
    """The page of a run: a row of words and a thumbnail for each value. The first row is the head."""
    head, *rest = rows
    lines = [
        "<tr>" + "".join(f"<td><code>{escaped(cell)}</code></td>" for cell in row) + f"<td>{thumbnail(array)}</td></tr>"
        for row, array in zip(rest[:MOST_ROWS], arrays, strict=False)
    ]
    if len(rest) > MOST_ROWS:
        lines.append(f'<tr><td colspan="{len(head) + 1}" class="dim">{len(rest) - MOST_ROWS:,} more</td></tr>')
    titles = "".join(f"<th>{escaped(cell)}</th>" for cell in (*head, ""))
    table = f"<table><thead><tr>{titles}</tr></thead>\n<tbody>{chr(10).join(lines)}</tbody></table>"
    return page(_beginning(text), f'<div class="canvas">{table}</div>')


def tensor_page(recorder: Recorder, value: Value, name: str | None, text: str) -> str:
    """The page of a tensor under construction: what it is, and how it comes about."""
    whole = Graph((), (value,), (name or "this",))
    used = [argument for argument in recorder.arguments if argument.node in {*whole.nodes}]
    scene = Scene(Graph(used, whole.results, whole.result_names))
    node = value.node
    head = f"<div><code><b>{escaped(f'{name}: ' if name else '')}{escaped(str(value.spec))}</b></code> "
    head += f'<code>{escaped(scene.written(node))}</code> <span class="dim">{escaped(str(node.origin))}</span></div>'
    if len(scene.graph.nodes) < 2:
        return page(text, head)
    drawn = _drawings(scene)
    count = f"{len(scene.operations):,} operation{'' if len(scene.operations) == 1 else 's'}"
    state = " open" if len(scene.graph.nodes) <= OPEN_UP_TO else ""
    return page(text, head, f"<details{state}><summary>made by {count}</summary>", *drawn, "</details>")


def page(text: str, *parts: str) -> str:
    """What a notebook shows, and the text that stands in where styles are stripped, as in a notebook that is not trusted."""
    return "\n".join(
        [
            '<div class="bnnsgraph">',
            f"<style>{STYLE}\n{PAGE}</style>",
            f'<pre class="bnnsgraph-text">{escaped(text)}</pre>',
            '<div class="bnnsgraph-page" hidden="hidden">',  # sanitizers drop the attribute where it has no value
            *parts,
            "</div>",
            "</div>",
        ]
    )


def _beginning(text: str) -> str:
    lines = text.splitlines()
    return "\n".join(lines if len(lines) <= MOST_LINES else [*lines[:MOST_LINES], f"... {len(lines) - MOST_LINES} more lines"])


# Drawings


def _drawings(scene: Scene) -> list[str]:
    """The graph, and below it each folded group."""
    opened = scene.opened(None)
    parts: list[str] = []
    _draw(scene, scene.whole(opened), repr(scene.graph), opened, MOST_BOXES, parts)
    return parts


def _draw(
    scene: Scene, frame: Frame, label: str, opened: Callable[[str], bool], left: int, parts: list[str]
) -> int:  # fmt: skip
    """Draw a frame and, folded, its groups; what is left of the boxes that may be drawn."""
    count = sum(1 for _ in _boxes(frame))
    if count > left:
        parts.append(f'<div class="dim">{count:,} boxes are too many for a page; graph.to_svg("graph.svg") draws them</div>')
        return left
    left -= count
    parts.append(f'<div class="canvas">{document(scene, frame, label, style=False)}</div>')
    for box in _boxes(frame):
        if box.kind == "group" and box.frame is None:
            inner = scene.opened(None, box.nodes, box.path)
            parts.append(f'<details><summary>{escaped(box.path)} <span class="dim">{escaped(box.details[0])}</span></summary>')
            left = _draw(scene, scene.inside(box, inner), box.path, inner, left, parts)
            parts.append("</details>")
    return left


def _boxes(frame: Frame) -> Iterable[Box]:
    for box in frame.boxes:
        yield box
        if box.frame is not None:
            yield from _boxes(box.frame)


# The table


def _table(scene: Scene) -> str:
    nodes = [node for node in scene.graph.nodes if not scene.is_inline(node)]
    titles = [f' title="{escaped(tip)}"' if tip else "" for tip in COLUMNS.values()]
    head = "".join(
        f"<th{' class=' + chr(34) + 'number' + chr(34) if name in _NUMBERS else ''}{tip}>{name}</th>"
        for name, tip in zip(COLUMNS, titles, strict=True)
    )
    rows = [_row(scene, node) for node in nodes[:MOST_ROWS]]
    if len(nodes) > MOST_ROWS:
        rows.append(f'<tr><td colspan="{len(COLUMNS)}" class="dim">{len(nodes) - MOST_ROWS:,} more</td></tr>')
    totals = [
        f"{sum(_parameters(scene, node) for node in nodes):,}",
        _sum(flops, scene.graph.nodes),
        _sum(result_bytes, scene.graph.nodes),
    ]
    numbers = "".join(f'<td class="number">{escaped(total)}</td>' for total in totals)
    foot = f'<td>all</td><td colspan="3"></td>{numbers}<td></td>'
    body = "\n".join(rows)
    return (
        f'<details><summary>Table of operations</summary><div class="canvas"><table><thead><tr>{head}</tr></thead>\n'
        f"<tbody>{body}</tbody><tfoot><tr>{foot}</tr></tfoot></table></div></details>"
    )


def _row(scene: Scene, node: Node) -> str:
    outputs = range(len(node.outputs))
    shapes = [str(spec).removeprefix(spec.dtype.name) for spec in node.outputs]
    name = ", ".join(scene.names[node, index] for index in outputs)
    text = [
        shortened(name, LONGEST_NAME),
        scene.written(node),
        ", ".join(shapes),
        ", ".join(dict.fromkeys(spec.dtype.name for spec in node.outputs)),
    ]
    own = _parameters(scene, node)
    numbers = [f"{own:,}" if own else "", _sum(flops, [node]), _sum(result_bytes, [node])]
    tip = escaped(f"{node.group}\n{node.origin.text}".strip())
    places = (f' title="{escaped(name)}"', ' class="call"', "", "")  # the call alone may need several lines
    cells = "".join(f"<td{place}><code>{escaped(cell)}</code></td>" for place, cell in zip(places, text, strict=True))
    cells += "".join(f'<td class="number">{escaped(cell)}</td>' for cell in numbers)
    return f'<tr>{cells}<td title="{tip}">{escaped(str(node.origin))}</td></tr>'


def _parameters(scene: Scene, node: Node) -> int:
    """The numbers in the arrays that an operation holds, or that a constant is; single numbers do not count."""
    if isinstance(node.op, Constant):
        return 0 if scene.is_inline(node) or node.op.array.size == 1 else node.op.array.size
    if isinstance(node.op, Argument):
        return 0
    held = [v.node.op.array.size for v in node.inputs if isinstance(v.node.op, Constant) and scene.is_inline(v.node)]
    return sum(size for size in held if size > 1)


def _sum(count: Callable[[Node], Dimension], nodes: Sequence[Node]) -> str:
    """The total in words: a number, an expression of named sizes, or ``?`` where a size is not known."""
    total: Dimension = 0
    try:
        for node in nodes:
            total = total + count(node)
    except ShapeError:  # too many terms
        return "?"
    if total is UNKNOWN:
        return "?"
    return f"{total:,}" if isinstance(total, int) else str(total)


__all__ = ["graph_page", "page", "tensor_page", "trace_page"]
