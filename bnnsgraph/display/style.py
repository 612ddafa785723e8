"""Colours, fonts and the width of text. One style serves drawings and pages, in light and in dark surroundings."""

from __future__ import annotations

import html
import unicodedata

ADVANCE = 0.61
"""The width of a character over the size of the font; that of every common monospaced font is at most so."""

_LIGHT = {
    "paper": "#ffffff", "ink": "#1f2328", "dim": "#59636e", "line": "#7d8590", "rule": "#d1d9e0",
    "operation": "#f6f8fa", "operation-line": "#8c959f", "argument": "#ddf4ff", "argument-line": "#0969da",
    "constant": "#fff8c5", "constant-line": "#9a6700", "output": "#dafbe1", "output-line": "#1a7f37",
    "group": "#f5efff", "group-line": "#8250df", "inside": "#fbf9ff",
}  # fmt: skip
_DARK = {
    "paper": "#111418", "ink": "#e6edf3", "dim": "#9da7b3", "line": "#8b949e", "rule": "#30363d",
    "operation": "#1f252c", "operation-line": "#6e7681", "argument": "#0c2d4d", "argument-line": "#58a6ff",
    "constant": "#33280a", "constant-line": "#d29922", "output": "#0f3320", "output-line": "#3fb950",
    "group": "#2a2042", "group-line": "#a371f7", "inside": "#171521",
}  # fmt: skip

_LIGHT_PAGES = (
    '[data-jp-theme-light="true"]', "body.vscode-light", 'html[data-theme="light"]', '[data-md-color-scheme="default"]'
)  # fmt: skip
_DARK_PAGES = (
    '[data-jp-theme-light="false"]', "body.vscode-dark", "body.vscode-high-contrast", 'html[theme="dark"]',
    'html[data-theme="dark"]', '[data-md-color-scheme="slate"]',
)  # fmt: skip


def _colours(selectors: tuple[str, ...], colours: dict[str, str]) -> str:
    rules = "".join(f"--{name}:{colour};" for name, colour in colours.items())
    return f"{','.join(selectors)}{{{rules}}}"


def _within(pages: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{page} .bnnsgraph" for page in pages)


_KINDS = "".join(
    f".bnnsgraph .{kind}>.box{{fill:var(--{kind});stroke:var(--{kind}-line)}}"
    for kind in ("operation", "argument", "constant", "output", "group")
)

STYLE = f"""
{_colours((".bnnsgraph",), _LIGHT)}
@media (prefers-color-scheme:dark){{{_colours((".bnnsgraph",), _DARK)}}}
{_colours(_within(_LIGHT_PAGES), _LIGHT)}
{_colours(_within(_DARK_PAGES), _DARK)}
.bnnsgraph text{{font-family:Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:10.5px;fill:var(--ink);text-anchor:middle}}
.bnnsgraph .title{{font-size:12px;font-weight:600}}
.bnnsgraph .dim,.bnnsgraph .port{{fill:var(--dim)}}
.bnnsgraph .paper{{fill:var(--paper)}}
.bnnsgraph .edge{{fill:none;stroke:var(--line);stroke-width:1.2}}
.bnnsgraph .box{{stroke-width:1.2}}
{_KINDS}
.bnnsgraph .constant>.box{{stroke-dasharray:4 2}}
.bnnsgraph .output>.box{{stroke-width:2.4}}
.bnnsgraph .enter>.box,.bnnsgraph .leave>.box{{fill:none;stroke:var(--line);stroke-dasharray:2 2}}
.bnnsgraph .chip{{fill:var(--constant);stroke:var(--constant-line);stroke-width:.8;stroke-dasharray:4 2}}
.bnnsgraph .open>.box{{fill:var(--inside);stroke:var(--group-line);stroke-dasharray:none}}
.bnnsgraph .open>.name{{text-anchor:start;fill:var(--group-line);stroke:var(--inside);stroke-width:4px;paint-order:stroke}}
""".strip()


def columns(text: str) -> int:
    """How many characters wide a text is; East Asian ones count twice.

    >>> columns("naïve"), columns("入力")
    (5, 4)
    """
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def width(text: str, size: float) -> float:
    """The most room that a text takes."""
    return columns(text) * size * ADVANCE


def shortened(text: str, limit: int) -> str:
    """The text, or its beginning and end where it is longer than ``limit`` columns.

    >>> shortened("encoder.layer.0.attention", 15)
    'encod…attention'
    """
    if columns(text) <= limit:
        return text
    head, tail = (limit - 1) * 2 // 5, (limit - 1) - (limit - 1) * 2 // 5
    while columns(text[:head]) + columns(text[-tail:]) >= limit:
        head, tail = max(head - 1, 1), max(tail - 1, 1)
    return f"{text[:head]}…{text[-tail:]}"


def escaped(text: str) -> str:
    r"""The text for XML and HTML: markup is quoted, and what XML cannot hold is replaced.

    >>> escaped('<&">\x00')
    '&lt;&amp;&quot;&gt;�'
    """
    clean = "".join(letter if letter.isprintable() or letter == "\n" else "�" for letter in text)
    return html.escape(clean)


__all__ = ["STYLE", "columns", "escaped", "shortened", "width"]
