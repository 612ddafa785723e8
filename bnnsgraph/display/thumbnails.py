"""Values at a glance: small images, curves and histograms, as SVG."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from bnnsgraph.display.style import escaped

Array: TypeAlias = np.ndarray[Any, Any]

WIDE, HIGH = 120, 40
BARS = 24
MOST = 100_000
"""Elements that a histogram counts; of more, as many evenly spaced ones."""
LEAST_IMAGE = 4
"""Axes at least this long are drawn as an image."""
_RAMP = np.array([(68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37)], np.float64)
_NOT_FINITE = (255, 0, 0)


def thumbnail(values: Any) -> str:
    """An array in the size of a line or two: the most telling of four forms.

    One element is written out. A vector is a curve. Two axes are an image, dark for the least value and bright for the
    greatest; a third axis of three is red, green and blue where all values are from 0 to 1, or bytes. Values that are not
    finite are red in both. Anything else is a histogram. Axes of size 1 do not count.

    >>> thumbnail(np.float32(0.5))
    '<span>0.5</span>'
    >>> thumbnail(np.arange(10)).startswith('<svg xmlns="http://www.w3.org/2000/svg" class="thumbnail"')
    True
    """
    array: Array = np.asarray(values)
    wide: Array = array.astype(np.float64).squeeze() if array.size > 1 else array
    if array.size == 0:
        return '<span class="dim">empty</span>'
    if array.size == 1:
        return f"<span>{escaped(_text(array.reshape(()).item()))}</span>"
    if wide.ndim == 1:
        return _svg(_curve(wide), wide)
    if wide.ndim == 2 and min(wide.shape) >= LEAST_IMAGE:
        return _svg(_image(_coloured(_shrunk(wide))), wide)
    if wide.ndim == 3 and wide.shape[2] == 3 and min(wide.shape[:2]) >= LEAST_IMAGE and _is_colour(array, wide):
        top = 255.0 if array.dtype == np.uint8 else 1.0
        return _svg(_image((_shrunk(wide) / top * 255).round().astype(np.uint8)), wide)
    return _svg(_histogram(wide.reshape(-1)), wide)


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _is_colour(array: Array, wide: Array) -> bool:
    return array.dtype == np.uint8 or (array.dtype.kind in "fV" and bool(((wide >= 0) & (wide <= 1)).all()))


def _svg(content: str, values: Array) -> str:
    found = values[np.isfinite(values)]
    tip = f"{_text(float(found.min()))} to {_text(float(found.max()))}" if found.size else "nothing finite"
    if found.size < values.size:
        tip += f", {values.size - found.size:,} not finite"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="thumbnail" role="img" aria-label="{escaped(tip)}" '
        f'width="{WIDE}" height="{HIGH}" viewBox="0 0 {WIDE} {HIGH}"><title>{escaped(tip)}</title>{content}</svg>'
    )


def _scaled(values: Array) -> Array:
    """From 0 for the least finite value to 1 for the greatest; NaN where a value is not finite."""
    finite = np.where(np.isfinite(values), values, np.nan)
    if np.isnan(finite).all():
        return finite
    low, high = np.nanmin(finite) / 2, np.nanmax(finite) / 2  # halves, whose difference is finite
    return (finite / 2 - low) / (high - low) if high > low else finite * 0 + 0.5


def _curve(values: Array) -> str:
    """A line through the least and the greatest value of every stretch; where values are not finite, a gap and a red mark."""
    heights = _scaled(values)
    stretches = np.array_split(heights, min(WIDE - 2, len(heights)))
    pieces: list[str] = []
    marks: list[str] = []
    drawing = False
    for index, stretch in enumerate(stretches):
        x = 1 + (WIDE - 2) * (index + 0.5) / len(stretches)
        known = stretch[~np.isnan(stretch)]
        ends: list[float] = [float(known.min()), float(known.max())] if known.size else []
        for height in dict.fromkeys(ends):
            pieces.append(f"{'L' if drawing else 'M'}{x:.1f} {HIGH - 2 - (HIGH - 4) * height:.1f}")
            drawing = True
        if known.size < stretch.size:
            drawing = False
            marks.append(f"M{x:.1f} {HIGH}v-4")
    missing = f'<path stroke="#f00" d="{"".join(marks)}"/>' if marks else ""
    return f'<path class="edge" d="{"".join(pieces)}"/>{missing}'


def _histogram(values: Array) -> str:
    values = values[:: -(-values.size // MOST)]
    values = _scaled(values)
    counts, _ = np.histogram(values[~np.isnan(values)], BARS, (0, 1))
    step = WIDE / BARS
    bars = [
        f"M{index * step:.1f} {HIGH}V{HIGH - HIGH * count / counts.max():.1f}h{step - 1:.1f}V{HIGH}Z"
        for index, count in enumerate(counts.tolist())
        if count
    ]
    return f'<path class="bars" d="{"".join(bars)}"/>'


def _shrunk(values: Array) -> Array:
    """The means of blocks, at most as many as there are points to draw them on; what is no wide strip keeps its proportions."""
    rows, columns = values.shape[:2]
    factor = max(rows / HIGH, columns / WIDE) if HIGH / WIDE <= columns / rows <= WIDE / HIGH else 0
    for axis, limit in ((0, HIGH), (1, WIDE)):
        size = values.shape[axis]
        most = round(size / factor) if factor > 1 else limit
        if size > most:
            starts = np.arange(most) * size // most
            lengths = np.diff([*starts, size]).reshape([-1 if each == axis else 1 for each in range(values.ndim)])
            with np.errstate(all="ignore"):
                values = np.add.reduceat(values, starts, axis) / lengths
    return values


def _coloured(values: Array) -> Array:
    heights = _scaled(values)
    known = ~np.isnan(heights)
    places = np.where(known, heights, 0) * (len(_RAMP) - 1)
    colours = np.stack([np.interp(places, np.arange(len(_RAMP)), _RAMP[:, channel]) for channel in range(3)], axis=-1)
    colours[~known] = _NOT_FINITE
    return colours.round().astype(np.uint8)


def _image(pixels: Array) -> str:
    """Pixels as large as fit, each a sharp square."""
    rows, columns = pixels.shape[:2]
    scale = min(WIDE / columns, HIGH / rows)
    data = base64.b64encode(png(pixels)).decode()
    return (
        f'<image width="{columns * scale:.1f}" height="{rows * scale:.1f}" style="image-rendering:pixelated" '
        f'href="data:image/png;base64,{data}"/>'
    )


def png(pixels: Array) -> bytes:
    """Red, green and blue bytes, ``[rows, columns, 3]``, as a PNG file."""
    rows, columns = pixels.shape[:2]
    lines = np.concatenate([np.zeros((rows, 1), np.uint8), pixels.reshape(rows, columns * 3)], axis=1)
    chunks: Sequence[tuple[bytes, bytes]] = (
        (b"IHDR", struct.pack(">2I5B", columns, rows, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(lines.tobytes(), 9)),
        (b"IEND", b""),
    )
    body = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + body


__all__ = ["png", "thumbnail"]
