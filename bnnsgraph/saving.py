"""Graphs in files: :func:`save` and :func:`load`.

A file is a safetensors file. The constants of the graph are its arrays, and its metadata hold ``format`` ("bnnsgraph"),
``version`` and ``graph``: the operations in recorded order as JSON, in the form that :func:`describe` makes and
:mod:`bnnsgraph.records` explains. Nothing in a file is code, and what a file says of a graph is checked as if a user had
written the graph: the rule of every operation runs again.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any, BinaryIO

from bnnsgraph.context import Context
from bnnsgraph.errors import FileFormatError
from bnnsgraph.files import write_atomically
from bnnsgraph.graph import Argument, Constant, Graph, Value
from bnnsgraph.options import CompileOptions
from bnnsgraph.origin import Origin
from bnnsgraph.records import OPERATIONS, encode, encode_fields
from bnnsgraph.restoring import MOST_TEXT, NOT_SAVED, restore
from bnnsgraph.safetensors_file import Array, layout, raw, read

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
    arrays, metadata = read(file)
    if metadata.get("format") != FORMAT:
        raise FileFormatError(f"the format must be {FORMAT!r}, got {metadata.get('format')!r}")
    version = metadata.get("version", "")
    if not (version.isdecimal() and version.isascii() and len(version) < 9 and 1 <= int(version) <= VERSION):
        raise FileFormatError(f"the version must be from 1 to {VERSION}, got {version!r}; is it a newer file?")
    return restore(metadata.get("graph", ""), arrays)


# A graph as JSON and arrays


def describe(graph: Graph) -> tuple[dict[str, Any], dict[str, Array]]:
    """The graph as JSON, and its constants by the names that the JSON has for them."""
    numbers = {node: number for number, node in enumerate(graph.nodes)}
    arrays: dict[str, Array] = {}
    origins: dict[tuple[str, int, str, str], int] = {}

    def place(value: Value) -> list[int]:
        return [numbers[value.node], value.index]

    nodes: list[dict[str, Any]] = []
    for number, node in enumerate(graph.nodes):
        op = node.op
        name = type(op).__name__
        if OPERATIONS.get(name) is not type(op):
            raise FileFormatError(f"{op}: the operation must be one that files can hold")
        if isinstance(op, Constant):
            label = _free(op.name or f"constant_{number}", arrays)
            arrays[label] = op.array
            own = {"array": label, "name": op.name}
        elif isinstance(op, Argument):
            own = {"name": op.name, "intent": encode(op.intent)}
        else:
            own = encode_fields(op)
        described: dict[str, Any] = {"op": name, "outputs": [[spec.dtype.name, encode(spec.shape)] for spec in node.outputs]}
        if own:
            described["fields"] = own
        if node.inputs:
            described["inputs"] = [place(value) for value in node.inputs]
        if node.group:
            described["group"] = node.group
        described["origin"] = origins.setdefault(_portable(node.origin), len(origins))
        nodes.append(described)
    description: dict[str, Any] = {
        "nodes": nodes,
        "arguments": [numbers[value.node] for value in graph.arguments],
        "results": [[name, place(value)] for name, value in zip(graph.result_names, graph.results, strict=True)],
        "updates": [[numbers[argument.node], place(value)] for argument, value in graph.updates.items()],
        "options": _describe_options(graph.options),
        "origins": [list(origin) for origin in origins],
    }
    return description, arrays


def digest(graph: Graph) -> bytes:
    """A number of 256 bits that graphs share when all but the lines that recorded them is the same."""
    import hashlib
    import json

    description, arrays = describe(graph)
    del description["origins"]
    for node in description["nodes"]:
        del node["origin"]
    total = hashlib.sha256(json.dumps(description).encode())
    for array in arrays.values():
        total.update(raw(array))
    return total.digest()


def _free(name: str, taken: Mapping[str, object]) -> str:
    while name in taken or name == "__metadata__":
        name += "_"
    return name


def _portable(origin: Origin) -> tuple[str, int, str, str]:
    """File, line, function and text without the folder, without what changes from session to session, and printable."""
    file = "ipykernel" if origin.place.startswith("notebook cell") else os.path.basename(origin.file)
    text = origin.text
    text = text if len(text) <= MOST_TEXT else text[: MOST_TEXT - 3] + "..."
    return _printable(file), origin.line, _printable(origin.function), _printable(text)


def _printable(text: str) -> str:
    return text if text.isprintable() else "".join(letter if letter.isprintable() else " " for letter in text)


def places(options: CompileOptions) -> tuple[object, ...]:
    """The options that are not saved."""
    return tuple(getattr(options, field.name) for field in dataclasses.fields(options) if field.name in NOT_SAVED)


def _describe_options(options: CompileOptions) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        if field.name not in NOT_SAVED and value != field.default:
            found[field.name] = encode(value)
    return found


# Pickles


def pickled(graph: Graph) -> tuple[str, dict[str, Array]]:
    """What a pickle of the graph holds: the same as a file."""
    import json

    description, arrays = describe(graph)
    return json.dumps(description, separators=(",", ":")), arrays


def unpickled(text: str, arrays: Mapping[str, Array]) -> Graph:
    """The graph of a pickle; see ``Graph.__reduce__``."""
    for array in arrays.values():
        array.flags.writeable = False
    return restore(text, arrays)


__all__ = ["load", "save"]
