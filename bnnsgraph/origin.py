"""Where in the user's program something was recorded."""

from __future__ import annotations

import linecache
import os
import sys
from types import FrameType, TracebackType
from typing import Any, NamedTuple

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_JAX = os.sep + os.path.join("jax", "_src", "")  # while a function is transformed, the user's frame is behind JAX's
_PROGRAMS = frozenset({_PACKAGE + "demo.py"})  # written as a user would: their lines are a user's lines
_internal: dict[str, bool] = {}  # file name -> whether it is this package's; decided once a file


class Origin(NamedTuple):
    """A line of the user's program."""

    file: str
    line: int
    function: str
    kept: str | None = None
    """The text of the line in a graph that was loaded: its source need not be at hand."""

    @property
    def text(self) -> str:
        """The source line without its indentation; empty when the source is not at hand."""
        return self.kept if self.kept is not None else linecache.getline(self.file, self.line).strip()

    @property
    def place(self) -> str:
        """File and line."""
        notebook = "ipykernel" in self.file or "ipython-input" in self.file
        return f"{'notebook cell' if notebook else os.path.basename(self.file)}:{self.line}"

    def __str__(self) -> str:
        return f"{self.place} ({self.function})"


_known: dict[tuple[str, int, str], Origin] = {}  # one object a line: loops record many operations on one


def here() -> Origin:
    """The innermost frame outside this package and JAX.

    >>> here().function
    '<module>'
    """
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while True:
        file = frame.f_code.co_filename
        internal = _internal.get(file)
        if internal is None:
            internal = _is_internal(frame)
        if not internal or frame.f_back is None:
            place = file, frame.f_lineno, frame.f_code.co_name
            return _known.get(place) or _known.setdefault(place, Origin(*place))
        frame = frame.f_back


def _is_internal(frame: FrameType) -> bool:
    """Whether a frame is this package's or JAX's."""
    file = frame.f_code.co_filename
    if file == "<string>":  # a program given to python -c, or a method that dataclasses wrote for this package
        return frame.f_globals.get("__name__", "").startswith("bnnsgraph.")
    if file not in _internal:
        _internal[file] = (file.startswith(_PACKAGE) and file not in _PROGRAMS) or _JAX in file
    return _internal[file]


def shell() -> Any:
    """IPython's, where the program runs in one; it has a ``kernel`` in a notebook."""
    return sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None


def outside(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames of this package and of JAX."""
    entries: list[TracebackType] = []
    while traceback is not None:
        entries.append(traceback)
        traceback = traceback.tb_next
    kept: TracebackType | None = None
    for entry in reversed(entries):
        if not _is_internal(entry.tb_frame):
            kept = TracebackType(kept, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return kept
