"""Places for boxes and routes for the edges between them: a drawing in rows, from the top down.

Geometry alone; it knows nothing of graphs of tensors. The steps are those of Sugiyama: rows by longest path, an order within
each row that makes few edges cross, then the places along the row that keep edges straight. Edges run vertically through
rows, at places reserved for them, and bend only in the gaps between rows; so no box overlaps another, and no edge a box.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

BETWEEN_BOXES = 18.0
BETWEEN_LANES = 10.0
"""The least distance that an edge passing a row keeps from what is beside it."""
BETWEEN_ROWS = 24.0
LANE = 10.0
"""The width of an edge that passes a row."""

SWEEPS = 12
ROUNDS = 24
WORK = 8_000
"""How many places to try in all those rounds; large drawings have fewer."""
CHAIN = 3.0
"""How much it matters that an edge is straight that is the only one at both its ends, beside 1 for a short edge."""
BRANCH = 0.01
"""How much it matters that a branch of a long edge is straight, beside 1 for a short edge."""
FIXED = 1e6
UPRIGHT = 60.0
"""How far from the middle of its cell the end of an edge may be for the cells to stand in line all the same."""


@dataclass
class Cell:
    """Something to be placed. Offsets are from its left side.

    Attributes:
        width: with everything that belongs to it.
        height: likewise.
        inputs: the offsets at which edges arrive, at the top.
        outputs: the offsets at which edges leave, at the bottom.
        free: whether edges may arrive in any order.
        row: ``"first"`` or ``"last"`` where only that row is right.
        x: the left side, once placed.
        y: the top, once placed.
    """

    width: float
    height: float
    inputs: list[float] = field(default_factory=list)
    outputs: list[float] = field(default_factory=list)
    free: bool = False
    row: str = ""
    x: float = 0.0
    y: float = 0.0


@dataclass(frozen=True)
class Net:
    """An edge from one output of a cell to inputs of later cells: (cell, input)."""

    source: int
    output: int
    targets: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Run:
    """The vertical part of an edge within one row."""

    x: float
    top: float
    bottom: float


@dataclass(frozen=True)
class Route:
    """How a net is drawn: pairs of runs to connect, and the points where it arrives."""

    links: tuple[tuple[Run, Run], ...]
    ends: tuple[tuple[float, float], ...]


@dataclass
class _Spot:
    """A place in a row: a cell, or a net that passes."""

    width: float
    cell: int = -1
    x: float = 0.0
    order: int = 0
    above: list[_Link] = field(default_factory=list)
    below: list[_Link] = field(default_factory=list)


@dataclass
class _Link:
    """A piece of an edge between neighbouring rows.

    Attributes:
        upper: where it leaves.
        leave: the offset there.
        lower: where it arrives.
        arrive: the offset there.
        position: which input of the lower cell that is.
        weight: how much it matters that it is straight.
        shift: how far the left side of the lower end is from that of the upper one, when it is straight.
    """

    upper: _Spot
    leave: float
    lower: _Spot
    arrive: float
    position: int
    weight: float
    shift: float = 0.0


def arrange(cells: Sequence[Cell], nets: Sequence[Net]) -> tuple[float, float, list[Route]]:
    """Place the cells and route the nets: the width and height of the whole, and one route a net.

    A net must lead from a cell to later ones in the sequence.
    """
    if not cells:
        return 0.0, 0.0, []
    ranks = _ranks(cells, nets)
    rows: list[list[_Spot]] = [[] for _ in range(max(ranks) + 1)]
    spots = [_Spot(cell.width, index) for index, cell in enumerate(cells)]
    for spot, rank in zip(spots, ranks, strict=True):
        rows[rank].append(spot)
    trunks = [_trunk(net, cells, spots, ranks, rows) for net in nets]
    rows = _ordered(rows, cells)
    _straighten(rows, cells)
    for _ in range(2):
        for trunk in trunks:
            _upright(trunk[1:], rows, ranks[trunk[0].cell] + 1)
        for row in rows:
            _settle(row, up=True, down=False, lanes=False)
    for trunk in trunks:
        _upright(trunk[1:], rows, ranks[trunk[0].cell] + 1)
    left = min(spot.x for row in rows for spot in row)
    width = max(spot.x + spot.width for row in rows for spot in row) - left
    tops, bottoms = _heights(cells, rows)
    for row in rows:
        for spot in row:
            spot.x = round(spot.x - left, 1)
    for spot, cell, rank in zip(spots, cells, ranks, strict=True):
        waits = not cell.inputs and not cell.row and rank  # a source stands close to what reads it
        cell.x, cell.y = spot.x, bottoms[rank] - cell.height if waits else tops[rank]
    routes = [
        _route(net, trunk, cells, ranks, tops, bottoms) for net, trunk in zip(nets, trunks, strict=True)
    ]  # fmt: skip
    return width, bottoms[-1], routes


# Rows


def _ranks(cells: Sequence[Cell], nets: Sequence[Net]) -> list[int]:
    """The row of each cell: below all that it reads, and sources directly above what reads them."""
    ranks = [0] * len(cells)
    leaving: list[list[Net]] = [[] for _ in cells]
    for net in nets:
        leaving[net.source].append(net)
    pinned = any(cell.row == "first" for cell in cells)
    for index, cell in enumerate(cells):
        if pinned and cell.inputs:
            ranks[index] = max(ranks[index], 1)
        for net in leaving[index]:
            for target, _ in net.targets:
                assert target > index, "a net must lead to later cells"
                ranks[target] = max(ranks[target], ranks[index] + 1)
    for index, cell in enumerate(cells):
        readers = [ranks[target] for net in leaving[index] for target, _ in net.targets]
        if readers and not cell.inputs and not cell.row:
            ranks[index] = min(readers) - 1
    last = max(ranks)
    inside = [rank for rank, cell in zip(ranks, cells, strict=True) if cell.row != "last"]
    for index, cell in enumerate(cells):
        if cell.row == "last":
            ranks[index] = max([last, *(rank + 1 for rank in inside)])
    return ranks


def _trunk(net: Net, cells: Sequence[Cell], spots: list[_Spot], ranks: list[int], rows: list[list[_Spot]]) -> list[_Spot]:
    """Reserve one place in every row that the net passes, and connect the ends; readers branch off one row above theirs."""
    trunk = [spots[net.source]]
    start = ranks[net.source]
    leave = [cells[net.source].outputs[net.output]]
    for rank in range(start + 1, max((ranks[target] for target, _ in net.targets), default=start)):
        spot = _Spot(LANE)
        _connect(_Link(trunk[-1], leave[-1], spot, LANE / 2, 0, 8.0 if len(trunk) > 1 else 2.0))
        rows[rank].append(spot)
        trunk.append(spot)
        leave.append(LANE / 2)
    for target, position in net.targets:
        place = ranks[target] - 1 - start
        arrive = cells[target].inputs[position]
        _connect(_Link(trunk[place], leave[place], spots[target], arrive, position, BRANCH if place else 1.0))
    return trunk


def _connect(link: _Link) -> None:
    link.upper.below.append(link)
    link.lower.above.append(link)


# Order within rows


def _ordered(rows: list[list[_Spot]], cells: Sequence[Cell]) -> list[list[_Spot]]:
    """The rows in the order, among those tried, in which the fewest edges cross."""
    _number(rows)
    best, fewest = [list(row) for row in rows], _crossings(rows)
    idle = 0
    for sweep in range(SWEEPS):
        if not fewest or idle == 4:
            break
        for row in rows if sweep % 2 == 0 else reversed(rows):
            row.sort(key=_above if sweep % 2 == 0 else _below)
            _number([row])
        found = _crossings(rows)
        idle += 1
        if found < fewest:
            best, fewest, idle = [list(row) for row in rows], found, 0
    _number(best)
    for row in best:
        for spot in row:
            if spot.cell >= 0 and cells[spot.cell].free:
                _sort_inputs(spot, cells[spot.cell])
    return best


def _number(rows: Iterable[Sequence[_Spot]]) -> None:
    for row in rows:
        for order, spot in enumerate(row):
            spot.order = order


def _above(spot: _Spot) -> float:
    """Where along its row a spot should be: the mean of its neighbours' places, or its own."""
    if not spot.above:
        return float(spot.order)
    return sum(link.upper.order + link.leave / (link.upper.width + 1) for link in spot.above) / len(spot.above)


def _below(spot: _Spot) -> float:
    if not spot.below:
        return float(spot.order)
    return sum(link.lower.order + link.arrive / (link.lower.width + 1) for link in spot.below) / len(spot.below)


def _sort_inputs(spot: _Spot, cell: Cell) -> None:
    """Let edges that may arrive in any order arrive in the order in which they come."""
    places = sorted(cell.inputs)
    for link, place in zip(sorted(spot.above, key=lambda link: (link.upper.order, link.leave)), places, strict=True):
        link.arrive = cell.inputs[link.position] = place


def _crossings(rows: Sequence[Sequence[_Spot]]) -> int:
    total = 0
    for row in rows:
        seen: list[tuple[int, float]] = []
        for spot in row:
            below = sorted(spot.below, key=lambda link: link.leave)
            ends = [(link.lower.order, 0.0 if link.lower.cell < 0 else link.arrive) for link in below]
            for end in ends:
                total += len(seen) - bisect_right(seen, end)
            for end in ends:
                insort(seen, end)
    return total


# Places along rows


def _straighten(rows: list[list[_Spot]], cells: Sequence[Cell]) -> None:
    """Move everything to where its neighbours in other rows want it, as far as the order and the widths allow."""
    for row in rows:
        x = 0.0
        for spot in row:
            spot.x, x = x, x + spot.width + BETWEEN_BOXES
            for link in spot.below:
                if len(spot.below) == len(link.lower.above) == 1:
                    link.weight = max(link.weight, CHAIN)
                link.shift = _anchor(spot, link.leave, cells) - _anchor(link.lower, link.arrive, cells)
    rounds = max(4, min(ROUNDS, WORK // sum(map(len, rows))))
    for turn in range(rounds):
        for row in rows:
            _settle(row, up=True, down=False)
        for row in reversed(rows):
            _settle(row, up=False, down=True)
        if turn > rounds // 2:
            for row in rows:
                _settle(row, up=True, down=True)


def _upright(lanes: list[_Spot], rows: list[list[_Spot]], first: int) -> None:
    """Let a long edge run straight through as many rows as there is one place free in all of them."""
    together: list[_Spot] = []
    low, high = -math.inf, math.inf

    def place() -> None:
        ends = [link.lower.x + link.arrive for spot in together for link in spot.below if link.lower.cell >= 0]
        ends = ends or [spot.x for spot in together]
        middle = sum(ends) / len(ends)
        for spot in together:
            spot.x = min(max(middle, low), high)

    for rank, spot in enumerate(lanes, first):
        row = rows[rank]
        least = row[spot.order - 1].x + row[spot.order - 1].width + BETWEEN_LANES if spot.order else -math.inf
        most = row[spot.order + 1].x - spot.width - BETWEEN_LANES if spot.order + 1 < len(row) else math.inf
        if max(low, least) > min(high, most):
            place()
            together, low, high = [], -math.inf, math.inf
        together.append(spot)
        low, high = max(low, least), min(high, most)
    if together:
        place()


def _anchor(spot: _Spot, offset: float, cells: Sequence[Cell]) -> float:
    """The offset that should be in line with the other end: the middle of a small cell, so that chains stand upright."""
    if spot.cell < 0 or cells[spot.cell].row or abs(offset - spot.width / 2) > UPRIGHT:
        return offset
    return spot.width / 2


def _settle(row: list[_Spot], *, up: bool, down: bool, lanes: bool = True) -> None:
    """The nearest places to the wanted ones that keep order and distance: a monotone least-squares fit.

    ``lanes`` is whether edges that pass the row may move, too.
    """
    blocks: list[tuple[float, float, int]] = []  # place of the first, weight, how many
    starts: list[float] = []
    reach = 0.0
    for spot in row:
        total = weight = 0.0
        if spot.cell < 0 and not lanes:
            total, weight = spot.x * FIXED, FIXED
        elif up:
            for link in spot.above:
                total += (link.upper.x + link.shift) * link.weight
                weight += link.weight
        if down and weight < FIXED:
            for link in spot.below:
                total += (link.lower.x - link.shift) * link.weight
                weight += link.weight
        starts.append(reach)
        block = ((total / weight if weight else spot.x) - reach, weight or 0.01, 1)
        reach += spot.width + BETWEEN_BOXES
        while blocks and blocks[-1][0] >= block[0]:
            place, more, count = blocks.pop()
            block = ((place * more + block[0] * block[1]) / (more + block[1]), more + block[1], count + block[2])
        blocks.append(block)
    spots = zip(row, starts, strict=True)
    for place, _, count in blocks:
        for spot, start in itertools.islice(spots, count):
            spot.x = place + start


def _heights(cells: Sequence[Cell], rows: list[list[_Spot]]) -> tuple[list[float], list[float]]:
    """The top and bottom of every row. The gap before a row grows with how far its edges move sideways."""
    tops: list[float] = []
    bottoms: list[float] = []
    y = 0.0
    for row in rows:
        if tops:
            sideways = max(
                (abs(link.upper.x + link.leave - spot.x - link.arrive) for spot in row for link in spot.above), default=0.0
            )
            y += round(BETWEEN_ROWS + min(40.0, sideways / 16))
        tops.append(y)
        y += max((cells[spot.cell].height for spot in row if spot.cell >= 0), default=0.0)
        bottoms.append(y)
    return tops, bottoms


def _route(
    net: Net, trunk: list[_Spot], cells: Sequence[Cell], ranks: list[int], tops: list[float], bottoms: list[float]
) -> Route:
    start = ranks[net.source]
    source = cells[net.source]
    runs = [Run(source.x + source.outputs[net.output], source.y + source.height, bottoms[start])]
    runs += [Run(spot.x + LANE / 2, tops[rank], bottoms[rank]) for rank, spot in enumerate(trunk[1:], start + 1)]
    links = list(itertools.pairwise(runs))
    ends: list[tuple[float, float]] = []
    for target, position in net.targets:
        cell = cells[target]
        x = cell.x + cell.inputs[position]
        links.append((runs[ranks[target] - 1 - start], Run(x, tops[ranks[target]], cell.y)))
        ends.append((x, cell.y))
    return Route(tuple(links), tuple(ends))


__all__ = ["Cell", "Net", "Route", "Run", "arrange"]
