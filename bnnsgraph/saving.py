"""Graphs in files: :func:`save` and :func:`load`.

A file is a safetensors file. The constants of the graph are its arrays, and its metadata hold ``format`` ("bnnsgraph"),
``version`` and ``graph``: the operations in recorded order as JSON, in the form that :mod:`bnnsgraph.describing` makes and
:mod:`bnnsgraph.records` explains. Nothing in a file is code, and what a file says of a graph is checked as if a user had
written the graph: the rule of every operation runs again.
"""

from __future__ import annotations

import os
from typing import BinaryIO

from bnnsgraph.context import Context
from bnnsgraph.errors import FileFormatError
from bnnsgraph.files import write_atomically
from bnnsgraph.graph import Graph

FORMAT = "bnnsgraph"
VERSION = 1
"""The version of the format that is written. Older ones are read, newer ones are refused."""


def save(graph: Graph | Context, path: str | os.PathLike[str]) -> None:
    """Write a graph with its constants into one file, which :func:`load` reads on any machine.

    The file is a safetensors file: other programs can read the constants. It keeps the names of files (without their folders),
    functions and the source lines at which the operations were recorded, so that the errors of a loaded graph name them.
    Compiled programs, and the options that name a place on this machine (device, mesh, shardings, compilation cache), are not
    saved. The same graph gives the same bytes. An existing file is replaced only when the new one is complete.

    >>> import tempfile
    >>> context = bg.make_context(lambda b: b.argument("x", bg.Float32, ["n"]) * np.float32([[2], [3]]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     bg.save(context, f"{folder}/table.bnnsgraph")
    ...     graph = bg.load(f"{folder}/table.bnnsgraph")
    >>> graph == context.graph
    True
    >>> bg.Context(graph)([1, 2])
    Array([[2., 4.],
           [3., 6.]], dtype=float32)

    Raises:
        FileFormatError: the graph holds something that a file cannot.
        OSError: the file cannot be written.
    """
    try:
        parts = file_parts(graph.graph if isinstance(graph, Context) else graph)
    except FileFormatError as error:
        raise FileFormatError(f"the graph cannot be saved: {error.reason}", *error.details) from None
    except RecursionError:
        raise FileFormatError("the graph cannot be saved: its flexible sizes are nested too deeply") from None
    write_atomically(path, *parts)


def file_parts(graph: Graph) -> list[bytes | memoryview]:
    """The file of a graph, in parts."""
    from bnnsgraph.describing import pickled
    from bnnsgraph.restoring import restore
    from bnnsgraph.safetensors_file import layout

    text, arrays = pickled(graph)
    restore(text, arrays)  # so that what is written can be read
    return layout(arrays, {"format": FORMAT, "version": str(VERSION), "graph": text})


def load(path: str | os.PathLike[str]) -> Graph:
    """The graph that :func:`save` wrote; ``bg.Context(bg.load(path))`` runs it.

    Files of strangers are safe to load: no code is in them, every place and number is checked against the file, operations and
    parameters must be among those that this version knows, and the rule of each operation runs again. What a graph computes,
    and how long that takes, is up to who made it.

    Raises:
        FileFormatError: the file is no such file, is damaged or cut off, or is from a newer version.
        OSError: the file cannot be read.
    """
    try:
        with open(path, "rb") as file:
            return read_graph(file)
    except FileFormatError as error:
        raise FileFormatError(f"{os.fsdecode(path)}: {error.reason}", *error.details) from None


def read_graph(file: BinaryIO) -> Graph:
    """The graph in an open file."""
    from bnnsgraph.restoring import restore
    from bnnsgraph.safetensors_file import read

    arrays, metadata = read(file)
    if metadata.get("format") != FORMAT:
        raise FileFormatError(f"the format must be {FORMAT!r}, got {metadata.get('format')!r}")
    version = metadata.get("version", "")
    if not (version.isdecimal() and version.isascii() and len(version) < 9 and 1 <= int(version) <= VERSION):
        raise FileFormatError(f"the version must be from 1 to {VERSION}, got {version!r}; is it a newer file?")
    return restore(metadata.get("graph", ""), arrays)


__all__ = ["load", "save"]
