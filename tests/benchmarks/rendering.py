"""Kept figures as a page: ``docs/performance.md``, and its curves in ``docs/performance/``."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.benchmarks.reasons import REASONS
from tests.benchmarks.timing import BARE, INTO, LIMIT, OURS, Row, best_peer, cases

TITLES = {
    "gathering": "The gather family",
    "programs": "Programs",
    "starting": "Import",
    "recording": "Building",
    "calls": "Calls",
    "growth": "Growth",
    "rewrites": "Only what is needed",
}
TEXT = """# Performance

Taken on {date} with {command}, on {machine}.

Every table compares programs that were run side by side, in one process, on the same arrays, after their answers were found
equal and after a warm-up. They take turns in rounds, each turn with a first call that does not count; a figure is the median of
the rounds, in parentheses the quartiles.
Ratios are taken round by round: our time divided by theirs, so that less than 1 is faster. NumPy's gathers, ONNX Runtime and
OpenVINO write into the same memory at each call; JAX, PyTorch and we return new arrays, and where a result has 32 MiB,
`run_into` writes into the memory of the one before. `bnnsgraph` checks run-time indices, "unchecked" trusts them, and so do
`jax.jit`, written by hand, and OpenVINO. OpenVINO runs in float32. `{limit}` copies the output once, which is the limit and not
a peer. `torch.compile`, which runs a C++ compiler for every program, and Core AI's runtime, where it has the operation, take
part with `--slow-peers`.

Three costs stand beside the work itself. A call of JAX takes some ten microseconds, as much as NumPy takes for a gather of
a few thousand numbers. From a thousand operations of arithmetic on, JAX hands a program to another thread, which has to be
woken: counting negative indices from the end is such arithmetic, and a gather whose indices we looked at before has none. A
result of more than 32 MiB always gets new memory from the system, page by page, and a smaller one at times, from a hundred KiB
on; that takes longer than filling it, and those who write into the same memory do not have it, nor has `run_into`.
`bnnsgraph.configure_cpu()` takes the last two away.
"""
SETTINGS = """Where a title says configured, `bnnsgraph.configure_cpu()` was called first. It changes the whole process,
so the peers run under it too:
"""
NUMBERED = re.compile(r"(.+): ([\d,]+)")
COLOURS = ("#0969da", "#8c959f", "#bc4c00", "#2da44e", "#8250df", "#bf3989", "#6e7781")


def page(*documents: Mapping[str, Any]) -> dict[str, str]:
    """The files under ``docs/``, by name: of figures taken on one machine with one set of versions."""
    suites: dict[tuple[str, bool], list[Row]] = {}
    for document in documents:
        for kept in document["rows"]:
            suites.setdefault((kept["suite"], bool(document["settings"])), []).append(Row.from_dict(kept))
    machine = documents[0]["machine"]
    libraries = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    described = (
        f"{machine['processor']} ({machine['cores']} cores), {machine['system']}, Python {machine['python']}; {libraries}"
    )
    commands = " and ".join(f"`{document['command']}`" for document in documents)
    lines = [TEXT.format(date=documents[0]["date"], command=commands, machine=described, limit=LIMIT)]
    for settings in [document["settings"] for document in documents if document["settings"]][:1]:
        lines.append(f"{SETTINGS}\n" + "".join(f"- {setting}\n" for setting in settings))
    files: dict[str, str] = {}
    for (suite, configured), rows in suites.items():
        lines.append(f"## {TITLES[suite]}{', configured' if configured else ''}\n")
        lines += [f"{line}\n" for line in summary(rows)] if suite in ("gathering", "programs") else []
        lines += [*table(rows), ""]
        for curve, points in curves(rows):
            name = f"performance/{suite}{'_configured' if configured else ''}_{re.sub(r'[^a-z0-9]+', '_', curve.lower())}.svg"
            files[name] = plot(curve, points)
            lines.append(f"![{curve}]({name})\n")
            if not configured and curve in REASONS:
                lines.append(f"{REASONS[curve]}\n")
    lines += [f"- {note}" for note in dict.fromkeys(note for document in documents for note in document["notes"])]
    files["performance.md"] = "\n".join(lines).rstrip() + "\n"
    return files


def summary(rows: Sequence[Row]) -> Iterator[str]:
    """How many rows are as fast as the best peer and as ``jax.jit``."""
    to_best: dict[str, float] = {}
    to_bare: dict[str, float] = {}
    again: dict[str, float] = {}
    for case, group in cases(rows):
        peer, found = best_peer(group), {row.who: row.ratio[1] for row in group if row.ratio is not None}
        if peer is not None and peer.who in found:
            to_best[case] = found[peer.who]
            if INTO in found:
                again[case] = next(row.seconds for row in group if row.who == INTO) / peer.seconds
        if BARE in found:
            to_bare[case] = found[BARE]
    whole = "the best peer of each row"
    for name, ratios in ((whole, to_best), (f"`{BARE}`", to_bare), (f"{whole}, with `run_into`, by the medians", again)):
        if ratios:
            level = sum(ratio <= 1.05 for ratio in ratios.values())
            worst = max(ratios, key=lambda case: ratios[case])
            yield (
                f"Beside {name}: as fast or faster, or within 5 %, in {level} of {len(ratios)} rows; "
                f"geometric mean {geometric_mean(list(ratios.values())):.2f}; slowest {ratios[worst]:.2f} ({worst})."
            )


def geometric_mean(numbers: Sequence[float]) -> float:
    """Of ratios."""
    return math.exp(sum(map(math.log, numbers)) / len(numbers))


def table(rows: Sequence[Row]) -> list[str]:
    """A Markdown table: a line a case, a column for each who, and our ratios."""
    who = list(dict.fromkeys(row.who for row in rows))
    who = [name for name in who if name != LIMIT] + [LIMIT] * (LIMIT in who)
    ratios = [name for name in (BARE, "best peer", LIMIT) if name == "best peer" or name in who]
    memory = any(row.bytes is not None for row in rows)
    head = ["case", *who, *(f"ours / {name}" for name in ratios), *["peak memory"] * memory]
    lines = [f"| {' | '.join(head)} |", f"|---|{'---:|' * (len(head) - 1)}"]
    for case, group in cases(rows):
        found = {row.who: row for row in group}
        shown = [time(found[name]) if name in found else "" for name in who]
        peer = best_peer(group)
        for name in ratios:
            row = peer if name == "best peer" else found.get(name)
            shown.append("" if row is None or row.ratio is None else f"{row.ratio[1]:.2f}")
        if memory:
            shown.append(", ".join(f"{row.bytes / 2**20:.1f}" for row in group if row.bytes is not None))
        lines.append(f"| {case} | {' | '.join(shown)} |")
    if memory:
        lines += ["", f"Peak memory in MiB: {', '.join(dict.fromkeys(row.who for row in rows if row.bytes is not None))}."]
    return lines


def time(row: Row) -> str:
    """A median and its quartiles, in the unit of the median."""
    scale, unit = next(pair for pair in ((1, "s"), (1e3, "ms"), (1e6, "µs")) if row.seconds * pair[0] >= 1 or pair[1] == "µs")
    low, middle, high = (figures(seconds * scale) for seconds in (row.low, row.seconds, row.high))
    return f"{middle} {unit} ({low}–{high})"


def figures(number: float) -> str:
    """Three figures of a number."""
    return f"{number:.{max(0, 2 - math.floor(math.log10(number)))}f}" if number > 0 else "0"


# Curves


def curves(rows: Sequence[Row]) -> Iterator[tuple[str, dict[str, list[tuple[float, float]]]]]:
    """Cases that end in a number, as points: who, and (number, seconds)."""
    found: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for row in rows:
        match = NUMBERED.fullmatch(row.case)
        if match:
            points = found.setdefault(match[1], {}).setdefault(row.who, [])
            points.append((float(match[2].replace(",", "")), row.seconds))
    for curve, lines in found.items():
        if max(len(points) for points in lines.values()) > 1:
            yield curve, lines


def plot(title: str, lines: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """Seconds over a number, both logarithmic, as SVG."""
    width, height, left, top = 560, 300, 70, 30
    points = [point for line in lines.values() for point in line]
    (x0, x1), (y0, y1) = (bounds([point[axis] for point in points]) for axis in (0, 1))

    def place(x: float, y: float) -> tuple[float, float]:
        across = (math.log10(x) - x0) / (x1 - x0)
        up = (math.log10(y) - y0) / (y1 - y0)
        return left + across * (width - left - 20), top + (1 - up) * (height - top - 40)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height + 20 * len(lines)}" font-family="sans-serif" '
        f'font-size="12">',
        f'<rect width="{width}" height="{height + 20 * len(lines)}" fill="#fff"/>',
        f'<text x="{left}" y="18" fill="#1f2328">{title}</text>',
    ]
    for power in range(math.ceil(y0), math.floor(y1) + 1):
        _, y = place(10**x0, 10.0**power)
        parts.append(f'<path d="M{left} {y:.1f}H{width - 20}" stroke="#d1d9e0"/>')
        parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end" fill="#57606a">{power_of_ten(power)}</text>')
    for x in sorted({x for x, _ in points}):
        across, _ = place(x, 10**y0)
        parts.append(f'<text x="{across:.1f}" y="{height - 22}" text-anchor="middle" fill="#57606a">{x:,.0f}</text>')
    for number, (who, line) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in sorted(line)))
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{3 if who == OURS else 1.5}"/>')
        parts.append(f'<rect x="{left}" y="{height + 20 * number - 4}" width="16" height="4" fill="{colour}"/>')
        parts.append(f'<text x="{left + 24}" y="{height + 20 * number + 3}" fill="#1f2328">{who}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def bounds(numbers: Sequence[float]) -> tuple[float, float]:
    """Of an axis, as powers of ten."""
    low, high = math.log10(min(numbers)), math.log10(max(numbers))
    return (low, high) if high - low > 0.5 else (low - 0.5, high + 0.5)


def power_of_ten(power: int) -> str:
    """Seconds as text."""
    unit, name = next(pair for pair in ((0, "s"), (-3, "ms"), (-6, "µs"), (-99, "ns")) if power >= pair[0])
    return f"{10 ** (power - unit)} {name}" if name != "ns" else f"{10 ** (power + 9):g} ns"
