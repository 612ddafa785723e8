"""What files and pickles hold of a graph: JSON, and the constants as arrays. :mod:`bnnsgraph.restoring` is the way back."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any

from bnnsgraph.errors import FileFormatError
from bnnsgraph.graph import Argument, Constant, Graph, Value
from bnnsgraph.options import CompileOptions
from bnnsgraph.origin import Origin
from bnnsgraph.records import OPERATIONS, encode, encode_fields
from bnnsgraph.restoring import MOST_TEXT, NOT_SAVED, restore
from bnnsgraph.safetensors_file import Array, raw


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
    description, arrays = describe(graph)
    return json.dumps(description, separators=(",", ":")), arrays


def unpickled(text: str, arrays: Mapping[str, Array]) -> Graph:
    """The graph of a pickle; see ``Graph.__reduce__``."""
    for array in arrays.values():
        array.flags.writeable = False
    return restore(text, arrays)
