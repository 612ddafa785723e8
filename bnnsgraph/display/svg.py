"""A scene as SVG."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field

from bnnsgraph.display.layout import Cell, Net, Route, arrange
from bnnsgraph.display.scene import COMMUTATIVE, Box, Edge, Frame, Scene
from bnnsgraph.display.style import STYLE, columns, escaped, shortened, width
from bnnsgraph.files import write_atomically
from bnnsgraph.graph import Graph

TITLE, TEXT = 12.0, 10.5
TITLE_LINE, LINE, CHIP_LINE = 17.0, 14.0, 18.0
SIDE, ENDS = 10.0, 6.0
LABEL = 17.0
"""The height under a box that holds the labels of what it makes."""
STACK = 4.0
"""How far the second sheet of a folded group is behind the first."""
HEADER = 24.0
MARGIN = 12.0
LONGEST = 44
"""Columns of the longest text that is shown in full."""
MOST_LINES = 3
LANES = 12
"""How many rows the edges of one box may pass, on the average, before the longest are named and not drawn."""


@dataclass
class Shape:
    """A box with its measures. The cell is everything that belongs to it; the box stands in it from ``left`` on.

    Attributes:
        box: what is drawn.
        cell: where.
        left: from the cell's left side to the box's.
        width: of the box alone.
        height: likewise.
        lines: the lines of text below the title.
        inner: the drawing of the inside of an open group.
    """

    box: Box
    cell: Cell
    left: float
    width: float
    height: float
    lines: list[str]
    inner: Drawing | None = None


@dataclass
class Drawing:
    """A frame with everything in its place."""

    width: float
    height: float
    shapes: list[Shape] = field(default_factory=list)
    routes: list[Route] = field(default_factory=list)
    nets: list[tuple[Edge, Net]] = field(default_factory=list)


def to_svg(graph: Graph, path: str | os.PathLike[str] | None = None, unfold: Iterable[str] | None = None) -> str:
    """The graph as an SVG document, written to ``path`` where one is given."""
    scene = Scene(graph)
    text = document(scene, scene.whole(scene.opened(unfold)), str(repr(graph)), style=True)
    if path is not None:
        write_atomically(path, text.encode())
    return text


def document(scene: Scene, frame: Frame, label: str, *, style: bool) -> str:
    """A frame as an SVG element, with the style in it or left to the page around it."""
    drawing = draw(scene, frame)
    wide, high = drawing.width + 2 * MARGIN, drawing.height + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="bnnsgraph" role="img" aria-label="{escaped(label)}" '
        f'width="{_n(wide)}" height="{_n(high)}" viewBox="0 0 {_n(wide)} {_n(high)}">'
    ]
    if style:
        parts.append(f"<style>{STYLE}</style>")
    parts.append(f'<rect class="paper" width="{_n(wide)}" height="{_n(high)}"/>')
    _render(scene, drawing, MARGIN, MARGIN, parts)
    parts.append("</svg>")
    return "\n".join(parts)


# Measuring


def draw(scene: Scene, frame: Frame) -> Drawing:
    """Measure the boxes of a frame and place them."""
    _name_far_inputs(scene, frame)
    shapes = [_measure(scene, box) for box in frame.boxes]
    makers: dict[Edge, tuple[int, int]] = {}
    targets: dict[Edge, list[tuple[int, int]]] = {}
    for index, box in enumerate(frame.boxes):
        for place, (_, key) in enumerate(box.outputs):
            makers[key] = index, place
            targets[key] = []
        for place, (_, key) in enumerate(box.inputs):
            targets[key].append((index, place))
    nets = [(key, Net(*makers[key], tuple(found))) for key, found in targets.items() if found]
    wide, high, routes = arrange([shape.cell for shape in shapes], [net for _, net in nets])
    return Drawing(wide, high, shapes, routes, nets)


def _name_far_inputs(scene: Scene, frame: Frame) -> None:
    """Where edges would be most of the drawing, name what a box reads from far above in the box, and draw no edge."""
    ranks: list[int] = []
    makers: dict[Edge, int] = {}
    spans: dict[Edge, list[int]] = {}
    for index, box in enumerate(frame.boxes):
        ranks.append(max((ranks[makers[key]] + 1 for _, key in box.inputs), default=0))
        makers |= {key: index for _, key in box.outputs}
        for _, key in box.inputs:
            spans.setdefault(key, []).append(ranks[index] - ranks[makers[key]])
    longest = max(ranks, default=0)
    while sum(max([span for span in found if span <= longest], default=0) for found in spans.values()) > LANES * len(ranks):
        longest //= 2
    for index, box in enumerate(frame.boxes):
        far = [(name, key) for name, key in box.inputs if ranks[index] - ranks[makers[key]] > longest and box.kind != "leave"]
        box.inputs = [each for each in box.inputs if each not in far]
        if far and (len(far) > 2 or not all(name for name, _ in far)):
            more = f" and {len(far) - 2} more" if len(far) > 2 else ""
            box.details.append(f"← {', '.join(scene.names[key] for _, key in far[:2])}{more}")
        else:
            box.details += [f"{name} = {scene.names[key]}" for name, key in far]


def _measure(scene: Scene, box: Box) -> Shape:
    if box.frame is not None:
        return _measure_open(box, draw(scene, box.frame))
    row = {"enter": "first", "leave": "last"}.get(box.kind, "")
    if row and not box.title:
        return Shape(box, Cell(10, 0, [5.0] * len(box.inputs), [5.0] * len(box.outputs), row=row), 0, 10, 0, [])
    lines = _wrapped(box.details)
    chips = [shortened(chip, LONGEST) for chip in box.chips]
    labels = [shortened(label, LONGEST) for label, _ in box.outputs]
    names = [name for name, _ in box.inputs]
    wide = max(
        [width(shortened(box.title, LONGEST), TITLE)]
        + [width(line, TEXT) for line in lines]
        + [width(chip, TEXT) + 10 for chip in chips]
        + [sum(width(name, TEXT) + 12 for name in names) if any(names) else 12.0 * len(names)]
    )
    wide = round(wide + 2 * SIDE + (8 if box.kind in ("argument", "output", "enter", "leave") else 0))
    high = ENDS * 2 + TITLE_LINE + LINE * len(lines) + CHIP_LINE * len(chips) + (LINE if any(names) else 0)
    spans = [width(label, TEXT) + 12 for label in labels]
    whole = max(wide + (2 * STACK if box.kind == "group" else 0), sum(spans))
    left = (whole - wide) / 2
    tall = high + (LABEL if any(labels) else 0) + (STACK if box.kind == "group" else 0)
    free = box.kind == "group" or box.title in COMMUTATIVE
    cell = Cell(whole, tall, _inputs(names, left, wide), _outputs(spans, whole), free, row)
    return Shape(box, cell, left, wide, high, lines)


def _measure_open(box: Box, inner: Drawing) -> Shape:
    wide = max(inner.width, width(shortened(box.title, LONGEST), TITLE)) + 2 * MARGIN
    high = inner.height + HEADER + MARGIN
    offset = (wide - inner.width) / 2
    ports = {kind: [offset + s.cell.x + 5 for s in inner.shapes if s.box.kind == kind] for kind in ("enter", "leave")}
    return Shape(box, Cell(wide, high, ports["enter"], ports["leave"]), 0, wide, high, [], inner)


def _wrapped(details: Iterable[str]) -> list[str]:
    """Parameters in lines, broken after commas; the tooltip has what does not fit."""
    lines: list[str] = []
    for detail in details:
        line = ""
        for part in detail.split(", "):
            if line and columns(line) + columns(part) + 2 > LONGEST * 3 // 4:
                lines.append(f"{line},")
                line = part
            else:
                line = f"{line}, {part}" if line else part
        lines.append(line)
    lines = [shortened(line, LONGEST) for line in lines]
    return lines if len(lines) <= MOST_LINES else [*lines[: MOST_LINES - 1], "…"]


def _inputs(names: list[str], left: float, wide: float) -> list[float]:
    if not any(names):
        return [left + wide * (index + 1) / (len(names) + 1) for index in range(len(names))]
    spans = [width(name, TEXT) + 12 for name in names]
    rest = (wide - sum(spans)) / len(names)
    places: list[float] = []
    x = left
    for span in spans:
        places.append(x + (span + rest) / 2)
        x += span + rest
    return places


def _outputs(spans: list[float], whole: float) -> list[float]:
    places: list[float] = []
    x = (whole - sum(spans)) / 2
    for span in spans:
        places.append(x + span / 2)
        x += span
    return places


# Drawing


def _render(scene: Scene, drawing: Drawing, x: float, y: float, parts: list[str]) -> None:
    for (key, net), route in zip(drawing.nets, drawing.routes, strict=True):
        ends = [end for end, (cell, _) in zip(route.ends, net.targets, strict=True) if drawing.shapes[cell].height]
        tip = f"{scene.names[key]}: {key[0].outputs[key[1]]}"
        path = _path(route, ends, x, y)
        parts.append(f'<path class="edge" d="{path}"><title>{escaped(tip)}</title></path>')
    for shape in drawing.shapes:
        if shape.height:
            _render_box(scene, shape, x + shape.cell.x, y + shape.cell.y, parts)


def _render_box(scene: Scene, shape: Shape, x: float, y: float, parts: list[str]) -> None:
    box, left, wide, high = shape.box, x + shape.left, shape.width, shape.height
    parts.append(f'<g class="{box.kind}{" open" if shape.inner else ""}"><title>{escaped(box.tooltip)}</title>')
    if box.kind == "group" and shape.inner is None:
        parts.append(_rect("box", left + STACK, y + STACK, wide, high, 4))
    round_ends = box.kind in ("argument", "output", "enter", "leave")
    parts.append(_rect("box", left, y, wide, high, min(high / 2, 16) if round_ends else 0 if box.kind == "constant" else 4))
    title = shortened(box.title, LONGEST)
    if shape.inner is not None:
        inner, offset = shape.inner, (wide - shape.inner.width) / 2
        lines = [(at, y, y + HEADER) for at in shape.cell.inputs]
        lines += [(at, y + HEADER + inner.height, y + high) for at in shape.cell.outputs]
        path = "".join(f"M{_n(x + at)} {_n(top)}V{_n(bottom)}" for at, top, bottom in lines)
        parts.append(f'<path class="edge" d="{path}"/>')
        parts.append(f'<text class="title name" x="{_n(left + SIDE)}" y="{_n(y + 16)}">{escaped(title)}</text>')
        _render(scene, inner, x + offset, y + HEADER, parts)
        parts.append("</g>")
        return
    middle, line = left + wide / 2, y + ENDS
    names = [name for name, _ in box.inputs]
    if any(names):
        for name, at in zip(names, shape.cell.inputs, strict=True):
            parts.append(_text("port", x + at, line + 7, name))
        line += LINE
    parts.append(_text("title", middle, line + 12, title))
    line += TITLE_LINE
    for text in shape.lines:
        parts.append(_text("dim", middle, line + 10, text))
        line += LINE
    for chip in box.chips:
        text = shortened(chip, LONGEST)
        room = width(text, TEXT) + 10
        parts.append(_rect("chip", middle - room / 2, line + 1, room, CHIP_LINE - 3, 2))
        parts.append(_text("dim", middle, line + 12, text))
        line += CHIP_LINE
    for (label, _), at in zip(box.outputs, shape.cell.outputs, strict=True):
        if label:
            parts.append(_text("dim", x + at, y + shape.cell.height - 4, shortened(label, LONGEST)))
    parts.append("</g>")


def _path(route: Route, ends: Iterable[tuple[float, float]], x: float, y: float) -> str:
    pieces: list[str] = []
    for run in dict.fromkeys(run for link in route.links for run in link):
        if run.bottom > run.top:
            pieces.append(f"M{_n(x + run.x)} {_n(y + run.top)}V{_n(y + run.bottom)}")
    for upper, lower in route.links:
        a, b, middle = x + upper.x, x + lower.x, y + (upper.bottom + lower.top) / 2
        if abs(a - b) < 0.05:
            pieces.append(f"M{_n(a)} {_n(y + upper.bottom)}V{_n(y + lower.top)}")
        else:
            pieces.append(
                f"M{_n(a)} {_n(y + upper.bottom)}C{_n(a)} {_n(middle)} {_n(b)} {_n(middle)} {_n(b)} {_n(y + lower.top)}"
            )
    for at, end in ends:
        at, end = x + at, y + end
        pieces.append(f"M{_n(at - 3.5)} {_n(end - 6)}L{_n(at)} {_n(end - 0.5)}L{_n(at + 3.5)} {_n(end - 6)}")
    return "".join(pieces)


def _rect(kind: str, x: float, y: float, wide: float, high: float, radius: float) -> str:
    corners = f' rx="{_n(radius)}"' if radius else ""
    return f'<rect class="{kind}" x="{_n(x)}" y="{_n(y)}" width="{_n(wide)}" height="{_n(high)}"{corners}/>'


def _text(kind: str, x: float, y: float, text: str) -> str:
    return f'<text class="{kind}" x="{_n(x)}" y="{_n(y)}">{escaped(text)}</text>'


def _n(value: float) -> str:
    text = f"{value:.1f}"
    return text.removesuffix(".0")


__all__ = ["Drawing", "Shape", "document", "draw", "to_svg"]
